/* json_diff.c - two profiles side by side, for a program: docs/json.md. */
#include <stdlib.h>
#include <string.h>

#include "report/compare/diff_allocator.h"
#include "report/json/json.h"
#include "report/view/keeps.h"
#include "report/view/merged.h"

struct diff_json {
    const struct hw_diff *diff;
    const struct hw_diff_options *options;
    struct json_writer side[HW_SIDES];
};

static json_t *side_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *object = json_object();
    set_text(writer, object, "file", profile->path);
    set_text(writer, object, "executable", known(profile->executable));
    set_text(writer, object, "allocator", known(profile->allocator));
    set(writer, object, "runs", json_integer(hw_is_merged(profile) ? clamped(profile->process.runs) : 1));
    set_nonzero(writer, object, "sample_bytes", profile->process.sample_bytes);
    set_known(writer, object, "duration_ns", hw_profile_measured(profile, HW_MEASURED_PROCESS), profile->duration_ns);
    return object;
}

/* Values of one side by key; null where it is not measured, or where the place is not. */
static json_t *values(struct diff_json *json, const uint64_t *value, enum hw_diff_side side)
{
    struct json_writer *writer = &json->side[HW_NEW];
    json_t *object = json_object();
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
        set(writer, object, hw_measures[id].key,
            hw_measure_unknown(json->diff->view[side], id) ? json_null() : json_integer(clamped(value[id])));
    return object;
}

#define KEEPERS_MOST 10

static json_t *keepers_value(struct diff_json *json, uint32_t place)
{
    static const char *const keys[HW_SIDES][3] = {{"old_keeper", "old_blocks", "old_bytes"},
                                                  {"new_keeper", "new_blocks", "new_bytes"}};
    const struct hw_diff *diff = json->diff;
    struct json_writer *writer = &json->side[HW_NEW];
    struct hw_buffer name = {0};
    size_t count;
    if (!diff->view[HW_OLD]->keeps && !diff->view[HW_NEW]->keeps)
        return json_null();
    struct hw_diff_keeper *keepers = hw_diff_keepers(diff, place, &count);
    json_t *array = json_array();
    writer->failed |= !keepers;
    for (size_t i = 0; i < count && i < KEEPERS_MOST; i++) {
        const struct hw_diff_keeper *from = &keepers[i];
        const enum hw_diff_side side = from->keeper[HW_NEW] != HW_NONE ? HW_NEW : HW_OLD;
        const struct hw_view *view = diff->view[side];
        const struct hw_view_keeper *keeper = &view->keeps->keepers[from->keeper[side]];
        json_t *object = json_object();
        hw_buffer_clear(&name);
        hw_diff_keeper_name(diff, from, &name);
        set_text(writer, object, "name", hw_buffer_text(&name));
        set_text(writer, object, "kind", hw_keeper_key(keeper->kind));
        set_text(writer, object, "module", keeper->module == HW_NONE ? NULL : view->modules[keeper->module].path);
        for (int k = 0; k < HW_SIDES; k++) {
            set_known(writer, object, keys[k][0], from->keeper[k] != HW_NONE, from->keeper[k]);
            set_known(writer, object, keys[k][1], diff->view[k]->keeps, from->blocks[k]);
            set_known(writer, object, keys[k][2], diff->view[k]->keeps, from->bytes[k]);
        }
        append(writer, array, object);
    }
    writer->failed |= name.failed;
    hw_buffer_free(&name);
    free(keepers);
    return array;
}

