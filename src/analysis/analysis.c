/* analysis.c - see analysis.h: the whole, and the rank of findings. */
#include "analysis/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

const char *const hw_finding_kind_names[HW_FINDING_KINDS] = {
    [HW_FINDING_LAYOUT] = "layout",
    [HW_FINDING_ASTRIDE] = "astride-lines",
    [HW_FINDING_PADDING] = "padding",
    [HW_FINDING_UNUSED_FIELDS] = "unused-fields",
    [HW_FINDING_UNREAD_FIELDS] = "fields-never-read",
    [HW_FINDING_SPARSE] = "sparse-blocks",
    [HW_FINDING_UNUSED_WORDS] = "unused-words",
    [HW_FINDING_HEADER] = "hot-header",
    [HW_FINDING_FALSE_SHARING] = "false-sharing",
    [HW_FINDING_SHARED_WRITES] = "shared-writes",
    [HW_FINDING_COPIES] = "identical-blocks",
    [HW_FINDING_ZEROS] = "zeros",
    [HW_FINDING_ENDS] = "unused-ends",
    [HW_FINDING_UNWRITTEN] = "never-written",
    [HW_FINDING_PINNED] = "pinned-pages",
    [HW_FINDING_OUT_OF_MEMORY] = "out-of-memory",
};

/* ---- memory ---- */

void *hw_pool_take(struct hw_pool *pool, size_t count, size_t size)
{
    if (!HW_GROW(pool->pieces, pool->capacity, pool->count + 1)) {
        pool->failed = true;
        return NULL;
    }
    void *piece = calloc(count ? count : 1, size);
    if (piece)
        pool->pieces[pool->count++] = piece;
    else
        pool->failed = true;
    return piece;
}

void hw_pool_free(struct hw_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        free(pool->pieces[i]);
    free(pool->pieces);
    *pool = (struct hw_pool){0};
}

/* ---- findings ---- */

struct hw_finding *hw_finding_add(struct hw_finder *finder, enum hw_finding_kind kind, double cost)
{
    struct hw_analysis *analysis = finder->analysis;
    if (analysis->finding_count == finder->capacity) {
        const size_t capacity = finder->capacity ? 2 * finder->capacity : 32;
        struct hw_finding *findings = hw_pool_take(finder->pool, capacity, sizeof *findings);
        if (!findings)
            return NULL;
        if (analysis->finding_count)
            memcpy(findings, analysis->findings, analysis->finding_count * sizeof *findings);
        analysis->findings = findings;
        finder->capacity = capacity;
    }
    struct hw_finding *finding = &analysis->findings[analysis->finding_count++];
    *finding = (struct hw_finding){.kind = kind, .cost = cost, .structure = SIZE_MAX};
    return finding;
}

static int compare_findings(const void *left, const void *right)
{
    const struct hw_finding *a = left, *b = right;
    if (a->certain != b->certain)
        return a->certain ? -1 : 1;
    if (a->cost > b->cost || b->cost > a->cost)
        return a->cost > b->cost ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->structure != b->structure)
        return a->structure < b->structure ? -1 : 1;
    const uint32_t first = a->context_count ? a->contexts[0] : 0, second = b->context_count ? b->contexts[0] : 0;
    return HW_ORDER(first, second);
}

struct hw_analysis *hw_analysis_new(const struct hw_analysis_input *input, struct hw_error *error)
{
    struct hw_analysis *analysis = calloc(1, sizeof *analysis);
    struct hw_pool *pool = calloc(1, sizeof *pool);
    if (analysis && pool) {
        struct hw_finder finder = {.analysis = analysis, .pool = pool};
        analysis->input = *input;
        analysis->input.fields = input->fields ? input->fields : &input->profile->fields;
        analysis->storage = pool;
        pool->failed = !hw_structs_analyse(analysis, pool);
        if (!pool->failed)
            hw_struct_findings(&finder);
        if (!pool->failed)
            hw_block_findings(&finder);
        if (!pool->failed)
            hw_content_findings(&finder);
        if (!pool->failed)
            hw_pin_findings(&finder);
        if (!pool->failed)
            hw_end_findings(&finder);
        if (analysis->finding_count)
            qsort(analysis->findings, analysis->finding_count, sizeof *analysis->findings, compare_findings);
        if (!pool->failed)
            return analysis;
        hw_pool_free(pool);
    }
    hw_error_set(error, "not enough memory for the analysis");
    free(pool);
    free(analysis);
    return NULL;
}

void hw_analysis_free(struct hw_analysis *analysis)
{
    if (!analysis)
        return;
    hw_pool_free(analysis->storage);
    free(analysis->storage);
    free(analysis);
}
