/* json_groups.c - the member "groups" of the JSON report: sums instead of places. */
#include "report/json/json.h"
#include "report/view/groups.h"

static void set_function(struct json_writer *writer, json_t *object, const char *key, const struct hw_frame *symbol,
                         const struct hw_view_location *location)
{
    const struct hw_view *view = writer->view;
    set_text(writer, object, key, symbol ? symbol->function : NULL);
    set_text(writer, object, "module",
             location && location->module != HW_NONE ? known(view->modules[location->module].path) : NULL);
    if (symbol && !symbol->function)
        set_count(writer, object, "offset", location->address);
}

json_t *hw_json_group(struct json_writer *writer, enum hw_by by, const struct hw_group *group)
{
    const struct hw_view_location *location =
        group->location == HW_NONE ? NULL : &writer->view->locations[group->location];
    const struct hw_frame *symbol = location ? &location->frames.frame[group->frame] : NULL;
    json_t *object = json_object();
    switch (by) {
    case HW_BY_FILE:
    case HW_BY_LINE:
        set_text(writer, object, "file", symbol->file);
        if (by == HW_BY_LINE)
            set_known(writer, object, "line", symbol->file && symbol->line, symbol->line);
        if (symbol->file)
            break;
        /* fall through */
    case HW_BY_MODULE:
        set_text(writer, object, "module",
                 location->module == HW_NONE ? NULL : known(writer->view->modules[location->module].path));
        break;
    case HW_BY_TYPE:
        set_text(writer, object, "type", group->name);
        break;
    case HW_BY_THREAD:
        set(writer, object, "main", json_boolean(group->main));
        set_function(writer, object, "function", symbol, location);
        break;
    case HW_BY_SIZE:
        set_known(writer, object, "size_above", group->size_most, group->size_most > 16 ? group->size_most / 2 : 0);
        set_known(writer, object, "size_most", group->size_most, group->size_most);
        break;
    default:
        set_function(writer, object, "function", symbol, location);
    }
    if (hw_by_keys[by].of_frames)
        set_count(writer, object, "self", group->self);
    set_count(writer, object, "total", group->total);
    return object;
}

void hw_json_groups(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_sums *sums = &writer->options->sums;
    const enum hw_measure_id measure = sums->chosen ? sums->measure : hw_measure_usual(view);
    const char *unknown = hw_measure_unknown(view, measure);
    json_t *object = json_object(), *rows = unknown ? json_null() : json_array();
    struct hw_groups groups = {0};
    set_text(writer, object, "by", hw_by_keys[sums->by].key);
    set_text(writer, object, "value", hw_measures[measure].key);
    set_text(writer, object, "unit", hw_measure_unit_name(hw_measures[measure].unit));
    set_text(writer, object, "unknown", unknown);
    set_known(writer, object, "whole", !unknown, hw_measure_whole(view, measure));
    if (!unknown && !hw_groups_make(&groups, view, sums->by, measure, writer->options->full))
        writer->failed = true;
    const size_t top = writer->options->top;
    for (size_t i = 0; i < groups.count && (!top || i < top) && !writer->failed; i++)
        append(writer, rows, hw_json_group(writer, sums->by, &groups.group[i]));
    set_known(writer, object, "without_stack", !unknown, groups.none);
    set(writer, object, "rows", rows);
    hw_groups_free(&groups);
    print_key(writer, "groups");
    print_value(writer, object);
}
