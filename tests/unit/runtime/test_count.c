/* test_count.c - what __heapwise_range_*, _touch_*, _copy_* and _add_* do, against a loop that does one access at a
 * time.
 *
 * The functions are the runtime's own source, over a shadow that the test provides. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/access/count.c"
#include "support/check.h"

#define SPAN  (1u << 20) /* bytes of program memory that are counted, addresses 0 to SPAN */
#define CELLS (SPAN / 64)
#define BYTES (SPAN / 8)

__thread uintptr_t __heapwise_plane;
static uint64_t carried[CELLS + 2][2]; /* what went through the carry, by cell */
static uint32_t (*got)[2];
static uint64_t want[CELLS + 2][2];
static uint8_t *got_bytes, want_bytes[2][BYTES + 16];

void hw_shadow_carry(void *cell, unsigned half, uint64_t amount)
{
    carried[(uint32_t(*)[2])cell - got][half] += amount;
}

static uint64_t random_state = 88172645463325252ull;
static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static int set_up(void **state)
{
    (void)state;
    got = calloc(CELLS + 2, sizeof *got);
    got_bytes = mmap(NULL, (size_t)HW_ABI_WRITES_OFFSET + BYTES + 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return got && got_bytes != MAP_FAILED ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(got);
    munmap(got_bytes, (size_t)HW_ABI_WRITES_OFFSET + BYTES + 4096);
    return 0;
}

/* ---- the naive way ---- */

static void naive(uint64_t address, uint64_t reads, uint64_t writes)
{
    want[address >> 6][0] += reads;
    want[address >> 6][1] += writes;
    for (int kind = 0; kind < 2; kind++) {
        uint64_t sum = want_bytes[kind][address >> 3] + (kind ? writes : reads);
        want_bytes[kind][address >> 3] = sum < 255 ? (uint8_t)sum : 255;
    }
}

static void clear(uint64_t low, uint64_t high)
{
    for (uint64_t i = low >> 6; i <= high >> 6; i++)
        for (int kind = 0; kind < 2; kind++)
            want[i][kind] = carried[i][kind] = got[i][kind] = 0;
    for (uint64_t i = low >> 3; i <= high >> 3; i++)
        want_bytes[0][i] = want_bytes[1][i] = got_bytes[i] = got_bytes[i + HW_ABI_WRITES_OFFSET] = 0;
}

static void compare(uint64_t low, uint64_t high, const char *what)
{
    for (uint64_t i = low >> 6; i <= high >> 6; i++)
        for (int kind = 0; kind < 2; kind++)
            if (want[i][kind] != got[i][kind] + carried[i][kind])
                fail_msg("%s: %s of granule %lu: %lu, not %lu", what, kind ? "writes" : "reads", i,
                         got[i][kind] + carried[i][kind], want[i][kind]);
    for (uint64_t i = low >> 3; i <= high >> 3; i++)
        for (int kind = 0; kind < 2; kind++)
            if (want_bytes[kind][i] != got_bytes[i + (kind ? (uint64_t)HW_ABI_WRITES_OFFSET : 0)])
                fail_msg("%s: %s of word %lu", what, kind ? "writes" : "reads", i);
}

static void count_into(bool words_of_8)
{
    __heapwise_plane = words_of_8 ? (uintptr_t)got_bytes : (uintptr_t)got;
}

/* ---- tests ---- */

static void check_range(uint64_t start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes)
{
    uint64_t end = start + (uint64_t)stride * (count - (count > 0));
    uint64_t low = start < end ? start : end, high = start < end ? end : start;
    low = low > 256 ? low - 256 : 0; /* the neighbours, too */
    high = high + 256 < SPAN ? high + 256 : SPAN - 1;
    clear(low, high);
    for (uint64_t i = 0; i < count; i++)
        naive(start + (uint64_t)stride * i, reads, writes);
    const void *pointer = (const void *)start;
    count_into(false);
    __heapwise_range_64(pointer, stride, count, reads, writes);
    count_into(true);
    __heapwise_range_8(pointer, stride, count, reads, writes);
    char what[160];
    snprintf(what, sizeof what, "range from %lu, stride %ld, %lu times %lu and %lu", start, stride, count, reads,
             writes);
    compare(low, high, what);
}

static void test_range_every_stride(void **state)
{
    (void)state;
    for (int64_t stride = -140; stride <= 140; stride++)
        for (uint64_t offset = 0; offset < 64; offset += stride % 8 ? 7 : 1)
            for (uint64_t count = 0; count < 200; count += 1 + count / 12)
                check_range(SPAN / 2 + offset, stride, count, 1, 2);
}

static void test_range_random(void **state)
{
    (void)state;
    for (int i = 0; i < 60000; i++) {
        int64_t stride = any(8) ? (int64_t)any(160) - 80 : (int64_t)any(2000) - 1000;
        uint64_t count = any(3) ? any(400) : any(8);
        uint64_t length = (uint64_t)(stride < 0 ? -stride : stride) * count, start = any(SPAN - length);
        uint64_t reads = any(3) ? any(4) : any(1u << 20);
        check_range(stride < 0 ? start + length : start, stride, count, reads, any(3));
    }
}

static void test_range_large_numbers(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0,        1,        (1u << 18) - 1, 1u << 18,   (1u << 24) - 1,
                                       1u << 24, 1u << 31, UINT32_MAX,     1ull << 32, (1ull << 40) + 5};
    static const int64_t strides[] = {0, 1, 3, 8, -8, 24, 64, 65, -200};
    for (size_t r = 0; r < 10; r++)
        for (size_t w = 0; w < 10; w++)
            for (size_t s = 0; s < 9; s++)
                for (uint64_t count = 1; count < 300; count = count * 3 + 1)
                    check_range(SPAN / 2 + 5, strides[s], count, numbers[r], numbers[w]);
    check_range(4096, 0, (1ull << 20) + 3, 70, 0); /* a loop that stays in one place */
}

