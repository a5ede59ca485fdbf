/* configuration.c - see configuration.h. */
#include "tuning/configuration.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocators/installed.h"
#include "base/size.h"
#include "tuning/key_values.h"

#define PRELOAD    "LD_PRELOAD"
#define NODES_MOST 1024 /* the kernel has no more */

void hw_configuration_init(struct hw_configuration *configuration, const char *allocator, const char *settings_of,
                           const char *library)
{
    *configuration = (struct hw_configuration){.count = 0};
    snprintf(configuration->allocator, sizeof configuration->allocator, "%s", allocator);
    snprintf(configuration->settings, sizeof configuration->settings, "%s", settings_of ? settings_of : allocator);
    snprintf(configuration->library, sizeof configuration->library, "%s", library ? library : "");
}

/* Characters that no allocator's values have, and that would be lost or be something else in GLIBC_TUNABLES,
 * MALLOC_CONF, a shell or a unit file. */
static bool is_value(const char *value)
{
    static const char *const fine = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+/";
    return *value && strlen(value) < HW_SETTING_TEXT && strspn(value, fine) == strlen(value);
}

static bool is_number(const char *text)
{
    text += *text == '-';
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* VALUE as the allocator reads it: glibc takes 128K as 128, so sizes become bytes here, of settings whose candidates
 * are numbers. False: VALUE is not a number, and tunables have no other values. */
static bool in_plain_numbers(const struct hw_setting *setting, const char *value, char *out, size_t size)
{
    bool numbers = true;
    uint64_t number;
    char *end;
    snprintf(out, size, "%s", value);
    for (size_t i = 0; i < setting->value_count; i++)
        numbers &= is_number(setting->values[i]);
    if (numbers && hw_size_read(value, &number)) {
        snprintf(out, size, "%" PRIu64, number);
        return number <= INT64_MAX;
    }
    if (setting->way != HW_SETTING_TUNABLE)
        return true;
    errno = 0;
    value += *value == '-';
    strtoull(value, &end, strncmp(value, "0x", 2) ? 10 : 16);
    return *value >= '0' && *value <= '9' && !*end && !errno;
}

bool hw_processors_read(const char *text, cpu_set_t *processors)
{
    CPU_ZERO(processors);
    for (bool more = true; more; text++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (*end == '-') {
            if (end[1] < '0' || end[1] > '9')
                return false;
            last = strtoul(end + 1, &end, 10);
        }
        if (last < first || last >= CPU_SETSIZE || (*end && *end != ','))
            return false;
        for (unsigned long i = first; i <= last; i++)
            CPU_SET(i, processors);
        more = *end == ',';
        text = end;
    }
    return true;
}

bool hw_configuration_set(struct hw_configuration *configuration, const struct hw_setting *setting, const char *given,
                          struct hw_error *error)
{
    char value[HW_SETTING_TEXT];
    if (setting->way == HW_SETTING_AFFINITY && !hw_processors_read(given, &(cpu_set_t){{0}})) {
        hw_error_set(error, "%s: \"%s\" is not a list of processors (such as 0-3 or 0,2)", setting->name, given);
        return false;
    }
    if (setting->way != HW_SETTING_AFFINITY && !is_value(given)) {
        hw_error_set(error, "%s: \"%s\" is not a value (letters, digits and _ . - + /)", setting->name, given);
        return false;
    }
    if (!in_plain_numbers(setting, given, value, sizeof value)) {
        hw_error_set(error, "%s: \"%s\" is not a number (such as 131072, 128K or 4M)", setting->name, given);
        return false;
    }
    if (setting->way == HW_SETTING_MEMPOLICY && strcmp(value, "interleave") != 0) {
        hw_error_set(error, "%s: the only value is interleave", setting->name);
        return false;
    }
    if (setting->way == HW_SETTING_PRCTL && strcmp(value, "off") != 0) {
        hw_error_set(error, "%s: the only value is off (a process cannot turn it on for its program)", setting->name);
        return false;
    }
    size_t at = 0;
    while (at < configuration->count && (configuration->of[at].setting->way != setting->way ||
                                         strcmp(configuration->of[at].setting->target, setting->target) != 0))
        at++;
    if (at == HW_CONFIGURATION_SETTINGS) {
        hw_error_set(error, "%s: no more than %d settings", setting->name, HW_CONFIGURATION_SETTINGS);
        return false;
    }
    configuration->of[at].setting = setting;
    snprintf(configuration->of[at].value, sizeof configuration->of[at].value, "%s", value);
    configuration->count += at == configuration->count;
    return true;
}

static const char *value_in(const struct hw_configuration *configuration, const struct hw_setting *setting)
{
    for (size_t i = 0; i < configuration->count; i++)
        if (configuration->of[i].setting == setting)
            return configuration->of[i].value;
    return NULL;
}

bool hw_configuration_equal(const struct hw_configuration *a, const struct hw_configuration *b)
{
    bool same = strcmp(a->allocator, b->allocator) == 0 && strcmp(a->library, b->library) == 0 && a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const char *value = value_in(b, a->of[i].setting);
        same = value && strcmp(value, a->of[i].value) == 0;
    }
    return same;
}

