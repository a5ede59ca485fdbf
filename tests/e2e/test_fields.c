/* Counted fields, exactly: programs that count by hand what they access (tests/programs/fields*) are built by
 * `heapwise cc --fields`, by each clang there is a plugin for and at each level, and their profiles must say the same.
 */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "profile/profile.h"
#include "test_config.h"

static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3"};
static const char *const versions[] = {"22", "19"};

struct build {
    char *directory;
    char *program;
};

static char *source(const char *name)
{
    char *path;
    if (asprintf(&path, "%s/programs/%s", TEST_SOURCES, name) < 0)
        fail_msg("no memory");
    return path;
}

/* The clang of that version, if there is a plugin for it; else NULL. */
static const char *compiler(const char *version, bool cplusplus)
{
    static char name[64], option[96];
    snprintf(name, sizeof name, "clang%s-%s", cplusplus ? "++" : "", version);
    if (!have_command(name))
        return NULL;
    snprintf(option, sizeof option, "--compiler=%s", name);
    const char *const ask[] = {heapwise_path(), cplusplus ? "c++" : "cc", option, "-E", "-x", "c", "/dev/null", NULL};
    struct run_result result = run(ask, NULL);
    bool there = result.code == 0;
    run_result_free(&result);
    return there ? option : NULL;
}

/* Runs heapwise cc --fields OPTION FLAGS… in the directory of BUILD; it must succeed. */
static void compile(struct build *build, bool cplusplus, const char *option, const char *const flags[])
{
    char include[4096];
    const char *argv[40] = {heapwise_path(), cplusplus ? "c++" : "cc", "--fields", option};
    size_t used = 4;
    snprintf(include, sizeof include, "-I%s/../include", TEST_SOURCES);
    argv[used++] = include;
    argv[used++] = "-pthread";
    for (size_t i = 0; flags[i]; i++)
        argv[used++] = flags[i];
    argv[used] = NULL;
    struct run_result result = run(argv, &(struct run_options){.directory = build->directory});
    if (result.code != 0)
        fail_msg("%s:\n%s", run_describe(argv), result.err);
    run_result_free(&result);
}

static struct build begin(void)
{
    struct build build = {.directory = make_directory()};
    build.program = join_path(build.directory, "program");
    return build;
}

static void end(struct build *build)
{
    remove_directory(build->directory);
    free(build->program);
}

static struct build build_c(const char *option, const char *level, const char *more)
{
    struct build build = begin();
    char *one = source("fields.c"), *two = source("fields2.c");
    compile(&build, false, option, (const char *const[]){level, one, two, "-o", build.program, more, NULL});
    free(one);
    free(two);
    return build;
}

/* Runs the program with MODE; its profile, or the one of a child. */
static struct run_result run_program(const struct build *build, const char *mode, const char *argument,
                                     const char *options)
{
    char *output;
    if (asprintf(&output, "HEAPWISE_OPTIONS=output=%s/%%n.hwprof%s%s", build->directory, options ? ":" : "",
                 options ? options : "") < 0)
        fail_msg("no memory");
    const char *const argv[] = {build->program, mode, argument, NULL}, *const environment[] = {output, NULL};
    struct run_result result = run(argv, &(struct run_options){.environment = environment});
    free(output);
    return result;
}

