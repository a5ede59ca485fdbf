/* test_profile.c - the reader on files in good order: sealed, unsealed, grown, newer; and the rules of merging.
 * Damage is the subject of test_profile_damage.c, closing that of test_profile_close.c. */
#include <stdio.h>

#include "profile/container/container.h"
#include "profile/model/model.h"
#include "profile/profile.h"
#include "profile_writer.h"
#include "stack_depth.h"
#include "support/check.h"
#include "test_config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct hw_profile *read_image(const struct image *image, struct hw_error *error)
{
    struct memory_file file = memory_file(image->bytes, image->size);
    struct hw_profile *profile = hw_profile_read(file.path, error);
    close(file.fd);
    return profile;
}

/* Reads an image that must be without problems, and frees it. */
static struct hw_profile *read_good(struct image *image)
{
    struct hw_error error = {.message = "untouched"};
    struct hw_profile *profile = read_image(image, &error);
    image_free(image);
    if (!profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s", profile->problems[i]);
    assert_string_equal(error.message, "");
    return profile;
}

/* Reads an image of which something must be wrong: PART must be in one of the problems. */
static struct hw_profile *read_damaged(struct image *image, const char *part)
{
    struct hw_error error = {.message = ""};
    struct hw_profile *profile = read_image(image, &error);
    image_free(image);
    if (!profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        if (strstr(profile->problems[i], part))
            return profile;
    fail_msg("no problem mentions '%s', the first of %zu is: %s", part, profile->problem_count,
             profile->problem_count ? profile->problems[0] : "-");
    return profile;
}

static const struct hw_profile_context *context_by_id(const struct hw_profile *profile, uint32_t id)
{
    for (size_t i = 0; i < profile->context_count; i++)
        if (profile->contexts[i].id == id)
            return &profile->contexts[i];
    return NULL;
}

/* ---- the sample ---- */

static void check_sample(const struct hw_profile *profile)
{
    assert_string_equal(profile->executable, "/bin/true");
    assert_string_equal(profile->allocator, "glibc 2.36");
    assert_string_equal(profile->allocator_path, "/lib/libc.so.6");
    assert_string_equal(profile->options, "a=b");
    assert_int_equal(profile->command_count, 4);
    assert_string_equal(profile->command[0], "true");
    assert_string_equal(profile->command[1], "-x");
    assert_string_equal(profile->command[2], "");
    assert_string_equal(profile->command[3], "end");
    assert_false(profile->running);
    assert_false(profile->cut);
    assert_true(profile->ns_per_tick == 2.0);
    assert_int_equal(profile->duration_ns, 2000000);
    assert_int_equal(profile->peak_time_ns, 500000);
    assert_int_equal(profile->map_count, 2);
    assert_string_equal(hw_profile_string(profile, profile->maps[1].path), "[vdso]");
    assert_int_equal(profile->node_count, 5);
    assert_int_equal(profile->context_entry_count, 4);
    assert_int_equal(profile->timeline_count, 3);
    assert_int_equal(profile->timeline[2].time_ns, 600);
    assert_int_equal(profile->timeline[2].rss_bytes, 8192);
    assert_int_equal(profile->free_stack_count, 1);
    assert_int_equal(profile->free_stacks[0].count, 8);
    assert_int_equal(profile->memory_count, 1);
    assert_int_equal(profile->note_count, 1);
    assert_string_equal(hw_profile_string(profile, profile->notes[0].text), "note");
}

static void check_sample_totals(const struct hw_profile *profile)
{
    const struct hw_thread_entry *totals = &profile->totals, *sums = &profile->context_totals;
    assert_int_equal(totals->allocations, 11);
    assert_int_equal(totals->frees, 8);
    assert_int_equal(totals->bytes, 1100);
    assert_int_equal(totals->temporary, 2);
    assert_int_equal(totals->live_blocks, 3);
    assert_int_equal(totals->live_bytes, 300);
    assert_int_equal(totals->foreign_frees, 4);
    assert_int_equal(totals->failed, 1);
    assert_int_equal(totals->walks, 3);
    assert_int_equal(totals->verified, 8);
    assert_int_equal(sums->allocations, totals->allocations);
    assert_int_equal(sums->frees, totals->frees);
    assert_int_equal(sums->bytes, totals->bytes);
    assert_int_equal(sums->live_blocks, totals->live_blocks);
    assert_int_equal(sums->live_bytes, totals->live_bytes);
}

/* Two MIBs of one context: sums, minima, maxima, the latest of the last, the rule of the peak, ages. */
static void check_sample_contexts(const struct hw_profile *profile)
{
    assert_int_equal(profile->context_count, 2);
    const struct hw_profile_context *context = &profile->contexts[0];
    assert_int_equal(context->id, 1);
    assert_int_equal(context->leaf, 3);
    assert_int_equal(context->depth, 3);
    assert_int_equal(context->allocations, 10);
    assert_int_equal(context->frees, 8);
    assert_int_equal(context->size_min, 50);
    assert_int_equal(context->size_max, 200);
    assert_int_equal(context->live_blocks, 2);
    assert_int_equal(context->live_bytes, 200);
    /* The first MIB was changed since the peak and holds its share; the second was not: what is live is its share. */
    assert_int_equal(context->peak_bytes, 700 - 200);
    assert_int_equal(context->peak_blocks, 7 - 2);
    assert_int_equal(context->lifetime_total_ns, 3200);
    assert_int_equal(context->lifetime_min_ns, 20);
    assert_int_equal(context->lifetime_max_ns, 1980);
    assert_int_equal(context->last_alloc_ns, 1000);
    assert_int_equal(context->last_alloc_cpu, 1);
    assert_int_equal(context->last_free_ns, 2000);
    assert_int_equal(context->last_free_cpu, 1);
    assert_int_equal(context->free_threads, 2);
    assert_int_equal(context->migrated_cpu, 2);
    assert_int_equal(context->live_age_total_ns, 2 * (2 * 1000000 - 200));
    assert_int_equal(context->first_ns, 20);
    context = &profile->contexts[1];
    assert_int_equal(context->id, 2);
    assert_int_equal(context->peak_bytes, 100);
    assert_int_equal(context->peak_blocks, 1);
    assert_int_equal(context->live_age_total_ns, 2 * 400000);
    assert_int_equal(context->lifetime_min_ns, 0);
    assert_int_equal(context->inherited_blocks, 7);
    assert_int_equal(context->inherited_bytes, 70);
}

static void test_unsealed(void **state)
{
    struct sample sample = sample_new();
    struct hw_profile *profile = read_good(&sample.image);
    assert_false(profile->sealed);
    check_sample(profile);
    check_sample_totals(profile);
    check_sample_contexts(profile);
    hw_profile_free(profile);
}

static void test_sealed(void **state)
{
    struct sample sample = sample_new();
    image_seal(&sample.image);
    struct hw_profile *profile = read_good(&sample.image);
    assert_true(profile->sealed);
    check_sample(profile);
    check_sample_totals(profile);
    check_sample_contexts(profile);
    hw_profile_free(profile);
}

static void test_stack(void **state)
{
    struct sample sample = sample_new();
    struct hw_profile *profile = read_good(&sample.image);
    assert_int_equal(stack_depth(profile, 3), 3);
    assert_int_equal(profile->nodes[3].parent, 2);
    assert_int_equal(stack_depth(profile, 4), 2);
    assert_string_equal(hw_profile_string(profile, UINT32_MAX), "");
    hw_profile_free(profile);
    hw_profile_free(NULL);
}

/* ---- several extents, chained directories ---- */

/* Everything again, one entry an extent, one directory for every three extents, spare extents of all kinds. */
static struct image scattered(bool spare)
{
    struct sample sample = sample_new();
    struct image *from = &sample.image, image = image_new();
    image.directory_room = 3;
    for (size_t i = 0; i < image_header(from)->directory_used; i++) {
        struct hw_section *entry = image_section(from, sizeof(struct hw_file_header) + i * sizeof *entry);
        size_t step = entry->entry_size == 1 ? 16 : entry->entry_size;
        for (size_t done = 0; done < entry->used; done += step) {
            size_t part = entry->used - done < step ? entry->used - done : step;
            if (image.directory_used == image.directory_room - 1)
                image_chain(&image, 3);
            image_add(&image, entry->type, entry->entry_size, from->bytes + entry->offset + done, part, 0);
            if (!spare)
                continue;
            if (image.directory_used == image.directory_room - 1)
                image_chain(&image, 3);
            image_add(&image, entry->type, entry->entry_size, NULL, 0, HW_FILE_PAGE); /* room, nothing in it yet */
        }
    }
    image_free(from);
    return image;
}

/* A writer may count the whole page of a further directory as used: entries of type 0 are not in use. */
static void test_directory_with_spare_entries(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct sample sample = sample_new();
        struct hw_mib mib = sample_mib(3);
        mib.allocations = 1;
        size_t chain = image_chain(&sample.image, 64);
        image_add(&sample.image, HW_SECTION_MIBS, sizeof mib, &mib, sizeof mib, 0);
        image_section(&sample.image, chain)->used = HW_FILE_PAGE;
        if (sealed)
            image_seal(&sample.image);
        struct hw_profile *profile = read_good(&sample.image);
        assert_int_equal(profile->context_totals.allocations, 12);
        hw_profile_free(profile);
    }
}

static void test_scattered(void **state)
{
    for (int variant = 0; variant < 4; variant++) {
        struct image image = scattered(variant & 1);
        if (variant & 2)
            image_seal(&image);
        struct hw_profile *profile = read_good(&image);
        check_sample(profile);
        check_sample_totals(profile);
        check_sample_contexts(profile);
        hw_profile_free(profile);
    }
}

/* ---- newer writers ---- */

static void test_newer_minor(void **state)
{
    struct sample sample = sample_new();
    struct image old = sample.image, image = image_new();
    image_header(&image)->version_minor = 7;
    for (size_t i = 0; i < image_header(&old)->directory_used; i++) {
        struct hw_section *entry = image_section(&old, sizeof(struct hw_file_header) + i * sizeof *entry);
        size_t wider = entry->entry_size == 1 ? 1 : entry->entry_size + 24, count = entry->used / entry->entry_size;
        unsigned char *data = malloc(count * wider);
        memset(data, 0xee, count * wider);
        for (size_t k = 0; k < count; k++)
            memcpy(data + k * wider, old.bytes + entry->offset + k * entry->entry_size, entry->entry_size);
        size_t position = image_add(&image, entry->type, wider, data, count * wider, 0);
        image_section(&image, position)->version = 2;
        free(data);
        image_add(&image, 1000 + (uint32_t)i, 17, "what nobody knows", 17, 0);
    }
    image_free(&old);
    image_seal(&image);
    struct hw_profile *profile = read_good(&image);
    assert_int_equal(profile->header.version_minor, 7);
    check_sample(profile);
    check_sample_totals(profile);
    check_sample_contexts(profile);
    hw_profile_free(profile);
}

static void expect_error(const struct image *image, const char *part)
{
    struct hw_error error = {.message = ""};
    assert_null(read_image(image, &error));
    if (!strstr(error.message, part))
        fail_msg("'%s' is not in: %s", part, error.message);
    assert_null(strchr(error.message, '\n'));
    assert_null(read_image(image, NULL));
}

static void test_newer_major(void **state)
{
    struct sample sample = sample_new();
    image_header(&sample.image)->version_major = 2;
    expect_error(&sample.image, "version 2.0");
    expect_error(&sample.image, "newer heapwise");
    image_header(&sample.image)->version_major = 0;
    expect_error(&sample.image, "damaged");
    image_free(&sample.image);
}

/* ---- what is no profile ---- */

static void expect_path_error(const char *path, const char *part)
{
    struct hw_error error = {.message = ""};
    assert_null(hw_profile_read(path, &error));
    if (!strstr(error.message, part))
        fail_msg("'%s' is not in: %s", part, error.message);
}

static void test_no_profile(void **state)
{
    char directory[] = "/tmp/heapwise-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    expect_path_error(directory, "directory");
    snprintf(path, sizeof path, "%s/fifo", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_path_error(path, "not a regular file");
    unlink(path);
    expect_path_error(path, "No such file");
    rmdir(directory);
    expect_path_error("/dev/null", "not a regular file");
    expect_path_error("/proc/self/exe", "not a Heapwise profile");

    struct image image = {.bytes = NULL, .size = 0};
    expect_error(&image, "empty");
    image_resize(&image, 3);
    expect_error(&image, "not a Heapwise profile");
    memcpy(image.bytes, "\x89HW", 3);
    expect_error(&image, "cut short");
    image_free(&image);
    image = image_new();
    expect_error(&image, "only just started");
    image_seal(&image);
    expect_error(&image, "only just started");
    image_free(&image);
}

static void test_unreadable(void **state)
{
    char path[] = "/tmp/heapwise-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    chmod(path, 0);
    if (access(path, R_OK) != 0) /* root may read everything */
        expect_path_error(path, "Permission denied");
    unlink(path);
}

/* ---- times ---- */

static void test_clock(void **state)
{
    struct sample sample = sample_new();
    struct hw_process_info *process = image_data(&sample.image, sample.process);
    process->clock_ticks = 3000000001ull * 86400 * 365;
    process->clock_ns = 1000000000ull * 86400 * 365;
    struct hw_profile *profile = read_good(&sample.image);
    /* The product needs more than 64 bits; the result is exact. */
    assert_true(hw_profile_ticks_to_ns(profile, 3000000001ull * 86400 * 365) == 31536000000000000ull);
    hw_profile_free(profile);

    sample = sample_new();
    process = image_data(&sample.image, sample.process);
    process->clock_ticks = 1;
    process->clock_ns = UINT64_MAX;
    profile = read_good(&sample.image);
    assert_true(hw_profile_ticks_to_ns(profile, 2) == UINT64_MAX); /* saturates */
    hw_profile_free(profile);

    sample = sample_new();
    process = image_data(&sample.image, sample.process);
    process->clock_ticks = process->clock_ns = 0; /* never refreshed */
    profile = read_good(&sample.image);
    assert_int_equal(hw_profile_ticks_to_ns(profile, 77), 77);
    hw_profile_free(profile);

    sample = sample_new();
    process = image_data(&sample.image, sample.process);
    process->clock_ticks = 0;
    profile = read_damaged(&sample.image, "clock");
    assert_int_equal(hw_profile_ticks_to_ns(profile, 77), 77);
    hw_profile_free(profile);
}

/* Sums of lifetimes are exact on both sides of 64 bits, whatever the clock's frequency. */
static void test_long_lifetimes(void **state)
{
    static const struct {
        uint32_t high;
        uint64_t low;
        unsigned __int128 ns;
    } cases[] = {{0, 3000, 2000},
                 {0, ((uint64_t)5 << 32) - 2, (((uint64_t)5 << 32) - 2) / 3 * 2},
                 {0, UINT64_MAX, (unsigned __int128)(UINT64_MAX / 3) * 2},
                 {6, 0, (unsigned __int128)4 << 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample sample = sample_new();
        struct hw_process_info *process = image_data(&sample.image, sample.process);
        process->clock_ticks = 3;
        process->clock_ns = 2;
        struct hw_mib *mibs = image_data(&sample.image, sample.mibs);
        mibs[1].lifetime_total = 0;
        mibs[0].lifetime_total = cases[i].low;
        mibs[0].lifetime_total_high = cases[i].high;
        struct hw_profile *profile = read_good(&sample.image);
        assert_true(profile->contexts[0].lifetime_total_ns == cases[i].ns);
        hw_profile_free(profile);
    }
}

/* A killed process could not write its end: the run lasts as long as the file can tell. */
static void test_duration_of_killed(void **state)
{
    struct sample sample = sample_new();
    ((struct hw_process_info *)image_data(&sample.image, sample.process))->end_tick = 5;
    struct hw_profile *profile = read_good(&sample.image);
    assert_int_equal(profile->duration_ns, 2 * 600000);
    assert_int_equal(profile->contexts[1].live_age_total_ns, 0);
    hw_profile_free(profile);
}

/* Ages that do not fit are not known; those that do are right although live_ticks wraps. */
static void test_ages(void **state)
{
    struct sample sample = sample_new();
    struct hw_mib *mibs = image_data(&sample.image, sample.mibs);
    struct hw_process_info *process = image_data(&sample.image, sample.process);
    process->clock_ticks = process->clock_ns = 1;
    process->end_tick = 1ull << 62;
    mibs[2].live_blocks = 3;
    mibs[2].live_ticks = 3 * ((1ull << 62) - 5); /* wraps when more are added; the difference is 15 */
    mibs[0].live_blocks = 1000;
    struct hw_profile *profile = read_good(&sample.image);
    assert_true(profile->contexts[0].live_age_total_ns == UINT64_MAX);
    assert_true(profile->contexts[1].live_age_total_ns == 15);
    hw_profile_free(profile);
}

/* ---- merging ---- */

static void test_peak_epochs(void **state)
{
    static const struct {
        uint64_t process, mib;
        int64_t expected;
    } cases[] = {{5, 5, 11}, {5, 4, 7}, {5, 0, 7}, {0, 0, 11}, {5, 6, 11}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample sample = sample_new();
        struct hw_mib *mibs = image_data(&sample.image, sample.mibs);
        ((struct hw_process_info *)image_data(&sample.image, sample.process))->peak_epoch = cases[i].process;
        mibs[2].peak_epoch = cases[i].mib;
        mibs[2].peak_bytes = mibs[2].peak_blocks = 11;
        mibs[2].live_bytes = mibs[2].live_blocks = 7;
        struct hw_profile *profile = read_good(&sample.image);
        assert_int_equal(profile->contexts[1].peak_bytes, cases[i].expected);
        assert_int_equal(profile->contexts[1].peak_blocks, cases[i].expected);
        hw_profile_free(profile);
    }
}

/* An allocation in flight: counted already, its size not yet. And one whose slot is being taken. */
static void test_in_flight(void **state)
{
    struct sample sample = sample_new();
    struct hw_mib *mibs = image_data(&sample.image, sample.mibs);
    mibs[2].size_min = UINT64_MAX;
    mibs[2].size_max = 0;
    mibs[2].frees = 1;
    mibs[3].context = 3;
    mibs[3].size_min = mibs[3].lifetime_min = UINT64_MAX;
    /* And one that only frees, in a slot that was never filled with the marks for "none yet". */
    struct hw_mib zeroed = {.context = 1, .frees = 1, .lifetime_min = 30, .lifetime_max = 30, .last_alloc_tick = 999};
    image_add(&sample.image, HW_SECTION_MIBS, sizeof zeroed, &zeroed, sizeof zeroed, 0);
    struct hw_profile *profile = read_good(&sample.image);
    assert_int_equal(profile->context_count, 2);
    assert_int_equal(profile->contexts[0].size_min, 50);
    assert_int_equal(profile->contexts[0].last_alloc_ns, 1000);
    assert_int_equal(profile->contexts[1].size_min, 0);
    assert_int_equal(profile->contexts[1].size_max, 0);
    assert_int_equal(profile->contexts[1].lifetime_min_ns, 0);
    hw_profile_free(profile);
}

/* One context in many entries, as a bounded table leaves them: the order must not matter. */
static void test_many_entries(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct sample sample = sample_new();
        enum { MANY = 5000 };
        struct hw_mib *mibs = calloc(MANY, sizeof *mibs);
        for (size_t i = 0; i < MANY; i++) {
            struct hw_mib *mib = &mibs[order ? MANY - 1 - i : i];
            *mib = sample_mib(3);
            mib->flags = HW_MIB_EVICTED;
            mib->allocations = mib->samples = mib->frees = 1;
            mib->bytes = mib->size_min = mib->size_max = i + 1;
            mib->lifetime_total = mib->lifetime_min = mib->lifetime_max = 2 * i + 1;
            mib->last_alloc_tick = i + 100;
            mib->last_alloc_cpu = (uint16_t)(i % 7);
            mib->last_free_tick = i + 200;
            mib->last_free_cpu = (uint16_t)(i % 5);
        }
        image_add(&sample.image, HW_SECTION_MIBS, sizeof *mibs, mibs, MANY * sizeof *mibs, 0);
        free(mibs);
        struct hw_profile *profile = read_good(&sample.image);
        const struct hw_profile_context *context = context_by_id(profile, 3);
        assert_non_null(context);
        assert_int_equal(context->allocations, MANY);
        assert_int_equal(context->bytes, (uint64_t)MANY * (MANY + 1) / 2);
        assert_int_equal(context->size_min, 1);
        assert_int_equal(context->size_max, MANY);
        assert_int_equal(context->lifetime_min_ns, 2);
        assert_int_equal(context->lifetime_total_ns, 2ull * MANY * MANY);
        assert_int_equal(context->last_alloc_cpu, (MANY - 1) % 7);
        assert_int_equal(context->last_free_cpu, (MANY - 1) % 5);
        hw_profile_free(profile);
    }
}

/* Blocks that nobody could attribute belong to context 0, which needs no stack. */
static void test_unknown_stack(void **state)
{
    struct sample sample = sample_new();
    struct hw_mib *mibs = image_data(&sample.image, sample.mibs);
    mibs[2].context = 0;
    struct hw_profile *profile = read_good(&sample.image);
    assert_int_equal(profile->contexts[0].id, 0);
    assert_int_equal(profile->contexts[0].depth, 0);
    assert_int_equal(profile->contexts[0].allocations, 1);
    hw_profile_free(profile);
}

static void test_timeline_in_motion(void **state)
{
    struct sample sample = sample_new();
    struct hw_timeline_point *points = image_data(&sample.image, sample.timeline);
    points[1].tick = 400; /* being thinned out: 100, 400, 300 */
    struct image copy = {0};
    image_resize(&copy, sample.image.size);
    memcpy(copy.bytes, sample.image.bytes, copy.size);
    struct hw_profile *profile = read_good(&sample.image);
    assert_int_equal(profile->timeline_count, 2);
    hw_profile_free(profile);
    image_seal(&copy);
    hw_profile_free(read_damaged(&copy, "timeline"));
}

/* ---- references that lead nowhere, in a file without checksums ---- */

static void test_bad_references(void **state)
{
    struct sample sample = sample_new();
    ((struct hw_stack_node *)image_data(&sample.image, sample.stacks))[2].parent = 3;
    struct hw_profile *profile = read_damaged(&sample.image, "comes later");
    assert_true(profile->contexts[0].flags & HW_CONTEXT_INCOMPLETE);
    assert_int_equal(profile->contexts[0].depth, 2);
    assert_false(profile->contexts[1].flags & HW_CONTEXT_INCOMPLETE);
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_stack_node *)image_data(&sample.image, sample.stacks))[2].map = 2;
    profile = read_damaged(&sample.image, "module");
    assert_true(profile->nodes[2].map == HW_NONE);
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_context_entry *)image_data(&sample.image, sample.contexts))[2].leaf = 5;
    profile = read_damaged(&sample.image, "does not exist");
    assert_int_equal(profile->contexts[1].leaf, 0);
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_mib *)image_data(&sample.image, sample.mibs))[2].context = 4;
    profile = read_damaged(&sample.image, "unknown stack");
    assert_int_equal(profile->contexts[0].id, 0);
    assert_int_equal(profile->context_totals.allocations, 11); /* nothing is lost */
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_map_entry *)image_data(&sample.image, sample.maps))[0].path = 4000;
    ((struct hw_map_entry *)image_data(&sample.image, sample.maps))[1].build_id_size = 33;
    profile = read_damaged(&sample.image, "Strings are missing");
    assert_int_equal(profile->problem_count, 2);
    assert_int_equal(profile->maps[1].build_id_size, 0);
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_free_stack *)image_data(&sample.image, sample.free_stacks))[0].free_context = 9;
    profile = read_damaged(&sample.image, "free stacks");
    assert_int_equal(profile->free_stack_count, 0);
    hw_profile_free(profile);

    sample = sample_new();
    ((struct hw_process_info *)image_data(&sample.image, sample.process))->command_count = 1000000;
    profile = read_damaged(&sample.image, "command line");
    assert_int_equal(profile->command_count, 0);
    hw_profile_free(profile);
}

