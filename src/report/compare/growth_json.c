/* growth_json.c - places that grew over the dumps of a run, for a program: docs/json.md. */
#include "report/compare/growth.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/json/json.h"
#include "report/view/keeps.h"
#include "report/view/merged.h"

#define KEEPERS_MOST 10

static void set_moment(struct json_writer *writer, json_t *object, const char *key, const struct hw_growth *growth,
                       bool known, size_t at)
{
    set(writer, object, key, known ? json_integer((json_int_t)llround(growth->times[at] * 1e9)) : json_null());
}

static json_t *trend_value(struct json_writer *writer, const struct hw_growth *growth, const struct hw_trend *trend)
{
    json_t *object = json_object();
    set_text(writer, object, "pattern", hw_trend_pattern_keys[trend->pattern]);
    set_number(writer, object, "per_second", trend->rate);
    set_number(writer, object, "low", trend->low);
    set_number(writer, object, "high", trend->high);
    set_number(writer, object, "p", trend->p);
    set(writer, object, "moments", json_integer((json_int_t)trend->count));
    set_moment(writer, object, "since_ns", growth, true, trend->first);
    set_number(writer, object, "before_per_second", trend->before_rate);
    set(writer, object, "falls", json_integer((json_int_t)trend->falls));
    set(writer, object, "noise", isnan(trend->low) ? json_null() : json_string(trend->walks ? "walk" : "scatter"));
    set_number(writer, object, "seconds_to_1_gib",
               trend->pattern == HW_TREND_GROWS ? 0x1p30 / trend->rate : (double)NAN);
    return object;
}

static json_t *numbers_value(struct json_writer *writer, const struct hw_growth *growth, const double *numbers)
{
    json_t *array = json_array();
    for (size_t i = 0; i < growth->moments; i++)
        append(writer, array, json_integer((json_int_t)numbers[i]));
    return array;
}

static json_t *files_value(struct json_writer *writer, const struct hw_growth *growth)
{
    json_t *array = json_array();
    for (size_t i = 0; i < growth->file_count; i++) {
        json_t *object = json_object();
        set_text(writer, object, "file", growth->files[i].path);
        if (growth->files[i].use != HW_GROWTH_DAMAGED)
            set_count(writer, object, "time_ns", growth->files[i].moment.time_ns);
        set_text(writer, object, "use", hw_growth_uses[growth->files[i].use]);
        append(writer, array, object);
    }
    return array;
}

/* Trend and numbers of a row, as members of OBJECT. */
static void set_row(struct json_writer *writer, json_t *object, const struct hw_growth *growth,
                    const struct hw_growth_row *row)
{
    set(writer, object, "bytes", trend_value(writer, growth, &row->trend));
    set(writer, object, "blocks",
        row->blocks && row->blocks_trend.pattern != HW_TREND_NONE ? trend_value(writer, growth, &row->blocks_trend)
                                                                  : json_null());
    set(writer, object, "live_bytes", numbers_value(writer, growth, row->bytes));
    set(writer, object, "live_allocations", row->blocks ? numbers_value(writer, growth, row->blocks) : json_null());
}

static json_t *keepers_value(struct json_writer *writer, const struct hw_growth *growth,
                             const struct hw_growth_row *row)
{
    const struct hw_view *view = writer->view;
    struct hw_buffer name = {0};
    uint64_t bytes;
    size_t count;
    if (!view->keeps)
        return json_null();
    struct hw_place_keeper *keepers = hw_growth_keepers(growth, row->context, &count, &bytes);
    writer->failed |= !keepers;
    json_t *array = json_array();
    for (size_t i = 0; i < count && i < KEEPERS_MOST; i++) {
        const struct hw_view_keeper *keeper = &view->keeps->keepers[keepers[i].keeper];
        json_t *object = json_object();
        hw_buffer_clear(&name);
        hw_keeper_name(view, keepers[i].keeper, &name);
        set(writer, object, "keeper", json_integer(keepers[i].keeper));
        set_text(writer, object, "name", hw_buffer_text(&name));
        set_text(writer, object, "kind", hw_keeper_key(keeper->kind));
        set_text(writer, object, "module", keeper->module == HW_NONE ? NULL : view->modules[keeper->module].path);
        set_count(writer, object, "blocks", keepers[i].blocks);
        set_count(writer, object, "bytes", keepers[i].bytes);
        append(writer, array, object);
    }
    writer->failed |= name.failed;
    hw_buffer_free(&name);
    free(keepers);
    return array;
}

