/* check.h - cmocka with what it needs in front of it, and the list of tests of a program. */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>

/* Leaves the test as skipped, with the reason. */
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        print_message("skipped: " __VA_ARGS__);                                                                        \
        print_message("\n");                                                                                           \
        skip();                                                                                                        \
    } while (0)

/* Goes on, with a part of the test skipped. */
#define LEAVE_OUT(...)                                                                                                 \
    do {                                                                                                               \
        print_message("left out: " __VA_ARGS__);                                                                       \
        print_message("\n");                                                                                           \
    } while (0)

/* What the main function (main.c) runs; HEAPWISE_TEST=PATTERN in the environment: only the tests whose names match. */
struct test_list {
    const struct CMUnitTest *tests;
    size_t count;
    CMFixtureFunction set_up, tear_down; /* of all tests together, or NULL */
};
struct test_list test_list(void);

/* The tests of a program; with a fixture. */
#define TEST_LIST(...) TEST_LIST_WITH(NULL, NULL, __VA_ARGS__)
#define TEST_LIST_WITH(set_up, tear_down, ...)                                                                         \
    struct test_list test_list(void)                                                                                   \
    {                                                                                                                  \
        static const struct CMUnitTest tests[] = {__VA_ARGS__};                                                        \
        return (struct test_list){tests, sizeof tests / sizeof *tests, set_up, tear_down};                             \
    }

#endif
