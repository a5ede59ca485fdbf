/* search.c - a better order of a struct's members, or a division into a hot and a cold part.
 *
 * Orders are compared by lines brought in over all uses, then by size, then by how far apart those lie that sampled
 * windows saw together. Several orders are taken to begin with and each is improved by moving one member at a time
 * until nothing helps: structs are small. An order that is not better than the one that is there is never suggested. */
#include "analysis/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define VISITS        64   /* most frequent ones, which the search uses; the result is measured with all */
#define WORTH_LINES   0.95 /* lines per use after / before that are worth a change */
#define WORTH_SPLIT   0.85 /* the same for a split, against the best order */
#define SMALLEST_COLD 16   /* bytes */
#define POINTER       8
#define WORTH_USES    1000 /* fewer are not worth a search */

struct searcher {
    struct hw_struct_analysis *of;
    const struct hw_profile_fields *fields;
    const struct hw_ground *ground;
    struct hw_line_counter *counter;
    struct hw_pool *pool;
    struct hw_visits visits; /* the most frequent ones */
    uint64_t limit;          /* of counter->work */
};

struct score {
    double lines;
    uint64_t size;
    double spread;
};

static bool spent(const struct searcher *searcher)
{
    return searcher->counter->work > searcher->limit;
}

static struct hw_layout new_layout(struct searcher *searcher)
{
    struct hw_layout layout = {
        .order = hw_pool_take(searcher->pool, searcher->of->units.count, sizeof *layout.order),
        .offsets = hw_pool_take(searcher->pool, searcher->of->structure->field_count, sizeof *layout.offsets)};
    return layout;
}

static bool good(const struct hw_layout *layout)
{
    return layout->order && layout->offsets;
}

static void copy_layout(const struct searcher *searcher, struct hw_layout *to, const struct hw_layout *from)
{
    memcpy(to->order, from->order, from->count * sizeof *to->order);
    memcpy(to->offsets, from->offsets, searcher->of->structure->field_count * sizeof *to->offsets);
    to->count = from->count;
    to->size = from->size;
    to->alignment = from->alignment;
}

/* ---- what an order is worth ---- */

/* Places the units and counts. */
static struct score rate(struct searcher *searcher, struct hw_layout *layout, unsigned tail)
{
    const struct hw_profile_struct *structure = searcher->of->structure;
    struct score score = {0};
    hw_layout_place(&searcher->of->units, layout, tail);
    searcher->counter->work += structure->field_count;
    score.size = layout->size;
    for (size_t i = 0; i < searcher->visits.count; i++) {
        const struct hw_visit *visit = &searcher->visits.visits[i];
        score.lines += visit->executions * hw_lines_of_visit(searcher->counter, searcher->ground, &searcher->visits,
                                                             visit, layout->offsets, layout->size, UINT64_MAX);
    }
    for (size_t i = 0; i < structure->window_count && i < 256; i++) {
        const struct hw_profile_field_window *window = &searcher->fields->windows[structure->first_window + i];
        const uint64_t a = layout->offsets[window->field_a - structure->first_field],
                       b = layout->offsets[window->field_b - structure->first_field];
        if (a != UINT64_MAX && b != UINT64_MAX && a / HW_LINE != b / HW_LINE)
            score.spread += (double)window->weight;
    }
    return score;
}

static bool is_better(const struct score *a, const struct score *b)
{
    if (a->lines < b->lines * (1 - 1e-9) || b->lines < a->lines * (1 - 1e-9))
        return a->lines < b->lines;
    if (a->size != b->size)
        return a->size < b->size;
    return a->spread < b->spread * (1 - 1e-9);
}

/* ---- orders to begin with ---- */

enum start { START_HEAT, START_ALIGNMENT, START_HOT_FIRST, STARTS };

struct sorter {
    const struct hw_unit *units;
    enum start by;
    double hot;
};

static int compare_units(const void *left, const void *right, void *closure)
{
    const struct sorter *sorter = closure;
    const uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
    const struct hw_unit *a = &sorter->units[l], *b = &sorter->units[r];
    const bool a_hot = a->heat >= sorter->hot, b_hot = b->heat >= sorter->hot;
    if (a->first != b->first)
        return a->first ? -1 : 1;
    if (a->last != b->last)
        return a->last ? 1 : -1;
    if (a->first || a->last)
        return HW_ORDER(l, r);
    if (sorter->by == START_HOT_FIRST && a_hot != b_hot)
        return a_hot ? -1 : 1;
    if (sorter->by == START_HEAT && (a->heat > b->heat || b->heat > a->heat))
        return a->heat > b->heat ? -1 : 1;
    if (a->alignment != b->alignment)
        return a->alignment > b->alignment ? -1 : 1;
    if (a->heat > b->heat || b->heat > a->heat)
        return a->heat > b->heat ? -1 : 1;
    return HW_ORDER(l, r);
}

