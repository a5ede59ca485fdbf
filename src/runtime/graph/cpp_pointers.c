/* cpp_pointers.c - pointers into the middle of a block that a C++ program has in place of one to its begin, as
 * Valgrind's memcheck knows them (--leak-check-heuristics). Each rule compares words of the block with its size or with
 * each other, so that few other pointers fit. */
#include "runtime/graph/internal.h"

#define SMALLEST_COOKIE 8u /* in front of arrays; 16 where elements are aligned to that */
#define STRING_HEADER   24u

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

bool hw_cpp_points_inside(uintptr_t begin, uint64_t size, uintptr_t address)
{
    if (address & 7 || address <= begin || address - begin > size - sizeof(uint64_t) || size < 2 * sizeof(uint64_t))
        return false;
    return is_array(begin, size, address) || is_after_size(begin, size, address) || is_string(begin, size, address) ||
           is_base(begin, size, address);
}
