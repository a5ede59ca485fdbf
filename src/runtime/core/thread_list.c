/* thread_list.c - see thread_list.h.
 *
 * An entry is written by its thread, but for two things: names are set by anybody, and the last line is changed by
 * those who free the thread's blocks, with atomic instructions. A slot (a state of threads.c, with its MIBs) is used by
 * one thread after the other, if it can be of the same start function; a block remembers the slot (homes.c), and its
 * stamp says which of the slot's threads it was.
 *
 * A name is asked for at a thread's first event, at its end, and before a profile is written; in between, changes are
 * seen by the hooks of prctl and pthread_setname_np. */
#include "runtime/core/thread_list.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"

#include <fcntl.h>
#include <linux/prctl.h>

#define KEPT_MOST 1000u /* ended threads with an entry of their own, whatever their names */
#define SUMS_MOST 2000u /* …and sums of threads of one name: from here on only start functions are distinguished */

__thread struct hw_thread_origin hw_self_origin;

static struct {
    uint32_t ended;     /* entries of threads that have ended */
    uint32_t free_list; /* entries that are not in use: previous leads on; HW_NONE: none */
    bool several;       /* more than one thread has been seen */
    uint32_t inherited; /* entry of what the process has inherited, HW_NONE: none */
} list = {.free_list = HW_NONE, .inherited = HW_NONE};

/* Of a state that no thread has: what is counted there by one that has ended goes nowhere. */
static struct hw_thread_entry no_entry;

static struct hw_thread_detail *detail_at(uint32_t entry)
{
    return HW_ENTRY(HW_POOL_THREAD_LIST, struct hw_thread_detail, entry);
}

static struct hw_thread_entry *entry_at(uint32_t entry)
{
    return HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, entry);
}

static uint32_t index_of(const struct hw_thread_detail *detail)
{
    return (uint32_t)(detail - detail_at(0));
}

void hw_thread_list_fork(void)
{
    list.ended = 0;
    list.several = false;
    list.free_list = list.inherited = HW_NONE;
    hw_self_origin.starter = hw_self_origin.context = 0; /* of another process */
}

/* ---- entries ---- */

uint32_t hw_thread_entry_take(void)
{
    uint32_t entry = list.free_list;
    if (entry != HW_NONE) {
        list.free_list = detail_at(entry)->previous;
    } else {
        entry = hw_pool_take(HW_POOL_THREAD_LIST, 1);
        if (entry == HW_NONE)
            return HW_NONE;
        if (hw_pool_take(HW_POOL_THREADS, 1) != entry) { /* no room, now and later */
            detail_at(entry)->previous = HW_NONE;
            return HW_NONE;
        }
    }
    *detail_at(entry) = (struct hw_thread_detail){.map = HW_NONE, .slot = HW_NONE, .previous = HW_NONE};
    return entry;
}

static void publish(void)
{
    hw_pool_publish(HW_POOL_THREAD_LIST);
    hw_pool_publish(HW_POOL_THREADS);
}

void hw_thread_list_inherited(uint32_t entry)
{
    if (entry == HW_NONE)
        return;
    detail_at(entry)->flags = HW_THREAD_INHERITED;
    detail_at(entry)->threads = 1;
    list.inherited = entry;
    publish();
}

/* ---- names ---- */

static void own_name(struct hw_thread_detail *detail)
{
    char name[HW_THREAD_NAME] = {0};
    if (!hw_quiet && hw_sys(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) >= 0)
        __builtin_memcpy(detail->name, name, sizeof name);
}

