/* variables.c - variables that are used much, little, by two threads, and never (tests/e2e/test_variables.c). Each lies
 * in lines of its own. */
#include <pthread.h>
#include <stdlib.h>

#define LINE __attribute__((aligned(64)))

LINE volatile int hot_table[1024] = {1};
LINE volatile int hot_zeros[1024];
LINE volatile const int hot_constants[64] = {1, 2, 3};
LINE volatile int little_used[16] = {1};
LINE volatile long shared_total[8];
LINE volatile int never_table[4096] = {1};
LINE volatile int never_zeros[4096];
LINE volatile const int never_constants[64] = {1, 2, 3};
LINE volatile int small_used = 1;

static int use(int round)
{
    LINE static volatile int calls[16];
    int sum = 0;
    for (int i = 0; i < 1024; i++)
        sum += hot_table[i] + hot_zeros[i] + hot_constants[i % 64] + small_used;
    if (round == 0)
        calls[0]++;
    return sum;
}

static void *add(void *unused)
{
    for (int i = 0; i < 100000; i++)
        shared_total[0]++;
    return unused;
}

int main(int argc, char **argv)
{
    volatile int sum = little_used[argc & 15];
    for (int i = 0; i < 100; i++)
        sum += use(i);
    if (argc > 100)
        sum += never_table[argc] + never_zeros[argc] + never_constants[argc % 64];
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, add, NULL) || pthread_join(thread, NULL))
            return 1;
    }
    free(malloc(100));
    return sum == 0;
}
