/* test_record.c - heapwise record from outside: exit codes, names of files, what it refuses and how it says so; wrong
 * usage of every verb. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct run_result heapwise_in(const char *directory, const char *const arguments[])
{
    return heapwise(arguments, &(struct run_options){.directory = directory});
}

static size_t count_profiles(const char *directory)
{
    size_t count;
    free_list(list_files(directory, ".hwprof", &count));
    return count;
}

static void test_exit_codes_are_the_programs(void **state)
{
    const char *hello = need_program("hello");
    static const char *const codes[] = {"0", "1", "2", "77", "124", "125", "126", "127", "128", "255"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const char *const argv[] = {hello, codes[i], NULL};
        struct recording recording = record_and_load(argv, NULL);
        assert_exit(&recording.run, atoi(codes[i]), codes[i]);
        assert_string_equal(recording.run.out, "hello\n");
        assert_int_equal(json_number(recording.report, "process.exit.code"), atoi(codes[i]));
        recording_free(&recording);
    }
}

static void test_not_found_and_not_executable(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", "no-such-program", NULL});
    assert_exit(&result, 127, "a program that is not there");
    assert_contains(result.err, "no-such-program");
    assert_string_equal(result.out, "");
    run_result_free(&result);
    result = heapwise_in(directory, (const char *const[]){"record", "--", "./also/not/there", NULL});
    assert_exit(&result, 127, "a path that is not there");
    run_result_free(&result);

    char *file = join_path(directory, "text");
    int descriptor = open(file, O_CREAT | O_WRONLY, 0600);
    close(descriptor);
    result = heapwise_in(directory, (const char *const[]){"record", "--", "./text", NULL});
    assert_exit(&result, 126, "a file that is not executable");
    assert_contains(result.err, "text");
    run_result_free(&result);
    result = heapwise_in(directory, (const char *const[]){"record", "--", "/", NULL});
    assert_exit(&result, 126, "a directory");
    run_result_free(&result);
    assert_int_equal(count_profiles(directory), 0);
    free(file);
    remove_directory(directory);
}

/* Of what cannot be recorded: exit code 125, one clear message, nothing started, nothing written, no hang. */
static void check_refused(const char *program, const char *reason)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", program, NULL});
    assert_exit(&result, 125, program);
    assert_string_equal(result.out, "");
    assert_contains(result.err, reason);
    assert_lacks(result.err, "ERROR: ld.so");
    assert_int_equal(count_profiles(directory), 0);
    run_result_free(&result);
    remove_directory(directory);
}

static void check_static(const char *name)
{
    char *directory = make_directory();
    const char *program = need_program(name);
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", program, "3", NULL});
    if (strstr(result.err, "no permission to trace"))
        SKIP("processes cannot be traced here");
    assert_exit(&result, 3, program);
    assert_string_equal(result.out, "hello\n");
    assert_contains(result.err, "wrote ");
    assert_int_equal(count_profiles(directory), 1);
    run_result_free(&result);
    remove_directory(directory);
}

static void test_static_programs(void **state)
{
    check_static("hello-static");
    check_static("hello-static-pie");
}

static void test_static_musl_program(void **state)
{
    check_static("hello-musl-static");
}

/* With musl as the C library: recorded, or not, but then it says so; the program runs in any case. */
static void test_musl_program(void **state)
{
    const char *program = need_program("hello-musl");
    struct run_result plain = run((const char *const[]){program, "3", NULL}, NULL);
    if (plain.code != 3)
        SKIP("musl's dynamic linker is not installed");
    run_result_free(&plain);
    char *directory = make_directory();
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", program, "3", NULL});
    if (result.code == 125) {
        assert_contains(result.err, "musl");
    } else {
        assert_exit(&result, 3, "hello-musl");
        assert_string_equal(result.out, "hello\n");
        if (count_profiles(directory) == 0)
            assert_contains(result.err, "musl");
    }
    run_result_free(&result);
    remove_directory(directory);
}

