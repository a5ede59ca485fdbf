/* packer.c - libheapwise-packer.so: gives a program's small blocks places side by side, and hands on the rest.
 *
 * Preloaded into some runs of `heapwise allocators`, and into heapwise-course, as if it were one more allocator: what
 * the program gains by it, and its replayed operations do not, shows how often it uses its blocks again
 * (course_predict.h). Blocks of up to MOST bytes are cut from slabs that hold one size each, and wait in lists of their
 * thread for the next request; whole batches of them go to other threads. Memory of slabs is never given back. Where no
 * room can be reserved everything is the next allocator's. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "allocators/programs/next.h"

#define MOST       1024u
#define STEP       16u
#define FINE       128u /* up to it classes are a step apart, beyond a quarter of the power of two below */
#define CLASSES    21u  /* 0 is none */
#define SLAB       (64u << 10)
#define BATCH      4096u /* bytes of the blocks that change hands at once */
#define ROOM_MOST  (64ull << 30)
#define ROOM_LEAST (1ull << 30)

struct block { /* that is free */
    struct block *next, *next_batch;
};

/* Free blocks of one class and one thread. */
struct lists {
    struct block *some, *batch; /* batch: NULL, or so many that they can be given away */
    int32_t count;              /* of `some`, about */
};

struct own {
    struct lists of[CLASSES];
    bool known; /* its end will be reported */
};
static __thread struct own own __attribute__((tls_model("initial-exec")));

static uintptr_t room = UINTPTR_MAX; /* begin; until there is one, where no block is */
static size_t room_size;
static uint8_t *slab_class;
static uint16_t class_size[CLASSES], batch_count[CLASSES];
static uint8_t class_of[MOST / STEP + 1]; /* by steps, rounded up */
static pthread_key_t thread_end;

static struct { /* under `lock` */
    size_t slabs;
    struct {
        char *at, *end; /* the part of a slab that was not cut yet */
        struct block *batches;
    } of[CLASSES];
} shared;
static int lock;

