/* unwind.c - from a hook's frame to the context of its caller.
 *
 * Verify instead of walking. A walk depends on a few stack slots: the return addresses, and a saved frame pointer where
 * a later frame's CFA is computed from it. Each thread keeps recent walks by (pc, stack pointer) with these slots and
 * their values: if every slot still holds its value, the stack is the same one, by induction from the leaf. Otherwise
 * the stack is walked with compiled rules (cfi.c), which are cached by pc for all threads. A frame that has no simple
 * rule (signal frames, other registers) makes the walk start again with all registers. In code without tables the
 * instructions show how far the stack pointer is from the return address (arch/.../frame.c); it must follow a call.
 * Else frame pointers are followed.
 *
 * Every read of the stack is checked against bounds that are known to be mapped. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/operators.h"

#include <errno.h>
#include <sys/auxv.h>

extern unsigned long getauxval(unsigned long) __attribute__((weak));

/* ---- rules by pc ---- */

/* A cache: lock-free, lossy. key = pc | generation << 48; 0 while a slot changes. Of the table only a part is used,
 * four times as much whenever that is half full, so that short runs touch few pages; what is in the wrong place then is
 * compiled once more. */
#define RULE_SLOTS  (1u << 16)
#define RULE_FIRST  (1u << 9)
#define RULE_PROBES 4u
static struct rule_slot {
    uint64_t key, rule;
} * rules;
static uint32_t rule_mask = RULE_FIRST - 1, rules_made;

static void note_rule(void)
{
    const uint32_t mask = __atomic_load_n(&rule_mask, __ATOMIC_RELAXED);
    if (mask < RULE_SLOTS - 1 && __atomic_add_fetch(&rules_made, 1, __ATOMIC_RELAXED) > mask / 2) {
        __atomic_store_n(&rule_mask, mask * 4 + 3 < RULE_SLOTS - 1 ? mask * 4 + 3 : RULE_SLOTS - 1, __ATOMIC_RELAXED);
        __atomic_store_n(&rules_made, 0, __ATOMIC_RELAXED);
    }
}

/* Above all frames of the first thread: where the kernel has put the program's name. The environment may be elsewhere,
 * after setenv. 0: not known. */
static uintptr_t first_stack_end;

void hw_unwind_start(void)
{
    first_stack_end = getauxval ? getauxval(AT_EXECFN) : 0;
    if (!rules)
        rules = hw_own_pages(RULE_SLOTS * sizeof *rules, false);
}

/* With HW_RULE_NONE: generated code, or no code at all; do not even try frame pointers. */
#define RULE_STOP (1ull << 8)
#define RULE_READ (1ull << 9) /* made of the code itself: to be verified */

/* Code that may be executed may be read, as good as always. */
static bool is_readable_code(const struct hw_module *module, uintptr_t at)
{
    return at >= module->start && at < module->end && (hw_quiet || hw_readable(at));
}

/* The rule for the call or instruction that ends at NEXT, of the code itself. */
static uint64_t rule_of_code(const struct hw_module *module, uintptr_t next)
{
    struct hw_arch_frame frame;
    if (module->flags & HW_MAP_ANONYMOUS || !is_readable_code(module, next) ||
        !hw_arch_frame_of(next, module->start, module->end, &frame) || frame.cfa != (int32_t)frame.cfa)
        return HW_RULE_NONE;
    uint64_t rule = HW_RULE_SIMPLE | RULE_READ | (frame.from_fp ? 1 << 3 : 0) | (uint64_t)(uint32_t)frame.cfa << 32;
    if (frame.fp_saved && (frame.fp_slot >= 0 || frame.fp_slot % 8 || frame.fp_slot / -8 > 0xffff))
        return HW_RULE_NONE;
    return frame.fp_saved ? rule | 1 << 5 | (uint64_t)(frame.fp_slot / -8) << 16 : rule;
}

/* Is PC a return address? */
static bool is_return(uintptr_t pc)
{
    const struct hw_module *module = hw_module_find(pc - 1);
    uintptr_t target;
    return module && (module->flags & HW_MAP_ANONYMOUS ||
                      (is_readable_code(module, pc - 8) && hw_arch_is_behind_call(pc, module->start, &target)));
}