/* Of any thread of the process. */
static void read_name(struct hw_thread *thread)
{
    char path[48], name[HW_THREAD_NAME + 1] = {0};
    struct hw_text text;
    if (!thread->detail || thread->detail->flags & HW_THREAD_HANDLERS)
        return;
    hw_text_init(&text, path, sizeof path);
    hw_text_string(&text, "/proc/self/task/");
    hw_text_u64(&text, thread->tid);
    hw_text_string(&text, "/comm");
    const int fd = hw_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    const long got = hw_sys(SYS_read, fd, name, sizeof name);
    hw_close(fd);
    if (got < 1 || got > HW_THREAD_NAME)
        return;
    name[got - 1] = 0; /* the line's end */
    __builtin_memcpy(thread->detail->name, name, HW_THREAD_NAME);
}

void hw_thread_list_names(void)
{
    if (!hw_quiet)
        hw_threads_each(read_name);
}

/* The name of the calling thread, or of the one with number TID, was set. */
static void name_was_set(uint32_t tid, const char *name)
{
    struct hw_thread *self = hw_self;
    if (hw_runtime.state != HW_STATE_ON || hw_fork_pending() || !name)
        return;
    if (!tid && !self)
        return; /* it has had no event, and is asked at the first one */
    if (tid) {
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        self = hw_threads_find(tid);
        hw_lock_drop(&hw_runtime.lock, old);
    }
    if (!self || !self->detail || self->detail->flags & HW_THREAD_HANDLERS)
        return;
    char copy[HW_THREAD_NAME] = {0};
    for (int i = 0; i < HW_THREAD_NAME - 1 && name[i]; i++)
        copy[i] = name[i];
    __builtin_memcpy(self->detail->name, copy, sizeof copy);
}

void hw_thread_named(const char *name)
{
    name_was_set(0, name);
}

HW_EXPORTED(int, pthread_setname_np, (unsigned long thread, const char *name))
{
    HW_REAL(int, pthread_setname_np, (unsigned long, const char *));
    const int error = real(thread, name);
    const uint32_t tid = error ? 0 : hw_threads_tid(thread);
    if (tid)
        name_was_set(tid, name);
    return error;
}

/* ---- the beginning and the end of a thread ---- */

bool hw_thread_list_begin(struct hw_thread *thread, bool temporary)
{
    uint32_t entry = temporary ? thread->spare : HW_NONE;
    if (entry == HW_NONE)
        entry = hw_thread_entry_take();
    if (entry == HW_NONE)
        return false;
    struct hw_thread_detail *detail = detail_at(entry);
    thread->detail = detail;
    thread->entry = entry_at(entry);
    thread->peak_epoch = detail->peak_epoch;
    if (temporary) {
        thread->spare = entry;
        thread->born = hw_runtime.old_below; /* its slot's blocks are its own, whoever it was borrowed by */
        detail->flags = HW_THREAD_HANDLERS;
        detail->threads = 1;
        detail->slot = HW_NONE;
        publish();
        return true;
    }
    /* Blocks may remember their birth less precisely than this. */
    thread->born = (hw_ticks_raw() - hw_runtime.family_base) & ~((1ull << HW_STAMP_COARSE_SHIFT) - 1);
    const uint64_t before = hw_runtime.tick_base - hw_runtime.family_base;
    detail->start_tick = thread->born > before ? thread->born - before : 0;
    if (thread->born < hw_runtime.old_below)
        thread->born = hw_runtime.old_below;
    detail->serial = thread->serial;
    detail->slot = thread->slot;
    detail->previous = thread->last_entry;
    detail->flags = thread->tid == hw_runtime.pid ? HW_THREAD_MAIN : 0;
    if (thread->last_entry != HW_NONE || thread->sum || thread->spare != HW_NONE)
        detail->flags |= HW_THREAD_NEXT;
    detail->threads = 1;
    thread->last_entry = entry;
    detail->starter = hw_self_origin.starter;
    detail->context = hw_self_origin.context;
    thread->routine = hw_self_origin.routine;
    own_name(detail);
    publish();
    return true;
}

static bool same_name(const struct hw_thread_detail *a, const struct hw_thread_detail *b)
{
    uint64_t left[2], right[2];
    __builtin_memcpy(left, a->name, sizeof left);
    __builtin_memcpy(right, b->name, sizeof right);
    return left[0] == right[0] && left[1] == right[1];
}

