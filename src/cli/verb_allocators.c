/* verb_allocators.c - heapwise allocators: runs a program under every allocator there is, and compares.
 *
 * Four steps: one profiled run; one whose operations are noted and replayed under the other allocators, which predicts
 * their times; runs with nothing but the allocator loaded, in turn, and with small blocks packed, which the prediction
 * needs too; the table. */
#include "cli/allocators.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "allocators/observe.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/target.h"

#define ROUNDS_USUAL   5
#define WARM_UP_MOST_S 2.0  /* programs that run longer are not warmed up under each allocator */
#define SLOWER_MOST    20.0 /* a run that takes so many times as long as the slowest so far, and */
#define SECONDS_MORE   60.0 /* so many seconds more, is ended, where no limit was given */
#define REPLAYS_LEAST  5

struct command {
    bool json, show, quiet;
    uint64_t rounds, timeout_s;
    bool list, no_prediction;
    struct hw_added added;
    char **program;
    struct hw_target target;
    struct hw_allocators allocators;
    struct hw_allocator own; /* the program's, where it is none of those */
    struct hw_input input;
    struct hw_profile *profile; /* of one run; NULL: there is none */
    struct hw_traced traced;    /* the course of another one; its path is "" when there is none */
    struct hw_comparison comparison;
    double slowest_s;
    sigset_t mask; /* of signals, as it was: the runs have it: since then what ends this process is blocked */
    int interrupted;
};

static const char help[] = "Usage: heapwise allocators [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
                           "\n"
                           "Runs PROGRAM several times under each installed allocator (glibc, jemalloc,\n"
                           "tcmalloc, mimalloc, tbbmalloc) and shows what each costs: time, memory and page\n"
                           "faults. It also predicts the speed from runs under the program's own allocator.\n"
                           "PROGRAM must do the same in every run.\n"
                           "\n"
                           "  -n, --rounds=N             runs under each allocator, 1 to 101 (default 5)\n"
                           "      --allocator=NAME=PATH  also compare this allocator, a library to preload\n"
                           "      --list                 only print the properties of the allocators, in the\n"
                           "                             form that record --facts reads\n"
                           "      --no-prediction        only measure: no extra runs for the prediction\n"
                           "      --timeout=S            end a run after S seconds\n"
                           "      --show-output          show on stderr what all runs print (default: what\n"
                           "                             the first one prints)\n"
                           "      --json                 a JSON list, an object for each allocator\n"
                           "  -q, --quiet                print only problems\n"
                           "  -h, --help                 this text\n"
                           "\n"
                           "Each run reads the same standard input: a file from its position, a pipe from a\n"
                           "copy; a terminal is replaced by an empty input.\n"
                           "\n"
                           "Exits with 0, 2 for wrong usage and when PROGRAM cannot be compared, 128 + n\n"
                           "after signal n.\n";

/* ---- options ---- */

static const struct hw_option verb_options[] = {
    HW_OPTION_NUMBER("rounds", 'n', struct command, rounds, 1, HW_ROUNDS_MOST),
    HW_OPTION_FLAG("quiet", 'q', struct command, quiet),
    HW_OPTION_KEPT("allocator", 0, hw_take_allocator, struct hw_added, struct command, added),
    HW_OPTION_FLAG("list", 0, struct command, list),
    HW_OPTION_FLAG("no-prediction", 0, struct command, no_prediction),
    HW_OPTION_NUMBER("timeout", 0, struct command, timeout_s, 1, 7 * 86400),
    HW_OPTION_FLAG("show-output", 0, struct command, show),
    HW_OPTION_FLAG("json", 0, struct command, json),
    HW_OPTION_HELP('h'),
    {0},
};

/* Returns -1 to go on, or the exit code. */
static int read_options(struct command *command, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, true, help, argc, argv, command);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (optind >= argc && !command->list) {
        hw_say("allocators: which PROGRAM? (see heapwise allocators --help)");
        return HW_VERB_USAGE;
    }
    command->program = argv + optind;
    return -1;
}

/* ---- what is compared ---- */

