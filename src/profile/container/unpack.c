/* unpack.c - a packed extent -> entries (pack.h). Nothing here trusts a byte: what a chunk claims decides about memory
 * only within the bounds that its entries give. */
#include "profile/container/pack.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "profile/container/container.h"

static uint64_t index_end(const struct hw_packed *packed)
{
    return sizeof packed->header + (uint64_t)packed->header.chunk_count * sizeof *packed->index;
}

/* ---- header and index ---- */

static bool header_is_possible(const struct hw_packed *packed)
{
    const struct hw_packed_header *header = &packed->header;
    const uint64_t entries = packed->entry.entries;
    if (header->chunk_entries == 0 || header->chunk_entries > HW_PACK_ENTRIES_MOST)
        return false;
    if (header->chunk_entries > 1 && (uint64_t)header->chunk_entries * packed->entry.entry_size > HW_PACK_BYTES_MOST)
        return false;
    return header->chunk_count == entries / header->chunk_entries + (entries % header->chunk_entries != 0) &&
           index_end(packed) <= packed->entry.used;
}

static bool index_is_good(const struct hw_packed *packed)
{
    struct hw_packed_header header = packed->header;
    XXH64_state_t *state = XXH64_createState();
    header.checksum = 0;
    bool good = false;
    if (state && XXH64_reset(state, 0) == XXH_OK && XXH64_update(state, &header, sizeof header) == XXH_OK &&
        XXH64_update(state, packed->index, header.chunk_count * sizeof *packed->index) == XXH_OK)
        good = XXH64_digest(state) == packed->header.checksum;
    XXH64_freeState(state);
    return good;
}

enum hw_packed_outcome hw_packed_open(struct hw_packed *packed, int fd, const struct hw_extent *extent)
{
    const uint64_t offset = extent->entry.offset;
    *packed = (struct hw_packed){.fd = fd, .entry = extent->entry, .available = extent->available};
    const enum hw_packed_outcome cut = packed->available < packed->entry.used ? HW_PACKED_CUT : HW_PACKED_DAMAGED;
    if (packed->available < sizeof packed->header ||
        hw_container_read(fd, &packed->header, sizeof packed->header, offset) != sizeof packed->header)
        return cut;
    if (packed->header.coding != HW_PACK_CODING)
        return HW_PACKED_NEWER;
    if (!header_is_possible(packed))
        return HW_PACKED_DAMAGED;
    if (index_end(packed) > packed->available)
        return cut;
    const size_t size = packed->header.chunk_count * sizeof *packed->index;
    packed->index = malloc(size ? size : 1);
    packed->numbers = calloc(packed->header.chunk_entries, sizeof *packed->numbers);
    packed->predicted = calloc(packed->header.chunk_entries, sizeof *packed->predicted);
    if (!packed->index || !packed->numbers || !packed->predicted)
        return HW_PACKED_NO_MEMORY;
    if (hw_container_read(fd, packed->index, size, offset + sizeof packed->header) != (int64_t)size)
        return cut;
    return index_is_good(packed) ? HW_PACKED_GOOD : HW_PACKED_DAMAGED;
}

void hw_packed_close(struct hw_packed *packed)
{
    free(packed->index);
    free(packed->stored);
    free(packed->raw);
    free(packed->numbers);
    free(packed->predicted);
    ZSTD_freeDCtx(packed->zstd);
    *packed = (struct hw_packed){.fd = -1};
}

size_t hw_packed_entries(const struct hw_packed *packed, size_t chunk)
{
    const uint64_t rest = packed->entry.entries - (uint64_t)chunk * packed->header.chunk_entries;
    return rest < packed->header.chunk_entries ? (size_t)rest : packed->header.chunk_entries;
}

/* ---- the bytes of a chunk ---- */

static bool make_room(unsigned char **buffer, size_t *room, size_t size)
{
    if (size <= *room)
        return true;
    unsigned char *larger = realloc(*buffer, size);
    if (!larger)
        return false;
    *buffer = larger;
    *room = size;
    return true;
}

