/* test_limits.c - where resources are missing the program runs on unharmed, and what was lost is said. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The totals of the workload's functions; one context may be missing when the profile could not grow. */
static void check_workload(const json_t *report)
{
    assert_int_equal(report_sums(report, "work_churn").allocations, 20000);
    assert_int_equal(report_sums(report, "work_realloc").reallocations, 9000);
    assert_int_equal(report_sums(report, "work_realloc").live_bytes, 500000);
    assert_contexts_sum_to_totals(report);
}

/* ---- limits of the process ---- */

static void check_limits(const struct run_limit *limits, const char *what, bool exact)
{
    const char *const argv[] = {need_program("workload"), NULL};
    const struct run_options options = {.limits = limits};
    struct run_result plain = run(argv, &options);
    if (plain.code != 0)
        SKIP("%s: the program alone does not run", what);
    run_result_free(&plain);
    struct recording recording = record_and_load(argv, &(struct record_options){.run = options, .may_fail = true});
    assert_exit(&recording.run, 0, what);
    if (exact) {
        if (!recording.report)
            fail_msg("%s: no report; stderr:\n%s", what, recording.run.err);
        check_workload(recording.report);
    } else if (!recording.report && recording.run.err_size == 0) {
        fail_msg("%s: neither a profile nor a word about it", what);
    }
    recording_free(&recording);
}

static void test_address_space(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    static const struct {
        rlim_t bytes;
        const char *what;
    } sizes[] = {{(rlim_t)64 << 30, "ulimit -v 64G"},
                 {(rlim_t)4 << 30, "ulimit -v 4G"},
                 {(rlim_t)1 << 30, "ulimit -v 1G"},
                 {(rlim_t)256 << 20, "ulimit -v 256M"},
                 {(rlim_t)128 << 20, "ulimit -v 128M"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_limits((const struct run_limit[]){{RLIMIT_AS, sizes[i].bytes}, {-1, 0}}, sizes[i].what, true);
    /* next to nothing left for Heapwise: the program runs all the same, as long as the library itself finds room */
    rlim_t needed = 8;
    for (int code = -1; code != 0 && needed < 100; needed += code == 0 ? 0 : 4) {
        const struct run_limit limits[] = {{RLIMIT_AS, needed << 20}, {-1, 0}};
        struct run_result plain =
            run((const char *const[]){need_program("workload"), NULL}, &(struct run_options){.limits = limits});
        code = plain.code;
        run_result_free(&plain);
    }
    for (rlim_t megabytes = needed + 8; megabytes <= needed + 64; megabytes += 8) {
        char what[40];
        snprintf(what, sizeof what, "ulimit -v %luM", (unsigned long)megabytes);
        check_limits((const struct run_limit[]){{RLIMIT_AS, megabytes << 20}, {-1, 0}}, what, false);
    }
}

/* Where address space is limited blocks are kept in a table, and the report says so. */
static void test_address_space_is_said(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    const struct run_limit limits[] = {{RLIMIT_AS, (rlim_t)1 << 30}, {-1, 0}};
    const char *const argv[] = {need_program("workload"), NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.run.limits = limits});
    assert_true(report_says(recording.report, "table"));
    recording_free(&recording);
}

/* Mappings of the program can be in the way as well: no limit is spoken of alone. */
static void test_divided_address_space(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer has its shadow there");
    const char *const argv[] = {need_program("divided"), NULL};
    for (int allocator = 0; allocator < 2; allocator++) {
        struct recording recording =
            record_and_load(argv, &(struct record_options){.options = allocator ? "mode=allocator" : NULL});
        assert_exit(&recording.run, 0, "divided");
        struct run_result report = heapwise((const char *const[]){"report", "--full", recording.files[0], NULL}, NULL);
        assert_exit(&report, 0, "report");
        assert_true(report_says(recording.report, "mappings of the program"));
        assert_null(strstr(report.out, "was limited"));
        assert_null(strstr(report.out, "is limited"));
        run_result_free(&report);
        recording_free(&recording);
    }
}

/* Allocator mode knows no sizes of freed blocks there: what is live is not known, which is not the same as nothing. */
static void test_live_is_not_known(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs address space without limit");
    const struct run_limit limits[] = {{RLIMIT_AS, (rlim_t)1 << 30}, {-1, 0}};
    const char *const argv[] = {need_program("workload"), NULL};
    struct recording recording =
        record_and_load(argv, &(struct record_options){.options = "mode=allocator", .run.limits = limits});
    assert_non_null(strstr(recording.run.err, "the peak and what was not freed are not known"));
    const json_t *totals = json_object_get(recording.report, "totals"), *sampled = json_object_get(totals, "sampled");
    const char *const keys[] = {"live_allocations", "live_bytes", "peak_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_true(json_is_null(json_object_get(sampled, keys[i])));
        assert_null(json_object_get(totals, keys[i]));
    }
    struct run_result report = heapwise((const char *const[]){"report", "--all", recording.files[0], NULL}, NULL);
    assert_exit(&report, 0, "report");
    assert_non_null(strstr(report.out, "Peak        not known"));
    assert_non_null(strstr(report.out, "Not freed   not known"));
    assert_non_null(strstr(report.out, "Allocated   at least "));
    assert_null(strstr(report.out, "every block was freed"));
    run_result_free(&report);
    struct run_result check =
        heapwise((const char *const[]){"check", "--max-leaked=1G", recording.files[0], NULL}, NULL);
    assert_exit(&check, 2, "check of what is not known");
    assert_null(strstr(check.out, "OK"));
    run_result_free(&check);
    recording_free(&recording);
}

/* What is reserved is no data: blocks are kept as ever. */
static void test_data(void **state)
{
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer needs more data than that");
    const struct run_limit limits[] = {{RLIMIT_DATA, (rlim_t)64 << 20}, {-1, 0}};
    check_limits(limits, "ulimit -d 64M", true);
    struct recording recording = record_and_load((const char *const[]){need_program("workload"), NULL},
                                                 &(struct record_options){.run.limits = limits});
    assert_false(report_says(recording.report, "table"));
    recording_free(&recording);
}

/* Linux refuses everything beyond the limit when it may not overcommit. This changes the whole machine: only on
 * request. */
static void test_overcommit(void **state)
{
    if (!getenv("HEAPWISE_TEST_OVERCOMMIT") || geteuid() != 0)
        SKIP("set HEAPWISE_TEST_OVERCOMMIT=1 as root to let this test change vm.overcommit_memory");
    int file = open("/proc/sys/vm/overcommit_memory", O_RDWR);
    char before[8] = "";
    assert_true(read(file, before, sizeof before - 1) > 0);
    assert_int_equal(pwrite(file, "2", 1, 0), 1);
    const char *const argv[] = {need_program("workload"), NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.may_fail = true});
    assert_int_equal(pwrite(file, before, strlen(before), 0), strlen(before));
    close(file);
    assert_exit(&recording.run, 0, "overcommit 2");
    assert_non_null(recording.report);
    check_workload(recording.report);
    recording_free(&recording);
}

