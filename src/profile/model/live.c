/* live.c - see profile/live.h. */
#include "profile/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/growing.h"
#include "profile/container/container.h"
#include "profile/container/pack.h"
#include "profile/profile.h"

#define AT_ONCE 1024

/* The file as of this moment. */
struct reading {
    struct hw_live *live;
    struct hw_arena arena;
    struct hw_problems problems;
    struct hw_container container;
    struct hw_error *error;
};

static void begin(struct reading *reading, struct hw_live *live, struct hw_error *error)
{
    *reading = (struct reading){.live = live, .container = {.fd = live->fd, .path = live->path}, .error = error};
    reading->problems.arena = &reading->arena;
    reading->container.problems = &reading->problems;
}

static void finish(struct reading *reading)
{
    hw_container_free(&reading->container);
    hw_arena_free(&reading->arena);
}

static bool no_memory(struct reading *reading)
{
    hw_error_set(reading->error, "cannot read '%s': not enough memory", reading->live->path);
    return false;
}

typedef bool take_entries(struct reading *reading, uint64_t first, const void *entries, size_t count);

/* Gives the entries of a section from number FIRST on to TAKE, some at once. */
static bool each(struct reading *reading, uint32_t type, size_t size, uint64_t first, take_entries *take)
{
    struct hw_section_reader *reader = hw_section_open(&reading->container, type, reading->error);
    char *entries = malloc(AT_ONCE * size);
    bool fine = reader && (entries || no_memory(reading));
    const uint64_t count = fine ? hw_section_entries(reader) : 0;
    while (fine && first < count) {
        const size_t some = count - first < AT_ONCE ? (size_t)(count - first) : AT_ONCE;
        fine = hw_section_read(reader, first, some, entries, reading->error) && take(reading, first, entries, some);
        first += some;
    }
    free(entries);
    hw_section_close(reader);
    return fine;
}

/* ---- numbers ---- */

/* A damaged file may hold any number. */
static void add(struct hw_live_count *to, const struct hw_live_count *from)
{
    to->allocations += from->allocations;
    to->frees += from->frees;
    to->bytes += from->bytes;
    to->live_bytes = (int64_t)((uint64_t)to->live_bytes + (uint64_t)from->live_bytes);
    to->live_blocks = (int64_t)((uint64_t)to->live_blocks + (uint64_t)from->live_blocks);
}

static bool take_mibs(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    const struct hw_mib *mibs = entries;
    (void)first;
    for (size_t i = 0; i < count; i++) {
        const struct hw_mib *mib = &mibs[i];
        if (mib->context >= reading->live->context_count)
            continue; /* newer than the contexts that were read: the next reading has it; or a damaged file */
        add(&reading->live->counts[mib->context], &(struct hw_live_count){mib->allocations, mib->frees, mib->bytes,
                                                                          mib->live_bytes, mib->live_blocks});
        reading->live->pool[mib->context] |= (mib->flags & HW_MIB_POOL) != 0;
    }
    return true;
}

static bool take_threads(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    const struct hw_thread_entry *all = entries;
    struct hw_live *live = reading->live;
    (void)first;
    if (!HW_GROW(live->threads, live->thread_room, live->thread_count + count))
        return no_memory(reading);
    for (size_t i = 0; i < count; i++) {
        const struct hw_thread_entry *thread = &all[i];
        const struct hw_live_count one = {thread->allocations, thread->frees, thread->bytes, thread->live_bytes,
                                          thread->live_blocks};
        live->threads[live->thread_count++] =
            (struct hw_live_thread){.serial = thread->serial, .tid = thread->tid, .count = one};
        live->threads_running += thread->serial != 0;
        add(&live->total, &one);
    }
    return true;
}

static bool take_thread_details(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    const struct hw_thread_detail *details = entries;
    struct hw_live *live = reading->live;
    for (size_t i = 0; i < count && first + i < live->thread_count; i++) {
        struct hw_live_thread *thread = &live->threads[first + i];
        memcpy(thread->name, details[i].name, HW_THREAD_NAME);
        thread->known = details[i].threads != 0;
        thread->ended = details[i].end_tick != 0;
    }
    return true;
}

