/* llvm_raw.c - LLVM's raw heap profiles, versions 3, 4 and 5.
 *
 * A file is one or more dumps, one behind the other. A dump, little-endian, every section padded to 8 bytes:
 *
 *     u64 magic, u64 version, u64 size of the dump, u64 offset of segments (48), of blocks, of stacks
 *     u64 n, n x { u64 start, u64 end, u64 load bias, u64 size of build id, u8 build id[32] }
 *     u64 n, n x { u64 stack id, memory info block, histogram cells }
 *     u64 n, n x { u64 stack id, u64 frames, u64 pc[frames] }     leaf first, pc: return address - 1
 *
 * A memory info block is the fields of llvm_fields.c without padding, in version 3 without the last two. Histogram
 * cells are 8 bytes each in version 4; in version 5 two: 4 bits of exponent (high), 12 of mantissa. */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

enum {
    HEADER_SIZE = 48,
    SEGMENT_SIZE = 64,
    MIB_SIZE_V3 = 132,
    MIB_SIZE = 144,
    MANTISSA_MOST = 4095,
    EXPONENT_MOST = 15,
};

/* Stack ids of clang's runtime fit 32 bits; these do not, so that a file of ours can be distinguished. */
#define STACK_ID_BASE (0x4857ull << 48)

static unsigned cell_size(uint32_t version)
{
    return version == 3 ? 0 : version == 4 ? 8 : 2;
}

static int last_field(uint32_t version)
{
    return version == 3 ? HW_LLVM_MAX_LIFETIME_DENSITY : HW_LLVM_HISTOGRAM;
}

/* ---- writing ---- */

/* Rounds up where bits are lost: accesses do not vanish. */
static uint64_t encode_cell(uint64_t value)
{
    unsigned exponent = 0;
    while (value > MANTISSA_MOST && exponent < EXPONENT_MOST) {
        value = value / 2 + value % 2;
        exponent++;
    }
    return (uint64_t)exponent << 12 | (value > MANTISSA_MOST ? MANTISSA_MOST : value);
}

static void write_segments(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out)
{
    hw_llvm_put(out, profile->segment_count, 8);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct hw_llvm_segment *segment = &profile->segments[i];
        hw_llvm_put(out, segment->start, 8);
        hw_llvm_put(out, segment->end, 8);
        hw_llvm_put(out, segment->bias, 8);
        hw_llvm_put(out, segment->build_id_size, 8);
        hw_llvm_put_bytes(out, segment->build_id, sizeof segment->build_id);
    }
}

static void write_blocks(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out)
{
    hw_llvm_put(out, profile->context_count, 8);
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_llvm_context *context = &profile->contexts[i];
        const uint64_t cells = context->histogram ? context->mib.field[HW_LLVM_HISTOGRAM_SIZE] : 0;
        hw_llvm_put(out, STACK_ID_BASE + i, 8);
        for (int field = 1; field <= last_field(version); field++) {
            uint64_t value = context->mib.field[field];
            if (field >= HW_LLVM_HISTOGRAM_SIZE)
                value = field == HW_LLVM_HISTOGRAM_SIZE ? cells : 0;
            hw_llvm_put(out, hw_llvm_saturated((enum hw_llvm_field)field, value), hw_llvm_fields[field].size);
        }
        for (uint64_t cell = 0; version > 3 && cell < cells; cell++)
            hw_llvm_put(out, version == 4 ? context->histogram[cell] : encode_cell(context->histogram[cell]),
                        cell_size(version));
    }
    hw_llvm_align(out);
}

static void write_stacks(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out)
{
    hw_llvm_put(out, profile->context_count, 8);
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_llvm_context *context = &profile->contexts[i];
        hw_llvm_put(out, STACK_ID_BASE + i, 8);
        hw_llvm_put(out, context->count, 8);
        for (uint32_t frame = 0; frame < context->count; frame++)
            hw_llvm_put(out, profile->stacks[context->first + frame], 8);
    }
}

bool hw_llvm_raw_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out)
{
    hw_llvm_put(out, HW_LLVM_RAW_MAGIC, 8);
    hw_llvm_put(out, version, 8);
    hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, HEADER_SIZE, 8);
    hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, 0, 8);
    write_segments(profile, out);
    hw_llvm_set(out, 32, out->used);
    write_blocks(profile, version, out);
    hw_llvm_set(out, 40, out->used);
    write_stacks(profile, out);
    hw_llvm_set(out, 16, out->used);
    return !out->failed;
}

/* ---- reading ---- */

