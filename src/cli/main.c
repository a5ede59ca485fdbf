/* main.c - the command `heapwise`: finds the verb and hands over. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/pager.h"
#include "cli/suggest.h"

const struct hw_verb hw_verbs[] = {
    {"record", hw_verb_record, "run a program and record how it uses its heap"},
    {"report", hw_verb_report, "show a profile: where the memory went"},
    {"view", hw_verb_view, "write a page that shows a profile in a browser"},
    {"merge", hw_verb_merge, "combine profiles of many runs into one"},
    {"leaks", hw_verb_leaks, "show blocks that the program could not reach any more"},
    {"fields", hw_verb_fields, "show how structs lie in cache lines, and better layouts"},
    {"diff", hw_verb_diff, "show what changed from one profile to another"},
    {"check", hw_verb_check, "check whether a profile is within limits, for continuous integration"},
    {"export", hw_verb_export, "write a profile in a format of other tools"},
    {"import", hw_verb_import, "join samples of perf with the profile of the same run"},
    {"cc", hw_verb_cc, "compile C so that every access to the heap is counted"},
    {"c++", hw_verb_cc, "the same for C++"},
    {"attach", hw_verb_attach, "begin to record a process that runs already"},
    {"detach", hw_verb_detach, "end that; the process continues as before"},
    {"dump", hw_verb_dump, "write a profile of a recorded process while it runs"},
    {"start", hw_verb_start, "start counting in a process recorded with --paused"},
    {"stop", hw_verb_stop, "stop counting, until the next start"},
    {"top", hw_verb_top, "show the heap of a recorded process while it runs"},
    {"allocators", hw_verb_allocators, "run a program under every installed allocator and compare them"},
    {"tune", hw_verb_tune, "find the allocator and the settings that are best for a program"},
    {"compare", hw_verb_compare, "run two commands in turn: is one slower, or larger?"},
    {"run", hw_verb_run, "run a program with an allocator and settings from a file"},
    {"doctor", hw_verb_doctor, "show what works on this machine and what does not, and why"},
};

const size_t hw_verb_count = sizeof hw_verbs / sizeof *hw_verbs;

static void print_usage(FILE *out)
{
    fputs("Usage: heapwise VERB [OPTION...] [ARGUMENT...]\n"
          "\n"
          "Shows how a native program uses its heap.\n"
          "\n"
          "    heapwise record -- ./program    run it and write a profile\n"
          "    heapwise FILE.hwprof            read the profile\n"
          "\n"
          "Verbs:\n",
          out);
    for (size_t i = 0; i < hw_verb_count; i++)
        fprintf(out, "    %-10s %s\n", hw_verbs[i].name, hw_verbs[i].summary);
    fputs("\n"
          "heapwise VERB --help explains a verb; heapwise --version prints the version.\n",
          out);
}

static const struct hw_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < hw_verb_count; i++) {
        if (strcmp(hw_verbs[i].name, name) == 0)
            return &hw_verbs[i];
    }
    return NULL;
}

/* ---- what is no verb ---- */

/* Words of other tools, separated by spaces. */
static const struct {
    const char *words, *instead;
} other_words[] = {
#define HW_WORD(words_, instead_) {words_, instead_},
#include "cli/other_words.def"
};

static bool has_word(const char *words, const char *word)
{
    const size_t size = strlen(word);
    while (*words) {
        const size_t length = strcspn(words, " ");
        if (length == size && !strncmp(words, word, size))
            return true;
        words += length + strspn(words + length, " ");
    }
    return false;
}

static const char *find_other(const char *word)
{
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (has_word(other_words[i].words, word))
            return other_words[i].instead;
    return NULL;
}

static const struct hw_verb *nearest_verb(const char *word)
{
    const struct hw_verb *nearest = NULL;
    size_t best = hw_word_slip(word) + 1;
    for (size_t i = 0; i < hw_verb_count; i++) {
        const size_t distance = hw_word_distance(word, strlen(word), hw_verbs[i].name);
        if (distance < best && distance < strlen(word)) {
            best = distance;
            nearest = &hw_verbs[i];
        }
    }
    return nearest;
}

enum what { NO_FILE, A_PROGRAM, ANOTHER_FILE };

