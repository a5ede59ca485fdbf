/* regions.c - regions that a program measures, with numbers that are known: the case is the first argument. Each case
 * prints "NAME allocations frees reallocations bytes live_blocks live_bytes peak_bytes measured" for its regions. */
#include "program.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "heapwise/heapwise.h"

enum { THREADS = 4, ROUNDS = 2000, OPEN_MOST = 1024 };

static void *volatile blocks[64];

NOINLINE static void *block(size_t size)
{
    void *pointer = malloc(size);
    KEEP(pointer);
    return pointer;
}

static void print(const char *name, const struct heapwise_totals *of)
{
    char line[300];
    const int length =
        snprintf(line, sizeof line, "%s %zu %zu %zu %zu %td %td %zu %zu\n", name, of->allocations, of->frees,
                 of->reallocations, of->bytes, of->live_blocks, of->live_bytes, of->peak_bytes, of->measured);
    if (write(1, line, (size_t)length) != length)
        _exit(3);
}

static void begin(struct heapwise_region *region, const char *name, enum heapwise_scope scope)
{
    errno = 77;
    if (heapwise_region_begin(region, name, scope) != 0)
        say("not begun\n");
    if (errno != 77)
        say("errno was changed\n");
}

static void end(struct heapwise_region *region, const char *name)
{
    struct heapwise_totals totals;
    memset(&totals, 0xff, sizeof totals);
    errno = 77;
    if (heapwise_region_end(region, &totals) != 0)
        say("not ended\n");
    if (errno != 77)
        say("errno was changed\n");
    print(name, &totals);
}

/* One in another, and two that overlap; with reallocations that grow, shrink, begin and end a block. */
static void nested(enum heapwise_scope scope)
{
    struct heapwise_region outer, inner, first, second, empty;
    begin(&outer, "outer", scope);
    blocks[0] = block(1000);
    begin(&inner, "inner", scope);
    blocks[1] = block(500);
    blocks[1] = realloc(blocks[1], 700);
    blocks[1] = realloc(blocks[1], 100);
    blocks[2] = realloc(NULL, 40);
    blocks[2] = realloc(blocks[2], 0);
    free(blocks[0]);
    end(&inner, "inner");
    free(blocks[1]);
    blocks[3] = calloc(10, 30);
    begin(&empty, "empty", scope);
    end(&empty, "empty");
    end(&outer, "outer");

    begin(&first, "first", scope);
    blocks[4] = block(100);
    begin(&second, "second", scope);
    blocks[5] = block(2000);
    free(blocks[5]);
    end(&first, "first");
    blocks[6] = block(300);
    free(blocks[4]);
    end(&second, "second");
    end(&second, "second"); /* again */
}

/* Threads that take turns, so that the greatest sum is known: the k-th holds k kilobytes while the next one begins. */
static pthread_barrier_t barrier;

static void *take_turns(void *argument)
{
    const int number = (int)(long)argument;
    struct heapwise_region own;
    struct heapwise_totals totals;
    heapwise_region_begin(&own, "turn", HEAPWISE_THREAD);
    for (int round = 0; round < THREADS; round++) {
        pthread_barrier_wait(&barrier);
        if (round == number)
            blocks[10 + number] = block(1000 * (size_t)(number + 1));
    }
    pthread_barrier_wait(&barrier);
    free(blocks[10 + (number + 1) % THREADS]); /* another's */
    pthread_barrier_wait(&barrier);
    heapwise_region_end(&own, &totals);
    const char name[] = {'t', (char)('0' + number), 0};
    for (int round = 0; round < THREADS; round++) {
        pthread_barrier_wait(&barrier);
        if (round == number)
            print(name, &totals);
    }
    return NULL;
}

