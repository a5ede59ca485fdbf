/* test_profile_pack.c - packed extents: the schema, chunks by themselves, newer versions, damage. */
#include "support/check.h"
#include "test_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"
#include "profile/profile.h"
#include "profile/container/write.h"
#include "profile_writer.h"

/* ---- the schema ---- */

/* Tags are what files of all versions rely on: unique, and each word of an entry is covered whole or not at all. */
static void test_schema(void **state)
{
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++) {
        const struct hw_section_rule *rule = hw_section_rule(type);
        size_t count;
        const struct hw_pack_field *fields = hw_pack_fields(type, &count), *field;
        unsigned char covered[2048] = {0};
        struct hw_pack_field found;
        if (!fields) {
            if (rule && type != HW_SECTION_DIRECTORY && type != HW_SECTION_PROCESS && type != HW_SECTION_STRINGS &&
                type != HW_SECTION_FUNCTIONS)
                fail_msg("no member of the %s section has a tag", rule->name);
            continue;
        }
        assert_non_null(rule);
        assert_true(rule->size <= sizeof covered && rule->size % 8 == 0);
        for (field = fields; field < fields + count; field++) {
            assert_true(field->tag > 0 && field->tag < HW_PACK_WORD);
            assert_true(field->width == 2 || field->width == 4 || field->width == 8);
            assert_true(field->offset + field->width <= rule->size);
            for (size_t i = 0; i < field->width; i++)
                assert_int_equal(covered[field->offset + i]++, 0);
            for (const struct hw_pack_field *other = fields; other < field; other++)
                assert_int_not_equal(other->tag, field->tag);
            assert_true(hw_pack_field(type, field->tag, &found) && found.offset == field->offset);
            /* What it refers to stands before it. */
            for (int i = 0; i < 2; i++) {
                bool before = field->reference[i] == 0;
                for (const struct hw_pack_field *other = fields; other < field; other++)
                    before |= other->tag == field->reference[i];
                assert_true(before);
            }
            assert_int_equal(field->reference[0] != 0, field->predictor >= HW_PACK_FIELD);
            assert_int_equal(field->reference[1] != 0, field->predictor > HW_PACK_FIELD);
        }
        for (size_t word = 0; word < rule->size; word += 8)
            for (size_t i = 1; i < 8; i++)
                assert_int_equal(covered[word + i], covered[word]);
        assert_false(hw_pack_field(type, 0, &found));
        assert_false(hw_pack_field(type, HW_PACK_WORD - 1, &found));
        assert_true(hw_pack_field(type, HW_PACK_WORD + 3, &found) && found.offset == 24 && found.width == 8);
    }
}

/* Some numbers that may never change: files exist that have them. */
static void test_tags(void **state)
{
    static const struct {
        uint32_t type;
        uint16_t tag, offset;
    } fixed[] = {
        {HW_SECTION_MAPS, 1, offsetof(struct hw_map_entry, start)},
        {HW_SECTION_STACKS, 1, offsetof(struct hw_stack_node, pc)},
        {HW_SECTION_STACKS, 3, offsetof(struct hw_stack_node, parent)},
        {HW_SECTION_CONTEXTS, 4, offsetof(struct hw_context_entry, first_tick)},
        {HW_SECTION_MIBS, 4, offsetof(struct hw_mib, allocations)},
        {HW_SECTION_MIBS, 10, offsetof(struct hw_mib, last_alloc_tick)},
        {HW_SECTION_MIBS, 21, offsetof(struct hw_mib, frees)},
        {HW_SECTION_MIBS, 38, offsetof(struct hw_mib, inherited_freed_bytes)},
        {HW_SECTION_THREADS, 16, offsetof(struct hw_thread_entry, incomplete_walks)},
        {HW_SECTION_ACCESS, 3, offsetof(struct hw_access, type)},
        {HW_SECTION_ACCESS_LIVE, 28, offsetof(struct hw_access, saturated_cells)},
        {HW_SECTION_HISTOGRAM, 3, offsetof(struct hw_histogram, saturated)},
        {HW_SECTION_FRAMES, 10, offsetof(struct hw_symbol_frame, reserved0)},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        struct hw_pack_field field;
        assert_true(hw_pack_field(fixed[i].type, fixed[i].tag, &field));
        assert_int_equal(field.offset, fixed[i].offset);
    }
}

/* ---- the documentation ---- */

