/* sharing.c - what threads can do with cache lines; test_sharing.c knows what is to be said of each.
 *
 *   sharing CASE SECONDS   each works for so long and more; where periods are sampled, that tells it from what is done
 *                          once. Of its own processor time: a busy machine lets others run, too
 *
 *   false     two threads, bytes 0 and 24 of one line
 *   true      two threads, the same 8 bytes
 *   lines     two threads, even and odd words of 2000 lines, 100 times each (from 0.1 s on: as long as the others)
 *   handed    the main thread fills 1000 lines, one thread uses them
 *   passed    the main thread fills 1000 lines, one thread reads them once
 *   ring      one thread writes what another one reads, in 64 lines again and again
 *   readers   the main thread fills a line, four threads read it
 *   padded    four threads, a line each
 *   limits    false; one of them also looks at the other's word, now and then */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
#define LINE     64

typedef volatile uint64_t word;

static double seconds __attribute__((aligned(LINE))); /* a line each: what is said is said of blocks */
static word *block __attribute__((aligned(LINE)));
static word lines_of_globals[2][8] __attribute__((aligned(64)));
static pthread_barrier_t barrier __attribute__((aligned(LINE)));
static word sink __attribute__((aligned(LINE)));

static NOINLINE word *block_of(const char *name, size_t lines)
{
    void *memory = aligned_alloc(LINE, lines * LINE);
    if (!memory || !name)
        abort();
    return memory;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Atomic int at_work __attribute__((aligned(LINE))); /* threads that have not worked long enough */

/* None may stop before each has had its time: on a busy machine one would be through before another one begins. END:
 * of its own time; 0: it is over. */
static int goes_on(double *end)
{
    if (*end > 0 && now() >= *end) {
        *end = 0;
        atomic_fetch_sub(&at_work, 1);
    }
    return atomic_load(&at_work) > 0;
}

/* Both of a pair are at it all the time. */
static void begin(void)
{
    pthread_barrier_wait(&barrier);
}

static NOINLINE void use(word *at)
{
    for (double end = now() + seconds; goes_on(&end);)
        for (int i = 0; i < 1000; i++)
            *at += 1;
}

static void *use_word(void *at)
{
    begin();
    use(at);
    return NULL;
}

static void *use_and_look(void *at)
{
    begin();
    for (int i = 0; i < 20; i++)
        sink = block[0];
    use(at);
    return NULL;
}

static void *use_lines(void *at)
{
    begin();
    double end = now() + seconds;
    for (int round = 0; seconds < 0.1 ? round < 100 : goes_on(&end); round++)
        for (int i = (int)(intptr_t)at; i < 2000 * 8; i += 2)
            block[i] += 1;
    return NULL;
}

static void *use_handed(void *at)
{
    word *lines = at;
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 1000 * 8; i++)
            lines[i] += 1;
    return NULL;
}

static void *read_once(void *at)
{
    word *lines = at;
    for (int i = 0; i < 1000 * 8; i++)
        sink = lines[i];
    return NULL;
}

static void *read_line(void *at)
{
    word *line = at;
    begin();
    for (double end = now() + seconds; goes_on(&end);)
        for (int i = 0; i < 1000; i++)
            (void)line[i % 8];
    return NULL;
}

static atomic_uint produced __attribute__((aligned(LINE))), consumed __attribute__((aligned(LINE)));
static _Atomic int done __attribute__((aligned(LINE)));

static void *consume(void *at)
{
    (void)at;
    for (;;) {
        unsigned next = atomic_load(&consumed);
        if (next == atomic_load(&produced)) {
            if (atomic_load(&done) && next == atomic_load(&produced))
                return NULL;
            continue;
        }
        for (int i = 0; i < 8; i++)
            sink = block[next % 64 * 8 + (unsigned)i];
        atomic_store(&consumed, next + 1);
    }
}

static void produce(void)
{
    unsigned next = 0;
    for (double end = now() + seconds; now() < end || next < 64 * 200;) {
        if (next - atomic_load(&consumed) >= 64)
            continue;
        for (int i = 0; i < 8; i++)
            block[next % 64 * 8 + (unsigned)i] = next;
        atomic_store(&produced, ++next);
    }
    atomic_store(&done, 1);
}

static void run(int count, void *(*routine[])(void *), void *at[])
{
    pthread_t threads[4];
    at_work = count;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, routine[i], at[i]))
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void fill(word *lines, int words)
{
    for (int i = 0; i < words; i++)
        lines[i] = 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    seconds = argc > 2 ? atof(argv[2]) : 0.1;
    void *(*words[])(void *) = {use_word, use_word, use_word, use_word};
    void *(*readers[])(void *) = {read_line, read_line, read_line, read_line};
    block = block_of(name, 2000);
    if (!strcmp(name, "false")) {
        fill(block, 8);
        run(2, words, (void *[]){(void *)block, (void *)(block + 3)});
    } else if (!strcmp(name, "limits")) {
        run(2, (void *(*[])(void *)){use_word, use_and_look}, (void *[]){(void *)block, (void *)(block + 3)});
    } else if (!strcmp(name, "true")) {
        run(2, words, (void *[]){(void *)block, (void *)block});
    } else if (!strcmp(name, "lines")) {
        run(2, (void *(*[])(void *)){use_lines, use_lines}, (void *[]){(void *)0, (void *)1});
    } else if (!strcmp(name, "handed")) {
        fill(block, 1000 * 8);
        run(1, (void *(*[])(void *)){use_handed}, (void *[]){(void *)block});
    } else if (!strcmp(name, "passed")) {
        fill(block, 1000 * 8);
        run(1, (void *(*[])(void *)){read_once}, (void *[]){(void *)block});
    } else if (!strcmp(name, "ring")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, consume, NULL))
            abort();
        produce();
        pthread_join(thread, NULL);
    } else if (!strcmp(name, "readers")) {
        fill(block, 8);
        run(4, readers, (void *[]){(void *)block, (void *)block, (void *)block, (void *)block});
    } else if (!strcmp(name, "padded")) {
        fill(block, 4 * 8);
        run(4, words, (void *[]){(void *)block, (void *)(block + 8), (void *)(block + 16), (void *)(block + 24)});
    } else if (!strcmp(name, "globals")) { /* the first line falsely; the second is handed over */
        fill(lines_of_globals[1], 8);
        run(2, words, (void *[]){(void *)&lines_of_globals[0][0], (void *)&lines_of_globals[0][3]});
        run(1, words, (void *[]){(void *)&lines_of_globals[1][2]});
    } else
        return 2;
    free((void *)block);
    return 0;
}