static bool prepare(struct command *command, struct hw_error *error)
{
    if (hw_target_resolve(command->program[0], &command->target, error) != 0)
        return false;
    if (command->target.is_static) {
        hw_error_set(error, "%s is statically linked: no other allocator can be loaded into it", command->program[0]);
        return false;
    }
    if (command->target.musl) {
        hw_error_set(error, "%s uses musl's C library: the allocators of this machine cannot be loaded into it",
                     command->program[0]);
        return false;
    }
    return hw_allocators_find(&command->allocators, command->added.names, error) &&
           hw_input_take(&command->input, hw_say_input_waits, error);
}

static void fill_comparison(struct command *command)
{
    struct hw_comparison *comparison = &command->comparison;
    comparison->command = command->program;
    comparison->rounds = command->rounds;
    comparison->empty_input = command->input.terminal;
    for (size_t i = 0; i < command->allocators.count; i++) {
        const struct hw_allocator *allocator = &command->allocators.of[i];
        struct hw_compared *one = &comparison->of[comparison->count++];
        *one = (struct hw_compared){.allocator = allocator, .preload = allocator->preload.path};
    }
    if (command->own.name[0]) {
        comparison->present = comparison->count;
        comparison->of[comparison->count++].allocator = &command->own;
    }
    comparison->of[comparison->present].preload = NULL; /* the program as it is */
}

/* Which allocator the program uses as it is. False with ERROR: one that cannot be exchanged. */
static bool find_present(struct command *command, struct hw_error *error)
{
    const struct hw_profile *profile = command->profile;
    if (!profile)
        return true; /* it is taken to use the C library's */
    if (hw_same_file(profile->allocator_path, profile->executable)) {
        hw_error_set(error, "%s has its allocator (%s) linked into its executable: no other one can be preloaded",
                     profile->executable, profile->allocator);
        return false;
    }
    for (size_t i = 0; i < command->allocators.count; i++)
        if (hw_same_file(profile->allocator_path, command->allocators.of[i].facts.path)) {
            command->comparison.present = i;
            return true;
        }
    bool probed;
    hw_facts_of_profile(profile, &command->own.facts, &probed);
    snprintf(command->own.name, sizeof command->own.name, "%s", command->own.facts.name);
    return true;
}

/* ---- runs ---- */

