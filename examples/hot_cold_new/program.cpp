// program.cpp - a server in miniature: every request makes a scratch buffer that is used and dropped at once, and
// leaves an entry in an archive that nobody reads again. Both come from the same function, make().
//
// So the call of operator new in make() is neither hot nor cold: it depends on who called make(). The profile knows by
// call stack, and the compiler makes a copy of make() for each kind (examples/hot_cold_new/README.md).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

// INLINE_A: make() becomes part of handle() when the program is profiled, not of archive(). The profile matches
// whatever is inlined where when the program is compiled again.
#ifdef INLINE_A
#define INTO_HANDLE [[clang::always_inline]]
#else
#define INTO_HANDLE [[clang::noinline]]
#endif

static char *make(size_t size)
{
    return new char[size];
}

__attribute__((noinline)) static unsigned handle(unsigned request)
{
    char *scratch;
    INTO_HANDLE scratch = make(512);
    for (int round = 0; round < 40; round++)
        memset(scratch, (int)(request + round), 512);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)scratch[i];
    asm volatile("" : : "r"(scratch) : "memory");
    delete[] scratch;
    return sum;
}

__attribute__((noinline)) static char *archive(unsigned request)
{
    char *entry;
    [[clang::noinline]] entry = make(256);
    entry[0] = (char)request;
    return entry;
}

// The only caller of new here: cold without any ambiguity.
__attribute__((noinline)) static char *load_settings()
{
    char *settings = new char[4096];
    settings[0] = 1;
    return settings;
}

int main(int argc, char **argv)
{
    const int seconds_100 = argc > 1 ? atoi(argv[1]) : 30;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10 * seconds_100);
    char *settings = load_settings();
    std::vector<char *> entries;
    entries.reserve(1000);
    unsigned sum = 0, request = 0;
    for (; request < 1000; request++) {
        sum += handle(request);
        entries.push_back(archive(request));
    }
    while (std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 100; i++)
            sum += handle(request++);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (char *entry : entries)
        delete[] entry;
    delete[] settings;
    printf("%u\n", sum & 1);
    return 0;
}
