/* pack.h - packed extents: the entries of one section as columns of tagged fields, in chunks.
 *
 * docs/development/profile-format.md ("Packed extents") explains the format with an annotated sample; the
 * structures below are its definition. Little-endian, like everything in the file.
 *
 *     struct hw_packed_header, then chunk_count of struct hw_packed_chunk, then the chunks
 *
 * A chunk holds chunk_entries entries (the last one the rest) and is read without the others. Unpacked by zstd if
 * raw_size > size, it is a sequence of columns: struct hw_packed_column and `size` bytes behind it. Of STRINGS a chunk
 * is the bytes themselves.
 *
 * A column has a tag. Tags below HW_PACK_WORD are those of fields (HW_TAG in format.h, by section); a tag never changes its
 * meaning. Tag HW_PACK_WORD + k is the 8 bytes at offset 8 k of the entry: places that no field of the writer's covers.
 * Fields without a column are 0 in all entries of the chunk. A reader skips columns of tags it does not know.
 *
 * A column's payload: a length from 0 to 8 for each entry, 4 bits, low half first (only when they differ), then the
 * lowest bytes of all numbers of length 1 or more, then the second bytes of those of length 2 or more, and so on. */
#ifndef HW_PROFILE_CONTAINER_PACK_H
#define HW_PROFILE_CONTAINER_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/format.h"

struct hw_container;
struct hw_extent;

#define HW_PACK_LEVEL        3          /* of zstd, where nobody asks for another one */
#define HW_PACK_CODING       1          /* of struct hw_packed_header */
#define HW_PACK_ENTRIES_MOST 65536      /* in a chunk */
#define HW_PACK_BYTES_MOST   (4u << 20) /* of the entries of a chunk, unless it is a single one */
#define HW_PACK_RATIO_MOST   1024 /* an extent is padded so that it never unpacks to more than so many times itself */
#define HW_PACK_WORD         0x8000u /* tags from here on: see above */
#define HW_PACK_VARIED       0xffu   /* hw_packed_column.length: lengths differ */

struct hw_packed_header {
    uint32_t coding; /* HW_PACK_CODING; a reader leaves out an extent with another one */
    uint32_t chunk_entries;
    uint32_t chunk_count;
    uint32_t reserved0;
    uint64_t checksum; /* XXH64 of header, with this field as 0, and index */
};

struct hw_packed_chunk {
    uint64_t offset;   /* from the start of the extent */
    uint32_t size;     /* bytes in the file */
    uint32_t raw_size; /* bytes of its columns; equal to `size`: not compressed */
    uint64_t checksum; /* XXH64 of the `size` bytes */
};

/* What is subtracted from a field's values, modulo 2^width. All but VALUE store the difference with its sign in the
 * lowest bit: 0, -1, 1, -2 … become 0, 1, 2, 3 …; of SIGNED it is the value itself. */
enum hw_pack_predictor {
    HW_PACK_VALUE = 0,
    HW_PACK_SIGNED = 1,
    HW_PACK_PREVIOUS = 2,   /* the value of the entry before, in this chunk; 0 for the first one */
    HW_PACK_FIELD = 3,      /* field reference[0] of the same entry, which has its column before this one */
    HW_PACK_SUM = 4,        /* reference[0] + reference[1] */
    HW_PACK_DIFFERENCE = 5, /* reference[0] - reference[1] */
    HW_PACK_PRODUCT = 6,    /* reference[0] * reference[1] */
};

struct hw_packed_column {
    uint16_t tag;
    uint8_t predictor; /* enum hw_pack_predictor */
    uint8_t length;    /* of all numbers: 0 to 8; or HW_PACK_VARIED */
    uint16_t reference[2];
    uint32_t size; /* bytes of payload */
};

_Static_assert(sizeof(struct hw_packed_header) == 24, "packed header");
_Static_assert(sizeof(struct hw_packed_chunk) == 24, "packed chunk");
_Static_assert(sizeof(struct hw_packed_column) == 12, "packed column");

/* ---- pack_schema.c ---- */

/* A field of an entry. The predictor is what the writer tries beside VALUE; readers go by the column. */
struct hw_pack_field {
    uint16_t tag, offset, width; /* width: 2, 4 or 8 bytes */
    uint16_t predictor, reference[2];
};

/* Fields of the entries of TYPE in the order of columns: references before what refers to them. NULL when the type is
 * never packed. */
