/* differs.c - a program that does not get along with every allocator.
 *
 *     differs code      exits with 3 where LD_PRELOAD names jemalloc, else with 0
 *     differs signal    is killed there
 *     differs hang      never ends there
 *     differs random    exits with another code each time
 *     differs input     prints how many bytes its standard input has, and exits with that modulo 100
 *     differs work      allocates for some tenths of a second, besides 32 MiB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int work(void)
{
    enum { LIVE = 1000 };
    static char *live[LIVE];
    static char held[32 << 20];
    memset(held, 1, sizeof held);
    for (unsigned i = 0, seed = 1; i < 1500000; i++) {
        seed = seed * 1664525u + 1013904223u;
        char **slot = &live[(seed >> 8) % LIVE];
        free(*slot);
        *slot = malloc(16 + (seed >> 20) % 500);
        if (!*slot)
            return 1;
        **slot = 1;
    }
    return 0;
}

static int count_input(void)
{
    char bytes[4096];
    size_t all = 0;
    for (ssize_t got; (got = read(0, bytes, sizeof bytes)) > 0;)
        all += (size_t)got;
    printf("input %zu\n", all);
    return (int)(all % 100);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *preload = getenv("LD_PRELOAD");
    const int here = preload && strstr(preload, "jemalloc");
    if (strcmp(what, "code") == 0)
        return here ? 3 : 0;
    if (strcmp(what, "signal") == 0 && here)
        abort();
    if (strcmp(what, "hang") == 0 && here)
        pause();
    if (strcmp(what, "random") == 0)
        return getpid() % 100;
    if (strcmp(what, "input") == 0)
        return count_input();
    return strcmp(what, "work") == 0 ? work() : 0;
}
