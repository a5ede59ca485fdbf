/* attaching.c - see attaching.h, profile/attach.h for what the runtime does.
 *
 * Nothing is done by a debugger. One thread that is at a safe point is parked (see parking.h), and makes the calls that
 * it is asked for: dlopen, then the runtime. The other threads run meanwhile, so that whichever holds a lock gives it
 * back. Then all threads stop for a moment, and the functions of the allocator get their jumps; no thread may be in the
 * bytes that change. At last the parked thread continues where it was. */
#include "cli/attaching.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "cli/attachable.h"
#include "cli/parking.h"
#include "cli/permitted_calls.h"
#include "cli/recorded.h"

#define SEARCH_NS 10000000000ull /* for a safe point, and for a moment in which code can change */
#define INSIDE_NS 60000000000ull /* until no thread is in the runtime any more */
#define LOCK_NS   30000000000ull /* for another command */
#define LATER_NS  3000000l
#define TRUST_NS  500000000ull /* until stacks are unwound that only seem to lead to a place */
#define ROUNDS    8            /* at least so many attempts, however long they take */

struct attach {
    struct hw_attaching *out;
    struct hw_stop stop;
    struct hw_target_code code;
    struct hw_safe_points points;
    struct hw_image *runtime; /* NULL: not loaded */
    struct hw_parking parking;
    int lock; /* -1: none */
};

#define FAIL(attach, ...) (hw_error_set(&(attach)->out->error, __VA_ARGS__), false)

/* MORE is said behind what is said already. */
static void add(struct attach *attach, const char *more)
{
    struct hw_error *error = &attach->out->error;
    const size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "; %s", more);
}

/* ---- the process ---- */

/* A sanitizer has an allocator of its own, and stops its process when another library changes it. It is in the program
 * or in a library. */
static const char *sanitizer_of(struct attach *attach)
{
    for (size_t i = 0; i < attach->code.count; i++) {
        struct hw_image *image = &attach->code.images[i];
        const char *name = strrchr(image->path, '/');
        if (i && (image == attach->runtime || !name || !strstr(name, "san")))
            continue;
        for (size_t k = 0; k < HW_SANITIZERS; k++)
            if (hw_image_symbol(&attach->stop, image, hw_sanitizers[k].function))
                return hw_sanitizers[k].name;
    }
    return NULL;
}

/* What is mapped now. */
static bool read_code(struct attach *attach, uint64_t base)
{
    hw_safe_points_close(&attach->points);
    hw_target_code_free(&attach->code);
    if (!hw_target_code_read(&attach->code, &attach->stop))
        return false;
    attach->points.stop = &attach->stop;
    attach->points.code = &attach->code;
    attach->points.loader = hw_target_image(&attach->code, base);
    attach->points.libc = NULL;
    attach->runtime = NULL;
    for (size_t i = 0; i < attach->code.count; i++) {
        struct hw_image *image = &attach->code.images[i];
        const char *name = strrchr(image->path, '/');
        if (name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/libc-2.", 8) == 0) &&
            hw_image_symbol(&attach->stop, image, "gnu_get_libc_version"))
            attach->points.libc = image;
        if (name && (strncmp(name, "/libheapwise", 12) == 0 || strncmp(name, "/memfd:libheapwise", 18) == 0))
            attach->runtime = image;
    }
    if (!attach->points.libc || !attach->points.loader)
        return FAIL(attach, "process %d does not use glibc: it can only be recorded from its start (heapwise record)",
                    (int)attach->stop.pid);
    return hw_safe_points_open(&attach->points);
}

static bool read_info(struct attach *attach)
{
    struct hw_attach *info = &attach->out->info;
    attach->out->variable = attach->runtime ? hw_image_symbol(&attach->stop, attach->runtime, HW_ATTACH_VARIABLE) : 0;
    if (!attach->out->variable)
        return FAIL(attach, "process %d has the runtime of another version of Heapwise", (int)attach->stop.pid);
    if (!hw_stop_read(&attach->stop, attach->out->variable, info, sizeof *info))
        return false;
    if (info->version != HW_ATTACH_VERSION || info->patch_count > HW_ATTACH_PATCHES)
        return FAIL(attach, "process %d has the runtime of another version of Heapwise", (int)attach->stop.pid);
    info->path[sizeof info->path - 1] = info->problem[sizeof info->problem - 1] = '\0';
    return true;
}

