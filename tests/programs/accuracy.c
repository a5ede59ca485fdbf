/* accuracy.c - accesses whose numbers are known: accuracy CASE. See e2e/test_accuracy.c.
 *
 * Every access to a block is volatile, so that each compiler at each level leaves exactly those that are written here.
 * A context is named by the function that makes its blocks. */
#include "program.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

typedef volatile uint8_t byte;
typedef volatile uint64_t word;

/* A function NAME(size) that makes blocks of a context of its own. */
#define MAKER(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }

NOINLINE static void write_bytes(byte *block, size_t from, size_t to, unsigned times)
{
    for (unsigned t = 0; t < times; t++)
        for (size_t i = from; i < to; i++)
            block[i] = (uint8_t)t;
}

NOINLINE static unsigned read_bytes(byte *block, size_t from, size_t to, unsigned times)
{
    unsigned sum = 0;
    for (unsigned t = 0; t < times; t++)
        for (size_t i = from; i < to; i++)
            sum += block[i];
    return sum;
}

static void write_once(void *block)
{
    *(byte *)block = 1;
}

/* ---- blocks own their cells ---- */

MAKER(bleed_hot)
MAKER(bleed_cold)
MAKER(bleed_node)

struct node {
    struct node *volatile next;
    word value[7];
};

/* 64 blocks of 32 bytes that nobody touches, each between two that are written 500 times and read 500 times. A list of
 * a hundred nodes of 64 bytes, walked eleven times: 2 writes and 21 reads a node (the last is not walked past). */
static void case_bleed(void)
{
    void *hot[65], *cold[64];
    for (int i = 0; i < 65; i++) {
        hot[i] = bleed_hot(32);
        if (i < 64)
            cold[i] = bleed_cold(32);
    }
    for (int i = 0; i < 65; i++) {
        write_bytes(hot[i], 31, 32, 500);
        read_bytes(hot[i], 0, 1, 500);
    }
    for (int i = 0; i < 65; i++) {
        free(hot[i]);
        if (i < 64)
            free(cold[i]);
    }
    struct node *first = NULL;
    for (int i = 0; i < 100; i++) {
        struct node *node = bleed_node(sizeof *node);
        node->next = first;
        node->value[6] = 1;
        first = node;
    }
    uint64_t sum = 0;
    for (int round = 0; round < 11; round++)
        for (struct node *node = first; node; node = node->next)
            sum += node->value[6];
    MUST(sum == 1100);
    while (first) {
        struct node *rest = first->next;
        free(first);
        first = rest;
    }
}

MAKER(reuse_old)
MAKER(reuse_new)
MAKER(reuse_once)
MAKER(reuse_shrunk)

/* Memory that was hot is handed out again: sizes in all classes of an allocator. New blocks have not been accessed
 * (1000 of them, the last of each size once). Shrinking gives a tail away. */
static void case_reuse(void)
{
    static const size_t sizes[] = {1,  4,  7,  8,   9,   16,  24,   31,   32,     33,    40,
                                   63, 64, 65, 100, 128, 200, 1000, 5000, 100000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int k = 0; k < 40; k++) {
            byte *old = reuse_old(sizes[i]);
            write_bytes(old, 0, sizes[i], 2);
            free((void *)old);
            free(reuse_new(sizes[i]));
        }
        byte *once = reuse_once(sizes[i]);
        once[sizes[i] - 1] = 1;
        free((void *)once);
    }
    for (int i = 0; i < 50; i++) {
        byte *block = reuse_shrunk(4000);
        write_bytes(block, 0, 4000, 1);
        block = realloc((void *)block, 48);
        void *tail[40];
        for (int k = 0; k < 40; k++)
            tail[k] = reuse_new(64);
        free((void *)block);
        for (int k = 0; k < 40; k++)
            free(tail[k]);
    }
}

MAKER(small_0)
MAKER(small_1)
MAKER(small_2)
MAKER(small_3)
MAKER(small_4)
MAKER(small_5)
MAKER(small_6)
MAKER(small_7)
MAKER(small_8)

