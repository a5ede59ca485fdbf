/* access_sections.h - sampled accesses, used words and shared lines for the files of profile_writer.h: for the reader's
 * tests and the fuzzer to start from. Contexts 1 and 2 have blocks, context 3 frees; there is one map at least. */
#ifndef HW_TEST_ACCESS_SECTIONS_H
#define HW_TEST_ACCESS_SECTIONS_H

#include "profile_writer.h"

#define ADD(image, type, entries) image_add(image, type, sizeof *(entries), entries, sizeof(entries), 0)

/* Where the directory entries of what was added are. */
struct sampled_sections {
    size_t info, contexts, counts;
};

HELPER struct sampled_sections sample_add_samples(struct sample *sample)
{
    static const struct hw_sample_info info[1] = {{.source = HW_SAMPLE_TRAP,
                                                   .frequency = 50,
                                                   .burst_length = 64,
                                                   .threads = 2,
                                                   .bursts = 3,
                                                   .instructions = 192,
                                                   .reads = 40,
                                                   .writes = 20,
                                                   .heap_reads = 30,
                                                   .heap_writes = 15}};
    static const struct hw_sample_context contexts[3] = {
        {.context = 2, .reads = 4, .lines = 1},
        {.context = 1, .reads = 20, .writes = 10, .lines = 2, .lines_false_shared = 1, .lines_writers = 1},
        {.context = 1, .reads = 6, .writes = 5, .lines = 1}};
    static const struct hw_sample_count counts[6] = {
        {.kind = HW_SAMPLE_GLOBAL, .context = HW_NONE, .map = 0, .bytes = 8, .offset = 0x4000, .reads = 3},
        {.kind = HW_SAMPLE_WORD, .context = 1, .map = HW_NONE, .bytes = 8, .offset = 16, .reads = 20},
        {.kind = HW_SAMPLE_WORD, .context = 1, .map = HW_NONE, .bytes = 8, .offset = 0, .writes = 15},
        {.kind = HW_SAMPLE_WORD, .context = 1, .map = HW_NONE, .bytes = 8, .offset = 16, .reads = 6},
        {.kind = HW_SAMPLE_PLACE, .context = 1, .map = 0, .offset = 0x1234, .reads = 26, .writes = 15},
        {.kind = HW_SAMPLE_PLACE, .context = 2, .map = HW_NONE, .offset = 0x99, .reads = 4}};
    return (struct sampled_sections){.info = ADD(&sample->image, HW_SECTION_SAMPLE_INFO, info),
                                     .contexts = ADD(&sample->image, HW_SECTION_SAMPLE_CONTEXTS, contexts),
                                     .counts = ADD(&sample->image, HW_SECTION_SAMPLE_COUNTS, counts)};
}

struct word_sections {
    size_t info, freed, live;
};

HELPER struct word_sections sample_add_words(struct sample *sample)
{
    static const struct hw_access_info info[1] = {{.flags = HW_ACCESS_SPLIT | HW_ACCESS_HARVESTED,
                                                   .granule = 4,
                                                   .planes = 2,
                                                   .planes_most = 20,
                                                   .harvest_tick = 1000000,
                                                   .modules = 1,
                                                   .word_period_ns = 20000000,
                                                   .word_rounds = 7,
                                                   .word_span_ns = 140000000}};
    static const struct hw_words freed[3] = {
        {.context = 1, .free_context = 3, .first_word = 32, .read_periods = {[1] = 5}, .read_blocks = {[1] = 2}},
        {.context = 1, .free_context = HW_NONE, .first_word = 0, .written_periods = {4}, .written_blocks = {3}},
        {.context = 1, .free_context = 3, .first_word = 0, .written_periods = {1}, .written_blocks = {1}}};
    static const struct hw_words live[1] = {
        {.context = 2, .free_context = HW_NONE, .saturated = 1, .read_periods = {[31] = 9}, .read_blocks = {[31] = 1}}};
    struct hw_access accesses[4] = {[0] = {.context = 1,
                                           .blocks = 6,
                                           .reads = 5,
                                           .writes = 5,
                                           .accesses_max = 5,
                                           .granules = 300,
                                           .granules_touched = 9,
                                           .utilization_max = 10000,
                                           .utilization_total = 600},
                                    [1] = {.context = 1},
                                    [2] = {.context = 2},
                                    [3] = {.context = 0}};
    ((struct hw_process_info *)image_data(&sample->image, sample->process))->mode = HW_MODE_ACCESS;
    ADD(&sample->image, HW_SECTION_ACCESS, accesses);
    return (struct word_sections){.info = ADD(&sample->image, HW_SECTION_ACCESS_INFO, info),
                                  .freed = ADD(&sample->image, HW_SECTION_WORDS, freed),
                                  .live = ADD(&sample->image, HW_SECTION_WORDS_LIVE, live)};
}

struct side_sections {
    size_t roles, sides, live;
};

/* Besides accesses that are counted or sampled. */
HELPER struct side_sections sample_add_sides(struct sample *sample)
{
    static const struct hw_thread_role roles[3] = {{.map = HW_NONE, .context = HW_NONE},
                                                   {.map = HW_NONE, .context = HW_NONE, .threads = 1},
                                                   {.map = 0, .context = 3, .routine = 0x2000, .threads = 4}};
    static const struct hw_side sides[4] = {{.context = 1,
                                             .role = 2,
                                             .kind = HW_SIDE_COUNTED,
                                             .sharing = HW_SHARING_FALSE,
                                             .map = HW_NONE,
                                             .offset = 8,
                                             .bytes = 8,
                                             .writes = 100,
                                             .lines = 2},
                                            {.context = 1,
                                             .role = 1,
                                             .kind = HW_SIDE_COUNTED,
                                             .sharing = HW_SHARING_FALSE,
                                             .map = HW_NONE,
                                             .offset = 0,
                                             .bytes = 8,
                                             .reads = 50,
                                             .lines = 2},
                                            {.context = 1,
                                             .role = 2,
                                             .kind = HW_SIDE_COUNTED,
                                             .sharing = HW_SHARING_FALSE,
                                             .map = HW_NONE,
                                             .offset = 8,
                                             .bytes = 8,
                                             .writes = 11,
                                             .lines = 1},
                                            {.context = 2,
                                             .role = 0,
                                             .kind = HW_SIDE_SAMPLED,
                                             .sharing = HW_SHARING_TRUE,
                                             .map = 0,
                                             .code = 0x1234,
                                             .offset = 8,
                                             .bytes = 8,
                                             .writes = 3}};
    static const struct hw_side live[1] = {{.context = 2,
                                            .role = 1,
                                            .kind = HW_SIDE_COUNTED,
                                            .sharing = HW_SHARING_UNTOLD,
                                            .map = HW_NONE,
                                            .bytes = 64,
                                            .writes = 9}};
    return (struct side_sections){.roles = ADD(&sample->image, HW_SECTION_ROLES, roles),
                                  .sides = ADD(&sample->image, HW_SECTION_SIDES, sides),
                                  .live = ADD(&sample->image, HW_SECTION_SIDES_LIVE, live)};
}

#endif
