/* test_allocators_verb.c - heapwise allocators: what it finds out about allocators whose ways are known, how it runs
 * programs, and what it says when it cannot. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERB "allocators"

static char *cache; /* of this test program: nothing of the user's is read or written */
static char cache_variable[4096];

static struct run_result verb(const char *const arguments[], const char *input)
{
    const char *const environment[] = {cache_variable, "LD_PRELOAD", NULL};
    return heapwise(arguments, &(struct run_options){.environment = environment, .input = input, .timeout_s = 120});
}

/* The lines of one allocator in the list of facts; "" when there is none. */
static const char *facts_of(const char *list, const char *name)
{
    static char part[65536];
    char line[128];
    snprintf(line, sizeof line, "name = %s\n", name);
    const char *begin = strstr(list, line);
    const char *end = begin ? strstr(begin, "\n\n") : NULL;
    const size_t length = !begin ? 0 : end ? (size_t)(end - begin) + 1 : strlen(begin);
    snprintf(part, sizeof part, "%.*s", (int)length, begin ? begin : "");
    return part;
}

static void check_facts(const char *name, const char *const lines[])
{
    const char *const list[] = {VERB, "--list", NULL};
    struct run_result result = verb(list, NULL);
    assert_exit(&result, 0, "heapwise allocators --list");
    const char *facts = facts_of(result.out, name);
    if (!*facts) {
        run_result_free(&result);
        SKIP("%s is not installed", name);
    }
    for (; *lines; lines++)
        assert_contains(facts, *lines);
    run_result_free(&result);
}

static void test_facts_of_glibc(void **state)
{
    static const char *const lines[] = {"style = sequential\n",
                                        "alignment = 16\n",
                                        "alignment_small = 16\n",
                                        "least = 24\n",
                                        "step = 16\n",
                                        "header = 8\n",
                                        "medium = 1033\n",
                                        "large = 131049\n", /* 128 KiB with its header */
                                        "large_by = mmap\n",
                                        "large_returned = yes\n",
                                        "reuse = lifo\n",
                                        "thread_cache = freeing\n",
                                        "large_rises_to = 335",
                                        NULL}; /* 32 MiB */
    check_facts("glibc", lines);
}

static void test_facts_of_jemalloc(void **state)
{
    static const char *const lines[] = {"version = 5.",
                                        "style = bibop\n",
                                        "alignment_small = 8\n",
                                        "classes = 8 16 32 48 64 80 96 112 128 160 192 224 256 320 ",
                                        "medium = 14337\n",
                                        "large = unknown",
                                        "thread_cache = freeing\n",
                                        NULL};
    check_facts("jemalloc", lines);
}

static void test_facts_of_tcmalloc(void **state)
{
    static const char *const lines[] = {
        "version = 2.",          "style = bibop\n",  "classes = 8 16 32 48 64 ", "medium = 262145\n",
        "classes_step = 8192\n", "large_by = brk\n", "thread_cache = freeing\n", NULL};
    check_facts("tcmalloc", lines);
}

static void test_facts_of_mimalloc(void **state)
{
    static const char *const lines[] = {
        "version = 2.",       "style = bibop\n",         "classes = 8 16 32 48 64 80 96 112 128 160 ",
        "reuse = deferred\n", "thread_cache = owning\n", NULL};
    check_facts("mimalloc", lines);
}

static const char *class_option(void)
{
    static char option[4096];
    const char *library = need_program("libclassmalloc.so");
    snprintf(option, sizeof option, "--allocator=class=%s", library);
    return option;
}

static void test_facts_of_a_known_allocator(void **state)
{
    static const char *const lines[] = {"style = bibop\n",
                                        "alignment = 16\n",
                                        "classes = 16 32 64 128 256 512 1024 2048 4096\n",
                                        "classes_step = 4096\n",
                                        "medium = 4097\n",
                                        "large = 4097\n",
                                        "large_by = mmap\n",
                                        "large_returned = yes\n",
                                        "reuse = fifo\n",
                                        "thread_cache = none\n",
                                        NULL};
    const char *const list[] = {VERB, "--list", class_option(), NULL};
    struct run_result result = verb(list, NULL);
    assert_exit(&result, 0, "heapwise allocators --list");
    const char *facts = facts_of(result.out, "classmalloc");
    for (const char *const *line = lines; *line; line++)
        assert_contains(facts, *line);
    run_result_free(&result);
}

