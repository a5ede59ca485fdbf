/* record_options.c - the options of heapwise record: which exist, which exclude each other, and which of them the
 * runtime gets. */
#include "base/size.h"
#include "cli/record.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/attaching.h"
#include "cli/cli.h"
#include "cli/options.h"

#define DEPTH_MOST    256
#define SAMPLES_USUAL 50 /* bursts a second of CPU time */
#define SAMPLES_MOST  1000
#define LOG_LEAST     ((uint64_t)64 << 10)
#define LOG_MOST      ((uint64_t)64 << 30)

static const char help[] = "Usage: heapwise record [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
                           "       heapwise record -p PID [--for TIME] [-o FILE] [--sample-bytes=N] [-q]\n"
                           "\n"
                           "Runs PROGRAM and records how it uses its heap: exactly, by call stack, for every\n"
                           "process and program that it starts. Read the result with heapwise report.\n"
                           "\n"
                           "  -o, --output=FILE     name of the profile (default %e.%p.hwprof): %e is the\n"
                           "                        program, %p the process id, %h the host, %n a number\n"
                           "                        that makes the name unique, %% is %\n"
                           "  -f, --force           overwrite FILE\n"
                           "  -p, --pid=PID         record process PID, which runs already, until Ctrl-C or\n"
                           "                        its end (as heapwise attach and detach)\n"
                           "      --for=TIME        with -p: no longer than that (90, 60s, 10m)\n"
                           "      --mode=MODE       heap (default): where memory is allocated; allocator:\n"
                           "                        how much time and memory the allocator itself costs\n"
                           "      --facts=FILE      with --mode=allocator: read the allocator's properties\n"
                           "                        from FILE instead of measuring them\n"
                           "      --no-prediction   with --mode=allocator: skip the replays under other\n"
                           "                        allocators at the end\n"
                           "      --paused          count nothing until heapwise start PID; the program runs\n"
                           "                        at almost full speed until then\n"
                           "      --sample-bytes=N  record only one allocation per N bytes, on average\n"
                           "                        (512K, 1M): cheaper, but all numbers are estimates\n"
                           "      --sample-accesses[=HZ]\n"
                           "                        sample memory accesses, HZ times a second of CPU\n"
                           "                        time (1 to 1000, default 50): shares, not counts\n"
                           "      --fields[=HZ]     the same; heapwise fields then shows which fields of\n"
                           "                        structs are used, by the program's debug information\n"
                           "      --single-steps    with --sample-accesses: use single steps even if the\n"
                           "                        processor can sample accesses itself\n"
                           "      --table=N         keep at most N contexts in memory, others in the file\n"
                           "      --free-stacks     also record where blocks are freed\n"
                           "      --leaks[=mapped]  at the end, find blocks that the program cannot reach\n"
                           "                        any more; heapwise leaks shows them. mapped:\n"
                           "                        pointers in memory that the program mapped\n"
                           "                        itself count, too\n"
                           "      --keeps           the same, and record which variables, stacks and\n"
                           "                        places keep the other blocks alive; see them with\n"
                           "                        heapwise report --section keeps\n"
                           "      --contents[=fill] at the end and in dumps, examine what blocks hold:\n"
                           "                        copies, zeros, unused ends. The profile then has\n"
                           "                        bytes of the most frequent contents. fill: fill new\n"
                           "                        blocks to see which bytes are never written\n"
                           "      --contents-peak=N with --contents: examine near the peak instead, once\n"
                           "                        N bytes (64M) are live\n"
                           "      --no-samples      with --contents: store no bytes of blocks\n"
                           "      --pinned          at the end and in dumps, record which blocks keep\n"
                           "                        pages resident that are mostly free; see them\n"
                           "                        with heapwise report --section pinned\n"
                           "      --log-blocks[=SIZE]\n"
                           "                        log when and where each block lies, at most SIZE bytes\n"
                           "                        (default 1G): for heapwise import perf\n"
                           "      --dump-at=N%      write a dump when memory passes N percent of its\n"
                           "                        limit: of the cgroup (memory.max, memory.high), of\n"
                           "                        ulimit -v or ulimit -d\n"
                           "      --valgrind-requests[=answer]\n"
                           "                        record blocks of the program's own allocators that it\n"
                           "                        announces to Valgrind. answer: if the program\n"
                           "                        asks, the answer is that Valgrind is there\n"
                           "      --exit-code=N     with --leaks: exit with N if blocks were lost, or could\n"
                           "                        not be searched for, and the program itself\n"
                           "                        exited with 0\n"
                           "      --suppressions=FILE\n"
                           "                        with --exit-code: lost blocks that do not count,\n"
                           "                        LeakSanitizer's or Valgrind's file of\n"
                           "                        suppressions; may be repeated\n"
                           "      --malloc-at=ADDRESS,free=ADDRESS,calloc=ADDRESS,realloc=ADDRESS\n"
                           "                        where these functions are, in a statically linked\n"
                           "                        program that was stripped\n"
                           "      --depth=N         frames of a call stack to keep, 1 to 256 (default 256)\n"
                           "      --symbolize       store the names of functions, files and lines in the\n"
                           "                        profile, so that it can be read without the programs\n"
                           "      --no-debuginfod   with --symbolize: do not fetch debug information, even\n"
                           "                        when DEBUGINFOD_URLS is set\n"
                           "      --sysroot=DIR     with --symbolize: look for programs, libraries and debug\n"
                           "                        files below DIR\n"
                           "      --no-pack         do not pack the profile at the end: that saves a moment,\n"
                           "                        but the file is larger\n"
                           "      --report          show the report at the end, on stdout\n"
                           "  -q, --quiet           print nothing, unless no profile was written; the\n"
                           "                        report lists what is missing\n"
                           "  -v, --verbose         let the runtime print what it does\n"
                           "  -h, --help            this text\n"
                           "\n"
                           "Exits with the program's code, or 128 + n when signal n killed it; 125 when\n"
                           "Heapwise could not start it, 126 when it is not executable, 127 when it was not\n"
                           "found.\n";

