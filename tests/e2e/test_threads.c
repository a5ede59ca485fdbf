/* test_threads.c - names, start functions and numbers of threads, on a program in which all of them are known by
 * construction: programs/threads.c. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

#define BLOCKS 1000

/* What programs/threads.c does, thread by thread. */
static const struct expected {
    const char *name, *start;
    int64_t size, freed, by_others, of_others, of_others_bytes;
} expected[] = {
    {"self", "self_named", 100, 10, 300, 0, 0},
    {"by another", "other_named", 200, 0, 300, 0, 0},
    {"by prctl, too l", "prctl_named", 300, 1000, 0, 0, 0},
    {"a\"\\\n\t\\x80\\xff<b>", "odd_named", 40, 0, 0, 0, 0},
    {"f\xc3\xa4"
     "den \xe2\x82\xac",
     "utf8_named", 24, 0, 0, 0, 0},
    {"threads", "c11_thread", 8, 0, 0, 0, 0},
    {"alive", "left_alive", 500, 0, 0, 0, 0},
};
enum { MAKERS = sizeof expected / sizeof *expected };

static struct recording record(const char *what, const char *options)
{
    const char *const argv[] = {need_program("threads"), what, NULL};
    const struct record_options how = {.options = options};
    return record_and_load(argv, &how);
}

static const json_t *thread_of(const json_t *report, const char *start)
{
    const json_t *list = json_object_get(report, "threads");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_function(json_text(json_array_get(list, i), "start.function"), start))
            return json_array_get(list, i);
    fail_msg("no thread was started with %s", start);
    return NULL;
}

static void check_makers(const json_t *report, bool last_names)
{
    for (int i = 0; i < MAKERS; i++) {
        const struct expected *of = &expected[i];
        const json_t *thread = thread_of(report, of->start);
        if (last_names)
            assert_string_equal(json_text(thread, "name"), of->name);
        assert_string_equal(json_text(thread, "kind"), "started");
        assert_int_equal(json_number(thread, "threads"), 1);
        assert_int_equal(json_number(thread, "allocations"), BLOCKS);
        assert_int_equal(json_number(thread, "bytes"), BLOCKS * of->size);
        assert_int_equal(json_number(thread, "peak_bytes"), BLOCKS * of->size);
        assert_int_equal(json_number(thread, "frees"), of->freed);
        assert_int_equal(json_number(thread, "freed_by_others"), of->by_others);
        assert_int_equal(json_number(thread, "freed_by_others_bytes"), of->by_others * of->size);
        assert_int_equal(json_number(thread, "freed_of_others"), 0);
        assert_int_equal(json_number(thread, "live_allocations"), BLOCKS - of->freed - of->by_others);
        assert_int_equal(json_number(thread, "live_bytes"), (BLOCKS - of->freed - of->by_others) * of->size);
        assert_int_equal(json_number(thread, "owner_unknown"), 0);
    }
}

/* Sums over all threads are the totals of the process. */
static void check_sums(const json_t *report)
{
    static const char *const keys[][2] = {{"allocations", "allocations"}, {"frees", "frees"},
                                          {"bytes", "bytes_allocated"},   {"live_allocations", "live_allocations"},
                                          {"live_bytes", "live_bytes"},   {"reallocations", "reallocations"}};
    const json_t *list = json_object_get(report, "threads");
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        int64_t sum = 0;
        for (size_t i = 0; i < json_array_size(list); i++)
            sum += json_number(json_array_get(list, i), keys[k][0]);
        assert_int_equal(sum, json_number(json_object_get(report, "totals"), keys[k][1]));
    }
    int64_t by = 0, of = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        by += json_number(json_array_get(list, i), "freed_by_others");
        of += json_number(json_array_get(list, i), "freed_of_others");
    }
    assert_int_equal(by, of);
}

/* The frame that pthread_create was called from, or what calls that. */
static bool starts_at(const json_t *report, const json_t *thread, const char *function)
{
    const int64_t context = json_number(thread, "started_by.context");
    const json_t *starts = json_object_get(report, "thread_starts");
    for (size_t i = 0; i < json_array_size(starts); i++) {
        const json_t *start = json_array_get(starts, i), *stack = json_object_get(start, "stack");
        if (json_number(start, "context") != context)
            continue;
        const json_t *frame = json_array_get(stack, (size_t)json_number(start, "headline"));
        return is_function(json_text(frame, "function"), function);
    }
    return false;
}

