/* pages.c - the live heap page by page: which blocks keep pages resident, and what lies between them.
 *
 * Mappings with live blocks are walked once, in the order of addresses. A cursor goes from page to page: what it passes
 * without a block is kept by the allocator. The contexts of one page stand in a small list until the cursor leaves it;
 * its free bytes are shared equally among them. That is the Shapley value of a game in which each context frees the
 * page as soon as it is the last one there.
 *
 * Memory: the index of blocks (blocks_index.c, 1 % of a full heap), sums by context, and a table of the sets of
 * contexts that share pages. */
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/graph/internal.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"

#define CHUNK_BYTES    (2ul << 20)
#define CHUNK_PAGES    (CHUNK_BYTES / HW_PAGE)
#define ON_PAGE        (HW_PAGE / 8) /* blocks */
#define GROUP_SLOTS    16384u        /* a power of two */
#define GROUPS_MOST    (GROUP_SLOTS / 4 * 3)
#define GROUPS_WRITTEN 4096u
#define HEAP_BYTES     (64ul << 20) /* glibc's HEAP_MAX_SIZE */
#define NOWHERE        UINTPTR_MAX

/* Bits that glibc keeps in the size of a chunk. */
#define CHUNK_MAPPED 2u
#define CHUNK_ARENA  4u /* not the main one */

enum { RESIDENT = 1, SWAPPED = 2 };

struct sum {
    struct hw_pin pin;
    uint64_t page; /* number of the page that it was last seen on */
    uint32_t slot; /* in its list */
};

/* A piece of address space, larger than a page, that is being walked. */
struct piece {
    uintptr_t at; /* NOWHERE: none */
    uint64_t resident, live, kept;
    bool counts; /* it is one of its unit */
};
static const uint8_t piece_shift[HW_PIECE_UNITS] = {
    [HW_PIECE_HUGE_PAGE] = 21, [HW_PIECE_GLIBC_HEAP] = 26, [HW_PIECE_SEGMENT] = 25};

static struct {
    struct hw_heap_pages *out;
    struct sum *sums; /* by context */
    uint32_t contexts;
    bool glibc, segments;
    /* What is resident of one chunk. */
    int pagemap; /* descriptor; negative: mincore has to do */
    uintptr_t chunk;
    uint8_t state[CHUNK_PAGES];
    uint64_t entries[CHUNK_PAGES];
    /* The cursor: all below is done. With blocks on its page, these. */
    uintptr_t cursor;
    uint64_t page; /* number of it */
    uint32_t live, count;
    uint32_t context[ON_PAGE], bytes[ON_PAGE];
    uintptr_t mapped_start, mapped_end; /* by the program: the first range that ends above the cursor */
    /* The mapping, */
    const struct hw_span *span;
    bool is_brk; /* which ends at the program break */
    uintptr_t last_end;
    /* the part of a block that lies beyond it, */
    uintptr_t rest_start, rest_end;
    uint32_t rest_context;
    /* and in [heap]: the context of the last block, resident bytes since one of another context, or since any. */
    uint32_t run_context;
    uint64_t run, kept_behind;
    struct piece piece[HW_PIECE_UNITS];
    struct hw_occupancy occupancy[HW_PIECE_UNITS][11];
    struct hw_page_group *group; /* open addressing; pages 0: empty */
    struct hw_page_group *latest;
    uint32_t groups;
} walk;

/* ---- what is resident ---- */

static void load_chunk(uintptr_t chunk)
{
    walk.chunk = chunk;
    const long bytes = walk.pagemap < 0 ? 0
                                        : hw_sys(SYS_pread64, walk.pagemap, walk.entries, sizeof walk.entries,
                                                 chunk / HW_PAGE * sizeof *walk.entries);
    for (size_t i = 0; i < CHUNK_PAGES && bytes == (long)sizeof walk.entries; i++)
        walk.state[i] = walk.entries[i] >> 63 ? RESIDENT : walk.entries[i] >> 62 & 1 ? SWAPPED : 0;
    if (bytes == (long)sizeof walk.entries)
        return;
    walk.out->flags |= HW_HEAP_PAGES_MINCORE;
    /* The mapping alone: the rest of the chunk may be none. */
    const uintptr_t start = walk.span->start > chunk ? walk.span->start : chunk;
    const uintptr_t end = walk.span->end < chunk + CHUNK_BYTES ? walk.span->end : chunk + CHUNK_BYTES;
    __builtin_memset(walk.state, 0, sizeof walk.state);
    if (start < end && !hw_sys_failed(hw_mincore(start, end - start, walk.state + (start - chunk) / HW_PAGE)))
        for (size_t i = 0; i < CHUNK_PAGES; i++)
            walk.state[i] &= RESIDENT;
}

