/* main.c - the command `heapwise`: finds the verb and hands over. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct hw_verb hw_verbs[] = {
    {"record", hw_verb_record, "run a program and record how it uses its heap"},
    {"report", hw_verb_report, "show a profile: where the memory went"},
    {"view", hw_verb_view, "write a page that shows a profile in a browser"},
    {"merge", hw_verb_merge, "combine profiles of many runs into one"},
    {"fields", hw_verb_fields, "show how structs lie in cache lines, and better layouts"},
    {"diff", hw_verb_diff, "show what changed from one profile to another"},
    {"check", hw_verb_check, "check whether a profile is within limits, for continuous integration"},
    {"export", hw_verb_export, "write a profile in a format of other tools"},
    {"cc", hw_verb_cc, "compile C so that every access to the heap is counted"},
    {"c++", hw_verb_cc, "the same for C++"},
    {"dump", hw_verb_dump, "write a profile of a recorded process while it runs"},
    {"allocators", hw_verb_allocators, "run a program under every installed allocator and compare them"},
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
          "    heapwise report FILE.hwprof     read the profile\n"
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

/* A full disk or a closed pipe must not look like success. */
static int flushed(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno != EPIPE)
        hw_say("cannot write the output: %s", strerror(errno));
    return code == HW_VERB_FINE ? HW_VERB_USAGE : code;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    const struct hw_verb *verb = find_verb(word);
    if (verb) {
        int code = verb->run(argc - 1, argv + 1);
        return verb->run == hw_verb_record ? code : flushed(code); /* record: the program's own code, whatever else */
    }
    if (strcmp(word, "complete") == 0)
        return flushed(hw_verb_complete(argc - 1, argv + 1));
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        puts("heapwise " HEAPWISE_VERSION);
        return flushed(HW_VERB_FINE);
    }
    bool help = strcmp(word, "help") == 0;
    if (help && argc > 2 && (verb = find_verb(argv[2]))) {
        char option[] = "--help";
        char *arguments[] = {argv[2], option, NULL};
        return flushed(verb->run(2, arguments));
    }
    if (help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_usage(stdout);
        return flushed(HW_VERB_FINE);
    }
    if (*word)
        hw_say("unknown %s '%s'", *word == '-' ? "option" : "verb", word);
    print_usage(stderr);
    return HW_VERB_USAGE;
}
