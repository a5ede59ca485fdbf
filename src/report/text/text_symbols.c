/* text_symbols.c - at the top of a report: modules that many places lie in and that have no debug information, so that
 * these places have no file and line, and what to install. */
#include "report/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "report/text/packages.h"

#define MODULES_MOST 2
#define LEAST_SHARE  20 /* one part of so many is worth a word */

struct missing {
    const struct hw_view_module *module;
    uint64_t value;
};

/* ---- which modules ---- */

static bool lacks_debug_info(const struct hw_view_module *module)
{
    return module->used && module->problem && !module->has_debug_info && module->kind != HW_MODULE_GENERATED;
}

/* Adds up what is at the peak (without one: in all) of the places whose own frame lies in each module. */
static uint64_t add_up(struct hw_text *text, uint64_t *values)
{
    const struct hw_view *view = text->view;
    const bool peak = hw_view_measured(view, HW_MEASURED_PEAK) && view->profile->process.peak_bytes;
    uint64_t all = 0;
    for (size_t i = 0; i < text->places.count && !text->failed; i++) {
        const struct hw_profile_context *sum = &text->places.place[i].sum;
        const uint64_t value = sum->pool ? 0 : peak ? hw_not_negative(sum->peak_bytes) : sum->bytes;
        if (!value)
            continue;
        all += value;
        if (!hw_view_stack(view, sum->leaf, &text->stack)) {
            text->failed = true;
        } else if (text->stack.count) {
            const struct hw_view_module *module = text->stack.frames[hw_stack_headline(&text->stack)].module;
            if (module)
                values[module - view->modules] += value;
        }
    }
    return all;
}

static size_t find_missing(struct hw_text *text, struct missing missing[static MODULES_MOST], uint64_t *all)
{
    const struct hw_view *view = text->view;
    size_t count = 0;
    uint64_t *values = calloc(view->module_count + 1, sizeof *values);
    if (!values) {
        text->failed = true;
        return 0;
    }
    *all = add_up(text, values);
    for (size_t i = 0; i < view->module_count; i++) {
        if (!lacks_debug_info(&view->modules[i]) || !values[i] || values[i] < *all / LEAST_SHARE)
            continue;
        size_t at = count < MODULES_MOST ? count++ : MODULES_MOST;
        for (; at && missing[at - 1].value < values[i]; at--)
            if (at < MODULES_MOST)
                missing[at] = missing[at - 1];
        if (at < MODULES_MOST)
            missing[at] = (struct missing){.module = &view->modules[i], .value = values[i]};
    }
    free(values);
    return count;
}

/* ---- what to do ---- */

/* Servers of debug information, by the ID in os-release. */
static const struct {
    const char *id, *server;
} servers[] = {
    {"debian", "https://debuginfod.debian.net"},
    {"ubuntu", "https://debuginfod.ubuntu.com"},
    {"fedora", "https://debuginfod.fedoraproject.org"},
    {"centos", "https://debuginfod.centos.org"},
    {"arch", "https://debuginfod.archlinux.org"},
    {"opensuse-leap", "https://debuginfod.opensuse.org"},
    {"opensuse-tumbleweed", "https://debuginfod.opensuse.org"},
};

static const char *find_server(void)
{
    char line[256], id[64] = "";
    FILE *release = fopen("/etc/os-release", "re");
    while (release && fgets(line, sizeof line, release))
        if (sscanf(line, "ID=%63[^\n]", id) == 1)
            break;
    if (release)
        fclose(release);
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        const size_t quote = *id == '"', size = strlen(servers[i].id);
        if (!strncmp(id + quote, servers[i].id, size) && (id[quote + size] == '\0' || id[quote + size] == '"'))
            return servers[i].server;
    }
    return "https://debuginfod.elfutils.org";
}

/* PACKAGE has the module's file; "": none is known. */
static void add_advice(const struct hw_view_module *module, const char *package, struct hw_buffer *out)
{
    if (!strstr(module->problem, "debug information"))
        return; /* another file, or none: its own sentence is all */
    const char *urls = getenv("DEBUGINFOD_URLS");
    const bool asked = urls && *urls;
    if (!*package && module->kind != HW_MODULE_SYSTEM && strncmp(module->path, "/usr/", 5)) {
        hw_buffer_add(out, " Compile it with -g.");
        return;
    }
    if (*package) /* Debian's and Ubuntu's names; libc6 and a few others have the older one */
        hw_buffer_add(out, " Install %s-%s", package, !strcmp(package, "libc6") ? "dbg" : "dbgsym (or -dbg)");
    if (!asked)
        hw_buffer_add(out, "%s DEBUGINFOD_URLS=%s", *package ? ", or set" : " Set", find_server());
    if (*package || !asked)
        hw_buffer_add(out, ".");
}

/* The module's problem without its path, and without a stop. */
static void add_problem(const struct hw_view_module *module, struct hw_buffer *out)
{
    const char *problem = module->problem;
    const size_t path = strlen(module->path);
    if (!strncmp(problem, module->path, path) && !strncmp(problem + path, ": ", 2))
        problem += path + 2;
    const size_t size = strlen(problem);
    hw_buffer_bytes(out, problem, size && problem[size - 1] == '.' ? size - 1 : size);
}

void hw_text_missing_symbols(struct hw_text *text)
{
    struct missing missing[MODULES_MOST] = {{0}};
    const struct hw_view *view = text->view;
    uint64_t all = 0;
    bool any = false;
    for (size_t i = 0; i < view->module_count; i++)
        any = any || lacks_debug_info(&view->modules[i]);
    const size_t count = any && !view->profile->llvm ? find_missing(text, missing, &all) : 0;
    struct hw_package packages[MODULES_MOST] = {{0}};
    for (size_t i = 0; i < count; i++)
        packages[i].path = missing[i].module->path;
    if (!hw_packages_find(HW_PACKAGE_LISTS, packages, count))
        text->failed = true;
    for (size_t i = 0; i < count; i++) {
        hw_buffer_clear(&text->line);
        hw_buffer_add(&text->line, "%s, %s of the %s: ", missing[i].module->name,
                      HW_PERCENT((double)missing[i].value, (double)all),
                      hw_view_measured(view, HW_MEASURED_PEAK) && view->profile->process.peak_bytes ? "peak" : "bytes");
        add_problem(missing[i].module, &text->line);
        hw_buffer_add(&text->line, ".");
        add_advice(missing[i].module, packages[i].name, &text->line);
        hw_page_marked(&text->page, HW_ALERT, "Debug info",
                       hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
    }
}
