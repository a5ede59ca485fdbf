/* llvm_indexed.c - reads the heap profiles in LLVM's indexed profiles, MemProf versions 2, 3 and 4.
 *
 * llvm_indexed_write.c shows the layout of versions 3 and 4. Version 2 has no array of stacks:
 *
 *     u64 2, offsets of record table, frames, frame table, stacks, stack table; the schema; then three on-disk hash
 *     tables: function -> record, id -> frame, id -> u64 ids of frames. Records name stacks by 64-bit ids.
 *
 * A context stands in the record of every function that its leaf was inlined into: it is taken from one of them. */
#include "profile/llvm/llvm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

enum {
    HEADER_SIZE = 9 * 8,
    MEMPROF_OFFSET = 0x28,
    FRAME_SIZE = 17,
    SCHEMA_MOST = 64,
    DEEPEST_STACK = 1 << 16,
};

/* A frame or a stack of version 2. */
struct found {
    uint64_t id, offset, size;
    size_t taken; /* stacks: where in the profile's stacks + 1; 0: not there yet */
    uint32_t count;
};

/* An allocation as a record has it. */
struct allocation {
    size_t stack; /* where in the profile's stacks */
    uint64_t function;
    struct hw_llvm_mib mib;
    uint32_t count;
    uint32_t order; /* in the file */
};

struct reader {
    const unsigned char *bytes;
    uint64_t size;
    const char *path;
    struct hw_llvm_profile *profile;
    struct hw_error *error;
    uint32_t version;
    uint8_t schema[SCHEMA_MOST];
    size_t schema_size;
    unsigned mib_size;

    uint64_t radix, radix_count; /* versions 3 and 4: the array of stacks */
    size_t *taken;               /* for each of its places: where the stack is in the profile's stacks + 1 */
    uint32_t *taken_count;       /* its frames */
    struct found *frame, *stack; /* version 2, sorted by id */
    size_t frame_count, stack_count, frame_capacity, id_capacity;

    uint64_t visits_left; /* frames that may still be read: shared roots make few bytes into many of them */
    size_t stack_capacity;
    struct allocation *allocation;
    size_t allocation_count, allocation_capacity;
};

static bool fail(struct reader *reader, const char *what)
{
    hw_error_set(reader->error, "'%s' is a damaged LLVM profile: %s", reader->path, what);
    return false;
}

static bool no_memory(struct reader *reader)
{
    hw_error_set(reader->error, "cannot read '%s': not enough memory", reader->path);
    return false;
}

static uint64_t at(const struct reader *reader, uint64_t offset, unsigned size)
{
    return hw_llvm_get(reader->bytes + offset, size);
}

static bool has(const struct reader *reader, uint64_t offset, uint64_t size)
{
    return offset <= reader->size && size <= reader->size - offset;
}

/* ---- on-disk hash tables ---- */

typedef bool entry_sink(struct reader *reader, uint64_t key, uint64_t offset, uint64_t size);

/* Hands every entry of the table at OFFSET to SINK: its key and where its data is. An entry is hash, size of the key
 * (not with stacks: SIZED is false), size of the data, key, data. */
static bool read_table(struct reader *reader, uint64_t offset, bool sized, entry_sink *sink)
{
    static const char damaged[] = "a hash table is damaged";
    if (!has(reader, offset, 16))
        return fail(reader, damaged);
    const uint64_t buckets = at(reader, offset, 8);
    uint64_t left = reader->size / 24 + 1; /* entries that the file could hold */
    if (buckets > (reader->size - offset - 16) / 8)
        return fail(reader, damaged);
    for (uint64_t i = 0; i < buckets; i++) {
        uint64_t place = at(reader, offset + 16 + 8 * i, 8);
        if (!place)
            continue;
        if (!has(reader, place, 2))
            return fail(reader, damaged);
        unsigned count = (unsigned)at(reader, place, 2);
        place += 2;
        for (; count > 0; count--) {
            const unsigned head = sized ? 24 : 16;
            if (!left-- || !has(reader, place, head + 8))
                return fail(reader, damaged);
            const uint64_t key_size = sized ? at(reader, place + 8, 8) : 8, size = at(reader, place + head - 8, 8);
            place += head;
            if (key_size != 8 || !has(reader, place + 8, size))
                return fail(reader, damaged);
            if (!sink(reader, at(reader, place, 8), place + 8, size))
                return false;
            place += 8 + size;
        }
    }
    return true;
}

/* ---- frames and stacks ---- */

static bool add_frame(struct reader *reader, uint64_t offset)
{
    struct hw_llvm_profile *profile = reader->profile;
    profile->frames[profile->frame_count++] = (struct hw_llvm_frame){.function = at(reader, offset, 8),
                                                                     .line_offset = (uint32_t)at(reader, offset + 8, 4),
                                                                     .column = (uint32_t)at(reader, offset + 12, 4),
                                                                     .inlined = at(reader, offset + 16, 1) != 0};
    return true;
}

static bool make_frames(struct reader *reader, uint64_t count)
{
    reader->profile->frames = malloc((count + 1) * sizeof *reader->profile->frames);
    return reader->profile->frames || no_memory(reader);
}

static bool read_frames(struct reader *reader, uint64_t offset, uint64_t end)
{
    const uint64_t count = (end - offset) / FRAME_SIZE;
    if (count > UINT32_MAX || !make_frames(reader, count))
        return fail(reader, "it has too many frames");
    for (uint64_t i = 0; i < count; i++)
        add_frame(reader, offset + FRAME_SIZE * i);
    return true;
}

static int compare_found(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return HW_ORDER(a->id, b->id);
}

static struct found *find(struct found *array, size_t count, uint64_t id)
{
    const struct found key = {.id = id};
    return count ? bsearch(&key, array, count, sizeof key, compare_found) : NULL;
}

static bool note_frame(struct reader *reader, uint64_t key, uint64_t offset, uint64_t size)
{
    if (size < FRAME_SIZE)
        return fail(reader, "a frame is cut short");
    if (!HW_GROW(reader->frame, reader->frame_capacity, reader->frame_count + 1))
        return no_memory(reader);
    reader->frame[reader->frame_count++] = (struct found){.id = key, .offset = offset, .size = size};
    return true;
}

static bool note_stack(struct reader *reader, uint64_t key, uint64_t offset, uint64_t size)
{
    if (!HW_GROW(reader->stack, reader->id_capacity, reader->stack_count + 1))
        return no_memory(reader);
    reader->stack[reader->stack_count++] = (struct found){.id = key, .offset = offset, .size = size};
    return true;
}

static bool append_frame(struct reader *reader, uint64_t frame)
{
    struct hw_llvm_profile *profile = reader->profile;
    if (!reader->visits_left--)
        return fail(reader, "its stacks do not end");
    if (!HW_GROW(profile->stacks, reader->stack_capacity, profile->stack_size + 1))
        return no_memory(reader);
    profile->stacks[profile->stack_size++] = frame;
    return true;
}

/* The stack that begins at a place of the array. */
static bool take_place(struct reader *reader, uint64_t place, size_t *first, uint32_t *count)
{
    if (place >= reader->radix_count)
        return fail(reader, "a call stack is missing");
    if (!reader->taken[place]) {
        const uint64_t frames = at(reader, reader->radix + 4 * place, 4);
        const size_t start = reader->profile->stack_size;
        uint64_t next = place + 1;
        if (frames > DEEPEST_STACK)
            return fail(reader, "a call stack is too deep");
        for (uint64_t i = 0; i < frames; i++, next++) {
            int32_t frame = next < reader->radix_count ? (int32_t)at(reader, reader->radix + 4 * next, 4) : -1;
            if (frame < 0) {
                next += (uint64_t) - (int64_t)frame;
                frame = next < reader->radix_count ? (int32_t)at(reader, reader->radix + 4 * next, 4) : -1;
            }
            if (frame < 0 || (size_t)frame >= reader->profile->frame_count)
                return fail(reader, "a call stack names a frame that does not exist");
            if (!append_frame(reader, (uint64_t)frame))
                return false;
        }
        reader->taken[place] = start + 1;
        reader->taken_count[place] = (uint32_t)frames;
    }
    *first = reader->taken[place] - 1;
    *count = reader->taken_count[place];
    return true;
}

/* The stack with an id, version 2. */
static bool take_id(struct reader *reader, uint64_t id, size_t *first, uint32_t *count)
{
    struct found *stack = find(reader->stack, reader->stack_count, id);
    if (!stack)
        return fail(reader, "a call stack is missing");
    if (!stack->taken) {
        const size_t start = reader->profile->stack_size;
        if (stack->size / 8 > DEEPEST_STACK)
            return fail(reader, "a call stack is too deep");
        stack->count = (uint32_t)(stack->size / 8);
        for (uint32_t i = 0; i < stack->count; i++) {
            const struct found *frame =
                find(reader->frame, reader->frame_count, at(reader, stack->offset + 8ull * i, 8));
            if (!frame)
                return fail(reader, "a call stack names a frame that does not exist");
            if (!append_frame(reader, (uint64_t)(frame - reader->frame)))
                return false;
        }
        stack->taken = start + 1;
    }
    *first = stack->taken - 1;
    *count = stack->count;
    return true;
}

