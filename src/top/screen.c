/* screen.c - see screen.h. */
#include "top/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "report/text/human.h"
#include "top/canvas.h"
#include "top/totals.h"

#define PLOT_LEAST   20  /* lines of a screen that has room for the plot */
#define BLOCKS_LEAST 100 /* columns of a screen with the column of blocks */
#define LINE         512
#define LEAST_NAME   15  /* columns of call stacks and threads: number columns are left out for them */
#define LEAST_FACTS  12 /* lines of a screen that has room for more than a stack's frames */
#define HELP_INDENT  14
#define LEAST_WIDTH  20
#define UNNAMED_MOST 256 /* names sought at once, before as many are known */

const char *const hw_top_keys[HW_TOP_COLUMNS] = {"live", "growth", "allocations", "churn", "blocks"};

/* The widths have a space between columns: "1023.9 KiB" and "9,999,999" are the widest numbers. */
struct column {
    const char *title;
    int width;
};
static const struct column columns[HW_TOP_COLUMNS] = {[HW_TOP_LIVE] = {"LIVE", 10},
                                                      [HW_TOP_GROWTH] = {"GROWTH", 12},
                                                      [HW_TOP_ALLOCATIONS] = {"ALLOCS/s", 10},
                                                      [HW_TOP_CHURN] = {"CHURN/s", 11},
                                                      [HW_TOP_BLOCKS] = {"BLOCKS", 10}};
static const struct column thread_columns[HW_TOP_COLUMNS] = {
    {"ALLOCS/s", 9}, {"FREES/s", 10}, {"CHURN/s", 11}, {"ALLOCATIONS", 12}, {"OBTAINED", 11}};

/* ---- numbers ---- */

static const char *signed_bytes(char *buffer, int64_t bytes)
{
    const uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    buffer[0] = bytes < 0 ? '-' : '+';
    hw_human_bytes(buffer + (bytes != 0), size);
    return buffer;
}

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
        return hw_top_rate_text(buffer, rates ? (double)value / 1000 : -1);
    case HW_TOP_CHURN:
        return hw_top_bytes_rate(buffer, rates ? (double)value / 1000 : -1);
    default:
        return hw_human_many(buffer, hw_not_negative(value));
    }
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
    /* One that looks for a text may need them all: ever more at once, as each request has a cost of its own. */
    const bool all = *screen->filter || screen->selective;
    const size_t most = all && screen->named_count > UNNAMED_MOST ? screen->named_count : UNNAMED_MOST;
    if (screen->unnamed_count >= most && !(all && screen->once))
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
        to->filtered &= !strcmp(request->filter, screen->label_filter);
        screen->named_count++;
        *from = (struct hw_label){.function = NULL};
    }
    return true;
}

static void forget_labels(struct hw_top_screen *screen)
{
    for (size_t i = 0; i < screen->label_count; i++)
        hw_label_clear(&screen->labels[i]);
    screen->named_count = 0;
}

static bool is_named(const struct hw_top_screen *screen, const struct hw_label *label)
{
    return label->function && (!*screen->filter || label->filtered);
}

/* With a filter or rules, contexts that nobody has named yet are not shown. */
static bool is_wanted(void *closure, uint32_t context)
{
    const struct hw_top_screen *screen = closure;
    const struct hw_label *label = &screen->labels[context];
    if (!is_named(screen, label))
        return !*screen->filter && !screen->selective;
    return !label->left_out && (!*screen->filter || label->matches);
}

struct not_shown {
    size_t zero, left_out, filtered, wanted; /* wanted: as shown, or for want of room not */
};

