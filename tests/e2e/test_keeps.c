/* test_keeps.c - who keeps what a program can reach. The truth comes from the program: names of functions, or the graph
 * that it prints, of which what each variable keeps is counted again here by taking it away. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const with_keeps[] = {"--keeps", NULL};

static struct recording record_keeps(const char *how, const char *argument, const char *options)
{
    const char *const argv[] = {need_program("keeps"), how, argument, NULL};
    const struct record_options record = {.arguments = with_keeps, .options = options};
    struct recording recording = record_and_load(argv, &record);
    assert_non_null(recording.report);
    return recording;
}

static const json_t *part(const json_t *report, const char *name)
{
    const json_t *array = json_object_get(json_object_get(report, "keeps"), name);
    assert_true(json_is_array(array));
    return array;
}

static const json_t *with_id(const json_t *array, int64_t id)
{
    size_t i;
    json_t *entry;
    json_array_foreach(array, i, entry) if (json_number(entry, "id") == id) return entry;
    fail_msg("no entry %lld", (long long)id);
    return NULL;
}

/* ---- kinds ---- */

static const char *function_of(const json_t *report, int64_t id)
{
    size_t at;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), at, context)
    {
        if (json_number(context, "id") != id)
            continue;
        for (size_t i = 0; i < stack_depth(context); i++)
            if (!strncmp(stack_function(context, i), "of_", 3) || !strncmp(stack_function(context, i), "place", 5))
                return stack_function(context, i);
    }
    return NULL;
}

static const struct {
    const char *function, *kind, *other_kind; /* of the keeper */
    const char *variable;                     /* NULL: none */
    int64_t blocks, bytes;
} truth[] = {
    {"of_list", "pointer", NULL, "list", 500, 500 * 48},   {"of_tree", "pointer", NULL, "tree", 127, 127 * 64},
    {"of_ring", "pointer", NULL, "ring", 10, 10 * 32},     {"of_table", "variable", NULL, "table", 100, 100 * 24},
    {"of_several", "several", "target", NULL, 3, 300},     {"of_target", "target", NULL, "owner", 2, 500},
    {"of_shared", "target", NULL, "shared_", 20, 20 * 72}, {"of_stack", "frame", NULL, NULL, 1, 64},
    {"of_thread_local", "pointer", NULL, NULL, 1, 80},     {"of_register", "registers", NULL, NULL, 1, 48},
};

static void assert_kinds(const json_t *report)
{
    const json_t *keepers = part(report, "keepers"), *kept = part(report, "kept");
    for (size_t t = 0; t < sizeof truth / sizeof *truth; t++) {
        int64_t blocks = 0, bytes = 0;
        size_t i;
        json_t *entry;
        json_array_foreach(kept, i, entry)
        {
            const char *function = function_of(report, json_number(entry, "context"));
            if (!function || strcmp(function, truth[t].function))
                continue;
            const json_t *keeper = with_id(keepers, json_number(entry, "keeper"));
            const char *kind = json_text(keeper, "kind");
            if (strcmp(kind, truth[t].kind) && (!truth[t].other_kind || strcmp(kind, truth[t].other_kind)))
                fail_msg("%s: kept by %s (%s)", function, json_text(keeper, "name"), kind);
            if (truth[t].variable)
                assert_int_equal(strncmp(json_text(keeper, "variable"), truth[t].variable, strlen(truth[t].variable)),
                                 0);
            blocks += json_number(entry, "blocks");
            bytes += json_number(entry, "bytes");
        }
        if (blocks != truth[t].blocks || bytes != truth[t].bytes)
            fail_msg("%s: %lld blocks, %lld bytes", truth[t].function, (long long)blocks, (long long)bytes);
    }
}

static void test_kinds(void **state)
{
    static const char *const stores[] = {NULL, "block-table=1"};
    for (size_t i = 0; i < 2; i++) {
        struct recording recording = record_keeps("kinds", NULL, stores[i]);
        assert_kinds(recording.report);
        recording_free(&recording);
    }
}

/* ---- a graph ---- */