static bool open_process(struct attach *attach, uint64_t *base)
{
    char path[64];
    if (!hw_is_attachable(&attach->stop, base) || !hw_calls_are_permitted(&attach->stop, attach->out->other_files))
        return false;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)attach->stop.pid);
    attach->parking.memory = open(path, O_RDWR | O_CLOEXEC);
    if (attach->parking.memory < 0)
        return hw_stop_say_why(&attach->stop, errno);
    return read_code(attach, *base);
}

/* Only one command at a time changes a process. The lock is on a file of the process, and ends with this command. */
static bool lock_process(struct attach *attach)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)attach->stop.pid);
    attach->lock = open(path, O_RDONLY | O_CLOEXEC);
    if (attach->lock < 0)
        return true; /* what is wrong is said later */
    for (const uint64_t until = hw_stop_now_ns() + LOCK_NS; hw_stop_now_ns() < until; hw_stop_sleep_ns(LATER_NS))
        if (flock(attach->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
    return FAIL(attach, "another heapwise attach or detach is at work on process %d: try again later",
                (int)attach->stop.pid);
}

static void close_process(struct attach *attach)
{
    if (attach->lock >= 0)
        close(attach->lock);
    hw_safe_points_close(&attach->points);
    hw_target_code_free(&attach->code);
    if (attach->parking.memory >= 0)
        close(attach->parking.memory);
    free(attach->stop.threads);
}

/* ---- a thread is parked ---- */

static bool call_libc(struct attach *attach, const char *name, uint64_t first, uint64_t second, uint64_t *result)
{
    const uint64_t function = hw_image_symbol(&attach->stop, attach->points.libc, name);
    return function ? hw_parked_call(&attach->parking, function, first, second, result)
                    : FAIL(attach, "the libc of process %d has no %s", (int)attach->stop.pid, name);
}

/* Looks at one thread after the other, waiting ones first, until one is at a safe point: it stays stopped. */
static struct hw_stop_thread *find_safe_point(struct attach *attach)
{
    const char *why = "not there any more";
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)attach->stop.pid);
    const uint64_t until = hw_stop_now_ns() + SEARCH_NS;
    for (int round = 0; round < ROUNDS || hw_stop_now_ns() < until; round++) {
        DIR *list = opendir(path);
        bool any = false;
        if (!list) {
            hw_error_set(&attach->out->error, "process %d has ended", (int)attach->stop.pid);
            return NULL;
        }
        for (struct dirent *entry; (entry = readdir(list));) {
            char name[300], status[4096];
            const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
            snprintf(name, sizeof name, "task/%s/status", entry->d_name);
            if (!tid || !hw_read_proc(attach->stop.pid, name, status, sizeof status))
                continue;
            const char *state = hw_status_value(status, "State");
            if (!state || (*state != 'S' && !(round % 4 == 3 && *state == 'R')))
                continue;
            any = true;
            attach->out->error.message[0] = '\0';
            struct hw_stop_thread *thread = hw_stop_one(&attach->stop, tid);
            if (!thread && attach->out->error.message[0]) {
                closedir(list);
                return NULL;
            }
            if (thread && hw_is_safe_point(&attach->points, thread, &why)) {
                closedir(list);
                return thread;
            }
            hw_stop_let_go(&attach->stop);
        }
        closedir(list);
        if (!any || round % 4 == 3)
            hw_stop_sleep_ns(LATER_NS);
    }
    hw_error_set(&attach->out->error,
                 "no thread of process %d reached a safe point within %d seconds (the last one was %s): try "
                 "again, or record it from its start with heapwise record",
                 (int)attach->stop.pid, (int)(SEARCH_NS / 1000000000u), why);
    return NULL;
}

