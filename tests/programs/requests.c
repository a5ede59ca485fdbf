/* requests.c - allocators of a program's own, announced to Valgrind: what each does is in functions named after it, and
 * in test_requests.c. As a library (-DLIBRARY) it announces from its constructor on, and in a thread that this starts.
 *
 * Arguments: "nothing", "pools" (nothing but pools), or the library, and "ask" to announce `asked_block` only if it runs under
 * Valgrind. */
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <valgrind/memcheck.h>

#ifdef LIBRARY

static char memory[4096];
static pthread_t thread;

static NOINLINE void constructor_block(int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 16 * i, 16);
    HERE();
}

static NOINLINE void library_thread_block(int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 2048 + 16 * i, 16);
    HERE();
}

static void *run(void *unused)
{
    for (int i = 0; i < 5; i++)
        library_thread_block(i);
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < 3; i++)
        constructor_block(i);
    MUST(pthread_create(&thread, NULL, run, NULL) == 0);
}

__attribute__((destructor)) static void end(void)
{
    VALGRIND_DESTROY_MEMPOOL(memory);
}

NOINLINE void library_block(int i)
{
    if (i == 0)
        MUST(pthread_join(thread, NULL) == 0);
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 1024 + 32 * i, 32);
    HERE();
}

#else

enum { THREADS = 8, ROUNDS = 10000 };

/* ---- pools ---- */

static NOINLINE void arena_block(char *memory, int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 128 * i, 128);
    HERE();
}

/* 100 blocks, of which the trim leaves 20; one of these ends. */
static void arena(void)
{
    char *memory = malloc(128 * 100);
    VALGRIND_CREATE_MEMPOOL(memory, 0, 0);
    for (int i = 0; i < 100; i++)
        arena_block(memory, i);
    VALGRIND_MEMPOOL_TRIM(memory, memory + 128 * 40, 128 * 20);
    VALGRIND_MEMPOOL_FREE(memory, memory + 128 * 40);
}

static NOINLINE void changed_block(char *memory, int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 128 * i, 64);
    HERE();
}

/* 10 blocks of 64 bytes become blocks of 96 bytes at other addresses; 4 end. */
static void changes(void)
{
    static char memory[4096];
    VALGRIND_CREATE_MEMPOOL(memory, 0, 0);
    for (int i = 0; i < 10; i++)
        changed_block(memory, i);
    for (int i = 0; i < 10; i++)
        VALGRIND_MEMPOOL_CHANGE(memory, memory + 128 * i, memory + 2048 + 128 * i, 96);
    for (int i = 0; i < 4; i++)
        VALGRIND_MEMPOOL_FREE(memory, memory + 2048 + 128 * i);
}

static NOINLINE void moved_block(char *memory, int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 32 * i, 32);
    HERE();
}

static NOINLINE void renamed_block(char *pool, char *address)
{
    VALGRIND_MEMPOOL_ALLOC(pool, address, 50);
    HERE();
}

/* The pool gets another name, and 5 blocks more: all 15 end with the new one. */
static void renames(void)
{
    static char memory[64 * 15], name[64];
    VALGRIND_CREATE_MEMPOOL(memory, 0, 0);
    for (int i = 0; i < 10; i++)
        renamed_block(memory, memory + 64 * i);
    VALGRIND_MOVE_MEMPOOL(memory, name);
    for (int i = 10; i < 15; i++)
        renamed_block(name, memory + 64 * i);
    VALGRIND_DESTROY_MEMPOOL(name);
}

/* The pool gets another name: 100 blocks, 3 of them end under the new one, none under the old one. */
static void moves(void)
{
    static char memory[32 * 100];
    VALGRIND_CREATE_MEMPOOL(memory, 0, 0);
    for (int i = 0; i < 100; i++)
        moved_block(memory, i);
    VALGRIND_MOVE_MEMPOOL(memory, memory + 1);
    for (int i = 0; i < 3; i++)
        VALGRIND_MEMPOOL_FREE(memory + 1, memory + 32 * i);
    VALGRIND_CREATE_MEMPOOL(memory, 0, 0);
    VALGRIND_DESTROY_MEMPOOL(memory);
}

