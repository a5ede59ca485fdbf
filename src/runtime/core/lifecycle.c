/* lifecycle.c - start, end and fork of the runtime.
 *
 * It starts with the first call into a hook, which comes before any constructor, so that nothing is missed. It ends
 * with the process: the file is valid without its end record, but gets one when the process leaves through exit or
 * _exit. A forked child sets itself up at its first event, so that children which only exec leave nothing behind. */
#include "base/arch/x86_64/signal.h"
#include "profile/static_program.h"
#include "runtime/access/access.h"
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"
#include "runtime/graph/graph.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/samples.h"

#include <linux/auxvec.h>
#include <time.h>

struct hw_runtime hw_runtime;

/* Reads as zero in a forked child. */
static volatile uint32_t *alive;

/* What was live in the parent, by context, at the moment of fork. */
static struct {
    struct hw_inherited *entry;
    uint32_t capacity, count;
    int64_t blocks, bytes;
    bool fresh; /* taken for the fork that is under way */
} at_fork;

extern unsigned long getauxval(unsigned long) __attribute__((weak));
extern int on_exit(void (*)(int, void *), void *) __attribute__((weak));
extern int __cxa_at_quick_exit(void (*)(void *), void *) __attribute__((weak));

/* Bounds of the runtime's own image: the linker's. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

bool hw_fork_pending(void)
{
    return alive && !*alive;
}

void hw_note_locked(enum hw_note_code code, const char *text)
{
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_NOTES);
    const char *strings = hw_pools[HW_POOL_STRINGS].base;
    struct hw_note *note = NULL;
    for (uint32_t i = 0; i < count && !note; i++) {
        struct hw_note *old_note = HW_ENTRY(HW_POOL_NOTES, struct hw_note, i);
        if (old_note->code == (uint32_t)code && (!text || hw_streq(strings + old_note->text, text)))
            note = old_note;
    }
    if (!note) {
        uint32_t index = hw_pool_take(HW_POOL_NOTES, 1);
        if (index != HW_NONE) {
            note = HW_ENTRY(HW_POOL_NOTES, struct hw_note, index);
            note->code = code;
            note->text = text ? hw_file_string(text) : 0;
            note->tick = hw_ticks_raw() - hw_runtime.tick_base;
            hw_pool_publish(HW_POOL_NOTES);
        }
    }
    if (note)
        note->count++;
}

void hw_note(enum hw_note_code code, const char *text)
{
    if (hw_runtime.state == HW_STATE_OFF) /* the file may be a parent's */
        return;
    const hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_note_locked(code, text);
    hw_lock_drop(&hw_runtime.lock, old);
}

/* ---- the process section ---- */

static uint64_t start_time_jiffies(void)
{
    char buffer[1024];
    if (hw_read_file("/proc/self/stat", buffer, sizeof buffer) <= 0)
        return 0;
    const char *cursor = hw_stat_field(buffer, 22);
    return hw_parse_u64(&cursor, 10);
}

static void store_command(struct hw_process_info *process)
{
    static char buffer[4096];
    long n = hw_read_file("/proc/self/cmdline", buffer, sizeof buffer);
    /* Servers write their state over their arguments, and zeros behind it. */
    for (; hw_attached && n > 1 && !buffer[n - 1] && !buffer[n - 2]; n--)
        ;
    for (long i = 0; i < n; process->command_count++) {
        /* One after the other: the strings section only grows at its end. An empty argument needs its NUL too. */
        uint32_t length = (uint32_t)hw_strlen(buffer + i) + 1;
        uint32_t offset = hw_pool_take(HW_POOL_STRINGS, length);
        if (offset == HW_NONE)
            break;
        for (uint32_t k = 0; k < length; k++)
            hw_pools[HW_POOL_STRINGS].base[offset + k] = buffer[i + k];
        hw_pool_publish(HW_POOL_STRINGS);
        if (i == 0)
            process->command = offset;
        i += length;
    }
}

static const struct {
    const char *part, *name;
} allocator_names[] = {
    {"/libc.so", "glibc"},       {"/libc-2.", "glibc"}, {"libjemalloc", "jemalloc"},     {"libtcmalloc", "tcmalloc"},
    {"libmimalloc", "mimalloc"}, {"ld-musl", "musl"},   {"libasan", "AddressSanitizer"}, {"libsnmalloc", "snmalloc"},
    {"librpmalloc", "rpmalloc"}, {"libhoard", "Hoard"}, {"libc.musl", "musl"},
};

