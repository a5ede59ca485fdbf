/* test_oracles.c - call stacks compared with what others find who walk them by other means: gdb, stopped in malloc, and
 * glibc's backtrace(), called beside it. Frame by frame, by module and address: programs/oracle.c and oracle.cpp. */
#include "support/check.h"
#include "support/recording.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

enum { FIRST = 70000, FRAMES_MOST = 64, STACKS_MOST = 256 };

/* Of callers, leaf first. Addresses are those in the file. */
struct stack {
    int64_t size;
    int count;
    struct {
        char module[256];
        uint64_t address;
    } frames[FRAMES_MOST];
    bool whole;
};
struct stacks {
    struct stack *of;
    size_t count;
};

static const struct build {
    const char *name;
    const char *c[3], *cpp[3], *option; /* "": heapwise */
} builds[] = {{"gcc -O2", {"gcc"}, {"g++"}, "-O2"},
              {"gcc -O0", {"gcc"}, {"g++"}, "-O0"},
              {"heapwise cc -O0", {"", "cc"}, {"", "c++"}, "-O0"},
              {"heapwise cc -O2", {"", "cc"}, {"", "c++"}, "-O2"}};

/* What says where the caller of assembly without tables is? Only its instructions, which Heapwise reads; and, in the
 * second case, the frame pointer, which gdb follows, too. */
static const struct unknown {
    int64_t size;
    bool to_gdb;
    const char *functions[4];
} unknown[] = {{FIRST + 10, true, {"assembly_leaf", "through_assembly", "case_assembly", "main"}},
               {FIRST + 11, false, {"frame_leaf", "through_frame", "case_assembly", "main"}}};

static void set_module(struct stack *stack, const char *path)
{
    char real[PATH_MAX];
    const char *known = realpath(path, real) ? real : path;
    const size_t length = strlen(known), most = sizeof stack->frames[0].module - 1;
    strcpy(stack->frames[stack->count].module, known + (length > most ? length - most : 0));
}

static struct stack *new_stack(struct stacks *stacks)
{
    if (!stacks->of)
        stacks->of = calloc(STACKS_MOST, sizeof *stacks->of);
    assert_true(stacks->of && stacks->count < STACKS_MOST);
    stacks->of[stacks->count] = (struct stack){0};
    return &stacks->of[stacks->count++];
}

/* Lines "MARK size module address module address …". */
static struct stacks stacks_of_text(char *text)
{
    struct stacks stacks = {0};
    for (char *at = text; (at = strstr(at, "MARK ")) != NULL;) {
        char *end = at + strcspn(at, "\n"), *rest = NULL;
        const char last = *end;
        *end = 0;
        struct stack *stack = new_stack(&stacks);
        strtok_r(at, " ", &rest);
        stack->size = strtoll(strtok_r(NULL, " ", &rest), NULL, 10);
        for (const char *module; (module = strtok_r(NULL, " ", &rest)) != NULL && stack->count < FRAMES_MOST;) {
            const char *address = strtok_r(NULL, " ", &rest);
            assert_non_null(address);
            set_module(stack, module);
            stack->frames[stack->count++].address = strtoull(address, NULL, 16);
        }
        if (!stack->count || strstr(stack->frames[0].module, "libheapwise"))
            stacks.count--; /* the runtime calls the malloc that it wraps */
        *end = last;
        at = end;
    }
    return stacks;
}

static struct stacks stacks_of_report(const json_t *report)
{
    struct stacks stacks = {0};
    const json_t *contexts = json_object_get(report, "contexts"), *context, *frame;
    size_t i, k;
    json_array_foreach(contexts, i, context)
    {
        const int64_t size = json_number(context, "size.min");
        if (size < FIRST || size >= FIRST + 1000)
            continue;
        struct stack *stack = new_stack(&stacks);
        stack->size = size;
        stack->whole = json_is_true(json_object_get(context, "stack_complete"));
        json_array_foreach(json_object_get(context, "stack"), k, frame)
        {
            if (json_is_true(json_object_get(frame, "inlined")))
                continue;
            assert_true(stack->count < FRAMES_MOST);
            set_module(stack, json_string_value(json_object_get(frame, "module")));
            stack->frames[stack->count++].address = (uint64_t)json_number(frame, "offset");
        }
    }
    return stacks;
}

