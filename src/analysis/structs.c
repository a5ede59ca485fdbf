/* structs.c - structs one by one: lines per use as they are, affinity, suggestion; and what of it is worth a finding.
 */
#include "analysis/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define SEARCH_WORK   ((uint64_t)400 << 20) /* touches computed in the search of all layouts: a second or two */
#define SEARCH_STRUCT ((uint64_t)30 << 20)  /* of one struct, at most */

/* ---- numbers ---- */

/* The RFC's measure: how much counts of adjacent fields differ. Bit-fields and alternatives of a union count as fields.
 */
static uint64_t rfc_ratio(const struct hw_profile_field *fields, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 1; i < count; i++) {
        const uint64_t a = hw_add_saturating(fields[i - 1].reads, fields[i - 1].writes),
                       b = hw_add_saturating(fields[i].reads, fields[i].writes);
        const uint64_t least = a < b ? a : b;
        sum = hw_add_saturating(sum, (a < b ? b : a) / (least ? least : 1));
    }
    return sum;
}

static uint64_t padding_of(const struct hw_struct_analysis *of)
{
    uint64_t end = 0, padding = 0; /* all below END is members or counted */
    for (size_t i = 0; i < of->units.count; i++) {
        const struct hw_unit *unit = &of->units.units[i];
        if (unit->offset > end)
            padding += unit->offset - end;
        if (unit->offset + unit->size > end)
            end = unit->offset + unit->size;
    }
    if (end && end < of->structure->size)
        padding += of->structure->size - end;
    return padding < of->structure->size ? padding : 0;
}

/* Lines per use if objects began at lines: single ones in aligned blocks, elements of an array rounded up to lines. Of
 * a split COLD is the other part and POINTER leads there. */
static double aligned_lines(struct hw_line_counter *counter, const struct hw_ground *ground,
                            const struct hw_visits *visits, const struct hw_layout *layout,
                            const struct hw_layout *cold, uint64_t pointer)
{
    struct hw_ground aligned = *ground;
    struct hw_layout rounded = *layout;
    aligned.counted = false;
    memset(aligned.share, 0, sizeof aligned.share);
    aligned.share[0] = 1;
    if (ground->placement == HW_PLACE_ARRAY)
        rounded.size = (layout->size + HW_LINE - 1) / HW_LINE * HW_LINE;
    return hw_lines_measure(counter, &aligned, visits, &rounded, cold, pointer, NULL).per_use;
}

/* Where it was not counted where in lines blocks begin: all may begin where it is best. */
static void find_least(struct hw_struct_analysis *of, struct hw_line_counter *counter, const struct hw_ground *ground,
                       const struct hw_layout *layout)
{
    unsigned places = 0;
    of->least_lines = of->lines.per_use;
    for (unsigned i = 0; i < 8; i++)
        places += ground->share[i] > 0;
    of->objects.starts_assumed = ground->placement == HW_PLACE_SINGLE && !ground->counted && places > 1;
    for (unsigned i = 0; of->objects.starts_assumed && i < 8; i++) {
        struct hw_ground one = *ground;
        if (!(ground->share[i] > 0))
            continue;
        memset(one.share, 0, sizeof one.share);
        one.share[i] = 1;
        const double lines = hw_lines_measure(counter, &one, &of->visits, layout, NULL, 0, NULL).per_use;
        of->least_lines = lines < of->least_lines ? lines : of->least_lines;
    }
}

/* ---- structs that begin alike ---- */

/* C's way to derive: structs that begin with the same members are used through a pointer to any of them. */
#define BEGIN_ALIKE 2  /* fields: of fewer it is chance */
#define NEIGHBOURS  64 /* that a struct is compared with */

static bool same_field(const struct hw_profile_field *a, const struct hw_profile_field *b)
{
    return a->offset == b->offset && a->size == b->size && a->bit_offset == b->bit_offset &&
           a->bit_size == b->bit_size && strcmp(a->name, b->name) == 0 && strcmp(a->type_name, b->type_name) == 0;
}

