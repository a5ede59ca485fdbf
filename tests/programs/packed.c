/* packed.c - what a program can see of libheapwise-packer.so.
 *
 *     packed neighbours   blocks of one size lie side by side, whatever is asked for in between; sizes are told as they
 * are packed contents     threads change, grow, shrink, hand over and free blocks whose bytes they check; some fork
 *     packed crowd        threads take and give back more blocks of one size than they may keep, all the time
 *     packed handed       one thread allocates what another frees, two million times: resident memory stays small
 *     packed threads      2,000 threads, one after the other, leave their blocks to the next
 *
 * Exits with 0, or prints what is wrong and exits with 1. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESIDENT_MOST_KIB 65536

static void check(int fine, const char *what)
{
    if (fine)
        return;
    printf("wrong: %s\n", what);
    fflush(stdout);
    _exit(1);
}

static void check_resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    check(usage.ru_maxrss < RESIDENT_MOST_KIB, "too much memory");
}

static void neighbours(void)
{
    enum { BLOCKS = 30 };
    char *blocks[BLOCKS];
    unsigned near = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(600);
        check(malloc(17) && malloc(5000), "no memory");
        check((uintptr_t)blocks[i] % 16 == 0 && malloc_usable_size(blocks[i]) == 640, "usable size");
        near += i && blocks[i] - blocks[i - 1] == 640;
    }
    check(near >= BLOCKS * 3 / 4, "blocks lie apart");
    free(blocks[3]);
    check(malloc(610) == blocks[3], "a freed block is not handed out again");
    char *zeros = calloc(100, 6);
    for (int i = 0; i < 600; i++)
        check(zeros[i] == 0, "calloc");
    check(realloc(zeros, 630) == zeros && realloc(zeros, 0) == NULL, "realloc in place");
    check(!calloc(SIZE_MAX / 2, 4), "calloc of too much");
    check(malloc(0) != NULL, "malloc(0)");
    char *aligned = aligned_alloc(256, 512);
    check((uintptr_t)aligned % 256 == 0 && malloc_usable_size(aligned) >= 512, "aligned_alloc");
    free(aligned);
}

/* ---- contents ---- */

static void *mailbox[256];

static void fill(unsigned char *block, unsigned size, unsigned key)
{
    memset(block, (int)((size + key) & 255), size);
}

static void check_bytes(const unsigned char *block, unsigned count, unsigned size, unsigned key)
{
    for (unsigned i = 0; i < count; i++)
        check(block[i] == ((size + key) & 255), "bytes of a block have changed");
}

static void fork_once(void)
{
    const pid_t child = fork();
    if (child == 0) {
        free(malloc(10));
        free(realloc(malloc(300), 700));
        _exit(0);
    }
    int status = 1;
    check(waitpid(child, &status, 0) == child && status == 0, "the child of a fork");
}

static void *change(void *seed)
{
    enum { LIVE = 200 };
    unsigned char *blocks[LIVE] = {0};
    unsigned sizes[LIVE], random = (unsigned)(uintptr_t)seed * 7919 + 1;
    for (int i = 0; i < 100000; i++) {
        random = random * 1103515245 + 12345;
        const unsigned at = (random >> 8) % LIVE;
        if (blocks[at])
            check_bytes(blocks[at], sizes[at], sizes[at], at);
        if (blocks[at] && random >> 30 == 0) {
            const unsigned size = (random >> 4) % 1500 + 1, kept = size < sizes[at] ? size : sizes[at];
            blocks[at] = realloc(blocks[at], size);
            check_bytes(blocks[at], kept, sizes[at], at);
            sizes[at] = size;
        } else {
            free(blocks[at] ? __atomic_exchange_n(&mailbox[random >> 24], blocks[at], __ATOMIC_ACQ_REL) : NULL);
            sizes[at] = (random >> 3) % 1400;
            blocks[at] = random & 64 ? calloc(1, sizes[at]) : malloc(sizes[at]);
        }
        fill(blocks[at], sizes[at], at);
        if (i % 20000 == 7)
            fork_once();
    }
    for (int i = 0; i < LIVE; i++)
        free(blocks[i]);
    return NULL;
}

static void contents(void)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        check(pthread_create(&threads[i], NULL, change, (void *)i) == 0, "no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void *take_and_give(void *key)
{
    enum { BLOCKS = 100 };
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < 3000; i++) {
        for (unsigned k = 0; k < BLOCKS; k++)
            fill(blocks[k] = malloc(500), 500, k + (unsigned)(uintptr_t)key);
        for (unsigned k = 0; k < BLOCKS; k++)
            check_bytes(blocks[k], 500, 500, k + (unsigned)(uintptr_t)key);
        for (unsigned k = 0; k < BLOCKS; k++)
            free(blocks[k]);
    }
    return NULL;
}

static void crowd(void)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        check(pthread_create(&threads[i], NULL, take_and_give, (void *)(i * 50)) == 0, "no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_resident();
}

/* ---- handed over ---- */

static void *free_all(void *closure)
{
    void *const end = &mailbox[255], *block;
    while ((block = __atomic_exchange_n(&mailbox[0], NULL, __ATOMIC_ACQ_REL)) != end) {
        if (!block)
            sched_yield();
        while (block) {
            void *next = *(void **)block;
            free(block);
            block = next;
        }
    }
    return NULL;
}

static void hand(void *list)
{
    void *empty = NULL;
    while (!__atomic_compare_exchange_n(&mailbox[0], &empty, list, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        empty = NULL;
        sched_yield();
    }
}

static void handed(void)
{
    pthread_t other;
    check(pthread_create(&other, NULL, free_all, NULL) == 0, "no thread");
    for (int i = 0; i < 4000; i++) {
        void *list = NULL;
        for (int k = 0; k < 500; k++) {
            void *block = malloc(200);
            *(void **)block = list;
            list = block;
        }
        hand(list);
    }
    hand(&mailbox[255]);
    pthread_join(other, NULL);
    check_resident();
}

static void *allocate(void *closure)
{
    void *blocks[64];
    for (unsigned i = 0; i < 64; i++)
        blocks[i] = malloc(16 * (i + 1));
    for (unsigned i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

static void threads(void)
{
    for (int i = 0; i < 2000; i++) {
        pthread_t one;
        check(pthread_create(&one, NULL, allocate, NULL) == 0, "no thread");
        pthread_join(one, NULL);
    }
    check_resident();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"neighbours", neighbours}, {"contents", contents}, {"crowd", crowd}, {"handed", handed}, {"threads", threads}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            return 0;
        }
    check(0, "which part?");
}
