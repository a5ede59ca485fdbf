/* allocators_report.c - the result of heapwise allocators as text and JSON. */
#include "cli/allocators.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/text/human.h"

static const char *title(const struct hw_compared *one, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s%s%s", one->allocator->name, one->allocator->facts.version[0] ? " " : "",
             one->allocator->facts.version);
    return buffer;
}

/* KNOWN: more than one run speaks for the range. */
static const char *range(char *buffer, size_t size, const struct hw_speedup *speedup, bool known)
{
    const int length = snprintf(buffer, size, "%.2f", speedup->value);
    if (known)
        snprintf(buffer + length, size - (size_t)length, " (%.2f-%.2f)", speedup->low, speedup->high);
    return buffer;
}

static const char *seconds(char *buffer, size_t size, double time_s)
{
    snprintf(buffer, size, time_s < 1 ? "%.1f ms" : "%.3f s", time_s < 1 ? time_s * 1e3 : time_s);
    return buffer;
}

static void print_row(const struct hw_comparison *comparison, size_t index)
{
    const struct hw_compared *one = &comparison->of[index];
    const struct hw_candidate *candidate = &comparison->candidates[index];
    char name[128], time[32], measured[48] = "1", predicted[48] = "-", spread[32] = "-";
    if (candidate->rounds == 0) {
        printf("  %-16.16s no valid run\n", title(one, name, sizeof name));
        return;
    }
    if (index != comparison->present)
        range(measured, sizeof measured, &candidate->measured, candidate->rounds > 1);
    if (index == comparison->present)
        snprintf(predicted, sizeof predicted, "1");
    else if (one->predicted)
        range(predicted, sizeof predicted, &one->prediction, true);
    if (candidate->rounds > 1)
        snprintf(spread, sizeof spread, "%.1f %%",
                 candidate->time_s > 0 ? (candidate->most_s - candidate->least_s) * 50 / candidate->time_s : 0);
    printf("%c %-16.16s %9s %7s  %-17s %-17s %10s %9s\n", index == comparison->present ? '*' : ' ',
           title(one, name, sizeof name), seconds(time, sizeof time, candidate->time_s), spread, measured, predicted,
           candidate->peak_rss_bytes ? HW_BYTES(candidate->peak_rss_bytes) : "-",
           HW_MANY((uint64_t)candidate->page_faults));
}

static void print_choice(const struct hw_comparison *comparison)
{
    const struct hw_choice *choice = &comparison->choice;
    const struct hw_candidate *chosen = &comparison->candidates[choice->index];
    const char *name = comparison->of[choice->index].allocator->name;
    const char *present = comparison->of[comparison->present].allocator->name;
    switch (choice->reason) {
    case HW_CHOICE_TOO_SHORT:
        printf("Too short to compare: a run takes %.1f ms, and most of that is the start of the program. Give it more "
               "to do.\n",
               comparison->candidates[comparison->present].time_s * 1e3);
        return;
    case HW_CHOICE_KEEP:
        printf("Keep %s: no other one is faster beyond the noise of %zu round%s.\n", present, comparison->rounds,
               comparison->rounds == 1 ? "" : "s");
        break;
    case HW_CHOICE_FASTER:
        printf("Use %s: %.2f times as fast", name, chosen->measured.value);
        if (chosen->rounds > 1)
            printf(" (%.2f to %.2f)", chosen->measured.low, chosen->measured.high);
        if (choice->memory > 0)
            printf(", with %.2f times the memory", choice->memory);
        printf(".\n    LD_PRELOAD=%s PROGRAM\n", comparison->of[choice->index].preload);
        break;
    }
    if (choice->least_memory < comparison->count && choice->least_memory != choice->index &&
        choice->least_memory_ratio > 0 && choice->least_memory_ratio < 0.95)
        printf("%s needs the least memory: %.2f times that of %s.\n",
               comparison->of[choice->least_memory].allocator->name, choice->least_memory_ratio, present);
}

/* A prediction that this program's own runs did not correct. */
static void print_weight(const struct hw_comparison *comparison)
{
    if (comparison->weighed && !comparison->weight.measured)
        puts(
            "These runs did not show how much the program's own accesses depend on the allocator: the predictions assume\n"
            "what is usual. Trust the measured speeds.");
}

void hw_comparison_print(const struct hw_comparison *comparison)
{
    char word[256];
    printf("Allocators under");
    for (size_t i = 0; comparison->command[i] && i < 8; i++)
        printf(" %s", hw_shell_word(comparison->command[i], word, sizeof word));
    printf("%s: %zu round%s\n\n", comparison->command[0] && comparison->count > 8 ? " ..." : "", comparison->rounds,
           comparison->rounds == 1 ? "" : "s");
    printf("  %-16s %9s %7s  %-17s %-17s %10s %9s\n", "allocator", "time", "spread", "measured speed", "predicted",
           "peak RSS", "faults");
    for (size_t i = 0; i < comparison->count; i++)
        print_row(comparison, i);
    printf("\n  * what the program uses now; speeds are relative to it: above 1 is faster; times are medians,\n"
           "    measured speeds are medians of the ratios of each round%s\n\n",
           comparison->rounds == 1 ? "; one round proves nothing (-n 5 or more)" : "");
    print_choice(comparison);
    print_weight(comparison);
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->of[i].note[0])
            printf("%s: %s.\n", comparison->of[i].allocator->name, comparison->of[i].note);
        if (comparison->of[i].allocator->problem[0])
            printf("%s: %s.\n", comparison->of[i].allocator->name, comparison->of[i].allocator->problem);
    }
    if (comparison->count == 1)
        printf("No other allocator is installed (Debian: libjemalloc2, libtcmalloc-minimal4, libmimalloc2.0).\n");
    if (comparison->empty_input)
        printf("The standard input is a terminal: the program was given an empty one.\n");
    if (comparison->prediction_note[0])
        printf("%s\n", comparison->prediction_note);
}

