/* test_word_cells.c - the cells of words of 4 bytes: marks, folds while marks are set, blocks that are freed with their
 * patterns, counts that are carried or at their limit. Everything against a model that does one word at a time.
 *
 * What is tested is the runtime's own source, over a shadow that the test provides. */
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.c"
#include "runtime/access/cells.c"
#include "runtime/access/count_words.c"
#include "runtime/access/plane_pages.c"
#include "runtime/access/word_cells.c"

#define SPAN      (1u << 20) /* bytes of program memory, addresses from START on */
#define START     (1ul << 20)
#define WORDS     (SPAN / 4)
#define BLOCK_RUN 64u /* runs that a block of the test can have */

/* ---- what words.c needs of the rest ---- */

struct hw_shadow hw_shadow;
struct hw_pool hw_pools[HW_POOL_COUNT];
uint8_t *hw_layout_map;
__thread uintptr_t __heapwise_plane;
static uint32_t chunks[BLOCK_RUN];
static struct hw_histogram_owner owner;

static void *reserve(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}
void *hw_own_pages(size_t bytes, bool wipe_on_fork)
{
    (void)wipe_on_fork;
    return reserve(bytes);
}
uintptr_t hw_pool_hole(uintptr_t from, uintptr_t end, uint64_t stamp, uintptr_t *hole_end)
{
    (void)from;
    (void)stamp;
    *hole_end = end;
    return end;
}
struct hw_histogram_target *hw_histogram_of_freed(struct hw_histogram_target *target, const struct hw_mib *mib,
                                                  uint32_t free_context, const void *address)
{
    (void)mib;
    *target = (struct hw_histogram_target){.pool = HW_POOL_WORDS,
                                           .free_context = free_context,
                                           .chunk = chunks,
                                           .start = (uintptr_t)address,
                                           .owner = &owner};
    return target;
}
struct hw_words *hw_histogram_words_slow(struct hw_histogram_target *target, uintptr_t address)
{
    uint64_t run = (address - target->start) / (4 * HW_WORDS_RUN);
    assert_true(run < BLOCK_RUN);
    if (!run)
        owner.first = 1;
    return HW_ENTRY(HW_POOL_WORDS, struct hw_words, run);
}
void hw_histogram_add_word(struct hw_histogram_target *target, uintptr_t address, uint64_t reads, uint64_t writes,
                           bool saturated)
{
    struct hw_words *entry = hw_histogram_words_slow(target, address);
    uint64_t i = (address - target->start) / 4 % HW_WORDS_RUN;
    entry->read_periods[i] += reads;
    entry->written_periods[i] += writes;
    entry->read_blocks[i] += reads != 0;
    entry->written_blocks[i] += writes != 0;
    entry->saturated += saturated;
}

void hw_histogram_add(struct hw_histogram_target *target, uintptr_t address, uint64_t count, bool saturated)
{
    (void)target;
    (void)address;
    (void)count;
    (void)saturated;
    fail_msg("other granules");
}
void hw_shadow_carry(void *cell, unsigned half, uint64_t amount)
{
    (void)cell;
    (void)half;
    (void)amount;
    fail_msg("other granules");
}
bool hw_shadow_side(uintptr_t first, uintptr_t end, bool take, uint64_t more[2])
{
    (void)first;
    (void)end;
    (void)take;
    (void)more;
    return false;
}
void hw_shadow_side_add(uintptr_t cell, const uint64_t more[2])
{
    (void)cell;
    (void)more;
    fail_msg("other granules");
}

void hw_line_add(struct hw_cell_sum *sum, uintptr_t address, const struct hw_line_use *uses, uint32_t count,
                 unsigned words)
{
    (void)address;
    (void)uses;
    (void)words;
    sum->lines_true += count > 1;
}

/* ---- the model ---- */

static uint64_t random_state = 88172645463325252ull;
static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 16) % below;
}

static uint8_t *cell_of(unsigned plane, uintptr_t address, unsigned kind)
{
    return (uint8_t *)(hw_shadow.plane[plane] + (address >> 2) + (kind ? HW_ABI_WRITES_OFFSET : 0));
}

