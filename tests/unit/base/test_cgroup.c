/* test_cgroup.c - limits of cgroups, v1 and v2, read from a directory that the test fills. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup.c"
#include "base/sys.c"

#define MIB ((uint64_t)1 << 20)

static char *place; /* of one test */

static void make(const char *directory)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", place, directory);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* %s in TEXT is the directory of the test. */
static void put(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (; *text; text++) {
        if (text[0] == '%' && text[1] == 's') {
            fputs(place, file);
            text++;
        } else
            fputc(*text, file);
    }
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    place = make_directory();
    make("tree");
    make("proc");
    return 0;
}

static int end(void **state)
{
    remove_directory(place);
    return 0;
}

static struct hw_cgroup *find(void)
{
    static struct hw_cgroup cgroup;
    char proc[1024];
    snprintf(proc, sizeof proc, "%s/proc", place);
    return hw_cgroup_find(&cgroup, proc) ? &cgroup : NULL;
}

static struct hw_cgroup_memory memory_of(struct hw_cgroup *cgroup, unsigned from)
{
    struct hw_cgroup_memory memory;
    assert_non_null(cgroup);
    assert_true(hw_cgroup_read(cgroup, from, &memory));
    return memory;
}

static void make_second(const char *group)
{
    char line[200];
    snprintf(line, sizeof line, "1:name=systemd:/x\n0::%s\n", group);
    put("proc/cgroup", line);
    put("proc/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                          "30 25 0:26 / %s/tree rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
}

/* The nearest limit counts: here that of the cgroup around it. */
static void test_second(void **state)
{
    uint64_t kills = 99;
    make_second("/a/b");
    make("tree/a");
    make("tree/a/b");
    put("tree/a/b/memory.current", "41943040\n");
    put("tree/a/b/memory.peak", "52428800\n");
    put("tree/a/b/memory.max", "104857600\n");
    put("tree/a/b/memory.high", "max\n");
    put("tree/a/b/memory.events", "low 0\nhigh 7\nmax 8\noom 3\noom_kill 2\noom_group_kill 0\n");
    put("tree/a/memory.current", "83886080\n");
    put("tree/a/memory.max", "94371840\n");
    struct hw_cgroup *cgroup = find();
    struct hw_cgroup_memory memory = memory_of(cgroup, 0);
    assert_true(cgroup->second);
    assert_int_equal(memory.bytes, 40 * MIB);
    assert_int_equal(memory.peak, 50 * MIB);
    assert_int_equal(memory.limit, 90 * MIB);
    assert_int_equal(memory.used, 80 * MIB);
    assert_true(memory.around && !memory.high);
    assert_true(hw_cgroup_oom_kills(cgroup, &kills));
    assert_int_equal(kills, 2);
    /* memory.high of the own one is nearer. */
    put("tree/a/b/memory.high", "44040192\n");
    memory = memory_of(cgroup, 0);
    assert_int_equal(memory.limit, 42 * MIB);
    assert_true(memory.high && !memory.around);
    /* Files that can be dropped count only from a share on. */
    put("tree/a/b/memory.stat", "anon 1\nfile 2\ninactive_file 20971520\nactive_file 3\n");
    assert_int_equal(memory_of(cgroup, 99).used, 40 * MIB);
    memory = memory_of(cgroup, 90);
    assert_int_equal(memory.limit, 90 * MIB);
    assert_int_equal(memory.used, 80 * MIB);
}

static void test_no_limit(void **state)
{
    make_second("/");
    put("tree/memory.current", "41943040\n");
    put("tree/memory.max", "max\n");
    struct hw_cgroup *cgroup = find();
    assert_int_equal(memory_of(cgroup, 0).limit, 0);
    uint64_t kills;
    assert_false(hw_cgroup_oom_kills(cgroup, &kills)); /* no such file */
    put("tree/memory.max", "0\n");                     /* nothing may be used */
    put("tree/memory.current", "0\n");
    assert_int_equal(memory_of(cgroup, 0).limit, 0);
}

/* With other controllers at one place; the root's limit is the greatest multiple of a page. */
static void test_first(void **state)
{
    uint64_t kills = 99;
    put("proc/cgroup", "5:freezer:/x\n4:cpu,memory:/docker/abc\n0::/other\n");
    put("proc/mountinfo", "31 23 0:28 / /nowhere rw shared:9 - cgroup cgroup rw,freezer\n"
                          "32 23 0:29 / %s/tree rw shared:9 - cgroup cgroup rw,cpu,memory\n");
    make("tree/docker");
    make("tree/docker/abc");
    put("tree/memory.limit_in_bytes", "9223372036854771712\n");
    put("tree/memory.usage_in_bytes", "943718400\n");
    put("tree/docker/memory.limit_in_bytes", "9223372036854771712\n");
    put("tree/docker/abc/memory.usage_in_bytes", "94371840\n");
    put("tree/docker/abc/memory.max_usage_in_bytes", "99614720\n");
    put("tree/docker/abc/memory.limit_in_bytes", "104857600\n");
    put("tree/docker/abc/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\n");
    put("tree/docker/abc/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    struct hw_cgroup *cgroup = find();
    const struct hw_cgroup_memory memory = memory_of(cgroup, 90);
    assert_false(cgroup->second);
    assert_int_equal(memory.bytes, 90 * MIB);
    assert_int_equal(memory.peak, 95 * MIB);
    assert_int_equal(memory.limit, 100 * MIB);
    assert_int_equal(memory.used, 80 * MIB);
    assert_true(hw_cgroup_oom_kills(cgroup, &kills));
    assert_int_equal(kills, 4);
}

/* A container without a namespace of cgroups: a part of the tree is mounted. */
static void test_part_of_the_tree(void **state)
{
    put("proc/cgroup", "4:memory:/docker/abc\n");
    put("proc/mountinfo", "32 23 0:29 /docker/abc %s/tree ro - cgroup cgroup rw,memory\n");
    put("tree/memory.usage_in_bytes", "1048576\n");
    put("tree/memory.limit_in_bytes", "2097152\n");
    assert_int_equal(memory_of(find(), 0).limit, 2 * MIB);
    put("proc/cgroup", "4:memory:/docker/abcdef\n"); /* not below it: what is mounted is the best there is */
    assert_int_equal(memory_of(find(), 0).limit, 2 * MIB);
}

static void test_none(void **state)
{
    struct hw_cgroup_memory memory;
    assert_null(find()); /* no files */
    put("proc/cgroup", "3:cpu:/\n");
    put("proc/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    assert_null(find()); /* no memory controller */
    put("proc/cgroup", "0::/../elsewhere\n");
    put("proc/mountinfo", "30 25 0:26 / %s/tree rw - cgroup2 cgroup2 rw\n");
    assert_null(find()); /* beyond what can be seen */
    put("proc/cgroup", "0::/gone\n");
    struct hw_cgroup *cgroup = find();
    assert_non_null(cgroup);
    assert_false(hw_cgroup_read(cgroup, 0, &memory));
}

/* This machine's own, whatever it is. */
static void test_own(void **state)
{
    static struct hw_cgroup cgroup;
    struct hw_cgroup_memory memory;
    if (hw_cgroup_find(&cgroup, "/proc/self") && hw_cgroup_read(&cgroup, 100, &memory))
        assert_true(memory.bytes > 0 || memory.limit == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

TEST_LIST(TEST(test_second), TEST(test_no_limit), TEST(test_first), TEST(test_part_of_the_tree), TEST(test_none),
          TEST(test_own))
