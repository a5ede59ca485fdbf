/* fuzz_profile.c - libFuzzer target: any bytes as a profile, read, used, read in pieces, packed, merged, closed, read
 * again.
 *
 *     fuzz_profile CORPUS        (start from what make_profile_corpus writes)
 *
 * A mutator of its own repairs the checksums of every second input: otherwise nothing behind them would be reached. */
#include "profile/container/container.h"
#include "profile/model/lookup.h"
#include "profile/merge/merge.h"
#include "profile/container/pack.h"
#include "profile/profile.h"
#include "profile/model/symbolised.h"
#include "profile/container/write.h"
#include "profile/live.h"
#include "unit/profile/profile_writer.h"
#include "unit/profile/stack_depth.h"

#include <fcntl.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

#define DEMAND(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            __builtin_trap();                                                                                          \
    } while (0)

static volatile size_t touched;

/* What profile.h promises. */
static void exercise(const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->problem_count; i++)
        touched += strlen(profile->problems[i]);
    for (size_t i = 0; i < profile->command_count; i++)
        touched += strlen(profile->command[i]);
    for (size_t i = 0; i < profile->map_count; i++)
        touched += strlen(hw_profile_string(profile, profile->maps[i].path));
    for (size_t i = 0; i < profile->note_count; i++)
        touched += strlen(hw_profile_string(profile, profile->notes[i].text));
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        DEMAND(context->id < profile->context_entry_count);
        DEMAND(i == 0 || context->id > profile->contexts[i - 1].id);
        DEMAND(stack_depth(profile, context->leaf) == context->depth);
    }
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_accesses *access = profile->contexts[i].access;
        DEMAND((access != NULL) == profile->access_counted);
        DEMAND(!access || access->all.granules_touched <= access->all.granules);
        DEMAND(!access || access->all.accesses_min <= access->all.accesses_max);
    }
    for (size_t i = 0; i < profile->global_count; i++)
        DEMAND(profile->globals[i].map == HW_NONE || profile->globals[i].map < profile->map_count);
    for (size_t i = 0; i < profile->histogram_count; i++)
        DEMAND(profile->histogram[i].context < profile->context_entry_count);
    for (size_t i = 0; i < profile->sample_count_count; i++)
        DEMAND(profile->sample_counts[i].context < profile->context_entry_count &&
               (!i || hw_sample_count_compare(&profile->sample_counts[i - 1], &profile->sample_counts[i]) < 0));
    for (size_t i = 0; i < profile->sample_context_count; i++)
        DEMAND(profile->sample_contexts[i].context < profile->context_entry_count);
    for (size_t i = 0; i < profile->word_count; i++)
        DEMAND(profile->words[i].context < profile->context_entry_count &&
               (!i || hw_profile_words_compare(&profile->words[i - 1], &profile->words[i]) < 0));
    for (size_t i = 0; i < profile->freed_word_count; i++)
        DEMAND(profile->freed_words[i].free_context < profile->context_entry_count);
    for (size_t i = 0; i < profile->role_count; i++)
        DEMAND((profile->roles[i].map == HW_NONE || profile->roles[i].map < profile->map_count) &&
               (profile->roles[i].context == HW_NONE || profile->roles[i].context < profile->context_entry_count));
    for (size_t i = 0; i < profile->side_count; i++)
        DEMAND(profile->sides[i].role < profile->role_count &&
               profile->sides[i].context < profile->context_entry_count);
    for (size_t i = 1; i < profile->node_count; i++)
        DEMAND(profile->nodes[i].parent < i);
    for (size_t i = 1; i < profile->timeline_count; i++)
        DEMAND(profile->timeline[i].time_ns >= profile->timeline[i - 1].time_ns);
    for (size_t i = 0; i < profile->memory_count; i++)
        touched += profile->memory[i].rss;
}

/* What symbolised.h promises. */
static void exercise_symbols(const struct hw_profile *profile)
{
    const struct hw_symbolised *symbols = profile->symbolised;
    for (size_t i = 0; symbols && i < symbols->location_count; i++) {
        const struct hw_location *location = &symbols->locations[i];
        DEMAND(location->frame_count > 0 && location->frame_count <= HW_CHAIN_MOST);
        DEMAND((uint64_t)location->first_frame + location->frame_count <= symbols->frame_count);
        DEMAND(hw_symbolised_location(symbols, location->map, location->address) == location);
    }
    for (size_t i = 0; symbols && i < symbols->frame_count; i++) {
        DEMAND(symbols->frames[i].file == 0 || symbols->frames[i].file < symbols->path_count);
        touched += symbols->frames[i].file ? strlen(symbols->paths[symbols->frames[i].file]) : 0;
        touched += strlen(hw_profile_string(profile, symbols->frames[i].function));
    }
    for (size_t i = 0; symbols && i < symbols->data_count; i++)
        DEMAND(symbols->data[i].map < profile->map_count);
}

