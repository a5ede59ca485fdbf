/* keeps.c - blocks of which it is known who keeps them.
 *
 * keeps kinds [UNTIL]: the name of the function that allocates a block says who does, see test_keeps.c. UNTIL: it says
 * "ready" and stays until there is a file of that name.
 * keeps graph SEED: blocks that point to each other at random, below variables; prints which ("block NUMBER BYTES",
 * "edge FROM TO", "root VARIABLE OFFSET TO"), so that the test can compute what each variable keeps.
 * keeps beside: blocks with mappings of their own, right beside thread-local data and a thread's stack; prints whether
 * they are. */
#include "program.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define BLOCK(name)                                                                                                    \
    NOINLINE static void *name(size_t size)                                                                            \
    {                                                                                                                  \
        void **block = calloc(1, size);                                                                                \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }

/* ---- kinds ---- */

BLOCK(of_list)
BLOCK(of_tree)
BLOCK(of_ring)
BLOCK(of_table)
BLOCK(of_several)
BLOCK(of_target)
BLOCK(of_stack)
BLOCK(of_thread_local)
BLOCK(of_register)
BLOCK(of_field)
BLOCK(of_union)
BLOCK(of_matrix)
BLOCK(of_function)
BLOCK(of_local_field)
BLOCK(of_shared)
BLOCK(of_cache)
BLOCK(of_lost)

struct node {
    struct node *next, *other;
};

void *volatile list, *volatile tree, *volatile ring;
void *volatile one, *volatile two;             /* share what lies behind different blocks */
void *volatile owner_one, *volatile owner_two; /* share one block, and what it owns */
struct node *volatile table[100];
void *volatile shared_one[20], *volatile shared_two[20]; /* the same blocks */
static __thread void *volatile thread_local_variable;
static int ready;

/* Fields have names: of nested structs, unions, arrays; of what a function keeps, and of thread-local data. What they
 * point to has a type. */
struct entry {
    char text[208];
};
typedef const struct {
    char text[224];
} cell;
typedef void handle;
struct service {
    int number;
    struct {
        const char *name;
        const struct entry *volatile head;
    } table[4];
    union {
        uint64_t bits;
        void *volatile pointer;
    };
    cell *volatile matrix[2][3];
} service;
static __thread struct {
    long number;
    handle *volatile last;
} local_service;

static NOINLINE void remember_in_function(void)
{
    static union value {
        int number;
    } *volatile *volatile remembered;
    remembered = of_function(240);
    KEEP(remembered);
}

static NOINLINE struct node *make_tree(int depth)
{
    struct node *node = of_tree(64);
    if (depth) {
        node->next = make_tree(depth - 1);
        node->other = make_tree(depth - 1);
    }
    return node;
}

static NOINLINE void make_kinds(void)
{
    for (int i = 0; i < 500; i++) {
        struct node *node = of_list(48);
        node->next = list;
        list = node;
    }
    tree = make_tree(6);
    struct node *first = of_ring(32), *last = first;
    for (int i = 0; i < 9; i++, last = last->next)
        last->next = of_ring(32);
    last->next = first;
    ring = first;
    for (int i = 0; i < 100; i++)
        table[i] = of_table(24);
    struct node *left = of_several(100), *right = of_several(100), *both = of_several(100);
    left->next = right->next = both;
    left->other = right;
    right->other = left;
    one = left;
    two = right;
    struct node *target = of_target(200), *below = of_target(300);
    target->next = below;
    below->other = target;
    owner_one = target;
    owner_two = target;
    thread_local_variable = of_thread_local(80);
    service.table[3].head = of_field(208);
    service.pointer = of_union(216);
    service.matrix[1][2] = of_matrix(224);
    local_service.last = of_local_field(232);
    for (int i = 0; i < 20; i++)
        shared_one[i] = shared_two[i] = of_shared(72);
    remember_in_function();
}

static NOINLINE void scrub(int depth)
{
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0;
    if (depth)
        scrub(depth - 1);
    KEEP(bytes);
}