static uint32_t common_fields(const struct hw_profile_fields *fields, const struct hw_profile_struct *a,
                              const struct hw_profile_struct *b)
{
    const struct hw_profile_field *of_a = &fields->fields[a->first_field], *of_b = &fields->fields[b->first_field];
    uint32_t count = 0;
    while (count < a->field_count && count < b->field_count && same_field(&of_a[count], &of_b[count]))
        count++;
    return count;
}

static const char *field_name(const struct hw_profile_fields *fields, uint32_t structure, uint32_t field)
{
    const struct hw_profile_struct *of = &fields->structs[structure];
    return field < of->field_count ? fields->fields[of->first_field + field].name : "";
}

/* By name of the first fields, so that structs that begin alike are neighbours. */
static int compare_beginning(const void *left, const void *right, void *closure)
{
    const uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
    for (uint32_t i = 0; i < BEGIN_ALIKE; i++) {
        const int order = strcmp(field_name(closure, l, i), field_name(closure, r, i));
        if (order)
            return order;
    }
    return HW_ORDER(l, r);
}

/* By struct: how many fields it has in common with the beginning of another type. */
static uint32_t *common_beginnings(const struct hw_profile_fields *fields, struct hw_pool *pool)
{
    uint32_t *prefixes = hw_pool_take(pool, fields->struct_count, sizeof *prefixes);
    uint32_t *order = hw_pool_take(pool, fields->struct_count, sizeof *order);
    if (!prefixes || !order)
        return NULL;
    for (uint32_t i = 0; i < fields->struct_count; i++)
        order[i] = i;
    if (fields->struct_count)
        qsort_r(order, fields->struct_count, sizeof *order, compare_beginning, (void *)fields);
    for (size_t i = 0; i < fields->struct_count; i++)
        for (size_t k = i + 1; k < fields->struct_count && k < i + NEIGHBOURS; k++) {
            const struct hw_profile_struct *a = &fields->structs[order[i]], *b = &fields->structs[order[k]];
            const uint32_t common = strcmp(a->name, b->name) ? common_fields(fields, a, b) : 0;
            if (common < BEGIN_ALIKE)
                break;
            if (common > prefixes[order[i]])
                prefixes[order[i]] = common;
            if (common > prefixes[order[k]])
                prefixes[order[k]] = common;
        }
    return prefixes;
}

/* ---- one struct ---- */

static bool analyse(struct hw_struct_analysis *of, const struct hw_analysis_input *input,
                    struct hw_line_counter *counter, struct hw_pool *pool)
{
    const struct hw_profile_fields *fields = input->fields;
    const struct hw_profile_struct *structure = of->structure;
    const struct hw_profile_field *own = &fields->fields[structure->first_field];
    of->visits = hw_visits_of(fields, structure, &of->objects, pool);
    of->units.units = hw_pool_take(pool, structure->field_count, sizeof *of->units.units);
    struct hw_layout as_is = {.offsets = hw_pool_take(pool, structure->field_count, sizeof *as_is.offsets),
                              .size = structure->size};
    if (!of->units.units || !as_is.offsets)
        return false;
    hw_units_make(&of->units, structure, own, of->prefix);
    for (size_t i = 0; i < structure->field_count; i++)
        as_is.offsets[i] = own[i].offset < HW_LINES_LARGEST ? own[i].offset : UINT64_MAX; /* damaged: not counted */
    of->rfc_ratio = rfc_ratio(own, structure->field_count);
    of->padding = structure->flags & HW_STRUCT_UNION ? 0 : padding_of(of);
    hw_affinity_of(of, fields, pool);
    if (structure->size <= HW_LINES_LARGEST && structure->size) {
        const struct hw_ground ground = hw_ground_of(input, of);
        for (unsigned i = 0; ground.counted && i < 8; i++)
            if (ground.share[i] >= 0.9)
                of->objects.usual_start = 8 * i;
        double *lines = hw_pool_take(pool, of->visits.count, sizeof *lines);
        of->lines = hw_lines_measure(counter, &ground, &of->visits, &as_is, NULL, 0, lines);
        for (size_t i = 0; lines && i < of->visits.count; i++)
            of->visits.visits[i].lines = lines[i];
        find_least(of, counter, &ground, &as_is);
        of->aligned_lines = aligned_lines(counter, &ground, &of->visits, &as_is, NULL, 0);
        if (of->lines.per_use > 0)
            of->fragmentation = 1 - of->lines.bytes_needed / (of->lines.per_use * HW_LINE);
        if (of->fragmentation < 0)
            of->fragmentation = 0; /* members of a union at the same bytes */
    }
    return !pool->failed;
}

