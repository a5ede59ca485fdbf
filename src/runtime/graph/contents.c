/* contents.c - what live blocks hold: copies of other blocks, zeros, what was never written, ends that are not used.
 *
 * One walk over all blocks. Each is read where it is, by pages where some of them may not be there. A block that holds
 * something goes into a table of contents by its hash, and is a copy when the table has it: size and bytes are in 64
 * bits, with a key that is new in each process, so that data cannot be made to be alike. (To compare the bytes took two
 * thirds of the time: blocks with the same content lie anywhere.)
 *
 * The table takes a thirteenth of the heap. If it cannot hold all contents, the walk goes on and only counts roughly
 * how often each content occurs (a sketch of small counters, never too low). A second walk has only contents in the
 * table that may occur more than once. If it gets full all the same, those that occur rarely and are small stay only if
 * their hash is among those of a sample, half as many each time, and stand for those that went. Sums are estimates then
 * (unbiased), with an error that is known; contents that occur often or are large are exact. If even those do not
 * suffice they are sampled alike. */
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/graph/content_bytes.h"
#include "runtime/graph/internal.h"
#include "runtime/heap/heap.h"

#include <sys/random.h>
#include <sys/uio.h>

#define TABLE_LEAST     (1ul << 20)
#define TABLE_SHARE     13 /* of the heap; besides it there are sums, and frequent contents */
#define FREQUENT_LEAST  256u
#define FREQUENT_SHARE  64
#define FREQUENT        16u /* contents of a context that are known */
#define EXAMPLES        10u /* of them, into the file */
#define LEVEL_MOST      15u
#define COUNT_BITS      27
#define COUNT_MOST      ((1u << COUNT_BITS) - 1)
#define STAYS           (1u << COUNT_BITS)
#define LEVEL_SHIFT     (COUNT_BITS + 1)
#define SKETCH_SHARE    32           /* of the heap, if it is needed */
#define CELLS           128u         /* of 4 bits, in a cache line of the sketch */
#define OFTEN           15u          /* a content that occurs at least so often stays in the table, */
#define LARGE           1024u        /* and so does a large one: there are not too many */
#define IN_LINE         4u           /* contents in a cache line */
#define AT_ONCE         128u         /* blocks whose memory accesses overlap */
#define SLOTS_AHEAD     64u          /* of the table, whose lines of the sketch are asked for */
#define HUGE_LEAST      (4ul << 20)  /* of a table in huge pages */
#define IN_ONE          (64ul << 10) /* larger blocks are read by pages */
#define TAIL_LEAST      16u
#define UNREADABLE_MOST (1ul << 36) /* spans that nobody may read and that may hold blocks */

/* A content. */
struct content {
    uint64_t hash;    /* 0: empty */
    uint32_t context; /* of the first block that has it */
    uint32_t count;   /* blocks (27), STAYS, level (4) */
};

/* The most frequent contents of a context, or of all. Space saving (Metwally et al.): one that comes in takes the place
 * and the count of the least frequent one, so each that is more than a 16th of all is among them. */
struct known {
    uint64_t address, size, hash; /* of one block that has it */
    uint32_t count;               /* at most so many copies, */
    uint32_t error;               /* and so many less at least */
};
struct frequent {
    struct known of[FREQUENT];
    uint64_t least; /* of the counts */
};

struct pending {
    uintptr_t address;
    uint64_t size;
    uint32_t context;
};

struct candidate {
    uintptr_t address;
    uint64_t size, hash, absent, filling, zeros, end; /* zeros, end: as avoidable */
    uint32_t context;
};

/* Of the estimate of a context's copies. */
struct spread {
    double variance;
    uint64_t blocks, bytes; /* that may be copies, and were left out */
};

enum phase {
    PHASE_ALL,   /* the table holds all contents, until it is full */
    PHASE_COUNT, /* into the sketch */
    PHASE_KNOWN, /* the table holds those that occur several times */
};

