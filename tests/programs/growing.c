/* growing.c - two builds of one program that allocate differently, for heapwise diff and check. GROWN is the later
 * one: its lines have moved, one place allocates more, one less, one is new, one is gone, one recurses
 * deeper. */
#include "program.h"

#ifdef GROWN
/* These lines move what follows.
 *
 *
 *
 *
 */
enum { BUFFERS = 300, CACHES = 10, DEPTH = 40 };
#else
enum { BUFFERS = 100, CACHES = 60, DEPTH = 12 };
#endif

static void *kept[1000];
static int kept_count;

NOINLINE static void keep(void *block)
{
    KEEP(block);
    MUST(block);
    kept[kept_count++] = block;
    HERE();
}

NOINLINE static void make_buffers(void)
{
    for (int i = 0; i < BUFFERS; i++)
        keep(malloc(1000));
    HERE();
}

NOINLINE static void make_caches(void)
{
    for (int i = 0; i < CACHES; i++)
        keep(malloc(4096));
    HERE();
}

/* The same in both. */
NOINLINE static void make_tables(void)
{
    for (int i = 0; i < 50; i++)
        keep(calloc(10, 100));
    HERE();
}

/* The same amount at the bottom of a recursion of another depth. */
NOINLINE static void descend(int depth)
{
    if (depth > 0)
        descend(depth - 1);
    else
        keep(malloc(5000));
    HERE();
}

#ifdef GROWN
NOINLINE static void make_extras(void)
{
    keep(malloc(70000));
    HERE();
}
#else
NOINLINE static void make_leftovers(void)
{
    keep(malloc(30000));
    HERE();
}
#endif

int main(void)
{
    make_buffers();
    make_caches();
    make_tables();
    descend(DEPTH);
#ifdef GROWN
    make_extras();
#else
    make_leftovers();
#endif
    return 0;
}
