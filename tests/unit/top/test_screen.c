/* test_screen.c - what heapwise top draws, of numbers that are made up here, on a canvas of characters. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "top/screen.h"
#include "top/totals.h"

#define CONTEXTS 12
#define WIDEST   160
#define HIGHEST  60

#define SECOND ((uint64_t)1000000000)

/* ---- a process ---- */

static struct hw_live_count counts[CONTEXTS];
static struct hw_live_count before[CONTEXTS];
static int64_t earlier[CONTEXTS];
static bool pools[CONTEXTS];
static struct hw_live_thread threads[1], threads_before[1];
static char strings[] = "\0/usr/bin/program";
static struct hw_live live;
static struct hw_top_screen screen;

/* Contexts from 1 on have 1000 bytes in a block, and other numbers that are 0. */
static void set_up_process(void)
{
    memset(counts, 0, sizeof counts);
    memset(before, 0, sizeof before);
    memset(earlier, 0, sizeof earlier);
    for (int i = 1; i < CONTEXTS; i++) {
        before[i] = counts[i] = (struct hw_live_count){.allocations = 1, .bytes = 1000, .live_bytes = 1000, .live_blocks = 1};
        earlier[i] = 1000;
    }
    threads_before[0] = threads[0] = (struct hw_live_thread){.serial = 1, .tid = 77, .name = "worker"};
    live = (struct hw_live){.running = true,
                            .process = {.pid = 4711, .executable = 1},
                            .time_ns = 3 * SECOND,
                            .threads = threads,
                            .thread_count = 1,
                            .threads_running = 1,
                            .counts = counts,
                            .pool = pools,
                            .context_count = CONTEXTS,
                            .strings = strings,
                            .string_size = sizeof strings};
    screen = (struct hw_top_screen){.history = {.live = &live,
                                                .before = before,
                                                .before_count = CONTEXTS,
                                                .threads_before = threads_before,
                                                .threads_before_count = 1,
                                                .before_ns = 2 * SECOND,
                                                .earlier[0] = {earlier, CONTEXTS, CONTEXTS, 2 * SECOND}}};
}

static void tear_down_process(void)
{
    screen.history.before = NULL; /* not of the heap */
    screen.history.threads_before = NULL;
    screen.history.earlier[0].bytes = screen.history.mark.bytes = NULL;
    hw_top_screen_free(&screen);
}

/* ---- the canvas ---- */

static char cells[HIGHEST][WIDEST + 1];

static void put_cells(struct hw_canvas *canvas, int line, int column, enum hw_top_style style, const char *text)
{
    (void)style;
    assert_in_range(line, 0, canvas->height - 1);
    assert_true(column >= 0 && column + (int)strlen(text) <= canvas->width);
    memcpy(&cells[line][column], text, strlen(text));
}

