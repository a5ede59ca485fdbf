/* test_requests.c - pools that programs announce to Valgrind, recorded by --valgrind-requests, and those of
 * heapwise/annotations.h: what programs/requests.c and annotations.c say that they do. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

static const char *const observed[] = {"--valgrind-requests", NULL};
static const char *const answered[] = {"--valgrind-requests=answer", NULL};

/* All blocks of FUNCTION, which are a pool's. Loops are unrolled: it may have several contexts. */
static void expect(const json_t *report, const char *function, int64_t allocations, int64_t frees,
                   int64_t reallocations, int64_t bytes)
{
    const struct sums sums = report_sums(report, function);
    size_t index;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (is_function(stack_function(context, 0), function))
            assert_true(json_is_true(json_object_get(context, "pool")));
    }
    if (sums.allocations != allocations || sums.frees != frees || sums.reallocations != reallocations ||
        sums.bytes != bytes || sums.live_allocations != allocations - frees)
        fail_msg("%s: %lld allocations, %lld frees, %lld reallocations, %lld bytes, %lld live; expected %lld, %lld, "
                 "%lld, %lld",
                 function, (long long)sums.allocations, (long long)sums.frees, (long long)sums.reallocations,
                 (long long)sums.bytes, (long long)sums.live_allocations, (long long)allocations, (long long)frees,
                 (long long)reallocations, (long long)bytes);
}

