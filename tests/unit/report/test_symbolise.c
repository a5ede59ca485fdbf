/* test_symbolise.c - programs are recorded, their profiles symbolised, and then the programs taken away: what is read
 * must be the same, byte by byte, as when they were there. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"
#include "profile/container/write.h"
#include "report/view/symbolise.h"
#include "support/check.h"
#include "support/recording.h"

static const char library_source[] =
    "#include <string>\n"
    "#include <vector>\n"
    "template <typename T> struct box {\n"
    "    std::vector<T> items;\n"
    "    __attribute__((noinline)) void add(T item) { items.push_back(item); }\n"
    "};\n"
    "extern \"C\" __attribute__((noinline)) unsigned long fill(int n) {\n"
    "    box<std::string> names; box<long> numbers;\n"
    "    for (int i = 0; i < n; i++) { names.add(std::string(40 + i, 'x')); numbers.add(i); }\n"
    "    auto more = [&](int k) { return new std::string(100 + k, 'y'); };\n"
    "    std::string *kept = more(n);\n"
    "    return names.items.size() + numbers.items.size() + kept->size();\n"
    "}\n";

/* The example of the heap profile RFC: B is inlined into A, not into C. */
static const char program_source[] =
    "#include <cstdlib>\n"
    "extern \"C\" unsigned long fill(int);\n"
    "static void *volatile kept[8];\n"
    "inline void *B(int i) { return kept[i] = malloc(100 + i); }\n"
    "__attribute__((noinline)) void *A() { return B(1); }\n"
    "void *(*volatile through)(int) = B;\n"
    "__attribute__((noinline)) void *C() { return kept[3] = through(2); }\n"
    "__attribute__((noinline)) void two(int n) {\n"
    "    for (int i = 0; i < n; i++) { if (i % 2) kept[4] = malloc(7); else kept[5] = malloc(9); }\n"
    "}\n"
    "int main(int argc, char **) { A(); C(); two(argc * 6); return fill(20 * argc) == 0; }\n";

struct study {
    char *directory, *profile;
    bool built;
};

static bool shell(const char *directory, const char *command)
{
    const struct run_options options = {.directory = directory};
    struct run_result result = run((const char *const[]){"sh", "-c", command, NULL}, &options);
    const bool fine = result.code == 0;
    if (!fine)
        print_message("%s: %s\n", command, result.err);
    run_result_free(&result);
    return fine;
}

static void write_source(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void record_in(struct study *study, const char *program, const char *option)
{
    char *command;
    assert_true(asprintf(&command,
                         "HEAPWISE_OPTIONS= '%s' record -q -f -o '%s' %s -- ./%s >/dev/null; test -f p.hwprof",
                         heapwise_path(), study->profile, option, program) > 0);
    assert_true(shell(study->directory, command));
    free(command);
}

static struct study new_study(void)
{
    struct study study = {.directory = make_directory()};
    study.profile = join_path(study.directory, "p.hwprof");
    return study;
}

/* The directory of the object files, which all studies share. */
static const char *objects(void)
{
    static const char *directory;
    if (!have_command("g++"))
        SKIP("g++ is missing");
    if (directory)
        return directory;
    directory = make_directory();
    write_source(directory, "library.cpp", library_source);
    write_source(directory, "program.cpp", program_source);
    assert_true(shell(directory, "g++ -g -O2 -fPIC -c library.cpp && g++ -g -O2 -c program.cpp"));
    return directory;
}

/* The program and its library, optimised, recorded. */
static struct study compiled_study(const char *option)
{
    struct study study = new_study();
    char *command;
    assert_true(asprintf(&command,
                         "cp %s/library.cpp . && g++ -shared %s/library.o -o libfill.so && "
                         "g++ %s/program.o -L. -lfill -Wl,-rpath,$PWD -o program",
                         objects(), objects(), objects()) > 0);
    assert_true(shell(study.directory, command));
    free(command);
    record_in(&study, "program", option);
    return study;
}

static void end_study(struct study *study)
{
    free(study->profile);
    remove_directory(study->directory);
}

/* ---- what is read from a profile ---- */

enum { TEXT, FULL_TEXT, JSON, YAML, INDEXED, INDEXED_V3, RAW, FUNCTION, KINDS };

static const char *const readings[KINDS] = {
    [TEXT] = "report",
    [FULL_TEXT] = "report --full --top 1000",
    [JSON] = "report --json",
    [YAML] = "export -q --format memprof-yaml",
    [INDEXED] = "export -q --format profdata",
    [INDEXED_V3] = "export -q --format profdata --version 3",
    [RAW] = "export -q --format memprofraw",
    [FUNCTION] = "report --json --function 'B(int)'",
};

static struct run_result read_as(const char *path, const char *reading)
{
    char *command;
    assert_true(asprintf(&command, "'%s' %s '%s'", heapwise_path(), reading, path) > 0);
    struct run_result result = run((const char *const[]){"sh", "-c", command, NULL}, NULL);
    free(command);
    return result;
}

struct everything {
    struct run_result of[KINDS];
};

static struct everything read_all(const struct study *study)
{
    struct everything all;
    for (size_t i = 0; i < KINDS; i++)
        all.of[i] = read_as(study->profile, readings[i]);
    return all;
}

static void assert_same(const struct everything *expected, const struct everything *actual, const char *when)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct run_result *a = &expected->of[i], *b = &actual->of[i];
        if (a->code != b->code || a->out_size != b->out_size || memcmp(a->out, b->out, a->out_size))
            fail_msg("%s: heapwise %s differs (exit codes %d, %d; %zu and %zu bytes)\n%s\n%s", when, readings[i],
                     a->code, b->code, a->out_size, b->out_size, a->out, b->out);
    }
}