static void take_lock(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void give_lock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void give_batch(uint8_t class, struct block *batch)
{
    if (!batch)
        return;
    take_lock();
    batch->next_batch = shared.of[class].batches;
    shared.of[class].batches = batch;
    give_lock();
}

static void end_thread(void *closure)
{
    struct own *ended = closure;
    for (uint8_t class = 1; class < CLASSES; class ++) {
        give_batch(class, ended->of[class].some);
        give_batch(class, ended->of[class].batch);
        ended->of[class] = (struct lists){NULL, NULL, 0};
    }
}

static void make_classes(void)
{
    uint8_t class = 0;
    for (uint32_t size = STEP, done = 0; size <= MOST;) {
        class_size[++class] = (uint16_t)size;
        batch_count[class] = (uint16_t)(BATCH / size);
        while (done <= size / STEP)
            class_of[done++] = class;
        size += size < FINE ? STEP : (1u << (31 - __builtin_clz(size))) / 4;
    }
}

static void hw_next_found(void)
{
    const int problem = errno, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *found = MAP_FAILED, *map = MAP_FAILED;
    size_t size = ROOM_MOST;
    make_classes();
    while (size >= ROOM_LEAST && (found = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0)) == MAP_FAILED)
        size /= 4;
    if (found != MAP_FAILED)
        map = mmap(NULL, size / SLAB, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (map != MAP_FAILED && pthread_key_create(&thread_end, end_thread) == 0) {
        pthread_atfork(take_lock, give_lock, give_lock);
        slab_class = map;
        room_size = size;
        __atomic_store_n(&room, (uintptr_t)found, __ATOMIC_RELEASE);
    }
    errno = problem;
}

/* ---- blocks ---- */

/* Its class; 0: it is the next allocator's. */
static inline uint8_t class_at(const void *block)
{
    const uintptr_t at = (uintptr_t)block - room;
    return at < room_size ? slab_class[at / SLAB] : 0;
}

/* New blocks, a batch of them; NULL: the room is full. */
static struct block *cut(uint8_t class)
{
    const size_t size = class_size[class];
    struct block *first = NULL, **last = &first;
    if ((size_t)(shared.of[class].end - shared.of[class].at) < size) {
        if ((shared.slabs + 1) * SLAB > room_size)
            return NULL;
        shared.of[class].at = (char *)room + shared.slabs * SLAB;
        shared.of[class].end = shared.of[class].at + SLAB;
        slab_class[shared.slabs++] = class;
    }
    for (size_t cut = 0; cut < BATCH && (size_t)(shared.of[class].end - shared.of[class].at) >= size; cut += size) {
        *last = (struct block *)(void *)shared.of[class].at;
        last = &(*last)->next;
        shared.of[class].at += size;
    }
    *last = NULL;
    return first;
}

static __attribute__((noinline)) void *take_slow(uint8_t class)
{
    struct lists *lists = &own.of[class];
    struct block *batch = lists->batch;
    lists->batch = NULL;
    if (!batch) {
        take_lock();
        batch = shared.of[class].batches;
        if (batch)
            shared.of[class].batches = batch->next_batch;
        else
            batch = cut(class);
        give_lock();
    }
    if (!batch)
        return NULL;
    lists->some = batch->next;
    lists->count = batch_count[class];
    if (!own.known) {
        own.known = true; /* first: the next line may allocate */
        pthread_setspecific(thread_end, &own);
    }
    return batch;
}

/* NULL: there is no room for it. */
static inline void *take(size_t size)
{
    const uint8_t class = class_of[(size + STEP - 1) / STEP];
    struct lists *lists = &own.of[class];
    struct block *block = lists->some;
    if (__builtin_expect(!block, 0))
        return take_slow(class);
    lists->some = block->next;
    lists->count--;
    return block;
}

static inline void give(void *address, uint8_t class)
{
    struct lists *lists = &own.of[class];
    struct block *block = address;
    block->next = lists->some;
    lists->some = block;
    if (__builtin_expect(++lists->count < batch_count[class], 1))
        return;
    give_batch(class, lists->batch);
    lists->batch = block;
    lists->some = NULL;
    lists->count = 0;
}

/* ---- what programs call ---- */

HW_EXPORT void *malloc(size_t size)
{
    if (!hw_next_ready())
        return hw_early_take(size);
    void *block = size <= MOST ? take(size) : NULL;
    return block ? block : hw_next.malloc(size);
}

HW_EXPORT void *calloc(size_t count, size_t each)
{
    size_t size;
    const bool fits = !__builtin_mul_overflow(count, each, &size);
    if (!hw_next_ready())
        return fits ? hw_early_take(size) : NULL;
    void *block = fits && size <= MOST ? take(size) : NULL;
    return block ? memset(block, 0, size) : hw_next.calloc(count, each);
}

HW_EXPORT void free(void *block)
{
    if (!block || hw_early_is(block) || !hw_next_ready())
        return;
    const uint8_t class = class_at(block);
    if (class)
        give(block, class);
    else
        hw_next.free(block);
}

static void *move(void *before, size_t had, size_t size)
{
    void *block = malloc(size);
    if (!block)
        return NULL;
    memcpy(block, before, had < size ? had : size);
    free(before);
    return block;
}

HW_EXPORT void *realloc(void *before, size_t size)
{
    if (!before)
        return malloc(size);
    if (hw_early_is(before))
        return move(before, hw_early_size(before), size);
    const uint8_t class = hw_next_ready() ? class_at(before) : 0;
    if (!class)
        return hw_next.realloc(before, size);
    if (size == 0) {
        give(before, class);
        return NULL;
    }
    if (size <= MOST && class_of[(size + STEP - 1) / STEP] == class)
        return before;
    return move(before, class_size[class], size);
}

HW_EXPORT void *memalign(size_t alignment, size_t size)
{
    return hw_next_ready() && hw_next.memalign ? hw_next.memalign(alignment, size) : NULL;
}

HW_EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    return hw_next_ready() && hw_next.posix_memalign ? hw_next.posix_memalign(block, alignment, size) : ENOMEM;
}

HW_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return hw_next_ready() && hw_next.aligned_alloc ? hw_next.aligned_alloc(alignment, size) : NULL;
}

HW_EXPORT size_t malloc_usable_size(void *block)
{
    if (!block || !hw_next_ready())
        return 0;
    if (hw_early_is(block))
        return hw_early_size(block);
    const uint8_t class = class_at(block);
    return class ? class_size[class] : hw_next.malloc_usable_size ? hw_next.malloc_usable_size(block) : 0;
}
