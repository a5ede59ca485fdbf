/* test_contexts.c - the call chains of allocations, by the names of their functions. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True when the frames of CONTEXT from INDEX on begin with CHAIN, "a < b < … < main"; "…" stands for any frames. */
static bool chain_matches(const json_t *context, size_t index, const char *chain)
{
    char name[256];
    size_t length = strcspn(chain, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, chain);
    const char *rest = chain + length;
    rest += strncmp(rest, " < ", 3) == 0 ? 3 : strlen(rest);
    if (strcmp(name, "…") == 0) {
        for (size_t i = index; i <= stack_depth(context); i++)
            if (!*rest || chain_matches(context, i, rest))
                return true;
        return false;
    }
    if (index >= stack_depth(context) || !is_function(stack_function(context, index), name))
        return false;
    return !*rest || chain_matches(context, index + 1, rest);
}

struct chain {
    const char *function; /* every context with it … */
    const char *chain;    /* … has this chain; or, */
    int64_t allocations;  /* -1: any number, but not 0 */
    const char *or_chain; /* where that depends on the compiler, this one */
};

static int check_chain(const json_t *report, const struct chain *expected)
{
    int64_t allocations = 0;
    int wrong = 0;
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        bool has = false;
        for (size_t i = 0; i < stack_depth(context); i++)
            has = has || is_function(stack_function(context, i), expected->function);
        if (!has)
            continue;
        allocations += json_number(context, "allocations");
        if (!chain_matches(context, 0, expected->chain) &&
            !(expected->or_chain && chain_matches(context, 0, expected->or_chain))) {
            print_error("%s: the stack is\n    %s\n  instead of\n    %s\n", expected->function, stack_line(context),
                        expected->chain);
            wrong++;
        }
    }
    if (expected->allocations >= 0 ? allocations != expected->allocations : allocations == 0) {
        print_error("%s: %lld allocations instead of %lld\n", expected->function, (long long)allocations,
                    (long long)expected->allocations);
        wrong++;
    }
    return wrong;
}

static void check_chains(const json_t *report, const struct chain *chains, size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += check_chain(report, &chains[i]);
    if (wrong)
        fail_msg("%d stacks are wrong", wrong);
}

#define R10 "recurse < recurse < recurse < recurse < recurse < recurse < recurse < recurse < recurse < recurse"

static const struct chain chains[] = {
    {"recursion_leaf_10", "recursion_leaf_10 < " R10 " < case_recursion < main", 1, NULL},
    {"compare_and_allocate", "compare_and_allocate < … < case_qsort < main", -1, NULL},
    {"case_getline", "… < case_getline < main", 3, NULL},
    {"case_asprintf", "… < case_asprintf < main", -1, NULL},
    {"alloca_leaf", "alloca_leaf < alloca_middle < case_alloca < main", 7, NULL},
    {"large_frame_leaf", "large_frame_leaf < large_frame_middle < case_large_frame < main", 1, NULL},
    {"realigned_leaf", "realigned_leaf < realigned_middle < case_realigned < main", 9, NULL},
    {"many_arguments_leaf", "many_arguments_leaf < case_many_arguments < main", 2, NULL},
    {"noreturn_leaf", "noreturn_leaf < noreturn_middle < case_noreturn < main", 1, NULL},
    {"walk_leaf", "walk_leaf < … < case_walks < main", 20000, NULL},
    {"signal_leaf", "signal_leaf < on_user_signal < … < case_signal < main", 1, NULL},
    {"fault_leaf", "fault_leaf < on_fault < … < faulting_store < case_fault < main", 1, NULL},
    {"on_profile_timer", "on_profile_timer < … < case_timer < main", -1, NULL},
    {"no_frame_pointer_leaf", "no_frame_pointer_leaf < nofp_inner < nofp_outer < case_no_frame_pointer < main", 1,
     NULL},
    {"no_unwind_leaf", "no_unwind_leaf < nounwind_inner < nounwind_outer < case_no_unwind < main", 1, NULL},
    {"plugin_one_leaf", "plugin_one_leaf < plugin_one_run < case_plugins < main", 3, NULL},
    {"plugin_two_leaf", "plugin_two_leaf < plugin_two_run < case_plugins < main", 3, NULL},
    {"coroutine_leaf", "coroutine_leaf < coroutine_body", 5, NULL},
    {"small_stack_leaf", "small_stack_leaf < small_stack_thread", 100, NULL},
    {"constructor_leaf", "constructor_leaf < run_constructor", 1, NULL},
    {"at_exit_leaf", "at_exit_leaf < run_at_exit < …", 1, NULL},
    {"destructor_leaf", "destructor_leaf < run_destructor < …", 1, NULL},
};
#define CHAINS (sizeof chains / sizeof *chains)

