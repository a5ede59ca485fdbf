/* fakemalloc.c - an allocator with settings of known effect: heapwise tune is to find them. Preloaded.
 *
 * Blocks of 4 KiB and more are mappings of their own. FAKE_RELEASE=1: they are unmapped when they are freed; else they
 * stay. FAKE_EXTRA=N: N MiB are mapped and written to at the start. FAKE_END=crash, hang, exit or print: what its name
 * says, at the start. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);

#define OWN  4096u /* a block of this size or more has a mapping */
#define HEAD 4096u /* of a mapping: its size */

static int release;

static void write_to(char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)bytes)[i] = 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *extra = getenv("FAKE_EXTRA"), *end = getenv("FAKE_END"), *given = getenv("FAKE_RELEASE");
    release = given && *given == '1';
    if (extra) {
        const size_t size = (size_t)atoi(extra) << 20;
        char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes != MAP_FAILED)
            write_to(bytes, size);
    }
    if (end && strcmp(end, "crash") == 0)
        abort();
    if (end && strcmp(end, "hang") == 0)
        pause();
    if (end && strcmp(end, "exit") == 0)
        _exit(3);
    if (end && strcmp(end, "print") == 0 && write(1, "fake\n", 5) != 5)
        _exit(4);
}

void *malloc(size_t size)
{
    if (size < OWN)
        return __libc_malloc(size);
    char *mapping = mmap(NULL, size + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    memcpy(mapping, &size, sizeof size);
    return mapping + HEAD;
}

/* Blocks of the C library never begin at a page. */
void free(void *block)
{
    if ((uintptr_t)block % 4096 != 0 || !block) {
        __libc_free(block);
        return;
    }
    size_t size;
    char *mapping = (char *)block - HEAD;
    memcpy(&size, mapping, sizeof size);
    if (release)
        munmap(mapping, size + HEAD);
}
