/* test_perf.c - the kernel's ring of samples: made-up ones, and real ones of page faults; which events a processor has,
 * by made-up directories.
 *
 * What is tested is the runtime's own source. */
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch/x86_64/decode.h"
#include "base/sys.c"
#include "runtime/samples/perf_ring.c"
#include "runtime/samples/perf_source.c"
#include "support/recording.h"

/* ---- made-up rings ---- */

#define RING_SIZE 4096u

static struct {
    struct perf_event_mmap_page page;
    uint8_t rest[4096 - sizeof(struct perf_event_mmap_page)];
    uint8_t data[RING_SIZE];
} mapping __attribute__((aligned(4096)));
static struct hw_perf_ring ring;

static void empty_ring(uint64_t position)
{
    memset(&mapping, 0, sizeof mapping);
    mapping.page.data_offset = 4096;
    mapping.page.data_size = RING_SIZE;
    mapping.page.data_head = mapping.page.data_tail = position;
    assert_true(hw_perf_ring_open(&ring, &mapping, 2));
}

static void put(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++, mapping.page.data_head += 8)
        memcpy(mapping.data + mapping.page.data_head % RING_SIZE, &words[i], 8);
}

static uint64_t header(uint32_t type, uint16_t misc, uint16_t size)
{
    return (uint64_t)size << 48 | (uint64_t)misc << 32 | type;
}

static void put_sample(uint64_t n, bool with_register)
{
    const uint64_t words[] = {header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, with_register ? 80 : 72),
                              0x1000 + n,
                              7ull << 32 | 5,
                              0x2000 + n,
                              0x3000 + n,
                              3,
                              with_register ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_NONE,
                              0x4000 + n,
                              0x5000 + n,
                              PERF_MEM_OP_STORE};
    put(words, 7);
    put(words + (with_register ? 7 : 8), with_register ? 3 : 2);
}

static enum hw_perf_read next(struct hw_perf_sample *sample, uint64_t *lost)
{
    enum hw_perf_read result = hw_perf_ring_next(&ring, sample, lost);
    assert_true(mapping.page.data_tail <= mapping.page.data_head);
    return result;
}

static enum hw_perf_read next_kind(void)
{
    struct hw_perf_sample sample;
    uint64_t lost;
    return next(&sample, &lost);
}

static void assert_sample(uint64_t n, bool with_register)
{
    struct hw_perf_sample sample;
    uint64_t lost;
    assert_int_equal(next(&sample, &lost), HW_PERF_SAMPLE);
    assert_int_equal(sample.pc, 0x1000 + n);
    assert_int_equal(sample.pid, 5);
    assert_int_equal(sample.tid, 7);
    assert_int_equal(sample.time, 0x2000 + n);
    assert_int_equal(sample.address, 0x3000 + n);
    assert_int_equal(sample.cpu, 3);
    assert_int_equal(sample.stack, with_register ? 0x4000 + n : 0);
    assert_int_equal(sample.weight, 0x5000 + n);
    assert_false(sample.in_kernel);
    assert_int_equal(hw_perf_sample_flags(&sample), HW_TOUCH_WRITE);
}

/* At every position of the ring's end within a record; positions beyond 32 and 64 bits, too. */
static void test_wrap(void **state)
{
    static const uint64_t bases[] = {0, 0xfffff000, 0ull - 4096 - RING_SIZE};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (uint64_t from = 0; from <= 96; from += 8) {
            empty_ring(bases[b] + RING_SIZE - from);
            for (uint64_t n = 0; n < 5; n++)
                put_sample(n, n % 2);
            for (uint64_t n = 0; n < 5; n++)
                assert_sample(n, n % 2);
            assert_int_equal(next_kind(), HW_PERF_EMPTY);
            assert_int_equal(mapping.page.data_tail, mapping.page.data_head);
        }
}

