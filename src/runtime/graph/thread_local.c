/* thread_local.c - where a thread has the thread-local data of each module. During a search. */
#include "runtime/core/core.h"
#include "runtime/core/modules.h"
#include "runtime/graph/internal.h"

static struct {
    const struct hw_span *span; /* of the thread pointer */
    uintptr_t thread_pointer;
    const uint64_t *table; /* of libc: two words for each module */
    struct hw_local_block *block;
    uint32_t count, most;
} found;

static bool can_read(const struct hw_span *in, uintptr_t address)
{
    return in && in->readable && !in->file && !(address & 7) && address >= in->start && address + 8 <= in->end;
}

static void find_block(const struct hw_module *module)
{
    const uintptr_t entry = (uintptr_t)(found.table + 2 * module->tls_module);
    if (!module->tls_module || module->map == HW_NONE || found.count == found.most ||
        !can_read(hw_span_of(entry), entry))
        return;
    const uintptr_t start = *(const uintptr_t *)entry;
    if (start >= found.span->start && start < found.thread_pointer && module->tls_size <= found.thread_pointer - start)
        found.block[found.count++] =
            (struct hw_local_block){.start = start, .end = start + module->tls_size, .map = module->map};
}

/* glibc: the second word of a thread's control block points to a table, the word before has its length. */
uint32_t hw_local_blocks(uintptr_t thread_pointer, struct hw_local_block *block, uint32_t most)
{
    const uintptr_t at = thread_pointer + sizeof(uint64_t);
    found.span = hw_span_of(thread_pointer);
    found.thread_pointer = thread_pointer;
    found.block = block;
    found.most = most;
    found.count = 0;
    if (!found.span || !can_read(hw_span_of(at), at))
        return 0;
    found.table = *(const uint64_t *const *)at;
    const uintptr_t length = (uintptr_t)(found.table - 2);
    if (can_read(hw_span_of(length), length) && found.table[-2] < 1u << 20)
        hw_modules_each(find_block);
    return found.count;
}