static struct {
    struct hw_contents *sum; /* by context */
    uint32_t *frequent_of;   /* by context: index + 1 */
    uint32_t contexts;
    struct frequent *frequent;
    uint32_t frequent_count, frequent_most;
    struct content *table;
    uint64_t slots, used, room; /* room: it is full then */
    uint32_t level;
    enum phase phase;
    bool full;
    bool always; /* what occurs often or is large enters: there was room for all of that so far */
    uint8_t (*sketch)[CELLS / 2];
    uint64_t sketch_lines;
    struct spread *spread; /* by context */
    struct spread all;
    struct pending pending[AT_ONCE];
    struct candidate candidate[AT_ONCE];
    uint32_t waiting, candidates;
    struct frequent most_frequent; /* of all */
    uintptr_t there, there_end;    /* pages that can be read where they are */
    bool filled, pools;
    struct hw_content_info info;
    /* near the peak: */
    bool kept; /* what is in the file */
    bool written;
    uint64_t next_live, next_ns;
} contents;

uint64_t hw_content_key[4];

void hw_contents_fill(void *block, size_t size)
{
    char *at = block;
    if (size > HW_CONTENTS_FILL_MOST)
        return;
    for (; size && (uintptr_t)at & 7; at++, size--)
        *at = filling_at((uintptr_t)at);
    for (const uint64_t word = FILL; size >= 8; at += 8, size -= 8)
        __builtin_memcpy(at, &word, 8);
    for (; size; at++, size--)
        *at = filling_at((uintptr_t)at);
}

/* ---- pages ---- */

/* Private memory, all of it there: it can be read where it is. */
static bool is_plain(uintptr_t address, uint64_t size)
{
    if (size > IN_ONE)
        return false;
    if (address >= contents.there && address + size <= contents.there_end)
        return true;
    const struct hw_span *span = hw_span_of(address);
    if (!span || !span->readable || span->file || address + size > span->end)
        return false;
    const uintptr_t begin = address & ~(HW_PAGE - 1),
                    most = address + IN_ONE < span->end ? address + IN_ONE : span->end;
    uintptr_t page = begin;
    while (page < most && hw_page_state(page) == HW_PAGE_THERE)
        page += HW_PAGE;
    contents.there = begin;
    contents.there_end = page < span->end ? page : span->end;
    return address + size <= page;
}

enum page_found { PAGE_READ, PAGE_ABSENT, PAGE_SWAPPED, PAGE_UNREADABLE };

/* The rest of the page at AT; *BYTES are in place, or in BUFFER. */
static enum page_found read_page(uintptr_t at, uintptr_t end, char *buffer, const char **bytes)
{
    const struct hw_span *span = hw_span_of(at);
    if (!span || !span->readable)
        return PAGE_UNREADABLE;
    const enum hw_page_state state = hw_page_state(at);
    if (state == HW_PAGE_SWAPPED)
        return PAGE_SWAPPED;
    if (state == HW_PAGE_ABSENT && !span->file)
        return PAGE_ABSENT;
    if (state != HW_PAGE_THERE)
        return PAGE_UNREADABLE;
    *bytes = (const char *)at;
    if (!span->file)
        return PAGE_READ;
    *bytes = buffer;
    const uint32_t pid = hw_getpid();
    const struct iovec to = {buffer, end - at}, from = {(void *)at, end - at};
    return hw_sys(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0) == (long)(end - at) ? PAGE_READ : PAGE_UNREADABLE;
}

static inline uintptr_t end_of_page(uintptr_t at, uintptr_t end)
{
    const uintptr_t next = (at | (HW_PAGE - 1)) + 1;
    return next < end ? next : end;
}

/* ---- memory ---- */

/* Room for COUNT entries of SIZE bytes; MOST so far. */
static bool room_for(void **of, uint64_t *most, uint64_t count, size_t size)
{
    if (count > *most) {
        *of = hw_own_pages(count * size, true);
        *most = *of ? count : 0;
    }
    return *of != NULL;
}

static struct {
    uint64_t sums, indexes, frequent, slots, spreads, sketch; /* that there is room for */
} room;

static uint64_t live_bytes(void)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++)
        bytes += HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i)->live_bytes;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static bool prefer_huge(void *memory, uint64_t bytes)
{
    if (bytes >= HUGE_LEAST)
        hw_madvise(memory, bytes, MADV_HUGEPAGE);
    return true;
}

/* ---- the table ---- */

#define ADDRESS_MASK ((1ul << HW_ARCH_ADDRESS_BITS) - 1)

static uint32_t level_of(const struct content *content)
{
    return content->count >> LEVEL_SHIFT;
}

static uint32_t count_of(const struct content *content)
{
    return content->count & COUNT_MOST;
}

