/* operation_threads.c - allocator mode: which threads are alive, and what each did in each stage.
 *
 * A stage is the time in which one thread is alive, or several. Threads are counted when they are made (pthread_create,
 * thrd_create) and when they end (thread-specific data, also of detached ones). Others (made by libc for itself, or by
 * a bare clone) are guests: they are counted from their first operation on, and looked for now and then.
 *
 * A thread's entry in STAGES is made when it takes part in a stage and brought up to date now and then, so that little
 * is lost with kill -9; `end` is 0 while it goes on. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"

#include <errno.h>

#define STAGES_MOST 8192u
#define LOOK_TICKS  20000000ull /* from one look for guests that are gone to the next: some ms */
#define LAST_ROUND  4           /* in which libc calls destructors */

extern int pthread_key_create(unsigned *, void (*)(void *)) __attribute__((weak));
extern int pthread_setspecific(unsigned, const void *) __attribute__((weak));

/* Whether the calling thread is counted among those alive. */
static __thread uint8_t self_alive;

static struct {
    unsigned key;
    bool has_key;
    uint32_t alive, guests;
    uint32_t stage;
    uint64_t begin; /* of the stage: ticks of the file */
    uint64_t next_look;
    /* Where stages go that there is no room for. */
    uint32_t rest[HW_PHASES];          /* entry + 1 */
    struct hw_operation_stage slowest; /* of the present one */
} stages;

static uint64_t now_tick(void)
{
    return hw_ticks_raw() - hw_runtime.tick_base;
}

static struct hw_operation_stage *entry_at(uint32_t index)
{
    return HW_ENTRY(HW_POOL_STAGES, struct hw_operation_stage, index - 1);
}

/* ---- what a thread has done ---- */

static void sum_counts(const struct hw_operator *op, uint64_t sum[HW_OPERATION_KINDS])
{
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
        sum[kind] = 0;
    for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            sum[kind] += op->counts[bucket].count[hw_phase()][kind];
}

static void fill(const struct hw_operator *op, struct hw_operation_stage *entry, uint64_t end)
{
    uint64_t sum[HW_OPERATION_KINDS];
    sum_counts(op, sum);
    entry->stage = stages.stage;
    entry->phase = hw_phase();
    entry->thread = op->serial;
    entry->begin = op->stage_begin;
    entry->end = end;
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        entry->kind[kind].count = sum[kind] - op->stage_base[kind].count;
        entry->kind[kind].ticks = op->stage_base[kind].ticks;
    }
}

static uint32_t take_entry(void)
{
    if (HW_ENTRIES(HW_POOL_STAGES) >= STAGES_MOST)
        return 0;
    const uint32_t index = hw_pool_take(HW_POOL_STAGES, 1);
    if (index == HW_NONE)
        return 0;
    hw_pool_publish(HW_POOL_STAGES);
    return index + 1;
}

/* OP takes part in the present stage from now on. Lock held. */
static void open_entry(struct hw_operator *op, uint64_t now)
{
    uint64_t sum[HW_OPERATION_KINDS];
    sum_counts(op, sum);
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
        op->stage_base[kind] = (struct hw_stage_kind){.count = sum[kind]};
    op->stage_begin = now;
    op->stage = take_entry();
    if (op->stage)
        fill(op, entry_at(op->stage), 0);
}

/* It does so no more. Lock held. */
static void close_entry(struct hw_operator *op, uint64_t now)
{
    struct hw_operation_stage entry = {0};
    fill(op, &entry, now);
    if (op->stage)
        *entry_at(op->stage) = entry;
    else if (entry.end - entry.begin > stages.slowest.end - stages.slowest.begin)
        stages.slowest = entry;
    op->stage = 0;
}

/* The stage is over: of those without room the slowest thread counts. Lock held. */
static void close_rest(void)
{
    if (!stages.slowest.end)
        return;
    const uint32_t phase = stages.slowest.phase;
    if (!stages.rest[phase]) {
        const uint32_t index = hw_pool_take(HW_POOL_STAGES, 1);
        if (index == HW_NONE)
            return;
        *HW_ENTRY(HW_POOL_STAGES, struct hw_operation_stage, index) =
            (struct hw_operation_stage){.stage = HW_NONE,
                                        .phase = phase,
                                        .flags = HW_STAGE_REST,
                                        .begin = stages.slowest.begin,
                                        .end = stages.slowest.begin};
        hw_pool_publish(HW_POOL_STAGES);
        stages.rest[phase] = index + 1;
    }
    struct hw_operation_stage *rest = entry_at(stages.rest[phase]);
    rest->end += stages.slowest.end - stages.slowest.begin;
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        rest->kind[kind].count += stages.slowest.kind[kind].count;
        rest->kind[kind].ticks += stages.slowest.kind[kind].ticks;
    }
    stages.slowest = (struct hw_operation_stage){0};
}

