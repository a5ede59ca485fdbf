/* nounwind.c - a library without unwind tables: see stacks.c. */
#include "program.h"

void nounwind_outer(void (*function)(void));

NOINLINE static void nounwind_inner(void (*function)(void))
{
    function();
    HERE();
}

void nounwind_outer(void (*function)(void))
{
    nounwind_inner(function);
    HERE();
}
