/* core.h - the life of the runtime: start, end and fork, options, clock, dumps. */
#ifndef HW_RUNTIME_CORE_CORE_H
#define HW_RUNTIME_CORE_CORE_H

#include "runtime/runtime.h"

struct hw_thread; /* threads.h */

/* ---- lifecycle.c: start, end, fork ---- */

/* Starts when that has not happened yet. Called by the first hook or the constructor. */
void hw_start(void);
/* True in a forked child that has not set itself up yet. */
bool hw_fork_pending(void);
/* Where accesses are counted, sets up a forked child that has not done so. False: it still has not. */
bool hw_fork_settled(void);
/* Sets up a forked child: own file, counts from zero. */
void hw_fork_child(void);
/* In a forked child: what was live in the parent goes into the profile. */
void hw_fork_inherit(void);
/* Which allocator hw_real is: for the profile, and for what the runtime may assume of it. */
void hw_describe_allocator(void);
void hw_process_end(enum hw_exit_kind kind, int value);
/* How the process ends, into the file. HARVEST: with what is live; STOPPED: nobody is in the middle of an event. */
void hw_process_write_end(bool harvest, bool stopped, enum hw_exit_kind kind, int value, uint64_t peak_rss);
/* It did not end after all: exec failed. */
void hw_process_goes_on(void);
/* Adds to a note of this code and text, or makes it. Takes the lock. TEXT may be NULL. */
void hw_note(enum hw_note_code code, const char *text);
/* The same where the lock is held: in a harvest, in a search. */
void hw_note_locked(enum hw_note_code code, const char *text);

/* ---- parts.c: the moments in the life of a process, for all parts of the runtime; the table is their manual ---- */

/* False: no memory, and no profile. */
bool hw_parts_start(void);
void hw_parts_forget(void);
bool hw_parts_fork(void);
/* Lock held. */
void hw_parts_tick(uint64_t tick);
void hw_parts_harvest(bool stopped);
void hw_parts_forget_harvest(void);
void hw_parts_dump(void);
void hw_parts_end(void);
void hw_parts_reset(void);

/* ---- periods.c: start=off ---- */

/* At the start and in a forked child: whether it counts. */
void hw_periods_start(void);
void hw_periods_fork(void);
/* In a forked child that has not set itself up: its first event will. */
void hw_period_forked(void);
/* Events are passed through. */
bool hw_period_passing(void);
/* heapwise start or stop has asked. */
bool hw_period_requested(void);
/* Answers it. dump.lock held, in the middle of no event but one of the calling thread. */
void hw_period_serve(void);

/* ---- reset.c ---- */

/* The same as heapwise_reset, and nothing is live any more. No event is under way, lock held. False: no memory. */
bool hw_reset_to_nothing(void);

/* heapwise_reset: from now on it is the new period. Lock held. */
void hw_reset_begin_period(void);

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
    uint32_t leaks;            /* 1: what is live at the end is told apart by whether it can be reached */
    uint32_t keeps;            /* 1: and who keeps what can be reached */
    uint32_t contents;         /* 1: what live blocks hold is examined at the end and in dumps */
    uint32_t contents_fill;    /* 1: new blocks are filled */
    uint32_t contents_samples; /* 0: no bytes of blocks in the profile */
    uint64_t contents_peak;    /* not 0: near the peak instead, from so many live bytes on */
    uint32_t pinned;           /* 1: the live heap is walked page by page at the end and for dumps */
    uint32_t valgrind_requests; /* 1: blocks that the program announces to Valgrind are recorded; 2: it is answered */
    uint64_t block_log;        /* bytes of the log of blocks in the profile; 0: none is written */
    uint32_t block_table;      /* 1: use the table store even where the map is possible */
    uint32_t verbose;
    bool waits;                /* start=off, and that is possible */
    char start[16];            /* "off": see periods.c */
    char mode[16];             /* "allocator"; else heap */
    char operation_events[16]; /* "auto", "software" or "none": see operation_events.c */
    uint32_t dispatch;         /* 0: system calls inside the allocator are not observed */
    uint64_t sample_accesses;  /* bursts a second of a thread's CPU time; 0: none */
    uint64_t sample_period;    /* accesses from one sample of the processor's to the next; 0: by sample_accesses */
    char event_sources[1024];  /* where the kernel describes what events there are; empty: the usual directory */
    uint64_t dump_interval_ns; /* 0: no periodic dumps */
    uint32_t dump_at;          /* percent of a limit of memory; 0: none */
    char cgroup_from[1024];    /* a directory instead of /proc/self, where the cgroup is looked up; empty: that */
    uint32_t windows;          /* 1: fields that are used together are sampled (field_windows.c) */
    uint32_t dump_signal;      /* HW_NONE: not given; 0: none */
    uint32_t words_period_ms;  /* 4-byte granules: from one scan of the shadow to the next */
    uint32_t words_thread;     /* 0: no thread for that, allocations do it */
    char text[512];            /* the options as given, for the profile */
};
extern HW_HIDDEN struct hw_options hw_options;
void hw_options_read(void);
/* What %e stands for. */
void hw_output_executable(char *name, size_t size);
/* The profile's name for this process, see hw_expand_name. */
void hw_output_name(char *name, size_t size, const char *executable, unsigned attempt);

