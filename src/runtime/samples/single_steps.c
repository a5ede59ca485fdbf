/* single_steps.c - samples of accesses on any machine: bursts of single steps at random moments.
 *
 * Where the processor can pick accesses by itself (perf.c) it does: then there are neither timers nor steps, and each
 * sample is a SIGTRAP.
 *
 * Each thread has a timer on its own CPU time. When it expires the thread gets a signal, and the handler sets the trap
 * flag in the registers that it returns to: from then on each instruction is followed by SIGTRAP, whose handler works
 * out which memory the next instruction touches (arch/x86_64/decode.c), until the burst is as long as it should be.
 * Distances between bursts are random. The timer needs no descriptor and no permission; the kernel sends its signals
 * only when it returns to the program, so that no system call of the program is interrupted.
 *
 * What could harm the program ends a burst before it happens: instructions that show or set the trap flag (pushf,
 * popf), system calls but for some that neither block nor change signals, processes or threads (so no child, no changed
 * mask and no sleep ever begins with the flag set), and writes to the area of restartable sequences. A handler of the
 * program that comes in between runs without the flag: the kernel clears it, and puts it back at the return.
 *
 * Nothing is sampled while a tracer is attached; for good when the program wants SIGTRAP or the signal for itself, or
 * gives up system calls. Both handlers are hidden from the program (signals.c). A thread whose alternate stack is too
 * small for them is not sampled.
 *
 * A burst that comes into a hook is interrupted and goes on at the end of it, so that what the program does right after
 * a call of malloc is seen as often as anything else. What the runtime does itself is never counted. */
#include "base/arch/x86_64/decode.h"
#include "runtime/access/access.h"
#include "runtime/allocator/allocator.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/threads.h"
#include "runtime/hooks/hooks.h"
#include "runtime/samples/perf.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <sys/ucontext.h>
#include <time.h>

#define BURST_LENGTH  64 /* instructions of the program */
#define APPROACH      24 /* instructions before those: a burst begins where time is spent, and has left that place then */
#define STEPS_BETWEEN 400 /* most steps in the runtime within a burst, outside of hooks and around them */
#define TRAP_FLAG     0x100
#define STOP_WAIT_NS  100000000ull
#define PERF_SIGNAL   6  /* TRAP_PERF: si_code of a perf event's SIGTRAP */
#define FIRST_SIGNAL  61 /* below the one for dumps, in the middle of nowhere */
#define LAST_SIGNAL   34
#define XSTATE_MAGIC  0x46505853u
#define CODE_BYTES    15u
#define STACK_OF_OURS 3072u /* what the two handlers need beside the kernel's frame */

struct sampler {
    struct sampler *next; /* of all, and of the free ones */
    uint32_t tid;
    int32_t timer; /* -1: none */
    struct hw_perf_thread perf;
    uint64_t random;
    uint32_t active;        /* a burst is on its way */
    bool paused;            /* until the hook ends that it has come into */
    uint32_t left, between; /* instructions with the approach, and steps in the runtime, that it may still take */
    uint64_t last_pc;       /* of the latest decoded instruction */
    bool repeating;         /* which is a string instruction that has been counted, and goes on */
    uintptr_t code_page;    /* known to be readable */
    struct hw_decoded decoded;
    struct hw_hits hits;
    char buffer[2048];
};

static __thread struct sampler *own __attribute__((tls_model("initial-exec")));

static struct {
    uint32_t on;
    uint32_t signal; /* of timers; 0: there are none */
    bool by_processor;
    uint32_t numbers; /* threads sampled so far */
    struct hw_lock lock;
    struct sampler *all, *free_list;
    unsigned key;
    bool has_key;
    uint32_t ymm_offset, mask_offset, zmm_offset, high_zmm_offset;
    uint32_t frame_bytes; /* of a signal frame */
    intptr_t rseq_offset; /* from the thread pointer; 0: none */
} trap;

extern int pthread_key_create(unsigned *, void (*)(void *)) __attribute__((weak));
extern int pthread_setspecific(unsigned, const void *) __attribute__((weak));
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

bool hw_trap_on(void)
{
    return __atomic_load_n(&trap.on, __ATOMIC_RELAXED);
}

bool hw_trap_in_burst(void)
{
    return own && own->active && !own->paused && !trap.by_processor;
}

/* ---- the machine ---- */

