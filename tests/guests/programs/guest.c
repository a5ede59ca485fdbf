/* guest.c - threads that pass blocks on, forked children, signals, aligned blocks, a library opened and closed, a longjmp. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ITEMS 20000

struct item {
    struct item *next;
    size_t size;
    char text[];
};

static struct item *queue;
static size_t passed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t signals;
static jmp_buf back;

static void on_signal(int number)
{
    signals += number == SIGUSR1;
}

static void *produce(void *argument)
{
    for (size_t i = 0; i < ITEMS; i++) {
        size_t size = i * 7919 % 300 + (size_t)argument;
        struct item *item = malloc(sizeof *item + size);
        item->size = size;
        memset(item->text, (int)(i % 26) + 'a', size);
        if (i % 3 == 0)
            item = realloc(item, sizeof *item + size + 500);
        pthread_mutex_lock(&mutex);
        item->next = queue;
        queue = item;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *consume(void *argument)
{
    size_t *sum = argument;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (!queue && passed < 2 * ITEMS)
            pthread_cond_wait(&filled, &mutex);
        struct item *item = queue;
        if (item) {
            queue = item->next;
            passed++;
        }
        if (passed == 2 * ITEMS)
            pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&mutex);
        if (!item)
            return NULL;
        for (size_t i = 0; i < item->size; i++)
            *sum += (unsigned char)item->text[i];
        free(item);
    }
}

static void child(int n)
{
    char *parts[200];
    size_t length = 0;
    for (int i = 0; i < 200; i++) {
        parts[i] = strdup("a part of a child's text");
        length += strlen(parts[i]);
    }
    for (int i = 0; i < 200; i += 2)
        free(parts[i]);
    exit(length == 4800 ? n : 99);
}

static void fail(char *block)
{
    free(block);
    longjmp(back, 1);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGUSR1, on_signal);
    pthread_t makers[2], takers[2];
    size_t sums[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        pthread_create(&makers[i], NULL, produce, (void *)(i + 1));
        pthread_create(&takers[i], NULL, consume, &sums[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(makers[i], NULL);
        pthread_join(takers[i], NULL);
    }
    printf("%zu %zu\n", passed, sums[0] + sums[1]);
    for (int i = 1; i <= 3; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child(i);
        int status;
        waitpid(pid, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
    printf("%d signals\n", (int)signals);
    size_t wrong = 0;
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        void *block = NULL;
        wrong += posix_memalign(&block, alignment, 1000 + alignment) != 0 || (size_t)block % alignment != 0;
        wrong += malloc_usable_size(block) < 1000 + alignment;
        free(block);
    }
    printf("%zu wrong\n", wrong);
    for (int i = 0; i < 20; i++) {
        void *library = dlopen("libz.so.1", RTLD_NOW);
        if (library) {
            unsigned long (*crc)(unsigned long, const char *, unsigned) =
                (unsigned long (*)(unsigned long, const char *, unsigned))dlsym(library, "crc32");
            if (i == 0)
                printf("%lu\n", crc(0, "text", 4));
            dlclose(library);
        }
    }
    if (setjmp(back) == 0)
        fail(malloc(100));
    void *volatile none = malloc(-1UL / 2 + (size_t)signals);
    printf("%d\n", none == NULL);
    return 9;
}
