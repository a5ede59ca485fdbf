/* tune_report.c - the result of heapwise tune as text and JSON. */
#include "cli/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "allocators/installed.h"
#include "cli/pairs_report.h"
#include "tuning/paste.h"

#define SHOWN_MOST 10 /* lines of a list */

/* "glibc, hugetlb 1": of settings of the program's own allocator, too. Valid until the next call. */
static const char *label_of(const struct hw_tuned *tuned, size_t index)
{
    static char label[HW_CONFIGURATION_LABEL + HW_SETTING_TEXT];
    char text[HW_CONFIGURATION_LABEL];
    const struct hw_configuration *configuration = &tuned->plan.candidates.of[index];
    const bool own = strcmp(configuration->allocator, HW_CONFIGURATION_OWN) == 0;
    const char *settings;
    hw_configuration_label(configuration, text, sizeof text);
    if (own && strcmp(configuration->settings, HW_CONFIGURATION_OWN) != 0 && (settings = strchr(text, ',')))
        snprintf(label, sizeof label, "%s%s", configuration->settings, settings);
    else
        snprintf(label, sizeof label, "%s", text);
    return label;
}

/* What became less. */
static const char *goal_of(const struct hw_tuned *tuned)
{
    const char *goal = tuned->plan.goal;
    return strcmp(goal, "both") == 0         ? "time and memory together (geometric mean)"
           : tuned->metric == HW_METRIC_LOAD ? "time per request"
           : tuned->metric > HW_METRIC_LOAD  ? hw_metric_kinds[tuned->metric].title
                                             : goal;
}

/* ---- time against memory ---- */

/* What stands for time: what the search was for, of servers. */
static enum hw_metric time_metric(const struct hw_tuned *tuned)
{
    return tuned->metric >= HW_METRIC_LOAD ? tuned->metric : HW_METRIC_WALL;
}

/* Less is better. */
static double cost_ratio(const struct hw_entrant *entrant, enum hw_metric metric)
{
    const double value = hw_race_ratio(entrant, metric).value;
    return metric == HW_METRIC_LOAD + HW_LOAD_THROUGHPUT && value > 0 ? 1 / value : value;
}

/* Surely better than the program as it is in time or memory, by its selection. */
static bool is_better(const struct hw_tuned *tuned, const struct hw_entrant *entrant)
{
    return entrant->state != HW_RACE_EXCLUDED &&
           (hw_pairs_change(&entrant->selection, time_metric(tuned), 0).verdict == HW_CHANGE_BETTER ||
            hw_pairs_change(&entrant->selection, HW_METRIC_RSS, 0).verdict == HW_CHANGE_BETTER);
}

static bool dominates(const struct hw_tuned *tuned, const struct hw_entrant *one, const struct hw_entrant *other)
{
    const enum hw_metric metric = time_metric(tuned);
    const double time = cost_ratio(one, metric), memory = cost_ratio(one, HW_METRIC_RSS);
    const double other_time = cost_ratio(other, metric), other_memory = cost_ratio(other, HW_METRIC_RSS);
    return time <= other_time && memory <= other_memory && (time < other_time || memory < other_memory);
}

/* Of those that are better in something, the ones that no other one beats in both. */
static bool is_on_front(const struct hw_tuned *tuned, size_t index)
{
    const struct hw_race *race = &tuned->race;
    if (index == HW_RACE_PLAIN || !is_better(tuned, &race->of[index]))
        return false;
    for (size_t i = 1; i < race->count; i++)
        if (i != index && is_better(tuned, &race->of[i]) && dominates(tuned, &race->of[i], &race->of[index]))
            return false;
    return true;
}

/* ---- text ---- */