/* One dump within the file, and what is collected of all of them. */
struct reader {
    const unsigned char *bytes; /* of the dump */
    uint64_t size;
    const char *path;
    size_t number; /* of the dump, from 1 */
    uint32_t version;
    struct hw_llvm_profile *profile;
    struct hw_error *error;
    uint64_t *shift; /* for each segment of the dump: what to add to its addresses */
    size_t *segment; /* its place in the profile */
    size_t segment_count;
    struct found *stack; /* of the dump */
    uint64_t stack_count;
    bool sorted;                                               /* by id */
    size_t stack_capacity, histogram_capacity, histogram_size; /* of the profile's arrays */
    bool shifts;                                               /* some segment of the dump is moved */
    bool other_ids;                                            /* a stack id that clang's runtime would not give */
};

/* A stack in the bytes. */
struct found {
    uint64_t id, offset, count;
    size_t taken; /* where in the profile's stacks + 1; 0: not there yet */
};

static bool fail(struct reader *reader, const char *what)
{
    if (reader->number > 1)
        hw_error_set(reader->error, "'%s' is a damaged LLVM heap profile: dump %zu: %s", reader->path, reader->number,
                     what);
    else
        hw_error_set(reader->error, "'%s' is a damaged LLVM heap profile: %s", reader->path, what);
    return false;
}

static bool no_memory(struct reader *reader)
{
    hw_error_set(reader->error, "cannot read '%s': not enough memory", reader->path);
    return false;
}

/* The count in front of a section whose entries take at least SMALLEST bytes; moves OFFSET behind it. */
static bool read_count(struct reader *reader, uint64_t *offset, unsigned smallest, const char *what, uint64_t *count)
{
    if (*offset > reader->size || reader->size - *offset < 8)
        return fail(reader, what);
    *count = hw_llvm_get(reader->bytes + *offset, 8);
    *offset += 8;
    return *count <= (reader->size - *offset) / smallest || fail(reader, what);
}

static bool same_segment(const struct hw_llvm_segment *a, const struct hw_llvm_segment *b)
{
    return a->start == b->start && a->end == b->end && a->build_id_size == b->build_id_size &&
           !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* Finds or adds a segment. Where another module lay at its addresses in an earlier dump it is moved out of the way. */
static bool take_segment(struct reader *reader, struct hw_llvm_segment segment, uint64_t *shift, size_t *place)
{
    struct hw_llvm_profile *profile = reader->profile;
    uint64_t highest = 0;
    bool overlaps = false;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct hw_llvm_segment *other = &profile->segments[i];
        if (same_segment(&segment, other)) {
            *shift = 0;
            *place = i;
            return true;
        }
        highest = other->end > highest ? other->end : highest;
        overlaps |= segment.start < other->end && other->start < segment.end;
    }
    *shift = 0;
    if (overlaps && highest < UINT64_MAX / 2 && segment.end - segment.start < UINT64_MAX / 4) {
        *shift = ((highest | 0xffff) + 1) - (segment.start & ~0xffffull);
        segment.start += *shift;
        segment.end += *shift;
        segment.bias += *shift;
    }
    *place = profile->segment_count;
    struct hw_llvm_segment *larger = realloc(profile->segments, (profile->segment_count + 1) * sizeof *larger);
    if (!larger)
        return no_memory(reader);
    profile->segments = larger;
    larger[profile->segment_count++] = segment;
    return true;
}

#define SEGMENTS_MOST 4096 /* each is compared with all others */

static bool read_segments(struct reader *reader, uint64_t offset)
{
    static const char cut[] = "its list of segments is cut short";
    uint64_t count;
    if (!read_count(reader, &offset, SEGMENT_SIZE, cut, &count))
        return false;
    if (count + reader->profile->segment_count > SEGMENTS_MOST)
        return fail(reader, "it has too many segments");
    reader->segment_count = 0;
    free(reader->shift);
    free(reader->segment);
    reader->shift = malloc((count + 1) * sizeof *reader->shift);
    reader->segment = malloc((count + 1) * sizeof *reader->segment);
    if (!reader->shift || !reader->segment)
        return no_memory(reader);
    for (uint64_t i = 0; i < count; i++, offset += SEGMENT_SIZE) {
        const unsigned char *from = reader->bytes + offset;
        struct hw_llvm_segment segment = {
            .start = hw_llvm_get(from, 8), .end = hw_llvm_get(from + 8, 8), .bias = hw_llvm_get(from + 16, 8)};
        const uint64_t build_id_size = hw_llvm_get(from + 24, 8);
        if (build_id_size > sizeof segment.build_id)
            return fail(reader, "a build id is longer than 32 bytes");
        if (segment.start > segment.end)
            return fail(reader, "a segment ends before it starts");
        segment.build_id_size = (uint32_t)build_id_size;
        memcpy(segment.build_id, from + 32, build_id_size);
        if (!take_segment(reader, segment, &reader->shift[i], &reader->segment[i]))
            return false;
        reader->segment_count++;
    }
    return true;
}

