/* json_fields.c - counted fields and findings in the JSON report. */
#include "report/view/analyse.h"
#include "report/view/sampled_fields.h"
#include "report/json/json.h"

static json_t *field_value(struct json_writer *writer, const struct hw_profile_struct *structure,
                           const struct hw_profile_field *field)
{
    json_t *object = json_object();
    set_text(writer, object, "name", field->name);
    set_count(writer, object, "offset", field->offset);
    set_count(writer, object, "size", field->size);
    if (field->flags & HW_FIELD_BITS) {
        set_count(writer, object, "bit_offset", field->bit_offset);
        set_count(writer, object, "bit_size", field->bit_size);
    }
    set_text(writer, object, "type", known(field->type_name));
    set_nonzero(writer, object, "line", field->line);
    set_count(writer, object, "reads", field->reads);
    set_count(writer, object, "writes", field->writes);
    if (hw_view_fields(writer->view)->sampled) {
        const double all = (double)structure->reads + (double)structure->writes;
        set(writer, object, "share", json_real(all > 0 ? ((double)field->reads + (double)field->writes) / all : 0));
        set(writer, object, "share_error", field->share_error < 0 ? json_null() : json_real(field->share_error));
    }
    if (field->inherited_reads || field->inherited_writes) {
        set_count(writer, object, "inherited_reads", field->inherited_reads);
        set_count(writer, object, "inherited_writes", field->inherited_writes);
    }
    if (field->possible_reads || field->possible_writes) {
        set_count(writer, object, "possible_reads", field->possible_reads);
        set_count(writer, object, "possible_writes", field->possible_writes);
    }
    if (field->unseen)
        set(writer, object, "used_by_uncounted_code", json_true());
    if (field->flags & HW_FIELD_UNION)
        set(writer, object, "union", json_true());
    if (field->flags & HW_FIELD_ESCAPES)
        set(writer, object, "address_passed_on", json_true());
    return object;
}

static json_t *affinity_value(struct json_writer *writer, const struct hw_struct_analysis *of)
{
    json_t *array = json_array();
    for (size_t i = 0; i < of->affinity_count; i++) {
        const struct hw_affinity *pair = &of->affinity[i];
        json_t *object = json_object();
        set_text(writer, object, "a", of->units.fields[pair->a].name);
        set_text(writer, object, "b", of->units.fields[pair->b].name);
        set_count(writer, object, "together", pair->together);
        set_count(writer, object, "weight", pair->weight);
        append(writer, array, object);
    }
    return array;
}

#define MOST_USES 64

/* The most frequent uses. */
static json_t *uses_value(struct json_writer *writer, const struct hw_struct_analysis *of)
{
    const struct hw_visits *visits = &of->visits;
    const bool suggested = of->suggestion.kind != HW_SUGGEST_NOTHING;
    json_t *array = json_array();
    for (size_t i = 0; i < visits->count && i < MOST_USES; i++) {
        const struct hw_visit *visit = &visits->visits[i];
        json_t *object = json_object(), *fields = json_array();
        for (size_t k = 0; k < visit->touch_count; k++)
            append(writer, fields,
                   text_value(writer, of->units.fields[visits->touches[visit->first_touch + k].field].name));
        set(writer, object, "fields", fields);
        set(writer, object, "executions", json_real(visit->executions));
        set(writer, object, "lines", of->lines.per_use > 0 ? json_real(visit->lines) : json_null());
        set(writer, object, "lines_suggested", suggested ? json_real(visit->suggested_lines) : json_null());
        append(writer, array, object);
    }
    return array;
}

static void add_layout(struct json_writer *writer, json_t *array, const struct hw_struct_analysis *of,
                       const struct hw_layout *layout, const char *part)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct hw_unit *unit = &of->units.units[layout->order[i]];
        for (uint32_t k = 0; k < unit->field_count; k++) {
            const struct hw_profile_field *field = &of->units.fields[unit->first_field + k];
            json_t *object = json_object();
            set_text(writer, object, "name", field->name);
            set_count(writer, object, "offset", layout->offsets[unit->first_field + k]);
            set_count(writer, object, "size", field->size);
            if (part)
                set(writer, object, "part", json_string(part));
            append(writer, array, object);
        }
    }
}

