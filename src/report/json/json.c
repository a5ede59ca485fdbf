/* json.c - the report for a program. docs/json.md explains the keys.
 *
 * Objects are made with jansson, one at a time; the large arrays are streamed, a context on a line. A frame occurs in
 * many stacks: it is turned into text once. */
#include "report/json/json.h"

#include <stdlib.h>
#include <string.h>

#include "report/view/analyse.h"
#include "report/view/frame_roles.h"
#include "report/view/merged.h"
#include "report/view/rules.h"
#include "report/view/suppressions.h"
#include "report/words/not_observed.h"

static void set_build_id(struct json_writer *writer, json_t *object, const struct hw_view_module *module)
{
    char hex[2 * sizeof((struct hw_map_entry *)0)->build_id + 1];
    if (!module || !module->build_id_size) {
        set(writer, object, "build_id", json_null());
        return;
    }
    hw_hex(hex, module->build_id, module->build_id_size);
    set(writer, object, "build_id", json_string(hex));
}

/* An object of its own, or in sampled runs the one below "sampled": counts that are estimates never stand under the
 * key of an exact number. */
static json_t *counts_of(struct json_writer *writer, json_t *object, uint64_t samples)
{
    if (!writer->sampled)
        return object;
    json_t *sampled = json_object();
    set(writer, object, "sampled", sampled);
    set_count(writer, sampled, "samples", samples);
    return sampled;
}

/* Turns what this kind of file does not have into null: above, missing totals are zeros. */
static void hide_unmeasured(struct json_writer *writer, json_t *object)
{
    static const struct {
        const char *key;
        enum hw_measured what;
    } keys[] = {
        {"pid", HW_MEASURED_PROCESS},
        {"parent_pid", HW_MEASURED_PROCESS},
        {"command", HW_MEASURED_PROCESS},
        {"started_ns", HW_MEASURED_PROCESS},
        {"duration_ns", HW_MEASURED_PROCESS},
        {"options", HW_MEASURED_PROCESS},
        {"forked", HW_MEASURED_PROCESS},
        {"cpus", HW_MEASURED_PROCESS},
        {"threads", HW_MEASURED_PROCESS},
        {"threads_at_once", HW_MEASURED_PROCESS},
        {"failed_allocations", HW_MEASURED_PROCESS},
        {"foreign_frees", HW_MEASURED_PROCESS},
        {"foreign_reallocations", HW_MEASURED_PROCESS},
        {"nested_calls", HW_MEASURED_PROCESS},
        {"lost_events", HW_MEASURED_PROCESS},
        {"never_accessed", HW_MEASURED_GRANULES},
        {"utilization_percent", HW_MEASURED_GRANULES},
        {"sharing", HW_MEASURED_GRANULES},
        {"globals", HW_MEASURED_GRANULES},
        {"frees", HW_MEASURED_EVENTS},
        {"reallocations", HW_MEASURED_EVENTS},
        {"temporary_allocations", HW_MEASURED_EVENTS},
        {"allocations", HW_MEASURED_TOTALS},
        {"bytes_allocated", HW_MEASURED_TOTALS},
        {"live_allocations", HW_MEASURED_LIVE},
        {"live_bytes", HW_MEASURED_LIVE},
        {"peak_bytes", HW_MEASURED_PEAK},
        {"last_alloc", HW_MEASURED_LAST},
        {"last_free", HW_MEASURED_LAST},
    };
    static const struct {
        const char *object, *keys[2];
        enum hw_measured what;
    } parts[] = {{"accesses", {"live", "live_blocks"}, HW_MEASURED_LIVE},
                 {"sampled", {"live_allocations", "live_bytes"}, HW_MEASURED_LIVE},
                 {"sampled", {"peak_allocations", "peak_bytes"}, HW_MEASURED_PEAK}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!hw_view_measured(writer->view, keys[i].what) && json_object_get(object, keys[i].key))
            set(writer, object, keys[i].key, json_null());
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        json_t *part = json_object_get(object, parts[i].object);
        for (size_t k = 0; k < 2 && json_is_object(part) && !hw_view_measured(writer->view, parts[i].what); k++)
            if (json_object_get(part, parts[i].keys[k]))
                set(writer, part, parts[i].keys[k], json_null());
    }
}

/* ---- process and totals ---- */

static json_t *exit_value(struct json_writer *writer)
{
    const struct hw_process_info *process = &writer->view->profile->process;
    static const char *const keys[] = {[HW_EXIT_CODE] = "code", [HW_EXIT_SIGNAL] = "signal"};
    if (process->exit_kind == HW_EXIT_EXEC)
        return json_pack("{s:b}", "exec", 1);
    if (process->exit_kind == HW_EXIT_DETACHED)
        return json_pack("{s:b}", "detached", 1);
    if (process->exit_kind != HW_EXIT_CODE && process->exit_kind != HW_EXIT_SIGNAL)
        return json_null();
    json_t *object = json_pack("{s:i}", keys[process->exit_kind], (int)process->exit_value);
    if (process->oom_kills)
        set_count(writer, object, "oom_kills", process->oom_kills);
    return object;
}

