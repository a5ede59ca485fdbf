/* memory_limits.c - see memory_limits.h. */
#include "cli/memory_limits.h"

#include <sys/resource.h>

void hw_memory_limits_begin(struct hw_memory_limits *limits)
{
    limits->counted =
        hw_cgroup_find(&limits->cgroup, "/proc/self") && hw_cgroup_oom_kills(&limits->cgroup, &limits->kills);
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

bool hw_memory_limits_any(struct hw_memory_limits *limits)
{
    struct hw_cgroup_memory memory;
    return is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA) ||
           (hw_cgroup_read(&limits->cgroup, 100, &memory) && memory.limit);
}

uint32_t hw_memory_limits_kills(struct hw_memory_limits *limits)
{
    uint64_t now;
    if (!limits->counted || !hw_cgroup_oom_kills(&limits->cgroup, &now) || now < limits->kills)
        return 0;
    return now - limits->kills < UINT32_MAX ? (uint32_t)(now - limits->kills) : UINT32_MAX;
}
