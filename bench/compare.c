/* compare.c - runs commands side by side and compares what they cost.
 *
 *     compare [options] ::: NAME [VAR=VALUE…] PROG [ARG…] ::: NAME …
 *
 * Every round runs each command once, in the order given, so that whatever else the machine does meanwhile falls on all
 * of them alike. The first command is the plain program. What another command adds is taken round by round, against
 * the plain run of the same round; the medians of those differences and ratios are what the verdicts look at.
 *
 * Wall time is that of the whole command: from before fork() to the moment when the command has ended and been waited
 * for. CPU time is user + system time of all its processes; on a busy machine it is the steadier figure. Memory is the
 * greatest resident set of any one process of the command, as wait4() gives it. For a command that is one process, such
 * as a program with a preloaded library, that is the VmHWM of the program itself.
 *
 * It must not interpret what it runs: no shell, no knowledge of any profiler.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 16
#define MAX_TARGETS  16

struct command {
    const char *name;
    char **argv;                      /* leading VAR=VALUE words are set in the environment of the command */
    double *wall_s, *cpu_s, *rss_mib; /* one value a round */
    double *added_s, *ratio, *share;  /* against plain and against the competitor, round by round */
    double *added_cpu_s, *cpu_share;  /* the same of user + system time */
};

/* A limit on what a command adds, `NAME:KIND:VALUE` on the command line. */
struct target {
    const char *spec;
    size_t command;
    size_t kind; /* index into target_kinds */
    double limit;
    double typical, best; /* median of the rounds; from the minima alone */
};

static struct command commands[MAX_COMMANDS];
static size_t command_count;
static struct target targets[MAX_TARGETS];
static size_t target_count;
static size_t rounds = 5, warmups = 1;
static size_t competitor; /* index, 0 when there is none */
static const char *title = "";
static bool json, show_output;
static const char *table_path; /* file that lines for further evaluation are appended to */

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "compare: %s: %s\n", what, detail);
    exit(2);
}

