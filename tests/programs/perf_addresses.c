/* perf_addresses.c - blocks whose places and times are printed, for texts like those of perf script:
 *
 *     NAME BEGIN_NS END_NS ADDRESS SIZE        CLOCK_MONOTONIC; END_NS 0: it lives at the end
 *
 * One block after the other lies at one address; one grows in place or moves; some live until the end.
 *   fork    a child uses a block of its parent's, and frees it
 *   many    more events than a small log has room for; prints nothing but the times of a first and a last block
 *   fault   touches the pages of a large block, for perf record -e page-faults */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AROUND 2000000 /* ns before and after each change */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void wait_a_moment(void)
{
    const uint64_t until = now() + AROUND;
    while (now() < until)
        ;
}

__attribute__((noipa)) static char *make_first(size_t size)
{
    char *volatile block = malloc(size);
    return block;
}

__attribute__((noipa)) static char *make_second(size_t size)
{
    char *volatile block = malloc(size);
    return block;
}

__attribute__((noipa)) static char *make_shared(size_t size)
{
    char *volatile block = aligned_alloc(64, size);
    return block;
}

static void show(const char *name, uint64_t begin, uint64_t end, const void *block, size_t size)
{
    char line[160];
    const int length = snprintf(line, sizeof line, "%s %llu %llu %llx %zu\n", name, (unsigned long long)begin,
                                (unsigned long long)end, (unsigned long long)(uintptr_t)block, size);
    if (write(1, line, (size_t)length) != length)
        _exit(9);
}

/* Blocks at one address, one after the other. */
static void show_reused(void)
{
    for (int i = 0; i < 4; i++) {
        const size_t size = i % 2 ? 104 : 96;
        char *block = i % 2 ? make_second(size) : make_first(size);
        wait_a_moment();
        const uint64_t begin = now();
        wait_a_moment();
        const uint64_t end = now();
        wait_a_moment();
        const volatile uintptr_t was = (uintptr_t)block;
        free(block);
        wait_a_moment();
        show(i % 2 ? "second" : "first", begin, end, (void *)was, size);
        const uint64_t after = now();
        wait_a_moment();
        show("freed", after, now(), (void *)was, size);
        wait_a_moment();
    }
}

static void show_resized(void)
{
    size_t size = 1000;
    char *block = make_first(size);
    for (int i = 0; i < 3; i++) {
        wait_a_moment();
        const uint64_t begin = now();
        wait_a_moment();
        const uint64_t end = now();
        wait_a_moment();
        show("resized", begin, end, block, size);
        size = i ? 300000 : 1500;
        char *volatile larger = realloc(block, size);
        block = larger;
    }
    wait_a_moment();
    const uint64_t begin = now();
    wait_a_moment();
    show("resized", begin, now(), block, size);
    wait_a_moment();
}

static void use_in_child(void)
{
    char *block = make_first(200);
    const pid_t child = fork();
    if (!child) {
        char *own = make_second(64);
        wait_a_moment();
        const uint64_t begin = now();
        wait_a_moment();
        const uint64_t end = now();
        wait_a_moment();
        const volatile uintptr_t was = (uintptr_t)block;
        free(block);
        show("inherited", begin, end, (void *)was, 200);
        wait_a_moment();
        const uint64_t later = now();
        wait_a_moment();
        show("own", later, now(), own, 64);
        wait_a_moment();
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void fill_log(void)
{
    char *early = make_first(96);
    wait_a_moment();
    const uint64_t begin = now();
    wait_a_moment();
    show("early", begin, now(), early, 96);
    wait_a_moment();
    for (int i = 0; i < 20000; i++)
        free(make_second(64));
    char *late = make_first(96);
    wait_a_moment();
    const uint64_t after = now();
    wait_a_moment();
    show("late", after, now(), late, 96);
    wait_a_moment();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    show("process", (uint64_t)getpid(), 0, main, 0);
    if (!strcmp(what, "fork")) {
        use_in_child();
        return 0;
    }
    if (!strcmp(what, "many")) {
        fill_log();
        return 0;
    }
    if (!strcmp(what, "fault")) {
        const size_t size = 64ul << 20;
        char *block = make_first(size);
        for (size_t at = 0; at < size; at += 4096)
            block[at] = 1;
        show("fault", 0, 0, block, size);
        return 0;
    }
    show_reused();
    show_resized();
    char *shared = make_shared(256);
    wait_a_moment();
    const uint64_t begin = now();
    wait_a_moment();
    show("shared", begin, now(), shared, 256);
    wait_a_moment();
    return 0;
}
