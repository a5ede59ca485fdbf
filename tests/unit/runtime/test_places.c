/* test_places.c - what is at each address, against a naive model: blocks at random places, small and large, at
 * multiples of 8 and 16, split, joined and moved, for several threads. Everything is exact: requested sizes, addresses
 * that come again, free blocks by class, greatest numbers, false sharing.
 *
 * What is tested is the runtime's own source. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where a thread has looked at what may be another one's block, and has not done anything yet. */
static void (*window)(void);
#define HW_PLACE_WINDOW() (window ? window() : (void)0)

#include "base/sys.c"
#include "runtime/allocator/line_owners.c"
#include "runtime/allocator/place_threads.c"
#include "runtime/allocator/places.c"

/* ---- what places.c needs of the rest ---- */

static struct hw_process_info process;
struct hw_runtime hw_runtime = {.process = &process};
struct hw_real hw_real;
__thread struct hw_operator *hw_operator_self;
intptr_t hw_rseq_cpu_offset;

void *hw_own_pages(size_t bytes, bool wipe_on_fork)
{
    (void)wipe_on_fork;
    return hw_pages(bytes);
}
void *hw_own_reserve(uintptr_t hint, uint64_t bytes)
{
    (void)hint;
    return hw_pages(bytes);
}
bool hw_address_space_limited(void)
{
    return false;
}
void hw_areas_each(void (*each)(const struct hw_area *area))
{
    (void)each;
}
void hw_resident_each(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end))
{
    (void)start;
    (void)end;
    (void)each;
}
uint64_t hw_clock_slow(void)
{
    return 1;
}

void hw_places_file_begin(void)
{
}
int64_t hw_places_look_above = INT64_MAX;
void hw_operation_given_back(struct hw_operator *op, uint64_t bytes)
{
    (void)op;
    (void)bytes;
}
void hw_places_leave_peak(void)
{
}
int64_t hw_places_live(void)
{
    return 0;
}

/* ---- the model ---- */

#define ARENA  0x700000ff0000ul /* where nothing is; with sizes in front of blocks there must be */
#define UNITS  (12u << 20)      /* of 8 bytes: 96 MiB */
#define BLOCKS 20000u

struct block {
    uint64_t unit, size, usable; /* unit: of its address in the arena */
    int owner;                   /* -1: not live */
    bool mapped;                 /* a free gives it back to the system */
};
static uintptr_t arena;
static struct block blocks[BLOCKS], frees[4 * BLOCKS];
static uint32_t *live_at, *free_at; /* block + 1, by unit */
static uint8_t *begun, *line_active, *line_passive;
static struct model {
    int64_t live, requested, usable, again, fresh, other, listed, listed_bytes, most;
} classes[HW_PLACE_CLASSES];
static struct hw_place_events sharing;
static int64_t total, total_most;
static uint64_t unseen;
static uint32_t free_next;

/* STEP 0: as glibc has them, with the size in front of each block. */
static uint64_t usable_of(uint64_t size, unsigned step)
{
    if (!step)
        return size <= 24 ? 24 : (size + 8 + 15) / 16 * 16 - 8;
    if (size <= step)
        return step;
    if (size <= 1024)
        return (size + step - 1) / step * step;
    uint64_t up = 1;
    while (up * 8 < size)
        up *= 2;
    return (size + up - 1) / up * up;
}

static unsigned step_now;
static size_t simulated_usable(void *pointer)
{
    uint32_t found = live_at[((uintptr_t)pointer - arena) / 8];
    assert_true(found);
    return blocks[found - 1].usable;
}

