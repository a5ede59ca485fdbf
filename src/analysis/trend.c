/* trend.c - see trend.h. */
#include "analysis/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

const char *const hw_trend_pattern_keys[HW_TREND_PATTERNS] = {
    [HW_TREND_NONE] = "none",         [HW_TREND_CONSTANT] = "constant", [HW_TREND_FEW] = "too-few",
    [HW_TREND_GROWS] = "grows",       [HW_TREND_SHRINKS] = "shrinks",   [HW_TREND_STOPPED] = "stopped",
    [HW_TREND_FALLS] = "rises-falls", [HW_TREND_UNCLEAR] = "unclear",
};

#define USUAL_Z 1.959963984540054 /* 95 % of a normal distribution */
#define LEVEL   0.05

/* ---- Student's t ---- */

/* The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's way. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m < 300; m++) {
        for (int odd = 0; odd < 2; odd++) {
            const double k = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                 : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + k * d;
            c = 1 + k / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            result *= d * c;
        }
        if (fabs(d * c - 1) < 1e-14)
            break;
    }
    return result;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double hw_student_p(double t, double degrees)
{
    return isinf(t) ? 0 : incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double hw_student_t(double p, double degrees)
{
    double low = 0, high = 1;
    while (hw_student_p(high, degrees) > p && high < 1e12)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(hw_student_p(middle, degrees) > p ? &low : &high) = middle;
    }
    return high;
}

/* ---- Kendall's S ---- */

static int compare_doubles(const void *left, const void *right)
{
    return HW_ORDER(*(const double *)left, *(const double *)right);
}

#define EXACT_MOST 10 /* up to so many moments without ties: by counting permutations */

/* How many of the permutations of COUNT have S or more, as a share. */
static double kendall_exact(size_t count, double s)
{
    double ways[EXACT_MOST * (EXACT_MOST - 1) / 2 + 1] = {1}, total = 1, tail = 0;
    size_t most = 0; /* inversions */
    for (size_t n = 2; n <= count; n++) {
        double next[sizeof ways / sizeof *ways] = {0};
        for (size_t i = 0; i <= most; i++)
            for (size_t k = 0; k < n; k++)
                next[i + k] += ways[i];
        most += n - 1;
        total *= (double)n;
        memcpy(ways, next, sizeof ways);
    }
    for (size_t i = 0; i <= most; i++)
        tail += (double)most - 2 * (double)i >= s ? ways[i] : 0;
    return tail / total;
}

double hw_kendall(const double *values, size_t count, double *variance, double *p)
{
    const double n = (double)count;
    double s = 0, ties = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0, before = 0;
        for (size_t k = 0; k < count; k++) {
            same += values[k] == values[i];
            before += k < i && values[k] == values[i];
            s += k > i ? (values[k] > values[i]) - (values[k] < values[i]) : 0;
        }
        if (!before && same > 1)
            ties += (double)same * ((double)same - 1) * (2 * (double)same + 5);
    }
    *variance = (n * (n - 1) * (2 * n + 5) - ties) / 18;
    if (!s || *variance <= 0)
        *p = 1;
    else if (ties == 0 && count <= EXACT_MOST)
        *p = fmin(1, 2 * kendall_exact(count, fabs(s)));
    else
        *p = erfc((fabs(s) - 1) / sqrt(2 * *variance));
    return s;
}

/* ---- lines by least squares ---- */

struct part {
    const double *times, *values;
    size_t count;
};

static double mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* The sum of squares that is left of a line, and the squares of differences of neighbours in it. */
static double left_of_line(const struct part *part, double *neighbours)
{
    const double middle = mean(part->times, part->count), level = mean(part->values, part->count);
    double along = 0, squares = 0, left = 0, last = 0;
    for (size_t i = 0; i < part->count; i++) {
        along += (part->times[i] - middle) * (part->values[i] - level);
        squares += (part->times[i] - middle) * (part->times[i] - middle);
    }
    *neighbours = 0;
    for (size_t i = 0; i < part->count; i++) {
        const double off = part->values[i] - level - along / squares * (part->times[i] - middle);
        left += off * off;
        *neighbours += i ? (off - last) * (off - last) : 0;
        last = off;
    }
    return left;
}

/* ---- scatter or a walk ---- */

/* What a number of that many moments exceeds rarely, found by simulation. */
struct limit {
    double count, most;
};

