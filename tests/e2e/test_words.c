/* test_words.c - programs built with --granule=4: which words of blocks were used, in how many periods, by whom;
 * against what programs/words.c does, and against DHAT's counts of bytes. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

/* ---- building and running ---- */

enum build { CLANG, CLANG_O0, CLANG_EACH, CLANG_19, GCC, PLAIN, BUILDS };

static const struct {
    const char *name;
    const char *const arguments[6];
} builds[BUILDS] = {
    [CLANG] = {"clang", {"cc", "--granule=4", "-O2"}},
    [CLANG_O0] = {"clang-O0", {"cc", "--granule=4", "-O0"}},
    [CLANG_EACH] = {"clang-each", {"cc", "--granule=4", "--no-consolidate", "-O2"}},
    [CLANG_19] = {"clang-19", {"cc", "--granule=4", "--compiler=clang-19", "-O2"}},
    [GCC] = {"gcc", {"cc", "--granule=4", "--compiler=gcc", "-O2"}},
    [PLAIN] = {"plain", {NULL}},
};

static char *directory;
static char *programs[BUILDS];

static const char *program_of(enum build build)
{
    if (programs[build])
        return programs[build];
    if (!directory)
        directory = make_directory();
    char *program = join_path(directory, builds[build].name), *source = join_path(TEST_SOURCES, "programs/words.c");
    const char *argv[20];
    size_t used = 0;
    argv[used++] = build == PLAIN ? "gcc" : heapwise_path();
    for (size_t i = 0; builds[build].arguments[i]; i++)
        argv[used++] = builds[build].arguments[i];
    const char *const common[] = {"-D_GNU_SOURCE", "-g", "-w", "-pthread", "-o", program, source, NULL};
    for (size_t i = 0; common[i]; i++)
        argv[used++] = common[i];
    argv[used] = NULL;
    compile_or_skip(argv, builds[build].name);
    free(source);
    return programs[build] = program;
}

static struct recording record(enum build build, const char *what, const char *options)
{
    const char *const argv[] = {program_of(build), what, NULL};
    struct recording r = record_and_load(argv, &(struct record_options){.options = options});
    assert_exit(&r.run, 0, what);
    return r;
}

/* ---- what a report says ---- */

/* "0 4 6-7": the words of ARRAY (in a word histogram) that are not 0; valid until the next call but three. */
static const char *words_of(const json_t *histogram, const char *array)
{
    static char texts[4][1024];
    static unsigned turn;
    char *text = texts[turn++ % 4];
    const json_t *values = json_object_get(histogram, array);
    size_t count = json_array_size(values), used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t end = i;
        while (end < count && json_integer_value(json_array_get(values, end)))
            end++;
        if (end == i)
            continue;
        used += (size_t)snprintf(text + used, sizeof texts[0] - used, end - i > 1 ? "%s%zu-%zu" : "%s%zu",
                                 used ? " " : "", i, end - 1);
        i = end;
    }
    return text;
}

static const json_t *histogram_of(const json_t *report, const char *function)
{
    const json_t *histogram = json_object_get(only_context(report, function), "word_histogram");
    if (!json_is_object(histogram))
        fail_msg("%s: no histogram of words", function);
    return histogram;
}

static void expect_words(const char *what, const json_t *histogram, const char *read, const char *written)
{
    const char *reads = words_of(histogram, "reads"), *writes = words_of(histogram, "writes");
    if (strcmp(reads, read) || strcmp(writes, written))
        fail_msg("%s: read %s, written %s; expected %s and %s", what, reads, writes, read, written);
    assert_string_equal(words_of(histogram, "blocks_read"), read);
    assert_string_equal(words_of(histogram, "blocks_written"), written);
}

static void expect(const json_t *report, const char *function, const char *read, const char *written)
{
    expect_words(function, histogram_of(report, function), read, written);
}

static int64_t value(const json_t *histogram, const char *array, size_t word)
{
    return json_integer_value(json_array_get(json_object_get(histogram, array), word));
}

/* ---- patterns ---- */