static void model_reset(unsigned step)
{
    step_now = step;
    memset(&hw_places, 0, sizeof hw_places);
    memset(&threads, 0, sizeof threads);
    memset(classes, 0, sizeof classes);
    memset(&sharing, 0, sizeof sharing);
    memset(&process, 0, sizeof process);
    total = total_most = 0;
    unseen = 0;
    for (uint32_t i = 0; i < BLOCKS; i++)
        blocks[i].owner = -1;
    for (uint32_t i = 0; i < 4 * BLOCKS; i++)
        frees[i].owner = -1;
    live_at = hw_pages(UNITS * 4);
    free_at = hw_pages(UNITS * 4);
    begun = hw_pages(UNITS);
    line_active = hw_pages(UNITS / 8);
    line_passive = hw_pages(UNITS / 8);
    hw_real.malloc_usable_size = simulated_usable;
    hw_real.tells_usable = true;
    hw_real.is_glibc = !step;
    own_owner = 0;
    assert_true(hw_places_start());
    arena = ARENA;
    if (!step) {
        void *memory =
            mmap(NULL, UNITS * 8ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        arena = (uintptr_t)memory;
    }
}

static void model_end(void)
{
    munmap(live_at, UNITS * 4);
    munmap(free_at, UNITS * 4);
    munmap(begun, UNITS);
    munmap(line_active, UNITS / 8);
    munmap(line_passive, UNITS / 8);
    if (hw_places.glibc)
        munmap((void *)arena, UNITS * 8ul);
    /* what was reserved */
    munmap(hw_places.even, (uintptr_t)hw_places.totals - (uintptr_t)hw_places.even + 8192);
}

static uint64_t units_of(uint64_t usable)
{
    return (usable + 7) / 8;
}

static void unlist(uint32_t index)
{
    struct block *block = &frees[index];
    struct model *class = &classes[hw_place_class(block->usable)];
    class->listed--;
    class->listed_bytes -= (int64_t)block->usable;
    for (uint64_t u = 0; u < units_of(block->usable); u++)
        free_at[block->unit + u] = 0;
    block->owner = -1;
}

/* Does another owner's block have a requested byte on this line (of the arena)? A block of size 0 has its first. */
static bool others_on(uint64_t line, int owner)
{
    for (uint64_t u = line * 8; u < line * 8 + 8; u++) {
        if (!live_at[u])
            continue;
        const struct block *block = &blocks[live_at[u] - 1];
        uint64_t last = block->unit * 8 + (block->size ? block->size - 1 : 0);
        if (block->owner != owner && last / 8 >= u)
            return true;
    }
    return false;
}

static void note_line(uint64_t line, bool reused)
{
    uint8_t *flag = &(reused ? line_passive : line_active)[line];
    *(reused ? &sharing.passive_lines : &sharing.active_lines) += !*flag;
    *flag = 1;
}

static bool model_allocate(uint32_t index, uint64_t unit, uint64_t size, uint64_t usable, int owner)
{
    bool reused = begun[unit], again = false;
    for (uint64_t u = 0; u < units_of(usable); u++) {
        assert_false(live_at[unit + u]);
        if (!free_at[unit + u])
            continue;
        const struct block *old = &frees[free_at[unit + u] - 1];
        again |= old->unit == unit && hw_place_class(old->usable) == hw_place_class(usable);
        unlist(free_at[unit + u] - 1);
    }
    uint64_t first = unit / 8, last = (unit * 8 + (size ? size - 1 : 0)) / 64;
    bool shared = others_on(first, owner), shared_last = last != first && others_on(last, owner);
    if (shared)
        note_line(first, reused);
    if (shared_last)
        note_line(last, reused);
    if (shared || shared_last)
        ++*(reused ? &sharing.passive_blocks : &sharing.active_blocks);
    blocks[index] = (struct block){unit, size, usable, owner, false};
    for (uint64_t u = 0; u < units_of(usable); u++)
        live_at[unit + u] = index + 1;
    begun[unit] = 1;
    struct model *class = &classes[hw_place_class(usable)];
    class->live++;
    class->requested += (int64_t)size;
    class->usable += (int64_t)usable;
    ++*(again ? &class->again : reused ? &class->other : &class->fresh);
    class->most = class->live > class->most ? class->live : class->most;
    total += (int64_t)size;
    total_most = total > total_most ? total : total_most;
    return reused;
}

static void model_free(uint32_t index)
{
    struct block *block = &blocks[index];
    struct model *class = &classes[hw_place_class(block->usable)];
    const bool mapped = block->mapped;
    while (frees[free_next].owner >= 0)
        free_next = (free_next + 1) % (4 * BLOCKS);
    frees[free_next] = *block;
    frees[free_next].owner = 0;
    for (uint64_t u = 0; u < units_of(block->usable); u++) {
        live_at[block->unit + u] = 0;
        free_at[block->unit + u] = mapped ? 0 : free_next + 1;
    }
    if (mapped)
        frees[free_next].owner = -1;
    class->live--;
    class->requested -= (int64_t)block->size;
    class->usable -= (int64_t)block->usable;
    class->listed += !mapped;
    class->listed_bytes += mapped ? 0 : (int64_t)block->usable;
    total -= (int64_t)block->size;
    block->owner = -1;
}

/* ---- the comparison ---- */

static uint64_t random_state;
static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

static struct hw_place_state sum_of(uint32_t c, bool peak)
{
    struct hw_place_state sum = {0};
    for (uint32_t i = 0; i < hw_places.threads_used; i++) {
        const struct hw_place_class_counts *counts = &hw_places.threads[i]->classes[c];
        const struct hw_place_state *state = peak && counts->epoch == hw_places.epoch ? &counts->peak : &counts->now;
        for (size_t n = 0; n < sizeof sum / 8; n++)
            ((int64_t *)&sum)[n] += ((const int64_t *)state)[n];
    }
    return sum;
}

static void compare(bool alone)
{
    struct hw_place_events seen = {0};
    for (uint32_t i = 0; i < hw_places.threads_used; i++) {
        const struct hw_place_events *one = &hw_places.threads[i]->events;
        seen.active_blocks += one->active_blocks;
        seen.active_lines += one->active_lines;
        seen.passive_blocks += one->passive_blocks;
        seen.passive_lines += one->passive_lines;
        assert_int_equal(hw_places.threads[i]->events.unseen, 0);
        assert_int_equal(hw_places.threads[i]->events.skipped, 0);
    }
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        const struct hw_place_state sum = sum_of(c, false);
        const struct model *model = &classes[c];
        assert_int_equal(sum.live, model->live);
        assert_int_equal(sum.requested, model->requested);
        assert_int_equal(sum.again, model->again);
        assert_int_equal(sum.other, model->other);
        assert_int_equal(sum.fresh, model->fresh);
        assert_int_equal(hw_place_listed(&sum), model->listed);
        if (c > HW_PLACE_EXACT) {
            assert_int_equal(sum.usable, model->usable);
            assert_int_equal(sum.free_bytes, model->listed_bytes);
        }
        int64_t most = hw_places.totals[c].most;
        if (alone && sum.live > most)
            most = sum.live;
        if (alone)
            assert_int_equal(most, model->most);
    }
    assert_memory_equal(&seen, &sharing, sizeof seen);
    for (unsigned i = 0; i < 2000; i++) { /* what lies anywhere */
        const uint64_t unit = any(i % 2 ? UNITS : UNITS / 64);
        struct hw_place place;
        const bool found = hw_place_at(arena + unit * 8, &place);
        const struct block *live = live_at[unit] ? &blocks[live_at[unit] - 1] : NULL;
        if (live && unit - live->unit >= units_of(live->size)) /* only the allocator knows of these bytes */
            continue;
        assert_int_equal(found && place.live, live != NULL);
        if (live)
            assert_int_equal(place.start, arena + live->unit * 8);
        else
            assert_int_equal(found, free_at[unit] != 0);
    }
}

