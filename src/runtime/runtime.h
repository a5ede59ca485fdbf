/* runtime.h - the map of the runtime: what crosses its files, grouped under the file that defines it.
 *
 * The runtime is loaded into the program that is profiled. It wraps the program's own allocator, counts by call stack
 * and keeps the counts in a profile file that is mapped and valid at every moment. Rules for everything here:
 *
 *  - no libc allocation, no stdio, no errno, no lock that the program can hold;
 *  - the fast paths take no lock; slow paths take hw_runtime.lock with all signals blocked (base/sys.h);
 *  - trouble never reaches the program: the runtime steps aside, notes what was lost and passes calls through.
 */
#ifndef HW_RUNTIME_RUNTIME_H
#define HW_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "profile/format.h"

#define HW_EXPORT       __attribute__((visibility("default"), noinline))
#define HW_HIDDEN       __attribute__((visibility("hidden")))
#define HW_VARIABLE     __attribute__((visibility("default")))
#define HW_DEPTH_MAX    256
#define HW_CONTEXT_BITS 24
#define HW_CONTEXT_MAX  (1u << HW_CONTEXT_BITS)

struct hw_thread;
struct hw_operator; /* operations.h */

/* ---- real.c: the allocator that is wrapped ---- */

/* The functions behind the hooks. Before hw_real_resolve they point at the start-up allocator. Any of the optional ones
 * (marked) may be NULL afterwards. Set once, before there are threads. */
struct hw_real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    void (*free_sized)(void *, size_t);                 /* optional */
    void (*free_aligned_sized)(void *, size_t, size_t); /* optional */
    void *(*op_new[8])(size_t, size_t, const void *);   /* by enum hw_new; optional */
    void (*op_delete[12])(void *, size_t, size_t);      /* by enum hw_delete; optional */
    bool new_is_malloc; /* operator new is the C++ library's: malloc and a loop over the new-handler */
    uint8_t own_new;    /* by enum hw_new, a bit each: it is in one library with malloc, which it does not call */
    bool is_glibc;      /* malloc is glibc's: the distance of blocks is known from their size */
};
extern HW_HIDDEN struct hw_real hw_real;
void hw_real_resolve(void);
/* Whether POINTER comes from the start-up allocator, which frees nothing. */
bool hw_real_is_startup_block(const void *pointer);
/* Sampled runs: no filter may hide blocks of the start-up allocator. */
void hw_real_mark_startup_blocks(void);
/* Module that holds hw_real.malloc: address inside it. */
const void *hw_real_malloc_address(void);
/* Was the hook whose frame is FRAME called by the library that has the allocator? */
bool hw_called_by_allocator(uintptr_t frame);
extern HW_HIDDEN const void *hw_real_home; /* where malloc stands, when hw_real.malloc is only a way to it */
void *hw_real_next(const char *name);

/* Other functions of libc that have hooks. They are looked up at the start, all at once: dlsym takes the dynamic
 * linker's lock, which a caller of close or fork may not be able to wait for. */
// clang-format off
#define HW_LIBC_FUNCTIONS(X) \
    X(close) X(dup2) X(dup3) X(close_range) X(closefrom) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) \
    X(posix_spawn) X(posix_spawnp) X(fork) X(unshare) X(daemon) X(dlclose) X(mlockall) X(mmap) X(mremap) X(sbrk) X(setrlimit) X(getrlimit) X(prlimit) \
    X(prctl) X(syscall) X(pthread_create) X(thrd_create) X(sigaction) X(signal) X(quick_exit) \
    X(sigaltstack) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(signalfd) X(pthread_sigmask) X(sigprocmask) \
    X(sigsuspend) X(ppoll) X(__ppoll_chk) X(pselect) X(epoll_pwait) X(epoll_pwait2) X(mallinfo2)
// clang-format on
#define HW_LIBC_INDEX(name) HW_LIBC_##name,
enum hw_libc_function { HW_LIBC_FUNCTIONS(HW_LIBC_INDEX) HW_LIBC_COUNT };
#undef HW_LIBC_INDEX
void *hw_libc(enum hw_libc_function function);
/* Declares REAL, the function behind the hook NAME. */
#define HW_REAL(type, name, arguments) type(*real) arguments = (type(*) arguments)hw_libc(HW_LIBC_##name)

/* ---- string.c ---- */

void hw_string_start(void);

/* ---- options.c ---- */

struct hw_options {
    char output[1024]; /* pattern, see hw_output_name */
    uint64_t session;
    uint64_t launcher;      /* see base/launcher.h; 0: there is none */
    uint64_t pid_namespace; /* its inode */
    uint64_t sample_bytes;  /* 0: every allocation */
    uint64_t table_entries;
    uint32_t depth;
    uint32_t free_stacks;
    uint32_t block_table; /* 1: use the table store even where the map is possible */
    uint32_t verbose;
    char mode[16];             /* "allocator"; else heap */
    char operation_events[16]; /* "auto", "software" or "none": see operation_events.c */
    uint32_t dispatch;         /* 0: system calls inside the allocator are not looked at */
    uint64_t sample_accesses;  /* bursts a second of a thread's CPU time; 0: none */
    uint64_t sample_period;    /* accesses from one sample of the processor's to the next; 0: by sample_accesses */
    char event_sources[1024];  /* where the kernel describes what events there are; empty: the usual directory */
    uint64_t dump_interval_ns; /* 0: no periodic dumps */
    uint32_t windows;          /* 1: fields that are used together are sampled (field_windows.c) */
    uint32_t dump_signal;      /* HW_NONE: not given; 0: none */
    uint32_t words_period_ms;  /* 4-byte granules: from one look at the shadow to the next */
    uint32_t words_thread;     /* 0: no thread for that, allocations do it */
    char text[512];            /* the options as given, for the profile */
};
extern HW_HIDDEN struct hw_options hw_options;
void hw_options_read(void);
/* What %e stands for. */
void hw_output_executable(char *name, size_t size);
/* The profile's name for this process, see hw_expand_name. */
void hw_output_name(char *name, size_t size, const char *executable, unsigned attempt);