static void free_everything(struct everything *all)
{
    for (size_t i = 0; i < KINDS; i++)
        run_result_free(&all->of[i]);
}

/* Takes the binaries away: they are where nobody finds them. */
static void take_away(const struct study *study)
{
    assert_true(shell(study->directory, "mkdir gone && mv $(find . -maxdepth 1 -type f -perm -100) gone"));
}

static void check_study(struct study *study)
{
    struct everything before = read_all(study), after, without;
    assert_int_equal(before.of[JSON].code, 0);
    struct hw_error error = {""};
    if (!hw_symbolise_file(study->profile, NULL, &error))
        fail_msg("%s", error.message);
    after = read_all(study);
    assert_same(&before, &after, "symbolised");
    take_away(study);
    without = read_all(study);
    assert_same(&before, &without, "without the binaries");
    free_everything(&before);
    free_everything(&after);
    free_everything(&without);
}

static void a_program_and_its_library(void **state)
{
    struct study study = compiled_study("");
    check_study(&study);
    struct run_result text = read_as(study.profile, "report --full");
    assert_contains(text.out, "box<std::__cxx11::basic_string<char");
    assert_contains(text.out, "library.cpp:5");
    run_result_free(&text);
    end_study(&study);
}

/* Types, variables, and which code counts. */
static void counted_accesses(void **state)
{
    const char *program = program_path("access");
    if (!program)
        SKIP("no program that counts accesses was built");
    struct study study = new_study();
    char *command;
    assert_true(asprintf(&command, "cp '%s' access", program) > 0);
    assert_true(shell(study.directory, command));
    free(command);
    record_in(&study, "access", "");
    check_study(&study);
    end_study(&study);
}

static void record_symbolizes(void **state)
{
    struct study study = compiled_study("--symbolize");
    take_away(&study);
    struct run_result text = read_as(study.profile, "report --full");
    assert_int_equal(text.code, 0);
    assert_contains(text.out, "library.cpp:5");
    assert_contains(text.out, "program.cpp:4");
    run_result_free(&text);
    end_study(&study);
}

/* ---- one function ---- */

/* The functions that call the one that allocates, of the contexts found. */
static void assert_callers(const char *path, const char *function, const char *const *callers, size_t count)
{
    char *reading;
    assert_true(asprintf(&reading, "report --json --function '%s'", function) > 0);
    struct run_result result = read_as(path, reading);
    free(reading);
    assert_int_equal(result.code, 0);
    json_t *report = json_loads(result.out, 0, NULL);
    assert_non_null(report);
    const json_t *contexts = json_object_get(report, "contexts");
    assert_int_equal(json_array_size(contexts), count);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t k = 0; k < count; k++)
            found |= !strcmp(stack_function(json_array_get(contexts, k), 1), callers[i]);
        assert_true(found);
    }
    json_decref(report);
    run_result_free(&result);
}

