/* course.c - see course.h. */
#include "allocators/course.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/growing.h"
#include "base/order.h"

#define WALK_LEAST  512u /* blocks */
#define TABLE_LEAST 65536u

struct step { /* a record in the order of all */
    uint64_t tick;
    uint32_t record, thread;
};

struct live {         /* a block, in a table by address */
    uint64_t address; /* 0: empty, 1: deleted */
    uint64_t size;
    uint32_t slot, worker;
    uint64_t event; /* events of the worker up to the one that made it what it is */
};

struct thread {
    uint64_t first, last; /* ticks; 0: no records */
    uint32_t worker;      /* + 1 */
};

struct events {
    struct hw_course_event *of;
    size_t count, room;
    uint32_t *free_slots; /* filled and emptied by this worker alone */
    size_t free_count, free_room;
    uint64_t last; /* tick of the last thread that was given to it */
};

/* Blocks in the order in which they were allocated. Whenever as many were added as are live, the course walks to all of
 * them: one walk to a block for each allocation. */
struct order {
    struct {
        uint32_t slot, stamp;
    } * of;
    size_t count, live_last;
    uint32_t *stamps; /* by slot: of the block in it; 0: none */
    uint32_t stamp;
    uint32_t *walked;
    size_t walked_count;
};

struct making {
    const struct hw_trace_record *records;
    uint32_t record_count;
    struct step *steps;
    size_t step_count;
    struct thread *threads;
    size_t thread_count;
    uint32_t *active; /* threads that have begun, and were not seen to have ended */
    size_t active_count;
    struct live *table;
    size_t table_size, table_used; /* used: with deleted entries */
    struct events workers[HW_COURSE_WORKERS];
    uint32_t worker_count, slots;
    uint64_t operations, live_bytes, main_last;
    uint32_t joins;
    struct order order;
    bool failed; /* no memory */
};

/* ---- the order ---- */

static bool well_formed(const struct hw_trace_record *record)
{
    const unsigned kind = (unsigned)(record->what >> 56);
    return record->tick && kind > HW_COURSE_NONE && kind <= HW_COURSE_TOUCHED && (record->what & HW_TRACE_ADDRESS) > 1;
}

static bool collect(struct making *making)
{
    making->steps = malloc(((size_t)making->record_count + 1) * sizeof *making->steps);
    making->threads = calloc(making->thread_count + 1, sizeof *making->threads);
    making->active = malloc((making->thread_count + 1) * sizeof *making->active);
    if (!making->steps || !making->threads || !making->active)
        return false;
    for (uint32_t chunk = 0; chunk + HW_TRACE_CHUNK <= making->record_count; chunk += HW_TRACE_CHUNK) {
        const uint64_t thread = making->records[chunk].size;
        for (uint32_t i = chunk + 1; thread < making->thread_count && i < chunk + HW_TRACE_CHUNK; i++) {
            if (!well_formed(&making->records[i]))
                continue;
            struct thread *of = &making->threads[thread];
            const uint64_t tick = making->records[i].tick;
            of->first = of->first && of->first < tick ? of->first : tick;
            of->last = of->last > tick ? of->last : tick;
            making->steps[making->step_count++] = (struct step){tick, i, (uint32_t)thread};
        }
    }
    return true;
}

static int by_tick(const void *a, const void *b)
{
    const struct step *one = a, *other = b;
    return one->tick != other->tick ? (one->tick < other->tick ? -1 : 1) : HW_ORDER(one->record, other->record);
}

/* Threads stop noting when the file is full, the one sooner than the other: the course ends where the first of those
 * that would have gone on ends. Their last chunks are full. */
static void end_together(struct making *making)
{
    uint64_t end = UINT64_MAX;
    for (size_t i = 0; i < making->step_count; i++) {
        const struct step *step = &making->steps[i];
        if (step->tick == making->threads[step->thread].last && step->record % HW_TRACE_CHUNK == HW_TRACE_CHUNK - 1 &&
            step->tick < end)
            end = step->tick;
    }
    size_t kept = 0;
    while (kept < making->step_count && making->steps[kept].tick <= end)
        kept++;
    making->step_count = kept;
}

/* ---- blocks ---- */

static size_t place_of(const struct making *making, uint64_t address)
{
    return (address >> 3) * 0x9e3779b97f4a7c15ull >> 20 & (making->table_size - 1);
}