/* Frames of code that cannot be walked: the rest of the stack is either right or missing, never made up. */
static void check_honest_end(const json_t *report, const char *function, const char *const *allowed)
{
    const json_t *context = only_context(report, function);
    assert_string_equal(stack_function(context, 0), function);
    size_t next = 0; /* allowed names come in this order */
    for (size_t i = 1; i < stack_depth(context); i++) {
        const char *name = stack_function(context, i);
        if (!*name)
            continue; /* generated code */
        size_t k = next;
        while (allowed[k] && strcmp(allowed[k], name) != 0)
            k++;
        if (!allowed[k])
            fail_msg("%s: a frame %s that is not there: %s", function, name, stack_line(context));
        next = k + 1;
    }
}

static void check_ends(const json_t *report)
{
    static const char *const assembly[] = {"assembly_without_cfi",
                                           "case_assembly",
                                           "main",
                                           "__libc_start_call_main",
                                           "__libc_start_main",
                                           "__libc_start_main_impl",
                                           "__libc_start_main@@GLIBC_2.34",
                                           "_start",
                                           NULL};
    static const char *const generated[] = {"case_generated",
                                            "main",
                                            "__libc_start_call_main",
                                            "__libc_start_main",
                                            "__libc_start_main_impl",
                                            "__libc_start_main@@GLIBC_2.34",
                                            "_start",
                                            NULL};
    check_honest_end(report, "assembly_leaf", assembly);
    check_honest_end(report, "generated_leaf", generated);
    /* The blocks that generated code itself asked for are counted all the same: 10 of 1,112 bytes. */
    int64_t found = 0;
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (json_number(context, "size.min") == 1112 && json_number(context, "size.max") == 1112)
            found += json_number(context, "allocations");
    }
    assert_int_equal(found, 10);
}

/* Each block of walk_leaf is as large as the number that its way spells, leaf last, in digits to the base of 4. */
static void check_walks(const json_t *report)
{
    int wrong = 0;
    size_t index, ways = 0;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (strcmp(stack_function(context, 0), "walk_leaf") != 0)
            continue;
        ways++;
        int64_t code = 0, scale = 1;
        for (size_t i = 1; i < stack_depth(context); i++) {
            const char *name = stack_function(context, i);
            if (strcmp(name, "walk_on") == 0)
                continue; /* inlined */
            int digit = strcmp(name, "walk_one") == 0     ? 1
                        : strcmp(name, "walk_two") == 0   ? 2
                        : strcmp(name, "walk_three") == 0 ? 3
                                                          : 0;
            if (!digit)
                break;
            code += digit * scale;
            scale *= 4;
        }
        if (json_number(context, "size.min") != code || json_number(context, "size.max") != code) {
            if (wrong++ < 5)
                print_error("blocks of %lld to %lld bytes at the stack of size %lld: %s\n",
                            (long long)json_number(context, "size.min"), (long long)json_number(context, "size.max"),
                            (long long)code, stack_line(context));
        }
    }
    if (wrong)
        fail_msg("%d of %zu stacks got the blocks of others", wrong, ways);
    assert_true(ways > 500);
}

static struct recording record_stacks(const char *name, const char *const *cases)
{
    const char *program = program_path(name), *library = program_path("libnofp.so");
    if (!program || !library)
        SKIP("%s was not built", name);
    char directory[4096];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(library, '/') - library), library);
    const char *argv[32] = {program, directory};
    for (size_t i = 0; cases && cases[i]; i++)
        argv[i + 2] = cases[i];
    struct recording recording = record_and_load(argv, NULL);
    assert_exit(&recording.run, 0, run_describe(argv));
    return recording;
}

static void check_skin(const char *name)
{
    struct recording recording = record_stacks(name, NULL);
    check_chains(recording.report, chains, CHAINS);
    check_walks(recording.report);
    check_ends(recording.report);
    assert_contexts_sum_to_totals(recording.report);
    recording_free(&recording);
}

static void test_gcc_O2(void **state)
{
    check_skin("stacks");
}

static void test_gcc_O0(void **state)
{
    check_skin("stacks-O0");
}

static void test_gcc_O3_frame_pointers(void **state)
{
    check_skin("stacks-O3-fp");
}

static void test_gcc_no_pie(void **state)
{
    check_skin("stacks-no-pie");
}

static void test_clang_O2(void **state)
{
    check_skin("stacks-clang");
}

static void test_clang_no_pie(void **state)
{
    check_skin("stacks-clang-no-pie");
}

static void test_stripped_with_debuglink(void **state)
{
    check_skin("stacks-debuglink");
}

