/* test_property.c - random programs (property/generate.c) whose accesses are counted in more than one way:
 *
 *   - consolidated and not, by both clangs, at -O0 to -O3: reads and writes of every context, and the least and the
 * most of a block, are the same. What the optimiser leaves differs from level to level, so only the two of a level are
 * compared.
 *   - the same with words of 4 bytes: not how often, but which words of how many blocks are read and written.
 *   - at -O0, where the compiler leaves every access alone, against the program's own count; likewise at every level
 * when all accesses are volatile.
 *   - fields of structs, with a counter for what is executed together and with one for each access: the same.
 *   - the program does what it does when it is not instrumented.
 *
 * HEAPWISE_PROPERTY_SEEDS=FIRST[-LAST] chooses others than the usual seeds. A failure keeps what it was found with. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "property/generate.h"
#include "test_config.h"

enum { SITES = 256, USUAL_SEEDS = TEST_SANITIZED ? 1 : 5 };

/* What was counted for one key: a site, or a stack. */
struct count {
    char *key;
    uint64_t reads, writes, least, most;
};

struct counts {
    struct count *count;
    size_t used;
};

/* ---- counts ---- */

static struct count *find_count(struct counts *counts, const char *key)
{
    for (size_t i = 0; i < counts->used; i++)
        if (strcmp(counts->count[i].key, key) == 0)
            return &counts->count[i];
    counts->count = realloc(counts->count, (counts->used + 1) * sizeof *counts->count);
    counts->count[counts->used] = (struct count){strdup(key), 0, 0, UINT64_MAX, 0};
    return &counts->count[counts->used++];
}

static void add_count(struct counts *counts, const char *key, uint64_t reads, uint64_t writes, uint64_t least,
                      uint64_t most)
{
    struct count *count = find_count(counts, key);
    count->reads += reads;
    count->writes += writes;
    count->least = least < count->least ? least : count->least;
    count->most = most > count->most ? most : count->most;
}

static void free_counts(struct counts *counts)
{
    for (size_t i = 0; i < counts->used; i++)
        free(counts->count[i].key);
    free(counts->count);
    *counts = (struct counts){0};
}

/* Writes the differences to stderr, some of them; how many. */
static size_t print_differences(const char *what, struct counts *expected, struct counts *actual)
{
    size_t differences = 0;
    for (size_t i = 0; i < expected->used; i++)
        find_count(actual, expected->count[i].key);
    for (size_t i = 0; i < actual->used; i++) {
        struct count *a = &actual->count[i], *e = find_count(expected, a->key);
        a = &actual->count[i];
        if (a->reads == e->reads && a->writes == e->writes && a->least == e->least && a->most == e->most)
            continue;
        if (differences++ < 8)
            print_error("%s: %s: reads %lld, writes %lld, of a block %lld to %lld; expected %lld, %lld, %lld to %lld\n",
                        what, a->key, (long long)a->reads, (long long)a->writes, (long long)a->least,
                        (long long)a->most, (long long)e->reads, (long long)e->writes, (long long)e->least,
                        (long long)e->most);
    }
    return differences;
}

/* The program's own count: "site NUMBER BLOCKS READS WRITES LEAST MOST". */
static struct counts own_counts(const char *output)
{
    struct counts counts = {0};
    unsigned long long blocks, reads, writes, least, most;
    int site;
    for (const char *at = output; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        if (sscanf(at, "site %d %llu %llu %llu %llu %llu", &site, &blocks, &reads, &writes, &least, &most) == 6) {
            char key[32];
            snprintf(key, sizeof key, "site_%d", site);
            add_count(&counts, key, reads, writes, least, most);
        }
    }
    return counts;
}

/* A number that is another one, most likely, when any of the numbers by word is. */
static uint64_t sum_of_words(const json_t *blocks)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < json_array_size(blocks); i++)
        sum += (uint64_t)json_integer_value(json_array_get(blocks, i)) * ((i + 1) * 2654435761u | 1);
    return sum;
}

