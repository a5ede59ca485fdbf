/* pack.c - entries -> a packed extent (pack.h). */
#include "profile/container/pack.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "profile/container/container.h"

#define CHUNK_ENTRIES 4096
#define CHUNK_STRINGS 65536
#define FLUSH_LEAST   256 /* columns of so many bytes get a block of zstd's, and so statistics, of their own */

struct packer {
    uint32_t type, entry_size;
    int level;
    size_t room; /* of the buffers: bytes of columns that the largest chunk can have */
    size_t entries;
    unsigned char *columns;
    size_t used;
    size_t *ends; /* where columns end */
    size_t end_count;
    unsigned char *compressed;
    uint64_t *numbers, *residuals, *best;
    bool *words; /* those that no field covers */
    ZSTD_CCtx *zstd;
};

/* ---- one column ---- */

/* The difference of two values of a field, its sign in the lowest bit. */
static uint64_t fold(uint64_t difference, unsigned width)
{
    const unsigned unused = 64 - 8 * width;
    const int64_t number = (int64_t)(difference << unused) >> unused;
    return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

/* What the predictor of FIELD leaves of the numbers. */
static void find_residuals(struct packer *packer, const unsigned char *entries, size_t count,
                           const struct hw_pack_field *field)
{
    const uint64_t *numbers = packer->numbers;
    uint64_t *residuals = packer->residuals;
    hw_pack_predict(packer->type, field->predictor, field->reference, entries, packer->entry_size, count, residuals);
    for (size_t i = 0; i < count; i++) {
        const uint64_t previous = i && field->predictor == HW_PACK_PREVIOUS ? numbers[i - 1] : residuals[i];
        residuals[i] = fold(numbers[i] - previous, field->width);
    }
}

static unsigned length_of(uint64_t number)
{
    return (71 - (unsigned)__builtin_clzll(number | 1)) / 8 - !number;
}

/* Bytes of a payload, and the length that all numbers have, or HW_PACK_VARIED. */
static size_t payload_size(const uint64_t *numbers, size_t count, uint8_t *length)
{
    size_t total = 0;
    const unsigned first = length_of(numbers[0]);
    unsigned varied = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned this = length_of(numbers[i]);
        total += this;
        varied |= this ^ first;
    }
    *length = varied ? HW_PACK_VARIED : (uint8_t)first;
    return total + (varied ? (count + 1) / 2 : 0);
}

static void put(struct packer *packer, const void *bytes, size_t size)
{
    memcpy(packer->columns + packer->used, bytes, size);
    packer->used += size;
}

static void put_payload(struct packer *packer, const uint64_t *numbers, size_t count, uint8_t length)
{
    unsigned char *at = packer->columns + packer->used;
    for (size_t i = 0; length == HW_PACK_VARIED && i < count; i += 2)
        *at++ = (unsigned char)(length_of(numbers[i]) | (i + 1 < count ? length_of(numbers[i + 1]) << 4 : 0));
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= numbers[i];
    for (unsigned plane = 0; plane < length_of(any); plane++)
        for (size_t i = 0; i < count; i++) {
            const uint64_t rest = numbers[i] >> 8 * plane;
            *at = (unsigned char)rest; /* there is room for one more */
            at += length == HW_PACK_VARIED ? rest != 0 : 1;
        }
    packer->used = (size_t)(at - packer->columns);
}

/* Of what the values are and what the field's predictor leaves of them, the smaller. */
static void put_column(struct packer *packer, const unsigned char *entries, size_t count,
                       const struct hw_pack_field *field)
{
    struct hw_packed_column column = {.tag = field->tag};
    uint64_t any = 0;
    hw_pack_gather(field, entries, packer->entry_size, count, packer->numbers);
    for (size_t i = 0; i < count; i++)
        any |= packer->numbers[i];
    if (!any)
        return;
    const uint64_t *chosen = packer->numbers;
    size_t size = payload_size(chosen, count, &column.length);
    if (field->predictor != HW_PACK_VALUE) {
        uint8_t length;
        find_residuals(packer, entries, count, field);
        const size_t other = payload_size(packer->residuals, count, &length);
        if (other < size) {
            chosen = packer->residuals;
            size = other;
            column.length = length;
            column.predictor = (uint8_t)field->predictor;
            memcpy(column.reference, field->reference, sizeof column.reference);
        }
    }
    column.size = (uint32_t)size;
    put(packer, &column, sizeof column);
    put_payload(packer, chosen, count, column.length);
    packer->ends[packer->end_count++] = packer->used;
}

