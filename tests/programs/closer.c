/* closer.c - a library whose constructor waits for a thread that closes a descriptor: see hostile.c. */
#include "program.h"

#include <fcntl.h>
#include <pthread.h>

NOINLINE static void closer_work(void)
{
    for (int i = 0; i < 10; i++) {
        void *block = malloc(100);
        KEEP(block);
        free(block);
    }
    HERE();
}

static void *open_and_close(void *argument)
{
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    MUST(file >= 0 && close(file) == 0);
    closer_work();
    return NULL;
}

__attribute__((constructor)) static void wait_for_the_thread(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, open_and_close, NULL) == 0);
    pthread_join(thread, NULL);
}
