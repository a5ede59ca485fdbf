/* word_sampler.c - with 4-byte granules: scans the shadow once a period and counts which words were used in it.
 *
 * The program does not see the thread that does so: it has no libc, all signals blocked, an empty table of descriptors
 * of its own, and no events. A scan covers all of the shadow that is mapped: of data, of blocks, of everything else
 * that was accessed. Its cost is bounded for any size of the heap (budgets.c). Where that is not enough, the next scan
 * continues where this one has stopped, and periods are longer than requested. The profile has their length.
 *
 * Where there can be no thread (old kernel, no memory, words-thread=0) allocations scan when it is due. */
#include "base/abi.h"
#include "runtime/access/cells.h"
#include "runtime/access/counting.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"

#include <linux/prctl.h>
#include <time.h>

#define RUNS_MOST    (1u << 22)
#define CARRIES_MOST 8192u
#define STEP_BYTES   (16ul << 10) /* of shadow, between two readings of the clock */
#define LINE_CELLS   64ul         /* bytes of shadow that are scanned together */

static struct {
    struct hw_lock lock; /* who looks; innermost but for hw_runtime.lock, which the list is made under */
    struct run {
        uintptr_t start, end; /* shadow that is there */
        uintptr_t memory;     /* what the first cell stands for */
        unsigned kind;
    } * runs;
    uint32_t run_count, at_run;
    uint64_t list_due_ns; /* until then the list is good enough */
    uintptr_t at;         /* in that run */
    bool in_round;
    uint64_t began_ns, round_ns, ended_ns; /* CLOCK_MONOTONIC: the first round, this one, the end of the latest */
    uint64_t rounds, longest_ns, cost_ns;
    struct candidate {
        uint64_t *cells;
        uintptr_t memory;
        unsigned kind;
    } * carries; /* cells that come near their end */
    uint32_t carry_count;
    uintptr_t plane; /* while the list is made */
    unsigned kind;
} sampler HW_LARGE;

static void run_thread(void);
static struct hw_helper thread = {.run = run_thread, .own_descriptors = true};

/* ---- the list of what is there ---- */

static void add_run(uintptr_t start, uintptr_t end)
{
    if (sampler.run_count == RUNS_MOST)
        return;
    uintptr_t base = sampler.plane + (sampler.kind ? HW_ABI_WRITES_OFFSET : 0);
    sampler.runs[sampler.run_count++] = (struct run){start, end, (start - base) << 2, sampler.kind};
}

static void add_area(const struct hw_area *area)
{
    if (area->own || area->end >> HW_ARCH_ADDRESS_BITS)
        return;
    uint32_t planes = __atomic_load_n(&hw_shadow.planes_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < planes; i++)
        for (unsigned kind = 0; kind < 2; kind++) {
            uintptr_t base = hw_shadow.plane[i] + (kind ? HW_ABI_WRITES_OFFSET : 0);
            sampler.plane = hw_shadow.plane[i];
            sampler.kind = kind;
            hw_resident_each(base + (area->start >> 2), base + (area->end >> 2), add_run);
        }
}

static void begin_round(uint64_t now)
{
    if (sampler.rounds && now - sampler.round_ns > sampler.longest_ns)
        sampler.longest_ns = now - sampler.round_ns;
    sampler.round_ns = now;
    sampler.at_run = 0;
    sampler.at = 0;
    sampler.in_round = true;
    if (now < sampler.list_due_ns)
        return;
    sampler.run_count = 0;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_areas_each(add_area);
    hw_lock_drop(&hw_runtime.lock, old);
    uint64_t made = hw_clock_monotonic_ns();
    sampler.list_due_ns = made + hw_budget_pause(HW_BUDGET_WORDS_LIST, made - now, 0);
}

/* ---- a look ---- */

static void fold(const struct run *run, uintptr_t from, uintptr_t to)
{
    typedef char cells_16 __attribute__((vector_size(16), may_alias));
    for (uintptr_t line = from; line < to; line += LINE_CELLS) {
        const cells_16 *cells = (const cells_16 *)line;
        if (hw_likely(!__builtin_ia32_pmovmskb128(cells[0] | cells[1] | cells[2] | cells[3])))
            continue;
        for (uint64_t *at = (uint64_t *)line; at < (uint64_t *)(line + LINE_CELLS); at++) {
            bool to_carry;
            if (hw_words_fold(at, &to_carry) && hw_unlikely(to_carry) && sampler.carry_count < CARRIES_MOST)
                sampler.carries[sampler.carry_count++] =
                    (struct candidate){at, run->memory + (((uintptr_t)at - run->start) << 2), run->kind};
        }
    }
}

/* Counts that come near their end, while nobody is in the middle of an event. Later, where that is not possible now. */
static void carry_all(void)
{
    hw_sigset old;
    if (!sampler.carry_count)
        return;
    if (hw_dump_try_lock(&old)) {
        if (hw_threads_stop())
            for (uint32_t i = 0; i < sampler.carry_count; i++)
                hw_words_carry(sampler.carries[i].cells, sampler.carries[i].memory, sampler.carries[i].kind);
        hw_threads_go();
        hw_dump_unlock(old);
    }
    sampler.carry_count = 0;
}

