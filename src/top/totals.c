/* totals.c - see totals.h. */
#include "top/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/buffer.h"
#include "report/text/plot.h"

#define PLOT_LABEL 11 /* columns left of the plot */
#define LINE       512

/* ---- numbers ---- */

const char *hw_top_rate_text(char *buffer, double rate)
{
    if (rate < 0)
        return "-";
    if (rate > 0 && rate < 10)
        return hw_human_ratio(buffer, rate);
    return hw_human_many(buffer, (uint64_t)(rate + 0.5));
}

const char *hw_top_bytes_rate(char *buffer, double rate)
{
    return rate < 0 ? "-" : hw_human_bytes(buffer, (uint64_t)(rate + 0.5));
}

/* ---- above the table ---- */

static void add_state(const struct hw_live *live, bool utf8, struct hw_buffer *out)
{
    const struct hw_process_info *process = &live->process;
    const char *time = HW_NS(live->time_ns, utf8);
    if (process->flags & HW_PROCESS_LLVM) {
        hw_buffer_add(out, "made from an LLVM heap profile");
        return;
    }
    if (process->flags & HW_PROCESS_MERGED) {
        hw_buffer_add(out, "sum of %s", HW_OF(process->runs, "process"));
        return;
    }
    hw_buffer_add(out, "process %u  ", (unsigned)process->pid);
    if (live->running)
        hw_buffer_add(out, process->flags & HW_PROCESS_ATTACHED ? "recorded for %s" : "running for %s", time);
    else if (process->exit_kind == HW_EXIT_EXEC)
        hw_buffer_add(out, "became another program by exec after %s", time);
    else if (process->exit_kind == HW_EXIT_CODE)
        hw_buffer_add(out, "ended with exit code %d after %s", (int)process->exit_value, time);
    else if (process->exit_kind == HW_EXIT_SIGNAL)
        hw_buffer_add(out, "ended by signal %d after %s", (int)process->exit_value, time);
    else if (live->replaced)
        hw_buffer_add(out, "still runs, but no longer writes this profile");
    else if (process->flags & HW_PROCESS_DUMP)
        hw_buffer_add(out, "dumped while it was running, after %s", time);
    else
        hw_buffer_add(out, "ended; recorded for at least %s", time); /* the latest time in the file */
    if (live->running && process->counting == HW_COUNTING_WAITS)
        hw_buffer_add(out, "  waits for heapwise start");
}

