/* llvm_indexed_write.c - LLVM's indexed profile with nothing but heap profiles in it, as clang reads it.
 *
 *     9 u64: magic, 1<<62 | 13, 0, 0, offset of the hash table of counters (there are none),
 *         offset of the heap profiles, offset of build ids, 0, offset of virtual tables
 *     summary of the counters: u64 6, u64 16, 6 u64 of zero, 16 x { u64 cutoff, 0, 0 }
 *     hash table of the counters: u64 1, 0, 0
 *     heap profiles: u64 version (3 or 4), offsets of stacks, of records, of the record table
 *         version 4: u64 offset of data access profiles (0: none; llvm_variables.c), u32 6, 6 u64 of a summary
 *         u64 n, n x u64: the schema, numbers of fields
 *         frames: { u64 GUID, u32 line offset, u32 column, u8 inlined }
 *         stacks, an array of i32: length, then indexes of frames, leaf first; -k: go on k places further
 *         records by function, as an on-disk hash table:
 *             u64 n, n x { u32 place of the stack, the schema's fields }
 *             u64 n, n x { u32 place of the stack, version 4: u64 0, the number of callees that are known }
 *     u64 0: build ids; u64 0: virtual tables
 *
 * Stacks share their roots: sorted from the root on, each holds only what differs from the one before and then jumps
 * into that. The array is made from its end. */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define INDEXED_VERSION (1ull << 62 | 13)

/* Callers of hw_llvm_sites are many, stacks are fewer: each is stored once. */
struct stack {
    const uint64_t *frames;
    uint32_t count;
    uint32_t place; /* in the array */
    size_t site;    /* that it is for */
};

struct writer {
    const struct hw_llvm_profile *profile;
    uint32_t version;
    struct hw_llvm_bytes *out;
    struct hw_llvm_site *site;
    size_t site_count;
    uint32_t *place; /* by site: of its stack */
    unsigned char schema[HW_LLVM_FIELDS];
    size_t schema_size;
};

/* ---- what surrounds the heap profiles ---- */

static void write_counters(struct hw_llvm_bytes *out)
{
    static const uint32_t cutoffs[] = {10000,  100000, 200000, 300000, 400000, 500000, 600000, 700000,
                                       800000, 900000, 950000, 990000, 999000, 999900, 999990, 999999};
    hw_llvm_put(out, 6, 8);
    hw_llvm_put(out, sizeof cutoffs / sizeof *cutoffs, 8);
    for (int i = 0; i < 6; i++)
        hw_llvm_put(out, 0, 8);
    for (size_t i = 0; i < sizeof cutoffs / sizeof *cutoffs; i++) {
        hw_llvm_put(out, cutoffs[i], 8);
        hw_llvm_put(out, 0, 8);
        hw_llvm_put(out, 0, 8);
    }
    hw_llvm_set(out, 0x20, out->used);
    hw_llvm_put(out, 1, 8); /* one bucket, no entries */
    hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, 0, 8);
}

/* By LLVM's own thresholds: contexts, cold ones, hot ones (none: hints for them are off), the greatest sizes of cold,
 * other and hot contexts. */
static void write_summary(struct writer *writer)
{
    uint64_t cold = 0, largest_cold = 0, largest = 0;
    for (size_t i = 0; i < writer->profile->context_count; i++) {
        const uint64_t *field = writer->profile->contexts[i].mib.field, size = field[HW_LLVM_TOTAL_SIZE];
        const double count = (double)field[HW_LLVM_ALLOC_COUNT];
        const bool is_cold = (double)field[HW_LLVM_TOTAL_LIFETIME_DENSITY] / count / 100 < 0.05 &&
                             (double)field[HW_LLVM_TOTAL_LIFETIME] / count >= 200 * 1000;
        uint64_t *most = is_cold ? &largest_cold : &largest;
        *most = size > *most ? size : *most;
        cold += is_cold;
    }
    const uint64_t summary[6] = {writer->profile->context_count, cold, 0, largest_cold, largest, 0};
    hw_llvm_put(writer->out, 6, 4);
    for (int i = 0; i < 6; i++)
        hw_llvm_put(writer->out, summary[i], 8);
}

static void write_schema(struct writer *writer)
{
    for (int field = 1; field < HW_LLVM_HISTOGRAM_SIZE; field++) /* the cells of histograms have no place here */
        if (writer->profile->known & 1u << field)
            writer->schema[writer->schema_size++] = (unsigned char)field;
    hw_llvm_put(writer->out, writer->schema_size, 8);
    for (size_t i = 0; i < writer->schema_size; i++)
        hw_llvm_put(writer->out, writer->schema[i], 8);
}

