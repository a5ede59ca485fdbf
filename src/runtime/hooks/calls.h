/* calls.h - a call of malloc's family as a value: who observes it makes the real call with it.
 *
 * Everything here is inlined, and which function it is is always a constant: the real call is one instruction. */
#ifndef HW_RUNTIME_HOOKS_CALLS_H
#define HW_RUNTIME_HOOKS_CALLS_H

#include <errno.h>

#include "runtime/core/memory.h"
#include "runtime/hooks/hooks.h"

enum hw_function {
    HW_MALLOC,
    HW_CALLOC,
    HW_MEMALIGN,
    HW_ALIGNED_ALLOC,
    HW_VALLOC,
    HW_PVALLOC,
    HW_POSIX_MEMALIGN,
    HW_REALLOC,
    HW_MOVE_STARTUP_BLOCK,
    HW_NEW,
    HW_FREE,
    HW_FREE_SIZED,
    HW_FREE_ALIGNED_SIZED,
    HW_DELETE,
};

struct hw_call {
    enum hw_function function;
    int form;          /* of an operator */
    size_t size;       /* of calloc: of one of `second` */
    size_t second;     /* alignment; what an operator has as its second argument */
    const void *third; /* what an operator new has as its third argument */
    void *pointer;     /* of realloc, and of what frees */
    void **place;      /* of posix_memalign: where the result goes, and */
    int *error;        /* what it returned */
};

/* The block that the call gives, or NULL. */
HW_INLINE void *hw_real_call(const struct hw_real *real, struct hw_call call)
{
    switch (call.function) {
    case HW_MALLOC:
        return real->malloc(call.size);
    case HW_CALLOC:
        return real->calloc(call.second, call.size);
    case HW_MEMALIGN:
        return real->memalign(call.second, call.size);
    case HW_ALIGNED_ALLOC:
        return real->aligned_alloc(call.second, call.size);
    case HW_VALLOC:
        return real->valloc(call.size);
    case HW_PVALLOC:
        return real->pvalloc(call.size);
    case HW_POSIX_MEMALIGN:
        *call.error = real->posix_memalign(call.place, call.second, call.size);
        return *call.error ? NULL : *call.place;
    case HW_REALLOC:
        return real->realloc(call.pointer, call.size);
    case HW_MOVE_STARTUP_BLOCK:
        return hw_real_move_startup_block(call.pointer, call.size);
    case HW_NEW: /* operations.c has a function for it: one that throws does not come back */
        __builtin_unreachable();
    case HW_DELETE:
        real->op_delete[call.form](call.pointer, call.second, call.size);
        return NULL;
    case HW_FREE_SIZED:
        if (!real->free_sized)
            break;
        real->free_sized(call.pointer, call.size);
        return NULL;
    case HW_FREE_ALIGNED_SIZED:
        if (!real->free_aligned_sized)
            break;
        real->free_aligned_sized(call.pointer, call.second, call.size);
        return NULL;
    case HW_FREE:
        break;
    }
    real->free(call.pointer);
    return NULL;
}

/* CALL, which allocates, gave RESULT: whether it may have failed for a limit of address space, and now would not. */
HW_INLINE bool hw_call_may_succeed_now(struct hw_call call, const void *result)
{
    if (hw_likely(result != NULL) || (call.function == HW_POSIX_MEMALIGN && *call.error != ENOMEM) ||
        (call.function == HW_REALLOC && call.pointer && !call.size)) /* which has freed the block */
        return false;
    return hw_limits_make_way();
}

/* The real call of something that allocates, of which nothing is counted. */
HW_INLINE void *hw_call_through(struct hw_call call)
{
    void *result = hw_real_call(&hw_real, call);
    return hw_call_may_succeed_now(call, result) ? hw_real_call(&hw_real, call) : result;
}

/* The functions that allocate SIZE bytes, and nothing else: name, its constant, parameters, arguments, alignment. */
// clang-format off
#define HW_ALIGNED_FUNCTIONS(X) \
    X(memalign, HW_MEMALIGN, (size_t alignment, size_t size), (alignment, size), alignment) \
    X(aligned_alloc, HW_ALIGNED_ALLOC, (size_t alignment, size_t size), (alignment, size), alignment) \
    X(valloc, HW_VALLOC, (size_t size), (size), 0) \
    X(pvalloc, HW_PVALLOC, (size_t size), (size), 0)
// clang-format on

#endif