/* Every line "    @0000  01 00 …" is what the histogram of the sample is packed to, and all of it is there. */
static void test_documentation(void **state)
{
    char line[1024];
    FILE *document = fopen(TEST_SOURCES "/../docs/development/profile-format.md", "r");
    assert_non_null(document);
    struct sample sample = sample_new();
    const size_t histogram = sample_add_accesses(&sample).histogram;
    size_t size, expected = 0;
    unsigned char *packed =
        hw_pack(HW_SECTION_HISTOGRAM, sizeof(struct hw_histogram), image_data(&sample.image, histogram),
                2 * sizeof(struct hw_histogram), 0, false, &size);
    assert_non_null(packed);
    while (fgets(line, sizeof line, document)) {
        size_t offset;
        int read = 0;
        unsigned byte;
        if (sscanf(line, "    @%4zx  %n", &offset, &read) != 1 || read != 11)
            continue;
        assert_int_equal(offset, expected);
        for (const char *next = line + read; sscanf(next, "%2x%n", &byte, &read) == 1 && read == 2; next += 3) {
            if (offset >= size || packed[offset] != byte)
                fail_msg("docs/development/profile-format.md is wrong at byte %zx: %s", offset, line);
            offset++;
            if (next[2] != ' ' || next[3] == ' ')
                break;
        }
        expected = offset;
    }
    assert_int_equal(expected, size);
    fclose(document);
    free(packed);
    image_free(&sample.image);
}

/* ---- an extent by itself ---- */

/* An extent in memory as if it were the file. */
struct lone {
    int fd;
    struct hw_extent extent;
};

static struct lone lone_new(uint32_t type, uint32_t entry_size, const void *bytes, size_t size, uint64_t entries)
{
    struct hw_error error = {""};
    struct lone lone = {.fd = hw_container_open_bytes(bytes, size, "test", &error)};
    assert_true(lone.fd >= 0);
    lone.extent = (struct hw_extent){
        .entry = {.type = type,
                  .flags = HW_SECTION_PACKED,
                  .used = size,
                  .capacity = size,
                  .entry_size = entry_size,
                  .entries = entries},
        .available = size,
    };
    return lone;
}

/* Unpacks all of it into entries of SIZE bytes. */
static enum hw_packed_outcome lone_read(struct lone *lone, void *target, size_t size)
{
    struct hw_packed packed;
    enum hw_packed_outcome outcome = hw_packed_open(&packed, lone->fd, &lone->extent);
    for (size_t i = 0; outcome == HW_PACKED_GOOD && i < packed.header.chunk_count; i++)
        outcome = hw_packed_read(&packed, i, (char *)target + i * packed.header.chunk_entries * size, size);
    hw_packed_close(&packed);
    return outcome;
}

static enum hw_packed_outcome outcome_of(uint32_t type, uint32_t entry_size, const void *bytes, size_t size,
                                         uint64_t entries)
{
    struct lone lone = lone_new(type, entry_size, bytes, size, entries);
    char *target = calloc(entries + 1, entry_size);
    assert_non_null(target);
    const enum hw_packed_outcome outcome = lone_read(&lone, target, entry_size);
    free(target);
    close(lone.fd);
    return outcome;
}

static void fill_mibs(struct hw_mib *mibs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mibs[i] = sample_mib((uint32_t)i);
        mibs[i].allocations = mibs[i].samples = i * i;
        mibs[i].frees = i * i / 2;
        mibs[i].live_blocks = (int64_t)(mibs[i].allocations - mibs[i].frees);
        mibs[i].size_min = 1 + i % 7;
        mibs[i].size_max = 100 + i % 13;
        mibs[i].bytes = 50 * i * i;
        mibs[i].last_alloc_tick = 1000000 * i + i % 1001;
        mibs[i].live_bytes = -(int64_t)i;
    }
}

/* Entries with fields behind those that are known: they come back whole, or cut to what is known. */
static void test_longer_entries(void **state)
{
    enum { COUNT = 5000, LONGER = sizeof(struct hw_mib) + 24 };
    struct hw_mib *mibs = calloc(COUNT, sizeof *mibs), *cut = calloc(COUNT, sizeof *cut);
    char *longer = calloc(COUNT, LONGER), *again = calloc(COUNT, LONGER);
    size_t size;
    fill_mibs(mibs, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(longer + i * LONGER, &mibs[i], sizeof *mibs);
        memset(longer + i * LONGER + sizeof *mibs, (int)(i % 251), LONGER - sizeof *mibs);
    }
    for (int level = 0; level < 6; level += 5) {
        unsigned char *packed = hw_pack(HW_SECTION_MIBS, LONGER, longer, (size_t)COUNT * LONGER, level, false, &size);
        assert_non_null(packed);
        assert_true(size < (size_t)COUNT * LONGER / 4);
        struct lone lone = lone_new(HW_SECTION_MIBS, LONGER, packed, size, COUNT);
        assert_int_equal(lone_read(&lone, again, LONGER), HW_PACKED_GOOD);
        assert_memory_equal(again, longer, (size_t)COUNT * LONGER);
        assert_int_equal(lone_read(&lone, cut, sizeof *cut), HW_PACKED_GOOD);
        assert_memory_equal(cut, mibs, COUNT * sizeof *cut);
        close(lone.fd);
        free(packed);
    }
    free(longer);
    free(again);
    free(cut);
    free(mibs);
}