static void test_touch(void **state)
{
    (void)state;
    for (int i = 0; i < 60000; i++) {
        uint64_t bytes = any(3) ? any(300) : any(20000), start = 4096 + any(SPAN / 2), low = start - 256;
        uint64_t reads = any(4) ? any(3) : any(1u << 26), writes = any(4);
        clear(low, start + bytes + 256);
        for (uint64_t a = start >> 3; bytes && a <= (start + bytes - 1) >> 3; a++)
            for (int kind = 0; kind < 2; kind++) {
                uint64_t number = kind ? writes : reads;
                want_bytes[kind][a] = number < 255 ? (uint8_t)number : 255;
                want[a >> 3][kind] = number;
            }
        count_into(false);
        __heapwise_touch_64((const void *)start, bytes, reads, writes);
        count_into(true);
        __heapwise_touch_8((const void *)start, bytes, reads, writes);
        compare(low, start + bytes + 256, "touch");
    }
}

static void test_copy(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = any(3) ? any(300) : any(20000), from = 4096 + any(SPAN / 4), to = SPAN / 2 + any(SPAN / 4);
        clear(from - 256, from + bytes + 256);
        clear(to - 256, to + bytes + 256);
        for (uint64_t a = 0; a < bytes; a++) {
            want[(from + a) >> 6][0] = want[(to + a) >> 6][1] = 1;
            want_bytes[0][(from + a) >> 3] = want_bytes[1][(to + a) >> 3] = 1;
        }
        count_into(false);
        __heapwise_copy_64((const void *)to, (const void *)from, bytes);
        count_into(true);
        __heapwise_copy_8((const void *)to, (const void *)from, bytes);
        compare(from - 256, from + bytes + 256, "source");
        compare(to - 256, to + bytes + 256, "destination");
    }
}

static void test_add(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t address = 4096 + any(SPAN / 2);
        clear(address - 256, address + 256);
        for (int times = 0; times < 3; times++) {
            uint64_t reads = any(2) ? any(3) : any(1ull << 34), writes = any(2) ? any(300) : any(1u << 26);
            naive(address, reads, writes);
            count_into(false);
            __heapwise_add_64((const void *)address, reads, writes);
            count_into(true);
            __heapwise_add_8((const void *)address, reads, writes);
        }
        compare(address - 256, address + 256, "add");
    }
}

TEST_LIST_WITH(set_up, tear_down, cmocka_unit_test(test_range_every_stride), cmocka_unit_test(test_range_random),
               cmocka_unit_test(test_range_large_numbers), cmocka_unit_test(test_touch), cmocka_unit_test(test_copy),
               cmocka_unit_test(test_add))
