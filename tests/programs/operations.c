/* operations.c - operations of the allocator in known numbers, told apart by their sizes: see test_operations.c. */
#include "program.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "heapwise/heapwise.h"

enum { SIGNALLING_SIZE = 54321 }; /* of signalmalloc.c, too */

static void *kept[2000];

static void pairs(size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        void *block = malloc(size);
        KEEP(block);
        free(block);
    }
}

static void kinds(void)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++)
            MUST(kept[i] = malloc(700));
        for (int i = 0; i < 1000; i++)
            free(kept[i]);
    }
    for (int i = 0; i < 300; i++) {
        MUST(kept[i] = calloc(7, 110));
        kept[i] = realloc(kept[i], 900);
    }
    for (int i = 0; i < 300; i++)
        free(kept[i]);
    for (int i = 0; i < 10; i++)
        free(realloc(NULL, 930));
    for (int i = 0; i < 20; i++) {
        void *block;
        MUST(posix_memalign(&block, 64, 960) == 0);
        free(block);
        free(memalign(128, 958));
        free(aligned_alloc(64, 960));
    }
    for (int i = 0; i < 17; i++)
        free(malloc(0));
    for (int i = 0; i < 23; i++)
        free(NULL);
    for (int i = 0; i < 5; i++) {
        void *block = malloc(3 << 20);
        KEEP(block);
        free(block);
    }
    free(malloc(5ull << 30)); /* may fail: it is an operation all the same */
    KEEP(kept);
    MUST(!malloc(SIZE_MAX / 2));
}

static void *thread_pairs(void *argument)
{
    pairs(400, 1000);
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void wait_alone(void)
{
    usleep(20000); /* the last of a detached thread's instructions are not to be seen */
}

/* COUNT threads that are waited for, COUNT that are not; alone before, between and after. */
static void threads(int count)
{
    static int done;
    pthread_attr_t detached;
    pthread_t *ids = malloc((size_t)count * sizeof *ids);
    pairs(432, 100);
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&ids[i], NULL, thread_pairs, &done) == 0);
    for (int i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    wait_alone();
    pairs(464, 100);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&ids[0], &detached, thread_pairs, &done) == 0);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 2 * count)
        usleep(1000);
    wait_alone();
    pairs(496, 100);
    free(ids);
}

static pthread_key_t at_end;

static void fail_to_load(void *unused)
{
    (void)unused;
    dlopen("/nowhere/libnothing.so", RTLD_NOW); /* its message is freed at the end of the thread */
}

/* Each second one does its first operation in that destructor. */
static void *short_thread(void *done)
{
    if (*(int *)done % 2)
        pairs(400, 20);
    MUST(pthread_setspecific(at_end, done) == 0);
    __atomic_fetch_add((int *)done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static int notified;

static void notify(union sigval unused)
{
    (void)unused;
    MUST(pthread_setspecific(at_end, &notified) == 0);
    __atomic_fetch_add(&notified, 1, __ATOMIC_SEQ_CST);
}

/* Libc makes a thread for each expiry, without pthread_create; it does its first operation in its last moment. */
static void timers(int count)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify};
    const struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    timer_t timer;
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    for (int i = 0; i < count; i++) {
        MUST(timer_settime(timer, 0, &soon, NULL) == 0);
        while (__atomic_load_n(&notified, __ATOMIC_SEQ_CST) <= i)
            usleep(100);
        usleep(20000);
        pairs(464, 20000); /* long enough to look for threads that are gone */
    }
    timer_delete(timer);
}

/* COUNT detached threads with stacks so large that libc keeps none of them: what belongs to a thread is freed by itself
 * after its last destructor. */
static void ending(int count)
{
    static int done;
    pthread_attr_t detached;
    pthread_t id;
    MUST(pthread_key_create(&at_end, fail_to_load) == 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    MUST(pthread_attr_setstacksize(&detached, 64 << 20) == 0);
    for (int i = 0; i < count; i++) {
        MUST(pthread_create(&id, &detached, short_thread, &done) == 0);
        while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) <= i)
            usleep(100);
        usleep(1000);
    }
    wait_alone();
    pairs(432, 100);
    timers(20); /* their helper thread stays */
}

/* ---- reset ---- */

static pthread_barrier_t steps;
static int stop;

static void *reset_thread(void *argument)
{
    static void *own[4][50];
    void **blocks = own[(intptr_t)argument];
    pairs(400, 1000);
    for (int i = 0; i < 50; i++)
        MUST(blocks[i] = malloc(500));
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps); /* the reset was between these */
    pairs(400, 70);
    for (int i = 0; i < 30; i++)
        free(blocks[i]);
    for (int i = 0; i < 5; i++)
        MUST(malloc(532));
    for (int i = 0; i < 4; i++)
        free(malloc(40 << 20)); /* mapped each */
    return NULL;
}

