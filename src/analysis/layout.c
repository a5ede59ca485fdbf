/* layout.c - see layout.h. */
#include "analysis/layout.h"

#include <string.h>

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return to > 1 ? (value + to - 1) / to * to : value;
}

/* ---- units ---- */

static bool same_unit(const struct hw_profile_field *a, const struct hw_profile_field *b)
{
    if ((a->flags & HW_FIELD_BITS) && (b->flags & HW_FIELD_BITS) && a->member_size <= a->size &&
        b->member_size <= b->size)
        return true; /* the bit-fields of a run move together; those inside a nested struct belong to that */
    return a->member_offset == b->member_offset && a->member_size == b->member_size && a->member_size;
}

/* Bit-fields that are members themselves, not nested ones. */
static bool is_bit_member(const struct hw_profile_field *field)
{
    return (field->flags & HW_FIELD_BITS) && field->member_size <= field->size;
}

static void begin_unit(struct hw_unit *unit, const struct hw_profile_field *field, uint32_t index)
{
    *unit = (struct hw_unit){.first_field = index,
                             .offset = field->member_offset,
                             .size = field->member_size,
                             .alignment = field->member_alignment ? field->member_alignment : 1,
                             .bits = is_bit_member(field),
                             .last = (field->flags & HW_FIELD_FLEXIBLE) && field->member_size == 0};
    if (unit->bits) {
        unit->offset = field->offset;
        unit->size = field->size;
        unit->alignment = field->alignment ? field->alignment : 1;
    }
}

static void extend_unit(struct hw_unit *unit, const struct hw_profile_field *field)
{
    unit->field_count++;
    unit->first |= (field->flags & (HW_FIELD_BASE | HW_FIELD_VPTR)) != 0;
    if (!unit->bits)
        return;
    if (field->offset + field->size > unit->offset + unit->size)
        unit->size = field->offset + field->size - unit->offset;
    if (field->alignment > unit->alignment)
        unit->alignment = field->alignment;
}

