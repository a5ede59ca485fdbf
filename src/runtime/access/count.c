/* count.c - additions to the shadow that instrumented code does not do inline: base/abi.h says what each means.
 *
 * __heapwise_range_64 stands at the exits of inner loops, so it is as quick for three visits as for three million: no
 * division, no state, no memory but the cells. How a range falls into granules, for 0 < stride <= granule:
 *
 *   head       accesses in the first granule, f = offset of the start:    (granule - 1 - f) / stride + 1
 *   tail       accesses in the last granule, l = offset of the last one:  l / stride + 1
 *   between    p = offset of the first access in a granule, 0 <= p < stride;  granule = whole * stride + rest:
 *              whole + (p < rest) accesses, and in the next one p' = p - rest + (p < rest ? stride : 0)
 *
 * Negative strides are walked from their other end. Counts of a plane have one writer, its thread; a signal handler
 * that comes between a vector's load and its store loses what it adds to these very cells, which is borne. */
#include "base/abi.h"
#include "runtime/access/cells.h"
#include "runtime/access/count.h"

#define GRANULE_64 64u
#define GRANULE_8  8u
#define SMALL      (1u << 24) /* what a 64-bit addition may add to each half */
#define WRITE      (1ull << 32)

/* Ranges of at least so many granules are worth a call and a vector loop. */
#define LONG_CELLS 12

