/* test_totals.c - what Heapwise counts is what one locked counter counts that is preloaded into the very same
 * processes: blocks, bytes, reallocations, frees and the peak, in all modes. docs/accuracy.md says what counts as what.
 */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct mode {
    const char *name, *options;
    bool allocator;
} modes[] = {
    {"heap", "mode=heap", false},
    {"heap, blocks in a table", "block-table=1", false},
    {"heap, contexts in a table", "table=64", false},
    {"allocator", "mode=allocator", true},
};
enum { MODES = sizeof modes / sizeof *modes };

/* One run that both count. The counter stands in front of the runtime, so that this sees the real allocator. */
struct both {
    struct run_result run;
    struct counted counted;
    size_t count;
    json_t **reports;
};

static struct both count_both(const char *const argv[], const char *options, const struct run_options *with)
{
    if (TEST_SANITIZED)
        SKIP("the counter cannot be preloaded into tools built with AddressSanitizer");
    struct both both = {0};
    char *directory = make_directory(), *texts[3] = {NULL};
    const char *environment[40] = {NULL};
    size_t used = 0;
    for (; with && with->environment && with->environment[used]; used++)
        environment[used] = with->environment[used];
    if (asprintf(&texts[0], "LD_PRELOAD=%s:%s", TEST_COUNTER, runtime_path()) < 0 ||
        asprintf(&texts[1], "HEAPWISE_TEST_COUNTER=%s", directory) < 0 ||
        asprintf(&texts[2], "HEAPWISE_OPTIONS=output=%s/%%e.%%p.%%n.hwprof:%s", directory, options) < 0)
        fail_msg("no memory");
    for (size_t i = 0; i < 3; i++)
        environment[used + i] = texts[i];
    struct run_options run_with = with ? *with : (struct run_options){0};
    run_with.environment = environment;
    both.run = run(argv, &run_with);
    assert_exit(&both.run, 0, run_describe(argv));
    both.counted = read_counters(directory);
    char **files = list_files(directory, ".hwprof", &both.count);
    both.reports = calloc(both.count + 1, sizeof *both.reports);
    for (size_t i = 0; i < both.count; i++)
        both.reports[i] = load_report(files[i], 0);
    if (!both.count)
        fail_msg("no profile: %s", run_describe(argv));
    free_list(files);
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    remove_directory(directory);
    return both;
}

static void both_free(struct both *both)
{
    for (size_t i = 0; i < both->count; i++)
        json_decref(both->reports[i]);
    free(both->reports);
    counted_free(&both->counted);
    run_result_free(&both->run);
}

/* Of the blocks of a parent allocator mode has the frees and reallocations in its numbers. */
static struct totals with_inherited(const struct counted_process *process, const json_t *report)
{
    struct totals totals = process->totals;
    totals.frees += process->foreign_frees;
    totals.reallocations += process->foreign_reallocations;
    totals.live_allocations += json_number(report, "totals.inherited.allocations") - process->foreign_frees;
    return totals;
}

/* The counter counts a block as soon as the allocator has returned it, Heapwise a moment later, and frees the other way
 * round: at the peak a thread may have its greatest block on the way. */
#define BLOCK_MOST 400000
static void allow_for_threads(const char *argument, const struct totals *expected, struct totals *found)
{
    const int64_t less = expected->peak_bytes - found->peak_bytes;
    if (argument && !strcmp(argument, "threads") && less > 0 && less <= BLOCK_MOST + expected->peak_bytes / 100)
        found->peak_bytes = expected->peak_bytes;
}

