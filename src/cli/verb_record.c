/* verb_record.c - heapwise record: runs a program with the runtime loaded, and says what came of it.
 *
 * No shell takes part. Whatever can be known to go wrong is said before the program starts; once it has started,
 * nothing here changes what it does or the code it exits with. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "allocators/observe.h"
#include "cli/file_service.h"
#include "cli/launch.h"
#include "cli/memory_limits.h"
#include "cli/options.h"
#include "cli/output_name.h"
#include "base/preload.h"
#include "cli/attaching.h"
#include "cli/session.h"
#include "cli/static_program.h"
#include "cli/target.h"
#include "cli/view_options.h"
#include "profile/container/pack.h"
#include "profile/profile.h"
#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/symbolise.h"

#define DEPTH_MOST    256
#define SAMPLES_USUAL 50 /* bursts a second of CPU time */
#define SAMPLES_MOST  1000
#define LEAST_SPACE   ((uint64_t)256 << 10) /* bytes that the smallest profile needs, roughly */

struct record {
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

/* ---- options ---- */

static bool take_mode(void *allocator, const char *mode, const struct hw_option *option)
{
    *(bool *)allocator = strcmp(mode, "allocator") == 0;
    return *(bool *)allocator || strcmp(mode, "heap") == 0 || hw_option_unknown(option, mode, "heap, allocator");
}

static bool take_sample_bytes(void *bytes, const char *text, const struct hw_option *option)
{
    uint64_t *value = bytes;
    return (hw_parse_size(text, value) && *value >= 1 && *value <= (uint64_t)1 << 40) ||
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
    struct record *record = (struct record *)((char *)at - offsetof(struct record, contents));
    record->contents = true;
    record->fill = text != NULL;
    return !text || strcmp(text, "fill") == 0 || hw_option_unknown(option, text, "fill");
}

static bool take_contents_peak(void *bytes, const char *text, const struct hw_option *option)
{
    uint64_t *value = bytes;
    return (hw_parse_size(text, value) && *value >= 1) ||
           hw_option_needs(option, text, "a number of bytes, such as 64M");
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
    HW_OPTION_TEXT("output", 'o', struct record, output),
    HW_OPTION_FLAG("force", 'f', struct record, force),
    HW_OPTION_NUMBER("pid", 'p', struct record, process, 1, INT_MAX),
    HW_OPTION_KEPT("for", 0, hw_take_time, uint64_t, struct record, seconds),
    HW_OPTION_FLAG("quiet", 'q', struct record, quiet),
    HW_OPTION_FLAG("verbose", 'v', struct record, verbose),
    HW_OPTION_KEPT("mode", 0, take_mode, bool, struct record, allocator),
    HW_OPTION_KEPT("sample-bytes", 0, take_sample_bytes, uint64_t, struct record, sample_bytes),
    {.name = "sample-accesses",
     .value = optional_argument,
     .take = take_sample_accesses,
     .at = HW_OPTION_AT(uint64_t, struct record, sample_accesses),
     .least = 1,
     .most = SAMPLES_MOST},
    HW_OPTION_FLAG("single-steps", 0, struct record, single_steps),
    HW_OPTION_NUMBER("table", 0, struct record, table, 1, UINT32_MAX),
    HW_OPTION_FLAG("free-stacks", 0, struct record, free_stacks),
    {.name = "leaks",
     .value = optional_argument,
     .take = take_leaks,
     .at = HW_OPTION_AT(uint64_t, struct record, leaks)},
    HW_OPTION_FLAG("keeps", 0, struct record, keeps),
    {.name = "contents",
     .value = optional_argument,
     .take = take_contents,
     .at = HW_OPTION_AT(bool, struct record, contents)},
    HW_OPTION_KEPT("contents-peak", 0, take_contents_peak, uint64_t, struct record, contents_peak),
    HW_OPTION_FLAG("no-samples", 0, struct record, no_samples),
    HW_OPTION_FLAG("pinned", 0, struct record, pinned),
    HW_OPTION_KEPT("dump-at", 0, take_dump_at, uint64_t, struct record, dump_at),
    {.name = "valgrind-requests",
     .value = optional_argument,
     .take = take_requests,
     .at = HW_OPTION_AT(uint64_t, struct record, requests)},
    HW_OPTION_FLAG("paused", 0, struct record, paused),
    HW_OPTION_NUMBER("exit-code", 0, struct record, exit_code, 1, 255),
    HW_SUPPRESSION_OPTIONS(struct record, names),
    HW_OPTION_NUMBER("depth", 0, struct record, depth, 1, DEPTH_MOST),
    HW_OPTION_TEXT("facts", 0, struct record, facts),
    HW_OPTION_TEXT("malloc-at", 0, struct record, malloc_at),
    HW_OPTION_FLAG("no-prediction", 0, struct record, no_prediction),
    HW_OPTION_FLAG("no-pack", 0, struct record, no_pack),
    HW_OPTION_FLAG("report", 0, struct record, report),
    HW_OPTION_FLAG("symbolize", 0, struct record, symbolize),
    HW_OPTION_FLAG("no-debuginfod", 0, struct record, names.view.symbolizer.no_debuginfod),
    HW_OPTION_TEXT("sysroot", 0, struct record, names.view.symbolizer.sysroot),
    HW_OPTION_HELP('h'),
    {0},
};

#define NOT_ALLOCATOR                                                                                                  \
    "cannot be combined with --mode allocator: every operation is counted, call stacks are sampled"
#define NOT_SAMPLED     "cannot be combined with --sample-bytes: it needs every block"
#define NOT_PAUSED(name) "cannot be combined with " name ", which needs all of the run"

/* Options that need, or exclude, each other; the first row that applies is said. */
static bool accept_together(const struct record *record)
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
        {sampled && record->requests, "--valgrind-requests",
         "cannot be combined with --sample-bytes: pools are not sampled"},
        {paused && allocator, "--paused", NOT_PAUSED("--mode allocator")},
        {paused && record->sample_accesses, "--paused", NOT_PAUSED("--sample-accesses")},
        {paused && record->keeps, "--paused", NOT_PAUSED("--keeps")},
        {paused && record->leaks, "--paused", NOT_PAUSED("--leaks")},
        {paused && record->contents, "--paused", NOT_PAUSED("--contents")},
        {paused && record->pinned, "--paused", NOT_PAUSED("--pinned")},
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
static bool accept_with_process(const struct record *given)
{
    static const struct record none;
    struct record others = *given;
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
static int read_options(struct record *record, int argc, char **argv)
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

/* ---- before the run ---- */

/* The value of HEAPWISE_OPTIONS. To be freed; NULL when there is no memory. */
static char *make_options(const struct record *record)
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

/* -f is no permission to take a file away from a process that is writing it. */
static bool is_free(const struct record *record, struct hw_error *error)
{
    struct hw_error unread = {""};
    struct stat status;
    const char *name = record->name.name;
    if (!record->force || !name || lstat(name, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    struct hw_profile *profile = hw_profile_read(name, &unread);
    const bool running = profile && profile->running;
    if (running)
        hw_error_set(error, "%s is being written by process %" PRIu32 ", which is still recorded: choose another name",
                     name, profile->process.pid);
    hw_profile_free(profile);
    return !running;
}

static bool choose_name(struct record *record, struct hw_error *error)
{
    const char *given = record->output;
    if (!given && hw_output_name_from_options(getenv("HEAPWISE_OPTIONS"), record->pattern_from_environment,
                                              sizeof record->pattern_from_environment))
        given = record->pattern_from_environment;
    return hw_output_name_init(&record->name, given, basename(record->target.image), error) && is_free(record, error) &&
           hw_output_name_prepare(&record->name, record->force, error);
}

static void choose_session(struct record *record)
{
    while (record->session == 0) { /* 0 means: not of a session */
        if (getrandom(&record->session, sizeof record->session, 0) != (ssize_t)sizeof record->session)
            record->session = (uint64_t)getpid() << 32 | (uint64_t)time(NULL);
    }
}

/* What is not possible in a program without a dynamic linker. */
static bool prepare_static(struct record *record, struct hw_error *error)
{
    const struct {
        bool asked;
        const char *option;
    } dynamic[] = {
        {record->allocator, "--mode=allocator"},
        {record->sample_accesses, "--sample-accesses"},
        {record->leaks, "--leaks"},
        {record->contents, "--contents"},
        {record->pinned, "--pinned"},
        {record->requests, "--valgrind-requests"},
        {record->paused, "--paused"},
        {record->dump_at, "--dump-at"},
    };
    for (size_t i = 0; i < sizeof dynamic / sizeof *dynamic; i++)
        if (dynamic[i].asked) {
            hw_error_set(error,
                         "%s is statically linked: %s is possible only with programs that are linked "
                         "dynamically. Without it, the heap of this program can be recorded",
                         record->target.image, dynamic[i].option);
            return false;
        }
    return hw_static_plan_read(&record->plan, record->target.image, record->malloc_at, error);
}

/* Finds and checks everything. Returns 0, or the exit code with ERROR. */
static int prepare(struct record *record, struct hw_error *error)
{
    char runtime[PATH_MAX];
    int code = hw_target_resolve(record->command[0], &record->target, error);
    if (code)
        return code;
    choose_session(record);
    if (record->facts && !hw_facts_read(&record->told, record->facts, error))
        return HW_VERB_CANNOT_START;
    if (record->target.is_static && !prepare_static(record, error))
        return HW_VERB_CANNOT_START;
    if (record->malloc_at && !record->target.is_static) {
        hw_error_set(error, "%s is linked dynamically: --malloc-at is only for statically linked programs",
                     record->target.image);
        return HW_VERB_CANNOT_START;
    }
    if (!hw_find_runtime(runtime, sizeof runtime, error) || !hw_preload_init(&record->preload, runtime, error) ||
        !choose_name(record, error))
        return HW_VERB_CANNOT_START;
    return 0;
}

/* Returns 0 when the program ran, or the exit code with ERROR. */
static int run(struct record *record, struct hw_error *error)
{
    hw_file_service_start(&record->service, record->name.pattern, record->session);
    hw_memory_limits_begin(&record->limits);
    if (record->dump_at && !record->quiet && !hw_memory_limits_any(&record->limits))
        hw_say("--dump-at: memory has no limit here (memory.max or memory.high of the cgroup, ulimit -v, ulimit -d); a "
               "dump is only written if it gets one");
    char *options = make_options(record);
    char **environment = options ? hw_environment_new(&record->preload, options, error) : NULL;
    free(options);
    if (!environment) {
        hw_error_set(error, "no memory");
        return HW_VERB_CANNOT_START;
    }
    record->launch = (struct hw_launch){
        .path = record->target.path,
        .arguments = record->command,
        .environment = environment,
        .text = record->target.text,
    };
    struct hw_static_start start = {.plan = &record->plan, .runtime = record->preload.path};
    if (record->target.is_static) {
        record->launch.before = hw_static_program_begin;
        record->launch.closure = &start;
    }
    bool executed;
    int problem = hw_launch(&record->launch, &executed, error);
    hw_environment_free(environment);
    if (!problem)
        return 0;
    if (!executed)
        return HW_VERB_CANNOT_START;
    return problem == ENOENT ? HW_VERB_NOT_FOUND : HW_VERB_NOT_EXECUTABLE;
}

/* ---- after the run ---- */

/* As a person in this directory would name it. */
static const char *short_path(const char *path)
{
    static char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        return path;
    size_t length = strlen(here);
    return strncmp(path, here, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

/* A reason without what is said around it anyway. */
static const char *plain_reason(const char *reason)
{
    static const char *const said[] = {"cannot write a profile: ", "the profile cannot grow: "};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strncmp(reason, said[i], strlen(said[i])))
            reason += strlen(said[i]);
    return reason;
}

/* What to do about a reason, or "". */
static const char *advice_for(const char *reason)
{
    return strcasestr(reason, "no space left") || strstr(reason, "quota") || strstr(reason, "disk is full")
               ? ". Free space, or choose another place with -o"
           : strstr(reason, "file size limit") ? ". Raise the limit on file sizes (ulimit -f)"
                                               : "";
}

/* The most likely reason, as far as it can be seen from here, why there is no profile. */
static const char *why_no_profile(const struct record *record)
{
    const char *folder = record->name.directory;
    struct statvfs disk;
    if (record->service.problems)
        return plain_reason(record->service.problem.text);
    struct rlimit space;
    if (record->launch.exit_kind == HW_EXIT_CODE && record->launch.exit_value == 1 &&
        getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        return "address space is limited (ulimit -v): a program of heapwise cc ends at its start then, and for others "
               "there may be no room for the runtime. Raise the limit";
    if (record->target.unchecked)
        return "its file may not be read, so it could not be checked: it may be statically linked or set-user-id";
    if (!folder)
        return "the directory in its name, which depends on the process, may not exist";
    if (statvfs(folder, &disk) != 0)
        return "its directory is gone";
    if ((disk.f_blocks && (uint64_t)disk.f_bavail * disk.f_frsize < LEAST_SPACE) ||
        (disk.f_files && disk.f_favail == 0))
        return "the disk is full";
    if (access(folder, W_OK | X_OK) != 0)
        return "its directory cannot be written to any more";
    if (record->target.musl)
        return "the program uses musl's C library, with which the runtime could not start";
    if (record->launch.exit_kind == HW_EXIT_SIGNAL)
        return "the program was killed before or while it started";
    return "the runtime was not loaded or stepped aside; --verbose lets it say why";
}

/* Is there a later program of the same process? Then this one ended by exec. */
static bool was_replaced(const struct hw_session *session, const struct hw_session_file *file)
{
    for (size_t i = 0; i < session->count; i++) {
        const struct hw_process_info *other = &session->files[i].process;
        if (other->pid == file->process.pid && !(other->flags & HW_PROCESS_FORKED) &&
            other->start_realtime_ns > file->process.start_realtime_ns)
            return true;
    }
    return false;
}

/* Seals the profile of a process that has ended. Programs whose end the runtime could not see (killed) get their exit
 * status from here. */
static bool close_profile(const struct record *record, const struct hw_session *session,
                          const struct hw_session_file *file, bool is_main)
{
    enum hw_exit_kind kind = is_main ? record->launch.exit_kind : HW_EXIT_UNKNOWN;
    if (was_replaced(session, file))
        kind = HW_EXIT_EXEC;
    /* The kernel adds what awaited children needed: with other processes around the figure is not this one's. */
    bool alone = is_main;
    for (size_t i = 0; i < session->count; i++)
        alone &= session->files[i].process.pid == file->process.pid;
    struct hw_error error = {""};
    if (hw_profile_close(file->path, kind, kind == HW_EXIT_EXEC ? 0 : record->launch.exit_value,
                         alone ? record->launch.peak_rss_bytes : 0, record->oom_kills, &error))
        return true;
    if (is_main)
        hw_say("%s", error.message);
    return false;
}

/* Packs the profiles that were sealed. One that cannot be packed is a profile all the same: one line says why, for the
 * first of them. */
static void pack_profiles(const struct record *record, const struct hw_session *session)
{
    bool said = record->quiet;
    for (size_t i = 0; i < session->count; i++) {
        struct hw_error error = {""};
        if (!session->files[i].closed || hw_profile_pack(session->files[i].path, HW_PACK_LEVEL, &error) || said)
            continue;
        hw_say("%s was not packed: %s", short_path(session->files[i].path), error.message);
        said = true;
    }
}

/* Puts names into the profiles of processes that have ended. A profile where that fails stays as it is. */
static void symbolise_profiles(struct record *record, const struct hw_session *session)
{
    record->names.quiet = record->quiet;
    hw_view_arguments_show_progress(&record->names);
    for (size_t i = 0; i < session->count; i++) {
        struct hw_error error = {""};
        if (session->files[i].running)
            continue;
        const bool done = hw_symbolise_file(session->files[i].path, &record->names.view, &error);
        hw_view_arguments_clear_progress(&record->names);
        if (!done && !record->quiet)
            hw_say("no names were stored in %s: %s", short_path(session->files[i].path), error.message);
    }
}

/* Adds facts on their allocators to the profiles. The prediction is made for one: the process that allocated most.
 * Profiles are complete without. */
static void observe_allocators(struct record *record, const struct hw_session *session)
{
    const struct hw_session_file *most = NULL;
    struct hw_known_facts *known = calloc(1, sizeof *known);
    hw_launch_forget_signals(); /* from now on they ask for an end of this */
    for (size_t i = 0; i < session->count; i++)
        if (session->files[i].closed && (!most || session->files[i].process.peak_bytes > most->process.peak_bytes))
            most = &session->files[i];
    for (size_t i = 0; i < session->count; i++) {
        const struct hw_session_file *file = &session->files[i];
        const struct hw_observe_options options = {
            .told = record->facts ? &record->told : NULL,
            .known = known,
            .predict = file == most && !record->no_prediction,
        };
        struct hw_error error = {""};
        if (options.predict && !record->quiet && isatty(STDERR_FILENO))
            hw_say("replaying the program's operations with the other allocators; --no-prediction skips it");
        if (file->closed && !hw_observe(file->path, &options, &error) && !record->quiet)
            hw_say("%s does not say how its allocator works: %s", short_path(file->path), error.message);
    }
    free(known);
    if (hw_helper_interrupted() && !record->quiet)
        hw_say("interrupted: the prediction for other allocators is missing or incomplete");
}

/* What is missing in the profiles of a run, or which are: one line says it, the profiles say the rest. */
struct losses {
    size_t incomplete, lost; /* profiles without all stacks; forked processes without one */
    char reason[512];        /* of the first: of those that are lost, or else of those that are incomplete */
    char path[PATH_MAX];     /* of the first that is incomplete */
};

static void note_losses(const struct hw_session_file *file, struct losses *losses)
{
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(file->path, &error);
    if (!profile)
        return;
    if (profile->process.children_lost) {
        const int number = (int)profile->process.children_error;
        if (losses->lost == 0) {
            snprintf(losses->reason, sizeof losses->reason, "%s",
                     number ? strerror(number) : "they had given up system calls (seccomp)");
        }
        losses->lost += profile->process.children_lost;
    }
    for (size_t i = 0; i < profile->note_count; i++) {
        const struct hw_note *note = &profile->notes[i];
        if (note->code != HW_NOTE_FILE_FULL)
            continue;
        const char *why = hw_profile_string(profile, note->text);
        if (losses->incomplete++ == 0) {
            snprintf(losses->path, sizeof losses->path, "%s", file->path);
            if (losses->lost == 0) {
                snprintf(losses->reason, sizeof losses->reason, "%s", *why ? plain_reason(why) : "it could not grow");
            }
        }
        break;
    }
    hw_profile_free(profile);
}

static void say_losses(const struct record *record, const struct hw_session *session)
{
    struct losses losses = {0};
    for (size_t i = 0; i < session->count; i++)
        note_losses(&session->files[i], &losses);
    const struct hw_file_service *service = &record->service;
    const char *advice = advice_for(losses.lost + losses.incomplete ? losses.reason : service->problem.text);
    if (losses.lost + service->problems > 0) {
        const size_t all = losses.lost + service->problems;
        if (losses.lost == 0)
            hw_say("%zu process%s or program%s left no profile: %s%s", all, all == 1 ? "" : "es", all == 1 ? "" : "s",
                   plain_reason(service->problem.text), advice);
        else
            hw_say("%zu process%s left no profile: %s%s", all, all == 1 ? "" : "es", losses.reason, advice);
    } else if (losses.incomplete == 1)
        hw_say("%s is incomplete: %s; from then on only totals were counted%s", short_path(losses.path), losses.reason,
               advice);
    else if (losses.incomplete)
        hw_say("%zu profiles are incomplete (%s and others): %s; from then on only totals were counted%s",
               losses.incomplete, short_path(losses.path), losses.reason, advice);
}

/* Blocks that the program could not reach any more. */
struct lost {
    uint64_t blocks, bytes;
};

static struct lost lost_in(const struct hw_profile *profile)
{
    struct lost lost = {0};
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        lost.blocks =
            hw_add_saturating(lost.blocks, hw_add_saturating(context->definite_blocks, context->indirect_blocks));
        lost.bytes = hw_add_saturating(lost.bytes, hw_add_saturating(context->definite_bytes, context->indirect_bytes));
    }
    return lost;
}

/* Whether blocks were lost, or it is not known: then that is said. */
static bool anything_lost(const char *path, const struct hw_view_arguments *names)
{
    struct hw_error error = {""};
    struct hw_profile *profile = path ? hw_profile_read(path, &error) : NULL;
    if (!profile || !profile->leak_search) {
        hw_say("record: whether blocks were lost is not known: %s",
               profile ? hw_not_searched(profile) : "there is no profile");
        hw_profile_free(profile);
        return true;
    }
    bool any = lost_in(profile).blocks != 0;
    struct hw_view *view = any && names->view.suppressions ? hw_view_new(profile, &names->view, &error) : NULL;
    if (view) {
        hw_say_suppressed(view, names->verb);
        any = hw_measure_total(view, HW_MEASURE_LOST_COUNT) != 0;
    } else if (any && names->view.suppressions)
        hw_say("record: %s", error.message);
    hw_view_free(view);
    hw_profile_free(profile);
    return any;
}

static void say_totals(const char *path, const struct record *record)
{
    char word[PATH_MAX + 16], command[PATH_MAX + 16];
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(path, &error);
    if (!profile) {
        hw_say("%s", error.message);
        return;
    }
    hw_say_contradictions(profile, short_path(path));
    const uint64_t allocations = profile->totals.allocations;
    if (profile->process.counting == HW_COUNTING_WAITS)
        hw_say("wrote %s: nothing was counted, as no heapwise start came", short_path(path));
    else if (profile->process.sample_bytes && !allocations)
        hw_say("wrote %s: none of the program's allocations was in the sample", short_path(path));
    else if (!hw_profile_measured(profile, HW_MEASURED_PEAK))
        hw_say("wrote %s: %s; the peak and what was not freed are not known, as the address space had no room "
               "(ulimit -v, or mappings of the program)",
               short_path(path), HW_OF(allocations, "allocation"));
    else
        hw_say("wrote %s: %s, %s at the peak, %s not freed%s", short_path(path), HW_OF(allocations, "allocation"),
               HW_BYTES(profile->process.peak_bytes), HW_BYTES(hw_not_negative(profile->totals.live_bytes)),
               profile->process.sample_bytes ? " (estimates)" : "");
    if (profile->leak_search) {
        struct lost lost = lost_in(profile);
        if (lost.blocks)
            hw_say("%s lost in %s; see them with: %s leaks %s", HW_BYTES(lost.bytes), HW_OF(lost.blocks, "block"),
                   hw_shell_word(program_invocation_name, command, sizeof command),
                   hw_shell_file(short_path(path), word, sizeof word));
        else
            hw_say("no block was lost");
    } else if (record->leaks && !record->exit_code) /* else that says it */
        hw_say("%s", hw_not_searched(profile));
    hw_profile_free(profile);
}

/* Prints which profiles exist beside the main one: a wrapper or a build has its memory in one of those. Returns the
 * profile with the highest peak. */
static const struct hw_session_file *say_others(const struct hw_session *session,
                                                const struct hw_session_file *main_file)
{
    size_t others = session->count - (main_file != NULL);
    if (others == 0)
        return main_file;
    size_t running = hw_session_running(session);
    char still[64] = "";
    if (running)
        snprintf(still, sizeof still, ", %zu of them still running", running);
    hw_say("wrote %zu%s profile%s, of the processes and programs it started%s", others, main_file ? " more" : "",
           others == 1 ? "" : "s", still);
    const struct hw_session_file *greatest = main_file;
    for (size_t i = 0; i < session->count; i++) {
        if (!greatest || session->files[i].process.peak_bytes > greatest->process.peak_bytes)
            greatest = &session->files[i];
    }
    if (greatest != main_file)
        hw_say("the highest peak, %s, is in %s", HW_BYTES(greatest->process.peak_bytes), short_path(greatest->path));
    return greatest;
}

static void say_result(const struct record *record, const struct hw_session *session,
                       const struct hw_session_file *main_file)
{
    char word[PATH_MAX + 16];
    char command[PATH_MAX + 16];
    if (!main_file)
        hw_say("no profile was written of %s: %s%s", record->command[0], why_no_profile(record),
               advice_for(why_no_profile(record)));
    if (record->quiet)
        return;
    if (main_file)
        say_totals(main_file->path, record);
    if (record->oom_kills)
        hw_say("out of memory: the kernel ended %" PRIu32 " process%s of this cgroup during the run", record->oom_kills,
               record->oom_kills == 1 ? "" : "es");
    if (main_file && main_file->process.exit_kind == HW_EXIT_EXEC && !record->service.problems)
        hw_say("%s executed another program that was not recorded; possible reasons: the environment (LD_PRELOAD) was "
               "cleared, or that program is statically linked or set-user-id",
               record->command[0]);
    if (main_file)
        say_losses(record, session);
    const struct hw_session_file *file = say_others(session, main_file);
    if (session->dumps)
        hw_say("wrote %zu dump%s, taken during the run, beside %s (*.dumpN.hwprof)", session->dumps,
               session->dumps == 1 ? "" : "s", session->count == 1 ? "it" : "them");
    if (file && !record->report)
        hw_say("read it with: %s report %s", hw_shell_word(program_invocation_name, command, sizeof command),
               hw_shell_file(short_path(file->path), word, sizeof word));
}

static void show_report(const struct record *record, const struct hw_session_file *file)
{
    if (record->no_output) {
        hw_say("the report is lost, since standard output is closed; it is in %s", short_path(file->path));
        return;
    }
    char verb[] = "report", no_pager[] = "--no-pager";
    char *arguments[] = {verb, no_pager, file->path, NULL};
    hw_verb_report(3, arguments);
    if (fflush(stdout) != 0 || ferror(stdout))
        hw_say("the report is lost, since it cannot be written: %s; it is in %s", strerror(errno),
               short_path(file->path));
}

/* Records it. Returns the exit code. */
static int record_process(const struct record *record)
{
    const struct hw_running running = {.pid = (pid_t)record->process,
                                       .output = record->output,
                                       .sample_bytes = record->sample_bytes,
                                       .seconds = record->seconds,
                                       .quiet = record->quiet};
    char path[PATH_MAX];
    struct hw_error error = {""};
    if (!hw_record_running(&running, path, sizeof path, &error)) {
        hw_say("record: %s", error.message);
        return HW_VERB_CANNOT_START;
    }
    if (!record->quiet && access(path, F_OK) == 0) /* a container may be gone */
        say_totals(path, record);
    return HW_VERB_FINE;
}

static void conclude(struct record *record)
{
    struct hw_session session;
    hw_file_service_stop(&record->service);
    record->oom_kills = hw_memory_limits_kills(&record->limits);
    hw_session_find(&session, record->name.wildcard, record->session);
    const struct hw_session_file *main_file = hw_session_main(&session, record->launch.pid);
    for (size_t i = 0; i < session.count; i++)
        if (!session.files[i].running)
            session.files[i].closed =
                close_profile(record, &session, &session.files[i], &session.files[i] == main_file);
    if (record->allocator)
        observe_allocators(record, &session);
    if (record->symbolize)
        symbolise_profiles(record, &session);
    if (!record->no_pack)
        pack_profiles(record, &session);
    say_result(record, &session, main_file);
    if (hw_session_running(&session) > 0)
        record->preload.folder[0] = '\0'; /* they may execute more programs: the link stays */
    hw_preload_free(&record->preload);
    hw_launch_release(&record->launch);
    record->lost = record->exit_code && anything_lost(main_file ? main_file->path : NULL, &record->names);
    if (record->report && main_file)
        show_report(record, main_file);
    hw_session_free(&session);
}

int hw_verb_record(int argc, char **argv)
{
    struct record record;
    memset(&record, 0, sizeof record);
    record.names.verb = argv[0];
    record.no_output = fcntl(1, F_GETFD) < 0; /* it may lead to /dev/null later */
    int code = read_options(&record, argc, argv);
    if (code >= 0)
        return code;
    if (record.process)
        return record_process(&record);
    struct hw_error error = {""};
    code = prepare(&record, &error);
    if (!code)
        code = run(&record, &error);
    if (code) {
        hw_file_service_stop(&record.service);
        hw_say("record: %s", error.message);
    } else {
        conclude(&record);
        const struct hw_launch *launch = &record.launch;
        code = launch->exit_kind == HW_EXIT_SIGNAL ? 128 + launch->exit_value : launch->exit_value;
        if (code == 0 && record.lost)
            code = (int)record.exit_code;
    }
    hw_preload_free(&record.preload);
    hw_output_name_free(&record.name);
    hw_static_plan_free(&record.plan);
    hw_suppressions_free(&record.names.suppressions);
    return code;
}