static bool take_mode(void *allocator, const char *mode, const struct hw_option *option)
{
    *(bool *)allocator = strcmp(mode, "allocator") == 0;
    return *(bool *)allocator || strcmp(mode, "heap") == 0 || hw_option_unknown(option, mode, "heap, allocator");
}

static bool take_sample_bytes(void *bytes, const char *text, const struct hw_option *option)
{
    uint64_t *value = bytes;
    return (hw_size_read(text, value) && *value >= 1 && *value <= (uint64_t)1 << 40) ||
           hw_option_needs(option, text, "a number of bytes, such as 524288, 512K or 1M");
}

static bool take_sample_accesses(void *rate, const char *text, const struct hw_option *option)
{
    *(uint64_t *)rate = SAMPLES_USUAL;
    return !text || hw_take_number(rate, text, option);
}

static bool take_leaks(void *leaks, const char *text, const struct hw_option *option)
{
    *(uint64_t *)leaks = text ? 2 : 1;
    return !text || strcmp(text, "mapped") == 0 || hw_option_unknown(option, text, "mapped");
}

static bool take_requests(void *requests, const char *text, const struct hw_option *option)
{
    *(uint64_t *)requests = text ? 2 : 1;
    return !text || strcmp(text, "answer") == 0 || hw_option_unknown(option, text, "answer");
}

static bool take_contents(void *at, const char *text, const struct hw_option *option)
{
    struct hw_record *record = (struct hw_record *)((char *)at - offsetof(struct hw_record, contents));
    record->contents = true;
    record->fill = text != NULL;
    return !text || strcmp(text, "fill") == 0 || hw_option_unknown(option, text, "fill");
}

