/* operation_times.c - allocator mode: how long operations take, where they are called, and how long blocks live.
 *
 * Operations are drawn to be timed with a chance of 1 / 2^shift each, independently (gaps are geometric), and a timed
 * one counts 2^shift times: sums are unbiased whatever the program does (Horvitz and Thompson). The shift is a thread's
 * own: windows of some timed operations compare what timing cost with the thread's processor time, and the shift is
 * changed so that it stays near 1 %. Programs that allocate rarely are timed completely.
 *
 * Of timed allocations those are followed that another draw picks: their stack, size and stamp are kept as in sampled
 * runs of heap mode (blocks.c, the table), their MIBs are estimates, and their end gives lifetimes. The bits of
 * block_starts.c say whether a pointer is one of them.
 *
 * All tables are of the process; entries are made under the lock and added to by atomic instructions. */
#include "base/log_histogram.h"
#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"

#include <time.h>

#define SHIFT_MOST     20
#define WINDOW         64u    /* timed operations */
#define WINDOW_FIRST   16u    /* where every operation is timed */
#define OWN_MOST       20000u /* ticks: what took longer was another thread's time */
#define SHIFT_STEP     4u     /* the most that a window changes */
#define COST           100    /* timing may take 1/100 of a thread's processor time */
#define FOLLOWED_MOST  8192u  /* live blocks that are followed; then half as many are picked from the next ones */
#define FOLLOWED_STEP  2048u
#define HARDWARE_EVERY 100 /* operations */
#define HARDWARE_LEAST 16  /* timed ones */

static struct {
    uint32_t times[HW_PHASES][HW_OPERATION_KINDS][HW_SIZE_BUCKETS]; /* entry + 1, 0: none yet */
    uint32_t lives[HW_SIZE_BUCKETS];
    uint32_t (*sites)[HW_OPERATION_KINDS_ROOM]; /* by context */
    uint32_t site_contexts;
    double scale[SHIFT_MOST + 1]; /* -1 / ln(1 - 2^-shift) */
    uint32_t shift;               /* what threads begin with: the latest one that some thread found good */
    uint32_t follow_shift;
    uint64_t followed_limit;
    uint64_t runnable_ns;   /* at the begin */
    uint64_t slowest_limit; /* fewer ticks are among the slowest no more */
} times;

/* ---- from the begin ---- */

static void forget_tables(void)
{
    for (uint32_t i = 0; i < sizeof times.times / sizeof(uint32_t); i++)
        (&times.times[0][0][0])[i] = 0;
    for (uint32_t i = 0; i < HW_SIZE_BUCKETS; i++)
        times.lives[i] = 0;
    times.slowest_limit = 0;
}

/* For how long the first thread has been waiting for a processor, as the kernel counts; 0: not known. */
static uint64_t runnable_ns(void)
{
    char buffer[128];
    if (hw_quiet || hw_read_file("/proc/self/schedstat", buffer, sizeof buffer) <= 0)
        return 0;
    const char *cursor = hw_skip_fields(buffer, 1);
    return hw_parse_u64(&cursor, 10);
}

void hw_times_write(void)
{
    const uint64_t now = runnable_ns();
    if (now > times.runnable_ns)
        hw_allocator_info()->runnable_ns = now - times.runnable_ns;
}

/* What threads sample with now is what they have sampled with at least. */
static uint32_t shift_most;

static void raise_shift(struct hw_thread *thread)
{
    if (thread->operator->thread && thread->operator->shift> shift_most)
        shift_most = thread->operator->shift;
}

void hw_times_reset(void)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_OPERATION_SITES); i++) {
        const struct hw_operation_site *site = HW_ENTRY(HW_POOL_OPERATION_SITES, struct hw_operation_site, i);
        times.sites[site->context][site->kind] = 0;
    }
    hw_pool_forget(HW_POOL_OPERATION_TIMES);
    hw_pool_forget(HW_POOL_OPERATION_SITES);
    hw_pool_forget(HW_POOL_OPERATION_LIVES);
    hw_pool_forget(HW_POOL_SLOWEST);
    forget_tables();
    shift_most = times.shift;
    hw_threads_each(raise_shift);
    hw_allocator_info()->shift_most = shift_most;
    hw_allocator_info()->runnable_ns = 0;
    times.runnable_ns = runnable_ns();
}