/* ---- statistics ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values)
{
    double *sorted = malloc(rounds * sizeof *sorted);
    if (!sorted)
        die("median", strerror(errno));
    memcpy(sorted, values, rounds * sizeof *sorted);
    qsort(sorted, rounds, sizeof *sorted, by_value);
    double middle = rounds % 2 ? sorted[rounds / 2] : (sorted[rounds / 2 - 1] + sorted[rounds / 2]) / 2;
    free(sorted);
    return middle;
}

static double least(const double *values)
{
    double low = values[0];
    for (size_t i = 1; i < rounds; i++)
        low = values[i] < low ? values[i] : low;
    return low;
}

static double greatest(const double *values)
{
    double high = values[0];
    for (size_t i = 1; i < rounds; i++)
        high = values[i] > high ? values[i] : high;
    return high;
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

static double least_added(const struct command *c)
{
    return least(c->wall_s) - least(commands[0].wall_s);
}

static double least_added_cpu(const struct command *c)
{
    return least(c->cpu_s) - least(commands[0].cpu_s);
}

static void share_of_competitor(const struct command *c, double *typical, double *best)
{
    *typical = median(c->share);
    *best = least_added(c) / least_added(&commands[competitor]);
}

static void added_ms(const struct command *c, double *typical, double *best)
{
    *typical = median(c->added_s) * 1e3;
    *best = least_added(c) * 1e3;
}

static void added_percent(const struct command *c, double *typical, double *best)
{
    *typical = (median(c->ratio) - 1) * 100;
    *best = least_added(c) / least(commands[0].wall_s) * 100;
}

static void cpu_share_of_competitor(const struct command *c, double *typical, double *best)
{
    *typical = median(c->cpu_share);
    *best = least_added_cpu(c) / least_added_cpu(&commands[competitor]);
}

static void added_cpu_percent(const struct command *c, double *typical, double *best)
{
    *typical = median(c->added_cpu_s) / median(commands[0].cpu_s) * 100;
    *best = least_added_cpu(c) / least(commands[0].cpu_s) * 100;
}

static void added_rss_mib(const struct command *c, double *typical, double *best)
{
    *typical = median(c->rss_mib) - median(commands[0].rss_mib);
    *best = least(c->rss_mib) - least(commands[0].rss_mib);
}

static const struct target_kind {
    const char *name, *label, *unit;
    void (*measure)(const struct command *c, double *typical, double *best);
} target_kinds[] = {
    {"share", "added time as a share of the competitor's", "", share_of_competitor},
    {"ms", "added time", " ms", added_ms},
    {"percent", "added time", " %", added_percent},
    {"cpu-share", "added CPU time as a share of the competitor's", "", cpu_share_of_competitor},
    {"cpu-percent", "added CPU time", " %", added_cpu_percent},
    {"rss-mib", "added resident memory", " MiB", added_rss_mib},
};

#define TARGET_KINDS (sizeof target_kinds / sizeof *target_kinds)

static size_t find_command(const char *name, size_t length)
{
    for (size_t i = 0; i < command_count; i++)
        if (strlen(commands[i].name) == length && !memcmp(commands[i].name, name, length))
            return i;
    die("no command of this name", name);
    return 0;
}

/* The commands must be known already. */
static void parse_target(struct target *t)
{
    const char *kind = strchr(t->spec, ':');
    const char *value = kind ? strchr(kind + 1, ':') : NULL;
    if (!value)
        die("a target is NAME:KIND:VALUE, not", t->spec);
    t->command = find_command(t->spec, (size_t)(kind - t->spec));
    size_t length = (size_t)(value - kind - 1);
    for (t->kind = 0; t->kind < TARGET_KINDS; t->kind++)
        if (strlen(target_kinds[t->kind].name) == length && !memcmp(target_kinds[t->kind].name, kind + 1, length))
            break;
    if (t->kind == TARGET_KINDS)
        die("unknown kind of target", t->spec);
    char *end;
    t->limit = strtod(value + 1, &end);
    if (end == value + 1 || *end)
        die("not a number", t->spec);
    if (strstr(target_kinds[t->kind].name, "share") && !competitor)
        die("this target needs --versus", t->spec);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static _Noreturn void become(const struct command *c)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    if (!show_output) {
        dup2(null, 1);
        dup2(null, 2);
    }
    char **argv = c->argv;
    while (*argv && strchr(*argv, '=') && **argv != '/')
        putenv(*argv++);
    if (*argv)
        execvp(*argv, argv);
    _exit(127);
}

/* Runs the command once; the values go to index `round` unless it is a warm-up. */
static void run_once(struct command *c, size_t round, bool keep)
{
    double start = now_s();
    pid_t child = fork();
    if (child < 0)
        die("fork", strerror(errno));
    if (child == 0)
        become(c);
    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            die("wait4", strerror(errno));
    double end = now_s();
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        char detail[64];
        snprintf(detail, sizeof detail, WIFEXITED(status) ? "exit code %d" : "signal %d",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        fprintf(stderr, "compare: %s failed (%s)\n", c->name, detail);
        exit(1);
    }
    if (!keep)
        return;
    c->wall_s[round] = end - start;
    c->cpu_s[round] = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    c->rss_mib[round] = (double)usage.ru_maxrss / 1024;
}

static double *row(void)
{
    double *values = calloc(rounds, sizeof *values);
    if (!values)
        die("calloc", strerror(errno));
    return values;
}