/* Both contexts are B's, wherever it was inlined; those of the inlined one are also A's. */
static void inlined_or_not(void **state)
{
    static const char *const both[] = {"A()", "C()"}, *const one[] = {"A()"};
    for (int symbolised = 0; symbolised < 2; symbolised++) {
        struct study study = compiled_study(symbolised ? "--symbolize" : "");
        assert_callers(study.profile, "B(int)", both, 2);
        assert_callers(study.profile, "_Z1Bi", both, 2);
        assert_callers(study.profile, "A()", one, 1);
        assert_callers(study.profile, "_Z1Av", one, 1);
        struct run_result none = read_as(study.profile, "report --function C");
        assert_int_equal(none.code, 2);
        assert_contains(none.err, "no place has 'C' on its stack");
        run_result_free(&none);
        end_study(&study);
    }
}

/* ---- merging ---- */

static void merge_in(const struct study *study, const char *arguments)
{
    char *command;
    assert_true(asprintf(&command, "'%s' merge -q %s", heapwise_path(), arguments) > 0);
    assert_true(shell(study->directory, command));
    free(command);
}

/* Names that inputs bring along are kept, in whatever order they are added up. */
static void merged_names_stay(void **state)
{
    struct study study = compiled_study("--symbolize");
    assert_true(shell(study.directory, "mv p.hwprof s1"));
    record_in(&study, "program", "");
    assert_true(shell(study.directory, "mv p.hwprof u2"));
    record_in(&study, "program", "--symbolize --sysroot=/nowhere"); /* finds nothing */
    assert_true(shell(study.directory, "mv p.hwprof s3"));
    merge_in(&study, "-o all s1 u2 s3 && test -f all");
    merge_in(&study, "-o other s3 s1 u2");
    merge_in(&study, "-o part u2 s3");
    merge_in(&study, "-o nested part s1");
    assert_true(shell(study.directory, "cmp all other && cmp all nested"));
    merge_in(&study, "--symbolize -o p.hwprof all");
    merge_in(&study, "--symbolize -o again p.hwprof && cmp p.hwprof again");
    merge_in(&study, "-o unsymbolised u2 u2 u2 && ! cmp -s p.hwprof unsymbolised");
    struct everything before = read_all(&study), after;
    assert_int_equal(before.of[JSON].code, 0);
    take_away(&study);
    after = read_all(&study);
    assert_same(&before, &after, "merged, without the binaries");
    merge_in(&study, "-f -o p.hwprof all");
    struct run_result text = read_as(study.profile, "report --full");
    assert_contains(text.out, "library.cpp:5");
    run_result_free(&text);
    free_everything(&before);
    free_everything(&after);
    end_study(&study);
}

/* Heapwise's names are those of the binaries: a merge of profiles with and without them is the same. */
static void merged_then_symbolised(void **state)
{
    struct study study = compiled_study("");
    assert_true(shell(study.directory, "mv p.hwprof u1"));
    record_in(&study, "program", "");
    assert_true(shell(study.directory, "mv p.hwprof u2"));
    merge_in(&study, "-o p.hwprof u1 u2");
    struct everything before = read_all(&study), after;
    merge_in(&study, "-f --symbolize -o p.hwprof u1 u2");
    after = read_all(&study);
    assert_same(&before, &after, "merged and symbolised");
    take_away(&study);
    free_everything(&after);
    after = read_all(&study);
    assert_same(&before, &after, "merged and symbolised, without the binaries");
    free_everything(&before);
    free_everything(&after);
    end_study(&study);
}

/* ---- discriminators ---- */

/* clang tells blocks of one line apart. */
static void discriminators(void **state)
{
    struct study study = new_study();
    const char *compilers[] = {"clang++-22", "clang++"};
    write_source(study.directory, "program.cpp", program_source);
    write_source(study.directory, "library.cpp", library_source);
    bool built = false;
    for (size_t i = 0; i < 2 && !built; i++) {
        char *command;
        assert_true(
            asprintf(&command,
                     "%s -g -O2 -gdwarf-4 -fdebug-info-for-profiling -c program.cpp && g++ -g -O1 -c library.cpp && "
                     "g++ program.o library.o -o program",
                     compilers[i]) > 0);
        built = have_command(compilers[i]) && shell(study.directory, command);
        free(command);
    }
    if (!built) {
        end_study(&study);
        SKIP("clang is missing");
    }
    record_in(&study, "program", "--symbolize");
    take_away(&study);
    struct run_result result = read_as(study.profile, "report --json --function _Z3twoi");
    assert_int_equal(result.code, 0);
    json_t *report = json_loads(result.out, 0, NULL);
    const json_t *contexts = json_object_get(report, "contexts");
    int64_t seen[2] = {0, 0};
    assert_int_equal(json_array_size(contexts), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *leaf = json_array_get(json_object_get(json_array_get(contexts, i), "stack"), 0);
        assert_int_equal(json_number(leaf, "line"), 9);
        const json_t *value = json_object_get(leaf, "discriminator");
        seen[i] = value ? json_integer_value(value) : 0;
    }
    assert_true(seen[0] != seen[1]);
    json_decref(report);
    run_result_free(&result);
    end_study(&study);
}