enum { BLOCKS = 400, EDGES = 2 * BLOCKS, ROOTS = 16 };
struct graph {
    int64_t size[BLOCKS];
    int from[EDGES], to[EDGES];
    int variable[ROOTS], offset[ROOTS], target[ROOTS];
    int blocks, edges, roots;
};

static void read_graph(struct graph *graph, const char *text)
{
    *graph = (struct graph){0};
    for (; *text; text = strchr(text, '\n') + 1) {
        int a, b, c;
        if (sscanf(text, "block %d %d", &a, &b) == 2) {
            graph->size[a] = b;
            graph->blocks++;
        } else if (sscanf(text, "edge %d %d", &a, &b) == 2) {
            graph->from[graph->edges] = a;
            graph->to[graph->edges++] = b;
        } else if (sscanf(text, "root %d %d %d", &a, &b, &c) == 3) {
            graph->variable[graph->roots] = a;
            graph->offset[graph->roots] = b;
            graph->target[graph->roots++] = c;
        }
    }
    assert_int_equal(graph->blocks, BLOCKS);
    assert_true(graph->roots >= 8);
}

/* Bytes that can be reached without variable VARIABLE (of it: what is at OFFSET, -1: all), or without BLOCK; -1: with
 * all. */
static int64_t reached(const struct graph *graph, int variable, int offset, int block)
{
    bool there[BLOCKS] = {0};
    int64_t bytes = 0;
    for (int i = 0; i < graph->roots; i++)
        if (graph->variable[i] != variable || (offset >= 0 && graph->offset[i] != offset))
            there[graph->target[i]] = true;
    if (block >= 0)
        there[block] = false;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < graph->edges; i++)
            if (there[graph->from[i]] && !there[graph->to[i]] && graph->to[i] != block)
                more = there[graph->to[i]] = true;
    }
    for (int i = 0; i < BLOCKS; i++)
        bytes += there[i] ? graph->size[i] : 0;
    return bytes;
}

static int target_of(const struct graph *graph, int variable, int offset)
{
    for (int i = 0; i < graph->roots; i++)
        if (graph->variable[i] == variable && graph->offset[i] == offset)
            return graph->target[i];
    fail_msg("no pointer at root%d+%d", variable, offset);
    return -1;
}

/* What variables, their pointers and blocks keep alone is exact. Returns how many of KIND kept something. */
static int assert_keepers(const json_t *report, const struct graph *graph, const char *kind)
{
    const int64_t all = reached(graph, -1, -1, -1);
    int with = 0;
    size_t i;
    json_t *keeper;
    json_array_foreach(part(report, "keepers"), i, keeper)
    {
        int variable;
        const char *name = json_text(keeper, "variable"), *is = json_text(keeper, "kind");
        if (!name || sscanf(name, "root%d", &variable) != 1 || strcmp(is, kind))
            continue;
        const int offset = (int)json_number(keeper, "offset");
        const int64_t left = !strcmp(kind, "variable")  ? reached(graph, variable, -1, -1)
                             : !strcmp(kind, "pointer") ? reached(graph, variable, offset, -1)
                                                        : reached(graph, -1, -1, target_of(graph, variable, offset));
        if (json_number(keeper, "retained_bytes") != all - left)
            fail_msg("%s keeps %lld, not %lld bytes", json_text(keeper, "name"), (long long)(all - left),
                     (long long)json_number(keeper, "retained_bytes"));
        with += all > left;
    }
    return with;
}

/* What remains of the kept entries when one is taken away, from the edges of the report. */
static int64_t reached_without(const json_t *kept, const json_t *edges, size_t without)
{
    const size_t count = json_array_size(kept);
    bool *there = calloc(count, sizeof *there);
    int64_t bytes = 0;
    for (bool more = true; more;) {
        more = false;
        size_t i;
        json_t *edge;
        json_array_foreach(edges, i, edge)
        {
            const size_t to = (size_t)json_number(edge, "to");
            const json_t *from = json_object_get(edge, "from");
            if (!json_is_true(json_object_get(edge, "momentary")) && to != without && !there[to] &&
                (json_is_null(from) || there[json_integer_value(from)]))
                more = there[to] = true;
        }
    }
    for (size_t i = 0; i < count; i++)
        bytes += there[i] ? json_number(json_array_get(kept, i), "bytes") : 0;
    free(there);
    return bytes;
}