static __attribute__((noinline)) uint64_t compile_rule(uintptr_t pc, uint64_t key, struct rule_slot *slot)
{
    const struct hw_module *module = hw_module_find(pc);
    uint64_t rule = HW_RULE_NONE;
    if (module && !hw_module_still_there(module)) {
        module = hw_module_find(pc);
        slot = NULL; /* its key is of the generation before */
    }
    if (module) {
        rule = hw_cfi_rule(module, pc);
        if (rule == HW_RULE_NONE)
            rule = rule_of_code(module, pc + 1);
        if (rule == HW_RULE_NONE && (module->flags & HW_MAP_ANONYMOUS)) {
            rule |= RULE_STOP;
            hw_note(HW_NOTE_JIT, NULL);
        } else if (rule == HW_RULE_NONE && !module->eh_frame_hdr && module->map != HW_NONE)
            hw_note(HW_NOTE_NO_UNWIND,
                    hw_pools[HW_POOL_STRINGS].base + HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, module->map)->path);
    } else
        rule |= RULE_STOP;
    if (!slot || !module)
        return rule; /* code that may appear later is not remembered */
    __atomic_store_n(&slot->key, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->rule, rule, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
    note_rule();
    return rule;
}

static inline uint64_t rule_at(uintptr_t pc)
{
    if (hw_unlikely(!rules))
        return compile_rule(pc, 0, NULL);
    uint64_t key = pc | __atomic_load_n(&hw_runtime.code_generation, __ATOMIC_RELAXED) << 48;
    const uint32_t at = (uint32_t)(pc ^ pc >> 16), mask = __atomic_load_n(&rule_mask, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < RULE_PROBES; i++) {
        struct rule_slot *slot = &rules[(at + i) & mask];
        if (hw_likely(__atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) == key)) {
            uint64_t rule = __atomic_load_n(&slot->rule, __ATOMIC_ACQUIRE);
            if (hw_likely(__atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key))
                return rule;
        }
    }
    for (uint32_t i = 0; i < RULE_PROBES; i++) {
        struct rule_slot *slot = &rules[(at + i) & mask];
        uint64_t there = __atomic_load_n(&slot->key, __ATOMIC_RELAXED);
        if (!there || there >> 48 != key >> 48)
            return compile_rule(pc, key, slot);
    }
    return compile_rule(pc, key, &rules[(at + (pc >> 4 & (RULE_PROBES - 1))) & mask]);
}

/* ---- how far the stack goes ---- */

#define STACK_NEAR (1ul << 20) /* farther away /proc/self/maps is cheaper than asking page by page */

bool hw_readable(uintptr_t address)
{
    return !hw_quiet && hw_sys(SYS_rt_sigprocmask, -1, address & ~7ul, 0, 8) != -EFAULT;
}

/* Can every page of [start, end) be read? Guard pages are mapped, too, so presence is not enough: the kernel is asked
 * to copy a few bytes from each (for an invalid operation, which it refuses after the copy). */
static bool pages_readable(uintptr_t start, uintptr_t end)
{
    for (start &= ~(HW_PAGE - 1); start < end; start += HW_PAGE)
        if (!hw_readable(start))
            return false;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* End of the mapping that holds ADDRESS, by /proc/self/maps ("start-end …" lines); 0 when it cannot be found. */
static uintptr_t mapping_end(uintptr_t address)
{
    char buffer[1024];
    uintptr_t range[2] = {0, 0};
    enum { START, END, REST } field = START;
    int fd = hw_open("/proc/self/maps", O_RDONLY, 0);
    if (fd < 0)
        return 0;
    bool found = false;
    for (long n; !found && (n = hw_sys(SYS_read, fd, buffer, sizeof buffer)) > 0;)
        for (long i = 0; i < n && !found; i++) {
            int digit = hex_digit(buffer[i]);
            if (field != REST && digit >= 0)
                range[field] = range[field] << 4 | (uintptr_t)digit;
            else if (field == START)
                field = END;
            else if (field == END) {
                found = address >= range[0] && address < range[1];
                field = REST;
            } else if (buffer[i] == '\n') {
                range[0] = range[1] = 0;
                field = START;
            }
        }
    hw_close(fd);
    return found ? range[1] : 0;
}

/* ---- where the kernel cannot be asked ---- */

#define FIRST_STACK (64ul << 20) /* below its end nothing else lies: the kernel keeps more than that free */
#define STACK_SLACK (64ul << 10) /* guard pages, and what libc keeps at the top */

static __thread struct hw_stack own_stack; /* of a thread that began after the program had given up system calls */

void hw_unwind_thread(size_t stack_bytes)
{
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0), top = hw_arch_thread_pointer();
    if (sp < top && stack_bytes > 2 * STACK_SLACK && top - sp < stack_bytes - STACK_SLACK)
        own_stack = (struct hw_stack){top - stack_bytes + STACK_SLACK, top};
}

