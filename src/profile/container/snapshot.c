/* snapshot.c - a sealed copy of a profile whose process goes on writing it, taken from outside.
 *
 * Sections are copied in the reader's order: what refers before what is referred to, and the directory is read again
 * before each. The counts are copied again while events go on in the middle of it: totals and contexts then disagree.
 * In a program that never pauses for so long, the last attempt stands, and is off by the events of that moment. */
#include "profile/container/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/container/write.h"

#define ATTEMPTS    32
#define COPIES_MOST HW_FIRST_DIRECTORY_MOST

struct copy {
    uint32_t type, entry_size;
    uint16_t version;
    char *bytes;
    size_t used;
    uint64_t offset; /* in the new file */
};

struct snapshot {
    struct hw_container container;
    struct copy copies[COPIES_MOST];
    size_t count;
    struct hw_error *error;
};

static bool fail(struct snapshot *snapshot, const char *why)
{
    hw_error_set(snapshot->error, "cannot copy '%s': %s", snapshot->container.path, why);
    return false;
}

static struct copy *find(struct snapshot *snapshot, uint32_t type)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->copies[i].type == type)
            return &snapshot->copies[i];
    return NULL;
}

/* Copies all extents of TYPE, one behind the other, anew. */
static bool copy_section(struct snapshot *snapshot, uint32_t type)
{
    const struct hw_container *container = &snapshot->container;
    struct copy *copy = find(snapshot, type);
    size_t bytes = 0;
    for (size_t i = 0; i < container->extent_count; i++)
        if (container->extents[i].entry.type == type)
            bytes += container->extents[i].available;
    if (!copy) {
        if (bytes == 0)
            return true;
        if (snapshot->count == COPIES_MOST)
            return fail(snapshot, "it has too many sections");
        copy = &snapshot->copies[snapshot->count++];
        *copy = (struct copy){.type = type};
    }
    char *room = realloc(copy->bytes, bytes + 2 * sizeof(struct hw_timeline_point));
    if (!room)
        return fail(snapshot, "not enough memory");
    copy->bytes = room;
    copy->used = 0;
    for (size_t i = 0; i < container->extent_count; i++) {
        const struct hw_extent *extent = &container->extents[i];
        if (extent->entry.type != type)
            continue;
        if (copy->used && extent->entry.entry_size != copy->entry_size)
            return fail(snapshot, "its entries are of different sizes");
        if (extent->entry.flags) /* packed: it is sealed */
            return fail(snapshot, "its process has ended, and the file holds all of it");
        copy->entry_size = extent->entry.entry_size;
        copy->version = extent->entry.version;
        int64_t got =
            hw_container_read(container->fd, copy->bytes + copy->used, extent->available, extent->entry.offset);
        if (got < 0)
            return fail(snapshot, strerror(errno));
        copy->used += (size_t)got;
    }
    return true;
}

/* ---- the counts ---- */

struct totals {
    uint64_t allocations, frees, bytes;
    int64_t live_bytes;
};

static struct totals thread_totals(struct snapshot *snapshot)
{
    struct totals totals = {0};
    const struct copy *copy = find(snapshot, HW_SECTION_THREADS);
    for (size_t at = 0; copy && at + sizeof(struct hw_thread_entry) <= copy->used; at += copy->entry_size) {
        const struct hw_thread_entry *entry = (const void *)(copy->bytes + at);
        totals.allocations += entry->allocations;
        totals.frees += entry->frees;
        totals.bytes += entry->bytes;
        totals.live_bytes += entry->live_bytes;
    }
    return totals;
}

static struct totals context_totals(struct snapshot *snapshot)
{
    struct totals totals = {0};
    const struct copy *copy = find(snapshot, HW_SECTION_MIBS);
    for (size_t at = 0; copy && at + offsetof(struct hw_mib, room) <= copy->used; at += copy->entry_size) {
        const struct hw_mib *mib = (const void *)(copy->bytes + at);
        if (mib->flags & HW_MIB_POOL)
            continue; /* in no total */
        totals.allocations += mib->allocations;
        totals.frees += mib->frees;
        totals.bytes += mib->bytes;
        totals.live_bytes += mib->live_bytes;
    }
    return totals;
}

