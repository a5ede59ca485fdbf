/* visitor.c - `heapwise leaks PID`: a process from outside sends one of the program's threads here (profile/visit.h),
 * while all threads are stopped.
 *
 * That thread makes a copy of the process, as fork does but without what belongs to fork, and goes back to where it
 * was; it waits for nobody outside. The copy searches its own memory, in which nothing changes any more, while the
 * program goes on. The two share one piece of memory: the visitor puts registers of all threads there, for which the
 * copy waits, and the copy its result.
 *
 * The program does not see the copy: it sends no signal when it ends, is not the program's child, so that no wait()
 * finds it, and closes all descriptors at once. The copy must not touch the profile, which is shared. */
#include "profile/visit.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/graph/internal.h"

#define PATIENCE_NS 10000000000ull /* of the copy, until the visitor has written the list of threads */
#define SHARING     (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED)

extern struct hw_visit hw_visit HW_HIDDEN; /* the machine's code and the visitor know it */
struct hw_visit hw_visit;
HW_HIDDEN void hw_visit_received(void);

static struct {
    int copy;      /* pid; 0: none */
    bool is_child; /* it has to be waited for */
    int maker;     /* the kernel clears it when that process has ended */
    long result;   /* of the maker */
    char first_stack[4096] __attribute__((aligned(64))), stack[32768] __attribute__((aligned(64)));
} made HW_LARGE;

static void set_stage(uint32_t stage)
{
    __atomic_store_n(&hw_visit.stage, stage, __ATOMIC_SEQ_CST);
}

/* ---- the copy ---- */

static void close_all(void)
{
    if (hw_sys(SYS_close_range, 0, ~0u, 0) >= 0)
        return;
    for (int fd = 0; fd < 65536; fd++)
        hw_close(fd);
}

/* If memory gets short, the kernel is to take the copy. */
static void offer_first(void)
{
    const int fd = hw_open("/proc/self/oom_score_adj", O_WRONLY, 0);
    if (fd >= 0) {
        hw_sys(SYS_write, fd, "1000", 4);
        hw_close(fd);
    }
}

/* When this process has ended, whatever ended it, the kernel says so in the room. */
static void announce(struct hw_visit_room *room)
{
    static struct robust_list entry;
    static struct robust_list_head head;
    head = (struct robust_list_head){.list = {&entry}, .futex_offset = (long)&room->owner - (long)&entry};
    entry.next = &head.list;
    __atomic_store_n(&room->owner, hw_gettid(), __ATOMIC_RELEASE);
    hw_sys(SYS_set_robust_list, &head, sizeof head);
}

/* False: the visitor is gone. */
static bool wait_until_filled(const struct hw_visit_room *room)
{
    const uint64_t begin = hw_clock_monotonic_ns(), moment[2] = {0, 100000};
    while (!__atomic_load_n(&room->filled, __ATOMIC_ACQUIRE)) {
        if (hw_clock_monotonic_ns() - begin > PATIENCE_NS)
            return false;
        hw_sys(SYS_nanosleep, moment, 0);
    }
    return true;
}

static void search(void)
{
    struct hw_visit_room *room = (struct hw_visit_room *)hw_visit.room;
    hw_runtime.lock = (struct hw_lock){0}; /* who held it is not here */
    announce(room);
    close_all();
    offer_first();
    hw_own_range(room, hw_visit.room_bytes);
    if (wait_until_filled(room)) {
        const struct hw_stopped_threads threads = {.thread = room->thread,
                                                   .count = (uint32_t)hw_visit.thread_count,
                                                   .missed = (uint32_t)room->threads_missed,
                                                   .error = (int)room->missed_error};
        hw_leaks_find_in_copy(&threads, room, hw_visit.mapped, hw_visit.keeps);
        __atomic_store_n(&room->done, 1, __ATOMIC_RELEASE);
    }
    hw_sys(SYS_exit_group, 0);
}

/* ---- how it is made ---- */

static long make_copy(void)
{
    const long result = hw_sys(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
    if (result == 0)
        search();
    return result;
}

static void be_maker(void)
{
    made.result = make_copy();
}

static void make_maker(void)
{
    const long maker = hw_arch_clone(SHARING | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
                                     made.stack + sizeof made.stack, &made.maker, &made.maker, 0, be_maker);
    if (hw_sys_failed(maker))
        made.result = maker;
}

/* Where orphans come to this process its own child is less of a surprise: that sends no signal. */
static bool adopts_orphans(void)
{
    int adopts = 0;
    return hw_getpid() == 1 || hw_sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &adopts) < 0 || adopts;
}

/* A child makes a child, which makes the copy. The two share this process's memory, so that they cost next to nothing,
 * and the first one is collected here, while no other thread runs that could do so. */
