/* traced.c - ordinary code on blocks that are known by name, for test_traced.c: built with Heapwise the blocks come
 * from malloc; with -DTRACED they lie one behind the other in an arena, and where each lies is printed, so that a trace
 * of all accesses of the process can be counted by block.
 *
 * Nothing of libc touches the blocks. */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

#ifdef TRACED
static char arena[1 << 20] __attribute__((aligned(64)));
static size_t used;
static struct {
    const char *name;
    size_t start, size;
} blocks[4096];
static int block_count;
static void *take(const char *name, size_t size)
{
    void *block = arena + used;
    blocks[block_count].name = name;
    blocks[block_count].start = (size_t)block;
    blocks[block_count++].size = size;
    used += (size + 63) / 64 * 64;
    return block;
}
static void print_blocks(void)
{
    for (int i = 0; i < block_count; i++)
        printf("block %s %zx %zu\n", blocks[i].name, blocks[i].start, blocks[i].size);
}
#define MAKER(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        return take(#name, size);                                                                                      \
    }
#else
static void print_blocks(void)
{
}
#define MAKER(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }
#endif

MAKER(list_node)
MAKER(matrix)
MAKER(table)
MAKER(text)
MAKER(tree_node)
MAKER(shorts)
MAKER(floats)
MAKER(unused)

/* ---- a list that is built, searched and turned round ---- */

struct node {
    struct node *next;
    long key;
    int count;
    char tag;
};

NOINLINE static struct node *build(int n)
{
    struct node *head = NULL;
    for (int i = 0; i < n; i++) {
        struct node *node = list_node(sizeof *node);
        node->next = head;
        node->key = i * 7 % 31;
        node->count = 0;
        node->tag = (char)i;
        head = node;
    }
    return head;
}

NOINLINE static int find(struct node *list, long key)
{
    for (; list; list = list->next)
        if (list->key == key) {
            list->count++;
            return list->tag;
        }
    return -1;
}

NOINLINE static struct node *turn(struct node *list)
{
    struct node *done = NULL;
    while (list) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

/* ---- numbers ---- */

NOINLINE static void multiply(const int *a, const int *b, int *to, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            to[i * n + j] = sum;
        }
}

NOINLINE static void count_words(const unsigned char *bytes, int length, unsigned *slots, unsigned mask)
{
    unsigned hash = 0;
    for (int i = 0; i < length; i++) {
        if (bytes[i] != ' ') {
            hash = hash * 31 + bytes[i];
            continue;
        }
        slots[hash & mask]++;
        hash = 0;
    }
}

/* ---- a tree ---- */

struct tree {
    struct tree *child[2];
    int key, depth;
};

NOINLINE static void insert(struct tree **at, int key)
{
    int depth = 0;
    while (*at) {
        depth++;
        if ((*at)->key == key)
            return;
        at = &(*at)->child[key > (*at)->key];
    }
    struct tree *node = tree_node(sizeof *node);
    node->child[0] = NULL;
    KEEP(node); /* two stores */
    node->child[1] = NULL;
    node->key = key;
    node->depth = depth;
    *at = node;
}

NOINLINE static long sum_of(const struct tree *tree)
{
    return tree ? tree->key * tree->depth + sum_of(tree->child[0]) + sum_of(tree->child[1]) : 0;
}

NOINLINE static void smooth(float *values, short *rounded, int n)
{
    for (int i = 1; i < n - 1; i++) {
        values[i] = (values[i - 1] + values[i] + values[i + 1]) / 3;
        if (i % 3 == 0)
            rounded[i] = (short)values[i];
    }
}

int main(void)
{
    struct node *list = build(40);
    long sum = 0;
    for (long key = 0; key < 60; key++)
        sum += find(list, key);
    list = turn(list);
    sum += find(list, 0);

    int n = 12, *a = matrix(sizeof(int) * (size_t)(n * n)), *b = matrix(sizeof(int) * (size_t)(n * n)),
        *c = matrix(sizeof(int) * (size_t)(n * n));
    for (int i = 0; i < n * n; i++) {
        a[i] = i;
        KEEP(a);
        b[i] = n - i;
        KEEP(b);
    }
    multiply(a, b, c, n);
    sum += c[17];

    int length = 500;
    unsigned char *bytes = text((size_t)length);
    unsigned *slots = table(sizeof(unsigned) * 64);
    for (int i = 0; i < 64; i++) {
        slots[i] = 0;
        KEEP(slots);
    }
    for (int i = 0; i < length; i++) {
        bytes[i] = i % 6 == 5 ? ' ' : (unsigned char)('a' + i % 17);
        KEEP(bytes);
    }
    count_words(bytes, length, slots, 63);
    sum += slots[5];

    struct tree *tree = NULL;
    for (int i = 0; i < 60; i++)
        insert(&tree, i * 37 % 61);
    sum += sum_of(tree);

    float *values = floats(sizeof(float) * 200);
    short *rounded = shorts(sizeof(short) * 200);
    for (int i = 0; i < 200; i++) {
        values[i] = (float)(i % 9);
        KEEP(values);
    }
    smooth(values, rounded, 200);
    sum += rounded[99];

    KEEP(unused(100));
    print_blocks();
    return sum == 0;
}
