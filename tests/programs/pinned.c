/* pinned.c - one block in 64 stays: pages are full of 64 blocks of 64 bytes each, headers included. Prints what the
 * program counts itself: "context own_pages" of both places, from addresses and pagemap.
 *   one     one place has the whole heap, blocks of 1000 to 3000 bytes, of which a fifth stays
 *   mapped  8 MiB that the program maps itself, which may be neighbours of a block
 *   killed  SIGKILL ends the program
 *   closed  it may open no file at its end */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define BLOCKS 65536u
#define EVERY  64u

static char *stay[BLOCKS / EVERY], *go[BLOCKS];

__attribute__((noinline)) static char *of_stay(size_t size)
{
    char *block = malloc(size);
    return memset(block, 1, size);
}

__attribute__((noinline)) static char *of_other(size_t size)
{
    char *block = malloc(size);
    return memset(block, 2, size);
}

static int compare(const void *left, const void *right)
{
    const uintptr_t a = *(const uintptr_t *)left, b = *(const uintptr_t *)right;
    return a < b ? -1 : a > b;
}

static int is_resident(int pagemap, uintptr_t page)
{
    uint64_t entry = 0;
    return pread(pagemap, &entry, sizeof entry, (off_t)(page / 4096 * 8)) == 8 && entry >> 63;
}

static void of_one(void)
{
    unsigned number = 12345;
    for (size_t i = 0; i < BLOCKS / 8; i++) {
        number = number * 1664525 + 1013904223;
        go[i] = of_stay(1000 + (number >> 8) % 2000);
    }
    for (size_t i = 0; i < BLOCKS / 8; i++) {
        number = number * 1664525 + 1013904223;
        if ((number >> 8) % 5)
            free(go[i]);
    }
    _exit(0);
}

static void mapped(void)
{
    char *area = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        _exit(3);
    memset(area, 1, 8 << 20);
    go[0] = of_stay(1 << 20);
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "one"))
        of_one();
    if (!strcmp(what, "mapped"))
        mapped();
    if (!strcmp(what, "closed")) {
        go[0] = of_stay(100);
        return setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) != 0;
    }
    if (!strcmp(what, "killed")) {
        go[0] = of_stay(100);
        raise(SIGKILL);
    }
    static uintptr_t pages[2 * BLOCKS / EVERY];
    size_t count = 0, different = 0;
    alarm(300);
    for (size_t i = 0, k = 0; i < BLOCKS; i++)
        if (i % EVERY == 0) {
            stay[k] = k % 4 ? of_stay(56) : of_other(56); /* one page in four is the other place's */
            k++;
        } else
            go[i] = of_stay(56);
    for (size_t i = 0; i < BLOCKS; i++)
        free(go[i]);
    const int pagemap = open("/proc/self/pagemap", O_RDONLY);
    for (size_t k = 0; k < BLOCKS / EVERY; k++) {
        const uintptr_t first = (uintptr_t)stay[k] - 8, last = (uintptr_t)stay[k] + 55; /* with the header */
        pages[count++] = first / 4096;
        pages[count++] = last / 4096;
    }
    qsort(pages, count, sizeof *pages, compare);
    for (size_t i = 0; i < count; i++)
        different += (!i || pages[i] != pages[i - 1]) && is_resident(pagemap, pages[i] * 4096);
    printf("%zu %zu\n", different, (size_t)BLOCKS / EVERY);
    fflush(stdout);
    _exit(0);
}
