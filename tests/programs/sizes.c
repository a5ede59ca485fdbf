/* sizes.c - for each size from 16 bytes to 1 MiB, 64 MiB of blocks in a context of its own: see test_sampling.c. */
#include "program.h"

#define SIZES(apply)                                                                                                   \
    apply(16) apply(24) apply(48) apply(100) apply(200) apply(512) apply(1000) apply(3000) apply(8192) apply(20000)    \
        apply(65536) apply(100000) apply(300000) apply(1048576)

#define DEFINE(size)                                                                                                   \
    NOINLINE static void of_size_##size(void)                                                                          \
    {                                                                                                                  \
        for (long left = 64 << 20; left > 0; left -= size) {                                                           \
            void *block = malloc(size);                                                                                \
            KEEP(block);                                                                                               \
            free(block);                                                                                               \
        }                                                                                                              \
        HERE();                                                                                                        \
    }
SIZES(DEFINE)

/* 32 MiB that stay. */
NOINLINE static void of_live(void)
{
    for (int i = 0; i < 32768; i++) {
        void *block = malloc(1024);
        KEEP(block);
    }
    HERE();
}

int main(void)
{
#define RUN(size) of_size_##size();
    SIZES(RUN)
    of_live();
    return 0;
}
