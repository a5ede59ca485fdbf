/* growth.c - see growth.h. */
#include "report/compare/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "report/text/human.h"

const char *const hw_growth_uses[HW_GROWTH_USES] = {
    [HW_GROWTH_USED] = "used",       [HW_GROWTH_END] = "end-of-program",   [HW_GROWTH_SAME] = "same-moment",
    [HW_GROWTH_THINNED] = "thinned", [HW_GROWTH_FOREIGN] = "before-reset", [HW_GROWTH_DAMAGED] = "damaged",
};

/* ---- which moments ---- */

static int compare_files(const void *left, const void *right)
{
    const struct hw_growth_file *a = left, *b = right;
    const bool a_dump = a->moment.process.flags & HW_PROCESS_DUMP, b_dump = b->moment.process.flags & HW_PROCESS_DUMP;
    return HW_ORDER(b->use == HW_GROWTH_DAMAGED, a->use == HW_GROWTH_DAMAGED)
        ?: HW_ORDER(a->moment.time_ns, b->moment.time_ns) ?: HW_ORDER(b_dump, a_dump) ?: strcmp(a->path, b->path);
}

static size_t count_used(const struct hw_growth_file *files, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += files[i].use == HW_GROWTH_USED;
    return used;
}

void hw_growth_order(struct hw_growth_file *files, size_t count)
{
    if (!count)
        return;
    qsort(files, count, sizeof *files, compare_files);
    const uint32_t taken_over = HW_PROCESS_FORKED | HW_PROCESS_RESET;
    const bool foreign = (files[count - 1].moment.process.flags & taken_over) == taken_over;
    for (size_t i = 0; i < count; i++) {
        if (files[i].use == HW_GROWTH_DAMAGED)
            continue;
        files[i].use = HW_GROWTH_USED;
        if (foreign && !(files[i].moment.process.flags & HW_PROCESS_RESET))
            files[i].use = HW_GROWTH_FOREIGN;
        else if (i + 1 < count && files[i + 1].moment.time_ns == files[i].moment.time_ns)
            files[i].use = HW_GROWTH_SAME;
    }
    struct hw_growth_file *last = &files[count - 1];
    if (last->moment.process.exit_kind == HW_EXIT_CODE && count_used(files, count) > HW_TREND_LEAST)
        last->use = HW_GROWTH_END;
    const size_t used = count_used(files, count);
    if (used <= HW_GROWTH_MOMENTS)
        return;
    size_t seen = 0, next = 0; /* as many as may be, evenly, the first and the last among them */
    for (size_t i = 0; i < count; i++) {
        if (files[i].use != HW_GROWTH_USED)
            continue;
        if (seen++ == next * (used - 1) / (HW_GROWTH_MOMENTS - 1))
            next++;
        else
            files[i].use = HW_GROWTH_THINNED;
    }
}

/* ---- numbers ---- */

static double live(int64_t value)
{
    return (double)hw_not_negative(value);
}

static bool fit(struct hw_growth *growth, struct hw_growth_row *row, const double *variances, const double *added)
{
    const struct hw_trend_series bytes = {growth->times, row->bytes, growth->moments, variances, added};
    const struct hw_trend_series blocks = {.times = growth->times, .values = row->blocks, .count = growth->moments};
    if (!hw_trend_of(&bytes, &row->trend))
        return false;
    return !row->blocks || variances || row->trend.pattern != HW_TREND_GROWS ||
           hw_trend_of(&blocks, &row->blocks_trend);
}

static int compare_rows(const void *left, const void *right, void *closure)
{
    const struct hw_growth *growth = closure;
    const struct hw_growth_row *a = left, *b = right;
    const bool a_grows = a->trend.pattern == HW_TREND_GROWS, b_grows = b->trend.pattern == HW_TREND_GROWS;
    const size_t last = growth->moments - 1;
    if (a_grows && b_grows && a->trend.rate != b->trend.rate)
        return HW_ORDER(b->trend.rate, a->trend.rate);
    return HW_ORDER(b_grows, a_grows) ?: HW_ORDER(b->bytes[last] - b->bytes[0], a->bytes[last] - a->bytes[0])
        ?: HW_ORDER(a->bytes, b->bytes);
}

static void sort_rows(struct hw_growth *growth)
{
    qsort_r(growth->rows, growth->row_count, sizeof *growth->rows, compare_rows, growth);
    for (size_t i = 0; i < growth->row_count; i++) {
        const struct hw_growth_row *row = &growth->rows[i];
        if (row->trend.pattern == HW_TREND_GROWS) {
            growth->steady++;
            growth->steady_rate += row->trend.rate;
            growth->steady_low += row->trend.low;
            growth->steady_high += row->trend.high;
        } else {
            growth->falling += row->bytes[growth->moments - 1] < row->bytes[0];
        }
    }
}