static bool take_contents_peak(void *bytes, const char *text, const struct hw_option *option)
{
    uint64_t *value = bytes;
    return (hw_size_read(text, value) && *value >= 1) ||
           hw_option_needs(option, text, "a number of bytes, such as 64M");
}

static bool take_log(void *bytes, const char *text, const struct hw_option *option)
{
    uint64_t *value = bytes;
    *value = 1;
    return !text || (hw_size_read(text, value) && *value >= LOG_LEAST && *value <= LOG_MOST) ||
           hw_option_needs(option, text, "a number of bytes from 64K to 64G, such as 512M");
}

static bool take_dump_at(void *percent, const char *text, const struct hw_option *option)
{
    char digits[3];
    const size_t length = strcspn(text, "%");
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    return (length < sizeof digits && (!text[length] || !text[length + 1]) &&
            hw_parse_number(digits, 1, 99, percent)) ||
           hw_option_needs(option, text, "a share of the limit from 1%% to 99%%, such as 90%%");
}

static const struct hw_option verb_options[] = {
    HW_OPTION_TEXT("output", 'o', struct hw_record, output),
    HW_OPTION_FLAG("force", 'f', struct hw_record, force),
    HW_OPTION_NUMBER("pid", 'p', struct hw_record, process, 1, INT_MAX),
    HW_OPTION_KEPT("for", 0, hw_take_time, uint64_t, struct hw_record, seconds),
    HW_OPTION_FLAG("quiet", 'q', struct hw_record, quiet),
    HW_OPTION_FLAG("verbose", 'v', struct hw_record, verbose),
    HW_OPTION_KEPT("mode", 0, take_mode, bool, struct hw_record, allocator),
    HW_OPTION_KEPT("sample-bytes", 0, take_sample_bytes, uint64_t, struct hw_record, sample_bytes),
    {.name = "sample-accesses",
     .value = optional_argument,
     .take = take_sample_accesses,
     .at = HW_OPTION_AT(uint64_t, struct hw_record, sample_accesses),
     .least = 1,
     .most = SAMPLES_MOST},
    {.name = "fields",
     .value = optional_argument,
     .take = take_sample_accesses,
     .at = HW_OPTION_AT(uint64_t, struct hw_record, sample_accesses),
     .least = 1,
     .most = SAMPLES_MOST},
    HW_OPTION_FLAG("single-steps", 0, struct hw_record, single_steps),
    HW_OPTION_NUMBER("table", 0, struct hw_record, table, 1, UINT32_MAX),
    HW_OPTION_FLAG("free-stacks", 0, struct hw_record, free_stacks),
    {.name = "leaks",
     .value = optional_argument,
     .take = take_leaks,
     .at = HW_OPTION_AT(uint64_t, struct hw_record, leaks)},
    HW_OPTION_FLAG("keeps", 0, struct hw_record, keeps),
    {.name = "contents",
     .value = optional_argument,
     .take = take_contents,
     .at = HW_OPTION_AT(bool, struct hw_record, contents)},
    HW_OPTION_KEPT("contents-peak", 0, take_contents_peak, uint64_t, struct hw_record, contents_peak),
    HW_OPTION_FLAG("no-samples", 0, struct hw_record, no_samples),
    HW_OPTION_FLAG("pinned", 0, struct hw_record, pinned),
    {.name = "log-blocks",
     .value = optional_argument,
     .take = take_log,
     .at = HW_OPTION_AT(uint64_t, struct hw_record, block_log)},
    HW_OPTION_KEPT("dump-at", 0, take_dump_at, uint64_t, struct hw_record, dump_at),
    {.name = "valgrind-requests",
     .value = optional_argument,
     .take = take_requests,
     .at = HW_OPTION_AT(uint64_t, struct hw_record, requests)},
    HW_OPTION_FLAG("paused", 0, struct hw_record, paused),
    HW_OPTION_NUMBER("exit-code", 0, struct hw_record, exit_code, 1, 255),
    HW_SUPPRESSION_OPTIONS(struct hw_record, names),
    HW_OPTION_NUMBER("depth", 0, struct hw_record, depth, 1, DEPTH_MOST),
    HW_OPTION_TEXT("facts", 0, struct hw_record, facts),
    HW_OPTION_TEXT("malloc-at", 0, struct hw_record, malloc_at),
    HW_OPTION_FLAG("no-prediction", 0, struct hw_record, no_prediction),
    HW_OPTION_FLAG("no-pack", 0, struct hw_record, no_pack),
    HW_OPTION_FLAG("report", 0, struct hw_record, report),
    HW_OPTION_FLAG("symbolize", 0, struct hw_record, symbolize),
    HW_OPTION_FLAG("no-debuginfod", 0, struct hw_record, names.view.symbolizer.no_debuginfod),
    HW_OPTION_TEXT("sysroot", 0, struct hw_record, names.view.symbolizer.sysroot),
    HW_OPTION_HELP('h'),
    {0},
};