/* Entries of older versions, which lack the last fields of today's: nothing behind them is read, and they come back. */
static void test_shorter_entries(void **state)
{
    enum { COUNT = 1000 };
    static const struct {
        uint32_t type, size, least;
    } sections[] = {
#define HW_SECTION(number, name, entry, size, least, ...) {number, size, least},
#include "profile/sections.def"
    };
    size_t tried = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const uint32_t least = sections[i].least;
        size_t size;
        if (least == sections[i].size || sections[i].type == HW_SECTION_PROCESS) /* which is never packed */
            continue;
        unsigned char *shorter = malloc((size_t)COUNT * least), *again = calloc(COUNT, least);
        assert_non_null(shorter);
        assert_non_null(again);
        for (size_t k = 0; k < (size_t)COUNT * least; k++)
            shorter[k] = (unsigned char)(k % 8 > 1 ? 0 : k % least + k / least);
        unsigned char *packed = hw_pack(sections[i].type, least, shorter, (size_t)COUNT * least, 3, false, &size);
        assert_non_null(packed);
        struct lone lone = lone_new(sections[i].type, least, packed, size, COUNT);
        assert_int_equal(lone_read(&lone, again, least), HW_PACKED_GOOD);
        assert_memory_equal(again, shorter, (size_t)COUNT * least);
        close(lone.fd);
        free(packed);
        free(shorter);
        free(again);
        tried++;
    }
    assert_true(tried >= 2);
}

/* What cannot be packed, or is not worth it. */
static void test_not_packed(void **state)
{
    static const unsigned char bytes[4096];
    uint64_t noise[64];
    size_t size;
    for (size_t i = 0; i < 64; i++)
        noise[i] = XXH64(&i, sizeof i, 1);
    assert_null(hw_pack(HW_SECTION_PROCESS, 344, bytes, 344, 3, false, &size));
    assert_int_equal(size, SIZE_MAX);
    assert_null(hw_pack(HW_SECTION_FUNCTIONS, 24, bytes, 2400, 3, false, &size));
    assert_null(hw_pack(1000, 8, bytes, 800, 3, false, &size));
    assert_null(hw_pack(HW_SECTION_MIBS, 256, bytes, 300, 3, false, &size));
    assert_null(hw_pack(HW_SECTION_MIBS, 248, bytes, 2480, 3, false, &size));
    assert_null(hw_pack(HW_SECTION_STACKS, 16, noise, sizeof noise, 3, false, &size));
    assert_int_equal(size, SIZE_MAX);
}

/* Nothing unpacks to more than so many times itself: a million empty entries leave a file that can be told from a
 * bomb. */
static void test_ratio(void **state)
{
    const size_t bytes = 64u << 20;
    void *empty = calloc(1, bytes);
    size_t size;
    assert_non_null(empty);
    unsigned char *packed = hw_pack(HW_SECTION_MIBS, 256, empty, bytes, 3, false, &size);
    assert_non_null(packed);
    assert_int_equal(size, bytes / HW_PACK_RATIO_MOST);
    assert_int_equal(outcome_of(HW_SECTION_MIBS, 256, packed, size, bytes / 256), HW_PACKED_GOOD);
    free(packed);
    free(empty);
}

/* ---- hostile extents ---- */

/* An extent of one chunk, put together by hand: COLUMNS as they are. */
static unsigned char *extent_new(const void *columns, size_t size, uint32_t raw_size, uint32_t entries, size_t *total)
{
    struct hw_packed_header header = {.coding = HW_PACK_CODING, .chunk_entries = entries, .chunk_count = 1};
    struct hw_packed_chunk chunk = {
        .offset = sizeof header + sizeof chunk, .size = (uint32_t)size, .raw_size = raw_size};
    unsigned char *bytes = calloc(1, chunk.offset + size + 1);
    assert_non_null(bytes);
    *total = chunk.offset + size;
    chunk.checksum = XXH64(columns, size, 0);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, &chunk, sizeof chunk);
    if (size)
        memcpy(bytes + chunk.offset, columns, size);
    header.checksum = XXH64(bytes, chunk.offset, 0);
    memcpy(bytes, &header, sizeof header);
    return bytes;
}

static enum hw_packed_outcome columns_outcome(const void *columns, size_t size, uint32_t raw_size, uint32_t entries)
{
    size_t total;
    unsigned char *bytes = extent_new(columns, size, raw_size, entries, &total);
    const enum hw_packed_outcome outcome = outcome_of(HW_SECTION_STACKS, 16, bytes, total, entries);
    free(bytes);
    return outcome;
}

