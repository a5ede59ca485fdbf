/* test_sides.c - lines that threads share: who does what at which bytes, counted and sampled, against what
 * programs/sides.c does. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

enum build { LINES, WORDS_8, WORDS_4, PLAIN, BUILDS };

static const struct {
    const char *name, *granule;
} builds[BUILDS] = {[LINES] = {"lines", "--granule=64"},
                    [WORDS_8] = {"words-8", "--granule=8"},
                    [WORDS_4] = {"words-4", "--granule=4"},
                    [PLAIN] = {"plain", NULL}};

static char *directory;
static char *programs[BUILDS];

static const char *program_of(enum build build)
{
    if (programs[build])
        return programs[build];
    if (!directory)
        directory = make_directory();
    char *program = join_path(directory, builds[build].name), *source = join_path(TEST_SOURCES, "programs/sides.c");
    const char *const plain[] = {"gcc", "-O1", "-g", "-pthread", "-o", program, source, NULL};
    const char *const counting[] = {
        heapwise_path(), "cc", builds[build].granule, "-O1", "-g", "-pthread", "-o", program, source, NULL};
    compile_or_skip(build == PLAIN ? plain : counting, builds[build].name);
    free(source);
    return programs[build] = program;
}

static struct recording record(enum build build, const char *what, const char *seconds, const char *more)
{
    const char *const argv[] = {program_of(build), what, seconds, more, NULL};
    const char *const sampling[] = {"--sample-accesses=1000", "--single-steps", NULL};
    struct recording r =
        record_and_load(argv, &(struct record_options){.arguments = build == PLAIN ? sampling : NULL,
                                                       .options = build == WORDS_4 ? "words-period=2" : NULL});
    assert_exit(&r.run, 0, what);
    return r;
}

/* The block of the program. */
static const json_t *block_of(const json_t *report)
{
    json_t *context;
    size_t index;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (json_number(context, "size.max") == 256)
            return context;
    }
    fail_msg("the block is not in the report");
    return NULL;
}

/* The side of threads of KIND; STARTER: that this function has started, or NULL. NULL: there is none. */
static const json_t *side_of(const json_t *sides, const char *kind, const char *starter)
{
    json_t *side;
    size_t index;
    json_array_foreach(sides, index, side)
    {
        const json_t *by = json_object_get(json_object_get(side, "thread"), "started_by");
        if (!strcmp(json_text(side, "thread.kind"), kind) &&
            (!starter || !strcmp(json_text(json_array_get(by, 0), "function"), starter)))
            return side;
    }
    return NULL;
}

static const json_t *need_side(const json_t *sides, const char *kind, const char *starter)
{
    const json_t *side = side_of(sides, kind, starter);
    if (!side)
        fail_msg("no side of %s threads%s%s", kind, starter ? " of " : "", starter ? starter : "");
    return side;
}

/* From the first byte that was WHAT ("reads", "writes") to behind the last one. */
static void expect_bytes(const json_t *side, const char *what, int64_t first, int64_t end)
{
    const json_t *counts = json_object_get(side, "sampled");
    json_t *range;
    size_t index;
    int64_t least = INT64_MAX, most = 0;
    counts = counts ? counts : side;
    json_array_foreach(json_object_get(counts, "bytes"), index, range)
    {
        if (!json_number(range, what))
            continue;
        least = json_number(range, "first") < least ? json_number(range, "first") : least;
        most = json_number(range, "end") > most ? json_number(range, "end") : most;
    }
    if (least != first || most != end)
        fail_msg("%s of bytes %lld to %lld instead of %lld to %lld", what, (long long)least, (long long)most,
                 (long long)first, (long long)end);
}

/* What happens in "false": in words, where they are told apart. */
static void expect_false_sharing(const json_t *sides, bool words)
{
    const json_t *left = need_side(sides, "started", "start_one"), *right = need_side(sides, "main", NULL);
    assert_int_equal(json_array_size(sides), 2);
    assert_string_equal(json_text(left, "thread.routine.function"), "left_side");
    assert_int_equal(json_number(left, "thread.threads"), 1);
    assert_int_equal(json_number(right, "thread.threads"), 1);
    expect_bytes(left, "writes", words ? 32 : 0, words ? 40 : 64);
    expect_bytes(right, "writes", 0, words ? 8 : 64);
    expect_bytes(right, "reads", words ? 8 : 0, words ? 16 : 64);
}

