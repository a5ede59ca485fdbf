/* words.c - blocks of which certain words of 4 bytes are read and written; test_words.c knows which. The first argument
 * chooses what is done. Built by `heapwise cc --granule=4`. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* 64 bytes. */
struct mixed {
    int32_t first;     /* word 0 */
    int32_t unused_1;  /* 1 */
    int64_t wide;      /* 2, 3 */
    int16_t low, high; /* 4 */
    char bytes[12];    /* 5, 6, 7 */
    double real;       /* 8, 9 */
    int32_t four[4];   /* 10 to 13 */
    int64_t last;      /* 14, 15 */
};

struct packed {
    char head[2];
    int32_t odd;  /* over the border of two words */
    int64_t wide; /* over three */
} __attribute__((packed));

static volatile int sink;
char table[64] = "0123456789abcdefghijklmnopqrstuvwxyz";
int32_t counters[8];

#define BLOCK(name)                                                                                                    \
    static NOINLINE void *name(size_t bytes)                                                                           \
    {                                                                                                                  \
        void *block = malloc(bytes);                                                                                   \
        __asm__ volatile("/* " #name " */" : "+r"(block)); /* no two are the same */                                   \
        return block;                                                                                                  \
    }

BLOCK(of_fields)
BLOCK(of_borders)
BLOCK(of_copies)
BLOCK(of_sources)
BLOCK(of_elements)
BLOCK(of_sums)
BLOCK(of_strides)
BLOCK(of_conditions)
BLOCK(of_nothing)
BLOCK(of_grown)
BLOCK(of_shrunk)
BLOCK(of_hot)
BLOCK(of_lines)
BLOCK(of_both)
BLOCK(of_threads)
BLOCK(of_parent)
BLOCK(of_holes)
BLOCK(of_headers)
BLOCK(of_full)
BLOCK(of_child)
BLOCK(of_pairs)
BLOCK(of_live)
BLOCK(of_alike)

/* ---- patterns: the same in every run ---- */

static NOINLINE void fields(volatile struct mixed *m)
{
    m->first = 1;        /* written: 0 */
    sink = (int)m->wide; /* read: 2, and 3 unless the compiler reads half of it */
    m->high = 3;         /* written: 4 */
    sink = m->bytes[5];  /* read: 6 */
    m->real = 1.5;       /* written: 8, 9 */
    m->four[2]++;        /* both: 12 */
    m->last += 2;        /* both: 14, 15 */
}

static NOINLINE void borders(volatile struct packed *p)
{
    p->odd = 1;               /* written: 0, 1 */
    sink = (int)p->wide >> 1; /* read: 1, 2, 3 or, of the lower half, 1 and 2 */
}

static NOINLINE void copies(char *to, const char *from, size_t bytes)
{
    memcpy(to + 6, from + 9, bytes); /* 21: written 1 to 6, read 2 to 7 */
    __asm__ volatile("" ::: "memory");
}

struct element {
    int32_t a, b, c, d;
};

static NOINLINE void elements(struct element *e, int count)
{
    for (int i = 0; i < count; i++)
        e[i].b = i;
}

static NOINLINE int sums(const int32_t *a, int from, int to)
{
    int sum = 0;
    for (int i = from; i < to; i++)
        sum += a[i];
    return sum;
}

static NOINLINE void strides(char *a, int step, int count)
{
    for (int i = count - 1; i >= 0; i--)
        a[i * step] = (char)i;
}

static NOINLINE void conditions(int32_t *a, int which, int count)
{
    for (int i = 0; i < count; i++) {
        if (i == which)
            a[i] = i;
        else if (i == which + 2)
            a[i + 10] += i;
    }
}

static int patterns(void)
{
    for (volatile int i = 0; i < 3; i++) { /* not unrolled: one place */
        struct mixed *m = of_fields(sizeof *m);
        struct packed *p = of_borders(sizeof *p);
        char *to = of_copies(40), *from = of_sources(40);
        struct element *e = of_elements(10 * sizeof *e);
        int32_t *a = of_sums(400), *c = of_conditions(100);
        char *s = of_strides(400);
        fields(m);
        borders(p);
        copies(to, from, 21);
        elements(e, 10);
        sink = sums(a, 20, 90);
        strides(s, 13, 30); /* 0, 13, … 377 */
        conditions(c, 3, 9);
        of_nothing(64); /* not freed */
        free(m);
        free(p);
        free(to);
        free(from);
        free(e);
        free(a);
        free(s);
        free(c);
    }
    for (int i = 0; i < 8; i += 2)
        *(volatile int32_t *)&counters[i] = i;
    sink = *(volatile char *)&table[13];
    volatile int32_t *live = of_live(100);
    live[7] = 1;
    return 0;
}

/* ---- reallocation ---- */

static int reallocations(void)
{
    for (volatile int i = 0; i < 4; i++) { /* not unrolled: one place */
        volatile int32_t *grown = of_grown(40);
        grown[3] = 1;
        void *between = malloc(40); /* in the way */
        grown = realloc((void *)grown, 200000);
        grown[20] = 2;
        sink = grown[3];
        free((void *)grown);
        free(between);
        volatile int32_t *shrunk = of_shrunk(800);
        shrunk[100] = 1;
        shrunk[2] = 1;
        shrunk = realloc((void *)shrunk, 40);
        sink = shrunk[4];
        free((void *)shrunk);
    }
    return 0;
}

/* ---- periods ---- */

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* For MS milliseconds word 0 is used all the time, word 5 once, word 9 in the first half. Says in how many stretches of
 * SLOT milliseconds it has run at all, and in how many of the first half: other programs may have had the processor. */
static int hot(int ms, int slot)
{
    volatile int32_t *block = of_hot(64);
    int64_t begin = now_ms(), now, last = -1, last_half = -1;
    int slots = 0, slots_half = 0;
    block[5] = 1;
    while ((now = now_ms()) < begin + ms) {
        slots += now / slot != last;
        last = now / slot;
        if (now < begin + ms / 2) {
            slots_half += last != last_half;
            last_half = last;
        }
        for (int i = 0; i < 1000; i++) {
            block[0]++;
            if (now < begin + ms / 2)
                sink = block[9];
        }
    }
    free((void *)block);
    printf("%d %d\n", slots, slots_half);
    return 0;
}

/* ---- threads ---- */

static volatile int32_t *shared_line, *shared_word;
static pthread_barrier_t barrier;
static _Atomic int at_work = 2;

/* For 0.2 s of processor time, and until the other one has had as much: on a busy machine one would be through before
 * the other one begins. */
static void *side(void *closure)
{
    int which = (int)(intptr_t)closure;
    pthread_barrier_wait(&barrier);
    struct timespec now = {0};
    do { /* many periods: what is used in one or two may have been handed over */
        for (int i = 0; i < 1000; i++) {
            shared_line[which * 8]++;
            shared_word[3] = which;
        }
        const bool had_enough = now.tv_sec || now.tv_nsec >= 200000000;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        if (!had_enough && (now.tv_sec || now.tv_nsec >= 200000000))
            at_work--;
    } while (at_work > 0);
    return NULL;
}

static int lines(void)
{
    pthread_t threads[2];
    shared_line = (int32_t *)(((uintptr_t)of_lines(200) + 63) & ~63ul);
    shared_word = (int32_t *)(((uintptr_t)of_both(200) + 63) & ~63ul);
    pthread_barrier_init(&barrier, NULL, 2);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, side, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* Blocks of many sizes that come and go, while they are looked at; of each the same words are used. */
static void *churn(void *closure)
{
    enum { SLOTS = 64 };
    volatile int32_t *slot[SLOTS] = {0};
    uint64_t state = (uintptr_t)closure * 2654435761u + 1;
    int64_t end = now_ms() + 700;
    for (long n = 0; n % 64 || now_ms() < end; n++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        volatile int32_t **at = &slot[state >> 33 & (SLOTS - 1)];
        free((void *)*at);
        volatile int32_t *block = of_threads(48);
        block[2] = 1;
        sink = block[7];
        if (state >> 50 & 1) {
            block = realloc((void *)block, 48 + (state >> 40 & 1023));
            block[9] = 1;
        } else {
            block[9] = 2;
        }
        *at = block;
    }
    for (int i = 0; i < SLOTS; i++)
        free((void *)slot[i]);
    return NULL;
}

static int stress(void)
{
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- fork ---- */

static int forks(void)
{
    volatile int32_t *before = of_parent(64);
    before[1] = 1;
    pid_t child = fork();
    if (child == 0) {
        volatile int32_t *own = of_child(64);
        own[5] = 1;
        int64_t end = now_ms() + 200;
        while (now_ms() < end)
            own[6]++;
        free((void *)own);
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    sink = before[2];
    free((void *)before);
    return WEXITSTATUS(status);
}

/* ---- freed at two places ---- */

static NOINLINE void free_here(volatile int32_t *block)
{
    free((void *)block);
    __asm__ volatile("");
}

static NOINLINE void free_there(volatile int32_t *block)
{
    free((void *)block);
    __asm__ volatile("" ::: "memory");
}

static int pairs(void)
{
    for (volatile int i = 0; i < 5; i++) { /* not unrolled: one place */
        volatile int32_t *at[2];
        for (volatile int k = 0; k < 2; k++)
            at[k] = of_pairs(32);
        volatile int32_t *a = at[0], *b = at[1];
        a[1] = 1;
        sink = b[6];
        free_here(a);
        free_there(b);
    }
    return 0;
}

/* ---- what findings come from ---- */

enum { MANY_BLOCKS = 4000 };

static void use(volatile int32_t *block, int first, int end)
{
    for (int i = first; i < end; i++)
        block[i] = i;
}

/* Words 8 to 15 of 32 are used in no block; of 64 words only the first four, but in one block; all. All blocks live at
 * once. */
static int findings(bool any)
{
    static volatile int32_t *holes[MANY_BLOCKS], *headers[MANY_BLOCKS], *full[MANY_BLOCKS];
    for (volatile int i = 0; i < MANY_BLOCKS; i++) {
        full[i] = of_full(128);
        use(full[i], 0, 32);
        if (!any)
            continue;
        holes[i] = of_holes(128);
        use(holes[i], 0, 8);
        use(holes[i], 16, 32);
        headers[i] = of_headers(256);
        use(headers[i], 0, i ? 4 : 64);
    }
    for (volatile int i = 0; i < MANY_BLOCKS; i++) {
        free((void *)full[i]);
        free((void *)holes[i]);
        free((void *)headers[i]);
    }
    return 0;
}

/* ---- ends ---- */

extern int heapwise_dump(void) __attribute__((weak));

/* COUNT blocks that are used alike, but for the last one if ODD. */
static NOINLINE void alike(int count, bool odd)
{
    for (volatile int i = 0; i < count; i++) {
        volatile int32_t *block = of_alike(200);
        block[1] = i;
        sink = block[3];
        if (odd && i == count - 1)
            block[40] = i;
        free((void *)block);
    }
}

static int killed(void)
{
    alike(1000, true);
    kill(getpid(), SIGKILL);
    return 1;
}

static int dumped(void)
{
    volatile int32_t *live = of_live(100);
    for (volatile int i = 0; i < 2; i++) { /* not unrolled: one place */
        alike(3, false);
        live[2 + 2 * i] = 1;
        if (i == 0 && (!heapwise_dump || heapwise_dump() != 0))
            return 1;
    }
    return 0;
}

static int seccomp(void)
{
    volatile int32_t *live = of_live(100);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    for (volatile int i = 0; i < 2; i++) { /* not unrolled: one place */
        alike(100, false);
        live[2 + 2 * i] = 1;
        if (i == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0))
            return 1;
    }
    return 0;
}

static int many(void)
{
    enum { BLOCKS = 300000 };
    static volatile int32_t *blocks[BLOCKS];
    struct timespec cpu, wall;
    int64_t begin = now_ms();
    uint64_t state = 1;
    for (volatile int i = 0; i < BLOCKS; i++)
        blocks[i] = of_full(64);
    while (now_ms() < begin + 700)
        for (int i = 0; i < 10000; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            blocks[(state >> 33) % BLOCKS][state >> 60] = i;
        }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    clock_gettime(CLOCK_MONOTONIC, &wall);
    printf("%.0f %.0f\n", (double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec,
           ((double)wall.tv_sec * 1e3 - (double)begin) * 1e6 + (double)wall.tv_nsec);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "patterns";
    if (!strcmp(what, "reallocations"))
        return reallocations();
    if (!strcmp(what, "hot"))
        return hot(argc > 2 ? atoi(argv[2]) : 400, argc > 3 ? atoi(argv[3]) : 20);
    if (!strcmp(what, "killed"))
        return killed();
    if (!strcmp(what, "dumped"))
        return dumped();
    if (!strcmp(what, "seccomp"))
        return seccomp();
    if (!strcmp(what, "many"))
        return many();
    if (!strcmp(what, "lines"))
        return lines();
    if (!strcmp(what, "stress"))
        return stress();
    if (!strcmp(what, "forks"))
        return forks();
    if (!strcmp(what, "pairs"))
        return pairs();
    if (!strcmp(what, "findings") || !strcmp(what, "no findings"))
        return findings(*what == 'f');
    return patterns();
}