/* The first slot of a cache line. */
static inline uint64_t home_of(uint64_t hash)
{
    return (uint64_t)((unsigned __int128)hash * (contents.slots / IN_LINE) >> 64) * IN_LINE;
}

static inline uint64_t next_slot(uint64_t slot)
{
    return slot + 1 == contents.slots ? 0 : slot + 1;
}

static bool is_sampled(uint64_t hash)
{
    return !(hash & ((1ul << contents.level) - 1));
}

/* Half as many contents; of all of them, or of those that occurred once. */
static void thin_out(bool all)
{
    contents.level++;
    uint64_t slot = 0;
    while (contents.table[slot].hash)
        slot++; /* there are empty ones */
    for (uint64_t i = 0; i < contents.slots; i++, slot = next_slot(slot)) {
        struct content content = contents.table[slot];
        if (!content.hash)
            continue;
        contents.table[slot].hash = 0;
        if (all || (count_of(&content) < 2 && !(content.count & STAYS))) {
            if (!is_sampled(content.hash)) {
                contents.used--;
                continue;
            }
            content.count = (content.count & (STAYS | COUNT_MOST)) | contents.level << LEVEL_SHIFT;
        }
        uint64_t to = home_of(content.hash);
        while (contents.table[to].hash)
            to = next_slot(to);
        contents.table[to] = content;
    }
}

/* ---- how often a content occurs, roughly ---- */

static uint8_t *line_of(uint64_t hash)
{
    return contents.sketch[(uint64_t)((unsigned __int128)(hash * 0x9e3779b97f4a7c15ul) * contents.sketch_lines >> 64)];
}

static uint32_t cell(const uint8_t *line, uint32_t index)
{
    return line[index / 2] >> index % 2 * 4 & 15;
}

static uint32_t occurs(uint64_t hash)
{
    const uint8_t *line = line_of(hash);
    const uint32_t first = cell(line, hash >> 20 & (CELLS - 1)), second = cell(line, hash >> 27 & (CELLS - 1));
    return first < second ? first : second;
}

static void raise(uint64_t hash)
{
    uint8_t *line = line_of(hash);
    const uint32_t index[2] = {hash >> 20 & (CELLS - 1), hash >> 27 & (CELLS - 1)}, least = occurs(hash);
    for (uint32_t i = 0; i < 2 && least < OFTEN; i++)
        if (cell(line, index[i]) == least) /* once, if both are the same */
            line[index[i] / 2] = (uint8_t)(line[index[i] / 2] + (1u << index[i] % 2 * 4));
}

static bool make_sketch(void)
{
    contents.sketch_lines = live_bytes() / SKETCH_SHARE / sizeof *contents.sketch + 1;
    const uint64_t bytes = contents.sketch_lines * sizeof *contents.sketch;
    if (!room_for((void **)&contents.sketch, &room.sketch, contents.sketch_lines, sizeof *contents.sketch))
        return false;
    contents.info.memory_bytes += bytes;
    return prefer_huge(contents.sketch, bytes);
}

/* The table cannot hold all contents: from here on the walk counts, beginning with what the table has. */
static void begin_to_count(void)
{
    contents.full = !make_sketch();
    if (contents.full)
        return;
    contents.phase = PHASE_COUNT;
    for (uint64_t slot = 0; slot < contents.slots; slot++) {
        const struct content *content = &contents.table[slot], *ahead = content + SLOTS_AHEAD;
        if (slot + SLOTS_AHEAD < contents.slots && ahead->hash)
            __builtin_prefetch(line_of(ahead->hash), 1);
        const uint32_t count = content->hash ? count_of(content) : 0;
        for (uint32_t i = 0; i < count && i < OFTEN; i++)
            raise(content->hash);
    }
    hw_own_give_back(contents.table, contents.slots * sizeof *contents.table);
}

static void make_way(void)
{
    if (contents.phase == PHASE_ALL) {
        begin_to_count();
        return;
    }
    while (contents.used >= contents.room && contents.level < LEVEL_MOST) {
        thin_out(false);
        if (contents.used >= contents.room / 8 * 7 && contents.level < LEVEL_MOST) {
            thin_out(true);
            contents.always = false;
        }
    }
}