static void check_process(const char *what, const char *argument, const struct mode *mode,
                          const struct counted_process *process, const json_t *report)
{
    const bool forked = json_is_true(json_object_get(json_object_get(report, "process"), "forked"));
    struct totals expected = mode->allocator && forked ? with_inherited(process, report) : process->totals, found;
    if (!mode->allocator) {
        found = report_totals(report);
    } else {
        found = (struct totals){
            .allocations = json_number(report, "totals.allocations"),
            .frees = json_number(report, "totals.frees"),
            .reallocations = json_number(report, "totals.reallocations"),
            .temporary = expected.temporary,
            .bytes = json_number(report, "totals.bytes_allocated"),
            .live_allocations = json_number(report, "totals.live_allocations"),
            .live_bytes = json_number(report, "totals.live_bytes"),
            .peak_bytes = json_number(report, "totals.peak_bytes"),
        };
    }
    if (forked) { /* of blocks whose size the counter does not know */
        found.peak_bytes = expected.peak_bytes;
        found.bytes = mode->allocator && process->foreign_reallocations ? expected.bytes : found.bytes;
        found.live_bytes = mode->allocator ? expected.live_bytes : found.live_bytes;
    }
    allow_for_threads(argument, &expected, &found);
    char name[300];
    snprintf(name, sizeof name, "%s, %s, %.100s", what, mode->name, process->executable);
    assert_totals_equal(name, expected, found);
}

/* All processes of ARGV that both saw, in all modes. */
static void check_program(const char *const argv[], const struct run_options *run)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    if (!argv[0] || (*argv[0] != '/' && !have_command(argv[0])))
        SKIP("%s is not there", argv[0] ? argv[0] : "the program");
    for (size_t i = 0; i < MODES; i++) {
        struct both both = count_both(argv, modes[i].options, run);
        for (size_t k = 0; k < both.count; k++)
            check_process(argv[0], argv[1], &modes[i], counted_process(&both.counted, both.reports[k]), both.reports[k]);
        both_free(&both);
    }
}

static void test_lua(void **state)
{
    check_program(ARGV("lua5.4", "-e",
                       "local function t(d) if d == 0 then return {} end return {t(d - 1), t(d - 1)} end "
                       "local x = t(14); local s = ''; for i = 1, 500 do s = s .. i end print(#s)"),
                  NULL);
}

static void test_perl(void **state)
{
    check_program(ARGV("perl", "-e",
                       "my %h; $h{$_} = [1..$_ % 20] for 1..5000; my $s = ''; $s .= \"line $_\\n\" for 1..20000; "
                       "my @w = split /\\n/, $s; print scalar(@w), \"\\n\""),
                  NULL);
}

static void test_sqlite(void **state)
{
    const struct run_options run = {
        .input = "CREATE TABLE t(a, b); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) "
                 "INSERT INTO t SELECT x, hex(x * 7919) FROM n; CREATE INDEX i ON t(b); "
                 "SELECT group_concat(b) FROM (SELECT b FROM t ORDER BY b LIMIT 500);\n"};
    check_program(ARGV("sqlite3", ":memory:"), &run);
}

static void test_jq(void **state)
{
    check_program(ARGV("jq", "-n", "[range(5000) | {a: ., b: (. * 7 | tostring)}] | map(.b) | join(\",\") | length"),
                  NULL);
}

static void test_git(void **state)
{
    char *directory = make_directory();
    const char *const environment[] = {"GIT_AUTHOR_NAME=a",
                                       "GIT_AUTHOR_EMAIL=a@example.org",
                                       "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z",
                                       "GIT_COMMITTER_NAME=a",
                                       "GIT_COMMITTER_EMAIL=a@example.org",
                                       "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z",
                                       "GIT_CONFIG_NOSYSTEM=1",
                                       "GIT_CONFIG_GLOBAL=/dev/null",
                                       "GIT_PAGER=cat",
                                       "GIT_DIR",
                                       "GIT_WORK_TREE",
                                       "GIT_INDEX_FILE",
                                       NULL};
    const struct run_options options = {.environment = environment, .directory = directory};
    if (have_command("git")) {
        struct run_result made = run(ARGV("sh", "-c",
                                          "git init -q -b main . && for i in 1 2 3 4; do seq $i 300 >f$i; git add f$i; "
                                          "git commit -q -m $i; done"),
                                     &options);
        assert_exit(&made, 0, "git commit");
        run_result_free(&made);
    }
    check_program(ARGV("git", "log", "-p", "--stat"), &options);
    remove_directory(directory);
}

/* Not named by anybody, with processes of their own and with threads. */
static void test_shell(void **state)
{
    check_program(ARGV("bash", "--norc", "-c",
                       "declare -A m; for i in {1..300}; do m[k$i]=$((i * i)); done; x=$(for i in {1..50}; do echo $i; "
                       "done); (m[a]=b; unset 'm[k7]'; echo ${#m[@]} ${#x})"),
                  NULL);
}

