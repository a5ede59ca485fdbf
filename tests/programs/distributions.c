/* distributions.c - blocks whose sizes and lives are known: see test_distributions.c. Prints what it counted itself:
 *
 *   size FUNCTION LEAST MOST ALLOCATIONS REALLOCATIONS BYTES LIVE LIVE_BYTES    for each bar with anything in it
 *   life LEAST MOST                                                             ns, for each block of life_make
 */
#include "program.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

extern int heapwise_reset(void) __attribute__((weak));
extern int heapwise_dump(void) __attribute__((weak));

/* ---- the own count ---- */

enum { BARS = 160 };

struct count {
    const char *function;
    struct {
        long allocations, reallocations, bytes, live, live_bytes;
    } bar[BARS];
};

/* The limits of bars, as the documentation says: steps of 16 up to 1024, then four for each doubling. */
static size_t limits[BARS];

__attribute__((constructor)) static void make_limits(void)
{
    for (int i = 1; i < BARS; i++) {
        size_t power = 1024;
        while (power * 2 <= limits[i - 1])
            power *= 2;
        limits[i] = limits[i - 1] + (limits[i - 1] < 1024 ? 16 : power / 4);
    }
}

static size_t most_of(int bar)
{
    return limits[bar];
}

static int bar_of(size_t size)
{
    int bar = 0;
    while (most_of(bar) < size)
        bar++;
    return bar;
}

static void print(const struct count *count)
{
    for (int i = 0; i < BARS; i++)
        if (count->bar[i].allocations || count->bar[i].reallocations || count->bar[i].bytes || count->bar[i].live)
            say("size %s %zu %zu %ld %ld %ld %ld %ld\n", count->function, i ? most_of(i - 1) + 1 : 0, most_of(i),
                count->bar[i].allocations, count->bar[i].reallocations, count->bar[i].bytes, count->bar[i].live,
                count->bar[i].live_bytes);
}

static void obtained(struct count *count, size_t size)
{
    const int bar = bar_of(size);
    __atomic_fetch_add(&count->bar[bar].allocations, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->bar[bar].bytes, (long)size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->bar[bar].live, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->bar[bar].live_bytes, (long)size, __ATOMIC_RELAXED);
}

