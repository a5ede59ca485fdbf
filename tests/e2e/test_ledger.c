/* test_ledger.c - what RSS is made of, against memory that a program has mapped in known amounts. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ll << 20)

static struct recording recording;

static int record_once(void **state)
{
    const char *program = program_path("ledger");
    if (!program)
        return 0;
    const char *const argv[] = {program, NULL};
    recording = record_and_load(argv, NULL);
    return recording.report && recording.run.code == 0 ? 0 : -1;
}

static int forget(void **state)
{
    recording_free(&recording);
    return 0;
}

static const json_t *at_moment(const json_t *report, const char *name)
{
    size_t i;
    json_t *moment;
    json_array_foreach(json_object_get(report, "memory"), i,
                       moment) if (!strcmp(json_string_value(json_object_get(moment, "moment")), name)) return moment;
    fail_msg("nothing was measured at the moment \"%s\"", name);
    return NULL;
}

static const json_t *at_end(void)
{
    if (!recording.report)
        SKIP("ledger was not built");
    return at_moment(recording.report, "end");
}

static int64_t value(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Resident at the end: of KIND, and of mmap's that FUNCTION called, unless NULL. */
static int64_t resident(const char *kind, const char *function)
{
    int64_t sum = 0;
    size_t i, k;
    json_t *row, *frame;
    json_array_foreach(json_object_get(recording.report, "ledger"), i, row)
    {
        bool matches = !function;
        json_array_foreach(json_object_get(row, "stack"), k, frame)
        {
            const char *name = json_string_value(json_object_get(frame, "function"));
            matches |= name && function && !strcmp(name, function);
        }
        if (matches && !strcmp(json_string_value(json_object_get(row, "moment")), "end") &&
            !strcmp(json_string_value(json_object_get(row, "kind")), kind))
            sum += value(row, "resident_bytes");
    }
    return sum;
}

static void assert_about(const char *what, int64_t expected, int64_t actual, int64_t slack)
{
    if (llabs(expected - actual) > slack)
        fail_msg("%s: %lld, should be %lld", what, (long long)actual, (long long)expected);
}

static void test_mapped_by_stack(void **state)
{
    at_end();
    assert_int_equal(resident("mapped", "map_known"), 14 * MIB);
    assert_int_equal(resident("mapped", "map_over"), 2 * MIB);
    assert_int_equal(resident("mapped", "map_moved"), 5 * MIB);
    assert_int_equal(resident("mapped", "map_by_number"), 3 * MIB);
    assert_int_equal(resident("shared", "map_shared"), 6 * MIB);
    assert_int_equal(resident("mapped", NULL), 24 * MIB);
}

/* The rows, and the sums of kinds, are all of RSS; and that is what the program has read itself, but for what it did
 * since. */
static void test_sums(void **state)
{
    const json_t *end = at_end();
    static const char *const kinds[] = {"allocator", "mapped", "unknown",      "module",   "file",  "shared",
                                        "stack",     "kernel", "ended_stacks", "heapwise", "loader"};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        sum += resident(kinds[i], NULL);
    assert_int_equal(sum, value(end, "rss_bytes"));
    assert_int_equal(value(end, "heap_bytes") + value(end, "file_bytes") + value(end, "stack_bytes") +
                         value(end, "runtime_bytes") + value(end, "other_bytes"),
                     sum);
    assert_int_equal(value(end, "allocator_bytes") + value(end, "mapped_bytes") + value(end, "unexplained_bytes"),
                     value(end, "heap_bytes"));
    assert_int_equal(value(end, "mapped_bytes"), 24 * MIB);
    assert_about("RSS", atoll(strstr(recording.run.out, "rss ") + 4), sum, 2 * MIB);
    assert_true(value(end, "unexplained_bytes") < value(end, "rss_bytes") * 3 / 100);
    assert_true(value(end, "page_table_bytes") > 100 * 1024);
    assert_true(value(end, "pss_bytes") > 60 * MIB && value(end, "pss_bytes") <= value(end, "rss_bytes"));
}

static void test_heap_and_stacks(void **state)
{
    at_end();
    assert_about("the allocator's", 40 * MIB + 20000 * 112, resident("allocator", NULL), MIB);
    assert_about("stacks", 3 * MIB, resident("stack", NULL), MIB / 2);
    assert_int_equal(resident("ended_stacks", NULL), 0);
}

