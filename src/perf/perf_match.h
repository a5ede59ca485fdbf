/* perf_match.h - which blocks the samples of perf fell into: the log of blocks (record --log-blocks) and samples of the
 * same process and the same clock, by time and address. */
#ifndef HW_PERF_PERF_MATCH_H
#define HW_PERF_PERF_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "perf/perf_text.h"
#include "profile/tables.h"

#define HW_PERF_PROCESSES 8 /* so many other processes are remembered, for messages */

struct hw_perf_match {
    /* The run, from its profile. */
    uint32_t pid;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    const struct hw_process_info *process;
    const struct hw_block_log_info *log;
    const struct hw_block_event *events;
    size_t event_count;
    uint32_t context_count;
    /* What was read. */
    struct hw_perf_sample *samples;
    struct hw_perf_mapping *mappings;
    size_t sample_count, sample_room, mapping_count, mapping_room;
    uint64_t lines, all_samples, of_process, first_ns, last_ns; /* the last two: of the process's samples */
    uint32_t others[HW_PERF_PROCESSES]; /* processes with samples, 0: no more */
    bool header, monotonic, other_clock;
    bool failed; /* no memory */
    struct hw_perf_info info;
    /* What came of it: to be freed by hw_perf_match_free. */
    struct hw_perf_count *counts;
    struct hw_perf_side *sides;
    size_t count_count, count_room, side_count, side_room;
};

/* The run of TABLES, which must stay. PID: of its samples; 0: as the profile says. False with ERROR: it has no log of
 * blocks. */
bool hw_perf_match_begin(struct hw_perf_match *match, const struct hw_tables *tables, uint32_t pid, const char *name,
                         struct hw_error *error);
/* A line of perf script's. */
void hw_perf_match_line(struct hw_perf_match *match, const char *line);
/* After the last one. False with ERROR: no sample is of this run, or there is no memory. NAME: of the samples. */
bool hw_perf_match_end(struct hw_perf_match *match, const char *name, struct hw_error *error);
void hw_perf_match_free(struct hw_perf_match *match);

#endif