static bool known_stack(struct hw_stack *stack, uintptr_t sp)
{
    if (sp >= own_stack.low && sp < own_stack.high)
        *stack = own_stack;
    else if (sp < first_stack_end && first_stack_end - sp < FIRST_STACK)
        *stack = (struct hw_stack){sp, first_stack_end};
    else
        return false;
    return true;
}

static const struct hw_area *reached;

/* All of the mapping can be read that a thread's stack is known to lie in. */
static void reach_down(struct hw_thread *thread)
{
    if (thread->stack.low >= reached->start && thread->stack.high <= reached->end)
        thread->stack.low = reached->start;
}

static void reach_down_in(const struct hw_area *area)
{
    reached = area;
    if (area->writable)
        hw_threads_each(reach_down);
}

void hw_unwind_quiet(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    hw_areas_each(reach_down_in);
    hw_lock_drop(&hw_runtime.lock, old);
}

/* Makes *STACK the readable rest of the stack that holds SP. */
static bool find_stack(struct hw_stack *stack, uintptr_t sp)
{
    if (hw_quiet)
        return known_stack(stack, sp);
    uintptr_t above = hw_arch_thread_pointer(), end = 0;
    struct {
        uintptr_t base;
        int flags;
        size_t size;
    } alternate = {0, 0, 0};
    if (sp < stack->low && stack->low - sp < STACK_NEAR && pages_readable(sp, stack->low))
        end = stack->high; /* the same stack, deeper */
    else if (hw_sys(SYS_sigaltstack, 0, &alternate) == 0 && sp - alternate.base < alternate.size)
        end = alternate.base + alternate.size; /* that of signal handlers */
    else if (sp < above && above - sp < STACK_NEAR && pages_readable(sp, above))
        end = above; /* a thread's stack lies below its control block */
    else
        end = mapping_end(sp);
    above = first_stack_end;
    if (!end && sp < above && above - sp < STACK_NEAR && pages_readable(sp, above))
        end = above; /* no /proc: that of the first thread */
    if (!end)
        return false;
    stack->low = sp & ~(HW_PAGE - 1);
    stack->high = end;
    return true;
}

static inline bool on_stack(const struct hw_stack *stack, uintptr_t address)
{
    return address >= stack->low && address + 8 <= stack->high;
}

/* ---- walking ---- */

struct state {
    struct hw_thread *thread;
    uint32_t depth, limit, flags;
    uint32_t slots; /* used of thread->slots: pairs (address, value) */
    uint64_t hash;
    bool needs_fp; /* the walk depends on the frame pointer at its start */
    bool cacheable;
    uintptr_t fp_slot; /* where the present frame pointer was loaded from; 0: it is the register of the start */
    bool fp_listed;    /* that slot is among the slots already */
};

/* Are all frames so far the C++ library's? */
static bool in_operator_new(const struct state *s)
{
    const struct hw_module *library = NULL;
    for (int form = 0; form < HW_NEW_COUNT && !library; form++)
        library = hw_real.op_new[form] ? hw_module_find((uintptr_t)hw_real.op_new[form]) : NULL;
    bool all = library && s->depth <= 3;
    for (uint32_t i = 0; all && i < s->depth; i++)
        all = hw_module_find(s->thread->pcs[i] & ~HW_PC_EXACT) == library;
    return all;
}

static inline void add_pc(struct state *s, uint64_t pc)
{
    if (hw_unlikely(pc - hw_runtime.text_start < hw_runtime.text_end - hw_runtime.text_start)) {
        if (in_operator_new(s))
            s->depth = 0; /* called by ours: its caller is the leaf */
        return;
    }
    if (hw_likely(s->depth < s->limit))
        s->thread->pcs[s->depth++] = pc;
    else
        s->flags |= HW_CONTEXT_TRUNCATED;
}

