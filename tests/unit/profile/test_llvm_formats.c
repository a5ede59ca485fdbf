/* test_llvm_formats.c - LLVM's raw and indexed heap profiles: what is written is read again, whatever is read ends. */
#include "support/check.h"
#include "llvm_sample.h"

/* ---- GUIDs ---- */

/* The numbers are LLVM's: llvm-profdata shows them for functions of these names. */
static void test_guids(void **state)
{
    assert_true(hw_llvm_guid("main") == 0xdb956436e78dd5faull);
    assert_true(hw_llvm_guid("foo") == 0x5cf8c24cdb18bdacull);
    assert_true(hw_llvm_guid("_ZL1Ii") == 5471253649879828436ull);
    assert_true(hw_llvm_guid("") == 0x04b2008fd98c1dd4ull); /* of MD5("") = d41d8cd98f00b204… */
    /* MD5 of as many letters a: the padding takes one block more from 56 on */
    static const struct {
        size_t size;
        uint64_t guid;
    } sizes[] = {{55, 0x22a1f9dfb67217efull}, {56, 0xb028f803c78a0c3bull}, {63, 0x18d65391f32165b0ull},
                 {64, 0x4971b580d4424801ull}, {65, 0x956a2e0d5ea443c7ull}, {119, 0x8ca2d62e73d07b8aull},
                 {120, 0x44ac4cadccc0615full}};
    char name[121];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(name, 'a', sizeof name);
        name[sizes[i].size] = 0;
        assert_true(hw_llvm_guid(name) == sizes[i].guid);
    }
}

static void test_suffixes(void **state)
{
    const uint64_t foo = hw_llvm_guid("foo");
    assert_true(hw_llvm_guid("foo.llvm.123") == foo);
    assert_true(hw_llvm_guid("foo.part.0") == foo);
    assert_true(hw_llvm_guid("foo.part.1.llvm.99") == foo);
    assert_true(hw_llvm_guid("foo.cold") != foo);
    assert_true(hw_llvm_guid("foo.llvm.1.x") != foo);
    assert_true(hw_llvm_guid("foo.__uniq.123") != foo);
}

/* ---- comparing ---- */

static void assert_same_mib(const struct hw_llvm_mib *a, const struct hw_llvm_mib *b, int fields)
{
    for (int i = 1; i < fields; i++)
        if (a->field[i] != b->field[i])
            fail_msg("%s: %llu, should be %llu", hw_llvm_fields[i].name, (unsigned long long)b->field[i],
                     (unsigned long long)a->field[i]);
}

static void assert_same_raw(const struct hw_llvm_profile *a, const struct hw_llvm_profile *b)
{
    assert_int_equal(a->context_count, b->context_count);
    assert_int_equal(a->segment_count, b->segment_count);
    for (size_t i = 0; i < a->segment_count; i++)
        assert_memory_equal(&a->segments[i], &b->segments[i], sizeof a->segments[i]);
    for (size_t i = 0; i < a->context_count; i++) {
        const struct hw_llvm_context *from = &a->contexts[i], *to = &b->contexts[i];
        assert_int_equal(from->count, to->count);
        assert_memory_equal(a->stacks + from->first, b->stacks + to->first, from->count * sizeof *a->stacks);
        assert_same_mib(&from->mib, &to->mib, HW_LLVM_HISTOGRAM_SIZE);
    }
}

/* ---- raw ---- */

static void test_raw_round_trip(void **state)
{
    for (uint32_t version = 3; version <= 5; version++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct hw_llvm_profile profile = sample_profile(seed, false, seed * 7, seed % 2), read;
            struct hw_llvm_bytes bytes = {0};
            struct hw_error error = {""};
            assert_true(hw_llvm_raw_write(&profile, version, &bytes));
            if (!hw_llvm_raw_read(bytes.data, bytes.used, "sample", &read, &error))
                fail_msg("%s", error.message);
            assert_int_equal(read.version, version);
            assert_int_equal(read.dumps, 1);
            assert_false(read.clang_runtime);
            assert_same_raw(&profile, &read);
            for (size_t i = 0; version > 3 && i < profile.context_count; i++) {
                const struct hw_llvm_context *from = &profile.contexts[i], *to = &read.contexts[i];
                assert_int_equal(from->mib.field[HW_LLVM_HISTOGRAM_SIZE], to->mib.field[HW_LLVM_HISTOGRAM_SIZE]);
                if (from->histogram)
                    assert_memory_equal(from->histogram, to->histogram,
                                        from->mib.field[HW_LLVM_HISTOGRAM_SIZE] * sizeof *from->histogram);
            }
            hw_llvm_profile_free(&read);
            hw_llvm_profile_free(&profile);
            free(bytes.data);
        }
}