/* A process that was started with --paused. */
static json_t *periods_value(const struct hw_profile *profile)
{
    static const char *const states[] = {
        [HW_COUNTING_WAITS] = "waits", [HW_COUNTING_ON] = "on", [HW_COUNTING_STOPPED] = "stopped"};
    const struct hw_process_info *info = &profile->process;
    const bool began = info->flags & HW_PROCESS_RESET;
    const uint64_t from = hw_profile_counted_from_ns(profile);
    json_t *object = json_object();
    json_object_set_new(object, "state",
                        json_string(info->counting <= HW_COUNTING_STOPPED ? states[info->counting] : "unknown"));
    json_object_set_new(object, "periods", json_integer((json_int_t)info->periods));
    json_object_set_new(object, "began_ns", began ? json_integer((json_int_t)from) : json_null());
    json_object_set_new(object, "ended_ns",
                        info->counting == HW_COUNTING_STOPPED
                            ? json_integer((json_int_t)hw_profile_ticks_to_ns(profile, info->end_tick))
                            : json_null());
    return object;
}

static json_t *process_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_process_info *info = &profile->process;
    const struct hw_view_module *program = NULL;
    for (size_t i = 0; i < writer->view->module_count && !program; i++)
        if (writer->view->modules[i].flags & HW_MAP_MAIN)
            program = &writer->view->modules[i];
    json_t *object = json_object(), *command = json_array();
    set_text(writer, object, "file", profile->path);
    set_count(writer, object, "pid", info->pid);
    set_count(writer, object, "parent_pid", info->parent_pid);
    for (size_t i = 0; i < profile->command_count; i++)
        append(writer, command, text_value(writer, profile->command[i]));
    set(writer, object, "command", command);
    set_text(writer, object, "executable", known(profile->executable));
    set_build_id(writer, object, program);
    set_count(writer, object, "started_ns", info->start_realtime_ns);
    set_count(writer, object, "duration_ns", profile->duration_ns);
    set(writer, object, "exit", exit_value(writer));
    set_text(writer, object, "state",
             hw_is_merged(profile)                                                                       ? "merged"
             : info->flags & HW_PROCESS_DUMP                                                             ? "dumped"
             : profile->running                                                                          ? "running"
             : profile->sealed || info->exit_kind == HW_EXIT_CODE || info->exit_kind == HW_EXIT_DETACHED ? "ended"
                                                                                                         : "unknown");
    if (info->counting)
        set(writer, object, "counting", periods_value(profile));
    set_text(writer, object, "mode", hw_mode_name(info->mode));
    set_text(writer, object, "allocator", known(profile->allocator));
    set_text(writer, object, "allocator_path", known(profile->allocator_path));
    set_text(writer, object, "options", profile->options);
    set_nonzero(writer, object, "sample_bytes", info->sample_bytes);
    set(writer, object, "forked", json_boolean(info->flags & HW_PROCESS_FORKED));
    set(writer, object, "attached", json_boolean(info->flags & HW_PROCESS_ATTACHED));
    set_nonzero(writer, object, "older_bytes", info->older_bytes);
    set_count(writer, object, "cpus", info->cpus);
    if (profile->access_counted)
        set(writer, object, "access", hw_json_access_info(writer));
    if (profile->llvm)
        set(writer, object, "llvm",
            json_pack("{s:s,s:i,s:I}", "kind", profile->llvm->kind, "version", (int)profile->llvm->version, "dumps",
                      (json_int_t)profile->llvm->dumps));
    if (hw_is_merged(profile)) {
        set_count(writer, object, "runs", info->runs);
        set(writer, object, "pid", json_null());
        set(writer, object, "parent_pid", json_null());
    }
    hide_unmeasured(writer, object);
    return object;
}

/* What was live at the fork or the reset. In allocator mode frees of such blocks are among all others. */
static json_t *total_inherited(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    json_t *object = json_object();
    set_signed(writer, object, "allocations", view->profile->process.inherited_blocks);
    set_signed(writer, object, "bytes", view->profile->process.inherited_bytes);
    uint64_t frees = 0, bytes = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        frees += view->contexts[i].sum.inherited_frees;
        bytes += view->contexts[i].sum.inherited_freed_bytes;
    }
    if (!view->profile->observed) {
        set_count(writer, object, "frees", frees);
        set_count(writer, object, "freed_bytes", bytes);
    }
    return object;
}

