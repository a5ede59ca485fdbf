/* syscalls.c - system calls inside operations of the allocator, by syscall user dispatch.
 *
 * Each thread gives the kernel the address of its selector (struct hw_operator). While that says BLOCK, which is inside
 * an operation, a system call from outside the runtime's own code is not executed: the thread gets SIGSYS. The handler
 * makes the same call from within the runtime, where the kernel lets it pass, notes what it was and how long it took,
 * and puts the result where the program expects it. So calls are seen that libc makes inside malloc, and those of the
 * program outside are not touched.
 *
 * A call that cannot be made by a handler (clone, fork, exec: what comes of it would be in the handler as well) is
 * handed back: the thread is disarmed until the end of the operation, and executes its instruction again. What comes
 * after that in the same operation is not seen; HW_CALL_UNSEEN says how often that was.
 *
 * The kernel kills a process to which it owes a SIGSYS that is blocked or not handled. program_handlers.c sees to it
 * that this cannot happen through libc; a program that goes past libc to handle SIGSYS is left alone from its next
 * thread on.
 *
 * The handler's mask is empty: a signal of the program that arrives while a call waits in the kernel is handled as it
 * would be otherwise. The handler runs on the stack that the program is on. */
#include "base/arch/x86_64/signal.h"
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif
#define USER_DISPATCH 2 /* SYS_USER_DISPATCH: si_code */

#define LOCKS_MOST 4096u /* in the profile; all others share entry 0 */
#define LOCK_SLOTS 16384u
#define TRIALS     16
#define ROWS       (HW_SYSTEM_CALLS * HW_PHASES * HW_OPERATION_KINDS)

bool hw_dispatch_on;

static struct {
    struct hw_dispatch_thread *all;
    struct hw_operation_call *rows; /* in the file */
    uint64_t overhead;              /* ticks that a call takes longer, beside what the handler itself takes */
    uint64_t whole;                 /* the same with what that takes */
    uint64_t heap_end;              /* what brk said last */
    volatile bool calibrating;
    volatile uint32_t trials;
    volatile uint64_t trial_inside; /* ticks in the handler, the latest */
    /* Locks by address: entry + 1. Only ever added to, under hw_runtime.lock. */
    struct lock_slot {
        uintptr_t lock;
        uint32_t kind, entry;
    } * slots;
    uint32_t *waiting; /* by entry */
    uint64_t waited;   /* ticks: in the profile, of all locks, yields and sleeps */
} dispatch;

/* ---- what is known of system calls ---- */

enum { HAND_BACK = 0xff };

static const struct {
    uint16_t number;
    uint8_t call;  /* enum hw_system_call */
    uint8_t bytes; /* the argument that says how many, from 1; 0: none */
} known_calls[] = {
    {SYS_madvise, HW_CALL_MADVISE, 2},     {SYS_munmap, HW_CALL_MUNMAP, 2},
    {SYS_mmap, HW_CALL_MMAP, 2},           {SYS_brk, HW_CALL_BRK, 0},
    {SYS_mprotect, HW_CALL_MPROTECT, 2},   {SYS_mremap, HW_CALL_MREMAP, 3},
    {SYS_futex, HW_CALL_FUTEX_OTHER, 0},   {SYS_sched_yield, HW_CALL_SCHED_YIELD, 0},
    {SYS_nanosleep, HW_CALL_SLEEP, 0},     {SYS_clock_nanosleep, HW_CALL_SLEEP, 0},
    {SYS_getrandom, HW_CALL_GETRANDOM, 2}, {SYS_open, HW_CALL_OPEN, 0},
    {SYS_openat, HW_CALL_OPEN, 0},         {SYS_read, HW_CALL_READ, 3},
    {SYS_pread64, HW_CALL_READ, 3},        {SYS_write, HW_CALL_OTHER, 0},
    {SYS_close, HW_CALL_OTHER, 0},         {SYS_fstat, HW_CALL_OTHER, 0},
    {SYS_newfstatat, HW_CALL_OTHER, 0},    {SYS_lseek, HW_CALL_OTHER, 0},
    {SYS_readlink, HW_CALL_OTHER, 0},      {SYS_readlinkat, HW_CALL_OTHER, 0},
    {SYS_getpid, HW_CALL_OTHER, 0},        {SYS_gettid, HW_CALL_OTHER, 0},
    {SYS_getcpu, HW_CALL_OTHER, 0},        {SYS_sched_getaffinity, HW_CALL_OTHER, 0},
    {SYS_sysinfo, HW_CALL_OTHER, 0},       {SYS_uname, HW_CALL_OTHER, 0},
    {SYS_getrusage, HW_CALL_OTHER, 0},     {SYS_clock_gettime, HW_CALL_OTHER, 0},
    {SYS_gettimeofday, HW_CALL_OTHER, 0},  {SYS_membarrier, HW_CALL_OTHER, 0},
    {SYS_mincore, HW_CALL_OTHER, 0},       {SYS_mbind, HW_CALL_OTHER, 0},
    {SYS_get_mempolicy, HW_CALL_OTHER, 0}, {SYS_set_mempolicy, HW_CALL_OTHER, 0},
    {SYS_prlimit64, HW_CALL_OTHER, 0},     {SYS_getrlimit, HW_CALL_OTHER, 0},
    {SYS_exit, HW_CALL_OTHER, 0},          {SYS_exit_group, HW_CALL_OTHER, 0},
    {SYS_tgkill, HW_CALL_OTHER, 0},        {SYS_rt_sigprocmask, HW_CALL_OTHER, 0},
};