/* ---- the verb ---- */

static json_t *runs_of(const char *const arguments[], const char *input, struct run_result *result)
{
    *result = verb(arguments, input);
    assert_exit(result, 0, "heapwise allocators --json");
    json_error_t error;
    json_t *runs = json_loads(result->out, 0, &error);
    if (!json_is_array(runs))
        fail_msg("no list of runs: %s: %s", error.text, result->out);
    return runs;
}

static const json_t *run_named(const json_t *runs, const char *name)
{
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (strcmp(json_text(json_array_get(runs, i), "allocator"), name) == 0)
            return json_array_get(runs, i);
    return NULL;
}

static const char *differs(void)
{
    const char *program = need_program("differs");
    return program;
}

static void test_runs(void **state)
{
    const char *const arguments[] = {VERB,           "--json", "-n",      "2",    "--no-prediction",
                                     class_option(), "--",     differs(), "work", NULL};
    struct run_result result;
    json_t *runs = runs_of(arguments, NULL, &result);
    size_t present = 0, chosen = 0;
    assert_true(json_array_size(runs) >= 2);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *one = json_array_get(runs, i);
        assert_int_equal(json_number(one, "rounds"), 2);
        assert_true(json_real_value(json_object_get(one, "time_s")) > 0);
        assert_int_equal(json_array_size(json_object_get(one, "times_s")), 2);
        assert_int_equal(json_number(one, "exit.code"), 0);
        assert_true(json_real_value(json_object_get(json_object_get(one, "measured"), "speedup")) > 0);
        assert_true(json_is_null(json_object_get(one, "predicted")));
        assert_true(json_number(one, "page_faults") > 0);
        present += json_is_true(json_object_get(one, "present"));
        chosen += json_is_true(json_object_get(one, "chosen"));
    }
    assert_int_equal(present, 1);
    assert_int_equal(chosen, 1);
    assert_non_null(run_named(runs, "class"));
    assert_string_equal(json_text(run_named(runs, "glibc"), "version"), json_text(json_array_get(runs, 0), "version"));
    json_decref(runs);
    run_result_free(&result);
}

static void test_text(void **state)
{
    const char *const arguments[] = {VERB, "-n", "1", "--no-prediction", "--", differs(), "work", NULL};
    struct run_result result = verb(arguments, NULL);
    assert_exit(&result, 0, "heapwise allocators");
    assert_contains(result.out, "allocator             time");
    assert_contains(result.out, "* glibc ");
    run_result_free(&result);
    const char *const quick[] = {VERB, "-n", "1", "--no-prediction", "--", differs(), NULL};
    result = verb(quick, NULL);
    assert_exit(&result, 0, "heapwise allocators");
    assert_contains(result.out, "Too short to compare");
    run_result_free(&result);
}

/* Every run reads the same bytes: with other bytes it would exit with another code. */
static void test_input(void **state)
{
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const char *const arguments[] = {VERB, "--json", "-n", "2", "--no-prediction", "--", differs(), "input", NULL};
    struct run_result result;
    json_t *runs = runs_of(arguments, text, &result);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        assert_int_equal(json_number(json_array_get(runs, i), "rounds"), 2);
        assert_int_equal(json_number(json_array_get(runs, i), "exit.code"), 99);
    }
    assert_contains(result.err, "input 999\n");
    assert_null(strstr(strstr(result.err, "input 999\n") + 1, "input")); /* of one run only */
    json_decref(runs);
    run_result_free(&result);

    char command[8192]; /* from a pipe */
    snprintf(command, sizeof command,
             "printf 12345 | '%s' allocators --json -n 1 --no-prediction --show-output -- '%s' input", heapwise_path(),
             differs());
    const char *const shell[] = {"sh", "-c", command, NULL};
    const char *const environment[] = {cache_variable, NULL};
    result = run(shell, &(struct run_options){.environment = environment});
    assert_exit(&result, 0, "with a pipe");
    assert_contains(result.out, "\"code\": 5");
    assert_lacks(result.out, "\"code\": 0");
    assert_contains(result.err, "input 5\ninput 5\n");
    run_result_free(&result);
}