static void look_up(const char *path)
{
    static const char *const names[] = {"main", "_Z8allocatei", "nothing"};
    struct hw_lookup *lookup = hw_lookup_open(path, NULL);
    for (size_t i = 0; lookup && i < 3; i++) {
        struct hw_profile *profile = hw_lookup_function(lookup, names[i], true, NULL);
        if (profile)
            exercise_symbols(profile);
        hw_profile_free(profile);
    }
    hw_lookup_close(lookup);
}

static void read_and_use(const char *path)
{
    struct hw_error error = {.message = ""};
    struct hw_profile *profile = hw_profile_read(path, &error);
    DEMAND((profile == NULL) == (error.message[0] != 0));
    if (profile) {
        exercise(profile);
        exercise_symbols(profile);
    }
    hw_profile_free(profile);
}

/* As large as the largest entry. */
union any_entry {
#define HW_SECTION(number, name, entry, size, ...) char name[size];
#include "profile/sections.def"
};

/* Sections in pieces, without the rest. */
static void read_pieces(const char *path)
{
    struct hw_arena arena = {0};
    struct hw_problems problems = {.arena = &arena};
    struct hw_container container = {.path = path, .problems = &problems};
    static char room[3 * sizeof(union any_entry)];
    container.fd = hw_container_open(path, false, NULL);
    const bool loaded = container.fd >= 0 && hw_container_load(&container, NULL);
    for (uint32_t type = 0; loaded && type < HW_SECTION_KNOWN; type++) {
        struct hw_section_reader *reader = hw_section_open(&container, type, NULL);
        const uint64_t entries = reader ? hw_section_entries(reader) : 0;
        if (reader && hw_section_read(reader, entries / 2, entries ? 1 : 0, room, NULL))
            touched += (unsigned char)room[0];
        if (reader && entries > 3 && hw_section_read(reader, entries - 3, 3, room, NULL))
            touched += (unsigned char)room[1];
        hw_section_close(reader);
    }
    if (container.fd >= 0)
        close(container.fd);
    hw_container_free(&container);
    hw_arena_free(&arena);
}

/* What was read, packed and read again, is the same. */
static void pack_tables(const char *path)
{
    struct hw_arena arena = {0}, again_arena = {0};
    struct hw_problems problems = {.arena = &arena}, again_problems = {.arena = &again_arena};
    struct hw_container container = {.path = path, .problems = &problems};
    struct hw_container again = {.path = path, .problems = &again_problems};
    struct hw_tables tables, again_tables;
    size_t size;
    container.fd = hw_container_open(path, false, NULL);
    if (container.fd >= 0 && hw_tables_read(&container, &arena, &tables, NULL)) {
        const struct hw_write_options options = {.packed = true, .zstd_level = container.extent_count % 2};
        unsigned char *bytes = hw_tables_serialize(&tables, &options, &size, NULL);
        again.fd = bytes ? hw_container_open_bytes(bytes, size, "again", NULL) : -1;
        bool any = false;
        for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
            any |= hw_section_rule(type) && type != HW_SECTION_DIRECTORY && tables.of[type].count;
        if (again.fd >= 0 && any) {
            DEMAND(hw_tables_read(&again, &again_arena, &again_tables, NULL));
            DEMAND(again_problems.count == 0);
            for (uint32_t type = HW_SECTION_PROCESS; type < HW_SECTION_KNOWN; type++) {
                DEMAND(again_tables.of[type].count == tables.of[type].count);
                DEMAND(tables.of[type].count == 0 || memcmp(again_tables.of[type].entries, tables.of[type].entries,
                                                            tables.of[type].count * hw_section_rule(type)->size) == 0);
            }
        }
        if (again.fd >= 0)
            close(again.fd);
        free(bytes);
    }
    if (container.fd >= 0)
        close(container.fd);
    hw_container_free(&container);
    hw_container_free(&again);
    hw_arena_free(&arena);
    hw_arena_free(&again_arena);
}

