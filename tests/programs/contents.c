/* contents.c - blocks of which it is known what they hold, see test_contents.c. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <heapwise/heapwise.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept[2000];
static int count;

NOINLINE static void of_copies(void)
{
    for (int i = 0; i < 800; i++) {
        char *block = malloc(48);
        memset(block, 'x', 48);
        snprintf(block, 48, "secret-word-%03d", i % 100);
        kept[count++] = block;
    }
}

NOINLINE static void of_zeros(void)
{
    for (int i = 0; i < 100; i++)
        kept[count++] = calloc(1, 200);
}

NOINLINE static void of_tails(void)
{
    for (int i = 0; i < 50; i++) {
        char *block = calloc(1, 400);
        snprintf(block, 400, "tail %050d", i);
        kept[count++] = block;
    }
}

NOINLINE static void of_unwritten(void)
{
    for (int i = 0; i < 60; i++)
        kept[count++] = malloc(1000);
}

/* The same in all, and each begins at another place of a page. */
NOINLINE static void of_shifted(void)
{
    for (int i = 0; i < 10; i++) {
        char *block = malloc(100000);
        for (int at = 0; at < 100000; at++)
            block[at] = (char)(at * 7919 >> 8 | 1);
        kept[count++] = block;
        kept[count++] = malloc(200 + 16 * i);
        memset(kept[count - 1], 1 + i, 200);
    }
}

/* Blocks of all kinds, and a copy of each in the file: address, size, bytes. */
NOINLINE static void of_random(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 1500; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const unsigned kind = state >> 60;
        uint64_t size = 1 + (state >> 40) % (i % 100 ? 300 : 200000), bytes = state;
        if (kind < 6)
            bytes = (state >> 33) % 20, size = 1 + bytes * 37 % 200; /* one of 20 contents */
        char *block = malloc(size);
        const uint64_t head[2] = {(uintptr_t)block, size};
        KEEP(block); /* malloc and memset must not become calloc */
        memset(block, 0, size);
        const uint64_t used = kind < 8 || kind > 13 ? size : kind < 10 ? 0 : (state >> 20) % (size + 1);
        for (uint64_t at = 0; at < used; at++) {
            bytes = bytes * 6364136223846793005u + 1442695040888963407u;
            block[at] = at >> 12 == 3 ? 0 : (char)(bytes >> 56);
        }
        kept[count++] = block;
        if (write(fd, head, sizeof head) != sizeof head || write(fd, block, size) != (ssize_t)size)
            _exit(1);
    }
    close(fd);
}

/* More contents than a table of 1 MiB holds, each twice and with an end of zeros. */
NOINLINE static void of_many(void)
{
    for (int i = 0; i < 200000; i++) {
        char *block = calloc(1, 80);
        snprintf(block, 41, "%040d", i % 100000);
        KEEP(block);
    }
}

NOINLINE static void of_growth(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        char *block = malloc(1000);
        memset(block, i, 1000);
        KEEP(block);
    }
}

/* 8,000 strings, 1,000 of them different, and as many blocks that are. */
NOINLINE static void of_strings(void)
{
    for (int i = 0; i < 8000; i++) {
        char *block = malloc(48);
        snprintf(block, 48, "%047d", i % 1000);
        KEEP(block);
    }
}

NOINLINE static void of_different(void)
{
    for (int i = 0; i < 8000; i++) {
        char *block = malloc(48);
        snprintf(block, 48, "%047d", -i - 1);
        KEEP(block);
    }
}

/* 500 blocks, three quarters of each not used. */
NOINLINE static void of_reserved(void)
{
    for (int i = 0; i < 500; i++) {
        char *block = calloc(1, 400);
        memset(block, 'a' + i % 26, 96);
        snprintf(block + 96, 5, "%04d", i);
        KEEP(block);
    }
}

/* Less than 64 KiB. */
NOINLINE static void of_few(void)
{
    for (int i = 0; i < 600; i++)
        KEEP(calloc(1, 100));
}

/* ---- memory that nobody may touch ---- */

