/* perf_ring.c - see perf_ring.h. */
#include "base/arch/x86_64/decode.h"
#include "runtime/samples/perf_ring.h"

#include <stddef.h>

#define PAGE        4096ull
#define FIXED_WORDS 9u /* of a sample without its register, header included */

bool hw_perf_ring_open(struct hw_perf_ring *ring, void *mapping, uint64_t pages)
{
    struct perf_event_mmap_page *page = mapping;
    uint64_t offset = page->data_offset ? page->data_offset : PAGE;
    uint64_t size = page->data_size ? page->data_size : (pages - 1) * PAGE; /* before Linux 4.1 */
    if (pages < 2 || !size || (size & (size - 1)) || offset > pages * PAGE || size > pages * PAGE - offset)
        return false;
    *ring = (struct hw_perf_ring){.head = (const uint64_t *)&page->data_head,
                                  .tail = (uint64_t *)&page->data_tail,
                                  .data = (const uint8_t *)mapping + offset,
                                  .size = size};
    return true;
}

/* The WORD-th 8 bytes of the record at POSITION. Records are multiples of 8 bytes: no word is torn by the end. */
static uint64_t word_at(const struct hw_perf_ring *ring, uint64_t position, unsigned word)
{
    uint64_t value;
    __builtin_memcpy(&value, ring->data + ((position + word * 8ull) & (ring->size - 1)), sizeof value);
    return value;
}

static enum hw_perf_read read_sample(const struct hw_perf_ring *ring, uint64_t at,
                                     const struct perf_event_header *header, struct hw_perf_sample *sample)
{
    if (header->size < FIXED_WORDS * 8)
        return HW_PERF_BROKEN;
    uint64_t has_register = word_at(ring, at, 6) != PERF_SAMPLE_REGS_ABI_NONE;
    unsigned rest = 7 + (unsigned)has_register;
    if (header->size != (FIXED_WORDS + has_register) * 8)
        return HW_PERF_BROKEN;
    *sample = (struct hw_perf_sample){
        .pc = word_at(ring, at, 1),
        .pid = (uint32_t)word_at(ring, at, 2),
        .tid = (uint32_t)(word_at(ring, at, 2) >> 32),
        .time = word_at(ring, at, 3),
        .address = word_at(ring, at, 4),
        .cpu = (uint32_t)word_at(ring, at, 5),
        .stack = has_register ? word_at(ring, at, 7) : 0,
        .weight = word_at(ring, at, rest),
        .source = word_at(ring, at, rest + 1),
        .in_kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER,
    };
    return HW_PERF_SAMPLE;
}

static enum hw_perf_read read_record(const struct hw_perf_ring *ring, uint64_t at,
                                     const struct perf_event_header *header, struct hw_perf_sample *sample,
                                     uint64_t *lost)
{
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        return read_sample(ring, at, header, sample);
    case PERF_RECORD_LOST: /* the event's id, the number */
        if (header->size < 24)
            return HW_PERF_BROKEN;
        *lost = word_at(ring, at, 2);
        return HW_PERF_LOST;
    case PERF_RECORD_LOST_SAMPLES:
        if (header->size < 16)
            return HW_PERF_BROKEN;
        *lost = word_at(ring, at, 1);
        return HW_PERF_LOST;
    case PERF_RECORD_THROTTLE:
        return HW_PERF_THROTTLE;
    default:
        return HW_PERF_OTHER;
    }
}

enum hw_perf_read hw_perf_ring_next(struct hw_perf_ring *ring, struct hw_perf_sample *sample, uint64_t *lost)
{
    uint64_t head = __atomic_load_n(ring->head, __ATOMIC_ACQUIRE), tail = *ring->tail, used = head - tail;
    if (!used)
        return HW_PERF_EMPTY;
    struct perf_event_header header = {0};
    if (used <= ring->size && !(used & 7) && !(tail & 7)) {
        uint64_t word = word_at(ring, tail, 0);
        __builtin_memcpy(&header, &word, sizeof header);
    }
    enum hw_perf_read result = HW_PERF_BROKEN;
    if (header.size < sizeof header || (header.size & 7) || header.size > used)
        tail = head;
    else {
        result = read_record(ring, tail, &header, sample, lost);
        tail += header.size;
    }
    __atomic_store_n(ring->tail, tail, __ATOMIC_RELEASE);
    return result;
}

uint32_t hw_perf_sample_flags(const struct hw_perf_sample *sample)
{
    uint64_t operation = sample->source & 31;
    return (operation & PERF_MEM_OP_LOAD ? HW_TOUCH_READ : 0u) | (operation & PERF_MEM_OP_STORE ? HW_TOUCH_WRITE : 0u);
}
