/* verb_tune.c - heapwise tune: which allocator, with which settings, is best for a program, and is it really better?
 *
 * One plain run and one profiled run; from these the configurations that are worth a trial; their race (tuning/race.h);
 * the winner as a file for heapwise run. */
#include "base/size.h"
#include "cli/tune.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "cli/allocators.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/target.h"
#include "report/text/human.h"

#define BUDGET_USUAL_S 600
#define SLOWER_MOST    4.0 /* a run that takes so many times as long as the slowest plain one, and */
#define SECONDS_MORE   5.0 /* so many seconds more, is ended */

struct command {
    bool json, show, quiet, discard, no_profile, numa;
    uint64_t max_rss, timeout_s;
    const char *check, *resume, *settings_folder, *only, *pin;
    struct hw_added added;
    struct hw_server server; /* its load is NULL: the program ends by itself */
    char problem[HW_RACE_PROBLEM];
    char **program;
    struct hw_target target;
    struct hw_settings settings;
    struct hw_allocators allocators;
    struct hw_input input;
    struct hw_trial_log log;
    bool continued;            /* the log had trials */
    struct hw_trial plain;     /* the first plain run */
    bool plain_known, steady;  /* it was made; and since then the output was the same */
    double slowest_s, clock_s; /* of plain runs; of the race */
    sigset_t mask;
    int interrupted;
    char limits[2048];
    struct hw_tuned tuned;
};

static const char help[] = "Usage: heapwise tune [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
                           "\n"
                           "Runs PROGRAM under each installed allocator, with settings that may matter for\n"
                           "it, and finds what is faster or needs less memory. Reports a winner only if it\n"
                           "is better beyond the noise, in runs that had no part in its selection. PROGRAM\n"
                           "must do the same in every run.\n"
                           "\n"
                           "      --for=WHAT             time, memory (peak RSS) or both (default time);\n"
                           "                             with --load also throughput, latency (p99, or\n"
                           "                             what is printed instead), p50, p99 or p999\n"
                           "      --budget=TIME          for all runs: 90s, 10m, 2h (default 10m)\n"
                           "  -o, --output=FILE          write the winner to FILE, for heapwise run --config\n"
                           "      --max-rss=N            exclude what needs more memory (512M, 2G)\n"
                           "      --check=CMD            run the shell command CMD after each run, with the\n"
                           "                             run's output as input: a configuration is\n"
                           "                             excluded unless CMD exits with 0\n"
                           "      --resume=FILE          keep all runs in FILE; if it exists, continue it\n"
                           "      --allocator=NAME=PATH  also try this allocator, a library to preload\n"
                           "      --only=NAME            try this allocator and the program's own, no others\n"
                           "      --settings=DIR         also try the settings of DIR/*.conf\n"
                           "      --pin=LIST             also try these processors alone, such as 0-3 or 0,2\n"
                           "      --numa                 also try pages spread over all memory nodes\n"
                           "      --no-profile           try all settings, without a profiled run\n"
                           "      --load=CMD             PROGRAM is a server: start it for each run, run the\n"
                           "                             shell command CMD against it, and stop it\n"
                           "      --ready=CMD|PORT       the server is ready when CMD exits with 0, or when\n"
                           "                             a TCP port of this machine can be connected to\n"
                           "      --stop=SIGNAL          that ends it: TERM, INT, HUP or QUIT (default TERM)\n"
                           "      --throughput=REGEX     finds a number in what CMD prints, not needed for\n"
                           "                             redis-benchmark, pgbench, memtier_benchmark, wrk\n"
                           "                             and ab: requests per second,\n"
                           "      --latency=REGEX        mean latency,\n"
                           "      --p50=REGEX            its median,\n"
                           "      --p99=REGEX            its 99th percentile,\n"
                           "      --p999=REGEX           its 99.9th percentile\n"
                           "      --timeout=S            end a run after S seconds\n"
                           "      --discard-output       do not keep and compare the output\n"
                           "      --show-output          show on stderr what the runs print\n"
                           "      --json                 one object for a program to read (see docs/json.md)\n"
                           "  -q, --quiet                no progress\n"
                           "  -h, --help                 this text\n"
                           "\n"
                           "Exits with 0, also if nothing is better, 2 for wrong usage and if PROGRAM cannot\n"
                           "be measured, 128 + n after signal n.\n";

