/* periods.c - programs that are recorded with start=off: the case is the first argument. At each step the program says
 * its number, and goes on when the file UNTIL.NUMBER is there (UNTIL: the second argument). Nothing else of them uses
 * the heap, so that the numbers of each period are known. */
#include "program.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "heapwise/heapwise.h"

enum { THREADS = 8, SLOTS = 16 };

static const char *until;
static void *volatile blocks[256];

static void nap(void)
{
    struct timespec rest = {0, 2000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static void step(int number)
{
    char name[600];
    snprintf(name, sizeof name, "%s.%d", until, number);
    say("step %d\n", number);
    for (int i = 0; i < 60000 && access(name, F_OK) != 0; i++)
        nap();
}

#define ALLOCATOR(name)                                                                                                \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }
ALLOCATOR(before)
ALLOCATOR(during)
ALLOCATOR(between)
ALLOCATOR(again)

/* ---- one thread ---- */

/* Every function of the family behaves as without Heapwise; leaves eight blocks. */
static void use_all(void)
{
    void *block = NULL;
    volatile size_t too_much = SIZE_MAX / 2;
    MUST(posix_memalign(&block, 3, 10) == EINVAL && !block);
    MUST(calloc(too_much, 4) == NULL && reallocarray(NULL, too_much, 4) == NULL && malloc(too_much) == NULL);
    MUST(posix_memalign(&block, 256, 10) == 0 && (uintptr_t)block % 256 == 0);
    blocks[100] = block;
    blocks[101] = memalign(512, 10);
    blocks[102] = aligned_alloc(64, 128);
    blocks[103] = valloc(10);
    blocks[104] = pvalloc(10);
    blocks[105] = calloc(3, 40);
    blocks[106] = realloc(NULL, 30);
    blocks[107] = reallocarray(NULL, 3, 10);
    MUST((uintptr_t)blocks[101] % 512 == 0 && (uintptr_t)blocks[102] % 64 == 0 && (uintptr_t)blocks[103] % 4096 == 0);
    for (int i = 0; i < 120; i++)
        MUST(((char *)blocks[105])[i] == 0);
    MUST(malloc_usable_size(blocks[106]) >= 30 && malloc_usable_size(NULL) == 0);
    free(NULL);
}

static void steps(void)
{
    use_all();
    for (int i = 0; i < 12; i++)
        blocks[i] = before(50);
    free(blocks[11]);
    step(1);
    for (int i = 20; i < 25; i++)
        blocks[i] = during(100);
    for (int i = 0; i < 3; i++) /* of before: 3 + 8 frees, 2 reallocations, of which one is freed */
        free(blocks[i]);
    for (int i = 100; i < 108; i++)
        free(blocks[i]);
    blocks[3] = realloc(blocks[3], 5000);
    blocks[4] = realloc(blocks[4], 5000);
    free(blocks[4]);
    blocks[20] = realloc(blocks[20], 300);
    step(2);
    for (int i = 21; i < 24; i++) /* those that are live in the profile */
        free(blocks[i]);
    blocks[24] = realloc(blocks[24], 4000);
    for (int i = 30; i < 50; i++)
        blocks[i] = between(100); /* where those have been */
    step(3);
    free(blocks[20]);
    free(blocks[24]);
    for (int i = 30; i < 35; i++)
        free(blocks[i]);
    for (int i = 60; i < 63; i++)
        blocks[i] = again(100);
    free(blocks[60]);
    step(4);
}

/* ---- many threads ---- */

static _Atomic int stop;

static void *churner(void *number)
{
    void *own[SLOTS] = {NULL};
    unsigned random = 1 + (unsigned)(uintptr_t)number;
    for (unsigned round = 1; !atomic_load_explicit(&stop, memory_order_relaxed); round++) {
        if (round % 1000 == 0) /* leaves the processors to the commands that the test runs */
            nap();
        random = random * 1103515245 + 12345;
        const unsigned slot = random >> 16 & (SLOTS - 1), size = 1 + (random >> 20 & 511);
        if (random >> 9 & 1) {
            own[slot] = realloc(own[slot], size);
            MUST(own[slot]);
        } else {
            free(own[slot]);
            own[slot] = during(size);
        }
        memset(own[slot], (int)slot, size);
    }
    for (int i = 0; i < SLOTS; i++)
        free(own[i]);
    return NULL;
}

/* In the end everything is freed. */
static void threads(void)
{
    static pthread_t all[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&all[i], NULL, churner, (void *)i) == 0);
    step(1);
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(all[i], NULL) == 0);
}

/* ---- other processes ---- */

static void end_child(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

/* Of a process that waits, then of one that counts, then of one that has stopped. */
static void children(void)
{
    blocks[0] = before(50);
    for (int i = 1; i <= 3; i++) {
        const pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            free(blocks[i - 1]);
            blocks[i] = between(70); /* its first event: from here on it has a profile */
            say("child %d\n", (int)getpid());
            step(10 * i);
            free(blocks[i]);
            for (int k = 100; k < 104; k++)
                blocks[k] = during(10);
            _exit(0);
        }
        end_child(child);
        step(i);
        blocks[i] = during(30);
    }
}

/* exec, in the middle of a period. */
static void becomes(void)
{
    step(1);
    blocks[0] = during(10);
    execl("/proc/self/exe", "periods", "became", until, (char *)NULL);
    _exit(97);
}

static void became(void)
{
    blocks[0] = again(10);
    step(2);
    blocks[1] = again(10);
}

/* The program's own requests, and pools. */
static void calls(void)
{
    static long pool, pieces[2];
    MUST(heapwise_reset() == -1);
    heapwise_pool_alloc(&pool, &pieces[0], 8);
    step(1);
    heapwise_pool_free(&pool, &pieces[0]);
    heapwise_pool_alloc(&pool, &pieces[1], 8);
    blocks[2] = during(10);
    MUST(heapwise_reset() == 0);
    step(2);
    heapwise_pool_free(&pool, &pieces[1]);
    MUST(heapwise_reset() == -1);
    step(3);
    heapwise_pool_alloc(&pool, &pieces[1], 8);
    blocks[3] = again(10);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"steps", steps},   {"threads", threads}, {"children", children},
    {"becomes", becomes}, {"became", became},   {"calls", calls},
};

int main(int argc, char **argv)
{
    until = argc > 2 ? argv[2] : "/";
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 2;
}
