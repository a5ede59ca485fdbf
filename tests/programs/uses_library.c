/* uses_library.c - a block that a library alone writes: test_counting.c. */
#include <stdlib.h>

void lib_write(volatile int *p, int n);

__attribute__((noinline)) static volatile int *only_given(void)
{
    return malloc(64);
}

int main(void)
{
    volatile int *block = only_given();
    lib_write(block, 1000);
    free((void *)block);
    return 0;
}
