/* visits.c - groups of accesses -> uses of objects.
 *
 * Groups of one object in one function are one visit: the one that is executed less often happens in some of the
 * executions of the other. (With executions 100 and 80 there are 80 visits of both and 20 of the first alone. That is
 * what a test, or an early way out of a loop, looks like.) A group of which the object is not known is a visit of its
 * own. */
#include "analysis/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define ACCESS_BYTES 8                 /* of an array that one access touches, at most */
#define DEEPEST      32                /* groups of one object that are put into one another */
#define MOST_TOUCHES ((size_t)1 << 23) /* of one struct: real ones have thousands */

struct maker {
    const struct hw_profile_fields *fields;
    const struct hw_profile_struct *structure;
    struct hw_pool *pool;
    struct hw_visits *visits;
    size_t capacity, touch_count, touch_capacity;
    uint32_t *bytes; /* by field: touched in the current visit */
};

/* ---- one visit ---- */

static uint32_t touched_bytes(const struct hw_profile_field *field, const struct hw_profile_group_member *member)
{
    uint64_t bytes = field->size;
    const uint64_t accesses = (uint64_t)member->reads + member->writes;
    if (field->flags & (HW_FIELD_ARRAY | HW_FIELD_FLEXIBLE)) {
        const uint64_t most = (accesses ? accesses : 1) * ACCESS_BYTES;
        if (bytes > most || (field->flags & HW_FIELD_FLEXIBLE))
            bytes = most;
    }
    return bytes > HW_LINES_LARGEST ? HW_LINES_LARGEST : (uint32_t)bytes;
}

static void touch_group(struct maker *maker, const struct hw_profile_field_group *group)
{
    const struct hw_profile_struct *structure = maker->structure;
    for (size_t i = 0; i < group->member_count; i++) {
        const struct hw_profile_group_member *member = &maker->fields->members[group->first_member + i];
        const bool whole = member->field == HW_NONE;
        const size_t first = whole ? 0 : member->field - structure->first_field;
        for (size_t field = first; field < first + (whole ? structure->field_count : 1); field++) {
            const struct hw_profile_field *of = &maker->fields->fields[structure->first_field + field];
            uint32_t bytes = touched_bytes(of, member);
            if (whole)
                bytes = of->size > HW_LINES_LARGEST ? HW_LINES_LARGEST : (uint32_t)of->size;
            if (bytes > maker->bytes[field])
                maker->bytes[field] = bytes;
        }
    }
}

static bool room_for_touches(struct maker *maker, size_t count)
{
    if (maker->touch_count + count <= maker->touch_capacity)
        return true;
    const size_t capacity = 2 * (maker->touch_count + count);
    if (capacity > MOST_TOUCHES)
        return false;
    struct hw_touch *touches = hw_pool_take(maker->pool, capacity, sizeof *touches);
    if (!touches)
        return false;
    if (maker->touch_count)
        memcpy(touches, maker->visits->touches, maker->touch_count * sizeof *touches);
    maker->visits->touches = touches;
    maker->touch_capacity = capacity;
    return true;
}

/* Adds a visit of what maker->bytes says. */
static void add_visit(struct maker *maker, double executions)
{
    const struct hw_profile_struct *structure = maker->structure;
    struct hw_visits *visits = maker->visits;
    if (executions <= 0 || visits->count == maker->capacity || !room_for_touches(maker, structure->field_count))
        return;
    struct hw_visit visit = {.executions = executions, .first_touch = maker->touch_count};
    uint64_t covered = 0; /* bytes of a bit-field or a union count once */
    for (uint32_t i = 0; i < structure->field_count; i++) {
        if (!maker->bytes[i])
            continue;
        visits->touches[maker->touch_count++] = (struct hw_touch){i, maker->bytes[i]};
        const uint64_t start = maker->fields->fields[structure->first_field + i].offset, end = start + maker->bytes[i];
        if (end > covered)
            visit.bytes += end - (start > covered ? start : covered);
        covered = end > covered ? end : covered;
        visit.touch_count++;
    }
    if (visit.touch_count)
        visits->visits[visits->count++] = visit;
}

static void forget(struct maker *maker)
{
    memset(maker->bytes, 0, maker->structure->field_count * sizeof *maker->bytes);
}

/* ---- groups of one object ---- */

