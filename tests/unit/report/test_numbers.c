/* test_numbers.c - docs/numbers.md is what the tables of numbers and of measures say; each key is used once.
 *
 *     HEAPWISE_TEST_WRITE=1 unit_test_numbers     writes the document anew */
#include "report/buffer.h"
#include "report/view/measure.h"
#include "report/view/numbers.h"
#include "support/check.h"
#include "test_config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "# Numbers and measures\n"
    "\n"
    "Made of `src/profile/numbers.def` and `src/report/view/measures.def` by `unit_test_numbers`; the test compares.\n"
    "\n"
    "## Measures\n"
    "\n"
    "What `export --value` and `diff --sort` take; columns of CSV, and values of pprof, speedscope and comparisons. They\n"
    "add up over places. Those marked with a list are also taken by `report --sort` and `--section`.\n"
    "\n"
    "| key | list | JSON | unit | is |\n"
    "| --- | --- | --- | --- | --- |\n";

static const char more_lists[] = "\n"
                                 "## Lists that do not add up\n"
                                 "\n"
                                 "`report --sort` and `--section` take these keys, too.\n"
                                 "\n"
                                 "| key | by |\n"
                                 "| --- | --- |\n";

static const char numbers_head[] =
    "\n"
    "## Numbers of a context\n"
    "\n"
    "Keys of the JSON report ([json.md](json.md) says in which object), columns of the SQLite table `contexts`, columns of\n"
    "CSV besides the measures, and columns of the page. A number without any of them is used by Heapwise itself.\n"
    "\n"
    "| number | unit | JSON | SQLite | CSV | page | is |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n";

static void add_key(struct hw_buffer *out, const char *key)
{
    hw_buffer_add(out, key ? " `%s` |" : " |", key);
}

static void add_unit(struct hw_buffer *out, const char *unit)
{
    char text[32];
    size_t size = 0;
    for (; unit[size] && size + 1 < sizeof text; size++)
        text[size] = (char)tolower((unsigned char)unit[size]);
    text[size] = '\0';
    hw_buffer_add(out, " %s |", text);
}

static bool is_list(const char *key)
{
    const char *now;
    return hw_list_find(key, strlen(key), &now) < HW_SORT_KEYS && !now;
}

static bool is_measure(const char *key)
{
    const char *now;
    return hw_measure_find(key, &now) < HW_MEASURES && !now;
}

static void add_document(struct hw_buffer *out)
{
    hw_buffer_add(out, "%s", head);
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        hw_buffer_add(out, "| `%s` | %s |", hw_measures[id].key, is_list(hw_measures[id].key) ? "yes" : "");
        add_key(out, hw_measures[id].json);
        hw_buffer_add(out, " %s | %s |\n", hw_measure_unit_name(hw_measures[id].unit), hw_measures[id].sentence);
    }
    hw_buffer_add(out, "%s", more_lists);
    for (enum hw_sort_key key = 0; key < HW_SORT_KEYS; key++)
        if (!is_measure(hw_list_keys[key].key))
            hw_buffer_add(out, "| `%s` | %s |\n", hw_list_keys[key].key, hw_list_keys[key].sentence);
    hw_buffer_add(out, "%s", numbers_head);
    for (size_t i = 0; i < hw_number_count; i++) {
        const struct hw_number *number = &hw_numbers[i];
        hw_buffer_add(out, "| %s |", number->member);
        add_unit(out, number->unit);
        add_key(out, number->json);
        add_key(out, number->sqlite);
        add_key(out, number->csv);
        add_key(out, number->page);
        hw_buffer_add(out, " %s |\n", number->sentence);
    }
}

static void test_document(void **state)
{
    struct hw_buffer expected = {0};
    char *actual = NULL;
    size_t size = 0;
    const bool write = getenv("HEAPWISE_TEST_WRITE") != NULL;
    FILE *file = fopen(TEST_SOURCES "/../docs/numbers.md", write ? "w+" : "r");
    assert_non_null(file);
    add_document(&expected);
    if (write) {
        fputs(hw_buffer_text(&expected), file);
        rewind(file);
    }
    assert_true(getdelim(&actual, &size, EOF, file) > 0);
    fclose(file);
    if (strcmp(hw_buffer_text(&expected), actual))
        fail_msg("docs/numbers.md is not what the tables say: HEAPWISE_TEST_WRITE=1 unit_test_numbers writes it anew");
    hw_buffer_free(&expected);
    free(actual);
}

static void assert_once(const char *(*key)(size_t), size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i && key(i); k++)
            if (key(k) && !strcmp(key(i), key(k)))
                fail_msg("%s '%s' is used twice", what, key(i));
}

