/* keeps_types.cpp - variables of C++ that keep blocks: what they are declared to point to, see test_keeps.c. */
#include "program.h"

#include <cstdlib>

#define BLOCK(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void *block = calloc(1, size);                                                                                 \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }

BLOCK(of_class)
BLOCK(of_nested)
BLOCK(of_base)
BLOCK(of_template)
BLOCK(of_hidden)
BLOCK(of_text)
BLOCK(of_typedef)
BLOCK(of_anything)

template <class A, class B> struct Pair {
    A *first;
    B *second;
};

namespace server
{
class Cache
{
  public:
    struct Entry {
        Entry *next;
    };
    Entry *first;
};
struct Shape {
    long kind;
};
struct Circle : Shape {
    double radius;
};
typedef unsigned long Number;

Cache *volatile cache;
const Cache::Entry *volatile entry;
Shape *volatile shape; /* is a circle: the declaration counts */
} // namespace server

namespace
{
struct Hidden {
    long number;
};
} // namespace

Pair<int, server::Cache> *volatile pairs;
Hidden *volatile hidden;
const char *volatile text;
server::Number *volatile number;
void *volatile anything;

int main()
{
    server::cache = static_cast<server::Cache *>(of_class(208));
    server::entry = static_cast<server::Cache::Entry *>(of_nested(216));
    server::shape = static_cast<server::Circle *>(of_base(224));
    pairs = static_cast<Pair<int, server::Cache> *>(of_template(232));
    hidden = static_cast<Hidden *>(of_hidden(240));
    text = static_cast<char *>(of_text(248));
    number = static_cast<server::Number *>(of_typedef(256));
    anything = of_anything(264);
    return 0;
}
