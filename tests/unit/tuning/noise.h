/* noise.h - times of runs on a simulated machine. */
#ifndef TESTS_UNIT_TUNING_NOISE_H
#define TESTS_UNIT_TUNING_NOISE_H

#include <math.h>

#include "tuning/statistics.h"

struct noise {
    uint64_t random; /* the seed */
    double burst;
    unsigned runs;
};

static inline double noise_gauss(struct noise *noise)
{
    const double radius = sqrt(-2 * log(1 - hw_random_unit(&noise->random)));
    return radius * cos(6.283185307179586 * hw_random_unit(&noise->random));
}

/* The next run of a program that takes a second: runs become slower over the time, bursts last for several runs
 * (autocorrelation), and some runs take several times as long (a heavy tail). */
static inline double noise_next(struct noise *noise)
{
    noise->burst = 0.8 * noise->burst + 0.05 * noise_gauss(noise);
    const double tail = hw_random_unit(&noise->random) < 0.05 ? 1 + 3 * hw_random_unit(&noise->random) : 1;
    return (1 + 0.001 * (noise->runs++ % 1000)) * exp(noise->burst + 0.01 * noise_gauss(noise)) * tail;
}

#endif