#define NAME_OF_MEMORY 0x53564d41 /* PR_SET_VMA: allocators name what they map */

static uint32_t kind_of(long number, const long argument[6], uint64_t *bytes)
{
    *bytes = 0;
    if (number == SYS_prctl && argument[0] == NAME_OF_MEMORY)
        return HW_CALL_OTHER;
    for (size_t i = 0; i < sizeof known_calls / sizeof *known_calls; i++) {
        if (known_calls[i].number != number)
            continue;
        if (known_calls[i].bytes)
            *bytes = (uint64_t)argument[known_calls[i].bytes - 1];
        if (known_calls[i].call != HW_CALL_FUTEX_OTHER)
            return known_calls[i].call;
        switch (argument[1] & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
        case FUTEX_LOCK_PI:
        case 13: /* FUTEX_LOCK_PI2 */
            return HW_CALL_FUTEX_WAIT;
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
        case FUTEX_UNLOCK_PI:
        case FUTEX_WAKE_OP:
            return HW_CALL_FUTEX_WAKE;
        default:
            return HW_CALL_FUTEX_OTHER;
        }
    }
    return HAND_BACK;
}

/* ---- what was seen inside the present operation ---- */

static void begin_inside(struct hw_operator *op)
{
    struct hw_dispatch_thread *thread = op->dispatch;
    if (op->events & HW_EVENTS_INSIDE)
        return;
    thread->inside[0] = (struct hw_inside){.lock = 1, .what = HW_LOCK_OTHERS};
    thread->inside[1] = (struct hw_inside){.what = HW_CALL_OTHER};
    thread->inside_count = 2;
    thread->held_count = 0;
    thread->critical_lock = thread->busy_lock = 0;
    op->events |= HW_EVENTS_INSIDE;
}

/* Locks take up to half of the room, so that there is always some for each kind of system call. */
static struct hw_inside *inside(struct hw_dispatch_thread *thread, uint32_t what, uintptr_t lock)
{
    for (uint32_t i = 0; i < thread->inside_count; i++)
        if (thread->inside[i].lock == lock && thread->inside[i].what == what)
            return &thread->inside[i];
    if (thread->inside_count == HW_INSIDE_EVENTS || (lock && thread->inside_count >= HW_INSIDE_EVENTS / 2))
        return &thread->inside[lock ? 0 : 1];
    struct hw_inside *fresh = &thread->inside[thread->inside_count++];
    *fresh = (struct hw_inside){.lock = lock, .what = what};
    return fresh;
}

struct hw_inside *hw_inside_lock(struct hw_operator *op, uint32_t kind, uintptr_t lock)
{
    if (!op->dispatch)
        return NULL;
    begin_inside(op);
    return inside(op->dispatch, kind, lock);
}

