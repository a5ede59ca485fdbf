/* real.c - the allocator that is wrapped: whatever comes after the runtime in the dynamic linker's search order.
 *
 * Until it is known, and while dlsym itself asks for memory, a small start-up allocator serves; it frees nothing. */
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/modules.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/operators.h"

#include <errno.h>

extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
#define NEXT ((void *)-1l) /* RTLD_NEXT */

/* ---- start-up allocator ---- */

_Alignas(64) char hw_startup_memory[HW_STARTUP_BYTES] HW_LARGE;
static size_t startup_used;
static uint32_t startup_blocks; /* in use */

static void *startup_take(size_t alignment, size_t size)
{
    if (alignment < 16)
        alignment = 16;
    size_t used, start;
    do {
        used = __atomic_load_n(&startup_used, __ATOMIC_RELAXED);
        start = HW_ALIGN_UP(used + 16, alignment); /* 16 bytes in front hold the size */
        if (size > sizeof hw_startup_memory || start + size > sizeof hw_startup_memory)
            return NULL;
    } while (
        !__atomic_compare_exchange_n(&startup_used, &used, start + size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *(size_t *)(hw_startup_memory + start - 8) = size;
    __atomic_fetch_add(&startup_blocks, 1, __ATOMIC_RELAXED);
    hw_filter[((uintptr_t)(hw_startup_memory + start) >> 4) & hw_filter_mask] = 0xff;
    return hw_startup_memory + start;
}

void hw_real_startup_freed(void)
{
    __atomic_fetch_sub(&startup_blocks, 1, __ATOMIC_RELAXED);
}

bool hw_real_startup_left(void)
{
    return __atomic_load_n(&startup_blocks, __ATOMIC_RELAXED) != 0;
}

void hw_real_mark_startup_blocks(void)
{
    for (size_t i = 0; i < startup_used; i += 16)
        hw_filter[((uintptr_t)(hw_startup_memory + i) >> 4) & hw_filter_mask] = 0xff;
}

size_t hw_real_startup_size(const void *pointer)
{
    return *(const size_t *)((const char *)pointer - 8);
}

void *hw_real_move_startup_block(const void *pointer, size_t size)
{
    const size_t old = hw_real_startup_size(pointer);
    void *fresh = hw_real.malloc(size);
    if (fresh)
        __builtin_memcpy(fresh, pointer, old < size ? old : size);
    return fresh;
}

static bool resolving;

/* True when the real functions are known now: the caller goes on with them. */
static bool resolved(void)
{
    if (resolving)
        return false;
    hw_real_resolve();
    return true;
}

#define EARLY(name, parameters, arguments, startup)                                                                    \
    static void *early_##name parameters                                                                               \
    {                                                                                                                  \
        return resolved() ? hw_real.name arguments : startup;                                                          \
    }
EARLY(malloc, (size_t size), (size), startup_take(16, size))
EARLY(memalign, (size_t alignment, size_t size), (alignment, size), startup_take(alignment, size))
EARLY(aligned_alloc, (size_t alignment, size_t size), (alignment, size), startup_take(alignment, size))
EARLY(valloc, (size_t size), (size), startup_take(HW_PAGE, size))
EARLY(pvalloc, (size_t size), (size), startup_take(HW_PAGE, HW_ALIGN_UP(size, HW_PAGE)))
#undef EARLY

static void *early_calloc(size_t count, size_t size)
{
    if (resolved())
        return hw_real.calloc(count, size);
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : startup_take(16, bytes); /* zero and never reused */
}
static void *early_realloc(void *pointer, size_t size)
{
    if (resolved())
        return hw_real.realloc(pointer, size);
    char *fresh = startup_take(16, size);
    if (fresh && pointer)
        for (size_t i = 0; i < size && i < hw_real_startup_size(pointer); i++)
            fresh[i] = ((char *)pointer)[i];
    return fresh;
}
static void early_free(void *pointer)
{
    if (pointer && hw_real_is_startup_block(pointer))
        hw_real_startup_freed();
    else if (resolved())
        hw_real.free(pointer);
}
static int early_posix_memalign(void **result, size_t alignment, size_t size)
{
    if (resolved())
        return hw_real.posix_memalign(result, alignment, size);
    *result = startup_take(alignment, size);
    return *result ? 0 : ENOMEM;
}
static size_t early_usable_size(void *pointer)
{
    if (!pointer)
        return 0;
    return resolved() && !hw_real_is_startup_block(pointer) ? hw_real.malloc_usable_size(pointer)
                                                            : hw_real_startup_size(pointer);
}

struct hw_real hw_real = {
    .malloc = early_malloc,
    .calloc = early_calloc,
    .realloc = early_realloc,
    .free = early_free,
    .memalign = early_memalign,
    .posix_memalign = early_posix_memalign,
    .aligned_alloc = early_aligned_alloc,
    .valloc = early_valloc,
    .pvalloc = early_pvalloc,
    .malloc_usable_size = early_usable_size,
};

/* ---- resolution ---- */

void *hw_real_next(const char *name)
{
    if (hw_static_program())
        return hw_static_program_real(name);
    if (!dlsym || !hw_attached)
        return dlsym ? dlsym(NEXT, name) : NULL;
    size_t size;
    void *found = hw_function_find(name, &size); /* nothing comes after a library that was opened late */
    return (uintptr_t)found >= hw_runtime.text_start && (uintptr_t)found < hw_runtime.text_end ? NULL : found;
}

bool hw_real_late(void)
{
    return dlsym && hw_real.malloc == early_malloc;
}

static void *libc_functions[HW_LIBC_COUNT];

void *hw_libc(enum hw_libc_function function)
{
    static const char *const names[HW_LIBC_COUNT] = {
#define NAME(name) [HW_LIBC_##name] = #name,
        HW_LIBC_FUNCTIONS(NAME)
#undef NAME
    };
    void **found = &libc_functions[function];
    if (!*found)
        *found = hw_real_next(names[function]);
    return *found;
}

const void *hw_real_home;

const void *hw_real_malloc_address(void)
{
    return hw_real_home ? hw_real_home : (const void *)hw_real.malloc;
}

bool hw_called_by_allocator(uintptr_t frame)
{
    const struct hw_module *caller = hw_module_find(((const uintptr_t *)frame)[1] - 1);
    return caller && caller == hw_module_find((uintptr_t)hw_real_malloc_address());
}

/* A libc without these has them made from the others (musl has no pvalloc and valloc). */
static void *valloc_by_memalign(size_t size)
{
    return hw_real.memalign(HW_PAGE, size);
}
static void *pvalloc_by_memalign(size_t size)
{
    return hw_real.memalign(HW_PAGE, HW_ALIGN_UP(size, HW_PAGE));
}
static void *memalign_by_aligned_alloc(size_t alignment, size_t size)
{
    return hw_real.aligned_alloc(alignment, size);
}

void hw_real_resolve(void)
{
    if (resolving)
        return;
    resolving = true;
    struct hw_real found_real = {
        .valloc = valloc_by_memalign, .pvalloc = pvalloc_by_memalign, .memalign = memalign_by_aligned_alloc};
    void *found;
#define RESOLVE(field)                                                                                                 \
    if ((found = hw_real_next(#field)))                                                                                \
        *(void **)&found_real.field = found;
    HW_ALLOCATOR_FUNCTIONS(RESOLVE)
    RESOLVE(malloc_usable_size)
#undef RESOLVE
    for (int i = 0; i < HW_NEW_COUNT; i++)
        *(void **)&found_real.op_new[i] = hw_real_next(hw_new_names[i]);
    for (int i = 0; i < HW_DELETE_COUNT; i++)
        *(void **)&found_real.op_delete[i] = hw_real_next(hw_delete_names[i]);
    /* A statically linked program has only those that it calls. */
    if (found_real.malloc && found_real.free && (hw_static_program() || (found_real.realloc && found_real.calloc)))
        hw_real = found_real;
    for (int i = 0; i < HW_LIBC_COUNT; i++)
        hw_libc((enum hw_libc_function)i);
    hw_locks_resolve();
    for (int i = 0; dlerror && i < 2; i++) /* forgets what was not found, and frees its text: the program may ask */
        dlerror();
    resolving = false;
}
