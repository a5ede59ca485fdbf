/* test_counting.c - what is easily missed when accesses are counted: instructions that no load or store of the source
 * stands for, signal handlers, libraries that do not count, fields of bases and of structs by value. Programs print
 * what they do, and their profiles must say the same. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run of a program, built from tests/programs/SOURCE. */
struct profiled {
    struct run_result ran;
    json_t *report;
    char *text;
};

/* Builds SOURCE by the verb and its FLAGS (at most 12) and runs it. False: no such compiler. */
static bool count(struct profiled *counted, const char *verb, const char *source, const char *const flags[])
{
    static int number;
    char name[32], *program, *profile, *options, *from;
    snprintf(name, sizeof name, "program%d", ++number);
    program = join_path(test_directory, name);
    assert_true(asprintf(&profile, "%s.hwprof", program) > 0 &&
                asprintf(&options, "HEAPWISE_OPTIONS=output=%s", profile) > 0);
    assert_true(asprintf(&from, "%s/programs/%s", TEST_SOURCES, source) > 0);
    const char *build[24] = {heapwise_path(), verb, "-g", "-w", "-o", program, from};
    for (size_t i = 7; *flags; flags++)
        build[i++] = *flags;
    struct run_result built = run(build, NULL);
    const bool there = built.code != 127 && !strstr(built.err, "not found") && !strstr(built.err, "no plugin");
    if (there && built.code != 0)
        fail_msg("%s:\n%s", run_describe(build), built.err);
    run_result_free(&built);
    if (there) {
        const char *const command[] = {program, NULL}, *const environment[] = {options, NULL};
        counted->ran = run(command, &(struct run_options){.environment = environment});
        assert_exit(&counted->ran, 0, source);
        counted->report = load_report(profile, 0);
        const char *const arguments[] = {"report", "--full", profile, NULL};
        struct run_result report = heapwise(arguments, NULL);
        assert_exit(&report, 0, "report");
        counted->text = strdup(report.out);
        run_result_free(&report);
    }
    free(program);
    free(profile);
    free(options);
    free(from);
    return there;
}

static void profiled_free(struct profiled *counted)
{
    run_result_free(&counted->ran);
    json_decref(counted->report);
    free(counted->text);
}

/* Each "expect FUNCTION READS WRITES" of the output against the blocks of that function; EXACT, or only that they were
 * accessed. */
static void check_numbers(const struct profiled *counted, bool exact, const char *what)
{
    char *copy = strdup(counted->ran.out), *next = copy, name[64];
    long reads, writes;
    int lines = 0, wrong = 0;
    for (char *line; (line = strsep(&next, "\n"));) {
        if (sscanf(line, "expect %63s %ld %ld", name, &reads, &writes) != 3)
            continue;
        lines++;
        const json_t *context = only_context(counted->report, name);
        if (json_number(context, "never_accessed") == 0 &&
            (!exact ||
             (json_number(context, "accesses.reads") == reads && json_number(context, "accesses.writes") == writes)))
            continue;
        wrong++;
        print_error("%s: %s: expected %ld reads and %ld writes\n", what, name, reads, writes);
    }
    free(copy);
    assert_int_not_equal(lines, 0);
    assert_int_equal(wrong, 0);
}

static const json_t *module_named(const json_t *report, const char *name)
{
    size_t index;
    json_t *module;
    json_array_foreach(json_object_get(report, "modules"), index, module)
    {
        const char *path = json_string_value(json_object_get(module, "path"));
        if (path && strstr(path, name))
            return module;
    }
    fail_msg("no module %s", name);
    return NULL;
}

/* ---- instructions ---- */

static void instructions(void **state)
{
    static const struct {
        const char *flags[4];
        bool exact;
    } builds[] = {
        {{"--compiler=clang-22", "-O0"}, true},
        {{"--compiler=clang-22", "-O2"}, true},
        {{"--compiler=clang-22", "-O2", "--granule=8"}, true},
        {{"--compiler=clang-22", "-O2", "--granule=4"}, false},
        {{"--compiler=clang-19", "-O2"}, true},
        {{"--compiler=gcc", "-O0", "-DNO_ASSEMBLY"}, true},
        {{"--compiler=gcc", "-O2", "-DNO_ASSEMBLY"}, true},
    };
    int seen = 0;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        struct profiled counted;
        if (!count(&counted, "cc", "intrinsics.c", builds[i].flags))
            continue;
        seen++;
        check_numbers(&counted, builds[i].exact, run_describe(builds[i].flags));
        const json_t *module = module_named(counted.report, "/program");
        if (strstr(builds[i].flags[0], "gcc")) { /* which does not tell */
            assert_true(json_is_null(json_object_get(module, "uncounted_operations")));
            assert_contains(counted.text, "Assembly in code compiled by gcc is not counted");
        } else {
            assert_int_equal(json_number(module, "uncounted_operations"), 1); /* hidden() */
            assert_contains(counted.text, "never accessed by code that counts");
        }
        profiled_free(&counted);
    }
    if (!seen)
        SKIP("no clang with a plugin");
}

/* ---- signals ---- */

static void signals(void **state)
{
    static const char *const builds[][4] = {{"-O0"}, {"-O2", "-flto", "-fuse-ld=lld"}, {"-O2"}};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        struct profiled counted;
        if (i == 1 && !have_command("ld.lld")) {
            LEAVE_OUT("no lld");
            continue;
        }
        if (!count(&counted, "cc", "interrupted.c", builds[i]))
            SKIP("no compiler");
        check_numbers(&counted, true, run_describe(builds[i]));
        profiled_free(&counted);
    }
}

