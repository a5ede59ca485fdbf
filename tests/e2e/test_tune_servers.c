/* test_tune_servers.c - heapwise tune with a load generator: servers of known latency, redis-server, PostgreSQL. No
 * test depends on how long something takes. What can go wrong with a server: tests/unit/tuning/test_server.c. */
#include "support/check.h"
#include "support/fake_allocator.h"
#include "support/recording.h"

#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE "--only=fakemalloc", fake_allocator_option, fake_settings_option
#define ENDS "[end]\nset = env FAKE_END\nvalues = exit\ndoes = Ends at once.\n"

static char state_folder[4100], program[9000], ready[4300], load[9000];

/* A server whose latency is 1 with release 1, and 2 without it. It notes its process, and stops by SIGTERM. */
static void make_server(const char *name)
{
    char *folder = join_path(test_directory, name);
    snprintf(state_folder, sizeof state_folder, "%s", folder);
    free(folder);
    snprintf(program, sizeof program, "mkdir -p '%s'", state_folder);
    assert_int_equal(system(program), 0);
    snprintf(program, sizeof program,
             "cd '%s'; trap 'rm -f ready; exit 0' TERM; echo ${FAKE_RELEASE:-0} >value; echo $$ >>pids; >ready; "
             "while :; do sleep 0.02; done",
             state_folder);
    snprintf(ready, sizeof ready, "--ready=test -e '%s/ready'", state_folder);
    snprintf(load, sizeof load,
             "--load=if [ $(cat '%s/value') = 1 ]; then l=1 t=2000; else l=2 t=1000; fi; "
             "echo \"GET: $t.00 requests per second, p50=$l.000 msec\"; echo \"all: 99.9 of 100 within ${l}us\"",
             state_folder);
}

static void check_stopped(void)
{
    char *file = join_path(state_folder, "pids");
    FILE *pids = fopen(file, "re");
    assert_non_null(pids);
    for (long pid; fscanf(pids, "%ld", &pid) == 1;) {
        char path[64], command[16] = "";
        snprintf(path, sizeof path, "/proc/%ld/comm", pid);
        FILE *comm = fopen(path, "re"); /* another process may have the number by now, but no shell of this test */
        if (comm && fscanf(comm, "%15s", command) == 1 && getsid((pid_t)pid) == getsid(0))
            assert_string_not_equal(command, "sh");
        if (comm)
            fclose(comm);
    }
    fclose(pids);
    unlink(file);
    free(file);
}

static void check_server(const char *goal, const char *expression, const char *decided_by)
{
    make_server("state");
    const char *const arguments[] = {"tune",     "--json", goal, FAKE, load,    ready,
                                     expression, "--",     "sh", "-c", program, NULL};
    json_t *object = tuned(arguments);
    assert_string_equal(json_text(object, "winner"), "fakemalloc, release 1");
    assert_string_equal(json_text(object, "decided_by"), decided_by);
    const json_t *best = configuration(object, "fakemalloc, release 1");
    double gain = json_real_value(json_object_get(json_object_get(best, "confirmed"), "value"));
    assert_true(gain > 0.499 && gain < 0.501);
    gain = json_real_value(json_object_get(json_object_get(best, "throughput"), "value"));
    assert_true(gain > 1.999 && gain < 2.001);
    assert_true(json_real_value(json_object_get(json_object_get(best, "rss_after_peak"), "value")) > 0);
    check_excluded(object, "fakemalloc, end exit", "it ended before it was ready: it exited with code 3");
    json_decref(object);
    check_stopped();
}

static void test_goals(void **state)
{
    write_fake_settings("server", ENDS);
    check_server("--for=latency", "--p50=p50=([0-9.]+)", "latency_p50");
    check_server("--for=throughput", "--p99=within ([0-9.]+)us", "throughput");
    check_server("--for=latency", "--p99=within ([0-9.]+)us", "latency_p99");
    check_server("--for=p999", "--p999=99.9 of 100 within ([0-9.]+)", "latency_p999");
}

static void test_text(void **state)
{
    write_fake_settings("server", "");
    make_server("state");
    const char *const arguments[] = {"tune", "--for=latency", FAKE, load, ready, "--", "sh", "-c", program, NULL};
    struct run_result result =
        heapwise(arguments, &(struct run_options){.environment = fake_environment, .timeout_s = 500});
    assert_exit(&result, 0, "heapwise tune");
    assert_contains(result.out, "Best for latency: fakemalloc, release 1\n  p50 latency: -50.0 %");
    assert_contains(result.out, "  requests / s ");
    assert_contains(result.out, "  p50 latency      2.000 ms   1.000 ms  -50.0 % ");
    run_result_free(&result);
    check_stopped();
}

