/* one.c - for tests of the page: allocates one block, or none; with a second argument, the block is lost. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    char *volatile block = argc > 1 ? malloc(1000) : argv[0];
    if (argc == 2)
        free(block);
    block = NULL;
    return 0;
}