/* Heapwise's addresses lie in the call, those of the others behind it; what a signal has interrupted is the same. */
static bool are_equal(const struct stack *ours, int from, const struct stack *other, int other_from)
{
    bool same = ours->size == other->size && ours->count - from == other->count - other_from;
    for (int i = from; same && i < ours->count; i++) {
        const uint64_t address = other->frames[i - from + other_from].address;
        same = !strcmp(ours->frames[i].module, other->frames[i - from + other_from].module) &&
               (address == ours->frames[i].address || address == ours->frames[i].address + 1);
    }
    return same;
}

static void print_stack(const char *whose, const struct stack *stack)
{
    print_message("%s: %lld", whose, (long long)stack->size);
    for (int i = 0; i < stack->count; i++)
        print_message(" %s+%llx",
                      strrchr(stack->frames[i].module, '/') ? strrchr(stack->frames[i].module, '/') + 1 : "?",
                      (unsigned long long)stack->frames[i].address);
    print_message("\n");
}

/* Frames of operator new: Heapwise's stacks begin at its caller. */
static int begin_of(const struct stack *stack)
{
    int from = 0;
    while (from < stack->count && strstr(stack->frames[from].module, "libstdc++"))
        from++;
    return from;
}

/* Each stack of one side is among those of the other. BACKTRACE knows callers only. */
static void compare(const char *name, const struct stacks *ours, const struct stacks *others, bool backtrace)
{
    size_t compared = 0;
    for (int side = 0; side < 2; side++) {
        const struct stacks *from = side ? others : ours, *to = side ? ours : others;
        for (size_t i = 0; i < from->count; i++) {
            bool found = false, known = true;
            for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++)
                known &= from->of[i].size != unknown[k].size || (!backtrace && !unknown[k].to_gdb);
            for (size_t k = 0; known && !found && k < to->count; k++) {
                const struct stack *mine = side ? &to->of[k] : &from->of[i], *other = side ? &from->of[i] : &to->of[k];
                found = are_equal(mine, backtrace, other, backtrace ? 0 : begin_of(other));
            }
            compared += found;
            if (!known || found)
                continue;
            for (size_t k = 0; k < to->count; k++)
                if (to->of[k].size == from->of[i].size)
                    print_stack(side ? "Heapwise" : "other", &to->of[k]);
            print_stack(side ? "other" : "Heapwise", &from->of[i]);
            fail_msg("%s: the stack of block %lld is another one", name, (long long)from->of[i].size);
        }
    }
    assert_true(compared >= 14);
}

/* All are whole here; of what no oracle knows the functions do. */
static void check_whole(const char *name, const struct stacks *ours, const json_t *report)
{
    for (size_t i = 0; i < ours->count; i++)
        if (!ours->of[i].whole)
            fail_msg("%s: the stack of block %lld is incomplete", name, (long long)ours->of[i].size);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        if (!json_array_size(json_object_get(report, "contexts")) || ours->of[0].size >= FIRST + 30)
            return; /* oracle.cpp has none of them */
        const json_t *context = only_context(report, unknown[i].functions[0]);
        for (size_t k = 0; k < 4; k++)
            if (!is_function(stack_function(context, k), unknown[i].functions[k]))
                fail_msg("%s: the stack is %s", name, stack_line(context));
    }
}

static void compile(const struct build *build, const char *const compiler[], const char *source, const char *output,
                    bool library)
{
    const char *argv[24] = {NULL};
    size_t used = 0;
    char *path = join_path(TEST_SOURCES, source);
    for (size_t i = 0; i < 3 && compiler[i]; i++)
        argv[used++] = *compiler[i] ? compiler[i] : heapwise_path();
    const char *const common[] = {"-D_GNU_SOURCE", "-I" TEST_SOURCES "/programs", "-g",          "-w",
                                  "-pthread",      "-fomit-frame-pointer",        build->option, "-o",
                                  output};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        argv[used++] = common[i];
    argv[used++] = path;
    if (library) {
        argv[used++] = "-DLIBRARY";
        argv[used++] = "-fPIC";
        argv[used++] = "-shared";
    }
    compile_or_skip(argv, build->name);
    free(path);
}