/* CANDIDATE is one more copy, of the content that COUNT blocks have so far. */
static void remember(struct frequent *frequent, const struct candidate *candidate, uint32_t count)
{
    struct known *to = frequent->of;
    if (count - 1 <= frequent->least) /* not more than all that are known */
        return;
    for (uint32_t i = 0; i < FREQUENT; i++) {
        struct known *at = &frequent->of[i];
        if (at->hash == candidate->hash) {
            to = at;
            break;
        }
        to = at->count < to->count ? at : to;
    }
    if (to->hash != candidate->hash)
        *to = (struct known){candidate->address, candidate->size, candidate->hash, to->count, to->count};
    to->count += to->count < COUNT_MOST;
    frequent->least = UINT64_MAX;
    for (uint32_t i = 0; i < FREQUENT; i++)
        frequent->least = frequent->of[i].count < frequent->least ? frequent->of[i].count : frequent->least;
}

static void remember_here(const struct candidate *candidate, uint32_t count)
{
    uint32_t *index = &contents.frequent_of[candidate->context];
    if (!*index) {
        if (contents.frequent_count == contents.frequent_most)
            return;
        *index = ++contents.frequent_count;
    }
    remember(&contents.frequent[*index - 1], candidate, count);
}

static void add_copy(const struct candidate *candidate, struct content *content)
{
    struct hw_contents *sum = &contents.sum[candidate->context];
    const uint64_t times = 1ul << level_of(content);
    uint32_t count = count_of(content);
    if (count == 1)
        contents.sum[content->context].repeated += times;
    if (count < COUNT_MOST) {
        content->count++;
        count++;
    }
    sum->identical_blocks += times;
    sum->identical_bytes += times * candidate->size;
    sum->avoidable_copies += times * (candidate->size - candidate->absent - candidate->filling);
    sum->avoidable_bytes += times * candidate->filling;
    if (times > 1) {
        /* COUNT - 1 copies make a square of so much more than one less did. */
        const double bytes = (double)candidate->size, more = 2.0 * count - 3,
                     variance = more * bytes * bytes * (double)times * (double)(times - 1);
        contents.spread[candidate->context].variance += variance;
        contents.all.variance += variance;
    }
    remember_here(candidate, count);
    remember(&contents.most_frequent, candidate, count);
}

/* CANDIDATE is no copy; it stands for TIMES of its kind. */
static void add_parts(const struct candidate *candidate, uint64_t times)
{
    contents.sum[candidate->context].avoidable_zeros += times * candidate->zeros;
    contents.sum[candidate->context].avoidable_ends += times * candidate->end;
}

/* The content with HASH, or an empty slot. */
static struct content *find(uint64_t hash)
{
    uint64_t slot = home_of(hash);
    while (contents.table[slot].hash && contents.table[slot].hash != hash)
        slot = next_slot(slot);
    return &contents.table[slot];
}

static void leave_out(const struct candidate *candidate)
{
    struct spread *const spreads[] = {&contents.spread[candidate->context], &contents.all};
    for (size_t i = 0; i < 2; i++) {
        spreads[i]->blocks++;
        spreads[i]->bytes += candidate->size;
    }
}

/* CANDIDATE may occur TIMES times. */
static void enter(const struct candidate *candidate, uint32_t times)
{
    struct content *content = find(candidate->hash);
    if (content->hash) {
        add_copy(candidate, content);
        return;
    }
    const bool stays = times >= OFTEN || candidate->size >= LARGE;
    const uint32_t level = contents.always && stays ? 0 : contents.level;
    /* A content that is not sampled may be a copy, for which those stand that are: its end must not count as well. */
    if ((level && !is_sampled(candidate->hash)) || contents.used >= contents.room) {
        leave_out(candidate);
        return;
    }
    add_parts(candidate, 1ul << level);
    *content = (struct content){candidate->hash, candidate->context, level << LEVEL_SHIFT | (stays ? STAYS : 0) | 1};
    if (++contents.used >= contents.room)
        make_way();
}

/* ---- a block ---- */

struct reading {
    uint64_t hash;
    uint64_t used;   /* bytes up to the last one in use */
    uint64_t absent; /* on pages that are not there: all of them, and of those behind the used part */
    uint64_t absent_behind;
    uint64_t filling;           /* as they were filled */
    uint64_t zeros, zeros_then; /* pages of zeros that are there: before the used end, and since */
    uint64_t unread, swapped;
};