static void check_starter(const json_t *report, const char *start, const char *starter, const char *function)
{
    const json_t *list = json_object_get(report, "threads"), *thread = thread_of(report, start);
    const json_t *by = json_array_get(list, (size_t)json_number(thread, "started_by.thread"));
    if (!strcmp(starter, "main"))
        assert_string_equal(json_text(by, "kind"), "main");
    else
        assert_true(is_function(json_text(by, "start.function"), starter));
    assert_true(starts_at(report, thread, function));
}

static void test_names(void **state)
{
    struct recording recording = record("names", NULL);
    assert_exit(&recording.run, 0, "record");
    check_makers(recording.report, true);
    check_sums(recording.report);
    const json_t *main = json_entry(recording.report, "threads", "kind", "main");
    assert_string_equal(json_text(main, "name"), "threads");
    assert_true(json_number(main, "peak_bytes") >= 200000);
    assert_true(json_is_null(json_object_get(json_object_get(main, "started_by"), "thread")));
    assert_true(json_is_null(json_object_get(json_object_get(main, "started_by"), "context")));
    for (int i = 0; i < MAKERS; i++)
        check_starter(recording.report, expected[i].start, "main", "run_names");
    /* Two takers have one name: 200 and 400 blocks of others, in some order. */
    const json_t *list = json_object_get(recording.report, "threads");
    int64_t takers = 0, taken = 0, bytes = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *thread = json_array_get(list, i);
        if (strcmp(json_text(thread, "name"), "taker") != 0)
            continue;
        takers++;
        taken += json_number(thread, "freed_of_others");
        bytes += json_number(thread, "freed_of_others_bytes");
        assert_int_equal(json_number(thread, "live_bytes"), 0);
        assert_int_equal(json_number(thread, "peak_bytes"), 0);
        assert_true(json_number(thread, "ended_ns") > 0);
    }
    assert_int_equal(takers, 2);
    assert_int_equal(taken, 600);
    assert_int_equal(bytes, 300 * 100 + 300 * 200);
    assert_true(json_is_null(json_object_get(thread_of(recording.report, "left_alive"), "ended_ns")));
    recording_free(&recording);
}

/* By context: all makers allocate at one place, each with its own part; and blocks freed by others are counted. */
static void test_places(void **state)
{
    struct recording recording = record("names", NULL);
    const json_t *contexts = json_object_get(recording.report, "contexts");
    const json_t *list = json_object_get(recording.report, "threads");
    int64_t others = 0, parts = 0;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i), *by = json_object_get(context, "by_thread");
        int64_t allocations = 0;
        others += json_number(context, "freed_by_others");
        for (size_t k = 0; k < json_array_size(by); k++) {
            const json_t *row = json_array_get(by, k);
            const json_t *thread = json_array_get(list, (size_t)json_number(row, "thread"));
            allocations += json_number(row, "allocations");
            if (!strcmp(json_text(thread, "start.function"), "utf8_named") && json_number(row, "allocations")) {
                assert_int_equal(json_number(row, "allocations"), BLOCKS);
                assert_int_equal(json_number(row, "live_bytes"), BLOCKS * 24);
                assert_int_equal(json_number(row, "peak_bytes"), BLOCKS * 24);
                assert_false(json_is_true(json_object_get(row, "several")));
                parts++;
            }
            if (json_number(context, "freed_by_others"))
                assert_true(json_is_null(json_object_get(row, "live_bytes")));
        }
        assert_int_equal(allocations, json_number(context, "allocations"));
    }
    assert_int_equal(others, 600);
    assert_int_equal(parts, 1);
    recording_free(&recording);
}