static struct run_result printed(const char *one, const char *two)
{
    const char *const argv[] = {"report", "--no-pager", recording.files[0], one, two, NULL};
    struct run_result result = heapwise(argv, NULL);
    assert_exit(&result, 0, "report");
    return result;
}

/* The section alone names functions as the whole report does, and all of its rows can be had. */
static void test_text(void **state)
{
    at_end();
    struct run_result some = printed("--section", "memory"), two = printed("--section=memory", "--top=2"),
                      many = printed("--section=memory", "--top=1000"), full = printed("--section=memory", "--full"),
                      all = printed("--all", NULL);
    assert_contains(some.out, "mapped in map_known");
    assert_null(strstr(some.out, "ledger+0x"));
    assert_contains(some.out, " more (--top)");
    assert_contains(two.out, " more (--top)");
    assert_true(strlen(two.out) < strlen(some.out) && strlen(some.out) < strlen(many.out));
    assert_null(strstr(many.out, "more (--top)"));
    assert_null(strstr(full.out, "more (--top)"));
    const char *rows = strstr(all.out, "Resident memory by who mapped it");
    assert_non_null(rows);
    const char *end = strstr(rows, "\n\n"), *more = strstr(rows, "more (--top)");
    assert_true(end && (!more || more > end));
    run_result_free(&some);
    run_result_free(&two);
    run_result_free(&many);
    run_result_free(&full);
    run_result_free(&all);
}

static void test_mappings(void **state)
{
    at_end();
    size_t i, k, found = 0;
    json_t *mapping, *frame;
    json_array_foreach(json_object_get(recording.report, "mappings"), i, mapping)
        json_array_foreach(json_object_get(mapping, "stack"), k, frame)
    {
        const char *name = json_string_value(json_object_get(frame, "function"));
        if (!name || strcmp(name, "map_known"))
            continue;
        found++;
        assert_int_equal(value(mapping, "calls"), 1);
        assert_int_equal(value(mapping, "bytes"), 24 * MIB);
        assert_int_equal(value(mapping, "peak_bytes"), 24 * MIB);
        assert_int_equal(value(mapping, "mapped_bytes"), 18 * MIB);
    }
    assert_int_equal(found, 1);
}

/* What the program has mapped next to Heapwise's memory, which the kernel may join to one mapping, stays the program's.
 * Pages that nobody wrote to are shared out roughly: a few may be missing. */
static void test_neighbours(void **state)
{
    at_end();
    static const char *const flags[] = {NULL, "noreserve"};
    const struct recording first = recording;
    for (size_t i = 0; i < 2; i++) {
        recording = record_and_load((const char *const[]){program_path("ledger"), "beside", flags[i], NULL}, NULL);
        assert_exit(&recording.run, 0, "ledger beside");
        const int64_t bytes = atoll(strstr(recording.run.out, "beside ") + 7);
        const int64_t mapped = resident("mapped", "map_beside"), own = resident("heapwise", NULL);
        recording_free(&recording);
        recording = first;
        assert_true(bytes >= 2 * 65536 && own > 0);
        assert_about("mapped beside others", bytes, mapped, bytes / 20);
    }
}

/* The database has the same moments, rows and call stacks as the JSON report. */
static void test_sqlite(void **state)
{
    at_end();
    if (!have_command("node") || access(TEST_SOURCES "/exports/node_modules/pprof-format", R_OK) != 0)
        SKIP("the readers are not installed (scripts/setup test)");
    assert_true(json_array_size(json_object_get(recording.report, "ledger")) >= 12);
    assert_true(json_array_size(json_object_get(recording.report, "mappings")) >= 4);
    char *report = join_path(recording.directory, "ledger.json"), *out = join_path(recording.directory, "ledger.db");
    assert_int_equal(json_dump_file(recording.report, report, 0), 0);
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", "sqlite", "-o", out, recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, "export");
    run_result_free(&result);
    result = run((const char *const[]){"node", TEST_SOURCES "/exports/check.mjs", "sqlite", out, report, NULL}, NULL);
    if (result.code != 0)
        fail_msg("%s%s", result.out, result.err);
    run_result_free(&result);
    free(report);
    free(out);
}

