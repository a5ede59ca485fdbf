/* dump.c - snapshots of the profile while the program goes on: heapwise_dump(), dump-interval=, the dump signal.
 *
 * A dump is a profile of its own beside the process's: NAME.dumpN.hwprof for NAME.hwprof. It is written and sealed
 * here, by the thread that asks for it. No event is half counted in it: threads wait at their next allocation or free
 * while the sections that change are copied (hw_threads_stop); what only grows is copied after they have gone on. The
 * process's own file is not touched.
 *
 * Who asks may be anybody: the program, also in a signal handler; a handler of ours; a thread that notices in the
 * middle of its own event that a dump is due. In a handler that has interrupted the runtime nothing can be written yet:
 * the dump is left to the end of that event, or to the next one of any thread. Signal handlers and
 * coroutines have small stacks: everything is done on one of our own. */
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/graph/graph.h"
#include "runtime/hooks/hooks.h"

#include <errno.h>
#include <linux/falloc.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DUMPS_MOST  1000000u
#define EXTENTS     (HW_POOL_COUNT + 1)
#define RETRY_TICKS 2500000u /* about a millisecond */
#define REST        3        /* times as long as a dump took, the program goes on before the next periodic one */

static struct {
    struct hw_lock lock; /* one dump or reset at a time; taken before hw_runtime.lock */
    uint32_t pending;    /* somebody could not write it himself */
    uint32_t number;     /* of the latest file */
    uint64_t next_ns;    /* CLOCK_MONOTONIC: when the next periodic one is due */
    bool told;           /* on stderr, that they cannot be written */
} dump;

/* A dump under construction; one at a time, under dump.lock. */
static struct writing {
    int fd;
    uint64_t end; /* of what has a place already */
    struct {
        struct hw_file_header header;
        struct hw_section directory[(HW_FILE_PAGE - sizeof(struct hw_file_header)) / sizeof(struct hw_section)];
    } page;
    struct hw_section more[HW_FILE_PAGE / sizeof(struct hw_section)]; /* a second directory, if the first is full */
    uint32_t more_used;
    struct hw_section *link; /* to it; NULL: there is none */
    struct hw_process_info process;
    struct hw_timeline_point last_point;
    struct hw_memory_breakdown memory;
    uint64_t used[HW_POOL_COUNT]; /* bytes of each pool that belong to the snapshot */
    char path[sizeof hw_file_path + 32];
    char buffer[64 * 1024];
} writing HW_LARGE;
_Static_assert(sizeof writing.page == HW_FILE_PAGE, "first page");
#define FIRST_DIRECTORY (sizeof writing.page.directory / sizeof writing.page.directory[0])
_Static_assert(EXTENTS <= FIRST_DIRECTORY - 1 + sizeof writing.more / sizeof writing.more[0],
               "two directories are enough");

/* Sections that can be copied at leisure. */
static const bool only_grows[HW_POOL_COUNT] = {
#define GROWS                                                    true
#define CHANGES                                                  false
#define HW_POOL(name, when, reserve, share, first, change, fork) [HW_POOL_##name] = change,
#include "profile/sections.def"
};

/* ---- the file ---- */

/* The process's own file as an absolute name: the program may have changed its directory since. */
static const char *own_path(char *buffer, size_t size)
{
    int fd = hw_file_descriptor();
    if (hw_file_path[0] == '/' || fd < 0)
        return hw_file_path;
    char link[40];
    struct hw_text text;
    hw_text_init(&text, link, sizeof link);
    hw_text_string(&text, "/proc/self/fd/");
    hw_text_u64(&text, (uint64_t)fd);
    return hw_read_link(link, buffer, size) > 0 && buffer[0] == '/' ? buffer : hw_file_path;
}

static void name_dump(char *name, size_t size, uint32_t number)
{
    static const char extension[] = ".hwprof";
    struct hw_text text;
    char buffer[sizeof hw_file_path];
    hw_text_init(&text, name, size);
    hw_text_string(&text, own_path(buffer, sizeof buffer));
    size_t cut = text.used > sizeof extension ? text.used - (sizeof extension - 1) : 0;
    if (cut && hw_streq(name + cut, extension)) {
        text.used = cut;
        name[cut] = 0;
    }
    hw_text_string(&text, ".dump");
    hw_text_u64(&text, number);
    hw_text_string(&text, extension);
}

