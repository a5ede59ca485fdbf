/* limits.c - limits that a program sets on itself, and how the runtime's reservations affect them.
 *
 * The runtime reserves terabytes of address space, of which almost nothing is touched. It counts against no limit but
 * RLIMIT_AS (memory.c): that one is widened by as much, whether the runtime is on or has stepped aside, and the program
 * sees its own figures. A limit that another process set, or a bare system call, is widened when something has failed
 * because of it. Nothing of what is reserved is ever locked. Before a limit of the size of files the profile
 * gets room. */
#include "runtime/access/access.h"
#include "runtime/allocator/operations.h"
#include "runtime/core/core.h"
#include "runtime/core/mappings.h"
#include "runtime/core/memory.h"
#include "runtime/core/thread_list.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"
#include "runtime/stacks/stacks.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#define FRAME           (hw_in_operation() ? 0 : (uintptr_t)__builtin_frame_address(0))
#define RLIMIT_AS_      9
#define RLIMIT_FSIZE_   1
#define RLIMIT_MEMLOCK_ 8

struct limit {
    uint64_t soft, hard;
};

/* RLIMIT_AS as the program has set it, and as the kernel has it. */
static struct {
    bool set;
    bool found; /* not by a call that was seen */
    struct limit asked, given;
} space;

static bool same(const struct limit *a, const struct limit *b)
{
    return a->soft == b->soft && a->hard == b->hard;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t plus(uint64_t value, uint64_t more)
{
    return value > ~0ull - 1 - more ? ~0ull : value + more; /* ~0 stays "no limit" */
}

/* What the kernel says, as the program is to see it. */
static void narrow(struct limit *limit)
{
    if (space.set && same(limit, &space.given))
        *limit = space.asked;
}

/* Whether LIMIT can be read. If it cannot the kernel says so, and the program goes on. */
static bool is_given(const struct limit *limit)
{
    return hw_quiet || (hw_readable((uintptr_t)limit) && hw_readable((uintptr_t)limit + sizeof *limit - 1));
}

/* What the kernel gets instead of LIMIT. A hard limit is raised only if the program wants that. */
static struct limit widen(const struct limit *limit)
{
    struct limit now, seen;
    uint64_t own = hw_own_bytes();
    if (limit->soft > limit->hard || hw_sys_program(SYS_prlimit64, 0, RLIMIT_AS_, 0, &now) != 0)
        return *limit;
    seen = now;
    narrow(&seen);
    uint64_t hard = plus(limit->hard, own);
    if (limit->hard <= seen.hard)
        hard = least(hard, now.hard);
    return (struct limit){least(plus(limit->soft, own), hard), hard};
}

/* The kernel has taken GIVEN, for which the program had ASKED. */
static void keep(const struct limit *asked, const struct limit *given)
{
    space.asked = *asked;
    space.given = *given;
    space.set = true;
    space.found = false;
}

/* A limit that was not widened here. Without the right to raise a hard limit it is widened up to that. The new value is
 * stored before it is set: another thread may come here as well. */
static bool widen_found(const struct limit *now)
{
    const uint64_t own = hw_own_bytes();
    struct limit given = {plus(now->soft, own), plus(now->hard, own)};
    keep(now, &given);
    space.found = true;
    if (hw_prlimit(0, RLIMIT_AS_, &given, 0) == 0)
        return true;
    given = (struct limit){least(given.soft, now->hard), now->hard};
    keep(now, &given);
    space.found = given.soft > now->soft && hw_prlimit(0, RLIMIT_AS_, &given, 0) == 0;
    if (given.soft - now->soft < own && !hw_address_space_limited() && hw_runtime.state == HW_STATE_ON)
        hw_note(HW_NOTE_OTHER, "another process (or the program, by a system call of its own) limited address space, "
                               "with a hard limit that the process may not raise: what Heapwise has reserved counts, "
                               "so that memory was refused to the program");
    return space.found;
}

bool hw_limits_make_way(void)
{
    struct limit now;
    if (!hw_own_bytes() || hw_quiet || hw_prlimit(0, RLIMIT_AS_, 0, &now) != 0 || now.soft == ~0ull)
        return false;
    return space.set && same(&now, &space.given) ? space.found : widen_found(&now);
}

bool hw_limits_space(uint64_t *limit, uint64_t *own)
{
    struct limit now;
    if (hw_prlimit(0, RLIMIT_AS_, 0, &now) != 0 || now.soft == ~0ull)
        return false;
    const bool widened = space.set && same(&now, &space.given);
    *limit = widened ? space.asked.soft : now.soft;
    *own = now.soft - *limit;
    return *limit != ~0ull;
}

/* Files may become no larger than LIMIT from now on: the last opportunity to enlarge the profile. Programs that are
 * about to give up system calls begin with that. */
static void before_file_limit(const struct limit *limit)
{
    if (hw_quiet || hw_runtime.state != HW_STATE_ON || !is_given(limit) || limit->soft == ~0ull)
        return;
    if (hw_fork_pending())
        hw_fork_child();
    if (hw_runtime.state == HW_STATE_ON)
        hw_file_before_limit(limit->soft);
}

HW_EXPORTED(int, setrlimit, (int resource, const struct limit *limit))
{
    HW_REAL(int, setrlimit, (int, const struct limit *));
    if (resource == RLIMIT_FSIZE_ && limit)
        before_file_limit(limit);
    if (resource != RLIMIT_AS_ || !limit || !hw_own_bytes() || !is_given(limit))
        return real(resource, limit);
    struct limit asked = *limit, given = widen(limit);
    int result = real(resource, &given);
    if (result == 0)
        keep(&asked, &given);
    return result;
}
extern __typeof__(setrlimit) setrlimit64 __attribute__((alias("setrlimit"), visibility("default")));

HW_EXPORTED(int, getrlimit, (int resource, struct limit *limit))
{
    HW_REAL(int, getrlimit, (int, struct limit *));
    int result = real(resource, limit);
    if (result == 0 && resource == RLIMIT_AS_)
        narrow(limit);
    return result;
}
extern __typeof__(getrlimit) getrlimit64 __attribute__((alias("getrlimit"), visibility("default")));

HW_EXPORTED(int, prlimit, (int pid, int resource, const struct limit *fresh, struct limit *old))
{
    HW_REAL(int, prlimit, (int, int, const struct limit *, struct limit *));
    if (resource == RLIMIT_FSIZE_ && fresh && !hw_quiet && (pid == 0 || pid == (int)hw_getpid()))
        before_file_limit(fresh);
    if (resource != RLIMIT_AS_ || !hw_own_bytes() || (fresh && !is_given(fresh)) ||
        (pid != 0 && pid != (int)(hw_quiet ? hw_runtime.pid : hw_getpid())))
        return real(pid, resource, fresh, old);
    struct limit asked, given;
    if (fresh) {
        asked = *fresh; /* OLD may be the same */
        given = widen(fresh);
    }
    int result = real(pid, resource, fresh ? &given : NULL, old);
    if (result == 0 && old)
        narrow(old);
    if (result == 0 && fresh)
        keep(&asked, &given);
    return result;
}
extern __typeof__(prlimit) prlimit64 __attribute__((alias("prlimit"), visibility("default")));

/* ---- mappings of the program's own ---- */

extern int *__errno_location(void) __attribute__((weak));

static bool failed_for_limit(const void *result)
{
    return hw_unlikely(result == MAP_FAILED) && __errno_location && *__errno_location() == ENOMEM &&
           hw_limits_make_way();
}

/* Before the start there is no way to look for libc's, and nothing reserved. */
static void *map_early(void *address, size_t length, int protection, int flags, int file, long offset)
{
    const long result = hw_sys_program(SYS_mmap, address, length, protection, flags, file, offset);
    if (!hw_sys_failed(result))
        return (void *)result;
    if (__errno_location)
        *__errno_location() = (int)-result;
    return MAP_FAILED;
}

HW_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int file, long offset)
{
    if (hw_unlikely(hw_runtime.state < HW_STATE_ON))
        return map_early(address, length, protection, flags, file, offset);
    HW_REAL(void *, mmap, (void *, size_t, int, int, int, long));
    void *result = real(address, length, protection, flags, file, offset);
    if (failed_for_limit(result))
        result = real(address, length, protection, flags, file, offset);
    if (result != MAP_FAILED)
        hw_mapping_made((uintptr_t)result, length, FRAME);
    return result;
}
extern __typeof__(mmap) mmap64 __attribute__((alias("mmap"), visibility("default")));

