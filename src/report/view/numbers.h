/* numbers.h - the numbers of a context as reports show them: the rows of profile/numbers.def as a table. */
#ifndef HW_REPORT_VIEW_NUMBERS_H
#define HW_REPORT_VIEW_NUMBERS_H

#include "report/view/view.h"

/* When a number is known; else it is null, and no 0 stands for it. */
enum hw_number_known {
    HW_KNOWN_ALWAYS,
    HW_KNOWN_SAMPLED,    /* only in sampled runs */
    HW_KNOWN_EVENTS,     /* HW_MEASURED_EVENTS */
    HW_KNOWN_FREES,      /* the same; for the page always, where it may be the number of blocks of known lifetime */
    HW_KNOWN_EXACT,      /* HW_MEASURED_EVENTS, and not in sampled runs */
    HW_KNOWN_SIZES,      /* HW_MEASURED_SIZE_RANGE, and there was an allocation */
    HW_KNOWN_LIVE,       /* HW_MEASURED_LIVE */
    HW_KNOWN_PEAK,       /* HW_MEASURED_PEAK */
    HW_KNOWN_LIFETIMES,  /* HW_MEASURED_LIFETIMES */
    HW_KNOWN_LIFE_RANGE, /* HW_MEASURED_LIFETIME_RANGE, and there was a free */
    HW_KNOWN_AGE,        /* HW_MEASURED_LIVE, and it is not too much to be known */
    HW_KNOWN_LAST,       /* HW_MEASURED_LAST */
    HW_KNOWN_CPUS,       /* HW_MEASURED_CPUS */
    HW_KNOWN_LEAKS,      /* HW_MEASURED_LEAKS */
    HW_KNOWN_COUNTED,    /* accesses were counted */
    HW_KNOWN_AMOUNTS,    /* …not only periods */
    HW_KNOWN_SPLIT,      /* …and reads apart from writes */
    HW_KNOWN_GRANULES,   /* accesses were counted, and HW_MEASURED_GRANULES */
    HW_KNOWN_KINDS,      /* …by code that distinguishes reads from writes */
    HW_KNOWN_LINES,      /* …in granules smaller than a line */
};

/* The objects of the JSON report that numbers stand in. */
enum hw_number_group {
    HW_GROUP_NOWHERE,
    HW_GROUP_COUNTS,
    HW_GROUP_AMOUNT,
    HW_GROUP_SIZE,
    HW_GROUP_LIVE,
    HW_GROUP_LIFETIME,
    HW_GROUP_AGE,
    HW_GROUP_FIRST,
    HW_GROUP_THREADS,
    HW_GROUP_CPUS,
    HW_GROUP_REALLOC,
    HW_GROUP_INHERITED,
    HW_GROUP_LEAKS,
    HW_GROUP_ACCESS_BLOCKS,
    HW_GROUP_ACCESS_RANGE,
    HW_GROUP_ACCESS_GRANULES,
    HW_GROUP_NEVER_READ,
    HW_GROUP_SHARED,
    HW_GROUP_SHARING,
    HW_GROUP_CELLS,
};

struct hw_number {
    const char *member, *unit;
    bool of_access, is_signed;
    enum hw_number_known known;
    uint64_t added; /* its bit in hw_process_info.added, 0: every file has it */
    enum hw_number_group group;
    const char *json, *page, *sqlite; /* NULL: it has none */
    int csv_column;                   /* from 1; 0: none */
    const char *csv, *sentence;
    uint64_t (*value)(const struct hw_profile_context *sum); /* UINT64_MAX when it is more; of signed ones the bits */
};

extern const struct hw_number hw_numbers[];
extern const size_t hw_number_count;

/* Whether the profile has the number for its contexts at all. */
bool hw_number_measured(const struct hw_view *view, const struct hw_number *number);
/* Whether it is known of this one. */
bool hw_number_is_known(const struct hw_view *view, const struct hw_number *number,
                        const struct hw_profile_context *sum);

/* As numbers that are never below zero. */
static inline uint64_t hw_number_value(const struct hw_number *number, const struct hw_profile_context *sum)
{
    const uint64_t value = number->value(sum);
    return number->is_signed && value > INT64_MAX ? 0 : value;
}

#endif
