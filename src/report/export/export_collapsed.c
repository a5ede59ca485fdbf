/* export_collapsed.c - stacks as flamegraph.pl and its many readers take them:
 *
 *     main;parse;new_node 4096
 *
 * A line for each stack of names, root first, and its value; sorted. Stacks that differ in addresses only are one line.
 * In names ';' and control characters are written \xNN, since the format has no way to quote them. */
#include "report/export/export.h"

#include <stdlib.h>
#include <string.h>

struct line {
    char *stack;
    uint64_t value;
};

static int compare_lines(const void *left, const void *right)
{
    return strcmp(((const struct line *)left)->stack, ((const struct line *)right)->stack);
}

static char *stack_text(const struct hw_view *view, const struct hw_buffer *names, uint32_t leaf, uint32_t *path)
{
    struct hw_buffer text = {0};
    hw_export_stack(&text, view, names, leaf, path);
    if (!text.used)
        hw_buffer_add(&text, "[stack not known]");
    if (!text.failed)
        return text.data;
    hw_buffer_free(&text);
    return NULL;
}

/* Sorts the lines and prints each stack once. */
static void print_lines(struct line *lines, size_t count, struct hw_buffer *out)
{
    if (count)
        qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count;) {
        size_t end = i;
        uint64_t value = 0;
        while (end < count && !strcmp(lines[end].stack, lines[i].stack))
            value = hw_add_saturating(value, lines[end++].value);
        hw_buffer_bytes(out, lines[i].stack, strlen(lines[i].stack));
        hw_buffer_bytes(out, " ", 1);
        hw_buffer_number(out, value);
        hw_buffer_bytes(out, "\n", 1);
        i = end;
    }
}

bool hw_export_collapsed(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                         struct hw_error *error)
{
    const enum hw_measure_id id = hw_export_value(view, options);
    struct hw_buffer *names = hw_export_names(view);
    struct line *lines = malloc((view->context_count + 1) * sizeof *lines);
    uint32_t *path = malloc((view->node_count + 1) * sizeof *path);
    bool fine = names && lines && path;
    size_t count = 0;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const uint64_t value = hw_measure_value(view, id, &view->contexts[i]);
        if (!value)
            continue;
        lines[count] = (struct line){stack_text(view, names, view->contexts[i].sum.leaf, path), value};
        fine = lines[count++].stack != NULL;
    }
    if (fine)
        print_lines(lines, count, out);
    for (size_t i = 0; lines && i < count; i++)
        free(lines[i].stack);
    free(lines);
    free(path);
    hw_export_names_free(view, names);
    return hw_export_done(view, fine && !out->failed, error);
}
