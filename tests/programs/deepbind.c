/* deepbind.c - a library for RTLD_DEEPBIND: see foreign.c. */
#include <stdlib.h>

void *deep_make(size_t size);
void deep_drop(void *pointer);

void *deep_make(size_t size)
{
    return malloc(size);
}

void deep_drop(void *pointer)
{
    free(pointer);
}
