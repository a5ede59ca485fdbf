/* access.c - counts its accesses by hand, as code built by `heapwise cc` does it (base/abi.h): what the runtime makes
 * of the cells can be compared with what was counted, to the last access.
 *
 * access MODE [N]: the modes are the functions at the end. Each context is a function that allocates and has a name of
 * its own. Built with GRANULE 64 and 8. */
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/abi.h"

#ifndef GRANULE
#define GRANULE 64
#endif

extern __thread uintptr_t __heapwise_plane __attribute__((tls_model("initial-exec")));
extern __thread uint64_t __heapwise_type __attribute__((tls_model("initial-exec")));
extern void __heapwise_add_64(const void *address, uint64_t reads, uint64_t writes) __attribute__((weak));
extern int heapwise_dump(void) __attribute__((weak));
extern int heapwise_reset(void) __attribute__((weak));

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#ifndef NO_NOTE
__asm__(".pushsection " HW_ABI_NOTE_SECTION ",\"a\",@note\n"
        ".balign 4\n.long 9, 16, " TEXT(HW_ABI_NOTE_TYPE) "\n.asciz \"" HW_ABI_NOTE_NAME "\"\n.balign 4\n"
                                                          ".long " TEXT(HW_ABI_VERSION) ", " TEXT(
                                                              GRANULE) ", 0, 0\n.popsection");
#endif

static void count(const volatile void *address, int write)
{
    uintptr_t a = (uintptr_t)address;
#if GRANULE == 64
    *(volatile uint32_t *)(__heapwise_plane + (a >> 6 << 3) + 4 * write) += 1;
#else
    volatile uint8_t *cell = (volatile uint8_t *)(__heapwise_plane + (a >> 3) + (write ? HW_ABI_WRITES_OFFSET : 0));
    if (*cell != 255)
        ++*cell;
#endif
}

static void reads(const void *p, long n)
{
    while (n--)
        count(p, 0);
}

static void writes(const void *p, long n)
{
    while (n--)
        count(p, 1);
}

/* A context of its own. */
#define CONTEXT(name)                                                                                                  \
    __attribute__((noinline, noclone)) static void *name(size_t size)                                                  \
    {                                                                                                                  \
        void *p = malloc(size);                                                                                        \
        __asm__ volatile("" : "+r"(p));                                                                                \
        return p;                                                                                                      \
    }

static void expect(int true_statement, const char *what)
{
    if (!true_statement) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(2);
    }
}

/* ---- modes ---- */

CONTEXT(plain_hot)
CONTEXT(plain_live)
CONTEXT(plain_never)
CONTEXT(plain_written)
static void plain(long n)
{
    (void)n;
    for (int i = 0; i < 1000; i++) {
        char *p = plain_hot((size_t)(1 + i));
        expect(((uintptr_t)p & 31) == 0, "blocks begin at multiples of 32");
        reads(p, i);
        writes(p + i, 3);
        free(p);
    }
    char *live = plain_live(100);
    reads(live, 5);
    writes(live + 99, 7);
    plain_never(500);
    char *written = plain_written(500);
    writes(written + 64, 9);
    free(written);
}

/* Cold blocks beside hot ones: what is counted for one must not be told of the other. */
CONTEXT(bleed_cold)
CONTEXT(bleed_hot)
static void bleed(long n)
{
    static const size_t sizes[] = {1, 8, 16, 24, 31, 32, 33, 40, 48, 63, 64, 65, 96, 100, 128};
    (void)n;
    char *cold[64 * 15], *hot[64 * 15];
    for (int i = 0; i < 64 * 15; i++) {
        cold[i] = bleed_cold(sizes[i % 15]);
        hot[i] = bleed_hot(sizes[i % 15]);
    }
    for (int i = 0; i < 64 * 15; i++)
        for (size_t at = 0; at < sizes[i % 15]; at++)
            reads(hot[i] + at, 1);
    for (int i = 0; i < 64 * 15; i++) {
        free(cold[i]);
        if (i % 2) /* the others are found at the end */
            free(hot[i]);
    }
}

/* Memory that was something else, and blocks that are used after they were freed: a new block begins from zero. */
CONTEXT(stale_first)
CONTEXT(stale_second)
static void stale(long n)
{
    (void)n;
    for (size_t size = 0; size < 300; size++) {
        char *first = stale_first(size);
        writes(first, 2);
        if (size)
            reads(first + size - 1, 5);
        free(first);
        reads(first, 11); /* wrong, and not the next block's business */
        char *second = stale_second(size);
        if (size)
            reads(second, 1);
        free(second);
    }
    size_t large = 8 << 20;
    char *mapping = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < large; at += 64)
        writes(mapping + at, 1);
    munmap(mapping, large);
    for (int i = 0; i < 4; i++) {
        char *block = stale_second(2 << 20);
        reads(block, 1);
    }
}

