/* test_llvm.c - LLVM's heap profiles, out and in. What llvm-profdata and clang make of our files is the measure, and
 * what llvm-profdata says of theirs. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *directory;
static char *profile; /* of the program llvm, in heap mode */

static const char *need(const char *program)
{
    const char *path = program_path(program);
    if (!path || !have_command("llvm-profdata-22"))
        SKIP("clang++-22 or llvm-profdata-22 is missing");
    return path;
}

/* Runs ARGV, which must end with CODE; its standard output. */
static char *output_of(const char *const argv[], int code)
{
    struct run_result result = run(argv, NULL);
    if (result.code != code)
        fail_msg("%s: ended with %d, should be %d: %s", run_describe(argv), result.code, code, result.err);
    char *out = strdup(result.out);
    run_result_free(&result);
    return out;
}

static char *in_directory(const char *name)
{
    return join_path(directory, name);
}

static int set_up(void **state)
{
    directory = make_directory();
    const char *program = program_path("llvm");
    if (!program || !have_command("llvm-profdata-22"))
        return 0;
    profile = in_directory("llvm.hwprof");
    const char *const argv[] = {heapwise_path(), "record", "-q", "-o", profile, "--", program, NULL};
    free(output_of(argv, 0));
    return 0;
}

static int tear_down(void **state)
{
    remove_directory(directory);
    free(profile);
    return 0;
}

/* heapwise export --format FORMAT [--version VERSION] FILE -o NAME; the path of NAME. */
static char *export_as(const char *file, const char *format, const char *version, const char *name)
{
    char *path = in_directory(name);
    const char *argv[] = {
        heapwise_path(), "export", "-q", "-f", "--format", format, "-o", path, file, NULL, NULL, NULL};
    if (version) {
        argv[9] = "--version";
        argv[10] = version;
    }
    free(output_of(argv, 0));
    return path;
}

/* ---- what llvm-profdata shows ---- */

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The records of llvm-profdata's YAML, one line each (function, kind, frames, numbers), sorted: their order in a file
 * means nothing. */
static char *records_of(const char *yaml)
{
    char *text = strdup(yaml), *save = NULL, guid[32] = "", *record[20000];
    const char *kind = "";
    size_t count = 0, size = 1;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " ");
        if (sscanf(line, "- GUID: %30s", guid) == 1)
            continue;
        if (!strncmp(line, "AllocSites", 10) || !strncmp(line, "CallSites", 9)) {
            kind = *line == 'A' ? "allocation" : "call";
        } else if (!strncmp(line, "- Callstack", 11) || !strncmp(line, "- Frames", 8)) {
            assert_true(count < sizeof record / sizeof *record);
            record[count] = NULL;
            assert_true(asprintf(&record[count++], "%s %s", guid, kind) > 0);
        } else if (count && *line != '#' && !strstr(line, "AccessHistogram") && strcmp(line, "...") &&
                   strcmp(line, "MemInfoBlock:") && strcmp(line, "---") && strcmp(line, "HeapProfileRecords:")) {
            char *longer, name[64];
            unsigned long long value;
            if (sscanf(line, "%63[A-Za-z]: %llu", name, &value) == 2)
                assert_true(asprintf(&longer, "%s %s=%llu", record[count - 1], name, value) > 0);
            else
                assert_true(asprintf(&longer, "%s | %s", record[count - 1], line) > 0);
            free(record[count - 1]);
            record[count - 1] = longer;
        }
    }
    qsort(record, count, sizeof *record, compare_lines);
    for (size_t i = 0; i < count; i++)
        size += strlen(record[i]) + 1;
    char *joined = calloc(size, 1), *end = joined;
    for (size_t i = 0; i < count; i++) {
        end = stpcpy(stpcpy(end, record[i]), "\n");
        free(record[i]);
    }
    free(text);
    return joined;
}