/* The list of stopped threads has a copy of the parked one, which is not let go with the others. */
static void forget_parked(struct attach *attach)
{
    hw_unpark(&attach->parking);
    size_t left = 0;
    for (size_t i = 0; i < attach->stop.count; i++)
        if (!attach->stop.threads[i].held)
            attach->stop.threads[left++] = attach->stop.threads[i];
    attach->stop.count = left;
}

static bool find_and_park(struct attach *attach)
{
    enum hw_park_result result = HW_PARK_AGAIN;
    for (const uint64_t until = hw_stop_now_ns() + SEARCH_NS; result == HW_PARK_AGAIN && hw_stop_now_ns() < until;) {
        struct hw_stop_thread *thread = find_safe_point(attach);
        result = thread ? hw_park(&attach->parking, thread) : HW_PARK_FAILED;
        if (result == HW_PARK_AGAIN)
            forget_parked(attach);
    }
    return result == HW_PARKED || (result == HW_PARK_AGAIN &&
                                   FAIL(attach, "process %d gets too many signals: try again", (int)attach->stop.pid));
}

/* ---- all threads, for a moment ---- */

/* Threads that have not stopped are in system calls that take longer, such as vfork: they are in no code that changes.
 */
static bool have_all_stopped(struct attach *attach)
{
    for (size_t i = 0; i < attach->stop.count; i++) {
        struct hw_stop_thread *thread = &attach->stop.threads[i];
        if (!thread->gone && !thread->held && !thread->stopped.known && !hw_stop_is_in_call(&attach->stop, thread))
            return false;
    }
    return true;
}

/* As long as it has taken since BEGIN, so that the process gets on. */
static void sleep_since(uint64_t begin)
{
    const long spent = (long)(hw_stop_now_ns() - begin);
    hw_stop_sleep_ns(spent > LATER_NS ? spent : LATER_NS);
}

/* AFTER: the jumps, or what was there before. Where neither of them stands nothing is changed. */
static bool write_patches(struct attach *attach, bool after)
{
    const struct hw_attach *info = &attach->out->info;
    for (uint32_t i = 0; i < info->patch_count; i++) {
        const struct hw_attach_patch *patch = &info->patch[i];
        uint8_t now[sizeof patch->before];
        if (patch->size > sizeof now || !hw_stop_read(&attach->stop, patch->address, now, patch->size))
            return FAIL(attach, "code of process %d is gone", (int)attach->stop.pid);
        if (memcmp(now, patch->before, patch->size) != 0 && memcmp(now, patch->after, patch->size) != 0)
            return FAIL(attach, "the code of process %d was changed by something else", (int)attach->stop.pid);
    }
    for (uint32_t i = 0; i < info->patch_count; i++) {
        const struct hw_attach_patch *patch = &info->patch[i];
        if (hw_write_code(&attach->parking, patch->address, after ? patch->after : patch->before, patch->size))
            continue;
        const struct hw_error error = attach->out->error;
        while (after && i-- > 0)
            hw_write_code(&attach->parking, info->patch[i].address, info->patch[i].before, info->patch[i].size);
        attach->out->error = error;
        return false;
    }
    return true;
}