/* The same as far as a process sees it: the kernel still overcommits, but what it would count is known. */
static const char *over_proc[2]; /* instead of overcommit_memory and meminfo */

static void pretend_never_overcommit(void *closure)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(over_proc[0], "/proc/sys/vm/overcommit_memory", NULL, MS_BIND, NULL) != 0 ||
        mount(over_proc[1], "/proc/meminfo", NULL, MS_BIND, NULL) != 0)
        _exit(99);
}

static char *written(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) > 0 && fclose(file) == 0);
    return path;
}

/* Of the process whose /proc/self/maps MAPS is: private memory that can be written to, but for the stack. */
static uint64_t committed_bytes(const char *maps)
{
    uint64_t sum = 0;
    for (const char *line = maps; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        unsigned long start, end;
        char flags[5];
        assert_int_equal(sscanf(line, "%lx-%lx %4s", &start, &end, flags), 3);
        if (flags[1] == 'w' && flags[3] == 'p')
            sum += end - start;
    }
    return sum;
}

static void test_commitment(void **state)
{
    if (TEST_SANITIZED) SKIP("AddressSanitizer reserves memory itself");
    if (geteuid() != 0) SKIP("needs root, for a file over one of /proc");
    char *directory = make_directory(),
         *files[2] = {written(directory, "mode", "2\n"),
                      written(directory, "meminfo",
                              "MemTotal: 16777216 kB\nCommitLimit: 8388608 kB\nCommitted_AS: 2097152 kB\n")};
    over_proc[0] = files[0];
    over_proc[1] = files[1];
    const struct run_options options = {.prepare = pretend_never_overcommit};
    const char *const maps[] = {"cat", "/proc/self/maps", NULL}, *const workload[] = {need_program("workload"), NULL};
    struct run_result plain = run(maps, &options);
    if (plain.code == 99)
        SKIP("mounts cannot be changed here");
    assert_exit(&plain, 0, "cat");
    static const char *const modes[] = {NULL, "mode=allocator", "sample-bytes=10000", "sample-accesses"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct recording recording =
            record_and_load(maps, &(struct record_options){.options = modes[i], .run = options});
        assert_exit(&recording.run, 0, modes[i]);
        assert_in_range(committed_bytes(recording.run.out), 0, committed_bytes(plain.out) + (48 << 20));
        recording_free(&recording);
    }
    struct recording recording = record_and_load(workload, &(struct record_options){.run = options});
    assert_exit(&recording.run, 0, "memory is not overcommitted");
    check_workload(recording.report);
    assert_true(report_says(recording.report, "table"));
    recording_free(&recording);
    run_result_free(&plain);
    free(files[0]);
    free(files[1]);
    remove_directory(directory);
}

