/* test_frames.c - stacks through assembly without unwind tables, and through libc, in plain programs and in those that
 * count accesses, with and without frame pointers: programs/frames.c. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

static const struct build {
    const char *name;
    const char *const arguments[5];
} builds[] = {{"plain", {"gcc", "-O1"}},
              {"plain-fp", {"gcc", "-O1", "-fno-omit-frame-pointer"}},
              {"no-tables", {"gcc", "-O2", "-fno-asynchronous-unwind-tables"}},
              {"counting", {"", "cc", "-O1"}},
              {"counting-fp", {"", "cc", "-O1", "-fno-omit-frame-pointer"}},
              {"counting-words", {"", "cc", "--granule=8", "-O2"}}};

/* A chain of functions that a stack begins with; "…": any frames, also none. */
static bool matches(const json_t *context, size_t at, const char *chain)
{
    const size_t length = strcspn(chain, " ");
    const char *rest = chain[length] ? chain + length + 3 : NULL; /* " < " */
    if (!strncmp(chain, "…", length)) {
        for (size_t i = at; i <= stack_depth(context); i++)
            if (!rest || matches(context, i, rest))
                return true;
        return false;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, chain);
    return at < stack_depth(context) && is_function(stack_function(context, at), name) &&
           (!rest || matches(context, at + 1, rest));
}

/* All allocations under FUNCTION have this chain. */
static const json_t *expect_chain(const json_t *report, const char *build, const char *function, const char *chain)
{
    const json_t *contexts = json_object_get(report, "contexts"), *found = NULL;
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i);
        bool has = false;
        for (size_t k = 0; k < stack_depth(context); k++)
            has |= is_function(stack_function(context, k), function);
        if (!has)
            continue;
        if (!matches(context, 0, chain))
            fail_msg("%s: the stack is\n    %s\n  instead of\n    %s", build, stack_line(context), chain);
        found = context;
    }
    if (!found)
        fail_msg("%s: no stack has %s", build, function);
    return found;
}

/* A stack is never said to be whole, unless it is. */
static void expect_chain_or_doubt(const json_t *report, const char *build, const char *what)
{
    char leaf[32], chain[128];
    snprintf(leaf, sizeof leaf, "%s_leaf", what);
    snprintf(chain, sizeof chain, "%s < through_%s < case_%s < main", leaf, what, what);
    const json_t *context = only_context(report, leaf);
    if (matches(context, 0, chain))
        return;
    if (!json_is_false(json_object_get(context, "stack_complete")) ||
        (matches(context, 0, "… < main") && !json_is_true(json_object_get(context, "stack_gap"))))
        fail_msg("%s: the stack\n    %s\n  is said to be whole", build, stack_line(context));
}

static void test_chains(void **state)
{
    static const char *const chains[][2] = {
        {"straight_leaf", "straight_leaf < through_straight < twice_leaf < through_straight < case_straight < main"},
        {"branches_leaf", "branches_leaf < through_branches < case_branches < main"},
        {"frame_leaf", "frame_leaf < through_frame < case_frame < main"},
        {"case_strdup", "… < case_strdup < main"},
        {"case_fopen", "… < case_fopen < main"},
        {"case_getline", "… < case_getline < main"},
        {"compare", "compare < … < case_qsort < main"},
        {"case_thread", "… < case_thread < main"},
        {"thread_leaf", "thread_leaf < … < start_thread < …"}};
    char *directory = make_directory(), *source = join_path(TEST_SOURCES, "programs/frames.c");
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        char *program = join_path(directory, builds[i].name);
        const char *argv[16] = {NULL};
        size_t used = 0;
        for (; builds[i].arguments[used]; used++)
            argv[used] = *builds[i].arguments[used] ? builds[i].arguments[used] : heapwise_path();
        const char *const common[] = {"-D_GNU_SOURCE", "-g", "-w", "-pthread", "-o", program, source};
        for (size_t k = 0; k < sizeof common / sizeof *common; k++)
            argv[used++] = common[k];
        compile_or_skip(argv, builds[i].name);
        const char *const run[] = {program, NULL};
        struct recording r = record_and_load(run, &(struct record_options){0});
        assert_exit(&r.run, 0, builds[i].name);
        for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
            const json_t *context = expect_chain(r.report, builds[i].name, chains[k][0], chains[k][1]);
            if (!json_is_true(json_object_get(context, "stack_complete")))
                fail_msg("%s: the stack of %s is not complete", builds[i].name, chains[k][0]);
        }
        /* What allocates for a thread is libc, not who starts it. */
        const json_t *thread = expect_chain(r.report, builds[i].name, "case_thread", "… < case_thread < main");
        if (is_function(stack_function(thread, 0), "case_thread"))
            fail_msg("%s: the frames between calloc and pthread_create are missing", builds[i].name);
        expect_chain_or_doubt(r.report, builds[i].name, "blind");
        expect_chain_or_doubt(r.report, builds[i].name, "last");
        recording_free(&r);
        free(program);
    }
    free(source);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_chains))
