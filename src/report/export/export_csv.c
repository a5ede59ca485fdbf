/* export_csv.c - a line for each context, with a header, as RFC 4180 says: fields parted by commas, lines ended by
 * CRLF, text quoted where it has to be. A field that was not measured is empty.
 *
 * Programs that show tables take a field that begins with one of = + - @ for a formula: of text from the program that
 * character becomes \xNN. */
#include "report/export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/frame_roles.h"
#include "report/view/numbers.h"

struct table {
    const struct hw_view *view;
    struct hw_buffer *out;
    struct hw_view_stack stack;
    struct hw_buffer text;
    struct hw_buffer *names; /* of locations */
    uint32_t *path;
    bool first; /* the next field is the first of its line */
    bool failed;
};

static void begin_field(struct table *table)
{
    if (!table->first)
        hw_buffer_bytes(table->out, ",", 1);
    table->first = false;
}

static void end_line(struct table *table)
{
    hw_buffer_bytes(table->out, "\r\n", 2);
    table->first = true;
}

/* Clean text, of the program if FOREIGN. */
static void add_text(struct table *table, const char *text, bool foreign)
{
    char first[8] = "";
    begin_field(table);
    if (foreign && *text && strchr("=+-@", *text))
        snprintf(first, sizeof first, "\\x%02x", (unsigned)(unsigned char)*text++);
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    hw_buffer_bytes(table->out, "\"", quoted);
    hw_buffer_bytes(table->out, first, strlen(first));
    while (*text) {
        const size_t plain = strcspn(text, "\"");
        hw_buffer_bytes(table->out, text, plain);
        hw_buffer_bytes(table->out, "\"\"", text[plain] ? 2 : 0);
        text += plain + (text[plain] != '\0');
    }
    hw_buffer_bytes(table->out, "\"", quoted);
}

static void add_foreign(struct table *table, const char *text)
{
    hw_buffer_clear(&table->text);
    hw_buffer_clean(&table->text, text ? text : "", HW_CLEAN_UTF8);
    add_text(table, hw_buffer_text(&table->text), true);
}

static void add_count(struct table *table, bool known, uint64_t value)
{
    begin_field(table);
    if (known)
        hw_buffer_number(table->out, value);
}

/* Root first, parted by ';' as in collapsed stacks. */
static void add_stack(struct table *table, uint32_t leaf)
{
    hw_buffer_clear(&table->text);
    hw_export_stack(&table->text, table->view, table->names, leaf, table->path);
    add_text(table, hw_buffer_text(&table->text), true);
}

/* Where the context is shown in lists of reports. */
static void add_place(struct table *table)
{
    const struct hw_view_frame *frame =
        table->stack.count ? &table->stack.frames[hw_stack_headline(&table->stack)] : NULL;
    hw_buffer_clear(&table->text);
    if (frame) {
        const struct hw_view_location *location = &table->view->locations[frame->location];
        hw_export_function(&table->text, table->view, location, (uint32_t)(frame->symbol - location->frames.frame),
                           HW_CLEAN_UTF8);
    }
    add_text(table, hw_buffer_text(&table->text), true);
    add_foreign(table, frame ? frame->symbol->file : NULL);
    add_count(table, frame && frame->symbol->line, frame ? frame->symbol->line : 0);
    add_foreign(table, frame && frame->module ? frame->module->path : NULL);
}

/* Columns that are no measures; those between function and stack are of add_place. */
static const char *const columns[] = {"id",   "function", "file",     "line",     "module",
                                      "type", "pool",     "complete", "estimated"};

/* The number in that column, from 1 on; NULL behind the last. */
static const struct hw_number *number_in(int column)
{
    for (size_t i = 0; i < hw_number_count; i++)
        if (hw_numbers[i].csv_column == column)
            return &hw_numbers[i];
    return NULL;
}

static void add_header(struct table *table)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        add_text(table, columns[i], false);
    for (int i = 1; number_in(i); i++)
        add_text(table, number_in(i)->csv, false);
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
        add_text(table, hw_measures[id].key, false);
    add_text(table, "stack", false);
    end_line(table);
}

static void add_context(struct table *table, const struct hw_view_context *context)
{
    const struct hw_view *view = table->view;
    const struct hw_profile_context *sum = &context->sum;
    if (!hw_view_stack(view, sum->leaf, &table->stack)) {
        table->failed = true;
        return;
    }
    add_count(table, true, sum->id);
    add_place(table);
    add_foreign(table, hw_view_type(view, sum));
    add_count(table, true, sum->pool);
    add_count(table, true, sum->leaf && !(sum->flags & HW_CONTEXT_NOT_WHOLE));
    add_count(table, true, hw_view_sampled(view));
    for (int i = 1; number_in(i); i++)
        add_count(table, hw_number_is_known(view, number_in(i), sum), hw_number_value(number_in(i), sum));
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
        add_count(table, !hw_measure_unknown(view, id), hw_measure_value(view, id, context));
    add_stack(table, sum->leaf);
    end_line(table);
}

bool hw_export_csv(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                   struct hw_error *error)
{
    struct table table = {.view = view,
                          .out = out,
                          .names = hw_export_names(view),
                          .path = malloc((view->node_count + 1) * sizeof *table.path),
                          .first = true};
    table.failed = !table.names || !table.path;
    add_header(&table);
    for (size_t i = 0; i < view->context_count && !table.failed; i++)
        add_context(&table, &view->contexts[i]);
    const bool failed = table.failed || table.text.failed || out->failed;
    hw_view_stack_free(&table.stack);
    hw_buffer_free(&table.text);
    hw_export_names_free(view, table.names);
    free(table.path);
    return hw_export_done(view, !failed, error);
}