static void note_calls(struct hw_operator *op, uint32_t call, uint32_t count, bool failed, uint64_t ticks,
                       uint64_t bytes)
{
    begin_inside(op);
    struct hw_inside *seen = inside(op->dispatch, call, 0);
    seen->count += count;
    seen->slow += failed;
    seen->ticks += ticks;
    seen->more += bytes;
}

/* A lock that libc or the allocator made of a futex: what can be seen of it is who waits and who wakes, not who takes
 * it without a wait. */
static void note_futex(struct hw_operator *op, uint32_t call, uintptr_t address, uint64_t ticks)
{
    struct hw_inside *seen = inside(op->dispatch, HW_LOCK_FUTEX, address);
    if (call == HW_CALL_FUTEX_WAKE) {
        seen->count++;
    } else {
        seen->slow++;
        seen->ticks += ticks;
    }
}

/* What was written down of the allocator's own lock becomes events of the operation. */
static void take_own_lock(struct hw_operator *op)
{
    struct hw_own_lock *own = &op->dispatch->own_lock;
    if (own->waits)
        note_calls(op, HW_CALL_FUTEX_WAIT, own->waits, false, own->wait_ticks, 0);
    if (own->wakes)
        note_calls(op, HW_CALL_FUTEX_WAKE, own->wakes, false, own->wake_ticks, 0);
    if (own->waits || own->wakes) {
        struct hw_inside *seen = inside(op->dispatch, HW_LOCK_FUTEX, own->lock);
        seen->count += own->wakes;
        seen->slow += own->waits;
        seen->ticks += own->wait_ticks;
    }
    own->waits = own->wakes = 0;
    own->wait_ticks = own->wake_ticks = 0;
    op->events &= (uint8_t)~HW_EVENTS_OWN;
}

static uint64_t heap_moved(long end)
{
    uint64_t before = __atomic_exchange_n(&dispatch.heap_end, (uint64_t)end, __ATOMIC_RELAXED);
    return (uint64_t)end > before ? (uint64_t)end - before : before - (uint64_t)end;
}

long hw_dispatch_call(hw_system_call_function *real, long number, const long argument[6])
{
    struct hw_operator *op = hw_operator_self;
    uint64_t bytes;
    const uint32_t call = kind_of(number, argument, &bytes);
    if (!hw_dispatch_on || hw_quiet || !op->dispatch || call == HAND_BACK || number == SYS_rt_sigprocmask)
        return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    hw_unwatched_begin(op);
    const uint64_t begin = hw_ticks_raw();
    const long result = real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    const uint64_t now = hw_ticks_raw();
    hw_unwatched_end(op);
    note_calls(op, call, 1, result == -1, now - begin, call == HW_CALL_BRK ? heap_moved(result) : bytes);
    if (number == SYS_futex)
        note_futex(op, call, (uintptr_t)argument[0], now - begin);
    if (op->timed)
        op->own_ticks += hw_ticks_raw() - now;
    return result;
}

/* ---- the signal ---- */

/* Calls of this thread are no longer observed, whatever its selector says: after a thread's last operation its selector
 * may serve another thread. */
static void disarm(struct hw_operator *op)
{
    if (!hw_quiet)
        hw_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
    else if (op) /* nothing but the call itself may reach the kernel */
        op->selector = 0;
    if (op && op->dispatch)
        op->dispatch->armed = false;
}

/* The program makes the call itself. At the end of the operation the thread is armed again. */
static void hand_back(struct hw_operator *op, ucontext_t *context)
{
    disarm(op);
    if (op && op->dispatch)
        op->dispatch->handed_back = true;
    hw_arch_call_again(context);
}

static void on_trial(ucontext_t *context, const long argument[6], uint64_t entered)
{
    hw_arch_call_done(context, hw_syscall6(hw_arch_call_number(context), argument[0], argument[1], argument[2],
                                           argument[3], argument[4], argument[5]));
    dispatch.trials++;
    dispatch.trial_inside = hw_ticks_raw() - entered;
}

