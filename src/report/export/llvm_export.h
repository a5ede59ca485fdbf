/* llvm_export.h - a profile joined with its symbols -> what LLVM's heap profiles say. The files themselves are written
 * by profile/llvm_*.c.
 *
 * LLVM's block has no place for "not counted": its zero accesses make cold whatever lives long enough. So where
 * accesses were not counted, densities are HW_LLVM_NEITHER, which LLVM's thresholds take for neither cold nor hot,
 * unless the caller declares long-lived blocks to be cold (cold_after_ns). docs/llvm.md lists every field. */
#ifndef HW_REPORT_EXPORT_LLVM_EXPORT_H
#define HW_REPORT_EXPORT_LLVM_EXPORT_H

#include "profile/llvm/llvm.h"
#include "report/export/variables.h"
#include "report/view/view.h"

/* A lifetime access density of 1.00, in LLVM's hundredths: cold is below 0.05, hot above 1000. */
#define HW_LLVM_NEITHER 100u

struct hw_llvm_export_options {
    /* Where accesses were not counted: contexts whose blocks live at least so long on average are written as never
     * accessed, which makes them cold. 0: none are. */
    uint64_t cold_after_ns;
    /* Frames of these modules only (names or paths); none: of the program and of the libraries with debug information
     * that are not the system's. Raw profiles keep all frames. */
    const char *const *modules;
    size_t module_count;
};

struct hw_llvm_export {
    struct hw_llvm_profile profile;
    struct hw_variables variables; /* not raw: those that the profile has */
    uint64_t left_out;             /* contexts with allocations of which no frame is known */
    uint64_t merged;               /* contexts that are the same to LLVM as one before */
    uint64_t uncounted;            /* contexts whose accesses were not counted */
    uint64_t cold_by_time;         /* of them those that are cold by cold_after_ns */
    bool no_build_id;              /* raw: the program has none, so llvm-profdata cannot find it */
    bool no_debug_info;            /* not raw: nor has any module that was asked for */
};

/* For hw_llvm_raw_write: the view needs no symbols. False with ERROR when there is no memory. */
bool hw_llvm_export_raw(struct hw_llvm_export *export, const struct hw_view *view,
                        const struct hw_llvm_export_options *options, struct hw_error *error);
/* For hw_llvm_indexed_write and hw_llvm_yaml_write. Names of frames are the view's. */
bool hw_llvm_export_frames(struct hw_llvm_export *export, const struct hw_view *view,
                           const struct hw_llvm_export_options *options, struct hw_error *error);
/* Frees what is in *EXPORT. */
void hw_llvm_export_free(struct hw_llvm_export *export);

#endif