static void test_descriptors(void **state)
{
    check_limits((const struct run_limit[]){{RLIMIT_NOFILE, 8}, {-1, 0}}, "ulimit -n 8", true);
    /* fewer than record itself needs: it says so, or manages */
    for (rlim_t limit = 4; limit < 8; limit++) {
        const struct run_limit limits[] = {{RLIMIT_NOFILE, limit}, {-1, 0}};
        char *directory = make_directory();
        const char *const arguments[] = {"record", "-q", "--", need_program("hello"), "3", NULL};
        struct run_result result = heapwise(arguments, &(struct run_options){.limits = limits, .directory = directory});
        if (result.code == 125)
            assert_contains(result.err, "open files");
        else
            assert_exit(&result, 3, "few descriptors");
        run_result_free(&result);
        remove_directory(directory);
    }
}

/* The limit holds for the files that output goes to as well: so it goes nowhere. */
static void discard_output(void *closure)
{
    int file = open("/dev/null", O_WRONLY);
    if (dup2(file, 1) < 0 || dup2(file, 2) < 0)
        _exit(99);
}

/* A file that would grow beyond the limit is no reason to be killed by SIGXFSZ. */
static void test_file_size(void **state)
{
    static const rlim_t sizes[] = {0, 1, 4096, 8192, 65536, 1 << 18, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct run_limit limits[] = {{RLIMIT_FSIZE, sizes[i]}, {-1, 0}};
        const char *const argv[] = {need_program("workload"), NULL};
        char what[40];
        snprintf(what, sizeof what, "ulimit -f with %lu bytes", (unsigned long)sizes[i]);
        struct recording recording = record_and_load(
            argv, &(struct record_options){.run = {.limits = limits, .prepare = discard_output}, .may_fail = true});
        assert_exit(&recording.run, 0, what);
        recording_free(&recording);
    }
    /* One reason, once, with what to do about it. */
    struct recording small =
        record_and_load((const char *const[]){need_program("workload"), NULL},
                        &(struct record_options){
                            .run.limits = (const struct run_limit[]){{RLIMIT_FSIZE, 8192}, {-1, 0}}, .may_fail = true});
    const char *reason = strstr(small.run.err, ": file size limit. Raise the limit on file sizes (ulimit -f)");
    if (!reason || strstr(reason + 3, "file size limit") ||
        strstr(small.run.err, "cannot write a profile: the profile"))
        fail_msg("%s", small.run.err);
    recording_free(&small);
    check_limits((const struct run_limit[]){{RLIMIT_FSIZE, 64 << 20}, {-1, 0}}, "ulimit -f with 64 MiB", true);
}

static const char *errors;

static void write_errors_to_file(void *closure)
{
    int file = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    discard_output(closure); /* the program's own */
    if (dup2(file, 2) < 0)
        _exit(99);
}

/* Nor is the message about it, on a standard error that is a file. */
static void test_file_size_of_messages(void **state)
{
    char *directory = make_directory(), *file = join_path(directory, "errors"), preload[4200];
    errors = file;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {preload, NULL};
    for (rlim_t most = 0; most <= 1; most++) {
        const struct run_limit limits[] = {{RLIMIT_FSIZE, most}, {-1, 0}};
        struct run_result result = run(
            (const char *const[]){need_program("hello"), "3", NULL},
            &(struct run_options){
                .environment = environment, .limits = limits, .directory = directory, .prepare = write_errors_to_file});
        assert_exit(&result, 3, "no file may grow");
        run_result_free(&result);
    }
    free(file);
    remove_directory(directory);
}