/* What no order of the members changes, or what must not be changed. */
static enum hw_layout_verdict verdict_of_flags(const struct hw_profile_struct *structure)
{
    static const struct {
        uint32_t flag;
        enum hw_layout_verdict verdict;
    } rules[] = {
        {HW_STRUCT_ABI, HW_LAYOUT_ABI},           {HW_STRUCT_UNION, HW_LAYOUT_UNION},
        {HW_STRUCT_PACKED, HW_LAYOUT_PACKED},     {HW_STRUCT_WHOLE, HW_LAYOUT_WHOLE},
        {HW_STRUCT_NO_NAMES, HW_LAYOUT_NO_NAMES}, {HW_STRUCT_OUTSIDE, HW_LAYOUT_OUTSIDE},
        {HW_STRUCT_FREE_ORDER, HW_LAYOUT_COMPILER},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (structure->flags & rules[i].flag)
            return rules[i].verdict;
    if (structure->inherited_reads || structure->inherited_writes)
        return HW_LAYOUT_PART;
    return structure->field_count ? HW_LAYOUT_FREE : HW_LAYOUT_NO_FIELDS;
}

/* ---- placing ---- */

/* A bit-field of WIDTH bits never crosses a boundary of its type; returns its first bit. */
static uint64_t place_bits(uint64_t at, const struct hw_profile_field *field)
{
    const uint64_t unit = 8 * (uint64_t)(field->alignment ? field->alignment : 1);
    return at % unit + field->bit_size > unit ? round_up(at, unit) : at;
}

static uint64_t place_unit(const struct hw_units *units, const struct hw_unit *unit, uint64_t *offsets, uint64_t at)
{
    const struct hw_profile_field *fields = &units->fields[unit->first_field];
    if (unit->bits) {
        for (uint32_t i = 0; i < unit->field_count; i++) {
            at = place_bits(at, &fields[i]);
            offsets[unit->first_field + i] = at / 8;
            at += fields[i].bit_size;
        }
        return at;
    }
    const uint64_t start = round_up(round_up(at, 8) / 8, unit->alignment);
    for (uint32_t i = 0; i < unit->field_count; i++)
        offsets[unit->first_field + i] = start + (fields[i].offset - unit->offset);
    return (start + unit->size) * 8;
}

uint64_t hw_layout_place(const struct hw_units *units, struct hw_layout *layout, unsigned tail)
{
    uint64_t at = 0, pointer = 0; /* at: in bits */
    layout->alignment = tail ? tail : 1;
    if (layout->count < units->count || tail)
        memset(layout->offsets, 0xff, units->structure->field_count * sizeof *layout->offsets);
    for (size_t i = 0; i <= layout->count; i++) {
        const struct hw_unit *unit = i < layout->count ? &units->units[layout->order[i]] : NULL;
        if (tail && (!unit || unit->last)) { /* in front of a flexible array */
            pointer = round_up(round_up(at, 8) / 8, tail);
            at = (pointer + tail) * 8;
            tail = 0;
        }
        if (!unit)
            break;
        at = place_unit(units, unit, layout->offsets, at);
        if (unit->alignment > layout->alignment)
            layout->alignment = unit->alignment;
    }
    layout->size = round_up(round_up(at, 8) / 8, layout->alignment);
    return pointer;
}

/* Whether the rules put every field where it is: else they are not the whole truth about this struct. */
static bool is_explained(const struct hw_units *units)
{
    const struct hw_profile_struct *structure = units->structure;
    uint64_t at = 0;
    uint32_t alignment = 1;
    for (size_t i = 0; i < units->count; i++) {
        const struct hw_unit *unit = &units->units[i];
        const struct hw_profile_field *fields = &units->fields[unit->first_field];
        if (unit->bits) {
            for (uint32_t k = 0; k < unit->field_count; k++) {
                at = place_bits(at, &fields[k]);
                if (at != fields[k].offset * 8 + fields[k].bit_offset)
                    return false;
                at += fields[k].bit_size;
            }
        } else {
            const uint64_t start = round_up(round_up(at, 8) / 8, unit->alignment);
            if (start != unit->offset)
                return false;
            for (uint32_t k = 0; k < unit->field_count; k++)
                if (fields[k].offset < unit->offset || fields[k].offset + fields[k].size > unit->offset + unit->size)
                    return false;
            at = (start + unit->size) * 8;
        }
        if (unit->alignment > alignment)
            alignment = unit->alignment;
    }
    return round_up(round_up(at, 8) / 8, alignment) == structure->size &&
           (!structure->alignment || structure->alignment == alignment);
}

#define LARGEST ((uint64_t)1 << 40) /* of a struct whose layout is computed: no sum below overflows */

void hw_units_make(struct hw_units *units, const struct hw_profile_struct *structure,
                   const struct hw_profile_field *fields, uint32_t prefix)
{
    units->structure = structure;
    units->fields = fields;
    units->count = 0;
    bool sane = structure->size < LARGEST;
    for (uint32_t i = 0; i < structure->field_count; i++) {
        sane &= fields[i].offset < LARGEST && fields[i].size < LARGEST && fields[i].member_offset < LARGEST &&
                fields[i].member_size < LARGEST && fields[i].offset >= fields[i].member_offset;
        if (!i || !same_unit(&fields[i - 1], &fields[i]))
            begin_unit(&units->units[units->count++], &fields[i], i);
        extend_unit(&units->units[units->count - 1], &fields[i]);
        units->units[units->count - 1].first |= i < prefix;
    }
    units->verdict = verdict_of_flags(structure);
    if (units->verdict == HW_LAYOUT_FREE && (!sane || !is_explained(units)))
        units->verdict = HW_LAYOUT_UNEXPLAINED;
    size_t movable = 0;
    for (size_t i = 0; i < units->count; i++)
        movable += !units->units[i].first && !units->units[i].last;
    if (units->verdict == HW_LAYOUT_FREE && movable < 2)
        units->verdict = HW_LAYOUT_ONE;
}
