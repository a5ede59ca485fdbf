/* verb_view.c - heapwise view: a profile as a page. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/order.h"
#include "cli/open_view.h"
#include "profile/container/write.h"
#include "report/buffer.h"
#include "report/page/page_data.h"

static const char help[] = "Usage: heapwise view [OPTION]... FILE [DUMP]...\n"
                           "Write a page that shows a profile in a browser: timeline, flame graphs, places,\n"
                           "structs, blocks. One file, which needs no network and no server. With dumps of\n"
                           "the same process (heapwise dump, dump-interval) the page also shows what places\n"
                           "had at these moments, and between them.\n"
                           "\n"
                           "  -o, --output OUT   write to OUT, - is standard output (default: the name of\n"
                           "                     FILE with .html, in the current directory)\n"
                           "  -f, --force        overwrite OUT\n"
                           "  --open             open the page in the browser of the desktop\n"
                           "  --baseline OLD     show what has changed since the profile OLD\n"
                           "  --allocators RUNS  show what \"heapwise allocators --json\" has measured, in\n"
                           "                     the file RUNS, beside what the profile predicts\n"
                           "  --function NAME    only the places with NAME on their stacks (as shown, or as\n"
                           "                     in the symbol table)\n"
                           "  --source           put lines of the program's source files into the page, as\n"
                           "                     far as they can be read here: those that allocate, and\n"
                           "                     some around them\n"
                           "  --source-path OLD=NEW\n"
                           "                     read source files below NEW whose paths begin with OLD;\n"
                           "                     may be repeated\n" HW_STACK_OPTIONS_HELP_2
                           "  -q, --quiet        no progress, and no message where the page is\n"
                           "  -h, --help         this text\n"
                           "\n"
                           "Exit code: 0, or 2 for wrong usage and for files that are damaged or not\n"
                           "profiles.\n";

struct command {
    const char *file, *baseline, *runs; /* the last two: or NULL */
    char **dumps;                       /* dump_count, of FILE's process */
    size_t dump_count;
    const char *output;                 /* "-": standard output */
    char *own_output;                   /* storage of it, or NULL */
    struct hw_view_arguments names;
    bool force, open, source;
};

/* ---- the command line ---- */

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("output", 'o', struct command, output),
    HW_OPTION_FLAG("force", 'f', struct command, force),
    HW_OPTION_FLAG("open", 0, struct command, open),
    HW_OPTION_TEXT("baseline", 0, struct command, baseline),
    HW_OPTION_TEXT("allocators", 0, struct command, runs),
    HW_OPTION_TEXT("function", 0, struct command, names.view.function),
    HW_OPTION_FLAG("source", 0, struct command, source),
    HW_SOURCE_OPTIONS(struct command, names),
    HW_STACK_OPTIONS(struct command, names),
    HW_VIEW_OPTIONS(struct command, names),
    {0},
};

/* "perl.17.html" for "runs/perl.17.hwprof". */
static bool name_output(struct command *command)
{
    static const char ending[] = ".hwprof";
    const char *name = basename(command->file);
    int size = (int)strnlen(name, NAME_MAX);
    if (size > (int)sizeof ending - 1 && !strcmp(name + size - (sizeof ending - 1), ending))
        size -= (int)sizeof ending - 1;
    if (asprintf(&command->own_output, "%.*s.html", size, name) < 0) {
        command->own_output = NULL;
        hw_say("view: not enough memory");
        return false;
    }
    command->output = command->own_output;
    return true;
}

/* HW_VERB_FINE to go on, HW_VERB_USAGE, or -1 when help was printed. */
static int parse(struct command *command, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, false, help, argc, argv, command);
    if (code)
        return code;
    if (argc == optind) {
        hw_say("view: which FILE? (see heapwise view --help)");
        return HW_VERB_USAGE;
    }
    if (command->names.source.path_count && !command->source) {
        hw_say("view: --source-path is for --source");
        return HW_VERB_USAGE;
    }
    command->names.source.sysroot = command->names.view.symbolizer.sysroot;
    command->file = argv[optind];
    command->dumps = argv + optind + 1;
    command->dump_count = (size_t)(argc - optind - 1);
    if (!command->output && !name_output(command))
        return HW_VERB_USAGE;
    struct stat status; /* before names are looked for, which may take a while */
    if (!command->force && strcmp(command->output, "-") && !lstat(command->output, &status)) {
        hw_say("view: '%s' exists already: -f overwrites it", command->output);
        return HW_VERB_USAGE;
    }
    if (!strcmp(command->output, "-") && (command->open || isatty(STDOUT_FILENO))) {
        hw_say(command->open ? "view: --open takes a page in a file, not '-'"
                             : "view: a page is not for a terminal: -o OUT writes it to a file");
        return HW_VERB_USAGE;
    }
    return hw_view_arguments_read_rules(&command->names);
}

