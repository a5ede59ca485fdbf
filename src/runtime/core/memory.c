/* memory.c - private memory of the runtime, and what the kernel says of the process's memory. */
#include "runtime/core/file.h"
#include "runtime/core/memory.h"

#include <sys/resource.h>

extern const char _end[] HW_HIDDEN; /* of the runtime's image */

static struct {
    uintptr_t start, end;
} own[256];
static uint32_t own_count;
static uint64_t own_bytes;

uint64_t hw_own_bytes(void)
{
    return __atomic_load_n(&own_bytes, __ATOMIC_RELAXED);
}

void hw_own_range(const void *start, size_t bytes)
{
    __atomic_fetch_add(&own_bytes, bytes, __ATOMIC_RELAXED);
    uint32_t i = __atomic_fetch_add(&own_count, 1, __ATOMIC_RELAXED);
    if (i < sizeof own / sizeof *own) {
        own[i].start = (uintptr_t)start;
        own[i].end = (uintptr_t)start + bytes;
    }
}

/* ---- reservations ---- */

bool hw_own_unlocked;

/* Terabytes that are never touched must not count against any limit that a program has or sets. Writable private memory
 * counts against RLIMIT_DATA, unless it may grow downwards: then it counts as stack, whose limit is checked when it
 * grows. It never does: the page below it is mapped, and is no memory. */
