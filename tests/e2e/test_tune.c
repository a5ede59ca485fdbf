/* test_tune.c - heapwise tune: settings of known effect are found, configurations that do harm are excluded and named,
 * and an interrupted search is continued. The settings change memory, not time: a busy machine changes nothing.
 * tests/unit/tuning has races on simulated times. */
#include "support/check.h"
#include "support/fake_allocator.h"
#include "support/recording.h"
#include "test_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HARM                                                                                                           \
    "[extra]\nset = env FAKE_EXTRA\nvalues = 300\ndoes = Maps memory.\n"                                               \
    "[end]\nset = env FAKE_END\nvalues = crash hang exit print\ndoes = Ends in another way.\n"
#define NEVER                                                                                                          \
    "[never]\nset = env FAKE_NEVER\nvalues = 1\ndoes = Nothing.\nwhen = threads > 1000\notherwise = One thread is enough.\n"

#define TUNE "tune", "--for=memory", "--only=fakemalloc", fake_allocator_option, fake_settings_option

/* A copy of sanitized tools before exec is larger than the program, whose size is then not known. */
static void need_plain_tools(void)
{
    if (TEST_SANITIZED)
        SKIP("the tools have AddressSanitizer's allocator");
}

static void test_the_setting_is_found(void **state)
{
    need_plain_tools();
    write_fake_settings("harm", HARM NEVER);
    char *file = join_path(test_directory, "tuned.conf"), line[512] = "";
    const char *const arguments[] = {TUNE,    "--json", "--max-rss=200M", "-o", file, "--", need_program("costs"), "16",
                                     "twice", NULL};
    json_t *object = tuned(arguments);
    if (strcmp(json_text(object, "winner"), "fakemalloc, release 1") != 0)
        fail_msg("%s", json_dumps(object, JSON_INDENT(1)));
    assert_string_equal(json_text(object, "result"), "winner");
    const json_t *winner = configuration(object, "fakemalloc, release 1");
    const json_t *gain = json_object_get(winner, "confirmed");
    assert_true(json_real_value(json_object_get(gain, "value")) < 0.8);
    assert_true(json_real_value(json_object_get(gain, "high")) < 0.9);
    assert_true(json_number(winner, "deciding_rounds") >= 10);
    assert_true(json_is_true(json_object_get(winner, "front")));
    check_excluded(object, "fakemalloc, end crash", "killed by signal 6");
    check_excluded(object, "fakemalloc, end hang", "it was ended after");
    check_excluded(object, "fakemalloc, end exit", "exited with code 3 (as it is: it exited with code 0)");
    check_excluded(object, "fakemalloc, end print", "printed something else (5 bytes; as it is: 0 bytes)");
    check_excluded(object, "fakemalloc, extra 300", "more than --max-rss");
    assert_contains(json_text(json_entry(object, "not_tried", "setting", "fakemalloc never"), "why"),
                    "One thread is enough.");
    json_decref(object);

    FILE *written = fopen(file, "re"); /* what heapwise compare and run read */
    assert_non_null(written);
    bool found = false;
    while (fgets(line, sizeof line, written))
        found |= strcmp(line, "release = 1\n") == 0;
    fclose(written);
    assert_true(found);
    free(file);
}

static void test_text(void **state)
{
    need_plain_tools();
    write_fake_settings("few", NEVER);
    const char *const arguments[] = {TUNE, "--", need_program("costs"), "16", "twice", NULL};
    struct run_result result =
        heapwise(arguments, &(struct run_options){.environment = fake_environment, .timeout_s = 500});
    assert_exit(&result, 0, "heapwise tune");
    assert_contains(result.out, "Best for memory: fakemalloc, release 1\n");
    assert_contains(result.out, "rounds that had no part in its selection");
    assert_contains(result.out, "FAKE_RELEASE=1 PROGRAM");
    assert_contains(result.out, "Not tried:");
    run_result_free(&result);
}

/* What fails a check is excluded; here all others fail, too, as the check knows only the program as it is. */
static void test_check(void **state)
{
    need_plain_tools();
    write_fake_settings("few", NEVER);
    const char *const arguments[] = {TUNE,
                                     "--json",
                                     "--check=! grep -q fakemalloc",
                                     "--",
                                     "sh",
                                     "-c",
                                     "echo \"$LD_PRELOAD\"; exec \"$0\" 16 twice",
                                     need_program("costs"),
                                     NULL};
    json_t *object = tuned(arguments);
    check_excluded(object, "fakemalloc, release 1", "the check of its output exited with code 1");
    json_decref(object);
}

