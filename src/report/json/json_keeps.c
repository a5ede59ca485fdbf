/* json_keeps.c - "keeps" of the JSON report: who keeps the blocks that the program can reach. */
#include "report/json/json.h"

#include <stdlib.h>

#include "report/view/keeps.h"

static json_t *search_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_keep_info *info = profile->keep_search;
    json_t *object = json_object();
    set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(profile, info->tick));
    set_count(writer, object, "duration_ns", info->duration_ns);
    set_count(writer, object, "memory_bytes", info->memory_bytes);
    set_count(writer, object, "blocks", info->blocks);
    set_count(writer, object, "bytes", info->bytes);
    set_count(writer, object, "left_out_blocks", info->lost_blocks);
    set_count(writer, object, "left_out_bytes", info->lost_bytes);
    set_count(writer, object, "left_out_pointers", info->lost_pointers);
    set_count(writer, object, "variables_together", info->folded_variables);
    return object;
}

static json_t *keeper_value(struct json_writer *writer, uint32_t index, struct hw_buffer *name)
{
    const struct hw_view *view = writer->view;
    const struct hw_view_keeper *keeper = &view->keeps->keepers[index];
    json_t *object = json_object();
    hw_buffer_clear(name);
    hw_keeper_name(view, index, name);
    set_count(writer, object, "id", index);
    set_known(writer, object, "parent", keeper->parent != 0, keeper->parent);
    set_text(writer, object, "kind", hw_keeper_key(keeper->kind));
    set_text(writer, object, "name", hw_buffer_text(name));
    set_text(writer, object, "module", keeper->module == HW_NONE ? NULL : view->modules[keeper->module].path);
    set_text(writer, object, "variable", keeper->symbol);
    set_known(writer, object, "offset", keeper->module != HW_NONE, keeper->offset);
    set_text(writer, object, "type", keeper->type);
    set_text(writer, object, "thread", *keeper->thread ? keeper->thread : NULL);
    set_nonzero(writer, object, "tid", keeper->tid);
    set_count(writer, object, "pointers", keeper->pointers);
    set_count(writer, object, "blocks", keeper->blocks);
    set_count(writer, object, "bytes", keeper->bytes);
    set_count(writer, object, "retained_blocks", keeper->retained_blocks);
    set_count(writer, object, "retained_bytes", keeper->retained_bytes);
    return object;
}

static json_t *context_value(const struct hw_view *view, uint32_t context)
{
    return context == HW_NONE ? json_null() : json_integer((json_int_t)view->contexts[context].sum.id);
}

static json_t *kept_value(struct json_writer *writer, const struct hw_view_kept *kept, size_t index)
{
    json_t *object = json_object();
    set_count(writer, object, "id", index);
    set(writer, object, "context", context_value(writer->view, kept->context));
    set_count(writer, object, "keeper", kept->keeper);
    set_count(writer, object, "blocks", kept->blocks);
    set_count(writer, object, "bytes", kept->bytes);
    set_count(writer, object, "retained_blocks", kept->retained_blocks);
    set_count(writer, object, "retained_bytes", kept->retained_bytes);
    set_known(writer, object, "dominator", kept->dominator != HW_NONE, kept->dominator);
    set_known(writer, object, "way", kept->way != HW_NONE, kept->way);
    set_known(writer, object, "distance", kept->way != HW_NONE, kept->distance);
    return object;
}

static json_t *edge_value(struct json_writer *writer, const struct hw_keep_edge *edge)
{
    const bool keeper = edge->flags & HW_KEEP_FROM_KEEPER;
    json_t *object = json_object();
    set_known(writer, object, "from_keeper", keeper, edge->from);
    set_known(writer, object, "from", !keeper, edge->from);
    set_count(writer, object, "to", edge->to);
    set_known(writer, object, "offset", !keeper, edge->offset);
    set_count(writer, object, "pointers", edge->pointers);
    set_count(writer, object, "blocks", edge->blocks);
    set_count(writer, object, "bytes", edge->bytes);
    set(writer, object, "momentary", json_boolean(edge->flags & HW_KEEP_MOMENTARY));
    return object;
}

json_t *hw_json_keeps(struct json_writer *writer)
{
    const struct hw_view_keeps *keeps = writer->view->keeps;
    struct hw_buffer name = {0};
    size_t count;
    if (!keeps)
        return json_null();
    json_t *object = json_object(), *keepers = json_array(), *kept = json_array(), *edges = json_array(),
           *places = json_array();
    set(writer, object, "search", search_value(writer));
    for (uint32_t i = 1; i < keeps->keeper_count; i++)
        if (keeps->keepers[i].kind != HW_KEEPER_NONE)
            append(writer, keepers, keeper_value(writer, i, &name));
    set(writer, object, "keepers", keepers);
    struct hw_keeps_place *place = hw_keeps_places(keeps, &count);
    writer->failed |= !place || name.failed;
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        set(writer, row, "context", context_value(writer->view, place[i].context));
        set_count(writer, row, "blocks", place[i].blocks);
        set_count(writer, row, "bytes", place[i].bytes);
        set_count(writer, row, "retained_blocks", place[i].retained_blocks);
        set_count(writer, row, "retained_bytes", place[i].retained_bytes);
        append(writer, places, row);
    }
    set(writer, object, "places", places);
    for (size_t i = 0; i < keeps->kept_count; i++)
        append(writer, kept, kept_value(writer, &keeps->kept[i], i));
    set(writer, object, "kept", kept);
    for (size_t i = 0; i < keeps->edge_count; i++)
        append(writer, edges, edge_value(writer, &keeps->edges[i]));
    set(writer, object, "edges", edges);
    free(place);
    hw_buffer_free(&name);
    return object;
}