/* Four threads that do nothing at the reset. */
static void reset(void)
{
    pthread_t ids[4];
    MUST(heapwise_reset() == 0);
    pthread_barrier_init(&steps, NULL, 5);
    for (int i = 0; i < 1000; i++)
        MUST(kept[i] = malloc(700));
    for (int i = 0; i < 40; i++)
        free(kept[i]);
    for (intptr_t i = 0; i < 4; i++)
        MUST(pthread_create(&ids[i], NULL, reset_thread, (void *)i) == 0);
    pthread_barrier_wait(&steps);
    MUST(heapwise_reset() == 0);
    pthread_barrier_wait(&steps);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    wait_alone();
    for (int i = 40; i < 240; i++)
        free(kept[i]);
    pairs(432, 100);
}

static void *churn(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pairs(400, 20);
        pairs(100000, 1);
        pairs(3 << 20, 1);
    }
    return unused;
}

/* Three threads that never stop while it is reset, and again when they have. */
static void reset_busy(void)
{
    pthread_t ids[3];
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&ids[i], NULL, churn, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        MUST(heapwise_reset() == 0);
        usleep(2000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
    wait_alone();
    MUST(heapwise_reset() == 0);
    pairs(432, 100);
    pid_t child = fork();
    if (child == 0) {
        pairs(464, 50);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void forked(void)
{
    void *block = malloc(800);
    pairs(400, 100);
    pid_t child = fork();
    if (child == 0) {
        pairs(400, 30);
        free(block);
        exit(0);
    }
    waitpid(child, NULL, 0);
    pairs(400, 50);
    free(block);
}

static void *last_held;

static void *hold(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3000; i++)
        *(void *volatile *)&last_held = malloc(400);
    return NULL;
}

/* Two children with blocks of the parent, of a thread, and of their own are killed: nothing more is written down. */
static void killed_holding(void)
{
    pthread_t thread;
    void *block = malloc(800);
    pthread_create(&thread, NULL, hold, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(block);
            pthread_create(&thread, NULL, hold, NULL);
            pthread_join(thread, NULL);
            hold(NULL);
            raise(SIGKILL);
        }
        waitpid(child, NULL, 0);
    }
    raise(SIGKILL);
}

static sigjmp_buf out;
static int jumps;

static void handler(int number)
{
    pairs(600, 3); /* glibc: never while the interrupted call has changed anything yet, see signalmalloc.c */
    if (jumps)
        siglongjmp(out, 1);
}

static void signals(void)
{
    signal(SIGUSR1, handler);
    for (int i = 0; i < 10; i++)
        free(malloc(SIGNALLING_SIZE));
    jumps = 1;
    for (volatile int i = 0; i < 10; i++)
        if (!sigsetjmp(out, 1))
            free(malloc(SIGNALLING_SIZE));
    pairs(632, 100);
}

static void timed(void)
{
    for (int i = 0; i < 4000; i++) {
        void *small = malloc(200), *big = malloc(800);
        KEEP(small);
        KEEP(big);
        free(small);
        free(big);
    }
}

/* Blocks of 1 MiB, of which a few pages are touched: 3 of ten that are freed, the first of which grows before; 5 of ten
 * that are not. CONFINED: by then the program could have given up system calls. */
static void sparse(bool confined)
{
    MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    for (int i = 0; i < 20; i++) {
        char *block = kept[i] = malloc(1 << 20);
        MUST(block);
        for (int page = 0; page < (i < 10 ? 3 : 5); page++)
            block[page * 100000] = 1;
    }
    if (confined)
        MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(kept[0] = realloc(kept[0], 2 << 20));
    for (int i = 0; i < 10; i++)
        free(kept[i]);
}

/* Blocks of 8 bytes, of which many allocators put two into 16: each second one is freed before the one below it. A
 * child allocates there again. */
static void halves(void)
{
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 512; i++)
            MUST(kept[i] = malloc(8));
        for (int i = 0; i < 512; i++)
            free(kept[(i * 2 + 1) % 512 - i / 256]);
    }
    const pid_t child = fork();
    MUST(child >= 0);
    for (int i = 0; i < 512; i++)
        MUST(kept[i] = malloc(8));
    for (int i = 0; i < 512; i++)
        free(kept[i]);
    if (child)
        wait(NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "kinds"))
        kinds();
    else if (!strcmp(mode, "threads"))
        threads(atoi(argv[2]));
    else if (!strcmp(mode, "ending"))
        ending(atoi(argv[2]));
    else if (!strcmp(mode, "fork"))
        forked();
    else if (!strcmp(mode, "halves"))
        halves();
    else if (!strcmp(mode, "signals"))
        signals();
    else if (!strcmp(mode, "timed"))
        timed();
    else if (!strcmp(mode, "reset"))
        reset();
    else if (!strcmp(mode, "reset_busy"))
        reset_busy();
    else if (!strcmp(mode, "many"))
        pairs(400, 300000);
    else if (!strcmp(mode, "sparse") || !strcmp(mode, "confined"))
        sparse(!strcmp(mode, "confined"));
    else if (!strcmp(mode, "kill")) {
        pairs(400, 100000);
        raise(SIGKILL);
    } else if (!strcmp(mode, "killed_first")) {
        KEEP(malloc(1000000));
        raise(SIGKILL);
    } else if (!strcmp(mode, "killed_holding")) {
        killed_holding();
    } else
        return 2;
    return 0;
}