static const char *drawn(int width, int height)
{
    static char text[HIGHEST * (WIDEST + 2)];
    struct hw_canvas canvas = {.width = width, .height = height, .put = put_cells};
    size_t used = 0;
    memset(cells, ' ', sizeof cells);
    assert_true(hw_top_draw(&screen, &canvas));
    for (int i = 0; i < height; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s\n", width, cells[i]);
    return text;
}

/* Also gives names to what has asked for them: "function_N", of which LEFT_OUT and MATCHES are bits. */
static const char *drawn_with_names(int width, int height, unsigned left_out, unsigned matches)
{
    drawn(width, height);
    for (int round = 0; screen.unnamed_count && round < 5; round++) {
        struct hw_label labels[CONTEXTS] = {{.function = NULL}};
        struct hw_label_request request = {.contexts = screen.unnamed, .count = screen.unnamed_count, .labels = labels};
        assert_in_range(request.count, 1, CONTEXTS); /* each once */
        snprintf(request.filter, sizeof request.filter, "%s", screen.filter);
        for (size_t i = 0; i < request.count; i++) {
            const uint32_t context = request.contexts[i];
            char name[32];
            snprintf(name, sizeof name, "function_%u", (unsigned)context);
            labels[i] = (struct hw_label){.function = strdup(name),
                                          .place = strdup(""),
                                          .caller = strdup(""),
                                          .left_out = left_out >> context & 1,
                                          .filtered = *screen.filter != '\0',
                                          .matches = matches >> context & 1};
        }
        assert_true(hw_top_take_labels(&screen, &request));
        drawn(width, height);
    }
    assert_int_equal(screen.unnamed_count, 0);
    return drawn(width, height);
}

#define assert_shows(text, part)                                                                                       \
    do {                                                                                                               \
        if (!strstr((text), (part)))                                                                                   \
            fail_msg("no \"%s\" in:\n%s", (part), (text));                                                             \
    } while (0)
#define assert_hides(text, part)                                                                                       \
    do {                                                                                                               \
        if (strstr((text), (part)))                                                                                    \
            fail_msg("\"%s\" in:\n%s", (part), (text));                                                                \
    } while (0)

/* ---- columns ---- */

static void test_columns(void **state)
{
    (void)state;
    set_up_process();
    counts[1] = (struct hw_live_count){.allocations = 10000000, /* a second */
                                       .bytes = 1000 + 1048473,
                                       .live_bytes = 1048473,
                                       .live_blocks = 9999999};
    earlier[1] = 0;
    const char *text = drawn(120, 30);
    assert_shows(text, "1023.9 KiB +1023.9 KiB 9,999,999 1023.9 KiB 9,999,999  ...");
    assert_shows(text, "     LIVE*    IN 1.0 s  ALLOCS/s    CHURN/s    BLOCKS  CALL STACK");
    screen.page = HW_TOP_THREADS;
    threads[0].count = (struct hw_live_count){.allocations = 9999999, .frees = 9999999, .bytes = 1048473};
    text = drawn(120, 30);
    assert_shows(text, "9,999,999 9,999,999 1023.9 KiB   9,999,999 1023.9 KiB  worker (77)");
    assert_shows(text, " ALLOCS/s   FREES/s    CHURN/s ALLOCATIONS   OBTAINED  THREAD");
    tear_down_process();
}

static void test_growth_heading(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *heading;
    } cases[] = {{0.2, " IN 0.2 s "}, {0.5, " IN 0.5 s "}, {2.5, " IN 2.5 s "}, {9.96, " IN 10 s "},
                 {3600, " IN 3600 s "}, {123456789, " GROWTH "}};
    set_up_process();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        live.time_ns = 2 * SECOND + (uint64_t)(cases[i].seconds * 1e9);
        assert_shows(drawn(100, 30), cases[i].heading);
    }
    screen.history.mark = screen.history.earlier[0];
    assert_shows(drawn(100, 30), " LIVE*  SINCE MARK ");
    screen.sort = HW_TOP_GROWTH;
    assert_shows(drawn(100, 30), " LIVE SINCE MARK* ");
    tear_down_process();
}

static void test_small(void **state)
{
    (void)state;
    set_up_process();
    assert_shows(drawn_with_names(60, 20, 0, 0), " CHURN/s  CALL STACK");
    const char *text = drawn_with_names(40, 20, 0, 0);
    assert_shows(text, " 0 B  function_1 ");
    assert_shows(text, " IN 1.0 s  CALL STACK");
    screen.sort = HW_TOP_BLOCKS; /* the sorted column stays */
    assert_shows(drawn_with_names(40, 20, 0, 0), "BLOCKS*  CALL STACK");
    screen.sort = HW_TOP_LIVE;
    assert_shows(drawn_with_names(20, 5, 0, 0), "  1000 B  function");
    assert_shows(drawn_with_names(20, HW_TOP_LEAST_HEIGHT, 0, 0), "  1000 B  function");
    assert_shows(drawn(80, HW_TOP_LEAST_HEIGHT - 1), "the terminal is too small");
    assert_shows(drawn(19, 20), "too small");
    drawn(1, 1);
    screen.page = HW_TOP_THREADS;
    assert_shows(drawn(40, 5), "  worker (77)");
    tear_down_process();
}

/* Every line of the help can be read, wherever it begins and however little room there is. */
static void test_help(void **state)
{
    (void)state;
    set_up_process();
    screen.page = HW_TOP_HELP;
    const char *text = drawn(60, 12);
    assert_shows(text, "sort by live bytes, growth, allocations, ");
    assert_shows(text, "\n              churn, blocks "); /* wrapped */
    assert_shows(text, "Up Down scroll");
    screen.chosen = 1000;
    assert_shows(drawn(60, 12), "freed since or not");
    screen.chosen = 1000;
    assert_shows(drawn(20, 5), "since or not");
    screen.chosen = 0;
    assert_shows(drawn(80, 50), "ALLOCATIONS all allocations of the thread so far");
    tear_down_process();
}

/* ---- what it is of ---- */

