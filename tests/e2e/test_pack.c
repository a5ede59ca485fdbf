/* test_pack.c - record packs what it wrote: every report of a packed profile is that of the unpacked one, to the last
 * byte, and everything that looks at a profile later can. */
#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/format.h"
#include "profile/container/pack.h"
#include "profile/profile.h"

/* ---- what a file is ---- */

static bool is_packed(const char *path)
{
    struct {
        struct hw_file_header header;
        struct hw_section directory[60];
    } page;
    bool packed = false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &page, sizeof page), sizeof page);
    close(fd);
    for (size_t i = 0; i < page.header.directory_used; i++)
        packed |= page.directory[i].flags & HW_SECTION_PACKED;
    /* What is read of thousands of files, without the rest. */
    assert_true(!packed || page.directory[0].type == HW_SECTION_PROCESS);
    assert_true(!packed || page.directory[0].flags == 0);
    return packed;
}

static off_t size_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

static char *report_text(const char *file)
{
    const char *const arguments[] = {"report", "--json", "--no-debuginfod", file, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, file);
    char *text = strdup(result.out);
    run_result_free(&result);
    return text;
}

static void expect_same(const char *what, const char *left, const char *right)
{
    for (size_t i = 0;; i++) {
        if (left[i] != right[i])
            fail_msg("%s: reports differ at byte %zu: '%.80s' and '%.80s'", what, i, left + (i < 40 ? 0 : i - 40),
                     right + (i < 40 ? 0 : i - 40));
        if (!left[i])
            return;
    }
}

/* Packs FILE in place, with and without zstd, and compares. */
static void expect_lossless(const char *file)
{
    static const int levels[] = {0, 3};
    struct hw_error error = {""};
    char *copy = NULL, *json = report_text(file);
    assert_false(is_packed(file));
    assert_true(asprintf(&copy, "%s.copy", file) > 0);
    for (size_t i = 0; i < 2; i++) {
        const char *const keep[] = {"cp", "-p", file, copy, NULL};
        struct run_result kept = run(keep, NULL);
        assert_exit(&kept, 0, "cp");
        run_result_free(&kept);
        if (!hw_profile_pack(file, levels[i], &error))
            fail_msg("%s", error.message);
        assert_true(is_packed(file));
        assert_true(size_of(file) < size_of(copy));
        char *packed = report_text(file);
        expect_same(file, json, packed);
        free(packed);
        /* Packing again changes nothing. */
        const off_t size = size_of(file);
        assert_true(hw_profile_pack(file, 19, &error));
        assert_int_equal(size_of(file), size);
        assert_int_equal(rename(copy, file), 0);
    }
    free(copy);
    free(json);
}

/* All files of a run of ARGV, also dumps. AT_LEAST: how many there must be. */
static void check_run(const char *const argv[], const char *options, const char *argument, size_t at_least)
{
    const char *const arguments[] = {"--no-pack", argument, NULL};
    size_t count;
    if (!argv[0])
        SKIP("a program is not there");
    struct record_options how = {.options = options, .arguments = arguments, .no_report = true};
    struct recording recording = record_and_load(argv, &how);
    char **files = list_files(recording.directory, ".hwprof", &count);
    if (count < at_least)
        fail_msg("%s left %zu files, not %zu: %s", run_describe(argv), count, at_least, recording.run.err);
    for (size_t i = 0; i < count; i++)
        expect_lossless(files[i]);
    free_list(files);
    recording_free(&recording);
}

#define PROGRAM(name, ...)                                                                                             \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        program_path(name), __VA_ARGS__, NULL                                                                          \
    }

static void test_heap(void **state)
{
    check_run((const char *const[]){"/usr/bin/perl", "-e", "my @a = map { [1 .. $_] } 1 .. 300;", NULL}, NULL, NULL, 1);
    check_run(PROGRAM("workload", "4"), NULL, NULL, 1);
}

