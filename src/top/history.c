/* history.c - see history.h. */
#include "top/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

/* ---- readings ---- */

static bool keep_moment(struct hw_top_moment *moment, const struct hw_live *live)
{
    if (!HW_GROW(moment->bytes, moment->room, live->context_count))
        return false;
    for (size_t i = 0; i < live->context_count; i++)
        moment->bytes[i] = live->counts[i].live_bytes;
    moment->count = live->context_count;
    moment->time_ns = live->time_ns ? live->time_ns : 1;
    return true;
}

bool hw_top_before(struct hw_top_history *history)
{
    const struct hw_live *live = history->live;
    struct hw_top_moment *earlier = history->earlier;
    if (!live->time_ns)
        return true; /* nothing was read yet */
    if (!HW_GROW(history->before, history->before_room, live->context_count) ||
        !HW_GROW(history->threads_before, history->threads_before_room, live->thread_count))
        return false;
    if (live->context_count)
        memcpy(history->before, live->counts, live->context_count * sizeof *live->counts);
    history->before_count = live->context_count;
    if (live->thread_count)
        memcpy(history->threads_before, live->threads, live->thread_count * sizeof *live->threads);
    history->threads_before_count = live->thread_count;
    history->total_before = live->total;
    history->before_ns = live->time_ns;
    if (!earlier[0].time_ns)
        return keep_moment(&earlier[0], live);
    if (!earlier[1].time_ns && live->time_ns >= earlier[0].time_ns + HW_TOP_GROWTH_NS / 2)
        return keep_moment(&earlier[1], live);
    if (earlier[1].time_ns && live->time_ns >= earlier[0].time_ns + HW_TOP_GROWTH_NS) {
        const struct hw_top_moment old = earlier[0];
        earlier[0] = earlier[1];
        earlier[1] = old;
        return keep_moment(&earlier[1], live);
    }
    return true;
}

void hw_top_after(struct hw_top_history *history)
{
    const struct hw_live *live = history->live;
    history->points[history->point_count++ % HW_TOP_POINTS] = (struct hw_top_point){
        live->time_ns, live->total.live_bytes > 0 ? (uint64_t)live->total.live_bytes : 0, live->rss_bytes};
}

bool hw_top_set_mark(struct hw_top_history *history)
{
    return keep_moment(&history->mark, history->live);
}

void hw_top_clear_mark(struct hw_top_history *history)
{
    history->mark.time_ns = 0;
}

void hw_top_history_free(struct hw_top_history *history)
{
    free(history->before);
    free(history->threads_before);
    free(history->earlier[0].bytes);
    free(history->earlier[1].bytes);
    free(history->mark.bytes);
}

/* ---- values ---- */

static const struct hw_top_moment *growth_from(const struct hw_top_history *history)
{
    return history->mark.time_ns ? &history->mark : &history->earlier[0];
}

uint64_t hw_top_growth_since(const struct hw_top_history *history)
{
    return growth_from(history)->time_ns;
}

double hw_top_rate(const struct hw_top_history *history, uint64_t before, uint64_t now)
{
    const uint64_t time_ns = history->live->time_ns;
    if (!history->before_ns || time_ns <= history->before_ns)
        return -1;
    /* After heapwise_reset() counts begin from 0 again. */
    return now <= before ? 0 : (double)(now - before) * 1e9 / (double)(time_ns - history->before_ns);
}

static int64_t thousandths(double rate)
{
    return rate <= 0 ? 0 : rate > 9e15 ? INT64_MAX : (int64_t)(rate * 1000);
}

int64_t hw_top_value(const struct hw_top_history *history, uint32_t context, enum hw_top_column column)
{
    const struct hw_live_count *now = &history->live->counts[context];
    const struct hw_top_moment *from = growth_from(history);
    static const struct hw_live_count none;
    const struct hw_live_count *before = context < history->before_count ? &history->before[context] : &none;
    switch (column) {
    case HW_TOP_LIVE:
        return now->live_bytes;
    case HW_TOP_GROWTH:
        return !from->time_ns ? 0
                              : (int64_t)((uint64_t)now->live_bytes -
                                          (uint64_t)(context < from->count ? from->bytes[context] : 0));
    case HW_TOP_ALLOCATIONS:
        return thousandths(hw_top_rate(history, before->allocations, now->allocations));
    case HW_TOP_CHURN:
        return thousandths(hw_top_rate(history, before->bytes, now->bytes));
    default:
        return now->live_blocks;
    }
}

/* ---- the first ones ---- */

struct ranked {
    int64_t value;
    uint32_t context;
};

/* Greater values first; of equal ones the older stack, so that rows do not jump. */
static bool is_before(const struct ranked *one, const struct ranked *other)
{
    return one->value > other->value || (one->value == other->value && one->context < other->context);
}

/* HEAP has the last one of all on top. */
static void sink(struct ranked *heap, size_t count, size_t place)
{
    for (size_t child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1]))
            child++; /* the later one of the two */
        if (!is_before(&heap[place], &heap[child]))
            return;
        const struct ranked moved = heap[place];
        heap[place] = heap[child];
        heap[child] = moved;
    }
}

static int by_rank(const void *one, const void *other)
{
    const struct ranked *a = one, *b = other;
    return HW_ORDER(b->value, a->value) ?: HW_ORDER(a->context, b->context);
}

bool hw_top_best(const struct hw_top_history *history, enum hw_top_column column, uint32_t *best, size_t most,
                 size_t *found, bool (*wanted)(void *closure, uint32_t context), void *closure)
{
    struct ranked *heap = malloc((most + 1) * sizeof *heap);
    size_t count = 0;
    for (uint32_t i = 0; heap && most && i < history->live->context_count; i++) {
        const struct ranked one = {hw_top_value(history, i, column), i};
        if (one.value == 0 || (count == most && !is_before(&one, &heap[0])) || (wanted && !wanted(closure, i)))
            continue;
        if (count < most) {
            heap[count++] = one;
            for (size_t k = count / 2; count == most && k-- > 0;)
                sink(heap, count, k);
        } else {
            heap[0] = one;
            sink(heap, count, 0);
        }
    }
    if (count)
        qsort(heap, count, sizeof *heap, by_rank);
    for (size_t i = 0; i < count; i++)
        best[i] = heap[i].context;
    const bool fine = heap != NULL;
    free(heap);
    *found = count;
    return fine;
}
