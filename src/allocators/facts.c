/* facts.c - see facts.h. */
#include "allocators/facts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const styles[] = {"unknown", "sequential", "bibop", NULL};
static const char *const reuses[] = {"unknown", "lifo", "fifo", "mixed", "deferred", NULL};
static const char *const thread_caches[] = {"unknown", "none", "freeing", "owning", NULL};

/* ---- values: each takes the text behind "key =", trimmed, and returns what is wrong with it, or NULL ---- */

static const char *take_number(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (!isdigit((unsigned char)*text) || *end || errno || *value > INT64_MAX)
        return "the value is not a number of bytes";
    return NULL;
}

static const char *take_word(const char *text, const char *const *words, unsigned *value)
{
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) != 0)
            continue;
        *value = i;
        return NULL;
    }
    return "the value is none of the known words";
}

static const char *take_text(const char *text, char *target, size_t size)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "the value has control characters";
    return (size_t)snprintf(target, size, "%s", text) < size ? NULL : "the value is too long";
}

static const char *take_yes(const char *text, bool *value)
{
    *value = strcmp(text, "yes") == 0;
    return *value || strcmp(text, "no") == 0 ? NULL : "the value is neither yes nor no";
}

static const char *take_classes(struct hw_facts *facts, const char *text)
{
    facts->class_count = 0;
    while (*text) {
        char *end;
        errno = 0;
        const uint64_t size = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
        if (size == 0 || errno || size > INT64_MAX || (*end && *end != ' '))
            return "the value is not a list of sizes";
        if (facts->class_count == HW_FACTS_CLASSES_MOST)
            return "the value has too many sizes";
        if (facts->class_count && facts->classes[facts->class_count - 1] >= size)
            return "the sizes are not in ascending order";
        facts->classes[facts->class_count++] = size;
        text = end + strspn(end, " ");
    }
    return NULL;
}

/* ---- lines ---- */

enum kind { NUMBER, TEXT, STYLE, REUSE, CACHE, YES, CLASSES };

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset, size;
} keys[] = {
#define KEY(name, kind, field)                                                                                         \
    {                                                                                                                  \
        name, kind, offsetof(struct hw_facts, field), sizeof(((struct hw_facts *)0)->field)                            \
    }
    KEY("name", TEXT, name),
    KEY("version", TEXT, version),
    KEY("path", TEXT, path),
    KEY("build_id", TEXT, build_id),
    KEY("style", STYLE, style),
    KEY("reuse", REUSE, reuse),
    KEY("thread_cache", CACHE, thread_cache),
    KEY("alignment", NUMBER, alignment),
    KEY("alignment_small", NUMBER, alignment_small),
    KEY("medium", NUMBER, medium),
    KEY("large", NUMBER, large),
    KEY("large_returned", YES, large_returned),
    KEY("large_rises_to", NUMBER, large_rises_to),
    KEY("least", NUMBER, least),
    KEY("step", NUMBER, step),
    KEY("header", NUMBER, header),
    KEY("classes", CLASSES, classes),
    KEY("classes_step", NUMBER, classes_step),
#undef KEY
};

static const char *take_value(struct hw_facts *facts, const struct key *key, const char *text)
{
    char *target = (char *)facts + key->offset;
    unsigned word = 0;
    const char *wrong = NULL;
    switch (key->kind) {
    case NUMBER:
        return take_number(text, (uint64_t *)(void *)target);
    case TEXT:
        return take_text(text, target, key->size);
    case YES:
        return take_yes(text, (bool *)target);
    case CLASSES:
        return take_classes(facts, text);
    case STYLE:
        wrong = take_word(text, styles, &word);
        facts->style = (enum hw_allocator_style)word;
        return wrong;
    case REUSE:
        wrong = take_word(text, reuses, &word);
        facts->reuse = (enum hw_reuse_order)word;
        return wrong;
    case CACHE:
        wrong = take_word(text, thread_caches, &word);
        facts->thread_cache = (enum hw_thread_cache)word;
        return wrong;
    }
    return NULL;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* What is wrong with LINE, or NULL. */
static const char *take_line(struct hw_facts *facts, char *line)
{
    line = trim(line);
    if (!*line || *line == '#')
        return NULL;
    char *equals = strchr(line, '=');
    if (!equals)
        return "expected key = value";
    *equals = '\0';
    const char *name = trim(line), *value = trim(equals + 1);
    if (strncmp(value, "unknown", 7) == 0 && (value[7] == '\0' || value[7] == ' ')) {
        const char *reason = value + 7 + strspn(value + 7, " (");
        if (!facts->why[0] && *reason)
            snprintf(facts->why, sizeof facts->why, "%s: %.*s", name,
                     (int)(strlen(reason) - (reason[strlen(reason) - 1] == ')')), reason);
        return NULL;
    }
    if (strcmp(name, "large_by") == 0) {
        facts->large_by_brk = strcmp(value, "brk") == 0;
        return facts->large_by_brk || strcmp(value, "mmap") == 0 ? NULL : "the value is neither mmap nor brk";
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(name, keys[i].name) == 0)
            return take_value(facts, &keys[i], value);
    return NULL;
}

bool hw_facts_parse(struct hw_facts *facts, const char *text, const char *source, struct hw_error *error)
{
    memset(facts, 0, sizeof *facts);
    char *copy = strlen(text) <= HW_FACTS_TEXT_MOST ? strdup(text) : NULL;
    if (!copy) {
        hw_error_set(error, "%s: %s", source, strlen(text) > HW_FACTS_TEXT_MOST ? "too long" : "not enough memory");
        return false;
    }
    const char *wrong = NULL;
    unsigned number = 0;
    for (char *line = copy, *next; line && !wrong; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        wrong = take_line(facts, line);
    }
    free(copy);
    if (wrong)
        hw_error_set(error, "%s, line %u: %s", source, number, wrong);
    else if (!facts->name[0])
        hw_error_set(error, "%s: no line gives the name of the allocator (name = ...)", source);
    return !wrong && facts->name[0];
}

bool hw_facts_read(struct hw_facts *facts, const char *path, struct hw_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = malloc(HW_FACTS_TEXT_MOST + 2);
    ssize_t got = -1;
    size_t used = 0;
    if (file >= 0 && text) {
        while (used <= HW_FACTS_TEXT_MOST && (got = read(file, text + used, HW_FACTS_TEXT_MOST + 1 - used)) > 0)
            used += (size_t)got;
    }
    const int problem = errno;
    if (file >= 0)
        close(file);
    bool fine = got >= 0;
    if (!fine)
        hw_error_set(error, "cannot read '%s': %s", path, strerror(problem));
    if (fine) {
        text[used] = '\0';
        fine = hw_facts_parse(facts, text, path, error);
    }
    free(text);
    return fine;
}
