/* test_diff.c - what is one place in two profiles, and how certain an estimate is. */
// clang-format off
#include <math.h>
#include <stdio.h>
// clang-format on

#include "report_check.h"

#include "report/compare/check.h"
#include "report/view/intern.h"

static void names_lose_what_compilers_add(void **state)
{
    static const struct {
        const char *name, *plain;
    } cases[] = {
        {"parse", "parse"},
        {"parse.isra.0", "parse"},
        {"parse.part.12", "parse"},
        {"parse.cold", "parse"},
        {"parse.constprop.0.isra.0", "parse"},
        {"parse.isra.0.cold", "parse"},
        {"parse.lto_priv.0", "parse"},
        {"parse.llvm.1234567890123", "parse"},
        {"parse.c", "parse.c"},
        {"parse.2", "parse.2"}, /* a number alone can be anything */
        {"demo::parse(int) [clone .isra.0]", "demo::parse(int)"},
        {"demo::parse(int) [clone .part.3] [clone .cold]", "demo::parse(int)"},
        {"malloc@@GLIBC_2.2.5", "malloc"},
        {"malloc@GLIBC_2.2.5", "malloc"},
        {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
        {"core::fmt::write::h0123456789abcdeg", "core::fmt::write::h0123456789abcdeg"},
        {"::h0123456789abcdef", "::h0123456789abcdef"},
        {".cold", ".cold"},
        {"", ""},
        {".", "."},
        {"@", "@"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_buffer out = {0};
        hw_diff_plain_name(&out, cases[i].name);
        assert_string_equal(hw_buffer_text(&out), cases[i].plain);
        hw_buffer_free(&out);
    }
}

static void strings_get_numbers(void **state)
{
    struct hw_intern strings = {0};
    assert_int_equal(hw_intern(&strings, ""), 0);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 1; i <= 5000; i++) {
            char text[16];
            snprintf(text, sizeof text, "name %u", i);
            assert_int_equal(hw_intern(&strings, text), i);
            assert_string_equal(hw_interned(&strings, i), text);
        }
    assert_string_equal(hw_interned(&strings, 0), "");
    hw_intern_free(&strings);
}

/* Whatever a profile has, it is the same as itself. */
static void a_profile_is_as_itself(void **state)
{
    struct reported one = open_sample(access_sample(), true), other = open_sample(access_sample(), true);
    struct hw_error error;
    struct hw_diff *diff = hw_diff_new(one.view, other.view, &error);
    assert_non_null(diff);
    uint32_t contexts[HW_SIDES] = {0};
    for (size_t i = 0; i < diff->count; i++)
        for (int side = 0; side < HW_SIDES; side++) {
            assert_true(diff->places[i].context[side] != HW_NONE);
            contexts[side] += diff->places[i].contexts[side];
        }
    assert_int_equal(contexts[HW_OLD], one.view->context_count);
    assert_int_equal(contexts[HW_NEW], one.view->context_count);
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        size_t count;
        uint64_t sum = 0;
        uint32_t *order = hw_diff_sorted(diff, id, &count);
        assert_non_null(order);
        assert_int_equal(count, 0);
        free(order);
        for (size_t i = 0; i < diff->count; i++)
            sum += diff->places[i].value[HW_NEW][id];
        assert_int_equal(sum, hw_measure_total(one.view, id));
    }
    hw_diff_free(diff);
    close_sample(&one);
    close_sample(&other);
}

/* The two depths of recursion of the sample, which are contexts of their own, are one place. */
static void depth_of_recursion_is_no_change(void **state)
{
    struct reported one = open_sample(report_sample(), true), other = open_sample(report_sample(), true);
    struct hw_error error;
    struct hw_diff *diff = hw_diff_new(one.view, other.view, &error);
    assert_non_null(diff);
    size_t summed = 0;
    for (size_t i = 0; i < diff->count; i++)
        summed += diff->places[i].contexts[HW_OLD] > 1;
    assert_int_equal(summed, 1);
    hw_diff_free(diff);
    close_sample(&one);
    close_sample(&other);
}

/* Without names the stacks of a program are one place, in which none stands for the others: no address, no stack, and
 * a note. */
