/* json_allocator.c - the member "allocator" of the JSON report: what was observed of the allocator itself. Counts are
 * exact; what was timed says how many operations it rests on. Cycles are ticks of the time stamp counter. */
#include "report/json/json.h"
#include "report/view/merged.h"

#include <stdlib.h>
#include <string.h>

static const char *const phases[HW_PHASES] = {"serial", "parallel"};
static const char *const sizes[HW_SIZE_GROUPS] = {"small", "medium", "large", NULL};

/* How many operations took how long: bins that are not empty, with the first and the last number of cycles in each. */
static json_t *histogram_value(struct json_writer *writer, const struct hw_profile_operation *operation)
{
    json_t *array = json_array();
    for (uint32_t bin = 0; bin < HW_TIME_BINS; bin++) {
        if (!operation->histogram[bin])
            continue;
        json_t *object = json_object();
        set_count(writer, object, "least", hw_time_bin_least(bin));
        set(writer, object, "most",
            bin + 1 < HW_TIME_BINS ? json_integer(clamped(hw_time_bin_least(bin + 1) - 1)) : json_null());
        set_count(writer, object, "count", operation->histogram[bin]);
        append(writer, array, object);
    }
    return array;
}

static json_t *cycles_value(struct json_writer *writer, const struct hw_profile_operation *operation)
{
    static const struct {
        const char *key;
        double share;
    } percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
    if (!operation->samples)
        return json_null();
    json_t *object = json_object();
    set_number(writer, object, "mean", hw_profile_operation_mean(operation));
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
        set_number(writer, object, percentiles[i].key,
                   hw_profile_operation_percentile(operation, percentiles[i].share));
    set_count(writer, object, "max", operation->most);
    set_number(writer, object, "total", hw_profile_operation_total(operation));
    return object;
}

static json_t *operation_value(struct json_writer *writer, int phase, int kind,
                               const struct hw_profile_operation *operation)
{
    json_t *object = json_object();
    set_text(writer, object, "phase", phases[phase]);
    set_text(writer, object, "kind", hw_operation_kind_keys[kind]);
    set_count(writer, object, "count", operation->count);
    set_count(writer, object, "timed", operation->samples);
    set(writer, object, "cycles", cycles_value(writer, operation));
    return object;
}

static json_t *operations_value(struct json_writer *writer)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    struct hw_profile_operation *groups = malloc(HW_SIZE_GROUPS * sizeof *groups);
    json_t *array = json_array();
    writer->failed |= !groups;
    for (int phase = 0; groups && phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            for (int size = 0; size < HW_SIZE_GROUPS; size++)
                groups[size] = (struct hw_profile_operation){0};
            struct hw_profile_events events[HW_SIZE_GROUPS] = {{0}};
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                hw_profile_events_add(&events[hw_profile_size_group(allocator, bucket)],
                                      &allocator->inside.events[phase][kind][bucket]);
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                hw_profile_operation_add(&groups[hw_profile_size_group(allocator, bucket)],
                                         hw_profile_operation(allocator, phase, kind, bucket));
            for (int size = 0; size < HW_SIZE_GROUPS; size++) {
                if (!groups[size].count)
                    continue;
                json_t *object = operation_value(writer, phase, kind, &groups[size]);
                json_t *cycles = json_object_get(object, "cycles");
                if (json_is_object(cycles))
                    set(writer, cycles, "histogram", histogram_value(writer, &groups[size]));
                set_text(writer, object, "size", sizes[size]);
                hw_json_events(writer, object, &events[size]);
                append(writer, array, object);
            }
        }
    free(groups);
    return array;
}

static void set_bucket(struct json_writer *writer, json_t *object, uint32_t bucket)
{
    const bool unknown = bucket == HW_SIZE_BUCKET_UNKNOWN, last = bucket == HW_SIZE_BUCKET_LAST;
    set(writer, object, "least", unknown ? json_null() : json_integer(clamped(hw_size_bucket_least(bucket))));
    set(writer, object, "most", unknown || last ? json_null() : json_integer(clamped(hw_size_bucket_most(bucket))));
}

/* The same by sizes, as they were counted. */
static json_t *buckets_value(struct json_writer *writer)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    json_t *array = json_array();
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
                const struct hw_profile_operation *operation = hw_profile_operation(allocator, phase, kind, bucket);
                if (!operation->count)
                    continue;
                json_t *object = operation_value(writer, phase, kind, operation);
                set_bucket(writer, object, bucket);
                append(writer, array, object);
            }
    return array;
}

/* How operations were timed. */
static json_t *timing_value(struct json_writer *writer)
{
    const struct hw_allocator_info *info = &writer->view->profile->observed->info;
    json_t *object = json_object();
    set(writer, object, "every_operation", json_boolean(!info->shift_most));
    set_count(writer, object, "timed", info->timed);
    set_count(writer, object, "one_in_at_most", 1ull << (info->shift_most & 63));
    set_count(writer, object, "first_allocations_left_out", info->first_left_out);
    set_count(writer, object, "clock_cycles", info->clock_ticks);
    set_count(writer, object, "own_cycles", info->own_ticks);
    const double ns_per_tick = writer->view->profile->observed->ns_per_tick;
    set_number(writer, object, "cycles_per_second", ns_per_tick > 0 ? 1e9 / ns_per_tick : (double)NAN);
    return object;
}

