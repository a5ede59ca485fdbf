/* recording.h - runs programs under `heapwise record` and under the independent counter, and reads what came of it. */
#ifndef TESTS_SUPPORT_RECORDING_H
#define TESTS_SUPPORT_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/run.h"

/* ---- places ---- */

/* Where the build put things; HEAPWISE_TEST_HEAPWISE and HEAPWISE_TEST_RUNTIME in the environment override. */
const char *heapwise_path(void);
const char *runtime_path(void);
/* The built test program or library; NULL when it could not be built here (its compiler or library is missing). */
const char *program_path(const char *name);
/* Likewise; the test is skipped where it could not be built. */
const char *need_program(const char *name);
/* A directory of this test alone; removed by remove_directory or at exit. */
char *make_directory(void);
void remove_directory(char *path);
/* One for all tests of a program: a fixture for TESTS_WITH. */
extern char *test_directory;
int make_test_directory(void **state);
int remove_test_directory(void **state);
/* DIRECTORY/NAME, allocated. */
char *join_path(const char *directory, const char *name);
/* Names in DIRECTORY that end in SUFFIX, sorted, with the directory in front; *COUNT of them. */
char **list_files(const char *directory, const char *suffix, size_t *count);
void free_list(char **list);
bool have_command(const char *name);

/* ---- recording ---- */

struct record_options {
    const char *options;          /* value of HEAPWISE_OPTIONS; NULL: none */
    const char *const *arguments; /* further arguments of record, ended by NULL */
    const char *file;             /* instead of one made up; not read afterwards when `no_report` */
    bool no_report;               /* do not read the files */
    bool may_fail;                /* reports that cannot be read are left out instead of failing the test */
    struct run_options run;
};

struct recording {
    struct run_result run; /* of record */
    char *directory;       /* that holds the files */
    size_t file_count;     /* profiles left: one for each process */
    char **files;          /* in the order of the processes' start */
    json_t **reports;      /* likewise; NULL where it could not be read */
    json_t *report;        /* of the first process */
};

/* heapwise record -o DIRECTORY/%e.%p.%n.hwprof -- ARGV, then heapwise report --json on every file. Fails the test when
 * a report cannot be had or (unless no_report) there is none. */
struct recording record_and_load(const char *const argv[], const struct record_options *options);
void recording_free(struct recording *recording);

/* heapwise report --json FILE; fails the test when the exit code is not EXPECTED_CODE; NULL when nothing was printed.
 */
json_t *load_report(const char *file, int expected_code);

/* Runs heapwise with ARGUMENTS (ended by NULL). */
struct run_result heapwise(const char *const arguments[], const struct run_options *options);

/* What heapwise with ARGUMENTS, which ends with CODE, prints as JSON. */
json_t *json_of(const char *const arguments[], int code);

/* ---- what a report says ---- */

/* Totals of a process, of Heapwise or of the counter. */
struct totals {
    int64_t allocations, frees, reallocations, temporary, bytes, live_allocations, live_bytes, peak_bytes;
    int64_t peak_most; /* of the counter, with several threads: the peak lies between the two */
};

struct totals report_totals(const json_t *report);

/* The sums over all contexts of a report whose stack has FUNCTION (NULL: all contexts). */
struct sums {
    int64_t contexts, allocations, frees, reallocations, temporary, bytes, live_allocations, live_bytes, peak_bytes;
    int64_t size_min, size_max, lifetime_total_ns, lifetime_min_ns, lifetime_max_ns;
    int64_t migrated_cpu, lifetime_overlaps, same_alloc_cpu, same_free_cpu;
};
struct sums report_sums(const json_t *report, const char *function);

/* The only context with FUNCTION in its stack; fails the test when there is none or there are more. */
const json_t *only_context(const json_t *report, const char *function);
/* An integer at a dotted path ("size.min"); fails the test when it is missing or null. */
int64_t json_number(const json_t *object, const char *path);
/* The same, INT64_MIN when missing or null. */
int64_t json_number_or_none(const json_t *object, const char *path);
/* A text at a dotted path, "" when missing. */
const char *json_text(const json_t *object, const char *path);
/* The entry of an array in which KEY is TEXT; fails the test when there is none. */
const json_t *json_entry(const json_t *object, const char *list, const char *key, const char *text);
/* The class of usable sizes of allocator mode that blocks of SIZE bytes are in. */
const json_t *usable_class(const json_t *report, int64_t size);
/* True when a sentence of not_observed has WORD (without regard to case). */
bool report_says(const json_t *report, const char *word);
/* The stack of a context as one line, leaf first: "a < b < c"; valid until the next call. */
const char *stack_line(const json_t *context);
/* The number of frames. */
size_t stack_depth(const json_t *context);
const char *stack_function(const json_t *context, size_t index);
/* True when NAME is FUNCTION or a part of it that the compiler split off (FUNCTION.cold, FUNCTION.part.0, …). */
bool is_function(const char *name, const char *function);

/* ---- the counter ---- */

struct counted {
    struct run_result run;
    size_t process_count;
    struct counted_process {
        int64_t pid;
        char executable[512];
        struct totals totals;
        int64_t foreign_frees, foreign_reallocations; /* of blocks from before the count, or the fork */
    } * processes;                                    /* in the order of their start */
};

/* What was counted of the process that REPORT is of; fails the test when there is none. */
const struct counted_process *counted_process(const struct counted *counted, const json_t *report);
struct totals counted_totals(const struct counted *counted, const json_t *report);

/* Runs ARGV with the counter preloaded (behind what OPTIONS's environment preloads). */
struct counted count_run(const char *const argv[], const struct run_options *options);
void counted_free(struct counted *counted);
/* Reads the files the counter left in DIRECTORY. */
struct counted read_counters(const char *directory);

/* Records ARGV with the counter preloaded behind the runtime: both count the very same run. */
struct recording record_with_counter(const char *const argv[], const struct record_options *options,
                                     struct counted *counted);

/* ---- assertions ---- */

/* All of them, with every difference in the message; the peak to 1 %. */
void assert_totals_equal(const char *what, struct totals expected, struct totals actual);
/* All but temporary and peak_bytes, over the contexts with FUNCTION in their stack. */
void assert_function_totals(const json_t *report, const char *function, struct totals expected);
/* totals of the report agree with the sums over its contexts. */
void assert_contexts_sum_to_totals(const json_t *report);
/* With several threads and a small peak: shares may differ from it by the BYTES that the others were just allocating or
 * freeing. */
void assert_contexts_sum_to_totals_under_way(const json_t *report, int64_t bytes);
/* For a moment while threads allocate: the peak rises in steps, everything else is exact. */
void assert_contexts_sum_to_totals_but_peak(const json_t *report);
/* The program ended with CODE and wrote nothing unusual on stderr is not claimed. */
void assert_exit(const struct run_result *result, int code, const char *what);
/* heapwise with ARGUMENTS prints nothing but a message with MESSAGE in it, and ends with 2. */
void assert_refused(const char *const arguments[], const char *message);
/* Runs a compiler. Where it, or Heapwise's plugin for it, is not there the test NAME is skipped; other failures fail.
 */
void compile_or_skip(const char *const argv[], const char *name);
void assert_contains(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);

#endif
