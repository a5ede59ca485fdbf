/* replay_course.c - the program heapwise-course: does what a traced run asked of its allocator, in the same order, with
 * the allocator that it was started with (LD_PRELOAD).
 *
 *     heapwise-course FILE        (course.h)
 *
 * Prints "course OPERATIONS CPU_NS CRITICAL_NS WALK_NS WALKED FAULTS START_NS": processor time of all threads, and of
 * those that the others wait for, both without walks; that of walks, beyond what walks to cached blocks take, and the
 * blocks that they came to; page faults; processor time before main, in which the allocator was loaded. Each thread of
 * the run is a thread here; one that used a block of another one waits for it, so do threads that began after, or were
 * waited for. Blocks are written to when they are new: one word in each 64 bytes up to 4 KiB, one in each page beyond,
 * in as many pages as the program touched; where that is not known in all, up to 16 MiB. Up to 256 bytes are read
 * before they are freed. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "allocators/course.h"
#include "allocators/programs/touch.h"

#define SECONDS_MOST 30
#define NEAR_BLOCKS  4096u /* 256 KiB of lines: in the second-level cache, not in the first */
#define PAUSES       64    /* before a thread that waits sleeps */

struct worker {
    _Alignas(64) size_t done; /* events; read by others */
    const struct hw_course_event *events;
    size_t count;
    uint64_t cpu_ns, walk_ns, walk_all_ns; /* walk_ns: beyond what is hidden */
};

static const struct hw_course_header *course;
static void **slots;
static const uint32_t *walked; /* slots */
static struct worker workers[HW_COURSE_WORKERS];
static double near_ns; /* near_walk() */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *pages(size_t bytes)
{
    void *found =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (found == MAP_FAILED)
        _exit(3);
    return found;
}

static void pause_a_little(unsigned *tries)
{
    static const struct timespec moment = {.tv_nsec = 20000};
    if (++*tries < PAUSES)
        __builtin_ia32_pause();
    else
        nanosleep(&moment, NULL);
}

static void wait_for(const struct worker *other, size_t events)
{
    unsigned tries = 0;
    while (__atomic_load_n(&other->done, __ATOMIC_ACQUIRE) < events)
        pause_a_little(&tries);
}

static void *allocate(const struct hw_course_event *event, void *before)
{
    void *block = NULL;
    switch (event->kind) {
    case HW_COURSE_CALLOC:
        return calloc(1, event->size);
    case HW_COURSE_REALLOC:
        return realloc(before, event->size);
    case HW_COURSE_ALIGNED:
        return posix_memalign(&block, (size_t)1 << (event->align < 4 ? 4 : event->align), event->size) == 0 ? block
                                                                                                            : NULL;
    default:
        return malloc(event->size);
    }
}

static void free_slot(const struct hw_course_event *event)
{
    void *block = slots[event->slot];
    slots[event->slot] = NULL;
    if (!block)
        return;
    hw_touch_last(block, event->touched == 1 ? hw_touch_first(block, event->size) : event->size);
    free(block);
}

/* From block to block in the order of their allocation, as programs do: where the next one is is known when this one
 * has been read. Blocks that are walked to begin with a 1. Returns the processor time, ns. */
static uint64_t walk(void *const *blocks, const uint32_t *list, size_t count)
{
    const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < count;) {
        const volatile unsigned char *block = blocks[list[i]];
        i += block ? *block : 1u;
    }
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* What a walk to blocks in the processor's own cache takes, which programs hide behind other work: ns for each block,
 * of NEAR_BLOCKS that are far apart in order, not in place. */
static double near_walk(void)
{
    static void *blocks[NEAR_BLOCKS];
    static uint32_t list[NEAR_BLOCKS];
    char *bytes = pages((size_t)NEAR_BLOCKS * HW_TOUCH_LINE);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < NEAR_BLOCKS; i++) {
        list[i] = i * 2481u % NEAR_BLOCKS; /* each of them once, no two in turn in one page */
        blocks[i] = bytes + (size_t)i * HW_TOUCH_LINE;
        bytes[(size_t)i * HW_TOUCH_LINE] = 1;
    }
    for (int i = 0; i < 8; i++) {
        const uint64_t spent = walk(blocks, list, NEAR_BLOCKS);
        least = spent < least ? spent : least;
    }
    munmap(bytes, (size_t)NEAR_BLOCKS * HW_TOUCH_LINE);
    return (double)least / NEAR_BLOCKS;
}

