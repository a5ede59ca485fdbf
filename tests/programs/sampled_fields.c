/* sampled_fields.c - structs whose accesses are known: for each item the key is read once, the value read and written,
 * the count written, and the name read by a function of libc; of each point x is read twice as often as y.
 *
 *     sampled_fields items ROUNDS      items, each in a block of its own
 *     sampled_fields points ROUNDS     points, in an array of 96 KiB */

#include <stdlib.h>
#include <string.h>

struct item {
    volatile long key;
    char name[88];
    volatile long value;
    unsigned kind : 3, state : 5;
    char note[100];
    volatile int count;
};

struct point {
    volatile int x, y;
    volatile long unused;
};

enum { ITEMS = 4000, POINTS = 6144 };

__attribute__((noinline)) static void use(struct item *const *items, size_t count)
{
    size_t (*volatile length)(const char *) = strlen;
    for (size_t i = 0; i < count; i++) {
        const long key = items[i]->key;
        items[i]->value = items[i]->value + key;
        items[i]->count = (int)i;
        if (i % 8 == 0)
            length(items[i]->name);
    }
}

__attribute__((noinline)) static long add(const struct point *points, size_t count)
{
    long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += points[i].x + points[i].y * (long)points[i].x;
    return sum;
}

static struct item *new_item(long key)
{
    struct item *item = malloc(sizeof *item);
    memset(item, 0, sizeof *item);
    item->key = key;
    strcpy(item->name, "an item");
    return item;
}

int main(int argc, char **argv)
{
    const long rounds = argc > 2 ? atol(argv[2]) : 1;
    if (argc > 1 && !strcmp(argv[1], "points")) {
        struct point *points = calloc(POINTS, sizeof *points);
        for (long i = 0; i < rounds; i++)
            add(points, POINTS);
        return 0;
    }
    struct item **items = malloc(ITEMS * sizeof *items);
    for (long i = 0; i < ITEMS; i++)
        items[i] = new_item(i);
    for (long i = 0; i < rounds; i++)
        use(items, ITEMS);
    return 0;
}