static void print_front(const struct hw_tuned *tuned)
{
    const struct hw_race *race = &tuned->race;
    const enum hw_metric shown_metrics[] = {time_metric(tuned), HW_METRIC_CPU, HW_METRIC_RSS, HW_METRIC_RSS_AFTER,
                                            HW_METRIC_FAULTS};
    size_t shown = 0;
    char change[HW_CHANGE_TEXT];
    for (size_t i = 1; i < race->count && shown < SHOWN_MOST; i++) {
        if (!is_on_front(tuned, i))
            continue;
        if (shown++ == 0)
            puts("\nTime against memory: none of the others is better in both");
        printf(" %c %s\n     ", i == race->winner ? '*' : ' ', label_of(tuned, i));
        for (size_t k = 0; k < sizeof shown_metrics / sizeof *shown_metrics; k++) {
            const double ratio = hw_race_ratio(&race->of[i], shown_metrics[k]).value;
            if (ratio > 0)
                printf("%s%s %s", k ? ", " : "", hw_metric_kinds[shown_metrics[k]].title,
                       hw_change_text(change, ratio));
        }
        putchar('\n');
    }
    if (shown)
        puts(race->winner ? "  * confirmed; the others are estimates from the selection"
                          : "  estimates from the selection, not confirmed");
}

static void print_excluded(const struct hw_tuned *tuned)
{
    const struct hw_race *race = &tuned->race;
    size_t count = 0;
    for (size_t i = 1; i < race->count; i++)
        if (race->of[i].state == HW_RACE_EXCLUDED)
            printf("%s  %s: %s\n", count++ ? "" : "\nExcluded:\n", label_of(tuned, i), race->of[i].problem);
}

static void print_untried(const struct hw_tuned *tuned)
{
    for (size_t i = 0; i < tuned->plan.candidates.untried_count; i++)
        printf("%s  %s: %s\n", i ? "" : "\nNot tried:\n", tuned->plan.candidates.untried[i].name,
               tuned->plan.candidates.untried[i].why);
}

static void print_use(const struct hw_tuned *tuned)
{
    const struct hw_configuration *configuration = &tuned->plan.candidates.of[tuned->race.winner];
    char **variables = hw_configuration_variables(configuration), word[512];
    static const char *const modes[] = {"never", "madvise", "always"};
    const int thp = hw_kernel_huge_pages();
    bool kernel = false;
    for (size_t i = 0; i < configuration->count; i++)
        kernel |= configuration->of[i].setting->way >= HW_SETTING_PRCTL;
    if (tuned->output) {
        hw_shell_word(tuned->output, word, sizeof word);
        printf("\n    heapwise run --config %s -- PROGRAM\n"
               "    heapwise run --config %s --show=systemd      (or shell, docker, cmake)\n",
               word, word);
    }
    if (!tuned->output && !kernel && variables && variables[0])
        fputs("\n   ", stdout);
    for (size_t i = 0; !tuned->output && !kernel && variables && variables[i]; i++)
        printf(" %s", hw_shell_word(variables[i], word, sizeof word));
    if (!tuned->output)
        puts(kernel ? "\n    -o tuned.conf writes it to a file for heapwise run --config" : " PROGRAM");
    hw_configuration_strings_free(variables);
    for (size_t i = 0; i < configuration->count; i++) {
        const char *name = configuration->of[i].setting->name;
        if ((strstr(name, "huge") || strstr(name, "thp") || strstr(name, "large_os")) &&
            strcmp(name, "kernel-thp") != 0)
            printf("\n%s needs huge pages: /sys/kernel/mm/transparent_hugepage/enabled is %s here.\n", name,
                   thp >= 0 && thp < 3 ? modes[thp] : "not known");
    }
    puts("\nIt was measured on this machine with this input. Other work, another version of the\n"
         "allocator or other kernel settings (transparent huge pages) may give another result.");
}