static void test_awk(void **state)
{
    check_program(ARGV("awk", "BEGIN { for (i = 0; i < 5000; i++) { a[i] = a[i - 1] % 100 \"x\" i; s = s a[i] } "
                              "print length(s) }"),
                  NULL);
}

static void test_xz(void **state)
{
    check_program(ARGV("xz", "-T2", "-1", "--block-size=64KiB", "--stdout", "/usr/bin/env"), NULL);
}

/* Behind the runtime, since operator new is the runtime's own: the counter sees what that asks for. */
static void test_cplusplus(void **state)
{
    const char *program = need_program("exceptions");
    for (size_t i = 0; i < MODES; i++) {
        struct counted counted;
        struct recording recording =
            record_with_counter(ARGV(program), &(struct record_options){.options = modes[i].options}, &counted);
        check_process(program, NULL, &modes[i], counted_process(&counted, recording.report), recording.report);
        counted_free(&counted);
        recording_free(&recording);
    }
}

static void test_reallocations(void **state)
{
    const char *program = need_program("totals");
    check_program(ARGV(program), NULL);
    check_program(ARGV(program, "null"), NULL);
    check_program(ARGV(program, "grow"), NULL);
}

static void test_threads(void **state)
{
    const char *program = need_program("totals");
    check_program(ARGV(program, "threads"), NULL);
}

/* Known without any counter. */
static void test_realloc_of_null(void **state)
{
    const char *program = need_program("totals");
    for (size_t i = 0; i < MODES; i++) {
        struct recording recording =
            record_and_load(ARGV(program, "null"), &(struct record_options){.options = modes[i].options});
        assert_int_equal(json_number(recording.report, "totals.allocations"), 10000);
        assert_int_equal(json_number(recording.report, "totals.frees"), 10000);
        assert_int_equal(json_number(recording.report, "totals.reallocations"), 0);
        assert_int_equal(json_number(recording.report, "totals.bytes_allocated"), 1000000);
        assert_int_equal(json_number(recording.report, "totals.peak_bytes"), 100);
        recording_free(&recording);
    }
}

/* Under each allocator: the room of a block is that of its size, whatever the first one of that size was. */
static void test_small_blocks(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    static const char *const libraries[] = {NULL, "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char preload[300] = "LD_PRELOAD=";
        if (libraries[i])
            snprintf(preload, sizeof preload, "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/%s", libraries[i]);
        if (libraries[i] && (TEST_SANITIZED || access(strchr(preload, '/'), R_OK) != 0)) {
            LEAVE_OUT("%s is not there, or cannot be preloaded", libraries[i]);
            continue;
        }
        const char *const environment[] = {libraries[i] ? preload : NULL, NULL};
        for (size_t mode = 0; mode < MODES; mode++) {
            struct recording recording =
                record_and_load(ARGV(program, "small"), &(struct record_options){.options = modes[mode].options,
                                                                                 .run.environment = environment});
            const json_t *report = recording.report;
            /* the library may have some of its own, at its start */
            const int64_t own = json_number(report, "totals.allocations") - 8008;
            assert_in_range(own, 0, 10);
            assert_in_range(json_number(report, "totals.frees"), 8008, 8008 + own);
            assert_int_equal(json_number(report, "totals.reallocations"), 8000);
            assert_in_range(json_number(report, "totals.bytes_allocated"), 8 * 500000 + 36,
                            8 * 500000 + 36 + (own ? 80000 : 0));
            assert_int_equal(json_number(report, "totals.foreign_frees"), 0);
            assert_int_equal(json_number(report, "totals.foreign_reallocations"), 0);
            recording_free(&recording);
        }
    }
}