static inline struct reading read_plain(uintptr_t address, uint64_t size)
{
    struct reading reading = {0};
    const char *at = (const char *)address;
    reading.used = used_of(at, address, size, contents.filled);
    reading.filling = contents.filled ? filling_of(at, address, size) : 0;
    if (reading.used) {
        struct hash hash = hash_begin(size);
        const size_t left = hash_whole(&hash, at, size);
        reading.hash = hash_end(&hash, at + size - left, left);
        reading.zeros = reading.used > HW_PAGE ? zero_pages_in(at, reading.used) : 0;
    }
    return reading;
}

static struct reading read_by_pages(uintptr_t address, uint64_t size)
{
    struct reading reading = {0};
    static char buffer[HW_PAGE];
    struct hash hash = hash_begin(size);
    const char *bytes = NULL;
    for (uintptr_t at = address, end; at < address + size; at = end) {
        end = end_of_page(at, address + size);
        const enum page_found found = read_page(at, end, buffer, &bytes);
        if (found == PAGE_READ) {
            const size_t used = used_of(bytes, at, end - at, contents.filled);
            const size_t filling = contents.filled ? filling_of(bytes, at, end - at) : 0;
            reading.filling += filling;
            if (used) {
                reading.used = at - address + used;
                reading.zeros += reading.zeros_then;
                reading.zeros_then = reading.absent_behind = 0;
            } else if (end - at == HW_PAGE && !filling)
                reading.zeros_then += HW_PAGE;
            hash_piece(&hash, bytes, end - at);
        } else if (found == PAGE_ABSENT) {
            reading.absent += end - at;
            reading.absent_behind += end - at;
            hash_right(&hash, end - address, 1); /* not what zeros are that take memory */
        } else {
            reading.unread += end - at;
            reading.swapped += found == PAGE_SWAPPED ? end - at : 0;
        }
    }
    reading.hash = hash_end(&hash, hash.bytes, hash.kept);
    return reading;
}

static void examine_one(const struct pending *block)
{
    const uintptr_t address = block->address;
    const uint64_t size = block->size;
    struct hw_contents *sum = &contents.sum[block->context];
    sum->blocks++;
    sum->bytes += size;
    contents.info.blocks += !contents.pools;
    contents.info.bytes += contents.pools ? 0 : size;
    if (!size)
        return;
    const struct reading reading = is_plain(address, size) ? read_plain(address, size) : read_by_pages(address, size);
    sum->never_written_bytes += reading.absent + reading.filling;
    sum->absent_bytes += reading.absent;
    if (reading.unread) {
        sum->unread_bytes += reading.unread;
        contents.info.unread_bytes += reading.unread;
        contents.info.swapped_bytes += reading.swapped;
        return;
    }
    const uint64_t there = size - reading.absent, zeros = there - reading.filling;
    if (!reading.used) {
        sum->zero_blocks += zeros != 0;
        sum->zero_bytes += zeros;
        sum->avoidable_zeros += zeros;
        sum->avoidable_bytes += reading.filling;
        return;
    }
    const uint64_t tail = size - reading.used;
    struct candidate candidate = {.address = address,
                                  .size = size,
                                  .absent = reading.absent,
                                  .filling = reading.filling,
                                  .zeros = reading.zeros,
                                  .hash = reading.hash,
                                  .context = block->context};
    sum->zero_bytes += reading.zeros;
    if (tail >= TAIL_LEAST) {
        sum->tail_blocks++;
        sum->unused_tail_bytes += tail;
        if (tail >= 2 * TAIL_LEAST && tail * 4 >= size)
            candidate.end = tail - reading.absent_behind;
    }
    if (contents.phase == PHASE_ALL)
        __builtin_prefetch(&contents.table[home_of(candidate.hash)], 1);
    else
        __builtin_prefetch(line_of(candidate.hash), 1);
    contents.candidate[contents.candidates++] = candidate;
}

/* Those that occur once are not in the table: it is not read for them. */
static void enter_known(void)
{
    uint32_t kept = 0;
    uint8_t times[AT_ONCE];
    for (uint32_t i = 0; i < contents.candidates; i++) {
        const struct candidate *candidate = &contents.candidate[i];
        times[kept] = (uint8_t)occurs(candidate->hash);
        if (times[kept] < 2) {
            add_parts(candidate, 1);
            continue;
        }
        __builtin_prefetch(&contents.table[home_of(candidate->hash)], 1);
        contents.candidate[kept++] = *candidate;
    }
    for (uint32_t i = 0; i < kept; i++)
        enter(&contents.candidate[i], times[i]);
}

