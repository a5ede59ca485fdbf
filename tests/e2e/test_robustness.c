/* test_robustness.c - profiles of processes that were killed or still run, and profiles that were damaged. */
#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As in programs/steady.c: what each thread has begun and done. */
struct progress {
    uint64_t begun, done, free_begun, free_done;
};

struct steady {
    char *directory, *progress_file, *profile;
    const volatile struct progress *progress;
    struct run_process process;
};

static void start_steady(struct steady *steady, int milliseconds)
{
    const char *program = need_program("steady");
    steady->directory = make_directory();
    steady->progress_file = join_path(steady->directory, "progress");
    steady->profile = join_path(steady->directory, "steady.hwprof");
    int file = open(steady->progress_file, O_RDWR | O_CREAT, 0600);
    assert_int_equal(ftruncate(file, 4096), 0);
    steady->progress = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    assert_true(steady->progress != MAP_FAILED);
    close(file);
    /* The runtime alone: so that the process that is killed is the one that was started. */
    char options[4200], preload[4200];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s", steady->profile);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    const char *const argv[] = {program, steady->progress_file, NULL};
    steady->process = run_start(argv, &(struct run_options){.environment = environment});
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000l}, NULL);
}

static void end_steady(struct steady *steady)
{
    munmap((void *)steady->progress, 4096);
    free(steady->progress_file);
    free(steady->profile);
    remove_directory(steady->directory);
}

static uint64_t both(const volatile struct progress *progress, size_t offset)
{
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++)
        sum += *(const volatile uint64_t *)((const volatile char *)&progress[i] + offset);
    return sum;
}
#define BOTH(steady, field) both((steady)->progress, offsetof(struct progress, field))

/* What the profile says lies between what the program knows to have done and to have begun. */
static void check_killed(struct steady *steady)
{
    kill(steady->process.pid, SIGKILL);
    struct run_result result = run_finish(&steady->process, 10);
    assert_int_equal(result.signal, SIGKILL);
    run_result_free(&result);
    uint64_t begun = BOTH(steady, begun), done = BOTH(steady, done), free_begun = BOTH(steady, free_begun),
             free_done = BOTH(steady, free_done);
    if (access(steady->profile, F_OK) != 0) {
        assert_int_equal(begun, 0); /* killed before it started: nothing can be lost */
        return;
    }
    if (begun == 0) { /* in the middle of starting: a clear answer, whatever it is */
        json_decref(load_report(steady->profile, -1));
        return;
    }
    json_t *report = load_report(steady->profile, 0);
    assert_non_null(report);
    struct sums sums = report_sums(report, "steady_allocate");
    if (sums.allocations < (int64_t)done || sums.allocations > (int64_t)begun)
        fail_msg("%lld allocations in the profile; the program had done %llu and begun %llu",
                 (long long)sums.allocations, (unsigned long long)done, (unsigned long long)begun);
    if (sums.frees < (int64_t)free_done || sums.frees > (int64_t)free_begun)
        fail_msg("%lld frees in the profile; the program had done %llu and begun %llu", (long long)sums.frees,
                 (unsigned long long)free_done, (unsigned long long)free_begun);
    assert_true(sums.live_allocations <= 2002 && sums.live_allocations >= 0);
    assert_true(report_says(report, "did not close"));
    json_decref(report);
}

static void test_killed_at_50_moments(void **state)
{
    unsigned random = 20240229;
    for (int i = 0; i < 50; i++) {
        random = random * 1664525u + 1013904223u;
        int milliseconds = i < 15 ? i : (int)((random >> 8) % 150);
        struct steady steady;
        start_steady(&steady, milliseconds);
        check_killed(&steady);
        end_steady(&steady);
    }
}

/* Under record, a killed program gets its way of ending written down. */
static void test_killed_under_record(void **state)
{
    const char *program = need_program("processes");
    const char *const argv[] = {program, "end", "9", NULL};
    struct recording recording = record_and_load(argv, NULL);
    assert_exit(&recording.run, 137, "killed by SIGKILL");
    assert_int_equal(json_number(recording.report, "process.exit.signal"), 9);
    recording_free(&recording);
}

/* The report of a process that is running; it can be had again and again, and counts only rise. */
static void test_running_process(void **state)
{
    struct steady steady;
    start_steady(&steady, 100);
    int64_t allocations = 0;
    for (int i = 0; i < 5; i++) {
        int64_t done = (int64_t)BOTH(&steady, done);
        json_t *report = load_report(steady.profile, 0);
        int64_t begun = (int64_t)BOTH(&steady, begun);
        struct sums sums = report_sums(report, "steady_allocate");
        if (sums.allocations < done || sums.allocations > begun)
            fail_msg("%lld allocations in the report of a moment between %lld and %lld", (long long)sums.allocations,
                     (long long)done, (long long)begun);
        assert_true(sums.allocations >= allocations);
        allocations = sums.allocations;
        assert_true(report_says(report, "still running"));
        assert_true(json_is_null(json_object_get(json_object_get(report, "process"), "exit")));
        json_decref(report);
    }
    check_killed(&steady);
    end_steady(&steady);
}

/* ---- damage ---- */

static unsigned char *contents;
static size_t contents_size;
static char *damaged; /* name of the file that is damaged */

static int make_profile(void **state)
{
    const char *program = program_path("stacks");
    if (!program)
        return 0;
    const char *const argv[] = {program, ".", "walks", "qsort", "recursion", NULL};
    struct recording recording = record_and_load(argv, NULL);
    struct stat status;
    if (stat(recording.files[0], &status) != 0)
        return -1;
    contents_size = (size_t)status.st_size;
    contents = malloc(contents_size);
    int file = open(recording.files[0], O_RDONLY);
    if (read(file, contents, contents_size) != (ssize_t)contents_size)
        return -1;
    close(file);
    recording_free(&recording);
    char *directory = make_directory();
    damaged = join_path(directory, "damaged.hwprof");
    return 0;
}