static bool change_code(struct attach *attach)
{
    const struct hw_attach *info = &attach->out->info;
    uint64_t range[HW_ATTACH_PATCHES][2];
    for (uint32_t i = 0; i < info->patch_count; i++) {
        range[i][0] = info->patch[i].address + 1;
        range[i][1] = info->patch[i].address + info->patch[i].size;
    }
    const uint64_t until = hw_stop_now_ns() + SEARCH_NS;
    for (int round = 0; (round < ROUNDS || hw_stop_now_ns() < until) && !hw_stop_is_cancelled(); round++) {
        const uint64_t begin = hw_stop_now_ns();
        if (!hw_stop_all(&attach->stop)) {
            hw_stop_let_go(&attach->stop);
            return false;
        }
        bool possible = have_all_stopped(attach);
        for (size_t i = 0; possible && i < attach->stop.count; i++) {
            const struct hw_stop_thread *thread = &attach->stop.threads[i];
            possible = thread->gone || thread->held || !thread->stopped.known ||
                       !hw_may_lead_to(&attach->points, thread, (const uint64_t(*)[2])range, info->patch_count);
        }
        const bool done = possible && write_patches(attach, true);
        hw_stop_let_go(&attach->stop);
        if (possible)
            return done;
        sleep_since(begin);
        hw_target_code_refresh(&attach->code, &attach->stop); /* threads may have new stacks */
    }
    return FAIL(attach, "the threads of process %d could not be stopped outside of the allocator's first instructions",
                (int)attach->stop.pid);
}

/* ---- begin ---- */

/* Where the process does not see the library: a file in its memory has the same bytes. Its number, or -1. */
static int bring_runtime(struct attach *attach)
{
    static const char label[] = "libheapwise.so";
    char name[64], bytes[65536];
    uint64_t number = 0;
    if (!hw_stop_write(&attach->stop, HW_PARKED_AT(&attach->parking, text), label, sizeof label) ||
        !call_libc(attach, "memfd_create", HW_PARKED_AT(&attach->parking, text), MFD_CLOEXEC, &number))
        return -1;
    if ((int)number < 0) {
        hw_error_set(&attach->out->error, "process %d cannot have a file in memory", (int)attach->stop.pid);
        return -1;
    }
    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)attach->stop.alive, (int)number);
    const int from = open(attach->out->runtime, O_RDONLY | O_CLOEXEC), to = open(name, O_WRONLY | O_CLOEXEC);
    ssize_t got = -1;
    while (from >= 0 && to >= 0 && (got = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)got) != got)
            break;
    const int error = errno;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    if (got == 0)
        return (int)number;
    call_libc(attach, "close", number, 0, NULL);
    hw_error_set(&attach->out->error, "the runtime cannot be copied into process %d: %s", (int)attach->stop.pid,
                 strerror(error));
    return -1;
}

/* By what name the process opens the runtime; *NUMBER: the file in its memory that this is, or -1. */
static bool name_runtime(struct attach *attach, char *path, size_t size, int *number)
{
    const char *library = attach->out->runtime, *name = strrchr(library, '/');
    const int directory = name ? (int)(name - library) : 0;
    *number = -1;
    if (attach->out->other_files) {
        *number = bring_runtime(attach);
        return *number >= 0 && snprintf(path, size, HW_ATTACH_MEMORY "%d", *number) > 0;
    }
    return snprintf(path, size, "%.*s/.%s", directory, library, name ? name : "") < (int)size ||
           FAIL(attach, "the name of the runtime library is too long");
}

static bool open_runtime(struct attach *attach, const char *path)
{
    uint64_t handle = 0, problem = 0;
    char text[512] = "";
    struct iovec to = {text, sizeof text - 1};
    const char *open = hw_image_symbol(&attach->stop, attach->points.libc, "dlopen") ? "dlopen" : "__libc_dlopen_mode";
    const bool internal = *open == '_';
    if (!hw_stop_write(&attach->stop, HW_PARKED_AT(&attach->parking, text), path, strlen(path) + 1) ||
        !call_libc(attach, open, HW_PARKED_AT(&attach->parking, text), internal ? 0x80000002ul : 2, &handle))
        return false;
    if (handle)
        return true;
    if (!internal && call_libc(attach, "dlerror", 0, 0, &problem) && problem) {
        const struct iovec from = {(void *)problem, sizeof text - 1};
        if (process_vm_readv(attach->stop.alive, &to, 1, &from, 1, 0) < 0)
            text[0] = '\0';
    }
    return FAIL(attach, "process %d could not load %s: %s", (int)attach->stop.pid, attach->out->runtime,
                *text ? text : "dlopen failed");
}