/* hello, built by COMPILER with a sanitizer; NULL when that is not possible here, or does not run. */
static char *sanitized_hello(const char *directory, const char *compiler, const char *sanitizer)
{
    char option[64];
    snprintf(option, sizeof option, "-fsanitize=%s", sanitizer);
    char *program = join_path(directory, sanitizer);
    if (have_command(compiler)) {
        struct run_result built =
            run((const char *const[]){compiler, option, TEST_SOURCES "/programs/hello.c", "-o", program, NULL}, NULL);
        struct run_result plain = run((const char *const[]){built.code == 0 ? program : "false", "3", NULL}, NULL);
        const bool runs = plain.code == 3;
        run_result_free(&built);
        run_result_free(&plain);
        if (runs)
            return program;
    }
    free(program);
    return NULL;
}

/* Sanitizers that want what the runtime would have are refused; met behind another program, they run as without it. */
static void test_sanitized_programs(void **state)
{
    static const struct {
        const char *compiler, *sanitizer;
    } builds[] = {{"gcc", "address"}, {"gcc", "thread"}, {"clang", "thread"}, {"clang", "memory"}};
    size_t tried = 0;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        char *directory = make_directory();
        char *program = sanitized_hello(directory, builds[i].compiler, builds[i].sanitizer);
        if (program) {
            tried++;
            check_refused(program, "Sanitizer");
            const bool first = strcmp(builds[i].sanitizer, "address") == 0; /* wants to be the first library */
            struct run_result behind = heapwise_in(
                directory, (const char *const[]){"record", "--", first ? "true" : "env", program, "3", NULL});
            assert_exit(&behind, first ? 0 : 3, builds[i].sanitizer);
            run_result_free(&behind);
        }
        free(program);
        remove_directory(directory);
    }
    if (tried == 0)
        SKIP("no sanitizer can be built with");
}

/* Valgrind's tools would keep books of every page that is reserved: for hours. */
static void test_under_valgrind(void **state)
{
    if (!have_command("valgrind"))
        SKIP("valgrind is not installed");
    if (TEST_SANITIZED)
        SKIP("AddressSanitizer changes nothing that valgrind sees");
    char *directory = make_directory();
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-v", "--", "valgrind", "-q", need_program("hello"), "3", NULL});
    assert_exit(&result, 3, "hello under Valgrind");
    assert_string_equal(result.out, "hello\n");
    assert_contains(result.err, "not profiled: this program runs under Valgrind");
    run_result_free(&result);
    remove_directory(directory);
}

static char *copy_program(const char *directory, const char *name, const char *from)
{
    char *to = join_path(directory, name);
    struct run_result result = run((const char *const[]){"cp", from, to, NULL}, NULL);
    assert_exit(&result, 0, "cp");
    run_result_free(&result);
    return to;
}

static void become_nobody(void *closure)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(99);
}

static void test_setuid_program(void **state)
{
    char *directory = make_directory();
    char *program = copy_program(directory, "hello-setuid", need_program("hello"));
    if (geteuid() != 0)
        SKIP("needs root: a set-user-id program of another user");
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(chown(program, 1, 1), 0);
    assert_int_equal(chmod(program, 04755), 0);
    const struct run_options nobody = {.directory = directory, .prepare = become_nobody};
    struct run_result reachable = heapwise((const char *const[]){"--version", NULL}, &nobody);
    if (reachable.code != 0)
        SKIP("heapwise is where other users cannot go");
    run_result_free(&reachable);
    struct run_result result = heapwise((const char *const[]){"record", "--", program, NULL}, &nobody);
    assert_exit(&result, 125, "set-user-id program");
    assert_contains(result.err, "set-user-id");
    assert_int_equal(count_profiles(directory), 0);
    run_result_free(&result);

    /* The variable is ignored there: a profile written with the owner's rights would be a hole. */
    char *inside = join_path(directory, "forbidden");
    mkdir(inside, 0777);
    chmod(inside, 0777);
    char options[4200], preload[4200];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s/x.hwprof", inside);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    struct run_options direct = nobody;
    direct.environment = environment;
    result = run((const char *const[]){program, NULL}, &direct);
    assert_exit(&result, 0, "set-user-id program with the runtime in LD_PRELOAD");
    assert_int_equal(count_profiles(inside), 0);
    run_result_free(&result);
    free(inside);
    free(program);
    remove_directory(directory);
}

