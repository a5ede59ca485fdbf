/* confined.c - gives up system calls by a filter that kills, and then does what the filter allows it: allocates, makes
 * threads, forks, opens a library. The filter permits what libc itself needs for that, argument by argument where the
 * runtime makes such a call in another way. test_confined.c runs it plain, too: that has to work.
 *
 * confined threads|many|fork|forked|library [PLUGIN], or strict: what the heap has room for; compiled by gcc and by
 * heapwise cc. bare: sets the filter by an instruction, which no library sees; announced: so, and says before that it
 * will. */
#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ROUNDS = 20000, THREADS = 4, DEPTH = 40 };
enum { MANY_THREADS = 7 }; /* from eight on glibc counts the processors, in a file */

/* ---- the filter ---- */

static struct sock_filter code[256];
static unsigned short length;

static void add(struct sock_filter instruction)
{
    MUST(length < sizeof code / sizeof *code);
    code[length++] = instruction;
}

static void load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void begin(void)
{
    load(offsetof(struct seccomp_data, nr));
}

static void allow(uint32_t number)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* Allows NUMBER if its ARGUMENT is one of COUNT values. */
static void allow_with(uint32_t number, unsigned argument, const uint32_t *values, uint8_t count)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(2 * count + 2)));
    load(offsetof(struct seccomp_data, args) + 8 * argument);
    for (uint8_t i = 0; i < count; i++)
        allow(values[i]);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

/* syscall(), not through libc. */
static long bare_call(long number, long a, long b, const void *c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

enum way { BY_LIBC, BARE, ANNOUNCED };

static void confine(enum way way, bool opens)
{
    static const uint32_t numbers[] = {
        SYS_write,  SYS_exit,     SYS_exit_group, SYS_clone, SYS_clone3,    SYS_set_robust_list,   SYS_rseq, SYS_futex,
        SYS_munmap, SYS_mprotect, SYS_mremap,     SYS_brk,   SYS_getrandom, SYS_sched_getaffinity, SYS_wait4};
    static const uint32_t for_libraries[] = {SYS_openat,  SYS_read,  SYS_fstat, SYS_newfstatat,
                                             SYS_pread64, SYS_close, SYS_mmap,  SYS_getcwd};
    static const uint32_t advice[] = {4 /* MADV_DONTNEED */, 102, 103 /* MADV_GUARD_INSTALL and _REMOVE */};
    static const uint32_t how[] = {0, 1, 2};      /* of sigprocmask, which pthread_create needs */
    static const uint32_t libcs_own[] = {32, 33}; /* signals */
    static const uint32_t no_file[] = {~0u};
    begin();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        allow(numbers[i]);
    for (size_t i = 0; opens && i < sizeof for_libraries / sizeof *for_libraries; i++)
        allow(for_libraries[i]);
    allow_with(SYS_madvise, 2, advice, 3);
    allow_with(SYS_rt_sigprocmask, 0, how, 3);
    allow_with(SYS_rt_sigaction, 0, libcs_own, 2);
    allow_with(SYS_mmap, 4, no_file, 1);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    const struct sock_fprog program = {length, code};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* a question, as libraries ask it: nothing has been given up yet */
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    if (way == ANNOUNCED) /* as docs/troubleshooting.md has it: it fails, and sets nothing */
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 1) == -1 && errno == EFAULT);
    if (way != BY_LIBC) {
        MUST(bare_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    } else if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        say("not possible: seccomp: %s\n", strerror(errno));
        _exit(77);
    }
}

/* ---- the work ---- */

struct node {
    struct node *next;
    long value, more[6];
};

/* A list that is made, read and freed; now and then something larger. */
static inline __attribute__((always_inline)) long list_work(int rounds)
{
    struct node *first = NULL;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        struct node *node = malloc(sizeof *node);
        MUST(node);
        node->value = i;
        node->next = first;
        first = node;
        if (i % 1000 == 999) {
            char *large = calloc(1, 200000 + (size_t)i);
            MUST(large);
            large[i] = 1;
            large = realloc(large, 400000 + (size_t)i);
            MUST(large && large[i] == 1);
            free(large);
            while (first) {
                node = first;
                sum += node->value;
                first = node->next;
                free(node);
            }
        }
    }
    HERE();
    return sum;
}