/* One column of four entries. */
static enum hw_packed_outcome column_outcome(struct hw_packed_column column, const void *payload, size_t size)
{
    unsigned char bytes[64] = {0};
    memcpy(bytes, &column, sizeof column);
    memcpy(bytes + sizeof column, payload, size);
    return columns_outcome(bytes, sizeof column + size, (uint32_t)(sizeof column + size), 4);
}

static void test_columns(void **state)
{
    static const unsigned char ones[40] = {1, 1, 1, 1, 1, 1, 1, 1}, long_lengths[40] = {0x99, 0x99};
    const struct hw_packed_column good = {.tag = 1, .length = 1, .size = 4};
    struct hw_packed_column column = good;
    assert_int_equal(column_outcome(good, ones, 4), HW_PACKED_GOOD);
    assert_int_equal(columns_outcome(NULL, 0, 0, 4), HW_PACKED_GOOD); /* no column: all is 0 */

    column.size = 5; /* reaches behind the end */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column.size = UINT32_MAX;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column.size = 3; /* then there is half a column more */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column = good;
    column.length = 9;
    column.size = 36;
    assert_int_equal(column_outcome(column, ones, 36), HW_PACKED_DAMAGED);
    column.length = HW_PACK_VARIED; /* 1, 0, 1, 0 */
    column.size = 4;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_GOOD);
    column.size = 5;
    assert_int_equal(column_outcome(column, ones, 5), HW_PACKED_DAMAGED);
    column.size = 1;
    assert_int_equal(column_outcome(column, ones, 1), HW_PACKED_DAMAGED);
    column.size = 2 + 36;
    assert_int_equal(column_outcome(column, long_lengths, 38), HW_PACKED_DAMAGED);

    /* A way of predicting that is not known, in a column that is, and in one that is not. */
    column = good;
    column.predictor = HW_PACK_PRODUCT + 1;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_NEWER);
    column.tag = 1000;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_GOOD);
    column = good;
    column.predictor = HW_PACK_FIELD; /* refers to tag 0 */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column.reference[0] = HW_PACK_WORD + 2; /* behind the entry */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column.reference[0] = HW_PACK_WORD + 1;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_GOOD);
    column.reference[0] = 1; /* itself: 0 so far */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_GOOD);
    column.predictor = HW_PACK_SUM;
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_DAMAGED);
    column = good;
    column.tag = 0xffff; /* a word far behind the entry: of a newer version */
    assert_int_equal(column_outcome(column, ones, 4), HW_PACKED_GOOD);

    /* Not compressed, compressed to nothing, something else. */
    assert_int_equal(columns_outcome(ones, 8, 4, 4), HW_PACKED_DAMAGED);
    assert_int_equal(columns_outcome(ones, 8, 100, 4), HW_PACKED_DAMAGED);
    assert_int_equal(columns_outcome(ones, 8, UINT32_MAX, 4), HW_PACKED_DAMAGED);
}

static void test_index(void **state)
{
    static const unsigned char bytes[16];
    size_t total;
    for (int what = 0; what < 9; what++) {
        unsigned char *extent = extent_new(bytes, 0, 0, 4, &total);
        struct hw_packed_header *header = (void *)extent;
        struct hw_packed_chunk *chunk = (void *)(extent + sizeof *header);
        uint64_t entries = 4;
        header->coding += what == 0;
        header->chunk_entries -= what == 1 ? header->chunk_entries : 0;
        header->chunk_count += what == 2;
        header->chunk_count = what == 3 ? UINT32_MAX : header->chunk_count;
        header->chunk_entries = what == 4 ? UINT32_MAX : header->chunk_entries;
        chunk->offset -= what == 5 ? 8 : 0; /* into the index */
        chunk->offset = what == 6 ? UINT64_MAX : chunk->offset;
        chunk->size = what == 7 ? UINT32_MAX : chunk->size;
        entries = what == 8 ? 5 : entries;
        header->checksum = 0;
        header->checksum = XXH64(extent, total, 0);
        assert_int_equal(outcome_of(HW_SECTION_STACKS, 16, extent, total, entries),
                         what == 0 ? HW_PACKED_NEWER : HW_PACKED_DAMAGED);
        free(extent);
    }
    unsigned char *extent = extent_new(bytes, 0, 0, 4, &total);
    struct lone lone = lone_new(HW_SECTION_STACKS, 16, extent, total, 4);
    unsigned char target[64] = {0};
    for (lone.extent.available = 0; lone.extent.available < total; lone.extent.available++)
        assert_int_equal(lone_read(&lone, target, 16), HW_PACKED_CUT);
    assert_int_equal(lone_read(&lone, target, 16), HW_PACKED_GOOD);
    close(lone.fd);
    free(extent);
}

/* ---- files ---- */

/* A file with more than one chunk of MIBS, CONTEXTS and STACKS. Node i has the parent i - 1, context i the leaf i. */
enum { MANY = 9000 };

