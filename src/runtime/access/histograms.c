/* histograms.c - the counts of single words of blocks, where granules have 8 or 4 bytes: entries of HISTOGRAM or WORDS
 * for freed blocks, of HISTOGRAM_LIVE or WORDS_LIVE for live ones.
 *
 * Entries of freed blocks belong to a MIB, and where free stacks are recorded to a MIB and the context that freed them:
 * so one thread at a time writes them. */
#include "runtime/access/cells.h"
#include "runtime/core/memory.h"

#define CHUNKS      256u  /* runs of words of a block, of 8 bytes: 124 KiB */
#define CHUNKS_4    1024u /* of 4 bytes: 128 KiB */
#define TABLES_MOST (1u << 22)

/* Tables of chunks are carved from one range: one for each context of live blocks, one for each pair of a MIB and of
 * where its blocks were freed. */
static struct {
    uint32_t *live; /* by context: table + 1 */
    uint32_t *tables;
    uint32_t chunks; /* of a table */
    uint32_t used;
} histograms;

/* By MIB, whose thread alone uses it: the table that was needed last. */
struct hw_histogram_owner *hw_histogram_owners;

/* Tables of freed blocks: open addressing, under the lock. A MIB may have been another context's before. */
static struct {
    struct pair {
        uint32_t mib, context, free_context;
        uint32_t table; /* + 1; 0: free */
    } * slots;
    uint32_t mask, count;
} pairs;

/* The entry of run CHUNK, a new one where there is none yet; NULL when there is no room. */
static void *entry_of(struct hw_histogram_target *target, uint64_t chunk)
{
    if (!target->chunk[chunk]) {
        hw_sigset old = 0;
        if (!target->locked)
            old = hw_lock_take(&hw_runtime.lock);
        uint32_t index = target->chunk[chunk] ? 0 : hw_pool_take(target->pool, 1);
        if (!target->chunk[chunk] && index != HW_NONE) {
            if (histograms.chunks == CHUNKS_4) {
                struct hw_words *entry = HW_ENTRY(target->pool, struct hw_words, index);
                *entry = (struct hw_words){.context = target->context,
                                           .free_context = target->free_context,
                                           .first_word = (uint32_t)(chunk * HW_WORDS_RUN)};
            } else {
                *HW_ENTRY(target->pool, struct hw_histogram, index) = (struct hw_histogram){
                    .context = target->context, .first_word = (uint32_t)(chunk * HW_HISTOGRAM_WORDS)};
            }
            hw_pool_publish(target->pool);
            target->chunk[chunk] = index + 1;
            if (target->owner && !chunk)
                target->owner->first = index + 1;
        }
        if (!target->locked)
            hw_lock_drop(&hw_runtime.lock, old);
        if (index == HW_NONE)
            return NULL;
    }
    return hw_pools[target->pool].base + (uint64_t)(target->chunk[chunk] - 1) * hw_pools[target->pool].entry_size;
}

void hw_histogram_add(struct hw_histogram_target *target, uintptr_t address, uint64_t count, bool saturated)
{
    uint64_t word = (address - target->start) / 8, chunk = word / HW_HISTOGRAM_WORDS;
    struct hw_histogram *entry = chunk < CHUNKS ? entry_of(target, chunk) : NULL;
    if (!entry)
        return;
    entry->words[word % HW_HISTOGRAM_WORDS] += count;
    entry->saturated += saturated;
}

void hw_histogram_add_word(struct hw_histogram_target *target, uintptr_t address, uint64_t reads, uint64_t writes,
                           bool saturated)
{
    uint64_t word = (address - target->start) / 4, chunk = word / HW_WORDS_RUN;
    struct hw_words *entry = chunk < CHUNKS_4 ? entry_of(target, chunk) : NULL;
    if (!entry)
        return;
    uint64_t i = word % HW_WORDS_RUN;
    entry->read_periods[i] += reads;
    entry->written_periods[i] += writes;
    entry->read_blocks[i] += reads != 0;
    entry->written_blocks[i] += writes != 0;
    entry->saturated += saturated;
}

struct hw_words *hw_histogram_words_slow(struct hw_histogram_target *target, uintptr_t address)
{
    uint64_t chunk = (address - target->start) / (4 * HW_WORDS_RUN);
    return chunk < CHUNKS_4 ? entry_of(target, chunk) : NULL;
}

static uint32_t new_table(void)
{
    uint32_t table = __atomic_fetch_add(&histograms.used, 1, __ATOMIC_RELAXED);
    return table < TABLES_MOST ? table + 1 : 0;
}

static uint32_t *chunks_of_table(uint32_t table)
{
    return histograms.tables + (uint64_t)(table - 1) * histograms.chunks;
}

/* Lock held. */
static struct pair *find_pair(struct pair *slots, uint32_t mask, uint32_t mib, uint32_t context, uint32_t free_context)
{
    uint64_t hash = (((uint64_t)mib << 32) | free_context) * 0x9e3779b97f4a7c15ull;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    while (slots[at].table &&
           (slots[at].mib != mib || slots[at].context != context || slots[at].free_context != free_context))
        at = (at + 1) & mask;
    return &slots[at];
}

