/* static_hooks.c - allocators that are linked into the executable.
 *
 * The executable's own malloc comes first in the search order, and calls to it are bound at link time: no preloaded
 * library sees them. Its functions are redirected to the hooks instead, where they stand. */
#include "base/sanitizers.h"
#include "profile/attach.h"
#include "runtime/access/access.h"
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/operators.h"

/* The hooks of hooks.c, by names that nothing can interpose. Only where they are matters here. */
#define DECLARE(name) void hw_hook_##name(void);
HW_ALLOCATOR_FUNCTIONS(DECLARE)
#undef DECLARE
#define DECLARE(index, symbol, ...) void *hw_hook_##symbol(size_t, size_t, const void *);
HW_NEW_FORMS(DECLARE)
#undef DECLARE
#define DECLARE(index, symbol) void hw_hook_##symbol(void *, size_t, size_t);
HW_DELETE_FORMS(DECLARE)
#undef DECLARE
void hw_hook_reallocarray(void);

static void *real_reallocarray; /* nobody needs it: the hook calls realloc */

static const struct {
    const char *name;
    const void *hook;
    void **real;
} functions[] = {
#define FUNCTION(name) {#name, (const void *)hw_hook_##name, (void **)&hw_real.name},
    HW_ALLOCATOR_FUNCTIONS(FUNCTION)
#undef FUNCTION
        {"reallocarray", (const void *)hw_hook_reallocarray, &real_reallocarray},
#define FUNCTION(index, symbol, aligned, nothrow)                                                                      \
    {#symbol, (const void *)hw_hook_##symbol, (void **)&hw_real.op_new[index]},
    HW_NEW_FORMS(FUNCTION)
#undef FUNCTION
#define FUNCTION(index, symbol) {#symbol, (const void *)hw_hook_##symbol, (void **)&hw_real.op_delete[index]},
        HW_DELETE_FORMS(FUNCTION)
#undef FUNCTION
};

extern void _exit(int) __attribute__((noreturn));
extern void _Exit(int) __attribute__((noreturn));
extern int fork(void);
extern int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);

/* The function NAME, if the executable defines it; *SIZE is its length in bytes. */
static void *of_executable(const char *name, size_t *size)
{
    void *function = hw_function_find(name, size);
    const struct hw_module *module = function ? hw_module_find((uintptr_t)function) : NULL;
    return module && module->flags & HW_MAP_MAIN ? function : NULL;
}

static void say_not_hooked(const char *name, const char *why)
{
    hw_note_about(HW_NOTE_STATIC_ALLOCATOR, name, ": ", why);
}

/* An allocator that is only partly hooked would be counted wrongly: free of blocks whose malloc was not seen is
 * harmless, the reverse leaves blocks that never die. So free goes first. */
void hw_static_hooks(void)
{
    size_t size;
    if (!of_executable("malloc", &size))
        return;
    for (size_t i = 0; i < HW_SANITIZERS; i++)
        if (of_executable(hw_sanitizers[i].function, &size)) {
            say_not_hooked("malloc", "it belongs to a sanitizer that is built into the program");
            return;
        }
    const char *why = NULL;
    void *function = of_executable("free", &size);
    if (!function || !hw_arch_patch(function, size, (const void *)hw_hook_free, &why)) {
        say_not_hooked("free", why ? why : "it is not in the program although malloc is");
        return;
    }
    hw_real.is_glibc = false; /* before the first block that is none of glibc's */
    hw_places.glibc = false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        function = of_executable(functions[i].name, &size);
        if (!function)
            continue;
        void *original = hw_arch_patch(function, size, functions[i].hook, &why);
        if (original)
            *functions[i].real = original;
        else
            say_not_hooked(functions[i].name, why);
    }
    hw_real_home = of_executable("malloc", &size);
    function = of_executable("malloc_usable_size", &size);
    if (function)
        *(void **)&hw_real.malloc_usable_size = function;
    hw_describe_allocator();
    if (hw_access_on())
        hw_layout_start();
}

/* ---- a recording that begins while the program runs ---- */

/* The list says how the function at CODE is to be redirected by JUMP. */
static bool add_patch(struct hw_attach *attach, const uint8_t *code, const uint8_t *jump)
{
    for (uint32_t i = 0; i < attach->patch_count; i++)
        if (attach->patch[i].address == (uintptr_t)code)
            return true; /* by another name */
    if (attach->patch_count == HW_ATTACH_PATCHES)
        return false;
    struct hw_attach_patch *patch = &attach->patch[attach->patch_count++];
    *patch = (struct hw_attach_patch){.address = (uintptr_t)code, .size = HW_ARCH_JUMP};
    __builtin_memcpy(patch->before, code, HW_ARCH_JUMP);
    __builtin_memcpy(patch->after, jump, HW_ARCH_JUMP);
    return true;
}

static bool redirect(struct hw_attach *attach, const char *name, uint8_t *function, size_t size, const void *hook,
                     void **real)
{
    const char *why = "its allocator has too many functions";
    const uint8_t *jump;
    void *original = hw_arch_patch_prepare(function, size, hook, &jump, &why);
    if (original && add_patch(attach, function, jump)) {
        *real = original;
        return true;
    }
    hw_text_join(attach->problem, sizeof attach->problem, name, " cannot be redirected: ", why);
    return false;
}

/* Functions of the library that has malloc: operators elsewhere call it. The first four are what counts. */
bool hw_attach_hooks(struct hw_attach *attach)
{
    size_t size;
    void *home = hw_function_find("malloc", &size);
    const struct hw_module *module = home ? hw_module_find((uintptr_t)home) : NULL;
    if (!module || module->flags & HW_MAP_RUNTIME) {
        hw_text_join(attach->problem, sizeof attach->problem, "its malloc is not known to the dynamic linker");
        return false;
    }
    attach->patch_count = 0;
    hw_real_home = home;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uint8_t *function = hw_function_find(functions[i].name, &size);
        if (!function || hw_module_find((uintptr_t)function) != module ||
            redirect(attach, functions[i].name, function, size, functions[i].hook, functions[i].real))
            continue;
        if (functions[i].real != &real_reallocarray)
            return false;
        hw_note(HW_NOTE_OTHER, attach->problem); /* most often it calls realloc, which counts */
        attach->problem[0] = '\0';
    }
    return true;
}

/* ---- a statically linked program ---- */

/* Beside the allocator: starts and ends of threads, processes and programs. What cannot be redirected is not seen; only
 * the end of the process is needed. */
static const struct {
    const char *name;
    const void *hook;
    bool needed;
} others[] = {
    {"_exit", (const void *)_exit, true},
    {"_Exit", (const void *)_Exit, true},
    {"fork", (const void *)fork, false},
    {"execve", (const void *)hw_static_execve, false},
    {"pthread_create", (const void *)pthread_create, false},
    {"__pthread_exit", (const void *)hw_static_pthread_exit, false},
};

bool hw_attach_static_hooks(struct hw_attach *attach)
{
    size_t size;
    void *real;
    attach->patch_count = 0;
    hw_real_home = hw_static_program_find("malloc", &size);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uint8_t *function = hw_static_program_find(functions[i].name, &size);
        if (function && !redirect(attach, functions[i].name, function, size, functions[i].hook, &real))
            return false;
        if (function)
            hw_static_program_redirected(functions[i].name, real);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint8_t *function = hw_static_program_find(others[i].name, &size);
        if (!function)
            continue;
        if (redirect(attach, others[i].name, function, size, others[i].hook, &real))
            hw_static_program_redirected(others[i].name, real);
        else if (others[i].needed)
            return false;
    }
    return true;
}
