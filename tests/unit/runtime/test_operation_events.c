/* test_operation_events.c - events of the kernel during single operations: page faults that the test makes itself, and
 * nothing of what is outside; descriptors that are closed, or become something else, are noticed.
 *
 * What is tested is the runtime's own source. Where the kernel refuses perf events getrusage serves. */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.c"
#include "runtime/allocator/operation_events.c"
#include "support/recording.h"

/* ---- what it needs of the runtime ---- */

static char entries[sizeof(struct hw_operation_events) * 64];
static char note[256];
struct hw_options hw_options;
struct hw_runtime hw_runtime;
struct hw_pool hw_pools[HW_POOL_COUNT];

uint64_t hw_clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hw_clock_slow(void)
{
    return hw_clock_monotonic_ns();
}

void hw_note(enum hw_note_code code, const char *text)
{
    assert_int_equal(code, HW_NOTE_NO_EVENTS);
    snprintf(note, sizeof note, "%s", text);
}

void *hw_own_pages(size_t bytes, bool wipe_on_fork)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

uint32_t hw_pool_take(enum hw_pool_id pool, uint32_t count)
{
    struct hw_pool *of = &hw_pools[pool];
    assert_int_equal(pool, HW_POOL_OPERATION_EVENTS);
    if (of->used + count * of->entry_size > sizeof entries)
        return HW_NONE;
    of->used += count * of->entry_size;
    return (uint32_t)(of->used / of->entry_size) - count;
}

void hw_pool_publish(enum hw_pool_id pool)
{
}

/* ---- operations ---- */

#define PAGES        8
#define OTHER_FAULTS 4 /* fewer than there are pages */

static struct hw_dispatch_thread dispatch;
static struct hw_operator operator= {.dispatch = &dispatch};

static void start(const char *which)
{
    memset(hw_pools, 0, sizeof hw_pools);
    hw_pools[HW_POOL_OPERATION_EVENTS] =
        (struct hw_pool){.base = entries, .entry_size = sizeof(struct hw_operation_events)};
    memset(&dispatch, 0, sizeof dispatch);
    memset(entries, 0, sizeof entries);
    if (events.row)
        memset(events.row, 0, ROWS * sizeof *events.row);
    *note = '\0';
    snprintf(hw_options.operation_events, sizeof hw_options.operation_events, "%s", which);
    assert_true(hw_hardware_start());
}

static void touch(char *pages)
{
    for (size_t i = 0; i < PAGES; i++)
        ((volatile char *)pages)[i * 4096] = 1;
}

static char *fresh(void)
{
    char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
    return pages;
}

/* An operation that touches fresh pages, between others that are not looked at. False: it could not be. */
static bool operate(enum hw_operation_kind kind, uint32_t bucket)
{
    char *outside = fresh(), *inside = fresh();
    touch(outside);
    dispatch.events_next = 0;
    const bool looked = hw_hardware_begin(&operator);
    touch(inside);
    if (looked)
        hw_hardware_end(&operator, HW_PHASE_SERIAL, kind, bucket);
    munmap(outside, PAGES * 4096);
    munmap(inside, PAGES * 4096);
    return looked;
}

static const struct hw_operation_events *entry(size_t i)
{
    return HW_ENTRY(HW_POOL_OPERATION_EVENTS, struct hw_operation_events, i);
}

static void check_faults(void)
{
    for (int i = 0; i < 5; i++)
        assert_true(operate(HW_OPERATION_NEW, 3));
    assert_true(operate(HW_OPERATION_FREE, 4));
    assert_int_equal(HW_ENTRIES(HW_POOL_OPERATION_EVENTS), 2);
    assert_int_equal(entry(0)->bucket, 3);
    assert_int_equal(entry(0)->kind, HW_OPERATION_NEW);
    assert_int_equal(entry(0)->samples, 5);
    assert_int_equal(entry(1)->samples, 1);
    assert_int_equal(entry(1)->kind, HW_OPERATION_FREE);
    assert_true(entry(0)->present >> HW_EVENT_PAGE_FAULTS & 1);
    /* The kernel may map several pages at once; code that runs for the first time faults, too. */
    assert_in_range(entry(0)->sum[HW_EVENT_PAGE_FAULTS], 5, 5 * PAGES + OTHER_FAULTS);
    assert_in_range(entry(1)->sum[HW_EVENT_PAGE_FAULTS], 1, PAGES + OTHER_FAULTS);
}

static void test_by_usage(void **state)
{
    start("nothing of this name");
    events.count = 0; /* as if there were no counters */
    events.present = BY_RUSAGE;
    memset(events.of_reading, 0, sizeof events.of_reading);
    check_faults();
    assert_false(entry(0)->present >> HW_EVENT_INSTRUCTIONS & 1);
}

static bool has_software(void)
{
    start("software");
    return events.count != 0;
}

static void test_software(void **state)
{
    if (!has_software()) {
        assert_true(*note);
        SKIP("perf_event_open: %s", note);
    }
    assert_int_equal(events.present, 1u << HW_EVENT_PAGE_FAULTS | 1u << HW_EVENT_CPU_NS | 1u << HW_EVENT_SWITCHES);
    check_faults();
    assert_true(entry(0)->sum[HW_EVENT_CPU_NS] > 0);
    assert_int_equal(dispatch.event_count, events.count);
    hw_hardware_close(&dispatch);
    assert_int_equal(events.groups, 0);
}

/* The program closes all it does not know, and opens files of its own under the same numbers. */
static void test_descriptors_taken(void **state)
{
    if (!has_software())
        SKIP("perf_event_open: %s", note);
    assert_true(operate(HW_OPERATION_NEW, 3));
    const int leader = dispatch.event_fd[0];
    assert_true(leader >= HW_FD_HIGH);
    close(leader);
    assert_false(operate(HW_OPERATION_NEW, 3));
    const int other = open("/dev/null", O_RDONLY);
    assert_int_equal(dup2(other, leader), leader);
    assert_false(operate(HW_OPERATION_NEW, 3));
    assert_int_equal(entry(0)->samples, 1);
    hw_hardware_close(&dispatch);
    assert_true(fcntl(leader, F_GETFD) >= 0); /* the program's own stays open */
    close(leader);
    close(other);
}

static void test_seldom(void **state)
{
    start("software");
    assert_true(hw_hardware_begin(&operator));
    assert_false(hw_hardware_begin(&operator)); /* not before a millisecond */
    hw_hardware_close(&dispatch);
}

static void test_off(void **state)
{
    start("none");
    assert_non_null(strstr(note, "switched off"));
    assert_false(operate(HW_OPERATION_NEW, 3));
    assert_int_equal(HW_ENTRIES(HW_POOL_OPERATION_EVENTS), 0);
}

TEST_LIST(cmocka_unit_test(test_by_usage), cmocka_unit_test(test_software), cmocka_unit_test(test_descriptors_taken),
          cmocka_unit_test(test_seldom), cmocka_unit_test(test_off))