CONTEXT(large_freed)
CONTEXT(large_live)
static void large(long n)
{
    size_t size = (5ul << 30) + 16;
    (void)n;
    for (int i = 0; i < 2; i++) {
        char *p = i ? large_live(size) : large_freed(size);
        expect(p != NULL, "5 GiB");
        for (size_t at = 0; at < size; at += 1ul << 30)
            reads(p + at, 2);
        writes(p + size - 1, 3);
        if (!i)
            free(p);
    }
}

/* Blocks that are mostly not used: one access at each place where a search of their cells may begin, turn or end. */
CONTEXT(sparse)
CONTEXT(sparse_large)
static void sparsely(long n)
{
    (void)n;
    for (size_t i = 0; i < 400; i++) {
        const size_t size = 4000 + 37 * i;
        char *p = sparse(size);
        writes(p + (i % 50 ? i * 72 % size : size - 1), 1);
        free(p);
    }
    const size_t size = 300ul << 20, step = (1ul << 20) + (3 << 15);
    for (size_t shift = 0; shift < 4; shift++) {
        char *p = sparse_large(size);
        for (size_t at = shift << 18; at < size; at += step)
            reads(p + at, 1);
        writes(p + size - 1, 1);
        free(p);
    }
}

/* Counts go with the block, wherever realloc puts it. */
CONTEXT(grown)
CONTEXT(shrunk)
CONTEXT(in_between)
static void reallocs(long n)
{
    (void)n;
    for (int round = 0; round < 3; round++) {
        char *p = grown(10);
        size_t size = 10;
        long counted = 0;
        for (int i = 0; i < 40; i++) {
            memset(p, i, size);
            reads(p + size - 1, 1);
            writes(p, 1);
            counted += 2;
            if (i % 3 == 0)
                in_between(30 + 10 * (size_t)i);
            size_t more = size + size / 2 + 7;
            p = realloc(p, more);
            for (size_t at = 0; at < size; at += size / 50 + 1)
                expect(p[at] == (char)i, "realloc keeps contents");
            size = more;
            if (size > 64 << 20)
                break;
        }
        free(p);
        char *q = shrunk(100000);
        for (size_t at = 0; at < 100000; at += 100)
            writes(q + at, 1);
        q = realloc(q, 1000);
        q = realloc(q, 10);
        reads(q, 1);
        if (round)
            free(q);
        if (round == 0)
            printf("counted %ld\n", counted);
    }
}

/* All threads count in the same blocks, and allocate and free. */
static struct {
    char *common;
    long rounds;
} shared;
CONTEXT(common_block)
CONTEXT(own_block)
CONTEXT(handed_over)
static char *handed[64];
static pthread_barrier_t barrier;

static void *worker(void *argument)
{
    long me = (long)argument;
    handed[me] = handed_over(200);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < shared.rounds; i++) {
        reads(shared.common, 1);
        writes(shared.common + 64, 1);
        if (i % 100 == 0) {
            char *own = own_block(50);
            writes(own, 4);
            free(own);
        }
    }
    for (int i = 0; handed[i]; i++)
        reads(handed[i], 1);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Never calls the allocator itself. */
static void *only_counts(void *argument)
{
    for (long i = 0; i < shared.rounds; i++)
        reads((char *)argument + 128, 1);
    return NULL;
}

