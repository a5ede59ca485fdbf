/* memprof.c - the ABI of objects that clang's own -fmemory-profile has instrumented: they link and run on this runtime.
 *
 * Inline code of such objects knows one shadow for all threads, at __memprof_shadow_memory_dynamic_address, and does
 * not distinguish reads and writes; its additions are not atomic. That shadow is a plane of its own, whose counts are
 * `unsplit`; what two threads count there at the same time may be lost. Built with -mllvm -memprof-use-callbacks, and
 * in the memory intrinsics, the same objects call functions: those count like everything else here, exactly and split.
 *
 *   default       one 64-bit count for each 64 bytes, at base + ((address & ~63) >> 3)
 *   histogram     one saturating byte for each 8 bytes, at base + (address >> 3)
 *
 * Of the runtime options of LLVM's MemProf (MEMPROF_OPTIONS, __memprof_default_options) none are read. */
#include "runtime/access/count.h"
#include "runtime/access/counting.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"

/* What the objects define: in the program or any library, when there are such objects at all. */
extern const char __memprof_profile_filename[] __attribute__((weak, visibility("default")));
extern const bool __memprof_histogram __attribute__((weak, visibility("default")));

/* An executable may have copied it into its own data: it is reached through the GOT. */
__attribute__((visibility("default"))) uintptr_t __memprof_shadow_memory_dynamic_address;

uint32_t hw_memprof_granule(void)
{
    if (!&__memprof_histogram && !__memprof_profile_filename)
        return 0;
    return &__memprof_histogram && __memprof_histogram ? 8 : 64;
}

void hw_memprof_start(void)
{
    __memprof_shadow_memory_dynamic_address = hw_shadow_memprof_plane();
}

/* `DIRECTORY/memprof.profraw` was asked for: DIRECTORY with our own name. */
bool hw_memprof_output(char *pattern, size_t size)
{
    static const char name[] = "%e.%p.hwprof";
    if (!__memprof_profile_filename || !*__memprof_profile_filename)
        return false;
    size_t directory = 0;
    for (size_t i = 0; __memprof_profile_filename[i]; i++)
        if (__memprof_profile_filename[i] == '/')
            directory = i + 1;
    struct hw_text text;
    hw_text_init(&text, pattern, size);
    for (size_t i = 0; i < directory; i++) {
        if (__memprof_profile_filename[i] == '%')
            hw_text_char(&text, '%');
        hw_text_char(&text, __memprof_profile_filename[i]);
    }
    hw_text_string(&text, name);
    return directory != 0;
}

/* NAME is another name of FUNCTION. */
#define ALIAS(name, function) extern __typeof__(function) name __attribute__((alias(#function), visibility("default")))

/* ---- start: called by a constructor of every object ---- */

HW_EXPORTED(void, __memprof_init, (void))
{
    hw_start();
    hw_access_enable(hw_memprof_granule() == 8 ? 8 : 64);
    hw_memprof_start();
}

ALIAS(__memprof_preinit, __memprof_init);

HW_EXPORTED(void, __memprof_version_mismatch_check_v1, (void))
{
}

/* ---- callbacks ---- */

HW_EXPORTED(void, __memprof_load, (uintptr_t address))
{
    hw_count((const void *)address, 1, 1, 0);
}

HW_EXPORTED(void, __memprof_store, (uintptr_t address))
{
    hw_count((const void *)address, 1, 0, 1);
}

ALIAS(__memprof_hist_load, __memprof_load);
ALIAS(__memprof_hist_store, __memprof_store);

HW_EXPORTED(void *, __memprof_memcpy, (void *to, const void *from, size_t bytes))
{
    return __heapwise_memcpy(to, from, bytes);
}

HW_EXPORTED(void *, __memprof_memmove, (void *to, const void *from, size_t bytes))
{
    return __heapwise_memmove(to, from, bytes);
}

HW_EXPORTED(void *, __memprof_memset, (void *to, int value, size_t bytes))
{
    return __heapwise_memset(to, value, bytes);
}

/* ---- <sanitizer/memprof_interface.h> ----
 *
 * An access that the program reports, of which it does not say what it is: counted where inline code counts. */

typedef uint64_t memprof_cell __attribute__((may_alias));

static void record(uintptr_t first, uintptr_t last)
{
    uintptr_t base = __memprof_shadow_memory_dynamic_address;
    if (!base || last < first)
        return;
    if (hw_shadow.granule == 64)
        for (uintptr_t granule = first >> 6; granule <= last >> 6; granule++)
            ++*(memprof_cell *)(base + (granule << 3));
    else
        for (uintptr_t word = first >> 3; word <= last >> 3; word++) {
            uint8_t *cell = (uint8_t *)(base + word);
            *cell = (uint8_t)(*cell + (*cell != 255));
        }
}

HW_EXPORTED(void, __memprof_record_access, (const volatile void *address))
{
    record((uintptr_t)address, (uintptr_t)address);
}
ALIAS(__memprof_record_access_hist, __memprof_record_access);

/* One access in each granule, as of any memory intrinsic. */
HW_EXPORTED(void, __memprof_record_access_range, (const volatile void *address, size_t bytes))
{
    if (bytes)
        record((uintptr_t)address, (uintptr_t)address + bytes - 1);
}
ALIAS(__memprof_record_access_range_hist, __memprof_record_access_range);

extern int heapwise_dump(void);

HW_EXPORTED(int, __memprof_profile_dump, (void))
{
    return heapwise_dump();
}

/* LLVM's opens its file anew. Here every dump has a file of its own. */
HW_EXPORTED(int, __memprof_profile_reset, (void))
{
    return 0;
}

HW_EXPORTED(void, __memprof_print_accumulated_stats, (void))
{
    if (hw_runtime.state != HW_STATE_ON)
        return;
    uint64_t frees, allocations = hw_threads_sum(&frees);
    char line[160];
    struct hw_text text;
    hw_text_init(&text, line, sizeof line);
    hw_text_u64(&text, allocations);
    hw_text_string(&text, " allocations, ");
    hw_text_u64(&text, frees);
    hw_text_string(&text, " frees, peak ");
    hw_text_u64(&text, hw_runtime.process->peak_bytes);
    hw_text_string(&text, " bytes");
    hw_message(line, NULL);
}
