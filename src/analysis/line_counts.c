/* line_counts.c - cache lines that uses of an object bring in.
 *
 * Objects in blocks of their own, and those of an array that are visited in no order: the mean over the places in a
 * line where objects begin. An array that is walked: distinct lines of the whole walk, divided by its elements;
 * neighbours share lines. Blocks, too, may be visited in the order in which they lie: whether they are is not recorded,
 * so that both are computed where it is known how they lie.
 *
 * Where blocks begin in lines is counted by programs that count fields and no granules, whose blocks lie as they do in
 * the plain program; else all places that the allocator may give are equally likely. */
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

/* Blocks may begin at any multiple of STEP. */
static void place_anywhere(double share[8], unsigned step)
{
    for (unsigned i = 0; i < 8; i++)
        share[i] = step >= HW_LINE ? i == 0 : i * 8 % step == 0 ? step / (double)HW_LINE : 0;
}

struct hw_ground hw_ground_of(const struct hw_analysis_input *input, const struct hw_struct_analysis *of)
{
    struct hw_ground ground = {
        .placement = of->objects.placement, .live = of->objects.live, .size = of->structure->size};
    const unsigned step = of->structure->alignment > 16 ? of->structure->alignment : 16;
    const char *allocator = input->profile->allocator;
    double all = 0;
    if (ground.placement == HW_PLACE_UNKNOWN)
        ground.live = 0;
    for (size_t i = 0; i < of->objects.context_count; i++)
        for (size_t k = 0; k < 8; k++)
            all += (double)input->contexts[of->objects.contexts[i]]->starts[k];
    if (all > 0 && ground.placement != HW_PLACE_UNKNOWN) {
        for (size_t i = 0; i < of->objects.context_count; i++)
            for (size_t k = 0; k < 8; k++)
                ground.share[k] += (double)input->contexts[of->objects.contexts[i]]->starts[k] / all;
        ground.counted = ground.placement == HW_PLACE_SINGLE;
        ground.chunks = step == 16 && allocator && strncmp(allocator, "glibc", 5) == 0;
        return ground;
    }
    if (step == 16 && allocator && strncmp(allocator, "glibc", 5) == 0 && of->objects.context_count &&
        smallest_block(input, &of->objects) >= MAPPED_BYTES)
        ground.share[2] = 1;
    else
        place_anywhere(ground.share, step);
    return ground;
}

/* Bytes from one of glibc's blocks of SIZE bytes to the next. */
static uint64_t chunk_of(uint64_t size)
{
    return size + 8 < 32 ? 32 : (size + 8 + 15) / 16 * 16;
}

/* Where objects of SIZE bytes begin. Of another size than was counted: the first one where the counted ones begin, the
 * others a chunk on from it each. */
static void shares_of(const struct hw_ground *ground, uint64_t size, double share[8])
{
    const uint64_t step = (chunk_of(size) + ground->beside) % HW_LINE;
    memcpy(share, ground->share, sizeof ground->share);
    if (!ground->counted || (size == ground->size && !ground->beside))
        return;
    if (!ground->chunks) {
        place_anywhere(share, 16);
        return;
    }
    if (step == chunk_of(ground->size) % HW_LINE)
        return;
    memset(share, 0, sizeof ground->share);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < 4; k++)
            share[(i + k * step / 8) % 8] += ground->share[i] / 4;
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
    const bool walk = visit->walk || ground->stride;
    const uint64_t step = ground->stride ? ground->stride : size;
    const unsigned period = ground->placement == HW_PLACE_ARRAY || ground->stride ? period_of(step) : 1;
    const uint64_t lines = walk ? period * step / HW_LINE : 0;
    double share[8], sum = 0;
    if (ground->stride)
        memcpy(share, ground->share, sizeof share);
    else
        shares_of(ground, size, share);
    for (unsigned start = 0; start < 8; start++) {
        uint64_t found = 0;
        if (!(share[start] > 0))
            continue;
        if (walk)
            new_stamp(counter);
        for (unsigned i = 0; i < period; i++) {
            if (!walk)
                new_stamp(counter);
            const uint64_t at = start * 8 + i * step;
            found += mark_object(counter, &object, walk ? at : at % HW_LINE, lines);
        }
        sum += share[start] * (double)found;
    }
    return sum / period;
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

/* An object, and what it is split into. */
struct parts {
    struct hw_line_counter *counter;
    const struct hw_visits *visits;
    const struct hw_layout *layout, *cold;
    uint64_t pointer;
};

static double lines_of_parts(const struct parts *parts, const struct hw_ground *hot, const struct hw_ground *apart,
                             const struct hw_visit *visit)
{
    const struct hw_layout *layout = parts->layout, *cold = parts->cold;
    const bool both = cold && touches_any(parts->visits, visit, cold->offsets);
    const double lines = hw_lines_of_visit(parts->counter, hot, parts->visits, visit, layout->offsets, layout->size,
                                           both ? parts->pointer : UINT64_MAX);
    struct hw_visit alone = *visit;
    alone.walk = false;
    return !both ? lines
                 : lines + hw_lines_of_visit(parts->counter, apart, parts->visits, &alone, cold->offsets, cold->size,
                                             UINT64_MAX);
}

struct hw_lines hw_lines_measure(struct hw_line_counter *counter, const struct hw_ground *ground,
                                 const struct hw_visits *visits, const struct hw_layout *layout,
                                 const struct hw_layout *cold, uint64_t pointer, double *each)
{
    struct hw_ground apart = *ground, hot = *ground;
    struct hw_lines sum = {0};
    apart.placement = HW_PLACE_SINGLE;
    if (!ground->counted)
        place_anywhere(apart.share, 16);
    if (cold && ground->counted) { /* the parts of an object are allocated one behind the other */
        hot.beside = chunk_of(cold->size);
        apart.beside = chunk_of(layout->size);
    }
    const struct parts parts = {counter, visits, layout, cold, pointer};
    struct hw_ground hot_row = hot, apart_row = apart;
    hot_row.stride = apart_row.stride = ground->counted && ground->chunks ? chunk_of(layout->size) + hot.beside : 0;
    for (size_t i = 0; i < visits->count; i++) {
        const struct hw_visit *visit = &visits->visits[i];
        const double lines = lines_of_parts(&parts, &hot, &apart, visit);
        const double in_order = hot_row.stride ? lines_of_parts(&parts, &hot_row, &apart_row, visit) : lines;
        if (each)
            each[i] = lines;
        double needed = (double)visit->bytes / HW_LINE;
        if (!visit->walk)
            needed = (double)((visit->bytes + HW_LINE - 1) / HW_LINE);
        sum.per_use += visit->executions * lines;
        sum.needed += visit->executions * (needed < lines ? needed : lines);
        sum.missed += visit->executions * lines * hw_miss_share(ground, lines);
        sum.missed_in_order += visit->executions * in_order * hw_miss_share(ground, in_order);
    }
    if (visits->executions > 0) {
        sum.per_use /= visits->executions;
        sum.needed /= visits->executions;
        sum.bytes_needed = visits->bytes / visits->executions;
    }
    return sum;
}
