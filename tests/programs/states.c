/* states.c - threads in all states when the program ends, each with blocks that only its stack, its thread-local data
 * or its specific data points to; also a module that is closed again. The names of functions say which class blocks
 * are of: see test_leaks.c. states EACH LIBRARY: how many threads of each kind, and a module. */
#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "stuckmalloc.h"

#define BLOCK(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }
BLOCK(reachable_by_stack_of_thread)
BLOCK(reachable_by_thread_local)
BLOCK(reachable_by_specific)
BLOCK(reachable_by_ending_thread)
BLOCK(definite_by_closed_module)
BLOCK(reachable_by_open_module)
BLOCK(definite_dropped)

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static __thread void *volatile local;
static sem_t semaphore;
static int pipes[2], ready, ended;
static const struct timespec hour = {.tv_sec = 3600};
extern int stuck_is_inside __attribute__((weak));

static void is_ready(void)
{
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
}

static void in_futex(void)
{
    pthread_mutex_lock(&held);
}
static void in_read(void)
{
    char byte;
    MUST(read(pipes[0], &byte, 1) != 1);
}
static void in_nanosleep(void)
{
    nanosleep(&hour, NULL);
}
static void in_epoll(void)
{
    struct epoll_event event;
    epoll_wait(epoll_create1(EPOLL_CLOEXEC), &event, 1, -1);
}
static void in_sigwait(void)
{
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &number);
}
static void in_semaphore(void)
{
    sem_wait(&semaphore);
}
static void in_pause_with_all_blocked(void)
{
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    pause();
}
static void busy(void)
{
    for (;;)
        sched_yield();
}
static void on_signal(int number)
{
    in_nanosleep();
}
static void in_handler(void)
{
    raise(SIGUSR1);
}

/* The child lives as long as this process. */
static void in_vfork(void)
{
    if (vfork() == 0) {
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        syscall(SYS_alarm, 300);
        for (;;)
            syscall(SYS_pause);
    }
    for (;;) /* once only, also where vfork is a fork (under Valgrind) */
        pause();
}

static void (*const kinds[])(void) = {
    in_futex,   in_read,  in_nanosleep, in_epoll, in_sigwait, in_semaphore, in_pause_with_all_blocked,
    in_handler, in_vfork, busy};
enum { KINDS = sizeof kinds / sizeof *kinds };

static NOINLINE void stay(void (*kind)(void), void *const volatile *block)
{
    is_ready();
    for (;;)
        kind();
    KEEP(block);
}

static void *waits(void *kind)
{
    void *volatile block = reachable_by_stack_of_thread(48);
    local = reachable_by_thread_local(56);
    pthread_setspecific(key, reachable_by_specific(64));
    stay(*(void (**)(void))kind, &block);
    return NULL;
}

/* In the destructor of its data. */
static void at_end(void *block)
{
    void *volatile kept = block;
    if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) {
        is_ready();
        for (;;)
            pause();
    }
    KEEP(kept);
}

static void *ends(void *end_key)
{
    pthread_setspecific(*(pthread_key_t *)end_key, reachable_by_ending_thread(72));
    return NULL;
}

/* Threads that come and go all the time. */
static void *nothing(void *unused)
{
    return NULL;
}
static void *comes_and_goes(void *unused)
{
    is_ready();
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

/* It holds the lock of the allocator. */
static void *in_malloc(void *unused)
{
    void *volatile block = reachable_by_stack_of_thread(80);
    free(malloc(STUCK));
    KEEP(block);
    return NULL;
}

/* A debugger has stopped it. */
static int traced_tid;
static void *traced(void *kind)
{
    traced_tid = gettid();
    return waits(kind);
}
static void trace(void)
{
    const pid_t parent = getpid();
    int status;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(300);
        MUST(ptrace(PTRACE_SEIZE, traced_tid, NULL, NULL) == 0 &&
             ptrace(PTRACE_INTERRUPT, traced_tid, NULL, NULL) == 0);
        MUST(waitpid(traced_tid, &status, __WALL) == traced_tid && WIFSTOPPED(status) && getppid() == parent);
        MUST(write(pipes[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    char byte;
    MUST(read(pipes[0], &byte, 1) == 1);
}

static NOINLINE void use_module(const char *library, bool close)
{
    void *const module = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    MUST(module);
    void **const kept = dlsym(module, "kept");
    MUST(kept);
    *kept = close ? definite_by_closed_module(88) : reachable_by_open_module(96);
    if (close)
        MUST(dlclose(module) == 0);
}

static NOINLINE void scrub(int depth)
{
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0;
    if (depth)
        scrub(depth - 1);
    KEEP(bytes);
}

static void start(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, function, argument) == 0);
}

static void wait_for(int count)
{
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < count)
        usleep(1000);
}

int main(int argc, char **argv)
{
    MUST(argc == 4);
    const int each = atoi(argv[1]);
    static pthread_key_t end_key;
    int count = 0;
    sigset_t set;
    alarm(300);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR1, on_signal);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    MUST(pipe(pipes) == 0 && sem_init(&semaphore, 0, 0) == 0);
    MUST(pthread_key_create(&key, NULL) == 0 && pthread_key_create(&end_key, at_end) == 0);
    pthread_mutex_lock(&held);
    use_module(argv[2], true);
    use_module(argv[3], false);
    definite_dropped(104);
    start(traced, (void *)&kinds[2]);
    wait_for(++count);
    trace();
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < (kinds[kind] == busy ? each > 0 : each); i++, count++)
            start(waits, (void *)&kinds[kind]);
    ended = 1;
    for (int i = 0; i < each; i++, count++)
        start(ends, &end_key);
    start(comes_and_goes, NULL);
    wait_for(++count);
    usleep(20000);
    if (&stuck_is_inside) {
        start(in_malloc, NULL);
        while (!__atomic_load_n(&stuck_is_inside, __ATOMIC_SEQ_CST))
            usleep(1000);
    }
    scrub(8);
    _exit(0);
}