static void assert_dominators(const json_t *report)
{
    const json_t *kept = part(report, "kept"), *edges = part(report, "edges");
    const int64_t all = reached_without(kept, edges, SIZE_MAX);
    int64_t sum = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(kept, i, entry)
    {
        assert_int_equal(json_number(entry, "id"), i);
        assert_int_equal(json_number(entry, "retained_bytes"), all - reached_without(kept, edges, i));
        sum += json_number(entry, "bytes");
    }
    assert_int_equal(sum, all);
    assert_int_equal(sum, json_number(report, "keeps.search.bytes"));
}

/* Each block counts in one edge. */
static void assert_edges(const json_t *report)
{
    int64_t blocks = 0;
    size_t i;
    json_t *edge;
    json_array_foreach(part(report, "edges"), i, edge) blocks += json_number(edge, "blocks");
    assert_int_equal(blocks, json_number(report, "keeps.search.blocks"));
}

static void test_graph(void **state)
{
    int variables = 0, pointers = 0, targets = 0;
    for (int seed = 1; seed <= 8; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        struct recording recording = record_keeps("graph", text, seed == 1 ? "block-table=1" : NULL);
        static struct graph graph;
        read_graph(&graph, recording.run.out);
        variables += assert_keepers(recording.report, &graph, "variable");
        pointers += assert_keepers(recording.report, &graph, "pointer");
        targets += assert_keepers(recording.report, &graph, "target");
        assert_dominators(recording.report);
        assert_edges(recording.report);
        recording_free(&recording);
    }
    assert_true(variables > 10 && pointers > 10 && targets > 10);
}

/* ---- mappings ---- */

/* A large block is mapped by itself, and may lie in one mapping with thread-local data and with stacks. */
static void test_beside(void **state)
{
    struct recording recording = record_keeps("beside", NULL, NULL);
    const json_t *keepers = part(recording.report, "keepers");
    int64_t cached = 0;
    int local, stack;
    size_t i;
    json_t *entry;
    assert_int_equal(sscanf(recording.run.out, "local %d stack %d", &local, &stack), 2);
    json_array_foreach(part(recording.report, "kept"), i, entry)
    {
        const char *function = function_of(recording.report, json_number(entry, "context"));
        const json_t *keeper = with_id(keepers, json_number(entry, "keeper"));
        if (function && !strcmp(function, "of_lost"))
            fail_msg("a lost block is kept by %s (local %d stack %d)", json_text(keeper, "name"), local, stack);
        if (!function || strcmp(function, "of_cache"))
            continue;
        if (!json_text(keeper, "variable") || strncmp(json_text(keeper, "variable"), "cache", 5) ||
            strcmp(json_text(keeper, "kind"), "pointer"))
            fail_msg("of_cache: kept by %s (local %d stack %d)", json_text(keeper, "name"), local, stack);
        cached += json_number(entry, "blocks");
    }
    assert_int_equal(cached, 40);
    recording_free(&recording);
}

/* ---- a process that goes on ---- */

struct staying {
    char *directory, *until, *file;
    struct run_process process;
};

static struct staying stay_in(const char *program, const char *argument, const char *more_options)
{
    struct staying staying = {.directory = make_directory()};
    char options[600], preload[600], text[4096];
    staying.until = join_path(staying.directory, "until");
    staying.file = join_path(staying.directory, "moment.hwprof");
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s/p.hwprof%s", staying.directory, more_options);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const argv[] = {need_program(program), argument, staying.until, NULL};
    const char *environment[] = {options, preload, NULL};
    staying.process = run_start(argv, &(struct run_options){.environment = environment});
    for (int i = 0; i < 6000; i++) {
        const ssize_t got = pread(staying.process.out, text, sizeof text - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        if (strstr(text, "ready"))
            return staying;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("the program is not ready");
    return staying;
}

static struct staying stay(const char *more_options)
{
    return stay_in("keeps", "kinds", more_options);
}

/* The program ends. */
static void let_go(struct staying *staying)
{
    const int file = open(staying->until, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
    struct run_result result = run_finish(&staying->process, 60);
    assert_exit(&result, 0, result.out);
    run_result_free(&result);
}

static void finish(struct staying *staying)
{
    let_go(staying);
    remove_directory(staying->directory);
    free(staying->until);
    free(staying->file);
}

static struct run_result of_process(const char *verb, const struct staying *staying, const char *option)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)staying->process.pid);
    const char *const argv[] = {verb, number, "-f", "-o", staying->file, option, NULL};
    return heapwise(argv, NULL);
}