/* ---- the template ---- */

/* The built viewer, to be freed; NULL with a message. */
static char *read_template(size_t *size)
{
    char path[PATH_MAX];
    char *text = NULL;
    if (!hw_installed_path(path, sizeof path, HEAPWISE_DATADIR "/page.html")) {
        hw_say("view: cannot find the page template: %s", strerror(errno));
        return NULL;
    }
    errno = 0;
    FILE *file = fopen(path, "re");
    struct stat status;
    if (file && fstat(fileno(file), &status) == 0 && (text = malloc((size_t)status.st_size + 1))) {
        *size = fread(text, 1, (size_t)status.st_size, file);
        if (!ferror(file) && *size) {
            fclose(file);
            return text;
        }
    }
    if (!file && errno == ENOENT)
        hw_say("view: this heapwise was built without the page (%s): building it takes npm; run scripts/setup with a "
               "network, then build again",
               path);
    else
        hw_say("view: the page template %s: %s", path, errno ? strerror(errno) : "cannot be read");
    if (file)
        fclose(file);
    free(text);
    return NULL;
}

/* ---- the page ---- */

enum stream { STREAM_PROFILE, STREAM_BASELINE, STREAM_COMPARISON, STREAM_MOMENTS, STREAMS };

struct streams {
    struct hw_page_bytes stream[STREAMS], rest[2]; /* RESTS: of the profile, of the baseline */
    size_t count, rests;
};

/* What heapwise allocators --json wrote to PATH, to be freed; NULL with a message. */
static char *read_runs(const char *path)
{
    json_error_t problem;
    FILE *file = fopen(path, "re");
    json_t *runs = file ? json_loadf(file, 0, &problem) : NULL, *run;
    bool fine = json_is_array(runs);
    size_t index;
    json_array_foreach(runs, index, run)
    {
        fine &= json_is_string(json_object_get(run, "allocator"));
    }
    struct hw_buffer text = {0};
    if (fine)
        hw_buffer_json(&text, runs, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!file)
        hw_say("view: %s: %s", path, strerror(errno));
    else if (!fine)
        hw_say("view: %s: not what heapwise allocators --json writes", path);
    else if (text.failed)
        hw_say("view: not enough memory");
    if (file)
        fclose(file);
    json_decref(runs);
    if (text.failed)
        hw_buffer_free(&text);
    return text.data;
}

#define PROBLEMS_SAID 5

/* Says what is wrong with source files. */
static void say_problems(const struct hw_source *source)
{
    size_t count = 0, found = 0;
    for (size_t i = 0; i < source->count; i++) {
        found += source->file[i].path != NULL;
        if (source->file[i].problem && count++ < PROBLEMS_SAID)
            hw_say("view: %s", source->file[i].problem);
    }
    if (count > PROBLEMS_SAID)
        hw_say("view: %zu more source files like these; the page lists all", count - PROBLEMS_SAID);
    if (found < source->count)
        hw_say("view: --source-path OLD=NEW says where source files are whose paths begin with OLD");
    else if (!source->count)
        hw_say("view: no source lines are known: they need debug information of the program (-g)");
}

/* The source files of the profile, to be freed; NULL with a message. */
static struct hw_source *read_source(const struct command *command, const struct hw_view *view)
{
    struct hw_error error = {""};
    struct hw_source *source = hw_source_new(view, HW_MEASURE_COUNT, false, &command->names.source, &error);
    if (source)
        say_problems(source);
    else
        hw_say("view: %s", error.message);
    return source;
}

static bool add_stream(struct streams *streams, unsigned char *bytes, size_t size, const struct hw_error *error)
{
    if (!bytes) {
        hw_say("view: %s", error->message);
        return false;
    }
    streams->stream[streams->count++] = (struct hw_page_bytes){bytes, size};
    return true;
}

