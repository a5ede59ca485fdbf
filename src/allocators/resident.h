/* resident.h - resident memory of a running process and its descendants. */
#ifndef HW_ALLOCATORS_RESIDENT_H
#define HW_ALLOCATORS_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In bytes: the unshared part of each process, and the largest shared part of one. ITSELF: false counts only its
 * descendants. 0: not known. */
uint64_t hw_resident_of_tree(pid_t process, bool itself);

/* The mean from the peak to the end, from samples. All zero at first. */
struct hw_resident_course {
    uint64_t samples, peak_bytes;
    double last_s, since_s, byte_seconds; /* of the last sample; since the peak */
};

void hw_resident_add(struct hw_resident_course *course, double now_s, uint64_t bytes);
/* When to take the next sample, in seconds of the run. */
double hw_resident_next(const struct hw_resident_course *course);
/* 0: too few samples. */
uint64_t hw_resident_after_peak(const struct hw_resident_course *course);

#endif