static json_t *totals_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_thread_entry *totals = &writer->view->totals;
    const struct hw_process_info *info = &profile->process;
    const uint64_t peak_rss = hw_view_peak_rss(profile);
    json_t *object = json_object(), *counts = counts_of(writer, object, writer->view->samples);
    set_count(writer, counts, "allocations", totals->allocations);
    set_count(writer, counts, "frees", totals->frees);
    set_known(writer, counts, "reallocations", !writer->sampled, totals->reallocations);
    set_count(writer, counts, "bytes_allocated", totals->bytes);
    set_count(writer, counts, "peak_bytes", info->peak_bytes);
    set_signed(writer, counts, "live_allocations", totals->live_blocks);
    set_signed(writer, counts, "live_bytes", totals->live_bytes);
    if (profile->observed) { /* exact, although its contexts are estimates */
        set_count(writer, object, "allocations", totals->allocations);
        set_count(writer, object, "frees", totals->frees);
        set_count(writer, object, "reallocations", totals->reallocations);
        if (hw_profile_bytes_exact(profile))
            set_count(writer, object, "bytes_allocated", totals->bytes);
    }
    if (profile->observed && profile->observed->info.flags & HW_ALLOCATOR_PLACES) {
        set_count(writer, object, "peak_bytes", info->peak_bytes);
        set_signed(writer, object, "live_allocations", totals->live_blocks);
        set_signed(writer, object, "live_bytes", totals->live_bytes);
    }
    set_known(writer, counts, "temporary_allocations", !writer->sampled, totals->temporary);
    if (hw_is_merged(profile))
        set_count(writer, counts, "peak_bytes_most", info->peak_bytes_most);
    set_known(writer, object, "peak_time_ns", info->peak_bytes && !hw_is_merged(profile), profile->peak_time_ns);
    set_count(writer, object, "threads", info->threads_seen);
    set_count(writer, object, "threads_at_once", info->threads_most);
    set_count(writer, object, "contexts", writer->view->context_count);
    set_nonzero(writer, object, "peak_rss_bytes", peak_rss);
    set_count(writer, object, "failed_allocations", totals->failed);
    set_count(writer, object, "foreign_frees", totals->foreign_frees);
    set_count(writer, object, "foreign_reallocations", totals->foreign_reallocs);
    set_count(writer, object, "nested_calls", totals->nested);
    set_count(writer, object, "lost_events", totals->lost);
    if (profile->access_counted)
        hw_json_total_accesses(writer, counts);
    if (info->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET))
        set(writer, object, "inherited", total_inherited(writer));
    hide_unmeasured(writer, object);
    return object;
}

/* ---- stacks ---- */

json_t *hw_json_frame(struct json_writer *writer, const struct hw_view_location *location, uint32_t index)
{
    const struct hw_frame *symbol = &location->frames.frame[index];
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &writer->view->modules[location->module];
    json_t *object = json_object();
    set_text(writer, object, "function", symbol->function);
    set_text(writer, object, "file", symbol->file);
    set_nonzero(writer, object, "line", symbol->line);
    set_nonzero(writer, object, "column", symbol->column);
    if (symbol->discriminator)
        set_count(writer, object, "discriminator", symbol->discriminator);
    set_text(writer, object, "module", module ? known(module->path) : NULL);
    const bool no_address = hw_view_llvm_frame(writer->view, location) != NULL;
    set(writer, object, "offset", no_address ? json_null() : json_integer((json_int_t)location->address));
    if (symbol->relative_line)
        set_count(writer, object, "line_in_function", symbol->relative_line);
    set(writer, object, "inlined", json_boolean(symbol->inlined));
    if (hw_location_role(location, index) & HW_FRAME_WRAPPER)
        set(writer, object, "wrapper", json_true());
    return object;
}

/* The frames of a location, separated by commas. */
static const struct hw_buffer *location_frames(struct json_writer *writer, uint32_t index)
{
    struct hw_buffer *text = &writer->stacks[index];
    const struct hw_view_location *location = &writer->view->locations[index];
    if (text->data)
        return text;
    for (uint32_t i = 0; i < location->frames.count; i++) {
        json_t *frame = hw_json_frame(writer, location, i);
        hw_buffer_bytes(text, ",", i > 0);
        hw_buffer_json(text, frame, JSON_STYLE);
        json_decref(frame);
    }
    return text;
}

void hw_json_stack(struct json_writer *writer, uint32_t leaf)
{
    const struct hw_view *view = writer->view;
    fputs("\"stack\":[", writer->stream);
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const struct hw_buffer *frames = location_frames(writer, view->nodes[node].location);
        if (node != leaf)
            fputc(',', writer->stream);
        fwrite(hw_buffer_text(frames), 1, frames->used, writer->stream);
    }
    fputc(']', writer->stream);
}

void hw_json_with_stack(struct json_writer *writer, json_t *object, uint32_t leaf, bool first)
{
    struct hw_buffer members = {0};
    hw_buffer_json(&members, object, JSON_STYLE);
    fputs(first ? "\n{" : ",\n{", writer->stream);
    hw_json_stack(writer, leaf);
    writer->failed |= members.failed;
    if (!members.failed)
        fprintf(writer->stream, ",%s", members.data + 1); /* without its brace */
    hw_buffer_free(&members);
    json_decref(object);
}

/* ---- contexts ---- */