/* ---- random programs ---- */

static uint64_t any_size(void)
{
    switch (any(12)) {
    case 0: /* a small one, or one over many regions and areas */
        return any(250) ? any(4) : 1500000 + any(9000000);
    case 1:
        return any(2000);
    case 2:
        return any(60) ? any(5000) : any(100000);
    case 3:
        return any(400) ? 120 + any(12) : 60000 + any(700000);
    default:
        return any(260);
    }
}

static struct hw_operator *attach(void)
{
    struct hw_operator *op = calloc(1, sizeof *op);
    hw_places_attach(op);
    assert_non_null(op->places);
    return op;
}

static void *attach_in_thread(void *unused)
{
    (void)unused;
    return attach();
}

/* A place for USABLE bytes: where one was freed, behind a block, or anywhere. */
static bool find_place(uint64_t usable, unsigned align, uint64_t *unit)
{
    for (unsigned attempt = 0; attempt < 40; attempt++) {
        const struct block *old = &frees[any(4 * BLOCKS)], *next = &blocks[any(BLOCKS)];
        uint64_t at = any(3) ? any(UNITS / 64) : any(UNITS);
        if (any(3) && old->owner >= 0)
            at = old->unit + (any(4) ? 0 : any(units_of(old->usable)));
        else if (any(3) && next->owner >= 0)
            at = next->unit + units_of(next->usable);
        at = (at + align / 8 - 1) / (align / 8) * (align / 8);
        if (at == 0 || at + units_of(usable) + 8 >= UNITS)
            continue;
        bool room = true;
        for (uint64_t u = 0; room && u < units_of(usable); u++)
            room = !live_at[at + u];
        *unit = at;
        if (room)
            return true;
    }
    return false;
}

