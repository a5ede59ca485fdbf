/* start_code.c - the code that starts processes and threads, at the outer end of stacks: see frame_roles.h. */
#include <string.h>

#include "report/view/frame_roles.h"

static bool starts(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

static bool starts_with_any(const char *text, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; text && i < count; i++)
        if (starts(text, beginnings[i]))
            return true;
    return false;
}

#define STARTS_WITH_ANY(text, table) starts_with_any((text), (table), sizeof(table) / sizeof *(table))

static const char *const start_functions[] = {"__libc_start_main",
                                              "__libc_start_call_main",
                                              "start_thread",
                                              "clone",
                                              "__clone",
                                              "__GI___clone",
                                              "_dl_start",
                                              "_dl_init",
                                              "call_init",
                                              "_dl_main",
                                              "execute_native_thread_routine",
                                              "thread_start",
                                              "_dl_start_user"};
/* Between start_thread and what the program gave to std::thread. Inlined ones may have no linkage name. */
static const char *const trampolines[] = {"_ZNSt6thread", "_ZSt8__invoke", "_ZSt13__invoke_impl",
                                          "_ZNSt13__future_base", "_ZNKSt6thread"};
static const char *const trampoline_names[] = {"std::thread::_", "std::__invoke", "std::__1::__thread_",
                                               "std::__1::__invoke"};

static bool is_start(const struct hw_view_frame *frame, bool root, bool stripped)
{
    const char *function = frame->symbol->function;
    if (function && (!strcmp(function, "_start") || starts(function, "__libc_csu_")))
        return true;
    if (stripped && (STARTS_WITH_ANY(frame->symbol->linkage_name, trampolines) ||
                     (function && STARTS_WITH_ANY(hw_qualified_name(function), trampoline_names))))
        return true;
    if (!frame->module || frame->module->kind != HW_MODULE_SYSTEM)
        return false;
    /* Without symbols: what lies in libc at the root, or between the root and main, is start code. */
    return function ? STARTS_WITH_ANY(function, start_functions) : root || stripped;
}

/* _start of a stripped program: nameless, at the root, and caller of __libc_start_main. */
static bool is_nameless_start(const struct hw_view_stack *stack)
{
    const struct hw_view_frame *root = &stack->frames[stack->count - 1];
    const char *called = stack->count > 1 ? root[-1].symbol->function : NULL;
    return called && starts(called, "__libc_start_main") && !root->symbol->function;
}

/* Rust marks where its start code ends, for main and for threads: what that function calls, through a trait at most,
 * is the program's. Returns the frames up to it, or COUNT. */
static size_t without_rust_start(const struct hw_view_stack *stack, size_t count)
{
    for (size_t i = count; i-- > 1;) {
        const char *function = stack->frames[i].symbol->function;
        if (!function || !strstr(function, "__rust_begin_short_backtrace"))
            continue;
        const char *called = stack->frames[i - 1].symbol->function;
        return called && i > 1 && starts(called, "core::ops::function::FnOnce::call_once") ? i - 1 : i;
    }
    return count;
}

size_t hw_stack_without_start(const struct hw_view_stack *stack)
{
    size_t count = without_rust_start(stack, stack->count);
    if (count < stack->count)
        return count;
    if (count > 1 && is_nameless_start(stack))
        count--;
    while (count > 1 && is_start(&stack->frames[count - 1], count == stack->count, count < stack->count))
        count--;
    return count;
}
