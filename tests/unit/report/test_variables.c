/* test_variables.c - which variables are hot and cold, of views made by hand: names, shared granules, limits of counts,
 * samples. */
#include "support/check.h"

#include <string.h>

#include "report/export/symbol_order.h"
#include "report/export/variables.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Sorted by address, as hw_data has them. */
static const struct hw_data_symbol symbols[] = {
    {0x1000, 8, "hot", "hot"},
    {0x1008, 4, "left", "left"},
    {0x100c, 4, "right", "right"},
    {0x1010, 4096, "big", "big"},
    {0x2010, 8, "calls", "work.calls"},
    {0x2018, 8, "table", "work.table.llvm.123"},
    {0x2020, 8, "cache.0", "cache.0"},
    {0x2028, 8, "ns::value", "_ZN2ns5valueE"},
    {0x2030, 8, "a name: with # characters", NULL},
    {0x2038, 8, "limited", "limited"},
    {0x2040, 8, "both", "both"},
    {0x2048, 64, "threads", "threads"},
};
/* Another module: its `both` is used. */
static const struct hw_data_symbol others[] = {{0x1000, 8, "both", "both"}, {0x1008, 8, "away", "away"}};

static struct hw_view_global globals[] = {
    {.symbols = &symbols[0], .symbol_count = 1, .reads = 1000000},
    {.symbols = &symbols[1], .symbol_count = 2, .reads = 500000},
    {.symbols = &symbols[2], .symbol_count = 2, .writes = 300000}, /* the end of `right`, the beginning of `big` */
    {.symbols = &symbols[4], .symbol_count = 1, .reads = 3},
    {.symbols = &symbols[9], .symbol_count = 1, .writes = 10, .saturated = 1},
    {.symbols = &symbols[11], .symbol_count = 1, .reads = 1000000, .writes = 20000, .shared_written = 2},
    {.module = 1, .symbols = others, .symbol_count = 1, .unsplit = 700000},
};

static struct made {
    struct hw_view_module modules[2];
    struct hw_data data[2];
    struct hw_profile profile;
    struct hw_view view;
} made;

static const struct hw_view *make_view(bool counted)
{
    made = (struct made){
        .modules = {{.path = "/bin/program", .name = "program", .flags = HW_MAP_MAIN, .counting = HW_COUNTING_YES},
                    {.path = "/lib/other.so", .name = "other.so", .counting = HW_COUNTING_YES}},
        .data = {{.symbol = symbols, .symbol_count = COUNT(symbols)},
                 {.symbol = others, .symbol_count = COUNT(others)}},
        .profile = {.access_counted = counted, .access_info.granule = 8},
        .view = {.global_reads = 4000000}};
    made.view.profile = &made.profile;
    made.view.modules = made.modules;
    made.view.module_count = 2;
    made.view.data = made.data;
    made.view.globals = globals;
    made.view.global_count = COUNT(globals);
    return &made.view;
}

static struct hw_variables variables_of(const struct hw_view *view, bool for_llvm)
{
    struct hw_variables variables;
    assert_true(hw_variables_make(&variables, view, (const bool[]){true, true}, for_llvm));
    assert_true(variables.known);
    return variables;
}

static const struct hw_variable *find(const struct hw_variables *variables, const char *name)
{
    for (size_t i = 0; i < variables->count; i++)
        if (variables->variable[i].name_size == strlen(name) &&
            !memcmp(variables->variable[i].name, name, strlen(name)))
            return &variables->variable[i];
    return NULL;
}

static void assert_use(const struct hw_variables *variables, const char *name, enum hw_llvm_use use, uint64_t accesses)
{
    const struct hw_variable *variable = find(variables, name);
    if (!variable)
        fail_msg("%s is missing", name);
    if (variable->use != use || variable->accesses != accesses)
        fail_msg("%s: use %d with %llu accesses", name, variable->use, (unsigned long long)variable->accesses);
}

