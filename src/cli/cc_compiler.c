/* cc_compiler.c - see cc_compiler.h. */
#include "cli/cc_compiler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/target.h"

#define PLUGIN_BEFORE "HeapwisePass-"
#define PLUGIN_BEHIND ".so"

/* ---- plugins ---- */

static int newest_first(const void *a, const void *b)
{
    unsigned first = *(const unsigned *)a, second = *(const unsigned *)b;
    return (first < second) - (first > second);
}

size_t hw_cc_plugin_versions(unsigned *versions, size_t room)
{
    char folder[PATH_MAX];
    DIR *entries = hw_installed_path(folder, sizeof folder, HEAPWISE_LIBDIR) ? opendir(folder) : NULL;
    if (!entries)
        return 0;
    size_t count = 0;
    for (struct dirent *entry; count < room && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, PLUGIN_BEFORE, strlen(PLUGIN_BEFORE)) != 0)
            continue;
        char *end;
        const char *number = entry->d_name + strlen(PLUGIN_BEFORE);
        unsigned long version = strtoul(number, &end, 10);
        if (end > number && strcmp(end, PLUGIN_BEHIND) == 0 && version < 1000)
            versions[count++] = (unsigned)version;
    }
    closedir(entries);
    qsort(versions, count, sizeof *versions, newest_first);
    return count;
}

static bool find_plugin(struct hw_cc_compiler *compiler)
{
    char name[64];
    snprintf(name, sizeof name, HEAPWISE_LIBDIR "/" PLUGIN_BEFORE "%u" PLUGIN_BEHIND, compiler->version);
    return hw_installed_path(compiler->plugin, sizeof compiler->plugin, name) && access(compiler->plugin, R_OK) == 0;
}

/* ---- what a program is ---- */

