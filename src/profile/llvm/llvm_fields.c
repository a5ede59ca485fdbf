/* llvm_fields.c - fields of LLVM's memory info block, GUIDs, and what the other files of the formats share. */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

const struct hw_llvm_field_rule hw_llvm_fields[HW_LLVM_FIELDS] = {
    [HW_LLVM_ALLOC_COUNT] = {"AllocCount", 4},
    [HW_LLVM_TOTAL_ACCESSES] = {"TotalAccessCount", 8},
    [HW_LLVM_MIN_ACCESSES] = {"MinAccessCount", 8},
    [HW_LLVM_MAX_ACCESSES] = {"MaxAccessCount", 8},
    [HW_LLVM_TOTAL_SIZE] = {"TotalSize", 8},
    [HW_LLVM_MIN_SIZE] = {"MinSize", 4},
    [HW_LLVM_MAX_SIZE] = {"MaxSize", 4},
    [HW_LLVM_ALLOC_TIME] = {"AllocTimestamp", 4},
    [HW_LLVM_FREE_TIME] = {"DeallocTimestamp", 4},
    [HW_LLVM_TOTAL_LIFETIME] = {"TotalLifetime", 8},
    [HW_LLVM_MIN_LIFETIME] = {"MinLifetime", 4},
    [HW_LLVM_MAX_LIFETIME] = {"MaxLifetime", 4},
    [HW_LLVM_ALLOC_CPU] = {"AllocCpuId", 4},
    [HW_LLVM_FREE_CPU] = {"DeallocCpuId", 4},
    [HW_LLVM_MIGRATED_CPU] = {"NumMigratedCpu", 4},
    [HW_LLVM_LIFETIME_OVERLAPS] = {"NumLifetimeOverlaps", 4},
    [HW_LLVM_SAME_ALLOC_CPU] = {"NumSameAllocCpu", 4},
    [HW_LLVM_SAME_FREE_CPU] = {"NumSameDeallocCpu", 4},
    [HW_LLVM_DATA_TYPE] = {"DataTypeId", 8},
    [HW_LLVM_TOTAL_DENSITY] = {"TotalAccessDensity", 8},
    [HW_LLVM_MIN_DENSITY] = {"MinAccessDensity", 4},
    [HW_LLVM_MAX_DENSITY] = {"MaxAccessDensity", 4},
    [HW_LLVM_TOTAL_LIFETIME_DENSITY] = {"TotalLifetimeAccessDensity", 8},
    [HW_LLVM_MIN_LIFETIME_DENSITY] = {"MinLifetimeAccessDensity", 4},
    [HW_LLVM_MAX_LIFETIME_DENSITY] = {"MaxLifetimeAccessDensity", 4},
    [HW_LLVM_HISTOGRAM_SIZE] = {"AccessHistogramSize", 4},
    [HW_LLVM_HISTOGRAM] = {"AccessHistogram", 8},
};

uint64_t hw_llvm_saturated(enum hw_llvm_field field, uint64_t value)
{
    return hw_llvm_fields[field].size == 4 && value > UINT32_MAX ? UINT32_MAX : value;
}

