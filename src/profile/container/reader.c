/* reader.c - checked extents -> tables in memory.
 *
 * One private copy of the bytes is taken, in an order that makes the copy consistent although the process goes on
 * writing: what refers is copied before what is referred to, and the directory is read anew before each step. A MIB
 * that was copied names a context; that context was complete before the MIB named it, so the later reading of the
 * directory covers it. The same holds for contexts and frames, frames and maps, maps and strings. */
#include "profile/container/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "profile/container/pack.h"
#include "profile/container/write.h"

/* ---- one extent ---- */

static const char *name_of(const struct hw_extent *extent)
{
    return hw_section_rule(extent->entry.type)->name;
}

/* Fits COUNT entries of ENTRY_SIZE bytes to entries of SIZE bytes; TARGET is zeroed. */
static void fit(char *target, size_t size, const char *source, size_t entry_size, size_t count)
{
    size_t shared = size < entry_size ? size : entry_size;
    for (size_t i = 0; i < count; i++)
        memcpy(target + i * size, source + i * entry_size, shared);
}

/* Each once for a section, however many extents are concerned. */
static void say_damaged(struct hw_container *container, const struct hw_extent *extent)
{
    hw_problem(container->problems, "The file is damaged; lost, in whole or in part: %s.", name_of(extent));
}

static void say_cut(struct hw_container *container, const struct hw_extent *extent)
{
    hw_problem(container->problems, "The file is cut short; lost, in whole or in part: %s.", name_of(extent));
}

/* True when the bytes of an extent may be used. Reports why not, and what is missing. */
static bool bytes_are_good(struct hw_container *container, const struct hw_extent *extent, const char *bytes,
                           size_t got)
{
    if (got < extent->entry.used) {
        say_cut(container, extent);
        return !container->sealed || extent->trusted; /* it cannot be checked */
    }
    if (!container->sealed || XXH64(bytes, got, 0) == extent->entry.checksum)
        return true;
    say_damaged(container, extent);
    return false;
}

/* Copies an extent into TARGET, which has zeroed room for all its entries of SIZE bytes. Returns how many entries are
 * good; SIZE_MAX when the memory does not suffice. */
static size_t load_extent(struct hw_container *container, const struct hw_extent *extent, char *target, size_t size)
{
    size_t entry_size = extent->entry.entry_size, available = (size_t)extent->available;
    size_t count = available / entry_size;
    bool direct = entry_size == size && available % entry_size == 0;
    char *bytes = direct ? target : malloc(available ? available : 1);
    if (!bytes)
        return SIZE_MAX;
    int64_t got = hw_container_read(container->fd, bytes, available, extent->entry.offset);
    bool good = got >= 0;
    if (!good)
        hw_problem(container->problems, "The file cannot be read in full (%s); lost, in whole or in part: %s.",
                   strerror(errno), name_of(extent));
    good = good && bytes_are_good(container, extent, bytes, (size_t)got);
    if (good) {
        count = (size_t)got / entry_size;
        if ((size_t)got == extent->entry.used && extent->entry.used % entry_size != 0)
            say_damaged(container, extent);
    }
    if (good && !direct)
        fit(target, size, bytes, entry_size, count);
    if (!good && direct)
        memset(target, 0, available);
    if (!direct)
        free(bytes);
    return good ? count : 0;
}

/* ---- one section ---- */

static bool is_packed(const struct hw_extent *extent)
{
    return extent->entry.flags & HW_SECTION_PACKED;
}

/* How many entries an extent takes in its table. In an indexed section that is what it claims to have, so that the
 * entries behind it keep their index; claims that the whole file could not hold (*CLAIMED_BYTES is their sum so far)
 * are not believed. A packed extent can claim at most what its bytes could hold. */
