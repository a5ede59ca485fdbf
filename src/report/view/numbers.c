/* numbers.c - see numbers.h. */
#include "report/view/numbers.h"

#include "report/view/measure.h"

/* ---- values ---- */

/* A sum of 128 bits has no other place. */
#define CLAMPED(type, value)                                                                                           \
    ((type)-1 > 0 && (value) > (type)UINT64_MAX && sizeof(type) > 8 ? UINT64_MAX : (uint64_t)(value))

#define HW_NUMBER(type, member, ...)                                                                                   \
    static uint64_t of_##member(const struct hw_profile_context *sum)                                                  \
    {                                                                                                                  \
        return CLAMPED(type, sum->member);                                                                             \
    }
#define HW_ACCESS(type, member, ...)                                                                                   \
    static uint64_t of_access_##member(const struct hw_profile_context *sum)                                           \
    {                                                                                                                  \
        return sum->access ? sum->access->all.member : 0;                                                              \
    }
#include "profile/numbers.def"

static uint64_t of_accesses(const struct hw_profile_context *sum)
{
    return sum->access ? hw_profile_access_total(&sum->access->all) : 0;
}

/* ---- the table ---- */

#define BIT_MIB(member)   0
#define BIT_TICKS(member) 0
#define BIT_EVENT(member) 0
#define BIT_CODE(member)  0
#define BIT_ADDED(member) HW_ADDED_BIT(member)

/* What all rows have: all but the type and how it is stored. */
#define ROW(member_, unit_, known_, group_, json_, page_, sqlite_, column_, csv_, sentence_, ...)                      \
    {.member = #member_,                                                                                               \
     .unit = #unit_,                                                                                                   \
     .known = HW_KNOWN_##known_,                                                                                       \
     .group = HW_GROUP_##group_,                                                                                       \
     .json = json_,                                                                                                    \
     .page = page_,                                                                                                    \
     .sqlite = sqlite_,                                                                                                \
     .csv_column = column_,                                                                                            \
     .csv = csv_,                                                                                                      \
     .sentence = sentence_,                                                                                            \
     __VA_ARGS__},

const struct hw_number hw_numbers[] = {
#define HW_NUMBER(type, member, adds, of, stored, as, unit, known, group, json, page, sqlite, column, csv, sentence)   \
    ROW(member, unit, known, group, json, page, sqlite, column, csv, sentence, .is_signed = (type)-1 < 1,              \
        .added = BIT_##stored(member), .value = of_##member)
#define HW_ACCESS(type, member, adds, of, stored, as, unit, known, group, json, page, sqlite, column, csv, sentence)   \
    ROW(member, unit, known, group, json, page, sqlite, column, csv, sentence, .of_access = true,                      \
        .value = of_access_##member)
#define HW_MADE(member, unit, known, group, json, page, sqlite, column, csv, sentence)                                 \
    ROW(member, unit, known, group, json, page, sqlite, column, csv, sentence, .of_access = true, .value = of_##member)
#include "profile/numbers.def"
};

const size_t hw_number_count = sizeof hw_numbers / sizeof *hw_numbers;

/* ---- what is known ---- */

bool hw_number_measured(const struct hw_view *view, const struct hw_number *number)
{
    static const enum hw_measured needed[] = {
        [HW_KNOWN_EVENTS] = HW_MEASURED_EVENTS,
        [HW_KNOWN_FREES] = HW_MEASURED_EVENTS,
        [HW_KNOWN_EXACT] = HW_MEASURED_EVENTS,
        [HW_KNOWN_SIZES] = HW_MEASURED_SIZE_RANGE,
        [HW_KNOWN_LIVE] = HW_MEASURED_LIVE,
        [HW_KNOWN_PEAK] = HW_MEASURED_PEAK,
        [HW_KNOWN_LIFETIMES] = HW_MEASURED_LIFETIMES,
        [HW_KNOWN_LIFE_RANGE] = HW_MEASURED_LIFETIME_RANGE,
        [HW_KNOWN_AGE] = HW_MEASURED_LIVE,
        [HW_KNOWN_LAST] = HW_MEASURED_LAST,
        [HW_KNOWN_CPUS] = HW_MEASURED_CPUS,
        [HW_KNOWN_LEAKS] = HW_MEASURED_LEAKS,
        [HW_KNOWN_GRANULES] = HW_MEASURED_GRANULES,
        [HW_KNOWN_KINDS] = HW_MEASURED_GRANULES,
        [HW_KNOWN_LINES] = HW_MEASURED_GRANULES,
    };
    const struct hw_profile *profile = view->profile;
    if ((number->of_access && !profile->access_counted) || (number->added & ~profile->process.added))
        return false;
    switch (number->known) {
    case HW_KNOWN_ALWAYS:
    case HW_KNOWN_COUNTED:
        return true;
    case HW_KNOWN_SAMPLED:
        return hw_view_sampled(view);
    case HW_KNOWN_EXACT:
        return !hw_view_sampled(view) && hw_view_measured(view, HW_MEASURED_EVENTS);
    case HW_KNOWN_AMOUNTS:
        return !hw_measure_unknown(view, HW_MEASURE_ACCESSES);
    case HW_KNOWN_SPLIT:
        return !hw_measure_unknown(view, HW_MEASURE_READS);
    case HW_KNOWN_KINDS:
        return hw_view_measured(view, HW_MEASURED_GRANULES) && profile->access_info.flags & HW_ACCESS_SPLIT;
    case HW_KNOWN_LINES:
        return hw_view_measured(view, HW_MEASURED_GRANULES) && profile->access_info.granule != 64;
    default:
        return hw_view_measured(view, needed[number->known]);
    }
}

bool hw_number_is_known(const struct hw_view *view, const struct hw_number *number,
                        const struct hw_profile_context *sum)
{
    return hw_number_measured(view, number) && (number->known != HW_KNOWN_SIZES || sum->allocations) &&
           (number->known != HW_KNOWN_LIFE_RANGE || sum->frees) &&
           (number->known != HW_KNOWN_AGE || sum->live_age_total_ns != UINT64_MAX);
}