/* Blocks of pools whose contexts find no room, neither in a full table nor in the file. */
static void test_file_size_with_pools(void **state)
{
    const struct run_limit limits[] = {{RLIMIT_FSIZE, 300 << 10}, {-1, 0}};
    const char *const argv[] = {need_program("pools"), "sites", NULL};
    struct recording recording = record_and_load(
        argv,
        &(struct record_options){.options = "table=4", .run = {.limits = limits, .timeout_s = 20}, .may_fail = true});
    assert_exit(&recording.run, 0, "pools under ulimit -f");
    recording_free(&recording);
}

/* Verbs, too, say what they could not write, and leave no part of it. */
static void test_file_size_of_verbs(void **state)
{
    static const char *const verbs[][6] = {{"view", "-o", "out"}, {"export", "--format", "sqlite", "-o", "out"}};
    char *directory = make_directory(), *profile = join_path(directory, "a.hwprof");
    const char *const record[] = {"record", "-q", "-o", profile, "--", need_program("workload"), NULL};
    struct run_result result = heapwise(record, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const char *arguments[8] = {NULL};
        size_t used = 0;
        for (; verbs[i][used]; used++)
            arguments[used] = verbs[i][used];
        arguments[used] = profile;
        result = heapwise(arguments,
                          &(struct run_options){.directory = directory,
                                                .limits = (const struct run_limit[]){{RLIMIT_FSIZE, 4096}, {-1, 0}}});
        assert_exit(&result, 2, verbs[i][0]);
        assert_contains(result.err, "out");
        run_result_free(&result);
        size_t count;
        free_list(list_files(directory, "", &count));
        assert_int_equal(count, 1); /* the profile */
    }
    free(profile);
    remove_directory(directory);
}

static void test_locked_memory_and_stack(void **state)
{
    check_limits((const struct run_limit[]){{RLIMIT_MEMLOCK, 0}, {RLIMIT_STACK, 256 << 10}, {RLIMIT_CORE, 0}, {-1, 0}},
                 "small stack, no locked memory", true);
}

/* ---- directories ---- */

static void test_unwritable_directory(void **state)
{
    char *directory = make_directory();
    char *inside = join_path(directory, "not/there");
    static const char *places[] = {"/proc/x.hwprof", "/sys/kernel/x.hwprof", NULL, NULL};
    const char *const folders[] = {"/proc", "/sys/kernel", directory};
    places[2] = inside;
    for (int i = 0; places[i]; i++) {
        const char *const arguments[] = {"record", "-o", places[i], "--", need_program("hello"), "3", NULL};
        struct run_result result = heapwise(arguments, &(struct run_options){.directory = directory});
        assert_contains(result.err, folders[i]);
        /* either it runs without a profile or it is not started at all: the user knows which */
        if (result.code != 125) {
            assert_exit(&result, 3, places[i]);
            assert_string_equal(result.out, "hello\n");
        }
        run_result_free(&result);

        char options[4200], preload[4200];
        snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s", places[i]);
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
        const char *const environment[] = {options, preload, NULL};
        result = run((const char *const[]){need_program("hello"), "3", NULL},
                     &(struct run_options){.environment = environment});
        assert_exit(&result, 3, "preloaded, with an output that cannot be made");
        assert_string_equal(result.out, "hello\n");
        assert_contains(result.err, folders[i]);
        run_result_free(&result);
    }
    free(inside);
    remove_directory(directory);
}

static void become_nobody(void *closure)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(99);
}

static void test_directory_of_another_user(void **state)
{
    if (geteuid() != 0)
        SKIP("needs root");
    char *directory = make_directory();
    const struct run_options nobody = {.directory = directory, .prepare = become_nobody};
    struct run_result reachable = heapwise((const char *const[]){"--version", NULL}, &nobody);
    if (reachable.code != 0)
        SKIP("heapwise is where other users cannot go");
    run_result_free(&reachable);
    struct run_result result =
        heapwise((const char *const[]){"record", "--", need_program("hello"), "3", NULL}, &nobody);
    if (result.code != 125) {
        assert_exit(&result, 3, "record in a directory of another user");
        assert_string_equal(result.out, "hello\n");
    }
    assert_contains(result.err, "ermission denied");
    run_result_free(&result);
    remove_directory(directory);
}

/* ---- a full disk, and no /proc, in a mount namespace of this test ---- */

static bool own_mounts(void)
{
    static int answer = -1;
    if (answer < 0)
        answer = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return answer == 1;
}

#define NO_SPACE "no space left on device"