HW_EXPORT int munmap(void *address, size_t length)
{
    if (hw_unlikely(hw_runtime.state < HW_STATE_ON)) {
        const long result = hw_sys_program(SYS_munmap, address, length);
        if (hw_sys_failed(result) && __errno_location)
            *__errno_location() = (int)-result;
        return hw_sys_failed(result) ? -1 : 0;
    }
    HW_REAL(int, munmap, (void *, size_t));
    hw_mapping_gone((uintptr_t)address, length);
    return real(address, length);
}

HW_EXPORT void *mremap(void *old, size_t old_length, size_t length, int flags, ...)
{
    HW_REAL(void *, mremap, (void *, size_t, size_t, int, void *));
    va_list list;
    va_start(list, flags);
    void *fresh = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    void *result = real(old, old_length, length, flags, fresh);
    if (failed_for_limit(result))
        result = real(old, old_length, length, flags, fresh);
    if (result != MAP_FAILED)
        hw_mapping_moved((uintptr_t)old, old_length, (uintptr_t)result, length, flags & MREMAP_DONTUNMAP, FRAME);
    return result;
}

HW_EXPORTED(void *, sbrk, (intptr_t more))
{
    HW_REAL(void *, sbrk, (intptr_t));
    void *result = real(more);
    if (failed_for_limit(result))
        result = real(more);
    if (result != MAP_FAILED && more > 0)
        hw_mapping_made((uintptr_t)result, (size_t)more, FRAME);
    else if (result != MAP_FAILED && more < 0)
        hw_mapping_gone((uintptr_t)result + (uintptr_t)more, -(size_t)more);
    return result;
}

