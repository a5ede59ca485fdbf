/* leaks.c - blocks of which it is known whether the program can still reach them when it ends: the name of the function
 * that allocates a block begins with its class, see test_leaks.c. leaks END [THREADS]: how it ends, and how many
 * threads there are of each kind. */
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define BLOCK(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void **block = calloc(1, size);                                                                                \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }

BLOCK(reachable_by_data)
BLOCK(reachable_by_zeroed_data)
BLOCK(reachable_by_list)
BLOCK(reachable_by_stack)
BLOCK(reachable_by_thread_local)
BLOCK(reachable_by_specific)
BLOCK(reachable_by_later_specific)
BLOCK(reachable_by_low_tag)
BLOCK(reachable_by_high_tag)
BLOCK(reachable_by_large_block)
BLOCK(reachable_large_block)
BLOCK(reachable_by_both)
BLOCK(reachable_by_sleeping_thread)
BLOCK(reachable_by_spinning_thread)
BLOCK(reachable_by_vector_register)
BLOCK(reachable_by_blocked_thread)
BLOCK(reachable_by_thread_in_handler)
BLOCK(reachable_by_thread_local_of_thread)
BLOCK(possible_by_middle)
BLOCK(possible_by_end)
BLOCK(possible_behind_possible)
BLOCK(definite_dropped)
BLOCK(definite_large)
BLOCK(definite_by_mapping)
BLOCK(definite_of_ended_thread)
BLOCK(definite_by_one_past_the_end)
BLOCK(definite_by_one_past_an_odd_end)
BLOCK(indirect_behind_definite)
BLOCK(indirect_list)
BLOCK(lost_ring)

static void *volatile data = (void *)&data;
static void *volatile zeroed,
    *volatile list, *volatile low_tag, *volatile high_tag, *volatile large, *volatile both, *volatile both_middle,
                                                                                                *volatile middle,
                                                                                                    *volatile end,
                                                                                                        *volatile past,
    *volatile odd_past;
static __thread void *volatile thread_local_block;
static void **volatile mapping;

/* ---- lost, and reached otherwise than by threads ---- */

static NOINLINE void make_lost(void)
{
    for (int i = 0; i < 7; i++)
        definite_dropped(24);
    definite_large(3 << 20);
    void **volatile first = definite_dropped(48);
    *first = indirect_behind_definite(100);
    first[1] = indirect_list(16);
    void **at = first[1];
    for (int i = 0; i < 5; i++, at = *at)
        *at = indirect_list(16);
    void **volatile one = lost_ring(64), **volatile other = lost_ring(64);
    one[3] = other;
    other[3] = one;
    mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapping != MAP_FAILED);
    mapping[17] = definite_by_mapping(40);
    past = (char *)definite_by_one_past_the_end(64) + 64 + 8; /* behind the block, in what the allocator keeps there */
    odd_past = (char *)definite_by_one_past_an_odd_end(100) + 100;
    first = one = other = NULL;
}

/* Mappings that cannot be read, though they seem to be there. */
static NOINLINE void make_hostile(void)
{
    char name[] = "/tmp/leaks-XXXXXX";
    const int file = mkstemp(name), zero = open("/dev/zero", O_RDWR);
    MUST(file >= 0 && zero >= 0 && unlink(name) == 0 && ftruncate(file, 16 * 4096) == 0);
    for (int i = 0; i < 2; i++)
        MUST(mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, i ? MAP_SHARED : MAP_PRIVATE, file, 0) != MAP_FAILED);
    MUST(ftruncate(file, 4096) == 0);
    MUST(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, zero, 0) != MAP_FAILED);
    char *guarded = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(guarded != MAP_FAILED && mprotect(guarded + 4096, 4096, PROT_NONE) == 0);
    MUST(mprotect(guarded + 3 * 4096, 4096, PROT_WRITE) == 0);
    close(file);
    close(zero);
}

static NOINLINE void make_reachable(void)
{
    make_hostile();
    data = reachable_by_data(1);
    zeroed = reachable_by_zeroed_data(33);
    for (int i = 0; i < 1000; i++) {
        void **volatile node = reachable_by_list(32);
        node[2] = list;
        list = node;
    }
    thread_local_block = reachable_by_thread_local(64);
    low_tag = (char *)reachable_by_low_tag(64) + 1;
    high_tag = (void *)((uintptr_t)reachable_by_high_tag(64) | 5ul << 58);
    large = reachable_large_block(5 << 20);
    ((void **)large)[(4 << 20) / sizeof(void *)] = reachable_by_large_block(64);
    both = reachable_by_both(128);
    both_middle = (char *)both + 64;
    middle = (char *)possible_by_middle(1000) + 500;
    *(void **)((char *)middle - 500) = possible_behind_possible(10);
    end = (char *)possible_by_end(100) + 96;
    static pthread_key_t key[100];
    for (int i = 0; i < 100; i++)
        MUST(pthread_key_create(&key[i], NULL) == 0);
    pthread_setspecific(key[3], reachable_by_specific(10));
    pthread_setspecific(key[90], reachable_by_later_specific(10));
}

