/* export_speedscope.c - JSON for speedscope (www.speedscope.app/file-format-schema.json): frames, and for each measure
 * a "sampled" profile, whose samples are stacks of frames, root first, and whose weights are the values. */
#include "report/export/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/text/human.h"

/* Integers beyond are no exact numbers in JavaScript. */
#define MOST_EXACT ((uint64_t)1 << 53)

/* By location: the number of its first frame. */
static uint32_t *add_frames(struct hw_buffer *out, const struct hw_view *view)
{
    uint32_t *first = calloc(view->location_count + 1, sizeof *first), next = 0;
    bool *used = first ? hw_export_used(view) : NULL;
    struct hw_buffer name = {0};
    for (size_t i = 0; used && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        if (!used[i])
            continue;
        first[i] = next;
        for (uint32_t k = 0; k < location->frames.count; k++, next++) {
            const struct hw_frame *symbol = &location->frames.frame[k];
            hw_buffer_clear(&name);
            hw_export_function(&name, view, location, k, HW_CLEAN_JSON);
            hw_buffer_add(out, next ? ",\n{\"name\":" : "\n{\"name\":");
            hw_export_json(out, hw_buffer_text(&name));
            if (symbol->file) {
                hw_buffer_add(out, ",\"file\":");
                hw_export_json(out, symbol->file);
            }
            if (symbol->line)
                hw_buffer_add(out, ",\"line\":%" PRIu32, symbol->line);
            if (symbol->column)
                hw_buffer_add(out, ",\"col\":%" PRIu32, symbol->column);
            hw_buffer_add(out, "}");
        }
    }
    hw_buffer_add(out, next ? ",\n{\"name\":\"[stack not known]\"}" : "\n{\"name\":\"[stack not known]\"}");
    if (first)
        first[view->location_count] = next;
    out->failed |= name.failed || !used;
    hw_buffer_free(&name);
    free(used);
    return first;
}

static void add_sample(struct hw_buffer *out, const struct hw_view *view, const uint32_t *first, uint32_t leaf,
                       uint32_t *path)
{
    size_t depth = 0;
    bool begun = false;
    for (uint32_t node = leaf; node; node = view->nodes[node].parent)
        path[depth++] = view->nodes[node].location;
    if (!depth)
        hw_buffer_add(out, "[%" PRIu32, first[view->location_count]);
    for (size_t i = depth; i-- > 0;)
        for (uint32_t k = view->locations[path[i]].frames.count; k-- > 0;) {
            hw_buffer_bytes(out, begun ? "," : "[", 1);
            hw_buffer_number(out, first[path[i]] + k);
            begun = true;
        }
    hw_buffer_add(out, "]");
}

static uint64_t exact(uint64_t value)
{
    return value < MOST_EXACT ? value : MOST_EXACT;
}

static void add_profile(struct hw_buffer *out, const struct hw_view *view, enum hw_measure_id id, const uint32_t *first,
                        uint32_t *path)
{
    static const char *const units[] = {
        [HW_UNIT_BYTES] = "bytes", [HW_UNIT_COUNT] = "none", [HW_UNIT_NS] = "nanoseconds"};
    hw_buffer_add(out, "{\"type\":\"sampled\",\"name\":\"%s%s\",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64,
                  hw_measures[id].title, hw_view_sampled(view) ? " (estimated)" : "", units[hw_measures[id].unit],
                  exact(hw_measure_total(view, id)));
    hw_buffer_add(out, ",\n\"samples\":[");
    bool any = false;
    for (size_t i = 0; i < view->context_count; i++) {
        if (!hw_measure_value(view, id, &view->contexts[i]))
            continue;
        hw_buffer_add(out, any ? ",\n" : "\n");
        add_sample(out, view, first, view->contexts[i].sum.leaf, path);
        any = true;
    }
    hw_buffer_add(out, "],\n\"weights\":[");
    any = false;
    for (size_t i = 0; i < view->context_count; i++) {
        const uint64_t value = hw_measure_value(view, id, &view->contexts[i]);
        if (!value)
            continue;
        hw_buffer_bytes(out, ",", any);
        hw_buffer_number(out, exact(value));
        any = true;
    }
    hw_buffer_add(out, "]}");
}

/* Whether there is something to show. */
static bool has_values(const struct hw_view *view, enum hw_measure_id id)
{
    return !hw_measure_unknown(view, id) && hw_measure_total(view, id);
}

static void add_title(struct hw_buffer *out, const struct hw_view *view)
{
    struct hw_buffer text = {0};
    hw_export_command(&text, view, HW_CLEAN_JSON);
    if (text.used)
        hw_buffer_add(&text, ": ");
    hw_buffer_add(&text, "heap");
    struct hw_buffer notes = {0};
    hw_export_notes(&notes, view);
    for (char *at = notes.data; at && *at; at++) /* one line */
        if (*at == '\n')
            *at = ' ';
    if (notes.used)
        hw_buffer_add(&text, ". %.*s", (int)notes.used - 1, hw_buffer_text(&notes));
    hw_export_json(out, hw_buffer_text(&text));
    out->failed |= text.failed || notes.failed;
    hw_buffer_free(&text);
    hw_buffer_free(&notes);
}

bool hw_export_speedscope(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                          struct hw_error *error)
{
    const enum hw_measure_id shown = hw_export_value(view, options);
    uint32_t *path = malloc((view->node_count + 1) * sizeof *path);
    size_t active = 0, count = 0;
    hw_buffer_add(out,
                  "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":\"heapwise %s\","
                  "\n\"name\":",
                  options->version);
    add_title(out, view);
    hw_buffer_add(out, ",\n\"shared\":{\"frames\":[");
    uint32_t *first = add_frames(out, view);
    hw_buffer_add(out, "]},\n\"profiles\":[");
    for (enum hw_measure_id id = 0; path && first && id < HW_MEASURES; id++) {
        if (id != shown && !has_values(view, id))
            continue;
        hw_buffer_add(out, count ? ",\n" : "\n");
        add_profile(out, view, id, first, path);
        active = id == shown ? count : active;
        count++;
    }
    hw_buffer_add(out, "],\n\"activeProfileIndex\":%zu}\n", active);
    const bool fine = path && first && !out->failed;
    free(path);
    free(first);
    return hw_export_done(view, fine, error);
}