static void assert_moment(const struct staying *staying)
{
    json_t *report = json_of((const char *const[]){"report", "--json", staying->file, NULL}, 0);
    assert_kinds(report);
    size_t i, named = 0;
    json_t *entry;
    json_array_foreach(part(report, "keepers"), i, entry) if (json_text(entry, "thread")) named +=
        !strcmp(json_text(entry, "thread"), "keeps");
    assert_true(named > 0);
    json_decref(report);
}

/* Twice, so that the first search has left nothing behind. */
static void test_process(void **state)
{
    struct staying staying = stay("");
    for (int i = 0; i < 2; i++) {
        struct run_result result = of_process("leaks", &staying, "--keeps");
        assert_exit(&result, 0, result.err);
        assert_contains(result.out, "Definitely lost");
        assert_contains(result.out, "list (keeps)");
        run_result_free(&result);
        assert_moment(&staying);
    }
    struct run_result result = of_process("leaks", &staying, NULL);
    assert_exit(&result, 0, result.err);
    assert_null(strstr(result.out, "list (keeps)"));
    run_result_free(&result);
    result = of_process("dump", &staying, NULL); /* it is not recorded with --keeps */
    assert_exit(&result, 0, result.err);
    run_result_free(&result);
    json_t *report = json_of((const char *const[]){"report", "--json", staying.file, NULL}, 0);
    assert_true(json_is_null(json_object_get(report, "keeps")));
    json_decref(report);
    finish(&staying);
}

/* Who keeps blocks can be found from outside, what is in them cannot: the command says so, unless the process writes
 * the dump itself. */
static void test_dump_without_contents(void **state)
{
    static const char *const options[] = {":contents=1:dump-signal=0", ":pinned=1:dump-signal=0", ":contents=1", ":pinned=1", ""};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct staying staying = stay(options[i]);
        struct run_result result = of_process("dump", &staying, NULL);
        assert_exit(&result, 0, result.err);
        if (!strstr(options[i], "dump-signal"))
            assert_null(strstr(result.err, "--contents"));
        else
            assert_contains(result.err, "(--contents) and what keeps pages resident (--pinned) are not in the dump");
        run_result_free(&result);
        finish(&staying);
    }
}

static void test_dump(void **state)
{
    struct staying staying = stay(":leaks=1:keeps=1");
    struct run_result result = of_process("dump", &staying, NULL);
    assert_exit(&result, 0, result.err);
    assert_string_equal(result.err, "");
    run_result_free(&result);
    assert_moment(&staying);
    finish(&staying);
}

/* ---- who keeps more than before ---- */

/* What a keeper has of the place with SOURCE on its stacks; a row of `keepers`. */
static const json_t *keeper_of(const json_t *diff, const char *source, const char *name)
{
    const json_t *place;
    size_t i, k;
    const json_t *keeper;
    json_array_foreach(json_object_get(diff, "places"), i, place)
    {
        if (!strstr(stack_line(place), source))
            continue;
        json_array_foreach(json_object_get(place, "keepers"), k,
                           keeper) if (strstr(json_text(keeper, "name"), name)) return keeper;
    }
    fail_msg("%s keeps nothing of %s", name, source);
    return NULL;
}

static void assert_keeper(const json_t *diff, const char *source, const char *name, int64_t old_blocks,
                          int64_t new_blocks, int64_t size)
{
    const json_t *keeper = keeper_of(diff, source, name);
    assert_int_equal(json_number(keeper, "old_blocks"), old_blocks);
    assert_int_equal(json_number(keeper, "new_blocks"), new_blocks);
    assert_int_equal(json_number(keeper, "old_bytes"), old_blocks * size);
    assert_int_equal(json_number(keeper, "new_bytes"), new_blocks * size);
}