/* ---- file_request.c: help of heapwise record ---- */

struct hw_launcher_reply; /* base/launcher.h */
/* A new profile made by record: its descriptor, or -errno. */
int hw_launcher_file(const char *executable, struct hw_launcher_reply *reply);
/* Tells record why there is no profile of this process. ERROR: errno, or 0. */
void hw_launcher_tell(const char *problem, int error);
bool hw_launcher_other_ids(void);
/* Why there is no profile, or what it lacks: told record if there is one, else on standard error. */
void hw_trouble(const char *what, const char *detail, int error);
/* A system call by syscall(). */
void hw_launcher_see_call(long number, long first);
/* The process is about to leave the network namespace in which record can be found, or has children that will. */
void hw_launcher_keep(uint64_t clone_flags);
/* A socket that programs which close everything must not close: see descriptors.c; -1: none, or it is not there any
 * more. */
int hw_launcher_descriptor(void);
/* Its number, without looking whether it is still that. */
int hw_launcher_descriptor_number(void);
void hw_launcher_move_descriptor(int away_from);
/* It is closed for good. */
void hw_launcher_let_go(void);

/* ---- lifecycle.c: state, start, end, fork ---- */

enum hw_state {
    HW_STATE_NEW = 0,      /* nothing has happened yet */
    HW_STATE_STARTING = 1, /* in hw_start */
    HW_STATE_ON = 2,
    HW_STATE_OFF = 3, /* could not start, or gave up: everything is passed through */
};

struct hw_runtime {
    uint32_t state;                  /* enum hw_state */
    uint32_t threads_many;           /* more than one thread has been seen: deltas are flushed, see heap.c */
    uint32_t threads_settled;        /* nobody adds without atomic instructions any more */
    uint64_t timeline_next;          /* ticks: when the next point is due */
    uint64_t code_generation;        /* raised when code was unmapped: cached walks and rules are void */
    uint64_t peak_limit;             /* a new peak is noted above this total */
    int64_t flush_limit;             /* a thread adds its delta to the totals when it is greater than this */
    struct hw_process_info *process; /* in the file */
    uint64_t tick_base;              /* tick 0 of the file */
    uint64_t family_base; /* tick 0 of the first process of a family of forks: what blocks are stamped with */
    uint32_t pid;
    uint32_t clock_is_tsc;
    uintptr_t text_start, text_end; /* the runtime's own code */
    struct hw_lock lock;            /* all slow paths */
    uint64_t clock_start_ns;        /* CLOCK_MONOTONIC at tick 0 */
    uint64_t old_below;             /* blocks with a smaller stamp: inherited, or older than the latest reset */
    uint32_t stopped;               /* events wait at their begin: hw_threads_stop */
    uint32_t mode;                  /* enum hw_mode, as of the start */
    uint32_t weighted;              /* blocks stand for others like them: sampled runs, allocator mode */
};
extern HW_HIDDEN struct hw_runtime hw_runtime;

/* Starts when that has not happened yet. Called by the first hook or the constructor. */
void hw_start(void);
/* True in a forked child that has not set itself up yet. */
bool hw_fork_pending(void);
/* Where accesses are counted, sets up a forked child that has not done so. False: it still has not. */
bool hw_fork_settled(void);
/* Sets up a forked child: own file, counts from zero. */
void hw_fork_child(void);
/* Before fork, in the parent: what is live, for the child. */
void hw_fork_prepare(void);
/* Which allocator hw_real is: for the profile, and for what the runtime may assume of it. */
void hw_describe_allocator(void);
void hw_process_end(enum hw_exit_kind kind, int value);
/* It did not end after all: exec failed. */
void hw_process_goes_on(void);
/* Adds to a note of this code and text, or makes it. Takes the lock. TEXT may be NULL. */
void hw_note(enum hw_note_code code, const char *text);

/* ---- clock.c ---- */

void hw_clock_start(void);
uint64_t hw_clock_slow(void);
/* From now on the time stands still: the program has given up the time stamp counter. */
void hw_clock_freeze(void);
/* It does so, too, where reading the clock takes a system call, and the program gives those up. */
void hw_clock_quiet(void);
uint64_t hw_clock_monotonic_ns(void);
/* Writes the pair (ticks, ns) that readers convert with. */
void hw_clock_refresh(void);
extern HW_HIDDEN intptr_t hw_rseq_cpu_offset;   /* from the thread pointer; 0: not available */
extern HW_HIDDEN intptr_t hw_rseq_watch_offset; /* likewise of what hw_arch_watch needs */

static inline uint64_t hw_ticks_raw(void)
{
    return hw_likely(hw_runtime.clock_is_tsc) ? hw_arch_ticks() : hw_clock_slow();
}
/* Around something that is timed. */
static inline uint64_t hw_ticks_fenced(void)
{
    return hw_likely(hw_runtime.clock_is_tsc) ? hw_arch_ticks_fenced() : hw_clock_slow();
}
static inline uint32_t hw_cpu(void)
{
    if (hw_likely(hw_rseq_cpu_offset)) {
        uint32_t cpu = hw_arch_thread_u32(hw_rseq_cpu_offset);
        if (hw_likely((int32_t)cpu >= 0))
            return cpu;
    }
    return hw_arch_cpu();
}

