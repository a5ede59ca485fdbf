/* guest_c.h - what guest.go calls. */
#include <stdlib.h>
#include <string.h>

struct item {
    struct item *next;
    long value;
    char text[40];
};

extern long double_it(long); /* in Go */

static struct item *push(struct item *list, long value)
{
    struct item *item = malloc(sizeof *item);
    item->next = list;
    item->value = value;
    strcpy(item->text, "an item");
    return item;
}

static long drain(struct item *list)
{
    long sum = 0;
    while (list) {
        struct item *next = list->next;
        sum += list->value + (long)strlen(list->text);
        free(list);
        list = next;
    }
    return sum;
}

static long call_back(long n)
{
    char *block = calloc(1, (size_t)n + 1);
    long result = double_it(n) + block[n];
    free(block);
    return result;
}
