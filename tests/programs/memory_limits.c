/* memory_limits.c - comes near limits of memory, of which some are written by the program itself:
 *
 *   grow MIB             allocates and fills so many blocks of 1 MiB
 *   keep MIB DUMP        the same, then goes on allocating until the file DUMP is there
 *   steps FILE DUMP1 DUMP2   writes to FILE, which stands for memory.current: a little, much until DUMP1 is there, much
 *                        for a while, a little for a while, much until DUMP2 is there
 *   stays FILE           allocates for a while
 *   still FILE           allocates for a while, writes much to FILE, allocates for a while
 *   killed FILE DUMP     likewise, and ends by signal 9 when DUMP is there
 */
#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

#define MIB (1u << 20)

NOINLINE static void fill(void)
{
    char *block = malloc(MIB);
    if (!block)
        exit(3);
    memset(block, 1, MIB);
    KEEP(block);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void allocate(void)
{
    for (int i = 0; i < 100; i++) {
        void *block = malloc((size_t)(100 + i));
        KEEP(block);
        free(block);
    }
}

/* Also behind the end: the process may not have run before. */
static void allocate_for(double duration)
{
    for (const double until = seconds() + duration; seconds() < until;)
        allocate();
    allocate();
}

/* Ends the program with 4 if it is not there in a minute. */
static void allocate_until(const char *file)
{
    for (const double until = seconds() + 60; access(file, F_OK) != 0;) {
        allocate();
        if (seconds() > until)
            exit(4);
    }
}

static void set(const char *file, const char *value)
{
    const int fd = open(file, O_WRONLY);
    const ssize_t length = (ssize_t)strlen(value);
    if (fd < 0 || write(fd, value, (size_t)length) != length) /* as many characters each time: never half a number */
        exit(5);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "grow")) {
        for (int i = atoi(argv[2]); i > 0; i--)
            fill();
    } else if (argc == 4 && !strcmp(argv[1], "keep")) {
        allocate();
        for (int i = atoi(argv[2]); i > 0; i--)
            fill();
        allocate_until(argv[3]);
    } else if (argc == 5 && !strcmp(argv[1], "steps")) {
        static const char little[] = "010000000\n", much[] = "095000000\n";
        set(argv[2], little);
        allocate_for(0.3);
        set(argv[2], much);
        allocate_until(argv[3]);
        allocate_for(0.3);
        set(argv[2], little);
        allocate_for(0.3);
        set(argv[2], much);
        allocate_until(argv[4]);
        allocate_for(0.3);
    } else if (argc == 3 && !strcmp(argv[1], "stays")) {
        allocate_for(0.3);
    } else if (argc == 3 && !strcmp(argv[1], "still")) {
        allocate_for(0.3);
        set(argv[2], "095000000\n");
        allocate_for(0.3);
    } else if (argc == 4 && !strcmp(argv[1], "killed")) {
        allocate();
        set(argv[2], "095000000\n");
        allocate_until(argv[3]);
        raise(SIGKILL);
    } else {
        return 2;
    }
    return 0;
}
