/* index.c - see index.h. */
#include "base/index.h"

#include <stdlib.h>
#include <xxhash.h>

#include "base/growing.h"

/* ---- from keys to numbers ---- */

static struct hw_index_place *find_place(const struct hw_index *index, struct hw_key key)
{
    for (size_t i = hw_index_start(index, key);; i = (i + 1) & index->mask) {
        struct hw_index_place *place = &index->place[i];
        if (!place->value || (place->key.low == key.low && place->key.high == key.high))
            return place;
    }
}

struct hw_key hw_key_of(const void *first, size_t first_size, const void *second, size_t second_size)
{
    const XXH128_hash_t a = XXH3_128bits(first, first_size);
    const XXH128_hash_t b = XXH3_128bits_withSeed(second, second_size, a.low64 ^ first_size);
    return (struct hw_key){b.low64, b.high64 ^ a.high64};
}

bool hw_index_make(struct hw_index *index, size_t expected)
{
    size_t places = 64;
    while (places < expected * 2)
        places *= 2;
    *index = (struct hw_index){calloc(places, sizeof *index->place), places - 1, 0};
    if (!index->place)
        index->mask = 0;
    return index->place;
}

static bool grow(struct hw_index *index)
{
    const size_t places = index->mask ? (index->mask + 1) * 2 : 64;
    struct hw_index larger = {calloc(places, sizeof *larger.place), places - 1, index->count};
    if (!larger.place)
        return false;
    for (size_t i = 0; index->mask && i <= index->mask; i++)
        if (index->place[i].value)
            *find_place(&larger, index->place[i].key) = index->place[i];
    free(index->place);
    *index = larger;
    return true;
}

uint32_t hw_index_intern(struct hw_index *index, struct hw_key key, uint32_t next, bool *added)
{
    *added = false;
    if (index->count >= index->mask / 8 * 5 && !grow(index))
        return HW_INDEX_NONE;
    struct hw_index_place *place = find_place(index, key);
    if (!place->value) {
        *place = (struct hw_index_place){key, (uint64_t)next + 1};
        index->count++;
        *added = true;
    }
    return (uint32_t)(place->value - 1);
}

uint32_t hw_index_find(const struct hw_index *index, struct hw_key key)
{
    const struct hw_index_place *place = index->mask ? find_place(index, key) : NULL;
    return place && place->value ? (uint32_t)(place->value - 1) : HW_INDEX_NONE;
}

void hw_index_free(struct hw_index *index)
{
    free(index->place);
    *index = (struct hw_index){0};
}

/* ---- elements that stay where they are ---- */

static bool add_chunk(struct hw_store *store)
{
    if (!HW_GROW(store->chunk, store->chunk_room, store->chunk_count + 1))
        return false;
    char *chunk = calloc(HW_STORE_CHUNK, store->size);
    if (!chunk)
        return false;
    store->chunk[store->chunk_count++] = chunk;
    return true;
}

/* Makes room for one more element. */
static bool has_room(struct hw_store *store)
{
    return store->count < HW_INDEX_NONE - 1 && (store->count / HW_STORE_CHUNK < store->chunk_count || add_chunk(store));
}

void *hw_store_push(struct hw_store *store)
{
    return has_room(store) ? hw_store_at(store, store->count++) : NULL;
}

void hw_store_free(struct hw_store *store)
{
    for (size_t i = 0; i < store->chunk_count; i++)
        free(store->chunk[i]);
    free(store->chunk);
    hw_index_free(&store->index);
    *store = (struct hw_store){.size = store->size};
}

uint32_t hw_store_number(struct hw_store *store, struct hw_key key, bool *added)
{
    *added = false;
    if (!has_room(store)) /* first, so that no number is given that leads nowhere */
        return HW_INDEX_NONE;
    const uint32_t number = hw_index_intern(&store->index, key, store->count, added);
    store->count += *added;
    return number;
}

void *hw_store_intern(struct hw_store *store, struct hw_key key, bool *added)
{
    const uint32_t number = hw_store_number(store, key, added);
    return number == HW_INDEX_NONE ? NULL : hw_store_at(store, number);
}
