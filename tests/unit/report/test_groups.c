/* test_groups.c - sums by group, callers and callees, and trees of calls, against sums that are made stack by stack, on
 * random trees with much recursion and inlining. */
#include <stdio.h>

#include "report_check.h"

#include "report/view/frame_roles.h"
#include "report/view/groups.h"

#include <jansson.h>

/* ---- random profiles ---- */

#define FUNCTIONS 7
#define LOCATIONS 24
#define NODES     160
#define CONTEXTS  90
#define DEEPEST   500

static const char *const names[FUNCTIONS] = {"alpha",           "beta", "gamma", "delta", "ns::epsilon(int)",
                                             "zeta<int>(char)", "eta"};
static const char *const files[] = {"/src/a.c", "/src/b.c", NULL};

struct random_profile {
    struct hw_profile profile;
    struct hw_view view;
    struct hw_view_module modules[2];
    struct hw_frame frames[LOCATIONS][3];
    struct hw_view_location locations[LOCATIONS];
    struct hw_view_node nodes[NODES];
    struct hw_view_context contexts[CONTEXTS];
    uint64_t whole;
};

static uint32_t random_state;

static uint32_t below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(random_state >> 8) * limit >> 24);
}

static struct random_profile *make_random(uint32_t seed)
{
    struct random_profile *made = calloc(1, sizeof *made);
    random_state = seed;
    made->modules[0] = (struct hw_view_module){.path = "/opt/one", .name = "one", .kind = HW_MODULE_PROGRAM};
    made->modules[1] = (struct hw_view_module){.path = "/opt/two", .name = "two", .kind = HW_MODULE_PROGRAM};
    for (uint32_t i = 0; i < LOCATIONS; i++) {
        const uint32_t count = 1 + below(3);
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t function = !k && i < FUNCTIONS ? i : below(FUNCTIONS + 1);
            made->frames[i][k] = (struct hw_frame){.function = function < FUNCTIONS ? names[function] : NULL,
                                                   .file = files[below(3)],
                                                   .line = 1 + below(3),
                                                   .inlined = k + 1 < count};
        }
        made->locations[i] =
            (struct hw_view_location){.address = 0x1000 + i, .module = below(2), .frames = {made->frames[i], count}};
    }
    for (uint32_t i = 1; i < NODES; i++) /* deep rather than broad */
        made->nodes[i] = (struct hw_view_node){i < 8 || !below(5) ? below(i) : i - 1 - below(3), below(LOCATIONS)};
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        made->contexts[i].index = i;
        made->contexts[i].sum.id = i;
        made->contexts[i].sum.leaf = i ? 1 + below(NODES - 1) : 0; /* one without a stack */
        made->contexts[i].sum.allocations = 1 + below(5);
        made->contexts[i].sum.bytes = 1 + below(4000);
        made->whole += made->contexts[i].sum.bytes;
    }
    made->view = (struct hw_view){.profile = &made->profile,
                                  .modules = made->modules,
                                  .module_count = 2,
                                  .locations = made->locations,
                                  .location_count = LOCATIONS,
                                  .nodes = made->nodes,
                                  .node_count = NODES,
                                  .contexts = made->contexts,
                                  .context_count = CONTEXTS};
    made->view.totals.bytes = made->whole;
    return made;
}

/* ---- the same by hand: a stack is a list of names of groups, innermost first ---- */

struct list {
    char name[DEEPEST][64];
    size_t count;
};

static void name_of(const struct random_profile *made, uint32_t location, uint32_t frame, enum hw_by by, char *name)
{
    const struct hw_frame *symbol = &made->frames[location][frame];
    const uint32_t module = made->locations[location].module;
    if (by == HW_BY_FUNCTION && symbol->function)
        snprintf(name, 64, "%s in %u", symbol->function, (unsigned)module);
    else if (by == HW_BY_FUNCTION)
        snprintf(name, 64, "location %u", (unsigned)location);
    else if (by == HW_BY_MODULE || !symbol->file)
        snprintf(name, 64, "module %u", (unsigned)module);
    else if (by == HW_BY_FILE)
        snprintf(name, 64, "%s", symbol->file);
    else
        snprintf(name, 64, "%s:%u", symbol->file, (unsigned)symbol->line);
}

static void list_stack(const struct random_profile *made, const struct hw_view_context *context, enum hw_by by,
                       struct list *list)
{
    list->count = 0;
    for (uint32_t node = context->sum.leaf; node; node = made->nodes[node].parent) {
        const uint32_t location = made->nodes[node].location;
        for (uint32_t k = 0; k < made->locations[location].frames.count; k++) {
            assert_true(list->count < DEEPEST);
            name_of(made, location, k, by, list->name[list->count++]);
        }
    }
}