static bool entries_claimed(const struct hw_container *container, const struct hw_extent *extent, bool indexed,
                            uint64_t *claimed_bytes, size_t *count)
{
    bool believed = !indexed || extent->entry.used <= container->file_size - *claimed_bytes;
    uint64_t bytes = indexed && believed ? extent->entry.used : extent->available;
    if (indexed && believed)
        *claimed_bytes += extent->entry.used;
    *count = (size_t)(bytes / extent->entry.entry_size);
    if (is_packed(extent)) {
        const uint64_t most = bytes * HW_PACK_RATIO_MOST / extent->entry.entry_size;
        *count = (size_t)(extent->entry.entries < most ? extent->entry.entries : most);
    }
    return believed;
}

/* Chunks are the pieces of a packed extent that can be missing. */
static size_t holes_most(const struct hw_extent *extent)
{
    return is_packed(extent) ? 2 + (size_t)(extent->available / sizeof(struct hw_packed_chunk)) : 1;
}

static bool allocate_table(struct hw_container *container, struct hw_arena *arena, uint32_t type,
                           struct hw_table *table)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    size_t entries = 0, holes = 0, count;
    uint64_t claimed_bytes = 0;
    for (size_t i = 0; i < container->extent_count; i++) {
        const struct hw_extent *extent = &container->extents[i];
        if (extent->entry.type != type)
            continue;
        bool believed = entries_claimed(container, extent, rule->indexed, &claimed_bytes, &count);
        entries += count;
        holes += holes_most(extent);
        if (!believed)
            break;
    }
    *table = (struct hw_table){0};
    /* One zero byte or entry more than needed: strings end, and context 0 and frame 0 always exist. */
    table->entries = hw_arena_allocate(arena, entries + 1, rule->size);
    if (rule->indexed)
        table->holes = hw_arena_allocate(arena, holes + 1, sizeof *table->holes);
    return table->entries && (table->holes || !rule->indexed);
}

static void add_hole(struct hw_table *table, size_t first, size_t end)
{
    if (!table->holes || first >= end)
        return;
    if (table->hole_count && table->holes[table->hole_count - 1].end == first)
        table->holes[table->hole_count - 1].end = end;
    else
        table->holes[table->hole_count++] = (struct hw_hole){first, end};
}

/* What a file of this version holds and this version cannot read is damage. */
static void say_packed(struct hw_container *container, const struct hw_extent *extent, enum hw_packed_outcome outcome)
{
    if (outcome == HW_PACKED_CUT)
        say_cut(container, extent);
    else if (outcome == HW_PACKED_NEWER && container->header.version_minor > HW_FILE_VERSION_MINOR)
        hw_problem(container->problems, "Left out, as only a newer heapwise can read it: %s.", name_of(extent));
    else
        say_damaged(container, extent);
}

/* Unpacks an extent behind the entries that TABLE has; CLAIMED entries have room. Bad chunks are left out, or leave a
 * hole in indexed sections. False: out of memory. */
static bool load_packed(struct hw_container *container, const struct hw_extent *extent, struct hw_table *table,
                        size_t claimed, size_t *good)
{
    const struct hw_section_rule *rule = hw_section_rule(extent->entry.type);
    const size_t end = table->count + claimed;
    struct hw_packed packed;
    enum hw_packed_outcome outcome = hw_packed_open(&packed, container->fd, extent);
    *good = 0;
    if (outcome != HW_PACKED_GOOD && outcome != HW_PACKED_NO_MEMORY)
        say_packed(container, extent, outcome);
    for (size_t i = 0; outcome == HW_PACKED_GOOD && i < packed.header.chunk_count; i++) {
        const size_t count = hw_packed_entries(&packed, i);
        char *target = (char *)table->entries + table->count * rule->size;
        if (count > end - table->count) /* no room: the file is cut */
            break;
        outcome = hw_packed_read(&packed, i, target, rule->size);
        if (outcome == HW_PACKED_NO_MEMORY)
            break;
        if (outcome == HW_PACKED_GOOD) {
            table->count += count;
            *good += count;
            continue;
        }
        say_packed(container, extent, outcome);
        memset(target, 0, count * rule->size);
        if (rule->indexed) {
            add_hole(table, table->count, table->count + count);
            table->count += count;
        }
        outcome = HW_PACKED_GOOD;
    }
    hw_packed_close(&packed);
    if (rule->indexed) {
        add_hole(table, table->count, end);
        table->count = end;
    }
    return outcome != HW_PACKED_NO_MEMORY;
}

