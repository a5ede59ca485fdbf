/* check.h - cmocka with what it needs in front of it, and the main function of a test. */
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

#include "support/surroundings.h"

/* Leaves the test as skipped, with the reason. */
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        print_message("skipped: " __VA_ARGS__);                                                                        \
        print_message("\n");                                                                                           \
        skip();                                                                                                        \
    } while (0)

/* The main function: HEAPWISE_TEST=PATTERN in the environment runs only the tests whose names match. */
#define TEST_MAIN(...) TEST_MAIN_WITH(NULL, NULL, __VA_ARGS__)

/* Likewise, with a fixture of all tests. */
#define TEST_MAIN_WITH(set_up, tear_down, ...)                                                                         \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        set_surroundings();                                                                                            \
        if (getenv("HEAPWISE_TEST"))                                                                                   \
            cmocka_set_test_filter(getenv("HEAPWISE_TEST"));                                                           \
        return cmocka_run_group_tests(tests, set_up, tear_down);                                                       \
    }

#endif
