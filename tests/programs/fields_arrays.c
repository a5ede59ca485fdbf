/* fields_arrays.c - arrays of structs in structs: what is done to the elements is done to the array, too. Prints what
 * was counted by hand: one line for each field, "field STRUCT|NAME|READS|WRITES". */
#include <stdlib.h>
#include <string.h>

#define FIELDS(X)                                                                                                      \
    X(point, x, "x")                                                                                                   \
    X(point, y, "y")                                                                                                   \
    X(outer, n, "n")                                                                                                   \
    X(outer, pts, "pts")                                                                                               \
    X(outer, grid, "grid")                                                                                             \
    X(outer, single, "single")                                                                                         \
    X(outer, passed, "passed")                                                                                         \
    X(outer, untouched, "untouched")                                                                                   \
    X(cell, id, "id")                                                                                                  \
    X(cell, corners, "corners")                                                                                        \
    X(board, title, "title")                                                                                           \
    X(board, cells, "cells")                                                                                           \
    X(board, inner_cells, "inner.cells")                                                                               \
    X(tail, length, "length")                                                                                          \
    X(tail, items, "items")

#include "fields_arrays.h"

struct point {
    int x, y;
};

struct outer {
    int n;
    struct point pts[8];
    struct point grid[3][4];
    struct point single[1];
    struct point passed[4];
    struct point untouched[2];
};

struct cell {
    struct point corners[4];
    long id;
};

struct board {
    struct cell cells[5];
    int title;
    struct {
        int before;
        struct cell cells[2];
    } inner;
};

struct tail {
    long length;
    struct point items[];
};

/* The address goes out of sight; nothing is accessed. */
static __attribute__((noinline)) void escape(volatile void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void *new_object(size_t bytes)
{
    void *p = malloc(bytes);
    escape(p);
    return p;
}

static void plain(volatile struct outer *o)
{
    W1(outer_n, o->n) = 8;
    for (int i = 0; i < 8; i++)
        W2(point_x, outer_pts, o->pts[i].x) = i;
    for (int i = 0; i < R1(outer_n, o->n); i++)
        W2(point_y, outer_pts, o->pts[i].y) = R2(point_x, outer_pts, o->pts[i].x);
    W2(point_x, outer_pts, o->pts[0].x) = 1;
    W2(point_y, outer_pts, o->pts->y) = 1;
    W2(point_y, outer_pts, o->pts[5].y) = R2(point_y, outer_pts, o->pts[3].y);
    W2(point_x, outer_single, o->single[0].x) = R2(point_y, outer_single, o->single->y);
}

static void several_dimensions(volatile struct outer *o)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            W2(point_x, outer_grid, o->grid[i][k].x) = i + k;
    W2(point_y, outer_grid, o->grid[2][1].y) = 5;
    for (int i = 0; i < 3; i++) {
        volatile struct point *row = o->grid[i];
        W2(point_x, outer_grid, row[1].x) = R2(point_y, outer_grid, row[2].y);
    }
    volatile struct point(*rows)[4] = o->grid;
    for (int i = 0; i < 3; i++)
        W2(point_y, outer_grid, rows[i][i].y) = R2(point_x, outer_grid, (*rows)[i].x);
}

static void pointers(volatile struct outer *o, int which)
{
    for (int i = 0; i < 8; i++) {
        volatile struct point *p = &o->pts[i];
        W2(point_x, outer_pts, p->x) = R2(point_y, outer_pts, p->y);
    }
    for (volatile struct point *p = o->pts, *end = o->pts + 8; p < end; p++)
        W2(point_y, outer_pts, p->y) = 1;
    volatile int *y = &o->pts[which].y;
    for (int i = 0; i < 5; i++)
        W2(point_y, outer_pts, *y) = i;
    volatile struct point *either = which ? &o->pts[1] : &o->pts[2];
    W2(point_x, outer_pts, either->x) = 2;
    volatile struct point *other = which ? &o->pts[1] : new_object(sizeof *other); /* not known */
    W1(point_x, other->x) = 2;
    volatile struct point *first = o->pts, *second = first + 2;
    W2(point_x, outer_pts, second[1].x) = 2;
}

static __attribute__((noinline)) int of_caller(volatile struct point *p)
{
    return R1(point_x, p->x);
}

int (*volatile called)(volatile struct point *) = of_caller;

static void passes(volatile struct outer *o)
{
    for (int i = 0; i < 4; i++)
        called(&o->passed[i]); /* to a function that might be called by anybody: of a point, no more */
}

static void nested(volatile struct board *b)
{
    W1(board_title, b->title) = 1;
    for (int i = 0; i < 5; i++) {
        W2(cell_id, board_cells, b->cells[i].id) = i;
        for (int k = 0; k < 4; k++)
            W3(point_x, cell_corners, board_cells, b->cells[i].corners[k].x) = k;
    }
    volatile struct cell *c = &b->cells[3];
    W3(point_y, cell_corners, board_cells, c->corners[2].y) = 4;
    W2(cell_id, board_inner_cells, b->inner.cells[1].id) = 4;
    W3(point_y, cell_corners, board_inner_cells, b->inner.cells[1].corners[3].y) =
        R3(point_x, cell_corners, board_inner_cells, b->inner.cells[0].corners[0].x);
    volatile struct cell *alone = new_object(sizeof *alone);
    for (int k = 0; k < 4; k++)
        W2(point_x, cell_corners, alone->corners[k].x) = k;
}

static void flexible(volatile struct tail *t)
{
    W1(tail_length, t->length) = 6;
    for (int i = 0; i < 6; i++)
        W2(point_x, tail_items, t->items[i].x) = (int)R1(tail_length, t->length);
    W2(point_y, tail_items, t->items[4].y) = R2(point_x, tail_items, t->items->x);
    for (volatile struct point *p = t->items; p < t->items + 3; p++)
        W2(point_y, tail_items, p->y) = 1;
}

/* Elements as a whole: each of their fields, and the array once for each. */
static void wholes(volatile struct outer *o)
{
    o->pts[2] = o->pts[3];
    r_point_x++, r_point_y++, w_point_x++, w_point_y++, r_outer_pts++, w_outer_pts++;
    memset((void *)o->pts, 0, sizeof o->pts);
    w_point_x += 8, w_point_y += 8, w_outer_pts += 8;
    escape(o);
}

/* After optimisation there is one access where the source has two. */
static __attribute__((noinline)) void merged(volatile struct outer *o, int which, int i)
{
    if (which)
        W2(point_y, outer_pts, o->pts[i].y) = 1;
    else
        W2(point_y, outer_pts, o->pts[i].y) = 2;
}

static volatile struct outer global;
static volatile struct point table[3][2];

static void globals(void)
{
    for (int i = 0; i < 8; i++)
        W2(point_x, outer_pts, global.pts[i].x) = i;
    W2(point_y, outer_pts, global.pts[6].y) = 2;
    for (int i = 0; i < 3; i++)
        W1(point_x, table[i][1].x) = R1(point_y, table[i][0].y);
}

int main(int argc, char **argv)
{
    (void)argv;
    volatile struct outer *o = new_object(sizeof *o);
    plain(o);
    several_dimensions(o);
    pointers(o, argc);
    passes(o);
    nested(new_object(sizeof(struct board)));
    flexible(new_object(sizeof(struct tail) + 6 * sizeof(struct point)));
    wholes(o);
    for (int i = 0; i < 8; i++)
        merged(o, i & argc, i);
    globals();
    print();
    return 0;
}