static bool load_runtime(struct attach *attach, uint64_t base)
{
    char path[sizeof((struct hw_parked *)NULL)->text];
    int number;
    if (!name_runtime(attach, path, sizeof path, &number))
        return false;
    const bool fine = open_runtime(attach, path);
    const struct hw_error error = attach->out->error;
    if (number >= 0 && !call_libc(attach, "close", (uint64_t)number, 0, NULL) && fine)
        return false;
    attach->out->error = error;
    return fine && read_code(attach, base);
}

/* dlsym leaves a message behind when it finds nothing; asked twice, libc forgets it. */
static bool forget_message(struct attach *attach)
{
    if (!hw_image_symbol(&attach->stop, attach->points.libc, "dlerror"))
        return true;
    return call_libc(attach, "dlerror", 0, 0, NULL) && call_libc(attach, "dlerror", 0, 0, NULL);
}

static bool call_runtime(struct attach *attach, enum hw_attach_what what)
{
    uint64_t result = 0;
    if (!hw_parked_call(&attach->parking, attach->out->info.call, what, HW_PARKED_AT(&attach->parking, patience),
                        &result) ||
        !read_info(attach))
        return false;
    return (int64_t)result == 0 || FAIL(attach, "process %d: %s", (int)attach->stop.pid, attach->out->info.problem);
}

/* errno is a variable of the thread. */
static bool keep_errno(struct attach *attach)
{
    uint64_t place;
    int value;
    return call_libc(attach, "__errno_location", 0, 0, &place) &&
           hw_stop_read(&attach->stop, place, &value, sizeof value) &&
           hw_parked_keep_errno(&attach->parking, place, value);
}

/* How each recording ends: by a call of the parked thread. */
static bool end_by_call(struct attach *attach)
{
    return find_and_park(attach) && keep_errno(attach) && call_runtime(attach, HW_ATTACH_END);
}

/* BEGIN was called; error: why the recording is not to be. Where nobody waits for that call any more, the runtime
 * undoes by itself what it has begun, unless it was done with that already. */
static void undo(struct attach *attach)
{
    const struct hw_error error = attach->out->error;
    const struct hw_attach *info = &attach->out->info;
    const bool late = attach->parking.late;
    bool done = !late && call_runtime(attach, HW_ATTACH_END), counts = !late;
    if (!done) {
        forget_parked(attach);
        counts = !read_info(attach) || info->stage == HW_ATTACH_COUNTING;
        done = !counts || end_by_call(attach);
    }
    if (done && counts && !attach->out->other_files) /* there, links might lead anywhere */
        unlink(info->path);
    attach->out->error = error;
    if (!done && !attach->parking.thread.gone)
        add(attach, "and what was begun could not be undone: heapwise detach ends it");
}

static bool begin(struct attach *attach)
{
    uint64_t base = 0;
    const struct hw_attach *info = &attach->out->info;
    const size_t length = strlen(attach->out->options) + 1;
    if (!open_process(attach, &base))
        return false;
    if (length > sizeof info->options)
        return FAIL(attach, "the options are too long");
    const char *sanitizer = sanitizer_of(attach);
    if (sanitizer)
        return FAIL(attach, "process %d is built with %s, which has an allocator of its own: record a build without it",
                    (int)attach->stop.pid, sanitizer);
    if (attach->runtime && !read_info(attach))
        return false;
    if (attach->runtime && info->stage != HW_ATTACH_IDLE)
        return FAIL(attach,
                    info->stage == HW_ATTACH_COUNTING
                        ? "process %d is recorded already, since an earlier heapwise attach (heapwise detach "
                          "ends that)"
                        : "process %d has the runtime since its start (heapwise record): it needs no attach",
                    (int)attach->stop.pid);
    if (!find_and_park(attach))
        return false;
    const bool kept = keep_errno(attach);
    bool fine = kept && (attach->runtime || load_runtime(attach, base)) && read_info(attach);
    fine = fine && hw_stop_write(&attach->stop, attach->out->variable + offsetof(struct hw_attach, options),
                                 attach->out->options, length);
    const bool begun = fine && call_runtime(attach, HW_ATTACH_BEGIN), asked = fine;
    if (kept && !attach->parking.thread.gone) {
        const struct hw_error error = attach->out->error;
        forget_message(attach);
        if (!begun)
            attach->out->error = error;
    }
    fine = begun && change_code(attach);
    if (!fine && attach->parking.late && !begun)
        add(attach, "it is not recorded, and what was begun is undone as soon as it answers");
    if (!fine && (begun || (asked && attach->parking.late)) && !attach->parking.thread.gone)
        undo(attach);
    forget_parked(attach);
    return fine;
}