bool hw_top_draw_title(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    const struct hw_live *live = screen->history.live;
    const uint32_t at = live->process.executable;
    const char *path = at < live->string_size ? live->strings + at : "", *slash = strrchr(path, '/');
    struct hw_buffer text = {.data = NULL};
    hw_buffer_add(&text, "heapwise top  ");
    hw_buffer_clean(&text, slash ? slash + 1 : path, canvas->utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
    hw_buffer_add(&text, "  ");
    add_state(live, canvas->utf8, &text);
    hw_buffer_add(&text, "%s%s", live->process.sample_bytes ? "  sampled: estimates" : "",
                  screen->paused ? "  PAUSED" : "");
    hw_canvas_bar(canvas, 0, hw_buffer_text(&text));
    const bool fine = !text.failed;
    hw_buffer_free(&text);
    return fine;
}

int hw_top_draw_totals(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    const struct hw_top_history *history = &screen->history;
    const struct hw_live *live = history->live;
    const struct hw_live_count *now = &live->total, *before = &history->total_before;
    const int lines = canvas->height >= 8 ? 2 : canvas->height > HW_TOP_LEAST_HEIGHT ? 1 : 0; /* the table comes first */
    if (!lines)
        return 1;
    int column = hw_canvas_print(canvas, 1, 0, HW_TOP_STRONG, "%s live", HW_BYTES(hw_not_negative(now->live_bytes)));
    column = hw_canvas_print(canvas, 1, column, HW_TOP_PLAIN, " in %s", HW_OF(hw_not_negative(now->live_blocks), "block"));
    column = hw_canvas_print(canvas, 1, column, HW_TOP_PLAIN, "   peak %s", HW_BYTES(live->process.peak_bytes));
    if (live->rss_bytes)
        hw_canvas_print(canvas, 1, column, HW_TOP_PLAIN, "   resident %s", HW_BYTES(live->rss_bytes));
    if (lines == 1)
        return 2;
    hw_canvas_print(canvas, 2, 0, HW_TOP_PLAIN, "%s allocations/s   %s frees/s   %s/s   %zu thread%s   %s",
          HW_TOP_RATE(hw_top_rate(history, before->allocations, now->allocations)),
          HW_TOP_RATE(hw_top_rate(history, before->frees, now->frees)),
          HW_TOP_BYTES_RATE(hw_top_rate(history, before->bytes, now->bytes)), live->threads_running,
          live->threads_running == 1 ? "" : "s", HW_OF(live->context_count ? live->context_count - 1 : 0, "call stack"));
    return 3;
}

/* ---- the plot ---- */

struct graph {
    uint64_t from, until;
    size_t width;
    uint64_t *live, *rss;
};

static void add_point(const struct graph *graph, uint64_t time_ns, uint64_t live, uint64_t rss)
{
    if (time_ns < graph->from || time_ns > graph->until)
        return;
    size_t at = (size_t)((double)(time_ns - graph->from) / (double)(graph->until - graph->from) * (double)graph->width);
    at = at < graph->width ? at : graph->width - 1;
    graph->live[at] = live > graph->live[at] || graph->live[at] == UINT64_MAX ? live : graph->live[at];
    if (rss)
        graph->rss[at] = rss > graph->rss[at] || graph->rss[at] == UINT64_MAX ? rss : graph->rss[at];
}

/* Columns without a point of their own have the value of the one before. */
static void fill_gaps(uint64_t *values, size_t width, uint64_t first)
{
    for (size_t i = 0; i < width; i++)
        first = values[i] = values[i] == UINT64_MAX ? first : values[i];
}

static void measure(const struct hw_top_screen *screen, struct graph *graph)
{
    static const uint64_t seconds[HW_TOP_WINDOWS] = {[HW_TOP_LAST_10_MINUTES] = 600, [HW_TOP_LAST_MINUTE] = 60};
    const struct hw_top_history *history = &screen->history;
    const struct hw_live *live = history->live;
    const uint64_t length = seconds[screen->window] * 1000000000;
    uint64_t live_before = 0, rss_before = 0;
    graph->until = live->time_ns > 1 ? live->time_ns : 1;
    graph->from = length && length < graph->until ? graph->until - length : 0;
    for (size_t i = 0; i < graph->width; i++)
        graph->live[i] = graph->rss[i] = UINT64_MAX;
    for (size_t i = 0; i < live->timeline_count; i++) {
        const struct hw_live_point *point = &live->timeline[i];
        add_point(graph, point->time_ns, point->live_bytes, point->rss_bytes);
        if (point->time_ns < graph->from) {
            live_before = point->live_bytes;
            rss_before = point->rss_bytes ? point->rss_bytes : rss_before;
        }
    }
    const size_t kept = history->point_count < HW_TOP_POINTS ? history->point_count : HW_TOP_POINTS;
    for (size_t i = 0; i < kept; i++)
        add_point(graph, history->points[i].time_ns, history->points[i].live_bytes, history->points[i].rss_bytes);
    fill_gaps(graph->live, graph->width, live_before);
    fill_gaps(graph->rss, graph->width, rss_before);
}

bool hw_top_draw_plot(const struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    static const char *const names[HW_TOP_WINDOWS] = {"whole run", "last 10 min", "last minute"};
    if (canvas->width <= 2 * PLOT_LABEL)
        return true;
    struct graph graph = {.width = (size_t)(canvas->width - PLOT_LABEL)};
    struct hw_plot_scale scale = {.rows = HW_TOP_PLOT_LINES, .utf8 = canvas->utf8};
    uint64_t most_rss = 0;
    graph.live = malloc(graph.width * sizeof *graph.live);
    graph.rss = malloc(graph.width * sizeof *graph.rss);
    if (!graph.live || !graph.rss) {
        free(graph.live);
        free(graph.rss);
        return false;
    }
    measure(screen, &graph);
    for (size_t i = 0; i < graph.width; i++) {
        scale.most = graph.live[i] > scale.most ? graph.live[i] : scale.most;
        most_rss = graph.rss[i] > most_rss ? graph.rss[i] : most_rss;
    }
    scale.rss = most_rss && most_rss / 5 <= scale.most;
    scale.most = scale.rss && most_rss > scale.most ? most_rss : scale.most;
    for (unsigned row = 0; row < HW_TOP_PLOT_LINES; row++) {
        char text[4 * LINE] = "";
        size_t used = 0;
        const char *label = row == 0                  ? HW_BYTES(scale.most)
                            : row == 1                ? names[screen->window]
                            : row + 1 == HW_TOP_PLOT_LINES   ? "0 B"
                            : row + 2 == HW_TOP_PLOT_LINES   ? (scale.rss ? (canvas->utf8 ? "\u00b7 resident" : ". resident") : "")
                            : row + 3 == HW_TOP_PLOT_LINES   ? (canvas->utf8 ? "\u2588 live" : "# live")
                                                      : "";
        hw_canvas_print(canvas, line + (int)row, 0, row == 1 ? HW_TOP_FAINT : HW_TOP_PLAIN, "%*s",
              HW_RIGHT(PLOT_LABEL - 1, label));
        for (size_t i = 0; i < graph.width && used + 4 < sizeof text && scale.most; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                     hw_plot_cell(&scale, graph.live[i], graph.rss[i], HW_TOP_PLOT_LINES - 1 - row));
        hw_canvas_put(canvas, line + (int)row, PLOT_LABEL, HW_TOP_PLOT, text);
    }
    free(graph.live);
    free(graph.rss);
    return true;
}