static void check_failing(const char *how, const char *expected)
{
    const char *const arguments[] = {VERB,          "--json", "-n",      "1", "--no-prediction",
                                     "--timeout=2", "--",     differs(), how, NULL};
    struct run_result result;
    json_t *runs = runs_of(arguments, NULL, &result);
    const json_t *failing = run_named(runs, "jemalloc");
    if (!failing) {
        json_decref(runs);
        run_result_free(&result);
        SKIP("jemalloc is not installed");
    }
    assert_int_equal(json_number(failing, "rounds"), 0);
    assert_true(json_is_null(json_object_get(failing, "time_s")));
    assert_contains(json_text(failing, "note"), expected);
    assert_false(json_is_true(json_object_get(failing, "chosen")));
    assert_int_equal(json_number(run_named(runs, "glibc"), "rounds"), 1);
    json_decref(runs);
    run_result_free(&result);
}

static void test_a_failing_run_is_told(void **state)
{
    check_failing("code", "exited with code 3");
    check_failing("signal", "killed by signal 6");
    check_failing("hang", "ended after 2.");
}

static void check_refused(const char *const arguments[], int code, const char *said)
{
    struct run_result result = verb(arguments, NULL);
    if (result.code != code)
        fail_msg("%s: exit code %d instead of %d: %s", run_describe(arguments), result.code, code, result.err);
    assert_contains(result.err, said);
    assert_string_equal(result.out, "");
    run_result_free(&result);
}

static void test_wrong_usage(void **state)
{
    check_refused((const char *const[]){VERB, NULL}, 2, "which PROGRAM?");
    check_refused((const char *const[]){VERB, "--nonsense", NULL}, 2, "see heapwise allocators --help");
    check_refused((const char *const[]){VERB, "-n", "0", "true", NULL}, 2,
                  "--rounds takes a number from 1 to 101, not '0'");
    check_refused((const char *const[]){VERB, "-n", "102", "true", NULL}, 2,
                  "--rounds takes a number from 1 to 101, not '102'");
    check_refused((const char *const[]){VERB, "--timeout=soon", "true", NULL}, 2, "not 'soon'");
    check_refused((const char *const[]){VERB, "not-there-at-all", NULL}, 2, "not-there-at-all");
    check_refused((const char *const[]){VERB, "/etc/passwd", NULL}, 2, "/etc/passwd");
    check_refused((const char *const[]){VERB, "--allocator=mine", "true", NULL}, 2, "NAME=PATH");
    check_refused((const char *const[]){VERB, "--allocator=mine=/not/there.so", "true", NULL}, 2, "No such file");
    check_refused((const char *const[]){VERB, "--allocator=mine=/etc/passwd", "true", NULL}, 2, "no malloc");
    check_refused((const char *const[]){VERB, "--allocator=mine=libnotthere.so.7", "true", NULL}, 2, "no malloc");
    check_refused((const char *const[]){VERB, "-n1", "--no-prediction", "--timeout=1", "sleep", "30", NULL}, 2,
                  "did not end within 1 s");
    check_refused((const char *const[]){VERB, need_program("hello-static"), NULL}, 2, "static");
    check_refused((const char *const[]){VERB, need_program("hello-musl"), NULL}, 2, "musl");
}

static void test_a_signal_ends_it(void **state)
{
    char command[8192];
    snprintf(command, sizeof command,
             "timeout -s INT 1 '%s' allocators -n 1 --no-prediction -- sleep 60; echo $?; pgrep -f '^sleep 60$'",
             heapwise_path());
    const char *const shell[] = {"sh", "-c", command, NULL};
    const char *const environment[] = {cache_variable, NULL};
    struct run_result result = run(shell, &(struct run_options){.environment = environment, .timeout_s = 30});
    assert_contains(result.err, "interrupted by signal 2");
    run_result_free(&result);
}

/* ---- Ctrl-C while operations are replayed ---- */

