/* fields.h - what fields.c and fields2.c have in common. Every access is volatile, so that each level of optimisation
 * leaves it as it stands, and is counted by hand beside it: R and W. */
#include <stddef.h>

struct vec {
    int x, y;
};

struct node {
    int first;
    struct vec pos;
    struct node *next;
    unsigned kind : 3, mark : 5;
    char letter;
    int hoisted, passed, local, unused, hidden;
    int array[4];
    union {
        int i;
        void *p;
    } u;
    struct vec slots[3];
    long guarded;
    char tail[];
};

struct pair {
    long left, right;
};

struct hammer {
    long cold;
    long hits;
};

#define FIELDS(X)                                                                                                      \
    X(node, first, "first")                                                                                            \
    X(node, pos_x, "pos.x")                                                                                            \
    X(node, pos_y, "pos.y")                                                                                            \
    X(node, next, "next")                                                                                              \
    X(node, kind, "kind")                                                                                              \
    X(node, mark, "mark")                                                                                              \
    X(node, letter, "letter")                                                                                          \
    X(node, hoisted, "hoisted")                                                                                        \
    X(node, passed, "passed")                                                                                          \
    X(node, local, "local")                                                                                            \
    X(node, unused, "unused")                                                                                          \
    X(node, hidden, "hidden")                                                                                          \
    X(node, array, "array")                                                                                            \
    X(node, u_i, "u.i")                                                                                                \
    X(node, u_p, "u.p")                                                                                                \
    X(node, slots, "slots")                                                                                            \
    X(node, guarded, "guarded")                                                                                        \
    X(node, tail, "tail")                                                                                              \
    X(vec, x, "x")                                                                                                     \
    X(vec, y, "y")                                                                                                     \
    X(pair, left, "left")                                                                                              \
    X(pair, right, "right")                                                                                            \
    X(hammer, cold, "cold")                                                                                            \
    X(hammer, hits, "hits")

#define DECLARE(structure, field, name) extern _Atomic long r_##structure##_##field, w_##structure##_##field;
FIELDS(DECLARE)

#define R(structure, field, place) (r_##structure##_##field++, (place))
#define W(structure, field, place) (*(w_##structure##_##field++, &(place)))
/* Of a bit-field, whose address cannot be taken. */
#define WB(structure, field, place, value) (w_##structure##_##field++, (void)((place) = (value)))

void other_unit(volatile struct node *n);
long twin_here(void), twin_there(void);