static struct hw_profile *read_profile(const struct build *build, const char *name)
{
    char *path = join_path(build->directory, name);
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(path, &error);
    if (!profile)
        fail_msg("%s: %s", path, error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s: %s", path, profile->problems[i]);
    free(path);
    return profile;
}

static const struct hw_profile_struct *find_struct(const struct hw_profile *profile, const char *name, size_t nth)
{
    for (size_t i = 0; i < profile->fields.struct_count; i++)
        if (strcmp(profile->fields.structs[i].name, name) == 0 && nth-- == 0)
            return &profile->fields.structs[i];
    return NULL;
}

static const struct hw_profile_field *find_field(const struct hw_profile *profile, const struct hw_profile_struct *of,
                                                 const char *name)
{
    for (size_t i = 0; of && i < of->field_count; i++)
        if (strcmp(profile->fields.fields[of->first_field + i].name, name) == 0)
            return &profile->fields.fields[of->first_field + i];
    return NULL;
}

/* Each line "field STRUCT NAME READS WRITES" of TEXT against PROFILE; SEPARATORS between them. How many differ. */
static int differences(const char *text, const struct hw_profile *profile, const char *separators, const char *what)
{
    int wrong = 0, lines = 0;
    char *copy = strdup(text), *next = copy;
    for (char *line; (line = strsep(&next, "\n"));) {
        if (strncmp(line, "field ", 6) != 0)
            continue;
        line += 6;
        char *structure = strsep(&line, separators), *name = strsep(&line, separators);
        uint64_t reads = strtoull(strsep(&line, separators), NULL, 10);
        uint64_t writes = strtoull(strsep(&line, separators), NULL, 10);
        const struct hw_profile_field *field = find_field(profile, find_struct(profile, structure, 0), name);
        lines++;
        /* Programs count by the type that the source names: what parts inherit is test_counting.c's business. */
        const uint64_t read = field ? field->reads - field->inherited_reads : 0;
        const uint64_t written = field ? field->writes - field->inherited_writes : 0;
        if (read == reads && written == writes)
            continue;
        print_error("%s: %s.%s: %llu reads, %llu writes; expected %llu, %llu\n", what, structure, name,
                    (unsigned long long)read, (unsigned long long)written, (unsigned long long)reads,
                    (unsigned long long)writes);
        wrong++;
    }
    free(copy);
    if (!lines)
        fail_msg("%s: nothing was printed", what);
    return wrong;
}

static int run_and_compare(const struct build *build, const char *mode, const char *argument, const char *what)
{
    struct run_result result = run_program(build, mode, argument, NULL);
    struct hw_profile *profile = read_profile(build, "0.hwprof");
    int wrong = differences(result.out, profile, " ", what);
    hw_profile_free(profile);
    run_result_free(&result);
    return wrong;
}

/* ---- shapes of accesses, at every level ---- */

static void test_c(void **state)
{
    (void)state;
    int wrong = 0, built = 0;
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
            const char *option = compiler(versions[v], false);
            char what[64];
            if (!option)
                continue;
            struct build build = build_c(option, levels[l], NULL);
            snprintf(what, sizeof what, "clang %s %s", versions[v], levels[l]);
            wrong += run_and_compare(&build, "all", NULL, what);
            built++;
            end(&build);
        }
    if (!built)
        SKIP("no clang there is a plugin for");
    assert_int_equal(wrong, 0);
}

/* Builds the program FILE, runs it, and compares what it says of itself with its profile, which LOOK looks at. */
static int check_program(const char *file, bool cplusplus, const char *version, const char *const flags[],
                         void (*look)(const struct hw_profile *profile))
{
    const char *all[16], *option = compiler(version, cplusplus);
    struct build build = begin();
    char *path = source(file), what[160];
    size_t used = 0;
    for (; flags[used]; used++)
        all[used] = flags[used];
    snprintf(what, sizeof what, "%s, clang %s %s", file, version, flags[0]);
    all[used++] = path, all[used++] = "-o", all[used++] = build.program, all[used] = NULL;
    compile(&build, cplusplus, option, all);
    struct run_result result = run_program(&build, NULL, NULL, NULL);
    assert_exit(&result, 0, what);
    struct hw_profile *profile = read_profile(&build, "0.hwprof");
    int wrong = differences(result.out, profile, "|", what);
    if (look)
        look(profile);
    hw_profile_free(profile);
    run_result_free(&result);
    free(path);
    end(&build);
    return wrong;
}

/* By each clang, at each level; what differs. */
static int check_everywhere(const char *file, bool cplusplus, void (*look)(const struct hw_profile *profile))
{
    int wrong = 0, built = 0;
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        for (size_t l = 0; compiler(versions[v], cplusplus) && l < sizeof levels / sizeof *levels; l++, built++)
            wrong += check_program(file, cplusplus, versions[v], (const char *const[]){levels[l], NULL}, look);
    if (!built)
        SKIP("no clang there is a plugin for");
    return wrong;
}

static void look_at_classes(const struct hw_profile *profile)
{
    const struct hw_profile_struct *circle = find_struct(profile, "shape::circle", 0);
    assert_non_null(circle);
    assert_true(circle->flags & HW_STRUCT_POLYMORPHIC);
    assert_true(circle->flags & HW_STRUCT_BASES);
    assert_non_null(find_field(profile, circle, "base::_vptr"));
}

static void test_cplusplus(void **state)
{
    (void)state;
    assert_int_equal(check_everywhere("fields.cpp", true, look_at_classes), 0);
}

/* ---- arrays of structs in structs ---- */

static bool have_lld(void)
{
    if (have_command("ld.lld"))
        return true;
    LEAVE_OUT("no lld");
    return false;
}

