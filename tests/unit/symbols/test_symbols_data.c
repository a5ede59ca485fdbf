/* test_symbols_data.c - variables of modules, and what heapwise cc leaves in them, in several skins. nm is the judge.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/recording.h"
#include "symbols/symbols.h"
#include "symbols/symbols_internal.h"

static const char source[] = "namespace demo { long counts[40]; static int hidden = 3; }\n"
                             "int first = 1, second = 2;\n"
                             "extern int other_name __attribute__((alias(\"first\")));\n"
                             "thread_local int per_thread = 7;\n"
                             "const char letters[] = \"abcdefgh\";\n"
                             "#ifdef MARKED\n"
                             "asm(\".section heapwise_types,\\\"a\\\"\\n.asciz \\\"node\\\"\\n.zero 3\\n"
                             ".asciz \\\"std::vector<int>\\\"\\n.ascii \\\"cut\\\"\\n"
                             ".section .note.heapwise,\\\"a\\\",@note\\n.align 4\\n.long 9, 16, 1\\n"
                             ".asciz \\\"Heapwise\\\"\\n.align 4\\n.long 1, 64, 0, 0\\n.text\");\n"
                             "#endif\n"
                             "int main(int c, char **) { demo::counts[c] = per_thread; demo::hidden += c;\n"
                             "    return demo::hidden + first + second + other_name + letters[c]; }\n";

static char *place;

__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
    char command[2048], line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "cd '%s' && { %s; } >shell.log 2>&1", place, command);
    return system(line) == 0;
}

static int make_place(void **state)
{
    char path[PATH_MAX];
    unsetenv("DEBUGINFOD_URLS");
    place = make_directory();
    snprintf(path, sizeof path, "%s/data.cc", place);
    FILE *stream = fopen(path, "w");
    return !stream || fputs(source, stream) < 0 || fclose(stream) || !shell("g++ -g -O1 -DMARKED data.cc -o data");
}

static int remove_place(void **state)
{
    remove_directory(place);
    return 0;
}

static int add(struct hw_symbolizer *symbolizer, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", place, name);
    int module = hw_symbolizer_add_module(symbolizer, path, NULL, 0);
    assert_true(module >= 0);
    return module;
}

static const struct hw_data_symbol *find(const struct hw_data *data, const char *name)
{
    for (size_t i = 0; i < data->symbol_count; i++)
        if (!strcmp(data->symbol[i].name, name))
            return &data->symbol[i];
    return NULL;
}

/* What nm says of a variable, as in "0000000000004080 0000000000000140 B demo::counts". */
static bool nm_knows(const char *file, const struct hw_data_symbol *symbol)
{
    char command[PATH_MAX], line[512], name[256];
    bool found = false;
    snprintf(command, sizeof command, "nm -SC '%s/%s'", place, file);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream)) {
        uint64_t address, size;
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %*c %255[^\n]", &address, &size, name) == 3)
            found |= address == symbol->address && size == symbol->size && !strcmp(name, symbol->name);
    }
    pclose(stream);
    return found;
}

