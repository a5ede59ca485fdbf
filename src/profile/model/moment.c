/* moment.c - see profile/moment.h. */
#include "profile/moment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/container/container.h"
#include "profile/container/pack.h"
#include "profile/profile.h"

/* A file whose sections are read one by one. */
struct opened {
    struct hw_arena arena;
    struct hw_problems problems;
    struct hw_container container;
};

static bool open_file(struct opened *opened, const char *path, struct hw_error *error)
{
    *opened = (struct opened){.container = {.fd = hw_container_open(path, false, error), .path = path}};
    opened->problems.arena = &opened->arena;
    opened->container.problems = &opened->problems;
    return opened->container.fd >= 0 && hw_container_load(&opened->container, error);
}

static void close_file(struct opened *opened)
{
    hw_container_free(&opened->container);
    hw_arena_free(&opened->arena);
    if (opened->container.fd >= 0)
        close(opened->container.fd);
}

bool hw_moment_read(const char *path, struct hw_moment *moment, struct hw_error *error)
{
    struct opened opened;
    struct hw_section_reader *reader = NULL;
    *moment = (struct hw_moment){.session = 0};
    bool fine =
        open_file(&opened, path, error) && (reader = hw_section_open(&opened.container, HW_SECTION_PROCESS, error));
    if (fine && !hw_section_entries(reader)) {
        hw_error_set(error, "'%s': that part of the file is lost which says what process it is of", path);
        fine = false;
    }
    fine = fine && hw_section_read(reader, 0, 1, &moment->process, error);
    if (fine) {
        moment->session = opened.container.header.session;
        moment->time_ns = hw_process_ns(&moment->process, moment->process.end_tick);
    }
    hw_section_close(reader);
    close_file(&opened);
    return fine;
}

bool hw_moment_same_run(const struct hw_moment *one, const struct hw_moment *other)
{
    const struct hw_process_info *a = &one->process, *b = &other->process;
    return a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
           a->start_time_jiffies == b->start_time_jiffies && one->session == other->session && a->mode == b->mode &&
           a->sample_bytes == b->sample_bytes;
}

/* ---- counts ---- */

struct counting {
    const uint32_t *index_of;
    size_t ids;
    struct hw_moment_count *counts, *all;
};

static struct hw_moment_count *count_of(const struct counting *counting, uint32_t context)
{
    const uint32_t index = context < counting->ids ? counting->index_of[context] : HW_NONE;
    return index == HW_NONE ? NULL : &counting->counts[index];
}

static void add(struct hw_moment_count *to, const struct hw_moment_count *from)
{
    if (!to)
        return;
    to->bytes = (int64_t)((uint64_t)to->bytes + (uint64_t)from->bytes); /* a damaged file may hold any number */
    to->blocks = (int64_t)((uint64_t)to->blocks + (uint64_t)from->blocks);
    to->variance += from->variance;
    to->added_variance += from->added_variance;
}

static void add_mib(const struct counting *counting, const struct hw_mib *mib, bool sampled)
{
    struct hw_moment_count one = {.bytes = mib->live_bytes, .blocks = mib->live_blocks};
    if (sampled) {
        one.added_variance = (double)mib->bytes_variance * HW_BYTES_VARIANCE_UNIT;
        one.variance = one.added_variance - (double)mib->freed_bytes_variance * HW_BYTES_VARIANCE_UNIT;
    }
    add(count_of(counting, mib->context), &one);
    if (!(mib->flags & HW_MIB_POOL))
        add(counting->all, &one);
}

/* After a reset: variances of what was live at that moment. */
static void add_older(const struct counting *counting, const struct hw_inherited *older)
{
    const double variance = (double)older->bytes_variance * HW_BYTES_VARIANCE_UNIT;
    const struct hw_moment_count one = {.variance = variance, .added_variance = variance};
    add(count_of(counting, older->context), &one);
    add(counting->all, &one);
}

/* Parts of a sealed file that are not packed are only checked by who reads them whole, as is done here. */
static bool check_plain(const struct hw_container *container, uint32_t type, struct hw_error *error)
{
    for (size_t i = 0; container->sealed && i < container->extent_count; i++) {
        const struct hw_section *entry = &container->extents[i].entry;
        uint64_t checksum;
        if (entry->type != type || entry->flags & HW_SECTION_PACKED)
            continue;
        if (hw_container_checksum(container->fd, entry->offset, entry->used, &checksum) && checksum == entry->checksum)
            continue;
        hw_error_set(error, "'%s' is damaged: what was live at that moment is not known", container->path);
        return false;
    }
    return true;
}

#define AT_ONCE 4096

static bool count_section(const struct opened *opened, uint32_t type, size_t size, const struct counting *counting,
                          bool sampled, struct hw_error *error)
{
    struct hw_section_reader *reader = hw_section_open(&opened->container, type, error);
    char *entries = malloc(AT_ONCE * size);
    bool fine = reader && entries && check_plain(&opened->container, type, error);
    if (reader && !entries)
        hw_error_set(error, "'%s': not enough memory", opened->container.path);
    const uint64_t count = fine ? hw_section_entries(reader) : 0;
    for (uint64_t first = 0; fine && first < count; first += AT_ONCE) {
        const size_t some = count - first < AT_ONCE ? (size_t)(count - first) : AT_ONCE;
        fine = hw_section_read(reader, first, some, entries, error);
        for (size_t i = 0; fine && i < some; i++) {
            const void *entry = entries + i * size;
            if (type == HW_SECTION_MIBS)
                add_mib(counting, entry, sampled);
            else
                add_older(counting, entry);
        }
    }
    free(entries);
    hw_section_close(reader);
    return fine;
}

bool hw_moment_count(const char *path, const uint32_t *index_of, size_t ids, struct hw_moment_count *counts,
                     struct hw_moment_count *all, struct hw_error *error)
{
    const struct counting counting = {index_of, ids, counts, all};
    struct hw_moment moment;
    struct opened opened;
    *all = (struct hw_moment_count){.bytes = 0};
    if (!hw_moment_read(path, &moment, error))
        return false;
    const bool sampled = moment.process.sample_bytes != 0;
    const bool reset = moment.process.flags & HW_PROCESS_RESET;
    const bool fine =
        open_file(&opened, path, error) &&
        count_section(&opened, HW_SECTION_MIBS, sizeof(struct hw_mib), &counting, sampled, error) &&
        (!sampled || !reset ||
         count_section(&opened, HW_SECTION_INHERITED, sizeof(struct hw_inherited), &counting, sampled, error));
    close_file(&opened);
    return fine;
}
