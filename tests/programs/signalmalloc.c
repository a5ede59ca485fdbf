/* signalmalloc.c - an allocator in which a signal arrives, always at the same place: see hostile.c. Preloaded. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

enum { SIGNALLING_SIZE = 54321 }; /* of hostile.c, too */

void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    if (size == SIGNALLING_SIZE)
        raise(SIGUSR1);
    return __libc_malloc(size);
}