static void variables_in_all_skins(void **state)
{
    static const struct {
        const char *make, *file, *judge;
        bool locals;
    } skins[] = {
        {"true", "data", "data", true},
        {"objcopy --only-keep-debug data data.dbg && objcopy --strip-all --add-gnu-debuglink=data.dbg data linked",
         "linked", "data", true},
        {"g++ -O1 -no-pie data.cc -o fixed", "fixed", "fixed", true},
        {"g++ -O1 -rdynamic data.cc -o exported && cp exported whole && strip exported", "exported", "whole", false},
    };
    for (size_t i = 0; i < sizeof skins / sizeof *skins; i++) {
        struct hw_error error = {""};
        struct hw_data data;
        assert_true(shell("%s", skins[i].make));
        struct hw_symbolizer *symbolizer = hw_symbolizer_new(NULL, &error);
        assert_true(hw_symbolizer_data(symbolizer, add(symbolizer, skins[i].file), &data, &error));
        const struct hw_data_symbol *counts = find(&data, "demo::counts");
        if (!counts)
            fail_msg("%s: no demo::counts among %zu", skins[i].file, data.symbol_count);
        assert_int_equal(counts->size, 320);
        assert_true(nm_knows(skins[i].judge, counts));
        assert_int_equal(find(&data, "demo::hidden") != NULL, skins[i].locals);
        assert_non_null(find(&data, "second"));
        assert_true(nm_knows(skins[i].judge, find(&data, "second")));
        assert_true(!find(&data, "first") != !find(&data, "other_name")); /* one name for the same bytes */
        assert_null(find(&data, "per_thread"));
        assert_null(find(&data, "main"));
        for (size_t k = 1; k < data.symbol_count; k++)
            assert_true(data.symbol[k].address >= data.symbol[k - 1].address &&
                        data.symbol[k].address + data.symbol[k].size >
                            data.symbol[k - 1].address + data.symbol[k - 1].size);
        const char *section = NULL;
        for (size_t k = 0; k < data.section_count; k++)
            if (counts->address >= data.section[k].start && counts->address < data.section[k].end)
                section = data.section[k].name;
        assert_string_equal(section, ".bss");
        hw_data_free(&data);
        hw_symbolizer_free(symbolizer);
    }
}

static void files_that_cannot_serve(void **state)
{
    static const uint8_t other[20] = {1, 2, 3};
    struct hw_symbolizer *symbolizer = hw_symbolizer_new(NULL, NULL);
    struct hw_data data;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/data", place);
    const int modules[] = {add(symbolizer, "gone"),
                           add(symbolizer, "data.cc"),
                           hw_symbolizer_add_module(symbolizer, "[vdso]", NULL, 0),
                           hw_symbolizer_add_module(symbolizer, path, other, sizeof other),
                           -1,
                           99};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        assert_true(hw_symbolizer_data(symbolizer, modules[i], &data, NULL));
        assert_null(find(&data, "demo::counts"));
        hw_data_free(&data);
        assert_true(hw_symbolizer_read_marks(symbolizer, modules[i], NULL));
        assert_int_equal(hw_symbolizer_counting(symbolizer, modules[i]), HW_COUNTING_UNKNOWN);
    }
    assert_non_null(strstr(hw_symbolizer_module_problem(symbolizer, modules[0]), "cannot open"));
    assert_non_null(strstr(hw_symbolizer_module_problem(symbolizer, modules[3]), "changed since the run"));
    hw_symbolizer_free(symbolizer);
}

static void marks_of_the_compiler(void **state)
{
    struct hw_symbolizer *symbolizer = hw_symbolizer_new(NULL, NULL);
    assert_true(shell("g++ data.cc -o unmarked && cp data bare && strip bare"));
    const int unmarked = add(symbolizer, "unmarked"), bare = add(symbolizer, "bare");
    assert_true(hw_type_id("", 0) == 0xcbf29ce484222325u); /* known answers of FNV-1a */
    assert_true(hw_type_id("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(hw_type_id("foobar", 6) == 0x85944171f73967e8u);
    assert_true(hw_symbolizer_read_marks(symbolizer, unmarked, NULL));
    assert_int_equal(hw_symbolizer_counting(symbolizer, unmarked), HW_COUNTING_NO);
    assert_null(hw_symbolizer_type(symbolizer, hw_type_id("node", 4)));
    assert_true(hw_symbolizer_read_marks(symbolizer, bare, NULL));
    assert_int_equal(hw_symbolizer_counting(symbolizer, bare), HW_COUNTING_YES);
    assert_string_equal(hw_symbolizer_type(symbolizer, hw_type_id("node", 4)), "node");
    assert_string_equal(hw_symbolizer_type(symbolizer, hw_type_id("std::vector<int>", 16)), "std::vector<int>");
    assert_null(hw_symbolizer_type(symbolizer, hw_type_id("cut", 3)));
    assert_null(hw_symbolizer_type(symbolizer, 0));
    hw_symbolizer_free(symbolizer);
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(variables_in_all_skins),
               cmocka_unit_test(files_that_cannot_serve), cmocka_unit_test(marks_of_the_compiler))