static void examine_waiting(void)
{
    for (uint32_t i = 0; i < contents.waiting; i++)
        examine_one(&contents.pending[i]);
    if (contents.phase == PHASE_KNOWN)
        enter_known();
    else
        for (uint32_t i = 0; i < contents.candidates && !contents.full; i++)
            if (contents.phase == PHASE_ALL) /* it may end with any of them */
                enter(&contents.candidate[i], 2);
            else
                raise(contents.candidate[i].hash);
    contents.waiting = contents.candidates = 0;
}

static void examine(void *pointer, const struct hw_block *block)
{
    const uintptr_t address = (uintptr_t)pointer, end = address + block->size;
    if (block->context >= contents.contexts || end < address || end > ADDRESS_MASK || contents.full)
        return;
    __builtin_prefetch(pointer);
    __builtin_prefetch((const char *)pointer + (block->size < 256 ? block->size : 256) - 1);
    contents.pending[contents.waiting++] = (struct pending){address, block->size, block->context};
    if (contents.waiting == AT_ONCE)
        examine_waiting();
}

static void examine_span(const struct hw_span *span)
{
    if (!span->own && !(span->end >> HW_ARCH_ADDRESS_BITS) &&
        (span->readable || span->writable || span->end - span->start <= UNREADABLE_MOST))
        hw_blocks_each_mapped(span->start, span->end, examine);
}

/* ---- what is left ---- */

static bool put(enum hw_pool_id pool, const void *entry, size_t size)
{
    const uint32_t index = hw_pool_take(pool, 1);
    if (index != HW_NONE)
        __builtin_memcpy(hw_pools[pool].base + (uint64_t)index * size, entry, size);
    return index != HW_NONE;
}

static void put_example(uint32_t context, uint64_t address, uint64_t size, uint64_t copies, uint64_t here)
{
    static char buffer[HW_PAGE];
    struct hw_content_example example = {.context = context, .size = size, .copies = copies, .here = here};
    const uint64_t most = size < sizeof example.bytes ? size : sizeof example.bytes;
    for (uintptr_t at = address, end; hw_options.contents_samples && at < address + most; at = end) {
        const char *bytes = NULL;
        end = end_of_page(at, address + most);
        if (read_page(at, end, buffer, &bytes) != PAGE_READ)
            break;
        __builtin_memcpy(example.bytes + (at - address), bytes, end - at);
        example.shown = (uint32_t)(end - address);
    }
    if (contents.filled) /* what is Heapwise's own tells nothing */
        while (example.shown > 1 &&
               example.bytes[example.shown - 1] == (uint8_t)filling_at(address + example.shown - 1))
            example.bytes[--example.shown] = 0;
    put(HW_POOL_CONTENT_EXAMPLES, &example, sizeof example);
}

static uint32_t copies_of(uint64_t hash)
{
    return count_of(find(hash)); /* 0: it was thinned out */
}

/* Into the file, the most frequent first; CONTEXT may be HW_NONE. */
static void put_frequent(uint32_t context, struct frequent *frequent)
{
    for (uint32_t rank = 0; rank < EXAMPLES; rank++) {
        struct known *most = frequent->of;
        for (uint32_t i = 1; i < FREQUENT; i++)
            if (frequent->of[i].count - frequent->of[i].error > most->count - most->error)
                most = &frequent->of[i];
        const uint32_t here = most->count - most->error, copies = copies_of(most->hash);
        if (!here)
            return;
        put_example(context, most->address, most->size, copies ? copies : here + 1, context == HW_NONE ? 0 : here);
        most->count = most->error;
    }
}

static void forget(void)
{
    hw_pool_forget(HW_POOL_CONTENTS);
    hw_pool_forget(HW_POOL_CONTENT_EXAMPLES);
    hw_pool_forget(HW_POOL_CONTENT_INFO);
    contents.kept = false;
}

static uint64_t at_most(uint64_t bytes, uint64_t most)
{
    return bytes < most ? bytes : most;
}

static double root_of(double square)
{
    double root = square > 1 ? square : 1;
    for (double next = (root + square / root) / 2; next < root; next = (root + square / root) / 2)
        root = next;
    return square > 0 ? root : 0;
}

/* Of the sum over copies of several contents, in 95 % of cases. If none was seen: so many contents may all have been
 * left out. */