/* ---- places ---- */

/* What is read: by context and moment. */
struct reading {
    struct hw_moment_count *counts;             /* of one moment */
    double *bytes, *blocks, *variances, *added; /* [context * moments + moment]; the last two of sampled runs */
    double *whole_variances, *whole_added;
};

static bool changes(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return true;
    return false;
}

/* One entry more: the whole process. */
static bool read_moments(struct hw_growth *growth, struct reading *reading, struct hw_error *error)
{
    const struct hw_view *view = growth->view;
    const size_t contexts = view->context_count, moments = growth->moments;
    size_t at = 0;
    for (size_t i = 0; i < growth->file_count; i++) {
        const struct hw_growth_file *file = &growth->files[i];
        struct hw_moment_count *whole = &reading->counts[contexts];
        if (file->use != HW_GROWTH_USED)
            continue;
        memset(reading->counts, 0, (contexts + 1) * sizeof *reading->counts);
        if (!hw_moment_count(file->path, view->index_of, view->id_count, reading->counts, whole, error))
            return false;
        growth->times[at] = (double)file->moment.time_ns / 1e9;
        for (size_t k = 0; k <= contexts; k++) {
            reading->bytes[k * moments + at] = live(reading->counts[k].bytes);
            reading->blocks[k * moments + at] = live(reading->counts[k].blocks);
            if (reading->variances) {
                reading->variances[k * moments + at] = fmax(0, reading->counts[k].variance);
                reading->added[k * moments + at] = reading->counts[k].added_variance;
            }
        }
        at++;
    }
    return true;
}

static bool make_places(struct hw_growth *growth, const struct reading *reading)
{
    const struct hw_view *view = growth->view;
    const size_t moments = growth->moments;
    growth->rows = malloc((view->context_count + 1) * sizeof *growth->rows);
    bool fine = growth->rows;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const size_t at = i * moments;
        struct hw_growth_row *row = &growth->rows[growth->row_count];
        if (view->contexts[i].sum.pool || !changes(reading->bytes + at, moments)) {
            growth->unchanged++;
            continue;
        }
        *row = (struct hw_growth_row){
            .context = (uint32_t)i, .bytes = reading->bytes + at, .blocks = reading->blocks + at};
        fine = fit(growth, row, reading->variances ? reading->variances + at : NULL,
                   reading->added ? reading->added + at : NULL);
        growth->row_count++;
    }
    return fine;
}

/* ---- groups ---- */

/* Whether two of one view are the same group. Their frames come from the view alone, so that equal groups have equal
 * ones. */
static bool same_group(const struct hw_group *a, const struct hw_group *b, enum hw_by by)
{
    if (by == HW_BY_TYPE)
        return a->name == b->name || (a->name && b->name && !strcmp(a->name, b->name));
    return by == HW_BY_SIZE ? a->size_most == b->size_most : a->location == b->location && a->frame == b->frame;
}

static struct hw_key group_key(const struct hw_group *group, enum hw_by by)
{
    if (by == HW_BY_TYPE)
        return hw_key_of(group->name ? group->name : "", group->name ? strlen(group->name) : 0, "",
                         group->name != NULL);
    return by == HW_BY_SIZE ? (struct hw_key){group->size_most, 1}
                            : (struct hw_key){(uint64_t)group->location << 32 | group->frame, 2};
}

struct grouping {
    struct hw_index index;
    struct hw_growth_row *rows;
    size_t count, capacity;
};

static struct hw_growth_row *row_of(struct grouping *grouping, const struct hw_group *group, enum hw_by by,
                                    size_t moments)
{
    struct hw_key key = group_key(group, by);
    for (;; key.high += (uint64_t)1 << 48) { /* another one of the same key: hardly ever */
        bool new;
        const uint32_t number = hw_index_intern(&grouping->index, key, (uint32_t)grouping->count, &new);
        if (number == HW_INDEX_NONE)
            return NULL;
        if (!new &&same_group(&grouping->rows[number].group, group, by))
            return &grouping->rows[number];
        if (!new)
            continue;
        if (!HW_GROW(grouping->rows, grouping->capacity, grouping->count + 1))
            return NULL;
        double *values = calloc(2 * moments, sizeof *values);
        grouping->rows[grouping->count] =
            (struct hw_growth_row){.context = HW_NONE, .group = *group, .bytes = values, .self = values + moments};
        return values ? &grouping->rows[grouping->count++] : NULL;
    }
}

