// unseen.cpp - blocks of which counted code touches a part, and code that does not count another one: the C++ library,
// a library that gets a void *, the kernel. And blocks of which nobody touches the rest.
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>

#define NOINLINE extern "C" __attribute__((noinline))

extern "C" void unseen_fill(void *object); // unseen_library.c
extern "C" void unseen_keep(void *object);

enum { MOST = 8000, LARGE = 400 };

struct record {
    long used[2];
    long rest[14];
};

struct packet {
    long kind;
    long number, from, to, time, sum; // only the kernel knows them
};

struct idle {
    int kind;
    double width, height, depth, weight, age; // nobody
};

static record *blocks[MOST];
static packet *packets[MOST];
static idle *idles[MOST];
static char *buffers[LARGE];

NOINLINE void tree_nodes(std::map<int, int> &tree)
{
    for (int i = 0; i < MOST; i++)
        tree[i * 7919 % MOST] = i;
}

NOINLINE record *filled_by_library()
{
    record *one = static_cast<record *>(malloc(sizeof *one));
    one->used[0] = 1;
    unseen_fill(one);
    return one;
}

// It is changed long after it was passed on.
NOINLINE record *kept_by_library()
{
    record *one = static_cast<record *>(malloc(sizeof *one));
    one->used[1] = 1;
    unseen_keep(one);
    return one;
}

NOINLINE record *touched_by_nobody()
{
    record *one = static_cast<record *>(malloc(sizeof *one));
    one->used[0] = 1;
    return one;
}

NOINLINE char *filled_by_kernel(int from)
{
    char *buffer = static_cast<char *>(malloc(4096));
    if (read(from, buffer, 4096) != 4096)
        _exit(3);
    return buffer;
}

NOINLINE char *large_and_empty()
{
    char *buffer = static_cast<char *>(malloc(4096));
    buffer[0] = 1;
    return buffer;
}

NOINLINE packet *packet_from_kernel(int from)
{
    packet *one = static_cast<packet *>(malloc(sizeof *one));
    if (read(from, one, sizeof *one) != static_cast<long>(sizeof *one))
        _exit(3);
    return one;
}

NOINLINE idle *idle_fields()
{
    idle *one = static_cast<idle *>(malloc(sizeof *one));
    one->kind = 3;
    return one;
}

int main()
{
    const int from = open("/dev/urandom", O_RDONLY);
    long sum = 0;
    std::map<int, int> *tree = new std::map<int, int>;
    tree_nodes(*tree);
    for (int i = 0; i < MOST; i++) {
        blocks[i] = i % 3 == 0 ? filled_by_library() : i % 3 == 1 ? kept_by_library() : touched_by_nobody();
        sum += blocks[i]->used[i % 3 == 1];
    }
    unseen_fill(nullptr); // those that were kept
    for (int i = 0; i < LARGE; i++) {
        buffers[i] = i % 2 ? filled_by_kernel(from) : large_and_empty();
        sum += buffers[i][0];
    }
    for (int i = 0; i < MOST; i++) {
        packets[i] = packet_from_kernel(from);
        idles[i] = idle_fields();
    }
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < MOST; i++)
            sum += packets[i]->kind + idles[i]->kind;
    for (int i = 0; i < MOST; i += 2) // some are live at the end
        free(blocks[i]);
    return sum == 77 ? 1 : 0;
}
