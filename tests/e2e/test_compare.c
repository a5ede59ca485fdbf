/* test_compare.c - heapwise compare: what it says of commands whose memory, output and exit are known, and what it
 * leaves behind. How long something takes decides nothing here: tests/unit/tuning has simulated times. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERB "compare", "-n", "6", "--for=memory", "--tolerance=100" /* of a later --tolerance counts the last */

static json_t *compared(const char *const arguments[], int code)
{
    json_t *object = json_of(arguments, code);
    assert_true(json_is_object(object));
    return object;
}

static const json_t *metric(const json_t *object, const char *name)
{
    return json_entry(object, "metrics", "name", name);
}

static void test_memory(void **state)
{
    if (TEST_SANITIZED) /* a copy of the tools before exec is larger than the program */
        SKIP("the tools have AddressSanitizer's allocator");
    const char *costs = need_program("costs");
    const char *const worse[] = {VERB, "--json", "--", costs, "8", "--", costs, "64", NULL};
    json_t *object = compared(worse, 1);
    const json_t *rss = metric(object, "peak_rss");
    assert_int_equal(json_number(object, "pairs"), 6);
    assert_true(json_is_true(json_object_get(object, "worse")));
    assert_string_equal(json_text(rss, "verdict"), "worse");
    assert_true(json_is_true(json_object_get(rss, "beyond_tolerance")));
    const double a = json_real_value(json_object_get(rss, "a")), b = json_real_value(json_object_get(rss, "b"));
    assert_true(a > 8 << 20 && a < 32 << 20);
    assert_true(b > 64 << 20 && b < 96 << 20);
    assert_true(json_real_value(json_object_get(rss, "low")) > 2);
    assert_int_equal(json_array_size(json_object_get(rss, "a_runs")), 6);
    assert_int_equal(json_array_size(json_object_get(metric(object, "wall_time"), "b_runs")), 6);
    assert_false(json_is_true(json_object_get(metric(object, "wall_time"), "judged")));
    assert_true(json_is_true(json_object_get(object, "same_output")));
    json_decref(object);

    const char *const better[] = {VERB, "--json", "--", costs, "64", "--", costs, "8", NULL};
    object = compared(better, 0);
    assert_string_equal(json_text(metric(object, "peak_rss"), "verdict"), "better");
    json_decref(object);
}

static void test_tolerance(void **state)
{
    if (TEST_SANITIZED) /* a copy of the tools before exec is larger than the program */
        SKIP("the tools have AddressSanitizer's allocator");
    const char *costs = need_program("costs");
    const char *const within[] = {VERB, "--tolerance=100", "--", costs, "48", "--", costs, "64", NULL};
    struct run_result result = heapwise(within, NULL);
    assert_exit(&result, 0, "within the tolerance");
    assert_contains(result.out, "B is worse in peak RSS");
    assert_contains(result.out, "not surely beyond the tolerance of 100 %");
    run_result_free(&result);
    const char *const beyond[] = {VERB, "--tolerance=10", "-q", "--", costs, "48", "--", costs, "64", NULL};
    result = heapwise(beyond, NULL);
    assert_exit(&result, 1, "beyond the tolerance");
    assert_contains(result.out, "more than the tolerance of 10 %");
    run_result_free(&result);
    const char *const quiet[] = {VERB, "-q", "--", costs, "64", "--", costs, "8", NULL};
    result = heapwise(quiet, NULL);
    assert_exit(&result, 0, "quiet");
    assert_string_equal(result.out, "");
    run_result_free(&result);
}

