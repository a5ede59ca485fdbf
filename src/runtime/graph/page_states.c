/* page_states.c - which pages of the program are in memory, without touching them.
 *
 * /proc/self/pagemap says it of each page; what was only read has the kernel's page of zeros, which PAGEMAP_SCAN knows
 * (Linux 6.7). Answers are kept by windows of 2 MiB, since blocks come in the order of addresses, or nearly. */
#include "runtime/core/memory.h"
#include "runtime/graph/internal.h"

#include <sys/ioctl.h>

#define WINDOW_SHIFT 21
#define PAGES        (1ul << (WINDOW_SHIFT - 12))
#define WINDOWS      4096u

/* <linux/fs.h>, of kernels since 6.7. */
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
    uint64_t inverted, all_of, any_of, wanted;
};
struct scanned {
    uint64_t start, end, categories;
};
#define SCAN      _IOWR('f', 16, struct scan)
#define IS_SHARED (1ul << 5) /* PAGE_IS_PFNZERO: the page of zeros */

struct window {
    uint64_t tag; /* address >> WINDOW_SHIFT, + 1 */
    uint8_t state[PAGES];
};

static struct {
    struct window *window;
    const struct window *latest;
    int file;
    bool scans; /* the kernel knows PAGEMAP_SCAN */
} pages;

bool hw_page_states_begin(void)
{
    if (!pages.window)
        pages.window = hw_own_pages(WINDOWS * sizeof *pages.window, true);
    pages.latest = NULL;
    pages.scans = true;
    pages.file = pages.window ? hw_open("/proc/self/pagemap", O_RDONLY, 0) : -1;
    return pages.file >= 0;
}

void hw_page_states_end(void)
{
    if (pages.file >= 0)
        hw_close(pages.file);
    if (pages.window)
        hw_own_give_back(pages.window, WINDOWS * sizeof *pages.window);
    pages.latest = NULL;
}

/* Marks what is the kernel's page of zeros. */
static void find_zero_pages(struct window *window, uintptr_t start)
{
    static struct scanned found[64];
    struct scan scan = {.size = sizeof scan,
                        .end = start + (1ul << WINDOW_SHIFT),
                        .regions = (uint64_t)found,
                        .region_count = sizeof found / sizeof *found,
                        .all_of = IS_SHARED,
                        .wanted = IS_SHARED};
    for (scan.start = start; pages.scans && scan.start < scan.end; scan.start = scan.walk_end) {
        const long count = hw_sys(SYS_ioctl, pages.file, SCAN, &scan);
        if (count < 0)
            pages.scans = false;
        for (long i = 0; i < count; i++)
            for (uintptr_t page = found[i].start; page < found[i].end; page += HW_PAGE)
                window->state[page >> 12 & (PAGES - 1)] = HW_PAGE_ABSENT;
        if (count < 0 || scan.walk_end <= scan.start)
            break;
    }
}

static const struct window *read_window(uintptr_t address)
{
    static uint64_t entries[PAGES];
    const uint64_t tag = (address >> WINDOW_SHIFT) + 1;
    struct window *window = &pages.window[tag % WINDOWS];
    if (window->tag == tag)
        return window;
    const uintptr_t start = address & ~((1ul << WINDOW_SHIFT) - 1);
    const long got = hw_sys(SYS_pread64, pages.file, entries, sizeof entries, (start >> 12) * sizeof *entries);
    bool shared = false;
    for (size_t i = 0; i < PAGES; i++) {
        window->state[i] =
            (long)((i + 1) * sizeof *entries) > got ? HW_PAGE_UNKNOWN : (uint8_t)hw_page_state_of(entries[i]);
        shared |= hw_page_may_be_zero(entries[i]);
    }
    if (shared)
        find_zero_pages(window, start);
    window->tag = tag;
    return window;
}

enum hw_page_state hw_page_state(uintptr_t address)
{
    const uint64_t tag = (address >> WINDOW_SHIFT) + 1;
    if (pages.file < 0)
        return HW_PAGE_UNKNOWN;
    if (!pages.latest || pages.latest->tag != tag)
        pages.latest = read_window(address);
    return pages.latest->state[address >> 12 & (PAGES - 1)];
}
