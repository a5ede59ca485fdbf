/* plane_pages.c - which pages of the shadow of a long range of memory are there, in several planes.
 *
 * Blocks of many MiB are mostly not used everywhere, and their shadow is there where they were: the kernel is asked
 * which pages are, for many at a time, and what is not there costs next to nothing. */
#include "base/abi.h"
#include "runtime/access/cells.h"

#define LANE_LOW 0x0101010101010101ull

/* Which of COUNT pages from AT on are there: a byte each, bit 0. */
static void look_at_pages(uintptr_t at, uint64_t count, uint8_t *there)
{
    if (hw_quiet || hw_mincore(at, count * HW_PAGE, there) < 0)
        __builtin_memset(there, 1, count);
}

/* The same, added to THERE. */
static void look_at_more_pages(uintptr_t at, uint64_t count, uint8_t *there)
{
    uint8_t pages[sizeof((struct hw_shadow_pages *)0)->there];
    look_at_pages(at, count, pages);
    for (uint64_t i = 0, more, all; i < count; i += 8) { /* what is behind the last is overwritten, or not asked for */
        __builtin_memcpy(&more, pages + i, 8);
        __builtin_memcpy(&all, there + i, 8);
        all |= more;
        __builtin_memcpy(there + i, &all, 8);
    }
}
_Static_assert(HW_ABI_WRITES_OFFSET % HW_PAGE == 0, "a page of cells is of reads or of writes, of the same memory");

struct hw_shadow_pages hw_shadow_pages_of(const struct hw_plane_list *list, uintptr_t start, uintptr_t end)
{
    return (struct hw_shadow_pages){
        .list = list, .begin = start >> hw_shadow.shift, .count = (end - start + HW_SHADOW_PAGE - 1) / HW_SHADOW_PAGE};
}

static uint32_t rows_of(const struct hw_plane_list *list)
{
    return list->count + (list->memprof != 0);
}

static void look_from(struct hw_shadow_pages *pages, uint64_t page)
{
    const struct hw_plane_list *list = pages->list;
    const uint32_t rows = rows_of(list);
    pages->batch = (sizeof pages->there - 8) / rows;
    pages->first = page;
    pages->known = pages->count - page < pages->batch ? pages->count - page : pages->batch;
    const uintptr_t offset = pages->begin + page * HW_PAGE;
    for (uint32_t i = 0; i < rows; i++) {
        uint8_t *there = pages->there + i * pages->batch;
        look_at_pages((i < list->count ? list->plane[i] : list->memprof) + offset, pages->known, there);
        if (hw_shadow.granule != 64 && i < list->count)
            look_at_more_pages(list->plane[i] + offset + HW_ABI_WRITES_OFFSET, pages->known, there);
    }
}

/* Eight pages of a row, or less at its end: what is behind the last is not known, and not counted. */
static uint64_t eight_from(const struct hw_shadow_pages *pages, uint32_t rows, uint64_t at)
{
    const uint64_t left = pages->known - at;
    uint64_t any = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t eight;
        __builtin_memcpy(&eight, pages->there + i * pages->batch + at, sizeof eight);
        any |= eight & LANE_LOW;
    }
    return left >= 8 ? any : any & ~(~0ull << 8 * left);
}

/* How many pages from AT on are in no row, in steps of 64: mostly none is there at all. */
static uint64_t count_absent(const struct hw_shadow_pages *pages, uint32_t rows, uint64_t at)
{
    typedef uint64_t pages_16 __attribute__((vector_size(16), aligned(1), may_alias));
    uint64_t absent = 0;
    for (; at + absent + 64 <= pages->known; absent += 64) {
        pages_16 any = {0, 0};
        for (uint32_t i = 0; i < rows; i++) {
            const pages_16 *of = (const pages_16 *)(pages->there + i * pages->batch + at + absent);
            any |= of[0] | of[1] | of[2] | of[3];
        }
        if ((any[0] | any[1]) & LANE_LOW)
            break;
    }
    return absent;
}

uint64_t hw_shadow_pages_next(struct hw_shadow_pages *pages, uint64_t page)
{
    const uint32_t rows = rows_of(pages->list);
    while (page < pages->count) {
        if (page - pages->first >= pages->known)
            look_from(pages, page);
        const uint64_t absent = count_absent(pages, rows, page - pages->first);
        page += absent;
        if (absent)
            continue;
        const uint64_t at = page - pages->first, any = eight_from(pages, rows, at), left = pages->known - at;
        if (any)
            return page + (uint64_t)__builtin_ctzll(any) / 8;
        page += left >= 8 ? 8 : left;
    }
    return pages->count;
}

static bool is_there(const struct hw_shadow_pages *pages, uint32_t row, uint64_t page)
{
    return pages->there[row * pages->batch + page - pages->first] & 1;
}

struct hw_plane_list hw_shadow_planes_in(const struct hw_shadow_pages *pages, uint64_t page, uintptr_t *present)
{
    const struct hw_plane_list *list = pages->list;
    struct hw_plane_list here = {present, 0, 0};
    for (uint32_t i = 0; i < list->count; i++)
        if (is_there(pages, i, page))
            present[here.count++] = list->plane[i];
    if (list->memprof && is_there(pages, list->count, page))
        here.memprof = list->memprof;
    return here;
}

void hw_shadow_pages_drop(const struct hw_shadow_pages *pages)
{
    const struct hw_plane_list *list = pages->list;
    const uint64_t bytes = pages->count * HW_PAGE;
    for (uint32_t i = 0; i < list->count; i++) {
        const uintptr_t at = list->plane[i] + pages->begin;
        hw_madvise(at, bytes, MADV_DONTNEED);
        if (hw_shadow.granule != 64)
            hw_madvise(at + HW_ABI_WRITES_OFFSET, bytes, MADV_DONTNEED);
    }
    if (list->memprof)
        hw_madvise(list->memprof + pages->begin, bytes, MADV_DONTNEED);
}