/* ---- file.c: the profile file ---- */

/* A section as the runtime sees it: entries at fixed addresses, in extents of the file that are appended as it grows.
 * `used` is written under the lock, read by anybody. */
struct hw_pool {
    uint32_t type, entry_size;
    char *base;        /* reserved address range */
    uint64_t reserved; /* its size */
    uint64_t mapped, used;
    uint64_t first_extent; /* bytes of the first extent */
    uint32_t extents;      /* the last one, see file.c; 0: none yet */
};
enum hw_pool_id {
    HW_POOL_PROCESS,
    HW_POOL_STRINGS,
    HW_POOL_MAPS,
    HW_POOL_STACKS,
    HW_POOL_CONTEXTS,
    HW_POOL_MIBS,
    HW_POOL_THREADS,
    HW_POOL_TIMELINE,
    HW_POOL_FREE_STACKS,
    HW_POOL_MEMORY,
    HW_POOL_NOTES,
    HW_POOL_INHERITED,
    HW_POOL_ROLES, /* the next two when accesses are counted or sampled */
    HW_POOL_SIDES,
    HW_POOL_SAMPLE_INFO, /* the next three only when accesses are sampled */
    HW_POOL_SAMPLE_CONTEXTS,
    HW_POOL_SAMPLE_COUNTS,
    HW_POOL_ACCESS_INFO, /* from here on only in access mode */
    HW_POOL_ACCESS,      /* grows with MIBS */
    HW_POOL_ACCESS_LIVE,
    HW_POOL_SIDES_LIVE,
    HW_POOL_GLOBALS,
    HW_POOL_HISTOGRAM,
    HW_POOL_HISTOGRAM_LIVE,
    HW_POOL_WORDS,
    HW_POOL_WORDS_LIVE,
    HW_POOL_STRUCTS, /* from here on only where fields are counted */
    HW_POOL_FIELDS,
    HW_POOL_FIELD_GROUPS,
    HW_POOL_GROUP_MEMBERS,
    HW_POOL_FIELD_WINDOWS,
    HW_POOL_FIELDS_INFO,
    HW_POOL_CONTEXT_TYPES,
    HW_POOL_ALLOCATOR_INFO, /* from here on only in allocator mode */
    HW_POOL_OPERATION_COUNTS,
    HW_POOL_OPERATION_CALLS,
    HW_POOL_OPERATION_LOCKS,
    HW_POOL_OPERATION_EVENTS,
    HW_POOL_OPERATION_TIMES,
    HW_POOL_OPERATION_SITES,
    HW_POOL_OPERATION_LIVES,
    HW_POOL_SLOWEST,
    HW_POOL_STAGES,
    HW_POOL_PLACES,
    HW_POOL_PLACE_CLASSES,
    HW_POOL_PLACES_TIME,
    HW_POOL_PLACES_MOMENTS,
    HW_POOL_PINNED,
    HW_POOL_LINE_PAIRS,
    HW_POOL_COUNT,
};
extern HW_HIDDEN struct hw_pool hw_pools[HW_POOL_COUNT];

#define HW_ENTRY(pool, type, index) ((type *)hw_pools[pool].base + (index))
#define HW_ENTRIES(pool)            (hw_pools[pool].used / hw_pools[pool].entry_size)

/* Creates the file and its first extents; false when that is impossible (a message has been printed). */
bool hw_file_create(void);
/* Makes room for the sections of counted accesses in a file that has none yet. Lock held. */
bool hw_file_add_access(void);
/* Likewise those of counted fields. */
bool hw_file_add_fields(void);
/* Room for COUNT more entries: their first index, HW_NONE when the file cannot grow. Lock held. The entries are zero
 * and not yet visible to readers: hw_pool_publish. */
uint32_t hw_pool_take(enum hw_pool_id pool, uint32_t count);
void hw_pool_publish(enum hw_pool_id pool);
/* For lists that are rewritten in place (timeline): lowers or raises what is visible. Lock held. */
void hw_pool_set_count(enum hw_pool_id pool, uint32_t count);
/* Nothing is in the pool any more, and what was there is zero. Likewise. */
void hw_pool_forget(enum hw_pool_id pool);
/* Stores a string; its offset, 0 when there is no room. Lock held. */
uint32_t hw_file_string(const char *string);
/* In a forked child: a new file with the parent's strings, maps, stacks and contexts (as many as COUNTS says). */
bool hw_file_fork(void);
/* Instead, in one that was forked after system calls were given up: it has no profile, and its parent's says so. */
void hw_file_fork_quiet(void);
/* In a forked child that has no profile: counts it in its parent's. ERROR: errno; 0: system calls were given up. */
void hw_file_tell_parent(int error);
/* Room for a good number of entries more, while the file can still grow. LAST: for all that is to come. */
void hw_file_make_room(bool last);
/* The descriptor is closed: the file does not grow any more. */
void hw_file_let_go(void);
/* The exit status in the process section is final. */
void hw_file_set_exited(bool exited);
extern HW_HIDDEN char hw_file_path[1024];
/* Of this process, as heapwise record sees it; 0: as the process sees it itself. */
extern HW_HIDDEN uint32_t hw_file_pid;
extern HW_HIDDEN uint64_t hw_file_start_time;
const char *hw_file_problem(void);
/* Protects the descriptor from programs that close everything: see descriptors.c. */
int hw_file_descriptor(void);
/* Its number as it was, without a look whether it is still that; -1 when it is not kept open. */
int hw_file_descriptor_number(void);
void hw_file_move_descriptor(int away_from);

