/* locks.c - locks of the allocator: mutexes, spin locks and read-write locks of pthreads, by interposition.
 *
 * Outside an operation each hook reads one thread-local pointer and byte, and jumps to the real function.
 * Inside, a lock is tried first, so that contention is known and the usual case does not read which threads wait;
 * all other results than "taken" and "busy" are left to the real function, which handles errors, owners that died and
 * recursion. Results are always the real functions' own.
 *
 * While a lock is waited for, or waiters are woken, system calls are not observed (syscalls.c): what futexes show is
 * what locks show that libc and the allocator make by themselves.
 *
 * glibc's own locks, of its arenas above all, are taken where nothing can be interposed; only the two functions that
 * wait for one and wake who waits are functions. They are redirected where they stand: a signal for each futex, at the
 * moment in which all want the lock, makes them wait that would not. */
#include <errno.h>
#include <time.h>

#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"

typedef int lock_function(void *);
typedef int until_function(void *, const struct timespec *);
typedef int clock_function(void *, int, const struct timespec *);

/* NAME of pthreads: `first_NAME` looks for the real functions and goes on to the one that was called. */
#define LOCKS(X)                                                                                                       \
    X(pthread_mutex_lock)                                                                                              \
    X(pthread_mutex_trylock)                                                                                           \
    X(pthread_mutex_unlock)                                                                                            \
    X(pthread_spin_lock)                                                                                               \
    X(pthread_spin_trylock)                                                                                            \
    X(pthread_spin_unlock)                                                                                             \
    X(pthread_rwlock_rdlock)                                                                                           \
    X(pthread_rwlock_tryrdlock)                                                                                        \
    X(pthread_rwlock_wrlock)                                                                                           \
    X(pthread_rwlock_trywrlock)                                                                                        \
    X(pthread_rwlock_unlock)

#define FIRST(name)                                                                                                    \
    static int first_##name(void *lock);                                                                               \
    static lock_function *real_##name = first_##name;
LOCKS(FIRST)
#undef FIRST
static until_function *real_pthread_mutex_timedlock;
static clock_function *real_pthread_mutex_clocklock;

static int missing(void *lock)
{
    (void)lock;
    return ENOSYS;
}