static void run_all(void)
{
    for (size_t i = 0; i < command_count; i++) {
        struct command *c = &commands[i];
        c->wall_s = row(), c->cpu_s = row(), c->rss_mib = row();
        c->added_s = row(), c->ratio = row(), c->share = row(), c->added_cpu_s = row(), c->cpu_share = row();
    }
    for (size_t i = 0; i < warmups + rounds; i++)
        for (size_t k = 0; k < command_count; k++)
            run_once(&commands[k], i - warmups, i >= warmups);
    const struct command *plain = &commands[0], *other = &commands[competitor];
    for (size_t k = 0; k < command_count; k++)
        for (size_t i = 0; i < rounds; i++) {
            struct command *c = &commands[k];
            c->added_s[i] = c->wall_s[i] - plain->wall_s[i];
            c->added_cpu_s[i] = c->cpu_s[i] - plain->cpu_s[i];
            c->ratio[i] = c->wall_s[i] / plain->wall_s[i];
            if (competitor) {
                c->share[i] = c->added_s[i] / (other->wall_s[i] - plain->wall_s[i]);
                c->cpu_share[i] = c->added_cpu_s[i] / (other->cpu_s[i] - plain->cpu_s[i]);
            }
        }
    for (size_t i = 0; i < target_count; i++)
        target_kinds[targets[i].kind].measure(&commands[targets[i].command], &targets[i].typical, &targets[i].best);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void print_table(void)
{
    printf("%s%s%zu rounds, interleaved\n", title, *title ? ": " : "", rounds);
    printf("%-22s %9s %9s %9s %9s %9s %7s %9s %9s %8s\n", "command", "wall min", "median", "CPU min", "median",
           "added ms", "x plain", "share of", "CPU share", "max RSS");
    printf("%-22s %9s %9s %9s %9s %9s %7s %9.9s %9.9s %8s\n", "", "s", "s", "s", "s", "(median)", "(med.)",
           competitor ? commands[competitor].name : "", competitor ? commands[competitor].name : "", "MiB");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        printf("%-22s %9.4f %9.4f %9.4f %9.4f", c->name, least(c->wall_s), median(c->wall_s), least(c->cpu_s),
               median(c->cpu_s));
        if (i)
            printf(" %9.2f %7.3f", median(c->added_s) * 1e3, median(c->ratio));
        else
            printf(" %9s %7s", "", "");
        if (i && competitor)
            printf(" %9.3f %9.3f", median(c->share), median(c->cpu_share));
        else
            printf(" %9s %9s", "", "");
        printf(" %8.1f\n", greatest(c->rss_mib));
    }
    for (size_t i = 0; i < target_count; i++) {
        const struct target *t = &targets[i];
        const struct target_kind *kind = &target_kinds[t->kind];
        printf("%-7s %s: %s %.3f%s (minima: %.3f%s), at most %.4g%s wanted\n",
               t->typical <= t->limit ? "met" : "MISSED", commands[t->command].name, kind->label, t->typical,
               kind->unit, t->best, kind->unit, t->limit, kind->unit);
    }
    putchar('\n');
}

static void json_string(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putchar('\\');
        if ((unsigned char)*s < 0x20)
            printf("\\u%04x", (unsigned char)*s);
        else
            putchar(*s);
    }
    putchar('"');
}

static void json_values(const char *key, const double *values)
{
    printf(", \"%s\": [", key);
    for (size_t i = 0; i < rounds; i++)
        printf("%s%.6f", i ? ", " : "", values[i]);
    putchar(']');
}

/* One object on one line, with the value of every round. */
static void print_json(void)
{
    printf("{\"title\": ");
    json_string(title);
    printf(", \"rounds\": %zu, \"competitor\": ", rounds);
    if (competitor)
        json_string(commands[competitor].name);
    else
        printf("null");
    printf(", \"commands\": [");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        printf("%s{\"name\": ", i ? ", " : "");
        json_string(c->name);
        printf(", \"wall_min_s\": %.6f, \"wall_median_s\": %.6f, \"cpu_min_s\": %.6f, \"cpu_median_s\": %.6f",
               least(c->wall_s), median(c->wall_s), least(c->cpu_s), median(c->cpu_s));
        printf(", \"max_rss_mib\": %.3f, \"added_median_s\": %.6f, \"ratio_median\": %.6f", greatest(c->rss_mib),
               median(c->added_s), median(c->ratio));
        if (competitor)
            printf(", \"share_median\": %.6f, \"cpu_share_median\": %.6f", median(c->share), median(c->cpu_share));
        json_values("wall_s", c->wall_s);
        json_values("cpu_s", c->cpu_s);
        json_values("rss_mib", c->rss_mib);
        putchar('}');
    }
    printf("], \"targets\": [");
    for (size_t i = 0; i < target_count; i++) {
        const struct target *t = &targets[i];
        printf("%s{\"command\": ", i ? ", " : "");
        json_string(commands[t->command].name);
        printf(", \"kind\": \"%s\", \"limit\": %.6g, \"median\": %.6f, \"minima\": %.6f, \"met\": %s}",
               target_kinds[t->kind].name, t->limit, t->typical, t->best, t->typical <= t->limit ? "true" : "false");
    }
    printf("]}\n");
}

