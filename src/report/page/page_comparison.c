/* page_comparison.c - what heapwise diff says of two profiles, for the page: see page_data.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page_data.h"
#include "report/page/page_stream.h"

static const char *const side_names[HW_SIDES] = {[HW_OLD] = "old", [HW_NEW] = "new"};

static json_int_t limited(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

/* {"usual": KEY, "measures": [{"key", "title", "unit", "old", "new"} …]}: those that both profiles have. */
static void add_measures(struct hw_page_stream *stream, const struct hw_diff *diff)
{
    json_t *list = json_array();
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        const struct hw_measure *measure = &hw_measures[id];
        if (!hw_diff_unknown(diff, id))
            stream->failed |=
                json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:I,s:I}", "key", measure->key, "title",
                                                      measure->title, "unit", hw_measure_unit_name(measure->unit),
                                                      "old", limited(diff->total[HW_OLD][id]), "new",
                                                      limited(diff->total[HW_NEW][id]))) != 0;
    }
    json_t *object = json_pack("{s:s,s:o}", "usual", hw_measures[hw_diff_usual(diff)].key, "measures", list);
    hw_buffer_json(&stream->part, object, JSON_COMPACT);
    hw_page_part(stream, "comparison", HW_PART_TEXT);
    json_decref(object);
}

static void add_notes(struct hw_page_stream *stream, const struct hw_diff *diff)
{
    struct hw_buffer notes = {0};
    hw_diff_notes(diff, &notes);
    for (char *at = notes.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        hw_page_number(stream, hw_page_string(stream, at));
    }
    stream->failed |= notes.failed;
    hw_buffer_free(&notes);
    hw_page_part(stream, "note.text", HW_PART_NUMBERS);
}

static void end_column(struct hw_page_stream *stream, const char *table, enum hw_diff_side side, const char *column,
                       enum hw_page_part kind)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s%s%s", table, side_names[side], *column ? "_" : "", column);
    hw_page_part(stream, name, kind);
}

static void add_places(struct hw_page_stream *stream, const struct hw_diff *diff, enum hw_diff_side side)
{
    for (size_t i = 0; i < diff->count; i++) {
        const uint32_t context = diff->places[i].context[side];
        hw_page_step(stream, context == HW_NONE ? 0 : (uint64_t)context + 1);
    }
    end_column(stream, "place", side, "context", HW_PART_STEPS); /* from 1 on; 0: it is not there */
    for (size_t i = 0; i < diff->count; i++)
        hw_page_number(stream, diff->places[i].contexts[side]);
    end_column(stream, "place", side, "contexts", HW_PART_NUMBERS);
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        if (hw_diff_unknown(diff, id))
            continue;
        for (size_t i = 0; i < diff->count; i++)
            hw_page_number(stream, diff->places[i].value[side][id]);
        end_column(stream, "value", side, hw_measures[id].key, HW_PART_NUMBERS);
    }
}

/* The stacks as they are matched: names, the tree of paths, the path of every context. */
static void add_paths(struct hw_page_stream *stream, const struct hw_diff *diff)
{
    for (uint32_t i = 0; i <= diff->names.count; i++) {
        const char *text = hw_interned(&diff->names, i);
        hw_page_number(stream, hw_page_string(stream, *text == '\001' ? text + 1 : text));
    }
    hw_page_part(stream, "name.text", HW_PART_NUMBERS);
    for (uint32_t i = 0; i <= diff->names.count; i++)
        hw_page_number(stream, diff->name_kind[i]);
    hw_page_part(stream, "name.kind", HW_PART_NUMBERS);
    for (size_t i = 0; i < diff->path_count; i++)
        hw_page_number(stream, i - diff->paths[i].parent);
    hw_page_part(stream, "path.above", HW_PART_NUMBERS);
    for (size_t i = 0; i < diff->path_count; i++)
        hw_page_step(stream, diff->paths[i].name);
    hw_page_part(stream, "path.name", HW_PART_STEPS);
    for (int side = 0; side < HW_SIDES; side++) {
        for (size_t i = 0; i < diff->view[side]->context_count; i++)
            hw_page_step(stream, diff->path_of[side][i]);
        end_column(stream, "path", side, "leaf", HW_PART_STEPS);
    }
}

unsigned char *hw_page_comparison(const struct hw_diff *diff, size_t *size, struct hw_error *error)
{
    struct hw_page_stream stream;
    const bool fine = hw_page_stream_begin(&stream);
    hw_error_set(error, "not enough memory for the page");
    if (fine) {
        add_measures(&stream, diff);
        add_notes(&stream, diff);
        for (int side = 0; side < HW_SIDES; side++)
            add_places(&stream, diff, side);
        add_paths(&stream, diff);
    }
    return hw_page_stream_end(&stream, fine, size);
}
