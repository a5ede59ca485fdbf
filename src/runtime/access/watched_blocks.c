/* watched_blocks.c - does code that does not count write to blocks?
 *
 * Cells say which bytes of a block counted code has touched. That nobody has touched the others cannot be concluded:
 * the C++ library links the nodes of its trees, the kernel fills buffers, a C library gets a pointer to a struct. So
 * some blocks of each context are watched, the 1st, 2nd, 4th, 8th … of a thread: the first bytes as they are when the
 * block is allocated are compared with what they are when it ends. A word that has changed, and that no counted code
 * has touched, was written by other code. What is only read by others, or written with the value that was there, is
 * not seen.
 *
 * A byte is kept of each word, in a small table without locks: a block whose place is taken is not watched. */
#include "runtime/access/cells.h"
#include "runtime/stacks/stacks.h"

struct hw_watched hw_watched[HW_WATCHED] HW_LARGE;

typedef uint32_t word __attribute__((may_alias));

static inline uint8_t digest(uint32_t value)
{
    return (uint8_t)(value * 0x9e3779b1u >> 24);
}

static inline uint32_t words_of(size_t size)
{
    return (uint32_t)(size / 4 < HW_WATCHED_WORDS ? size / 4 : HW_WATCHED_WORDS);
}

void hw_watch_begin(uintptr_t address, size_t size)
{
    struct hw_watched *block = hw_watched_at(address);
    const word *at = (const word *)address;
    uintptr_t none = 0;
    if (size < 4 || (address & 3) ||
        !__atomic_compare_exchange_n(&block->address, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    block->words = words_of(size);
    for (uint32_t i = 0; i < block->words; i++)
        block->digest[i] = digest(at[i]);
    __atomic_store_n(&block->address, address, __ATOMIC_RELEASE);
}

static bool is_touched(uintptr_t address)
{
    struct hw_cell_sum sum = {0};
    hw_cells_scan(address, address + 4, false, &sum, NULL);
    return sum.touched != 0;
}

bool hw_watch_changed(uintptr_t address, size_t size)
{
    const struct hw_watched *block = hw_watched_at(address);
    const word *at = (const word *)address;
    uint32_t words = words_of(size);
    if (__atomic_load_n(&block->address, __ATOMIC_ACQUIRE) != address)
        return false;
    words = words < block->words ? words : block->words;
    if (!words || !hw_readable(address) || !hw_readable(address + 4 * words - 4)) /* two pages at most */
        return false;
    for (uint32_t i = 0; i < words; i++)
        if (digest(at[i]) != block->digest[i] && !is_touched(address + 4 * i))
            return true;
    return false;
}

void hw_watch_forget(void)
{
    for (uint32_t i = 0; i < HW_WATCHED; i++)
        if (hw_watched[i].address)
            __atomic_store_n(&hw_watched[i].address, 0, __ATOMIC_RELEASE);
}