/* The groups of all moments: what is live in the view is that of one after the other. */
static bool group_moments(struct hw_growth *growth, const struct reading *reading, bool full, struct grouping *grouping)
{
    struct hw_view *view = growth->view;
    for (size_t at = 0; at < growth->moments; at++) {
        struct hw_groups groups;
        for (size_t i = 0; i < view->context_count; i++)
            view->contexts[i].sum.live_bytes = (int64_t)reading->bytes[i * growth->moments + at];
        if (!hw_groups_make(&groups, view, growth->by, HW_MEASURE_LEAKED, full))
            return false;
        bool fine = true;
        for (size_t i = 0; fine && i < groups.count; i++) {
            struct hw_growth_row *row = row_of(grouping, &groups.group[i], growth->by, growth->moments);
            fine = row != NULL;
            if (fine) {
                ((double *)row->bytes)[at] = (double)groups.group[i].total;
                ((double *)row->self)[at] = (double)groups.group[i].self;
            }
        }
        hw_groups_free(&groups);
        if (!fine)
            return false;
    }
    return true;
}

static bool make_groups(struct hw_growth *growth, const struct reading *reading, bool full)
{
    struct hw_view *view = growth->view;
    struct grouping grouping = {.count = 0};
    int64_t *kept = malloc((view->context_count + 1) * sizeof *kept);
    for (size_t i = 0; kept && i < view->context_count; i++)
        kept[i] = view->contexts[i].sum.live_bytes;
    bool fine = kept && hw_index_make(&grouping.index, 64) && group_moments(growth, reading, full, &grouping);
    for (size_t i = 0; kept && i < view->context_count; i++)
        view->contexts[i].sum.live_bytes = kept[i];
    growth->rows = fine ? malloc((grouping.count + 1) * sizeof *growth->rows) : NULL;
    fine = fine && growth->rows;
    for (size_t i = 0; i < grouping.count; i++) {
        struct hw_growth_row *row = &grouping.rows[i];
        if (fine && changes(row->bytes, growth->moments)) {
            if (!hw_by_keys[growth->by].of_frames)
                row->self = NULL;
            fine = fit(growth, row, NULL, NULL);
            row->group.total = (uint64_t)row->bytes[growth->moments - 1];
            row->group.self = row->self ? (uint64_t)row->self[growth->moments - 1] : row->group.total;
            growth->rows[growth->row_count++] = *row; /* which owns the numbers now */
        } else {
            free((double *)row->bytes);
            growth->unchanged++;
        }
    }
    free(grouping.rows);
    free(kept);
    hw_index_free(&grouping.index);
    return fine;
}

/* ---- who keeps it ---- */

struct hw_place_keeper *hw_growth_keepers(const struct hw_growth *growth, uint32_t context, size_t *count,
                                          uint64_t *bytes)
{
    struct hw_place_keeper *keepers = hw_place_keepers(&growth->kept, context, false, count, bytes);
    if (!keepers || !hw_keepers_scattered(keepers, *count, *bytes))
        return keepers;
    free(keepers);
    return hw_place_keepers(&growth->kept, context, true, count, bytes);
}

/* ---- the whole ---- */

static bool make(struct hw_growth *growth, bool full, struct hw_error *error)
{
    const struct hw_view *view = growth->view;
    const size_t contexts = view->context_count, moments = growth->moments, numbers = (contexts + 1) * moments;
    const bool sampled = view->profile->process.sample_bytes != 0;
    growth->numbers = malloc((2 * numbers + 1) * sizeof *growth->numbers);
    growth->times = malloc((moments + 1) * sizeof *growth->times);
    struct reading reading = {.counts = malloc((contexts + 1) * sizeof *reading.counts)};
    if (sampled) {
        reading.variances = malloc((numbers + 1) * sizeof *reading.variances);
        reading.added = malloc((numbers + 1) * sizeof *reading.added);
    }
    bool fine =
        growth->numbers && growth->times && reading.counts && (!sampled || (reading.variances && reading.added));
    hw_error_set(error, "not enough memory to compare %zu moments", moments);
    if (fine) {
        reading.bytes = growth->numbers;
        reading.blocks = growth->numbers + numbers;
        fine = read_moments(growth, &reading, error);
    }
    if (fine) {
        const size_t at = contexts * moments;
        growth->whole =
            (struct hw_growth_row){.context = HW_NONE, .bytes = reading.bytes + at, .blocks = reading.blocks + at};
        fine =
            fit(growth, &growth->whole, sampled ? reading.variances + at : NULL, sampled ? reading.added + at : NULL) &&
            (growth->by == HW_BYS ? make_places(growth, &reading) : make_groups(growth, &reading, full));
        if (!fine)
            hw_error_set(error, "not enough memory to compare %zu moments", moments);
    }
    free(reading.counts);
    free(reading.variances);
    free(reading.added);
    if (fine)
        sort_rows(growth);
    return fine;
}