static int set_up(void **state)
{
    (void)state;
    uintptr_t base = (uintptr_t)reserve(HW_ABI_WRITES_OFFSET + (1ul << 26));
    hw_shadow.granule = 4;
    hw_shadow.shift = 2;
    hw_shadow.plane[0] = base;
    hw_shadow.plane[1] = base + (1ul << 24);
    hw_shadow.planes_used = 1;
    hw_pools[HW_POOL_WORDS] =
        (struct hw_pool){.base = reserve(BLOCK_RUN * sizeof(struct hw_words)), .entry_size = sizeof(struct hw_words)};
    hw_layout_map = reserve(1ul << 26);
    __heapwise_plane = base;
    return hw_words_start() ? 0 : -1;
}

static void forget(void)
{
    owner = (struct hw_histogram_owner){.table = 1};
    memset(hw_pools[HW_POOL_WORDS].base, 0, BLOCK_RUN * sizeof(struct hw_words));
}

/* What an entry says in all: the sums, and the pattern. */
static uint64_t told(const uint64_t *sums, const struct hw_words *entry, const uint8_t *cells, unsigned i, bool blocks)
{
    uint64_t each = blocks ? cells[i] != 0 : (cells[i] & 127u) + (cells[i] >> 7);
    return sums[i] + entry->repeats * each;
}

/* ---- marks ---- */

static void test_marks(void **state)
{
    (void)state;
    static uint8_t want[2][WORDS];
    for (int round = 0; round < 20000; round++) {
        uint64_t first = any(800), bytes = any(8) ? any(70) : any(600), count = 1 + any(9), kinds = 1 + any(3);
        int64_t stride = (int64_t)any(60) - 30, at = START + 2000 + (int64_t)first;
        uint64_t other = START + 4000 + any(800);
        memset(want, 0, sizeof want);
        int form = (int)any(3);
        for (uint64_t word = any(2) ? 2048 : 0; word-- > 0;) /* marked already, nearly all of them */
            for (unsigned kind = 0; kind < 2; kind++)
                if (any(60))
                    want[kind][word] = *cell_of(0, START + 4 * word, kind) = HW_ABI_RECENT;
        for (unsigned kind = 0; kind < 2; kind++)
            for (uint64_t i = 0; i < (form ? 1 : count); i++) {
                if (form < 2 && !(kinds >> kind & 1))
                    continue;
                int64_t start = form == 2 && !kind ? (int64_t)other : at + (form ? 0 : (int64_t)i * stride);
                for (uint64_t byte = 0; byte < bytes; byte++)
                    want[kind][((uint64_t)start + byte - START) / 4] = HW_ABI_RECENT;
            }
        if (form == 0)
            __heapwise_range_4((void *)at, stride, count, bytes, kinds);
        else if (form == 1)
            __heapwise_touch_4((void *)at, bytes, kinds & 1, kinds >> 1);
        else
            __heapwise_copy_4((void *)at, (void *)other, bytes);
        for (unsigned kind = 0; kind < 2; kind++) {
            if (memcmp(cell_of(0, START, kind), want[kind], 8192))
                fail_msg("round %d, form %d: %llu bytes, %llu times %lld, kinds %llu", round, form,
                         (unsigned long long)bytes, (unsigned long long)count, (long long)stride,
                         (unsigned long long)kinds);
            memset(cell_of(0, START, kind), 0, 8192);
        }
    }
}

/* ---- folds ---- */

static volatile bool done;
static volatile unsigned folds;

static void *fold_all(void *unused)
{
    uint64_t *at = (uint64_t *)cell_of(0, START, 0);
    bool to_carry;
    (void)unused;
    while (!done)
        for (unsigned k = 0; k < 8; k++)
            folds += hw_words_fold(at + k, &to_carry);
    return NULL;
}

/* Marks that are set while others of the same eight cells are folded are kept: each word is marked once. The two
 * threads have to meet for that: the test goes on until they have, many times. */
static void test_marks_during_folds(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t lost = 0;
    done = false;
    assert_int_equal(pthread_create(&thread, NULL, fold_all, NULL), 0);
    for (unsigned round = 0; round < 20000000 && folds < 100000; round++) {
        volatile uint8_t *cells = cell_of(0, START, 0);
        for (unsigned i = 0; i < 64; i++)
            cells[i] = (uint8_t)(cells[i] | HW_ABI_RECENT);
        for (unsigned i = 0; i < 64; i++)
            lost += cells[i] == 0; /* a mark or a period, at every moment */
        for (unsigned i = 0; i < 64; i += 8)
            __atomic_store_n((uint64_t *)(uintptr_t)(cells + i), 0, __ATOMIC_SEQ_CST);
    }
    done = true;
    pthread_join(thread, NULL);
    memset(cell_of(0, START, 0), 0, 64);
    assert_int_equal(lost, 0);
}

