/* test_course.c - the tracer notes what programs ask for, heapwise-course does the same under any allocator, and the
 * packer gives small blocks places side by side, in programs as in courses. */
#include "allocators/course.h"
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *folder;

static const char *library(const char *name)
{
    static char path[4096];
    const char *slash = strrchr(runtime_path(), '/');
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - runtime_path()), runtime_path(), name);
    if (access(path, R_OK) != 0)
        fail_msg("%s is missing", path);
    return path;
}

/* Runs ARGV under the tracer; its traces are in a folder of their own. */
static struct run_result trace(const char *const argv[])
{
    char preload[8192], variable[4096];
    folder = make_directory();
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library("libheapwise-tracer.so"));
    snprintf(variable, sizeof variable, HW_TRACE_VARIABLE "=%s", folder);
    const char *const environment[] = {preload, variable, NULL};
    return run(argv, &(struct run_options){.environment = environment});
}

static const char *program(void)
{
    if (TEST_SANITIZED)
        SKIP("the tools have AddressSanitizer's allocator");
    return need_program("operations");
}

/* How many records of KIND and SIZE there are in the FILE. */
static struct hw_trace_record *read_trace(const char *file, struct hw_trace_header *header)
{
    FILE *stream = fopen(file, "rb");
    assert_non_null(stream);
    assert_int_equal(fread(header, sizeof *header, 1, stream), 1);
    assert_true(header->magic == HW_TRACE_MAGIC && header->taken <= HW_TRACE_MOST);
    struct hw_trace_record *records = calloc((size_t)header->taken, sizeof *records);
    assert_int_equal(fread(records, sizeof *records, (size_t)header->taken, stream), header->taken);
    fclose(stream);
    return records;
}

static unsigned count_of(const struct hw_trace_record *records, size_t count, enum hw_course_kind kind, uint64_t size)
{
    unsigned found = 0;
    for (size_t i = 0; i < count; i++)
        found += i % HW_TRACE_CHUNK && records[i].tick && records[i].what >> 56 == kind && records[i].size == size;
    return found;
}

static void test_operations_are_noted(void **state)
{
    const char *const argv[] = {program(), "kinds", NULL};
    struct run_result result = trace(argv);
    assert_int_equal(result.code, 0);
    struct hw_trace_header header;
    size_t count;
    char **files = list_files(folder, ".trace", &count);
    assert_int_equal(count, 1);
    struct hw_trace_record *records = read_trace(files[0], &header);
    const size_t all = (size_t)header.taken;
    assert_int_equal(header.threads, 1);
    assert_int_equal(header.operations, 0);
    assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, 700), 2000);
    assert_int_equal(count_of(records, all, HW_COURSE_CALLOC, 770), 300);
    assert_int_equal(count_of(records, all, HW_COURSE_REALLOC, 900), 300);
    assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, 930), 10); /* realloc of NULL */
    assert_int_equal(count_of(records, all, HW_COURSE_ALIGNED, 960), 40);
    assert_int_equal(count_of(records, all, HW_COURSE_ALIGNED, 958), 20);
    assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, 0), 17);
    assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, 3 << 20), 5);
    assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, SIZE_MAX / 2), 0); /* failed */
    assert_true(count_of(records, all, HW_COURSE_FREE, 0) >= 2000 + 300 + 10 + 60 + 17 + 5);
    free(records);
    free_list(files);
    run_result_free(&result);
}

/* Of large blocks it is known how many pages were touched, unless a filter of system calls may have come meanwhile. */
static void test_touched_pages_are_noted(void **state)
{
    static const char *const modes[] = {"sparse", "confined"};
    for (int confined = 0; confined < 2; confined++) {
        const char *const argv[] = {program(), modes[confined], NULL};
        struct run_result result = trace(argv);
        assert_int_equal(result.code, 0);
        struct hw_trace_header header;
        size_t count;
        char **files = list_files(folder, ".trace", &count);
        assert_int_equal(count, 1);
        struct hw_trace_record *records = read_trace(files[0], &header);
        const size_t all = (size_t)header.taken;
        assert_int_equal(count_of(records, all, HW_COURSE_MALLOC, 1 << 20), 20);
        assert_int_equal(count_of(records, all, HW_COURSE_TOUCHED, 3), confined ? 0 : 11);
        assert_int_equal(count_of(records, all, HW_COURSE_TOUCHED, 5), confined ? 0 : 10);
        free(records);
        free_list(files);
        run_result_free(&result);
    }
}

/* A replay takes as many page faults as the program did. */
static void test_replays_touch_what_was_touched(void **state)
{
    enum { BLOCKS = 40, SIZE = 100 * 4096, TOUCHED = 3 };
    struct {
        struct hw_course_header header;
        struct hw_course_event events[2 * BLOCKS];
    } course = {
        .header = {
            .magic = HW_COURSE_MAGIC, .slots = BLOCKS, .operations = 2 * BLOCKS, .workers = 1, .count = {2 * BLOCKS}}};
    char path[4096];
    program(); /* or it is skipped */
    folder = make_directory();
    snprintf(path, sizeof path, "%s/course", folder);
    for (uint16_t touched = 0; touched <= TOUCHED; touched++) { /* 0: it is not known */
        for (uint32_t i = 0; i < BLOCKS; i++) {
            course.events[i] = (struct hw_course_event){SIZE, i, HW_COURSE_MALLOC, .touched = touched};
            course.events[BLOCKS + i] = (struct hw_course_event){SIZE, i, HW_COURSE_FREE, .touched = touched};
        }
        FILE *stream = fopen(path, "wb");
        fwrite(&course, sizeof course, 1, stream);
        fclose(stream);
        const char *const argv[] = {library("heapwise-course"), path, NULL};
        struct run_result result = run(argv, NULL);
        unsigned long faults;
        assert_int_equal(sscanf(result.out, "course %*u %*u %*u %*u %*u %lu", &faults), 1);
        const unsigned long wanted = BLOCKS * (touched ? touched : SIZE / 4096u);
        if (faults < wanted || faults > wanted + 30)
            fail_msg("%u pages touched of each: %lu faults, not %lu", touched, faults, wanted);
        run_result_free(&result);
    }
}

