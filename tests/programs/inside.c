/* inside.c - calls of the allocator inside which known things happen, and the same things outside of it.
 *
 * inside WHAT TIMES. Blocks of 40 MiB are always mapped by glibc: one mmap and one munmap each. What is checked here is
 * that the program does not notice; test_inside.c checks what was seen. */
#include "insidemalloc.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#define LARGE (40ul << 20)

static long times;
static volatile sig_atomic_t handled;

/* Mapped and unmapped inside the allocator. */
NOINLINE static void large_block(void)
{
    char *block = malloc(LARGE);
    MUST(block);
    block[0] = 1;
    KEEP(block);
    free(block);
}

static void large_blocks(void)
{
    for (long i = 0; i < times; i++)
        large_block();
}

/* None of these is the allocator's. */
static void calls_outside(int count)
{
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < count; i++) {
        void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(pages != MAP_FAILED && madvise(pages, 4096, MADV_DONTNEED) == 0);
        MUST(pthread_mutex_lock(&own) == 0);
        MUST(munmap(pages, 8192) == 0);
        MUST(pthread_mutex_unlock(&own) == 0);
    }
}

static void sized_blocks(size_t size)
{
    for (long i = 0; i < times; i++) {
        void *block = malloc(size);
        MUST(block);
        KEEP(block);
        free(block);
        calls_outside(3);
    }
}

/* ---- two threads and one lock ---- */

static void *keeper(void *unused)
{
    free(malloc(SIZE_KEEP));
    return NULL;
}

static void contend(void)
{
    for (long i = 0; i < times; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, keeper, NULL) == 0);
        free(malloc(SIZE_WAIT));
        MUST(pthread_join(thread, NULL) == 0);
    }
}

/* ---- glibc's own lock ---- */

static volatile int forking;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *allocate_meanwhile(void *spent)
{
    while (forking) {
        const uint64_t begin = now_ns();
        void *block = malloc(3000);
        KEEP(block);
        free(block);
        *(uint64_t *)spent += now_ns() - begin;
    }
    return NULL;
}

/* fork takes the locks of glibc's arenas, and keeps them while it copies: threads that allocate wait. Printed: how long
 * that can have been. */
static void fork_locks(void)
{
    const size_t size = 64ul << 20;
    pthread_t threads[3];
    uint64_t spent[3] = {0}, begin = now_ns();
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED);
    for (size_t i = 0; i < size; i += 4096)
        pages[i] = 1;
    forking = 1;
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, allocate_meanwhile, &spent[i]) == 0);
    for (long i = 0; i < times; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    forking = 0;
    for (int i = 0; i < 3; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    say("spent %lu of %lu ns\n", (unsigned long)(spent[0] + spent[1] + spent[2]), (unsigned long)(now_ns() - begin));
}

/* ---- lines of two threads ---- */

static void *neighbours[200];

static void *make_neighbours(void *unused)
{
    for (int i = 0; i < 200; i++)
        MUST((neighbours[i] = malloc(24)) != NULL);
    return NULL;
}

/* One operation that does something known, and then operations that do nothing but get a block on the line of another
 * thread's. */
static void share(void)
{
    pthread_t thread;
    int i = 0;
    MUST(pthread_create(&thread, NULL, make_neighbours, NULL) == 0 && pthread_join(thread, NULL) == 0);
    while (((uintptr_t)neighbours[i] ^ (uintptr_t)neighbours[i + 1]) >> 6)
        i++;
    free(malloc(SIZE_WAKE));
    free(malloc(SIZE_MUTEX));
    for (long n = 0; n < times; n++) {
        const uintptr_t before = (uintptr_t)neighbours[i];
        free(neighbours[i]);
        neighbours[i] = malloc(24);
        MUST((uintptr_t)neighbours[i] == before);
    }
}

/* ---- signals ---- */

static void on_usr1(int number)
{
    handled++;
    calls_outside(2);
    large_block();
}

static void handle(int number, void (*function)(int), bool mask_all)
{
    struct sigaction action = {.sa_handler = function}, old;
    if (mask_all)
        sigfillset(&action.sa_mask);
    MUST(sigaction(number, &action, NULL) == 0);
    MUST(sigaction(number, NULL, &old) == 0 && old.sa_handler == function);
    MUST(sigismember(&old.sa_mask, SIGSYS) == mask_all && sigismember(&old.sa_mask, SIGTERM) == mask_all);
}

static void interrupted(void)
{
    handle(SIGUSR1, on_usr1, false);
    sized_blocks(SIZE_SIGNAL);
    MUST(handled == times);
}

static sigjmp_buf out;

static void jump_out(int number)
{
    handled++;
    siglongjmp(out, 1);
}

static void jumped(void)
{
    handle(SIGUSR1, jump_out, false);
    for (volatile long i = 0; i < times; i++) {
        if (sigsetjmp(out, 1) == 0)
            free(malloc(SIZE_SIGNAL));
        calls_outside(2);
        large_block();
    }
    MUST(handled == times);
}

/* Masks with everything in them, as programs have them that leave signals to one thread. */
static void *masked_thread(void *unused)
{
    large_blocks();
    return NULL;
}

static void masked(void)
{
    sigset_t all, before, now;
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_SETMASK, &all, &before) == 0 && !sigismember(&before, SIGSYS));
    MUST(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGSYS) && sigismember(&now, SIGTERM));
    large_blocks();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, masked_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    MUST(sigprocmask(SIG_SETMASK, &before, &now) == 0 && sigismember(&now, SIGSYS));
    MUST(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && !sigismember(&now, SIGSYS));
    handle(SIGUSR1, on_usr1, true);
    for (long i = 0; i < times; i++)
        raise(SIGUSR1);
    /* In the middle of a wait that blocks all but one. */
    sigset_t one, others = all;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigdelset(&others, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &one, NULL) == 0);
    const struct timespec moment = {10, 0};
    raise(SIGUSR1);
    MUST(sigsuspend(&others) == -1 && errno == EINTR);
    raise(SIGUSR1);
    MUST(ppoll(NULL, 0, &moment, &others) == -1 && errno == EINTR);
    raise(SIGUSR1);
    MUST(pselect(0, NULL, NULL, NULL, &moment, &others) == -1 && errno == EINTR);
    MUST(handled == times + 3);
}

