/* order.h - which of two numbers comes first, for comparisons of qsort and bsearch. No code of its own. */
#ifndef HW_BASE_ORDER_H
#define HW_BASE_ORDER_H

/* Below 0, 0 or above 0, ascending; descending with the two exchanged. By several keys: HW_ORDER(a->x, b->x) ?:
 * HW_ORDER(a->y, b->y). */
#define HW_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif
