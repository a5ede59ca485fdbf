/* attached.c - see attached.h. */
#include "support/attached.h"

#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char read_byte(const struct program *program)
{
    char byte = 0;
    return read(program->from, &byte, 1) == 1 ? byte : 0;
}

struct program start(const char *const argv[])
{
    struct program program;
    int to[2], from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    program.pid = fork();
    if (program.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        for (int i = 3; i < 64; i++)
            close(i);
        execv(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    program.to = to[1];
    program.from = from[0];
    snprintf(program.number, sizeof program.number, "%d", (int)program.pid);
    assert_int_equal(read_byte(&program), 'r');
    return program;
}

int finish(struct program *program)
{
    int status = 0;
    close(program->to);
    close(program->from);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void ask(const struct program *program)
{
    assert_int_equal(write(program->to, "x", 1), 1);
    assert_int_equal(read_byte(program), 'x');
}

void attach(struct program *program, const char *profile, const char *option)
{
    const char *const arguments[] = {"attach", "-q", "-o", profile, program->number, option, NULL};
    struct run_result result = heapwise(arguments, NULL);
    if (result.code && strstr(result.err, "no permission to")) {
        kill(program->pid, SIGKILL);
        finish(program);
        SKIP("processes cannot be traced here");
    }
    assert_exit(&result, 0, "attach");
    run_result_free(&result);
}

void detach(const struct program *program)
{
    const char *const arguments[] = {"detach", "-q", program->number, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "detach");
    run_result_free(&result);
}

uint64_t sum_of_code(const struct program *program)
{
    char path[64], line[4300];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)program->pid);
    const int memory = open(path, O_RDONLY);
    if (memory < 0)
        SKIP("processes cannot be traced here");
    snprintf(path, sizeof path, "/proc/%d/maps", (int)program->pid);
    FILE *maps = fopen(path, "r");
    assert_true(maps && memory >= 0);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[2] != 'x' || !strstr(line, "/libc"))
            continue;
        for (unsigned char bytes[4096]; start < end; start += sizeof bytes) {
            assert_int_equal(pread(memory, bytes, sizeof bytes, (off_t)start), sizeof bytes);
            for (size_t i = 0; i < sizeof bytes; i++)
                sum = sum * 31 + bytes[i];
        }
    }
    fclose(maps);
    close(memory);
    assert_true(sum != 0);
    return sum;
}