/* 0: brings lines in; 1: may do so, if there are enough of them; 2: does not. */
static int class_of(const struct hw_struct_analysis *of)
{
    if (!(of->lines.missed > 0))
        return 2;
    return of->objects.placement == HW_PLACE_UNKNOWN;
}

static int compare_cost(const void *left, const void *right)
{
    const struct hw_struct_analysis *a = left, *b = right;
    if (class_of(a) != class_of(b))
        return class_of(a) - class_of(b);
    if (a->lines.missed > b->lines.missed || b->lines.missed > a->lines.missed)
        return a->lines.missed > b->lines.missed ? -1 : 1;
    if (a->visits.executions > b->visits.executions || b->visits.executions > a->visits.executions)
        return a->visits.executions > b->visits.executions ? -1 : 1;
    return HW_ORDER(a->structure, b->structure);
}

static void suggest(struct hw_struct_analysis *of, const struct hw_analysis_input *input,
                    struct hw_line_counter *counter, struct hw_pool *pool)
{
    const struct hw_ground ground = hw_ground_of(input, of);
    struct hw_suggestion *suggestion = &of->suggestion;
    hw_suggest(of, input->fields, &ground, counter, SEARCH_STRUCT, pool);
    const struct hw_layout *cold = suggestion->kind == HW_SUGGEST_SPLIT ? &suggestion->cold : NULL;
    double *lines = hw_pool_take(pool, of->visits.count, sizeof *lines);
    if (suggestion->kind == HW_SUGGEST_NOTHING || !lines)
        return;
    suggestion->aligned_lines =
        aligned_lines(counter, &ground, &of->visits, &suggestion->hot, cold, suggestion->pointer);
    hw_lines_measure(counter, &ground, &of->visits, &suggestion->hot, cold, suggestion->pointer, lines);
    for (size_t i = 0; i < of->visits.count; i++)
        of->visits.visits[i].suggested_lines = lines[i];
}

static int compare_size(const void *left, const void *right)
{
    const struct hw_struct_analysis *a = *(struct hw_struct_analysis *const *)left,
                                    *b = *(struct hw_struct_analysis *const *)right;
    return HW_ORDER(a->structure->size, b->structure->size);
}

/* Two structs of one size: the type of blocks of that size is not known. */
static bool forget_rivals(struct hw_analysis *analysis, struct hw_pool *pool)
{
    struct hw_struct_analysis **of = hw_pool_take(pool, analysis->struct_count, sizeof *of);
    size_t count = 0;
    if (!of)
        return false;
    for (size_t i = 0; i < analysis->struct_count; i++)
        if (analysis->structs[i].objects.by_size)
            of[count++] = &analysis->structs[i];
    if (count)
        qsort(of, count, sizeof *of, compare_size);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && of[next]->structure->size == of[i]->structure->size;)
            next++;
        for (size_t k = i; k < next && next - i > 1; k++)
            of[k]->objects = (struct hw_objects){.placement = HW_PLACE_UNKNOWN};
    }
    return true;
}

bool hw_structs_analyse(struct hw_analysis *analysis, struct hw_pool *pool)
{
    const struct hw_profile_fields *fields = analysis->input.fields;
    if (!fields->struct_count)
        return true;
    struct hw_object_index index;
    struct hw_line_counter counter = {.seen = hw_pool_take(pool, HW_LINES_SEEN, sizeof *counter.seen)};
    analysis->structs = hw_pool_take(pool, fields->struct_count, sizeof *analysis->structs);
    uint32_t *prefixes = common_beginnings(fields, pool);
    if (!prefixes || !counter.seen || !analysis->structs || !hw_object_index_make(&index, &analysis->input, pool))
        return false;
    for (size_t i = 0; i < fields->struct_count; i++) {
        if (!fields->structs[i].reads && !fields->structs[i].writes)
            continue;
        struct hw_struct_analysis *of = &analysis->structs[analysis->struct_count++];
        of->structure = &fields->structs[i];
        of->prefix = prefixes[i];
        of->objects = hw_objects_of(&index, of->structure, pool);
    }
    if (!forget_rivals(analysis, pool))
        return false;
    for (size_t i = 0; i < analysis->struct_count; i++) {
        struct hw_struct_analysis *of = &analysis->structs[i];
        if (!analyse(of, &analysis->input, &counter, pool))
            return false;
    }
    if (analysis->struct_count)
        qsort(analysis->structs, analysis->struct_count, sizeof *analysis->structs, compare_cost);
    counter.work = 0;
    for (size_t i = 0; i < analysis->struct_count && counter.work < SEARCH_WORK; i++)
        suggest(&analysis->structs[i], &analysis->input, &counter, pool);
    return !pool->failed;
}

