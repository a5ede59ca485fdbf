/* json_access.c - counted accesses in the JSON report: how they were counted, blocks, globals. */
#include "report/json/json.h"

/* ---- the whole run ---- */

/* Words of 4 bytes, whose uses are not counted. */
static bool by_words(const struct json_writer *writer)
{
    return hw_profile_counts_periods(writer->view->profile);
}

/* How accesses were counted. */
json_t *hw_json_access_info(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_access_info *info = &profile->access_info;
    json_t *object = json_object();
    set_nonzero(writer, object, "granule", info->granule);
    set_count(writer, object, "planes", info->planes);
    set_count(writer, object, "planes_most", info->planes_most);
    set_count(writer, object, "threads_sharing_planes", info->threads_sharing);
    set_count(writer, object, "instrumented_modules", info->modules);
    set(writer, object, "reads_and_writes",
        json_string(!(info->flags & HW_ACCESS_UNSPLIT) ? "split"
                    : info->flags & HW_ACCESS_SPLIT    ? "partly"
                                                       : "unsplit"));
    set(writer, object, "callbacks", json_boolean(info->flags & HW_ACCESS_CALLBACKS));
    set(writer, object, "harvested", json_boolean(info->flags & HW_ACCESS_HARVESTED));
    set_known(writer, object, "harvest_time_ns", info->flags & HW_ACCESS_HARVESTED, profile->harvest_ns);
    set_count(writer, object, "contexts_not_harvested", profile->unharvested_contexts);
    set(writer, object, "word_periods", by_words(writer) ? hw_json_sampler(writer) : json_null());
    return object;
}

/* A number of accesses; null where they are not counted. */
static void set_amount(struct json_writer *writer, json_t *object, const char *key, uint64_t value)
{
    set(writer, object, key, by_words(writer) ? json_null() : json_integer(clamped(value)));
}

/* Reads and writes; null where none of the accesses says which it was. */
static void set_kinds(struct json_writer *writer, json_t *object, uint64_t reads, uint64_t writes, uint64_t unsplit)
{
    const bool known = (reads || writes || !unsplit) && !by_words(writer);
    set_known(writer, object, "reads", known, reads);
    set_known(writer, object, "writes", known, writes);
    if (unsplit)
        set_count(writer, object, "unsplit", unsplit);
}

static bool is_lower_bound(const struct hw_profile_access *access)
{
    return access->saturated_cells || access->overflown;
}

/* Of heap blocks, as the contexts add up; and of globals beside them. */
void hw_json_total_accesses(struct json_writer *writer, json_t *object)
{
    const struct hw_view *view = writer->view;
    const struct hw_profile_access *all = &view->profile->access.all;
    set_amount(writer, object, "accesses", hw_profile_access_total(all));
    set_kinds(writer, object, all->reads, all->writes, all->unsplit);
    if (by_words(writer))
        set_count(writer, object, "word_periods", hw_profile_access_total(all));
    set(writer, object, "accesses_are_lower_bounds", json_boolean(is_lower_bound(all)));
    set_count(writer, object, "never_accessed", all->never_accessed);
    set(writer, object, "written_never_read", /* null where no code distinguishes reads from writes */
        view->profile->access_info.flags & HW_ACCESS_SPLIT ? json_integer(clamped(all->written_never_read))
                                                           : json_null());
    json_t *globals = json_null();
    if (view->profile->access_info.flags & HW_ACCESS_HARVESTED || view->profile->global_count) {
        globals = json_object();
        set_amount(writer, globals, "accesses",
                   hw_add_saturating(hw_add_saturating(view->global_reads, view->global_writes), view->global_unsplit));
        set_kinds(writer, globals, view->global_reads, view->global_writes, view->global_unsplit);
    }
    set(writer, object, "globals", globals);
}

/* ---- accesses of a context ---- */

/* {mean, min, max} of blocks; the numbers are in units of 1 / SCALE. */
static json_t *spread_value(struct json_writer *writer, double total, uint64_t blocks, uint64_t min, uint64_t max,
                            double scale)
{
    json_t *object = json_object();
    set(writer, object, "mean", json_real(total / (double)blocks / scale));
    set(writer, object, "min", json_real((double)min / scale));
    set(writer, object, "max", json_real((double)max / scale));
    return object;
}

#define HISTOGRAM_MOST 65536 /* words that are listed one by one */

