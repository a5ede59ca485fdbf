/* replay.c - the program heapwise-replay: asks the allocator that it was started with (LD_PRELOAD) for what a profiled
 * program asked of its own, and measures what each kind of operation takes.
 *
 *     heapwise-replay [plain|timed] <MIX        (mix.h)
 *
 * `timed` reads the clock around each operation, `plain` only around the whole: what the clock's reading hides, the
 * overlap of operations with what comes before and behind them, is seen by comparing the two. Prints lines
 *
 *     op PHASE KIND BUCKET COUNT TICKS          timed: each kind of operation
 *     touch PHASE BUCKET COUNT TICKS            timed: writing to fresh blocks and reading them before they are freed
 *     phase PHASE ALLOCATIONS TICKS CPU_NS      the slowest thread, from the first operation to the last, by the clock
 *                                               and by the time that it had a CPU
 *
 * COUNT and TICKS leave out operations in which another thread got the processor, and, where that cannot be known, what
 * took more than 128 times as long as usual and is rarer than one in 1000.
 *
 * What is asked is drawn beforehand, from the mix's seed: all allocators get the same. A program of more allocations
 * than the limit is replayed from its middle: as many allocations before, which do not count, have made a heap that is
 * as full and as used as its own. Blocks are written to as most programs do: one word in each 64 bytes up to 4 KiB, one
 * in each page beyond, up to 16 MiB; up to 256 bytes are read before they are freed. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "allocators/mix.h"
#include "allocators/programs/touch.h"
#include "base/arch/x86_64/arch.h"

#define SECONDS_MOST 30
#define NO_EVENT     UINT32_MAX
#define MAILBOX      1024u /* blocks on their way from one thread to another; a power of two */
#define RECENT       16    /* allocations that are looked back at for a block that grows */

struct event { /* one operation, 16 bytes */
    uint64_t size;
    uint32_t slot;
    uint8_t kind, bucket, counts, crosses; /* crosses: the free is left to the next thread */
};

#define BINS 48

struct cell { /* by the logarithm of the ticks */
    uint64_t ticks[BINS];
    uint32_t count[BINS];
};

struct mailbox { /* one writer, one reader */
    _Alignas(64) uint32_t head;
    _Alignas(64) uint32_t tail;
    struct {
        void *block;
        uint32_t bucket;
    } of[MAILBOX];
};

struct worker {
    const struct event *events;
    size_t event_count, counted_from; /* index of the first event that counts */
    void **slots;
    struct mailbox *in, *out; /* NULL: alone */
    struct cell ops[HW_MIX_KINDS][HW_SIZE_BUCKETS], touches[HW_SIZE_BUCKETS];
    uint64_t begin, end, begin_ns, end_ns; /* ticks and CPU time, of what counts */
    pthread_barrier_t *start;
    bool timed, done;
};

static struct hw_mix mix;
static uint64_t clock_cost; /* of reading the clock twice */

static void *pages(size_t bytes)
{
    void *found =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        _exit(3);
    return found;
}

static inline uint64_t ticks(void)
{
    uint32_t low, high, cpu;
    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(cpu)::"memory");
    return (uint64_t)high << 32 | low;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return limit ? (uint64_t)(((unsigned __int128)next_random(state) * limit) >> 64) : 0;
}

/* ---- drawing what is asked ---- */

struct drawing {
    uint64_t random;
    int phase;
    uint64_t total; /* allocations of the program in this phase */
    double freed;   /* frees for each of them */
    struct choice {
        uint64_t until; /* cumulated */
        uint8_t kind, bucket;
    } choices[HW_SIZE_BUCKETS * HW_MIX_FREE];
    size_t choice_count;
    uint64_t live_bytes, live_most;
    /* Frees that are due, by the allocation they come before: lists through `next`, by slot. */
    uint32_t *due, *next, *free_slots;
    uint64_t *sizes;
    uint8_t *buckets, *crosses, *live;
    uint32_t recent[RECENT];
    size_t recent_count;
    size_t free_count, slot_count;
    struct event *events;
    size_t event_count;
};

static uint64_t freed_of(const struct hw_mix_bucket *of)
{
    uint64_t freed = 0;
    for (int k = 0; k < HW_MIX_LIFE_BITS; k++)
        freed += of->lives[k];
    return freed;
}

