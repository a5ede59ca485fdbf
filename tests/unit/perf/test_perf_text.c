/* test_perf_text.c - lines of perf script, as its sources and documentation print them, and damaged ones. There were no
 * such counters where these were written: the values of data_src are put together by hand after perf_event_open(2). */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "perf/perf_text.h"

#define LOAD              0x2ull
#define STORE             0x4ull
#define LEVEL(bits)       ((uint64_t)(bits) << 5)
#define HIT               0x2
#define MISS              0x4
#define SNOOP(bits)       ((uint64_t)(bits) << 19)
#define NUMBER(number)    ((uint64_t)(number) << 33)
#define REMOTE            (1ull << 37)

static void assert_source(uint64_t value, enum hw_perf_operation operation, enum hw_perf_level level,
                          enum hw_perf_hitm hitm)
{
    const struct hw_perf_source source = hw_perf_source_of(value);
    assert_int_equal(source.operation, operation);
    assert_int_equal(source.level, level);
    assert_int_equal(source.hitm, hitm);
}

static void test_numbers(void **state)
{
    assert_source(LOAD | LEVEL(HIT | 0x8), HW_PERF_LOAD, HW_PERF_L1, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(HIT | 0x10), HW_PERF_LOAD, HW_PERF_LFB, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(HIT | 0x20), HW_PERF_LOAD, HW_PERF_L2, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(HIT | 0x40) | SNOOP(0x10), HW_PERF_LOAD, HW_PERF_L3, HW_PERF_HITM_LOCAL);
    assert_source(LOAD | LEVEL(HIT | 0x80), HW_PERF_LOAD, HW_PERF_DRAM, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(MISS | 0x80), HW_PERF_LOAD, HW_PERF_DRAM, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(HIT | 0x100), HW_PERF_LOAD, HW_PERF_REMOTE_DRAM, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(HIT | 0x400) | SNOOP(0x10), HW_PERF_LOAD, HW_PERF_REMOTE_CACHE, HW_PERF_HITM_REMOTE);
    assert_source(LOAD | LEVEL(HIT | 0x2000), HW_PERF_LOAD, HW_PERF_OTHER_MEMORY, HW_PERF_NO_HITM);
    assert_source(STORE | LEVEL(MISS | 0x8), HW_PERF_STORE, HW_PERF_MISS, HW_PERF_NO_HITM);
    assert_source(STORE | LEVEL(HIT | 0x8), HW_PERF_STORE, HW_PERF_L1, HW_PERF_NO_HITM);
    /* Newer kernels: a number of the level, and a bit for another socket. */
    assert_source(LOAD | LEVEL(1) | NUMBER(1), HW_PERF_LOAD, HW_PERF_L1, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(1) | NUMBER(3) | SNOOP(0x10), HW_PERF_LOAD, HW_PERF_L3, HW_PERF_HITM_LOCAL);
    assert_source(LOAD | LEVEL(1) | NUMBER(11) | REMOTE | SNOOP(0x10), HW_PERF_LOAD, HW_PERF_REMOTE_CACHE,
                  HW_PERF_HITM_REMOTE);
    assert_source(LOAD | LEVEL(1) | NUMBER(12), HW_PERF_LOAD, HW_PERF_LFB, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(1) | NUMBER(13), HW_PERF_LOAD, HW_PERF_DRAM, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(1) | NUMBER(13) | REMOTE, HW_PERF_LOAD, HW_PERF_REMOTE_DRAM, HW_PERF_NO_HITM);
    assert_source(LOAD | LEVEL(1) | NUMBER(14), HW_PERF_LOAD, HW_PERF_OTHER_MEMORY, HW_PERF_NO_HITM);
    assert_source(1, HW_PERF_NO_OPERATION, HW_PERF_UNKNOWN, HW_PERF_NO_HITM);
    assert_source(0, HW_PERF_NO_OPERATION, HW_PERF_UNKNOWN, HW_PERF_NO_HITM);
    assert_source(UINT64_MAX, HW_PERF_LOAD, HW_PERF_REMOTE_DRAM, HW_PERF_HITM_REMOTE);
}