/* The entry of threads that have ended which those of DETAIL belong to; NULL: they are the first ones. Start functions
 * of both are known, or of none. */
static struct hw_thread_detail *find_sum(const struct hw_thread_detail *detail, bool any_name)
{
    const uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_THREAD_LIST);
    for (uint32_t i = 0; i < count; i++) {
        struct hw_thread_detail *other = detail_at(i);
        if (other != detail && other->threads && other->end_tick && other->map == detail->map &&
            other->routine == detail->routine && !((other->flags ^ detail->flags) & HW_THREAD_MAIN) &&
            (any_name || same_name(other, detail)))
            return other;
    }
    return NULL;
}

static struct hw_thread_detail *sum_of(struct hw_thread *thread, struct hw_thread_detail *detail)
{
    struct hw_thread_detail *sum = thread->sum;
    if (sum && sum->threads && sum->map == detail->map && sum->routine == detail->routine && same_name(sum, detail))
        return sum;
    sum = find_sum(detail, false);
    if (!sum && (list.ended >= SUMS_MOST || hw_quiet))
        sum = find_sum(detail, true);
    return sum;
}

/* What of the thread's live bytes are its own blocks', but for what others do to them. */
static int64_t own_live(const struct hw_thread_detail *detail, const struct hw_thread_entry *entry)
{
    return entry->live_bytes + (int64_t)detail->freed_of_others_bytes - detail->resized_of_others;
}

/* The bytes that others took from its blocks; they may have added more. */
static uint64_t others_took(const struct hw_thread_detail *detail)
{
    return detail->freed_by_others_bytes - (uint64_t)detail->resized_by_others;
}

static int64_t own_peak(const struct hw_thread_detail *detail, const struct hw_thread_entry *entry, uint64_t epoch)
{
    return detail->peak_epoch == epoch ? detail->peak_bytes : own_live(detail, entry);
}

static uint64_t others_peak(const struct hw_thread_detail *detail, uint64_t epoch)
{
    return detail->others_epoch == epoch ? detail->others_peak_bytes : others_took(detail);
}

/* Adds FROM, of a thread that has ended, to TO, and leaves it empty. What another thread is just adding to it may get
 * lost, or count for the next thread there. */
static void add_up(struct hw_thread_detail *to, struct hw_thread_detail *from)
{
    struct hw_thread_entry *sum = entry_at(index_of(to)), *entry = entry_at(index_of(from));
    const struct hw_thread_entry copy = *entry;
    const struct hw_thread_detail detail = *from;
    const uint64_t epoch = hw_runtime.process->peak_epoch;
    const int64_t peak = own_peak(to, sum, epoch) + own_peak(from, entry, epoch);
    const uint64_t others = others_peak(to, epoch) + others_peak(from, epoch);
    *entry = (struct hw_thread_entry){0}; /* first: a kill between the two loses it instead of counting it twice */
    *from = (struct hw_thread_detail){.map = HW_NONE, .slot = HW_NONE, .previous = HW_NONE};
    sum->allocations += copy.allocations;
    sum->frees += copy.frees;
    sum->reallocations += copy.reallocations;
    sum->temporary += copy.temporary;
    sum->bytes += copy.bytes;
    sum->live_bytes += copy.live_bytes;
    sum->live_blocks += copy.live_blocks;
    sum->foreign_frees += copy.foreign_frees;
    sum->foreign_reallocs += copy.foreign_reallocs;
    sum->failed += copy.failed;
    sum->nested += copy.nested;
    sum->walks += copy.walks;
    sum->verified += copy.verified;
    sum->incomplete_walks += copy.incomplete_walks;
    sum->lost += copy.lost;
    to->flags |= detail.flags & (HW_THREAD_NAMES | HW_THREAD_ROUTINES | HW_THREAD_NEXT);
    if (!same_name(to, &detail))
        to->flags |= HW_THREAD_NAMES;
    to->threads += detail.threads;
    to->start_tick = detail.start_tick < to->start_tick ? detail.start_tick : to->start_tick;
    to->end_tick = detail.end_tick > to->end_tick ? detail.end_tick : to->end_tick;
    to->slot = to->slot == detail.slot ? to->slot : HW_NONE;
    to->starter = to->starter == detail.starter ? to->starter : 0;
    to->context = to->context == detail.context ? to->context : 0;
    to->freed_of_others += detail.freed_of_others;
    to->freed_of_others_bytes += detail.freed_of_others_bytes;
    to->resized_of_others += detail.resized_of_others;
    to->owner_unknown += detail.owner_unknown;
    to->peak_epoch = to->others_epoch = epoch;
    to->peak_bytes = peak;
    to->others_peak_bytes = others;
    __atomic_fetch_add(&to->freed_by_others, detail.freed_by_others, __ATOMIC_RELAXED);
    __atomic_fetch_add(&to->freed_by_others_bytes, detail.freed_by_others_bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&to->resized_by_others, detail.resized_by_others, __ATOMIC_RELAXED);
}