/* By the functions of the stack, or by the site alone. Lines are left out: code that is the same at the end of two
 * branches may become one in one build and not in the other. */
static struct counts report_counts(const json_t *report, bool by_site)
{
    struct counts counts = {0};
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        char key[4096] = "";
        size_t length = 0;
        for (size_t i = 0; i < stack_depth(context) && length < sizeof key - 200; i++) {
            const char *name = stack_function(context, i);
            if (by_site && strncmp(name, "site_", 5) != 0)
                continue;
            length += (size_t)snprintf(key + length, sizeof key - length, "%s%.150s", length ? " < " : "", name);
            if (by_site)
                break;
        }
        if (by_site && !length)
            continue;
        if (by_site) /* C++ names have their arguments */
            key[strcspn(key, "(.")] = '\0';
        const json_t *words = json_object_get(context, "word_histogram");
        if (json_is_object(words)) {
            add_count(&counts, key, sum_of_words(json_object_get(words, "blocks_read")),
                      sum_of_words(json_object_get(words, "blocks_written")), 0, 0);
            continue;
        }
        add_count(&counts, key, (uint64_t)json_number(context, "accesses.reads"),
                  (uint64_t)json_number(context, "accesses.writes"), (uint64_t)json_number(context, "accesses.min"),
                  (uint64_t)json_number(context, "accesses.max"));
    }
    return counts;
}

/* ---- building and running ---- */

struct bench {
    char *directory;
    char *source;
    bool cxx;
    unsigned long long seed;
    char last_command[2048];
};

static const char *const *flags_of(const char *level)
{
    /* Vector instructions with masks, where this machine has them. */
    static const char *masks;
    if (!masks)
        masks = __builtin_cpu_supports("avx512vl") ? "-march=x86-64-v4"
                : __builtin_cpu_supports("avx2")   ? "-march=x86-64-v3"
                                                   : "-O3";
    static const char *none[] = {NULL}, *vector[2];
    vector[0] = masks;
    return strcmp(level, "-O3") == 0 ? vector : none;
}

static void keep_and_fail(const struct bench *bench)
{
    setenv("HEAPWISE_TEST_KEEP", "1", 1);
    fail_msg("seed %llu; last command: %s; the program is %s", bench->seed, bench->last_command, bench->source);
}

/* Builds the program as NAME: with gcc when CLANG is NULL. What is printed when it runs is returned, its profile's name
 * in *PROFILE when it is not NULL. */
static struct run_result build_and_run(struct bench *bench, const char *name, const char *clang,
                                       const char *const *flags, char **profile)
{
    char include[4096], compiler[64];
    const char *argv[40];
    size_t used = 0;
    char *program = join_path(bench->directory, name);
    if (clang) {
        argv[used++] = heapwise_path();
        argv[used++] = bench->cxx ? "c++" : "cc";
        snprintf(compiler, sizeof compiler, "--compiler=%s", clang);
        argv[used++] = compiler;
    } else {
        argv[used++] = bench->cxx ? "g++" : "gcc";
    }
    snprintf(include, sizeof include, "-I%s", TEST_SOURCES);
    const char *const common[] = {
        "-D_GNU_SOURCE",          "-w",          "-g", "-ffp-contract=off", include, "-o", program, "-x",
        bench->cxx ? "c++" : "c", bench->source, NULL};
    for (size_t i = 0; flags[i]; i++)
        argv[used++] = flags[i];
    for (size_t i = 0; common[i]; i++)
        argv[used++] = common[i];
    argv[used] = NULL;
    snprintf(bench->last_command, sizeof bench->last_command, "%s", run_describe(argv));
    struct run_result built = run(argv, NULL);
    if (built.code != 0) {
        print_error("cannot be built:\n%s\n", built.err);
        keep_and_fail(bench);
    }
    run_result_free(&built);

    char *options = NULL, *file = NULL;
    if (asprintf(&file, "%s.hwprof", program) < 0 || asprintf(&options, "HEAPWISE_OPTIONS=output=%s", file) < 0)
        fail_msg("no memory");
    const char *const environment[] = {options, NULL}, *const run_argv[] = {program, NULL};
    struct run_result result = run(run_argv, &(struct run_options){.environment = environment});
    if (result.code != 0) {
        print_error("%s: exit code %d, signal %d:\n%s\n", program, result.code, result.signal, result.err);
        keep_and_fail(bench);
    }
    if (profile)
        *profile = strdup(file);
    free(file);
    free(options);
    free(program);
    return result;
}