static void carry_out(struct hw_operator *op, ucontext_t *context, uint32_t call, const long argument[6],
                      uint64_t bytes, uint64_t entered)
{
    long number = hw_arch_call_number(context), result;
    uint64_t begin = hw_ticks_raw();
    if (number == SYS_rt_sigprocmask)
        result = hw_handlers_change_mask(context, argument[0], (const uint64_t *)argument[1], (uint64_t *)argument[2],
                                         (size_t)argument[3]);
    else
        result = hw_syscall6(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    uint64_t took = hw_ticks_raw() - begin;
    hw_arch_call_done(context, result);
    note_calls(op, call, 1, hw_sys_failed(result), took, call == HW_CALL_BRK ? heap_moved(result) : bytes);
    if (number == SYS_futex)
        note_futex(op, call, (uintptr_t)argument[0], took);
    if (op->timed)
        op->own_ticks += hw_ticks_raw() - entered - took + dispatch.overhead;
}

static void on_sys(int number, siginfo_t *information, void *closure)
{
    uint64_t entered = hw_ticks_raw(), bytes;
    struct hw_operator *op = hw_operator_self;
    ucontext_t *context = closure;
    long argument[6];
    (void)number;
    if (information->si_code != USER_DISPATCH) {
        hw_handlers_foreign(information, context);
        return;
    }
    hw_arch_call_arguments(context, argument);
    if (dispatch.calibrating) {
        on_trial(context, argument, entered);
        return;
    }
    if (!op || !op->dispatch || !hw_dispatch_on || hw_quiet) {
        hand_back(op, context);
        return;
    }
    uint32_t call = kind_of(hw_arch_call_number(context), argument, &bytes);
    if (call != HAND_BACK) {
        carry_out(op, context, call, argument, bytes, entered);
        return;
    }
    note_calls(op, HW_CALL_UNSEEN, 1, false, 0, 0);
    hand_back(op, context);
}

/* ---- threads ---- */

static struct hw_dispatch_thread *new_thread(void)
{
    static struct hw_dispatch_thread *room;
    static uint32_t left;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (!left && (room = hw_own_pages(8 * HW_PAGE, false)) != NULL)
        left = 8 * HW_PAGE / sizeof *room;
    struct hw_dispatch_thread *thread = left ? room++ : NULL;
    if (thread) {
        left--;
        thread->next = dispatch.all;
        dispatch.all = thread;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    return thread;
}

static long arm(struct hw_operator *op)
{
    return hw_sys(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, hw_runtime.text_start,
                  hw_runtime.text_end - hw_runtime.text_start, &op->selector);
}

/* System calls are observed no more: noted with the reason. */
static void stop(const char *why)
{
    if (__atomic_exchange_n(&hw_dispatch_on, false, __ATOMIC_RELAXED))
        hw_note(HW_NOTE_NO_DISPATCH, why);
}

void hw_dispatch_lend(struct hw_operator *op)
{
    if (!op->dispatch)
        op->dispatch = new_thread();
    if (op->dispatch)
        op->dispatch->handed_back = false;
}

void hw_dispatch_attach(struct hw_operator *op)
{
    hw_dispatch_lend(op);
    if (!op->dispatch || !hw_dispatch_on || hw_quiet)
        return;
    if (!hw_handlers_intact()) {
        stop("the program handles SIGSYS in a way of its own");
        return;
    }
    hw_handlers_thread();
    op->dispatch->armed = arm(op) == 0;
}

static void write_own_sums(struct hw_dispatch_thread *thread);

void hw_dispatch_detach(struct hw_operator *op)
{
    struct hw_dispatch_thread *thread = op->dispatch;
    if (!thread)
        return;
    if (thread->armed)
        disarm(op);
    thread->handed_back = false;
    write_own_sums(thread);
    hw_hardware_close(thread);
}

void hw_dispatch_quiet(void)
{
    if (hw_dispatch_on)
        disarm(hw_operator_self);
    for (struct hw_dispatch_thread *thread = dispatch.all; thread; thread = thread->next)
        hw_hardware_close(thread);
    stop("the program gave up system calls (seccomp)");
}

/* ---- start ---- */

/* Calls from libc's code, while the selector says BLOCK. False: they did not come to the handler. */
static bool calibrate(struct hw_operator *op)
{
    HW_REAL(long, syscall, (long, ...));
    uint64_t plain = ~0ull, seen = ~0ull, whole = ~0ull;
    for (int i = 0; real && i < TRIALS; i++) {
        uint64_t begin = hw_ticks_raw();
        real(SYS_getppid);
        uint64_t took = hw_ticks_raw() - begin;
        plain = took < plain ? took : plain;
    }
    dispatch.trials = 0;
    dispatch.calibrating = true;
    for (int i = 0; real && i < TRIALS; i++) {
        uint64_t begin = hw_ticks_raw();
        op->selector = 1;
        real(SYS_getppid);
        op->selector = 0;
        const uint64_t all = hw_ticks_raw() - begin, took = all - dispatch.trial_inside;
        seen = took < seen ? took : seen;
        whole = all < whole ? all : whole;
    }
    dispatch.calibrating = false;
    dispatch.overhead = seen < (1u << 20) ? seen : 0;
    dispatch.whole = whole < (1u << 20) && whole > plain ? whole - plain : dispatch.overhead;
    return dispatch.trials == TRIALS;
}

/* NULL, or why system calls cannot be seen. */
static const char *why_not(void)
{
    static struct hw_operator trial;
    char status[2048];
    if (hw_quiet)
        return "the program has given up system calls (seccomp)";
    if (!hw_options.dispatch)
        return "the option dispatch=0 was given";
    if (hw_arch_on_valgrind())
        return "the program runs under Valgrind";
    if (hw_is_traced(status, sizeof status))
        return "a debugger or tracer was attached";
    long result = arm(&trial);
    if (result == -EINVAL || result == -ENOSYS)
        return "the kernel has no syscall user dispatch (Linux 5.11 and later)";
    if (result != 0)
        return "the kernel refused syscall user dispatch";
    const char *why = NULL;
    if (!hw_handlers_start(on_sys))
        why = "SIGSYS could not be handled";
    else {
        hw_handlers_thread();
        if (!calibrate(&trial))
            why = "syscall user dispatch has no effect here";
    }
    disarm(&trial);
    return why;
}

static bool take_room(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t rows = hw_pool_take(HW_POOL_OPERATION_CALLS, ROWS), others = hw_pool_take(HW_POOL_OPERATION_LOCKS, 1);
    if (rows != HW_NONE && others != HW_NONE) {
        dispatch.rows = HW_ENTRY(HW_POOL_OPERATION_CALLS, struct hw_operation_call, rows);
        for (uint32_t i = 0; i < ROWS; i++) {
            dispatch.rows[i].kind = i % HW_OPERATION_KINDS;
            dispatch.rows[i].phase = i / HW_OPERATION_KINDS % HW_PHASES;
            dispatch.rows[i].call = i / HW_OPERATION_KINDS / HW_PHASES;
        }
        struct hw_operation_lock *entry = HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, others);
        entry->map = HW_NONE;
        entry->kind = HW_LOCK_OTHERS;
        hw_pool_publish(HW_POOL_OPERATION_CALLS);
        hw_pool_publish(HW_POOL_OPERATION_LOCKS);
    }
    hw_lock_drop(&hw_runtime.lock, old);
    return rows != HW_NONE && others != HW_NONE;
}

bool hw_dispatch_start(void)
{
    for (struct hw_dispatch_thread *thread = dispatch.all; thread; thread = thread->next)
        hw_hardware_close(thread); /* a forked child's: inherited */
    dispatch.all = NULL;
    if (!dispatch.slots) {
        dispatch.slots = hw_own_pages(LOCK_SLOTS * sizeof *dispatch.slots, true);
        dispatch.waiting = hw_own_pages((LOCKS_MOST + 1) * sizeof *dispatch.waiting, true);
    }
    if (!dispatch.slots || !dispatch.waiting || !take_room() || !hw_hardware_start())
        return false;
    hw_dispatch_on = false;
    hw_locks_calibrate();
    dispatch.waited = 0;
    dispatch.heap_end = (uint64_t)hw_sys(SYS_brk, 0);
    const char *why = why_not();
    hw_dispatch_on = why == NULL;
    hw_allocator_info()->call_ticks = hw_dispatch_on ? dispatch.whole : 0;
    if (why)
        hw_note(HW_NOTE_NO_DISPATCH, why);
    return true;
}

static void put_zero(uint64_t *number)
{
    __atomic_store_n(number, 0, __ATOMIC_RELAXED);
}

/* Others may be adding meanwhile, atomically: each number is of before or of after. */
void hw_dispatch_reset(void)
{
    for (struct hw_dispatch_thread *thread = dispatch.all; thread; thread = thread->next)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            thread->own_sums[kind] = (struct hw_own_sum){0};
    for (uint32_t i = 0; i < ROWS; i++) {
        struct hw_operation_call *row = &dispatch.rows[i];
        put_zero(&row->count);
        put_zero(&row->errors);
        put_zero(&row->ticks);
        put_zero(&row->bytes);
    }
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_OPERATION_LOCKS); i++) {
        struct hw_operation_lock *lock = HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, i);
        uint64_t *use = (uint64_t *)lock->use;
        for (size_t n = 0; n < sizeof lock->use / sizeof *use; n++)
            put_zero(&use[n]);
        __atomic_store_n(&lock->waiting_most, i ? dispatch.waiting[i] : 0, __ATOMIC_RELAXED);
        put_zero(&lock->wait_ticks_most);
        put_zero(&lock->critical_ticks_most);
    }
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_OPERATION_EVENTS); i++) {
        struct hw_operation_events *row = HW_ENTRY(HW_POOL_OPERATION_EVENTS, struct hw_operation_events, i);
        put_zero(&row->samples);
        for (uint32_t n = 0; n < HW_OPERATION_EVENTS; n++)
            put_zero(&row->sum[n]);
    }
    put_zero(&dispatch.waited);
}

