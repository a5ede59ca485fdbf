/* terminal.c - see terminal.h. */
#define NCURSES_WIDECHAR 1
#include "top/terminal.h"

#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/buffer.h"

#define POLL_MS     50 /* how soon names appear that another thread has found */
#define COST_FACTOR 100 /* readings take at most a hundredth of the time */
#define NAMES_FACTOR 20 /* and names, once the first ones are found, a twentieth */

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void hw_top_read(struct hw_top_screen *screen)
{
    static struct hw_error error;
    struct hw_top_history *history = &screen->history;
    if (!hw_top_before(history)) {
        screen->trouble = "there is not enough memory: rates and growth are old";
        return;
    }
    screen->trouble = hw_live_read(history->live, &error) ? NULL : error.message;
    hw_top_after(history);
}

bool hw_top_follow(struct hw_top_screen *screen, const struct hw_top_options *options)
{
    static struct hw_error error;
    static char message[PATH_MAX + 64];
    struct hw_live *old = screen->history.live;
    if (!old->replaced)
        return false;
    struct hw_live *next = options->follow(old->pid, &error);
    if (!next) {
        screen->trouble = error.message;
        return false;
    }
    const struct hw_top_screen before = *screen;
    hw_top_screen_free(screen);
    *screen = (struct hw_top_screen){.history.live = next,
                                     .page = before.page == HW_TOP_THREADS ? HW_TOP_THREADS : HW_TOP_CALL_STACKS,
                                     .sort = before.sort,
                                     .window = before.window,
                                     .selective = before.selective};
    snprintf(screen->filter, sizeof screen->filter, "%s", before.filter);
    hw_live_close(old);
    snprintf(message, sizeof message, "the process executed another program, whose profile is %s", next->path);
    screen->message = message;
    hw_top_read(screen);
    return true;
}

/* ---- names, by a thread of their own ---- */

struct namer {
    pthread_t thread;
    bool busy;
    const struct hw_view_options *options;
    struct hw_label_request *request;
    struct hw_error error;
    uint64_t pause_until; /* on CLOCK_MONOTONIC; not for a stack that the user has opened */
    pthread_mutex_t lock;
    bool done;        /* under the lock */
    uint64_t cost_ns; /* likewise: CPU time of the thread */
};

static void *name_in_background(void *closure)
{
    struct namer *namer = closure;
    hw_label_request_answer(namer->request, namer->options, &namer->error);
    pthread_mutex_lock(&namer->lock);
    namer->done = true;
    namer->cost_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&namer->lock);
    return NULL;
}

static struct hw_label_request *request_of(const struct hw_top_screen *screen, const uint32_t *contexts, size_t count,
                                           unsigned width, bool stack, bool utf8)
{
    struct hw_label_request *request = hw_label_request_new(screen->history.live, contexts, count);
    if (request) {
        request->columns = stack ? width : screen->label_columns;
        request->stacks = stack;
        request->utf8 = utf8;
        request->symbolised = screen->symbolised;
        snprintf(request->filter, sizeof request->filter, "%s", screen->filter);
    }
    return request;
}

static bool is_missing_stack(const struct hw_top_screen *screen)
{
    return screen->page == HW_TOP_ONE_STACK && screen->opened < screen->label_count &&
           !screen->labels[screen->opened].stack;
}

static void start_naming(struct namer *namer, const struct hw_top_screen *screen, bool utf8)
{
    const bool stack = is_missing_stack(screen);
    if (namer->busy ||
        !(stack || (screen->unnamed_count && now_ns(CLOCK_MONOTONIC) >= namer->pause_until)))
        return;
    namer->request = stack ? request_of(screen, &screen->opened, 1, (unsigned)COLS, true, utf8)
                           : request_of(screen, screen->unnamed, screen->unnamed_count, 0, false, utf8);
    namer->done = false;
    namer->busy = namer->request && pthread_create(&namer->thread, NULL, name_in_background, namer) == 0;
    if (!namer->busy)
        hw_label_request_free(namer->request);
}