static uint8_t state_of(uintptr_t page)
{
    const uintptr_t chunk = page & ~(CHUNK_BYTES - 1);
    if (chunk != walk.chunk)
        load_chunk(chunk);
    return walk.state[(page - chunk) / HW_PAGE];
}

/* ---- pieces by how full they are ---- */

static void add_piece(enum hw_piece_unit unit, uint64_t resident, uint64_t live)
{
    struct hw_occupancy *in = &walk.occupancy[unit][live ? (live * 10 + resident - 1) / resident : 0];
    in->pieces++;
    in->resident_bytes += resident;
    in->live_bytes += live;
}

static void end_piece(enum hw_piece_unit unit)
{
    struct piece *piece = &walk.piece[unit];
    if (piece->counts && piece->resident)
        add_piece(unit, piece->resident, piece->live);
    if (piece->counts && unit == HW_PIECE_GLIBC_HEAP)
        walk.out->arena_bytes += piece->kept;
    *piece = (struct piece){.at = NOWHERE};
}

static void add_resident(uintptr_t page, uint64_t live)
{
    walk.out->resident_bytes += HW_PAGE;
    for (int unit = HW_PIECE_HUGE_PAGE; unit < HW_PIECE_UNITS; unit++) {
        struct piece *piece = &walk.piece[unit];
        if (piece->at != page >> piece_shift[unit]) {
            end_piece(unit);
            piece->at = page >> piece_shift[unit];
            piece->counts = unit == HW_PIECE_HUGE_PAGE || (unit == HW_PIECE_SEGMENT && walk.segments);
        }
        piece->resident += HW_PAGE;
        piece->live += live;
        piece->kept += live ? 0 : HW_PAGE;
    }
}

/* ---- who shares pages ---- */

static bool is_group(const struct hw_page_group *group, const uint32_t *contexts)
{
    for (uint32_t i = 0; i < HW_PAGE_GROUP_CONTEXTS; i++)
        if (group->contexts[i] != contexts[i])
            return false;
    return true;
}

static struct hw_page_group *group_of(const uint32_t *contexts)
{
    if (walk.latest && is_group(walk.latest, contexts))
        return walk.latest;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < HW_PAGE_GROUP_CONTEXTS; i++)
        hash = (hash ^ contexts[i]) * 0x9e3779b97f4a7c15ull;
    for (uint64_t at = hash >> 40;; at++) {
        struct hw_page_group *group = &walk.group[at % GROUP_SLOTS];
        if (!group->pages) {
            if (walk.groups == GROUPS_MOST)
                return NULL;
            walk.groups++;
            __builtin_memcpy(group->contexts, contexts, sizeof group->contexts);
        } else if (!is_group(group, contexts))
            continue;
        return walk.latest = group;
    }
}

static void add_to_group(void)
{
    uint32_t contexts[HW_PAGE_GROUP_CONTEXTS];
    struct hw_page_group *group = NULL;
    for (uint32_t i = 0; i < HW_PAGE_GROUP_CONTEXTS; i++)
        contexts[i] = HW_NONE;
    for (uint32_t i = 0; i < walk.count && walk.count <= HW_PAGE_GROUP_CONTEXTS; i++) {
        uint32_t at = i;
        for (; at && contexts[at - 1] > walk.context[i]; at--)
            contexts[at] = contexts[at - 1];
        contexts[at] = walk.context[i];
    }
    if (walk.count <= HW_PAGE_GROUP_CONTEXTS)
        group = group_of(contexts);
    if (!group) {
        walk.out->ungrouped_pages++;
        return;
    }
    group->pages++;
    group->live_bytes += walk.live;
}

/* ---- the cursor ---- */

/* A resident page on which CONTEXT alone, or with others (HW_NONE), has blocks, of which LAST is the last one's. */
static void follow_heap(uint32_t context, uint32_t last)
{
    if (!walk.is_brk)
        return;
    const bool goes_on = context != HW_NONE && context == walk.run_context;
    walk.run = goes_on ? walk.run + HW_PAGE : context != HW_NONE ? HW_PAGE : 0;
    walk.run_context = last;
    walk.out->below_top_bytes += walk.kept_behind; /* it was not the end */
    walk.kept_behind = 0;
}