/* Two runs, in which threads have other numbers; and one that has no keepers. */
static void test_diff_of_runs(void **state)
{
    const char *const few[] = {need_program("keepers_grow"), "20", NULL}, *const many[] = {few[0], "50", NULL};
    const struct record_options record = {.arguments = with_keeps};
    struct recording old = record_and_load(few, &record), new = record_and_load(many, &record);
    struct recording without = record_and_load(few, &(struct record_options){.may_fail = false});
    const char *const argv[] = {"diff", "--json", "--sort", "leaked", old.files[0], new.files[0], NULL};
    json_t *diff = json_of(argv, 0);
    assert_keeper(diff, "make_all", "growing", 20, 50, 1000);
    assert_keeper(diff, "make_all", "falling", 40, 25, 1000);
    assert_keeper(diff, "make_all", "constant", 10, 10, 1000);
    assert_keeper(diff, "work", "tail of threads \"worker\"", 40, 100, 100);
    assert_keeper(diff, "make_new", "appearing", 0, 5, 200);
    assert_true(json_is_null(json_object_get(keeper_of(diff, "make_new", "appearing"), "old_keeper")));
    json_decref(diff);
    const char *const text[] = {"diff", "--no-pager", "--sort", "leaked", old.files[0], new.files[0], NULL};
    struct run_result result = heapwise(text, NULL);
    assert_exit(&result, 0, "diff");
    assert_contains(result.out, "growing (keepers_grow) 19.5 KiB");
    assert_contains(result.out, "falling (keepers_grow) 39.1 KiB");
    assert_null(strstr(result.out, "constant"));
    run_result_free(&result);
    const char *const one[] = {"diff", "--json", "--sort", "leaked", without.files[0], new.files[0], NULL};
    diff = json_of(one, 0);
    const json_t *keeper = keeper_of(diff, "make_all", "growing");
    assert_true(json_is_null(json_object_get(keeper, "old_bytes")));
    assert_int_equal(json_number(keeper, "new_bytes"), 50000);
    assert_contains(json_string_value(json_array_get(json_object_get(diff, "notes"), 0)),
                    "Only the new profile says who keeps blocks");
    json_decref(diff);
    recording_free(&old);
    recording_free(&new);
    recording_free(&without);
}

/* Two moments of one run: a dump, and its end. */
static void test_diff_of_moments(void **state)
{
    struct staying staying = stay_in("keepers_grow", "30", ":leaks=1:keeps=1");
    struct run_result result = of_process("dump", &staying, NULL);
    assert_exit(&result, 0, result.err);
    run_result_free(&result);
    let_go(&staying);
    char *end = join_path(staying.directory, "p.hwprof");
    json_t *diff = json_of((const char *const[]){"diff", "--json", "--sort", "leaked", staying.file, end, NULL}, 0);
    assert_int_equal(json_array_size(json_object_get(diff, "places")), 1);
    const json_t *keeper = keeper_of(diff, "main", "growing");
    assert_int_equal(json_number(keeper, "old_bytes"), 0);
    assert_int_equal(json_number(keeper, "new_bytes"), 21000);
    json_decref(diff);
    remove_directory(staying.directory);
    free(staying.until);
    free(staying.file);
    free(end);
}

/* ---- reports ---- */

/* The one keeper of what a function allocated: its name begins like this, and it is declared to point to TYPE. */
struct typed {
    const char *function, *name, *type; /* NULL: not known */
};

static void assert_typed(const json_t *report, const struct typed *expected)
{
    const json_t *keepers = part(report, "keepers");
    size_t i, found = 0;
    json_t *entry;
    json_array_foreach(part(report, "kept"), i, entry)
    {
        const char *function = function_of(report, json_number(entry, "context"));
        const size_t length = strlen(expected->function);
        if (!function || strncmp(function, expected->function, length) || (function[length] && function[length] != '('))
            continue;
        const json_t *keeper = with_id(keepers, json_number(entry, "keeper"));
        const char *name = json_text(keeper, "name"), *type = json_string_value(json_object_get(keeper, "type"));
        assert_non_null(json_object_get(keeper, "type"));
        if (strncmp(name, expected->name, strlen(expected->name)))
            fail_msg("%s: kept by %s", function, name);
        if (!type != !expected->type || (type && strcmp(type, expected->type)))
            fail_msg("%s: %s points to %s", function, name, type ? type : "nothing");
        found++;
    }
    if (found != 1)
        fail_msg("%s: %zu keepers", expected->function, found);
}