/* The live block at ADDRESS; NULL: none. */
static struct live *find(struct making *making, uint64_t address)
{
    for (size_t at = place_of(making, address);; at = (at + 1) & (making->table_size - 1)) {
        if (making->table[at].address == address && address > 1)
            return &making->table[at];
        if (making->table[at].address == 0)
            return NULL;
    }
}

/* An entry for ADDRESS, which has none: an empty or a deleted one. */
static struct live *enter(struct making *making, uint64_t address)
{
    size_t at = place_of(making, address);
    while (making->table[at].address > 1)
        at = (at + 1) & (making->table_size - 1);
    making->table_used += making->table[at].address == 0;
    making->table[at].address = address;
    return &making->table[at];
}

/* Room for another block: deleted entries are dropped, and more are made when there are many live ones. */
static bool make_room(struct making *making)
{
    struct live *old = making->table;
    const size_t old_size = making->table_size;
    size_t live = 0;
    if (making->table_used * 2 < old_size)
        return true;
    for (size_t i = 0; i < old_size; i++)
        live += old[i].address > 1;
    for (making->table_size = TABLE_LEAST; making->table_size < live * 4;)
        making->table_size *= 2;
    making->table = calloc(making->table_size, sizeof *making->table);
    if (!making->table) {
        making->table = old;
        making->table_size = old_size;
        return false;
    }
    making->table_used = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].address > 1)
            *enter(making, old[i].address) = old[i];
    free(old);
    return true;
}

static void add_event(struct making *making, uint32_t worker, struct hw_course_event event)
{
    struct events *events = &making->workers[worker];
    if (!HW_GROW(events->of, events->room, events->count + 1)) {
        making->failed = true;
        return;
    }
    events->of[events->count++] = event;
}

static uint32_t take_slot(struct making *making, uint32_t worker)
{
    struct events *events = &making->workers[worker];
    return events->free_count ? events->free_slots[--events->free_count] : making->slots++;
}

static void give_slot(struct making *making, uint32_t worker, uint32_t slot)
{
    struct events *events = &making->workers[worker];
    if (!HW_GROW(events->free_slots, events->free_room, events->free_count + 1)) {
        making->failed = true;
        return;
    }
    events->free_slots[events->free_count++] = slot;
}

/* ---- workers ---- */

static void add_wait(struct making *making, uint32_t worker, uint32_t for_worker, uint64_t events)
{
    add_event(making, worker, (struct hw_course_event){.kind = HW_COURSE_WAIT, .slot = for_worker, .size = events});
}

/* The first thread is the first worker. Others take one whose thread has ended; each begins when the first one has come
 * as far as it had. */
static uint32_t worker_of(struct making *making, uint32_t number, uint64_t tick)
{
    struct thread *thread = &making->threads[number];
    if (thread->worker)
        return thread->worker - 1;
    uint32_t worker = number == 0 ? 0 : making->worker_count > 1 ? 1 + number % (making->worker_count - 1) : 1;
    if (number && (making->worker_count < HW_COURSE_WORKERS || making->workers[worker].last >= tick))
        for (uint32_t i = 1; i <= making->worker_count && i < HW_COURSE_WORKERS; i++)
            if (i == making->worker_count || making->workers[i].last < tick) {
                worker = i;
                break;
            }
    if (worker >= making->worker_count)
        making->worker_count = worker + 1;
    making->workers[worker].last = thread->last;
    thread->worker = worker + 1;
    if (number) {
        add_wait(making, worker, 0, making->workers[0].count);
        making->active[making->active_count++] = number;
    }
    return worker;
}

/* When the first thread did nothing as long as another one lived, it waited for its end. */
static void join(struct making *making, uint64_t tick)
{
    for (size_t i = 0; i < making->active_count; i++) {
        const struct thread *thread = &making->threads[making->active[i]];
        if (thread->last > tick)
            continue;
        if (making->main_last < thread->first) {
            const uint32_t worker = thread->worker - 1;
            add_wait(making, 0, worker, making->workers[worker].count);
            making->joins++;
        }
        making->active[i--] = making->active[--making->active_count];
    }
    making->main_last = tick;
}

/* ---- walks ---- */