extern const char *gnu_get_libc_version(void) __attribute__((weak));

extern void *dlsym(void *, const char *) __attribute__((weak));

static const char *static_allocator_name(void)
{
    static const struct {
        const char *symbol, *name;
    } signs[] = {{"mallctl", "jemalloc, linked into the program"},
                 {"je_mallctl", "jemalloc, linked into the program"},
                 {"MallocExtension_ReleaseFreeMemory", "tcmalloc, linked into the program"},
                 {"tc_malloc", "tcmalloc, linked into the program"},
                 {"mi_malloc", "mimalloc, linked into the program"}};
    size_t size;
    const struct hw_static_program *program = hw_static_program();
    if (program && program->allocator != HW_STATIC_OTHER)
        return program->allocator == HW_STATIC_GLIBC ? "glibc" : "musl";
    for (size_t i = 0; (program || dlsym) && i < sizeof signs / sizeof *signs; i++)
        if (program ? hw_static_program_find(signs[i].symbol, &size) : dlsym(NULL, signs[i].symbol))
            return signs[i].name;
    return "linked into the program";
}

void hw_describe_allocator(void)
{
    struct hw_process_info *process = hw_runtime.process;
    const struct hw_module *module = hw_module_find((uintptr_t)hw_real_malloc_address());
    if (!module || module->map == HW_NONE)
        return;
    struct hw_map_entry *map = HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, module->map);
    map->flags |= HW_MAP_ALLOCATOR;
    const char *path = hw_pools[HW_POOL_STRINGS].base + map->path;
    process->allocator_path = map->path;
    const char *name = "unknown";
    for (size_t i = 0; i < sizeof allocator_names / sizeof *allocator_names; i++)
        if (hw_contains(path, allocator_names[i].part)) {
            name = allocator_names[i].name;
            break;
        }
    if (map->flags & HW_MAP_MAIN)
        name = static_allocator_name();
    hw_real.is_glibc = hw_streq(name, "glibc");
    char text[64];
    const bool has_version = hw_real.is_glibc && gnu_get_libc_version;
    const bool is_libc = hw_static_program() && hw_static_program()->allocator != HW_STATIC_OTHER;
    hw_text_join(text, sizeof text, name, has_version ? " " : "", has_version ? gnu_get_libc_version() : "",
                 is_libc ? ", linked into the program" : NULL);
    process->allocator = hw_file_string(text);
    const uintptr_t usable = (uintptr_t)hw_real.malloc_usable_size;
    if (usable - hw_runtime.text_start >= hw_runtime.text_end - hw_runtime.text_start) /* else it was told before */
        hw_real.tells_usable = hw_module_find(usable) == module;
    /* Is operator new the C++ library's own? */
    const struct hw_module *library = hw_real.op_new[0] ? hw_module_find((uintptr_t)hw_real.op_new[0]) : NULL;
    const char *cxx =
        library && library->map != HW_NONE
            ? hw_pools[HW_POOL_STRINGS].base + HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, library->map)->path
            : "";
    hw_real.new_is_malloc = !hw_real.op_new[0] || hw_contains(cxx, "libstdc++") || hw_contains(cxx, "libc++");
    const struct hw_module *home = hw_module_find((uintptr_t)hw_real_malloc_address());
    for (int form = 0; form < 8; form++)
        if (home && hw_real.op_new[form] && hw_module_find((uintptr_t)hw_real.op_new[form]) == home)
            hw_real.own_new |= (uint8_t)(1u << form);
    if (!hw_real.new_is_malloc)
        hw_real.is_glibc = false; /* blocks of an operator new of its own may lie at any distance */
    hw_places.glibc = hw_real.is_glibc;
}