/* Interrupted while a server runs: it is stopped, and the search goes on later. */
static void test_continued(void **state)
{
    write_fake_settings("server", "");
    make_server("continued");
    char *file = join_path(test_directory, "trials"), option[4300];
    snprintf(option, sizeof option, "--resume=%s", file);
    const char *const first[] = {
        heapwise_path(), "tune", "--json", "--for=throughput", FAKE, load, ready, option, "--", "sh", "-c",
        program,         NULL};
    struct run_process process = run_start(first, &(struct run_options){.environment = fake_environment});
    for (int tries = 0; lines_of(file) < 8 && tries < 30000; tries++)
        usleep(10000);
    kill(process.pid, SIGINT);
    struct run_result result = run_finish(&process, 60);
    assert_int_equal(result.code, 128 + SIGINT);
    assert_contains(result.out, "\"result\": \"unfinished\"");
    run_result_free(&result);
    check_stopped();
    json_t *object = tuned(first + 1);
    assert_string_equal(json_text(object, "winner"), "fakemalloc, release 1");
    assert_int_equal(lines_of(file), json_number(object, "runs") + 1);
    json_decref(object);
    check_stopped();
    free(file);
}

/* ---- real servers ---- */

/* A TCP port of 127.0.0.1 that nobody has, and that no outgoing connection gets. */
static unsigned free_port(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        const unsigned port = 12000 + ((unsigned)getpid() * 7 + i * 13) % 18000;
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool fine = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (fd >= 0)
            close(fd);
        if (fine)
            return port;
    }
    fail_msg("no free port");
    return 0;
}

static bool is_known(const json_t *one, const char *metric)
{
    return json_real_value(json_object_get(json_object_get(one, metric), "value")) > 0;
}

/* Every configuration that was not excluded has METRICS, and some have. */
static void check_measured(const json_t *object, const char *const metrics[])
{
    size_t i, measured = 0;
    const json_t *one;
    json_array_foreach(json_object_get(object, "configurations"), i, one)
    {
        if (strcmp(json_text(one, "state"), "plain") == 0 || strcmp(json_text(one, "state"), "excluded") == 0)
            continue;
        for (size_t k = 0; metrics[k]; k++)
            if (!is_known(one, metrics[k]))
                fail_msg("%s of %s is not known: %s", metrics[k], json_text(one, "configuration"),
                         json_dumps(object, JSON_INDENT(1)));
        measured++;
    }
    assert_true(measured > 0);
}

/* Debian's redis-tools have the server under another name, by which it checks files. */
static void test_redis(void **state)
{
    const char *checker = "/usr/bin/redis-check-rdb";
    char server[4300], port[32], number[64], generator[256];
    if (!have_command("redis-benchmark") || (!have_command("redis-server") && access(checker, X_OK) != 0))
        SKIP("there is no redis-server");
    snprintf(server, sizeof server, "%s/redis-server", test_directory);
    if (have_command("redis-server"))
        snprintf(server, sizeof server, "redis-server");
    else if (access(server, X_OK) != 0)
        assert_int_equal(symlink(checker, server), 0);
    write_fake_settings("server", "");
    snprintf(number, sizeof number, "%u", free_port());
    snprintf(port, sizeof port, "--ready=%.5s", number);
    snprintf(generator, sizeof generator, "--load=redis-benchmark -p %.8s --csv -t set,get -n 2000", number);
    const char *const arguments[] = {"tune", "--json", "--for=latency", "--budget=2s", FAKE,     port, generator,
                                     "--",   server,   "--port",        number,        "--save", "",   "--appendonly",
                                     "no",   "--dir",  test_directory,  NULL};
    json_t *object = tuned(arguments);
    assert_string_equal(json_text(object, "decided_by"), "latency_p99");
    check_measured(object, (const char *const[]){"throughput", "latency_mean", "latency_p50", "latency_p99",
                                                 "rss_after_peak", "cpu_time", NULL});
    json_decref(object);

    snprintf(generator, sizeof generator, "--load=redis-benchmark -p %.8s -t set -n 2000", number);
    const char *const report[] = {
        "tune", "--json", "--for=throughput", "--budget=2s", "--no-profile", FAKE, port,    generator,
        "--",   server,   "--port",           number,        "--save",       "",   "--dir", test_directory,
        NULL};
    object = tuned(report);
    check_measured(object, (const char *const[]){"throughput", "latency_p50", "latency_p99", NULL});
    json_decref(object);
}

/* A command of PostgreSQL's server, as the user nobody where root runs the tests: it does not run as root. */
static void postgres(char *command, size_t size, const char *folder, const char *name, const char *arguments)
{
    snprintf(command, size, "%s%.500s/%s %s",
             getuid() == 0 ? "setpriv --reuid=nobody --regid=nogroup --clear-groups " : "", folder, name, arguments);
}