static bool has(const struct list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->name[i], name))
            return true;
    return false;
}

static void group_sums(const struct random_profile *made, enum hw_by by, const char *name, uint64_t *self,
                       uint64_t *total)
{
    struct list list;
    *self = *total = 0;
    for (size_t i = 0; i < CONTEXTS; i++) {
        list_stack(made, &made->contexts[i], by, &list);
        *self += list.count && !strcmp(list.name[0], name) ? made->contexts[i].sum.bytes : 0;
        *total += has(&list, name) ? made->contexts[i].sum.bytes : 0;
    }
}

static void test_groups(void **state)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct random_profile *made = make_random(seed);
        for (enum hw_by by = HW_BY_FUNCTION; by <= HW_BY_MODULE; by++) {
            struct hw_groups groups;
            struct list seen = {.count = 0}, list;
            uint64_t all = 0, without = made->contexts[0].sum.bytes;
            assert_true(hw_groups_make(&groups, &made->view, by, HW_MEASURE_BYTES, true));
            for (size_t i = 0; i < groups.count; i++) {
                uint64_t self, total;
                name_of(made, groups.group[i].location, groups.group[i].frame, by, seen.name[seen.count]);
                group_sums(made, by, seen.name[seen.count++], &self, &total);
                assert_int_equal(groups.group[i].self, self);
                assert_int_equal(groups.group[i].total, total);
                assert_true(!i || groups.group[i - 1].total >= total);
                all += self;
            }
            assert_int_equal(groups.none, without);
            assert_int_equal(all + without, made->whole);
            assert_int_equal(groups.total, made->whole);
            for (size_t i = 0; i < CONTEXTS; i++) { /* every group is there, once */
                list_stack(made, &made->contexts[i], by, &list);
                for (size_t k = 0; k < list.count; k++)
                    assert_true(has(&seen, list.name[k]));
            }
            for (size_t i = 1; i < seen.count; i++)
                for (size_t k = 0; k < i; k++)
                    assert_string_not_equal(seen.name[i], seen.name[k]);
            hw_groups_free(&groups);
        }
        free(made);
    }
}

/* ---- callers and callees ---- */

static uint64_t value_of(const struct random_profile *made, const struct hw_group *group, size_t count,
                         const char *name)
{
    char own[64];
    for (size_t i = 0; i < count; i++) {
        name_of(made, group[i].location, group[i].frame, HW_BY_FUNCTION, own);
        if (!strcmp(own, name))
            return group[i].total;
    }
    return 0;
}

/* FUNCTION is in both modules: they are one here. */
static bool is_wanted(const char *name, const char *function)
{
    return !strncmp(name, function, strlen(function)) && !strncmp(name + strlen(function), " in ", 4);
}

static void check_sandwich(const struct random_profile *made, const char *function)
{
    struct hw_sandwich sandwich;
    struct hw_error error = {""};
    struct list list, callers = {.count = 0}, callees = {.count = 0};
    uint64_t caller_sum[CONTEXTS] = {0}, callee_sum[CONTEXTS] = {0}, total = 0, self = 0, uncalled = 0;
    for (size_t i = 0; i < CONTEXTS; i++) {
        const uint64_t value = made->contexts[i].sum.bytes;
        size_t first = DEEPEST, last = 0;
        list_stack(made, &made->contexts[i], HW_BY_FUNCTION, &list);
        for (size_t k = 0; k < list.count; k++)
            if (is_wanted(list.name[k], function)) {
                first = first == DEEPEST ? k : first;
                last = k;
            }
        if (first == DEEPEST)
            continue;
        total += value;
        if (first == 0) {
            self += value;
        } else {
            strcpy(callees.name[callees.count], list.name[first - 1]);
            callee_sum[callees.count++] = value;
        }
        if (last + 1 == list.count) {
            uncalled += value;
        } else {
            strcpy(callers.name[callers.count], list.name[last + 1]);
            caller_sum[callers.count++] = value;
        }
    }
    if (!hw_sandwich_make(&sandwich, &made->view, function, HW_MEASURE_BYTES, true, &error))
        fail_msg("%s", error.message);
    assert_int_equal(sandwich.function.total, total);
    assert_int_equal(sandwich.function.self, self);
    assert_int_equal(sandwich.uncalled, uncalled);
    uint64_t called = 0, calls = 0;
    for (size_t i = 0; i < sandwich.caller_count; i++)
        called += sandwich.callers[i].total;
    for (size_t i = 0; i < sandwich.callee_count; i++)
        calls += sandwich.callees[i].total;
    assert_int_equal(called + uncalled, total);
    assert_int_equal(calls + self, total);
    for (size_t i = 0; i < callers.count; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < callers.count; k++)
            sum += strcmp(callers.name[i], callers.name[k]) ? 0 : caller_sum[k];
        assert_int_equal(value_of(made, sandwich.callers, sandwich.caller_count, callers.name[i]), sum);
    }
    for (size_t i = 0; i < callees.count; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < callees.count; k++)
            sum += strcmp(callees.name[i], callees.name[k]) ? 0 : callee_sum[k];
        assert_int_equal(value_of(made, sandwich.callees, sandwich.callee_count, callees.name[i]), sum);
    }
    hw_sandwich_free(&sandwich);
}