static void describe_process(void)
{
    struct hw_process_info *process = hw_runtime.process;
    char path[4096];
    /* First, so that readers know that the file is being written. */
    process->start_time_jiffies = hw_file_start_time ? hw_file_start_time : start_time_jiffies();
    process->pid = hw_file_pid ? hw_file_pid : hw_getpid();
    hw_read_link("/proc/self/exe", path, sizeof path);
    process->parent_pid = (uint32_t)hw_sys(SYS_getppid);
    process->mode = hw_access_on() ? HW_MODE_ACCESS : hw_runtime.mode;
    process->executable = hw_file_string(path);
    process->options = hw_file_string(hw_options.text);
    process->start_realtime_ns = hw_clock_read(CLOCK_REALTIME);
    process->added = HW_ADDED_ALL;
    if (hw_options.table_entries || hw_address_space_limited()) /* see homes.c */
        process->added &= ~HW_ADDED_BIT(freed_by_others);
    process->sample_bytes = hw_options.sample_bytes;
    process->table_entries = hw_options.table_entries;
    process->clock_ticks = process->clock_ns = 1;
    if (hw_runtime.clock_is_tsc) { /* until the first refresh: a guess that is not far off */
        process->clock_ticks = 5;
        process->clock_ns = 2;
    }
    uint64_t cpus[16];
    long bytes = hw_sys(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
    for (long i = 0; i < bytes / 8; i++)
        for (uint64_t rest = cpus[i]; rest; rest &= rest - 1)
            process->cpus++;
    store_command(process);
}

/* ---- start ---- */

static bool start(void)
{
    hw_clock_start();
    hw_runtime.family_base = hw_runtime.tick_base;
    if (!hw_file_create())
        return false;
    describe_process();
    if (!hw_parts_start()) {
        hw_trouble("not enough memory to profile this program", NULL, 0);
        return false;
    }
    if (!hw_runtime.clock_is_tsc)
        hw_note(HW_NOTE_CLOCK, NULL);
    return true;
}

static void start_sampling(void)
{
    if (!hw_options.sample_bytes)
        return;
    hw_filter[0] = 0;
    hw_filter_mask = 65535;
    hw_real_mark_startup_blocks();
}

/* Sanitizers that want certain addresses for themselves, where ours would lie, and whose allocator must not be called
 * before they have started, not even by dlsym. Only real ones have these functions. */
extern void __tsan_mutex_create(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));

/* Some processes are better left alone: nothing is reserved, nothing looked up, every call passed through. */
static bool step_aside(void)
{
    const bool sanitized = __tsan_mutex_create || __msan_init || __hwasan_init;
    if (!sanitized && !hw_arch_on_valgrind()) /* whose tools keep books of each page that is reserved */
        return false;
    if (!sanitized)
        hw_shadow_granule_of_modules(); /* refuses code that counts */
    hw_options_read();
    if (hw_options.verbose)
        hw_message(sanitized ? "not profiled: a sanitizer is built into this program"
                             : "not profiled: this program runs under Valgrind",
                   NULL);
    if (!sanitized) {
        hw_real_resolve();
        hw_hooks_lead(false);
    }
    hw_runtime.state = HW_STATE_OFF;
    return true;
}

/* Why start=off is not possible: what needs all blocks, or goes on while nothing is counted. NULL: it is. */
static const char *why_not_wait(void)
{
    return hw_planes_on()                              ? "code that counts accesses"
           : hw_runtime.mode == HW_MODE_ALLOCATOR      ? "mode=allocator"
           : hw_options.sample_accesses                ? "sample-accesses"
           : hw_options.leaks || hw_options.keeps      ? "leaks"
           : hw_options.contents                       ? "contents"
           : hw_options.pinned                         ? "pinned"
           : hw_options.block_log                      ? "log-blocks"
           : hw_options.valgrind_requests              ? "valgrind-requests"
                                                       : NULL;
}