static void look_at_arrays(const struct hw_profile *profile)
{
    const struct hw_profile_struct *outer = find_struct(profile, "outer", 0);
    const struct hw_profile_field *passed = find_field(profile, outer, "passed"),
                                  *untouched = find_field(profile, outer, "untouched");
    assert_non_null(passed);
    assert_non_null(untouched);
    assert_true(passed->flags & HW_FIELD_ESCAPES); /* so that nobody calls it unused */
    assert_false(untouched->flags & HW_FIELD_ESCAPES);
    assert_int_equal(profile->fields.unattributed_reads + profile->fields.unattributed_writes, 0);
}

static void test_arrays(void **state)
{
    (void)state;
    assert_int_equal(check_everywhere("fields_arrays.c", false, look_at_arrays), 0);
}

static void look_at_std_arrays(const struct hw_profile *profile)
{
    const struct hw_profile_struct *outer = find_struct(profile, "outer", 0);
    const struct hw_profile_field *handed = find_field(profile, outer, "handed._M_elems"),
                                  *untouched = find_field(profile, outer, "untouched._M_elems");
    assert_non_null(handed);
    assert_non_null(untouched);
    assert_true(handed->flags & HW_FIELD_ESCAPES);
    assert_false(untouched->flags & HW_FIELD_ESCAPES);
}

static void test_cplusplus_arrays(void **state)
{
    (void)state;
    assert_int_equal(check_everywhere("fields_arrays.cpp", true, look_at_std_arrays), 0);
}

/* A counter for each access; and what is known of accesses goes through a file on the way. */
static void test_arrays_otherwise(void **state)
{
    (void)state;
    static const char *const ways[][4] = {{"-O2", "--no-consolidate"}, {"-O2", "-flto=thin", "-fuse-ld=lld"}};
    if (!compiler("22", true))
        SKIP("no clang 22");
    for (size_t i = 0; i < 1 + (size_t)have_lld(); i++) {
        assert_int_equal(check_program("fields_arrays.c", false, "22", ways[i], look_at_arrays), 0);
        assert_int_equal(check_program("fields_arrays.cpp", true, "22", ways[i], NULL), 0);
    }
}

/* ---- few bytes: what optimisation makes one load or store of ---- */

static void look_at_small(const struct hw_profile *profile)
{
    assert_int_equal(profile->fields.unattributed_reads + profile->fields.unattributed_writes, 0);
}

static void test_small(void **state)
{
    (void)state;
    static const char *const ways[][4] = {{"-O2", "-D_FORTIFY_SOURCE=2"}, {"-O2", "-flto", "-fuse-ld=lld"}};
    assert_int_equal(check_everywhere("fields_small.c", false, look_at_small), 0);
    if (!compiler("22", false))
        SKIP("no clang 22");
    for (size_t i = 0; i < 1 + (size_t)have_lld(); i++)
        assert_int_equal(check_program("fields_small.c", false, "22", ways[i], look_at_small), 0);
}

/* ---- what the profile says of the types ---- */

static struct build usual_build(const char *more)
{
    const char *option = compiler("22", false);
    if (!option)
        option = compiler("19", false);
    if (!option)
        SKIP("no clang there is a plugin for");
    return build_c(option, "-O2", more);
}

static void test_types(void **state)
{
    (void)state;
    struct build build = usual_build(NULL);
    struct run_result result = run_program(&build, "all", NULL, NULL);
    struct hw_profile *profile = read_profile(&build, "0.hwprof");
    const struct hw_profile_struct *node = find_struct(profile, "node", 0);
    assert_non_null(node);
    assert_null(find_struct(profile, "node", 1)); /* two translation units, one type */
    assert_true(node->flags & HW_STRUCT_FLEXIBLE);
    assert_true(node->flags & HW_STRUCT_BIT_FIELDS);
    assert_true(node->flags & HW_STRUCT_ESCAPES);
    assert_true(find_field(profile, node, "unused")->flags & HW_FIELD_ESCAPES);
    assert_string_equal(find_field(profile, node, "pos.y")->declaration, "struct vec pos");
    assert_int_equal(find_field(profile, node, "mark")->bit_offset, 3);
    assert_int_equal(find_field(profile, node, "mark")->bit_size, 5);
    assert_string_equal(find_field(profile, node, "array")->type_name, "int[4]");
    assert_int_equal(find_field(profile, node, "hidden")->reads + find_field(profile, node, "hidden")->writes, 0);
    assert_true(strstr(node->file, "fields.h") != NULL);

    const struct hw_profile_struct *pair = find_struct(profile, "pair", 0);
    assert_non_null(pair);
    assert_false(pair->flags & HW_STRUCT_WHOLE);
    assert_int_equal(pair->whole_reads, 3);
    assert_int_equal(pair->whole_writes, 3);

    const struct hw_profile_struct *one = find_struct(profile, "twin", 0), *other = find_struct(profile, "twin", 1);
    assert_non_null(one);
    assert_non_null(other); /* one name, two layouts */
    assert_null(find_struct(profile, "twin", 2));
    assert_int_equal(one->writes + other->writes, 4);
    assert_int_equal(find_field(profile, one, "a")->writes + find_field(profile, other, "a")->writes, 1);
    bool allocated = false;
    for (size_t i = 0; i < profile->context_count; i++)
        allocated |= profile->contexts[i].type == node->type;
    if (compiler("22", false))
        assert_true(allocated); /* who allocates nodes is known */
    assert_int_equal(profile->fields.unattributed_reads + profile->fields.unattributed_writes, 0);
    hw_profile_free(profile);
    run_result_free(&result);
    end(&build);
}