static const long expected = (long)ROUNDS * (ROUNDS - 1) / 2;

NOINLINE static void free_work(void)
{
    MUST(list_work(ROUNDS) == expected);
}

NOINLINE static void confined_work(void)
{
    MUST(list_work(ROUNDS) == expected);
}

NOINLINE static void child_work(void)
{
    MUST(list_work(ROUNDS) == expected);
}

NOINLINE static void thread_work(void)
{
    MUST(list_work(ROUNDS) == expected);
}

/* Deeper than before there were no system calls. */
NOINLINE static void deep_work(int depth)
{
    char room[4096];
    KEEP(room);
    if (depth)
        deep_work(depth - 1);
    else
        thread_work();
    HERE();
}

NOINLINE static void deep_main(int depth)
{
    char room[16384];
    KEEP(room);
    if (depth)
        deep_main(depth - 1);
    else
        confined_work();
    HERE();
}

static pthread_barrier_t barrier;

static void *in_thread(void *argument)
{
    void *const early = argument ? malloc(10) : NULL; /* all of them have used the heap before one ends */
    pthread_barrier_wait(&barrier);
    deep_work(DEPTH);
    free(early);
    return NULL;
}

static void make_threads(int count)
{
    pthread_t threads[MANY_THREADS];
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 1 << 20) == 0);
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], i % 2 ? &attributes : NULL, in_thread, count > THREADS ? &barrier : NULL) ==
             0);
    for (int i = 0; i < count; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static pthread_barrier_t started, confined;

/* A thread from before. */
static void *waits(void *argument)
{
    MUST(list_work(1000) == 999 * 500);
    pthread_barrier_wait(&started);
    pthread_barrier_wait(&confined);
    deep_work(DEPTH);
    return argument;
}

static void forks(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        child_work();
        make_threads(THREADS);
        _exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*run)(void) = library ? (void (*)(void))dlsym(library, "plugin_one_run") : NULL;
    MUST(run);
    run();
    MUST(dlclose(library) == 0);
}

/* No system call but write and exit: glibc's first heap of 132 KiB is enough for the program, with blocks made before
 * and after, and its end is not given back. */
static void strict_work(void)
{
    enum { BEFORE = 200, AFTER = 350, BYTES = 200 };
    static void *blocks[BEFORE + AFTER];
    for (int i = 0; i < BEFORE + AFTER; i++) {
        if (i == BEFORE)
            MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
        blocks[i] = malloc(BYTES);
        MUST(blocks[i]);
    }
    for (int i = BEFORE + AFTER; i-- > 0;)
        free(blocks[i]);
    static const char ok[] = "ok\n";
    syscall(SYS_exit, write(1, ok, 3) == 3 ? 0 : 95);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "strict") == 0)
        strict_work();
    const char *const what = argc > 1 ? argv[1] : "";
    const bool fork_first = strcmp(what, "forked") == 0;
    pthread_t before;
    free_work();
    if (fork_first) { /* the child has done nothing yet when it gives up system calls */
        int status;
        pid_t child = fork();
        if (child > 0) {
            MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
            return 0;
        }
    }
    const bool threads = strcmp(what, "threads") == 0;
    if (threads) {
        pthread_barrier_init(&started, NULL, 2);
        pthread_barrier_init(&confined, NULL, 2);
        MUST(pthread_create(&before, NULL, waits, NULL) == 0);
        pthread_barrier_wait(&started);
    }
    MUST(setenv("CONFINED", what, 1) == 0); /* the environment is not at the end of the stack any more */
    confine(strcmp(what, "bare") == 0 ? BARE : strcmp(what, "announced") == 0 ? ANNOUNCED : BY_LIBC, argc > 2);
    deep_main(DEPTH);
    if (threads) {
        pthread_barrier_wait(&confined);
        MUST(pthread_join(before, NULL) == 0);
    }
    if (threads || fork_first)
        make_threads(THREADS);
    if (strcmp(what, "many") == 0)
        make_threads(MANY_THREADS);
    if (strcmp(what, "fork") == 0)
        forks();
    if (argc > 2)
        open_library(argv[2]);
    static const char ok[] = "ok\n";
    _exit(write(1, ok, 3) == 3 ? 0 : 95);
}