static void print_winner(const struct hw_tuned *tuned)
{
    const struct hw_race *race = &tuned->race;
    const struct hw_entrant *winner = &race->of[race->winner];
    char value[HW_CHANGE_TEXT], range[HW_CHANGE_TEXT];
    printf("Best for %s: %s\n", tuned->plan.goal, label_of(tuned, race->winner));
    if (strcmp(tuned->plan.goal, "time") != 0 && strcmp(tuned->plan.goal, "memory") != 0)
        printf("  %s: %s %s\n", goal_of(tuned), hw_change_text(value, winner->confirmed.value),
               hw_interval_text(range, &winner->confirmed));
    printf("  confirmed in %zu rounds that had no part in its selection:\n\n", winner->confirmation.count);
    hw_pairs_print_head("as it is", "best");
    for (int metric = 0; metric < HW_METRICS; metric++)
        hw_pairs_print_row(&winner->confirmation, (enum hw_metric)metric);
    if (race->winner >= race->single_count && race->finalist_count > 1)
        printf("\nThe combination is better than %s:\n  %s %s in %s.\n", label_of(tuned, race->finalists[1]),
               hw_change_text(value, race->over_single.value), hw_interval_text(range, &race->over_single),
               goal_of(tuned));
    hw_tuned_inside_print(tuned->inside);
    print_use(tuned);
}

/* The best of the selection, where nothing is confirmed. */
static void print_closest(const struct hw_tuned *tuned)
{
    const struct hw_race *race = &tuned->race;
    char value[HW_CHANGE_TEXT];
    size_t best = HW_RACE_PLAIN;
    for (size_t i = 1; i < race->count; i++)
        if (race->of[i].state == HW_RACE_IN && race->of[i].selected.value > 0 &&
            (best == HW_RACE_PLAIN || race->of[i].selected.value < race->of[best].selected.value))
            best = i;
    if (best != HW_RACE_PLAIN)
        printf("The best in the selection: %s, %s in %s, which may be chance.\n", label_of(tuned, best),
               hw_change_text(value, race->of[best].selected.value), goal_of(tuned));
}

static void print_end(const struct hw_tuned *tuned)
{
    switch (tuned->race.end) {
    case HW_RACE_WINNER:
        print_winner(tuned);
        break;
    case HW_RACE_NO_GAIN:
        puts("Keep it as it is: no configuration is better beyond the noise.");
        break;
    case HW_RACE_NO_TIME:
        puts("The budget was too small to confirm anything: give more with --budget.");
        print_closest(tuned);
        break;
    case HW_RACE_NONE:
        puts("Keep it as it is: no other configuration can be used.");
        break;
    case HW_RACE_UNFINISHED:
        puts("Interrupted: nothing is confirmed.");
        print_closest(tuned);
        break;
    }
}

void hw_tuned_print(const struct hw_tuned *tuned)
{
    char word[256];
    printf("Tuned for %s:", tuned->plan.goal);
    for (size_t i = 0; tuned->plan.command[i] && i < 8; i++)
        printf(" %s", hw_shell_word(tuned->plan.command[i], word, sizeof word));
    printf("\n%zu configuration%s, %zu runs\n\n", tuned->race.count, tuned->race.count == 1 ? "" : "s",
           tuned->race.trials);
    print_end(tuned);
    print_front(tuned);
    print_excluded(tuned);
    print_untried(tuned);
    if (tuned->profile_note[0])
        printf("\nAll settings were tried, since there is no profile: %s.\n", tuned->profile_note);
    if (tuned->unsteady)
        puts("\nThe program does not print the same each time: its output was not compared.");
    if (tuned->server_killed)
        puts("\nThe server did not end within 10 s of its signal, and was killed: see --stop.");
    if (tuned->server && tuned->too_short)
        puts("\nThe load generator ends within 20 ms. Give it more to do.");
    else if (tuned->too_short)
        puts("\nA run takes less than 20 ms, and most of that is the start of the program. Give it more to do.");
    if (tuned->input_replaced)
        puts("\nThe standard input is a terminal: the program was given an empty one.");
}

/* ---- JSON ---- */