/* True when there are new names. */
static bool finish_naming(struct namer *namer, struct hw_top_screen *screen, bool wait)
{
    if (!namer->busy)
        return false;
    pthread_mutex_lock(&namer->lock);
    const bool done = namer->done;
    pthread_mutex_unlock(&namer->lock);
    if (!done && !wait)
        return false;
    pthread_join(namer->thread, NULL);
    namer->pause_until = now_ns(CLOCK_MONOTONIC) + namer->cost_ns * NAMES_FACTOR;
    const bool asked_now = namer->request->stacks || namer->request->columns == screen->label_columns;
    const bool taken = asked_now && hw_top_take_labels(screen, namer->request);
    hw_label_request_free(namer->request);
    namer->busy = false;
    return taken;
}

/* ---- the terminal ---- */

enum { COLOR_OF_PLOT = 1, COLOR_OF_ALERT };

static void put_on_terminal(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text)
{
    static const attr_t plain[] = {[HW_TOP_PLAIN] = A_NORMAL,  [HW_TOP_BAR] = A_REVERSE,   [HW_TOP_STRONG] = A_BOLD,
                                   [HW_TOP_FAINT] = A_DIM,     [HW_TOP_ALERT] = A_BOLD,    [HW_TOP_PLOT] = A_NORMAL,
                                   [HW_TOP_CHOSEN] = A_STANDOUT};
    attr_t attributes = plain[style];
    (void)canvas;
    if (has_colors() && style == HW_TOP_PLOT)
        attributes |= (attr_t)COLOR_PAIR(COLOR_OF_PLOT);
    if (has_colors() && style == HW_TOP_ALERT)
        attributes |= (attr_t)COLOR_PAIR(COLOR_OF_ALERT);
    attrset(attributes);
    mvaddstr(line, column, text);
}

static bool draw(struct hw_top_screen *screen, bool utf8)
{
    struct hw_canvas canvas = {.width = COLS, .height = LINES, .utf8 = utf8, .put = put_on_terminal};
    erase();
    const bool fine = hw_top_draw(screen, &canvas);
    refresh();
    return fine;
}

static bool begin_terminal(bool color, struct hw_error *error)
{
    const char *term = getenv("TERM");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen || !tigetstr("cup")) {
        if (screen) {
            endwin();
            delscreen(screen);
        }
        hw_error_set(error, "this terminal (TERM=%s) %s; heapwise top --once prints the table", term ? term : "",
                     screen ? "cannot put text at a place" : "is not known");
        return false;
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    mouseinterval(0);
    if (color && has_colors()) {
        start_color();
        use_default_colors();
        init_pair(COLOR_OF_PLOT, COLOR_CYAN, -1);
        init_pair(COLOR_OF_ALERT, COLOR_RED, -1);
    }
    return true;
}

/* ---- keys ---- */

static void open_page(struct hw_top_screen *screen, enum hw_top_page page)
{
    screen->page = page;
    screen->first = screen->chosen = 0;
}

static void open_row(struct hw_top_screen *screen)
{
    if (screen->page != HW_TOP_CALL_STACKS || screen->chosen >= screen->row_count)
        return;
    screen->opened = screen->rows[screen->chosen];
    if (screen->opened < screen->label_count) {
        free(screen->labels[screen->opened].stack); /* the width may be another one */
        screen->labels[screen->opened].stack = NULL;
    }
    open_page(screen, HW_TOP_ONE_STACK);
}

static void move_by(struct hw_top_screen *screen, long rows)
{
    const long last = (long)screen->row_count - 1, at = (long)screen->chosen + rows;
    screen->chosen = (size_t)(at < 0 || last < 0 ? 0 : at > last ? last : at);
}

static void take_click(struct hw_top_screen *screen)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return;
    if (event.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) {
        move_by(screen, event.bstate & BUTTON4_PRESSED ? -3 : 3);
        return;
    }
    const int row = event.y - screen->table_line;
    if (screen->page == HW_TOP_CALL_STACKS && row == -1) {
        for (enum hw_top_column i = 0; i < HW_TOP_COLUMNS; i++)
            if (event.x < screen->columns_end[i]) {
                screen->sort = i;
                return;
            }
    } else if (row >= 0 && row < screen->table_lines && screen->first + (size_t)row < screen->row_count) {
        const size_t before = screen->chosen;
        screen->chosen = screen->first + (size_t)row;
        if (event.bstate & BUTTON1_DOUBLE_CLICKED || before == screen->chosen)
            open_row(screen);
    }
}