/* ---- blocks ---- */

static struct {
    uint64_t periods[2][BLOCK_RUN * HW_WORDS_RUN], blocks[2][BLOCK_RUN * HW_WORDS_RUN], saturated;
} want;

/* Cells of a block as they might be; whole blocks alike most often. */
static void fill(uintptr_t start, uint64_t bytes, unsigned plane, uint64_t likeness, bool limits)
{
    uint64_t kept = random_state;
    if (likeness)
        random_state = likeness;
    for (uint64_t word = 0; word < (bytes + 3) / 4; word++)
        for (unsigned kind = 0; kind < 2; kind++) {
            uint8_t value = any(3) ? 0 : any(2) ? HW_ABI_RECENT : (uint8_t)any(limits ? 256 : 200);
            if (!limits && (value & 127) == 127)
                value--;
            *cell_of(plane, start + 4 * word, kind) = value;
        }
    if (likeness)
        random_state = kept;
    if (likeness && !any(3)) /* but for one word */
        *cell_of(plane, start + 4 * any((bytes + 3) / 4), any(2)) ^= HW_ABI_RECENT;
}

static struct hw_cell_sum expect_block(uintptr_t start, uint64_t bytes)
{
    struct hw_cell_sum sum = {.granules = (bytes + 3) / 4};
    for (uint64_t word = 0; word < (bytes + 3) / 4; word++) {
        bool used = false;
        for (unsigned kind = 0; kind < 2; kind++) {
            uint64_t periods = 0;
            for (unsigned plane = 0; plane < hw_shadow.planes_used; plane++) {
                uint8_t cell = *cell_of(plane, start + 4 * word, kind);
                periods += (cell & 127u) + (cell >> 7);
                want.saturated += (cell & 127) == 127;
            }
            want.periods[kind][word] += periods;
            want.blocks[kind][word] += periods != 0;
            *(kind ? &sum.writes : &sum.reads) += periods;
            used |= periods != 0;
        }
        sum.touched += used;
    }
    return sum;
}

static void check_blocks(bool saturated_exactly)
{
    uint64_t saturated = 0;
    for (unsigned word = 0; word < BLOCK_RUN * HW_WORDS_RUN; word++) {
        const struct hw_words *entry = HW_ENTRY(HW_POOL_WORDS, struct hw_words, word / HW_WORDS_RUN);
        unsigned i = word % HW_WORDS_RUN;
        assert_int_equal(told(entry->read_periods, entry, entry->read_cells, i, false), want.periods[0][word]);
        assert_int_equal(told(entry->written_periods, entry, entry->written_cells, i, false), want.periods[1][word]);
        assert_int_equal(told(entry->read_blocks, entry, entry->read_cells, i, true), want.blocks[0][word]);
        assert_int_equal(told(entry->written_blocks, entry, entry->written_cells, i, true), want.blocks[1][word]);
        saturated += i ? 0 : entry->saturated;
    }
    if (saturated_exactly)
        assert_int_equal(saturated, want.saturated);
    else
        assert_int_equal(saturated != 0, want.saturated != 0);
}

