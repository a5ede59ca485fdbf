/* test_profile_access.c - the reader on counted accesses: merging, the harvest, damage. */
#include <stdio.h>

#include "read_image.h"

static const struct hw_profile_context *context_by_id(const struct hw_profile *profile, uint32_t id)
{
    for (size_t i = 0; i < profile->context_count; i++)
        if (profile->contexts[i].id == id)
            return &profile->contexts[i];
    fail_msg("context %u is not there", id);
    return NULL;
}

static void test_heap_mode_has_none(void **state)
{
    struct sample sample = sample_new();
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_false(profile->access_counted);
    for (size_t i = 0; i < profile->context_count; i++)
        assert_null(profile->contexts[i].access);
    assert_int_equal(profile->global_count, 0);
    hw_profile_free(profile);
}

static void test_merged(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct sample sample = sample_new();
        sample_add_accesses(&sample);
        if (sealed)
            image_seal(&sample.image);
        struct hw_profile *profile = read_image(&sample.image, NULL);
        assert_true(profile->access_counted);
        assert_int_equal(profile->access_info.granule, 8);
        assert_int_equal(profile->harvest_ns, 2000000);
        const struct hw_profile_access *all = &context_by_id(profile, 1)->access->all,
                                       *live = &context_by_id(profile, 1)->access->live;
        assert_int_equal(all->blocks, 9);
        assert_int_equal(live->blocks, 1);
        assert_int_equal(all->type, 77);
        assert_int_equal(all->flags, 0);
        assert_int_equal(all->reads, 620);
        assert_int_equal(all->writes, 1300);
        assert_int_equal(all->unsplit, 100);
        assert_int_equal(hw_profile_access_total(all), 2020);
        assert_int_equal(hw_profile_access_total(live), 1000);
        assert_int_equal(all->accesses_min, 0);
        assert_int_equal(all->accesses_max, 1000);
        assert_int_equal(all->granules, 25);
        assert_int_equal(all->granules_touched, 15);
        assert_int_equal(all->utilization_total, 60000);
        assert_int_equal(all->utilization_min, 0);
        assert_int_equal(all->utilization_max, 10000);
        assert_int_equal(all->density_total, 19200);
        assert_int_equal(all->density_max, 7000);
        assert_int_equal(all->lifetime_density_min, 0);
        assert_int_equal(all->lifetime_density_max, 30000);
        assert_int_equal(all->never_accessed, 1);
        assert_int_equal(all->written_never_read, 3);
        assert_int_equal(all->shared_granules, 4);
        assert_int_equal(all->shared_written, 3);
        assert_int_equal(all->shared_writers, 2);
        assert_int_equal(all->lines_false_shared, 1);
        /* An entry without blocks does not pull the minimum down. */
        assert_int_equal(context_by_id(profile, 2)->access->all.accesses_min, 1000);
        assert_int_equal(context_by_id(profile, 2)->access->all.type, 78);
        assert_int_equal(hw_profile_access_total(&profile->access.all), 3020);
        assert_int_equal(profile->access.all.blocks, 10);
        hw_profile_free(profile);
    }
}

static void test_globals_and_histogram(void **state)
{
    struct sample sample = sample_new();
    sample_add_accesses(&sample);
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_int_equal(profile->global_count, 2); /* sorted, each granule once, unused slots left out */
    assert_int_equal(profile->globals[0].offset, 0x4000);
    assert_int_equal(profile->globals[0].reads, 5);
    assert_int_equal(profile->globals[1].writes, 8);
    assert_int_equal(profile->globals[1].flags, 3);
    assert_int_equal(profile->histogram_count, 2);
    assert_int_equal(profile->histogram[0].first_word, 0);
    assert_int_equal(profile->histogram[0].words[0], 259); /* freed and live */
    assert_int_equal(profile->histogram[0].words[61], 6);
    assert_int_equal(profile->histogram[0].saturated, 1);
    assert_int_equal(profile->histogram[1].words[3], 9);
    hw_profile_free(profile);
}

/* Blocks freed after the harvest are in both sections: the live part of their context must not count. */
static void test_old_harvest(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    ((struct hw_access_info *)image_data(&sample.image, added.info))->harvest_tick = 950; /* context 1: freed at 1000 */
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_int_equal(context_by_id(profile, 1)->access->all.blocks, 8);
    assert_int_equal(context_by_id(profile, 1)->access->live.blocks, 0);
    assert_int_equal(context_by_id(profile, 2)->access->all.blocks, 1);
    assert_int_equal(profile->unharvested_contexts, 1);
    assert_int_equal(profile->access.all.blocks, 9);
    assert_int_equal(profile->histogram[0].words[0], 4);
    hw_profile_free(profile);
}

static void test_types_differ(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    ((struct hw_access *)image_data(&sample.image, added.freed))[1].type = 5;
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_int_equal(context_by_id(profile, 1)->access->all.flags, HW_ACCESS_TYPES_DIFFER);
    assert_int_equal(context_by_id(profile, 2)->access->all.flags, 0);
    hw_profile_free(profile);
}

/* Sums stop where 64 bits end, and say so. */
static void test_overflow(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    struct hw_access *freed = image_data(&sample.image, added.freed);
    freed[0].reads = freed[1].reads = UINT64_MAX - 10;
    freed[0].density_total = UINT64_MAX - 10;
    struct hw_global_granule *globals = image_data(&sample.image, added.globals);
    globals[0].writes = globals[3].writes = UINT64_MAX / 2 + 1;
    struct hw_profile *profile = read_image(&sample.image, NULL);
    const struct hw_profile_access *all = &context_by_id(profile, 1)->access->all;
    assert_true(all->reads == UINT64_MAX);
    assert_true(hw_profile_access_total(all) == UINT64_MAX);
    assert_true(all->overflown);
    assert_true(profile->access.all.overflown);
    assert_false(context_by_id(profile, 2)->access->all.overflown);
    assert_true(profile->globals[1].writes == UINT64_MAX);
    hw_profile_free(profile);
}