static void write_frames(struct writer *writer)
{
    for (size_t i = 0; i < writer->profile->frame_count; i++) {
        const struct hw_llvm_frame *frame = &writer->profile->frames[i];
        hw_llvm_put(writer->out, frame->function, 8);
        hw_llvm_put(writer->out, frame->line_offset, 4);
        hw_llvm_put(writer->out, frame->column, 4);
        hw_llvm_put(writer->out, frame->inlined, 1);
    }
}

/* ---- stacks ---- */

/* From the root on. */
static int compare_stacks(const void *left, const void *right)
{
    const struct stack *a = left, *b = right;
    for (uint32_t i = 1; i <= a->count && i <= b->count; i++) {
        const uint64_t x = a->frames[a->count - i], y = b->frames[b->count - i];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return HW_ORDER(a->count, b->count);
}

static uint32_t common_root(const struct stack *a, const struct stack *b)
{
    uint32_t same = 0;
    while (same < a->count && same < b->count && a->frames[a->count - 1 - same] == b->frames[b->count - 1 - same])
        same++;
    return same;
}

struct radix {
    int32_t *entry; /* from the end of the array on */
    size_t count;
    uint32_t *position; /* by distance from the root: where the frame of the latest stack is */
};

static void add_stack(struct radix *radix, struct stack *stack, uint32_t shared)
{
    if (shared) {
        radix->entry[radix->count] = -(int32_t)(radix->count - radix->position[shared - 1]);
        radix->count++;
    }
    for (uint32_t i = shared; i < stack->count; i++) {
        radix->position[i] = (uint32_t)radix->count;
        radix->entry[radix->count++] = (int32_t)stack->frames[stack->count - 1 - i];
    }
    stack->place = (uint32_t)radix->count;
    radix->entry[radix->count++] = (int32_t)stack->count;
}

static void write_radix(struct writer *writer, struct stack *stack, struct radix *radix)
{
    for (size_t i = 0; i < writer->site_count; i++) {
        const uint32_t shared = i ? common_root(&stack[i - 1], &stack[i]) : 0;
        if (i && shared == stack[i].count && shared == stack[i - 1].count)
            stack[i].place = stack[i - 1].place;
        else
            add_stack(radix, &stack[i], shared);
    }
    for (size_t i = 0; i < writer->site_count; i++)
        writer->place[stack[i].site] = (uint32_t)(radix->count - 1 - stack[i].place);
    for (size_t i = radix->count; i-- > 0;)
        hw_llvm_put(writer->out, (uint32_t)radix->entry[i], 4);
}

static bool write_stacks(struct writer *writer)
{
    struct stack *stack = malloc((writer->site_count + 1) * sizeof *stack);
    struct radix radix = {0};
    size_t entries = 0;
    uint32_t deepest = 0;
    for (size_t i = 0; stack && i < writer->site_count; i++) {
        const struct hw_llvm_site *site = &writer->site[i];
        stack[i] = (struct stack){.frames = writer->profile->stacks + site->first, .count = site->count, .site = i};
        entries += (size_t)site->count + 2;
        deepest = site->count > deepest ? site->count : deepest;
    }
    radix.entry = malloc((entries + 1) * sizeof *radix.entry);
    radix.position = malloc(((size_t)deepest + 1) * sizeof *radix.position);
    const bool fine = stack && radix.entry && radix.position && entries < INT32_MAX;
    if (fine) {
        qsort(stack, writer->site_count, sizeof *stack, compare_stacks);
        write_radix(writer, stack, &radix);
    }
    free(stack);
    free(radix.entry);
    free(radix.position);
    return fine;
}

/* ---- records ---- */

/* The sites of one function: [first, end). */
struct record {
    size_t first, end, next; /* next: in its bucket, + 1 */
};

static void write_record(struct writer *writer, const struct record *record)
{
    struct hw_llvm_bytes *out = writer->out;
    size_t calls = record->first;
    while (calls < record->end && writer->site[calls].context != HW_LLVM_CALL)
        calls++;
    hw_llvm_put(out, calls - record->first, 8);
    for (size_t i = record->first; i < calls; i++) {
        const struct hw_llvm_context *context = &writer->profile->contexts[writer->site[i].context];
        hw_llvm_put(out, writer->place[i], 4);
        for (size_t k = 0; k < writer->schema_size; k++) {
            const enum hw_llvm_field field = writer->schema[k];
            hw_llvm_put(out, hw_llvm_saturated(field, context->mib.field[field]), hw_llvm_fields[field].size);
        }
    }
    hw_llvm_put(out, record->end - calls, 8);
    for (size_t i = calls; i < record->end; i++) {
        hw_llvm_put(out, writer->place[i], 4);
        if (writer->version >= 4)
            hw_llvm_put(out, 0, 8);
    }
}

/* An entry of the hash table: hash, sizes of key and data, key, data. */
static void write_entry(struct writer *writer, const struct record *record)
{
    struct hw_llvm_bytes *out = writer->out;
    const uint64_t function = writer->site[record->first].function;
    hw_llvm_put(out, function, 8);
    hw_llvm_put(out, 8, 8);
    const size_t size = out->used;
    hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, function, 8);
    const size_t start = out->used;
    write_record(writer, record);
    hw_llvm_set(out, size, out->used - start);
}