/* ---- the file ---- */

struct reading {
    struct hw_configuration *configuration;
    const struct hw_settings *settings;
    bool has_allocator, has_library, has_settings, heads_only;
    struct hw_error error; /* where what is wrong is not a static text */
};

static const char *take_name(const char *value, char *target, size_t size)
{
    if (!is_value(value))
        return "this is not a name";
    return (size_t)snprintf(target, size, "%s", value) < size ? NULL : "the name is too long";
}

static const char *unknown_setting(struct reading *reading, const char *key)
{
    const struct hw_configuration *configuration = reading->configuration;
    char known[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < reading->settings->count; i++) {
        const struct hw_setting *setting = &reading->settings->of[i];
        if (strcmp(setting->allocator, configuration->settings) != 0 &&
            strcmp(setting->allocator, HW_SETTINGS_KERNEL) != 0)
            continue;
        const int length = snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", setting->name);
        if (length < 0 || (size_t)length >= sizeof known - used)
            break;
        used += (size_t)length;
    }
    hw_error_set(&reading->error, "%s has no setting \"%.64s\" (known: %s)", configuration->settings, key, known);
    return reading->error.message;
}

/* Read twice: what the settings are depends on the allocator, wherever it stands. */
static const char *take_line(void *context, const struct hw_key_value *line)
{
    struct reading *reading = context;
    struct hw_configuration *configuration = reading->configuration;
    if (!line->key)
        return "a configuration has no sections";
    const bool is_library = strcmp(line->key, "library") == 0;
    if (is_library || strcmp(line->key, "allocator") == 0 || strcmp(line->key, "settings") == 0) {
        if (!reading->heads_only)
            return NULL;
        bool *given = is_library          ? &reading->has_library
                      : *line->key == 's' ? &reading->has_settings
                                          : &reading->has_allocator;
        if (*given)
            return "this key has a value already";
        *given = true;
        if (is_library) {
            if (strpbrk(line->value, " \t:;$\"'\\"))
                return "LD_PRELOAD cannot express this name (blanks, quotes, ':', ';', '$')";
            return (size_t)snprintf(configuration->library, sizeof configuration->library, "%s", line->value) <
                           sizeof configuration->library
                       ? NULL
                       : "the name is too long";
        }
        if (*line->key == 's')
            return take_name(line->value, configuration->settings, sizeof configuration->settings);
        return take_name(line->value, configuration->allocator, sizeof configuration->allocator);
    }
    if (reading->heads_only)
        return NULL;
    const struct hw_setting *setting = hw_settings_find(reading->settings, configuration->settings, line->key);
    if (!setting)
        return unknown_setting(reading, line->key);
    if (value_in(configuration, setting))
        return "this setting has a value already";
    return hw_configuration_set(configuration, setting, line->value, &reading->error) ? NULL : reading->error.message;
}