/* Waits until PARENT has had WANTED children called NAME. */
static void wait_for_helpers(pid_t parent, const char *name, unsigned wanted)
{
    pid_t latest = 0;
    for (unsigned seen = 0; seen < wanted;) {
        DIR *folder = opendir("/proc");
        assert_non_null(folder);
        for (const struct dirent *entry; (entry = readdir(folder));) {
            char path[300], called[64] = "";
            int pid, of;
            snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
            FILE *file = *entry->d_name >= '1' && *entry->d_name <= '9' ? fopen(path, "re") : NULL;
            if (file && fscanf(file, "%d (%60[^)]) %*c %d", &pid, called, &of) == 3 && of == parent && pid != latest &&
                strcmp(called, name) == 0) {
                latest = pid;
                seen++;
            }
            if (file)
                fclose(file);
        }
        closedir(folder);
        siginfo_t end = {0};
        assert_int_equal(waitid(P_PID, (id_t)parent, &end, WEXITED | WNOHANG | WNOWAIT), 0);
        if (end.si_pid == parent)
            fail_msg("it ended after %u of %u replays", seen, wanted);
        usleep(500);
    }
}

/* Ctrl-C, when so many children called NAME have been seen: nothing of the command is left, no file either. */
static struct run_result interrupt(const char *const argv[], const char *name, unsigned wanted)
{
    char variable[4096];
    size_t left;
    char *folder = make_directory();
    snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    const char *const environment[] = {variable, cache_variable, "LD_PRELOAD", NULL};
    struct run_process process = run_start(argv, &(struct run_options){.environment = environment});
    wait_for_helpers(process.pid, name, wanted);
    const pid_t group = process.pid;
    kill(-group, SIGINT);
    struct run_result result = run_finish(&process, 120);
    assert_false(result.timed_out);
    assert_int_equal(kill(-group, 0), -1);
    char **files = list_files(folder, "", &left);
    assert_int_equal(left, 0);
    free_list(files);
    return result;
}

static const char *replayed_program(void)
{
    if (TEST_SANITIZED)
        SKIP("the tools have AddressSanitizer's allocator");
    return need_program("operations");
}

static void test_ctrl_c_in_the_first_replay(void **state)
{
    const char *const argv[] = {heapwise_path(), VERB, "--", replayed_program(), "many", NULL};
    struct run_result result = interrupt(argv, "heapwise-course", 1);
    assert_exit(&result, 130, "Ctrl-C in the first replay");
    assert_contains(result.err, "interrupted by signal 2");
    assert_string_equal(result.out, "");
    run_result_free(&result);
}

/* What was measured before is told. */
static void test_ctrl_c_in_later_replays(void **state)
{
    const char *const list[] = {VERB, "--list", NULL};
    const char *const argv[] = {heapwise_path(), VERB, "-n", "101", "--", replayed_program(), "many", NULL};
    struct run_result listed = verb(list, NULL);
    unsigned count = 1; /* and with small blocks packed */
    for (const char *at = listed.out; (at = strstr(at, "\nname = ")); at++)
        count++;
    run_result_free(&listed);
    struct run_result result = interrupt(argv, "heapwise-course", 2 * (count + 1) + 1);
    unsigned rounds = 0;
    assert_exit(&result, 130, "Ctrl-C in a later replay");
    const char *told = strstr(result.err, "interrupted by signal 2 (Interrupt): this is what ");
    assert_non_null(told);
    assert_int_equal(sscanf(strstr(told, "what "), "what %u of 101 rounds say", &rounds), 1);
    assert_true(rounds >= 2 && rounds <= 101);
    char title[64];
    snprintf(title, sizeof title, ": %u rounds\n", rounds);
    assert_contains(result.out, title);
    assert_contains(result.out, "* glibc");
    run_result_free(&result);
}

/* The program has ended, its profile is whole; what others would do is not in it. */
static void test_ctrl_c_in_the_replays_of_record(void **state)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/it.hwprof", make_directory());
    const char *const argv[] = {heapwise_path(), "record", "--mode=allocator", "-o", path, "--", replayed_program(),
                                "many",          NULL};
    struct run_result result = interrupt(argv, "heapwise-replay", 1);
    assert_exit(&result, 0, "Ctrl-C in a replay of record");
    assert_contains(result.err, "interrupted: the prediction for other allocators is missing or incomplete");
    run_result_free(&result);
    const char *const report[] = {"report", "--json", path, NULL};
    result = verb(report, NULL);
    assert_exit(&result, 0, "its profile");
    json_t *profile = json_loads(result.out, 0, NULL);
    assert_non_null(profile);
    assert_true(json_number(profile, "totals.allocations") >= 300000);
    json_decref(profile);
    run_result_free(&result);
}

