/* modules.h - executables and libraries: where their code and data are. */
#ifndef HW_RUNTIME_CORE_MODULES_H
#define HW_RUNTIME_CORE_MODULES_H

#include "runtime/runtime.h"

/* ---- modules.c: executable mappings ---- */

/* One executable segment. Immutable once published, never freed. */
struct hw_module {
    uintptr_t start, end; /* of the code */
    uintptr_t bias;
    uintptr_t image_start, image_end; /* all loadable segments: bounds for reading tables */
    const uint8_t *eh_frame_hdr;      /* NULL: no unwind tables */
    size_t eh_frame_hdr_size;
    uint32_t map;                /* index into MAPS */
    uint32_t flags;              /* enum hw_map_flags */
    bool linked;                 /* the dynamic linker knows it, and when it is gone */
    size_t tls_module, tls_size; /* number and bytes of its thread-local data; 0: it has none */
    uint64_t header[2]; /* first bytes of eh_frame_hdr (of code without a file: of the code), to check that this module
                           is still there */
};
struct hw_modules {
    uint32_t count;
    struct hw_module module[]; /* sorted by start */
};
void hw_modules_start(void);
/* The module that holds PC, or NULL. Looks for new mappings (without any lock of libc) when PC is unknown. */
const struct hw_module *hw_module_find(uintptr_t pc);
/* Whether MODULE is still what is mapped there: libc unloads libraries of its own without a word. When it is not, it is
 * forgotten. Asked before its tables are read. */
bool hw_module_still_there(const struct hw_module *module);
/* The definition of the function NAME that the dynamic linker finds first, and its length in bytes; NULL if there is
 * none. An executable that is not position independent also has an undefined symbol with an address, that of its PLT
 * entry: that is no definition. Calls dlsym: at the start only. */
void *hw_function_find(const char *name, size_t *size);
/* The module that has ADDRESS in one of its segments, code or data; NULL. Takes no lock, looks for nothing new. */
const struct hw_module *hw_module_of_data(uintptr_t address);
/* Calls EACH for all modules that are known. Takes no lock. */
void hw_modules_each(void (*each)(const struct hw_module *module));
/* MAPS index of the module that holds PC, HW_NONE. Takes no lock and looks for nothing new. */
uint32_t hw_module_map(uintptr_t pc);
/* Bytes of code in all modules that are known. Takes no lock. */
uint64_t hw_modules_code_bytes(void);
/* All modules the dynamic linker knows; notices what is gone. Not from inside an allocator call. */
void hw_modules_rescan(void);
void hw_modules_fork(void);
/* Calls EACH for the notes called NAME, of that TYPE, of the image that HEADERS (ElfW(Phdr)) lead to. */
typedef void hw_elf_note_visitor(void *closure, const void *data, size_t size);
void hw_elf_notes_each(uintptr_t bias, const void *headers, size_t header_count, const char *name, uint32_t type,
                       hw_elf_note_visitor *each, void *closure);

#endif