/* ---- end ---- */

/* The runtime's data of the thread is as in a new thread. */
static bool reset_thread(struct attach *attach, const struct hw_stop_thread *thread, uint64_t offset, const void *image)
{
    const struct hw_attach *info = &attach->out->info;
    return hw_stop_write(&attach->stop, thread->stopped.thread_pointer + (uint64_t)info->plane - offset, image,
                         info->tls_bytes);
}

static bool reset_threads(struct attach *attach)
{
    const struct hw_attach *info = &attach->out->info;
    const uint64_t offset = hw_image_symbol(&attach->stop, attach->runtime, HW_ATTACH_PLANE);
    char *image =
        info->tls_bytes < 65536 && info->tls_image_bytes <= info->tls_bytes ? calloc(1, info->tls_bytes) : NULL;
    bool fine = image && hw_stop_read(&attach->stop, info->tls_image, image, info->tls_image_bytes);
    for (size_t i = 0; fine && i < attach->stop.count; i++) {
        const struct hw_stop_thread *thread = &attach->stop.threads[i];
        fine = thread->gone || reset_thread(attach, thread, offset, image);
    }
    free(image);
    return fine;
}

/* The jumps are out: a thread that is outside stays there. TRUST: its stack is unwound where it only seems to lead to
 * the runtime. */
static bool is_outside(struct attach *attach, const struct hw_stop_thread *thread, bool trust)
{
    const struct hw_attach *info = &attach->out->info;
    const uint64_t range[2][2] = {{info->code, info->code_end}, {info->trampolines, info->trampolines_end}};
    return thread->gone ||
           (thread->stopped.known && (!hw_may_lead_to(&attach->points, thread, range, 2) ||
                                      (trust && thread->general.rip && !hw_is_inside(&attach->points, thread, range))));
}

/* Those of the stopped threads that may be in the runtime. INSIDE has room for all. */
static size_t list_inside(struct attach *attach, pid_t *inside, bool trust)
{
    size_t count = 0;
    for (size_t i = 0; i < attach->stop.count; i++)
        if (!is_outside(attach, &attach->stop.threads[i], trust))
            inside[count++] = attach->stop.threads[i].tid;
    return count;
}

/* Takes the jumps out. INSIDE[*COUNT], which the caller frees: threads that may be in the runtime. */
static bool remove_patches(struct attach *attach, pid_t **inside, size_t *count)
{
    const bool fine = hw_stop_all(&attach->stop) && write_patches(attach, false);
    *inside = fine ? calloc(attach->stop.count, sizeof **inside) : NULL;
    *count = *inside ? list_inside(attach, *inside, false) : 0;
    hw_stop_let_go(&attach->stop);
    return fine && (*inside || FAIL(attach, "not enough memory"));
}

/* No thread is in the runtime: all begin anew there. */
static bool reset_all(struct attach *attach)
{
    const uint64_t until = hw_stop_now_ns() + INSIDE_NS;
    bool stopped = true, fine = false;
    for (int round = 0; !fine && stopped && (round < ROUNDS || hw_stop_now_ns() < until); round++) {
        const uint64_t begin = hw_stop_now_ns();
        bool known = true;
        stopped = hw_stop_all(&attach->stop);
        for (size_t i = 0; i < attach->stop.count; i++)
            known = known && (attach->stop.threads[i].gone || attach->stop.threads[i].stopped.known);
        fine = stopped && known && reset_threads(attach);
        hw_stop_let_go(&attach->stop);
        if (!fine)
            sleep_since(begin);
    }
    return fine ||
           (stopped && FAIL(attach, "the threads of process %d cannot be reset: run heapwise detach again later",
                            (int)attach->stop.pid));
}

