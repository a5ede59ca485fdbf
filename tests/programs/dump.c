/* dump.c - programs that are dumped, or dump themselves: the case is the first argument. Where a test has to act, the
 * program says "ready" and goes on until the file that its second argument names is there. */
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "heapwise/heapwise.h"

enum { DUMP_SIGNAL = 62, MOST_THREADS = 8 };

static void *volatile blocks[100000];
static _Atomic int stop;
static const char *until;

static void nap(long milliseconds)
{
    struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static void ready_until_told(void)
{
    say("ready\n");
    for (int i = 0; i < 6000 && access(until, F_OK) != 0; i++)
        nap(10);
}

NOINLINE static void *one_block(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

NOINLINE static void *before_reset(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

NOINLINE static void *after_reset(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

NOINLINE static void churn(unsigned round)
{
    void *a = malloc(1 + round % 300), *b = malloc(500);
    KEEP(a);
    b = realloc(b, 700);
    KEEP(b);
    free(a);
    free(b);
}

static void *churner(void *unused)
{
    for (unsigned i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
        churn(i);
    return unused;
}

static pthread_t threads[MOST_THREADS];
static int thread_count;

static void start_threads(int count)
{
    thread_count = count;
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, churner, NULL) == 0);
}

static void end_threads(void)
{
    stop = 1;
    for (int i = 0; i < thread_count; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

/* ---- cases ---- */

static void three(void)
{
    blocks[0] = one_block(100);
    for (int i = 0; i < 3; i++)
        MUST(heapwise_dump() == 0);
}

static void sleeping(void)
{
    blocks[0] = one_block(100);
    ready_until_told();
}

static void map_more(int number)
{
    static char said = '0';
    char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 1, 1 << 20);
    MUST(write(STDOUT_FILENO, &said, 1) == 1);
    said++;
}

/* Maps another MiB at each signal, and does not use the heap. */
static void maps(void)
{
    blocks[0] = one_block(100);
    map_more(0);
    MUST(signal(SIGUSR1, map_more) == SIG_DFL);
    ready_until_told();
}

static void busy(void)
{
    blocks[0] = one_block(100);
    start_threads(4);
    ready_until_told();
    end_threads();
}

static void reset(void)
{
    for (int i = 0; i < 3; i++)
        blocks[i] = before_reset(1000);
    free(blocks[0]);
    blocks[3] = before_reset(50);
    MUST(heapwise_reset() == 0);
    free(blocks[1]);
    blocks[3] = realloc(blocks[3], 80);
    for (int i = 10; i < 15; i++)
        blocks[i] = after_reset(10);
    free(blocks[10]);
    free(blocks[11]);
    MUST(heapwise_dump() == 0);
}

/* A child forgets, too: what it inherited becomes live. */
static void reset_in_child(void)
{
    for (int i = 0; i < 3; i++)
        blocks[i] = before_reset(1000);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        free(blocks[0]);
        blocks[10] = after_reset(10);
        MUST(heapwise_reset() == 0);
        free(blocks[1]);
        free(blocks[10]);
        blocks[11] = after_reset(20);
        MUST(heapwise_reset() == 0);
        blocks[12] = after_reset(20);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void reset_with_threads(void)
{
    blocks[0] = before_reset(1000);
    start_threads(4);
    for (int i = 0; i < 200; i++) {
        MUST(heapwise_reset() == 0);
        blocks[1 + i] = after_reset(10);
        nap(1);
    }
    end_threads();
    MUST(heapwise_reset() == 0);
}

static void periodic(void)
{
    for (int i = 0; i < 100; i++) {
        blocks[i] = one_block(10);
        nap(10);
    }
}

static _Atomic int handled;

static void dump_in_handler(int number)
{
    (void)number;
    if (handled < 200 && heapwise_dump() == 0)
        handled++;
}

/* Signals that interrupt the runtime and the allocator as often as everything else. */
static void handler(void)
{
    struct sigaction action = {.sa_handler = dump_in_handler, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (handled < 100)
        for (unsigned i = 0; i < 1000; i++)
            churn(i);
    often = (struct itimerval){{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    churn(0);
}

static void *dumper(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        MUST(heapwise_dump() == 0);
    return unused;
}

/* Children that are forked in the middle of a dump have dumps of their own. */
static void forks(void)
{
    pthread_t other;
    blocks[0] = one_block(100);
    MUST(pthread_create(&other, NULL, dumper, NULL) == 0);
    start_threads(2);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            if (i % 2)
                blocks[1] = after_reset(10);
            MUST(heapwise_dump() == 0);
            blocks[2] = after_reset(10);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    end_threads();
    MUST(pthread_join(other, NULL) == 0);
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    MUST(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

static long resident_kilobytes(void)
{
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    MUST(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * 4;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* Many dumps under load cost neither descriptors nor memory. */
static void hundred(void)
{
    start_threads(3);
    for (int i = 0; i < 10; i++)
        MUST(heapwise_dump() == 0);
    int descriptors = count_descriptors();
    long resident = resident_kilobytes();
    for (int i = 0; i < 100; i++)
        MUST(heapwise_dump() == 0);
    MUST(count_descriptors() == descriptors);
    say("%ld KiB more\n", resident_kilobytes() - resident);
    MUST(resident_kilobytes() - resident < 1024);
    end_threads();
}

/* How long a dump takes with a million live blocks, and for how long it stops the others. */
static _Atomic double longest;

static void *stopwatch(void *unused)
{
    for (unsigned i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        double begin = seconds();
        churn(i);
        double took = seconds() - begin;
        if (took > longest)
            longest = took;
    }
    return unused;
}

static void million(void)
{
    static void **many;
    many = malloc(1000000 * sizeof *many);
    for (int i = 0; i < 1000000; i++)
        many[i] = one_block(16 + (size_t)i % 64);
    pthread_t other;
    MUST(pthread_create(&other, NULL, stopwatch, NULL) == 0);
    nap(100);
    double usual = longest;
    longest = 0;
    double begin = seconds(), busy = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    MUST(heapwise_dump() == 0);
    say("dump: %.2f ms (%.2f ms of the processor); longest event: %.3f ms, without a dump %.3f ms\n",
        1e3 * (seconds() - begin), 1e3 * (seconds_of(CLOCK_THREAD_CPUTIME_ID) - busy), 1e3 * longest, 1e3 * usual);
    stop = 1;
    MUST(pthread_join(other, NULL) == 0);
}

/* The program's own business with the signal. */
static volatile sig_atomic_t own_signals;

static void own_handler(int number)
{
    (void)number;
    own_signals++;
}

static void takes_signal(void)
{
    struct sigaction action = {.sa_handler = own_handler}, old;
    MUST(sigaction(DUMP_SIGNAL, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    MUST(sigaction(DUMP_SIGNAL, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    MUST(sigaction(DUMP_SIGNAL, NULL, &old) == 0 && old.sa_handler == own_handler);
    MUST(raise(DUMP_SIGNAL) == 0 && own_signals == 1);
    sleeping();
    MUST(own_signals == 1);
}

static void takes_signal_simply(void)
{
    MUST(signal(DUMP_SIGNAL, own_handler) == SIG_DFL);
    MUST(signal(DUMP_SIGNAL, SIG_DFL) == own_handler);
    sleeping(); /* a signal would kill it now */
}

/* Calls that go on after a signal go on; nothing is lost of what is read. */
static void keeps_reading(void)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 200; i++) {
            nap(10);
            MUST(write(ends[1], "x", 1) == 1);
        }
        _exit(0);
    }
    close(ends[1]);
    blocks[0] = one_block(100);
    say("ready\n");
    int got = 0;
    char c;
    for (ssize_t n; (n = read(ends[0], &c, 1)) != 0; got++)
        MUST(n == 1);
    MUST(got == 200);
}

static void blocks_signal(void)
{
    sigset_t all;
    sigfillset(&all);
    MUST(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    sleeping();
}

/* Forks and lets the child wait without touching the heap. */
static void idle_child(void)
{
    blocks[0] = one_block(100);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 6000 && access(until, F_OK) != 0; i++)
            nap(10);
        _exit(0);
    }
    say("child %d\n", (int)child);
    ready_until_told();
    waitpid(child, NULL, 0);
}

static void short_life(void)
{
    blocks[0] = one_block(100);
    nap(20);
}

/* ---- counted accesses ---- */

static volatile int table[64];

/* 10 writes and 20 reads. */
NOINLINE static void use(void *block)
{
    volatile char *bytes = block;
    for (int i = 0; i < 10; i++)
        bytes[0] = (char)i;
    for (int i = 0; i < 20; i++)
        (void)bytes[70];
    table[3] = 1;
}

static void accesses(void)
{
    blocks[0] = one_block(100);
    for (int i = 0; i < 3; i++) {
        use(blocks[0]);
        MUST(heapwise_dump() == 0);
    }
    MUST(heapwise_reset() == 0);
    use(blocks[0]);
    MUST(heapwise_dump() == 0);
    free(blocks[0]);
    MUST(heapwise_dump() == 0);
}

static void accesses_and_wait(void)
{
    blocks[0] = one_block(100);
    use(blocks[0]);
    ready_until_told();
}

static _Atomic int used;

static void *user(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        void *block = one_block(100);
        use(block);
        used = 1;
        free(block);
    }
    return unused;
}

static void accesses_in_threads(void)
{
    thread_count = 4;
    for (int i = 0; i < thread_count; i++)
        MUST(pthread_create(&threads[i], NULL, user, NULL) == 0);
    while (!used)
        nap(1);
    ready_until_told();
    end_threads();
}

static void accesses_and_fork(void)
{
    blocks[0] = one_block(100);
    use(blocks[0]);
    MUST(heapwise_dump() == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        blocks[1] = after_reset(100);
        use(blocks[1]);
        MUST(heapwise_dump() == 0);
        use(blocks[1]);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"three", three},
    {"sleeping", sleeping},
    {"maps", maps},
    {"busy", busy},
    {"reset", reset},
    {"reset_in_child", reset_in_child},
    {"reset_with_threads", reset_with_threads},
    {"periodic", periodic},
    {"handler", handler},
    {"forks", forks},
    {"hundred", hundred},
    {"million", million},
    {"takes_signal", takes_signal},
    {"takes_signal_simply", takes_signal_simply},
    {"keeps_reading", keeps_reading},
    {"blocks_signal", blocks_signal},
    {"idle_child", idle_child},
    {"short_life", short_life},
    {"accesses", accesses},
    {"accesses_and_wait", accesses_and_wait},
    {"accesses_in_threads", accesses_in_threads},
    {"accesses_and_fork", accesses_and_fork},
};

int main(int argc, char **argv)
{
    until = argc > 2 ? argv[2] : "/";
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 2;
}
