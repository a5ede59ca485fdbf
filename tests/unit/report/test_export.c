/* test_export.c - exports of profiles made by hand whose names were chosen to break formats, read back by readers that
 * are not Heapwise's (tests/exports/check.mjs); and the encoder of protocol buffers. */
// clang-format off
#include <stdio.h>
// clang-format on

#include "report_check.h"

#include "report/export/export.h"
#include "report/export/protobuf.h"
#include "support/run.h"

/* ---- protocol buffers ---- */

static void numbers_have_seven_bits_a_byte(void **state)
{
    static const struct {
        uint64_t value;
        size_t size;
        unsigned char bytes[10];
    } cases[] = {{0, 1, {0}},
                 {127, 1, {127}},
                 {128, 2, {0x80, 1}},
                 {300, 2, {0xac, 2}},
                 {UINT64_MAX, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_buffer out = {0};
        hw_protobuf_varint(&out, cases[i].value);
        assert_int_equal(out.used, cases[i].size);
        assert_memory_equal(out.data, cases[i].bytes, cases[i].size);
        hw_buffer_free(&out);
    }
}

static void fields_are_as_the_format_says(void **state)
{
    struct hw_buffer out = {0}, message = {0};
    hw_protobuf_count(&out, 1, 150); /* the format's own example: 08 96 01 */
    hw_protobuf_bytes(&out, 2, "testing", 7);
    hw_protobuf_count(&out, 3, 0); /* left out */
    hw_protobuf_count(&message, 1, 150);
    hw_protobuf_message(&out, 3, &message);
    static const char expected[] = "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
    assert_int_equal(out.used, sizeof expected - 1);
    assert_memory_equal(out.data, expected, sizeof expected - 1);
    assert_int_equal(message.used, 0);
    hw_buffer_free(&out);
    hw_buffer_free(&message);
}

static void numbers_are_decimal(void **state)
{
    static const uint64_t numbers[] = {0, 9, 10, 123456789, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct hw_buffer fast = {0}, plain = {0};
        hw_buffer_number(&fast, numbers[i]);
        hw_buffer_add(&plain, "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(hw_buffer_text(&fast), hw_buffer_text(&plain));
        hw_buffer_free(&fast);
        hw_buffer_free(&plain);
    }
}

/* ---- measures ---- */

static void measures_are_found_by_both_names(void **state)
{
    const char *now;
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        assert_int_equal(hw_measure_find(hw_measures[id].key, &now), id);
        if (hw_measures[id].json)
            assert_int_equal(hw_measure_find(hw_measures[id].json, &now), id);
    }
    assert_int_equal(hw_measure_find("nothing", &now), HW_MEASURES);
    assert_int_equal(hw_measure_find("", &now), HW_MEASURES);
}

/* They are what lists are sorted by. */
static void measures_are_those_of_reports(void **state)
{
    static const struct {
        enum hw_measure_id id;
        enum hw_sort_key key;
    } same[] = {{HW_MEASURE_PEAK, HW_SORT_PEAK},
                {HW_MEASURE_BYTES, HW_SORT_BYTES},
                {HW_MEASURE_COUNT, HW_SORT_COUNT},
                {HW_MEASURE_LEAKED, HW_SORT_LEAKED},
                {HW_MEASURE_TEMPORARY, HW_SORT_TEMPORARY},
                {HW_MEASURE_REALLOC, HW_SORT_REALLOC},
                {HW_MEASURE_POOLS, HW_SORT_POOLS},
                {HW_MEASURE_ACCESSES, HW_SORT_ACCESSES},
                {HW_MEASURE_SHARED_GRANULES, HW_SORT_SHARING},
                {HW_MEASURE_NEVER_ACCESSED, HW_SORT_NEVER_ACCESSED},
                {HW_MEASURE_NEVER_READ, HW_SORT_NEVER_READ}};
    struct reported reported = open_sample(access_sample(), true);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t k = 0; k < reported.view->context_count; k++)
            assert_int_equal(hw_measure_value(reported.view, same[i].id, &reported.view->contexts[k]),
                             hw_sort_value(same[i].key, &reported.view->contexts[k]));
    close_sample(&reported);
}

/* ---- hostile names ---- */

static char long_name[20000];