/* Words from the start of the blocks to the last one that was accessed. */
static void set_histogram(struct json_writer *writer, json_t *object, size_t index)
{
    size_t count;
    const struct hw_profile_histogram *runs = hw_view_histogram(writer->view, index, &count);
    uint64_t rest = 0, next = 0, zeros = 0;
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        for (uint64_t word = 0; word < HW_HISTOGRAM_WORDS; word++) {
            const uint64_t value = runs[i].words[word], at = runs[i].first_word + word;
            if (!value)
                continue;
            if (at >= HISTOGRAM_MOST) {
                rest = hw_add_saturating(rest, value);
                continue;
            }
            for (zeros = at - next; zeros; zeros--)
                append(writer, array, json_integer(0));
            append(writer, array, json_integer(clamped(value)));
            next = at + 1;
        }
    }
    set(writer, object, "histogram", array);
    if (rest)
        set_count(writer, object, "histogram_rest", rest);
}

static void set_sharing(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum)
{
    json_t *sharing = json_object();
    hw_json_numbers(writer, object, sum, HW_GROUP_SHARED);
    set_count(writer, sharing, "granules", sum->access->all.shared_granules);
    hw_json_numbers(writer, sharing, sum, HW_GROUP_SHARING);
    set(writer, object, "sharing", sharing);
}

static void set_words(struct json_writer *writer, json_t *object, const struct hw_view_context *context)
{
    size_t count;
    const struct hw_profile_words *runs = hw_view_words(writer->view, context->index, &count);
    const bool known = by_words(writer) && context->sum.access->all.blocks;
    if (by_words(writer))
        set_count(writer, object, "word_periods", hw_profile_access_total(&context->sum.access->all));
    set(writer, object, "word_histogram", known ? hw_json_words(writer, runs, count) : json_null());
    /* Of blocks of one size it can be said. */
    set(writer, object, "words_never_touched",
        known && context->sum.size_min == context->sum.size_max
            ? json_integer(clamped(hw_view_words_never_touched(writer->view, context->index, context->sum.size_max)))
            : json_null());
}

/* What was counted in the blocks of a context; null where no block was harvested. */
void hw_json_accesses(struct json_writer *writer, json_t *object, const struct hw_view_context *context)
{
    const struct hw_profile_context *sum = &context->sum;
    const struct hw_profile_access *access = &sum->access->all, *live = &sum->access->live;
    const uint32_t granule = writer->view->profile->access_info.granule;
    const bool any = access->blocks != 0, counted = any && granule != 4;
    json_t *accesses = any ? json_object() : json_null();
    if (any) {
        set_amount(writer, accesses, "total", hw_profile_access_total(access));
        hw_json_numbers(writer, accesses, sum, HW_GROUP_ACCESS_RANGE);
        set_kinds(writer, accesses, access->reads, access->writes, access->unsplit);
        hw_json_numbers(writer, accesses, sum, HW_GROUP_ACCESS_BLOCKS);
        set_amount(writer, accesses, "live", hw_profile_access_total(live));
        set_count(writer, accesses, "live_blocks", live->blocks);
    }
    set(writer, object, "accesses", accesses);
    if (any && hw_view_used_unseen(writer->view, sum))
        set(writer, object, "used_by_uncounted_code", json_true());
    set(writer, object, "accesses_are_lower_bounds", any ? json_boolean(is_lower_bound(access)) : json_null());
    set(writer, object, "access_density",
        counted ? spread_value(writer, (double)access->density_total, access->blocks, access->density_min,
                               access->density_max, 1000)
                : json_null());
    set(writer, object, "lifetime_access_density",
        counted ? spread_value(writer, (double)access->lifetime_density_total, access->blocks,
                               access->lifetime_density_min, access->lifetime_density_max, 1000)
                : json_null());
    set(writer, object, "utilization_percent",
        any ? spread_value(writer, (double)access->utilization_total, access->blocks, access->utilization_min,
                           access->utilization_max, 100)
            : json_null());
    hw_json_numbers(writer, object, sum, HW_GROUP_ACCESS_GRANULES);
    hw_json_numbers(writer, object, sum, HW_GROUP_NEVER_READ);
    set_sharing(writer, object, sum);
    hw_json_numbers(writer, object, sum, HW_GROUP_CELLS);
    if (granule == 8)
        set_histogram(writer, object, context->index);
    else
        set(writer, object, "histogram", json_null());
    set_words(writer, object, context);
}

/* ---- globals ---- */

/* A word for each 8 bytes from the granule that the variable begins in; null in granules that it shares. */
static json_t *global_histogram(struct json_writer *writer, const struct hw_view_global *global)
{
    const struct hw_view *view = writer->view;
    const uint64_t start = global->address / 8, words = (global->address + global->size + 7) / 8 - start;
    if (words > HISTOGRAM_MOST)
        return json_null();
    json_t *array = json_array();
    for (uint64_t i = 0; i < words; i++)
        append(writer, array, json_integer(0));
    /* The granules around those of the entry are the shared ones, if they were touched at all. */
    size_t first = global->granule, end = global->granule + global->granule_count;
    first -= first > 0;
    end += end < view->granule_count;
    for (size_t i = first; i < end && !writer->failed; i++) {
        const struct hw_view_granule *granule = &view->granules[i];
        const uint64_t at = granule->address / 8 - start;
        const bool own = i >= global->granule && i < global->granule + global->granule_count;
        if (granule->module != global->module || granule->address / 8 < start || at >= words)
            continue;
        json_t *value = own ? json_integer(clamped(hw_add_saturating(hw_add_saturating(granule->reads, granule->writes),
                                                                     granule->unsplit)))
                            : json_null();
        writer->failed |= !value || json_array_set_new(array, (size_t)at, value);
    }
    return array;
}