/* Between the rows: on the line between them. */
static double by_count(const struct limit *limits, size_t rows, size_t count)
{
    const double n = fmax((double)count, limits[0].count);
    for (size_t i = 1; i < rows; i++)
        if (n <= limits[i].count)
            return limits[i - 1].most + (limits[i].most - limits[i - 1].most) * (n - limits[i - 1].count) /
                                            (limits[i].count - limits[i - 1].count);
    return limits[rows - 1].most;
}

#define BY_COUNT(limits, count) by_count((limits), sizeof(limits) / sizeof *(limits), (count))

/* The ratio of neighbours to squares (von Neumann's, Durbin and Watson's) that a walk exceeds in one case of 40, times
 * the number of moments: found by simulation of 40,000 walks of each length (tests/unit/analysis/test_trend.c does it
 * again). */
static const struct limit restless[] = {{5, 17.4},  {6, 19.9},  {7, 22.2},   {8, 24.2},  {9, 25.9},  {10, 27.3},
                                        {12, 29.8}, {15, 32.5}, {20, 35.6},  {25, 38.1}, {30, 39.6}, {40, 41.9},
                                        {50, 43.3}, {75, 45.0}, {100, 46.3}, {200, 48.0}};

static double restless_least(size_t count)
{
    return BY_COUNT(restless, count) / (double)count;
}

/* Of Kendall's S and its like: how much more they vary since neighbours are off alike, 1 or more. */
static double correlation_factor(double ratio)
{
    const double r = fmin(0.9, 1 - ratio / 2);
    return r > 0 ? (1 + r) / (1 - r) : 1;
}

/* ---- the rate ---- */

/* The slopes of all pairs, sorted; to be freed. */
static double *slopes_of(const struct part *part, size_t *count)
{
    double *slopes = malloc((part->count * (part->count - 1) / 2 + 1) * sizeof *slopes);
    *count = 0;
    for (size_t i = 0; slopes && i < part->count; i++)
        for (size_t k = i + 1; k < part->count; k++)
            slopes[(*count)++] = (part->values[k] - part->values[i]) / (part->times[k] - part->times[i]);
    if (slopes)
        qsort(slopes, *count, sizeof *slopes, compare_doubles);
    return slopes;
}

/* The slope at RANK (from 1, may lie between two). */
static double at_rank(const double *slopes, size_t count, double rank)
{
    rank = fmin(fmax(rank, 1), (double)count);
    const size_t below = (size_t)rank;
    const double beyond = rank - (double)below;
    return below < count ? slopes[below - 1] + beyond * (slopes[below] - slopes[below - 1]) : slopes[count - 1];
}

/* The steps of a walk with a drift: each varies by the time that it took. */
static void walk(const struct part *part, struct hw_trend *trend)
{
    const size_t last = part->count - 1;
    const double duration = part->times[last] - part->times[0], steps = (double)last;
    const double rate = (part->values[last] - part->values[0]) / duration;
    double squares = 0;
    for (size_t i = 1; i <= last; i++) {
        const double time = part->times[i] - part->times[i - 1];
        const double off = part->values[i] - part->values[i - 1] - rate * time;
        squares += off * off / time;
    }
    const double error = sqrt(squares / (steps - 1) / duration);
    const double within = hw_student_t(LEVEL, steps - 1) * error;
    trend->low = fmin(trend->low, rate - within);
    trend->high = fmax(trend->high, rate + within);
    trend->p = fmax(trend->p, error > 0 ? hw_student_p(rate / error, steps - 1) : 0);
    trend->walks = true;
}

/* What the sample leaves open of the rate: blocks that are live at both ends count alike at both. */
static double sampling_within(const struct hw_trend_series *series, size_t first)
{
    const size_t last = series->count - 1;
    const double *variance = series->variances, *added = series->added_variances;
    if (!variance)
        return 0;
    double all = variance[first] + variance[last];
    if (added && added[last] >= added[first]) { /* else counts were reset in between, or it is not known */
        const double came = added[last] - added[first];
        const double gone = came - (variance[last] - variance[first]);
        all = fmin(all, came + fmax(gone, 0));
    }
    double step = 0; /* what one sample stands for */
    for (size_t i = first; i <= last; i += last > first ? last - first : 1)
        if (series->values[i] > 0)
            step = fmax(step, variance[i] / series->values[i]);
    return (2 * step + 2 * sqrt(all + step * step)) / (series->times[last] - series->times[first]);
}