static long make_orphan(void)
{
    const uint64_t moment[2] = {0, 100000000};
    made.result = -EAGAIN;
    made.maker = 0;
    const long first = hw_arch_clone(SHARING, made.first_stack + sizeof made.first_stack, NULL, NULL, 0, make_maker);
    if (hw_sys_failed(first))
        return first;
    while (hw_sys(SYS_wait4, first, 0, __WALL, 0) == -EINTR)
        ;
    for (int maker; (maker = __atomic_load_n(&made.maker, __ATOMIC_SEQ_CST));)
        hw_sys(SYS_futex, &made.maker, FUTEX_WAIT, maker, moment);
    return made.result;
}

static long make(void)
{
    long result = -EAGAIN;
    if (!adopts_orphans())
        result = make_orphan();
    made.is_child = result == -EAGAIN; /* or there is no place for two more processes */
    if (made.is_child)
        result = make_copy();
    made.copy = result > 0 ? (int)result : 0;
    return result;
}

/* ---- the thread that was sent here ---- */

static bool has_ended(void)
{
    const struct hw_visit_room *room = (struct hw_visit_room *)hw_visit.room;
    const uint32_t owner = __atomic_load_n(&room->owner, __ATOMIC_ACQUIRE);
    if (made.is_child)
        return hw_sys(SYS_wait4, made.copy, 0, WNOHANG | __WALL, 0) != 0;
    return owner ? owner & FUTEX_OWNER_DIED : hw_sys(SYS_kill, made.copy, 0) == -ESRCH;
}

/* Of the visit before. False: it still runs. */
static bool clean(void)
{
    if (made.copy && !has_ended())
        return false;
    made.copy = 0;
    if (hw_visit.room)
        hw_munmap(hw_visit.room, hw_visit.room_bytes);
    hw_visit.room = 0;
    return true;
}

static int make_room(void)
{
    const uint64_t leaks = sizeof(struct hw_visit_room) + hw_visit.thread_count * sizeof(struct hw_stopped_thread);
    const uint64_t most = HW_ENTRIES(HW_POOL_CONTEXTS) * HW_LEAK_CLASSES;
    const uint64_t keeps = HW_ALIGN_UP(leaks + most * sizeof(struct hw_leak), sizeof(uint64_t));
    const uint64_t keeps_most = hw_visit.keeps ? hw_keeps_room() : 0, bytes = HW_ALIGN_UP(keeps + keeps_most, HW_PAGE);
    const long result = hw_mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hw_sys_failed(result))
        return (int)result;
    struct hw_visit_room *room = (struct hw_visit_room *)result;
    room->leaks = leaks;
    room->leaks_most = most;
    room->keeps = keeps;
    room->keeps_most = keeps_most;
    hw_visit.room = (uint64_t)result;
    hw_visit.room_bytes = bytes;
    return 0;
}

static int serve(void)
{
    if (hw_runtime.state != HW_STATE_ON || hw_fork_pending() || hw_getpid() != hw_runtime.pid)
        return HW_VISIT_OFF;
    if (hw_visit.what == HW_VISIT_MEASURE) {
        hw_memory_take_stopped();
        return 0;
    }
    if (!clean())
        return HW_VISIT_RUNNING;
    if (hw_visit.what != HW_VISIT_SEARCH)
        return 0;
    if (!hw_visit.insist && ((hw_runtime.stopped & HW_STOPPED_WAIT) || hw_runtime.lock.state || !hw_threads_calm()))
        return HW_VISIT_BUSY;
    const bool calm = hw_threads_calm();
    hw_program_mappings_settle();
    const int error = make_room();
    if (error) {
        clean();
        return error;
    }
    ((struct hw_visit_room *)hw_visit.room)->info.calm = calm; /* the copy has no states of threads */
    const long result = make();
    if (!made.copy)
        clean();
    return (int)result;
}

void hw_visit_received(void)
{
    if (hw_quiet)
        hw_visit.result = HW_VISIT_QUIET;
    else {
        const hw_sigset old = hw_signals_block();
        hw_visit.result = serve();
        hw_signals_restore(old);
    }
    set_stage(HW_VISIT_DONE);
}

/* ---- moments ---- */

void hw_visit_start(void)
{
    hw_visit.version = HW_VISIT_VERSION;
    hw_visit.measured = (uint64_t)&hw_memory_dumps;
    hw_visit.enter = (uint64_t)hw_arch_visit_enter;
    hw_visit.enter_end = (uint64_t)hw_arch_visit_end;
    hw_visit.stack = (uint64_t)hw_arch_visit_stack;
    hw_visit.stack_end = hw_visit.stack + HW_ARCH_VISIT_STACK;
    hw_visit.records_keeps = hw_options.keeps != 0;
    hw_visit.records_examined = hw_options.contents || hw_options.pinned;
    hw_visit.records_mapped = hw_options.leaks == 2;
    hw_runtime.process->visit = (uint64_t)&hw_visit;
}

/* The copy is the parent's child. */
void hw_visit_fork(void)
{
    made.copy = 0;
    if (hw_visit.room)
        hw_munmap(hw_visit.room, hw_visit.room_bytes);
    hw_visit = (struct hw_visit){0};
}
