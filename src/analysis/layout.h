/* layout.h - a struct's members as the language lays them out, in any order.
 *
 * A unit is what moves as a whole: a member with all that is nested in it, or a run of adjacent bit-fields. The rules
 * are those of the System V ABI for x86-64 (chapter 3.1.2), which C and C++ share for members. */
#ifndef HW_ANALYSIS_LAYOUT_H
#define HW_ANALYSIS_LAYOUT_H

#include "profile/profile.h"

#define HW_LINE 64

/* Why the order of members must stay. */
enum hw_layout_verdict {
    HW_LAYOUT_FREE,
    HW_LAYOUT_NO_FIELDS, /* they are not known */
    HW_LAYOUT_NO_NAMES,  /* no debugging information */
    HW_LAYOUT_UNION,
    HW_LAYOUT_PACKED,
    HW_LAYOUT_WHOLE,       /* compared, read or written as bytes, which may be agreed upon with others */
    HW_LAYOUT_ABI,         /* marked by the user */
    HW_LAYOUT_PART,        /* other types have it as a part, and are used */
    HW_LAYOUT_OUTSIDE,     /* code that does not count has pointers to it */
    HW_LAYOUT_UNEXPLAINED, /* the members do not lie as the rules say: attributes that are not known */
    HW_LAYOUT_ONE,         /* there is nothing to reorder */
    HW_LAYOUT_COMPILER,    /* the compiler orders them */
};

struct hw_unit {
    uint32_t first_field, field_count; /* of the struct, from 0 */
    uint64_t offset, size;             /* in the definition as it is */
    uint32_t alignment;
    bool bits;   /* a run of bit-fields */
    bool first;  /* stays where it is: base classes, pointer to virtual functions, what other structs begin with, too */
    bool last;   /* a flexible array member */
    double heat; /* uses that touch it: filled in by those who know */
};

struct hw_units {
    const struct hw_profile_struct *structure;
    const struct hw_profile_field *fields; /* of the struct */
    struct hw_unit *units;                 /* in the order of the definition; NULL when the verdict says so */
    size_t count;
    enum hw_layout_verdict verdict;
};

/* Units in an order, and where that puts every field. */
struct hw_layout {
    uint32_t *order; /* count units: numbers of struct hw_units */
    size_t count;
    uint64_t *offsets; /* by field; UINT64_MAX: not in this layout. Of a bit-field: of the byte its first bit is in */
    uint64_t size;
    uint32_t alignment;
};

/* Takes a struct apart; UNITS->units (at least as many as it has fields) is the caller's. Fills in the verdict.
 * PREFIX: as many fields, from the first on, stay where they are, as another struct begins with them, too. */
void hw_units_make(struct hw_units *units, const struct hw_profile_struct *structure,
                   const struct hw_profile_field *fields, uint32_t prefix);

/* Computes offsets, size and alignment from the order. TAIL: bytes of a pointer behind the units (0: none), whose
 * offset is returned. */
uint64_t hw_layout_place(const struct hw_units *units, struct hw_layout *layout, unsigned tail);

#endif
