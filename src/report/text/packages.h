/* packages.h - which Debian package a file came with: from dpkg's lists of files, without running dpkg. */
#ifndef HW_REPORT_TEXT_PACKAGES_H
#define HW_REPORT_TEXT_PACKAGES_H

#include <stdbool.h>
#include <stddef.h>

#define HW_PACKAGE_LISTS "/var/lib/dpkg/info"
#define HW_PACKAGE_NAME  128

struct hw_package {
    const char *path;           /* of the file */
    char name[HW_PACKAGE_NAME]; /* "": none has it */
};

/* Fills in the names that are "", from the lists in DIRECTORY, which may be missing. /lib and /usr/lib are the same,
 * and so is every other folder with and without /usr. False when there is no memory. */
bool hw_packages_find(const char *directory, struct hw_package *packages, size_t count);

#endif