/* ---- parts that are missing ---- */

static void rewrite(const char *path, const struct hw_tables *tables, const struct hw_write_options *options)
{
    struct hw_error error = {""};
    size_t size;
    unsigned char *bytes = hw_tables_serialize(tables, options, &size, &error);
    assert_non_null(bytes);
    assert_true(hw_file_write(path, true, bytes, size, &error));
    free(bytes);
}

/* Locations that the profile says nothing of are looked for in the binaries, as long as these are there. */
static void missing_locations_come_from_binaries(void **state)
{
    struct study study = compiled_study("");
    struct everything before = read_all(&study), after;
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_write_options options = {0};
    struct hw_error error = {""};
    assert_true(hw_symbolise_file(study.profile, NULL, &error));
    assert_true(hw_tables_load(study.profile, &arena, &tables, &options, &error));
    struct hw_table *table = &tables.of[HW_SECTION_LOCATIONS];
    struct hw_location *locations = table->entries;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i += 2)
        locations[kept++] = locations[i];
    assert_true(kept > 5);
    table->count = kept;
    rewrite(study.profile, &tables, &options);
    after = read_all(&study);
    assert_same(&before, &after, "half of the locations");
    /* Symbolised again, it is whole. */
    assert_true(hw_symbolise_file(study.profile, NULL, &error));
    take_away(&study);
    free_everything(&after);
    after = read_all(&study);
    assert_same(&before, &after, "completed");
    free_everything(&before);
    free_everything(&after);
    hw_arena_free(&arena);
    end_study(&study);
}

static void twice_is_once(void **state)
{
    struct study study = compiled_study("--symbolize");
    assert_true(shell(study.directory, "cp p.hwprof once"));
    struct hw_error error = {""};
    assert_true(hw_symbolise_file(study.profile, NULL, &error));
    assert_true(shell(study.directory, "cmp p.hwprof once"));
    end_study(&study);
}

/* What was packed before stays packed, and the index serves. */
static void packed_profiles(void **state)
{
    struct study study = compiled_study("");
    struct everything before = read_all(&study), after;
    struct hw_error error = {""};
    assert_true(hw_profile_pack(study.profile, 3, &error));
    assert_true(hw_symbolise_file(study.profile, NULL, &error));
    assert_true(shell(study.directory, "cp p.hwprof packed"));
    assert_true(hw_profile_pack(study.profile, 3, &error)); /* nothing is left to do */
    assert_true(shell(study.directory, "cmp p.hwprof packed"));
    take_away(&study);
    after = read_all(&study);
    assert_same(&before, &after, "packed");
    free_everything(&before);
    free_everything(&after);
    end_study(&study);
}

static void files_that_cannot_be_symbolised(void **state)
{
    struct study study = compiled_study("");
    struct hw_error error = {""};
    char *other = join_path(study.directory, "library.cpp");
    assert_false(hw_symbolise_file(other, NULL, &error));
    assert_contains(error.message, "is not a Heapwise profile");
    free(other);
    assert_true(shell(study.directory, "cp p.hwprof whole && truncate -s -100 p.hwprof && cp p.hwprof cut"));
    assert_false(hw_symbolise_file(study.profile, NULL, &error));
    assert_contains(error.message, "is damaged");
    assert_true(shell(study.directory, "cmp p.hwprof cut && rm p.hwprof && ! ls *.part 2>/dev/null"));
    assert_false(hw_symbolise_file(study.profile, NULL, &error));
    assert_contains(error.message, "cannot open");
    end_study(&study);
}

TEST_LIST(cmocka_unit_test(a_program_and_its_library), cmocka_unit_test(counted_accesses),
          cmocka_unit_test(record_symbolizes), cmocka_unit_test(inlined_or_not), cmocka_unit_test(discriminators),
          cmocka_unit_test(merged_names_stay), cmocka_unit_test(merged_then_symbolised),
          cmocka_unit_test(missing_locations_come_from_binaries), cmocka_unit_test(twice_is_once),
          cmocka_unit_test(packed_profiles), cmocka_unit_test(files_that_cannot_be_symbolised))