/* Numbers of periods for each word of 4 bytes, from that on which the variable begins in. */
static json_t *global_words(struct json_writer *writer, const struct hw_view_global *global)
{
    const struct hw_view *view = writer->view;
    const uint64_t start = global->address / 4, words = (global->address + global->size + 3) / 4 - start;
    if (words > HISTOGRAM_MOST)
        return json_null();
    json_t *object = json_object(), *reads = json_array(), *writes = json_array();
    for (uint64_t i = 0; i < words; i++) {
        append(writer, reads, json_integer(0));
        append(writer, writes, json_integer(0));
    }
    for (size_t i = global->granule; i < global->granule + global->granule_count && !writer->failed; i++) {
        const struct hw_view_granule *granule = &view->granules[i];
        const uint64_t at = granule->address / 4 - start;
        if (granule->address / 4 < start || at >= words)
            continue;
        writer->failed |= json_array_set_new(reads, (size_t)at, json_integer(clamped(granule->reads))) != 0;
        writer->failed |= json_array_set_new(writes, (size_t)at, json_integer(clamped(granule->writes))) != 0;
    }
    set_count(writer, object, "word_bytes", 4);
    set(writer, object, "reads", reads);
    set(writer, object, "writes", writes);
    return object;
}

json_t *hw_json_global(struct json_writer *writer, const struct hw_view_global *global)
{
    const struct hw_view *view = writer->view;
    const struct hw_view_module *module = global->module == HW_NONE ? NULL : &view->modules[global->module];
    const uint32_t granule = view->profile->access_info.granule;
    json_t *object = json_object(), *symbols = json_array(), *sharing = json_object();
    set_text(writer, object, "symbol", global->symbol_count == 1 ? global->symbols->name : NULL);
    for (uint32_t i = 0; i < global->symbol_count; i++)
        append(writer, symbols, text_value(writer, global->symbols[i].name));
    set(writer, object, "symbols", symbols);
    set_text(writer, object, "module", module ? known(module->path) : NULL);
    set_text(writer, object, "section", global->section);
    set_count(writer, object, "offset", global->address);
    set_count(writer, object, "size", global->size);
    set_amount(writer, object, "accesses",
               hw_add_saturating(hw_add_saturating(global->reads, global->writes), global->unsplit));
    set_kinds(writer, object, global->reads, global->writes, global->unsplit);
    set_count(writer, object, "in_shared_granules", global->in_shared_granules);
    set(writer, object, "accesses_are_lower_bounds", json_boolean(global->saturated));
    set_count(writer, sharing, "granules", global->shared_granules);
    set_count(writer, sharing, "written", global->shared_written);
    set_count(writer, sharing, "writers", global->shared_writers);
    set_known(writer, sharing, "false_shared_lines", granule != 64, global->lines_false);
    set_known(writer, sharing, "true_shared_lines", granule != 64, global->lines_true);
    set_count(writer, sharing, "handed_over_lines", global->lines_handed);
    set(writer, object, "sharing", sharing);
    set(writer, object, "histogram",
        (granule == 8 || !view->profile->access_counted) && global->symbol_count == 1 ? global_histogram(writer, global)
                                                                                      : json_null());
    set(writer, object, "word_histogram",
        granule == 4 && global->symbol_count == 1 ? global_words(writer, global) : json_null());
    return object;
}

void hw_json_globals(struct json_writer *writer)
{
    const struct hw_view *view = writer->view;
    const size_t top =
        writer->options->top && writer->options->top < view->global_count ? writer->options->top : view->global_count;
    if (!view->profile->access_counted)
        return;
    print_key(writer, "globals");
    if (!view->global_count && !(view->profile->access_info.flags & HW_ACCESS_HARVESTED)) {
        fputs("null", writer->stream);
        return;
    }
    fputc('[', writer->stream);
    for (size_t i = 0; i < top && !writer->failed && !ferror(writer->stream); i++) {
        fputs(i ? ",\n" : "\n", writer->stream);
        print_value(writer, hw_json_global(writer, &view->globals[i]));
    }
    fputs("\n]", writer->stream);
}
