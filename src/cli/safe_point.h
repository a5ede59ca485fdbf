/* safe_point.h - whether a thread that stands still can be made to call dlopen. */
#ifndef HW_CLI_SAFE_POINT_H
#define HW_CLI_SAFE_POINT_H

#include "cli/target_code.h"

struct hw_safe_points {
    struct hw_stop *stop;
    struct hw_target_code *code;
    struct hw_image *libc, *loader;
    struct Dwfl *unwinder;
};

/* False: stop->error says why. Threads need not be stopped. */
bool hw_safe_points_open(struct hw_safe_points *points);
void hw_safe_points_close(struct hw_safe_points *points);
/* THREAD is stopped. It is not inside the allocator, the dynamic linker, a signal handler, or a function of libc that
 * holds a lock which dlopen takes. False: *WHY says where it is. */
bool hw_is_safe_point(struct hw_safe_points *points, const struct hw_stop_thread *thread, const char **why);
/* Whether a call of THREAD, which is stopped, comes back to code in one of the two ranges; true, too, where its stack
 * cannot be unwound. */
bool hw_is_inside(struct hw_safe_points *points, const struct hw_stop_thread *thread, const uint64_t range[2][2]);
/* Whether THREAD, which is stopped, is, or may come back to, or may have been interrupted by a signal in, one of the
 * ranges: its stack is searched for such a number. */
bool hw_may_lead_to(struct hw_safe_points *points, const struct hw_stop_thread *thread, const uint64_t (*range)[2],
                    size_t count);

#endif
