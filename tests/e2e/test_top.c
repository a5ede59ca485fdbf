/* test_top.c - heapwise top: the numbers against those that programs/top.c is known to have, and keys on a terminal.
 *
 * The terminal is a pty, and what is written to it is followed as a VT100 follows it. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the program ---- */

struct program {
    char *directory, *profile;
    char pid[16];
    struct run_process process;
};

static void make_file(const struct program *program, const char *name)
{
    char *path = join_path(program->directory, name);
    const int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    free(path);
}

static void wait_for_file(const struct program *program, const char *name)
{
    char *path = join_path(program->directory, name);
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++)
        usleep(10000);
    if (access(path, F_OK) != 0)
        fail_msg("the program did not make %s", name);
    free(path);
}

/* NEXT: a directory below, which the program executes itself with, or NULL. */
static struct program start_next(const char *next)
{
    struct program program = {.directory = make_directory()};
    char options[4300], preload[4300];
    program.profile = join_path(program.directory, "live.hwprof");
    char *next_path = next ? join_path(program.directory, next) : NULL;
    assert_true(!next || mkdir(next_path, 0700) == 0);
    snprintf(options, sizeof options, "HEAPWISE_OPTIONS=output=%s", program.profile);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    const char *const environment[] = {options, preload, NULL};
    const char *const argv[] = {need_program("top"), program.directory, next_path, NULL};
    program.process = run_start(argv, &(struct run_options){.environment = environment});
    snprintf(program.pid, sizeof program.pid, "%d", (int)program.process.pid);
    wait_for_file(&program, "kept");
    free(next_path);
    return program;
}

static struct program start(void)
{
    return start_next(NULL);
}

static void end(struct program *program)
{
    make_file(program, "grow");
    make_file(program, "churn");
    make_file(program, "end");
    struct run_result result = run_finish(&program->process, 60);
    assert_exit(&result, 3, "the program");
    run_result_free(&result);
    remove_directory(program->directory);
    free(program->profile);
}

/* The line of TEXT that has PART. */
static const char *line_with(const char *text, const char *part)
{
    static char line[1024];
    const char *found = strstr(text, part);
    if (!found)
        fail_msg("no \"%s\" in:\n%s", part, text);
    while (found > text && found[-1] != '\n')
        found--;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(found, "\n"), found);
    return line;
}

static char *top_once(const char *what, const char *option, const char *value)
{
    const char *const environment[] = {"LC_ALL=C.UTF-8", "COLUMNS=120", NULL};
    const char *arguments[8] = {"top", "--once", "--interval", "0.1", what, option, value, NULL};
    struct run_result result = heapwise(arguments, &(struct run_options){.environment = environment});
    assert_exit(&result, 0, "heapwise top --once");
    assert_string_equal(result.err, "");
    char *text = strdup(result.out);
    run_result_free(&result);
    return text;
}

static size_t count_lines_with(const char *text, const char *part)
{
    size_t lines = 0;
    for (const char *found = text; (found = strstr(found, part)); lines++)
        found += strcspn(found, "\n");
    return lines;
}

/* ---- once ---- */

