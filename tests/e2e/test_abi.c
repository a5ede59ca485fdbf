/* test_abi.c - what is counted for code that the plugin has not built: gcc's callbacks, objects of clang's own
 * -fmemory-profile in all four forms, and blocks of the program's own allocators. Expected numbers are those that stand
 * at the functions of programs/abi.c and programs/pools.c. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One run of a program that carries the runtime in itself: the profiles it left. */
struct finished {
    char *directory;
    struct run_result run;
    json_t *report;
};

static struct finished finish_with(const char *program, const char *const argv[], const char *options)
{
    struct finished finished = {.directory = make_directory()};
    char setting[600];
    snprintf(setting, sizeof setting, "HEAPWISE_OPTIONS=output=%s/%%e.hwprof%s%s", finished.directory,
             options ? ":" : "", options ? options : "");
    const char *const environment[] = {setting, "LD_PRELOAD", NULL};
    finished.run = run(argv, &(struct run_options){.environment = environment});
    assert_exit(&finished.run, 0, program);
    size_t count;
    char **files = list_files(finished.directory, ".hwprof", &count);
    for (size_t i = 0; i < count; i++)
        if (!strstr(files[i], ".dump"))
            finished.report = load_report(files[i], 0);
    free_list(files);
    assert_non_null(finished.report);
    return finished;
}

static struct finished finish(const char *program)
{
    const char *path = need_program(program);
    const char *const argv[] = {path, NULL};
    return finish_with(program, argv, NULL);
}

static void forget(struct finished *finished)
{
    json_decref(finished->report);
    run_result_free(&finished->run);
    remove_directory(finished->directory);
}

/* The only context of blocks that FUNCTION has allocated. */
static void expect(const json_t *report, const char *function, int64_t reads, int64_t writes, int64_t unsplit)
{
    const json_t *context = only_context(report, function);
    int64_t found[3] = {json_number_or_none(context, "accesses.reads"), json_number_or_none(context, "accesses.writes"),
                        json_number_or_none(context, "accesses.unsplit")};
    for (int i = 0; i < 3; i++)
        found[i] = found[i] == INT64_MIN ? 0 : found[i];
    if (found[0] != reads || found[1] != writes || found[2] != unsplit)
        fail_msg("%s: reads %ld, writes %ld, unsplit %ld; expected %ld, %ld, %ld", function, found[0], found[1],
                 found[2], reads, writes, unsplit);
}

static void expect_total(const json_t *report, const char *function, int64_t total)
{
    const json_t *context = only_context(report, function);
    if (json_number(context, "accesses.total") != total)
        fail_msg("%s: %lld accesses, expected %ld", function, (long long)json_number(context, "accesses.total"), total);
}

/* ---- gcc ---- */

static void check_split(const json_t *report, bool structures_too)
{
    expect(report, "plain_block", 160, 80, 0);
    expect(report, "hot_block", 1000, 1000, 0);
    expect(report, "cold_block", 1, 0, 0);
    expect(report, "width_block", 4, 4, 0);
    expect(report, "crossing_block", 1, 1, 0);
    expect(report, "copy_source", 16, 16, 0);
    expect(report, "copy_target", 0, 16, 0);
    expect(report, "move_block", 15, 31, 0);
    if (structures_too) {
        expect(report, "struct_source", 3, 3, 0);
        expect(report, "struct_target", 0, 3, 0);
    }
    expect(report, "atomic_block", 44, 44, 0);
    expect(report, "thread_block", 400000, 400004, 0);
    expect(report, "shared_block", 400000, 0, 0);
    expect(report, "live_block", 10, 10, 0);
    const json_t *shared = only_context(report, "shared_block"), *plain = only_context(report, "plain_block");
    assert_int_equal(json_number(shared, "sharing.granules"), 1);
    assert_int_equal(json_number(shared, "sharing.written"), 0);
    assert_int_equal(json_number(plain, "sharing.granules"), 0);
    assert_int_equal(json_number(plain, "granules"), 10);
    assert_int_equal(json_number(plain, "granules_touched"), 10);
    assert_int_equal(json_number(only_context(report, "cold_block"), "granules_touched"), 1);
    assert_int_equal(json_number(only_context(report, "live_block"), "granules_touched"), 1);
}

