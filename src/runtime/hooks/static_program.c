/* static_program.c - the hooks of statically linked programs (profile/static_program.h).
 *
 * Calls are bound at link time there: no library sees them. So the program's functions are redirected where they stand,
 * before its first instruction. */
#include "profile/static_program.h"
#include "profile/attach.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/hooks/hooks.h"

extern HW_VARIABLE struct hw_static_program heapwise_static;

extern HW_VARIABLE struct hw_attach heapwise_attach;

/* Nothing of libc works yet, and thread-local data is not the program's: nothing of both is used. */
static long begin(void)
{
    heapwise_static.pid = hw_getpid();
    return hw_attach_static_hooks(&heapwise_attach) ? 0 : -1;
}

struct hw_static_program heapwise_static = {.version = HW_STATIC_VERSION, .begin = (uintptr_t)begin};

const struct hw_static_program *hw_static_program(void)
{
    return heapwise_static.function_count ? &heapwise_static : NULL;
}

static struct hw_static_function *find(const char *name)
{
    for (uint32_t i = 0; i < heapwise_static.function_count; i++)
        if (hw_streq(heapwise_static.function[i].name, name))
            return &heapwise_static.function[i];
    return NULL;
}

void *hw_static_program_find(const char *name, size_t *size)
{
    const struct hw_static_function *function = find(name);
    *size = function ? function->size : 0;
    return function ? (void *)function->address : NULL;
}

void *hw_static_program_real(const char *name)
{
    const struct hw_static_function *function = find(name);
    return !function ? NULL : (void *)(function->original ? function->original : function->address);
}

void hw_static_program_redirected(const char *name, void *original)
{
    struct hw_static_function *function = find(name);
    if (function)
        function->original = (uintptr_t)original;
}

void hw_static_program_start(void)
{
    if (hw_static_program() && hw_runtime.state == HW_STATE_NEW && heapwise_static.pid == hw_getpid())
        hw_start();
}

bool hw_static_program_frees_itself(uintptr_t frame)
{
    static const char *const names[] = {"__malloc_arena_thread_freeres", "__libc_thread_freeres"};
    const uintptr_t caller = ((const uintptr_t *)frame)[1];
    for (size_t i = 0; hw_static_program() && i < sizeof names / sizeof *names; i++) {
        const struct hw_static_function *function = find(names[i]);
        if (function && caller - function->address <= function->size) /* it may call at its very end */
            return true;
    }
    return false;
}

void hw_static_pthread_exit(void *result)
{
    void (*real)(void *) = (void (*)(void *))hw_static_program_real("__pthread_exit");
    hw_thread_ends();
    real(result);
    __builtin_unreachable();
}
