/* threads.c - the state of each thread in the runtime.
 *
 * A state belongs to one thread at a time. When the thread ends the next new thread gets it, with the MIBs it has
 * filled: the number of states is the greatest number of threads at once, and nothing has to be added up at thread
 * exit. A signal handler that interrupts the runtime in its thread borrows a state of its own for each call, so that
 * events in handlers are counted like any other. A forked child sees all states as zero (MADV_WIPEONFORK). */
#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/thread_list.h"
#include "runtime/core/threads.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>

__thread struct hw_thread *hw_self;
__thread uint64_t hw_until_sample;
static __thread uint32_t self_serial; /* of this thread, 0 before its first call */
static __thread bool self_ended;      /* thread-specific data has been destroyed: no destructor will run again */

extern int pthread_key_create(unsigned *, void (*)(void *)) __attribute__((weak));
extern int pthread_setspecific(unsigned, const void *) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static struct {
    struct hw_thread *free_list;
    struct hw_thread *all[65536];
    uint32_t count;      /* states made */
    uint32_t in_use;     /* by threads */
    uint32_t next_sweep; /* look for threads that ended without a word at this count */
    uint32_t serials;
} threads HW_LARGE;

/* Made once: libc has few. */
static HW_KEPT struct {
    unsigned key;
    bool has;
} at_exit = {0};

/* Where glibc keeps a thread's number, from the thread pointer: for when the kernel must not be asked; 0: not known. */
#define TID_OFFSET 0x2d0
static intptr_t tid_offset;

static uint32_t own_tid(void)
{
    return !hw_quiet ? hw_gettid() : tid_offset ? hw_arch_thread_u32(tid_offset) : 0;
}

static struct hw_thread no_thread; /* "interrupted" of a thread that has no state of its own any more */

static void at_thread_exit(void *value);

void hw_threads_start(void)
{
    threads.next_sweep = 64;
    if (gnu_get_libc_version && hw_arch_thread_u32(TID_OFFSET) == own_tid())
        tid_offset = TID_OFFSET;
    if (!at_exit.has)
        at_exit.has = pthread_key_create && pthread_key_create(&at_exit.key, at_thread_exit) == 0;
}

void hw_threads_fork(void)
{
    threads.free_list = NULL;
    threads.count = 0;
    threads.in_use = 0;
    threads.next_sweep = 64;
    threads.serials = 0;
    hw_self = NULL;
    self_serial = 0;
    hw_until_sample = 0;
}

/* The operator has lines of its own. */
#define OPERATOR_OFFSET HW_ALIGN_UP(sizeof(struct hw_thread), 64)
#define THREAD_BYTES    HW_ALIGN_UP(OPERATOR_OFFSET + sizeof(struct hw_operator), HW_PAGE)

static size_t state_bytes(uint32_t contexts)
{
    return THREAD_BYTES + HW_ALIGN_UP(sizeof(struct hw_walk) * HW_WALK_SETS * HW_WALK_WAYS, HW_PAGE) +
           (sizeof(uint64_t) + sizeof(uint16_t)) * HW_WALK_RING + sizeof(uint32_t) * contexts;
}

/* States are carved from slabs: few mappings whatever the number of threads. */
static struct hw_thread *new_state(void)
{
    static char *slab;
    static size_t left;
    if (threads.count == sizeof threads.all / sizeof *threads.all)
        return NULL;
    bool limited = hw_address_space_limited();
    uint32_t contexts = (uint32_t)(hw_pools[HW_POOL_CONTEXTS].reserved / sizeof(struct hw_context_entry));
    size_t bytes = state_bytes(contexts);
    if (left < bytes) {
        size_t slab_bytes = bytes * (limited ? 1 : 16);
        char *fresh = hw_own_pages(slab_bytes, true);
        if (!fresh)
            return NULL;
        slab = fresh;
        left = slab_bytes;
    }
    struct hw_thread *thread = (struct hw_thread *)slab;
    char *next = slab + THREAD_BYTES;
    thread->operator=(struct hw_operator *)(slab + OPERATOR_OFFSET);
    thread->walks = (struct hw_walk *)next;
    next += HW_ALIGN_UP(sizeof(struct hw_walk) * HW_WALK_SETS * HW_WALK_WAYS, HW_PAGE);
    thread->ring = (uint64_t *)next;
    next += sizeof(uint64_t) * HW_WALK_RING;
    thread->ring_offset = (uint16_t *)next;
    thread->mib_index = (uint32_t *)(next + sizeof(uint16_t) * HW_WALK_RING);
    thread->mib_index_size = contexts;
    thread->free_records = HW_NONE;
    thread->last_entry = thread->spare = HW_NONE;
    thread->slot = threads.count;
    thread->ring_lap = 1;
    slab += bytes;
    left -= bytes;
    thread->operator->slot = threads.count;
    threads.all[threads.count] = thread;
    __atomic_store_n(&threads.count, threads.count + 1, __ATOMIC_RELEASE); /* others read the list without a lock */
    return thread;
}