/* Without any symbols: module and offset, and the same number of contexts. */
static void test_stripped(void **state)
{
    struct recording recording = record_stacks("stacks-stripped", (const char *const[]){"alloca", "qsort", NULL});
    struct recording named = record_stacks("stacks", (const char *const[]){"alloca", "qsort", NULL});
    assert_int_equal(report_totals(recording.report).allocations, report_totals(named.report).allocations);
    assert_int_equal(report_totals(recording.report).bytes, report_totals(named.report).bytes);
    assert_int_equal(json_array_size(json_object_get(recording.report, "contexts")),
                     json_array_size(json_object_get(named.report, "contexts")));
    size_t index, with_program = 0;
    const json_t *context;
    json_array_foreach(json_object_get(recording.report, "contexts"), index, context)
    {
        for (size_t i = 0; i < stack_depth(context); i++) {
            const json_t *frame = json_array_get(json_object_get(context, "stack"), i);
            if (strstr(json_text(frame, "module"), "stacks-stripped")) {
                with_program++;
                /* where in the file, not where in this run's address space */
                assert_in_range(json_number(frame, "offset"), 0x1000, 0x100000);
            }
        }
    }
    assert_true(with_program > 5);
    recording_free(&recording);
    recording_free(&named);
}

/* 256 frames are kept of a deeper stack, and the report says that there were more. */
static void test_depth(void **state)
{
    struct recording recording = record_stacks("stacks", (const char *const[]){"recursion", NULL});
    const json_t *shallow = only_context(recording.report, "recursion_leaf_200");
    assert_true(stack_depth(shallow) >= 203);
    assert_true(chain_matches(shallow, 201, "case_recursion < main"));
    assert_true(json_is_true(json_object_get(shallow, "stack_complete")));
    const json_t *deep = only_context(recording.report, "recursion_leaf_300");
    assert_int_equal(stack_depth(deep), 256);
    assert_string_equal(stack_function(deep, 0), "recursion_leaf_300");
    assert_string_equal(stack_function(deep, 255), "recurse");
    assert_true(json_is_false(json_object_get(deep, "stack_complete")));
    assert_true(report_says(recording.report, "limit of frames"));
    recording_free(&recording);
}

static void check_exceptions(const char *name)
{
    const char *program = need_program(name);
    const char *const argv[] = {program, NULL};
    struct counted counted;
    struct recording recording = record_with_counter(argv, NULL, &counted);
    assert_exit(&recording.run, 0, name);
    assert_totals_equal("against the counter", counted_totals(&counted, recording.report),
                        report_totals(recording.report));
    static const struct chain expected[] = {
        {"thrower", "… < thrower < …", -1, NULL},
        {"destructor_on_the_way", "destructor_on_the_way < … < middle_with_guard < catcher < main", 50, NULL},
        {"in_the_catch", "in_the_catch < catcher < main", 100, "in_the_catch < rethrower < main"},
        {"after_the_catch", "after_the_catch < catcher < main", 50, "after_the_catch < main"}, /* a tail call */
    };
    check_chains(recording.report, expected, sizeof expected / sizeof *expected);
    recording_free(&recording);
    counted_free(&counted);
}

static void test_exceptions_gcc(void **state)
{
    check_exceptions("exceptions");
}

static void test_exceptions_clang(void **state)
{
    check_exceptions("exceptions-clang");
}

/* Lines: the frame of main in the file and at a line that has the call. */
static void test_files_and_lines(void **state)
{
    struct recording recording = record_stacks("stacks", (const char *const[]){"alloca", NULL});
    const json_t *context = only_context(recording.report, "alloca_leaf");
    size_t found = 0;
    for (size_t i = 0; i < stack_depth(context); i++) {
        const json_t *frame = json_array_get(json_object_get(context, "stack"), i);
        if (strcmp(json_text(frame, "function"), "alloca_middle") == 0) {
            assert_contains(json_text(frame, "file"), "stacks.c");
            assert_true(json_number(frame, "line") > 50);
            found++;
        }
    }
    assert_int_equal(found, 1);
    recording_free(&recording);
}

/* Every form of operator new: its caller's frame pointer is all that the way on rests on. */
static void test_operators_with_frame_pointers(void **state)
{
    const char *program = need_program("new-frame-pointers");
    struct recording recording = record_and_load((const char *const[]){program, NULL}, NULL);
    const json_t *contexts = json_object_get(recording.report, "contexts"), *context;
    size_t index, forms = 0;
    json_array_foreach(contexts, index, context)
    {
        const char *line = stack_line(context);
        if (!strstr(line, "form_"))
            continue;
        forms++;
        assert_contains(line, "main");
        assert_true(json_is_true(json_object_get(context, "stack_complete")));
    }
    assert_true(forms >= 8);
    recording_free(&recording);
}

TEST_LIST(cmocka_unit_test(test_gcc_O2), cmocka_unit_test(test_gcc_O0), cmocka_unit_test(test_gcc_O3_frame_pointers),
          cmocka_unit_test(test_gcc_no_pie), cmocka_unit_test(test_clang_O2), cmocka_unit_test(test_clang_no_pie),
          cmocka_unit_test(test_stripped_with_debuglink), cmocka_unit_test(test_stripped), cmocka_unit_test(test_depth),
          cmocka_unit_test(test_exceptions_gcc), cmocka_unit_test(test_exceptions_clang),
          cmocka_unit_test(test_files_and_lines), cmocka_unit_test(test_operators_with_frame_pointers))
