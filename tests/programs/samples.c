/* samples.c - a program whose accesses are sampled, in situations that a sampler could spoil. Says "fine" and exits
 * with 0 when everything is as it would be without. The first argument is what to do. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#ifndef NO_CONTEXTS /* musl has none */
#include <ucontext.h>
#endif
#include <unistd.h>
#ifndef NO_CONTEXTS
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

extern char **environ;

static void check(int right, const char *what)
{
    if (right)
        return;
    printf("wrong: %s (errno %d)\n", what, errno);
    fflush(stdout);
    _exit(1);
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- known shares ---- */

struct record {
    long often, never, seldom, written;
    long rest[4];
};
#define RECORDS 512

/* Of 16 accesses 4 read `often`, 2 read `seldom`, 2 write `written`, and 8 read the table. */
__attribute__((noinline, noclone)) static long use_records(struct record *records, const long *table, long rounds)
{
    long sum = 0;
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < RECORDS; i += 4) {
            volatile struct record *r = &records[i];
            const volatile long *t = &table[i & 127];
            sum += r[0].often + r[1].often + r[2].often + r[3].often;
            sum += t[0] + t[1] + t[2] + t[3];
            r[0].written = sum;
            r[2].written = sum;
            sum += t[0] + t[1] + t[2] + t[3];
            sum += r[1].seldom + r[3].seldom;
        }
    return sum;
}

static void known_shares(long rounds)
{
    struct record *records = calloc(RECORDS, sizeof *records);
    long *table = calloc(132, sizeof *table);
    long sum = use_records(records, table, rounds);
    check(sum == 0, "the sum");
    free(records);
    free(table);
}

/* Of the accesses 90, 9 and 1 % go to blocks of three sizes, at random: the processor foresees the usual way, and loses
 * time at the others. One in 26 goes to a fourth block, right behind a system call. */
static void branches(double seconds)
{
    volatile long *blocks[] = {malloc(5000), malloc(6000), malloc(7000), malloc(8000)};
    const double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
    unsigned random = 1;
    do
        for (int i = 0; i < 100000; i++) {
            random = random * 1664525u + 1013904223u;
            const unsigned chance = (random >> 16) % 100;
            volatile long *block = chance < 90 ? blocks[0] : chance < 99 ? blocks[1] : blocks[2];
            block[random & 511] += 1;
            if (i % 25 == 0) {
                syscall(SYS_getppid);
                blocks[3][random & 511] += 1;
            }
        }
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end);
    for (int i = 0; i < 4; i++)
        free((void *)blocks[i]);
}

static volatile long sink;

/* Allocates nothing: may be left by a jump. */
static void burn_in(long *block, double seconds)
{
    double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int k = 0; k < 200; k++)
            for (int i = 0; i < 1000; i++)
                sink += block[i]++;
}

static void burn(double seconds)
{
    long *block = malloc(1000 * sizeof *block);
    memset(block, 0, 1000 * sizeof *block);
    burn_in(block, seconds);
    free(block);
}

/* ---- flags ---- */

static void flags(void)
{
    double end = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) + 0.15;
    long looked = 0;
    while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++, looked++) {
            uint64_t value;
            __asm__ volatile("pushfq\n popq %0" : "=r"(value) : : "memory");
            check(!(value & 0x100), "the trap flag is visible");
            __asm__ volatile("pushfq\n popfq" : : : "memory", "cc");
        }
    check(looked > 1000, "flags");
}

/* ---- signals ---- */

static volatile sig_atomic_t alarms, traps;
static sigjmp_buf back;

static void on_alarm(int number)
{
    char *block = malloc(100);
    block[50] = 1;
    alarms++;
    free(block);
}

static void on_alarm_jump(int number)
{
    alarms++;
    siglongjmp(back, 1);
}

