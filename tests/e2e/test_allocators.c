/* test_allocators.c - the same known workload on every allocator: preloaded, linked dynamically, linked statically. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct known {
    const char *function;
    int64_t allocations, frees, reallocations, bytes, live_bytes; /* bytes -1: depends on the random sizes */
};

static const struct known single[] = {
    {"work_realloc", 1000, 500, 9000, 1000000, 500000},
    {"work_calloc", 300, 300, 0, 300000, 0},
    {"work_aligned", 300, 300, 0, 85600, 0},
    {"work_large", 20, 20, 0, 20ll * (3 << 20), 0},
    {"work_failing", 0, 0, 0, 0, 0},
};

/* The bytes of work_churn with SEED: the program's own generator. */
static int64_t churn_bytes(uint32_t seed)
{
    int64_t bytes = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes += 16 + (seed >> 8) % 2048;
    }
    return bytes;
}

static void check_workload(const char *program, const char *preload, const char *allocator, bool threads)
{
    char variable[1024];
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload ? preload : "");
    const char *const environment[] = {preload ? variable : NULL, NULL};
    const char *const argv[] = {program, threads ? "threads" : NULL, NULL};
    struct run_result plain = run(argv, &(struct run_options){.environment = environment});
    assert_exit(&plain, 0, "the program alone");
    run_result_free(&plain);

    struct recording recording = record_and_load(argv, &(struct record_options){.run.environment = environment});
    assert_exit(&recording.run, 0, "the program under heapwise record");
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        const struct known *known = &single[i];
        struct totals expected = {
            .allocations = known->allocations,
            .frees = known->frees,
            .reallocations = known->reallocations,
            .bytes = known->bytes,
            .live_allocations = known->allocations - known->frees,
            .live_bytes = known->live_bytes,
        };
        assert_function_totals(recording.report, known->function, expected);
    }
    struct sums churn = report_sums(recording.report, "work_churn");
    int rounds = threads ? 3 : 1;
    assert_int_equal(churn.allocations, rounds * 20000);
    assert_int_equal(churn.frees, rounds * 20000);
    int64_t bytes = churn_bytes(1) + (threads ? churn_bytes(2) + churn_bytes(3) : 0);
    assert_int_equal(churn.bytes, bytes);
    assert_int_equal(churn.live_bytes, 0);
    assert_contexts_sum_to_totals(recording.report);
    const char *name = json_text(recording.report, "process.allocator");
    /* one that is linked in may have no name that can be seen from inside */
    if (!strcasestr(name, allocator) && !strstr(name, "linked into the program"))
        fail_msg("the allocator is reported as \"%s\" instead of %s", name, allocator);
    /* Nothing beside the workload but what starting up takes. */
    struct totals totals = report_totals(recording.report);
    int64_t others = totals.allocations - churn.allocations - 1620;
    if (others < 0 || others > 200)
        fail_msg("%lld allocations beside those of the workload", (long long)others);
    recording_free(&recording);
}

static void check_linked(const char *name, const char *allocator)
{
    const char *program = program_path(name);
    if (!program)
        SKIP("%s was not built: the allocator is not installed", name);
    check_workload(program, NULL, allocator, false);
    check_workload(program, NULL, allocator, true);
}

static void check_preloaded(const char *library, const char *allocator)
{
    if (TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    const char *program = program_path("workload"), *path = program_path(library);
    if (!program || !path)
        SKIP("%s is not installed", library);
    check_workload(program, path, allocator, false);
    check_workload(program, path, allocator, true);
}

static void test_glibc(void **state)
{
    check_linked("workload", "glibc");
}

static void test_jemalloc_preloaded(void **state)
{
    check_preloaded("libjemalloc.so", "jemalloc");
}

static void test_tcmalloc_preloaded(void **state)
{
    check_preloaded("libtcmalloc.so", "tcmalloc");
}

static void test_mimalloc_preloaded(void **state)
{
    check_preloaded("libmimalloc.so", "mimalloc");
}

static void test_jemalloc_linked(void **state)
{
    check_linked("workload-jemalloc", "jemalloc");
}

static void test_tcmalloc_linked(void **state)
{
    check_linked("workload-tcmalloc", "tcmalloc");
}

static void test_mimalloc_linked(void **state)
{
    check_linked("workload-mimalloc", "mimalloc");
}

static void test_jemalloc_static(void **state)
{
    check_linked("workload-jemalloc-static", "jemalloc");
}

static void test_tcmalloc_static(void **state)
{
    check_linked("workload-tcmalloc-static", "tcmalloc");
}

TEST_LIST(cmocka_unit_test(test_glibc), cmocka_unit_test(test_jemalloc_preloaded),
          cmocka_unit_test(test_tcmalloc_preloaded), cmocka_unit_test(test_mimalloc_preloaded),
          cmocka_unit_test(test_jemalloc_linked), cmocka_unit_test(test_tcmalloc_linked),
          cmocka_unit_test(test_mimalloc_linked), cmocka_unit_test(test_jemalloc_static),
          cmocka_unit_test(test_tcmalloc_static))
