// suppressed.cpp - blocks that are lost, by functions that files of suppressions name: see test_leaks.c.
#include <cstdlib>

#define NOINLINE __attribute__((noinline))

struct thing {
    thing *volatile other;
    char rest[40];
};

NOINLINE void *make(size_t size)
{
    void *volatile block = malloc(size);
    return block;
}

NOINLINE void lose_two()
{
    void *volatile block = make(100);
    block = make(100);
    block = nullptr;
}

namespace app
{
template <class T> NOINLINE void lose_one()
{
    T *volatile block = new T;
    block = nullptr;
}
} // namespace app

NOINLINE void lose_chain()
{
    thing *volatile block = static_cast<thing *>(calloc(1, sizeof(thing)));
    block->other = static_cast<thing *>(malloc(77));
    block = nullptr;
}

NOINLINE void lose_five()
{
    for (int i = 0; i < 5; i++) {
        void *volatile block = realloc(nullptr, 70);
        block = nullptr;
    }
}

NOINLINE void scrub()
{
    volatile char bytes[8192];
    for (int i = 0; i < 8192; i++)
        bytes[i] = 0;
}

int main()
{
    lose_two();
    app::lose_one<thing>();
    lose_chain();
    lose_five();
    scrub();
    return 0;
}
