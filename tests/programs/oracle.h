/* oracle.h - blocks at known moments, whose stacks gdb and glibc's backtrace() tell, too: programs of test_oracles.c.
 *
 * Each MARK allocates a block of a size that no other one has. With ORACLE_BACKTRACE the program writes down what
 * backtrace() says there: a line with the size, and for each caller its module and its address in it. */
#ifndef TESTS_PROGRAMS_ORACLE_H
#define TESTS_PROGRAMS_ORACLE_H

#include "program.h"

#include <dlfcn.h>
#include <execinfo.h>

#define ORACLE_FIRST 70000

/* Of callers: the addresses are those behind their calls. */
static inline void tell_callers(void *const *frames, int count, long size)
{
    say("MARK %ld", size);
    for (int i = 1; i < count; i++) { /* the first one is the function itself, at another call */
        Dl_info info;
        if (!dladdr(frames[i], &info))
            say(" ? %lx", (unsigned long)frames[i]);
        else
            say(" %s %lx", info.dli_fname, (unsigned long)((char *)frames[i] - (char *)info.dli_fbase));
    }
    say("\n");
}

/* A macro, so that it stands in the function itself. */
#define MARK_BY(allocate, number)                                                                                      \
    do {                                                                                                               \
        if (getenv("ORACLE_BACKTRACE")) {                                                                              \
            void *frames_[128];                                                                                        \
            tell_callers(frames_, backtrace(frames_, 128), ORACLE_FIRST + (number));                                   \
        }                                                                                                              \
        void *volatile block_ = allocate(ORACLE_FIRST + (number));                                                     \
        KEEP(block_);                                                                                                  \
    } while (0)
#define MARK(number) MARK_BY(malloc, number)

#endif
