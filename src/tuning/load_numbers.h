/* load_numbers.h - throughput and latency, from the text that a load generator prints. */
#ifndef HW_TUNING_LOAD_NUMBERS_H
#define HW_TUNING_LOAD_NUMBERS_H

#include <stdbool.h>

#include "allocators/timed_runs.h"
#include "base/error.h"

/* Regular expressions (POSIX, extended) with a group around the number, by enum hw_load_number. NULL: the built-in ones
 * of redis-benchmark, pgbench, memtier_benchmark, wrk and ab. */
struct hw_load_expressions {
    const char *of[HW_LOAD_NUMBERS];
};

/* False with ERROR: it is not a regular expression, or has no group. */
bool hw_load_expression_check(const char *expression, struct hw_error *error);

/* The geometric mean of all numbers above 0 that EXPRESSION finds in TEXT; 0: none. TIME: they are in seconds; behind a
 * number in TEXT stands its unit (ns, us, ms, s and longer names), or it is in milliseconds. */
double hw_load_number(const char *expression, const char *text, bool time);

/* NUMBERS: throughput in requests per second, latencies in seconds; 0: TEXT has none. */
void hw_load_numbers(const struct hw_load_expressions *expressions, const char *text, double numbers[HW_LOAD_NUMBERS]);

#endif
