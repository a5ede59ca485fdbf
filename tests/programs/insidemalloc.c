/* insidemalloc.c - an allocator that does known things at known sizes, and counts what it does itself. Preloaded; see
 * insidemalloc.h and inside.c. */
#include "insidemalloc.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);

pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t known_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t known_checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_rwlock_t known_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_spinlock_t known_spin;
int known_futex;
static volatile int kept;

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            _exit(97);                                                                                                 \
    } while (0)

__attribute__((constructor)) static void begin(void)
{
    pthread_spin_init(&known_spin, PTHREAD_PROCESS_PRIVATE);
}

static void advise(void)
{
    static char page[8192];
    NEED(madvise((void *)(((size_t)page + 4095) & ~4095ul), 4096, MADV_NORMAL) == 0);
}

static void make_calls(void)
{
    char *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(pages != MAP_FAILED);
    pages[0] = 1;
    NEED(madvise(pages, 4096, MADV_DONTNEED) == 0 && pages[0] == 0);
    NEED(madvise(pages, 4096, MADV_NORMAL) == 0);
    NEED(mprotect(pages + 4096, 4096, PROT_READ) == 0);
    pages = mremap(pages, 4096, 8192, MREMAP_MAYMOVE);
    NEED(pages != MAP_FAILED);
    NEED(munmap(pages, 8192) == 0);
    errno = 0;
    NEED(munmap((void *)1, 4096) == -1 && errno == EINVAL);
}

/* As allocators do that have system calls of their own. */
static long wait_by_instruction(int *futex, long value)
{
    long result = SYS_futex;
    register long timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(futex), "S"((long)FUTEX_WAIT_PRIVATE), "d"(value), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
}

static void use_mutex(void)
{
    NEED(pthread_mutex_lock(&known_mutex) == 0);
    NEED(pthread_spin_lock(&known_spin) == 0);
    NEED(pthread_spin_unlock(&known_spin) == 0);
    NEED(pthread_rwlock_rdlock(&known_rwlock) == 0);
    NEED(pthread_rwlock_rdlock(&known_rwlock) == 0);
    NEED(pthread_rwlock_unlock(&known_rwlock) == 0);
    NEED(pthread_rwlock_unlock(&known_rwlock) == 0);
    NEED(pthread_mutex_unlock(&known_mutex) == 0);
}

static void use_recursive(void)
{
    for (int i = 0; i < 3; i++)
        NEED(pthread_mutex_lock(&known_recursive) == 0);
    for (int i = 0; i < 3; i++)
        NEED(pthread_mutex_unlock(&known_recursive) == 0);
    NEED(pthread_mutex_unlock(&known_recursive) == EPERM);
}

/* glibc's mutex says 2 when somebody waits in the kernel for it. */
static void keep_until_waited_for(long more_ns)
{
    struct timespec begin, now;
    NEED(pthread_mutex_lock(&known_mutex) == 0);
    __atomic_store_n(&kept, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&known_mutex.__data.__lock, __ATOMIC_ACQUIRE) != 2) {
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < more_ns);
    NEED(pthread_mutex_unlock(&known_mutex) == 0);
}

static void wait_for_keeper(void)
{
    while (!__atomic_load_n(&kept, __ATOMIC_ACQUIRE)) {
    }
    NEED(pthread_mutex_lock(&known_mutex) == 0);
    __atomic_store_n(&kept, 0, __ATOMIC_RELEASE);
    NEED(pthread_mutex_trylock(&known_mutex) == EBUSY);
    NEED(pthread_mutex_unlock(&known_mutex) == 0);
}

static void use_timed(void)
{
    struct timespec past = {1, 0};
    NEED(pthread_mutex_timedlock(&known_mutex, &past) == 0);
    NEED(pthread_mutex_timedlock(&known_mutex, &past) == ETIMEDOUT);
    NEED(pthread_mutex_unlock(&known_mutex) == 0);
}

static void *allocate_a_little(void *unused)
{
    free(malloc(100));
    return NULL;
}

static void mask_everything(void)
{
    sigset_t all, before, during;
    sigfillset(&all);
    NEED(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8) == 0);
    advise();
    NEED(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &during, 8) == 0);
    NEED(sigismember(&during, SIGUSR2) && sigismember(&during, SIGTERM));
    NEED(!sigismember(&during, SIGKILL));
}

static void touch(void)
{
    char *pages = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(pages != MAP_FAILED);
    NEED(madvise(pages, 32768, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    for (int i = 0; i < 8; i++)
        ((volatile char *)pages)[i * 4096] = 1;
    NEED(munmap(pages, 32768) == 0);
}

/* Timed inside the lock; what takes the lock and gives it back is not in it. */
static uint64_t known_held, known_sections;

static void hold(void)
{
    NEED(pthread_mutex_lock(&known_mutex) == 0);
    const uint64_t begin = __rdtsc();
    for (volatile int i = 0; i < 1000; i++) {
    }
    known_held += __rdtsc() - begin;
    known_sections++;
    NEED(pthread_mutex_unlock(&known_mutex) == 0);
}

__attribute__((destructor)) static void print_held(void)
{
    char text[80];
    if (known_sections)
        NEED(write(1, text, (size_t)snprintf(text, sizeof text, "held %lu in %lu\n", known_held, known_sections)) > 0);
}

static void fork_inside(void)
{
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        syscall(SYS_exit_group, 3);
    int status;
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    advise();
}

static void make_thread(void)
{
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, allocate_a_little, NULL) == 0);
    NEED(pthread_join(thread, NULL) == 0);
    advise();
}

void *malloc(size_t size)
{
    switch (size) {
    case SIZE_CALLS:
        make_calls();
        break;
    case SIZE_MUTEX:
        use_mutex();
        break;
    case SIZE_RECURSIVE:
        use_recursive();
        break;
    case SIZE_KEEP:
        keep_until_waited_for(0);
        break;
    case SIZE_HOLD:
        keep_until_waited_for(1000000);
        break;
    case SIZE_WAIT:
        wait_for_keeper();
        break;
    case SIZE_WAKE:
        NEED(syscall(SYS_futex, &known_futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
        NEED(wait_by_instruction(&known_futex, 1) == -EAGAIN);
        break;
    case SIZE_SIGNAL:
        raise(SIGUSR1);
        advise();
        break;
    case SIZE_THREAD:
        make_thread();
        break;
    case SIZE_MASK:
        mask_everything();
        break;
    case SIZE_CHECKED:
        NEED(pthread_mutex_lock(&known_checked) == 0);
        NEED(pthread_mutex_lock(&known_checked) == EDEADLK);
        NEED(pthread_mutex_unlock(&known_checked) == 0);
        break;
    case SIZE_FORK:
        fork_inside();
        break;
    case SIZE_HELD:
        hold();
        break;
    case SIZE_FAULTS:
        touch();
        break;
    case SIZE_TIMED:
        use_timed();
        break;
    }
    return __libc_malloc(size);
}

void free(void *block)
{
    __libc_free(block);
}