/* Several dumps are one file: what they say of one context is there once for each. */
static void test_several_dumps(void **state)
{
    struct hw_llvm_profile profile = sample_profile(1, false, 10, false), read;
    struct hw_llvm_bytes bytes = {0}, twice = {0};
    struct hw_error error = {""};
    assert_true(hw_llvm_raw_write(&profile, 5, &bytes));
    hw_llvm_put_bytes(&twice, bytes.data, bytes.used);
    hw_llvm_put_bytes(&twice, bytes.data, bytes.used);
    assert_true(hw_llvm_raw_read(twice.data, twice.used, "sample", &read, &error));
    assert_int_equal(read.dumps, 2);
    assert_int_equal(read.context_count, 2 * profile.context_count);
    assert_int_equal(read.segment_count, profile.segment_count);
    hw_llvm_profile_free(&read);
    hw_llvm_put(&twice, 1, 1);
    assert_false(hw_llvm_raw_read(twice.data, twice.used, "sample", &read, &error));
    assert_non_null(strstr(error.message, "bytes behind the last dump"));
    hw_llvm_profile_free(&profile);
    free(bytes.data);
    free(twice.data);
}

/* A library lay where another one lay before: their frames must not be taken for each other's. */
static void test_segments_that_overlap(void **state)
{
    struct hw_llvm_profile first = sample_profile(1, false, 1, false), second = sample_profile(1, false, 1, false),
                           read;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    for (size_t i = 0; i < second.segment_count; i++)
        second.segments[i].build_id[0] = 0xff;
    assert_true(hw_llvm_raw_write(&first, 5, &bytes));
    struct hw_llvm_bytes other = {0};
    assert_true(hw_llvm_raw_write(&second, 5, &other));
    hw_llvm_put_bytes(&bytes, other.data, other.used);
    assert_true(hw_llvm_raw_read(bytes.data, bytes.used, "sample", &read, &error));
    assert_int_equal(read.segment_count, 4);
    const uint64_t pc = read.stacks[read.contexts[1].first];
    assert_true(pc != read.stacks[read.contexts[0].first]);
    size_t within = 0;
    for (size_t i = 0; i < read.segment_count; i++)
        within += pc >= read.segments[i].start && pc < read.segments[i].end && read.segments[i].build_id[0] == 0xff;
    assert_int_equal(within, 1);
    hw_llvm_profile_free(&read);
    hw_llvm_profile_free(&first);
    hw_llvm_profile_free(&second);
    free(bytes.data);
    free(other.data);
}

static void test_saturation(void **state)
{
    struct hw_llvm_profile profile = sample_profile(3, false, 1, false), read;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    for (int field = 1; field < HW_LLVM_HISTOGRAM_SIZE; field++)
        profile.contexts[0].mib.field[field] = 5ull << 32;
    assert_true(hw_llvm_raw_write(&profile, 5, &bytes));
    assert_true(hw_llvm_raw_read(bytes.data, bytes.used, "sample", &read, &error));
    for (int field = 1; field < HW_LLVM_HISTOGRAM_SIZE; field++)
        assert_true(read.contexts[0].mib.field[field] == (hw_llvm_fields[field].size == 4 ? UINT32_MAX : 5ull << 32));
    hw_llvm_profile_free(&read);
    hw_llvm_profile_free(&profile);
    free(bytes.data);
}