static void run(unsigned step, unsigned align, unsigned owners, unsigned rounds, unsigned most_blocks)
{
    model_reset(step);
    struct hw_operator *ops[16];
    ops[0] = attach();
    for (unsigned i = 1; i < owners; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, attach_in_thread, NULL), 0);
        pthread_join(thread, (void **)&ops[i]);
    }
    uint32_t next = 0, live = 0;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned who = (unsigned)any(owners);
        bool grow = live < (any(3) ? most_blocks : most_blocks / 2);
        if (grow || !live) {
            while (blocks[next].owner >= 0)
                next = (next + 1) % BLOCKS;
            uint64_t size = any_size(), usable = usable_of(size, step), unit;
            bool odd_one = !any(20); /* aligned: the allocator gives more for it */
            if (odd_one)
                usable = usable_of(size + 64 + any(200), step);
            if (!find_place(usable, align, &unit))
                continue;
            bool reused = model_allocate(next, unit, size, usable, (int)who);
            void *address = (void *)(arena + unit * 8);
            blocks[next].mapped = hw_places.glibc && usable > 128 * 1024 && any(2);
            if (hw_places.glibc)
                ((uint64_t *)address)[-1] = blocks[next].mapped ? (usable + 16) | 2 : (usable + 8) | 1;
            assert_int_equal(odd_one ? hw_place_allocated_slow(ops[who], (uintptr_t)address, size, true)
                                     : hw_place_allocated(ops[who], address, size),
                             reused);
            live++;
        } else {
            uint32_t victim = (uint32_t)any(BLOCKS);
            while (blocks[victim].owner < 0)
                victim = (victim + 1) % BLOCKS;
            uint64_t size = blocks[victim].size;
            void *address = (void *)(arena + blocks[victim].unit * 8);
            assert_int_equal(hw_place_freed(ops[who], address), size);
            model_free(victim);
            live--;
        }
        if (round % 5000 == 0)
            compare(owners == 1);
    }
    compare(owners == 1);
    if (owners == 1) {
        hw_place_settle(ops[0]->places, &ops[0]->places->classes[1]);
        assert_int_equal(hw_places.peak, total_most);
    }
    for (unsigned i = 0; i < owners; i++)
        free(ops[i]);
    model_end();
}

static void test_one_thread(void **unused)
{
    (void)unused;
    random_state = 88172645463325252ull;
    run(16, 16, 1, 30000, 3000);
    run(8, 8, 1, 30000, 3000);
    run(0, 16, 1, 30000, 3000);
}

static void test_threads(void **unused)
{
    (void)unused;
    random_state = 8817264546332525ull;
    run(16, 16, 3, 30000, 3000);
    run(8, 8, 7, 30000, 3000);
    run(0, 16, 5, 30000, 3000);
    run(8, 8, 2, 30000, 200);
}

/* ---- what a large block costs ---- */

static uint64_t pages_there(const void *start, uint64_t bytes)
{
    static unsigned char there[65536];
    uint64_t count = 0;
    const uintptr_t page = (uintptr_t)start & ~4095ul;
    for (uint64_t at = 0; at < bytes; at += sizeof there * 4096) {
        const uint64_t here = bytes - at < sizeof there * 4096 ? bytes - at : sizeof there * 4096;
        assert_int_equal(mincore((void *)(page + at), here, there), 0);
        for (uint64_t i = 0; i < (here + 4095) / 4096; i++)
            count += there[i] & 1;
    }
    return count;
}

/* A mapping of a GiB again and again: neither read nor written are the 64 MiB of the plane and the 256 KiB of regions
 * that it has. */
