/* test_configuration.c - settings of allocators as data, and configurations: files, environments, words. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "tuning/configuration.h"
#include "tuning/key_values.h"

static struct hw_settings installed;

static int read_installed(void **state)
{
    struct hw_error error = {""};
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/nonexistent", 1);
    if (!hw_settings_read(&installed, NULL, &error))
        fail_msg("%s", error.message);
    return 0;
}

static int free_installed(void **state)
{
    hw_settings_free(&installed);
    return 0;
}

static const struct hw_setting *found(const char *allocator, const char *name)
{
    const struct hw_setting *setting = hw_settings_find(&installed, allocator, name);
    if (!setting)
        fail_msg("no setting %s of %s", name, allocator);
    return setting;
}

/* The settings of one file with TEXT; false with ERROR. */
static bool settings_of_text(struct hw_settings *settings, const char *text, struct hw_error *error)
{
    char folder[] = "/tmp/heapwise-settings-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.conf", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    *settings = (struct hw_settings){0};
    const bool fine = hw_settings_add_folder(settings, folder, error);
    unlink(path);
    rmdir(folder);
    return fine;
}

/* ---- settings ---- */

static void test_installed_settings_are_complete(void **state)
{
    static const char *const allocators[] = {"glibc", "jemalloc", "mimalloc", "tcmalloc", "kernel"};
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++) {
        const struct hw_setting *of[64];
        assert_true(hw_settings_of(&installed, allocators[i], "", of, 64) > 0);
    }
    for (size_t i = 0; i < installed.count; i++) {
        const struct hw_setting *setting = &installed.of[i];
        const size_t length = strlen(setting->does);
        if (!length || setting->does[length - 1] != '.')
            fail_msg("%s of %s: what it does is not a sentence", setting->name, setting->allocator);
        if ((setting->when_count > 0) != (setting->otherwise[0] != '\0'))
            fail_msg("%s of %s: a condition without its reason, or the reverse", setting->name, setting->allocator);
    }
}

static void test_settings_are_read(void **state)
{
    struct hw_settings settings;
    struct hw_error error = {""};
    if (!settings_of_text(&settings,
                          "# mine\n[speed] # a comment\nset = env MY_SPEED\nvalues = 1  20 x#y\nsince = 1.9\n"
                          "before = 2.10\ndoes = Speed.\nwhen = threads > 1, largest-block > 128K,waste<0.5\n"
                          "otherwise = No.\n[other]\nset=conf a.b\nvalues=0\n",
                          &error))
        fail_msg("%s", error.message);
    assert_int_equal(settings.count, 2);
    const struct hw_setting *speed = hw_settings_find(&settings, "mine", "speed");
    assert_non_null(speed);
    assert_int_equal(speed->way, HW_SETTING_ENV);
    assert_string_equal(speed->target, "MY_SPEED");
    assert_int_equal(speed->value_count, 3);
    assert_string_equal(speed->values[2], "x#y");
    assert_int_equal(speed->when_count, 3);
    assert_string_equal(speed->when[1].fact, "largest-block");
    assert_int_equal(speed->when[1].compare, '>');
    assert_true(speed->when[1].value == 131072);
    assert_true(speed->when[2].value == 0.5);
    const struct hw_setting *of[4];
    assert_int_equal(hw_settings_of(&settings, "mine", "2.9.1", of, 4), 2);
    assert_int_equal(hw_settings_of(&settings, "mine", "2.10", of, 4), 1);
    assert_int_equal(hw_settings_of(&settings, "mine", "1.8", of, 4), 1);
    assert_null(hw_settings_find(&settings, "yours", "speed"));
    hw_settings_free(&settings);
}

