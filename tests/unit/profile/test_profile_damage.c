/* test_profile_damage.c - the reader on damaged files: cut at every length, flipped, overwritten, led astray.
 *
 * It must never crash or hang, say what is wrong in clear lines, save what can be saved, and, in a sealed file, notice
 * every changed bit that it relies on. Random cases are drawn with a fixed seed. */
#include <stdio.h>

#include "profile/profile.h"
#include "profile_writer.h"
#include "stack_depth.h"
#include "support/check.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void check_line(const char *line)
{
    size_t length = strlen(line);
    assert_true(length > 10 && length < 512);
    for (size_t i = 0; i < length; i++)
        assert_true((unsigned char)line[i] >= ' ');
}

static volatile uint64_t used; /* keeps reads from being optimised away */

static void check_access(const struct hw_profile_accesses *accesses)
{
    const struct hw_profile_access *parts[] = {&accesses->all, &accesses->live};
    for (size_t i = 0; i < 2; i++) {
        assert_true(parts[i]->accesses_min <= parts[i]->accesses_max);
        assert_true(parts[i]->utilization_min <= parts[i]->utilization_max && parts[i]->utilization_max <= 10000);
        assert_true(parts[i]->density_min <= parts[i]->density_max);
        assert_true(parts[i]->lifetime_density_min <= parts[i]->lifetime_density_max);
        assert_true(parts[i]->granules_touched <= parts[i]->granules);
        assert_true(parts[i]->never_accessed <= parts[i]->blocks);
        assert_true(parts[i]->shared_written <= parts[i]->shared_granules);
        assert_true(parts[i]->shared_writers <= parts[i]->shared_written);
    }
}

/* Touches everything that a profile promises to be valid. */
static void exercise(const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->problem_count; i++)
        check_line(profile->problems[i]);
    used += strlen(profile->path) + strlen(profile->executable) + strlen(profile->allocator) +
            strlen(profile->allocator_path) + strlen(profile->options);
    for (size_t i = 0; i < profile->command_count; i++)
        used += strlen(profile->command[i]);
    for (size_t i = 0; i < profile->map_count; i++) {
        assert_true(profile->maps[i].start <= profile->maps[i].end);
        assert_true(profile->maps[i].build_id_size <= sizeof profile->maps[i].build_id);
        used += strlen(hw_profile_string(profile, profile->maps[i].path));
    }
    assert_true(profile->node_count > 0 && profile->context_entry_count > 0);
    for (size_t i = 0; i < profile->node_count; i++) {
        assert_true(i == 0 ? profile->nodes[i].parent == 0 : profile->nodes[i].parent < i);
        assert_true(profile->nodes[i].map == HW_NONE || profile->nodes[i].map < profile->map_count);
    }
    for (size_t i = 0; i < profile->context_entry_count; i++)
        assert_true(profile->context_entries[i].leaf < profile->node_count);
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        assert_true(i == 0 || context->id > profile->contexts[i - 1].id);
        assert_true(context->id < profile->context_entry_count);
        assert_true(context->size_min <= context->size_max);
        assert_true(context->lifetime_min_ns <= context->lifetime_max_ns);
        assert_int_equal(stack_depth(profile, context->leaf), context->depth);
        assert_true((context->access != NULL) == profile->access_counted);
        if (context->access)
            check_access(context->access);
    }
    check_access(&profile->access);
    for (size_t i = 0; i < profile->global_count; i++)
        assert_true(profile->globals[i].map == HW_NONE || profile->globals[i].map < profile->map_count);
    for (size_t i = 0; i < profile->histogram_count; i++)
        assert_true(profile->histogram[i].context < profile->context_entry_count &&
                    profile->histogram[i].first_word % HW_HISTOGRAM_WORDS == 0);
    for (size_t i = 1; i < profile->timeline_count; i++)
        assert_true(profile->timeline[i].time_ns >= profile->timeline[i - 1].time_ns);
    for (size_t i = 0; i < profile->free_stack_count; i++)
        assert_true(profile->free_stacks[i].alloc_context < profile->context_entry_count &&
                    profile->free_stacks[i].free_context < profile->context_entry_count);
    for (size_t i = 0; i < profile->note_count; i++)
        used += strlen(hw_profile_string(profile, profile->notes[i].text));
    for (size_t i = 0; i < profile->memory_count; i++)
        used += profile->memory[i].rss;
}