static void print_place(struct diff_json *json, uint32_t index)
{
    const struct hw_diff *diff = json->diff;
    const struct hw_diff_place *place = &diff->places[index];
    struct json_writer *writer = &json->side[HW_NEW];
    const bool has_old = place->context[HW_OLD] != HW_NONE, has_new = place->context[HW_NEW] != HW_NONE;
    const enum hw_diff_side side = has_new ? HW_NEW : HW_OLD;
    const struct hw_view_context *context = &diff->view[side]->contexts[place->context[side]];
    const enum hw_measure_id id = json->options->sort;
    fprintf(writer->stream, "{\"state\":\"%s\",\"change\":%lld,\"old\":",
            has_old && has_new ? "both"
            : has_new          ? "appeared"
                               : "gone",
            (long long)hw_diff_change(place->value[HW_OLD][id], place->value[HW_NEW][id]));
    print_value(writer, has_old ? values(json, place->value[HW_OLD], HW_OLD) : json_null());
    fputs(",\"new\":", writer->stream);
    print_value(writer, has_new ? values(json, place->value[HW_NEW], HW_NEW) : json_null());
    fprintf(writer->stream, ",\"nameless\":%s,\"old_contexts\":%u,\"new_contexts\":%u,\"old_id\":",
            hw_diff_is_nameless(diff, place) ? "true" : "false", (unsigned)place->contexts[HW_OLD],
            (unsigned)place->contexts[HW_NEW]);
    print_value(writer,
                has_old ? json_integer(diff->view[HW_OLD]->contexts[place->context[HW_OLD]].sum.id) : json_null());
    fputs(",\"new_id\":", writer->stream);
    print_value(writer,
                has_new ? json_integer(diff->view[HW_NEW]->contexts[place->context[HW_NEW]].sum.id) : json_null());
    fputs(",\"type\":", writer->stream);
    print_value(writer, text_value(writer, hw_view_type(diff->view[side], &context->sum)));
    fputs(",\"keepers\":", writer->stream);
    print_value(writer, keepers_value(json, index));
    fputc(',', writer->stream);
    hw_json_stack(&json->side[side], context->sum.leaf);
    fputc('}', writer->stream);
}

static void print_places(struct diff_json *json)
{
    struct json_writer *writer = &json->side[HW_NEW];
    size_t count;
    uint32_t *order = hw_diff_sorted(json->diff, json->options->sort, &count);
    if (!order) {
        writer->failed = true;
        return;
    }
    print_key(writer, "places_changed");
    fprintf(writer->stream, "%zu", count);
    if (json->options->report.top && json->options->report.top < count)
        count = json->options->report.top;
    print_key(writer, "places");
    fputc('[', writer->stream);
    for (size_t i = 0; i < count && !writer->failed && !ferror(writer->stream); i++) {
        fputs(i ? ",\n" : "\n", writer->stream);
        print_place(json, order[i]);
    }
    fputs("\n]", writer->stream);
    free(order);
}

static void print_notes(struct diff_json *json)
{
    struct json_writer *writer = &json->side[HW_NEW];
    struct hw_buffer notes = {0};
    json_t *array = json_array();
    hw_diff_notes(json->diff, &notes);
    for (char *at = notes.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        append(writer, array, text_value(writer, at));
    }
    writer->failed |= notes.failed;
    hw_buffer_free(&notes);
    print_key(writer, "notes");
    print_value(writer, array);
}

/* ---- the allocator ---- */

static void set_bytes(struct json_writer *writer, json_t *object, const char *key, double value)
{
    set(writer, object, key, value == value ? json_integer((json_int_t)value) : json_null());
}

static void set_observed(struct json_writer *writer, json_t *object, const char *key, uint64_t count)
{
    set_known(writer, object, key, count != HW_NOT_OBSERVED, count);
}