/* Blocks under eight bytes, neighbours of each other; of N bytes each byte is written N times. */
static void case_small(void)
{
    static void *(*const makers[])(size_t) = {small_0, small_1, small_2, small_3, small_4,
                                              small_5, small_6, small_7, small_8};
    void *blocks[9][50];
    for (int k = 0; k < 50; k++)
        for (size_t size = 0; size <= 8; size++)
            blocks[size][k] = makers[size](size);
    for (int k = 0; k < 50; k++)
        for (size_t size = 0; size <= 8; size++)
            write_bytes(blocks[size][k], 0, size, (unsigned)size);
    for (int k = 0; k < 50; k++)
        for (size_t size = 0; size <= 8; size++)
            free(blocks[size][k]);
}

NOINLINE static void *aligned_make(size_t alignment, size_t size)
{
    void *block = aligned_alloc(alignment, size);
    KEEP(block);
    return block;
}

NOINLINE static void *zeroed_make(size_t size)
{
    void *block = calloc(1, size);
    KEEP(block);
    return block;
}

/* Aligned blocks and those of calloc: each byte written once. */
static void case_aligned(void)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        byte *block = aligned_make(alignment, alignment);
        MUST((uintptr_t)block % alignment == 0);
        write_bytes(block, 0, alignment, 1);
        free((void *)block);
        byte *zeroed = zeroed_make(alignment);
        MUST(read_bytes(zeroed, 0, alignment, 1) == 0);
        free((void *)zeroed);
    }
}

/* ---- threads ---- */

MAKER(threads_common)
MAKER(threads_own)

enum { MOST_THREADS = 200 };
static pthread_barrier_t barrier;
static word *common;
static unsigned long accesses_each;

static void *thread_main(void *argument)
{
    word *own = threads_own(64);
    pthread_barrier_wait(&barrier);
    for (unsigned long i = 0; i < accesses_each; i++)
        (void)common[i % 8];
    for (unsigned long i = 0; i < accesses_each; i++)
        own[i % 8] = i;
    pthread_barrier_wait(&barrier);
    free((void *)own);
    return argument;
}

static void run_threads(int count, unsigned long each)
{
    pthread_t threads[MOST_THREADS];
    accesses_each = each;
    common = threads_common(64);
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0);
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free((void *)common);
}

static void case_two_threads(void)
{
    run_threads(2, 20000000);
}

static void case_sixteen_threads(void)
{
    run_threads(16, 500000);
}

static void case_many_threads(void)
{
    run_threads(MOST_THREADS, 20000);
}

/* Threads one after the other, more than there can be at once. */
static void case_passing_threads(void)
{
    for (int i = 0; i < 300; i++)
        run_threads(2, 100);
}

/* ---- who shares ---- */

MAKER(share_none)
MAKER(share_readers)
MAKER(share_handed)
MAKER(share_one_writer)
MAKER(share_writers)
MAKER(share_words)
MAKER(share_padded)

static struct {
    word *none[2], *readers, *handed, *one_writer, *writers, *words, *padded;
} shared;

static void *share_main(void *argument)
{
    int me = argument != NULL;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++) {
        shared.none[me][i % 8] = 1;
        (void)shared.readers[i % 8];
        if (me)
            shared.one_writer[i % 8] = 1;
        else
            (void)shared.one_writer[i % 8];
        shared.writers[0] = 1;
        shared.words[me * 7] = 1;  /* the first and the last word of one line */
        shared.padded[me * 8] = 1; /* a line each */
    }
    if (!me)
        shared.handed[0] = 1;
    pthread_barrier_wait(&barrier);
    if (me)
        shared.handed[0] = 2;
    pthread_barrier_wait(&barrier);
    return NULL;
}

NOINLINE static void *share_line(void *(*make)(size_t), size_t size)
{
    /* Lines are real ones here: a block of the maker's that starts on one. */
    for (;;) {
        void *block = make(size);
        if ((uintptr_t)block % 64 == 0)
            return block;
    }
}

