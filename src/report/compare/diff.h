/* diff.h - two profiles side by side, by place.
 *
 * What is one place in both is decided by names, since addresses and lines change with every build:
 *
 *   1. Functions of the stack, inlined ones included, without lines. What compilers add to names (.isra, .part, .cold,
 *      .constprop, .lto_priv, .llvm, Rust's hashes, symbol versions) is left out. Detours from a function to itself are
 * cut out, so that recursion to another depth is the same place. Code without a name goes by its module, and by its
 *      address where both profiles are of the same build of it.
 *   2. Of places that agree in this those that also agree in the names of the source files (without directories) and in
 *      the type of the blocks are the same; then those that agree in files only; then whatever is left of each side.
 *
 * Contexts of one profile that are the same place are added up. Memory and time are linear in both profiles. */
#ifndef HW_REPORT_COMPARE_DIFF_H
#define HW_REPORT_COMPARE_DIFF_H

#include <stdio.h>

#include "base/error.h"
#include "report/buffer.h"
#include "report/compare/keepers.h"
#include "report/view/intern.h"
#include "report/view/measure.h"
#include "report/report.h"

enum hw_diff_side { HW_OLD, HW_NEW, HW_SIDES };

struct hw_diff_place {
    uint64_t value[HW_SIDES][HW_MEASURES];
    uint32_t context[HW_SIDES];  /* the one with most bytes: index into the view's; HW_NONE where the place is not */
    uint32_t contexts[HW_SIDES]; /* how many */
};

/* A step of a stack as it is matched (rule 1): from the path PARENT, which has a smaller number, to NAME. */
struct hw_diff_path {
    uint32_t parent, name;
};

struct hw_diff {
    const struct hw_view *view[HW_SIDES];
    struct hw_diff_place *places;
    size_t count;
    struct hw_diff_path *paths; /* path 0 is the empty one */
    size_t path_count;
    struct hw_intern names;                /* by number: as matched; of code without a name its module, after "\001" */
    uint8_t *name_kind;                    /* by number: enum hw_module_kind of the module it was first seen in */
    uint32_t *path_of[HW_SIDES];           /* by context of the view */
    uint32_t *place_of[HW_SIDES];          /* likewise: index into `places` */
    bool *same_build[HW_SIDES];            /* by module of the view: the other profile has the same build of it */
    bool same_run;                         /* two moments of one process */
    struct hw_kept_places kept[HW_SIDES];  /* private: diff_keepers.c */
    uint64_t total[HW_SIDES][HW_MEASURES]; /* of the processes: the peak is that of the process */
};

/* NULL with ERROR when there is no memory. The views must outlive it; what is a wrapper by structure in one of them
 * becomes one in both. */
struct hw_diff *hw_diff_new(struct hw_view *old, struct hw_view *new, struct hw_error *error);
void hw_diff_free(struct hw_diff *diff);

/* Why a measure cannot be compared, as hw_measure_unknown; NULL when both have it. */
const char *hw_diff_unknown(const struct hw_diff *diff, enum hw_measure_id id);

/* What is compared when nobody asks for anything else. */
enum hw_measure_id hw_diff_usual(const struct hw_diff *diff);

/* NEW - OLD; ends at the limits of its type. */
static inline int64_t hw_diff_change(uint64_t old, uint64_t new)
{
    const uint64_t difference = new > old ? new - old : old - new;
    const int64_t size = difference > INT64_MAX ? INT64_MAX : (int64_t)difference;
    return new > old ? size : -size;
}

/* Whether a place is what its stacks have in common although functions on them have no name: they are distinguished by
 * program or library only, and one of them does not stand for the others. */
bool hw_diff_is_nameless(const struct hw_diff *diff, const struct hw_diff_place *place);

/* Indexes of the places that changed by a measure, greatest change first, equal ones as in both profiles; *COUNT of
 * them. To be freed. NULL when there is no memory. */
uint32_t *hw_diff_sorted(const struct hw_diff *diff, enum hw_measure_id id, size_t *count);

/* Appends sentences, each with "\n" at its end, about what makes the two hard to compare: sampled, other modes, other
 * programs, other numbers of runs. */
void hw_diff_notes(const struct hw_diff *diff, struct hw_buffer *out);

/* Appends the name of a function without what compilers add to it. */
void hw_diff_plain_name(struct hw_buffer *out, const char *name);

/* ---- diff_keepers.c ---- */

/* Who keeps blocks of a place. Keepers of the two profiles are the same if their names are, without the numbers of
 * threads unless both are moments of one run; and where only an address names them, if the build is the same. */
struct hw_diff_keeper {
    uint32_t keeper[HW_SIDES]; /* the one with most bytes: index into the view's; HW_NONE: none there */
    uint64_t blocks[HW_SIDES], bytes[HW_SIDES];
};

/* Of a place: greatest change of bytes first, to be freed; *COUNT of them. Where each pointer keeps little alone, the
 * variables and threads that have them. NULL: there is no memory, or neither profile has keepers (*COUNT is 0). */
struct hw_diff_keeper *hw_diff_keepers(const struct hw_diff *diff, uint32_t place, size_t *count);
/* Appends what it is called, without its module. */
void hw_diff_keeper_name(const struct hw_diff *diff, const struct hw_diff_keeper *keeper, struct hw_buffer *out);

/* ---- limits: --max-increase ---- */

struct hw_diff_limit {
    enum hw_measure_id id;
    bool percent;     /* of the old total */
    double amount;    /* percent; or the unit of the measure */
    const char *text; /* as given */
    bool broken;      /* set by hw_diff_check */
};

/* Decides which limits are broken; returns how many. */
size_t hw_diff_check(const struct hw_diff *diff, struct hw_diff_limit *limits, size_t count);

/* ---- text_diff.c, json_diff.c: print to STREAM, as hw_report_text and hw_report_json ---- */

struct hw_diff_options {
    struct hw_report_options report; /* top, full and the terminal */
    enum hw_measure_id sort;
    const struct hw_diff_limit *limits;
    size_t limit_count;
};

bool hw_diff_text(const struct hw_diff *diff, const struct hw_diff_options *options, FILE *stream,
                  struct hw_error *error);
bool hw_diff_json(const struct hw_diff *diff, const struct hw_diff_options *options, FILE *stream,
                  struct hw_error *error);

#endif