/* ---- the end of an operation ---- */

static inline void add(uint64_t *to, uint64_t value)
{
    if (value)
        __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t *most, uint64_t value)
{
    uint64_t old = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (value > old && !__atomic_compare_exchange_n(most, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static uint32_t slot_of(uint32_t kind, uintptr_t lock)
{
    uint64_t hash = (lock >> 2 ^ kind) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 40) & (LOCK_SLOTS - 1);
}

/* 0: it has none. */
static uint32_t find_lock(uint32_t kind, uintptr_t lock)
{
    for (uint32_t at = slot_of(kind, lock);; at = (at + 1) & (LOCK_SLOTS - 1)) {
        uintptr_t there = __atomic_load_n(&dispatch.slots[at].lock, __ATOMIC_ACQUIRE);
        if (!there)
            return 0;
        if (there == lock && dispatch.slots[at].kind == kind)
            return dispatch.slots[at].entry;
    }
}

/* An entry for a lock that was found to have none. Lock held. */
static uint32_t add_lock(uint32_t kind, uintptr_t lock)
{
    if (HW_ENTRIES(HW_POOL_OPERATION_LOCKS) > LOCKS_MOST)
        return 0;
    uint32_t index = hw_pool_take(HW_POOL_OPERATION_LOCKS, 1), at = slot_of(kind, lock);
    if (index == HW_NONE)
        return 0;
    struct hw_operation_lock *entry = HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, index);
    const struct hw_module *module = hw_module_of_data(lock);
    *entry = (struct hw_operation_lock){.address = lock, .offset = lock, .map = HW_NONE, .kind = kind};
    if (module) {
        entry->map = module->map;
        entry->offset = lock - module->bias;
    }
    hw_pool_publish(HW_POOL_OPERATION_LOCKS);
    while (dispatch.slots[at].lock)
        at = (at + 1) & (LOCK_SLOTS - 1);
    dispatch.slots[at].kind = kind;
    dispatch.slots[at].entry = index;
    __atomic_store_n(&dispatch.slots[at].lock, lock, __ATOMIC_RELEASE);
    return index;
}

static uint32_t entry_of(uint32_t kind, uintptr_t lock)
{
    uint32_t index = find_lock(kind, lock);
    if (index || kind == HW_LOCK_OTHERS ||
        __atomic_load_n(&hw_pools[HW_POOL_OPERATION_LOCKS].used, __ATOMIC_RELAXED) >
            LOCKS_MOST * sizeof(struct hw_operation_lock))
        return index;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    index = find_lock(kind, lock);
    if (!index)
        index = add_lock(kind, lock);
    hw_lock_drop(&hw_runtime.lock, old);
    return index;
}

static void add_waiting(uint32_t index, int by)
{
    uint32_t now = __atomic_add_fetch(&dispatch.waiting[index], (uint32_t)by, __ATOMIC_RELAXED);
    if (by > 0 && index)
        raise_to(&HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, index)->waiting_most, now);
}

