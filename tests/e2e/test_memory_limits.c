/* test_memory_limits.c - processes near a limit of memory: record --dump-at, and the end by the kernel's OOM killer. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1u << 20)

static void put(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

/* ---- a cgroup that is a directory ---- */

struct group {
    char *directory, *current, *profile, *dumps[3];
    char options[4096], preload[600];
};

static struct group make_group(void)
{
    struct group group = {.directory = make_directory()};
    char line[2048];
    group.current = join_path(group.directory, "memory.current");
    group.profile = join_path(group.directory, "p.hwprof");
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "p.dump%d.hwprof", i + 1);
        group.dumps[i] = join_path(group.directory, line);
    }
    put(group.directory, "cgroup", "0::/\n");
    snprintf(line, sizeof line, "30 25 0:26 / %s rw - cgroup2 cgroup2 rw\n", group.directory);
    put(group.directory, "mountinfo", line);
    put(group.directory, "memory.current", "010000000\n");
    put(group.directory, "memory.max", "100000000\n");
    snprintf(group.options, sizeof group.options, "HEAPWISE_OPTIONS=dump-at=90:cgroup-from=%s:output=%s",
             group.directory, group.profile);
    snprintf(group.preload, sizeof group.preload, "LD_PRELOAD=%s", runtime_path());
    return group;
}

static struct run_result run_in(struct group *group, const char *const argv[])
{
    const char *const environment[] = {group->options, group->preload, NULL};
    return run(argv, &(struct run_options){.environment = environment, .timeout_s = 200});
}

static void group_free(struct group *group)
{
    for (int i = 0; i < 3; i++)
        free(group->dumps[i]);
    free(group->current);
    free(group->profile);
    remove_directory(group->directory);
}

static const json_t *finding_of(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings");
    for (size_t i = 0; i < json_array_size(findings); i++)
        if (!strcmp(json_text(json_array_get(findings, i), "kind"), "out-of-memory"))
            return json_array_get(findings, i);
    return NULL;
}

/* One dump each time that the mark is passed, none while memory stays beyond it. */
static void test_passes_twice(void **state)
{
    struct group group = make_group();
    const char *const argv[] = {need_program("memory_limits"), "steps", group.current, group.dumps[0], group.dumps[1],
                                NULL};
    struct run_result result = run_in(&group, argv);
    assert_int_equal(result.code, 0);
    assert_int_equal(access(group.dumps[1], F_OK), 0);
    assert_int_not_equal(access(group.dumps[2], F_OK), 0);
    json_t *dump = load_report(group.dumps[0], 0), *report = load_report(group.profile, 0);
    assert_string_equal(json_text(dump, "process.state"), "dumped");
    const json_t *note = json_array_get(json_object_get(dump, "notes"), 0);
    assert_string_equal(json_text(note, "kind"), "dump-at");
    assert_string_equal(json_text(note, "text"), "memory of the cgroup passed 90 % of its limit: 90.6 MiB of 95.4 MiB");
    assert_null(finding_of(report)); /* it ended by itself */
    json_decref(dump);
    json_decref(report);
    run_result_free(&result);
    group_free(&group);
}

/* It begins beyond the mark: it has not passed it. A cgroup whose memory is files that can be dropped has not either. */
static void test_does_not_pass(void **state)
{
    for (int files = 0; files < 2; files++) {
        struct group group = make_group();
        put(group.directory, "memory.current", files ? "010000000\n" : "095000000\n");
        if (files)
            put(group.directory, "memory.stat", "inactive_file 50000000\n");
        const char *const argv[] = {need_program("memory_limits"), files ? "still" : "stays", group.current, NULL};
        struct run_result result = run_in(&group, argv);
        assert_int_equal(result.code, 0);
        assert_int_equal(access(group.profile, F_OK), 0);
        assert_int_not_equal(access(group.dumps[0], F_OK), 0);
        run_result_free(&result);
        group_free(&group);
    }
}

/* Killed with nobody there who saw it. */
static void test_end_not_seen(void **state)
{
    struct group group = make_group();
    const char *const argv[] = {need_program("memory_limits"), "killed", group.current, group.dumps[0], NULL};
    struct run_result result = run_in(&group, argv);
    assert_int_equal(result.signal, SIGKILL);
    json_t *report = load_report(group.profile, 0);
    const json_t *finding = finding_of(report);
    assert_non_null(finding);
    assert_true(json_is_false(json_object_get(finding, "certain")));
    assert_non_null(strstr(json_text(finding, "title"), "may have run out of memory"));
    assert_non_null(strstr(json_text(finding, "why"), "passed 90 % of its limit"));
    json_decref(report);
    run_result_free(&result);
    group_free(&group);
}