bool hw_configuration_parse(struct hw_configuration *configuration, const struct hw_settings *settings,
                            const char *text, const char *source, struct hw_error *error)
{
    struct reading reading = {.configuration = configuration, .settings = settings, .heads_only = true};
    *configuration = (struct hw_configuration){.count = 0};
    if (!hw_key_values_each(text, source, take_line, &reading, error))
        return false;
    if (!reading.has_allocator) {
        hw_error_set(error, "%s: there is no line \"allocator = NAME\" (own: the program's own)", source);
        return false;
    }
    if (!configuration->settings[0])
        snprintf(configuration->settings, sizeof configuration->settings, "%s",
                 hw_allocator_family(configuration->allocator));
    if (!reading.has_library && strcmp(configuration->allocator, HW_CONFIGURATION_OWN) != 0) {
        const char *library = hw_allocator_library(configuration->allocator);
        if (!library) {
            hw_error_set(error, "%s: the library of \"%s\" is not known: a line \"library = PATH\" is needed", source,
                         configuration->allocator);
            return false;
        }
        snprintf(configuration->library, sizeof configuration->library, "%s", library);
    }
    reading.heads_only = false;
    return hw_key_values_each(text, source, take_line, &reading, error);
}

bool hw_configuration_read(struct hw_configuration *configuration, const struct hw_settings *settings, const char *path,
                           struct hw_error *error)
{
    char *text = hw_key_values_file(path, error);
    const bool fine = text && hw_configuration_parse(configuration, settings, text, path, error);
    free(text);
    return fine;
}

char *hw_configuration_text(const struct hw_configuration *configuration, const char *comment)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    while (comment && *comment) {
        const int length = (int)strcspn(comment, "\n");
        fprintf(out, "#%s%.*s\n", length ? " " : "", length, comment);
        comment += length + (comment[length] == '\n');
    }
    fprintf(out, "allocator = %s\n", configuration->allocator);
    if (strcmp(configuration->allocator, configuration->settings) != 0)
        fprintf(out, "settings = %s\n", configuration->settings);
    if (strcmp(configuration->allocator, HW_CONFIGURATION_OWN) != 0)
        fprintf(out, "library =%s%s\n", configuration->library[0] ? " " : "", configuration->library);
    for (size_t i = 0; i < configuration->count; i++)
        fprintf(out, "%s = %s\n", configuration->of[i].setting->name, configuration->of[i].value);
    const bool fine = !ferror(out);
    if (fclose(out) == 0 && fine)
        return text;
    free(text);
    return NULL;
}

void hw_configuration_label(const struct hw_configuration *configuration, char *out, size_t size)
{
    const bool own = strcmp(configuration->allocator, HW_CONFIGURATION_OWN) == 0;
    size_t used = (size_t)snprintf(out, size, "%s", own ? "as it is" : configuration->allocator);
    for (size_t i = 0; i < configuration->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, ", %s %s", configuration->of[i].setting->name,
                                 configuration->of[i].value);
}

/* ---- giving it to a program ---- */

/* The variable of the settings that go the way WAY (HW_SETTING_TUNABLE, HW_SETTING_CONF): "GLIBC_TUNABLES=a=1:b=2".
 * "" when there are none; NULL: no memory. */
static char *joined(const struct hw_configuration *configuration, enum hw_setting_way way)
{
    const bool tunable = way == HW_SETTING_TUNABLE;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    bool any = false;
    for (size_t i = 0; i < configuration->count; i++) {
        const struct hw_setting *setting = configuration->of[i].setting;
        if (setting->way != way)
            continue;
        fprintf(out, "%s%s%c%s",
                any       ? tunable ? ":" : ","
                : tunable ? "GLIBC_TUNABLES="
                          : "MALLOC_CONF=",
                setting->target, tunable ? '=' : ':', configuration->of[i].value);
        any = true;
    }
    const bool fine = !ferror(out);
    if (fclose(out) == 0 && fine)
        return text;
    free(text);
    return NULL;
}

/* Adds TEXT, which it takes, unless it is "". False: no memory. */
static bool add(char **strings, size_t *count, char *text)
{
    if (text && *text)
        strings[(*count)++] = text;
    else
        free(text);
    return text != NULL;
}

char **hw_configuration_variables(const struct hw_configuration *configuration)
{
    char **strings = calloc(configuration->count + 4, sizeof *strings), *text;
    size_t count = 0;
    if (!strings)
        return NULL;
    bool fine = !configuration->library[0] ||
                (asprintf(&text, PRELOAD "=%s", configuration->library) >= 0 && add(strings, &count, text));
    fine = fine && add(strings, &count, joined(configuration, HW_SETTING_TUNABLE)) &&
           add(strings, &count, joined(configuration, HW_SETTING_CONF));
    for (size_t i = 0; fine && i < configuration->count; i++)
        if (configuration->of[i].setting->way == HW_SETTING_ENV)
            fine = asprintf(&text, "%s=%s", configuration->of[i].setting->target, configuration->of[i].value) >= 0 &&
                   add(strings, &count, text);
    if (fine)
        return strings;
    hw_configuration_strings_free(strings);
    return NULL;
}

