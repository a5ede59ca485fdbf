/* json_places.c - what the allocator makes of its memory, as members of the JSON report's "allocator". */
#include "report/json/json.h"
#include "report/view/merged.h"

static json_t *parts_value(struct json_writer *writer, enum hw_memory_moment moment)
{
    const struct hw_profile *profile = writer->view->profile;
    struct hw_heap_parts parts;
    if (!hw_profile_heap_parts(profile->places, moment, &parts))
        return json_null();
    json_t *object = json_object();
    set(writer, object, "time_ns",
        hw_is_merged(profile) ? json_null() : json_integer(clamped(hw_profile_ticks_to_ns(profile, parts.tick))));
    set(writer, object, "total", parts.measured ? json_integer(parts.total) : json_null());
    set_signed(writer, object, "real", parts.real);
    set_signed(writer, object, "internal", parts.internal);
    set_signed(writer, object, "blowup", parts.blowup);
    set(writer, object, "external", parts.measured ? json_integer(parts.external) : json_null());
    set(writer, object, "absent", parts.measured ? json_integer(parts.absent) : json_null());
    set_signed(writer, object, "free", parts.free_bytes);
    set(writer, object, "resident", parts.measured ? json_integer(parts.resident) : json_null());
    set(writer, object, "resident_elsewhere", parts.measured ? json_integer(parts.elsewhere) : json_null());
    set(writer, object, "resident_read_at_percent",
        parts.measured && parts.real > 0 ? json_real(100.0 * (double)parts.measured_real / (double)parts.real)
                                         : json_null());
    return object;
}

static json_t *state_value(struct json_writer *writer, const struct hw_usable_class_state *state)
{
    json_t *object = json_object();
    set_signed(writer, object, "live", state->live_blocks);
    set_signed(writer, object, "real_bytes", state->live_bytes);
    set_signed(writer, object, "usable_bytes", state->usable_bytes);
    set_signed(writer, object, "untouched_bytes", state->untouched_bytes);
    const int64_t recent = state->most_blocks - state->live_blocks;
    set_signed(writer, object, "free_list", state->free_blocks);
    set_signed(writer, object, "free_list_bytes", state->free_bytes);
    set_signed(writer, object, "recently_freed", recent < state->free_blocks ? recent : state->free_blocks);
    set_signed(writer, object, "most_live", state->most_blocks);
    set_signed(writer, object, "new", state->new_blocks);
    set_signed(writer, object, "reused", state->reused_blocks);
    return object;
}

static json_t *classes_value(struct json_writer *writer)
{
    const struct hw_profile_places *places = writer->view->profile->places;
    json_t *array = json_array();
    for (size_t i = 0; i < places->class_count; i++) {
        const struct hw_usable_class *class = &places->classes[i];
        json_t *object = json_object();
        set_count(writer, object, "usable_least", class->usable_least);
        set_count(writer, object, "usable_most", class->usable_most);
        set(writer, object, "at_peak", state_value(writer, &class->peak));
        set(writer, object, "at_end", state_value(writer, &class->now));
        append(writer, array, object);
    }
    return array;
}

static json_t *time_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    bool external = false; /* older files do not have it */
    for (size_t i = 0; i < profile->places->point_count; i++)
        external |= profile->places->points[i].external_bytes != 0;
    for (size_t i = 0; i < profile->places->point_count; i++) {
        const struct hw_places_point *point = &profile->places->points[i];
        json_t *object = json_object();
        set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(profile, point->tick));
        set_signed(writer, object, "real", point->requested_bytes);
        set_signed(writer, object, "internal", point->internal_bytes);
        set_signed(writer, object, "blowup", point->blowup_bytes);
        set_signed(writer, object, "free", point->free_bytes);
        set(writer, object, "external",
            external && point->resident_bytes ? json_integer(point->external_bytes) : json_null());
        set_nonzero(writer, object, "resident", point->resident_bytes);
        append(writer, array, object);
    }
    return array;
}

static json_t *context_value(uint32_t context)
{
    return context == HW_NONE ? json_null() : json_integer(context);
}

