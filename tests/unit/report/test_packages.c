/* test_packages.c - which package a file came with, from lists as dpkg has them. */
#include "report/text/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"

static void write_list(const char *directory, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void packages_are_found(void **state)
{
    static const char *const names[] = {
        "libjq1:amd64.list", "jq.list", "libold6:amd64.list", "base.list", "jq.md5sums", ".list", "list",
        "broken.list"};
    char directory[] = "/tmp/heapwise-packages.XXXXXX", path[256];
    assert_non_null(mkdtemp(directory));
    write_list(directory, names[0], "/.\n/usr/lib/x/libjq.so.1.0.4\n/usr/lib/x/libjq.so.1\n");
    write_list(directory, names[1], "/usr/bin\n/usr/bin/jq\n");
    write_list(directory, names[2], "/lib/x/libold.so.6");
    write_list(directory, names[3], "/usr/lib\n/opt/tool\n");
    write_list(directory, names[4], "/usr/bin/sums\n");
    write_list(directory, names[5], "/usr/bin/nameless\n");
    write_list(directory, names[6], "/usr/bin/nameless\n");
    snprintf(path, sizeof path, "%s/%s", directory, names[7]);
    assert_int_equal(mkdir(path, 0700), 0);
    struct hw_package packages[] = {
        {.path = "/lib/x/libjq.so.1"}, {.path = "/usr/lib/x/libjq.so.1.0.4"},
        {.path = "/usr/bin/jq"},       {.path = "/usr/lib/x/libold.so.6"},
        {.path = "/opt/tool"},         {.path = "/usr/opt/tool2"},
        {.path = "/usr/bin/sums"},     {.path = "/usr/bin/nameless"},
        {.path = "/usr/bin/j"},
    };
    static const char *const expected[] = {"libjq1", "libjq1", "jq", "libold6", "base", "", "", "", ""};
    assert_true(hw_packages_find(directory, packages, sizeof packages / sizeof *packages));
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        assert_string_equal(packages[i].name, expected[i]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(directory), 0);
    assert_true(hw_packages_find(directory, packages, sizeof packages / sizeof *packages)); /* another system */
    assert_string_equal(packages[0].name, "libjq1");
}

TEST_LIST(cmocka_unit_test(packages_are_found))