static void check_gcc(const char *program)
{
    struct finished finished = finish(program);
    check_split(finished.report, true);
    expect(finished.report, "wide_block", 11, 11, 0);
    const json_t *access = json_object_get(json_object_get(finished.report, "process"), "access");
    assert_true(json_is_true(json_object_get(access, "callbacks")));
    forget(&finished);
}

static void test_gcc_O0(void **state)
{
    check_gcc("abi-gcc-O0");
}

static void test_gcc_O2(void **state)
{
    check_gcc("abi-gcc-O2");
}

static void test_gcc_no_pie(void **state)
{
    check_gcc("abi-gcc-no-pie");
}

static void test_gcc_needs_no_libtsan(void **state)
{
    const char *path = need_program("abi-gcc-O2");
    const char *const argv[] = {"ldd", path, NULL};
    struct run_result result = run(argv, NULL);
    assert_contains(result.out, "libheapwise.so");
    assert_lacks(result.out, "libtsan");
    assert_lacks(result.out, "libatomic");
    run_result_free(&result);
}

/* Words of 8 bytes: cells end at 255, and say so. */
static void test_gcc_granule_8(void **state)
{
    struct finished finished = finish("abi-gcc-8");
    expect(finished.report, "plain_block", 160, 80, 0);
    expect(finished.report, "width_block", 4, 4, 0);
    expect(finished.report, "copy_source", 128, 128, 0);
    expect(finished.report, "copy_target", 0, 128, 0);
    const json_t *hot = only_context(finished.report, "hot_block"),
                 *plain = only_context(finished.report, "plain_block");
    assert_int_equal(json_number(hot, "saturated_cells"), 2);
    assert_true(json_is_true(json_object_get(hot, "accesses_are_lower_bounds")));
    const json_t *histogram = json_object_get(plain, "histogram");
    assert_int_equal(json_array_size(histogram), 80);
    for (size_t i = 0; i < 80; i++)
        assert_int_equal(json_integer_value(json_array_get(histogram, i)), 3);
    forget(&finished);
}

/* ---- clang -fmemory-profile ---- */

/* Inline code tells nothing apart; the functions do. */
static void check_memprof_inline(const json_t *report)
{
    expect(report, "plain_block", 0, 0, 240);
    expect(report, "hot_block", 0, 0, 2000);
    expect(report, "cold_block", 0, 0, 1);
    expect(report, "width_block", 0, 0, 8);
    expect(report, "crossing_block", 0, 0, 2);
    expect(report, "copy_source", 16, 16, 0);
    expect(report, "copy_target", 0, 16, 0);
    expect(report, "move_block", 15, 31, 0);
    expect(report, "live_block", 0, 0, 20);
}

static void test_memprof(void **state)
{
    struct finished finished = finish("abi-memprof");
    check_memprof_inline(finished.report);
    forget(&finished);
}

static void test_memprof_linked_by_gcc(void **state)
{
    struct finished finished = finish("abi-memprof-gcc");
    check_memprof_inline(finished.report);
    forget(&finished);
}

/* Callbacks count exactly, also with threads. clang counts a read-modify-write once, as a store. */
static void test_memprof_callbacks(void **state)
{
    struct finished finished = finish("abi-memprof-callbacks");
    expect(finished.report, "plain_block", 160, 80, 0);
    expect(finished.report, "hot_block", 1000, 1000, 0);
    expect(finished.report, "thread_block", 400000, 400004, 0);
    expect(finished.report, "shared_block", 400000, 0, 0);
    expect(finished.report, "copy_source", 16, 16, 0);
    expect(finished.report, "copy_target", 0, 16, 0);
    expect(finished.report, "live_block", 10, 10, 0);
    forget(&finished);
}

