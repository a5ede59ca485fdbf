/* block_findings.c - findings on blocks, from granules and words that were counted: by allocation context. */
#include "analysis/internal.h"

#define WORTH_BYTES      65536 /* memory */
#define WORTH_OF_PEAK    0.01  /* of the process's peak */
#define SPARSE           0.5   /* share of a block's granules that is touched, mean */
#define WORTH_LINES      10000
#define WORTH_SAMPLES    20   /* in lines that are known to be shared */
#define WORTH_OF_SAMPLES 0.01 /* of all in blocks */
#define PERIOD_LINES     100  /* of words that a sampler saw: each stands for many */

static double peak_of(const struct hw_profile *profile)
{
    return (double)profile->process.peak_bytes;
}

bool hw_is_worth(const struct hw_finder *finder, double bytes)
{
    return bytes >= WORTH_BYTES && bytes >= WORTH_OF_PEAK * peak_of(finder->analysis->input.profile);
}

static double worth_lines(const struct hw_finder *finder)
{
    return finder->analysis->input.periods ? PERIOD_LINES : WORTH_LINES;
}

/* Live blocks of a context, and bytes of each. */
struct blocks {
    uint32_t *context; /* one */
    const struct hw_profile_context *sum;
    const struct hw_profile_access *access;
    uint64_t live;
    double mean;
};

static struct hw_finding *add(struct hw_finder *finder, const struct blocks *blocks, enum hw_finding_kind kind,
                              double lines, double bytes)
{
    struct hw_finding *finding = hw_finding_add(finder, kind, lines * HW_LINE + bytes);
    if (!finding)
        return NULL;
    finding->certain = true;
    finding->contexts = blocks->context;
    finding->context_count = 1;
    finding->blocks = blocks->live;
    finding->block_bytes = hw_count_of(blocks->mean + 0.5);
    finding->lines = lines;
    finding->bytes = bytes;
    return finding;
}

/* ---- bytes nobody touches ---- */

static void find_sparse(struct hw_finder *finder, const struct blocks *blocks)
{
    const struct hw_profile_access *access = blocks->access;
    const double touched = (double)access->utilization_total / (double)access->blocks / 10000;
    const double bytes = (double)blocks->live * blocks->mean * (1 - touched);
    if (touched >= SPARSE || !access->granules || !hw_is_worth(finder, bytes))
        return;
    struct hw_finding *finding = add(finder, blocks, HW_FINDING_SPARSE, 0, bytes);
    if (finding) {
        finding->part = access->granules - access->granules_touched;
        finding->whole = access->granules;
    }
}

/* ---- words: blocks of one size, counted in words ---- */

#define WORDS_MOST   8192 /* of a block */
#define RUN_BYTES    16   /* unused words side by side that are worth a word */
#define HEADER_BYTES 32

/* Words at the same place of all blocks that none touches: the longest run of them is named. */
static bool find_unused_words(struct hw_finder *finder, const struct blocks *blocks, const uint64_t *words,
                              size_t count)
{
    const unsigned word = finder->analysis->input.word_bytes;
    size_t unused = 0, run = 0, best = 0, best_end = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++) {
        all = hw_add_saturating(all, words[i]);
        run = words[i] ? 0 : run + 1;
        unused += !words[i];
        if (run > best) {
            best = run;
            best_end = i + 1;
        }
    }
    const double bytes = (double)unused * word * (double)blocks->live;
    if (best * word < RUN_BYTES || unused * 10 < count || !hw_is_worth(finder, bytes))
        return false;
    struct hw_finding *finding = add(finder, blocks, HW_FINDING_UNUSED_WORDS, 0, bytes);
    if (finding) {
        finding->first_byte = (best_end - best) * word;
        finding->end_byte = best_end * word;
        if (finding->end_byte > blocks->sum->size_max)
            finding->end_byte = blocks->sum->size_max;
        finding->part = unused * word;
        finding->whole = blocks->sum->size_max;
        finding->periods = finder->analysis->input.periods ? all : 0;
    }
    return true;
}

/* A header that is used much more than what follows it: each use brings in a line with little else in it. */
static void find_header(struct hw_finder *finder, const struct blocks *blocks, const uint64_t *words, size_t count)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    const unsigned word = input->word_bytes;
    uint64_t all = 0, part = 0, hottest = 0;
    size_t end = 0;
    for (size_t i = 0; i < count; i++)
        all = hw_add_saturating(all, words[i]);
    for (; end < HEADER_BYTES / word && end < count && (double)part < 0.9 * (double)all; end++) {
        part = hw_add_saturating(part, words[end]);
        hottest = words[end] > hottest ? words[end] : hottest;
    }
    if (count * word < 128 || (double)part < 0.9 * (double)all)
        return;
    const double set = (double)blocks->live * HW_LINE; /* bytes of the headers' lines */
    const double lines = (double)hottest * (1 - (double)end * word / HW_LINE);
    const double missed = set > HW_CACHE_BYTES ? lines * (1 - HW_CACHE_BYTES / set) : 0;
    if (missed < worth_lines(finder))
        return;
    struct hw_finding *finding = add(finder, blocks, HW_FINDING_HEADER, missed, 0);
    if (finding) {
        finding->end_byte = end * word;
        finding->part = part;
        finding->whole = all;
    }
}