static void test_postgres(void **state)
{
    glob_t found;
    char folder[512] = "", data[4200], command[9000], arguments[4400], is_ready[600], generator[1024], home[4300];
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0) {
        snprintf(folder, sizeof folder, "%.500s", found.gl_pathv[found.gl_pathc - 1]);
        *strrchr(folder, '/') = '\0';
        globfree(&found);
    }
    if (!folder[0])
        SKIP("there is no PostgreSQL");
    if (getuid() == 0 && !have_command("setpriv"))
        SKIP("there is no setpriv");
    char place[] = "/tmp/heapwise-postgres-XXXXXX"; /* other users cannot enter test_directory */
    assert_non_null(mkdtemp(place));
    snprintf(data, sizeof data, "%s/data", place);
    snprintf(home, sizeof home, "rm -rf %s", place);
    if (getuid() == 0) {
        snprintf(command, sizeof command, "chown nobody %s", place);
        assert_int_equal(system(command), 0);
    }
    snprintf(arguments, sizeof arguments, "-D %s -A trust -U guest -N --locale=C -E UTF8 >/dev/null 2>&1 </dev/null",
             data);
    postgres(command, sizeof command, folder, "initdb", arguments);
    char in_folder[9100];
    snprintf(in_folder, sizeof in_folder, "cd / && %s", command);
    const int made = system(in_folder);
    if (made != 0) {
        (void)!system(home);
        SKIP("PostgreSQL cannot make its files here");
    }
    const unsigned number = free_port();
    write_fake_settings("server", "");
    /* its port can be connected to before it answers */
    snprintf(is_ready, sizeof is_ready, "--ready='%.500s/pg_isready' -q -h 127.0.0.1 -p %u", folder, number);
    snprintf(generator, sizeof generator,
             "--load=b='%.500s/pgbench -h 127.0.0.1 -p %u -U guest'; $b -q -i -s 1 postgres >/dev/null 2>&1 && "
             "$b -n -c 2 -t 20 postgres",
             folder, number);
    snprintf(arguments, sizeof arguments, "-D %s -p %u -c listen_addresses=127.0.0.1 -c unix_socket_directories= -F",
             data, number);
    postgres(command, sizeof command, folder, "postgres", arguments);
    snprintf(in_folder, sizeof in_folder, "cd / && exec %s", command);
    const char *const words[] = {"tune",       "--json", "--for=latency", "--budget=2s", "--no-profile",
                                 "--stop=INT", FAKE,     is_ready,        generator,     "--",
                                 "sh",         "-c",     in_folder,       NULL};
    struct run_result result =
        heapwise(words, &(struct run_options){.environment = fake_environment, .timeout_s = 500});
    (void)!system(home);
    assert_exit(&result, 0, run_describe(words));
    json_t *object = json_loads(result.out, 0, NULL);
    assert_non_null(object);
    run_result_free(&result);
    assert_string_equal(json_text(object, "decided_by"), "latency_mean"); /* pgbench prints no percentiles */
    check_measured(object, (const char *const[]){"throughput", "latency_mean", "rss_after_peak", NULL});
    json_decref(object);
}

static void test_wrong_usage(void **state)
{
    struct {
        const char *words[7], *message;
    } cases[] = {
        {{"tune", "--for=latency", "true"}, "--for=latency is for servers: --load is needed"},
        {{"tune", "--p99=(x)", "true"}, "--p99 is for servers: --load is needed"},
        {{"tune", "--ready=80", "true"}, "--ready is for servers"},
        {{"tune", "--load=true", "true"}, "--load needs --ready"},
        {{"tune", "--load=true", "--ready=70000", "true"}, "is not a port"},
        {{"tune", "--load=true", "--ready=0", "true"}, "is not a port"},
        {{"tune", "--load=true", "--ready=1", "--p99=p50", "true"}, "the number needs a group around it"},
        {{"tune", "--load=true", "--ready=1", "--p99=(", "true"}, "--p99=(: "},
        {{"tune", "--load=true", "--ready=1", "--stop=KILL", "true"}, "TERM, INT, HUP, QUIT"},
        {{"tune", "--load=true", "--ready=1", "--check=true", "true"}, "--check is not for servers"},
        {{"tune", "--load=true", "--ready=false", "--", "false"},
         "it ended before it was ready: it exited with code 1"},
        {{"tune", "--load=false", "--ready=true", "--", "sleep", "100"},
         "the load generator failed: it exited with code 1"},
        {{"tune", "--load=echo none", "--ready=true", "--for=latency", "sleep", "100"}, "no such number was found"},
        {{"tune", "--load=echo none", "--ready=true", "--p99=(p99)", "sleep", "100"},
         "printed no number that fits (p99)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words[8] = {NULL};
        memcpy(words, cases[i].words, sizeof cases[i].words);
        assert_refused(words, cases[i].message);
    }
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_goals), cmocka_unit_test(test_text),
               cmocka_unit_test(test_continued), cmocka_unit_test(test_redis), cmocka_unit_test(test_postgres),
               cmocka_unit_test(test_wrong_usage))
