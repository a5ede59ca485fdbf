/* place_threads.c - places: what each thread counts, greatest numbers and the peak; threads, start and fork.
 *
 * A thread counts by itself. With one thread a maximum is stored when the number falls from it; with several each
 * thread adds its changes to the totals when they exceed a small part of them. Threads are set up under the runtime's
 * lock. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/hooks/hooks.h"

#define PLACES_HINT  0x0a0000000000ul /* below where programs, heaps and libraries lie, and the map of blocks.c */
#define REGIONS      (1ul << (HW_ARCH_ADDRESS_BITS - HW_PLACE_REGION_SHIFT))
#define AREAS        (1ul << (HW_ARCH_ADDRESS_BITS - HW_PLACE_AREA_SHIFT))
#define LINES        (1ul << (HW_ARCH_ADDRESS_BITS - 6))
#define BIG_MOST     HW_PLACE_BIG_MOST
#define THREADS_MOST (1u << 20)
#define OUT_OF_REACH (1ll << 62)
#define OWNER_LAST   (HW_PLACE_MIXED - 1)
/* After so many additions to the totals a thread adds half as often, and so on: all threads write one number. By then a
 * small heap that does not change has had its peak. */
#define TOLD_EXACTLY 16384u
#define LEAST_MOST   (32 << 10)
#define CLOCK_PART   8192 /* of the peak: when so much has come upon it the clock is read again, which takes long */
#define LEFT_PART    64   /* of the peak: with several threads it is left when so much less is live */

struct hw_places hw_places;
struct hw_place_form hw_place_forms[HW_PLACE_MID_UNITS + 1];

static struct {
    struct hw_place_thread *free;
    uint32_t owners; /* that were given out */
} threads HW_LARGE;
/* The calling thread's number on lines, plus one; 0: none yet. Stays over fork. */
static __thread uint32_t own_owner __attribute__((tls_model("initial-exec")));

/* ---- greatest numbers, and the peak ---- */

void hw_places_note_peak(int64_t live)
{
    struct hw_process_info *process = hw_runtime.process;
    if (live <= __atomic_load_n(&hw_places.peak_limit, __ATOMIC_RELAXED))
        return;
    hw_places.peak = live;
    if (live < hw_places.peak_clocked || live - hw_places.peak_clocked > live / CLOCK_PART) {
        hw_places.peak_clocked = live;
        hw_places.peak_tick = hw_ticks_raw() - hw_runtime.tick_base;
    }
    hw_places.peak_limit = hw_places.many ? live + live / 1024 : live;
    if (hw_places.many && live > hw_places_look_above)
        hw_places.left_below = live - live / LEFT_PART;
    process->peak_bytes = (uint64_t)live;
    process->peak_tick = hw_places.peak_tick;
    if (hw_places.many)
        hw_places.epoch = __atomic_add_fetch(&process->peak_epoch, 1, __ATOMIC_RELAXED);
    else
        hw_places.epoch = ++process->peak_epoch;
}

/* Limits of a class of a thread that is alone; or such that its next event settles. */
static void limit_class(struct hw_place_class_counts *class, bool alone, int64_t most)
{
    class->high = alone ? INT64_MAX : INT64_MIN;
    class->low = alone ? -OUT_OF_REACH : INT64_MAX;
    class->span = (uint64_t)(OUT_OF_REACH + most);
}

void hw_place_keep_now(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    const int64_t most = hw_places.totals[class - self->classes].most;
    if (!class->epoch) {
        const uint32_t c = (uint32_t)(class - self->classes);
        hw_arch_set_bits(&self->touched[c / 64], 1ul << c % 64);
        limit_class(class, !hw_places.many, most);
    }
    class->peak = class->now;
    class->peak_most = !hw_places.many && class->now.live > most ? class->now.live : most;
    class->epoch = hw_places.epoch;
}