/* Runs PATH -dM -E -x c /dev/null, which prints the macros that are known to a compiler from the start. */
static FILE *start_asking(const char *path, pid_t *child)
{
    static char dump[] = "-dM", stop[] = "-E", language[] = "-x", c[] = "c", nothing[] = "/dev/null";
    char *arguments[] = {(char *)(size_t)path, dump, stop, language, c, nothing, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int problem = posix_spawn(child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *answer = problem ? NULL : fdopen(ends[0], "re");
    if (!answer)
        close(ends[0]);
    return answer;
}

/* Finds out which compiler, of which version, PATH is. */
static bool ask(struct hw_cc_compiler *compiler)
{
    pid_t child = -1;
    FILE *answer = start_asking(compiler->path, &child);
    if (!answer)
        return false;
    char line[512];
    unsigned clang = 0, gcc = 0;
    while (fgets(line, sizeof line, answer)) {
        sscanf(line, "#define __clang_major__ %u", &clang);
        sscanf(line, "#define __GNUC__ %u", &gcc);
    }
    fclose(answer);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    compiler->kind = clang ? HW_CC_CLANG : HW_CC_GCC; /* clang defines __GNUC__ as well */
    compiler->version = clang ? clang : gcc;
    return compiler->version > 0;
}

/* ---- finding ---- */

static bool name_says_cplusplus(const char *path)
{
    return strstr(basename(path), "++") != NULL;
}

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool find_in_path(struct hw_cc_compiler *compiler, const char *name)
{
    struct hw_error error;
    return hw_find_program(name, compiler->path, &error) == 0;
}

/* clang with the version in its name; PLUSES is "++" or "". */
static bool find_versioned(struct hw_cc_compiler *compiler, unsigned version, const char *pluses)
{
    char name[64];
    snprintf(name, sizeof name, "clang%s-%u", pluses, version);
    if (find_in_path(compiler, name))
        return true;
    snprintf(compiler->path, sizeof compiler->path, "/usr/lib/llvm-%u/bin/clang%s", version, pluses);
    return is_program(compiler->path);
}

bool hw_cc_find_clang(struct hw_cc_compiler *compiler, unsigned version, bool cplusplus)
{
    compiler->kind = HW_CC_CLANG;
    compiler->version = version;
    compiler->must_be_told = false;
    if (find_versioned(compiler, version, cplusplus ? "++" : ""))
        return true;
    if (cplusplus && find_versioned(compiler, version, ""))
        return compiler->must_be_told = true;
    if (find_in_path(compiler, cplusplus ? "clang++" : "clang") && ask(compiler) && compiler->kind == HW_CC_CLANG &&
        compiler->version == version)
        return true;
    compiler->kind = HW_CC_CLANG;
    compiler->version = version;
    return false;
}

static int find_newest(struct hw_cc_compiler *compiler, bool cplusplus, struct hw_error *error)
{
    unsigned versions[32];
    char list[256] = "";
    size_t used = 0;
    size_t count = hw_cc_plugin_versions(versions, sizeof versions / sizeof versions[0]);
    for (size_t i = 0; i < count; i++) {
        if (hw_cc_find_clang(compiler, versions[i], cplusplus) && find_plugin(compiler))
            return 0;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%sclang-%u", i ? ", " : "", versions[i]);
    }
    if (count == 0)
        hw_error_set(error,
                     "this Heapwise was built without plugins for clang; --compiler=%s counts without one, slower",
                     cplusplus ? "g++" : "gcc");
    else
        hw_error_set(
            error, "no compiler with a plugin is installed (%s); install one, or choose --compiler=%s, which is slower",
            list, cplusplus ? "g++" : "gcc");
    return HW_VERB_NOT_FOUND;
}

/* gcc and cc compile C++ but do not link it: g++ and c++ beside them do both. False: there is none; nothing has changed
 * then. */
static bool find_gxx(struct hw_cc_compiler *compiler)
{
    static const char *const names[][2] = {{"gcc", "g++"}, {"cc", "c++"}};
    struct hw_cc_compiler other = *compiler;
    const char *name = basename(compiler->path), *at = NULL;
    size_t i = 0;
    for (; i < sizeof names / sizeof *names && !at; i++)
        for (const char *next = name; (next = strstr(next, names[i][0])); next++)
            at = next; /* the last one: x86_64-linux-gnu-gcc-12 */
    if (!at)
        return false;
    const int length = snprintf(other.path, sizeof other.path, "%.*s%s%s", (int)(at - compiler->path), compiler->path,
                                names[i - 1][1], at + strlen(names[i - 1][0]));
    if (length >= (int)sizeof other.path || !is_program(other.path) || !ask(&other) || other.kind != HW_CC_GCC)
        return false;
    *compiler = other;
    return true;
}

int hw_cc_compiler_find(struct hw_cc_compiler *compiler, const char *name, bool cplusplus, struct hw_error *error)
{
    memset(compiler, 0, sizeof *compiler);
    if (!name)
        return find_newest(compiler, cplusplus, error);
    int code = hw_find_program(name, compiler->path, error);
    if (code)
        return code;
    if (!ask(compiler)) {
        hw_error_set(error, "%s does not behave like gcc or clang: it does not report its version", compiler->path);
        return HW_VERB_NEGATIVE;
    }
    compiler->must_be_told = compiler->kind == HW_CC_CLANG && cplusplus && !name_says_cplusplus(compiler->path);
    if (compiler->kind == HW_CC_GCC && cplusplus && !name_says_cplusplus(compiler->path) && !find_gxx(compiler)) {
        hw_error_set(error, "%s does not link C++, and no g++ or c++ is beside it: name one with --compiler",
                     compiler->path);
        return HW_VERB_NOT_FOUND;
    }
    if (compiler->kind == HW_CC_CLANG && !find_plugin(compiler)) {
        hw_error_set(error, "%s is clang %u, for which there is no plugin here: no %s", compiler->path,
                     compiler->version, compiler->plugin);
        return HW_VERB_NEGATIVE;
    }
    return 0;
}