static void share_page(void)
{
    const uint64_t free_bytes = HW_PAGE - walk.live, share = free_bytes / walk.count;
    walk.out->live_pages++;
    walk.out->free_bytes += free_bytes;
    for (uint32_t i = 0; i < walk.count; i++) {
        struct hw_pin *pin = &walk.sums[walk.context[i]].pin;
        pin->pages++;
        pin->own_bytes += walk.bytes[i];
        pin->packed_bytes += walk.bytes[i];
        pin->live_bytes += walk.live;
        pin->pinned_bytes += share + (i < free_bytes % walk.count);
        if (walk.count == 1) {
            pin->sole_pages++;
            pin->sole_free_bytes += free_bytes;
        }
    }
    add_piece(HW_PIECE_PAGE, HW_PAGE, walk.live);
    add_to_group();
}

/* The page of the cursor is done: with the blocks that are in the list. */
static void end_page(void)
{
    const uint8_t state = state_of(walk.cursor);
    if (state == RESIDENT) {
        share_page();
        add_resident(walk.cursor, walk.live);
        follow_heap(walk.count == 1 ? walk.context[0] : HW_NONE, walk.context[walk.count - 1]);
    } else {
        walk.out->absent_bytes += walk.live;
        walk.out->swapped_bytes += state == SWAPPED ? HW_PAGE : 0;
    }
    walk.live = walk.count = 0;
    walk.page++;
    walk.cursor += HW_PAGE;
}

/* PAGE has no block: whether the program has mapped it itself, which is not the allocator's memory. */
static bool is_programs(uintptr_t page)
{
    if (page >= walk.mapped_end && !hw_program_mapping_above(page, &walk.mapped_start, &walk.mapped_end))
        walk.mapped_start = walk.mapped_end = NOWHERE;
    return page >= walk.mapped_start && page < walk.mapped_end;
}

/* All pages up to TO, the begin of one, are done. */
static void advance(uintptr_t to)
{
    if (walk.count && to > walk.cursor)
        end_page();
    for (; walk.cursor < to; walk.cursor += HW_PAGE) {
        const uint8_t state = state_of(walk.cursor);
        walk.out->swapped_bytes += state == SWAPPED ? HW_PAGE : 0;
        if (state != RESIDENT || is_programs(walk.cursor))
            continue;
        walk.out->kept_bytes += HW_PAGE;
        add_resident(walk.cursor, 0);
        add_piece(HW_PIECE_PAGE, HW_PAGE, 0);
        walk.kept_behind += walk.is_brk ? HW_PAGE : 0;
        walk.run += walk.is_brk ? HW_PAGE : 0;
    }
}

/* Bytes of the page of the cursor are CONTEXT's. */
static void add_part(uint32_t context, uint32_t bytes)
{
    struct sum *sum = &walk.sums[context];
    const bool listed = sum->page == walk.page + 1;
    if (!listed) {
        if (walk.count == ON_PAGE)
            return;
        sum->page = walk.page + 1;
        sum->slot = walk.count++;
        walk.context[sum->slot] = context;
        walk.bytes[sum->slot] = 0;
    }
    walk.bytes[sum->slot] += bytes;
    walk.live += bytes;
}

/* The page of the cursor is full of one block. */
static void add_full_page(uint32_t context)
{
    struct hw_pin *pin = &walk.sums[context].pin;
    const uint8_t state = state_of(walk.cursor);
    if (state == RESIDENT) {
        pin->pages++;
        pin->sole_pages++;
        pin->own_bytes += HW_PAGE;
        pin->live_bytes += HW_PAGE;
        walk.out->live_pages++;
        walk.out->large_bytes += HW_PAGE;
        add_piece(HW_PIECE_PAGE, HW_PAGE, HW_PAGE);
        add_resident(walk.cursor, HW_PAGE);
        follow_heap(context, context);
    } else {
        walk.out->absent_bytes += HW_PAGE;
        walk.out->swapped_bytes += state == SWAPPED ? HW_PAGE : 0;
    }
    walk.page++;
    walk.cursor += HW_PAGE;
}

/* [start, end) of the mapping is CONTEXT's. */
static void add_extent(uintptr_t start, uintptr_t end, uint32_t context)
{
    if (end > walk.span->end) {
        walk.rest_start = walk.span->end;
        walk.rest_end = end;
        walk.rest_context = context;
        end = walk.span->end;
    }
    while (start < end) {
        const uintptr_t page = start & ~(HW_PAGE - 1), next = page + HW_PAGE;
        advance(page);
        if (start == page && end >= next)
            add_full_page(context);
        else
            add_part(context, (uint32_t)((end < next ? end : next) - start));
        start = next;
    }
}

