/* test_sharing.c - lines that threads use in ways that are known (programs/sharing.c), with granules of 64, 8 and 4
 * bytes: what is said of them in JSON, in findings and in the text. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

enum { GRANULES = 3 };
static const char *const granules[GRANULES] = {"--granule=64", "--granule=8", "--granule=4"};

static char *directory;
static char *programs[GRANULES];

static const char *program_of(int granule)
{
    if (programs[granule])
        return programs[granule];
    if (!directory)
        directory = make_directory();
    char *program = join_path(directory, granules[granule] + 2),
         *source = join_path(TEST_SOURCES, "programs/sharing.c");
    const char *const argv[] = {heapwise_path(), "cc", granules[granule], "-O1",  "-g",
                                "-pthread",      "-o", program,           source, NULL};
    compile_or_skip(argv, granules[granule]);
    free(source);
    return programs[granule] = program;
}

#define ANY  INT64_MAX /* not of interest */
#define NONE INT64_MIN /* null */

/* Of the block, or of the global variable. */
struct expected {
    const char *finding;             /* its kind; NULL: there is none */
    int64_t falsely, truly, handed;  /* lines */
    const char *says, *does_not_say; /* in the text */
};

static void check_number(const char *name, const char *granule, const json_t *of, const char *path, int64_t expected)
{
    const int64_t is = json_number_or_none(of, path);
    if (expected != ANY && is != expected)
        fail_msg("%s, %s: %s is %lld instead of %lld", name, granule, path, (long long)is, (long long)expected);
}

static const json_t *greatest_block(const json_t *report)
{
    const json_t *contexts = json_object_get(report, "contexts"), *greatest = NULL;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i);
        if (!greatest || json_number(context, "bytes") > json_number(greatest, "bytes"))
            greatest = context;
    }
    return greatest;
}

static const json_t *global_of(const json_t *report, const char *name)
{
    const json_t *globals = json_object_get(report, "globals");
    for (size_t i = 0; i < json_array_size(globals); i++) {
        const char *symbol = json_string_value(json_object_get(json_array_get(globals, i), "symbol"));
        if (symbol && !strcmp(symbol, name))
            return json_array_get(globals, i);
    }
    fail_msg("%s is not in the report", name);
    return NULL;
}

/* The kind of the only finding on sharing; NULL: there is none. */
static const char *finding_of(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings");
    const char *found = NULL;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const char *kind = json_text(json_array_get(findings, i), "kind");
        if (strcmp(kind, "false-sharing") && strcmp(kind, "shared-writes"))
            continue;
        if (found)
            fail_msg("two findings on sharing");
        found = kind;
    }
    return found;
}