/* ---- reading the clock ---- */

/* What two readings with nothing between them differ by: the least of many. */
static uint64_t calibrate(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t begin = hw_ticks_fenced(), end = hw_ticks_fenced();
        if (end - begin < least)
            least = end - begin;
    }
    return least;
}

bool hw_times_start(void)
{
    uint64_t contexts = hw_pools[HW_POOL_CONTEXTS].reserved / sizeof(struct hw_context_entry);
    if (!times.sites)
        times.sites = hw_own_pages(contexts * sizeof *times.sites, true);
    if (!times.sites)
        return false;
    times.site_contexts = (uint32_t)contexts;
    for (int shift = 1; shift <= SHIFT_MOST; shift++)
        times.scale[shift] = 1 / hw_minus_log(1 - 1 / (double)(1u << shift));
    forget_tables();
    times.shift = times.follow_shift = 0;
    times.followed_limit = FOLLOWED_MOST;
    times.runnable_ns = runnable_ns();
    hw_allocator_info()->clock_ticks = calibrate();
    hw_allocator_info()->hook_ticks = hw_own_ticks_of_operations();
    return true;
}

/* ---- drawing ---- */

/* -ln of a number from (0, 1], to about a millionth: what gaps are drawn with. */
static inline double draw_exponential(struct hw_operator *op)
{
    union {
        double number;
        uint64_t bits;
    } u;
    op->random = hw_mix(op->random);
    u.number = (double)((op->random >> 12) + 1) * 0x1p-52;
    const int exponent = (int)(u.bits >> 52) - 1023;
    u.bits = (u.bits & 0xfffffffffffffull) | 0x3ff0000000000000ull; /* from [1, 2) */
    const double z = (u.number - 1) / (u.number + 1), z2 = z * z;
    const double log = 2 * z * (1 + z2 * (1. / 3 + z2 * (1. / 5 + z2 * (1. / 7 + z2 * (1. / 9 + z2 / 11)))));
    return -(exponent * 0.69314718055994530942 + log);
}

/* How many operations are not drawn before the next that is. */
static uint32_t draw_gap(struct hw_operator *op, uint32_t shift)
{
    return shift ? (uint32_t)(draw_exponential(op) * times.scale[shift]) : 0;
}

void hw_times_draw(struct hw_operator *op)
{
    op->until_timed = draw_gap(op, op->shift);
    op->clock += (uint64_t)op->until_timed + 1;
}

bool hw_times_large(struct hw_operator *op)
{
    if (op->until_large) {
        op->until_large--;
        return false;
    }
    op->until_large = draw_gap(op, hw_times_large_shift(op));
    return true;
}

