/* test_attach_moments.c - heapwise attach and detach at random moments of programs/moments.c: it finds nothing wrong,
 * and what is counted between the two is what the program has counted.
 *
 * HEAPWISE_TEST_MOMENTS: how many moments (default: 6); HEAPWISE_TEST_SEED: the first seed (1). Each seed is one. */
#include "../programs/moments.h"
#include "support/attached.h"
#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* Up to MOST microseconds. */
static void wait_a_moment(unsigned *state, unsigned most)
{
    *state = *state * 1103515245u + 12345u;
    usleep((*state >> 8) % most);
}

static void check_counts(int seed, unsigned *state)
{
    char number[16], threads[16];
    struct count count;
    snprintf(number, sizeof number, "%d", seed);
    snprintf(threads, sizeof threads, "%d", seed % 3 == 0 ? 0 : 1 + seed % 5);
    struct program program = start((const char *const[]){need_program("moments"), number, threads, NULL});
    char *profile = join_path(test_directory, "moments-%p.hwprof"), name[64];
    wait_a_moment(state, 30000);
    attach(&program, profile, NULL);
    assert_int_equal(write(program.to, "m", 1), 1);
    assert_int_equal(read_byte(&program), 'm');
    wait_a_moment(state, 10000);
    assert_int_equal(write(program.to, "u", 1), 1);
    assert_int_equal(read(program.from, &count, sizeof count), sizeof count);
    wait_a_moment(state, 10000);
    detach(&program);
    const int code = finish(&program);
    snprintf(name, sizeof name, "moments-%s.hwprof", program.number);
    free(profile);
    profile = join_path(test_directory, name);
    json_t *report = load_report(profile, 0);
    const struct sums sums = report_sums(report, "marked");
    if (code || sums.allocations != count.allocations || sums.frees != count.frees ||
        sums.reallocations != count.reallocations || sums.live_allocations)
        fail_msg("seed %d, %s threads: exit code %d; %ld allocations, %ld frees and %ld reallocations, in the profile "
                 "%ld, %ld and %ld, with %ld blocks that live",
                 seed, threads, code, count.allocations, count.frees, count.reallocations, (long)sums.allocations,
                 (long)sums.frees, (long)sums.reallocations, (long)sums.live_allocations);
    json_decref(report);
    free(profile);
}

/* It may be between two programs: then it is refused. */
static void check_execution(int seed, unsigned *state)
{
    char number[16];
    int to[2], from[2];
    snprintf(number, sizeof number, "%d", seed);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    struct program program = {.to = to[1], .from = from[0]};
    const char *const path = need_program("moments");
    program.pid = fork();
    if (program.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl(path, path, "again", number, "40", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    snprintf(program.number, sizeof program.number, "%d", (int)program.pid);
    char *profile = join_path(test_directory, "again-%p.%n.hwprof");
    wait_a_moment(state, 40000);
    const char *const begin[] = {"attach", "-q", "-o", profile, program.number, NULL}, *const end[] = {"detach", "-q",
                                                                                                       program.number,
                                                                                                       NULL};
    struct run_result begun = heapwise(begin, NULL), ended = heapwise(end, NULL);
    if ((begun.code && begun.code != 2) || (ended.code && ended.code != 2))
        fail_msg("seed %d: attach ended with %d: %s, detach with %d: %s", seed, begun.code, begun.err, ended.code,
                 ended.err);
    run_result_free(&begun);
    run_result_free(&ended);
    const char byte = read_byte(&program);
    const int code = finish(&program);
    if (byte != 'r' || code)
        fail_msg("seed %d: the program that executes itself ended with %d", seed, code);
    free(profile);
}

static void test_moments(void **state)
{
    (void)state;
    const int first = number_from("HEAPWISE_TEST_SEED", 1), count = number_from("HEAPWISE_TEST_MOMENTS", 6);
    for (int seed = first; seed < first + count; seed++) {
        unsigned random = (unsigned)seed * 2654435761u;
        printf("seed %d\n", seed);
        fflush(stdout);
        if (seed % 6 == 5)
            check_execution(seed, &random);
        else
            check_counts(seed, &random);
    }
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_moments))