static void code_without_names_is_no_address(void **state)
{
    struct image images[] = {report_image(report_sample(), true), report_image(report_sample(), true)};
    struct hw_profile *profiles[2];
    struct hw_view *views[2];
    struct hw_error error = {""};
    for (int i = 0; i < 2; i++) {
        profiles[i] = hw_profile_read_bytes(images[i].bytes, images[i].size, i ? "new" : "old", &error);
        assert_non_null(profiles[i]);
        views[i] = hw_view_new(profiles[i], &(struct hw_view_options){.no_symbols = true}, &error);
        assert_non_null(views[i]);
        for (size_t k = 0; i && k < views[i]->module_count; k++)
            views[i]->modules[k].build_id_size = 0; /* another build of everything */
        image_free(&images[i]);
    }
    for (size_t k = 0; k < views[1]->context_count; k++)
        views[1]->contexts[k].sum.bytes *= 2;
    struct hw_diff *diff = hw_diff_new(views[0], views[1], &error);
    assert_non_null(diff);
    size_t nameless = 0;
    for (size_t i = 0; i < diff->count; i++)
        nameless += hw_diff_is_nameless(diff, &diff->places[i]);
    assert_true(nameless > 0);
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    const struct hw_diff_options options = {.report = {.width = 300, .utf8 = true}, .sort = HW_MEASURE_BYTES};
    assert_true(hw_diff_text(diff, &options, stream, &error));
    fclose(stream);
    assert_non_null(strstr(text, "parser: code without names\n"));
    assert_non_null(strstr(text, "functions on them have no names"));
    const char *at = strstr(text, "code without names");
    const char *next = strstr(at, "\n  2. ");
    const char *address = strstr(at, "+0x");
    assert_true(!address || (next && address > next));
    free(text);
    hw_diff_free(diff);
    for (int i = 0; i < 2; i++) {
        hw_view_free(views[i]);
        hw_profile_free(profiles[i]);
    }
}

/* With nothing on one side everything has appeared, or is gone. */
static void nothing_is_all_change(void **state)
{
    struct reported full = open_sample(report_sample(), true), none = open_sample(report_sample(), true);
    struct hw_error error;
    const size_t count = none.view->context_count;
    none.view->context_count = 0;
    for (int way = 0; way < 2; way++) {
        struct hw_diff *diff = hw_diff_new(way ? none.view : full.view, way ? full.view : none.view, &error);
        assert_non_null(diff);
        assert_true(diff->count > 0);
        for (size_t i = 0; i < diff->count; i++)
            assert_int_equal(diff->places[i].context[!way], HW_NONE);
        hw_diff_free(diff);
    }
    none.view->context_count = count;
    close_sample(&full);
    close_sample(&none);
}

static void changes_end_at_limits(void **state)
{
    assert_int_equal(hw_diff_change(5, 3), -2);
    assert_int_equal(hw_diff_change(3, 5), 2);
    assert_true(hw_diff_change(0, UINT64_MAX) == INT64_MAX);
    assert_true(hw_diff_change(UINT64_MAX, 0) == -INT64_MAX);
}

/* 100 blocks of 1000 bytes, each in the sample with p = 1 - exp(-1): the standard deviation of their number is
 * sqrt(100 (1 - p) / p) = 7.629: in bytes V = 7,629^2, of which one sample stands for s = V / 100,000 = 582. The
 * uncertainty is 2 s + 2 sqrt(V + s^2) = 16,466. Without the sums that say so (older files) V is taken to be 2.6^2
 * times as much: 48,310. Of their number s is at least 1000 / 16, as blocks of 16 bytes may be there unseen: 250.9 and
 * 256.1. */
static void uncertainty_is_that_of_the_estimate(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    struct hw_view_context *context = &reported.view->contexts[0];
    const size_t count = reported.view->context_count;
    reported.view->context_count = 1;
    context->sum.allocations = 100;
    context->sum.bytes = 100000;
    context->sum.pool = false;
    assert_true(hw_measure_uncertainty(reported.view, HW_MEASURE_BYTES) == 0);
    reported.profile->process.sample_bytes = 1000;
    assert_int_equal(hw_measure_uncertainty(reported.view, HW_MEASURE_BYTES), 48310);
    assert_int_equal(hw_measure_uncertainty(reported.view, HW_MEASURE_COUNT), 256);
    const double variance = 100 * exp(-1) / -expm1(-1);
    context->sum.count_variance = (uint64_t)(variance * HW_COUNT_VARIANCE_UNIT);
    context->sum.bytes_variance = (uint64_t)(variance * 1e6 / HW_BYTES_VARIANCE_UNIT);
    assert_in_range(hw_measure_uncertainty(reported.view, HW_MEASURE_BYTES), 16200, 16466); /* in units of 2^20 */
    assert_int_equal(hw_measure_uncertainty(reported.view, HW_MEASURE_COUNT), 250);
    reported.view->context_count = count;
    close_sample(&reported);
}

TEST_LIST(cmocka_unit_test(names_lose_what_compilers_add), cmocka_unit_test(strings_get_numbers),
          cmocka_unit_test(a_profile_is_as_itself), cmocka_unit_test(depth_of_recursion_is_no_change),
          cmocka_unit_test(code_without_names_is_no_address), cmocka_unit_test(nothing_is_all_change),
          cmocka_unit_test(changes_end_at_limits), cmocka_unit_test(uncertainty_is_that_of_the_estimate))
