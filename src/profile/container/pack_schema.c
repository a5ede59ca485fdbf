/* pack_schema.c - the tagged fields of packed entries, by section (pack.h).
 *
 * HW_TAG says the tags at the members of the structures (format.h). A tag belongs to its field for ever. Places without
 * one (arrays, reserved words, fields of newer versions) are packed word by word. Each word of 8 bytes is either
 * covered by fields completely or not at all; a test checks all of this. */
#include "profile/container/pack.h"

#include <string.h>

#define F(tag, type, name, predictor, ...)                                                                             \
    {                                                                                                                  \
        tag, offsetof(struct type, name), sizeof(((struct type *)0)->name), HW_PACK_##predictor,                       \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

#define ADDED_MIB(member, tag)
#define ADDED_TICKS(member, tag)
#define ADDED_EVENT(member, tag)
#define ADDED_CODE(member, tag)
#define ADDED_ADDED(member, tag)                           F(tag, hw_mib, member, VALUE),
#define HW_NUMBER(type, member, adds, of, stored, as, ...) ADDED_##stored(member, as)
#include "pack_fields.inc" /* pack_fields.awk made it */

/* Of this array only the first place has a tag. */
static const struct hw_pack_field hw_operation_counts[] = {F(1, hw_operation_counts, count[0][0], VALUE)};

static const struct schema {
    const struct hw_pack_field *fields;
    size_t count;
} schemas[] = {
#define PACK(structure)                                                                       structure, sizeof(structure) / sizeof *(structure)
#define BY_WORD                                                                               hw_mib, 0 /* no field has a tag: all that is written are words */
#define PLAIN                                                                                 NULL, 0
#define BYTES                                                                                 NULL, 0
#define HW_SECTION(number, name, entry, size, least, turn, flags, look_up, few, packing, ...) [number] = {packing},
#include "profile/sections.def"
};

const struct hw_pack_field *hw_pack_fields(uint32_t type, size_t *count)
{
    if (type >= sizeof schemas / sizeof *schemas || !schemas[type].fields)
        return NULL;
    *count = schemas[type].count;
    return schemas[type].fields;
}

bool hw_pack_field(uint32_t type, uint16_t tag, struct hw_pack_field *field)
{
    size_t count = 0;
    const struct hw_pack_field *fields = hw_pack_fields(type, &count);
    if (!fields)
        return false;
    if (tag >= HW_PACK_WORD) {
        const uint32_t offset = (tag - HW_PACK_WORD) * 8u;
        *field = (struct hw_pack_field){.tag = tag, .offset = (uint16_t)offset, .width = 8};
        return offset <= UINT16_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (fields[i].tag != tag)
            continue;
        *field = fields[i];
        return true;
    }
    return false;
}

/* ---- values ---- */

void hw_pack_gather(const struct hw_pack_field *field, const unsigned char *entries, size_t entry_size, size_t count,
                    uint64_t *numbers)
{
    const unsigned char *at = entries + field->offset;
    uint16_t half;
    uint32_t word;
    if (field->width == 8) {
        for (size_t i = 0; i < count; i++, at += entry_size)
            memcpy(&numbers[i], at, sizeof *numbers);
    } else if (field->width == 4) {
        for (size_t i = 0; i < count; i++, at += entry_size) {
            memcpy(&word, at, sizeof word);
            numbers[i] = word;
        }
    } else {
        for (size_t i = 0; i < count; i++, at += entry_size) {
            memcpy(&half, at, sizeof half);
            numbers[i] = half;
        }
    }
}

bool hw_pack_predict(uint32_t type, unsigned predictor, const uint16_t reference[2], const unsigned char *entries,
                     size_t entry_size, size_t count, uint64_t *numbers)
{
    struct hw_pack_field fields[2];
    uint64_t others[512]; /* taken in pieces: no memory of its own is needed */
    if (predictor < HW_PACK_FIELD) {
        memset(numbers, 0, count * sizeof *numbers);
        return true;
    }
    for (size_t i = 0; i < (predictor == HW_PACK_FIELD ? 1 : 2); i++)
        if (!hw_pack_field(type, reference[i], &fields[i]) || fields[i].offset + fields[i].width > entry_size)
            return false;
    hw_pack_gather(&fields[0], entries, entry_size, count, numbers);
    for (size_t first = 0; predictor != HW_PACK_FIELD && first < count; first += sizeof others / sizeof *others) {
        size_t some = count - first;
        if (some > sizeof others / sizeof *others)
            some = sizeof others / sizeof *others;
        hw_pack_gather(&fields[1], entries + first * entry_size, entry_size, some, others);
        for (size_t i = 0; i < some; i++)
            numbers[first + i] = predictor == HW_PACK_SUM          ? numbers[first + i] + others[i]
                                 : predictor == HW_PACK_DIFFERENCE ? numbers[first + i] - others[i]
                                                                   : numbers[first + i] * others[i];
    }
    return true;
}
