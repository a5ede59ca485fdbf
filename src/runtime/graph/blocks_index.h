/* blocks_index.h - which block a word points to, begin or middle, and marks for each block.
 *
 * Address space is parted into regions of 2 MiB. A region with blocks has a cache line for each KiB: in which granules
 * of 16 bytes a block begins, the marks of those blocks, and how many blocks lie before. So all that a search has to
 * know of a pointer is one line; 128 KiB a region, 6 % of it. The block before an address is found by the bits, its
 * size in blocks.c. Blocks that begin 8 bytes after another one (some allocators have them) share the bits with it.
 *
 * Searches follow pointers to anywhere: what they wait for is memory. So words are looked at in three steps, some
 * pointers apart, and each asks for what the next one reads (struct hw_ahead). */
#ifndef HW_RUNTIME_GRAPH_BLOCKS_INDEX_H
#define HW_RUNTIME_GRAPH_BLOCKS_INDEX_H

#include "runtime/heap/heap.h"

enum hw_node_mark {
    HW_MARK_REACHED,  /* by pointers to begins of blocks only */
    HW_MARK_INNER,    /* …else: some pointer on each way leads into the middle of a block */
    HW_MARK_INDIRECT, /* not reached by the program, but by another block that is not */
    HW_MARK_SCANNED,
    HW_MARK_INSIDE, /* a pointer leads to a place in it that C++ has pointers to */
    HW_MARK_KEEP,   /* keeps.c's */
    HW_MARKS,
};

struct hw_index_line {
    uint64_t begins; /* by granule */
    uint64_t marks[HW_MARKS];
    uint32_t before;  /* hw_index_number: blocks before the first one */
    uint32_t seconds; /* 1: some begin 8 bytes behind the begin of a granule */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct hw_index_line) == 64, "a cache line");

#define HW_REGION_SHIFT 21
#define HW_REGION_BYTES (1ul << HW_REGION_SHIFT)
#define HW_LINE_SHIFT   10
#define HW_LINES        (HW_REGION_BYTES >> HW_LINE_SHIFT)

struct hw_index_region {
    uintptr_t start;
    uintptr_t covering;                 /* a block that began before and reaches into it; 0: none */
    uint64_t any_begins[HW_LINES / 64]; /* lines in which blocks begin */
    struct hw_index_line line[HW_LINES];
};

extern struct hw_index {
    uint32_t *region_of; /* by address: index + 1 */
    struct hw_index_region *region;
    uint32_t count;
    uintptr_t low, high; /* all blocks lie there */
    bool full;
} hw_index HW_HIDDEN;

/* Where a block begins, in the index. */
struct hw_node {
    struct hw_index_line *line; /* NULL: no block */
    uint32_t bit;
    uintptr_t address;
};

/* Enters all live blocks. False: no memory for it. Lock held. */
bool hw_index_make(void);
void hw_index_drop(void);
/* The first 16 bytes of [start, end) in which a block begins; END: none does. */
uintptr_t hw_index_next(uintptr_t start, uintptr_t end);
/* Calls EACH for all blocks that have one of the marks WITH (bits 1 << mark; 0: any block) and none of WITHOUT. As the
 * marks are when a line's turn comes: EACH may change them. */
void hw_index_each_of(uint32_t with, uint32_t without, void (*each)(struct hw_node node));
static inline void hw_index_each(void (*each)(struct hw_node node))
{
    hw_index_each_of(0, 0, each);
}
/* …for those that begin in [start, end), which begins and ends at multiples of 16: in order. */
void hw_index_each_in(uintptr_t start, uintptr_t end, void (*each)(struct hw_node node));
/* Whether a block has bytes in [start, end). */
bool hw_index_any(uintptr_t start, uintptr_t end);
/* Numbers all blocks from 0 on, those in one granule alike. How many; 0: more than have numbers. */
uint32_t hw_index_number(void);
/* For words that do not point to the begin of a block. */
struct hw_node hw_index_find_inside(uint64_t word, bool *inner);

/* Tags: in the bits that processors can be told to ignore, and the three lowest. */
#define HW_TAGS (0x7eul << 56)

static inline uintptr_t hw_index_untagged(uint64_t word)
{
    return word & ~HW_TAGS & ~7ul;
}

/* False for nearly all that is no pointer. */
static inline bool hw_index_may_find(uint64_t word)
{
    const uintptr_t address = hw_index_untagged(word);
    return address >= hw_index.low && address <= hw_index.high;
}

