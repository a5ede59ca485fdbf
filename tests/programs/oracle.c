/* oracle.c - stacks of C programs: see oracle.h. With -DLIBRARY the library that it opens; otherwise `oracle LIBRARY`.
 */
#include "oracle.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#ifdef LIBRARY

NOINLINE static int compare(const void *left, const void *right)
{
    MARK(1);
    return (*(const int *)left > *(const int *)right) - (*(const int *)left < *(const int *)right);
}

/* By the PLT into libc, and back. */
void in_library(void (*back)(void), int depth);
NOINLINE void in_library(void (*back)(void), int depth)
{
    volatile char room[100 + 16 * depth]; /* the distance to the caller is known at run time only */
    room[0] = 1;
    int numbers[] = {2, 1};
    if (depth > 0)
        in_library(back, depth - 1);
    else {
        qsort(numbers, 2, sizeof *numbers, compare);
        back();
    }
    HERE();
}

#else

void through_assembly(void (*function)(void));
void through_frame(void (*function)(void));
void through_tables(void (*function)(void));
__asm__(".text\n"
        "through_assembly:\n" /* nothing says where the caller is, but the instructions */
        "    push %rbx\n"
        "    sub $80, %rsp\n"
        "    call *%rdi\n"
        "    add $80, %rsp\n"
        "    pop %rbx\n"
        "    ret\n"
        "through_frame:\n" /* the frame pointer does */
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    sub $64, %rsp\n"
        "    call *%rdi\n"
        "    leave\n"
        "    ret\n"
        "through_tables:\n" /* a table does */
        "    .cfi_startproc\n"
        "    sub $152, %rsp\n"
        "    .cfi_adjust_cfa_offset 152\n"
        "    call *%rdi\n"
        "    add $152, %rsp\n"
        "    .cfi_adjust_cfa_offset -152\n"
        "    ret\n"
        "    .cfi_endproc\n");

NOINLINE static void assembly_leaf(void)
{
    MARK(10);
}
NOINLINE static void frame_leaf(void)
{
    MARK(11);
}
NOINLINE static void tables_leaf(void)
{
    MARK(12);
}
NOINLINE static void case_assembly(void)
{
    through_assembly(assembly_leaf);
    through_frame(frame_leaf);
    through_tables(tables_leaf);
    HERE();
}

NOINLINE static void from_library(void)
{
    MARK(13);
}
NOINLINE static void case_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    MUST(library);
    void (*function)(void (*)(void), int) = (void (*)(void (*)(void), int))dlsym(library, "in_library");
    MUST(function);
    function(from_library, 3);
    HERE();
}

NOINLINE static void in_handler(void)
{
    MARK(14);
}
static void on_signal(int number)
{
    in_handler();
    HERE();
}
static char other_stack[65536];
NOINLINE static void case_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
    HERE();
}
NOINLINE static void on_instruction(int number, siginfo_t *info, void *context)
{
    MARK(15);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* behind it */
}
/* On another stack, at an instruction that is no call. */
NOINLINE static void case_other_stack(void)
{
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_sigaction = on_instruction, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    MUST(sigaltstack(&stack, NULL) == 0 && sigaction(SIGILL, &action, NULL) == 0);
    __asm__ volatile("ud2");
    HERE();
}

NOINLINE static void in_thread(int depth)
{
    if (depth > 0)
        in_thread(depth - 1);
    else
        MARK(16);
    HERE();
}
static void *run_thread(void *unused)
{
    in_thread(4);
    HERE();
    return unused;
}
NOINLINE static void case_thread(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    HERE();
}

NOINLINE static void case_alloca(long n)
{
    volatile char room[n];
    room[0] = 0;
    MARK(17);
}

static void at_end(void)
{
    MARK(18);
}

int main(int argc, char **argv)
{
    void *frames[4];
    MUST(argc > 1 && backtrace(frames, 4) > 0); /* which loads a library the first time */
    MARK(19);
    case_assembly();
    case_library(argv[1]);
    case_signals();
    case_other_stack();
    case_thread();
    case_alloca(1000 + argc);
    atexit(at_end);
    return 0;
}

#endif