static void check_patterns(enum build build)
{
    struct recording r = record(build, "patterns", NULL);
    const json_t *report = r.report;
    expect(report, "of_fields", "2-3 6 12 14-15", "0 4 8-9 12 14-15");
    expect(report, "of_borders", "1-3", "0-1");
    expect(report, "of_copies", "", "1-6");
    expect(report, "of_sources", "2-7", "");
    expect(report, "of_elements", "", "1 5 9 13 17 21 25 29 33 37");
    expect(report, "of_sums", "20-89", "");
    expect(report, "of_strides", "",
           "0 3 6 9 13 16 19 22 26 29 32 35 39 42 45 48 52 55 58 61 65 68 71 74 78 81 84 87 91 94");
    expect(report, "of_conditions", "15", "3 15");
    expect(report, "of_nothing", "", "");
    expect(report, "of_live", "", "7");
    const json_t *fields = histogram_of(report, "of_fields");
    assert_int_equal(value(fields, "blocks_read", 6), 3);
    assert_int_equal(value(fields, "reads", 6), 3); /* each block lived for less than a period */
    assert_int_equal(json_number(fields, "word_bytes"), 4);
    assert_int_equal(json_number(only_context(report, "of_fields"), "words_never_touched"), 16 - 10);
    assert_int_equal(json_number(only_context(report, "of_nothing"), "never_accessed"), 3);
    assert_int_equal(json_number(only_context(report, "of_nothing"), "words_never_touched"), 16);
    assert_true(json_is_null(json_object_get(only_context(report, "of_fields"), "histogram")));
    assert_true(json_is_null(json_object_get(json_object_get(report, "totals"), "accesses")));
    assert_int_equal(json_number_or_none(only_context(report, "of_fields"), "accesses.reads"), INT64_MIN);
    assert_true(report_says(report, "how often in each"));
    const json_t *counters = json_object_get(json_entry(report, "globals", "symbol", "counters"), "word_histogram");
    assert_string_equal(words_of(counters, "writes"), "0 2 4 6");
    assert_string_equal(words_of(counters, "reads"), "");
    assert_string_equal(
        words_of(json_object_get(json_entry(report, "globals", "symbol", "table"), "word_histogram"), "reads"), "3");
    recording_free(&r);
}

static void test_patterns_clang(void **state)
{
    (void)state;
    check_patterns(CLANG);
    check_patterns(CLANG_EACH);
}

static void test_patterns_unoptimised(void **state)
{
    (void)state;
    check_patterns(CLANG_O0);
}

static void test_patterns_clang_19(void **state)
{
    (void)state;
    check_patterns(CLANG_19);
}

static void test_patterns_gcc(void **state)
{
    (void)state;
    check_patterns(GCC);
}

/* A dump while blocks live: what was used so far, and nothing is taken away by it. */
static void test_reallocations(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "reallocations", NULL);
    expect(r.report, "of_grown", "3", "3 20");
    expect(r.report, "of_shrunk", "4", "2 100");
    assert_int_equal(value(histogram_of(r.report, "of_grown"), "blocks_written", 3), 4);
    assert_int_equal(value(histogram_of(r.report, "of_shrunk"), "blocks_written", 100), 4);
    recording_free(&r);
}

/* ---- DHAT ---- */

/* Words of which a byte was used, as DHAT's counts of bytes have it: the point whose stack has FUNCTION. */
static bool dhat_words(const json_t *dhat, const char *function, bool used[100])
{
    const json_t *names = json_object_get(dhat, "ftbl"), *point;
    size_t index;
    json_array_foreach(json_object_get(dhat, "pps"), index, point)
    {
        const json_t *frames = json_object_get(point, "fs"), *counts = json_object_get(point, "acc");
        bool found = false;
        for (size_t i = 0; i < json_array_size(frames); i++) {
            const char *name =
                json_string_value(json_array_get(names, (size_t)json_integer_value(json_array_get(frames, i))));
            const char *at = strstr(name, function);
            found |= at && (at[strlen(function)] == ' ' || at[strlen(function)] == '\0');
        }
        if (!found || !counts)
            continue;
        size_t byte = 0; /* a negative number: so many times the next one */
        for (size_t i = 0; i < json_array_size(counts); i++) {
            int64_t number = json_integer_value(json_array_get(counts, i)), times = 1;
            if (number < 0) {
                times = -number;
                number = json_integer_value(json_array_get(counts, ++i));
            }
            for (; times; times--, byte++)
                if (number && byte / 4 < 100)
                    used[byte / 4] = true;
        }
        return true;
    }
    return false;
}