/* What one thread reads another one may free meanwhile: only courses of one thread have walks. */
static bool prepare_walks(struct making *making)
{
    struct order *order = &making->order;
    if (making->thread_count != 1)
        return true;
    order->of = malloc((making->step_count + 1) * sizeof *order->of);
    order->stamps = calloc(making->step_count + 1, sizeof *order->stamps);
    order->walked = malloc((2 * making->step_count + WALK_LEAST) * sizeof *order->walked);
    return order->of && order->stamps && order->walked;
}

static void walk(struct making *making)
{
    struct order *order = &making->order;
    size_t live = 0;
    for (size_t i = 0; i < order->count; i++)
        if (order->stamps[order->of[i].slot] == order->of[i].stamp)
            order->of[live++] = order->of[i];
    order->count = order->live_last = live;
    if (live < WALK_LEAST)
        return;
    add_event(making, 0,
              (struct hw_course_event){.kind = HW_COURSE_WALK, .slot = (uint32_t)live, .size = order->walked_count});
    for (size_t i = 0; i < live; i++)
        order->walked[order->walked_count++] = order->of[i].slot;
}

static void order_block(struct making *making, uint32_t slot, uint64_t size)
{
    struct order *order = &making->order;
    if (!order->of)
        return;
    order->stamps[slot] = size ? ++order->stamp : 0;
    order->of[order->count].slot = slot;
    order->of[order->count++].stamp = order->stamps[slot] ? order->stamp : UINT32_MAX;
    if (order->count >= 2 * order->live_last + WALK_LEAST)
        walk(making);
}

/* ---- the events ---- */

static uint8_t log2_of(uint64_t number)
{
    return number > 1 ? (uint8_t)(63 - __builtin_clzll(number)) : 0;
}

static void end_block(struct making *making, struct live *block, uint32_t worker)
{
    making->live_bytes -= block->size;
    if (block->worker == worker)
        give_slot(making, worker, block->slot);
    if (making->order.of)
        making->order.stamps[block->slot] = 0;
    block->address = 1;
}

static void add_free(struct making *making, uint32_t worker, uint64_t address)
{
    struct live *block = find(making, address);
    if (!block)
        return; /* from before the trace began */
    making->operations++;
    if (block->worker != worker)
        add_wait(making, worker, block->worker, block->event);
    const uint16_t touched = making->workers[block->worker].of[block->event - 1].touched;
    add_event(
        making, worker,
        (struct hw_course_event){.kind = HW_COURSE_FREE, .slot = block->slot, .size = block->size, .touched = touched});
    end_block(making, block, worker);
}

/* How much of a block was touched belongs to the event that made it what it is. */
static void add_touched(struct making *making, uint64_t address, uint64_t pages)
{
    const struct live *block = find(making, address);
    if (block)
        making->workers[block->worker].of[block->event - 1].touched =
            (uint16_t)(pages < HW_COURSE_PAGES ? pages : HW_COURSE_PAGES);
}

static void add_allocation(struct making *making, uint32_t worker, const struct hw_trace_record *record, uint8_t kind)
{
    const uint64_t address = record->what & HW_TRACE_ADDRESS;
    struct live *before = kind == HW_COURSE_REALLOC ? find(making, record->before) : NULL;
    struct hw_course_event event = {.size = record->size, .kind = kind};
    if (kind == HW_COURSE_ALIGNED)
        event.align = log2_of(record->before);
    if (before && before->worker != worker) { /* the slot changes hands: it is emptied, and filled anew */
        add_free(making, worker, before->address);
        before = NULL;
    }
    if (before) {
        event.slot = before->slot;
        making->live_bytes -= before->size;
        before->address = 1;
    } else {
        event.slot = take_slot(making, worker);
        if (kind == HW_COURSE_REALLOC)
            event.kind = HW_COURSE_MALLOC;
    }
    struct live *entry = find(making, address);
    if (entry) { /* two threads passed it on in the same moment */
        making->live_bytes -= entry->size;
        if (making->order.of)
            making->order.stamps[entry->slot] = 0;
    } else {
        entry = enter(making, address);
    }
    add_event(making, worker, event);
    *entry = (struct live){address, record->size, event.slot, worker, making->workers[worker].count};
    making->live_bytes += record->size;
    making->operations++;
    order_block(making, event.slot, record->size);
}