/* ---- the cache ---- */

static char *contents(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The file with the facts of glibc; the test fails when there is none. */
static char *cached_file(void)
{
    size_t count = 0;
    char *folder = join_path(cache, "heapwise"), *found = NULL;
    char **files = list_files(folder, ".facts", &count);
    for (size_t i = 0; i < count && !found; i++)
        if (strstr(contents(files[i]), "name = glibc\n"))
            found = strdup(files[i]);
    free_list(files);
    free(folder);
    assert_non_null(found);
    return found;
}

static void overwrite(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_cache(void **state)
{
    const char *const arguments[] = {VERB, "--json", "-n", "1", "--no-prediction", "true", NULL};
    struct run_result result = verb(arguments, NULL);
    assert_exit(&result, 0, "with an empty cache");
    run_result_free(&result);
    char *file = cached_file();
    char *good = strdup(contents(file));
    assert_contains(good, "# complete\n");

    /* What is in the cache is used: */
    char *changed = strdup(good), *version = strstr(changed, "version = ");
    memcpy(version, "version = 9", 11);
    overwrite(file, changed);
    result = verb(arguments, NULL);
    assert_contains(result.out, "\"version\": \"9");
    run_result_free(&result);
    /* cut short or not of facts, it is not, and made anew: */
    changed[strlen(changed) / 2] = '\0';
    static const char *const bad[] = {NULL, "", "\x89PNG", "name = x\n# complete\n", "medium = lots\n# complete\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        overwrite(file, bad[i] ? bad[i] : changed);
        result = verb(arguments, NULL);
        assert_exit(&result, 0, "with a damaged cache");
        assert_lacks(result.out, "\"version\": \"9");
        assert_string_equal(contents(file), good);
        run_result_free(&result);
    }
    free(good);
    free(changed);
    free(file);
}

static void test_without_a_cache(void **state)
{
    static const char *const environments[][4] = {{"XDG_CACHE_HOME=/proc/1/nowhere", NULL},
                                                  {"XDG_CACHE_HOME=relative", "HOME", NULL},
                                                  {"XDG_CACHE_HOME", "HOME", NULL}};
    const char *const arguments[] = {VERB, "-n", "1", "--no-prediction", "true", NULL};
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        struct run_result result = heapwise(arguments, &(struct run_options){.environment = environments[i]});
        assert_exit(&result, 0, "without a cache");
        assert_contains(result.out, "glibc");
        assert_string_equal(result.err, "");
        run_result_free(&result);
    }
}

/* Settings of allocators are part of what facts are kept by. */
static void test_settings_change_facts(void **state)
{
    const char *const environment[] = {cache_variable, "MALLOC_MMAP_THRESHOLD_=65536", NULL};
    const char *const arguments[] = {VERB, "--list", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment});
    assert_contains(facts_of(result.out, "glibc"), "large = 65513\n");
    run_result_free(&result);
}

/* ---- profiles of allocator mode ---- */

static json_t *record_allocator(const char *preload, const char *option, struct run_result *result)
{
    char *directory = make_directory(), *file = join_path(directory, "p.hwprof"), variable[4096];
    snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload);
    const char *const environment[] = {cache_variable, preload ? variable : NULL, NULL};
    const char *const arguments[] = {"record", "--mode=allocator", "-o", file, option, "--", differs(), "work", NULL};
    *result = heapwise(arguments, &(struct run_options){.environment = environment, .timeout_s = 120});
    json_t *report = result->code == 0 ? load_report(file, 0) : NULL;
    remove_directory(directory);
    free(file);
    return report;
}

static void test_profile_tells_how_the_allocator_works(void **state)
{
    struct run_result result;
    if (TEST_SANITIZED)
        SKIP("an allocator cannot be preloaded into tools built with AddressSanitizer");
    json_t *report = record_allocator(strchr(class_option(), '/'), "--no-prediction", &result);
    assert_exit(&result, 0, "heapwise record --mode allocator");
    assert_string_equal(json_text(report, "allocator.style"), "bibop");
    assert_string_equal(json_text(report, "allocator.facts_from"), "probe");
    assert_int_equal(json_number(report, "allocator.large_threshold"), 4097);
    const json_t *allocator = json_object_get(report, "allocator"),
                 *classes = json_object_get(allocator, "size_classes");
    assert_int_equal(json_array_size(classes), 9);
    assert_int_equal(json_integer_value(json_array_get(classes, 2)), 64);
    assert_int_equal(json_array_size(json_object_get(allocator, "prediction")), 0);
    json_decref(report);
    run_result_free(&result);
}

