/* failmalloc.c - preloaded: runs main again and again, each time in a child of its own in which one allocation fails,
 * the first, the second and so on until there are no more, and writes what differs from a run without failures.
 *
 * FAILMALLOC_RESULTS: the file for what is wrong, a line each, and "runs N allocations N" at the end.
 * FAILMALLOC_OUTPUT: a file that the program makes, or nothing.
 * FAILMALLOC_VARIES: set where no two runs print the same.
 * FAILMALLOC_ALL: so many allocations one by one;
 * FAILMALLOC_STRIDE: then the next one is one STRIDEth of its number further on.
 *
 * Right is: the output and the exit code of the run without failures; or 2 (record: 125) with a message; or an output
 * that says that there was not enough memory. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t failing, *made; /* in this process, of all */

/* Where libdw and libelf are: they end the process when there is no memory, or crash, and so their allocations do not
 * fail. */
static struct {
    uintptr_t first, end;
} spared[2];
static int spared_count;

static int spare(struct dl_phdr_info *object, size_t size, void *closure)
{
    if (spared_count < 2 && (strstr(object->dlpi_name, "/libdw.so") || strstr(object->dlpi_name, "/libelf.so"))) {
        spared[spared_count].first = object->dlpi_addr;
        for (int i = 0; i < object->dlpi_phnum; i++)
            if (object->dlpi_phdr[i].p_type == PT_LOAD)
                spared[spared_count].end =
                    object->dlpi_addr + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
        spared_count++;
    }
    return 0;
}

/* glibc's glob frees twice what it could not extend; libdw calls tsearch; AddressSanitizer asks where stacks are. */
static __thread bool in_glob, in_search, in_thread;

/* Whether the allocation that CALLER makes now fails. */
static bool fails(uintptr_t caller)
{
    if (in_glob || in_search || in_thread)
        return false;
    for (int i = 0; i < spared_count; i++)
        if (caller >= spared[i].first && caller < spared[i].end)
            return false;
    if (!made || __atomic_add_fetch(made, 1, __ATOMIC_RELAXED) != failing)
        return false;
    errno = ENOMEM;
    return true;
}

#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

void *malloc(size_t size)
{
    REAL(malloc);
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real(size);
}

void *calloc(size_t count, size_t size)
{
    REAL(calloc);
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real(count, size);
}

void *realloc(void *block, size_t size)
{
    REAL(realloc);
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real(block, size);
}

/* libelf's, too, but made by zlib for it. */
int elf_compress(void *section, int type, unsigned flags)
{
    static int (*real)(void *, int, unsigned);
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "elf_compress");
    in_search = true;
    const int code = real(section, type, flags);
    in_search = false;
    return code;
}

int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *found)
{
    REAL(glob);
    in_glob = true;
    const int code = real(pattern, flags, on_error, found);
    in_glob = false;
    return code;
}

void *tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
    REAL(tsearch);
    in_search = true;
    void *found = real(key, root, compare);
    in_search = false;
    return found;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    REAL(pthread_getattr_np);
    in_thread = true;
    const int code = real(thread, attributes);
    in_thread = false;
    return code;
}

/* ---- the runs ---- */

struct output {
    char *text;
    size_t size;
};

static int (*program_main)(int, char **, char **);

static struct output read_all(int file)
{
    const off_t size = lseek(file, 0, SEEK_END);
    struct output output = {malloc((size_t)size + 1), (size_t)size};
    output.text[pread(file, output.text, output.size, 0)] = '\0';
    return output;
}

static bool same(const struct output *one, const struct output *other)
{
    return one->size == other->size && memcmp(one->text, other->text, one->size) == 0;
}

struct run {
    int status;
    struct output out, err, file;
};

static struct run run_once(uint64_t number, int argc, char **argv, char **environment)
{
    const char *path = getenv("FAILMALLOC_OUTPUT");
    const int out = memfd_create("out", 0), err = memfd_create("err", 0);
    struct run run = {0};
    if (path)
        unlink(path);
    uint64_t *counter = made;
    made = NULL;
    const pid_t child = fork();
    if (child == 0) {
        dup2(out, 1);
        dup2(err, 2);
        alarm(60);
        *counter = 0;
        failing = number;
        made = counter;
        exit(program_main(argc, argv, environment));
    }
    waitpid(child, &run.status, 0);
    run.out = read_all(out);
    run.err = read_all(err);
    close(out);
    close(err);
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        run.file = read_all(file);
        close(file);
    }
    made = counter;
    return run;
}

static void free_run(struct run *run)
{
    free(run->out.text);
    free(run->err.text);
    free(run->file.text);
}

static bool names_memory(const char *text)
{
    return strstr(text, "no memory") || strstr(text, "not enough memory") || strstr(text, strerror(ENOMEM));
}

/* What is wrong with a run in which an allocation failed, or NULL. */
static const char *judge(const struct run *run, const struct run *whole)
{
    if (WIFSIGNALED(run->status))
        return WTERMSIG(run->status) == SIGALRM ? "does not end" : "crashes";
    if (strstr(run->err.text, "Sanitizer") || strstr(run->err.text, "runtime error"))
        return "is reported by a sanitizer";
    /* A profile whose chunks could not be compressed is larger. */
    const bool file = same(&run->file, &whole->file) || run->file.size > whole->file.size;
    if (run->status == whole->status && same(&run->out, &whole->out) && file)
        return NULL;
    if (names_memory(run->out.text) || names_memory(run->err.text))
        return NULL;
    if (run->status == whole->status)
        return getenv("FAILMALLOC_VARIES") ? NULL : "leaves something out";
    const int code = WEXITSTATUS(run->status);
    if (code != 2 && code != 125)
        return "ends with another code";
    return run->err.size == 0 ? "fails without a message" : NULL;
}

static int run_all(int argc, char **argv, char **environment)
{
    unsetenv("LD_PRELOAD");
    dl_iterate_phdr(spare, NULL);
    made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const uint64_t all = strtoull(getenv("FAILMALLOC_ALL"), NULL, 10);
    FILE *results = fopen(getenv("FAILMALLOC_RESULTS"), "we");
    struct run whole = run_once(0, argc, argv, environment);
    const uint64_t stride = strtoull(getenv("FAILMALLOC_STRIDE"), NULL, 10), allocations = *made;
    uint64_t runs = 0;
    if (!WIFEXITED(whole.status))
        fprintf(results, "without failures: status %x: %s", (unsigned)whole.status, whole.err.text);
    for (uint64_t number = 1; number <= allocations; number += number < all ? 1 : 1 + number / stride) {
        fflush(results);
        struct run run = run_once(number, argc, argv, environment);
        const char *wrong = judge(&run, &whole);
        if (wrong)
            fprintf(results, "allocation %llu: it %s (status %x): %.1500s\n", (unsigned long long)number, wrong,
                    (unsigned)run.status, run.err.text);
        free_run(&run);
        runs++;
    }
    free_run(&whole);
    fprintf(results, "runs %llu allocations %llu\n", (unsigned long long)runs, (unsigned long long)allocations);
    fclose(results);
    _exit(0);
}

int __libc_start_main(int (*function)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader)(void), void *stack)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
        (int (*)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
                 void *))dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = function;
    return real(run_all, argc, argv, init, fini, loader, stack);
}