/* Asks for the names by which it is decided what is shown. */
static struct not_shown count_contexts(struct hw_top_screen *screen)
{
    struct not_shown count = {.zero = 0};
    if (strcmp(screen->filter, screen->label_filter) != 0) {
        snprintf(screen->label_filter, sizeof screen->label_filter, "%s", screen->filter);
        for (size_t i = 0; i < screen->label_count; i++)
            screen->labels[i].filtered = false;
        screen->named_count = 0;
    }
    for (uint32_t i = 0; i < screen->history.live->context_count; i++) {
        const struct hw_label *label = &screen->labels[i];
        if (hw_top_value(&screen->history, i, screen->sort) == 0)
            count.zero += i > 0; /* number 0 is the unknown stack, which there need not be */
        else if (is_wanted(screen, i))
            count.wanted++;
        else if (!is_named(screen, label))
            want_label(screen, i);
        else if (label->left_out)
            count.left_out++;
        else
            count.filtered++;
    }
    return count;
}

/* ---- the table ---- */

/* Over which time growth is counted. */
static const char *growth_title(const struct hw_top_history *history, char title[LINE])
{
    const uint64_t since = hw_top_growth_since(history), now = history->live->time_ns;
    const double seconds = since && now > since ? (double)(now - since) / 1e9 : 0;
    if (since && history->mark.time_ns)
        return "SINCE MARK";
    if (seconds > 0)
        snprintf(title, LINE, "IN %.*f s", seconds < 9.95, seconds);
    return seconds > 0 && strlen(title) < (size_t)columns[HW_TOP_GROWTH].width - 1 ? title
                                                                                   : columns[HW_TOP_GROWTH].title;
}

/* Which columns there is room for beside names, into columns_end: never without SORTED. Returns the column of names. */
static int fit_columns(struct hw_top_screen *screen, const struct column *all, int sorted, int width)
{
    bool shown[HW_TOP_COLUMNS];
    int used = 0;
    for (int i = 0; i < HW_TOP_COLUMNS; i++) {
        shown[i] = i == sorted || all != columns || i != HW_TOP_BLOCKS || width >= BLOCKS_LEAST;
        used += shown[i] ? all[i].width : 0;
    }
    for (int i = HW_TOP_COLUMNS; i-- > 0 && used + 2 + LEAST_NAME > width;)
        if (shown[i] && i != sorted) {
            shown[i] = false;
            used -= all[i].width;
        }
    used = 0;
    for (int i = 0; i < HW_TOP_COLUMNS; i++)
        screen->columns_end[i] = shown[i] ? (used += all[i].width) : 0;
    return used + 2;
}

/* Returns the column of names. MARKED: the column whose heading has an arrow, or -1. */
static int draw_heading(struct hw_top_screen *screen, struct hw_canvas *canvas, int line, const struct column *all,
                        int sorted, int marked, const char *last)
{
    char text[LINE], growth[LINE];
    int used = 0;
    const int name = fit_columns(screen, all, sorted, canvas->width);
    for (int i = 0; i < HW_TOP_COLUMNS; i++) {
        const bool grows = all == columns && i == HW_TOP_GROWTH;
        if (screen->columns_end[i])
            used += snprintf(text + used, sizeof text - (size_t)used, "%*s%s", all[i].width - (marked == i),
                             grows ? growth_title(&screen->history, growth) : all[i].title,
                             marked != i ? "" : canvas->utf8 ? "\u2193" : "*");
    }
    snprintf(text + used, sizeof text - (size_t)used, "  %s", last);
    hw_canvas_bar(canvas, line, text);
    return name;
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
        column = hw_canvas_print(canvas, line, column, i == screen->sort && !chosen ? HW_TOP_STRONG : plain, "%*s",
                       HW_RIGHT(columns[i].width, value));
    }
    column = hw_canvas_put(canvas, line, column, plain, "  ");
    column = hw_canvas_put(canvas, line, column, plain, label->function ? label->function : canvas->utf8 ? "\u2026" : "...");
    if (label->place && *label->place)
        column = hw_canvas_print(canvas, line, column, faint, "  %s", label->place);
    if (label->caller && *label->caller && column + 8 < canvas->width)
        column = hw_canvas_print(canvas, line, column, faint, "  %s %s", canvas->utf8 ? "\u2190" : "<-", label->caller);
    if (chosen && column < canvas->width)
        hw_canvas_print(canvas, line, column, plain, "%*s", canvas->width - column, "");
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