static void test_dhat(void **state)
{
    (void)state;
    if (!have_command("valgrind") || !have_command("gcc"))
        SKIP("valgrind is not installed");
    static const char *const functions[] = {"of_fields",   "of_borders", "of_copies",  "of_sources",
                                            "of_elements", "of_sums",    "of_strides", "of_conditions"};
    const char *program = program_of(PLAIN);
    char *file = join_path(directory, "dhat.json"), argument[4200];
    snprintf(argument, sizeof argument, "--dhat-out-file=%s", file);
    const char *const argv[] = {"valgrind", "-q", "--tool=dhat", argument, program, "patterns", NULL};
    struct run_result result = run(argv, NULL);
    json_t *dhat = json_load_file(file, 0, NULL);
    if (!dhat)
        SKIP("valgrind --tool=dhat does not run here: %.300s", result.err);
    struct recording r = record(CLANG_O0, "patterns", NULL);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        bool used[100] = {false};
        if (!dhat_words(dhat, functions[f], used))
            fail_msg("DHAT has no counts of %s", functions[f]);
        const json_t *histogram = histogram_of(r.report, functions[f]);
        for (size_t word = 0; word < 100; word++)
            if (used[word] != (value(histogram, "reads", word) || value(histogram, "writes", word)))
                fail_msg("%s, word %zu: %s by DHAT", functions[f], word, used[word] ? "used" : "not used");
    }
    recording_free(&r);
    json_decref(dhat);
    run_result_free(&result);
    free(file);
}

/* ---- periods ---- */

/* In how many periods a word was used depends on when the program and the sampler had the processor: the program says
 * in how many stretches of a period it ran, the profile how long periods became. */
static void check_periods(const char *options, const char *period_ms)
{
    const char *const argv[] = {program_of(CLANG), "hot", "400", period_ms, NULL};
    struct recording r = record_and_load(argv, &(struct record_options){.options = options});
    assert_exit(&r.run, 0, "hot");
    int slots = 0, slots_half = 0;
    if (sscanf(r.run.out, "%d %d", &slots, &slots_half) != 2)
        fail_msg("the program says %s", r.run.out);
    const json_t *histogram = histogram_of(r.report, "of_hot");
    expect_words("of_hot", histogram, "0 9", "0 5");
    int64_t all = value(histogram, "writes", 0), half = value(histogram, "reads", 9),
            reads = value(histogram, "reads", 0);
    int64_t rounds = json_number(r.report, "process.access.word_periods.rounds");
    int64_t longest_ns = rounds ? json_number_or_none(r.report, "process.access.word_periods.longest_ns") : 400000000;
    int64_t at_once = (longest_ns > 0 ? longest_ns : 0) / (atoi(period_ms) * 1000000ll) + 2; /* stretches in a period */
    assert_int_equal(value(histogram, "writes", 5), 1);
    if (all > rounds + 2 || all > 2 * slots + 2 || all < slots / at_once - 1)
        fail_msg("%lld periods, %lld rounds, ran in %d", (long long)all, (long long)rounds, slots);
    if (half > 2 * slots_half + 2 || half < slots_half / at_once - 1 || all - half < (slots - slots_half) / at_once - 2)
        fail_msg("%lld of %lld periods in the first half, ran in %d of %d", (long long)half, (long long)all, slots_half,
                 slots);
    /* A period may end between a read and the write after it, most often when another program gets the processor. */
    if (llabs(reads - all) > 1 + all / 4)
        fail_msg("read in %lld periods, written in %lld", (long long)reads, (long long)all);
    recording_free(&r);
}