static json_t *sharing_value(struct json_writer *writer)
{
    const struct hw_profile_places *places = writer->view->profile->places;
    const struct hw_places_info *info = &places->info;
    json_t *object = json_object(), *pairs = json_array();
    set_count(writer, object, "active_lines", info->active_lines);
    set_count(writer, object, "passive_lines", info->passive_lines);
    set_count(writer, object, "active_blocks", info->active_blocks);
    set_count(writer, object, "passive_blocks", info->passive_blocks);
    const bool sampled = info->samples != 0;
    set_known(writer, object, "active_writes", sampled, info->active_writes);
    set_known(writer, object, "active_contended", sampled, info->active_contended);
    set_known(writer, object, "passive_writes", sampled, info->passive_writes);
    set_known(writer, object, "passive_contended", sampled, info->passive_contended);
    for (size_t i = 0; i < places->pair_count; i++) {
        json_t *pair = json_object();
        set(writer, pair, "context", context_value(places->pairs[i].context));
        set(writer, pair, "other", context_value(places->pairs[i].other));
        set_count(writer, pair, "active_blocks", places->pairs[i].active);
        set_count(writer, pair, "passive_blocks", places->pairs[i].passive);
        append(writer, pairs, pair);
    }
    set(writer, object, "pairs", pairs);
    return object;
}

/* Sampled writes to lines that another thread was seen to write before. */
static json_t *contention_value(struct json_writer *writer)
{
    const struct hw_places_info *info = &writer->view->profile->places->info;
    if (!info->samples)
        return json_null();
    const double contended =
        (double)info->contended_blocks + (double)info->contended_object + (double)info->contended_word;
    json_t *object = json_object();
    set_count(writer, object, "samples", info->samples);
    set_count(writer, object, "writes", info->writes);
    set(writer, object, "contended_percent",
        info->writes ? json_real(100.0 * contended / (double)info->writes) : json_null());
    set_count(writer, object, "between_blocks", info->contended_blocks);
    set_count(writer, object, "inside_objects", info->contended_object);
    set_count(writer, object, "true_sharing", info->contended_word);
    return object;
}

static json_t *pinned_value(struct json_writer *writer)
{
    const struct hw_profile_places *places = writer->view->profile->places;
    json_t *array = json_array();
    for (size_t i = 0; i < places->pinned_count; i++) {
        const struct hw_pinned *pinned = &places->pinned[i];
        json_t *object = json_object();
        set_count(writer, object, "context", pinned->context);
        set_text(writer, object, "moment", pinned->moment == HW_MOMENT_PEAK ? "peak" : "end");
        set_count(writer, object, "blocks", pinned->blocks);
        set_count(writer, object, "bytes", pinned->bytes);
        set_count(writer, object, "samples", pinned->samples);
        append(writer, array, object);
    }
    return array;
}

static json_t *percent_value(uint64_t bytes, uint64_t samples, double size)
{
    return samples ? json_real(100.0 * (double)bytes / ((double)samples * size)) : json_null();
}

void hw_json_places(struct json_writer *writer, json_t *object)
{
    const struct hw_profile_places *places = writer->view->profile->places;
    if (!places) {
        static const char *const names[] = {"memory_at_peak", "memory_at_end", "false_sharing",
                                            "cache_utilization_percent", "page_utilization_percent"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            set(writer, object, names[i], json_null());
        return;
    }
    set(writer, object, "memory_at_peak", parts_value(writer, HW_MOMENT_PEAK));
    set(writer, object, "memory_at_end", parts_value(writer, HW_MOMENT_END));
    set(writer, object, "memory_by_class", classes_value(writer));
    set(writer, object, "memory_over_time", hw_is_merged(writer->view->profile) ? json_null() : time_value(writer));
    set(writer, object, "cache_utilization_percent", percent_value(places->info.line_bytes, places->info.samples, 64));
    set(writer, object, "page_utilization_percent", percent_value(places->info.page_bytes, places->info.samples, 4096));
    set(writer, object, "contention", contention_value(writer));
    set(writer, object, "false_sharing", sharing_value(writer));
    set(writer, object, "pinned", pinned_value(writer));
}
