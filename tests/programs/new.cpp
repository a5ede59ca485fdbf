// new.cpp - every form of operator new and delete, each in a function of its own; see test_interception.c for the
// counts.
#include "program.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static const std::size_t impossible = PTRDIFF_MAX;

static bool aligned(const void *pointer, std::size_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

extern "C" {

NOINLINE void form_plain()
{
    void *p = ::operator new(100);
    KEEP(p);
    ::operator delete(p);
    HERE();
}

NOINLINE void form_array()
{
    void *p = ::operator new[](200);
    KEEP(p);
    ::operator delete[](p);
    HERE();
}

NOINLINE void form_nothrow()
{
    void *p = ::operator new(300, std::nothrow);
    KEEP(p);
    ::operator delete(p, std::nothrow);
    HERE();
}

NOINLINE void form_array_nothrow()
{
    void *p = ::operator new[](400, std::nothrow);
    KEEP(p);
    ::operator delete[](p, std::nothrow);
    HERE();
}

NOINLINE void form_aligned()
{
    void *p = ::operator new(500, std::align_val_t(256)); // the library would ask malloc for 512
    MUST(aligned(p, 256));
    KEEP(p);
    ::operator delete(p, std::align_val_t(256));
    HERE();
}

NOINLINE void form_array_aligned()
{
    void *p = ::operator new[](1024, std::align_val_t(512));
    MUST(aligned(p, 512));
    KEEP(p);
    ::operator delete[](p, std::align_val_t(512));
    HERE();
}

NOINLINE void form_aligned_nothrow()
{
    void *p = ::operator new(128, std::align_val_t(128), std::nothrow);
    MUST(p && aligned(p, 128));
    KEEP(p);
    ::operator delete(p, std::align_val_t(128), std::nothrow);
    HERE();
}

NOINLINE void form_array_aligned_nothrow()
{
    void *p = ::operator new[](192, std::align_val_t(64), std::nothrow);
    MUST(p && aligned(p, 64));
    KEEP(p);
    ::operator delete[](p, std::align_val_t(64), std::nothrow);
    HERE();
}

NOINLINE void form_sized()
{
    void *p = ::operator new(80);
    KEEP(p);
    ::operator delete(p, std::size_t(80));
    void *q = ::operator new[](88);
    KEEP(q);
    ::operator delete[](q, std::size_t(88));
    HERE();
}

NOINLINE void form_sized_aligned()
{
    void *p = ::operator new(64, std::align_val_t(64));
    KEEP(p);
    ::operator delete(p, std::size_t(64), std::align_val_t(64));
    void *q = ::operator new[](128, std::align_val_t(64));
    KEEP(q);
    ::operator delete[](q, std::size_t(128), std::align_val_t(64));
    HERE();
}

NOINLINE void form_null()
{
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, std::size_t(8));
    ::operator delete(nullptr, std::align_val_t(64));
    ::operator delete(nullptr, std::nothrow);
    HERE();
}

NOINLINE void form_zero()
{
    void *p = ::operator new(0), *q = ::operator new[](0);
    MUST(p && q && p != q);
    KEEP(p);
    KEEP(q);
    ::operator delete(p);
    ::operator delete[](q);
    HERE();
}

NOINLINE void form_failing()
{
    volatile std::size_t size = impossible;
    MUST(::operator new(size, std::nothrow) == nullptr);
    MUST(::operator new[](size, std::nothrow) == nullptr);
    MUST(::operator new(size, std::align_val_t(64), std::nothrow) == nullptr);
    int caught = 0;
    try {
        KEEP(::operator new(size));
    } catch (const std::bad_alloc &) {
        caught++;
    }
    try {
        KEEP(::operator new[](size));
    } catch (const std::bad_alloc &) {
        caught++;
    }
    try {
        KEEP(::operator new(size, std::align_val_t(64)));
    } catch (const std::bad_alloc &) {
        caught++;
    }
    MUST(caught == 3);
    HERE();
}

static int handler_calls;

static void handler()
{
    void *p = std::malloc(48); // a handler may allocate
    KEEP(p);
    std::free(p);
    if (++handler_calls == 3)
        throw std::runtime_error("thrown by the handler");
}

NOINLINE void form_handler()
{
    volatile std::size_t size = impossible;
    std::set_new_handler(handler);
    bool caught = false;
    try {
        KEEP(::operator new(size));
    } catch (const std::runtime_error &) {
        caught = true;
    }
    std::set_new_handler(nullptr);
    MUST(caught && handler_calls == 3);
    HERE();
}

struct Thrower {
    char filler[72];
    Thrower()
    {
        KEEP(this);
        throw 5;
    }
};

// The block of an object whose constructor throws is given back.
NOINLINE void form_constructor_throws()
{
    int caught = 0;
    try {
        KEEP(new Thrower);
    } catch (int) {
        caught++;
    }
    MUST(caught == 1);
    HERE();
}

NOINLINE void form_mixed_with_library()
{
    std::vector<int> numbers;
    for (int i = 0; i < 1000; i++)
        numbers.push_back(i);
    std::string text(1000, 'x');
    KEEP(numbers.data());
    KEEP(text.data());
    HERE();
}

// Allocated here, freed by a C function, as some programs do with malloc'ed memory behind new.
NOINLINE void form_live()
{
    for (int i = 0; i < 10; i++) {
        char *p = new char[1000];
        KEEP(p);
    }
    HERE();
}
}

static void leave()
{
    std::exit(3);
}

// The last operator new never returns: its handler ends the process, or nobody catches what it throws.
static void last(bool ends)
{
    volatile std::size_t size = impossible;
    std::set_new_handler(ends ? leave : nullptr);
    KEEP(::operator new(size));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        last(argv[1] == std::string("ends"));
    form_plain();
    form_array();
    form_nothrow();
    form_array_nothrow();
    form_aligned();
    form_array_aligned();
    form_aligned_nothrow();
    form_array_aligned_nothrow();
    form_sized();
    form_sized_aligned();
    form_null();
    form_zero();
    form_failing();
    form_handler();
    form_constructor_throws();
    form_mixed_with_library();
    form_live();
    return 0;
}
