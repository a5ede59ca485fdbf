/* json_types.c - "types" of the JSON report: the heap by type; and what the blocks of a context are. */
#include "report/json/json.h"

#include <stdlib.h>
#include <string.h>

#include "report/view/block_types.h"

void hw_json_set_type(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum)
{
    const char *type = hw_view_type(writer->view, sum);
    const uint32_t evidence = sum->type_evidence ? sum->type_evidence : HW_TYPE_RUN;
    set_text(writer, object, "type", type);
    if (!type)
        return;
    set_text(writer, object, "type_from", hw_type_evidence_key(evidence));
    set_known(writer, object, "type_size", sum->type_size, sum->type_size);
    set(writer, object, "type_array", sum->type_evidence ? json_boolean(sum->type_many) : json_null());
}

static void set_amount(struct json_writer *writer, json_t *counts, const char *key, enum hw_measured measured,
                       int64_t amount)
{
    set_known(writer, counts, key, hw_view_measured(writer->view, measured), amount > 0 ? (uint64_t)amount : 0);
}

static json_t *type_value(struct json_writer *writer, const struct hw_type_sum *type)
{
    const struct hw_view *view = writer->view;
    const struct hw_profile_context *sum = &type->sum;
    json_t *object = json_object(), *from = json_array(), *contexts = json_array(), *counts = object;
    set_text(writer, object, "type", type->name);
    set_known(writer, object, "size", type->size, type->size);
    for (uint32_t i = 0; i < HW_TYPE_EVIDENCES; i++)
        if (type->evidence >> i & 1)
            append(writer, from, json_string(hw_type_evidence_key(i)));
    set(writer, object, "from", from);
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_profile_context *context = &view->contexts[i].sum;
        const char *name = context->type == sum->type && !context->pool ? hw_view_type(view, context) : NULL;
        if (name && !strcmp(name, type->name))
            append(writer, contexts, json_integer(context->id));
    }
    set(writer, object, "contexts", contexts);
    if (writer->sampled)
        set(writer, object, "sampled", counts = json_object());
    set_count(writer, counts, "allocations", sum->allocations);
    set_count(writer, counts, "bytes", sum->bytes);
    set_amount(writer, counts, "peak_bytes", HW_MEASURED_PEAK, sum->peak_bytes);
    set_amount(writer, counts, "peak_blocks", HW_MEASURED_PEAK, sum->peak_blocks);
    set_amount(writer, counts, "live_bytes", HW_MEASURED_LIVE, sum->live_bytes);
    set_amount(writer, counts, "live_blocks", HW_MEASURED_LIVE, sum->live_blocks);
    return object;
}

void hw_json_types(struct json_writer *writer)
{
    size_t count;
    struct hw_type_sum *sums = hw_type_sums(writer->view, &count);
    json_t *types = json_array();
    writer->failed |= !sums;
    for (size_t i = 0; sums && i < count && (!writer->options->top || i < writer->options->top); i++)
        append(writer, types, type_value(writer, &sums[i]));
    free(sums);
    print_key(writer, "types");
    print_value(writer, types);
}