static bool same_variable(const char *a, const char *b)
{
    const size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* OURS ("NAME=VALUE") with the value that BASE gives the variable. NULL: no memory. */
static char *combined(const char *ours, char *const *base)
{
    const char *value = NULL, *our_value = strchr(ours, '=') + 1;
    const int name = (int)(our_value - ours);
    for (; base && *base && !value; base++)
        if (same_variable(ours, *base))
            value = strchr(*base, '=') + 1;
    char *text = NULL;
    int length;
    if (!value || !*value)
        length = asprintf(&text, "%s", ours);
    else if (strncmp(ours, PRELOAD "=", (size_t)name) == 0)
        length = asprintf(&text, "%s:%s", ours, value);
    else if (strncmp(ours, "GLIBC_TUNABLES=", (size_t)name) == 0)
        length = asprintf(&text, "%.*s%s:%s", name, ours, value, our_value); /* of two equal ones the later counts */
    else if (strncmp(ours, "MALLOC_CONF=", (size_t)name) == 0)
        length = asprintf(&text, "%.*s%s,%s", name, ours, value, our_value);
    else
        length = asprintf(&text, "%s", ours);
    return length < 0 ? NULL : text;
}

char **hw_configuration_environment(const struct hw_configuration *configuration, char *const *base)
{
    size_t base_count = 0, count = 0;
    while (base && base[base_count])
        base_count++;
    char **ours = hw_configuration_variables(configuration);
    char **strings = ours ? calloc(base_count + configuration->count + 4, sizeof *strings) : NULL;
    bool fine = strings != NULL;
    for (size_t i = 0; fine && ours[i]; i++)
        fine = add(strings, &count, combined(ours[i], base));
    for (size_t i = 0; fine && i < base_count; i++) {
        size_t j = 0;
        while (ours[j] && !same_variable(ours[j], base[i]))
            j++;
        fine = ours[j] || add(strings, &count, strdup(base[i]));
    }
    hw_configuration_strings_free(ours);
    if (fine)
        return strings;
    hw_configuration_strings_free(strings);
    return NULL;
}

void hw_configuration_strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

bool hw_configuration_reaches(const struct hw_configuration *configuration, struct hw_error *error)
{
    const char *preload = getenv(PRELOAD);
    struct hw_facts facts, libc;
    struct hw_error ignored;
    if (configuration->library[0] || strcmp(configuration->allocator, HW_CONFIGURATION_OWN) == 0 || !preload ||
        !*preload || !hw_facts_where(&libc, NULL, &ignored) || !hw_facts_where(&facts, preload, &ignored) ||
        strcmp(facts.path, libc.path) == 0)
        return true;
    hw_error_set(error, "LD_PRELOAD=%.200s replaces the malloc of %s: unset it, or write library = libc.so.6", preload,
                 configuration->allocator);
    return false;
}

/* Over the memory nodes that this process may use. */
static bool interleave(void)
{
    unsigned long allowed[NODES_MOST / (8 * sizeof(unsigned long))] = {0};
    return syscall(SYS_get_mempolicy, NULL, allowed, (unsigned long)NODES_MOST, NULL, MPOL_F_MEMS_ALLOWED) == 0 &&
           syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, allowed, (unsigned long)NODES_MOST) == 0;
}

bool hw_configuration_enter(const struct hw_configuration *configuration)
{
    cpu_set_t processors;
    bool fine = true;
    for (size_t i = 0; fine && i < configuration->count; i++)
        switch (configuration->of[i].setting->way) {
        case HW_SETTING_PRCTL:
            fine = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
            break;
        case HW_SETTING_AFFINITY:
            fine = hw_processors_read(configuration->of[i].value, &processors) &&
                   sched_setaffinity(0, sizeof processors, &processors) == 0;
            break;
        case HW_SETTING_MEMPOLICY:
            fine = interleave();
            break;
        default:
            break;
        }
    return fine;
}
