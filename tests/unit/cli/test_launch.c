/* test_launch.c - how a program is started, what of signals and exit status goes through. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch.h"
#include "support/check.h"

static int start_at = -1; /* a pipe: launchers wait for a byte from it */

/* Launches a program in a process of its own, as heapwise record would, and exits with its code. */
static pid_t start_program(const char *path, const char *first, const char *second, const char *third)
{
    pid_t launcher = fork();
    if (launcher != 0)
        return launcher;
    if (start_at >= 0)
        (void)!read(start_at, (char[1]){0}, 1);
    setpgid(0, 0); /* a group with a parent outside: of an orphaned one the kernel would drop SIGTSTP */
    char *arguments[] = {strdup(path), strdup(first), strdup(second), third ? strdup(third) : NULL, NULL};
    struct hw_launch launch = {.path = path, .arguments = arguments, .environment = environ};
    bool executed;
    struct hw_error error;
    int problem = hw_launch(&launch, &executed, &error);
    _exit(problem ? 99 : launch.exit_kind == HW_EXIT_SIGNAL ? 128 + launch.exit_value : launch.exit_value);
}

static pid_t start(const char *script)
{
    return start_program("/bin/sh", "-c", script, NULL);
}

static int end_of(pid_t launcher)
{
    int status;
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFEXITED(status)); /* the launcher itself is never killed */
    return WEXITSTATUS(status);
}

/* Waits until the script has made the file NAME, so that what comes next finds it running. */
static void await_file(const char *name)
{
    for (int i = 0; i < 6000 && access(name, F_OK) != 0; i++)
        usleep(10000);
    assert_int_equal(unlink(name), 0);
}

/* Waits for a number in the file NAME. */
static pid_t number_in(const char *name)
{
    int number = 0;
    for (int i = 0; i < 6000 && number == 0; i++) {
        FILE *file = fopen(name, "r");
        if (!file || fscanf(file, "%d\n", &number) != 1)
            usleep(10000);
        if (file)
            fclose(file);
    }
    assert_int_equal(unlink(name), 0);
    return number;
}

static void await_stop(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    for (int i = 0; i < 6000 && state != 'T'; i++) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        if (state != 'T')
            usleep(10000);
    }
    assert_int_equal(state, 'T');
}

static char marker[64];

static const char *script(const char *format)
{
    static char text[512];
    snprintf(marker, sizeof marker, "/tmp/heapwise-launch-%d", (int)getpid());
    unlink(marker);
    snprintf(text, sizeof text, format, marker);
    return text;
}

static void test_exit_code_and_signal_are_the_programs(void **state)
{
    assert_int_equal(end_of(start("exit 0")), 0);
    assert_int_equal(end_of(start("exit 77")), 77);
    assert_int_equal(end_of(start("kill -9 $$")), 128 + SIGKILL);
    assert_int_equal(end_of(start("kill -SEGV $$")), 128 + SIGSEGV);
}

static void test_what_cannot_be_executed_is_told(void **state)
{
    char name[] = "x";
    char *arguments[] = {name, NULL};
    struct hw_error error = {""};
    bool executed = false;
    struct hw_launch launch = {.path = "/no/such/program", .arguments = arguments, .environment = environ};
    assert_int_equal(hw_launch(&launch, &executed, &error), ENOENT);
    assert_true(executed);
    assert_string_not_equal(error.message, "");
    hw_launch_release(&launch);
    launch = (struct hw_launch){.path = "/", .arguments = arguments, .environment = environ};
    assert_int_equal(hw_launch(&launch, &executed, &error), EACCES);
    hw_launch_release(&launch);
}

static void test_a_text_is_handed_to_the_shell(void **state)
{
    char path[] = "/tmp/heapwise-text-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(write(file, "exit $1", 7), 7);
    assert_int_equal(fchmod(file, 0755), 0);
    close(file);
    char code[] = "41";
    char *arguments[] = {path, code, NULL};
    struct hw_error error = {""};
    bool executed = false;
    struct hw_launch launch = {.path = path, .arguments = arguments, .environment = environ, .text = true};
    assert_int_equal(hw_launch(&launch, &executed, &error), 0);
    hw_launch_release(&launch);
    assert_int_equal(launch.exit_value, 41);
    launch.text = false;
    assert_int_equal(hw_launch(&launch, &executed, &error), ENOEXEC);
    hw_launch_release(&launch);
    unlink(path);
}

