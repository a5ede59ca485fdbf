/* one.c - for tests of the page: allocates one block, or none. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    char *volatile block = argc > 1 ? malloc(1000) : argv[0];
    if (argc > 1)
        free(block);
    return 0;
}