/* The run on a file system of SIZE is unharmed; what its profile lacks is reported. */
static void check_full(const char *file, const char *size)
{
    const char *const arguments[] = {"record", "-o",    file,        "--",    need_program("stacks"),
                                     ".",      "walks", "recursion", "qsort", NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, size);
    if (access(file, R_OK) == 0) {
        struct run_result report = heapwise((const char *const[]){"report", "--json", file, NULL}, NULL);
        json_t *json = json_loadb(report.out, report.out_size, 0, NULL);
        assert_true(report.code == 0 || report.code == 2);
        /* Nothing is lost but names of places: the counts are complete, or the report says what is missing. */
        if (!json)
            assert_true(report.code == 2 && report.err_size > 0);
        else if (report_totals(json).allocations < 20000 && !report_says(json, "could not grow") &&
                 !report_says(json, "no memory") && !strstr(result.err, NO_SPACE))
            fail_msg("%s: %lld allocations in the report, and no word about the others", size,
                     (long long)report_totals(json).allocations);
        json_decref(json);
        run_result_free(&report);
    } else {
        assert_contains(result.err, NO_SPACE);
    }
    run_result_free(&result);
}

static void test_full_disk(void **state)
{
    if (!own_mounts())
        SKIP("needs root, for a small file system");
    static const char *const sizes[] = {"size=4k",   "size=16k",  "size=64k", "size=128k",
                                        "size=256k", "size=512k", "size=1m"};
    char *directory = make_directory(), *file = join_path(directory, "full.hwprof");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(mount("heapwise-test", directory, "tmpfs", 0, sizes[i]), 0);
        check_full(file, sizes[i]);
        assert_int_equal(umount2(directory, MNT_DETACH), 0);
    }
    free(file);
    remove_directory(directory);
}

/* The disk fills up while a shell runs: its profile is there, and that of the program which it becomes is not. */
static void test_disk_fills_up(void **state)
{
    if (!own_mounts())
        SKIP("needs root, for a small file system");
    char *directory = make_directory();
    assert_int_equal(mount("heapwise-test", directory, "tmpfs", 0, "size=2m"), 0);
    char *file = join_path(directory, "full.hwprof"), script[8300];
    snprintf(script, sizeof script, "dd if=/dev/zero of=%s/filler bs=4k 2>/dev/null; exec %s . walks recursion qsort",
             directory, need_program("stacks"));
    const char *const arguments[] = {"record", "-o", file, "--", "sh", "-c", script, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "a disk that fills up");
    assert_contains(result.err, NO_SPACE);
    json_t *report = load_report(file, 0);
    assert_true(report_totals(report).allocations > 0);
    json_decref(report);
    run_result_free(&result);
    assert_int_equal(umount2(directory, MNT_DETACH), 0);
    free(file);
    remove_directory(directory);
}

static void hide_proc(void *closure)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        _exit(99);
}

static void test_without_proc(void **state)
{
    if (geteuid() != 0)
        SKIP("needs root, to hide /proc");
    /* the runtime alone: record may refuse */
    char *directory = make_directory();
    char options[4200], preload[4200];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s/a.hwprof", directory);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    struct run_result result = run((const char *const[]){need_program("workload"), NULL},
                                   &(struct run_options){.environment = environment, .prepare = hide_proc});
    if (result.code == 99)
        SKIP("mounts cannot be changed here");
    assert_exit(&result, 0, "without /proc");
    run_result_free(&result);
    size_t count;
    char **files = list_files(directory, ".hwprof", &count);
    assert_int_equal(count, 1);
    json_t *report = load_report(files[0], 0);
    struct totals totals = report_totals(report);
    assert_in_range(totals.allocations, 21620, 21700);
    assert_contexts_sum_to_totals(report);
    json_decref(report);
    free_list(files);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_address_space), cmocka_unit_test(test_address_space_is_said),
          cmocka_unit_test(test_divided_address_space), cmocka_unit_test(test_live_is_not_known),
          cmocka_unit_test(test_data), cmocka_unit_test(test_overcommit), cmocka_unit_test(test_commitment),
          cmocka_unit_test(test_descriptors), cmocka_unit_test(test_file_size),
          cmocka_unit_test(test_file_size_of_messages), cmocka_unit_test(test_file_size_with_pools),
          cmocka_unit_test(test_file_size_of_verbs), cmocka_unit_test(test_locked_memory_and_stack),
          cmocka_unit_test(test_unwritable_directory), cmocka_unit_test(test_directory_of_another_user),
          cmocka_unit_test(test_full_disk), cmocka_unit_test(test_disk_fills_up), cmocka_unit_test(test_without_proc))