/* ---- findings ---- */

#define WORTH_SHARE  0.9   /* lines per use after / before */
#define WORTH_OF_ALL 0.005 /* lines saved / lines of all structs */
#define WORTH_LINES  10000 /* lines saved */
#define WORTH_SAMPLED  50 /* of sampled uses */
#define WORTH_BYTES  65536 /* memory saved */
#define WORTH_USES   1000  /* uses of a struct below which nothing is said of its unused fields */
#define UNUSED_SHARE 8     /* unused fields make up one part in so many at least */

struct struct_finder {
    struct hw_finder *finder;
    const struct hw_struct_analysis *of;
    size_t index;
    double all_missed; /* of all structs of which the number of objects is known, or of all when it is of none */
};

static struct hw_finding *add(struct struct_finder *finder, enum hw_finding_kind kind, double lines, double bytes)
{
    const struct hw_struct_analysis *of = finder->of;
    const double weight = finder->finder->analysis->input.field_weight;
    struct hw_finding *finding =
        hw_finding_add(finder->finder, kind, lines * HW_LINE * (weight > 0 ? weight : 1) + bytes);
    if (!finding)
        return NULL;
    finding->structure = finder->index;
    finding->may_lie_well =
        of->objects.starts_assumed && (kind == HW_FINDING_LAYOUT || kind == HW_FINDING_ASTRIDE) &&
        (kind == HW_FINDING_LAYOUT ? of->suggestion.lines.per_use : of->aligned_lines) > WORTH_SHARE * of->least_lines;
    finding->certain = of->objects.placement != HW_PLACE_UNKNOWN && !of->objects.by_size && !finding->may_lie_well;
    finding->contexts = of->objects.contexts;
    finding->context_count = of->objects.context_count;
    finding->blocks = of->objects.live;
    finding->block_bytes = of->structure->size;
    finding->lines = lines;
    finding->bytes = bytes;
    return finding;
}

static bool is_worth(const struct struct_finder *finder, double lines)
{
    const bool sampled = finder->finder->analysis->input.fields->sampled;
    return lines >= (sampled ? WORTH_SAMPLED : WORTH_LINES) && lines >= WORTH_OF_ALL * finder->all_missed;
}

/* Lines that LINES per use would save, of those that miss the cache. */
static double saved_lines(const struct hw_struct_analysis *of, double per_use)
{
    const double share = of->lines.per_use > 0 ? per_use / of->lines.per_use : 1;
    return share < 1 ? of->lines.missed * (1 - share) : 0;
}

/* True: the layout is a finding. */
static bool find_layout(struct struct_finder *finder)
{
    const struct hw_struct_analysis *of = finder->of;
    const struct hw_suggestion *suggestion = &of->suggestion;
    if (suggestion->kind == HW_SUGGEST_NOTHING)
        return false;
    const double lines = of->lines.missed - suggestion->lines.missed;
    const uint64_t size = suggestion->kind == HW_SUGGEST_REORDER ? suggestion->hot.size : of->structure->size;
    const double bytes = (double)(of->structure->size - size) * (double)of->objects.live;
    if (suggestion->lines.per_use <= WORTH_SHARE * of->lines.per_use && is_worth(finder, lines)) {
        struct hw_finding *finding = add(finder, HW_FINDING_LAYOUT, lines, bytes);
        if (finding)
            finding->lines_in_order = of->lines.missed_in_order - suggestion->lines.missed_in_order;
        return finding != NULL;
    }
    if (bytes >= WORTH_BYTES && size < of->structure->size)
        add(finder, HW_FINDING_PADDING, lines > 0 ? lines : 0, bytes);
    return false;
}