uint64_t hw_thread_cpu_ns(void)
{
    return hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* In ticks, as far as the rate is known. */
static uint64_t ticks_of(uint64_t ns)
{
    const struct hw_process_info *process = hw_runtime.process;
    return (uint64_t)((double)ns * (double)process->clock_ticks / (double)(process->clock_ns ? process->clock_ns : 1));
}

static void begin_window(struct hw_operator *op, uint64_t now)
{
    op->window_timed = 0;
    op->window_own = 0;
    op->window_begin = now;
    op->window_cpu_ns = hw_thread_cpu_ns();
}

void hw_times_attach(struct hw_operator *op)
{
    op->random = hw_ticks_raw() ^ ((uint64_t)op->serial << 40) ^ (uintptr_t)op;
    op->shift = times.shift;
    op->allocated = 0;
    op->until_hardware = HARDWARE_EVERY / 2;
    op->until_large = draw_gap(op, hw_times_large_shift(op));
    op->until_timed = draw_gap(op, op->shift);
    op->clock += op->until_timed;
    op->clock_begin = hw_operator_clock(op);
    begin_window(op, hw_ticks_raw());
}

static uint32_t log2_of(uint64_t number)
{
    return number ? 63u - (uint32_t)__builtin_clzll(number) : 0;
}

/* The end of a window: how much of the thread's time did timing take? */
static void end_window(struct hw_operator *op, uint64_t now)
{
    const uint64_t begin = op->window_begin, own = op->window_own, cpu_before = op->window_cpu_ns;
    struct hw_allocator_info *info = hw_allocator_info();
    __atomic_fetch_add(&info->own_ticks, own, __ATOMIC_RELAXED);
    begin_window(op, now);
    uint64_t spent =
        now - begin; /* that of the processor can be had in ns only: scaled by what is known of the clock */
    if (op->window_cpu_ns > cpu_before) {
        const uint64_t cpu = ticks_of(op->window_cpu_ns - cpu_before);
        spent = cpu < spent ? cpu : spent;
    }
    if (own * COST * 2 > spent * 3) {
        const uint32_t more = 1 + log2_of(own * COST * 2 / (spent ? spent * 3 : 1));
        op->shift += more < SHIFT_STEP ? more : SHIFT_STEP;
        if (op->shift > SHIFT_MOST)
            op->shift = SHIFT_MOST;
        if (op->shift > info->shift_most)
            info->shift_most = op->shift;
    } else if (own * COST * 2 < spent) {
        const uint32_t ratio = log2_of(spent / (own * COST + 1)), less = ratio < SHIFT_STEP ? ratio : SHIFT_STEP;
        op->shift -= less < op->shift ? less : op->shift;
    }
    times.shift = op->shift;
}

/* ---- tables ---- */

static void add(uint64_t *to, uint64_t value)
{
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t *to, uint64_t value)
{
    uint64_t old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(to, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* The entry that INDEX leads to; made, and filled in by FILL, when there is none. NULL: no room. */
static void *entry_of(uint32_t *index, enum hw_pool_id pool, const void *like)
{
    const uint32_t size = hw_pools[pool].entry_size;
    uint32_t at = __atomic_load_n(index, __ATOMIC_ACQUIRE);
    if (hw_likely(at))
        return hw_pools[pool].base + (uint64_t)(at - 1) * size;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    at = *index;
    if (!at) {
        const uint32_t taken = hw_pool_take(pool, 1);
        if (taken != HW_NONE) {
            const uint64_t *from = like;
            uint64_t *to = (uint64_t *)(hw_pools[pool].base + (uint64_t)taken * size);
            to[0] = from[0];
            to[1] = from[1];
            hw_pool_publish(pool);
            at = taken + 1;
            __atomic_store_n(index, at, __ATOMIC_RELEASE);
        }
    }
    hw_lock_drop(&hw_runtime.lock, old);
    return at ? hw_pools[pool].base + (uint64_t)(at - 1) * size : NULL;
}

static struct hw_operation_times *times_of(enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket)
{
    const struct hw_operation_times like = {.phase = phase, .kind = kind, .bucket = bucket};
    return entry_of(&times.times[phase][kind][bucket], HW_POOL_OPERATION_TIMES, &like);
}

uint64_t *hw_times_exact(enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket)
{
    struct hw_operation_times *entry = times_of(phase, kind, bucket);
    return entry ? &entry->exact_ticks : NULL;
}

void hw_times_inside(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket,
                     uint64_t ticks)
{
    uint64_t *exact = hw_times_exact(phase, kind, bucket);
    op->stage_base[kind].ticks += ticks;
    if (exact)
        add(exact, ticks);
}

static void add_time(const struct hw_timed *timed, uint64_t ticks)
{
    struct hw_operation_times *entry = times_of(timed->phase, timed->kind, timed->bucket);
    if (!entry)
        return;
    const uint64_t weight = 1ull << timed->shift;
    add(&entry->inside_ticks, weight * (timed->inside < ticks ? timed->inside : ticks));
    add(&entry->samples, 1);
    add(&entry->weight, weight);
    add(&entry->ticks, weight * ticks);
    add(&entry->histogram[hw_time_bin(ticks)], weight);
    raise_to(&entry->most, ticks);
}

static void add_site(uint32_t context, const struct hw_timed *timed, uint64_t ticks)
{
    if (context >= times.site_contexts)
        context = 0;
    const struct hw_operation_site like = {.context = context, .kind = timed->kind};
    struct hw_operation_site *entry = entry_of(&times.sites[context][timed->kind], HW_POOL_OPERATION_SITES, &like);
    if (!entry)
        return;
    const uint64_t weight = 1ull << timed->shift;
    add(&entry->samples, 1);
    add(&entry->weight, weight);
    add(&entry->ticks, weight * ticks);
    if (timed->size != UINT64_MAX)
        add(&entry->bytes, weight * timed->size);
    raise_to(&entry->most, ticks);
}

static __attribute__((noinline)) void add_slowest(const struct hw_operator *op, uint32_t context,
                                                  const struct hw_timed *timed, uint64_t ticks)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (!HW_ENTRIES(HW_POOL_SLOWEST) && hw_pool_take(HW_POOL_SLOWEST, HW_SLOWEST) != HW_NONE)
        hw_pool_publish(HW_POOL_SLOWEST);
    struct hw_slow_operation *entry = HW_ENTRY(HW_POOL_SLOWEST, struct hw_slow_operation, 0), *least = NULL;
    uint64_t second = UINT64_MAX; /* the least of the others */
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_SLOWEST); i++)
        if (!least || entry[i].ticks < least->ticks) {
            second = least ? least->ticks : second;
            least = &entry[i];
        } else if (entry[i].ticks < second)
            second = entry[i].ticks;
    if (least && least->ticks < ticks) {
        *least = (struct hw_slow_operation){
            .ticks = ticks,
            .tick = timed->begin - hw_runtime.tick_base,
            .size = timed->size,
            .context = context,
            .kind = timed->kind,
            .phase = timed->phase,
            .thread = op->serial,
            .shift = timed->shift,
        };
        times.slowest_limit = second < ticks ? second : ticks;
    }
    hw_lock_drop(&hw_runtime.lock, old);
}