/* ---- memory.c: private memory of the runtime, and what RSS is made of ---- */

void hw_own_start(void);
/* Private pages that are remembered as the runtime's own. NULL when there are none. WIPE: a forked child sees zeros. */
void *hw_own_pages(size_t bytes, bool wipe_on_fork);
/* They are not needed any more. */
void hw_own_give_back(void *pages, size_t bytes);
/* Address space, writable and zero, that counts against no limit but RLIMIT_AS; at HINT if that is free. NULL: none. */
void *hw_own_reserve(uintptr_t hint, uint64_t bytes);
/* Where the next BYTES of the runtime should lie: away from what the program maps. */
uintptr_t hw_own_hint(size_t bytes);
void hw_own_range(const void *start, size_t bytes);
/* All that has been reserved. */
uint64_t hw_own_bytes(void);
/* RLIMIT_AS, ~0 when there is none. */
uint64_t hw_address_space_limit(void);
/* At the start there was one, or the kernel counts every reservation (overcommit 2): large ones are out of the
 * question. */
bool hw_address_space_limited(void);
/* The program locks what is mapped later: memory of the runtime is unlocked at once. */
extern HW_HIDDEN bool hw_own_unlocked;
/* A mapping of /proc/self/maps. */
struct hw_area {
    uintptr_t start, end;
    bool writable, own, shared, file;
};
/* Lock held; not again from inside EACH. */
void hw_areas_each(void (*each)(const struct hw_area *area));
/* Calls EACH for the parts of [start, end) whose pages are there. */
void hw_resident_each(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end));
/* Takes RSS apart, all but the tick and live bytes; rss is 0 when that is not possible. Lock held. */
void hw_memory_measure(struct hw_memory_breakdown *result, enum hw_memory_moment moment);
/* The same, and calls EACH for every mapping that is counted as heap. */
typedef void hw_heap_mapping_visitor(uintptr_t start, uintptr_t end, uint64_t resident);
void hw_memory_measure_heap(struct hw_memory_breakdown *result, enum hw_memory_moment moment,
                            hw_heap_mapping_visitor *each);
/* Appends a breakdown of RSS. Lock held. */
void hw_memory_take(enum hw_memory_moment moment, uint64_t tick, int64_t live_bytes);
/* What was measured is that of MOMENT from now on. Lock held. */
void hw_memory_keep(const struct hw_memory_breakdown *result, enum hw_memory_moment moment, uint64_t tick,
                    int64_t live_bytes);
uint64_t hw_memory_rss(void);
uint64_t hw_memory_peak_rss(void);
uint64_t hw_memory_peak_rss_in(char *buffer, size_t size); /* for small stacks: with a buffer of the caller's */
/* Whether a debugger or tracer is attached to the calling thread. BUFFER: 2 KiB, likewise. */
bool hw_is_traced(char *buffer, size_t size);

/* ---- limits.c ---- */

/* Something that maps memory has failed, perhaps for a limit of address space that nobody was told of. True: it is to
 * be tried again. */
bool hw_limits_make_way(void);
/* STATEMENT, which gives RESULT or NULL, a second time where that may help. */
#define HW_TRY(result, statement)                                                                                      \
    do {                                                                                                               \
        statement;                                                                                                     \
        if (hw_unlikely(!(result)) && hw_limits_make_way())                                                            \
            statement;                                                                                                 \
    } while (0)
/* The result of CALL, an allocation of which nothing is counted. */
#define HW_PASS(call)                                                                                                  \
    ({                                                                                                                 \
        void *passed_;                                                                                                 \
        HW_TRY(passed_, passed_ = (call));                                                                             \
        passed_;                                                                                                       \
    })
/* After posix_spawn. */
void hw_limits_of_started(int pid);

/* Before exec, and after one that failed: the program's own limits instead of the widened ones, and back. */
void hw_limits_for_exec(bool begin);

/* ---- modules.c: executable mappings ---- */

/* One executable segment. Immutable once published, never freed. */
struct hw_module {
    uintptr_t start, end; /* of the code */
    uintptr_t bias;
    uintptr_t image_start, image_end; /* all loadable segments: bounds for reading tables */
    const uint8_t *eh_frame_hdr;      /* NULL: no unwind tables */
    size_t eh_frame_hdr_size;
    uint32_t map;       /* index into MAPS */
    uint32_t flags;     /* enum hw_map_flags */
    bool linked;        /* the dynamic linker knows it: it can tell when it is gone */
    uint64_t header[2]; /* first bytes of eh_frame_hdr (of code without a file: of the code), to tell whether it is
                           still this module that lies there */
};
struct hw_modules {
    uint32_t count;
    struct hw_module module[]; /* sorted by start */
};
void hw_modules_start(void);
/* The module that holds PC, or NULL. Looks for new mappings (without any lock of libc) when PC is unknown. */
const struct hw_module *hw_module_find(uintptr_t pc);
/* Whether MODULE is still what is mapped there: libc unloads libraries of its own without a word. When it is not, it is
 * forgotten. Asked before its tables are read. */
bool hw_module_still_there(const struct hw_module *module);
/* The definition of the function NAME that the dynamic linker finds first, and its length in bytes; NULL if there is
 * none. An executable that is not position independent also has an undefined symbol with an address, that of its PLT
 * entry: that is no definition. Calls dlsym: at the start only. */
