// cpp_inside.cpp - blocks that a program keeps only pointers inside of: reachable, except those whose function says
// otherwise.
#include <cstdint>
#include <cstdlib>
#include <cstring>

struct First {
    virtual ~First()
    {
    }
    long first = 1;
};
struct Second {
    virtual ~Second()
    {
    }
    long second = 2;
};
struct Both : First, Second {
    void *next = nullptr;
};
struct Element {
    ~Element()
    {
        value = 0;
    }
    long value = 3, other[2] = {};
};
struct alignas(16) Wide {
    ~Wide()
    {
        value = 0;
    }
    long value = 4, other = 0;
};

static Second *volatile second;
static Element *volatile elements;
static Wide *volatile wide;
static unsigned char *volatile tables[3];
static char *volatile sized, *volatile text, *volatile middle;

#define NOINLINE __attribute__((noinline))

NOINLINE static void *reachable_behind_base()
{
    return malloc(77);
}
NOINLINE static void reachable_by_base()
{
    Both *both = new Both;
    both->next = reachable_behind_base();
    second = both;
}
NOINLINE static void reachable_by_element()
{
    elements = new Element[5];
}
NOINLINE static void reachable_by_wide_element()
{
    wide = new Wide[3];
}
NOINLINE static void reachable_after_size()
{
    uint64_t *block = static_cast<uint64_t *>(calloc(1, 108));
    *block = 100;
    sized = reinterpret_cast<char *>(block + 1);
}
NOINLINE static void reachable_by_text()
{
    uint64_t *block = static_cast<uint64_t *>(calloc(1, 24 + 30 + 1));
    block[0] = 5;
    block[1] = 30;
    text = reinterpret_cast<char *>(block + 3);
}
/* As a HashMap of Rust: entries of 24 bytes, a byte for each, and the first 16 bytes again. */
static unsigned char *make_table(size_t count, unsigned char empty)
{
    unsigned char *block = static_cast<unsigned char *>(calloc(1, 24 * count + count + 16)), *bytes = block + 24 * count;
    memset(bytes, empty, count + 16);
    bytes[1] = bytes[(count < 16 ? 16 : count) + 1] = 0x35;
    return bytes;
}
NOINLINE static void reachable_by_hash_table()
{
    tables[0] = make_table(16, 0xff);
}
NOINLINE static void reachable_by_small_hash_table()
{
    tables[1] = make_table(4, 0xff);
}
NOINLINE static void possible_by_zeros()
{
    tables[2] = make_table(16, 0);
}
NOINLINE static void possible_by_middle()
{
    uint64_t *block = static_cast<uint64_t *>(calloc(1, 200));
    memset(block, 0x77, 200);
    middle = reinterpret_cast<char *>(block + 1);
}
NOINLINE static void scrub()
{
    volatile char bytes[16384];
    for (char volatile &byte : bytes)
        byte = 0;
}

int main()
{
    reachable_by_base();
    reachable_by_element();
    reachable_by_wide_element();
    reachable_after_size();
    reachable_by_text();
    reachable_by_hash_table();
    reachable_by_small_hash_table();
    possible_by_zeros();
    possible_by_middle();
    scrub();
    _Exit(0);
}
