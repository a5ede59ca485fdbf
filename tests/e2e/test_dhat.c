/* test_dhat.c - totals and call stacks against Valgrind's DHAT, another independent observer that walks stacks its own
 * way.
 *
 * How DHAT 3.19 counts: each realloc of a block is one more block of the context in which the block was first made,
 * with all of its new size as bytes; realloc to size 0 is a free. So its blocks are our allocations + reallocations,
 * and bytes can be compared where nothing was reallocated. Stacks are compared by program counter, not by name: the
 * lowest 12 bits of each are the same wherever a module is loaded. DHAT's first frames are its own malloc; both sides'
 * frames below main are left out. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stacks with what was counted there; sorted by key. */
struct stack {
    char *key; /* lowest 12 bits of the program counters, leaf first */
    int64_t blocks, bytes;
    bool reallocated;
    char *text;
};

struct stacks {
    struct stack *stack;
    size_t count;
    int64_t blocks;
};

static int compare_stacks(const void *a, const void *b)
{
    return strcmp(((const struct stack *)a)->key, ((const struct stack *)b)->key);
}

static void add_stack(struct stacks *stacks, const char *key, int64_t blocks, int64_t bytes, bool reallocated,
                      const char *text)
{
    stacks->stack = realloc(stacks->stack, (stacks->count + 1) * sizeof *stacks->stack);
    stacks->stack[stacks->count++] = (struct stack){strdup(key), blocks, bytes, reallocated, strdup(text)};
    stacks->blocks += blocks;
}

/* Sorts, and merges equal keys. */
static void finish_stacks(struct stacks *stacks)
{
    qsort(stacks->stack, stacks->count, sizeof *stacks->stack, compare_stacks);
    size_t kept = 0;
    for (size_t i = 0; i < stacks->count; i++) {
        struct stack *last = kept ? &stacks->stack[kept - 1] : NULL;
        if (last && strcmp(last->key, stacks->stack[i].key) == 0) {
            last->blocks += stacks->stack[i].blocks;
            last->bytes += stacks->stack[i].bytes;
            last->reallocated |= stacks->stack[i].reallocated;
            free(stacks->stack[i].key);
            free(stacks->stack[i].text);
        } else {
            stacks->stack[kept++] = stacks->stack[i];
        }
    }
    stacks->count = kept;
}

static void free_stacks(struct stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++) {
        free(stacks->stack[i].key);
        free(stacks->stack[i].text);
    }
    free(stacks->stack);
}

enum { KEY_SIZE = 256 * 4 + 8 };

static struct stacks dhat_stacks(const json_t *dhat, size_t depth)
{
    struct stacks stacks = {0};
    const json_t *names = json_object_get(dhat, "ftbl"), *point;
    size_t index;
    json_array_foreach(json_object_get(dhat, "pps"), index, point)
    {
        char key[KEY_SIZE] = "", text[4096] = "";
        size_t used = 0, written = 0;
        const json_t *frames = json_object_get(point, "fs");
        for (size_t i = 0; i < json_array_size(frames) && i <= depth; i++) {
            const char *name =
                json_string_value(json_array_get(names, (size_t)json_integer_value(json_array_get(frames, i))));
            if (strstr(name, "(in ") && strstr(name, "/vgpreload_")) /* its own malloc */
                continue;
            if (strstr(name, "(below main)"))
                break;
            unsigned long pc = strtoul(name, NULL, 16);
            used += (size_t)snprintf(key + used, sizeof key - used, "%03lx,", pc & 0xfff);
            if (written < sizeof text - 200)
                written +=
                    (size_t)snprintf(text + written, sizeof text - written, "%s%.150s", written ? " < " : "", name);
        }
        add_stack(&stacks, key, json_number(point, "tbk"), json_number(point, "tb"), false, text);
    }
    finish_stacks(&stacks);
    return stacks;
}

