// fields_arrays.cpp - arrays of structs in C++ classes: std::array, loops over ranges, members, bases, virtual ones.
// Prints what was counted by hand: one line for each field, "field STRUCT|NAME|READS|WRITES".
#include <array>
#include <cstdlib>

#define FIELDS(X)                                                                                                      \
    X(point, x, "x")                                                                                                   \
    X(point, y, "y")                                                                                                   \
    X(outer, pts, "pts")                                                                                               \
    X(outer, grid, "grid")                                                                                             \
    X(outer, std_pts, "std_pts._M_elems")                                                                              \
    X(outer, numbers, "numbers._M_elems")                                                                              \
    X(outer, std_grid, "std_grid._M_elems")                                                                            \
    X(outer, mixed, "mixed")                                                                                           \
    X(outer, untouched, "untouched._M_elems")                                                                          \
    X(derived, outer_pts, "outer::pts")                                                                                \
    X(collection, all, "all")                                                                                          \
    X(animal, legs, "legs")                                                                                            \
    X(animal, marks, "marks")                                                                                          \
    X(platypus, eggs, "eggs")                                                                                          \
    X(platypus, hair, "mammal::hair")

#include "fields_arrays.h"

struct point {
    volatile int x, y;
};

struct outer {
    volatile int n;
    point pts[8];
    point grid[3][4];
    std::array<point, 8> std_pts;
    std::array<volatile int, 4> numbers;
    std::array<std::array<point, 2>, 3> std_grid;
    std::array<point, 2> mixed[3];
    std::array<point, 2> untouched, handed;

    void clear()
    {
        for (point &p : pts)
            W2(point_x, outer_pts, p.x) = 0;
        for (int i = 0; i < 8; i++)
            W2(point_y, outer_pts, pts[i].y) = 0;
    }
};

struct derived : outer {
    long more;
};

struct collection {
    derived all[2];
};

struct animal {
    volatile int legs;
    point marks[3];
    virtual ~animal()
    {
    }
};

struct bird : virtual animal {
    volatile int wings;
};

struct mammal : virtual animal {
    volatile int hair;
};

struct platypus : bird, mammal {
    volatile int eggs;

    void lay()
    {
        W1(platypus_eggs, eggs) = R1(platypus_eggs, eggs) + 1;
        W2(point_x, animal_marks, marks[1].x) = 2;
    }
};

template <class T> static __attribute__((noinline)) T *opaque(T *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

static void arrays(outer *o)
{
    for (auto &row : o->grid)
        for (auto &p : row)
            W2(point_x, outer_grid, p.x) = R2(point_y, outer_grid, p.y);
    point &named = o->pts[3];
    for (int i = 0; i < 3; i++)
        W2(point_x, outer_pts, named.x) = i;
    const point *const last = &o->pts[7];
    (void)R2(point_x, outer_pts, last->x);
}

static void std_arrays(outer *o)
{
    for (std::size_t i = 0; i < o->std_pts.size(); i++)
        W2(point_x, outer_std_pts, o->std_pts[i].x) = R2(point_y, outer_std_pts, o->std_pts.at(i).y);
    for (point &p : o->std_pts)
        W2(point_y, outer_std_pts, p.y) = 2;
    W2(point_x, outer_std_pts, o->std_pts.front().x) = R2(point_y, outer_std_pts, o->std_pts.back().y);
    W2(point_x, outer_std_pts, std::get<2>(o->std_pts).x) = 1;
    point *raw = o->std_pts.data();
    for (int i = 0; i < 4; i++)
        W2(point_y, outer_std_pts, raw[i].y) = i;
    for (int i = 0; i < 4; i++)
        W1(outer_numbers, o->numbers[i]) = R1(outer_numbers, o->numbers[3 - i]);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            W2(point_x, outer_std_grid, o->std_grid[i][k].x) = i;
    for (int i = 0; i < 3; i++)
        W2(point_y, outer_mixed, o->mixed[i][1].y) = i;
    std::array<point, 4> *alone = opaque(new std::array<point, 4>);
    for (point &p : *alone) // in no struct: no more than a point
        W1(point_x, p.x) = 1;
}

// All who can call it pass an element of one array.
static __attribute__((noinline)) void of_one_array(point *p)
{
    W2(point_x, outer_pts, p->x) = 1;
}

static __attribute__((noinline)) void of_anybody(point &p)
{
    W1(point_x, p.x) = 1;
}

void (*volatile called)(point &) = of_anybody;

// Where a virtual base class lies depends on the object: its members are its own, whatever class they are reached by.
static void virtual_bases(platypus *p)
{
    for (int i = 0; i < 3; i++) {
        p->lay();
        W1(animal_legs, p->legs) = R1(animal_legs, p->legs) + 1;
        W2(point_y, animal_marks, p->marks[i].y) = 1;
        W1(platypus_hair, p->hair) = 2;
    }
    bird *b = p;
    animal *a = p;
    W1(animal_legs, b->legs) = 3;
    W1(animal_legs, a->legs) = 4;
    W2(point_x, animal_marks, b->marks[0].x) = 1;
}

int main()
{
    outer *o = opaque(new outer);
    arrays(o);
    std_arrays(o);
    o->clear();
    derived *d = opaque(new derived);
    for (int i = 0; i < 8; i++)
        W2(point_x, derived_outer_pts, d->pts[i].x) = i; // the base class's array is derived's
    collection *c = opaque(new collection);
    for (int i = 0; i < 2; i++)
        W3(point_y, derived_outer_pts, collection_all, c->all[i].pts[2].y) = 1;
    for (int i = 0; i < 8; i++)
        of_one_array(&o->pts[i]);
    called(o->handed[1]); // of a point, no more
    virtual_bases(opaque(new platypus));
    print();
    return 0;
}