void hw_start(void)
{
    uint32_t expected = HW_STATE_NEW;
    if (!__atomic_compare_exchange_n(&hw_runtime.state, &expected, HW_STATE_STARTING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (step_aside())
        return;
    hw_runtime.text_start = (uintptr_t)__ehdr_start;
    hw_runtime.text_end = (uintptr_t)etext;
    hw_real_resolve();
    if (hw_attach_waits()) {
        hw_runtime.state = HW_STATE_OFF;
        return;
    }
    hw_string_start();
    hw_own_start();
    hw_shadow_start();
    if (hw_memprof_granule()) /* such code runs in any case */
        hw_memprof_start();
    if (getauxval && getauxval(AT_SECURE)) { /* other rights than its user's: it must not write files for him */
        hw_runtime.state = HW_STATE_OFF;
        return;
    }
    hw_options_read();
    hw_shadow_set_granule(hw_shadow_granule_of_modules());
    uint64_t sampling = hw_options.sample_bytes;
    bool allocator = hw_streq(hw_options.mode, "allocator");
    if (!allocator && !hw_streq(hw_options.mode, "heap"))
        hw_message("HEAPWISE_OPTIONS: mode is heap or allocator, not ", hw_options.mode);
    if (allocator && !hw_planes_on())
        hw_runtime.mode = HW_MODE_ALLOCATOR;
    if (hw_access_on() || hw_runtime.mode == HW_MODE_ALLOCATOR)
        hw_options.sample_bytes = 0;
    const bool wait = hw_streq(hw_options.start, "off");
    if (!wait && !hw_streq(hw_options.start, "on"))
        hw_message("HEAPWISE_OPTIONS: start is on or off, not ", hw_options.start);
    const char *const why = wait ? why_not_wait() : NULL;
    hw_options.waits = wait && !why;
    hw_runtime.weighted = hw_options.sample_bytes || hw_runtime.mode == HW_MODE_ALLOCATOR;
    hw_runtime.pid = hw_getpid();
    alive = hw_own_pages(HW_PAGE, true);
    if (!alive || !hw_real.malloc) {
        hw_trouble("not enough memory to profile this program", NULL, 0);
        hw_runtime.state = HW_STATE_OFF;
        return;
    }
    *alive = 1;
    uint64_t begin = hw_clock_monotonic_ns();
    bool started = start();
    if (started) {
        start_sampling();
        if (sampling && hw_access_on())
            hw_note(HW_NOTE_OTHER,
                    "sample-bytes has no effect in programs that count accesses: all blocks were counted");
        if (allocator && hw_planes_on())
            hw_note(HW_NOTE_OTHER,
                    "mode=allocator has no effect in programs that count accesses: their blocks are laid "
                    "out otherwise");
        if (why)
            hw_note_about(HW_NOTE_OTHER, "start=off has no effect with ", why,
                          ": counting began at the start of the program");
        if (sampling && hw_runtime.mode == HW_MODE_ALLOCATOR)
            hw_note(HW_NOTE_OTHER, "sample-bytes has no effect in allocator mode: every operation is counted");
        if (hw_static_program())
            hw_note(HW_NOTE_OTHER, "the program is statically linked: mappings that it makes, and allocations of "
                                   "libraries that it opens, are not recorded");
        hw_runtime.process->block_store = hw_blocks_store();
        hw_runtime.process->startup_ns = hw_clock_monotonic_ns() - begin;
        hw_clock_refresh(); /* lifetimes need the ratio of clocks from the first free on */
    }
    __atomic_store_n(&hw_runtime.state, started ? HW_STATE_ON : HW_STATE_OFF, __ATOMIC_RELEASE);
    if (started)
        hw_trap_start();
    if (hw_options.verbose && started)
        hw_message("profile: ", hw_file_path);
}

/* ---- end ---- */

/* A forked child that has not allocated has no profile yet. Where accesses are counted it gets one when it ends. */
bool hw_fork_settled(void)
{
    if (hw_fork_pending() && hw_planes_on() && !hw_quiet && hw_runtime.state == HW_STATE_ON)
        hw_fork_child();
    return !hw_fork_pending();
}

void hw_process_write_end(bool harvest, bool stopped, enum hw_exit_kind kind, int value, uint64_t peak_rss)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (harvest)
        hw_parts_harvest(stopped);
    hw_parts_end();
    hw_runtime.process->peak_rss_bytes = peak_rss;
    hw_runtime.process->exit_value = value;
    hw_runtime.process->exit_kind = kind;
    hw_lock_drop(&hw_runtime.lock, old);
}

/* The process is about to leave. The file stays as valid as it was; events of other threads still count. A child that
 * only becomes another program leaves nothing behind. */
void hw_process_end(enum hw_exit_kind kind, int value)
{
    if (kind == HW_EXIT_EXEC ? hw_fork_pending() : !hw_fork_settled())
        return;
    if (hw_runtime.state != HW_STATE_ON)
        return;
    if (hw_quiet) { /* sums that are only written at the end; again, if this was not the end */
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        hw_clock_refresh();
        hw_parts_dump();
        hw_lock_drop(&hw_runtime.lock, old);
        return;
    }
    if (hw_getpid() != hw_runtime.pid)
        return;
    hw_modules_rescan();
    hw_sigset outer = 0;
    const bool leaks = hw_options.leaks && kind == HW_EXIT_CODE;
    const bool contents = hw_options.contents && kind == HW_EXIT_CODE;
    const bool pages = hw_options.pinned && kind == HW_EXIT_CODE;
    bool harvest = (hw_planes_on() || leaks || contents || pages) && hw_dump_possible(), stopped = false;
    if (harvest) {
        if (hw_access_on()) {
            hw_shadow_look_for_folds();
            hw_shadow_check_sweeps();
        }
        outer = hw_dump_lock();
        stopped = hw_threads_stop();
        if (leaks)
            hw_leaks_find(NULL, stopped);
        if (contents)
            hw_contents_examine(HW_MOMENT_END, stopped);
    }
    hw_process_write_end(harvest, stopped, kind, value, hw_memory_peak_rss());
    if (harvest) {
        hw_threads_go();
        hw_dump_unlock(outer);
    }
    hw_file_set_exited(true);
}

void hw_process_goes_on(void)
{
    hw_runtime.process->exit_kind = HW_EXIT_UNKNOWN;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_parts_forget_harvest();
    hw_lock_drop(&hw_runtime.lock, old);
    hw_file_set_exited(false);
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    hw_process_end(HW_EXIT_CODE, status & 0xff);
}

static int quick_status; /* what quick_exit was called with: its handlers do not get it */

static void at_quick_exit_too(void *unused)
{
    (void)unused;
    hw_process_end(HW_EXIT_CODE, quick_status & 0xff);
}

/* An instrumented library that was opened by a program which is not drags the runtime in, too late: libc's malloc is
 * found before the hooks. */
static void note_late_load(void)
{
    void *found = dlsym && hw_access_on() ? dlsym(NULL, "malloc") : NULL;
    const struct hw_module *module = found ? hw_module_find((uintptr_t)found) : NULL;
    if (module && !(module->flags & (HW_MAP_MAIN | HW_MAP_RUNTIME)))
        hw_note(HW_NOTE_OTHER, "the runtime was loaded while the program ran: malloc and free did not reach it, so no "
                               "blocks are known (heapwise record loads it at the start)");
}

__attribute__((constructor)) static void constructor(void)
{
    hw_start();
    if (hw_runtime.state != HW_STATE_ON)
        return;
    if (on_exit)
        on_exit(at_exit, NULL);
    if (__cxa_at_quick_exit)
        __cxa_at_quick_exit(at_quick_exit_too, NULL);
    hw_static_hooks();
    if (hw_period_passing()) /* perhaps to another allocator now */
        hw_hooks_lead(false);
    hw_locks_start();
    note_late_load();
}

HW_EXPORT void _exit(int status) __attribute__((noreturn));
HW_EXPORT void _Exit(int status) __attribute__((noreturn));

static __attribute__((noreturn)) void leave(int status)
{
    hw_static_program_start();
    hw_process_end(HW_EXIT_CODE, status & 0xff);
    for (;;)
        hw_sys(SYS_exit_group, status);
}

void _exit(int status)
{
    leave(status);
}

void _Exit(int status)
{
    leave(status);
}

HW_EXPORT void quick_exit(int status) __attribute__((noreturn));
HW_EXPORT void quick_exit(int status)
{
    HW_REAL(void, quick_exit, (int));
    quick_status = status;
    if (real)
        real(status);
    leave(status);
}

/* ---- fork ---- */

/* Before fork, in the parent: what is live, for the child. */
static void prepare_fork(void)
{
    at_fork.count = 0;
    at_fork.blocks = at_fork.bytes = 0;
    if (hw_period_passing()) /* what is live is not known */
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS), mibs = (uint32_t)HW_ENTRIES(HW_POOL_MIBS);
    if (at_fork.capacity < contexts) {
        /* A child that another thread forks meanwhile may hold the old one: it is left alone. */
        at_fork.count = 0;
        struct hw_inherited *fresh = hw_pages(contexts * 2 * sizeof *fresh);
        at_fork.capacity = fresh ? contexts * 2 : 0;
        at_fork.entry = fresh;
    }
    at_fork.count = at_fork.capacity ? contexts : 0;
    for (uint32_t i = 0; i < at_fork.count; i++)
        at_fork.entry[i] = (struct hw_inherited){.context = i};
    at_fork.blocks = at_fork.bytes = 0;
    for (uint32_t i = 1; i < mibs; i++) {
        const struct hw_mib *mib = HW_ENTRY(HW_POOL_MIBS, struct hw_mib, i);
        if (mib->flags & HW_MIB_POOL)
            continue; /* their memory is inherited with what it is in */
        at_fork.blocks += mib->live_blocks;
        at_fork.bytes += mib->live_bytes;
        if (mib->context < at_fork.count) {
            at_fork.entry[mib->context].blocks += mib->live_blocks;
            at_fork.entry[mib->context].bytes += mib->live_bytes;
            if (hw_options.sample_bytes) {
                at_fork.entry[mib->context].count_variance += mib->count_variance - mib->freed_count_variance;
                at_fork.entry[mib->context].bytes_variance += mib->bytes_variance - mib->freed_bytes_variance;
            }
        }
    }
    for (uint32_t i = 0; hw_runtime.process->flags & HW_PROCESS_RESET && i < HW_ENTRIES(HW_POOL_INHERITED); i++) {
        const struct hw_inherited *older = HW_ENTRY(HW_POOL_INHERITED, struct hw_inherited, i);
        if (older->context < at_fork.count) {
            at_fork.entry[older->context].count_variance += older->count_variance;
            at_fork.entry[older->context].bytes_variance += older->bytes_variance;
        }
    }
    hw_lock_drop(&hw_runtime.lock, old);
}