void hw_threads_each(void (*each)(struct hw_thread *thread))
{
    for (uint32_t i = 0; i < threads.count; i++)
        if (threads.all[i]->entry && threads.all[i]->entry->serial)
            each(threads.all[i]);
}

struct hw_thread *hw_threads_find(uint32_t tid)
{
    for (uint32_t i = 0; i < threads.count; i++)
        if (threads.all[i]->entry && threads.all[i]->entry->serial && threads.all[i]->tid == tid)
            return threads.all[i];
    return NULL;
}

struct hw_thread *hw_threads_of_slot(uint32_t slot)
{
    return slot < __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE) ? threads.all[slot] : NULL;
}

uint32_t hw_threads_tid(unsigned long thread)
{
    return tid_offset ? *(const uint32_t *)(thread + (uintptr_t)tid_offset) : 0;
}

void hw_threads_wait_outside(void)
{
    const uint32_t count = __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        for (int patience = 0; patience < 10000; patience++) {
            uintptr_t gate = __atomic_load_n(&threads.all[i]->gate, __ATOMIC_ACQUIRE);
            if (threads.all[i] == hw_self || !(gate & HW_GATE_RUNTIME))
                break;
            hw_yield();
        }
}

/* ---- stopping the others ---- */

/* Every thread of the process passes a full barrier. */
void hw_threads_barrier(void)
{
    if (hw_quiet) { /* nor does a store stay unseen as long as this takes */
        for (int i = 0; i < 10000; i++)
            hw_arch_pause();
        return;
    }
    if (hw_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) >= 0)
        return;
    hw_sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
    if (hw_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) >= 0)
        return;
    const struct {
        int64_t seconds, nanoseconds;
    } moment = {0, 1000000}; /* not allowed here: no store stays unseen that long */
    hw_sys(SYS_nanosleep, &moment, 0);
}

bool hw_threads_stop_within(uint64_t patience_ns)
{
    __atomic_fetch_or(&hw_runtime.stopped, HW_STOPPED_WAIT, __ATOMIC_SEQ_CST);
    uint32_t count = __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE);
    if (count <= 1 && (count == 0 || threads.all[0] == hw_self))
        return true; /* another thread comes through first_call, and finds them stopped */
    hw_threads_barrier();
    count = __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE);
    uint64_t give_up = hw_clock_monotonic_ns() + patience_ns;
    bool stopped = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_thread *thread = threads.all[i];
        if (!thread || thread == hw_self)
            continue;
        for (unsigned spins = 0; __atomic_load_n(&thread->gate, __ATOMIC_ACQUIRE) > HW_GATE_OPEN; spins++) {
            if (spins < 100) {
                hw_arch_pause();
                continue;
            }
            if (hw_clock_monotonic_ns() >= give_up) {
                stopped = false;
                break;
            }
            hw_yield();
        }
    }
    return stopped;
}

bool hw_threads_calm(void)
{
    const uint32_t count = __atomic_load_n(&threads.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (threads.all[i] && __atomic_load_n(&threads.all[i]->gate, __ATOMIC_ACQUIRE) > HW_GATE_OPEN)
            return false;
    return true;
}

void hw_threads_go(void)
{
    __atomic_fetch_and(&hw_runtime.stopped, ~(uint32_t)HW_STOPPED_WAIT, __ATOMIC_SEQ_CST);
    hw_futex_wake(&hw_runtime.stopped, INT32_MAX);
}

bool hw_wait_stopped(struct hw_thread *thread)
{
    /* A handler in the middle of another event, which is waited for: the two end together. */
    if (thread->interrupted && thread->interrupted != &no_thread)
        return true;
    const uintptr_t gate = thread->gate;
    for (uint32_t now; (now = __atomic_load_n(&hw_runtime.stopped, __ATOMIC_SEQ_CST)) != 0;) {
        if (!(now & HW_STOPPED_WAIT)) {
            hw_leave(thread);
            return false;
        }
        hw_gate(thread, HW_GATE_OPEN);
        hw_futex_wait(&hw_runtime.stopped, now, 0);
        hw_gate(thread, gate);
    }
    return true;
}

void hw_threads_forget_blocks(void)
{
    for (uint32_t i = 0; i < threads.count; i++) {
        threads.all[i]->free_records = HW_NONE;
        threads.all[i]->last_block = NULL;
        threads.all[i]->delta_bytes = threads.all[i]->delta_blocks = 0;
    }
}

/* Allocations and frees of all threads so far. */
uint64_t hw_threads_sum(uint64_t *frees)
{
    uint64_t allocations = 0;
    *frees = 0;
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_THREADS);
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_thread_entry *entry = HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i);
        allocations += entry->allocations;
        *frees += entry->frees;
    }
    return allocations;
}