/* ---- programs that are started ---- */

/* Whether process PID takes less address space than BYTES: it has reserved nothing beyond them yet. */
static bool takes_less(int pid, uint64_t bytes)
{
    char path[32], text[128];
    struct hw_text name;
    hw_text_init(&name, path, sizeof path);
    hw_text_string(&name, "/proc/");
    hw_text_u64(&name, (uint64_t)pid);
    hw_text_string(&name, "/statm");
    if (hw_read_file(path, text, sizeof text) <= 0)
        return false;
    const char *pages = text;
    return hw_parse_u64(&pages, 10) < bytes / HW_PAGE;
}

/* A program that was started beside this one gets the limits as this one set them. If it has reserved memory by now,
 * which is not to be counted either, it may raise the soft one again. */
void hw_limits_of_started(int pid)
{
    struct limit now;
    if (!space.set || hw_quiet || hw_prlimit(pid, RLIMIT_AS_, 0, &now) != 0 || !same(&now, &space.given))
        return;
    struct limit next = {space.asked.soft, now.hard};
    if (hw_prlimit(pid, RLIMIT_AS_, &next, 0) == 0 && takes_less(pid, next.soft) &&
        hw_prlimit(pid, RLIMIT_AS_, 0, &now) == 0 && same(&now, &next))
        hw_prlimit(pid, RLIMIT_AS_, &space.asked, 0);
}

/* The next program gets the limits as this one set them. */
void hw_limits_for_exec(bool begin)
{
    struct limit now;
    if (!space.set || hw_quiet || hw_prlimit(0, RLIMIT_AS_, 0, &now) != 0 ||
        !same(&now, begin ? &space.given : &space.asked))
        return;
    struct limit next = begin ? space.asked : space.given;
    if (hw_prlimit(0, RLIMIT_AS_, &next, 0) == 0)
        return;
    next = (struct limit){least(next.soft, now.hard), now.hard}; /* a hard limit cannot be raised again */
    hw_prlimit(0, RLIMIT_AS_, &next, 0);
}

/* ---- locked memory ---- */

enum { LOCK_CURRENT = 1, LOCK_FUTURE = 2, LOCK_ON_FAULT = 4 }; /* MCL_ */

static struct {
    uint64_t bytes;
    int flags; /* of mlock2 */
} locking;

static void add_area(const struct hw_area *area)
{
    if (!area->own && !(area->start >> HW_ARCH_ADDRESS_BITS))
        locking.bytes += area->end - area->start;
}

static void lock_area(const struct hw_area *area)
{
    if (!area->own && !(area->start >> HW_ARCH_ADDRESS_BITS) &&
        hw_sys(SYS_mlock2, area->start, area->end - area->start, locking.flags) == -ENOSYS)
        hw_sys(SYS_mlock, area->start, area->end - area->start);
}

/* Whether the kernel ignores RLIMIT_MEMLOCK. */
static bool may_lock_any(void)
{
    const struct {
        uint32_t version;
        int pid;
    } header = {0x20080522, 0};
    uint32_t sets[2][3] = {0}; /* effective, permitted, inheritable */
    return hw_sys(SYS_capget, &header, sets) == 0 && (sets[0][0] >> CAP_IPC_LOCK & 1);
}

/* Whether the program alone, without what the runtime has reserved, would be allowed to. Lock held. */
static bool may_lock_current(void)
{
    struct limit limit = {0, 0};
    hw_prlimit(0, RLIMIT_MEMLOCK_, 0, &limit);
    locking.bytes = 0;
    hw_areas_each(add_area);
    return may_lock_any() || (limit.soft && locking.bytes <= limit.soft);
}

/* Locking all memory would fill every reservation, and what is reserved would count as locked for good. So what the
 * program has mapped is locked area by area, and what is mapped later by the kernel; the runtime's is not. */