/* What the parent itself had inherited and not freed is not in its MIBs' live counts: it is not passed on. */
void hw_fork_inherit(void)
{
    struct hw_process_info *process = hw_runtime.process;
    process->block_store = hw_blocks_store();
    process->inherited_blocks = at_fork.blocks;
    process->inherited_bytes = at_fork.bytes;
    if (hw_places.even) { /* exactly; what contexts say of it are estimates */
        process->inherited_blocks = hw_places_live_blocks();
        process->inherited_bytes = hw_places_live();
    }
    for (uint32_t i = 0; i < at_fork.count; i++) {
        if (!at_fork.entry[i].blocks && !at_fork.entry[i].bytes)
            continue;
        uint32_t index = hw_pool_take(HW_POOL_INHERITED, 1);
        if (index == HW_NONE)
            return;
        *HW_ENTRY(HW_POOL_INHERITED, struct hw_inherited, index) = at_fork.entry[i];
    }
    hw_pool_publish(HW_POOL_INHERITED);
}

void hw_fork_child(void)
{
    /* Only one thread is here; no lock is held by anybody who still exists. */
    hw_runtime.lock = (struct hw_lock){0};
    if (hw_quiet) { /* no file can be made */
        if (hw_runtime.state == HW_STATE_ON)
            hw_file_fork_quiet();
        hw_thread_create_fork();
        hw_runtime.state = HW_STATE_OFF;
        *alive = 1;
        return;
    }
    hw_runtime.state = HW_STATE_STARTING;
    *alive = 1;
    hw_runtime.pid = hw_getpid();
    hw_parts_forget();
    hw_runtime.tick_base = hw_ticks_raw();
    hw_runtime.old_below = hw_runtime.tick_base - hw_runtime.family_base;
    hw_runtime.clock_start_ns = hw_clock_monotonic_ns();
    hw_runtime.threads_settled = 0;
    if (!at_fork.fresh) /* a bare clone: the parent goes on meanwhile, its file is still mapped here */
        prepare_fork();
    at_fork.fresh = false;
    bool started = hw_file_fork();
    if (started) {
        describe_process();
        hw_runtime.process->flags |= HW_PROCESS_FORKED | (hw_attached ? HW_PROCESS_ATTACHED : 0);
        started = hw_parts_fork();
    }
    hw_runtime.state = started ? HW_STATE_ON : HW_STATE_OFF;
    if (started)
        hw_trap_fork();
}

