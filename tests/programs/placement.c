/* placement.c - records in blocks of 256 bytes with glibc's header, which all begin at the same place in a line;
 * visited in no order. Built once more with -DLAYOUT and the layout that is suggested (layout.h). */
#include <stdio.h>
#include <stdlib.h>

#ifdef LAYOUT
#include "layout.h"
#else
struct rec {
    long id;
    char name[40];
    double price;
    char note[56];
    long qty;
    char addr[72];
    double disc;
    char pad[40];
    long state;
};
#endif

#define N 20000

static struct rec *records[N];
static int order[N];
static volatile double sum;

__attribute__((noinline)) static void fill(void)
{
    for (int i = 0; i < N; i++) {
        struct rec *r = records[order[i]];
        r->id = i;
        r->price = i;
        r->qty = i & 7;
        r->disc = .5;
        r->state = i & 1;
    }
}

__attribute__((noinline)) static void worth(void)
{
    double s = 0;
    for (int i = 0; i < N; i++) {
        struct rec *r = records[order[i]];
        s += r->price * (double)r->qty * r->disc;
    }
    sum += s;
}

__attribute__((noinline)) static void count(void)
{
    long s = 0;
    for (int i = 0; i < N; i++) {
        struct rec *r = records[order[i]];
        s += r->state + r->id;
    }
    sum += (double)s;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < N; i++) {
        records[i] = malloc(sizeof(struct rec));
        order[i] = i;
    }
    unsigned long x = 88172645463325252ul;
    for (int i = N - 1; i > 0 && argc == 1; i--) { /* with an argument: in the order in which they lie */
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        int j = (int)(x % (unsigned long)(i + 1)), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    fill();
    for (int k = 0; k < 6; k++)
        worth();
    for (int k = 0; k < 3; k++)
        count();
    printf("%f %d\n", sum, (int)((unsigned long)records[0] % 64));
    return 0;
}
