/* test_profile_close.c - sealing the file of a process that could not do so itself. */
#include <stdio.h>

#include "profile/profile.h"
#include "profile_writer.h"
#include "support/check.h"

#include <signal.h>
#include <sys/stat.h>

static size_t size_of(const struct memory_file *file)
{
    struct stat status;
    assert_int_equal(fstat(file->fd, &status), 0);
    return (size_t)status.st_size;
}

static bool is_unchanged(const struct memory_file *file, const struct image *image)
{
    size_t size = size_of(file);
    unsigned char *bytes = malloc(size + 1);
    bool same = size == image->size && pread(file->fd, bytes, size, 0) == (ssize_t)size &&
                memcmp(bytes, image->bytes, size) == 0;
    free(bytes);
    return same;
}

static struct hw_profile *read_good(const struct memory_file *file)
{
    struct hw_error error = {.message = ""};
    struct hw_profile *profile = hw_profile_read(file->path, &error);
    if (!profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s", profile->problems[i]);
    return profile;
}

static void expect_refusal(const struct image *image, const char *part)
{
    struct hw_error error = {.message = ""};
    struct memory_file file = memory_file(image->bytes, image->size);
    assert_false(hw_profile_close(file.path, HW_EXIT_CODE, 1, 0, 0, &error));
    if (!strstr(error.message, part))
        fail_msg("'%s' is not in: %s", part, error.message);
    assert_true(is_unchanged(&file, image));
    assert_false(hw_profile_close(file.path, HW_EXIT_CODE, 1, 0, 0, NULL));
    close(file.fd);
}

/* A killed process: sealed with its signal, the spare room of the last extent and what is behind it cut off. */
static void test_killed(void **state)
{
    struct sample sample = sample_new();
    size_t last = image_section(&sample.image, sample.mibs)->offset;
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    assert_int_equal(ftruncate(file.fd, (off_t)sample.image.size + 12345), 0); /* grown, not yet in use */
    assert_true(hw_profile_close(file.path, HW_EXIT_SIGNAL, SIGKILL, 3 << 20, 0, NULL));
    assert_int_equal(size_of(&file), last + HW_FILE_PAGE); /* three pages of room, 1024 bytes used */
    struct hw_profile *profile = read_good(&file);
    assert_true(profile->sealed);
    assert_true(profile->header.flags & HW_FILE_EXITED);
    assert_int_equal(profile->header.total_size, last + HW_FILE_PAGE);
    assert_int_equal(profile->process.exit_kind, HW_EXIT_SIGNAL);
    assert_int_equal(profile->process.exit_value, SIGKILL);
    assert_int_equal(profile->process.peak_rss_bytes, 3 << 20);
    assert_int_equal(profile->context_totals.allocations, 11);
    assert_string_equal(profile->command[3], "end");
    hw_profile_free(profile);
    close(file.fd);
    image_free(&sample.image);
}

/* Whatever the container looks like: the result is what an independent sealer makes of the same file. */
static void test_chained_directories(void **state)
{
    struct sample sample = sample_new();
    struct image *image = &sample.image;
    for (uint32_t i = 0; i < 5; i++) {
        struct hw_mib mib = sample_mib(3);
        mib.allocations = 1;
        image_chain(image, 64 / (i + 1));
        image_add(image, HW_SECTION_MIBS, sizeof mib, &mib, sizeof mib, 0);
        image_add(image, 900 + i, 1, "of a newer version", 18, 0);
    }
    struct memory_file file = memory_file(image->bytes, image->size);
    assert_true(hw_profile_close(file.path, HW_EXIT_CODE, 7, 0, 0, NULL));
    struct hw_process_info *process = image_data(image, sample.process);
    process->exit_kind = HW_EXIT_CODE;
    process->exit_value = 7;
    image_header(image)->flags |= HW_FILE_EXITED;
    image_seal(image);
    assert_true(is_unchanged(&file, image));
    hw_profile_free(read_good(&file));
    close(file.fd);
    image_free(image);
}

static void test_unknown_exit(void **state)
{
    struct sample sample = sample_new();
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    assert_true(hw_profile_close(file.path, HW_EXIT_UNKNOWN, 0, 0, 0, NULL));
    struct hw_profile *profile = read_good(&file);
    assert_true(profile->sealed);
    assert_false(profile->header.flags & HW_FILE_EXITED);
    assert_int_equal(profile->process.peak_rss_bytes, 1 << 20); /* never lowered */
    hw_profile_free(profile);
    /* Known later after all. */
    assert_true(hw_profile_close(file.path, HW_EXIT_CODE, 3, 0, 0, NULL));
    profile = read_good(&file);
    assert_true(profile->header.flags & HW_FILE_EXITED);
    assert_int_equal(profile->process.exit_value, 3);
    hw_profile_free(profile);
    close(file.fd);
    image_free(&sample.image);
}

/* A sealed file with an exit status stays as it is, byte by byte; also after an exec, which ended the program. */
static void test_sealed_already(void **state)
{
    static const enum hw_exit_kind kinds[] = {HW_EXIT_CODE, HW_EXIT_SIGNAL, HW_EXIT_EXEC};
    for (size_t i = 0; i < 3; i++) {
        struct sample sample = sample_new();
        struct hw_process_info *process = image_data(&sample.image, sample.process);
        process->exit_kind = kinds[i];
        image_header(&sample.image)->flags |= HW_FILE_EXITED;
        image_seal(&sample.image);
        struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
        assert_true(hw_profile_close(file.path, HW_EXIT_CODE, 9, 0, 0, NULL));
        assert_true(is_unchanged(&file, &sample.image));
        close(file.fd);
        image_free(&sample.image);
    }
}

/* Adding the exit status must not make damage elsewhere look sound. */
static void test_damage_stays_visible(void **state)
{
    struct sample sample = sample_new();
    image_seal(&sample.image);
    ((struct hw_mib *)image_data(&sample.image, sample.mibs))->bytes++;
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    assert_true(hw_profile_close(file.path, HW_EXIT_CODE, 1, 0, 0, NULL));
    struct hw_profile *profile = hw_profile_read(file.path, NULL);
    assert_non_null(profile);
    assert_int_equal(profile->problem_count, 1);
    assert_int_equal(profile->process.exit_kind, HW_EXIT_CODE);
    hw_profile_free(profile);
    close(file.fd);
    ((struct hw_mib *)image_data(&sample.image, sample.mibs))->bytes--;
    ((struct hw_process_info *)image_data(&sample.image, sample.process))->cpus++;
    expect_refusal(&sample.image, "process section is damaged");
    image_free(&sample.image);
}

static void test_refusals(void **state)
{
    struct hw_error error = {.message = ""};
    assert_false(hw_profile_close("/nonexistent/file", HW_EXIT_CODE, 0, 0, 0, &error));
    assert_non_null(strstr(error.message, "No such file"));
    assert_false(hw_profile_close("/dev/null", HW_EXIT_CODE, 0, 0, 0, &error));

    struct image image = image_new();
    expect_refusal(&image, "only just started");
    memset(image.bytes, 0, 8);
    expect_refusal(&image, "not a Heapwise profile");
    image_free(&image);

    struct sample sample = sample_new();
    image_header(&sample.image)->version_major = 2;
    expect_refusal(&sample.image, "newer heapwise");
    image_free(&sample.image);

    sample = sample_new();
    image_section(&sample.image, sample.mibs)->used = UINT64_MAX;
    expect_refusal(&sample.image, "uses more than its size");
    image_free(&sample.image);

    sample = sample_new();
    image_resize(&sample.image, image_section(&sample.image, sample.mibs)->offset + 100);
    expect_refusal(&sample.image, "cut short");
    image_free(&sample.image);

    sample = sample_new();
    image_seal(&sample.image);
    sample.image.bytes[HW_FILE_PAGE - 1] ^= 1;
    expect_refusal(&sample.image, "first page is damaged");
    image_free(&sample.image);
}

/* The file of a process that still writes it is left alone. */
static void test_running(void **state)
{
    struct sample sample = sample_new();
    struct hw_process_info *process = image_data(&sample.image, sample.process);
    char line[1024] = "", *field;
    FILE *stat = fopen("/proc/self/stat", "r");
    assert_non_null(stat);
    assert_non_null(fgets(line, sizeof line, stat));
    fclose(stat);
    field = strrchr(line, ')') + 2;
    for (int i = 3; i < 22; i++)
        field = strchr(field, ' ') + 1;
    process->pid = (uint32_t)getpid();
    process->start_time_jiffies = strtoull(field, NULL, 10);
    struct memory_file file = memory_file(sample.image.bytes, sample.image.size);
    void *mapping = mmap(NULL, HW_FILE_PAGE, PROT_READ, MAP_SHARED, file.fd, 0);
    struct hw_error error = {.message = ""};
    assert_true(mapping != MAP_FAILED);
    assert_false(hw_profile_close(file.path, HW_EXIT_CODE, 0, 0, 0, &error));
    assert_non_null(strstr(error.message, "still runs"));
    assert_true(is_unchanged(&file, &sample.image));
    /* It has replaced its program by exec and left the file behind. */
    munmap(mapping, HW_FILE_PAGE);
    assert_true(hw_profile_close(file.path, HW_EXIT_EXEC, 0, 0, 0, NULL));
    close(file.fd);
    image_free(&sample.image);
}

static void test_unwritable(void **state)
{
    char path[] = "/tmp/heapwise-test-XXXXXX";
    struct sample sample = sample_new();
    struct hw_error error = {.message = ""};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, sample.image.bytes, sample.image.size), sample.image.size);
    close(fd);
    chmod(path, 0400);
    if (access(path, W_OK) != 0) { /* root may write everything */
        assert_false(hw_profile_close(path, HW_EXIT_CODE, 0, 0, 0, &error));
        assert_non_null(strstr(error.message, "Permission denied"));
    }
    unlink(path);
    image_free(&sample.image);
}