static void test_full(void **state)
{
    empty_ring(RING_SIZE * 3 + 40);
    uint64_t count = RING_SIZE / 80;
    for (uint64_t n = 0; n < count; n++)
        put_sample(n, true);
    const uint64_t filler[] = {header(PERF_RECORD_FORK, 0, RING_SIZE - 51 * 80), 0};
    put(filler, (RING_SIZE - 51 * 80) / 8);
    assert_int_equal(mapping.page.data_head - mapping.page.data_tail, RING_SIZE);
    for (uint64_t n = 0; n < count; n++)
        assert_sample(n, true);
    assert_int_equal(next_kind(), HW_PERF_OTHER);
    assert_int_equal(next_kind(), HW_PERF_EMPTY);
}

static void test_other_records(void **state)
{
    struct hw_perf_sample sample;
    uint64_t lost = 0;
    const uint64_t gone[] = {header(PERF_RECORD_LOST, 0, 24), 1, 12345};
    const uint64_t gone_samples[] = {header(PERF_RECORD_LOST_SAMPLES, 0, 16), 77};
    const uint64_t throttle[] = {header(PERF_RECORD_THROTTLE, 0, 32), 1, 2, 3};
    const uint64_t unthrottle[] = {header(PERF_RECORD_UNTHROTTLE, 0, 32), 1, 2, 3};
    const uint64_t unknown[] = {header(4711, 0, 8)};
    empty_ring(RING_SIZE - 8);
    put(gone, 3);
    put_sample(1, true);
    put(gone_samples, 2);
    put(throttle, 4);
    put(unthrottle, 4);
    put(unknown, 1);
    put_sample(2, false);
    assert_int_equal(next(&sample, &lost), HW_PERF_LOST);
    assert_int_equal(lost, 12345);
    assert_sample(1, true);
    assert_int_equal(next(&sample, &lost), HW_PERF_LOST);
    assert_int_equal(lost, 77);
    assert_int_equal(next_kind(), HW_PERF_THROTTLE);
    assert_int_equal(next_kind(), HW_PERF_OTHER);
    assert_int_equal(next_kind(), HW_PERF_OTHER);
    assert_sample(2, false);
    assert_int_equal(next_kind(), HW_PERF_EMPTY);
}

static void test_in_kernel(void **state)
{
    struct hw_perf_sample sample;
    uint64_t lost, word = header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, 72);
    empty_ring(0);
    put_sample(1, false);
    memcpy(mapping.data, &word, 8);
    assert_int_equal(next(&sample, &lost), HW_PERF_SAMPLE);
    assert_true(sample.in_kernel);
}

/* Lengths that cannot be: what is there is skipped, and what comes later is read again. */
static void test_bad_lengths(void **state)
{
    static const uint16_t sizes[] = {0, 1, 4, 7, 12, 79, 88, 4096, 65528, 65535};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        empty_ring(RING_SIZE - 16);
        put_sample(1, true);
        uint64_t word = header(PERF_RECORD_SAMPLE, 0, sizes[i]);
        memcpy(mapping.data + RING_SIZE - 16, &word, 8);
        assert_int_equal(next_kind(), HW_PERF_BROKEN);
        assert_int_equal(next_kind(), HW_PERF_EMPTY);
        put_sample(2, true);
        assert_sample(2, true);
    }
}

/* Lengths that can be, but not for these records: they alone are skipped. */
static void test_wrong_form(void **state)
{
    const uint64_t short_sample[] = {header(PERF_RECORD_SAMPLE, 0, 16), 1};
    const uint64_t no_room[] = {header(PERF_RECORD_SAMPLE, 0, 72), 1, 2, 3, 4, 5, PERF_SAMPLE_REGS_ABI_64, 7, 8};
    const uint64_t long_sample[] = {header(PERF_RECORD_SAMPLE, 0, 88), 1, 2, 3, 4, 5, 0, 7, 8, 9, 10};
    const uint64_t short_lost[] = {header(PERF_RECORD_LOST, 0, 16), 1};
    const uint64_t empty_lost[] = {header(PERF_RECORD_LOST_SAMPLES, 0, 8)};
    empty_ring(0);
    put(short_sample, 2);
    put(no_room, 9);
    put(long_sample, 11);
    put(short_lost, 2);
    put(empty_lost, 1);
    put_sample(3, true);
    for (int i = 0; i < 5; i++)
        assert_int_equal(next_kind(), HW_PERF_BROKEN);
    assert_sample(3, true);
}