static struct stacks heapwise_stacks(const json_t *report, size_t depth)
{
    struct stacks stacks = {0};
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        char key[KEY_SIZE] = "";
        size_t used = 0, frames = 0;
        const json_t *stack = json_object_get(context, "stack");
        for (size_t i = 0; i < json_array_size(stack) && frames < depth; i++) {
            const json_t *frame = json_array_get(stack, i);
            if (json_is_true(json_object_get(frame, "inlined")))
                continue;
            const char *name = json_text(frame, "function");
            if (strcmp(name, "__libc_start_call_main") == 0)
                break;
            unsigned long pc = (unsigned long)json_number(frame, "offset");
            used += (size_t)snprintf(key + used, sizeof key - used, "%03lx,", pc & 0xfff);
            frames++;
        }
        add_stack(&stacks, key, json_number(context, "allocations") + json_number(context, "reallocations"),
                  json_number(context, "bytes"), json_number(context, "reallocations") != 0, stack_line(context));
    }
    finish_stacks(&stacks);
    return stacks;
}

static json_t *run_dhat(const char *const argv[], const struct run_options *options, struct run_result *result)
{
    char *directory = make_directory(), *file = join_path(directory, "dhat.json"), argument[4200];
    snprintf(argument, sizeof argument, "--dhat-out-file=%s", file);
    const char *valgrind[32] = {"valgrind", "-q", "--tool=dhat", "--num-callers=250", "--read-inline-info=no",
                                argument};
    for (size_t i = 0; argv[i]; i++)
        valgrind[6 + i] = argv[i];
    *result = run(valgrind, options);
    json_error_t error;
    json_t *dhat = json_load_file(file, 0, &error);
    if (!dhat)
        fail_msg("valgrind --tool=dhat: no result: %s; stderr:\n%.2000s", error.text, result->err);
    free(file);
    remove_directory(directory);
    return dhat;
}

/* At least 99.5 % of the blocks that DHAT saw have the same stack here, in the same number. */
static void compare_with_dhat(const char *const argv[], const char *const *environment, bool exact)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    if (!have_command("valgrind"))
        SKIP("valgrind is not installed");
    if (!strchr(argv[0], '/') && !have_command(argv[0]))
        SKIP("%s is not installed", argv[0]);
    struct run_options options = {.environment = environment, .timeout_s = 240};
    struct run_result result;
    json_t *dhat = run_dhat(argv, &options, &result);
    struct recording recording = record_and_load(argv, &(struct record_options){.run = options});
    assert_string_equal(recording.run.out, result.out);
    assert_int_equal(recording.run.code, result.code);

    enum { DEPTH = 240 };
    struct stacks theirs = dhat_stacks(dhat, DEPTH), ours = heapwise_stacks(recording.report, DEPTH);
    int64_t agreed = 0, wrong_bytes = 0;
    int shown = 0;
    for (size_t i = 0; i < theirs.count; i++) {
        const struct stack *their = &theirs.stack[i];
        const struct stack *our = bsearch(their, ours.stack, ours.count, sizeof *ours.stack, compare_stacks);
        int64_t same = our ? (our->blocks < their->blocks ? our->blocks : their->blocks) : 0;
        agreed += same;
        if (our && !our->reallocated && our->blocks == their->blocks && our->bytes != their->bytes)
            wrong_bytes += their->blocks;
        if (same != their->blocks && shown++ < 12)
            print_message("%lld blocks of DHAT, %lld here: %.600s\n", (long long)their->blocks,
                          (long long)(our ? our->blocks : 0), their->text);
    }
    shown = 0;
    for (size_t i = 0; i < ours.count && agreed < theirs.blocks; i++) {
        if (!bsearch(&ours.stack[i], theirs.stack, theirs.count, sizeof *theirs.stack, compare_stacks) && shown++ < 12)
            print_message("%lld blocks here, none of DHAT: %.600s\n", (long long)ours.stack[i].blocks,
                          ours.stack[i].text);
    }
    print_message("%s: %lld blocks of DHAT, %lld here, %lld with the same stack (%.3f %%), %zu stacks\n", argv[0],
                  (long long)theirs.blocks, (long long)ours.blocks, (long long)agreed,
                  100.0 * (double)agreed / (double)theirs.blocks, theirs.count);
    int64_t tolerance = exact ? 0 : theirs.blocks / 200;
    if (llabs(theirs.blocks - ours.blocks) > tolerance)
        fail_msg("%lld blocks, DHAT has %lld", (long long)ours.blocks, (long long)theirs.blocks);
    if (agreed < theirs.blocks - theirs.blocks / 200)
        fail_msg("only %.3f %% of the allocations have the same stack", 100.0 * (double)agreed / (double)theirs.blocks);
    if (wrong_bytes > theirs.blocks / 200)
        fail_msg("%lld blocks are in contexts whose bytes differ", (long long)wrong_bytes);
    free_stacks(&theirs);
    free_stacks(&ours);
    json_decref(dhat);
    run_result_free(&result);
    recording_free(&recording);
}

static void test_workload(void **state)
{
    const char *program = need_program("workload");
    compare_with_dhat((const char *const[]){program, NULL}, NULL, true);
}

static void test_walks(void **state)
{
    const char *program = need_program("stacks");
    compare_with_dhat((const char *const[]){program, ".", "walks", "qsort", "alloca", "realigned", "many_arguments",
                                            "large_frame", "getline", NULL},
                      NULL, true);
}

static void test_sort(void **state)
{
    char *directory = make_directory(), *file = join_path(directory, "lines");
    FILE *stream = fopen(file, "w");
    for (unsigned i = 0; i < 20000; i++)
        fprintf(stream, "line %u of a file that is sorted\n", i * 2654435761u);
    fclose(stream);
    const char *const environment[] = {"LC_ALL=C", NULL};
    compare_with_dhat((const char *const[]){"sort", "--parallel=1", "-S", "256K", "-k2", file, NULL}, environment,
                      false);
    free(file);
    remove_directory(directory);
}

static void test_sqlite(void **state)
{
    const char *const argv[] = {
        "sqlite3", ":memory:",
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL); CREATE INDEX i ON t(b);"
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)"
        " INSERT INTO t SELECT x, printf('text %d', x * 7919 % 3001), x * 0.5 FROM n;"
        "SELECT count(*), sum(c) FROM t WHERE b LIKE 'text 1%';"
        "SELECT b FROM t ORDER BY c DESC, b LIMIT 5; SELECT group_concat(a) FROM (SELECT a FROM t ORDER BY b LIMIT 9);"
        "UPDATE t SET b = b || '!' WHERE a % 3 = 0; DELETE FROM t WHERE a % 7 = 1; SELECT max(b), min(b) FROM t;",
        NULL};
    compare_with_dhat(argv, NULL, false);
}

static void test_perl(void **state)
{
    const char *const environment[] = {"PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0", "LC_ALL=C", NULL};
    const char *const argv[] = {"perl", "-e",
                                "my %h; for my $i (1..2000) { push @{$h{$i % 97}}, { name => \"n$i\", at => $i } }"
                                "my $s = 0; for my $k (sort { $a <=> $b } keys %h) { $s += $_->{at} for grep {"
                                " $_->{name} =~ /^n(\\d)\\d*5$/ } @{$h{$k}}; } print \"$s\\n\";"
                                "my @l = sort map { join '-', reverse split //, $_ } 1..500; print \"@l[0..5]\\n\";",
                                NULL};
    compare_with_dhat(argv, environment, false);
}

static void test_xz(void **state)
{
    const char *const argv[] = {"xz", "-T1", "-2", "--stdout", "/etc/services", NULL};
    compare_with_dhat(argv, NULL, false);
}

TEST_LIST(cmocka_unit_test(test_workload), cmocka_unit_test(test_walks), cmocka_unit_test(test_sort),
          cmocka_unit_test(test_sqlite), cmocka_unit_test(test_perl), cmocka_unit_test(test_xz))
