/* test_server.c - what can go wrong with a server under load. The servers are small shell programs. */
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/recording.h"
#include "tuning/server.h"

static struct hw_server usual(void)
{
    return (struct hw_server){.load = "true", .ready = "true", .stop = SIGTERM, .grace_s = 60};
}

static struct hw_trial trial;
static struct hw_error error;

/* Runs the server SCRIPT in test_directory, and returns what is wrong. */
static const char *problem_of(const char *script, const struct hw_server *how)
{
    static char problem[320];
    char shell[] = "sh", option[] = "-c", text[1024];
    snprintf(text, sizeof text, "%s", script);
    char *arguments[] = {shell, option, text, NULL};
    const struct hw_input input = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .start = -1};
    const struct hw_run_request request = {.path = "/bin/sh", .arguments = arguments, .input = &input};
    assert_int_equal(chdir(test_directory), 0);
    error.message[0] = '\0';
    if (!hw_server_trial(&request, how, &trial, problem, sizeof problem, &error))
        snprintf(problem, sizeof problem, "error: %.300s", error.message);
    close(input.fd);
    unlink("go");
    return problem;
}

#define STAYS "trap 'exit 0' TERM; >up; while :; do sleep 0.02; done"
#define IS_UP "test -e up"

static void expect(const char *script, const struct hw_server *how, const char *problem)
{
    unlink("up");
    const char *found = problem_of(script, how);
    if (problem[0] ? !strstr(found, problem) : found[0] != '\0')
        fail_msg("\"%s\" instead of \"%s\"", found, problem);
}

static void test_fine(void **state)
{
    struct hw_server how = usual();
    how.ready = IS_UP;
    how.load = "echo 'tps = 20 (without initial connection time)'";
    expect(STAYS, &how, "");
    assert_true(trial.cost.load[HW_LOAD_THROUGHPUT] > 19.9 && trial.cost.load[HW_LOAD_THROUGHPUT] < 20.1);
    assert_true(trial.cost.load[HW_LOAD_P99] == 0);
    assert_true(trial.cost.rss_after_bytes > 0);
    assert_false(trial.cost.killed);
    how.stop = SIGINT;
    expect("trap 'exit 0' INT; >up; while :; do sleep 0.02; done", &how, "");
    how.stop = SIGHUP;
    expect(">up; while :; do sleep 0.02; done", &how, ""); /* ended by the signal itself */
}

static void test_start(void **state)
{
    struct hw_server how = usual();
    how.ready = "false";
    expect("exit 3", &how, "it ended before it was ready: it exited with code 3");
    expect("kill -ABRT $$", &how, "it ended before it was ready: it was killed by signal 6");
    how.ready_most = 0.3;
    expect(STAYS, &how, "it was not ready within 0.3 s");
    how.ready = "sleep 100";
    expect(STAYS, &how, "it was not ready within 0.3 s");
    how = usual();
    how.ready = "false";
    expect("setsid sleep 100 </dev/null & echo $! >left; exit 0", &how, "it must stay in the foreground");
    char number[16] = "";
    FILE *left = fopen("left", "re");
    assert_non_null(left);
    assert_non_null(fgets(number, sizeof number, left));
    fclose(left);
    assert_int_equal(kill(atoi(number), 0), -1); /* it was killed */
}

static void test_load(void **state)
{
    struct hw_server how = usual();
    how.ready = IS_UP;
    how.load = "exit 5";
    expect(STAYS, &how, "the load generator failed: it exited with code 5");
    how.load = "sleep 100";
    how.seconds_most = 0.2;
    expect(STAYS, &how, "the load generator failed: it was ended after");
    how = usual();
    how.load = "touch go; sleep 1000"; /* ends with the server */
    expect("while [ ! -e go ]; do sleep 0.02; done; exit 3", &how, "it ended under load: it exited with code 3");
    how = usual();
    how.ready = IS_UP;
    how.expressions.of[HW_LOAD_P99] = "p99=([0-9]+)";
    how.load = "echo p99=fast";
    expect(STAYS, &how, "printed no number that fits p99=([0-9]+)");
}

static void test_stop(void **state)
{
    struct hw_server how = usual();
    how.ready = IS_UP;
    how.grace_s = 0.2;
    expect("trap '' TERM; >up; while :; do sleep 0.02; done", &how, "");
    assert_true(trial.cost.killed);
    how.grace_s = 60;
    expect("trap 'kill -SEGV $$' TERM; >up; while :; do sleep 0.02; done", &how, "it crashed when it was stopped");
    assert_false(trial.cost.killed);
}

static void test_port_in_use(void **state)
{
    struct hw_server how = usual();
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    char port[16];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(port, sizeof port, "%u", ntohs(address.sin_port));
    how.ready = port;
    how.port_s = 0.1;
    expect(STAYS, &how, "is in use before the server is started");
    close(fd);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_fine), cmocka_unit_test(test_start),
               cmocka_unit_test(test_load), cmocka_unit_test(test_stop), cmocka_unit_test(test_port_in_use))