static void show_progress(const struct command *command, const char *what, const char *name)
{
    if (!command->quiet && !command->show && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%s%s", what, *name ? ": " : "", name);
}

static struct hw_run_request request_of(const struct command *command, const char *preload, bool show)
{
    return (struct hw_run_request){
        .path = command->target.path,
        .arguments = command->program,
        .text = command->target.text,
        .preload = preload,
        .input = &command->input,
        .mask = &command->mask,
        .show = show || command->show,
        .seconds_most = command->timeout_s       ? (double)command->timeout_s
                        : command->slowest_s > 0 ? command->slowest_s * SLOWER_MOST + SECONDS_MORE
                                                 : 0,
    };
}

/* Was this process asked to end: in the run of COST (may be NULL), or since? ERROR says so then. */
static bool was_interrupted(struct command *command, const struct hw_run_cost *cost, struct hw_error *error)
{
    if (!command->interrupted)
        command->interrupted = cost && cost->interrupted ? cost->interrupted : hw_helper_interrupted();
    if (command->interrupted)
        hw_error_set(error, "interrupted by signal %d (%s)", command->interrupted, strsignal(command->interrupted));
    return command->interrupted != 0;
}

/* One run. False with ERROR when it could not be started, or was interrupted. */
static bool run_once(struct command *command, size_t index, bool show, struct hw_error *error)
{
    struct hw_compared *one = &command->comparison.of[index];
    const struct hw_run_request request = request_of(command, one->preload, show);
    if (!hw_run_measure(&request, &one->last, error))
        return false;
    if (was_interrupted(command, &one->last, error))
        return false;
    if (!one->last.timed_out && one->last.wall_s > command->slowest_s)
        command->slowest_s = one->last.wall_s;
    return true;
}

/* A run that ended in another way than the program's own does not count, nor do further ones. */
static void note_run(struct command *command, size_t index)
{
    struct hw_compared *one = &command->comparison.of[index];
    struct hw_candidate *candidate = &command->comparison.candidates[index];
    const struct hw_run_cost *expected = &command->comparison.of[command->comparison.present].last;
    char end[128], usual[128];
    if (!hw_run_same_end(&one->last, expected)) {
        candidate->failed = true;
        snprintf(one->note, sizeof one->note, "%s; with the present allocator %s",
                 hw_run_describe_end(&one->last, end, sizeof end), hw_run_describe_end(expected, usual, sizeof usual));
        return;
    }
    const size_t round = candidate->rounds++;
    candidate->wall_s[round] = one->last.wall_s;
    candidate->cpu_s[round] = one->last.user_s + one->last.system_s;
    candidate->runnable_s[round] = one->last.runnable_s;
    candidate->rss_bytes[round] = one->last.peak_rss_bytes;
    candidate->faults[round] = (double)(one->last.minor_faults + one->last.major_faults);
}

/* The run from which all others' times are predicted. What the program does with its output is seen in this one. */
static bool profile_once(struct command *command, struct hw_error *error)
{
    struct hw_error reason = {""};
    struct hw_run_cost cost;
    size_t processes;
    const struct hw_run_request request = request_of(command, NULL, true);
    show_progress(command, "profiling", "");
    command->profile = hw_comparison_profile(&request, NULL, &cost, &processes, &reason);
    show_progress(command, "", "");
    char *note = command->comparison.prediction_note;
    const size_t size = sizeof command->comparison.prediction_note;
    if (was_interrupted(command, &cost, error))
        return false;
    if (!command->profile)
        snprintf(note, size, "Nothing was predicted: %.400s.", reason.message);
    else if (processes > 1)
        snprintf(note, size, "The program was %zu processes: the prediction is from the one that allocates most, %s.",
                 processes, command->profile->executable);
    return find_present(command, error);
}

static const char fewer_processors[] =
    "The program had more running threads than this machine has processors: how they slow each other down on a larger "
    "machine is neither measured nor predicted.";

/* The run whose operations are replayed. Without it, or with an allocator that cannot be preloaded, they are drawn from
 * the profile. False with ERROR: interrupted. */
static bool trace_once(struct command *command, struct hw_error *error)
{
    if (!command->profile || command->own.name[0])
        return true;
    struct hw_error reason = {""};
    struct hw_run_cost cost;
    struct hw_comparison *comparison = &command->comparison;
    struct hw_traced *traced = &command->traced;
    const struct hw_run_request request = request_of(command, NULL, false);
    show_progress(command, "tracing", "");
    if (!hw_comparison_trace(traced, &request, comparison->of[comparison->present].allocator, &cost, &reason) &&
        !comparison->prediction_note[0])
        snprintf(comparison->prediction_note, sizeof comparison->prediction_note,
                 "Predicted from the profile alone: %.400s.", reason.message);
    show_progress(command, "", "");
    comparison->packed = traced->packer.path[0] != '\0';
    comparison->of[comparison->count] =
        (struct hw_compared){.allocator = &traced->packed, .preload = traced->packer.path};
    return !was_interrupted(command, &cost, error);
}

/* Once more the course under one allocator. What was measured was disturbed by what else the machine does; replays
 * between the runs are so alike. */
static void replay(struct command *command, size_t index)
{
    struct hw_compared *one = &command->comparison.of[index];
    struct hw_error error;
    if (!command->traced.path[0] || one->replay_problem[0] || one->replays.count == HW_COURSE_REPLAYS_MOST ||
        command->interrupted)
        return;
    if (!hw_course_replay(command->traced.path, one->allocator, &one->replays, &error) && !hw_helper_interrupted())
        snprintf(one->replay_problem, sizeof one->replay_problem, "%.250s", error.message);
}

static void predict_course(struct command *command)
{
    struct hw_comparison *comparison = &command->comparison;
    const struct hw_course *course = &command->traced.course;
    const struct hw_compared *present = &comparison->of[comparison->present];
    const struct hw_course_present now = {.runs = &comparison->candidates[comparison->present],
                                          .replays = &present->replays,
                                          .scale = 1 + (double)course->missing / (double)course->operations,
                                          .one_thread = course->workers == 1};
    for (size_t round = present->replays.count; round < REPLAYS_LEAST; round++)
        for (size_t i = 0; i < comparison->count; i++)
            replay(command, i);
    comparison->now_s = hw_course_time(&now, SIZE_MAX);
    comparison->one_thread = now.one_thread;
    comparison->weighed = true;
    comparison->weight =
        hw_course_weigh(&now, &comparison->candidates[comparison->count], &comparison->of[comparison->count].replays);
    for (size_t i = 0; i < comparison->count; i++) {
        struct hw_compared *one = &comparison->of[i];
        const char *problem = *present->replay_problem ? present->replay_problem : one->replay_problem;
        if (one == present || comparison->candidates[i].failed)
            continue;
        if (!*problem)
            one->prediction = hw_course_predict(&now, &one->replays, &comparison->weight);
        one->predicted = one->prediction.value > 0;
        if (*problem && !comparison->prediction_note[0])
            snprintf(comparison->prediction_note, sizeof comparison->prediction_note, "No prediction for %s: %s.",
                     one->allocator->name, problem);
    }
    if (hw_fewer_processors(command->profile) && !comparison->prediction_note[0])
        snprintf(comparison->prediction_note, sizeof comparison->prediction_note, "%s", fewer_processors);
}

static void predict_profile(struct command *command)
{
    struct hw_comparison *comparison = &command->comparison;
    static struct hw_allocator_prediction predictions[HW_PREDICTIONS_MOST];
    comparison->now_s = comparison->candidates[comparison->present].least_s;
    const size_t count = hw_predict_profile(command->profile, &command->allocators, comparison->now_s, predictions);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < comparison->count; k++) {
            struct hw_compared *one = &comparison->of[k];
            if (strcmp(one->allocator->name, predictions[i].allocator) != 0 || one->allocator == &command->own)
                continue;
            one->predicted = predictions[i].replays > 0;
            one->prediction =
                (struct hw_speedup){(double)predictions[i].speedup * 1e-6, (double)predictions[i].low * 1e-6,
                                    (double)predictions[i].high * 1e-6};
            if ((predictions[i].flags & HW_PREDICTION_FEWER_PROCESSORS) && !comparison->prediction_note[0])
                snprintf(comparison->prediction_note, sizeof comparison->prediction_note, "%s", fewer_processors);
            if (!one->predicted && !comparison->prediction_note[0])
                snprintf(comparison->prediction_note, sizeof comparison->prediction_note, "No prediction for %s: %s.",
                         one->allocator->name, predictions[i].problem);
        }
}