static int compare_object(const void *left, const void *right)
{
    const struct hw_profile_field_group *a = *(const struct hw_profile_field_group *const *)left;
    const struct hw_profile_field_group *b = *(const struct hw_profile_field_group *const *)right;
    return HW_ORDER(a->object, b->object) ?: HW_ORDER(b->executions, a->executions) ?: HW_ORDER(a, b);
}

static bool same_object(const struct hw_profile_field_group *a, const struct hw_profile_field_group *b)
{
    return a->object && a->object == b->object;
}

/* GROUPS are of one object, most executions first. */
static void add_object(struct maker *maker, const struct hw_profile_field_group *const *groups, size_t count)
{
    forget(maker);
    for (size_t i = 0; i < count; i++) {
        const uint64_t next = i + 1 < count ? groups[i + 1]->executions : 0;
        touch_group(maker, groups[i]);
        add_visit(maker, (double)(groups[i]->executions - next));
    }
}

/* Accesses that are in no group: of code that counts fields one by one. */
static void add_ungrouped(struct maker *maker)
{
    const struct hw_profile_struct *structure = maker->structure;
    uint64_t *grouped = hw_pool_take(maker->pool, structure->field_count, sizeof *grouped);
    if (!grouped)
        return;
    for (size_t g = 0; g < structure->group_count; g++) {
        const struct hw_profile_field_group *group = &maker->fields->groups[structure->first_group + g];
        for (size_t i = 0; i < group->member_count; i++) {
            const struct hw_profile_group_member *member = &maker->fields->members[group->first_member + i];
            const bool whole = member->field == HW_NONE;
            const size_t first = whole ? 0 : member->field - structure->first_field;
            uint64_t times;
            if (__builtin_mul_overflow(group->executions, (uint64_t)member->reads + member->writes, &times))
                times = UINT64_MAX;
            for (size_t field = first; field < first + (whole ? structure->field_count : 1); field++)
                grouped[field] = hw_add_saturating(grouped[field], times);
        }
    }
    for (size_t i = 0; i < structure->field_count; i++) {
        const struct hw_profile_field *field = &maker->fields->fields[structure->first_field + i];
        const uint64_t all = hw_add_saturating(field->reads, field->writes);
        if (all <= grouped[i])
            continue;
        forget(maker);
        maker->bytes[i] = touched_bytes(field, &(struct hw_profile_group_member){.reads = 1});
        add_visit(maker, (double)(all - grouped[i]));
    }
}

/* ---- all visits ---- */

static int compare_touches(const void *left, const void *right, void *closure)
{
    const struct hw_visits *visits = closure;
    const struct hw_visit *a = left, *b = right;
    return HW_ORDER(a->touch_count, b->touch_count)
               ?: memcmp(&visits->touches[a->first_touch], &visits->touches[b->first_touch],
                         a->touch_count * sizeof *visits->touches);
}

static int compare_executions(const void *left, const void *right)
{
    const struct hw_visit *a = left, *b = right;
    return HW_ORDER(b->executions, a->executions) ?: HW_ORDER(a->first_touch, b->first_touch);
}

/* Visits that touch the same become one. Visits are a walk over an array if each of its functions alone visits as many
 * objects as the array has. */
static void join_equal(struct hw_visits *visits)
{
    size_t count = 0;
    if (!visits->count)
        return;
    qsort_r(visits->visits, visits->count, sizeof *visits->visits, compare_touches, visits);
    for (size_t i = 0; i < visits->count; i++) {
        if (count && compare_touches(&visits->visits[count - 1], &visits->visits[i], visits) == 0 &&
            visits->visits[count - 1].walk == visits->visits[i].walk)
            visits->visits[count - 1].executions += visits->visits[i].executions;
        else
            visits->visits[count++] = visits->visits[i];
    }
    visits->count = count;
    qsort(visits->visits, visits->count, sizeof *visits->visits, compare_executions);
}