static void test_wrong_settings_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"set = env A\n", "line 1: a setting begins with [NAME]"},
        {"[a]\nvalues = 1\n", "no line set ="},
        {"[a]\nset = env A\n", "no line values ="},
        {"[a]\nset = env A\n[b]\n", "line 3: the setting before has no line values ="},
        {"[a]\nset = file A\n", "line 2: set is one of"},
        {"[a]\nset = env A=1\n", "a target is one word"},
        {"[a]\nset = prctl thp-disable\nvalues = off\n", "only settings of the kernel"},
        {"[a]\nvalues =\n", "the value is empty"},
        {"[a]\nvalues = 1 2 3 4 5 6 7 8 9\n", "more than 8 values"},
        {"[a]\nwhen = threads\n", "a condition is FACT"},
        {"[a]\nwhen = threads > 1 2\n", "a condition is FACT"},
        {"[a]\nwhen = threads ~ 1\n", "a condition is FACT"},
        {"[a]\nwhen = threads > 1Q\n", "a condition is FACT"},
        {"[a]\nwhen = a > 1, a > 2, a > 3, a > 4, a > 5\n", "more than 4 conditions"},
        {"[a\n", "a section is [NAME]"},
        {"[]\n", "a section has no name"},
        {"[library]\n", "cannot have this name"},
        {"[a]\nvalue = 1\n", "unknown key (known: set,"},
        {"[a]\nvalues\n", "KEY = VALUE is needed"},
        {"[a]\ndoes = \x01\n", "control characters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_settings settings;
        struct hw_error error = {""};
        if (settings_of_text(&settings, cases[i].text, &error))
            fail_msg("taken: %s", cases[i].text);
        if (!strstr(error.message, cases[i].message) || !strstr(error.message, "/mine.conf"))
            fail_msg("\"%s\" for: %s", error.message, cases[i].text);
        hw_settings_free(&settings);
    }
}

