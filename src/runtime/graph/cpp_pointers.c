/* cpp_pointers.c - pointers into the middle of a block that a C++ program has in place of one to its begin, as
 * Valgrind's memcheck knows them (--leak-check-heuristics), and those of Rust's hash tables. Each rule compares words of
 * the block with its size or with each other, so that few other pointers fit. */
#include "runtime/graph/internal.h"

#define SMALLEST_COOKIE 8u /* in front of arrays; 16 where elements are aligned to that */
#define STRING_HEADER   24u
#define TABLE_GROUP     16u /* bytes of a hash table that are compared at once */
#define TABLE_LEAST     4u
#define TABLE_EMPTY     0xff
#define TABLE_DELETED   0x80

/* new T[count]: the count lies in front of the first element. */
static bool is_array(uintptr_t begin, uint64_t size, uintptr_t address)
{
    const uint64_t cookie = address - begin;
    uint64_t count;
    return (cookie == SMALLEST_COOKIE || cookie == 2 * SMALLEST_COOKIE) &&
           hw_scan_word(address - sizeof count, &count) && count && count <= size && (size - cookie) % count == 0;
}

/* Allocators on top of malloc that put the size in front. */
static bool is_after_size(uintptr_t begin, uint64_t size, uintptr_t address)
{
    uint64_t word;
    return address - begin == sizeof word && hw_scan_word(begin, &word) && word == size - sizeof word;
}

/* std::string before C++11: length, capacity, references, then the text. */
static bool is_string(uintptr_t begin, uint64_t size, uintptr_t address)
{
    uint64_t length, capacity;
    return address - begin == STRING_HEADER && hw_scan_word(begin, &length) &&
           hw_scan_word(begin + sizeof length, &capacity) && length <= capacity && size == STRING_HEADER + capacity + 1;
}

/* Of a table of virtual functions, which lies in memory from a file that is not written to. */
static bool read_offset_to_top(uintptr_t object, int64_t *offset)
{
    uint64_t table, word;
    if (!hw_scan_word(object, &table) || table < 2 * sizeof table)
        return false;
    const struct hw_span *span = hw_span_of(table);
    if (!span || !span->file || span->writable || !hw_scan_word(table - 2 * sizeof table, &word))
        return false;
    *offset = (int64_t)word;
    return true;
}

/* The second base class of an object says how far it is from the begin, which is the first one's. */
static bool is_base(uintptr_t begin, uint64_t size, uintptr_t address)
{
    int64_t offset;
    return size >= 2 * sizeof offset && read_offset_to_top(address, &offset) && offset == -(int64_t)(address - begin) &&
           read_offset_to_top(begin, &offset) && offset == 0;
}

/* COUNT bytes of a hash table: a byte with its highest bit set says EMPTY or DELETED, and an eighth at least is EMPTY. */
static bool are_of_table(uintptr_t address, uint64_t count)
{
    uint64_t empty = 0;
    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word;
        if (!hw_scan_word(address + at, &word))
            return false;
        for (uint64_t i = 0; i < sizeof word && at + i < count; i++) {
            const uint8_t byte = (uint8_t)(word >> 8 * i);
            if (byte > TABLE_DELETED && byte != TABLE_EMPTY)
                return false;
            empty += byte == TABLE_EMPTY;
        }
    }
    return empty >= count / 8;
}

/* Rust's HashMap (hashbrown): entries, then one byte for each of them, a power of two, then the first 16 of these bytes
 * again; with less than 16 entries bytes EMPTY lie between. Pointers lead to the bytes. */
static bool is_hash_table(uintptr_t begin, uint64_t size, uintptr_t address)
{
    const uint64_t bytes = begin + size - address, count = bytes - TABLE_GROUP;
    const uint64_t mirrored = count < TABLE_GROUP ? count : TABLE_GROUP;
    if (address % TABLE_GROUP || bytes < TABLE_GROUP + TABLE_LEAST || count & (count - 1) || address - begin < count)
        return false;
    for (uint64_t at = 0; at < TABLE_GROUP; at += sizeof(uint64_t)) {
        const uintptr_t second = address + (count < TABLE_GROUP ? TABLE_GROUP : count) + at;
        const uint64_t rest = at < mirrored ? mirrored - at : 0; /* bytes of this word that are there twice */
        const uint64_t mask = rest < sizeof(uint64_t) ? (1ull << 8 * rest) - 1 : UINT64_MAX;
        uint64_t word, again;
        if (!hw_scan_word(address + at, &word) || (word | mask) != UINT64_MAX ||
            (rest && (!hw_scan_word(second, &again) || (word ^ again) & mask)))
            return false;
    }
    return are_of_table(address, count);
}

bool hw_cpp_points_inside(uintptr_t begin, uint64_t size, uintptr_t address)
{
    if (address & 7 || address <= begin || address - begin > size - sizeof(uint64_t) || size < 2 * sizeof(uint64_t))
        return false;
    return is_array(begin, size, address) || is_after_size(begin, size, address) || is_string(begin, size, address) ||
           is_base(begin, size, address) || is_hash_table(begin, size, address);
}
