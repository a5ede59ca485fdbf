/* threads.c - threads whose names, allocations, frees and shares of the peak are known: tests/e2e/test_threads.c says
 * what each must have. The argument chooses what is done. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

extern int heapwise_reset(void) __attribute__((weak));

#define BLOCKS 1000
#define TAKERS 2

/* A thread that allocates BLOCKS blocks of SIZE, waits, and frees the first FREED of them. */
struct maker {
    size_t size;
    int freed;
    void *block[BLOCKS];
};

static pthread_barrier_t all_live, peak, released, ended;
static struct maker makers[] = {{.size = 100, .freed = 10},
                                {.size = 200},
                                {.size = 300, .freed = 1000},
                                {.size = 40},
                                {.size = 24},
                                {.size = 8},
                                {.size = 500}};
enum { MAKERS = sizeof makers / sizeof *makers };

static void fill(struct maker *maker)
{
    for (int i = 0; i < BLOCKS; i++)
        if (!(maker->block[i] = malloc(maker->size)))
            abort();
}

static void release(struct maker *maker)
{
    for (int i = 0; i < maker->freed; i++)
        free(maker->block[i]);
}

static void work(struct maker *maker)
{
    fill(maker);
    pthread_barrier_wait(&all_live);
    pthread_barrier_wait(&peak);
    pthread_barrier_wait(&released);
    release(maker);
}

static void *self_named(void *maker)
{
    pthread_setname_np(pthread_self(), "first name");
    work(maker);
    pthread_setname_np(pthread_self(), "self");
    pthread_barrier_wait(&ended);
    return NULL;
}

static void *other_named(void *maker)
{
    work(maker);
    pthread_barrier_wait(&ended);
    return NULL;
}

static void *prctl_named(void *maker)
{
    prctl(PR_SET_NAME, "by prctl, too long a name");
    work(maker);
    pthread_barrier_wait(&ended);
    return NULL;
}

static void *odd_named(void *maker)
{
    pthread_setname_np(pthread_self(), "a\"\\\n\t\x80\xff<b>");
    work(maker);
    pthread_barrier_wait(&ended);
    return NULL;
}

static void *utf8_named(void *maker)
{
    pthread_setname_np(pthread_self(), "f\xc3\xa4"
                                       "den \xe2\x82\xac");
    work(maker);
    pthread_barrier_wait(&ended);
    return NULL;
}

static int c11_thread(void *maker)
{
    work(maker);
    pthread_barrier_wait(&ended);
    return 0;
}

/* Detached, and alive when the process ends. */
static void *left_alive(void *maker)
{
    prctl(PR_SET_NAME, "alive");
    work(maker);
    pthread_barrier_wait(&ended);
    for (;;)
        pause();
    return NULL;
}

/* Frees blocks of the first two makers: 100 * number of each, behind those that they free themselves. */
static void *taker(void *number)
{
    const int count = 100 * (int)(long)number;
    prctl(PR_SET_NAME, "taker");
    pthread_barrier_wait(&all_live);
    pthread_barrier_wait(&peak);
    const int first = (long)number == 1 ? 10 : 110;
    for (int m = 0; m < 2; m++)
        for (int i = first; i < first + count; i++)
            free(makers[m].block[i]);
    pthread_barrier_wait(&released);
    pthread_barrier_wait(&ended);
    return NULL;
}

static void run_names(int end)
{
    pthread_t thread[MAKERS + TAKERS];
    thrd_t c11;
    pthread_attr_t detached;
    pthread_barrier_init(&all_live, NULL, MAKERS + TAKERS + 1);
    pthread_barrier_init(&peak, NULL, MAKERS + TAKERS + 1);
    pthread_barrier_init(&released, NULL, MAKERS + TAKERS + 1);
    pthread_barrier_init(&ended, NULL, MAKERS + TAKERS + 1);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread[0], NULL, self_named, &makers[0]);
    pthread_create(&thread[1], NULL, other_named, &makers[1]);
    pthread_create(&thread[2], NULL, prctl_named, &makers[2]);
    pthread_create(&thread[3], NULL, odd_named, &makers[3]);
    pthread_create(&thread[4], NULL, utf8_named, &makers[4]);
    thrd_create(&c11, c11_thread, &makers[5]);
    pthread_create(&thread[6], &detached, left_alive, &makers[6]);
    for (long i = 0; i < TAKERS; i++)
        pthread_create(&thread[MAKERS + i], NULL, taker, (void *)(i + 1));
    pthread_setname_np(thread[1], "by another");
    pthread_barrier_wait(&all_live);
    void *volatile most = malloc(200000); /* while nobody else has an event: the peak is exact for each thread */
    pthread_barrier_wait(&peak);
    pthread_barrier_wait(&released);
    free(most);
    pthread_barrier_wait(&ended);
    if (end) {
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; i < 5; i++)
        pthread_join(thread[i], NULL);
    thrd_join(c11, NULL);
    for (int i = 0; i < TAKERS; i++)
        pthread_join(thread[MAKERS + i], NULL);
}