/* ---- JSON ---- */

static json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_string("(not UTF-8)");
}

static json_t *json_speedup(const struct hw_speedup *speedup)
{
    return json_pack("{s:f,s:f,s:f}", "speedup", speedup->value, "low", speedup->low, "high", speedup->high);
}

static json_t *json_prediction(const struct hw_comparison *comparison, const struct hw_speedup *prediction)
{
    const struct hw_course_weight *weight = &comparison->weight;
    json_t *predicted = json_speedup(prediction);
    if (prediction->value > 0) /* seconds more than now */
        json_object_set_new(predicted, "difference_s", json_real(comparison->now_s * (1 / prediction->value - 1)));
    json_object_set_new(predicted, "weight",
                        comparison->weighed
                            ? json_pack("{s:s,s:f,s:f,s:f,s:s}", "of", comparison->one_thread ? "walks" : "operations",
                                        "value", weight->value, "low", weight->low, "high", weight->high, "from",
                                        weight->measured ? "runs" : "rule")
                            : json_null());
    return predicted;
}

static json_t *json_size(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *json_end(const struct hw_run_cost *cost)
{
    if (cost->timed_out)
        return json_pack("{s:b}", "timed_out", true);
    return json_pack("{s:i}", cost->exit_kind == HW_EXIT_SIGNAL ? "signal" : "code", cost->exit_value);
}

static json_t *json_run(const struct hw_comparison *comparison, size_t index)
{
    const struct hw_compared *one = &comparison->of[index];
    const struct hw_candidate *candidate = &comparison->candidates[index];
    const bool known = candidate->rounds > 0;
    json_t *run = json_object(), *times = json_array();
    json_object_set_new(run, "allocator", json_text(one->allocator->name));
    json_object_set_new(run, "version",
                        one->allocator->facts.version[0] ? json_text(one->allocator->facts.version) : json_null());
    json_object_set_new(run, "path",
                        one->allocator->facts.path[0] ? json_text(one->allocator->facts.path) : json_null());
    json_object_set_new(run, "present", json_boolean(index == comparison->present));
    json_object_set_new(run, "chosen", json_boolean(index == comparison->choice.index && !candidate->failed));
    json_object_set_new(run, "rounds", json_integer((json_int_t)candidate->rounds));
    json_object_set_new(run, "time_s", known ? json_real(candidate->time_s) : json_null());
    for (size_t i = 0; i < candidate->rounds; i++)
        json_array_append_new(times, json_real(candidate->wall_s[i]));
    json_object_set_new(run, "times_s", times);
    json_object_set_new(run, "time_least_s", known ? json_real(candidate->least_s) : json_null());
    json_object_set_new(run, "cpu_time_s", known ? json_real(candidate->cpu_time_s) : json_null());
    json_t *cpu_times = json_array();
    for (size_t i = 0; i < candidate->rounds; i++)
        json_array_append_new(cpu_times, json_real(candidate->cpu_s[i]));
    json_object_set_new(run, "cpu_times_s", cpu_times);
    json_object_set_new(run, "cpu_time_least_s", known ? json_real(candidate->cpu_least_s) : json_null());
    json_object_set_new(run, "peak_rss_bytes", json_size(candidate->peak_rss_bytes));
    json_object_set_new(run, "page_faults",
                        known ? json_integer((json_int_t)llround(candidate->page_faults)) : json_null());
    json_object_set_new(run, "predicted", one->predicted ? json_prediction(comparison, &one->prediction) : json_null());
    json_object_set_new(run, "measured", known ? json_speedup(&candidate->measured) : json_null());
    json_object_set_new(run, "exit", json_end(&one->last));
    json_object_set_new(run, "too_short", json_boolean(comparison->choice.reason == HW_CHOICE_TOO_SHORT));
    json_object_set_new(run, "note",
                        one->note[0]                 ? json_text(one->note)
                        : one->allocator->problem[0] ? json_text(one->allocator->problem)
                                                     : json_null());
    return run;
}

bool hw_comparison_print_json(const struct hw_comparison *comparison)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < comparison->count; i++)
        json_array_append_new(runs, json_run(comparison, i));
    if (comparison->prediction_note[0])
        hw_say("%s", comparison->prediction_note);
    const bool fine = runs && json_array_size(runs) == comparison->count &&
                      json_dumpf(runs, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (fine)
        putchar('\n');
    json_decref(runs);
    return fine;
}