/* Version 5 keeps 12 bits of a cell and rounds up. */
static void test_histogram_cells(void **state)
{
    static const uint64_t values[] = {0, 1, 4095, 4096, 4097, 8191, 1000000, 4095ull << 15, UINT64_MAX};
    enum { COUNT = sizeof values / sizeof *values };
    struct hw_llvm_profile profile = sample_profile(3, false, 1, false), read;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    profile.contexts[0].histogram = values;
    profile.contexts[0].mib.field[HW_LLVM_HISTOGRAM_SIZE] = COUNT;
    assert_true(hw_llvm_raw_write(&profile, 5, &bytes));
    assert_true(hw_llvm_raw_read(bytes.data, bytes.used, "sample", &read, &error));
    for (size_t i = 0; i < COUNT; i++) {
        const uint64_t value = values[i] < 4095ull << 15 ? values[i] : 4095ull << 15,
                       got = read.contexts[0].histogram[i];
        assert_true(got >= value && got <= value + value / 2048);
    }
    hw_llvm_profile_free(&read);
    hw_llvm_profile_free(&profile);
    free(bytes.data);
}

/* ---- indexed ---- */

static int compare_contexts(const struct hw_llvm_profile *a, const struct hw_llvm_context *x,
                            const struct hw_llvm_profile *b, const struct hw_llvm_context *y)
{
    for (uint32_t i = 0; i < x->count && i < y->count; i++) {
        const struct hw_llvm_frame *f = &a->frames[a->stacks[x->first + i]], *g = &b->frames[b->stacks[y->first + i]];
        if (f->function != g->function)
            return f->function < g->function ? -1 : 1;
        if (f->line_offset != g->line_offset)
            return f->line_offset < g->line_offset ? -1 : 1;
        if (f->column != g->column || f->inlined != g->inlined)
            return 1;
    }
    return (x->count > y->count) - (x->count < y->count);
}

static void test_indexed_round_trip(void **state)
{
    for (uint32_t version = 3; version <= 4; version++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            struct hw_llvm_profile profile = sample_profile(seed, true, seed * 20, false), read;
            struct hw_llvm_bytes bytes = {0};
            struct hw_error error = {""};
            assert_true(hw_llvm_indexed_write(&profile, version, &bytes));
            if (!hw_llvm_indexed_read(bytes.data, bytes.used, "sample", &read, &error))
                fail_msg("%s", error.message);
            assert_int_equal(read.version, version);
            assert_int_equal(read.context_count, profile.context_count);
            for (size_t i = 0; i < profile.context_count; i++) { /* stacks are all different */
                size_t found = 0;
                while (found < read.context_count &&
                       compare_contexts(&profile, &profile.contexts[i], &read, &read.contexts[found]))
                    found++;
                assert_true(found < read.context_count);
                assert_same_mib(&profile.contexts[i].mib, &read.contexts[found].mib, HW_LLVM_HISTOGRAM_SIZE);
            }
            hw_llvm_profile_free(&read);
            hw_llvm_profile_free(&profile);
            free(bytes.data);
        }
}

/* Stacks share their roots. */
static void test_indexed_is_compact(void **state)
{
    struct hw_llvm_profile profile = sample_profile(1, true, 3000, false);
    struct hw_llvm_bytes bytes = {0};
    size_t frames = 0;
    for (size_t i = 0; i < profile.context_count; i++)
        frames += profile.contexts[i].count + 1;
    assert_true(hw_llvm_indexed_write(&profile, 4, &bytes));
    const uint64_t memprof = hw_llvm_get(bytes.data + 0x28, 8);
    const uint64_t radix = hw_llvm_get(bytes.data + memprof + 16, 8) - hw_llvm_get(bytes.data + memprof + 8, 8);
    assert_true(radix < frames * 4 * 9 / 10);
    hw_llvm_profile_free(&profile);
    free(bytes.data);
}

/* ---- damage ---- */

typedef bool reader(const unsigned char *bytes, size_t size, const char *path, struct hw_llvm_profile *profile,
                    struct hw_error *error);

/* Every beginning of the file, and every byte changed: it is read, or there is one line that says why not. */
static void damage(reader *read, const struct hw_llvm_bytes *bytes, bool whole_only)
{
    struct hw_llvm_profile profile;
    for (size_t size = 0; size < bytes->used; size++) {
        unsigned char *cut = malloc(size + 1); /* so that the address sanitizer sees its end */
        struct hw_error error = {""};
        memcpy(cut, bytes->data, size);
        unsigned char *exact = realloc(cut, size ? size : 1);
        const bool fine = read(exact, size, "sample", &profile, &error);
        if (fine)
            hw_llvm_profile_free(&profile);
        else
            assert_true(*error.message && !strchr(error.message, '\n'));
        if (whole_only)
            assert_false(fine);
        free(exact);
    }
    for (size_t i = 0; i < bytes->used; i++) {
        static const unsigned char values[] = {0, 0xff, 0x80, 0x7f};
        for (size_t k = 0; k < sizeof values; k++) {
            const unsigned char saved = bytes->data[i];
            struct hw_error error = {""};
            bytes->data[i] = values[k];
            if (read(bytes->data, bytes->used, "sample", &profile, &error))
                hw_llvm_profile_free(&profile);
            else
                assert_true(*error.message && !strchr(error.message, '\n'));
            bytes->data[i] = saved;
        }
    }
}