static void *in_register(void *unused)
{
    void *block = of_register(48);
    __asm__ volatile("movq %0, %%xmm7\n\txor %0, %0" : "+r"(block) : : "xmm7");
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        __asm__ volatile("pause" : : : "memory");
    return NULL;
}

/* ---- graph ---- */

enum { BLOCKS = 400, ROOTS = 8 };
struct root {
    void *first, *second;
};
struct root root0, root1, root2, root3, root4, root5, root6, root7;

BLOCK(place0)
BLOCK(place1)
BLOCK(place2)
BLOCK(place3)
BLOCK(place4)
BLOCK(place5)

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static NOINLINE void make_graph(uint64_t seed)
{
    static void *(*const places[])(size_t) = {place0, place1, place2, place3, place4, place5};
    static struct root *const roots[ROOTS] = {&root0, &root1, &root2, &root3, &root4, &root5, &root6, &root7};
    random_state = seed;
    struct node **block =
        mmap(NULL, BLOCKS * sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(block != MAP_FAILED);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const size_t size = 32 + 8 * (size_t)below(30);
        block[i] = places[below(6)](size);
        printf("block %u %zu\n", i, size);
    }
    /* Few roots high up and short ways: some is kept by one, some by several. */
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const uint32_t targets = below(100) < 70 ? 1 : 2;
        for (uint32_t k = 0; k < targets; k++) {
            const uint32_t to = below(100) < 92 ? i + 1 + below(12) : below(BLOCKS);
            if (to >= BLOCKS)
                continue;
            *(k ? &block[i]->other : &block[i]->next) = block[to];
            printf("edge %u %u\n", i, to);
        }
    }
    for (uint32_t i = 0; i < ROOTS; i++)
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t to = below(BLOCKS);
            if (k && below(2))
                continue;
            *(k ? &roots[i]->second : &roots[i]->first) = block[to];
            printf("root %u %u %u\n", i, k * 8, to);
        }
    munmap(block, BLOCKS * sizeof *block);
    fflush(stdout);
}

/* ---- mappings ---- */

enum { CACHES = 40, TABLE = 20000 };
void *volatile cache[CACHES];
static uintptr_t thread_stack;

/* In one line of /proc/self/maps. */
static bool are_beside(uintptr_t one, uintptr_t other)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) == 2)
            found |= one >= start && one < end && other >= start && other < end;
    }
    fclose(maps);
    return found;
}

static void *wait_on_stack(void *unused)
{
    thread_stack = (uintptr_t)__builtin_frame_address(0);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return NULL;
}

static NOINLINE void **make_table(void *block)
{
    void **in_table = calloc(TABLE, sizeof *in_table);
    MUST(in_table);
    in_table[TABLE / 2] = block;
    return in_table;
}

static NOINLINE void make_beside(void)
{
    bool local = false;
    for (int i = 0; i < CACHES; i++) {
        cache[i] = make_table(of_cache(48));
        local |= are_beside((uintptr_t)cache[i], (uintptr_t)&thread_local_variable);
    }
    void **volatile lost = make_table(of_lost(56));
    pthread_attr_t small;
    pthread_t thread;
    MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
    MUST(pthread_create(&thread, &small, wait_on_stack, NULL) == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
        usleep(1000);
    printf("local %d stack %d\n", local, are_beside((uintptr_t)lost, thread_stack));
    fflush(stdout);
    lost = NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "beside")) {
        make_beside();
        scrub(8);
        _exit(0);
    }
    if (argc > 2 && !strcmp(argv[1], "graph")) {
        make_graph(strtoull(argv[2], NULL, 10));
        scrub(8);
        _exit(0);
    }
    pthread_t thread;
    make_kinds();
    MUST(pthread_create(&thread, NULL, in_register, NULL) == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
        usleep(1000);
    void *volatile block = of_stack(64);
    scrub(8);
    alarm(300);
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        while (access(argv[2], F_OK) != 0)
            usleep(1000);
    }
    exit(0);
    KEEP(block);
}
