/* trend.h - a number at several moments of a run: at which rate it grows, how certain that is, and whether it still
 * does.
 *
 * The rate is the median of the slopes between all pairs of moments (Theil 1950; Sen 1968): a moment that is out of
 * line, such as one with a large request under way, hardly moves it. How far it may be off depends on what makes the
 * number scatter, and that is decided first:
 *
 *   scatter about a line   each moment is off by itself (requests that happen to be under way). Sen's interval: the
 *                          slopes whose ranks are as far from the middle as Kendall's S can be by chance. Where
 *                          neighbours are off alike, the variance of S is enlarged (Yue and Wang 2004).
 *   a walk                 each moment starts from where the one before has ended (blocks that come and go, and stay
 * for long). Such a number drifts far away without any reason to, and all tests of trends that take moments as
 * independent find trends in it. What counts are the steps: the rate is the mean step, with Student's t.
 *
 * A number is taken for a walk unless its deviations from a line are too restless for one, at 2.5 %: the test of Sargan
 * and Bhargava (1983). With fewer than some 15 moments nothing is restless enough, and intervals are wide: that is how
 * little is known then. The interval of a walk holds for scatter as well.
 *
 * Numbers only: what is said of it are others' words. */
#ifndef HW_ANALYSIS_TREND_H
#define HW_ANALYSIS_TREND_H

#include <stdbool.h>
#include <stddef.h>

/* Moments that are needed to call a trend steady: of four all six slopes go up by chance in one case of 24. */
#define HW_TREND_LEAST 5

enum hw_trend_pattern {
    HW_TREND_NONE,     /* fewer than two moments */
    HW_TREND_CONSTANT, /* the same at all moments */
    HW_TREND_FEW,      /* too few moments to say more than the difference */
    HW_TREND_GROWS,    /* steadily */
    HW_TREND_SHRINKS,
    HW_TREND_STOPPED, /* it grew up to moment `first`, and since then certainly at less than half that rate */
    HW_TREND_FALLS,   /* it rises and falls back */
    HW_TREND_UNCLEAR, /* no trend that chance could not bring about */
    HW_TREND_PATTERNS
};

/* As JSON has them. */
extern const char *const hw_trend_pattern_keys[HW_TREND_PATTERNS];

struct hw_trend_series {
    const double *times; /* seconds, rising */
    const double *values;
    size_t count;
    /* Of numbers that are estimates from a sample: the variance of each, and of what was added up to it in all since
     * the start of the run (NAN: not known). NULL: the numbers are exact. */
    const double *variances, *added_variances;
};

struct hw_trend {
    enum hw_trend_pattern pattern;
    size_t first;       /* moments from here on are what the rest is about: 0, where it began to grow, or where growth
                         * became slower or stopped */
    size_t count;       /* of these moments */
    double rate;        /* by second; of one difference where there are two moments; NAN: there is none */
    double low, high;   /* 95 % interval of it; NAN: not known (two moments) */
    double p;           /* how often a number without a trend looks like this, as far as it is known; else NAN */
    double before_rate; /* mean rate up to `first` where growth became slower there, whatever the pattern; else NAN */
    size_t falls;       /* how often it fell by more than half of its range */
    bool walks;         /* the interval is that of a walk */
};

/* False when there is no memory. */
bool hw_trend_of(const struct hw_trend_series *series, struct hw_trend *trend);

/* ---- for tests ---- */

/* The probability that Student's t with DEGREES of freedom is T or more from 0, in either direction; and the T of a
 * probability. */
double hw_student_p(double t, double degrees);
double hw_student_t(double p, double degrees);
/* Kendall's S: how many pairs rise more than fall; its variance without a trend (ties count); two-sided p. */
double hw_kendall(const double *values, size_t count, double *variance, double *p);

#endif
