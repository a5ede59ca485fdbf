/* static_hooks.c - allocators that are linked into the executable. */
#include "runtime/runtime.h"

void hw_static_hooks(void)
{
}