/* ---- limits of the process ---- */

/* The limit holds for the program only if LIMITS is NULL: it is set by a shell that executes it. */
static void record_limited(const struct run_limit *limits, const char *const *more, const char *what)
{
    char *directory = make_directory(), *file = join_path(directory, "%e.hwprof"),
         *dump = join_path(directory, "memory_limits.dump1.hwprof");
    const char *argv[32] = {heapwise_path(), "record", "-o", file, "--dump-at=70%"};
    const char *const program[] = {"--", "sh", "-c", "ulimit -d 307200 && exec \"$0\" \"$@\"",
                                   need_program("memory_limits"), "keep", "250", dump, NULL};
    size_t count = 5;
    while (more && *more)
        argv[count++] = *more++;
    for (size_t i = 0; program[i]; i++)
        if (!limits || !i || i > 3)
            argv[count++] = program[i];
    struct run_result result = run(argv, &(struct run_options){.limits = limits, .timeout_s = 200});
    if (result.code != 0)
        fail_msg("%s: %s", run_describe(argv), result.err);
    assert_non_null(strstr(result.err, "wrote 1 dump, taken during the run"));
    if (limits)
        assert_null(strstr(result.err, "memory has no limit"));
    json_t *report = load_report(dump, 0);
    const json_t *notes = json_object_get(report, "notes");
    bool found = false;
    for (size_t i = 0; i < json_array_size(notes); i++)
        found |= strstr(json_text(json_array_get(notes, i), "text"), what) != NULL;
    assert_true(found);
    const json_t *process = json_object_get(report, "process");
    if (!strcmp(json_text(process, "mode"), "heap") && !json_object_get(process, "sample_bytes")) {
        const int64_t live = json_number(report, "totals.live_bytes");
        assert_true(live > 50 * MIB && live < 250 * MIB);
    }
    json_decref(report);
    run_result_free(&result);
    free(dump);
    free(file);
    remove_directory(directory);
}

static void test_data(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    SKIP("AddressSanitizer reserves more memory than the limit of the test");
#endif
    record_limited((const struct run_limit[]){{RLIMIT_DATA, 300 * MIB}, {-1, 0}}, NULL, "data passed 70 % of its limit");
}

static void test_address_space(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    SKIP("AddressSanitizer reserves more address space than the limit of the test");
#endif
    record_limited((const struct run_limit[]){{RLIMIT_AS, 400 * MIB}, {-1, 0}}, NULL,
                   "address space passed 70 % of its limit");
}

/* With what else a dump can hold, and in the other modes. */
static void test_with_other_options(void **state)
{
    static const char *const rows[][5] = {{"--contents", "--pinned", NULL},
                                          {"--keeps", "--free-stacks", NULL},
                                          {"--leaks", "--table=100", NULL},
                                          {"--sample-bytes=64K", NULL},
                                          {"--mode=allocator", "--no-prediction", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        record_limited(NULL, rows[i], "data passed 70 % of its limit");
}

static void test_wrong_values(void **state)
{
    static const char *const values[] = {"--dump-at=0%", "--dump-at=100%", "--dump-at=90%%", "--dump-at=x",
                                         "--dump-at=",   "--dump-at=%",    "--dump-at=-1%",  "--dump-at=9 0%"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *const argv[] = {heapwise_path(), "record", values[i], "true", NULL};
        struct run_result result = run(argv, NULL);
        assert_int_equal(result.code, 125);
        assert_non_null(strstr(result.err, "from 1% to 99%"));
        run_result_free(&result);
    }
    char preload[4300];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {"HEAPWISE_OPTIONS=dump-at=999:output=/dev/null/none", preload, NULL};
    struct run_result result =
        run((const char *const[]){need_program("hello"), NULL}, &(struct run_options){.environment = environment});
    assert_non_null(strstr(result.err, "dump-at takes a percentage"));
    run_result_free(&result);
}

/* ---- a cgroup of the kernel ---- */

static char group_path[1200];

static bool write_to(const char *name, const char *text)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", group_path, name);
    const int file = open(path, O_WRONLY);
    const bool fine = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return fine;
}

/* In the child, just before it is executed. */
static void enter(void *closure)
{
    write_to("cgroup.procs", "0");
}

/* One below that of this process, with 100 MiB and no swap. "" or why there is none. */
static const char *make_kernel_group(void)
{
    char line[1024], group[1024] = "", base[64] = "";
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *path = strstr(line, ":memory:");
        if (path) {
            snprintf(base, sizeof base, "/sys/fs/cgroup/memory");
            snprintf(group, sizeof group, "%s", path + 8);
        } else if (!strncmp(line, "0::", 3) && !*base) {
            snprintf(base, sizeof base, "/sys/fs/cgroup");
            snprintf(group, sizeof group, "%s", line + 3);
        }
    }
    if (file)
        fclose(file);
    snprintf(group_path, sizeof group_path, "%s%s/heapwise-test-%d", base, group, (int)getpid());
    if (!*base || mkdir(group_path, 0700) != 0)
        return "no cgroup can be made here";
    const bool second = !strcmp(base, "/sys/fs/cgroup");
    if (write_to(second ? "memory.max" : "memory.limit_in_bytes", "104857600")) {
        write_to(second ? "memory.swap.max" : "memory.memsw.limit_in_bytes", second ? "0" : "104857600");
        return "";
    }
    rmdir(group_path);
    return "cgroups have no limit of memory here";
}

