/* stacks.c - allocations at the ends of call chains that are hard to walk. Every function name is unique:
 * test_contexts.c looks for the chains by name. Arguments: the directory of the libraries, then the cases to run; all
 * of them when none is named. */
#include "program.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static const char *library_directory = ".";

#define ALLOCATE(size)                                                                                                 \
    do {                                                                                                               \
        void *block_ = malloc(size);                                                                                   \
        KEEP(block_);                                                                                                  \
        free(block_);                                                                                                  \
        HERE();                                                                                                        \
    } while (0)

/* ---- recursion ---- */

NOINLINE static void recursion_leaf_10(void)
{
    ALLOCATE(10);
}

NOINLINE static void recursion_leaf_200(void)
{
    ALLOCATE(200);
}

NOINLINE static void recursion_leaf_300(void)
{
    ALLOCATE(300);
}

NOINLINE static void recurse(int left, void (*leaf)(void))
{
    if (left > 1)
        recurse(left - 1, leaf);
    else
        leaf();
    HERE();
}

NOINLINE static void case_recursion(void)
{
    recurse(10, recursion_leaf_10);
    recurse(200, recursion_leaf_200);
    recurse(300, recursion_leaf_300);
    HERE();
}

/* ---- through the C library ---- */

NOINLINE static int compare_and_allocate(const void *a, const void *b)
{
    ALLOCATE(16);
    return *(const int *)a - *(const int *)b;
}

NOINLINE static void case_qsort(void)
{
    int numbers[8] = {5, 3, 8, 1, 9, 2, 7, 4};
    qsort(numbers, 8, sizeof *numbers, compare_and_allocate);
    KEEP(numbers);
    HERE();
}

NOINLINE static void case_getline(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char *line = NULL;
    size_t size = 0;
    MUST(file && getline(&line, &size, file) > 0);
    free(line);
    fclose(file);
    HERE();
}

NOINLINE static void case_asprintf(void)
{
    char *text = NULL;
    MUST(asprintf(&text, "%0*d", 300, 1) == 300);
    free(text);
    HERE();
}

/* ---- frames of every kind ---- */

NOINLINE static void alloca_leaf(void)
{
    ALLOCATE(24);
}

NOINLINE static void alloca_middle(size_t size)
{
    char *space = alloca(size);
    memset(space, 1, size);
    KEEP(space);
    alloca_leaf();
    KEEP(space);
}

NOINLINE static void case_alloca(void)
{
    for (size_t size = 1; size < 5000; size += 777)
        alloca_middle(size);
    HERE();
}

NOINLINE static void large_frame_leaf(void)
{
    ALLOCATE(32);
}

NOINLINE static void large_frame_middle(void)
{
    char space[300000];
    memset(space, 1, sizeof space);
    KEEP(space);
    large_frame_leaf();
    KEEP(space);
}

NOINLINE static void case_large_frame(void)
{
    large_frame_middle();
    HERE();
}

NOINLINE static void realigned_leaf(void)
{
    ALLOCATE(40);
}

/* The stack is realigned, and its size is not known beforehand: the frame is found by a DWARF expression. */
NOINLINE static void realigned_middle(int size)
{
    __attribute__((aligned(128))) char aligned_space[256];
    char *space = alloca((size_t)size);
    memset(space, 1, (size_t)size);
    memset(aligned_space, 1, sizeof aligned_space);
    KEEP(space);
    KEEP(aligned_space);
    MUST((uintptr_t)aligned_space % 128 == 0);
    realigned_leaf();
    KEEP(aligned_space);
}

NOINLINE static void case_realigned(void)
{
    for (int size = 1; size < 1000; size += 111)
        realigned_middle(size);
    HERE();
}

NOINLINE static void many_arguments_leaf(int a, int b, int c, int d, int e, int f, int g, int h)
{
    ALLOCATE((size_t)(a + b + c + d + e + f + g + h));
}

/* Arguments pushed on the stack: the frame changes within the function. */
NOINLINE static void case_many_arguments(void)
{
    many_arguments_leaf(1, 2, 3, 4, 5, 6, 7, 8);
    many_arguments_leaf(2, 2, 3, 4, 5, 6, 7, 8);
    HERE();
}

static jmp_buf noreturn_exit;

NOINLINE static _Noreturn void noreturn_leaf(void)
{
    ALLOCATE(48);
    longjmp(noreturn_exit, 1);
}

/* The call is the last instruction: its return address belongs to the next function. */
NOINLINE static _Noreturn void noreturn_middle(void)
{
    noreturn_leaf();
}

NOINLINE static void case_noreturn(void)
{
    if (setjmp(noreturn_exit) == 0)
        noreturn_middle();
    HERE();
}

/* ---- the same leaf by many ways: the size of each block tells which way it was ---- */

static uint32_t walk_state = 12345;

static unsigned walk_random(unsigned below)
{
    walk_state = walk_state * 1664525u + 1013904223u;
    return (walk_state >> 16) % below;
}

static void walk_on(unsigned left, size_t code);