/* The child of a fork notes nothing, and the parent goes on. */
static void test_forks(void **state)
{
    const char *const argv[] = {program(), "fork", NULL};
    struct run_result result = trace(argv);
    assert_int_equal(result.code, 0);
    size_t count;
    char **files = list_files(folder, ".trace", &count);
    assert_int_equal(count, 1);
    free_list(files);
    run_result_free(&result);
}

static void test_no_folder_is_no_harm(void **state)
{
    char preload[8192];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library("libheapwise-tracer.so"));
    const char *const argv[] = {program(), "kinds", NULL};
    const char *const environment[] = {preload, HW_TRACE_VARIABLE "=/nonexistent/folder", NULL};
    struct run_result result = run(argv, &(struct run_options){.environment = environment});
    assert_int_equal(result.code, 0);
    run_result_free(&result);
}

static struct run_result pack(const char *path, const char *part)
{
    char preload[8192];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library("libheapwise-packer.so"));
    const char *const argv[] = {path, part, NULL}, *const environment[] = {preload, NULL};
    return run(argv, &(struct run_options){.environment = environment, .timeout_s = 60});
}

static void test_packer(void **state)
{
    static const char *const parts[] = {"neighbours", "contents", "crowd", "handed", "threads"};
    program(); /* or it is skipped */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct run_result result = pack(program_path("packed"), parts[i]);
        if (result.code != 0)
            fail_msg("%s: code %d, %s", parts[i], result.code, result.out);
        run_result_free(&result);
    }
    struct run_result kinds = pack(program(), "kinds"), forks = pack(program(), "fork");
    assert_int_equal(kinds.code, 0);
    assert_int_equal(forks.code, 0);
    run_result_free(&kinds);
    run_result_free(&forks);
}

/* Without room for slabs everything is the next allocator's. */
static void test_packer_without_room(void **state)
{
    char command[8192];
    program();
    snprintf(command, sizeof command, "ulimit -v 500000; LD_PRELOAD=%s exec %s threads",
             library("libheapwise-packer.so"), program_path("packed"));
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct run_result result = run(argv, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
}

static void test_damaged_courses_are_refused(void **state)
{
    char path[4096];
    folder = make_directory();
    snprintf(path, sizeof path, "%s/course", folder);
    struct {
        struct hw_course_header header;
        struct hw_course_event events[2];
    } course = {.header = {.magic = HW_COURSE_MAGIC, .slots = 1, .operations = 2, .workers = 1, .count = {2}},
                .events = {{.kind = HW_COURSE_MALLOC, .size = 100}, {.kind = HW_COURSE_FREE, .size = 100}}};
    for (int how = 0; how < 6; how++) {
        course.header.magic = HW_COURSE_MAGIC + (how == 1);
        course.header.workers = how == 2 ? 17 : 1;
        course.header.count[0] = how == 3 ? 5 : 2;
        course.events[1].slot = how == 4;
        course.header.walked = how == 5 ? 100 : 0;
        FILE *stream = fopen(path, "wb");
        fwrite(&course, sizeof course, 1, stream);
        fclose(stream);
        const char *const argv[] = {library("heapwise-course"), path, NULL};
        struct run_result result = run(argv, NULL);
        assert_int_equal(result.code, how ? 2 : 0);
        assert_true(how || strncmp(result.out, "course 2 ", 9) == 0);
        run_result_free(&result);
    }
}

/* A whole comparison of a program with threads: everything is predicted, and nothing is left behind. */
static void test_comparison_of_threads(void **state)
{
    const char *const arguments[] = {"allocators", "--json", "-n", "1", "--", program(), "threads", "4", NULL};
    char variable[4096], cache[4096];
    folder = make_directory();
    char *other = make_directory();
    snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", other);
    const char *const environment[] = {variable, cache, "LD_PRELOAD", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment, .timeout_s = 120});
    if (result.code != 0)
        fail_msg("exit code %d: %s", result.code, result.err);
    json_t *runs = json_loads(result.out, 0, NULL);
    assert_true(json_is_array(runs));
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *one = json_array_get(runs, i);
        if (json_is_true(json_object_get(one, "present")))
            continue;
        if (!json_is_object(json_object_get(one, "predicted")))
            fail_msg("run %zu is not predicted: %s", i, result.out);
        assert_string_equal(json_text(one, "predicted.weight.of"), "operations");
        assert_string_equal(json_text(one, "predicted.weight.from"), "rule"); /* one round tells nothing */
    }
    json_decref(runs);
    size_t left;
    char **files = list_files(folder, "", &left);
    assert_int_equal(left, 0);
    free_list(files);
    run_result_free(&result);
}

TEST_LIST(cmocka_unit_test(test_operations_are_noted), cmocka_unit_test(test_touched_pages_are_noted),
          cmocka_unit_test(test_replays_touch_what_was_touched), cmocka_unit_test(test_forks),
          cmocka_unit_test(test_no_folder_is_no_harm), cmocka_unit_test(test_packer),
          cmocka_unit_test(test_packer_without_room), cmocka_unit_test(test_damaged_courses_are_refused),
          cmocka_unit_test(test_comparison_of_threads))
