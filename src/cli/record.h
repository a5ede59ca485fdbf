/* record.h - what the files of heapwise record share: options as given, and what was found before and during the run. */
#ifndef HW_CLI_RECORD_H
#define HW_CLI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/facts.h"
#include "base/preload.h"
#include "cli/file_service.h"
#include "cli/launch.h"
#include "cli/memory_limits.h"
#include "cli/output_name.h"
#include "cli/static_program.h"
#include "cli/target.h"
#include "cli/view_options.h"

struct hw_record {
    /* as asked for */
    const char *output;
    bool force, quiet, report, verbose, free_stacks, single_steps, symbolize, no_pack, allocator, no_prediction, keeps;
    bool contents, pinned, fill, no_samples, paused;
    bool lost;         /* blocks, by the program itself, as far as that is known */
    const char *facts; /* file with the characteristics of the allocator */
    const char *malloc_at; /* where functions of a statically linked program are */
    struct hw_facts told;
    struct hw_view_arguments names;                                         /* for `symbolize` */
    uint64_t sample_bytes, sample_accesses, table, depth, exit_code, leaks; /* 0: not given */
    uint64_t contents_peak;
    uint64_t dump_at; /* percent */
    uint64_t process, seconds; /* it runs already; 0: a program is to be started */
    uint64_t block_log; /* bytes; 1: as many as usual, 0: none */
    uint64_t requests; /* to Valgrind: 1 observed, 2 also answered */
    char **command;
    /* as found */
    bool no_output; /* stdout is closed */
    uint64_t session;
    char pattern_from_environment[1024];
    struct hw_target target;
    struct hw_output_name name;
    struct hw_preload preload;
    struct hw_launch launch;
    struct hw_static_plan plan; /* of a statically linked program */
    struct hw_file_service service;
    struct hw_memory_limits limits;
    uint32_t oom_kills; /* during the run */
};

/* Takes the options. Returns -1 to go on, or the exit code. */
int hw_record_options(struct hw_record *record, int argc, char **argv);
/* The value of HEAPWISE_OPTIONS. To be freed; NULL when there is no memory. */
char *hw_record_runtime_options(const struct hw_record *record);

/* After the run: closes the profiles of its processes, adds to them what was asked for and prints the result. */
void hw_record_conclude(struct hw_record *record);
/* One line of totals of the profile PATH. */
void hw_record_say_totals(const char *path, const struct hw_record *record);

#endif