static const char *result_line(const struct run_result *run)
{
    const char *line = strstr(run->out, "result ");
    return line ? line : "no result";
}

/* Counts of an instrumented build; its result must be RESULT. */
static struct counts build_and_count(struct bench *bench, const char *name, const char *clang, const char *const *flags,
                                     bool by_site, const char *result)
{
    char *profile;
    struct run_result run = build_and_run(bench, name, clang, flags, &profile);
    if (strcmp(result_line(&run), result) != 0) {
        print_error("%s: %s instead of %s\n", name, result_line(&run), result);
        keep_and_fail(bench);
    }
    json_t *report = load_report(profile, 0);
    struct counts counts = report_counts(report, by_site);
    json_decref(report);
    run_result_free(&run);
    remove(profile);
    free(profile);
    return counts;
}

/* What was counted for the fields of structs. */
static struct counts build_and_count_fields(struct bench *bench, const char *name, const char *clang,
                                            const char *const *flags, const char *result)
{
    char *path;
    struct counts counts = {0};
    struct hw_error error = {""};
    struct run_result run = build_and_run(bench, name, clang, flags, &path);
    struct hw_profile *profile = hw_profile_read(path, &error);
    if (strcmp(result_line(&run), result) != 0 || !profile) {
        print_error("%s: %s instead of %s; %s\n", name, result_line(&run), result, error.message);
        keep_and_fail(bench);
    }
    const struct hw_profile_fields *fields = &profile->fields;
    add_count(&counts, "unattributed", fields->unattributed_reads, fields->unattributed_writes, 0, 0);
    for (size_t i = 0; i < fields->struct_count; i++)
        for (size_t k = 0; k < fields->structs[i].field_count; k++) {
            const struct hw_profile_field *field = &fields->fields[fields->structs[i].first_field + k];
            char key[256];
            snprintf(key, sizeof key, "%.100s.%.100s", fields->structs[i].name, field->name);
            if (field->reads || field->writes)
                add_count(&counts, key, field->reads, field->writes, 0, 0);
        }
    hw_profile_free(profile);
    run_result_free(&run);
    remove(path);
    free(path);
    return counts;
}

/* ---- the properties ---- */

static const char *const clangs[] = {"clang-22", "clang-19"};
static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3"};

static void check_pair(struct bench *bench, const char *clang, const char *level, const char *granule,
                       const char *result)
{
    const char *extra = flags_of(level)[0];
    const char *const one[] = {granule, level, extra, NULL};
    const char *const other[] = {granule, level, "--no-consolidate", extra, NULL};
    char name[64];
    snprintf(name, sizeof name, "%s%s", clang, level);
    struct counts consolidated = build_and_count(bench, name, clang, one, false, result);
    snprintf(name, sizeof name, "%s%s-each", clang, level);
    struct counts each = build_and_count(bench, name, clang, other, false, result);
    snprintf(name, sizeof name, "%s %s %s, consolidated against not", clang, granule, level);
    if (print_differences(name, &each, &consolidated))
        keep_and_fail(bench);
    free_counts(&consolidated);
    free_counts(&each);
}

