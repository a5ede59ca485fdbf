/* screen.c - see screen.h. */
#include "top/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "report/text/human.h"
#include "report/text/plot.h"

#define PLOT_LINES   6
#define PLOT_LEAST   20  /* lines of a screen that has room for the plot */
#define PLOT_LABEL   11  /* columns left of it */
#define BLOCKS_LEAST 100 /* columns of a screen with the column of blocks */
#define LINE         512
#define UNNAMED_MOST 256 /* names sought at once */

const char *const hw_top_keys[HW_TOP_COLUMNS] = {"live", "growth", "allocations", "churn", "blocks"};

static const struct {
    const char *title;
    int width;
} columns[HW_TOP_COLUMNS] = {[HW_TOP_LIVE] = {"LIVE", 10},
                             [HW_TOP_GROWTH] = {"GROWTH", 11},
                             [HW_TOP_ALLOCATIONS] = {"ALLOCS/s", 9},
                             [HW_TOP_CHURN] = {"CHURN/s", 10},
                             [HW_TOP_BLOCKS] = {"BLOCKS", 11}};

/* TEXT at a place, cut at the end of the line. Returns the column behind it. */
static int put(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text)
{
    char cut[4 * LINE];
    if (line >= canvas->height || column >= canvas->width)
        return column;
    const size_t room = (size_t)(canvas->width - column), bytes = hw_text_cut(text, room);
    snprintf(cut, sizeof cut, "%.*s", (int)(bytes < sizeof cut ? bytes : sizeof cut - 1), text);
    canvas->put(canvas, line, column, style, cut);
    return column + (int)hw_text_width(cut);
}