static void take_typed(struct hw_top_screen *screen, char entry[sizeof screen->filter], int key)
{
    const size_t length = strlen(entry);
    screen->entry = entry;
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        snprintf(screen->filter, sizeof screen->filter, "%s", entry);
        screen->first = screen->chosen = 0;
        screen->entry = NULL;
    } else if (key == 27) {
        screen->entry = NULL;
    } else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
        size_t cut = length;
        while (cut && (entry[--cut] & 0xc0) == 0x80) /* one character of UTF-8 */
            ;
        entry[cut] = '\0';
    } else if (key >= 32 && key < 256 && length + 1 < sizeof screen->filter) {
        entry[length] = (char)key;
        entry[length + 1] = '\0';
    }
}

/* False: the user quits. */
static bool take_key(struct hw_top_screen *screen, char *entry, int key)
{
    static const char sort_keys[] = "lgacb";
    const char *sort = key > 0 && key < 128 ? strchr(sort_keys, key) : NULL;
    const int page = screen->table_lines > 1 ? screen->table_lines : 10;
    screen->message = NULL;
    if (sort && *sort && (screen->page == HW_TOP_CALL_STACKS || screen->page == HW_TOP_THREADS)) {
        screen->sort = (enum hw_top_column)(sort - sort_keys);
        screen->first = screen->chosen = 0;
        return true;
    }
    switch (key) {
    case 'q':
        return false;
    case 27:
        if (screen->page == HW_TOP_CALL_STACKS)
            *screen->filter = '\0';
        open_page(screen, HW_TOP_CALL_STACKS);
        break;
    case KEY_UP:
    case 'k':
        move_by(screen, -1);
        break;
    case KEY_DOWN:
    case 'j':
        move_by(screen, 1);
        break;
    case KEY_PPAGE:
        move_by(screen, -page);
        break;
    case KEY_NPAGE:
        move_by(screen, page);
        break;
    case KEY_HOME:
        screen->chosen = 0;
        break;
    case KEY_END:
        screen->chosen = screen->row_count ? screen->row_count - 1 : 0;
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        open_row(screen);
        break;
    case KEY_MOUSE:
        take_click(screen);
        break;
    case '/':
        if (screen->page == HW_TOP_CALL_STACKS) {
            snprintf(entry, sizeof screen->filter, "%s", screen->filter);
            screen->entry = entry;
        }
        break;
    case 't':
        open_page(screen, screen->page == HW_TOP_THREADS ? HW_TOP_CALL_STACKS : HW_TOP_THREADS);
        break;
    case 'm':
        screen->message = hw_top_set_mark(&screen->history)
                              ? "a mark is set: growth is counted from here (u removes it)"
                              : "there is not enough memory for a mark";
        break;
    case 'u':
        hw_top_clear_mark(&screen->history);
        break;
    case 'w':
        screen->window = (screen->window + 1) % HW_TOP_WINDOWS;
        break;
    case 'p':
    case ' ':
        screen->paused = !screen->paused;
        break;
    case '?':
    case 'h':
    case KEY_F(1):
        open_page(screen, HW_TOP_HELP);
        break;
    default:
        break;
    }
    return true;
}

static volatile sig_atomic_t ended_by; /* a signal */

static void note_signal(int number)
{
    ended_by = number;
}