/* With one space between words. */
static char *text_of(const char *file)
{
    const char *const arguments[] = {"report", "--all", file, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    char *text = strdup(result.out), *to = text;
    for (const char *from = result.out; *from; from++)
        if (*from != ' ' && *from != '\n')
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    run_result_free(&result);
    return text;
}

static void check(const char *name, const char *global, const struct expected expected[GRANULES])
{
    for (int i = 0; i < GRANULES; i++) {
        const char *const argv[] = {program_of(i), name, i == 2 ? "0.2" : "0.02", NULL};
        struct recording r =
            record_and_load(argv, &(struct record_options){.options = i == 2 ? "words-period=2" : NULL});
        assert_exit(&r.run, 0, name);
        const json_t *of = global ? global_of(r.report, global) : greatest_block(r.report);
        const char *kind = finding_of(r.report);
        if (!kind != !expected[i].finding || (kind && strcmp(kind, expected[i].finding)))
            fail_msg("%s, %s: found %s instead of %s", name, granules[i], kind ? kind : "nothing",
                     expected[i].finding ? expected[i].finding : "nothing");
        check_number(name, granules[i], of, "sharing.false_shared_lines", i ? expected[i].falsely : NONE);
        check_number(name, granules[i], of, "sharing.true_shared_lines", i ? expected[i].truly : NONE);
        check_number(name, granules[i], of, "sharing.handed_over_lines", expected[i].handed);
        char *text = text_of(r.files[0]);
        if (expected[i].says && !strstr(text, expected[i].says))
            fail_msg("%s, %s: \"%s\" is not in the report:\n%s", name, granules[i], expected[i].says, text);
        if (expected[i].does_not_say && strstr(text, expected[i].does_not_say))
            fail_msg("%s, %s: \"%s\" is in the report:\n%s", name, granules[i], expected[i].does_not_say, text);
        free(text);
        recording_free(&r);
    }
}

#define HANDED "handed over: filled by one thread, used by another"

static void test_false(void **state)
{
    check("false", NULL,
          (struct expected[]){{"shared-writes", 0, 0, 0, "Gain: at most", NULL},
                              {"false-sharing", 1, 0, 0, "1 cache line falsely shared", NULL},
                              {"false-sharing", 1, 0, 0, "1 cache line falsely shared", NULL}});
}

/* A count at its limit does not decide that a word is used by both. */
static void test_limits(void **state)
{
    check("limits", NULL,
          (struct expected[]){{"shared-writes", 0, 0, 0, NULL, NULL},
                              {"false-sharing", 1, 0, 0, "counts of a word end at 255", NULL},
                              {"false-sharing", 1, 0, 0, "1 cache line falsely shared", NULL}});
}

static void test_true(void **state)
{
    check("true", NULL,
          (struct expected[]){{"shared-writes", 0, 0, 0, NULL, NULL},
                              {NULL, 0, 1, 0, "1 truly", "False sharing"},
                              {NULL, 0, 1, 0, "1 truly", "False sharing"}});
}

/* Counts below the limit say how often lines are passed on, at most. */
static void test_lines(void **state)
{
    check("lines", NULL,
          (struct expected[]){{"shared-writes", 0, 0, 0, "Gain: at most", NULL},
                              {"false-sharing", 2000, 0, 0, "Gain: at most 3,200,000 cache lines", NULL},
                              {"false-sharing", 2000, 0, ANY, NULL, NULL}});
}

static void test_handed_over(void **state)
{
    static const struct expected expected[GRANULES] = {{NULL, 0, 0, 1000, HANDED, "falsely"},
                                                       {NULL, 0, 0, 1000, HANDED, "falsely"},
                                                       {NULL, 0, 0, 1000, HANDED, "falsely"}};
    static const struct expected passed[GRANULES] = {{NULL, 0, 0, 0, "1,000 written by one", "falsely"},
                                                     {NULL, 0, 0, 1000, HANDED, "falsely"},
                                                     {NULL, 0, 0, 1000, HANDED, "falsely"}};
    check("handed", NULL, expected);
    check("passed", NULL, passed);
}

static void test_ring(void **state)
{
    check("ring", NULL,
          (struct expected[]){{NULL, 0, 0, 0, "64 written by one", NULL},
                              {NULL, 0, 64, 0, "64 truly", "False sharing"},
                              {NULL, 0, 64, 0, "64 truly", "False sharing"}});
}

static void test_readers(void **state)
{
    check("readers", NULL,
          (struct expected[]){{NULL, 0, 0, 0, "1 written by one", "falsely"},
                              {NULL, 0, 0, 0, "8 written by one", "falsely"},
                              {NULL, 0, 0, 0, "16 written by one", "falsely"}});
}

static void test_padded(void **state)
{
    check("padded", NULL,
          (struct expected[]){{NULL, 0, 0, ANY, NULL, "falsely"},
                              {NULL, 0, 0, ANY, NULL, "falsely"},
                              {NULL, 0, 0, ANY, NULL, "falsely"}});
}

static void test_globals(void **state)
{
    check("globals", "lines_of_globals",
          (struct expected[]){{NULL, 0, 0, 1, HANDED, "falsely"},
                              {"false-sharing", 1, 0, 1, "in different words: lines_of_globals.", NULL},
                              {"false-sharing", 1, 0, 1, "in different words: lines_of_globals.", NULL}});
}

TEST_LIST(cmocka_unit_test(test_false), cmocka_unit_test(test_limits), cmocka_unit_test(test_true),
          cmocka_unit_test(test_lines), cmocka_unit_test(test_handed_over), cmocka_unit_test(test_ring),
          cmocka_unit_test(test_readers), cmocka_unit_test(test_padded), cmocka_unit_test(test_globals))