static void check_fields(struct bench *bench, const char *clang, const char *level, const char *result)
{
    const char *extra = flags_of(level)[0];
    const char *const one[] = {level, "--fields", extra, NULL};
    const char *const other[] = {level, "--fields", "--no-consolidate", extra, NULL};
    struct counts together = build_and_count_fields(bench, "fields", clang, one, result);
    struct counts each = build_and_count_fields(bench, "fields-each", clang, other, result);
    char what[64];
    snprintf(what, sizeof what, "%s %s, fields, together against each", clang, level);
    assert_true(each.used > 5);
    for (size_t i = 0; i < each.used; i++)
        each.count[i].least = 0; /* not of fields */
    for (size_t i = 0; i < together.used; i++)
        together.count[i].least = 0;
    if (print_differences(what, &each, &together))
        keep_and_fail(bench);
    free_counts(&together);
    free_counts(&each);
}

/* LEVEL and what else is in FLAGS against the program's own count. */
static void check_own(struct bench *bench, const char *clang, const char *const *flags, const char *const *self_flags)
{
    struct run_result self = build_and_run(bench, "self", NULL, self_flags, NULL);
    struct counts expected = own_counts(self.out);
    struct counts actual = build_and_count(bench, "own", clang, flags, true, result_line(&self));
    char what[64];
    snprintf(what, sizeof what, "%s %s, against the program's own count", clang, flags[0]);
    if (print_differences(what, &expected, &actual))
        keep_and_fail(bench);
    assert_true(expected.used > 10);
    free_counts(&expected);
    free_counts(&actual);
    run_result_free(&self);
}

static void test_seed(void **state)
{
    struct bench bench = {.directory = make_directory(), .seed = strtoull(*state, NULL, 0)};
    for (size_t i = 0; i < 2; i++)
        if (!have_command(clangs[i]))
            SKIP("%s is not installed", clangs[i]);
    bench.cxx = bench.seed % 2 == 0;
    if (!have_command(bench.cxx ? "g++" : "gcc"))
        SKIP("gcc is not installed");
    bench.source = join_path(bench.directory, "program.c");
    FILE *source = fopen(bench.source, "w");
    assert_non_null(source);
    generate_program(source, bench.seed);
    fclose(source);

    const char *const plain[] = {"-O1", NULL};
    struct run_result run = build_and_run(&bench, "plain", NULL, plain, NULL);
    for (size_t c = 0; c < 2; c++)
        for (size_t l = bench.seed % 2 == c ? 0 : 2; l < sizeof levels / sizeof *levels; l++) /* one takes all levels */
            check_pair(&bench, clangs[c], levels[l], "--granule=64", result_line(&run));
    check_pair(&bench, clangs[bench.seed % 2], levels[bench.seed % 4], "--granule=4", result_line(&run));
    for (size_t c = 0; c < 2; c++)
        check_fields(&bench, clangs[c], levels[(bench.seed + 2 * c) % 4], result_line(&run));
    run_result_free(&run);

    const char *const self[] = {"-O1", "-DSELF", "-DALIGNED", NULL}, *const unoptimised[] = {"-O0", "-DALIGNED", NULL};
    check_own(&bench, clangs[bench.seed / 2 % 2], unoptimised, self);
    const char *const self_volatile[] = {"-O1", "-DSELF", "-DALIGNED", "-DVOLATILE", NULL};
    const char *const optimised[] = {levels[1 + bench.seed % 3], "-DALIGNED", "-DVOLATILE", NULL};
    check_own(&bench, clangs[(bench.seed / 2 + 1) % 2], optimised, self_volatile);
    free(bench.source);
    remove_directory(bench.directory);
}

struct test_list test_list(void)
{
    unsigned long long first = 1, last = USUAL_SEEDS;
    const char *chosen = getenv("HEAPWISE_PROPERTY_SEEDS");
    if (chosen) {
        char *end;
        first = last = strtoull(chosen, &end, 0);
        if (*end == '-')
            last = strtoull(end + 1, NULL, 0);
    }
    size_t count = last >= first ? (size_t)(last - first + 1) : 0;
    struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        char *name;
        if (asprintf(&name, "%llu", first + i) < 0)
            abort();
        tests[i] = (struct CMUnitTest){.name = name, .test_func = test_seed, .initial_state = name};
    }
    return (struct test_list){.tests = tests, .count = count};
}