/* ---- options ---- */

/* "90s", "10m", "2h" */
static bool take_budget(void *at, const char *value, const struct hw_option *option)
{
    double *seconds = at;
    char *end;
    errno = 0;
    *seconds = strtod(value, &end);
    const double unit = strcmp(end, "s") == 0 ? 1 : strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 0;
    *seconds *= unit;
    return (!errno && end > value && *seconds >= 1 && *seconds <= 7 * 86400) ||
           hw_option_needs(option, value, "a time such as 90s, 10m or 2h");
}

static bool take_size(void *at, const char *value, const struct hw_option *option)
{
    return (hw_size_read(value, at) && *(uint64_t *)at > 0) ||
           hw_option_needs(option, value, "a size such as 512M or 2G");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_KEPT("for", 0, hw_tune_take_goal, const char *, struct command, tuned.plan.goal),
    HW_OPTION_KEPT("budget", 0, take_budget, double, struct command, tuned.plan.budget_s),
    HW_OPTION_TEXT("output", 'o', struct command, tuned.output),
    HW_OPTION_KEPT("max-rss", 0, take_size, uint64_t, struct command, max_rss),
    HW_OPTION_TEXT("check", 0, struct command, check),
    HW_OPTION_TEXT("resume", 0, struct command, resume),
    HW_OPTION_KEPT("allocator", 0, hw_take_allocator, struct hw_added, struct command, added),
    HW_OPTION_TEXT("only", 0, struct command, only),
    HW_OPTION_TEXT("settings", 0, struct command, settings_folder),
    HW_OPTION_KEPT("pin", 0, hw_tune_take_processors, const char *, struct command, pin),
    HW_OPTION_FLAG("numa", 0, struct command, numa),
    HW_OPTION_FLAG("no-profile", 0, struct command, no_profile),
    HW_OPTION_TEXT("load", 0, struct command, server.load),
    HW_OPTION_TEXT("ready", 0, struct command, server.ready),
    HW_OPTION_KEPT("stop", 0, hw_tune_take_stop, int, struct command, server.stop),
    HW_OPTION_TEXT("throughput", 0, struct command, server.expressions.of[HW_LOAD_THROUGHPUT]),
    HW_OPTION_TEXT("latency", 0, struct command, server.expressions.of[HW_LOAD_MEAN]),
    HW_OPTION_TEXT("p50", 0, struct command, server.expressions.of[HW_LOAD_P50]),
    HW_OPTION_TEXT("p99", 0, struct command, server.expressions.of[HW_LOAD_P99]),
    HW_OPTION_TEXT("p999", 0, struct command, server.expressions.of[HW_LOAD_P999]),
    HW_OPTION_NUMBER("timeout", 0, struct command, timeout_s, 1, 7 * 86400),
    HW_OPTION_FLAG("discard-output", 0, struct command, discard),
    HW_OPTION_FLAG("show-output", 0, struct command, show),
    HW_OPTION_FLAG("json", 0, struct command, json),
    HW_OPTION_FLAG("quiet", 'q', struct command, quiet),
    HW_OPTION_HELP('h'),
    {0},
};

/* Returns -1 to go on, or the exit code. */
static int read_options(struct command *command, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, true, help, argc, argv, command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (optind >= argc)
        hw_say("tune: which PROGRAM? (see heapwise tune --help)");
    else if (command->check && command->discard)
        hw_say("tune: --check reads the output: --discard-output excludes it");
    else if (hw_tune_check_server(&command->server, command->tuned.plan.goal, command->check != NULL)) {
        command->program = argv + optind;
        command->tuned.plan.command = command->program;
        command->discard |= command->server.load != NULL;
        const struct hw_load_expressions *load = &command->server.expressions;
        const size_t used =
            (size_t)snprintf(command->limits, sizeof command->limits, "%llu %llu %d %d %.400s %.400s",
                             (unsigned long long)command->max_rss, (unsigned long long)command->timeout_s,
                             command->discard, command->server.stop, command->check ? command->check : "",
                             command->server.load ? command->server.load : "");
        for (size_t i = 0, at = used; i < HW_LOAD_NUMBERS && at < sizeof command->limits; i++)
            at += (size_t)snprintf(command->limits + at, sizeof command->limits - at, " %.100s",
                                   load->of[i] ? load->of[i] : "");
        command->tuned.plan.limits = command->limits;
        return -1;
    }
    return HW_VERB_USAGE;
}

