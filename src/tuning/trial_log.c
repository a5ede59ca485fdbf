/* trial_log.c - see trial_log.h. */
#include "tuning/trial_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION   2
#define FILE_MOST (256u << 20)

/* ---- writing ---- */

static json_t *text_of(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_string("(not UTF-8)");
}

/* Writes OBJECT, which it takes, as a line. False with ERROR. */
static bool put(struct hw_trial_log *log, json_t *object, struct hw_error *error)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    const size_t size = strlen(text);
    text[size] = '\n'; /* in place of the end */
    const bool fine = write(log->file, text, size + 1) == (ssize_t)(size + 1);
    if (!fine)
        hw_error_set(error, "cannot write the file of trials: %s", strerror(errno));
    free(text);
    return fine;
}

static json_t *command_of(const struct hw_trial_plan *plan)
{
    json_t *command = json_array();
    for (size_t i = 0; plan->command[i]; i++)
        json_array_append_new(command, text_of(plan->command[i]));
    return command;
}

bool hw_trial_log_begin(struct hw_trial_log *log, const struct hw_trial_plan *plan, struct hw_error *error)
{
    if (log->file < 0)
        return true;
    json_t *configurations = json_array(), *untried = json_array();
    for (size_t i = 0; i < plan->candidates.count; i++) {
        char *text = hw_configuration_text(&plan->candidates.of[i], NULL);
        json_array_append_new(configurations, text_of(text ? text : ""));
        free(text);
    }
    for (size_t i = 0; i < plan->candidates.untried_count; i++)
        json_array_append_new(untried, json_pack("[o,o]", text_of(plan->candidates.untried[i].name),
                                                 text_of(plan->candidates.untried[i].why)));
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)plan->seed);
    return put(log,
               json_pack("{s:i,s:o,s:s,s:o,s:f,s:s,s:o,s:o}", "heapwise_tune", VERSION, "command", command_of(plan),
                         "goal", plan->goal, "limits", text_of(plan->limits), "budget_s", plan->budget_s, "seed", seed,
                         "configurations", configurations, "untried", untried),
               error);
}

bool hw_trial_log_add(struct hw_trial_log *log, const struct hw_logged_trial *logged, struct hw_error *error)
{
    const struct hw_run_cost *cost = &logged->trial.cost;
    if (log->file < 0)
        return true;
    json_t *load = json_array();
    for (int i = 0; i < HW_LOAD_NUMBERS; i++)
        json_array_append_new(load, json_real(cost->load[i]));
    return put(log,
               json_pack("{s:I,s:f,s:b,s:f,s:f,s:f,s:f,s:I,s:I,s:I,s:I,s:o,s:o}", "configuration",
                         (json_int_t)logged->index, "clock_s", logged->clock_s, "steady", logged->steady, "score",
                         logged->trial.score, "wall_s", cost->wall_s, "user_s", cost->user_s, "system_s",
                         cost->system_s, "peak_rss_bytes", (json_int_t)cost->peak_rss_bytes, "minor_faults",
                         (json_int_t)cost->minor_faults, "major_faults", (json_int_t)cost->major_faults,
                         "rss_after_bytes", (json_int_t)cost->rss_after_bytes, "load", load, "problem",
                         text_of(logged->trial.problem)),
               error);
}

/* ---- reading ---- */

static char *read_all(int file, size_t *size, struct hw_error *error)
{
    struct stat status;
    char *text = NULL;
    if (fstat(file, &status) != 0)
        hw_error_set(error, "%s", strerror(errno));
    else if (!S_ISREG(status.st_mode) || status.st_size > (off_t)FILE_MOST)
        hw_error_set(error, "not a file of trials");
    else if (!(text = malloc((size_t)status.st_size + 1)))
        hw_error_set(error, "not enough memory");
    else if (pread(file, text, (size_t)status.st_size, 0) != (ssize_t)status.st_size) {
        hw_error_set(error, "it cannot be read");
        free(text);
        text = NULL;
    }
    *size = text ? (size_t)status.st_size : 0;
    if (text)
        text[*size] = '\0';
    return text;
}

/* What is raced, from the first line. */
static bool take_plan(struct hw_trial_plan *plan, const json_t *line, const struct hw_settings *settings,
                      struct hw_error *error)
{
    const char *goal, *limits, *seed;
    json_t *command, *configurations, *untried, *one;
    int version;
    size_t i;
    if (json_unpack((json_t *)(uintptr_t)line, "{s:i,s:o,s:s,s:s,s:F,s:s,s:o,s:o}", "heapwise_tune", &version,
                    "command", &command, "goal", &goal, "limits", &limits, "budget_s", &plan->budget_s, "seed", &seed,
                    "configurations", &configurations, "untried", &untried) != 0 ||
        version != VERSION) {
        hw_error_set(error, "not a file of trials of this version of Heapwise");
        return false;
    }
    json_t *ours = command_of(plan);
    const bool same = json_equal(ours, command) && strcmp(goal, plan->goal) == 0 && strcmp(limits, plan->limits) == 0;
    json_decref(ours);
    if (!same) {
        hw_error_set(error, "its trials are of another command, or with other options");
        return false;
    }
    plan->seed = strtoull(seed, NULL, 10);
    json_array_foreach(configurations, i, one)
    {
        struct hw_configuration configuration;
        const char *text = json_string_value(one);
        if (!hw_configuration_parse(&configuration, settings, text ? text : "", "a configuration", error) ||
            !hw_candidates_add(&plan->candidates, &configuration, error))
            return false;
    }
    json_array_foreach(untried, i, one)
    {
        const char *name, *why;
        if (json_unpack(one, "[s,s]", &name, &why) != 0 ||
            !hw_candidates_add_untried(&plan->candidates, name, why, error))
            return false;
    }
    if (plan->candidates.count == 0)
        hw_error_set(error, "it has no configurations");
    return plan->candidates.count > 0;
}

