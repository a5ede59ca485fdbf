/* visited.c - what a search in a running process has found, as sections of a profile of that moment. */
#include "cli/visiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/container/write.h"
#include "profile/visit.h"

#define PARTS_MOST 8
#define NAME_MOST  16 /* of a thread, with its end */

struct adding {
    struct hw_recorded *recorded;
    struct hw_section_source sections[2 + PARTS_MOST + 1];
    size_t count;
    char *names; /* of threads: the section STRINGS, which begins with an empty one */
    size_t names_size;
};

static bool fail(struct adding *adding, const char *why)
{
    hw_error_set(&adding->recorded->error, "process %d %s", (int)adding->recorded->pid, why);
    return false;
}

static void add(struct adding *adding, uint32_t type, uint32_t entry_size, const void *bytes, size_t size)
{
    adding->sections[adding->count++] = (struct hw_section_source){type, entry_size, 1, bytes, size};
}

static bool is_of_thread(const struct hw_keeper *keeper)
{
    return keeper->kind == HW_KEEPER_THREAD || keeper->kind == HW_KEEPER_THREAD_LOCAL ||
           keeper->kind == HW_KEEPER_STACK || keeper->kind == HW_KEEPER_REGISTERS || keeper->kind == HW_KEEPER_FRAME;
}

/* Threads of a copy have no names: those of the process have. */
static bool name_threads(struct adding *adding, struct hw_keeper *keepers, size_t count)
{
    adding->names = calloc(count + 1, NAME_MOST);
    if (!adding->names)
        return fail(adding, "could not be searched: not enough memory");
    adding->names_size = 1;
    for (size_t i = 0; i < count; i++) {
        char path[64], name[NAME_MOST + 1];
        const bool again = i && keepers[i].tid == keepers[i - 1].tid && keepers[i - 1].name;
        if (!is_of_thread(&keepers[i]))
            continue;
        if (again) {
            keepers[i].name = keepers[i - 1].name;
            continue;
        }
        snprintf(path, sizeof path, "task/%u/comm", keepers[i].tid);
        if (!hw_read_proc(adding->recorded->pid, path, name, sizeof name))
            continue; /* it has ended */
        name[strcspn(name, "\n")] = '\0';
        name[NAME_MOST - 1] = '\0';
        keepers[i].name = (uint32_t)adding->names_size;
        memcpy(adding->names + adding->names_size, name, strlen(name) + 1);
        adding->names_size += strlen(name) + 1;
    }
    if (adding->names_size > 1)
        add(adding, HW_SECTION_STRINGS, 1, adding->names, adding->names_size);
    return true;
}

/* The process wrote them: nothing is sure. */
static bool add_parts(struct adding *adding, const struct hw_visited *visited)
{
    for (size_t at = 0; at < visited->keeps_size;) {
        const struct hw_visit_part *part = (const void *)((char *)visited->keeps + at);
        if (visited->keeps_size - at < sizeof *part || part->bytes > visited->keeps_size - at - sizeof *part ||
            !part->entry_size || part->bytes % part->entry_size || adding->count == 2 + PARTS_MOST ||
            part->section < HW_SECTION_KEEPERS || part->section > HW_SECTION_KEEP_INFO)
            return fail(adding, "has given a result that cannot be");
        add(adding, part->section, part->entry_size, part + 1, part->bytes);
        at += sizeof *part + ((part->bytes + 7) & ~7ull);
    }
    for (size_t i = 0; i < adding->count; i++) {
        const struct hw_section_source *section = &adding->sections[i];
        if (section->type == HW_SECTION_KEEPERS && section->entry_size == sizeof(struct hw_keeper))
            return name_threads(adding, (void *)(uintptr_t)section->bytes, section->size / section->entry_size);
    }
    return true;
}

bool hw_visited_add(struct hw_recorded *recorded, const struct hw_visited *visited, const char *path)
{
    struct adding adding = {.recorded = recorded};
    add(&adding, HW_SECTION_LEAKS, sizeof *visited->leaks, visited->leaks,
        visited->leak_count * sizeof *visited->leaks);
    add(&adding, HW_SECTION_LEAK_INFO, sizeof visited->info, &visited->info, sizeof visited->info);
    const bool fine =
        add_parts(&adding, visited) && hw_profile_add_sections(path, adding.sections, adding.count, &recorded->error);
    free(adding.names);
    return fine;
}

void hw_visited_free(struct hw_visited *visited)
{
    free(visited->leaks);
    free(visited->keeps);
}
