/* operation_own.c - allocator mode: what Heapwise itself takes in a usual operation, found out at the start.
 *
 * The share of a run that goes into its allocator is of the run as it would be without Heapwise: its own time is taken
 * out by readers. Usual operations are so short that reading the clock in each would take longer than they do, so the
 * way of one (the code of operations.c) is timed here, on a block of the runtime's own and with a stand-in for the
 * allocator: the least of some rounds of many pairs, with Heapwise less without it. The caches are warm: it is a lower
 * bound. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"

#define ROUNDS 16
#define PAIRS  64u
#define SIZE   24u
#define UNITS  (SIZE / 8)

/* A block of 24 bytes, behind a header as glibc writes it. */
static struct {
    uint64_t before, chunk, block[4];
} __attribute__((aligned(16))) trial = {.chunk = 0x21};

static struct hw_operator trial_operator;
static struct hw_place_thread trial_places HW_LARGE;
static struct hw_operation_counts trial_counts[HW_SIZE_BUCKETS] HW_LARGE;

static __attribute__((noinline)) void *stand_in_malloc(size_t size)
{
    void *block = trial.block;
    __asm__ volatile("" : "+r"(block) : "r"(size) : "memory");
    return block;
}

static __attribute__((noinline)) void stand_in_free(void *pointer)
{
    __asm__ volatile("" ::"r"(pointer) : "memory");
}

/* As in hooks.c. */
static volatile uint8_t on = 1;

static __attribute__((noinline)) void *hook_malloc(size_t size)
{
    return on ? hw_operation_trial_malloc(size) : stand_in_malloc(size);
}

static __attribute__((noinline)) void hook_free(void *pointer)
{
    if (pointer && on)
        hw_operation_trial_free(pointer);
}

static uint64_t time_pairs(void *(*volatile take)(size_t), void (*volatile give)(void *))
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = hw_ticks_fenced();
        for (uint32_t i = 0; i < PAIRS; i++)
            give(take(SIZE));
        const uint64_t took = hw_ticks_fenced() - begin;
        least = took < least ? took : least;
    }
    return least;
}

/* The block as a listed one, in a thread of its own that counts for nobody. */
static bool try_out(void)
{
    struct hw_place_class_counts *class = &trial_places.classes[UNITS];
    class->epoch = hw_places.epoch;
    class->high = class->span = trial_places.high = trial_places.span = 1ll << 40;
    trial_operator.places = &trial_places;
    trial_operator.counts = trial_counts;
    trial_operator.until_timed = UINT32_MAX;
    hw_operation_trial(&trial_operator, stand_in_malloc, stand_in_free);
    if (hook_malloc(SIZE) != trial.block)
        return false;
    hook_free(trial.block);
    return class->now.live == 0 && class->now.again == 1;
}

uint64_t hw_own_ticks_of_operations(void)
{
    static uint64_t found; /* as it is in a forked child */
    if (found || hw_places.many || !hw_places.even)
        return found;
    uint8_t *byte = hw_place_byte((uintptr_t)trial.block);
    const uint16_t units = hw_places.units[SIZE];
    hw_places.units[SIZE] = UNITS;
    *byte = (uint8_t)hw_place_forms[UNITS].listed;
    if (try_out()) {
        const uint64_t with = time_pairs(hook_malloc, hook_free), without = time_pairs(stand_in_malloc, stand_in_free);
        found = with > without ? (with - without) * 1000 / (2 * PAIRS) : 0;
    }
    *byte = 0;
    hw_places.units[SIZE] = units;
    return found;
}