/* The streams of one file. False with a message. */
static bool add_profile(struct streams *streams, const struct command *command, const struct hw_view *view,
                        const char *path)
{
    struct hw_error error = {""};
    const char *function = command->names.view.function;
    if (function && !view->context_count && path == command->file) {
        hw_say_no_function(view, function, &error);
        hw_say("view: %s", error.message);
        return false;
    }
    const bool shown = path == command->file; /* it is not the baseline */
    char *runs = command->runs && shown ? read_runs(command->runs) : NULL;
    if (command->runs && shown && !runs)
        return false;
    struct hw_source *source = command->source && shown ? read_source(command, view) : NULL;
    const bool fine = !command->source || !shown || source;
    struct hw_page_bytes first = {.bytes = NULL}, *rest = &streams->rest[streams->rests];
    if (fine && hw_page_data(view, runs, source, &first, rest, &error))
        streams->rests++;
    free(runs);
    hw_source_free(source);
    return fine && add_stream(streams, first.bytes, first.size, &error);
}

static bool add_comparison(struct streams *streams, struct hw_view *old, struct hw_view *new)
{
    struct hw_error error = {""};
    size_t size = 0;
    struct hw_diff *diff = hw_diff_new(old, new, &error);
    unsigned char *bytes = diff ? hw_page_comparison(diff, &size, &error) : NULL;
    hw_diff_free(diff);
    return add_stream(streams, bytes, size, &error);
}

static bool share_wrappers(struct hw_view *one, struct hw_view *other)
{
    const bool fine = hw_view_share_wrappers(one, other);
    if (!fine)
        hw_say("view: not enough memory");
    return fine;
}

static int compare_times(const void *left, const void *right)
{
    const struct hw_opened *a = left, *b = right;
    return HW_ORDER(a->profile->duration_ns, b->profile->duration_ns);
}

/* Reads the dumps into OPENED, earlier ones first. Only rules that change stacks need names. */
static bool open_dumps(struct hw_opened *opened, const struct command *command, const struct hw_profile *of, int *code)
{
    struct hw_view_arguments names = command->names;
    names.view.no_symbols = !names.rules.count && !names.view.function;
    for (size_t i = 0; i < command->dump_count; i++) {
        if (hw_open_view(&opened[i], &names, command->dumps[i]))
            *code = HW_VERB_USAGE;
        if (!opened[i].view)
            return false;
        if (!hw_page_is_dump(opened[i].profile, of)) {
            hw_say("view: '%s' is not a dump of the process of '%s' (heapwise merge adds profiles up, --baseline compares "
                   "two)",
                   command->dumps[i], command->file);
            return false;
        }
    }
    qsort(opened, command->dump_count, sizeof *opened, compare_times);
    return true;
}

/* What places had at the moments of dumps. */
/* Names that are missing since there was no memory for them: the page says so, too, but who looks there first? */
static void say_missing_names(const struct hw_view *view)
{
    for (size_t i = 0; i < view->module_count; i++)
        if (view->modules[i].problem && strstr(view->modules[i].problem, "memory"))
            hw_say("view: %s", view->modules[i].problem);
}

static bool add_moments(struct streams *streams, const struct command *command, const struct hw_opened *of, int *code)
{
    struct hw_error error = {""};
    size_t size = 0;
    struct hw_opened *opened = calloc(command->dump_count, sizeof *opened);
    const struct hw_view **views = calloc(command->dump_count, sizeof *views);
    bool fine = opened && views;
    if (!fine)
        hw_say("view: not enough memory");
    fine = fine && open_dumps(opened, command, of->profile, code);
    for (size_t i = 0; fine && i < command->dump_count; i++)
        views[i] = opened[i].view;
    unsigned char *bytes = fine ? hw_page_moments(of->view, views, command->dump_count, &size, &error) : NULL;
    for (size_t i = 0; opened && i < command->dump_count; i++)
        hw_opened_close(&opened[i]);
    free(opened);
    free(views);
    return fine && add_stream(streams, bytes, size, &error);
}