/* Skips the test where there is none. */
static void need_kernel_group(void)
{
#ifdef __SANITIZE_ADDRESS__
    SKIP("AddressSanitizer's tools need more memory than the cgroup of the test has");
#endif
    const char *why = make_kernel_group();
    if (*why)
        SKIP("%s", why);
}

static struct run_result run_in_kernel_group(const char *const argv[], const char *const *environment)
{
    struct run_result result =
        run(argv, &(struct run_options){.environment = environment, .prepare = enter, .timeout_s = 200});
    for (int i = 0; i < 1000 && rmdir(group_path) != 0; i++)
        usleep(10000); /* the last process is still leaving it */
    if (result.code == 0 && !strstr(result.err, "out of memory"))
        SKIP("cgroups have no limit of memory here"); /* it could not be entered, or the machine swaps */
    return result;
}

static void test_oom_killer(void **state)
{
    const char *program = need_program("memory_limits");
    need_kernel_group();
    char *directory = make_directory(), *profile = join_path(directory, "p.hwprof"),
         *dump = join_path(directory, "p.dump1.hwprof");
    const char *const argv[] = {heapwise_path(), "record", "-o", profile, "--dump-at=50%", "--",
                                program,         "grow",   "400", NULL};
    struct run_result result = run_in_kernel_group(argv, NULL);
    assert_int_equal(result.code, 128 + SIGKILL);
    assert_non_null(strstr(result.err, "out of memory: the kernel ended 1 process of this cgroup"));
    json_t *report = load_report(profile, 0);
    assert_int_equal(json_number(report, "process.exit.signal"), SIGKILL);
    assert_true(json_number(report, "process.exit.oom_kills") >= 1);
    const json_t *finding = finding_of(report);
    assert_non_null(finding);
    assert_true(json_is_true(json_object_get(finding, "certain")));
    assert_int_equal(json_number(finding, "rank"), 1);
    assert_non_null(strstr(json_text(finding, "why"), "live memory grew from"));
    assert_true(json_array_size(json_object_get(finding, "contexts")) >= 1);
    const char *const text_argv[] = {heapwise_path(), "report", profile, NULL};
    struct run_result text = run(text_argv, NULL);
    assert_non_null(strstr(text.out, "killed by signal 9 (SIGKILL): out of memory"));
    assert_non_null(strstr(text.out, "Out of memory: the kernel's OOM killer ended the process"));
    json_t *dumped = load_report(dump, 0);
    assert_string_equal(json_text(dumped, "process.state"), "dumped");
    json_decref(dumped);
    json_decref(report);
    run_result_free(&text);
    run_result_free(&result);
    free(dump);
    free(profile);
    remove_directory(directory);
}

/* Nothing but the runtime is there. */
static void test_oom_killer_not_seen(void **state)
{
    const char *program = need_program("memory_limits");
    need_kernel_group();
    struct group group = make_group(); /* of it, only the names */
    char options[2048];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s", group.profile);
    const char *const environment[] = {options, group.preload, NULL}, *const argv[] = {program, "grow", "400", NULL};
    struct run_result result = run_in_kernel_group(argv, environment);
    assert_int_equal(result.signal, SIGKILL);
    json_t *report = load_report(group.profile, 0);
    const json_t *finding = finding_of(report);
    assert_non_null(finding);
    assert_true(json_is_false(json_object_get(finding, "certain")));
    assert_non_null(strstr(json_text(finding, "why"), "with a limit of 100.0 MiB"));
    json_decref(report);
    run_result_free(&result);
    group_free(&group);
}

TEST_LIST(cmocka_unit_test(test_passes_twice), cmocka_unit_test(test_does_not_pass), cmocka_unit_test(test_end_not_seen),
          cmocka_unit_test(test_data), cmocka_unit_test(test_address_space), cmocka_unit_test(test_with_other_options),
          cmocka_unit_test(test_wrong_values), cmocka_unit_test(test_oom_killer),
          cmocka_unit_test(test_oom_killer_not_seen))
