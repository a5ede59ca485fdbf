/* test_profile_sharing.c - the reader on sampled accesses, used words and shared lines: adding up, order, and files
 * whose numbers point nowhere. */
#include <stdio.h>

#include "access_sections.h"
#include "profile/merge/merge.h"
#include "read_image.h"

/* What profile.h promises, whatever was in the file. */
static void check_promises(const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->sample_context_count; i++) {
        assert_true(profile->sample_contexts[i].context < profile->context_entry_count);
        assert_true(!i || profile->sample_contexts[i].context > profile->sample_contexts[i - 1].context);
    }
    for (size_t i = 0; i < profile->sample_count_count; i++) {
        const struct hw_sample_count *count = &profile->sample_counts[i];
        assert_true(count->kind == HW_SAMPLE_WORD || count->kind == HW_SAMPLE_PLACE);
        assert_true(count->context < profile->context_entry_count);
        assert_true(count->map == HW_NONE || count->map < profile->map_count);
        assert_true(!i || hw_sample_count_compare(count - 1, count) < 0);
    }
    for (size_t i = 0; i < profile->sampled_global_count; i++)
        assert_true(profile->sampled_globals[i].map == HW_NONE || profile->sampled_globals[i].map < profile->map_count);
    for (size_t i = 0; i < profile->word_count; i++) {
        assert_int_equal(profile->words[i].first_word % HW_WORDS_RUN, 0);
        assert_int_equal(profile->words[i].free_context, HW_NONE);
        assert_true(profile->words[i].context < profile->context_entry_count);
        assert_true(!i || hw_profile_words_compare(&profile->words[i - 1], &profile->words[i]) < 0);
    }
    for (size_t i = 0; i < profile->freed_word_count; i++)
        assert_true(profile->freed_words[i].free_context < profile->context_entry_count);
    for (size_t i = 0; i < profile->role_count; i++) {
        assert_true(profile->roles[i].map == HW_NONE || profile->roles[i].map < profile->map_count);
        assert_true(profile->roles[i].context == HW_NONE || profile->roles[i].context < profile->context_entry_count);
    }
    for (size_t i = 0; i < profile->side_count; i++) {
        assert_true(profile->sides[i].role < profile->role_count);
        assert_true(profile->sides[i].context < profile->context_entry_count);
        assert_true(!i || hw_side_compare(&profile->sides[i - 1], &profile->sides[i]) < 0);
    }
}

/* ---- samples ---- */

static void test_samples(void **state)
{
    struct sample sample = sample_new();
    sample_add_samples(&sample);
    struct hw_profile *profile = read_image(&sample.image, NULL);
    check_promises(profile);
    assert_true(profile->accesses_sampled);
    assert_false(profile->access_counted);
    assert_int_equal(profile->sample_info.bursts, 3);
    assert_int_equal(profile->sample_context_count, 2);
    assert_int_equal(profile->sample_contexts[0].reads, 26);
    assert_int_equal(profile->sample_contexts[0].lines, 3);
    assert_int_equal(profile->sample_count_count, 4); /* the words at 0 and 16, two places */
    assert_int_equal(profile->sample_counts[1].offset, 16);
    assert_int_equal(profile->sample_counts[1].reads, 26);
    assert_int_equal(profile->sampled_global_count, 1);
    assert_int_equal(profile->sampled_globals[0].offset, 0x4000);
    hw_profile_free(profile);
}

static void test_samples_without_information(void **state)
{
    struct sample sample = sample_new();
    struct sampled_sections sections = sample_add_samples(&sample);
    image_section(&sample.image, sections.info)->used = 0;
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_false(profile->accesses_sampled);
    assert_int_equal(profile->sample_count_count, 0);
    hw_profile_free(profile);
}

static void test_hostile_samples(void **state)
{
    static const struct {
        size_t entry;
        struct hw_sample_count count;
    } lies[] = {{1, {.kind = 7, .context = 1, .map = 0, .reads = 1}},
                {2, {.kind = 0, .context = 1, .map = 0, .reads = 1}},
                {1, {.kind = HW_SAMPLE_WORD, .context = 4, .map = HW_NONE, .reads = 1}},
                {1, {.kind = HW_SAMPLE_WORD, .context = HW_NONE, .map = HW_NONE, .reads = 1}},
                {4, {.kind = HW_SAMPLE_PLACE, .context = 1, .map = 1000, .reads = 1}},
                {0, {.kind = HW_SAMPLE_GLOBAL, .context = HW_NONE, .map = 1000, .reads = 1}}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct sample sample = sample_new();
        struct sampled_sections sections = sample_add_samples(&sample);
        ((struct hw_sample_count *)image_data(&sample.image, sections.counts))[lies[i].entry] = lies[i].count;
        struct hw_profile *profile = read_image(&sample.image, "some lie in unknown memory");
        check_promises(profile);
        assert_true(profile->sample_count_count >= 3);
        hw_profile_free(profile);
    }
    struct sample sample = sample_new();
    struct sampled_sections sections = sample_add_samples(&sample);
    ((struct hw_sample_context *)image_data(&sample.image, sections.contexts))[0].context = 1u << 30;
    struct hw_profile *profile = read_image(&sample.image, "a context that does not exist");
    check_promises(profile);
    assert_int_equal(profile->sample_context_count, 1);
    hw_profile_free(profile);
}