void *hw_function_find(const char *name, size_t *size);
/* The module that has ADDRESS in one of its segments, code or data; NULL. Takes no lock, looks for nothing new. */
const struct hw_module *hw_module_of_data(uintptr_t address);
/* MAPS index of the module that holds PC, HW_NONE. Takes no lock and looks for nothing new. */
uint32_t hw_module_map(uintptr_t pc);
/* Bytes of code in all modules that are known. Takes no lock. */
uint64_t hw_modules_code_bytes(void);
/* All modules the dynamic linker knows; notices what is gone. Not from inside an allocator call. */
void hw_modules_rescan(void);
void hw_modules_fork(void);
/* Calls EACH for the notes called NAME, of that TYPE, of the image that HEADERS (ElfW(Phdr)) lead to. */
typedef void hw_elf_note_visitor(void *closure, const void *data, size_t size);
void hw_elf_notes_each(uintptr_t bias, const void *headers, size_t header_count, const char *name, uint32_t type,
                       hw_elf_note_visitor *each, void *closure);

/* ---- cfi.c: unwind tables ---- */

/* What an unwinder needs to know at one pc, in 64 bits:
 *   bits 0-2   enum hw_rule_kind
 *   bit  3     the CFA is computed from the frame pointer, not from the stack pointer
 *   bit  4     the CFA is what lies there (CFA = *(register + offset))
 *   bit  5     the caller's frame pointer is saved at CFA - 8 * bits 16-31
 *   bit  6     the caller's frame pointer is saved where the frame pointer points
 *   bits 8-9   unwind.c's own
 *   bits 16-31 see above
 *   bits 32-63 offset of the CFA from the register, signed */
enum hw_rule_kind {
    HW_RULE_NONE = 0, /* no table covers this pc */
    HW_RULE_SIMPLE = 1,
    HW_RULE_END = 2,     /* outermost frame */
    HW_RULE_COMPLEX = 3, /* hw_cfi_step has to evaluate it: signal frames, other registers, expressions */
};
uint64_t hw_cfi_rule(const struct hw_module *module, uintptr_t pc);
/* Does a table cover PC? */
bool hw_cfi_covers(const struct hw_module *module, uintptr_t pc);
/* One step with all callee-saved registers. READ checks that 8 bytes at an address may be read. False: cannot go on.
 * *SIGNAL: the frame was a signal frame, the new pc is exact. */
struct hw_cfi_memory {
    bool (*may_read)(void *closure, uintptr_t address);
    void *closure;
};
enum hw_step { HW_STEP_OK, HW_STEP_END, HW_STEP_NO_TABLE, HW_STEP_FAILED };
enum hw_step hw_cfi_step(const struct hw_module *module, uintptr_t pc, uint64_t registers[HW_REG_COUNT],
                         const struct hw_cfi_memory *memory, bool *signal_frame);

/* ---- unwind.c: from a hook's frame to a context ---- */

/* A stack seen before by this thread: where, what it depended on, and its context. See unwind.c. */
struct hw_walk {
    uint64_t pc, sp, fp;
    uint32_t slot;  /* first value and offset in the ring */
    uint16_t slots; /* how many */
    uint16_t needs_fp;
    uint32_t context;
    uint32_t lap;       /* of the ring when it was written */
    struct hw_mib *mib; /* of this thread and context, NULL in bounded mode */
};
#define HW_WALK_SETS 256u
#define HW_WALK_WAYS 8u
#define HW_WALK_RING (64u * 1024u)
/* Context of the call into the hook whose frame is FRAME. Never NULL. */
struct hw_walk *hw_walk_at(struct hw_thread *thread, uintptr_t frame);
enum hw_caller {
    HW_CALLER_ALLOCATOR, /* the allocator itself, inside the call: the outer hook counts */
    HW_CALLER_HANDLER,   /* a signal handler that interrupted it */
    HW_CALLER_NONE,      /* the outer hook is not there any more: it was left by a jump, or by an exception */
};
/* How the calling thread came into the hook whose frame is FRAME, while its state was inside one whose frame is OUTER.
 * THREAD: that state, or one that was borrowed. */
enum hw_caller hw_caller_of_hook(struct hw_thread *thread, uintptr_t outer, uintptr_t frame);
/* Whether the kernel can read the 8 bytes at ADDRESS. */
bool hw_readable(uintptr_t address);
void hw_unwind_start(void);
/* The program gives up system calls: from now on the kernel cannot be asked where stacks are. */
void hw_unwind_quiet(void);
/* The calling thread has begun just now, on a stack of so many bytes. */
void hw_unwind_thread(size_t stack_bytes);

/* ---- contexts.c: call stacks -> context ids ---- */

#define HW_PC_EXACT (1ull << 63) /* marks those of thread->pcs that are no return addresses */

/* The id of the stack in thread->pcs, leaf first. 0 when there is no room. */
uint32_t hw_context_get(const uint64_t *pcs, uint32_t depth, uint64_t hash, uint32_t flags);
bool hw_contexts_start(void);
/* Rebuilds the private indexes from the file's tables (forked child). */
bool hw_contexts_rebuild(void);

/* ---- blocks.c: address -> what is known of the block ---- */

#define HW_STAMP_SHIFT        2  /* blocks remember ticks to the fourth: about a nanosecond */
#define HW_STAMP_COARSE_SHIFT 12 /* tiny blocks in very large numbers: about 1.6 us */

