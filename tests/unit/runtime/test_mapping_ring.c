/* test_mapping_ring.c - changes of mappings between threads, also of one that is stopped in the middle. */
#include "support/check.h"

#include "runtime/core/mapping_ring.c"

#include <pthread.h>

static bool put(uintptr_t start)
{
    return hw_mapping_ring_put((struct hw_mapping_change){.start = start, .end = start + 1, .context = 7});
}

static void assert_taken(uintptr_t start)
{
    struct hw_mapping_change change;
    assert_true(hw_mapping_ring_take(&change));
    assert_int_equal(change.start, start);
    assert_int_equal(change.end, start + 1);
    assert_int_equal(change.context, 7);
}

static void assert_empty(void)
{
    struct hw_mapping_change change;
    assert_false(hw_mapping_ring_take(&change));
    assert_int_equal(hw_mapping_ring_count(), 0);
}

static void test_order(void **state)
{
    assert_empty();
    for (uintptr_t round = 0; round < 1000; round++) {
        for (uintptr_t i = 0; i < round % 60 + 1; i++)
            assert_true(put(round + i));
        assert_int_equal(hw_mapping_ring_count(), round % 60 + 1);
        for (uintptr_t i = 0; i < round % 60 + 1; i++)
            assert_taken(round + i);
        assert_empty();
    }
}

static void test_full(void **state)
{
    for (uintptr_t i = 0; i < HW_MAPPING_RING; i++)
        assert_true(put(i));
    assert_false(put(99));
    assert_taken(0);
    assert_true(put(100));
    assert_false(put(99));
    for (uintptr_t i = 1; i < HW_MAPPING_RING; i++)
        assert_taken(i);
    assert_taken(100);
    assert_empty();
}

/* A thread has occupied a place, and goes on much later. */
static void test_stopped_thread(void **state)
{
    const uint64_t stopped = next;
    assert_true(swap(stopped, FREE, WRITING));
    for (uintptr_t i = 1; i < HW_MAPPING_RING; i++)
        assert_true(put(i));
    assert_false(put(99));
    for (uintptr_t i = 1; i < HW_MAPPING_RING; i++)
        assert_taken(i);
    assert_empty();
    assert_false(put(99)); /* its place comes next */
    assert_empty();
    assert_false(swap(stopped, WRITING, FULL));
    set_free(stopped);
    for (uintptr_t i = 0; i < HW_MAPPING_RING; i++)
        assert_true(put(i));
    for (uintptr_t i = 0; i < HW_MAPPING_RING; i++)
        assert_taken(i);
    assert_empty();
}

/* A thread was stopped before it said where the next change goes, and many rounds have passed. */
static void test_late_thread(void **state)
{
    const uint64_t before = next;
    for (uintptr_t i = 0; i < 1000; i++) {
        assert_true(put(i));
        assert_taken(i);
    }
    next = before;
    assert_true(put(5));
    assert_taken(5);
    assert_empty();
}

enum { THREADS = 3, EACH = 20000 };
static uint64_t refused[THREADS];
static int running = THREADS;

static void *put_all(void *number)
{
    const uintptr_t self = (uintptr_t)number;
    for (uintptr_t i = 1; i <= EACH; i++)
        refused[self] += !put(self << 32 | i);
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Nothing comes twice, nothing is missing, and each thread's changes come in their order. */
static void test_threads(void **state)
{
    pthread_t thread[THREADS];
    uint64_t latest[THREADS] = {0}, taken[THREADS] = {0};
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, put_all, (void *)i), 0);
    for (bool last = false;; last = !__atomic_load_n(&running, __ATOMIC_SEQ_CST)) {
        struct hw_mapping_change change;
        while (hw_mapping_ring_take(&change)) {
            const uintptr_t of = change.start >> 32;
            assert_true(of < THREADS);
            assert_int_equal(change.end, change.start + 1);
            assert_true((change.start & 0xffffffff) > latest[of]);
            latest[of] = change.start & 0xffffffff;
            taken[of]++;
        }
        if (last)
            break;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(taken[i] + refused[i], EACH);
    }
    assert_empty();
}

TEST_LIST(cmocka_unit_test(test_order), cmocka_unit_test(test_full), cmocka_unit_test(test_stopped_thread),
          cmocka_unit_test(test_late_thread), cmocka_unit_test(test_threads))