/* Goes on with the round, for at most BUDGET_NS. */
static void look(uint64_t budget_ns)
{
    uint64_t begin = hw_clock_monotonic_ns(), period = hw_options.words_period_ms * 1000000ull;
    if (!sampler.in_round) {
        if (begin - sampler.round_ns < period - period / 4)
            return;
        begin_round(begin);
    }
    while (sampler.at_run < sampler.run_count) {
        const struct run *run = &sampler.runs[sampler.at_run];
        uintptr_t from = sampler.at ? sampler.at : run->start & ~(LINE_CELLS - 1), to = from + STEP_BYTES;
        uintptr_t end = HW_ALIGN_UP(run->end, LINE_CELLS);
        to = to < end ? to : end;
        fold(run, from, to);
        sampler.at = to;
        if (to == end) {
            sampler.at_run++;
            sampler.at = 0;
        }
        if (hw_clock_monotonic_ns() - begin >= budget_ns)
            break;
    }
    if (sampler.at_run == sampler.run_count) {
        sampler.in_round = false;
        sampler.rounds++;
        sampler.ended_ns = hw_clock_monotonic_ns();
    }
    carry_all();
}

static uint64_t budget(void)
{
    return hw_budget_limit(HW_BUDGET_WORDS_ONCE, hw_options.words_period_ms * 1000000ull, 0);
}

/* ---- the thread ---- */

/* Whether the looks so far, since BEGAN, have taken no more than their share. */
static bool affordable(uint64_t began, uint64_t now)
{
    uint64_t own = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
    uint64_t all = hw_clock_read(CLOCK_PROCESS_CPUTIME_ID);
    return own <= hw_budget_limit(HW_BUDGET_WORDS_CPU, all > own ? all - own : 0, 0) +
                      hw_budget_limit(HW_BUDGET_WORDS_IDLE, now - began, 0);
}

static void run_thread(void)
{
    hw_sys(SYS_close_range, 0, ~0u, 0);
    hw_sys(SYS_chdir, "/");
    hw_sys(SYS_prctl, PR_SET_NAME, "heapwise");
    uint64_t began = hw_clock_monotonic_ns(), period = hw_options.words_period_ms * 1000000ull;
    uint64_t next = began;
    uint32_t wakes = 0;
    while (hw_helper_goes_on(&thread)) {
        uint64_t now = hw_clock_monotonic_ns();
        if (now < next) {
            hw_helper_sleep(&thread, next - now);
            continue;
        }
        if (affordable(began, now)) {
            uint64_t before = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
            hw_sigset old = hw_lock_take(&sampler.lock);
            look(budget());
            sampler.cost_ns += hw_clock_read(CLOCK_THREAD_CPUTIME_ID) - before;
            hw_lock_drop(&sampler.lock, old);
        }
        next = now + period;
        hw_helpers_end_alone(&wakes);
    }
}

/* ---- what others call ---- */

void hw_word_sampler_start(void)
{
    hw_shadow.words_next = UINT64_MAX;
    if (hw_shadow.granule != 4)
        return;
    sampler.lock = (struct hw_lock){0};
    hw_helper_fork(&thread);
    hw_word_sampler_reset();
    if (!sampler.runs)
        sampler.runs = hw_own_pages((uint64_t)RUNS_MOST * sizeof *sampler.runs, true);
    if (!sampler.carries)
        sampler.carries = hw_own_pages((uint64_t)CARRIES_MOST * sizeof *sampler.carries, true);
    if (!sampler.runs || !sampler.carries)
        return;
    /* It closes the descriptors that it begins with, which older kernels cannot. */
    if (!hw_options.words_thread || hw_quiet || hw_sys(SYS_close_range, ~0u, ~0u, 0) != 0 || !hw_helper_start(&thread))
        hw_shadow.words_next = 0;
}

void hw_word_sampler_stop(void)
{
    hw_shadow.words_next = UINT64_MAX;
    hw_helper_stop(&thread);
}

void hw_word_sampler_event(uint64_t tick)
{
    const struct hw_process_info *process = hw_runtime.process;
    hw_sigset old;
    if (hw_quiet || !hw_lock_try(&sampler.lock, &old))
        return;
    uint64_t begin = hw_ticks_raw();
    look(budget());
    uint64_t cost = hw_ticks_raw() - begin;
    double ns = (double)process->clock_ns / (double)process->clock_ticks;
    uint64_t period = (uint64_t)(hw_options.words_period_ms * 1e6 / ns);
    sampler.cost_ns += (uint64_t)((double)cost * ns);
    hw_shadow.words_next = tick + hw_budget_pause(HW_BUDGET_WORDS_ONCE, cost, period);
    hw_lock_drop(&sampler.lock, old);
}

void hw_word_sampler_tell(struct hw_access_info *info)
{
    info->word_period_ns = hw_options.words_period_ms * 1000000ull;
    info->word_rounds = sampler.rounds;
    info->word_span_ns = sampler.rounds ? sampler.ended_ns - sampler.began_ns : 0;
    info->word_longest_ns = sampler.longest_ns;
    info->word_cost_ns = sampler.cost_ns;
}

void hw_word_sampler_reset(void)
{
    uint64_t now = hw_clock_monotonic_ns();
    sampler.in_round = false;
    sampler.began_ns = sampler.round_ns = sampler.ended_ns = now;
    sampler.rounds = sampler.longest_ns = sampler.cost_ns = sampler.list_due_ns = 0;
    sampler.carry_count = 0;
}
