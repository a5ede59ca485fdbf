/* test_report_fields.c - heapwise fields on profiles made by hand: golden texts, JSON.
 *
 * HEAPWISE_UPDATE_GOLDEN=1 in the environment writes tests/golden anew; look at the difference before you keep it. */
#include <stdio.h>

#include "fields_sample.h"
#include "report_check.h"

#include <jansson.h>

/* ---- samples ---- */

/* Structs of every kind: spread over lines, in arrays, with bit-fields, unions, classes, fixed ones, without names. */
static struct field_maker *sample(void)
{
    struct field_maker *maker = maker_new(true);
    add_spread_node(maker, 1000000, 50000000);
    maker->windows[maker->window_count++] = (struct hw_field_window){0, 0, 2, 0, 51234};
    maker->windows[maker->window_count++] = (struct hw_field_window){0, 0, 5, 0, 51200};
    add_good_point(maker, 200000, 12000000);

    maker_struct(maker, "demo::body<double, std::allocator<char> >", 72, 8, HW_STRUCT_CPLUSPLUS);
    maker_field(maker, "pos.x", "demo::vec pos", 0, 8, 8)->member_size = 16;
    struct hw_field *y = maker_field(maker, "pos.y", "demo::vec pos", 8, 8, 8);
    y->member_offset = 0;
    y->member_size = 16;
    maker_field(maker, "name", "char name[24]", 16, 24, 1)->flags = HW_FIELD_ARRAY;
    maker_field(maker, "kind", "unsigned int kind : 3", 40, 1, 4)->bit_size = 3;
    maker_field(maker, "dead", "unsigned int dead : 1", 40, 1, 4)->bit_size = 1;
    maker->fields[maker->field_count - 2].flags = maker->fields[maker->field_count - 1].flags = HW_FIELD_BITS;
    maker->fields[maker->field_count - 1].bit_offset = 3;
    maker_field(maker, "mass", "double mass", 48, 8, 8);
    maker_field(maker, "history", "void *history", 56, 8, 8)->flags = HW_FIELD_POINTER;
    maker_field(maker, "owner", "void *owner", 64, 8, 8)->flags = HW_FIELD_POINTER;
    maker->structs[maker->struct_count - 1].flags |= HW_STRUCT_BIT_FIELDS;
    maker_use(maker, "step", 40000000, "pos.x", "pos.y", "mass", NULL);
    maker_use(maker, "load", 100000, "=", "name", "kind", "history", NULL);
    maker_blocks(maker, "demo::body<double, std::allocator<char> >", 4, 72 * 25000);

    maker_struct(maker, "packet", 16, 4, HW_STRUCT_WHOLE);
    maker_field(maker, "length", "unsigned length", 0, 4, 4);
    maker_field(maker, "as_word", "union body body", 4, 4, 4)->flags = HW_FIELD_UNION;
    maker_field(maker, "as_bytes", "union body body", 4, 8, 1)->flags = HW_FIELD_UNION | HW_FIELD_ARRAY;
    for (int i = 1; i <= 2; i++) {
        maker->fields[maker->field_count - (uint32_t)i].member_offset = 4;
        maker->fields[maker->field_count - (uint32_t)i].member_size = 8;
        maker->fields[maker->field_count - (uint32_t)i].member_alignment = 4;
    }
    maker_field(maker, "crc", "unsigned crc", 12, 4, 4);
    maker_use(maker, "send", 70000, "*", NULL);

    maker_struct(maker, "bad\xff\033name", 8, 8, HW_STRUCT_NO_NAMES);
    maker->structs[maker->struct_count - 1].file = maker->structs[maker->struct_count - 1].line = 0;
    maker_field(maker, "+0", "", 0, 8, 8);
    maker_use(maker, "x", 3, "+0", NULL);
    maker->groups[maker->group_count++] = (struct hw_field_group){.structure = HW_NONE,
                                                                  .function = maker_string(maker, "x"),
                                                                  .first_member = maker->member_count,
                                                                  .member_count = 1,
                                                                  .executions = 9000000};
    maker->members[maker->member_count++] = (struct hw_group_member){.field = HW_NONE, .reads = 1};
    return maker;
}

static struct field_maker *no_fields(void)
{
    struct field_maker *maker = maker_new(false);
    return maker;
}

/* ---- golden texts ---- */

#define SECTIONS (1u << HW_REPORT_FINDINGS | 1u << HW_REPORT_FIELDS)

