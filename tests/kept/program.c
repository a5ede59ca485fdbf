/* program.c - something of everything: sizes, lives, reallocations, threads, what is left, fields, words, a global. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct record {
    long often, seldom;
    char text[100];
    int flag;
};

static long counters[16];

static struct record *make_records(int count)
{
    struct record *records = calloc((size_t)count, sizeof *records);
    for (int i = 0; i < count; i++) {
        records[i].often += i;
        if (i % 10 == 0)
            records[i].seldom++;
    }
    return records;
}

static void *work(void *argument)
{
    char *shared = argument;
    for (int i = 0; i < 2000; i++) {
        char *volatile block = malloc(64 + (size_t)(i % 7) * 16);
        memset(block, i, 32);
        shared[i & 63]++;
        counters[i & 15]++;
        free(block);
    }
    return NULL;
}

/* The argument: how often records are used, so that samples are taken. */
int main(int argc, char **argv)
{
    char *shared = calloc(1, 64), *grown = malloc(100);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, shared);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (size_t size = 200; size < 200000; size *= 2)
        grown = realloc(grown, size);
    struct record *kept = make_records(500), *freed = make_records(300);
    const long sum = kept[7].often + freed[9].often;
    for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--)
        kept[i % 500].seldom++;
    free(freed);
    free(grown);
    return sum == 16 ? 0 : 1;
}