/* The routine as readers know it. Not while the lock is held by a thread that reads what is mapped. */
void hw_thread_list_routine(struct hw_thread *thread)
{
    const struct hw_module *module = thread->routine ? hw_module_find(thread->routine) : NULL;
    if (!module)
        return;
    thread->detail->map = module->map;
    thread->detail->routine = thread->routine - module->bias;
    thread->detail->flags |= HW_THREAD_ROUTINE;
}

void hw_thread_list_end(struct hw_thread *thread, bool here)
{
    struct hw_thread_detail *detail = thread->detail;
    if (here)
        own_name(detail);
    const uint64_t now = hw_ticks_raw() - hw_runtime.tick_base;
    detail->end_tick = now ? now : 1;
    thread->entry->serial = 0;
    thread->entry = &no_entry;
    thread->detail = NULL;
    struct hw_thread_detail *sum = list.ended >= KEPT_MOST || hw_quiet ? sum_of(thread, detail) : NULL;
    if (!sum) {
        list.ended++;
        return;
    }
    const uint32_t entry = index_of(detail);
    thread->last_entry = detail->previous;
    thread->sum = sum;
    add_up(sum, detail);
    detail->previous = list.free_list;
    list.free_list = entry;
}

/* ---- what is live, and whose it was ---- */

void hw_thread_take_peak(struct hw_thread *thread, uint64_t epoch)
{
    struct hw_thread_detail *detail = thread->detail;
    if (thread->peak_epoch == epoch)
        return;
    detail->peak_bytes = own_live(detail, thread->entry);
    thread->peak_epoch = detail->peak_epoch = epoch;
}

static void know_peak(struct hw_thread *thread)
{
    thread->peak_epoch = thread->detail->peak_epoch;
}

void hw_thread_list_several(const struct hw_thread *thread)
{
    const struct hw_process_info *process = hw_runtime.process;
    if (list.several)
        return;
    list.several = true;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREAD_LIST); i++) {
        struct hw_thread_detail *detail = detail_at(i);
        if (detail == thread->detail || !detail->threads || detail->flags & HW_THREAD_INHERITED)
            continue;
        detail->peak_bytes = (int64_t)process->peak_bytes;
        detail->peak_epoch = process->peak_epoch;
    }
    hw_threads_each(know_peak);
}

/* The thread that had SLOT when the block was allocated. Entries of threads that have ended may be added up meanwhile:
 * then it may be a wrong one. */