/* ---- blocks like malloc's ---- */

static NOINLINE void custom_block(char *memory, int i)
{
    VALGRIND_MALLOCLIKE_BLOCK(memory + 64 * i, 40, 0, 0);
    HERE();
}

/* 50 blocks of 40 bytes, 10 of which grow to 56; 45 end. */
static void custom(void)
{
    static char memory[64 * 50];
    for (int i = 0; i < 50; i++)
        custom_block(memory, i);
    for (int i = 0; i < 10; i++)
        VALGRIND_RESIZEINPLACE_BLOCK(memory + 64 * i, 40, 56, 0);
    for (int i = 0; i < 45; i++)
        VALGRIND_FREELIKE_BLOCK(memory + 64 * i, 0);
}

static NOINLINE void super_block(char *memory)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory, 1024);
    HERE();
}

static NOINLINE void inside_block(char *memory, int i)
{
    VALGRIND_MALLOCLIKE_BLOCK(memory + 128 * i, 100, 0, 0);
    HERE();
}

/* A pool whose blocks are memory for others: 8 of 10 end with it. */
static void automatic(void)
{
    static char memory[2048];
    VALGRIND_CREATE_MEMPOOL_EXT(memory, 0, 0, VALGRIND_MEMPOOL_METAPOOL | VALGRIND_MEMPOOL_AUTO_FREE);
    super_block(memory);
    for (int i = 0; i < 10; i++)
        inside_block(memory, i);
    VALGRIND_MEMPOOL_FREE(memory, memory);
}

static NOINLINE void asked_block(char *memory)
{
    VALGRIND_MALLOCLIKE_BLOCK(memory, 24, 0, 0);
    HERE();
}

/* ---- threads, and a forked child ---- */

static NOINLINE void thread_block(char *memory)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory, 16);
    HERE();
}

static NOINLINE void thread_custom_block(char *memory)
{
    VALGRIND_MALLOCLIKE_BLOCK(memory, 24, 0, 0);
    HERE();
}

static void *run(void *memory)
{
    for (int i = 0; i < ROUNDS; i++) {
        thread_block(memory);
        thread_custom_block(memory);
        VALGRIND_FREELIKE_BLOCK(memory, 0);
        VALGRIND_MEMPOOL_FREE(memory, memory);
    }
    return NULL;
}

static void threads(void)
{
    static char memory[THREADS][64];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&thread[i], NULL, run, memory[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(thread[i], NULL) == 0);
}

static NOINLINE void child_block(char *memory, int i)
{
    VALGRIND_MEMPOOL_ALLOC(memory, memory + 16 * i, 16);
    HERE();
}

static void child(void)
{
    static char memory[160];
    const pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < 10; i++)
            child_block(memory, i);
        _exit(0);
    }
    MUST(waitpid(pid, NULL, 0) == pid);
}

/* ---- what a request leaves as it was ---- */

/* Registers, and the red zone: a request whose block lies there, as in a function that calls nothing. The bytes are
 * those of valgrind.h. In the order of `state`: rcx, rdx (the answer), rsi, rdi, r8 to r11, rbx, r12 to r15, and 16
 * words from 128 bytes below the stack pointer, of which the last 6 are the request. */
struct state {
    uint64_t general[13], red_zone[16], vector[16][4];
};
#define ROTATIONS "rolq $3, %%rdi\nrolq $13, %%rdi\nrolq $61, %%rdi\nrolq $51, %%rdi\n"
#define EACH(name)                                                                                                     \
    name(0, rcx) name(1, rdx) name(2, rsi) name(3, rdi) name(4, r8) name(5, r9) name(6, r10) name(7, r11)              \
        name(8, rbx) name(9, r12) name(10, r13) name(11, r14) name(12, r15)
#define LOAD(index, name) "movq " #index "*8(%%rax), %%" #name "\n"
#define EACH_WORD(name)                                                                                                \
    name(0) name(1) name(2) name(3) name(4) name(5) name(6) name(7) name(8) name(9) name(10) name(11) name(12)         \
        name(13) name(14) name(15)
