/* json_pinned.c - "pinned" and "heap_pages" of the JSON report: what keeps pages resident. */
#include "report/json/json.h"

#include <stdlib.h>

#include "report/view/pins.h"

static json_t *pin_value(struct json_writer *writer, const struct hw_pin *pin)
{
    json_t *object = json_object();
    set_count(writer, object, "context", pin->context);
    set_count(writer, object, "pages", pin->pages);
    set_count(writer, object, "bytes_pinned", pin->pinned_bytes);
    set_number(writer, object, "occupancy_percent", 100 * (double)pin->live_bytes / ((double)pin->pages * 4096));
    set_count(writer, object, "blocks", pin->blocks);
    set_count(writer, object, "own_bytes", pin->own_bytes);
    set_count(writer, object, "sole_pages", pin->sole_pages);
    set_count(writer, object, "sole_free_bytes", pin->sole_free_bytes);
    return object;
}

static json_t *occupancy_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    for (size_t i = 0; i < profile->occupancy_count; i++) {
        const struct hw_occupancy *in = &profile->occupancy[i];
        json_t *object = json_object();
        set_text(writer, object, "unit", hw_piece_keys[in->unit]);
        set_count(writer, object, "percent_at_most", in->tenths * 10);
        set_count(writer, object, "pieces", in->pieces);
        set_count(writer, object, "resident_bytes", in->resident_bytes);
        set_count(writer, object, "live_bytes", in->live_bytes);
        append(writer, array, object);
    }
    return array;
}

static json_t *pages_value(struct json_writer *writer, const struct hw_heap_pages *info)
{
    const bool glibc = info->flags & HW_HEAP_PAGES_GLIBC;
    json_t *object = json_object();
    set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(writer->view->profile, info->tick));
    set_count(writer, object, "duration_ns", info->walk_ns);
    set_count(writer, object, "blocks", info->blocks);
    set_count(writer, object, "requested_bytes", info->requested_bytes);
    set_known(writer, object, "rounding_bytes", info->flags & HW_HEAP_PAGES_ROUNDING, info->rounding_bytes);
    set_known(writer, object, "header_bytes", glibc, info->header_bytes);
    set_count(writer, object, "absent_bytes", info->absent_bytes);
    set_known(writer, object, "swapped_bytes", !(info->flags & HW_HEAP_PAGES_MINCORE), info->swapped_bytes);
    set_count(writer, object, "resident_bytes", info->resident_bytes);
    set_count(writer, object, "live_pages", info->live_pages);
    set_count(writer, object, "free_bytes", info->free_bytes);
    set_count(writer, object, "kept_bytes", info->kept_bytes);
    set_known(writer, object, "top_bytes", glibc, info->top_bytes);
    set_known(writer, object, "below_top_bytes", glibc, info->below_top_bytes);
    set_known(writer, object, "other_arenas_bytes", glibc, info->arena_bytes);
    set(writer, object, "occupancy", occupancy_value(writer));
    return object;
}

void hw_json_pinned(struct json_writer *writer, json_t **pinned, json_t **pages)
{
    size_t count;
    const struct hw_heap_pages *info = hw_pins_pages(writer->view->profile);
    const struct hw_pin **sorted = hw_pins_sorted(writer->view, &count);
    *pinned = info ? json_array() : json_null();
    *pages = info ? pages_value(writer, info) : json_null();
    writer->failed |= !sorted;
    for (size_t i = 0; info && sorted && i < count; i++)
        append(writer, *pinned, pin_value(writer, sorted[i]));
    free(sorted);
}