/* ---- blocks that are followed ---- */

static struct hw_operation_lives *lives_of(uint32_t bucket)
{
    const struct hw_operation_lives like = {.bucket = bucket};
    return entry_of(&times.lives[bucket], HW_POOL_OPERATION_LIVES, &like);
}

static void follow(struct hw_operator *op, struct hw_thread *thread, struct hw_walk *walk, const struct hw_timed *timed)
{
    uint32_t shift = timed->shift;
    struct hw_allocator_info *info = hw_allocator_info();
    if (timed->size < HW_OPERATION_LARGE && times.follow_shift) {
        op->random = hw_mix(op->random);
        if (op->random >> (64 - times.follow_shift))
            return;
        shift += times.follow_shift;
    }
    if (!hw_block_starts_on)
        return;
    const struct hw_block like = {
        .shift = (uint8_t)shift, .slot = (uint16_t)op->slot, .clock = (uint32_t)hw_operator_clock(op)};
    hw_heap_followed(thread, timed->allocated, timed->size, walk, &like);
    struct hw_operation_lives *lives = lives_of(timed->bucket);
    if (lives) {
        add(&lives->samples, 1);
        add(&lives->weight, 1ull << shift);
    }
    add(&info->tracked, 1);
    if (__atomic_add_fetch(&info->tracked_live, 1, __ATOMIC_RELAXED) > times.followed_limit &&
        times.follow_shift < SHIFT_MOST) {
        times.followed_limit += FOLLOWED_STEP;
        times.follow_shift++;
    }
}

static struct {
    const struct hw_operator *of[65536];
} slots HW_LARGE;

static void block_ends(const struct hw_operator *op, const struct hw_block *block)
{
    add(&hw_allocator_info()->tracked_live, UINT64_MAX);
    if (block->stamp < hw_runtime.old_below) /* its begin is not counted here */
        return;
    struct hw_operation_lives *lives = lives_of(hw_size_bucket(block->size));
    const struct hw_operator *owner = slots.of[block->slot];
    if (!lives || !owner)
        return;
    const uint64_t weight = 1ull << block->shift;
    const uint32_t life = (uint32_t)hw_operator_clock(owner) - block->clock;
    const uint32_t before = (uint32_t)hw_operator_clock(op) - (uint32_t)op->clock_begin;
    const bool elsewhere = owner != op || life > before; /* allocated by a thread that had the slot before */
    add(&lives->freed, weight);
    add(&lives->freed_elsewhere, elsewhere ? weight : 0);
    add(&lives->histogram[life ? 1 + log2_of(life) : 0], weight);
}

