/* facts.h - what is known of how an allocator works: found by a probe (probe.c), kept by build id, or read from a file.
 *
 * The text is what the probe prints, what the cache holds and what --facts reads: lines "key = value", '#' begins a
 * comment. A value can be "unknown (reason)". Keys that are not known are skipped. docs/allocators.md has them all. */
#ifndef HW_ALLOCATORS_FACTS_H
#define HW_ALLOCATORS_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/format.h"

#define HW_FACTS_CLASSES_MOST 1024
#define HW_FACTS_TEXT_MOST    (64u << 10) /* bytes of a text of facts */

/* Sizes in bytes as requested; 0 stands for what is not known, unless said otherwise. */
struct hw_facts {
    char name[64];       /* "glibc", "jemalloc"; "" when not known */
    char version[64];    /* "2.36" */
    char path[PATH_MAX]; /* the file malloc is in */
    char build_id[130];  /* hexadecimal */
    enum hw_allocator_style style;
    enum hw_reuse_order reuse; /* of blocks of 64 bytes, in one thread */
    enum hw_thread_cache thread_cache;
    uint64_t alignment;       /* divides the address of every block of more than 8 bytes */
    uint64_t alignment_small; /* of every block */
    uint64_t medium;          /* the smallest size that takes another path than small ones */
    uint64_t large;           /* the smallest size of which each block has memory mapped for itself */
    bool large_by_brk;        /* that is taken from the end of the heap, not by mmap */
    bool large_returned;      /* such memory goes back to the system when it is freed */
    uint64_t large_rises_to;  /* freeing such a block raises the threshold to its size, up to this; 0: it does not */
    uint64_t least, step, header; /* sequential: usable sizes are least + k * step, `header` bytes lie between blocks */
    uint64_t classes[HW_FACTS_CLASSES_MOST]; /* BiBOP: usable sizes, ascending */
    size_t class_count;
    uint64_t classes_step; /* beyond the last class: multiples of this */
    char why[256];         /* the first reason given for something that is not known, "" when there is none */
};

/* Fills FACTS from TEXT (not more than HW_FACTS_TEXT_MOST bytes). False with ERROR (line and reason) when a value is
 * malformed, or there is no name; SOURCE stands for the file in it. */
bool hw_facts_parse(struct hw_facts *facts, const char *text, const char *source, struct hw_error *error);
/* Reads them from a file. */
bool hw_facts_read(struct hw_facts *facts, const char *path, struct hw_error *error);

#endif