static struct hw_thread_detail *owner_of(const struct hw_block *block)
{
    const uint64_t before = hw_runtime.tick_base - hw_runtime.family_base;
    if (block->stamp < before)
        return list.inherited != HW_NONE ? detail_at(list.inherited) : NULL;
    const struct hw_thread *state = hw_threads_of_slot(block->owner);
    if (!state)
        return NULL;
    const uint64_t tick = block->stamp - before;
    uint32_t entry = __atomic_load_n(&state->last_entry, __ATOMIC_ACQUIRE);
    for (uint32_t steps = 0; entry != HW_NONE && steps < 2 * SUMS_MOST; steps++) {
        struct hw_thread_detail *detail = detail_at(entry);
        const uint64_t end = detail->end_tick;
        if (detail->start_tick <= tick && (!end || tick <= end) && detail->slot == block->owner)
            return detail;
        entry = detail->previous;
    }
    if (state->sum)
        return state->sum;
    return state->spare != HW_NONE ? detail_at(state->spare) : NULL; /* its blocks were never a thread's */
}

/* THREAD is about to change bytes of OWNER's blocks: the peak keeps those of before. */
static void keep_peak(struct hw_thread *thread, struct hw_thread_detail *owner)
{
    const uint64_t epoch = hw_runtime.process->peak_epoch;
    hw_thread_take_peak(thread, epoch);
    uint64_t old = __atomic_load_n(&owner->others_epoch, __ATOMIC_ACQUIRE);
    const uint64_t so_far = others_took(owner);
    if (old != epoch && __atomic_compare_exchange_n(&owner->others_epoch, &old, epoch, false, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED)) /* one of those who come here */
        owner->others_peak_bytes = so_far;
}

bool hw_thread_freed_others(struct hw_thread *thread, const struct hw_block *block, uint64_t blocks, uint64_t bytes)
{
    struct hw_thread_detail *own = thread->detail, *owner = owner_of(block);
    if (!owner) {
        own->owner_unknown += blocks;
        return false;
    }
    if (owner == own)
        return false;
    keep_peak(thread, owner);
    own->freed_of_others += blocks;
    own->freed_of_others_bytes += bytes;
    __atomic_fetch_add(&owner->freed_by_others, blocks, __ATOMIC_RELAXED);
    __atomic_fetch_add(&owner->freed_by_others_bytes, bytes, __ATOMIC_RELAXED);
    return true;
}

bool hw_thread_resized_others(struct hw_thread *thread, const struct hw_block *block, int64_t growth)
{
    struct hw_thread_detail *own = thread->detail, *owner = owner_of(block);
    if (!owner || owner == own)
        return false;
    keep_peak(thread, owner);
    own->resized_of_others += growth;
    __atomic_fetch_add(&owner->resized_by_others, growth, __ATOMIC_RELAXED);
    return true;
}

void hw_thread_list_forget_live(void)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREAD_LIST); i++) {
        struct hw_thread_detail *detail = detail_at(i);
        struct hw_thread_entry *entry = entry_at(i);
        entry->live_bytes = entry->live_blocks = 0;
        detail->freed_of_others = detail->freed_of_others_bytes = 0;
        detail->freed_by_others = detail->freed_by_others_bytes = 0;
        detail->resized_of_others = detail->resized_by_others = 0;
    }
}

void hw_thread_list_reset(uint64_t epoch)
{
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREAD_LIST); i++) {
        struct hw_thread_detail *detail = detail_at(i);
        struct hw_thread_entry *entry = entry_at(i);
        entry->live_bytes = own_live(detail, entry) - (int64_t)others_took(detail);
        entry->live_blocks += (int64_t)(detail->freed_of_others - detail->freed_by_others);
        detail->freed_of_others = detail->freed_of_others_bytes = detail->owner_unknown = 0;
        detail->freed_by_others = detail->freed_by_others_bytes = detail->others_peak_bytes = 0;
        detail->resized_of_others = detail->resized_by_others = 0;
        detail->peak_bytes = entry->live_bytes;
        detail->peak_epoch = detail->others_epoch = epoch;
    }
}