/* Reads FILE; true when nothing was wrong with it. */
static bool is_fine(const struct memory_file *file)
{
    struct hw_error error = {.message = ""};
    struct hw_profile *profile = hw_profile_read(file->path, &error);
    if (!profile) {
        check_line(error.message);
        return false;
    }
    assert_string_equal(error.message, "");
    exercise(profile);
    bool fine = profile->problem_count == 0;
    hw_profile_free(profile);
    return fine;
}

static void put(const struct memory_file *file, const void *bytes, size_t size, size_t offset)
{
    assert_int_equal(pwrite(file->fd, bytes, size, (off_t)offset), size);
}

/* A sample whose directory goes on in a second one. */
static struct image small_image(bool sealed)
{
    struct sample sample = sample_new();
    struct hw_mib mib = sample_mib(3);
    mib.allocations = mib.samples = 1;
    sample_add_accesses(&sample);
    image_chain(&sample.image, 4);
    image_add(&sample.image, HW_SECTION_MIBS, sizeof mib, &mib, sizeof mib, 0);
    if (sealed)
        image_seal(&sample.image);
    return sample.image;
}

/* ---- cut short ---- */

static void test_every_length(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct image image = small_image(sealed);
        struct memory_file file = memory_file(image.bytes, image.size);
        assert_true(is_fine(&file));
        for (size_t length = image.size; length-- > 0;) {
            assert_int_equal(ftruncate(file.fd, (off_t)length), 0);
            if (is_fine(&file))
                fail_msg("a file cut to %zu bytes was not noticed", length);
        }
        close(file.fd);
        image_free(&image);
    }
}

/* What was there has been read: cutting off the last sections leaves the first ones as they were. */
static void test_saved_of_cut(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct sample sample = sample_new();
        if (sealed)
            image_seal(&sample.image);
        struct hw_section *mibs = image_section(&sample.image, sample.mibs);
        struct memory_file file = memory_file(sample.image.bytes, mibs->offset + 3 * 256 - 1);
        struct hw_profile *profile = hw_profile_read(file.path, NULL);
        assert_non_null(profile);
        assert_true(profile->cut);
        assert_true(profile->problem_count > 0); /* the first one says it all */
        assert_non_null(strstr(profile->problems[0], "cut short: it has"));
        assert_string_equal(profile->command[3], "end");
        assert_int_equal(profile->totals.allocations, 11);
        assert_int_equal(profile->context_totals.allocations, 10); /* two whole MIBs are left */
        assert_int_equal(profile->contexts[0].depth, 3);
        hw_profile_free(profile);
        close(file.fd);
        image_free(&sample.image);
    }
}

/* ---- flipped bits ---- */

/* Ranges of the file that a reader relies on: first page and used bytes of every extent. */
struct range {
    size_t start, end;
};

static size_t add_ranges(const struct image *image, size_t first, size_t entries, struct range *ranges, size_t count)
{
    for (size_t i = 0; i < entries; i++) {
        const struct hw_section *entry = (const struct hw_section *)(image->bytes + first + i * sizeof *entry);
        ranges[count++] = (struct range){entry->offset, entry->offset + entry->used};
        if (entry->type == HW_SECTION_DIRECTORY)
            count = add_ranges(image, entry->offset, entry->used / sizeof *entry, ranges, count);
    }
    return count;
}

static size_t used_ranges(const struct image *image, struct range *ranges)
{
    const struct hw_file_header *header = (const struct hw_file_header *)image->bytes;
    ranges[0] = (struct range){0, HW_FILE_PAGE};
    return add_ranges(image, sizeof *header, header->directory_used, ranges, 1);
}

/* Every bit of the used bytes of a sealed file, one after the other, is noticed. */
static void test_every_bit_of_sealed(void **state)
{
    struct image image = small_image(true);
    struct memory_file file = memory_file(image.bytes, image.size);
    struct range ranges[32];
    size_t count = used_ranges(&image, ranges), flips = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t at = ranges[i].start; at < ranges[i].end; at++)
            for (int bit = 0; bit < 8; bit++, flips++) {
                /* Most of the first page is empty: there every bit of every 16th byte does. */
                if (i == 0 && at >= sizeof(struct hw_file_header) + 20 * sizeof(struct hw_section) && at % 16 != 0)
                    continue;
                unsigned char byte = image.bytes[at] ^ (unsigned char)(1 << bit);
                put(&file, &byte, 1, at);
                if (is_fine(&file))
                    fail_msg("bit %d of byte %zu was not noticed", bit, at);
                put(&file, &image.bytes[at], 1, at);
            }
    assert_true(flips > 8 * HW_FILE_PAGE);
    assert_true(is_fine(&file));
    close(file.fd);
    image_free(&image);
}