static unsigned char *many_new(const struct hw_write_options *options, size_t *size)
{
    struct hw_stack_node *nodes = calloc(MANY, sizeof *nodes);
    struct hw_context_entry *contexts = calloc(MANY, sizeof *contexts);
    struct hw_mib *mibs = calloc(MANY, sizeof *mibs);
    struct hw_process_info process = sample_process();
    struct hw_map_entry map = {.start = 0x400000, .end = 0x500000, .path = SAMPLE_EXECUTABLE, .flags = HW_MAP_MAIN};
    struct hw_error error = {""};
    fill_mibs(mibs, MANY);
    for (uint32_t i = 1; i < MANY; i++) {
        nodes[i] = (struct hw_stack_node){.pc = 0x400000 + i * 16, .parent = i % 100 ? i - 1 : 0};
        contexts[i] = (struct hw_context_entry){.leaf = i, .depth = (uint16_t)(i % 100 + (i >= 100)), .first_tick = i};
    }
    nodes[0].map = HW_NONE;
    const struct hw_section_source sections[] = {
        {HW_SECTION_PROCESS, sizeof process, 1, &process, sizeof process},
        {HW_SECTION_STRINGS, 1, 1, SAMPLE_STRINGS, sizeof SAMPLE_STRINGS},
        {HW_SECTION_MAPS, sizeof map, 1, &map, sizeof map},
        {HW_SECTION_STACKS, sizeof *nodes, 1, nodes, MANY * sizeof *nodes},
        {HW_SECTION_CONTEXTS, sizeof *contexts, 1, contexts, MANY * sizeof *contexts},
        {HW_SECTION_MIBS, sizeof *mibs, 1, mibs, MANY * sizeof *mibs},
    };
    unsigned char *bytes = hw_sections_serialize(sections, 6, options, size, &error);
    assert_non_null(bytes);
    free(nodes);
    free(contexts);
    free(mibs);
    return bytes;
}

static struct hw_section *section_of(unsigned char *bytes, uint32_t type)
{
    struct hw_section *directory = (void *)(bytes + sizeof(struct hw_file_header));
    for (size_t i = 0; i < 60; i++)
        if (directory[i].type == type)
            return &directory[i];
    fail();
    return NULL;
}

static void seal_page(unsigned char *bytes)
{
    struct hw_file_header *header = (void *)bytes;
    header->checksum = 0;
    header->checksum = XXH64(bytes, HW_FILE_PAGE, 0);
}

/* Any entries, also across chunks, without the rest. */
static void test_some_entries(void **state)
{
    static const struct hw_write_options ways[] = {{0}, {.packed = true}, {.packed = true, .zstd_level = 3}};
    static const size_t ranges[][2] = {{0, 1}, {4095, 2}, {4096, 1}, {17, 8900}, {MANY - 1, 1}, {MANY, 0}, {0, MANY}};
    for (size_t way = 0; way < 3; way++) {
        struct hw_arena arena = {0};
        struct hw_problems problems = {.arena = &arena};
        struct hw_container container = {.path = "test", .problems = &problems};
        struct hw_error error = {""};
        struct hw_mib *mibs = calloc(MANY, sizeof *mibs), *some = calloc(MANY, sizeof *some);
        char text[16];
        size_t size;
        unsigned char *bytes = many_new(&ways[way], &size);
        fill_mibs(mibs, MANY);
        container.fd = hw_container_open_bytes(bytes, size, "test", &error);
        assert_true(hw_container_load(&container, &error));
        struct hw_section_reader *reader = hw_section_open(&container, HW_SECTION_MIBS, &error);
        assert_int_equal(hw_section_entries(reader), MANY);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            memset(some, 0xff, MANY * sizeof *some);
            assert_true(hw_section_read(reader, ranges[i][0], ranges[i][1], some, &error));
            assert_memory_equal(some, mibs + ranges[i][0], ranges[i][1] * sizeof *some);
        }
        assert_false(hw_section_read(reader, MANY, 1, some, &error));
        assert_string_equal(error.message,
                            "cannot read the numbers of each place of 'test': there are fewer entries than requested");
        assert_false(hw_section_read(reader, UINT64_MAX, 2, some, &error));
        hw_section_close(reader);
        reader = hw_section_open(&container, HW_SECTION_STRINGS, &error);
        assert_true(hw_section_read(reader, SAMPLE_EXECUTABLE, 10, text, &error));
        assert_string_equal(text, "/bin/true");
        hw_section_close(reader);
        reader = hw_section_open(&container, HW_SECTION_NOTES, &error);
        assert_int_equal(hw_section_entries(reader), 0);
        hw_section_close(reader);
        close(container.fd);
        hw_container_free(&container);
        hw_arena_free(&arena);
        free(bytes);
        free(some);
        free(mibs);
    }
}