/* Shown by llvm-profdata: an indexed file as it is, a raw or YAML file by way of merge. */
static char *shown(const char *file, const char *binary)
{
    char *merged = in_directory("merged.profdata");
    const char *merge[] = {"llvm-profdata-22", "merge", file, "-o", merged, "--memprof-full-schema", NULL, NULL, NULL};
    const char *const show[] = {"llvm-profdata-22", "show", "--memory", binary || strstr(file, ".yaml") ? merged : file,
                                NULL};
    if (binary) {
        merge[6] = "--profiled-binary";
        merge[7] = binary;
    }
    if (binary || strstr(file, ".yaml"))
        free(output_of(merge, 0));
    char *yaml = output_of(show, 0), *records = records_of(yaml);
    free(yaml);
    free(merged);
    return records;
}

static void assert_same(const char *what, const char *expected, const char *actual)
{
    size_t line = 0;
    while (expected[line] && expected[line] == actual[line])
        line++;
    while (line && expected[line - 1] != '\n')
        line--;
    if (strcmp(expected, actual))
        fail_msg("%s: \"%.*s\" should be \"%.*s\"", what, (int)strcspn(actual + line, "\n"), actual + line,
                 (int)strcspn(expected + line, "\n"), expected + line);
}

static void test_the_same_from_all(void **state)
{
    const char *program = need("llvm");
    static const char *const raw[] = {"3", "4", "5"}, *const indexed[] = {"3", "4"};
    char *path = export_as(profile, "memprof-yaml", NULL, "p.yaml");
    char *expected = shown(path, NULL);
    free(path);
    assert_non_null(strstr(expected, "AllocCount"));
    assert_non_null(strstr(expected, "IsInlineFrame: true"));
    for (size_t i = 0; i < 3; i++) {
        path = export_as(profile, "memprofraw", raw[i], "p.memprofraw");
        char *records = shown(path, program);
        assert_same(raw[i], expected, records);
        const char *const show[] = {"llvm-profdata-22", "show", "--memory", path, "--profiled-binary", program, NULL};
        char *text = output_of(show, 0); /* shown as it is, too */
        assert_contains(text, "SymbolName: c_function");
        free(text);
        free(records);
        free(path);
    }
    for (size_t i = 0; i < 2; i++) {
        path = export_as(profile, "profdata", indexed[i], "p.profdata");
        char *records = shown(path, NULL);
        assert_same(indexed[i], expected, records);
        free(records);
        free(path);
    }
    free(expected);
}

static void test_not_at_a_fixed_place(void **state)
{
    const char *program = need("llvm-no-pie");
    char *file = in_directory("no-pie.hwprof");
    const char *const argv[] = {heapwise_path(), "record", "-q", "-o", file, "--", program, NULL};
    free(output_of(argv, 0));
    char *raw = export_as(file, "memprofraw", NULL, "no-pie.memprofraw");
    char *indexed = export_as(file, "profdata", NULL, "no-pie.profdata");
    char *expected = shown(raw, program), *records = shown(indexed, NULL);
    assert_same("no-pie", expected, records);
    free(expected);
    free(records);
    free(raw);
    free(indexed);
    free(file);
}

/* The compiler makes the same of our indexed file and of what llvm-profdata makes of our raw one. */
static void test_the_compiler_agrees(void **state)
{
    const char *program = need("llvm");
    char *raw = export_as(profile, "memprofraw", NULL, "c.memprofraw"), *theirs = in_directory("c-theirs.profdata");
    char *own = export_as(profile, "profdata", NULL, "c-own.profdata"), *source = NULL, *text[2];
    const char *const merge[] = {"llvm-profdata-22", "merge", raw, "-o", theirs, "--profiled-binary", program, NULL};
    free(output_of(merge, 0));
    assert_true(asprintf(&source, "%s/programs/llvm.cpp", TEST_SOURCES) > 0);
    for (int i = 0; i < 2; i++) {
        char *use = NULL;
        assert_true(asprintf(&use, "-fmemory-profile-use=%s", i ? own : theirs) > 0);
        const char *const compile[] = {"clang++-22", "-O2",
                                       "-g",         "-fdebug-info-for-profiling",
                                       "-std=c++17", use,
                                       "-mllvm",     "-memprof-ave-lifetime-cold-threshold=0",
                                       "-mllvm",     "-memprof-lifetime-access-density-cold-threshold=100",
                                       "-S",         "-emit-llvm",
                                       "-o",         "-",
                                       source,       NULL};
        text[i] = output_of(compile, 0);
        free(use);
    }
    assert_contains(text[0], "\"memprof\"=\"cold\"");
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    free(raw);
    free(theirs);
    free(own);
    free(source);
}

