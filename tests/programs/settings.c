/* settings.c - prints which settings of the kernel and of tcmalloc reached it, "NAME VALUE" in each line. "exit N":
 * ends with that code. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static void print_number(const char *property, const char *name)
{
    int (*get)(const char *, size_t *);
    size_t value;
    *(void **)&get = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    if (get && get(property, &value))
        printf("%s %zu\n", name, value);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "exit") == 0)
        return atoi(argv[2]);
    void *volatile block = malloc(100000); /* allocators set themselves up */
    free(block);
    printf("thp-disable %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    print_number("tcmalloc.max_total_thread_cache_bytes", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES");
    print_number("tcmalloc.aggressive_memory_decommit", "TCMALLOC_AGGRESSIVE_DECOMMIT");
    return 0;
}
