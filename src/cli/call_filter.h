/* call_filter.h - filters of system calls (seccomp): which action one would take, without making the call.
 *
 * A filter is a program for the kernel's classic BPF machine, as in Documentation/userspace-api/seccomp_filter.rst. It
 * sees the number of the call, the architecture, the address of the instruction and the six arguments. */
#ifndef HW_CLI_CALL_FILTER_H
#define HW_CLI_CALL_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call of which not everything need be known: bit I of UNKNOWN stands for word I (four bytes) of DATA. */
struct hw_filtered_call {
    struct seccomp_data data;
    uint32_t unknown;
};

/* Runs the filter CODE for CALL. *ACTION becomes what it returns: SECCOMP_RET_… with its data. False: it depends on a
 * word that is not known, or is no filter that the kernel takes. */
bool hw_call_filter_run(const struct sock_filter *code, size_t count, const struct hw_filtered_call *call,
                        uint32_t *action);

/* The one of two filters' actions that counts: the more restrictive one, of equal ones that of the NEWER filter. */
uint32_t hw_call_filter_stronger(uint32_t older, uint32_t newer);

#endif
