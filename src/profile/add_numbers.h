/* add_numbers.h - how two numbers of a context become one: the rules that rows of numbers.def name.
 *
 *     HW_BOUND_rule(to, from, member, as, of)     first, as bounds depend on sums from before
 *     HW_TOTAL_rule(to, from, member, as, of)     then
 *
 * TO is the sum, with MEMBER; FROM has it as AS: another sum, or an entry of the file. UINT64_MAX is "too much to be
 * known" and stays what it is. */
#ifndef HW_PROFILE_ADD_NUMBERS_H
#define HW_PROFILE_ADD_NUMBERS_H

#include "profile/profile.h"

/* clang-format off */
#define HW_BOUND_LEAST(to, from, member, as, of) \
    if ((from)->of && (!(to)->of || (from)->as < (to)->member)) (to)->member = (from)->as;
#define HW_BOUND_MOST(to, from, member, as, of) \
    if ((from)->of && (from)->as > (to)->member) (to)->member = (from)->as;
#define HW_BOUND_SUM(to, from, member, as, of)
#define HW_BOUND_SIGNED(to, from, member, as, of)
#define HW_BOUND_FIRST(to, from, member, as, of)
#define HW_BOUND_THREADS(to, from, member, as, of)
#define HW_BOUND_CODE(to, from, member, as, of)

#define HW_TOTAL_LEAST(to, from, member, as, of)
#define HW_TOTAL_MOST(to, from, member, as, of)
#define HW_TOTAL_SUM(to, from, member, as, of)     (to)->member = hw_add_saturating((to)->member, (from)->as);
#define HW_TOTAL_SIGNED(to, from, member, as, of)  (to)->member = (int64_t)((uint64_t)(to)->member + (uint64_t)(from)->as);
#define HW_TOTAL_FIRST(to, from, member, as, of)   if ((from)->as < (to)->member) (to)->member = (from)->as;
#define HW_TOTAL_THREADS(to, from, member, as, of) if ((from)->as > (to)->member) (to)->member = (from)->as;
#define HW_TOTAL_CODE(to, from, member, as, of)
/* clang-format on */

#endif
