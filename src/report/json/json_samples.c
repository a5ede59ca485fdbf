/* json_samples.c - sampled accesses in the JSON report: all under "sampled", where nothing is exact. */
#include "report/json/json.h"

#include <stdlib.h>

#include "base/order.h"

static void set_pair(struct json_writer *writer, json_t *object, uint64_t reads, uint64_t writes)
{
    set_count(writer, object, "reads", reads);
    set_count(writer, object, "writes", writes);
}

static json_t *pair_value(struct json_writer *writer, uint64_t reads, uint64_t writes)
{
    json_t *object = json_object();
    set_pair(writer, object, reads, writes);
    return object;
}

static json_t *words_value(struct json_writer *writer, size_t context)
{
    size_t count;
    const struct hw_sample_count *words = hw_view_sample_counts(writer->view, HW_SAMPLE_WORD, context, &count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        set_count(writer, object, "offset", words[i].offset);
        set_count(writer, object, "bytes", words[i].bytes);
        set_pair(writer, object, words[i].reads, words[i].writes);
        append(writer, array, object);
    }
    return array;
}

static int compare_places(const void *left, const void *right)
{
    const struct hw_sample_count *a = left, *b = right;
    const uint64_t x = a->reads + a->writes, y = b->reads + b->writes;
    return HW_ORDER(y, x) ?: HW_ORDER(a->map, b->map);
}

#define PLACES_MOST 10

static json_t *places_value(struct json_writer *writer, size_t context)
{
    const struct hw_view *view = writer->view;
    size_t count;
    const struct hw_sample_count *places = hw_view_sample_counts(view, HW_SAMPLE_PLACE, context, &count);
    struct hw_sample_count *sorted = malloc((count + 1) * sizeof *sorted);
    json_t *array = json_array();
    if (!sorted)
        writer->failed = true;
    for (size_t i = 0; sorted && i < count; i++)
        sorted[i] = places[i];
    if (sorted)
        qsort(sorted, count, sizeof *sorted, compare_places);
    for (size_t i = 0; sorted && i < count && i < PLACES_MOST; i++) {
        const struct hw_view_location *location = &view->locations[sorted[i].map];
        const struct hw_frame *frame = location->frames.frame;
        json_t *object = json_object();
        set_text(writer, object, "function", known(frame->function));
        set_text(writer, object, "file", known(frame->file));
        set_nonzero(writer, object, "line", frame->line);
        set_text(writer, object, "module",
                 location->module == HW_NONE ? NULL : known(view->modules[location->module].path));
        set_count(writer, object, "offset", location->address);
        set_pair(writer, object, sorted[i].reads, sorted[i].writes);
        append(writer, array, object);
    }
    free(sorted);
    return array;
}

void hw_json_context_samples(struct json_writer *writer, json_t *object, const struct hw_view_context *context)
{
    const struct hw_sample_context *sum = &writer->view->sampled[context->index];
    const struct hw_sample_info *info = &writer->view->profile->sample_info;
    json_t *sampled = json_object_get(object, "sampled");
    if (!sampled)
        set(writer, object, "sampled", sampled = json_object());
    json_t *accesses = json_object(), *lines = json_object();
    const uint64_t all = hw_add_saturating(info->heap_reads, info->heap_writes);
    set_pair(writer, accesses, sum->reads, sum->writes);
    set(writer, accesses, "share_percent",
        all ? json_real(100.0 * (double)hw_add_saturating(sum->reads, sum->writes) / (double)all) : json_null());
    set_count(writer, lines, "seen", sum->lines);
    set_count(writer, lines, "shared", sum->lines_shared);
    set_count(writer, lines, "true_shared", sum->lines_true_shared);
    set_count(writer, lines, "false_shared", sum->lines_false_shared);
    set_count(writer, lines, "several_writers", sum->lines_writers);
    set(writer, accesses, "lines", lines);
    set(writer, accesses, "words", words_value(writer, context->index));
    set(writer, accesses, "places", places_value(writer, context->index));
    set(writer, sampled, "accesses", accesses);
}

/* The member "sampled" of the report: how accesses were sampled, and where they fell. */
void hw_json_samples(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_sample_info *info = &view->profile->sample_info;
    if (!view->profile->accesses_sampled)
        return;
    json_t *sampled = json_object(), *object = json_object(), *where = json_object(), *given_up = json_object();
    set_text(writer, object, "source",
             info->source == HW_SAMPLE_TRAP   ? "trap flag"
             : info->source == HW_SAMPLE_PMU  ? "pmu"
             : info->source == HW_SAMPLE_BOTH ? "both"
                                              : NULL);
    if (view->profile->process.flags & HW_PROCESS_MERGED) {
        set_count(writer, object, "runs", info->runs);
        set_count(writer, object, "runs_ended", info->runs_ended);
    }
    set_text(writer, object, "ended_because", hw_sample_ended(info));
    set_count(writer, object, "frequency", info->frequency);
    set_nonzero(writer, object, "burst_length", info->burst_length);
    set_nonzero(writer, object, "weight", info->period);
    set_count(writer, object, "threads", info->threads);
    set_count(writer, object, "bursts", info->bursts);
    set_count(writer, object, "instructions", info->instructions);
    set_count(writer, object, "steps", info->steps);
    set_count(writer, object, "samples", hw_add_saturating(info->reads, info->writes));
    set_pair(writer, object, info->reads, info->writes);
    set(writer, where, "heap", pair_value(writer, info->heap_reads, info->heap_writes));
    set(writer, where, "globals", pair_value(writer, info->global_reads, info->global_writes));
    set(writer, where, "stack", pair_value(writer, info->stack_reads, info->stack_writes));
    set(writer, where, "thread_local", pair_value(writer, info->thread_reads, info->thread_writes));
    const uint64_t reads = info->heap_reads + info->global_reads + info->stack_reads + info->thread_reads;
    const uint64_t writes = info->heap_writes + info->global_writes + info->stack_writes + info->thread_writes;
    set(writer, where, "elsewhere",
        pair_value(writer, info->reads > reads ? info->reads - reads : 0,
                   info->writes > writes ? info->writes - writes : 0));
    set(writer, object, "where", where);
    set_count(writer, given_up, "in_runtime", info->in_runtime);
    set_count(writer, given_up, "in_system_calls", info->in_kernel);
    set_count(writer, given_up, "signal_blocked", info->blocked);
    set(writer, object, "moments_given_up", given_up);
    set_count(writer, object, "bursts_cut", info->cut);
    set_count(writer, object, "instructions_not_decoded", info->unknown);
    set_count(writer, object, "lost", info->lost);
    set_count(writer, object, "throttled", info->throttled);
    set(writer, sampled, "accesses", object);
    if (!view->profile->access_counted) {
        json_t *globals = json_array();
        for (size_t i = 0; i < view->global_count && (!writer->options->top || i < writer->options->top); i++)
            append(writer, globals, hw_json_global(writer, &view->globals[i]));
        set(writer, sampled, "globals", globals);
    }
    print_key(writer, "sampled");
    print_value(writer, sampled);
}
