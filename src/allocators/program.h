/* program.h - what a profile of allocator mode says of its program, as the prediction needs it. */
#ifndef HW_ALLOCATORS_PROGRAM_H
#define HW_ALLOCATORS_PROGRAM_H

#include "allocators/predict.h"
#include "profile/profile.h"

struct hw_program_data {
    struct hw_program program; /* its stages are in here */
    struct hw_mix mix;
    uint32_t threads_most; /* at work at once, before they were limited to the processors */
    struct hw_stage *stages;
    struct hw_stage_thread *threads;
};

/* From PROFILE, of which `observed` is not NULL. CPUS: threads that can run at once here. NULL with ERROR when there is
 * nothing to predict from; hw_program_data_free. */
struct hw_program_data *hw_program_data_new(const struct hw_profile *profile, unsigned cpus, struct hw_error *error);
void hw_program_data_free(struct hw_program_data *data);

#endif