/* ---- runs ---- */

static bool was_interrupted(struct command *command, const struct hw_run_cost *cost, struct hw_error *error)
{
    if (!command->interrupted)
        command->interrupted = cost && cost->interrupted ? cost->interrupted : hw_helper_interrupted();
    if (command->interrupted)
        hw_error_set(error, "interrupted by signal %d (%s)", command->interrupted, strsignal(command->interrupted));
    return command->interrupted != 0;
}

static void show_progress(const struct command *command, const char *text)
{
    if (!command->quiet && !command->show && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", text);
}

static void on_progress(void *closure, const char *what, size_t round, size_t rounds, size_t racing)
{
    const struct command *command = closure;
    const double budget = command->tuned.plan.budget_s, left = budget - command->clock_s;
    char text[160];
    snprintf(text, sizeof text, "%s: round %zu of %zu, %zu configuration%s, at most %.0f %s left", what, round + 1,
             rounds, racing, racing == 1 ? "" : "s", left < 0 ? 0 : ceil(left < 100 ? left : left / 60),
             left < 100 ? "s" : "min");
    show_progress(command, text);
}

static bool enter(const void *configuration)
{
    return hw_configuration_enter(configuration);
}

static struct hw_run_request plain_request(const struct command *command)
{
    return (struct hw_run_request){
        .path = command->target.path,
        .arguments = command->program,
        .text = true,
        .input = &command->input,
        .show = command->show,
        .mask = &command->mask,
        .seconds_most = command->timeout_s       ? (double)command->timeout_s
                        : command->slowest_s > 0 ? command->slowest_s * SLOWER_MOST + SECONDS_MORE
                                                 : 0,
    };
}

/* One run under CONFIGURATION. False with ERROR: it could not be started, or was interrupted. */
static bool run_under(struct command *command, const struct hw_configuration *configuration, struct hw_trial *trial,
                      struct hw_error *error)
{
    struct hw_trial_program program = {.run = plain_request(command), .keep_output = !command->discard};
    program.check = command->check;
    if (configuration) {
        program.run.environment = hw_configuration_environment(configuration, environ);
        program.run.prepare = enter;
        program.run.closure = configuration;
        if (!program.run.environment) {
            hw_error_set(error, "not enough memory");
            return false;
        }
    }
    bool fine;
    command->problem[0] = '\0';
    if (command->server.load) {
        command->server.seconds_most = program.run.seconds_most;
        command->server.ready_most = command->timeout_s ? (double)command->timeout_s : 0;
        program.run.seconds_most = 0;
        fine = hw_server_trial(&program.run, &command->server, trial, command->problem, sizeof command->problem, error);
        command->tuned.server_killed |= trial->cost.killed;
    } else {
        fine = hw_trial_run(&program, trial, error);
    }
    hw_configuration_strings_free(program.run.environment);
    return fine && !was_interrupted(command, &trial->cost, error);
}

/* A plain run: what the others are compared with. */
static bool run_plain(struct command *command, struct hw_trial *trial, struct hw_error *error)
{
    char end[128];
    if (!run_under(command, NULL, trial, error))
        return false;
    if (!command->plain_known) {
        if (command->problem[0]) {
            hw_error_set(error, "the server as it is cannot be measured: %s", command->problem);
            return false;
        }
        if (!command->server.load &&
            (trial->cost.timed_out || trial->cost.printed_too_much || trial->cost.exit_kind == HW_EXIT_SIGNAL)) {
            hw_error_set(error, "the program as it is cannot be measured: %s",
                         hw_run_describe_end(&trial->cost, end, sizeof end));
            return false;
        }
        if (!hw_tune_find_metric(command->tuned.plan.goal, &trial->cost, &command->tuned.metric, error))
            return false;
        command->plain = *trial;
        command->plain_known = command->steady = true;
    }
    if (trial->output_hash != command->plain.output_hash || trial->output_bytes != command->plain.output_bytes)
        command->steady = false;
    if (!trial->cost.timed_out && trial->cost.wall_s > command->slowest_s)
        command->slowest_s = trial->cost.wall_s;
    return true;
}

/* ---- the race ---- */

static void judge_trial(struct command *command, size_t index, const struct hw_trial *trial,
                        struct hw_race_trial *raced)
{
    raced->cost = trial->cost;
    raced->score = hw_tune_score(command->tuned.plan.goal, command->tuned.metric, &trial->cost);
    if (command->problem[0]) {
        memcpy(raced->problem, command->problem, sizeof raced->problem);
        return;
    }
    if (!command->server.load &&
        hw_trial_problem(trial, &command->plain, "as it is", command->steady, raced->problem, sizeof raced->problem))
        return;
    if (!(raced->score > 0))
        snprintf(raced->problem, sizeof raced->problem, "its %s is not known, or too small to be measured",
                 hw_metric_kinds[command->tuned.metric].title);
    else if (index != HW_RACE_PLAIN && command->max_rss && trial->cost.peak_rss_bytes > command->max_rss)
        snprintf(raced->problem, sizeof raced->problem, "it needs %s, which is more than --max-rss",
                 HW_BYTES(trial->cost.peak_rss_bytes));
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool run_trial(void *closure, size_t index, struct hw_race_trial *raced, struct hw_error *error)
{
    struct command *command = closure;
    const struct hw_logged_trial *logged = hw_trial_log_next(&command->log, index);
    if (logged) {
        *raced = logged->trial;
        command->clock_s = logged->clock_s;
        if (index == HW_RACE_PLAIN && raced->cost.wall_s > command->slowest_s)
            command->slowest_s = raced->cost.wall_s;
        return true;
    }
    struct hw_trial trial;
    const double begin = seconds_now();
    if (!(index == HW_RACE_PLAIN ? run_plain(command, &trial, error)
                                 : run_under(command, &command->tuned.plan.candidates.of[index], &trial, error)))
        return false;
    judge_trial(command, index, &trial, raced);
    command->clock_s += seconds_now() - begin;
    const struct hw_logged_trial made = {
        .index = index, .clock_s = command->clock_s, .steady = command->steady, .trial = *raced};
    return hw_trial_log_add(&command->log, &made, error);
}

static double race_now(void *closure)
{
    return ((struct command *)closure)->clock_s;
}

static size_t combine(void *closure, const struct hw_race *race)
{
    return hw_candidates_combine(&((struct command *)closure)->tuned.plan.candidates, race);
}

/* ---- what is raced ---- */

/* Leaves those of ALLOCATORS that are ONLY (NULL: all) or that the program uses; *PRESENT is then its new index. */
static bool keep_only(struct hw_allocators *allocators, const char *only, size_t *present, struct hw_error *error)
{
    size_t kept = 0, now = SIZE_MAX;
    bool found = !only;
    for (size_t i = 0; i < allocators->count; i++) {
        const bool named = !only || strcmp(allocators->of[i].name, only) == 0;
        found |= named;
        if (i == *present)
            now = kept;
        if (named || i == *present)
            allocators->of[kept++] = allocators->of[i];
        else
            hw_preload_free(&allocators->of[i].preload);
    }
    allocators->count = kept;
    *present = now == SIZE_MAX ? kept : now;
    if (!found)
        hw_error_set(error, "--only=%s: no such allocator is installed (--allocator=%s=PATH adds it)", only, only);
    return found;
}

/* One run of a server under heapwise record. */
static bool run_profiled_server(void *closure, const struct hw_run_request *request, struct hw_run_cost *cost,
                                struct hw_error *error)
{
    const struct command *command = closure;
    struct hw_run_request server = *request;
    struct hw_server how = command->server;
    struct hw_trial trial;
    char problem[HW_RACE_PROBLEM];
    how.expressions = (struct hw_load_expressions){0};
    how.seconds_most = server.seconds_most;
    server.seconds_most = 0;
    const bool fine = hw_server_trial(&server, &how, &trial, problem, sizeof problem, error);
    *cost = trial.cost;
    if (fine && problem[0])
        hw_error_set(error, "profiled, %s", problem);
    return fine && !problem[0];
}

/* A profile of a run under CONFIGURATION (NULL: as it is), with COST. NULL with REASON. */
static struct hw_profile *profile_of(struct command *command, const struct hw_configuration *configuration,
                                     struct hw_run_cost *cost, struct hw_error *reason)
{
    struct hw_run_request request = plain_request(command);
    const struct hw_runner server = {.run = run_profiled_server, .closure = command};
    size_t processes;
    memset(cost, 0, sizeof *cost);
    request.seconds_most = command->timeout_s ? (double)command->timeout_s : 0; /* it is slower when profiled */
    if (configuration) {
        request.environment = hw_configuration_environment(configuration, environ);
        request.prepare = enter;
        request.closure = configuration;
        if (!request.environment) {
            hw_error_set(reason, "not enough memory");
            return NULL;
        }
    }
    show_progress(command, "profiling");
    struct hw_profile *profile =
        hw_comparison_profile(&request, command->server.load ? &server : NULL, cost, &processes, reason);
    hw_configuration_strings_free(request.environment);
    return profile;
}

/* What the winner changes inside the allocator. */
static void look_inside(struct command *command)
{
    struct hw_tuned *tuned = &command->tuned;
    for (int side = 0; side < 2; side++) {
        struct hw_error ignored;
        struct hw_run_cost cost;
        struct hw_profile *profile =
            profile_of(command, side ? &tuned->plan.candidates.of[tuned->race.winner] : NULL, &cost, &ignored);
        if (!was_interrupted(command, &cost, &ignored))
            hw_tuned_inside_take(&tuned->inside[side], profile);
        hw_profile_free(profile);
        if (!tuned->inside[side].known)
            return;
    }
}

/* The configurations that are worth a trial. */
static bool choose_candidates(struct command *command, struct hw_error *error)
{
    struct hw_tuned *tuned = &command->tuned;
    struct hw_known_facts facts = {0};
    struct hw_run_cost cost;
    size_t present = 0;
    struct hw_error reason = {""};
    struct hw_profile *profile = NULL;
    if (!command->no_profile) {
        profile = profile_of(command, NULL, &cost, &reason);
        if (was_interrupted(command, &cost, error)) {
            hw_profile_free(profile);
            return false;
        }
        if (!profile)
            snprintf(tuned->profile_note, sizeof tuned->profile_note, "%s", reason.message);
    }
    bool preload = true;
    if (profile) {
        preload = !hw_same_file(profile->allocator_path, profile->executable);
        for (present = 0; present < command->allocators.count; present++)
            if (hw_same_file(profile->allocator_path, command->allocators.of[present].facts.path))
                break;
    }
    if (!preload)
        present = command->allocators.count;
    if (!keep_only(&command->allocators, command->only, &present, error)) {
        hw_profile_free(profile);
        return false;
    }
    hw_tune_request(&command->settings, "processors", command->pin);
    hw_tune_request(&command->settings, "numa", command->numa ? "interleave" : NULL);
    hw_known_facts_of_run(&facts, profile, &command->plain.cost);
    const bool fine = hw_candidates_make(&tuned->plan.candidates, &command->settings, &command->allocators, present,
                                         preload, &facts, error);
    hw_profile_free(profile);
    if (fine && tuned->plan.candidates.count < 2) {
        hw_error_set(error, "%s%s", preload ? "there is nothing to try" : command->program[0],
                     preload ? "" : " has its allocator linked into its executable: no other one can be preloaded");
        return false;
    }
    return fine;
}

/* Before the race, and again when it is continued: is its output the same each time? */
static bool run_first(struct command *command, struct hw_error *error)
{
    struct hw_trial again;
    show_progress(command, "first runs");
    return run_plain(command, &command->plain, error) && run_plain(command, &again, error);
}

static bool prepare(struct command *command, struct hw_error *error)
{
    struct hw_trial_plan *plan = &command->tuned.plan;
    const double budget_s = plan->budget_s;
    if (hw_target_resolve(command->program[0], &command->target, error) != 0)
        return false;
    if (command->target.is_static || command->target.musl) {
        hw_error_set(error, "%s %s: no other allocator can be loaded into it", command->program[0],
                     command->target.is_static ? "is statically linked" : "uses musl's C library");
        return false;
    }
    if (!hw_settings_read(&command->settings, command->settings_folder, error))
        return false;
    if (command->resume &&
        !hw_trial_log_open(&command->log, command->resume, plan, &command->settings, &command->continued, error))
        return false;
    if (command->continued && budget_s > 0 && budget_s != plan->budget_s) {
        hw_error_set(error, "%s was begun with a budget of %g s, which cannot be changed", command->resume,
                     plan->budget_s);
        return false;
    }
    if (!command->continued) {
        plan->budget_s = budget_s > 0 ? budget_s : BUDGET_USUAL_S;
        if (getrandom(&plan->seed, sizeof plan->seed, GRND_NONBLOCK) != (ssize_t)sizeof plan->seed)
            plan->seed = (uint64_t)getpid() ^ (uint64_t)time(NULL) << 32;
        if (!hw_allocators_find(&command->allocators, command->added.names, error))
            return false;
    }
    const bool fine = hw_input_take(&command->input, hw_say_input_waits, error);
    command->tuned.input_replaced = command->input.terminal;
    return fine;
}

/* False with ERROR when there is nothing to print. */
static bool tune(struct command *command, struct hw_error *error)
{
    struct hw_tuned *tuned = &command->tuned;
    const struct hw_race_source source = {
        .closure = command, .run = run_trial, .now_s = race_now, .combine = combine, .progress = on_progress};
    if (!run_first(command, error))
        return false;
    if (!command->continued &&
        (!choose_candidates(command, error) || !hw_trial_log_begin(&command->log, &tuned->plan, error)))
        return false;
    tuned->race = (struct hw_race){
        .budget_s = tuned->plan.budget_s, .random = tuned->plan.seed, .count = tuned->plan.candidates.count};
    const bool fine = hw_race_run(&tuned->race, &source, error);
    if (fine && tuned->race.winner != HW_RACE_PLAIN && !command->no_profile)
        look_inside(command);
    show_progress(command, "");
    tuned->unsteady = !command->discard && !command->steady;
    tuned->server = command->server.load != NULL;
    tuned->too_short = command->plain.cost.wall_s < HW_SHORTEST_S;
    if (fine || !command->interrupted || tuned->race.trials < 2)
        return fine;
    hw_say("tune: %s: this is the result of %zu runs, and nothing is confirmed%s%s", error->message, tuned->race.trials,
           command->resume ? "; the same command continues it" : "",
           command->resume ? "" : " (with --resume=FILE it could be continued)");
    return true;
}

/* The winner, for heapwise run --config. */
static bool write_winner(const struct command *command, struct hw_error *error)
{
    const struct hw_tuned *tuned = &command->tuned;
    if (!tuned->output || tuned->race.winner == HW_RACE_PLAIN)
        return true;
    const struct hw_ratio *gain = &tuned->race.of[tuned->race.winner].confirmed;
    char comment[256];
    snprintf(comment, sizeof comment, "Made by heapwise tune --for=%s: %.3f of what it was (%.3f to %.3f).\n",
             tuned->plan.goal, gain->value, gain->low, gain->high);
    char *text = hw_configuration_text(&tuned->plan.candidates.of[tuned->race.winner], comment);
    FILE *file = text ? fopen(tuned->output, "we") : NULL;
    bool fine = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        fine = false;
    if (!fine)
        hw_error_set(error, "%s: %s", tuned->output, text ? strerror(errno) : "not enough memory");
    free(text);
    return fine;
}

static bool print_result(struct command *command, struct hw_error *error)
{
    if (!write_winner(command, error))
        return false;
    if (command->json) {
        hw_error_set(error, "not enough memory");
        return hw_tuned_print_json(&command->tuned);
    }
    hw_tuned_print(&command->tuned);
    return true;
}

int hw_verb_tune(int argc, char **argv)
{
    static struct command command;
    command = (struct command){.input.fd = -1, .log.file = -1, .tuned.plan.goal = "time", .server.stop = SIGTERM};
    int code = read_options(&command, argc, argv);
    if (code >= 0)
        return code;
    struct hw_error error = {""};
    bool fine = prepare(&command, &error);
    if (fine) {
        hw_runs_block_signals(&command.mask);
        fine = tune(&command, &error);
        show_progress(&command, "");
        hw_runs_release_signals(&command.mask);
        fine = fine && print_result(&command, &error);
    }
    if (!fine)
        hw_say("tune: %s", error.message);
    hw_race_free(&command.tuned.race);
    hw_candidates_free(&command.tuned.plan.candidates);
    hw_trial_log_free(&command.log);
    hw_input_free(&command.input);
    hw_allocators_free(&command.allocators);
    hw_settings_free(&command.settings);
    return command.interrupted ? 128 + command.interrupted : fine ? HW_VERB_FINE : HW_VERB_USAGE;
}
