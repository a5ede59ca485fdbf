/* llvm.h - LLVM's heap profiles (MemProf), on their way in and out.
 *
 *   llvm_fields.c    the fields of LLVM's memory info block and their widths; GUIDs of functions
 *   llvm_raw.c       raw profiles, versions 3 to 5: written by clang's runtime, read by llvm-profdata
 *   llvm_indexed.c   reader of indexed profiles, MemProf versions 2 to 4: written by llvm-profdata, read by clang
 *   llvm_indexed_write.c   writer of indexed profiles, versions 3 and 4
 *   llvm_yaml.c      writer of the YAML that llvm-profdata reads
 *   llvm_variables.c   names of variables; their part of the indexed format
 *   llvm_model.c     a profile that was read -> the tables of Heapwise's own file, from which the model is made
 *
 * All of them work on struct hw_llvm_profile, which is such a file in memory. docs/llvm.md says what is
 * lost in either direction. Readers trust no byte of a file. */
#ifndef HW_PROFILE_LLVM_LLVM_H
#define HW_PROFILE_LLVM_LLVM_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "profile/format.h"

/* ---- llvm_fields.c ---- */

/* Numbers of the fields, in the order of the block; they are also their tags in an indexed file's schema. Times are in
 * ms since the start of the run. Densities: accesses * 100 / size; lifetime densities: that * 1000 / lifetime in ms. */
enum hw_llvm_field {
    HW_LLVM_ALLOC_COUNT = 1,
    HW_LLVM_TOTAL_ACCESSES,
    HW_LLVM_MIN_ACCESSES,
    HW_LLVM_MAX_ACCESSES,
    HW_LLVM_TOTAL_SIZE,
    HW_LLVM_MIN_SIZE,
    HW_LLVM_MAX_SIZE,
    HW_LLVM_ALLOC_TIME,
    HW_LLVM_FREE_TIME,
    HW_LLVM_TOTAL_LIFETIME,
    HW_LLVM_MIN_LIFETIME,
    HW_LLVM_MAX_LIFETIME,
    HW_LLVM_ALLOC_CPU,
    HW_LLVM_FREE_CPU,
    HW_LLVM_MIGRATED_CPU,
    HW_LLVM_LIFETIME_OVERLAPS,
    HW_LLVM_SAME_ALLOC_CPU,
    HW_LLVM_SAME_FREE_CPU,
    HW_LLVM_DATA_TYPE,
    HW_LLVM_TOTAL_DENSITY,
    HW_LLVM_MIN_DENSITY,
    HW_LLVM_MAX_DENSITY,
    HW_LLVM_TOTAL_LIFETIME_DENSITY,
    HW_LLVM_MIN_LIFETIME_DENSITY,
    HW_LLVM_MAX_LIFETIME_DENSITY,
    HW_LLVM_HISTOGRAM_SIZE, /* this and the next are not in raw version 3 */
    HW_LLVM_HISTOGRAM,      /* a pointer of the dead process */
    HW_LLVM_FIELDS
};

/* A block's fields are kept wide; writers saturate those that LLVM holds in 32 bits. [0] is not used. */
struct hw_llvm_mib {
    uint64_t field[HW_LLVM_FIELDS];
};

struct hw_llvm_field_rule {
    const char *name; /* as in LLVM's YAML */
    uint8_t size;     /* bytes in files */
};
extern const struct hw_llvm_field_rule hw_llvm_fields[HW_LLVM_FIELDS];

/* VALUE as far as FIELD can hold it. */
uint64_t hw_llvm_saturated(enum hw_llvm_field field, uint64_t value);

/* Adds FROM to TO as LLVM does for blocks of one context: sums, minima and maxima, the last time and CPU. */
void hw_llvm_mib_add(struct hw_llvm_mib *to, const struct hw_llvm_mib *from);

/* The number by which LLVM knows a function: the first 8 bytes of MD5 of its linkage name, without the suffixes that
 * passes append (.llvm.N, .part.N). */
uint64_t hw_llvm_guid(const char *linkage_name);

/* ---- what a file says ---- */

