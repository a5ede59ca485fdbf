/* sides.c - two threads and the lines that they share; test_sides.c knows who does what.
 *
 *   sides false SECONDS   the main thread writes bytes 0 to 7 of a block and reads bytes 8 to 15; a thread of left_side
 *                         writes bytes 32 to 39: one line, no word in common
 *   sides true SECONDS    both write bytes 0 to 7
 *   sides alone SECONDS   each its own line
 *   sides after SECONDS   as "false", but one after the other: the line is handed over
 *   sides several SECONDS two threads of left_side, which two functions start, at bytes 0 and 32; the main thread waits
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t *block;
static double seconds;
static volatile uint64_t sink;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static NOINLINE void write_at(volatile uint64_t *at)
{
    for (int i = 0; i < 1000; i++)
        *at += 1;
    __asm__ volatile("");
}

static NOINLINE void write_left(volatile uint64_t *at)
{
    for (int i = 0; i < 1000; i++)
        *at = (uint64_t)i;
    __asm__ volatile("nop");
}

static NOINLINE void write_right(volatile uint64_t *at)
{
    for (int i = 0; i < 1000; i++) {
        *at = (uint64_t)i;
        sink = at[1];
    }
}

static NOINLINE void *left_side(void *at)
{
    for (double end = now() + seconds; now() < end;)
        write_left(at);
    return NULL;
}

static NOINLINE void right_side(volatile uint64_t *at)
{
    for (double end = now() + seconds; now() < end;)
        write_right(at);
}

static NOINLINE pthread_t start_one(void *at)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, left_side, at))
        abort();
    return thread;
}

static NOINLINE pthread_t start_other(void *at)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, left_side, at))
        abort();
    __asm__ volatile("nop");
    return thread;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "false";
    seconds = argc > 2 ? atof(argv[2]) : 0.1;
    if (posix_memalign((void **)&block, 64, 256))
        return 1;
    memset((void *)block, 0, 256); /* by the main thread: it is a side of every line */

    volatile uint64_t *left = !strcmp(what, "true") ? block : !strcmp(what, "alone") ? block + 16 : block + 4;
    if (!strcmp(what, "after")) {
        right_side(block);
        pthread_join(start_one((void *)left), NULL);
        return 0;
    }
    pthread_t one = start_one((void *)left);
    if (!strcmp(what, "several"))
        pthread_join(start_other((void *)block), NULL);
    else
        right_side(block);
    pthread_join(one, NULL);
    write_at(block + 24); /* a line of the main thread's alone */
    if (argc > 3)         /* it lives on */
        return 0;
    free((void *)block);
    return 0;
}
