/* mapping_ring.c - see mapping_ring.h.
 *
 * A change has a number, and its place is that number modulo the size. A place's state is its round (how often it was
 * used) and what happens in this round. Places are occupied in order: nobody tries the next one before this one is
 * occupied. So a change that is begun after another one was put has a greater number. */
#include "runtime/core/mapping_ring.h"

enum { FREE, WRITING, FULL, TAKEN, STATES }; /* TAKEN: while it was written; it is free when its thread goes on */

static struct {
    uint64_t state; /* round * STATES + one of them */
    struct hw_mapping_change change;
} ring[HW_MAPPING_RING];
static uint64_t first; /* the next one to be taken */
static uint64_t next;  /* about where the next one is put; not behind it */

static uint64_t state_of(uint64_t number, uint32_t state)
{
    return number / HW_MAPPING_RING * STATES + state;
}

static uint64_t state_at(uint64_t number)
{
    return __atomic_load_n(&ring[number % HW_MAPPING_RING].state, __ATOMIC_ACQUIRE);
}

static bool swap(uint64_t number, uint32_t from, uint32_t to)
{
    uint64_t expected = state_of(number, from);
    return __atomic_compare_exchange_n(&ring[number % HW_MAPPING_RING].state, &expected, state_of(number, to), false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void set_free(uint64_t number)
{
    __atomic_store_n(&ring[number % HW_MAPPING_RING].state, state_of(number + HW_MAPPING_RING, FREE), __ATOMIC_RELEASE);
}

bool hw_mapping_ring_put(struct hw_mapping_change change)
{
    uint64_t seen = __atomic_load_n(&next, __ATOMIC_RELAXED), number = seen;
    while (!swap(number, FREE, WRITING)) {
        const uint64_t state = state_at(number);
        if (state < state_of(number, FREE))
            return false; /* still in use since the round before */
        number += state > state_of(number, FREE);
    }
    while (seen <= number &&
           !__atomic_compare_exchange_n(&next, &seen, number + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    ring[number % HW_MAPPING_RING].change = change;
    if (swap(number, WRITING, FULL))
        return true;
    set_free(number);
    return false;
}

/* FIRST moves on before the place is free: a child that is forked in between finds its ring full, not one that hides
 * what comes behind. */
bool hw_mapping_ring_take(struct hw_mapping_change *change)
{
    for (;;) {
        const uint64_t number = first;
        const bool taken = swap(number, WRITING, TAKEN) || state_at(number) == state_of(number, TAKEN);
        if (!taken && state_at(number) != state_of(number, FULL))
            return false;
        if (!taken)
            *change = ring[number % HW_MAPPING_RING].change;
        __atomic_store_n(&first, number + 1, __ATOMIC_RELEASE);
        if (taken)
            continue;
        set_free(number);
        return true;
    }
}

uint32_t hw_mapping_ring_count(void)
{
    return (uint32_t)(__atomic_load_n(&next, __ATOMIC_ACQUIRE) - __atomic_load_n(&first, __ATOMIC_RELAXED));
}
