/* frames.c - calls whose frames are hard to find, in programs that do not keep frame pointers everywhere: assembly
 * without unwind tables, functions of libc that allocate, callbacks, threads. test_frames.c knows the stacks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define HERE()   __asm__ volatile("" ::: "memory") /* no tail call */

static void *volatile kept;

void through_straight(void (*function)(void));
void through_branches(void (*function)(void), long times);
void through_frame(void (*function)(void));
void through_blind(void (*function)(void));
void through_last(void (*function)(void));

__asm__(".text\n"
        /* The frame pointer is still the caller's. */
        "through_straight:\n"
        "    push %rbx\n"
        "    sub $80, %rsp\n"
        "    call *%rdi\n"
        "    add $80, %rsp\n"
        "    pop %rbx\n"
        "    ret\n"
        /* A loop, ways that end differently, rbp as data. */
        "through_branches:\n"
        "    push %r12\n"
        "    push %rbp\n"
        "    lea -24(%rsp), %rsp\n"
        "    mov %rsi, %rbp\n"
        "    mov %rdi, %r12\n"
        "1:  call *%r12\n"
        "    cmp $5, %rbp\n"
        "    je 3f\n"
        "    dec %rbp\n"
        "    jnz 1b\n"
        "2:  movq 24(%rsp), %rbp\n"
        "    add $32, %rsp\n"
        "    pop %r12\n"
        "    ret\n"
        "3:  xor %ebp, %ebp\n"
        "    jmp 2b\n"
        /* The stack pointer is aligned: only the frame pointer tells. */
        "through_frame:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    push %rbx\n"
        "    sub $200, %rsp\n"
        "    and $-64, %rsp\n"
        "    call *%rdi\n"
        "    lea -8(%rbp), %rsp\n"
        "    pop %rbx\n"
        "    leave\n"
        "    ret\n"
        /* Where it goes from here is not known. */
        "through_blind:\n"
        "    push %rbx\n"
        "    lea 1f(%rip), %rbx\n"
        "    call *%rdi\n"
        "    jmp *%rbx\n"
        "1:  pop %rbx\n"
        "    ret\n"
        /* It does not come back: what follows is another function. */
        "through_last:\n"
        "    push %rbx\n"
        "    call *%rdi\n"
        "behind_last:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    call *%rdi\n"
        "    leave\n"
        "    ret\n");

NOINLINE static void straight_leaf(void)
{
    kept = malloc(100);
    HERE();
}
NOINLINE static void branches_leaf(void)
{
    kept = malloc(101);
    HERE();
}
NOINLINE static void frame_leaf(void)
{
    kept = malloc(102);
    HERE();
}
NOINLINE static void blind_leaf(void)
{
    kept = malloc(103);
    HERE();
}
static jmp_buf back;
NOINLINE static void last_leaf(void)
{
    kept = malloc(106);
    longjmp(back, 1);
}
NOINLINE static void twice_leaf(void)
{
    through_straight(straight_leaf);
    HERE();
}

NOINLINE static void case_straight(void)
{
    through_straight(twice_leaf);
    HERE();
}
NOINLINE static void case_branches(void)
{
    through_branches(branches_leaf, 3);
    HERE();
}
NOINLINE static void case_frame(void)
{
    through_frame(frame_leaf);
    HERE();
}
NOINLINE static void case_blind(void)
{
    through_blind(blind_leaf);
    HERE();
}
NOINLINE static void case_last(void)
{
    if (setjmp(back) == 0)
        through_last(last_leaf);
    HERE();
}

NOINLINE static void case_strdup(void)
{
    kept = strdup("a text");
    HERE();
}
NOINLINE static void case_fopen(void)
{
    FILE *file = fopen("/dev/null", "r");
    if (file)
        fclose(file);
    HERE();
}
NOINLINE static void case_getline(void)
{
    char *line = NULL, text[] = "a line\n";
    size_t size = 0;
    FILE *file = fmemopen(text, sizeof text - 1, "r");
    if (file && getline(&line, &size, file) > 0)
        fclose(file);
    kept = line;
    HERE();
}
NOINLINE static int compare(const void *left, const void *right)
{
    kept = malloc(104);
    HERE();
    return (*(const int *)left > *(const int *)right) - (*(const int *)left < *(const int *)right);
}
NOINLINE static void case_qsort(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    HERE();
}
NOINLINE static void *thread_leaf(void *closure)
{
    kept = malloc(105);
    HERE();
    return closure;
}
NOINLINE static void case_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_leaf, NULL) == 0)
        pthread_join(thread, NULL);
    HERE();
}

int main(void)
{
    case_straight();
    case_branches();
    case_frame();
    case_blind();
    case_last();
    case_strdup();
    case_fopen();
    case_getline();
    case_qsort();
    case_thread();
    HERE();
    return 0;
}