static bool grow_pairs(void)
{
    uint32_t mask = pairs.slots ? pairs.mask * 2 + 1 : 4095;
    struct pair *slots = hw_pages((mask + 1ul) * sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; pairs.slots && i <= pairs.mask; i++) {
        const struct pair *old = &pairs.slots[i];
        if (old->table)
            *find_pair(slots, mask, old->mib, old->context, old->free_context) = *old;
    }
    if (pairs.slots)
        hw_munmap(pairs.slots, (pairs.mask + 1ul) * sizeof *slots);
    pairs.slots = slots;
    pairs.mask = mask;
    return true;
}

/* Makes OWNER, of the MIB with this number, that of the table for blocks of CONTEXT that FREE_CONTEXT frees. */
static __attribute__((noinline)) bool find_table(struct hw_histogram_owner *owner, uint32_t mib, uint32_t context,
                                                 uint32_t free_context)
{
    uint32_t table = 0;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if ((pairs.slots && pairs.count * 2 <= pairs.mask) || (!hw_quiet && grow_pairs())) {
        struct pair *pair = find_pair(pairs.slots, pairs.mask, mib, context, free_context);
        if (!pair->table) {
            *pair = (struct pair){mib, context, free_context, new_table()};
            pairs.count += pair->table != 0;
        }
        table = pair->table;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    *owner = (struct hw_histogram_owner){context, free_context, table, table ? *chunks_of_table(table) : 0};
    return table != 0;
}

static struct hw_histogram_target *begin(struct hw_histogram_target *target, enum hw_pool_id of_8, enum hw_pool_id of_4,
                                         const void *address)
{
    bool words = hw_shadow.granule == 4;
    if (hw_likely(hw_shadow.granule == 64))
        return NULL;
    *target = (struct hw_histogram_target){
        .pool = words ? of_4 : of_8, .free_context = HW_NONE, .start = (uintptr_t)address & ~(words ? 3ul : 7ul)};
    return target;
}

struct hw_histogram_target *hw_histogram_of_freed(struct hw_histogram_target *target, const struct hw_mib *mib,
                                                  uint32_t free_context, const void *address)
{
    if (!begin(target, HW_POOL_HISTOGRAM, HW_POOL_WORDS, address))
        return NULL;
    target->context = mib->context;
    if (target->pool == HW_POOL_WORDS)
        target->free_context = free_context;
    uint32_t index = (uint32_t)(mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0));
    struct hw_histogram_owner *owner = &hw_histogram_owners[index];
    if (hw_unlikely(!owner->table || owner->context != mib->context || owner->free_context != target->free_context) &&
        !find_table(owner, index, mib->context, target->free_context))
        return NULL;
    target->owner = owner;
    target->chunk = chunks_of_table(owner->table);
    return target;
}

struct hw_histogram_target *hw_histogram_of_live(struct hw_histogram_target *target, uint32_t context,
                                                 const void *address)
{
    if (!begin(target, HW_POOL_HISTOGRAM_LIVE, HW_POOL_WORDS_LIVE, address))
        return NULL;
    target->locked = true;
    target->context = context;
    if (!histograms.live[context] && !(histograms.live[context] = new_table()))
        return NULL;
    target->chunk = chunks_of_table(histograms.live[context]);
    return target;
}

void hw_histograms_forget_live(uint32_t contexts)
{
    for (uint32_t i = 0; histograms.live && i < contexts; i++)
        if (histograms.live[i])
            for (uint32_t chunk = 0; chunk < histograms.chunks; chunk++)
                chunks_of_table(histograms.live[i])[chunk] = 0;
}

void hw_histograms_reset(void)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_HISTOGRAM); i++) {
        struct hw_histogram *entry = HW_ENTRY(HW_POOL_HISTOGRAM, struct hw_histogram, i);
        *entry = (struct hw_histogram){.context = entry->context, .first_word = entry->first_word};
    }
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_WORDS); i++) {
        struct hw_words *entry = HW_ENTRY(HW_POOL_WORDS, struct hw_words, i);
        *entry = (struct hw_words){
            .context = entry->context, .free_context = entry->free_context, .first_word = entry->first_word};
    }
}

bool hw_histograms_start(void)
{
    histograms.used = 0;
    pairs.count = 0;
    for (uint32_t i = 0; pairs.slots && i <= pairs.mask; i++)
        pairs.slots[i] = (struct pair){0};
    if (hw_shadow.granule == 64 || hw_histogram_owners)
        return true;
    histograms.chunks = hw_shadow.granule == 4 ? CHUNKS_4 : CHUNKS;
    uint64_t contexts = hw_pools[HW_POOL_CONTEXTS].reserved / sizeof(struct hw_context_entry);
    hw_histogram_owners =
        hw_own_pages(hw_pools[HW_POOL_MIBS].reserved / sizeof(struct hw_mib) * sizeof *hw_histogram_owners, true);
    histograms.live = hw_own_pages(contexts * 4, true);
    histograms.tables = hw_own_pages((uint64_t)TABLES_MOST * histograms.chunks * sizeof *histograms.tables, true);
    return hw_histogram_owners && histograms.live && histograms.tables;
}