static uint64_t error_of(const struct spread *spread)
{
    if (spread->variance > 0)
        return (uint64_t)(1.96 * root_of(spread->variance)) + 1;
    return spread->blocks ? at_most((3ul << contents.level) * (spread->bytes / spread->blocks), spread->bytes) : 0;
}

/* Estimates may be more than there is. So far the avoidable bytes are those that were never written. */
static void complete(struct hw_contents *sum)
{
    const uint64_t there = sum->bytes - sum->absent_bytes;
    uint64_t rest = there - at_most(sum->avoidable_bytes, there);
    sum->identical_bytes = at_most(sum->identical_bytes, sum->bytes);
    rest -= sum->avoidable_copies = at_most(sum->avoidable_copies, rest);
    rest -= sum->avoidable_zeros = at_most(sum->avoidable_zeros, rest);
    rest -= sum->avoidable_ends = at_most(sum->avoidable_ends, rest);
    sum->avoidable_bytes = there - rest;
}

static void write(void)
{
    forget();
    for (uint32_t context = 0; context < contents.contexts; context++) {
        struct hw_contents *sum = &contents.sum[context];
        sum->context = context;
        sum->identical_error = error_of(&contents.spread[context]);
        complete(sum);
        if (sum->blocks && !put(HW_POOL_CONTENTS, sum, sizeof *sum))
            contents.info.unwritten_bytes += sum->bytes;
    }
    for (uint32_t context = 0; context < contents.contexts; context++)
        if (contents.frequent_of[context])
            put_frequent(context, &contents.frequent[contents.frequent_of[context] - 1]);
    put_frequent(HW_NONE, &contents.most_frequent); /* behind those of contexts, which readers find by their order */
    contents.info.identical_error = error_of(&contents.all);
    contents.written = put(HW_POOL_CONTENT_INFO, &contents.info, sizeof contents.info);
    hw_pool_publish(HW_POOL_CONTENTS);
    hw_pool_publish(HW_POOL_CONTENT_EXAMPLES);
    hw_pool_publish(HW_POOL_CONTENT_INFO);
}

/* ---- the walk ---- */

/* Nobody can know it beforehand. */
static void make_key(void)
{
    if (hw_sys(SYS_getrandom, hw_content_key, sizeof hw_content_key, GRND_NONBLOCK) != sizeof hw_content_key)
        for (size_t i = 0; i < sizeof hw_content_key / sizeof *hw_content_key; i++)
            hw_content_key[i] = fold(hw_ticks_raw() ^ (uintptr_t)&contents, 0x9e3779b97f4a7c15ul ^ hw_content_key[i]);
}

static bool make_room(void)
{
    make_key();
    const uint64_t live = live_bytes();
    const uint64_t bytes = live / TABLE_SHARE > TABLE_LEAST ? live / TABLE_SHARE : TABLE_LEAST;
    const uint64_t frequent = live / FREQUENT_SHARE / sizeof *contents.frequent;
    contents.contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    contents.slots = bytes / sizeof *contents.table;
    contents.slots -= contents.slots % IN_LINE;
    contents.room = contents.slots / 8 * 5;
    contents.frequent_most = frequent < contents.contexts ? (uint32_t)frequent : contents.contexts;
    contents.frequent_most = contents.frequent_most > FREQUENT_LEAST ? contents.frequent_most : FREQUENT_LEAST;
    contents.filled = hw_options.contents_fill != 0;
    contents.info.memory_bytes = bytes;
    return room_for((void **)&contents.sum, &room.sums, contents.contexts, sizeof *contents.sum) &&
           room_for((void **)&contents.frequent_of, &room.indexes, contents.contexts, sizeof *contents.frequent_of) &&
           room_for((void **)&contents.frequent, &room.frequent, contents.frequent_most, sizeof *contents.frequent) &&
           room_for((void **)&contents.spread, &room.spreads, contents.contexts, sizeof *contents.spread) &&
           room_for((void **)&contents.table, &room.slots, contents.slots, sizeof *contents.table) &&
           prefer_huge(contents.table, bytes);
}

/* It is zero when it is used again. */
static void give_back(void)
{
    hw_own_give_back(contents.sum, room.sums * sizeof *contents.sum);
    hw_own_give_back(contents.frequent_of, room.indexes * sizeof *contents.frequent_of);
    hw_own_give_back(contents.frequent, room.frequent * sizeof *contents.frequent);
    hw_own_give_back(contents.table, room.slots * sizeof *contents.table);
    hw_own_give_back(contents.spread, room.spreads * sizeof *contents.spread);
}