static void sort_units(const struct searcher *searcher, struct hw_layout *layout, enum start by)
{
    struct sorter sorter = {.units = searcher->of->units.units, .by = by};
    for (size_t i = 0; i < layout->count; i++)
        if (sorter.units[layout->order[i]].heat > sorter.hot)
            sorter.hot = sorter.units[layout->order[i]].heat;
    sorter.hot /= 100;
    qsort_r(layout->order, layout->count, sizeof *layout->order, compare_units, &sorter);
}

static void all_units(const struct searcher *searcher, struct hw_layout *layout)
{
    layout->count = searcher->of->units.count;
    for (size_t i = 0; i < layout->count; i++)
        layout->order[i] = (uint32_t)i;
}

/* ---- improving ---- */

static void move_unit(uint32_t *order, size_t from, size_t to)
{
    const uint32_t moved = order[from];
    if (from < to)
        memmove(order + from, order + from + 1, (to - from) * sizeof *order);
    else
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = moved;
}

/* Moves one unit at a time to where it helps most; until nothing helps. */
static struct score improve(struct searcher *searcher, struct hw_layout *layout, unsigned tail)
{
    const struct hw_unit *units = searcher->of->units.units;
    struct score best = rate(searcher, layout, tail);
    size_t first = 0, end = layout->count;
    while (first < end && units[layout->order[first]].first)
        first++;
    while (end > first && units[layout->order[end - 1]].last)
        end--;
    for (bool improved = true; improved && !spent(searcher);) {
        improved = false;
        for (size_t from = first; from < end && !spent(searcher); from++) {
            size_t best_to = from;
            for (size_t to = first; to < end && !spent(searcher); to++) {
                if (to == from)
                    continue;
                move_unit(layout->order, from, to);
                const struct score score = rate(searcher, layout, tail);
                if (is_better(&score, &best)) {
                    best = score;
                    best_to = to;
                }
                move_unit(layout->order, to, from);
            }
            if (best_to != from) {
                move_unit(layout->order, from, best_to);
                improved = true;
            }
        }
    }
    return rate(searcher, layout, tail);
}

/* The best order of the units in LAYOUT; ORIGINAL: they are in the order of the definition, which is not left without
 * need. */
static void find_order(struct searcher *searcher, struct hw_layout *layout, unsigned tail)
{
    struct hw_layout other = new_layout(searcher), start = new_layout(searcher);
    if (!good(&other) || !good(&start))
        return;
    struct score best = improve(searcher, layout, tail);
    copy_layout(searcher, &start, layout);
    for (enum start by = 0; by < STARTS && !spent(searcher); by++) {
        copy_layout(searcher, &other, &start);
        sort_units(searcher, &other, by);
        const struct score score = improve(searcher, &other, tail);
        if (score.lines < 0.99 * best.lines || (score.lines <= best.lines * (1 + 1e-9) && score.size < best.size)) {
            best = score;
            copy_layout(searcher, layout, &other);
        }
    }
}

/* ---- reorder ---- */

static bool same_order(const struct hw_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        if (layout->order[i] != i)
            return false;
    return true;
}

static void suggest_order(struct searcher *searcher)
{
    struct hw_struct_analysis *of = searcher->of;
    struct hw_layout layout = new_layout(searcher);
    if (!good(&layout))
        return;
    all_units(searcher, &layout);
    find_order(searcher, &layout, 0);
    hw_layout_place(&of->units, &layout, 0);
    const struct hw_lines lines =
        hw_lines_measure(searcher->counter, searcher->ground, &of->visits, &layout, NULL, 0, NULL);
    const bool fewer = lines.per_use <= WORTH_LINES * of->lines.per_use;
    const bool smaller = layout.size < of->structure->size && lines.per_use <= of->lines.per_use * (1 + 1e-9);
    if (same_order(&layout) || layout.size > of->structure->size || !(fewer || smaller))
        return;
    of->suggestion = (struct hw_suggestion){.kind = HW_SUGGEST_REORDER, .hot = layout, .lines = lines};
}

/* ---- split ---- */

static int compare_heat(const void *left, const void *right, void *closure)
{
    const struct hw_unit *units = closure;
    const uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
    if (units[l].heat > units[r].heat || units[r].heat > units[l].heat)
        return units[l].heat > units[r].heat ? -1 : 1;
    return HW_ORDER(l, r);
}

static int compare_number(const void *left, const void *right)
{
    const uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
    return HW_ORDER(l, r);
}