static void expect_text(const struct recording *r, const char *const says[])
{
    const char *const arguments[] = {"report", "--section", "findings", r->files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "report");
    char *to = result.out; /* in one line, one space between words */
    for (const char *from = result.out; *from; from++)
        if (*from != ' ' && *from != '\n')
            *to++ = *from;
        else if (to > result.out && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    for (; *says; says++)
        assert_contains(result.out, *says);
    run_result_free(&result);
}

static const json_t *only_finding(const json_t *report, const char *kind)
{
    const json_t *findings = json_object_get(report, "findings"), *first = json_array_get(findings, 0);
    assert_int_equal(json_array_size(findings), 1);
    assert_string_equal(json_text(first, "kind"), kind);
    return first;
}

/* ---- counted ---- */

static void test_lines(void **state)
{
    struct recording r = record(LINES, "false", "0.1", NULL);
    const json_t *finding = only_finding(r.report, "shared-writes");
    expect_false_sharing(json_object_get(finding, "sides"), false);
    assert_string_equal(json_text(json_array_get(json_object_get(finding, "sides"), 0), "observed"), "counted");
    const int64_t writes = json_number(block_of(r.report), "accesses.writes");
    const json_t *sides = json_object_get(finding, "sides");
    int64_t told = 0;
    for (size_t i = 0; i < json_array_size(sides); i++)
        told += json_number(json_array_get(sides, i), "writes");
    assert_true(told <= writes && told > writes - 2000); /* the rest: a line of the main thread's, and filling */
    expect_text(&r, (const char *const[]){
                        "the main thread: writes bytes 0 to 63",
                        "left_side, started by start_one (sides.c:", "Which code does so is not known", NULL});
    recording_free(&r);
}

static void test_words_8(void **state)
{
    struct recording r = record(WORDS_8, "false", "0.05", NULL);
    const json_t *block = block_of(r.report);
    expect_false_sharing(json_object_get(block, "sides"), true);
    assert_string_equal(json_text(json_array_get(json_object_get(block, "sides"), 0), "sharing"), "false");
    recording_free(&r);
    /* A block that lives at the end. */
    r = record(WORDS_8, "false", "0.05", "live");
    expect_false_sharing(json_object_get(block_of(r.report), "sides"), true);
    recording_free(&r);
}

static void test_words_4(void **state)
{
    struct recording r = record(WORDS_4, "false", "0.4", NULL);
    const json_t *finding = only_finding(r.report, "false-sharing");
    expect_false_sharing(json_object_get(finding, "sides"), true);
    assert_string_equal(json_text(json_array_get(json_object_get(finding, "sides"), 0), "observed"), "periods");
    expect_text(&r,
                (const char *const[]){"the main thread: writes bytes 0 to 7 (", " word periods); reads bytes 8 to 15 (",
                                      "left_side, started by start_one (sides.c:", "): writes bytes 32 to 39", NULL});
    recording_free(&r);
}

/* Nothing is said where threads share what they write, or share nothing: that the main thread has filled the block. */
static void test_no_false_sharing(void **state)
{
    static const char *const cases[] = {"true", "alone"};
    for (size_t i = 0; i < 2; i++)
        for (int build = WORDS_8; build <= WORDS_4; build++) {
            struct recording r = record((enum build)build, cases[i], "0.1", NULL);
            const json_t *block = block_of(r.report);
            assert_int_equal(json_array_size(json_object_get(r.report, "findings")), 0);
            assert_int_equal(json_array_size(json_object_get(block, "sides")), 0);
            recording_free(&r);
        }
}

/* Two threads of one routine are told apart by what started them, and are merged by that. */
static void test_roles(void **state)
{
    struct recording a = record(WORDS_8, "several", "0.05", NULL), b = record(WORDS_8, "several", "0.05", NULL);
    char *file = join_path(directory, "merged.hwprof");
    const char *const arguments[] = {"merge", "-f", "-o", file, a.files[0], b.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "merge");
    json_t *merged = load_report(file, 0);
    const json_t *reports[3] = {a.report, b.report, merged};
    int64_t writes[3];
    for (int i = 0; i < 3; i++) {
        const json_t *sides = json_object_get(block_of(reports[i]), "sides");
        const json_t *one = need_side(sides, "started", "start_one"),
                     *other = need_side(sides, "started", "start_other");
        assert_int_equal(json_array_size(sides), 2);
        expect_bytes(one, "writes", 32, 40);
        expect_bytes(other, "writes", 0, 8);
        assert_int_equal(json_number(one, "thread.threads"), i == 2 ? 2 : 1);
        writes[i] = json_number(one, "writes");
    }
    assert_int_equal(writes[2], writes[0] + writes[1]);
    json_decref(merged);
    run_result_free(&result);
    free(file);
    recording_free(&a);
    recording_free(&b);
}

/* ---- sampled ---- */

static void expect_code(const json_t *side, const char *function)
{
    const json_t *code = json_object_get(json_object_get(side, "sampled"), "code");
    assert_string_equal(json_text(json_array_get(code, 0), "function"), function);
    assert_null(json_object_get(side, "writes")); /* no samples where counts stand */
}

static void test_sampled(void **state)
{
    struct recording r = record(PLAIN, "false", "0.5", NULL);
    const json_t *finding = only_finding(r.report, "false-sharing"), *sides = json_object_get(finding, "sides");
    expect_false_sharing(sides, true);
    expect_code(need_side(sides, "started", "start_one"), "write_left");
    expect_code(need_side(sides, "main", NULL), "write_right");
    assert_contains(json_text(finding, "why"), "of the sampled accesses to blocks");
    expect_text(&r, (const char *const[]){"the main thread: writes bytes 0 to 7 (",
                                          "in write_right (sides.c:", "left_side, started by start_one (sides.c:",
                                          "in write_left (sides.c:", "without a sample are missing", NULL});
    recording_free(&r);
}

static void test_sampled_alone(void **state)
{
    struct recording r = record(PLAIN, "alone", "0.2", NULL);
    assert_int_equal(json_array_size(json_object_get(r.report, "findings")), 0);
    recording_free(&r);
}

/* Two threads at one line, one after the other: it is no sharing. */
static void test_sampled_after(void **state)
{
    struct recording r = record(PLAIN, "after", "0.3", NULL);
    const json_t *block = block_of(r.report);
    assert_int_equal(json_array_size(json_object_get(r.report, "findings")), 0);
    assert_int_equal(json_number(block, "sampled.accesses.lines.false_shared"), 0);
    assert_int_equal(json_number(block, "sampled.accesses.lines.several_writers"), 1);
    recording_free(&r);
}

TEST_LIST(cmocka_unit_test(test_lines), cmocka_unit_test(test_words_8), cmocka_unit_test(test_words_4),
          cmocka_unit_test(test_no_false_sharing), cmocka_unit_test(test_roles), cmocka_unit_test(test_sampled),
          cmocka_unit_test(test_sampled_alone), cmocka_unit_test(test_sampled_after))