static void test_signals_sent_to_the_launcher_reach_the_program(void **state)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid_t launcher =
            start(script("trap 'exit 7' TERM HUP INT QUIT USR1 USR2 ALRM; : >%s; while :; do sleep 0.05; done"));
        await_file(marker);
        kill(launcher, signals[i]);
        assert_int_equal(end_of(launcher), 7);
    }
    pid_t launcher = start(script(": >%s; exec sleep 100"));
    await_file(marker);
    kill(launcher, SIGTERM);
    assert_int_equal(end_of(launcher), 128 + SIGTERM);
}

static void test_the_launcher_stops_and_continues_with_the_program(void **state)
{
    int status;
    pid_t launcher = start(script("trap 'exit 9' USR1; : >%s; kill -TSTP $$; while :; do sleep 0.05; done"));
    await_file(marker);
    assert_int_equal(waitpid(launcher, &status, WUNTRACED), launcher);
    assert_true(WIFSTOPPED(status));
    kill(launcher, SIGCONT);
    kill(launcher, SIGUSR1);
    assert_int_equal(end_of(launcher), 9);

    launcher = start(script("echo $$ >%s; kill -STOP $$; exit 3")); /* by hand: whoever did it continues it */
    await_stop(number_in(marker));
    assert_int_equal(waitpid(launcher, &status, WUNTRACED | WNOHANG), 0);
    kill(launcher, SIGCONT);
    assert_int_equal(end_of(launcher), 3);
}

/* The word behind NAME in this process's /proc/self/status. */
static void own_status(const char *name, char *word, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    word[0] = 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            snprintf(word, size, "%.*s", (int)strcspn(line + strlen(name) + 1, "\n"), line + strlen(name) + 1);
    fclose(file);
    assert_true(word[0]);
}

static void test_dispositions_and_mask_are_inherited(void **state)
{
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_SETMASK, &set, &old);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    /* Not through a shell, which has a mind of its own. What else this process was started with counts, too. */
    char blocked_line[64], ignored_line[64], blocked[32], ignored[32];
    own_status("SigBlk:", blocked, sizeof blocked);
    own_status("SigIgn:", ignored, sizeof ignored);
    assert_int_equal(strtoull(blocked, NULL, 16), 1u << (SIGUSR2 - 1));
    assert_int_equal(strtoull(ignored, NULL, 16) & 0x10002, 1u << (SIGCHLD - 1) | 1u << (SIGINT - 1));
    snprintf(blocked_line, sizeof blocked_line, "SigBlk:\t%s", blocked);
    snprintf(ignored_line, sizeof ignored_line, "SigIgn:\t%s", ignored);
    int gate[2]; /* they end when this process does not ignore SIGCHLD any more: it has to wait for them */
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    start_at = gate[0];
    pid_t launchers[] = {start_program("/bin/grep", "-qx", blocked_line, "/proc/self/status"),
                         start_program("/bin/grep", "-qx", ignored_line, "/proc/self/status")};
    signal(SIGCHLD, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    start_at = -1;
    assert_int_equal(write(gate[1], "go", 2), 2);
    assert_int_equal(end_of(launchers[0]), 0);
    assert_int_equal(end_of(launchers[1]), 0);
    close(gate[0]);
    close(gate[1]);
}

static void test_standard_files_that_are_closed_stay_closed(void **state)
{
    pid_t launcher = fork();
    if (launcher == 0) {
        close(0);
        close(1);
        pid_t inner = start("[ ! -e /proc/$$/fd/0 ] && [ ! -e /proc/$$/fd/1 ]");
        int status = -1;
        waitpid(inner, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    assert_int_equal(end_of(launcher), 0);
}

TEST_LIST(cmocka_unit_test(test_exit_code_and_signal_are_the_programs),
          cmocka_unit_test(test_what_cannot_be_executed_is_told), cmocka_unit_test(test_a_text_is_handed_to_the_shell),
          cmocka_unit_test(test_signals_sent_to_the_launcher_reach_the_program),
          cmocka_unit_test(test_the_launcher_stops_and_continues_with_the_program),
          cmocka_unit_test(test_dispositions_and_mask_are_inherited),
          cmocka_unit_test(test_standard_files_that_are_closed_stay_closed))
