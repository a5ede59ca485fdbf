/* section.c - any entries of a section of a file, without reading the rest (pack.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"

#define NO_CHUNK UINT64_MAX

/* An extent, and which of the section's entries it holds. */
struct part {
    const struct hw_extent *extent;
    uint64_t first, count;
    struct hw_packed packed; /* open when `opened` */
    bool opened;
    uint64_t chunk; /* in `entries`; NO_CHUNK: none */
    unsigned char *entries;
};

struct hw_section_reader {
    const struct hw_container *container;
    const struct hw_section_rule *rule;
    struct part *parts;
    size_t part_count;
    uint64_t entries;
};

struct hw_section_reader *hw_section_open(const struct hw_container *container, uint32_t type, struct hw_error *error)
{
    struct hw_section_reader *reader = calloc(1, sizeof *reader);
    size_t count = 0;
    for (size_t i = 0; i < container->extent_count; i++)
        count += container->extents[i].entry.type == type;
    if (reader)
        reader->parts = calloc(count + 1, sizeof *reader->parts);
    if (!reader || !reader->parts) {
        hw_error_set(error, "cannot read '%s': not enough memory", container->path);
        free(reader);
        return NULL;
    }
    reader->container = container;
    reader->rule = hw_section_rule(type);
    for (size_t i = 0; reader->rule && i < container->extent_count; i++) {
        const struct hw_extent *extent = &container->extents[i];
        if (extent->entry.type != type)
            continue;
        struct part *part = &reader->parts[reader->part_count++];
        part->extent = extent;
        part->first = reader->entries;
        part->chunk = NO_CHUNK;
        part->count = extent->entry.flags & HW_SECTION_PACKED ? extent->entry.entries
                                                              : extent->entry.used / extent->entry.entry_size;
        reader->entries += part->count;
    }
    return reader;
}

void hw_section_close(struct hw_section_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->part_count; i++) {
        if (reader->parts[i].opened)
            hw_packed_close(&reader->parts[i].packed);
        free(reader->parts[i].entries);
    }
    free(reader->parts);
    free(reader);
}

uint64_t hw_section_entries(const struct hw_section_reader *reader)
{
    return reader->entries;
}

static bool fail(const struct hw_section_reader *reader, const char *why, struct hw_error *error)
{
    hw_error_set(error, "cannot read %s of '%s': %s", reader->rule ? reader->rule->name : "section",
                 reader->container->path, why);
    return false;
}

static bool packed_is_good(const struct hw_section_reader *reader, enum hw_packed_outcome outcome,
                           struct hw_error *error)
{
    return outcome == HW_PACKED_GOOD || fail(reader,
                                             outcome == HW_PACKED_CUT       ? "the file is cut short"
                                             : outcome == HW_PACKED_NEWER   ? "a newer heapwise is needed"
                                             : outcome == HW_PACKED_DAMAGED ? "the file is damaged"
                                                                            : "not enough memory",
                                             error);
}

static bool open_packed(struct hw_section_reader *reader, struct part *part, struct hw_error *error)
{
    if (part->opened)
        return true;
    part->opened = true;
    const enum hw_packed_outcome outcome = hw_packed_open(&part->packed, reader->container->fd, part->extent);
    if (packed_is_good(reader, outcome, error))
        return true;
    hw_packed_close(&part->packed);
    return part->opened = false;
}

size_t hw_section_chunk(struct hw_section_reader *reader, struct hw_error *error)
{
    struct part *part = reader->parts;
    if (reader->part_count == 0 || (reader->part_count == 1 && !(part->extent->entry.flags & HW_SECTION_PACKED)))
        return 1;
    if (reader->part_count > 1) {
        fail(reader, "it is in several pieces", error);
        return 0;
    }
    return open_packed(reader, part, error) ? part->packed.header.chunk_entries : 0;
}

/* Unpacks the chunk with entry INDEX of a part, unless it is there already. */
static bool load_chunk(struct hw_section_reader *reader, struct part *part, uint64_t index, struct hw_error *error)
{
    if (!open_packed(reader, part, error))
        return false;
    const uint64_t chunk = index / part->packed.header.chunk_entries;
    if (part->chunk == chunk)
        return true;
    const size_t room = (size_t)part->packed.header.chunk_entries * reader->rule->size;
    if (!part->entries)
        part->entries = malloc(room);
    if (!part->entries)
        return fail(reader, "not enough memory", error);
    part->chunk = NO_CHUNK;
    memset(part->entries, 0, room);
    if (!packed_is_good(reader, hw_packed_read(&part->packed, (size_t)chunk, part->entries, reader->rule->size), error))
        return false;
    part->chunk = chunk;
    return true;
}

/* Some of COUNT entries from INDEX on; returns how many, 0 with ERROR. */
static size_t read_packed(struct hw_section_reader *reader, struct part *part, uint64_t index, size_t count,
                          char *target, struct hw_error *error)
{
    if (!load_chunk(reader, part, index, error))
        return 0;
    const size_t size = reader->rule->size, in_chunk = part->packed.header.chunk_entries;
    const size_t at = (size_t)(index % in_chunk);
    if (count > in_chunk - at)
        count = in_chunk - at;
    memcpy(target, part->entries + at * size, count * size);
    return count;
}

static size_t read_plain(struct hw_section_reader *reader, struct part *part, uint64_t index, size_t count,
                         char *target, struct hw_error *error)
{
    const size_t size = reader->rule->size, entry_size = part->extent->entry.entry_size;
    const uint64_t start = index * entry_size;
    if (part->extent->available < start + (uint64_t)count * entry_size) {
        fail(reader, "the file is cut short", error);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        /* In one piece where entries are what this reader knows. */
        const size_t bytes = entry_size == size ? count * size : entry_size < size ? entry_size : size;
        const int64_t got = hw_container_read(reader->container->fd, target + i * size, bytes,
                                              part->extent->entry.offset + start + i * entry_size);
        if (got != (int64_t)bytes) {
            fail(reader, got < 0 ? strerror(errno) : "the file is cut short", error);
            return 0;
        }
        if (entry_size == size)
            break;
        if (entry_size < size)
            memset(target + i * size + entry_size, 0, size - entry_size);
    }
    return count;
}

bool hw_section_read(struct hw_section_reader *reader, uint64_t first, size_t count, void *target,
                     struct hw_error *error)
{
    if (first > reader->entries || count > reader->entries - first)
        return fail(reader, "there are fewer entries than requested", error);
    char *at = target;
    for (size_t i = 0; i < reader->part_count && count; i++) {
        struct part *part = &reader->parts[i];
        while (count && first >= part->first && first - part->first < part->count) {
            const uint64_t index = first - part->first;
            size_t some = part->count - index < count ? (size_t)(part->count - index) : count;
            some = part->extent->entry.flags & HW_SECTION_PACKED ? read_packed(reader, part, index, some, at, error)
                                                                 : read_plain(reader, part, index, some, at, error);
            if (some == 0)
                return false;
            first += some;
            count -= some;
            at += some * reader->rule->size;
        }
    }
    return true;
}