static void *short_lived(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "short-%ld", (long)number % 3);
    pthread_setname_np(pthread_self(), name);
    void *volatile block = malloc(64);
    free(block);
    makers[0].block[(long)number % BLOCKS] = malloc(32); /* freed by the main thread, after this one's end */
    return NULL;
}

/* More threads than have an entry each: one after the other. */
static void run_many(void)
{
    for (long i = 0; i < 3000; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, short_lived, (void *)i);
        pthread_join(thread, NULL);
        free(makers[0].block[i % BLOCKS]);
    }
}

static void *in_child(void *unused)
{
    pthread_setname_np(pthread_self(), "of child");
    makers[0].block[0] = malloc(777);
    return NULL;
}

static void run_fork(void)
{
    pthread_t thread;
    makers[1].block[0] = malloc(999);
    pthread_create(&thread, NULL, in_child, NULL);
    pthread_join(thread, NULL);
    pid_t child = -1;
    for (volatile int i = 0; i < 2 && child <= 0; i++) { /* one call stack, in the parent and in the child */
        makers[2].block[i] = malloc(555);
        usleep(20000);
        if (i == 0)
            child = fork();
    }
    if (child == 0) {
        free(makers[1].block[0]); /* the parent's: of no thread here */
        pthread_create(&thread, NULL, in_child, NULL);
        pthread_join(thread, NULL);
        free(makers[0].block[0]);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static pthread_barrier_t before_reset, after_reset;

/* 5 blocks of 100 bytes before the reset; then frees two of them, and allocates 3 of 50. */
static void *over_reset(void *unused)
{
    void *volatile blocks[8];
    for (int i = 0; i < 5; i++)
        blocks[i] = malloc(100);
    pthread_barrier_wait(&before_reset);
    pthread_barrier_wait(&after_reset);
    free(blocks[0]);
    free(blocks[1]);
    for (int i = 5; i < 8; i++)
        blocks[i] = malloc(50);
    makers[0].block[0] = blocks[2];
    return NULL;
}

/* A thread that starts another one, and ends. */
static void *started_by_thread(void *thread)
{
    pthread_create(thread, NULL, over_reset, NULL);
    return NULL;
}

static void run_reset(void)
{
    pthread_t starter, thread;
    pthread_barrier_init(&before_reset, NULL, 2);
    pthread_barrier_init(&after_reset, NULL, 2);
    pthread_create(&starter, NULL, started_by_thread, &thread);
    pthread_join(starter, NULL);
    pthread_barrier_wait(&before_reset);
    if (!heapwise_reset || heapwise_reset() != 0)
        abort();
    pthread_barrier_wait(&after_reset);
    pthread_join(thread, NULL);
    free(makers[0].block[0]); /* of before the reset, by another thread than its own */
}

static void *allocate_small(void *maker)
{
    fill(maker);
    return NULL;
}

static void *make_large(void *maker)
{
    for (int i = 0; i < BLOCKS; i++)
        ((struct maker *)maker)->block[i] = realloc(((struct maker *)maker)->block[i], 1000);
    return NULL;
}

static void *make_smaller(void *maker)
{
    for (int i = 0; i < BLOCKS / 2; i++)
        ((struct maker *)maker)->block[i] = realloc(((struct maker *)maker)->block[i], 10);
    return NULL;
}

/* Blocks of one thread are reallocated by others, and some of them freed by the main thread. */
static void run_resized(void)
{
    static struct maker blocks = {.size = 64};
    static void *(*const step[])(void *) = {allocate_small, make_large, make_smaller};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, step[i], &blocks);
        pthread_join(thread, NULL);
    }
    for (int i = BLOCKS - 100; i < BLOCKS; i++)
        free(blocks.block[i]);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "names";
    if (!strcmp(what, "many"))
        run_many();
    else if (!strcmp(what, "fork"))
        run_fork();
    else if (!strcmp(what, "reset"))
        run_reset();
    else if (!strcmp(what, "resized"))
        run_resized();
    else
        run_names(!strcmp(what, "killed"));
    return 0;
}