/* The same for an extent that is not packed. */
static bool load_plain(struct hw_container *container, const struct hw_extent *extent, struct hw_table *table,
                       size_t claimed, size_t *good)
{
    const struct hw_section_rule *rule = hw_section_rule(extent->entry.type);
    *good = load_extent(container, extent, (char *)table->entries + table->count * rule->size, rule->size);
    if (*good == SIZE_MAX)
        return false;
    if (rule->indexed)
        add_hole(table, table->count + *good, table->count + claimed);
    table->count += rule->indexed ? claimed : *good;
    return true;
}

/* Reads all extents of TYPE. False when the memory does not suffice. */
static bool read_section(struct hw_container *container, struct hw_arena *arena, uint32_t type,
                         struct hw_tables *tables)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    struct hw_table *table = &tables->of[type];
    uint64_t claimed_bytes = 0;
    const size_t known = container->problems->count + container->problems->left_out;
    if (!allocate_table(container, arena, type, table))
        return false;
    for (size_t i = 0; i < container->extent_count; i++) {
        const struct hw_extent *extent = &container->extents[i];
        size_t claimed, good;
        if (extent->entry.type != type)
            continue;
        bool believed = entries_claimed(container, extent, rule->indexed, &claimed_bytes, &claimed);
        if (!(is_packed(extent) ? load_packed : load_plain)(container, extent, table, claimed, &good))
            return false;
        if (good > 0)
            tables->extents_read++;
        if (!believed) {
            say_damaged(container, extent);
            break;
        }
    }
    table->damaged = container->problems->count + container->problems->left_out > known;
    if (rule->indexed && table->count >= HW_NONE && type != HW_SECTION_STRINGS) {
        hw_problem(container->problems, "The file is damaged: there are more entries than can be of: %s.", rule->name);
        table->count = HW_NONE - 1;
    }
    return true;
}

/* An extent of a type that this reader does not know is not used, but damage to it is damage to the file. */
static void check_unknown(struct hw_container *container)
{
    for (size_t i = 0; i < container->extent_count; i++) {
        const struct hw_extent *extent = &container->extents[i];
        uint64_t checksum;
        if (!container->sealed || hw_section_rule(extent->entry.type))
            continue;
        if (extent->available < extent->entry.used ||
            !hw_container_checksum(container->fd, extent->entry.offset, extent->entry.used, &checksum) ||
            checksum != extent->entry.checksum)
            hw_problem(container->problems, "A section of a newer version (type %u) is damaged; it is not used anyway.",
                       extent->entry.type);
    }
}

/* ---- all sections ---- */

static uint64_t peak_epoch(const struct hw_tables *tables)
{
    const struct hw_table *table = &tables->of[HW_SECTION_PROCESS];
    return table->count ? ((const struct hw_process_info *)table->entries)->peak_epoch : 0;
}

/* All sections of one turn. */
static bool read_turn(struct hw_container *container, struct hw_arena *arena, unsigned turn, struct hw_tables *tables)
{
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
        if (hw_section_rule(type) && hw_section_rule(type)->turn == turn &&
            !read_section(container, arena, type, tables))
            return false;
    return true;
}

/* Everything that only refers to others. The share of the peak in a MIB is counted against the epoch in the process
 * section, so both must be of one moment: the epoch must be the same before and after. In a program that grows without
 * a pause that may never happen; the last attempt then stands, and is off by what happened while it was copied. */
static bool read_referring(struct hw_container *container, struct hw_arena *arena, struct hw_tables *tables)
{
    for (int attempt = 0; attempt < 4; attempt++) {
        if (!read_section(container, arena, HW_SECTION_PROCESS, tables))
            return false;
        uint64_t before = peak_epoch(tables);
        if (!read_section(container, arena, HW_SECTION_MIBS, tables))
            return false;
        if (container->sealed)
            break;
        if (!read_section(container, arena, HW_SECTION_PROCESS, tables))
            return false;
        if (peak_epoch(tables) == before)
            break;
    }
    return read_turn(container, arena, HW_TURN_ANY, tables);
}

