/* json_threads.c - threads in the JSON report: "threads", and of contexts "by_thread". What rests on samples is under
 * "sampled". */
#include "report/json/json.h"
#include "report/view/frame_roles.h"
#include "report/view/merged.h"

#include <stdlib.h>

#include "base/order.h"

#define PLACES_MOST 10

static json_t *counts_of(struct json_writer *writer, json_t *object)
{
    if (!writer->sampled && !writer->view->profile->observed)
        return object;
    json_t *sampled = json_object();
    set(writer, object, "sampled", sampled);
    return sampled;
}

typedef const struct hw_profile_thread_place *place_pointer;

static int compare_places(const void *left, const void *right)
{
    const place_pointer a = *(const place_pointer *)left, b = *(const place_pointer *)right;
    return HW_ORDER(a->thread, b->thread) ?: HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->context, b->context);
}

/* The places at which THREAD allocated most bytes; *AT is where they begin among ORDER, and then where they end. */
static json_t *places_value(struct json_writer *writer, uint32_t thread, const place_pointer *order, size_t *at)
{
    const size_t all = writer->view->profile->thread_place_count;
    json_t *array = json_array();
    for (size_t count = 0; *at < all && order[*at]->thread == thread; count++, ++*at) {
        if (count >= PLACES_MOST || !order[*at]->bytes)
            continue;
        json_t *row = json_object();
        set_count(writer, row, "context", order[*at]->context);
        set_count(writer, row, "bytes", order[*at]->bytes);
        set_count(writer, row, "allocations", order[*at]->allocations);
        append(writer, array, row);
    }
    return array;
}

static json_t *thread_value(struct json_writer *writer, const struct hw_view_thread *thread, json_t *places)
{
    const struct hw_profile_thread *is = thread->is;
    const bool merged = hw_is_merged(writer->view->profile);
    json_t *object = json_object();
    set_text(writer, object, "name", known(is->name));
    set_text(writer, object, "kind", hw_view_thread_key(is->flags));
    const bool start = thread->location != HW_NONE && !(is->flags & HW_THREAD_ROUTINES);
    set(writer, object, "start",
        start ? hw_json_frame(writer, &writer->view->locations[thread->location], thread->frame) : json_null());
    json_t *starter = json_object();
    set_known(writer, starter, "thread", is->starter != HW_NONE, is->starter);
    set_known(writer, starter, "context", thread->started, is->context);
    set(writer, object, "started_by", starter);
    set_count(writer, object, "threads", is->threads);
    set(writer, object, "names_differ", json_boolean(is->flags & HW_THREAD_NAMES));
    set_known(writer, object, "first_event_ns", !merged && !(is->flags & HW_THREAD_HANDLERS), is->start_ns);
    set_known(writer, object, "ended_ns", is->end_ns, is->end_ns);
    json_t *counts = counts_of(writer, object);
    set_count(writer, counts, "allocations", is->allocations);
    set_count(writer, counts, "frees", is->frees);
    set_known(writer, counts, "reallocations", !writer->sampled, is->reallocations);
    set_known(writer, counts, "temporary", !writer->sampled, is->temporary);
    set_count(writer, counts, "bytes", is->bytes);
    set_signed(writer, counts, "peak_bytes", is->peak_bytes);
    set_signed(writer, counts, "live_allocations", is->live_blocks);
    set_signed(writer, counts, "live_bytes", is->live_bytes);
    set_count(writer, counts, "freed_by_others", is->freed_by_others);
    set_count(writer, counts, "freed_by_others_bytes", is->freed_by_others_bytes);
    set_count(writer, counts, "freed_of_others", is->freed_of_others);
    set_count(writer, counts, "freed_of_others_bytes", is->freed_of_others_bytes);
    set_count(writer, counts, "owner_unknown", is->owner_unknown);
    set(writer, counts, "places", places);
    return object;
}

static int compare_starts(const void *left, const void *right)
{
    const struct hw_view_thread *a = *(const struct hw_view_thread *const *)left;
    const struct hw_view_thread *b = *(const struct hw_view_thread *const *)right;
    return HW_ORDER(a->is->context, b->is->context);
}

unsigned hw_json_headline(struct json_writer *writer, uint32_t leaf, struct hw_view_stack *stack)
{
    const bool fine = hw_view_stack(writer->view, leaf, stack);
    writer->failed |= !fine;
    return fine && stack->count ? (unsigned)hw_stack_headline(stack) : 0;
}

/* The call stacks that started threads, each once. */
static void print_starts(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    const struct hw_view_thread **order = malloc((view->thread_count + 1) * sizeof(const struct hw_view_thread *));
    struct hw_view_stack stack = {0};
    size_t count = 0;
    writer->failed |= !order;
    for (size_t i = 0; order && i < view->thread_count; i++)
        if (view->threads[i].started)
            order[count++] = &view->threads[i];
    if (count)
        qsort(order, count, sizeof *order, compare_starts);
    print_key(writer, "thread_starts");
    fputc('[', writer->stream);
    for (size_t i = 0; i < count; i++) {
        if (i && order[i]->is->context == order[i - 1]->is->context)
            continue;
        fprintf(writer->stream, "%s\n{\"context\":%u,", i ? "," : "", (unsigned)order[i]->is->context);
        hw_json_stack(writer, order[i]->started);
        fprintf(writer->stream, ",\"headline\":%u}", hw_json_headline(writer, order[i]->started, &stack));
    }
    hw_view_stack_free(&stack);
    fputc(']', writer->stream);
    free(order);
}

void hw_json_threads(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    const size_t count = view->profile->thread_place_count;
    json_t *array = view->thread_count ? json_array() : json_null();
    place_pointer *order = malloc((count + 1) * sizeof *order);
    size_t at = 0;
    writer->failed |= !order;
    for (size_t i = 0; order && i < count; i++)
        order[i] = &view->profile->thread_places[i];
    if (order && count)
        qsort(order, count, sizeof *order, compare_places);
    for (size_t i = 0; order && i < view->thread_count; i++)
        append(writer, array, thread_value(writer, &view->threads[i], places_value(writer, (uint32_t)i, order, &at)));
    free(order);
    print_key(writer, "threads");
    print_value(writer, array);
    print_starts(writer);
}

/* What is live of a place's blocks, by the thread that allocated them, is known where no other thread freed or
 * reallocated any. */
void hw_json_by_thread(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum)
{
    const struct hw_profile *profile = writer->view->profile;
    size_t count;
    const size_t first = HW_RUN(profile->thread_places, profile->thread_place_count, context, sum->id, &count);
    if (!count)
        return;
    json_t *array = json_array();
    for (size_t i = first; i < first + count; i++) {
        const struct hw_profile_thread_place *place = &profile->thread_places[i];
        json_t *row = json_object(), *counts;
        set_count(writer, row, "thread", place->thread);
        set(writer, row, "several", json_boolean(place->several));
        counts = counts_of(writer, row);
        set_count(writer, counts, "allocations", place->allocations);
        set_count(writer, counts, "frees", place->frees);
        set_count(writer, counts, "bytes", place->bytes);
        if (sum->freed_by_others || place->resized) {
            set(writer, counts, "live_bytes", json_null());
            set(writer, counts, "peak_bytes", json_null());
        } else {
            set_signed(writer, counts, "live_bytes", place->live_bytes);
            set_signed(writer, counts, "peak_bytes", place->peak_bytes);
        }
        append(writer, array, row);
    }
    set(writer, object, "by_thread", array);
}
