/* blocks_index.c - see blocks_index.h. */
#include "runtime/core/memory.h"
#include "runtime/graph/internal.h"

#define REGIONS_MOST   (1ul << (HW_ARCH_ADDRESS_BITS - HW_REGION_SHIFT))
#define REGIONS_STORED (1ul << 22) /* 8 TiB with blocks */
#define REGIONS_LARGE  32u         /* from so many regions on the index lies in huge pages: 4 MiB of it */
#define LINES_AHEAD    8u

struct hw_index hw_index;

static struct hw_index_region *region_at(uintptr_t address)
{
    uint32_t *index = &hw_index.region_of[address >> HW_REGION_SHIFT];
    if (!*index) {
        if (hw_index.count == REGIONS_STORED) {
            hw_index.full = true;
            return NULL;
        }
        if (hw_index.count == REGIONS_LARGE)
            hw_madvise(&hw_index.region[hw_index.count], (REGIONS_STORED - hw_index.count) * sizeof *hw_index.region,
                       MADV_HUGEPAGE);
        *index = ++hw_index.count;
        hw_index.region[*index - 1].start = address & ~(HW_REGION_BYTES - 1);
    }
    return &hw_index.region[*index - 1];
}

static void add(void *pointer, const struct hw_block *block)
{
    const uintptr_t address = (uintptr_t)pointer, end = address + block->size;
    if (end >> HW_ARCH_ADDRESS_BITS || end < address)
        return;
    struct hw_index_region *region = region_at(address);
    if (!region)
        return;
    const uint32_t at = address >> HW_LINE_SHIFT & (HW_LINES - 1);
    region->line[at].begins |= 1ul << (address >> 4 & 63);
    region->line[at].seconds |= (address & 15) == 8;
    region->any_begins[at / 64] |= 1ul << at % 64;
    for (uintptr_t next = region->start + HW_REGION_BYTES; next < end && (region = region_at(next));
         next += HW_REGION_BYTES)
        region->covering = address;
    hw_index.low = address < hw_index.low ? address : hw_index.low;
    hw_index.high = end > hw_index.high ? end : hw_index.high;
}

static void add_of_span(const struct hw_span *span)
{
    if (!span->own && !(span->end >> HW_ARCH_ADDRESS_BITS) && (span->readable || span->writable))
        hw_blocks_each_mapped(span->start, span->end, add);
}

bool hw_index_make(void)
{
    if (!hw_index.region_of)
        hw_index.region_of = hw_own_pages(REGIONS_MOST * sizeof *hw_index.region_of, true);
    if (hw_index.region_of && !hw_index.region)
        hw_index.region = hw_own_pages(REGIONS_STORED * sizeof *hw_index.region, true);
    if (!hw_index.region)
        return false;
    hw_index.count = 0;
    hw_index.low = UINTPTR_MAX;
    hw_index.high = 0;
    hw_index.full = false;
    hw_spans_each(add_of_span);
    hw_blocks_each(add, true);
    return !hw_index.full;
}

void hw_index_drop(void)
{
    hw_own_give_back(hw_index.region_of, REGIONS_MOST * sizeof *hw_index.region_of);
    hw_own_give_back(hw_index.region, REGIONS_STORED * sizeof *hw_index.region);
    hw_index.count = 0;
}

/* The nearest begin at or below ADDRESS in its region, or the block that reaches into the region. */
static uintptr_t begin_below(const struct hw_index_region *region, uintptr_t address)
{
    uint32_t at = address >> HW_LINE_SHIFT & (HW_LINES - 1);
    uint64_t bits = region->line[at].begins & (~0ul >> (63 - (address >> 4 & 63)));
    if (!bits) {
        uint32_t part = at / 64;
        uint64_t any = region->any_begins[part] & ((1ul << at % 64) - 1);
        while (!any && part)
            any = region->any_begins[--part];
        if (!any)
            return region->covering;
        at = part * 64 + 63 - (uint32_t)__builtin_clzl(any);
        bits = region->line[at].begins;
    }
    return region->start + ((uintptr_t)at << HW_LINE_SHIFT) + ((63ul - (uintptr_t)__builtin_clzl(bits)) << 4);
}

static struct hw_node node_at(uintptr_t address)
{
    return (struct hw_node){hw_index_line_of(address), address >> 4 & 63, address};
}

/* ADDRESS may have a tag in its lowest bits, but one past the end is not inside. */
static bool holds(uintptr_t block, uintptr_t address)
{
    uint64_t size;
    return hw_block_size(block, &size) && ((address & ~7ul) == block || address - block < size);
}

