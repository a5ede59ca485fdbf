/* packages.c - see packages.h. */
#include "report/text/packages.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Folders moved below /usr: lists and paths may have either name. */
static const char *without_usr(const char *path)
{
    return strncmp(path, "/usr/", 5) ? path : path + 4;
}

/* Of "libc6:amd64.list" the name; "" if LIST is another file. */
static void package_name(const char *list, char name[static HW_PACKAGE_NAME])
{
    static const char ending[] = ".list";
    const size_t size = strlen(list), stem = size - (sizeof ending - 1), colon = strcspn(list, ":");
    const bool fits = size >= sizeof ending && !strcmp(list + stem, ending);
    snprintf(name, HW_PACKAGE_NAME, "%.*s", (int)(!fits ? 0 : colon < stem ? colon : stem), list);
}

/* False when there is no memory. */
static bool read_list(const char *path, const char *name, struct hw_package *packages, size_t count, size_t *found)
{
    char *line = NULL;
    size_t room = 0;
    FILE *list = fopen(path, "re");
    if (!list)
        return errno != ENOMEM;
    while (getline(&line, &room, list) > 0) {
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < count; i++)
            if (!*packages[i].name && !strcmp(without_usr(line), without_usr(packages[i].path))) {
                snprintf(packages[i].name, sizeof packages[i].name, "%s", name);
                ++*found;
            }
    }
    const bool fine = feof(list) || errno != ENOMEM;
    free(line);
    fclose(list);
    return fine;
}

bool hw_packages_find(const char *directory, struct hw_package *packages, size_t count)
{
    char path[4096], name[HW_PACKAGE_NAME];
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += *packages[i].name != '\0';
    if (found == count)
        return true;
    DIR *lists = opendir(directory);
    bool fine = lists || errno != ENOMEM;
    for (struct dirent *entry; fine && found < count && lists && (entry = readdir(lists));) {
        package_name(entry->d_name, name);
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (*name)
            fine = read_list(path, name, packages, count, &found);
    }
    if (lists)
        closedir(lists);
    return fine;
}