static void test_memprof_histogram(void **state)
{
    struct finished finished = finish("abi-memprof-histogram");
    assert_int_equal(json_number(finished.report, "process.access.granule"), 8);
    expect(finished.report, "plain_block", 0, 0, 240);
    expect(finished.report, "copy_source", 128, 128, 0);
    expect_total(finished.report, "live_block", 20);
    const json_t *histogram = json_object_get(only_context(finished.report, "plain_block"), "histogram");
    assert_int_equal(json_array_size(histogram), 80);
    assert_int_equal(json_integer_value(json_array_get(histogram, 79)), 3);
    forget(&finished);
}

static void test_memprof_histogram_callbacks(void **state)
{
    struct finished finished = finish("abi-memprof-histogram-callbacks");
    assert_int_equal(json_number(finished.report, "process.access.granule"), 8);
    expect(finished.report, "plain_block", 160, 80, 0);
    expect(finished.report, "live_block", 10, 10, 0);
    forget(&finished);
}

/* The first counted access comes before any constructor. */
static void test_memprof_early(void **state)
{
    struct finished finished = finish("abi-memprof-early");
    expect(finished.report, "plain_block", 0, 0, 240);
    forget(&finished);
    finished = finish("abi-gcc-early");
    expect(finished.report, "plain_block", 160, 80, 0);
    forget(&finished);
}

/* Its own way to say where the profile goes, and its functions. */
static void test_memprof_output_and_dump(void **state)
{
    const char *path = need_program("abi-memprof");
    char *directory = make_directory(), *inner = join_path(directory, "memprof");
    assert_int_equal(mkdir(inner, 0777), 0);
    const char *const argv[] = {path, "dump", NULL};
    const char *const environment[] = {"HEAPWISE_OPTIONS", "LD_PRELOAD", NULL};
    struct run_result result = run(argv, &(struct run_options){.environment = environment, .directory = directory});
    assert_exit(&result, 0, path);
    assert_contains(result.err, "allocations");
    run_result_free(&result);
    size_t count;
    char **files = list_files(inner, ".hwprof", &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        json_t *report = load_report(files[i], 0);
        expect(report, "live_block", 0, 0, strstr(files[i], ".dump") ? 10 : 20);
        json_decref(report);
    }
    free_list(files);
    remove_directory(directory);
    free(inner);
}

/* ---- pools ---- */

static void expect_blocks(const json_t *report, const char *function, int64_t allocations, int64_t frees, int64_t bytes)
{
    const json_t *context = only_context(report, function);
    assert_true(json_is_true(json_object_get(context, "pool")));
    if (json_number(context, "allocations") != allocations || json_number(context, "frees") != frees ||
        json_number(context, "bytes") != bytes)
        fail_msg("%s: %lld allocations, %lld frees, %lld bytes; expected %ld, %ld, %ld", function,
                 (long long)json_number(context, "allocations"), (long long)json_number(context, "frees"),
                 (long long)json_number(context, "bytes"), allocations, frees, bytes);
}

static void check_pool_blocks(const json_t *report)
{
    /* not with the function of the header that it calls */
    assert_string_equal(stack_function(only_context(report, "arena_block"), 0), "arena_block");
    expect_blocks(report, "arena_block", 200, 200, 25600);
    expect_blocks(report, "slab_block", 10, 10, 640);
    expect_blocks(report, "again_block", 5, 4, 320);
    expect_blocks(report, "outer_block", 1, 1, 2048);
    expect_blocks(report, "inner_block", 4, 4, 1024);
    expect_blocks(report, "tight_block", 40, 40, 960);
    expect_blocks(report, "many_block", 100000, 100000, 800000);
    expect_blocks(report, "last_block", 1, 0, 128);
    expect_blocks(report, "data_block", 1, 0, 512);
    assert_int_equal(json_number(only_context(report, "slab_block"), "temporary"), 10);
    assert_int_equal(json_number(only_context(report, "again_block"), "live_allocations"), 1);
    assert_int_equal(json_number(only_context(report, "arena_block"), "live_bytes"), 0);
    /* The totals are those of malloc alone. */
    assert_true(json_number(report, "totals.allocations") < 100);
    assert_true(json_number(report, "totals.peak_bytes") < 100000);
    assert_false(report_says(report, "lost"));
}

