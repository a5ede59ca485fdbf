/* test_candidates.c - which settings are combined, after a race whose results are made up. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tuning/candidates.h"

static struct hw_setting make(const char *allocator, const char *name, enum hw_setting_way way)
{
    struct hw_setting setting = {.way = way};
    snprintf(setting.allocator, sizeof setting.allocator, "%s", allocator);
    snprintf(setting.name, sizeof setting.name, "%s", name);
    snprintf(setting.target, sizeof setting.target, "%s", name);
    return setting;
}

static struct hw_candidates candidates;
static struct hw_race race;
static double values[64];

static void add(const char *allocator, const struct hw_setting *setting, const char *value, double result)
{
    struct hw_error error = {""};
    struct hw_configuration one;
    hw_configuration_init(&one, allocator, NULL, NULL);
    if (setting)
        assert_true(hw_configuration_set(&one, setting, value, &error));
    values[candidates.count] = result;
    assert_true(hw_candidates_add(&candidates, &one, &error));
}

/* Results as the race has them: 0 stands for one that was excluded. */
static size_t combined(void)
{
    race = (struct hw_race){.count = candidates.count, .single_count = candidates.count};
    race.of = calloc(race.count, sizeof *race.of);
    assert_non_null(race.of);
    for (size_t i = 0; i < race.count; i++) {
        race.of[i].selected.value = values[i];
        race.of[i].state = values[i] > 0 ? HW_RACE_LEFT : HW_RACE_EXCLUDED;
    }
    return hw_candidates_combine(&candidates, &race) - race.single_count;
}

static bool has(const char *expected)
{
    char label[HW_CONFIGURATION_LABEL];
    for (size_t i = race.single_count; i < candidates.count; i++) {
        hw_configuration_label(&candidates.of[i], label, sizeof label);
        if (strcmp(label, expected) == 0)
            return true;
    }
    return false;
}

static void end(void)
{
    free(race.of);
    hw_candidates_free(&candidates);
}

static void test_best_settings(void **state)
{
    const struct hw_setting a = make("fast", "a", HW_SETTING_ENV), b = make("fast", "b", HW_SETTING_ENV),
                            c = make("fast", "c", HW_SETTING_ENV), other = make("slow", "d", HW_SETTING_ENV),
                            thp = make(HW_SETTINGS_KERNEL, "kernel-thp", HW_SETTING_PRCTL);
    add(HW_CONFIGURATION_OWN, NULL, NULL, 1);
    add(HW_CONFIGURATION_OWN, &thp, "off", 0.97);
    add("fast", NULL, NULL, 0.9);
    add("fast", &a, "1", 0.8);
    add("fast", &a, "2", 0.85); /* of two values of one setting the better one */
    add("fast", &b, "1", 0.82);
    add("fast", &c, "1", 0.95); /* worse than without */
    add("slow", NULL, NULL, 1.2);
    add("slow", &other, "1", 0); /* excluded */
    assert_in_range(combined(), 3, HW_RACE_COMBINED);
    assert_true(has("fast, a 1, b 1"));
    assert_true(has("fast, a 1, b 1, kernel-thp off"));
    assert_true(has("fast, kernel-thp off"));
    for (size_t i = race.single_count; i < candidates.count; i++)
        for (size_t k = 0; k < candidates.of[i].count; k++) {
            const char *name = candidates.of[i].of[k].setting->name;
            assert_true(strcmp(name, "c") != 0 && strcmp(name, "d") != 0);
        }
    end();
}

static void test_nothing_to_combine(void **state)
{
    const struct hw_setting a = make("fast", "a", HW_SETTING_ENV);
    add(HW_CONFIGURATION_OWN, NULL, NULL, 1);
    add("fast", NULL, NULL, 0.9);
    add("fast", &a, "1", 0.8);
    assert_int_equal(combined(), 0);
    end();
}

static void test_many(void **state)
{
    struct hw_setting settings[2][5];
    static const char *const names[] = {"one", "two"};
    char name[8];
    add(HW_CONFIGURATION_OWN, NULL, NULL, 1);
    for (size_t i = 0; i < 2; i++) {
        add(names[i], NULL, NULL, 1);
        for (size_t k = 0; k < 5; k++) {
            snprintf(name, sizeof name, "s%zu", k);
            settings[i][k] = make(names[i], name, HW_SETTING_ENV);
            add(names[i], &settings[i][k], "1", 0.9 - 0.01 * (double)k - 0.001 * (double)i);
        }
    }
    const size_t count = combined();
    assert_in_range(count, 6, HW_RACE_COMBINED);
    assert_true(has("two, s4 1, s3 1, s2 1"));
    assert_true(has("one, s4 1, s3 1"));
    end();
}

TEST_LIST(cmocka_unit_test(test_best_settings), cmocka_unit_test(test_nothing_to_combine), cmocka_unit_test(test_many))
