/* nofp.c - a library whose functions use rbp as a plain register, or whose frames have no frame pointer: see stacks.c.
 */
#include "program.h"

void nofp_outer(void (*function)(void));

NOINLINE static long nofp_inner(void (*function)(void), long a, long b, long c, long d, long e)
{
    /* enough live values for all callee-saved registers, rbp among them */
    long f = a * 3 + b, g = b * 5 + c, h = c * 7 + d, i = d * 11 + e, j = e * 13 + a;
    __asm__ volatile("" : "+r"(f), "+r"(g), "+r"(h), "+r"(i), "+r"(j));
    function();
    __asm__ volatile("" : "+r"(f), "+r"(g), "+r"(h), "+r"(i), "+r"(j));
    return f + g + h + i + j;
}

void nofp_outer(void (*function)(void))
{
    long result = nofp_inner(function, 1, 2, 3, 4, 5);
    KEEP(&result);
}
