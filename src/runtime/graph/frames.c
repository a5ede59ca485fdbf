/* frames.c - which function's frame a word of a stack lies in: a thread that stands still, unwound with the compiled
 * tables from its registers. Nothing is looked for that is not known, and no lock is taken. */
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/graph/internal.h"
#include "runtime/stacks/stacks.h"

#define FRAMES_MOST 1024
#define BELOW_STACK 128u /* code may use that much below its stack pointer */

static struct {
    struct hw_stack_frame frame[FRAMES_MOST]; /* ascending addresses */
    uint32_t count, latest;
    const struct hw_span *stack;
} frames HW_LARGE;

static bool may_read(void *closure, uintptr_t address)
{
    (void)closure;
    return !(address & 7) && address >= frames.stack->start && address + 8 <= frames.stack->end;
}

/* Its unwind tables are still what is mapped there. */
static bool has_tables(const struct hw_module *module)
{
    const struct hw_span *span = module->eh_frame_hdr ? hw_span_of((uintptr_t)module->eh_frame_hdr) : NULL;
    if (!span || !span->readable || module->eh_frame_hdr_size < sizeof module->header ||
        (uintptr_t)module->eh_frame_hdr + module->eh_frame_hdr_size > span->end)
        return false;
    const uint64_t *header = (const uint64_t *)module->eh_frame_hdr;
    return header[0] == module->header[0] && header[1] == module->header[1];
}

/* A frame of code without tables, by the frame pointer. */
static bool step_by_pointer(uint64_t registers[HW_REG_COUNT])
{
    const uintptr_t at = registers[HW_REG_FP];
    if (at < registers[HW_REG_SP] || !may_read(NULL, at) || !may_read(NULL, at + 8) ||
        !hw_module_of_data(hw_arch_frame_return(at)))
        return false;
    registers[HW_REG_PC] = hw_arch_frame_return(at);
    registers[HW_REG_FP] = hw_arch_frame_caller_fp(at);
    registers[HW_REG_SP] = hw_arch_frame_caller_sp(at);
    return true;
}

static bool step(const struct hw_module *module, uintptr_t pc, uint64_t registers[HW_REG_COUNT], bool *signal_frame)
{
    const struct hw_cfi_memory memory = {may_read, NULL};
    if (has_tables(module)) {
        const enum hw_step result = hw_cfi_step(module, pc, registers, &memory, signal_frame);
        if (result != HW_STEP_NO_TABLE)
            return result == HW_STEP_OK;
    }
    return step_by_pointer(registers);
}

void hw_frames_make(const uint64_t *start)
{
    uint64_t registers[HW_REG_COUNT];
    bool exact = true;
    frames.count = frames.latest = 0;
    if (!start)
        return;
    __builtin_memcpy(registers, start, sizeof registers);
    frames.stack = hw_span_of(registers[HW_REG_SP]);
    if (!frames.stack || !frames.stack->readable || frames.stack->file)
        return;
    while (frames.count < FRAMES_MOST) {
        const uintptr_t pc = registers[HW_REG_PC] - !exact, sp = registers[HW_REG_SP];
        const struct hw_module *module = hw_module_of_data(pc);
        bool signal_frame = false;
        if (!module || !step(module, pc, registers, &signal_frame) || registers[HW_REG_SP] <= sp ||
            registers[HW_REG_SP] > frames.stack->end)
            return;
        frames.frame[frames.count] =
            (struct hw_stack_frame){.start = frames.count ? sp : sp - BELOW_STACK,
                                    .end = registers[HW_REG_SP],
                                    .address = pc - module->bias,
                                    .map = module->flags & HW_MAP_RUNTIME ? HW_NONE : module->map};
        frames.count++;
        exact = signal_frame;
    }
}

struct hw_stack_frame *hw_frame_of(uintptr_t address)
{
    while (frames.latest && address < frames.frame[frames.latest].start)
        frames.latest--;
    while (frames.latest < frames.count && address >= frames.frame[frames.latest].end)
        frames.latest++;
    if (frames.latest == frames.count) {
        frames.latest = 0;
        return NULL;
    }
    struct hw_stack_frame *frame = &frames.frame[frames.latest];
    return address >= frame->start ? frame : NULL;
}