/* Tries the units from CUT on, by heat, as the cold part. */
static void try_split(struct searcher *searcher, const uint32_t *by_heat, size_t movable, size_t cut)
{
    struct hw_struct_analysis *of = searcher->of;
    struct hw_suggestion split = {.kind = HW_SUGGEST_SPLIT, .hot = new_layout(searcher), .cold = new_layout(searcher)};
    if (!good(&split.hot) || !good(&split.cold))
        return;
    for (size_t i = 0; i < of->units.count; i++)
        if (of->units.units[i].first || of->units.units[i].last)
            split.hot.order[split.hot.count++] = (uint32_t)i;
    for (size_t i = 0; i < movable; i++) {
        struct hw_layout *part = i < cut ? &split.hot : &split.cold;
        part->order[part->count++] = by_heat[i];
    }
    qsort(split.hot.order, split.hot.count, sizeof *split.hot.order, compare_number);
    qsort(split.cold.order, split.cold.count, sizeof *split.cold.order, compare_number);
    find_order(searcher, &split.hot, POINTER);
    sort_units(searcher, &split.cold, START_HOT_FIRST);
    hw_layout_place(&of->units, &split.cold, 0);
    split.pointer = hw_layout_place(&of->units, &split.hot, POINTER);
    if (split.cold.size < SMALLEST_COLD || split.hot.size >= of->structure->size)
        return;
    split.lines = hw_lines_measure(searcher->counter, searcher->ground, &of->visits, &split.hot, &split.cold,
                                   split.pointer, NULL);
    const bool reordered = of->suggestion.kind != HW_SUGGEST_NOTHING;
    const double best = reordered ? of->suggestion.lines.per_use : of->lines.per_use;
    const bool is_split = of->suggestion.kind == HW_SUGGEST_SPLIT;
    if (split.lines.per_use < (is_split ? 1 : WORTH_SPLIT) * best)
        of->suggestion = split;
}

static void suggest_split(struct searcher *searcher)
{
    const struct hw_units *units = &searcher->of->units;
    uint32_t *by_heat = hw_pool_take(searcher->pool, units->count, sizeof *by_heat);
    size_t movable = 0;
    if (!by_heat)
        return;
    for (size_t i = 0; i < searcher->of->structure->field_count; i++) /* what looks cold may be hot */
        if (units->fields[i].possible_reads || units->fields[i].possible_writes || units->fields[i].unseen)
            return;
    for (size_t i = 0; i < units->count; i++)
        if (!units->units[i].first && !units->units[i].last)
            by_heat[movable++] = (uint32_t)i;
    qsort_r(by_heat, movable, sizeof *by_heat, compare_heat, units->units);
    for (size_t cut = 1, tried = 0; cut < movable && tried < 6 && !spent(searcher); cut++) {
        const double before = units->units[by_heat[cut - 1]].heat, after = units->units[by_heat[cut]].heat;
        if (after > before / 2 || before <= 0)
            continue;
        try_split(searcher, by_heat, movable, cut);
        tried++;
    }
}

/* ---- the whole ---- */

/* Uses that touch a unit. */
static void heat_units(struct hw_struct_analysis *of, struct hw_pool *pool)
{
    uint32_t *unit_of = hw_pool_take(pool, of->structure->field_count, sizeof *unit_of); /* by field */
    for (uint32_t u = 0; unit_of && u < of->units.count; u++)
        for (uint32_t i = 0; i < of->units.units[u].field_count; i++)
            unit_of[of->units.units[u].first_field + i] = u;
    for (size_t v = 0; unit_of && v < of->visits.count; v++) {
        const struct hw_visit *visit = &of->visits.visits[v];
        const struct hw_touch *touches = &of->visits.touches[visit->first_touch];
        for (size_t i = 0; i < visit->touch_count; i++)
            if (!i || unit_of[touches[i].field] != unit_of[touches[i - 1].field])
                of->units.units[unit_of[touches[i].field]].heat += visit->executions;
    }
}

void hw_suggest(struct hw_struct_analysis *of, const struct hw_profile_fields *fields, const struct hw_ground *ground,
                struct hw_line_counter *counter, uint64_t budget, struct hw_pool *pool)
{
    struct searcher searcher = {.of = of,
                                .fields = fields,
                                .ground = ground,
                                .counter = counter,
                                .pool = pool,
                                .visits = of->visits,
                                .limit = counter->work + budget};
    if (of->units.verdict != HW_LAYOUT_FREE || of->visits.executions < (fields->sampled ? HW_SAMPLED_USES : WORTH_USES) ||
        of->structure->size > HW_LINES_LARGEST)
        return;
    if (searcher.visits.count > VISITS)
        searcher.visits.count = VISITS;
    heat_units(of, pool);
    suggest_order(&searcher);
    suggest_split(&searcher);
}