typedef uint64_t words __attribute__((vector_size(16)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words_at_any __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint8_t bytes_at_any __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t cell_64 __attribute__((may_alias));

/* x / d == x * reciprocal[d] >> 12, for x <= 64 and 1 <= d <= 64: the error is below 64 * 63 / 4096 of 1 / d. */
#define R1(d) (4096 + (d)-1) / (d)
#define R8(d) R1(d), R1((d) + 1), R1((d) + 2), R1((d) + 3), R1((d) + 4), R1((d) + 5), R1((d) + 6), R1((d) + 7)
static const uint16_t reciprocal[65] = {0, R8(1), R8(9), R8(17), R8(25), R8(33), R8(41), R8(49), R8(57)};

static inline uint64_t divide(uint64_t x, uint64_t d)
{
    return x * reciprocal[d] >> 12;
}

/* The visits of a range in the order of addresses. */
struct visits {
    uint64_t first, last, stride;
};

static inline struct visits upwards(const void *start, int64_t stride, uint64_t count)
{
    uint64_t address = (uint64_t)start, last = address + (uint64_t)stride * (count - 1);
    return stride < 0 ? (struct visits){last, address, -(uint64_t)stride}
                      : (struct visits){address, last, (uint64_t)stride};
}

/* ---- 64-byte granules: two 32-bit counts ---- */

static inline cell_64 *cell_at_64(uintptr_t plane, uint64_t address)
{
    return (cell_64 *)(plane + (address >> 6 << 3));
}

/* Numbers of any size. */
static __attribute__((noinline)) void add_large(cell_64 *cell, uint64_t reads, uint64_t writes)
{
    if ((reads | writes) < SMALL) {
        *cell += reads + writes * WRITE;
        return;
    }
    hw_shadow_carry(cell, 0, reads);
    hw_shadow_carry(cell, 1, writes);
}

/* Adds INCREMENT to CELLS cells. */
static inline void fill_short(cell_64 *cell, uint64_t cells, uint64_t increment)
{
    for (cell_64 *end = cell + cells; cell != end; cell++) {
        *cell += increment;
        __asm__("" : "+r"(cell)); /* a loop of additions to memory: no vectors for a handful */
    }
}

static __attribute__((noinline)) void fill_long(cell_64 *cell, uint64_t cells, uint64_t increment)
{
    if ((uintptr_t)cell & 8) {
        *cell++ += increment;
        cells--;
    }
    words add = {increment, increment}, *at = (words *)cell;
    for (words *end = at + (cells / 8) * 4; at != end; at += 4) {
        at[0] += add;
        at[1] += add;
        at[2] += add;
        at[3] += add;
    }
    fill_short((cell_64 *)at, cells % 8, increment);
}

static inline void fill(cell_64 *cell, uint64_t cells, uint64_t increment)
{
    if (hw_unlikely(cells >= LONG_CELLS))
        fill_long(cell, cells, increment);
    else
        fill_short(cell, cells, increment);
}

/* The granules between, when REST is not 0. P is the offset of the first access in the first of them. */
static inline void weave_short(cell_64 *cell, uint64_t cells, uint64_t stride, uint64_t rest, uint64_t p,
                               uint64_t whole_add, uint64_t increment)
{
    for (cell_64 *end = cell + cells; cell != end; cell++) {
        uint64_t more = -(uint64_t)(p < rest);
        *cell += whole_add + (increment & more);
        p += (stride & more) - rest;
    }
}

/* Four granules at a time, each vector one step of two granules ahead: the rest of such a step is (2 * granule) modulo
 * stride. All of it is below 2^7, but lanes of 64 bits serve as masks for the increments, and signed comparison of
 * their halves would need unpacking: so P, REST and STRIDE are held twice, as 32-bit halves. */
typedef int32_t halves __attribute__((vector_size(16)));

static inline halves twice(uint64_t first, uint64_t second)
{
    return (halves){(int32_t)first, (int32_t)first, (int32_t)second, (int32_t)second};
}

static inline uint64_t step(uint64_t p, uint64_t stride, uint64_t rest)
{
    return p - rest + (p < rest ? stride : 0);
}

static __attribute__((noinline)) void weave_long(cell_64 *cell, uint64_t cells, uint64_t stride, uint64_t rest,
                                                 uint64_t p, uint64_t whole_add, uint64_t increment)
{
    uint64_t rest_4 = 4 * GRANULE_64 % stride, p1 = step(p, stride, rest), p2 = step(p1, stride, rest);
    halves strides = twice(stride, stride), rests = twice(rest, rest), rests_4 = twice(rest_4, rest_4);
    halves a = twice(p, p1), b = twice(p2, step(p2, stride, rest));
    words whole_adds = {whole_add, whole_add}, increments = {increment, increment};
    words_at_any *at = (words_at_any *)cell;
    for (words_at_any *end = at + cells / 4 * 2; at != end; at += 2) {
        at[0] += whole_adds + (increments & (words)(a < rests));
        at[1] += whole_adds + (increments & (words)(b < rests));
        a += (strides & (a < rests_4)) - rests_4;
        b += (strides & (b < rests_4)) - rests_4;
    }
    weave_short((cell_64 *)at, cells % 4, stride, rest, (uint64_t)a[0], whole_add, increment);
}

/* Strides beyond a granule, and numbers of any size. */
static __attribute__((noinline)) void range_each(uint64_t address, uint64_t stride, uint64_t count, uint64_t reads,
                                                 uint64_t writes)
{
    uintptr_t plane = __heapwise_plane;
    if (hw_likely((reads | writes) < SMALL)) {
        uint64_t increment = reads + writes * WRITE;
        for (; count; count--, address += stride)
            *cell_at_64(plane, address) += increment;
        return;
    }
    for (; count; count--, address += stride)
        add_large(cell_at_64(plane, address), reads, writes);
}

HW_EXPORT void __heapwise_add_64(const void *address, uint64_t reads, uint64_t writes)
{
    add_large(cell_at_64(__heapwise_plane, (uint64_t)address), reads, writes);
}

HW_EXPORT void __heapwise_range_64(const void *start, int64_t signed_stride, uint64_t count, uint64_t reads,
                                   uint64_t writes)
{
    if (hw_unlikely(!count))
        return;
    struct visits visits = upwards(start, signed_stride, count);
    uint64_t address = visits.first, last = visits.last, stride = visits.stride;
    uint64_t cells = (last >> 6) - (address >> 6);
    cell_64 *cell = cell_at_64(__heapwise_plane, address);
    if (cells == 0 && (count | reads | writes) < 1u << 12) { /* one granule */
        *cell += count * (reads + writes * WRITE);
        return;
    }
    if (stride - 1 >= GRANULE_64) { /* also 0 */
        if (stride)
            range_each(address, stride, count, reads, writes);
        else
            add_large(cell, count * reads, count * writes);
        return;
    }
    if (hw_unlikely((reads | writes) >= SMALL / GRANULE_64 || last < address)) {
        range_each(address, stride, count, reads, writes);
        return;
    }
    uint64_t increment = reads + writes * WRITE;
    if (hw_unlikely(cells == 0)) {
        *cell += count * increment; /* at most 64 visits */
        return;
    }
    uint64_t offset = address & 63, whole = divide(GRANULE_64, stride), rest = GRANULE_64 - whole * stride;
    uint64_t head = divide(63 - offset, stride) + 1;
    *cell += head * increment;
    cell[cells] += (divide(last & 63, stride) + 1) * increment;
    if (rest == 0)
        fill(cell + 1, cells - 1, whole * increment);
    else if (cells <= LONG_CELLS)
        weave_short(cell + 1, cells - 1, stride, rest, offset + head * stride - GRANULE_64, whole * increment,
                    increment);
    else
        weave_long(cell + 1, cells - 1, stride, rest, offset + head * stride - GRANULE_64, whole * increment,
                   increment);
}

static inline void touch_64(uintptr_t plane, uint64_t address, uint64_t bytes, uint64_t increment)
{
    uint64_t last = address + bytes - 1;
    if (hw_unlikely(!bytes || last < address))
        return;
    fill(cell_at_64(plane, address), (last >> 6) - (address >> 6) + 1, increment);
}

HW_EXPORT void __heapwise_touch_64(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes)
{
    uint64_t address = (uint64_t)start, last = address + bytes - 1;
    if (hw_likely((reads | writes) < SMALL)) {
        touch_64(__heapwise_plane, address, bytes, reads + writes * WRITE);
        return;
    }
    if (bytes && last >= address)
        range_each(address, GRANULE_64, (last >> 6) - (address >> 6) + 1, reads, writes);
}

HW_EXPORT void __heapwise_copy_64(const void *destination, const void *source, uint64_t bytes)
{
    uintptr_t plane = __heapwise_plane;
    touch_64(plane, (uint64_t)source, bytes, 1);
    touch_64(plane, (uint64_t)destination, bytes, WRITE);
}

/* ---- 8-byte granules: saturating bytes, reads and writes apart ---- */

static inline uint8_t *cell_at_8(uintptr_t plane, uint64_t address)
{
    return (uint8_t *)(plane + (address >> 3));
}

static inline uint8_t saturate(uint64_t number)
{
    return number < 255 ? (uint8_t)number : 255;
}

static inline bytes16 add_bytes(bytes16 a, bytes16 b)
{
    bytes16 sum = a + b;
    return sum | (bytes16)(sum < a);
}

static void fill_bytes(uint8_t *cell, uint64_t cells, uint8_t number)
{
    bytes16 add = {0};
    add += number;
    for (; cells >= 16; cells -= 16, cell += 16)
        *(bytes_at_any *)cell = add_bytes(*(bytes_at_any *)cell, add);
    for (; cells; cells--)
        hw_arch_add_saturating(cell++, number);
}

/* A range of one kind of access, 0 < stride < 8: the numbers of visits in successive granules have a period of at most
 * seven granules. */
static __attribute__((noinline)) void weave_bytes(uint8_t *cell, uint64_t cells, uint64_t stride, uint64_t p,
                                                  uint64_t number)
{
    uint8_t pattern[32];
    uint64_t whole = divide(GRANULE_8, stride), rest = GRANULE_8 - whole * stride, start = p, period = 0;
    if (rest == 0) {
        fill_bytes(cell, cells, saturate(whole * number));
        return;
    }
    for (unsigned i = 0; i < sizeof pattern; i++) {
        pattern[i] = saturate((whole + (p < rest)) * number);
        p = step(p, stride, rest);
        if (!period && p == start)
            period = i + 1;
    }
    uint64_t phase = 0;
    for (; cells >= 16; cells -= 16, cell += 16) {
        *(bytes_at_any *)cell = add_bytes(*(bytes_at_any *)cell, *(bytes_at_any *)(pattern + phase));
        for (phase += 16; phase >= period; phase -= period)
            ;
    }
    for (; cells; cells--)
        hw_arch_add_saturating(cell++, pattern[phase++]);
}

static void range_bytes(uint8_t *cell, struct visits visits, uint64_t count, uint64_t number)
{
    uint64_t address = visits.first, last = visits.last, stride = visits.stride;
    uint64_t cells = (last >> 3) - (address >> 3), offset = address & 7;
    if (number == 0)
        return;
    number = saturate(number);
    if (cells == 0) {
        hw_arch_add_saturating(cell, saturate(count < 255 ? count * number : 255));
    } else if (stride > GRANULE_8 || last < address) {
        uint8_t *base = cell - (address >> 3);
        for (; count; count--, address += stride)
            hw_arch_add_saturating(base + (address >> 3), (uint8_t)number);
    } else {
        uint64_t head = divide(7 - offset, stride) + 1;
        hw_arch_add_saturating(cell, saturate(head * number));
        hw_arch_add_saturating(cell + cells, saturate((divide(last & 7, stride) + 1) * number));
        if (cells > 1)
            weave_bytes(cell + 1, cells - 1, stride, offset + head * stride - GRANULE_8, number);
    }
}

HW_EXPORT void __heapwise_add_8(const void *address, uint64_t reads, uint64_t writes)
{
    uint8_t *cell = cell_at_8(__heapwise_plane, (uint64_t)address);
    if (reads)
        hw_arch_add_saturating(cell, saturate(reads));
    if (writes)
        hw_arch_add_saturating(cell + HW_ABI_WRITES_OFFSET, saturate(writes));
}

HW_EXPORT void __heapwise_range_8(const void *start, int64_t signed_stride, uint64_t count, uint64_t reads,
                                  uint64_t writes)
{
    if (hw_unlikely(!count))
        return;
    struct visits visits = upwards(start, signed_stride, count);
    uint8_t *cell = cell_at_8(__heapwise_plane, visits.first);
    range_bytes(cell, visits, count, reads);
    range_bytes(cell + HW_ABI_WRITES_OFFSET, visits, count, writes);
}

static inline void touch_8(uintptr_t plane, uint64_t address, uint64_t bytes, uint64_t reads, uint64_t writes)
{
    uint64_t last = address + bytes - 1, cells = (last >> 3) - (address >> 3) + 1;
    if (!bytes || last < address)
        return;
    uint8_t *cell = cell_at_8(plane, address);
    if (reads)
        fill_bytes(cell, cells, saturate(reads));
    if (writes)
        fill_bytes(cell + HW_ABI_WRITES_OFFSET, cells, saturate(writes));
}

HW_EXPORT void __heapwise_touch_8(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes)
{
    touch_8(__heapwise_plane, (uint64_t)start, bytes, reads, writes);
}

HW_EXPORT void __heapwise_copy_8(const void *destination, const void *source, uint64_t bytes)
{
    uintptr_t plane = __heapwise_plane;
    touch_8(plane, (uint64_t)source, bytes, 1, 0);
    touch_8(plane, (uint64_t)destination, bytes, 0, 1);
}