static void test_sandwich(void **state)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct random_profile *made = make_random(seed);
        for (size_t i = 0; i < FUNCTIONS; i++)
            check_sandwich(made, names[i]);
        free(made);
    }
}

static void test_names(void **state)
{
    static const struct {
        const char *name, *problem; /* NULL: it is found */
    } rows[] = {{"alpha", NULL},
                {"ns::epsilon(int)", NULL},
                {"ns::epsilon", NULL},
                {"epsilon", NULL},
                {"zeta<int>", NULL},
                {"alfa", "profile: no place has 'alfa' on its stack; nearest: alpha"},
                {"epsilom", "profile: no place has 'epsilom' on its stack; nearest: ns::epsilon(int)"},
                {"ALP", "profile: no place has 'ALP' on its stack; nearest: alpha"},
                {"something else",
                 "profile: no place has 'something else' on its stack; write the name as the report shows it"},
                {"", "profile: no place has '' on its stack; write the name as the report shows it"}};
    struct random_profile *made = make_random(1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hw_sandwich sandwich;
        struct hw_error error = {""};
        const bool found = hw_sandwich_make(&sandwich, &made->view, rows[i].name, HW_MEASURE_BYTES, true, &error);
        assert_int_equal(found, !rows[i].problem);
        assert_string_equal(error.message, rows[i].problem ? rows[i].problem : "");
        if (found)
            hw_sandwich_free(&sandwich);
    }
    free(made);
}

/* ---- trees ---- */

/* The stack without detours, outermost first; for BOTTOM_UP innermost first. */
static void path_of(const struct random_profile *made, const struct hw_view_context *context, bool bottom_up,
                    struct list *path)
{
    struct list list;
    list_stack(made, context, HW_BY_FUNCTION, &list);
    path->count = 0;
    for (size_t i = list.count; i-- > 0;) {
        for (size_t k = 0; k < path->count; k++)
            if (!strcmp(path->name[k], list.name[i]))
                path->count = k;
        strcpy(path->name[path->count++], list.name[i]);
    }
    for (size_t i = 0; bottom_up && i < path->count / 2; i++) {
        char swapped[64];
        strcpy(swapped, path->name[i]);
        strcpy(path->name[i], path->name[path->count - 1 - i]);
        strcpy(path->name[path->count - 1 - i], swapped);
    }
}

static void tree_path(const struct random_profile *made, const struct hw_tree *tree, uint32_t node, struct list *path)
{
    path->count = 0;
    for (uint32_t at = node; at; at = tree->node[at].parent)
        path->count++;
    size_t i = path->count;
    for (uint32_t at = node; at; at = tree->node[at].parent)
        name_of(made, tree->node[at].location, tree->node[at].frame, HW_BY_FUNCTION, path->name[--i]);
}

static bool begins(const struct list *list, const struct list *beginning)
{
    for (size_t i = 0; i < beginning->count; i++)
        if (i >= list->count || strcmp(list->name[i], beginning->name[i]))
            return false;
    return true;
}