static size_t bucket_count(size_t entries)
{
    size_t count = 1;
    while (entries > 2 && count <= entries * 4 / 3)
        count *= 2;
    return count;
}

/* Writes the table; returns its offset, 0 without memory. */
static size_t write_table(struct writer *writer, struct record *record, size_t count)
{
    struct hw_llvm_bytes *out = writer->out;
    const size_t buckets = bucket_count(count);
    size_t *head = calloc(buckets, sizeof *head), *offset = calloc(buckets, sizeof *offset);
    for (size_t i = count; head && i-- > 0;) {
        size_t *bucket = &head[writer->site[record[i].first].function & (buckets - 1)];
        record[i].next = *bucket;
        *bucket = i + 1;
    }
    for (size_t i = 0; head && offset && i < buckets; i++) {
        uint16_t length = 0;
        for (size_t k = head[i]; k; k = record[k - 1].next)
            length++;
        if (!length)
            continue;
        offset[i] = out->used;
        hw_llvm_put(out, length, 2);
        for (size_t k = head[i]; k; k = record[k - 1].next)
            write_entry(writer, &record[k - 1]);
    }
    hw_llvm_align(out);
    const size_t table = out->used;
    hw_llvm_put(out, buckets, 8);
    hw_llvm_put(out, count, 8);
    for (size_t i = 0; offset && i < buckets; i++)
        hw_llvm_put(out, offset[i], 8);
    const bool fine = head && offset;
    free(head);
    free(offset);
    return fine ? table : 0;
}

static size_t write_records(struct writer *writer)
{
    struct record *record = calloc(writer->site_count + 1, sizeof *record);
    size_t count = 0;
    for (size_t i = 0; record && i < writer->site_count; i++) {
        if (i == 0 || writer->site[i].function != writer->site[i - 1].function)
            record[count++].first = i;
        record[count - 1].end = i + 1;
    }
    const size_t table = record ? write_table(writer, record, count) : 0;
    free(record);
    return table;
}

/* ---- the whole ---- */

static bool write_profiles(struct writer *writer)
{
    struct hw_llvm_bytes *out = writer->out;
    const size_t start = out->used;
    hw_llvm_put(out, writer->version, 8);
    for (int i = 0; i < 3; i++)
        hw_llvm_put(out, 0, 8);
    if (writer->version >= 4) {
        hw_llvm_put(out, 0, 8);
        write_summary(writer);
    }
    write_schema(writer);
    write_frames(writer);
    hw_llvm_set(out, start + 8, out->used);
    if (!write_stacks(writer))
        return false;
    hw_llvm_set(out, start + 16, out->used);
    const size_t table = write_records(writer);
    hw_llvm_set(out, start + 24, table);
    if (writer->version >= 4 && writer->profile->variable_count) {
        hw_llvm_align(out);
        hw_llvm_set(out, start + 32, out->used);
        hw_llvm_write_variables(writer->profile, out);
    }
    return table != 0;
}

bool hw_llvm_indexed_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out)
{
    struct writer writer = {.profile = profile, .version = version, .out = out};
    writer.site = hw_llvm_sites(profile, &writer.site_count);
    writer.place = malloc((writer.site_count + 1) * sizeof *writer.place);
    bool fine = writer.site && writer.place;
    if (fine) {
        hw_llvm_put(out, HW_LLVM_INDEXED_MAGIC, 8);
        hw_llvm_put(out, INDEXED_VERSION, 8);
        for (int i = 2; i < 9; i++)
            hw_llvm_put(out, 0, 8);
        write_counters(out);
        hw_llvm_set(out, 0x28, out->used);
        fine = write_profiles(&writer);
        hw_llvm_set(out, 0x30, out->used);
        hw_llvm_put(out, 0, 8);
        hw_llvm_set(out, 0x40, out->used);
        hw_llvm_put(out, 0, 8);
    }
    free(writer.site);
    free(writer.place);
    return fine && !out->failed;
}