/* The code of a module. */
struct hw_llvm_segment {
    uint64_t start, end; /* in memory */
    uint64_t bias;       /* address in memory - address in the ELF file, where that is known */
    uint8_t build_id[32];
    uint32_t build_id_size;
};

/* A function within a call stack, as LLVM's indexed profile has it. */
struct hw_llvm_frame {
    uint64_t function;            /* GUID */
    uint32_t line_offset, column; /* line: counted from the line at which the function starts, modulo 2^32 */
    bool inlined;                 /* into the next frame of the stack */
    const char *name;             /* linkage name, or NULL; not part of the frame's identity */
};

/* A context. Its stack is COUNT numbers from FIRST on, leaf first. */
struct hw_llvm_context {
    size_t first;
    uint32_t count;
    struct hw_llvm_mib mib;
    const uint64_t
        *histogram; /* accesses to every 8 bytes of blocks: mib.field[HW_LLVM_HISTOGRAM_SIZE] of them, or NULL
                     */
};

/* What data access profiles say of a variable, by its linkage name without the suffixes of passes: hot with its
 * accesses, or known never to be used. Of the third kind, which is neither, LLVM's tools see nothing: YAML has them as
 * comments. Names are not terminated. */
struct hw_llvm_variable {
    const char *name;
    uint32_t name_size;
    enum hw_llvm_use { HW_LLVM_HOT, HW_LLVM_SHARED, HW_LLVM_USED, HW_LLVM_COLD } use; /* SHARED: hot, see variables.h */
    uint64_t accesses;
};

/* Owns its arrays but for what HISTOGRAM and NAME point to. */
struct hw_llvm_profile {
    uint32_t version; /* of the raw format or of MemProf's part of the indexed format */
    bool symbolized;  /* stacks hold indexes of frames, else program counters inside the call instructions */
    uint32_t known;   /* bits 1 << enum hw_llvm_field: what CONTEXTS have */
    size_t dumps;     /* raw: how many the file consisted of */
    struct hw_llvm_segment *segments;
    size_t segment_count;
    struct hw_llvm_frame *frames;
    size_t frame_count;
    uint64_t *stacks;
    size_t stack_size;
    struct hw_llvm_context *contexts;
    size_t context_count;
    uint64_t *histograms; /* where readers keep the cells */
    struct hw_llvm_variable *variables; /* by use, as the enum has it; no two hot or cold ones have one name */
    size_t variable_count;
    bool clang_runtime;   /* raw: the innermost frames are those of clang's runtime: they have been taken off */
};

#define HW_LLVM_KNOWN_ALL ((1u << HW_LLVM_FIELDS) - 2)

void hw_llvm_profile_free(struct hw_llvm_profile *profile);

/* Bytes that grow. Running out of memory sets `failed` and drops what was to be added. Zero-initialise. */
struct hw_llvm_bytes {
    unsigned char *data;
    size_t used, capacity;
    bool failed;
};
void hw_llvm_put(struct hw_llvm_bytes *bytes, uint64_t value, unsigned size); /* little-endian */
void hw_llvm_put_bytes(struct hw_llvm_bytes *bytes, const void *data, size_t size);
void hw_llvm_set(struct hw_llvm_bytes *bytes, size_t offset, uint64_t value); /* 8 bytes that were put before */
void hw_llvm_align(struct hw_llvm_bytes *bytes);                              /* zeros up to a multiple of 8 */

static inline uint64_t hw_llvm_get(const unsigned char *from, unsigned size)
{
    uint64_t value = 0;
    uint32_t half;
    if (size == 8) {
        memcpy(&value, from, sizeof value);
        return le64toh(value);
    }
    if (size == 4) {
        memcpy(&half, from, sizeof half);
        return le32toh(half);
    }
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* ---- llvm_raw.c ---- */

#define HW_LLVM_RAW_MAGIC      0xff6d70726f667281ull /* bytes 81 'r' 'f' 'o' 'r' 'p' 'm' ff */
#define HW_LLVM_RAW_VERSION    5u                    /* the newest */
#define HW_LLVM_RAW_VERSION_V3 3u                    /* the oldest */

/* PROFILE is not symbolized; its contexts' stacks are all different. False when there is no memory. */
bool hw_llvm_raw_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out);