/* Added to itself, and written. */
static void merge(const char *path)
{
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_profile *profile = hw_profile_read(path, NULL);
    struct hw_merge *sum = profile ? hw_merge_new() : NULL;
    if (sum && hw_merge_add(sum, profile, NULL) && hw_merge_add(sum, profile, NULL) &&
        hw_merge_finish(sum, &arena, &tables, NULL)) {
        const struct hw_write_options options = {.packed = true};
        size_t size;
        unsigned char *bytes = hw_tables_serialize(&tables, &options, &size, NULL);
        struct hw_profile *merged = bytes ? hw_profile_read_bytes(bytes, size, "merged", NULL) : NULL;
        if (merged)
            exercise(merged);
        hw_profile_free(merged);
        free(bytes);
    }
    if (sum)
        hw_merge_free(sum);
    hw_profile_free(profile);
    hw_arena_free(&arena);
}

/* As heapwise top reads it: twice, and every index leads somewhere. */
static void read_live(const char *path)
{
    struct hw_error error;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct hw_live *live = file >= 0 ? hw_live_open(file, path, 0, &error) : NULL;
    for (int i = 0; live && i < 2; i++) {
        hw_live_read(live, &error);
        for (size_t k = 0; k < live->context_count; k++)
            DEMAND(!live->contexts[k].leaf || live->contexts[k].leaf < live->node_count);
        for (size_t k = 1; k < live->node_count; k++)
            DEMAND(live->nodes[k].parent < k &&
                   (live->nodes[k].map == HW_NONE || live->nodes[k].map < live->map_count));
        for (size_t k = 0; k < live->map_count; k++)
            DEMAND(!live->maps[k].path || live->maps[k].path < live->string_size);
    }
    hw_live_close(live);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct memory_file file = memory_file(bytes, size);
    read_and_use(file.path);
    read_pieces(file.path);
    pack_tables(file.path);
    look_up(file.path);
    read_live(file.path);
    merge(file.path);
    if (hw_profile_close(file.path, HW_EXIT_SIGNAL, 9, 0, 0, NULL))
        read_and_use(file.path);
    close(file.fd);
    return 0;
}

/* Checksums of a packed extent, as far as its index can be followed. */
static void repair_packed(uint8_t *extent, size_t size)
{
    struct hw_packed_header header;
    struct hw_packed_chunk chunk;
    if (size < sizeof header)
        return;
    memcpy(&header, extent, sizeof header);
    if (header.chunk_count > (size - sizeof header) / sizeof chunk)
        return;
    for (size_t i = 0; i < header.chunk_count; i++) {
        uint8_t *at = extent + sizeof header + i * sizeof chunk;
        memcpy(&chunk, at, sizeof chunk);
        if (chunk.offset > size || chunk.size > size - chunk.offset)
            continue;
        chunk.checksum = XXH64(extent + chunk.offset, chunk.size, 0);
        memcpy(at, &chunk, sizeof chunk);
    }
    header.checksum = 0;
    memcpy(extent, &header, sizeof header);
    header.checksum = XXH64(extent, sizeof header + header.chunk_count * sizeof chunk, 0);
    memcpy(extent, &header, sizeof header);
}

/* Seals again what the mutation broke, as far as the directory can still be followed. */
static void repair(uint8_t *bytes, size_t size, size_t first, size_t entries, int depth)
{
    for (size_t i = 0; i < entries && first + (i + 1) * sizeof(struct hw_section) <= size; i++) {
        struct hw_section entry;
        memcpy(&entry, bytes + first + i * sizeof entry, sizeof entry);
        if (entry.offset > size || entry.used > size - entry.offset)
            continue;
        if (entry.type == HW_SECTION_DIRECTORY && depth < 4)
            repair(bytes, size, entry.offset, entry.used / sizeof entry, depth + 1);
        if (entry.flags & HW_SECTION_PACKED)
            repair_packed(bytes + entry.offset, entry.used);
        entry.checksum = XXH64(bytes + entry.offset, entry.used, 0);
        memcpy(bytes + first + i * sizeof entry, &entry, sizeof entry);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    struct hw_file_header header;
    size = LLVMFuzzerMutate(bytes, size, most);
    if (size < HW_FILE_PAGE || seed % 2)
        return size;
    memcpy(&header, bytes, sizeof header);
    if (!(header.flags & HW_FILE_SEALED))
        return size;
    repair(bytes, size, sizeof header, header.directory_used < 60 ? header.directory_used : 60, 0);
    header.checksum = 0;
    memcpy(bytes, &header, sizeof header);
    header.checksum = XXH64(bytes, HW_FILE_PAGE, 0);
    memcpy(bytes, &header, sizeof header);
    return size;
}