static void look_at_processor(void)
{
    static const unsigned parts[] = {2, 5, 6, 7, 9};
    uint32_t *offsets[] = {&trap.ymm_offset, &trap.mask_offset, &trap.zmm_offset, &trap.high_zmm_offset};
    unsigned size, offset, c, d;
    trap.frame_bytes = 576;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!__get_cpuid_count(13, parts[i], &size, &offset, &c, &d) || !size)
            continue;
        if (i < 4)
            *offsets[i] = offset;
        if (offset + size > trap.frame_bytes)
            trap.frame_bytes = offset + size;
    }
    trap.frame_bytes += sizeof(ucontext_t) + sizeof(siginfo_t) + 256;
    trap.rseq_offset = &__rseq_offset && &__rseq_size && __rseq_size ? __rseq_offset : 0;
}

static void read_machine(struct hw_machine *machine, const ucontext_t *context)
{
    static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *registers = context->uc_mcontext.gregs;
    for (int i = 0; i < 16; i++)
        machine->general[i] = (uint64_t)registers[order[i]];
    machine->pc = (uint64_t)registers[REG_RIP];
    machine->flags = (uint64_t)registers[REG_EFL];
    machine->fs = hw_arch_thread_pointer();
    machine->gs = 0;
    machine->vectors = (const uint8_t *)context->uc_mcontext.fpregs;
    machine->present = 3;
    machine->ymm_offset = machine->mask_offset = machine->zmm_offset = machine->high_zmm_offset = 0;
    uint32_t magic;
    if (!machine->vectors)
        return;
    __builtin_memcpy(&magic, machine->vectors + 464, sizeof magic);
    if (magic != XSTATE_MAGIC)
        return;
    __builtin_memcpy(&machine->present, machine->vectors + 512, sizeof machine->present);
    machine->ymm_offset = trap.ymm_offset;
    machine->mask_offset = trap.mask_offset;
    machine->zmm_offset = trap.zmm_offset;
    machine->high_zmm_offset = trap.high_zmm_offset;
}

/* How many bytes of code can be read at PC: up to the end of a page, unless the next one can be read, too. The program
 * may be about to jump to where there is nothing. */
static size_t readable_code(struct sampler *sampler, uintptr_t pc)
{
    uintptr_t page = pc & ~(HW_PAGE - 1);
    if (page != sampler->code_page) {
        if (pc >> HW_ARCH_ADDRESS_BITS || !hw_readable(page))
            return 0;
        sampler->code_page = page;
    }
    size_t rest = HW_PAGE - (pc - page);
    if (rest >= CODE_BYTES)
        return CODE_BYTES;
    if (!hw_readable(page + HW_PAGE))
        return rest;
    return CODE_BYTES;
}

/* System calls that neither block nor touch signals, processes, threads or the execution of code. */
static bool may_step_over(uint64_t number)
{
    switch (number) {
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_madvise:
    case SYS_lseek:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getuid:
    case SYS_getppid:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_time:
    case SYS_getrandom:
    case SYS_uname:
        return true;
    default:
        return false;
    }
}

/* The thread may be about to begin a restartable sequence, which would be aborted by each trap. */
static bool touches_rseq(const struct hw_decoded *decoded)
{
    if (!trap.rseq_offset)
        return false;
    uint64_t area = hw_arch_thread_pointer() + (uint64_t)trap.rseq_offset;
    for (uint32_t i = 0; i < decoded->count; i++)
        if ((decoded->touch[i].flags & HW_TOUCH_WRITE) && decoded->touch[i].address - area < 32)
            return true;
    return false;
}

/* ---- timers ---- */

static uint64_t next_random(struct sampler *sampler)
{
    sampler->random ^= sampler->random << 13;
    sampler->random ^= sampler->random >> 7;
    sampler->random ^= sampler->random << 17;
    return sampler->random;
}

/* Half to one and a half of the mean distance: nothing periodic in the program keeps step with it. */
static void arm(struct sampler *sampler)
{
    uint64_t mean = 1000000000ull / hw_options.sample_accesses;
    uint64_t ns = mean / 2 + next_random(sampler) % mean;
    struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};
    if (sampler->timer >= 0 && hw_trap_on())
        hw_sys(SYS_timer_settime, sampler->timer, 0, &when, 0);
}

/* ---- steps ---- */

