/* verb_start.c - heapwise start, heapwise stop: counting in a process that was started with `record --paused`.
 *
 * The process does it itself, asked like for a dump (asking.h): see runtime/core/periods.c. */
#include "cli/cli.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/asking.h"
#include "cli/options.h"

#define USUAL_TIMEOUT_S 10

struct period {
    bool discard, quiet;
    uint64_t timeout_s;
    struct hw_recorded recorded;
};

static const char start_help[] = "Usage: heapwise start [OPTION...] PID\n"
                                 "\n"
                                 "Starts counting in a process that was started with heapwise record --paused, and\n"
                                 "prints the name of its profile. Every allocation that begins later is counted.\n"
                                 "Blocks from before are not known. heapwise stop ends it; another heapwise start\n"
                                 "begins again from zero.\n"
                                 "\n"
                                 "      --discard       after heapwise stop: do not keep what was counted so far\n"
                                 "                      (default: it is kept, in a file with .dump1, .dump2 …\n"
                                 "                      before the extension)\n"
                                 "      --timeout=N     wait at most N seconds for the process to answer\n"
                                 "                      (default 10)\n"
                                 "  -q, --quiet         do not print the name of the file that was kept\n"
                                 "  -h, --help          this text\n"
                                 "\n"
                                 "Exits with 0, or with 2 for wrong usage and if counting was not started.\n";

static const char stop_help[] = "Usage: heapwise stop [OPTION...] PID\n"
                                "\n"
                                "Ends counting that heapwise start began, and prints the name of the profile.\n"
                                "The process continues, and Heapwise costs it almost no time. The profile stays\n"
                                "as it is until the process ends, or until the next heapwise start.\n"
                                "\n"
                                "      --timeout=N     wait at most N seconds for the process to answer\n"
                                "                      (default 10)\n"
                                "  -h, --help          this text\n"
                                "\n"
                                "Exits with 0, or with 2 for wrong usage and if counting was not stopped.\n";

static bool take_timeout(void *seconds, const char *value, const struct hw_option *option)
{
    return hw_parse_number(value, 1, 86400, seconds) ||
           hw_option_needs(option, value, "a number of seconds from 1 to 86400");
}

static const struct hw_option start_options[] = {
    HW_OPTION_FLAG("discard", 0, struct period, discard),
    HW_OPTION_FLAG("quiet", 'q', struct period, quiet),
    HW_OPTION_KEPT("timeout", 0, take_timeout, uint64_t, struct period, timeout_s),
    HW_OPTION_HELP('h'),
    {0},
};

static const struct hw_option stop_options[] = {
    HW_OPTION_KEPT("timeout", 0, take_timeout, uint64_t, struct period, timeout_s),
    HW_OPTION_HELP('h'),
    {0},
};

/* What a process that cannot be asked lacks; NULL: nothing. */
static const char *why_not(const struct hw_process_info *process)
{
    return process->flags & HW_PROCESS_ATTACHED ? "is recorded since heapwise attach: heapwise detach ends that"
           : process->counting == HW_COUNTING_ALWAYS
               ? "counts from its start to its end: start it with heapwise record --paused"
           : process->dump_signal == 0
               ? "handles no signal of Heapwise (dump-signal=0, it uses that signal itself, or it has given up system "
                 "calls)"
               : NULL;
}

static bool ask(struct period *period, enum hw_period_request what, const char *name)
{
    struct hw_recorded *recorded = &period->recorded;
    const struct hw_process_info *process = &recorded->process;
    const int pid = (int)recorded->pid;
    const char *why = why_not(process);
    if (why) {
        hw_error_set(&recorded->error, "process %d %s", pid, why);
        return false;
    }
    const struct hw_asking asking = {
        .request = ((process->period_request & ~(uint32_t)HW_PERIOD_WHAT) + HW_PERIOD_NUMBER) | (uint32_t)what,
        .request_at = offsetof(struct hw_process_info, period_request),
        .answer_at = offsetof(struct hw_process_info, period_answer),
        .signal_value = process->dump_answer, /* asks for no dump */
        .timeout_s = period->timeout_s,
        .what = name,
    };
    if (!hw_ask(recorded, &asking))
        return false;
    const int32_t result = process->period_result;
    if (result == HW_PERIOD_ALREADY)
        hw_error_set(&recorded->error, what == HW_PERIOD_STOP ? "process %d does not count: nothing to stop"
                                                              : "process %d counts already",
                     pid);
    else if (result == HW_PERIOD_NO_MEMORY)
        hw_error_set(&recorded->error,
                     "process %d cannot begin again from zero: there is no memory, or its memory is locked (mlockall)", pid);
    else if (result < 0)
        hw_error_set(&recorded->error,
                     "process %d did not start counting: what it has counted before cannot be written beside %s: %s "
                     "(with --discard it is not written)",
                     pid, recorded->path, strerror(-result));
    return result >= 0;
}

static void say_kept(const struct period *period)
{
    const char *path = period->recorded.reach;
    const size_t length = strlen(path), extension = strlen(".hwprof");
    const bool has = length > extension && strcmp(path + length - extension, ".hwprof") == 0;
    hw_say("start: what was counted before is in %.*s.dump%" PRId32 ".hwprof", (int)(has ? length - extension : length),
           path, period->recorded.process.period_result);
}

static int run(int argc, char **argv, const struct hw_option *options, const char *help, bool stop)
{
    static struct period period;
    uint64_t pid = 0;
    period = (struct period){.timeout_s = USUAL_TIMEOUT_S, .recorded.profile = -1};
    const int code = hw_options_take(options, false, help, argc, argv, &period);
    if (code)
        return code < 0 ? HW_VERB_FINE : code;
    if (optind + 1 != argc) {
        hw_say(optind < argc ? "%s: one process at a time" : "%s: which PID? (see heapwise %s --help)", argv[0],
               argv[0]);
        return HW_VERB_USAGE;
    }
    if (!hw_parse_number(argv[optind], 1, INT_MAX, &pid)) {
        hw_say("%s: '%s' is not the number of a process", argv[0], argv[optind]);
        return HW_VERB_USAGE;
    }
    period.recorded.pid = (pid_t)pid;
    const enum hw_period_request what = stop             ? HW_PERIOD_STOP
                                        : period.discard ? HW_PERIOD_START_ANEW
                                                         : HW_PERIOD_START;
    const bool fine = hw_recorded_find(&period.recorded) && ask(&period, what, stop ? "a stop" : "a start");
    if (period.recorded.profile >= 0)
        close(period.recorded.profile);
    if (!fine)
        hw_say("%s: %s", argv[0], period.recorded.error.message);
    else {
        if (!stop && period.recorded.process.period_result > 0 && !period.quiet)
            say_kept(&period);
        puts(period.recorded.reach);
    }
    return fine ? HW_VERB_FINE : HW_VERB_USAGE;
}

int hw_verb_start(int argc, char **argv)
{
    return run(argc, argv, start_options, start_help, false);
}

int hw_verb_stop(int argc, char **argv)
{
    return run(argc, argv, stop_options, stop_help, true);
}