struct hw_node hw_index_find_inside(uint64_t word, bool *inner)
{
    const uintptr_t exact = word & ~HW_TAGS, address = hw_index_untagged(word);
    const struct hw_node none = {0};
    const struct hw_index_region *region = &hw_index.region[hw_index.region_of[address >> HW_REGION_SHIFT] - 1];
    const uintptr_t begin = begin_below(region, address);
    if (!begin)
        return none;
    const struct hw_node node = node_at(begin);
    const uintptr_t second = begin + 8; /* of two in one granule */
    if (node.line->seconds && address >= second && holds(second, exact)) {
        *inner = address != second;
        return node_at(second);
    }
    *inner = address != begin;
    return holds(begin, exact) ? node : none;
}

uintptr_t hw_index_next(uintptr_t start, uintptr_t end)
{
    for (uintptr_t at = start & ~15ul; at < end && at >> HW_ARCH_ADDRESS_BITS == 0;) {
        const struct hw_index_line *line = hw_index_line_of(at);
        const uint64_t bits = line ? line->begins >> (at >> 4 & 63) : 0;
        if (bits) {
            at += (uintptr_t)__builtin_ctzl(bits) << 4;
            return at < end ? at : end;
        }
        const uintptr_t step = line ? 1ul << HW_LINE_SHIFT : HW_REGION_BYTES;
        at = (at & ~(step - 1)) + step;
    }
    return end;
}

/* Lines in which blocks begin. */
static void each_line(void (*each)(struct hw_index_line *line, uintptr_t start, void *closure), void *closure)
{
    for (struct hw_index_region *region = hw_index.region; region < hw_index.region + hw_index.count; region++)
        for (uint32_t part = 0; part < HW_LINES / 64; part++)
            for (uint64_t any = region->any_begins[part]; any; any &= any - 1) {
                const uint32_t at = part * 64 + (uint32_t)__builtin_ctzl(any);
                __builtin_prefetch(&region->line[at + LINES_AHEAD], 1);
                each(&region->line[at], region->start + ((uintptr_t)at << HW_LINE_SHIFT), closure);
            }
}

struct each_of {
    uint32_t with, without;
    void (*each)(struct hw_node node);
};

static uint64_t marked_in(const struct hw_index_line *line, uint32_t marks)
{
    uint64_t bits = 0;
    for (; marks; marks &= marks - 1)
        bits |= line->marks[__builtin_ctz(marks)];
    return bits;
}

/* Those of the BITS, in order. */
static void each_bit(struct hw_index_line *line, uintptr_t start, uint64_t bits, void (*each)(struct hw_node node))
{
    for (; bits; bits &= bits - 1) {
        const uint32_t bit = (uint32_t)__builtin_ctzl(bits);
        const uintptr_t address = start + ((uintptr_t)bit << 4);
        uint64_t size;
        const bool second = line->seconds && hw_block_size(address + 8, &size);
        if (!second || hw_block_size(address, &size))
            each((struct hw_node){line, bit, address});
        if (second)
            each((struct hw_node){line, bit, address + 8});
    }
}

static void each_in_line(struct hw_index_line *line, uintptr_t start, void *closure)
{
    const struct each_of *of = closure;
    const uint64_t bits = of->with ? marked_in(line, of->with) : line->begins;
    each_bit(line, start, bits & ~marked_in(line, of->without), of->each);
}

void hw_index_each_of(uint32_t with, uint32_t without, void (*each)(struct hw_node node))
{
    struct each_of of = {with, without, each};
    each_line(each_in_line, &of);
}

/* The part of [*start, *end) in which blocks can lie. */
static void limit(uintptr_t *start, uintptr_t *end)
{
    const uintptr_t low = hw_index.low & ~15ul, high = hw_index.high;
    *start = *start > low ? *start : low;
    *end = *end < high ? *end : high;
}

bool hw_index_any(uintptr_t start, uintptr_t end)
{
    bool inner;
    if (start < end && hw_index_find(start, &inner).line)
        return true;
    limit(&start, &end);
    return start < end && hw_index_next(start, end) < end;
}

void hw_index_each_in(uintptr_t start, uintptr_t end, void (*each)(struct hw_node node))
{
    for (limit(&start, &end); start < end && (start = hw_index_next(start, end)) < end;) {
        const uintptr_t line = start & ~((1ul << HW_LINE_SHIFT) - 1), next = line + (1ul << HW_LINE_SHIFT);
        struct hw_index_line *in = hw_index_line_of(start);
        uint64_t bits = in->begins & ~0ul << (start >> 4 & 63);
        if (end + 15 < next)
            bits &= (1ul << ((end - line + 15) >> 4)) - 1;
        each_bit(in, line, bits, each);
        start = next;
    }
}

static void number_line(struct hw_index_line *line, uintptr_t start, void *closure)
{
    uint64_t *count = closure;
    (void)start;
    line->before = (uint32_t)*count;
    *count += hw_bits_in(line->begins);
}

uint32_t hw_index_number(void)
{
    uint64_t count = 0;
    each_line(number_line, &count);
    return count < UINT32_MAX ? (uint32_t)count : 0;
}