static void test_periods(void **state)
{
    (void)state;
    check_periods(NULL, "20");
    check_periods("words-period=5", "5");
}

/* More than the 127 that a cell can count: nothing is lost. */
static void test_carried(void **state)
{
    (void)state;
    const char *const argv[] = {program_of(CLANG), "hot", "2500", NULL};
    struct recording r = record_and_load(argv, &(struct record_options){.options = "words-period=1"});
    const json_t *histogram = histogram_of(r.report, "of_hot");
    int64_t all = value(histogram, "writes", 0), rounds = json_number(r.report, "process.access.word_periods.rounds");
    if (rounds < 600) /* hardly: a machine that is busy with other things */
        SKIP("only %lld rounds", (long long)rounds);
    if (all <= 150 || all > rounds + 2) /* in some the program may not have run */
        fail_msg("%lld periods of %lld rounds", (long long)all, (long long)rounds);
    assert_true(json_is_false(json_object_get(histogram, "lower_bounds")));
    recording_free(&r);
}

/* Without a thread allocations look. */
static void test_without_thread(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "stress", "words-thread=0:words-period=1");
    assert_true(json_number(r.report, "process.access.word_periods.rounds") > 3);
    expect(r.report, "of_threads", "7", "2 9");
    recording_free(&r);
    r = record(CLANG, "patterns", "words-thread=0");
    expect(r.report, "of_fields", "2-3 6 12 14-15", "0 4 8-9 12 14-15");
    recording_free(&r);
}

/* What blocks that are used alike have in common is in the file at every moment. */
static void test_killed(void **state)
{
    (void)state;
    const char *const argv[] = {program_of(CLANG), "killed", NULL};
    struct recording r = record_and_load(argv, &(struct record_options){0});
    const json_t *histogram = histogram_of(r.report, "of_alike");
    assert_string_equal(words_of(histogram, "blocks_written"), "1 40");
    assert_int_equal(value(histogram, "blocks_written", 1), 1000);
    assert_int_equal(value(histogram, "blocks_read", 3), 1000);
    assert_int_equal(value(histogram, "blocks_written", 40), 1);
    recording_free(&r);
}

/* A dump has what was freed before and what is live then; the profile everything, once. */
static void test_dumped(void **state)
{
    (void)state;
    const char *const argv[] = {program_of(CLANG), "dumped", NULL};
    struct recording r = record_and_load(argv, &(struct record_options){0});
    assert_exit(&r.run, 0, "dumped");
    assert_int_equal(r.file_count, 2);
    bool first = value(histogram_of(r.reports[0], "of_alike"), "blocks_written", 1) == 3;
    const json_t *dump = r.reports[!first], *all = r.reports[first];
    assert_int_equal(value(histogram_of(dump, "of_alike"), "blocks_written", 1), 3);
    assert_int_equal(value(histogram_of(all, "of_alike"), "blocks_written", 1), 6);
    assert_string_equal(words_of(histogram_of(dump, "of_live"), "blocks_written"), "2");
    assert_string_equal(words_of(histogram_of(all, "of_live"), "blocks_written"), "2 4");
    assert_int_equal(value(histogram_of(all, "of_live"), "blocks_written", 2), 1);
    recording_free(&r);
}

/* After a filter that kills for most system calls nobody looks any more; words are reported as before. */
static void test_seccomp(void **state)
{
    (void)state;
    const char *const argv[] = {program_of(CLANG), "seccomp", NULL};
    struct recording r = record_and_load(argv, &(struct record_options){0});
    assert_exit(&r.run, 0, "seccomp");
    const json_t *histogram = histogram_of(r.report, "of_alike");
    assert_string_equal(words_of(histogram, "blocks_written"), "1");
    assert_int_equal(value(histogram, "blocks_written", 1), 200);
    assert_int_equal(value(histogram, "blocks_read", 3), 200);
    recording_free(&r);
}

