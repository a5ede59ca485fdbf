/* program.c - what a project that uses Heapwise tests: allocates as many KiB as it is told, and keeps some. */
#include <stdlib.h>
#include <string.h>

#include <heapwise/heapwise.h>

static __attribute__((noinline)) char *read_table(int kibibytes)
{
    char *table = malloc((size_t)kibibytes << 10);
    if (table)
        memset(table, 1, (size_t)kibibytes << 10);
    return table;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 3; /* an argument was lost on the way */
    char *volatile table = read_table(atoi(argv[1]));
    const int keep = !strcmp(argv[2], "keep this");
    if (!heapwise_present())
        return 4;
    if (!keep)
        free(table);
    return atoi(argv[3]);
}