struct hw_block {
    uint64_t size;
    uint64_t stamp; /* ticks since family_base */
    uint32_t context;
    uint32_t cpu;
    bool layout;    /* its record lies before it: a block of owned_blocks.c */
    uint8_t shift;  /* from here on in allocator mode only, and in the table only: it stands for 2^shift blocks */
    uint16_t slot;  /* of the thread that allocated it */
    uint32_t clock; /* of that thread's operations, modulo 2^32 */
};
bool hw_blocks_start(void);
enum hw_block_store hw_blocks_store(void);
/* Remembers a block. True when an older block at this address was never seen freed: it is then in *OLD. */
bool hw_block_put(struct hw_thread *thread, void *address, const struct hw_block *block, struct hw_block *old);
/* Forgets a block and returns it; false when the address is none of ours. */
bool hw_block_take(struct hw_thread *thread, void *address, struct hw_block *block);
/* Blocks that are in the table, not in the map or before themselves. */
void hw_blocks_each_in_table(void (*each)(void *address, const struct hw_block *block));
/* Accesses are counted from now on: blocks carry their records with them. */
void hw_blocks_access(void);
/* Where the block begins that ADDRESS lies in, and what is known of it; 0: in none. Only while hw_block_starts_on. No
 * lock. Another thread may be freeing it: what is in *BLOCK has to be checked. */
uintptr_t hw_block_containing(uintptr_t address, struct hw_block *block);
extern HW_HIDDEN uint32_t *hw_block_cells; /* of the map, see blocks.c; NULL when there is none */
extern HW_HIDDEN uint8_t hw_filter[];      /* see hooks.c */
extern HW_HIDDEN uint64_t hw_filter_mask;

/* ---- block_starts.c: the nearest begin of a block below an address ---- */

extern HW_HIDDEN bool hw_block_starts_on;
extern HW_HIDDEN uint64_t *hw_block_start_bits; /* the lowest level: one for each 16 bytes; NULL while off */
/* False when there is no address space for it. */
bool hw_block_starts_begin(void);
void hw_block_starts_set(const void *address);
void hw_block_starts_clear(const void *address);
/* 0: there is none, or it cannot be found in reasonable time. */
uintptr_t hw_block_starts_find(uintptr_t address);

/* ---- samples.c: where sampled accesses go ---- */

#define HW_HITS_MOST 256u

/* A sampled access, after it has been found out where it fell. */
struct hw_hit {
    uint64_t offset; /* in the block, or address - bias */
    uint64_t line;   /* address / 64; 0: of no block */
    uint64_t stamp;  /* of the block */
    uint64_t pc;
    uint32_t context; /* HW_NONE: no block */
    uint32_t map;     /* of data; HW_NONE: neither block nor data of a module */
    uint8_t flags;    /* enum hw_touch_flags */
    uint8_t word;     /* of the line */
};
/* In allocator mode: accesses to live blocks, as hw_places_info has them (line_use.c). */
struct hw_place_hits {
    uint64_t samples, line_bytes, page_bytes;
    uint64_t writes, contended_word, contended_object, contended_blocks;
    uint64_t active_writes, active_contended, passive_writes, passive_contended;
};
/* What one thread has gathered since it was last added to the profile. */
struct hw_hits {
    uint32_t count;
    uint16_t thread;      /* number of the thread among those sampled, from 1 */
    uint32_t role;        /* of the thread */
    uintptr_t stack_high; /* end of its stack */
    struct hw_sample_info sums;
    struct hw_place_hits places;
    struct hw_hit hit[HW_HITS_MOST];
};
/* Makes room for samples of SOURCE; false when there is none. PERIOD, BURST_LENGTH: as in the profile. ERROR: why the
 * processor's own samples cannot be had. */
bool hw_samples_begin(enum hw_sample_source source, uint64_t burst_length, uint64_t period, int error);
/* Another thread is sampled. */
void hw_samples_thread(void);
/* One access by the instruction at PC, STACK being where the stack pointer is. FLAGS: enum hw_touch_flags. Signal
 * safe, no lock. */
void hw_samples_take(struct hw_hits *hits, uint64_t address, uint32_t flags, uint64_t pc, uint64_t stack);
/* Forgets the accesses that were gathered. */
void hw_samples_forget(struct hw_hits *hits);
/* Adds what was gathered to the profile. Takes the lock, in a signal handler as well. */
void hw_samples_flush(struct hw_hits *hits);
/* No more samples, for this reason. */
void hw_samples_ended(enum hw_sample_end reason, int error);
/* Forgets what was counted. Lock held. */
void hw_samples_reset(void);

/* ---- single_steps.c: who is sampled, and the sampler that needs nothing but the trap flag ---- */

/* Begins to sample the calling thread and those that come. */
void hw_trap_start(void);
/* In a forked child. */
void hw_trap_fork(void);
bool hw_trap_on(void);
/* Whether the calling thread is stepping now. */
bool hw_trap_in_burst(void);
/* At the end of a hook: a burst that was interrupted by it goes on. */
void hw_trap_resume(void);
/* The calling thread is sampled from now on / not any more: a signal that waits for it is taken back. */
void hw_trap_attach(void);
void hw_trap_detach(void);
/* For good, in all threads; returns when no burst is on its way. */
void hw_trap_stop(enum hw_sample_end reason);
/* Whether SIGNAL is one that the sampler lives on. */
bool hw_trap_uses(int signal);
/* Whether HANDLER is one of the sampler's. */
bool hw_trap_is_handler(const void *handler);

/* ---- threads.c ---- */

/* Gate: who is inside. A hook sets it to its frame address + a reason, and back to open. A thread state of a forked
 * child reads as zero (MADV_WIPEONFORK): closed. */
enum { HW_GATE_CLOSED = 0, HW_GATE_OPEN = 1, HW_GATE_REAL = 2, HW_GATE_RUNTIME = 4, HW_GATE_REASON = 7 };

/* Addresses of a stack that are known to be readable. */
struct hw_stack {
    uintptr_t low, high;
};

/* The state of a thread in the runtime: private memory, owned by that thread alone; handed to another one when it ends.
 */