static void test_output(void **state)
{
    const char *const differs[] = {VERB, "--", "echo", "one", "--", "echo", "three", NULL};
    struct run_result result = heapwise(differs, NULL);
    assert_exit(&result, 0, "other output");
    assert_contains(result.out, "A and B print different output (4 B, 6 B)");
    run_result_free(&result);
    const char *const quiet[] = {VERB, "-q", "--", "echo", "one", "--", "echo", "three", NULL};
    result = heapwise(quiet, NULL);
    assert_exit(&result, 0, "other output, quiet");
    assert_string_equal(result.out, "A and B print different output (4 B, 6 B).\n");
    run_result_free(&result);
    const char *const unsteady[] = {VERB, "--", "sh", "-c", "echo $$", "--", "echo", "same", NULL};
    result = heapwise(unsteady, NULL);
    assert_exit(&result, 0, "unsteady output");
    assert_contains(result.out, "The output of A is not the same in each run");
    assert_lacks(result.out, "different output");
    run_result_free(&result);
    const char *const dropped[] = {VERB, "--json", "--discard-output", "--", "echo", "a", "--", "echo", "b", NULL};
    json_t *object = compared(dropped, 0);
    assert_true(json_is_null(json_object_get(object, "same_output")));
    json_decref(object);
}

static void test_input(void **state)
{
    const char *const arguments[] = {VERB,
                                     "--check=grep -qx 'input 5'",
                                     "--",
                                     need_program("differs"),
                                     "input",
                                     "--",
                                     need_program("differs"),
                                     "input",
                                     NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.input = "12345"});
    assert_exit(&result, 0, "the same input");
    assert_contains(result.out, "6 pairs");
    run_result_free(&result);
}

/* One command, with and without a configuration: with it LD_PRELOAD and a variable are set. */
static void test_configuration(void **state)
{
    char *file = join_path(test_directory, "b.conf"), text[8192];
    FILE *out = fopen(file, "we");
    assert_non_null(out);
    snprintf(text, sizeof text, "allocator = class\nlibrary = %s\n", need_program("libclassmalloc.so"));
    fputs(text, out);
    fclose(out);
    snprintf(text, sizeof text, "--config-b=%s", file);
    const char *const arguments[] = {VERB, text, "--", "sh", "-c", "echo \"$LD_PRELOAD\"", NULL};
    const char *const environment[] = {"LD_PRELOAD", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment});
    if (result.code != 1)
        assert_exit(&result, 0, "with a configuration");
    assert_contains(result.out, "(with ");
    assert_contains(result.out, "A and B print different output (1 B, ");
    run_result_free(&result);
    const char *const refused[] = {VERB, text, "--", need_program("hello-static"), NULL};
    assert_refused(refused, "is statically linked");
    const char *const missing[] = {VERB, "--config-a=/not/there", "--", "true", NULL};
    assert_refused(missing, "/not/there");
    free(file);
}

static void check_failing(const char *const arguments[], int code, const char *said)
{
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, code, run_describe(arguments));
    assert_contains(code == 2 ? result.err : result.out, said);
    run_result_free(&result);
}

static void test_failures(void **state)
{
    check_failing((const char *const[]){VERB, "--", "true", "--", "false", NULL}, 1,
                  "B fails: it exited with code 1 (A: it exited with code 0)");
    check_failing((const char *const[]){VERB, "--", "true", "--", "sh", "-c", "kill -ABRT $$", NULL}, 1,
                  "B fails: it was killed by signal 6");
    check_failing((const char *const[]){VERB, "--", "false", "--", "true", NULL}, 1,
                  "B ends in another way than A, which fails: it exited with code 0 (A: it exited with code 1)");
    check_failing((const char *const[]){VERB, "--for=memory", "--", "false", "--", "false", NULL}, 0,
                  "A and B both exited with code 1");
    check_failing((const char *const[]){VERB, "--timeout=1", "--", "true", "--", "sleep", "60", NULL}, 1,
                  "B fails: it was ended after ");
    check_failing((const char *const[]){VERB, "--timeout=1", "--check=grep -q one || sleep 60", "--", "echo", "one",
                                        "--", "echo", "two", NULL},
                  1, "B fails: the check of its output was ended after ");
    check_failing((const char *const[]){VERB, "--", "true", "--", "head", "-c", "1200000000", "/dev/zero", NULL}, 1,
                  "B fails: it was ended, as it printed more than 1 GiB");
    check_failing((const char *const[]){VERB, "--check=grep -q one", "--", "echo", "one", "--", "echo", "two", NULL}, 1,
                  "B fails: the check of its output exited with code 1");
    check_failing((const char *const[]){VERB, "--check=grep -q one", "--", "echo", "two", "--", "echo", "one", NULL}, 2,
                  "A fails: the check of its output exited with code 1");
    check_failing((const char *const[]){VERB, "--", "sh", "-c", "kill -ABRT $$", "--", "true", NULL}, 2,
                  "A cannot be measured: it was killed by signal 6");
    char once[4096]; /* A's second run ends in another way */
    snprintf(once, sizeof once, "mkdir '%s/once' 2>/dev/null", test_directory);
    check_failing((const char *const[]){VERB, "--", "sh", "-c", once, "--", "true", NULL}, 2,
                  "A does not end in the same way each time");
    check_failing((const char *const[]){VERB, "--", "false", "--", "false", NULL}, 0, ""); /* as expected of it */
}

