/* llvm_sample.h - made-up LLVM heap profiles for the unit tests and the fuzzer's corpus. */
#ifndef TESTS_UNIT_LLVM_SAMPLE_H
#define TESTS_UNIT_LLVM_SAMPLE_H

#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

struct sample_random {
    uint64_t state;
};

static uint64_t sample_next(struct sample_random *random)
{
    random->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t value = random->state;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static uint64_t sample_below(struct sample_random *random, uint64_t limit)
{
    return sample_next(random) % limit;
}

/* CONTEXTS different stacks below a few common roots. All numbers fit the files' widths. */
static inline struct hw_llvm_profile sample_profile(uint64_t seed, bool symbolized, size_t contexts, bool histograms)
{
    enum { DEEPEST = 24, FRAMES = 200, CELLS = 9 };
    struct sample_random random = {seed};
    struct hw_llvm_profile profile = {.symbolized = symbolized, .known = HW_LLVM_KNOWN_ALL, .dumps = 1};
    profile.contexts = calloc(contexts + 1, sizeof *profile.contexts);
    profile.stacks = calloc((contexts + 1) * DEEPEST, sizeof *profile.stacks);
    profile.histograms = calloc((contexts + 1) * CELLS, sizeof *profile.histograms);
    profile.frames = calloc(FRAMES, sizeof *profile.frames);
    profile.segments = calloc(2, sizeof *profile.segments);
    for (size_t i = 0; i < 2 && !symbolized; i++) {
        struct hw_llvm_segment *segment = &profile.segments[profile.segment_count++];
        *segment = (struct hw_llvm_segment){
            .start = 0x400000 + i * 0x100000, .end = 0x480000 + i * 0x100000, .bias = 0x400000 + i * 0x100000};
        segment->build_id_size = 20;
        for (size_t k = 0; k < 20; k++)
            segment->build_id[k] = (uint8_t)(k + i);
    }
    for (size_t i = 0; i < FRAMES && symbolized; i++) /* frames differ in their numbers at least */
        profile.frames[profile.frame_count++] = (struct hw_llvm_frame){.function = 1 + i % 40,
                                                                       .line_offset = (uint32_t)i,
                                                                       .column = (uint32_t)sample_below(&random, 90),
                                                                       .inlined = i % 3 == 0};
    for (size_t i = 0; i < contexts; i++) {
        struct hw_llvm_context *context = &profile.contexts[profile.context_count++];
        const uint32_t own = 1 + (uint32_t)sample_below(&random, 4), common = (uint32_t)sample_below(&random, 16);
        context->first = profile.stack_size;
        context->count = own + common + 3;
        for (uint32_t k = 0; k < context->count; k++) {
            uint64_t value = k < 3 ? (i >> 6 * k) % 64 : k < own + 3 ? sample_below(&random, FRAMES) : 100 + k - own;
            if (symbolized && k == 0) /* not inlined: the leaf's record alone has the context */
                value = 1 + 3 * (value % 60);
            profile.stacks[profile.stack_size++] = symbolized ? value : 0x400000 + 16 * value;
        }
        for (int field = 1; field < HW_LLVM_HISTOGRAM_SIZE; field++)
            context->mib.field[field] = sample_below(&random, 1000000);
        if (histograms) {
            uint64_t *cells = profile.histograms + i * CELLS;
            context->histogram = cells;
            context->mib.field[HW_LLVM_HISTOGRAM_SIZE] = 1 + sample_below(&random, CELLS);
            for (size_t k = 0; k < CELLS; k++)
                cells[k] = sample_below(&random, 4096);
        }
    }
    return profile;
}

#endif
