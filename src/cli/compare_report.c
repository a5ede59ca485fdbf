/* compare_report.c - the result of heapwise compare as text and JSON. */
#include "cli/compare.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/pairs_report.h"
#include "report/text/human.h"

#define TEXT HW_CHANGE_TEXT

bool hw_ab_worse(const struct hw_ab *ab)
{
    if (ab->failure[0])
        return true;
    for (int metric = 0; metric < HW_METRICS; metric++)
        if (ab->judged[metric] && hw_pairs_change(&ab->pairs, (enum hw_metric)metric, ab->tolerance).beyond)
            return true;
    return false;
}

/* ---- text ---- */

static void print_command(const struct hw_ab *ab, int side)
{
    const struct hw_ab_side *one = &ab->side[side];
    char word[256];
    printf("  %c:", "AB"[side]);
    for (size_t i = 0; one->command[i] && i < 8; i++)
        printf(" %s", hw_shell_word(one->command[i], word, sizeof word));
    printf("%s", one->command[0] && one->command[1] && one->command[2] && one->command[3] && one->command[4] &&
                         one->command[5] && one->command[6] && one->command[7] && one->command[8]
                     ? " ..."
                     : "");
    if (one->config)
        printf("  (with %s)", hw_shell_word(one->config, word, sizeof word));
    putchar('\n');
}

static void print_worse(const struct hw_metric_kind *kind, const struct hw_change *change, double tolerance)
{
    char low[TEXT];
    hw_change_text(low, change->ratio.low);
    printf("B is worse in %s: %s at least, %s the tolerance of %g %%.\n", kind->title, low,
           change->beyond ? "more than" : "which is not surely beyond", 100 * tolerance);
}

static void print_judgement(const struct hw_ab *ab, enum hw_metric metric)
{
    const struct hw_metric_kind *kind = &hw_metric_kinds[metric];
    const struct hw_change change = hw_pairs_change(&ab->pairs, metric, ab->tolerance);
    char low[TEXT], high[TEXT];
    switch (change.verdict) {
    case HW_CHANGE_UNKNOWN:
        if (change.ratio.value > 0)
            printf("%zu pairs are too few to say anything about %s: %zu are needed.\n", ab->pairs.count, kind->title,
                   hw_pairs_least(HW_CONFIDENCE));
        else if (ab->pairs.count > 0)
            printf("The %s is not known: it is too small to be measured.\n", kind->title);
        break;
    case HW_CHANGE_NONE:
        printf("No difference beyond the noise in %s: it lies between %s and %s.\n", kind->title,
               hw_change_text(low, change.ratio.low), hw_change_text(high, change.ratio.high));
        break;
    case HW_CHANGE_BETTER:
        printf("B is better in %s: %s at least.\n", kind->title, hw_change_text(high, change.ratio.high));
        break;
    case HW_CHANGE_WORSE:
        print_worse(kind, &change, ab->tolerance);
        break;
    }
}

void hw_ab_print_output(const struct hw_ab *ab)
{
    if (ab->output_differs)
        printf("A and B print different output (%s, %s).\n", HW_BYTES(ab->side[HW_SIDE_A].first.output_bytes),
               HW_BYTES(ab->side[HW_SIDE_B].first.output_bytes));
}

static void print_notes(const struct hw_ab *ab)
{
    const struct hw_run_cost *a = &ab->side[HW_SIDE_A].first.cost;
    const bool a_fails = a->exit_kind == HW_EXIT_CODE && a->exit_value != 0;
    if (ab->failure[0])
        printf(a_fails ? "B ends in another way than A, which fails: %s.\n" : "B fails: %s.\n", ab->failure);
    else if (a_fails && ab->pairs.count > 0)
        printf("A and B both exited with code %d: make sure that they did their work.\n", (int)a->exit_value);
    for (int side = 0; side < HW_SIDES; side++)
        if (ab->side[side].unsteady)
            printf("The output of %c is not the same in each run: it was not compared.\n", "AB"[side]);
    hw_ab_print_output(ab);
    if (ab->input_replaced)
        puts("The standard input is a terminal: the programs were given an empty one.");
}

