/* startup.c - does next to nothing: its run is the loading of the libraries it is linked with. */
#include <stdlib.h>

int main(void)
{
    void *volatile block = malloc(100);
    free(block);
    return 0;
}
