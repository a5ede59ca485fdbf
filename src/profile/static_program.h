/* static_program.h - how `heapwise record` and the runtime that it maps into a statically linked program understand
 * each other.
 *
 * No dynamic linker is there. The command maps the runtime before the program's first instruction, relocates it, and
 * fills in the exported variable heapwise_static. Then it has the process call `begin`, which makes the list of patches
 * in heapwise_attach (attach.h); the command applies them. The runtime itself starts with the first call of a patched
 * function, when the program's libc has set up thread-local data, in which the command has reserved room for the
 * runtime's. */
#ifndef HW_PROFILE_STATIC_PROGRAM_H
#define HW_PROFILE_STATIC_PROGRAM_H

#include <stdint.h>

#define HW_STATIC_VERSION   0x3143495441545348ull /* "HSTATIC1" */
#define HW_STATIC_VARIABLE  "heapwise_static"
#define HW_STATIC_FUNCTIONS 160
#define HW_STATIC_NAME      48

enum hw_static_allocator { HW_STATIC_OTHER, HW_STATIC_GLIBC, HW_STATIC_MUSL };

/* A function of the program. */
struct hw_static_function {
    uint64_t address, size;
    uint64_t original; /* the way to it when it is patched; set by the runtime, 0: it is not */
    char name[HW_STATIC_NAME];
};

struct hw_static_program {
    uint64_t version;
    uint64_t begin;                 /* address of long (*)(void): 0, or -1 with heapwise_attach.problem */
    uint64_t bias;                  /* set by the command, as all that follows */
    uint64_t headers, header_count; /* the program headers, in memory */
    uint64_t unwind, unwind_size;   /* .eh_frame_hdr that the command made; 0: the program has one, or no .eh_frame */
    uint32_t allocator;             /* enum hw_static_allocator */
    uint32_t function_count;        /* 0: the program is not statically linked */
    uint64_t pid;                   /* set by `begin`: as the process numbers itself */
    struct hw_static_function function[HW_STATIC_FUNCTIONS];
};

#endif
