/* test_sys.c - reading lines of /proc without libc. */
#include "base/sys.c"
#include "tests/support/check.h"

#include <string.h>
#include <time.h>

static void test_fields_of_a_line(void **state)
{
    assert_string_equal(hw_skip_fields("one two  three", 1), "two  three");
    assert_string_equal(hw_skip_fields(" one two  three", 2), "three");
    assert_string_equal(hw_skip_fields("one", 0), "one");
    assert_string_equal(hw_skip_fields("one ", 1), "");
    assert_string_equal(hw_skip_fields("one", 5), "");
}

/* The name of a program may look like the fields after it. */
static void test_fields_of_a_process(void **state)
{
    const char *stat = "17 (a) R 9 (b) S 4 5 6";
    assert_string_equal(hw_stat_field(stat, 3), "S 4 5 6");
    assert_string_equal(hw_stat_field(stat, 6), "6");
    assert_string_equal(hw_stat_field(stat, 7), "");
    assert_string_equal(hw_stat_field("", 22), "");
}

static void test_links_and_limits(void **state)
{
    char text[8];
    assert_true(hw_read_link("/nowhere", text, sizeof text) < 0);
    assert_string_equal(text, "");
    assert_int_equal(hw_read_link("/proc/self/exe", text, sizeof text), sizeof text - 1);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_true(hw_soft_limit(RLIMIT_NOFILE) > 0);
    assert_true(hw_clock_read(CLOCK_MONOTONIC) > 0);
    hw_quiet = true;
    assert_int_equal(hw_clock_read(CLOCK_MONOTONIC), 0);
    hw_quiet = false;
}

TEST_LIST(cmocka_unit_test(test_fields_of_a_line), cmocka_unit_test(test_fields_of_a_process),
          cmocka_unit_test(test_links_and_limits))