static void check_tree(const struct random_profile *made, bool bottom_up, double least)
{
    struct hw_tree tree;
    struct list path, *own = malloc(CONTEXTS * sizeof *own);
    size_t prefixes = 0;
    for (size_t i = 0; i < CONTEXTS; i++)
        path_of(made, &made->contexts[i], bottom_up, &own[i]);
    assert_true(hw_tree_make(&tree, &made->view, HW_MEASURE_BYTES, bottom_up, least, true));
    assert_int_equal(tree.whole, made->whole);
    for (size_t i = 0; i < tree.child_count; i++) {
        const struct hw_tree_node *node = &tree.node[tree.child[i]];
        uint64_t total = 0, self = 0;
        tree_path(made, &tree, tree.child[i], &path);
        for (size_t k = 0; k < CONTEXTS; k++) {
            total += begins(&own[k], &path) ? made->contexts[k].sum.bytes : 0;
            self += begins(&own[k], &path) && own[k].count == path.count ? made->contexts[k].sum.bytes : 0;
        }
        assert_int_equal(node->total, total);
        assert_true((double)total >= least * (double)made->whole);
        if (!bottom_up)
            assert_int_equal(node->self, self);
        for (uint32_t k = 1; k < node->children; k++)
            assert_true(tree.node[tree.child[node->child + k - 1]].total >=
                        tree.node[tree.child[node->child + k]].total);
    }
    /* As many nodes as there are different beginnings with enough in them. */
    for (size_t i = 1; i < CONTEXTS; i++) {
        for (path = own[i]; path.count; path.count--) {
            bool earlier = false;
            uint64_t total = 0;
            for (size_t k = 1; k < CONTEXTS; k++) {
                if (!begins(&own[k], &path))
                    continue;
                earlier |= k < i;
                total += made->contexts[k].sum.bytes;
            }
            prefixes += !earlier && (double)total >= least * (double)made->whole;
        }
    }
    assert_int_equal(tree.child_count, prefixes);
    free(own);
    hw_tree_free(&tree);
}

static void test_trees(void **state)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        struct random_profile *made = make_random(seed);
        check_tree(made, false, 0);
        check_tree(made, true, 0);
        check_tree(made, false, 0.05);
        check_tree(made, true, 0.05);
        free(made);
    }
}

/* ---- folded: the sample of the report ---- */

static void test_headlines(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    const struct hw_view *view = reported.view;
    struct hw_groups groups;
    struct hw_view_stack stack = {0};
    assert_true(hw_groups_make(&groups, view, HW_BY_FUNCTION, HW_MEASURE_BYTES, false));
    assert_true(groups.count > 5);
    for (size_t i = 0; i < groups.count; i++) {
        const struct hw_view_location *location = &view->locations[groups.group[i].location];
        const char *name = location->frames.frame[groups.group[i].frame].function;
        uint64_t self = 0;
        for (size_t k = 0; k < view->context_count; k++) {
            assert_true(hw_view_stack(view, view->contexts[k].sum.leaf, &stack));
            const struct hw_view_frame *frame = stack.count ? &stack.frames[hw_stack_headline(&stack)] : NULL;
            if (frame && (name ? frame->symbol->function == name && frame->module == &view->modules[location->module]
                               : !frame->symbol->function && &view->locations[frame->location] == location))
                self += view->contexts[k].sum.bytes;
        }
        assert_int_equal(groups.group[i].self, self);
        assert_true(groups.group[i].total >= self);
        if (name) { /* what is inside of a headline, and what starts threads */
            assert_string_not_equal(name, "xmalloc");
            assert_string_not_equal(name, "strdup");
            assert_string_not_equal(name, "_start");
            assert_string_not_equal(name, "start_thread");
        }
    }
    hw_view_stack_free(&stack);
    hw_groups_free(&groups);
    assert_true(hw_groups_make(&groups, view, HW_BY_THREAD, HW_MEASURE_BYTES, false));
    assert_int_equal(groups.count, 3); /* main, worker, and generated code whose callers are not known */
    assert_true(groups.group[0].main);
    assert_string_equal(view->locations[groups.group[1].location].frames.frame[groups.group[1].frame].function,
                        "worker");
    hw_groups_free(&groups);
    assert_true(hw_groups_make(&groups, view, HW_BY_SIZE, HW_MEASURE_BYTES, false));
    uint64_t sum = 0;
    for (size_t i = 0; i < groups.count; i++) {
        sum += groups.group[i].total;
        assert_true(groups.group[i].size_most >= 16 && !(groups.group[i].size_most & (groups.group[i].size_most - 1)));
    }
    assert_int_equal(sum, hw_measure_total(view, HW_MEASURE_BYTES));
    hw_groups_free(&groups);
    close_sample(&reported);
}

/* ---- as text, and as JSON ---- */