/* Any damage: either nothing is changed, or the result is a sealed file. */
static void test_random_damage(void **state)
{
    uint64_t seed = 88172645463325252ull;
    struct sample sample = sample_new();
    image_chain(&sample.image, 4);
    image_add(&sample.image, 500, 1, "x", 1, 0);
    for (int round = 0; round < 3000; round++) {
        struct image image = {0};
        image_resize(&image, sample.image.size);
        memcpy(image.bytes, sample.image.bytes, image.size);
        if (round % 2)
            image_seal(&image);
        for (int flips = 0; flips < 2; flips++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            image.bytes[seed % 4 ? seed / 8 % 1200 : seed / 8 % image.size] ^= (unsigned char)(1u << (seed >> 60) % 8);
        }
        struct memory_file file = memory_file(image.bytes, image.size);
        struct hw_error error = {.message = ""};
        if (hw_profile_close(file.path, HW_EXIT_SIGNAL, 9, 0, 0, &error)) {
            struct hw_profile *profile = hw_profile_read(file.path, &error);
            assert_true(profile ? profile->sealed : strlen(error.message) > 0);
            hw_profile_free(profile);
        } else {
            assert_true(strlen(error.message) > 0);
            assert_true(is_unchanged(&file, &image));
        }
        close(file.fd);
        image_free(&image);
    }
    image_free(&sample.image);
}

TEST_LIST(cmocka_unit_test(test_killed), cmocka_unit_test(test_chained_directories),
          cmocka_unit_test(test_unknown_exit), cmocka_unit_test(test_sealed_already),
          cmocka_unit_test(test_damage_stays_visible), cmocka_unit_test(test_refusals), cmocka_unit_test(test_running),
          cmocka_unit_test(test_unwritable), cmocka_unit_test(test_random_damage))
