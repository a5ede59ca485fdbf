/* labels.c - see labels.h. */
#include "top/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report/text/text.h"
#include "report/view/frame_roles.h"

/* ---- the part of the profile ---- */

/* Copies the stack of LEAF, callers first, so that parents have smaller numbers. */
static uint32_t copy_stack(struct hw_label_request *request, const struct hw_live *live, uint32_t leaf, uint32_t *known)
{
    size_t depth = 0;
    uint32_t parent = 0;
    for (uint32_t node = leaf; node && !known[node]; node = live->nodes[node].parent)
        depth++;
    if (depth == 0)
        return leaf ? known[leaf] : 0;
    uint32_t place = (uint32_t)(request->node_count + depth), top = leaf;
    request->node_count += depth;
    for (size_t i = 0; i < depth; i++, top = live->nodes[top].parent) {
        known[top] = --place;
        request->nodes[place] = live->nodes[top];
        request->nodes[place].parent = place - 1;
        parent = place;
    }
    request->nodes[parent].parent = top ? known[top] : 0;
    return known[leaf];
}

static size_t nodes_of(const struct hw_live *live, const uint32_t *contexts, size_t count)
{
    size_t nodes = 1;
    for (size_t i = 0; i < count; i++)
        for (uint32_t node = live->contexts[contexts[i]].leaf; node; node = live->nodes[node].parent)
            nodes++;
    return nodes;
}

struct hw_label_request *hw_label_request_new(const struct hw_live *live, const uint32_t *contexts, size_t count)
{
    struct hw_label_request *request = calloc(1, sizeof *request);
    uint32_t *known = calloc(live->node_count + 1, sizeof *known);
    if (request) {
        request->contexts = malloc((count + 1) * sizeof *request->contexts);
        request->copied = calloc(count + 1, sizeof *request->copied);
        request->entries = calloc(count + 1, sizeof *request->entries);
        request->nodes = calloc(nodes_of(live, contexts, count), sizeof *request->nodes);
        request->maps = malloc((live->map_count + 1) * sizeof *request->maps);
        request->strings = calloc(1, live->string_size + 1);
    }
    if (!request || !known || !request->contexts || !request->copied || !request->entries || !request->nodes ||
        !request->maps || !request->strings) {
        free(known);
        hw_label_request_free(request);
        return NULL;
    }
    memcpy(request->contexts, contexts, count * sizeof *contexts);
    request->count = count;
    if (live->map_count)
        memcpy(request->maps, live->maps, live->map_count * sizeof *live->maps);
    request->map_count = live->map_count;
    if (live->string_size)
        memcpy(request->strings, live->strings, live->string_size);
    request->string_size = live->string_size;
    request->node_count = 1;
    for (size_t i = 0; i < count; i++) { /* number 0 is the unknown stack */
        const struct hw_context_entry *entry = &live->contexts[contexts[i]];
        struct hw_profile_context *context = &request->copied[i];
        context->id = (uint32_t)i + 1;
        context->leaf = copy_stack(request, live, entry->leaf, known);
        context->depth = entry->depth;
        context->flags = entry->flags;
        context->allocations = 1; /* or the view leaves it out */
    }
    free(known);
    return request;
}

void hw_label_clear(struct hw_label *label)
{
    free(label->function);
    free(label->place);
    free(label->caller);
    free(label->stack);
    *label = (struct hw_label){.function = NULL};
}

void hw_label_request_free(struct hw_label_request *request)
{
    if (!request)
        return;
    for (size_t i = 0; request->labels && i < request->count; i++)
        hw_label_clear(&request->labels[i]);
    free(request->labels);
    free(request->contexts);
    free(request->copied);
    free(request->entries);
    free(request->nodes);
    free(request->maps);
    free(request->strings);
    free(request);
}

/* ---- the answer ---- */

#define LEAST_NAME 12 /* columns of a function beside its place */