/* Columns are never much larger than the entries; a newer writer may have some that are not known here. */
static uint64_t raw_size_most(const struct hw_packed *packed, size_t count)
{
    const uint64_t bytes = (uint64_t)count * packed->entry.entry_size;
    return packed->entry.entry_size == 1 ? bytes : 2 * bytes + 65536;
}

static bool chunk_is_possible(const struct hw_packed *packed, size_t number, size_t count)
{
    const struct hw_packed_chunk *chunk = &packed->index[number];
    return chunk->size <= packed->entry.used && chunk->offset >= index_end(packed) &&
           chunk->offset <= packed->entry.used - chunk->size && chunk->raw_size >= chunk->size &&
           chunk->raw_size <= raw_size_most(packed, count);
}

static enum hw_packed_outcome decompress(struct hw_packed *packed, const struct hw_packed_chunk *chunk)
{
    if (!packed->zstd)
        packed->zstd = ZSTD_createDCtx();
    if (!packed->zstd || !make_room(&packed->raw, &packed->raw_room, chunk->raw_size))
        return HW_PACKED_NO_MEMORY;
    const size_t got = ZSTD_decompressDCtx(packed->zstd, packed->raw, chunk->raw_size, packed->stored, chunk->size);
    return got == chunk->raw_size ? HW_PACKED_GOOD : HW_PACKED_DAMAGED;
}

/* Sets *COLUMNS to the bytes of columns of a chunk. */
static enum hw_packed_outcome read_chunk(struct hw_packed *packed, size_t number, size_t count,
                                         const unsigned char **columns)
{
    const struct hw_packed_chunk *chunk = &packed->index[number];
    if (!chunk_is_possible(packed, number, count))
        return HW_PACKED_DAMAGED;
    if (chunk->offset + chunk->size > packed->available)
        return HW_PACKED_CUT;
    if (!make_room(&packed->stored, &packed->stored_room, chunk->size ? chunk->size : 1))
        return HW_PACKED_NO_MEMORY;
    if (hw_container_read(packed->fd, packed->stored, chunk->size, packed->entry.offset + chunk->offset) !=
        (int64_t)chunk->size)
        return HW_PACKED_CUT;
    if (XXH64(packed->stored, chunk->size, 0) != chunk->checksum)
        return HW_PACKED_DAMAGED;
    if (chunk->raw_size == chunk->size) {
        *columns = packed->stored;
        return HW_PACKED_GOOD;
    }
    const enum hw_packed_outcome outcome = decompress(packed, chunk);
    *columns = packed->raw;
    return outcome;
}

/* ---- columns ---- */

static unsigned varied_length(const unsigned char *lengths, size_t i)
{
    return lengths[i / 2] >> (i % 2 ? 4 : 0) & 15;
}

/* Is the payload exactly as long as its lengths say? */
static bool payload_is_possible(const struct hw_packed_column *column, const unsigned char *payload, size_t count)
{
    if (column->length != HW_PACK_VARIED)
        return column->length <= 8 && column->size == (uint64_t)count * column->length;
    uint64_t total = (count + 1) / 2;
    if (column->size < total)
        return false;
    for (size_t i = 0; i < count; i++) {
        const unsigned length = varied_length(payload, i);
        if (length > 8)
            return false;
        total += length;
    }
    return column->size == total;
}

static void read_numbers(uint64_t *numbers, const struct hw_packed_column *column, const unsigned char *payload,
                         size_t count)
{
    const bool varied = column->length == HW_PACK_VARIED;
    const unsigned char *at = payload + (varied ? (count + 1) / 2 : 0);
    unsigned planes = varied ? 0 : column->length;
    memset(numbers, 0, count * sizeof *numbers);
    for (size_t i = 0; varied && i < count; i++)
        planes = varied_length(payload, i) > planes ? varied_length(payload, i) : planes;
    for (unsigned plane = 0; plane < planes; plane++) {
        for (size_t i = 0; !varied && i < count; i++)
            numbers[i] |= (uint64_t)*at++ << 8 * plane;
        for (size_t i = 0; varied && i < count; i++)
            if (varied_length(payload, i) > plane)
                numbers[i] |= (uint64_t)*at++ << 8 * plane;
    }
}