/* The head alone is read from the kernel: more than the ring holds, or not a multiple of 8. */
static void test_torn(void **state)
{
    static const uint64_t heads[] = {RING_SIZE + 8, 1, 4, 79, 1ull << 63, ~0ull};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        empty_ring(0);
        put_sample(1, true);
        mapping.page.data_head = heads[i];
        assert_int_equal(next_kind(), HW_PERF_BROKEN);
        assert_int_equal(next_kind(), HW_PERF_EMPTY);
        mapping.page.data_head = mapping.page.data_tail = 4096;
        put_sample(2, false);
        assert_sample(2, false);
    }
    empty_ring(0); /* the last record has come in part */
    put_sample(1, true);
    put_sample(2, true);
    mapping.page.data_head = 120;
    assert_sample(1, true);
    assert_int_equal(next_kind(), HW_PERF_BROKEN);
    assert_int_equal(next_kind(), HW_PERF_EMPTY);
}

static void test_wrong_mappings(void **state)
{
    static const struct {
        uint64_t offset, size, pages;
        bool fine;
    } cases[] = {
        {4096, 4096, 2, true},        {0, 0, 2, true},        {4096, 8192, 2, false}, {8192, 4096, 2, false},
        {4096, 3000, 2, false},       {4096, 4096, 1, false}, {0, 0, 1, false},       {~0ull, 4096, 2, false},
        {4096, 1ull << 63, 2, false}, {0, 0, 4, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&mapping, 0, sizeof mapping);
        mapping.page.data_offset = cases[i].offset;
        mapping.page.data_size = cases[i].size;
        assert_int_equal(hw_perf_ring_open(&ring, &mapping, cases[i].pages), cases[i].fine);
    }
}

/* Anything: nothing is read outside, and there is an end. */
static void test_random(void **state)
{
    uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 20000; round++) {
        empty_ring(0);
        for (size_t i = 0; i < RING_SIZE; i += 8) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            uint64_t word = i % 64 ? random : header(random % 16, 0, (uint16_t)(random >> 32) % 128);
            memcpy(mapping.data + i, &word, 8);
        }
        mapping.page.data_tail = random % 8192;
        mapping.page.data_head = mapping.page.data_tail + random / 8192 % (RING_SIZE + 64);
        int steps = 0;
        while (next_kind() != HW_PERF_EMPTY)
            assert_true(++steps <= 512);
    }
}

/* ---- real rings: page faults carry their addresses ---- */

#define TOUCHED 40

static volatile sig_atomic_t signals_seen;
static void *volatile last_address;

static void on_trap(int number, siginfo_t *information, void *closure)
{
    signals_seen++;
    last_address = information->si_addr;
}

static int open_faults(bool signals)
{
    const struct hw_perf_event event = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS};
    struct perf_event_attr attributes;
    hw_perf_attributes(&event, 1, 42, &attributes);
    if (!signals)
        attributes.sigtrap = attributes.remove_on_exec = 0;
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* PAGES pages of a ring; NULL after the test was skipped. */
static void *open_real_ring(int *fd, bool signals, size_t pages)
{
    *fd = open_faults(signals);
    if (*fd < 0)
        SKIP("perf_event_open: %s", strerror(errno));
    void *real = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (real == MAP_FAILED)
        SKIP("the ring cannot be mapped: %s", strerror(errno));
    assert_true(hw_perf_ring_open(&ring, real, pages));
    return real;
}

static char *fresh_pages(size_t count)
{
    char *memory = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, count * 4096, MADV_NOHUGEPAGE);
    return memory;
}