static void test_large(void **unused)
{
    const uint64_t size = 1ul << 30;
    for (unsigned listed = 0; listed < 2; listed++) {
        model_reset(listed ? 16 : 0);
        struct hw_operator *op = attach();
        char *memory =
            mmap(NULL, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        hw_real.tells_usable = false;
        for (unsigned i = 0; i < 20; i++) {
            char *address = memory + 4096 + i * 64; /* such as allocators have them that colour lines */
            ((uint64_t *)address)[-1] = (size - 4096) | 2;
            hw_place_allocated(op, address, size - 8192);
            struct hw_place place = {0};
            assert_true(hw_place_at((uintptr_t)address + size / 2 + i * 100000, &place));
            assert_true(place.live && place.start == (uintptr_t)address);
            assert_int_equal(hw_place_freed(op, address), size - 8192);
        }
        assert_int_equal(op->places->events.unseen, 0);
        assert_in_range(pages_there(hw_places.even + ((uintptr_t)memory >> 4), size >> 4), 1, 64);
        assert_in_range(
            pages_there(&hw_places.regions[(uintptr_t)memory >> 16], (size >> 16) * sizeof *hw_places.regions), 1, 4);
        munmap(memory, size + 8192);
        free(op);
        model_end();
    }
}

/* ---- threads that are given parts of one piece of memory ---- */

/* Of the second thread, which comes in between at the window with this number: what it had at X becomes something else.
 */
static struct {
    struct hw_operator *op;
    uintptr_t address;
    unsigned windows, at;
    bool came;
    void (*change)(void);
} second;

static void come_between(void)
{
    if (second.windows++ != second.at)
        return;
    window = NULL;
    second.came = true;
    second.change();
}

static void take_at(struct hw_operator *op, uintptr_t address, uint64_t size)
{
    ((uint64_t *)address)[-1] = (usable_of(size, 0) + 8) | 1;
    hw_place_allocated(op, (void *)address, size);
}

static void free_one(void)
{
    hw_place_freed(second.op, (void *)second.address);
}

/* Of 3000 free bytes half are handed out, and are free again. */
static void use_half(void)
{
    take_at(second.op, second.address, 1500);
    free_one();
}

/* 2000 live bytes go, and 1791 come: of the digits of both a size could be made that reaches farther. */
static void replace_live(void)
{
    free_one();
    take_at(second.op, second.address, 1791);
}

/* The block was a mapping of its own. */
static void unmap_it(void)
{
    free_one();
    munmap((void *)(second.address & ~4095ul), 4096);
}

static void expect_class(uint64_t usable, int64_t live, int64_t requested, int64_t listed)
{
    const struct hw_place_state sum = sum_of(hw_place_class(usable), false);
    assert_int_equal(sum.live, live);
    assert_int_equal(sum.requested, requested);
    assert_int_equal(hw_place_listed(&sum), listed);
    assert_int_equal(sum.free_bytes, listed * (int64_t)usable);
    assert_int_equal(sum.usable, live * (int64_t)usable);
}

/* The first thread is given memory behind X; CHANGE comes in between. True as long as there are such windows. */
static bool between(struct hw_operator *op, uintptr_t behind, void (*change)(void), unsigned at)
{
    second.windows = 0;
    second.at = at;
    second.came = false;
    second.change = change;
    take_at(op, behind + 4096, 100); /* this part of the address space is known to have been used */
    hw_place_freed(op, (void *)(behind + 4096));
    window = come_between;
    take_at(op, behind, 2500);
    window = NULL;
    if (!second.came)
        change();
    assert_int_equal(op->places->events.unseen, 0);
    assert_int_equal(second.op->places->events.unseen, 0);
    assert_int_equal(hw_place_freed(op, (void *)behind), 2500);
    return second.came;
}

static void test_between(void **unused)
{
    (void)unused;
    model_reset(0);
    struct hw_operator *op = attach();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, attach_in_thread, NULL), 0);
    pthread_join(thread, (void **)&second.op);
    uintptr_t next = arena + 16384;
    unsigned times = 0;
    for (unsigned place = 0; place < 56; place += 5) { /* of its mark on a line of the cache */
        bool more = true;
        for (unsigned at = 0; more; at++, times++, next += 16384) {
            second.address = next + place * 16;
            take_at(second.op, second.address, 3000);
            free_one();
            more = between(op, second.address + 2048, use_half, at);
            expect_class(usable_of(3000, 0), 0, 0, 0);
            expect_class(usable_of(1500, 0), 0, 0, times + 1);
        }
        more = true;
        for (unsigned at = 0; more; at++, next += 16384) {
            second.address = next + place * 16;
            take_at(second.op, second.address, 2000);
            more = between(op, second.address + 2016, replace_live, at);
            expect_class(usable_of(1791, 0), 1, 1791, 0);
            assert_int_equal(hw_place_freed(second.op, (void *)second.address), 1791);
            take_at(second.op, second.address, 10000); /* takes it all out of the list */
            free_one();
        }
        more = true;
        for (unsigned at = 0; more; at++, next += 16384) {
            second.address = next + 16;
            take_at(second.op, second.address, 4000);
            ((uint64_t *)second.address)[-1] = 4096 | 2;
            more = between(op, next + 4096 + 16, unmap_it, at);
        }
    }
    free(op);
    free(second.op);
    model_end();
}

