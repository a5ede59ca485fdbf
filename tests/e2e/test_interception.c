/* test_interception.c - every allocation function is counted exactly and behaves as if nobody watched. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

/* What a function of a program does, in all contexts that it is part of. */
struct expectation {
    const char *function;
    int64_t allocations, frees, reallocations, bytes; /* bytes -1: not known beforehand */
};

static void check_expectations(const json_t *report, const struct expectation *expectations, size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct expectation *expected = &expectations[i];
        struct sums sums = report_sums(report, expected->function);
        if (sums.allocations != expected->allocations || sums.frees != expected->frees ||
            sums.reallocations != expected->reallocations || (expected->bytes >= 0 && sums.bytes != expected->bytes)) {
            print_error("%s: allocations %lld (%lld), frees %lld (%lld), reallocations %lld (%lld), bytes %lld (%lld): "
                        "found (expected)\n",
                        expected->function, (long long)sums.allocations, (long long)expected->allocations,
                        (long long)sums.frees, (long long)expected->frees, (long long)sums.reallocations,
                        (long long)expected->reallocations, (long long)sums.bytes, (long long)expected->bytes);
            wrong++;
        }
    }
    if (wrong)
        fail_msg("%d functions are counted wrongly", wrong);
}

/* Runs PROGRAM plainly, under the counter, under Heapwise, and under both: the same output, the same totals. */
static struct recording compare_with_counter(const char *const argv[], const char *const *environment)
{
    struct run_options options = {.environment = environment};
    struct run_result plain = run(argv, &options);
    assert_exit(&plain, 0, "the program alone");

    struct counted counted = count_run(argv, &options);
    assert_exit(&counted.run, 0, "the program under the counter");

    struct record_options record = {.run = options};
    struct recording recording = record_and_load(argv, &record);
    assert_exit(&recording.run, 0, "the program under heapwise record");
    assert_string_equal(recording.run.out, plain.out);
    assert_totals_equal("against the counter in a run of its own", counted.processes[0].totals,
                        report_totals(recording.report));
    assert_contexts_sum_to_totals(recording.report);
    counted_free(&counted);
    run_result_free(&plain);

    struct recording both = record_with_counter(argv, &record, &counted);
    assert_exit(&both.run, 0, "the program under heapwise record and the counter");
    assert_totals_equal("against the counter in the same run", counted_totals(&counted, both.report),
                        report_totals(both.report));
    counted_free(&counted);
    recording_free(&both);
    return recording;
}

static const struct expectation calls[] = {
    {"case_malloc", 100, 100, 0, 5050},
    {"case_malloc_zero", 2, 2, 0, 0},
    {"case_calloc", 20, 20, 0, 14000},
    {"case_calloc_zero", 2, 2, 0, 0},
    {"case_free_null", 2, 2, 0, 10 + (10 << 20)},
    {"case_overflow", 1, 1, 0, 33},
    {"case_failure", 1, 1, 0, 44},
    {"case_realloc_null", 1, 1, 0, 123},
    {"case_realloc_chain", 1, 1, 3, 100000},
    {"case_reallocarray", 1, 1, 1, 4000},
    {"case_memalign", 13, 13, 0, 13 * 24},
    {"case_aligned_alloc", 13, 13, 0, 2 * (131072 - 16)},
    {"case_posix_memalign", 2, 2, 0, 100},
    {"case_valloc", 1, 1, 0, 100},
    {"case_pvalloc", 1, 1, 0, 4096},
    {"case_cfree_family", 1, 1, 0, 1000},
    {"case_strdup", 2, 2, 0, 11 + 5},
    {"case_getline", 3, 3, 0, -1},
    {"case_sizes", 51, 51, 0, 3 * (2097152 - 16)},
};
#define CALLS (sizeof calls / sizeof *calls)

static void check_calls(const char *name)
{
    const char *program = need_program(name);
    const char *const argv[] = {program, NULL};
    struct recording recording = compare_with_counter(argv, NULL);
    check_expectations(recording.report, calls, CALLS);
    recording_free(&recording);
}

static void test_calls_gcc_O2(void **state)
{
    check_calls("calls");
}

static void test_calls_gcc_O0(void **state)
{
    check_calls("calls-O0");
}

static void test_calls_no_pie(void **state)
{
    check_calls("calls-no-pie");
}

static void test_calls_clang(void **state)
{
    check_calls("calls-clang");
}