void hw_inside_waiting(uint32_t kind, uintptr_t lock, int by)
{
    add_waiting(entry_of(kind, lock), by);
}

void hw_own_lock_waiting(const struct hw_own_lock *own, int by)
{
    add_waiting(own->entry, by);
}

struct hw_own_lock *hw_inside_own_lock(struct hw_operator *op, uintptr_t lock)
{
    if (hw_unlikely(!op->dispatch))
        return NULL;
    struct hw_own_lock *own = &op->dispatch->own_lock;
    if (hw_unlikely(own->lock != lock || !own->entry)) {
        if (op->events & HW_EVENTS_OWN)
            take_own_lock(op);
        *own = (struct hw_own_lock){.lock = lock, .entry = entry_of(HW_LOCK_FUTEX, lock)};
    } else if (!(op->events & HW_EVENTS_OWN)) { /* what is there is of an earlier operation */
        own->waits = own->wakes = 0;
        own->wait_ticks = own->wake_ticks = 0;
    }
    op->events |= HW_EVENTS_OWN;
    return own;
}

static void add_lock_use(const struct hw_inside *seen, enum hw_phase phase, enum hw_operation_kind kind)
{
    struct hw_operation_lock *entry =
        HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, entry_of(seen->what, seen->lock));
    struct hw_lock_use *use = &entry->use[phase][kind];
    add(&use->count, seen->count);
    add(&use->contended, seen->slow);
    add(&use->refused, seen->busy);
    add(&use->wait_ticks, seen->ticks);
    add(&dispatch.waited, seen->ticks);
    add(&use->held_ticks, seen->more);
    add(&use->critical_ticks, seen->critical);
    raise_to(&entry->wait_ticks_most, seen->ticks);
    raise_to(&entry->critical_ticks_most, seen->critical);
}