static void write_damaged(const unsigned char *bytes, size_t size)
{
    int file = open(damaged, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

/* The report, now as text and then as JSON, ends with EXPECTED (or, -1, 0 or 2), says why when it is 2, and never
 * crashes. Returns whether the damage was found. */
static bool check_damaged(int expected, const char *what, size_t where)
{
    static unsigned times;
    bool text = ++times % 2;
    const char *const arguments[] = {"report", text ? "--color=never" : "--json", damaged, NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.timeout_s = 20});
    if (result.timed_out || !(result.code == 2 || (expected < 0 && result.code == 0)))
        fail_msg("%s at %zu of %zu: exit code %d, signal %d%s; stderr:\n%.3000s", what, where, contents_size,
                 result.code, result.signal, result.timed_out ? " (out of time)" : "", result.err);
    if (result.code == 2 && result.err_size == 0)
        fail_msg("%s at %zu: not a word on stderr", what, where);
    if (!text && result.out_size) {
        json_t *report = json_loadb(result.out, result.out_size, 0, NULL);
        if (!report)
            fail_msg("%s at %zu: what was printed is not JSON", what, where);
        json_decref(report);
    }
    bool found = result.code == 2;
    run_result_free(&result);
    return found;
}

static void test_truncated(void **state)
{
    if (!contents)
        SKIP("stacks was not built");
    static const size_t sizes[] = {0, 1, 7, 8, 64, 255, 256, 300, 4095, 4096, 4097, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_damaged(contents, sizes[i]);
        check_damaged(2, "cut", sizes[i]);
    }
    for (size_t i = 1; i < 16; i++) {
        size_t size = contents_size * i / 16;
        write_damaged(contents, size);
        check_damaged(2, "cut", size);
    }
    write_damaged(contents, contents_size - 1);
    check_damaged(-1, "cut", contents_size - 1); /* the last page may be padding */
}

/* A sealed file has checksums: every flipped bit of what it holds is found. */
static void test_flipped_bits(void **state)
{
    if (!contents)
        SKIP("stacks was not built");
    unsigned random = 77;
    size_t found = 0;
    enum { FLIPS = 100 };
    for (int i = 0; i < FLIPS; i++) {
        random = random * 1664525u + 1013904223u;
        /* half of them in the first page, where the directory is */
        size_t where = i % 2 ? (random >> 4) % 4096 : (random >> 2) % contents_size;
        unsigned char saved = contents[where];
        contents[where] ^= (unsigned char)(1 << (random >> 29));
        write_damaged(contents, contents_size);
        contents[where] = saved;
        found += check_damaged(-1, "bit flipped", where);
    }
    /* the rest is padding between sections */
    if (found < FLIPS / 2)
        fail_msg("only %zu of %d flipped bits were found", found, FLIPS);
}

static void test_garbage(void **state)
{
    if (!contents)
        SKIP("stacks was not built");
    unsigned random = 99;
    unsigned char *bytes = malloc(contents_size);
    for (int i = 0; i < 30; i++) {
        memcpy(bytes, contents, contents_size);
        size_t from = i < 10 ? 0 : i < 20 ? 256 : 4096; /* with a good header, with a good first page */
        for (size_t k = from + (i % 10 < 5 ? 8 : 0); k < contents_size; k++) {
            random = random * 1664525u + 1013904223u;
            if (i % 3 == 0 || (random >> 28) == 0)
                bytes[k] = (unsigned char)(random >> 16);
        }
        write_damaged(bytes, contents_size);
        check_damaged(2, "garbage", from);
    }
    memset(bytes, 0xff, contents_size);
    memcpy(bytes, contents, 8);
    write_damaged(bytes, contents_size);
    check_damaged(2, "all ones", 8);
    memset(bytes, 0, contents_size);
    memcpy(bytes, contents, 8);
    write_damaged(bytes, contents_size);
    check_damaged(2, "all zeros", 8);
    free(bytes);
}

/* Extreme numbers in each word of the first page, with the checksums unneeded: the file says that it is not sealed. */
static void test_extreme_words(void **state)
{
    if (!contents)
        SKIP("stacks was not built");
    static const uint64_t values[] = {0, 1, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
    unsigned char *bytes = malloc(contents_size);
    for (size_t word = 8; word < 256 + 14 * 64; word += 8) {
        if (word == 40 || word >= 80)
            continue;
        for (size_t i = 1; i < sizeof values / sizeof *values; i += 2) {
            memcpy(bytes, contents, contents_size);
            bytes[48] &= 0xfc; /* flags */
            memcpy(bytes + word, &values[i], 8);
            write_damaged(bytes, contents_size);
            check_damaged(-1, "extreme word", word);
        }
    }
    for (size_t entry = 0; entry < 12; entry++) {
        for (size_t field = 0; field < 40; field += 8) {
            memcpy(bytes, contents, contents_size);
            bytes[48] &= 0xfc;
            memcpy(bytes + 256 + entry * 64 + field, &values[(entry + field / 8) % 6], 8);
            write_damaged(bytes, contents_size);
            check_damaged(-1, "extreme directory entry", 256 + entry * 64 + field);
        }
    }
    free(bytes);
}

TEST_LIST_WITH(make_profile, NULL, cmocka_unit_test(test_killed_at_50_moments),
               cmocka_unit_test(test_killed_under_record), cmocka_unit_test(test_running_process),
               cmocka_unit_test(test_truncated), cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_garbage),
               cmocka_unit_test(test_extreme_words))
