/* inside_names.c - see inside_names.h. */
#include "report/view/inside_names.h"

#include <inttypes.h>
#include <string.h>

#include "report/text/human.h"

const char *hw_system_call_name(enum hw_system_call call)
{
    static const char *const names[HW_SYSTEM_CALLS] = {
        [HW_CALL_OTHER] = "other",
        [HW_CALL_UNSEEN] = "unseen",
        [HW_CALL_MMAP] = "mmap",
        [HW_CALL_MUNMAP] = "munmap",
        [HW_CALL_MREMAP] = "mremap",
        [HW_CALL_BRK] = "brk",
        [HW_CALL_MADVISE] = "madvise",
        [HW_CALL_MPROTECT] = "mprotect",
        [HW_CALL_FUTEX_WAIT] = "futex wait",
        [HW_CALL_FUTEX_WAKE] = "futex wake",
        [HW_CALL_FUTEX_OTHER] = "futex",
        [HW_CALL_SCHED_YIELD] = "sched_yield",
        [HW_CALL_SLEEP] = "nanosleep",
        [HW_CALL_GETRANDOM] = "getrandom",
        [HW_CALL_OPEN] = "open",
        [HW_CALL_READ] = "read",
    };
    return (uint32_t)call < HW_SYSTEM_CALLS ? names[call] : "other";
}

const char *hw_lock_kind_name(uint32_t kind)
{
    static const char *const names[] = {"others", "mutex", "spinlock", "rwlock", "futex"};
    return kind < sizeof names / sizeof *names ? names[kind] : "others";
}

const char *hw_operation_event_name(enum hw_operation_event event)
{
    static const char *const names[HW_OPERATION_EVENTS] = {"instructions", "cache_misses", "dtlb_misses",
                                                           "page_faults",  "cpu_ns",       "context_switches"};
    return names[event];
}

void hw_lock_name(const struct hw_view *view, const struct hw_view_lock *lock, struct hw_buffer *out)
{
    if (lock->lock->kind == HW_LOCK_OTHERS) {
        hw_buffer_add(out, "all other locks");
        return;
    }
    if (lock->lock->locks) {
        hw_buffer_add(out, "%s in no module's data", HW_OF(lock->lock->locks, "lock"));
        return;
    }
    if (lock->module == HW_NONE) {
        hw_buffer_add(out, "0x%" PRIx64 ", in no module's data", lock->lock->address);
        return;
    }
    const char *module = basename(view->modules[lock->module].path);
    if (!lock->symbol) {
        hw_buffer_add(out, "%s+0x%" PRIx64, module, lock->lock->offset);
        return;
    }
    const uint64_t distance = lock->lock->offset - lock->symbol->address;
    hw_buffer_add(out, "%s", lock->symbol->name);
    if (distance)
        hw_buffer_add(out, "+0x%" PRIx64, distance);
    hw_buffer_add(out, " in %s", module);
}