/* A trial of a whole line; false: it is damaged. */
static bool take_trial(struct hw_logged_trial *logged, const json_t *line, size_t count)
{
    json_int_t index, rss, after, minor, major;
    const char *problem;
    json_t *load;
    int steady;
    struct hw_run_cost *cost = &logged->trial.cost;
    memset(logged, 0, sizeof *logged);
    if (json_unpack((json_t *)(uintptr_t)line, "{s:I,s:F,s:b,s:F,s:F,s:F,s:F,s:I,s:I,s:I,s:I,s:o,s:s}", "configuration",
                    &index, "clock_s", &logged->clock_s, "steady", &steady, "score", &logged->trial.score, "wall_s",
                    &cost->wall_s, "user_s", &cost->user_s, "system_s", &cost->system_s, "peak_rss_bytes", &rss,
                    "minor_faults", &minor, "major_faults", &major, "rss_after_bytes", &after, "load", &load, "problem",
                    &problem) != 0 ||
        index < 0 || (size_t)index >= count)
        return false;
    logged->index = (size_t)index;
    logged->steady = steady;
    cost->peak_rss_bytes = (uint64_t)rss;
    cost->rss_after_bytes = (uint64_t)after;
    for (size_t i = 0; i < HW_LOAD_NUMBERS; i++)
        cost->load[i] = json_number_value(json_array_get(load, i));
    cost->minor_faults = (uint64_t)minor;
    cost->major_faults = (uint64_t)major;
    snprintf(logged->trial.problem, sizeof logged->trial.problem, "%s", problem);
    return true;
}

/* The lines of TEXT; a damaged one ends them, and *VALID says where. */
static bool take_lines(struct hw_trial_log *log, struct hw_trial_plan *plan, const struct hw_settings *settings,
                       char *text, size_t *valid, struct hw_error *error)
{
    bool first = true;
    *valid = 0;
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        json_t *line = json_loads(at, 0, NULL);
        bool fine = line != NULL;
        if (first && !(fine && take_plan(plan, line, settings, error))) {
            if (!fine)
                hw_error_set(error, "not a file of trials");
            json_decref(line);
            return false;
        }
        if (!first && fine) {
            struct hw_logged_trial *more = (log->count & (log->count - 1)) == 0
                                               ? realloc(log->of, (log->count ? 2 * log->count : 1) * sizeof *log->of)
                                               : log->of;
            if (!more) {
                hw_error_set(error, "not enough memory");
                json_decref(line);
                return false;
            }
            log->of = more;
            fine = take_trial(&log->of[log->count], line, HW_RACE_MOST); /* combinations are made again */
            log->count += fine;
        }
        json_decref(line);
        if (!fine)
            break;
        first = false;
        *valid = (size_t)(end + 1 - text);
    }
    if (first)
        hw_error_set(error, "not a file of trials");
    return !first;
}

bool hw_trial_log_open(struct hw_trial_log *log, const char *path, struct hw_trial_plan *plan,
                       const struct hw_settings *settings, bool *found, struct hw_error *error)
{
    struct hw_error reason = {""};
    *log = (struct hw_trial_log){.file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)};
    *found = false;
    if (log->file < 0) {
        hw_error_set(error, "%s: %s", path, strerror(errno));
        return false;
    }
    size_t size, valid;
    char *text = read_all(log->file, &size, &reason);
    bool fine = text != NULL;
    if (fine && size > 0) {
        *found = true;
        fine = take_lines(log, plan, settings, text, &valid, &reason) &&
               (valid == size || ftruncate(log->file, (off_t)valid) == 0);
    }
    free(text);
    if (!fine)
        hw_error_set(error, "%.200s: %.300s", path, reason.message);
    return fine;
}

const struct hw_logged_trial *hw_trial_log_next(struct hw_trial_log *log, size_t index)
{
    if (log->used < log->count && log->of[log->used].index == index)
        return &log->of[log->used++];
    log->count = log->used; /* what follows is of another race */
    return NULL;
}

void hw_trial_log_free(struct hw_trial_log *log)
{
    if (log->file >= 0)
        close(log->file);
    free(log->of);
    *log = (struct hw_trial_log){.file = -1};
}
