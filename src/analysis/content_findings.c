/* content_findings.c - findings on what blocks hold (record --contents): by allocation context, and for the contexts
 * together that are too small for a finding of their own. Each byte is in one finding at most. */
#include "analysis/internal.h"

#define WORTH_TOGETHER 0.1 /* of the peak */
#define PARTS          4u

static const enum hw_finding_kind kind_of[PARTS] = {HW_FINDING_COPIES, HW_FINDING_ZEROS, HW_FINDING_ENDS,
                                                    HW_FINDING_UNWRITTEN};

/* What is avoidable of a kind, and in how many blocks; 0: that is not counted. */
struct part {
    double bytes, blocks, contents;
};

static struct part part_of(const struct hw_contents *sum, enum hw_finding_kind kind)
{
    switch (kind) {
    case HW_FINDING_COPIES:
        return (struct part){(double)sum->avoidable_copies, (double)sum->identical_blocks, (double)sum->repeated};
    case HW_FINDING_ZEROS:
        return (struct part){(double)sum->avoidable_zeros, (double)sum->zero_blocks, 0};
    case HW_FINDING_ENDS:
        return (struct part){(double)sum->avoidable_ends, (double)sum->tail_blocks, 0};
    default:
        return (struct part){(double)sum->avoidable_bytes - (double)sum->avoidable_copies -
                                 (double)sum->avoidable_zeros - (double)sum->avoidable_ends,
                             0, 0};
    }
}

static void add(struct hw_finder *finder, enum hw_finding_kind kind, struct part part, const uint32_t *contexts,
                size_t count)
{
    struct hw_finding *finding = hw_finding_add(finder, kind, part.bytes);
    if (!finding)
        return;
    finding->certain = true;
    finding->bytes = part.bytes;
    finding->contexts = contexts;
    finding->context_count = count;
    finding->blocks = hw_count_of(part.blocks);
    finding->block_bytes = part.blocks > 0 ? hw_count_of(part.bytes / part.blocks + 0.5) : 0;
    finding->part = hw_count_of(part.bytes);
    finding->whole = finder->analysis->input.profile->content_search->bytes;
    /* The first block of a content may be of another context. */
    finding->times = part.contents > 0 && part.contents <= part.blocks ? 1 + part.blocks / part.contents : 0;
}

static void find_parts(struct hw_finder *finder, enum hw_finding_kind kind)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    struct part together = {0};
    uint32_t *small = hw_pool_take(finder->pool, input->context_count, sizeof *small);
    size_t small_count = 0;
    for (size_t i = 0; small && i < input->context_count; i++) {
        const struct part part = input->contents[i] ? part_of(input->contents[i], kind) : (struct part){0};
        if (hw_is_worth(finder, part.bytes)) {
            uint32_t *context = hw_pool_take(finder->pool, 1, sizeof *context);
            if (!context)
                return;
            *context = (uint32_t)i;
            add(finder, kind, part, context, 1);
        } else if (part.bytes > 0 && !input->contexts[i]->pool) { /* the memory of pools is that of other blocks */
            small[small_count++] = (uint32_t)i;
            together.bytes += part.bytes;
            together.blocks += part.blocks;
            together.contents += part.contents;
        }
    }
    if (small_count >= 2 && hw_is_worth(finder, together.bytes * 0.01 / WORTH_TOGETHER))
        add(finder, kind, together, small, small_count);
}

void hw_content_findings(struct hw_finder *finder)
{
    const struct hw_analysis_input *input = &finder->analysis->input;
    for (unsigned i = 0; input->contents && input->profile->content_search && i < PARTS; i++)
        find_parts(finder, kind_of[i]);
}