/* No file is overwritten: the first number that is free. */
static long open_dump(struct writing *out)
{
    for (uint32_t number = dump.number + 1; number <= DUMPS_MOST; number++) {
        name_dump(out->path, sizeof out->path, number);
        out->fd = hw_open(out->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, hw_file_mode());
        if (out->fd >= 0)
            dump.number = number;
        if (out->fd != -EEXIST)
            return out->fd;
    }
    return -EEXIST;
}

/* A file size limit would raise SIGXFSZ: look first. */
static long check_size(uint64_t bytes)
{
    return bytes > hw_soft_limit(RLIMIT_FSIZE) ? -EFBIG : 0;
}

/* Space for everything as it is now, and a bit of what may come until it is written: so that a full disk is noticed
 * before any thread waits. */
static long reserve_space(const struct writing *out)
{
    uint64_t bytes = 64 * 1024;
    for (int id = 0; id < HW_POOL_COUNT; id++)
        bytes += HW_ALIGN_UP(hw_pools[id].used + hw_pools[id].used / 16, HW_PAGE);
    long result = check_size(bytes);
    if (result >= 0)
        result = hw_sys(SYS_fallocate, out->fd, FALLOC_FL_KEEP_SIZE, 0, bytes);
    return result == -EOPNOTSUPP || result == -ENOSYS ? 0 : result;
}

/* ---- sections ---- */

static struct hw_section *add_section(struct writing *out, uint32_t type, uint32_t entry_size, uint64_t used)
{
    if (!out->link && out->page.header.directory_used == FIRST_DIRECTORY - 1) {
        out->link = &out->page.directory[out->page.header.directory_used++];
        *out->link = (struct hw_section){.type = HW_SECTION_DIRECTORY,
                                         .version = 1,
                                         .offset = out->end,
                                         .capacity = HW_FILE_PAGE,
                                         .used = HW_FILE_PAGE,
                                         .entry_size = sizeof(struct hw_section)};
        out->end += HW_FILE_PAGE;
    }
    struct hw_section *section =
        out->link ? &out->more[out->more_used++] : &out->page.directory[out->page.header.directory_used++];
    *section = (struct hw_section){
        .type = type,
        .version = 1,
        .offset = out->end,
        .capacity = HW_ALIGN_UP(used, HW_PAGE),
        .used = used,
        .entry_size = entry_size,
    };
    out->end += section->capacity;
    return section;
}

static long write_pool(struct writing *out, enum hw_pool_id id)
{
    const struct hw_pool *pool = &hw_pools[id];
    const void *extra = id == HW_POOL_TIMELINE ? (void *)&out->last_point : id == HW_POOL_MEMORY ? &out->memory : NULL;
    uint64_t used = out->used[id], more = extra ? pool->entry_size : 0;
    if ((id == HW_POOL_MEMORY && !out->memory.rss) ||
        (id == HW_POOL_TIMELINE && used / pool->entry_size >= HW_TIMELINE_POINTS))
        more = 0;
    if (!used && !more)
        return 0;
    struct hw_section *section = add_section(out, pool->type, pool->entry_size, used + more);
    const void *bytes = id == HW_POOL_PROCESS ? (void *)&out->process : pool->base;
    long result = check_size(out->end);
    if (result >= 0)
        result = hw_pwrite_full(out->fd, bytes, used, section->offset);
    if (result >= 0 && more)
        result = hw_pwrite_full(out->fd, extra, more, section->offset + used);
    return result;
}

/* What the process section and the timeline say of this moment. Nobody counts meanwhile; lock held. */
static void describe_moment(struct writing *out, uint64_t peak_rss, uint64_t rss)
{
    hw_clock_refresh();
    struct hw_process_info *process = &out->process;
    *process = *hw_runtime.process;
    process->flags |= HW_PROCESS_DUMP;
    process->dump_signal = 0;
    process->peak_rss_bytes = peak_rss;
    process->live_bytes = process->live_blocks =
        0; /* what threads have not yet added to the totals is in their entries */
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++) {
        const struct hw_thread_entry *entry = HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i);
        process->live_bytes += entry->live_bytes;
        process->live_blocks += entry->live_blocks;
    }
    out->memory.tick = process->end_tick;
    out->memory.live_bytes = process->live_bytes;
    hw_pages_split(&out->memory);
    out->last_point = (struct hw_timeline_point){
        .tick = process->end_tick,
        .live_bytes = hw_places.even ? hw_places_live() : process->live_bytes,
        .rss_bytes = rss,
    };
    out->last_point.allocations = hw_threads_sum(&out->last_point.frees);
}

