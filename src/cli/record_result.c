/* record_result.c - heapwise record after the run: profiles are closed, completed and packed, and the result printed. */
#include "cli/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "allocators/helper.h"
#include "allocators/observe.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "profile/container/pack.h"
#include "profile/profile.h"
#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/symbolise.h"

#define LEAST_SPACE ((uint64_t)256 << 10) /* bytes that the smallest profile needs, roughly */

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
static const char *why_no_profile(const struct hw_record *record)
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
static bool close_profile(const struct hw_record *record, const struct hw_session *session,
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
static void pack_profiles(const struct hw_record *record, const struct hw_session *session)
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
static void symbolise_profiles(struct hw_record *record, const struct hw_session *session)
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
static void observe_allocators(struct hw_record *record, const struct hw_session *session)
{
    const struct hw_session_file *most = NULL;
    struct hw_remembered_facts *known = calloc(1, sizeof *known);
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

static void say_losses(const struct hw_record *record, const struct hw_session *session)
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

void hw_record_say_totals(const char *path, const struct hw_record *record)
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

static void say_result(const struct hw_record *record, const struct hw_session *session,
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
        hw_record_say_totals(main_file->path, record);
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

static void show_report(const struct hw_record *record, const struct hw_session_file *file)
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

void hw_record_conclude(struct hw_record *record)
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