static bool says(const struct hw_profile *profile, const char *part)
{
    for (size_t i = 0; i < profile->problem_count; i++)
        if (strstr(profile->problems[i], part))
            return true;
    return false;
}

/* One byte wrong in the middle chunk of a section: that chunk is left out, entries behind it keep their index. */
static void test_damaged_chunk(void **state)
{
    const struct hw_write_options options = {.packed = true, .zstd_level = 3};
    static const uint32_t types[] = {HW_SECTION_STACKS, HW_SECTION_CONTEXTS, HW_SECTION_MIBS};
    for (size_t i = 0; i < 3; i++) {
        size_t size;
        unsigned char *bytes = many_new(&options, &size);
        const struct hw_section *entry = section_of(bytes, types[i]);
        const struct hw_packed_header *header = (void *)(bytes + entry->offset);
        const struct hw_packed_chunk *index = (void *)(header + 1);
        assert_int_equal(header->chunk_count, 3);
        bytes[entry->offset + index[1].offset + index[1].size / 2] ^= 0x10;
        struct hw_profile *profile = hw_profile_read_bytes(bytes, size, "test", NULL);
        assert_non_null(profile);
        char sentence[120];
        snprintf(sentence, sizeof sentence, "The file is damaged; lost, in whole or in part: %s.",
                 hw_section_rule(types[i])->name);
        assert_true(says(profile, sentence));
        assert_int_equal(profile->node_count, MANY);
        assert_int_equal(profile->context_entry_count, MANY);
        assert_int_equal(profile->nodes[MANY - 1].pc, 0x400000 + (MANY - 1) * 16);
        uint64_t allocations = 0;
        for (size_t k = 0; k < profile->context_count; k++)
            allocations += profile->contexts[k].allocations;
        uint64_t expected = 0;
        for (uint64_t k = 0; k < MANY; k++)
            expected += types[i] == HW_SECTION_MIBS && k >= 4096 && k < 8192 ? 0 : k * k;
        assert_int_equal(allocations, expected);
        hw_profile_free(profile);
        free(bytes);
    }
}

/* Any single byte wrong, any length: never a crash, and what is wrong is said. */
static void test_any_damage(void **state)
{
    struct sample sample = sample_new();
    struct hw_error error = {""};
    struct memory_file file;
    size_t used;
    sample_add_accesses(&sample);
    image_seal(&sample.image);
    char path[] = "/tmp/heapwise-pack-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && hw_write_all(fd, sample.image.bytes, sample.image.size, 0));
    assert_true(hw_profile_pack(path, 0, &error));
    close(fd);
    const int packed = hw_container_open(path, false, &error);
    unsigned char *bytes = malloc(1 << 20);
    used = (size_t)hw_container_read(packed, bytes, 1 << 20, 0);
    close(packed);
    unlink(path);
    assert_true(used > HW_FILE_PAGE && used < 2 * HW_FILE_PAGE);
    struct hw_section *directory = (void *)(bytes + sizeof(struct hw_file_header));
    for (size_t at = HW_FILE_PAGE; at < used; at++) {
        bool covered = false;
        for (size_t i = 0; i < 60; i++)
            covered |= at >= directory[i].offset && at < directory[i].offset + directory[i].used;
        bytes[at] ^= 0x5a;
        struct hw_profile *profile = hw_profile_read_bytes(bytes, used, "test", &error);
        bytes[at] ^= 0x5a;
        assert_non_null(profile);
        if ((profile->problem_count > 0) != covered)
            fail_msg("byte %zu: %zu problems", at, profile->problem_count);
        hw_profile_free(profile);
    }
    for (size_t at = HW_FILE_PAGE; at < used; at += 7) {
        struct hw_profile *profile = hw_profile_read_bytes(bytes, at, "test", &error);
        assert_true(!profile || says(profile, "cut short"));
        hw_profile_free(profile);
    }
    file = memory_file(bytes, used);
    assert_false(hw_profile_pack("/tmp/heapwise-no-such-file", 3, &error));
    assert_true(hw_profile_close(file.path, HW_EXIT_SIGNAL, 9, 0, 0, &error)); /* had no exit status */
    struct hw_profile *profile = hw_profile_read(file.path, &error);
    assert_non_null(profile);
    assert_int_equal(profile->process.exit_kind, HW_EXIT_SIGNAL);
    assert_int_equal(profile->problem_count, 0);
    hw_profile_free(profile);
    close(file.fd);
    free(bytes);
    image_free(&sample.image);
}