static void test_wrong_usage(void **state)
{
    assert_refused((const char *const[]){"compare", NULL}, "which command is A?");
    assert_refused((const char *const[]){"compare", "--", "true", NULL}, "which command is B, behind a second --?");
    assert_refused((const char *const[]){"compare", "--", "true", "--", NULL}, "which command is B?");
    assert_refused((const char *const[]){"compare", "-n", "5", "--", "true", "--", "true", NULL}, "from 6 to 101");
    assert_refused((const char *const[]){"compare", "--tolerance=much", "--", "true", "--", "true", NULL},
                   "a percentage");
    assert_refused((const char *const[]){"compare", "--for=speed", "--", "true", "--", "true", NULL},
                   "time, memory, both");
    assert_refused(
        (const char *const[]){"compare", "--check=true", "--discard-output", "--", "true", "--", "true", NULL},
        "--discard-output");
    assert_refused((const char *const[]){"compare", "--", "true", "--", "not-there-at-all", NULL}, "not-there-at-all");
}

/* ---- what is left behind ---- */

static bool is_running(long pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    if (file)
        fclose(file);
    return state != 'Z' && state != 'X';
}

/* Processes that a command leaves are ended with it. */
static void test_nothing_is_left(void **state)
{
    char *list = join_path(test_directory, "left"), command[4200];
    snprintf(command, sizeof command, "sleep 1000 & echo $! >>'%s'", list);
    const char *const arguments[] = {VERB, "--discard-output", "--", "sh", "-c", command, "--", "true", NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "with a process that is left");
    run_result_free(&result);
    FILE *file = fopen(list, "re");
    assert_non_null(file);
    unsigned count = 0;
    for (long pid; fscanf(file, "%ld", &pid) == 1; count++)
        for (int tries = 0; is_running(pid); tries++) {
            if (tries == 3000)
                fail_msg("process %ld still runs", pid);
            usleep(10000);
        }
    fclose(file);
    free(list);
    assert_int_equal(count, 7);
}

static unsigned lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

/* Once eight pairs are done it says what they say; before the first one, nothing. */
static void check_interrupted(unsigned runs, const char *said, const char *printed)
{
    char *list = join_path(test_directory, "runs"), command[4200];
    unlink(list);
    snprintf(command, sizeof command, "echo >>'%s'; sleep 0.05", list);
    const char *const arguments[] = {heapwise_path(), "compare", "-n",    "101", "--", "sh", "-c",
                                     command,         "--",      "sleep", "0",   NULL};
    struct run_process process = run_start(arguments, NULL);
    for (int tries = 0; lines_of(list) < runs && tries < 6000; tries++)
        usleep(10000);
    kill(process.pid, SIGINT);
    struct run_result result = run_finish(&process, 60);
    assert_int_equal(result.code, 128 + SIGINT);
    assert_contains(result.err, said);
    assert_contains(result.out, printed);
    run_result_free(&result);
    free(list);
}

static void test_interrupted(void **state)
{
    check_interrupted(1, "interrupted by signal 2", "");
    check_interrupted(10, " of 101 pairs", "95 % interval");
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_memory),
               cmocka_unit_test(test_tolerance), cmocka_unit_test(test_output), cmocka_unit_test(test_input),
               cmocka_unit_test(test_configuration), cmocka_unit_test(test_failures),
               cmocka_unit_test(test_wrong_usage), cmocka_unit_test(test_nothing_is_left),
               cmocka_unit_test(test_interrupted))