/* ---- processes that live ---- */

static uint64_t own_start_time(void)
{
    char line[1024], *field;
    int fd = open("/proc/self/stat", O_RDONLY);
    ssize_t got = read(fd, line, sizeof line - 1);
    close(fd);
    assert_true(got > 0);
    line[got] = 0;
    field = strrchr(line, ')') + 2;
    for (int i = 3; i < 22; i++)
        field = strchr(field, ' ') + 1;
    return strtoull(field, NULL, 10);
}

static void test_running(void **state)
{
    static const struct {
        uint64_t later;
        uint32_t flags, exit_kind;
        bool sealed, mapped, running;
    } cases[] = {
        {0, 0, 0, false, true, true},
        {1, 0, 0, false, true, false},
        {0, 0, 0, false, false, false}, /* left behind by exec: the process lives, but has another program and file */
        {0, HW_FILE_EXITED, 0, false, true, false},
        {0, 0, HW_EXIT_EXEC, false, true, false},
        {0, 0, 0, true, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample sample = sample_new();
        struct hw_process_info *process = image_data(&sample.image, sample.process);
        process->pid = (uint32_t)getpid();
        process->start_time_jiffies = own_start_time() + cases[i].later;
        process->exit_kind = cases[i].exit_kind;
        image_header(&sample.image)->flags |= cases[i].flags;
        if (cases[i].sealed)
            image_seal(&sample.image);
        struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
        void *mapping = mmap(NULL, HW_FILE_PAGE, PROT_READ, MAP_SHARED, file.fd, 0);
        assert_true(mapping != MAP_FAILED);
        if (!cases[i].mapped)
            munmap(mapping, HW_FILE_PAGE);
        struct hw_profile *profile = hw_profile_read(file.path, NULL);
        assert_non_null(profile);
        if (profile->running != cases[i].running)
            fail_msg("case %zu: running is %d", i, profile->running);
        hw_profile_free(profile);
        if (cases[i].mapped)
            munmap(mapping, HW_FILE_PAGE);
        close(file.fd);
        image_free(&sample.image);
    }
}

/* A writer as the rules of the format demand: what is referred to is written first, `used` is raised last. Makes MOST
 * contexts, one every few microseconds, and then waits. */
static void write_on(unsigned char *base, const struct sample *sample, uint32_t most)
{
#define ENTRY(name) ((struct hw_section *)(base + sample->name))
#define DATA(name)  ((void *)(base + ENTRY(name)->offset))
#define RAISE(name) __atomic_add_fetch(&ENTRY(name)->used, ENTRY(name)->entry_size, __ATOMIC_RELEASE)
    struct hw_stack_node *nodes = DATA(stacks);
    struct hw_context_entry *contexts = DATA(contexts);
    struct hw_mib *mibs = DATA(mibs);
    struct hw_map_entry *maps = DATA(maps);
    char *strings = DATA(strings);
    for (uint32_t i = 5; i < most; i++) {
        /* A small table of MIBs whose slots change hands, so that a slot may name a context newer than its extent. */
        struct hw_mib *mib = &mibs[i % 4];
        if (i % 16 == 0) {
            uint64_t at = ENTRY(strings)->used;
            strings[at] = 'm';
            __atomic_store_n(&ENTRY(strings)->used, at + 2, __ATOMIC_RELEASE);
            maps[ENTRY(maps)->used / sizeof *maps] = (struct hw_map_entry){.path = (uint32_t)at};
            RAISE(maps);
        }
        nodes[i] = (struct hw_stack_node){i, (uint32_t)(ENTRY(maps)->used / sizeof *maps) - 1, i - 1};
        RAISE(stacks);
        contexts[i - 1] = (struct hw_context_entry){.leaf = i};
        RAISE(contexts);
        __atomic_store_n(&mib->context, i - 1, __ATOMIC_RELEASE);
        __atomic_store_n(&mib->allocations, mib->allocations + 1, __ATOMIC_RELAXED);
        for (volatile int wait = 0; wait < 1000; wait = wait + 1)
            ;
    }
    for (;;)
        pause();
#undef ENTRY
#undef DATA
#undef RAISE
}

/* The sample with room to grow in the sections that write_on fills. */
static struct sample growing_sample(size_t most)
{
    struct sample sample = sample_new();
    struct image grown = image_new(), *image = &sample.image;
    size_t *positions[] = {&sample.process, &sample.strings,  &sample.maps,
                           &sample.stacks,  &sample.contexts, &sample.mibs};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct hw_section *entry = image_section(image, *positions[i]);
        *positions[i] = image_add(&grown, entry->type, entry->entry_size, image->bytes + entry->offset, entry->used,
                                  entry->used + most * (entry->type == HW_SECTION_MAPS ? 8 : 16));
    }
    image_free(image);
    sample.image = grown;
    return sample;
}

