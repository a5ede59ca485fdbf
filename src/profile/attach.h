/* attach.h - how `heapwise attach PID` and the runtime that it loads into the process understand each other.
 *
 * The command finds the exported variable heapwise_attach in the runtime, writes what it wants into it, and makes one
 * thread of the process call `call`. The runtime never changes code of the program itself: it says which bytes are to
 * be replaced, and the command does it while all threads are stopped, and takes them out again. */
#ifndef HW_PROFILE_ATTACH_H
#define HW_PROFILE_ATTACH_H

#include <stdint.h>

#define HW_ATTACH_VERSION  0x3148435454415748ull /* "HWATTCH1" */
#define HW_ATTACH_PATCHES  48

/* Is in the name by which the runtime is opened. A runtime that comes late because a library needs it has another name:
 * it records at once. */
#define HW_ATTACH_NAME     "/./libheapwise"
#define HW_ATTACH_MEMORY   "/proc/self/./fd/" /* likewise, where the process does not see the library: a file in memory */
#define HW_ATTACH_VARIABLE "heapwise_attach"
#define HW_ATTACH_PLANE    "__heapwise_plane" /* thread-local, by which the runtime's thread-local data is found */

enum hw_attach_stage {
    HW_ATTACH_IDLE,     /* loaded: nothing is counted, no code is patched, nothing is reserved */
    HW_ATTACH_COUNTING, /* ready: hooks count as soon as they are called */
    HW_ATTACH_PRELOADED /* it came with the program: it cannot be attached */
};

enum hw_attach_what {
    /* Makes the profile, and the list of patches. Undoes that when the word to which `given_up` points is 0 after
     * `stage` has become HW_ATTACH_COUNTING: whoever writes that 0 and then finds another stage needs to undo nothing.
     */
    HW_ATTACH_BEGIN,
    /* Ends the profile and gives all memory back. Before it patches are taken out, no thread is in code of the runtime,
     * and the runtime's data of each thread is as in a new thread. */
    HW_ATTACH_END,
};

struct hw_attach_patch {
    uint64_t address;
    uint32_t size; /* bytes */
    uint8_t before[8], after[8];
};

struct hw_attach {
    uint64_t version;
    uint64_t call; /* long (*)(uint64_t what, const uint64_t *given_up): 0, or -1 and `problem` */
    uint64_t code, code_end;               /* the runtime's */
    uint64_t trampolines, trampolines_end; /* code that leads to the patched functions */
    int64_t plane;                         /* distance of HW_ATTACH_PLANE from the thread pointer */
    uint64_t tls_image, tls_image_bytes;   /* what thread-local data begins with */
    uint64_t tls_bytes;                    /* all of it; the rest is 0 */
    uint32_t stage;                        /* enum hw_attach_stage */
    uint32_t rounds;                       /* how many times it was attached */
    uint32_t patch_count;
    uint32_t reserved;
    struct hw_attach_patch patch[HW_ATTACH_PATCHES];
    char options[2048]; /* HEAPWISE_OPTIONS of this recording, set by the command */
    char path[1024];    /* the profile */
    char problem[512];
};

#endif
