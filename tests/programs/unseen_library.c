/* unseen_library.c - code that does not count: it writes to what it is given. */
#include <stddef.h>

struct record {
    long used[2];
    long rest[14];
};

static struct record *kept[8000];
static int count;

void unseen_keep(struct record *object)
{
    kept[count++] = object;
}

void unseen_fill(struct record *object)
{
    if (object) {
        object->rest[1] = 0x1234567;
        object->rest[2] = (long)object;
    } else
        for (int i = 0; i < count; i++)
            kept[i]->rest[5] = 3 + i;
}