/* ---- blocks ---- */

struct extent {
    uintptr_t start, end;
    uint64_t header;
    uint32_t bits; /* of the chunk */
};

/* What the allocator has set aside for a block. */
static struct extent extent_of(uintptr_t address, uint64_t size)
{
    struct extent extent = {.start = address, .end = address + size};
    if (walk.glibc) {
        const uintptr_t field = address - 8;
        const bool there = field >= walk.span->start && state_of(field & ~(HW_PAGE - 1)) == RESIDENT;
        const uint64_t value = there && walk.span->readable ? *(const uint64_t *)field : 0;
        uint64_t chunk = value & ~7ul;
        extent.bits = value & 7;
        extent.header = extent.bits & CHUNK_MAPPED ? 16 : 8;
        if (chunk < size + extent.header || chunk > 2 * size + HEAP_BYTES) {
            chunk = size < 24 ? 32 : HW_ALIGN_UP(size + 8, 16); /* not readable, or overwritten */
            extent.header = 8;
            extent.bits = 0;
        }
        extent.start = address - extent.header;
        extent.end = extent.start + chunk;
    } else if (hw_real.tells_usable) {
        const uint64_t usable = hw_real.malloc_usable_size((void *)address);
        if (usable >= size && usable <= 2 * size + HEAP_BYTES)
            extent.end = address + usable;
    }
    return extent;
}

/* Four bits for each doubling, from 16 bytes to 1 MiB. */
static uint64_t class_bit(uint64_t bytes)
{
    const uint64_t size = bytes < 17 ? 17 : bytes > 1 << 20 ? 1 << 20 : bytes;
    const uint32_t log = 63u - (uint32_t)__builtin_clzll(size - 1);
    return 1ull << ((log - 4) * 4 + ((size - 1) >> (log - 2) & 3));
}

/* Of [start, end), which is as long as less than two pages if it is not hostile. */
static uint64_t absent_in(uintptr_t start, uintptr_t end)
{
    uint64_t absent = 0;
    if (end > walk.span->end)
        end = walk.span->end;
    for (uintptr_t next; start < end; start = next) {
        const uintptr_t page = start & ~(HW_PAGE - 1);
        next = page + HW_PAGE < end ? page + HW_PAGE : end;
        if (state_of(page) != RESIDENT)
            absent += next - start;
    }
    return absent;
}

static void add_block(struct hw_node node)
{
    struct hw_block block = {0}; /* not all stores say where it lies */
    if (!hw_block_at(node.address, &block) || block.layout || hw_real_is_startup_block((void *)node.address))
        return;
    struct extent extent = extent_of(node.address, block.size);
    struct hw_heap_pages *out = walk.out;
    const uint32_t context = block.context < walk.contexts ? block.context : 0;
    const uint64_t bytes = extent.end - extent.start;
    out->blocks++;
    out->requested_bytes += block.size;
    out->header_bytes += extent.header;
    out->rounding_bytes += bytes - extent.header - block.size;
    out->absent_rounding_bytes += absent_in(node.address + block.size, extent.end);
    struct hw_pin *pin = &walk.sums[context].pin;
    pin->blocks++;
    if (bytes < 2 * HW_PAGE) {
        pin->packed_blocks++;
        pin->classes |= class_bit(bytes);
    }
    if (extent.start < walk.last_end) /* the end of an aligned block, which begins here */
        extent.start = walk.last_end;
    if (extent.start >= extent.end)
        return;
    walk.last_end = extent.end;
    add_extent(extent.start, extent.end, context);
    if (extent.bits & CHUNK_ARENA && walk.piece[HW_PIECE_GLIBC_HEAP].at == node.address / HEAP_BYTES)
        walk.piece[HW_PIECE_GLIBC_HEAP].counts = true;
}

/* ---- mappings ---- */

static bool holds_blocks(const struct hw_span *span)
{
    const struct hw_module *module = hw_module_of_data(span->start);
    return !span->own && !span->shared && !(module && span->end <= module->image_end) &&
           span->end <= 1ul << HW_ARCH_ADDRESS_BITS && hw_index_any(span->start, span->end);
}

