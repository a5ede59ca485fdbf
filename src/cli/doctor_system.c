/* doctor_system.c - what is installed: the checks of heapwise doctor about Heapwise itself, debug information,
 * allocators and compilers. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cc_compiler.h"
#include "cli/cli.h"
#include "cli/target.h"
#include "profile/profile.h"
#include "report/text/human.h"

#define TRIAL_SECONDS 20

void hw_check_runtime(struct hw_finding *finding)
{
    char path[PATH_MAX];
    struct hw_error error = {""};
    if (hw_find_runtime(path, sizeof path, &error))
        hw_finding_set(finding, HW_CHECK_OK, "%s", path);
    else
        hw_finding_set(finding, HW_CHECK_MISSING, "%s", error.message);
}

/* ---- a recording on trial ---- */

/* In the child: heapwise record of the smallest program there is that allocates, its messages to OUTPUT. */
_Noreturn static void record_tiny_program(const char *profile, int output)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    unsetenv("HEAPWISE_OPTIONS"); /* the user's wishes are not on trial */
    signal(SIGALRM, SIG_DFL);
    alarm(TRIAL_SECONDS);
    execl("/proc/self/exe", "heapwise", "record", "-o", profile, "--", "/bin/sh", "-c", ":", (char *)NULL);
    _exit(HW_VERB_CANNOT_START);
}

/* Returns the exit code (128 + n for a signal), -1 when it could not be started. MESSAGE gets the first line said. */
static int run_trial(const char *profile, char *message, size_t size)
{
    int ends[2];
    message[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0)
        record_tiny_program(profile, ends[1]);
    close(ends[1]);
    size_t used = 0;
    char rest[256]; /* what does not fit is read all the same, so that nobody waits */
    ssize_t got;
    while ((got = used + 1 < size ? read(ends[0], message + used, size - 1 - used) : read(ends[0], rest, sizeof rest)) >
           0)
        used += used + 1 < size ? (size_t)got : 0;
    message[used] = '\0';
    message[strcspn(message, "\n")] = '\0';
    close(ends[0]);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void judge_trial(struct hw_finding *finding, int code, const char *profile_path, const char *message)
{
    struct hw_error error = {""};
    struct hw_profile *profile = code == 0 ? hw_profile_read(profile_path, &error) : NULL;
    if (code == 128 + SIGALRM)
        hw_finding_set(finding, HW_CHECK_MISSING, "a tiny program did not end within %d seconds under record",
                       TRIAL_SECONDS);
    else if (code != 0)
        hw_finding_set(finding, HW_CHECK_MISSING, "a tiny program failed under record, exit code %d: %s", code,
                       message);
    else if (!profile)
        hw_finding_set(finding, HW_CHECK_MISSING, "a tiny program left no profile that can be read: %s",
                       access(profile_path, F_OK) != 0 && *message ? message : error.message);
    else if (profile->totals.allocations == 0)
        hw_finding_set(finding, HW_CHECK_LIMITED, "works, but no allocation of a tiny program was seen");
    else
        hw_finding_set(finding, HW_CHECK_OK, "works: %s allocations of a tiny program on %s, started in %s",
                       HW_COUNT(profile->totals.allocations),
                       *profile->allocator ? profile->allocator : "its allocator",
                       HW_NS(profile->process.startup_ns, false));
    hw_profile_free(profile);
}

static void remove_folder(const char *folder)
{
    char pattern[PATH_MAX + 16];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    rmdir(folder);
}

void hw_check_recording(struct hw_finding *finding)
{
    const char *place = getenv("TMPDIR");
    char folder[PATH_MAX];
    char profile[PATH_MAX + 16];
    char message[512];
    snprintf(folder, sizeof folder, "%s/heapwise-doctor-XXXXXX", place && *place == '/' ? place : "/tmp");
    if (!mkdtemp(folder)) {
        hw_finding_set(finding, HW_CHECK_LIMITED, "could not be tried: %s: %s", folder, strerror(errno));
        return;
    }
    snprintf(profile, sizeof profile, "%s/trial.hwprof", folder);
    fflush(stdout);
    int code = run_trial(profile, message, sizeof message);
    judge_trial(finding, code, profile, message);
    remove_folder(folder);
}

/* ---- symbols ---- */

void hw_check_debuginfod(struct hw_finding *finding)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (servers && *servers)
        hw_finding_set(finding, HW_CHECK_OK, "used for missing debug information: %s", servers);
    else
        hw_finding_set(finding, HW_CHECK_LIMITED,
                       "not asked, DEBUGINFOD_URLS is not set: only debug information on this machine is used");
}

