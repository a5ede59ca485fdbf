/* perf_lines.c - see perf_hits.h: lines that processors fetch from each other. */
#include <stdlib.h>

#include "base/growing.h"
#include "base/order.h"
#include "perf/perf_hits.h"

#define SIDES_LINES 100 /* lines with HITM that are kept */
#define LINE        64

/* A word of a line. Lines are alike if the block of their first HITM is of one place, and the line lies in the same way
 * in it; outside of blocks each line is one of its own. */
struct row {
    uint32_t like_context;
    uint64_t like_offset; /* line - block, modulo 2^64; outside of blocks the address of the line */
    uint64_t like_hitm;
    uint64_t instance;
    struct hw_perf_side side;
};
struct rows {
    struct row *of;
    size_t count, room;
};

static uint64_t line_of(const struct hw_perf_hit *hit)
{
    return hit->sample->address / LINE;
}

static int compare_lines(const void *left, const void *right)
{
    const struct hw_perf_hit *a = left, *b = right;
    return HW_ORDER(line_of(a), line_of(b)) ?: HW_ORDER(a->sample->time_ns, b->sample->time_ns) ?:
           HW_ORDER(a->sample->tid, b->sample->tid) ?: HW_ORDER(a->sample->address, b->sample->address);
}

static int compare_users(const void *left, const void *right)
{
    const struct hw_perf_hit *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->word, b->word) ?: HW_ORDER(a->sample->tid, b->sample->tid);
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return HW_ORDER(a->like_context, b->like_context) ?: HW_ORDER(a->like_offset, b->like_offset) ?:
           HW_ORDER(a->side.context, b->side.context) ?: HW_ORDER(a->side.word, b->side.word) ?:
           HW_ORDER(a->instance, b->instance);
}

static int compare_hitm(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return HW_ORDER(b->like_hitm, a->like_hitm) ?: HW_ORDER(a->like_context, b->like_context) ?:
           HW_ORDER(a->like_offset, b->like_offset) ?: HW_ORDER(b->side.hitm, a->side.hitm) ?:
           HW_ORDER(a->side.context, b->side.context) ?: HW_ORDER(a->side.word, b->side.word);
}

static bool alike(const struct row *a, const struct row *b)
{
    return a->like_context == b->like_context && a->like_offset == b->like_offset;
}

/* The users of one line during the life of a block: COUNT hits of GROUP. */
static bool add_group(const struct hw_perf_match *match, struct hw_perf_hit *group, size_t count, struct rows *rows,
                      uint64_t instance)
{
    const struct hw_perf_hit *first = NULL;
    qsort(group, count, sizeof *group, compare_users);
    for (size_t i = 0; i < count && !first; i++)
        first = group[i].sample->source.hitm ? &group[i] : NULL;
    if (!first)
        return true;
    const uint64_t line = line_of(first) * LINE;
    struct row row = {.like_context = first->context, .instance = instance};
    row.like_offset = first->scope == HW_PERF_BLOCKS ? line - HW_EVENT_ADDRESS(&match->events[first->block]) : line;
    for (size_t i = 0, next; i < count; i = next) {
        row.side = (struct hw_perf_side){
            .context = group[i].context, .word = group[i].word, .first_thread = group[i].sample->tid};
        for (next = i; next < count && group[next].context == group[i].context && group[next].word == group[i].word;
             next++) {
            const struct hw_perf_sample *sample = group[next].sample;
            row.side.loads += sample->source.operation == HW_PERF_LOAD;
            row.side.stores += sample->source.operation == HW_PERF_STORE;
            row.side.hitm += sample->source.hitm != HW_PERF_NO_HITM;
            row.side.threads += next == i || sample->tid != group[next - 1].sample->tid;
        }
        if (!HW_GROW(rows->of, rows->room, rows->count + 1))
            return false;
        rows->of[rows->count++] = row;
    }
    return true;
}

/* COUNT hits on one line, from number FIRST on. */
static bool add_line(const struct hw_perf_match *match, struct hw_perf_hit *hits, size_t first, size_t count,
                     const uint64_t *ended, struct hw_perf_hit *group, struct rows *rows)
{
    const struct hw_block_event *events = match->events;
    for (size_t i = 0; i < count; i++) {
        const struct hw_perf_hit *hitm = &hits[i];
        uint64_t from = 0, to = UINT64_MAX;
        size_t users = 0;
        if (!hitm->sample->source.hitm || hitm->used)
            continue;
        if (hitm->scope == HW_PERF_BLOCKS) {
            from = hw_perf_ns_of_tick(match, events[hitm->block].tick);
            to = ended[hitm->block];
        }
        size_t k = i; /* hits of the line are sorted by time */
        while (k && hits[k - 1].sample->time_ns >= from)
            k--;
        for (; k < count && hits[k].sample->time_ns <= to; k++) {
            if (hits[k].used)
                continue;
            hits[k].used = true;
            group[users++] = hits[k];
        }
        if (!add_group(match, group, users, rows, first + i))
            return false;
    }
    return true;
}

/* Rows of lines that are alike become one for each word; then those with most HITM come first. */
static bool add_sides(struct hw_perf_match *match, struct rows *rows)
{
    size_t kept = 0;
    if (!rows->count)
        return true;
    qsort(rows->of, rows->count, sizeof *rows->of, compare_rows);
    for (size_t i = 0; i < rows->count; i++) {
        struct row *last = kept ? &rows->of[kept - 1] : NULL;
        const struct row *row = &rows->of[i];
        if (!last || !alike(last, row) || last->side.context != row->side.context ||
            last->side.word != row->side.word) {
            rows->of[kept] = *row;
            rows->of[kept++].side.lines = 1;
            continue;
        }
        last->side.loads += row->side.loads;
        last->side.stores += row->side.stores;
        last->side.hitm += row->side.hitm;
        last->side.threads = row->side.threads > last->side.threads ? row->side.threads : last->side.threads;
        last->side.lines++;
    }
    for (size_t i = 0, next; i < kept; i = next) {
        uint64_t hitm = 0;
        for (next = i; next < kept && alike(&rows->of[next], &rows->of[i]); next++)
            hitm += rows->of[next].side.hitm;
        for (size_t k = i; k < next; k++)
            rows->of[k].like_hitm = hitm;
    }
    qsort(rows->of, kept, sizeof *rows->of, compare_hitm);
    uint32_t line = 0;
    for (size_t i = 0; i < kept; i++) {
        line += i && !alike(&rows->of[i], &rows->of[i - 1]);
        if (line == SIDES_LINES)
            break;
        if (!HW_GROW(match->sides, match->side_room, match->side_count + 1))
            return false;
        rows->of[i].side.line = line;
        match->sides[match->side_count++] = rows->of[i].side;
    }
    return true;
}

bool hw_perf_add_lines(struct hw_perf_match *match, struct hw_perf_hit *hits, size_t hit_count, const uint64_t *ended)
{
    struct rows rows = {0};
    struct hw_perf_hit *group = calloc(hit_count + 1, sizeof *group);
    bool fine = group != NULL;
    qsort(hits, hit_count, sizeof *hits, compare_lines);
    for (size_t i = 0, next; fine && i < hit_count; i = next) {
        for (next = i; next < hit_count && line_of(&hits[next]) == line_of(&hits[i]); next++)
            ;
        fine = add_line(match, hits + i, i, next - i, ended, group, &rows);
    }
    fine = fine && add_sides(match, &rows);
    free(rows.of);
    free(group);
    return fine;
}