static void test_options(void **state)
{
    check_run(PROGRAM("workload", "4"), NULL, "--sample-bytes=4096", 1);
    check_run(PROGRAM("workload", "4"), NULL, "--table=64", 1);
    check_run(PROGRAM("workload", "4"), NULL, "--free-stacks", 1);
}

static void test_processes(void **state)
{
    check_run(PROGRAM("processes", "fork"), NULL, NULL, 3);
    check_run(
        (const char *const[]){"/bin/sh", "-c", "/usr/bin/perl -e 'my $x = \"a\" x 100000; kill 9, $$'; true", NULL},
        NULL, NULL, 2);
}

static void test_accesses(void **state)
{
    check_run(PROGRAM("access", "plain"), NULL, NULL, 1);
    check_run(PROGRAM("access-8", "plain"), NULL, NULL, 1);
    check_run(PROGRAM("access-8", "plain", "0", "9"), NULL, NULL, 1); /* kill -9: nothing was harvested */
}

static void test_dumps(void **state)
{
    check_run(PROGRAM("access", "dumps"), NULL, NULL, 2);
}

/* ---- record ---- */

/* By itself, keeping permissions; and what looks at the file later works. */
static void test_record(void **state)
{
    const char *const argv[] = {"/usr/bin/perl", "-e", "my @a = map { [1 .. $_] } 1 .. 100;", NULL};
    char *directory = make_directory(), *file = join_path(directory, "a.hwprof");
    const char *const plain[] = {"record", "-q", "--no-pack", "-o", file, "--", argv[0], argv[1], argv[2], NULL};
    const char *const packed[] = {"record", "-q", "-f", "-o", file, "--", argv[0], argv[1], argv[2], NULL};
    struct hw_error error = {""};
    struct stat status;
    struct run_result result = heapwise(plain, NULL);
    assert_exit(&result, 0, "record --no-pack");
    run_result_free(&result);
    assert_false(is_packed(file));
    const off_t before = size_of(file);
    result = heapwise(packed, NULL);
    assert_exit(&result, 0, "record");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    assert_true(is_packed(file));
    if (size_of(file) * 4 > before)
        fail_msg("packed %ld bytes of %ld", (long)size_of(file), (long)before);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600 | (status.st_mode & 0177));
    size_t count;
    char **left = list_files(directory, "", &count);
    assert_int_equal(count, 1); /* nothing is left beside it */
    free_list(left);

    /* Closing it again changes nothing: the exit status is known. */
    assert_true(hw_profile_close(file, HW_EXIT_SIGNAL, 9, 0, 0, &error));
    struct hw_profile *profile = hw_profile_read(file, &error);
    assert_non_null(profile);
    assert_int_equal(profile->process.exit_kind, HW_EXIT_CODE);
    assert_int_equal(profile->problem_count, 0);
    hw_profile_free(profile);
    free(file);
    remove_directory(directory);
}

/* The name that record would write aside is taken: the profile stays as it was sealed, and a line says why. */
static void test_cannot_pack(void **state)
{
    char *directory = make_directory(), *file = join_path(directory, "a.hwprof");
    const char *const arguments[] = {"record", "-o", file, "--", "/bin/sh", "-c", "mkdir $0.$PPID.part", file, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "record");
    assert_contains(result.err, "a.hwprof was not packed: cannot write");
    assert_contains(result.err, "wrote ");
    run_result_free(&result);
    assert_false(is_packed(file));
    free(report_text(file));
    const char *const clean[] = {"rm", "-r", directory, NULL};
    result = run(clean, NULL);
    assert_exit(&result, 0, "rm");
    run_result_free(&result);
    free(file);
}

TEST_LIST(cmocka_unit_test(test_heap), cmocka_unit_test(test_options), cmocka_unit_test(test_processes),
          cmocka_unit_test(test_accesses), cmocka_unit_test(test_dumps), cmocka_unit_test(test_record),
          cmocka_unit_test(test_cannot_pack))
