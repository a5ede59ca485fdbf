/* distributions.c - sizes and lifetimes of the blocks of a context, where there are several: see distributions.h.
 *
 * A MIB finds its bars in a table of its own, in private memory: by the number of the bar, where its entry lies in the
 * file. Whoever counts in a MIB is alone there, as everywhere in heap.c: looking up takes no lock, and making a bar
 * takes one only when the stock of the thread is used up. */
#include "runtime/heap/distributions.h"

#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"

#define ROOM         (1ul << 30) /* bytes of address space, which are touched as they are used */
#define ROOM_LIMITED (1ul << 24) /* where address space is limited */
/* Each state of a thread has a stock of entries and tables, so that new ones take no lock, and lines of the file belong
 * to one thread: in a line of two, they would fight for it. Entries that are not in use are zero, and add nothing to
 * context 0. */
#define STOCK 32u
_Static_assert(STOCK * sizeof(struct hw_size_bar) % 64 == 0 && STOCK * sizeof(struct hw_lifetime_bar) % 64 == 0,
               "lines");
_Static_assert(HW_BAR_LIVES >= HW_SIZE_BUCKETS && HW_BAR_LIVES + HW_LIFETIME_BARS <= HW_BAR_NUMBERS, "a byte");

struct hw_bar_tables hw_bar_tables;

static struct {
    uint32_t most, used;               /* units; the first one stands for none */
    uint32_t free[HW_BAR_TABLE_KINDS]; /* tables that were given back: the first word has the next one */
    struct hw_bar_stock shared;        /* of MIBs of no thread in particular */
} own;

void hw_distributions_start(void)
{
    if (!hw_bar_tables.units) { /* a forked child uses those of its parent again */
        const uint64_t room = hw_address_space_limited() ? ROOM_LIMITED : ROOM;
        hw_bar_tables.units = hw_own_pages(room, false);
        own.most = (uint32_t)(room / sizeof *hw_bar_tables.units);
    }
    own.used = 1;
    __builtin_memset(own.free, 0, sizeof own.free);
    own.shared = (struct hw_bar_stock){0};
    hw_runtime.process->flags |= HW_PROCESS_BARS;
}

static uint32_t take_units(uint32_t count)
{
    if (!hw_bar_tables.units || own.most - own.used < count)
        return 0;
    own.used += count;
    return own.used - count;
}

/* An empty table; 0: there is no memory. Lock held, unless STOCK has one of kind 0. */
static uint32_t new_table(struct hw_bar_stock *stock, uint32_t kind)
{
    const uint32_t units = hw_bar_table_slots(kind) / HW_BAR_UNIT_SLOTS;
    uint32_t unit = 0;
    if (!kind && stock->tables.next < stock->tables.end)
        unit = stock->tables.next++;
    else if (own.free[kind]) {
        unit = own.free[kind];
        own.free[kind] = hw_bar_tables.units[unit][0];
    } else if (kind)
        unit = take_units(units);
    else if ((unit = take_units(STOCK)) != 0)
        stock->tables = (struct hw_bar_run){unit + 1, unit + STOCK};
    if (!unit)
        return 0;
    __builtin_memset(hw_bar_tables.units[unit], 0, units * sizeof *hw_bar_tables.units);
    return unit << 2 | kind;
}

static void free_table(uint32_t table)
{
    hw_bar_table_at(table)[0] = own.free[table & 3];
    own.free[table & 3] = table >> 2;
}

void hw_distributions_evicted(struct hw_mib *mib)
{
    if (!mib->links)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    free_table(mib->links);
    mib->links = 0;
    hw_lock_drop(&hw_runtime.lock, old);
}

/* False: another bar is there. */
static bool put(uint32_t table, uint32_t slot, uint32_t number)
{
    uint32_t *place = hw_bar_slot(table, number);
    if (*place)
        return false;
    *place = slot;
    return true;
}

static uint32_t number_of(uint32_t slot)
{
    const uint64_t at = (uint64_t)((slot & ~HW_BAR_LIFE) - 1) * 8;
    if (slot & HW_BAR_LIFE)
        return HW_BAR_LIVES +
               ((const struct hw_lifetime_bar *)((char *)hw_pools[HW_POOL_LIFETIME_BARS].base + at))->life;
    return ((const struct hw_size_bar *)((char *)hw_pools[HW_POOL_SIZE_BARS].base + at))->bucket;
}

/* Whether a bar with NUMBER, which has none yet, has a place in the table LINKS. */
static bool has_place(uint32_t links, uint32_t number)
{
    return links && !*hw_bar_slot(links, number);
}

/* A table with the bars of OLD and a place for one with NUMBER. The largest kind has a place for each. 0: no memory. */
static uint32_t larger_table(struct hw_bar_stock *stock, uint32_t old, uint32_t number)
{
    for (uint32_t kind = old ? (old & 3) + 1 : 0; kind < HW_BAR_TABLE_KINDS; kind++) {
        const uint32_t table = new_table(stock, kind);
        if (!table)
            break;
        bool fits = true;
        for (uint32_t i = 0; old && i < hw_bar_table_slots(old & 3); i++) {
            const uint32_t slot = hw_bar_table_at(old)[i];
            fits = fits && (!slot || put(table, slot, number_of(slot)));
        }
        if (fits && has_place(table, number))
            return table;
        free_table(table);
    }
    return 0;
}