static void released(struct count *count, size_t size)
{
    const int bar = bar_of(size);
    __atomic_fetch_sub(&count->bar[bar].live, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&count->bar[bar].live_bytes, (long)size, __ATOMIC_RELAXED);
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- cases ---- */

NOINLINE static void *sizes_make(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

static const size_t edges[] = {0,    1,    15,   16,   17,    32,    33,    1008,   1009,    1024,          1025,
                               1280, 1281, 1536, 1537, 65536, 65537, 81920, 100000, 1 << 20, (1 << 20) + 1, 3ul << 30};

/* All edges of bars, and 20,000 blocks of sizes by chance; every third one stays. */
static void case_sizes(void)
{
    static struct count count = {.function = "sizes_make"};
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof edges / sizeof *edges + 20000; i++) {
        const size_t chance = next(&state);
        const size_t size = i < sizeof edges / sizeof *edges ? edges[i] : chance % 7 ? chance % 300 : chance % 20000;
        void *block = sizes_make(size);
        MUST(block);
        obtained(&count, size);
        if (i % 3) {
            free(block);
            released(&count, size);
        }
    }
    print(&count);
}

NOINLINE static void *one_size_make(void)
{
    void *block = malloc(100);
    KEEP(block);
    return block;
}

static void case_one_size(void)
{
    static struct count count = {.function = "one_size_make"};
    for (int i = 0; i < 1000; i++) {
        void *block = one_size_make();
        obtained(&count, 100);
        if (i % 2) {
            free(block);
            released(&count, 100);
        }
    }
    print(&count);
}

NOINLINE static void *realloc_make(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

/* Blocks that grow, shrink and stay; a reallocation goes to the bar of the new size, with what it adds. */
static void case_realloc(void)
{
    static struct count count = {.function = "realloc_make"};
    uint32_t state = 2;
    for (int i = 0; i < 300; i++) {
        size_t size = next(&state) % 200 + 1;
        void *block = realloc_make(size);
        obtained(&count, size);
        for (int k = 0; k < 10; k++) {
            const size_t new_size = next(&state) % 3000 + 1;
            block = realloc(block, new_size);
            MUST(block);
            released(&count, size);
            count.bar[bar_of(new_size)].live++;
            count.bar[bar_of(new_size)].live_bytes += (long)new_size;
            count.bar[bar_of(new_size)].reallocations++;
            count.bar[bar_of(new_size)].bytes += new_size > size ? (long)(new_size - size) : 0;
            size = new_size;
        }
        if (i % 3) {
            free(block);
            released(&count, size);
        }
    }
    print(&count);
}

/* What is not allocated is in no bar. */
NOINLINE static void *fail_make(size_t count, size_t size)
{
    void *block = calloc(count, size);
    KEEP(block);
    return block;
}

static void case_failures(void)
{
    static struct count count = {.function = "fail_make"};
    MUST(!fail_make(SIZE_MAX / 2, 3));
    MUST(!fail_make(1, SIZE_MAX / 2));
    free(fail_make(3, 7));
    obtained(&count, 21);
    released(&count, 21);
    print(&count);
}

enum { THREADS = 4, ROUNDS = 5000, HANDED = 64 };
static struct count thread_count = {.function = "thread_make"};
static struct {
    void *block;
    size_t size;
} handed[HANDED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void *thread_make(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

/* Blocks go from one thread to another, which frees or reallocates them. */
static void *work(void *argument)
{
    uint32_t state = (uint32_t)(uintptr_t)argument + 10;
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = next(&state) % 2000;
        void *block = thread_make(size);
        const unsigned slot = next(&state) % HANDED;
        obtained(&thread_count, size);
        pthread_mutex_lock(&lock);
        void *other = handed[slot].block;
        const size_t other_size = handed[slot].size;
        handed[slot].block = block;
        handed[slot].size = size;
        pthread_mutex_unlock(&lock);
        free(other);
        if (other)
            released(&thread_count, other_size);
    }
    return NULL;
}

static void case_threads(void)
{
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&thread[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    print(&thread_count);
}

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000l + now.tv_nsec;
}

NOINLINE static void *life_make(void)
{
    void *block = malloc(48);
    KEEP(block);
    return block;
}

/* Lives from nothing to 80 ms; each is measured from inside and from outside. */
static void case_lives(void)
{
    static const long lives[] = {0, 3000, 50000, 700000, 3000000, 11000000, 80000000};
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        for (int k = 0; k < (lives[i] > 1000000 ? 2 : 20); k++) {
            const long before = now_ns();
            void *block = life_make();
            const long made = now_ns();
            long until = made;
            if (lives[i] > 1000000)
                nanosleep(&(struct timespec){.tv_nsec = lives[i]}, NULL);
            while ((until = now_ns()) < made + lives[i])
                ;
            free(block);
            say("life %ld %ld\n", until - made, now_ns() - before);
        }
}

NOINLINE static void *period_make(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

/* What is live stays known across a reset; all else begins anew. */
static void case_reset(void)
{
    static struct count count = {.function = "period_make"};
    void *block[100];
    for (size_t i = 0; i < 100; i++) {
        block[i] = period_make(10 * i);
        obtained(&count, 10 * i);
    }
    MUST(!heapwise_reset || heapwise_reset() == 0);
    for (int i = 0; i < BARS; i++)
        count.bar[i].allocations = count.bar[i].bytes = 0;
    for (size_t i = 0; i < 100; i += 2) {
        free(block[i]);
        released(&count, 10 * i);
        free(period_make(5 * i));
        obtained(&count, 5 * i);
        released(&count, 5 * i);
    }
    print(&count);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    if (!strcmp(only, "reset")) {
        case_reset();
        return 0;
    }
    if (!strcmp(only, "lives")) {
        case_lives();
        return 0;
    }
    case_sizes();
    case_one_size();
    case_realloc();
    case_failures();
    case_threads();
    if (!strcmp(only, "dump"))
        MUST(heapwise_dump && heapwise_dump() >= 0);
    if (!strcmp(only, "fork") && fork() == 0) { /* the child's blocks are its own */
        static struct count count = {.function = "period_make"};
        for (size_t i = 0; i < 50; i++) {
            void *block = period_make(20 * i);
            obtained(&count, 20 * i);
            if (i % 2) {
                free(block);
                released(&count, 20 * i);
            }
        }
        print(&count);
        _exit(0);
    }
    if (!strcmp(only, "fork"))
        wait(NULL);
    return 0;
}