struct hw_thread {
    uintptr_t gate;
    struct hw_thread_entry *entry; /* in the file */
    const void *last_block;        /* allocated by the latest allocation of this thread: for temporary allocations */
    uint64_t last_stamp;           /* its stamp */
    int64_t delta_bytes, delta_blocks; /* live, not yet added to the totals */
    uint64_t generation;               /* code_generation the walks belong to */
    uint32_t serial;
    uint32_t tid;
    uint32_t ring_next, ring_lap;
    uint32_t free_records; /* list of free small block records, HW_NONE at the end */
    uint32_t *mib_index;   /* context -> MIB index, 0 none */
    uint32_t mib_index_size;
    uint32_t exit_rounds;
    struct hw_thread *interrupted; /* the state of the hook that a signal handler interrupted */
    bool nested;                   /* borrowed for a call of the allocator itself, inside one of the program's */
    uint8_t leave_slow;            /* there is more to do when the hook ends: `interrupted`, or */
    uint8_t resume;                /* a burst of single steps goes on then (single_steps.c) */
    struct hw_thread *next_free;
    struct hw_stack stack;
    uint64_t random;              /* of the sampler */
    struct hw_operator *operator; /* operations.h; memory of this state */
    uint64_t allocation_serial;
    struct hw_walk *walks;  /* HW_WALK_SETS * HW_WALK_WAYS */
    uint64_t *ring;         /* HW_WALK_RING values of slots */
    uint16_t *ring_offset;  /* and where they lie, in words from the stack pointer */
    struct hw_walk scratch; /* result of a walk that cannot be remembered */
    uint64_t pcs[HW_DEPTH_MAX];
    uint64_t slots[2 * HW_DEPTH_MAX + 8];
};
extern HW_HIDDEN __thread struct hw_thread *hw_self __attribute__((tls_model("initial-exec")));
extern HW_HIDDEN __thread uint64_t hw_until_sample __attribute__((tls_model("initial-exec")));
/* Bytes from there to the next sampled one. */
extern HW_HIDDEN __thread uint64_t hw_sample_rest __attribute__((tls_model("initial-exec")));

/* Slow part of hw_enter: first call of a thread, of a forked child, or from a signal handler inside the runtime. */
struct hw_thread *hw_enter_slow(uintptr_t frame, bool is_free);
void hw_leave_slow(struct hw_thread *thread);
void hw_threads_start(void);
void hw_threads_fork(void);
/* Waits (not for ever) until no thread is in the middle of an event. */
void hw_threads_wait_outside(void);
/* Calls EACH for the states of all threads that are known to be alive. Lock held. */
void hw_threads_each(void (*each)(struct hw_thread *thread));
uint64_t hw_threads_sum(uint64_t *frees);
/* From now on other threads wait at their next event, with signals open; returns when none is in the middle of one.
 * (Not for ever: false when one still seemed to be after a tenth of a second, which then is none that runs.) The caller
 * has all signals blocked and does not hold hw_runtime.lock; one at a time (hw_dump_lock). */
bool hw_threads_stop(void);
void hw_threads_go(void);
/* Every thread of the process passes a full barrier. */
void hw_threads_barrier(void);
/* Slow part of hw_enter: waits while events are stopped. */
void hw_wait_stopped(struct hw_thread *thread);

/* A hook begins: the state of the calling thread, or NULL when the call has to be passed through. */
static inline struct hw_thread *hw_enter(uintptr_t frame, bool is_free)
{
    struct hw_thread *thread = hw_self;
    if (hw_unlikely(!thread || thread->gate != HW_GATE_OPEN)) {
        thread = hw_enter_slow(frame, is_free);
        if (!thread)
            return NULL;
    }
    *(volatile uintptr_t *)&thread->gate = frame | HW_GATE_RUNTIME;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Set the gate, then look: hw_threads_stop does it the other way round, with the barrier for both. */
    if (hw_unlikely(*(volatile uint32_t *)&hw_runtime.stopped))
        hw_wait_stopped(thread);
    return thread;
}
static inline void hw_gate(struct hw_thread *thread, uintptr_t gate)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *(volatile uintptr_t *)&thread->gate = gate;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void hw_leave(struct hw_thread *thread)
{
    if (hw_unlikely(*(volatile uint8_t *)&thread->leave_slow))
        hw_leave_slow(thread); /* closes it: another handler must not find it open */
    else
        hw_gate(thread, HW_GATE_OPEN);
}

/* ---- heap.c: the observer that counts ---- */

void hw_heap_start(void);
void hw_heap_allocated(struct hw_thread *thread, void *address, size_t size, uintptr_t frame);
/* Allocator mode: likewise, of a block that is followed; of LIKE the last three fields count. */
void hw_heap_followed(struct hw_thread *thread, void *address, size_t size, struct hw_walk *walk,
                      const struct hw_block *like);
/* Frees it, which is in *BLOCK then. */
bool hw_heap_follow_freed(struct hw_thread *thread, void *address, struct hw_block *block);
/* True when the block was known. */
bool hw_heap_freed(struct hw_thread *thread, void *address, uintptr_t frame);
/* Around a reallocation: the block is taken before, and put back at its new (or, after failure, old) address. */
bool hw_heap_realloc_begin(struct hw_thread *thread, void *address, struct hw_block *block);
void hw_heap_realloc_end(struct hw_thread *thread, void *old_address, void *new_address, size_t size,
                         struct hw_block *block);