static void case_share(void)
{
    pthread_t threads[2];
    shared.none[0] = share_line(share_none, 64);
    shared.none[1] = share_line(share_none, 64);
    shared.readers = share_line(share_readers, 64);
    shared.handed = share_line(share_handed, 64);
    shared.one_writer = share_line(share_one_writer, 64);
    shared.writers = share_line(share_writers, 64);
    shared.words = share_line(share_words, 64);
    shared.padded = share_line(share_padded, 128);
    MUST(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, share_main, i ? &barrier : NULL) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* ---- sizes and numbers ---- */

MAKER(huge_4g)
MAKER(huge_4g_16)
MAKER(huge_6g)

static void case_huge(void)
{
    static const size_t G = (size_t)1 << 30;
    static const struct {
        void *(*make)(size_t);
        size_t size;
    } blocks[] = {{huge_4g, 4 * G}, {huge_4g_16, 4 * G + 16}, {huge_6g, 6 * G}};
    for (int i = 0; i < 3; i++) {
        byte *block = blocks[i].make(blocks[i].size);
        if (!block) {
            say("no memory\n");
            return;
        }
        block[0] = 1;
        block[blocks[i].size / 2 + 100] = 1;
        (void)block[blocks[i].size - 1];
        free((void *)block);
        byte *again = blocks[i].make(blocks[i].size); /* not touched */
        free((void *)again);
    }
}

MAKER(dense_byte)
MAKER(dense_live)

/* 60 million accesses to one byte: a hundred times that does not fit into 32 bits. */
static void case_dense(void)
{
    byte *block = dense_byte(1), *live = dense_live(1);
    for (int i = 0; i < 30000000; i++) {
        block[0]++;
        live[0]++;
    }
    free((void *)block);
}

MAKER(over_word)

/* 5 * 2^30 reads of one word, with an allocation now and then. */
static void case_over(void)
{
    word *block = over_word(8);
    for (int round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < (1ull << 30) / 32; i++) {
#define READ_4 (void)*block, (void)*block, (void)*block, (void)*block
            READ_4, READ_4, READ_4, READ_4, READ_4, READ_4, READ_4, READ_4;
        }
        free(dense_byte(1));
    }
    *block = 1;
    free((void *)block);
}

MAKER(hist_hot)
MAKER(hist_cool)

/* A word read two million times; a block with words read 0 to 7 times. */
static void case_histogram(void)
{
    word *hot = hist_hot(64), *cool = hist_cool(64);
    for (int i = 0; i < 2000000; i++)
        (void)hot[3];
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            (void)cool[i];
    free((void *)hot);
    free((void *)cool);
}

/* ---- how well used ---- */

MAKER(use_never)
MAKER(use_written)
MAKER(use_read)
MAKER(use_quarter)
MAKER(use_all)

static void case_use(void)
{
    for (int i = 0; i < 10; i++) {
        byte *never = use_never(100), *written = use_written(100), *read = use_read(100);
        write_once((void *)written);
        write_once((void *)read);
        read_bytes(read, 0, 1, 3);
        if (i % 2) /* the others live on */
            free((void *)never), free((void *)written), free((void *)read);
        byte *quarter = use_quarter(4096), *all = use_all(4096);
        for (size_t at = 0; at < 1024; at += 64)
            for (int k = 0; k < 5; k++)
                quarter[at] = 1;
        for (size_t at = 0; at < 4096; at += 64)
            all[at] = 1;
        free((void *)quarter);
        free((void *)all);
    }
}

/* ---- realloc ---- */

MAKER(grow_chain)
MAKER(grow_huge)

/* Ten writes at each size. */
static void case_grow(void)
{
    byte *block = grow_chain(10);
    size_t size = 10;
    for (int i = 0; i < 50; i++) {
        write_bytes(block, 0, 10, 1);
        size += size / 3 + 7;
        block = realloc((void *)block, size);
    }
    write_bytes(block, 0, 10, 1);
    free((void *)block);
    block = grow_huge(200000);
    for (int i = 0; i < 12; i++) {
        write_bytes(block, 199000, 199100, 1);
        block = realloc((void *)block, (size_t)400000 << i);
        KEEP(grow_chain(100000));
    }
    free((void *)block);
}

/* ---- lifetimes ---- */

MAKER(life_short)
MAKER(life_long)

static void case_lifetime(void)
{
    for (int i = 0; i < 100; i++) {
        byte *block = life_short(100);
        write_bytes(block, 0, 10, 10);
        free((void *)block);
    }
    byte *block = life_long(100);
    write_bytes(block, 0, 10, 10);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    free((void *)block);
}

/* ---- fork, and the ways to end ---- */