/* In a block: one page that may not be read, one that is not there any more. */
NOINLINE static void of_protected(void)
{
    char *block = malloc(1 << 20), *page = (char *)(((uintptr_t)block + 40960) & ~4095ul);
    memset(block, 7, 1 << 20);
    MUST(mprotect(page, 4096, PROT_NONE) == 0);
    MUST(munmap(page + 40960, 4096) == 0);
    KEEP(block);
}

NOINLINE static void of_pool(char *memory, size_t size)
{
    heapwise_pool_alloc(memory, memory, size);
}

/* Pools in a file that is cut, in memory that came and went, and in what the kernel maps of its own. */
NOINLINE static void of_pools(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && ftruncate(fd, 65536) == 0);
    char *file = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *device = mmap(NULL, 65536, PROT_READ, MAP_SHARED, open("/dev/zero", O_RDONLY), 0);
    char *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *kernel = (char *)getauxval(AT_SYSINFO_EHDR);
    MUST(file != MAP_FAILED && shared != MAP_FAILED && device != MAP_FAILED && gone != MAP_FAILED && kernel);
    memset(file, 5, 8192); /* copied */
    memset(shared + 8192, 6, 8192);
    MUST(ftruncate(fd, 4096) == 0);
    of_pool(file, 65536);
    of_pool(shared, 65536);
    of_pool(device, 65536);
    of_pool(gone, 65536);
    of_pool(kernel - 6 * 4096, 8 * 4096);
    of_pool((char *)0x7fffffffe000ul, 65536); /* beyond the end of the address space */
    of_pool((char *)64, 65536);
    munmap(gone, 65536);
}

/* ---- what a terminal or a browser would take for its own ---- */

NOINLINE static void of_hostile_text(void)
{
    static const char text[] =
        "evil\x1b]0;title\a\x1b[31mred \xff\xfe \xc3\x28 \xe2\x80\xae</script><b>&\"'\\\r\n\t end";
    for (int i = 0; i < 4000; i++) {
        char *block = malloc(sizeof text);
        memcpy(block, text, sizeof text);
        KEEP(block);
    }
}

/* ---- threads, processes ---- */

static char *volatile written[64];

static void *write_on(void *nothing)
{
    for (unsigned i = 0;; i++) {
        memset(written[i % 64], (int)i, 4096);
        free(malloc(i % 3000));
    }
    return nothing;
}

NOINLINE static void of_written(void)
{
    for (int i = 0; i < 64; i++)
        written[i] = calloc(1, 4096);
}

static void start_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 6; i++)
        MUST(pthread_create(&thread, NULL, write_on, NULL) == 0);
    usleep(20000);
}

NOINLINE static void of_child(void)
{
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(64);
        memset(block, 'c', 64);
        KEEP(block);
    }
}

