/* profile_writer.h - builds profile files byte by byte, from format.h alone, for the tests of the reader.
 *
 * Deliberately shares no code with the runtime or the reader, XXH64 excepted. Used by tests/unit and tests/fuzz. */
#ifndef HW_TESTS_PROFILE_WRITER_H
#define HW_TESTS_PROFILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "profile/format.h"

#define HELPER static __attribute__((unused))

struct image {
    unsigned char *bytes;
    size_t size;
    size_t directory;       /* offset of the first entry of the directory that entries go to now */
    size_t directory_entry; /* offset of its own entry; 0 for the first directory */
    size_t directory_used, directory_room;
};

HELPER struct hw_file_header *image_header(struct image *image)
{
    return (struct hw_file_header *)image->bytes;
}

HELPER void image_resize(struct image *image, size_t size)
{
    image->bytes = realloc(image->bytes, size);
    if (!image->bytes)
        abort();
    if (size > image->size)
        memset(image->bytes + image->size, 0, size - image->size);
    image->size = size;
}

HELPER struct image image_new(void)
{
    struct image image = {0};
    image_resize(&image, HW_FILE_PAGE);
    *image_header(&image) = (struct hw_file_header){
        .magic = HW_FILE_MAGIC,
        .version_major = 1,
        .total_size = HW_FILE_PAGE,
        .page_size = HW_FILE_PAGE,
        .directory_capacity = 60,
    };
    image.directory = sizeof(struct hw_file_header);
    image.directory_room = 60;
    return image;
}

HELPER void image_free(struct image *image)
{
    free(image->bytes);
    *image = (struct image){0};
}

/* Appends an extent and its directory entry; returns the offset of the entry. CAPACITY is rounded up to pages. */
HELPER size_t image_add(struct image *image, uint32_t type, size_t entry_size, const void *data, size_t used,
                        size_t capacity)
{
    size_t offset = image->size, position = image->directory + image->directory_used * sizeof(struct hw_section);
    if (capacity < used)
        capacity = used;
    capacity = (capacity + HW_FILE_PAGE - 1) / HW_FILE_PAGE * HW_FILE_PAGE;
    if (image->directory_used == image->directory_room)
        abort();
    image_resize(image, offset + capacity);
    if (data)
        memcpy(image->bytes + offset, data, used);
    struct hw_section entry = {.type = type,
                               .version = 1,
                               .offset = offset,
                               .capacity = capacity,
                               .used = used,
                               .entry_size = (uint32_t)entry_size};
    memcpy(image->bytes + position, &entry, sizeof entry);
    image->directory_used++;
    struct hw_file_header *header = image_header(image);
    header->total_size = image->size;
    uint64_t *first = type == HW_SECTION_MAPS     ? &header->map_offset
                      : type == HW_SECTION_MIBS   ? &header->mib_offset
                      : type == HW_SECTION_STACKS ? &header->stack_offset
                                                  : NULL;
    if (first && *first == 0)
        *first = offset;
    if (image->directory_entry == 0)
        header->directory_used = (uint32_t)image->directory_used;
    else
        ((struct hw_section *)(image->bytes + image->directory_entry))->used = image->directory_used * sizeof entry;
    return position;
}

HELPER struct hw_section *image_section(struct image *image, size_t position)
{
    return (struct hw_section *)(image->bytes + position);
}

/* The bytes of an extent. */
HELPER void *image_data(struct image *image, size_t position)
{
    return image->bytes + image_section(image, position)->offset;
}

/* Appends a further directory; later entries go there. Returns the offset of its entry. */
HELPER size_t image_chain(struct image *image, size_t entries)
{
    size_t position =
        image_add(image, HW_SECTION_DIRECTORY, sizeof(struct hw_section), NULL, 0, entries * sizeof(struct hw_section));
    image->directory = image_section(image, position)->offset;
    image->directory_entry = position;
    image->directory_used = 0;
    image->directory_room = entries;
    return position;
}

HELPER void image_seal_directory(struct image *image, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hw_section *entry = image_section(image, first + i * sizeof *entry);
        if (entry->type == HW_SECTION_DIRECTORY)
            image_seal_directory(image, entry->offset, entry->used / sizeof *entry);
        entry->checksum = XXH64(image->bytes + entry->offset, entry->used, 0);
    }
}