static json_t *lives_value(struct json_writer *writer)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    json_t *array = json_array();
    for (size_t i = 0; i < allocator->lives_count; i++) {
        const struct hw_operation_lives *lives = &allocator->lives[i];
        json_t *object = json_object(), *bins = json_array();
        set_bucket(writer, object, lives->bucket);
        set_count(writer, object, "samples", lives->samples);
        set_count(writer, object, "allocated", lives->weight);
        set_count(writer, object, "freed", lives->freed);
        set_count(writer, object, "freed_by_another_thread", lives->freed_elsewhere);
        for (size_t bin = 0; bin < HW_LIFE_BINS; bin++) {
            if (!lives->histogram[bin])
                continue;
            json_t *pair = json_object();
            set_count(writer, pair, "operations_least", bin ? 1ull << (bin - 1) : 0);
            set_count(writer, pair, "count", lives->histogram[bin]);
            append(writer, bins, pair);
        }
        set(writer, object, "lives", bins);
        append(writer, array, object);
    }
    return array;
}

static json_t *stages_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_profile_allocator *allocator = profile->observed;
    json_t *array = json_array();
    for (size_t i = 0; i < allocator->stage_count; i++) {
        const struct hw_operation_stage *stage = &allocator->stages[i];
        json_t *object = json_object();
        uint64_t count = 0, ticks = 0;
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            count = hw_add_saturating(count, stage->kind[kind].count);
            ticks = hw_add_saturating(ticks, stage->kind[kind].ticks);
        }
        const bool rest = stage->flags & HW_STAGE_REST;
        set(writer, object, "stage", rest ? json_null() : json_integer((json_int_t)stage->stage));
        set_text(writer, object, "phase", phases[stage->phase]);
        set(writer, object, "thread", rest ? json_null() : json_integer((json_int_t)stage->thread));
        set_count(writer, object, "begin_ns", hw_profile_ticks_to_ns(profile, stage->begin));
        set_count(writer, object, "duration_ns", hw_profile_ticks_to_ns(profile, stage->end - stage->begin));
        set_count(writer, object, "operations", count);
        set_count(writer, object, "operation_cycles", ticks);
        append(writer, array, object);
    }
    return array;
}

/* ---- with stacks, which are printed as they are ---- */

static void print_sites(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    size_t count = view->site_count;
    if (writer->options->top && writer->options->top < count)
        count = writer->options->top;
    print_key(writer, "call_sites");
    fputc('[', writer->stream);
    for (size_t i = 0; i < count && !writer->failed && !ferror(writer->stream); i++) {
        const struct hw_view_site *site = &view->sites[i];
        json_t *object = json_object();
        set_text(writer, object, "kind", hw_operation_kind_keys[site->kind]);
        set_count(writer, object, "timed", site->samples);
        set(writer, object, "ranked", json_boolean(site->ranked));
        set_count(writer, object, "count", site->weight);
        set_count(writer, object, "cycles", site->ticks);
        set_ratio(writer, object, "mean_cycles", site->ticks, site->weight);
        set_count(writer, object, "max_cycles", site->most);
        set_count(writer, object, "bytes", site->bytes);
        hw_json_with_stack(writer, object, site->context, i == 0);
    }
    fputs("\n]", writer->stream);
}

static void print_slowest(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    print_key(writer, "slowest");
    fputc('[', writer->stream);
    for (size_t i = 0; i < view->slowest_count && !writer->failed && !ferror(writer->stream); i++) {
        const struct hw_slow_operation *slow = &view->slowest[i];
        json_t *object = json_object();
        set_text(writer, object, "kind", hw_operation_kind_keys[slow->kind]);
        set_text(writer, object, "phase", phases[slow->phase]);
        set(writer, object, "size", slow->size == UINT64_MAX ? json_null() : json_integer(clamped(slow->size)));
        set_count(writer, object, "cycles", slow->ticks);
        set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(view->profile, slow->tick));
        set_count(writer, object, "thread", slow->thread);
        set_count(writer, object, "one_timed_in", 1ull << (slow->shift & 63));
        hw_json_with_stack(writer, object, slow->context, i == 0);
    }
    fputs("\n]", writer->stream);
}

void hw_json_allocator(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    if (!profile->observed)
        return;
    json_t *object = json_object();
    set_text(writer, object, "name", known(profile->allocator));
    if (hw_is_merged(profile))
        set_count(writer, object, "runs", profile->observed->runs);
    set(writer, object, "verdict", hw_json_verdict(writer));
    hw_json_allocator_facts(writer, object);
    set(writer, object, "operations", operations_value(writer));
    set(writer, object, "operations_by_size", buckets_value(writer));
    hw_json_inside(writer, object);
    set(writer, object, "timing", timing_value(writer));
    set(writer, object, "lives", lives_value(writer));
    set(writer, object, "stages", hw_is_merged(profile) ? json_null() : stages_value(writer));
    hw_json_places(writer, object);
    print_key(writer, "allocator");
    struct hw_buffer members = {0};
    hw_buffer_json(&members, object, JSON_STYLE);
    writer->failed |= members.failed;
    if (!members.failed) {
        hw_buffer_cut(&members, members.used - 1); /* the lists with stacks follow inside */
        fputs(members.data, writer->stream);
        print_sites(writer);
        print_slowest(writer);
        fputc('}', writer->stream);
    }
    hw_buffer_free(&members);
    json_decref(object);
}
