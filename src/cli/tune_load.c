/* tune_load.c - heapwise tune: what is to become less, and the options of servers. */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tune.h"

static const struct {
    const char *name;
    bool of_servers;
    enum hw_metric metric[4]; /* the first that is known; ends with the same one twice */
} goals[] = {
    {"time", false, {HW_METRIC_WALL, HW_METRIC_WALL}},
    {"memory", false, {HW_METRIC_RSS, HW_METRIC_RSS}},
    {"both", false, {HW_METRIC_RSS, HW_METRIC_RSS}},
    {"throughput", true, {HW_METRIC_LOAD + HW_LOAD_THROUGHPUT, HW_METRIC_LOAD + HW_LOAD_THROUGHPUT}},
    {"latency",
     true,
     {HW_METRIC_LOAD + HW_LOAD_P99, HW_METRIC_LOAD + HW_LOAD_P999, HW_METRIC_LOAD + HW_LOAD_MEAN,
      HW_METRIC_LOAD + HW_LOAD_P50}},
    {"p50", true, {HW_METRIC_LOAD + HW_LOAD_P50, HW_METRIC_LOAD + HW_LOAD_P50}},
    {"p99", true, {HW_METRIC_LOAD + HW_LOAD_P99, HW_METRIC_LOAD + HW_LOAD_P99}},
    {"p999", true, {HW_METRIC_LOAD + HW_LOAD_P999, HW_METRIC_LOAD + HW_LOAD_P999}},
};
#define GOALS (sizeof goals / sizeof *goals)

static size_t goal_of(const char *name)
{
    size_t i = 0;
    while (i < GOALS && strcmp(goals[i].name, name) != 0)
        i++;
    return i;
}

bool hw_tune_take_goal(void *at, const char *value, const struct hw_option *option)
{
    *(const char **)at = value;
    return goal_of(value) < GOALS ||
           hw_option_unknown(option, value, "time, memory, both; with --load throughput, latency, p50, p99, p999");
}

bool hw_tune_take_stop(void *at, const char *value, const struct hw_option *option)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(value, signals[i].name) == 0) {
            *(int *)at = signals[i].number;
            return true;
        }
    return hw_option_unknown(option, value, "TERM, INT, HUP, QUIT");
}

bool hw_tune_take_processors(void *at, const char *value, const struct hw_option *option)
{
    cpu_set_t wanted, all, usable;
    *(const char **)at = value;
    if (!hw_processors_read(value, &wanted) || strlen(value) >= HW_SETTING_TEXT)
        return hw_option_needs(option, value, "a list of processors such as 0-3 or 0,2");
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return true;
    CPU_AND(&usable, &wanted, &all);
    return CPU_EQUAL(&usable, &wanted) || hw_option_needs(option, value, "processors that this process may use");
}

void hw_tune_request(struct hw_settings *settings, const char *name, const char *value)
{
    for (size_t i = 0; value && i < settings->count; i++) {
        struct hw_setting *setting = &settings->of[i];
        if (strcmp(setting->allocator, HW_SETTINGS_KERNEL) != 0 || strcmp(setting->name, name) != 0)
            continue;
        setting->on_request = false;
        setting->value_count = 1;
        snprintf(setting->values[0], sizeof setting->values[0], "%s", value);
    }
}

static bool is_no_port(const char *ready)
{
    uint64_t port;
    return ready[strspn(ready, "0123456789")] == '\0' && !hw_parse_number(ready, 1, 65535, &port);
}

bool hw_tune_check_server(const struct hw_server *server, const char *goal, bool check)
{
    static const char *const options[] = {"throughput", "latency", "p50", "p99", "p999"};
    struct hw_error error = {""};
    const char *given = server->ready ? "ready" : NULL;
    for (size_t i = 0; i < HW_LOAD_NUMBERS; i++)
        given = server->expressions.of[i] ? options[i] : given;
    if (!server->load && given)
        hw_say("tune: --%s is for servers: --load is needed", given);
    else if (!server->load && goals[goal_of(goal)].of_servers)
        hw_say("tune: --for=%s is for servers: --load is needed", goal);
    else if (!server->load)
        return true;
    else if (!server->ready)
        hw_say("tune: --load needs --ready=PORT or --ready=CMD: when can the server be used?");
    else if (is_no_port(server->ready))
        hw_say("tune: --ready=%s is not a port (1 to 65535)", server->ready);
    else if (check)
        hw_say("tune: --check is not for servers: let the command of --load fail");
    else {
        bool fine = true;
        for (size_t i = 0; fine && i < HW_LOAD_NUMBERS; i++) {
            fine = !server->expressions.of[i] || hw_load_expression_check(server->expressions.of[i], &error);
            if (!fine)
                hw_say("tune: --%s=%s", options[i], error.message);
        }
        return fine;
    }
    return false;
}

bool hw_tune_find_metric(const char *name, const struct hw_run_cost *plain, enum hw_metric *metric,
                         struct hw_error *error)
{
    const size_t goal = goal_of(name);
    for (size_t i = 0; i < sizeof goals[goal].metric / sizeof *goals[goal].metric; i++) {
        *metric = goals[goal].metric[i];
        if (!goals[goal].of_servers || hw_metric_of(plain, *metric) > 0)
            return true;
        if (i > 0 && *metric == goals[goal].metric[i - 1])
            break;
    }
    hw_error_set(error,
                 "--for=%s: no such number was found in what the load generator printed; --%s=REGEX finds it "
                 "(--show-output shows the text)",
                 name, name);
    return false;
}

double hw_tune_score(const char *goal, enum hw_metric metric, const struct hw_run_cost *cost)
{
    const double value = hw_metric_of(cost, metric);
    if (strcmp(goal, "both") == 0)
        return sqrt(cost->wall_s * (double)cost->peak_rss_bytes);
    return metric == HW_METRIC_LOAD + HW_LOAD_THROUGHPUT && value > 0 ? 1 / value : value;
}
