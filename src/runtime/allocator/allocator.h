/* allocator.h - mode=allocator: what other rooms call, but for places.h. operations.h and syscalls.h are for the files
 * of this room. */
#ifndef HW_RUNTIME_ALLOCATOR_ALLOCATOR_H
#define HW_RUNTIME_ALLOCATOR_ALLOCATOR_H

#include "runtime/runtime.h"

struct hw_thread;   /* core/threads.h */
struct sigaction;

/* ---- operations.c ---- */

extern HW_HIDDEN uint8_t hw_operations_on;
/* The moments of parts.c. At the start; in a forked child. False: no memory. */
bool hw_operations_start(void);
void hw_operations_fork(void);
/* The process ends: what is only written now and then. Lock held. */
void hw_operations_end(void);
/* The same for a dump. Lock held. */
void hw_operations_dump(void);
/* The calling thread ends: flushes its counts. */
void hw_operations_thread_ends(struct hw_thread *thread);
/* The same for THREAD, which has ended without that call. Lock held. */
void hw_operations_thread_gone(struct hw_thread *thread);
/* heapwise_reset (operation_reset.c): all of this mode but places from zero. False: no room in the file, nothing was
 * done. Lock held, gates closed. */
bool hw_operations_reset(void);
/* The hooks of this mode. */
void *hw_operation_malloc(size_t size);
void *hw_operation_calloc(size_t count, size_t size);
void *hw_operation_realloc(void *pointer, size_t size); /* POINTER may be NULL */
void *hw_operation_memalign(size_t alignment, size_t size);
int hw_operation_posix_memalign(void **pointer, size_t alignment, size_t size);
void *hw_operation_aligned_alloc(size_t alignment, size_t size);
void *hw_operation_valloc(size_t size);
void *hw_operation_pvalloc(size_t size);
void hw_operation_free(void *pointer); /* not NULL */
void hw_operation_free_sized(void *pointer, size_t size);
void hw_operation_free_aligned_sized(void *pointer, size_t alignment, size_t size);
/* Operators of C++ libraries that have an allocator of their own. Only if hw_real.op_new[FORM], or op_delete[FORM], is
 * not NULL. */
void *hw_operation_new(int form, size_t size, size_t second, const void *third, bool aligned);
void hw_operation_delete(int form, void *pointer, size_t second, size_t third); /* not NULL */
/* The caller tries again what has just failed: that attempt is the one that counts. */
void hw_operation_tried_again(void);

/* ---- operation_threads.c: which threads are alive ---- */

/* Before pthread_create and thrd_create; after they failed; first thing in the new thread. */
void hw_stages_thread_coming(void);
void hw_stages_thread_failed(void);
void hw_stages_thread_begins(void);

/* ---- syscalls.c, program_handlers.c, locks.c: inside the allocator ---- */

/* System calls are observed: SIGSYS is the runtime's, never blocked, and handlers of the program are called by way of
 * the runtime (program_handlers.c). */
extern HW_HIDDEN bool hw_dispatch_on;
/* The program gives up system calls: the calling thread's are no longer observed. */
void hw_dispatch_quiet(void);
/* SIGSYS is open in the calling thread; where it was not, the thread believes it still is not. */
void hw_handlers_thread(void);
/* What another program finds as it was meant, and back after exec has failed. */
void hw_handlers_for_exec(bool begin);
/* Finds the real functions behind the hooks for locks. Any number of times. */
void hw_locks_resolve(void);
/* Once, after hw_static_hooks. */
void hw_locks_start(void);
/* libc's syscall() inside an operation of the calling thread: makes the call by REAL, and sees it without a signal. */
typedef long hw_system_call_function(long, long, long, long, long, long, long);
long hw_dispatch_call(hw_system_call_function *real, long number, const long argument[6]);
/* sigaction, for handlers of the program and of the runtime itself (OWN). */
int hw_handlers_set(int number, const struct sigaction *action, struct sigaction *old, bool own);

#endif