static int compare_found(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return HW_ORDER(a->id, b->id);
}

static bool read_stacks(struct reader *reader, uint64_t offset)
{
    static const char cut[] = "its list of stacks is cut short";
    uint64_t count;
    if (!read_count(reader, &offset, 16, cut, &count))
        return false;
    free(reader->stack);
    reader->stack = malloc((count + 1) * sizeof *reader->stack);
    if (!reader->stack)
        return no_memory(reader);
    for (uint64_t i = 0; i < count; i++) {
        if (reader->size - offset < 16)
            return fail(reader, cut);
        struct found *found = &reader->stack[i];
        found->id = hw_llvm_get(reader->bytes + offset, 8);
        found->count = hw_llvm_get(reader->bytes + offset + 8, 8);
        found->taken = 0;
        found->offset = offset + 16;
        if (found->count > (reader->size - found->offset) / 8)
            return fail(reader, cut);
        offset = found->offset + 8 * found->count;
        reader->other_ids |= found->id > UINT32_MAX;
    }
    reader->stack_count = count;
    reader->sorted = false;
    return true;
}

static uint64_t shifted(const struct reader *reader, uint64_t pc)
{
    for (size_t i = 0; i < reader->segment_count; i++) {
        const struct hw_llvm_segment *segment = &reader->profile->segments[reader->segment[i]];
        if (reader->shift[i] && pc + reader->shift[i] >= segment->start && pc + reader->shift[i] < segment->end)
            return pc + reader->shift[i];
    }
    return pc;
}

static bool any_shift(const struct reader *reader)
{
    for (size_t i = 0; i < reader->segment_count; i++)
        if (reader->shift[i])
            return true;
    return false;
}

/* Stacks are mostly in the order of the blocks: that of block NUMBER is looked for at its place first. */
static struct found *find_stack(struct reader *reader, uint64_t id, uint64_t number)
{
    const struct found key = {.id = id};
    if (number < reader->stack_count && reader->stack[number].id == id)
        return &reader->stack[number];
    if (!reader->sorted)
        qsort(reader->stack, reader->stack_count, sizeof *reader->stack, compare_found);
    reader->sorted = true;
    return bsearch(&key, reader->stack, reader->stack_count, sizeof key, compare_found);
}

static bool take_stack(struct reader *reader, uint64_t id, uint64_t number, struct hw_llvm_context *context)
{
    struct hw_llvm_profile *profile = reader->profile;
    struct found *found = find_stack(reader, id, number);
    if (!found)
        return fail(reader, "the call stack of an allocation is missing");
    if (found->count >= UINT32_MAX)
        return fail(reader, "a call stack is too deep");
    context->count = (uint32_t)found->count;
    if (found->taken) {
        context->first = found->taken - 1;
        return true;
    }
    if (!HW_GROW(profile->stacks, reader->stack_capacity, profile->stack_size + found->count))
        return no_memory(reader);
    context->first = profile->stack_size;
    found->taken = profile->stack_size + 1;
    for (uint32_t i = 0; i < context->count; i++) {
        const uint64_t pc = hw_llvm_get(reader->bytes + found->offset + 8ull * i, 8);
        profile->stacks[profile->stack_size++] = reader->shifts ? shifted(reader, pc) : pc;
    }
    return true;
}

static bool take_histogram(struct reader *reader, uint64_t *offset, struct hw_llvm_context *context)
{
    struct hw_llvm_profile *profile = reader->profile;
    const uint64_t cells = context->mib.field[HW_LLVM_HISTOGRAM_SIZE];
    const unsigned size = cell_size(reader->version);
    context->mib.field[HW_LLVM_HISTOGRAM] = 0;
    if (!size || cells == 0)
        return true;
    if (cells > (reader->size - *offset) / size)
        return fail(reader, "a histogram is cut short");
    if (!HW_GROW(profile->histograms, reader->histogram_capacity, reader->histogram_size + cells))
        return no_memory(reader);
    /* The array may move until the end of reading: until then this is an index + 1. */
    context->histogram = (const uint64_t *)(uintptr_t)(reader->histogram_size + 1);
    for (uint64_t i = 0; i < cells; i++, *offset += size) {
        uint64_t value = hw_llvm_get(reader->bytes + *offset, size);
        profile->histograms[reader->histogram_size++] = size == 8 ? value : (value & MANTISSA_MOST) << (value >> 12);
    }
    return true;
}

