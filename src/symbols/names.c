/* names.c - interned strings of the symbolizer.
 *
 * One table for all threads under one lock: callers remember what they interned (per unit), so the lock is taken once
 * for each distinct name of a unit, not for each frame. */
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols_internal.h"

/* Strings are never freed one by one; they live in chunks. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    char text[];
};

struct entry {
    uint64_t hash;
    const char *text;     /* NULL: the entry is free */
    const char *readable; /* hw_names_readable's answer, NULL until asked */
};

struct hw_names {
    pthread_mutex_t lock; /* guards all below */
    struct chunk *chunk;
    struct entry *entry;          /* open addressing, at most three quarters full */
    size_t entry_count, capacity; /* capacity: a power of two */
};

enum { CHUNK_SIZE = 1 << 16, FIRST_CAPACITY = 1 << 10 };

struct hw_names *hw_names_new(void)
{
    struct hw_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->entry = calloc(FIRST_CAPACITY, sizeof *names->entry);
    if (!names->entry) {
        free(names);
        return NULL;
    }
    names->capacity = FIRST_CAPACITY;
    pthread_mutex_init(&names->lock, NULL);
    return names;
}

void hw_names_free(struct hw_names *names)
{
    if (!names)
        return;
    for (struct chunk *chunk = names->chunk, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(names->entry);
    pthread_mutex_destroy(&names->lock);
    free(names);
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u ^ length; /* FNV-1a over words of eight bytes, then mixed */
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; length; text++, length--)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static char *store_text(struct hw_names *names, const char *text, size_t length)
{
    struct chunk *chunk = names->chunk;
    if (!chunk || chunk->size - chunk->used <= length) {
        size_t size = length + 1 > CHUNK_SIZE ? length + 1 : CHUNK_SIZE;
        chunk = malloc(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        *chunk = (struct chunk){.next = names->chunk, .size = size};
        names->chunk = chunk;
    }
    char *copy = chunk->text + chunk->used;
    memcpy(copy, text, length + 1);
    chunk->used += length + 1;
    return copy;
}

/* The entry of TEXT, or the free one where it belongs. */
static struct entry *find_entry(const struct hw_names *names, const char *text, uint64_t hash)
{
    for (size_t i = hash & (names->capacity - 1);; i = (i + 1) & (names->capacity - 1)) {
        struct entry *entry = &names->entry[i];
        if (!entry->text || (entry->hash == hash && strcmp(entry->text, text) == 0))
            return entry;
    }
}

static bool grow(struct hw_names *names)
{
    struct hw_names larger = {.capacity = names->capacity * 2};
    larger.entry = calloc(larger.capacity, sizeof *larger.entry);
    if (!larger.entry)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        if (names->entry[i].text)
            *find_entry(&larger, names->entry[i].text, names->entry[i].hash) = names->entry[i];
    }
    free(names->entry);
    names->entry = larger.entry;
    names->capacity = larger.capacity;
    return true;
}

/* Under the lock. The entry stays where it is until the next call. */
static struct entry *intern_entry(struct hw_names *names, const char *text)
{
    size_t length = strlen(text);
    uint64_t hash = hash_text(text, length);
    struct entry *entry = find_entry(names, text, hash);
    if (entry->text)
        return entry;
    if (names->entry_count >= names->capacity / 4 * 3) {
        if (!grow(names))
            return NULL;
        entry = find_entry(names, text, hash);
    }
    const char *copy = store_text(names, text, length);
    if (!copy)
        return NULL;
    *entry = (struct entry){.hash = hash, .text = copy};
    names->entry_count++;
    return entry;
}

const char *hw_names_intern(struct hw_names *names, const char *text)
{
    pthread_mutex_lock(&names->lock);
    struct entry *entry = intern_entry(names, text);
    const char *interned = entry ? entry->text : NULL;
    pthread_mutex_unlock(&names->lock);
    return interned;
}

const char *hw_names_readable(struct hw_names *names, const char *linkage_name)
{
    pthread_mutex_lock(&names->lock);
    struct entry *entry = intern_entry(names, linkage_name);
    const char *own = entry ? entry->text : NULL, *readable = entry ? entry->readable : NULL;
    pthread_mutex_unlock(&names->lock);
    if (!own || readable)
        return readable;

    char *demangled = hw_demangle(own); /* slow: not under the lock */
    pthread_mutex_lock(&names->lock);
    if (demangled) {
        entry = intern_entry(names, demangled);
        readable = entry ? entry->text : NULL;
    } else {
        readable = own;
    }
    if (readable && (entry = intern_entry(names, own)))
        entry->readable = readable;
    pthread_mutex_unlock(&names->lock);
    free(demangled);
    return readable;
}
