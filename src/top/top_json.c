/* top_json.c - what `heapwise top --once --json` prints. */
#include "top/terminal.h"

#include <jansson.h>
#include <stdio.h>

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* Null where VALUE is not known. */
static json_t *known(bool is, uint64_t value)
{
    return is ? number(value) : json_null();
}

static json_t *text(const char *value)
{
    json_t *made = value && *value ? json_string(value) : NULL; /* NULL: not UTF-8 */
    return made ? made : json_null();
}

static json_t *rate(const struct hw_top_history *history, uint64_t before, uint64_t now)
{
    const double value = hw_top_rate(history, before, now);
    return value < 0 ? json_null() : json_real(value);
}

static json_t *count_value(const struct hw_top_history *history, const struct hw_live_count *before,
                           const struct hw_live_count *now)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "live_bytes", (json_int_t)now->live_bytes,
                     "live_allocations", (json_int_t)now->live_blocks, "allocations", number(now->allocations), "frees",
                     number(now->frees), "bytes", number(now->bytes), "allocations_per_second",
                     rate(history, before->allocations, now->allocations), "bytes_per_second",
                     rate(history, before->bytes, now->bytes));
}

static json_t *context_value(const struct hw_top_screen *screen, uint32_t context)
{
    static const struct hw_live_count none;
    const struct hw_top_history *history = &screen->history;
    const struct hw_label *label = &screen->labels[context];
    const struct hw_live_count *before = context < history->before_count ? &history->before[context] : &none;
    json_t *object = count_value(history, before, &history->live->counts[context]);
    const bool grown = hw_top_growth_since(history) != 0;
    json_object_set_new(object, "id", number(context));
    json_object_set_new(object, "function", text(label->function));
    json_object_set_new(object, "place", text(label->place));
    json_object_set_new(object, "caller", text(label->caller));
    json_object_set_new(object, "grown_bytes",
                        grown ? json_integer(hw_top_value(history, context, HW_TOP_GROWTH)) : json_null());
    return object;
}

bool hw_top_print_json(const struct hw_top_screen *screen, size_t rows)
{
    const struct hw_top_history *history = &screen->history;
    const struct hw_live *live = history->live;
    const uint64_t since = hw_top_growth_since(history);
    json_t *contexts = json_array();
    for (size_t i = 0; i < screen->row_count && i < rows; i++)
        json_array_append_new(contexts, context_value(screen, screen->rows[i]));
    json_t *object =
        json_pack("{s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "format", 1, "pid",
                  known(live->pid, (uint64_t)live->pid), "running", (int)live->running, "time_ns",
                  number(live->time_ns), "growth_since_ns", known(since, since), "rss_bytes",
                  known(live->rss_bytes, live->rss_bytes), "threads", number(live->running ? live->threads_running : 0),
                  "totals", count_value(history, &history->total_before, &live->total), "contexts", contexts);
    const bool fine = object && json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(object);
    putchar('\n');
    return fine;
}
