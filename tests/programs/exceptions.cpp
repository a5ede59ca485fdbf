// exceptions.cpp - allocations while exceptions are thrown, on their way, and caught.
#include "program.h"

#include <stdexcept>
#include <string>

extern "C" {

NOINLINE void destructor_on_the_way()
{
    void *p = malloc(100);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE void in_the_catch()
{
    void *p = malloc(200);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE void after_the_catch()
{
    void *p = malloc(300);
    KEEP(p);
    free(p);
    HERE();
}
}

struct Guard {
    ~Guard()
    {
        destructor_on_the_way();
    }
};

extern "C" NOINLINE void thrower(int depth)
{
    if (depth == 0)
        throw std::runtime_error("an error with a message that is too long for the small string buffer");
    thrower(depth - 1);
    HERE();
}

extern "C" NOINLINE void middle_with_guard()
{
    Guard guard;
    thrower(5);
    HERE();
}

extern "C" NOINLINE void catcher()
{
    try {
        middle_with_guard();
    } catch (const std::exception &error) {
        in_the_catch();
        std::string text(error.what());
        KEEP(text.data());
    }
    after_the_catch();
}

extern "C" NOINLINE void rethrower()
{
    try {
        try {
            thrower(2);
        } catch (const std::runtime_error &) {
            throw;
        }
    } catch (...) {
        in_the_catch();
    }
    HERE();
}

int main()
{
    for (int i = 0; i < 50; i++)
        catcher();
    for (int i = 0; i < 50; i++)
        rethrower();
    return 0;
}
