/* lost_blocks.c - five million blocks of 152 bytes in a list, and one of ten that nothing points to; ends without freeing
 * them. For the search for leaks. */
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char content[144];
};

static struct node *volatile head;

int main(void)
{
    for (int i = 0; i < 5000000; i++) {
        struct node *node = malloc(sizeof *node);
        if (!node)
            return 1;
        memset(node, 1, sizeof *node);
        node->next = head;
        if (i % 10)
            head = node;
    }
    return 0;
}