/* Memory that no call was seen to map is the allocator's where blocks lie, in a map or in a table. */
static void test_bare_calls(void **state)
{
    const char *program = program_path("baremalloc");
    if (!program)
        SKIP("baremalloc was not built");
    static const char *const stores[] = {NULL, "block-table=1"};
    for (size_t i = 0; i < 2; i++) {
        struct recording bare =
            record_and_load((const char *const[]){program, NULL}, &(struct record_options){.options = stores[i]});
        assert_exit(&bare.run, 0, "baremalloc");
        size_t k;
        json_t *moment;
        bool ended = false;
        json_array_foreach(json_object_get(bare.report, "memory"), k, moment)
        {
            if (strcmp(json_string_value(json_object_get(moment, "moment")), "end") != 0)
                continue;
            ended = true;
            assert_true(value(moment, "live_bytes") >= 16 * MIB);
            assert_true(value(moment, "allocator_bytes") >= 16 * MIB);
            assert_true(value(moment, "unexplained_bytes") < MIB / 4);
        }
        assert_true(ended);
        recording_free(&bare);
    }
}

/* Blocks are written after they were allocated, and after the first free: RSS at the peak has them. */
static void test_peak(void **state)
{
    at_end();
    static const struct {
        const char *what;
        int64_t live, slack; /* small steps are not read if that takes too much of the time */
    } runs[] = {{"one", 200 * MIB, 0}, {"buffers", 80 * MIB, 0}, {"many", 100 * MIB, 20 * MIB}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct recording one = record_and_load((const char *const[]){program_path("ledger"), runs[i].what, NULL}, NULL);
        assert_exit(&one.run, 0, runs[i].what);
        const json_t *peak = at_moment(one.report, "peak");
        const int64_t less = runs[i].live - value(peak, "live_bytes");
        assert_about(runs[i].what, runs[i].live, runs[i].live - less, runs[i].slack + (64 << 10));
        /* Where the last reading was before the peak, a block may have been live and not yet written. */
        assert_about(runs[i].what, atoll(strstr(one.run.out, "rss ") + 4) - less, value(peak, "rss_bytes"),
                     less < MIB ? MIB : 2 * MIB);
        struct run_result text =
            heapwise((const char *const[]){"report", "--section", "memory", one.files[0], NULL}, NULL);
        assert_exit(&text, 0, "report");
        assert_lacks(text.out, "Not in memory");
        assert_contains(text.out, less < MIB ? "at the peak" : "were live; the peak is");
        if (less < MIB)
            assert_lacks(text.out, "the peak is");
        run_result_free(&text);
        recording_free(&one);
    }
}

/* What is not resident may have been written, and given back. */
static void test_given_back(void **state)
{
    at_end();
    struct recording given = record_and_load((const char *const[]){program_path("ledger"), "given", NULL}, NULL);
    assert_exit(&given.run, 0, "given");
    struct run_result text =
        heapwise((const char *const[]){"report", "--section", "memory", given.files[0], NULL}, NULL);
    assert_exit(&text, 0, "report");
    assert_contains(text.out, "Not in memory: not written yet, or released");
    assert_contains(text.out, "not written until then, or released (madvise)");
    assert_lacks(text.out, "touched");
    assert_int_equal(value(at_moment(given.report, "end"), "rss_bytes") / MIB, 12);
    run_result_free(&text);
    recording_free(&given);
}

/* The report of a forked child says where blocks from before the fork are. */
static void test_forked(void **state)
{
    at_end();
    struct recording forked = record_and_load((const char *const[]){program_path("ledger"), "forked", NULL}, NULL);
    assert_exit(&forked.run, 0, "forked");
    assert_int_equal(forked.file_count, 2);
    size_t says = 0;
    for (size_t i = 0; i < 2; i++) {
        struct run_result text =
            heapwise((const char *const[]){"report", "--section", "memory", forked.files[i], NULL}, NULL);
        assert_exit(&text, 0, "report");
        says += strstr(text.out, "5.0 MiB of them then") != NULL;
        run_result_free(&text);
    }
    assert_int_equal(says, 1);
    recording_free(&forked);
}

