/* program.h - what the profiled test programs share. They are optimised, so: NOINLINE functions are stack frames that
 * tests look for by name, KEEP keeps the compiler from removing an allocation or turning a call into a jump. */
#ifndef TESTS_PROGRAMS_PROGRAM_H
#define TESTS_PROGRAMS_PROGRAM_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined __clang__
#define NOINLINE __attribute__((noinline, used))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa, used))
#endif

/* The value is used, and memory behind it may have changed. */
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
/* At the end of a function: what was called before is no tail call. */
#define HERE() __asm__ volatile("" : : : "memory")

/* printf without stdio and without the heap. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0 && write(1, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1) < 0)
        _exit(99);
}

/* Ends the program when CONDITION does not hold. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            say("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                                          \
            _exit(98);                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif
