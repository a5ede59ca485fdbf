/* reset.c - heapwise_reset(): forgets what was counted so far; what is live stays known.
 *
 * The same entries of the profile go on, from zero: threads keep their MIBs, and nothing that they remember becomes
 * void. Nobody counts meanwhile (hw_threads_stop), so that every event belongs to one side. The stamp distinguishes
 * blocks that were live from later ones, as in a forked child those of its parent (hw_runtime.old_below); they stay in
 * the live figures and in the peak, but their frees are counted apart, as frees of inherited blocks:
 *
 *   live blocks = allocations - frees + inherited blocks - inherited frees
 *
 * A forked child does not have what it inherited among its live blocks. With its first reset it gets it there. */
#include "runtime/access/access.h"
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/thread_list.h"
#include "runtime/core/threads.h"

/* What is live, by context. Variances: of sampled runs. */
struct live {
    struct hw_inherited *of;    /* private pages; behind them a number for each context */
    int64_t blocks, live_bytes; /* of all contexts but pools', whose blocks lie in others */
    size_t size;
    uint32_t contexts;
};

static void add(struct live *live, uint32_t context, int64_t blocks, int64_t bytes)
{
    if (context < live->contexts) {
        live->of[context].blocks += blocks;
        live->of[context].bytes += bytes;
    }
}

static void add_variance(struct live *live, uint32_t context, uint64_t count, uint64_t bytes)
{
    if (hw_options.sample_bytes && context < live->contexts) {
        live->of[context].count_variance += count;
        live->of[context].bytes_variance += bytes;
    }
}

static bool begin(struct live *live)
{
    live->contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    live->size = HW_ALIGN_UP((live->contexts + 1) * (sizeof *live->of + sizeof(uint32_t)), HW_PAGE);
    live->blocks = live->live_bytes = 0;
    live->of = hw_pages(live->size);
    return live->of != NULL;
}

/* What a forked child inherited and has not freed becomes live, as if allocated at its start. */
static void take_over_inherited(struct live *live)
{
    struct hw_process_info *process = hw_runtime.process;
    uint32_t mibs = (uint32_t)HW_ENTRIES(HW_POOL_MIBS);
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_INHERITED); i++) {
        const struct hw_inherited *entry = HW_ENTRY(HW_POOL_INHERITED, struct hw_inherited, i);
        add(live, entry->context, entry->blocks, entry->bytes);
        add_variance(live, entry->context, entry->count_variance, entry->bytes_variance);
    }
    for (uint32_t i = 1; i < mibs; i++) {
        const struct hw_mib *mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i);
        if (!(mib->flags & HW_MIB_POOL))
            add(live, mib->context, -(int64_t)mib->inherited_frees, -(int64_t)mib->inherited_freed_bytes);
    }
    /* One entry of each context is enough for it. A context that has none was never used here: then its share stands
     * in an entry of its own. */
    uint32_t taken = hw_thread_entry_take();                    /* that no thread ever has */
    uint32_t *mib_of = (uint32_t *)(live->of + live->contexts); /* by context; 0: none */
    for (uint32_t i = mibs; i-- > 1;)
        if (HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i)->context < live->contexts)
            mib_of[HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i)->context] = i;
    for (uint32_t context = 0; context < live->contexts; context++) {
        struct hw_inherited *rest = &live->of[context];
        if (!rest->blocks && !rest->bytes)
            continue;
        struct hw_mib *mib = mib_of[context] ? HW_ENTRY(HW_POOL_MIBS, struct hw_mib, mib_of[context]) : NULL;
        uint32_t index = mib ? 0 : hw_pool_take(HW_POOL_MIBS, 1);
        if (!mib && index != HW_NONE) {
            mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, index);
            mib->context = context;
            mib->size_first = UINT64_MAX;
            hw_access_reset_entry(mib, context);
        }
        if (mib) {
            mib->live_blocks += rest->blocks;
            mib->live_bytes += rest->bytes;
            hw_distributions_mix(mib);
        }
        if (mib && hw_options.sample_bytes) {
            mib->count_variance += rest->count_variance;
            mib->bytes_variance += rest->bytes_variance;
        }
        if (taken != HW_NONE) {
            struct hw_thread_entry *entry = HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, taken);
            entry->live_blocks += rest->blocks;
            entry->live_bytes += rest->bytes;
        }
        process->live_blocks += rest->blocks;
        process->live_bytes += rest->bytes;
        *rest = (struct hw_inherited){0};
    }
    hw_pool_publish(HW_POOL_MIBS);
    hw_thread_list_inherited(taken);
    if (hw_options.sample_bytes)
        hw_sample_take_inherited();
}

/* What was live at an earlier reset: variances of what has been freed since are in those of the freed blocks. */
static void add_earlier_variances(struct live *live)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_INHERITED); i++) {
        const struct hw_inherited *entry = HW_ENTRY(HW_POOL_INHERITED, struct hw_inherited, i);
        add_variance(live, entry->context, entry->count_variance, entry->bytes_variance);
    }
}

static void reset_mibs(struct live *live, uint64_t epoch)
{
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_MIBS); i++) {
        struct hw_mib *mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i);
        if (!(mib->flags & HW_MIB_POOL)) {
            add(live, mib->context, mib->live_blocks, mib->live_bytes);
            add_variance(live, mib->context, mib->count_variance - mib->freed_count_variance,
                         mib->bytes_variance - mib->freed_bytes_variance);
            live->blocks += mib->live_blocks;
            live->live_bytes += mib->live_bytes;
        }
        const uint32_t slot = mib->slot, home = mib->home;
        *mib = (struct hw_mib){
            .context = mib->context,
            .size_min = UINT64_MAX,
            .live_bytes = mib->live_bytes,
            .live_blocks = mib->live_blocks,
            .peak_epoch = epoch,
            .peak_bytes = mib->live_bytes,
            .peak_blocks = mib->live_blocks,
            .live_ticks = mib->live_ticks,
            .lifetime_min = UINT64_MAX,
            .flags = mib->flags,
            .size_first = mib->size_first,
            .first_bucket = mib->first_bucket,
            .first_life = HW_NO_FIRST_LIFE,
            .links = mib->links,
        };
        mib->slot = slot;
        mib->home = home;
    }
    hw_distributions_reset(epoch);
}