/* Behind the rows, where there is room. */
static void draw_not_shown(const struct hw_top_screen *screen, struct hw_canvas *canvas, int line,
                           const struct not_shown *count)
{
    const size_t shown = (size_t)(screen->table_lines > 0 ? screen->table_lines : 0);
    const size_t more = screen->once && count->wanted > shown ? count->wanted - shown : 0;
    char text[LINE];
    size_t used = 0;
    const struct {
        size_t count;
        const char *why;
    } parts[] = {{more, " more (--top)"},
                 {count->zero, " with 0 in the sorted column"},
                 {count->left_out, " by --ignore or --focus"},
                 {count->filtered, " not matching the filter"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", used ? ", " : "Call stacks not shown: ",
                                     HW_COUNT(parts[i].count), parts[i].why);
    if (used)
        hw_canvas_put(canvas, line, 0, HW_TOP_FAINT, text);
}

static bool draw_stacks(struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    const int heading = line++, lines = canvas->height - line - 1;
    const size_t wanted = screen->first + (size_t)(lines > 0 ? lines : 0) + 64;
    const int sort = (int)screen->sort, name = draw_heading(screen, canvas, heading, columns, sort, sort, "CALL STACK");
    const unsigned room = canvas->width > name ? (unsigned)(canvas->width - name) : 1;
    if (!room_for_labels(screen) || !HW_GROW(screen->rows, screen->row_room, wanted))
        return false;
    if (room != screen->label_columns)
        forget_labels(screen);
    screen->label_columns = room;
    const struct not_shown count = count_contexts(screen);
    if (!hw_top_best(&screen->history, screen->sort, screen->rows, wanted, &screen->row_count, is_wanted, screen))
        return false;
    keep_chosen(screen, lines > 0 ? (size_t)lines : 1);
    for (int i = 0; i < lines && screen->first + (size_t)i < screen->row_count; i++) {
        const size_t row = screen->first + (size_t)i;
        draw_row(screen, canvas, line + i, screen->rows[row], row == screen->chosen && !screen->once);
    }
    if (!screen->row_count)
        hw_canvas_put(canvas, line, 2, HW_TOP_FAINT,
            screen->unnamed_count                                    ? "names are being read"
            : *screen->filter                                          ? "no call stack matches the filter"
            : count.left_out                                         ? "all call stacks are left out"
            : screen->history.live->process.counting == HW_COUNTING_WAITS ? "nothing is counted before heapwise start"
            : screen->history.live->process.mode == HW_MODE_ALLOCATOR ? "allocator mode does not record live blocks by "
                                                                        "call stack"
            : screen->sort == HW_TOP_LIVE || screen->sort == HW_TOP_BLOCKS ? "nothing is allocated"
                                                                           : "nothing has changed");
    screen->table_line = line;
    screen->table_lines = lines;
    const size_t shown = screen->row_count > screen->first ? screen->row_count - screen->first : 1;
    if (lines > 0 && (screen->once || shown < (size_t)lines))
        draw_not_shown(screen, canvas, line + (shown < (size_t)lines ? (int)shown : lines), &count);
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
    const struct hw_top_history *history = &screen->history;
    const int heading = line++, lines = canvas->height - line - 1;
    struct hw_buffer name = {.data = NULL};
    if (!HW_GROW(screen->rows, screen->row_room, live->thread_count))
        return false;
    screen->row_count = 0;
    for (uint32_t i = 0; i < live->thread_count; i++)
        if (live->threads[i].serial || live->threads[i].count.allocations || live->threads[i].count.frees)
            screen->rows[screen->row_count++] = i;
    qsort_r(screen->rows, screen->row_count, sizeof *screen->rows, by_rate, screen);
    keep_chosen(screen, lines > 0 ? (size_t)lines : 1);
    draw_heading(screen, canvas, heading, thread_columns, screen->sort == HW_TOP_CHURN ? 2 : 0, -1, "THREAD");
    for (int i = 0; i < lines && screen->first + (size_t)i < screen->row_count; i++) {
        const uint32_t entry = screen->rows[screen->first + (size_t)i];
        const struct hw_live_thread *thread = &live->threads[entry];
        const bool chosen = screen->first + (size_t)i == screen->chosen && !screen->once;
        const char *const values[HW_TOP_COLUMNS] = {
            HW_TOP_RATE(thread_rate(history, entry, HW_TOP_ALLOCATIONS)), HW_TOP_RATE(thread_rate(history, entry, HW_TOP_BLOCKS)),
            HW_TOP_BYTES_RATE(thread_rate(history, entry, HW_TOP_CHURN)), HW_MANY(thread->count.allocations),
            HW_BYTES(thread->count.bytes)};
        int column = 0;
        for (int k = 0; k < HW_TOP_COLUMNS; k++)
            if (screen->columns_end[k])
                column = hw_canvas_print(canvas, line + i, column, chosen ? HW_TOP_CHOSEN : HW_TOP_PLAIN, "%*s",
                               HW_RIGHT(thread_columns[k].width, values[k]));
        thread_name(thread, canvas->utf8, &name);
        hw_canvas_print(canvas, line + i, column, chosen ? HW_TOP_CHOSEN : HW_TOP_PLAIN, "  %s", hw_buffer_text(&name));
    }
    screen->table_line = line;
    screen->table_lines = lines;
    const bool fine = !name.failed;
    hw_buffer_free(&name);
    return fine;
}

/* ---- one stack, and help ---- */

/* How many bytes of TEXT go into a line of WIDTH columns: whole words where it can be. */
static size_t part_of(const char *text, int width)
{
    const size_t size = strcspn(text, "\n"), most = width > 1 ? (size_t)width : 1;
    if (size <= most)
        return size;
    for (size_t cut = most; cut > 0; cut--)
        if (text[cut] == ' ' && text[cut - 1] != ' ')
            return cut;
    return most;
}

/* The lines of ASCII text FROM, for WIDTH columns: words that have no room stand in the next line, under the words. */
static void wrap(const char *from, int width, struct hw_buffer *to)
{
    while (*from) {
        const int indent = width > HELP_INDENT + LEAST_NAME ? HELP_INDENT : 4;
        size_t size = part_of(from, width);
        hw_buffer_add(to, "%.*s\n", (int)size, from);
        for (from += size; *from && *from != '\n'; from += size) {
            from += strspn(from, " ");
            size = part_of(from, width - indent);
            hw_buffer_add(to, "%*s%.*s\n", indent, "", (int)size, from);
        }
        from += *from == '\n';
    }
}

/* TEXT from LINE on, scrolled by the chosen row. */
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
            hw_canvas_put(canvas, line + (int)(i - screen->chosen), 0, HW_TOP_PLAIN, part);
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
    const char *stack = screen->labels[context].stack;
    stack = stack ? stack : "    names are being read\n";
    if (canvas->height < LEAST_FACTS) {
        draw_lines(screen, canvas, line, stack);
        return true;
    }
    hw_canvas_print(canvas, line++, 0, HW_TOP_STRONG, "%s live in %s   %s",
          HW_BYTES(hw_not_negative(count->live_bytes)), HW_OF(hw_not_negative(count->live_blocks), "block"),
          screen->history.live->pool[context] ? "(a pool of the program: also in the blocks of its memory)" : "");
    hw_canvas_print(canvas, line++, 0, HW_TOP_PLAIN, "%s so far, %s   %s freed", HW_OF(count->allocations, "allocation"),
          HW_BYTES(count->bytes), HW_OF(count->frees, "block"));
    int column = hw_canvas_print(canvas, line, 0, HW_TOP_PLAIN, "%s allocations/s",
                       value_text(&screen->history, context, HW_TOP_ALLOCATIONS, text));
    column = hw_canvas_print(canvas, line, column, HW_TOP_PLAIN, "   %s/s",
                   value_text(&screen->history, context, HW_TOP_CHURN, text));
    hw_canvas_print(canvas, line, column, HW_TOP_PLAIN, "   growth %s", value_text(&screen->history, context, HW_TOP_GROWTH, text));
    line += 2;
    draw_lines(screen, canvas, line, stack);
    return true;
}

