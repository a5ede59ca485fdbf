/* export_dhat.c - the JSON that Valgrind's DHAT writes, version 2, for its viewer dh_view.html:
 *
 *     { "dhatFileVersion": 2,
 *       "mode": "heapwise", "verb": "Allocated",
 *       "bklt": true,             // lifetimes and what was live are known: tl, mb … ebk below
 *       "bkacc": false,           // bytes read and written are not: DHAT counts bytes, Heapwise accesses
 *       "tu": "ns", "Mtu": "ms",  // the unit of times, and of a million of them
 *       "tuth": 1000,             // blocks that live less are called short-lived
 *       "cmd": "./a.out", "pid": 4711,
 *       "te": 2000000, "tg": 140, // the end; the moment of the peak. tg only with bklt
 *       "pps": [                  // program points: our contexts
 *         { "tb": 24, "tbk": 1,   // bytes and blocks in all
 *           "tl": 1000,           // lifetimes of them, summed
 *           "mb": 24, "mbk": 1,   // at the point's own peak: see below
 *           "gb": 24, "gbk": 1,   // at the peak of the process
 *           "eb": 0, "ebk": 0,    // at the end
 *           "fs": [1, 2, 3] } ],  // indexes into ftbl, leaf first
 *       "ftbl": ["[root]", "0x1234: main (main.c:3)"] }
 *
 * The viewer demands each point's own peak (mb, mbk), which Heapwise does not keep: the greater of what was live at the
 * process's peak and at the end is written, a lower bound. It also demands that no two points have the same frames:
 * frames are distinguished by location, not by name, and pools, which share stacks, are left out. */
#include "report/export/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/text/human.h"

#define SHORT_LIFE_NS 1000

/* By location: the index of its first frame in ftbl; 0 where it has none. */
static uint32_t *make_table(const struct hw_view *view, uint32_t *unknown)
{
    uint32_t *first = calloc(view->location_count + 1, sizeof *first), next = 1;
    bool *used = first ? hw_export_used(view) : NULL;
    for (size_t i = 0; used && i < view->location_count; i++)
        if (used[i]) {
            first[i] = next;
            next += view->locations[i].frames.count;
        }
    *unknown = next;
    if (!used) {
        free(first);
        return NULL;
    }
    free(used);
    return first;
}

static void add_frame(struct hw_buffer *out, const struct hw_view *view, const struct hw_view_location *location,
                      uint32_t index, struct hw_buffer *text)
{
    const struct hw_frame *symbol = &location->frames.frame[index];
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    hw_buffer_clear(text);
    if (!hw_view_llvm_frame(view, location))
        hw_buffer_add(text, "0x%" PRIX64 ": ", location->address);
    hw_export_function(text, view, location, index, HW_CLEAN_UTF8);
    if (symbol->file) {
        hw_buffer_add(text, " (");
        hw_buffer_clean(text, symbol->file, HW_CLEAN_UTF8);
        hw_buffer_add(text, ":%" PRIu32 ")", symbol->line);
    } else if (module) {
        hw_buffer_add(text, " (in ");
        hw_buffer_clean(text, module->path && *module->path ? module->path : "generated code", HW_CLEAN_UTF8);
        hw_buffer_add(text, ")");
    }
    hw_buffer_add(out, ",\n");
    hw_export_json(out, hw_buffer_text(text));
}

static void add_frames(struct hw_buffer *out, const struct hw_view *view, const uint32_t *first)
{
    struct hw_buffer text = {0};
    hw_buffer_add(out, "\"ftbl\":[\"[root]\"");
    for (size_t i = 0; i < view->location_count; i++)
        for (uint32_t k = 0; first[i] && k < view->locations[i].frames.count; k++)
            add_frame(out, view, &view->locations[i], k, &text);
    hw_buffer_add(out, ",\n\"[stack not known]\"]\n");
    out->failed |= text.failed;
    hw_buffer_free(&text);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Lifetimes of freed blocks, and the ages of those that are left. */
static uint64_t lifetimes(const struct hw_profile_context *sum)
{
    const uint64_t freed = sum->lifetime_total_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)sum->lifetime_total_ns;
    return hw_add_saturating(freed, sum->live_age_total_ns);
}

