/* fuzz_profile.c - libFuzzer target: any bytes as a profile, read, used, closed, read again.
 *
 *     fuzz_profile CORPUS        (start from what make_profile_corpus writes)
 *
 * A mutator of its own repairs the checksums of every second input: otherwise nothing behind them would be reached. */
#include "profile/profile.h"
#include "unit/profile_writer.h"

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
        DEMAND(hw_profile_stack(profile, context->leaf, NULL, 0) == context->depth);
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
    for (size_t i = 1; i < profile->node_count; i++)
        DEMAND(profile->nodes[i].parent < i);
    for (size_t i = 1; i < profile->timeline_count; i++)
        DEMAND(profile->timeline[i].time_ns >= profile->timeline[i - 1].time_ns);
    for (size_t i = 0; i < profile->memory_count; i++)
        touched += profile->memory[i].rss;
}

static void read_and_use(const char *path)
{
    struct hw_error error = {.message = ""};
    struct hw_profile *profile = hw_profile_read(path, &error);
    DEMAND((profile == NULL) == (error.message[0] != 0));
    if (profile)
        exercise(profile);
    hw_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct memory_file file = memory_file(bytes, size);
    read_and_use(file.path);
    if (hw_profile_close(file.path, HW_EXIT_SIGNAL, 9, 0, NULL))
        read_and_use(file.path);
    close(file.fd);
    return 0;
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