static void free_blocks(unsigned planes, bool limits, int rounds)
{
    forget();
    memset(&want, 0, sizeof want);
    hw_shadow.planes_used = planes;
    for (int round = 0; round < rounds; round++) {
        uint64_t bytes = 1 + (any(4) ? any(400) : any(6000)), likeness = any(3) ? 1000 + any(2) : 0;
        uintptr_t start = START + 64 + 32 * any(1000);
        if (likeness)
            bytes = likeness == 1000 ? 40 : 300;
        for (unsigned plane = 0; plane < planes; plane++)
            if (planes == 1 || any(2))
                fill(start, bytes, plane, likeness, limits);
        *cell_of(0, start - 4, 0) = *cell_of(0, start - 4, 1) = 5; /* others' */
        uint64_t after = (bytes + 31) / 32 * 32;
        *cell_of(0, start + after, 0) = *cell_of(0, start + after, 1) = 7;
        struct hw_cell_sum sum = {0}, expected = expect_block(start, bytes);
        hw_words_freed(NULL, HW_NONE, start, start + bytes, &sum);
        assert_int_equal(sum.reads, expected.reads);
        assert_int_equal(sum.writes, expected.writes);
        assert_int_equal(sum.touched, expected.touched);
        assert_int_equal(sum.granules, expected.granules);
        assert_true(hw_words_are_clear(start, start + bytes) || bytes > 4000);
        for (uint64_t word = 0; word < (bytes + 3) / 4; word++)
            for (unsigned plane = 0; plane < planes; plane++)
                assert_false(*cell_of(plane, start + 4 * word, 0) || *cell_of(plane, start + 4 * word, 1));
        for (unsigned kind = 0; kind < 2; kind++) {
            assert_int_equal(*cell_of(0, start - 4, kind), 5);
            assert_int_equal(*cell_of(0, start + after, kind), 7);
            *cell_of(0, start - 4, kind) = *cell_of(0, start + after, kind) = 0;
        }
    }
    check_blocks(planes == 1);
    hw_shadow.planes_used = 1;
}

static void test_freed_blocks(void **state)
{
    (void)state;
    free_blocks(1, false, 20000);
}

/* Counts at their limit are told as such. */
static void test_limits(void **state)
{
    (void)state;
    free_blocks(1, true, 3000);
}

static void test_several_planes(void **state)
{
    (void)state;
    free_blocks(2, true, 3000);
}

/* A new block's cells are looked at, also those that only reach into its last 32 bytes. */
static void test_clear(void **state)
{
    (void)state;
    for (int round = 0; round < 5000; round++) {
        uint64_t bytes = 1 + any(500);
        uintptr_t start = START + 64 + 4 * any(1000), word = start + any(bytes);
        assert_true(hw_words_are_clear(start, start + bytes));
        *cell_of(0, word, any(2)) = HW_ABI_RECENT;
        assert_false(hw_words_are_clear(start, start + bytes));
        hw_cells_clear(start, start + bytes);
        assert_true(hw_words_are_clear(start, start + bytes));
    }
}

/* ---- what goes beyond a cell ---- */

/* ---- long ranges ---- */

/* Sets some cells of both planes in some pages of shadow; what they say is left in MODEL, by kind and word. */
static uint8_t model[2][WORDS];
static unsigned other_plane;
static void scatter(void)
{
    hw_cells_clear(START, START + SPAN);
    memset(model, 0, sizeof model);
    for (uint64_t page = 0; page < SPAN / HW_SHADOW_PAGE; page++)
        for (uint64_t n = any(3) ? 0 : any(20); n > 0; n--) {
            const uintptr_t word = page * (HW_SHADOW_PAGE / 4) + any(HW_SHADOW_PAGE / 4), kind = any(2);
            if (model[kind][word])
                continue;
            model[kind][word] = (uint8_t)(1 + any(100));
            *cell_of(any(2) ? other_plane : 0, START + 4 * word, (unsigned)kind) = model[kind][word];
        }
}

static void check_cells(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        const uint8_t *first = cell_of(0, START, kind), *second = cell_of(other_plane, START, kind);
        uint64_t wrong = 0;
        for (uint64_t word = 0; word < WORDS; word++)
            wrong += first[word] + second[word] != model[kind][word];
        assert_int_equal(wrong, 0);
    }
}