bool hw_top_run(struct hw_top_screen *screen, const struct hw_top_options *options, struct hw_error *error)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct namer namer = {.options = &options->view, .lock = PTHREAD_MUTEX_INITIALIZER};
    char entry[sizeof screen->filter] = "";
    bool fine = true, going = true, changed = true;
    if (!begin_terminal(options->color, error))
        return false;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = note_signal}, NULL);
    uint64_t interval = options->interval_ms * 1000000, next = now_ns(CLOCK_MONOTONIC) + interval / 4;
    while (going && fine && !ended_by) {
        changed |= finish_naming(&namer, screen, false);
        if (changed)
            fine = draw(screen, options->utf8);
        changed = false;
        start_naming(&namer, screen, options->utf8);
        const uint64_t now = now_ns(CLOCK_MONOTONIC);
        const uint64_t left = now < next ? (next - now + 999999) / 1000000 : 0;
        timeout((int)(namer.busy && left > POLL_MS ? POLL_MS : left));
        const int key = getch();
        if (key == ERR && errno == EIO)
            break; /* the terminal is gone */
        if (key != ERR && key != KEY_RESIZE) {
            if (screen->entry)
                take_typed(screen, entry, key);
            else
                going = take_key(screen, entry, key);
        }
        changed |= key != ERR;
        if (now_ns(CLOCK_MONOTONIC) < next)
            continue;
        const uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        if (!screen->paused && (screen->history.live->running || screen->history.live->replaced)) {
            hw_top_read(screen);
            if (!namer.busy)
                hw_top_follow(screen, options);
            fine = fine && draw(screen, options->utf8);
        }
        const uint64_t cost = (now_ns(CLOCK_THREAD_CPUTIME_ID) - start) * COST_FACTOR;
        next = now_ns(CLOCK_MONOTONIC) + (cost > interval ? cost : interval);
    }
    endwin();
    finish_naming(&namer, screen, true);
    if (!fine)
        hw_error_set(error, "there is not enough memory");
    return fine;
}

/* ---- once ---- */

/* Lines as they are drawn: from left to right, each once. */
struct paper {
    struct hw_canvas canvas;
    struct hw_buffer *lines;
};

static void put_on_paper(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text)
{
    struct hw_buffer *to = &((struct paper *)canvas)->lines[line];
    (void)style;
    const int used = (int)hw_text_width(hw_buffer_text(to));
    hw_buffer_add(to, "%*s%s", column > used ? column - used : 0, "", text);
}

static bool draw_on_paper(struct hw_top_screen *screen, struct paper *paper)
{
    for (int i = 0; i < paper->canvas.height; i++)
        hw_buffer_clear(&paper->lines[i]);
    return hw_top_draw(screen, &paper->canvas);
}

static bool print_paper(const struct paper *paper)
{
    int last = paper->canvas.height;
    bool fine = true;
    for (int i = 0; i < last; i++)
        fine &= !paper->lines[i].failed;
    while (last && !*hw_buffer_text(&paper->lines[last - 1]))
        last--;
    for (int i = 0; fine && i < last; i++) {
        const char *text = hw_buffer_text(&paper->lines[i]);
        size_t size = strlen(text);
        while (size && text[size - 1] == ' ')
            size--;
        printf("%.*s\n", (int)size, text);
    }
    return fine;
}

bool hw_top_print(struct hw_top_screen *screen, const struct hw_top_options *options, unsigned width, size_t rows,
                  struct hw_error *error)
{
    struct paper paper = {.canvas = {.width = (int)width, .utf8 = options->utf8, .put = put_on_paper}};
    screen->once = true;
    const struct hw_live *live = screen->history.live;
    const size_t most = (live->context_count > live->thread_count ? live->context_count : live->thread_count) + 1;
    paper.canvas.height = (int)(rows < most ? rows : most) + HW_TOP_AROUND;
    paper.lines = calloc((size_t)paper.canvas.height, sizeof *paper.lines);
    bool fine = paper.lines && draw_on_paper(screen, &paper);
    /* With a filter names of more and more call stacks are asked for. */
    for (bool more = true; fine && more && screen->unnamed_count;) {
        struct hw_label_request *request =
            request_of(screen, screen->unnamed, screen->unnamed_count, 0, false, options->utf8);
        fine = request && hw_label_request_answer(request, &options->view, error) &&
               (more = hw_top_take_labels(screen, request)) && draw_on_paper(screen, &paper);
        hw_label_request_free(request);
    }
    fine = fine && (options->json ? hw_top_print_json(screen, rows) : print_paper(&paper));
    if (!fine && !*error->message)
        hw_error_set(error, "there is not enough memory");
    for (int i = 0; paper.lines && i < paper.canvas.height; i++)
        hw_buffer_free(&paper.lines[i]);
    free(paper.lines);
    return fine;
}