static bool restore_code(struct attach *attach)
{
    pid_t *inside = NULL;
    size_t count = 0;
    if (!remove_patches(attach, &inside, &count))
        return false;
    bool fine = true;
    const uint64_t begin = hw_stop_now_ns();
    for (int round = 0; fine && count && (round < ROUNDS || hw_stop_now_ns() < begin + INSIDE_NS); round++) {
        const uint64_t now = hw_stop_now_ns();
        fine = !(round >= ROUNDS && hw_stop_is_cancelled()) && hw_stop_these(&attach->stop, inside, count);
        count = fine ? list_inside(attach, inside, now > begin + TRUST_NS) : count;
        hw_stop_let_go(&attach->stop);
        if (count)
            sleep_since(now);
        hw_target_code_refresh(&attach->code, &attach->stop);
    }
    free(inside);
    if (!fine && attach->out->error.message[0])
        return false;
    return count
               ? FAIL(attach,
                      "nothing is counted any more in process %d, but %zu of its threads are still in the middle of a "
                      "counted call: run heapwise detach again later",
                      (int)attach->stop.pid, count)
               : reset_all(attach);
}

static bool end(struct attach *attach)
{
    uint64_t base = 0;
    if (!open_process(attach, &base))
        return false;
    if (!attach->runtime)
        return FAIL(attach, "process %d is not recorded", (int)attach->stop.pid);
    if (!read_info(attach))
        return false;
    if (attach->out->info.stage != HW_ATTACH_COUNTING)
        return FAIL(attach,
                    attach->out->info.stage != HW_ATTACH_IDLE
                        ? "process %d was started by heapwise record, and is recorded until it ends"
                    : attach->out->info.rounds ? "process %d is not recorded any more"
                                               : "process %d is not recorded",
                    (int)attach->stop.pid);
    const bool fine = restore_code(attach) && end_by_call(attach);
    if (!fine && attach->parking.late)
        add(attach, "nothing is counted any more, and the profile ends as soon as it answers");
    forget_parked(attach);
    return fine;
}

static bool run(struct hw_attaching *attaching, bool (*what)(struct attach *attach))
{
    static struct attach attach;
    sigset_t all, ends, old;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    attach = (struct attach){.out = attaching, .parking.memory = -1, .lock = -1};
    attach.parking.points = &attach.points;
    attaching->other_files = hw_sees_other_files(attaching->pid);
    attach.stop = (struct hw_stop){.pid = attaching->pid, .alive = attaching->pid, .error = &attaching->error};
    const struct timespec now = {0};
    sigfillset(&all); /* who interrupts this command waits until the program runs again */
    sigprocmask(SIG_BLOCK, &all, &old);
    const bool fine = lock_process(&attach) && what(&attach);
    forget_parked(&attach);
    hw_stop_let_go(&attach.stop);
    close_process(&attach);
    if (!fine && hw_stop_is_cancelled()) { /* that is why: it is said, and then this command ends */
        add(&attach, "heapwise was interrupted");
        sigtimedwait(&ends, NULL, &now);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return fine;
}

bool hw_attach_begin(struct hw_attaching *attaching)
{
    return run(attaching, begin);
}

bool hw_attach_end(struct hw_attaching *attaching)
{
    return run(attaching, end);
}

bool hw_attach_is_lost(const struct hw_attaching *attaching)
{
    uint64_t version = 0;
    const struct iovec to = {&version, sizeof version}, from = {(void *)(uintptr_t)attaching->variable, sizeof version};
    const bool known = process_vm_readv(attaching->pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof version;
    return known ? version != HW_ATTACH_VERSION : errno == EFAULT || errno == EPERM;
}
