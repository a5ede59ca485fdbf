/* fields2.c - a second translation unit for fields.c: the same types, and another struct of the same name. */
#include <stdlib.h>

#include "fields.h"

void other_unit(volatile struct node *n)
{
    W(node, first, n->first) = R(node, letter, n->letter);
    for (int i = 0; i < 5; i++)
        W(node, pos_x, n->pos.x) = R(node, pos_y, n->pos.y);
}

struct twin { /* another one is in fields.c */
    long b;
    int a;
};

long twin_there(void)
{
    volatile struct twin *t = malloc(sizeof *t);
    t->b = 1;
    t->b = 2;
    return t->b;
}