/* Counts what is wrong with one copy of a growing file. */
static size_t look_at_growing(const struct memory_file *file, uint64_t *last, size_t *contexts)
{
    struct hw_error error;
    struct hw_profile *profile = hw_profile_read(file->path, &error);
    if (!profile) {
        print_error("%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < profile->problem_count; i++)
        print_error("%s\n", profile->problems[i]);
    size_t wrong = profile->problem_count + (profile->context_totals.allocations < *last) +
                   (profile->context_entry_count < *contexts);
    *last = profile->context_totals.allocations;
    *contexts = profile->context_entry_count;
    hw_profile_free(profile);
    return wrong;
}

static void test_read_while_written(void **state)
{
    enum { ROUNDS = 8, MOST = 10000 };
    size_t wrong = 0, reads = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sample sample = growing_sample(MOST);
        struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
        size_t contexts = 0;
        uint64_t last = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            unsigned char *base = mmap(NULL, sample.image.size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
            if (base == MAP_FAILED)
                _exit(1);
            write_on(base, &sample, MOST);
        }
        /* Half of the rounds end with kill -9 in the middle. */
        while (contexts < (round % 2 ? MOST / 2 : MOST - 1) && waitpid(child, NULL, WNOHANG) == 0 && wrong == 0) {
            wrong += look_at_growing(&file, &last, &contexts);
            reads++;
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        wrong += look_at_growing(&file, &last, &contexts);
        assert_true(contexts >= MOST / 2);
        close(file.fd);
        image_free(&sample.image);
    }
    assert_int_equal(wrong, 0);
    assert_true(reads >= ROUNDS);
}

/* ---- the documentation ---- */

static FILE *open_document(const char *mode)
{
    return fopen(TEST_SOURCES "/../docs/development/profile-format.md", mode);
}

/* Every line "    03000  00 00 40 …" of the annotated sample must be what the sample really has there. */
static void test_documentation(void **state)
{
    char line[1024];
    FILE *document = open_document("r");
    assert_non_null(document);
    /* Behind the sample the document goes on with that of counted accesses. */
    struct sample sample = sample_new(), counted = sample_new();
    const size_t first = sample.image.size;
    sample_add_accesses(&counted);
    image_seal(&sample.image);
    size_t lines = 0, bytes = 0, access_lines = 0;
    while (fgets(line, sizeof line, document)) {
        size_t offset;
        int read = 0;
        unsigned byte;
        if (sscanf(line, "    %5zx  %n", &offset, &read) != 1 || read != 11)
            continue;
        const struct image *image = offset < first ? &sample.image : &counted.image;
        lines++;
        access_lines += offset >= first;
        for (const char *next = line + read; sscanf(next, "%2x%n", &byte, &read) == 1 && read == 2; next += 3) {
            if (offset >= image->size || image->bytes[offset] != byte)
                fail_msg("docs/development/profile-format.md is wrong at byte %zx (it is %02x): %s", offset,
                         offset < image->size ? image->bytes[offset] : 0, line);
            offset++;
            bytes++;
            if (next[2] != ' ' || next[3] == ' ')
                break;
        }
    }
    fclose(document);
    image_free(&sample.image);
    image_free(&counted.image);
    assert_true(lines - access_lines > 80);
    assert_true(access_lines > 20);
    assert_true(bytes > 16 * (lines - 10));
}

/* The table of sections as sections.def has it. */
static void print_sections(FILE *table)
{
    static const struct {
        uint32_t number;
        const char *name, *entry, *what;
        uint32_t size;
    } sections[] = {
#define HW_SECTION(number, name, entry, size, least, turn, flags, look_up, few, packing, title, what)                  \
    {number, #name, #entry, what, size},
#include "profile/sections.def"
    };
    fputs("| number | section | entry | bytes | refers to | |\n| --- | --- | --- | --- | --- | --- |\n", table);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const char *entry = strchr(sections[i].entry, ' ') ? strchr(sections[i].entry, ' ') + 1 : sections[i].entry;
        bool named[HW_SECTION_KNOWN] = {false};
        fprintf(table, "| %u | %s | `%s` | %u | ", sections[i].number, sections[i].name, entry, sections[i].size);
        for (size_t k = 0; k < hw_reference_count; k++)
            named[hw_references[k].to] |= hw_references[k].from == sections[i].number;
        const char *comma = "";
        for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
            if (named[sections[k].number]) {
                fprintf(table, "%s%s", comma, sections[k].name);
                comma = ", ";
            }
        fprintf(table, "%s| %s |\n", *comma ? " " : "", sections[i].what);
    }
}

/* HEAPWISE_UPDATE_GOLDEN=1 in the environment writes the table anew. */
static void test_documented_sections(void **state)
{
    static char text[1 << 20];
    char *table = NULL;
    size_t size;
    FILE *document = open_document("r"), *memory = open_memstream(&table, &size);
    assert_non_null(document);
    print_sections(memory);
    fclose(memory);
    size = fread(text, 1, sizeof text - 1, document);
    fclose(document);
    text[size] = '\0';
    char *start = strstr(text, "| number | section |"), *end = start ? strstr(start, "\n\n") : NULL;
    assert_non_null(end);
    end[0] = '\0';
    table[strlen(table) - 1] = '\0';
    const bool same = !strcmp(start, table);
    const char *update = getenv("HEAPWISE_UPDATE_GOLDEN");
    if (!same && update && *update) {
        FILE *anew = open_document("w");
        assert_non_null(anew);
        fprintf(anew, "%.*s%s\n%s", (int)(start - text), text, table, end + 1);
        fclose(anew);
    } else if (!same) {
        fail_msg("docs/development/profile-format.md does not have the sections of sections.def:\n%s", table);
    }
    free(table);
}

/* A run that was cut off after a wait was written down as a call, and before it was of its lock. */
static void test_futexes_are_one_fact(void **state)
{
    static struct hw_profile_inside inside; /* large */
    const struct hw_profile profile = {0};
    struct hw_operation_call calls[] = {{.call = HW_CALL_FUTEX_WAIT, .count = 46, .ticks = 4600, .errors = 46},
                                        {.call = HW_CALL_FUTEX_WAKE, .count = 12, .ticks = 70}};
    struct hw_operation_lock locks[] = {{.kind = HW_LOCK_OTHERS}, {.kind = HW_LOCK_FUTEX}, {.kind = HW_LOCK_MUTEX}};
    struct hw_tables tables = {0};
    locks[1].use[0][0] = (struct hw_lock_use){.count = 11, .contended = 45, .wait_ticks = 4500};
    locks[2].use[0][0] = (struct hw_lock_use){.count = 100, .contended = 50, .wait_ticks = 9};
    tables.of[HW_SECTION_OPERATION_CALLS] = (struct hw_table){.entries = calls, .count = 2};
    tables.of[HW_SECTION_OPERATION_LOCKS] = (struct hw_table){.entries = locks, .count = 3};
    for (unsigned others = 0; others < 2; others++) { /* where some locks have no entry calls are what is known */
        struct hw_arena arena = {0};
        inside = (struct hw_profile_inside){0};
        locks[0].use[0][0].contended = others;
        assert_true(hw_profile_take_inside(&inside, &profile, &arena, &tables));
        const struct hw_profile_call waits = hw_profile_call_of(&inside, HW_CALL_FUTEX_WAIT, -1);
        assert_int_equal(waits.count, others ? 46 : 45);
        assert_int_equal(waits.ticks, others ? 4600 : 4500);
        assert_int_equal(waits.errors, waits.count);
        assert_int_equal(hw_profile_call_of(&inside, HW_CALL_FUTEX_WAKE, -1).count, others ? 12 : 11);
        assert_int_equal(hw_profile_call_of(&inside, HW_CALL_FUTEX_WAKE, -1).ticks, 70);
        assert_true(inside.calls_observed);
        hw_arena_free(&arena);
    }
}

TEST_LIST(cmocka_unit_test(test_unsealed), cmocka_unit_test(test_sealed), cmocka_unit_test(test_stack),
          cmocka_unit_test(test_scattered), cmocka_unit_test(test_directory_with_spare_entries),
          cmocka_unit_test(test_newer_minor), cmocka_unit_test(test_newer_major), cmocka_unit_test(test_no_profile),
          cmocka_unit_test(test_unreadable), cmocka_unit_test(test_clock), cmocka_unit_test(test_long_lifetimes),
          cmocka_unit_test(test_duration_of_killed), cmocka_unit_test(test_ages), cmocka_unit_test(test_peak_epochs),
          cmocka_unit_test(test_in_flight), cmocka_unit_test(test_many_entries), cmocka_unit_test(test_unknown_stack),
          cmocka_unit_test(test_timeline_in_motion), cmocka_unit_test(test_bad_references),
          cmocka_unit_test(test_running), cmocka_unit_test(test_read_while_written),
          cmocka_unit_test(test_documentation), cmocka_unit_test(test_documented_sections),
          cmocka_unit_test(test_futexes_are_one_fact))