static void walk_span(const struct hw_span *span)
{
    if (!holds_blocks(span))
        return;
    walk.span = span;
    walk.chunk = NOWHERE; /* of the last mapping, where mincore has to do */
    walk.cursor = span->start;
    walk.last_end = span->start;
    const uintptr_t top = (uintptr_t)hw_sys(SYS_brk, 0);
    walk.mapped_start = walk.mapped_end = 0;
    walk.is_brk = walk.glibc && top > span->start && top <= span->end;
    walk.run_context = HW_NONE;
    walk.run = walk.kept_behind = 0;
    const uintptr_t rest_start = walk.rest_start, rest_end = walk.rest_end;
    walk.rest_start = NOWHERE;
    if (rest_start == span->start) {
        walk.last_end = rest_end < span->end ? rest_end : span->end;
        add_extent(rest_start, rest_end, walk.rest_context);
    }
    hw_index_each_in(span->start, span->end, add_block);
    advance(span->end);
    if (!walk.is_brk)
        return;
    walk.out->top_bytes += walk.kept_behind;
    walk.out->top_context = walk.run_context;
    walk.out->top_held_bytes = walk.run - walk.kept_behind;
}

static bool is_allocator(const char *name)
{
    return hw_starts_with(hw_pools[HW_POOL_STRINGS].base + hw_runtime.process->allocator, name);
}

static bool make_room(void)
{
    static uint32_t most;
    walk.contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    if (!walk.group)
        walk.group = hw_own_pages(GROUP_SLOTS * sizeof *walk.group, true);
    if (walk.contexts > most) {
        walk.sums = hw_own_pages(walk.contexts * 2 * sizeof *walk.sums, true);
        most = walk.sums ? walk.contexts * 2 : 0;
    }
    return walk.group && walk.sums;
}

static void begin(struct hw_heap_pages *out)
{
    *out = (struct hw_heap_pages){.tick = hw_ticks_raw() - hw_runtime.tick_base, .top_context = HW_NONE};
    walk.out = out;
    walk.glibc = hw_real.is_glibc;
    walk.segments = is_allocator("mimalloc");
    out->flags = walk.glibc             ? HW_HEAP_PAGES_GLIBC | HW_HEAP_PAGES_ROUNDING
                 : hw_real.tells_usable ? HW_HEAP_PAGES_ROUNDING
                                        : 0;
    walk.page = walk.live = walk.count = walk.groups = 0;
    walk.latest = NULL;
    walk.rest_start = NOWHERE;
    __builtin_memset(walk.occupancy, 0, sizeof walk.occupancy);
    for (int unit = 0; unit < HW_PIECE_UNITS; unit++)
        walk.piece[unit] = (struct piece){.at = NOWHERE};
    walk.pagemap = hw_open("/proc/self/pagemap", O_RDONLY, 0);
}

static void drop(void)
{
    if (walk.pagemap >= 0)
        hw_close(walk.pagemap);
    hw_own_give_back(walk.sums, walk.contexts * sizeof *walk.sums);
    hw_own_give_back(walk.group, GROUP_SLOTS * sizeof *walk.group);
}

/* The sums stay until drop(). */
static bool walk_all(struct hw_heap_pages *out)
{
    const uint64_t moment = hw_clock_monotonic_ns();
    if (!make_room())
        return false;
    begin(out);
    const bool fine = hw_scan_begin() && hw_index_make();
    if (fine)
        hw_spans_each(walk_span);
    for (int unit = HW_PIECE_HUGE_PAGE; unit < HW_PIECE_UNITS; unit++)
        end_piece(unit);
    hw_index_drop();
    hw_scan_end();
    out->walk_ns = hw_clock_monotonic_ns() - moment;
    if (!fine)
        drop();
    return fine;
}

bool hw_heap_pages_measure(struct hw_heap_pages *out)
{
    if (hw_runtime.weighted || hw_access_on() || hw_quiet || !walk_all(out))
        return false;
    drop();
    return true;
}

/* ---- the profile ---- */

void hw_pages_start(void)
{
    if (hw_runtime.weighted || hw_access_on())
        hw_note(HW_NOTE_OTHER, "pages were not examined: not every block is known in this mode, or accesses are counted");
}

static void write_pins(struct hw_heap_pages *out)
{
    for (uint32_t context = 0; context < walk.contexts; context++) {
        struct hw_pin *pin = &walk.sums[context].pin;
        if (!pin->pages)
            continue;
        const uint32_t index = hw_pool_take(HW_POOL_PINS, 1);
        if (index == HW_NONE) {
            out->unwritten_bytes += pin->pinned_bytes;
            continue;
        }
        pin->context = context;
        *HW_ENTRY(HW_POOL_PINS, struct hw_pin, index) = *pin;
    }
    hw_pool_publish(HW_POOL_PINS);
}