static struct recording record_program(const char *name, const char *argument, const char *second,
                                       const char *const *arguments)
{
    const char *const argv[] = {need_program(name), argument, second, NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    assert_exit(&recording.run, 0, name);
    assert_string_equal(recording.run.out, "done\n");
    return recording;
}

static void check_pools(const json_t *report)
{
    expect(report, "arena_block", 100, 81, 0, 12800);
    expect(report, "changed_block", 10, 4, 10, 640 + 320);
    expect(report, "moved_block", 100, 3, 0, 3200);
    expect(report, "renamed_block", 15, 15, 0, 750);
    expect(report, "custom_block", 50, 45, 10, 2000 + 160);
    expect(report, "super_block", 1, 1, 0, 1024);
    expect(report, "inside_block", 10, 8, 0, 1000);
    assert_false(report_says(report, "were lost"));
}

static void check_program(const char *name)
{
    const char *library = need_program("librequests.so");
    struct recording recording = record_program(name, library, NULL, observed);
    const json_t *report = recording.report;
    check_pools(report);
    expect(report, "thread_block", 80000, 80000, 0, 1280000);
    expect(report, "thread_custom_block", 80000, 80000, 0, 1920000);
    expect(report, "state_block", 1000, 999, 0, 48000);
    expect(report, "constructor_block", 6, 6, 0, 96);
    expect(report, "library_thread_block", 10, 10, 0, 160);
    expect(report, "library_block", 8, 8, 0, 256);
    assert_true(json_number(report, "totals.bytes_allocated") < 1 << 20);
    assert_int_equal(recording.file_count, 2);
    expect(recording.reports[1], "child_block", 10, 0, 0, 160);
    recording_free(&recording);
}

static void test_gcc(void **state)
{
    check_program("requests");
}

static void test_gcc_O0(void **state)
{
    check_program("requests-O0");
}

static void test_no_pie(void **state)
{
    check_program("requests-no-pie");
}

static void test_clang(void **state)
{
    check_program("requests-clang");
}

static void test_clang_O0(void **state)
{
    check_program("requests-clang-O0");
}

/* The stack is that of the request, and nothing of Heapwise is in it. */
static void test_stack(void **state)
{
    struct recording recording = record_program("requests-O0", "pools", NULL, observed);
    assert_non_null(strstr(stack_line(only_context(recording.report, "moved_block")), "moved_block < moves < main"));
    recording_free(&recording);
}

/* Without the option nothing is redirected; with it, only those who ask are answered. */
static void test_options(void **state)
{
    struct recording recording = record_program("requests", "pools", "ask", NULL);
    assert_int_equal(report_sums(recording.report, "arena_block").allocations, 0);
    assert_int_equal(report_sums(recording.report, "asked_block").allocations, 0);
    recording_free(&recording);

    recording = record_program("requests", "pools", "ask", observed);
    check_pools(recording.report);
    expect(recording.report, "asked_block", 0, 0, 0, 0);
    assert_true(report_says(recording.report, "asked whether it runs under Valgrind"));
    recording_free(&recording);

    recording = record_program("requests", "pools", "ask", answered);
    check_pools(recording.report);
    expect(recording.report, "asked_block", 1, 0, 0, 24);
    assert_false(report_says(recording.report, "asked whether"));
    recording_free(&recording);

    const char *const argv[] = {need_program("hello"), NULL};
    recording = record_and_load(argv, &(struct record_options){.arguments = observed});
    assert_true(report_says(recording.report, "no requests to Valgrind"));
    recording_free(&recording);

    const char *const sampled[] = {"record", "--valgrind-requests", "--sample-bytes=1M", "--", argv[0], NULL};
    struct run_result refused = heapwise(sampled, NULL);
    assert_int_equal(refused.code, 125);
    assert_contains(refused.err, "--valgrind-requests cannot be combined with --sample-bytes");
    run_result_free(&refused);
}

/* Requests are in a library alone, which comes later. */
static void test_library_alone(void **state)
{
    struct recording recording = record_program("loads", need_program("librequests.so"), NULL, observed);
    expect(recording.report, "constructor_block", 3, 3, 0, 48);
    expect(recording.report, "library_thread_block", 5, 5, 0, 80);
    expect(recording.report, "library_block", 1, 1, 0, 32);
    assert_false(report_says(recording.report, "no requests to Valgrind"));
    recording_free(&recording);
}

/* A number with commas between thousands; *TEXT: behind it. */
static int64_t read_number(const char **text)
{
    int64_t number = 0;
    for (; (**text >= '0' && **text <= '9') || **text == ','; ++*text)
        number = **text == ',' ? number : number * 10 + (**text - '0');
    return number;
}

/* What memcheck has counted. False: it cannot run PROGRAM. */
static bool run_valgrind(const char *program, const char *argument, int64_t *blocks, int64_t *bytes)
{
    const char *const argv[] = {"valgrind", "--leak-check=no", program, argument, NULL};
    struct run_result result = run(argv, NULL);
    const char *usage = strstr(result.err, "total heap usage: "), *frees = usage ? strstr(usage, " frees, ") : NULL;
    const bool done = result.code == 0 && frees;
    if (done) {
        usage += strlen("total heap usage: ");
        frees += strlen(" frees, ");
        *blocks = read_number(&usage);
        *bytes = read_number(&frees);
    }
    run_result_free(&result);
    return done;
}

/* Valgrind's own count of the same program: it has all blocks in one sum, but not what they grow by. */
static void test_as_valgrind_counts(void **state)
{
    static const char *const places[] = {"arena_block", "changed_block", "moved_block",  "custom_block",
                                         "super_block", "inside_block",  "renamed_block"};
    const char *program = need_program("requests");
    int64_t blocks, bytes, other_blocks, other_bytes;
    if (!run_valgrind(program, "pools", &blocks, &bytes) ||
        !run_valgrind(program, "nothing", &other_blocks, &other_bytes))
        SKIP("valgrind cannot run this program here");
    struct recording recording = record_program("requests", "pools", NULL, observed);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        blocks -= report_sums(recording.report, places[i]).allocations;
        bytes -= report_sums(recording.report, places[i]).bytes;
    }
    assert_int_equal(blocks - other_blocks, 1); /* the arena's memory */
    assert_int_equal(bytes - other_bytes, 12800 - 320 - 160);
    recording_free(&recording);
}

static void test_annotations(void **state)
{
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {need_program(i ? "annotations-cxx" : "annotations"), NULL};
        struct recording recording = record_and_load(argv, NULL);
        assert_exit(&recording.run, 0, argv[0]);
        assert_string_equal(recording.run.out, "1\n");
        expect(recording.report, "pool_block", 60, 60, 1, 60 * 48 + 8);
        expect(recording.report, "super_block", 1, 1, 0, 640);
        expect(recording.report, "malloclike_block", 30, 15, 1, 30 * 40 + 10);
        expect(recording.report, "region", 100, 50, 0, 3000);
        recording_free(&recording);
        struct run_result alone = run(argv, NULL);
        assert_exit(&alone, 0, argv[0]);
        assert_string_equal(alone.out, "0\n");
        run_result_free(&alone);
    }
}

TEST_LIST(cmocka_unit_test(test_gcc), cmocka_unit_test(test_gcc_O0), cmocka_unit_test(test_no_pie),
          cmocka_unit_test(test_clang), cmocka_unit_test(test_clang_O0), cmocka_unit_test(test_stack),
          cmocka_unit_test(test_options), cmocka_unit_test(test_library_alone),
          cmocka_unit_test(test_as_valgrind_counts), cmocka_unit_test(test_annotations))