static void on_sys(int number, siginfo_t *information, void *context)
{
    MUST(number == SIGSYS);
    handled++;
    if (information->si_code == 1 /* SYS_SECCOMP */)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
    calls_outside(1);
}

static void handle_sys(void)
{
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO}, old;
    MUST(sigaction(SIGSYS, NULL, &old) == 0 && old.sa_handler == SIG_DFL && !(old.sa_flags & SA_SIGINFO));
    MUST(sigaction(SIGSYS, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    MUST(sigaction(SIGSYS, NULL, &old) == 0 && old.sa_sigaction == on_sys && old.sa_flags & SA_SIGINFO);
}

/* The program's own SIGSYS, also while it is blocked, also ignored. */
static void own_sys(void)
{
    sigset_t sys;
    handle_sys();
    large_blocks();
    MUST(handled == 0);
    raise(SIGSYS);
    MUST(handled == 1);
    sigemptyset(&sys);
    sigaddset(&sys, SIGSYS);
    MUST(sigprocmask(SIG_BLOCK, &sys, NULL) == 0);
    raise(SIGSYS);
    large_blocks();
    MUST(handled == 1);
    MUST(sigprocmask(SIG_UNBLOCK, &sys, NULL) == 0);
    MUST(handled == 2);
    MUST((void *)signal(SIGSYS, SIG_IGN) == (void *)on_sys);
    raise(SIGSYS);
    MUST(handled == 2);
    large_blocks();
    MUST(signal(SIGSYS, SIG_DFL) == SIG_IGN);
}

static void die_of_sys(void)
{
    large_blocks();
    raise(SIGSYS);
}

/* ---- filters ---- */

static void filter(unsigned number, unsigned action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void *filtered_thread(void *unused)
{
    large_blocks();
    return NULL;
}

/* The filter has no pity with rt_sigreturn: no handler may run from here on. */
static void filtered(void)
{
    large_blocks();
    filter(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS);
    large_blocks();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, filtered_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void trapped(void)
{
    handle_sys();
    large_blocks();
    filter(SYS_getpgid, SECCOMP_RET_TRAP);
    MUST(syscall(SYS_getpgid, 0) == 4711 && handled == 1);
    large_blocks();
    MUST(syscall(SYS_getpgid, 0) == 4711 && handled == 2);
}

/* ---- processes and threads ---- */

static void forked(void)
{
    large_blocks();
    pid_t child = fork();
    if (child == 0) {
        large_blocks();
        large_blocks();
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    large_blocks();
}

static void *one_large(void *unused)
{
    large_block();
    return NULL;
}

static void threads(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_t *all = calloc((size_t)times, sizeof *all);
    for (long begin = 0; begin < times; begin += 100) {
        for (long i = begin; i < begin + 100; i++)
            MUST(pthread_create(&all[i], &attributes, one_large, NULL) == 0);
        for (long i = begin; i < begin + 100; i++)
            MUST(pthread_join(all[i], NULL) == 0);
    }
    free(all);
}

/* A thread works with the heap in the last round of destructors, and ends. Meanwhile another one does so, too, and has
 * the state that was lent to the first one: while libc gives up the stack of that one, with all signals blocked. */
enum { LAST_STACK = 128 << 20 };
static pthread_key_t last_key;
static int last_called;

static bool blocks_signals(int thread)
{
    char text[4096];
    snprintf(text, sizeof text, "/proc/self/task/%d/status", thread);
    const int file = open(text, O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return true; /* it is gone */
    text[length] = 0;
    const char *mask = strstr(text, "SigBlk:");
    return mask && strtoull(mask + 7, NULL, 16) & 1ull << (SIGUSR1 - 1);
}

static void work_last(void)
{
    free(malloc(SIZE_MUTEX));
    __atomic_store_n(&last_called, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static void work_next(void)
{
    int thread;
    while (!(thread = __atomic_load_n(&last_called, __ATOMIC_ACQUIRE)) || !blocks_signals(thread)) {
    }
    free(malloc(SIZE_KEEP));
}

/* What a thread does in the last round of destructors. */
struct last_work {
    void (*work)(void);
    int round;
};

static void last_destructor(void *closure)
{
    struct last_work *last = closure;
    if (++last->round < PTHREAD_DESTRUCTOR_ITERATIONS)
        MUST(pthread_setspecific(last_key, last) == 0);
    else
        last->work();
}

static void *last_thread(void *closure)
{
    volatile char stack[LAST_STACK - (1 << 20)]; /* giving it up takes a while */
    for (size_t i = 0; i < sizeof stack; i += 4096)
        stack[i] = 1;
    free(malloc(100));
    MUST(pthread_setspecific(last_key, closure) == 0);
    return NULL;
}

static void *next_thread(void *closure)
{
    free(malloc(100));
    MUST(pthread_setspecific(last_key, closure) == 0);
    return NULL;
}

static void last_calls(void)
{
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, LAST_STACK) == 0);
    MUST(pthread_key_create(&last_key, last_destructor) == 0);
    for (long i = 0; i < times; i++) {
        pthread_t last, next;
        struct last_work last_one = {.work = work_last}, next_one = {.work = work_next};
        last_called = 0;
        MUST(pthread_create(&next, NULL, next_thread, &next_one) == 0);
        MUST(pthread_create(&last, &attributes, last_thread, &last_one) == 0 && pthread_join(last, NULL) == 0);
        free(malloc(SIZE_WAIT));
        MUST(pthread_join(next, NULL) == 0);
    }
}

/* A thread that ends on its own, on the smallest stack there is. */
static void *detached(void *done)
{
    large_block();
    __atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void small_stacks(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, 16384) == 0);
    MUST(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    for (long i = 0; i < times; i++) {
        int done = 0;
        pthread_t thread;
        MUST(pthread_create(&thread, &attributes, detached, &done) == 0);
        while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
            usleep(1000);
    }
    usleep(20000);
}

/* On another stack, of the least size that the kernel takes. */
static void on_alternate(int number)
{
    handled++;
    large_block();
}

static void alternate(void)
{
    static char stack[16384];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};
    MUST(sigaltstack(&other, NULL) == 0);
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    for (long i = 0; i < times; i++)
        raise(SIGUSR1);
    MUST(handled == times);
    large_blocks();
}

static const struct {
    const char *name;
    void (*run)(void);
    size_t size;
} programs[] = {
    {"large", large_blocks, 0},
    {"calls", NULL, SIZE_CALLS},
    {"mutex", NULL, SIZE_MUTEX},
    {"recursive", NULL, SIZE_RECURSIVE},
    {"contend", contend, 0},
    {"wake", NULL, SIZE_WAKE},
    {"share", share, 0},
    {"fork-locks", fork_locks, 0},
    {"thread", NULL, SIZE_THREAD},
    {"mask", NULL, SIZE_MASK},
    {"checked", NULL, SIZE_CHECKED},
    {"fork-inside", NULL, SIZE_FORK},
    {"faults", NULL, SIZE_FAULTS},
    {"held", NULL, SIZE_HELD},
    {"timed", NULL, SIZE_TIMED},
    {"interrupted", interrupted, 0},
    {"jumped", jumped, 0},
    {"masked", masked, 0},
    {"own-sys", own_sys, 0},
    {"die", die_of_sys, 0},
    {"filtered", filtered, 0},
    {"trapped", trapped, 0},
    {"forked", forked, 0},
    {"threads", threads, 0},
    {"small-stacks", small_stacks, 0},
    {"last-calls", last_calls, 0},
    {"alternate", alternate, 0},
};

int main(int argc, char **argv)
{
    times = argc > 2 ? atol(argv[2]) : 1;
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[1]) != 0)
            continue;
        if (programs[i].run)
            programs[i].run();
        else
            sized_blocks(programs[i].size);
        say("done\n");
        return 0;
    }
    return 2;
}