/* What was in registers and below the stack pointer is overwritten. */
static NOINLINE void scrub(int depth)
{
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0;
    if (depth)
        scrub(depth - 1);
    KEEP(bytes);
}

/* ---- threads ---- */

static int ready;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

static void is_ready(void)
{
    scrub(3);
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
}

static void *sleeping(void *unused)
{
    void *volatile block = reachable_by_sleeping_thread(48);
    thread_local_block = reachable_by_thread_local_of_thread(56);
    is_ready();
    for (;;)
        pause();
    KEEP(block);
    return NULL;
}

/* The block is known to one register only. */
static void *spinning(void *unused)
{
    void *block = reachable_by_spinning_thread(48);
    is_ready();
    for (;;)
        __asm__ volatile("mov $1000000, %%ecx\n1: pause\n\tdec %%ecx\n\tjnz 1b" : "+r"(block) : : "ecx");
    return NULL;
}

static void *in_vector_register(void *unused)
{
    void *block = reachable_by_vector_register(48);
    __asm__ volatile("movq %0, %%xmm7\n\txor %0, %0" : "+r"(block) : : "xmm7");
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        __asm__ volatile("pause" : : : "memory");
    return NULL;
}

static void *blocked(void *unused)
{
    void *volatile block = reachable_by_blocked_thread(48);
    is_ready();
    pthread_mutex_lock(&never);
    KEEP(block);
    return NULL;
}

static void in_handler(int number)
{
    __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static void *interrupted(void *unused)
{
    const stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&other, NULL);
    void *volatile block = reachable_by_thread_in_handler(48);
    scrub(3);
    raise(SIGUSR1);
    KEEP(block);
    return NULL;
}

static void *ended(void *unused)
{
    thread_local_block = definite_of_ended_thread(64);
    scrub(3);
    return NULL;
}

static void start_threads(int each)
{
    static void *(*const kinds[])(void *) = {sleeping, spinning, in_vector_register, blocked, interrupted};
    const struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    pthread_mutex_lock(&never);
    int count = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (int i = 0; i < (kind == 1 || kind == 2 ? (each > 0) : each); i++, count++) {
            pthread_t thread;
            MUST(pthread_create(&thread, NULL, kinds[kind], NULL) == 0);
        }
    if (each) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, ended, NULL) == 0);
        pthread_join(thread, NULL);
    }
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < count)
        usleep(1000);
}

static const char *until; /* there is a file of that name; NULL: no waiting */
static pthread_t first;

static void *exits(void *unused)
{
    exit(0);
}

static void *exits_alone(void *unused)
{
    pthread_join(first, NULL);
    if (until) {
        alarm(300);
        say("ready\n");
        while (access(until, F_OK) != 0)
            usleep(10000);
    }
    exit(0);
}

/* Until the stack is full. */
static NOINLINE int deeper(int depth)
{
    volatile char bytes[4096];
    bytes[0] = (char)depth;
    return depth < 0 ? 0 : deeper(depth + 1) + bytes[0];
}

static void ends_by_itself(const char *how)
{
    static char other[65536];
    if (!strcmp(how, "deep")) /* there is another stack for the signal */
        MUST(sigaltstack(&(stack_t){.ss_sp = other, .ss_size = sizeof other}, NULL) == 0);
    if (!strcmp(how, "deep") || !strcmp(how, "overflow"))
        exit(deeper(0));
    if (!strcmp(how, "killed"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "chroot")) { /* there is no /proc any more */
        char folder[] = "/tmp/leaks-XXXXXX";
        MUST(mkdtemp(folder) && chdir(folder) == 0 && rmdir(folder) == 0 && chroot(".") == 0);
        exit(0);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    void *volatile block = reachable_by_stack(64);
    make_lost();
    make_reachable();
    start_threads(argc > 2 ? atoi(argv[2]) : 0);
    scrub(8);
    if (!strcmp(how, "crowded")) /* /proc cannot be opened any more */
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    ends_by_itself(how);
    if (!strcmp(how, "exit") || !strcmp(how, "crowded"))
        exit(0);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "quick"))
        quick_exit(0);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "segv"))
        *(volatile int *)mapping[100] = 1;
    if (!strcmp(how, "child")) { /* it stays, too, after an allocation */
        const pid_t child = fork();
        if (child)
            while (waitpid(child, NULL, 0) < 0)
                continue;
        else {
            void *used = malloc(1);
            KEEP(used);
            free(used);
            how = "stay";
        }
    }
    if (!strcmp(how, "stay")) { /* until there is a file of that name */
        alarm(300);             /* a test that fails does not create it */
        say("ready\n");
        while (access(argv[3], F_OK) != 0)
            usleep(10000);
        exit(0);
    }
    if (!strcmp(how, "alone")) { /* the first thread ends before */
        pthread_t thread;
        first = pthread_self();
        until = argc > 3 ? argv[3] : NULL;
        pthread_create(&thread, NULL, exits_alone, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, exits, NULL);
        pause();
    }
    KEEP(block);
    return 0;
}