void hw_check_debug_files(struct hw_finding *finding)
{
    glob_t found;
    size_t count = 0;
    if (glob("/usr/lib/debug/.build-id/*/*.debug", GLOB_NOSORT, NULL, &found) == 0) {
        count = found.gl_pathc;
        globfree(&found);
    }
    if (count)
        hw_finding_set(finding, HW_CHECK_OK, "%s in /usr/lib/debug", HW_COUNT(count));
    else
        hw_finding_set(finding, HW_CHECK_MISSING,
                       "none in /usr/lib/debug: functions of system libraries have no lines (packages named *-dbg or "
                       "*-dbgsym bring them)");
}

/* ---- allocators and compilers ---- */

/* Appends ITEM to the list TEXT, if it fits. */
static void add_to_list(char *text, size_t size, const char *item)
{
    size_t used = strlen(text);
    if (used + 2 + strlen(item) < size)
        sprintf(text + used, "%s%s", used ? ", " : "", item);
}

/* A library in one of the usual folders. */
static bool find_library(const char *pattern, char *path, size_t size)
{
    static const char *const folders[] = {"/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64",
                                          "/usr/lib",       "/lib/*-linux-gnu",     "/lib64"};
    bool there = false;
    for (size_t i = 0; !there && i < sizeof folders / sizeof folders[0]; i++) {
        char whole[PATH_MAX];
        glob_t found;
        snprintf(whole, sizeof whole, "%s/%s", folders[i], pattern);
        if (glob(whole, 0, NULL, &found) != 0)
            continue;
        snprintf(path, size, "%s", found.gl_pathv[0]);
        there = true;
        globfree(&found);
    }
    return there;
}

void hw_check_allocators(struct hw_finding *finding)
{
    static const struct {
        const char *name, *pattern;
    } allocators[] = {
        {"jemalloc", "libjemalloc.so.2"},
        {"tcmalloc", "libtcmalloc*.so.4"},
        {"mimalloc", "libmimalloc.so.[23]*"},
    };
    char there[512] = "", absent[128] = "", path[PATH_MAX];
    for (size_t i = 0; i < sizeof allocators / sizeof allocators[0]; i++) {
        bool found = find_library(allocators[i].pattern, path, sizeof path);
        add_to_list(found ? there : absent, found ? sizeof there : sizeof absent, found ? path : allocators[i].name);
    }
    if (!*absent)
        hw_finding_set(finding, HW_CHECK_OK, "beside the C library's: %s", there);
    else
        hw_finding_set(finding, HW_CHECK_LIMITED, "beside the C library's: %s; not installed: %s",
                       *there ? there : "none", absent);
}

void hw_check_plugins(struct hw_finding *finding)
{
    unsigned versions[32];
    char list[256] = "";
    size_t count = hw_cc_plugin_versions(versions, sizeof versions / sizeof versions[0]);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "clang %u", versions[i]);
        add_to_list(list, sizeof list, name);
    }
    if (count)
        hw_finding_set(finding, HW_CHECK_OK, "for %s", list);
    else
        hw_finding_set(finding, HW_CHECK_MISSING,
                       "none: heapwise cc can use gcc only, which is slower (they are built when llvm-22-dev or "
                       "llvm-19-dev is there)");
}

/* Those that heapwise cc can use. */
void hw_check_compilers(struct hw_finding *finding)
{
    unsigned versions[32];
    char there[512] = "", absent[256] = "";
    struct hw_cc_compiler compiler;
    struct hw_error error;
    size_t count = hw_cc_plugin_versions(versions, sizeof versions / sizeof versions[0]);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "clang-%u", versions[i]);
        bool found = hw_cc_find_clang(&compiler, versions[i], false);
        add_to_list(found ? there : absent, found ? sizeof there : sizeof absent, found ? compiler.path : name);
    }
    bool clang = *there;
    bool gcc = hw_find_program("gcc", compiler.path, &error) == 0;
    if (gcc)
        add_to_list(there, sizeof there, compiler.path);
    if (clang)
        hw_finding_set(finding, HW_CHECK_OK, "heapwise cc uses the first of %s", there);
    else if (gcc)
        hw_finding_set(finding, HW_CHECK_LIMITED, "heapwise cc --compiler=gcc can use %s, which is slower; %s%s", there,
                       *absent ? "not installed: " : "no plugin for clang", absent);
    else
        hw_finding_set(finding, HW_CHECK_MISSING, "none for heapwise cc (%s); none is needed to record",
                       *absent ? absent : "gcc");
}