/* A wrapper behind the runtime, which has no malloc_usable_size: nobody asks libc how long its blocks are. */
static void test_wrapper(void **state)
{
    const char *program = program_path("totals"), *library = program_path("libwrapmalloc.so");
    if (TEST_SANITIZED) SKIP("the tools have AddressSanitizer's allocator");
    if (!program || !library) SKIP("totals or libwrapmalloc.so was not built");
    char preload[4200], *directory = make_directory(), *counting = join_path(directory, "counting"),
                        *source = join_path(TEST_SOURCES, "programs/totals.c");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    compile_or_skip(
        ARGV(heapwise_path(), "cc", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-w", "-pthread", "-o", counting, source),
        "totals");
    for (size_t i = 0; i <= MODES; i++) {
        const char *const environment[] = {preload, NULL};
        struct recording recording =
            record_and_load(ARGV(i < MODES ? program : counting, "contents"),
                            &(struct record_options){.options = i < MODES ? modes[i].options : "mode=heap",
                                                     .run.environment = environment});
        assert_exit(&recording.run, 0, i < MODES ? modes[i].name : "counting");
        assert_int_equal(json_number(recording.report, "totals.reallocations"), 2 * 41 * 11);
        assert_true(json_number(recording.report, "totals.allocations") >= 41 * 11);
        recording_free(&recording);
    }
    free(source);
    free(counting);
    remove_directory(directory);
}

static void test_failures(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    for (size_t i = 0; i < MODES; i++) {
        struct recording recording =
            record_and_load(ARGV(program, "failing"), &(struct record_options){.options = modes[i].options});
        assert_int_equal(json_number(recording.report, "totals.failed_allocations"), 60);
        recording_free(&recording);
    }
}

/* The forms of operator new: what was asked for, and each failure once; also where the allocator has operators of its
 * own, which are left by an exception. */
static void test_operators(void **state)
{
    const char *program = program_path("new");
    if (!program)
        SKIP("new was not built");
    static const char *const preloads[] = {NULL, "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
                                           "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"};
    for (size_t k = 0; k < sizeof preloads / sizeof *preloads; k++) {
        if (preloads[k] && (TEST_SANITIZED || access(strchr(preloads[k], '/'), R_OK) != 0)) {
            LEAVE_OUT("%s is not there, or cannot be preloaded", preloads[k]);
            continue;
        }
        const char *const environment[] = {preloads[k], NULL};
        int64_t first[4];
        for (size_t i = 0; i < MODES; i++) {
            struct recording recording = record_and_load(
                ARGV(program), &(struct record_options){.options = modes[i].options, .run.environment = environment});
            const int64_t now[4] = {json_number(recording.report, "totals.bytes_allocated"),
                                    json_number(recording.report, "totals.failed_allocations"),
                                    json_number(recording.report, "totals.frees"),
                                    json_number(recording.report, "totals.allocations")};
            assert_int_equal(json_number(recording.report, "totals.foreign_frees"), 0);
            for (size_t n = 0; n < 4; n++) {
                first[n] = i ? first[n] : now[n];
                if (!preloads[k] || (n > 0 && n < 3))
                    assert_int_equal(now[n], first[n]);
                else /* a block or two that the allocator takes from itself at its start */
                    assert_in_range(now[n] - first[n] + (n ? 2 : 100), 0, n ? 4 : 200);
            }
            assert_true(now[1] > 5);
            recording_free(&recording);
        }
    }
}

/* An operator new that never returns has failed, in each mode and under each allocator. */
static void test_last_operator(void **state)
{
    (void)state;
    static const char *const preloads[] = {NULL, "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
                                           "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"};
    static const char *const ends[] = {"ends", "uncaught"};
    const char *program = program_path("new");
    if (!program)
        SKIP("new was not built");
    for (size_t k = 0; k < sizeof preloads / sizeof *preloads; k++) {
        if (preloads[k] && (TEST_SANITIZED || access(strchr(preloads[k], '/'), R_OK) != 0)) {
            LEAVE_OUT("%s is not there, or cannot be preloaded", preloads[k]);
            continue;
        }
        const char *const environment[] = {preloads[k], NULL};
        for (size_t i = 0; i < MODES * 2; i++) {
            struct recording recording =
                record_and_load(ARGV(program, ends[i % 2]), &(struct record_options){.options = modes[i / 2].options,
                                                                                     .run.environment = environment});
            assert_exit(&recording.run, i % 2 ? 128 + SIGABRT : 3, ends[i % 2]);
            assert_int_equal(json_number(recording.report, "totals.failed_allocations"), 1);
            recording_free(&recording);
        }
    }
}

static void test_exchange(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    for (int round = 0; round < 3; round++) {
        struct recording recording =
            record_and_load(ARGV(program, "exchange"), &(struct record_options){.options = "mode=allocator"});
        assert_int_equal(json_number(recording.report, "totals.foreign_frees"), 0);
        assert_int_equal(json_number(recording.report, "totals.foreign_reallocations"), 0);
        assert_int_equal(json_number(recording.report, "totals.live_allocations"),
                         json_number(recording.report, "totals.allocations") -
                             json_number(recording.report, "totals.frees"));
        recording_free(&recording);
    }
}

/* Where it cannot be followed what lies where, numbers of calls are exact all the same; what reallocations added is not
 * known, and nobody says that it was. */
static void test_limited_address_space(void **state)
{
    const char *program = need_program("totals");
    char command[600];
    snprintf(command, sizeof command, "ulimit -v 4000000; exec %.500s grow", program);
    struct both both = count_both(ARGV("sh", "-c", command), "mode=allocator", NULL);
    const json_t *report = both.reports[0];
    for (size_t i = 0; i < both.count; i++)
        report = strstr(json_text(both.reports[i], "process.executable"), "totals") ? both.reports[i] : report;
    const struct totals expected = counted_totals(&both.counted, report);
    assert_int_equal(json_number(report, "totals.allocations"), expected.allocations);
    assert_int_equal(json_number(report, "totals.frees"), expected.frees);
    assert_int_equal(json_number(report, "totals.reallocations"), expected.reallocations);
    assert_true(json_number_or_none(report, "totals.bytes_allocated") == INT64_MIN);
    assert_true(report_says(report, "reallocations added"));
    both_free(&both);
}

/* A program that counts its accesses: blocks are laid out otherwise, the counter stands between it and the runtime. */
static void test_counted_accesses(void **state)
{
    char *directory = make_directory(), *program = join_path(directory, "totals"), *options;
    char *source = join_path(TEST_SOURCES, "programs/totals.c");
    const char *const build[] = {heapwise_path(), "cc", "-D_GNU_SOURCE", "-O1",  "-w", "-fno-builtin",
                                 "-pthread",      "-o", program,         source, NULL};
    if (TEST_SANITIZED)
        SKIP("the counter cannot be preloaded into tools built with AddressSanitizer");
    compile_or_skip(build, "heapwise cc");
    if (asprintf(&options, "HEAPWISE_OPTIONS=output=%s/%%p.hwprof", directory) < 0)
        fail_msg("no memory");
    const char *const environment[] = {options, NULL};
    static const char *const what[] = {"all", "null", "grow", "threads"};
    for (size_t i = 0; i < 4; i++) {
        size_t count;
        struct counted counted = count_run(ARGV(program, what[i]), &(struct run_options){.environment = environment});
        char **files = list_files(directory, ".hwprof", &count);
        assert_int_equal(count, 1);
        json_t *report = load_report(files[0], 0);
        assert_string_equal(json_text(report, "process.mode"), "access");
        const struct totals expected = counted_totals(&counted, report);
        struct totals found = report_totals(report);
        allow_for_threads(what[i], &expected, &found);
        assert_totals_equal(what[i], expected, found);
        json_decref(report);
        unlink(files[0]);
        free_list(files);
        counted_free(&counted);
    }
    free(options);
    free(source);
    free(program);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_lua), cmocka_unit_test(test_perl), cmocka_unit_test(test_sqlite),
          cmocka_unit_test(test_jq), cmocka_unit_test(test_git), cmocka_unit_test(test_shell),
          cmocka_unit_test(test_awk), cmocka_unit_test(test_xz), cmocka_unit_test(test_cplusplus),
          cmocka_unit_test(test_reallocations), cmocka_unit_test(test_threads), cmocka_unit_test(test_realloc_of_null),
          cmocka_unit_test(test_small_blocks), cmocka_unit_test(test_wrapper), cmocka_unit_test(test_failures),
          cmocka_unit_test(test_operators), cmocka_unit_test(test_last_operator), cmocka_unit_test(test_exchange),
          cmocka_unit_test(test_limited_address_space), cmocka_unit_test(test_counted_accesses))