static void test_page_faults(void **state)
{
    int fd;
    void *real = open_real_ring(&fd, false, 3);
    char *memory = fresh_pages(TOUCHED);
    int here;
    size_t seen = 0;
    struct hw_perf_sample sample;
    uint64_t lost, before = 0;
    enum hw_perf_read what;
    for (int round = 0; round < 20; round++) { /* the ring goes round several times */
        seen = 0;
        madvise(memory, TOUCHED * 4096, MADV_DONTNEED);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
        for (size_t i = 0; i < TOUCHED; i++)
            ((volatile char *)memory)[i * 4096 + i * 8] = 1;
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
        while ((what = hw_perf_ring_next(&ring, &sample, &lost)) != HW_PERF_EMPTY) {
            assert_int_equal(what, HW_PERF_SAMPLE);
            assert_int_equal(sample.tid, syscall(SYS_gettid));
            assert_true(sample.time > before);
            before = sample.time;
            if (sample.address < (uintptr_t)memory || sample.address >= (uintptr_t)memory + TOUCHED * 4096)
                continue;
            assert_int_equal(sample.address, (uintptr_t)memory + seen * 4096 + seen * 8);
            assert_false(sample.in_kernel);
            assert_true(sample.stack - (uintptr_t)&here + 4096 < 8192);
            seen++;
        }
        assert_int_equal(seen, TOUCHED);
    }
    munmap(real, 3 * 4096);
    munmap(memory, TOUCHED * 4096);
    close(fd);
}

/* Nobody reads: what finds no room is told. */
static void test_overrun(void **state)
{
    int fd;
    void *real = open_real_ring(&fd, false, 2);
    char *memory = fresh_pages(400);
    struct hw_perf_sample sample;
    uint64_t lost = 0, all_lost = 0, samples = 0, faults[1] = {0};
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    for (size_t i = 0; i < 300; i++)
        ((volatile char *)memory)[i * 4096] = 1;
    enum hw_perf_read what;
    while ((what = hw_perf_ring_next(&ring, &sample, &lost)) == HW_PERF_SAMPLE)
        samples++;
    assert_int_equal(what, HW_PERF_EMPTY);
    for (size_t i = 300; i < 310; i++) /* the kernel tells with the next record */
        ((volatile char *)memory)[i * 4096] = 1;
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    assert_int_equal(read(fd, faults, sizeof faults), sizeof faults);
    while ((what = hw_perf_ring_next(&ring, &sample, &lost)) != HW_PERF_EMPTY) {
        samples += what == HW_PERF_SAMPLE;
        all_lost += what == HW_PERF_LOST ? lost : 0;
    }
    assert_true(all_lost >= 200);
    assert_int_equal(samples + all_lost, faults[0]);
    munmap(real, 2 * 4096);
    munmap(memory, 400 * 4096);
    close(fd);
}

/* Armed for one, it brings one signal with the address, and then none until it is armed again. */
static void test_signals(void **state)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, old;
    int fd;
    void *real = open_real_ring(&fd, true, 2);
    char *memory = fresh_pages(TOUCHED);
    assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
    signals_seen = 0;
    for (size_t i = 0; i < TOUCHED; i++)
        ((volatile char *)memory)[i * 4096] = 1;
    assert_int_equal(signals_seen, 0);
    madvise(memory, TOUCHED * 4096, MADV_DONTNEED);
    for (int n = 1; n <= 5; n++) {
        ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
        for (size_t i = 0; i < 4; i++)
            ((volatile char *)memory)[(size_t)n * 4 * 4096 + i * 4096 + 24] = 1;
        assert_int_equal(signals_seen, n);
        assert_ptr_equal(last_address, memory + n * 4 * 4096 + 24);
        assert_int_equal(next_kind(), HW_PERF_SAMPLE);
        assert_int_equal(next_kind(), HW_PERF_EMPTY);
    }
    sigaction(SIGTRAP, &old, NULL);
    munmap(real, 2 * 4096);
    munmap(memory, TOUCHED * 4096);
    close(fd);
}

/* ---- which events there are ---- */

static char *devices;

static void write_device(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", devices, path);
    for (char *slash = name + strlen(devices) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name, 0700);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_core(const char *device, const char *type, const char *loads, const char *stores, const char *leader)
{
    static const struct {
        const char *name, *text;
    } formats[] = {
        {"event", "config:0-7\n"}, {"umask", "config:8-15\n"}, {"ldlat", "config1:0-15\n"}, {"in_tx", "config:32\n"}};
    char path[128];
    snprintf(path, sizeof path, "%s/type", device);
    write_device(path, type);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        snprintf(path, sizeof path, "%s/format/%s", device, formats[i].name);
        write_device(path, formats[i].text);
    }
    const char *const names[] = {"mem-loads", "mem-stores", "mem-loads-aux"};
    const char *const texts[] = {loads, stores, leader};
    for (int i = 0; i < 3; i++)
        if (texts[i]) {
            snprintf(path, sizeof path, "%s/events/%s", device, names[i]);
            write_device(path, texts[i]);
        }
}