/* ---- records ---- */

static bool read_allocation(struct reader *reader, uint64_t function, uint64_t offset)
{
    const unsigned id_size = reader->version == 2 ? 8 : 4;
    const uint64_t stack = at(reader, offset, id_size);
    struct allocation made = {.function = function, .order = (uint32_t)reader->allocation_count};
    offset += id_size;
    for (size_t i = 0; i < reader->schema_size; i++) {
        const uint8_t field = reader->schema[i];
        made.mib.field[field] = at(reader, offset, hw_llvm_fields[field].size);
        offset += hw_llvm_fields[field].size;
    }
    made.mib.field[HW_LLVM_HISTOGRAM_SIZE] = made.mib.field[HW_LLVM_HISTOGRAM] = 0; /* the cells are not there */
    if (!(reader->version == 2 ? take_id : take_place)(reader, stack, &made.stack, &made.count))
        return false;
    if (!HW_GROW(reader->allocation, reader->allocation_capacity, reader->allocation_count + 1))
        return no_memory(reader);
    reader->allocation[reader->allocation_count++] = made;
    return true;
}

static bool read_record(struct reader *reader, uint64_t function, uint64_t offset, uint64_t size)
{
    const unsigned entry = (reader->version == 2 ? 8 : 4) + reader->mib_size;
    if (size < 8)
        return fail(reader, "a record is cut short");
    const uint64_t count = at(reader, offset, 8);
    if (count > (size - 8) / entry)
        return fail(reader, "a record is cut short");
    for (uint64_t i = 0; i < count; i++)
        if (!read_allocation(reader, function, offset + 8 + entry * i))
            return false;
    return true; /* call sites follow, which the stacks contain */
}

static int compare_allocations(const void *left, const void *right)
{
    const struct allocation *a = left, *b = right;
    return HW_ORDER(a->stack, b->stack) ?: HW_ORDER(a->function, b->function) ?: HW_ORDER(a->order, b->order);
}

/* How often FUNCTION is among what the leaf was inlined into: so often its record has the context. */
static size_t copies(const struct reader *reader, const struct allocation *allocation, uint64_t function)
{
    const struct hw_llvm_profile *profile = reader->profile;
    size_t count = 0;
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct hw_llvm_frame *frame = &profile->frames[profile->stacks[allocation->stack + i]];
        count += frame->function == function;
        if (!frame->inlined)
            break;
    }
    return count ? count : 1;
}

/* Allocations of one stack: those in the record of the leaf's function, or of any other if that has none. */
static void take_allocations(struct reader *reader, size_t first, size_t end)
{
    struct hw_llvm_profile *profile = reader->profile;
    const struct allocation *all = reader->allocation;
    uint64_t function = all[first].function;
    const uint64_t leaf = all[first].count ? profile->frames[profile->stacks[all[first].stack]].function : function;
    for (size_t i = first; i < end; i++)
        if (all[i].function == leaf)
            function = leaf;
    const size_t step = copies(reader, &all[first], function);
    size_t seen = 0;
    for (size_t i = first; i < end; i++) {
        if (all[i].function == function && seen++ % step == 0)
            profile->contexts[profile->context_count++] =
                (struct hw_llvm_context){.first = all[i].stack, .count = all[i].count, .mib = all[i].mib};
    }
}

static bool make_contexts(struct reader *reader)
{
    struct hw_llvm_profile *profile = reader->profile;
    profile->contexts = malloc((reader->allocation_count + 1) * sizeof *profile->contexts);
    if (!profile->contexts)
        return no_memory(reader);
    if (reader->allocation_count)
        qsort(reader->allocation, reader->allocation_count, sizeof *reader->allocation, compare_allocations);
    for (size_t first = 0, end; first < reader->allocation_count; first = end) {
        for (end = first + 1; end < reader->allocation_count; end++)
            if (reader->allocation[end].stack != reader->allocation[first].stack ||
                reader->allocation[end].count != reader->allocation[first].count)
                break;
        take_allocations(reader, first, end);
    }
    return true;
}

/* ---- the whole ---- */

