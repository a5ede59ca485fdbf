/* fields.c - accesses to fields of structs in every shape, counted by hand. Prints what was counted: one line for each
 * field, "field STRUCT NAME READS WRITES". MODE: all, threads, fork, kill, exit, dump, reset, busy, last, load LIBRARY. */
#include <dlfcn.h>
#include <heapwise/heapwise.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fields.h"

#define DEFINE(structure, field, name) _Atomic long r_##structure##_##field, w_##structure##_##field;
FIELDS(DEFINE)

/* The address goes out of sight; nothing is accessed. */
static __attribute__((noinline)) void escape(volatile void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static volatile struct node *new_node(void)
{
    struct node *n = malloc(sizeof *n + 64);
    escape(n);
    return n;
}

/* ---- addresses ---- */

static __attribute__((noinline)) void bump(volatile int *counter, int times)
{
    for (int i = 0; i < times; i++)
        *counter = *counter + 1;
}

static void addresses(volatile struct node *n)
{
    volatile int *hoisted = &n->hoisted; /* one address, many accesses */
    for (int i = 0; i < 100; i++) {
        int old = R(node, hoisted, *hoisted);
        W(node, hoisted, *hoisted) = old + 1;
    }
    escape(&n->unused); /* an address, and no access */
    bump(&n->passed, 50);
    r_node_passed += 50;
    w_node_passed += 50;
    volatile int *either = &n->array[0];
    for (int i = 0; i < 4; i++)
        W(node, array, *either++) = i;
    volatile int *local = &n->local;
    escape((void *)0);
    W(node, local, *local) = 7;
}

/* ---- shapes ---- */

static void shapes(volatile struct node *n)
{
    W(node, first, n->first) = 1; /* the address is that of the struct */
    W(node, pos_x, n->pos.x) = 2;
    W(node, pos_y, n->pos.y) = R(node, pos_x, n->pos.x);
    W(node, next, n->next) = NULL;
    WB(node, kind, n->kind, 3);
    WB(node, mark, n->mark, R(node, kind, n->kind) + 1);
    WB(node, kind, n->kind, R(node, mark, n->mark) & 7);
    W(node, letter, n->letter) = 'a';
    for (int i = 0; i < 10; i++) {
        int sum = R(node, array, n->array[i & 3]) + R(node, letter, n->letter);
        W(node, array, n->array[(i + 1) & 3]) = sum;
        W(node, tail, n->tail[i]) = (char)sum;
    }
    W(node, u_i, n->u.i) = 5;
    W(node, u_p, n->u.p) = NULL;
    (void)R(node, u_p, n->u.p);
    for (int i = 0; i < 3; i++) {
        W(vec, y, n->slots[i].y) = i;
        W(vec, x, n->slots[i].x) = R(vec, y, n->slots[i].y);
        r_node_slots++, w_node_slots += 2;
    }
}

static void list(volatile struct node *head)
{
    for (volatile struct node *n = head; n; n = R(node, next, n->next))
        W(node, first, n->first) = R(node, first, n->first) + 1;
}

static void wholes(void)
{
    volatile struct pair *a = malloc(3 * sizeof *a), *b = malloc(sizeof *b);
    escape((void *)a);
    W(pair, left, b->left) = 1;
    W(pair, right, b->right) = 2;
    for (int i = 0; i < 3; i++) {
        a[i] = *b;
        w_pair_left++, w_pair_right++, r_pair_left++, r_pair_right++;
    }
    (void)R(pair, left, a[2].left);
    free((void *)a);
    free((void *)b);
}

/* ---- what may not come back ---- */

static jmp_buf back;

static __attribute__((noinline)) void leave(int how)
{
    if (how)
        longjmp(back, 1);
}

static __attribute__((noinline)) void guarded(volatile struct node *n, int how)
{
    W(node, guarded, n->guarded) = 1;
    leave(how);
    (void)R(node, guarded, n->guarded);
}

static void jumps(volatile struct node *n)
{
    for (volatile int i = 0; i < 10; i++)
        if (!setjmp(back))
            guarded(n, i & 1);
}

static HEAPWISE_NO_COUNT int not_counted(volatile struct node *n)
{
    n->hidden = 3;
    return n->hidden;
}

static void everything(void)
{
    volatile struct node *a = new_node(), *b = new_node();
    addresses(a);
    shapes(a);
    shapes(b);
    W(node, next, a->next) = (struct node *)b;
    list(a);
    wholes();
    jumps(a);
    not_counted(a);
    other_unit(b);
}

/* ---- other ways to run ---- */

static volatile struct hammer *hammered;

static void *hammer(void *times)
{
    for (long i = 0; i < (long)times; i++)
        hammered->hits = hammered->hits + 1;
    r_hammer_hits += (long)times;
    w_hammer_hits += (long)times;
    return NULL;
}

static void threads(int count, long times)
{
    pthread_t thread[64];
    hammered = malloc(sizeof *hammered);
    escape((void *)hammered);
    for (int i = 0; i < count; i++)
        pthread_create(&thread[i], NULL, hammer, (void *)times);
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}

HEAPWISE_ABI(struct hammer);

/* Long enough for the sampler to look: both fields all the time. */
static void busy(void)
{
    volatile struct hammer *h = malloc(sizeof *h);
    escape((void *)h);
    for (time_t end = time(NULL) + 2; time(NULL) < end;)
        for (int i = 0; i < 1000; i++)
            W(hammer, cold, h->cold) = R(hammer, hits, h->hits);
}

static void print(void)
{
#define PRINT(structure, field, name)                                                                                  \
    printf("field " #structure " " name " %ld %ld\n", (long)r_##structure##_##field, (long)w_##structure##_##field);
    FIELDS(PRINT)
    fflush(stdout);
}

static void forget(void)
{
#define FORGET(structure, field, name) r_##structure##_##field = w_##structure##_##field = 0;
    FIELDS(FORGET)
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    everything();
    if (strcmp(mode, "threads") == 0)
        threads(8, 100000);
    if (strcmp(mode, "busy") == 0)
        busy();
    if (strcmp(mode, "dump") == 0) {
        heapwise_dump();
        print();
        everything();
        return 0;
    }
    if (strcmp(mode, "reset") == 0) {
        heapwise_reset();
        forget();
        everything();
    }
    if (strcmp(mode, "load") == 0) {
        void *library = dlopen(argv[2], RTLD_NOW);
        void (*use)(void) = library ? (void (*)(void))dlsym(library, "use") : NULL;
        if (!use)
            return 3;
        use();
        dlclose(library);
    }
    if (strcmp(mode, "fork") == 0) {
        fflush(stdout);
        if (fork() == 0) {
            forget();
            everything();
            print();
            exit(0);
        }
        wait(NULL);
        return 0;
    }
    print();
    if (strcmp(mode, "kill") == 0)
        raise(SIGTERM);
    if (strcmp(mode, "exit") == 0)
        _exit(4);
    if (strcmp(mode, "last") == 0)
        syscall(SYS_exit, 5);
    printf("twins %ld %ld\n", twin_here(), twin_there());
    return 0;
}

struct twin { /* another one is in fields2.c */
    int a;
    long b;
};

long twin_here(void)
{
    volatile struct twin *t = malloc(sizeof *t);
    t->a = 1;
    t->b = 2;
    return (long)t->a + t->b;
}
