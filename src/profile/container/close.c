/* close.c - seals the file of a process that could not do so itself: killed, _exit, out of room.
 *
 * Until the first page is written, in one piece and last, the file stays what it was: one without checksums. */
#include "profile/container/container.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "profile/container/write.h"

struct closing {
    struct hw_container container;
    struct hw_process_info process; /* an older file has less of it */
    size_t process_extent; /* index of the extent that holds it */
    enum hw_exit_kind kind;
    int value;
    uint64_t peak_rss_bytes;
    uint32_t oom_kills;
    struct hw_error *error;
};

static bool write_at(struct closing *closing, const void *bytes, size_t size, uint64_t offset)
{
    if (hw_write_all(closing->container.fd, bytes, size, (int64_t)offset))
        return true;
    hw_error_set(closing->error, "cannot write '%s': %s", closing->container.path, strerror(errno));
    return false;
}

static bool refuse(struct closing *closing, const char *why)
{
    hw_error_set(closing->error, "cannot close '%s': %s", closing->container.path, why);
    return false;
}

static size_t process_bytes(const struct hw_extent *extent)
{
    return extent->entry.used < sizeof(struct hw_process_info) ? extent->entry.used : sizeof(struct hw_process_info);
}

/* Everything is checked before the first byte is written. */
static bool check(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    if (container->problems->count > 0)
        return refuse(closing, container->problems->sentences[0]);
    if (container->cut)
        return refuse(closing, "it is cut short");
    closing->process_extent = SIZE_MAX;
    for (size_t i = 0; i < container->extent_count; i++)
        if (container->extents[i].entry.type == HW_SECTION_PROCESS &&
            container->extents[i].entry.used >= HW_PROCESS_LEAST && closing->process_extent == SIZE_MAX)
            closing->process_extent = i;
    if (closing->process_extent == SIZE_MAX)
        return refuse(closing, "it holds nothing yet, its process had only just started");
    const struct hw_extent *extent = &container->extents[closing->process_extent];
    if (hw_container_read(container->fd, &closing->process, process_bytes(extent), extent->entry.offset) !=
        (int64_t)process_bytes(extent))
        return refuse(closing, "its process section cannot be read");
    /* In a sealed file only the process section and what leads to it is written anew; damage elsewhere must stay
     * visible. */
    uint64_t checksum;
    if (container->sealed &&
        (!hw_container_checksum(container->fd, extent->entry.offset, extent->entry.used, &checksum) ||
         checksum != extent->entry.checksum))
        return refuse(closing, "its process section is damaged (its checksum is wrong)");
    if (!container->sealed &&
        hw_process_writes(closing->process.pid, closing->process.start_time_jiffies, container->fd, container->path))
        return refuse(closing, "the process that writes it still runs");
    return true;
}

