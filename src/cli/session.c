/* session.c - see session.h. Reads only the first page and the PROCESS section of a file: there may be thousands. */
#include "cli/session.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "profile/profile.h"

/* The first page of a profile. */
struct first_page {
    struct hw_file_header header;
    struct hw_section directory[(HW_FILE_PAGE - sizeof(struct hw_file_header)) / sizeof(struct hw_section)];
};
_Static_assert(sizeof(struct first_page) == HW_FILE_PAGE, "first page");

static void read_process(int file, const struct first_page *page, struct hw_process_info *process)
{
    size_t most = sizeof page->directory / sizeof page->directory[0];
    for (size_t i = 0; i < most && i < page->header.directory_used; i++) {
        const struct hw_section *section = &page->directory[i];
        if (section->type != HW_SECTION_PROCESS || section->used == 0)
            continue;
        size_t size = section->used < sizeof *process ? section->used : sizeof *process;
        if (pread(file, process, size, (off_t)section->offset) != (ssize_t)size)
            memset(process, 0, sizeof *process);
        process->peak_bytes = hw_sampled_peak(process, process->live_bytes);
        return;
    }
}

static bool read_file(const char *path, uint64_t number, struct hw_process_info *process)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    struct stat status;
    struct first_page page;
    bool ours = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                pread(file, &page, sizeof page, 0) == (ssize_t)sizeof page && page.header.magic == HW_FILE_MAGIC &&
                page.header.version_major <= HW_FILE_VERSION_MAJOR && page.header.session == number;
    memset(process, 0, sizeof *process);
    if (ours)
        read_process(file, &page, process);
    close(file);
    return ours;
}

uint64_t hw_process_start_time(uint32_t pid)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static int by_start(const void *left, const void *right)
{
    const struct hw_session_file *a = left, *b = right;
    uint64_t first = a->process.start_realtime_ns, second = b->process.start_realtime_ns;
    return HW_ORDER(first, second);
}

/* A process lives on when it executes another program, but not in the file of the program it was. */
static void mark_replaced(struct hw_session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        const struct hw_process_info *process = &session->files[i].process;
        for (size_t j = i + 1; j < session->count && session->files[i].running; j++) {
            const struct hw_process_info *later = &session->files[j].process;
            if (later->pid == process->pid && later->start_time_jiffies == process->start_time_jiffies)
                session->files[i].running = false;
        }
    }
}

void hw_session_find(struct hw_session *session, const char *wildcard, uint64_t number)
{
    memset(session, 0, sizeof *session);
    glob_t found;
    if (glob(wildcard, GLOB_NOSORT | GLOB_PERIOD, NULL, &found) != 0)
        return;
    session->files = calloc(found.gl_pathc, sizeof *session->files);
    for (size_t i = 0; session->files && i < found.gl_pathc; i++) {
        struct hw_session_file file = {0};
        if (!read_file(found.gl_pathv[i], number, &file.process))
            continue;
        if (file.process.flags & HW_PROCESS_DUMP) { /* of a process that has a file of its own */
            session->dumps++;
            continue;
        }
        uint64_t start = file.process.start_time_jiffies;
        file.running =
            start && file.process.exit_kind == HW_EXIT_UNKNOWN && hw_process_start_time(file.process.pid) == start;
        file.path = strdup(found.gl_pathv[i]);
        if (file.path)
            session->files[session->count++] = file;
    }
    globfree(&found);
    if (session->count == 0)
        return;
    qsort(session->files, session->count, sizeof *session->files, by_start);
    mark_replaced(session);
}

void hw_session_free(struct hw_session *session)
{
    for (size_t i = 0; i < session->count; i++)
        free(session->files[i].path);
    free(session->files);
    memset(session, 0, sizeof *session);
}

const struct hw_session_file *hw_session_main(const struct hw_session *session, pid_t pid)
{
    for (size_t i = session->count; i-- > 0;) {
        const struct hw_process_info *process = &session->files[i].process;
        if (process->pid == (uint32_t)pid && !(process->flags & HW_PROCESS_FORKED))
            return &session->files[i];
    }
    return NULL;
}

size_t hw_session_running(const struct hw_session *session)
{
    size_t running = 0;
    for (size_t i = 0; i < session->count; i++)
        running += session->files[i].running;
    return running;
}