static void cumulate(struct drawing *drawing)
{
    double freed = 0;
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
        for (unsigned kind = 0; kind < HW_MIX_FREE; kind++) {
            const uint64_t count = mix.of[b].count[drawing->phase][kind];
            if (count == 0)
                continue;
            drawing->total += count;
            const uint64_t ended = freed_of(&mix.of[b]), all = ended + mix.of[b].kept;
            const double blocks = kind == HW_MIX_REALLOC ? (double)mix.fresh * 1e-3 : 1; /* that each makes */
            freed += all ? blocks * (double)count * (double)ended / (double)all : 0;
            drawing->choices[drawing->choice_count++] =
                (struct choice){.until = drawing->total, .kind = (uint8_t)kind, .bucket = (uint8_t)b};
        }
    drawing->freed = drawing->total ? freed / (double)drawing->total : 0;
}

static const struct choice *choose(struct drawing *drawing)
{
    const uint64_t at = below(&drawing->random, drawing->total);
    size_t low = 0, high = drawing->choice_count - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (drawing->choices[middle].until > at)
            high = middle;
        else
            low = middle + 1;
    }
    return &drawing->choices[low];
}

static uint64_t draw_size(struct drawing *drawing, unsigned bucket)
{
    const uint64_t least = hw_size_bucket_least(bucket), most = hw_size_bucket_most(bucket);
    return most == UINT64_MAX ? 4096 : least + below(&drawing->random, most - least + 1);
}

/* Of so many operations, how many are allocations: all others are frees of blocks that are freed at all. */
static uint64_t in_allocations(const struct drawing *drawing, uint64_t operations)
{
    return (uint64_t)((double)operations / (1 + drawing->freed));
}

/* Allocations until a block of BUCKET is freed; UINT64_MAX: it is not. */
static uint64_t draw_life(struct drawing *drawing, unsigned bucket)
{
    const struct hw_mix_bucket *of = &mix.of[bucket];
    uint64_t at = below(&drawing->random, of->kept + freed_of(of));
    for (int k = 0; k < HW_MIX_LIFE_BITS; k++) {
        if (at < of->lives[k])
            return k ? in_allocations(drawing,
                                      ((uint64_t)1 << (k - 1)) + below(&drawing->random, (uint64_t)1 << (k - 1)))
                     : 0;
        at -= of->lives[k];
    }
    return UINT64_MAX;
}

static bool draw_crossing(struct drawing *drawing, unsigned bucket)
{
    return below(&drawing->random, freed_of(&mix.of[bucket])) < mix.of[bucket].crossed;
}

static void emit(struct drawing *drawing, struct event event, bool counts)
{
    event.counts = counts;
    drawing->events[drawing->event_count++] = event;
}

static void emit_frees(struct drawing *drawing, size_t now, bool counts)
{
    for (uint32_t slot = drawing->due[now]; slot != NO_EVENT; slot = drawing->next[slot]) {
        emit(drawing,
             (struct event){.size = drawing->sizes[slot],
                            .slot = slot,
                            .kind = HW_MIX_FREE,
                            .bucket = drawing->buckets[slot],
                            .crosses = drawing->crosses[slot]},
             counts);
        drawing->free_slots[drawing->free_count++] = slot;
        drawing->live[slot] = 0;
        drawing->live_bytes -= drawing->sizes[slot];
    }
}

/* The live block that was allocated last, if it is one of the last few: what grows is mostly fresh. NO_EVENT: none. */
static uint32_t freshest(struct drawing *drawing)
{
    for (unsigned back = 1; back <= RECENT; back++) {
        const uint32_t slot = drawing->recent[(drawing->recent_count - back) % RECENT];
        if (back <= drawing->recent_count && drawing->live[slot])
            return slot;
    }
    return NO_EVENT;
}

/* A reallocation keeps the block's life. False: more memory than may be live at once. */
static bool emit_growth(struct drawing *drawing, const struct choice *choice, uint32_t slot, uint64_t size, bool counts)
{
    if (drawing->live_bytes - drawing->sizes[slot] + size > drawing->live_most)
        return false;
    drawing->live_bytes += size - drawing->sizes[slot];
    drawing->sizes[slot] = size;
    drawing->buckets[slot] = choice->bucket;
    emit(drawing, (struct event){.size = size, .slot = slot, .kind = HW_MIX_REALLOC, .bucket = choice->bucket}, counts);
    return true;
}

