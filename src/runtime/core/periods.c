/* periods.c - a runtime that waits (start=off), and counts from `heapwise start` to `heapwise stop`.
 *
 * While it waits, hooks lead straight to the real functions (hw_hooks_lead), and what comes through hw_enter all the
 * same, such as calls that read a hook's way a moment before, is passed through (HW_STOPPED_PASS). Everything else is
 * as in any recorded process: the file is there, and a signal asks for a dump, or for what the request in the process
 * section says.
 *
 * Each period begins with nothing: no block from before is known, so that its free is one of an unknown block, and its
 * address may be handed out again without a word. What is live when a period ends stays in the profile as it is: what
 * becomes of those blocks is not seen. So nothing of them may be kept for the next period. */
#include "runtime/core/core.h"
#include "runtime/core/thread_list.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"

/* Blocks may be known that a period has left, perhaps one of the parent. */
static bool has_known;

static void set_passing(bool passing)
{
    if (passing)
        __atomic_fetch_or(&hw_runtime.stopped, HW_STOPPED_PASS, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_and(&hw_runtime.stopped, ~(uint32_t)HW_STOPPED_PASS, __ATOMIC_SEQ_CST);
    hw_hooks_lead(!passing);
}

bool hw_period_passing(void)
{
    return hw_runtime.stopped & HW_STOPPED_PASS;
}

void hw_periods_start(void)
{
    if (!hw_options.waits)
        return;
    hw_runtime.process->counting = HW_COUNTING_WAITS;
    set_passing(true);
}

/* A child of a process that counts goes on counting. Its hooks led to where it is set up, see hw_period_forked. */
void hw_periods_fork(void)
{
    if (!hw_options.waits)
        return;
    hw_runtime.process->counting = hw_period_passing() ? HW_COUNTING_WAITS : HW_COUNTING_ON;
    hw_hooks_lead(!hw_period_passing());
}

void hw_period_forked(void)
{
    if (hw_period_passing())
        hw_hooks_lead(true);
}

/* Events are stopped, lock held. */
static bool begin_anew(void)
{
    struct hw_process_info *process = hw_runtime.process;
    if ((has_known && !hw_blocks_forget()) || !hw_reset_to_nothing())
        return false;
    has_known = true;
    process->counting = HW_COUNTING_ON;
    process->periods++;
    return true;
}

static int32_t begin_period(bool discard)
{
    struct hw_process_info *process = hw_runtime.process;
    if (process->counting == HW_COUNTING_ON)
        return HW_PERIOD_ALREADY;
    const int32_t dumped = process->counting == HW_COUNTING_STOPPED && !discard ? (int32_t)hw_dump_write() : 0;
    if (dumped < 0)
        return dumped;
    hw_threads_stop();
    const hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const bool fine = begin_anew();
    if (fine)
        set_passing(false);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_threads_go();
    return fine ? dumped : HW_PERIOD_NO_MEMORY;
}

static int32_t end_period(void)
{
    struct hw_process_info *process = hw_runtime.process;
    if (process->counting != HW_COUNTING_ON)
        return HW_PERIOD_ALREADY;
    if (!hw_threads_stop_within(1000000000))
        hw_note(HW_NOTE_OTHER, "counting was stopped while a thread was in the middle of an allocation or free, which "
                               "may be counted in part");
    const hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_parts_end();
    process->counting = HW_COUNTING_STOPPED;
    set_passing(true);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_threads_go();
    return 0;
}

bool hw_period_requested(void)
{
    const struct hw_process_info *process = hw_runtime.process;
    return process->counting != HW_COUNTING_ALWAYS &&
           __atomic_load_n(&process->period_request, __ATOMIC_ACQUIRE) != process->period_answer;
}

void hw_period_serve(void)
{
    struct hw_process_info *process = hw_runtime.process;
    const uint32_t request = __atomic_load_n(&process->period_request, __ATOMIC_ACQUIRE);
    const uint32_t what = request & HW_PERIOD_WHAT;
    process->period_result = what == HW_PERIOD_STOP ? end_period() : begin_period(what == HW_PERIOD_START_ANEW);
    __atomic_store_n(&process->period_answer, request, __ATOMIC_RELEASE);
}
