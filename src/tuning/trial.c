/* trial.c - see trial.h. */
#include "tuning/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define OUTPUT_MOST        (1ull << 30)
#define CHECK_SECONDS_MOST 600 /* where the run has no limit */

/* Hashes FILE from its beginning. False with ERROR. */
static bool hash_output(int file, struct hw_trial *trial, struct hw_error *error)
{
    static char bytes[1 << 16];
    XXH3_state_t *state = XXH3_createState();
    if (!state || XXH3_64bits_reset(state) != XXH_OK) {
        XXH3_freeState(state);
        hw_error_set(error, "not enough memory");
        return false;
    }
    ssize_t got;
    while ((got = pread(file, bytes, sizeof bytes, (off_t)trial->output_bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        XXH3_64bits_update(state, bytes, (size_t)got);
        trial->output_bytes += (uint64_t)got;
    }
    trial->output_hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (got < 0)
        hw_error_set(error, "cannot read what the program printed: %s", strerror(errno));
    return got == 0;
}

static bool run_check(const struct hw_trial_program *program, int output, struct hw_trial *trial,
                      struct hw_error *error)
{
    char shell[] = "sh", option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)program->check, NULL};
    const struct hw_input input = {.fd = output};
    const struct hw_run_request request = {.path = "/bin/sh",
                                           .arguments = arguments,
                                           .input = &input,
                                           .show = program->run.show,
                                           .seconds_most = program->run.seconds_most > 0 ? program->run.seconds_most
                                                                                         : CHECK_SECONDS_MOST,
                                           .mask = program->run.mask};
    struct hw_run_cost cost;
    if (!hw_run_measure(&request, &cost, error))
        return false;
    trial->checked = true;
    trial->check_s = cost.timed_out ? cost.wall_s : 0;
    trial->check_code = cost.exit_kind == HW_EXIT_SIGNAL ? 128 + cost.exit_value : cost.exit_value;
    trial->cost.interrupted = trial->cost.interrupted ? trial->cost.interrupted : cost.interrupted;
    return true;
}

bool hw_trial_run(const struct hw_trial_program *program, struct hw_trial *trial, struct hw_error *error)
{
    struct hw_run_request request = program->run;
    request.sample = true;
    memset(trial, 0, sizeof *trial);
    if (!program->keep_output && !program->check)
        return hw_run_measure(&request, &trial->cost, error);
    const int output = hw_run_temporary();
    if (output < 0) {
        hw_error_set(error, "cannot make a temporary file for what the program prints: %s", strerror(errno));
        return false;
    }
    request.output = output;
    request.output_most = OUTPUT_MOST;
    bool fine = hw_run_measure(&request, &trial->cost, error) && hash_output(output, trial, error);
    if (fine && program->check && !trial->cost.timed_out && !trial->cost.interrupted)
        fine = run_check(program, output, trial, error);
    close(output);
    return fine;
}

bool hw_trial_problem(const struct hw_trial *trial, const struct hw_trial *expected, const char *name, bool same_output,
                      char *problem, size_t size)
{
    char end[128], usual[128];
    if (!hw_run_same_end(&trial->cost, &expected->cost))
        snprintf(problem, size, "%s (%s: %s)", hw_run_describe_end(&trial->cost, end, sizeof end), name,
                 hw_run_describe_end(&expected->cost, usual, sizeof usual));
    else if (trial->checked && trial->check_s > 0)
        snprintf(problem, size, "the check of its output was ended after %.1f s", trial->check_s);
    else if (trial->checked && trial->check_code != 0)
        snprintf(problem, size, "the check of its output exited with code %d", trial->check_code);
    else if (same_output &&
             (trial->output_hash != expected->output_hash || trial->output_bytes != expected->output_bytes))
        snprintf(problem, size, "it printed something else (%" PRIu64 " bytes; %s: %" PRIu64 " bytes)",
                 trial->output_bytes, name, expected->output_bytes);
    else
        return false;
    return true;
}