static void test_numbers(void **state)
{
    (void)state;
    struct program program = start();
    char *text = top_once(program.pid, NULL, NULL);
    assert_contains(line_with(text, "keep"), "97.7 KiB"); /* 500 of 200 */
    assert_contains(line_with(text, "keep"), "500  keep  top.c:");
    assert_contains(text, "running for");
    assert_contains(text, "process ");
    free(text);
    text = top_once(program.pid, "--json", NULL);
    json_t *object = json_loads(text, 0, NULL);
    free(text);
    const json_t *context = json_array_get(json_object_get(object, "contexts"), 0);
    assert_string_equal(json_string_value(json_object_get(context, "function")), "keep");
    assert_int_equal(json_integer_value(json_object_get(context, "live_bytes")), 500 * 200);
    assert_int_equal(json_integer_value(json_object_get(context, "live_allocations")), 500);
    assert_true(json_is_number(json_object_get(context, "allocations_per_second")));
    assert_true(json_is_true(json_object_get(object, "running")));
    json_decref(object);
    make_file(&program, "grow");
    wait_for_file(&program, "grown");
    text = top_once(program.profile, "--sort", "blocks");
    assert_contains(line_with(text, "grow_more"), "97.7 KiB"); /* 100 of 1000 */
    assert_true(strstr(text, "keep") < strstr(text, "grow_more"));
    free(text);
    make_file(&program, "churn");
    wait_for_file(&program, "churned");
    text = top_once(program.profile, "--threads", NULL);
    assert_contains(line_with(text, "stepper"), " 300 "); /* 100 and 200 */
    free(text);
    text = top_once(program.profile, "--filter", "GROW_");
    assert_contains(text, "grow_more");
    assert_lacks(text, "keep");
    free(text);
    text = top_once(program.profile, "--filter", "STEPS"); /* neither the function nor its caller */
    assert_contains(text, "grow_more");
    assert_lacks(text, "  keep  ");
    free(text);
    text = top_once(program.profile, "--ignore", "^steps$");
    assert_contains(text, "  keep  ");
    assert_lacks(text, "unknown call stack");
    assert_lacks(text, "grow_more");
    assert_contains(text, "by --ignore or --focus");
    free(text);
    text = top_once(program.profile, "--focus", "^steps$");
    assert_contains(text, "grow_more");
    assert_lacks(text, "  keep  ");
    assert_lacks(text, "unknown call stack");
    free(text);
    text = top_once(program.profile, "--top", "1");
    assert_int_equal(count_lines_with(text, "  top.c:"), 1);
    assert_contains(text, "more (--top)");
    free(text);
    text = top_once(program.profile, "--filter", "nobody");
    assert_contains(text, "no call stack matches the filter");
    free(text);
    end(&program);
}

static void assert_last_numbers(const char *profile)
{
    char *text = top_once(profile, NULL, NULL);
    assert_contains(text, "ended with exit code 3");
    assert_contains(line_with(text, "keep"), "97.7 KiB");
    assert_contains(text, "- allocations/s");
    free(text);
}

/* After the end; as the process leaves its file, and as `heapwise record` packs it. */
static void test_ended(void **state)
{
    (void)state;
    struct program program = start();
    make_file(&program, "grow");
    make_file(&program, "churn");
    make_file(&program, "end");
    struct run_result result = run_finish(&program.process, 60);
    assert_exit(&result, 3, "the program");
    run_result_free(&result);
    assert_last_numbers(program.profile);
    char *packed = join_path(program.directory, "packed.hwprof");
    result = heapwise(
        (const char *const[]){"record", "-q", "-o", packed, "--", need_program("top"), program.directory, NULL}, NULL);
    assert_exit(&result, 3, "heapwise record");
    run_result_free(&result);
    assert_last_numbers(packed);
    struct stat status;
    assert_int_equal(stat(program.profile, &status), 0);
    assert_int_equal(truncate(program.profile, status.st_size * 3 / 4), 0);
    result = heapwise((const char *const[]){"top", "--once", program.profile, NULL}, NULL);
    assert_exit(&result, 2, "heapwise top on a file that is cut short");
    assert_contains(result.err, "cut short");
    run_result_free(&result);
    free(packed);
    remove_directory(program.directory);
    free(program.profile);
}