#define NOT_ALLOCATOR    "cannot be combined with --mode allocator: every operation is counted, call stacks are sampled"
#define NOT_SAMPLED      "cannot be combined with --sample-bytes: it needs every block"
#define NOT_PAUSED(name) "cannot be combined with " name ", which needs all of the run"

/* Options that need, or exclude, each other; the first row that applies is said. */
static bool accept_together(const struct hw_record *record)
{
    const struct hw_symbolizer_options *symbolizer = &record->names.view.symbolizer;
    const bool allocator = record->allocator, sampled = record->sample_bytes, paused = record->paused;
    const struct {
        bool wrong;
        const char *option, *why;
    } rules[] = {
        {allocator && record->sample_bytes, "--sample-bytes", NOT_ALLOCATOR},
        {allocator && record->table, "--table", NOT_ALLOCATOR},
        {allocator && record->free_stacks, "--free-stacks", NOT_ALLOCATOR},
        {allocator && record->keeps, "--keeps", NOT_ALLOCATOR},
        {allocator && record->leaks, "--leaks", NOT_ALLOCATOR},
        {allocator && record->contents, "--contents", NOT_ALLOCATOR},
        {allocator && record->pinned, "--pinned", NOT_ALLOCATOR},
        {allocator && record->block_log, "--log-blocks", NOT_ALLOCATOR},
        {allocator && record->requests, "--valgrind-requests",
         "cannot be combined with --mode allocator: that mode does not record pools"},
        {record->seconds && !record->process, "--for", "needs -p"},
        {!allocator && record->facts, "--facts", "needs --mode allocator"},
        {!allocator && record->no_prediction, "--no-prediction", "needs --mode allocator"},
        {sampled && record->keeps, "--keeps", NOT_SAMPLED},
        {sampled && record->leaks, "--leaks", NOT_SAMPLED},
        {sampled && record->contents, "--contents", NOT_SAMPLED},
        {!record->contents && record->no_samples, "--no-samples", "needs --contents"},
        {!record->contents && record->contents_peak, "--contents-peak", "needs --contents"},
        {sampled && record->pinned, "--pinned", NOT_SAMPLED},
        {sampled && record->block_log, "--log-blocks", NOT_SAMPLED},
        {sampled && record->requests, "--valgrind-requests",
         "cannot be combined with --sample-bytes: pools are not sampled"},
        {paused && allocator, "--paused", NOT_PAUSED("--mode allocator")},
        {paused && record->sample_accesses, "--paused", NOT_PAUSED("--sample-accesses")},
        {paused && record->keeps, "--paused", NOT_PAUSED("--keeps")},
        {paused && record->leaks, "--paused", NOT_PAUSED("--leaks")},
        {paused && record->contents, "--paused", NOT_PAUSED("--contents")},
        {paused && record->pinned, "--paused", NOT_PAUSED("--pinned")},
        {paused && record->block_log, "--paused", NOT_PAUSED("--log-blocks")},
        {paused && record->requests, "--paused", NOT_PAUSED("--valgrind-requests")},
        {record->names.suppressions.count && !record->exit_code, "--suppressions",
         "needs --leaks and --exit-code: the profile has all blocks"},
        {record->exit_code && !record->leaks, "--exit-code", "needs --leaks"},
        {!record->symbolize && symbolizer->sysroot, "--sysroot", "needs --symbolize"},
        {!record->symbolize && symbolizer->no_debuginfod, "--no-debuginfod", "needs --symbolize"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].wrong) {
            hw_say("record: %s %s", rules[i].option, rules[i].why);
            return false;
        }
    }
    return true;
}