static void test_words(void **state)
{
    static const struct {
        const char *words;
        enum hw_perf_operation operation;
        enum hw_perf_level level;
        enum hw_perf_hitm hitm;
    } all[] = {
        {"|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No", HW_PERF_LOAD, HW_PERF_L1, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL LFB/MAB hit|SNP None|TLB L1 or L2 hit|LCK No", HW_PERF_LOAD, HW_PERF_LFB, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL L2 hit|SNP None|TLB L2 miss|LCK No", HW_PERF_LOAD, HW_PERF_L2, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL L3 hit|SNP HitM|TLB L1 or L2 hit|LCK No", HW_PERF_LOAD, HW_PERF_L3, HW_PERF_HITM_LOCAL},
        {"|OP LOAD|LVL Local RAM hit|SNP None or Miss", HW_PERF_LOAD, HW_PERF_DRAM, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL Remote RAM (1 hop) hit|SNP Hit", HW_PERF_LOAD, HW_PERF_REMOTE_DRAM, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL Remote Cache (1 hop) hit|SNP HitM", HW_PERF_LOAD, HW_PERF_REMOTE_CACHE, HW_PERF_HITM_REMOTE},
        {"|OP STORE|LVL L1 miss|SNP N/A", HW_PERF_STORE, HW_PERF_MISS, HW_PERF_NO_HITM},
        {"|OP LOAD|LVL Uncached hit|SNP None", HW_PERF_LOAD, HW_PERF_OTHER_MEMORY, HW_PERF_NO_HITM},
        {"|OP N/A|LVL N/A|SNP N/A", HW_PERF_NO_OPERATION, HW_PERF_UNKNOWN, HW_PERF_NO_HITM},
        {"", HW_PERF_NO_OPERATION, HW_PERF_UNKNOWN, HW_PERF_NO_HITM},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct hw_perf_source source = hw_perf_source_of_words(all[i].words);
        assert_int_equal(source.operation, all[i].operation);
        assert_int_equal(source.level, all[i].level);
        assert_int_equal(source.hitm, all[i].hitm);
    }
}

#define DECODED "|OP LOAD|LVL Local RAM hit|SNP None or Miss|TLB L2 miss|LCK No|BLK  N/A"

static void test_samples(void **state)
{
    static const struct {
        const char *line;
        struct hw_perf_sample sample;
    } all[] = {
        {"16905/16906 37862.527660058: page-faults:     56475946e5c0 ffffffff81752b6a\n",
         {16905, 16906, 37862527660058, 0x56475946e5c0, 0xffffffff81752b6a, 0, {0}, false, false}},
        {"  7/8  1.500000: cpu/mem-loads,ldlat=30/P:     7f0012345678             1042 " DECODED "      312      401136\n",
         {7, 8, 1500000000, 0x7f0012345678, 0x401136, 312, {HW_PERF_LOAD, HW_PERF_DRAM, 0}, true, true}},
        /* with a name that has spaces and numbers, a CPU and a period */
        {"Web 12 3/4x 21/22 [003] 5.000000001:      4000 ibs_op//: 7f0012345678 142 |OP LOAD|LVL L1 hit|SNP N/A 5 5555401136",
         {21, 22, 5000000001, 0x7f0012345678, 0x5555401136, 5, {HW_PERF_LOAD, HW_PERF_L1, 0}, true, true}},
        /* words only; no weight, but symbols and the file */
        {"21/22 5.0: mem: 7f0012345678 |OP STORE|LVL L1 hit|SNP N/A|LCK No      55555401136 f+0x1 (/bin/f)\n",
         {21, 22, 5000000000, 0x7f0012345678, 0x55555401136, 0, {HW_PERF_STORE, HW_PERF_L1, 0}, true, false}},
        /* no event; one number for process and thread; 0x */
        {"21 5.0: 0x7f0012345678 401136\n", {21, 21, 5000000000, 0x7f0012345678, 0x401136, 0, {0}, false, false}},
        {"21/22 5.0: mem: 7f0012345678       77           401136\n",
         {21, 22, 5000000000, 0x7f0012345678, 0x401136, 77, {0}, false, true}},
        {"21/22 5.0: mem: 7f0012345678", {21, 22, 5000000000, 0x7f0012345678, 0, 0, {0}, false, false}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct hw_perf_sample got;
        struct hw_perf_mapping mapping;
        const struct hw_perf_sample *want = &all[i].sample;
        assert_int_equal(hw_perf_read_line(all[i].line, &got, &mapping), HW_PERF_LINE_SAMPLE);
        assert_int_equal(got.pid, want->pid);
        assert_int_equal(got.tid, want->tid);
        assert_int_equal(got.time_ns, want->time_ns);
        assert_int_equal(got.address, want->address);
        assert_int_equal(got.ip, want->ip);
        assert_int_equal(got.weight, want->weight);
        assert_int_equal(got.has_weight, want->has_weight);
        assert_int_equal(got.has_source, want->has_source);
        assert_int_equal(got.source.operation, want->source.operation);
        assert_int_equal(got.source.level, want->source.level);
    }
}

static enum hw_perf_line kind(const char *line)
{
    struct hw_perf_sample sample;
    struct hw_perf_mapping mapping;
    return hw_perf_read_line(line, &sample, &mapping);
}

static void test_other_lines(void **state)
{
    static const char *const nothing[] = {
        "", "\n", "   \n", "# captured on    : Tue\n", "\tffffffff81752b6a elf_load ([kernel.kallsyms])\n",
        "            7f00 f\n", "16905/16905 37862.5: PERF_RECORD_COMM exec: ls:16905/16905\n",
        "16905/16905 37862.5: PERF_RECORD_MMAP2\n", "16905/16905 37862.5: PERF_RECORD_MMAP2 16905/16905: [0x\n",
        "16905/16905 37862.5: PERF_RECORD_MMAP2 16905/16905: [0x10(0x20) @ 0]\n",
        "16905/16905 37862.5: PERF_RECORD_MMAP2 16905/16905: [0xffffffffffffffff(0x20) @ 0]: r /x\n",
    };
    static const char *const unread[] = {
        "hello",           "a,b,c\n",     "21/22 mem: 7f00 1\n", "5.0: mem: 7f0012345678\n", "21/22 5.0: mem: \n",
        "21/22 5.0:\n",    "x/y 5.0: mem: 7f0012345678\n",       "21/22 5.0: mem: zzz 1\n",
        "99999999999999/1 5.0: mem: 7f00\n", "21/22 99999999999999999999999.0: mem: 7f00\n",
        "21/22 5.0000000000000: mem: 7f00\n", "\xff\xfe\x80\n",
    };
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        assert_int_equal(kind(nothing[i]), HW_PERF_LINE_NOTHING);
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        assert_int_equal(kind(unread[i]), HW_PERF_LINE_UNREAD);
    assert_int_equal(kind("# perf version : 6.1.187\n"), HW_PERF_LINE_HEADER);
    assert_int_equal(kind("# clockid: monotonic (1)\n"), HW_PERF_LINE_MONOTONIC);
    assert_int_equal(kind("# clockid: monotonic_raw (4)\n"), HW_PERF_LINE_OTHER_CLOCK);
}

static void test_mappings(void **state)
{
    struct hw_perf_sample sample;
    struct hw_perf_mapping mapping;
    assert_int_equal(hw_perf_read_line("16905/16905 37862.527636333: PERF_RECORD_MMAP2 16907/16907: "
                                       "[0x7ffe4a70e000(0x21000) @ 0x7ffffffde000 00:00 0 0]: rw-p [stack]\n",
                                       &sample, &mapping),
                     HW_PERF_LINE_MAPPING);
    assert_int_equal(mapping.pid, 16907);
    assert_int_equal(mapping.time_ns, 37862527636333);
    assert_int_equal(mapping.start, 0x7ffe4a70e000);
    assert_int_equal(mapping.end, 0x7ffe4a72f000);
    assert_int_equal(mapping.kind, HW_PERF_REGION_STACK);
    assert_true(mapping.writable);
    assert_int_equal(hw_perf_read_line("1/1 2.0: PERF_RECORD_MMAP2 1/1: [0x56475946f000(0x1000) @ 0 00:00 0 0]: r--p "
                                       "/usr/bin/ls\n",
                                       &sample, &mapping),
                     HW_PERF_LINE_MAPPING);
    assert_int_equal(mapping.kind, HW_PERF_REGION_FILE);
    assert_false(mapping.writable);
    assert_int_equal(hw_perf_read_line("1/1 2.0: PERF_RECORD_MMAP2 1/1: [0x1000(0x1000) @ 0 00:00 0 0]: rw-p //anon\n",
                                       &sample, &mapping),
                     HW_PERF_LINE_MAPPING);
    assert_int_equal(mapping.kind, HW_PERF_REGION_ANONYMOUS);
}

/* Every beginning of a line, and every byte of it replaced. The copy has no room behind it: sanitizers see a read past
 * the end. */
static void test_damage(void **state)
{
    static const char *const lines[] = {
        "Web 3/4 21/22 [003] 5.000000001:  4000 ibs_op//: 7f0012345678 142 " DECODED " 5 5555401136 f (/x)\n",
        "1/1 2.0: PERF_RECORD_MMAP2 1/1: [0x1000(0x1000) @ 0 00:00 0 0]: rw-p /usr/bin/ls\n",
        "# clockid: monotonic (1)\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const size_t length = strlen(lines[i]);
        for (size_t cut = 0; cut <= length; cut++) {
            char *copy = malloc(cut + 1);
            assert_non_null(copy);
            memcpy(copy, lines[i], cut);
            copy[cut] = '\0';
            kind(copy);
            for (int byte = 1; byte < 256 && cut; byte += 7) {
                copy[cut / 2] = (char)byte;
                kind(copy);
            }
            free(copy);
        }
    }
}

TEST_LIST(cmocka_unit_test(test_numbers), cmocka_unit_test(test_words), cmocka_unit_test(test_samples),
          cmocka_unit_test(test_other_lines), cmocka_unit_test(test_mappings), cmocka_unit_test(test_damage))