struct hw_visits hw_visits_of(const struct hw_profile_fields *fields, const struct hw_profile_struct *structure,
                              const struct hw_objects *objects, struct hw_pool *pool)
{
    struct hw_visits visits = {0};
    struct maker maker = {.fields = fields,
                          .structure = structure,
                          .pool = pool,
                          .visits = &visits,
                          .capacity = structure->group_count + structure->field_count};
    const struct hw_profile_field_group **order = hw_pool_take(pool, structure->group_count, sizeof *order);
    visits.visits = hw_pool_take(pool, maker.capacity, sizeof *visits.visits);
    maker.bytes = hw_pool_take(pool, structure->field_count, sizeof *maker.bytes);
    if (!order || !visits.visits || !maker.bytes)
        return visits;
    size_t count = 0; /* of its own: the others are uses of objects that this one is part of */
    for (size_t i = 0; i < structure->group_count; i++)
        if (!fields->groups[structure->first_group + i].inherited)
            order[count++] = &fields->groups[structure->first_group + i];
    qsort(order, count, sizeof *order, compare_object);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && next - i < DEEPEST && same_object(order[i], order[next]);)
            next++;
        add_object(&maker, order + i, next - i);
    }
    add_ungrouped(&maker);
    for (size_t i = 0; i < visits.count; i++)
        visits.visits[i].walk =
            objects->placement == HW_PLACE_ARRAY && visits.visits[i].executions >= (double)objects->live;
    join_equal(&visits);
    for (size_t i = 0; i < visits.count; i++) {
        visits.executions += visits.visits[i].executions;
        visits.bytes += visits.visits[i].executions * (double)visits.visits[i].bytes;
    }
    return visits;
}

/* ---- affinity ---- */

#define AFFINITY_FIELDS 64  /* the hottest, if there are more */
#define AFFINITY_PAIRS  256 /* likewise */

static int compare_affinity(const void *left, const void *right)
{
    const struct hw_affinity *a = left, *b = right;
    return HW_ORDER(b->together, a->together) ?: HW_ORDER(b->weight, a->weight) ?: HW_ORDER(a->a, b->a) ?:
           HW_ORDER(a->b, b->b);
}

struct hot {
    uint64_t accesses;
    uint32_t field;
};

static int compare_hot(const void *left, const void *right)
{
    const struct hot *a = left, *b = right;
    return HW_ORDER(b->accesses, a->accesses) ?: HW_ORDER(a->field, b->field);
}

void hw_affinity_of(struct hw_struct_analysis *of, const struct hw_profile_fields *fields, struct hw_pool *pool)
{
    const struct hw_profile_struct *structure = of->structure;
    const size_t all = structure->field_count, side = all < AFFINITY_FIELDS ? all : AFFINITY_FIELDS;
    struct hot *hot = hw_pool_take(pool, all, sizeof *hot);
    uint32_t *place = hw_pool_take(pool, all, sizeof *place); /* by field: 1 + its place among the hottest */
    double *together = hw_pool_take(pool, side * side, sizeof *together);
    uint64_t *weight = hw_pool_take(pool, side * side, sizeof *weight);
    if (!hot || !place || !together || !weight)
        return;
    for (uint32_t i = 0; i < all; i++) {
        const struct hw_profile_field *field = &fields->fields[structure->first_field + i];
        hot[i] = (struct hot){hw_add_saturating(field->reads, field->writes), i};
    }
    qsort(hot, all, sizeof *hot, compare_hot);
    for (uint32_t i = 0; i < side; i++)
        place[hot[i].field] = i + 1;
    for (size_t v = 0; v < of->visits.count; v++) {
        const struct hw_visit *visit = &of->visits.visits[v];
        const struct hw_touch *touches = &of->visits.touches[visit->first_touch];
        for (size_t a = 0; a < visit->touch_count; a++)
            for (size_t b = a + 1; b < visit->touch_count && place[touches[a].field]; b++)
                if (place[touches[b].field])
                    together[(place[touches[a].field] - 1) * side + place[touches[b].field] - 1] += visit->executions;
    }
    for (size_t i = 0; i < structure->window_count; i++) {
        const struct hw_profile_field_window *window = &fields->windows[structure->first_window + i];
        const uint32_t a = place[window->field_a - structure->first_field],
                       b = place[window->field_b - structure->first_field];
        if (a && b)
            weight[(a - 1) * side + b - 1] = window->weight;
    }
    of->affinity = hw_pool_take(pool, side * side, sizeof *of->affinity);
    for (size_t i = 0; of->affinity && i < side * side; i++) {
        const uint32_t a = hot[i / side].field, b = hot[i % side].field;
        if (together[i] > 0 || weight[i])
            of->affinity[of->affinity_count++] = (struct hw_affinity){a, b, hw_count_of(together[i]), weight[i]};
    }
    if (of->affinity_count)
        qsort(of->affinity, of->affinity_count, sizeof *of->affinity, compare_affinity);
    of->affinity_cut = of->affinity_count > AFFINITY_PAIRS || all > side;
    if (of->affinity_count > AFFINITY_PAIRS)
        of->affinity_count = AFFINITY_PAIRS;
}
