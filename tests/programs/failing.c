/* failing.c - threads, a fork, blocks of all sizes: what the program prints does not depend on Heapwise, whose system
 * calls fail (failcalls.c). Ends with 3. */
#include "program.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

struct node {
    struct node *next;
    long key, unused;
};

NOINLINE static long list_work(int length)
{
    struct node *list = NULL;
    long sum = 0;
    for (int i = 0; i < length; i++) {
        struct node *node = malloc(sizeof *node);
        MUST(node);
        node->next = list;
        node->key = i;
        list = node;
    }
    while (list) {
        struct node *next = list->next;
        sum += list->key;
        free(list);
        list = next;
    }
    return sum;
}

NOINLINE static long size_work(void)
{
    char *grown = NULL;
    long sum = 0;
    for (size_t size = 1; size < 1u << 22; size *= 3) {
        grown = realloc(grown, size);
        MUST(grown);
        grown[size - 1] = 1;
        char *block = calloc(1, size);
        MUST(block);
        sum += block[size / 2] + grown[size - 1];
        free(block);
    }
    free(grown);
    return sum;
}

static void *work(void *result)
{
    *(long *)result = list_work(1000) + size_work();
    return NULL;
}

/* Long enough for a timer, and for what is read from time to time. */
static void for_a_while(void)
{
    for (const clock_t end = clock() + CLOCKS_PER_SEC / 250; clock() < end;)
        list_work(100);
}

int main(void)
{
    pthread_t threads[3];
    long sums[3], sum = size_work();
    int status = 0;
    for_a_while();
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, work, &sums[i]) == 0);
    for (int i = 0; i < 3; i++) {
        MUST(pthread_join(threads[i], NULL) == 0);
        sum += sums[i];
    }
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        for_a_while();
        say("child %ld\n", list_work(500));
        exit(4);
    }
    MUST(waitpid(child, &status, 0) == child);
    say("sum %ld, child %d\n", sum, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return 3;
}