static bool take_process(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    if (first == 0 && count)
        memcpy(&reading->live->process, entries, sizeof reading->live->process);
    return true;
}

static bool take_timeline(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    const struct hw_timeline_point *points = entries;
    struct hw_live *live = reading->live;
    (void)first;
    if (!HW_GROW(live->timeline, live->timeline_room, live->timeline_count + count))
        return no_memory(reading);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = points[i].live_bytes > 0 ? (uint64_t)points[i].live_bytes : 0;
        live->timeline[live->timeline_count++] =
            (struct hw_live_point){hw_process_ns(&live->process, points[i].tick), bytes, points[i].rss_bytes};
    }
    return true;
}

/* ---- what only grows ---- */

static bool take_contexts(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    struct hw_live *live = reading->live;
    const size_t all = first + count;
    if (!HW_GROW(live->contexts, live->context_room, all) || !HW_GROW(live->counts, live->count_room, all) ||
        !HW_GROW(live->pool, live->pool_room, all))
        return no_memory(reading);
    memcpy(live->contexts + first, entries, count * sizeof *live->contexts);
    memset(live->counts + first, 0, count * sizeof *live->counts);
    memset(live->pool + first, 0, count * sizeof *live->pool);
    live->context_count = all;
    return true;
}

static bool take_nodes(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    struct hw_live *live = reading->live;
    if (!HW_GROW(live->nodes, live->node_room, first + count))
        return no_memory(reading);
    memcpy(live->nodes + first, entries, count * sizeof *live->nodes);
    for (size_t i = first; i < first + count; i++)
        live->nodes[i].parent = live->nodes[i].parent < i ? live->nodes[i].parent : 0;
    live->node_count = first + count;
    return true;
}

static bool take_maps(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    struct hw_live *live = reading->live;
    if (!HW_GROW(live->maps, live->map_room, first + count))
        return no_memory(reading);
    memcpy(live->maps + first, entries, count * sizeof *live->maps);
    live->map_count = first + count;
    return true;
}

static bool take_strings(struct reading *reading, uint64_t first, const void *entries, size_t count)
{
    struct hw_live *live = reading->live;
    if (!HW_GROW(live->strings, live->string_room, first + count + 1))
        return no_memory(reading);
    memcpy(live->strings + first, entries, count);
    live->string_size = first + count;
    live->strings[live->string_size] = '\0';
    return true;
}

/* Indexes that lead nowhere become those of nothing. */
static void check_indexes(struct hw_live *live)
{
    for (size_t i = 0; i < live->map_count; i++)
        if (live->maps[i].path >= live->string_size)
            live->maps[i].path = 0;
    for (; live->nodes_checked < live->node_count; live->nodes_checked++)
        if (live->nodes[live->nodes_checked].map >= live->map_count)
            live->nodes[live->nodes_checked].map = HW_NONE;
    for (size_t i = 0; i < live->context_count; i++)
        if (live->contexts[i].leaf >= live->node_count)
            live->contexts[i].leaf = 0;
}

/* What refers to others is read before them, so that they are there: the directory is read anew for each. Entries of
 * MAPS get marks later, so they are read again. */
static bool read_stacks(struct reading *reading)
{
    struct hw_live *live = reading->live;
    struct hw_container *container = &reading->container;
    const bool fine =
        hw_container_load(container, reading->error) &&
        each(reading, HW_SECTION_CONTEXTS, sizeof *live->contexts, live->context_count, take_contexts) &&
        hw_container_load(container, reading->error) &&
        each(reading, HW_SECTION_STACKS, sizeof *live->nodes, live->node_count, take_nodes) &&
        hw_container_load(container, reading->error) &&
        each(reading, HW_SECTION_MAPS, sizeof *live->maps, 0, take_maps) &&
        hw_container_load(container, reading->error) &&
        each(reading, HW_SECTION_STRINGS, 1, live->string_size, take_strings);
    check_indexes(live);
    return fine;
}

/* ---- the process ---- */