NOINLINE static void walk_leaf(size_t code)
{
    ALLOCATE(code);
}

NOINLINE static void walk_one(unsigned left, size_t code)
{
    walk_on(left, code * 4 + 1);
    HERE();
}

NOINLINE static void walk_two(unsigned left, size_t code)
{
    char *space = alloca(16 + code % 64);
    KEEP(space);
    walk_on(left, code * 4 + 2);
    KEEP(space);
}

NOINLINE static void walk_three(unsigned left, size_t code)
{
    char space[200];
    KEEP(space);
    walk_on(left, code * 4 + 3);
    KEEP(space);
}

static inline __attribute__((always_inline)) void walk_on(unsigned left, size_t code)
{
    static void (*const ways[])(unsigned, size_t) = {walk_one, walk_two, walk_three};
    if (left == 0)
        walk_leaf(code);
    else
        ways[walk_random(3)](left - 1, code);
}

NOINLINE static void case_walks(void)
{
    for (int i = 0; i < 20000; i++)
        walk_one(1 + walk_random(6), 0);
    HERE();
}

/* ---- signals ---- */

NOINLINE static void signal_leaf(void)
{
    ALLOCATE(56);
}

NOINLINE static void on_user_signal(int signal)
{
    signal_leaf();
    HERE();
}

static void *fault_page;

NOINLINE static void fault_leaf(void)
{
    ALLOCATE(64);
}

NOINLINE static void on_fault(int signal)
{
    fault_leaf();
    mprotect(fault_page, 4096, PROT_READ | PROT_WRITE);
    HERE();
}

static void use_alternate_stack(void)
{
    stack_t stack = {.ss_size = 65536};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
}

NOINLINE static void case_signal(void)
{
    use_alternate_stack();
    struct sigaction action = {.sa_handler = on_user_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    HERE();
}

NOINLINE static void faulting_store(volatile char *address)
{
    *address = 1; /* the first instruction: no frame yet */
}

NOINLINE static void case_fault(void)
{
    fault_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    use_alternate_stack();
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    faulting_store(fault_page);
    signal(SIGSEGV, SIG_DFL);
    HERE();
}

static volatile int timer_signals;

NOINLINE static void on_profile_timer(int signal)
{
    ALLOCATE(72);
    timer_signals = timer_signals + 1;
}

NOINLINE static int prologues(int depth)
{
    int sum = depth;
    for (int i = 0; depth > 0 && i < 3; i++)
        sum += prologues(depth - 1);
    HERE();
    return sum;
}

/* The signal comes anywhere in code that does not allocate: in the vDSO, in prologues and epilogues. */
NOINLINE static void case_timer(void)
{
    struct sigaction action = {.sa_handler = on_profile_timer, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &every, NULL);
    while (timer_signals < 60) {
        struct timespec now;
        for (int i = 0; i < 100; i++)
            clock_gettime(CLOCK_MONOTONIC, &now);
        KEEP(&now);
        int sum = prologues(4);
        KEEP(&sum);
    }
    setitimer(ITIMER_PROF, &never, NULL);
    signal(SIGPROF, SIG_IGN);
    HERE();
}

/* ---- libraries ---- */

static void *library(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", library_directory, name);
    void *handle = dlopen(path, RTLD_NOW);
    MUST(handle);
    return handle;
}

NOINLINE static void no_frame_pointer_leaf(void)
{
    ALLOCATE(80);
}

NOINLINE static void case_no_frame_pointer(void)
{
    void *handle = library("libnofp.so");
    void (*call)(void (*)(void)) = dlsym(handle, "nofp_outer");
    MUST(call);
    call(no_frame_pointer_leaf);
    HERE();
}

NOINLINE static void no_unwind_leaf(void)
{
    ALLOCATE(88);
}

/* A library without unwind tables but with frame pointers; the caller must have one, too, to be found. */
NOINLINE __attribute__((optimize("no-omit-frame-pointer"))) static void case_no_unwind(void)
{
    void *handle = library("libnounwind.so");
    void (*call)(void (*)(void)) = dlsym(handle, "nounwind_outer");
    MUST(call);
    call(no_unwind_leaf);
    HERE();
}

/* A library goes and another comes to the same place. */
NOINLINE static void case_plugins(void)
{
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"libplugin_one.so", "libplugin_two.so"};
        static const char *const functions[] = {"plugin_one_run", "plugin_two_run"};
        for (int k = 0; k < 2; k++) {
            void *handle = library(names[k]);
            void (*run)(void) = dlsym(handle, functions[k]);
            MUST(run);
            run();
            dlclose(handle);
        }
    }
    HERE();
}

/* ---- code that cannot be walked ---- */

NOINLINE static void assembly_leaf(void)
{
    ALLOCATE(96);
}

void assembly_without_cfi(void (*function)(void));
#if defined __x86_64__
__asm__(".text\n"
        ".type assembly_without_cfi, @function\n"
        "assembly_without_cfi:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    mov $0x1234, %ebp\n" /* rbp is data */
        "    sub $264, %rsp\n"
        "    call *%rdi\n"
        "    add $264, %rsp\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n"
        ".size assembly_without_cfi, . - assembly_without_cfi\n");