static void test_title(void **state)
{
    (void)state;
    set_up_process();
    assert_shows(drawn(120, 20), "heapwise top  program  process 4711  running for 3.00 s");
    live.process.counting = HW_COUNTING_WAITS;
    assert_shows(drawn(120, 20), "running for 3.00 s  waits for heapwise start");
    live.process.counting = HW_COUNTING_ALWAYS;
    live.process.flags = HW_PROCESS_ATTACHED;
    assert_shows(drawn(120, 20), "process 4711  recorded for 3.00 s");
    live.process.flags = 0;
    live.running = false;
    live.replaced = true;
    assert_shows(drawn(120, 20), "process 4711  still runs, but no longer writes this profile");
    live.process.exit_kind = HW_EXIT_EXEC;
    assert_shows(drawn(120, 20), "process 4711  became another program by exec after 3.00 s");
    live.process.exit_kind = HW_EXIT_CODE;
    live.replaced = false;
    assert_shows(drawn(120, 20), "process 4711  ended with exit code 0 after 3.00 s");
    live.process.exit_kind = HW_EXIT_UNKNOWN;
    assert_shows(drawn(120, 20), "process 4711  ended; recorded for at least 3.00 s");
    live.process.flags = HW_PROCESS_DUMP;
    assert_shows(drawn(120, 20), "process 4711  dumped while it was running, after 3.00 s");
    live.process.flags = HW_PROCESS_MERGED;
    live.process.runs = 3;
    assert_shows(drawn(120, 20), "heapwise top  program  sum of 3 processes ");
    live.process.flags = HW_PROCESS_MERGED | HW_PROCESS_LLVM;
    assert_shows(drawn(120, 20), "heapwise top  program  made from an LLVM heap profile ");
    tear_down_process();
}

/* ---- rows ---- */

static size_t rows_of(const char *text)
{
    size_t rows = 0;
    for (const char *row = text; (row = strstr(row, "  function_")); row++)
        rows++;
    return rows;
}

static void test_not_shown(void **state)
{
    (void)state;
    set_up_process();
    screen.once = true;
    const char *text = drawn_with_names(80, 3 + HW_TOP_AROUND, 0, 0);
    assert_int_equal(rows_of(text), 3);
    assert_shows(text, "Call stacks not shown: 8 more (--top) ");
    counts[4] = counts[5] = (struct hw_live_count){.allocations = 1};
    assert_shows(drawn_with_names(80, 3 + HW_TOP_AROUND, 0, 0),
                 "Call stacks not shown: 6 more (--top), 2 with 0 in the sorted column ");
    text = drawn_with_names(80, 9 + HW_TOP_AROUND, 0, 0);
    assert_int_equal(rows_of(text), 9);
    assert_shows(text, "Call stacks not shown: 2 with 0 in the sorted column ");
    screen.once = false;
    assert_shows(drawn_with_names(80, 40, 0, 0), "Call stacks not shown: 2 with 0 in the sorted column ");
    screen.sort = HW_TOP_CHURN;
    assert_shows(drawn_with_names(80, 40, 0, 0), "Call stacks not shown: 11 with 0 in the sorted column ");
    assert_shows(drawn_with_names(80, 40, 0, 0), "nothing has changed");
    tear_down_process();
}

static void test_left_out(void **state)
{
    (void)state;
    set_up_process();
    screen.selective = true;
    const char *text = drawn(80, 30); /* what may be left out is not shown before that is known */
    assert_int_equal(rows_of(text), 0);
    assert_shows(text, "names are being read");
    text = drawn_with_names(80, 30, 1u << 2 | 1u << 3, 0);
    assert_int_equal(rows_of(text), CONTEXTS - 3);
    assert_hides(text, "function_2");
    assert_shows(text, "Call stacks not shown: 2 by --ignore or --focus ");
    tear_down_process();
    set_up_process();
    screen.selective = true;
    text = drawn_with_names(80, 30, ~0u, 0);
    assert_shows(text, "all call stacks are left out");
    tear_down_process();
}

static void test_filter(void **state)
{
    (void)state;
    set_up_process();
    assert_int_equal(rows_of(drawn_with_names(80, 30, 0, 0)), CONTEXTS - 1);
    snprintf(screen.filter, sizeof screen.filter, "deep"); /* in no name that is shown: the stacks are asked for it */
    const char *text = drawn_with_names(80, 30, 0, 1u << 7);
    assert_int_equal(rows_of(text), 1);
    assert_shows(text, "function_7");
    assert_shows(text, "Call stacks not shown: 10 not matching the filter ");
    snprintf(screen.filter, sizeof screen.filter, "deeper");
    text = drawn_with_names(80, 30, 0, 1u << 8);
    assert_int_equal(rows_of(text), 1);
    assert_shows(text, "function_8");
    *screen.filter = '\0';
    assert_int_equal(rows_of(drawn_with_names(80, 30, 0, 0)), CONTEXTS - 1);
    tear_down_process();
}

TEST_LIST(cmocka_unit_test(test_columns), cmocka_unit_test(test_growth_heading), cmocka_unit_test(test_small),
          cmocka_unit_test(test_help), cmocka_unit_test(test_title), cmocka_unit_test(test_not_shown),
          cmocka_unit_test(test_left_out), cmocka_unit_test(test_filter))