static const struct golden {
    const char *name;
    struct field_maker *(*make)(void);
    struct hw_report_options options;
} goldens[] = {
    {"fields.txt", sample, {.sections = SECTIONS, .fields = true, .width = 80, .utf8 = true}},
    {"fields_full.txt", sample, {.sections = SECTIONS, .fields = true, .width = 80, .utf8 = true, .full = true}},
    {"fields_ascii.txt", sample, {.sections = SECTIONS, .fields = true, .width = 80, .structure = "node", .top = 1}},
    {"fields_color.txt",
     sample,
     {.sections = SECTIONS, .fields = true, .width = 100, .utf8 = true, .color = true, .top = 1}},
    {"fields_none.txt", no_fields, {.sections = SECTIONS, .fields = true, .width = 80, .utf8 = true}},
    {"report_findings.txt", sample, {.width = 80, .utf8 = true, .top = 2}},
};

static void golden_texts(void **state)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        struct reported reported = open_image(maker_image(golden->make(), true));
        char *text = report_string(hw_report_text, &reported, &golden->options);
        compare_with_golden(golden->name, text);
        if (!golden->options.full && !golden->options.color && widest_line(text) > golden->options.width)
            fail_msg("%s: a line of %zu columns", golden->name, widest_line(text));
        free(text);
        close_sample(&reported);
    }
}

/* ---- JSON ---- */

static json_t *parse(struct reported *reported, const struct hw_report_options *options)
{
    char *text = report_string(hw_report_json, reported, options);
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    if (!object)
        fail_msg("%s in line %d:\n%s", error.text, error.line, text);
    free(text);
    return object;
}

static void json_of_fields(void **state)
{
    struct reported reported = open_image(maker_image(sample(), true));
    const struct hw_report_options options = {.sections = SECTIONS | 1u << HW_REPORT_GLOBALS, .fields = true};
    json_t *object = parse(&reported, &options);
    assert_null(json_object_get(object, "totals"));
    assert_null(json_object_get(object, "contexts"));
    assert_non_null(json_object_get(object, "process"));
    json_t *fields = json_object_get(object, "fields"), *node = json_array_get(fields, 0);
    assert_int_equal(json_array_size(fields), 5);
    assert_string_equal(json_string_value(json_object_get(node, "struct")), "node");
    assert_int_equal(json_integer_value(json_object_get(node, "size")), 136);
    assert_int_equal(json_integer_value(json_object_get(node, "line")), 12);
    json_t *key = json_array_get(json_object_get(node, "fields"), 0);
    assert_string_equal(json_string_value(json_object_get(key, "name")), "key");
    assert_int_equal(json_integer_value(json_object_get(key, "reads")), 50000000);
    assert_int_equal(json_integer_value(json_object_get(key, "writes")), 1000000);
    json_t *pair = json_array_get(json_object_get(node, "affinity"), 0);
    assert_string_equal(json_string_value(json_object_get(pair, "a")), "key");
    assert_string_equal(json_string_value(json_object_get(pair, "b")), "value");
    assert_int_equal(json_integer_value(json_object_get(pair, "together")), 51000000);
    assert_int_equal(json_integer_value(json_object_get(pair, "weight")), 51234);
    assert_int_equal(json_integer_value(json_object_get(node, "affinity_windows")), 190);
    json_t *suggestion = json_object_get(node, "suggestion");
    assert_int_equal(json_array_size(json_object_get(suggestion, "layout")), 6);
    assert_true(json_real_value(json_object_get(suggestion, "lines_after")) <
                json_real_value(json_object_get(suggestion, "lines_before")) / 2);
    assert_true(json_real_value(json_object_get(node, "fragmentation")) > 0.8);
    const char *definition = json_string_value(json_object_get(suggestion, "definition"));
    assert_non_null(strstr(definition, "struct node {\n"));
    assert_int_equal(json_array_size(json_object_get(node, "contexts")), 1);

    json_t *findings = json_object_get(object, "findings"), *first = json_array_get(findings, 0);
    static const char *const keys[] = {"kind", "title", "why", "what_to_do", "expected_gain"};
    assert_true(json_array_size(findings) >= 2);
    for (size_t i = 0; i < json_array_size(findings); i++) {
        assert_int_equal(json_integer_value(json_object_get(json_array_get(findings, i), "rank")), i + 1);
        for (size_t k = 0; k < 5; k++)
            assert_non_null(json_string_value(json_object_get(json_array_get(findings, i), keys[k])));
        assert_true(json_is_array(json_object_get(json_array_get(findings, i), "contexts")));
    }
    assert_string_equal(json_string_value(json_object_get(first, "kind")), "layout");
    json_decref(object);

    /* The whole report has them too, and all contexts know their type. */
    object = parse(&reported, &(struct hw_report_options){0});
    assert_int_equal(json_array_size(json_object_get(object, "fields")), 5);
    assert_non_null(json_object_get(object, "findings"));
    assert_non_null(json_object_get(object, "totals"));
    json_decref(object);

    object = parse(&reported, &(struct hw_report_options){.sections = SECTIONS, .structure = "struct packet"});
    assert_int_equal(json_array_size(json_object_get(object, "fields")), 1);
    node = json_array_get(json_object_get(object, "fields"), 0);
    assert_true(json_is_null(json_object_get(node, "suggestion")));
    assert_non_null(json_string_value(json_object_get(node, "order_stays_because")));
    json_decref(object);
    close_sample(&reported);
}