static void test_calls_lazy_and_immediate_binding(void **state)
{
    const char *program = need_program("calls");
    /* lazy and immediate binding: the PLT of the program must lead to the hooks in both */
    static const char *const bindings[] = {"LD_BIND_NOW=1", "LD_BIND_NOW"};
    for (int i = 0; i < 2; i++) {
        const char *const environment[] = {bindings[i], NULL};
        const char *const argv[] = {program, NULL};
        struct recording recording = record_and_load(argv, &(struct record_options){.run.environment = environment});
        assert_exit(&recording.run, 0, bindings[i]);
        check_expectations(recording.report, calls, CALLS);
        recording_free(&recording);
    }
}

static void test_sizes_of_blocks(void **state)
{
    const char *program = need_program("calls");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    const json_t *context = only_context(recording.report, "case_malloc");
    assert_int_equal(json_number(context, "size.min"), 1);
    assert_int_equal(json_number(context, "size.max"), 100);
    assert_int_equal(json_number(context, "live_allocations"), 0);
    assert_int_equal(json_number(context, "live_bytes"), 0);
    assert_int_equal(json_number(context, "temporary"), 100);
    assert_int_equal(report_sums(recording.report, "case_malloc_zero").size_max, 0);
    context = only_context(recording.report, "case_realloc_chain");
    assert_int_equal(json_number(context, "temporary"), 0); /* a reallocation came between */
    recording_free(&recording);
}

/* 5 GiB and more, never touched: sizes are exact, above 32 bits. */
static void test_more_than_4_gib(void **state)
{
    const char *program = need_program("calls");
    const char *const argv[] = {program, "huge", NULL};
    struct run_result plain = run(argv, NULL);
    assert_exit(&plain, 0, "the program alone");
    if (!strstr(plain.out, "huge: done"))
        SKIP("5 GiB of address space cannot be had here");
    run_result_free(&plain);
    struct recording recording = record_and_load(argv, NULL);
    assert_exit(&recording.run, 0, "calls huge");
    const int64_t five = (int64_t)5 << 30;
    struct sums sums = report_sums(recording.report, "case_huge");
    assert_int_equal(sums.allocations, 2);
    assert_int_equal(sums.frees, 2);
    assert_int_equal(sums.reallocations, 1);
    assert_true(sums.bytes == five + 4096 + five + 16);
    assert_true(sums.size_max >= five + 16);
    assert_true(sums.live_bytes == 0);
    assert_true(report_totals(recording.report).peak_bytes >= five + 4096);
    assert_true(report_totals(recording.report).peak_bytes < five + 4096 + (1 << 20));
    recording_free(&recording);
}

static const struct expectation forms[] = {
    {"form_plain", 1, 1, 0, 100},
    {"form_array", 1, 1, 0, 200},
    {"form_nothrow", 1, 1, 0, 300},
    {"form_array_nothrow", 1, 1, 0, 400},
    {"form_aligned", 1, 1, 0, 500},
    {"form_array_aligned", 1, 1, 0, 1024},
    {"form_aligned_nothrow", 1, 1, 0, 128},
    {"form_array_aligned_nothrow", 1, 1, 0, 192},
    {"form_sized", 2, 2, 0, 168},
    {"form_sized_aligned", 2, 2, 0, 192},
    {"form_null", 0, 0, 0, 0},
    {"form_zero", 2, 2, 0, -1},
    {"form_constructor_throws", 2, 2, 0, -1}, /* the object and the exception */
    {"form_mixed_with_library", 12, 12, 0, 4 * 2047 + 1001},
    {"form_live", 10, 0, 0, 10000},
};

/* No counter can be preloaded into these. */
static void check_static(const char *name, const struct expectation *expectations, size_t count)
{
    const char *const argv[] = {need_program(name), NULL};
    struct run_result plain = run(argv, NULL);
    assert_exit(&plain, 0, "the program alone");
    struct recording recording = record_and_load(argv, &(struct record_options){.may_fail = true});
    if (strstr(recording.run.err, "no permission to trace"))
        SKIP("processes cannot be traced here");
    assert_exit(&recording.run, 0, "the program under heapwise record");
    assert_string_equal(recording.run.out, plain.out);
    check_expectations(recording.report, expectations, count);
    assert_contexts_sum_to_totals(recording.report);
    recording_free(&recording);
    run_result_free(&plain);
}

static void test_calls_static(void **state)
{
    check_static("calls-static", calls, CALLS);
    check_static("calls-static-pie", calls, CALLS);
}