/* The same file with another machine in its header, then with another class. */
static void test_foreign_programs(void **state)
{
    char *directory = make_directory();
    char *program = copy_program(directory, "hello-foreign", need_program("hello"));
    int file = open(program, O_RDWR);
    Elf64_Half machine = EM_AARCH64;
#if defined __aarch64__
    machine = EM_X86_64;
#endif
    assert_int_equal(pwrite(file, &machine, sizeof machine, offsetof(Elf64_Ehdr, e_machine)), sizeof machine);
    close(file);
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", program, NULL});
    assert_true(result.code == 125 || result.code == 126);
    assert_contains(result.err, "aarch64");
    run_result_free(&result);

    free(program);
    program = copy_program(directory, "hello-cut", need_program("hello"));
    assert_int_equal(truncate(program, 40), 0);
    result = heapwise_in(directory, (const char *const[]){"record", "--", program, NULL});
    assert_true(result.code == 125 || result.code == 126);
    assert_contains(result.err, "hello-cut");
    run_result_free(&result);
    assert_int_equal(count_profiles(directory), 0);
    free(program);
    remove_directory(directory);
}

static void test_scripts(void **state)
{
    char *directory = make_directory();
    char *script = join_path(directory, "script");
    FILE *file = fopen(script, "w");
    fputs("#!/bin/sh\necho from a script\nexit 6\n", file);
    fclose(file);
    chmod(script, 0755);
    struct recording recording = record_and_load((const char *const[]){script, NULL}, NULL);
    assert_exit(&recording.run, 6, "a script");
    assert_string_equal(recording.run.out, "from a script\n");
    recording_free(&recording);

    file = fopen(script, "w");
    fputs("#!/no/such/interpreter\n", file);
    fclose(file);
    struct run_result result = heapwise_in(directory, (const char *const[]){"record", "--", script, NULL});
    assert_true(result.code == 125 || result.code == 126 || result.code == 127);
    assert_contains(result.err, "/no/such/interpreter");
    run_result_free(&result);

    /* no first line at all: shells and execvp run it by /bin/sh */
    file = fopen(script, "w");
    fputs("echo plain text\nexit 4\n", file);
    fclose(file);
    recording = record_and_load((const char *const[]){script, NULL}, NULL);
    assert_exit(&recording.run, 4, "a script without an interpreter");
    assert_string_equal(recording.run.out, "plain text\n");
    recording_free(&recording);
    free(script);
    remove_directory(directory);
}

/* ---- names of files ---- */

static void test_default_name(void **state)
{
    char *directory = make_directory();
    struct run_result result =
        heapwise_in(directory, (const char *const[]){"record", "--", need_program("hello"), NULL});
    assert_exit(&result, 0, "hello");
    size_t count;
    char **files = list_files(directory, ".hwprof", &count);
    assert_int_equal(count, 1);
    int pid = 0;
    const char *name = strrchr(files[0], '/') + 1;
    assert_int_equal(sscanf(name, "hello.%d.hwprof", &pid), 1);
    json_t *report = load_report(files[0], 0);
    assert_int_equal(json_number(report, "process.pid"), pid);
    assert_contains(result.err, name); /* says what it wrote */
    json_decref(report);
    free_list(files);
    run_result_free(&result);
    remove_directory(directory);
}

static void test_pattern(void **state)
{
    char *directory = make_directory();
    char host[256];
    gethostname(host, sizeof host);
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-o", "100%%-%e-%h.hwprof", "--", need_program("hello"), NULL});
    assert_exit(&result, 0, "hello");
    char name[600];
    snprintf(name, sizeof name, "%s/100%%-hello-%s.hwprof", directory, host);
    assert_int_equal(access(name, R_OK), 0);
    run_result_free(&result);

    const char *const environment[] = {"HEAPWISE_OPTIONS=output=from-variable.hwprof", NULL};
    result = heapwise((const char *const[]){"record", "--", need_program("hello"), NULL},
                      &(struct run_options){.directory = directory, .environment = environment});
    assert_exit(&result, 0, "hello");
    snprintf(name, sizeof name, "%s/from-variable.hwprof", directory);
    assert_int_equal(access(name, R_OK), 0);
    run_result_free(&result);
    remove_directory(directory);
}