const struct hw_pack_field *hw_pack_fields(uint32_t type, size_t *count);
/* The field of a tag, words included; false when it is not known. */
bool hw_pack_field(uint32_t type, uint16_t tag, struct hw_pack_field *field);

/* The values of FIELD in COUNT entries of ENTRY_SIZE bytes. */
void hw_pack_gather(const struct hw_pack_field *field, const unsigned char *entries, size_t entry_size, size_t count,
                    uint64_t *numbers);
/* What PREDICTOR says of a field's values from other fields of the same entries; 0 where it only knows the entry before
 * or nothing. False when REFERENCE does not name fields of such entries. */
bool hw_pack_predict(uint32_t type, unsigned predictor, const uint16_t reference[2], const unsigned char *entries,
                     size_t entry_size, size_t count, uint64_t *numbers);

/* ---- pack.c: writing ---- */

/* SIZE bytes of entries of ENTRY_SIZE bytes as a packed extent, chunks compressed with zstd at LEVEL (0: not). INDEXED:
 * for a file in which functions are looked up: chunks of what is read then are small. Returns
 * bytes to be freed and their number in *PACKED_SIZE; NULL when the memory does not suffice, or (*PACKED_SIZE is
 * SIZE_MAX then) when such a section cannot be packed or is not made smaller. */
unsigned char *hw_pack(uint32_t type, uint32_t entry_size, const void *bytes, size_t size, int level, bool indexed,
                       size_t *packed_size);

/* Writes the sealed profile PATH anew with packed extents, in place: aside and renamed, with its permissions. Damaged
 * files, files that are not sealed and ones with fields or sections that cannot be kept are refused and stay as they
 * are. True also when it is packed already. */
bool hw_profile_pack(const char *path, int zstd_level, struct hw_error *error);

/* ---- unpack.c: reading. Nothing here trusts a byte. ---- */

/* A packed extent, its index checked. */
struct hw_packed {
    int fd;
    struct hw_section entry; /* of the directory */
    uint64_t available;      /* bytes of it that the file is long enough to hold */
    struct hw_packed_header header;
    struct hw_packed_chunk *index;
    unsigned char *stored, *raw; /* room for a chunk */
    size_t stored_room, raw_room;
    uint64_t *numbers, *predicted; /* room for a column */
    void *zstd;
};

enum hw_packed_outcome { HW_PACKED_GOOD, HW_PACKED_DAMAGED, HW_PACKED_CUT, HW_PACKED_NEWER, HW_PACKED_NO_MEMORY };

/* Reads and checks header and index of an extent. hw_packed_close in any case. */
enum hw_packed_outcome hw_packed_open(struct hw_packed *packed, int fd, const struct hw_extent *extent);
void hw_packed_close(struct hw_packed *packed);
/* Entries of chunk number CHUNK. */
size_t hw_packed_entries(const struct hw_packed *packed, size_t chunk);
/* Unpacks a chunk into TARGET: zeroed room for its entries of SIZE bytes each (longer ones are cut, shorter ones stay
 * filled up with zeros). Unless it is good, what is in TARGET means nothing. */
enum hw_packed_outcome hw_packed_read(struct hw_packed *packed, size_t chunk, void *target, size_t size);

/* ---- section.c: any entries of a section, without reading the rest ---- */

struct hw_section_reader;

/* The section TYPE of a loaded container (hw_container_load), which must outlive the reader. A section that is not
 * there has no entries. NULL with ERROR. */
struct hw_section_reader *hw_section_open(const struct hw_container *container, uint32_t type, struct hw_error *error);
void hw_section_close(struct hw_section_reader *reader);
uint64_t hw_section_entries(const struct hw_section_reader *reader);
/* How many entries are unpacked at once, whatever is asked for; 1 where the section's (only) extent is not packed. 0
 * with ERROR when its index cannot be read, or there are several extents. */
size_t hw_section_chunk(struct hw_section_reader *reader, struct hw_error *error);
/* Entries [FIRST, FIRST + COUNT) into TARGET, each as large as this reader knows the structure (1 for STRINGS). The
 * chunks that hold them are read and checked; the last one is kept for the next call. Extents that are not packed are
 * not checked against their checksum: that would mean to read them whole. False with ERROR. */
bool hw_section_read(struct hw_section_reader *reader, uint64_t first, size_t count, void *target,
                     struct hw_error *error);

#endif
