/* test_variables.c - how much variables are used, for compilers and linkers: heapwise export --format memprof-yaml,
 * profdata and symbol-order of a program that counts its accesses. llvm-profdata reads the profiles, clang and lld lay
 * out the program by them. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *directory, *source, *profile; /* PROFILE: NULL where the program cannot be built */

static char *in_directory(const char *name)
{
    return join_path(directory, name);
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

static int set_up(void **state)
{
    directory = make_directory();
    source = join_path(TEST_SOURCES, "programs/variables.c");
    if (!have_command("clang-22"))
        return 0;
    char *program = in_directory("variables");
    const char *const build[] = {heapwise_path(), "cc", "-O1", "-g", "-pthread", "-o", program, source, NULL};
    struct run_result result = run(build, NULL);
    const bool built = result.code == 0;
    run_result_free(&result);
    if (built) {
        profile = in_directory("variables.hwprof");
        free(output_of((const char *const[]){heapwise_path(), "record", "-q", "-o", profile, "--", program, NULL}, 0));
    }
    free(program);
    return 0;
}

static int tear_down(void **state)
{
    remove_directory(directory);
    free(profile);
    free(source);
    return 0;
}

static const char *need_profile(void)
{
    if (!profile)
        SKIP("heapwise cc cannot build with clang-22");
    return profile;
}

static char *export(const char *format, const char *file, const char *option, const char *value)
{
    return output_of(
        (const char *const[]){heapwise_path(), "export", "-q", "--format", format, file, option, value, NULL}, 0);
}

/* Where a line of TEXT ends with NAME (or is it): its part of the text. */
static const char *line_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if ((at == text || strchr(" \n", at[-1])) && strchr(":\n", at[length]))
            return at;
    fail_msg("%s is missing in:\n%s", name, text);
    return NULL;
}

/* ---- lists ---- */

static void test_lists(void **state)
{
    char *yaml = export("memprof-yaml", need_profile(), NULL, NULL);
    const char *hot = strstr(yaml, "\n  SampledRecords:"), *shared = strstr(yaml, "\n  # Hot, but"),
               *little = strstr(yaml, "\n  # Used little"), *cold = strstr(yaml, "\n  KnownColdSymbols:");
    assert_true(hot && shared && little && cold && hot < shared && shared < little && little < cold);
    static const char *const names[4][4] = {{"hot_table", "hot_zeros", "hot_constants", "small_used"},
                                            {"shared_total"},
                                            {"little_used", "use"}, /* use.calls: LLVM knows the part before the dot */
                                            {"never_table", "never_zeros", "never_constants"}};
    const char *const start[] = {hot, shared, little, cold, yaml + strlen(yaml)};
    for (int list = 0; list < 4; list++)
        for (int i = 0; i < 4 && names[list][i]; i++) {
            const char *line = line_of(hot, names[list][i]);
            if (line < start[list] || line >= start[list + 1])
                fail_msg("%s is in the wrong list:\n%s", names[list][i], yaml);
        }
    assert_non_null(strstr(yaml, "    - Symbol: hot_table\n      AccessCount: 102400\n"));
    assert_non_null(strstr(yaml, "  #   little_used: 1\n"));
    free(yaml);
    yaml = export("memprof-yaml", profile, "--version", "3");
    assert_null(strstr(yaml, "DataAccessProfiles"));
    free(yaml);
}

static void test_order(void **state)
{
    char *order = export("symbol-order", need_profile(), NULL, NULL),
         *same = export("symbol-order", profile, "--module", "variables");
    assert_string_equal(order, same);
    assert_true(line_of(order, "hot_table") < line_of(order, "little_used"));
    assert_true(line_of(order, "hot_zeros") < line_of(order, "use.calls"));
    assert_true(line_of(order, "little_used") < line_of(order, "never_table"));
    assert_true(line_of(order, "never_constants") < line_of(order, "shared_total"));
    assert_contains(order, "\n# shared_total\n");
    free(order);
    free(same);
}