/* Whose order is fixed, as their names say, because they are taken for bytes; at each level. */
static void test_wholes(void **state)
{
    (void)state;
    int built = 0, wrong = 0;
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        for (size_t l = 0; compiler(versions[v], false) && l < sizeof levels / sizeof *levels; l += 2, built++) {
            struct build build = begin();
            char *file = source("wholes.c");
            compile(&build, false, compiler(versions[v], false),
                    (const char *const[]){levels[l], file, "-o", build.program, NULL});
            struct run_result result = run_program(&build, NULL, NULL, NULL);
            assert_exit(&result, 0, "wholes");
            struct hw_profile *profile = read_profile(&build, "0.hwprof");
            size_t seen = 0;
            for (size_t i = 0; i < profile->fields.struct_count; i++) {
                const struct hw_profile_struct *one = &profile->fields.structs[i];
                const bool fixed = strncmp(one->name, "fixed_", 6) == 0, whole = one->flags & HW_STRUCT_WHOLE;
                if (!fixed && strncmp(one->name, "free_", 5) != 0)
                    continue;
                seen++;
                if (fixed != whole) {
                    print_error("clang-%s %s: struct %s: order %s\n", versions[v], levels[l], one->name,
                                whole ? "fixed" : "free");
                    wrong++;
                }
            }
            assert_true(seen >= 24);
            hw_profile_free(profile);
            run_result_free(&result);
            free(file);
            end(&build);
        }
    if (!built)
        SKIP("no clang there is a plugin for");
    assert_int_equal(wrong, 0);
}

/* ---- ways to end and to run ---- */

static void test_threads(void **state)
{
    (void)state;
    struct build build = usual_build(NULL);
    assert_int_equal(run_and_compare(&build, "threads", NULL, "threads"), 0);
    end(&build);
}

static void test_ends(void **state)
{
    (void)state;
    static const char *const modes[] = {"kill", "exit", "reset"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct build build = usual_build(NULL);
        assert_int_equal(run_and_compare(&build, modes[i], NULL, modes[i]), 0);
        end(&build);
    }
}

/* The only thread of the program ends, and not by exit: the runtime's own does not keep the process. */
static void test_last_thread(void **state)
{
    (void)state;
    struct build build = usual_build(NULL);
    struct run_result result = run_program(&build, "last", NULL, NULL);
    assert_int_equal(result.code, 5);
    run_result_free(&result);
    end(&build);
}

/* Blocks by where they begin in lines, of all types. */
static void add_starts(const char *mode, uint64_t starts[8])
{
    struct build build = usual_build(NULL);
    struct run_result result = run_program(&build, mode, NULL, NULL);
    struct hw_profile *profile = read_profile(&build, "0.hwprof");
    for (size_t i = 0; i < profile->context_count; i++)
        for (int k = 0; k < 8; k++)
            starts[k] += profile->contexts[i].starts[k];
    hw_profile_free(profile);
    run_result_free(&result);
    end(&build);
}

static void test_begins_after_reset(void **state)
{
    (void)state;
    uint64_t starts[2][8] = {{0}}, sum[2] = {0};
    add_starts("all", starts[0]);
    add_starts("reset", starts[1]);
    for (int k = 0; k < 16; k++)
        sum[k / 8] += starts[k / 8][k % 8];
    assert_true(sum[0] > 0);
    assert_int_equal(sum[1], sum[0]);
}