/* What the file PATH is: an executable that can be recorded, or one that may be a profile. */
static enum what what_is(const char *path)
{
    struct stat status;
    char begin[4] = "";
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NO_FILE;
    FILE *file = fopen(path, "re");
    const size_t got = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    const bool program = (got == 4 && !memcmp(begin, "\177ELF", 4)) || (got >= 2 && !memcmp(begin, "#!", 2));
    return program && access(path, X_OK) == 0 ? A_PROGRAM : ANOTHER_FILE;
}

/* Whether a shell would find a program NAME. */
static bool is_command(const char *name)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
        const int size = (int)strcspn(at, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", size, at, name) < (int)sizeof file && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

static bool names_profile(const char *word)
{
    static const char ending[] = ".hwprof";
    const size_t size = strlen(word);
    return size > sizeof ending - 1 && !strcmp(word + size - (sizeof ending - 1), ending);
}

static void say_unknown(const char *word)
{
    char quoted[256];
    const struct hw_verb *nearest = nearest_verb(word);
    const char *instead = find_other(word);
    if (*word == '-')
        hw_say("unknown option '%s': options come after the verb, as in heapwise report --json FILE (see heapwise "
               "--help)",
               word);
    else if (instead)
        hw_say("unknown verb '%s': use heapwise %s", word, instead);
    else if (nearest)
        hw_say("unknown verb '%s': did you mean %s? (%s)", word, nearest->name, nearest->summary);
    else if (what_is(word) == A_PROGRAM || (!strchr(word, '/') && is_command(word)))
        hw_say("unknown verb '%s': to record the program, use heapwise record -- %s", word,
               hw_shell_word(word, quoted, sizeof quoted));
    else
        hw_say("unknown verb '%s' (heapwise --help shows all)", word);
}

/* Files instead of a verb are reported. */
static bool is_report(const char *word)
{
    return *word && *word != '-' && !find_other(word) &&
           (what_is(word) == ANOTHER_FILE || (names_profile(word) && what_is(word) != A_PROGRAM));
}

static int report_files(int argc, char **argv)
{
    static char verb[] = "report";
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (!arguments) {
        hw_say("report: not enough memory");
        return HW_VERB_USAGE;
    }
    arguments[0] = verb;
    for (int i = 1; i < argc; i++)
        arguments[i] = argv[i];
    const int code = hw_verb_report(argc, arguments);
    free(arguments);
    return code;
}

/* A full disk or a closed pipe must not look like success. A pager that was left early is another thing. */
static int flushed(int code)
{
    if (hw_pager_runs()) {
        hw_pager_end();
        return code;
    }
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno != EPIPE)
        hw_say("cannot write the output: %s", strerror(errno));
    return code == HW_VERB_FINE ? HW_VERB_USAGE : code;
}

static int help_of(const struct hw_verb *verb)
{
    char name[32], option[] = "--help";
    snprintf(name, sizeof name, "%s", verb->name);
    char *arguments[] = {name, option, NULL};
    return flushed(verb->run(2, arguments));
}

static void on_file_too_large(int number)
{
    (void)number;
}

/* A write beyond the limit on file sizes fails with a reason instead of killing. Programs that are started have the
 * default again: no handler outlives exec. */
static void survive_file_limit(void)
{
    const struct sigaction action = {.sa_handler = on_file_too_large, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
    survive_file_limit();
    const char *word = argc > 1 ? argv[1] : "";
    const struct hw_verb *verb = find_verb(word);
    if (verb) {
        int code = verb->run(argc - 1, argv + 1);
        return verb->run == hw_verb_record ? code : flushed(code); /* record: the program's own code, whatever else */
    }
    if (strcmp(word, "complete") == 0)
        return flushed(hw_verb_complete(argc - 1, argv + 1));
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0) {
        puts("heapwise " HEAPWISE_VERSION);
        return flushed(HW_VERB_FINE);
    }
    const bool help = strcmp(word, "help") == 0, more = help && argc > 2 && *argv[2] != '-';
    if (more && (verb = find_verb(argv[2])))
        return help_of(verb);
    if (!more && (help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        print_usage(stdout);
        return flushed(HW_VERB_FINE);
    }
    if (!*word)
        print_usage(stderr);
    else if (is_report(word))
        return flushed(report_files(argc, argv));
    else
        say_unknown(more ? argv[2] : word);
    return HW_VERB_USAGE;
}