/* The sections that change, as of one moment. */
static long write_changing(struct writing *out)
{
    uint64_t peak_rss = hw_memory_peak_rss_in(out->buffer, sizeof out->buffer), rss = hw_memory_rss();
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_memory_measure(&out->memory, HW_MOMENT_DUMP, NULL); /* takes a while: before anybody has to wait */
    if (out->memory.rss)
        hw_ledger_keep(HW_MOMENT_DUMP, hw_ticks_raw() - hw_runtime.tick_base);
    hw_lock_drop(&hw_runtime.lock, old);
    bool stopped = hw_threads_stop_within(1000000000); /* on a busy machine a thread may not run for long */
    if (!stopped)
        hw_note(HW_NOTE_OTHER, "a dump was written while a thread was in the middle of an allocation or free: sums over "
                               "places may differ from the totals by one block");
    hw_contents_examine(HW_MOMENT_DUMP, stopped);
    old = hw_lock_take(&hw_runtime.lock);
    hw_parts_harvest(stopped);
    hw_parts_dump();
    describe_moment(out, peak_rss, rss);
    for (int id = 0; id < HW_POOL_COUNT; id++)
        out->used[id] = hw_pools[id].used;
    long result = 0;
    for (int id = 0; id < HW_POOL_COUNT && result >= 0; id++)
        if (!only_grows[id])
            result = write_pool(out, id);
    hw_parts_forget_harvest();
    hw_ledger_forget(HW_MOMENT_DUMP);
    hw_lock_drop(&hw_runtime.lock, old);
    hw_threads_go();
    return result;
}

static long write_growing(struct writing *out)
{
    long result = 0;
    for (int id = 0; id < HW_POOL_COUNT && result >= 0; id++)
        if (only_grows[id])
            result = write_pool(out, id);
    return result;
}

static long sum_up(struct writing *out, struct hw_section *section)
{
    struct hw_checksum sum;
    hw_checksum_begin(&sum);
    for (uint64_t done = 0; done < section->used;) {
        uint64_t left = section->used - done;
        size_t part = left < sizeof out->buffer ? (size_t)left : sizeof out->buffer;
        long got = hw_sys(SYS_pread64, out->fd, out->buffer, part, section->offset + done);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return got ? got : -EIO;
        hw_checksum_add(&sum, out->buffer, (size_t)got);
        done += (uint64_t)got;
    }
    section->checksum = hw_checksum_end(&sum);
    hw_file_note_extent(&out->page.header, section->type, section->offset);
    return 0;
}

/* Checksums of what is in the file now; the first page, last, makes it a profile. */
static long seal(struct writing *out)
{
    struct hw_checksum sum;
    struct hw_file_header *header = &out->page.header;
    long summed = 0;
    for (uint32_t i = 0; i < out->more_used && summed >= 0; i++)
        summed = sum_up(out, &out->more[i]);
    if (out->link && summed >= 0)
        summed = hw_pwrite_full(out->fd, out->more, sizeof out->more, out->link->offset);
    for (uint32_t i = 0; i < header->directory_used && summed >= 0; i++)
        summed = sum_up(out, &out->page.directory[i]);
    if (summed < 0)
        return summed;
    header->total_size = out->end;
    header->flags = HW_FILE_SEALED;
    hw_checksum_begin(&sum);
    hw_checksum_add(&sum, &out->page, sizeof out->page);
    header->checksum = hw_checksum_end(&sum);
    long result = hw_sys(SYS_ftruncate, out->fd, out->end); /* the last page may not be full */
    return result < 0 ? result : hw_pwrite_full(out->fd, &out->page, sizeof out->page, 0);
}

