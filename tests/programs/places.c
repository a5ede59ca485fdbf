/* places.c - programs of which it is known what their allocator makes of its memory. The first argument says which. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapwise/heapwise.h"

#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* Prints how much of [heap] is resident, as the kernel tells, without allocating. */
static void print_heap(void)
{
    static char text[1 << 20];
    int fd = open("/proc/self/smaps", O_RDONLY);
    size_t used = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    const char *heap = strstr(text, "[heap]"), *rss = heap ? strstr(heap, "Rss:") : NULL;
    char line[32] = "";
    const long bytes = rss ? strtol(rss + 4, NULL, 10) * 1024 : 0;
    const int length = snprintf(line, sizeof line, "%ld\n", bytes);
    if (write(1, line, (size_t)length) < 0 || fd < 0)
        _exit(1);
    close(fd);
}

/* 100,000 blocks of 4 bytes. */
static void internal(void)
{
    for (int i = 0; i < 100000; i++) {
        int *block = malloc(4);
        *block = i;
        KEEP(block);
    }
    print_heap();
}

/* 100,000 blocks of 100 bytes, of which three of four are freed. */
static void external(void)
{
    static char *blocks[100000];
    for (int i = 0; i < 100000; i++)
        memset(blocks[i] = malloc(100), 1, 100);
    for (int i = 0; i < 100000; i++)
        if (i % 4)
            free(blocks[i]);
    print_heap();
}

/* ---- two threads that take turns, step by step ---- */

static pthread_barrier_t barrier;
static char *handed[4096];

/* Both allocate 1000 blocks of 16 bytes, in turns: A, B, A, B, … */
static void *take_turns(void *argument)
{
    const int number = argument != NULL;
    for (int i = 0; i < 2000; i++) {
        if (i % 2 == number) {
            handed[i] = malloc(16);
            handed[i][0] = 1;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* One allocates 1000 blocks of 16 bytes and frees every second one; the other then allocates 500. */
static void *pass_on(void *argument)
{
    const int number = argument != NULL;
    for (int i = 0; !number && i < 1000; i++)
        memset(handed[i] = malloc(16), 1, 16);
    for (int i = 0; !number && i < 1000; i += 2)
        free(handed[i]);
    pthread_barrier_wait(&barrier);
    for (int i = 0; number && i < 500; i++)
        memset(handed[i * 2] = malloc(16), 1, 16);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* The same; then all is forgotten, the other frees his blocks, and gets as many. */
static void *pass_on_again(void *argument)
{
    const int number = argument != NULL;
    pass_on(argument);
    if (!number && heapwise_reset() != 0)
        _exit(1);
    pthread_barrier_wait(&barrier);
    for (int i = 0; number && i < 500; i++)
        free(handed[i * 2]);
    for (int i = 0; number && i < 500; i++)
        memset(handed[i * 2] = malloc(16), 1, 16);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Now the one has 10 MiB, now the other: in one block, and in many. */
static void *alternate(void *argument)
{
    static char *blocks[2][256];
    const int number = argument != NULL;
    for (int i = 0; i < 16; i++) {
        const int count = i < 8 ? 1 : 256;
        for (int k = 0; i % 2 == number && k < count; k++)
            blocks[number][k] = malloc((10u << 20) / (size_t)count);
        for (int k = 0; i % 2 == number && k < count; k++)
            free(blocks[number][k]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* A producer allocates, a consumer frees: at most 100 blocks of 1000 bytes are live, 20,000 in all. */
static void *produce(void *argument)
{
    const int number = argument != NULL;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; !number && i < 100; i++)
            memset(handed[i] = malloc(1000), 1, 1000);
        pthread_barrier_wait(&barrier);
        for (int i = 0; number && i < 100; i++)
            free(handed[i]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void with_two(void *(*body)(void *))
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* ---- others ---- */

static void *few(void *argument)
{
    for (int i = 0; i < 50; i++) {
        char *block = malloc(200);
        memset(block, 1, 200);
        KEEP(block);
        if (i % 2)
            free(block);
    }
    return NULL;
}

/* 2000 threads, one hundred at a time. */
static void many(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[100];
        for (int i = 0; i < 100; i++)
            pthread_create(&threads[i], &attributes, few, NULL);
        for (int i = 0; i < 100; i++)
            pthread_join(threads[i], NULL);
    }
}

static void odd_ones(void)
{
    char *huge = malloc(5ul << 30), *nothing = malloc(0), *grown = malloc(100);
    KEEP(huge);
    huge[0] = huge[4ul << 30] = 1;
    KEEP(nothing);
    grown = realloc(grown, 10000);
    memset(grown, 1, 10000);
    grown = realloc(grown, 50);
    void *aligned = aligned_alloc(256, 512);
    memset(aligned, 1, 512);
    free(nothing);
    free(huge);
}

static void forked(void)
{
    static char *blocks[10000];
    for (int i = 0; i < 10000; i++)
        memset(blocks[i] = malloc(100), 1, 100);
    if (fork() == 0) {
        for (int i = 0; i < 5000; i++)
            free(blocks[i]);
        exit(0);
    }
    wait(NULL);
}

/* Memory grows to 3000 blocks of 1000 bytes and shrinks to 1000, three times: 2,900,000 bytes, 3,000,000, 2,950,000. */
static void peaks(void)
{
    static char *blocks[3000];
    static const int tops[] = {2900, 3000, 2950};
    int live = 0;
    for (int round = 0; round < 3; round++) {
        while (live < tops[round])
            memset(blocks[live++] = malloc(1000), 1, 1000);
        while (live > 1000)
            free(blocks[--live]);
    }
}

/* One struct is written by both threads for a while; and each writes blocks of its own. */
static void *fight(void *argument)
{
    static char *object;
    const int number = argument != NULL;
    if (!number)
        object = aligned_alloc(64, 64);
    pthread_barrier_wait(&barrier);
    volatile uint64_t *word = (volatile uint64_t *)object + (number ? 5 : 1);
    for (long i = 0; i < 60000000; i++)
        ++*word;
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        void (*run)(void);
        void *(*body)(void *);
    } all[] = {
        {"internal", internal, NULL}, {"external", external, NULL},   {"turns", NULL, take_turns},
        {"pass", NULL, pass_on},      {"produce", NULL, produce},     {"many", many, NULL},
        {"odd", odd_ones, NULL},      {"fork", forked, NULL},         {"peaks", peaks, NULL},
        {"fight", NULL, fight},       {"reset", NULL, pass_on_again},
        {"alternate", NULL, alternate},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) {
            if (all[i].run)
                all[i].run();
            else
                with_two(all[i].body);
            return 0;
        }
    fprintf(stderr, "usage: places NAME\n");
    return 2;
}
