/* resident.c - see resident.h. */
#include "allocators/resident.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH_MOST    16
#define SAMPLES_LEAST 5
#define PAUSE_LEAST_S 0.005
#define PAUSE_MOST_S  0.1

struct tree {
    uint64_t unshared_pages, shared_most_pages;
};

static void add_process(struct tree *tree, pid_t process)
{
    char path[64];
    unsigned long long resident, shared;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*u %llu %llu", &resident, &shared) == 2 && resident >= shared) {
        tree->unshared_pages += resident - shared;
        if (shared > tree->shared_most_pages)
            tree->shared_most_pages = shared;
    }
    if (file)
        fclose(file);
}

/* Each thread has its own children. */
static void add_children(struct tree *tree, pid_t process, unsigned depth) // NOLINT(misc-no-recursion)
{
    char path[512];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *threads = depth < DEPTH_MOST ? opendir(path) : NULL;
    for (const struct dirent *entry; threads && (entry = readdir(threads));) {
        int child;
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)process, entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "re") : NULL;
        while (file && fscanf(file, "%d", &child) == 1) {
            add_process(tree, child);
            add_children(tree, child, depth + 1);
        }
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
}

uint64_t hw_resident_of_tree(pid_t process, bool itself)
{
    struct tree tree = {0};
    if (itself)
        add_process(&tree, process);
    add_children(&tree, process, 0);
    return (tree.unshared_pages + tree.shared_most_pages) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void hw_resident_add(struct hw_resident_course *course, double now_s, uint64_t bytes)
{
    const double pause = now_s - course->last_s;
    course->last_s = now_s;
    course->samples++;
    if (bytes >= course->peak_bytes) {
        course->peak_bytes = bytes;
        course->since_s = course->byte_seconds = 0;
    }
    course->since_s += pause;
    course->byte_seconds += pause * (double)bytes;
}

double hw_resident_next(const struct hw_resident_course *course)
{
    const double pause = course->last_s / 50;
    return course->last_s + (pause < PAUSE_LEAST_S ? PAUSE_LEAST_S : pause > PAUSE_MOST_S ? PAUSE_MOST_S : pause);
}

uint64_t hw_resident_after_peak(const struct hw_resident_course *course)
{
    return course->samples >= SAMPLES_LEAST && course->since_s > 0 ? (uint64_t)(course->byte_seconds / course->since_s)
                                                                   : 0;
}