/* The fields lie without padding, 4 or 8 bytes each. */
static inline void read_fields(const unsigned char *from, uint32_t version, struct hw_llvm_mib *mib)
{
    const int last = last_field(version);
    for (int field = 1; field <= last; field++) {
        const bool wide = hw_llvm_fields[field].size == 8;
        mib->field[field] = wide ? hw_llvm_get(from, 8) : hw_llvm_get(from, 4);
        from += wide ? 8 : 4;
    }
}

static bool read_blocks(struct reader *reader, uint64_t offset)
{
    static const char cut[] = "its list of memory info blocks is cut short";
    struct hw_llvm_profile *profile = reader->profile;
    const unsigned mib_size = reader->version == 3 ? MIB_SIZE_V3 : MIB_SIZE;
    uint64_t count;
    if (!read_count(reader, &offset, 8 + mib_size, cut, &count))
        return false;
    struct hw_llvm_context *larger =
        realloc(profile->contexts, (profile->context_count + count + 1) * sizeof *profile->contexts);
    if (!larger)
        return no_memory(reader);
    profile->contexts = larger;
    reader->shifts = any_shift(reader);
    for (uint64_t i = 0; i < count; i++) {
        if (offset > reader->size || reader->size - offset < 8 + mib_size)
            return fail(reader, cut);
        struct hw_llvm_context *context = &profile->contexts[profile->context_count];
        const uint64_t id = hw_llvm_get(reader->bytes + offset, 8);
        *context = (struct hw_llvm_context){0};
        read_fields(reader->bytes + offset + 8, reader->version, &context->mib);
        offset += 8 + mib_size;
        if (!take_histogram(reader, &offset, context) || !take_stack(reader, id, i, context))
            return false;
        profile->context_count++;
    }
    return true;
}

static bool read_dump(struct reader *reader, uint64_t available)
{
    if (available < HEADER_SIZE)
        return fail(reader, reader->number > 1 ? "there are bytes behind the last dump" : "it is cut short");
    if (hw_llvm_get(reader->bytes, 8) != HW_LLVM_RAW_MAGIC)
        return fail(reader, "there are bytes behind the last dump");
    const uint64_t version = hw_llvm_get(reader->bytes + 8, 8);
    if (version < HW_LLVM_RAW_VERSION_V3 || version > HW_LLVM_RAW_VERSION) {
        hw_error_set(reader->error, "'%s' is an LLVM heap profile of raw version %llu: only 3, 4 and 5 can be read",
                     reader->path, (unsigned long long)version);
        return false;
    }
    reader->version = (uint32_t)version;
    reader->size = hw_llvm_get(reader->bytes + 16, 8);
    if (reader->size < HEADER_SIZE || reader->size > available)
        return fail(reader, "it is cut short");
    return read_segments(reader, hw_llvm_get(reader->bytes + 24, 8)) &&
           read_stacks(reader, hw_llvm_get(reader->bytes + 40, 8)) &&
           read_blocks(reader, hw_llvm_get(reader->bytes + 32, 8));
}

bool hw_llvm_raw_read(const unsigned char *bytes, size_t size, const char *path, struct hw_llvm_profile *profile,
                      struct hw_error *error)
{
    *profile = (struct hw_llvm_profile){.known = HW_LLVM_KNOWN_ALL};
    struct reader reader = {.path = path, .profile = profile, .error = error};
    bool fine = true;
    for (size_t offset = 0; fine && (offset < size || offset == 0); offset += reader.size) {
        reader.bytes = bytes + offset;
        reader.number = ++profile->dumps;
        fine = read_dump(&reader, size - offset);
    }
    profile->version = reader.version;
    profile->clang_runtime = profile->context_count && !reader.other_ids;
    for (size_t i = 0; i < profile->context_count; i++) {
        struct hw_llvm_context *context = &profile->contexts[i];
        if (context->histogram)
            context->histogram = profile->histograms + ((uintptr_t)context->histogram - 1);
        if (profile->clang_runtime && context->count > 1) {
            context->first++;
            context->count--;
        }
    }
    if (reader.version == 3)
        profile->known &= ~(1u << HW_LLVM_HISTOGRAM_SIZE | 1u << HW_LLVM_HISTOGRAM);
    free(reader.shift);
    free(reader.segment);
    free(reader.stack);
    if (!fine)
        hw_llvm_profile_free(profile);
    return fine;
}