static void test_users_settings_replace_and_add(void **state)
{
    char home[] = "/tmp/heapwise-home-XXXXXX", path[128];
    assert_non_null(mkdtemp(home));
    static const char *const folders[] = {"heapwise", "heapwise/settings"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", home, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/heapwise/settings/glibc.conf", home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[arena_max]\nset = tunable glibc.malloc.arena_max\nvalues = 3\n[mine]\nset = env MINE\nvalues = 1\n", file);
    assert_int_equal(fclose(file), 0);
    setenv("XDG_CONFIG_HOME", home, 1);
    struct hw_settings settings;
    struct hw_error error = {""};
    const bool fine = hw_settings_read(&settings, NULL, &error);
    unsetenv("XDG_CONFIG_HOME");
    unlink(path);
    for (size_t i = 2; i > 0; i--) {
        snprintf(path, sizeof path, "%s/%s", home, folders[i - 1]);
        rmdir(path);
    }
    rmdir(home);
    if (!fine)
        fail_msg("%s", error.message);
    assert_int_equal(settings.count, installed.count + 1);
    const struct hw_setting *arena_max = hw_settings_find(&settings, "glibc", "arena_max");
    assert_int_equal(arena_max->value_count, 1);
    assert_string_equal(arena_max->values[0], "3");
    assert_int_equal(arena_max->when_count, 0);
    assert_non_null(hw_settings_find(&settings, "glibc", "mine"));
    hw_settings_free(&settings);
    assert_false(hw_settings_read(&settings, "/nonexistent/folder", &error));
    assert_non_null(strstr(error.message, "/nonexistent/folder"));
    hw_settings_free(&settings);
}

static void test_versions_are_compared_by_number(void **state)
{
    assert_true(hw_version_compare("2.9", "2.10") < 0);
    assert_true(hw_version_compare("5.3.0", "5.3") == 0);
    assert_true(hw_version_compare("5.3.1", "5.3") > 0);
    assert_true(hw_version_compare("2.10", "2.10-rc") == 0);
    assert_true(hw_version_compare("", "1") < 0);
    assert_true(hw_version_compare("99999999999999999999999", "1") > 0);
}

static void test_conditions(void **state)
{
    char why[512] = "?";
    struct hw_known_facts facts = {.count = 0};
    const struct hw_setting *arena_max = found("glibc", "arena_max");
    assert_true(hw_setting_may_help(arena_max, &facts, why, sizeof why)); /* not known */
    assert_string_equal(why, "");
    hw_known_fact_set(&facts, "threads", 1);
    assert_false(hw_setting_may_help(arena_max, &facts, why, sizeof why));
    assert_string_equal(why, "One thread uses one arena. (threads is 1; > 1 is needed)");
    hw_known_fact_set(&facts, "threads", 2);
    assert_int_equal(facts.count, 1);
    assert_true(hw_setting_may_help(arena_max, &facts, why, sizeof why));
    hw_known_fact_set(&facts, "threads", NAN);
    assert_true(hw_setting_may_help(arena_max, &facts, why, sizeof why));
    hw_known_facts_of_machine(&facts);
    assert_true(hw_known_fact(&facts, "processors") >= 1);
    assert_true(isnan(hw_known_fact(&facts, "no such fact")));
}

/* ---- configurations ---- */

static void set(struct hw_configuration *configuration, const char *name, const char *value)
{
    struct hw_error error = {""};
    if (!hw_configuration_set(configuration, found(configuration->settings, name), value, &error))
        fail_msg("%s", error.message);
}

static void test_a_file_and_back(void **state)
{
    struct hw_configuration configuration, again;
    struct hw_error error = {""};
    hw_configuration_init(&configuration, "jemalloc", NULL, "libjemalloc.so.2");
    set(&configuration, "narenas", "1");
    set(&configuration, "thp", "never");
    set(&configuration, "kernel-thp", "off");
    set(&configuration, "thp", "always");
    char label[HW_CONFIGURATION_LABEL];
    hw_configuration_label(&configuration, label, sizeof label);
    assert_string_equal(label, "jemalloc, narenas 1, thp always, kernel-thp off");
    char *text = hw_configuration_text(&configuration, "found by a test\n\nof two lines");
    assert_string_equal(text, "# found by a test\n#\n# of two lines\nallocator = jemalloc\nlibrary = libjemalloc.so.2\n"
                              "narenas = 1\nthp = always\nkernel-thp = off\n");
    if (!hw_configuration_parse(&again, &installed, text, "here", &error))
        fail_msg("%s", error.message);
    assert_true(hw_configuration_equal(&configuration, &again));
    set(&again, "narenas", "2");
    assert_false(hw_configuration_equal(&configuration, &again));
    free(text);

    /* The program's own, and one that the user named. */
    hw_configuration_init(&configuration, HW_CONFIGURATION_OWN, NULL, NULL);
    hw_configuration_label(&configuration, label, sizeof label);
    assert_string_equal(label, "as it is");
    text = hw_configuration_text(&configuration, NULL);
    assert_string_equal(text, "allocator = own\n");
    free(text);
    hw_configuration_init(&configuration, "mine", "jemalloc", "/opt/libjemalloc.so");
    set(&configuration, "narenas", "4");
    text = hw_configuration_text(&configuration, NULL);
    assert_string_equal(text, "allocator = mine\nsettings = jemalloc\nlibrary = /opt/libjemalloc.so\nnarenas = 4\n");
    if (!hw_configuration_parse(&again, &installed, text, "here", &error))
        fail_msg("%s", error.message);
    assert_true(hw_configuration_equal(&configuration, &again));
    assert_string_equal(again.settings, "jemalloc");
    free(text);
}

static void test_order_and_comments_of_a_file(void **state)
{
    struct hw_configuration configuration;
    struct hw_error error = {""};
    if (!hw_configuration_parse(&configuration, &installed,
                                "\xef\xbb\xbf\n hugetlb=1 # huge\r\n# note\nallocator =\tglibc  \nkernel-thp = off",
                                "here", &error))
        fail_msg("%s", error.message);
    assert_string_equal(configuration.library, ""); /* the C library is there anyway */
    assert_int_equal(configuration.count, 2);
    assert_string_equal(configuration.of[0].setting->target, "glibc.malloc.hugetlb");
}

static void test_wrong_files_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "here: there is no line \"allocator = NAME\""},
        {"allocator = glibc\narena = 1\n", "here, line 2: glibc has no setting \"arena\" (known: hugetlb, "},
        {"allocator = own\nhugetlb = 1\n", "own has no setting \"hugetlb\" (known: kernel-thp, processors, numa)"},
        {"allocator = fast\n", "the library of \"fast\" is not known: a line \"library = PATH\" is needed"},
        {"allocator = glibc\narena_max = 1:2\n", "arena_max: \"1:2\" is not a value"},
        {"allocator = glibc\narena_max =\n", "arena_max: \"\" is not a value"},
        {"allocator = glibc\narena_max = 1\narena_max = 2\n", "line 3: this setting has a value already"},
        {"allocator = glibc\nallocator = jemalloc\n", "line 2: this key has a value already"},
        {"allocator = own\nlibrary = a.so\nlibrary = b.so\n", "line 3: this key has a value already"},
        {"allocator = glibc\nkernel-thp = on\n", "kernel-thp: the only value is off"},
        {"allocator = a b\n", "line 1: this is not a name"},
        {"[glibc]\n", "a configuration has no sections"},
        {"allocator: glibc\n", "KEY = VALUE is needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_configuration configuration;
        struct hw_error error = {""};
        if (hw_configuration_parse(&configuration, &installed, cases[i].text, "here", &error))
            fail_msg("taken: %s", cases[i].text);
        if (!strstr(error.message, cases[i].message))
            fail_msg("\"%s\" for: %s", error.message, cases[i].text);
    }
    struct hw_configuration configuration;
    struct hw_error error = {""};
    assert_false(hw_configuration_read(&configuration, &installed, "/nonexistent/tuned.conf", &error));
    assert_string_equal(error.message, "/nonexistent/tuned.conf: No such file or directory");
    assert_false(hw_configuration_read(&configuration, &installed, "/dev/zero", &error));
    assert_non_null(strstr(error.message, "/dev/zero: this is not a text file"));
}