static bool make_room(struct hw_mib *mib, struct hw_bar_stock *stock, uint32_t number)
{
    const uint32_t old = mib->links;
    if (has_place(old, number))
        return true;
    const uint32_t table = larger_table(stock, old, number);
    if (!table)
        return false;
    mib->links = table;
    if (old)
        free_table(old);
    return true;
}

/* The next entry of RUN; HW_NONE: the file cannot grow. Lock held, unless RUN has one. */
static uint32_t next_of(struct hw_bar_run *run, enum hw_pool_id pool)
{
    if (run->next == run->end) {
        const uint32_t first = hw_pool_take(pool, STOCK);
        if (first == HW_NONE)
            return HW_NONE;
        *run = (struct hw_bar_run){first, first + STOCK};
        hw_pool_publish(pool);
    }
    return run->next++;
}

/* The slot of a new entry; 0: there is no room. */
static uint32_t new_entry(const struct hw_mib *mib, struct hw_bar_stock *stock, uint32_t number)
{
    const bool life = number >= HW_BAR_LIVES;
    const uint32_t index =
        life ? next_of(&stock->lives, HW_POOL_LIFETIME_BARS) : next_of(&stock->sizes, HW_POOL_SIZE_BARS);
    const uint64_t slot =
        (uint64_t)index * (life ? sizeof(struct hw_lifetime_bar) : sizeof(struct hw_size_bar)) / 8 + 1;
    if (index == HW_NONE || slot >= HW_BAR_LIFE)
        return 0;
    if (life)
        *HW_ENTRY(HW_POOL_LIFETIME_BARS, struct hw_lifetime_bar, index) = (struct hw_lifetime_bar){
            .context = mib->context, .first = mib->first_life, .life = (uint16_t)(number - HW_BAR_LIVES)};
    else
        *HW_ENTRY(HW_POOL_SIZE_BARS, struct hw_size_bar, index) =
            (struct hw_size_bar){.context = mib->context,
                                 .first = mib->first_bucket,
                                 .bucket = (uint16_t)number,
                                 .peak_epoch = hw_runtime.process->peak_epoch};
    return (uint32_t)slot | (life ? HW_BAR_LIFE : 0);
}

void *hw_bar_make(struct hw_mib *mib, uint32_t number)
{
    struct hw_thread *thread = mib->slot ? hw_threads_of_slot(mib->slot - 1) : NULL;
    struct hw_bar_stock *stock = thread ? &thread->bars : &own.shared;
    const struct hw_bar_run *run = number >= HW_BAR_LIVES ? &stock->lives : &stock->sizes;
    const bool stocked = thread && run->next < run->end &&
                         (mib->links ? has_place(mib->links, number) : stock->tables.next < stock->tables.end);
    hw_sigset old = stocked ? 0 : hw_lock_take(&hw_runtime.lock);
    const uint32_t slot = make_room(mib, stock, number) ? new_entry(mib, stock, number) : 0;
    if (slot)
        put(mib->links, slot, number);
    if (!stocked)
        hw_lock_drop(&hw_runtime.lock, old);
    if (slot)
        return hw_bar_in_slot(slot, number);
    mib->flags |= number >= HW_BAR_LIVES ? HW_MIB_LIVES_MIXED : HW_MIB_SIZES_MIXED; /* it is among the rest */
    hw_note(HW_NOTE_BARS_LOST, NULL);
    return NULL;
}

void hw_size_resized(struct hw_mib *mib, uint64_t old_size, uint64_t size, uint64_t blocks)
{
    struct hw_size_bar *from = hw_size_bar_of(mib, old_size), *to = hw_size_bar_of(mib, size);
    if (from)
        hw_size_bar_live(from, -(int64_t)blocks, -(int64_t)(blocks * old_size));
    if (!to)
        return;
    hw_size_bar_live(to, (int64_t)blocks, (int64_t)(blocks * size));
    to->reallocations += blocks;
    to->bytes += size > old_size ? blocks * (size - old_size) : 0;
}

void hw_distributions_lost(struct hw_mib *mib)
{
    mib->flags |= HW_MIB_SIZES_MIXED | HW_MIB_LIVES_MIXED;
}

void hw_distributions_mix(struct hw_mib *mib)
{
    mib->flags |= HW_MIB_SIZES_MIXED;
}

void hw_distributions_forget_live(void)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_SIZE_BARS); i++) {
        struct hw_size_bar *bar = HW_ENTRY(HW_POOL_SIZE_BARS, struct hw_size_bar, i);
        bar->live_blocks = bar->live_bytes = 0;
    }
}

void hw_distributions_reset(uint64_t epoch)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_SIZE_BARS); i++) {
        struct hw_size_bar *bar = HW_ENTRY(HW_POOL_SIZE_BARS, struct hw_size_bar, i);
        bar->allocations = bar->reallocations = bar->bytes = 0;
        bar->peak_epoch = epoch;
        bar->peak_blocks = bar->live_blocks;
        bar->peak_bytes = bar->live_bytes;
    }
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_LIFETIME_BARS); i++) {
        struct hw_lifetime_bar *bar = HW_ENTRY(HW_POOL_LIFETIME_BARS, struct hw_lifetime_bar, i);
        bar->frees = bar->bytes = 0;
        bar->first = HW_NO_FIRST_LIFE; /* which of a context's bytes were freed since is not known otherwise */
    }
}
