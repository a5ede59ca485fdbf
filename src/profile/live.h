/* live.h - the profile of a process that still runs, read again and again: what each context counts, and no more of a
 * large file than that and what is new.
 *
 * The process is not touched: its file is read as any file is. A profile of a process that has ended can be read the
 * same way, once. */
#ifndef HW_PROFILE_LIVE_H
#define HW_PROFILE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "profile/format.h"

/* Of one context, or of a thread. In sampled runs estimates, as in struct hw_mib. */
struct hw_live_count {
    uint64_t allocations, frees;
    uint64_t bytes; /* obtained so far, with what reallocations added */
    int64_t live_bytes, live_blocks;
};

struct hw_live_thread {
    uint32_t serial, tid; /* serial 0: several threads, or an older file */
    char name[HW_THREAD_NAME + 1]; /* any bytes */
    bool ended, known;             /* known: it is in THREAD_LIST */
    struct hw_live_count count;    /* what it did, whosever the blocks are */
};

struct hw_live_point {
    uint64_t time_ns; /* since the start of the process */
    uint64_t live_bytes, rss_bytes;
};

struct hw_live {
    int fd;
    char *path;
    pid_t pid;    /* of the process as it is seen from here, 0: it does not run */
    bool running; /* as of the latest reading: the process lives and writes this file */
    bool replaced; /* as of the latest reading: it lives and does not: it executed another program */
    struct hw_process_info process;
    uint64_t time_ns;           /* of the reading, since the start of the process */
    uint64_t rss_bytes;         /* of the process, 0: it has ended */
    struct hw_live_count total; /* of all threads */
    size_t thread_count, threads_running;
    struct hw_live_thread *threads;
    struct hw_live_count *counts; /* by context */
    bool *pool;                   /* by context: blocks of an allocator of the program's own, in no total */
    size_t context_count;
    struct hw_live_point *timeline;
    size_t timeline_count;
    /* These only grow. Every index in them is valid. */
    struct hw_context_entry *contexts; /* context_count of them */
    struct hw_stack_node *nodes;
    size_t node_count;
    struct hw_map_entry *maps;
    size_t map_count;
    char *strings;
    size_t string_size;
    /* private */
    size_t count_room, pool_room, context_room, node_room, map_room, string_room, thread_room, timeline_room;
    size_t nodes_checked;
};

/* Takes FD, the file PATH open for reading; it is closed by hw_live_close, also on failure. PID: of the process that
 * writes it; 0: the process that the file names, if that runs on this machine. NULL with ERROR: it is no profile, or
 * there is no memory. Nothing is read but what process it is of. */
struct hw_live *hw_live_open(int fd, const char *path, pid_t pid, struct hw_error *error);
/* Reads the numbers as they are now. False with ERROR: they are those of before, or mixed. */
bool hw_live_read(struct hw_live *live, struct hw_error *error);
void hw_live_close(struct hw_live *live);

#endif