static void test_uses(void **state)
{
    struct hw_variables variables = variables_of(make_view(true), true);
    assert_use(&variables, "hot", HW_LLVM_HOT, 1000000);
    assert_use(&variables, "left", HW_LLVM_HOT, 500000);
    assert_use(&variables, "right", HW_LLVM_HOT, 800000); /* at most: of two granules that it shares */
    assert_true(find(&variables, "right")->at_most);
    assert_use(&variables, "big", HW_LLVM_COLD, 0); /* none of its own granules is used */
    assert_use(&variables, "limited", HW_LLVM_HOT, 10);
    assert_use(&variables, "both", HW_LLVM_HOT, 700000); /* one of that name is used */
    assert_use(&variables, "away", HW_LLVM_COLD, 0);
    assert_use(&variables, "threads", HW_LLVM_SHARED, 1020000);
    assert_use(&variables, "_ZN2ns5valueE", HW_LLVM_COLD, 0);
    assert_use(&variables, "work", HW_LLVM_USED, 3); /* calls and table */
    assert_null(find(&variables, "cache.0"));
    assert_null(find(&variables, "cache"));
    assert_int_equal(variables.unnamed, 2);
    assert_int_equal(variables.count, 10);
    for (size_t i = 1; i < variables.count; i++)
        assert_true(variables.variable[i - 1].use <= variables.variable[i].use);
    hw_variables_free(&variables);
}

static void test_names_of_linkers(void **state)
{
    struct hw_variables variables = variables_of(make_view(true), false);
    assert_use(&variables, "work.calls", HW_LLVM_USED, 3);
    assert_use(&variables, "work.table.llvm.123", HW_LLVM_COLD, 0);
    assert_use(&variables, "cache.0", HW_LLVM_COLD, 0);
    assert_int_equal(variables.unnamed, 1);
    hw_variables_free(&variables);
}

static void test_names_of_llvm(void **state)
{
    assert_int_equal(hw_llvm_name_size("plain"), 5);
    assert_int_equal(hw_llvm_name_size("work.calls.1"), 4);
    assert_int_equal(hw_llvm_name_size("x.__uniq.123.llvm.4"), strlen("x.__uniq.123"));
    assert_int_equal(hw_llvm_name_size(".hidden"), 7);
}

/* A few samples say nothing about what has none. */
static void test_samples(void **state)
{
    const struct hw_view *view = make_view(false);
    made.view.global_reads = HW_COLD_SAMPLES;
    struct hw_variables variables = variables_of(view, true);
    assert_true(variables.sampled);
    assert_use(&variables, "away", HW_LLVM_COLD, 0);
    hw_variables_free(&variables);
    made.view.global_reads = HW_COLD_SAMPLES - 1;
    variables = variables_of(view, true);
    assert_use(&variables, "away", HW_LLVM_USED, 0);
    assert_use(&variables, "hot", HW_LLVM_HOT, 1000000);
    assert_int_equal(variables.of_use[HW_LLVM_COLD], 0);
    hw_variables_free(&variables);
}

/* A module whose code does not count says nothing. */
static void test_modules(void **state)
{
    const struct hw_view *view = make_view(true);
    made.modules[1].counting = HW_COUNTING_NO;
    struct hw_variables variables = variables_of(view, true);
    assert_null(find(&variables, "away"));
    assert_use(&variables, "both", HW_LLVM_COLD, 0);
    hw_variables_free(&variables);
    struct hw_buffer order = {0}, notes = {0};
    struct hw_error error = {""};
    const char *const modules[] = {"other.so"};
    make_view(true);
    assert_true(hw_export_symbol_order(view, modules, 1, &order, &notes, &error));
    assert_string_equal(hw_buffer_text(&order), "# Hot, the most used first.\nboth\n# Never used.\naway\n");
    assert_non_null(strstr(hw_buffer_text(&notes), "1 hot, 0 used little, 1 never used\n"));
    hw_buffer_free(&order);
    hw_buffer_free(&notes);
    made.view.global_count = 0;
    assert_false(hw_export_symbol_order(view, NULL, 0, &order, &notes, &error));
    assert_non_null(strstr(error.message, "no accesses to variables are known"));
    hw_buffer_free(&order);
    hw_buffer_free(&notes);
}

TEST_LIST(cmocka_unit_test(test_uses), cmocka_unit_test(test_names_of_linkers), cmocka_unit_test(test_names_of_llvm),
          cmocka_unit_test(test_samples), cmocka_unit_test(test_modules))