void *hw_own_reserve(uintptr_t hint, uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    bytes = HW_ALIGN_UP(bytes, HW_PAGE);
    long below = hw_mmap(hint ? hint - HW_PAGE : 0, bytes + HW_PAGE, PROT_NONE, flags, -1, 0);
    if (hw_sys_failed(below))
        return NULL;
    long pages =
        hw_mmap(below + (long)HW_PAGE, bytes, PROT_READ | PROT_WRITE, flags | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
    if (hw_sys_failed(pages)) {
        hw_munmap(below, bytes + HW_PAGE);
        return NULL;
    }
    hw_madvise(pages, bytes, MADV_NOHUGEPAGE);
    hw_madvise(pages, bytes, MADV_DONTDUMP);
    if (hw_own_unlocked)
        hw_sys(SYS_munlock, below, bytes + HW_PAGE);
    hw_own_range((void *)below, bytes + HW_PAGE);
    return (void *)pages;
}

uintptr_t hw_own_hint(size_t bytes)
{
    static uintptr_t next = 0x380000000000ul; /* 56 TiB: behind the planes and the layout's map */
    return __atomic_fetch_add(&next, HW_ALIGN_UP(bytes, HW_PAGE) + HW_PAGE, __ATOMIC_RELAXED);
}

/* Where private memory comes from: reserved at the start, so that nothing has to be asked of the kernel later, when the
 * program may have given up system calls or locks what is mapped. What a forked child is to see as zeros is set apart.
 */
#define ARENA_HINT  0x400000000000ul /* 64 TiB: far below position-independent executables */
#define KEPT_BYTES  (2ul << 40)
#define WIPED_BYTES (6ul << 40)

static struct {
    uintptr_t next, end;
} arena[2]; /* by wipe_on_fork */

void hw_own_start(void)
{
    char *pages = hw_address_space_limited() ? NULL : hw_own_reserve(ARENA_HINT, KEPT_BYTES + WIPED_BYTES);
    if (!pages)
        return;
    const uintptr_t start = (uintptr_t)pages, middle = start + KEPT_BYTES;
    arena[0].next = start;
    arena[0].end = middle;
    if (hw_madvise(middle, WIPED_BYTES, MADV_WIPEONFORK) == 0) {
        arena[1].next = middle;
        arena[1].end = middle + WIPED_BYTES;
    }
}

static void *take_from_arena(size_t bytes, bool wiped)
{
    uintptr_t pages = __atomic_load_n(&arena[wiped].next, __ATOMIC_RELAXED);
    do
        if (arena[wiped].end - pages < bytes)
            return NULL;
    while (!__atomic_compare_exchange_n(&arena[wiped].next, &pages, pages + bytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return (void *)pages;
}

void *hw_own_pages(size_t bytes, bool wipe_on_fork)
{
    bytes = HW_ALIGN_UP(bytes, HW_PAGE);
    void *taken = take_from_arena(bytes, wipe_on_fork);
    if (taken)
        return taken;
    void *pages = hw_quiet ? NULL : hw_own_reserve(0, bytes);
    if (pages && wipe_on_fork)
        hw_madvise(pages, bytes, MADV_WIPEONFORK);
    return pages;
}

void hw_own_give_back(void *pages, size_t bytes)
{
    if (!hw_quiet)
        hw_madvise(pages, bytes, MADV_DONTNEED);
}

void hw_own_give_all_back(void)
{
    for (uint32_t i = 0; i < own_count && i < sizeof own / sizeof *own; i++)
        hw_munmap(own[i].start, own[i].end - own[i].start);
}

/* Does [start, end) lie in what the runtime took for itself? Neighbouring ranges may have been joined by the kernel,
 * so overlap of the start is what counts. */
bool hw_is_own(uintptr_t start)
{
    uint32_t count = own_count < sizeof own / sizeof *own ? own_count : sizeof own / sizeof *own;
    for (uint32_t i = 0; i < count; i++)
        if (start >= own[i].start && start < own[i].end)
            return true;
    return start >= hw_runtime.text_start && start < (uintptr_t)_end;
}

uintptr_t hw_own_until(uintptr_t start, uintptr_t end)
{
    const uint32_t count = own_count < sizeof own / sizeof *own ? own_count : sizeof own / sizeof *own;
    const bool inside = hw_is_own(start);
    for (uint32_t i = 0; i <= count; i++) {
        const uintptr_t low = i < count ? own[i].start : hw_runtime.text_start,
                        high = HW_ALIGN_UP(i < count ? own[i].end : (uintptr_t)_end, HW_PAGE);
        const uintptr_t border = inside ? high : low;
        if (border > start && border < end && (!inside || start >= low))
            end = border;
    }
    return end;
}

uint64_t hw_memory_rss(void)
{
    char buffer[128];
    if (hw_read_file("/proc/self/statm", buffer, sizeof buffer) <= 0)
        return 0;
    const char *cursor = hw_skip_fields(buffer, 1);
    return hw_parse_u64(&cursor, 10) * HW_PAGE;
}

uint64_t hw_memory_peak_rss(void)
{
    char buffer[4096];
    return hw_memory_peak_rss_in(buffer, sizeof buffer);
}

const char *hw_status_of(const char *path, const char *key, char *buffer, size_t size)
{
    if (hw_read_file(path, buffer, size) <= 0)
        return NULL;
    for (const char *line = buffer; *line; line += *line == '\n') {
        if (hw_starts_with(line, key)) {
            line += hw_strlen(key);
            while (*line == ' ' || *line == '\t')
                line++;
            return line;
        }
        while (*line && *line != '\n')
            line++;
    }
    return NULL;
}

uint64_t hw_memory_peak_rss_in(char *buffer, size_t size)
{
    const char *value = hw_status_of("/proc/self/status", "VmHWM:", buffer, size);
    return value ? hw_parse_u64(&value, 10) * 1024 : 0;
}

bool hw_is_traced(char *buffer, size_t size)
{
    const char *value = hw_status_of("/proc/thread-self/status", "TracerPid:", buffer, size);
    return value && *value != '0';
}

/* ---- limits ---- */

/* Where memory is never overcommitted all private memory that can be written to counts, touched or not, also what is
 * reserved: what the machine may still promise. ~0: it may overcommit, or it is not known. As of the start. */
static uint64_t commitment_left(bool *never)
{
    static int8_t overcommits = -1;
    static uint64_t left = ~0ull;
    if (overcommits < 0) {
        char text[4096];
        overcommits = hw_read_file("/proc/sys/vm/overcommit_memory", text, sizeof text) <= 0 || text[0] != '2';
        const char *most = overcommits ? NULL : hw_status_of("/proc/meminfo", "CommitLimit:", text, sizeof text);
        if (most) {
            const uint64_t limit = hw_parse_u64(&most, 10);
            const char *promised = hw_status_of("/proc/meminfo", "Committed_AS:", text, sizeof text);
            const uint64_t given = promised ? hw_parse_u64(&promised, 10) : 0;
            left = given < limit ? (limit - given) * 1024 : 0;
        }
    }
    *never = !overcommits;
    return left;
}

uint64_t hw_address_space_limit(void)
{
    bool never;
    const uint64_t limit = hw_soft_limit(RLIMIT_AS), left = commitment_left(&never);
    return left < limit ? left : limit;
}

bool hw_address_space_limited(void)
{
    static int8_t limited = -1; /* as of the start: limits that come later are widened (limits.c) */
    if (limited < 0) {
        bool never;
        commitment_left(&never);
        limited = never || hw_address_space_limit() != ~0ull;
    }
    return limited;
}

/* ---- mappings ---- */

void hw_lines_each(const char *path, bool (*each)(void *closure, const char *line), void *closure)
{
    static char buffer[8192]; /* under the lock */
    hw_lines_in(path, buffer, sizeof buffer, each, closure);
}

typedef void area_visitor(const struct hw_area *area);

static bool give_area(void *each, const char *line)
{
    const char *cursor = line;
    struct hw_area area = {.start = hw_parse_u64(&cursor, 16)};
    cursor++;
    area.end = hw_parse_u64(&cursor, 16);
    if (hw_strlen(cursor) < 5)
        return true;
    area.readable = cursor[1] == 'r';
    area.writable = cursor[2] == 'w';
    area.shared = cursor[4] == 's';
    for (const char *c = cursor; *c; c++)
        area.file |= *c == '/';
    for (const uintptr_t end = area.end; area.start < end; area.start = area.end) {
        area.end = hw_own_until(area.start, end);
        area.own = hw_is_own(area.start);
        (*(area_visitor **)each)(&area);
    }
    return true;
}

void hw_areas_each(void (*each)(const struct hw_area *area))
{
    hw_lines_each(HW_MAPS, give_area, &each);
}

void hw_resident_each(uintptr_t start, uintptr_t end, void (*each)(uintptr_t start, uintptr_t end))
{
    enum { BATCH = 2048 };
    uint8_t there[BATCH];
    for (uintptr_t page = start & ~(HW_PAGE - 1); page < end; page += BATCH * HW_PAGE) {
        uint64_t count = (end - page + HW_PAGE - 1) / HW_PAGE, i = 0;
        count = count < BATCH ? count : BATCH;
        if (hw_quiet || hw_mincore(page, count * HW_PAGE, there) < 0)
            continue;
        while (i < count) {
            uint64_t first = i;
            while (i < count && (there[i] & 1))
                i++;
            uintptr_t from = page + first * HW_PAGE, to = page + i * HW_PAGE;
            if (i > first)
                each(from < start ? start : from, to > end ? end : to);
            while (i < count && !(there[i] & 1))
                i++;
        }
    }
}