void hw_heap_realloc_failed(struct hw_thread *thread, void *address, struct hw_block *block);
void hw_heap_realloc_freed(struct hw_thread *thread, void *address, struct hw_block *block);
/* The same for blocks of the program's own allocators. TEMPORARY: freed with no allocation between. */
void hw_heap_pool_allocated(struct hw_thread *thread, void *address, const struct hw_block *block);
void hw_heap_pool_freed(struct hw_thread *thread, void *address, const struct hw_block *block, bool temporary);
struct hw_mib *hw_mib_get(struct hw_thread *thread, uint32_t context);
/* Adds the thread's delta to the totals. */
void hw_heap_flush(struct hw_thread *thread);
void hw_heap_threads_many(void);

/* ---- sampling.c ---- */

/* -ln(u), 0 < u <= 1; and a generator of random numbers. */
double hw_minus_log(double u);
uint64_t hw_mix(uint64_t x);
/* Draws the distance to the next sampled byte. */
void hw_sample_begin(struct hw_thread *thread);
/* Whether a block is looked at that the hook has not ruled out. */
bool hw_sample_drawn(struct hw_thread *thread, size_t size);
/* What a block that is looked at stands for, and its part in the estimates of the variances (see hw_mib). */
struct hw_sample {
    uint64_t weight, bytes;
    uint64_t count_variance, bytes_variance;
};
struct hw_sample hw_sample_of(const struct hw_block *block);
/* Peaks of sampled runs. A process begins: what was live so far, in its parent, is inherited. */
void hw_sample_peaks_start(void);
/* A block is live, or not any more (SIGN -1). QUIET: in the middle of another event, when no peak is noted. */
void hw_sample_live(const struct hw_block *block, int sign, bool quiet);
void hw_sample_inherited_freed(const struct hw_block *block);
/* From now on what was inherited is live, too. No event is under way, in this and the next. */
void hw_sample_take_inherited(void);
/* The peak begins anew, with what is live now. */
void hw_sample_peaks_reset(void);

#include "runtime/access/counting.h"

/* ---- thread_create.c ---- */

void hw_thread_create_fork(void);

/* ---- timeline.c ---- */

void hw_timeline_start(void);
void hw_timeline_tick(struct hw_thread *thread, uint64_t now);
void hw_timeline_end(void);
/* Forgets the points so far. Lock held. */
void hw_timeline_reset(void);

/* ---- dump.c: snapshots ---- */

/* One dump or reset at a time. Taken in the middle of no event, before hw_runtime.lock; signals are blocked. */
hw_sigset hw_dump_lock(void);
void hw_dump_unlock(hw_sigset old);
/* Whether the calling thread can take it now. */
bool hw_dump_possible(void);
/* Takes the lock if it is free. */
bool hw_dump_try_lock(hw_sigset *old);
void hw_dump_start(void);
void hw_dump_fork(void);
/* The tick at which an event should look whether a periodic dump is due. */
uint64_t hw_dump_due_tick(uint64_t tick);
/* At the end of an event: writes a dump when one is due or asked for. */
void hw_dump_tick(struct hw_thread *thread);

/* The dump signal has come, at any place; with the number of the request that it is for. */
void hw_dump_signalled(bool requested, uint32_t request);

/* A signal is about to kill the process: what can only be read now. Other threads wait from here on. */
void hw_dump_killed(int number);

/* ---- signals.c ---- */

/* Handles signals as far as that is wanted: called at start, in a forked child, and when the mode becomes another. */
void hw_signals_start(void);
/* The program gives up system calls: what a handler would do could not be done. */
void hw_signals_quiet(void);

/* ---- syscalls.c, program_handlers.c, locks.c: inside the allocator (syscalls.h has what they share) ---- */

/* System calls are looked at: SIGSYS is the runtime's, never blocked, and handlers of the program are called by way of
 * the runtime (program_handlers.c). */
extern HW_HIDDEN bool hw_dispatch_on;
/* The program gives up system calls: the calling thread's are no longer looked at. */
void hw_dispatch_quiet(void);
/* SIGSYS is open in the calling thread; where it was not, the thread believes it still is not. */
void hw_handlers_thread(void);
/* What another program finds as it was meant, and back after exec has failed. */
void hw_handlers_for_exec(bool begin);
/* Finds the real functions behind the hooks for locks. Any number of times. */
void hw_locks_resolve(void);
/* Once, after hw_static_hooks. */
void hw_locks_start(void);

/* ---- checksum.c ---- */

struct hw_checksum {
    uint64_t length, lanes[4];
    unsigned char rest[32];
};
void hw_checksum_begin(struct hw_checksum *sum);
void hw_checksum_add(struct hw_checksum *sum, const void *bytes, size_t size);
uint64_t hw_checksum_end(const struct hw_checksum *sum);

/* ---- arch: hooking allocators that are linked into the executable ---- */

/* Redirects the function at TARGET to HOOK and returns a way to call the original, or NULL with *WHY. */
void *hw_arch_patch(void *target, size_t size, const void *hook, const char **why);

/* ---- hooks.c: the hooks by names that nothing can interpose ---- */

void *hw_hook_malloc(size_t);
void *hw_hook_calloc(size_t, size_t);
void *hw_hook_realloc(void *, size_t);
void hw_hook_free(void *);
void *hw_hook_memalign(size_t, size_t);
int hw_hook_posix_memalign(void **, size_t, size_t);
void *hw_hook_aligned_alloc(size_t, size_t);
void *hw_hook_valloc(size_t);
void *hw_hook_pvalloc(size_t);
void hw_hook_free_sized(void *, size_t);
void hw_hook_free_aligned_sized(void *, size_t, size_t);

/* ---- static_hooks.c ---- */

/* If the executable defines malloc itself, hooks it there. */
void hw_static_hooks(void);

#endif
