/* make_profile_corpus.c - writes the inputs that fuzz_profile starts from: make_profile_corpus DIRECTORY */
#include <stdio.h>

#include "profile/container/pack.h"
#include "unit/profile/access_sections.h"

static int failed;

static void save(const char *directory, const char *name, const struct image *image)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image->bytes, 1, image->size, file) != image->size)
        failed = 1;
    if (file && fclose(file) != 0)
        failed = 1;
    if (failed)
        perror(path);
}

/* A copy of a sealed file, packed. */
static void save_packed(const char *directory, const char *name, const struct image *image, int level)
{
    char packed[256], path[4096];
    struct hw_error error = {""};
    snprintf(packed, sizeof packed, "%s.packed%d", name, level);
    save(directory, packed, image);
    snprintf(path, sizeof path, "%s/%s", directory, packed);
    if (hw_profile_pack(path, level, &error))
        return;
    fprintf(stderr, "%s\n", error.message);
    failed = 1;
}

/* The image as a running process would leave it, sealed, and packed. */
static void save_both(const char *directory, const char *name, struct image *image)
{
    char sealed[256];
    snprintf(sealed, sizeof sealed, "%s.sealed", name);
    save(directory, name, image);
    image_seal(image);
    save(directory, sealed, image);
    if (image_header(image)->directory_used > 0) {
        save_packed(directory, name, image, 0);
        save_packed(directory, name, image, 3);
    }
    image_free(image);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: make_profile_corpus DIRECTORY\n");
        return 2;
    }
    const char *directory = arguments[1];

    struct image empty = image_new();
    save_both(directory, "empty", &empty);

    struct sample sample = sample_new();
    save_both(directory, "sample", &sample.image);

    sample = sample_new();
    sample_add_accesses(&sample);
    save_both(directory, "access", &sample.image);

    sample = sample_new();
    sample_add_samples(&sample);
    sample_add_sides(&sample);
    save_both(directory, "samples", &sample.image);

    sample = sample_new();
    sample_add_words(&sample);
    sample_add_sides(&sample);
    save_both(directory, "words", &sample.image);

    sample = sample_new();
    for (uint32_t i = 0; i < 3; i++) {
        struct hw_mib mib = sample_mib(i);
        mib.allocations = 1;
        image_chain(&sample.image, 4);
        image_add(&sample.image, HW_SECTION_MIBS, sizeof mib, &mib, sizeof mib, 0);
        image_add(&sample.image, HW_SECTION_STRINGS, 1, "more", 5, 0);
        image_add(&sample.image, 60000 + i, 8, "unknown", 8, 0);
    }
    save_both(directory, "chained", &sample.image);

    struct sample fields = sample_new();
    sample_add_fields(&fields);
    save_both(directory, "fields", &fields.image);

    struct sample symbolised = sample_new();
    sample_add_symbols(&symbolised);
    save_both(directory, "symbolised", &symbolised.image);

    struct image newer = image_new();
    struct hw_process_info process = sample_process();
    unsigned char wide[2 * (sizeof(struct hw_mib) + 24)] = {0};
    struct hw_mib mib = sample_mib(0);
    mib.allocations = 1;
    memcpy(wide, &mib, sizeof mib);
    memcpy(wide + sizeof wide / 2, &mib, sizeof mib);
    image_header(&newer)->version_minor = HW_FILE_VERSION_MINOR + 1;
    image_add(&newer, HW_SECTION_PROCESS, sizeof process, &process, sizeof process, 0);
    image_add(&newer, HW_SECTION_MIBS, sizeof wide / 2, wide, sizeof wide, 0);
    save_both(directory, "newer", &newer);
    return failed;
}