long hw_dump_write(void)
{
    struct writing *out = &writing;
    long result = open_dump(out);
    if (result >= 0) {
        out->end = HW_FILE_PAGE;
        __builtin_memset(&out->page, 0, sizeof out->page);
        __builtin_memset(out->more, 0, sizeof out->more);
        out->more_used = 0;
        out->link = NULL;
        out->page.header = (struct hw_file_header){
            .magic = HW_FILE_MAGIC,
            .version_major = HW_FILE_VERSION_MAJOR,
            .version_minor = HW_FILE_VERSION_MINOR,
            .page_size = HW_FILE_PAGE,
            .directory_capacity = sizeof out->page.directory / sizeof out->page.directory[0],
            .session = hw_options.session,
        };
        result = reserve_space(out);
        if (result >= 0)
            result = write_changing(out);
        if (result >= 0)
            result = write_growing(out);
        if (result >= 0)
            result = seal(out);
        if (result < 0)
            hw_sys(SYS_unlink, out->path);
        hw_close(out->fd);
    }
    if (result < 0 && (hw_options.verbose || !dump.told)) {
        dump.told = true;
        hw_text_join(out->buffer, sizeof out->buffer, out->path, ": ", hw_error_name((int)-result));
        hw_trouble("cannot write a dump: ", out->buffer, (int)-result);
    } else if (hw_options.verbose && result >= 0)
        hw_message("dump: ", out->path);
    return result < 0 ? result : (long)dump.number;
}

/* ---- who asks ---- */

bool hw_dump_try_lock(hw_sigset *old)
{
    return hw_lock_try(&dump.lock, old);
}

/* The end of this event, or of the next one of any thread, finds that something is due. (A request in the process
 * section says so itself.) */
static void leave_pending(bool requested)
{
    if (!requested)
        __atomic_store_n(&dump.pending, 1, __ATOMIC_SEQ_CST);
    hw_timeline_hurry();
}

static void write_and_answer(void)
{
    struct hw_process_info *process = hw_runtime.process;
    uint32_t request = __atomic_load_n(&process->dump_request, __ATOMIC_ACQUIRE);
    __atomic_store_n(&dump.pending, 0, __ATOMIC_SEQ_CST);
    process->dump_result = (int32_t)hw_dump_write();
    __atomic_store_n(&process->dump_answer, request, __ATOMIC_RELEASE);
}

static char stack[64 * 1024] __attribute__((aligned(16)));

/* Writes one dump, which answers everybody who has asked up to now. Lock held. */
static long serve(void)
{
    hw_arch_call_on_stack(stack + sizeof stack, write_and_answer);
    return hw_runtime.process->dump_result;
}

/* Whether the runtime can do anything for this process now. */
static bool is_on(void)
{
    if (hw_runtime.state == HW_STATE_NEW)
        hw_start();
    if (hw_runtime.state == HW_STATE_ON && hw_fork_pending())
        hw_fork_child();
    return hw_runtime.state == HW_STATE_ON && !hw_quiet && hw_getpid() == hw_runtime.pid;
}

static bool inside_runtime(void)
{
    const struct hw_thread *self = hw_self;
    return self && self->gate != HW_GATE_OPEN;
}

hw_sigset hw_dump_lock(void)
{
    return hw_lock_take(&dump.lock);
}

void hw_dump_unlock(hw_sigset old)
{
    hw_lock_drop(&dump.lock, old);
}

bool hw_dump_possible(void)
{
    return is_on() && !inside_runtime();
}

HW_EXPORTED(int, heapwise_dump, (void))
{
    if (!is_on())
        return -1;
    if (inside_runtime()) {
        leave_pending(false);
        return 0;
    }
    hw_sigset old = hw_lock_take(&dump.lock);
    long result = serve();
    hw_lock_drop(&dump.lock, old);
    return result < 0 ? -1 : 0;
}

void hw_dump_signalled(bool requested, uint32_t request)
{
    hw_sigset old;
    if (!is_on())
        return;
    if (inside_runtime() || !hw_dump_try_lock(&old)) {
        leave_pending(requested);
        return;
    }
    /* Somebody may have seen the request before the signal came. */
    if (hw_period_requested())
        hw_arch_call_on_stack(stack + sizeof stack, hw_period_serve);
    if (!requested || (int32_t)(hw_runtime.process->dump_answer - request) < 0)
        serve();
    hw_lock_drop(&dump.lock, old);
}

/* ---- the end by a signal ---- */

static int killer;
static const void *interrupted_at; /* its ucontext_t */

static void harvest_the_last(void)
{
    if (hw_fork_pending()) { /* only one thread is here */
        if (!hw_fork_settled() || hw_runtime.state != HW_STATE_ON)
            return;
        hw_lock_take(&dump.lock);
    }
    /* In the middle of an event of this thread memory of blocks may be about to vanish. */
    bool calm = hw_threads_stop() && !inside_runtime();
    uint64_t peak_rss = hw_memory_peak_rss_in(writing.buffer, sizeof writing.buffer);
    hw_leaks_find(interrupted_at, calm);
    hw_contents_examine(HW_MOMENT_END, calm);
    hw_process_write_end(true, calm, HW_EXIT_SIGNAL, killer, peak_rss);
    hw_file_set_exited(true);
}

