/* static_plan.h - what of a statically linked program the runtime needs, read from its file. */
#ifndef HW_CLI_STATIC_PLAN_H
#define HW_CLI_STATIC_PLAN_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/static_program.h"

struct hw_static_symbol {
    char *name;
    uint64_t address, size;
    bool local;
};

/* All addresses are those of the file. */
struct hw_static_plan {
    uint64_t entry;
    uint64_t start, end; /* of all that is loaded */
    Elf64_Phdr *headers;
    size_t header_count;
    uint64_t headers_at;              /* their address in memory; 0: they are not loaded */
    struct hw_static_symbol *symbols; /* sorted by name */
    size_t symbol_count;
    enum hw_static_allocator allocator;
    uint64_t (*moved)[2]; /* pointers in thread-local data: where, and to what; the program's own start adds its bias */
    size_t moved_count;
    /* Start of code, the FDE about it, bytes of code; sorted. None if the program has .eh_frame_hdr. */
    uint64_t (*unwind)[3];
    size_t unwind_count;
};

/* GIVEN: where its functions are, for a program without symbols: MALLOC[,NAME=ADDRESS]…, as in its file; NULL: by its
 * symbols. False: ERROR says why the program cannot be recorded. */
bool hw_static_plan_read(struct hw_static_plan *plan, const char *path, const char *given, struct hw_error *error);
void hw_static_plan_free(struct hw_static_plan *plan);
/* NULL: there is none. */
const struct hw_static_symbol *hw_static_plan_find(const struct hw_static_plan *plan, const char *name);

#endif