/* Looking costs a share of what the program computes, however large its heap is. */
static void test_cost(void **state)
{
    (void)state;
    const char *const argv[] = {program_of(CLANG), "many", NULL};
    struct recording r = record_and_load(argv, &(struct record_options){.options = "words-period=5"});
    assert_exit(&r.run, 0, "many");
    double cost = (double)json_number(r.report, "process.access.word_periods.cost_ns"), cpu = 0, wall = 0;
    assert_int_equal(sscanf(r.run.out, "%lf %lf", &cpu, &wall), 2);
    if (cost > cpu / 25 + wall / 200 + 50e6) /* and the last look */
        fail_msg("%.0f ns of %.0f, %.0f in all", cost, cpu, wall);
    recording_free(&r);
}

/* ---- threads and processes ---- */

static void test_lines(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "lines", "words-period=2");
    const json_t *line = only_context(r.report, "of_lines"), *both = only_context(r.report, "of_both");
    assert_int_equal(json_number(line, "sharing.false_shared_lines"), 1);
    assert_int_equal(json_number(line, "sharing.true_shared_lines"), 0);
    assert_int_equal(json_number(line, "shared_granules"), 0);
    assert_int_equal(json_number(both, "sharing.true_shared_lines"), 1);
    assert_int_equal(json_number(both, "sharing.writers"), 1);
    assert_int_equal(json_number(r.report, "totals.threads_at_once"), 1); /* the sampler is none of them */
    recording_free(&r);
}

/* Blocks are freed, moved and handed out again while they are looked at: no use is told of another block. */
static void test_stress(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "stress", "words-period=1");
    const json_t *context = only_context(r.report, "of_threads"), *histogram = histogram_of(r.report, "of_threads");
    expect(r.report, "of_threads", "7", "2 9");
    int64_t blocks = json_number(context, "allocations");
    assert_int_equal(value(histogram, "blocks_read", 7), blocks);
    assert_int_equal(value(histogram, "blocks_written", 2), blocks);
    assert_int_equal(value(histogram, "blocks_written", 9), blocks);
    /* Each is used when it is new: in one period, two if that ends between. */
    int64_t rounds = json_number(r.report, "process.access.word_periods.rounds");
    assert_true(value(histogram, "writes", 2) >= blocks && value(histogram, "writes", 2) <= blocks + 64 * (rounds + 1));
    recording_free(&r);
}

static void test_forks(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "forks", "words-period=10");
    assert_int_equal(r.file_count, 2);
    expect(r.reports[0], "of_parent", "2", "1");
    expect(r.reports[1], "of_child", "6", "5-6");
    assert_true(value(histogram_of(r.reports[1], "of_child"), "writes", 6) >= 3);
    recording_free(&r);
}

static void test_free_stacks(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "pairs", "free-stacks=1");
    const json_t *context = only_context(r.report, "of_pairs"), *stack;
    size_t index, found = 0;
    expect(r.report, "of_pairs", "6", "1");
    json_array_foreach(json_object_get(context, "free_stacks"), index, stack)
    {
        bool here = !strcmp(stack_function(stack, 0), "free_here");
        expect_words(stack_function(stack, 0), json_object_get(stack, "word_histogram"), here ? "" : "6",
                     here ? "1" : "");
        found++;
    }
    assert_int_equal(found, 2);
    recording_free(&r);
}

/* ---- merging ---- */

/* Each number of SUM, a histogram, is the sum of those of A and B. */
static void assert_sum(const json_t *sum, const json_t *a, const json_t *b)
{
    static const char *const arrays[] = {"reads", "writes", "blocks_read", "blocks_written"};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        size_t count = json_array_size(json_object_get(sum, arrays[i]));
        assert_true(count > 0);
        assert_int_equal(count, json_array_size(json_object_get(a, arrays[i])));
        for (size_t word = 0; word < count; word++)
            assert_int_equal(value(sum, arrays[i], word), value(a, arrays[i], word) + value(b, arrays[i], word));
    }
}