/* PATH is for messages. False with ERROR: the file is damaged or of another version. */
bool hw_llvm_raw_read(const unsigned char *bytes, size_t size, const char *path, struct hw_llvm_profile *profile,
                      struct hw_error *error);

/* ---- llvm_indexed.c, llvm_indexed_write.c ---- */

#define HW_LLVM_INDEXED_MAGIC    0x8169666f72706cffull /* bytes ff 'l' 'p' 'r' 'o' 'f' 'i' 81 */
#define HW_LLVM_INDEXED_VERSION  4u                    /* of MemProf's part: the newest */
#define HW_LLVM_INDEXED_OLDEST   2u
#define HW_LLVM_INDEXED_WRITABLE 3u /* the oldest that is written */

bool hw_llvm_indexed_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out);
bool hw_llvm_indexed_read(const unsigned char *bytes, size_t size, const char *path, struct hw_llvm_profile *profile,
                          struct hw_error *error);

/* ---- llvm_variables.c ---- */

/* How much of a variable's linkage name LLVM compares: what stands behind a dot is dropped, but for ".__uniq.N". */
size_t hw_llvm_name_size(const char *linkage_name);
/* Appends the data access profiles of an indexed file, version 4. */
void hw_llvm_write_variables(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out);

/* ---- llvm_model.c ---- */

struct hw_arena;
struct hw_tables;
struct hw_profile_llvm;

#define HW_LLVM_TICK_NS     1000000u
#define HW_LLVM_MODULE_NAME (16 + 2 * 32)

/* Reads the open file, raw or indexed. PATH is for messages. False with ERROR. */
bool hw_llvm_file_read(int fd, const char *path, struct hw_llvm_profile *profile, struct hw_error *error);
/* True when blocks with the fields KNOWN have accesses: all of them, since a zero must not stand for what was left
 * out. */
bool hw_llvm_has_accesses(uint32_t known);
/* The segment as a map. Its module is known by its build id only: that is what NAME, its path, says until somebody
 * finds the file. */
struct hw_map_entry hw_llvm_map(const struct hw_llvm_segment *segment, bool main, char name[HW_LLVM_MODULE_NAME]);
/* A block as the rows of Heapwise's own file. */
struct hw_mib hw_llvm_to_mib(const struct hw_llvm_mib *from, uint32_t context, uint32_t known);
struct hw_access hw_llvm_to_access(const struct hw_llvm_mib *from, uint32_t context);

/* ---- llvm_records.c ---- */

/* What the indexed formats keep by function. A context belongs to every function of its leaf's inline chain; every
 * function that calls on the way is a call site. */
struct hw_llvm_site {
    uint64_t function;
    size_t first;     /* in the profile's stacks */
    uint32_t count;   /* frames */
    uint32_t context; /* of an allocation; HW_LLVM_CALL for a call site */
};
#define HW_LLVM_CALL 0xffffffffu

/* Sorted by function, allocations before calls, in the order of contexts; call sites once each. To be freed. NULL when
 * there is no memory. */
struct hw_llvm_site *hw_llvm_sites(const struct hw_llvm_profile *profile, size_t *count);

/* ---- llvm_yaml.c ---- */

/* VERSION: of MemProf. Variables are written from 4 on. */
bool hw_llvm_yaml_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out);

/* ---- llvm_model.c ---- */

/* True when the open file begins like one of LLVM's. */
bool hw_llvm_recognized(int fd);
/* Reads it whole and fills TABLES as a file of Heapwise's own would. NULL with ERROR. */
const struct hw_profile_llvm *hw_llvm_tables_read(int fd, const char *path, struct hw_arena *arena,
                                                  struct hw_tables *tables, struct hw_error *error);

/* What a merged file that was made from LLVM's says of them. NULL when there is no memory. */
const struct hw_profile_llvm *hw_llvm_merged_source(struct hw_arena *arena, const struct hw_tables *tables);

#endif