/* Accesses that were not counted leave the formats as they were, and there is no order. */
static void test_not_counted(void **state)
{
    const char *program = program_path("hello");
    char *plain = in_directory("plain.hwprof");
    if (!program)
        SKIP("a program is missing");
    free(output_of((const char *const[]){heapwise_path(), "record", "-q", "-o", plain, "--", program, NULL}, 0));
    char *yaml = export("memprof-yaml", plain, NULL, NULL);
    assert_null(strstr(yaml, "DataAccessProfiles"));
    free(yaml);
    const struct {
        const char *arguments[8];
        const char *message;
    } wrong[] = {
        {{"export", "--format", "symbol-order", plain}, "no accesses to variables are known"},
        {{"export", "--format", "symbol-order", "--cold-after", "1", plain}, "--cold-after is not for symbol-order"},
        {{"export", "--format", "symbol-order", "--value", "bytes", plain}, "--value is not for symbol-order"},
        {{"export", "--format", "symbol-order", "--version", "4", plain}, "symbol-order has no versions"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct run_result result = heapwise(wrong[i].arguments, NULL);
        assert_exit(&result, 2, wrong[i].message);
        assert_contains(result.err, wrong[i].message);
        run_result_free(&result);
    }
    free(plain);
}

static void test_notes(void **state)
{
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", "symbol-order", need_profile(), NULL}, NULL);
    assert_exit(&result, 0, "symbol-order");
    assert_contains(result.err, " hot, ");
    assert_contains(result.err, "several threads");
    assert_contains(result.err, "shared_total");
    assert_contains(result.err, "does not count");
    run_result_free(&result);
}

/* ---- LLVM's tools ---- */

/* What llvm-profdata says of data accesses in an indexed file. */
static char *shown(const char *file)
{
    char *all = output_of((const char *const[]){"llvm-profdata-22", "show", "--memory", file, NULL}, 0);
    const char *part = strstr(all, "\nDataAccessProfiles:");
    assert_non_null(part);
    assert_contains(all, "Num hot symbols and string literals: ");
    char *kept = strdup(part);
    free(all);
    return kept;
}

/* Written directly, and made of the YAML by llvm-profdata: the same. */
static void test_llvm_reads(void **state)
{
    need_profile();
    if (!have_command("llvm-profdata-22"))
        SKIP("llvm-profdata-22 is missing");
    char *yaml = in_directory("v.yaml"), *own = in_directory("own.profdata"), *theirs = in_directory("theirs.profdata");
    free(export("memprof-yaml", profile, "-o", yaml));
    free(export("profdata", profile, "-o", own));
    free(output_of((const char *const[]){"llvm-profdata-22", "merge", "--memprof-version=4", yaml, "-o", theirs, NULL},
                   0));
    char *from_own = shown(own), *from_theirs = shown(theirs);
    assert_contains(from_own, "hot_table");
    assert_contains(from_own, "never_table");
    assert_null(strstr(from_own, "shared_total"));
    assert_string_equal(from_theirs, from_own);
    free(from_own);
    free(from_theirs);
    free(yaml);
    free(own);
    free(theirs);
}

/* clang puts the variables into sections by it. */
static void test_clang_uses(void **state)
{
    need_profile();
    char *own = in_directory("clang.profdata"), *object = in_directory("clang.o"), *use = NULL;
    free(export("profdata", profile, "-o", own));
    assert_true(asprintf(&use, "-fmemory-profile-use=%s", own) > 0);
    free(output_of((const char *const[]){"clang-22", "-O1", "-fdata-sections", "-fpartition-static-data-sections", use,
                                         "-c", "-o", object, source, NULL},
                   0));
    char *sections = output_of((const char *const[]){"readelf", "-SW", object, NULL}, 0);
    static const char *const expected[] = {".data.hot.hot_table",
                                           ".bss.hot.hot_zeros",
                                           ".rodata.hot.hot_constants",
                                           ".data.hot.small_used",
                                           ".data.unlikely.never_table",
                                           ".bss.unlikely.never_zeros",
                                           ".rodata.unlikely.never_constants",
                                           " .data.little_used",
                                           " .bss.shared_total"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_contains(sections, expected[i]);
    free(sections);
    free(own);
    free(use);
    /* and the linker, by the example's script, into parts of their own */
    char *program = in_directory("partitioned"), *script = NULL;
    assert_true(asprintf(&script, "-Wl,-T,%s/../examples/static_data/hot_data.lds", TEST_SOURCES) > 0);
    free(output_of((const char *const[]){"clang-22", "-pthread", script, "-o", program, object, NULL}, 0));
    free(output_of((const char *const[]){program, NULL}, 0));
    char *symbols = output_of((const char *const[]){"nm", "-n", program, NULL}, 0);
    assert_true(line_of(symbols, "never_table") < line_of(symbols, "hot_table"));
    assert_true(line_of(symbols, "hot_table") < line_of(symbols, "little_used"));
    assert_true(line_of(symbols, "hot_zeros") < line_of(symbols, "shared_total"));
    assert_true(line_of(symbols, "shared_total") < line_of(symbols, "never_zeros"));
    free(symbols);
    free(script);
    free(program);
    free(object);
}

static void test_lld_uses(void **state)
{
    need_profile();
    if (!have_command("ld.lld-22"))
        SKIP("lld-22 is missing");
    char *order = in_directory("order"), *program = in_directory("ordered"), *option = NULL;
    free(export("symbol-order", profile, "-o", order));
    assert_true(asprintf(&option, "-Wl,--symbol-ordering-file=%s", order) > 0);
    free(output_of((const char *const[]){"clang-22", "-O1", "-fdata-sections", "-pthread", "-fuse-ld=lld", option, "-o",
                                         program, source, NULL},
                   0));
    char *symbols = output_of((const char *const[]){"nm", "-n", program, NULL}, 0);
    assert_true(line_of(symbols, "hot_table") < line_of(symbols, "little_used"));
    assert_true(line_of(symbols, "little_used") < line_of(symbols, "never_table"));
    assert_true(line_of(symbols, "hot_zeros") < line_of(symbols, "never_zeros"));
    assert_true(line_of(symbols, "never_zeros") < line_of(symbols, "shared_total"));
    free(symbols);
    free(order);
    free(program);
    free(option);
}

TEST_LIST_WITH(set_up, tear_down, cmocka_unit_test(test_lists), cmocka_unit_test(test_order),
               cmocka_unit_test(test_not_counted), cmocka_unit_test(test_notes), cmocka_unit_test(test_llvm_reads),
               cmocka_unit_test(test_clang_uses), cmocka_unit_test(test_lld_uses))