/* Two settings that each save memory: their combination saves more, and is reported. */
static void test_combination(void **state)
{
    need_plain_tools();
    write_fake_settings("two", "[extra]\nset = env FAKE_EXTRA\nvalues = 0\ndoes = Maps no memory.\n");
    static const char *environment[] = {NULL, "LD_PRELOAD", "FAKE_EXTRA=24", NULL};
    environment[0] = fake_environment[0];
    const char *const arguments[] = {TUNE,    "--json", "--no-profile", "--numa", "--", need_program("costs"), "16",
                                     "twice", NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment, .timeout_s = 500});
    assert_exit(&result, 0, "heapwise tune");
    json_t *object = json_loads(result.out, 0, NULL);
    assert_non_null(object);
    run_result_free(&result);
    const char *winner = json_text(object, "winner");
    if (!strstr(winner, "release 1") || !strstr(winner, "extra 0"))
        fail_msg("%s", json_dumps(object, JSON_INDENT(1)));
    const json_t *best = configuration(object, winner), *over = json_object_get(object, "over_single");
    assert_true(json_is_true(json_object_get(best, "combination")));
    assert_true(json_real_value(json_object_get(over, "high")) < 0.9);
    size_t i, numa = 0; /* tried, or not, with the reason */
    const json_t *one;
    json_array_foreach(json_object_get(object, "not_tried"), i, one) numa +=
        strcmp(json_text(one, "setting"), "kernel numa") == 0 &&
        strstr(json_text(one, "why"), "This machine has one memory node.");
    json_array_foreach(json_object_get(object, "configurations"), i, one) numa +=
        strstr(json_text(one, "configuration"), "numa interleave") != NULL;
    assert_true(numa > 0);
    json_decref(object);
}

static void test_continued(void **state)
{
    need_plain_tools();
    write_fake_settings("few", NEVER);
    char *file = join_path(test_directory, "trials"), option[4300];
    const char *costs = need_program("costs");
    snprintf(option, sizeof option, "--resume=%s", file);
    const char *const first[] = {heapwise_path(), TUNE, "--json", option, "--", costs, "16", "twice", NULL};
    struct run_process process = run_start(first, &(struct run_options){.environment = fake_environment});
    for (int tries = 0; lines_of(file) < 20 && tries < 30000; tries++)
        usleep(10000);
    kill(process.pid, SIGINT);
    struct run_result result = run_finish(&process, 60);
    assert_int_equal(result.code, 128 + SIGINT);
    assert_contains(result.err, "the same command continues it");
    assert_contains(result.out, "\"result\": \"unfinished\"");
    run_result_free(&result);
    const unsigned lines = lines_of(file);
    FILE *trials = fopen(file, "ae"); /* a line that was not finished does no harm */
    assert_non_null(trials);
    fputs("{\"configuration\": 1, \"clock", trials);
    fclose(trials);
    json_t *object = tuned(first + 1);
    assert_string_equal(json_text(object, "winner"), "fakemalloc, release 1");
    assert_true(lines_of(file) > lines);
    const json_int_t runs = json_number(object, "runs");
    assert_int_equal(lines_of(file), runs + 1);
    json_decref(object);
    object = tuned(first + 1); /* once more: nothing is left to run */
    assert_int_equal(json_number(object, "runs"), runs);
    assert_int_equal(lines_of(file), runs + 1);
    json_decref(object);
    const char *const other[] = {TUNE, option, "--", costs, "8", NULL};
    assert_refused(other, "of another command, or with other options");
    const char *const budget[] = {TUNE, option, "--budget=5m", "--", costs, "16", "twice", NULL};
    assert_refused(budget, "cannot be changed");
    free(file);
}

static void test_wrong_usage(void **state)
{
    write_fake_settings("few", NEVER);
    assert_refused((const char *const[]){"tune", NULL}, "which PROGRAM?");
    assert_refused((const char *const[]){"tune", "--for=speed", "true", NULL}, "time, memory, both");
    assert_refused((const char *const[]){"tune", "--pin=some", "true", NULL},
                   "a list of processors such as 0-3 or 0,2");
    assert_refused((const char *const[]){"tune", "--pin=1023", "true", NULL}, "processors that this process may use");
    assert_refused((const char *const[]){"tune", "--budget=soon", "true", NULL}, "90s, 10m or 2h");
    assert_refused((const char *const[]){"tune", "--max-rss=much", "true", NULL}, "512M or 2G");
    assert_refused((const char *const[]){"tune", "--settings=/not/there", "true", NULL}, "/not/there");
    assert_refused((const char *const[]){"tune", "--resume=/not/there/at-all", "true", NULL}, "/not/there/at-all");
    assert_refused((const char *const[]){"tune", "not-there-at-all", NULL}, "not-there-at-all");
    assert_refused((const char *const[]){"tune", need_program("hello-static"), NULL}, "statically linked");
    assert_refused((const char *const[]){"tune", "--no-profile", "--only=none", "true", NULL}, "no such allocator");
    assert_refused((const char *const[]){"tune", "--", "sh", "-c", "kill -ABRT $$", NULL}, "killed by signal 6");
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_the_setting_is_found),
               cmocka_unit_test(test_text), cmocka_unit_test(test_check), cmocka_unit_test(test_combination),
               cmocka_unit_test(test_continued), cmocka_unit_test(test_wrong_usage))