static void test_text(void **state)
{
    const struct hw_sums all[] = {
        {.shape = HW_SUMS_TREE, .least = 0.001},
        {.shape = HW_SUMS_TREE, .least = 0, .bottom_up = true},
        {.shape = HW_SUMS_SANDWICH, .function = "parse_value"},
        {.shape = HW_SUMS_SANDWICH, .function = "xmalloc"},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_FUNCTION},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_FILE},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_LINE},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_MODULE},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_TYPE},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_THREAD},
        {.shape = HW_SUMS_GROUPS, .by = HW_BY_SIZE},
    };
    static const char *const expected[][2] = {
        {"  + main\n"
         "  55.6 MiB   77.7 %          -  | + parse_value ... recursing\n"
         "  55.6 MiB   77.7 %   55.6 MiB  | | new_node\n"
         "   3.9 MiB    5.5 %          -  | + plugin_entry\n"
         "   3.9 MiB    5.5 %    3.9 MiB  |   plugin_decode\n"
         "  12.0 MiB   16.8 %          -  + worker\n"
         "  12.0 MiB   16.8 %   12.0 MiB    demo::lexer",
         "Calls, top down: bytes live at the peak of the process"},
        {"new_node\n  55.6 MiB   77.7 %  | parse_value", "Calls, bottom up"},
        {"Called by\n  55.6 MiB    100 %  main", "  55.6 MiB    100 %  new_node"},
        {"Allocation wrappers", "Nothing of this is allocated in it"},
        {"parse_value\n", "new_node\n"},
        {"/src/demo/tree.c\n", "libplugin.so (no source known)\n"},
        {"/src/demo/tree.c:17\n", "self    share      total    share  source line"},
        {"parser\n", "libplugin.so\n"},
        {"(not known)\n", "heapwise cc"},
        {"the main thread\n", "worker\n"},
        {"over 32 B, up to 64 B\n", "over 2.0 KiB, up to 4.0 KiB\n"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (unsigned width = 60; width <= 100; width += 20) {
            struct reported reported = open_sample(report_sample(), true);
            const struct hw_report_options options = {.width = width, .sums = all[i]};
            char *text = report_string(hw_report_text, &reported, &options);
            for (size_t k = 0; k < 2; k++)
                if (!strstr(text, expected[i][k]) && width >= 80)
                    fail_msg("'%s' is not in\n%s", expected[i][k], text);
            if (widest_line(text) > width)
                fail_msg("a line of %zu columns:\n%s", widest_line(text), text);
            free(text);
            close_sample(&reported);
        }
}

static void test_json(void **state)
{
    for (enum hw_by by = 0; by < HW_BYS; by++) {
        struct reported reported = open_sample(report_sample(), true);
        const struct hw_report_options options = {.sums = {.shape = HW_SUMS_GROUPS, .by = by}};
        char *text = report_string(hw_report_json, &reported, &options);
        json_t *report = json_loads(text, 0, NULL), *groups = json_object_get(report, "groups");
        json_t *rows = json_object_get(groups, "rows");
        assert_string_equal(json_string_value(json_object_get(groups, "by")), hw_by_keys[by].key);
        assert_string_equal(json_string_value(json_object_get(groups, "value")), "peak");
        assert_string_equal(json_string_value(json_object_get(groups, "unit")), "bytes");
        assert_true(json_array_size(rows) > 0);
        json_int_t sum = json_integer_value(json_object_get(groups, "without_stack"));
        for (size_t i = 0; i < json_array_size(rows); i++)
            sum += json_integer_value(
                json_object_get(json_array_get(rows, i), hw_by_keys[by].of_frames ? "self" : "total"));
        assert_int_equal(sum, json_integer_value(json_object_get(groups, "whole")));
        assert_null(json_object_get(report, "contexts"));
        json_decref(report);
        free(text);
        close_sample(&reported);
    }
}

static void test_unknown_values(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    const struct hw_report_options options = {
        .width = 80, .sums = {.shape = HW_SUMS_GROUPS, .chosen = true, .measure = HW_MEASURE_ACCESSES}};
    struct hw_error error = {""};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_false(hw_report_text(reported.view, &options, stream, &error));
    assert_non_null(strstr(error.message, "this profile has no 'accesses': accesses were not counted"));
    fclose(stream);
    assert_int_equal(size, 0);
    free(text);
    text = report_string(hw_report_json, &reported, &options);
    json_t *report = json_loads(text, 0, NULL), *groups = json_object_get(report, "groups");
    assert_true(json_is_null(json_object_get(groups, "rows")));
    assert_true(json_is_null(json_object_get(groups, "whole")));
    assert_string_equal(json_string_value(json_object_get(groups, "unknown")),
                        "accesses were not counted (heapwise cc)");
    json_decref(report);
    free(text);
    close_sample(&reported);
}

TEST_LIST(cmocka_unit_test(test_groups), cmocka_unit_test(test_sandwich), cmocka_unit_test(test_names),
          cmocka_unit_test(test_trees), cmocka_unit_test(test_headlines), cmocka_unit_test(test_text),
          cmocka_unit_test(test_json), cmocka_unit_test(test_unknown_values))