void hw_json_numbers(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum,
                     enum hw_number_group group)
{
    for (size_t i = 0; i < hw_number_count; i++) {
        const struct hw_number *number = &hw_numbers[i];
        if (number->group != group)
            continue;
        const uint64_t value = number->value(sum);
        set(writer, object, number->json,
            !hw_number_is_known(writer->view, number, sum) ? json_null()
            : number->is_signed                            ? json_integer((json_int_t)value)
                                                           : json_integer(clamped(value)));
    }
}

static void set_sizes(struct json_writer *writer, json_t *counts, const struct hw_profile_context *sum)
{
    json_t *size = sum->allocations ? json_object() : json_null();
    if (sum->allocations) {
        hw_json_numbers(writer, size, sum, HW_GROUP_SIZE);
        set_ratio(writer, size, "mean", sum->bytes, hw_view_mean_fits(writer->view, sum) ? sum->allocations : 0);
    }
    set(writer, counts, "size", size);
}

static void set_lifetimes(struct json_writer *writer, json_t *counts, const struct hw_profile_context *sum)
{
    const bool freed = sum->frees && hw_view_measured(writer->view, HW_MEASURED_LIFETIMES);
    const bool live = sum->live_blocks > 0 && hw_view_measured(writer->view, HW_MEASURED_LIVE);
    json_t *lifetime = freed ? json_object() : json_null(), *age = live ? json_object() : json_null();
    if (freed) {
        hw_json_numbers(writer, lifetime, sum, HW_GROUP_LIFETIME);
        set(writer, lifetime, "mean", json_real((double)sum->lifetime_total_ns / (double)sum->frees));
    }
    if (live) {
        const bool fits = sum->live_age_total_ns != UINT64_MAX;
        hw_json_numbers(writer, age, sum, HW_GROUP_AGE);
        set_ratio(writer, age, "mean", sum->live_age_total_ns, fits ? (uint64_t)sum->live_blocks : 0);
    }
    set(writer, counts, "lifetime_ns", lifetime);
    set(writer, counts, "live_age_ns", age);
}

/* What is estimated in sampled runs. */
static void set_counts(struct json_writer *writer, json_t *counts, const struct hw_profile_context *sum)
{
    const bool exact = !writer->sampled && hw_view_measured(writer->view, HW_MEASURED_EVENTS);
    json_t *moved = exact ? json_object() : json_null();
    hw_json_numbers(writer, counts, sum, HW_GROUP_COUNTS);
    hw_json_numbers(writer, counts, sum, HW_GROUP_AMOUNT);
    set_sizes(writer, counts, sum);
    hw_json_numbers(writer, counts, sum, HW_GROUP_LIVE);
    set_lifetimes(writer, counts, sum);
    hw_json_numbers(writer, counts, sum, HW_GROUP_CPUS);
    if (exact)
        hw_json_numbers(writer, moved, sum, HW_GROUP_REALLOC);
    set(writer, counts, "realloc", moved);
}

static void set_last(struct json_writer *writer, json_t *object, const char *key, bool any, uint64_t ns, uint32_t cpu)
{
    set(writer, object, key,
        any ? json_pack("{s:I,s:I}", "time_ns", (json_int_t)ns, "cpu", (json_int_t)cpu) : json_null());
}

/* All of a context but its id and its stacks. */
static json_t *context_value(struct json_writer *writer, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    json_t *object = json_object();
    const bool whole = sum->leaf && !(sum->flags & HW_CONTEXT_NOT_WHOLE);
    set(writer, object, "stack_complete", json_boolean(whole));
    if (sum->flags & HW_CONTEXT_GAP)
        set(writer, object, "stack_gap", json_true());
    set(writer, object, "pool", json_boolean(sum->pool));
    hw_json_set_type(writer, object, sum);
    json_t *counts = counts_of(writer, object, sum->samples);
    set_counts(writer, counts, sum);
    hw_json_context_distributions(writer, counts, context->index);
    if (sum->access)
        hw_json_accesses(writer, counts, context);
    if (writer->view->sampled)
        hw_json_context_samples(writer, object, context);
    if (writer->view->side_count)
        set(writer, object, "sides", hw_json_sides(writer, context->index, 0));
    hw_json_numbers(writer, object, sum, HW_GROUP_THREADS);
    hw_json_by_thread(writer, object, sum);
    hw_json_numbers(writer, object, sum, HW_GROUP_FIRST);
    set_last(writer, object, "last_alloc", sum->allocations, sum->last_alloc_ns, sum->last_alloc_cpu);
    set_last(writer, object, "last_free", sum->frees, sum->last_free_ns, sum->last_free_cpu);
    /* Of a reset in allocator mode only estimates are known by context. */
    if (writer->view->profile->process.flags &
        (HW_PROCESS_FORKED | (writer->view->profile->observed ? 0 : HW_PROCESS_RESET))) {
        json_t *inherited = json_object();
        hw_json_numbers(writer, inherited, sum, HW_GROUP_INHERITED);
        set(writer, object, "inherited", inherited);
    }
    if (hw_view_measured(writer->view, HW_MEASURED_LEAKS)) {
        json_t *leaks = json_object();
        hw_json_numbers(writer, leaks, sum, HW_GROUP_LEAKS);
        set(writer, object, "leaks", leaks);
    }
    hide_unmeasured(writer, object);
    return object;
}