/* Moves OFFSET behind the schema. */
static bool read_schema(struct reader *reader, uint64_t *offset)
{
    if (!has(reader, *offset, 8))
        return fail(reader, "its schema is cut short");
    const uint64_t count = at(reader, *offset, 8);
    *offset += 8;
    if (count > SCHEMA_MOST || !has(reader, *offset, 8 * count))
        return fail(reader, "its schema is cut short");
    for (uint64_t i = 0; i < count; i++, *offset += 8) {
        const uint64_t field = at(reader, *offset, 8);
        if (field == 0 || field >= HW_LLVM_FIELDS) {
            hw_error_set(reader->error,
                         "'%s' holds a field of heap profiles that is not known here (number %" PRIu64
                         "): it is of a newer LLVM, or damaged",
                         reader->path, field);
            return false;
        }
        reader->schema[reader->schema_size++] = (uint8_t)field;
        reader->mib_size += hw_llvm_fields[field].size;
        reader->profile->known |= 1u << field;
    }
    reader->profile->known &= ~(1u << HW_LLVM_HISTOGRAM_SIZE | 1u << HW_LLVM_HISTOGRAM);
    return true;
}

static bool read_version_2(struct reader *reader, uint64_t offset)
{
    uint64_t schema = offset + 48;
    if (!has(reader, offset, 48))
        return fail(reader, "it is cut short");
    if (!read_schema(reader, &schema) || !read_table(reader, at(reader, offset + 24, 8), true, note_frame) ||
        !read_table(reader, at(reader, offset + 40, 8), false, note_stack))
        return false;
    if (reader->frame_count)
        qsort(reader->frame, reader->frame_count, sizeof *reader->frame, compare_found);
    if (reader->stack_count)
        qsort(reader->stack, reader->stack_count, sizeof *reader->stack, compare_found);
    if (!make_frames(reader, reader->frame_count))
        return false;
    for (size_t i = 0; i < reader->frame_count; i++)
        add_frame(reader, reader->frame[i].offset);
    return read_table(reader, at(reader, offset + 8, 8), true, read_record);
}

static bool read_version_3(struct reader *reader, uint64_t offset)
{
    if (!has(reader, offset, 32))
        return fail(reader, "it is cut short");
    const uint64_t stacks = at(reader, offset + 8, 8), records = at(reader, offset + 16, 8);
    const uint64_t table = at(reader, offset + 24, 8);
    uint64_t place = offset + 32;
    if (reader->version >= 4) {
        if (!has(reader, place, 12) || !has(reader, place + 12, 8 * at(reader, place + 8, 4)))
            return fail(reader, "it is cut short");
        place += 12 + 8 * at(reader, place + 8, 4);
    }
    if (!read_schema(reader, &place))
        return false;
    if (stacks < place || records < stacks || records > reader->size)
        return fail(reader, "its parts lie where they cannot be");
    reader->radix = stacks;
    reader->radix_count = (records - stacks) / 4;
    reader->taken = calloc(reader->radix_count + 1, sizeof *reader->taken);
    reader->taken_count = calloc(reader->radix_count + 1, sizeof *reader->taken_count);
    if (!reader->taken || !reader->taken_count)
        return no_memory(reader);
    return read_frames(reader, place, stacks) && read_table(reader, table, true, read_record);
}

static bool read_whole(struct reader *reader)
{
    if (reader->size < HEADER_SIZE)
        return fail(reader, "it is cut short");
    const uint64_t version = at(reader, 8, 8), offset = at(reader, MEMPROF_OFFSET, 8);
    if (!(version >> 62 & 1)) {
        hw_error_set(reader->error, "'%s' is an LLVM profile without heap profiles", reader->path);
        return false;
    }
    if (!has(reader, offset, 8))
        return fail(reader, "it is cut short");
    const uint64_t memprof = at(reader, offset, 8);
    if (memprof < HW_LLVM_INDEXED_OLDEST || memprof > HW_LLVM_INDEXED_VERSION) {
        hw_error_set(reader->error,
                     "'%s' holds LLVM heap profiles of another version than 2, 3 and 4, which can be read",
                     reader->path);
        return false;
    }
    reader->version = reader->profile->version = (uint32_t)memprof;
    reader->visits_left = reader->size * 8 + (1 << 20);
    return (memprof == 2 ? read_version_2 : read_version_3)(reader, offset) && make_contexts(reader);
}

bool hw_llvm_indexed_read(const unsigned char *bytes, size_t size, const char *path, struct hw_llvm_profile *profile,
                          struct hw_error *error)
{
    *profile = (struct hw_llvm_profile){.symbolized = true};
    struct reader reader = {.bytes = bytes, .size = size, .path = path, .profile = profile, .error = error};
    const bool fine = read_whole(&reader);
    free(reader.taken);
    free(reader.taken_count);
    free(reader.frame);
    free(reader.stack);
    free(reader.allocation);
    if (!fine)
        hw_llvm_profile_free(profile);
    return fine;
}