/* Counters of fields are added to in the same way. */
static void signals_and_fields(void **state)
{
    static const char *const flags[] = {"--fields", "-O0", "--compiler=clang-22", NULL};
    struct profiled counted;
    if (!count(&counted, "cc", "interrupted.c", flags))
        SKIP("no clang-22 with a plugin");
    long reads = 0, writes = 0, read_here = 0, written_here = 0;
    assert_int_equal(sscanf(counted.ran.out, "expect shared_words %ld %ld", &reads, &writes), 2);
    const json_t *words = json_entry(counted.report, "fields", "struct", "words");
    size_t index;
    json_t *field;
    json_array_foreach(json_object_get(words, "fields"), index, field)
    {
        read_here += (long)json_number(field, "reads");
        written_here += (long)json_number(field, "writes");
    }
    assert_int_equal(read_here, reads);
    assert_int_equal(written_here, writes);
    profiled_free(&counted);
}

/* ---- modules that do not count ---- */

static void uncounted_library(void **state)
{
    static const char library[] =
        "void lib_write(volatile int *p, int n) { for (int i = 0; i < n; i++) p[i & 15] = i; }\n";
    char *source = join_path(test_directory, "library.c"), *object = join_path(test_directory, "libuncounted.so"),
         *search;
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    fputs(library, file);
    fclose(file);
    const char *const gcc[] = {"gcc", "-O2", "-shared", "-fPIC", "-o", object, source, NULL};
    if (!have_command("gcc"))
        SKIP("no gcc");
    struct run_result built = run(gcc, NULL);
    assert_exit(&built, 0, "gcc");
    run_result_free(&built);
    assert_true(asprintf(&search, "-Wl,-rpath,%s", test_directory) > 0);
    const char *const flags[] = {object, search, NULL};
    struct profiled counted;
    if (!count(&counted, "cc", "uses_library.c", flags))
        SKIP("no compiler");
    assert_true(json_is_false(json_object_get(module_named(counted.report, "libuncounted.so"), "counts_accesses")));
    assert_true(json_is_true(json_object_get(module_named(counted.report, "/program"), "counts_accesses")));
    assert_contains(counted.text, "1 of 1 block never accessed by code that counts");
    assert_contains(counted.text, "libuncounted.so is not counted");
    assert_true(report_says(counted.report, "libuncounted.so"));
    profiled_free(&counted);
    free(source);
    free(object);
    free(search);
}

/* ---- fields of parts ---- */

static const json_t *field_named(const json_t *report, const char *structure, const char *name)
{
    const json_t *of = json_entry(report, "fields", "struct", structure);
    size_t index;
    json_t *field;
    json_array_foreach(json_object_get(of, "fields"), index,
                       field) if (strcmp(json_text(field, "name"), name) == 0) return field;
    fail_msg("no field %s in %s", name, structure);
    return NULL;
}

static void check_field(const json_t *report, const char *structure, const char *name, int reads, int writes,
                        int inherited, int possible)
{
    const json_t *field = field_named(report, structure, name);
    const struct {
        const char *key;
        int expected;
    } numbers[] = {{"reads", reads}, {"writes", writes}};
    for (size_t i = 0; i < 2; i++)
        if (json_number(field, numbers[i].key) != numbers[i].expected)
            fail_msg("%s %s: %lld %s instead of %d", structure, name, (long long)json_number(field, numbers[i].key),
                     numbers[i].key, numbers[i].expected);
    assert_int_equal(inherited ? json_number(field, "inherited_writes") : 0, inherited);
    assert_int_equal(possible ? json_number(field, "possible_reads") : 0, possible);
}

static void parts(void **state)
{
    static const char *const builds[][4] = {{"--fields", "-O0", "--compiler=clang++-22"},
                                            {"--fields", "-O1", "--compiler=clang++-22"},
                                            {"--fields", "-O2", "--compiler=clang++-22"},
                                            {"--fields", "-O2", "--compiler=clang++-19"}};
    int seen = 0;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        struct profiled counted;
        if (!count(&counted, "c++", "fields_parts.cpp", builds[i]))
            continue;
        seen++;
        const json_t *report = counted.report;
        check_field(report, "base", "refs", 0, 1000, 1000, 0);
        check_field(report, "base", "read_as_base", 2000, 1, 1, 0);
        check_field(report, "derived", "base::refs", 0, 1000, 0, 0);
        check_field(report, "derived", "base::read_as_base", 0, 1, 0, 2000);
        check_field(report, "vec", "tag", 0, 1000, 1000, 0);
        check_field(report, "vec", "x", 2000, 0, 0, 0);
        check_field(report, "body", "position.tag", 0, 1000, 0, 0);
        check_field(report, "body", "velocity.x", 0, 0, 0, 2000);
        check_field(report, "bits", "second", 0, 9, 0, 0);
        check_field(report, "bits", "first", 0, 0, 0, 0);
        check_field(report, "bits", "third", 0, 0, 0, 0);
        /* What the C++ library does with nodes is not known. */
        const json_t *left = field_named(report, "std::_Rb_tree_node_base", "_M_left");
        assert_true(json_is_true(json_object_get(left, "used_by_uncounted_code")));
        assert_null(json_object_get(field_named(report, "base", "unused"), "used_by_uncounted_code"));
        profiled_free(&counted);
    }
    if (!seen)
        SKIP("no clang with a plugin");
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(instructions), cmocka_unit_test(signals),
               cmocka_unit_test(signals_and_fields), cmocka_unit_test(uncounted_library), cmocka_unit_test(parts))