void hw_dump_killed(int number, const void *context)
{
    const bool pending = hw_fork_pending();
    if (hw_runtime.state != HW_STATE_ON || hw_quiet || (!pending && hw_getpid() != hw_runtime.pid))
        return;
    if (!pending)
        hw_lock_take(&dump.lock); /* for good, like the threads that wait: what is freed later would be counted twice */
    killer = number;
    interrupted_at = context;
    hw_arch_call_on_stack(stack + sizeof stack, harvest_the_last);
}

/* ---- periodic dumps ---- */

void hw_dump_start(void)
{
    dump.next_ns = hw_clock_monotonic_ns() + hw_options.dump_interval_ns;
    hw_dump_at_start();
    hw_signals_start();
}

void hw_dump_fork(void)
{
    dump.lock = (struct hw_lock){0};
    dump.pending = 0;
    dump.number = 0;
    hw_runtime.stopped &= HW_STOPPED_PASS;
}

uint64_t hw_dump_due_tick(uint64_t tick, int64_t live_bytes)
{
    if (hw_dump_at_due(tick, live_bytes))
        __atomic_store_n(&dump.pending, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&dump.pending, __ATOMIC_SEQ_CST))
        return tick + RETRY_TICKS;
    const uint64_t soon =
        hw_options.contents && hw_options.contents_peak ? tick + RETRY_TICKS : hw_dump_at_next(tick);
    if (!hw_options.dump_interval_ns)
        return soon;
    uint64_t now = hw_clock_monotonic_ns();
    if (now >= dump.next_ns)
        return tick + RETRY_TICKS; /* it is written right after this; if it cannot be now, soon */
    const struct hw_process_info *process = hw_runtime.process;
    double ticks = (double)(dump.next_ns - now) * (double)process->clock_ticks / (double)process->clock_ns;
    const uint64_t due = ticks > 1e18 ? UINT64_MAX : tick + (uint64_t)ticks;
    return due < soon ? due : soon;
}

/* A dump took from BEGIN to END: the program gets REST times as long before the next periodic one, else a short
 * interval leaves nothing for it. Lock held. */
static void rest_after(uint64_t end, uint64_t begin)
{
    const uint64_t interval = hw_options.dump_interval_ns, due = end + REST * (end - begin);
    if (due <= dump.next_ns)
        return;
    dump.next_ns += (due - dump.next_ns + interval - 1) / interval * interval;
    hw_note(HW_NOTE_OTHER, "a periodic dump was put off: dumps take too long for this dump-interval");
}

static void examine_peak(void)
{
    hw_contents_examine(HW_MOMENT_PEAK, hw_threads_stop());
    hw_threads_go();
}

void hw_dump_tick(struct hw_thread *thread)
{
    const struct hw_process_info *process = hw_runtime.process;
    uint64_t interval = hw_options.dump_interval_ns;
    uint64_t now = hw_unlikely(interval != 0) ? hw_clock_monotonic_ns() : 0;
    bool due = interval && now >= dump.next_ns;
    const bool peak = hw_contents_due();
    if (hw_likely(!due && !peak && !__atomic_load_n(&dump.pending, __ATOMIC_SEQ_CST) &&
                  process->dump_request == process->dump_answer && !hw_period_requested()))
        return;
    /* In a handler that has interrupted another event: that one is half counted. */
    hw_sigset old;
    if (thread->interrupted || hw_quiet || hw_getpid() != hw_runtime.pid || !hw_dump_try_lock(&old))
        return;
    due = due && now >= dump.next_ns; /* another thread may have written it meanwhile */
    if (due)
        dump.next_ns += interval * ((now - dump.next_ns) / interval + 1);
    if (due || __atomic_load_n(&dump.pending, __ATOMIC_SEQ_CST) || process->dump_request != process->dump_answer)
        serve();
    if (due)
        rest_after(hw_clock_monotonic_ns(), now);
    if (hw_period_requested())
        hw_arch_call_on_stack(stack + sizeof stack, hw_period_serve);
    if (peak && hw_contents_due()) /* likewise */
        hw_arch_call_on_stack(stack + sizeof stack, examine_peak);
    hw_lock_drop(&dump.lock, old);
}
