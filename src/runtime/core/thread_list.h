/* thread_list.h - which threads there were: an entry of THREADS and of THREAD_LIST for each, with its name and its
 * start function, also when it has ended. When many have ended those of the same name and function are added up, so
 * that the list stays short whatever a program does. */
#ifndef HW_RUNTIME_CORE_THREAD_LIST_H
#define HW_RUNTIME_CORE_THREAD_LIST_H

#include "runtime/core/threads.h"

/* How a thread was started; 0: not known. */
struct hw_thread_origin {
    uintptr_t routine; /* the function it was started with */
    uint32_t starter;  /* serial of the thread that called pthread_create or thrd_create, */
    uint32_t context;  /* and where */
};
/* Of the calling thread. */
extern HW_HIDDEN __thread struct hw_thread_origin hw_self_origin __attribute__((tls_model("initial-exec")));

void hw_thread_list_fork(void);
/* The calling thread has changed its name. */
void hw_thread_named(const char *name);
/* Names of living threads, for a profile that is about to be written. Lock held. */
void hw_thread_list_names(void);
/* heapwise_reset. EPOCH: that of the new peak. Nobody counts; lock held. */
void hw_thread_list_reset(uint64_t epoch);
/* Nothing is live any more. The same holds. */
void hw_thread_list_forget_live(void);
/* What a child has inherited has become live, in this entry. Lock held. */
void hw_thread_list_inherited(uint32_t entry);

/* An entry in both sections, published by the next call; HW_NONE when there is no room. Lock held. */
uint32_t hw_thread_entry_take(void);
/* The thread that the state was given to, which has a serial and a tid, gets an entry, or (TEMPORARY) the state one for
 * what it is borrowed for. False when there is no room. Lock held. */
bool hw_thread_list_begin(struct hw_thread *thread, bool temporary);
/* Completes it, without the lock. */
void hw_thread_list_routine(struct hw_thread *thread);
/* It has ended; HERE: in the calling thread. Lock held. */
void hw_thread_list_end(struct hw_thread *thread, bool here);

/* THREAD is not the first one. When it is the second: what was live at the peak is all of the first one. Lock held. */
void hw_thread_list_several(const struct hw_thread *thread);

#endif