/* Why gdb cannot be an oracle here; NULL: it can. */
static const char *gdb_trouble(void)
{
    const char *const argv[] = {"gdb", "-q",  "-nx",       "-batch", "-ex", "python print(6 * 7)",
                                "-ex", "run", "/bin/true", NULL};
    struct run_result result = run(argv, NULL);
    const char *trouble = NULL;
    if (result.code == 127)
        trouble = "gdb is not installed";
    else if (!strstr(result.out, "42"))
        trouble = "gdb has no Python";
    else if (!strstr(result.out, "exited normally"))
        trouble = "gdb cannot run programs here";
    run_result_free(&result);
    return trouble;
}

static void compare_with_gdb(const struct build *build, const char *const program[], const struct stacks *ours)
{
    char *script = join_path(TEST_SOURCES, "programs/oracle_gdb.py"), *directory = make_directory();
    const char *argv[] = {"gdb", "-q", "-nx", "-batch", "-x", script, "--args", program[0], program[1], NULL};
    char *output = NULL;
    assert_true(asprintf(&output, "HEAPWISE_OPTIONS=output=%s/%%e.%%p.hwprof", directory) > 0);
    const char *const environment[] = {output, NULL};
    struct run_result result = run(argv, &(struct run_options){.environment = environment, .timeout_s = 120});
    struct stacks theirs = stacks_of_text(result.out);
    if (!theirs.count)
        fail_msg("gdb says:\n%s%s", result.out, result.err);
    compare(build->name, ours, &theirs, false);
    free(theirs.of);
    run_result_free(&result);
    free(output);
    free(script);
    remove_directory(directory);
}

/* Directories with the programs of each build: both tests use them. */
static char *built[sizeof builds / sizeof *builds];

static void remove_built(void)
{
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (built[i])
            remove_directory(built[i]);
}

static void compile_build(size_t number)
{
    const struct build *build = &builds[number];
    if (built[number])
        return;
    built[number] = make_directory();
    char *library = join_path(built[number], "lib.so"), *c = join_path(built[number], "c"),
         *cpp = join_path(built[number], "cpp");
    compile(build, build->c, "programs/oracle.c", library, true);
    compile(build, build->c, "programs/oracle.c", c, false);
    compile(build, build->cpp, "programs/oracle.cpp", cpp, false);
    free(library);
    free(c);
    free(cpp);
}

static void check_build(size_t number, bool gdb)
{
    static const char *const environment[] = {"ORACLE_BACKTRACE=1", NULL};
    const struct build *build = &builds[number];
    compile_build(number);
    for (size_t i = 0; i < 2; i++) {
        char *program = join_path(built[number], i ? "cpp" : "c"), *library = join_path(built[number], "lib.so");
        const char *const argv[] = {program, i ? NULL : library, NULL};
        struct recording r =
            record_and_load(argv, &(struct record_options){.run.environment = gdb ? NULL : environment});
        assert_exit(&r.run, 0, build->name);
        struct stacks ours = stacks_of_report(r.report);
        assert_true(ours.count > 0);
        check_whole(build->name, &ours, r.report);
        if (gdb)
            compare_with_gdb(build, argv, &ours);
        else {
            struct stacks theirs = stacks_of_text(r.run.out);
            compare(build->name, &ours, &theirs, true);
            free(theirs.of);
        }
        free(ours.of);
        recording_free(&r);
        free(program);
        free(library);
    }
}

static void test_backtrace(void **state)
{
    atexit(remove_built);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        check_build(i, false);
}

static void test_gdb(void **state)
{
    const char *trouble = gdb_trouble();
    if (trouble)
        SKIP("%s", trouble);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        check_build(i, true);
}

TEST_LIST(cmocka_unit_test(test_backtrace), cmocka_unit_test(test_gdb))