MAKER(fork_parent)
MAKER(fork_child)

static void case_fork(void)
{
    byte *before = fork_parent(100), *freed = fork_parent(100);
    write_bytes(before, 0, 100, 10);
    write_bytes(freed, 0, 100, 10);
    free((void *)freed);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        byte *own = fork_child(100);
        write_bytes(own, 0, 100, 3);
        read_bytes(before, 0, 7, 1);
        free((void *)before);
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    read_bytes(before, 0, 5, 1);
}

MAKER(end_freed)
MAKER(end_live)

/* 50 writes to a block that is freed, 30 to one that is not. */
static void before_the_end(void)
{
    byte *freed = end_freed(64), *live = end_live(64);
    write_bytes(freed, 0, 50, 1);
    free((void *)freed);
    write_bytes(live, 0, 30, 1);
    KEEP(live);
}

static void *end_thread(void *argument)
{
    exit(3);
}

static void end_by(const char *how)
{
    before_the_end();
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(3);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(3);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "SIGTERM") == 0)
        raise(SIGTERM);
    if (strcmp(how, "SIGINT") == 0)
        raise(SIGINT);
    if (strcmp(how, "SIGSEGV") == 0)
        *(volatile int *)(uintptr_t)8 = 1;
    if (strcmp(how, "SIGKILL") == 0)
        raise(SIGKILL);
}

/* ---- against other counts ---- */

MAKER(kernel_matrix)
MAKER(kernel_list)
MAKER(kernel_table)
MAKER(kernel_swap)

struct list {
    struct list *volatile next;
    word key;
};

/* Words of eight bytes only: bytes that DHAT counts are eight times the accesses. */
static void case_kernels(void)
{
    enum { SIDE = 12, NODES = 300 };
    word *a = kernel_matrix(SIDE * SIDE * 8), *b = kernel_matrix(SIDE * SIDE * 8), *c = kernel_matrix(SIDE * SIDE * 8);
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = (uint64_t)i, b[i] = 2;
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            c[i * SIDE + j] = 0;
            for (int k = 0; k < SIDE; k++)
                c[i * SIDE + j] += a[i * SIDE + k] * b[k * SIDE + j];
        }
    }
    struct list *first = NULL;
    for (int i = 0; i < NODES; i++) {
        struct list *node = kernel_list(sizeof *node);
        node->next = first;
        node->key = (uint64_t)i * 7 % 100;
        first = node;
    }
    uint64_t found = 0;
    for (uint64_t key = 0; key < 100; key += 3)
        for (struct list *node = first; node; node = node->next)
            if (node->key == key) {
                found++;
                break;
            }
    word *table = kernel_table(1024 * 8);
    for (int i = 0; i < 1024; i++)
        table[i] = 0;
    for (uint64_t i = 0; i < 5000; i++)
        table[i * i % 1024]++;
    word *swap = kernel_swap(100 * 8);
    for (int i = 0; i < 100; i++)
        swap[i] = (uint64_t)(i * 37 % 100);
    for (int i = 0; i < 100; i++)
        for (int k = 1; k < 100 - i; k++)
            if (swap[k - 1] > swap[k]) {
                uint64_t lower = swap[k];
                swap[k] = swap[k - 1];
                swap[k - 1] = lower;
            }
    MUST(found == 34 && swap[99] == 99);
    while (first) {
        struct list *rest = first->next;
        free(first);
        first = rest;
    }
    free((void *)a);
    free((void *)b);
    free((void *)c);
    free((void *)table);
    free((void *)swap);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"bleed", case_bleed},
    {"reuse", case_reuse},
    {"small", case_small},
    {"aligned", case_aligned},
    {"two_threads", case_two_threads},
    {"sixteen_threads", case_sixteen_threads},
    {"many_threads", case_many_threads},
    {"passing_threads", case_passing_threads},
    {"share", case_share},
    {"huge", case_huge},
    {"dense", case_dense},
    {"over", case_over},
    {"histogram", case_histogram},
    {"use", case_use},
    {"grow", case_grow},
    {"lifetime", case_lifetime},
    {"fork", case_fork},
    {"kernels", case_kernels},
};

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "end") == 0) {
        end_by(argv[2]);
        return 3;
    }
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 2;
}
