/* index.h - for everything outside the runtime: a hash table from 128-bit keys to numbers, and a growing array whose
 * elements never move. */
#ifndef HW_BASE_INDEX_H
#define HW_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key: unique by itself, or a hash good enough that equal keys mean equal things. */
struct hw_key {
    uint64_t low, high;
};

/* XXH3 of up to two texts of bytes. */
struct hw_key hw_key_of(const void *first, size_t first_size, const void *second, size_t second_size);

struct hw_index_place {
    struct hw_key key;
    uint64_t value; /* + 1; 0: the place is free */
};

/* Open addressing. Zero-initialise. */
struct hw_index {
    struct hw_index_place *place;
    size_t mask; /* places - 1; 0: there are none yet */
    size_t count;
};

#define HW_INDEX_NONE UINT32_MAX

/* Room for EXPECTED keys, as many of which can be stored without further memory. False when there is none. */
bool hw_index_make(struct hw_index *index, size_t expected);
/* The number stored for KEY. When there is none, NEXT is stored and returned, and *ADDED is set, else cleared.
 * HW_INDEX_NONE when there is no memory. */
uint32_t hw_index_intern(struct hw_index *index, struct hw_key key, uint32_t next, bool *added);
/* HW_INDEX_NONE when there is none. */
uint32_t hw_index_find(const struct hw_index *index, struct hw_key key);
void hw_index_free(struct hw_index *index);

static inline size_t hw_index_start(const struct hw_index *index, struct hw_key key)
{
    const uint64_t mixed = (key.low ^ key.high * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    return (size_t)(mixed ^ mixed >> 32) & index->mask;
}

/* Brings the place of KEY nearer to the processor. */
static inline void hw_index_prefetch(const struct hw_index *index, struct hw_key key)
{
    if (index->mask)
        __builtin_prefetch(&index->place[hw_index_start(index, key)]);
}

#define HW_STORE_CHUNK 512u

/* Elements of SIZE bytes, zeroed, in chunks; INDEX: their numbers by key, where there are any. Initialise with
 * {.size = …}. */
struct hw_store {
    struct hw_index index;
    size_t size;
    char **chunk;
    uint32_t count;
    size_t chunk_count, chunk_room;
};

/* A new element at the end; NULL when there is no memory or there are as many as an index can name. */
void *hw_store_push(struct hw_store *store);
void hw_store_free(struct hw_store *store);

/* The number of the entry that KEY leads to; of a new one, which is zero, when there is none yet (ADDED).
 * HW_INDEX_NONE: no memory. */
uint32_t hw_store_number(struct hw_store *store, struct hw_key key, bool *added);
/* The entry itself. NULL: no memory. */
void *hw_store_intern(struct hw_store *store, struct hw_key key, bool *added);
static inline void *hw_store_at(const struct hw_store *store, uint32_t index)
{
    return store->chunk[index / HW_STORE_CHUNK] + (size_t)(index % HW_STORE_CHUNK) * store->size;
}

#endif