static void test_random_flips(void **state)
{
    enum { ROUNDS = 6000 };
    for (int sealed = 0; sealed < 2; sealed++) {
        struct image image = small_image(sealed);
        struct memory_file file = memory_file(image.bytes, image.size);
        struct range ranges[32];
        size_t count = used_ranges(&image, ranges);
        for (int round = 0; round < ROUNDS; round++) {
            struct range *range = &ranges[draw() % count];
            size_t at[4], flips = 1 + draw() % 4;
            for (size_t i = 0; i < flips; i++) {
                at[i] = range->start + draw() % (range->end - range->start);
                unsigned char byte = image.bytes[at[i]] ^ (unsigned char)(1u << draw() % 8);
                put(&file, &byte, 1, at[i]);
            }
            bool fine = is_fine(&file);
            for (size_t i = 0; i < flips; i++)
                put(&file, &image.bytes[at[i]], 1, at[i]);
            if (sealed && fine)
                fail_msg("flips in the extent at %zu were not noticed", range->start);
        }
        close(file.fd);
        image_free(&image);
    }
}

/* Interesting numbers and noise over random places, aimed at the directory half of the time. */
static void test_random_overwrites(void **state)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       63,
                                       64,
                                       4095,
                                       4096,
                                       8192,
                                       65536,
                                       1u << 20,
                                       INT32_MAX,
                                       UINT32_MAX,
                                       1ull << 32,
                                       INT64_MAX,
                                       UINT64_MAX,
                                       UINT64_MAX - 4095,
                                       UINT64_MAX / 64,
                                       UINT64_MAX / 256};
    enum { ROUNDS = 6000 };
    for (int sealed = 0; sealed < 2; sealed++) {
        struct image image = small_image(sealed);
        struct memory_file file = memory_file(image.bytes, image.size);
        for (int round = 0; round < ROUNDS; round++) {
            size_t changes = 1 + draw() % 3;
            for (size_t i = 0; i < changes; i++) {
                uint64_t value = draw() % 3 ? numbers[draw() % (sizeof numbers / sizeof *numbers)] : draw();
                size_t size = draw() % 2 ? 8 : 4, span = draw() % 2 ? 256 + 19 * 64 : image.size - 8;
                put(&file, &value, size, draw() % (span / 4) * 4);
            }
            if (draw() % 8 == 0)
                assert_int_equal(ftruncate(file.fd, (off_t)(draw() % image.size)), 0);
            is_fine(&file);
            assert_int_equal(ftruncate(file.fd, (off_t)image.size), 0);
            put(&file, image.bytes, image.size, 0);
        }
        close(file.fd);
        image_free(&image);
    }
}

/* ---- what is saved of a sealed file ---- */

static struct hw_profile *read_flipped(struct image *image, size_t at)
{
    image->bytes[at] ^= 0x10;
    struct memory_file file = memory_file(image->bytes, image->size);
    struct hw_profile *profile = hw_profile_read(file.path, NULL);
    assert_non_null(profile);
    assert_true(profile->problem_count > 0);
    exercise(profile);
    close(file.fd);
    image_free(image);
    return profile;
}