/* ---- damage ---- */

static void test_bad_contexts(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    ((struct hw_access *)image_data(&sample.image, added.freed))[0].context = 4;
    ((struct hw_histogram *)image_data(&sample.image, added.histogram))[0].context = UINT32_MAX;
    struct hw_profile *profile = read_image(&sample.image, "accesses section is damaged");
    assert_int_equal(hw_profile_access_total(&profile->access.all), 3020); /* nothing is lost of the totals */
    assert_int_equal(context_by_id(profile, 1)->access->all.blocks, 3);
    hw_profile_free(profile);

    /* A context without allocations, in a file of which that cannot be */
    sample = sample_new();
    added = sample_add_accesses(&sample);
    ((struct hw_access *)image_data(&sample.image, added.freed))[0].context = 3;
    image_seal(&sample.image);
    profile = read_image(&sample.image, "without allocations");
    assert_int_equal(hw_profile_access_total(&profile->access.all), 3020);
    hw_profile_free(profile);
}

static void test_nonsense(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    struct hw_access *freed = image_data(&sample.image, added.freed);
    freed[0].granules_touched = UINT64_MAX;
    freed[0].accesses_min = 501;
    freed[0].utilization_max = 10001;
    freed[0].never_accessed = 7;
    freed[0].shared_writers = 99;
    struct image copy = {0};
    image_resize(&copy, sample.image.size);
    memcpy(copy.bytes, sample.image.bytes, copy.size);
    image_seal(&copy);
    hw_profile_free(read_image(&copy, "contradict each other"));
    struct hw_profile *profile = read_image(&sample.image, NULL); /* a moment in a live file */
    const struct hw_profile_access *all = &context_by_id(profile, 1)->access->all;
    assert_int_equal(all->granules_touched, 20 + 4 + 1);
    assert_int_equal(all->accesses_min, 5);
    assert_int_equal(all->utilization_max, 10000);
    assert_int_equal(all->never_accessed, 6);
    assert_int_equal(all->shared_writers, 3);
    hw_profile_free(profile);
}

static void test_bad_info(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    ((struct hw_access_info *)image_data(&sample.image, added.info))->granule = 7;
    struct hw_profile *profile = read_image(&sample.image, "granules of 7 bytes");
    assert_int_equal(profile->access_info.granule, 0);
    hw_profile_free(profile);

    sample = sample_new();
    added = sample_add_accesses(&sample);
    image_section(&sample.image, added.info)->type = 1000;
    profile = read_image(&sample.image, "access info section is missing");
    assert_true(profile->access_counted);
    assert_int_equal(profile->contexts[0].access->all.reads, 620);
    hw_profile_free(profile);

    sample = sample_new();
    added = sample_add_accesses(&sample);
    image_section(&sample.image, added.info)->used = 16;
    hw_profile_free(read_image(&sample.image, "access info section"));
}

static void test_bad_globals(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    struct hw_global_granule *globals = image_data(&sample.image, added.globals);
    globals[0].map = 2;
    globals[1].offset = UINT64_MAX - 7;
    struct hw_profile *profile = read_image(&sample.image, "not listed");
    assert_int_equal(profile->global_count, 2);
    assert_true(profile->globals[1].map == HW_NONE);
    assert_int_equal(profile->globals[1].writes, 7);
    hw_profile_free(profile);
}

static void test_bad_histogram(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    ((struct hw_histogram *)image_data(&sample.image, added.histogram))[1].first_word = 1;
    struct hw_profile *profile = read_image(&sample.image, "middle of another");
    assert_int_equal(profile->histogram_count, 2);
    assert_int_equal(profile->histogram[0].words[0], 255); /* of the live blocks alone */
    hw_profile_free(profile);
}

/* The entries of a lost extent take nothing of the others with them. */
static void test_lost_extent(void **state)
{
    struct sample sample = sample_new();
    struct access_sample added = sample_add_accesses(&sample);
    struct hw_access more = sample_access(2);
    more.blocks = 1;
    more.reads = more.accesses_min = more.accesses_max = 3;
    more.utilization_min = 0;
    more.density_min = more.lifetime_density_min = 0;
    image_add(&sample.image, HW_SECTION_ACCESS, sizeof more, &more, sizeof more, 0);
    image_seal(&sample.image);
    sample.image.bytes[image_section(&sample.image, added.freed)->offset + 40] ^= 1;
    struct hw_profile *profile = read_image(&sample.image, "lost, in whole or in part: accesses");
    assert_int_equal(context_by_id(profile, 1)->access->all.blocks, 1);
    assert_int_equal(context_by_id(profile, 2)->access->all.reads, 3);
    hw_profile_free(profile);
}

TEST_LIST(cmocka_unit_test(test_heap_mode_has_none), cmocka_unit_test(test_merged),
          cmocka_unit_test(test_globals_and_histogram), cmocka_unit_test(test_old_harvest),
          cmocka_unit_test(test_types_differ), cmocka_unit_test(test_overflow), cmocka_unit_test(test_bad_contexts),
          cmocka_unit_test(test_nonsense), cmocka_unit_test(test_bad_info), cmocka_unit_test(test_bad_globals),
          cmocka_unit_test(test_bad_histogram), cmocka_unit_test(test_lost_extent))
