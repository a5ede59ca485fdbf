/* canonical.c - takes the addresses of the allocator's functions in position-dependent code: the program then has
 * symbols of these names with a value, that of its PLT entry, which are no definitions. python3 is such a program. */
#include "program.h"

NOINLINE static void canonical_work(void *(*make)(size_t), void *(*grow)(void *, size_t), void (*drop)(void *))
{
    for (int i = 0; i < 100; i++) {
        void *block = make(100);
        KEEP(block);
        block = grow(block, 200);
        KEEP(block);
        drop(block);
    }
    HERE();
}

int main(void)
{
    canonical_work(malloc, realloc, free);
    return 0;
}