static json_t *suggestion_value(struct json_writer *writer, const struct hw_struct_analysis *of)
{
    const struct hw_suggestion *suggestion = &of->suggestion;
    const bool split = suggestion->kind == HW_SUGGEST_SPLIT;
    if (suggestion->kind == HW_SUGGEST_NOTHING)
        return json_null();
    json_t *object = json_object(), *layout = json_array();
    struct hw_buffer definition = {0};
    set(writer, object, "kind", json_string(split ? "split" : "reorder"));
    add_layout(writer, layout, of, &suggestion->hot, split ? "hot" : NULL);
    if (split)
        add_layout(writer, layout, of, &suggestion->cold, "cold");
    set(writer, object, "layout", layout);
    set(writer, object, "lines_before", json_real(of->lines.per_use));
    set(writer, object, "lines_after", json_real(suggestion->lines.per_use));
    set_count(writer, object, "size_before", of->structure->size);
    set_count(writer, object, "size_after", suggestion->hot.size);
    if (split)
        set_count(writer, object, "cold_size", suggestion->cold.size);
    hw_add_definition(&definition, of);
    set_text(writer, object, "definition", hw_buffer_text(&definition));
    writer->failed |= definition.failed;
    hw_buffer_free(&definition);
    return object;
}

/* How many blocks begin at bytes 0, 8, … of a line; null: not counted. */
static json_t *starts_value(struct json_writer *writer, const struct hw_objects *objects)
{
    uint64_t starts[8] = {0}, any = 0;
    for (size_t i = 0; i < objects->context_count; i++)
        for (size_t k = 0; k < 8; k++)
            starts[k] = hw_add_saturating(starts[k], writer->view->contexts[objects->contexts[i]].sum.starts[k]);
    json_t *array = json_array();
    for (size_t k = 0; k < 8; k++) {
        any |= starts[k];
        append(writer, array, json_integer((json_int_t)(starts[k] & INT64_MAX)));
    }
    if (any)
        return array;
    json_decref(array);
    return json_null();
}

static json_t *objects_value(struct json_writer *writer, const struct hw_objects *objects)
{
    static const char *const placements[] = {
        [HW_PLACE_UNKNOWN] = NULL, [HW_PLACE_SINGLE] = "blocks", [HW_PLACE_ARRAY] = "arrays"};
    if (objects->placement == HW_PLACE_UNKNOWN)
        return json_null();
    json_t *object = json_object();
    set_count(writer, object, "allocated", objects->allocated);
    set_count(writer, object, "at_once", objects->live);
    set_count(writer, object, "bytes_at_once", objects->live_bytes);
    set(writer, object, "placement", json_string(placements[objects->placement]));
    set(writer, object, "by_size", json_boolean(objects->by_size));
    set(writer, object, "starts", starts_value(writer, objects));
    set(writer, object, "starts_assumed", json_boolean(objects->starts_assumed));
    return object;
}

static json_t *contexts_value(struct json_writer *writer, const uint32_t *contexts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        append(writer, array, json_integer(writer->view->contexts[contexts[i]].sum.id));
    return array;
}

static json_t *struct_value(struct json_writer *writer, const struct hw_struct_analysis *of)
{
    const struct hw_profile_struct *structure = of->structure;
    json_t *object = json_object(), *fields = json_array();
    set_text(writer, object, "struct", structure->name);
    set_count(writer, object, "size", structure->size);
    set_text(writer, object, "file", known(structure->file));
    set_nonzero(writer, object, "line", structure->line);
    set_count(writer, object, "reads", structure->reads);
    set_count(writer, object, "writes", structure->writes);
    set_count(writer, object, "inherited_reads", structure->inherited_reads);
    set_count(writer, object, "inherited_writes", structure->inherited_writes);
    set_count(writer, object, "padding", of->padding);
    set(writer, object, "uses", json_real(of->visits.executions));
    const bool measured = of->lines.per_use > 0;
    set(writer, object, "lines_per_use", measured ? json_real(of->lines.per_use) : json_null());
    set(writer, object, "lines_needed", measured ? json_real(of->lines.needed) : json_null());
    set(writer, object, "bytes_needed", measured ? json_real(of->lines.bytes_needed) : json_null());
    set(writer, object, "lines_brought_in", measured ? json_real(of->lines.missed) : json_null());
    set(writer, object, "fragmentation", measured ? json_real(of->fragmentation) : json_null());
    set_count(writer, object, "adjacent_field_ratio", of->rfc_ratio);
    set(writer, object, "objects", objects_value(writer, &of->objects));
    set(writer, object, "contexts", contexts_value(writer, of->objects.contexts, of->objects.context_count));
    for (size_t i = 0; i < structure->field_count; i++)
        append(writer, fields, field_value(writer, structure, &of->units.fields[i]));
    set(writer, object, "fields", fields);
    set(writer, object, "most_frequent_uses", uses_value(writer, of));
    set(writer, object, "affinity", affinity_value(writer, of));
    set(writer, object, "affinity_complete", json_boolean(!of->affinity_cut));
    set_count(writer, object, "affinity_windows", hw_view_fields(writer->view)->info.windows);
    set(writer, object, "suggestion", suggestion_value(writer, of));
    set_text(writer, object, "order_stays_because", hw_layout_reason(of->units.verdict));
    return object;
}