/* ---- in ---- */

/* Runs a program with clang's runtime; the file it leaves. */
static char *clang_profile(const char *name)
{
    const char *program = need(name);
    char *place = in_directory(name);
    size_t count;
    struct run_options options = {.directory = place};
    const char *const make[] = {"mkdir", "-p", place, NULL};
    free(output_of(make, 0));
    const char *const argv[] = {program, NULL};
    struct run_result result = run(argv, &options);
    assert_exit(&result, 0, name);
    run_result_free(&result);
    const char *const find[] = {"find", place, "-name", "memprof.profraw*", NULL};
    char *found = output_of(find, 0);
    found[strcspn(found, "\n")] = 0;
    if (!*found)
        SKIP("clang's runtime writes no profile here");
    free(place);
    (void)count;
    return found;
}

/* The sum of a field over what llvm-profdata shows of a raw file, all records of one stack counted once. */
static int64_t sum_of(const char *records, const char *field)
{
    int64_t sum = 0;
    for (const char *line = records; *line; line += strcspn(line, "\n") + 1) {
        char guid[32], first[32], name[64];
        const char *frame = strstr(line, "Function: "), *value = NULL;
        snprintf(name, sizeof name, " %s=", field);
        value = strstr(line, name);
        if (!frame || !value || value > line + strcspn(line, "\n"))
            continue;
        /* Only in the record of the leaf's function: those that it was inlined into have it again. */
        if (sscanf(line, "%31s", guid) == 1 && sscanf(frame, "Function: %31[0-9a-fx]", first) == 1 &&
            !strcmp(guid, first))
            sum += atoll(value + strlen(name));
    }
    return sum;
}

static void assert_report_of(const char *file, const char *binary, const char *records)
{
    const char *const argv[] = {heapwise_path(), "report", "--json", "--binary", binary, file, NULL};
    char *text = output_of(argv, 0);
    json_t *report = json_loads(text, 0, NULL);
    assert_non_null(report);
    int64_t allocations = 0, bytes = 0, accesses = 0;
    size_t index;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        const char *line = stack_line(context);
        if (!strstr(line, "main") && !strstr(line, "operator()") && !strstr(line, "c_function"))
            continue; /* of a library: llvm-profdata leaves them out */
        allocations += json_number(context, "allocations");
        bytes += json_number(context, "bytes");
        accesses += json_number(context, "accesses.total");
    }
    assert_int_equal(allocations, sum_of(records, "AllocCount"));
    assert_int_equal(bytes, sum_of(records, "TotalSize"));
    assert_int_equal(accesses, sum_of(records, "TotalAccessCount"));
    assert_int_equal(json_number_or_none(report, "process.pid"), INT64_MIN);
    assert_int_equal(json_number_or_none(report, "totals.live_bytes"), INT64_MIN);
    assert_int_equal(json_number_or_none(report, "totals.frees"), INT64_MIN);
    json_decref(report);
    free(text);
}

static void test_files_of_clang(void **state)
{
    static const char *const programs[] = {"llvm-memprof", "llvm-memprof-dumps", "llvm-memprof-histogram"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char *file = clang_profile(programs[i]);
        const char *program = need(programs[i]);
        char *records = shown(file, program);
        assert_report_of(file, program, records);
        free(records);
        free(file);
    }
}

static void test_dumps_are_told(void **state)
{
    char *file = clang_profile("llvm-memprof-dumps");
    json_t *report = load_report(file, 0);
    assert_int_equal(json_number(report, "process.llvm.dumps"), 3);
    assert_true(report_says(report, "3 dumps"));
    json_decref(report);
    free(file);
}