/* Sums end where they can hold no more. */
static void test_great_samples(void **state)
{
    struct sample sample = sample_new();
    struct sampled_sections sections = sample_add_samples(&sample);
    struct hw_sample_count *counts = image_data(&sample.image, sections.counts);
    counts[1].reads = counts[3].reads = UINT64_MAX - 1;
    counts[4].offset = UINT64_MAX;
    ((struct hw_sample_context *)image_data(&sample.image, sections.contexts))[1].lines = UINT64_MAX;
    struct hw_profile *profile = read_image(&sample.image, NULL);
    check_promises(profile);
    assert_true(profile->sample_counts[1].reads == UINT64_MAX);
    assert_true(profile->sample_contexts[0].lines == UINT64_MAX);
    hw_profile_free(profile);
}

/* ---- words ---- */

static void test_words(void **state)
{
    struct sample sample = sample_new();
    sample_add_words(&sample);
    struct hw_profile *profile = read_image(&sample.image, NULL);
    check_promises(profile);
    assert_true(hw_profile_counts_periods(profile));
    assert_int_equal(profile->word_count, 3); /* context 1 from words 0 and 32 on, context 2 */
    assert_int_equal(profile->words[0].written_periods[0], 5);
    assert_int_equal(profile->words[0].written_blocks[0], 4);
    assert_int_equal(profile->words[1].first_word, 32);
    assert_int_equal(profile->words[2].saturated, 1);
    assert_int_equal(profile->freed_word_count, 2);
    assert_int_equal(profile->freed_words[0].free_context, 3);
    assert_int_equal(profile->freed_words[0].written_periods[0], 1);
    hw_profile_free(profile);
}

static void test_hostile_words(void **state)
{
    static const struct {
        size_t entry;
        uint32_t context, free_context, first_word;
        const char *problem;
        size_t left, freed;
    } lies[] = {{0, 1, 3, 33, "begins in the middle", 2, 1},
                {0, 1, 3, UINT32_MAX, "begins in the middle", 2, 1},
                {0, 1, 999, 32, "freed by a call stack that does not exist", 3, 1},
                {1, 999, HW_NONE, 0, "a context that does not exist", 3, 2},
                {2, 3, HW_NONE, UINT32_MAX - 31, "a context without allocations", 3, 1}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct sample sample = sample_new();
        struct word_sections sections = sample_add_words(&sample);
        struct hw_words *words = (struct hw_words *)image_data(&sample.image, sections.freed) + lies[i].entry;
        words->context = lies[i].context;
        words->free_context = lies[i].free_context;
        words->first_word = lies[i].first_word;
        image_seal(&sample.image);
        struct hw_profile *profile = read_image(&sample.image, lies[i].problem);
        check_promises(profile);
        assert_int_equal(profile->word_count, lies[i].left);
        assert_int_equal(profile->freed_word_count, lies[i].freed);
        hw_profile_free(profile);
    }
}

/* ---- sides ---- */

static void test_sides(void **state)
{
    struct sample sample = sample_new();
    sample_add_samples(&sample);
    sample_add_sides(&sample);
    struct hw_profile *profile = read_image(&sample.image, NULL);
    check_promises(profile);
    assert_int_equal(profile->role_count, 3);
    assert_int_equal(profile->roles[2].routine, 0x2000);
    assert_int_equal(profile->side_count, 4);
    assert_int_equal(profile->sides[1].role, 2);
    assert_int_equal(profile->sides[1].writes, 111);
    assert_int_equal(profile->sides[1].lines, 3);
    assert_int_equal(profile->sides[2].code, 0x1234);
    hw_profile_free(profile);
}

static void test_hostile_sides(void **state)
{
    static const struct hw_side lies[] = {
        {.context = 77, .role = 1, .kind = 1, .sharing = 1, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = 3, .kind = 1, .sharing = 1, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = UINT32_MAX, .kind = 1, .sharing = 1, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = 1, .kind = 0, .sharing = 1, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = 1, .kind = 3, .sharing = 1, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = 1, .kind = 1, .sharing = 4, .map = HW_NONE, .reads = 1},
        {.context = 1, .role = 1, .kind = 2, .sharing = 1, .map = 500, .reads = 1}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct sample sample = sample_new();
        sample_add_samples(&sample);
        struct side_sections sections = sample_add_sides(&sample);
        ((struct hw_side *)image_data(&sample.image, sections.sides))[1] = lies[i];
        struct hw_profile *profile = read_image(&sample.image, "it names what does not exist");
        check_promises(profile);
        assert_int_equal(profile->side_count, 3);
        hw_profile_free(profile);
    }
}

/* Roles that lead nowhere stay, with nothing known of them: sides still find theirs. */
static void test_hostile_roles(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct sample sample = sample_new();
        sample_add_samples(&sample);
        struct side_sections sections = sample_add_sides(&sample);
        struct hw_thread_role *roles = image_data(&sample.image, sections.roles);
        roles[2].map = i == 0 ? 1000 : 0;
        roles[2].context = i == 1 ? 1000 : 3;
        if (i == 2) /* cut off */
            image_section(&sample.image, sections.roles)->used = sizeof *roles;
        struct hw_profile *profile =
            read_image(&sample.image, i < 2 ? "started by what is not listed" : "it names what does not exist");
        check_promises(profile);
        assert_int_equal(profile->role_count, i < 2 ? 3 : 2);
        assert_int_equal(profile->side_count, i < 2 ? 4 : 3);
        hw_profile_free(profile);
    }
}

TEST_LIST(cmocka_unit_test(test_samples), cmocka_unit_test(test_samples_without_information),
          cmocka_unit_test(test_hostile_samples), cmocka_unit_test(test_great_samples), cmocka_unit_test(test_words),
          cmocka_unit_test(test_hostile_words), cmocka_unit_test(test_sides), cmocka_unit_test(test_hostile_sides),
          cmocka_unit_test(test_hostile_roles))
