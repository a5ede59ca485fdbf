/* fields_library.c - a library for fields.c to load: counts with the same type. */
#include <stdlib.h>

#include "fields.h"

void use(void);
void use(void)
{
    volatile struct hammer *h = malloc(sizeof *h);
    for (int i = 0; i < 20; i++)
        W(hammer, cold, h->cold) = i;
    free((void *)h);
}