/* An existing file is never overwritten without -f. */
static void test_existing_file(void **state)
{
    char *directory = make_directory();
    char *name = join_path(directory, "mine.hwprof");
    FILE *file = fopen(name, "w");
    fputs("precious", file);
    fclose(file);
    struct run_result result =
        heapwise_in(directory, (const char *const[]){"record", "-o", "mine.hwprof", "--", need_program("hello"), NULL});
    assert_contains(result.err, "mine.hwprof");
    char text[20] = "";
    file = fopen(name, "r");
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 8);
    fclose(file);
    assert_string_equal(text, "precious");
    run_result_free(&result);

    result = heapwise_in(directory,
                         (const char *const[]){"record", "-f", "-o", "mine.hwprof", "--", need_program("hello"), NULL});
    assert_exit(&result, 0, "record -f");
    json_t *report = load_report(name, 0);
    assert_int_equal(report_sums(report, "hello_work").allocations, 100);
    json_decref(report);
    run_result_free(&result);
    free(name);
    remove_directory(directory);
}

/* Reports go to stdout, everything else to stderr; -q says nothing. */
static void test_streams(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-q", "-o", "a.hwprof", "--", need_program("hello"), NULL});
    assert_exit(&result, 0, "record -q");
    assert_string_equal(result.out, "hello\n");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    result = heapwise_in(directory, (const char *const[]){"report", "a.hwprof", NULL});
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "hello_work");
    assert_lacks(result.out, "\033");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    remove_directory(directory);
}

/* Options after the program are the program's; without "--" too. */
static void test_arguments_of_the_program(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-q", "printf", "%s|", "-o", "--mode=x", "", "a b", NULL});
    assert_exit(&result, 0, "printf");
    assert_string_equal(result.out, "-o|--mode=x||a b|");
    run_result_free(&result);
    remove_directory(directory);
}

/* The program's standard input, directory, and descriptors are its own. */
static void test_input_reaches_the_program(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise((const char *const[]){"record", "-q", "--", "cat", NULL},
                                        &(struct run_options){.directory = directory, .input = "line one\nline two\n"});
    assert_exit(&result, 0, "cat");
    assert_string_equal(result.out, "line one\nline two\n");
    run_result_free(&result);
    result = heapwise_in(directory, (const char *const[]){"record", "-q", "--", "sh", "-c", "ls /proc/self/fd", NULL});
    assert_exit(&result, 0, "sh");
    /* 3 is ls's own; Heapwise's is far from where programs look */
    for (const char *line = result.out; *line; line = strchr(line, '\n') + 1)
        assert_true(atoi(line) <= 3 || atoi(line) >= 200);
    assert_contains(result.out, "0\n1\n");
    run_result_free(&result);
    remove_directory(directory);
}

/* ---- usage ---- */

static void check_usage(const char *const arguments[], int code)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(directory, arguments);
    assert_exit(&result, code, run_describe(arguments));
    if (code != 0) {
        if (result.err_size == 0)
            fail_msg("%s: exit code %d without a word", run_describe(arguments), code);
        assert_string_equal(result.out, "");
    }
    run_result_free(&result);
    remove_directory(directory);
}
#define USAGE(code, ...) check_usage((const char *const[]){__VA_ARGS__, NULL}, code)

static void test_usage(void **state)
{
    check_usage((const char *const[]){NULL}, 2);
    USAGE(2, "no-such-verb");
    USAGE(2, "--no-such-option");
    USAGE(2, "report");
    USAGE(2, "report", "--no-such-option", "x");
    USAGE(2, "report", "--top", "many", "x");
    USAGE(2, "report", "--sort", "nonsense", "x");
    USAGE(2, "report", "/no/such/file");
    USAGE(2, "report", "/");
    USAGE(2, "report", "/dev/null");
    USAGE(2, "report", "/etc/passwd");
    USAGE(2, "report", "--json", "/etc/passwd");
}

/* record reports its own trouble with 125: 2 could be the program's. */
static void test_usage_of_record(void **state)
{
    USAGE(125, "record");
    USAGE(125, "record", "--");
    USAGE(125, "record", "--no-such-option", "true");
    USAGE(125, "record", "--mode", "nonsense", "true");
    USAGE(125, "record", "--sample-bytes=nonsense", "true");
    USAGE(125, "record", "--table=nonsense", "true");
    USAGE(125, "record", "--sysroot=/", "true"); /* what they belong to was not asked for */
    USAGE(125, "record", "--no-debuginfod", "true");
    USAGE(125, "record", "--no-prediction", "true");
}