void hw_ab_print(const struct hw_ab *ab)
{
    const size_t count = ab->pairs.count;
    if (count > 0)
        printf("Compared in %zu pair%s of runs, in random order\n", count, count == 1 ? "" : "s");
    else
        puts("No pair of runs was finished");
    for (int side = 0; side < HW_SIDES; side++)
        print_command(ab, side);
    if (count > 0) {
        putchar('\n');
        hw_pairs_print_head("A", "B");
        for (int metric = 0; metric < HW_METRICS; metric++)
            hw_pairs_print_row(&ab->pairs, (enum hw_metric)metric);
        const double wall = hw_median(ab->pairs.a[HW_METRIC_WALL], count);
        putchar('\n');
        for (int metric = 0; metric < HW_METRICS; metric++)
            if (ab->judged[metric])
                print_judgement(ab, (enum hw_metric)metric);
        const double other = hw_median(ab->pairs.b[HW_METRIC_WALL], count);
        if (wall < HW_SHORTEST_S || other < HW_SHORTEST_S)
            printf("A run of %c takes %.1f ms, and most of that is the start of the program. Give it more to do.\n",
                   wall < other ? 'A' : 'B', 1e3 * (wall < other ? wall : other));
    }
    print_notes(ab);
}

/* ---- JSON ---- */

static json_t *json_values(const double *values, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, hw_known_json(values[i]));
    return array;
}

static json_t *json_side(const struct hw_ab *ab, int side)
{
    const struct hw_ab_side *one = &ab->side[side];
    json_t *object = json_object(), *command = json_array();
    for (size_t i = 0; one->command[i]; i++)
        json_array_append_new(command, hw_text_json(one->command[i]));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "config", one->config ? hw_text_json(one->config) : json_null());
    json_object_set_new(object, "exit",
                        one->first.cost.timed_out
                            ? json_pack("{s:b}", "timed_out", 1)
                            : json_pack("{s:i}", one->first.cost.exit_kind == HW_EXIT_SIGNAL ? "signal" : "code",
                                        one->first.cost.exit_value));
    json_object_set_new(object, "output_bytes",
                        ab->output_kept ? json_integer((json_int_t)one->first.output_bytes) : json_null());
    return object;
}

static json_t *json_metric(const struct hw_ab *ab, enum hw_metric metric)
{
    static const char *const verdicts[] = {"unknown", "none", "better", "worse"};
    const struct hw_change change = hw_pairs_change(&ab->pairs, metric, ab->tolerance);
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(hw_metric_kinds[metric].key));
    json_object_set_new(object, "a", hw_known_json(change.a));
    json_object_set_new(object, "b", hw_known_json(change.b));
    json_object_set_new(object, "ratio", hw_known_json(change.ratio.value));
    json_object_set_new(object, "low", change.ratio.known ? json_real(change.ratio.low) : json_null());
    json_object_set_new(object, "high", change.ratio.known ? json_real(change.ratio.high) : json_null());
    json_object_set_new(object, "verdict", json_string(verdicts[change.verdict]));
    json_object_set_new(object, "judged", json_boolean(ab->judged[metric]));
    json_object_set_new(object, "beyond_tolerance", json_boolean(change.beyond));
    json_object_set_new(object, "a_runs", json_values(ab->pairs.a[metric], ab->pairs.count));
    json_object_set_new(object, "b_runs", json_values(ab->pairs.b[metric], ab->pairs.count));
    return object;
}

bool hw_ab_print_json(const struct hw_ab *ab)
{
    json_t *object = json_object(), *metrics = json_array();
    json_object_set_new(object, "pairs", json_integer((json_int_t)ab->pairs.count));
    json_object_set_new(object, "interrupted", json_boolean(!ab->failure[0] && ab->pairs.count < ab->wanted));
    json_object_set_new(object, "tolerance_percent", json_real(100 * ab->tolerance));
    json_object_set_new(object, "a", json_side(ab, HW_SIDE_A));
    json_object_set_new(object, "b", json_side(ab, HW_SIDE_B));
    for (int metric = 0; metric < HW_METRIC_LOAD; metric++)
        json_array_append_new(metrics, json_metric(ab, (enum hw_metric)metric));
    const bool compared =
        ab->output_kept && !ab->failure[0] && !ab->side[HW_SIDE_A].unsteady && !ab->side[HW_SIDE_B].unsteady;
    json_object_set_new(object, "metrics", metrics);
    json_object_set_new(object, "same_output", compared ? json_boolean(!ab->output_differs) : json_null());
    json_object_set_new(object, "failure", ab->failure[0] ? hw_text_json(ab->failure) : json_null());
    json_object_set_new(object, "worse", json_boolean(hw_ab_worse(ab)));
    const bool fine = object && json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (fine)
        putchar('\n');
    json_decref(object);
    return fine;
}
