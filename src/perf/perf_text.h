/* perf_text.h - the lines that `perf script` prints for samples with addresses.
 *
 * perf's own documentation: perf-script(1), perf-mem(1); the fields of data_src: union perf_mem_data_src of
 * linux/perf_event.h, perf_event_open(2). What is read:
 *
 *     [COMM] PID/TID [CPU] SECONDS.FRACTION: [PERIOD] [EVENT:] ADDRESS [DATA_SRC |OP …|LVL …] [WEIGHT] IP […]
 *     … SECONDS.FRACTION: PERF_RECORD_MMAP2 PID/TID: [0xSTART(0xSIZE) @ …]: rw-p NAME
 *     # clockid: monotonic (1)
 */
#ifndef HW_PERF_PERF_TEXT_H
#define HW_PERF_PERF_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/format.h"

/* What perf is asked to print. */
#define HW_PERF_FIELDS "pid,tid,time,event,ip,addr,data_src,weight"

enum hw_perf_operation { HW_PERF_NO_OPERATION, HW_PERF_LOAD, HW_PERF_STORE };
enum hw_perf_hitm { HW_PERF_NO_HITM, HW_PERF_HITM_LOCAL, HW_PERF_HITM_REMOTE };

/* What data_src says. */
struct hw_perf_source {
    enum hw_perf_operation operation;
    enum hw_perf_level level;
    enum hw_perf_hitm hitm;
};

struct hw_perf_sample {
    uint32_t pid, tid;
    uint64_t time_ns;
    uint64_t address, ip; /* ip: 0 where it is missing */
    uint64_t weight;
    struct hw_perf_source source;
    bool has_source, has_weight;
};

enum hw_perf_region { HW_PERF_REGION_ANONYMOUS, HW_PERF_REGION_STACK, HW_PERF_REGION_FILE };
struct hw_perf_mapping {
    uint32_t pid;
    uint64_t time_ns;
    uint64_t start, end;
    uint64_t line; /* its number, by who reads the lines */
    enum hw_perf_region kind;
    bool writable;
};

enum hw_perf_line {
    HW_PERF_LINE_NOTHING, /* empty, a comment, a frame of a call stack, another record */
    HW_PERF_LINE_SAMPLE,
    HW_PERF_LINE_MAPPING,
    HW_PERF_LINE_MONOTONIC,   /* times are of CLOCK_MONOTONIC */
    HW_PERF_LINE_HEADER,      /* perf's header: it says which clock was chosen, if one was */
    HW_PERF_LINE_OTHER_CLOCK, /* times are of a clock that was chosen, but another one */
    HW_PERF_LINE_UNREAD,      /* not a line of perf script, or without time, process or address */
};
/* What LINE is, which ends with NUL or a newline; fills one of the two. Any bytes are fine. */
enum hw_perf_line hw_perf_read_line(const char *line, struct hw_perf_sample *sample, struct hw_perf_mapping *mapping);

/* data_src as a number, and as perf's words: "|OP LOAD|LVL L1 hit|SNP None|…". */
struct hw_perf_source hw_perf_source_of(uint64_t data_src);
struct hw_perf_source hw_perf_source_of_words(const char *words);

#endif