static inline void depend_on(struct state *s, uintptr_t address, uint64_t value)
{
    if (hw_likely(s->slots < HW_DEPTH_MAX)) {
        s->thread->slots[2 * s->slots] = address;
        s->thread->slots[2 * s->slots + 1] = value;
        s->slots++;
    } else
        s->cacheable = false;
}

static void use_fp(struct state *s)
{
    if (!s->fp_slot)
        s->needs_fp = true;
    else if (!s->fp_listed) {
        depend_on(s, s->fp_slot, *(const uint64_t *)s->fp_slot);
        s->fp_listed = true;
    }
}

/* Does the function at PC, in a module with tables but not for it, have the frame whose return address is RETURN? It
 * may be that of its caller. */
static bool may_be_own_frame(uint64_t pc, uint64_t next)
{
    const struct hw_module *module = hw_module_find(pc - 1), *caller = hw_module_find(next - 1);
    uintptr_t target = 0;
    if (!module || !module->eh_frame_hdr)
        return true; /* all its code is alike: the report says that it rests on frame pointers */
    return caller && is_readable_code(caller, next - 8) && hw_arch_is_behind_call(next, caller->start, &target) &&
           target && target < pc && hw_module_find(target) == module && !hw_cfi_covers(module, target);
}

/* A frame of code without tables: [fp] is the caller's frame pointer, if it points up this stack to a return address
 * in known code. */
static bool frame_pointer_step(struct state *s, uint64_t *pc, uint64_t *sp, uint64_t *fp)
{
    if ((*fp & 7) || *fp < *sp || !on_stack(&s->thread->stack, *fp) || !on_stack(&s->thread->stack, *fp + 8))
        return false;
    use_fp(s);
    uintptr_t at = *fp;
    uint64_t next_pc = *(const uint64_t *)(at + 8);
    if (!hw_module_find(next_pc - 1))
        return false;
    depend_on(s, at + 8, next_pc);
    if (!may_be_own_frame(*pc, next_pc))
        s->flags |= HW_CONTEXT_GAP;
    *pc = next_pc;
    *sp = at + 16;
    *fp = *(const uint64_t *)at;
    s->fp_slot = at;
    s->fp_listed = false;
    return true;
}

/* Is there a return address where a rule that was made of code says? */
static bool is_return_slot(const struct state *s, uint64_t rule, uint64_t sp, uint64_t fp)
{
    const uint64_t cfa = (rule & 1 << 3 ? fp : sp) + (uint64_t)((int64_t)rule >> 32);
    return !(cfa & 7) && cfa > sp && on_stack(&s->thread->stack, cfa - 8) && is_return(*(const uint64_t *)(cfa - 8));
}

enum walk_result { WALK_DONE, WALK_INCOMPLETE, WALK_NEEDS_REGISTERS };

/* The quick way: stack pointer and frame pointer only. */
static enum walk_result walk_simple(struct state *s, uint64_t pc, uint64_t sp, uint64_t fp)
{
    const struct hw_thread *thread = s->thread;
    for (;;) {
        add_pc(s, pc);
        if (hw_unlikely(s->flags & HW_CONTEXT_TRUNCATED))
            return WALK_DONE;
        uint64_t rule = rule_at(pc - 1);
        uint64_t cfa;
        if (hw_unlikely(rule & RULE_READ) && !is_return_slot(s, rule, sp, fp))
            rule = HW_RULE_NONE;
        switch (rule & 7) {
        case HW_RULE_SIMPLE:
            break;
        case HW_RULE_END:
            return WALK_DONE;
        case HW_RULE_COMPLEX:
            return WALK_NEEDS_REGISTERS;
        default:
            if (!(rule & RULE_STOP) && !fp) { /* the ABI's mark of the outermost frame, of the dynamic linker's code */
                use_fp(s);
                return WALK_DONE;
            }
            if ((rule & RULE_STOP) || !frame_pointer_step(s, &pc, &sp, &fp))
                return WALK_INCOMPLETE;
            continue;
        }
        if (rule & 1 << 3) {
            use_fp(s);
            cfa = fp;
        } else
            cfa = sp;
        cfa += (uint64_t)((int64_t)rule >> 32);
        if (hw_unlikely(rule & 1 << 4)) {
            if ((cfa & 7) || !on_stack(&thread->stack, cfa))
                return WALK_INCOMPLETE;
            uint64_t slot = cfa;
            cfa = *(const uint64_t *)slot;
            depend_on(s, slot, cfa);
        }
        if (hw_unlikely((cfa & 7) || cfa <= sp || !on_stack(&thread->stack, cfa - 8)))
            return WALK_INCOMPLETE;
        if (rule & 1 << 5) {
            uintptr_t slot = cfa - 8 * (rule >> 16 & 0xffff);
            if (hw_unlikely(!on_stack(&thread->stack, slot)))
                return WALK_INCOMPLETE;
            fp = *(const uint64_t *)slot;
            s->fp_slot = slot;
            s->fp_listed = false;
        } else if (hw_unlikely(rule & 1 << 6)) {
            if ((fp & 7) || !on_stack(&thread->stack, fp))
                return WALK_INCOMPLETE;
            use_fp(s);
            s->fp_slot = fp;
            s->fp_listed = false;
            fp = *(const uint64_t *)fp;
        }
        uint64_t next = *(const uint64_t *)(cfa - 8);
        depend_on(s, cfa - 8, next);
        pc = next;
        sp = cfa;
        if (hw_unlikely(!pc))
            return WALK_DONE;
    }
}