/* False: more memory than may be live at once. */
static bool emit_allocation(struct drawing *drawing, size_t now, size_t end, bool parallel, bool counts)
{
    const struct choice *choice = choose(drawing);
    uint64_t size = draw_size(drawing, choice->bucket);
    size += choice->kind == HW_MIX_REALLOC && size == 0; /* else it would be a free */
    const uint64_t life = draw_life(drawing, choice->bucket);
    const uint32_t fresh =
        choice->kind == HW_MIX_REALLOC && below(&drawing->random, 1000) >= mix.fresh ? freshest(drawing) : NO_EVENT;
    if (fresh != NO_EVENT)
        return emit_growth(drawing, choice, fresh, size, counts);
    if (drawing->live_bytes + size > drawing->live_most)
        return false;
    drawing->live_bytes += size;
    const uint32_t slot =
        drawing->free_count ? drawing->free_slots[--drawing->free_count] : (uint32_t)drawing->slot_count++;
    emit(drawing, (struct event){.size = size, .slot = slot, .kind = choice->kind, .bucket = choice->bucket}, counts);
    drawing->recent[drawing->recent_count++ % RECENT] = slot;
    drawing->live[slot] = 1;
    drawing->sizes[slot] = size;
    drawing->buckets[slot] = choice->bucket;
    drawing->crosses[slot] = parallel && draw_crossing(drawing, choice->bucket);
    const uint64_t when = life < end ? now + 1 + life : UINT64_MAX;
    if (when < end) {
        drawing->next[slot] = drawing->due[when];
        drawing->due[when] = slot;
    }
    return true;
}

/* The operations of one thread. *COUNTED: allocations that count. */
static void draw(struct worker *worker, int phase, unsigned number, unsigned threads, uint64_t *counted)
{
    static struct drawing drawing; /* one after the other */
    memset(&drawing, 0, sizeof drawing);
    drawing.random = mix.seed + number * 0x5851f42d4c957f2du + (uint64_t)phase;
    drawing.phase = phase;
    drawing.live_most = mix.live_most / threads;
    cumulate(&drawing);
    const uint64_t own = drawing.total / threads ? drawing.total / threads : 1;
    const size_t count = own < mix.limit / threads ? own : mix.limit / threads + 1;
    const size_t before = own - count < count ? own - count : count; /* of the program's earlier life */
    const size_t all = before + count;
    drawing.due = pages((all + 1) * sizeof *drawing.due);
    memset(drawing.due, 0xff, (all + 1) * sizeof *drawing.due);
    drawing.next = pages(all * sizeof *drawing.next);
    drawing.free_slots = pages(all * sizeof *drawing.free_slots);
    drawing.sizes = pages(all * sizeof *drawing.sizes);
    drawing.buckets = pages(all);
    drawing.crosses = pages(all);
    drawing.live = pages(all);
    drawing.events = pages(2 * all * sizeof *drawing.events);
    *counted = 0;
    for (size_t now = 0; now < all; now++) {
        if (now == before)
            worker->counted_from = drawing.event_count;
        emit_frees(&drawing, now, now >= before);
        if (!emit_allocation(&drawing, now, all, threads > 1, now >= before))
            continue; /* as full as it may be: frees come, and make room */
        *counted += now >= before;
    }
    worker->events = drawing.events;
    worker->event_count = drawing.event_count;
    worker->slots = pages((drawing.slot_count + 1) * sizeof *worker->slots);
    munmap(drawing.due, (all + 1) * sizeof *drawing.due);
    munmap(drawing.next, all * sizeof *drawing.next);
    munmap(drawing.free_slots, all * sizeof *drawing.free_slots);
    munmap(drawing.sizes, all * sizeof *drawing.sizes);
    munmap(drawing.buckets, all);
    munmap(drawing.crosses, all);
    munmap(drawing.live, all);
}

/* ---- doing it ---- */

static void *allocate(const struct event *event, void *before)
{
    void *block = NULL;
    switch (event->kind) {
    case HW_MIX_CALLOC:
        return calloc(1, event->size);
    case HW_MIX_REALLOC:
        return realloc(before, event->size);
    case HW_MIX_ALIGNED:
        return posix_memalign(&block, HW_TOUCH_LINE, event->size) == 0 ? block : NULL;
    default:
        return malloc(event->size);
    }
}

