/* json_perf.c - "perf" of the JSON report: samples of perf by block. */
#include "report/json/json.h"

#include <stdlib.h>

#include "report/view/perf.h"

static json_t *count_value(struct json_writer *writer, const struct hw_perf_count *count)
{
    const uint32_t flags = writer->view->profile->perf->flags;
    const bool sources = flags & HW_PERF_SOURCES;
    json_t *object = json_object();
    if (count->scope >= HW_PERF_PLACE)
        set_count(writer, object, "context", count->context);
    if (count->scope == HW_PERF_WORD)
        set_count(writer, object, "offset", count->word * 8);
    set_count(writer, object, "samples", count->samples);
    set_known(writer, object, "loads", sources, count->loads);
    set_known(writer, object, "stores", sources, count->stores);
    json_t *levels = sources ? json_object() : json_null();
    for (int level = 0; sources && level < HW_PERF_LEVELS; level++)
        set_count(writer, levels, hw_perf_level_keys[level], count->levels[level]);
    set(writer, object, "levels", levels);
    set_known(writer, object, "hitm_local", sources, count->hitm_local);
    set_known(writer, object, "hitm_remote", sources, count->hitm_remote);
    json_t *latency = count->weighted ? json_object() : json_null(), *bars = json_array();
    if (count->weighted) {
        set_count(writer, latency, "samples", count->weighted);
        set_ratio(writer, latency, "mean", count->weight_sum, count->weighted);
        set_count(writer, latency, "p50", count->weight_median);
        set_count(writer, latency, "p90", count->weight_p90);
        set_count(writer, latency, "p99", count->weight_p99);
        set_count(writer, latency, "max", count->weight_most);
        for (size_t i = 0; i < HW_PERF_BARS; i++)
            append(writer, bars, json_integer(count->bars[i]));
        set(writer, latency, "histogram", bars);
    } else
        json_decref(bars);
    set(writer, object, "latency", latency);
    return object;
}

static json_t *places_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    size_t count, word_count;
    const struct hw_perf_count **places = hw_perf_places(writer->view, &count);
    json_t *array = json_array();
    writer->failed |= !places;
    for (size_t i = 0; places && i < count; i++) {
        json_t *object = count_value(writer, places[i]), *words = json_array();
        const struct hw_perf_count *word = hw_perf_words(profile, places[i], &word_count);
        set_count(writer, object, "blocks", places[i]->blocks);
        set_count(writer, object, "word_count", places[i]->words);
        for (size_t k = 0; k < word_count; k++)
            append(writer, words, count_value(writer, &word[k]));
        set(writer, object, "words", words);
        append(writer, array, object);
    }
    free(places);
    return array;
}

static json_t *lines_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    for (size_t i = 0, next; i < profile->perf_side_count; i = next) {
        json_t *object = json_object(), *sides = json_array();
        uint64_t hitm = 0, lines = 0;
        for (next = i; next < profile->perf_side_count && profile->perf_sides[next].line == profile->perf_sides[i].line;
             next++) {
            const struct hw_perf_side *side = &profile->perf_sides[next];
            json_t *value = json_object();
            const bool block = side->context != HW_NONE;
            set_known(writer, value, "context", block, side->context);
            set_known(writer, value, "offset", block, side->word * 8);
            set_known(writer, value, "address", !block, side->word * 8);
            set_count(writer, value, "loads", side->loads);
            set_count(writer, value, "stores", side->stores);
            set_count(writer, value, "hitm", side->hitm);
            set_count(writer, value, "threads", side->threads);
            set_count(writer, value, "first_thread", side->first_thread);
            append(writer, sides, value);
            hitm += side->hitm;
            lines = side->lines > lines ? side->lines : lines;
        }
        set_count(writer, object, "hitm", hitm);
        set_count(writer, object, "lines", lines);
        set(writer, object, "sides", sides);
        append(writer, array, object);
    }
    return array;
}

static json_t *perf_value(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_perf_info *info = profile->perf;
    const bool mappings = info->flags & HW_PERF_MAPPINGS;
    json_t *object = json_object(), *sums = json_object();
    set_count(writer, object, "samples", info->samples);
    set_count(writer, object, "in_blocks", info->in_blocks);
    set_known(writer, object, "in_stack", mappings, info->in_stack);
    set_known(writer, object, "in_files", mappings, info->in_modules);
    set_count(writer, object, "elsewhere", info->elsewhere);
    set_count(writer, object, "after_log", info->log_full);
    set_count(writer, object, "other_time_block", info->was_block);
    set_count(writer, object, "no_address", info->no_address);
    set_count(writer, object, "outside_run", info->other_time);
    set_count(writer, object, "other_processes", info->other_process);
    set_count(writer, object, "logged_blocks", info->blocks);
    set(writer, object, "clock_doubted", json_boolean(info->flags & HW_PERF_SYNC));
    for (int scope = HW_PERF_ALL; scope <= HW_PERF_ELSEWHERE; scope++) {
        const struct hw_perf_count *sum = hw_perf_scope_sum(profile, (enum hw_perf_scope)scope);
        if (sum)
            set(writer, sums, hw_perf_scope_keys[scope], count_value(writer, sum));
    }
    set(writer, object, "sums", sums);
    set(writer, object, "places", places_value(writer));
    set(writer, object, "lines", lines_value(writer));
    return object;
}

void hw_json_perf(struct json_writer *writer)
{
    print_key(writer, "perf");
    print_value(writer, writer->view->profile->perf ? perf_value(writer) : json_null());
}