static void flush(struct hw_place_thread *self)
{
    int64_t delta = self->requested - self->flushed;
    self->flushed += delta;
    int64_t all = __atomic_add_fetch(&hw_places.requested, delta, __ATOMIC_RELAXED);
    hw_places_note_peak(all);
    int64_t step = hw_places.peak / 256 / (hw_places.threads_used + 1), least = 512;
    for (uint32_t told = ++self->told; told >= TOLD_EXACTLY && least < LEAST_MOST; told -= TOLD_EXACTLY)
        least *= 2;
    step = step < least ? least : step;
    self->high = self->requested + step;
    self->low = self->requested - step;
    self->span = (uint64_t)OUT_OF_REACH;
    if (hw_unlikely(all < hw_places.left_below))
        hw_places_leave_peak();
}

static void flush_class(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    struct hw_place_total *total = &hw_places.totals[class - self->classes];
    int64_t delta = class->now.live - class->flushed;
    class->flushed += delta;
    int64_t live = __atomic_add_fetch(&total->live, delta, __ATOMIC_RELAXED);
    int64_t most = __atomic_load_n(&total->most, __ATOMIC_RELAXED);
    while (live > most &&
           !__atomic_compare_exchange_n(&total->most, &most, live, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    int64_t step = most / 256 / (hw_places.threads_used + 1);
    step = step < 8 ? 8 : step;
    class->high = class->now.live + step;
    class->low = class->now.live - step;
    class->span = (uint64_t)OUT_OF_REACH;
}

/* With one thread the maximum is exact. With several, a thread adds its changes when they exceed a small part of the
 * maximum. */
void hw_place_settle(struct hw_place_thread *self, struct hw_place_class_counts *class)
{
    if (hw_places.many) {
        if (class->now.live > class->high || (uint64_t)(class->now.live - class->low) > class->span)
            flush_class(self, class);
        if (self->requested > self->high || (uint64_t)(self->requested - self->low) > self->span)
            flush(self);
        return;
    }
    struct hw_place_total *total = &hw_places.totals[class - self->classes];
    if (class->now.live > total->most)
        total->most = class->now.live;
    class->span = (uint64_t)(OUT_OF_REACH + total->most);
    hw_places_note_peak(self->requested);
    self->span = (uint64_t)(OUT_OF_REACH + hw_places.peak_limit);
    if (hw_unlikely(self->requested > hw_places_look_above))
        hw_places_leave_peak();
}

/* ---- threads ---- */

static uint16_t take_owner(void)
{
    if (!own_owner)
        own_owner = ++threads.owners;
    uint32_t number = own_owner - 1;
    if (number <= OWNER_LAST)
        return (uint16_t)number;
    hw_places.owners_wrapped = 1;
    return (uint16_t)(1 + (number - 1) % OWNER_LAST);
}

/* The same of a thread, but for its classes. */
static void limit_thread(struct hw_place_thread *thread, bool alone)
{
    thread->told = 0;
    thread->high = alone ? INT64_MAX : INT64_MIN;
    thread->low = alone ? -OUT_OF_REACH : INT64_MAX;
    thread->span = (uint64_t)(OUT_OF_REACH + hw_places.peak_limit);
}

/* With its classes; those that it has not touched get theirs with the first event. */
static void set_limits(struct hw_place_thread *thread, bool alone)
{
    for (uint32_t i = 0; i < HW_PLACE_CLASSES; i++)
        if (hw_place_touched(thread, i))
            limit_class(&thread->classes[i], alone, hw_places.totals[i].most);
    limit_thread(thread, alone);
}

/* There is a second thread: the first one has not added its numbers so far. Lock held. */
static void become_many(void)
{
    hw_places.many = 1;
    for (uint32_t i = 0; i < hw_places.threads_used; i++) {
        struct hw_place_thread *thread = hw_places.threads[i];
        for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
            if (!hw_place_touched(thread, c))
                continue;
            struct hw_place_class_counts *class = &thread->classes[c];
            int64_t live = class->now.live;
            hw_places.totals[c].live += live - class->flushed;
            class->flushed = live;
            if (hw_places.totals[c].live > hw_places.totals[c].most)
                hw_places.totals[c].most = hw_places.totals[c].live;
        }
        int64_t requested = thread->requested;
        hw_places.requested += requested - thread->flushed;
        thread->flushed = requested;
        set_limits(thread, false);
    }
}

static struct hw_place_thread *new_thread(void)
{
    if (hw_places.threads_used >= THREADS_MOST)
        return NULL;
    struct hw_place_thread *thread = hw_own_pages(sizeof *thread, false);
    if (!thread)
        return NULL;
    thread->index = hw_places.threads_used;
    limit_thread(thread, !hw_places.many); /* pages of its classes stay untouched */
    hw_places.threads[hw_places.threads_used] = thread;
    __atomic_store_n(&hw_places.threads_used, hw_places.threads_used + 1, __ATOMIC_RELEASE);
    return thread;
}

void hw_places_attach(struct hw_operator *op)
{
    op->places = NULL;
    if (!hw_places.even)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const uint16_t owner = take_owner();
    if ((owner || threads.owners > 1) && !hw_places.many)
        become_many();
    struct hw_place_thread *thread = threads.free;
    if (thread)
        threads.free = thread->next_free;
    else
        thread = new_thread();
    if (thread) {
        thread->owner = owner;
        thread->in_use = 1;
        thread->op = op;
        thread->shared = 0;
        thread->in_line = 0;
        op->places = thread;
    }
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_places_detach(struct hw_operator *op)
{
    struct hw_place_thread *thread = op->places;
    if (!thread)
        return;
    op->places = NULL;
    thread->in_use = 0;
    thread->next_free = threads.free;
    threads.free = thread;
}

/* ---- start, fork ---- */

static void make_forms(void)
{
    const uint32_t sizes = HW_PLACE_BODY | 15;
    hw_place_forms[0].listed = 1; /* and no bit of the mask is set */
    for (uint32_t units = 1; units <= HW_PLACE_MID_UNITS; units++)
        hw_place_forms[units] = units <= HW_PLACE_SHORT_UNITS
                                    ? (struct hw_place_form){.mask = 0xff, .listed = HW_PLACE_BEGUN | units}
                                    : (struct hw_place_form){.mask = 0xff | sizes << 8 | sizes << 16,
                                                             .listed = HW_PLACE_BEGUN | HW_PLACE_FREE_MID |
                                                                       (HW_PLACE_BODY | (units & 15)) << 8 |
                                                                       (HW_PLACE_BODY | units >> 4) << 16,
                                                             .flip = UINT32_MAX,
                                                             .base = units * 8 + HW_PLACE_SLACK + 1};
}

static bool reserve(void)
{
    const uint64_t planes = 2 * HW_PLACE_PLANE_BYTES, owners = LINES * sizeof(uint16_t);
    const uint64_t regions = REGIONS * sizeof(struct hw_place_region), bigs = BIG_MOST * sizeof(struct hw_place_big);
    const uint64_t areas = AREAS * sizeof(struct hw_place_area);
    const uint64_t mixed = HW_PLACE_MIXED_MOST * sizeof(struct hw_place_owners);
    const uint64_t list = THREADS_MOST * sizeof(struct hw_place_thread *);
    const uint64_t units = HW_PLACE_BIG_BYTES * sizeof(uint16_t);
    const uint64_t totals = HW_ALIGN_UP(HW_PLACE_CLASSES * sizeof(struct hw_place_total), HW_PAGE);
    const uint64_t all = planes + owners + regions + areas + bigs + mixed + list + units + totals;
    char *const result = hw_own_reserve(PLACES_HINT, all);
    if (!result)
        return false;
    char *next = result;
    hw_places.owners = (uint16_t *)(next += planes);
    hw_places.regions = (struct hw_place_region *)(next += owners);
    hw_places.areas = (struct hw_place_area *)(next += regions);
    hw_places.bigs = (struct hw_place_big *)(next += areas);
    hw_places.mixed = (struct hw_place_owners *)(next += bigs);
    hw_places.threads = (struct hw_place_thread **)(next += mixed);
    hw_places.units = (uint16_t *)(next += list);
    hw_places.totals = (struct hw_place_total *)(next += units);
    hw_places.mixed_used = 1;
    hw_places.bigs_used = 1;
    hw_places.glibc = hw_real.is_glibc;
    make_forms();
    hw_places.even = (uint8_t *)result;
    hw_places.granules = HW_PLACE_PLANE_BYTES;
    return true;
}

void hw_place_add_state(struct hw_place_state *to, const struct hw_place_state *from)
{
    for (size_t i = 0; i < sizeof *to / sizeof(int64_t); i++)
        ((int64_t *)to)[i] += ((const int64_t *)from)[i];
}

/* A forked child: what is live and free is so here, too; events count from zero. */
static void start_again(void)
{
    struct hw_place_thread *all = hw_places.threads_used ? hw_places.threads[0] : NULL;
    for (uint32_t c = 0; all && c < HW_PLACE_CLASSES; c++) {
        struct hw_place_state sum = {0};
        bool touched = false;
        for (uint32_t i = 0; i < hw_places.threads_used; i++) {
            if (!hw_place_touched(hw_places.threads[i], c))
                continue;
            touched = true;
            hw_place_add_state(&sum, &hw_places.threads[i]->classes[c].now);
        }
        sum.taken = -sum.live - hw_place_listed(&sum);
        sum.again = sum.fresh = sum.other = 0;
        hw_places.totals[c].live = sum.live;
        if (!touched)
            continue;
        all->classes[c] = (struct hw_place_class_counts){.now = sum, .flushed = sum.live};
        hw_arch_set_bits(&all->touched[c / 64], 1ul << c % 64);
    }
    hw_places.requested = 0;
    threads.free = NULL;
    for (uint32_t i = hw_places.threads_used; i-- > 0;) {
        struct hw_place_thread *thread = hw_places.threads[i];
        hw_places.requested += thread->requested;
        const uint32_t big_free = thread->big_free;
        if (i) {
            for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++)
                if (hw_place_touched(thread, c))
                    thread->classes[c] = (struct hw_place_class_counts){0};
            for (size_t w = 0; w < sizeof thread->touched / sizeof *thread->touched; w++)
                thread->touched[w] = 0;
            thread->requested = thread->flushed = thread->high = thread->low = 0;
            thread->span = 0;
        }
        thread->big_free = big_free;
        thread->in_use = thread->in_line = 0;
        thread->events = (struct hw_place_events){0};
        thread->next_free = threads.free;
        threads.free = thread;
    }
    if (all) {
        all->requested = all->flushed = hw_places.requested;
        set_limits(all, !hw_places.many);
    }
    hw_places.peak = hw_places.peak_limit = hw_places.left_below = 0;
    hw_places.peak_clocked = INT64_MAX;
    hw_places.epoch = ++hw_runtime.process->peak_epoch;
}

int64_t hw_place_class_live(uint32_t class)
{
    int64_t live = 0;
    for (uint32_t i = 0; i < hw_places.threads_used; i++)
        live += hw_place_touched(hw_places.threads[i], class) ? hw_places.threads[i]->classes[class].now.live : 0;
    return live;
}

/* What threads count goes on: they do not wait for anybody. What they had counted is subtracted (hw_places_forget). */
void hw_places_reset(void)
{
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        __atomic_store_n(&hw_places.totals[c].most, hw_place_class_live(c), __ATOMIC_RELAXED);
    }
    for (uint32_t i = 0; i < hw_places.threads_used; i++) {
        hw_places.threads[i]->pairs_seen = 0;
        set_limits(hw_places.threads[i], !hw_places.many);
    }
    const int64_t live = hw_places_live();
    hw_places.peak = hw_places.left_below = 0;
    hw_places.peak_limit = live - 1;
    hw_places.peak_clocked = INT64_MAX;
    hw_places_note_peak(live);
    hw_runtime.peak_limit = UINT64_MAX;
}

bool hw_places_start(void)
{
    if (hw_places.even) {
        start_again();
        hw_places_file_begin();
        hw_runtime.peak_limit = UINT64_MAX; /* it is noted here, exactly */
        return true;
    }
    if (hw_address_space_limited() || !reserve())
        return false;
    hw_places.epoch = ++hw_runtime.process->peak_epoch;
    hw_places_file_begin();
    hw_runtime.peak_limit = UINT64_MAX; /* it is noted here, exactly */
    return true;
}