/* The members of OBJECT without its closing bracket, so that a stack can follow. */
static void print_members(struct json_writer *writer, json_t *object)
{
    const char *key;
    json_t *value;
    fputc('{', writer->stream);
    json_object_foreach(object, key, value)
    {
        fprintf(writer->stream, "\"%s\":", key);
        print_value(writer, json_incref(value));
        fputc(',', writer->stream);
    }
    json_decref(object);
}

static void print_place(struct json_writer *writer, const struct hw_growth *growth, const struct hw_growth_row *row)
{
    const struct hw_view_context *context = &writer->view->contexts[row->context];
    json_t *object = json_object();
    set(writer, object, "id", json_integer(context->sum.id));
    set_text(writer, object, "type", hw_view_type(writer->view, &context->sum));
    set_row(writer, object, growth, row);
    set(writer, object, "keepers", keepers_value(writer, growth, row));
    print_members(writer, object);
    hw_json_stack(writer, context->sum.leaf);
    fputc('}', writer->stream);
}

static void print_group(struct json_writer *writer, const struct hw_growth *growth, const struct hw_growth_row *row)
{
    json_t *object = hw_json_group(writer, growth->by, &row->group);
    set_row(writer, object, growth, row);
    set(writer, object, "self_bytes", row->self ? numbers_value(writer, growth, row->self) : json_null());
    print_value(writer, object);
}

static void print_rows(struct json_writer *writer, const struct hw_growth *growth)
{
    const size_t top = writer->options->top, count = top && top < growth->row_count ? top : growth->row_count;
    print_key(writer, growth->by == HW_BYS ? "places" : "groups");
    fputc('[', writer->stream);
    for (size_t i = 0; i < count && !writer->failed && !ferror(writer->stream); i++) {
        fputs(i ? ",\n" : "\n", writer->stream);
        (growth->by == HW_BYS ? print_place : print_group)(writer, growth, &growth->rows[i]);
    }
    fputs("\n]", writer->stream);
}

static json_t *notes_value(struct json_writer *writer, const struct hw_growth *growth)
{
    struct hw_buffer notes = {0};
    json_t *array = json_array();
    hw_growth_notes(growth, &notes);
    for (char *at = notes.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        append(writer, array, text_value(writer, at));
    }
    writer->failed |= notes.failed;
    hw_buffer_free(&notes);
    return array;
}

bool hw_growth_json(const struct hw_growth *growth, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error)
{
    struct json_writer writer;
    if (hw_json_writer_begin(&writer, growth->view, options, stream)) {
        const struct hw_profile *profile = growth->view->profile;
        json_t *whole = json_object(), *times = json_array();
        fputs("{\"format\":1,\n\"executable\":", stream);
        print_value(&writer, text_value(&writer, known(profile->executable)));
        fprintf(stream, ",\n\"pid\":%u,\n\"sampled\":%s", (unsigned)profile->process.pid,
                hw_view_sampled(growth->view) ? "true" : "false");
        print_key(&writer, "files");
        print_value(&writer, files_value(&writer, growth));
        for (size_t i = 0; i < growth->moments; i++)
            append(&writer, times, json_integer((json_int_t)llround(growth->times[i] * 1e9)));
        print_key(&writer, "moments_ns");
        print_value(&writer, times);
        print_key(&writer, "notes");
        print_value(&writer, notes_value(&writer, growth));
        set_row(&writer, whole, growth, &growth->whole);
        print_key(&writer, "whole");
        print_value(&writer, whole);
        fprintf(stream, ",\n\"changed\":%zu,\n\"unchanged\":%zu,\n\"steady\":%zu", growth->row_count, growth->unchanged,
                growth->steady);
        print_rows(&writer, growth);
        fputs("}\n", stream);
    }
    if (hw_json_writer_end(&writer))
        return true;
    hw_error_set(error, "not enough memory for the report");
    return false;
}