HW_EXPORTED(int, mlockall, (int flags))
{
    HW_REAL(int, mlockall, (int));
    static bool future;
    if (!hw_own_bytes() || (flags & ~(LOCK_CURRENT | LOCK_FUTURE | LOCK_ON_FAULT)) ||
        !(flags & (LOCK_CURRENT | LOCK_FUTURE)))
        return real(flags);
    if (hw_quiet)
        return real(flags | LOCK_ON_FAULT);
    if (hw_runtime.state == HW_STATE_ON && hw_fork_pending())
        hw_fork_child();
    bool on = hw_runtime.state == HW_STATE_ON;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool may = !(flags & LOCK_CURRENT) || may_lock_current();
    hw_lock_drop(&hw_runtime.lock, old);
    if (!may)
        return real(flags); /* which says why not */
    if (flags & LOCK_FUTURE) {
        if (on)
            hw_file_make_room(false);
        hw_own_unlocked = true;
        int result = real(flags & ~LOCK_CURRENT);
        if (result != 0)
            return result;
    } else if (future)
        hw_sys(SYS_munlockall); /* what is mapped later is no longer locked */
    future = flags & LOCK_FUTURE;
    if (flags & LOCK_CURRENT) {
        old = hw_lock_take(&hw_runtime.lock);
        locking.flags = flags & LOCK_ON_FAULT ? 1 : 0;
        hw_areas_each(lock_area);
        hw_lock_drop(&hw_runtime.lock, old);
    }
    if (on)
        hw_note(HW_NOTE_OTHER, "mlockall locked the program's memory, but not Heapwise's own: malloc and free may wait "
                               "for pages of that");
    return 0;
}

/* ---- programs that give up system calls ---- */

/* From now on the runtime makes none: a filter might kill the program for it. */
static void become_quiet(void)
{
    if (hw_runtime.state != HW_STATE_ON || hw_quiet)
        return;
    if (hw_fork_pending())
        hw_fork_child(); /* the last opportunity */
    if (hw_runtime.state != HW_STATE_ON)
        return;
    hw_trap_stop(HW_SAMPLE_SECCOMP);
    hw_dispatch_quiet();
    hw_word_sampler_stop();
    hw_windows_stop();
    hw_signals_quiet();
    hw_unwind_quiet();
    hw_clock_quiet();
    hw_file_make_room(true);
    hw_layout_make_room();
    hw_note(HW_NOTE_OTHER,
            "the program gave up system calls (seccomp): no timeline from then on, no room for more stacks "
            "than had been prepared, and no profiles of its children");
    if (hw_options.contents)
        hw_note(HW_NOTE_OTHER, "contents were not examined: the program gave up system calls (seccomp)");
    hw_runtime.timeline_next = hw_runtime.timeline_fall = hw_runtime.peak_read_above = ~0ull;
    hw_file_let_go();
    hw_launcher_let_go();
    hw_quiet = true;
}

HW_EXPORTED(int, prctl, (int option, ...))
{
    HW_REAL(int, prctl, (int, unsigned long, unsigned long, unsigned long, unsigned long));
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
                  d = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP && (a != SECCOMP_MODE_FILTER || b != 0 /* a question whether there are filters */))
        become_quiet();
    if ((option == PR_SET_SECCOMP && a == 1 /* strict: without the counter, too */) ||
        (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)) {
        hw_note(HW_NOTE_OTHER, "the program gave up the time stamp counter: no times from then on");
        hw_clock_freeze();
    }
    const int result = real(option, a, b, c, d);
    if (option == PR_SET_NAME && result == 0)
        hw_thread_named((const char *)a);
    return result;
}

/* libseccomp's way. */
HW_EXPORTED(long, syscall, (long number, ...))
{
    HW_REAL(long, syscall, (long, long, long, long, long, long, long));
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long),
         e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    hw_launcher_see_call(number, a);
    switch (number) {
    case SYS_prlimit64:
        return prlimit((int)a, (int)b, (const struct limit *)c, (struct limit *)d);
    case SYS_setrlimit:
        return setrlimit((int)a, (const struct limit *)b);
    case SYS_getrlimit:
        return getrlimit((int)a, (struct limit *)b);
    case SYS_mlockall:
        return mlockall((int)a);
    case SYS_seccomp: /* questions and trials aside */
        if (a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0))
            become_quiet();
        break;
    case SYS_exit_group:
        hw_process_end(HW_EXIT_CODE, (int)a & 0xff);
        break;
    }
    if (hw_unlikely(hw_in_operation()))
        return hw_dispatch_call(real, number, (const long[6]){a, b, c, d, e, f});
    if (number == SYS_munmap)
        hw_mapping_gone((uintptr_t)a, (size_t)b);
    const long result = real(number, a, b, c, d, e, f);
    if (number == SYS_mmap && result != -1)
        hw_mapping_made((uintptr_t)result, (size_t)b, FRAME);
    else if (number == SYS_mremap && result != -1)
        hw_mapping_moved((uintptr_t)a, (size_t)b, (uintptr_t)result, (size_t)c, d & MREMAP_DONTUNMAP, FRAME);
    return result;
}
