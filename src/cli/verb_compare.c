/* verb_compare.c - heapwise compare: is B better or worse than A, and how sure is that? For continuous integration, and
 * for any change: of a setting, of the allocator, of the source. */
#include "cli/compare.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/target.h"
#include "tuning/configuration.h"

#define PAIRS_USUAL     20
#define TOLERANCE_USUAL 1.0
#define SLOWER_MOST     20.0 /* a run that takes so many times as long as the slowest so far, and */
#define SECONDS_MORE    60.0 /* so many seconds more, is ended, where no limit was given */

struct command {
    bool json, show, quiet, discard;
    uint64_t pairs, timeout_s;
    double tolerance; /* percent */
    const char *check;
    char path[HW_SIDES][PATH_MAX];
    struct hw_settings settings;
    struct hw_configuration configuration[HW_SIDES];
    char **environment[HW_SIDES]; /* NULL: as this process has it */
    struct hw_input input;
    double slowest_s;
    sigset_t mask;
    int interrupted;
    struct timespec begin;
    uint64_t random;
    struct hw_ab ab;
};

static const char help[] = "Usage: heapwise compare [OPTION...] -- A [ARGUMENT...] -- B [ARGUMENT...]\n"
                           "       heapwise compare [OPTION...] --config-b=FILE -- PROGRAM [ARGUMENT...]\n"
                           "\n"
                           "Runs the commands A and B in turn and shows whether B needs more time or memory\n"
                           "than A, and how sure that is. Exits with 1 if B is worse. With a configuration\n"
                           "(see heapwise run --help) A and B can be the same command.\n"
                           "\n"
                           "  -n, --pairs=N         pairs of runs, 6 to 101 (default 20); one more pair runs\n"
                           "                        first and is not counted\n"
                           "      --config-a=FILE   run A with the allocator and the settings of FILE\n"
                           "      --config-b=FILE   the same for B\n"
                           "      --tolerance=PCT   B may need PCT percent more (default 1)\n"
                           "      --for=WHAT        what decides: time, memory or both (default both)\n"
                           "      --check=CMD       run the shell command CMD after each run, with the run's\n"
                           "                        output as input: the run fails unless CMD exits with 0\n"
                           "      --timeout=S       end a run after S seconds\n"
                           "      --discard-output  do not keep and compare the output of the commands\n"
                           "      --show-output     show on stderr what the commands print: their errors,\n"
                           "                        and with --discard-output all\n"
                           "      --json            one object for a program to read (see docs/json.md)\n"
                           "  -q, --quiet           print only problems, and B's failure, worsening or other\n"
                           "                        output\n"
                           "  -h, --help            this text\n"
                           "\n"
                           "B is worse if it fails where A does not, or if the whole 95 % interval of the\n"
                           "change in wall time or peak RSS is beyond the tolerance. Both commands must do\n"
                           "the same in every run; each run reads the same standard input.\n"
                           "\n"
                           "Exits with 0, 1 if B is worse, 2 for wrong usage and if A cannot be measured,\n"
                           "128 + n after signal n.\n";

/* ---- options ---- */

