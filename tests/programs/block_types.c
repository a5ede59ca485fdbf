/* block_types.c - blocks of known types, allocated as C programs do. A comment "= TYPE" says what the line allocates;
 * "= ?" that nothing in the code says it. Without an argument it allocates everything; test_block_types.c compares. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct list {
    struct list *next, *previous;
};
struct node {
    struct node *next;
    long key;
    double value[3];
};
struct table {
    struct node **slot;
    size_t size;
    struct node *first;
    char *name;
    struct node *chain[16];
};
struct message {
    int length;
    char text[];
};
struct old_message {
    long kind;
    short text[1];
};
typedef struct {
    float x, y, z;
} vector3;
typedef union {
    long number;
    double real;
    char bytes[24];
} cell;
struct base {
    int kind, references;
};
struct derived {
    struct base base;
    long payload[4];
};
struct wide {
    struct base base;
    int more[3];
};
struct linked {
    struct list list;
    long data[2];
};
struct matrix {
    int rows, columns;
    double *data;
};
struct header {
    size_t size, magic;
};
typedef void *(*allocate_function)(void *context, size_t size);

static struct table global_table;
static struct node *global_node, *pool[32];
static void *kept[4096];
static int kept_count;

NOINLINE static void *keep(void *block)
{
    if (!block)
        abort();
    kept[kept_count++ % 4096] = block;
    return block;
}

static void *checked(size_t size)
{
    void *block = malloc(size);
    if (!block)
        abort();
    return block;
}

NOINLINE static void *cleared(size_t size)
{
    return memset(checked(size), 0, size);
}

NOINLINE static void *with_header(size_t size)
{
    struct header *header = malloc(sizeof *header + size);
    if (!header)
        return NULL;
    header->size = size;
    return header + 1;
}

NOINLINE static struct base *object(size_t size, int kind)
{
    struct base *base = malloc(size);
    base->kind = kind;
    return base;
}

static void *by_pointer(void *context, size_t size)
{
    return malloc(size + (context != NULL));
}
static allocate_function volatile hook = by_pointer;

static inline void insert(struct list *entry, struct list *head)
{
    entry->next = head->next;
    entry->previous = head;
    head->next = entry;
}

NOINLINE static struct node *plain(long key)
{
    struct node *node = malloc(sizeof *node); /* = struct node */
    if (!node)
        return NULL;
    node->key = key;
    return node;
}

NOINLINE static void to_member(struct table *table)
{
    table->first = malloc(sizeof *table->first); /* = struct node */
    table->slot = calloc(32, sizeof *table->slot); /* = struct node * */
    table->name = malloc(50); /* = char */
    memset(table->name, 'a', 49);
}

NOINLINE static void to_elements(struct table *table, int count)
{
    for (int i = 0; i < count; i++) {
        table->slot[i] = checked(sizeof **table->slot); /* = struct node */
        table->slot[i]->key = i;
    }
    for (int i = 0; i < 16; i++)
        table->chain[i] = malloc(sizeof(struct node)); /* = struct node */
}

NOINLINE static void to_globals(void)
{
    global_node = malloc(sizeof *global_node); /* = struct node */
    for (int i = 0; i < 32; i++)
        pool[i] = malloc(sizeof *pool[i]); /* = struct node */
}

NOINLINE static struct message *flexible(const char *text)
{
    const size_t length = strlen(text);
    struct message *message = checked(sizeof *message + length + 1); /* = struct message */
    message->length = (int)length;
    memcpy(message->text, text, length + 1);
    return message;
}

NOINLINE static struct old_message *one_element(int count)
{
    struct old_message *message = malloc(sizeof *message + (size_t)count * sizeof(short)); /* = struct old_message */
    message->kind = count;
    message->text[0] = 1;
    return message;
}

NOINLINE static vector3 *arrays(int count)
{
    vector3 *points = calloc((size_t)count, sizeof *points); /* = vector3 */
    for (int i = 0; i < count; i++)
        points[i].x = (float)i;
    return points;
}

NOINLINE static int *growing(int count)
{
    int *numbers = NULL;
    for (int i = 4; i < count; i *= 2) {
        numbers = realloc(numbers, (size_t)i * sizeof *numbers); /* = int */
        numbers[i - 1] = i;
    }
    return numbers;
}

NOINLINE static cell *unions(void)
{
    cell *one = cleared(sizeof *one); /* = cell */
    one->number = 3;
    return one;
}

NOINLINE static struct derived *derived_object(void)
{
    struct derived *derived = (struct derived *)object(sizeof *derived, 1); /* = struct derived */
    derived->payload[2] = 4;
    return derived;
}

NOINLINE static struct wide *wide_object(void)
{
    struct wide *wide = (struct wide *)object(sizeof *wide, 2); /* = struct wide */
    wide->more[1] = 7;
    return wide;
}

NOINLINE static struct base *hidden_object(void)
{
    struct base *base = object(sizeof(struct derived), 3); /* = ? */
    base->references = 9;
    return base;
}

NOINLINE static struct linked *in_list(struct list *head)
{
    struct linked *linked = malloc(sizeof *linked); /* = struct linked */
    linked->data[0] = 5;
    insert(&linked->list, head);
    return linked;
}

NOINLINE static struct matrix *two_blocks(int rows, int columns)
{
    struct matrix *matrix = malloc(sizeof *matrix); /* = struct matrix */
    matrix->data = calloc((size_t)(rows * columns), sizeof *matrix->data); /* = double */
    matrix->rows = rows;
    matrix->columns = columns;
    return matrix;
}

NOINLINE static int by_argument(struct node **out)
{
    *out = malloc(sizeof **out); /* = struct node */
    return *out ? 0 : -1;
}

NOINLINE static struct node *through_hook(void)
{
    struct node *node = hook(NULL, sizeof *node); /* = struct node */
    node->key = 8;
    return node;
}

NOINLINE static void *nobody_knows(size_t size)
{
    return keep(malloc(size)); /* = ? */
}

NOINLINE static uint64_t *behind_header(void)
{
    uint64_t *words = with_header(64); /* = unsigned long */
    words[0] = 1;
    return words;
}

int main(int argc, char **argv)
{
    struct list head = {&head, &head};
    struct node *out;
    to_member(&global_table);
    to_elements(&global_table, 32);
    to_globals();
    for (int i = 0; i < 100; i++) {
        keep(plain(i));
        keep(flexible(i % 2 ? "a text" : "a longer text than that"));
        keep(one_element(i));
        keep(in_list(&head));
    }
    keep(arrays(20 + argc));
    keep(growing(5000));
    keep(unions());
    keep(derived_object());
    keep(wide_object());
    keep(hidden_object());
    keep(two_blocks(4, 5 + argc));
    if (by_argument(&out) == 0)
        keep(out);
    keep(through_hook());
    nobody_knows((size_t)argc + 40);
    keep(behind_header());
    keep(strdup(argv[0])); /* = ? */
    return global_node == NULL || pool[3] == NULL;
}