/* The process has just ended; what it wrote last may be older by the time that it did not use its heap. */
static void end_now(struct hw_process_info *process)
{
    struct timespec now;
    const uint64_t start = process->start_realtime_ns;
    if (start == 0 || process->clock_ns == 0 || process->counting == HW_COUNTING_STOPPED || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (now_ns <= start)
        return;
    const unsigned __int128 ticks = (unsigned __int128)(now_ns - start) * process->clock_ticks / process->clock_ns;
    if (ticks > process->end_tick && ticks <= INT64_MAX)
        process->end_tick = (uint64_t)ticks;
}

/* Puts the exit status into the process section, if it has none. */
static bool write_process(struct closing *closing)
{
    struct hw_process_info *process = &closing->process;
    struct hw_file_header *header = &closing->container.header;
    if (process->exit_kind == HW_EXIT_UNKNOWN) {
        if (!closing->container.sealed && (closing->kind == HW_EXIT_SIGNAL || closing->kind == HW_EXIT_CODE))
            end_now(process);
        process->exit_kind = (uint32_t)closing->kind;
        process->exit_value = closing->kind == HW_EXIT_UNKNOWN ? 0 : closing->value;
        if (closing->kind == HW_EXIT_UNKNOWN || (closing->kind == HW_EXIT_SIGNAL && closing->value == SIGKILL))
            process->oom_kills = closing->oom_kills;
    }
    if (process->exit_kind != HW_EXIT_UNKNOWN)
        header->flags |= HW_FILE_EXITED;
    if (!closing->container.sealed && process->peak_rss_bytes < closing->peak_rss_bytes)
        process->peak_rss_bytes = closing->peak_rss_bytes;
    const struct hw_extent *extent = &closing->container.extents[closing->process_extent];
    return write_at(closing, process, process_bytes(extent), extent->entry.offset);
}

/* The extent that ends last gives back the pages it does not use. */
static void trim(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    struct hw_section *last = NULL;
    for (size_t i = 0; i < container->extent_count; i++)
        if (!last || container->extents[i].entry.offset >= last->offset)
            last = &container->extents[i].entry;
    if (!last)
        return;
    uint64_t needed = (last->used + HW_FILE_PAGE - 1) / HW_FILE_PAGE * HW_FILE_PAGE;
    if (needed < last->capacity)
        last->capacity = needed;
    container->header.total_size = last->offset + last->capacity;
}

/* Writes the directory entry of an extent with the checksum of its bytes; into the copy of the first page when it
 * lies there. */
static bool write_entry(struct closing *closing, struct hw_extent *extent)
{
    struct hw_container *container = &closing->container;
    errno = 0;
    if (!hw_container_checksum(container->fd, extent->entry.offset, extent->entry.used, &extent->entry.checksum))
        return refuse(closing, errno ? strerror(errno) : "it is cut short");
    if (extent->position < HW_FILE_PAGE) {
        memcpy(container->page + extent->position, &extent->entry, sizeof extent->entry);
        return true;
    }
    return write_at(closing, &extent->entry, sizeof extent->entry, extent->position);
}

static bool write_sections(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    for (size_t i = 0; i < container->extent_count; i++)
        if (container->extents[i].entry.type != HW_SECTION_DIRECTORY && !write_entry(closing, &container->extents[i]))
            return false;
    return true;
}

/* A directory's checksum covers the checksums of the extents it lists, so sections come before directories and later
 * directories before earlier ones. */
static bool write_directories(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    for (size_t i = container->extent_count; i-- > 0;)
        if (container->extents[i].entry.type == HW_SECTION_DIRECTORY && !write_entry(closing, &container->extents[i]))
            return false;
    return true;
}

static bool write_first_page(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    struct hw_file_header *header = &container->header;
    header->flags |= HW_FILE_SEALED;
    header->checksum = 0;
    memcpy(container->page, header, sizeof *header);
    header->checksum = XXH64(container->page, sizeof container->page, 0);
    memcpy(container->page, header, sizeof *header);
    return write_at(closing, container->page, sizeof container->page, 0);
}

static bool close_checked(struct closing *closing)
{
    struct hw_container *container = &closing->container;
    bool sealed = container->sealed;
    if (sealed && (closing->process.exit_kind != HW_EXIT_UNKNOWN || closing->kind == HW_EXIT_UNKNOWN))
        return true;
    if (!write_process(closing))
        return false;
    if (sealed)
        return write_entry(closing, &container->extents[closing->process_extent]) && write_directories(closing) &&
               write_first_page(closing);
    trim(closing);
    if (!write_sections(closing) || !write_directories(closing) || !write_first_page(closing))
        return false;
    /* Bytes behind total_size mean nothing: a file that cannot be cut is none the worse. */
    if (container->file_size > container->header.total_size &&
        ftruncate(container->fd, (off_t)container->header.total_size) < 0)
        return true;
    return true;
}

bool hw_profile_close(const char *path, enum hw_exit_kind kind, int value, uint64_t peak_rss_bytes, uint32_t oom_kills,
                      struct hw_error *error)
{
    struct hw_arena arena = {0};
    struct hw_problems problems = {.arena = &arena};
    struct closing closing = {
        .container = {.fd = -1, .path = path, .problems = &problems},
        .kind = kind,
        .value = value,
        .peak_rss_bytes = peak_rss_bytes,
        .oom_kills = oom_kills,
        .error = error,
    };
    closing.container.fd = hw_container_open(path, true, error);
    if (closing.container.fd < 0)
        return false;
    bool fine = hw_container_load(&closing.container, error) && check(&closing) && close_checked(&closing);
    if (close(closing.container.fd) < 0 && fine) {
        hw_error_set(error, "cannot write '%s': %s", path, strerror(errno));
        fine = false;
    }
    hw_container_free(&closing.container);
    hw_arena_free(&arena);
    return fine;
}
