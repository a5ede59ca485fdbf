/* verb_complete.c - heapwise complete: what can follow on a command line, for the completions of shells (completions/).
 *
 *     heapwise complete WORD...     the words after "heapwise"; the last one is being typed and may be empty
 *
 * Prints a line for each candidate, with a tab and a description where there is one; or one line that leaves it to the
 * shell: ":files", ":directories", ":command N" (a command line of its own begins at word N, from 1).
 *
 * Options are taken from the verbs' own help, so that they are complete by themselves; only what values they take is in
 * a table here. */
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static const char formats[] =
#define HW_FORMAT(name, ...) name " "
#include "cli/export_formats.def"
    ;
static const char measures[] =
#define HW_BOTH(id, key, ...)  key " "
#define HW_VALUE(id, key, ...) key " "
#include "report/view/measures.def"
    ;
static const char lists[] =
#define HW_BOTH(id, key, ...) key " "
#define HW_LIST(id, key, ...) key " "
#include "report/view/measures.def"
    ;
static const char sections[] =
    "summary findings fields functions timeline memory access globals sampled perf allocator not-observed "
#define HW_BOTH(id, key, ...) key " "
#define HW_LIST(id, key, ...) key " "
#include "report/view/measures.def"
    ;

static const char groups[] =
#define HW_BY(id, key, ...) key " "
#include "report/view/groups.def"
    ;

/* The first entry that fits counts. Values are words, or a line for the shell; options that are not here take what
 * cannot be guessed. */
static const struct {
    const char *verb; /* NULL: any */
    const char *option, *values;
} values[] = {
    {"record", "--mode", "heap allocator"},
    {"record", "--leaks", "mapped"},
    {"record", "--contents", "fill"},
    {"record", "--valgrind-requests", "answer"},
    {"compare", "--for", "time memory both"},
    {"tune", "--for", "time memory both throughput latency p50 p99 p999"},
    {"tune", "--stop", "TERM INT HUP QUIT"},
    {"export", "--format", formats},
    {"export", "--value", measures},
    {"export", "--version", "3 4 5"},
    {"export", "--module", ":files"},
    {"diff", "--sort", measures},
    {"run", "--config", ":files"},
    {"run", "-c", ":files"},
    {"run", "--settings", ":directories"},
    {"run", "--show", "shell systemd docker cmake"},
    {"top", "--sort", "live growth allocations churn blocks"},
    {"report", "--sort", lists},
    {"report", "--section", sections},
    {"report", "--by", groups},
    {"report", "--tree", "top-down bottom-up"},
    {"report", "--value", measures},
    {"cc", "--granule", "64 8 4"},
    {"c++", "--granule", "64 8 4"},
    {"cc", "--compiler", "clang gcc"},
    {"c++", "--compiler", "clang++ g++"},
    {NULL, "--color", "auto always never"},
    {NULL, "--sysroot", ":directories"},
    {NULL, "--output", ":files"},
    {NULL, "-o", ":files"},
    {NULL, "--binary", ":files"},
    {NULL, "--baseline", ":files"},
    {NULL, "--inputs", ":files"},
    {NULL, "--facts", ":files"},
    {NULL, "--ignore-list", ":files"},
    {NULL, "--profile-output", ":files"},
};

/* PREFIX and the words of LIST that go on as TYPED does. */
static void print_words(const char *prefix, const char *list, const char *typed)
{
    while (*list) {
        const size_t size = strcspn(list, " ");
        if (!strncmp(list, typed, strlen(typed) < size ? strlen(typed) : size) && strlen(typed) <= size)
            printf("%s%.*s\n", prefix, (int)size, list);
        list += size;
        list += strspn(list, " ");
    }
}

/* NAME (SIZE bytes): the option; PREFIX: what is typed of the word before the value. */
static void print_values(const char *verb, const char *name, size_t size, const char *prefix, const char *typed)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if ((values[i].verb && strcmp(values[i].verb, verb)) || strlen(values[i].option) != size ||
            strncmp(values[i].option, name, size))
            continue;
        if (*values[i].values == ':')
            puts(values[i].values);
        else
            print_words(prefix, values[i].values, typed);
        return;
    }
}

/* ---- options: from the help ---- */

/* What `heapwise VERB --help` prints, to be freed; NULL when there is no memory. */
static char *help_of(const struct hw_verb *verb)
{
    char *text = NULL, name[32], option[] = "--help";
    size_t size = 0;
    FILE *output = stdout, *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    snprintf(name, sizeof name, "%s", verb->name);
    char *arguments[] = {name, option, NULL};
    stdout = stream;
    verb->run(2, arguments);
    stdout = output;
    return fclose(stream) == 0 ? text : NULL;
}

struct option_line {
    const char *name[2]; /* "-o", "--output" */
    size_t size[2];
    bool value;        /* the next word */
    const char *about; /* up to the end of the line */
};

static size_t option_size(const char *text)
{
    size_t size = strspn(text, "-");
    while (isalnum((unsigned char)text[size]) || text[size] == '-')
        size++;
    return size;
}