static void test_lost_extents(void **state)
{
    struct sample sample = sample_new();
    struct image *image = &sample.image;
    image_seal(image);
    struct hw_profile *profile = read_flipped(image, image_section(image, sample.strings)->offset + 3);
    assert_string_equal(profile->executable, "");
    assert_int_equal(profile->context_totals.allocations, 11);
    assert_int_equal(profile->contexts[0].depth, 3);
    hw_profile_free(profile);

    sample = sample_new();
    image_seal(image);
    profile = read_flipped(image, image_section(image, sample.process)->offset + 3);
    assert_string_equal(profile->executable, "");
    assert_int_equal(profile->context_totals.allocations, 11);
    hw_profile_free(profile);

    sample = sample_new();
    image_seal(image);
    profile = read_flipped(image, image_section(image, sample.contexts)->offset + 3);
    assert_int_equal(profile->context_count, 2); /* without stacks, but still apart */
    assert_int_equal(profile->contexts[1].id, 2);
    assert_int_equal(profile->contexts[1].leaf, 0);
    assert_true(profile->contexts[1].flags & HW_CONTEXT_INCOMPLETE);
    hw_profile_free(profile);

    sample = sample_new();
    image_seal(image);
    profile = read_flipped(image, image_section(image, sample.mibs)->offset + 3);
    assert_int_equal(profile->context_totals.allocations, 0);
    assert_int_equal(profile->totals.allocations, 11);
    hw_profile_free(profile);
}

/* A damaged extent in the middle must not shift what follows. */
static void test_hole_in_the_middle(void **state)
{
    struct image image = image_new();
    struct hw_process_info process = sample_process();
    struct hw_stack_node nodes[9] = {{.map = HW_NONE}};
    struct hw_context_entry contexts[9] = {{0}};
    struct hw_mib mibs[9];
    image_add(&image, HW_SECTION_PROCESS, sizeof process, &process, sizeof process, 0);
    for (uint32_t i = 0; i < 9; i++) {
        nodes[i].pc = 1000 + i;
        nodes[i].map = HW_NONE;
        nodes[i].parent = i ? i - 1 : 0;
        contexts[i].leaf = i;
        mibs[i] = sample_mib(i);
        mibs[i].allocations = i + 1;
    }
    size_t middle = 0;
    for (int i = 0; i < 3; i++) {
        size_t position = image_add(&image, HW_SECTION_STACKS, 16, nodes + 3 * i, 3 * 16, 0);
        if (i == 1)
            middle = image_section(&image, position)->offset;
        image_add(&image, HW_SECTION_CONTEXTS, 16, contexts + 3 * i, 3 * 16, 0);
    }
    image_add(&image, HW_SECTION_MIBS, sizeof *mibs, mibs, sizeof mibs, 0);
    image_seal(&image);
    struct hw_profile *profile = read_flipped(&image, middle);
    assert_int_equal(profile->node_count, 9);
    assert_int_equal(profile->context_count, 9);
    assert_int_equal(profile->contexts[2].depth, 2);
    assert_false(profile->contexts[2].flags & HW_CONTEXT_INCOMPLETE);
    assert_int_equal(profile->contexts[4].leaf, 0); /* its own frame is lost */
    assert_true(profile->contexts[4].flags & HW_CONTEXT_INCOMPLETE);
    assert_int_equal(profile->contexts[8].depth, 3); /* frames 8, 7, 6; 5 is lost */
    assert_true(profile->contexts[8].flags & HW_CONTEXT_INCOMPLETE);
    assert_int_equal(profile->nodes[8].pc, 1008);
    assert_int_equal(profile->contexts[8].allocations, 9);
    hw_profile_free(profile);
}

/* A wrong first page: the sections prove by themselves that they are good. */
static void test_damaged_first_page(void **state)
{
    struct sample sample = sample_new();
    image_seal(&sample.image);
    struct hw_profile *profile = read_flipped(&sample.image, offsetof(struct hw_file_header, session));
    assert_int_equal(profile->context_totals.allocations, 11);
    assert_int_equal(profile->totals.allocations, 11);
    assert_int_equal(profile->problem_count, 1);
    hw_profile_free(profile);
}

/* ---- directories that lead astray ---- */

struct lie {
    const char *part; /* of the problem */
    void (*tell)(struct image *image, struct hw_section *entry);
};

