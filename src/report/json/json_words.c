/* json_words.c - used words by position (4-byte granules) in the JSON report. */
#include "report/json/json.h"

#define WORDS_MOST 65536 /* that are listed one by one */

/* {"word_bytes", "reads", "writes", "blocks_read", "blocks_written"}: from the start of the blocks to the last word
 * that was used. */
json_t *hw_json_words(struct json_writer *writer, const struct hw_profile_words *runs, size_t count)
{
    json_t *object = json_object(), *arrays[4];
    static const char *const names[4] = {"reads", "writes", "blocks_read", "blocks_written"};
    uint64_t end = 0, next = 0;
    bool saturated = false;
    for (size_t i = 0; i < count; i++) {
        saturated |= runs[i].saturated != 0;
        for (uint32_t k = 0; k < HW_WORDS_RUN; k++)
            if (runs[i].read_blocks[k] | runs[i].written_blocks[k])
                end = runs[i].first_word + (uint64_t)k + 1;
    }
    const uint64_t listed = end < WORDS_MOST ? end : WORDS_MOST;
    for (int a = 0; a < 4; a++)
        arrays[a] = json_array();
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < HW_WORDS_RUN; k++) {
            const uint64_t word = runs[i].first_word + (uint64_t)k;
            if (word >= listed)
                break;
            const uint64_t values[4] = {runs[i].read_periods[k], runs[i].written_periods[k], runs[i].read_blocks[k],
                                        runs[i].written_blocks[k]};
            if (!(values[2] | values[3]))
                continue;
            for (; next < word; next++)
                for (int a = 0; a < 4; a++)
                    append(writer, arrays[a], json_integer(0));
            for (int a = 0; a < 4; a++)
                append(writer, arrays[a], json_integer(clamped(values[a])));
            next++;
        }
    set_count(writer, object, "word_bytes", 4);
    for (int a = 0; a < 4; a++)
        set(writer, object, names[a], arrays[a]);
    set(writer, object, "lower_bounds", json_boolean(saturated));
    if (end > listed)
        set_count(writer, object, "words_not_listed", end - listed);
    return object;
}

/* The sampler whose periods are counted. */
json_t *hw_json_sampler(struct json_writer *writer)
{
    const struct hw_access_info *info = &writer->view->profile->access_info;
    json_t *object = json_object();
    set_count(writer, object, "asked_ns", info->word_period_ns);
    set_count(writer, object, "rounds", info->word_rounds);
    set(writer, object, "mean_ns",
        info->word_rounds ? json_integer(clamped(info->word_span_ns / info->word_rounds)) : json_null());
    set_nonzero(writer, object, "longest_ns", info->word_longest_ns);
    set_count(writer, object, "cost_ns", info->word_cost_ns);
    return object;
}