static void test_help(void **state)
{
    static const char *const verbs[] = {"record", "report", "doctor"};
    struct run_result result = heapwise((const char *const[]){"--version", NULL}, NULL);
    assert_exit(&result, 0, "--version");
    assert_contains(result.out, "0.");
    run_result_free(&result);
    result = heapwise((const char *const[]){"--help", NULL}, NULL);
    assert_exit(&result, 0, "--help");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        assert_contains(result.out, verbs[i]);
    run_result_free(&result);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        result = heapwise((const char *const[]){verbs[i], "--help", NULL}, NULL);
        assert_exit(&result, 0, verbs[i]);
        assert_contains(result.out, verbs[i]);
        assert_string_equal(result.err, "");
        run_result_free(&result);
    }
    const char *const environment[] = {"HEAPWISE_OPTIONS=help=1", NULL};
    struct recording recording =
        record_and_load((const char *const[]){need_program("hello"), NULL},
                        &(struct record_options){.run.environment = environment, .no_report = true});
    assert_exit(&recording.run, 0, "hello with help=1");
    assert_contains(recording.run.err, "sample-bytes");
    assert_false(strstr(recording.run.err, "block-table")); /* for tests */
    assert_string_equal(recording.run.out, "hello\n");
    recording_free(&recording);
}

static void test_doctor(void **state)
{
    struct run_result result = heapwise((const char *const[]){"doctor", NULL}, NULL);
    assert_true(result.code == 0 || result.code == 1);
    assert_true(result.out_size > 100);
    run_result_free(&result);
}

/* The same runtime without `record`: LD_PRELOAD and the variable are enough. */
static void test_without_record(void **state)
{
    char *directory = make_directory();
    char options[4200], preload[4200];
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s/direct.hwprof", directory);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    struct run_result result =
        run((const char *const[]){need_program("hello"), "5", NULL}, &(struct run_options){.environment = environment});
    assert_exit(&result, 5, "hello with the runtime preloaded");
    assert_string_equal(result.out, "hello\n");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    char *file = join_path(directory, "direct.hwprof");
    json_t *report = load_report(file, 0);
    assert_int_equal(report_sums(report, "hello_work").allocations, 100);
    json_decref(report);
    free(file);
    remove_directory(directory);
}

/* Unknown keys of the variable are said, and harm nothing. */
static void test_unknown_option(void **state)
{
    struct recording recording = record_and_load((const char *const[]){need_program("hello"), NULL},
                                                 &(struct record_options){.options = "no-such-key=1"});
    assert_exit(&recording.run, 0, "hello");
    assert_contains(recording.run.err, "no-such-key");
    assert_int_equal(report_sums(recording.report, "hello_work").allocations, 100);
    recording_free(&recording);
}

/* ---- sorting, limiting, several files ---- */

static void test_report_options(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-q", "-o", "a.hwprof", "--", need_program("hello"), NULL});
    run_result_free(&result);
    result = heapwise_in(directory, (const char *const[]){"report", "--json", "--top", "1", "a.hwprof", NULL});
    assert_exit(&result, 0, "report --top 1");
    json_t *report = json_loads(result.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(report, "contexts")), 1);
    json_decref(report);
    run_result_free(&result);
    /* What is wrong is said, with what would be right; and nothing looks like a report. */
    static const struct {
        const char *arguments[5], *said;
    } wrong[] = {{{"report", "--sysroot", "/no/such/root", "a.hwprof"}, "/no/such/root: No such file"},
                 {{"report", "--binary", "/no/such/file", "a.hwprof"}, "/no/such/file: No such file"},
                 {{"report", "--section", "bogus", "a.hwprof"}, "never-accessed"},
                 {{"report", "--function", "no_such", "a.hwprof"}, "write the name as the report shows it"},
                 {{"report", "--function", "mian", "a.hwprof"}, "; nearest: main"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        result = heapwise_in(directory, wrong[i].arguments);
        assert_exit(&result, 2, wrong[i].said);
        assert_contains(result.err, wrong[i].said);
        assert_string_equal(result.out, "");
        run_result_free(&result);
    }
    static const char *const keys[] = {"peak", "bytes", "count"};
    for (size_t i = 0; i < 3; i++) {
        result = heapwise_in(directory, (const char *const[]){"report", "--sort", keys[i], "a.hwprof", NULL});
        assert_exit(&result, 0, keys[i]);
        run_result_free(&result);
    }
    remove_directory(directory);
}