static bool may_read(void *closure, uintptr_t address)
{
    return on_stack(closure, address);
}

/* The walk begins in the runtime's own frames, below what the program's part of the stack was checked for. */
static uintptr_t lower(uintptr_t low, uintptr_t sp)
{
    return sp < low && low - sp < 16 * HW_PAGE ? sp & ~(HW_PAGE - 1) : low;
}

/* The thorough way: all callee-saved registers, from inside the runtime. Not remembered. */
static __attribute__((noinline)) enum walk_result walk_registers(struct state *s)
{
    uint64_t registers[HW_REG_COUNT];
    hw_arch_capture(registers);
    struct hw_stack *stack = &s->thread->stack; /* after a signal frame: the interrupted one */
    struct hw_cfi_memory memory = {may_read, stack};
    bool exact = true;
    stack->low = lower(stack->low, registers[HW_REG_SP]);
    s->depth = 0;
    s->flags = 0;
    s->cacheable = false;
    for (uint32_t steps = 0; steps < 4 * HW_DEPTH_MAX; steps++) {
        uint64_t pc = registers[HW_REG_PC], before = registers[HW_REG_SP];
        if (!exact)
            add_pc(s, pc);
        else if (pc - hw_runtime.text_start >= hw_runtime.text_end - hw_runtime.text_start)
            add_pc(s, pc | HW_PC_EXACT); /* exact pcs of the runtime are no frames either */
        if (s->flags & HW_CONTEXT_TRUNCATED)
            return WALK_DONE;
        const struct hw_module *module = hw_module_find(exact ? pc : pc - 1);
        if (!module)
            return WALK_INCOMPLETE;
        bool signal_frame = false;
        enum hw_step step = hw_cfi_step(module, exact ? pc : pc - 1, registers, &memory, &signal_frame);
        if (step == HW_STEP_END)
            return WALK_DONE;
        const uint64_t read = step == HW_STEP_NO_TABLE ? rule_of_code(module, pc) : HW_RULE_NONE;
        if (read != HW_RULE_NONE && is_return_slot(s, read, registers[HW_REG_SP], registers[HW_REG_FP])) {
            const uint64_t cfa = registers[read & 1 << 3 ? HW_REG_FP : HW_REG_SP] + (uint64_t)((int64_t)read >> 32);
            const uintptr_t slot = cfa - 8 * (read >> 16 & 0xffff);
            if (read & 1 << 5 && !on_stack(stack, slot))
                return WALK_INCOMPLETE;
            registers[HW_REG_FP] = read & 1 << 5 ? *(const uint64_t *)slot : registers[HW_REG_FP];
            registers[HW_REG_PC] = *(const uint64_t *)(cfa - 8);
            registers[HW_REG_SP] = cfa;
        } else if (step == HW_STEP_NO_TABLE && !(module->flags & HW_MAP_ANONYMOUS)) {
            uint64_t sp = registers[HW_REG_SP], fp = registers[HW_REG_FP];
            if (!frame_pointer_step(s, &registers[HW_REG_PC], &sp, &fp))
                return WALK_INCOMPLETE;
            registers[HW_REG_SP] = sp;
            registers[HW_REG_FP] = fp;
        } else if (step != HW_STEP_OK)
            return WALK_INCOMPLETE;
        exact = signal_frame;
        uintptr_t sp = registers[HW_REG_SP];
        if (signal_frame && (sp < stack->low || sp >= stack->high)) {
            const struct hw_thread *below = s->thread->interrupted;
            if (below && sp >= below->stack.low && sp < below->stack.high)
                *stack = below->stack;
            else if (!find_stack(stack, sp))
                return WALK_INCOMPLETE;
        } else if (sp <= before)
            return WALK_INCOMPLETE;
        if (!registers[HW_REG_PC])
            return WALK_DONE;
    }
    return WALK_INCOMPLETE;
}