/* Where the kernel notes that another thread got the processor (hw_arch_watch); 0: it does not. */
extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* since glibc 2.35 */
extern const unsigned __rseq_size __attribute__((weak));
static intptr_t watch_offset;

static void find_watch(void)
{
    if (&__rseq_offset && &__rseq_size && __rseq_size)
        watch_offset = __rseq_offset + 8; /* of rseq_cs */
}

static void note(struct cell *cell, uint64_t begin, uint64_t end)
{
    uint64_t spent = end - begin;
    spent = spent > clock_cost ? spent - clock_cost : 0;
    unsigned bin = 63u - (unsigned)__builtin_clzll(spent | 1);
    bin = bin < BINS ? bin : BINS - 1;
    cell->count[bin]++;
    cell->ticks[bin] += spent;
}

static void free_block(struct worker *worker, void *block, unsigned bucket, size_t size, bool counts)
{
    if (!worker->timed || !counts) {
        hw_touch_last(block, size);
        free(block);
        return;
    }
    hw_arch_watch(watch_offset);
    const uint64_t begin = ticks();
    hw_touch_last(block, size);
    const uint64_t middle = ticks();
    free(block);
    const uint64_t end = ticks();
    if (hw_arch_watched(watch_offset))
        return;
    note(&worker->touches[bucket], begin, middle);
    note(&worker->ops[HW_MIX_FREE][bucket], middle, end);
}

static void do_allocation(struct worker *worker, const struct event *event)
{
    void *before = event->kind == HW_MIX_REALLOC ? worker->slots[event->slot] : NULL;
    if (!worker->timed || !event->counts) {
        char *block = worker->slots[event->slot] = allocate(event, before);
        if (block)
            hw_touch_new(block, event->size);
        return;
    }
    hw_arch_watch(watch_offset);
    const uint64_t begin = ticks();
    char *block = worker->slots[event->slot] = allocate(event, before);
    const uint64_t middle = ticks();
    if (block)
        hw_touch_new(block, event->size);
    const uint64_t end = ticks();
    if (hw_arch_watched(watch_offset))
        return;
    note(&worker->ops[event->kind][event->bucket], begin, middle);
    note(&worker->touches[event->bucket], middle, end);
}

/* Leaves a block to the next thread; false: that one is behind. */
static bool give(struct mailbox *box, void *block, unsigned bucket)
{
    const uint32_t head = box->head;
    if (head - __atomic_load_n(&box->tail, __ATOMIC_ACQUIRE) == MAILBOX)
        return false;
    box->of[head % MAILBOX].block = block;
    box->of[head % MAILBOX].bucket = bucket;
    __atomic_store_n(&box->head, head + 1, __ATOMIC_RELEASE);
    return true;
}

static void take_all(struct worker *worker, bool counts)
{
    struct mailbox *box = worker->in;
    const uint32_t head = __atomic_load_n(&box->head, __ATOMIC_ACQUIRE);
    for (uint32_t tail = box->tail; tail != head; tail++) {
        free_block(worker, box->of[tail % MAILBOX].block, box->of[tail % MAILBOX].bucket, 1, counts);
        __atomic_store_n(&box->tail, tail + 1, __ATOMIC_RELEASE);
    }
}

static void *work(void *closure)
{
    struct worker *worker = closure;
    if (worker->start)
        pthread_barrier_wait(worker->start);
    for (size_t i = 0; i < worker->event_count; i++) {
        const struct event *event = &worker->events[i];
        if (i == worker->counted_from) {
            worker->begin_ns = cpu_ns();
            worker->begin = ticks();
        }
        if (worker->in && i % 8 == 0)
            take_all(worker, event->counts);
        if (event->kind != HW_MIX_FREE) {
            do_allocation(worker, event);
            continue;
        }
        void *block = worker->slots[event->slot];
        worker->slots[event->slot] = NULL;
        if (!block || (event->crosses && worker->out && give(worker->out, block, event->bucket)))
            continue;
        free_block(worker, block, event->bucket, event->size, event->counts);
    }
    worker->end = ticks();
    worker->end_ns = cpu_ns();
    return NULL;
}

/* ---- phases ---- */