/* True when the file was sealed in the middle of reading: then it is read again, with checksums. */
static bool reload(struct hw_container *container, struct hw_error *error, bool *fine)
{
    bool sealed = container->sealed;
    if (sealed) {
        *fine = true; /* nothing moves any more */
        return false;
    }
    *fine = hw_container_load(container, error);
    return *fine && container->sealed;
}

enum outcome { READ, SEALED_MEANWHILE, FAILED };

static enum outcome read_once(struct hw_container *container, struct hw_arena *arena, struct hw_tables *tables,
                              struct hw_error *error)
{
    bool fine;
    memset(tables, 0, sizeof *tables);
    hw_error_set(error, "cannot read '%s': not enough memory", container->path);
    if (!read_referring(container, arena, tables))
        return FAILED;
    for (unsigned turn = HW_TURN_REFERRED; turn <= HW_TURN_LAST; turn++) {
        if (reload(container, error, &fine))
            return SEALED_MEANWHILE;
        if (!fine || !read_turn(container, arena, turn, tables))
            return FAILED;
    }
    check_unknown(container);
    return READ;
}

bool hw_tables_read(struct hw_container *container, struct hw_arena *arena, struct hw_tables *tables,
                    struct hw_error *error)
{
    enum outcome outcome = SEALED_MEANWHILE;
    for (int attempt = 0; attempt < 3 && outcome == SEALED_MEANWHILE; attempt++) {
        if (!hw_container_load(container, error))
            return false;
        outcome = read_once(container, arena, tables, error);
    }
    if (outcome == FAILED)
        return false;
    if (outcome == SEALED_MEANWHILE) {
        hw_error_set(error, "cannot read '%s': it keeps changing", container->path);
        return false;
    }
    if (tables->extents_read == 0) {
        if (container->problems->count > 0)
            hw_error_set(error, "'%s' is damaged, nothing in it can be recovered: %s", container->path,
                         container->problems->sentences[0]);
        else
            hw_error_set(error, "'%s' holds nothing yet: its process had only just started", container->path);
        return false;
    }
    if (error)
        error->message[0] = 0;
    return true;
}

bool hw_tables_load(const char *path, struct hw_arena *arena, struct hw_tables *tables, struct hw_write_options *write,
                    struct hw_error *error)
{
    struct hw_problems problems = {.arena = arena};
    struct hw_container container = {.path = path, .problems = &problems};
    container.fd = hw_container_open(path, false, error);
    bool fine = container.fd >= 0 && hw_tables_read(&container, arena, tables, error);
    if (fine) {
        write->file_flags = container.header.flags;
        write->session = container.header.session;
        for (size_t i = 0; i < container.extent_count; i++)
            write->packed |= is_packed(&container.extents[i]);
        write->zstd_level = write->packed ? HW_PACK_LEVEL : 0;
        fine = container.sealed && problems.count == 0 && container.header.version_minor <= HW_FILE_VERSION_MINOR;
        if (problems.count)
            hw_error_set(error, "'%s' is damaged: %s", path, problems.sentences[0]);
        else if (!container.sealed)
            hw_error_set(error, "'%s' is not finished: its process was not seen to end", path);
        else if (!fine)
            hw_error_set(error, "'%s' is of a newer version: parts of it would be lost", path);
    }
    if (container.fd >= 0)
        close(container.fd);
    hw_container_free(&container);
    return fine;
}

void *hw_table_make(struct hw_tables *tables, struct hw_arena *arena, uint32_t type, size_t count)
{
    struct hw_table *table = &tables->of[type];
    *table = (struct hw_table){.entries = hw_arena_allocate(arena, count + 1, hw_section_rule(type)->size)};
    table->count = table->entries ? count : 0;
    return table->entries;
}

bool hw_table_missing(const struct hw_table *table, size_t index)
{
    size_t low = 0, high = table->hole_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index >= table->holes[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->hole_count && index >= table->holes[low].first;
}