/* What the program ledger does with WHAT alone is the recording for now: the one before, to be put back. */
static struct recording record_only(const char *what)
{
    const struct recording before = recording;
    at_end();
    recording = record_and_load((const char *const[]){program_path("ledger"), what, NULL}, NULL);
    assert_exit(&recording.run, 0, what);
    return before;
}

/* A block of the allocator's stays that when the kernel divides its mapping. */
static void test_divided(void **state)
{
    const struct recording before = record_only("divided");
    assert_about("the allocator's", 16 * MIB, resident("allocator", NULL), MIB / 4);
    assert_true(resident("unknown", NULL) < MIB / 4);
    recording_free(&recording);
    recording = before;
}

static void test_moved_and_kept(void **state)
{
    const struct recording before = record_only("twice");
    if (!strstr(recording.run.out, "not supported")) /* by the kernel */
        assert_int_equal(resident("mapped", "map_twice"), 6 * MIB);
    assert_true(resident("unknown", NULL) < MIB / 4);
    recording_free(&recording);
    recording = before;
}

/* Private pages of a file without a name are not shared. */
static void test_private_copy(void **state)
{
    const struct recording before = record_only("copy");
    assert_int_equal(resident("shared", NULL), 0);
    assert_int_equal(resident("file", "map_own_copy"), 6 * MIB);
    recording_free(&recording);
    recording = before;
}

/* Calls of mmap by FUNCTION itself, in `mappings`; *MAPPED: bytes that are mapped in the end. */
static int64_t calls_of(const char *function, int64_t *mapped)
{
    size_t i;
    int64_t calls = 0;
    json_t *mapping;
    *mapped = 0;
    json_array_foreach(json_object_get(recording.report, "mappings"), i, mapping)
    {
        const json_t *stack = json_object_get(mapping, "stack");
        const char *name = NULL; /* the first but the one that all share */
        for (size_t k = 0; k < json_array_size(stack) && (!name || !strcmp(name, "map")); k++)
            name = json_string_value(json_object_get(json_array_get(stack, k), "function"));
        if (!name || strcmp(name, function) != 0)
            continue;
        calls += value(mapping, "calls");
        *mapped += value(mapping, "mapped_bytes");
    }
    return calls;
}

/* Threads, a signal handler and forked children map at the same time: every call of a thread is counted, and nothing is
 * left. What a handler does in the middle of a call may not be counted. */
static void test_storm(void **state)
{
    at_end();
    const struct recording before = recording;
    recording = record_and_load((const char *const[]){program_path("mapping_storm"), NULL}, NULL);
    assert_exit(&recording.run, 0, "mapping_storm");
    long of_main, of_other, of_handler;
    int64_t mapped;
    assert_int_equal(sscanf(recording.run.out, "main %ld other %ld handler %ld", &of_main, &of_other, &of_handler), 3);
    assert_int_equal(calls_of("pair_of_main", &mapped), of_main);
    assert_int_equal(mapped, 0);
    assert_int_equal(calls_of("pair_of_other", &mapped), 2 * of_other);
    assert_int_equal(mapped, 0);
    assert_true(calls_of("pair_of_handler", &mapped) <= of_handler);
    assert_int_equal(mapped, 0);
    assert_int_equal(resident("mapped", "map_and_stay"), 8 * MIB);
    recording_free(&recording);
    recording = record_and_load((const char *const[]){program_path("mapping_storm"), "jump", NULL}, NULL);
    assert_exit(&recording.run, 0, "mapping_storm jump");
    assert_int_equal(resident("mapped", "map_and_stay"), 8 * MIB);
    recording_free(&recording);
    recording = before;
}

TEST_LIST_WITH(record_once, forget, cmocka_unit_test(test_mapped_by_stack), cmocka_unit_test(test_sums),
               cmocka_unit_test(test_heap_and_stacks), cmocka_unit_test(test_mappings), cmocka_unit_test(test_text),
               cmocka_unit_test(test_sqlite), cmocka_unit_test(test_neighbours), cmocka_unit_test(test_bare_calls),
               cmocka_unit_test(test_peak), cmocka_unit_test(test_given_back), cmocka_unit_test(test_divided),
               cmocka_unit_test(test_moved_and_kept), cmocka_unit_test(test_private_copy),
               cmocka_unit_test(test_forked), cmocka_unit_test(test_storm))
