/* test_load_numbers.c - numbers in what load generators print. */
#include <math.h>
#include <string.h>

#include "support/check.h"
#include "tuning/load_numbers.h"

static void near(double expected, double found)
{
    if (!(fabs(expected - found) <= 1e-9 * fabs(expected) + 1e-15))
        fail_msg("%.12g instead of %.12g", found, expected);
}

static const struct hw_load_expressions built_in;

static void check(const char *text, double throughput, double mean, double p50, double p99, double p999)
{
    double found[HW_LOAD_NUMBERS];
    hw_load_numbers(&built_in, text, found);
    near(throughput, found[HW_LOAD_THROUGHPUT]);
    near(mean, found[HW_LOAD_MEAN]);
    near(p50, found[HW_LOAD_P50]);
    near(p99, found[HW_LOAD_P99]);
    near(p999, found[HW_LOAD_P999]);
}

static void test_redis(void **state)
{
    check("\rSET: rps=71.0 (overall: 9.5) avg_msec=0.7\rSET: 80000.00 requests per second, p50=0.300 msec\n"
          "\rGET: 20000.00 requests per second, p50=0.600 msec\n",
          40000, 0, sqrt(0.18) / 1000, 0, 0);
    check("\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
          "\"p99_latency_ms\",\"max_latency_ms\"\n"
          "\"SET\",\"80000.00\",\"0.4\",\"0.1\",\"0.3\",\"0.5\",\"0.8\",\"6\"\n"
          "\"GET\",\"20000.00\",\"0.4\",\"0.1\",\"0.6\",\"0.7\",\"0.8\",\"7\"\n",
          40000, 0.0004, sqrt(0.18) / 1000, 0.0008, 0);
    check("====== SET ======\n"
          "Latency by percentile distribution:\n"
          "0.000% <= 0.071 milliseconds (cumulative count 1)\n"
          "99.805% <= 2.5 milliseconds (cumulative count 1996)\n"
          "99.902% <= 2.75 milliseconds (cumulative count 1999)\n"
          "100.000% <= 2.951 milliseconds (cumulative count 2000)\n"
          "Summary:\n"
          "  throughput summary: 58651.03 requests per second\n"
          "  latency summary (msec):\n"
          "          avg       min       p50       p95       p99       max\n"
          "        0.563     0.056     0.535     0.807     2.111     2.951\n",
          58651.03, 0.000563, 0.000535, 0.002111, 0.00275);
}

static void test_others(void **state)
{
    check("number of transactions actually processed: 100/100\n"
          "latency average = 0.500 ms\n"
          "initial connection time = 2.5 ms\n"
          "tps = 2000.125 (without initial connection time)\n",
          2000.125, 0.0005, 0, 0, 0);
    check("Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 "
          "Latency       KB/sec\n"
          "Sets         1000.00          ---          ---         0.25000         0.20000         0.90000         "
          "1.50000        77.00\n"
          "Totals      11000.00         0.00     10000.00         0.25000         0.20000         0.90000         "
          "1.50000       500.00\n",
          11000, 0.00025, 0.0002, 0.0009, 0.0015);
    check("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
          "    Latency   635.91us    0.89ms  12.92ms   93.69%\n"
          "    Req/Sec    56.20k     8.07k   62.00k    86.54%\n"
          "  Latency Distribution\n"
          "     50%  250.00us\n"
          "     75%  491.00us\n"
          "     99%    5.80ms\n"
          "Requests/sec: 748868.53\n",
          748868.53, 0.00063591, 0.00025, 0.0058, 0);
    check(" 50.000%    1.25ms\n 99.000%    3.50ms\n 99.900%    1.20s\nRequests/sec:   2000.00\n", 2000, 0, 0.00125,
          0.0035, 1.2);
    check("Requests per second:    1234.50 [#/sec] (mean)\n"
          "Time per request:       8.100 [ms] (mean)\n"
          "Time per request:       0.810 [ms] (mean, across all concurrent requests)\n"
          "  50%      7\n  66%      8\n  99%     21\n 100%     40 (longest request)\n",
          1234.5, 0.0081, 0.007, 0.021, 0);
    check("", 0, 0, 0, 0, 0);
    check("nothing to see\n", 0, 0, 0, 0, 0);
}

static void test_own_expressions(void **state)
{
    double found[HW_LOAD_NUMBERS];
    const struct hw_load_expressions own = {.of = {[HW_LOAD_P99] = "slow: ([0-9.]+)"}};
    hw_load_numbers(&own, "tps = 10.5 (without\nslow: 7 us, slow: 7 us\n 99% 3.0\n", found);
    near(7e-6, found[HW_LOAD_P99]);
    near(10.5, found[HW_LOAD_THROUGHPUT]);
    near(0.004, hw_load_number("p99=([0-9.]+)", "p99=2 p99=8", true));
    near(4, hw_load_number("p99=([0-9.]+)", "p99=2 p99=8", false));
    near(2, hw_load_number("p99=([0-9.]+)", "p99=2 seconds", true));
    near(2e-9, hw_load_number("p99=([0-9.]+)", "p99=2ns", true));
    near(0, hw_load_number("p99=([0-9.]+)", "", true));
    near(0, hw_load_number("p99=([0-9.]+)", "p99=0\np99=nothing\n", true));
    near(7, hw_load_number("^p99=([0-9.]+)$", "p99=7 ms\np99=7\n p99=8\n", false));
    near(0, hw_load_number("(x*)", "aaaa", false)); /* nothing is found everywhere: it ends nevertheless */
    near(0, hw_load_number("(x)?a", "aaaa", false));
}

static void test_wrong_expressions(void **state)
{
    struct hw_error error = {""};
    assert_true(hw_load_expression_check("p99=([0-9.]+)", &error));
    assert_false(hw_load_expression_check("p99=[0-9.]+", &error));
    assert_non_null(strstr(error.message, "a group around it"));
    assert_false(hw_load_expression_check("p99=(", &error));
    assert_non_null(strstr(error.message, "p99=(: "));
}

TEST_LIST(cmocka_unit_test(test_redis), cmocka_unit_test(test_others), cmocka_unit_test(test_own_expressions),
          cmocka_unit_test(test_wrong_expressions))