static void print_free_stacks(struct json_writer *writer, size_t index)
{
    size_t count;
    const struct hw_view_free_stack *stacks = hw_view_free_stacks(writer->view, index, &count);
    fputs(",\"free_stacks\":[", writer->stream);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",{" : "{", writer->stream);
        hw_json_stack(writer, stacks[i].leaf);
        fprintf(writer->stream, ",\"count\":%llu,\"bytes\":%llu", (unsigned long long)stacks[i].count,
                (unsigned long long)stacks[i].bytes);
        size_t runs;
        const struct hw_profile_words *words = hw_view_freed_words(writer->view, index, stacks[i].leaf, &runs);
        if (runs) {
            fputs(",\"word_histogram\":", writer->stream);
            print_value(writer, hw_json_words(writer, words, runs));
        }
        fputc('}', writer->stream);
    }
    fputc(']', writer->stream);
}

static void print_contexts(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    struct hw_buffer members = {0};
    size_t count;
    uint32_t *order = hw_view_sorted(view->contexts, view->context_count, writer->options->sort, true, &count);
    if (!order) {
        writer->failed = true;
        return;
    }
    if (writer->options->top && writer->options->top < count)
        count = writer->options->top;
    print_key(writer, "contexts");
    fputc('[', writer->stream);
    for (size_t i = 0; i < count && !writer->failed && !ferror(writer->stream); i++) {
        const struct hw_view_context *context = &view->contexts[order[i]];
        json_t *object = context_value(writer, context);
        hw_buffer_clear(&members);
        hw_buffer_json(&members, object, JSON_STYLE);
        fprintf(writer->stream, "%s\n{\"id\":%u,", i ? "," : "", (unsigned)context->sum.id);
        hw_json_stack(writer, context->sum.leaf);
        if (view->profile->free_stack_count)
            print_free_stacks(writer, order[i]);
        writer->failed |= members.failed;
        if (!writer->failed)
            fprintf(writer->stream, ",%s", members.data + 1); /* without its brace */
        json_decref(object);
    }
    fputs("\n]", writer->stream);
    hw_buffer_free(&members);
    free(order);
}

/* ---- the rest ---- */

static void print_timeline(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    print_key(writer, "timeline");
    fputc('[', writer->stream);
    for (size_t i = 0; i < profile->timeline_count; i++) {
        const struct hw_profile_point *point = &profile->timeline[i];
        json_t *object = json_object();
        set_count(writer, object, "time_ns", point->time_ns);
        json_t *counts = object;
        if (writer->sampled)
            set(writer, object, "sampled", counts = json_object());
        set_signed(writer, counts, "live_bytes", point->live_bytes);
        set_count(writer, counts, "allocations", point->allocations);
        set_count(writer, counts, "frees", point->frees);
        set_nonzero(writer, object, "rss_bytes", point->rss_bytes);
        fputs(i ? ",\n" : "\n", writer->stream);
        print_value(writer, object);
    }
    fputs("\n]", writer->stream);
}

/* Live blocks of each place by whether the program could still reach them; and how that was found out. */
static bool is_suppressed(const struct hw_view *view, const struct hw_leak *leak)
{
    const struct hw_view_context *context = view->suppressions ? hw_view_context_of(view, leak->context) : NULL;
    if (!context)
        return false;
    const uint64_t left[HW_LEAK_CLASSES] = {[HW_LEAK_DEFINITE] = context->sum.definite_blocks,
                                            [HW_LEAK_INDIRECT] = context->sum.indirect_blocks,
                                            [HW_LEAK_POSSIBLE] = context->sum.possible_blocks,
                                            [HW_LEAK_REACHABLE] = leak->blocks};
    return left[leak->kind] == 0;
}

static void print_suppressions(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    if (!view->suppressions)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < view->suppressions->count; i++) {
        const struct hw_suppression *by = &view->suppressions->of[i];
        json_t *object = json_object();
        set_text(writer, object, "name", by->name);
        set_text(writer, object, "file", by->file);
        set_count(writer, object, "line", by->line);
        set_count(writer, object, "blocks", view->suppressed[i].blocks);
        set_count(writer, object, "bytes", view->suppressed[i].bytes);
        append(writer, array, object);
    }
    print_key(writer, "suppressions");
    print_value(writer, array);
}

