/* cgroup.h - the limits of the control group that a process is in, and how many processes the kernel's OOM killer ended
 * there. cgroup v2 and v1; also inside containers, which see a part of the tree.
 *
 * Like sys.h: no libc, no allocation, safe in the profiled process. A struct hw_cgroup is used by one thread at a
 * time. */
#ifndef HW_BASE_CGROUP_H
#define HW_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_cgroup {
    bool second;          /* cgroup v2 */
    char directory[1024]; /* of the memory controller; empty: there is none, or it cannot be seen */
    size_t top;           /* characters of `directory` that are the mount point: no directory above it is read */
    /* private */
    char group[1024], path[1100], text[8192];
};

/* Memory of a cgroup, and of those limits that hold for it, its own and those of the cgroups around it, the one that is
 * nearest: of which the greatest share is used. */
struct hw_cgroup_memory {
    uint64_t bytes; /* of the cgroup itself, with cached files */
    uint64_t peak;  /* the most of that; 0: the kernel does not keep it */
    uint64_t limit; /* 0: there is none */
    uint64_t used;  /* of `limit`, where that is asked for (FROM) without files that the kernel drops if memory is short */
    bool high;      /* it is memory.high: beyond it the kernel slows processes down, but ends none */
    bool around;    /* it is that of a cgroup around this one */
};

/* Finds the cgroup of a process by the files cgroup and mountinfo of the directory PROCESS (/proc/self). False: none. */
bool hw_cgroup_find(struct hw_cgroup *cgroup, const char *process);

/* Reads it now. Files that can be dropped are only taken off where at least FROM percent of a limit are used: that is one
 * more file to read. False: the cgroup is gone, or its files cannot be read. */
bool hw_cgroup_read(struct hw_cgroup *cgroup, unsigned from, struct hw_cgroup_memory *memory);

/* Processes of the cgroup that the OOM killer has ended so far. False: not known. */
bool hw_cgroup_oom_kills(struct hw_cgroup *cgroup, uint64_t *kills);

#endif