static void test_quiet_everywhere(void **state)
{
    char *directory = make_directory();
    struct run_result result = heapwise_in(
        directory, (const char *const[]){"record", "-q", "-o", "a.hwprof", "--", need_program("hello"), NULL});
    assert_exit(&result, 0, "record -q");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    static const char *const verbs[][6] = {
        {"report", "-q", "a.hwprof"},
        {"view", "-q", "a.hwprof", "-o", "a.html"},
        {"merge", "-q", "-o", "b.hwprof", "a.hwprof"},
        {"fields", "-q", "a.hwprof"},
        {"diff", "-q", "a.hwprof", "a.hwprof"},
        {"check", "-q", "a.hwprof"},
        {"export", "-q", "--format=csv", "a.hwprof"},
        {"dump", "-q", "1"},
        {"doctor", "-q"},
        {"allocators", "-q", "--help"},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        result = heapwise_in(directory, verbs[i]);
        assert_lacks(result.err, "invalid option");
        assert_lacks(result.err, "Usage");
        run_result_free(&result);
    }
    remove_directory(directory);
}

static void test_a_file_that_is_being_written(void **state)
{
    char *directory = make_directory(), *file = join_path(directory, "a.hwprof");
    const char *const argv[] = {heapwise_path(), "record", "-q", "-o", file, "--", "sleep", "300", NULL};
    struct run_process first = run_start(argv, NULL);
    struct run_result result = {0};
    bool running = false;
    for (int i = 0; i < 1000 && !running; i++) { /* it is there, and says whose it is */
        run_result_free(&result);
        usleep(10000);
        result = heapwise((const char *const[]){"report", "--json", file, NULL}, NULL);
        running = result.code == 0 && strstr(result.out, "\"running\"");
    }
    assert_exit(&result, 0, "the report of a file that is being written");
    assert_true(running);
    run_result_free(&result);
    result =
        heapwise_in(directory, (const char *const[]){"record", "-f", "-o", file, "--", need_program("hello"), NULL});
    assert_exit(&result, 125, "record -f");
    assert_contains(result.err, "is being written by process");
    run_result_free(&result);
    kill(first.pid, SIGTERM);
    result = run_finish(&first, 0);
    run_result_free(&result);
    free(file);
    remove_directory(directory);
}

static void close_output(void *closure)
{
    close(1);
}

static void test_a_report_that_is_lost(void **state)
{
    char *directory = make_directory(), *file = join_path(directory, "a.hwprof");
    const char *const arguments[] = {"record", "--report", "-o", file, "--", "true", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.prepare = close_output});
    assert_exit(&result, 0, "record --report");
    assert_contains(result.err, "the report is lost");
    run_result_free(&result);
    free(file);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_quiet_everywhere), cmocka_unit_test(test_a_file_that_is_being_written),
          cmocka_unit_test(test_a_report_that_is_lost), cmocka_unit_test(test_exit_codes_are_the_programs),
          cmocka_unit_test(test_not_found_and_not_executable), cmocka_unit_test(test_static_programs),
          cmocka_unit_test(test_static_musl_program), cmocka_unit_test(test_musl_program),
          cmocka_unit_test(test_setuid_program), cmocka_unit_test(test_sanitized_programs),
          cmocka_unit_test(test_under_valgrind), cmocka_unit_test(test_foreign_programs),
          cmocka_unit_test(test_scripts), cmocka_unit_test(test_default_name), cmocka_unit_test(test_pattern),
          cmocka_unit_test(test_existing_file), cmocka_unit_test(test_streams),
          cmocka_unit_test(test_arguments_of_the_program), cmocka_unit_test(test_input_reaches_the_program),
          cmocka_unit_test(test_usage), cmocka_unit_test(test_usage_of_record), cmocka_unit_test(test_help),
          cmocka_unit_test(test_doctor), cmocka_unit_test(test_without_record), cmocka_unit_test(test_unknown_option),
          cmocka_unit_test(test_report_options))