#else
void assembly_without_cfi(void (*function)(void))
{
    function();
    HERE();
}
#endif

NOINLINE static void case_assembly(void)
{
    assembly_without_cfi(assembly_leaf);
    HERE();
}

NOINLINE static void generated_leaf(void)
{
    ALLOCATE(104);
}

NOINLINE static void case_generated(void)
{
#if defined __x86_64__
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(code != MAP_FAILED);
    /* push rbp; mov ebp, 0x1234; mov rax, function; call rax; pop rbp; ret */
    static const unsigned char bytes[] = {0x55, 0xbd, 0x34, 0x12, 0, 0, 0x48, 0xb8, 0,    0,
                                          0,    0,    0,    0,    0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    memcpy(code, bytes, sizeof bytes);
    void (*target)(void) = generated_leaf;
    memcpy(code + 8, &target, sizeof target);
    MUST(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
    void (*generated)(void);
    memcpy(&generated, &code, sizeof code);
    generated();
    munmap(code, 4096);
#else
    generated_leaf();
#endif
    HERE();
}

/* Generated code that calls malloc itself: the caller of the hook cannot be walked. */
NOINLINE static void case_generated_leaf(void)
{
#if defined __x86_64__
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(code != MAP_FAILED);
    /* push rbp; mov edi, 1112; mov rax, malloc; call rax; pop rbp; ret */
    static const unsigned char bytes[] = {0x55, 0xbf, 0x58, 4, 0, 0, 0x48, 0xb8, 0,    0,
                                          0,    0,    0,    0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    memcpy(code, bytes, sizeof bytes);
    void *(*target)(size_t) = malloc;
    memcpy(code + 8, &target, sizeof target);
    MUST(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
    void *(*generated)(void);
    memcpy(&generated, &code, sizeof code);
    for (int i = 0; i < 10; i++)
        free(generated());
    munmap(code, 4096);
#endif
    HERE();
}

/* ---- other stacks ---- */

static ucontext_t coroutine_context, return_context;

NOINLINE static void coroutine_leaf(void)
{
    ALLOCATE(112);
}

NOINLINE static void coroutine_body(void)
{
    for (int i = 0; i < 5; i++) {
        coroutine_leaf();
        swapcontext(&coroutine_context, &return_context);
    }
    HERE();
}

NOINLINE static void case_coroutine(void)
{
    size_t size = 65536;
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = stack;
    coroutine_context.uc_stack.ss_size = size;
    coroutine_context.uc_link = &return_context;
    makecontext(&coroutine_context, coroutine_body, 0);
    for (int i = 0; i < 5; i++)
        swapcontext(&return_context, &coroutine_context);
    munmap(stack, size);
    HERE();
}

NOINLINE static void small_stack_leaf(void)
{
    ALLOCATE(120);
}

NOINLINE static void *small_stack_thread(void *argument)
{
    for (int i = 0; i < 100; i++)
        small_stack_leaf();
    HERE();
    return NULL;
}

NOINLINE static void case_small_stack(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, 16384) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, &attributes, small_stack_thread, NULL) == 0);
    pthread_join(thread, NULL);
    HERE();
}

/* ---- before and after main ---- */

NOINLINE static void constructor_leaf(void)
{
    ALLOCATE(128);
}

__attribute__((constructor)) static void run_constructor(void)
{
    constructor_leaf();
    HERE();
}

NOINLINE static void at_exit_leaf(void)
{
    ALLOCATE(136);
}

static void run_at_exit(void)
{
    at_exit_leaf();
    HERE();
}

NOINLINE static void destructor_leaf(void)
{
    ALLOCATE(144);
}

__attribute__((destructor)) static void run_destructor(void)
{
    destructor_leaf();
    HERE();
}

NOINLINE static void case_at_exit(void)
{
    atexit(run_at_exit);
    HERE();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"recursion", case_recursion},
    {"qsort", case_qsort},
    {"getline", case_getline},
    {"asprintf", case_asprintf},
    {"alloca", case_alloca},
    {"large_frame", case_large_frame},
    {"realigned", case_realigned},
    {"many_arguments", case_many_arguments},
    {"noreturn", case_noreturn},
    {"walks", case_walks},
    {"signal", case_signal},
    {"fault", case_fault},
    {"timer", case_timer},
    {"no_frame_pointer", case_no_frame_pointer},
    {"no_unwind", case_no_unwind},
    {"plugins", case_plugins},
    {"assembly", case_assembly},
    {"generated", case_generated},
    {"generated_leaf", case_generated_leaf},
    {"coroutine", case_coroutine},
    {"small_stack", case_small_stack},
    {"at_exit", case_at_exit},
};

int main(int argc, char **argv)
{
    if (argc > 1)
        library_directory = argv[1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc <= 2;
        for (int k = 2; k < argc; k++)
            wanted |= strcmp(argv[k], cases[i].name) == 0;
        if (wanted)
            cases[i].run();
    }
    return 0;
}
