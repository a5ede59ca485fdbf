/* memory_limits.h - limits of memory that hold for a program that `heapwise record` starts, and whether the kernel ended
 * processes for them. */
#ifndef HW_CLI_MEMORY_LIMITS_H
#define HW_CLI_MEMORY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cgroup.h"

struct hw_memory_limits {
    struct hw_cgroup cgroup; /* of this command, which the program starts in */
    bool counted;            /* `kills` is known */
    uint64_t kills;          /* in the cgroup, before the run */
};

void hw_memory_limits_begin(struct hw_memory_limits *limits);
/* Whether anything has a limit: the cgroup or one around it (memory.max, memory.high), address space, data. */
bool hw_memory_limits_any(struct hw_memory_limits *limits);
/* Processes of the cgroup that the OOM killer has ended since; 0 also when that is not known. */
uint32_t hw_memory_limits_kills(struct hw_memory_limits *limits);

#endif
