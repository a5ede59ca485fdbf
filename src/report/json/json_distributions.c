/* json_distributions.c - sizes and lifetimes as distributions: of all contexts, and of those that have several. */
#include "report/json/json.h"

static json_t *size_value(struct json_writer *writer, const struct hw_profile_size_bar *bar)
{
    json_t *object = json_object();
    const bool known = bar->bucket != HW_SIZE_BUCKET_UNKNOWN;
    const bool live = hw_view_measured(writer->view, HW_MEASURED_LIVE),
               peak = hw_view_measured(writer->view, HW_MEASURED_PEAK);
    set_known(writer, object, "least", known, hw_size_bucket_least(bar->bucket));
    set_known(writer, object, "most", known && bar->bucket < HW_SIZE_BUCKET_LAST, hw_size_bucket_most(bar->bucket));
    set_count(writer, object, "allocations", bar->allocations);
    set_known(writer, object, "reallocations", !writer->sampled, bar->reallocations);
    set_count(writer, object, "bytes", bar->bytes);
    set(writer, object, "live_allocations", live ? json_integer(bar->live_blocks) : json_null());
    set(writer, object, "live_bytes", live ? json_integer(bar->live_bytes) : json_null());
    set(writer, object, "peak_allocations", peak ? json_integer(bar->peak_blocks) : json_null());
    set(writer, object, "peak_bytes", peak ? json_integer(bar->peak_bytes) : json_null());
    return object;
}

static json_t *life_value(struct json_writer *writer, const struct hw_profile_life_bar *bar)
{
    json_t *object = json_object();
    const bool known = bar->life < HW_LIFETIME_UNKNOWN;
    set_known(writer, object, "least_ns", known, hw_lifetime_bar_least(bar->life));
    set_known(writer, object, "below_ns", known && bar->life + 1 < HW_LIFETIME_BARS,
              hw_lifetime_bar_least(bar->life + 1));
    set_count(writer, object, "frees", bar->frees);
    set_count(writer, object, "bytes", bar->bytes);
    return object;
}

void hw_json_context_distributions(struct json_writer *writer, json_t *object, size_t context)
{
    size_t count;
    if (!writer->view->size_bars)
        return;
    const struct hw_profile_size_bar *sizes = hw_view_size_bars(writer->view, context, &count);
    if (count > 1) {
        json_t *array = json_array();
        for (size_t i = 0; i < count; i++)
            append(writer, array, size_value(writer, &sizes[i]));
        set(writer, object, "size_distribution", array);
    }
    const struct hw_profile_life_bar *lives = hw_view_life_bars(writer->view, context, &count);
    if (count > 1) {
        json_t *array = json_array();
        for (size_t i = 0; i < count; i++)
            append(writer, array, life_value(writer, &lives[i]));
        set(writer, object, "lifetime_distribution", array);
    }
}

static json_t *distribution(struct json_writer *writer, json_t *bars)
{
    json_t *object = json_object();
    set(writer, object, "estimated", json_boolean(writer->sampled));
    set(writer, object, "bars", bars);
    return object;
}

void hw_json_sizes(struct json_writer *writer)
{
    struct hw_profile_size_bar sums[HW_SIZE_BUCKETS];
    json_t *array = json_array();
    hw_view_sum_sizes(writer->view, sums);
    for (uint32_t i = 0; i < HW_SIZE_BUCKETS; i++)
        if (hw_size_bar_used(&sums[i]))
            append(writer, array, size_value(writer, &sums[i]));
    print_key(writer, "size_distribution");
    if (writer->view->size_bars)
        print_value(writer, distribution(writer, array));
    else {
        json_decref(array);
        print_value(writer, json_null());
    }
}

void hw_json_lifetimes(struct json_writer *writer)
{
    struct hw_profile_life_bar sums[HW_LIFETIME_UNKNOWN + 1];
    json_t *array = json_array();
    hw_view_sum_lives(writer->view, sums);
    for (uint32_t i = 0; i <= HW_LIFETIME_UNKNOWN; i++)
        if (sums[i].frees)
            append(writer, array, life_value(writer, &sums[i]));
    print_key(writer, "lifetime_distribution");
    if (writer->view->size_bars)
        print_value(writer, distribution(writer, array));
    else {
        json_decref(array);
        print_value(writer, json_null());
    }
}
