/* line_use.c - how much of lines and pages the program uses where it accesses them, and who wrote a line last: for
 * sampled accesses, at the moment they are made.
 *
 * Called from signal handlers: reads the planes, takes no lock. Lines' last writers are kept in a table that forgets.
 */
#include "runtime/allocator/places.h"
#include "runtime/core/memory.h"
#include "runtime/samples/hits.h"

#define WRITERS (1u << 15)

/* Line (41 bits), 8-byte word in it (3), thread (20); and where the block began. Two threads may mix up an entry. */
struct writer {
    uint64_t who, block;
};
static struct writer *writers;

struct used {
    uintptr_t line, page; /* first addresses */
    uint64_t line_bytes, page_bytes;
    uint32_t blocks; /* with bytes in the page */
};

static uint64_t overlap(uintptr_t start, uintptr_t end, uintptr_t from, uintptr_t to)
{
    start = start < from ? from : start;
    end = end > to ? to : end;
    return end > start ? end - start : 0;
}

static void add_block(void *closure, const struct hw_place *place)
{
    struct used *used = closure;
    if (!place->live)
        return;
    const uintptr_t end = place->start + place->requested;
    const uint64_t bytes = overlap(place->start, end, used->page, used->page + HW_PAGE);
    used->line_bytes += overlap(place->start, end, used->line, used->line + 64);
    used->page_bytes += bytes;
    used->blocks += bytes != 0;
}

static struct used used_around(uintptr_t address)
{
    struct used used = {.line = address & ~63ul, .page = address & ~(HW_PAGE - 1)};
    struct hw_place before;
    if (hw_place_at(used.page, &before) && before.start < used.page)
        add_block(&used, &before);
    hw_places_each(used.page, used.page + HW_PAGE, add_block, &used);
    return used;
}

uint64_t hw_places_page_used(uintptr_t page, uint32_t *blocks)
{
    const struct used used = used_around(page);
    *blocks = used.blocks;
    return used.page_bytes;
}

static void note_write(struct hw_place_hits *hits, uintptr_t address, uintptr_t block, uint32_t thread)
{
    const uint64_t line = address >> 6, word = address >> 3 & 7;
    const uint64_t who = line | word << 41 | (uint64_t)(thread & 0xfffff) << 44;
    struct writer *entry = &writers[(line ^ line >> 15) & (WRITERS - 1)];
    const uint64_t before = __atomic_load_n(&entry->who, __ATOMIC_RELAXED);
    const uint64_t owner = __atomic_load_n(&entry->block, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->who, who, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->block, block, __ATOMIC_RELAXED);
    const bool contended = before && (before & ((1ul << 41) - 1)) == line && before >> 44 != who >> 44;
    const uint32_t events = hw_place_line_events(address);
    hits->writes++;
    if (contended && owner != block)
        hits->contended_blocks++;
    else if (contended)
        ++*((before >> 41 & 7) == word ? &hits->contended_word : &hits->contended_object);
    if (events & HW_PLACE_ACTIVE) {
        hits->active_writes++;
        hits->active_contended += contended;
    }
    if (events & HW_PLACE_PASSIVE) {
        hits->passive_writes++;
        hits->passive_contended += contended;
    }
}

void hw_places_access(struct hw_place_hits *hits, uintptr_t address, bool write, uint32_t thread)
{
    struct hw_place place;
    if (!writers || !hw_place_at(address, &place) || !place.live)
        return;
    const struct used used = used_around(address);
    hits->samples++;
    hits->line_bytes += used.line_bytes;
    hits->page_bytes += used.page_bytes;
    if (write)
        note_write(hits, address, place.start, thread);
}

void hw_places_sampled(void)
{
    if (hw_places.even && !writers)
        writers = hw_own_pages(WRITERS * sizeof *writers, true);
}