static void threads(long n)
{
    pthread_t thread[64], counting[64];
    shared.common = common_block(1000);
    shared.rounds = 200000;
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    for (long i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, worker, (void *)i);
    for (long i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (long i = 0; i < n; i++)
        pthread_create(&counting[i], NULL, only_counts, shared.common);
    for (long i = 0; i < n; i++)
        pthread_join(counting[i], NULL);
    for (long i = 0; i < n; i++)
        free(handed[i]);
}

CONTEXT(before_fork)
CONTEXT(in_child)
static void forks(long n)
{
    (void)n;
    char *p = before_fork(100), *q = before_fork(100);
    reads(p, 10);
    writes(q, 1);
    pid_t pid = fork();
    if (pid == 0) {
        reads(p, 3);
        free(q);
        char *own = in_child(10);
        writes(own, 2);
        free(own);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    reads(p, 1);
}

/* The child never allocates; it goes on to the end that main was asked for. */
static void child(long n)
{
    (void)n;
    char *p = before_fork(100);
    reads(p, 10);
    pid_t pid = fork();
    if (pid != 0) {
        waitpid(pid, NULL, 0);
        reads(p, 1);
        exit(0);
    }
    reads(p, 3);
}

static void aligned(long n)
{
    (void)n;
    for (size_t alignment = 8; alignment <= 1 << 20; alignment *= 2)
        for (size_t size = 1; size < 20000; size = size * 3 + 1) {
            char *block[3];
            void *p = NULL;
            expect(posix_memalign(&p, alignment, size) == 0, "posix_memalign");
            block[0] = p;
            block[1] = aligned_alloc(alignment, size);
            block[2] = malloc(size);
            for (int i = 0; i < 2; i++) {
                expect(((uintptr_t)block[i] & (alignment - 1)) == 0, "alignment");
                memset(block[i], 1, size);
                reads(block[i], 1);
                writes(block[i] + size - 1, 1);
            }
            block[0] = realloc(block[0], size * 2);
            expect(block[0][size - 1] == 1, "realloc of an aligned block");
            for (int i = 0; i < 3; i++)
                free(block[i]);
        }
    int *zero = calloc(1000, 4);
    for (int i = 0; i < 1000; i++)
        expect(zero[i] == 0, "calloc");
    free(zero);
}

char access_global_one[64] __attribute__((aligned(64)));
char access_global_two[640] __attribute__((aligned(64))) = {1};
char access_global_never[640] __attribute__((aligned(64))) = {1};
static void globals(long n)
{
    (void)n;
    reads(access_global_one + 3, 12);
    writes(access_global_two + 639, 5);
    reads(access_global_two, 6);
}

/* Snapshots: the same live block in each. */
CONTEXT(dumped)
static void dumps(long n)
{
    (void)n;
    char *p = dumped(100);
    for (int i = 0; i < 3; i++) {
        reads(p, 2);
        if (heapwise_dump)
            heapwise_dump();
    }
}

static void resets(long n)
{
    (void)n;
    char *p = dumped(100);
    reads(p, 1000);
    writes(access_global_one, 1000);
    if (heapwise_reset)
        heapwise_reset();
    reads(p, 7);
}

static void types(long n)
{
    (void)n;
    __heapwise_type = 0x1234567890abcdef;
    free(plain_hot(10));
    plain_live(10);
}

/* Numbers that 32 bits do not hold. */
static void many(long n)
{
    (void)n;
    char *p = plain_hot(10), *q = plain_live(100);
    for (int i = 0; i < 7; i++) {
        __heapwise_add_64(p, 1000000000, 3000000000);
        __heapwise_add_64(q + 64, 5, 1ul << 33);
    }
    p = realloc(p, 100000);
    reads(p, 1);
    free(p);
}

/* Words of 8 bytes: saturation, histogram, sharing of lines. */
CONTEXT(words_full)
CONTEXT(words_each)
CONTEXT(lines_apart)
CONTEXT(lines_together)
static char *line_block;
static void *count_apart(void *word)
{
    writes(line_block + 8 * (long)word, 10);
    return NULL;
}
static void words(long n)
{
    (void)n;
    char *full = words_full(64);
    reads(full + 8, 1000);
    writes(full + 16, 3);
    free(full);
    for (int round = 0; round < 3; round++) {
        char *each = words_each(1000);
        for (int i = 0; i < 125; i++) {
            reads(each + 8 * i, i % 50);
            writes(each + 8 * i + 7, 1);
        }
        if (round < 2)
            free(each);
    }
    for (int together = 0; together < 2; together++) {
        pthread_t thread[2];
        line_block = together ? lines_together(64) : lines_apart(64);
        for (long i = 0; i < 2; i++)
            pthread_create(&thread[i], NULL, count_apart, (void *)(together ? 0 : i));
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        free(line_block);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(long);
    } modes[] = {{"plain", plain},       {"bleed", bleed},     {"stale", stale},   {"large", large},
                 {"reallocs", reallocs}, {"threads", threads}, {"fork", forks},    {"aligned", aligned},
                 {"globals", globals},   {"dumps", dumps},     {"resets", resets}, {"types", types},
                 {"many", many},         {"words", words},     {"child", child},   {"sparse", sparsely}};
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0) {
            modes[i].run(argc > 2 ? atol(argv[2]) : 0);
            const char *way = argc > 3 ? argv[3] : "";
            if (!strcmp(way, "_exit"))
                _exit(0);
            if (!strcmp(way, "_Exit"))
                _Exit(0);
            if (!strcmp(way, "quick_exit"))
                quick_exit(0);
            if (!strcmp(way, "exit_group"))
                syscall(SYS_exit_group, 0);
            if (!strcmp(way, "errx"))
                errx(0, "the end");
            if (!strcmp(way, "pthread_exit"))
                pthread_exit(NULL);
            if (!strcmp(way, "daemon"))
                return daemon(1, 1);
            if (!strcmp(way, "vfork")) {
                pid_t pid = vfork();
                if (pid == 0)
                    execl("/bin/true", "true", (char *)NULL);
                waitpid(pid, NULL, 0);
                return system("true");
            }
            if (!strcmp(way, "exec fails"))
                return execl("/nowhere/at/all", "nowhere", (char *)NULL) != -1;
            if (!strcmp(way, "abort"))
                abort();
            if (!strcmp(way, "exec"))
                execlp("true", "true", (char *)NULL);
            if (*way)
                kill(getpid(), atoi(way));
            return 0;
        }
    return 3;
}