static void add_point(struct hw_buffer *out, const struct hw_view *view, const struct hw_profile_context *sum,
                      const uint32_t *first, uint32_t unknown, bool lives)
{
    const uint64_t peak = hw_not_negative(sum->peak_bytes), peak_blocks = hw_not_negative(sum->peak_blocks),
                   end = hw_not_negative(sum->live_bytes), end_blocks = hw_not_negative(sum->live_blocks);
    hw_buffer_add(out, "{\"tb\":%" PRIu64 ",\"tbk\":%" PRIu64, sum->bytes, sum->allocations);
    if (lives) {
        hw_buffer_add(out, ",\"tl\":%" PRIu64 ",\"mb\":%" PRIu64 ",\"mbk\":%" PRIu64, lifetimes(sum),
                      greater(peak, end), peak >= end ? peak_blocks : end_blocks);
        hw_buffer_add(out, ",\"gb\":%" PRIu64 ",\"gbk\":%" PRIu64 ",\"eb\":%" PRIu64 ",\"ebk\":%" PRIu64, peak,
                      peak_blocks, end, end_blocks);
    }
    hw_buffer_add(out, ",\"fs\":[");
    for (uint32_t node = sum->leaf; node; node = view->nodes[node].parent) {
        const uint32_t location = view->nodes[node].location;
        for (uint32_t k = 0; k < view->locations[location].frames.count; k++) {
            hw_buffer_bytes(out, ",", node != sum->leaf || k);
            hw_buffer_number(out, first[location] + k);
        }
    }
    if (!sum->leaf)
        hw_buffer_add(out, "%" PRIu32, unknown);
    hw_buffer_add(out, "]}");
}

bool hw_export_dhat(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                    struct hw_error *error)
{
    const struct hw_profile *profile = view->profile;
    const bool lives = hw_view_measured(view, HW_MEASURED_PEAK) && hw_view_measured(view, HW_MEASURED_LIFETIMES);
    uint32_t unknown;
    uint32_t *first = make_table(view, &unknown);
    struct hw_buffer text = {0};
    if (!first)
        return hw_export_done(view, false, error);
    hw_export_command(&text, view, HW_CLEAN_UTF8);
    hw_buffer_add(out,
                  "{\"dhatFileVersion\":2,\"mode\":\"%s\",\"verb\":\"Allocated\",\"bklt\":%s,\"bkacc\":false,"
                  "\"tu\":\"ns\",\"Mtu\":\"ms\",\n\"cmd\":",
                  hw_view_sampled(view) ? "heapwise, sampled: estimates" : "heapwise", lives ? "true" : "false");
    hw_export_json(out, hw_buffer_text(&text));
    hw_buffer_add(out, ",\"pid\":%" PRIu32 ",\"te\":%" PRIu64, profile->process.pid, profile->duration_ns);
    if (lives)
        hw_buffer_add(out, ",\"tg\":%" PRIu64 ",\"tuth\":%d", profile->peak_time_ns, SHORT_LIFE_NS);
    hw_buffer_add(out, ",\n\"pps\":[");
    bool any = false;
    for (size_t i = 0; i < view->context_count; i++) {
        if (view->contexts[i].sum.pool)
            continue;
        hw_buffer_add(out, any ? ",\n" : "\n");
        add_point(out, view, &view->contexts[i].sum, first, unknown, lives);
        any = true;
    }
    hw_buffer_add(out, "],\n");
    add_frames(out, view, first);
    hw_buffer_add(out, "}\n");
    out->failed |= text.failed;
    hw_buffer_free(&text);
    free(first);
    return hw_export_done(view, !out->failed, error);
}