/* Count and ticks of CELL without what stands out. */
static void sum_cell(const struct cell *cell, uint64_t *count, uint64_t *ticks_sum)
{
    uint64_t all = 0, below_it = 0;
    unsigned median = 0, last;
    for (unsigned bin = 0; bin < BINS; bin++)
        all += cell->count[bin];
    while (median < BINS - 1 && (below_it += cell->count[median]) * 2 < all)
        median++;
    uint64_t above = 0;
    for (last = BINS - 1; last > median + 7; last--) {
        above += cell->count[last];
        if (above * 1000 > all)
            break;
    }
    for (unsigned bin = 0; bin <= last; bin++) {
        *count += cell->count[bin];
        *ticks_sum += cell->ticks[bin];
    }
}

static void print_cells(int phase, const struct worker *workers, unsigned threads, unsigned b)
{
    for (int kind = 0; kind <= HW_MIX_KINDS; kind++) {
        uint64_t count = 0, sum = 0;
        for (unsigned i = 0; i < threads; i++)
            sum_cell(kind < HW_MIX_KINDS ? &workers[i].ops[kind][b] : &workers[i].touches[b], &count, &sum);
        if (count && kind < HW_MIX_KINDS)
            printf("op %d %s %u %llu %llu\n", phase, hw_mix_kind_names[kind], b, (unsigned long long)count,
                   (unsigned long long)sum);
        else if (count)
            printf("touch %d %u %llu %llu\n", phase, b, (unsigned long long)count, (unsigned long long)sum);
    }
}

static void print_phase(int phase, const struct worker *workers, unsigned threads, uint64_t counted)
{
    uint64_t slowest = 0, slowest_ns = 0;
    for (unsigned i = 0; i < threads; i++) {
        const uint64_t spent = workers[i].end - workers[i].begin, spent_ns = workers[i].end_ns - workers[i].begin_ns;
        slowest = spent > slowest ? spent : slowest;
        slowest_ns = spent_ns > slowest_ns ? spent_ns : slowest_ns;
    }
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
        print_cells(phase, workers, threads, b);
    printf("phase %d %llu %llu %llu\n", phase, (unsigned long long)counted, (unsigned long long)slowest,
           (unsigned long long)slowest_ns);
}

static void run_phase(int phase, unsigned threads, bool timed)
{
    if (hw_mix_allocations(&mix, phase) == 0)
        return;
    struct worker *workers = pages(threads * sizeof *workers);
    struct mailbox *boxes = pages(threads * sizeof *boxes);
    pthread_t handles[HW_MIX_THREADS_MOST];
    pthread_barrier_t start;
    uint64_t counted = 0;
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        uint64_t own;
        draw(&workers[i], phase, i, threads, &own);
        counted += own;
        workers[i].timed = timed;
        workers[i].start = phase == HW_MIX_PARALLEL ? &start : NULL;
        workers[i].in = threads > 1 ? &boxes[i] : NULL;
        workers[i].out = threads > 1 ? &boxes[(i + 1) % threads] : NULL;
    }
    if (phase == HW_MIX_SERIAL) {
        work(&workers[0]);
    } else {
        for (unsigned i = 0; i < threads; i++)
            if (pthread_create(&handles[i], NULL, work, &workers[i]) != 0)
                _exit(3);
        for (unsigned i = 0; i < threads; i++)
            pthread_join(handles[i], NULL);
    }
    if (counted)
        print_phase(phase, workers, threads, counted);
}

static void calibrate(void)
{
    clock_cost = UINT64_MAX;
    for (int i = 0; i < 2000; i++) {
        const uint64_t begin = ticks(), spent = ticks() - begin;
        clock_cost = spent < clock_cost ? spent : clock_cost;
    }
}

static bool read_mix(void)
{
    const size_t room = 4 << 20;
    char *text = pages(room);
    size_t used = 0;
    for (ssize_t got; used < room - 1 && (got = read(0, text + used, room - 1 - used)) > 0;)
        used += (size_t)got;
    const bool fine = hw_mix_parse(&mix, text);
    munmap(text, room);
    return fine;
}

int main(int argc, char **argv)
{
    static char output[1 << 16]; /* stdio must not ask the allocator for it */
    alarm(SECONDS_MOST);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    if (!read_mix()) {
        fputs("heapwise-replay: the mix cannot be read\n", stderr);
        return 2;
    }
    const bool timed = argc < 2 || strcmp(argv[1], "plain") != 0;
    calibrate();
    find_watch();
    run_phase(HW_MIX_SERIAL, 1, timed);
    run_phase(HW_MIX_PARALLEL, mix.threads, timed);
    return fflush(stdout) == 0 ? 0 : 1;
}