/* Directory entries that cannot be. */
static void test_directory(void **state)
{
    static const struct {
        uint32_t type;
        uint16_t flags;
        uint64_t entries;
        const char *part;
    } cases[] = {
        {HW_SECTION_MIBS, HW_SECTION_PACKED, 1ull << 40, "claims more than it can hold"},
        {HW_SECTION_MIBS, HW_SECTION_PACKED, UINT64_MAX, "claims more than it can hold"},
        {HW_SECTION_MIBS, HW_SECTION_PACKED | 0x100, MANY, "can only be read by a newer heapwise"},
        {HW_SECTION_MIBS, HW_SECTION_PACKED | 2, MANY, NULL}, /* a mark that need not be known */
        {HW_SECTION_PROCESS, HW_SECTION_PACKED, 1, "is compressed, which it must not be"},
        {HW_SECTION_MIBS, HW_SECTION_PACKED, MANY - 1, NULL}, /* the same chunks, the last one shorter */
        {HW_SECTION_MIBS, HW_SECTION_PACKED, 4, "damaged; lost"},
    };
    const struct hw_write_options options = {.packed = true, .zstd_level = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        unsigned char *bytes = many_new(&options, &size);
        struct hw_section *entry = section_of(bytes, cases[i].type);
        entry->flags = cases[i].flags;
        entry->entries = cases[i].entries;
        seal_page(bytes);
        struct hw_profile *profile = hw_profile_read_bytes(bytes, size, "test", NULL);
        assert_non_null(profile);
        if (cases[i].part && !says(profile, cases[i].part))
            fail_msg("case %zu: %s", i, profile->problem_count ? profile->problems[0] : "no problem");
        hw_profile_free(profile);
        free(bytes);
    }
    size_t size;
    unsigned char *bytes = many_new(&options, &size);
    struct hw_file_header *header = (void *)bytes;
    header->flags &= ~(uint32_t)HW_FILE_SEALED;
    header->checksum = 0;
    struct hw_profile *profile = hw_profile_read_bytes(bytes, size, "test", NULL);
    assert_true(!profile || says(profile, "impossible offset") || says(profile, "is packed, in a file that is not"));
    hw_profile_free(profile);
    free(bytes);
}

/* ---- the next minor version ---- */

/* Appends a column of COUNT entries to a chunk, every number VALUE, of one byte. */
static size_t add_column(unsigned char *columns, size_t at, uint16_t tag, uint8_t predictor, unsigned char value,
                         size_t count)
{
    const struct hw_packed_column column = {.tag = tag, .predictor = predictor, .length = 1, .size = (uint32_t)count};
    memcpy(columns + at, &column, sizeof column);
    memset(columns + at + sizeof column, value, count);
    return at + sizeof column + count;
}

/* A file of version 1.2: sections, columns and ways of coding that are not known, entries with more fields, flags and
 * values of enumerations that are not known. All that is known is read, and nothing is called damage. */
static void test_next_version(void **state)
{
    struct sample sample = sample_new();
    unsigned char columns[256], wide[3 * 48];
    const struct hw_note notes[] = {{4711, SAMPLE_NOTE, 3, 77}};
    size_t at = 0, size;
    /* Contexts with 24 bytes an entry: tags 1, 2 and 4 are known, 99 and a word at offset 16 are not. */
    at = add_column(columns, at, 99, 200, 5, 4);
    at = add_column(columns, at, 1, HW_PACK_VALUE, 1, 4);
    at = add_column(columns, at, 2, HW_PACK_VALUE, 1, 4);
    at = add_column(columns, at, 4, HW_PACK_PREVIOUS, 20, 4);
    at = add_column(columns, at, HW_PACK_WORD + 2, HW_PACK_VALUE, 7, 4);
    unsigned char *contexts = extent_new(columns, at, (uint32_t)at, 4, &size);
    memset(wide, 0, sizeof wide);
    for (uint64_t i = 0; i < 3; i++) {
        const struct hw_timeline_point point = {100 * i + 100, (int64_t)i, 0, i, 0};
        memcpy(wide + 48 * i, &point, sizeof point);
        memset(wide + 48 * i + sizeof point, 0xaa, 8);
    }
    struct image *image = &sample.image;
    image_header(image)->version_minor = 2;
    image_header(image)->flags |= 1u << 9;
    for (size_t i = 0; i < sizeof image_header(image)->reserved / 8; i++)
        image_header(image)->reserved[i] = i;
    image_section(image, sample.contexts)->type = 1001; /* another section that is not known */
    image_section(image, sample.timeline)->type = 1002;
    image_section(image, sample.notes)->type = 1003;
    const size_t packed = image_add(image, HW_SECTION_CONTEXTS, 24, contexts, size, 0);
    image_section(image, packed)->flags = HW_SECTION_PACKED | 1u << 3;
    image_section(image, packed)->version = 2;
    image_section(image, packed)->entries = 4;
    image_section(image, packed)->reserved1 = 99;
    image_add(image, HW_SECTION_TIMELINE, 48, wide, sizeof wide, 0);
    image_add(image, HW_SECTION_NOTES, sizeof *notes, notes, sizeof notes, 0);
    const size_t unknown = image_add(image, 1004, 0, "whatever", 8, 0);
    image_section(image, unknown)->flags = 0xffff;
    image_seal(image);
    struct hw_profile *profile = hw_profile_read_bytes(image->bytes, image->size, "test", NULL);
    assert_non_null(profile);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s", profile->problems[i]);
    assert_int_equal(profile->header.version_minor, 2);
    assert_int_equal(profile->context_entry_count, 4);
    assert_int_equal(profile->context_entries[3].leaf, 1);
    assert_int_equal(profile->context_entries[3].depth, 1);
    assert_int_equal(profile->context_entries[3].first_tick, 40);
    assert_int_equal(profile->timeline_count, 3);
    assert_int_equal(profile->timeline[2].live_bytes, 2);
    assert_int_equal(profile->note_count, 1);
    assert_int_equal(profile->contexts[0].allocations, 10);
    hw_profile_free(profile);

    /* The next major version is refused. */
    image_header(image)->version_major = 2;
    struct hw_error error = {""};
    assert_null(hw_profile_read_bytes(image->bytes, image->size, "test", &error));
    assert_string_equal(error.message,
                        "'test' has format version 2.2, this heapwise reads versions up to 1.x: use a newer heapwise");
    free(contexts);
    image_free(image);
}

