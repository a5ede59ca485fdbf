/* perf_places.c - see perf_hits.h: samples by place and word. */
#include <stdlib.h>

#include "base/growing.h"
#include "base/order.h"
#include "perf/perf_hits.h"

static int compare_numbers(const void *left, const void *right)
{
    return HW_ORDER(*(const uint64_t *)left, *(const uint64_t *)right);
}

static int compare_indexes(const void *left, const void *right)
{
    return HW_ORDER(*(const uint32_t *)left, *(const uint32_t *)right);
}

static int compare_words(const void *left, const void *right)
{
    const struct hw_perf_hit *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->word, b->word) ?: HW_ORDER(a->block, b->block);
}

static uint64_t quantile(const uint64_t *sorted, size_t count, unsigned percent)
{
    return sorted[(count - 1) * percent / 100];
}

/* Adds the hits of ANY scope, or of SCOPE, to COUNT. WEIGHTS has room for all. */
static void sum_up(struct hw_perf_count *count, const struct hw_perf_hit *hits, size_t number, bool any,
                   uint64_t *weights)
{
    size_t weighted = 0;
    for (size_t i = 0; i < number; i++) {
        const struct hw_perf_sample *sample = hits[i].sample;
        if (!any && hits[i].scope != count->scope)
            continue;
        count->samples++;
        count->loads += sample->source.operation == HW_PERF_LOAD;
        count->stores += sample->source.operation == HW_PERF_STORE;
        count->levels[sample->has_source ? sample->source.level : HW_PERF_UNKNOWN]++;
        count->hitm_local += sample->source.hitm == HW_PERF_HITM_LOCAL;
        count->hitm_remote += sample->source.hitm == HW_PERF_HITM_REMOTE;
        if (!sample->weight || sample->source.operation == HW_PERF_STORE)
            continue;
        unsigned bar = 63 - (unsigned)__builtin_clzll(sample->weight);
        count->bars[bar < HW_PERF_BARS ? bar : HW_PERF_BARS - 1]++;
        count->weight_sum += sample->weight;
        weights[weighted++] = sample->weight;
    }
    count->weighted = weighted;
    if (!weighted)
        return;
    qsort(weights, weighted, sizeof *weights, compare_numbers);
    count->weight_median = quantile(weights, weighted, 50);
    count->weight_p90 = quantile(weights, weighted, 90);
    count->weight_p99 = quantile(weights, weighted, 99);
    count->weight_most = weights[weighted - 1];
}

static struct hw_perf_count *add_count(struct hw_perf_match *match, enum hw_perf_scope scope, uint32_t context)
{
    if (!HW_GROW(match->counts, match->count_room, match->count_count + 1))
        return NULL;
    struct hw_perf_count *count = &match->counts[match->count_count++];
    *count = (struct hw_perf_count){.scope = scope, .context = context};
    return count;
}

static int compare_samples_of(const void *left, const void *right)
{
    const struct hw_perf_count *a = left, *b = right;
    return HW_ORDER(b->samples, a->samples) ?: HW_ORDER(a->word, b->word);
}

static int compare_offsets(const void *left, const void *right)
{
    const struct hw_perf_count *a = left, *b = right;
    return HW_ORDER(a->word, b->word);
}

static uint64_t distinct_blocks(const struct hw_perf_hit *hits, size_t number, uint32_t *blocks)
{
    uint64_t count = 0;
    for (size_t i = 0; i < number; i++)
        blocks[i] = hits[i].block;
    qsort(blocks, number, sizeof *blocks, compare_indexes);
    for (size_t i = 0; i < number; i++)
        count += !i || blocks[i] != blocks[i - 1];
    return count;
}

/* Words of the place whose hits are HITS, sorted by word: those with most samples, by offset. */
static bool add_words(struct hw_perf_match *match, const struct hw_perf_hit *hits, size_t number, size_t at,
                      uint64_t *weights)
{
    const size_t first = match->count_count;
    size_t kept;
    for (size_t i = 0, next; i < number; i = next) {
        for (next = i; next < number && hits[next].word == hits[i].word; next++)
            ;
        struct hw_perf_count *word = add_count(match, HW_PERF_WORD, hits[i].context);
        if (!word)
            return false;
        word->word = hits[i].word;
        sum_up(word, hits + i, next - i, true, weights);
    }
    kept = match->count_count - first;
    match->counts[at].words = kept;
    if (kept > HW_PERF_WORDS) {
        qsort(match->counts + first, kept, sizeof *match->counts, compare_samples_of);
        match->count_count = first + HW_PERF_WORDS;
        qsort(match->counts + first, HW_PERF_WORDS, sizeof *match->counts, compare_offsets);
    }
    return true;
}

bool hw_perf_add_places(struct hw_perf_match *match, struct hw_perf_hit *hits, size_t hit_count)
{
    uint64_t *weights = calloc(hit_count + 1, sizeof *weights);
    uint32_t *blocks = calloc(hit_count + 1, sizeof *blocks);
    bool fine = weights && blocks;
    for (int scope = HW_PERF_ALL; fine && scope <= HW_PERF_ELSEWHERE; scope++) {
        struct hw_perf_count *count = add_count(match, (enum hw_perf_scope)scope, HW_NONE);
        fine = count != NULL;
        if (fine)
            sum_up(count, hits, hit_count, scope == HW_PERF_ALL, weights);
    }
    qsort(hits, hit_count, sizeof *hits, compare_words);
    for (size_t i = 0, next; fine && i < hit_count && hits[i].scope == HW_PERF_BLOCKS; i = next) {
        for (next = i; next < hit_count && hits[next].context == hits[i].context; next++)
            ;
        const size_t at = match->count_count;
        struct hw_perf_count *count = add_count(match, HW_PERF_PLACE, hits[i].context);
        fine = count != NULL;
        if (!fine)
            break;
        sum_up(count, hits + i, next - i, true, weights);
        count->blocks = distinct_blocks(hits + i, next - i, blocks);
        fine = add_words(match, hits + i, next - i, at, weights);
    }
    free(weights);
    free(blocks);
    return fine;
}