/* Variables of functions are called so, not "remembered.0". */
static void assert_variable_of_function(const json_t *report)
{
    size_t at, found = 0;
    json_t *keeper;
    json_array_foreach(part(report, "keepers"), at, keeper)
    {
        const char *variable = json_text(keeper, "variable");
        if (!variable || !strstr(variable, "remembered"))
            continue;
        assert_string_equal(variable, "remember_in_function()::remembered");
        found++;
    }
    assert_int_not_equal(found, 0);
}

/* Types of C++ have their namespaces and classes. */
static void test_types(void **state)
{
    static const struct typed types[] = {
        {"of_class", "server::cache", "server::Cache"},
        {"of_nested", "server::entry", "server::Cache::Entry"},
        {"of_base", "server::shape", "server::Shape"},
        {"of_template", "pairs", "Pair<int, server::Cache>"},
        {"of_hidden", "hidden", "Hidden"},
        {"of_text", "text", "char"},
        {"of_typedef", "number", "server::Number"},
        {"of_anything", "anything", NULL},
    };
    const char *const argv[] = {need_program("keeps_types"), NULL};
    const struct record_options options = {.arguments = with_keeps};
    struct recording recording = record_and_load(argv, &options);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_typed(recording.report, &types[i]);
    recording_free(&recording);
}

/* Fields and types, by debug information. */
static const struct typed fields[] = {{"of_field", "service.table[3].head", "struct entry"},
                                      {"of_union", "service.pointer", NULL},
                                      {"of_matrix", "service.matrix[1][2]", "cell"},
                                      {"of_function", "remember_in_function()::remembered", "union value *"},
                                      {"of_table", "table", "struct node"},
                                      {"of_local_field", "local_service.last of main thread", NULL}};