/* A block stays its thread's when others reallocate it: 64 bytes each become 1000, then half of them 10. */
static void test_resized(void **state)
{
    struct recording recording = record("resized", NULL);
    static const struct {
        const char *start;
        int64_t bytes, peak, live, blocks, reallocations;
    } of[] = {{"allocate_small", BLOCKS * 64, BLOCKS * 1000, BLOCKS / 2 * 1010 - 100 * 1000, BLOCKS - 100, 0},
              {"make_large", BLOCKS * 936, 0, 0, 0, BLOCKS},
              {"make_smaller", 0, 0, 0, 0, BLOCKS / 2}};
    for (int i = 0; i < 3; i++) {
        const json_t *thread = thread_of(recording.report, of[i].start);
        assert_int_equal(json_number(thread, "bytes"), of[i].bytes);
        assert_int_equal(json_number(thread, "peak_bytes"), of[i].peak);
        assert_int_equal(json_number(thread, "live_bytes"), of[i].live);
        assert_int_equal(json_number(thread, "live_allocations"), of[i].blocks);
        assert_int_equal(json_number(thread, "reallocations"), of[i].reallocations);
    }
    assert_int_equal(json_number(thread_of(recording.report, "allocate_small"), "freed_by_others_bytes"), 100 * 1000);
    check_sums(recording.report);
    /* By place each thread has the bytes that it asked for; whose are live is not known. */
    const json_t *contexts = json_object_get(recording.report, "contexts");
    int64_t seen = 0;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i), *by = json_object_get(context, "by_thread");
        int64_t bytes = 0;
        if (json_number(context, "allocations") != BLOCKS)
            continue;
        for (size_t k = 0; k < json_array_size(by); k++) {
            bytes += json_number(json_array_get(by, k), "bytes");
            assert_true(json_is_null(json_object_get(json_array_get(by, k), "live_bytes")));
        }
        assert_int_equal(bytes, BLOCKS * 1000);
        seen++;
    }
    assert_int_equal(seen, 1);
    recording_free(&recording);
}

/* kill -9: the names are those that were set, as nothing can be asked at the end. */
static void test_killed(void **state)
{
    struct recording recording = record("killed", NULL);
    check_makers(recording.report, true);
    recording_free(&recording);
}

/* 3,000 threads that end, with three names: the list stays short, and adds up. */
static void test_many(void **state)
{
    struct recording recording = record("many", NULL);
    const json_t *list = json_object_get(recording.report, "threads");
    int64_t threads = 0, allocations[3] = {0}, by_others = 0;
    assert_true(json_array_size(list) <= 1100);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *thread = json_array_get(list, i);
        const char *name = json_text(thread, "name");
        if (strncmp(name, "short-", 6) != 0)
            continue;
        assert_true(name[6] >= '0' && name[6] <= '2' && !name[7]);
        assert_false(json_is_true(json_object_get(thread, "names_differ")));
        threads += json_number(thread, "threads");
        allocations[name[6] - '0'] += json_number(thread, "allocations");
        by_others += json_number(thread, "freed_by_others");
        assert_int_equal(json_number(thread, "live_bytes"), 0);
    }
    assert_int_equal(threads, 3000);
    assert_int_equal(by_others, 3000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(allocations[i], 2000);
    check_sums(recording.report);
    recording_free(&recording);
}

/* A call stack of the parent's: times of the child's blocks there are the child's. */
static void check_age_in_child(const json_t *report)
{
    const json_t *contexts = json_object_get(report, "contexts");
    const int64_t duration = json_number(report, "process.duration_ns");
    int seen = 0;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i);
        assert_true(json_number(context, "first_ns") <= duration);
        if (json_number(context, "bytes") != 555)
            continue;
        seen++;
        assert_int_equal(json_number(context, "live_allocations"), 1);
        assert_int_equal(json_number(context, "inherited.allocations"), 1);
        assert_int_equal(json_number(context, "first_ns"), 0);
        assert_true(json_number(context, "live_age_ns.total") >= 20000000);
        assert_true(json_number(context, "live_age_ns.total") <= duration);
    }
    assert_int_equal(seen, 1);
}

static void test_fork(void **state)
{
    struct recording recording = record("fork", NULL);
    assert_int_equal(recording.file_count, 2);
    check_age_in_child(recording.reports[1]);
    for (int i = 0; i < 2; i++) {
        const json_t *thread = thread_of(recording.reports[i], "in_child");
        assert_string_equal(json_text(thread, "name"), "of child");
        assert_int_equal(json_number(thread, "allocations"), 1);
        assert_int_equal(json_number(thread, "bytes"), 777);
        assert_int_equal(json_number(thread, "freed_by_others"), i);
        check_starter(recording.reports[i], "in_child", "main", "run_fork");
    }
    check_sums(recording.reports[1]);
    recording_free(&recording);
}

