/* pager.c - see pager.h. */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

#define WORDS_MOST 16

static pid_t pager; /* 0: none */

static const char *chosen(void)
{
    static const char *const variables[] = {"HEAPWISE_PAGER", "PAGER"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value)
            return value;
    }
    return "less";
}

/* COMMAND as words, in WORDS; it is changed. False: a shell has to read it. */
static bool split(char *command, char *words[WORDS_MOST + 1])
{
    size_t count = 0;
    if (strpbrk(command, "|&;<>()$`\\\"'*?[#~=%{}\n"))
        return false;
    for (char *word = strtok(command, " \t"); word; word = strtok(NULL, " \t")) {
        if (count == WORDS_MOST)
            return false;
        words[count++] = word;
    }
    words[count] = NULL;
    return count > 0;
}

/* In the child: becomes the pager, or writes errno to REPORT. */
static void become(const char *command, int input, int report)
{
    char *words[WORDS_MOST + 1], copy[1024], shell[] = "sh", option[] = "-c";
    char *const with_shell[] = {shell, option, copy, NULL};
    dup2(input, STDIN_FILENO);
    signal(SIGPIPE, SIG_DFL);
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    snprintf(copy, sizeof copy, "%s", command);
    if (split(copy, words)) {
        execvp(words[0], words);
    } else {
        snprintf(copy, sizeof copy, "%s", command);
        execvp(shell, with_shell);
    }
    const int problem = errno;
    ssize_t written = write(report, &problem, sizeof problem);
    _exit(written > 0 ? 126 : 127);
}

void hw_pager_start(void)
{
    const char *command = chosen();
    int text[2], report[2], problem;
    if (!isatty(STDOUT_FILENO) || !command[strspn(command, " \t")] || !strcmp(command, "cat") || strlen(command) > 1000)
        return;
    if (pipe2(text, O_CLOEXEC) < 0)
        return;
    if (pipe2(report, O_CLOEXEC) < 0) {
        close(text[0]);
        close(text[1]);
        return;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        become(command, text[0], report[1]);
    close(text[0]);
    close(report[1]);
    const bool started =
        child > 0 && read(report[0], &problem, sizeof problem) == 0 && dup2(text[1], STDOUT_FILENO) >= 0;
    close(report[0]);
    close(text[1]);
    if (started) {
        pager = child;
        signal(SIGPIPE, SIG_IGN); /* whoever has read enough leaves */
    } else if (child > 0) {
        waitpid(child, NULL, 0);
    }
}

bool hw_pager_runs(void)
{
    return pager > 0;
}

void hw_pager_end(void)
{
    if (!pager)
        return;
    fflush(stdout); /* writing to a pipe fails only when its reader has left */
    close(STDOUT_FILENO);
    signal(SIGINT, SIG_IGN); /* is the pager's to take */
    while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
        continue;
    pager = 0;
    clearerr(stdout);
}