static void test_refused(void **state)
{
    (void)state;
    char *broken = join_path(test_directory, "broken.hwprof"), pid[16];
    FILE *file = fopen(broken, "w");
    assert_non_null(file);
    fputs("no profile", file);
    fclose(file);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_refused((const char *const[]){"top", NULL}, "which PID or FILE?");
    assert_refused((const char *const[]){"top", "--once", "a", "b", NULL}, "one process or profile at a time");
    assert_refused((const char *const[]){"top", "--once", "missing.hwprof", NULL}, "cannot open 'missing.hwprof'");
    assert_refused((const char *const[]){"top", "--once", test_directory, NULL}, "is not a file");
    assert_refused((const char *const[]){"top", "--once", broken, NULL}, "broken.hwprof");
    assert_refused((const char *const[]){"top", "--once", "999999999", NULL}, "there is no process");
    assert_refused((const char *const[]){"top", "--once", pid, NULL}, "not");
    assert_refused((const char *const[]){"top", "--interval", "0", "--once", pid, NULL}, "0.1 to 3600");
    assert_refused((const char *const[]){"top", "--sort", "size", "--once", pid, NULL}, "live, growth");
    assert_refused((const char *const[]){"top", "--json", pid, NULL}, "--json is for --once");
    assert_refused((const char *const[]){"top", pid, NULL}, "not both a terminal");
    free(broken);
}

/* ---- a terminal ---- */

#define COLUMNS 80
#define LINES   24

struct terminal {
    int file;
    pid_t child;
    char cell[LINES][COLUMNS + 1]; /* '?' for what is not ASCII */
    int line, column;
    char sequence[32];
    size_t length; /* of the escape sequence so far */
};