/* Objects that begin in the midst of a line: of no interest where they are walked through anyway. */
static void find_astride(struct struct_finder *finder)
{
    const struct hw_struct_analysis *of = finder->of;
    const double lines = saved_lines(of, of->aligned_lines);
    if (of->objects.placement != HW_PLACE_UNKNOWN && of->aligned_lines <= WORTH_SHARE * of->lines.per_use &&
        is_worth(finder, lines))
        add(finder, HW_FINDING_ASTRIDE, lines, 0);
}

/* Whether accesses to it would have been counted, as far as can be seen. Arrays are mostly used through their address:
 * strings by functions of libraries. */
static bool is_followed(const struct hw_profile_field *field)
{
    return !(field->flags & (HW_FIELD_ESCAPES | HW_FIELD_UNION | HW_FIELD_VPTR | HW_FIELD_FLEXIBLE | HW_FIELD_ARRAY));
}

/* Fields that are never accessed (WRITTEN: only written). */
/* Other code uses objects of the type: as bytes (a file, a socket), or blocks with them. */
static bool is_used_unseen(const struct struct_finder *finder)
{
    const struct hw_analysis_input *input = &finder->finder->analysis->input;
    const struct hw_objects *objects = &finder->of->objects;
    bool unseen = finder->of->structure->flags & HW_STRUCT_WHOLE;
    for (size_t i = 0; input->unseen && !unseen && i < objects->context_count; i++)
        unseen = input->unseen(input->closure, objects->contexts[i]);
    return unseen;
}

static void find_unused(struct struct_finder *finder, bool written)
{
    const struct hw_struct_analysis *of = finder->of;
    const struct hw_profile_struct *structure = of->structure;
    const struct hw_profile_field *fields = &of->units.fields[0];
    uint32_t *list = hw_pool_take(finder->finder->pool, structure->field_count, sizeof *list);
    uint64_t size = 0;
    size_t count = 0;
    if (!list || of->visits.executions < WORTH_USES || (structure->flags & HW_STRUCT_UNION) || is_used_unseen(finder))
        return;
    for (uint32_t i = of->prefix; i < structure->field_count; i++) {
        if (fields[i].reads || (fields[i].writes != 0) != written || !is_followed(&fields[i]) || fields[i].unseen ||
            fields[i].possible_reads || (!written && fields[i].possible_writes))
            continue;
        list[count++] = i;
        size += fields[i].flags & HW_FIELD_BITS ? 0 : fields[i].size;
    }
    if (!count || size * UNUSED_SHARE < structure->size || size > structure->size)
        return;
    const double bytes = (double)size * (double)of->objects.live;
    if (bytes < WORTH_BYTES)
        return;
    struct hw_finding *finding = add(finder, written ? HW_FINDING_UNREAD_FIELDS : HW_FINDING_UNUSED_FIELDS, 0, bytes);
    if (!finding)
        return;
    finding->fields = list;
    finding->field_count = count;
    for (size_t i = 0; i < count; i++)
        finding->writes = hw_add_saturating(finding->writes, fields[list[i]].writes);
}

void hw_struct_findings(struct hw_finder *finder)
{
    const struct hw_analysis *analysis = finder->analysis;
    struct struct_finder structs = {.finder = finder};
    for (size_t i = 0; i < analysis->struct_count; i++)
        if (analysis->structs[i].objects.placement != HW_PLACE_UNKNOWN)
            structs.all_missed += analysis->structs[i].lines.missed;
    for (size_t i = 0; i < analysis->struct_count && !finder->pool->failed; i++) {
        structs.of = &analysis->structs[i];
        structs.index = i;
        if (!find_layout(&structs)) /* which says what alignment adds to it */
            find_astride(&structs);
        if (analysis->input.fields->sampled) /* others may be accessed, too */
            continue;
        find_unused(&structs, false);
        find_unused(&structs, true);
    }
}