static void test_damaged_raw(void **state)
{
    for (uint32_t version = 3; version <= 5; version++) {
        struct hw_llvm_profile profile = sample_profile(2, false, 5, true);
        struct hw_llvm_bytes bytes = {0};
        assert_true(hw_llvm_raw_write(&profile, version, &bytes));
        damage(hw_llvm_raw_read, &bytes, true);
        hw_llvm_profile_free(&profile);
        free(bytes.data);
    }
}

static void test_damaged_indexed(void **state)
{
    for (uint32_t version = 3; version <= 4; version++) {
        struct hw_llvm_profile profile = sample_profile(2, true, 5, false);
        struct hw_llvm_bytes bytes = {0};
        assert_true(hw_llvm_indexed_write(&profile, version, &bytes));
        damage(hw_llvm_indexed_read, &bytes, false);
        hw_llvm_profile_free(&profile);
        free(bytes.data);
    }
}

static void test_other_versions(void **state)
{
    struct hw_llvm_profile profile = sample_profile(2, false, 1, false), read;
    struct hw_llvm_bytes bytes = {0};
    struct hw_error error = {""};
    assert_true(hw_llvm_raw_write(&profile, 6, &bytes));
    assert_false(hw_llvm_raw_read(bytes.data, bytes.used, "sample", &read, &error));
    assert_string_equal(error.message,
                        "'sample' is an LLVM heap profile of raw version 6: only 3, 4 and 5 can be read");
    hw_llvm_profile_free(&profile);
    free(bytes.data);
}

/* ---- merging ---- */

static void test_adding_blocks(void **state)
{
    struct hw_llvm_mib sum = {{0}}, a = {{0}}, b = {{0}};
    a.field[HW_LLVM_ALLOC_COUNT] = 1;
    a.field[HW_LLVM_MIN_SIZE] = a.field[HW_LLVM_MAX_SIZE] = 10;
    a.field[HW_LLVM_ALLOC_TIME] = 5;
    a.field[HW_LLVM_ALLOC_CPU] = 1;
    b.field[HW_LLVM_ALLOC_COUNT] = 2;
    b.field[HW_LLVM_MIN_SIZE] = 20;
    b.field[HW_LLVM_MAX_SIZE] = 30;
    b.field[HW_LLVM_ALLOC_TIME] = 4;
    b.field[HW_LLVM_ALLOC_CPU] = 2;
    hw_llvm_mib_add(&sum, &a);
    hw_llvm_mib_add(&sum, &b);
    hw_llvm_mib_add(&sum, &(struct hw_llvm_mib){{0}});
    assert_int_equal(sum.field[HW_LLVM_ALLOC_COUNT], 3);
    assert_int_equal(sum.field[HW_LLVM_MIN_SIZE], 10);
    assert_int_equal(sum.field[HW_LLVM_MAX_SIZE], 30);
    assert_int_equal(sum.field[HW_LLVM_ALLOC_CPU], 1);
}

TEST_LIST(cmocka_unit_test(test_guids), cmocka_unit_test(test_suffixes), cmocka_unit_test(test_raw_round_trip),
          cmocka_unit_test(test_several_dumps), cmocka_unit_test(test_segments_that_overlap),
          cmocka_unit_test(test_saturation), cmocka_unit_test(test_histogram_cells),
          cmocka_unit_test(test_indexed_round_trip), cmocka_unit_test(test_indexed_is_compact),
          cmocka_unit_test(test_damaged_raw), cmocka_unit_test(test_damaged_indexed),
          cmocka_unit_test(test_other_versions), cmocka_unit_test(test_adding_blocks))
