/* recursing.c - functions that call themselves and each other, and a thread: test_groups.c knows their sums. Nothing is
 * freed before the end. */
#include "program.h"

#include <pthread.h>

static void *kept[64];
static size_t kept_count;

NOINLINE static void make_node(void)
{
    kept[kept_count++] = malloc(1000);
    KEEP(kept);
}

/* 2^(DEPTH + 1) - 1 nodes. */
NOINLINE static void build_tree(int depth)
{
    make_node();
    if (depth > 0) {
        build_tree(depth - 1);
        build_tree(depth - 1);
    }
    HERE();
}

NOINLINE static void count_even(int left);

NOINLINE static void count_odd(int left)
{
    if (left > 0)
        count_even(left - 1);
    else
        kept[kept_count++] = malloc(500);
    KEEP(kept);
}

NOINLINE static void count_even(int left)
{
    count_odd(left - 1);
    HERE();
}

NOINLINE static void *thread_work(void *unused)
{
    for (int i = 0; i < 4; i++)
        kept[kept_count++] = malloc(250);
    KEEP(kept);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    build_tree(3);
    count_even(10);
    MUST(pthread_create(&thread, NULL, thread_work, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    KEEP(kept);
    return 0;
}