static void add(uint64_t *to, uint64_t value)
{
    if (__builtin_add_overflow(*to, value, to))
        *to = UINT64_MAX;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether B's times and CPUs are those of the later block: an order of all of them, so that it does not matter which
 * block is added to which. */
static bool is_later(const uint64_t *a, const uint64_t *b)
{
    static const uint8_t fields[] = {HW_LLVM_ALLOC_TIME, HW_LLVM_FREE_TIME, HW_LLVM_ALLOC_CPU, HW_LLVM_FREE_CPU};
    for (size_t i = 0; i < sizeof fields; i++)
        if (a[fields[i]] != b[fields[i]])
            return b[fields[i]] > a[fields[i]];
    return false;
}

void hw_llvm_mib_add(struct hw_llvm_mib *to, const struct hw_llvm_mib *from)
{
    static const uint8_t sums[] = {HW_LLVM_ALLOC_COUNT,           HW_LLVM_TOTAL_ACCESSES, HW_LLVM_TOTAL_SIZE,
                                   HW_LLVM_TOTAL_LIFETIME,        HW_LLVM_MIGRATED_CPU,   HW_LLVM_LIFETIME_OVERLAPS,
                                   HW_LLVM_SAME_ALLOC_CPU,        HW_LLVM_SAME_FREE_CPU,  HW_LLVM_TOTAL_DENSITY,
                                   HW_LLVM_TOTAL_LIFETIME_DENSITY};
    static const uint8_t least[] = {HW_LLVM_MIN_ACCESSES, HW_LLVM_MIN_SIZE, HW_LLVM_MIN_LIFETIME, HW_LLVM_MIN_DENSITY,
                                    HW_LLVM_MIN_LIFETIME_DENSITY};
    static const uint8_t most[] = {HW_LLVM_MAX_ACCESSES, HW_LLVM_MAX_SIZE, HW_LLVM_MAX_LIFETIME, HW_LLVM_MAX_DENSITY,
                                   HW_LLVM_MAX_LIFETIME_DENSITY};
    static const uint8_t last[] = {HW_LLVM_ALLOC_TIME, HW_LLVM_FREE_TIME, HW_LLVM_ALLOC_CPU, HW_LLVM_FREE_CPU};
    uint64_t *a = to->field;
    const uint64_t *b = from->field;
    if (!b[HW_LLVM_ALLOC_COUNT])
        return;
    if (!a[HW_LLVM_ALLOC_COUNT]) {
        *to = *from;
        a[HW_LLVM_HISTOGRAM_SIZE] = a[HW_LLVM_HISTOGRAM] = 0; /* the cells are the context's */
        return;
    }
    const bool later = is_later(a, b);
    for (size_t i = 0; i < sizeof sums; i++)
        add(&a[sums[i]], b[sums[i]]);
    for (size_t i = 0; i < sizeof least; i++)
        a[least[i]] = smaller(a[least[i]], b[least[i]]);
    for (size_t i = 0; i < sizeof most; i++)
        a[most[i]] = greater(a[most[i]], b[most[i]]);
    for (size_t i = 0; i < sizeof last; i++)
        a[last[i]] = later ? b[last[i]] : a[last[i]];
    a[HW_LLVM_DATA_TYPE] = a[HW_LLVM_DATA_TYPE] == b[HW_LLVM_DATA_TYPE] ? a[HW_LLVM_DATA_TYPE] : 0;
}

void hw_llvm_profile_free(struct hw_llvm_profile *profile)
{
    free(profile->segments);
    free(profile->frames);
    free(profile->stacks);
    free(profile->contexts);
    free(profile->histograms);
    free(profile->variables);
    *profile = (struct hw_llvm_profile){0};
}

/* ---- bytes ---- */

void hw_llvm_put_bytes(struct hw_llvm_bytes *bytes, const void *data, size_t size)
{
    if (bytes->failed || size == 0)
        return;
    if (!HW_GROW(bytes->data, bytes->capacity, bytes->used + size)) {
        bytes->failed = true;
        return;
    }
    memcpy(bytes->data + bytes->used, data, size);
    bytes->used += size;
}

void hw_llvm_put(struct hw_llvm_bytes *bytes, uint64_t value, unsigned size)
{
    unsigned char text[8];
    for (unsigned i = 0; i < size; i++)
        text[i] = (unsigned char)(value >> 8 * i);
    hw_llvm_put_bytes(bytes, text, size);
}

void hw_llvm_set(struct hw_llvm_bytes *bytes, size_t offset, uint64_t value)
{
    for (unsigned i = 0; i < 8 && !bytes->failed; i++)
        bytes->data[offset + i] = (unsigned char)(value >> 8 * i);
}

void hw_llvm_align(struct hw_llvm_bytes *bytes)
{
    static const unsigned char zeros[8];
    hw_llvm_put_bytes(bytes, zeros, -bytes->used % 8);
}

/* ---- GUIDs: MD5 (RFC 1321) ---- */

/* Sines of 1, 2, … as RFC 1321 has them: floor(2^32 * |sin(i)|). */
static const uint32_t md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static void md5_block(uint32_t state[4], const unsigned char block[64])
{
    static const unsigned char rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const unsigned char factor[4] = {1, 5, 3, 7}, offset[4] = {0, 1, 5, 0};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned i = 0; i < 64; i++) {
        const unsigned round = i / 16, word = (factor[round] * i + offset[round]) % 16;
        const uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                               : round == 1 ? (b & d) | (c & ~d)
                               : round == 2 ? b ^ c ^ d
                                            : c ^ (b | ~d);
        const uint32_t sum = a + mixed + md5_sines[i] + (uint32_t)hw_llvm_get(block + (size_t)4 * word, 4);
        const unsigned turn = rotations[round][i % 4];
        a = d;
        d = c;
        c = b;
        b += sum << turn | sum >> (32 - turn);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static uint64_t md5_word(const char *text, size_t size)
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    unsigned char tail[128] = {0};
    size_t whole = size / 64 * 64, rest = size - whole, tail_size = rest < 56 ? 64 : 128;
    for (size_t i = 0; i < whole; i += 64)
        md5_block(state, (const unsigned char *)text + i);
    memcpy(tail, text + whole, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[tail_size - 8 + i] = (unsigned char)((uint64_t)size * 8 >> 8 * i);
    for (size_t i = 0; i < tail_size; i += 64)
        md5_block(state, tail + i);
    return (uint64_t)state[1] << 32 | state[0];
}

/* The last place of PART in TEXT (SIZE bytes) if no dot follows it, else SIZE. */
static size_t suffix_start(const char *text, size_t size, const char *part)
{
    const size_t length = strlen(part);
    for (size_t i = size; i-- > 0;) {
        if (text[i] != '.')
            continue;
        /* the last dot ends PART */
        if (i + 1 >= length && !memcmp(text + i + 1 - length, part, length))
            return i + 1 - length;
        return size;
    }
    return size;
}

uint64_t hw_llvm_guid(const char *linkage_name)
{
    size_t size = strlen(linkage_name);
    size = suffix_start(linkage_name, size, ".llvm.");
    size = suffix_start(linkage_name, size, ".part.");
    return md5_word(linkage_name, size);
}
