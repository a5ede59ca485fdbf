/* repack.c - a sealed profile, written anew with packed extents (pack.h).
 *
 * Works on sections as they lie in the file, not on tables, so that entries with fields of newer versions and sections
 * that are not known come through whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"
#include "profile/container/write.h"

struct repack {
    struct hw_container container;
    struct hw_section_source sections[HW_SECTIONS_MOST];
    size_t count;
    struct hw_error *error;
};

static bool refuse(struct repack *repack, const char *why)
{
    hw_error_set(repack->error, "cannot rewrite '%s': %s", repack->container.path, why);
    return false;
}

/* Appends the bytes of an extent to its section, of which BYTES has room for all. */
static bool read_extent(struct repack *repack, const struct hw_extent *extent, struct hw_section_source *section,
                        char *bytes)
{
    char *target = bytes + section->size;
    const uint64_t used = extent->entry.used;
    if (extent->entry.entry_size != section->entry_size || used % section->entry_size != 0)
        return refuse(repack, "its entries are of different sizes");
    const int64_t got = hw_container_read(repack->container.fd, target, used, extent->entry.offset);
    if (got != (int64_t)used)
        return refuse(repack, got < 0 ? strerror(errno) : "it is cut short");
    if (XXH64(target, used, 0) != extent->entry.checksum)
        return refuse(repack, "it is damaged (a checksum is wrong)");
    section->size += used;
    return true;
}

/* All extents of the type of number FIRST. */
static bool read_section(struct repack *repack, size_t first)
{
    const struct hw_container *container = &repack->container;
    const struct hw_section *entry = &container->extents[first].entry;
    size_t room = 0;
    for (size_t i = first; i < container->extent_count; i++)
        if (container->extents[i].entry.type == entry->type)
            room += container->extents[i].entry.used;
    if (room == 0 && hw_section_rule(entry->type))
        return true;
    if (repack->count == HW_SECTIONS_MOST)
        return refuse(repack, "it has too many sections");
    if (entry->entry_size == 0)
        return refuse(repack, "a section of a newer version has no entries");
    char *bytes = malloc(room ? room : 1);
    if (!bytes)
        return refuse(repack, "not enough memory");
    struct hw_section_source *section = &repack->sections[repack->count++];
    *section = (struct hw_section_source){entry->type, entry->entry_size, entry->version, bytes, 0};
    for (size_t i = first; i < container->extent_count; i++)
        if (container->extents[i].entry.type == entry->type &&
            !read_extent(repack, &container->extents[i], section, bytes))
            return false;
    return true;
}

static bool has_section(const struct repack *repack, uint32_t type)
{
    for (size_t i = 0; i < repack->count; i++)
        if (repack->sections[i].type == type)
            return true;
    return false;
}

/* PROCESS is looked for on the first page: it comes first. */
static bool read_sections(struct repack *repack)
{
    const struct hw_container *container = &repack->container;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < container->extent_count; i++) {
            const uint32_t type = container->extents[i].entry.type;
            if (type == HW_SECTION_DIRECTORY || has_section(repack, type) ||
                (pass == 0) != (type == HW_SECTION_PROCESS))
                continue;
            if (!read_section(repack, i))
                return false;
        }
    }
    return repack->count > 0 || refuse(repack, "it holds nothing");
}

/* *DONE: there is nothing to do. */
static bool check(struct repack *repack, bool *done)
{
    const struct hw_container *container = &repack->container;
    *done = false;
    if (container->problems->count > 0)
        return refuse(repack, container->problems->sentences[0]);
    if (!container->sealed)
        return refuse(repack, "it is not sealed");
    if (container->cut)
        return refuse(repack, "it is cut short");
    for (size_t i = 0; i < container->extent_count; i++) {
        if (container->extents[i].entry.flags & ~HW_SECTION_PACKED)
            return refuse(repack, "it is of a newer version");
        *done |= container->extents[i].entry.flags != 0;
    }
    return true;
}

static bool write_sections(struct repack *repack, bool packed, int level)
{
    const struct hw_file_header *header = &repack->container.header;
    const struct hw_write_options options = {
        .packed = packed,
        .zstd_level = level,
        .file_flags = header->flags,
        .session = header->session,
        .version_minor = header->version_minor,
    };
    size_t size;
    unsigned char *bytes = hw_sections_serialize(repack->sections, repack->count, &options, &size, repack->error);
    const bool fine = bytes && hw_file_write(repack->container.path, true, bytes, size, repack->error);
    free(bytes);
    return fine;
}