static bool take_goal(void *closure, const char *value, const struct hw_option *option)
{
    bool *judged = ((struct command *)closure)->ab.judged;
    judged[HW_METRIC_WALL] = strcmp(value, "memory") != 0;
    judged[HW_METRIC_RSS] = strcmp(value, "time") != 0;
    return !judged[HW_METRIC_WALL] || !judged[HW_METRIC_RSS] || strcmp(value, "both") == 0 ||
           hw_option_unknown(option, value, "time, memory, both");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_NUMBER("pairs", 'n', struct command, pairs, 6, HW_PAIRS_MOST),
    HW_OPTION_TEXT("config-a", 0, struct command, ab.side[HW_SIDE_A].config),
    HW_OPTION_TEXT("config-b", 0, struct command, ab.side[HW_SIDE_B].config),
    HW_OPTION_KEPT("tolerance", 0, hw_take_percentage, double, struct command, tolerance),
    HW_OPTION_CALL("for", 0, take_goal),
    HW_OPTION_TEXT("check", 0, struct command, check),
    HW_OPTION_NUMBER("timeout", 0, struct command, timeout_s, 1, 7 * 86400),
    HW_OPTION_FLAG("discard-output", 0, struct command, discard),
    HW_OPTION_FLAG("show-output", 0, struct command, show),
    HW_OPTION_FLAG("json", 0, struct command, json),
    HW_OPTION_FLAG("quiet", 'q', struct command, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

/* A and B stand on both sides of "--"; without it they are the same command with two configurations. False with a
 * message. */
static bool split(struct command *command, char **words)
{
    struct hw_ab_side *side = command->ab.side;
    char **at = words;
    while (*at && strcmp(*at, "--"))
        at++;
    side[HW_SIDE_A].command = words;
    const bool two = *at != NULL;
    side[HW_SIDE_B].command = two ? at + 1 : side[HW_SIDE_A].config || side[HW_SIDE_B].config ? words : at;
    *at = NULL;
    if (*side[HW_SIDE_A].command && *side[HW_SIDE_B].command)
        return true;
    hw_say("compare: which command is %s? heapwise compare -- A ARGUMENT... -- B ARGUMENT...; for two profiles "
           "use heapwise diff OLD NEW",
           !*words ? "A"
           : two   ? "B"
                   : "B, behind a second --");
    return false;
}

/* Returns -1 to go on, or the exit code. */
static int read_options(struct command *command, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, true, help, argc, argv, command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (command->check && command->discard) {
        hw_say("compare: --check reads the output: --discard-output excludes it");
        return HW_VERB_USAGE;
    }
    command->ab.wanted = command->pairs;
    command->ab.tolerance = command->tolerance / 100;
    command->ab.output_kept = !command->discard;
    return split(command, argv + optind) ? -1 : HW_VERB_USAGE;
}

/* ---- runs ---- */

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

static void show_progress(const struct command *command)
{
    char left[64] = "";
    const size_t done = command->ab.pairs.count;
    if (command->quiet || command->show || !isatty(STDERR_FILENO))
        return;
    if (done > 0) {
        const double s = seconds_since(&command->begin) / (double)done * (double)(command->ab.wanted - done);
        snprintf(left, sizeof left, s < 100 ? ", %.0f s left" : ", %.0f min left", s < 100 ? s : s / 60);
    }
    fprintf(stderr, "\r\033[Kpair %zu of %zu%s", done + 1, (size_t)command->ab.wanted, left);
}

static void clear_progress(const struct command *command)
{
    if (!command->quiet && !command->show && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static bool enter(const void *configuration)
{
    return hw_configuration_enter(configuration);
}

/* False with ERROR when the run could not be started, or was interrupted. */
static bool run_side(struct command *command, int side, struct hw_trial *trial, struct hw_error *error)
{
    const struct hw_trial_program program = {
        .run = {.path = command->path[side],
                .arguments = command->ab.side[side].command,
                .text = true,
                .environment = command->environment[side],
                .prepare = enter,
                .closure = &command->configuration[side],
                .input = &command->input,
                .show = command->show,
                .mask = &command->mask,
                .seconds_most = command->timeout_s       ? (double)command->timeout_s
                                : command->slowest_s > 0 ? command->slowest_s * SLOWER_MOST + SECONDS_MORE
                                                         : 0},
        .keep_output = !command->discard,
        .check = command->check,
    };
    if (!hw_trial_run(&program, trial, error))
        return false;
    command->interrupted = trial->cost.interrupted ? trial->cost.interrupted : hw_helper_interrupted();
    if (command->interrupted)
        hw_error_set(error, "interrupted by signal %d (%s)", command->interrupted, strsignal(command->interrupted));
    else if (side == HW_SIDE_A && trial->cost.wall_s > command->slowest_s)
        command->slowest_s = trial->cost.wall_s;
    return command->interrupted == 0;
}

/* Compares the run with the first one of its side, and that of B with A. False with ERROR: A cannot be measured. B's
 * failure is in command->ab. */
static bool judge_run(struct command *command, int side, const struct hw_trial *trial, struct hw_error *error)
{
    struct hw_ab *ab = &command->ab;
    char problem[320];
    const struct hw_trial *first = &ab->side[side].first;
    if (trial->output_hash != first->output_hash || trial->output_bytes != first->output_bytes)
        ab->side[side].unsteady = true;
    if (!hw_trial_problem(trial, &ab->side[HW_SIDE_A].first, "A", false, problem, sizeof problem))
        return true;
    if (side == HW_SIDE_B)
        snprintf(ab->failure, sizeof ab->failure, "%s", problem);
    else if (trial->checked && trial->check_code)
        hw_error_set(error, "A fails: %s", problem);
    else
        hw_error_set(error, "A does not end in the same way each time: %s", problem);
    return side == HW_SIDE_B;
}

/* A first: the other runs are compared with how it ends. */
static bool warm_up(struct command *command, struct hw_error *error)
{
    for (int side = 0; side < HW_SIDES; side++) {
        struct hw_trial *first = &command->ab.side[side].first;
        if (!run_side(command, side, first, error))
            return false;
        if (side == HW_SIDE_A &&
            (first->cost.timed_out || first->cost.printed_too_much || first->cost.exit_kind == HW_EXIT_SIGNAL)) {
            char end[128];
            hw_error_set(error, "A cannot be measured: %s", hw_run_describe_end(&first->cost, end, sizeof end));
            return false;
        }
        if (!judge_run(command, side, first, error))
            return false;
    }
    return true;
}

static bool measure(struct command *command, struct hw_error *error)
{
    clock_gettime(CLOCK_MONOTONIC, &command->begin);
    while (command->ab.pairs.count < command->ab.wanted && !command->ab.failure[0]) {
        struct hw_trial trial[HW_SIDES];
        size_t order[HW_SIDES];
        show_progress(command);
        hw_random_order(&command->random, order, HW_SIDES);
        for (int i = 0; i < HW_SIDES && !command->ab.failure[0]; i++)
            if (!run_side(command, (int)order[i], &trial[order[i]], error) ||
                !judge_run(command, (int)order[i], &trial[order[i]], error))
                return false;
        if (!command->ab.failure[0])
            hw_pairs_add(&command->ab.pairs, &trial[HW_SIDE_A].cost, &trial[HW_SIDE_B].cost);
    }
    return true;
}

/* False with ERROR when there is nothing to print. */
static bool compare(struct command *command, struct hw_error *error)
{
    struct hw_ab *ab = &command->ab;
    bool fine = warm_up(command, error) && (ab->failure[0] || measure(command, error));
    clear_progress(command);
    if (!fine && command->interrupted && ab->pairs.count > 0) {
        hw_say("compare: %s: this is the result of %zu of %zu pairs", error->message, ab->pairs.count,
               (size_t)ab->wanted);
        fine = true;
    }
    const struct hw_trial *a = &ab->side[HW_SIDE_A].first, *b = &ab->side[HW_SIDE_B].first;
    ab->output_differs = ab->output_kept && !ab->failure[0] && !ab->side[HW_SIDE_A].unsteady &&
                         !ab->side[HW_SIDE_B].unsteady &&
                         (a->output_hash != b->output_hash || a->output_bytes != b->output_bytes);
    return fine;
}

/* ---- the verb ---- */

/* The program of SIDE, and its configuration. */
static bool prepare_side(struct command *command, int side, struct hw_error *error)
{
    const struct hw_ab_side *one = &command->ab.side[side];
    struct hw_configuration *configuration = &command->configuration[side];
    if (hw_find_program(one->command[0], command->path[side], error) != 0)
        return false;
    if (!one->config)
        return true;
    if (!hw_configuration_read(configuration, &command->settings, one->config, error))
        return false;
    if (!hw_configuration_reaches(configuration, error))
        return false;
    static struct hw_target target;
    if (configuration->library[0]) {
        if (hw_target_resolve(one->command[0], &target, error) != 0)
            return false;
        if (target.is_static || target.musl) {
            hw_error_set(error, "%s %s: no other allocator can be loaded into it", one->command[0],
                         target.is_static ? "is statically linked" : "uses musl's C library");
            return false;
        }
    }
    command->environment[side] = hw_configuration_environment(configuration, environ);
    if (!command->environment[side])
        hw_error_set(error, "not enough memory");
    return command->environment[side] != NULL;
}

static bool prepare(struct command *command, struct hw_error *error)
{
    if ((command->ab.side[HW_SIDE_A].config || command->ab.side[HW_SIDE_B].config) &&
        !hw_settings_read(&command->settings, NULL, error))
        return false;
    for (int side = 0; side < HW_SIDES; side++)
        if (!prepare_side(command, side, error))
            return false;
    if (getrandom(&command->random, sizeof command->random, GRND_NONBLOCK) != (ssize_t)sizeof command->random)
        command->random = (uint64_t)getpid() ^ (uint64_t)time(NULL) << 32;
    const bool fine = hw_input_take(&command->input, hw_say_input_waits, error);
    command->ab.input_replaced = command->input.terminal;
    return fine;
}

static bool print_result(const struct command *command, struct hw_error *error)
{
    if (command->json) {
        hw_error_set(error, "not enough memory");
        return hw_ab_print_json(&command->ab);
    }
    if (!command->quiet || hw_ab_worse(&command->ab))
        hw_ab_print(&command->ab);
    else
        hw_ab_print_output(&command->ab);
    return true;
}

int hw_verb_compare(int argc, char **argv)
{
    static struct command command;
    command = (struct command){.pairs = PAIRS_USUAL,
                               .tolerance = TOLERANCE_USUAL,
                               .input.fd = -1,
                               .ab.judged = {[HW_METRIC_WALL] = true, [HW_METRIC_RSS] = true}};
    int code = read_options(&command, argc, argv);
    if (code >= 0)
        return code;
    struct hw_error error = {""};
    bool fine = prepare(&command, &error);
    if (fine) {
        hw_runs_block_signals(&command.mask);
        fine = compare(&command, &error);
        hw_runs_release_signals(&command.mask);
        fine = fine && print_result(&command, &error);
    }
    if (!fine)
        hw_say("compare: %s", error.message);
    hw_input_free(&command.input);
    for (int side = 0; side < HW_SIDES; side++)
        hw_configuration_strings_free(command.environment[side]);
    hw_settings_free(&command.settings);
    if (command.interrupted)
        return 128 + command.interrupted;
    return !fine ? HW_VERB_USAGE : hw_ab_worse(&command.ab) ? HW_VERB_NEGATIVE : HW_VERB_FINE;
}
