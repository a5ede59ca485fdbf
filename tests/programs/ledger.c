/* ledger.c - memory of every kind that RSS is made of, in known amounts. Prints what the kernel says of it.
 *
 * With an argument, one thing of its own: "one" block, "buffers", or "many" blocks that are written after they were
 * allocated, and freed; where their sum is greatest it prints RSS. The others need no blocks. */
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

/* 24 MiB, of which 20 are written, 4 in the middle unmapped again, and 2 at the end given to somebody else. */
__attribute__((noinline)) static char *map_known(void)
{
    char *memory = mmap(NULL, 24 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, 20 * MIB);
    munmap(memory + 8 * MIB, 4 * MIB);
    return memory;
}

__attribute__((noinline)) static void map_over(char *at)
{
    mmap(at, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(at, 1, 2 * MIB);
}

__attribute__((noinline)) static void map_moved(void)
{
    char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mremap(memory, MIB, 5 * MIB, MREMAP_MAYMOVE), 1, 5 * MIB);
}

/* The old range stays, empty, and is written again. */
__attribute__((noinline)) static void map_twice(void)
{
    char *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, 4 * MIB);
    if (mremap(memory, 4 * MIB, 4 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED)
        say("not supported\n");
    memset(memory, 2, 2 * MIB);
}

__attribute__((noinline)) static void map_own_copy(void)
{
    const int file = memfd_create("copy", 0);
    if (ftruncate(file, 6 * MIB) != 0)
        abort();
    memset(mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0), 1, 6 * MIB);
}

/* 4 MiB in the middle of a block of 16 become a mapping of their own. */
static void divide(void)
{
    char *volatile block = malloc(16 * MIB);
    memset(block, 1, 16 * MIB);
    mprotect(block - (size_t)block % 4096 + 4 * MIB, 4 * MIB, PROT_READ);
}

__attribute__((noinline)) static void map_by_number(void)
{
    char *memory = (char *)syscall(SYS_mmap, NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, 3 * MIB);
}

/* Directly behind and before everything that is there and anonymous, so that the kernel may join them. Their bytes. */
__attribute__((noinline)) static size_t map_beside(int flags)
{
    static char text[1 << 16];
    const int file = open("/proc/self/maps", O_RDONLY);
    size_t used = 0, bytes = 0;
    for (ssize_t got; (got = read(file, text + used, sizeof text - 1 - used)) > 0; used += (size_t)got)
        ;
    close(file);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned long from, to, inode;
        char permissions[5];
        int length = 0;
        *end = 0;
        if (sscanf(line, "%lx-%lx %4s %*x %*s %lu%n", &from, &to, permissions, &inode, &length) != 4 || inode ||
            strcmp(permissions, "rw-p") != 0 || strchr(line, '['))
            continue;
        for (int i = 0; i < 4; i++) {
            const unsigned long at = i < 2 ? to + (unsigned)i * 65536 : from - (unsigned)(i - 1) * 65536;
            char *memory = mmap((void *)at, 65536, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | flags, -1, 0);
            if (memory == MAP_FAILED)
                continue;
            memset(memory, 1, 65536);
            bytes += 65536;
        }
    }
    return bytes;
}

__attribute__((noinline)) static void map_shared(void)
{
    const int file = memfd_create("ledger", 0);
    if (ftruncate(file, 6 * MIB) != 0)
        abort();
    memset(mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), 1, 6 * MIB);
}

static pthread_barrier_t ready;

static void *use_stack(void *forever)
{
    char room[MIB];
    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    pthread_barrier_wait(&ready);
    while (forever)
        pause();
    return NULL;
}

static unsigned long resident(void)
{
    char line[512];
    unsigned long rss = 0, kb;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "Rss: %lu kB", &kb) == 1)
            rss += kb;
    if (maps)
        fclose(maps);
    return rss * 1024;
}

static void peak(unsigned count, size_t bytes)
{
    char *blocks[200];
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = malloc(bytes);
        void *volatile small = malloc(100);
        free(small); /* the peak is left before anything was written */
        memset(blocks[i], 1, bytes);
        KEEP(blocks[i]);
    }
    printf("rss %lu\n", resident());
    for (unsigned i = 0; i < count; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    alarm(300);
    const char *only = argc > 1 ? argv[1] : "";
    if (!strcmp(only, "beside")) {
        char *volatile block = malloc(100);
        *block = 1;
        printf("beside %zu\n", map_beside(argc > 2 ? MAP_NORESERVE : 0));
        return 0;
    }
    if (!strcmp(only, "one"))
        return peak(1, 200 * MIB), 0;
    if (!strcmp(only, "buffers"))
        return peak(8, 10 * MIB), 0;
    if (!strcmp(only, "many"))
        return peak(100, MIB), 0;
    if (!strcmp(only, "forked")) { /* the child has blocks of the parent, and one of its own */
        char *volatile block = malloc(5 * MIB);
        memset(block, 1, 5 * MIB);
        const pid_t child = fork();
        if (child) {
            waitpid(child, NULL, 0);
            return 0;
        }
        char *volatile own = malloc(2 * MIB);
        memset(own, 1, 2 * MIB);
        return 0;
    }
    if (!strcmp(only, "divided"))
        return divide(), 0;
    if (!strcmp(only, "twice"))
        return map_twice(), 0;
    if (!strcmp(only, "copy"))
        return map_own_copy(), 0;
    if (!strcmp(only, "given")) { /* written, and half of it given back */
        char *volatile block = malloc(20 * MIB);
        memset(block, 1, 20 * MIB);
        madvise(block - (size_t)block % 4096 + 4096, 10 * MIB, MADV_DONTNEED);
        return 0;
    }
    char *known = map_known();
    map_over(known + 18 * MIB);
    map_moved();
    map_by_number();
    map_shared();
    pthread_barrier_init(&ready, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, use_stack, &ready);
    pthread_barrier_wait(&ready);
    char *volatile block = malloc(40 * MIB); /* a mapping of its own */
    memset(block, 1, 40 * MIB);
    for (int i = 0; i < 20000; i++)
        *(char *volatile *)malloc(100) = block; /* not freed */

    printf("rss %lu\n", resident());
    return 0;
}
