/* test_run.c - heapwise run: configurations reach programs; each setting of each installed allocator takes effect, or
 * is at least one that the allocator knows. */
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/installed.h"
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"
#include "tuning/settings.h"

static char folder[] = "/tmp/heapwise-run-XXXXXX", config[64];
static struct hw_settings settings;

static int set_up(void **state)
{
    char path[PATH_MAX];
    struct hw_error error = {""};
    if (!mkdtemp(folder))
        return -1;
    snprintf(config, sizeof config, "%s/tuned.conf", folder);
    snprintf(path, sizeof path, "%s", heapwise_path());
    char *slash = strrchr(path, '/');
    snprintf(slash, sizeof path - (size_t)(slash - path), "/../share/heapwise/settings");
    if (!hw_settings_add_folder(&settings, path, &error) || !settings.count)
        fail_msg("%s: %s", path, error.message);
    return 0;
}

static int tear_down(void **state)
{
    unlink(config);
    rmdir(folder);
    hw_settings_free(&settings);
    return 0;
}

static void write_config(const char *text)
{
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static struct run_result run_with(const char *const program[], const char *const environment[])
{
    const char *argv[16] = {heapwise_path(), "run", "-c", config, "--"};
    for (size_t i = 0; program[i]; i++)
        argv[5 + i] = program[i];
    return run(argv, &(struct run_options){.environment = environment});
}

static bool says(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    while (at && at[strlen(line)] != '\n' && at[strlen(line)] != ' ')
        at = strstr(at + 1, line);
    return at != NULL;
}

/* ---- each setting ---- */

/* Whether the library at PATH has WORD in it. */
static bool file_has(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)size);
    const bool fine = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size &&
                      memmem(bytes, (size_t)size, word, strlen(word) + 1);
    free(bytes);
    fclose(file);
    return fine;
}

static const char *dynamic_linker(void)
{
    static const char path[] = "/lib64/ld-linux-x86-64.so.2";
    return access(path, X_OK) == 0 ? path : NULL;
}

/* What the allocator itself says of its settings when it runs, for WAY. */
static struct run_result ask(const struct hw_setting *setting)
{
    const char *const self[] = {program_path("settings"), NULL};
    const char *const linker[] = {dynamic_linker(), "--list-tunables", NULL};
    static const char *const environment[] = {"MALLOC_CONF=stats_print:true", "MIMALLOC_VERBOSE=1", "HEAPWISE_OPTIONS",
                                              NULL};
    return run_with(setting->way == HW_SETTING_TUNABLE ? linker : self, environment);
}

/* The line that shows it: "opt.narenas: 1", "option 'purge_delay': 0". "": the allocator shows nothing. */
static void expected_line(char *line, size_t size, const struct hw_setting *setting, const char *value)
{
    line[0] = '\0';
    if (setting->way == HW_SETTING_TUNABLE) {
        snprintf(line, size, "%s: 0x%lx", setting->target, strtoul(value, NULL, 0));
    } else if (setting->way == HW_SETTING_CONF) {
        const bool quoted = isalpha((unsigned char)*value) && strcmp(value, "true") != 0;
        snprintf(line, size, quoted ? "opt.%s: \"%s\"" : "opt.%s: %s", setting->target, value);
    } else if (setting->way == HW_SETTING_PRCTL) {
        snprintf(line, size, "thp-disable 1");
    } else if (strncmp(setting->target, "MIMALLOC_", 9) == 0) {
        const int length = snprintf(line, size, "option '%s': %s", setting->target + 9, value);
        for (int i = 8; i < length && line[i] != '\''; i++)
            line[i] = (char)tolower((unsigned char)line[i]);
    } else if (strcmp(setting->target, "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES") == 0 ||
               strcmp(setting->target, "TCMALLOC_AGGRESSIVE_DECOMMIT") == 0) {
        snprintf(line, size, "%s %s", setting->target, strcmp(value, "true") == 0 ? "1" : value);
    }
}

