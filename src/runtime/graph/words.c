/* words.c - the words of the program's memory, wherever they are, without a fault of ours.
 *
 * Private memory without a file is read where it is. What is mapped from a file may be gone (a file that was cut short
 * gives SIGBUS), so that it is copied by the kernel, which says so instead. Pages that were never touched are left out.
 */
#include "base/order.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/graph/internal.h"

#include <sys/uio.h>

#define SPANS_MOST (1u << 20)
#define LARGE      (256ul << 10) /* from here on pages are asked for, before they are read */

static struct {
    struct hw_span *span; /* sorted, as the kernel lists them */
    uint32_t count;
    uint32_t latest; /* found last */
    uintptr_t at;    /* of the words that `each` gets */
    void (*each)(const uint64_t *words, size_t count);
} words;

static void add_span(const struct hw_area *area)
{
    if (words.count < SPANS_MOST)
        words.span[words.count++] = (struct hw_span){.start = area->start,
                                                     .end = area->end,
                                                     .readable = area->readable,
                                                     .writable = area->writable,
                                                     .file = area->file || area->shared,
                                                     .shared = area->shared,
                                                     .own = area->own};
}

bool hw_scan_begin(void)
{
    if (!words.span)
        words.span = hw_own_pages(SPANS_MOST * sizeof *words.span, false);
    words.count = words.latest = 0;
    if (words.span)
        hw_areas_each(add_span);
    return words.count != 0;
}

void hw_scan_end(void)
{
    hw_own_give_back(words.span, SPANS_MOST * sizeof *words.span);
    words.count = 0;
}

/* The first span that ends above ADDRESS. */
static uint32_t first_above(uintptr_t address)
{
    return (uint32_t)HW_AT_LEAST(words.span, words.count, end, address + 1);
}

const struct hw_span *hw_span_of(uintptr_t address)
{
    const struct hw_span *latest = &words.span[words.latest];
    if (words.latest < words.count && address >= latest->start && address < latest->end)
        return latest;
    const uint32_t found = first_above(address);
    if (found == words.count || address < words.span[found].start)
        return NULL;
    words.latest = found;
    return &words.span[found];
}

void hw_spans_each(void (*each)(const struct hw_span *span))
{
    for (uint32_t i = 0; i < words.count; i++)
        each(&words.span[i]);
}

static void read_in_place(uintptr_t start, uintptr_t end)
{
    words.at = start;
    words.each((const uint64_t *)start, (end - start) / sizeof(uint64_t));
}

static void read_by_copy(uintptr_t start, uintptr_t end)
{
    static uint64_t buffer[8192];
    const uint32_t pid = hw_gettid(); /* the first thread may have ended */
    for (uintptr_t at = start; at < end;) {
        const size_t most = end - at < sizeof buffer ? end - at : sizeof buffer;
        const struct iovec to = {buffer, most}, from = {(void *)at, most};
        const long got = hw_sys(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0);
        words.at = at;
        if (got > 0)
            words.each(buffer, (size_t)got / sizeof *buffer);
        /* What cannot be read ends with its page. */
        at = got == (long)most ? at + most : (at + (got > 0 ? (size_t)got : 0) + HW_PAGE) & ~(HW_PAGE - 1);
    }
}

bool hw_scan_word(uintptr_t address, uint64_t *word)
{
    const struct hw_span *span = hw_span_of(address);
    if (!span || !span->readable || address & 7)
        return false;
    if (!span->file) {
        *word = *(const uint64_t *)address;
        return true;
    }
    const struct iovec to = {word, sizeof *word}, from = {(void *)address, sizeof *word};
    const uint32_t tid = hw_gettid();
    return hw_sys(SYS_process_vm_readv, tid, &to, 1, &from, 1, 0) == (long)sizeof *word;
}

uintptr_t hw_scan_address(void)
{
    return words.at;
}

void hw_scan_words(uintptr_t start, uintptr_t end, void (*each)(const uint64_t *words, size_t count))
{
    words.each = each;
    start = HW_ALIGN_UP(start, sizeof(uint64_t));
    end &= ~(sizeof(uint64_t) - 1);
    while (start < end) {
        const struct hw_span *span = hw_span_of(start);
        if (!span) {
            const uint32_t next = first_above(start);
            if (next == words.count || words.span[next].start >= end)
                return;
            start = words.span[next].start;
            continue;
        }
        const uintptr_t stop = span->end < end ? span->end : end;
        if (span->readable && span->file)
            read_by_copy(start, stop);
        else if (span->readable && stop - start >= LARGE)
            hw_resident_each(start, stop, read_in_place);
        else if (span->readable)
            read_in_place(start, stop);
        start = stop;
    }
}
