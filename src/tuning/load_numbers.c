/* load_numbers.c - see load_numbers.h. */
#include "tuning/load_numbers.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER  "([0-9.]+)"
#define CSV     "\"[0-9.]+\","
#define COLUMN  "[0-9.a-z-]+ +"
#define COLUMNS COLUMN COLUMN COLUMN

/* Of each kind the first one that finds something counts. redis-benchmark prints in three forms: with -q, with --csv,
 * and as a report; the report has no p99.9, and the nearest line of its percentiles is taken. wrk prints percentiles
 * with --latency. pgbench prints no percentiles. */
static const struct {
    enum hw_load_number number;
    const char *expression;
} generators[] = {
    {HW_LOAD_THROUGHPUT, NUMBER " requests per second"}, /* redis-benchmark: -q and report */
    {HW_LOAD_P50, "requests per second, p50=" NUMBER},
    {HW_LOAD_THROUGHPUT, "^\"[^\"]+\",\"" NUMBER "\",(" CSV "){5}\"[0-9.]+\"$"}, /* --csv */
    {HW_LOAD_MEAN, "^\"[^\"]+\"," CSV "\"" NUMBER "\",(" CSV "){4}\"[0-9.]+\"$"},
    {HW_LOAD_P50, "^\"[^\"]+\"," CSV CSV CSV "\"" NUMBER "\"," CSV CSV "\"[0-9.]+\"$"},
    {HW_LOAD_P99, "^\"[^\"]+\"," CSV CSV CSV CSV CSV "\"" NUMBER "\",\"[0-9.]+\"$"},
    {HW_LOAD_MEAN, " p99 +max\n +" NUMBER}, /* report */
    {HW_LOAD_P50, " p99 +max\n +[0-9.]+ +[0-9.]+ +" NUMBER},
    {HW_LOAD_P99, " p99 +max\n +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +" NUMBER},
    {HW_LOAD_P999, "^99\\.902% <= " NUMBER " milliseconds \\(cumul"},
    {HW_LOAD_THROUGHPUT, "^tps = " NUMBER " \\((without|excl)"}, /* pgbench */
    {HW_LOAD_MEAN, "^latency average = " NUMBER},
    {HW_LOAD_THROUGHPUT,
     "^Totals +" NUMBER " "}, /* memtier_benchmark: with rates of hits and misses before latencies */
    {HW_LOAD_MEAN, "^Totals +" COLUMNS NUMBER},
    {HW_LOAD_P50, "^Totals +" COLUMNS COLUMN NUMBER " +" COLUMN COLUMN "[0-9.]+"},
    {HW_LOAD_P99, "^Totals +" COLUMNS COLUMN COLUMN NUMBER " +" COLUMN "[0-9.]+"},
    {HW_LOAD_P999, "^Totals +" COLUMNS COLUMN COLUMN COLUMN NUMBER " +[0-9.]+"},
    {HW_LOAD_THROUGHPUT, "^Requests/sec: +" NUMBER}, /* wrk, wrk2 */
    {HW_LOAD_MEAN, "^ +Latency +" NUMBER},
    {HW_LOAD_P50, "^ +50% +" NUMBER},
    {HW_LOAD_P50, "^ +50\\.000% +" NUMBER},
    {HW_LOAD_P99, "^ +99% +" NUMBER},
    {HW_LOAD_P99, "^ +99\\.000% +" NUMBER},
    {HW_LOAD_P999, "^ +99\\.900% +" NUMBER},
    {HW_LOAD_THROUGHPUT, "^Requests per second: +" NUMBER}, /* ab; its percentiles look like wrk's */
    {HW_LOAD_MEAN, "^Time per request: +" NUMBER " \\[ms\\] \\(mean\\)"},
};

bool hw_load_expression_check(const char *expression, struct hw_error *error)
{
    regex_t compiled;
    char reason[256];
    const int code = regcomp(&compiled, expression, REG_EXTENDED | REG_NEWLINE);
    if (code != 0) {
        regerror(code, &compiled, reason, sizeof reason);
        hw_error_set(error, "%s: %s", expression, reason);
        return false;
    }
    const bool fine = compiled.re_nsub > 0;
    regfree(&compiled);
    if (!fine)
        hw_error_set(error, "%s: the number needs a group around it, as in p99=([0-9.]+)", expression);
    return fine;
}

/* Seconds in the unit at the begin of TEXT. */
static double unit_of(const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9},   {"nanoseconds", 1e-9},  {"us", 1e-6}, {"\302\265s", 1e-6},
                 {"usec", 1e-6}, {"microseconds", 1e-6}, {"s", 1},     {"sec", 1},
                 {"secs", 1},    {"seconds", 1}};
    text += strspn(text, " ");
    const size_t length = strcspn(text, " \t\r\n,;)");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (length == strlen(units[i].name) && strncmp(text, units[i].name, length) == 0)
            return units[i].seconds;
    return 1e-3;
}

double hw_load_number(const char *expression, const char *text, bool time)
{
    regex_t compiled;
    regmatch_t found[2];
    double logs = 0;
    size_t count = 0;
    if (regcomp(&compiled, expression, REG_EXTENDED | REG_NEWLINE) != 0)
        return 0;
    bool line_begins = true;
    while (*text && regexec(&compiled, text, 2, found, line_begins ? 0 : REG_NOTBOL) == 0) {
        char *end = NULL;
        double value = found[1].rm_so >= 0 ? strtod(text + found[1].rm_so, &end) : 0;
        if (value > 0 && time)
            value *= unit_of(end);
        if (value > 0 && isfinite(value)) {
            logs += log(value);
            count++;
        }
        text += found[0].rm_eo;
        text += found[0].rm_eo == found[0].rm_so && *text; /* nothing was found, here */
        line_begins = found[0].rm_eo > 0 && text[-1] == '\n';
    }
    regfree(&compiled);
    return count ? exp(logs / (double)count) : 0;
}

void hw_load_numbers(const struct hw_load_expressions *expressions, const char *text, double numbers[HW_LOAD_NUMBERS])
{
    for (int i = 0; i < HW_LOAD_NUMBERS; i++)
        numbers[i] = expressions->of[i] ? hw_load_number(expressions->of[i], text, i != HW_LOAD_THROUGHPUT) : 0;
    for (size_t i = 0; i < sizeof generators / sizeof *generators; i++) {
        const enum hw_load_number number = generators[i].number;
        if (!expressions->of[number] && !(numbers[number] > 0))
            numbers[number] = hw_load_number(generators[i].expression, text, number != HW_LOAD_THROUGHPUT);
    }
}
