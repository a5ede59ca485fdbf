/* test_unseen.c - nothing is concluded from what counted code does not touch where other code may: programs/unseen.cpp.
 */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <string.h>

/* The findings on blocks that FUNCTION allocates. */
static int findings_of(const json_t *report, const char *function)
{
    const int64_t id = json_number(only_context(report, function), "id");
    int found = 0;
    size_t i, k;
    json_t *finding, *context;
    json_array_foreach(json_object_get(report, "findings"), i, finding)
    {
        json_array_foreach(json_object_get(finding, "contexts"), k, context) found += json_integer_value(context) == id;
    }
    return found;
}

static bool is_used_unseen(const json_t *report, const char *function)
{
    return json_is_true(json_object_get(only_context(report, function), "used_by_uncounted_code"));
}

static void check(const char *form, const char *optimisation)
{
    char *path = join_path(test_directory, "unseen"), *source = join_path(TEST_SOURCES, "programs/unseen.cpp"),
         *file = join_path(test_directory, "unseen.hwprof");
    const char *const argv[] = {
        heapwise_path(), "c++", form, optimisation, "-g", "-o", path, source, need_program("libunseen.so"), NULL};
    compile_or_skip(argv, "unseen");
    const char *const record[] = {"record", "-q", "-f", "-o", file, "--", path, NULL};
    struct run_result ran = heapwise(record, NULL);
    assert_exit(&ran, 0, form);
    run_result_free(&ran);
    json_t *report = load_report(file, 0);
    static const char *const used[] = {"tree_nodes", "filled_by_library", "kept_by_library", "filled_by_kernel"};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        if (findings_of(report, used[i]))
            fail_msg("%s: a finding on blocks of %s", form, used[i]);
        if (strcmp(form, "--granule=64") || i) /* all of a node is in one granule */
            assert_true(is_used_unseen(report, used[i]));
    }
    static const char *const unused[] = {"touched_by_nobody", "large_and_empty"};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
        if (!findings_of(report, unused[i]))
            fail_msg("%s: no finding on blocks of %s", form, unused[i]);
        assert_false(is_used_unseen(report, unused[i]));
    }
    const char *const text[] = {"report", "--all", file, NULL};
    struct run_result said = heapwise(text, NULL);
    assert_exit(&said, 0, form);
    assert_contains(said.out, "used by code that does not count, too");
    run_result_free(&said);
    json_decref(report);
    free(path);
    free(source);
    free(file);
}

static void test_words_of_8_bytes(void **state)
{
    check("--granule=8", "-O2");
}

static void test_words_of_4_bytes(void **state)
{
    check("--granule=4", "-O0");
}

static void test_granules(void **state)
{
    check("--granule=64", "-O1");
}

/* By the type: structs of libraries that are linked statically, and count as their module does. */
static void test_fields_of_library_types(void **state)
{
    char *path = join_path(test_directory, "unseen-fields"), *source = join_path(TEST_SOURCES, "programs/unseen.cpp"),
         *file = join_path(test_directory, "unseen-fields.hwprof");
    const char *const argv[] = {heapwise_path(),
                                "c++",
                                "--fields",
                                "-O2",
                                "-g",
                                "-static-libstdc++",
                                "-o",
                                path,
                                source,
                                need_program("libunseen.so"),
                                NULL};
    compile_or_skip(argv, "unseen-fields");
    const char *const record[] = {"record", "-q", "-f", "-o", file, "--", path, NULL};
    struct run_result ran = heapwise(record, NULL);
    assert_exit(&ran, 0, "fields");
    run_result_free(&ran);
    json_t *report = load_report(file, 0);
    size_t i, k;
    json_t *structure, *field;
    bool found = false;
    json_array_foreach(json_object_get(report, "fields"), i, structure)
    {
        if (strncmp(json_text(structure, "struct"), "std::_Rb_tree_node<", 19) != 0)
            continue;
        found = true;
        json_array_foreach(json_object_get(structure, "fields"), k, field)
            assert_true(json_is_true(json_object_get(field, "used_by_uncounted_code")));
    }
    assert_true(found);
    /* Fields that the kernel fills are used; those that nobody knows are not. */
    json_t *finding;
    bool packet = false, idle = false;
    json_array_foreach(json_object_get(report, "findings"), i, finding)
    {
        packet |= !strncmp(json_text(finding, "title"), "packet: fields are never", 24);
        idle |= !strncmp(json_text(finding, "title"), "idle: fields are never", 22);
    }
    assert_false(packet);
    assert_true(idle);
    json_decref(report);
    free(path);
    free(source);
    free(file);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_words_of_8_bytes),
               cmocka_unit_test(test_words_of_4_bytes), cmocka_unit_test(test_granules),
               cmocka_unit_test(test_fields_of_library_types))
