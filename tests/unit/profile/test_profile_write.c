/* test_profile_write.c - tables in memory as a file, and back bit by bit. */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/container/container.h"
#include "profile/profile.h"
#include "profile/container/write.h"
#include "profile_writer.h"

/* Everything that lives as long as one test case. */
struct tables {
    struct hw_arena arena;
    struct hw_problems problems;
    struct hw_container container;
    struct hw_tables tables;
};

static void tables_free(struct tables *tables)
{
    hw_container_free(&tables->container);
    hw_arena_free(&tables->arena);
}

/* Reads a file that must be without fault. */
static void tables_read(struct tables *tables, const void *bytes, size_t size)
{
    struct hw_error error = {""};
    *tables = (struct tables){.problems = {.arena = &tables->arena}};
    tables->container = (struct hw_container){.path = "test", .problems = &tables->problems};
    tables->container.fd = hw_container_open_bytes(bytes, size, "test", &error);
    assert_true(tables->container.fd >= 0);
    const bool fine = hw_tables_read(&tables->container, &tables->arena, &tables->tables, &error);
    close(tables->container.fd);
    if (!fine)
        fail_msg("%s", error.message);
    if (tables->problems.count)
        fail_msg("%s", tables->problems.sentences[0]);
}

static void assert_same_tables(const struct hw_tables *left, const struct hw_tables *right)
{
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++) {
        const struct hw_section_rule *rule = hw_section_rule(type);
        if (!rule)
            continue;
        if (left->of[type].count != right->of[type].count)
            fail_msg("%s: %zu entries, %zu are expected", rule->name, right->of[type].count, left->of[type].count);
        for (size_t i = 0; i < left->of[type].count; i++)
            if (memcmp((const char *)left->of[type].entries + i * rule->size,
                       (const char *)right->of[type].entries + i * rule->size, rule->size) != 0)
                fail_msg("%s: entry %zu differs", rule->name, i);
    }
}

/* ---- random tables ---- */

static uint64_t random_state;

static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Extremes as often as ordinary numbers: whatever is added or subtracted on the way has to come back. */
static uint64_t random_value(void)
{
    static const uint64_t extremes[] = {0,   1,   UINT64_MAX, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MIN,
                                        127, 128, 255,        256,        65535,     65536};
    const uint64_t choice = random64() % 8;
    if (choice < 2)
        return 0;
    if (choice == 2)
        return extremes[random64() % (sizeof extremes / sizeof *extremes)];
    return random64() >> random64() % 64;
}

/* What one table is filled with: constant words, sparse, or wild; reserved places and padding take part. */
static void fill_randomly(struct hw_tables *tables, struct hw_arena *arena, uint32_t type, size_t count)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    const size_t size = count * rule->size;
    const uint64_t sparse = random64() % 4;
    unsigned char *bytes = hw_arena_allocate(arena, count, rule->size);
    assert_non_null(bytes);
    for (size_t at = 0; at < size; at += 8) {
        const uint64_t value = sparse && random64() % (8 * sparse) ? 0 : random_value();
        memcpy(bytes + at, &value, size - at < 8 ? size - at : 8);
    }
    tables->of[type].entries = bytes;
    tables->of[type].count = count;
}

/* ALL: every section that there is; more than one directory has room for. */
static void random_tables(struct hw_tables *tables, struct hw_arena *arena, bool all)
{
    memset(tables, 0, sizeof *tables);
    for (uint32_t type = HW_SECTION_PROCESS; type < HW_SECTION_KNOWN; type++)
        if (hw_section_rule(type) && (all || type == HW_SECTION_PROCESS || random64() % 4))
            fill_randomly(tables, arena, type, type == HW_SECTION_PROCESS ? 1 : 1 + random64() % 300);
}

static void expect_round_trip(const struct hw_tables *tables, const struct hw_write_options *options)
{
    struct hw_error error = {""};
    struct tables again;
    size_t size, second_size;
    unsigned char *bytes = hw_tables_serialize(tables, options, &size, &error);
    if (!bytes)
        fail_msg("%s", error.message);
    unsigned char *second = hw_tables_serialize(tables, options, &second_size, &error);
    assert_int_equal(size, second_size);
    assert_memory_equal(bytes, second, size);
    tables_read(&again, bytes, size);
    assert_true(again.container.sealed);
    assert_int_equal(again.container.header.flags, HW_FILE_SEALED | options->file_flags);
    assert_int_equal(again.container.header.session, options->session);
    assert_same_tables(tables, &again.tables);
    tables_free(&again);
    free(second);
    free(bytes);
}

static void test_random_tables(void **state)
{
    static const struct hw_write_options ways[] = {
        {.file_flags = HW_FILE_EXITED, .session = 12345},
        {.packed = true, .session = 1},
        {.packed = true, .zstd_level = 3},
    };
    random_state = 88172645463325252u;
    for (int round = 0; round < 60; round++) {
        struct hw_arena arena = {0};
        struct hw_tables tables;
        random_tables(&tables, &arena, round == 0);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            expect_round_trip(&tables, &ways[i]);
        hw_arena_free(&arena);
    }
}