static bool find(bool estimated, struct hw_perf_source *source)
{
    return hw_perf_source_find(devices, estimated, source);
}

static int begin_devices(void **state)
{
    devices = make_directory();
    return 0;
}

static int end_devices(void **state)
{
    remove_directory(devices);
    return 0;
}

static void test_no_source(void **state)
{
    struct hw_perf_source source;
    assert_false(find(false, &source));
    write_device("software/type", "1\n");
    write_core("cpu", "4\n", NULL, NULL, NULL); /* AMD's, or a virtual machine's */
    assert_false(find(false, &source));
    assert_int_equal(source.count, 0);
    assert_false(hw_perf_source_find("/no/such/directory", false, &source));
}

static void test_intel(void **state)
{
    struct hw_perf_source source;
    write_core("cpu", "4\n", "event=0xcd,umask=0x1,ldlat=3\n", "event=0xd0,umask=0x82\n", NULL);
    assert_true(find(false, &source));
    assert_string_equal(source.name, "PEBS");
    assert_int_equal(source.count, 2);
    assert_true(source.exact);
    assert_int_equal(source.unsaid_flags, 0);
    assert_int_equal(source.event[0].type, 4);
    assert_int_equal(source.event[0].config, 0x81d0);
    assert_int_equal(source.event[0].config1, 0);
    assert_int_equal(source.event[1].config, 0x82d0);
    assert_true(source.event[0].precise && source.event[1].precise);
    assert_true(source.estimated_loads);
    assert_true(find(true, &source));
    assert_int_equal(source.count, 2);
    assert_false(source.exact);
    assert_int_equal(source.event[0].config, 0x1cd);
    assert_int_equal(source.event[0].config1, 3);
}

/* Newer ones want a second event beside mem-loads. */
static void test_intel_leader(void **state)
{
    struct hw_perf_source source;
    struct perf_event_attr attributes;
    write_core("cpu", "4\n", "event=0xcd,umask=0x1,ldlat=3\n", "event=0xcd,umask=0x2\n", "event=0x03,umask=0x82\n");
    assert_true(find(false, &source));
    assert_int_equal(source.count, 3);
    assert_false(source.exact);
    assert_false(source.estimated_loads);
    assert_true(source.event[0].leader);
    assert_int_equal(source.event[0].config, 0x8203);
    assert_int_equal(source.event[1].config, 0x1cd);
    assert_int_equal(source.event[2].config, 0x2cd);
    hw_perf_attributes(&source.event[0], 1000, 0, &attributes);
    assert_int_equal(attributes.sample_period, 0);
    assert_int_equal(attributes.disabled, 0);
    hw_perf_attributes(&source.event[1], 1000, 5, &attributes);
    assert_int_equal(attributes.sample_period, 1000);
    assert_int_equal(attributes.precise_ip, 2);
    assert_int_equal(attributes.exclude_kernel, 1);
    assert_int_equal(attributes.disabled, 1);
    assert_int_equal(attributes.sig_data, 5);
    assert_int_equal(attributes.config1, 3);
}

static void test_intel_hybrid(void **state)
{
    struct hw_perf_source source;
    write_core("cpu_core", "4\n", "event=0xcd,umask=0x1,ldlat=3\n", "event=0xcd,umask=0x2\n",
               "event=0x03,umask=0x82\n");
    write_core("cpu_atom", "10\n", "event=0xd0,umask=0x5,ldlat=3\n", "event=0xd0,umask=0x6\n", NULL);
    assert_true(find(false, &source));
    assert_int_equal(source.count, 5);
    assert_int_equal(source.event[2].type, 4);
    assert_int_equal(source.event[3].type, 10);
    assert_int_equal(source.event[4].config, 0x6d0);
}

