/* attached.h - a program that runs while heapwise attach and detach change it: programs/attach.c. */
#ifndef TESTS_SUPPORT_ATTACHED_H
#define TESTS_SUPPORT_ATTACHED_H

#include <stdint.h>
#include <sys/types.h>

struct program {
    pid_t pid;
    int to, from;
    char number[16];
};

/* Starts ARGV, until it has written its first byte, an "r". */
struct program start(const char *const argv[]);
/* Its exit code; -1: a signal killed it. */
int finish(struct program *program);
/* A byte to it, and back. */
void ask(const struct program *program);
/* A byte from it; 0: none. */
char read_byte(const struct program *program);

/* Those who may not trace processes cannot attach: the test is skipped. OPTION: may be NULL. */
void attach(struct program *program, const char *profile, const char *option);
void detach(const struct program *program);

/* A sum over the code of libc in the process. */
uint64_t sum_of_code(const struct program *program);

#endif
