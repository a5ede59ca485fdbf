/* share.h - a part of a whole, as all reports give it. */
#ifndef HW_ANALYSIS_SHARE_H
#define HW_ANALYSIS_SHARE_H

#include <math.h>

/* From 0 to 1: PART is of WHOLE, and what comes out beyond that is the uncertainty of estimates. NAN where there is no
 * whole, or one of the two is not known. */
static inline double hw_share(double part, double whole)
{
    if (!(whole > 0) || isnan(part))
        return (double)NAN;
    const double share = part / whole;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

#endif