static void print_leaks(struct json_writer *writer)
{
    static const char *const classes[HW_LEAK_CLASSES] = {
        [HW_LEAK_DEFINITE] = "definite",
        [HW_LEAK_INDIRECT] = "indirect",
        [HW_LEAK_POSSIBLE] = "possible",
        [HW_LEAK_REACHABLE] = "reachable",
    };
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_leak_info *info = profile->leak_search;
    json_t *search = info ? json_object() : json_null(), *array = info ? json_array() : json_null();
    for (size_t i = 0; info && i < profile->leak_count; i++) {
        const struct hw_leak *leak = &profile->leaks[i];
        if (is_suppressed(writer->view, leak))
            continue;
        json_t *object = json_object();
        set_count(writer, object, "context", leak->context);
        set_text(writer, object, "class", classes[leak->kind]);
        set_count(writer, object, "blocks", leak->blocks);
        set_count(writer, object, "bytes", leak->bytes);
        const uint64_t oldest = hw_profile_ticks_to_ns(profile, leak->oldest_tick);
        set_count(writer, object, "oldest_ns", profile->duration_ns > oldest ? profile->duration_ns - oldest : 0);
        const uint64_t newest = hw_profile_ticks_to_ns(profile, leak->newest_tick);
        set_count(writer, object, "newest_ns", profile->duration_ns > newest ? profile->duration_ns - newest : 0);
        append(writer, array, object);
    }
    if (info) {
        set_count(writer, search, "time_ns", hw_profile_ticks_to_ns(profile, info->tick));
        set_count(writer, search, "duration_ns", info->scan_ns);
        set_count(writer, search, "stopped_ns", info->stopped_ns ? info->stopped_ns : info->scan_ns);
        set_count(writer, search, "root_bytes", info->root_bytes);
        set_count(writer, search, "scanned_bytes", info->scanned_bytes);
        set_count(writer, search, "threads", info->threads);
        set_count(writer, search, "threads_missed", info->threads_missed);
        set_count(writer, search, "inside_blocks", info->inside_blocks);
        set_count(writer, search, "inside_bytes", info->inside_bytes);
    }
    print_key(writer, "leaks");
    print_value(writer, array);
    print_key(writer, "leak_search");
    print_value(writer, search);
    print_suppressions(writer);
}

static void print_keeps(struct json_writer *writer)
{
    print_key(writer, "keeps");
    print_value(writer, hw_json_keeps(writer));
}

static void print_contents_of_blocks(struct json_writer *writer)
{
    print_key(writer, "contents");
    print_value(writer, hw_json_contents(writer));
    print_key(writer, "content_search");
    print_value(writer, hw_json_content_search(writer));
}

static void print_pinned(struct json_writer *writer)
{
    json_t *pinned, *pages;
    hw_json_pinned(writer, &pinned, &pages);
    print_key(writer, "pinned");
    print_value(writer, pinned);
    print_key(writer, "heap_pages");
    print_value(writer, pages);
}

/* What the program measured and named itself. */
static void print_regions(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *regions = json_array(), *marks = json_array();
    for (size_t i = 0; i < profile->region_count; i++) {
        const struct hw_profile_region *region = &profile->regions[i];
        const struct hw_region *sum = &region->sum;
        json_t *object = json_object(), *counts = object;
        set_text(writer, object, "name", region->name);
        set_text(writer, object, "scope", sum->flags & HW_REGION_THREAD ? "thread" : "process");
        set_count(writer, object, "begun", sum->begun);
        set_count(writer, object, "ended", sum->ended);
        if (sum->flags & HW_REGION_ESTIMATED)
            set(writer, object, "sampled", counts = json_object());
        set_count(writer, counts, "allocations", sum->allocations);
        set_count(writer, counts, "frees", sum->frees);
        set_count(writer, counts, "reallocations", sum->reallocations);
        set_count(writer, counts, "bytes", sum->bytes);
        set_signed(writer, counts, "live_blocks", sum->live_blocks);
        set_signed(writer, counts, "live_bytes", sum->live_bytes);
        set_count(writer, counts, "peak_bytes", sum->peak_bytes);
        set_count(writer, counts, "most_allocations", sum->most_allocations);
        set_count(writer, counts, "most_bytes", sum->most_bytes);
        set_signed(writer, counts, "most_live_bytes", sum->most_live_bytes);
        set_count(writer, object, "total_ns", region->total_ns);
        set_count(writer, object, "longest_ns", region->longest_ns);
        set_count(writer, object, "first_ns", region->first_ns);
        set_known(writer, object, "last_ns", sum->ended, region->last_ns);
        append(writer, regions, object);
    }
    for (size_t i = 0; i < profile->mark_count; i++) {
        const struct hw_profile_mark *mark = &profile->marks[i];
        json_t *object = json_object(), *counts = object;
        set_text(writer, object, "name", mark->name);
        set_count(writer, object, "time_ns", mark->time_ns);
        if (writer->sampled && !profile->places) /* which know it exactly */
            set(writer, object, "sampled", counts = json_object());
        set_signed(writer, counts, "live_bytes", mark->live_bytes);
        append(writer, marks, object);
    }
    print_key(writer, "regions");
    print_value(writer, regions);
    print_key(writer, "marks");
    print_value(writer, marks);
}

/* Whether the module's code counts its accesses; null when that is not known. */
static json_t *counting_value(enum hw_counting counting, bool uncounted)
{
    return uncounted ? json_false() : counting == HW_COUNTING_YES ? json_true() : json_null();
}