/* All that goes into the page. False with a message. *CODE becomes HW_VERB_USAGE when a file is damaged. */
static bool make_streams(struct streams *streams, struct command *command, int *code)
{
    const char *const paths[] = {command->file, command->baseline};
    struct hw_opened opened[2] = {{0}};
    bool fine = true;
    for (int i = 0; fine && i < 2 && paths[i]; i++) {
        if (hw_open_view(&opened[i], &command->names, paths[i]))
            *code = HW_VERB_USAGE;
        fine = opened[i].view != NULL;
        if (fine)
            say_missing_names(opened[i].view);
    }
    if (fine && command->baseline)
        fine = share_wrappers(opened[0].view, opened[1].view);
    for (int i = 0; fine && i < 2 && paths[i]; i++)
        fine = add_profile(streams, command, opened[i].view, paths[i]);
    if (fine && command->baseline)
        fine = add_comparison(streams, opened[1].view, opened[0].view);
    if (fine && command->dump_count)
        fine = add_moments(streams, command, &opened[0], code);
    for (int i = 0; i < 2; i++)
        hw_opened_close(&opened[i]);
    return fine;
}

static bool write_page(const struct command *command, const char *page, size_t size)
{
    struct hw_error error = {""};
    if (strcmp(command->output, "-")) {
        if (hw_file_write(command->output, command->force, page, size, &error))
            return true;
        hw_say("view: %s", error.message);
        return false;
    }
    if (hw_write_all(STDOUT_FILENO, page, size, -1))
        return true;
    hw_say("view: cannot write 'standard output': %s", strerror(errno));
    return false;
}

/* Hands PATH to the desktop, which goes on by itself. */
static void open_page(const char *path)
{
    char *whole = realpath(path, NULL);
    const pid_t child = whole ? fork() : -1;
    if (child == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; null >= 0 && fd < 3; fd++)
            dup2(null, fd);
        execlp("xdg-open", "xdg-open", whole, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
        hw_say(WIFEXITED(status) && WEXITSTATUS(status) == 127
                   ? "view: there is no xdg-open here: open '%s' in a browser"
                   : "view: xdg-open could not open a browser: open '%s' in one",
               path);
    free(whole);
}

/* Says that dumps of the process lie beside FILE, where none were given. */
static void mention_dumps(const struct command *command)
{
    static const char ending[] = ".hwprof";
    const size_t size = strlen(command->file);
    const size_t stem = size >= sizeof ending && !strcmp(command->file + size - (sizeof ending - 1), ending)
                            ? size - (sizeof ending - 1)
                            : size;
    char *first = NULL;
    if (asprintf(&first, "%.*s.dump1%s", (int)stem, command->file, ending) >= 0 && access(first, R_OK) == 0)
        hw_say("there are dumps of this process; to compare them: heapwise view %s %.*s.dump*%s", command->file, (int)stem,
               command->file, ending);
    free(first);
}

static int make_page(struct command *command)
{
    struct hw_error error = {""};
    struct streams streams = {.count = 0};
    size_t template_size, size = 0;
    int code = HW_VERB_FINE;
    char *template = read_template(&template_size), *page = NULL;
    hw_view_arguments_show_progress(&command->names);
    if (template && make_streams(&streams, command, &code)) {
        page = hw_page_fill(template, template_size, streams.stream, streams.count, streams.rest, streams.rests, &size,
                            &error);
        if (!page)
            hw_say("view: %s", error.message);
    }
    const bool fine = page && write_page(command, page, size);
    if (fine && !command->names.quiet && strcmp(command->output, "-"))
        hw_say("wrote %s", command->output);
    if (fine && !command->names.quiet && !command->dump_count)
        mention_dumps(command);
    if (fine && command->open)
        open_page(command->output);
    free(page);
    free(template);
    for (size_t i = 0; i < streams.count; i++)
        free(streams.stream[i].bytes);
    for (size_t i = 0; i < streams.rests; i++)
        free(streams.rest[i].bytes);
    return fine ? code : HW_VERB_USAGE;
}

int hw_verb_view(int argc, char **argv)
{
    struct command command = {.file = NULL};
    int code = hw_view_arguments_init(&command.names, argc, argv) ? parse(&command, argc, argv) : HW_VERB_USAGE;
    if (!code)
        code = make_page(&command);
    free(command.own_output);
    hw_view_arguments_free(&command.names);
    return code < 0 ? HW_VERB_FINE : code;
}