static void predict(struct command *command)
{
    struct hw_comparison *comparison = &command->comparison;
    if (!command->profile)
        return;
    if (comparison->choice.reason == HW_CHOICE_TOO_SHORT) { /* replays have no start and no end of a process */
        snprintf(comparison->prediction_note, sizeof comparison->prediction_note,
                 "Nothing was predicted: runs of less than %.0f ms are mostly the start and the end of the process, "
                 "which replays do not contain.",
                 HW_SHORTEST_S * 1e3);
        return;
    }
    show_progress(command, "replaying", "");
    if (command->traced.path[0])
        predict_course(command);
    else if (!command->interrupted)
        predict_profile(command);
    show_progress(command, "", "");
}

/* The present allocator first: the other runs are compared with how its run ends. */
static bool warm_up(struct command *command, struct hw_error *error)
{
    struct hw_comparison *comparison = &command->comparison;
    show_progress(command, "warming up", "");
    if (!run_once(command, comparison->present, !command->profile, error))
        return false;
    const struct hw_run_cost *first = &comparison->of[comparison->present].last;
    if (first->timed_out) {
        hw_error_set(error, "%s did not end within %llu s", command->program[0],
                     (unsigned long long)command->timeout_s);
        return false;
    }
    if (first->wall_s > WARM_UP_MOST_S)
        return true;
    for (size_t i = 0; i < comparison->count; i++)
        if (i != comparison->present && !run_once(command, i, false, error))
            return false;
    return true;
}