static uint64_t unfold(uint64_t number)
{
    return number >> 1 ^ -(number & 1);
}

/* Where the entries of a chunk go. */
struct target {
    unsigned char *entries;
    size_t size; /* of one */
    size_t count;
    uint32_t type;
};

/* Values -> fields. */
static void scatter(const uint64_t *numbers, const struct hw_pack_field *field, const struct target *target)
{
    unsigned char *at = target->entries + field->offset;
    if (field->width == 8)
        for (size_t i = 0; i < target->count; i++, at += target->size)
            memcpy(at, &numbers[i], 8);
    else if (field->width == 4)
        for (size_t i = 0; i < target->count; i++, at += target->size)
            memcpy(at, &numbers[i], 4);
    else
        for (size_t i = 0; i < target->count; i++, at += target->size)
            memcpy(at, &numbers[i], 2);
}

/* What is stored -> values. False when a reference is none. */
static bool restore(struct hw_packed *packed, const struct hw_packed_column *column, const struct target *target)
{
    uint64_t *numbers = packed->numbers, *predicted = packed->predicted, previous = 0;
    if (column->predictor == HW_PACK_VALUE)
        return true;
    if (column->predictor == HW_PACK_PREVIOUS) {
        for (size_t i = 0; i < target->count; i++)
            numbers[i] = previous += unfold(numbers[i]);
        return true;
    }
    if (!hw_pack_predict(target->type, column->predictor, column->reference, target->entries, target->size,
                         target->count, predicted))
        return false;
    for (size_t i = 0; i < target->count; i++)
        numbers[i] = unfold(numbers[i]) + predicted[i];
    return true;
}

static enum hw_packed_outcome read_column(struct hw_packed *packed, const struct hw_packed_column *column,
                                          const unsigned char *payload, const struct target *target)
{
    struct hw_pack_field field;
    uint64_t *numbers = packed->numbers;
    if (!hw_pack_field(target->type, column->tag, &field) || field.offset + field.width > target->size)
        return HW_PACKED_GOOD; /* of a newer version */
    if (column->predictor > HW_PACK_PRODUCT)
        return HW_PACKED_NEWER;
    if (!payload_is_possible(column, payload, target->count))
        return HW_PACKED_DAMAGED;
    read_numbers(numbers, column, payload, target->count);
    if (!restore(packed, column, target))
        return HW_PACKED_DAMAGED;
    scatter(numbers, &field, target);
    return HW_PACKED_GOOD;
}

static enum hw_packed_outcome read_columns(struct hw_packed *packed, const unsigned char *columns, size_t size,
                                           const struct target *target)
{
    for (size_t at = 0; at < size;) {
        struct hw_packed_column column;
        if (size - at < sizeof column)
            return HW_PACKED_DAMAGED;
        memcpy(&column, columns + at, sizeof column);
        at += sizeof column;
        if (column.size > size - at)
            return HW_PACKED_DAMAGED;
        const enum hw_packed_outcome outcome = read_column(packed, &column, columns + at, target);
        if (outcome != HW_PACKED_GOOD)
            return outcome;
        at += column.size;
    }
    return HW_PACKED_GOOD;
}

enum hw_packed_outcome hw_packed_read(struct hw_packed *packed, size_t chunk, void *entries, size_t size)
{
    const struct target target = {
        .entries = entries,
        .size = size,
        .count = hw_packed_entries(packed, chunk),
        .type = packed->entry.type,
    };
    const unsigned char *columns;
    const enum hw_packed_outcome outcome = read_chunk(packed, chunk, target.count, &columns);
    if (outcome != HW_PACKED_GOOD)
        return outcome;
    const size_t raw_size = packed->index[chunk].raw_size;
    if (packed->entry.entry_size != 1)
        return read_columns(packed, columns, raw_size, &target);
    if (raw_size != target.count)
        return HW_PACKED_DAMAGED;
    memcpy(entries, columns, raw_size);
    return HW_PACKED_GOOD;
}