/* Two runs: threads of the same name and start function are one entry. */
static void test_merge(void **state)
{
    struct recording recording = record("names", NULL);
    char *file = join_path(recording.directory, "merged.hwprof");
    const char *const arguments[] = {"merge", "-o", file, recording.files[0], recording.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "merge");
    run_result_free(&result);
    json_t *merged = load_report(file, 0);
    for (int i = 0; i < MAKERS; i++) {
        const json_t *thread = thread_of(merged, expected[i].start);
        assert_string_equal(json_text(thread, "name"), expected[i].name);
        assert_int_equal(json_number(thread, "threads"), 2);
        assert_true(json_is_null(json_object_get(json_object_get(thread, "started_by"), "context")));
        assert_int_equal(json_number(thread, "allocations"), 2 * BLOCKS);
        assert_int_equal(json_number(thread, "peak_bytes"), 2 * BLOCKS * expected[i].size);
        assert_int_equal(json_number(thread, "freed_by_others"), 2 * expected[i].by_others);
        assert_int_equal(json_number(thread, "live_bytes"),
                         2 * (BLOCKS - expected[i].freed - expected[i].by_others) * expected[i].size);
    }
    check_sums(merged);
    json_decref(merged);
    free(file);
    recording_free(&recording);
}

static void assert_line(const char *text, const char *word, const char *other)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        const char *end = strchrnul(at, '\n'), *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        const char *found = strstr(line, other);
        if (found && found < end)
            return;
    }
    fail_msg("no line has %s and %s:\n%s", word, other, text);
}

static void test_text(void **state)
{
    struct recording recording = record("names", NULL);
    const char *const arguments[] = {"report", "--section", "threads", recording.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    assert_line(result.out, "self, self_named", "97.7 KiB");
    assert_line(result.out, "self, self_named", " 300 ");
    assert_line(result.out, "threads, main thread", "KiB");
    assert_line(result.out, "started by the main thread at run_names", "threads.c:");
    assert_null(strchr(result.out, '\t')); /* of an odd name */
    run_result_free(&result);
    const char *const by[] = {"report", "--by", "thread", "--value", "bytes", recording.files[0], NULL};
    result = heapwise(by, NULL);
    assert_exit(&result, 0, "report --by thread");
    assert_line(result.out, "alive, left_alive", "488.3 KiB");
    run_result_free(&result);
    const char *const brief[] = {"report", recording.files[0], NULL};
    result = heapwise(brief, NULL);
    assert_line(result.out, "alive, left_alive", "488.3 KiB");
    run_result_free(&result);
    recording_free(&recording);
}

/* Estimates are not where exact numbers are. */
static void test_sampled(void **state)
{
    struct recording recording = record("names", "sample-bytes=1000");
    const json_t *thread = thread_of(recording.report, "left_alive");
    assert_null(json_object_get(thread, "allocations"));
    const int64_t bytes = json_number(thread, "sampled.bytes");
    assert_true(bytes > 350000 && bytes < 650000);
    recording_free(&recording);
}

static void test_allocator_mode(void **state)
{
    struct recording recording = record("names", "mode=allocator");
    const json_t *thread = thread_of(recording.report, "self_named");
    assert_string_equal(json_text(thread, "name"), "self");
    assert_null(json_object_get(thread, "allocations"));
    recording_free(&recording);
}

/* Bounded tables do not know whose a block was: that is said, and not 0. */
static void test_bounded(void **state)
{
    struct recording recording = record("names", "table=64");
    const json_t *main = json_entry(recording.report, "threads", "kind", "main");
    assert_non_null(main);
    const json_t *list = json_object_get(recording.report, "threads");
    int64_t unknown = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        unknown += json_number(json_array_get(list, i), "owner_unknown");
    assert_true(unknown >= 600);
    assert_true(json_is_null(
        json_object_get(json_array_get(json_object_get(recording.report, "contexts"), 0), "freed_by_others")));
    recording_free(&recording);
}

/* What is live at a reset stays its thread's; everything else begins at zero. A thread of a thread. */
static void check_reset(const json_t *report)
{
    const json_t *thread = thread_of(report, "over_reset");
    assert_int_equal(json_number(thread, "allocations"), 3);
    assert_int_equal(json_number(thread, "bytes"), 150);
    assert_int_equal(json_number(thread, "frees"), 0); /* its frees are of blocks of before: inherited */
    assert_int_equal(json_number(thread, "live_allocations"), 5 - 2 - 1 + 3);
    assert_int_equal(json_number(thread, "live_bytes"), (5 - 2 - 1) * 100 + 150);
    assert_int_equal(json_number(thread, "freed_by_others"), 1);
    assert_int_equal(json_number(thread, "freed_by_others_bytes"), 100);
    check_starter(report, "over_reset", "started_by_thread", "started_by_thread");
}

static void test_reset(void **state)
{
    struct recording recording = record("reset", NULL);
    assert_exit(&recording.run, 0, "record");
    check_reset(recording.report);
    recording_free(&recording);
}

/* Programs that count their accesses. */
static void test_access_mode(void **state)
{
    char *program = join_path(test_directory, "threads"), *source = join_path(TEST_SOURCES, "programs/threads.c");
    const char *const compile[] = {heapwise_path(), "cc",   "-D_GNU_SOURCE", "-O2", "-g", "-std=gnu17", "-w", "-o",
                                   program,         source, "-pthread",      NULL};
    compile_or_skip(compile, "heapwise cc");
    for (int reset = 0; reset < 2; reset++) {
        const char *const argv[] = {program, reset ? "reset" : "names", NULL};
        struct recording recording = record_and_load(argv, &(struct record_options){0});
        assert_string_equal(json_text(recording.report, "process.mode"), "access");
        if (reset) {
            check_reset(recording.report);
        } else {
            check_makers(recording.report, true);
            check_sums(recording.report);
            for (int i = 0; i < MAKERS; i++)
                check_starter(recording.report, expected[i].start, "main", "run_names");
        }
        recording_free(&recording);
    }
    free(program);
    free(source);
}

/* 300 numbered threads of std::thread: a row each in JSON, one row for people. */
static void test_pool(void **state)
{
    const char *const argv[] = {need_program("thread_pool"), NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){0});
    const json_t *list = json_object_get(recording.report, "threads");
    int workers = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *thread = json_array_get(list, i);
        if (strncmp(json_text(thread, "name"), "worker-", 7) != 0)
            continue;
        workers++;
        assert_true(is_function(json_text(thread, "start.function"), "serve(int)"));
        assert_int_equal(json_number(thread, "peak_bytes"), 1000);
        assert_true(
            starts_at(recording.report, thread, "start_pool(std::vector<std::thread, std::allocator<std::thread> >&)"));
    }
    assert_int_equal(workers, 300);
    const char *const tables[][8] = {{"report", "--section", "threads", recording.files[0], NULL},
                                     {"report", "--by", "thread", recording.files[0], NULL}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct run_result result = heapwise(tables[i], NULL);
        assert_exit(&result, 0, "report");
        assert_line(result.out, "(300 threads)", "worker-*");
        assert_line(result.out, "(300 threads)", "293.0 KiB");
        assert_null(strstr(result.out, "worker-1"));
        if (i == 0) /* of all of them */
            assert_line(result.out, "allocated 293.0 KiB", "serve(int)");
        run_result_free(&result);
    }
    recording_free(&recording);
}