#define POOL_UNITS 512u /* of 16 bytes: a small heap, all of which is in use all the time */

static struct {
    pthread_mutex_t lock;
    uint8_t taken[POOL_UNITS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread uint64_t chance;

static uint64_t own_chance(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (chance >> 11) % below;
}

static void let_others(void)
{
    if (own_chance(16) == 0)
        usleep(1);
}

/* As glibc has it: the size in front of the block is all that is written. NULL: no room. */
static void *pool_take(uint64_t size)
{
    const uint64_t units = (usable_of(size, 0) + 8) / 16, from = own_chance(POOL_UNITS);
    uint64_t *block = NULL;
    pthread_mutex_lock(&pool.lock);
    for (uint64_t at = from, room = 0; at < POOL_UNITS && !block; at++) {
        room = pool.taken[at] ? 0 : room + 1;
        if (room < units)
            continue;
        memset(pool.taken + at + 1 - units, 1, units);
        block = (uint64_t *)(arena + (at + 1 - units) * 16 + 16);
        block[-1] = (units * 16) | 1;
    }
    pthread_mutex_unlock(&pool.lock);
    return block;
}

static void pool_give(void *block)
{
    const uint64_t units = ((uint64_t *)block)[-1] >> 4, at = ((uintptr_t)block - arena) / 16 - 1;
    pthread_mutex_lock(&pool.lock);
    memset(pool.taken + at, 0, units);
    pthread_mutex_unlock(&pool.lock);
}

static void *contend(void *number)
{
    struct hw_operator *op = attach();
    chance = 88172645463325252ull * (uintptr_t)number;
    for (unsigned i = 0; i < 10000; i++) {
        const uint64_t size = own_chance(50) ? 1000 + own_chance(2000) : own_chance(1200);
        void *block = pool_take(size);
        if (!block)
            continue;
        hw_place_allocated(op, block, size);
        if (own_chance(8) == 0)
            sched_yield();
        assert_int_equal(hw_place_freed(op, block), size);
        pool_give(block);
    }
    return op;
}

static void test_contended(void **unused)
{
    (void)unused;
    enum { THREADS = 4 };
    pthread_t all[THREADS];
    void *ops[THREADS];
    model_reset(0);
    free(attach());
    window = let_others;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&all[i], NULL, contend, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(all[i], &ops[i]);
    window = NULL;
    int64_t requested = 0;
    for (uint32_t i = 0; i < hw_places.threads_used; i++) {
        requested += hw_places.threads[i]->requested;
        assert_int_equal(hw_places.threads[i]->events.unseen, 0);
    }
    assert_int_equal(requested, 0);
    for (uint32_t c = 0; c < HW_PLACE_CLASSES; c++) {
        const struct hw_place_state sum = sum_of(c, false);
        assert_int_equal(sum.live, 0);
        assert_int_equal(sum.requested, 0);
        assert_int_equal(sum.usable, 0);
        assert_int_equal(sum.untouched, 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        free(ops[i]);
    model_end();
}

TEST_LIST(cmocka_unit_test(test_one_thread), cmocka_unit_test(test_threads), cmocka_unit_test(test_large),
          cmocka_unit_test(test_between), cmocka_unit_test(test_contended))
