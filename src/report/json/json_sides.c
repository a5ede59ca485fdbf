/* json_sides.c - who uses lines that threads share, in the JSON report. What samples say is under "sampled". */
#include "report/json/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define CODE_MOST 10

static json_t *started_by(struct json_writer *writer, uint32_t leaf)
{
    const struct hw_view *view = writer->view;
    json_t *array = json_array();
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const struct hw_view_location *location = &view->locations[view->nodes[node].location];
        for (uint32_t i = 0; i < location->frames.count; i++)
            append(writer, array, hw_json_frame(writer, location, i));
    }
    return array;
}

static json_t *thread_value(struct json_writer *writer, uint32_t number)
{
    const struct hw_view_role *role = &writer->view->roles[number];
    json_t *object = json_object();
    set_text(writer, object, "kind",
             number == HW_ROLE_UNKNOWN ? "unknown"
             : number == HW_ROLE_MAIN  ? "main"
                                       : "started");
    set(writer, object, "threads",
        number == HW_ROLE_UNKNOWN ? json_null() : json_integer((json_int_t)clamped(role->threads)));
    set(writer, object, "routine",
        role->routine == HW_NONE ? json_null() : hw_json_frame(writer, &writer->view->locations[role->routine], 0));
    set(writer, object, "started_by", role->leaf ? started_by(writer, role->leaf) : json_null());
    return object;
}

/* A copy of the entries in which what does not matter is the same, added up. NULL when there is no memory. */
static struct hw_side *joined(struct json_writer *writer, const struct hw_view_side *side, bool by_code, size_t *count)
{
    struct hw_side *copy = malloc((side->count + 1) * sizeof *copy);
    *count = 0;
    if (!copy) {
        writer->failed = true;
        return NULL;
    }
    memcpy(copy, side->entries, side->count * sizeof *copy);
    for (size_t i = 0; i < side->count; i++) {
        copy[i].map = by_code ? copy[i].map : HW_NONE;
        copy[i].offset = by_code ? 0 : copy[i].offset;
        copy[i].bytes = by_code ? 0 : copy[i].bytes;
    }
    *count = hw_sides_join(copy, side->count);
    return copy;
}

static void set_uses(struct json_writer *writer, json_t *object, const struct hw_side *side)
{
    set_count(writer, object, "reads", side->reads);
    set_count(writer, object, "writes", side->writes);
}

static json_t *bytes_value(struct json_writer *writer, const struct hw_view_side *side)
{
    size_t count;
    struct hw_side *rows = joined(writer, side, false, &count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        set_count(writer, object, "first", rows[i].offset);
        set_count(writer, object, "end", hw_add_saturating(rows[i].offset, rows[i].bytes));
        set_uses(writer, object, &rows[i]);
        append(writer, array, object);
    }
    free(rows);
    return array;
}

static int compare_uses(const void *left, const void *right)
{
    const struct hw_side *a = left, *b = right;
    const uint64_t x = hw_add_saturating(a->reads, a->writes), y = hw_add_saturating(b->reads, b->writes);
    return HW_ORDER(y, x) ?: HW_ORDER(a->map, b->map);
}

static json_t *code_value(struct json_writer *writer, const struct hw_view_side *side)
{
    size_t count;
    struct hw_side *rows = joined(writer, side, true, &count);
    json_t *array = json_array();
    if (rows)
        qsort(rows, count, sizeof *rows, compare_uses);
    for (size_t i = 0; i < count && i < CODE_MOST; i++) {
        json_t *object = hw_json_frame(writer, &writer->view->locations[rows[i].map], 0);
        set_uses(writer, object, &rows[i]);
        append(writer, array, object);
    }
    free(rows);
    return array;
}

static json_t *side_value(struct json_writer *writer, const struct hw_view_side *side)
{
    static const char *const sharing[] = {
        [HW_SHARING_FALSE] = "false", [HW_SHARING_TRUE] = "true", [HW_SHARING_UNTOLD] = "unknown"};
    const bool sampled = side->entries->kind == HW_SIDE_SAMPLED;
    json_t *object = json_object(), *counts = sampled ? json_object() : object;
    set_text(writer, object, "sharing", sharing[side->entries->sharing]);
    set_text(writer, object, "observed",
             sampled                                            ? "sampled"
             : hw_profile_counts_periods(writer->view->profile) ? "periods"
                                                                : "counted");
    set(writer, object, "thread", thread_value(writer, side->entries->role));
    set_count(writer, counts, "reads", side->reads);
    set_count(writer, counts, "writes", side->writes);
    set(writer, counts, "bytes", bytes_value(writer, side));
    if (sampled) {
        set(writer, counts, "code", code_value(writer, side));
        set(writer, object, "sampled", counts);
    }
    return object;
}

json_t *hw_json_sides(struct json_writer *writer, size_t context, enum hw_side_sharing sharing)
{
    struct hw_view_side sides[HW_VIEW_SIDES];
    const size_t count = hw_view_sides(writer->view, context, sharing, sides, HW_VIEW_SIDES);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        append(writer, array, side_value(writer, &sides[i]));
    return array;
}