HW_EXPORTED(int, fork, (void))
{
    HW_REAL(int, fork, (void));
    if (hw_runtime.state != HW_STATE_ON || hw_fork_pending() || hw_quiet)
        return real();
    prepare_fork();
    at_fork.fresh = true;
    int pid = real();
    if (pid != 0)
        at_fork.fresh = false;
    else
        hw_period_forked();
    return pid;
}

/* The parent leaves by libc's own _exit, which nothing can see. */
HW_EXPORTED(int, daemon, (int no_chdir, int no_close))
{
    HW_REAL(int, daemon, (int, int));
    if (hw_runtime.state != HW_STATE_ON || !hw_fork_settled())
        return real(no_chdir, no_close);
    hw_process_end(HW_EXIT_CODE, 0);
    prepare_fork();
    at_fork.fresh = true;
    int result = real(no_chdir, no_close);
    if (!hw_fork_pending()) { /* there was no child */
        at_fork.fresh = false;
        hw_process_goes_on();
    } else
        hw_period_forked();
    return result;
}

/* ---- code that goes away ---- */

HW_EXPORTED(int, dlclose, (void *handle))
{
    HW_REAL(int, dlclose, (void *));
    bool on = hw_runtime.state == HW_STATE_ON && !hw_fork_pending();
    if (on)
        hw_modules_rescan(); /* what is about to go is known by then */
    int result = real(handle);
    if (on) {
        hw_modules_rescan();
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        hw_globals_gone();
        hw_lock_drop(&hw_runtime.lock, old);
    }
    return result;
}