static void forks(void)
{
    of_strings();
    const pid_t child = fork();
    if (!child) {
        of_child();
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* No more files, and no more stopping of threads. */
static void confined(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 231 /* exit_group */, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* write */, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    of_strings();
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* ---- calls that wait ---- */

static volatile bool ends_now;
static int interrupted;
static int pair[2];

static void ends_with(long result, int expected)
{
    if (result < 0 && errno == EINTR)
        __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
    else
        MUST(result == 0 || errno == expected);
}

static void *in_epoll(void *nothing)
{
    const int epoll = epoll_create1(0);
    struct epoll_event event;
    while (!ends_now)
        ends_with(epoll_wait(epoll, &event, 1, 400), 0);
    return nothing;
}

static void *in_recv(void *nothing)
{
    char byte;
    const struct timeval time = {.tv_usec = 400000};
    MUST(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
    while (!ends_now)
        ends_with(recv(pair[0], &byte, 1, 0), EAGAIN);
    return nothing;
}

static void *in_sigtimedwait(void *nothing)
{
    const struct timespec time = {.tv_nsec = 400000000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (!ends_now)
        ends_with(sigtimedwait(&set, NULL, &time), EAGAIN);
    return nothing;
}

static void *in_semtimedop(void *nothing)
{
    const struct timespec time = {.tv_nsec = 400000000};
    struct sembuf operation = {0, -1, 0};
    const int semaphore = semget(IPC_PRIVATE, 1, 0600);
    MUST(semaphore >= 0);
    while (!ends_now)
        ends_with(semtimedop(semaphore, &operation, 1, &time), EAGAIN);
    semctl(semaphore, 0, IPC_RMID);
    return nothing;
}

/* Threads wait while dumps stop them; how many calls were interrupted is printed. */
static void waits(void)
{
    static void *(*const in[])(void *) = {in_epoll, in_recv, in_sigtimedwait, in_semtimedop};
    pthread_t thread[4];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&thread[i], NULL, in[i], NULL) == 0);
    for (int i = 0; i < 5; i++) {
        usleep(50000);
        of_growth(10);
        heapwise_dump();
    }
    ends_now = true;
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(thread[i], NULL) == 0);
    printf("%d\n", interrupted);
}

/* ---- estimates ---- */

/* Far more contents than a table of 1 MiB holds, and one that occurs 3,000 times. */
NOINLINE static void of_one_in_many(void)
{
    for (uint64_t i = 0; i < 126000; i++) {
        uint64_t *block = malloc(24);
        const bool alike = i >= 60000 && i < 63000;
        block[0] = alike ? 1 : i * 0x9e3779b97f4a7c15u + 2;
        block[1] = alike ? 1 : i;
        block[2] = 5;
        KEEP(block);
    }
}

/* ---- what examples look like ---- */

NOINLINE static void of_bytes(const void *bytes, size_t size)
{
    for (int i = 0; i < 100; i++) {
        char *block = malloc(size);
        memcpy(block, bytes, size);
        KEEP(block);
    }
}

static void examples(void)
{
    of_bytes("abcdefgh\0secondpart12345", 24);
    of_bytes("abcdefgh\0thirdpart-12345", 24);
    of_bytes("abcdefgh\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    of_bytes("\\xff\\xff\\xff\\xff", 16);
    of_bytes("\xff\xff\xff\xff", 4);
    of_bytes("say \"\xe2\x80\xae\xc3\xa9\"", 11);
}

/* ---- what fill shows ---- */

NOINLINE static void of_headers(void)
{
    for (int i = 0; i < 500; i++) {
        char *block = malloc(512);
        memcpy(block, "header", 7);
        KEEP(block);
    }
}

/* Strings in blocks of 100 bytes: never written are 46,480 bytes. */
NOINLINE static void of_short_strings(void)
{
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(100);
        memset(block, 'a' + i % 26, 30 + (size_t)i % 48);
        KEEP(block);
    }
}

int main(int argc, char **argv)
{
    alarm(300);
    if (argc > 1) {
        if (!strcmp(argv[1], "many"))
            of_many();
        else if (!strcmp(argv[1], "findings")) {
            of_strings();
            of_different();
            of_reserved();
            of_few();
        } else if (!strcmp(argv[1], "hostile")) {
            of_strings();
            of_protected();
            of_pools(argv[2]);
        } else if (!strcmp(argv[1], "text"))
            of_hostile_text();
        else if (!strcmp(argv[1], "threads")) {
            of_strings();
            of_written();
            start_threads();
        } else if (!strcmp(argv[1], "fork"))
            forks();
        else if (!strcmp(argv[1], "confined"))
            confined();
        else if (!strcmp(argv[1], "waits"))
            waits();
        else if (!strcmp(argv[1], "one"))
            of_one_in_many();
        else if (!strcmp(argv[1], "examples"))
            examples();
        else if (!strcmp(argv[1], "fill")) {
            of_headers();
            of_short_strings();
        } else if (!strcmp(argv[1], "killed")) {
            of_few();
            raise(SIGKILL);
        } else if (!strcmp(argv[1], "no-file")) {
            const struct rlimit none = {0, 0};
            MUST(setrlimit(RLIMIT_FSIZE, &none) == 0);
            of_few();
        } else if (!strcmp(argv[1], "peak")) {
            of_growth(1000);
            sleep(2);
            of_growth(50);
        } else
            of_random(argv[1]);
        return 0;
    }
    of_copies();
    of_zeros();
    of_tails();
    of_unwritten();
    of_shifted();
    return 0;
}