static json_t *json_entrant(const struct hw_tuned *tuned, size_t index)
{
    static const char *const states[] = {"finalist", "left", "excluded"};
    const struct hw_race *race = &tuned->race;
    const struct hw_entrant *entrant = &race->of[index];
    json_t *object = json_object(), *variables = json_array();
    char **strings = hw_configuration_variables(&tuned->plan.candidates.of[index]);
    char *text = hw_configuration_text(&tuned->plan.candidates.of[index], NULL);
    for (size_t i = 0; strings && strings[i]; i++)
        json_array_append_new(variables, hw_text_json(strings[i]));
    json_object_set_new(object, "configuration", hw_text_json(label_of(tuned, index)));
    json_object_set_new(object, "file", hw_text_json(text ? text : ""));
    json_object_set_new(object, "environment", variables);
    json_object_set_new(object, "state", json_string(index == HW_RACE_PLAIN ? "plain" : states[entrant->state]));
    json_object_set_new(object, "problem", entrant->problem[0] ? hw_text_json(entrant->problem) : json_null());
    json_object_set_new(object, "rounds", json_integer((json_int_t)entrant->selection.count));
    json_object_set_new(object, "deciding_rounds", json_integer((json_int_t)entrant->confirmation.count));
    json_object_set_new(object, "selected", hw_ratio_json(&entrant->selected));
    json_object_set_new(object, "confirmed", hw_ratio_json(&entrant->confirmed));
    for (int metric = 0; metric < (tuned->server ? HW_METRICS : HW_METRIC_LOAD); metric++) {
        const struct hw_ratio ratio = hw_race_ratio(entrant, (enum hw_metric)metric);
        json_object_set_new(object, hw_metric_kinds[metric].key, hw_ratio_json(&ratio));
    }
    json_object_set_new(object, "combination", json_boolean(index >= race->single_count));
    json_object_set_new(object, "front", json_boolean(is_on_front(tuned, index)));
    hw_configuration_strings_free(strings);
    free(text);
    return object;
}

/* The winner in each form; null: there is none. */
static json_t *json_paste(const struct hw_tuned *tuned)
{
    if (tuned->race.winner == HW_RACE_PLAIN)
        return json_null();
    json_t *object = json_object();
    for (int form = 0; form < HW_PASTE_FORMS; form++) {
        char *text = hw_paste(&tuned->plan.candidates.of[tuned->race.winner], (enum hw_paste_form)form);
        json_object_set_new(object, hw_paste_names[form], hw_text_json(text ? text : ""));
        free(text);
    }
    return object;
}

bool hw_tuned_print_json(const struct hw_tuned *tuned)
{
    static const char *const ends[] = {"winner", "no_gain", "no_time", "none", "unfinished"};
    const struct hw_race *race = &tuned->race;
    json_t *object = json_object(), *entrants = json_array(), *untried = json_array(), *command = json_array();
    for (size_t i = 0; tuned->plan.command[i]; i++)
        json_array_append_new(command, hw_text_json(tuned->plan.command[i]));
    for (size_t i = 0; i < race->count; i++)
        json_array_append_new(entrants, json_entrant(tuned, i));
    for (size_t i = 0; i < tuned->plan.candidates.untried_count; i++)
        json_array_append_new(untried,
                              json_pack("{s:o,s:o}", "setting", hw_text_json(tuned->plan.candidates.untried[i].name),
                                        "why", hw_text_json(tuned->plan.candidates.untried[i].why)));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "for", json_string(tuned->plan.goal));
    if (tuned->server)
        json_object_set_new(object, "decided_by", json_string(hw_metric_kinds[tuned->metric].key));
    json_object_set_new(object, "result", json_string(ends[race->end]));
    json_object_set_new(object, "winner",
                        race->winner == HW_RACE_PLAIN ? json_null() : hw_text_json(label_of(tuned, race->winner)));
    json_object_set_new(object, "over_single", hw_ratio_json(&race->over_single));
    json_object_set_new(object, "runs", json_integer((json_int_t)race->trials));
    json_object_set_new(object, "budget_s", json_real(race->budget_s));
    json_object_set_new(object, "output_compared", json_boolean(!tuned->unsteady));
    json_object_set_new(object, "inside",
                        json_pack("{s:o,s:o}", "as_it_is", hw_tuned_inside_json(&tuned->inside[0]), "best",
                                  hw_tuned_inside_json(&tuned->inside[1])));
    json_object_set_new(object, "paste", json_paste(tuned));
    json_object_set_new(object, "configurations", entrants);
    json_object_set_new(object, "not_tried", untried);
    const bool fine = object && json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (fine)
        putchar('\n');
    json_decref(object);
    return fine;
}