static void print_modules(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    print_key(writer, "modules");
    fputc('[', writer->stream);
    for (size_t i = 0; i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        const bool known_symbols = module->examined && module->used;
        json_t *object = json_object();
        set_text(writer, object, "path", known(module->path));
        set_build_id(writer, object, module);
        set(writer, object, "main", json_boolean(module->flags & HW_MAP_MAIN));
        set(writer, object, "allocator", json_boolean(module->flags & HW_MAP_ALLOCATOR));
        set(writer, object, "runtime", json_boolean(module->flags & HW_MAP_RUNTIME));
        set_count(writer, object, "loaded_ns", hw_profile_ticks_to_ns(view->profile, module->loaded_tick));
        set_known(writer, object, "unloaded_ns", module->unloaded_tick,
                  hw_profile_ticks_to_ns(view->profile, module->unloaded_tick));
        set(writer, object, "debug_info", known_symbols ? json_boolean(module->has_debug_info) : json_null());
        if (view->profile->access_counted)
            set(writer, object, "counts_accesses", counting_value(module->counting, module->uncounted));
        if (view->profile->fields.counted)
            set(writer, object, "counts_fields", counting_value(module->counting_fields, module->fields_uncounted));
        if (module->flags & (HW_MAP_COUNTS | HW_MAP_COUNTS_FIELDS))
            set(writer, object, "uncounted_operations",
                module->flags & HW_MAP_COUNTS_BY_CALLS ? json_null() : json_integer(module->unseen_operations));
        set_text(writer, object, "problem", known_symbols ? module->problem : NULL);
        fputs(i ? ",\n" : "\n", writer->stream);
        print_value(writer, object);
    }
    fputs("\n]", writer->stream);
}

static void print_notes(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    for (size_t i = 0; i < profile->note_count; i++) {
        const struct hw_note *note = &profile->notes[i];
        json_t *object = json_object();
        set_text(writer, object, "kind", hw_note_name(note->code));
        set_text(writer, object, "text", known(hw_profile_string(profile, note->text)));
        set_count(writer, object, "count", note->count);
        set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(profile, note->tick));
        append(writer, array, object);
    }
    print_key(writer, "notes");
    print_value(writer, array);
}

static void print_contradictions(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    for (size_t i = 0; i < profile->contradiction_count; i++)
        append(writer, array, text_value(writer, profile->contradictions[i]));
    print_key(writer, "contradictions");
    print_value(writer, array);
}

static void print_not_observed(struct json_writer *writer)
{
    struct hw_buffer sentences = {0};
    json_t *array = json_array();
    hw_not_observed(writer->view, &sentences);
    for (char *save = NULL, *at = sentences.data ? strtok_r(sentences.data, "\n", &save) : NULL; at;
         at = strtok_r(NULL, "\n", &save))
        append(writer, array, text_value(writer, at));
    writer->failed = writer->failed || sentences.failed;
    hw_buffer_free(&sentences);
    print_key(writer, "not_observed");
    print_value(writer, array);
}

static json_t *part_value(struct json_writer *writer, const struct hw_view_part *part)
{
    json_t *object = json_object();
    set_count(writer, object, "places", part->count);
    set(writer, object, "peak_bytes",
        hw_view_measured(writer->view, HW_MEASURED_PEAK) ? json_integer(clamped(part->peak)) : json_null());
    set_count(writer, object, "bytes", part->bytes);
    set_count(writer, object, "allocations", part->allocations);
    set(writer, object, "live_bytes",
        hw_view_measured(writer->view, HW_MEASURED_LIVE) ? json_integer(clamped(part->leaked)) : json_null());
    return object;
}

/* Which contexts and frames are shown. */
static void print_selection(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    json_t *object = json_object(), *function = view->function ? json_object() : json_null(), *wrappers = json_array();
    if (view->function) {
        set_text(writer, function, "name", view->function);
        set(writer, function, "allocates", part_value(writer, &view->named[0]));
        set(writer, function, "calls", part_value(writer, &view->named[1]));
    }
    set(writer, object, "folded", json_boolean(!view->unfolded));
    for (size_t i = 0; i < view->structural_count; i++) {
        const struct hw_view_frame *frame = &view->structural[i];
        json_t *wrapper = json_object();
        set_text(writer, wrapper, "function", frame->symbol->function);
        set_text(writer, wrapper, "module", frame->module->path);
        set_count(writer, wrapper, "offset", frame->address);
        if (json_array_append_new(wrappers, wrapper))
            writer->failed = true;
    }
    set(writer, object, "wrappers_by_structure", wrappers);
    set(writer, object, "function", function);
    set_text(writer, object, "rules_file", view->rules ? view->rules->file : NULL);
    for (int rule = 0; rule < HW_RULES; rule++) {
        json_t *patterns = json_array();
        const char *text;
        for (size_t i = 0; (text = hw_rules_text(view->rules, (enum hw_rule)rule, i)); i++)
            if (json_array_append_new(patterns, text_value(writer, text)))
                writer->failed = true;
        set(writer, object, hw_rule_names[rule], patterns);
    }
    set(writer, object, "left_out", part_value(writer, &view->left_out));
    set_count(writer, object, "places_with_hidden_frames", view->hidden);
    print_key(writer, "selection");
    print_value(writer, object);
}

