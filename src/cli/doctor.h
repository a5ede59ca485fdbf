/* doctor.h - what the parts of heapwise doctor share: one check makes one finding. */
#ifndef HW_CLI_DOCTOR_H
#define HW_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum hw_check_state {
    HW_CHECK_OK,
    HW_CHECK_LIMITED, /* works, but something is lost: the text says what */
    HW_CHECK_MISSING, /* does not work: the text says why, and what would help */
};

struct hw_finding {
    enum hw_check_state state;
    char text[768];
};

/* Sets both. */
__attribute__((format(printf, 3, 4))) void hw_finding_set(struct hw_finding *finding, enum hw_check_state state,
                                                          const char *format, ...);

/* ---- doctor_machine.c: processor and kernel ---- */
void hw_check_architecture(struct hw_finding *finding);
void hw_check_kernel(struct hw_finding *finding);
void hw_check_clock(struct hw_finding *finding);
void hw_check_rseq(struct hw_finding *finding);
void hw_check_address_space(struct hw_finding *finding);
void hw_check_descriptors(struct hw_finding *finding);
void hw_check_proc(struct hw_finding *finding);
void hw_check_directory(struct hw_finding *finding);
void hw_check_hardware_counters(struct hw_finding *finding);
void hw_check_software_events(struct hw_finding *finding);
void hw_check_access_samples(struct hw_finding *finding);
void hw_check_syscall_dispatch(struct hw_finding *finding);
void hw_check_call_filters(struct hw_finding *finding);

/* ---- doctor_system.c: what is installed ---- */
void hw_check_runtime(struct hw_finding *finding);
void hw_check_recording(struct hw_finding *finding); /* records a tiny program and reads the profile */
void hw_check_debuginfod(struct hw_finding *finding);
void hw_check_debug_files(struct hw_finding *finding);
void hw_check_allocators(struct hw_finding *finding);
void hw_check_plugins(struct hw_finding *finding);
void hw_check_compilers(struct hw_finding *finding);

#endif