/* Entries of older versions end before fields that were added. */
static bool has_field(const struct packer *packer, const struct hw_pack_field *field)
{
    return (uint32_t)field->offset + field->width <= packer->entry_size;
}

static void put_columns(struct packer *packer, const unsigned char *entries, size_t count)
{
    size_t fields;
    const struct hw_pack_field *field = hw_pack_fields(packer->type, &fields);
    for (size_t i = 0; i < fields; i++)
        if (has_field(packer, &field[i]))
            put_column(packer, entries, count, &field[i]);
    for (uint32_t word = 0; word < packer->entry_size / 8; word++) {
        const struct hw_pack_field place = {
            .tag = (uint16_t)(HW_PACK_WORD + word),
            .offset = (uint16_t)(word * 8),
            .width = 8,
            .predictor = HW_PACK_PREVIOUS,
        };
        if (packer->words[word])
            put_column(packer, entries, count, &place);
    }
}

/* ---- one chunk ---- */

#define GAIN_LEAST 8 /* extents begin at multiples of 8: what saves less saves nothing in the file */

/* Columns have little to do with each other: each gets blocks of its own in the one frame. Returns the size, 0 when
 * nothing is gained. */
static size_t compress(struct packer *packer)
{
    ZSTD_outBuffer out = {packer->compressed, packer->used, 0}; /* no more room than what it is to be smaller than */
    size_t start = 0;
    ZSTD_CCtx_reset(packer->zstd, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(packer->zstd, packer->used);
    for (size_t i = 0; i < packer->end_count; i++) {
        const bool last = i + 1 == packer->end_count;
        if (!last && packer->ends[i] - start < FLUSH_LEAST)
            continue;
        ZSTD_inBuffer in = {packer->columns + start, packer->ends[i] - start, 0};
        if (ZSTD_compressStream2(packer->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush) != 0)
            return 0; /* an error, or the room is used up */
        start = packer->ends[i];
    }
    return out.pos + GAIN_LEAST <= packer->used ? out.pos : 0;
}

/* Columns of the chunk, and what is to be written of it in *STORED. */
static void pack_chunk(struct packer *packer, const unsigned char *entries, size_t count, struct hw_packed_chunk *chunk,
                       const unsigned char **stored)
{
    packer->used = packer->end_count = 0;
    if (packer->entry_size == 1) {
        put(packer, entries, count);
        packer->ends[packer->end_count++] = packer->used;
    } else {
        put_columns(packer, entries, count);
    }
    const size_t smaller = packer->level && packer->used ? compress(packer) : 0;
    *stored = smaller ? packer->compressed : packer->columns;
    chunk->raw_size = (uint32_t)packer->used;
    chunk->size = (uint32_t)(smaller ? smaller : packer->used);
    chunk->checksum = XXH64(*stored, chunk->size, 0);
}

/* ---- the extent ---- */

static size_t entries_in_chunk(uint32_t entry_size)
{
    const size_t most = HW_PACK_BYTES_MOST / entry_size;
    return entry_size == 1 ? CHUNK_STRINGS : most < CHUNK_ENTRIES ? most : CHUNK_ENTRIES;
}

static void find_words(struct packer *packer)
{
    size_t count;
    const struct hw_pack_field *field = hw_pack_fields(packer->type, &count);
    for (uint32_t word = 0; word < packer->entry_size / 8; word++)
        packer->words[word] = true;
    for (size_t i = 0; i < count; i++)
        if (has_field(packer, &field[i]))
            packer->words[field[i].offset / 8] = false;
}

static bool packer_init(struct packer *packer)
{
    const size_t columns = packer->entry_size == 1 ? 1 : packer->entry_size / 2;
    const size_t count = packer->entries;
    /* Lengths take half a byte for each number of two bytes or more, and each column has its header. */
    packer->room = count * packer->entry_size + columns * (count / 2 + 2 + sizeof(struct hw_packed_column));
    packer->columns = malloc(packer->room);
    packer->compressed = malloc(packer->room);
    packer->ends = calloc(columns, sizeof *packer->ends);
    packer->words = calloc(packer->entry_size / 8 + 1, sizeof *packer->words);
    packer->numbers = calloc(count, sizeof *packer->numbers);
    packer->residuals = calloc(count, sizeof *packer->residuals);
    packer->zstd = packer->level ? ZSTD_createCCtx() : NULL;
    if (packer->zstd)
        ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, packer->level);
    return packer->columns && packer->compressed && packer->ends && packer->words && packer->numbers &&
           packer->residuals && (packer->zstd || !packer->level);
}