static const char *page_key(size_t i)
{
    return hw_numbers[i].page;
}

static const char *sqlite_key(size_t i)
{
    return hw_numbers[i].sqlite;
}

static const char *csv_key(size_t i)
{
    return hw_numbers[i].csv;
}

static const char *measure_key(size_t i)
{
    return hw_measures[i].key;
}

static const char *list_key(size_t i)
{
    return hw_list_keys[i].key;
}

static void test_keys(void **state)
{
    const char *now;
    assert_once(page_key, hw_number_count, "column of the page");
    assert_once(sqlite_key, hw_number_count, "column of SQLite");
    assert_once(csv_key, hw_number_count, "column of CSV");
    assert_once(measure_key, HW_MEASURES, "measure");
    assert_once(list_key, HW_SORT_KEYS, "list");
    assert_int_equal(hw_measure_find("lifetime", &now), HW_MEASURE_TOTAL_LIFETIME);
    assert_string_equal(now, "total-lifetime");
    assert_int_equal(hw_list_find("lifetime", 8, &now), HW_SORT_MEAN_LIFETIME);
    assert_string_equal(now, "mean-lifetime");
    assert_int_equal(hw_measure_find("peak_bytes", &now), HW_MEASURE_PEAK);
    assert_null(now);
    assert_int_equal(hw_measure_find("nothing", &now), HW_MEASURES);
}

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(getdelim(&text, &size, EOF, file) > 0);
    fclose(file);
    return text;
}

static bool is_column(const char *name, const char *made, const char *written)
{
    char text[64];
    for (size_t i = 0; i < hw_number_count; i++)
        if (hw_numbers[i].page && !strcmp(hw_numbers[i].page, name))
            return true;
    snprintf(text, sizeof text, "\n    %s: [", name);
    if (strstr(made, text))
        return true;
    snprintf(text, sizeof text, "\"context.%s\"", name);
    return strstr(written, text) != NULL;
}

/* The page means by a key what reports and exports mean by it, and its columns are there. */
static void test_page(void **state)
{
    static const struct {
        const char *key, *unit, *sum, *by, *hint;
    } rows[] = {
#define HW_PAGE(key, title, short_title, unit, ...) {key, #unit, __VA_ARGS__},
#include "report/view/measures.def"
    };
    static const char *const units[] = {[HW_UNIT_BYTES] = "BYTES", [HW_UNIT_COUNT] = "COUNT", [HW_UNIT_NS] = "NS"};
    char *made = text_of(TEST_SOURCES "/../viewer/src/measures.ts");
    char *written = text_of(TEST_SOURCES "/../src/report/page/page_data.c");
    char *document = text_of(TEST_SOURCES "/../docs/view.md");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *now, *key = rows[i].key;
        char columns[128], quoted[64];
        const enum hw_measure_id id = hw_measure_find(key, &now);
        if (now)
            fail_msg("'%s' of the page was another measure", key);
        if (id < HW_MEASURES)
            assert_string_equal(rows[i].unit, units[hw_measures[id].unit]);
        const bool list = hw_list_find(key, strlen(key), &now) < HW_SORT_KEYS;
        if (now)
            fail_msg("'%s' of the page was another list", key);
        if (!rows[i].hint && id == HW_MEASURES && !list)
            fail_msg("'%s' of the page has no sentence", key);
        snprintf(columns, sizeof columns, "%s+%s", rows[i].sum, rows[i].by);
        for (char *name = strtok(columns, "+"); name; name = strtok(NULL, "+"))
            if (!is_column(name, made, written))
                fail_msg("'%s' of the page: there is no column '%s'", key, name);
        snprintf(quoted, sizeof quoted, "`%s`", key);
        if (!strstr(document, quoted))
            fail_msg("docs/view.md lacks the key '%s'", key);
    }
    free(made);
    free(written);
    free(document);
}

/* What is too much to be known stays so: it does not wrap. */
static void test_too_much(void **state)
{
    struct hw_profile_context sum = {.live_age_total_ns = UINT64_MAX, .allocations = 2, .size_min = 7, .size_max = 9},
                              more = {.live_age_total_ns = 5, .allocations = 1, .size_min = 3, .size_max = 3};
    hw_profile_context_add(&sum, &more);
    assert_true(sum.live_age_total_ns == UINT64_MAX);
    assert_int_equal(sum.allocations, 3);
    assert_int_equal(sum.size_min, 3);
    assert_int_equal(sum.size_max, 9);
}

TEST_LIST(cmocka_unit_test(test_too_much), cmocka_unit_test(test_document), cmocka_unit_test(test_keys), cmocka_unit_test(test_page))
