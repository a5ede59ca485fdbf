/* top.c DIRECTORY: allocates in steps, each when a file of its name is made in DIRECTORY, and answers by another file.
 *
 *   at once  500 blocks of 200 bytes by keep(), file "kept"
 *   grow     100 blocks of 1000 bytes by grow_more(), file "grown"
 *   churn    200 blocks of 5000 bytes are obtained and freed by churn(), file "churned"
 *   end      ends with exit code 3
 *
 * top.c DIRECTORY NEXT: 500 blocks as above, and when the file "exec" is made it executes itself with NEXT alone. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static void *volatile kept[1000];
static size_t count;
static const char *directory;
static void *volatile last;

static NOINLINE void keep(void)
{
    kept[count++] = malloc(200);
}

static NOINLINE void grow_more(void)
{
    kept[count++] = malloc(1000);
}

static NOINLINE void grow_often(void)
{
    for (int i = 0; i < 100; i++)
        grow_more();
}

static NOINLINE void churn(void)
{
    last = malloc(5000);
    free(last);
}

static int is_there(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void say(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    const int file = open(path, O_WRONLY | O_CREAT, 0600); /* no block of the heap */
    if (file >= 0)
        close(file);
}

static void wait_for(const char *name)
{
    while (!is_there(name))
        usleep(5000);
}

static void *steps(void *closure)
{
    (void)closure;
    wait_for("grow");
    grow_often();
    say("grown");
    wait_for("churn");
    for (int i = 0; i < 200; i++)
        churn();
    say("churned");
    wait_for("end");
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    alarm(300);
    if (argc < 2)
        return 2;
    directory = argv[1];
    for (int i = 0; i < 500; i++)
        keep();
    if (argc > 2) {
        say("kept");
        wait_for("exec");
        execl(argv[0], argv[0], argv[2], (char *)NULL);
        return 2;
    }
    if (pthread_create(&thread, NULL, steps, NULL))
        return 2;
    pthread_setname_np(thread, "stepper");
    say("kept");
    pthread_join(thread, NULL);
    return 3;
}