/* What blocks of of_pairs that FUNCTION freed were used for. */
static const json_t *freed_in(const json_t *report, const char *function)
{
    json_t *stack;
    size_t index;
    json_array_foreach(json_object_get(only_context(report, "of_pairs"), "free_stacks"), index, stack)
    {
        if (!strcmp(stack_function(stack, 0), function))
            return json_object_get(stack, "word_histogram");
    }
    fail_msg("nothing freed in %s", function);
    return NULL;
}

/* Two runs as one: the sums of both, word by word, also by where blocks were freed. */
static void test_merged(void **state)
{
    (void)state;
    struct recording a = record(CLANG, "pairs", "free-stacks=1"), b = record(CLANG, "pairs", "free-stacks=1");
    char *file = join_path(directory, "merged.hwprof");
    const char *const arguments[] = {"merge", "-f", "-o", file, a.files[0], b.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "merge");
    json_t *report = load_report(file, 0);
    assert_sum(histogram_of(report, "of_pairs"), histogram_of(a.report, "of_pairs"),
               histogram_of(b.report, "of_pairs"));
    assert_sum(freed_in(report, "free_here"), freed_in(a.report, "free_here"), freed_in(b.report, "free_here"));
    assert_sum(freed_in(report, "free_there"), freed_in(a.report, "free_there"), freed_in(b.report, "free_there"));
    expect(report, "of_pairs", "6", "1");
    assert_int_equal(json_number(report, "process.runs"), 2);
    json_decref(report);
    run_result_free(&result);
    free(file);
    recording_free(&a);
    recording_free(&b);
}

/* ---- text ---- */

/* Which words are used how often, at a glance: as `fields` and `elements` use them, word 12 twice as often as others.
 */
static void test_text(void **state)
{
    (void)state;
    static const char *const ascii[] = {"0  4.44 4.4. 44.. 8.88", "0  .8.. .8.. .8.. .8..", "0  .888 888. .. "},
                             *const utf8[] = {
                                 "0  \u2584\u00b7\u2584\u2584 \u2584\u00b7\u2584\u00b7 \u2584\u2584\u00b7\u00b7 "
                                 "\u2588\u00b7\u2588\u2588  "};
    struct recording r = record(CLANG, "patterns", NULL);
    const char *const arguments[] = {"report", "--section", "accesses", r.files[0], NULL};
    static const char *const environments[][3] = {{"LC_ALL=C", "NO_COLOR=1", NULL}, {"LC_ALL=C.UTF-8", NULL}};
    for (int i = 0; i < 2; i++) {
        struct run_result result = heapwise(arguments, &(struct run_options){.environment = environments[i]});
        assert_exit(&result, 0, "report");
        for (size_t k = 0; k < (i ? sizeof utf8 / sizeof *utf8 : sizeof ascii / sizeof *ascii); k++)
            assert_contains(result.out, (i ? utf8 : ascii)[k]);
        assert_contains(result.out, "Words of 4 bytes, 64 bytes a row: how often each is used");
        assert_null(strchr(result.out, '\033'));
        for (const char *line = result.out, *end; (end = strchr(line, '\n')); line = end + 1) {
            int columns = 0;
            for (const char *at = line; at < end; at++)
                columns += ((unsigned char)*at & 0xc0) != 0x80;
            assert_true(columns <= 80);
        }
        run_result_free(&result);
    }
    recording_free(&r);
}

/* ---- other formats ---- */

/* The number of FIELD of the blocks that FUNCTION allocates, in llvm-profdata's YAML. */
static int64_t field_of(const char *yaml, const char *function, const char *field)
{
    char text[128];
    snprintf(text, sizeof text, "# %s\n", function);
    const char *at = strstr(yaml, text);
    snprintf(text, sizeof text, " %s:", field);
    at = at ? strstr(at, text) : NULL;
    if (!at)
        fail_msg("no %s of %s in:\n%s", field, function, yaml);
    return atoll(at + strlen(text));
}