/* What sampled fields have before the list of structs. */
static void print_sampled(struct json_writer *writer)
{
    const struct hw_sampled_fields *sampled = writer->view->sampled_fields;
    json_t *accesses = json_object();
    set_count(writer, accesses, "total", sampled->kinds.all);
    set_count(writer, accesses, "to_fields", sampled->kinds.fields);
    set_count(writer, accesses, "to_scalars", sampled->kinds.scalars);
    set_count(writer, accesses, "to_unknown_types", sampled->kinds.unknown);
    fprintf(writer->stream, "{\"bursts\":%llu,\"accesses\":", (unsigned long long)sampled->bursts);
    print_value(writer, accesses);
    fputs(",\"structs\":", writer->stream);
}

void hw_json_fields(struct json_writer *writer)
{
    const struct hw_analysis *analysis = writer->analysis;
    const size_t top = writer->options->top ? writer->options->top : SIZE_MAX;
    size_t shown = 0;
    const struct hw_profile_fields *fields = hw_view_fields(writer->view);
    if (!fields->counted)
        return;
    print_key(writer, fields->sampled ? "sampled_fields" : "fields");
    if (fields->sampled)
        print_sampled(writer);
    fputc('[', writer->stream);
    for (size_t i = 0; i < analysis->struct_count && shown < top && !writer->failed && !ferror(writer->stream); i++) {
        if (!hw_report_wants_struct(writer->options, analysis->structs[i].structure))
            continue;
        fputs(shown++ ? ",\n" : "\n", writer->stream);
        print_value(writer, struct_value(writer, &analysis->structs[i]));
    }
    fputs(fields->sampled ? "\n]}" : "\n]", writer->stream);
}

/* ---- findings ---- */

static json_t *finding_value(struct json_writer *writer, const struct hw_finding *finding, size_t rank,
                             struct hw_advice *words)
{
    const struct hw_analysis *analysis = writer->analysis;
    json_t *object = json_object();
    hw_finding_words(writer->view, analysis, finding, HW_CLEAN_JSON, words);
    set(writer, object, "kind", json_string(hw_finding_kind_names[finding->kind]));
    set_count(writer, object, "rank", rank);
    set_advice(writer, object, words);
    set(writer, object, "gain_lines", finding->lines >= 1 ? json_real(finding->lines) : json_null());
    if (finding->kind == HW_FINDING_LAYOUT)
        set(writer, object, "gain_lines_in_order",
            finding->lines_in_order >= 1 ? json_real(finding->lines_in_order) : json_null());
    set(writer, object, "gain_bytes", finding->bytes >= 1 ? json_real(finding->bytes) : json_null());
    set(writer, object, "certain", json_boolean(finding->certain));
    set_text(writer, object, "struct",
             finding->structure == SIZE_MAX ? NULL : analysis->structs[finding->structure].structure->name);
    set(writer, object, "contexts", contexts_value(writer, finding->contexts, finding->context_count));
    if (finding->context_count &&
        (finding->kind == HW_FINDING_FALSE_SHARING || finding->kind == HW_FINDING_SHARED_WRITES))
        set(writer, object, "sides",
            hw_json_sides(writer, finding->contexts[0],
                          finding->kind == HW_FINDING_FALSE_SHARING ? HW_SHARING_FALSE : HW_SHARING_UNTOLD));
    return object;
}

void hw_json_findings(struct json_writer *writer)
{
    const struct hw_analysis *analysis = writer->analysis;
    struct hw_advice words = {0};
    const struct hw_profile *profile = writer->view->profile;
    if (!profile->fields.counted && !profile->access_counted && !profile->accesses_sampled && !profile->content_search &&
        !profile->heap_pages && !analysis->finding_count)
        return;
    print_key(writer, "findings");
    fputc('[', writer->stream);
    size_t shown = 0;
    for (size_t i = 0; i < analysis->finding_count && !writer->failed && !ferror(writer->stream); i++) {
        if (!hw_report_wants_finding(writer->options, analysis, &analysis->findings[i]))
            continue;
        fputs(shown++ ? ",\n" : "\n", writer->stream);
        print_value(writer, finding_value(writer, &analysis->findings[i], i + 1, &words));
    }
    fputs("\n]", writer->stream);
    writer->failed |= !hw_advice_free(&words);
}
