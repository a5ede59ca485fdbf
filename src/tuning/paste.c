/* paste.c - see paste.h. Values consist of letters, digits and _ . - + / : , = (hw_configuration_set), libraries have
 * no blanks, quotes, '$', ':' or ';' (hw_configuration_parse): nothing needs quotes. */
#include "tuning/paste.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/installed.h"

const char *const hw_paste_names[HW_PASTE_FORMS] = {
    [HW_PASTE_SHELL] = "shell",
    [HW_PASTE_SYSTEMD] = "systemd",
    [HW_PASTE_DOCKER] = "docker",
    [HW_PASTE_CMAKE] = "cmake",
};

/* The value of the setting that goes the way WAY; NULL: there is none. */
static const char *value_by(const struct hw_configuration *configuration, enum hw_setting_way way)
{
    for (size_t i = 0; i < configuration->count; i++)
        if (configuration->of[i].setting->way == way)
            return configuration->of[i].value;
    return NULL;
}

/* The kernel's settings, which are not in the environment. */
static void kernel(FILE *out, const struct hw_configuration *configuration, enum hw_paste_form form)
{
    const char *processors = value_by(configuration, HW_SETTING_AFFINITY);
    if (value_by(configuration, HW_SETTING_PRCTL))
        fputs("# kernel-thp is not in the environment: start the program by heapwise run, or let it call\n"
              "# prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) first.\n",
              out);
    if (processors && form == HW_PASTE_SYSTEMD)
        fprintf(out, "CPUAffinity=%s\n", processors);
    else if (processors)
        fprintf(out, form == HW_PASTE_DOCKER ? "# docker run --cpuset-cpus=%s IMAGE\n" : "# taskset -c %s PROGRAM\n",
                processors);
    if (value_by(configuration, HW_SETTING_MEMPOLICY))
        fputs(form == HW_PASTE_SYSTEMD ? "NUMAPolicy=interleave\nNUMAMask=all\n"
                                       : "# numactl --interleave=all PROGRAM\n",
              out);
}

/* The library can be joined with one that is preloaded already; lists of settings, too. */
static void shell(FILE *out, char *const *variables)
{
    for (; *variables; variables++) {
        const int name = (int)strcspn(*variables, "=");
        const char *value = *variables + name + 1;
        if (strncmp(*variables, "LD_PRELOAD=", (size_t)name + 1) == 0)
            fprintf(out, "export LD_PRELOAD=%s${LD_PRELOAD:+:$LD_PRELOAD}\n", value);
        else if (strncmp(*variables, "GLIBC_TUNABLES=", (size_t)name + 1) == 0)
            fprintf(out, "export GLIBC_TUNABLES=${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}%s\n", value);
        else if (strncmp(*variables, "MALLOC_CONF=", (size_t)name + 1) == 0)
            fprintf(out, "export MALLOC_CONF=${MALLOC_CONF:+$MALLOC_CONF,}%s\n", value);
        else
            fprintf(out, "export %s\n", *variables);
    }
}

/* "%" begins a specifier there. */
static void systemd(FILE *out, char *const *variables)
{
    fputs("# systemctl edit UNIT\n[Service]\n", out);
    for (; *variables; variables++) {
        fputs("Environment=\"", out);
        for (const char *at = *variables; *at; at++)
            fprintf(out, *at == '%' ? "%%%%" : "%c", *at);
        fputs("\"\n", out);
    }
}

static void docker(FILE *out, char *const *variables)
{
    for (size_t i = 0; variables[i]; i++)
        fprintf(out, "%s%s%s\n", i ? "    " : "ENV ", variables[i], variables[i + 1] ? " \\" : "");
}

static void cmake(FILE *out, char *const *variables, const struct hw_configuration *configuration)
{
    const char *library = configuration->library;
    if (*library)
        fprintf(out, "target_link_libraries(PROGRAM PRIVATE -Wl,--push-state,--no-as-needed %s%s -Wl,--pop-state)\n",
                strchr(library, '/') ? "" : "-l:", library);
    else
        fputs("# There is no library to link.\n", out);
    for (; *variables; variables++) {
        if (strncmp(*variables, "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)
            continue;
        if (strncmp(*variables, "MALLOC_CONF=", strlen("MALLOC_CONF=")) == 0)
            fprintf(out,
                    "# In a source file of the program, for its settings:\n"
                    "#     const char *malloc_conf = \"%s\";\n",
                    *variables + strlen("MALLOC_CONF="));
        else
            fprintf(out, "# In the environment, since these settings cannot be linked: %s\n", *variables);
    }
}

char *hw_paste(const struct hw_configuration *configuration, enum hw_paste_form form)
{
    char **variables = hw_configuration_variables(configuration), *text = NULL, label[HW_CONFIGURATION_LABEL];
    size_t size = 0;
    FILE *out = variables ? open_memstream(&text, &size) : NULL;
    if (!out) {
        hw_configuration_strings_free(variables);
        return NULL;
    }
    hw_configuration_label(configuration, label, sizeof label);
    fprintf(out, "# %s\n", label);
    const char *package = configuration->library[0] ? hw_allocator_package(configuration->library) : NULL;
    if (package)
        fprintf(out, "# The library is in Debian's package %s.\n", package);
    const bool unit = form == HW_PASTE_SYSTEMD &&
                      (value_by(configuration, HW_SETTING_AFFINITY) || value_by(configuration, HW_SETTING_MEMPOLICY));
    if (!variables[0] && form != HW_PASTE_CMAKE && !unit)
        fputs("# Nothing has to be set in the environment.\n", out);
    else if (form == HW_PASTE_SHELL)
        shell(out, variables);
    else if (form == HW_PASTE_SYSTEMD)
        systemd(out, variables);
    else if (form == HW_PASTE_DOCKER)
        docker(out, variables);
    else
        cmake(out, variables, configuration);
    if (form == HW_PASTE_DOCKER && strchr(configuration->library, '/'))
        fprintf(out, "# The image needs this file: COPY %s %s\n", configuration->library, configuration->library);
    kernel(out, configuration, form);
    if (variables[0] && form != HW_PASTE_CMAKE)
        fputs("# Programs with more rights than their user (set-user-ID, file capabilities) ignore such variables.\n",
              out);
    hw_configuration_strings_free(variables);
    const bool fine = !ferror(out);
    if (fclose(out) == 0 && fine)
        return text;
    free(text);
    return NULL;
}