/* Looks for the frame OUTER, and for signal frames on the way to it. */
enum hw_caller hw_caller_of_hook(struct hw_thread *thread, uintptr_t outer, uintptr_t frame)
{
    uint64_t registers[HW_REG_COUNT];
    hw_arch_capture(registers);
    struct hw_stack stack = thread->stack;
    struct hw_cfi_memory memory = {may_read, &stack};
    stack.low = lower(stack.low, registers[HW_REG_SP]);
    if (!on_stack(&stack, registers[HW_REG_SP]) && !find_stack(&stack, registers[HW_REG_SP]))
        return HW_CALLER_ALLOCATOR;
    bool same_stack = on_stack(&stack, outer);
    if (same_stack && on_stack(&stack, frame) && frame >= outer)
        return HW_CALLER_NONE;
    for (int steps = 0; steps < 4 * HW_DEPTH_MAX; steps++) {
        uint64_t pc = registers[HW_REG_PC];
        const struct hw_module *module = hw_module_find(pc - (steps > 0));
        bool signal_frame = false;
        if (!module || hw_cfi_step(module, pc - (steps > 0), registers, &memory, &signal_frame) != HW_STEP_OK)
            return signal_frame ? HW_CALLER_HANDLER : HW_CALLER_ALLOCATOR;
        if (signal_frame)
            return HW_CALLER_HANDLER;
        /* Where the outer hook's frame was: is the code there still the runtime's? */
        if (same_stack && registers[HW_REG_SP] > outer)
            return pc - hw_runtime.text_start < hw_runtime.text_end - hw_runtime.text_start ? HW_CALLER_ALLOCATOR
                                                                                            : HW_CALLER_NONE;
    }
    return HW_CALLER_ALLOCATOR;
}

/* ---- remembering ---- */

/* Slots are compared four at a time: most walks are the right ones, and branches cost more than loads. */
static inline bool still_true(const struct hw_thread *thread, const struct hw_walk *walk)
{
    const uint64_t *value = thread->ring + walk->slot;
    const uint16_t *offset = thread->ring_offset + walk->slot;
    const uint64_t *stack = (const uint64_t *)walk->sp;
    uint32_t i = 0, slots = walk->slots;
    for (; i + 4 <= slots; i += 4)
        if ((stack[offset[i]] ^ value[i]) | (stack[offset[i + 1]] ^ value[i + 1]) |
            (stack[offset[i + 2]] ^ value[i + 2]) | (stack[offset[i + 3]] ^ value[i + 3]))
            return false;
    for (; i < slots; i++)
        if (stack[offset[i]] != value[i])
            return false;
    return true;
}

static inline struct hw_walk *walk_set(struct hw_thread *thread, uint64_t pc, uint64_t sp)
{
    uint64_t hash = (pc * 0x9e3779b97f4a7c15ull) ^ (sp * 0xc2b2ae3d27d4eb4full);
    return thread->walks + (hash >> 40) % HW_WALK_SETS * HW_WALK_WAYS;
}

/* The ring is overwritten from the start when it is full: a walk of the lap before is valid while its slots lie ahead
 * of the writing position. */
static inline bool slots_alive(const struct hw_thread *thread, const struct hw_walk *walk)
{
    return walk->lap == thread->ring_lap || (walk->lap + 1 == thread->ring_lap && walk->slot >= thread->ring_next);
}

