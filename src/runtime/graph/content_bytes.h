/* content_bytes.h - the bytes of a block: their hash, and which of them are in use. Of contents.c. */
#ifndef HW_RUNTIME_GRAPH_CONTENT_BYTES_H
#define HW_RUNTIME_GRAPH_CONTENT_BYTES_H

#include "runtime/runtime.h"

#define FILL 0xd3a95c87e1b46df2ul /* what new blocks are filled with, by eight bytes */

extern uint64_t hw_content_key[4] HW_HIDDEN; /* of the hash: new in each process */

static inline uint64_t word_at(const char *at)
{
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* At most 8 bytes at AT, as a number. */
static inline uint64_t part_at(const char *at, size_t size)
{
    uint64_t word = 0;
    for (size_t i = size; i-- > 0;)
        word = word << 8 | (uint8_t)at[i];
    return word;
}

/* Of a content: its size, then its bytes, 32 at a time; at the end zeros behind them. */
struct hash {
    uint64_t left, right;
    uint32_t kept; /* bytes that do not make up 32 yet */
    char bytes[32];
};

static inline struct hash hash_begin(uint64_t size)
{
    return (struct hash){.left = size ^ hw_content_key[0], .right = hw_content_key[1]};
}

static inline void hash_left(struct hash *hash, uint64_t first, uint64_t second)
{
    hash->left = fold(hash->left ^ first, second ^ hw_content_key[2]);
}

static inline void hash_right(struct hash *hash, uint64_t first, uint64_t second)
{
    hash->right = fold(hash->right ^ first, second ^ hw_content_key[3]);
}

/* The whole parts of SIZE bytes at AT; how many are left. */
static inline size_t hash_whole(struct hash *hash, const char *at, size_t size)
{
    struct hash sum = *hash;
    for (; size >= 32; at += 32, size -= 32) {
        hash_left(&sum, word_at(at), word_at(at + 8));
        hash_right(&sum, word_at(at + 16), word_at(at + 24));
    }
    hash->left = sum.left;
    hash->right = sum.right;
    return size;
}

static inline uint64_t hash_end(struct hash *hash, const char *at, size_t size)
{
    uint64_t word[4] = {0};
    for (size_t i = 0; i < size; i += 8)
        word[i / 8] = size - i >= 8 ? word_at(at + i) : part_at(at + i, size - i);
    if (size)
        hash_left(hash, word[0], word[1]);
    if (size > 16)
        hash_right(hash, word[2], word[3]);
    const uint64_t sum = fold(hash->left ^ hw_content_key[3], hash->right ^ hw_content_key[2]);
    return sum ? sum : 1;
}

/* The next SIZE bytes of a content that does not lie in one piece. */
static inline void hash_piece(struct hash *hash, const char *at, size_t size)
{
    for (; size && hash->kept; at++, size--) {
        hash->bytes[hash->kept++] = *at;
        if (hash->kept == sizeof hash->bytes) {
            hash_whole(hash, hash->bytes, sizeof hash->bytes);
            hash->kept = 0;
        }
    }
    const size_t left = hash_whole(hash, at, size);
    for (size_t i = size - left; i < size; i++)
        hash->bytes[hash->kept++] = at[i];
}

/* The byte that a new block is filled with at ADDRESS. */
static inline char filling_at(uintptr_t address)
{
    return (char)(FILL >> (address & 7) * 8);
}

/* How many of SIZE bytes at AT, which lie at ADDRESS, are in use: up to the last one that is neither zero nor filling.
 */
static inline size_t used_of(const char *at, uintptr_t address, size_t size, bool filled)
{
    while (size && ((address + size) & 7 || size < 8)) {
        if (at[size - 1] && !(filled && at[size - 1] == filling_at(address + size - 1)))
            return size;
        size--;
    }
    while (size >= 8) {
        const uint64_t word = word_at(at + size - 8);
        if (word && !(filled && word == FILL))
            break;
        size -= 8;
    }
    while (size && (!at[size - 1] || (filled && at[size - 1] == filling_at(address + size - 1))))
        size--;
    return size;
}

/* Of them that are as they were filled: in runs of two and more, and not inside of words that were written around them.
 */
static inline size_t filling_of(const char *at, uintptr_t address, size_t size)
{
    size_t bytes = 0, run = 0, i = 0;
    while (i < size) {
        const uint64_t other = !((address + i) & 7) && size - i >= 8 ? word_at(at + i) ^ FILL : 1;
        if (!other) {
            run += 8;
            i += 8;
            continue;
        }
        const bool whole = !((address + i) & 7) && size - i >= 8;
        const bool same = at[i] == filling_at(address + i);
        run += whole ? (size_t)__builtin_ctzl(other) / 8 : same;
        if (whole || !same) {
            bytes += run > 1 ? run : 0;
            run = whole ? (size_t)__builtin_clzl(other) / 8 : 0;
        }
        i += whole ? 8 : 1;
    }
    return run > 1 ? bytes + run : bytes;
}

/* Pages of zeros among SIZE bytes at AT. */
static inline uint64_t zero_pages_in(const char *at, size_t size)
{
    uint64_t bytes = 0;
    for (size_t page = -(uintptr_t)at & (HW_PAGE - 1); page + HW_PAGE <= size; page += HW_PAGE) {
        size_t i = 0;
        while (i < HW_PAGE && !word_at(at + page + i))
            i += 8;
        bytes += i == HW_PAGE ? HW_PAGE : 0;
    }
    return bytes;
}

#endif
