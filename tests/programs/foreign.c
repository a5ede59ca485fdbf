/* foreign.c - blocks that the hooks did not see made, and blocks whose end they do not see.
 *
 * __libc_malloc and friends go to glibc past every preload; libdeepbind.so, opened with RTLD_DEEPBIND, calls glibc's
 * own malloc and free, too. */
#include "program.h"

#include <dlfcn.h>
#include <malloc.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

NOINLINE static void case_foreign_free(void)
{
    for (int i = 0; i < 1000; i++) {
        void *p = __libc_malloc(48);
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_foreign_realloc(void)
{
    for (int i = 0; i < 100; i++) {
        char *p = __libc_malloc(48);
        strcpy(p, "kept");
        KEEP(p);
        p = realloc(p, 4800);
        MUST(p && strcmp(p, "kept") == 0 && malloc_usable_size(p) >= 4800);
        KEEP(p);
        free(p);
    }
    HERE();
}

/* A block vanishes; its address comes back with the next allocation, for the same and for another size. */
NOINLINE static void case_vanishing(void)
{
    for (int i = 0; i < 100; i++) {
        void *p = malloc(64);
        KEEP(p);
        __libc_free(p);
        void *q = malloc(60);
        KEEP(q);
        free(q);
    }
    HERE();
}

NOINLINE static void case_deepbind(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    MUST(library);
    void *(*make)(size_t) = dlsym(library, "deep_make");
    void (*drop)(void *) = dlsym(library, "deep_drop");
    MUST(make && drop);
    for (int i = 0; i < 100; i++) {
        void *p = make(200);
        KEEP(p);
        free(p);
    }
    HERE();
}

NOINLINE static void case_known(void)
{
    for (int i = 0; i < 500; i++) {
        void *p = malloc(100);
        KEEP(p);
        if (i % 2)
            free(p);
    }
    HERE();
}

int main(int argc, char **argv)
{
    case_foreign_free();
    case_foreign_realloc();
    case_vanishing();
    if (argc > 1)
        case_deepbind(argv[1]);
    case_known();
    return 0;
}