static void test_indexed_versions(void **state)
{
    static const char *const versions[] = {"--memprof-version=2", "--memprof-version=3", "--memprof-version=4"};
    char *raw = clang_profile("llvm-memprof"), *first = NULL;
    const char *program = need("llvm-memprof");
    for (int full = 0; full < 2; full++) {
        for (size_t i = 0; i < 3; i++) {
            char *indexed = in_directory("of-llvm.profdata");
            const char *merge[] = {"llvm-profdata-22",
                                   "merge",
                                   raw,
                                   "-o",
                                   indexed,
                                   "--profiled-binary",
                                   program,
                                   versions[i],
                                   full ? "--memprof-full-schema" : NULL,
                                   NULL};
            const char *const show[] = {"llvm-profdata-22", "show", "--memory", indexed, NULL};
            free(output_of(merge, 0));
            char *yaml = output_of(show, 0), *records = records_of(yaml);
            if (full)
                assert_report_of(indexed, program, records);
            char *converted = export_as(indexed, "profdata", NULL, "converted.profdata");
            char *again = shown(converted, NULL);
            if (i)
                assert_string_equal(first, again);
            free(first);
            first = again;
            free(converted);
            free(yaml);
            free(records);
            free(indexed);
        }
        free(first);
        first = NULL;
    }
    free(raw);
}

/* The default schema holds no sizes of single blocks: null, not 0. */
static void test_what_was_left_out(void **state)
{
    char *raw = clang_profile("llvm-memprof"), *indexed = in_directory("small.profdata");
    const char *program = need("llvm-memprof");
    const char *const merge[] = {"llvm-profdata-22", "merge", raw, "-o", indexed, "--profiled-binary", program, NULL};
    free(output_of(merge, 0));
    json_t *report = load_report(indexed, 0);
    const json_t *context = json_array_get(json_object_get(report, "contexts"), 0);
    assert_int_equal(json_number_or_none(context, "size.min"), INT64_MIN);
    assert_true(json_is_null(json_object_get(context, "migrated_cpu")));
    assert_true(json_is_null(json_object_get(context, "last_alloc")));
    assert_null(json_object_get(context, "accesses"));
    assert_true(json_number(context, "allocations") > 0);
    json_decref(report);
    const char *const text[] = {heapwise_path(), "report", indexed, NULL};
    free(output_of(text, 0));
    free(raw);
    free(indexed);
}

/* ---- damage and wrong usage ---- */

static void test_damage(void **state)
{
    need("llvm");
    static const char *const formats[] = {"memprofraw", "profdata"};
    for (size_t f = 0; f < 2; f++) {
        char *path = export_as(profile, formats[f], NULL, "whole"), *cut = in_directory("cut");
        FILE *file = fopen(path, "rb");
        static char bytes[1 << 20];
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (size_t part = 0; part < 12; part++) {
            file = fopen(cut, "wb");
            assert_int_equal(fwrite(bytes, 1, 16 + (size - 16) * part / 13, file), 16 + (size - 16) * part / 13);
            fclose(file);
            const char *const argv[] = {heapwise_path(), "report", cut, NULL};
            struct run_result result = run(argv, NULL);
            assert_exit(&result, 2, "damaged");
            assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1); /* one line */
            assert_contains(result.err, "damaged LLVM");
            run_result_free(&result);
        }
        free(path);
        free(cut);
    }
}