/* LLVM's formats hold numbers of accesses: of blocks that were never used it is known, of others not. */
static void test_export(void **state)
{
    (void)state;
    struct recording r = record(CLANG, "patterns", NULL);
    const char *const arguments[] = {"export", "--format", "memprof-yaml", r.files[0], NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "export");
    assert_contains(result.err, "made with --granule=4");
    const json_t *used = only_context(r.report, "of_fields"), *unused = only_context(r.report, "of_nothing");
    assert_int_equal(field_of(result.out, "of_fields", "AllocCount"), json_number(used, "allocations"));
    assert_int_equal(field_of(result.out, "of_fields", "TotalSize"), json_number(used, "bytes"));
    assert_int_equal(field_of(result.out, "of_fields", "TotalAccessCount"), 0);
    assert_int_equal(field_of(result.out, "of_fields", "TotalLifetimeAccessDensity"),
                     100 * json_number(used, "allocations")); /* neither hot nor cold */
    assert_int_equal(field_of(result.out, "of_nothing", "AllocCount"), json_number(unused, "allocations"));
    assert_int_equal(field_of(result.out, "of_nothing", "TotalLifetimeAccessDensity"), 0);
    assert_int_equal(field_of(result.out, "of_nothing", "MaxAccessCount"), 0);
    run_result_free(&result);
    recording_free(&r);
}

/* ---- findings ---- */

/* The finding of KIND on the blocks of CONTEXT; NULL: none. */
static const json_t *finding_of(const json_t *report, const json_t *context, const char *kind)
{
    const json_t *finding, *id;
    size_t index, i;
    json_array_foreach(json_object_get(report, "findings"), index, finding)
    {
        json_array_foreach(json_object_get(finding, "contexts"), i, id)
        {
            if (!strcmp(json_text(finding, "kind"), kind) &&
                json_integer_value(id) == json_integer_value(json_object_get(context, "id")))
                return finding;
        }
    }
    return NULL;
}

static void test_findings(void **state)
{
    (void)state;
    static const struct {
        const char *function, *kind, *says;
    } wanted[] = {{"of_holes", "unused-words",
                   "32 of 128 bytes of every block: bytes 32 to 63. They are "
                   "used in 0 of "},
                  {"of_headers", "hot-header", "The first 16 bytes are used in "},
                  {"of_headers", "sparse-blocks", "of the bytes, in granules of 4, are used in no period."}};
    struct recording r = record(CLANG, "findings", NULL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const json_t *finding = finding_of(r.report, only_context(r.report, wanted[i].function), wanted[i].kind);
        if (!finding)
            fail_msg("%s: no finding %s", wanted[i].function, wanted[i].kind);
        const char *why = json_text(finding, "why");
        if (!strstr(why, wanted[i].says) || !strstr(why, "period") || strstr(why, "accesses"))
            fail_msg("%s: %s", wanted[i].kind, why);
    }
    assert_int_equal(json_array_size(json_object_get(r.report, "findings")), sizeof wanted / sizeof *wanted);
    recording_free(&r);
    r = record(CLANG, "no findings", NULL);
    assert_int_equal(json_array_size(json_object_get(r.report, "findings")), 0);
    assert_true(json_is_array(json_object_get(r.report, "findings")));
    recording_free(&r);
}

TEST_LIST(cmocka_unit_test(test_patterns_clang), cmocka_unit_test(test_patterns_unoptimised),
          cmocka_unit_test(test_patterns_clang_19), cmocka_unit_test(test_patterns_gcc),
          cmocka_unit_test(test_reallocations), cmocka_unit_test(test_dhat), cmocka_unit_test(test_periods),
          cmocka_unit_test(test_carried), cmocka_unit_test(test_killed), cmocka_unit_test(test_dumped),
          cmocka_unit_test(test_seccomp), cmocka_unit_test(test_cost), cmocka_unit_test(test_without_thread),
          cmocka_unit_test(test_lines), cmocka_unit_test(test_stress), cmocka_unit_test(test_forks),
          cmocka_unit_test(test_free_stacks), cmocka_unit_test(test_merged), cmocka_unit_test(test_export),
          cmocka_unit_test(test_text), cmocka_unit_test(test_findings))