static void expect_strings(char **strings, const char *const *expected)
{
    assert_non_null(strings);
    size_t i = 0;
    for (; expected[i] && strings[i]; i++)
        assert_string_equal(strings[i], expected[i]);
    assert_true(!expected[i] && !strings[i]);
    hw_configuration_strings_free(strings);
}

static void test_environments_are_joined(void **state)
{
    static const char *const base[] = {"PATH=/bin",
                                       "GLIBC_TUNABLES=glibc.malloc.arena_max=8:glibc.cpu.x=1",
                                       "LD_PRELOAD=libother.so",
                                       "MALLOC_CONF=abort:true",
                                       "MALLOC_CONFIG=x",
                                       "MIMALLOC_PURGE_DELAY=3",
                                       NULL};
    struct hw_configuration configuration;
    hw_configuration_init(&configuration, "glibc", NULL, NULL);
    set(&configuration, "arena_max", "1");
    set(&configuration, "hugetlb", "1");
    set(&configuration, "kernel-thp", "off");
    expect_strings(hw_configuration_variables(&configuration),
                   (const char *const[]){"GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1", NULL});
    expect_strings(hw_configuration_environment(&configuration, (char *const *)base),
                   (const char *const[]){"GLIBC_TUNABLES=glibc.malloc.arena_max=8:glibc.cpu.x=1:"
                                         "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1",
                                         base[0], base[2], base[3], base[4], base[5], NULL});
    hw_configuration_init(&configuration, "jemalloc", NULL, "libjemalloc.so.2");
    set(&configuration, "narenas", "1");
    set(&configuration, "dirty_decay_ms", "-1");
    expect_strings(hw_configuration_environment(&configuration, (char *const *)base),
                   (const char *const[]){"LD_PRELOAD=libjemalloc.so.2:libother.so",
                                         "MALLOC_CONF=abort:true,narenas:1,dirty_decay_ms:-1", base[0], base[1],
                                         base[4], base[5], NULL});
    hw_configuration_init(&configuration, "mimalloc", NULL, "libmimalloc.so.2");
    set(&configuration, "purge_delay", "0");
    expect_strings(hw_configuration_environment(&configuration, (char *const *)base),
                   (const char *const[]){"LD_PRELOAD=libmimalloc.so.2:libother.so", "MIMALLOC_PURGE_DELAY=0", base[0],
                                         base[1], base[3], base[4], NULL});
    hw_configuration_init(&configuration, HW_CONFIGURATION_OWN, NULL, NULL);
    expect_strings(hw_configuration_variables(&configuration), (const char *const[]){NULL});
    expect_strings(hw_configuration_environment(&configuration, NULL), (const char *const[]){NULL});
}