static void test_amd(void **state)
{
    struct hw_perf_source source;
    struct perf_event_attr attributes;
    write_core("cpu", "4\n", NULL, NULL, NULL);
    write_device("ibs_op/type", "11\n");
    assert_true(find(false, &source));
    assert_string_equal(source.name, "IBS");
    assert_int_equal(source.count, 1);
    assert_int_equal(source.event[0].type, 11);
    assert_false(source.exact); /* cycles */
    assert_int_equal(source.unsaid_flags, 0);
    hw_perf_attributes(&source.event[0], 1600, 0, &attributes);
    assert_int_equal(attributes.exclude_kernel, 0);
    assert_int_equal(attributes.precise_ip, 0);
    write_device("ibs_op/format/cnt_ctl", "config:19\n");
    write_device("ibs_op/format/swfilt", "config2:0\n");
    assert_true(find(false, &source));
    assert_true(source.exact);
    assert_int_equal(source.event[0].config, 1u << 19);
    assert_int_equal(source.event[0].config2, 1);
    hw_perf_attributes(&source.event[0], 1600, 0, &attributes);
    assert_int_equal(attributes.exclude_kernel, 1);
}

/* What cannot be understood is no event. */
static void test_wrong_descriptions(void **state)
{
    static const char *const wrong[] = {"",
                                        "\n",
                                        "event",
                                        "nonsense=1",
                                        "event=0xcd,,umask=1",
                                        "event=0x1 umask=2",
                                        "=5",
                                        "a-very-long-name-of-a-term-that-does-not-fit-anywhere=1"};
    static const char *const formats[] = {
        "", "config", "config9:1", "config:", "config:64", "config:9-3", "config:0-99", "config:1,"};
    struct hw_perf_source source;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_core("cpu", "4\n", wrong[i], NULL, NULL);
        bool empty = !*wrong[i] || *wrong[i] == '\n' || strcmp(wrong[i], "event") == 0;
        if (find(false, &source) && !empty)
            fail_msg("\"%s\" was taken for an event", wrong[i]);
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        write_core("cpu", "4\n", "event=0xcd,in_tx=1", NULL, NULL);
        write_device("cpu/format/in_tx", formats[i]);
        if (find(false, &source) && *formats[i])
            fail_msg("\"%s\" was taken for a format", formats[i]);
    }
    write_core("cpu", "no number", "event=0xcd,umask=0x1,ldlat=3\n", NULL, NULL);
    assert_false(find(false, &source));
}

static void test_formats(void **state)
{
    struct hw_perf_source source;
    write_core("cpu", "4\n", "event=0x1cd,in_tx\n", NULL, NULL);
    write_device("cpu/format/event", "config:0-7,32-35\n");
    write_device("cpu/format/in_tx", "config2:63\n");
    assert_true(find(false, &source));
    assert_int_equal(source.event[0].config, 0x1000000cdull);
    assert_true(source.event[0].config2 == 1ull << 63);
    assert_int_equal(source.unsaid_flags, HW_TOUCH_READ);
}

static void test_kernels(void **state)
{
    static const char *const fine[] = {"5.18.0", "5.19", "6.1.0-13-amd64", "6.18.44", "10.0"};
    static const char *const old[] = {"5.17.9", "5.4.0-generic", "4.19", "3", "", "linux"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_true(hw_perf_kernel_will_do(fine[i]));
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        assert_false(hw_perf_kernel_will_do(old[i]));
}

#define SOURCE_TEST(name) cmocka_unit_test_setup_teardown(name, begin_devices, end_devices)

TEST_LIST(cmocka_unit_test(test_wrap), cmocka_unit_test(test_full), cmocka_unit_test(test_other_records),
          cmocka_unit_test(test_in_kernel), cmocka_unit_test(test_bad_lengths), cmocka_unit_test(test_wrong_form),
          cmocka_unit_test(test_torn), cmocka_unit_test(test_wrong_mappings), cmocka_unit_test(test_random),
          cmocka_unit_test(test_page_faults), cmocka_unit_test(test_overrun), cmocka_unit_test(test_signals),
          SOURCE_TEST(test_no_source), SOURCE_TEST(test_intel), SOURCE_TEST(test_intel_leader),
          SOURCE_TEST(test_intel_hybrid), SOURCE_TEST(test_amd), SOURCE_TEST(test_wrong_descriptions),
          SOURCE_TEST(test_formats), cmocka_unit_test(test_kernels))