static uint64_t peak_epoch(struct snapshot *snapshot)
{
    const struct copy *copy = find(snapshot, HW_SECTION_PROCESS);
    return ((const struct hw_process_info *)(const void *)copy->bytes)->peak_epoch;
}

static bool has_process(struct snapshot *snapshot)
{
    const struct copy *copy = find(snapshot, HW_SECTION_PROCESS);
    return (copy && copy->used >= HW_PROCESS_LEAST) ||
           fail(snapshot, "its process has only just started");
}

/* Copies everything that counts, once. *AGREES: it is of one moment. */
static bool copy_counts(struct snapshot *snapshot, bool *agrees)
{
    if (!hw_container_load(&snapshot->container, snapshot->error) || !copy_section(snapshot, HW_SECTION_PROCESS) ||
        !has_process(snapshot))
        return false;
    uint64_t epoch = peak_epoch(snapshot);
    if (!copy_section(snapshot, HW_SECTION_MIBS) || !copy_section(snapshot, HW_SECTION_THREADS) ||
        !copy_section(snapshot, HW_SECTION_PROCESS) || !has_process(snapshot))
        return false;
    struct totals threads = thread_totals(snapshot), contexts = context_totals(snapshot);
    *agrees = epoch == peak_epoch(snapshot) && memcmp(&threads, &contexts, sizeof threads) == 0;
    return true;
}

static bool copy_all(struct snapshot *snapshot)
{
    const struct timespec moment = {.tv_nsec = 200000};
    bool agrees = false;
    for (int attempt = 0; attempt < ATTEMPTS && !agrees; attempt++) {
        if (attempt)
            nanosleep(&moment, NULL);
        if (!copy_counts(snapshot, &agrees))
            return false;
    }
    for (size_t i = 0; i < snapshot->container.extent_count; i++) {
        const uint32_t type = snapshot->container.extents[i].entry.type;
        const struct hw_section_rule *rule = hw_section_rule(type);
        if ((!rule || rule->turn == HW_TURN_ANY) && !find(snapshot, type) && !copy_section(snapshot, type))
            return false;
    }
    for (unsigned turn = HW_TURN_REFERRED; turn <= HW_TURN_LAST; turn++) {
        if (!hw_container_load(&snapshot->container, snapshot->error))
            return false;
        for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++)
            if (hw_section_rule(type) && hw_section_rule(type)->turn == turn && !copy_section(snapshot, type))
                return false;
    }
    return true;
}

/* ---- the moment ---- */

