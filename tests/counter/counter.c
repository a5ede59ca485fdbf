/* counter.c - counts what a process does with its heap; see counter.h. Preloaded; as plain as can be. */
#include "counter.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- what comes next in line ---- */

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static void *(*next_memalign)(size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_valloc)(size_t);
static void *(*next_pvalloc)(size_t);

static void find_next(void)
{
    if (next_malloc)
        return;
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_free = dlsym(RTLD_NEXT, "free");
    next_memalign = dlsym(RTLD_NEXT, "memalign");
    next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    next_valloc = dlsym(RTLD_NEXT, "valloc");
    next_pvalloc = dlsym(RTLD_NEXT, "pvalloc");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
}

/* ---- the file ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *count; /* NULL until there is a file: then nothing is counted */
static char directory[512];   /* kept: programs change their environment */

static void open_file(void)
{
    char path[700];
    int file = -1;
    for (int number = 0; number < 1000 && file < 0; number++) {
        snprintf(path, sizeof path, "%s/%d.%d.count", directory, (int)getpid(), number);
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            return;
    }
    if (file < 0 || ftruncate(file, sizeof *count) != 0)
        return;
    struct counter *mapped = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    mapped->magic = COUNTER_MAGIC;
    mapped->pid = (uint64_t)getpid();
    mapped->started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (readlink("/proc/self/exe", mapped->executable, sizeof mapped->executable - 1) < 0)
        mapped->executable[0] = 0;
    count = mapped;
}

/* Called with the lock held, at the first event. */
static void start(void)
{
    static bool started;
    if (started || !environ) /* libraries may be there before libc is */
        return;
    started = true;
    const char *name = getenv("HEAPWISE_TEST_COUNTER");
    if (!name)
        return;
    snprintf(directory, sizeof directory, "%s", name);
    open_file();
}

/* ---- live blocks ---- */

struct block {
    struct block *next;
    void *address;
    size_t size;
};

#define BUCKETS (1u << 18)
static struct block *buckets[BUCKETS];
static struct block *spare;

static struct block **find(void *address)
{
    struct block **link = &buckets[((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 46];
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

static void insert(void *address, size_t size)
{
    struct block **link = find(address);
    if (*link) { /* vanished without a free that could be seen: the newer block counts */
        count->live_bytes -= (*link)->size;
        count->live_blocks--;
        (*link)->size = size;
        return;
    }
    if (!spare) {
        enum { MORE = 4096 };
        struct block *more =
            mmap(NULL, MORE * sizeof *more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED)
            abort();
        for (int i = 0; i < MORE; i++) {
            more[i].next = spare;
            spare = &more[i];
        }
    }
    struct block *block = spare;
    spare = block->next;
    *block = (struct block){.address = address, .size = size};
    *link = block;
}

/* Removes the block; false when it is not known. */
static bool take(void *address, size_t *size)
{
    struct block **link = find(address);
    struct block *block = *link;
    if (!block)
        return false;
    *size = block->size;
    *link = block->next;
    block->next = spare;
    spare = block;
    return true;
}

/* ---- events ---- */

static __thread void *last
    __attribute__((tls_model("initial-exec"))); /* the thread's latest event was its allocation */

static void grow(uint64_t live_bytes)
{
    count->live_bytes = live_bytes;
    if (live_bytes > count->peak_bytes)
        count->peak_bytes = live_bytes;
}

/* Bytes from before the call that obtains a block to after the one that gives it back: what somebody below this
 * library knows as live lies between the two counts. */
static int64_t live_around;

static void around(int64_t change)
{
    int64_t now = __atomic_add_fetch(&live_around, change, __ATOMIC_RELAXED);
    if (!count)
        return;
    uint64_t most = __atomic_load_n(&count->peak_most, __ATOMIC_RELAXED);
    while (now > (int64_t)most && !__atomic_compare_exchange_n(&count->peak_most, &most, (uint64_t)now, false,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void *allocated(void *address, size_t size)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    start();
    if (count && address) {
        insert(address, size);
        count->allocations++;
        count->bytes += size;
        count->live_blocks++;
        grow(count->live_bytes + size);
        last = address;
    } else {
        around(-(int64_t)size);
        if (count)
            count->failed++;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return address;
}

/* Before the block goes back: its address can be handed out again at once. Its size, 0 when it is not known. */
static size_t freed(void *address)
{
    size_t size = 0;
    pthread_mutex_lock(&lock);
    start();
    if (count && take(address, &size)) {
        count->frees++;
        count->live_blocks--;
        count->live_bytes -= size;
        if (last == address) {
            count->temporary++;
            last = NULL;
        }
    } else if (count) {
        count->foreign_frees++;
    }
    pthread_mutex_unlock(&lock);
    return size;
}

static void *reallocate(void *old, size_t size)
{
    size_t old_size = 0;
    around((int64_t)size);
    if (!old)
        return allocated(next_realloc(NULL, size), size);
    pthread_mutex_lock(&lock);
    start();
    bool known = count && take(old, &old_size);
    pthread_mutex_unlock(&lock);
    void *new = next_realloc(old, size);
    int saved = errno;
    pthread_mutex_lock(&lock);
    around(-(int64_t)(!known || (!new &&size > 0) ? size : old_size));
    if (!count) {
        /* nothing */
    } else if (!known) {
        count->foreign_reallocations++;
    } else if (!new &&size == 0) {
        count->frees++;
        count->live_blocks--;
        count->live_bytes -= old_size;
        if (last == old) {
            count->temporary++;
            last = NULL;
        }
    } else if (!new) {
        insert(old, old_size);
        count->failed++;
    } else {
        insert(new, size);
        count->reallocations++;
        count->bytes += size > old_size ? size - old_size : 0;
        grow(count->live_bytes - old_size + size);
        last = NULL;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return new;
}

/* ---- the functions ---- */

void *malloc(size_t size)
{
    find_next();
    around((int64_t)(size));
    return allocated(next_malloc(size), size);
}

void *calloc(size_t number, size_t size)
{
    find_next();
    around((int64_t)(number * size));
    return allocated(next_calloc(number, size), number * size);
}

void *realloc(void *address, size_t size)
{
    find_next();
    return reallocate(address, size);
}

void *reallocarray(void *address, size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    find_next();
    return reallocate(address, bytes);
}

void free(void *address)
{
    if (!address)
        return;
    find_next();
    int saved = errno;
    size_t size = freed(address);
    errno = saved;
    next_free(address);
    around(-(int64_t)size);
}

void *memalign(size_t alignment, size_t size)
{
    find_next();
    around((int64_t)(size));
    return allocated(next_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    find_next();
    around((int64_t)(size));
    return allocated(next_aligned_alloc(alignment, size), size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    find_next();
    around((int64_t)size);
    int error = next_posix_memalign(result, alignment, size);
    allocated(error ? NULL : *result, size);
    return error;
}

void *valloc(size_t size)
{
    find_next();
    around((int64_t)(size));
    return allocated(next_valloc(size), size);
}

void *pvalloc(size_t size)
{
    find_next();
    around((int64_t)(size));
    return allocated(next_pvalloc(size), size);
}

/* ---- fork: the child counts from zero, in a file of its own, and knows its inherited blocks as foreign ones ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    if (count) {
        for (unsigned i = 0; i < BUCKETS; i++)
            buckets[i] = NULL;
        count = NULL;
        last = NULL;
        live_around = 0;
        open_file();
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_mutex_lock(&lock);
    start();
    pthread_mutex_unlock(&lock);
    pthread_atfork(before_fork, after_fork, in_child);
}