static void add_steps(struct making *making, uint64_t live_most)
{
    making->worker_count = 1;
    for (size_t i = 0; i < making->step_count && !making->failed; i++) {
        const struct step *step = &making->steps[i];
        const struct hw_trace_record *record = &making->records[step->record];
        const uint8_t kind = (uint8_t)(record->what >> 56);
        if (!make_room(making)) {
            making->failed = true;
            return;
        }
        if (kind == HW_COURSE_TOUCHED) {
            add_touched(making, record->what & HW_TRACE_ADDRESS, record->size);
            continue;
        }
        if (kind != HW_COURSE_FREE && record->size > live_most - making->live_bytes)
            break;
        const uint32_t worker = worker_of(making, step->thread, step->tick);
        if (step->thread == 0)
            join(making, step->tick);
        if (kind == HW_COURSE_FREE)
            add_free(making, worker, record->what & HW_TRACE_ADDRESS);
        else
            add_allocation(making, worker, record, kind);
    }
}

/* ---- files ---- */

static bool write_all(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        const ssize_t written = write(file, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_course(const struct making *making, const char *path)
{
    struct hw_course_header header = {.magic = HW_COURSE_MAGIC,
                                      .slots = making->slots,
                                      .operations = making->operations,
                                      .walked = making->order.walked_count,
                                      .workers = making->worker_count,
                                      .joins = making->joins};
    uint64_t first = 0;
    for (uint32_t i = 0; i < making->worker_count; i++) {
        header.first[i] = first;
        header.count[i] = making->workers[i].count;
        first += making->workers[i].count;
    }
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool fine = file >= 0 && write_all(file, &header, sizeof header);
    for (uint32_t i = 0; fine && i < making->worker_count; i++)
        fine = write_all(file, making->workers[i].of, making->workers[i].count * sizeof *making->workers[i].of);
    fine = fine && write_all(file, making->order.walked, making->order.walked_count * sizeof(uint32_t));
    if (file >= 0)
        fine = close(file) == 0 && fine;
    return fine;
}

static bool make(struct making *making, uint64_t live_most, bool full)
{
    if (!collect(making))
        return false;
    qsort(making->steps, making->step_count, sizeof *making->steps, by_tick);
    if (full)
        end_together(making);
    if (!make_room(making) || !prepare_walks(making))
        return false;
    add_steps(making, live_most);
    return !making->failed;
}

static void free_making(struct making *making)
{
    for (uint32_t i = 0; i < HW_COURSE_WORKERS; i++) {
        free(making->workers[i].of);
        free(making->workers[i].free_slots);
    }
    free(making->order.of);
    free(making->order.stamps);
    free(making->order.walked);
    free(making->steps);
    free(making->threads);
    free(making->active);
    free(making->table);
}

bool hw_course_make(const char *trace_path, const char *course_path, uint64_t live_most, struct hw_course *course,
                    struct hw_error *error)
{
    struct stat status;
    const int file = open(trace_path, O_RDONLY | O_CLOEXEC);
    const bool known =
        file >= 0 && fstat(file, &status) == 0 && (size_t)status.st_size > sizeof(struct hw_trace_record);
    const size_t size = known ? (size_t)status.st_size : 0;
    void *bytes = known ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    if (bytes == MAP_FAILED) {
        hw_error_set(error, "the trace of its operations cannot be read");
        return false;
    }
    const struct hw_trace_header *header = bytes;
    const uint64_t room = size / sizeof(struct hw_trace_record) - 1;
    struct making *making = calloc(1, sizeof *making);
    bool fine = false;
    if (!making) {
        hw_error_set(error, "not enough memory");
    } else if (header->magic != HW_TRACE_MAGIC || header->threads > HW_TRACE_MOST) {
        hw_error_set(error, "the trace of its operations is damaged");
    } else {
        making->records = (const struct hw_trace_record *)bytes + 1;
        making->record_count = (uint32_t)(header->taken < room ? header->taken : room);
        making->thread_count = (size_t)header->threads;
        hw_error_set(error, "not enough memory");
        fine = make(making, live_most, header->operations > 0);
        if (fine && making->operations == 0) {
            hw_error_set(error, "the trace has no operations");
            fine = false;
        }
        if (fine && !write_course(making, course_path)) {
            hw_error_set(error, "the course of its operations cannot be written: %s", strerror(errno));
            fine = false;
        }
        *course = (struct hw_course){making->operations, header->operations, making->worker_count};
    }
    if (making)
        free_making(making);
    free(making);
    munmap(bytes, size);
    return fine;
}