static void test_numbers(void **state)
{
    static const struct {
        const char *allocator, *name, *given, *value; /* NULL: refused */
    } cases[] = {
        {"glibc", "mmap_threshold", "128K", "131072"},
        {"glibc", "mmap_threshold", "4M", "4194304"},
        {"glibc", "mmap_threshold", "0x20000", "0x20000"},
        {"glibc", "mmap_threshold", "131072", "131072"},
        {"glibc", "mmap_threshold", "128k", "131072"},
        {"glibc", "mmap_threshold", "128KB", "131072"},
        {"glibc", "mmap_threshold", "128KiB", "131072"},
        {"glibc", "mmap_threshold", "128Kb/s", NULL},
        {HW_SETTINGS_KERNEL, "processors", "0-3,6", "0-3,6"},
        {HW_SETTINGS_KERNEL, "processors", "0,", NULL},
        {HW_SETTINGS_KERNEL, "processors", "3-1", NULL},
        {HW_SETTINGS_KERNEL, "processors", "0-99999", NULL},
        {HW_SETTINGS_KERNEL, "processors", "all", NULL},
        {HW_SETTINGS_KERNEL, "numa", "interleave", "interleave"},
        {HW_SETTINGS_KERNEL, "numa", "bind", NULL},
        {"glibc", "mmap_threshold", "K", NULL},
        {"glibc", "arena_max", "banana", NULL},
        {"glibc", "arena_max", "99999999999999999999", NULL},
        {"glibc", "arena_max", "9999999999999999G", NULL},
        {"jemalloc", "dirty_decay_ms", "-1", "-1"},
        {"jemalloc", "thp", "always", "always"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_configuration configuration;
        struct hw_error error = {""};
        hw_configuration_init(&configuration, cases[i].allocator, NULL, NULL);
        const bool set =
            hw_configuration_set(&configuration, found(cases[i].allocator, cases[i].name), cases[i].given, &error);
        assert_int_equal(set, cases[i].value != NULL);
        if (set)
            assert_string_equal(configuration.of[0].value, cases[i].value);
        else
            assert_non_null(strstr(error.message, cases[i].name));
    }
}

static void test_not_too_many_settings(void **state)
{
    struct hw_configuration configuration;
    struct hw_error error = {""};
    struct hw_setting many[HW_CONFIGURATION_SETTINGS + 1];
    hw_configuration_init(&configuration, "mine", NULL, NULL);
    for (size_t i = 0; i <= HW_CONFIGURATION_SETTINGS; i++) {
        many[i] = (struct hw_setting){.allocator = "mine", .way = HW_SETTING_ENV};
        snprintf(many[i].name, sizeof many[i].name, "s%zu", i);
        snprintf(many[i].target, sizeof many[i].target, "S%zu", i);
        assert_int_equal(hw_configuration_set(&configuration, &many[i], "1", &error), i < HW_CONFIGURATION_SETTINGS);
    }
    assert_string_equal(error.message, "s16: no more than 16 settings");
    char label[16];
    hw_configuration_label(&configuration, label, sizeof label); /* cut */
    assert_string_equal(label, "mine, s0 1, s1 ");
}

TEST_LIST_WITH(read_installed, free_installed, cmocka_unit_test(test_installed_settings_are_complete),
               cmocka_unit_test(test_settings_are_read), cmocka_unit_test(test_wrong_settings_are_refused),
               cmocka_unit_test(test_users_settings_replace_and_add),
               cmocka_unit_test(test_versions_are_compared_by_number), cmocka_unit_test(test_conditions),
               cmocka_unit_test(test_a_file_and_back), cmocka_unit_test(test_order_and_comments_of_a_file),
               cmocka_unit_test(test_wrong_files_are_refused), cmocka_unit_test(test_environments_are_joined),
               cmocka_unit_test(test_numbers), cmocka_unit_test(test_not_too_many_settings))
