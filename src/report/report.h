/* report.h - a profile for a person (text) or a program (JSON). */
#ifndef HW_REPORT_REPORT_H
#define HW_REPORT_REPORT_H

#include <stdio.h>

#include "report/view/groups.h"
#include "report/view/view.h"

/* Parts of a report; text.c has the order in which they are shown. The lists of contexts are in the order of enum
 * hw_sort_key. */
enum hw_report_section {
    HW_REPORT_SUMMARY,
    HW_REPORT_FUNCTIONS,
    HW_REPORT_TIMELINE,
    HW_REPORT_MEMORY,
    HW_REPORT_ACCESS, /* counted accesses, by function */
    HW_REPORT_LISTS,
    HW_REPORT_GLOBALS = HW_REPORT_LISTS + HW_SORT_KEYS,
    HW_REPORT_FINDINGS,  /* what to do */
    HW_REPORT_FIELDS,    /* of structs */
    HW_REPORT_SAMPLES,   /* sampled accesses */
    HW_REPORT_ALLOCATOR, /* the allocator itself */
    HW_REPORT_REGIONS,   /* what the program measured and named itself */
    HW_REPORT_SIZES,     /* as a distribution */
    HW_REPORT_LIFETIMES, /* likewise */
    HW_REPORT_LEAKS,     /* what can still be reached */
    HW_REPORT_KEEPS,     /* who keeps it */
    HW_REPORT_CONTENTS,  /* what is in it */
    HW_REPORT_PINNED,    /* what keeps pages resident */
    HW_REPORT_PERF,      /* samples of perf */
    HW_REPORT_TYPES,     /* the heap by type */
    HW_REPORT_NOT_OBSERVED,
    HW_REPORT_SECTIONS
};

/* "summary", … as --section takes them; the names from HW_REPORT_LISTS on are the keys of --sort. */
extern const char *const hw_report_section_names[HW_REPORT_SECTIONS];

#define HW_BRIEF_LINES 80 /* of a page of 80 columns or more */

struct hw_report_options {
    uint64_t sections;     /* bits 1 << enum hw_report_section; 0: what is usual */
    bool brief;            /* text, without `sections`: what matters most, at most HW_BRIEF_LINES */
    bool packages;         /* text, without `sections`: says which of this machine's packages bring
                            * missing names */
    size_t top;            /* contexts in a list; 0: 10 in text (brief: 5), all in JSON */
    enum hw_sort_key sort; /* order of JSON's contexts */
    const char *structure; /* of the structs only those of that name; NULL: all */
    struct hw_sums sums;   /* instead of the sections */
    bool threads;          /* JSON: also where `sections` leaves them out */
    bool fields;           /* heapwise fields: nothing beside the sections */
    bool full;             /* text: fold nothing, cut nothing */
    unsigned width;        /* text: columns, at least 60 */
    bool color, utf8;      /* text: what the terminal can show */
};

/* Print to STREAM, which is not flushed: the caller checks ferror. False with ERROR when there is no memory. */
bool hw_report_text(const struct hw_view *view, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error);
/* Whether --struct asks for it. */
bool hw_report_wants_struct(const struct hw_report_options *options, const struct hw_profile_struct *structure);

bool hw_report_json(const struct hw_view *view, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error);

#endif