/* mimalloc from 2.1 on: what it prints is not known here, but the names of its options are in the library. */
static bool knows_newer(const struct hw_allocator *allocator, const struct hw_setting *setting)
{
    char option[HW_SETTING_TEXT];
    if (!allocator || strcmp(setting->allocator, "mimalloc") != 0 ||
        hw_version_compare(allocator->facts.version, "2.1") < 0)
        return false;
    snprintf(option, sizeof option, "%s", setting->target + strlen("MIMALLOC_"));
    for (char *at = option; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return file_has(allocator->facts.path, option);
}

static void check_value(const struct hw_allocator *allocator, const struct hw_setting *setting, const char *value)
{
    char text[512], line[256];
    snprintf(text, sizeof text, "allocator = %s\n%s = %s\n", allocator ? allocator->name : "own", setting->name, value);
    write_config(text);
    struct run_result result = ask(setting);
    assert_exit(&result, 0, text);
    if (strstr(result.err, "<jemalloc>") || strstr(result.err, "invalid value"))
        fail_msg("with %s the allocator says: %s", text, result.err);
    expected_line(line, sizeof line, setting, value);
    if (*line && !says(result.out, line) && !says(result.err, line) && !knows_newer(allocator, setting))
        fail_msg("with %s there is no line \"%s\" in: %s%s", text, line, result.out, result.err);
    if (!*line && !file_has(allocator->facts.path, setting->target)) {
        char library[PATH_MAX]; /* tbbmalloc: behind its proxy */
        snprintf(library, sizeof library, "%s", allocator->facts.path);
        char *proxy = strstr(library, "_proxy");
        if (proxy)
            memmove(proxy, proxy + 6, strlen(proxy + 6) + 1);
        if (!proxy || !file_has(library, setting->target))
            fail_msg("%s does not know %s", allocator->facts.path, setting->target);
    }
    run_result_free(&result);
}

static void check_settings(const struct hw_allocator *allocator)
{
    const struct hw_setting *of[64];
    const size_t count = hw_settings_of(&settings, allocator ? allocator->facts.name : HW_SETTINGS_KERNEL,
                                        allocator ? allocator->facts.version : "", of, 64);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < of[i]->value_count && !of[i]->on_request; k++) /* not every machine permits those */
            check_value(allocator, of[i], of[i]->values[k]);
    print_message("%s: %zu settings\n", allocator ? allocator->name : "kernel", count);
}

static void test_settings_take_effect(void **state)
{
    struct hw_allocators allocators;
    struct hw_error error = {""};
    if (!dynamic_linker())
        SKIP("the dynamic linker is not at its usual place");
    if (!hw_allocators_find(&allocators, NULL, &error))
        fail_msg("%s", error.message);
    for (size_t i = 0; i < allocators.count; i++) {
        if (allocators.of[i].problem[0])
            fail_msg("%s: %s", allocators.of[i].name, allocators.of[i].problem);
        check_settings(&allocators.of[i]);
    }
    hw_allocators_free(&allocators);
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0)
        check_settings(NULL);
}

/* ---- the verb ---- */

