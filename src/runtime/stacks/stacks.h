/* stacks.h - from a hook's frame to a context. */
#ifndef HW_RUNTIME_STACKS_STACKS_H
#define HW_RUNTIME_STACKS_STACKS_H

#include "runtime/runtime.h"

struct hw_module; /* core/modules.h */
struct hw_thread; /* core/threads.h */

/* ---- unwind.c: from a hook's frame to a context ---- */

/* A stack seen before by this thread: where, what it depended on, and its context. See unwind.c. */
struct hw_walk {
    uint64_t pc, sp, fp;
    uint32_t slot;  /* first value and offset in the ring */
    uint16_t slots; /* how many */
    uint16_t needs_fp;
    uint32_t home;      /* of the context, and of this thread: heap.h */
    uint32_t lap;       /* of the ring when it was written */
    struct hw_mib *mib; /* of this thread and context, NULL in bounded mode */
};
uint32_t hw_walk_context(const struct hw_walk *walk);
#define HW_WALK_SETS 256u
#define HW_WALK_WAYS 8u
#define HW_WALK_RING (64u * 1024u)
/* Context of the call into the hook whose frame is FRAME. Never NULL. */
struct hw_walk *hw_walk_at(struct hw_thread *thread, uintptr_t frame);
/* The same with the return address, and the stack pointer and frame pointer that the caller has there. */
struct hw_walk *hw_walk_from(struct hw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp);
enum hw_caller {
    HW_CALLER_ALLOCATOR, /* the allocator itself, inside the call: the outer hook counts */
    HW_CALLER_HANDLER,   /* a signal handler that interrupted it */
    HW_CALLER_NONE,      /* the outer hook is not there any more: it was left by a jump, or by an exception */
};
/* How the calling thread came into the hook whose frame is FRAME, while its state was inside one whose frame is OUTER.
 * THREAD: that state, or one that was borrowed. */
enum hw_caller hw_caller_of_hook(struct hw_thread *thread, uintptr_t outer, uintptr_t frame);
/* Whether the kernel can read the 8 bytes at ADDRESS. */
bool hw_readable(uintptr_t address);
void hw_unwind_start(void);
/* The program gives up system calls: from now on the kernel cannot be asked where stacks are. */
void hw_unwind_quiet(void);
/* The calling thread has begun just now, on a stack of so many bytes. */
void hw_unwind_thread(size_t stack_bytes);

/* ---- cfi.c: unwind tables ---- */

/* What an unwinder needs to know at one pc, in 64 bits:
 *   bits 0-2   enum hw_rule_kind
 *   bit  3     the CFA is computed from the frame pointer, not from the stack pointer
 *   bit  4     the CFA is what lies there (CFA = *(register + offset))
 *   bit  5     the caller's frame pointer is saved at CFA - 8 * bits 16-31
 *   bit  6     the caller's frame pointer is saved where the frame pointer points
 *   bits 8-9   unwind.c's own
 *   bits 16-31 see above
 *   bits 32-63 offset of the CFA from the register, signed */
enum hw_rule_kind {
    HW_RULE_NONE = 0, /* no table covers this pc */
    HW_RULE_SIMPLE = 1,
    HW_RULE_END = 2,     /* outermost frame */
    HW_RULE_COMPLEX = 3, /* hw_cfi_step has to evaluate it: signal frames, other registers, expressions */
};
uint64_t hw_cfi_rule(const struct hw_module *module, uintptr_t pc);
/* Does a table cover PC? */
bool hw_cfi_covers(const struct hw_module *module, uintptr_t pc);
/* One step with all callee-saved registers. READ checks that 8 bytes at an address may be read. False: cannot go on.
 * *SIGNAL: the frame was a signal frame, the new pc is exact. */
struct hw_cfi_memory {
    bool (*may_read)(void *closure, uintptr_t address);
    void *closure;
};
enum hw_step { HW_STEP_OK, HW_STEP_END, HW_STEP_NO_TABLE, HW_STEP_FAILED };
enum hw_step hw_cfi_step(const struct hw_module *module, uintptr_t pc, uint64_t registers[HW_REG_COUNT],
                         const struct hw_cfi_memory *memory, bool *signal_frame);

/* ---- contexts.c: call stacks -> context ids ---- */

#define HW_PC_EXACT (1ull << 63) /* marks those of thread->pcs that are no return addresses */

/* The id of the stack in thread->pcs, leaf first. 0 when there is no room. */
uint32_t hw_context_get(const uint64_t *pcs, uint32_t depth, uint64_t hash, uint32_t flags);
bool hw_contexts_start(void);
/* Rebuilds the private indexes from the file's tables (forked child). */
bool hw_contexts_rebuild(void);

#endif
