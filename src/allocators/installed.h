/* installed.h - the allocators of this machine, and their facts.
 *
 * Allocators are found as programs find them: the dynamic linker is given their names. */
#ifndef HW_ALLOCATORS_INSTALLED_H
#define HW_ALLOCATORS_INSTALLED_H

#include "allocators/facts.h"
#include "base/preload.h"

#define HW_ALLOCATORS_MOST 16

struct hw_allocator {
    char name[64];             /* as it is called here: "glibc", "jemalloc", or what the user said */
    struct hw_preload preload; /* path: value of LD_PRELOAD that brings it into a program */
    struct hw_facts facts;     /* name is "" when it could not be probed */
    char problem[256];         /* then: why */
};

struct hw_allocators {
    struct hw_allocator *of;
    size_t count;
};

/* The facts of the allocator that PRELOAD brings (NULL: the C library's own), from the cache or by a probe. False with
 * ERROR when it cannot be probed; then only path, name and version are what they could be found to be. */
bool hw_facts_find(struct hw_facts *facts, const char *preload, struct hw_error *error);

/* Only its path, name, version and build id: without a probe of how it works. Fails as hw_facts_find(). */
bool hw_facts_where(struct hw_facts *facts, const char *preload, struct hw_error *error);

/* What hw_facts_find() finds as text, always by a probe. To be freed; NULL with ERROR. */
char *hw_facts_text(const char *preload, struct hw_error *error);

/* The library that is preloaded for the allocator called NAME here: of several the first one that can be loaded, or
 * just the first. "": none is needed (glibc). NULL: the name is not known. */
const char *hw_allocator_library(const char *name);

/* Transparent huge pages of this machine: 0 never, 1 for those that ask (madvise), 2 always, -1: not known. */
int hw_kernel_huge_pages(void);

/* The allocator whose settings NAME has: "tcmalloc" for "tcmalloc-full"; else NAME. */
const char *hw_allocator_family(const char *name);

/* Debian's package with LIBRARY, NULL: not known. */
const char *hw_allocator_package(const char *library);

/* glibc and those of jemalloc, tcmalloc, mimalloc and tbbmalloc that are installed, then ADDED ones ("NAME=PATH", ended
 * by NULL, may be NULL; a name that was found already replaces that one). One that cannot be probed has a `problem`,
 * but is there. False with ERROR when an added one is malformed or not there. Free in any case. */
bool hw_allocators_find(struct hw_allocators *allocators, const char *const added[], struct hw_error *error);
void hw_allocators_free(struct hw_allocators *allocators);

#endif