/* Ticks at this moment: the file's latest may be older by the time that the process did not use its heap. */
static uint64_t tick_now(const struct hw_process_info *process)
{
    struct timespec now;
    if (process->start_realtime_ns == 0 || process->clock_ns == 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return process->end_tick;
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (now_ns <= process->start_realtime_ns)
        return process->end_tick;
    unsigned __int128 ticks =
        (unsigned __int128)(now_ns - process->start_realtime_ns) * process->clock_ticks / process->clock_ns;
    return ticks > process->end_tick && ticks <= INT64_MAX ? (uint64_t)ticks : process->end_tick;
}

/* Makes the process section that of a dump, and this moment the last one of the timeline. */
static void describe_moment(struct snapshot *snapshot, const struct hw_snapshot_memory *memory)
{
    const struct copy *copy = find(snapshot, HW_SECTION_PROCESS);
    struct hw_process_info *process = (void *)copy->bytes;
    const bool stopped = copy->used >= sizeof *process && process->counting == HW_COUNTING_STOPPED;
    struct copy *timeline = find(snapshot, HW_SECTION_TIMELINE);
    struct totals totals = thread_totals(snapshot);
    process->dump_signal = 0;
    process->live_bytes = totals.live_bytes;
    if (process->exit_kind != HW_EXIT_UNKNOWN) /* it has just ended: this is all of it */
        return;
    process->flags |= HW_PROCESS_DUMP;
    if (!stopped)
        process->end_tick = tick_now(process);
    if (process->peak_rss_bytes < memory->peak_rss_bytes)
        process->peak_rss_bytes = memory->peak_rss_bytes;
    if (!timeline || timeline->entry_size != sizeof(struct hw_timeline_point) ||
        timeline->used % timeline->entry_size || timeline->used / timeline->entry_size >= HW_TIMELINE_POINTS)
        return;
    const struct hw_timeline_point point = {
        .tick = process->end_tick,
        .live_bytes = totals.live_bytes,
        .rss_bytes = memory->rss_bytes,
        .allocations = totals.allocations,
        .frees = totals.frees,
    };
    memcpy(timeline->bytes + timeline->used, &point, sizeof point); /* copy_section left room for it */
    timeline->used += sizeof point;
}

/* ---- the new file ---- */

static bool write_file(struct snapshot *snapshot, int file)
{
    struct hw_section_source sections[COPIES_MOST];
    const struct hw_file_header *header = &snapshot->container.header;
    const struct hw_write_options options = {
        .file_flags = header->flags & HW_FILE_EXITED,
        .session = header->session,
        .version_minor = header->version_minor,
    };
    size_t size;
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct copy *copy = &snapshot->copies[i];
        sections[i] = (struct hw_section_source){copy->type, copy->entry_size, copy->version, copy->bytes, copy->used};
    }
    unsigned char *bytes = hw_sections_serialize(sections, snapshot->count, &options, &size, snapshot->error);
    bool fine = bytes != NULL;
    /* The first page comes last: without it the file is no profile. */
    if (fine && !(hw_write_all(file, bytes + HW_FILE_PAGE, size - HW_FILE_PAGE, HW_FILE_PAGE) &&
                  hw_write_all(file, bytes, HW_FILE_PAGE, 0))) {
        hw_error_set(snapshot->error, "cannot write the dump: %s", strerror(errno));
        fine = false;
    }
    free(bytes);
    return fine;
}

bool hw_profile_snapshot(int profile, const char *path, const struct hw_snapshot_memory *memory, int file,
                         struct hw_error *error)
{
    struct hw_arena arena = {0};
    struct hw_problems problems = {.arena = &arena};
    struct snapshot snapshot = {
        .container = {.fd = profile, .path = path, .problems = &problems},
        .error = error,
    };
    bool fine = copy_all(&snapshot);
    if (fine) {
        describe_moment(&snapshot, memory);
        fine = write_file(&snapshot, file);
    }
    for (size_t i = 0; i < snapshot.count; i++)
        free(snapshot.copies[i].bytes);
    hw_container_free(&snapshot.container);
    hw_arena_free(&arena);
    return fine;
}

bool hw_profile_process(int profile, const char *path, struct hw_process_info *process, uint64_t *offset,
                        struct hw_error *error)
{
    struct hw_arena arena = {0};
    struct hw_problems problems = {.arena = &arena};
    struct hw_container container = {.fd = profile, .path = path, .problems = &problems};
    bool found = false;
    bool loaded = hw_container_load(&container, error);
    for (size_t i = 0; loaded && i < container.extent_count && !found; i++) {
        const struct hw_section *entry = &container.extents[i].entry;
        if (entry->type != HW_SECTION_PROCESS || entry->used < HW_PROCESS_LEAST)
            continue;
        const size_t size = entry->used < sizeof *process ? entry->used : sizeof *process;
        *offset = entry->offset;
        *process = (struct hw_process_info){0};
        found = hw_container_read(profile, process, size, entry->offset) == (int64_t)size;
    }
    if (loaded && !found)
        hw_error_set(error, "'%s' holds nothing yet: its process has only just started", path);
    hw_container_free(&container);
    hw_arena_free(&arena);
    return found;
}
