/* main.c - the main function of all test programs: runs the tests that the program lists. */
#include "support/check.h"
#include "support/surroundings.h"

#include <stdlib.h>

int main(void)
{
    set_surroundings();
    if (getenv("HEAPWISE_TEST"))
        cmocka_set_test_filter(getenv("HEAPWISE_TEST"));
    struct test_list list = test_list();
    return _cmocka_run_group_tests("tests", list.tests, list.count, list.set_up, list.tear_down);
}
