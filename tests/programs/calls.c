/* calls.c - every allocation function of the C library once or a few times, each in a function of its own, with the
 * behaviour that the library promises checked on the spot. The numbers of calls and bytes are what test_interception.c
 * expects. */
#include "program.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>

static const size_t impossible = (size_t)PTRDIFF_MAX;

static int aligned(const void *pointer, size_t alignment)
{
    return (uintptr_t)pointer % alignment == 0;
}

NOINLINE static void case_malloc(void)
{
    for (size_t size = 1; size <= 100; size++) {
        char *p = malloc(size);
        MUST(p && aligned(p, 16) && malloc_usable_size(p) >= size);
        memset(p, 1, size);
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_malloc_zero(void)
{
    void *a = malloc(0), *b = malloc(0);
    MUST(a && b && a != b);
    KEEP(a);
    KEEP(b);
    free(a);
    free(b);
    HERE();
}

NOINLINE static void case_calloc(void)
{
    for (size_t i = 0; i < 10; i++) {
        unsigned char *dirty = malloc(700);
        MUST(dirty);
        memset(dirty, 0xff, 700);
        KEEP(dirty);
        free(dirty);
        unsigned char *p = calloc(7, 100);
        MUST(p && malloc_usable_size(p) >= 700);
        for (size_t k = 0; k < 700; k++)
            MUST(p[k] == 0);
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_calloc_zero(void)
{
    void *a = calloc(0, 8), *b = calloc(8, 0);
    MUST(a && b);
    KEEP(a);
    KEEP(b);
    free(a);
    free(b);
    HERE();
}

NOINLINE static void case_free_null(void)
{
    free(NULL);
    errno = 77;
    void *p = malloc(10);
    KEEP(p);
    MUST(errno == 77);
    free(p);
    MUST(errno == 77);
    void *big = malloc(10 << 20); /* mapped and unmapped */
    KEEP(big);
    MUST(errno == 77);
    free(big);
    MUST(errno == 77);
    HERE();
}

NOINLINE static void case_overflow(void)
{
    volatile size_t half = SIZE_MAX / 2 + 2;
    errno = 0;
    void *volatile p = calloc(half, 2);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = calloc(2, half);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = reallocarray(NULL, half, 2);
    MUST(!p && errno == ENOMEM);
    char *block = malloc(33);
    MUST(block);
    memcpy(block, "unchanged", 10);
    errno = 0;
    p = reallocarray(block, half, 2);
    MUST(!p && errno == ENOMEM && strcmp(block, "unchanged") == 0);
    free(block);
    HERE();
}

NOINLINE static void case_failure(void)
{
    volatile size_t size = impossible;
    errno = 0;
    void *volatile p = malloc(size);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = calloc(1, size);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = realloc(NULL, size);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = aligned_alloc(64, size & ~(size_t)63);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = memalign(64, size);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = valloc(size);
    MUST(!p && errno == ENOMEM);
    errno = 0;
    p = pvalloc(size);
    MUST(!p && errno == ENOMEM);
    char *block = malloc(44);
    MUST(block);
    memcpy(block, "unchanged", 10);
    errno = 0;
    p = realloc(block, size);
    MUST(!p && errno == ENOMEM && strcmp(block, "unchanged") == 0);
    free(block);
    HERE();
}

NOINLINE static void case_realloc_null(void)
{
    char *p = realloc(NULL, 123);
    MUST(p && malloc_usable_size(p) >= 123);
    KEEP(p);
    free(p);
    HERE();
}

/* One block, 100 -> 1000 -> 100000 -> 50 bytes -> freed by realloc to 0. */
NOINLINE static void case_realloc_chain(void)
{
    char *p = realloc(NULL, 100);
    MUST(p);
    memset(p, 7, 100);
    static const size_t sizes[] = {1000, 100000, 50};
    for (int i = 0; i < 3; i++) {
        p = realloc(p, sizes[i]);
        MUST(p && malloc_usable_size(p) >= sizes[i]);
        for (int k = 0; k < 50; k++)
            MUST(p[k] == 7);
        KEEP(p);
    }
    errno = 0;
    void *gone = realloc(p, 0);
    MUST(!gone && errno == 0);
    HERE();
}

NOINLINE static void case_reallocarray(void)
{
    int *p = reallocarray(NULL, 10, sizeof *p);
    MUST(p);
    for (int i = 0; i < 10; i++)
        p[i] = i;
    p = reallocarray(p, 1000, sizeof *p);
    MUST(p && p[9] == 9);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_memalign(void)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        void *p = memalign(alignment, 24);
        MUST(p && aligned(p, alignment));
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_aligned_alloc(void)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        void *p = aligned_alloc(alignment, alignment * 2);
        MUST(p && aligned(p, alignment));
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_posix_memalign(void)
{
    void *const untouched = (void *)0x1234;
    void *p = untouched;
    errno = 55;
    MUST(posix_memalign(&p, 3, 100) == EINVAL && p == untouched);
    MUST(posix_memalign(&p, 4, 100) == EINVAL && p == untouched); /* no multiple of sizeof (void *) */
    MUST(posix_memalign(&p, 24, 100) == EINVAL && p == untouched);
    MUST(posix_memalign(&p, 0, 100) == EINVAL && p == untouched);
    volatile size_t size = impossible;
    MUST(posix_memalign(&p, 64, size) == ENOMEM && p == untouched);
    errno = 55;
    MUST(posix_memalign(&p, 4096, 100) == 0 && aligned(p, 4096));
    MUST(errno == 55);
    memset(p, 1, 100);
    KEEP(p);
    free(p);
    MUST(posix_memalign(&p, 8, 0) == 0);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_valloc(void)
{
    void *p = valloc(100);
    MUST(p && aligned(p, 4096));
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_pvalloc(void)
{
    void *p = pvalloc(4096);
    MUST(p && aligned(p, 4096) && malloc_usable_size(p) >= 4096);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_cfree_family(void)
{
    MUST(malloc_usable_size(NULL) == 0);
    char *p = malloc(1000);
    MUST(p);
    memset(p, 1, malloc_usable_size(p)); /* all of it may be used */
    KEEP(p);
    free(p);
    HERE();
}

/* What the C library allocates on behalf of the program. */
NOINLINE static void case_strdup(void)
{
    char *p = strdup("0123456789");
    MUST(p && strlen(p) == 10);
    KEEP(p);
    free(p);
    p = strndup("0123456789", 4);
    MUST(p && strlen(p) == 4);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_asprintf(void)
{
    char *p = NULL;
    MUST(asprintf(&p, "%0*d", 300, 1) == 300);
    KEEP(p);
    free(p);
    HERE();
}

NOINLINE static void case_getline(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    MUST(file);
    char *line = NULL;
    size_t size = 0;
    MUST(getline(&line, &size, file) > 0);
    KEEP(line);
    free(line);
    fclose(file);
    HERE();
}

NOINLINE static void case_memstream(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    MUST(file);
    for (int i = 0; i < 1000; i++)
        fputs("0123456789", file);
    fclose(file);
    MUST(size == 10000);
    free(text);
    HERE();
}

NOINLINE static void case_huge(void)
{
    volatile size_t size = (size_t)5 << 30;
    void *p = malloc(size);
    if (!p) {
        say("huge: no memory\n");
        return;
    }
    KEEP(p);
    MUST(malloc_usable_size(p) >= size);
    p = realloc(p, size + 4096);
    MUST(p && malloc_usable_size(p) >= size + 4096);
    KEEP(p);
    free(p);
    p = calloc(1, size + 16);
    MUST(p);
    KEEP(p);
    free(p);
    say("huge: done\n");
    HERE();
}

/* Sizes around every power of two up to 1 MiB. */
NOINLINE static void case_sizes(void)
{
    for (size_t power = 16; power <= 1 << 20; power *= 2) {
        for (size_t size = power - 1; size <= power + 1; size++) {
            unsigned char *p = malloc(size);
            MUST(p);
            p[0] = 1;
            p[size - 1] = 2;
            KEEP(p);
            free(p);
        }
    }
    HERE();
}

int main(int argc, char **argv)
{
    case_malloc();
    case_malloc_zero();
    case_calloc();
    case_calloc_zero();
    case_free_null();
    case_overflow();
    case_failure();
    case_realloc_null();
    case_realloc_chain();
    case_reallocarray();
    case_memalign();
    case_aligned_alloc();
    case_posix_memalign();
    case_valloc();
    case_pvalloc();
    case_cfree_family();
    case_strdup();
    case_asprintf();
    case_getline();
    case_memstream();
    case_sizes();
    if (argc > 1 && strcmp(argv[1], "huge") == 0)
        case_huge();
    return 0;
}