static void open_terminal(struct terminal *terminal, const char *const argv[])
{
    const struct winsize size = {.ws_row = LINES, .ws_col = COLUMNS};
    memset(terminal, 0, sizeof *terminal);
    for (int i = 0; i < LINES; i++)
        memset(terminal->cell[i], ' ', COLUMNS);
    terminal->child = forkpty(&terminal->file, NULL, NULL, &size);
    assert_true(terminal->child >= 0);
    if (terminal->child == 0) {
        setenv("TERM", "vt100", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("COLUMNS");
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
}

static void erase(struct terminal *terminal, int from, int to)
{
    for (int i = from; i < to; i++)
        terminal->cell[i / COLUMNS][i % COLUMNS] = ' ';
}

static void obey(struct terminal *terminal, char command)
{
    const int at = terminal->line * COLUMNS + terminal->column;
    int one = 0, two = 0;
    sscanf(terminal->sequence + 2, "%d;%d", &one, &two);
    const int times = one ? one : 1;
    switch (command) {
    case 'H':
        terminal->line = (one ? one : 1) - 1;
        terminal->column = (two ? two : 1) - 1;
        break;
    case 'A':
        terminal->line -= times;
        break;
    case 'B':
        terminal->line += times;
        break;
    case 'C':
        terminal->column += times;
        break;
    case 'D':
        terminal->column -= times;
        break;
    case 'J':
        erase(terminal, one == 2 ? 0 : one == 1 ? 0 : at, one == 1 ? at + 1 : LINES * COLUMNS);
        break;
    case 'K':
        erase(terminal, one == 1 ? terminal->line * COLUMNS : at,
              one == 1 ? at + 1 : (terminal->line + 1) * COLUMNS);
        break;
    default:
        break;
    }
    terminal->line = terminal->line < 0 ? 0 : terminal->line >= LINES ? LINES - 1 : terminal->line;
    terminal->column = terminal->column < 0 ? 0 : terminal->column > COLUMNS ? COLUMNS : terminal->column;
}

static void take_byte(struct terminal *terminal, unsigned char byte)
{
    if (terminal->length) {
        terminal->sequence[terminal->length++] = (char)byte;
        terminal->sequence[terminal->length] = '\0';
        const bool csi = terminal->sequence[1] == '[';
        if (csi && terminal->length > 2 && byte >= 0x40)
            obey(terminal, (char)byte);
        if (csi ? (terminal->length > 2 && byte >= 0x40) : !strchr("()", terminal->sequence[1]) || terminal->length > 2)
            terminal->length = 0;
        if (terminal->length + 2 > sizeof terminal->sequence)
            terminal->length = 0;
    } else if (byte == 27) {
        terminal->sequence[terminal->length++] = (char)byte;
    } else if (byte == '\r') {
        terminal->column = 0;
    } else if (byte == '\n') {
        terminal->line += terminal->line + 1 < LINES;
    } else if (byte == '\b') {
        terminal->column -= terminal->column > 0;
    } else if (byte >= 32 && (byte & 0xc0) != 0x80) {
        if (terminal->column >= COLUMNS) {
            terminal->column = 0;
            terminal->line += terminal->line + 1 < LINES;
        }
        terminal->cell[terminal->line][terminal->column++] = byte < 128 ? (char)byte : '?';
    }
}

static const char *screen_of(const struct terminal *terminal)
{
    static char text[LINES * (COLUMNS + 1) + 1];
    size_t used = 0;
    for (int i = 0; i < LINES; i++) {
        memcpy(text + used, terminal->cell[i], COLUMNS);
        used += COLUMNS;
        text[used++] = '\n';
    }
    text[used] = '\0';
    return text;
}

/* Follows the terminal until it shows PART (or, UNTIL false, no longer does). */
static void wait_for_text(struct terminal *terminal, const char *part, bool until)
{
    unsigned char bytes[4096];
    for (int i = 0; i < 600 && (strstr(screen_of(terminal), part) != NULL) != until; i++) {
        if (poll(&(struct pollfd){.fd = terminal->file, .events = POLLIN}, 1, 100) <= 0)
            continue;
        const ssize_t got = read(terminal->file, bytes, sizeof bytes);
        for (ssize_t k = 0; k < got; k++)
            take_byte(terminal, bytes[k]);
        if (got <= 0)
            break;
    }
    if ((strstr(screen_of(terminal), part) != NULL) != until)
        fail_msg("\"%s\" is %sshown:\n%s", part, until ? "not " : "", screen_of(terminal));
}

static void press(const struct terminal *terminal, const char *keys)
{
    assert_int_equal(write(terminal->file, keys, strlen(keys)), strlen(keys));
}

static int wait_for_end(struct terminal *terminal)
{
    char bytes[4096];
    int status = 0;
    while (read(terminal->file, bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(waitpid(terminal->child, &status, 0), terminal->child);
    close(terminal->file);
    return status;
}

static void test_terminal(void **state)
{
    (void)state;
    struct program program = start();
    struct terminal terminal;
    open_terminal(&terminal,
                  (const char *const[]){heapwise_path(), "top", "--interval", "0.1", program.pid, NULL});
    wait_for_text(&terminal, "keep  top.c:", true);
    assert_contains(line_with(screen_of(&terminal), "keep  top.c:"), "97.7 KiB");
    press(&terminal, "m");
    wait_for_text(&terminal, "SINCE MARK", true);
    make_file(&program, "grow");
    wait_for_text(&terminal, "grow_more  top.c:", true);
    wait_for_text(&terminal, "+97.7 KiB", true);
    press(&terminal, "g"); /* what grew most is first */
    wait_for_text(&terminal, "keep  top.c:", false);
    press(&terminal, "\n");
    wait_for_text(&terminal, "100 allocations so far", true);
    wait_for_text(&terminal, "steps", true);
    press(&terminal, "\033");
    wait_for_text(&terminal, "SINCE MARK", true);
    press(&terminal, "u");
    wait_for_text(&terminal, "SINCE MARK", false);
    press(&terminal, "l/KEEP\n");
    wait_for_text(&terminal, "keep  top.c:", true);
    wait_for_text(&terminal, "grow_more", false);
    press(&terminal, "t");
    wait_for_text(&terminal, "stepper", true);
    press(&terminal, "t?");
    wait_for_text(&terminal, "sort by live bytes", true);
    press(&terminal, "\033p");
    wait_for_text(&terminal, "PAUSED", true);
    press(&terminal, "p");
    make_file(&program, "churn");
    make_file(&program, "end");
    wait_for_text(&terminal, "ended with exit code 3", true);
    press(&terminal, "q");
    assert_int_equal(wait_for_end(&terminal), 0);
    end(&program);
}

/* The process executes another program: a table that is open goes on with the new profile. */
static void test_exec(void **state)
{
    (void)state;
    struct program program = start_next("next");
    struct program next = {.directory = join_path(program.directory, "next")};
    struct terminal terminal;
    open_terminal(&terminal,
                  (const char *const[]){heapwise_path(), "top", "--interval", "0.1", program.profile, NULL});
    wait_for_text(&terminal, "keep  top.c:", true);
    make_file(&program, "exec");
    wait_for_text(&terminal, "the process executed another program", true);
    wait_for_file(&next, "kept");
    make_file(&next, "grow");
    wait_for_text(&terminal, "grow_more  top.c:", true);
    assert_contains(screen_of(&terminal), "running for");
    char *text = top_once(program.profile, NULL, NULL);
    assert_contains(text, "became another program by exec after");
    assert_lacks(text, "grow_more");
    free(text);
    text = top_once(program.pid, NULL, NULL);
    assert_contains(text, "running for");
    assert_contains(text, "grow_more");
    free(text);
    make_file(&next, "churn");
    make_file(&next, "end");
    wait_for_text(&terminal, "ended with exit code 3", true);
    press(&terminal, "q");
    assert_int_equal(wait_for_end(&terminal), 0);
    free(next.directory);
    end(&program);
}

/* A terminal that cannot place text, and an output that takes none. */
static void test_no_output(void **state)
{
    (void)state;
    struct program program = start();
    struct terminal terminal;
    open_terminal(&terminal,
                  (const char *const[]){"/usr/bin/env", "TERM=dumb", heapwise_path(), "top", program.pid, NULL});
    wait_for_text(&terminal, "(TERM=dumb) cannot put text at a place", true);
    const int status = wait_for_end(&terminal);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    if (access("/dev/full", W_OK) != 0) {
        end(&program);
        SKIP("/dev/full cannot be written to");
    }
    char command[8800];
    snprintf(command, sizeof command, "'%s' top --once --interval 0.1 %s > /dev/full", heapwise_path(), program.pid);
    struct run_result result = run((const char *const[]){"/bin/sh", "-c", command, NULL}, NULL);
    assert_exit(&result, 2, "heapwise top > /dev/full");
    assert_int_equal(count_lines_with(result.err, "cannot write"), 1);
    run_result_free(&result);
    end(&program);
}

/* A narrow and low terminal, a resize, a signal. */
static void test_small(void **state)
{
    (void)state;
    struct program program = start();
    struct terminal terminal;
    open_terminal(&terminal,
                  (const char *const[]){heapwise_path(), "top", "--interval", "0.1", program.profile, NULL});
    wait_for_text(&terminal, "keep", true);
    for (unsigned short lines = 1, columns = 1; lines <= LINES; lines = (unsigned short)(lines + 7), columns += 23) {
        assert_int_equal(ioctl(terminal.file, TIOCSWINSZ, &(struct winsize){.ws_row = lines, .ws_col = columns}), 0);
        usleep(300000);
    }
    assert_int_equal(ioctl(terminal.file, TIOCSWINSZ, &(struct winsize){.ws_row = LINES, .ws_col = COLUMNS}), 0);
    wait_for_text(&terminal, "97.7 KiB", true);
    kill(terminal.child, SIGTERM);
    assert_int_equal(wait_for_end(&terminal), 0);
    end(&program);
}

TEST_LIST_WITH(make_test_directory, remove_test_directory, cmocka_unit_test(test_numbers), cmocka_unit_test(test_ended), cmocka_unit_test(test_refused),
          cmocka_unit_test(test_terminal), cmocka_unit_test(test_exec), cmocka_unit_test(test_no_output),
               cmocka_unit_test(test_small))