/* Options that a process which runs already has no use for; it cannot be recorded in other ways either. */
static bool accept_with_process(const struct hw_record *given)
{
    static const struct hw_record none;
    struct hw_record others = *given;
    others.output = NULL;
    others.sample_bytes = others.process = others.seconds = 0;
    others.quiet = others.no_output = false;
    others.command = NULL;
    others.names.verb = NULL;
    if (memcmp(&others, &none, sizeof none) == 0)
        return true;
    hw_say("record: -p can only be combined with --for, -o, --sample-bytes and -q");
    return false;
}

/* Returns -1 to go on, or the exit code. */
int hw_record_options(struct hw_record *record, int argc, char **argv)
{
    const int code = hw_options_take(verb_options, true, help, argc, argv, record);
    record->command = argv + optind;
    if (record->keeps && !record->leaks)
        record->leaks = 1;
    if (code < 0 && fflush(stdout) == 0)
        return HW_VERB_FINE;
    if (code || !accept_together(record) || (record->process && !accept_with_process(record)))
        return HW_VERB_CANNOT_START;
    if (record->process && optind == argc)
        return -1;
    if (record->process) {
        hw_say("record: either -p PID or PROGRAM, not both");
        return HW_VERB_CANNOT_START;
    }
    if (optind < argc)
        return -1;
    hw_say("record: which PROGRAM? (see heapwise record --help)");
    return HW_VERB_CANNOT_START;
}

char *hw_record_runtime_options(const struct hw_record *record)
{
    char *options = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&options, &size);
    if (!out)
        return NULL;
    fprintf(out, "output=%s:session=%016" PRIx64, record->name.pattern, record->session);
    if (record->service.number)
        fprintf(out, ":launcher=%016" PRIx64 ":pid-namespace=%" PRIu64, record->service.number, hw_pid_namespace());
    if (record->allocator)
        fputs(":mode=allocator", out);
    if (record->sample_bytes)
        fprintf(out, ":sample-bytes=%" PRIu64, record->sample_bytes);
    if (record->sample_accesses)
        fprintf(out, ":sample-accesses=%" PRIu64, record->sample_accesses);
    if (record->single_steps)
        fputs(":event-sources=none", out);
    if (record->table)
        fprintf(out, ":table=%" PRIu64, record->table);
    if (record->depth)
        fprintf(out, ":depth=%" PRIu64, record->depth);
    if (record->free_stacks)
        fputs(":free-stacks=1", out);
    if (record->leaks)
        fprintf(out, ":leaks=%d", (int)record->leaks);
    if (record->keeps)
        fputs(":keeps=1", out);
    if (record->contents)
        fprintf(out, ":contents=1:contents-fill=%d:contents-samples=%d:contents-peak=%" PRIu64, record->fill,
                !record->no_samples, record->contents_peak);
    if (record->pinned)
        fputs(":pinned=1", out);
    if (record->dump_at)
        fprintf(out, ":dump-at=%" PRIu64, record->dump_at);
    if (record->block_log)
        fprintf(out, ":log-blocks=%" PRIu64, record->block_log);
    if (record->requests)
        fprintf(out, ":valgrind-requests=%d", (int)record->requests);
    if (record->paused)
        fputs(":start=off", out);
    if (record->verbose)
        fputs(":verbose=1", out);
    if (fclose(out) != 0) {
        free(options);
        return NULL;
    }
    return options;
}
