/* block_log.c - record --log-blocks: when and where each block begins and ends, for who samples addresses from outside
 * (heapwise import).
 *
 * A thread takes a piece of the section and fills it in the order of its events, without a lock. An entry counts when
 * its address is written, which comes last: so after kill -9 the log is as good as before, and a dump may copy it while
 * threads go on. When the log is full, or the file cannot grow, it ends for all threads: what was logged before that
 * moment stays right. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/threads.h"
#include "runtime/heap/blocks.h"

#define PIECE 256u

static bool full;

static struct hw_block_log_info *info(void)
{
    return HW_ENTRY(HW_POOL_BLOCK_LOG_INFO, struct hw_block_log_info, 0);
}

void hw_block_log_start(void)
{
    full = hw_pool_take(HW_POOL_BLOCK_LOG_INFO, 1) == HW_NONE;
    if (full)
        return;
    info()->start_monotonic_ns = hw_runtime.clock_start_ns;
    info()->most_bytes = hw_options.block_log;
    hw_pool_publish(HW_POOL_BLOCK_LOG_INFO);
}

/* Lock held. */
static void end_log(uint64_t tick, const char *why)
{
    full = true;
    info()->full_tick = tick ? tick : 1;
    hw_note_locked(HW_NOTE_OTHER, why);
}

static bool take_piece(struct hw_thread *thread, uint64_t tick)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const bool room = hw_pools[HW_POOL_BLOCK_LOG].used + PIECE * sizeof(struct hw_block_event) <= hw_options.block_log;
    const uint32_t first = full || !room ? HW_NONE : hw_pool_take(HW_POOL_BLOCK_LOG, PIECE);
    if (first != HW_NONE) {
        hw_pool_publish(HW_POOL_BLOCK_LOG);
        thread->log_next = first;
        thread->log_end = first + PIECE;
    } else if (!full)
        end_log(tick, room ? "the log of blocks ended: the profile could not grow"
                           : "the log of blocks ended: it was full (record --log-blocks=SIZE)");
    hw_lock_drop(&hw_runtime.lock, old);
    return first != HW_NONE;
}

void hw_block_log_add(struct hw_thread *thread, const void *address, uint64_t size, uint32_t context, uint64_t tick)
{
    if (hw_unlikely(full) || (uintptr_t)address >> 48 || size >> 48)
        return;
    if (hw_unlikely(thread->log_next == thread->log_end) && !take_piece(thread, tick))
        return;
    struct hw_block_event *event = HW_ENTRY(HW_POOL_BLOCK_LOG, struct hw_block_event, thread->log_next++);
    event->tick = tick;
    event->context = context;
    event->size = (uint32_t)size;
    __atomic_store_n(&event->address, (uint64_t)(uintptr_t)address | size >> 32 << 48, __ATOMIC_RELEASE);
}