/* Packing a file of the next version loses nothing of it: sections, fields and the version itself. */
static void test_next_version_packed(void **state)
{
    struct sample sample = sample_new();
    struct hw_error error = {""};
    unsigned char wide[40 * 280];
    for (size_t i = 0; i < sizeof wide; i++)
        wide[i] = i % 280 < 256 ? 0 : (unsigned char)i;
    image_section(&sample.image, sample.mibs)->type = 1001;
    image_header(&sample.image)->version_minor = 7;
    image_add(&sample.image, HW_SECTION_MIBS, 280, wide, sizeof wide, 0);
    image_seal(&sample.image);
    char path[] = "/tmp/heapwise-pack-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && hw_write_all(fd, sample.image.bytes, sample.image.size, 0));
    close(fd);
    assert_true(hw_profile_pack(path, 3, &error));
    const int packed = hw_container_open(path, false, &error);
    unlink(path);
    unsigned char *bytes = malloc(1 << 20);
    const size_t size = (size_t)hw_container_read(packed, bytes, 1 << 20, 0);
    assert_int_equal(((struct hw_file_header *)(void *)bytes)->version_minor, 7);
    const struct hw_section *unknown = section_of(bytes, 1001), *mibs = section_of(bytes, HW_SECTION_MIBS);
    assert_int_equal(unknown->flags, 0);
    assert_memory_equal(bytes + unknown->offset, image_data(&sample.image, sample.mibs), 4 * 256);
    assert_int_equal(mibs->flags, HW_SECTION_PACKED);
    assert_int_equal(mibs->entries, 40);
    struct lone lone = lone_new(HW_SECTION_MIBS, 280, bytes + mibs->offset, mibs->used, 40);
    unsigned char again[sizeof wide] = {0};
    assert_int_equal(lone_read(&lone, again, 280), HW_PACKED_GOOD);
    assert_memory_equal(again, wide, sizeof wide);
    assert_true(size < sample.image.size);
    close(lone.fd);
    close(packed);
    free(bytes);
    image_free(&sample.image);
}

/* What cannot be packed is left as it is, with the reason. */
static void test_refusals(void **state)
{
    struct sample sample = sample_new();
    struct hw_error error = {""};
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    assert_false(hw_profile_pack(file.path, 3, &error));
    assert_non_null(strstr(error.message, "it is not sealed"));
    close(file.fd);
    image_seal(&sample.image);
    sample.image.bytes[image_section(&sample.image, sample.mibs)->offset] ^= 1;
    file = memory_file(sample.image.bytes, sample.image.size);
    assert_false(hw_profile_pack(file.path, 3, &error));
    assert_non_null(strstr(error.message, "it is damaged (a checksum is wrong)"));
    close(file.fd);
    image_free(&sample.image);
}

TEST_LIST(cmocka_unit_test(test_schema), cmocka_unit_test(test_tags), cmocka_unit_test(test_documentation),
          cmocka_unit_test(test_longer_entries), cmocka_unit_test(test_shorter_entries),
          cmocka_unit_test(test_not_packed), cmocka_unit_test(test_ratio), cmocka_unit_test(test_columns),
          cmocka_unit_test(test_index), cmocka_unit_test(test_some_entries), cmocka_unit_test(test_damaged_chunk),
          cmocka_unit_test(test_any_damage), cmocka_unit_test(test_directory), cmocka_unit_test(test_next_version),
          cmocka_unit_test(test_next_version_packed), cmocka_unit_test(test_refusals))