/* Takes the place of the section of that type, if there is one. */
static bool add_section(struct repack *repack, const struct hw_section_source *added)
{
    struct hw_section_source *section = NULL;
    for (size_t i = 0; i < repack->count; i++)
        if (repack->sections[i].type == added->type)
            section = &repack->sections[i];
    if (!section && repack->count == HW_SECTIONS_MOST)
        return refuse(repack, "it has too many sections");
    char *bytes = malloc(added->size ? added->size : 1);
    if (!bytes)
        return refuse(repack, "not enough memory");
    memcpy(bytes, added->bytes, added->size);
    if (section)
        free((void *)(uintptr_t)section->bytes);
    else
        section = &repack->sections[repack->count++];
    *section = *added;
    section->bytes = bytes;
    return true;
}

/* Strings come behind those that there are: what refers to them in the other sections that are added moves with them.
 */
static bool add_strings(struct repack *repack, const struct hw_section_source *added, size_t *moved)
{
    struct hw_section_source *section = NULL;
    for (size_t i = 0; i < repack->count; i++)
        if (repack->sections[i].type == HW_SECTION_STRINGS)
            section = &repack->sections[i];
    *moved = section ? section->size : 0;
    if (!section)
        return add_section(repack, added);
    char *bytes = added->size < UINT32_MAX - section->size ? malloc(section->size + added->size) : NULL;
    if (!bytes)
        return refuse(repack, "not enough memory");
    memcpy(bytes, section->bytes, section->size);
    memcpy(bytes + section->size, added->bytes, added->size);
    free((void *)(uintptr_t)section->bytes);
    section->bytes = bytes;
    section->size += added->size;
    return true;
}

static void move_references(const struct hw_section_source *section, uint32_t moved)
{
    for (size_t i = 0; i < hw_reference_count; i++) {
        const struct hw_reference *reference = &hw_references[i];
        if (reference->from != section->type || reference->to != HW_SECTION_STRINGS ||
            reference->offset + sizeof(uint32_t) > section->entry_size)
            continue;
        char *bytes = (char *)(uintptr_t)section->bytes + reference->offset;
        for (size_t at = 0; at < section->size; at += section->entry_size) {
            uint32_t string;
            memcpy(&string, bytes + at, sizeof string);
            string += string ? moved : 0;
            memcpy(bytes + at, &string, sizeof string);
        }
    }
}

static bool add_sections(struct repack *repack, const struct hw_section_source *added, size_t count)
{
    size_t moved = 0;
    for (size_t i = 0; i < count; i++)
        if (!(added[i].type == HW_SECTION_STRINGS ? add_strings(repack, &added[i], &moved)
                                                  : add_section(repack, &added[i])))
            return false;
    for (size_t i = 0; moved && i < repack->count; i++)
        for (size_t j = 0; j < count; j++)
            if (repack->sections[i].type == added[j].type)
                move_references(&repack->sections[i], (uint32_t)moved);
    return true;
}

static bool rewrite(const char *path, const struct hw_section_source *added, size_t added_count, int zstd_level,
                    struct hw_error *error)
{
    struct hw_arena arena = {0};
    struct hw_problems problems = {.arena = &arena};
    struct repack repack = {.container = {.path = path, .problems = &problems}, .error = error};
    repack.container.fd = hw_container_open(path, false, error);
    if (repack.container.fd < 0)
        return false;
    bool done = false;
    bool fine = hw_container_load(&repack.container, error) && check(&repack, &done);
    if (fine && done && added_count)
        fine = refuse(&repack, "it is packed already");
    else if (fine && !done) {
        fine = read_sections(&repack) && add_sections(&repack, added, added_count);
        fine = fine && write_sections(&repack, added_count == 0, zstd_level);
    }
    for (size_t i = 0; i < repack.count; i++)
        free((void *)(uintptr_t)repack.sections[i].bytes);
    close(repack.container.fd);
    hw_container_free(&repack.container);
    hw_arena_free(&arena);
    return fine;
}

bool hw_profile_pack(const char *path, int zstd_level, struct hw_error *error)
{
    return rewrite(path, NULL, 0, zstd_level, error);
}

bool hw_profile_add_sections(const char *path, const struct hw_section_source *added, size_t count,
                             struct hw_error *error)
{
    return count == 0 || rewrite(path, added, count, 0, error);
}
