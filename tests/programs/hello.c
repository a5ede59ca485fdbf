/* hello.c - a few allocations, an exit code of one's choice; built in skins that can or cannot be recorded. */
#include "program.h"

NOINLINE static void hello_work(void)
{
    for (int i = 0; i < 100; i++) {
        void *block = malloc(50);
        KEEP(block);
        if (i % 2)
            free(block);
    }
    HERE();
}

int main(int argc, char **argv)
{
    hello_work();
    say("hello\n");
    return argc > 1 ? atoi(argv[1]) : 0;
}