/* "  -o, --output OUT write to OUT", "      --mode=MODE   what": false for a line of another kind. */
static bool read_line(const char *line, struct option_line *option)
{
    const size_t indent = strspn(line, " ");
    const char *at = line + indent;
    *option = (struct option_line){0};
    if (indent < 2 || indent > 8 || *at != '-' || at[1] == ' ' || at[1] == '\n')
        return false;
    for (int i = 0; i < 2 && *at == '-'; i++) {
        option->name[i] = at;
        option->size[i] = option_size(at);
        at += option->size[i];
        if (*at != ',')
            break;
        at += 1 + strspn(at + 1, " ");
    }
    option->value = *at == '=' || (*at == ' ' && (isupper((unsigned char)at[1]) || at[1] == '['));
    if (*at == '=' || *at == '[')
        at += strcspn(at, " \n");
    else if (option->value)
        at += 1 + strcspn(at + 1, " \n");
    at += strspn(at, " ");
    option->about = *at == '\n' && at[1] == ' ' ? at + 1 + strspn(at + 1, " ") : at;
    return true;
}

static void print_options(const char *help, const char *typed)
{
    for (const char *line = help; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        struct option_line option;
        if (!read_line(line, &option))
            continue;
        for (int i = 0; i < 2; i++) {
            const bool whole = option.size[i] == 2 && typed[1] == '-';
            if (!option.size[i] || whole || strncmp(option.name[i], typed, strlen(typed)) ||
                strlen(typed) > option.size[i])
                continue;
            printf("%.*s\t%.*s\n", (int)option.size[i], option.name[i], (int)strcspn(option.about, "\n"), option.about);
        }
    }
}

/* Whether WORD is an option whose value is the next word. */
static bool takes_next(const char *help, const char *word)
{
    if (*word != '-' || strchr(word, '='))
        return false;
    for (const char *line = help; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        struct option_line option;
        if (!read_line(line, &option) || !option.value)
            continue;
        for (int i = 0; i < 2; i++)
            if (option.size[i] == strlen(word) && !strncmp(option.name[i], word, option.size[i]))
                return true;
    }
    return false;
}

/* ---- processes ---- */

static bool is_recorded(const char *pid)
{
    char path[300], *line = NULL;
    size_t capacity = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "r");
    while (maps && !found && getline(&line, &capacity, maps) > 0)
        found = strstr(line, "/libheapwise.so") != NULL;
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

/* Those that have the runtime, with their names. */
static void print_processes(const char *typed)
{
    DIR *directory = opendir("/proc");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[300], name[64] = "";
        if (!isdigit((unsigned char)entry->d_name[0]) || strncmp(entry->d_name, typed, strlen(typed)) ||
            !is_recorded(entry->d_name))
            continue;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = '\0';
        if (file)
            fclose(file);
        for (char *at = name; *at; at++)
            if ((unsigned char)*at < 0x20)
                *at = '?';
        printf("%s\t%s\n", entry->d_name, name);
    }
    if (directory)
        closedir(directory);
}

/* ---- the verb ---- */

static const struct hw_verb *find(const char *name)
{
    for (size_t i = 0; i < hw_verb_count; i++)
        if (!strcmp(hw_verbs[i].name, name))
            return &hw_verbs[i];
    return NULL;
}

static void complete_verb(const char *typed)
{
    for (size_t i = 0; i < hw_verb_count; i++)
        if (!strncmp(hw_verbs[i].name, typed, strlen(typed)))
            printf("%s\t%s\n", hw_verbs[i].name, hw_verbs[i].summary);
    print_words("", "help --help --version", typed);
}

/* The word, from 1, at which the command begins that a verb runs; 0 if the word to complete is before it. */
static int command_of(const char *help, char **words, int count)
{
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--"))
            return i + 1 < count ? i + 2 : 0;
        if (takes_next(help, words[i]))
            i++;
        else if (*words[i] != '-')
            return i + 1;
    }
    return 0;
}

static void complete_arguments(const struct hw_verb *verb, const char *help, char **words, int count)
{
    const char *typed = words[count - 1], *equals = strchr(typed, '=');
    const bool runs = !strcmp(verb->name, "record") || !strcmp(verb->name, "allocators");
    const int command = runs ? command_of(help, words, count) : 0;
    if (command && !(command == count && *typed == '-'))
        printf(":command %d\n", command);
    else if (count > 2 && takes_next(help, words[count - 2]))
        print_values(verb->name, words[count - 2], strlen(words[count - 2]), "", typed);
    else if (*typed == '-' && equals) {
        char prefix[256];
        snprintf(prefix, sizeof prefix, "%.*s", (int)(equals + 1 - typed), typed);
        print_values(verb->name, typed, (size_t)(equals - typed), prefix, equals + 1);
    } else if (*typed == '-')
        print_options(help, typed);
    else if (!strcmp(verb->name, "dump") || !strcmp(verb->name, "start") || !strcmp(verb->name, "stop"))
        print_processes(typed);
    else if (!strcmp(verb->name, "import") && count == 2)
        puts("perf\tsamples of Linux's perf");
    else if (runs)
        printf(":command %d\n", count);
    else if (strcmp(verb->name, "doctor"))
        puts(":files");
}

int hw_verb_complete(int argc, char **argv)
{
    char **words = argv + 1;
    const int count = argc - 1;
    if (count < 1)
        return HW_VERB_USAGE;
    const bool help_asked = !strcmp(words[0], "help");
    if (count == 1 || (help_asked && count == 2)) {
        complete_verb(words[count - 1]);
        return HW_VERB_FINE;
    }
    const struct hw_verb *verb = find(words[0]);
    char *help = verb ? help_of(verb) : NULL;
    if (help)
        complete_arguments(verb, help, words, count);
    free(help);
    return HW_VERB_FINE;
}