static void check_new(const char *name)
{
    const char *program = need_program(name);
    const char *const argv[] = {program, NULL};
    struct run_result plain = run(argv, NULL);
    assert_exit(&plain, 0, "the program alone");
    struct counted counted;
    struct recording recording = record_with_counter(argv, NULL, &counted);
    assert_exit(&recording.run, 0, "the program under heapwise record");
    assert_string_equal(recording.run.out, plain.out);
    /* operator new(0) asks malloc for 1 byte: what was requested is 0. */
    struct totals totals = report_totals(recording.report), other = counted_totals(&counted, recording.report);
    int64_t difference = other.bytes - totals.bytes;
    if (difference == 2) {
        other.bytes -= difference;
    }
    assert_totals_equal("against the counter in the same run", other, totals);
    assert_contexts_sum_to_totals(recording.report);
    struct expectation here[sizeof forms / sizeof *forms];
    memcpy(here, forms, sizeof forms);
    if (strstr(name, "static")) /* the operator is not seen, only what it asks for */
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            here[i].bytes = strcmp(here[i].function, "form_aligned") ? here[i].bytes : 512;
    check_expectations(recording.report, here, sizeof forms / sizeof *forms);
    struct sums handler = report_sums(recording.report, "form_handler");
    assert_true(handler.allocations >= 3); /* the handler's own, and the exception */
    recording_free(&recording);
    counted_free(&counted);
    run_result_free(&plain);
}

static void test_operator_new_gcc(void **state)
{
    check_new("new");
}

static void test_operator_new_clang(void **state)
{
    check_new("new-clang");
}

static void test_operator_new_static_libstdcxx(void **state)
{
    check_new("new-static-libstdc++");
}

/* The hooks' own frames are never shown. */
static void test_own_frames_are_hidden(void **state)
{
    const char *program = need_program("new");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, NULL);
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(recording.report, "contexts"), index, context)
    {
        for (size_t i = 0; i < stack_depth(context); i++) {
            const json_t *frame = json_array_get(json_object_get(context, "stack"), i);
            assert_null(strstr(json_text(frame, "module"), "libheapwise"));
        }
    }
    const json_t *plain = only_context(recording.report, "form_plain");
    assert_string_equal(stack_function(plain, 0), "form_plain");
    recording_free(&recording);
}

static void test_foreign_blocks(void **state)
{
    const char *program = program_path("foreign"), *library = program_path("libdeepbind.so");
    if (!program || !library)
        SKIP("foreign was not built");
    const char *const argv[] = {program, library, NULL};
    struct recording recording = record_and_load(argv, NULL);
    assert_exit(&recording.run, 0, "foreign");
    const struct expectation expectations[] = {
        {"case_foreign_free", 0, 0, 0, 0},
        {"case_known", 500, 250, 0, 50000},
    };
    check_expectations(recording.report, expectations, sizeof expectations / sizeof *expectations);
    /* Of the vanished blocks nothing may stay live, nor be counted below zero. */
    struct sums vanishing = report_sums(recording.report, "case_vanishing");
    assert_int_equal(vanishing.allocations, 200);
    assert_true(vanishing.live_allocations >= 0 && vanishing.live_allocations <= 1);
    assert_true(vanishing.live_bytes >= 0 && vanishing.live_bytes <= 64);
    assert_contexts_sum_to_totals(recording.report);
    recording_free(&recording);
}

static void test_canonical_plt_entries(void **state)
{
    const char *program = need_program("canonical");
    const char *const argv[] = {program, NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.run.timeout_s = 20});
    assert_exit(&recording.run, 0, "canonical");
    static const struct expectation expected = {"canonical_work", 100, 100, 100, 20000};
    check_expectations(recording.report, &expected, 1);
    assert_contains(json_text(recording.report, "process.allocator"), "glibc");
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_canonical_plt_entries), cmocka_unit_test(test_calls_gcc_O2),
          cmocka_unit_test(test_calls_gcc_O0), cmocka_unit_test(test_calls_no_pie), cmocka_unit_test(test_calls_clang),
          cmocka_unit_test(test_calls_static),
          cmocka_unit_test(test_calls_lazy_and_immediate_binding), cmocka_unit_test(test_sizes_of_blocks),
          cmocka_unit_test(test_more_than_4_gib), cmocka_unit_test(test_operator_new_gcc),
          cmocka_unit_test(test_operator_new_clang), cmocka_unit_test(test_operator_new_static_libstdcxx),
          cmocka_unit_test(test_own_frames_are_hidden), cmocka_unit_test(test_foreign_blocks))