static void every_millisecond(void (*handler)(int), int signal)
{
    struct sigaction action = {.sa_handler = handler};
    struct itimerval often = {{0, 1000}, {0, 1000}};
    check(sigaction(signal, &action, NULL) == 0, "sigaction");
    check(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
}

static void no_more_alarms(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

static void handlers(void)
{
    every_millisecond(on_alarm, SIGALRM);
    burn(0.1);
    check(alarms > 10, "alarms");
    alarms = 0;
    volatile int jumps = 0;
    long *volatile block = calloc(1000, sizeof *block);
    if (sigsetjmp(back, 1) != 0)
        jumps++;
    else
        every_millisecond(on_alarm_jump, SIGALRM);
    if (jumps < 200)
        burn_in(block, 10);
    no_more_alarms();
    free(block);
    check(jumps >= 200, "jumps");
    burn(0.1);
}

static void on_trap(int number)
{
    traps++;
}

static void own_trap(void)
{
    struct sigaction old, action = {.sa_handler = on_trap};
    burn(0.1);
    check(sigaction(SIGTRAP, NULL, &old) == 0 && old.sa_handler == SIG_DFL && !(old.sa_flags & SA_SIGINFO),
          "SIGTRAP looks handled");
    check(sigaction(SIGTRAP, &action, &old) == 0 && old.sa_handler == SIG_DFL, "the old action");
    for (int i = 0; i < 100; i++) {
        __asm__ volatile("int3");
        burn(0.001);
    }
    check(traps == 100, "traps of the program's own");
}

static void hidden(void)
{
    burn(0.1);
    for (int number = 1; number <= 64; number++) {
        struct sigaction old;
        if (number == 32 || number == 33)
            continue;
        check(sigaction(number, NULL, &old) == 0, "sigaction");
        check(old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN, "a handler is visible");
    }
    check(signal(SIGTRAP, SIG_DFL) == SIG_DFL, "signal");
    burn(0.1);
    volatile int all = 0;
    for (int number = 34; number <= 64; number++)
        all += signal(number, on_trap) == SIG_DFL;
    check(all == 31, "all real-time signals");
    burn(0.1);
    check(traps == 0, "a signal that nobody sent");
}

static void *wait_for_signals(void *closure)
{
    sigset_t all;
    int number = 0;
    burn(0.1); /* something of the sampler's may wait by then */
    sigfillset(&all);
    check(sigwait(&all, &number) == 0 && number == SIGUSR1, "another signal than was sent");
    return NULL;
}

static void waiting(void)
{
    sigset_t all;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    check(pthread_create(&thread, NULL, wait_for_signals, NULL) == 0, "pthread_create");
    burn(0.1);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    int fd = signalfd(-1, &all, SFD_NONBLOCK);
    struct signalfd_siginfo information;
    burn(0.1);
    check(fd >= 0 && read(fd, &information, sizeof information) < 0, "a signal that nobody sent");
    struct timespec soon = {0, 1000000};
    check(sigtimedwait(&all, NULL, &soon) < 0 && errno == EAGAIN, "another signal that nobody sent");
}

/* No system call of the program may be interrupted. */
static void interrupted(void)
{
    int pipes[2];
    check(pipe(pipes) == 0, "pipe");
    for (int i = 0; i < 150; i++) {
        struct pollfd one = {pipes[0], POLLIN, 0};
        struct timespec moment = {0, 200000};
        burn(0.001);
        check(poll(&one, 1, 1) == 0, "poll");
        check(nanosleep(&moment, NULL) == 0, "nanosleep");
    }
}

/* A stack for signals that is too small for a frame and the sampler: nobody else may send signals there. */
static void small_stack(void)
{
    static char memory[4096];
    stack_t small = {.ss_sp = memory, .ss_size = sizeof memory}, old;
    check(sigaltstack(&small, NULL) == 0, "sigaltstack");
    memset(memory, 0x5a, sizeof memory);
    burn(0.15);
    for (size_t i = 0; i < sizeof memory; i++)
        check(memory[i] == 0x5a, "somebody used the stack");
    check(sigaltstack(NULL, &old) == 0 && old.ss_sp == memory, "the stack has changed");
}

#ifndef NO_CONTEXTS
static ucontext_t main_context, coroutine;
static volatile int turns;

static void run_coroutine(void)
{
    for (;;) {
        turns++;
        for (int i = 0; i < 2000; i++)
            sink += i;
        swapcontext(&coroutine, &main_context);
    }
}

static void coroutines(void)
{
    char *stack = malloc(16384);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = 16384;
    makecontext(&coroutine, run_coroutine, 0);
    double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + 0.15;
    int resumed = 0;
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end) {
        swapcontext(&main_context, &coroutine);
        resumed++;
    }
    check(turns == resumed, "turns");
    free(stack);
}
#else
static void coroutines(void)
{
}
#endif

/* ---- processes and threads ---- */

static void wait_for(pid_t child, const char *what)
{
    int status;
    check(child > 0 && waitpid(child, &status, 0) == child, what);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
}

static void processes(const char *self)
{
    for (int i = 0; i < 12; i++) {
        char *arguments[] = {(char *)self, "nothing", NULL};
        pid_t child;
        burn(0.004);
        if ((child = fork()) == 0) {
            free(malloc(10));
            burn(0.01);
            _exit(0);
        }
        wait_for(child, "fork");
        if ((child = vfork()) == 0) {
            execve(self, arguments, environ);
            _exit(9);
        }
        wait_for(child, "vfork");
        check(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0, "posix_spawn");
        wait_for(child, "posix_spawn");
    }
}

static void *short_life(void *closure)
{
    burn(0.004);
    return malloc(10);
}

static void many_threads(void)
{
    for (int round = 0; round < 20; round++) {
        pthread_t threads[8];
        void *result;
        for (int i = 0; i < 8; i++)
            check(pthread_create(&threads[i], NULL, short_life, NULL) == 0, "pthread_create");
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], &result);
            free(result);
        }
    }
}

static struct {
    volatile long first, second; /* on one line, each of one thread */
    long gap[14];
    volatile long both;
} * shared;

static void *use_shared(void *closure)
{
    double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + 1; /* long enough for samples of both on each line */
    volatile long *own = closure ? &shared->first : &shared->second;
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 20000; i++) {
            ++*own;
            if (i % 4 == 0)
                shared->both++;
        }
    return NULL;
}