/* With one thread there is nothing to compare. */
static void test_one_thread(void **state)
{
    const char *const argv[] = {need_program("wrapped"), "z", NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){0});
    const char *const arguments[] = {"report", "--section", "threads", recording.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "\nOne thread used the heap.\n");
    assert_null(strstr(result.out, "Places by number of threads"));
    run_result_free(&result);
    recording_free(&recording);
}

/* Threads of std::thread that ran one after the other: they have the name of their function, or none. */
static void test_one_after_another(void **state)
{
    static const char *const functions[] = {"handle()", "log_lines()", "release()"};
    for (int mixed = 0; mixed < 2; mixed++) {
        const char *const argv[] = {need_program("thread_pool"), mixed ? "mixed" : "one", NULL};
        struct recording recording = record_and_load(argv, &(struct record_options){0});
        const json_t *list = json_object_get(recording.report, "threads");
        int started = 0;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *thread = json_array_get(list, i);
            const char *name = json_text(thread, "name");
            if (strcmp(json_text(thread, "kind"), "started") != 0)
                continue;
            started++;
            for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
                if (strncmp(name, functions[k], strlen(name)) != 0)
                    assert_string_not_equal(json_text(thread, "start.function"), functions[k]);
            if (!mixed)
                assert_string_equal(json_text(thread, "start.function"), "handle()");
        }
        assert_int_equal(started, mixed ? 11 : 5);
        recording_free(&recording);
    }
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_names), cmocka_unit_test(test_places),
               cmocka_unit_test(test_resized), cmocka_unit_test(test_killed), cmocka_unit_test(test_many),
               cmocka_unit_test(test_fork), cmocka_unit_test(test_merge), cmocka_unit_test(test_text),
               cmocka_unit_test(test_sampled), cmocka_unit_test(test_allocator_mode), cmocka_unit_test(test_bounded),
               cmocka_unit_test(test_reset), cmocka_unit_test(test_access_mode), cmocka_unit_test(test_pool),
               cmocka_unit_test(test_one_thread), cmocka_unit_test(test_one_after_another))