static void lie_offset(struct image *image, struct hw_section *entry)
{
    entry->offset += 8;
}
static void lie_first_page(struct image *image, struct hw_section *entry)
{
    entry->offset = 0;
}
static void lie_overflow(struct image *image, struct hw_section *entry)
{
    entry->capacity = UINT64_MAX - 4096;
}
static void lie_used(struct image *image, struct hw_section *entry)
{
    entry->used = entry->capacity + 1;
}
static void lie_small_entry(struct image *image, struct hw_section *entry)
{
    entry->entry_size = 248;
}
static void lie_no_entry(struct image *image, struct hw_section *entry)
{
    entry->entry_size = 0;
}
static void lie_odd_entry(struct image *image, struct hw_section *entry)
{
    entry->entry_size = 257;
}
static void lie_partial(struct image *image, struct hw_section *entry)
{
    entry->used -= 8;
}
static void lie_overlap(struct image *image, struct hw_section *entry)
{
    entry->offset -= HW_FILE_PAGE;
}
static void lie_beyond(struct image *image, struct hw_section *entry)
{
    entry->offset = 1ull << 40;
}
static void lie_absurd(struct image *image, struct hw_section *entry)
{
    entry->offset = 1ull << 40;
    entry->capacity = entry->used = 1ull << 45;
}
static void lie_count(struct image *image, struct hw_section *entry)
{
    image_header(image)->directory_used = UINT32_MAX;
}
static void lie_capacity(struct image *image, struct hw_section *entry)
{
    image_header(image)->directory_capacity = 61;
}
static void lie_early_directory(struct image *image, struct hw_section *entry)
{
    entry[-1].type = HW_SECTION_DIRECTORY;
    entry[-1].entry_size = 64;
}
static void lie_circle(struct image *image, struct hw_section *entry)
{
    size_t position = image_chain(image, 2);
    uint64_t offset = image_section(image, position)->offset;
    image_add(image, HW_SECTION_DIRECTORY, 64, NULL, 64, 0);
    image_section(image, offset)->offset = offset;
}
static void lie_total(struct image *image, struct hw_section *entry)
{
    image_header(image)->total_size++;
}

static void test_lies(void **state)
{
    static const struct lie lies[] = {
        {"impossible offset", lie_offset},
        {"impossible offset", lie_first_page},
        {"impossible size", lie_overflow},
        {"uses more", lie_used},
        {"entry size", lie_small_entry},
        {"entry size", lie_no_entry},
        {"entry size", lie_odd_entry},
        {"in part: the numbers of each place", lie_partial},
        {"overlaps", lie_overlap},
        {"cut short", lie_beyond},
        {"larger than any", lie_absurd},
        {"claims", lie_count},
        {"claims", lie_capacity},
        {"before its last", lie_early_directory},
        {"before its own place", lie_circle},
        {"cut short", lie_total},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct sample sample = sample_new();
        lies[i].tell(&sample.image, image_section(&sample.image, sample.mibs));
        struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
        struct hw_profile *profile = hw_profile_read(file.path, NULL);
        assert_non_null(profile);
        bool told = false;
        for (size_t k = 0; k < profile->problem_count; k++)
            told |= strstr(profile->problems[k], lies[i].part) != NULL;
        if (!told)
            fail_msg("lie %zu: no problem mentions '%s'", i, lies[i].part);
        exercise(profile);
        assert_int_equal(profile->totals.allocations, 11); /* what is not concerned is kept */
        hw_profile_free(profile);
        close(file.fd);
        image_free(&sample.image);
    }
}

/* A damaged file must not flood the terminal. */
static void test_many_problems(void **state)
{
    struct sample sample = sample_new();
    for (uint32_t i = 0; i < 40; i++) {
        size_t position = image_add(&sample.image, 100 + i, 1, NULL, 1, 0);
        image_section(&sample.image, position)->used = 1 << 20;
    }
    image_chain(&sample.image, 40);
    for (uint32_t i = 0; i < 30; i++) {
        size_t position = image_add(&sample.image, 200 + i, 1, NULL, 1, 0);
        image_section(&sample.image, position)->used = 1 << 20;
    }
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    struct hw_profile *profile = hw_profile_read(file.path, NULL);
    assert_non_null(profile);
    assert_int_equal(profile->problem_count, 41);
    assert_non_null(strstr(profile->problems[40], "further"));
    hw_profile_free(profile);
    close(file.fd);
    image_free(&sample.image);
}

TEST_LIST(cmocka_unit_test(test_every_length), cmocka_unit_test(test_saved_of_cut),
          cmocka_unit_test(test_every_bit_of_sealed), cmocka_unit_test(test_random_flips),
          cmocka_unit_test(test_random_overwrites), cmocka_unit_test(test_lost_extents),
          cmocka_unit_test(test_hole_in_the_middle), cmocka_unit_test(test_damaged_first_page),
          cmocka_unit_test(test_lies), cmocka_unit_test(test_many_problems))