/* Fills rate, interval, p and walks, of the moments from FIRST on. */
static bool estimate(const struct hw_trend_series *series, size_t first, struct hw_trend *trend)
{
    const struct part part = {series->times + first, series->values + first, series->count - first};
    const double sampling = sampling_within(series, first);
    size_t count;
    trend->first = first;
    trend->count = part.count;
    trend->low = trend->high = trend->p = NAN;
    trend->walks = false;
    if (part.count < 3) {
        trend->rate = (part.values[1] - part.values[0]) / (part.times[1] - part.times[0]);
        if (series->variances) {
            trend->low = trend->rate - sampling;
            trend->high = trend->rate + sampling;
        }
        return true;
    }
    double *slopes = slopes_of(&part, &count);
    if (!slopes)
        return false;
    trend->rate = count % 2 ? slopes[count / 2] : (slopes[count / 2 - 1] + slopes[count / 2]) / 2;
    double variance, neighbours;
    const double left = left_of_line(&part, &neighbours), s = hw_kendall(part.values, part.count, &variance, &trend->p);
    const double ratio = left > 0 ? neighbours / left : 2;
    const bool walks = ratio <= restless_least(part.count) || part.count < HW_TREND_LEAST;
    const double factor = walks ? 1 : correlation_factor(ratio); /* a walk has its own interval */
    if (factor > 1)
        trend->p = fmax(trend->p, erfc((fabs(s) - 1) / sqrt(2 * variance * factor)));
    const double ranks = USUAL_Z * sqrt(variance * factor);
    trend->low = at_rank(slopes, count, ((double)count - ranks) / 2);
    trend->high = at_rank(slopes, count, ((double)count + ranks) / 2 + 1);
    free(slopes);
    if (walks)
        walk(&part, trend);
    if (sampling > 0) {
        trend->low = trend->rate - hypot(trend->rate - trend->low, sampling);
        trend->high = trend->rate + hypot(trend->high - trend->rate, sampling);
    }
    return true;
}

/* ---- where growth became slower ---- */

/* Solves three equations; false when they have no one solution. */
static bool solve(double a[3][4])
{
    for (int i = 0; i < 3; i++) {
        int best = i;
        for (int k = i + 1; k < 3; k++)
            best = fabs(a[k][i]) > fabs(a[best][i]) ? k : best;
        if (fabs(a[best][i]) < 1e-12)
            return false;
        for (int j = 0; j < 4; j++) {
            const double kept = a[i][j];
            a[i][j] = a[best][j];
            a[best][j] = kept;
        }
        for (int k = 0; k < 3; k++) {
            const double times = a[k][i] / a[i][i];
            for (int j = i; k != i && j < 4; j++)
                a[k][j] -= times * a[i][j];
        }
    }
    return true;
}

/* A line with a knee. */
struct knee {
    double left; /* sum of squares that is left of it; NAN: there is none */
    double neighbours;
    double before, after; /* slopes */
};

static struct knee knee_at(const struct part *part, size_t at)
{
    const double begin = part->times[0], scale = part->times[part->count - 1] - begin, knee = part->times[at];
    const double level = mean(part->values, part->count);
    struct knee result = {.left = 0};
    double a[3][4] = {{0}}, last = 0;
    for (size_t i = 0; i < part->count; i++) {
        const double t = (part->times[i] - begin) / scale, beyond = fmax(0, (part->times[i] - knee) / scale);
        const double row[4] = {1, t, beyond, part->values[i] - level};
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < 4; j++)
                a[k][j] += row[k] * row[j];
    }
    if (!solve(a))
        return (struct knee){.left = NAN};
    const double c[3] = {a[0][3] / a[0][0], a[1][3] / a[1][1], a[2][3] / a[2][2]};
    for (size_t i = 0; i < part->count; i++) {
        const double t = (part->times[i] - begin) / scale, beyond = fmax(0, (part->times[i] - knee) / scale);
        const double off = part->values[i] - level - c[0] - c[1] * t - c[2] * beyond;
        result.left += off * off;
        result.neighbours += i ? (off - last) * (off - last) : 0;
        last = off;
    }
    result.before = c[1] / scale;
    result.after = (c[1] + c[2]) / scale;
    return result;
}

#define KNEE_LEAST 8     /* moments that are needed to look for one */
#define KNEE_F     12.35 /* 1 % of lines without a knee have more at their best one: Andrews 1993, p = 1 */

/* A walk has knees by chance, and lies closer about its best one than about a straight line. Of 1,000 to 20,000
 * simulated walks of each length (tests/unit/analysis/test_trend.c checks the outcome), times the number of moments: what
 * 2.5 % exceed of the ratio of `restless`, and by how much 2.5 % are better fitted by a knee behind which they grow at
 * less than half the rate (KNEE_F is that of scatter). */