static json_t *run_text(void *closure, const char *text)
{
    return text_value(closure, text);
}

#define BIT(section) (1ull << (section))
#define ALL_LISTS    (BIT(HW_REPORT_GLOBALS) - BIT(HW_REPORT_LISTS))

static void print_report(struct json_writer *writer)
{
    static const struct {
        uint64_t sections; /* any of them asks for it */
        void (*print)(struct json_writer *writer);
    } members[] = {{BIT(HW_REPORT_LISTS + HW_SORT_THREADS), hw_json_threads},
                   {ALL_LISTS | BIT(HW_REPORT_FUNCTIONS) | BIT(HW_REPORT_ACCESS), print_contexts},
                   {BIT(HW_REPORT_TYPES), hw_json_types},
                   {BIT(HW_REPORT_GLOBALS), hw_json_globals},
                   {BIT(HW_REPORT_FIELDS), hw_json_fields},
                   {BIT(HW_REPORT_FINDINGS), hw_json_findings},
                   {BIT(HW_REPORT_SAMPLES), hw_json_samples},
                   {BIT(HW_REPORT_PERF), hw_json_perf},
                   {BIT(HW_REPORT_ALLOCATOR), hw_json_allocator},
                   {BIT(HW_REPORT_REGIONS), print_regions},
                   {BIT(HW_REPORT_SIZES), hw_json_sizes},
                   {BIT(HW_REPORT_LIFETIMES), hw_json_lifetimes},
                   {BIT(HW_REPORT_TIMELINE), print_timeline},
                   {BIT(HW_REPORT_MEMORY), hw_json_memory},
                   {BIT(HW_REPORT_LEAKS), print_leaks},
                   {BIT(HW_REPORT_KEEPS), print_keeps},
                   {BIT(HW_REPORT_CONTENTS), print_contents_of_blocks},
                   {BIT(HW_REPORT_MEMORY) | BIT(HW_REPORT_PINNED), print_pinned},
                   {ALL_LISTS | BIT(HW_REPORT_FUNCTIONS) | BIT(HW_REPORT_ACCESS), print_modules},
                   {BIT(HW_REPORT_NOT_OBSERVED), print_notes},
                   {BIT(HW_REPORT_NOT_OBSERVED), print_not_observed}};
    const bool sums = writer->options->sums.shape != HW_SUMS_NONE; /* instead of the sections */
    const uint64_t sections = sums ? 0 : writer->options->sections ? writer->options->sections : UINT64_MAX;
    fputs("{\"format\":1,\n\"process\":", writer->stream);
    print_value(writer, process_value(writer));
    if (!writer->options->fields) {
        print_key(writer, "totals");
        print_value(writer, totals_value(writer));
    }
    if (hw_is_merged(writer->view->profile)) {
        print_key(writer, "runs");
        print_value(writer, hw_merged_json(writer->view->profile, run_text, writer));
    }
    print_contradictions(writer);
    print_selection(writer);
    if (sums)
        hw_json_groups(writer);
    for (size_t i = 0; i < sizeof members / sizeof *members && !writer->failed; i++)
        if (members[i].sections & sections || (writer->options->threads && members[i].print == hw_json_threads))
            members[i].print(writer);
    fputs("}\n", writer->stream);
}

bool hw_json_writer_begin(struct json_writer *writer, const struct hw_view *view,
                          const struct hw_report_options *options, FILE *stream)
{
    *writer =
        (struct json_writer){.view = view, .options = options, .stream = stream, .sampled = hw_view_sampled(view)};
    writer->stacks = calloc(view->location_count + 1, sizeof *writer->stacks);
    return writer->stacks != NULL;
}

bool hw_json_writer_end(struct json_writer *writer)
{
    bool failed = !writer->stacks || writer->failed || writer->text.failed;
    for (size_t i = 0; writer->stacks && i < writer->view->location_count; i++) {
        failed = failed || writer->stacks[i].failed;
        hw_buffer_free(&writer->stacks[i]);
    }
    free(writer->stacks);
    hw_buffer_free(&writer->text);
    return !failed;
}

bool hw_report_json(const struct hw_view *view, const struct hw_report_options *options, FILE *stream,
                    struct hw_error *error)
{
    struct json_writer writer;
    struct hw_view_analysis analysis;
    const bool begun = hw_json_writer_begin(&writer, view, options, stream);
    const bool analysed = hw_view_analyse(&analysis, view, error);
    writer.analysis = analysis.analysis;
    if (begun && analysed)
        print_report(&writer);
    const bool fine = hw_json_writer_end(&writer) && analysed;
    hw_view_analysis_free(&analysis);
    if (!fine)
        hw_error_set(error, "%s: not enough memory for the report",
                     view->profile->path ? view->profile->path : "profile");
    return fine;
}