static void test_the_process_becomes_the_program(void **state)
{
    write_config("allocator = own\n");
    struct run_result result = run_with((const char *const[]){program_path("settings"), "exit", "7", NULL}, NULL);
    assert_exit(&result, 7, "exit 7");
    run_result_free(&result);

    write_config("allocator = glibc\nhugetlb = 1\narena_max = 2\n");
    result = run_with((const char *const[]){"sh", "-c", "echo $GLIBC_TUNABLES $0 $1; kill -TERM $$", "a b", "c", NULL},
                      (const char *const[]){"GLIBC_TUNABLES=glibc.malloc.top_pad=1", NULL});
    assert_int_equal(result.signal, 15);
    assert_string_equal(result.out, "glibc.malloc.top_pad=1:glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2 a b c\n");
    assert_string_equal(result.err, "");
    run_result_free(&result);

    /* A script without "#!", as execvp runs it. */
    char script[80];
    snprintf(script, sizeof script, "%s/script", folder);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fputs("echo script $1\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(script, 0755), 0);
    result = run_with((const char *const[]){script, "with", NULL}, NULL);
    unlink(script);
    assert_exit(&result, 0, "a script");
    assert_string_equal(result.out, "script with\n");
    run_result_free(&result);
}

static void test_what_cannot_be_is_said(void **state)
{
    static const struct {
        const char *config, *program;
        int code;
        const char *message;
    } cases[] = {
        {"allocator = glibc\narenas = 1\n", "true", 2, "line 2: glibc has no setting \"arenas\" (known: hugetlb,"},
        {"arena_max = 1\n", "true", 2, "there is no line \"allocator = NAME\""},
        {"allocator = none\n", "true", 2, "a line \"library = PATH\" is needed"},
        {"allocator = a\nlibrary = /nonexistent/lib.so\n", "true", 125,
         "heapwise: run: /nonexistent/lib.so cannot be loaded, or has no malloc\n"},
        {"allocator = a\nlibrary = libm.so.6\n", "true", 125, "libm.so.6 cannot be loaded, or has no malloc\n"},
        {"allocator = a\nlibrary = a:b\n", "true", 2, "LD_PRELOAD cannot express this name"},
        {"allocator = own\n", "/nonexistent/program", 127, "/nonexistent/program"},
        {"allocator = own\n", "/etc/passwd", 126, "not executable"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_config(cases[i].config);
        struct run_result result = run_with((const char *const[]){cases[i].program, NULL}, NULL);
        assert_exit(&result, cases[i].code, cases[i].config);
        if (!strstr(result.err, cases[i].message))
            fail_msg("\"%s\" for: %s", result.err, cases[i].config);
        run_result_free(&result);
    }
}

static void test_a_setting_of_another_version(void **state)
{
    char path[80], own[64];
    snprintf(own, sizeof own, "%s/own", folder);
    assert_int_equal(mkdir(own, 0700), 0);
    snprintf(path, sizeof path, "%s/glibc.conf", own);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[coming]\nset = tunable glibc.malloc.coming\nvalues = 1\nsince = 99.1\n", file);
    assert_int_equal(fclose(file), 0);
    write_config("allocator = glibc\ncoming = 1\n");
    const char *const argv[] = {heapwise_path(), "run", "--config", config, "--settings", own, "true", NULL};
    struct run_result result = run(argv, NULL);
    unlink(path);
    rmdir(own);
    assert_exit(&result, 125, "a setting of the future");
    if (!strstr(result.err, "has no setting coming (since 99.1)\n"))
        fail_msg("%s", result.err);
    run_result_free(&result);
}

static void test_set_user_id_is_refused(void **state)
{
    char path[80];
    if (getuid() != 0)
        SKIP("needs root: a program of another user");
    snprintf(path, sizeof path, "%s/other", folder);
    const char *const copy[] = {"cp", program_path("settings"), path, NULL};
    struct run_result result = run(copy, NULL);
    assert_exit(&result, 0, "cp");
    run_result_free(&result);
    if (chown(path, 12345, 12345) != 0 || chmod(path, 04755) != 0) {
        unlink(path); /* a container that has only one user */
        print_message("files of other users cannot be made here\n");
        return;
    }
    write_config("allocator = glibc\nhugetlb = 1\n");
    result = run_with((const char *const[]){path, NULL}, NULL);
    unlink(path);
    if (result.code == 0) { /* a file system without such rights, or no_new_privs */
        run_result_free(&result);
        print_message("set-user-id does not count here\n");
        return;
    }
    assert_exit(&result, 125, "set-user-id");
    if (!strstr(result.err, "is set-user-id: for such programs the system ignores LD_PRELOAD and GLIBC_TUNABLES"))
        fail_msg("%s", result.err);
    run_result_free(&result);
}

static struct run_result show(const char *form)
{
    const char *const argv[] = {heapwise_path(), "run", "--config", config, "--show", form, NULL};
    return run(argv, NULL);
}

static void test_processors(void **state)
{
    cpu_set_t all;
    char text[128], line[128];
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    snprintf(text, sizeof text, "allocator = own\nprocessors = %d\n", first);
    snprintf(line, sizeof line, "Cpus_allowed_list:\t%d\n", first);
    write_config(text);
    struct run_result result =
        run_with((const char *const[]){"grep", "Cpus_allowed_list", "/proc/self/status", NULL}, NULL);
    assert_exit(&result, 0, text);
    assert_string_equal(result.out, line);
    run_result_free(&result);
    write_config("allocator = own\nprocessors = 0,1023\nnuma = interleave\n");
    result = show("systemd");
    assert_exit(&result, 0, "systemd");
    assert_string_equal(result.out, "# as it is, processors 0,1023, numa interleave\n# systemctl edit UNIT\n[Service]\n"
                                    "CPUAffinity=0,1023\nNUMAPolicy=interleave\nNUMAMask=all\n");
    run_result_free(&result);
    result = show("docker");
    if (!strstr(result.out, "# docker run --cpuset-cpus=0,1023 IMAGE\n# numactl --interleave=all PROGRAM\n"))
        fail_msg("%s", result.out);
    run_result_free(&result);
}

/* Settings of glibc, where the environment has another malloc already. */
static void test_other_malloc_in_the_environment(void **state)
{
    char preload[4200];
    if (TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", need_program("libfakemalloc.so"));
    write_config("allocator = glibc\nhugetlb = 1\n");
    struct run_result result = run_with((const char *const[]){"true", NULL}, (const char *const[]){preload, NULL});
    assert_exit(&result, 125, "with another malloc");
    if (!strstr(result.err, "replaces the malloc of glibc"))
        fail_msg("%s", result.err);
    run_result_free(&result);
}

/* ---- text to paste ---- */

#define RIGHTS "# Programs with more rights than their user (set-user-ID, file capabilities) ignore such variables.\n"
#define HEAD   "# mine, narenas 1, thp always, kernel-thp off\n"
#define KERNEL                                                                                                         \
    "# kernel-thp is not in the environment: start the program by heapwise run, or let it call\n"                      \
    "# prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) first.\n"

static void test_text_to_paste(void **state)
{
    static const struct {
        const char *form, *text;
    } cases[] = {
        {"shell", HEAD "export LD_PRELOAD=/opt/50%/libmine.so${LD_PRELOAD:+:$LD_PRELOAD}\n"
                       "export MALLOC_CONF=${MALLOC_CONF:+$MALLOC_CONF,}narenas:1,thp:always\n" KERNEL RIGHTS},
        {"systemd", HEAD "# systemctl edit UNIT\n[Service]\nEnvironment=\"LD_PRELOAD=/opt/50%%/libmine.so\"\n"
                         "Environment=\"MALLOC_CONF=narenas:1,thp:always\"\n" KERNEL RIGHTS},
        {"docker", HEAD "ENV LD_PRELOAD=/opt/50%/libmine.so \\\n    MALLOC_CONF=narenas:1,thp:always\n"
                        "# The image needs this file: COPY /opt/50%/libmine.so /opt/50%/libmine.so\n" KERNEL RIGHTS},
        {"cmake", HEAD "target_link_libraries(PROGRAM PRIVATE -Wl,--push-state,--no-as-needed /opt/50%/libmine.so "
                       "-Wl,--pop-state)\n# In a source file of the program, for its settings:\n"
                       "#     const char *malloc_conf = \"narenas:1,thp:always\";\n" KERNEL},
    };
    write_config("allocator = mine\nsettings = jemalloc\nlibrary = /opt/50%/libmine.so\nnarenas = 1\nthp = always\n"
                 "kernel-thp = off\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_result result = show(cases[i].form);
        assert_exit(&result, 0, cases[i].form);
        assert_string_equal(result.out, cases[i].text);
        run_result_free(&result);
    }
    write_config("allocator = glibc\nhugetlb = 1\n");
    struct run_result result = show("shell");
    assert_string_equal(result.out,
                        "# glibc, hugetlb 1\n"
                        "export GLIBC_TUNABLES=${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.hugetlb=1\n" RIGHTS);
    run_result_free(&result);
    result = show("cmake");
    assert_string_equal(result.out, "# glibc, hugetlb 1\n# There is no library to link.\n# In the environment, since "
                                    "these settings cannot be linked: GLIBC_TUNABLES=glibc.malloc.hugetlb=1\n");
    run_result_free(&result);
    result = show("ini");
    assert_exit(&result, 2, "an unknown form");
    run_result_free(&result);
}

/* What is shown for a shell has the effect of the run. */
static void test_pasted_text_works(void **state)
{
    write_config("allocator = glibc\ntop_pad = 4096\n");
    struct run_result shown = show("shell");
    char script[1024];
    snprintf(script, sizeof script, "%s\nprintenv GLIBC_TUNABLES", shown.out);
    run_result_free(&shown);
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct run_result result =
        run(argv,
            &(struct run_options){.environment = (const char *const[]){"GLIBC_TUNABLES=glibc.malloc.perturb=1", NULL}});
    assert_exit(&result, 0, script);
    assert_string_equal(result.out, "glibc.malloc.perturb=1:glibc.malloc.top_pad=4096\n");
    run_result_free(&result);
}

TEST_LIST_WITH(set_up, tear_down, cmocka_unit_test(test_settings_take_effect),
               cmocka_unit_test(test_the_process_becomes_the_program), cmocka_unit_test(test_what_cannot_be_is_said),
               cmocka_unit_test(test_a_setting_of_another_version), cmocka_unit_test(test_set_user_id_is_refused),
               cmocka_unit_test(test_processors), cmocka_unit_test(test_other_malloc_in_the_environment),
               cmocka_unit_test(test_text_to_paste), cmocka_unit_test(test_pasted_text_works))