static void add_call(const struct hw_inside *seen, enum hw_phase phase, enum hw_operation_kind kind)
{
    struct hw_operation_call *row = &dispatch.rows[(seen->what * HW_PHASES + phase) * HW_OPERATION_KINDS + kind];
    add(&row->count, seen->count);
    add(&row->errors, seen->slow);
    add(&row->ticks, seen->ticks);
    add(&row->bytes, seen->more);
    if (seen->what == HW_CALL_SCHED_YIELD || seen->what == HW_CALL_SLEEP) /* waiting, too */
        add(&dispatch.waited, seen->ticks);
}

#define OWN_SUM_MOST  64u          /* operations */
#define OWN_SUM_TICKS (1ull << 21) /* less than a millisecond */

static uint64_t take_number(uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED) ? __atomic_exchange_n(number, 0, __ATOMIC_RELAXED) : 0;
}

static void write_own_sum(struct hw_own_sum *sum, enum hw_operation_kind kind)
{
    const uint64_t waits = take_number(&sum->waits), wakes = take_number(&sum->wakes);
    const uint64_t waited = take_number(&sum->wait_ticks), woken = take_number(&sum->wake_ticks);
    const uint32_t row = sum->phase * HW_OPERATION_KINDS + kind;
    struct hw_operation_call *calls = &dispatch.rows[HW_CALL_FUTEX_WAIT * HW_PHASES * HW_OPERATION_KINDS + row];
    struct hw_operation_lock *entry = HW_ENTRY(HW_POOL_OPERATION_LOCKS, struct hw_operation_lock, sum->entry);
    struct hw_lock_use *use = &entry->use[sum->phase][kind];
    sum->since = 0;
    if (!waits && !wakes)
        return;
    add(&calls->count, waits);
    add(&calls->ticks, waited);
    calls = &dispatch.rows[HW_CALL_FUTEX_WAKE * HW_PHASES * HW_OPERATION_KINDS + row];
    add(&calls->count, wakes);
    add(&calls->ticks, woken);
    add(&use->count, wakes);
    add(&use->contended, waits);
    add(&use->wait_ticks, waited);
    add(&dispatch.waited, waited);
    raise_to(&entry->wait_ticks_most, take_number(&sum->most));
    add(sum->exact, waited + woken);
}