/* As a preload: nothing is linked, nothing is counted but the blocks. */
static void test_pools(void **state)
{
    for (int i = 0; i < 2; i++) {
        const char *path = need_program(i ? "pools-cxx" : "pools");
        const char *const argv[] = {path, NULL};
        struct recording recording = record_and_load(argv, NULL);
        assert_exit(&recording.run, 0, path);
        assert_string_equal(recording.run.out, "1\n");
        check_pool_blocks(recording.report);
        recording_free(&recording);
        struct run_result alone = run(argv, NULL);
        assert_exit(&alone, 0, path);
        assert_string_equal(alone.out, "0\n");
        run_result_free(&alone);
    }
}

static void test_pools_accesses(void **state)
{
    struct finished finished = finish("pools-gcc");
    const json_t *report = finished.report;
    check_pool_blocks(report);
    expect(report, "arena_block", 600, 400, 0);
    expect(report, "slab_block", 0, 70, 0);
    expect(report, "again_block", 5, 0, 0);
    expect(report, "inner_block", 44, 0, 0);
    expect(report, "outer_block", 0, 13, 0);
    expect(report, "tight_block", 0, 37, 0);
    expect(report, "last_block", 4, 3, 0);
    expect(report, "data_block", 2 * 8, 8, 0);
    assert_int_equal(json_number(only_context(report, "tight_block"), "blocks_sharing_cells"), 40);
    assert_int_equal(json_number(only_context(report, "arena_block"), "blocks_sharing_cells"), 0);
    assert_int_equal(json_number(only_context(report, "arena_block"), "granules_touched"), 200);
    /* What is left to the memory around them: 5 writes of the arena, 17 reads beside the nested pools, 3 writes in a
     * granule that blocks share, 6 writes beside the last one. */
    int64_t reads = 0, writes = 0;
    size_t index;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (!strstr(stack_line(context), "arena_memory") || json_is_true(json_object_get(context, "pool")))
            continue;
        reads += json_number(context, "accesses.reads");
        writes += json_number(context, "accesses.writes");
    }
    assert_int_equal(reads, 17);
    assert_int_equal(writes, 5 + 3 + 6);
    reads = writes = 0;
    json_t *global;
    json_array_foreach(json_object_get(report, "globals"), index, global)
    {
        if (strcmp(json_text(global, "symbol"), "arena_in_data") != 0)
            continue;
        reads += json_number(global, "reads");
        writes += json_number(global, "writes");
    }
    assert_int_equal(reads, 9);
    assert_int_equal(writes, 0);
    forget(&finished);
}

TEST_LIST(cmocka_unit_test(test_gcc_O0), cmocka_unit_test(test_gcc_O2), cmocka_unit_test(test_gcc_no_pie),
          cmocka_unit_test(test_gcc_needs_no_libtsan), cmocka_unit_test(test_gcc_granule_8),
          cmocka_unit_test(test_memprof), cmocka_unit_test(test_memprof_linked_by_gcc),
          cmocka_unit_test(test_memprof_callbacks), cmocka_unit_test(test_memprof_histogram),
          cmocka_unit_test(test_memprof_histogram_callbacks), cmocka_unit_test(test_memprof_early),
          cmocka_unit_test(test_memprof_output_and_dump), cmocka_unit_test(test_pools),
          cmocka_unit_test(test_pools_accesses))
