/* test_lock.c - the lock of base/sys.c while the program gives up system calls. */
#include "base/sys.c"
#include "support/check.h"

#include <pthread.h>
#include <unistd.h>

static struct hw_lock lock;
static uint32_t had_it;

static void *take_and_drop(void *unused)
{
    hw_sigset old = hw_lock_take(&lock);
    __atomic_fetch_add(&had_it, 1, __ATOMIC_SEQ_CST);
    hw_lock_drop(&lock, old);
    return unused;
}

static bool becomes(const uint32_t *what, uint32_t value)
{
    for (int i = 0; i < 60000 && __atomic_load_n(what, __ATOMIC_SEQ_CST) != value; i++)
        usleep(1000);
    return __atomic_load_n(what, __ATOMIC_SEQ_CST) == value;
}

/* Threads that had begun to wait in the kernel get the lock, whoever else waits for it by then. */
static void test_waiters_from_before(void **state)
{
    pthread_t before[2], after[2];
    hw_sigset old = hw_lock_take(&lock);
    for (int i = 0; i < 2; i++)
        pthread_create(&before[i], NULL, take_and_drop, NULL);
    assert_true(becomes(&lock.state, 2));
    usleep(100000); /* both are asleep by now, most likely */
    hw_quiet = true;
    for (int i = 0; i < 2; i++)
        pthread_create(&after[i], NULL, take_and_drop, NULL);
    usleep(100000); /* and these spin */
    hw_lock_drop(&lock, old);
    assert_true(becomes(&had_it, 4));
    for (int i = 0; i < 2; i++) {
        pthread_join(before[i], NULL);
        pthread_join(after[i], NULL);
    }
    assert_false(hw_lock_in_the_way());
    hw_quiet = false;
}

TEST_LIST(cmocka_unit_test(test_waiters_from_before))