static void test_dump(void **state)
{
    (void)state;
    struct build build = usual_build(NULL);
    struct run_result result = run_program(&build, "dump", NULL, NULL);
    struct hw_profile *dump = read_profile(&build, "0.dump1.hwprof"), *all = read_profile(&build, "0.hwprof");
    assert_int_equal(differences(result.out, dump, " ", "dump"), 0);
    assert_int_equal(find_field(all, find_struct(all, "node", 0), "hoisted")->reads,
                     2 * find_field(dump, find_struct(dump, "node", 0), "hoisted")->reads);
    hw_profile_free(dump);
    hw_profile_free(all);
    run_result_free(&result);
    end(&build);
}

static void test_windows(void **state)
{
    (void)state;
    static const char *const options[] = {NULL, "windows=0"};
    for (int off = 0; off < 2; off++) {
        struct build build = usual_build(NULL);
        struct run_result result = run_program(&build, "busy", NULL, options[off]);
        struct hw_profile *profile = read_profile(&build, "0.hwprof");
        const struct hw_profile_struct *hammer = find_struct(profile, "hammer", 0);
        assert_int_equal(differences(result.out, profile, " ", "busy"), 0);
        assert_true(hammer->flags & HW_STRUCT_ABI);
        assert_int_equal(hammer->window_count, off ? 0 : 1);
        assert_true(off || profile->fields.windows[hammer->first_window].weight > 0);
        assert_true(off || profile->fields.info.windows > 0);
        hw_profile_free(profile);
        run_result_free(&result);
        end(&build);
    }
}

static void test_fork(void **state)
{
    (void)state;
    struct build build = usual_build(NULL);
    struct run_result result = run_program(&build, "fork", NULL, NULL);
    struct hw_profile *parent = read_profile(&build, "0.hwprof");
    struct hw_profile *child = read_profile(&build, "1.hwprof");
    assert_int_equal(differences(result.out, child, " ", "child"), 0);
    assert_int_equal(differences(result.out, parent, " ", "parent"), 0);
    hw_profile_free(parent);
    hw_profile_free(child);
    run_result_free(&result);
    end(&build);
}

static void test_loaded(void **state)
{
    (void)state;
    struct build build = usual_build("-rdynamic");
    char *file = source("fields_library.c"), *library = join_path(build.directory, "library.so");
    const char *option = compiler("22", false);
    option = option ? option : compiler("19", false);
    compile(&build, false, option, (const char *const[]){"-O2", "-shared", "-fPIC", file, "-o", library, NULL});
    assert_int_equal(run_and_compare(&build, "load", library, "load"), 0);
    free(file);
    free(library);
    end(&build);
}

static void test_link_time(void **state)
{
    (void)state;
    if (!have_command("ld.lld"))
        SKIP("no lld");
    static const char *const kinds[] = {"-flto", "-flto=thin"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *option = compiler("22", false);
        if (!option)
            SKIP("no clang 22");
        struct build build = begin();
        char *one = source("fields.c"), *two = source("fields2.c");
        compile(&build, false, option,
                (const char *const[]){"-O2", kinds[i], "-fuse-ld=lld", one, two, "-o", build.program, NULL});
        assert_int_equal(run_and_compare(&build, "all", NULL, kinds[i]), 0);
        free(one);
        free(two);
        end(&build);
    }
}

/* With counted accesses beside them, and with an update for each access. */
static void test_both(void **state)
{
    (void)state;
    static const char *const more[] = {"--granule=64", "--granule=8", "--granule=4", "--no-consolidate"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct build build = usual_build(more[i]);
        assert_int_equal(run_and_compare(&build, "all", NULL, more[i]), 0);
        end(&build);
    }
}

TEST_LIST(cmocka_unit_test(test_c), cmocka_unit_test(test_cplusplus), cmocka_unit_test(test_arrays),
          cmocka_unit_test(test_cplusplus_arrays), cmocka_unit_test(test_arrays_otherwise),
          cmocka_unit_test(test_small), cmocka_unit_test(test_types), cmocka_unit_test(test_wholes),
          cmocka_unit_test(test_threads), cmocka_unit_test(test_ends), cmocka_unit_test(test_last_thread),
          cmocka_unit_test(test_begins_after_reset), cmocka_unit_test(test_dump), cmocka_unit_test(test_windows),
          cmocka_unit_test(test_fork), cmocka_unit_test(test_loaded), cmocka_unit_test(test_link_time),
          cmocka_unit_test(test_both))