static void examine_in_pool(void *address, const struct hw_block *block)
{
    examine(address, block);
}

static void examine_all(enum phase phase)
{
    contents.phase = phase;
    contents.always = phase == PHASE_KNOWN;
    contents.full = contents.pools = false;
    contents.frequent_count = contents.waiting = contents.candidates = contents.level = 0;
    contents.used = contents.there = contents.there_end = 0;
    contents.most_frequent = (struct frequent){0};
    contents.all = (struct spread){0};
    contents.info.blocks = contents.info.bytes = contents.info.unread_bytes = contents.info.swapped_bytes = 0;
    hw_spans_each(examine_span);
    hw_blocks_each(examine, true);
    examine_waiting();
    contents.pools = true;
    hw_pool_harvest(examine_in_pool);
    examine_waiting();
}

/* What occurs several times, if the table could not hold all contents. */
static void examine_again(void)
{
    give_back();
    examine_all(PHASE_KNOWN);
    hw_own_give_back(contents.sketch, room.sketch * sizeof *contents.sketch);
}

static bool walk(uint64_t begin)
{
    bool fine = hw_scan_begin() && make_room();
    if (fine) {
        if (!hw_page_states_begin())
            contents.info.flags |= HW_CONTENT_BLIND;
        examine_all(PHASE_ALL);
        fine = !contents.full;
        if (fine && contents.phase == PHASE_COUNT)
            examine_again();
        if (fine) {
            contents.info.sampled = contents.level;
            contents.info.distinct = contents.used;
            contents.info.duration_ns = hw_clock_monotonic_ns() - begin;
            write();
        }
        hw_page_states_end();
    }
    give_back();
    hw_scan_end();
    return fine;
}

void hw_contents_examine(enum hw_memory_moment moment, bool calm)
{
    if (!hw_options.contents || hw_quiet || (contents.kept && moment != HW_MOMENT_PEAK))
        return;
    if (hw_runtime.weighted) {
        hw_note(HW_NOTE_OTHER, "contents were not examined: not every block is known in this mode");
        return;
    }
    const uint64_t begin = hw_clock_monotonic_ns();
    contents.info = (struct hw_content_info){.tick = hw_ticks_raw() - hw_runtime.tick_base,
                                             .moment = moment,
                                             .threshold = hw_options.contents_peak,
                                             .flags = (hw_options.contents_fill ? HW_CONTENT_FILLED : 0) |
                                                      (hw_options.contents_samples ? HW_CONTENT_SAMPLES : 0) |
                                                      (calm ? HW_CONTENT_CALM : 0)};
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const struct hw_stopped_threads *threads = hw_threads_freeze();
    contents.info.threads_missed = threads->missed;
    contents.info.missed_error = (uint32_t)threads->error;
    const bool fine = walk(begin);
    hw_threads_thaw();
    contents.kept = fine && moment == HW_MOMENT_PEAK;
    if (moment == HW_MOMENT_PEAK) {
        const uint64_t now = hw_clock_monotonic_ns(), live = live_bytes();
        contents.next_live = live + live / 8;
        contents.next_ns = now + hw_budget_pause(HW_BUDGET_CONTENTS, now - begin, 0);
    }
    hw_lock_drop(&hw_runtime.lock, old);
    if (!fine)
        hw_note(HW_NOTE_OTHER, "contents were not examined: there was no memory for it, or no /proc");
    else if (!contents.written)
        hw_note(HW_NOTE_OTHER, "contents were not examined: the file could not grow");
}

bool hw_contents_due(void)
{
    if (!hw_options.contents || !hw_options.contents_peak)
        return false;
    const int64_t live = __atomic_load_n(&hw_runtime.process->live_bytes, __ATOMIC_RELAXED);
    const uint64_t least =
        hw_options.contents_peak > contents.next_live ? hw_options.contents_peak : contents.next_live;
    return live > 0 && (uint64_t)live >= least && hw_clock_monotonic_ns() >= contents.next_ns;
}

void hw_contents_forget_dump(void)
{
    if (hw_options.contents && !contents.kept)
        forget();
}

void hw_contents_restart(void)
{
    contents.next_live = contents.next_ns = 0;
    if (hw_options.contents)
        forget();
}