static void packer_free(struct packer *packer)
{
    free(packer->columns);
    free(packer->compressed);
    free(packer->ends);
    free(packer->words);
    free(packer->numbers);
    free(packer->residuals);
    ZSTD_freeCCtx(packer->zstd);
}

/* All chunks, behind header and index. False when they do not fit into ROOM bytes. */
static bool pack_all(struct packer *packer, const unsigned char *bytes, size_t entries, unsigned char *extent,
                     size_t room, size_t *used)
{
    struct hw_packed_header header = {
        .coding = HW_PACK_CODING,
        .chunk_entries = (uint32_t)packer->entries,
        .chunk_count = (uint32_t)((entries + packer->entries - 1) / packer->entries),
    };
    const size_t index_end = sizeof header + header.chunk_count * sizeof(struct hw_packed_chunk);
    size_t at = index_end;
    for (size_t i = 0; i < header.chunk_count && at <= room; i++) {
        const size_t first = i * packer->entries;
        const size_t count = entries - first < packer->entries ? entries - first : packer->entries;
        struct hw_packed_chunk chunk = {.offset = at};
        const unsigned char *stored;
        pack_chunk(packer, bytes + first * packer->entry_size, count, &chunk, &stored);
        if (chunk.size > room - at)
            return false;
        memcpy(extent + sizeof header + i * sizeof chunk, &chunk, sizeof chunk);
        memcpy(extent + at, stored, chunk.size);
        at += chunk.size;
    }
    if (at > room)
        return false;
    memcpy(extent, &header, sizeof header);
    header.checksum = XXH64(extent, index_end, 0);
    memcpy(extent, &header, sizeof header);
    *used = at;
    return true;
}

unsigned char *hw_pack(uint32_t type, uint32_t entry_size, const void *bytes, size_t size, int level, bool indexed,
                       size_t *packed_size)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    struct packer packer = {.type = type, .entry_size = entry_size, .level = level};
    size_t fields;
    *packed_size = SIZE_MAX;
    const bool possible = rule && entry_size >= rule->smallest && entry_size <= HW_ENTRY_SIZE_MOST &&
                          (type == HW_SECTION_STRINGS ? entry_size == 1 : entry_size % 8 == 0) &&
                          (type == HW_SECTION_STRINGS || hw_pack_fields(type, &fields));
    if (!possible || size == 0 || size % entry_size != 0)
        return NULL;
    /* In a file with an index of functions, of sections that a look-up reads here and there: little at a time. */
    const size_t few = indexed ? rule->few : 0;
    const size_t entries = size / entry_size, in_chunk = few ? few : entries_in_chunk(entry_size);
    packer.entries = entries < in_chunk ? entries : in_chunk;
    if (few &&
        type != HW_SECTION_STRINGS) /* of so little, columns leave zstd not much, and it takes longer than they */
        packer.level = 0;
    if (entries / packer.entries >= UINT32_MAX)
        return NULL;
    unsigned char *extent = calloc(1, size);
    const bool ready = packer_init(&packer) && extent;
    bool fine = false;
    if (!ready)
        *packed_size = 0;
    else {
        if (entry_size != 1)
            find_words(&packer);
        fine = pack_all(&packer, bytes, entries, extent, size, packed_size);
        const size_t least = (size + HW_PACK_RATIO_MOST - 1) / HW_PACK_RATIO_MOST;
        if (fine && *packed_size < least)
            *packed_size = least; /* zeros are there already */
    }
    packer_free(&packer);
    if (fine && *packed_size + GAIN_LEAST <= size) {
        unsigned char *cut = realloc(extent, *packed_size);
        return cut ? cut : extent;
    }
    if (ready)
        *packed_size = SIZE_MAX;
    free(extent);
    return NULL;
}
