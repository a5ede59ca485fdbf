/* verb_record.c - heapwise record: runs a program with the runtime loaded.
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/attaching.h"
#include "cli/record.h"
#include "profile/profile.h"

/* -f is no permission to take a file away from a process that is writing it. */
static bool is_free(const struct hw_record *record, struct hw_error *error)
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

static bool choose_name(struct hw_record *record, struct hw_error *error)
{
    const char *given = record->output;
    if (!given && hw_output_name_from_options(getenv("HEAPWISE_OPTIONS"), record->pattern_from_environment,
                                              sizeof record->pattern_from_environment))
        given = record->pattern_from_environment;
    return hw_output_name_init(&record->name, given, basename(record->target.image), error) && is_free(record, error) &&
           hw_output_name_prepare(&record->name, record->force, error);
}

static void choose_session(struct hw_record *record)
{
    while (record->session == 0) { /* 0 means: not of a session */
        if (getrandom(&record->session, sizeof record->session, 0) != (ssize_t)sizeof record->session)
            record->session = (uint64_t)getpid() << 32 | (uint64_t)time(NULL);
    }
}

/* What is not possible in a program without a dynamic linker. */
static bool prepare_static(struct hw_record *record, struct hw_error *error)
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
static int prepare(struct hw_record *record, struct hw_error *error)
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
static int run(struct hw_record *record, struct hw_error *error)
{
    hw_file_service_start(&record->service, record->name.pattern, record->session);
    hw_memory_limits_begin(&record->limits);
    if (record->dump_at && !record->quiet && !hw_memory_limits_any(&record->limits))
        hw_say("--dump-at: memory has no limit here (memory.max or memory.high of the cgroup, ulimit -v, ulimit -d); a "
               "dump is only written if it gets one");
    char *options = hw_record_runtime_options(record);
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

/* Records it. Returns the exit code. */
static int record_process(const struct hw_record *record)
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
        hw_record_say_totals(path, record);
    return HW_VERB_FINE;
}

int hw_verb_record(int argc, char **argv)
{
    struct hw_record record;
    memset(&record, 0, sizeof record);
    record.names.verb = argv[0];
    record.no_output = fcntl(1, F_GETFD) < 0; /* it may lead to /dev/null later */
    int code = hw_record_options(&record, argc, argv);
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
        hw_record_conclude(&record);
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