/* ---- stages ---- */

static uint64_t changing;

static void close_each(struct hw_thread *thread)
{
    if (thread->operator->thread)
        close_entry(thread->operator, changing);
}

static void open_each(struct hw_thread *thread)
{
    if (thread->operator->thread)
        open_entry(thread->operator, changing);
}

/* The number of threads alive is another. Lock held. */
static void change(uint32_t alive)
{
    struct hw_allocator_info *info = hw_allocator_info();
    const enum hw_phase phase = alive > 1 ? HW_PHASE_PARALLEL : HW_PHASE_SERIAL;
    stages.alive = info->threads_alive = alive;
    if (phase == hw_phase())
        return;
    changing = now_tick();
    hw_threads_each(close_each);
    close_rest();
    info->phase = phase;
    info->stages = ++stages.stage + 1;
    stages.begin = changing;
    hw_phase_offset = phase * HW_OPERATION_KINDS_ROOM;
    hw_threads_each(open_each);
}

static void end_of_thread(void *value);

bool hw_stages_start(void)
{
    if (!stages.has_key)
        stages.has_key = pthread_key_create && pthread_key_create(&stages.key, end_of_thread) == 0;
    stages.alive = 1;
    stages.guests = stages.stage = 0;
    stages.begin = 0;
    stages.next_look = 0;
    stages.rest[0] = stages.rest[1] = 0;
    stages.slowest = (struct hw_operation_stage){0};
    hw_phase_offset = 0;
    hw_allocator_info()->threads_alive = 1;
    hw_allocator_info()->stages = 1;
    return true;
}

void hw_stages_thread_coming(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    change(stages.alive + 1);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_stages_thread_failed(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    change(stages.alive - 1);
    hw_lock_drop(&hw_runtime.lock, old);
}

/* Asks libc to report its end. */
static void watch_end(void)
{
    self_alive = 1;
    if (stages.has_key)
        pthread_setspecific(stages.key, (const void *)1ul);
}

void hw_stages_thread_begins(void)
{
    watch_end();
}

/* In the last of the rounds in which libc calls destructors: those of the program may still work with the heap. */
static void end_of_thread(void *value)
{
    const uintptr_t round = (uintptr_t)value;
    if (!hw_operations_on || hw_fork_pending() || !self_alive)
        return;
    if (round < LAST_ROUND) {
        pthread_setspecific(stages.key, (const void *)(round + 1));
        return;
    }
    self_alive = 0;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    change(stages.alive - 1);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_stages_attach(struct hw_operator *op)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const bool counted = self_alive || op->thread->tid == hw_runtime.pid;
    op->guest = 0;
    if (!counted) {
        op->guest = 1;
        stages.guests++;
        change(stages.alive + 1);
    }
    open_entry(op, now_tick());
    hw_lock_drop(&hw_runtime.lock, old);
    if (!self_alive)
        watch_end();
}

void hw_stages_detach(struct hw_operator *op)
{
    close_entry(op, now_tick());
    if (op->guest) { /* libc reports the end of this one after all */
        op->guest = 0;
        stages.guests--;
    }
}

void hw_stages_gone(struct hw_operator *op)
{
    close_entry(op, now_tick());
    if (op->guest) {
        op->guest = 0;
        stages.guests--;
        op->thread = NULL;
        change(stages.alive - 1);
    }
}

/* ---- now and then ---- */

static void look_for(struct hw_thread *thread)
{
    const struct hw_operator *op = thread->operator;
    if (op->thread && op->guest && hw_sys(SYS_tgkill, hw_runtime.pid, thread->tid, 0) == -ESRCH)
        hw_operations_thread_gone(thread);
}

void hw_stages_look(struct hw_operator *op, uint64_t now)
{
    if (now < stages.next_look)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    stages.next_look = now + LOOK_TICKS;
    if (stages.guests && !hw_quiet)
        hw_threads_each(look_for);
    if (op->stage)
        fill(op, entry_at(op->stage), 0);
    hw_lock_drop(&hw_runtime.lock, old);
}

static void open_again(struct hw_thread *thread)
{
    thread->operator->stage = 0; /* the entry is gone */
    if (thread->operator->thread)
        open_entry(thread->operator, changing);
}

void hw_stages_reset(void)
{
    hw_pool_forget(HW_POOL_STAGES);
    stages.stage = 0;
    stages.rest[0] = stages.rest[1] = 0;
    stages.slowest = (struct hw_operation_stage){0};
    hw_allocator_info()->stages = 1;
    changing = stages.begin = now_tick();
    hw_threads_each(open_again);
}

static void end_each(struct hw_thread *thread)
{
    struct hw_operator *op = thread->operator;
    if (op->thread && op->stage)
        fill(op, entry_at(op->stage), changing);
}

void hw_stages_end(void)
{
    changing = now_tick();
    hw_threads_each(end_each);
}
