/* histograms.c - the counts of single words of blocks, where granules have 8 bytes: entries of HISTOGRAM for freed
 * blocks, of HISTOGRAM_LIVE for live ones. */
#include "runtime/access.h"

#define WORDS_MOST  (HW_HISTOGRAM_WORDS * 256ul) /* of a block in histograms: 124 KiB */
#define TABLES_MOST (1u << 22)

/* For each MIB (freed blocks) or context (live ones): which table of chunks; tables are carved from one range. */
static struct {
    uint32_t *freed, *live; /* table + 1 */
    uint32_t (*tables)[256];
    uint32_t used;
} histograms;

void hw_histogram_add(struct hw_histogram_target *histogram, uintptr_t address, uint64_t count, bool saturated)
{
    uint64_t word = (address - histogram->start) / 8, chunk = word / HW_HISTOGRAM_WORDS;
    if (!histogram->chunk || word >= WORDS_MOST)
        return;
    if (hw_unlikely(!histogram->chunk[chunk])) {
        hw_sigset old = 0;
        bool live = histogram->pool == HW_POOL_HISTOGRAM_LIVE; /* then the lock is held */
        if (!live)
            old = hw_lock_take(&hw_runtime.lock);
        uint32_t index = hw_pool_take(histogram->pool, 1);
        if (index != HW_NONE) {
            *HW_ENTRY(histogram->pool, struct hw_histogram, index) = (struct hw_histogram){
                .context = histogram->context, .first_word = (uint32_t)(chunk * HW_HISTOGRAM_WORDS)};
            hw_pool_publish(histogram->pool);
            histogram->chunk[chunk] = index + 1;
        }
        if (!live)
            hw_lock_drop(&hw_runtime.lock, old);
        if (index == HW_NONE)
            return;
    }
    struct hw_histogram *entry = HW_ENTRY(histogram->pool, struct hw_histogram, histogram->chunk[chunk] - 1);
    entry->words[word % HW_HISTOGRAM_WORDS] += count;
    entry->saturated += saturated;
}

/* OWNER is an index into TABLE_OF. */
static uint32_t *chunks_of(uint32_t *table_of, uint32_t owner)
{
    if (!table_of)
        return NULL;
    if (!table_of[owner]) {
        uint32_t table = __atomic_fetch_add(&histograms.used, 1, __ATOMIC_RELAXED);
        if (table >= TABLES_MOST)
            return NULL;
        table_of[owner] = table + 1;
    }
    return histograms.tables[table_of[owner] - 1];
}

static struct hw_histogram_target *target_of(struct hw_histogram_target *target, enum hw_pool_id pool,
                                             uint32_t *table_of, uint32_t owner, uint32_t context, const void *address)
{
    if (hw_likely(hw_shadow.granule != 8))
        return NULL;
    *target = (struct hw_histogram_target){pool, context, chunks_of(table_of, owner), (uintptr_t)address & ~7ul};
    return target->chunk ? target : NULL;
}

struct hw_histogram_target *hw_histogram_of_freed(struct hw_histogram_target *target, const struct hw_mib *mib,
                                                  const void *address)
{
    uint32_t owner = (uint32_t)(mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0));
    return target_of(target, HW_POOL_HISTOGRAM, histograms.freed, owner, mib->context, address);
}

struct hw_histogram_target *hw_histogram_of_live(struct hw_histogram_target *target, uint32_t context,
                                                 const void *address)
{
    return target_of(target, HW_POOL_HISTOGRAM_LIVE, histograms.live, context, context, address);
}

void hw_histograms_forget_live(uint32_t contexts)
{
    for (uint32_t i = 0; histograms.live && i < contexts; i++)
        if (histograms.live[i])
            for (int chunk = 0; chunk < 256; chunk++)
                histograms.tables[histograms.live[i] - 1][chunk] = 0;
}

void hw_histograms_reset(void)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_HISTOGRAM); i++) {
        struct hw_histogram *entry = HW_ENTRY(HW_POOL_HISTOGRAM, struct hw_histogram, i);
        *entry = (struct hw_histogram){.context = entry->context, .first_word = entry->first_word};
    }
}

bool hw_histograms_start(void)
{
    histograms.used = 0;
    if (hw_shadow.granule != 8 || histograms.freed)
        return true;
    uint64_t contexts = hw_pools[HW_POOL_CONTEXTS].reserved / sizeof(struct hw_context_entry);
    histograms.freed = hw_own_pages(hw_pools[HW_POOL_MIBS].reserved / sizeof(struct hw_mib) * 4, true);
    histograms.live = hw_own_pages(contexts * 4, true);
    histograms.tables = hw_own_pages((uint64_t)TABLES_MOST * sizeof *histograms.tables, true);
    return histograms.freed && histograms.live && histograms.tables;
}
