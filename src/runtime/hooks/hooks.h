/* hooks.h - the real allocator, and the functions of libc that have hooks. */
#ifndef HW_RUNTIME_HOOKS_HOOKS_H
#define HW_RUNTIME_HOOKS_HOOKS_H

#include "runtime/runtime.h"

/* ---- real.c: the allocator that is wrapped ---- */

/* The functions behind the hooks. Before hw_real_resolve they point at the start-up allocator. Any of the optional ones
 * (marked) may be NULL afterwards. Set once, before there are threads. */
struct hw_real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    void (*free_sized)(void *, size_t);                 /* optional */
    void (*free_aligned_sized)(void *, size_t, size_t); /* optional */
    void *(*op_new[8])(size_t, size_t, const void *);   /* by enum hw_new; optional */
    void (*op_delete[12])(void *, size_t, size_t);      /* by enum hw_delete; optional */
    bool new_is_malloc; /* operator new is the C++ library's: malloc and a loop over the new-handler */
    uint8_t own_new;    /* by enum hw_new, a bit each: it is in one library with malloc, which it does not call */
    bool tells_usable;  /* malloc_usable_size is in one library with malloc: a wrapper of malloc may have none */
    bool is_glibc;      /* malloc is glibc's: the distance of blocks is known from their size */
};
/* Those with hooks by the same names, without operators. */
// clang-format off
#define HW_ALLOCATOR_FUNCTIONS(X) \
    X(malloc) X(calloc) X(realloc) X(free) X(memalign) X(posix_memalign) X(aligned_alloc) X(valloc) X(pvalloc) \
    X(free_sized) X(free_aligned_sized)
// clang-format on
extern HW_HIDDEN struct hw_real hw_real;
void hw_real_resolve(void);
/* After that: nothing comes after the runtime in the search order, because the program opened it while it ran. */
bool hw_real_late(void);
/* Whether POINTER comes from the start-up allocator, which frees nothing. */
#define HW_STARTUP_BYTES (64ul * 1024)
extern HW_HIDDEN char hw_startup_memory[HW_STARTUP_BYTES];
static inline bool hw_real_is_startup_block(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)hw_startup_memory < HW_STARTUP_BYTES;
}
size_t hw_real_startup_size(const void *pointer);
/* The program gives one back; whether any is still in use. */
void hw_real_startup_freed(void);
bool hw_real_startup_left(void);
/* Moves such a block to the real allocator. */
void *hw_real_move_startup_block(const void *pointer, size_t size);
/* Sampled runs: no filter may hide blocks of the start-up allocator. */
void hw_real_mark_startup_blocks(void);
/* Module that holds hw_real.malloc: address inside it. */
const void *hw_real_malloc_address(void);
/* Was the hook whose frame is FRAME called by the library that has the allocator? */
bool hw_called_by_allocator(uintptr_t frame);
extern HW_HIDDEN const void *hw_real_home; /* where malloc stands, when hw_real.malloc is only a way to it */
void *hw_real_next(const char *name);

/* Other functions of libc that have hooks. They are looked up at the start, all at once: dlsym takes the dynamic
 * linker's lock, which a caller of close or fork may not be able to wait for. */
// clang-format off
#define HW_LIBC_FUNCTIONS(X) \
    X(close) X(dup2) X(dup3) X(close_range) X(closefrom) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) \
    X(posix_spawn) X(posix_spawnp) X(fork) X(unshare) X(daemon) X(dlclose) X(mlockall) X(mmap) X(munmap) X(mremap) X(sbrk) X(setrlimit) X(getrlimit) X(prlimit) \
    X(prctl) X(syscall) X(pthread_create) X(thrd_create) X(pthread_setname_np) X(sigaction) X(signal) X(quick_exit) \
    X(sigaltstack) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(signalfd) X(pthread_sigmask) X(sigprocmask) \
    X(sigsuspend) X(ppoll) X(__ppoll_chk) X(pselect) X(epoll_pwait) X(epoll_pwait2) X(mallinfo2)
// clang-format on
#define HW_LIBC_INDEX(name) HW_LIBC_##name,
enum hw_libc_function { HW_LIBC_FUNCTIONS(HW_LIBC_INDEX) HW_LIBC_COUNT };
#undef HW_LIBC_INDEX
void *hw_libc(enum hw_libc_function function);
/* Declares REAL, the function behind the hook NAME. */
#define HW_REAL(type, name, arguments) type(*real) arguments = (type(*) arguments)hw_libc(HW_LIBC_##name)

/* ---- hooks.c ---- */

/* Where calls of malloc's family go from now on: to functions that count, or straight to the real ones. A thread may
 * have read the old way just before. */
void hw_hooks_lead(bool counting);

/* ---- fill.c ---- */

/* From now on new blocks are filled (record --contents=fill). */
void hw_fill_start(void);

/* ---- static_hooks.c ---- */

/* If the executable defines malloc itself, hooks it there. */
void hw_static_hooks(void);

/* ---- static_program.c: programs without a dynamic linker ---- */

struct hw_static_program;
struct hw_attach;
/* NULL: there is a dynamic linker. */
const struct hw_static_program *hw_static_program(void);
/* The function NAME of such a program, where it stands, and its length in bytes; NULL: it has none. */
void *hw_static_program_find(const char *name, size_t *size);
/* The same, but if it is patched, the way to what it was. */
void *hw_static_program_real(const char *name);

/* Starts the runtime in such a program if that has not happened yet: no constructor does it. Not in a child of vfork. */
void hw_static_program_start(void);
/* Whether the hook of free whose frame is FRAME was called by glibc at the end of a thread, for what the allocator has
 * kept: such blocks were freed before. Elsewhere such calls do not reach hooks. */
bool hw_static_program_frees_itself(uintptr_t frame);
/* The hook of musl's pthread_exit, which ends every thread. */
void hw_static_pthread_exit(void *result) __attribute__((noreturn));
/* It is patched; ORIGINAL is the way to what it was. */
void hw_static_program_redirected(const char *name, void *original);

/* ---- exec.c ---- */

/* The hook of execve in a statically linked program, where libc itself reaches it from children of vfork. */
int hw_static_execve(const char *path, char *const arguments[], char *const environment[]);

/* A note whose text is made of these. */
void hw_note_about(enum hw_note_code code, const char *subject, const char *separator, const char *what);

/* ---- signals.c ---- */

/* Handles signals as far as that is wanted: called at start, in a forked child, and when the mode becomes another. */
void hw_signals_start(void);
/* The program gives up system calls: what a handler would do could not be done. */
void hw_signals_quiet(void);

#endif
