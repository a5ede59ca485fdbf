/* block_starts.c - the block that an address lies in: for sampled accesses only.
 *
 * blocks.c knows blocks by the addresses that they begin at. Here is a bit for each 16 bytes of address space, set
 * where a block begins, and above it bits for words with any, up to one word for it all: the nearest begin below an
 * address is found in a few steps. Lock-free; without atomic instructions while there is one thread (the second one
 * waits until this one is outside of its event, hw_heap_threads_many). The bits above are hints that stay when a word
 * has become empty again, so that nobody has to clear them at the right moment; a search that meets too many of those
 * gives up. */
#include "runtime/core/memory.h"
#include "runtime/heap/blocks.h"

#define LEVELS      8
#define GRANULES    (1ul << (HW_ARCH_ADDRESS_BITS - 4))
#define PROBES_MOST 512u

bool hw_block_starts_on;
uint64_t *hw_block_start_bits;
static uint64_t *level[LEVELS];

bool hw_block_starts_begin(void)
{
    if (hw_block_starts_on) /* a forked child has those of its parent */
        return true;
    if (hw_address_space_limited())
        return false;
    uint64_t bits = GRANULES;
    for (unsigned l = 0; l < LEVELS; l++) {
        uint64_t bytes = HW_ALIGN_UP((bits + 63) / 64 * 8, HW_PAGE);
        level[l] = hw_own_pages(bytes, false);
        if (!level[l])
            return false;
        bits = (bits + 63) / 64;
    }
    hw_block_start_bits = level[0];
    hw_block_starts_on = true;
    return true;
}

void hw_block_starts_set(const void *address)
{
    uint64_t bit = (uint64_t)address >> 4;
    if (bit >= GRANULES)
        return;
    for (unsigned l = 0; l < LEVELS; l++, bit >>= 6) {
        uint64_t *word = &level[l][bit >> 6], mask = 1ul << (bit & 63);
        if (l && __atomic_load_n(word, __ATOMIC_RELAXED) & mask)
            return; /* then those above are set, too */
        /* Never lost, even if a word above is set a moment later: a reader meanwhile misses a block that is just being
         * allocated. */
        if (hw_likely(!hw_runtime.threads_many))
            hw_arch_set_bits(word, mask);
        else
            __atomic_fetch_or(word, mask, __ATOMIC_ACQ_REL);
    }
}

void hw_block_starts_clear(const void *address)
{
    uint64_t bit = (uint64_t)address >> 4, keep = ~(1ul << (bit & 63));
    if (bit >= GRANULES)
        return;
    if (hw_likely(!hw_runtime.threads_many))
        hw_arch_keep_bits(&level[0][bit >> 6], keep);
    else
        __atomic_fetch_and(&level[0][bit >> 6], keep, __ATOMIC_ACQ_REL);
}

uintptr_t hw_block_starts_find(uintptr_t address)
{
    uint64_t bit = (uint64_t)address >> 4, below = ~0ul >> (63 - (bit & 63));
    unsigned l = 0;
    if (bit >= GRANULES)
        return 0;
    for (unsigned probe = 0; probe < PROBES_MOST; probe++) {
        uint64_t found = __atomic_load_n(&level[l][bit >> 6], __ATOMIC_RELAXED) & below;
        if (found) {
            bit = (bit & ~63ul) | (63 - (unsigned)__builtin_clzl(found));
            if (l == 0)
                return bit << 4;
            l--; /* into the word that this bit stands for: anywhere in it */
            bit = bit << 6 | 63;
            below = ~0ul;
        } else {
            if (++l == LEVELS)
                return 0;
            bit >>= 6; /* the words before this one */
            below = (1ul << (bit & 63)) - 1;
        }
    }
    return 0;
}