static json_t *allocator_side(struct json_writer *writer, const struct hw_diff_allocator *side)
{
    static const char *const parts[HW_DIFF_PARTS] = {"total", "real", "internal", "blowup", "external"};
    const struct hw_verdict_input *input = &side->of.input;
    json_t *object = json_object(), *by_kind = json_object(), *memory = json_object(), *causes = json_array();
    set_count(writer, object, "operations", side->operations);
    set_number(writer, object, "seconds_in_operations", input->operations);
    set_number(writer, object, "relative_error", input->error);
    set_number(writer, object, "seconds_in_system_calls", input->in_syscalls);
    set_number(writer, object, "seconds_waiting", input->waiting);
    set_number(writer, object, "time_share", side->of.verdict.time_share);
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        json_t *one = json_object();
        set_count(writer, one, "count", side->kind[kind].count);
        set_number(writer, one, "mean_ns", side->kind[kind].mean_ns);
        set(writer, by_kind, hw_operation_kind_keys[kind], one);
    }
    set(writer, object, "by_kind", by_kind);
    for (int part = 0; part < HW_DIFF_PARTS; part++)
        set_bytes(writer, memory, parts[part], side->memory[part]);
    set(writer, object, "memory_at_peak", memory);
    set_observed(writer, object, "active_lines", input->active_lines);
    set_observed(writer, object, "passive_lines", input->passive_lines);
    set_text(writer, object, "time", hw_verdict_answer_names[side->of.verdict.time]);
    set_text(writer, object, "memory", hw_verdict_answer_names[side->of.verdict.memory]);
    for (size_t i = 0; i < side->of.verdict.finding_count; i++)
        append(writer, causes, json_string(hw_verdict_cause_names[side->of.verdict.findings[i].cause]));
    set(writer, object, "causes", causes);
    return object;
}

static void print_allocator(struct diff_json *json)
{
    struct json_writer *writer = &json->side[HW_NEW];
    struct hw_diff_allocator side[HW_SIDES];
    double error;
    if (!hw_diff_allocator(&side[HW_OLD], json->diff->view[HW_OLD]) ||
        !hw_diff_allocator(&side[HW_NEW], json->diff->view[HW_NEW]))
        return;
    json_t *object = json_object();
    set(writer, object, "old", allocator_side(writer, &side[HW_OLD]));
    set(writer, object, "new", allocator_side(writer, &side[HW_NEW]));
    set_number(writer, object, "seconds_change", hw_diff_allocator_change(side, &error));
    set_number(writer, object, "seconds_change_error", error);
    print_key(writer, "allocator");
    print_value(writer, object);
}

static void print_limits(struct diff_json *json)
{
    struct json_writer *writer = &json->side[HW_NEW];
    json_t *array = json_array();
    for (size_t i = 0; i < json->options->limit_count; i++) {
        const struct hw_diff_limit *limit = &json->options->limits[i];
        json_t *object = json_object();
        set_text(writer, object, "measure", hw_measures[limit->id].key);
        set_text(writer, object, "max_increase", limit->text);
        set_signed(writer, object, "change",
                   hw_diff_change(json->diff->total[HW_OLD][limit->id], json->diff->total[HW_NEW][limit->id]));
        set(writer, object, "broken", json_boolean(limit->broken));
        append(writer, array, object);
    }
    print_key(writer, "limits");
    print_value(writer, array);
}

bool hw_diff_json(const struct hw_diff *diff, const struct hw_diff_options *options, FILE *stream,
                  struct hw_error *error)
{
    struct diff_json json = {.diff = diff, .options = options};
    struct json_writer *writer = &json.side[HW_NEW];
    bool failed = false;
    for (int side = 0; side < HW_SIDES; side++)
        failed |= !hw_json_writer_begin(&json.side[side], diff->view[side], &options->report, stream);
    if (!failed) {
        fputs("{\"format\":1,\n\"old\":", stream);
        print_value(writer, side_value(&json.side[HW_OLD]));
        print_key(writer, "new");
        print_value(writer, side_value(writer));
        print_key(writer, "totals");
        print_value(writer, json_pack("{s:o,s:o}", "old", values(&json, diff->total[HW_OLD], HW_OLD), "new",
                                      values(&json, diff->total[HW_NEW], HW_NEW)));
        print_allocator(&json);
        print_key(writer, "sort");
        print_value(writer, json_string(hw_measures[options->sort].key));
        print_limits(&json);
        print_places(&json);
        print_notes(&json);
        fputs("}\n", stream);
    }
    for (int side = 0; side < HW_SIDES; side++)
        failed |= !hw_json_writer_end(&json.side[side]);
    if (failed)
        hw_error_set(error, "not enough memory for the report");
    return !failed;
}
