/* main.c - the main function of all test programs: runs the tests that the program lists. */
#include "support/check.h"
#include "support/surroundings.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    set_surroundings();
    const char *pattern = getenv("HEAPWISE_TEST");
    const struct test_list list = test_list();
    struct CMUnitTest *chosen = calloc(list.count, sizeof *chosen);
    size_t count = 0;
    for (size_t i = 0; chosen && i < list.count; i++)
        if (!pattern || fnmatch(pattern, list.tests[i].name, 0) == 0)
            chosen[count++] = list.tests[i];
    if (count == 0) {
        fprintf(stderr, "no test has a name that matches %s\n", pattern ? pattern : "*");
        return 1;
    }
    const int failed = _cmocka_run_group_tests("tests", chosen, count, list.set_up, list.tear_down);
    free(chosen);
    return failed;
}