/* False: the words explain nothing that is worth saying about untouched bytes. */
static bool find_words(struct hw_finder *finder, const struct blocks *blocks)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    const unsigned word = input->word_bytes;
    const uint64_t size = blocks->sum->size_max;
    if (!word || !size || blocks->sum->size_min != size || size > (uint64_t)WORDS_MOST * word)
        return false;
    const size_t count = (size_t)((size + word - 1) / word);
    static _Thread_local uint64_t words[WORDS_MOST];
    for (size_t i = 0; i < count; i++)
        words[i] = 0;
    if (!input->words(input->closure, *blocks->context, words, count))
        return false;
    find_header(finder, blocks, words, count);
    return find_unused_words(finder, blocks, words, count);
}

/* ---- threads ---- */

/* How often lines go from one CPU to another has an upper bound; without one (files of older versions) it is the number
 * of accesses. Lines whose counts are at their limit are always reported. */
static void find_sharing(struct hw_finder *finder, const struct blocks *blocks)
{
    const struct hw_profile_access *access = blocks->access;
    const uint32_t granule = finder->analysis->input.profile->access_info.granule;
    const bool fine = granule && granule < HW_LINE;
    const double touched = (double)access->granules_touched * (fine ? (double)granule / HW_LINE : 1);
    uint64_t shared = fine ? access->lines_false_shared : access->shared_writers;
    if (!fine)
        shared -= access->lines_handed_over < shared ? access->lines_handed_over : shared;
    const double share = touched > 0 && (double)shared < touched ? (double)shared / touched : 1;
    const double lines =
        access->line_passes ? (double)access->line_passes : share * (double)hw_profile_access_total(access);
    if (!shared || (lines < worth_lines(finder) && !access->lines_hot))
        return;
    struct hw_finding *finding =
        add(finder, blocks, fine ? HW_FINDING_FALSE_SHARING : HW_FINDING_SHARED_WRITES, lines, 0);
    if (finding) {
        finding->part = shared;
        finding->whole = touched > (double)shared ? hw_count_of(touched) : shared;
        finding->certain = fine;
        finding->hot = access->lines_hot;
        finding->writes = hw_add_saturating(access->writes, access->unsplit);
    }
}

static void find_shared_globals(struct hw_finder *finder)
{
    const uint64_t lines = finder->analysis->input.global_lines;
    struct hw_finding *finding =
        lines ? hw_finding_add(finder, HW_FINDING_FALSE_SHARING, (double)lines * HW_LINE) : NULL;
    if (!finding)
        return;
    finding->certain = true;
    finding->part = finding->whole = finding->hot = lines;
}

/* What samples show: lines at which several threads were seen, of which one wrote, and no word in common. They say how
 * often in proportion, not how many times, unless each stands for a known number. */
static void find_sampled_sharing(struct hw_finder *finder, const struct blocks *blocks)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    uint64_t lines;
    const uint64_t samples = input->shared_samples(input->closure, *blocks->context, &lines);
    if (!lines || samples < WORTH_SAMPLES || (double)samples < WORTH_OF_SAMPLES * (double)input->samples)
        return;
    const double passed = (double)samples * (double)input->sample_weight;
    struct hw_finding *finding = add(finder, blocks, HW_FINDING_FALSE_SHARING, passed, 0);
    if (!finding)
        return;
    finding->certain = passed > 0;
    finding->cost = passed > 0 ? finding->cost : (double)samples * HW_LINE;
    finding->samples = samples;
    finding->whole = input->samples;
    finding->part = lines;
}

void hw_block_findings(struct hw_finder *finder)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    find_shared_globals(finder);
    for (size_t i = 0; i < input->context_count && !finder->pool->failed; i++) {
        const struct hw_profile_context *sum = input->contexts[i];
        const bool counted = sum->access && sum->access->all.blocks;
        if (!sum->allocations || !(counted || input->shared_samples))
            continue;
        struct blocks blocks = {.context = hw_pool_take(finder->pool, 1, sizeof *blocks.context),
                                .sum = sum,
                                .access = counted ? &sum->access->all : NULL,
                                .live = hw_live_blocks(input->profile, sum),
                                .mean = (double)sum->bytes / (double)sum->allocations};
        if (!blocks.context)
            return;
        *blocks.context = (uint32_t)i;
        if (input->shared_samples)
            find_sampled_sharing(finder, &blocks);
        if (!counted)
            continue;
        find_sharing(finder, &blocks);
        /* What uncounted code does with the rest of a block is not known. */
        if (input->unseen && input->unseen(input->closure, i))
            continue;
        if (!find_words(finder, &blocks))
            find_sparse(finder, &blocks);
    }
}