static void finish(struct sampler *sampler, ucontext_t *context, bool cut)
{
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    sampler->hits.sums.cut += cut;
    hw_samples_flush(&sampler->hits);
    __atomic_store_n(&sampler->active, 0, __ATOMIC_RELEASE);
}

/* In a hook, which will see to it that the burst goes on? */
static bool pause_in_hook(struct sampler *sampler, ucontext_t *context)
{
    struct hw_thread *thread = hw_self;
    if (!thread || !(thread->gate & HW_GATE_RUNTIME))
        return false;
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    sampler->paused = true;
    thread->resume = 1;
    thread->leave_slow = 1;
    return true;
}

void hw_trap_resume(void)
{
    if (!own || !own->active || !own->paused)
        return;
    own->paused = false;
    /* Below the red zone: the compiler may keep something there. */
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "orq $0x100, (%%rsp)\n\t"
                     "popfq\n\t"
                     "lea 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}

/* What was seen so far was as often as time was spent there: mispredicted branches, page faults, what the kernel
 * returns to. Only a burst that ends before has nothing better. */
static void end_approach(struct sampler *sampler)
{
    hw_samples_forget(&sampler->hits);
    sampler->left = BURST_LENGTH;
}

/* A string instruction takes a step for each iteration; the burst sees as many of them as it has steps left. They are
 * counted at once, one access for each 8 bytes as a copy is. */
static void take_string(struct sampler *sampler, const struct hw_machine *machine)
{
    const struct hw_decoded *decoded = &sampler->decoded;
    if (sampler->left > BURST_LENGTH && decoded->iterations >= sampler->left - BURST_LENGTH)
        end_approach(sampler);
    uint64_t iterations = decoded->iterations < sampler->left ? decoded->iterations : sampler->left;
    for (uint32_t i = 0; i < decoded->count; i++) {
        const struct hw_touch *touch = &decoded->touch[i];
        uint64_t bytes = iterations * touch->size;
        uint64_t begin = decoded->backward ? touch->address + touch->size - bytes : touch->address;
        for (uint64_t word = begin & ~7ul; word < begin + bytes; word += 8) {
            const uint64_t first = word < begin ? begin : word, end = begin + bytes < word + 8 ? begin + bytes : word + 8;
            const struct hw_touch part = {.address = first, .size = (uint32_t)(end - first), .flags = touch->flags};
            hw_samples_take(&sampler->hits, &part, machine->pc, machine->general[4]);
        }
    }
    sampler->hits.sums.instructions += iterations;
    sampler->left -= (uint32_t)iterations;
    sampler->repeating = true;
}

static void take_plain(struct sampler *sampler, const struct hw_machine *machine)
{
    const struct hw_decoded *decoded = &sampler->decoded;
    struct hw_sample_info *sums = &sampler->hits.sums;
    for (uint32_t i = 0; i < decoded->count; i++)
        hw_samples_take(&sampler->hits, &decoded->touch[i], machine->pc, machine->general[4]);
    uint64_t pushes = decoded->stack & HW_FORM_STACK_WRITE ? 1 : 0, pops = decoded->stack & HW_FORM_STACK_READ ? 1 : 0;
    sums->stack_writes += pushes;
    sums->writes += pushes;
    sums->stack_reads += pops;
    sums->reads += pops;
    sums->instructions++;
    if (--sampler->left == BURST_LENGTH)
        end_approach(sampler);
}

/* Decodes the next instruction, and lets the thread execute it alone or go on freely. */
static void step(struct sampler *sampler, ucontext_t *context)
{
    struct hw_machine machine;
    struct hw_decoded *decoded = &sampler->decoded;
    read_machine(&machine, context);
    sampler->hits.sums.steps++;
    bool again = sampler->repeating && machine.pc == sampler->last_pc;
    size_t size = readable_code(sampler, machine.pc);
    if (!hw_trap_on() || !size) {
        finish(sampler, context, true);
        return;
    }
    if (!again) {
        hw_decode((const uint8_t *)machine.pc, size, &machine, decoded);
        sampler->repeating = false;
    }
    sampler->last_pc = machine.pc;
    if (decoded->next == HW_NEXT_UNKNOWN || decoded->next == HW_NEXT_DELICATE || touches_rseq(decoded) ||
        (decoded->next == HW_NEXT_SYSCALL && !may_step_over(machine.general[0]))) {
        sampler->hits.sums.unknown += decoded->next == HW_NEXT_UNKNOWN;
        finish(sampler, context, true);
        return;
    }
    bool in_runtime = machine.pc >= hw_runtime.text_start && machine.pc < hw_runtime.text_end;
    if (in_runtime) {
        if (pause_in_hook(sampler, context))
            return;
        if (sampler->between-- == 0) {
            finish(sampler, context, true);
            return;
        }
    } else if (decoded->next != HW_NEXT_REPEATED)
        take_plain(sampler, &machine);
    else if (!again)
        take_string(sampler, &machine);
    if (!sampler->left)
        finish(sampler, context, false);
    else
        context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/* ---- signals ---- */

static void on_trap(int number, siginfo_t *information, void *closure);

static bool trap_is_ours(void)
{
    /* The kernel's own structure: the handler comes first. */
    struct {
        void *handler;
        uint64_t flags;
        void *restorer;
        uint64_t mask;
    } now = {0};
    hw_sys(SYS_rt_sigaction, SIGTRAP, 0, &now, 8);
    return now.handler == (void *)on_trap;
}

static void begin_burst(struct sampler *sampler, ucontext_t *context)
{
    struct hw_sample_info *sums = &sampler->hits.sums;
    const greg_t *registers = context->uc_mcontext.gregs;
    uintptr_t pc = (uintptr_t)registers[REG_RIP];
    const uint8_t *code = (const uint8_t *)pc;
    sampler->code_page = 0;
    if (hw_is_traced(sampler->buffer, sizeof sampler->buffer)) {
        hw_trap_stop(HW_SAMPLE_DEBUGGER);
        return;
    }
    if (!trap_is_ours()) {
        hw_trap_stop(HW_SAMPLE_TRAP_TAKEN);
        return;
    }
    bool in_runtime = pc >= hw_runtime.text_start && pc < hw_runtime.text_end;
    /* Right behind a system call: the timer expired in the kernel, and the moment is not the program's. */
    bool in_kernel =
        !in_runtime && (pc & (HW_PAGE - 1)) >= 2 && readable_code(sampler, pc) && code[-2] == 0x0f && code[-1] == 0x05;
    bool blocked = ((const uint64_t *)&context->uc_sigmask)[0] >> (SIGTRAP - 1) & 1;
    sums->in_runtime += in_runtime;
    sums->in_kernel += in_kernel;
    sums->blocked += blocked;
    if (in_runtime || in_kernel || blocked || (registers[REG_EFL] & TRAP_FLAG)) {
        hw_samples_flush(&sampler->hits);
        return;
    }
    sums->bursts++;
    sampler->left = APPROACH + BURST_LENGTH;
    sampler->between = STEPS_BETWEEN;
    sampler->repeating = sampler->paused = false;
    __atomic_store_n(&sampler->active, 1, __ATOMIC_SEQ_CST);
    step(sampler, context);
}

static void on_tick(int number, siginfo_t *information, void *closure)
{
    struct sampler *sampler = own;
    (void)number;
    if (!sampler || !hw_trap_on() || hw_quiet || information->si_code != SI_TIMER ||
        information->si_value.sival_ptr != sampler)
        return;
    const ucontext_t *context = closure;
    bool stepping = context->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG;
    bool waiting = sampler->paused && hw_self && hw_self->resume;
    arm(sampler);
    if (sampler->active && (stepping || waiting))
        return;
    if (sampler->active) { /* a handler of the program left a burst behind by a jump */
        hw_samples_flush(&sampler->hits);
        sampler->active = 0;
    }
    begin_burst(sampler, closure);
}

/* The processor has picked an access. */
static void take_picked(struct sampler *sampler, const siginfo_t *information, const ucontext_t *context)
{
    uint64_t data; /* si_perf_data, which not every libc has a name for */
    __builtin_memcpy(&data, (const char *)information + 24, sizeof data);
    __atomic_store_n(&sampler->active, 1, __ATOMIC_SEQ_CST);
    if (hw_trap_on() && !hw_quiet) {
        hw_perf_take(&sampler->perf, (uint64_t)context->uc_mcontext.gregs[REG_RSP], &sampler->hits);
        hw_samples_flush(&sampler->hits);
        if (!hw_perf_again(&sampler->perf, data))
            hw_note(HW_NOTE_OTHER, "the program closed the descriptors of a thread's sampled accesses: no more of "
                                   "them from then on");
    }
    __atomic_store_n(&sampler->active, 0, __ATOMIC_RELEASE);
}

/* No trap of ours: what it would have done without the sampler. */
static void die(siginfo_t *information)
{
    HW_REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    if (real)
        real(SIGTRAP, &usual, NULL);
    long pid = hw_sys_program(SYS_getpid), thread = hw_sys_program(SYS_gettid);
    hw_sys_program(SYS_rt_tgsigqueueinfo, pid, thread, SIGTRAP, information);
}

/* Virtual machines sometimes lose the reason of a step (BS in DR6): the kernel calls it a breakpoint then. Those of the
 * program come without the flag: a burst ends before icebp, and int3 has another code. */
static bool is_step(const siginfo_t *information, const ucontext_t *context)
{
    return information->si_code == TRAP_TRACE ||
           (information->si_code == TRAP_BRKPT && (context->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG));
}

static void on_trap(int number, siginfo_t *information, void *closure)
{
    ucontext_t *context = closure;
    struct sampler *sampler = own;
    (void)number;
    if (information->si_code == PERF_SIGNAL) {
        if (sampler && trap.by_processor)
            take_picked(sampler, information, context);
    } else if (!is_step(information, context))
        die(information);
    else if (sampler && sampler->active && !sampler->paused)
        step(sampler, context);
    else /* a flag that was left over */
        context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

bool hw_trap_is_handler(const void *handler)
{
    return handler == (const void *)on_tick || handler == (const void *)on_trap;
}

bool hw_trap_uses(int signal)
{
    return hw_trap_on() && (signal == SIGTRAP || (uint32_t)signal == trap.signal);
}

/* ---- threads ---- */

static struct sampler *take_sampler(void)
{
    hw_sigset old = hw_lock_take(&trap.lock);
    struct sampler *sampler = trap.free_list;
    if (sampler)
        trap.free_list = sampler->next;
    else
        sampler = hw_own_pages(sizeof *sampler, false);
    if (sampler) {
        *sampler = (struct sampler){.tid = hw_gettid(), .timer = -1, .next = trap.all};
        trap.all = sampler;
        uint32_t number = ++trap.numbers;
        sampler->hits.thread = (uint16_t)(1 + (number - 1) % 65000);
        sampler->hits.role = hw_self_role;
    }
    hw_lock_drop(&trap.lock, old);
    return sampler;
}

static void put_sampler(struct sampler *sampler)
{
    hw_sigset old = hw_lock_take(&trap.lock);
    if (sampler->timer >= 0)
        hw_sys(SYS_timer_delete, sampler->timer);
    sampler->timer = -1;
    hw_perf_close(&sampler->perf);
    for (struct sampler **at = &trap.all; *at; at = &(*at)->next)
        if (*at == sampler) {
            *at = sampler->next;
            break;
        }
    sampler->next = trap.free_list;
    trap.free_list = sampler;
    hw_lock_drop(&trap.lock, old);
}

/* Where the stack that holds SP ends: at the control block of a thread, and somewhere above for the first one. */
static uintptr_t end_of_stack(uintptr_t sp)
{
    uintptr_t thread = hw_arch_thread_pointer();
    return sp < thread && thread - sp < (1ul << 32) ? thread : sp + (1ul << 20);
}

static bool small_alternate_stack(const stack_t *stack)
{
    return !(stack->ss_flags & SS_DISABLE) && stack->ss_size < trap.frame_bytes + STACK_OF_OURS;
}

/* 0, or an error. */
static int start_timer(struct sampler *sampler)
{
    sampler->random = hw_ticks_raw() ^ (uint64_t)sampler->tid << 32 ^ (uint64_t)(uintptr_t)sampler;
    sampler->random |= 1;
    for (int i = 0; i < 8; i++)
        next_random(sampler);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = (int)trap.signal};
    event.sigev_value.sival_ptr = sampler;
    event._sigev_un._tid = (int)sampler->tid;
    int timer = -1;
    long result = hw_sys(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer);
    if (result < 0)
        return (int)-result;
    sampler->timer = timer;
    return 0;
}

static void not_sampled(int problem)
{
    if (!trap.by_processor)
        hw_samples_ended(HW_SAMPLE_NO_TIMER, problem);
    else
        hw_note(HW_NOTE_OTHER, problem == EMFILE || problem == ENFILE
                                   ? "accesses of some threads were not sampled: there were no descriptors left"
                                   : "accesses of some threads were not sampled: the kernel granted no more events "
                                     "(kernel.perf_event_mlock_kb, ulimit -l)");
}

void hw_trap_attach(void)
{
    stack_t alternate = {.ss_flags = SS_DISABLE};
    if (own || !hw_trap_on() || hw_quiet)
        return;
    hw_sys(SYS_sigaltstack, 0, &alternate);
    struct sampler *sampler = small_alternate_stack(&alternate) ? NULL : take_sampler();
    if (!sampler)
        return;
    sampler->hits.stack_high = end_of_stack((uintptr_t)__builtin_frame_address(0));
    int problem = trap.by_processor ? hw_perf_open(&sampler->perf) : start_timer(sampler);
    if (problem) {
        put_sampler(sampler);
        not_sampled(problem);
        return;
    }
    own = sampler;
    if (trap.has_key)
        pthread_setspecific(trap.key, sampler);
    hw_samples_thread();
    arm(sampler);
    hw_perf_arm(&sampler->perf);
}

/* The signals that samples come by, as a mask. */
static hw_sigset own_signals(void)
{
    return trap.by_processor ? 1ull << (SIGTRAP - 1) : 1ull << (trap.signal - 1);
}

/* What was sent to this thread and has not come yet, all signals being blocked. A SIGTRAP that somebody else has sent
 * is sent again. */
static void take_back_signals(void)
{
    hw_sigset mine = own_signals();
    siginfo_t information;
    const struct timespec now = {0, 0};
    long pid = hw_getpid(), thread = hw_gettid();
    if (hw_sys(SYS_rt_sigtimedwait, &mine, &information, &now, 8) == SIGTRAP && information.si_code != PERF_SIGNAL)
        hw_sys(SYS_rt_tgsigqueueinfo, pid, thread, SIGTRAP, &information);
}

/* The calling thread is not sampled any more: a signal that waits for it is taken back. */
static void detach(void)
{
    struct sampler *sampler = own;
    if (!sampler || hw_quiet) /* nothing is on its way then */
        return;
    hw_sigset old = hw_signals_block(); /* ends a burst, too */
    own = NULL;
    if (trap.has_key)
        pthread_setspecific(trap.key, NULL);
    put_sampler(sampler);
    take_back_signals();
    hw_signals_restore(old);
}

static void at_thread_exit(void *value)
{
    if (value == own && !hw_fork_pending())
        detach();
}

/* ---- start and end ---- */

static bool is_unhandled(int signal)
{
    struct sigaction old;
    return hw_libc(HW_LIBC_sigaction) && hw_handlers_set(signal, NULL, &old, true) == 0 &&
           (hw_trap_is_handler((void *)old.sa_sigaction) ||
            (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL));
}

static bool install(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    for (size_t i = 0; i < sizeof action.sa_mask / 8; i++)
        ((uint64_t *)&action.sa_mask)[i] = ~0ull;
    return is_unhandled(signal) && hw_handlers_set(signal, &action, NULL, true) == 0;
}

static enum hw_sample_end begin(void)
{
    static struct sampler for_the_question;
    if (hw_access_on())
        return HW_SAMPLE_COUNTED;
    if (hw_is_traced(for_the_question.buffer, sizeof for_the_question.buffer))
        return HW_SAMPLE_DEBUGGER;
    if (!hw_block_starts_begin())
        return HW_SAMPLE_ADDRESS_SPACE;
    if (!is_unhandled(SIGTRAP))
        return HW_SAMPLE_TRAP_TAKEN;
    trap.signal = 0;
    if (trap.by_processor)
        return install(SIGTRAP, on_trap) ? HW_SAMPLE_GOES_ON : HW_SAMPLE_TRAP_TAKEN;
    for (int signal = FIRST_SIGNAL; signal >= LAST_SIGNAL && !trap.signal; signal--)
        if ((uint32_t)signal != hw_options.dump_signal && install(signal, on_tick))
            trap.signal = (uint32_t)signal;
    if (!trap.signal)
        return HW_SAMPLE_NO_SIGNAL;
    return install(SIGTRAP, on_trap) ? HW_SAMPLE_GOES_ON : HW_SAMPLE_TRAP_TAKEN;
}

void hw_trap_start(void)
{
    if (!hw_options.sample_accesses)
        return;
    int why_not = hw_perf_begin();
    trap.by_processor = !why_not;
    if (!hw_samples_begin(why_not ? HW_SAMPLE_TRAP : HW_SAMPLE_PMU, why_not ? BURST_LENGTH : 0,
                          why_not ? 0 : hw_perf_period(), why_not))
        return;
    look_at_processor();
    enum hw_sample_end problem = begin();
    if (problem) {
        hw_samples_ended(problem, 0);
        return;
    }
    if (!trap.has_key)
        trap.has_key = pthread_key_create && pthread_key_create(&trap.key, at_thread_exit) == 0;
    __atomic_store_n(&trap.on, 1, __ATOMIC_SEQ_CST);
    hw_trap_attach();
}

void hw_trap_fork(void)
{
    trap.on = 0;
    for (struct sampler *sampler = trap.all; sampler; sampler = sampler->next)
        hw_perf_forget(&sampler->perf);
    trap.lock = (struct hw_lock){0};
    trap.all = trap.free_list = NULL;
    trap.numbers = 0;
    own = NULL;
    hw_trap_start();
}

void hw_trap_stop(enum hw_sample_end reason)
{
    if (!__atomic_exchange_n(&trap.on, 0, __ATOMIC_SEQ_CST))
        return;
    hw_samples_ended(reason, 0);
    hw_sigset old = hw_lock_take(&trap.lock);
    for (struct sampler *sampler = trap.all; sampler; sampler = sampler->next) {
        if (sampler->timer >= 0)
            hw_sys(SYS_timer_delete, sampler->timer);
        sampler->timer = -1;
    }
    uint64_t give_up = hw_clock_monotonic_ns() + STOP_WAIT_NS;
    for (struct sampler *sampler = trap.all; sampler; sampler = sampler->next)
        while (sampler != own && __atomic_load_n(&sampler->active, __ATOMIC_ACQUIRE) &&
               hw_clock_monotonic_ns() < give_up)
            hw_yield();
    for (struct sampler *sampler = trap.all; sampler; sampler = sampler->next)
        if (sampler == own || !__atomic_load_n(&sampler->active, __ATOMIC_ACQUIRE))
            hw_perf_close(&sampler->perf);
    hw_lock_drop(&trap.lock, old);
    if (trap.by_processor) {
        old = hw_signals_block();
        take_back_signals();
        hw_signals_restore(old);
        return;
    }
    /* Signals that were sent and have not come yet go with a moment of being ignored. */
    HW_REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
    const struct sigaction ignored = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    real((int)trap.signal, &ignored, NULL);
    real((int)trap.signal, &usual, NULL);
}

/* ---- what programs do with stacks and signals ---- */

HW_EXPORTED(int, sigaltstack, (const stack_t *stack, stack_t *old))
{
    HW_REAL(int, sigaltstack, (const stack_t *, stack_t *));
    if (hw_trap_on() && stack && own && small_alternate_stack(stack))
        detach();
    return real(stack, old);
}

/* Who waits for every signal there is must not be handed the sampler's. */
static void about_to_wait(const sigset_t *set)
{
    if (hw_trap_on() && set && (((const uint64_t *)set)[0] & own_signals()))
        detach();
}

HW_EXPORTED(int, sigwait, (const sigset_t *set, int *number))
{
    HW_REAL(int, sigwait, (const sigset_t *, int *));
    about_to_wait(set);
    return real(set, number);
}

HW_EXPORTED(int, sigwaitinfo, (const sigset_t *set, siginfo_t *information))
{
    HW_REAL(int, sigwaitinfo, (const sigset_t *, siginfo_t *));
    about_to_wait(set);
    return real(set, information);
}

HW_EXPORTED(int, sigtimedwait, (const sigset_t *set, siginfo_t *information, const struct timespec *timeout))
{
    HW_REAL(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *));
    about_to_wait(set);
    return real(set, information, timeout);
}

HW_EXPORTED(int, signalfd, (int fd, const sigset_t *set, int flags))
{
    HW_REAL(int, signalfd, (int, const sigset_t *, int));
    if (hw_trap_on() && set && (((const uint64_t *)set)[0] & own_signals()))
        hw_trap_stop(HW_SAMPLE_SIGNAL_TAKEN); /* whichever thread reads it */
    return real(fd, set, flags);
}