/* ---- attach.c: recording that begins in the middle of a run ---- */

struct hw_attach; /* profile/attach.h */

/* A recording of this kind is under way, or begins. */
extern HW_HIDDEN bool hw_attached;
/* At the start, when real functions have been looked for: the runtime was opened by a program that runs. It does
 * nothing until it is asked to. */
bool hw_attach_waits(void);
/* Instead of HEAPWISE_OPTIONS; NULL: that counts. */
const char *hw_attach_options(void);
/* static_hooks.c: fills the list of patches. False: `problem` says why there is none. */
bool hw_attach_hooks(struct hw_attach *attach);
/* The same for a statically linked program, before its first instruction. Nothing has started: no module is known. */
bool hw_attach_static_hooks(struct hw_attach *attach);

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
extern HW_HIDDEN intptr_t hw_rseq_watch_offset; /* the same of what hw_arch_watch needs */

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

/* ---- dump.c: snapshots ---- */

/* One dump or reset at a time. Taken in the middle of no event, before hw_runtime.lock; signals are blocked. */
hw_sigset hw_dump_lock(void);
void hw_dump_unlock(hw_sigset old);
/* Writes the next one; its number, or -errno. Lock held, on a stack with room for it. */
long hw_dump_write(void);
/* Whether the calling thread can take it now. */
bool hw_dump_possible(void);
/* Takes the lock if it is free. */
bool hw_dump_try_lock(hw_sigset *old);
void hw_dump_start(void);
void hw_dump_fork(void);
/* The tick at which an event should look whether a periodic dump is due. */
uint64_t hw_dump_due_tick(uint64_t tick, int64_t live_bytes);
/* At the end of an event: writes a dump when one is due or asked for. */
void hw_dump_tick(struct hw_thread *thread);

/* The dump signal has come, at any place; with the number of the request that it is for. */
void hw_dump_signalled(bool requested, uint32_t request);

/* A signal is about to kill the process: what can only be read now. Other threads wait from here on. CONTEXT is the
 * handler's ucontext_t. */
void hw_dump_killed(int number, const void *context);

/* ---- timeline.c ---- */

void hw_timeline_start(void);
/* At the end of an event that has changed live bytes by CHANGE: the program has not written a new block yet, and one
 * that is freed is still there. */
void hw_timeline_tick(struct hw_thread *thread, uint64_t now, int64_t change);
/* The next event finds that something is due. */
void hw_timeline_hurry(void);
void hw_timeline_end(void);
/* Forgets the points so far. Lock held. */
void hw_timeline_reset(void);

/* ---- regions.c: what the program measures itself ---- */

/* Live bytes have changed: those of the process to LIVE (INT64_MIN: not known here), those of THREAD (or NULL) to what
 * its entry says. Called while hw_runtime.regions_open is not 0. */
void hw_regions_rise(struct hw_thread *thread, int64_t live);
/* All that are open end unmeasured, since counts begin at zero: in a forked child, and at a reset. */
void hw_regions_forget(void);

/* ---- thread_create.c ---- */

void hw_thread_create_fork(void);

/* ---- string.c ---- */

void hw_string_start(void);

/* ---- checksum.c ---- */

struct hw_checksum {
    uint64_t length, lanes[4];
    unsigned char rest[32];
};
void hw_checksum_begin(struct hw_checksum *sum);
void hw_checksum_add(struct hw_checksum *sum, const void *bytes, size_t size);
uint64_t hw_checksum_end(const struct hw_checksum *sum);

#endif
