/* export.c - see export.h. */
#include "report/export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/view/merged.h"

enum hw_measure_id hw_export_value(const struct hw_view *view, const struct hw_export_options *options)
{
    return options->value < HW_MEASURES ? options->value : hw_measure_usual(view);
}

void hw_export_function(struct hw_buffer *out, const struct hw_view *view, const struct hw_view_location *location,
                        uint32_t index, enum hw_clean clean)
{
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    const char *function = location->frames.frame[index].function;
    if (function) {
        hw_buffer_clean(out, function, clean);
    } else if (module && module->kind != HW_MODULE_GENERATED) {
        hw_buffer_clean(out, module->name, clean);
        hw_buffer_add(out, "+0x%" PRIx64, location->address);
    } else {
        hw_buffer_add(out, "0x%" PRIx64, location->address);
    }
}

void hw_export_json(struct hw_buffer *out, const char *text)
{
    struct hw_buffer cleaned = {0};
    if (!text) {
        hw_buffer_add(out, "null");
        return;
    }
    hw_buffer_clean(&cleaned, text, HW_CLEAN_JSON);
    hw_buffer_bytes(out, "\"", 1);
    for (const char *at = hw_buffer_text(&cleaned); *at;) {
        size_t plain = 0;
        while ((unsigned char)at[plain] >= 0x20 && at[plain] != '"' && at[plain] != '\\')
            plain++;
        hw_buffer_bytes(out, at, plain);
        at += plain;
        if (!*at)
            break;
        if (*at == '"' || *at == '\\')
            hw_buffer_add(out, "\\%c", *at);
        else
            hw_buffer_add(out, "\\u%04x", (unsigned)(unsigned char)*at);
        at++;
    }
    hw_buffer_bytes(out, "\"", 1);
    out->failed |= cleaned.failed;
    hw_buffer_free(&cleaned);
}

void hw_export_command(struct hw_buffer *out, const struct hw_view *view, enum hw_clean clean)
{
    const struct hw_profile *profile = view->profile;
    for (size_t i = 0; i < profile->command_count; i++) {
        const char *word = profile->command[i];
        const bool quote = !*word || word[strcspn(word, " \t\n\"'\\$`*?|&;<>(){}[]#~!")];
        hw_buffer_add(out, "%s%s", i ? " " : "", quote ? "'" : "");
        for (const char *rest = word; *rest;) {
            const size_t plain = strcspn(rest, "'");
            struct hw_buffer part = {0};
            hw_buffer_bytes(&part, rest, plain);
            hw_buffer_clean(out, hw_buffer_text(&part), clean);
            out->failed |= part.failed;
            hw_buffer_free(&part);
            rest += plain;
            if (*rest) {
                hw_buffer_add(out, "'\\''");
                rest++;
            }
        }
        hw_buffer_add(out, "%s", quote ? "'" : "");
    }
    if (!profile->command_count && profile->executable)
        hw_buffer_clean(out, profile->executable, clean);
}

void hw_export_notes(struct hw_buffer *out, const struct hw_view *view)
{
    const struct hw_profile *profile = view->profile;
    if (profile->process.sample_bytes)
        hw_buffer_add(
            out,
            "Sampled: counts and bytes are estimates from %s, one for every %s on average. They are scaled up "
            "already.\n",
            HW_OF(view->samples, "sample"), HW_BYTES(profile->process.sample_bytes));
    else if (hw_view_sampled(view))
        hw_buffer_add(out, "Counts and bytes are estimates from %s. They are scaled up already.\n",
                      HW_OF(view->samples, "allocation"));
    if (hw_is_merged(profile))
        hw_buffer_add(out, "Merged from %s: values at the peak are sums over the peaks of all.\n",
                      HW_OF(profile->process.runs, "run"));
    if (profile->running)
        hw_buffer_add(out, "The process was still running: blocks that were live then may have been freed later.\n");
    for (size_t i = 0; i < profile->problem_count; i++) {
        hw_buffer_add(out, "The file is damaged: ");
        hw_buffer_clean(out, profile->problems[i], HW_CLEAN_UTF8);
        hw_buffer_add(out, "\n");
    }
}

bool hw_export_done(const struct hw_view *view, bool fine, struct hw_error *error)
{
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the export",
                     view->profile->path ? view->profile->path : "profile");
    return fine;
}

bool *hw_export_used(const struct hw_view *view)
{
    bool *used = calloc(view->location_count + 1, sizeof *used);
    bool *walked = calloc(view->node_count + 1, sizeof *walked);
    for (size_t i = 0; used && walked && i < view->context_count; i++)
        for (uint32_t node = view->contexts[i].sum.leaf; node && !walked[node]; node = view->nodes[node].parent) {
            walked[node] = true;
            used[view->nodes[node].location] = true;
        }
    const bool fine = used && walked;
    free(walked);
    if (!fine) {
        free(used);
        used = NULL;
    }
    return used;
}

/* ---- stacks as one line ---- */

/* NAME without what would part it. */
static void add_name(struct hw_buffer *out, const char *name)
{
    for (; *name; name += *name != '\0') {
        const size_t plain = strcspn(name, ";");
        hw_buffer_bytes(out, name, plain);
        name += plain;
        if (*name)
            hw_buffer_add(out, "\\x3b");
        else
            break;
    }
}

struct hw_buffer *hw_export_names(const struct hw_view *view)
{
    struct hw_buffer *names = calloc(view->location_count + 1, sizeof *names), name = {0};
    bool *used = names ? hw_export_used(view) : NULL;
    for (size_t i = 0; used && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        for (uint32_t k = location->frames.count; used[i] && k-- > 0;) {
            hw_buffer_clear(&name);
            hw_export_function(&name, view, location, k, HW_CLEAN_UTF8);
            add_name(&names[i], hw_buffer_text(&name));
            if (k)
                hw_buffer_bytes(&names[i], ";", 1);
        }
        names[i].failed |= name.failed;
    }
    const bool fine = used != NULL;
    free(used);
    hw_buffer_free(&name);
    if (!fine) {
        free(names);
        names = NULL;
    }
    return names;
}

void hw_export_names_free(const struct hw_view *view, struct hw_buffer *names)
{
    for (size_t i = 0; names && i < view->location_count; i++)
        hw_buffer_free(&names[i]);
    free(names);
}

void hw_export_stack(struct hw_buffer *out, const struct hw_view *view, const struct hw_buffer *names, uint32_t leaf,
                     uint32_t *path)
{
    size_t depth = 0;
    for (uint32_t node = leaf; node; node = view->nodes[node].parent)
        path[depth++] = view->nodes[node].location;
    while (depth-- > 0) {
        const struct hw_buffer *name = &names[path[depth]];
        hw_buffer_bytes(out, hw_buffer_text(name), name->used);
        out->failed |= name->failed;
        if (depth)
            hw_buffer_bytes(out, ";", 1);
    }
}