/* Appends one line a command, fields separated by tabs: title, command, then minimum and median of wall and CPU
 * seconds, median of added seconds, ratio to plain (median, of the minima), share of the competitor's added time
 * (median, of the minima), median of the resident set in MiB. */
static void append_lines(void)
{
    FILE *file = fopen(table_path, "a");
    if (!file)
        die(table_path, strerror(errno));
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        fprintf(file, "%s\t%s\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.3f\n", title, c->name,
                least(c->wall_s), median(c->wall_s), least(c->cpu_s), median(c->cpu_s), median(c->added_s),
                median(c->ratio), least(c->wall_s) / least(commands[0].wall_s), competitor ? median(c->share) : 0,
                competitor ? least_added(c) / least_added(&commands[competitor]) : 0, median(c->rss_mib));
    }
    if (fclose(file))
        die(table_path, strerror(errno));
}

/* ---- command line ----------------------------------------------------------------------------------------------- */

static const char usage[] =
    "usage: compare [options] ::: NAME [VAR=VALUE...] PROG [ARG...] ::: NAME ...\n"
    "  -n ROUNDS                 rounds that count (5)\n"
    "  -w ROUNDS                 rounds before them that do not (1)\n"
    "  --title TEXT              printed above the table\n"
    "  --versus NAME             the competitor: the others' added time is also given as a share of its own\n"
    "  --target NAME:KIND:VALUE  print whether the command keeps the limit; KIND is share, ms, percent,\n"
    "                            cpu-share, cpu-percent or rss-mib\n"
    "  --append FILE             also append the figures to FILE, fields separated by tabs\n"
    "  --json                    one JSON object on one line instead of the table\n"
    "  --show                    let the commands write to stdout and stderr\n"
    "The first command is the plain program. Exit code 1 when a command fails; missed targets do not change it.\n";

static size_t parse_count(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || n > 100000)
        die("not a number of rounds", text);
    return n;
}

/* Cuts the rest of the command line at each ":::". */
static void parse_commands(char **argv)
{
    while (*argv) {
        if (command_count == MAX_COMMANDS)
            die("too many commands", argv[1]);
        *argv++ = NULL; /* the separator ends the previous command */
        struct command *c = &commands[command_count++];
        if (!argv[0] || !argv[1])
            die("after ::: come a name and a command", argv[0] ? argv[0] : "nothing found");
        c->name = argv[0];
        c->argv = argv + 1;
        while (*argv && strcmp(*argv, ":::"))
            argv++;
    }
}

int main(int argc, char **argv)
{
    const char *versus = NULL;
    int i = 1;
    for (; i < argc && strcmp(argv[i], ":::"); i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--show")) {
            show_output = true;
        } else if (!strcmp(argv[i], "--help") || !value) {
            fputs(usage, stderr);
            return 2;
        } else {
            if (!strcmp(argv[i], "-n"))
                rounds = parse_count(value);
            else if (!strcmp(argv[i], "-w"))
                warmups = parse_count(value);
            else if (!strcmp(argv[i], "--title"))
                title = value;
            else if (!strcmp(argv[i], "--append"))
                table_path = value;
            else if (!strcmp(argv[i], "--versus"))
                versus = value;
            else if (!strcmp(argv[i], "--target") && target_count < MAX_TARGETS)
                targets[target_count++].spec = value;
            else
                die("not understood", argv[i]);
            i++;
        }
    }
    parse_commands(argv + i);
    if (command_count == 0 || rounds == 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (versus)
        competitor = find_command(versus, strlen(versus));
    for (size_t k = 0; k < target_count; k++)
        parse_target(&targets[k]);
    run_all();
    if (json)
        print_json();
    else
        print_table();
    if (table_path)
        append_lines();
    return 0;
}