/* ---- the container ---- */

static void test_layout(void **state)
{
    struct sample sample = sample_new();
    struct tables tables;
    struct hw_error error = {""};
    size_t size;
    image_seal(&sample.image);
    tables_read(&tables, sample.image.bytes, sample.image.size);
    unsigned char *bytes = hw_tables_serialize(&tables.tables, &(struct hw_write_options){0}, &size, &error);
    assert_non_null(bytes);
    const struct hw_file_header *header = (const void *)bytes;
    const struct hw_section *directory = (const void *)(bytes + sizeof *header);
    assert_int_equal(header->version_minor, HW_FILE_VERSION_MINOR);
    assert_int_equal(header->total_size, size);
    assert_int_equal(header->directory_used, 12);
    assert_int_equal(directory[0].type, HW_SECTION_PROCESS);
    for (size_t i = 0; i < header->directory_used; i++) {
        assert_int_equal(directory[i].offset % HW_FILE_PAGE, 0);
        if (directory[i].type == HW_SECTION_MIBS)
            assert_int_equal(directory[i].offset, header->mib_offset);
        if (directory[i].type == HW_SECTION_MAPS)
            assert_int_equal(directory[i].offset, header->map_offset);
        if (directory[i].type == HW_SECTION_STACKS)
            assert_int_equal(directory[i].offset, header->stack_offset);
    }
    struct hw_profile *profile = hw_profile_read_bytes(bytes, size, "in memory", &error);
    assert_non_null(profile);
    assert_string_equal(profile->path, "in memory");
    assert_true(profile->sealed);
    assert_int_equal(profile->problem_count, 0);
    assert_int_equal(profile->contexts[1].allocations, 1);
    hw_profile_free(profile);
    assert_null(hw_profile_read_bytes(bytes, 100, "in memory", &error));
    assert_string_equal(error.message, "'in memory' is cut short: 100 bytes are left of it, not even the first page");
    free(bytes);
    tables_free(&tables);
    image_free(&sample.image);
}

static void test_too_many_sections(void **state)
{
    struct hw_section_source sections[HW_SECTIONS_MOST + 1];
    struct hw_error error = {""};
    size_t size;
    for (size_t i = 0; i <= HW_SECTIONS_MOST; i++)
        sections[i] = (struct hw_section_source){.type = 100 + (uint32_t)i, .entry_size = 8};
    unsigned char *bytes =
        hw_sections_serialize(sections, HW_SECTIONS_MOST, &(struct hw_write_options){0}, &size, &error);
    assert_non_null(bytes);
    free(bytes);
    assert_null(hw_sections_serialize(sections, HW_SECTIONS_MOST + 1, &(struct hw_write_options){0}, &size, &error));
    assert_string_equal(error.message, "cannot write a profile: it has too many sections");
}

/* ---- files ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/heapwise-write-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void expect_content(const char *path, const char *text)
{
    char read_back[64] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, read_back, sizeof read_back - 1) >= 0);
    close(fd);
    assert_string_equal(read_back, text);
}

static void test_file(void **state)
{
    struct hw_error error = {""};
    struct stat status;
    make_folder();
    assert_true(hw_file_write(in_folder("a"), false, "first", 5, &error));
    expect_content(in_folder("a"), "first");
    assert_false(hw_file_write(in_folder("a"), false, "second", 6, &error));
    assert_non_null(strstr(error.message, "exists already"));
    expect_content(in_folder("a"), "first");
    assert_int_equal(chmod(in_folder("a"), 0640), 0);
    assert_true(hw_file_write(in_folder("a"), true, "second", 6, &error));
    expect_content(in_folder("a"), "second");
    assert_int_equal(stat(in_folder("a"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);

    /* A link stays one, and what it leads to is replaced. A link to nowhere is something that exists. */
    assert_int_equal(symlink("a", in_folder("link")), 0);
    assert_true(hw_file_write(in_folder("link"), true, "third", 5, &error));
    assert_int_equal(lstat(in_folder("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    expect_content(in_folder("a"), "third");
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_false(hw_file_write(in_folder("dangling"), false, "x", 1, &error));

    assert_true(hw_file_write("/dev/null", true, "x", 1, &error));
    assert_false(hw_file_write("/dev/full", true, "x", 1, &error));
    assert_string_equal(error.message, "cannot write '/dev/full': No space left on device");
    assert_false(hw_file_write(in_folder("no/folder"), false, "x", 1, &error));
    assert_non_null(strstr(error.message, "No such file or directory"));

    /* Nothing is left beside them. */
    assert_int_equal(unlink(in_folder("a")), 0);
    assert_int_equal(unlink(in_folder("link")), 0);
    assert_int_equal(unlink(in_folder("dangling")), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST_LIST(cmocka_unit_test(test_random_tables), cmocka_unit_test(test_layout), cmocka_unit_test(test_too_many_sections),
          cmocka_unit_test(test_file))