/* Whether it is still the process that was meant (a number may be given to another one) and has not ended. */
static bool runs(const struct hw_live *live)
{
    uint64_t start;
    return live->pid && hw_process_started((uint32_t)live->pid, &start) && start == live->process.start_time_jiffies;
}

static uint64_t read_rss(pid_t pid)
{
    char path[64], text[128] = "";
    unsigned long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (hw_container_read(file, text, sizeof text - 1, 0) > 0)
            sscanf(text, "%*s %llu", &pages);
        close(file);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void read_state(struct hw_live *live)
{
    struct timespec now;
    const bool lives = runs(live);
    live->running = lives && hw_process_writes((uint32_t)live->pid, live->process.start_time_jiffies, live->fd, live->path);
    live->replaced = lives && !live->running;
    live->rss_bytes = 0;
    live->time_ns = hw_process_ns(&live->process, live->process.end_tick);
    if (!live->running)
        return;
    live->rss_bytes = read_rss(live->pid);
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (now_ns > live->process.start_realtime_ns)
        live->time_ns = now_ns - live->process.start_realtime_ns;
}

/* ---- all of it ---- */

static void forget_numbers(struct hw_live *live)
{
    if (live->context_count) {
        memset(live->counts, 0, live->context_count * sizeof *live->counts);
        memset(live->pool, 0, live->context_count * sizeof *live->pool);
    }
    live->total = (struct hw_live_count){.allocations = 0};
    live->thread_count = live->threads_running = live->timeline_count = 0;
}

bool hw_live_read(struct hw_live *live, struct hw_error *error)
{
    struct reading reading;
    begin(&reading, live, error);
    forget_numbers(live);
    bool fine = hw_container_load(&reading.container, error) &&
                each(&reading, HW_SECTION_PROCESS, sizeof live->process, 0, take_process);
    read_state(live);
    fine = fine && read_stacks(&reading) && each(&reading, HW_SECTION_MIBS, sizeof(struct hw_mib), 0, take_mibs) &&
           each(&reading, HW_SECTION_THREADS, sizeof(struct hw_thread_entry), 0, take_threads) &&
           each(&reading, HW_SECTION_THREAD_LIST, sizeof(struct hw_thread_detail), 0, take_thread_details) &&
           each(&reading, HW_SECTION_TIMELINE, sizeof(struct hw_timeline_point), 0, take_timeline);
    finish(&reading);
    return fine;
}

struct hw_live *hw_live_open(int fd, const char *path, pid_t pid, struct hw_error *error)
{
    struct hw_live *live = calloc(1, sizeof *live);
    char *copy = strdup(path);
    if (!live || !copy) {
        hw_error_set(error, "cannot read '%s': not enough memory", path);
        free(live);
        free(copy);
        close(fd);
        return NULL;
    }
    live->fd = fd;
    live->path = copy;
    struct reading reading;
    begin(&reading, live, error);
    bool fine = hw_container_load(&reading.container, error) &&
                each(&reading, HW_SECTION_PROCESS, sizeof live->process, 0, take_process);
    finish(&reading);
    if (fine && !live->process.start_realtime_ns) {
        hw_error_set(error, "'%s' does not say what process it is of", path);
        fine = false;
    }
    if (!fine) {
        hw_live_close(live);
        return NULL;
    }
    /* Dumps and merged files are of processes that run or ran, but no process writes them. */
    const uint32_t others = HW_PROCESS_DUMP | HW_PROCESS_MERGED | HW_PROCESS_LLVM;
    if (pid || (!(live->process.flags & others) &&
                hw_process_writes(live->process.pid, live->process.start_time_jiffies, fd, path)))
        live->pid = pid ? pid : (pid_t)live->process.pid;
    return live;
}

void hw_live_close(struct hw_live *live)
{
    if (!live)
        return;
    close(live->fd);
    free(live->path);
    free(live->threads);
    free(live->counts);
    free(live->pool);
    free(live->timeline);
    free(live->contexts);
    free(live->nodes);
    free(live->maps);
    free(live->strings);
    free(live);
}