static void test_facts_from_a_file(void **state)
{
    struct run_result result;
    char option[4200];
    char *file = join_path(cache, "told");
    snprintf(option, sizeof option, "--facts=%s", file);
    overwrite(file, "name = other\nversion = 7\nstyle = sequential\nmedium = 100\nlarge = 300\n");
    json_t *report = record_allocator(NULL, option, &result);
    assert_exit(&result, 0, "record --facts");
    assert_string_equal(json_text(report, "allocator.facts_from"), "file");
    assert_int_equal(json_number(report, "allocator.large_threshold"), 300);
    bool large = false; /* sizes are told apart by it */
    size_t i;
    const json_t *operation;
    json_array_foreach(json_object_get(json_object_get(report, "allocator"), "operations"), i, operation) large |=
        strcmp(json_text(operation, "size"), "large") == 0 && json_number(operation, "count") > 100000;
    assert_true(large);
    /* what others would do was predicted meanwhile: */
    const json_t *predictions = json_object_get(json_object_get(report, "allocator"), "prediction"), *prediction;
    json_array_foreach(predictions, i, prediction)
    {
        if (!json_is_null(json_object_get(prediction, "problem")))
            fail_msg("%s", json_text(prediction, "problem"));
        const double speedup = json_real_value(json_object_get(prediction, "speedup"));
        assert_true(speedup > 0 && isfinite(speedup)); /* how much, the machine decides that runs the test */
        assert_true(json_real_value(json_object_get(prediction, "low")) <= speedup);
        assert_true(json_real_value(json_object_get(prediction, "high")) >= speedup);
    }
    json_decref(report);
    run_result_free(&result);

    overwrite(file, "name = other\nlarge = much\n");
    assert_null(record_allocator(NULL, option, &result));
    assert_int_equal(result.code, 125);
    assert_contains(result.err, "told, line 2");
    run_result_free(&result);
    free(file);
    const char *const heap[] = {"record", "--facts=/dev/null", "--", "true", NULL};
    result = verb(heap, NULL);
    assert_int_equal(result.code, 125);
    assert_contains(result.err, "--facts needs --mode allocator");
    run_result_free(&result);
}

/* Replays of a profile would touch all of every block. */
static void test_what_is_untouched_is_not_predicted(void **state)
{
    const char *program = program_path("totals");
    if (!program)
        SKIP("totals was not built");
    char *directory = make_directory(), *file = join_path(directory, "p.hwprof");
    const char *const environment[] = {cache_variable, NULL};
    const char *const arguments[] = {"record", "--mode=allocator", "-o", file, "--", program, "one", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment, .timeout_s = 120});
    assert_exit(&result, 0, "record");
    json_t *report = load_report(file, 0);
    const json_t *predictions = json_object_get(json_object_get(report, "allocator"), "prediction"), *prediction;
    size_t i;
    json_array_foreach(predictions, i, prediction)
        assert_contains(json_text(prediction, "problem"), "of the memory untouched");
    json_decref(report);
    run_result_free(&result);
    remove_directory(directory);
    free(file);
}

static void check_weight(const json_t *weight)
{
    assert_string_equal(json_text(weight, "of"), "walks");
    const double value = json_number_value(json_object_get(weight, "value"));
    assert_true(json_number_value(json_object_get(weight, "low")) <= value);
    assert_true(json_number_value(json_object_get(weight, "high")) >= value);
    const char *from = json_text(weight, "from");
    assert_true(strcmp(from, "runs") == 0 || strcmp(from, "rule") == 0);
}

