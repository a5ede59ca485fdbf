/* fill.c - new blocks are filled with a pattern, by which it is seen later what was never written (record
 * --contents=fill).
 *
 * Only what is nobody's yet: blocks of malloc and its aligned relatives, and what realloc adds behind all that was
 * usable before. Never blocks of calloc. Large blocks stay as they are: of those it is known which pages were touched.
 * The functions stand in the table of the real allocator, so that hooks cost nothing where this is off. */
#include "runtime/core/core.h"
#include "runtime/graph/graph.h"
#include "runtime/hooks/hooks.h"

static struct hw_real inner;

static void *filled(void *block, size_t size)
{
    if (block)
        hw_contents_fill(block, size);
    return block;
}

static void *fill_malloc(size_t size)
{
    return filled(inner.malloc(size), size);
}

static void *fill_memalign(size_t alignment, size_t size)
{
    return filled(inner.memalign(alignment, size), size);
}

static void *fill_aligned_alloc(size_t alignment, size_t size)
{
    return filled(inner.aligned_alloc(alignment, size), size);
}

static void *fill_valloc(size_t size)
{
    return filled(inner.valloc(size), size);
}

static void *fill_pvalloc(size_t size)
{
    return filled(inner.pvalloc(size), size);
}

static int fill_posix_memalign(void **block, size_t alignment, size_t size)
{
    const int error = inner.posix_memalign(block, alignment, size);
    if (!error)
        filled(*block, size);
    return error;
}

/* Programs may use what malloc_usable_size says: that was never fresh. */
static void *fill_realloc(void *block, size_t size)
{
    const size_t before = !block ? 0 : inner.malloc_usable_size ? inner.malloc_usable_size(block) : SIZE_MAX;
    char *result = inner.realloc(block, size);
    if (result && before < size && size <= HW_CONTENTS_FILL_MOST)
        hw_contents_fill(result + before, size - before);
    return result;
}

void hw_fill_start(void)
{
    if (hw_real.malloc == fill_malloc)
        return;
    if (!hw_real_home)
        hw_real_home = (const void *)hw_real.malloc;
        /* Who hands out comes last: another thread may be in the middle of a call. */
#define WRAP(name)                                                                                                     \
    if (hw_real.name) {                                                                                                \
        inner.name = hw_real.name;                                                                                     \
        __atomic_store_n(&hw_real.name, fill_##name, __ATOMIC_SEQ_CST);                                                \
    }
    inner.malloc_usable_size = hw_real.malloc_usable_size;
    WRAP(realloc)
    WRAP(memalign)
    WRAP(posix_memalign)
    WRAP(aligned_alloc)
    WRAP(valloc)
    WRAP(pvalloc)
    WRAP(malloc)
#undef WRAP
}
