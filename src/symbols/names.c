/* names.c - interned strings of the symbolizer.
 *
 * One table for all threads under one lock: callers remember what they interned (per unit), so the lock is taken once
 * for each distinct name of a unit, not for each frame. */
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "symbols/symbols_internal.h"

/* Strings are never freed one by one; they live in chunks. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    char text[];
};

struct entry {
    const char *text;
    const char *readable; /* hw_names_readable's answer, NULL until asked */
};

struct hw_names {
    pthread_mutex_t lock; /* guards all below */
    struct chunk *chunk;
    struct hw_store entries;
};

enum { CHUNK_SIZE = 1 << 16 };

struct hw_names *hw_names_new(void)
{
    struct hw_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->entries.size = sizeof(struct entry);
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
    hw_store_free(&names->entries);
    pthread_mutex_destroy(&names->lock);
    free(names);
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

/* Under the lock. */
static struct entry *intern_entry(struct hw_names *names, const char *text)
{
    const size_t length = strlen(text);
    bool added;
    struct entry *entry = hw_store_intern(&names->entries, hw_key_of("", 0, text, length), &added);
    if (entry && !entry->text)
        entry->text = store_text(names, text, length);
    return entry && entry->text ? entry : NULL;
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