#define PUT(index)  "movq 104+" #index "*8(%%rax), %%rcx\nmovq %%rcx, -128+" #index "*8(%%rsp)\n"
#define GET(index)  "movq -128+" #index "*8(%%rsp), %%rcx\nmovq %%rcx, 104+" #index "*8(%%rax)\n"
#define VPUT(index) "vmovdqu 232+" #index "*32(%%rax), %%ymm" #index "\n"
#define VGET(index) "vmovdqu %%ymm" #index ", 232+" #index "*32(%%rax)\n"

static struct state registers;

#define REQUEST(load_vectors, store_vectors)                                                                           \
    __asm__ volatile("leaq %0, %%rax\n" load_vectors EACH_WORD(PUT) EACH(LOAD)                                         \
                     "leaq -48(%%rsp), %%rax\n" ROTATIONS "xchgq %%rbx, %%rbx\n"                                       \
                     "pushfq\n" /* over the last word of the red zone, which is not read again */                      \
                     "leaq %0, %%rax\n"                                                                                \
                     "movq %%rcx, 0(%%rax)\nmovq %%rdx, 8(%%rax)\nmovq %%rsi, 16(%%rax)\nmovq %%rdi, 24(%%rax)\n"      \
                     "movq %%r8, 32(%%rax)\nmovq %%r9, 40(%%rax)\nmovq %%r10, 48(%%rax)\nmovq %%r11, 56(%%rax)\n"      \
                     "movq %%rbx, 64(%%rax)\nmovq %%r12, 72(%%rax)\nmovq %%r13, 80(%%rax)\nmovq %%r14, 88(%%rax)\n"    \
                     "movq %%r15, 96(%%rax)\n"                                                                         \
                     "addq $8, %%rsp\n" EACH_WORD(GET) store_vectors                                                   \
                     : "+m"(registers)                                                                                 \
                     :                                                                                                 \
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", \
                       "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

static void fill(char *memory)
{
    for (size_t i = 0; i < sizeof registers / 8; i++)
        ((uint64_t *)&registers)[i] = 0x0123456789abcdefull * (i + 1);
    const uint64_t request[6] = {VG_USERREQ__MEMPOOL_ALLOC, (uintptr_t)memory, (uintptr_t)memory, 48, 0, 0};
    for (int i = 0; i < 6; i++)
        registers.red_zone[10 + i] = request[i];
}

static NOINLINE void state_block(char *memory)
{
    struct state expected;
    fill(memory);
    expected = registers;
    const int wide = __builtin_cpu_supports("avx");
    if (wide)
        REQUEST(EACH_WORD(VPUT), EACH_WORD(VGET));
    else
        REQUEST("", "");
    MUST(memcmp(registers.general, expected.general, sizeof expected.general) == 0);
    MUST(memcmp(registers.red_zone, expected.red_zone, 15 * 8) == 0);
    MUST(memcmp(registers.vector, expected.vector, sizeof expected.vector) == 0);
}

static void states(void)
{
    static char memory[64];
    for (int i = 0; i < 1000; i++)
        state_block(memory);
}

/* ---- a library ---- */

/* It is loaded twice: 2 * (3 + 5) blocks of its constructor, 2 * 4 of its function, which all end when it goes. */
static void library(const char *path)
{
    for (int round = 0; round < 2; round++) {
        void *handle = dlopen(path, RTLD_NOW);
        MUST(handle);
        void (*block)(int) = (void (*)(int))dlsym(handle, "library_block");
        MUST(block);
        for (int i = 0; i < 4; i++)
            block(i);
        MUST(dlclose(handle) == 0);
    }
}

int main(int argc, char **argv)
{
    static char memory[24];
    MUST(argc > 1);
    if (strcmp(argv[1], "nothing") == 0)
        return 0;
    arena();
    changes();
    moves();
    renames();
    custom();
    automatic();
    if (strcmp(argv[1], "pools") != 0) {
        threads();
        child();
        states();
        library(argv[1]);
    }
    if (argc > 2 && RUNNING_ON_VALGRIND)
        asked_block(memory);
    say("done\n");
    return 0;
}

#endif