/* One profiled run, then predictions beside what was measured. */
static void test_predictions(void **state)
{
    const char *const arguments[] = {VERB, "--json", "-n", "3", "--", differs(), "work", NULL};
    struct run_result result;
    json_t *runs = runs_of(arguments, NULL, &result);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *one = json_array_get(runs, i), *predicted = json_object_get(one, "predicted");
        assert_string_not_equal(json_text(one, "allocator"), "packed"); /* it is no allocator */
        if (!TEST_SANITIZED)                                            /* known, though the course took more */
            assert_true(json_number(one, "peak_rss_bytes") > 32 << 20);
        if (json_is_true(json_object_get(one, "present")))
            continue;
        if (!json_is_object(predicted))
            fail_msg("nothing predicted for %s: %s", json_text(one, "allocator"), result.err);
        assert_true(json_real_value(json_object_get(predicted, "speedup")) > 0.05);
        if (json_is_null(json_object_get(predicted, "weight")))
            fail_msg("no weight for %s: %s", json_text(one, "allocator"), result.err);
        if (!TEST_SANITIZED)
            check_weight(json_object_get(predicted, "weight"));
    }
    json_decref(runs);
    run_result_free(&result);
    const char *const once[] = {VERB, "-n", "1", "--", differs(), "work", NULL}; /* one round measures no weight */
    result = verb(once, NULL);
    assert_exit(&result, 0, "heapwise allocators");
    if (!TEST_SANITIZED)
        assert_contains(result.out, "the predictions assume\nwhat is usual. Trust the measured speeds.\n");
    assert_contains(result.out, "one round proves nothing");
    assert_null(strstr(result.out, "0.0 %")); /* no spread of one run */
    run_result_free(&result);
}

/* Of runs that are hardly more than the start of a process, nothing is predicted. The machine may be slow. */
static void test_short_runs_are_not_predicted(void **state)
{
    (void)state;
    const char *const arguments[] = {VERB, "--json", "-n", "3", "--", differs(), "input", NULL};
    struct run_result result;
    json_t *runs = runs_of(arguments, NULL, &result);
    bool is_short = false;
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (json_is_true(json_object_get(json_array_get(runs, i), "present")))
            is_short = json_real_value(json_object_get(json_array_get(runs, i), "time_s")) < 0.02;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *one = json_array_get(runs, i);
        assert_true(!is_short || json_is_null(json_object_get(one, "predicted")));
    }
    assert_true(!is_short || strstr(result.err, "Nothing was predicted: runs of less than 20 ms"));
    json_decref(runs);
    run_result_free(&result);
}

static void test_a_linked_allocator_is_refused(void **state)
{
    const char *program = need_program("workload-jemalloc-static");
    check_refused((const char *const[]){VERB, "-q", "-n1", program, NULL}, 2, "linked into its executable");
}

static int make_cache(void **state)
{
    cache = make_directory();
    snprintf(cache_variable, sizeof cache_variable, "XDG_CACHE_HOME=%s", cache);
    return 0;
}

static int remove_cache(void **state)
{
    remove_directory(cache);
    return 0;
}

TEST_LIST_WITH(make_cache, remove_cache, cmocka_unit_test(test_facts_of_glibc),
               cmocka_unit_test(test_facts_of_jemalloc), cmocka_unit_test(test_facts_of_tcmalloc),
               cmocka_unit_test(test_facts_of_mimalloc), cmocka_unit_test(test_facts_of_a_known_allocator),
               cmocka_unit_test(test_runs), cmocka_unit_test(test_text), cmocka_unit_test(test_input),
               cmocka_unit_test(test_a_failing_run_is_told), cmocka_unit_test(test_wrong_usage),
               cmocka_unit_test(test_a_signal_ends_it), cmocka_unit_test(test_ctrl_c_in_the_first_replay),
               cmocka_unit_test(test_ctrl_c_in_later_replays), cmocka_unit_test(test_ctrl_c_in_the_replays_of_record),
               cmocka_unit_test(test_cache), cmocka_unit_test(test_without_a_cache),
               cmocka_unit_test(test_settings_change_facts),
               cmocka_unit_test(test_profile_tells_how_the_allocator_works), cmocka_unit_test(test_facts_from_a_file),
               cmocka_unit_test(test_predictions), cmocka_unit_test(test_short_runs_are_not_predicted),
               cmocka_unit_test(test_what_is_untouched_is_not_predicted),
               cmocka_unit_test(test_a_linked_allocator_is_refused))