static void do_walk(struct worker *worker, const struct hw_course_event *event)
{
    const uint64_t spent = walk(slots, walked + event->size, event->slot);
    const double hidden = near_ns * (double)event->slot;
    worker->walk_all_ns += spent;
    worker->walk_ns += (double)spent > hidden ? spent - (uint64_t)hidden : 0;
}

static void *work(void *closure)
{
    struct worker *worker = closure;
    const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < worker->count; i++) {
        const struct hw_course_event *event = &worker->events[i];
        if (event->kind == HW_COURSE_FREE) {
            free_slot(event);
        } else if (event->kind == HW_COURSE_WAIT) {
            wait_for(&workers[event->slot], event->size);
        } else if (event->kind == HW_COURSE_WALK) {
            do_walk(worker, event);
        } else {
            void *block = allocate(event, slots[event->slot]);
            if (block && event->touched)
                hw_touch_pages(block, event->size, event->touched);
            else if (block)
                hw_touch_new(block, event->size);
            slots[event->slot] = block;
        }
        __atomic_store_n(&worker->done, i + 1, __ATOMIC_RELEASE);
    }
    worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin - worker->walk_all_ns;
    return NULL;
}

static bool open_course(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || (size_t)status.st_size < sizeof *course)
        return false;
    const size_t size = (size_t)status.st_size;
    course = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (course == MAP_FAILED || course->magic != HW_COURSE_MAGIC || course->workers == 0 ||
        course->workers > HW_COURSE_WORKERS || course->slots > UINT32_MAX)
        return false;
    const struct hw_course_event *events = (const struct hw_course_event *)(course + 1);
    const uint64_t room = (size - sizeof *course) / sizeof *events;
    uint64_t all = 0;
    for (uint32_t i = 0; i < course->workers; i++) {
        if (course->first[i] > room || course->count[i] > room - course->first[i])
            return false;
        workers[i].events = events + course->first[i];
        workers[i].count = (size_t)course->count[i];
        for (size_t k = 0; k < workers[i].count; k++) {
            const struct hw_course_event *event = &workers[i].events[k];
            if (event->kind == HW_COURSE_WALK) {
                if (event->size > course->walked || event->slot > course->walked - event->size)
                    return false;
            } else if (event->slot >= (event->kind == HW_COURSE_WAIT ? course->workers : course->slots)) {
                return false;
            }
        }
        all += course->count[i];
    }
    walked = (const uint32_t *)(events + all);
    if (all > room || course->walked > (size - sizeof *course - all * sizeof *events) / sizeof *walked)
        return false;
    for (uint64_t i = 0; i < course->walked; i++)
        if (walked[i] >= course->slots)
            return false;
    close(file);
    return true;
}

int main(int argc, char **argv)
{
    static char output[4096]; /* stdio must not ask the allocator for it */
    pthread_t handles[HW_COURSE_WORKERS];
    struct rusage before, after;
    uint64_t others = 0;
    const uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    alarm(SECONDS_MOST);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    if (argc != 2 || !open_course(argv[1])) {
        fputs("heapwise-course: the course cannot be read\n", stderr);
        return 2;
    }
    slots = pages((course->slots + 1) * sizeof *slots);
    near_ns = near_walk();
    getrusage(RUSAGE_SELF, &before);
    const uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t i = 1; i < course->workers; i++)
        if (pthread_create(&handles[i], NULL, work, &workers[i]) != 0)
            _exit(3);
    work(&workers[0]);
    for (uint32_t i = 1; i < course->workers; i++) {
        pthread_join(handles[i], NULL);
        others = workers[i].cpu_ns > others ? workers[i].cpu_ns : others;
    }
    const uint64_t walk_ns = workers[0].walk_ns, own = workers[0].cpu_ns;
    const uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin - workers[0].walk_all_ns;
    getrusage(RUSAGE_SELF, &after);
    printf("course %llu %llu %llu %llu %llu %ld %llu\n", (unsigned long long)course->operations,
           (unsigned long long)cpu,
           (unsigned long long)(course->joins  ? own + others
                                : own > others ? own
                                               : others),
           (unsigned long long)walk_ns, (unsigned long long)course->walked, after.ru_minflt - before.ru_minflt,
           (unsigned long long)start);
    return fflush(stdout) == 0 ? 0 : 1;
}