static const struct limit restless_knee[] = {{8, 27.2},  {9, 30.0},   {10, 32.4}, {12, 36.8}, {15, 41.7},
                                             {20, 48.2}, {25, 52.6},  {30, 55.9}, {40, 59.8}, {50, 64.9},
                                             {75, 68.1}, {100, 69.8}, {200, 76.0}};
static const struct limit walk_f[] = {{8, 24.1},   {9, 30.9},    {10, 36.0},  {12, 46.8},  {15, 58.5},
                                      {20, 80.1},  {25, 99.9},   {30, 122.9}, {40, 171.0}, {50, 207.1},
                                      {75, 312.4}, {100, 470.9}, {200, 930.9}};
/* The moment from which on the number grows at less than half its rate of before; 0: there is none. */
static size_t find_knee(const struct part *part, double *before)
{
    struct knee best = {.left = INFINITY};
    double neighbours;
    size_t at = 0;
    if (part->count < KNEE_LEAST)
        return 0;
    for (size_t i = 2; i + HW_TREND_LEAST <= part->count; i++) {
        const struct knee knee = knee_at(part, i);
        if (knee.left < best.left) {
            best = knee;
            at = i;
        }
    }
    if (!at || best.before <= 0 || best.after >= best.before / 2)
        return 0;
    const double line = left_of_line(part, &neighbours);
    const double range = best.before * (part->times[part->count - 1] - part->times[0]);
    const double ratio = best.left > 0 ? best.neighbours / best.left : 2;
    const bool walks = ratio * (double)part->count <= BY_COUNT(restless_knee, part->count);
    /* Scatter whose neighbours are off alike counts less. */
    const double limit = walks ? BY_COUNT(walk_f, part->count) : KNEE_F * correlation_factor(ratio);
    /* A straight line leaves nothing but rounding. */
    if (line <= 1e-12 * range * range || line - best.left < limit * best.left / (double)(part->count - 4))
        return 0;
    *before = best.before;
    return at;
}

/* ---- the pattern ---- */

static size_t count_falls(const struct hw_trend_series *series)
{
    double least = series->values[0], most = least;
    size_t falls = 0;
    for (size_t i = 1; i < series->count; i++) {
        least = fmin(least, series->values[i]);
        most = fmax(most, series->values[i]);
    }
    for (size_t i = 1; i < series->count; i++)
        falls += series->values[i - 1] - series->values[i] > (most - least) / 2;
    return falls;
}

/* Whether it does not grow now as far as is known, and certainly at less than half the rate of before. */
static bool stopped(const struct hw_trend *trend)
{
    return !isnan(trend->before_rate) && trend->high < trend->before_rate / 2;
}

static enum hw_trend_pattern pattern_of(const struct hw_trend *trend)
{
    const bool certain = trend->count >= HW_TREND_LEAST && trend->p < LEVEL;
    if (certain && trend->low > 0)
        return HW_TREND_GROWS;
    if (certain && trend->high < 0)
        return isnan(trend->before_rate) || trend->falls ? HW_TREND_SHRINKS : HW_TREND_STOPPED;
    if (trend->falls)
        return HW_TREND_FALLS;
    if (stopped(trend))
        return HW_TREND_STOPPED;
    return trend->count < HW_TREND_LEAST ? HW_TREND_FEW : HW_TREND_UNCLEAR;
}

bool hw_trend_of(const struct hw_trend_series *series, struct hw_trend *trend)
{
    *trend =
        (struct hw_trend){.rate = NAN, .low = NAN, .high = NAN, .p = NAN, .before_rate = NAN, .count = series->count};
    if (series->count < 2)
        return true;
    size_t same = 1; /* moments at the begin with one value */
    while (same < series->count && series->values[same] == series->values[0])
        same++;
    if (same == series->count) {
        trend->pattern = HW_TREND_CONSTANT;
        trend->rate = trend->low = trend->high = 0;
        trend->p = 1;
        return true;
    }
    trend->falls = count_falls(series);
    /* What begins later: its rate is that of then. */
    const size_t begin = same > 2 && series->count - same + 1 >= HW_TREND_LEAST ? same - 1 : 0;
    const struct part part = {series->times + begin, series->values + begin, series->count - begin};
    const size_t knee = find_knee(&part, &trend->before_rate);
    if (!estimate(series, begin + knee, trend))
        return false;
    trend->pattern = pattern_of(trend);
    if (trend->pattern == HW_TREND_FALLS && knee) { /* a rate of all that it did */
        trend->before_rate = NAN;
        return estimate(series, begin, trend);
    }
    return true;
}