static void test_usage(void **state)
{
    need("llvm");
    char *out = in_directory("exists");
    const struct {
        const char *arguments[8];
        const char *message;
    } wrong[] = {
        {{"export", profile}, "which --format?"},
        {{"export", "--format", "pdf", profile}, "does not know 'pdf'"},
        {{"export", "--format", "profdata"}, "which FILE?"},
        {{"export", "--format", "profdata", profile, profile}, "one FILE at a time"},
        {{"export", "--format", "profdata", "--version", "2", profile}, "can be 3 to 4, not 2"},
        {{"export", "--format", "memprof-yaml", "--version", "2", profile}, "can be 3 to 4, not 2"},
        {{"export", "--format", "profdata", "--cold-after", "-1", profile}, "--cold-after"},
        {{"export", "--format", "profdata", "-o", "/nowhere/at/all", profile}, "/nowhere/at/all"},
        {{"export", "--format", "profdata", "/nowhere/at/all"}, "/nowhere/at/all"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct run_result result = heapwise(wrong[i].arguments, NULL);
        assert_exit(&result, 2, wrong[i].message);
        assert_contains(result.err, wrong[i].message);
        run_result_free(&result);
    }
    const char *const once[] = {"export", "-q", "--format", "profdata", "-o", out, profile, NULL};
    struct run_result result = heapwise(once, NULL);
    assert_exit(&result, 0, "first");
    run_result_free(&result);
    result = heapwise(once, NULL);
    assert_exit(&result, 2, "an existing file");
    assert_contains(result.err, "exists already");
    run_result_free(&result);
    free(out);
}

/* ---- the loop ---- */

/* COUNT: as the example's variable. COLD: how many blocks get that hint. */
static void run_example(const char *count, const char *cold)
{
    need("llvm");
    if (!have_command("ld.lld-22"))
        SKIP("lld-22 is missing");
    char *script = NULL, *heapwise_variable = NULL, *place = in_directory(count);
    assert_true(asprintf(&script, "%s/../examples/hot_cold_new/run", TEST_SOURCES) > 0);
    assert_true(asprintf(&heapwise_variable, "HEAPWISE=%s", heapwise_path()) > 0);
    const char *const argv[] = {script, place, NULL}, *const environment[] = {heapwise_variable, count, NULL};
    struct run_options options = {.environment = environment, .timeout_s = 300};
    struct run_result result = run(argv, &options);
    assert_exit(&result, 0, "the example");
    /* Contexts match whatever was inlined where: the archive's and the requests', with make() inlined and not. */
    const char *inlined = strstr(result.out, "with -DINLINE_A"), *apart = strstr(result.out, "with -UINLINE_A");
    assert_non_null(inlined);
    assert_non_null(apart);
    const char *const parts[] = {inlined, apart};
    for (size_t i = 0; i < 2; i++) {
        assert_contains(parts[i], "MemProf cold context has total profiled size 256000");
        assert_contains(parts[i], "MemProf notcold context has total profiled size 512000");
        assert_contains(parts[i], "\"memprof\"=\"ambiguous\"");
        assert_contains(parts[i], "\"memprof\"=\"cold\"");
    }
    /* The archive and the settings are cold; the requests, made by the same line as the archive, are not. */
    assert_contains(result.err, cold);
    assert_contains(result.err, "hint 128: ");
    assert_contains(result.err, "no hint: 0 blocks");
    run_result_free(&result);
    free(script);
    free(heapwise_variable);
    free(place);
}

static void test_example_with_accesses(void **state)
{
    char *library = strdup(runtime_path()), *pass = NULL;
    *strrchr(library, '/') = 0;
    assert_true(asprintf(&pass, "%s/HeapwisePass-22.so", library) > 0);
    const bool there = access(pass, R_OK) == 0;
    free(library);
    free(pass);
    if (!there)
        SKIP("the plugin for LLVM 22 was not built");
    run_example("COUNT=yes", "hint 1: 1001 blocks");
}

/* By lifetime alone the vector's array is cold, too. */
static void test_example_without_accesses(void **state)
{
    run_example("COUNT=no", "hint 1: 1002 blocks");
}

TEST_LIST_WITH(set_up, tear_down, cmocka_unit_test(test_the_same_from_all), cmocka_unit_test(test_not_at_a_fixed_place),
               cmocka_unit_test(test_the_compiler_agrees), cmocka_unit_test(test_files_of_clang),
               cmocka_unit_test(test_dumps_are_told), cmocka_unit_test(test_indexed_versions),
               cmocka_unit_test(test_what_was_left_out), cmocka_unit_test(test_damage), cmocka_unit_test(test_usage),
               cmocka_unit_test(test_example_with_accesses), cmocka_unit_test(test_example_without_accesses))
