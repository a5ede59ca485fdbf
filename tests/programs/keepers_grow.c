/* keepers_grow.c - blocks of one place, of which some keepers have more than others.
 *
 *     keepers_grow COUNT [UNTIL]
 *
 * `constant` keeps 10 blocks of 1000 bytes, `growing` COUNT of them, and `falling` (100 - COUNT) / 2: all of one
 * place. A thread "worker" has 2 * COUNT blocks of 100 bytes in `tail`, which is thread-local. `appearing` has 5 of 200
 * bytes where COUNT is 50 or more. With UNTIL it says "ready" then, stays until there is a file of that name, and gives
 * `growing` 7 blocks of 3000 bytes more. */
#include "program.h"

#include <pthread.h>

struct block {
    struct block *next;
};

struct block *volatile constant, *volatile growing, *volatile falling, *volatile appearing;
static __thread struct block *volatile tail;
static int ready;

NOINLINE static struct block *of_place(size_t size, struct block *next)
{
    struct block *block = calloc(1, size);
    MUST(block);
    block->next = next;
    return block;
}

NOINLINE static void fill(struct block *volatile *list, unsigned count, size_t size)
{
    for (unsigned i = 0; i < count; i++)
        *list = of_place(size, *list);
    HERE();
}

NOINLINE static void *work(void *count)
{
    fill(&tail, 2 * *(unsigned *)count, 100);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return NULL;
}

NOINLINE static void make_all(unsigned count)
{
    struct list {
        struct block *volatile *list;
        unsigned count;
    } lists[] = {{&constant, 10}, {&growing, count}, {&falling, (100 - count) / 2}};
    for (int i = 0; i < 3; i++)
        fill(lists[i].list, lists[i].count, 1000);
    HERE();
}

NOINLINE static void make_new(void)
{
    fill(&appearing, 5, 200);
    HERE();
}

int main(int argc, char **argv)
{
    static unsigned count;
    MUST(argc > 1);
    alarm(300);
    count = (unsigned)atoi(argv[1]);
    make_all(count);
    if (count >= 50)
        make_new();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, work, &count) == 0 && pthread_setname_np(thread, "worker") == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
        usleep(1000);
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        while (access(argv[2], F_OK) != 0)
            usleep(1000);
        fill(&growing, 7, 3000);
    }
    exit(0);
}