static void reset_threads(uint64_t epoch)
{
    hw_thread_list_reset(epoch); /* before: what is live becomes that of the threads that allocated it */
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++) {
        struct hw_thread_entry *entry = HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i);
        *entry = (struct hw_thread_entry){
            .serial = entry->serial,
            .tid = entry->tid,
            .live_bytes = entry->live_bytes,
            .live_blocks = entry->live_blocks,
        };
    }
}

static void write_inherited(const struct live *live)
{
    struct hw_process_info *process = hw_runtime.process;
    process->inherited_blocks = live->blocks;
    process->inherited_bytes = live->live_bytes;
    hw_pool_set_count(HW_POOL_INHERITED, 0);
    for (uint32_t context = 0; context < live->contexts; context++) {
        struct hw_inherited entry = live->of[context];
        if (!entry.blocks && !entry.bytes)
            continue;
        uint32_t index = hw_pool_take(HW_POOL_INHERITED, 1);
        if (index == HW_NONE)
            continue;
        entry.context = context;
        *HW_ENTRY(HW_POOL_INHERITED, struct hw_inherited, index) = entry;
    }
    hw_pool_publish(HW_POOL_INHERITED);
}

static void begin_anew(struct hw_thread *thread)
{
    thread->born = hw_runtime.old_below;
}

/* Stamps from now on are not below old_below, also when they are remembered coarsely: it is a multiple of the
 * coarsest unit, and waited for. */
void hw_reset_begin_period(void)
{
    struct hw_process_info *process = hw_runtime.process;
    int64_t live_bytes = 0; /* of all threads, exactly */
    uint64_t unit = 1ull << HW_STAMP_COARSE_SHIFT;
    uint64_t begin = HW_ALIGN_UP(hw_ticks_raw() - hw_runtime.family_base, unit);
    while (hw_ticks_raw() - hw_runtime.family_base < begin)
        hw_arch_pause();
    hw_runtime.old_below = begin;
    hw_threads_each(begin_anew);
    process->reset_tick = begin - (hw_runtime.tick_base - hw_runtime.family_base);
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++)
        live_bytes += HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i)->live_bytes;
    process->peak_bytes = live_bytes > 0 ? (uint64_t)live_bytes : 0;
    process->peak_tick = process->reset_tick;
    hw_runtime.peak_limit = process->peak_bytes;
}

/* Nobody counts, but for what operation_reset.c is about; lock held. */
static void reset(struct live *live)
{
    struct hw_process_info *process = hw_runtime.process;
    if ((process->flags & HW_PROCESS_FORKED) && !(process->flags & HW_PROCESS_RESET))
        take_over_inherited(live);
    else if (process->flags & HW_PROCESS_RESET)
        add_earlier_variances(live);
    reset_mibs(live, ++process->peak_epoch);
    reset_threads(process->peak_epoch);
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_FREE_STACKS); i++) {
        struct hw_free_stack *pair = HW_ENTRY(HW_POOL_FREE_STACKS, struct hw_free_stack, i);
        pair->count = pair->bytes = 0;
    }
    write_inherited(live);
    hw_parts_reset();
    process->evictions = 0;
    process->flags |= HW_PROCESS_RESET;
}

/* What is live is unknown from now on. */
static void forget_live(void)
{
    struct hw_process_info *process = hw_runtime.process;
    for (uint32_t i = 1; i < HW_ENTRIES(HW_POOL_MIBS); i++) {
        struct hw_mib *mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i);
        mib->live_blocks = mib->live_bytes = 0;
        mib->live_ticks = 0;
        mib->count_variance = mib->freed_count_variance = mib->bytes_variance = mib->freed_bytes_variance = 0;
    }
    hw_distributions_forget_live();
    hw_thread_list_forget_live();
    hw_pool_forget_blocks();
    hw_sample_forget_live();
    hw_threads_forget_blocks();
    hw_pool_set_count(HW_POOL_INHERITED, 0);
    process->live_blocks = process->live_bytes = 0;
}

bool hw_reset_to_nothing(void)
{
    struct live live;
    if (!begin(&live))
        return false;
    forget_live();
    hw_runtime.process->flags |= HW_PROCESS_RESET; /* a child: it has nothing of its parent either */
    reset(&live);
    hw_munmap(live.of, live.size);
    return true;
}

HW_EXPORTED(int, heapwise_reset, (void))
{
    struct live live;
    if (!hw_dump_possible() || hw_period_passing())
        return -1;
    hw_sigset outer = hw_dump_lock();
    hw_threads_stop();
    hw_sigset inner = hw_lock_take(&hw_runtime.lock);
    bool fine = begin(&live);
    if (fine) {
        fine = !hw_operations_on || hw_operations_reset();
        if (fine)
            reset(&live);
        hw_munmap(live.of, live.size);
    }
    hw_lock_drop(&hw_runtime.lock, inner);
    hw_threads_go();
    hw_dump_unlock(outer);
    if (fine)
        hw_note(HW_NOTE_RESET, NULL);
    return fine ? 0 : -1;
}
