/* memory_parts.c - see memory_parts.h. */
#include "report/view/memory_parts.h"

#include <string.h>

static bool has_ledger(const struct hw_memory_breakdown *memory)
{
    return memory->known & HW_MEMORY_LEDGER;
}

static int64_t live_part(const struct hw_memory_breakdown *memory)
{
    return memory->live_bytes;
}

/* Resident heap beyond the requested bytes; below zero where requested memory is not resident. */
static int64_t overhead(const struct hw_memory_breakdown *memory)
{
    return (int64_t)(has_ledger(memory) ? memory->allocator : memory->heap) - memory->live_bytes;
}

static bool has_parts(const struct hw_memory_breakdown *memory)
{
    return memory->known & HW_MEMORY_PARTS;
}

static int64_t rounding_part(const struct hw_memory_breakdown *memory)
{
    return has_parts(memory) ? (int64_t)memory->rounding : 0;
}

static int64_t pinned_part(const struct hw_memory_breakdown *memory)
{
    return has_parts(memory) ? (int64_t)memory->pinned : 0;
}

static int64_t pages_part(const struct hw_memory_breakdown *memory)
{
    return has_parts(memory) ? (int64_t)memory->kept : 0;
}

static int64_t metadata_part(const struct hw_memory_breakdown *memory)
{
    return has_parts(memory) ? (int64_t)memory->metadata : 0;
}

static int64_t mapped_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->mapped;
}

static int64_t unexplained_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->unexplained;
}

static int64_t kept_part(const struct hw_memory_breakdown *memory)
{
    return !has_parts(memory) && overhead(memory) > 0 ? overhead(memory) : 0;
}

static int64_t untouched_part(const struct hw_memory_breakdown *memory)
{
    return has_parts(memory) ? (int64_t)memory->used - memory->live_bytes : overhead(memory) < 0 ? overhead(memory) : 0;
}

static int64_t file_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->file;
}

static int64_t stack_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->stack;
}

static int64_t runtime_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->runtime;
}

static int64_t other_part(const struct hw_memory_breakdown *memory)
{
    return (int64_t)memory->other;
}

const struct hw_memory_part hw_memory_parts[] = {
    {"requested", "Heap blocks, as requested", NULL, live_part},
    {"heap_overhead", "Heap around them: headers, rounding, freed blocks",
     "memory that the allocator keeps around the blocks", kept_part},
    {"rounding", "Rounding of their sizes", "sizes that the allocator rounds up", rounding_part},
    {"pinned", "Free, in pages with a live block", "free memory in pages with a live block", pinned_part},
    {"kept", "Free, in pages that the allocator keeps", "free pages that the allocator keeps", pages_part},
    {"metadata", "Headers, and mappings without live blocks", "data of the allocator", metadata_part},
    {"untouched", "Not in memory: not written yet, or released", NULL, untouched_part},
    {"mapped", "Mapped by the program itself (mmap)", "memory that the program mapped itself", mapped_part},
    {"files", "Code and data of program and libraries, files", "code, static data and mapped files", file_part},
    {"stacks", "Stacks of threads", "stacks of threads", stack_part},
    {"heapwise", "Heapwise's own memory", "Heapwise's own memory", runtime_part},
    {"other", "Other (shared memory, vDSO)", "shared memory and other mappings", other_part},
    {"unexplained", "Not explained: mapped by no call that was seen", "memory that no call was seen to map",
     unexplained_part},
};
const size_t hw_memory_part_count = sizeof hw_memory_parts / sizeof *hw_memory_parts;

const struct hw_ledger_kind_words hw_ledger_kinds[HW_LEDGER_KINDS] = {
    [HW_LEDGER_OTHER] = {"kernel", "the kernel's (vDSO)"},
    [HW_LEDGER_ALLOCATOR] = {"allocator", "the allocator"},
    [HW_LEDGER_MAPPED] = {"mapped", "mapped in "},
    [HW_LEDGER_UNSEEN] = {"unknown", "not explained"},
    [HW_LEDGER_MODULE] = {"module", "code and data of "},
    [HW_LEDGER_FILE] = {"file", "file "},
    [HW_LEDGER_SHARED] = {"shared", "shared memory "},
    [HW_LEDGER_STACK] = {"stack", "stack of "},
    [HW_LEDGER_OLD_STACK] = {"ended_stacks", "stacks of threads that have ended"},
    [HW_LEDGER_RUNTIME] = {"heapwise", "Heapwise"},
    [HW_LEDGER_LOADER] = {"loader", "thread-local data of the first thread"},
};

void hw_ledger_title(const struct hw_profile *profile, const struct hw_ledger_row *row, struct hw_buffer *title)
{
    const char *words = hw_ledger_kinds[row->kind].words;
    hw_buffer_clear(title);
    if (row->kind == HW_LEDGER_MAPPED) {
        hw_buffer_add(title, "mapped by the program");
        return;
    }
    hw_buffer_add(title, "%s", words);
    if (row->name)
        hw_buffer_clean(title, hw_profile_string(profile, row->name), HW_CLEAN_JSON);
    else if (words[strlen(words) - 1] == ' ')
        hw_buffer_add(title, "others");
}
