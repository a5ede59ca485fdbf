/* intern.c - see intern.h. */
#include "report/view/intern.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return hash ^ hash >> 29;
}

static bool grow(struct hw_intern *strings)
{
    const size_t capacity = strings->capacity ? strings->capacity * 2 : 256;
    struct hw_intern_entry *table = calloc(capacity, sizeof *table);
    size_t *at = realloc(strings->at, capacity / 2 * sizeof *at);
    strings->at = at ? at : strings->at;
    if (!table || !at) {
        free(table);
        return false;
    }
    for (size_t i = 0; i < strings->capacity; i++) {
        if (!strings->table[i].number)
            continue;
        size_t slot = strings->table[i].hash & (capacity - 1);
        while (table[slot].number)
            slot = (slot + 1) & (capacity - 1);
        table[slot] = strings->table[i];
    }
    free(strings->table);
    strings->table = table;
    strings->capacity = capacity;
    return true;
}

uint32_t hw_intern(struct hw_intern *strings, const char *text)
{
    const size_t size = strlen(text);
    if (!size)
        return 0;
    if (strings->failed || (2 * ((size_t)strings->count + 1) > strings->capacity && !grow(strings))) {
        strings->failed = true;
        return 0;
    }
    const uint64_t hash = hash_of(text, size);
    size_t slot = hash & (strings->capacity - 1);
    for (; strings->table[slot].number; slot = (slot + 1) & (strings->capacity - 1)) {
        const struct hw_intern_entry *entry = &strings->table[slot];
        if (entry->hash == hash && entry->size == size && !memcmp(strings->text.data + entry->at, text, size))
            return entry->number;
    }
    const size_t at = strings->text.used;
    hw_buffer_bytes(&strings->text, text, size + 1);
    if (strings->text.failed) {
        strings->failed = true;
        return 0;
    }
    strings->at[strings->count] = at;
    strings->table[slot] = (struct hw_intern_entry){at, size, hash, ++strings->count};
    return strings->count;
}

void hw_intern_free(struct hw_intern *strings)
{
    hw_buffer_free(&strings->text);
    free(strings->table);
    free(strings->at);
    *strings = (struct hw_intern){0};
}
