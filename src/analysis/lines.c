/* lines.c - cache lines that uses of an object bring in.
 *
 * Objects in blocks of their own, and those of an array that are visited in no order: the mean over all places in a
 * line where an object may begin. An array that is walked: distinct lines of the whole walk, divided by its elements;
 * neighbours share lines. */
#include "analysis/internal.h"

#include <string.h>

/* glibc gives blocks from this size on pages of their own, 16 bytes behind the start of one (M_MMAP_THRESHOLD). */
#define MAPPED_BYTES (128 * 1024)

static uint64_t smallest_block(const struct hw_analysis_input *input, const struct hw_objects *objects)
{
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < objects->context_count; i++) {
        const struct hw_profile_context *context = input->contexts[objects->contexts[i]];
        if (context->size_min < smallest)
            smallest = context->size_min;
    }
    return smallest;
}

struct hw_ground hw_ground_of(const struct hw_analysis_input *input, const struct hw_struct_analysis *of)
{
    struct hw_ground ground = {.placement = of->objects.placement, .live = of->objects.live};
    unsigned step = of->structure->alignment > 16 ? of->structure->alignment : 16;
    if (ground.placement == HW_PLACE_UNKNOWN)
        ground.live = 0;
    const char *allocator = input->profile->allocator;
    if (step == 16 && allocator && strncmp(allocator, "glibc", 5) == 0 && of->objects.context_count &&
        smallest_block(input, &of->objects) >= MAPPED_BYTES) {
        ground.starts[ground.start_count++] = 16;
        return ground;
    }
    for (unsigned start = 0; start < HW_LINE; start += step)
        ground.starts[ground.start_count++] = start;
    return ground;
}

/* ---- counting ---- */

static uint32_t new_stamp(struct hw_line_counter *counter)
{
    if (++counter->stamp == 0) {
        memset(counter->seen, 0, HW_LINES_SEEN * sizeof *counter->seen);
        counter->stamp = 1;
    }
    return counter->stamp;
}

/* Marks the lines of a range of bytes, modulo LINES unless that is 0; returns how many of them are new. */
static unsigned mark(struct hw_line_counter *counter, uint64_t start, uint64_t bytes, uint64_t lines)
{
    unsigned found = 0;
    for (uint64_t line = start / HW_LINE; line <= (start + bytes - 1) / HW_LINE; line++) {
        uint32_t *seen = &counter->seen[lines ? line % lines : line];
        found += *seen != counter->stamp;
        *seen = counter->stamp;
    }
    return found;
}

struct object {
    const struct hw_touch *touches;
    size_t touch_count;
    const uint64_t *offsets;
    uint64_t extra;
};

static unsigned mark_object(struct hw_line_counter *counter, const struct object *object, uint64_t start,
                            uint64_t lines)
{
    unsigned found = 0;
    for (size_t i = 0; i < object->touch_count; i++) {
        const uint64_t offset = object->offsets[object->touches[i].field];
        if (offset != UINT64_MAX && object->touches[i].bytes)
            found += mark(counter, start + offset, object->touches[i].bytes, lines);
    }
    if (object->extra != UINT64_MAX)
        found += mark(counter, start + object->extra, 8, lines);
    counter->work += object->touch_count + 1;
    return found;
}

/* Elements after which an array of SIZE bytes each begins at the same place of a line again. */
static unsigned period_of(uint64_t size)
{
    unsigned period = HW_LINE;
    while (period > 1 && size % 2 == 0) {
        size /= 2;
        period /= 2;
    }
    return period;
}

double hw_lines_of_visit(struct hw_line_counter *counter, const struct hw_ground *ground,
                         const struct hw_visits *visits, const struct hw_visit *visit, const uint64_t *offsets,
                         uint64_t size, uint64_t extra)
{
    const struct object object = {&visits->touches[visit->first_touch], visit->touch_count, offsets, extra};
    const unsigned period = ground->placement == HW_PLACE_ARRAY ? period_of(size) : 1;
    const uint64_t lines = visit->walk ? period * size / HW_LINE : 0;
    uint64_t found = 0;
    for (unsigned start = 0; start < ground->start_count; start++) {
        if (visit->walk)
            new_stamp(counter);
        for (unsigned i = 0; i < period; i++) {
            if (!visit->walk)
                new_stamp(counter);
            const uint64_t at = ground->starts[start] + i * size;
            found += mark_object(counter, &object, visit->walk ? at : at % HW_LINE, lines);
        }
    }
    return (double)found / ground->start_count / period;
}

double hw_miss_share(const struct hw_ground *ground, double lines)
{
    const double bytes = (double)ground->live * lines * HW_LINE;
    if (!ground->live)
        return 1;
    return bytes > HW_CACHE_BYTES ? 1 - HW_CACHE_BYTES / bytes : 0;
}

static bool touches_any(const struct hw_visits *visits, const struct hw_visit *visit, const uint64_t *offsets)
{
    for (size_t i = 0; i < visit->touch_count; i++)
        if (offsets[visits->touches[visit->first_touch + i].field] != UINT64_MAX)
            return true;
    return false;
}

struct hw_lines hw_lines_measure(struct hw_line_counter *counter, const struct hw_ground *ground,
                                 const struct hw_visits *visits, const struct hw_layout *layout,
                                 const struct hw_layout *cold, uint64_t pointer, double *each)
{
    const struct hw_ground apart = {.placement = HW_PLACE_SINGLE, .starts = {0, 16, 32, 48}, .start_count = 4};
    struct hw_lines sum = {0};
    for (size_t i = 0; i < visits->count; i++) {
        const struct hw_visit *visit = &visits->visits[i];
        const bool both = cold && touches_any(visits, visit, cold->offsets);
        double lines = hw_lines_of_visit(counter, ground, visits, visit, layout->offsets, layout->size,
                                         both ? pointer : UINT64_MAX);
        if (both) {
            struct hw_visit alone = *visit;
            alone.walk = false;
            lines += hw_lines_of_visit(counter, &apart, visits, &alone, cold->offsets, cold->size, UINT64_MAX);
        }
        if (each)
            each[i] = lines;
        double needed = (double)visit->bytes / HW_LINE;
        if (!visit->walk)
            needed = (double)((visit->bytes + HW_LINE - 1) / HW_LINE);
        sum.per_use += visit->executions * lines;
        sum.needed += visit->executions * (needed < lines ? needed : lines);
        sum.missed += visit->executions * lines * hw_miss_share(ground, lines);
    }
    if (visits->executions > 0) {
        sum.per_use /= visits->executions;
        sum.needed /= visits->executions;
        sum.bytes_needed = visits->bytes / visits->executions;
    }
    return sum;
}