/* FRAMES of the sample with other names; they live as long as the program. */
static struct hw_frames hostile_resolve(void *closure, const char *module, uint64_t address)
{
    static const char *const names[] = {
        "a;b;c",
        "quoted \"name\" 'and' `this`",
        "Robert'); DROP TABLE contexts; --",
        "new\nline\r\nand\ttab",
        "=cmd|' /C calc'!A0",
        "+1",
        "-1",
        "@SUM(A1)",
        ",,,",
        "back\\slash\\n\\u0041\\",
        "</script><img src=x onerror=alert(1)>",
        "invalid \xff\xfe\xc0\x80 utf-8 \xed\xa0\x80",
        "\xf0\x9f\x92\xa9 \xe2\x80\xa8 \xc2\x85 \xe2\x80\xae",
        "\033[31mred\033[0m",
        "trailing number 42",
        " ",
        "\x7f\x01",
        "[root]",
        "{\"json\":1}",
        long_name,
    };
    static struct hw_frame made[256];
    static uint32_t used;
    static struct {
        const char *module;
        uint64_t address;
        struct hw_frames frames;
    } known[64];
    static size_t known_count;
    for (size_t i = 0; i < known_count; i++)
        if (!strcmp(known[i].module, module) && known[i].address == address)
            return known[i].frames;
    const struct hw_frames real = sample_resolve(closure, module, address);
    if (!real.count || used + real.count > 256 || known_count == 64)
        return real;
    struct hw_frame *copy = &made[used];
    for (uint32_t i = 0; i < real.count; i++, used++) {
        made[used] = real.frame[i];
        made[used].function = names[used % (sizeof names / sizeof *names)];
        made[used].linkage_name = NULL;
        if (used % 3 == 0)
            made[used].file = "/src/a \"b\", c\n=d;\xff.c";
    }
    known[known_count].module = strdup(module);
    known[known_count].address = address;
    known[known_count].frames = (struct hw_frames){copy, real.count};
    return known[known_count++].frames;
}

static const char *hostile_type(void *closure, uint64_t id)
{
    return id == TYPE_NODE ? "=type<\"a;b\",\n'c'\xff>" : NULL;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Exports the sample in every format and has each read by somebody else. */
static void check_sample(struct report_sample *sample, struct hw_frames (*resolve)(void *, const char *, uint64_t))
{
    static const struct {
        const char *name;
        hw_export_format *make;
    } formats[] = {{"pprof", hw_export_pprof},         {"dhat", hw_export_dhat},
                   {"collapsed", hw_export_collapsed}, {"speedscope", hw_export_speedscope},
                   {"sqlite", hw_export_sqlite},       {"csv", hw_export_csv}};
    if (access(TEST_SOURCES "/exports/node_modules/pprof-format", R_OK) != 0) {
        free(sample);
        SKIP("the readers are not installed (scripts/setup test)");
    }
    struct reported reported = open_sample(sample, true);
    const struct hw_view_options options = {.resolve = resolve, .data = sample_data, .type = hostile_type};
    struct hw_error error = {""};
    hw_view_free(reported.view);
    reported.view = hw_view_new(reported.profile, &options, &error);
    assert_non_null(reported.view);
    char directory[] = "/tmp/heapwise-export.XXXXXX", report[64], out[64];
    assert_non_null(mkdtemp(directory));
    snprintf(report, sizeof report, "%s/report.json", directory);
    snprintf(out, sizeof out, "%s/out", directory);
    char *text = report_string(hw_report_json, &reported, &(struct hw_report_options){0});
    write_file(report, text, strlen(text));
    free(text);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct hw_buffer bytes = {0};
        const struct hw_export_options what = {.value = HW_MEASURE_BYTES, .version = "test"};
        if (!formats[i].make(reported.view, &what, &bytes, &error))
            fail_msg("%s: %s", formats[i].name, error.message);
        write_file(out, hw_buffer_text(&bytes), bytes.used);
        hw_buffer_free(&bytes);
        struct run_result result = run((const char *const[]){"node", TEST_SOURCES "/exports/check.mjs", formats[i].name,
                                                             out, report, "bytes", NULL},
                                       NULL);
        if (result.code != 0)
            fail_msg("%s: %s%s", formats[i].name, result.out, result.err);
        run_result_free(&result);
    }
    unlink(out);
    unlink(report);
    rmdir(directory);
    close_sample(&reported);
}

static void exports_agree_with_reports(void **state)
{
    check_sample(report_sample(), sample_resolve);
}

static void exports_with_accesses_agree_with_reports(void **state)
{
    check_sample(access_sample(), sample_resolve);
    check_sample(fine_access_sample(), sample_resolve);
}

static void hostile_names_break_no_format(void **state)
{
    memset(long_name, 'x', sizeof long_name - 1);
    check_sample(access_sample(), hostile_resolve);
}

TEST_LIST(cmocka_unit_test(numbers_have_seven_bits_a_byte), cmocka_unit_test(fields_are_as_the_format_says),
          cmocka_unit_test(numbers_are_decimal), cmocka_unit_test(measures_are_found_by_both_names),
          cmocka_unit_test(measures_are_those_of_reports), cmocka_unit_test(exports_agree_with_reports),
          cmocka_unit_test(exports_with_accesses_agree_with_reports), cmocka_unit_test(hostile_names_break_no_format))