HELPER void image_seal(struct image *image)
{
    struct hw_file_header *header = image_header(image);
    image_seal_directory(image, sizeof *header, header->directory_used);
    header->flags |= HW_FILE_SEALED;
    header->checksum = 0;
    header->checksum = XXH64(image->bytes, HW_FILE_PAGE, 0);
}

/* A file in memory that can be opened by name. */
struct memory_file {
    int fd;
    char path[64];
};

HELPER struct memory_file memory_file(const void *bytes, size_t size)
{
    struct memory_file file = {.fd = memfd_create("profile", MFD_CLOEXEC)};
    if (file.fd < 0 || (size > 0 && pwrite(file.fd, bytes, size, 0) != (ssize_t)size))
        abort();
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

/* ---- a small, complete profile ---- */

/* Strings of the sample, at known offsets. */
#define SAMPLE_STRINGS "\0/bin/true\0glibc 2.36\0/lib/libc.so.6\0a=b\0true\0-x\0\0end\0[vdso]\0note"
enum {
    SAMPLE_EXECUTABLE = 1,
    SAMPLE_ALLOCATOR = 11,
    SAMPLE_ALLOCATOR_PATH = 22,
    SAMPLE_OPTIONS = 37,
    SAMPLE_COMMAND = 41, /* true, -x, (empty), end */
    SAMPLE_VDSO = 54,
    SAMPLE_NOTE = 61,
};

/* Where the directory entries of the sample's sections are. */
struct sample {
    struct image image;
    size_t strings, process, maps, stacks, contexts, mibs, threads, timeline, free_stacks, memory, notes, inherited;
};

/* 2 ns a tick; the run lasts 1,000,000 ticks. */
HELPER struct hw_process_info sample_process(void)
{
    return (struct hw_process_info){
        .pid = 1,
        .executable = SAMPLE_EXECUTABLE,
        .allocator = SAMPLE_ALLOCATOR,
        .allocator_path = SAMPLE_ALLOCATOR_PATH,
        .options = SAMPLE_OPTIONS,
        .command = SAMPLE_COMMAND,
        .command_count = 4,
        .cpus = 2,
        .start_time_jiffies = 1, /* of no process that lives now */
        .clock_ticks = 1000000,
        .clock_ns = 2000000,
        .end_tick = 1000000,
        .peak_rss_bytes = 1 << 20,
        .live_bytes = 300,
        .live_blocks = 3,
        .peak_bytes = 1000,
        .peak_tick = 250000,
        .peak_epoch = 5,
        .threads_seen = 2,
        .threads_most = 2,
    };
}

HELPER struct hw_mib sample_mib(uint32_t context)
{
    return (struct hw_mib){.context = context, .size_min = UINT64_MAX, .lifetime_min = UINT64_MAX};
}

/* Context 1: two MIBs, of two threads; context 2: one; context 3: seen only as a free stack. */
HELPER void sample_mibs(struct hw_mib mibs[4])
{
    mibs[0] = sample_mib(1);
    mibs[0].allocations = mibs[0].samples = 10;
    mibs[0].bytes = 1000;
    mibs[0].size_min = 50;
    mibs[0].size_max = 200;
    mibs[0].live_blocks = 4;
    mibs[0].live_bytes = 400;
    mibs[0].last_alloc_tick = 500;
    mibs[0].last_alloc_cpu = 1;
    mibs[0].peak_epoch = 5;
    mibs[0].peak_bytes = 700;
    mibs[0].peak_blocks = 7;
    mibs[0].live_ticks = 4 * 100;
    mibs[0].alloc_threads = 1;
    mibs[0].free_threads = 1;
    mibs[0].frees = 6;
    mibs[0].lifetime_total = 600;
    mibs[0].lifetime_min = 20;
    mibs[0].lifetime_max = 300;
    mibs[0].last_free_tick = 900;
    mibs[0].last_free_cpu = 0;
    mibs[0].temporary = 2;
    /* The second thread only freed blocks that the first one allocated. */
    mibs[1] = sample_mib(1);
    mibs[1].live_blocks = -2;
    mibs[1].live_bytes = -200;
    mibs[1].live_ticks = (uint64_t)-200;
    mibs[1].peak_epoch = 3;
    mibs[1].free_threads = 1;
    mibs[1].frees = 2;
    mibs[1].lifetime_total = 1000;
    mibs[1].lifetime_min = 10;
    mibs[1].lifetime_max = 990;
    mibs[1].last_free_tick = 1000;
    mibs[1].last_free_cpu = 1;
    mibs[1].migrated_cpu = 2;
    mibs[2] = sample_mib(2);
    mibs[2].allocations = mibs[2].samples = 1;
    mibs[2].bytes = 100;
    mibs[2].size_min = mibs[2].size_max = 100;
    mibs[2].live_blocks = 1;
    mibs[2].live_bytes = 100;
    mibs[2].last_alloc_tick = 600000;
    mibs[2].live_ticks = 600000;
    mibs[2].alloc_threads = 1;
    mibs[2].peak_epoch = 4;
    mibs[2].peak_bytes = 12345;   /* of another peak: must not count */
    mibs[3] = (struct hw_mib){0}; /* a slot not in use yet */
}

HELPER struct sample sample_new(void)
{
    static const struct hw_map_entry maps[2] = {
        {.start = 0x400000,
         .end = 0x500000,
         .bias = 0x1000,
         .build_id = {1, 2, 3},
         .build_id_size = 20,
         .path = SAMPLE_EXECUTABLE,
         .flags = HW_MAP_MAIN},
        {.start = 0x7fff0000, .end = 0x7fff2000, .path = SAMPLE_VDSO},
    };
    static const struct hw_stack_node nodes[5] = {
        {.map = HW_NONE}, {0x400010, 0, 0}, {0x400020, 0, 1}, {0x7fff0010, 1, 2}, {0x400030, HW_NONE, 1},
    };
    static const struct hw_context_entry contexts[4] = {
        {0},
        {.leaf = 3, .depth = 3, .first_tick = 10},
        {.leaf = 4, .depth = 2, .first_tick = 20},
        {.leaf = 1, .depth = 1, .flags = HW_CONTEXT_FREE, .first_tick = 30},
    };
    static const struct hw_thread_entry threads[2] = {
        {.serial = 1,
         .tid = 100,
         .allocations = 11,
         .frees = 6,
         .temporary = 2,
         .bytes = 1100,
         .live_bytes = 500,
         .live_blocks = 5,
         .walks = 3,
         .verified = 8,
         .failed = 1},
        {.serial = 2, .tid = 101, .frees = 2, .live_bytes = -200, .live_blocks = -2, .foreign_frees = 4},
    };
    static const struct hw_timeline_point points[3] = {
        {100, 10, 4096, 1, 0},
        {200, 20, 0, 2, 1},
        {300, 30, 8192, 3, 2},
    };
    static const struct hw_free_stack free_stacks[2] = {{1, 3, 8, 800}, {0, 0, 0, 0}};
    static const struct hw_memory_breakdown memory[1] = {{.tick = 900, .moment = HW_MOMENT_END, .rss = 1 << 20}};
    static const struct hw_note notes[1] = {{HW_NOTE_JIT, SAMPLE_NOTE, 2, 50}};
    static const struct hw_inherited inherited[1] = {{.context = 2, .blocks = 7, .bytes = 70}};
    struct hw_process_info process = sample_process();
    struct hw_mib mibs[4];
    struct sample sample = {.image = image_new()};
    struct image *image = &sample.image;
    sample_mibs(mibs);
    sample.process = image_add(image, HW_SECTION_PROCESS, sizeof process, &process, sizeof process, 0);
    sample.strings = image_add(image, HW_SECTION_STRINGS, 1, SAMPLE_STRINGS, sizeof SAMPLE_STRINGS, 0);
    sample.maps = image_add(image, HW_SECTION_MAPS, sizeof *maps, maps, sizeof maps, 0);
    sample.stacks = image_add(image, HW_SECTION_STACKS, sizeof *nodes, nodes, sizeof nodes, 0);
    sample.contexts = image_add(image, HW_SECTION_CONTEXTS, sizeof *contexts, contexts, sizeof contexts, 0);
    sample.threads = image_add(image, HW_SECTION_THREADS, sizeof *threads, threads, sizeof threads, 0);
    sample.timeline = image_add(image, HW_SECTION_TIMELINE, sizeof *points, points, sizeof points, 0);
    sample.free_stacks =
        image_add(image, HW_SECTION_FREE_STACKS, sizeof *free_stacks, free_stacks, sizeof free_stacks, 0);
    sample.memory = image_add(image, HW_SECTION_MEMORY, sizeof *memory, memory, sizeof memory, 0);
    sample.notes = image_add(image, HW_SECTION_NOTES, sizeof *notes, notes, sizeof notes, 0);
    sample.inherited = image_add(image, HW_SECTION_INHERITED, sizeof *inherited, inherited, sizeof inherited, 0);
    sample.mibs = image_add(image, HW_SECTION_MIBS, sizeof *mibs, mibs, sizeof mibs, 3 * HW_FILE_PAGE);
    return sample;
}

/* ---- counted accesses: added to a sample ---- */

/* Of a context whose blocks were never looked at, as the runtime writes it. */
HELPER struct hw_access sample_access(uint32_t context)
{
    return (struct hw_access){.context = context,
                              .accesses_min = UINT64_MAX,
                              .utilization_min = UINT32_MAX,
                              .density_min = UINT64_MAX,
                              .lifetime_density_min = UINT64_MAX};
}

/* Where the directory entries are. */
struct access_sample {
    size_t info, freed, live, globals, histogram, histogram_live;
};

/* Context 1, freed: two entries of 6 and 2 blocks; live: one block each of contexts 1 and 2. Harvested at the end. */
HELPER void sample_accesses(struct hw_access freed[4], struct hw_access live[2])
{
    for (uint32_t i = 0; i < 4; i++)
        freed[i] = sample_access(i < 2 ? 1 : i == 2 ? 2 : 0);
    freed[0].type = 77;
    freed[0].blocks = 6;
    freed[0].reads = 600;
    freed[0].writes = 300;
    freed[0].unsplit = 100;
    freed[0].accesses_min = 0;
    freed[0].accesses_max = 500;
    freed[0].granules = 20;
    freed[0].granules_touched = 10;
    freed[0].utilization_total = 30000;
    freed[0].utilization_min = 0;
    freed[0].utilization_max = 10000;
    freed[0].density_total = 12000;
    freed[0].density_min = 0;
    freed[0].density_max = 5000;
    freed[0].lifetime_density_total = 60000;
    freed[0].lifetime_density_min = 0;
    freed[0].lifetime_density_max = 30000;
    freed[0].never_accessed = 1;
    freed[0].written_never_read = 2;
    freed[0].shared_granules = 4;
    freed[0].shared_written = 3;
    freed[0].shared_writers = 2;
    freed[0].lines_false_shared = 1;
    freed[1].type = 77;
    freed[1].blocks = 2;
    freed[1].reads = 20;
    freed[1].accesses_min = 5;
    freed[1].accesses_max = 15;
    freed[1].granules = freed[1].granules_touched = 4;
    freed[1].utilization_total = 20000;
    freed[1].utilization_min = freed[1].utilization_max = 10000;
    freed[1].density_total = 200;
    freed[1].density_min = 50;
    freed[1].density_max = 150;
    freed[1].lifetime_density_total = 10;
    freed[1].lifetime_density_min = 4;
    freed[1].lifetime_density_max = 6;
    for (uint32_t i = 0; i < 2; i++) {
        live[i] = sample_access(i + 1);
        live[i].type = 77 + i;
        live[i].blocks = 1;
        live[i].writes = live[i].accesses_min = live[i].accesses_max = 1000;
        live[i].granules = live[i].granules_touched = 1;
        live[i].utilization_total = live[i].utilization_min = live[i].utilization_max = 10000;
        live[i].density_total = live[i].density_min = live[i].density_max = 7000;
        live[i].lifetime_density_total = live[i].lifetime_density_min = live[i].lifetime_density_max = 1;
        live[i].written_never_read = 1;
    }
}

HELPER struct access_sample sample_add_accesses(struct sample *sample)
{
    static const struct hw_access_info info = {.flags = HW_ACCESS_SPLIT | HW_ACCESS_UNSPLIT | HW_ACCESS_HARVESTED,
                                               .granule = 8,
                                               .planes = 3,
                                               .planes_most = 256,
                                               .harvest_tick = 1000000,
                                               .modules = 1};
    static const struct hw_global_granule globals[4] = {
        {.map = 0, .offset = 0x4008, .writes = 7, .flags = 1},
        {.map = 0, .offset = 0x4000, .reads = 5},
        {0},
        {.map = 0, .offset = 0x4008, .writes = 1, .flags = 2},
    };
    static const struct hw_histogram freed[2] = {{.context = 1, .first_word = 62, .words = {[3] = 9}},
                                                 {.context = 1, .words = {[0] = 4, [61] = 6}}};
    static const struct hw_histogram live[1] = {{.context = 1, .saturated = 1, .words = {[0] = 255}}};
    struct hw_access accesses[4], of_live[2];
    struct access_sample added;
    struct image *image = &sample->image;
    sample_accesses(accesses, of_live);
    ((struct hw_process_info *)image_data(image, sample->process))->mode = HW_MODE_ACCESS;
    added.info = image_add(image, HW_SECTION_ACCESS_INFO, sizeof info, &info, sizeof info, 0);
    added.freed = image_add(image, HW_SECTION_ACCESS, sizeof *accesses, accesses, sizeof accesses, 0);
    added.live = image_add(image, HW_SECTION_ACCESS_LIVE, sizeof *of_live, of_live, sizeof of_live, 0);
    added.globals = image_add(image, HW_SECTION_GLOBALS, sizeof *globals, globals, sizeof globals, 0);
    added.histogram = image_add(image, HW_SECTION_HISTOGRAM, sizeof *freed, freed, sizeof freed, 0);
    added.histogram_live = image_add(image, HW_SECTION_HISTOGRAM_LIVE, sizeof *live, live, sizeof live, 0);
    return added;
}

/* ---- counted fields: added to a sample ---- */

/* Two structs:
 *
 *   struct node { struct vec { int x, y; } pos; struct node *next; unsigned kind : 3, mark : 1; char name[16]; };
 *
 * as two entries, of two translation units, and another "node" with a layout of its own, without a name for its field.
 */
#define SAMPLE_FIELD_STRINGS                                                                                           \
    "\0node\0pos.x\0pos.y\0next\0kind\0mark\0name\0int\0struct node *\0unsigned int\0char[16]\0struct vec pos\0"       \
    "struct node *next\0unsigned int kind : 3\0unsigned int mark : 1\0char name[16]\0node.c\0walk\0long\0+0"

struct field_sample {
    size_t strings, structs, fields, groups, members, windows, info, types;
    uint32_t base; /* offset of these strings */
};

/* Offset of STRING among SAMPLE_FIELD_STRINGS, plus the offset of those in the file. */
HELPER uint32_t sample_field_string(const struct field_sample *sample, const char *string)
{
    static const char all[] = SAMPLE_FIELD_STRINGS;
    for (size_t at = 0; at < sizeof all; at += strlen(all + at) + 1)
        if (strcmp(all + at, string) == 0)
            return sample->base + (uint32_t)at;
    abort();
}

HELPER void sample_node_fields(const struct field_sample *sample, struct hw_field fields[6])
{
    static const struct {
        const char *name, *type, *declaration;
        struct hw_field field;
    } of[6] = {
        {"pos.x",
         "int",
         "struct vec pos",
         {.offset = 0, .size = 4, .alignment = 4, .line = 1, .member_size = 8, .member_alignment = 4}},
        {"pos.y",
         "int",
         "struct vec pos",
         {.offset = 4, .size = 4, .alignment = 4, .line = 1, .member_size = 8, .member_alignment = 4}},
        {"next",
         "struct node *",
         "struct node *next",
         {.flags = HW_FIELD_POINTER,
          .offset = 8,
          .size = 8,
          .alignment = 8,
          .line = 2,
          .member_offset = 8,
          .member_size = 8,
          .member_alignment = 8}},
        {"kind",
         "unsigned int",
         "unsigned int kind : 3",
         {.flags = HW_FIELD_BITS,
          .offset = 16,
          .size = 1,
          .bit_size = 3,
          .alignment = 4,
          .line = 3,
          .member_offset = 16,
          .member_size = 1,
          .member_alignment = 4}},
        {"mark",
         "unsigned int",
         "unsigned int mark : 1",
         {.flags = HW_FIELD_BITS,
          .offset = 16,
          .size = 1,
          .bit_offset = 3,
          .bit_size = 1,
          .alignment = 4,
          .line = 3,
          .member_offset = 16,
          .member_size = 1,
          .member_alignment = 4}},
        {"name",
         "char[16]",
         "char name[16]",
         {.flags = HW_FIELD_ARRAY,
          .offset = 17,
          .size = 16,
          .alignment = 1,
          .line = 4,
          .member_offset = 17,
          .member_size = 16,
          .member_alignment = 1}},
    };
    for (int i = 0; i < 6; i++) {
        fields[i] = of[i].field;
        fields[i].name = sample_field_string(sample, of[i].name);
        fields[i].type_name = sample_field_string(sample, of[i].type);
        fields[i].declaration = sample_field_string(sample, of[i].declaration);
    }
}

HELPER struct field_sample sample_add_fields(struct sample *sample)
{
    static const struct hw_group_member members[8] = {
        {.field = 0, .reads = 1}, /* group 0: pos.x, pos.y and next are read */
        {.field = 1, .reads = 1},
        {.field = 2, .reads = 1},
        {.field = HW_NONE, .reads = 1}, /* group 1: a node is copied */
        {.field = 8, .reads = 1},       /* group 2: the same as group 0, of the other entry */
        {.field = 6, .reads = 1},
        {.field = 7, .reads = 1},
        {.field = HW_NONE, .reads = 1, .writes = 2}, /* group 3: of no struct */
    };
    static const struct hw_field_window windows[3] = {
        {.structure = 0, .field_a = 0, .field_b = 2, .weight = 50},
        {.structure = 1, .field_a = 6, .field_b = 8, .weight = 7},
        {.structure = 0, .field_a = 0, .field_b = 1, .weight = 60},
    };
    static const struct hw_fields_info info = {
        .modules = 1, .harvest_tick = 1000000, .windows = 12, .period_ns = 10000000, .window_ns = 20000, .groups = 5};
    static const struct hw_context_type types[2] = {{.context = 1, .type = 78}, {.context = 2, .type = 79}};
    struct field_sample added = {.base = sizeof SAMPLE_STRINGS};
    struct image *image = &sample->image;
    added.strings = image_add(image, HW_SECTION_STRINGS, 1, SAMPLE_FIELD_STRINGS, sizeof SAMPLE_FIELD_STRINGS, 0);
    uint32_t name = sample_field_string(&added, "node"), file = sample_field_string(&added, "node.c"),
             function = sample_field_string(&added, "walk");
    struct hw_struct structs[3] = {
        {.identity = 1001,
         .size = 40,
         .name = name,
         .file = file,
         .line = 1,
         .flags = HW_STRUCT_BIT_FIELDS,
         .alignment = 8,
         .first_field = 0,
         .field_count = 6},
        {.identity = 1001,
         .size = 40,
         .name = name,
         .file = file,
         .line = 1,
         .flags = HW_STRUCT_BIT_FIELDS | HW_STRUCT_WHOLE,
         .alignment = 8,
         .first_field = 6,
         .field_count = 6},
        {.identity = 1000,
         .size = 8,
         .name = name,
         .flags = HW_STRUCT_NO_NAMES,
         .alignment = 8,
         .first_field = 12,
         .field_count = 1},
    };
    struct hw_field fields[13] = {{0}};
    sample_node_fields(&added, fields);
    sample_node_fields(&added, fields + 6);
    fields[12] = (struct hw_field){.name = sample_field_string(&added, "+0"),
                                   .size = 8,
                                   .alignment = 8,
                                   .member_size = 8,
                                   .member_alignment = 8,
                                   .reads = 3,
                                   .writes = 4};
    const struct hw_field_group groups[5] = {
        {.structure = 0,
         .function = function,
         .line = 10,
         .file = file,
         .first_member = 0,
         .member_count = 3,
         .executions = 100},
        {.structure = 0,
         .function = function,
         .line = 12,
         .file = file,
         .first_member = 3,
         .member_count = 1,
         .executions = 5},
        {.structure = 1,
         .function = function,
         .line = 10,
         .file = file,
         .first_member = 4,
         .member_count = 3,
         .executions = 11},
        {.structure = HW_NONE,
         .function = function,
         .line = 14,
         .file = file,
         .first_member = 7,
         .member_count = 1,
         .executions = 20},
        {.structure = 2, .function = function, .line = 15, .file = file}, /* never executed */
    };
    added.structs = image_add(image, HW_SECTION_STRUCTS, sizeof *structs, structs, sizeof structs, 0);
    added.fields = image_add(image, HW_SECTION_FIELDS, sizeof *fields, fields, sizeof fields, 0);
    added.groups = image_add(image, HW_SECTION_FIELD_GROUPS, sizeof *groups, groups, sizeof groups, 0);
    added.members = image_add(image, HW_SECTION_GROUP_MEMBERS, sizeof *members, members, sizeof members, 0);
    added.windows = image_add(image, HW_SECTION_FIELD_WINDOWS, sizeof *windows, windows, sizeof windows, 0);
    added.info = image_add(image, HW_SECTION_FIELDS_INFO, sizeof info, &info, sizeof info, 0);
    added.types = image_add(image, HW_SECTION_CONTEXT_TYPES, sizeof *types, types, sizeof types, 0);
    return added;
}

/* ---- symbols ---- */

/* Names for the frames of the sample: the leaf of context 1 is in allocate(int), which is inlined into main. */
HELPER void sample_add_symbols(struct sample *sample)
{
    static const char names[] = "allocate(int)\0_Z8allocatei\0main\0src\0a.c";
    enum { ALLOCATE = 66, MANGLED = 80, MAIN = 93, SRC = 98, A_C = 102, SLOTS = 8 };
    static const uint32_t function[3] = {ALLOCATE, MANGLED, MAIN};
    static const struct hw_location locations[2] = {
        {.address = 0x3ff010, .map = 0, .first_frame = 2, .frame_count = 1},
        {.address = 0x7ffee010, .map = 1, .first_frame = 0, .frame_count = 2},
    };
    static const struct hw_symbol_frame frames[3] = {
        {.function = ALLOCATE, .linkage_name = MANGLED, .file = 2, .line = 7, .discriminator = 2, .flags = 1},
        {.function = MAIN, .file = 2, .line = 9},
        {.function = MAIN, .file = 2, .line = 11},
    };
    static const struct hw_file_node files[3] = {{0}, {.name = SRC}, {.name = A_C, .parent = 1}};
    static const struct hw_posting postings[1] = {{.first_context = 1, .count = 1}};
    static const struct hw_module_mark marks[2] = {{.map = 0, .flags = 3}, {.map = 1, .flags = 1}};
    static const struct hw_type_name types[1] = {{.id = 77, .name = MAIN}};
    static const struct hw_data_name data[1] = {{.address = 0x4000, .size = 8, .name = MAIN}};
    struct hw_function_slot slots[SLOTS] = {{0}};
    struct image *image = &sample->image;
    const size_t size = image_section(image, sample->strings)->used;
    if (size > ALLOCATE)
        abort();
    memcpy((char *)image_data(image, sample->strings) + ALLOCATE, names, sizeof names);
    image_section(image, sample->strings)->used = ALLOCATE + sizeof names;
    for (size_t i = 0; i < 3; i++) {
        const char *name = names + (function[i] - ALLOCATE);
        const uint64_t hash = XXH64(name, strlen(name), 0);
        size_t at = hash % SLOTS;
        while (slots[at].name)
            at = (at + 1) % SLOTS;
        slots[at] = (struct hw_function_slot){.hash = hash, .name = function[i], .posting_count = 1};
    }
    image_add(image, HW_SECTION_LOCATIONS, sizeof *locations, locations, sizeof locations, 0);
    image_add(image, HW_SECTION_FRAMES, sizeof *frames, frames, sizeof frames, 0);
    image_add(image, HW_SECTION_FILES, sizeof *files, files, sizeof files, 0);
    image_add(image, HW_SECTION_FUNCTIONS, sizeof *slots, slots, sizeof slots, 0);
    image_add(image, HW_SECTION_POSTINGS, sizeof *postings, postings, sizeof postings, 0);
    image_add(image, HW_SECTION_TYPES, sizeof *types, types, sizeof types, 0);
    image_add(image, HW_SECTION_DATA_SYMBOLS, sizeof *data, data, sizeof data, 0);
    image_add(image, HW_SECTION_MODULES, sizeof *marks, marks, sizeof marks, 0);
}

#endif