/* Two contexts of one stack are one: where the blocks of both begin. */
static void starts_of_one_stack(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000, 50000);
    maker_blocks(maker, "node", 500, 136);
    maker->sample->contexts[2].leaf = maker->sample->contexts[1].leaf;
    maker->types[0].starts[2] = 1000;
    maker->types[1].starts[2] = 100;
    maker->types[1].starts[6] = 400;
    struct reported reported = open_image(maker_image(maker, true));
    json_t *object = parse(&reported, &(struct hw_report_options){.sections = SECTIONS});
    json_t *objects = json_object_get(json_array_get(json_object_get(object, "fields"), 0), "objects"),
           *starts = json_object_get(objects, "starts");
    assert_int_equal(json_integer_value(json_object_get(objects, "at_once")), 1500);
    assert_int_equal(json_array_size(starts), 8);
    assert_int_equal(json_integer_value(json_array_get(starts, 2)), 1100);
    assert_int_equal(json_integer_value(json_array_get(starts, 6)), 400);
    json_decref(object);
    close_sample(&reported);
}

static void json_without_fields(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    json_t *object = parse(&reported, &(struct hw_report_options){0});
    assert_null(json_object_get(object, "fields"));
    assert_null(json_object_get(object, "findings"));
    json_decref(object);
    close_sample(&reported);
}

/* ---- damage ---- */

/* Files with bytes changed at random, in any section: reports end, in bounded time, whatever they say. */
static void damaged_files(void **state)
{
    uint64_t random = 88172645463325252;
    struct image original = maker_image(sample(), false);
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    for (int round = 0; round < 300; round++) {
        struct image image = original;
        image.bytes = malloc(original.size);
        assert_non_null(image.bytes);
        memcpy(image.bytes, original.bytes, original.size);
        for (int change = 0; change < 1 + round % 40; change++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            /* Behind the directory; mostly in the sections of fields, which are the last. */
            const size_t first = random >> 63 ? HW_FILE_PAGE : original.size * 2 / 3 / HW_FILE_PAGE * HW_FILE_PAGE;
            unsigned char *at = image.bytes + first + (random >> 20) % (original.size - first);
            *at = random >> 62 & 1 ? (unsigned char)(random >> 50) : (unsigned char)(*at ^ 1u << (random >> 59 & 7));
        }
        struct hw_error error = {""};
        struct hw_profile *profile = hw_profile_read_bytes(image.bytes, image.size, "damaged", &error);
        free(image.bytes);
        if (!profile)
            continue;
        const struct hw_view_options options = {.resolve = sample_resolve, .data = sample_data, .type = sample_type};
        struct hw_view *view = hw_view_new(profile, &options, &error);
        assert_non_null(view);
        const struct hw_report_options report = {
            .sections = SECTIONS, .width = 80, .utf8 = true, .full = round % 2 == 0};
        assert_true(hw_report_text(view, &report, nowhere, &error));
        assert_true(hw_report_json(view, &report, nowhere, &error));
        hw_view_free(view);
        hw_profile_free(profile);
    }
    fclose(nowhere);
    image_free(&original);
}

TEST_LIST(cmocka_unit_test(golden_texts), cmocka_unit_test(json_of_fields), cmocka_unit_test(starts_of_one_stack),
          cmocka_unit_test(json_without_fields), cmocka_unit_test(damaged_files))
