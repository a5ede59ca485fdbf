/* checksum.c - XXH64, with which sections and the first page of a sealed profile are checked.
 *
 * Written after the specification of the algorithm (xxhash_spec.md, seed 0); for data that comes in pieces. */
#include "runtime/core/core.h"

#define PRIME1 0x9e3779b185ebca87ull
#define PRIME2 0xc2b2ae3d27d4eb4full
#define PRIME3 0x165667b19e3779f9ull
#define PRIME4 0x85ebca77c2b2ae63ull
#define PRIME5 0x27d4eb2f165667c5ull

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static inline uint64_t mix(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME2, 31) * PRIME1;
}

static inline uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return word;
}

static void take_stripe(struct hw_checksum *sum, const unsigned char *stripe)
{
    for (int i = 0; i < 4; i++)
        sum->lanes[i] = mix(sum->lanes[i], word_at(stripe + 8 * i));
}

void hw_checksum_begin(struct hw_checksum *sum)
{
    *sum = (struct hw_checksum){.lanes = {PRIME1 + PRIME2, PRIME2, 0, 0 - PRIME1}};
}

void hw_checksum_add(struct hw_checksum *sum, const void *bytes, size_t size)
{
    const unsigned char *at = bytes, *end = at + size;
    size_t kept = sum->length % sizeof sum->rest;
    sum->length += size;
    while (kept && at < end) {
        sum->rest[kept++] = *at++;
        if (kept == sizeof sum->rest) {
            take_stripe(sum, sum->rest);
            kept = 0;
        }
    }
    if (kept)
        return;
    for (; (size_t)(end - at) >= sizeof sum->rest; at += sizeof sum->rest)
        take_stripe(sum, at);
    for (; at < end; at++)
        sum->rest[kept++] = *at;
}

uint64_t hw_checksum_end(const struct hw_checksum *sum)
{
    const unsigned char *at = sum->rest, *end = at + sum->length % sizeof sum->rest;
    uint64_t hash = PRIME5;
    if (sum->length >= sizeof sum->rest) {
        hash =
            rotate(sum->lanes[0], 1) + rotate(sum->lanes[1], 7) + rotate(sum->lanes[2], 12) + rotate(sum->lanes[3], 18);
        for (int i = 0; i < 4; i++)
            hash = (hash ^ mix(0, sum->lanes[i])) * PRIME1 + PRIME4;
    }
    hash += sum->length;
    for (; end - at >= 8; at += 8)
        hash = rotate(hash ^ mix(0, word_at(at)), 27) * PRIME1 + PRIME4;
    if (end - at >= 4) {
        uint32_t word;
        __builtin_memcpy(&word, at, sizeof word);
        hash = rotate(hash ^ word * PRIME1, 23) * PRIME2 + PRIME3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotate(hash ^ *at * PRIME5, 11) * PRIME1;
    hash = (hash ^ hash >> 33) * PRIME2;
    hash = (hash ^ hash >> 29) * PRIME3;
    return hash ^ hash >> 32;
}