static void *busy(void *argument)
{
    struct heapwise_region own;
    heapwise_region_begin(&own, "busy", HEAPWISE_THREAD);
    for (int i = 0; i < ROUNDS; i++) {
        void *a = block(64), *b = block(i % 7 + 1);
        a = realloc(a, 96);
        KEEP(a);
        free(a);
        free(b);
    }
    heapwise_region_end(&own, argument);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    struct heapwise_region all;
    struct heapwise_totals totals[THREADS], sum = {0};
    if (pthread_barrier_init(&barrier, NULL, THREADS + 1))
        _exit(3);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, take_turns, (void *)i);
    begin(&all, "turns", HEAPWISE_PROCESS);
    for (int i = 0; i < THREADS + 2; i++)
        pthread_barrier_wait(&barrier);
    end(&all, "turns"); /* they wait for each other, and then to print */
    for (int i = 0; i < THREADS; i++)
        pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);

    begin(&all, "all", HEAPWISE_PROCESS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, busy, &totals[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum.allocations += totals[i].allocations;
        sum.frees += totals[i].frees;
        sum.reallocations += totals[i].reallocations;
        sum.bytes += totals[i].bytes;
        sum.live_blocks += totals[i].live_blocks;
        sum.live_bytes += totals[i].live_bytes;
    }
    end(&all, "all");
    sum.measured = totals[0].measured;
    print("sum", &sum);
}

/* A region across fork is void in the child, and goes on in the parent. */
static void across_fork(void)
{
    struct heapwise_region region, own;
    begin(&region, "across", HEAPWISE_THREAD);
    blocks[0] = block(100);
    const pid_t child = fork();
    if (child == 0) {
        end(&region, "child-void");
        begin(&own, "own", HEAPWISE_PROCESS);
        blocks[1] = block(50);
        free(blocks[0]);
        end(&own, "child-own");
        exit(0);
    }
    waitpid(child, NULL, 0);
    end(&region, "parent");
    begin(&region, "void", HEAPWISE_PROCESS);
    heapwise_reset();
    end(&region, "reset-void");
    begin(&region, "behind", HEAPWISE_PROCESS);
    free(blocks[0]); /* from before the reset: live, and no free of this period */
    end(&region, "behind-reset");
}

static void *leave_open(void *argument)
{
    struct heapwise_region region;
    begin(&region, "left", HEAPWISE_THREAD);
    return argument;
}

static void *end_it(void *argument)
{
    end(argument, "elsewhere");
    return NULL;
}

static void misuse(void)
{
    struct heapwise_region region = {{0, 0}}, wild = {{12345, 6789012}}, other, many[OPEN_MOST];
    pthread_t thread;
    end(&region, "never-begun");
    end(&wild, "wild");
    begin(&other, NULL, HEAPWISE_THREAD);
    pthread_create(&thread, NULL, end_it, &other); /* not its own */
    pthread_join(thread, NULL);
    for (int i = 0; i < OPEN_MOST + 10; i++) { /* places of threads that have ended are found again */
        pthread_create(&thread, NULL, leave_open, NULL);
        pthread_join(thread, NULL);
    }
    begin(&region, "after", HEAPWISE_THREAD);
    end(&region, "after");
    for (int i = 0; i < OPEN_MOST; i++)
        heapwise_region_begin(&many[i], "many", HEAPWISE_PROCESS);
    begin(&region, "too-many", HEAPWISE_THREAD);
    end(&region, "too-many");
    end(&many[0], "first-of-many");
    begin(&region, "again", HEAPWISE_THREAD);
    heapwise_region_end(&region, NULL);
}

static void marks(void)
{
    heapwise_mark("empty");
    blocks[0] = block(1000);
    if (heapwise_mark("one \"block\"") != 0)
        say("not marked\n");
    free(blocks[0]);
    heapwise_mark(NULL);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "thread") == 0)
        nested(HEAPWISE_THREAD);
    else if (strcmp(name, "process") == 0)
        nested(HEAPWISE_PROCESS);
    else if (strcmp(name, "threads") == 0)
        threads();
    else if (strcmp(name, "fork") == 0)
        across_fork();
    else if (strcmp(name, "misuse") == 0)
        misuse();
    else if (strcmp(name, "marks") == 0)
        marks();
    else
        return 2;
    return 0;
}