/* In turn, every other round the other way round: what a run leaves behind for the next one falls on all alike. */
static bool measure(struct command *command, struct hw_error *error)
{
    struct hw_comparison *comparison = &command->comparison;
    const size_t count = comparison->count + comparison->packed;
    char what[64];
    for (size_t round = 0; round < command->rounds; round++) {
        for (size_t k = 0; k < count; k++) {
            const size_t index = round % 2 ? count - 1 - k : k;
            if (comparison->candidates[index].failed)
                continue;
            snprintf(what, sizeof what, "round %zu of %zu", round + 1, (size_t)command->rounds);
            show_progress(command, what, comparison->of[index].allocator->name);
            if (!run_once(command, index, false, error))
                return false;
            note_run(command, index);
            replay(command, index);
            if (was_interrupted(command, NULL, error))
                return false;
        }
    }
    return true;
}

/* After an interruption rounds count that all allocators have had. False: there is none. */
static bool keep_whole_rounds(struct command *command)
{
    struct hw_comparison *comparison = &command->comparison;
    const size_t count = comparison->count + comparison->packed;
    size_t whole = comparison->rounds;
    for (size_t i = 0; i < count; i++)
        if (!comparison->candidates[i].failed && comparison->candidates[i].rounds < whole)
            whole = comparison->candidates[i].rounds;
    for (size_t i = 0; i < count; i++)
        if (comparison->candidates[i].rounds > whole)
            comparison->candidates[i].rounds = whole;
    comparison->rounds = whole;
    return whole > 0;
}

static bool print_list(struct command *command, struct hw_error *error)
{
    if (!hw_allocators_find(&command->allocators, command->added.names, error))
        return false;
    for (size_t i = 0; i < command->allocators.count; i++) {
        const struct hw_allocator *allocator = &command->allocators.of[i];
        char *text = hw_facts_text(allocator->preload.path, error);
        if (!text)
            return false;
        printf("%s%s", i ? "\n" : "", text);
        free(text);
    }
    return true;
}

static bool compare(struct command *command, struct hw_error *error)
{
    struct hw_comparison *comparison = &command->comparison;
    if (!command->no_prediction && !profile_once(command, error))
        return false;
    fill_comparison(command);
    const bool ready = warm_up(command, error) && trace_once(command, error);
    const bool fine = ready && measure(command, error);
    show_progress(command, "", "");
    if (!fine && (!ready || !command->interrupted || !keep_whole_rounds(command)))
        return false;
    if (comparison->candidates[comparison->present].rounds == 0) {
        hw_error_set(error, "%s does not end in the same way each time: %s", command->program[0],
                     comparison->of[comparison->present].note);
        return false;
    }
    hw_compare(comparison->candidates, comparison->count + comparison->packed, comparison->present);
    comparison->choice = hw_choose(comparison->candidates, comparison->count, comparison->present);
    predict(command);
    struct hw_error interruption;
    if (was_interrupted(command, NULL, &interruption))
        hw_say("%s: this is what %zu of %zu rounds%s say", interruption.message, comparison->rounds,
               (size_t)command->rounds, fine ? ", and fewer replays," : "");
    return true;
}

static bool print_result(const struct command *command, struct hw_error *error)
{
    if (!command->json) {
        hw_comparison_print(&command->comparison);
        return true;
    }
    hw_error_set(error, "not enough memory");
    return hw_comparison_print_json(&command->comparison);
}

int hw_verb_allocators(int argc, char **argv)
{
    static struct command command;
    command = (struct command){.rounds = ROUNDS_USUAL, .input.fd = -1};
    int code = read_options(&command, argc, argv);
    if (code >= 0)
        return code;
    struct hw_error error = {""};
    bool fine = command.list ? print_list(&command, &error) : prepare(&command, &error);
    if (fine && !command.list) {
        hw_runs_block_signals(&command.mask);
        fine = compare(&command, &error);
        if (!fine)
            was_interrupted(&command, NULL, &error); /* that is why */
        hw_comparison_trace_free(&command.traced);
        hw_runs_release_signals(&command.mask);
        fine = fine && print_result(&command, &error);
    }
    if (!fine)
        hw_say("allocators: %s", error.message);
    hw_profile_free(command.profile);
    code = command.interrupted ? 128 + command.interrupted : fine ? HW_VERB_FINE : HW_VERB_USAGE;
    hw_input_free(&command.input);
    hw_allocators_free(&command.allocators);
    return code;
}
