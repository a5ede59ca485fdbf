// oracle.cpp - stacks of C++ programs: see oracle.h.
#include "oracle.h"

#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

struct on_the_way {
    ~on_the_way()
    {
        MARK(30);
    }
};

NOINLINE static void throws(int depth)
{
    on_the_way guard;
    if (depth == 0)
        throw std::runtime_error("thrown");
    throws(depth - 1);
    HERE();
}

NOINLINE static void case_exception()
{
    try {
        throws(2);
    } catch (const std::exception &) {
        MARK(31);
    }
    MARK_BY(::operator new, 32);
}

struct shape {
    virtual void draw() = 0;
    virtual ~shape()
    {
    }
};
struct circle : shape {
    NOINLINE void draw() override
    {
        MARK(33);
    }
};

NOINLINE static void case_virtual(shape &one)
{
    one.draw();
    HERE();
}

NOINLINE static void case_algorithm()
{
    std::vector<int> numbers{3, 1, 2};
    bool marked = false;
    std::function<bool(int, int)> less = [&marked](int a, int b) {
        if (!marked)
            MARK(34);
        marked = true;
        return a < b;
    };
    std::sort(numbers.begin(), numbers.end(), less);
    HERE();
}

struct made_early {
    made_early()
    {
        MARK(35);
    }
    ~made_early()
    {
        MARK(36);
    }
} early;

NOINLINE static void case_thread()
{
    std::thread thread([] { MARK(37); });
    thread.join();
    HERE();
}

int main()
{
    circle one;
    case_exception();
    case_virtual(one);
    case_algorithm();
    case_thread();
    return 0;
}
