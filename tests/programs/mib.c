/* mib.c - blocks whose sizes, lives, CPUs and threads are known: see test_mib.c. Prints what it measured itself. */
#include "program.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

static int first_cpu = -1, second_cpu = -1;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void go_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    MUST(sched_setaffinity(0, sizeof set, &set) == 0);
}

/* ---- lifetimes ---- */

NOINLINE static void *lifetime_make(void)
{
    void *block = malloc(100);
    KEEP(block);
    return block;
}

/* Three blocks; prints for each how long it lived at least and at most. */
NOINLINE static void case_lifetime(void)
{
    static const long sleeps[] = {2000000, 30000000, 90000000};
    for (int i = 0; i < 3; i++) {
        int64_t before = now_ns();
        void *block = lifetime_make();
        int64_t made = now_ns();
        nanosleep(&(struct timespec){.tv_nsec = sleeps[i]}, NULL);
        int64_t until = now_ns();
        free(block);
        int64_t after = now_ns();
        say("lifetime %lld %lld\n", (long long)(until - made), (long long)(after - before));
    }
    HERE();
}

/* ---- overlaps ---- */

enum { SOME = 10 };

NOINLINE static void *overlap_none_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void *overlap_fifo_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void *overlap_lifo_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void case_overlaps(void)
{
    void *blocks[SOME];
    for (int i = 0; i < SOME; i++)
        free(overlap_none_make());
    for (int i = 0; i < SOME; i++)
        blocks[i] = overlap_fifo_make();
    for (int i = 0; i < SOME; i++)
        free(blocks[i]);
    for (int i = 0; i < SOME; i++)
        blocks[i] = overlap_lifo_make();
    for (int i = SOME; i-- > 0;)
        free(blocks[i]);
    HERE();
}

/* ---- CPUs ---- */

NOINLINE static void *cpu_same_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void *cpu_migrating_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void *cpu_alternating_make(void)
{
    void *block = malloc(64);
    KEEP(block);
    return block;
}

NOINLINE static void case_cpus(void)
{
    cpu_set_t set;
    MUST(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        if (first_cpu < 0)
            first_cpu = cpu;
        else if (second_cpu < 0)
            second_cpu = cpu;
    }
    if (second_cpu < 0) {
        say("cpus one\n");
        return;
    }
    go_to(first_cpu);
    for (int i = 0; i < SOME; i++)
        free(cpu_same_make());
    for (int i = 0; i < SOME; i++) {
        go_to(first_cpu);
        void *block = cpu_migrating_make();
        go_to(second_cpu);
        free(block);
    }
    for (int i = 0; i < SOME; i++) {
        go_to(i % 2 ? second_cpu : first_cpu);
        free(cpu_alternating_make());
    }
    MUST(sched_setaffinity(0, sizeof set, &set) == 0);
    say("cpus two\n");
    HERE();
}

/* ---- reallocation ---- */

NOINLINE static void case_realloc_growth(void)
{
    char *block = malloc(10);
    for (size_t size = 20; size <= 100; size += 10) {
        block = realloc(block, size);
        KEEP(block);
    }
    free(block);
    HERE();
}

NOINLINE static void case_realloc_shrink(void)
{
    char *block = malloc(1000);
    KEEP(block);
    for (size_t size = 900; size >= 100; size -= 100) {
        block = realloc(block, size);
        KEEP(block);
    }
    HERE(); /* 100 bytes stay live */
}

NOINLINE static void case_realloc_moves(void)
{
    size_t moved = 0;
    char *block = malloc(1000);
    KEEP(block);
    for (size_t size = 2000; size <= 8000; size += 1000) {
        char *behind = malloc(size); /* in the way */
        KEEP(behind);
        const uintptr_t old = (uintptr_t)block;
        block = realloc(block, size);
        KEEP(block);
        moved += (uintptr_t)block != old ? size - 1000 : 0;
    }
    printf("moved %zu\n", moved);
    HERE();
}

NOINLINE static void *realloc_elsewhere_make(void)
{
    void *block = malloc(50);
    KEEP(block);
    return block;
}

/* The block keeps the context it was made in. */
NOINLINE static void case_realloc_elsewhere(void)
{
    for (int i = 0; i < SOME; i++) {
        void *block = realloc(realloc_elsewhere_make(), 5000);
        KEEP(block);
        free(block);
    }
    HERE();
}