static const char help[] = "  l g a c b   sort by live bytes, growth, allocations, churn, blocks\n"
                           "  Up Down     choose a row (also PgUp, PgDn, Home, End, the mouse)\n"
                           "  Enter       open the call stack of the row; Esc closes it\n"
                           "  /           show only call stacks with a function or file whose name has this "
                           "text; an empty text shows all\n"
                           "  t           threads, and back\n"
                           "  m           set a mark: growth is counted from here; u removes it\n"
                           "  w           plot: whole run, last 10 minutes, last minute\n"
                           "  p, Space    pause; once more: continue\n"
                           "  q           quit; the program continues\n"
                           "\n"
                           "  LIVE        bytes of blocks that are not freed\n"
                           "  IN 10 s     how much LIVE changed in the last seconds\n"
                           "  ALLOCS/s    allocations a second\n"
                           "  CHURN/s     bytes allocated a second\n"
                           "  BLOCKS      blocks that are not freed\n"
                           "\n"
                           "  Threads: what each has done, whichever thread frees its blocks\n"
                           "  FREES/s     blocks freed a second\n"
                           "  ALLOCATIONS all allocations of the thread so far\n"
                           "  OBTAINED    their bytes, freed since or not\n";

static bool draw_help(struct hw_top_screen *screen, struct hw_canvas *canvas, int line)
{
    struct hw_buffer text = {.data = NULL};
    wrap(help, canvas->width, &text);
    draw_lines(screen, canvas, line, hw_buffer_text(&text));
    const bool fine = !text.failed;
    hw_buffer_free(&text);
    return fine;
}

