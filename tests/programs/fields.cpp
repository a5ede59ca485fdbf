// fields.cpp - fields of C++ classes: bases, several and virtual ones, templates, namespaces, references. Prints what
// was counted by hand: one line for each field, "field STRUCT|NAME|READS|WRITES".
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace shape
{

struct point {
    volatile int x, y;
};

class base
{
  public:
    volatile int id = 0;
    virtual ~base()
    {
    }
    virtual int area() const
    {
        return id;
    }
};

struct tagged {
    volatile long tag;
};

class circle : public base, public tagged
{
  public:
    volatile double radius;
    point centre;
    int area() const override
    {
        return int(radius);
    }
};

struct animal {
    volatile int legs;
};
struct bird : virtual animal {
    volatile int wings;
};

template <class T> struct box {
    T value;
    volatile int uses;
    T get()
    {
        uses = uses + 1;
        return value;
    }
};

} // namespace shape

template <class T> static __attribute__((noinline)) T *opaque(T *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

static void move(shape::point &p, int by)
{
    p.x = p.x + by;
}

int main()
{
    shape::circle *c = opaque(new shape::circle);
    for (int i = 0; i < 10; i++) {
        c->id = i;      // of the first base: circle's base::id
        c->tag = c->id; // of the second one
        c->radius = 2;
        c->centre.x = i;
        move(c->centre, 1); // by reference: a point
    }
    shape::tagged *t = c; // the second base by itself
    for (int i = 0; i < 5; i++)
        t->tag = i;
    shape::bird *b = opaque(new shape::bird);
    for (int i = 0; i < 3; i++) {
        b->wings = 2;
        b->legs = 2; // of a virtual base: an animal
    }
    shape::box<int> *small = opaque(new shape::box<int>);
    shape::box<long> *large = opaque(new shape::box<long>);
    small->uses = 0;
    large->uses = 0;
    for (int i = 0; i < 7; i++)
        small->get();
    large->get();
    std::puts("field shape::circle|base::id|10|10");
    std::puts("field shape::circle|tagged::tag|0|10");
    std::puts("field shape::circle|radius|0|10");
    std::puts("field shape::circle|centre.x|0|10");
    std::puts("field shape::point|x|10|10");
    std::puts("field shape::tagged|tag|0|5");
    std::puts("field shape::bird|wings|0|3");
    std::puts("field shape::animal|legs|0|3");
    std::puts("field shape::box<int>|uses|7|8");
    std::puts("field shape::box<long>|uses|1|2");
    return 0;
}