void hw_times_freed(struct hw_operator *op, void *pointer, uintptr_t frame)
{
    struct hw_block block;
    struct hw_thread *thread = hw_enter(frame, true);
    if (!thread)
        return;
    if (hw_heap_follow_freed(thread, pointer, &block))
        block_ends(op, &block);
    hw_leave(thread);
}

bool hw_times_realloc_begin(struct hw_operator *op, void *pointer, uintptr_t frame, struct hw_block *block)
{
    struct hw_thread *thread = hw_enter(frame, true);
    if (!thread)
        return false;
    bool known = hw_heap_realloc_begin(thread, pointer, block);
    hw_leave(thread);
    return known;
}

void hw_times_realloc_end(struct hw_operator *op, void *pointer, void *result, size_t size, uintptr_t frame,
                          struct hw_block *block)
{
    struct hw_thread *thread = hw_enter(frame, true);
    if (!thread)
        return;
    hw_heap_realloc_end(thread, pointer, result, size, block);
    if (!result && !size)
        block_ends(op, block);
    hw_leave(thread);
}

/* ---- one timed operation ---- */

/* What an operation took, or UINT64_MAX if not known: another thread had the processor meanwhile. If the operation may
 * have waited itself, all of the time is its own; of long ones the processor time is known. */
static uint64_t ticks_taken(const struct hw_operator *op, const struct hw_timed *timed)
{
    struct hw_allocator_info *info = hw_allocator_info();
    const uint64_t cost = info->clock_ticks + op->own_ticks;
    uint64_t whole = timed->end - timed->begin;
    if (hw_unlikely(timed->interrupted) && !timed->events) {
        const uint64_t cpu = timed->cpu_ns ? ticks_of(hw_thread_cpu_ns() - timed->cpu_ns) : 0;
        add(&info->interrupted, 1);
        add(&info->interrupted_ticks, cpu < whole ? whole - cpu : 0);
        if (!cpu)
            return UINT64_MAX;
        whole = cpu < whole ? cpu : whole;
    }
    return whole > cost ? whole - cost : 0;
}

void hw_times_add(struct hw_operator *op, uintptr_t frame, const struct hw_timed *timed)
{
    struct hw_allocator_info *info = hw_allocator_info();
    const uint64_t whole = timed->end - timed->begin, ticks = ticks_taken(op, timed), weight = 1ull << timed->shift;
    struct hw_thread *thread = hw_enter(frame, true);
    if (!thread)
        return;
    slots.of[op->slot] = op;
    struct hw_walk *walk = hw_walk_at(thread, frame);
    if (hw_likely(ticks != UINT64_MAX)) {
        add(&info->timed, 1);
        add(&info->timed_weight, weight);
        op->stage_base[timed->kind].ticks += weight * (ticks > timed->inside ? ticks - timed->inside : 0);
        add_time(timed, ticks);
        add_site(hw_walk_context(walk), timed, ticks);
        if (ticks > times.slowest_limit)
            add_slowest(op, hw_walk_context(walk), timed, ticks);
    }
    if (timed->allocated)
        follow(op, thread, walk, timed);
    hw_leave(thread);
    if (op->until_hardware-- == 0) { /* the operation after this one, and then a new draw */
        const uint32_t every = HARDWARE_EVERY >> op->shift;
        op->until_hardware = every > HARDWARE_LEAST ? every : HARDWARE_LEAST;
        op->hardware = HW_HARDWARE_NEXT;
        op->clock -= op->until_timed;
        op->until_timed = 0;
    }
    const uint64_t now = hw_ticks_raw();
    const uint64_t own = now - timed->called - whole;
    op->window_own += own < OWN_MOST ? own : OWN_MOST;
    if (++op->window_timed >= (op->shift ? WINDOW : WINDOW_FIRST)) {
        end_window(op, now);
        hw_stages_look(op, now - hw_runtime.tick_base);
    }
}
