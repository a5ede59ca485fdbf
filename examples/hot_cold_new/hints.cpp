// hints.cpp - stands for an allocator that takes hints, as tcmalloc does: it counts them. Compiled without LTO, so that
// the compiler cannot look into it.
//
// The compiler calls these instead of operator new(size): 1 says that the block is cold, 254 hot, 128 neither.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

enum class __hot_cold_t : std::uint8_t;

static unsigned long hinted[256], without;

static void *allocate(std::size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block)
        throw std::bad_alloc();
    return block;
}

void *operator new(std::size_t size, __hot_cold_t hint)
{
    hinted[(std::uint8_t)hint]++;
    return allocate(size);
}

void *operator new[](std::size_t size, __hot_cold_t hint)
{
    hinted[(std::uint8_t)hint]++;
    return allocate(size);
}

void *operator new(std::size_t size)
{
    without++;
    return allocate(size);
}

void *operator new[](std::size_t size)
{
    without++;
    return allocate(size);
}

void operator delete(void *block) noexcept
{
    free(block);
}
void operator delete[](void *block) noexcept
{
    free(block);
}
void operator delete(void *block, std::size_t) noexcept
{
    free(block);
}
void operator delete[](void *block, std::size_t) noexcept
{
    free(block);
}

__attribute__((destructor)) static void tell()
{
    for (unsigned hint = 0; hint < 256; hint++)
        if (hinted[hint])
            fprintf(stderr, "hint %u: %lu blocks\n", hint, hinted[hint]);
    fprintf(stderr, "no hint: %lu blocks\n", without);
}