/* ---- all of it ---- */

static void draw_last_line(const struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    static const char *const keys[] = {
        [HW_TOP_CALL_STACKS] = "q quit  Enter stack  / filter  l g a c sort  t threads  m mark  p pause  ? help",
        [HW_TOP_THREADS] = "q quit  t call stacks  a c sort  p pause  w time  ? help",
        [HW_TOP_ONE_STACK] = "Esc back  Up Down scroll  q quit",
        [HW_TOP_HELP] = "Esc back  Up Down scroll  q quit"};
    char text[LINE];
    const int line = canvas->height - 1;
    if (screen->entry) {
        snprintf(text, sizeof text, "filter: %s_", screen->entry);
        hw_canvas_bar(canvas, line, text);
    } else if (screen->message || screen->trouble) {
        hw_canvas_print(canvas, line, 0, HW_TOP_ALERT, "%s", screen->message ? screen->message : screen->trouble);
    } else if (*screen->filter && screen->page == HW_TOP_CALL_STACKS) {
        snprintf(text, sizeof text, "filter \"%s\"  / change  Esc show all  ? help", screen->filter);
        hw_canvas_bar(canvas, line, text);
    } else {
        hw_canvas_bar(canvas, line, keys[screen->page]);
    }
}

bool hw_top_draw(struct hw_top_screen *screen, struct hw_canvas *canvas)
{
    screen->failed = false;
    screen->unnamed_count = 0;
    screen->table_lines = 0;
    if (canvas->width < LEAST_WIDTH || canvas->height < HW_TOP_LEAST_HEIGHT) {
        hw_canvas_put(canvas, 0, 0, HW_TOP_PLAIN, canvas->width < 25 ? "too small" : "the terminal is too small");
        return true;
    }
    bool fine = hw_top_draw_title(screen, canvas);
    int line = hw_top_draw_totals(screen, canvas);
    if (screen->page == HW_TOP_HELP) {
        fine &= draw_help(screen, canvas, line + (canvas->height >= LEAST_FACTS));
    } else if (screen->page == HW_TOP_ONE_STACK) {
        fine &= draw_one(screen, canvas, line);
    } else {
        if ((canvas->height >= PLOT_LEAST || screen->once)) {
            fine &= hw_top_draw_plot(screen, canvas, line);
            line += HW_TOP_PLOT_LINES;
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