void hw_locks_resolve(void)
{
    void *found;
#define RESOLVE(name)                                                                                                  \
    found = hw_real_next(#name);                                                                                       \
    __atomic_store_n(&real_##name, found ? (lock_function *)found : missing, __ATOMIC_RELEASE);
    LOCKS(RESOLVE)
#undef RESOLVE
    *(void **)&real_pthread_mutex_timedlock = hw_real_next("pthread_mutex_timedlock");
    *(void **)&real_pthread_mutex_clocklock = hw_real_next("pthread_mutex_clocklock");
}

#define FIRST(name)                                                                                                    \
    static int first_##name(void *lock)                                                                                \
    {                                                                                                                  \
        hw_locks_resolve();                                                                                            \
        return real_##name(lock);                                                                                      \
    }
LOCKS(FIRST)
#undef FIRST

/* ---- inside an operation ---- */

/* The operation that the calling thread is in the middle of, or NULL. */
static inline struct hw_operator *operation(void)
{
    struct hw_operator *op = hw_operator_self;
    return hw_unlikely(op && op->selector) ? op : NULL;
}

static bool is_taken(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

static struct hw_held *find_held(struct hw_dispatch_thread *thread, uint32_t kind, uintptr_t lock)
{
    for (uint32_t i = thread->held_count; i > 0; i--)
        if (thread->held[i - 1].lock == lock && thread->held[i - 1].kind == kind)
            return &thread->held[i - 1];
    return NULL;
}

/* The entry of LOCK, which was just taken; NULL: its time began before, or there is no room. */
static struct hw_held *hold(struct hw_dispatch_thread *thread, uint32_t kind, uintptr_t lock)
{
    struct hw_held *held = find_held(thread, kind, lock);
    if (held) {
        held->depth++;
        return NULL;
    }
    if (thread->held_count == HW_INSIDE_LOCKS)
        return NULL;
    if (thread->held_count == 0)
        thread->critical_lock = lock;
    held = &thread->held[thread->held_count++];
    held->lock = lock;
    held->kind = kind;
    held->depth = 1;
    return held;
}

/* LOCK was taken; if it had to be waited for, since SINCE until NOW, else both are 0. The time for which it is held
 * begins when all this has been written down. */
static void note_taken(struct hw_operator *op, uint32_t kind, uintptr_t lock, uint64_t since, uint64_t now)
{
    const uint64_t begin = now || !op->timed ? now : hw_ticks_raw();
    struct hw_inside *seen = hw_inside_lock(op, kind, lock);
    if (!seen)
        return;
    struct hw_dispatch_thread *thread = op->dispatch;
    if (thread->busy_lock == lock) {
        since = thread->busy_since;
        now = now ? now : hw_ticks_raw();
        thread->busy_lock = 0;
    }
    seen->count++;
    if (since) {
        seen->slow++;
        seen->ticks += now - since;
    }
    struct hw_held *held = hold(thread, kind, lock);
    const uint64_t end = hw_ticks_raw();
    if (held)
        held->since = end;
    if (held == thread->held)
        thread->critical_since = end;
    if (op->timed)
        op->own_ticks += end - begin;
}

static void note_refused(struct hw_operator *op, uint32_t kind, uintptr_t lock)
{
    struct hw_inside *seen = hw_inside_lock(op, kind, lock);
    if (!seen)
        return;
    seen->busy++;
    if (op->dispatch->busy_lock != lock) {
        op->dispatch->busy_lock = lock;
        op->dispatch->busy_since = hw_ticks_raw();
    }
}

static uint64_t empty_section; /* ticks that one with nothing in it seems to take */

static uint64_t less_empty(uint64_t ticks)
{
    return ticks > empty_section ? ticks - empty_section : 0;
}

/* LOCK is about to be given back. */
static void note_released(struct hw_operator *op, uint32_t kind, uintptr_t lock)
{
    const uint64_t now = hw_ticks_raw();
    struct hw_dispatch_thread *thread = op->dispatch;
    struct hw_held *held = thread && op->events & HW_EVENTS_INSIDE ? find_held(thread, kind, lock) : NULL;
    if (!held || --held->depth)
        return;
    struct hw_inside *seen = hw_inside_lock(op, kind, lock);
    seen->more += less_empty(now - held->since);
    for (uint32_t i = (uint32_t)(held - thread->held) + 1; i < thread->held_count; i++)
        thread->held[i - 1] = thread->held[i];
    if (--thread->held_count == 0) {
        for (uint32_t i = 0; i < thread->inside_count; i++)
            if (thread->inside[i].lock == thread->critical_lock) {
                seen = &thread->inside[i];
                break;
            }
        seen->critical += less_empty(now - thread->critical_since);
    }
    if (op->timed)
        op->own_ticks += hw_ticks_raw() - now;
}

/* What is waited with: one of the real functions. */
struct wait {
    lock_function *plain;
    until_function *until;
    clock_function *by_clock;
    const struct timespec *time;
    int clock;
};

static int wait_for(const struct wait *wait, void *lock)
{
    return wait->plain   ? wait->plain(lock)
           : wait->until ? wait->until(lock, wait->time)
                         : wait->by_clock(lock, wait->clock, wait->time);
}

static __attribute__((noinline)) int take(struct hw_operator *op, uint32_t kind, void *lock, lock_function *attempt,
                                          const struct wait *wait)
{
    int result = attempt(lock);
    if (is_taken(result)) {
        note_taken(op, kind, (uintptr_t)lock, 0, 0);
        return result;
    }
    uint64_t since = hw_ticks_raw();
    bool busy = result == EBUSY;
    if (busy)
        hw_inside_waiting(kind, (uintptr_t)lock, 1);
    hw_unwatched_begin(op);
    result = wait_for(wait, lock);
    hw_unwatched_end(op);
    if (busy)
        hw_inside_waiting(kind, (uintptr_t)lock, -1);
    if (is_taken(result))
        note_taken(op, kind, (uintptr_t)lock, since, hw_ticks_raw());
    return result;
}

static __attribute__((noinline)) int try(struct hw_operator *op, uint32_t kind, void *lock, lock_function *attempt)
{
    int result = attempt(lock);
    if (is_taken(result))
        note_taken(op, kind, (uintptr_t)lock, 0, 0);
    else if (result == EBUSY)
        note_refused(op, kind, (uintptr_t)lock);
    return result;
}

static __attribute__((noinline)) int give(struct hw_operator *op, uint32_t kind, void *lock, lock_function *release)
{
    note_released(op, kind, (uintptr_t)lock);
    hw_unwatched_begin(op);
    int result = release(lock);
    hw_unwatched_end(op);
    return result;
}

static int taken_at_once(void *lock)
{
    (void)lock;
    return 0;
}

void hw_locks_calibrate(void)
{
    static struct hw_operator trial;
    static struct hw_dispatch_thread thread;
    static int lock;
    uint64_t least = UINT64_MAX;
    empty_section = 0;
    trial.dispatch = &thread;
    for (int i = 0; i < 50; i++) {
        trial.events = 0;
        take(&trial, HW_LOCK_MUTEX, &lock, taken_at_once, NULL);
        give(&trial, HW_LOCK_MUTEX, &lock, taken_at_once);
        const uint64_t ticks = hw_inside_lock(&trial, HW_LOCK_MUTEX, (uintptr_t)&lock)->more;
        least = ticks < least ? ticks : least;
    }
    empty_section = least;
}

/* ---- the hooks ---- */

#define TAKE(name, attempt, kind)                                                                                      \
    HW_EXPORTED(int, name, (void *lock))                                                                               \
    {                                                                                                                  \
        struct hw_operator *op = operation();                                                                          \
        if (hw_likely(!op))                                                                                            \
            return real_##name(lock);                                                                                  \
        return take(op, kind, lock, real_##attempt, &(struct wait){.plain = real_##name});                             \
    }
#define TRY(name, kind)                                                                                                \
    HW_EXPORTED(int, name, (void *lock))                                                                               \
    {                                                                                                                  \
        struct hw_operator *op = operation();                                                                          \
        return hw_likely(!op) ? real_##name(lock) : try(op, kind, lock, real_##name);                                  \
    }
#define GIVE(name, kind)                                                                                               \
    HW_EXPORTED(int, name, (void *lock))                                                                               \
    {                                                                                                                  \
        struct hw_operator *op = operation();                                                                          \
        return hw_likely(!op) ? real_##name(lock) : give(op, kind, lock, real_##name);                                 \
    }

TAKE(pthread_mutex_lock, pthread_mutex_trylock, HW_LOCK_MUTEX)
TRY(pthread_mutex_trylock, HW_LOCK_MUTEX)
GIVE(pthread_mutex_unlock, HW_LOCK_MUTEX)
TAKE(pthread_spin_lock, pthread_spin_trylock, HW_LOCK_SPIN)
TRY(pthread_spin_trylock, HW_LOCK_SPIN)
GIVE(pthread_spin_unlock, HW_LOCK_SPIN)
TAKE(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, HW_LOCK_RWLOCK)
TRY(pthread_rwlock_tryrdlock, HW_LOCK_RWLOCK)
TAKE(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, HW_LOCK_RWLOCK)
TRY(pthread_rwlock_trywrlock, HW_LOCK_RWLOCK)
GIVE(pthread_rwlock_unlock, HW_LOCK_RWLOCK)

HW_EXPORTED(int, pthread_mutex_timedlock, (void *lock, const struct timespec *until))
{
    struct hw_operator *op = operation();
    if (!real_pthread_mutex_timedlock)
        hw_locks_resolve();
    if (!real_pthread_mutex_timedlock)
        return ENOSYS;
    if (hw_likely(!op))
        return real_pthread_mutex_timedlock(lock, until);
    return take(op, HW_LOCK_MUTEX, lock, real_pthread_mutex_trylock,
                &(struct wait){.until = real_pthread_mutex_timedlock, .time = until});
}

HW_EXPORTED(int, pthread_mutex_clocklock, (void *lock, int clock, const struct timespec *until))
{
    struct hw_operator *op = operation();
    if (!real_pthread_mutex_clocklock)
        hw_locks_resolve();
    if (!real_pthread_mutex_clocklock)
        return ENOSYS;
    if (hw_likely(!op))
        return real_pthread_mutex_clocklock(lock, clock, until);
    return take(op, HW_LOCK_MUTEX, lock, real_pthread_mutex_trylock,
                &(struct wait){.by_clock = real_pthread_mutex_clocklock, .time = until, .clock = clock});
}

/* ---- glibc's own ---- */

extern char __libc_single_threaded __attribute__((weak));

static void (*real_wait_private)(int *), (*real_wake_private)(int *);

/* REAL, which waits for the lock at FUTEX until it is the caller's, or wakes who waits. What is done from then on
 * lengthens the time for which it is held: the rest waits for the end of the operation. */
static inline __attribute__((always_inline)) void call_private(int *futex, void (*real)(int *), bool waits)
{
    struct hw_operator *op = operation();
    struct hw_own_lock *own = op && !hw_quiet ? hw_inside_own_lock(op, (uintptr_t)futex) : NULL;
    if (!own) {
        real(futex);
        return;
    }
    if (waits)
        hw_own_lock_waiting(own, 1);
    hw_unwatched_begin(op);
    const uint64_t since = hw_ticks_raw();
    real(futex);
    const uint64_t now = hw_ticks_raw();
    *(waits ? &own->wait_ticks : &own->wake_ticks) += now - since;
    ++*(waits ? &own->waits : &own->wakes);
    hw_unwatched_end(op);
    if (waits)
        hw_own_lock_waiting(own, -1);
    if (op->timed)
        op->own_ticks += hw_ticks_raw() - now;
}

static void wait_private(int *futex)
{
    call_private(futex, real_wait_private, true);
}

static void wake_private(int *futex)
{
    call_private(futex, real_wake_private, false);
}

/* Calls of HOOK may come as soon as it is done. */
static void redirect(const char *name, void (*hook)(int *), void (**real)(int *))
{
    size_t size;
    const char *why;
    void *function = hw_function_find(name, &size);
    void *original = function ? hw_arch_patch(function, size, (const void *)hook, &why) : NULL;
    if (original)
        *(void **)real = original;
}

/* Where it cannot be had syscalls.c sees the futexes. Code is changed only while no other thread can be in it. */
void hw_locks_start(void)
{
    if (!hw_dispatch_on || !hw_real.is_glibc || real_wait_private || !&__libc_single_threaded ||
        !__libc_single_threaded)
        return;
    redirect("__lll_lock_wait_private", wait_private, &real_wait_private);
    redirect("__lll_lock_wake_private", wake_private, &real_wake_private);
}
