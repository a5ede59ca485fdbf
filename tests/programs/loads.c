/* loads.c - opens the library that its argument names, calls its function library_block(0), and closes it. The program
 * itself has no requests to Valgrind: see test_requests.c. */
#include "program.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    MUST(argc == 2);
    void *handle = dlopen(argv[1], RTLD_NOW);
    MUST(handle);
    void (*block)(int) = (void (*)(int))dlsym(handle, "library_block");
    MUST(block);
    block(0);
    MUST(dlclose(handle) == 0);
    say("done\n");
    return 0;
}