static void put_back(struct hw_thread *thread)
{
    thread->next_free = threads.free_list;
    threads.free_list = thread;
}

/* Threads made by a bare clone end without running destructors. */
static void sweep(void)
{
    if (threads.free_list || threads.count < threads.next_sweep)
        return;
    threads.next_sweep = threads.count * 2;
    for (uint32_t i = 0; i < threads.count; i++) {
        struct hw_thread *thread = threads.all[i];
        if (thread->entry && thread->entry->serial && hw_sys(SYS_tgkill, hw_runtime.pid, thread->tid, 0) == -ESRCH) {
            thread->gate = HW_GATE_CLOSED;
            threads.in_use--;
            hw_operations_thread_gone(thread);
            hw_thread_list_end(thread, false);
            put_back(thread);
        }
    }
}

#define SLOTS_OF_ROUTINE 64u /* states are only given to threads of the same start function while there are fewer */

/* A state that is not in use, if it can be one that had a thread of the same start function: its MIBs say more then.
 * NULL: one is to be made. */
static struct hw_thread *take_free(bool temporary)
{
    const uintptr_t routine = temporary ? 0 : hw_self_origin.routine;
    struct hw_thread **at = &threads.free_list;
    for (uint32_t steps = 0; *at && steps < SLOTS_OF_ROUTINE; steps++, at = &(*at)->next_free)
        if ((*at)->routine == routine && ((*at)->spare != HW_NONE) == temporary)
            break;
    if (!*at || (*at)->routine != routine || ((*at)->spare != HW_NONE) != temporary) {
        if (threads.count < SLOTS_OF_ROUTINE && !hw_quiet && !hw_address_space_limited())
            return NULL;
        at = &threads.free_list;
    }
    struct hw_thread *thread = *at;
    if (thread)
        *at = thread->next_free;
    return thread;
}

/* A state for the calling thread. Lock held. */
static struct hw_thread *take_state(bool temporary)
{
    if (!hw_quiet)
        sweep();
    struct hw_thread *thread = take_free(temporary);
    if (!thread && !(thread = new_state()))
        return NULL;
    if (!self_serial) {
        self_serial = ++threads.serials;
        hw_runtime.process->threads_seen = self_serial;
    }
    thread->serial = self_serial;
    thread->tid = own_tid();
    thread->exit_rounds = 0;
    thread->last_block = NULL;
    thread->stack = (struct hw_stack){0, 0};
    thread->interrupted = NULL;
    thread->nested = false;
    thread->leave_slow = thread->resume = 0;
    thread->random = ((uint64_t)self_serial << 32) ^ hw_ticks_raw() ^ (uint64_t)(uintptr_t)thread;
    if (!hw_thread_list_begin(thread, temporary)) {
        put_back(thread);
        return NULL;
    }
    thread->entry->tid = thread->tid;
    thread->entry->serial = self_serial;
    if (!temporary && ++threads.in_use > hw_runtime.process->threads_most)
        hw_runtime.process->threads_most = threads.in_use;
    return thread;
}

static void release(struct hw_thread *thread, bool temporary)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_heap_flush(thread);
    thread->gate = HW_GATE_CLOSED;
    if (temporary) {
        thread->entry->serial = 0; /* it stays this state's, for the next time */
    } else {
        threads.in_use--;
        hw_thread_list_end(thread, true);
    }
    put_back(thread);
    hw_lock_drop(&hw_runtime.lock, old);
}

/* Runs in the last of the rounds in which libc calls destructors: those of the program may still allocate. */
static void at_thread_exit(void *value)
{
    struct hw_thread *thread = value;
    if (thread != hw_self || hw_runtime.state != HW_STATE_ON || hw_fork_pending())
        return;
    if (++thread->exit_rounds < 4) {
        pthread_setspecific(at_exit.key, thread);
        return;
    }
    self_ended = true;
    hw_operations_thread_ends(thread);
    hw_self = NULL;
    release(thread, false);
}

void hw_thread_ends(void)
{
    struct hw_thread *thread = hw_self;
    if (at_exit.has || !thread)
        return;
    thread->exit_rounds = 4; /* no destructor will come */
    at_thread_exit(thread);
}

/* Has the hook that set GATE been left by a jump (siglongjmp, thread cancellation) instead of a return? Its frame is
 * gone when the present one lies above it on the same stack. */
static bool gate_is_stale(const struct hw_thread *thread, uintptr_t frame)
{
    uintptr_t old = thread->gate & ~(uintptr_t)HW_GATE_REASON;
    bool same_stack = old >= thread->stack.low && old < thread->stack.high && frame < thread->stack.high;
    return thread->gate > HW_GATE_REASON && same_stack && frame >= old;
}

static struct hw_thread *borrow(struct hw_thread *interrupted)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_thread *thread = take_state(true);
    hw_lock_drop(&hw_runtime.lock, old);
    if (!thread)
        return NULL;
    thread->interrupted = interrupted;
    thread->leave_slow = 1;
    thread->stack = interrupted->stack; /* most often the same one */
    hw_self = thread;
    return thread;
}

static struct hw_thread *first_call(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_thread *thread = take_state(false);
    bool second = thread && (threads.count > 1 || self_serial > 1);
    if (second)
        hw_thread_list_several(thread);
    hw_lock_drop(&hw_runtime.lock, old);
    if (!thread) {
        hw_note(HW_NOTE_NO_MEMORY, NULL);
        return NULL;
    }
    if (second && !hw_runtime.threads_settled)
        hw_heap_threads_many();
    if (hw_options.sample_bytes)
        hw_sample_begin(thread);
    hw_thread_list_routine(thread);
    thread->gate = HW_GATE_OPEN;
    hw_self = thread;
    if (at_exit.has)
        pthread_setspecific(at_exit.key, thread);
    return thread;
}

/* Was the hook whose frame is FRAME called by the allocator, also by a jump at the end of what the runtime called? It is
 * where functions are redirected as they stand (static_hooks.c). */
static bool is_own_work(uintptr_t frame)
{
    const uintptr_t caller = ((const uintptr_t *)frame)[1];
    return caller - hw_runtime.text_start < hw_runtime.text_end - hw_runtime.text_start || hw_called_by_allocator(frame);
}

struct hw_thread *hw_enter_slow(uintptr_t frame, bool is_free)
{
    if (hw_runtime.state != HW_STATE_ON) {
        bool first = hw_runtime.state == HW_STATE_NEW;
        if (first)
            hw_start();
        if (hw_runtime.state != HW_STATE_ON || (first && hw_operations_on))
            return NULL; /* the hook goes to operations.c with it */
    }
    if (hw_unlikely(hw_fork_pending())) {
        hw_fork_child();
        if (hw_runtime.state != HW_STATE_ON)
            return NULL;
    }
    if (hw_unlikely(hw_lock_in_the_way()) || (hw_runtime.stopped & HW_STOPPED_PASS))
        return NULL;
    struct hw_thread *thread = hw_self;
    if (thread && !thread->entry) { /* of before the fork: another thread has set this process up */
        hw_self = thread = NULL;
        self_serial = 0;
    }
    if (!thread)
        return self_ended ? borrow(&no_thread) : first_call();
    if (gate_is_stale(thread, frame)) {
        thread->gate = HW_GATE_OPEN;
        hw_note(HW_NOTE_LEFT, NULL);
        return thread;
    }
    struct hw_thread *borrowed = borrow(thread);
    if (!borrowed)
        return NULL;
    enum hw_caller caller = hw_caller_of_hook(borrowed, thread->gate & ~(uintptr_t)HW_GATE_REASON, frame);
    borrowed->nested = caller == HW_CALLER_ALLOCATOR;
    if (caller == HW_CALLER_HANDLER || (caller == HW_CALLER_ALLOCATOR && (is_free || !(thread->gate & HW_GATE_REAL))))
        return borrowed;
    hw_leave_slow(borrowed);
    if (caller == HW_CALLER_ALLOCATOR) { /* its own business: the outer call counts */
        thread->entry->nested += !is_own_work(frame);
        return NULL;
    }
    thread->gate = HW_GATE_OPEN;
    hw_note(HW_NOTE_LEFT, NULL);
    return thread;
}

void hw_leave_slow(struct hw_thread *thread)
{
    bool resume = thread->resume;
    thread->leave_slow = thread->resume = 0;
    if (thread->interrupted) {
        hw_self = thread->interrupted == &no_thread ? NULL : thread->interrupted;
        thread->interrupted = NULL;
        release(thread, true);
    } else {
        hw_gate(thread, HW_GATE_OPEN);
    }
    if (resume)
        hw_trap_resume();
}
