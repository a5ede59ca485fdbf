/* static.c - a statically linked program that knows what it allocates, and checks that nothing of it has changed.
 *
 *     static [WAY]        ends by exit; WAY: _exit, exec, kill, abort, quiet (allocates nothing)
 *
 * See test_static.c for the numbers. */
#include "program.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS  20
#define THREADS 8
#define CALLS   100

extern char **environ;

/* Each thread finds its own as the program says, whatever else lies beside it. */
static const char text[] = "text";
static __thread int number = 41;
static __thread const char *pointer = text;
static __thread int64_t aligned __attribute__((aligned(64))) = 7;
static __thread char zeros[300];

NOINLINE static void check_thread_local(void)
{
    MUST(number == 41 && pointer == text && aligned == 7 && (uintptr_t)&aligned % 64 == 0);
    for (size_t i = 0; i < sizeof zeros; i++)
        MUST(zeros[i] == 0);
}

static void spoil_thread_local(void)
{
    number = 0;
    pointer = NULL;
    aligned = 1;
    memset(zeros, 1, sizeof zeros);
}

/* 3 allocations, 1 reallocation, 3 frees; 5 * n bytes and the new size of the first. */
NOINLINE static void in_thread(size_t n)
{
    char *one = malloc(n), *two = calloc(2, n), *three = malloc(2 * n);
    MUST(one && two && three);
    KEEP(one);
    one = realloc(one, n + 1);
    MUST(one);
    KEEP(one);
    for (size_t i = 0; i < 2 * n; i++)
        MUST(two[i] == 0);
    free(two);
    free(one);
    free(three);
    HERE();
}

static void *run(void *argument)
{
    check_thread_local();
    spoil_thread_local();
    for (size_t n = 1; n <= CALLS; n++)
        in_thread(n);
    return argument;
}

NOINLINE static void in_child(void)
{
    char *kept = malloc(99), *freed = malloc(77);
    MUST(kept && freed);
    KEEP(kept);
    free(freed);
    HERE();
}

static int end_of(pid_t pid)
{
    int status;
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void children(void)
{
    const pid_t child = fork();
    if (child == 0) {
        check_thread_local();
        in_child();
        exit(3);
    }
    MUST(end_of(child) == 3);
    const pid_t other = vfork();
    if (other == 0) {
        execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
        _exit(1);
    }
    MUST(end_of(other) == 4);
    pid_t spawned;
    char shell[] = "sh", option[] = "-c", command[] = "exit 5";
    char *const arguments[] = {shell, option, command, NULL};
    MUST(posix_spawn(&spawned, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    MUST(end_of(spawned) == 5);
    MUST(system("exit 6") == 6 << 8);
}

NOINLINE static void in_main(void)
{
    for (size_t n = 1; n <= 10; n++) {
        char *block = malloc(n * 100);
        MUST(block);
        KEEP(block);
        if (n % 2)
            free(block);
    }
    errno = 0;
    MUST(!malloc(PTRDIFF_MAX) && errno == ENOMEM);
    HERE();
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "exit";
    if (strcmp(way, "quiet") == 0)
        return 2;
    check_thread_local();
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            MUST(pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)text) == 0);
        for (int i = 0; i < THREADS; i++) {
            void *result;
            MUST(pthread_join(thread[i], &result) == 0 && result == text);
        }
    }
    in_main();
    children();
    check_thread_local();
    if (strcmp(way, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    if (strcmp(way, "_exit") == 0)
        _exit(9);
    if (strcmp(way, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(way, "abort") == 0)
        abort();
    return 8;
}