static char *text_of_stack(const struct hw_view *view, const struct hw_report_options *options, uint32_t leaf)
{
    struct hw_buffer lines = {.data = NULL};
    FILE *stream = hw_buffer_stream(&lines);
    if (!stream)
        return NULL;
    struct hw_text text = hw_text_begin(view, options, stream);
    if (hw_text_load(&text, leaf))
        hw_text_stack(&text);
    else
        fputs("    the call stack is not known\n", stream);
    const bool fine = hw_text_done(&text);
    if (fclose(stream) == 0 && fine && !lines.failed)
        return lines.data;
    hw_buffer_free(&lines);
    return NULL;
}

static bool contains(const char *text, const char *part)
{
    const size_t size = strlen(part);
    for (; text && *text; text++)
        if (!strncasecmp(text, part, size))
            return true;
    return false;
}

/* Whether a function of the loaded stack, or its place, has the text FILTER, in upper or lower case. */
static bool stack_contains(struct hw_text *text, const char *filter)
{
    for (size_t i = 0; i < text->stack.count; i++) {
        const struct hw_view_frame *frame = &text->stack.frames[i];
        if (contains(hw_text_function(text, frame, SIZE_MAX), filter) || contains(hw_text_place(text, frame), filter))
            return true;
    }
    return false;
}

static bool label_context(const struct hw_label_request *request, const struct hw_view *view,
                          const struct hw_report_options *options, uint32_t id, struct hw_label *label)
{
    const struct hw_view_context *context = hw_view_context_of(view, id);
    const uint32_t leaf = context ? context->sum.leaf : 0;
    struct hw_text text = hw_text_begin(view, options, NULL);
    label->left_out = !context;
    bool fine = hw_view_stack(view, leaf, &text.stack);
    if (fine && text.stack.count) {
        const size_t headline = hw_stack_headline(&text.stack), count = hw_stack_without_start(&text.stack);
        const struct hw_view_frame *frame = &text.stack.frames[headline];
        label->place = strdup(hw_text_place(&text, frame));
        const size_t place = label->place && *label->place ? hw_text_width(label->place) + 2 : 0;
        const size_t room = request->columns > place + LEAST_NAME ? request->columns - place : LEAST_NAME;
        label->function = strdup(hw_text_function(&text, frame, room));
        label->caller = strdup(headline + 1 < count ? hw_text_function(&text, frame + 1, request->columns) : "");
    } else if (fine) {
        label->place = strdup("");
        label->function = strdup("unknown call stack");
        label->caller = strdup("");
    }
    label->filtered = *request->filter != '\0';
    label->matches = fine && label->filtered && stack_contains(&text, request->filter);
    fine = hw_text_done(&text) && fine;
    if (fine && request->stacks)
        label->stack = text_of_stack(view, options, leaf);
    return fine && label->function && label->place && label->caller && (label->stack || !request->stacks);
}

bool hw_label_request_answer(struct hw_label_request *request, const struct hw_view_options *options,
                             struct hw_error *error)
{
    char path[] = "";
    const struct hw_profile profile = {.path = path,
                                       .ns_per_tick = 1,
                                       .executable = "",
                                       .allocator = "",
                                       .allocator_path = "",
                                       .options = "",
                                       .maps = request->maps,
                                       .map_count = request->map_count,
                                       .nodes = request->nodes,
                                       .node_count = request->node_count,
                                       .contexts = request->copied,
                                       .context_count = request->count,
                                       .context_entries = request->entries,
                                       .context_entry_count = request->count + 1,
                                       .symbolised = request->symbolised,
                                       .strings = request->strings,
                                       .string_size = request->string_size};
    const struct hw_report_options report = {.width = request->columns, .utf8 = request->utf8};
    struct hw_view *view = hw_view_new(&profile, options, error);
    if (!view)
        return false;
    struct hw_label *labels = calloc(request->count + 1, sizeof *labels);
    bool fine = labels != NULL;
    for (size_t i = 0; fine && i < view->module_count; i++) /* names that are missing for want of memory */
        fine = !view->modules[i].problem || !strstr(view->modules[i].problem, strerror(ENOMEM));
    for (size_t i = 0; fine && i < request->count; i++)
        fine = label_context(request, view, &report, (uint32_t)i + 1, &labels[i]);
    request->labels = labels;
    if (!fine)
        hw_error_set(error, "cannot name call stacks: not enough memory");
    hw_view_free(view);
    return fine;
}