/* NULL: no block lies in the region. ADDRESS is between low and high. */
static inline struct hw_index_line *hw_index_line_of(uintptr_t address)
{
    const uint32_t index = hw_index.region_of[address >> HW_REGION_SHIFT];
    return index ? &hw_index.region[index - 1].line[address >> HW_LINE_SHIFT & (HW_LINES - 1)] : NULL;
}

/* The block that WORD points to. *INNER: not to its begin. */
static inline struct hw_node hw_index_find(uint64_t word, bool *inner)
{
    const uintptr_t address = hw_index_untagged(word);
    struct hw_index_line *line = hw_index_may_find(word) ? hw_index_line_of(address) : NULL;
    if (!line)
        return (struct hw_node){0};
    const uint32_t bit = address >> 4 & 63;
    if (!(address & 15) && line->begins >> bit & 1) {
        *inner = false;
        return (struct hw_node){line, bit, address};
    }
    return hw_index_find_inside(word, inner);
}

static inline bool hw_index_marked(struct hw_node node, enum hw_node_mark mark)
{
    return node.line->marks[mark] >> node.bit & 1;
}

static inline void hw_index_mark(struct hw_node node, enum hw_node_mark mark)
{
    node.line->marks[mark] |= 1ul << node.bit;
}

static inline void hw_index_unmark(struct hw_node node, enum hw_node_mark mark)
{
    node.line->marks[mark] &= ~(1ul << node.bit);
}

/* Without the instruction, which not every processor has, the compiler would call a library. */
static inline uint32_t hw_bits_in(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555ul;
    word = (word & 0x3333333333333333ul) + (word >> 2 & 0x3333333333333333ul);
    return (uint32_t)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0ful) * 0x0101010101010101ul >> 56);
}

static inline uint32_t hw_index_ordinal(struct hw_node node)
{
    return node.line->before + hw_bits_in(node.line->begins & ((1ul << node.bit) - 1));
}

/* ---- pointers on their way ---- */

#define HW_AHEAD       32u /* a power of two */
#define HW_AHEAD_STEPS 12u /* pointers from one step to the next */

struct hw_ahead {
    struct {
        uint64_t word, tag; /* the caller's */
        struct hw_node node;
    } pointer[HW_AHEAD];
    uint32_t in, found, out;
};

/* Calls HANDLE for the pointers that are left when at most LEFT may stay on their way. COMING is called for each some
 * pointers before, to ask for memory. Both are to be inlined. */
static inline __attribute__((always_inline)) void
hw_ahead_go_on(struct hw_ahead *ahead, uint32_t left, void (*coming)(struct hw_node node),
               void (*handle)(struct hw_node node, uint64_t tag, uint64_t word))
{
    while (ahead->in - ahead->found > left) {
        __typeof__(ahead->pointer[0]) *pointer = &ahead->pointer[ahead->found++ % HW_AHEAD];
        bool inner;
        pointer->node = hw_index_find(pointer->word, &inner);
        if (pointer->node.line)
            coming(pointer->node);
    }
    while (ahead->found - ahead->out > left) {
        __typeof__(ahead->pointer[0]) *pointer = &ahead->pointer[ahead->out++ % HW_AHEAD];
        if (pointer->node.line)
            handle(pointer->node, pointer->tag, pointer->word);
    }
}

static inline __attribute__((always_inline)) void hw_ahead_put(struct hw_ahead *ahead, uint64_t word, uint64_t tag)
{
    struct hw_index_line *line = hw_index_line_of(hw_index_untagged(word));
    if (!line)
        return;
    __builtin_prefetch(line, 1);
    __typeof__(ahead->pointer[0]) *pointer = &ahead->pointer[ahead->in++ % HW_AHEAD];
    pointer->word = word;
    pointer->tag = tag;
}

/* ---- blocks on their way ---- */

#define HW_RING 8u
struct hw_ring {
    struct hw_node node[HW_RING];
    uint32_t in, out;
};

/* The next block to be scanned: of a stack with WAITING entries, some blocks later, when its memory is here. */
static inline bool hw_ring_next(struct hw_ring *ring, const struct hw_node *stack, uint32_t *waiting,
                                struct hw_node *node)
{
    while (*waiting && ring->in - ring->out < HW_RING) {
        const struct hw_node next = stack[--*waiting];
        __builtin_prefetch((const void *)next.address);
        hw_block_prefetch(next.address);
        ring->node[ring->in++ % HW_RING] = next;
    }
    if (ring->in == ring->out)
        return false;
    *node = ring->node[ring->out++ % HW_RING];
    return true;
}

#endif