static void test_reports(void **state)
{
    struct recording recording = record_keeps("kinds", NULL, NULL);
    const char *file = recording.files[0];
    struct run_result result = heapwise((const char *const[]){"report", "--section", "keeps", file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out, "list (keeps)"));
    if (!strstr(result.out, "what owner_one and owner_two point to") &&
        !strstr(result.out, "what owner_two and owner_one point to"))
        fail_msg("%s", result.out);
    /* No line says the same as another one: places, by what is printed of them. */
    assert_non_null(strstr(result.out, "500 B            2  what owner_"));
    const char *target = strstr(strstr(result.out, "what owner_"), "of_target");
    assert_non_null(target);
    assert_null(strstr(target + 1, "200 B  of_target"));
    assert_null(strstr(result.out, "in 127 more places"));
    const char *many = strstr(result.out, "20 blocks that shared_");
    assert_non_null(many);
    assert_null(strstr(many + 1, "20 blocks that"));
    assert_null(strstr(result.out, "what shared_"));
    assert_non_null(strstr(result.out, "registers of thread "));
    assert_null(strstr(result.out, " (keeps) (keeps)"));
    /* By names: a thread-local variable, and the function that holds a block. */
    assert_non_null(strstr(result.out, "thread_local_variable of main thread"));
    assert_non_null(strstr(result.out, "main in main thread"));
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        assert_typed(recording.report, &fields[f]);
    assert_variable_of_function(recording.report);
    const char *typed = strstr(result.out, "service.table[3].head (keeps) ");
    const char *type = typed ? strstr(typed, " struct entry\n") : NULL;
    assert_true(type && type < strchr(typed, '\n')); /* an arrow is between them */
    assert_null(strstr(result.out, "void"));
    assert_non_null(strstr(result.out, "   7.9 KiB      7.9 KiB  of_tree")); /* recursion to any depth is one row */
    run_result_free(&result);
    result = heapwise((const char *const[]){"report", "--section", "keeps", "--function", "of_tree", file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out, "shortest way: tree (keeps)"));
    assert_null(strstr(result.out, "of_ring"));
    run_result_free(&result);
    char *database = join_path(recording.directory, "keeps.sqlite");
    result = heapwise((const char *const[]){"export", "--format", "sqlite", "-o", database, file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    free(database);
    /* What was symbolised has the names of variables without the program's file. */
    char *symbolised = join_path(recording.directory, "symbolised.hwprof");
    result = heapwise((const char *const[]){"merge", "-o", symbolised, file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    json_t *merged = json_of((const char *const[]){"report", "--json", symbolised, NULL}, 0);
    assert_true(json_is_null(json_object_get(merged, "keeps"))); /* left out of sums */
    json_decref(merged);
    free(symbolised);
    recording_free(&recording);
}

static void test_symbolised(void **state)
{
    const char *const argv[] = {need_program("keeps"), "kinds", NULL};
    static const char *const arguments[] = {"--keeps", "--symbolize", NULL};
    const struct record_options options = {.arguments = arguments};
    struct recording recording = record_and_load(argv, &options);
    char sysroot[512];
    snprintf(sysroot, sizeof sysroot, "--sysroot=%s", recording.directory);
    json_t *report = json_of((const char *const[]){"report", "--json", sysroot, recording.files[0], NULL}, 0);
    assert_kinds(report);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) /* without the program's file */
        assert_typed(report, &fields[f]);
    assert_variable_of_function(report);
    json_decref(report);
    recording_free(&recording);
}

/* Records with GIB of address space, in which the program ends: did the search for who keeps blocks find no memory? */
static bool had_no_memory_for_keeps(const char *file, int gib)
{
    char command[8400];
    snprintf(command, sizeof command, "ulimit -v %llu && exec '%s' record -q -f --keeps -o '%s' -- '%s' kinds",
             (unsigned long long)gib << 20, heapwise_path(), file, need_program("keeps"));
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct run_result result = run(argv, &(struct run_options){.timeout_s = 60});
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    result = heapwise((const char *const[]){"report", file, NULL}, NULL);
    assert_exit(&result, 0, "report");
    const bool without = strstr(result.out, "who keeps blocks was not searched for") != NULL;
    run_result_free(&result);
    return without;
}

/* There is memory for the search for lost blocks, but not for who keeps the others, which takes 12 GiB of addresses:
 * the program ends, and the report says so. Where that begins depends on the sizes of all tables. */
static void test_no_memory(void **state)
{
    if (TEST_SANITIZED)
        SKIP("the tools have AddressSanitizer's allocator");
    char *directory = make_directory(), *file = join_path(directory, "keeps.hwprof");
    bool found = false;
    for (int gib = 400; gib <= 900 && !found; gib += 9)
        found = had_no_memory_for_keeps(file, gib);
    assert_true(found);
    remove_directory(directory);
    free(file);
}

static void test_not_recorded(void **state)
{
    const char *const argv[] = {need_program("keeps"), "kinds", NULL};
    static const char *const arguments[] = {"--leaks", NULL};
    const struct record_options options = {.arguments = arguments};
    struct recording recording = record_and_load(argv, &options);
    assert_true(json_is_null(json_object_get(recording.report, "keeps")));
    struct run_result result =
        heapwise((const char *const[]){"report", "--section", "keeps", recording.files[0], NULL}, NULL);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out, "record --keeps"));
    run_result_free(&result);
    recording_free(&recording);
    result = heapwise((const char *const[]){"record", "--keeps", "--sample-bytes=1M", "true", NULL}, NULL);
    assert_int_equal(result.code, 125);
    assert_non_null(strstr(result.err, "--keeps"));
    run_result_free(&result);
}

TEST_LIST(cmocka_unit_test(test_kinds), cmocka_unit_test(test_graph), cmocka_unit_test(test_beside),
          cmocka_unit_test(test_process), cmocka_unit_test(test_dump), cmocka_unit_test(test_dump_without_contents),
          cmocka_unit_test(test_diff_of_runs), cmocka_unit_test(test_diff_of_moments), cmocka_unit_test(test_no_memory),
          cmocka_unit_test(test_types), cmocka_unit_test(test_reports), cmocka_unit_test(test_symbolised),
          cmocka_unit_test(test_not_recorded))