static void sharing(void)
{
    pthread_t thread;
    check(posix_memalign((void **)&shared, 64, sizeof *shared) == 0, "memory");
    memset((void *)shared, 0, sizeof *shared);
    pthread_create(&thread, NULL, use_shared, NULL);
    use_shared(shared);
    pthread_join(thread, NULL);
    free((void *)shared);
}

/* ---- the rest ---- */

static void strings(void)
{
    size_t size = 8 << 20;
    char *from = malloc(size), *to = malloc(size);
    memset(from, 7, size);
    double end = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) + 0.15;
    while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < end) {
        void *destination = to;
        const void *source = from;
        size_t count = size, small = 40;
        __asm__ volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(count) : : "memory");
        check(destination == to + size && source == from + size && count == 0, "registers");
        for (int i = 0; i < 20000; i++) {
            destination = to;
            small = 40;
            __asm__ volatile("rep stosb" : "+D"(destination), "+c"(small) : "a"(i) : "memory");
        }
    }
    check(memcmp(to + 40, from + 40, size - 40) == 0, "a copy");
    free(from);
    free(to);
}

#ifdef NO_CONTEXTS /* nor the kernel's headers */
static void no_system_calls(void)
{
}
#else
static void no_system_calls(void)
{
    struct sock_filter allow_some[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof allow_some / sizeof *allow_some, allow_some};
    long *block = calloc(1000, sizeof *block);
    burn(0.1);
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
          "seccomp");
    for (long i = 0; i < 60000000; i++)
        sink += block[i % 1000]++;
}
#endif

/* ---- what faults: 64 pages of a block, each at its own offset, in this thread, two others and a child ---- */

#define FAULT_PAGES  64
#define FAULT_ROUNDS 5

__attribute__((noinline)) static void touch_pages(volatile char *pages)
{
    for (int round = 0; round < FAULT_ROUNDS; round++) {
        for (long i = 0; i < FAULT_PAGES; i++) {
            pages[i * 4096 + i * 8] = 1;
            pages[i * 4096 + 2048] = 1; /* no fault any more */
        }
        check(madvise((void *)pages, FAULT_PAGES * 4096, MADV_DONTNEED) == 0, "madvise");
    }
}

static void *fault(void *closure)
{
    void *block = NULL;
    check(posix_memalign(&block, 4096, FAULT_PAGES * 4096 + 123) == 0, "posix_memalign");
    check(madvise(block, FAULT_PAGES * 4096, MADV_NOHUGEPAGE) == 0, "madvise");
    check(madvise(block, FAULT_PAGES * 4096, MADV_DONTNEED) == 0, "madvise");
    touch_pages(block);
    free(block);
    return closure;
}

static void faults(void)
{
    pthread_t thread[2];
    fault(NULL);
    for (int i = 0; i < 2; i++)
        check(pthread_create(&thread[i], NULL, fault, NULL) == 0, "pthread_create");
    for (int i = 0; i < 2; i++)
        check(pthread_join(thread[i], NULL) == 0, "pthread_join");
    pid_t child = fork();
    if (child == 0) {
        fault(NULL);
        _exit(0);
    }
    int status = 1;
    check(waitpid(child, &status, 0) == child && status == 0, "child");
}

/* Closes every descriptor, and has the numbers for itself. */
static void closes(void)
{
    for (int fd = 3; fd < 2000; fd++)
        close(fd);
    for (int fd = 3; fd < 900; fd++)
        dup2(1, fd);
    fault(NULL);
    check(write(899, "", 0) == 0, "a descriptor of the program");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "nothing") == 0)
        return 0;
    if (strcmp(what, "shares") == 0)
        known_shares(argc > 2 ? atol(argv[2]) : 100000);
    else if (strcmp(what, "branches") == 0)
        branches(1.5);
    else if (strcmp(what, "flags") == 0)
        flags();
    else if (strcmp(what, "handlers") == 0)
        handlers();
    else if (strcmp(what, "own-trap") == 0)
        own_trap();
    else if (strcmp(what, "hidden") == 0)
        hidden();
    else if (strcmp(what, "waiting") == 0)
        waiting();
    else if (strcmp(what, "interrupted") == 0)
        interrupted();
    else if (strcmp(what, "small-stack") == 0)
        small_stack();
    else if (strcmp(what, "coroutines") == 0)
        coroutines();
    else if (strcmp(what, "processes") == 0)
        processes(argv[0]);
    else if (strcmp(what, "threads") == 0)
        many_threads();
    else if (strcmp(what, "sharing") == 0)
        sharing();
    else if (strcmp(what, "strings") == 0)
        strings();
    else if (strcmp(what, "faults") == 0)
        faults();
    else if (strcmp(what, "closes") == 0)
        closes();
    else if (strcmp(what, "seccomp") == 0)
        no_system_calls();
    else if (strcmp(what, "die") == 0) {
        burn(0.1);
        raise(SIGTRAP);
    } else if (strcmp(what, "breakpoint") == 0) {
        burn(0.1);
        __asm__ volatile("int3");
    } else
        check(0, "what to do");
    puts("fine");
    return 0;
}