__attribute__((format(printf, 5, 6))) static int print(struct hw_canvas *canvas, int line, int column,
                                                       enum hw_top_style style, const char *format, ...)
{
    char text[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return put(canvas, line, column, style, text);
}

/* A line in one style, from edge to edge. */
static void bar(struct hw_canvas *canvas, int line, const char *text)
{
    char blanks[LINE];
    const int used = put(canvas, line, 0, HW_TOP_BAR, text);
    snprintf(blanks, sizeof blanks, "%*s", canvas->width - used, "");
    if (used < canvas->width)
        put(canvas, line, used, HW_TOP_BAR, blanks);
}

/* ---- numbers ---- */

static const char *signed_bytes(char *buffer, int64_t bytes)
{
    const uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    buffer[0] = bytes < 0 ? '-' : '+';
    hw_human_bytes(buffer + (bytes != 0), size);
    return buffer;
}

static const char *rate_text(char *buffer, double rate)
{
    if (rate < 0)
        return "-";
    if (rate > 0 && rate < 10)
        return hw_human_ratio(buffer, rate);
    return hw_human_many(buffer, (uint64_t)(rate + 0.5));
}

static const char *bytes_rate(char *buffer, double rate)
{
    return rate < 0 ? "-" : hw_human_bytes(buffer, (uint64_t)(rate + 0.5));
}

#define RATE(rate)       rate_text((char[HW_HUMAN]){0}, (rate))
#define BYTES_RATE(rate) bytes_rate((char[HW_HUMAN]){0}, (rate))

static const char *value_text(const struct hw_top_history *history, uint32_t context, enum hw_top_column column,
                              char buffer[HW_HUMAN + 1])
{
    const int64_t value = hw_top_value(history, context, column);
    const bool rates = history->before_ns && history->live->time_ns > history->before_ns;
    switch (column) {
    case HW_TOP_LIVE:
        return hw_human_bytes(buffer, hw_not_negative(value));
    case HW_TOP_GROWTH:
        return hw_top_growth_since(history) ? signed_bytes(buffer, value) : "-";
    case HW_TOP_ALLOCATIONS:
        return rate_text(buffer, rates ? (double)value / 1000 : -1);
    case HW_TOP_CHURN:
        return bytes_rate(buffer, rates ? (double)value / 1000 : -1);
    default:
        return hw_human_many(buffer, hw_not_negative(value));
    }
}

/* ---- above the table ---- */

static void draw_title(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    const struct hw_live *live = screen->history.live;
    char text[LINE], state[96] = "";
    if (live->running)
        snprintf(state, sizeof state, "running for %s", HW_NS(live->time_ns, canvas->utf8));
    else if (live->process.exit_kind == HW_EXIT_CODE)
        snprintf(state, sizeof state, "ended with exit code %d after %s", (int)live->process.exit_value,
                 HW_NS(live->time_ns, canvas->utf8));
    else if (live->process.exit_kind == HW_EXIT_SIGNAL)
        snprintf(state, sizeof state, "ended by signal %d after %s", (int)live->process.exit_value,
                 HW_NS(live->time_ns, canvas->utf8));
    else
        snprintf(state, sizeof state, "ended after %s", HW_NS(live->time_ns, canvas->utf8));
    snprintf(text, sizeof text, "heapwise top  %s  process %u  %s%s%s", screen->name, (unsigned)live->process.pid, state,
             live->process.sample_bytes ? "  sampled: estimates" : "", screen->paused ? "  PAUSED" : "");
    bar(canvas, 0, text);
}

static int draw_totals(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    const struct hw_top_history *history = &screen->history;
    const struct hw_live *live = history->live;
    const struct hw_live_count *now = &live->total, *before = &history->total_before;
    int column = print(canvas, 1, 0, HW_TOP_STRONG, "%s live", HW_BYTES(hw_not_negative(now->live_bytes)));
    column = print(canvas, 1, column, HW_TOP_PLAIN, " in %s", HW_OF(hw_not_negative(now->live_blocks), "block"));
    column = print(canvas, 1, column, HW_TOP_PLAIN, "   peak %s", HW_BYTES(live->process.peak_bytes));
    if (live->rss_bytes)
        print(canvas, 1, column, HW_TOP_PLAIN, "   resident %s", HW_BYTES(live->rss_bytes));
    print(canvas, 2, 0, HW_TOP_PLAIN, "%s allocations/s   %s frees/s   %s/s   %zu thread%s   %s",
          RATE(hw_top_rate(history, before->allocations, now->allocations)),
          RATE(hw_top_rate(history, before->frees, now->frees)),
          BYTES_RATE(hw_top_rate(history, before->bytes, now->bytes)), live->threads_running,
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

static bool draw_plot(const struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    static const char *const names[HW_TOP_WINDOWS] = {"whole run", "last 10 min", "last minute"};
    struct graph graph = {.width = (size_t)(canvas->width - PLOT_LABEL)};
    struct hw_plot_scale scale = {.rows = PLOT_LINES, .utf8 = canvas->utf8};
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
    for (unsigned row = 0; row < PLOT_LINES; row++) {
        char text[4 * LINE] = "";
        size_t used = 0;
        const char *label = row == 0                  ? HW_BYTES(scale.most)
                            : row == 1                ? names[screen->window]
                            : row + 1 == PLOT_LINES   ? "0 B"
                            : row + 2 == PLOT_LINES   ? (scale.rss ? (canvas->utf8 ? "\u00b7 resident" : ". resident") : "")
                            : row + 3 == PLOT_LINES   ? (canvas->utf8 ? "\u2588 live" : "# live")
                                                      : "";
        print(canvas, line + (int)row, 0, row == 1 ? HW_TOP_FAINT : HW_TOP_PLAIN, "%*s",
              HW_RIGHT(PLOT_LABEL - 1, label));
        for (size_t i = 0; i < graph.width && used + 4 < sizeof text && scale.most; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                     hw_plot_cell(&scale, graph.live[i], graph.rss[i], PLOT_LINES - 1 - row));
        put(canvas, line + (int)row, PLOT_LABEL, HW_TOP_PLOT, text);
    }
    free(graph.live);
    free(graph.rss);
    return true;
}

/* ---- names ---- */

static bool room_for_labels(struct hw_top_screen *screen)
{
    const size_t count = screen->history.live->context_count;
    if (!HW_GROW(screen->labels, screen->label_room, count))
        return false;
    for (; screen->label_count < count; screen->label_count++)
        screen->labels[screen->label_count] = (struct hw_label){.function = NULL};
    return true;
}

static void want_label(struct hw_top_screen *screen, uint32_t context)
{
    if (screen->unnamed_count == UNNAMED_MOST)
        return;
    if (HW_GROW(screen->unnamed, screen->unnamed_room, screen->unnamed_count + 1))
        screen->unnamed[screen->unnamed_count++] = context;
    else
        screen->failed = true;
}

bool hw_top_take_labels(struct hw_top_screen *screen, struct hw_label_request *request)
{
    if (!request->labels || !room_for_labels(screen))
        return false;
    for (size_t i = 0; i < request->count; i++) {
        struct hw_label *to = &screen->labels[request->contexts[i]], *from = &request->labels[i];
        char *stack = from->stack ? from->stack : to->stack;
        if (from->stack)
            free(to->stack);
        to->stack = from->stack = NULL;
        hw_label_clear(to);
        *to = *from;
        to->stack = stack;
        *from = (struct hw_label){.function = NULL};
    }
    return true;
}

static void forget_labels(struct hw_top_screen *screen)
{
    for (size_t i = 0; i < screen->label_count; i++)
        hw_label_clear(&screen->labels[i]);
}

static bool contains(const char *text, const char *part)
{
    const size_t size = strlen(part);
    for (; text && *text; text++)
        if (!strncasecmp(text, part, size))
            return true;
    return false;
}

/* Contexts that nobody has named yet do not match; their names are asked for. */
static bool matches(void *closure, uint32_t context)
{
    struct hw_top_screen *screen = closure;
    const struct hw_label *label = &screen->labels[context];
    if (!label->function)
        want_label(screen, context);
    return contains(label->function, screen->filter) || contains(label->place, screen->filter) ||
           contains(label->caller, screen->filter);
}

/* ---- the table ---- */

/* Returns the column of names. */
static int draw_heading(struct hw_top_screen *screen, struct hw_canvas *canvas, int line, const char *last)
{
    const struct hw_top_history *history = &screen->history;
    char text[LINE], growth[64] = "GROWTH";
    int used = 0;
    const uint64_t since = hw_top_growth_since(history), now = history->live->time_ns;
    if (since && history->mark.time_ns)
        snprintf(growth, sizeof growth, "SINCE MARK");
    else if (since && now > since)
        snprintf(growth, sizeof growth, "IN %.0f s", (double)(now - since) / 1e9);
    for (enum hw_top_column i = 0; i < HW_TOP_COLUMNS; i++) {
        const char *title = i == HW_TOP_GROWTH ? growth : columns[i].title;
        screen->columns_end[i] = 0;
        if (i == HW_TOP_BLOCKS && canvas->width < BLOCKS_LEAST)
            continue;
        used += snprintf(text + used, sizeof text - (size_t)used, "%*s%s", columns[i].width - (screen->sort == i), title,
                         screen->sort == i ? (canvas->utf8 ? "\u2193" : "*") : "");
        screen->columns_end[i] = (int)hw_text_width(text);
    }
    snprintf(text + used, sizeof text - (size_t)used, "  %s", last);
    bar(canvas, line, text);
    return screen->columns_end[canvas->width < BLOCKS_LEAST ? HW_TOP_CHURN : HW_TOP_BLOCKS] + 2;
}

static void draw_row(struct hw_top_screen *screen, struct hw_canvas *canvas, int line, uint32_t context, bool chosen)
{
    const struct hw_label *label = &screen->labels[context];
    const enum hw_top_style plain = chosen ? HW_TOP_CHOSEN : HW_TOP_PLAIN, faint = chosen ? plain : HW_TOP_FAINT;
    char text[HW_HUMAN + 1];
    int column = 0;
    for (enum hw_top_column i = 0; i < HW_TOP_COLUMNS; i++) {
        if (!screen->columns_end[i])
            continue;
        const char *value = value_text(&screen->history, context, i, text);
        column = print(canvas, line, column, i == screen->sort && !chosen ? HW_TOP_STRONG : plain, "%*s",
                       HW_RIGHT(columns[i].width, value));
    }
    column = put(canvas, line, column, plain, "  ");
    column = put(canvas, line, column, plain, label->function ? label->function : canvas->utf8 ? "\u2026" : "...");
    if (label->place && *label->place)
        column = print(canvas, line, column, faint, "  %s", label->place);
    if (label->caller && *label->caller && column + 8 < canvas->width)
        column = print(canvas, line, column, faint, "  %s %s", canvas->utf8 ? "\u2190" : "<-", label->caller);
    if (chosen && column < canvas->width)
        print(canvas, line, column, plain, "%*s", canvas->width - column, "");
    if (!label->function)
        want_label(screen, context);
}

/* Row numbers stay valid while rows come and go. */
static void keep_chosen(struct hw_top_screen *screen, size_t lines)
{
    if (screen->chosen >= screen->row_count)
        screen->chosen = screen->row_count ? screen->row_count - 1 : 0;
    if (screen->chosen < screen->first)
        screen->first = screen->chosen;
    if (screen->chosen >= screen->first + lines)
        screen->first = screen->chosen - lines + 1;
}

static bool draw_stacks(struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    const int heading = line++, lines = canvas->height - line - !screen->once;
    const size_t wanted = screen->first + (size_t)(lines > 0 ? lines : 0) + 64;
    const int name = draw_heading(screen, canvas, heading, "CALL STACK");
    const unsigned room = canvas->width > name ? (unsigned)(canvas->width - name) : 1;
    if (!room_for_labels(screen) || !HW_GROW(screen->rows, screen->row_room, wanted))
        return false;
    if (room != screen->label_columns)
        forget_labels(screen);
    screen->label_columns = room;
    if (!hw_top_best(&screen->history, screen->sort, screen->rows, wanted, &screen->row_count,
                     *screen->filter ? matches : NULL, screen))
        return false;
    keep_chosen(screen, lines > 0 ? (size_t)lines : 1);
    for (int i = 0; i < lines && screen->first + (size_t)i < screen->row_count; i++) {
        const size_t row = screen->first + (size_t)i;
        draw_row(screen, canvas, line + i, screen->rows[row], row == screen->chosen && !screen->once);
    }
    if (!screen->row_count)
        put(canvas, line, 2, HW_TOP_FAINT,
            *screen->filter                                          ? "no call stack matches the filter"
            : screen->history.live->process.mode == HW_MODE_ALLOCATOR ? "allocator mode does not record live blocks by "
                                                                        "call stack"
            : screen->sort == HW_TOP_LIVE || screen->sort == HW_TOP_BLOCKS ? "nothing is allocated"
                                                                           : "nothing has changed");
    screen->table_line = line;
    screen->table_lines = lines;
    return true;
}

/* ---- threads ---- */

static const struct hw_live_thread *thread_before(const struct hw_top_history *history, size_t entry)
{
    const struct hw_live_thread *before = &history->threads_before[entry];
    return entry < history->threads_before_count && before->serial == history->live->threads[entry].serial ? before
                                                                                                           : NULL;
}

static double thread_rate(const struct hw_top_history *history, size_t entry, enum hw_top_column column)
{
    const struct hw_live_thread *before = thread_before(history, entry), *now = &history->live->threads[entry];
    if (!history->before_ns)
        return -1;
    if (column == HW_TOP_CHURN)
        return hw_top_rate(history, before ? before->count.bytes : 0, now->count.bytes);
    if (column == HW_TOP_BLOCKS)
        return hw_top_rate(history, before ? before->count.frees : 0, now->count.frees);
    return hw_top_rate(history, before ? before->count.allocations : 0, now->count.allocations);
}

static int by_rate(const void *one, const void *other, void *closure)
{
    const struct hw_top_screen *screen = closure;
    const struct hw_top_history *history = &screen->history;
    const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    const enum hw_top_column column = screen->sort == HW_TOP_CHURN ? HW_TOP_CHURN : HW_TOP_ALLOCATIONS;
    return HW_ORDER(thread_rate(history, b, column), thread_rate(history, a, column))
               ?: HW_ORDER(history->live->threads[b].count.allocations, history->live->threads[a].count.allocations)
               ?: HW_ORDER(a, b);
}

static void thread_name(const struct hw_live_thread *thread, bool utf8, struct hw_buffer *name)
{
    hw_buffer_clear(name);
    hw_buffer_clean(name, thread->name, utf8 ? HW_CLEAN_UTF8 : HW_CLEAN_ASCII);
    if (thread->tid)
        hw_buffer_add(name, "%s(%" PRIu32 ")", *thread->name ? " " : "", thread->tid);
    if (!thread->serial)
        hw_buffer_add(name, "%sended", name->used ? ", " : "");
}

static bool draw_threads(struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    const struct hw_live *live = screen->history.live;
    const int lines = canvas->height - line - 1 - !screen->once;
    struct hw_buffer name = {.data = NULL};
    char text[LINE];
    if (!HW_GROW(screen->rows, screen->row_room, live->thread_count))
        return false;
    screen->row_count = 0;
    for (uint32_t i = 0; i < live->thread_count; i++)
        if (live->threads[i].serial || live->threads[i].count.allocations || live->threads[i].count.frees)
            screen->rows[screen->row_count++] = i;
    qsort_r(screen->rows, screen->row_count, sizeof *screen->rows, by_rate, screen);
    keep_chosen(screen, lines > 0 ? (size_t)lines : 1);
    snprintf(text, sizeof text, "%9s%10s%10s%14s%13s  %s", "ALLOCS/s", "FREES/s", "CHURN/s", "ALLOCATIONS", "OBTAINED",
             "THREAD");
    bar(canvas, line++, text);
    for (int i = 0; i < lines && screen->first + (size_t)i < screen->row_count; i++) {
        const uint32_t entry = screen->rows[screen->first + (size_t)i];
        const struct hw_live_thread *thread = &live->threads[entry];
        const struct hw_top_history *history = &screen->history;
        thread_name(thread, canvas->utf8, &name);
        print(canvas, line + i, 0,
              screen->first + (size_t)i == screen->chosen && !screen->once ? HW_TOP_CHOSEN : HW_TOP_PLAIN,
              "%9s%10s%10s%14s%13s  %s", RATE(thread_rate(history, entry, HW_TOP_ALLOCATIONS)),
              RATE(thread_rate(history, entry, HW_TOP_BLOCKS)), BYTES_RATE(thread_rate(history, entry, HW_TOP_CHURN)),
              HW_MANY(thread->count.allocations), HW_BYTES(thread->count.bytes), hw_buffer_text(&name));
    }
    screen->table_line = line;
    screen->table_lines = lines;
    const bool fine = !name.failed;
    hw_buffer_free(&name);
    return fine;
}

/* ---- one stack, and help ---- */

/* TEXT from line FIRST on. */
static void draw_lines(struct hw_top_screen *screen, struct hw_canvas *canvas, int line, const char *text)
{
    char part[4 * LINE];
    size_t all = 0;
    for (const char *next = text; *next; next++)
        all += *next == '\n';
    const size_t lines = canvas->height - line - 1 > 0 ? (size_t)(canvas->height - line - 1) : 1;
    screen->row_count = all > lines ? all - lines + 1 : 1; /* places to begin at */
    if (screen->chosen >= screen->row_count)
        screen->chosen = screen->row_count - 1;
    for (size_t i = 0; *text; i++) {
        const size_t size = strcspn(text, "\n");
        snprintf(part, sizeof part, "%.*s", (int)(size < sizeof part ? size : sizeof part - 1), text);
        if (i >= screen->chosen && i - screen->chosen < lines)
            put(canvas, line + (int)(i - screen->chosen), 0, HW_TOP_PLAIN, part);
        text += size + (text[size] == '\n');
    }
}

static bool draw_one(struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    const uint32_t context = screen->opened;
    const struct hw_live_count *count = &screen->history.live->counts[context];
    char text[HW_HUMAN + 1];
    if (!room_for_labels(screen))
        return false;
    print(canvas, line++, 0, HW_TOP_STRONG, "%s live in %s   %s",
          HW_BYTES(hw_not_negative(count->live_bytes)), HW_OF(hw_not_negative(count->live_blocks), "block"),
          screen->history.live->pool[context] ? "(a pool of the program: also in the blocks of its memory)" : "");
    print(canvas, line++, 0, HW_TOP_PLAIN, "%s so far, %s   %s freed", HW_OF(count->allocations, "allocation"),
          HW_BYTES(count->bytes), HW_OF(count->frees, "block"));
    int column = print(canvas, line, 0, HW_TOP_PLAIN, "%s allocations/s",
                       value_text(&screen->history, context, HW_TOP_ALLOCATIONS, text));
    column = print(canvas, line, column, HW_TOP_PLAIN, "   %s/s",
                   value_text(&screen->history, context, HW_TOP_CHURN, text));
    print(canvas, line, column, HW_TOP_PLAIN, "   growth %s", value_text(&screen->history, context, HW_TOP_GROWTH, text));
    line += 2;
    const char *stack = screen->labels[context].stack;
    draw_lines(screen, canvas, line, stack ? stack : "    names are being read\n");
    return true;
}

static const char help[] = "  l g a c b   sort by live bytes, growth, allocations, churn, blocks\n"
                           "  Up Down     choose a row (also PgUp, PgDn, Home, End, the mouse)\n"
                           "  Enter       open the call stack of the row; Esc closes it\n"
                           "  /           show only call stacks with a function, file or caller\n"
                           "              whose name has this text; an empty text shows all\n"
                           "  t           threads, and back\n"
                           "  m           set a mark: growth is counted from here; u removes it\n"
                           "  w           plot: whole run, last 10 minutes, last minute\n"
                           "  p, Space    pause; once more: continue\n"
                           "  q           quit; the program continues\n"
                           "\n"
                           "  LIVE        bytes of blocks that are not freed\n"
                           "  IN 10 s     how much LIVE changed in the last seconds\n"
                           "  ALLOCS/s    allocations a second\n"
                           "  CHURN/s     bytes allocated a second\n";

/* ---- all of it ---- */

int hw_top_lines_around(const struct hw_top_screen *screen, int height)
{
    return 3 + (height >= PLOT_LEAST ? PLOT_LINES : 0) + 1 + !screen->once;
}

static void draw_last_line(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    static const char *const keys[] = {
        [HW_TOP_CALL_STACKS] = "q quit  Enter stack  / filter  l g a c sort  t threads  m mark  p pause  ? help",
        [HW_TOP_THREADS] = "q quit  t call stacks  a c sort  p pause  w time  ? help",
        [HW_TOP_ONE_STACK] = "Esc back  Up Down scroll  q quit",
        [HW_TOP_HELP] = "Esc back  q quit"};
    char text[LINE];
    const int line = canvas->height - 1;
    if (screen->entry) {
        snprintf(text, sizeof text, "filter: %s_", screen->entry);
        bar(canvas, line, text);
    } else if (screen->message || screen->trouble) {
        print(canvas, line, 0, HW_TOP_ALERT, "%s", screen->message ? screen->message : screen->trouble);
    } else if (*screen->filter && screen->page == HW_TOP_CALL_STACKS) {
        snprintf(text, sizeof text, "filter \"%s\"  / change  Esc show all  ? help", screen->filter);
        bar(canvas, line, text);
    } else {
        bar(canvas, line, keys[screen->page]);
    }
}

bool hw_top_draw(struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    bool fine = true;
    screen->failed = false;
    screen->unnamed_count = 0;
    screen->table_lines = 0;
    draw_title(screen, canvas);
    int line = draw_totals(screen, canvas);
    if (screen->page == HW_TOP_HELP) {
        draw_lines(screen, canvas, line + 1, help);
    } else if (screen->page == HW_TOP_ONE_STACK) {
        fine = draw_one(screen, canvas, line);
    } else {
        if (canvas->height >= PLOT_LEAST && canvas->width > 2 * PLOT_LABEL) {
            fine = draw_plot(screen, canvas, line);
            line += PLOT_LINES;
        }
        fine &= screen->page == HW_TOP_THREADS ? draw_threads(screen, canvas, line) : draw_stacks(screen, canvas, line);
    }
    if (!screen->once)
        draw_last_line(screen, canvas);
    return fine && !screen->failed;
}

void hw_top_screen_free(struct hw_top_screen *screen)
{
    forget_labels(screen);
    free(screen->labels);
    free(screen->rows);
    free(screen->unnamed);
    hw_top_history_free(&screen->history);
}