struct hw_growth *hw_growth_new(struct hw_view *view, struct hw_growth_file *files, size_t count, enum hw_by by,
                                bool full, struct hw_error *error)
{
    struct hw_growth *growth = calloc(1, sizeof *growth);
    hw_error_set(error, "not enough memory");
    if (growth) {
        growth->view = view;
        growth->files = files;
        growth->file_count = count;
        growth->by = by;
        growth->moments = count_used(files, count);
        if (hw_kept_places_make(&growth->kept, view->keeps, NULL) && make(growth, full, error))
            return growth;
    }
    hw_growth_free(growth);
    return NULL;
}

void hw_growth_free(struct hw_growth *growth)
{
    if (!growth)
        return;
    for (size_t i = 0; growth->by != HW_BYS && i < growth->row_count; i++)
        free((double *)growth->rows[i].bytes);
    hw_kept_places_free(&growth->kept);
    free(growth->times);
    free(growth->numbers);
    free(growth->rows);
    free(growth);
}

/* ---- what to know about it ---- */

void hw_growth_notes(const struct hw_growth *growth, struct hw_buffer *out)
{
    size_t uses[HW_GROWTH_USES] = {0};
    for (size_t i = 0; i < growth->file_count; i++)
        uses[growth->files[i].use]++;
    if (growth->moments == 2)
        hw_buffer_add(out,
                      "There are two moments: the rate is their difference, and how certain it is cannot be said. "
                      "A trend needs %d dumps or more.\n",
                      HW_TREND_LEAST);
    else if (growth->moments < HW_TREND_LEAST)
        hw_buffer_add(out, "There are %zu moments: whether growth is steady cannot be said with fewer than %d.\n",
                      growth->moments, HW_TREND_LEAST);
    if (uses[HW_GROWTH_END])
        hw_buffer_add(out, "The end of the program is left out, as programs free memory then that they held all the "
                           "time.\n");
    if (uses[HW_GROWTH_SAME])
        hw_buffer_add(out, "%s the same moment as another one, and %s left out.\n",
                      uses[HW_GROWTH_SAME] == 1 ? "One file is of" : "Some files are of",
                      uses[HW_GROWTH_SAME] == 1 ? "is" : "are");
    if (uses[HW_GROWTH_THINNED])
        hw_buffer_add(out, "Of %zu moments %zu are used, at even distances.\n",
                      uses[HW_GROWTH_THINNED] + growth->moments, growth->moments);
    if (uses[HW_GROWTH_FOREIGN])
        hw_buffer_add(out,
                      "Dumps from before heapwise_reset() are left out: the process is a forked child, and what it "
                      "inherited counts as live from then on only.\n");
    if (uses[HW_GROWTH_DAMAGED])
        hw_buffer_add(out, "%s beside the others cannot be read: %s left out. A moment may be missing.\n",
                      HW_OF(uses[HW_GROWTH_DAMAGED], "file"), uses[HW_GROWTH_DAMAGED] == 1 ? "it is" : "they are");
    if (growth->view->profile->process.sample_bytes)
        hw_buffer_add(out,
                      growth->by == HW_BYS
                          ? "The run was sampled: live bytes are estimates, and their error is part of the "
                            "intervals.\n"
                          : "The run was sampled: live bytes are estimates. Their error is part of the interval of "
                            "the whole heap, but not of those of groups.\n");
}

/* ---- words ---- */

void hw_growth_add_rate(struct hw_buffer *out, double rate, bool bytes)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"day", 86400}};
    const double size = fabs(rate);
    size_t unit = 0;
    while (size > 0 && unit < 3 && size * units[unit].seconds < 10)
        unit++;
    const double value = size * units[unit].seconds;
    const uint64_t whole = value < 0x1p63 ? (uint64_t)llround(value) : UINT64_MAX;
    if (bytes)
        hw_buffer_add(out, "%s%s/%s", rate < 0 && whole ? "-" : "", HW_BYTES(whole), units[size > 0 ? unit : 0].unit);
    else
        hw_buffer_add(out, "%s%s blocks/%s", rate < 0 && whole ? "-" : "", HW_MANY(whole),
                      units[size > 0 ? unit : 0].unit);
}