static struct hw_walk *remember(struct state *s, struct hw_walk *set, uint64_t pc, uint64_t sp, uint64_t fp)
{
    struct hw_thread *thread = s->thread;
    if (!s->cacheable)
        return &thread->scratch;
    for (uint32_t i = 0; i < s->slots; i++) {
        if ((thread->slots[2 * i] - sp) / 8 > UINT16_MAX)
            return &thread->scratch;
    }
    if (thread->ring_next + s->slots > HW_WALK_RING) {
        thread->ring_next = 0;
        thread->ring_lap++;
    }
    struct hw_walk *walk = &set[thread->allocation_serial % HW_WALK_WAYS];
    for (uint32_t i = 0; i < HW_WALK_WAYS; i++)
        if (!set[i].pc || !slots_alive(thread, &set[i])) {
            walk = &set[i];
            break;
        }
    walk->pc = pc;
    walk->sp = sp;
    walk->fp = fp;
    walk->needs_fp = s->needs_fp;
    walk->slot = thread->ring_next;
    walk->slots = (uint16_t)s->slots;
    walk->lap = thread->ring_lap;
    for (uint32_t i = 0; i < s->slots; i++, thread->ring_next++) {
        thread->ring[thread->ring_next] = thread->slots[2 * i + 1];
        thread->ring_offset[thread->ring_next] = (uint16_t)((thread->slots[2 * i] - sp) / 8);
    }
    return walk;
}

static uint64_t hash_stack(const uint64_t *pcs, uint32_t depth, uint32_t flags)
{
    uint64_t hash = hw_runtime.code_generation * 0x9e3779b97f4a7c15ull + depth + ((uint64_t)flags << 32);
    for (uint32_t i = 0; i < depth; i++) {
        hash = (hash ^ pcs[i]) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

static __attribute__((noinline)) struct hw_walk *walk_anew(struct hw_thread *thread, struct hw_walk *set, uint64_t pc,
                                                           uint64_t sp, uint64_t fp)
{
    struct state s = {.thread = thread, .limit = hw_options.depth, .cacheable = true};
    enum walk_result result = WALK_INCOMPLETE;
    thread->entry->walks++;
    if (hw_likely(sp >= thread->stack.low && sp < thread->stack.high) || find_stack(&thread->stack, sp)) {
        result = walk_simple(&s, pc, sp, fp);
        if (result == WALK_NEEDS_REGISTERS)
            result = walk_registers(&s);
    } else
        add_pc(&s, pc);
    if (result != WALK_DONE) {
        s.flags |= HW_CONTEXT_INCOMPLETE;
        thread->entry->incomplete_walks++;
    }
    uint32_t context = hw_context_get(thread->pcs, s.depth, hash_stack(thread->pcs, s.depth, s.flags), s.flags);
    struct hw_walk *walk = remember(&s, set, pc, sp, fp);
    walk->mib = hw_options.table_entries ? NULL : hw_mib_get(thread, context);
    walk->home = walk->mib ? walk->mib->home : hw_home_of_context(context);
    return walk;
}

uint32_t hw_walk_context(const struct hw_walk *walk)
{
    return hw_home_of(walk->home).context;
}

HW_INLINE struct hw_walk *walk_from(struct hw_thread *thread, uint64_t pc, uint64_t sp, uint64_t fp)
{
    if (hw_unlikely(thread->generation != hw_runtime.code_generation)) {
        __builtin_memset(thread->walks, 0, sizeof(struct hw_walk) * HW_WALK_SETS * HW_WALK_WAYS);
        thread->generation = hw_runtime.code_generation;
    }
    struct hw_walk *set = walk_set(thread, pc, sp);
    for (uint32_t i = 0; i < HW_WALK_WAYS; i++) {
        struct hw_walk *walk = &set[i];
        if (walk->pc == pc && walk->sp == sp && (!walk->needs_fp || walk->fp == fp) && slots_alive(thread, walk) &&
            still_true(thread, walk)) {
            thread->entry->verified++;
            return walk;
        }
    }
    return walk_anew(thread, set, pc, sp, fp);
}

struct hw_walk *hw_walk_at(struct hw_thread *thread, uintptr_t frame)
{
    return walk_from(thread, hw_arch_frame_return(frame), hw_arch_frame_caller_sp(frame),
                     hw_arch_frame_caller_fp(frame));
}

struct hw_walk *hw_walk_from(struct hw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    return walk_from(thread, pc, sp, fp);
}