static void write_occupancy(void)
{
    for (uint32_t unit = 0; unit < HW_PIECE_UNITS; unit++)
        for (uint32_t tenths = 0; tenths <= 10; tenths++) {
            struct hw_occupancy *in = &walk.occupancy[unit][tenths];
            const uint32_t index = in->pieces ? hw_pool_take(HW_POOL_OCCUPANCY, 1) : HW_NONE;
            if (index == HW_NONE)
                continue;
            in->unit = unit;
            in->tenths = tenths;
            *HW_ENTRY(HW_POOL_OCCUPANCY, struct hw_occupancy, index) = *in;
        }
    hw_pool_publish(HW_POOL_OCCUPANCY);
}

static uint32_t log_of(uint64_t pages)
{
    return 63u - (uint32_t)__builtin_clzll(pages);
}

/* Those of most pages, as many as are to be written at most. */
static void write_groups(struct hw_heap_pages *out)
{
    uint32_t sizes[64] = {0}, least = 0, all = 0;
    for (uint32_t i = 0; i < GROUP_SLOTS; i++)
        if (walk.group[i].pages)
            sizes[log_of(walk.group[i].pages)]++;
    for (uint32_t log = 64; log-- > 0;) {
        all += sizes[log];
        if (all > GROUPS_WRITTEN) {
            least = log + 1;
            break;
        }
    }
    for (uint32_t i = 0; i < GROUP_SLOTS; i++) {
        const struct hw_page_group *group = &walk.group[i];
        if (!group->pages)
            continue;
        const uint32_t index = log_of(group->pages) < least ? HW_NONE : hw_pool_take(HW_POOL_PAGE_GROUPS, 1);
        if (index == HW_NONE)
            out->ungrouped_pages += group->pages;
        else
            *HW_ENTRY(HW_POOL_PAGE_GROUPS, struct hw_page_group, index) = *group;
    }
    hw_pool_publish(HW_POOL_PAGE_GROUPS);
}

static struct hw_heap_pages latest; /* tick 0: none */

void hw_pages_forget(void)
{
    latest.tick = 0;
    hw_pool_forget(HW_POOL_HEAP_PAGES);
    hw_pool_forget(HW_POOL_PINS);
    hw_pool_forget(HW_POOL_OCCUPANCY);
    hw_pool_forget(HW_POOL_PAGE_GROUPS);
}

/* The parts are of the same bytes as `allocator`, which was counted at another instant. */
static uint64_t part_of(uint64_t *left, uint64_t bytes)
{
    const uint64_t part = bytes < *left ? bytes : *left;
    *left -= part;
    return part;
}

void hw_pages_split(struct hw_memory_breakdown *memory)
{
    uint64_t left = memory->allocator;
    if (!latest.tick || !(memory->known & HW_MEMORY_LEDGER))
        return;
    memory->known |= HW_MEMORY_PARTS;
    memory->used = part_of(&left, latest.requested_bytes - (latest.absent_bytes - latest.absent_rounding_bytes));
    memory->rounding = part_of(&left, latest.rounding_bytes - latest.absent_rounding_bytes);
    memory->pinned = part_of(&left, latest.free_bytes);
    memory->metadata = part_of(&left, latest.header_bytes);
    memory->kept = part_of(&left, latest.kept_bytes);
    memory->metadata += left;
}

void hw_pages_harvest(bool stopped)
{
    struct hw_heap_pages out;
    if (hw_quiet || hw_runtime.weighted || hw_access_on())
        return;
    hw_pages_forget();
    if (!stopped)
        out = (struct hw_heap_pages){.flags = HW_HEAP_PAGES_MISSED, .top_context = HW_NONE};
    else if (walk_all(&out)) {
        write_pins(&out);
        write_occupancy();
        write_groups(&out);
        drop();
        latest = out;
    } else {
        hw_note_locked(HW_NOTE_OTHER, "pages were not examined: there was no memory for it, or no /proc");
        return;
    }
    const uint32_t index = hw_pool_take(HW_POOL_HEAP_PAGES, 1);
    if (index != HW_NONE)
        *HW_ENTRY(HW_POOL_HEAP_PAGES, struct hw_heap_pages, index) = out;
    else
        hw_note_locked(HW_NOTE_FILE_FULL, hw_file_problem());
    hw_pool_publish(HW_POOL_HEAP_PAGES);
}
