/* target_code.h - what is mapped in another process, and which functions it exports, read from its memory. */
#ifndef HW_CLI_TARGET_CODE_H
#define HW_CLI_TARGET_CODE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/stopping.h"

/* An executable or a library. */
struct hw_image {
    uint64_t start, end; /* all its mappings */
    uint64_t bias;
    char *path;
    bool loaded; /* its symbols were read: they may be none */
    Elf64_Sym *symbols;
    size_t symbol_count;
    char *names;
    size_t names_size;
};

struct hw_target_code {
    struct hw_image *images;
    size_t count;
    uint64_t *stack_ends; /* ends of writable mappings, rising */
    uint64_t *stack_starts;
    size_t area_count;
    uint64_t gap, gap_end; /* the widest one between mappings */
};

/* Reads the list of mappings. False: stop->error says why. */
bool hw_target_code_read(struct hw_target_code *code, struct hw_stop *stop);
/* The address of SIZE bytes that are not mapped, far from what is. 0: there are none. */
uint64_t hw_target_unmapped(const struct hw_target_code *code, uint64_t size);
/* Reads writable mappings again; images stay those that they were. */
void hw_target_code_refresh(struct hw_target_code *code, struct hw_stop *stop);
void hw_target_code_free(struct hw_target_code *code);
/* The image that has ADDRESS, or NULL. */
struct hw_image *hw_target_image(struct hw_target_code *code, uint64_t address);
/* The end of the writable mapping that has ADDRESS; 0: there is none. */
uint64_t hw_target_writable_end(const struct hw_target_code *code, uint64_t address);
/* The address of the exported function or variable NAME; 0: it has none. Thread-local: the offset in its data. */
uint64_t hw_image_symbol(struct hw_stop *stop, struct hw_image *image, const char *name);
/* Where SIZE bytes can stand that are no code of the image, but executable: behind the end of a code segment, in its
 * last page. 0: there is no room. */
uint64_t hw_image_spare_code(struct hw_stop *stop, const struct hw_image *image, size_t size);
/* Whether PC is in an exported function; with LIST, which ends with NULL: in one of those. "name*" is a beginning. */
bool hw_image_in_function(struct hw_stop *stop, struct hw_image *image, uint64_t pc, const char *const *list);

#endif