/* ---- temporary ---- */

NOINLINE static void case_temporary_all(void)
{
    for (int i = 0; i < SOME; i++) {
        void *block = malloc(64);
        KEEP(block);
        free(block);
    }
    HERE();
}

NOINLINE static void case_temporary_one_of_two(void)
{
    void *a = malloc(64), *b = malloc(64);
    KEEP(a);
    KEEP(b);
    free(a);
    free(b); /* nothing was allocated since b */
    HERE();
}

NOINLINE static void case_temporary_none(void)
{
    void *a = malloc(64), *b = malloc(64);
    KEEP(a);
    KEEP(b);
    b = realloc(b, 128); /* counts as an allocation between */
    KEEP(b);
    free(b);
    free(a);
    HERE();
}

/* ---- threads ---- */

static void *queue[1000];
static pthread_barrier_t barrier;

NOINLINE static void *handed_over_make(void)
{
    void *block = malloc(200);
    KEEP(block);
    return block;
}

static void *producer(void *argument)
{
    for (int i = 0; i < 1000; i++)
        queue[i] = handed_over_make();
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *consumer(void *argument)
{
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++)
        free(queue[i]);
    return NULL;
}

NOINLINE static void case_handed_over(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    MUST(pthread_create(&threads[0], NULL, producer, NULL) == 0);
    MUST(pthread_create(&threads[1], NULL, consumer, NULL) == 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    HERE();
}

NOINLINE static void many_threads_work(void)
{
    for (int i = 0; i < 100; i++) {
        void *block = malloc(300);
        KEEP(block);
        free(block);
    }
    HERE();
}

static void *many_threads_main(void *argument)
{
    many_threads_work();
    pthread_barrier_wait(&barrier); /* all live at once */
    return NULL;
}

NOINLINE static void case_many_threads(void)
{
    enum { THREADS = 5 };
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, many_threads_main, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    HERE();
}

/* ---- live at exit, peak ---- */

NOINLINE static void case_live(void)
{
    for (int i = 0; i < 7; i++) {
        void *block = malloc(1000);
        KEEP(block);
    }
    HERE();
}

NOINLINE static void *peak_first_make(void)
{
    void *block = malloc(1000);
    KEEP(block);
    return block;
}

NOINLINE static void *peak_second_make(void)
{
    void *block = malloc(3000);
    KEEP(block);
    return block;
}

/* Peak: 4,000 blocks of the first kind and 4,000 of the second: 16,000,000 bytes. Later more of the first, less in all.
 */
NOINLINE static void case_peak(void)
{
    enum { EACH = 4000 };
    static void *first[EACH * 3], *second[EACH];
    for (int i = 0; i < EACH; i++) {
        first[i] = peak_first_make();
        second[i] = peak_second_make();
    }
    for (int i = 0; i < EACH; i++)
        free(second[i]);
    for (int i = EACH; i < EACH * 3; i++)
        first[i] = peak_first_make();
    for (int i = 0; i < EACH * 3; i++)
        free(first[i]);
    HERE();
}

/* Only in a run of its own: two threads hold 20,000 blocks of 1,000 bytes each at the same moment. */
NOINLINE static void *shared_peak_make(void)
{
    void *block = malloc(1000);
    KEEP(block);
    return block;
}

static void *shared_peak_thread(void *argument)
{
    enum { EACH = 20000 };
    void **blocks = calloc(EACH, sizeof *blocks);
    for (int i = 0; i < EACH; i++)
        blocks[i] = shared_peak_make();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < EACH; i++)
        free(blocks[i]);
    free(blocks);
    return NULL;
}

NOINLINE static void case_shared_peak(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, shared_peak_thread, NULL) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    HERE();
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        case_shared_peak();
        return 0;
    }
    case_lifetime();
    case_overlaps();
    case_cpus();
    case_realloc_growth();
    case_realloc_shrink();
    case_realloc_elsewhere();
    case_realloc_moves();
    case_temporary_all();
    case_temporary_one_of_two();
    case_temporary_none();
    case_handed_over();
    case_many_threads();
    case_live();
    case_peak();
    return 0;
}
