// fields_parts.cpp - fields of bases and of structs by value, used by each of the types that they belong to: built by
// heapwise c++ --fields in test_counting.c, which knows the numbers.
#include <cstdio>
#include <cstdlib>
#include <map>

#define APART   __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

struct base {
    long id, refs, read_as_base, unused;
};
struct derived : base {
    long own;
};
struct vec {
    long x, tag;
};
struct body {
    vec position, velocity;
    long mass;
};
struct bits {
    unsigned first : 3, second : 5;
    int third : 20;
};

APART void touch(derived *d)
{
    d->refs = 1;
    KEEP(d);
}
APART long look(const base *b)
{
    return b->read_as_base;
}
APART void move(body *b)
{
    b->position.tag = 1;
    KEEP(b);
}
APART long where(const vec *v)
{
    return v->x;
}
APART void set(bits *b)
{
    for (unsigned i = 0; i < 9; i++) {
        KEEP(b);
        b->second = i;
        KEEP(b);
    }
}

int main()
{
    long sum = 0;
    derived *d = new derived;
    base *b = new base;
    body *whole = new body;
    vec *v = new vec;
    bits *word = static_cast<bits *>(std::malloc(sizeof(bits)));
    KEEP(d);
    KEEP(b);
    KEEP(whole);
    KEEP(v);
    d->read_as_base = 2;
    for (int i = 0; i < 1000; i++) {
        touch(d);
        sum += look(d) + look(b);
        move(whole);
        sum += where(v) + where(&whole->velocity);
    }
    set(word);
    std::map<long, long> tree; // its nodes are linked by the C++ library
    for (long i = 0; i < 100; i++)
        tree[i] = i;
    for (const auto &node : tree)
        sum += node.second;
    std::printf("%ld\n", sum);
    return 0;
}
