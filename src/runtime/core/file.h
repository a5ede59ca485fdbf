/* file.h - the profile file of this process, and the help of heapwise record in making it. */
#ifndef HW_RUNTIME_CORE_FILE_H
#define HW_RUNTIME_CORE_FILE_H

#include "runtime/runtime.h"

/* ---- file.c: the profile file ---- */

/* A section as the runtime sees it: entries at fixed addresses, in extents of the file that are appended as it grows.
 * `used` is written under the lock, read by anybody. */
struct hw_pool {
    uint32_t type, entry_size;
    char *base;        /* reserved address range */
    uint64_t reserved; /* its size */
    uint64_t mapped, used;
    uint64_t first_extent; /* bytes of the first extent */
    uint32_t extents;      /* the last one, see file.c; 0: none yet */
};
/* In the order of sections.def. */
enum hw_pool_id {
#define HW_POOL(name, ...) HW_POOL_##name,
#include "profile/sections.def"
    HW_POOL_COUNT,
};
extern HW_HIDDEN struct hw_pool hw_pools[HW_POOL_COUNT];

#define HW_ENTRY(pool, type, index) ((type *)hw_pools[pool].base + (index))
#define HW_ENTRIES(pool)            (hw_pools[pool].used / hw_pools[pool].entry_size)

/* Creates the file and its first extents; false when that is impossible (a message has been printed). */
bool hw_file_create(void);
/* Makes room for the sections of counted accesses in a file that has none yet. Lock held. */
bool hw_file_add_access(void);
/* The same for those of counted fields. */
bool hw_file_add_fields(void);
/* An extent of a section of TYPE lies at OFFSET: the header says where the first one is, of some. */
void hw_file_note_extent(struct hw_file_header *header, uint32_t type, uint64_t offset);
/* Room for COUNT more entries: their first index, HW_NONE when the file cannot grow. Lock held. The entries are zero
 * and not yet visible to readers: hw_pool_publish. */
uint32_t hw_pool_take(enum hw_pool_id pool, uint32_t count);
void hw_pool_publish(enum hw_pool_id pool);
/* For lists that are rewritten in place (timeline): lowers or raises what is visible. Lock held. */
void hw_pool_set_count(enum hw_pool_id pool, uint32_t count);
/* Empties the pool and clears its entries. Lock held. */
void hw_pool_forget(enum hw_pool_id pool);
/* Stores a string; its offset, 0 when there is no room. Lock held. */
uint32_t hw_file_string(const char *string);
/* In a forked child: a new file with the parent's strings, maps, stacks and contexts (as many as COUNTS says). */
bool hw_file_fork(void);
/* Instead, in one that was forked after system calls were given up: it has no profile, and its parent's says so. */
void hw_file_fork_quiet(void);
/* Room for a good number of entries more, while the file can still grow. LAST: for all that is to come. */
void hw_file_make_room(bool last);
/* The program is about to limit files to MOST bytes: the same as the last one, if that leaves too little. */
void hw_file_before_limit(uint64_t most);
/* The descriptor is closed: the file does not grow any more. */
void hw_file_let_go(void);
/* There is to be no profile after all: its file is deleted. */
void hw_file_discard(void);
/* The exit status in the process section is final. */
void hw_file_set_exited(bool exited);
extern HW_HIDDEN char hw_file_path[1024];

#define HW_PRIVATE_MODE 0600u
/* For open(2): a profile with bytes of the program's blocks is its owner's alone. */
uint32_t hw_file_mode(void);
/* Of this process, as heapwise record sees it; 0: as the process sees it itself. */
extern HW_HIDDEN uint32_t hw_file_pid;
extern HW_HIDDEN uint64_t hw_file_start_time;
const char *hw_file_problem(void);
/* Protects the descriptor from programs that close everything: see descriptors.c. */
int hw_file_descriptor(void);
/* Its number as it was, without a look whether it is still that; -1 when it is not kept open. */
int hw_file_descriptor_number(void);
void hw_file_move_descriptor(int away_from);

/* ---- file_request.c: help of heapwise record ---- */

struct hw_launcher_reply; /* base/launcher.h */
/* A new profile made by record: its descriptor, or -errno. */
int hw_launcher_file(const char *executable, struct hw_launcher_reply *reply);
bool hw_launcher_other_ids(void);
/* Reports why there is no profile, or what it lacks: to record if that runs, else on standard error. */
void hw_trouble(const char *what, const char *detail, int error);
/* A system call by syscall(). */
void hw_launcher_see_call(long number, long first);
/* A socket that programs which close everything must not close: see descriptors.c; -1: none, or it is not there any
 * more. */
int hw_launcher_descriptor(void);
/* Its number, without looking whether it is still that. */
int hw_launcher_descriptor_number(void);
void hw_launcher_move_descriptor(int away_from);
/* It is closed for good. */
void hw_launcher_let_go(void);

#endif