static void test_long_ranges(void **state)
{
    (void)state;
    const uintptr_t second = hw_shadow.plane[1];
    other_plane = 60; /* so many that not all pages are asked about at once */
    for (unsigned i = 1; i < other_plane; i++)
        hw_shadow.plane[i] = hw_shadow.plane[0] + (1ul << 25) + i * (1ul << 18);
    hw_shadow.plane[other_plane] = second;
    hw_shadow.planes_used = other_plane + 1;
    for (int round = 0; round < 80; round++) {
        scatter();
        const uint64_t words = HW_CELLS_LONG / 4 + any(WORDS / 2 - HW_CELLS_LONG / 4), first = any(WORDS - words);
        const uintptr_t start = START + 4 * first, end = start + 4 * words;
        struct hw_cell_sum sum = {0};
        uint64_t wanted[2] = {0}, touched = 0;
        for (uint64_t word = first; word < first + words; word++) {
            touched += (model[0][word] | model[1][word]) != 0;
            for (unsigned kind = 0; kind < 2; kind++)
                wanted[kind] += model[kind][word];
        }
        const bool take = any(2);
        hw_cells_scan(start, end, take, &sum, NULL);
        assert_int_equal(sum.reads, wanted[0]);
        assert_int_equal(sum.writes, wanted[1]);
        assert_int_equal(sum.touched, touched);
        assert_int_equal(sum.granules, words);
        for (unsigned kind = 0; take && kind < 2; kind++)
            memset(model[kind] + first, 0, words);
        check_cells();
    }
    for (int round = 0; round < 80; round++) { /* to a clean place, not always aside */
        scatter();
        const uint64_t words = HW_CELLS_LONG / 4 + any(WORDS / 4), from = any(WORDS - words), to = any(WORDS - words);
        for (uint64_t word = to; word < to + words; word++)
            if (word < from || word >= from + words) {
                hw_cells_clear(START + 4 * word, START + 4 * word + 4);
                model[0][word] = model[1][word] = 0;
            }
        hw_cells_move(START + 4 * from, START + 4 * to, START + 4 * (from + words));
        for (unsigned kind = 0; kind < 2; kind++) {
            memmove(model[kind] + to, model[kind] + from, words);
            for (uint64_t word = from; word < from + words; word++)
                if (word < to || word >= to + words)
                    model[kind][word] = 0;
        }
        check_cells();
    }
    hw_cells_clear(START, START + SPAN);
    hw_shadow.planes_used = 1;
}

static void test_carries(void **state)
{
    (void)state;
    uintptr_t start = START + 4096;
    uint8_t *cell = cell_of(0, start + 12, 1);
    uint64_t periods = 0;
    bool to_carry = false;
    forget();
    for (unsigned i = 0; i < 100000; i++) {
        *cell |= HW_ABI_RECENT;
        assert_true(hw_words_fold((uint64_t *)((uintptr_t)cell & ~7ul), &to_carry));
        periods++;
        if (to_carry)
            hw_words_carry((uint64_t *)((uintptr_t)cell & ~7ul), start, 1);
        assert_true(*cell & 127); /* it says who used the word */
    }
    assert_true(periods > 90000 && carried.used);
    struct hw_cell_sum sum = {0};
    hw_words_freed(NULL, HW_NONE, start, start + 64, &sum);
    assert_int_equal(sum.writes, periods);
    assert_int_equal(sum.saturated, 0);
    const struct hw_words *entry = HW_ENTRY(HW_POOL_WORDS, struct hw_words, 0);
    assert_int_equal(told(entry->written_periods, entry, entry->written_cells, 3, false), periods);
    assert_int_equal(told(entry->written_blocks, entry, entry->written_cells, 3, true), 1);
    sum = (struct hw_cell_sum){0};
    *cell |= HW_ABI_RECENT;
    hw_words_freed(NULL, HW_NONE, start, start + 64, &sum); /* the next block there */
    assert_int_equal(sum.writes, 1);
}

/* Where nothing can be carried a count stays at its end, and says so. */
static void test_saturation(void **state)
{
    (void)state;
    uintptr_t start = START + 8192;
    uint8_t *cell = cell_of(0, start, 0);
    bool to_carry;
    forget();
    for (unsigned i = 0; i < 300; i++) {
        *cell |= HW_ABI_RECENT;
        hw_words_fold((uint64_t *)cell, &to_carry);
    }
    assert_int_equal(*cell & 127, 127);
    hw_words_carry((uint64_t *)cell, start, 0); /* too late */
    assert_int_equal(*cell & 127, 127);
    struct hw_cell_sum sum = {0};
    hw_words_freed(NULL, HW_NONE, start, start + 32, &sum);
    assert_true(sum.reads == 127 || sum.reads == 128);
    assert_int_equal(sum.saturated, 1);
}

TEST_LIST_WITH(set_up, NULL, cmocka_unit_test(test_marks), cmocka_unit_test(test_marks_during_folds),
               cmocka_unit_test(test_freed_blocks), cmocka_unit_test(test_limits),
               cmocka_unit_test(test_several_planes), cmocka_unit_test(test_clear), cmocka_unit_test(test_long_ranges),
               cmocka_unit_test(test_carries), cmocka_unit_test(test_saturation))
