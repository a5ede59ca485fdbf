/* plugin.c - a library that comes and goes: see stacks.c. Built twice, with other names in the same places. */
#include "program.h"

#define JOIN_(a, b)    a##b
#define JOIN(a, b)     JOIN_(a, b)
#define FUNCTION(tail) JOIN(JOIN(plugin_, PLUGIN), tail)

void FUNCTION(_run)(void);

NOINLINE static void FUNCTION(_leaf)(void)
{
    void *block = malloc(PLUGIN_SIZE);
    KEEP(block);
    free(block);
    HERE();
}

void FUNCTION(_run)(void)
{
    FUNCTION(_leaf)();
    HERE();
}