static void write_own_sums(struct hw_dispatch_thread *thread)
{
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
        write_own_sum(&thread->own_sums[kind], kind);
}

void hw_dispatch_write(void)
{
    for (struct hw_dispatch_thread *thread = dispatch.all; thread; thread = thread->next)
        write_own_sums(thread);
}

/* The present operation has waited for the allocator's own lock, or woken who waits: ticks. */
static uint64_t end_own_lock(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind, uint32_t bucket)
{
    const struct hw_own_lock own = op->dispatch->own_lock;
    struct hw_own_sum *sum = &op->dispatch->own_sums[kind];
    const uint64_t ticks = own.wait_ticks + own.wake_ticks;
    if (!(__atomic_fetch_and(&op->events, (uint8_t)~HW_EVENTS_OWN, __ATOMIC_RELAXED) & HW_EVENTS_OWN))
        return 0; /* a handler's operation has taken it, as in take_inside */
    op->stage_base[kind].ticks += ticks;
    if (!sum->exact || sum->entry != own.entry || sum->phase != phase || sum->bucket != bucket) {
        write_own_sum(sum, kind);
        sum->entry = own.entry;
        sum->phase = phase;
        sum->bucket = bucket;
        sum->exact = hw_times_exact(phase, kind, bucket);
        if (!sum->exact)
            return ticks;
    }
    add(&sum->waits, own.waits);
    add(&sum->wakes, own.wakes);
    add(&sum->wait_ticks, own.wait_ticks);
    add(&sum->wake_ticks, own.wake_ticks);
    if (own.wait_ticks > sum->most)
        sum->most = own.wait_ticks;
    if (++sum->since >= OWN_SUM_MOST || sum->wait_ticks + sum->wake_ticks >= OWN_SUM_TICKS)
        write_own_sum(sum, kind);
    return ticks;
}

uint64_t hw_dispatch_waited(void)
{
    return __atomic_load_n(&dispatch.waited, __ATOMIC_RELAXED);
}

/* What was recorded inside, into ALL: so many entries. It is nobody else's then: a signal handler that comes before
 * has its own operations, the first of which adds this one's with its own and leaves nothing here. */
static uint32_t take_inside(struct hw_operator *op, struct hw_inside all[HW_INSIDE_EVENTS])
{
    const struct hw_dispatch_thread *thread = op->dispatch;
    const uint32_t count = thread && op->events & HW_EVENTS_INSIDE ? thread->inside_count : 0;
    for (uint32_t i = 0; i < count; i++)
        all[i] = thread->inside[i];
    return __atomic_exchange_n(&op->events, 0, __ATOMIC_RELAXED) & HW_EVENTS_INSIDE ? count : 0;
}

uint64_t hw_dispatch_operation_end(struct hw_operator *op, enum hw_phase phase, enum hw_operation_kind kind,
                                   uint32_t bucket)
{
    struct hw_dispatch_thread *thread = op->dispatch;
    struct hw_inside all[HW_INSIDE_EVENTS];
    uint64_t inside = 0, own = 0;
    hw_places_operation_end(op);
    if (op->events & HW_EVENTS_OWN)
        own = end_own_lock(op, phase, kind, bucket);
    const uint32_t count = take_inside(op, all);
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_inside *seen = &all[i];
        if (!seen->count && !seen->slow && !seen->busy)
            continue;
        if (seen->lock)
            add_lock_use(seen, phase, kind);
        else
            add_call(seen, phase, kind);
        if (!seen->lock || seen->what != HW_LOCK_FUTEX) /* waiting for a futex is a system call, too */
            inside += seen->ticks;
    }
    if (inside)
        hw_times_inside(op, phase, kind, bucket, inside);
    if (thread && thread->handed_back) {
        thread->handed_back = false;
        thread->armed = hw_dispatch_on && !hw_quiet && arm(op) == 0;
    }
    return inside + own;
}
