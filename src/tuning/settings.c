/* settings.c - see settings.h. */
#include "tuning/settings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/installed.h"
#include "base/growing.h"
#include "base/preload.h"
#include "base/size.h"
#include "tuning/key_values.h"

#define SUFFIX ".conf"

/* ---- values: each returns what is wrong with the text, or NULL ---- */

static const char *take_text(const char *text, char *target, size_t size)
{
    if (!*text)
        return "the value is empty";
    return (size_t)snprintf(target, size, "%s", text) < size ? NULL : "the value is too long";
}

/* "env NAME", "tunable NAME", "conf NAME", "prctl thp-disable" */
static const char *take_way(const char *text, struct hw_setting *setting)
{
    static const char *const ways[] = {
        [HW_SETTING_ENV] = "env ",     [HW_SETTING_TUNABLE] = "tunable ",   [HW_SETTING_CONF] = "conf ",
        [HW_SETTING_PRCTL] = "prctl ", [HW_SETTING_AFFINITY] = "affinity ", [HW_SETTING_MEMPOLICY] = "mempolicy ",
    };
    static const char *const kernel[] = {"thp-disable", "processors", "pages"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strncmp(text, ways[i], strlen(ways[i])) != 0)
            continue;
        text += strlen(ways[i]);
        setting->way = (enum hw_setting_way)i;
        if (i >= HW_SETTING_PRCTL && strcmp(text, kernel[i - HW_SETTING_PRCTL]) != 0)
            return "the kernel's are: prctl thp-disable, affinity processors, mempolicy pages";
        if (strpbrk(text, " =:,"))
            return "a target is one word without '=', ':' and ','";
        return take_text(text, setting->target, sizeof setting->target);
    }
    return "set is one of: env NAME, tunable NAME, conf NAME; for the kernel prctl thp-disable, affinity processors, "
           "mempolicy pages";
}

static const char *take_values(const char *text, struct hw_setting *setting)
{
    for (setting->value_count = 0; *text; text += strspn(text, " ")) {
        const size_t length = strcspn(text, " ");
        if (setting->value_count == HW_SETTING_VALUES)
            return "there are more than 8 values";
        if (length >= HW_SETTING_TEXT)
            return "a value is too long";
        memcpy(setting->values[setting->value_count], text, length);
        setting->values[setting->value_count++][length] = '\0';
        text += length;
    }
    return setting->value_count ? NULL : "the value is empty";
}

/* "128K", "0.1" */
static bool take_number(const char *text, double *value)
{
    uint64_t size;
    char *end;
    if (hw_size_read(text, &size)) {
        *value = (double)size;
        return true;
    }
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

/* "page-faults-per-second > 1000, threads > 1" */
static const char *take_when(const char *text, struct hw_setting *setting)
{
    static const char *const form = "a condition is FACT > NUMBER (or <, =); several are joined by commas";
    char copy[512], *rest = copy;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return "the value is too long";
    setting->when_count = 0;
    for (char *one = strsep(&rest, ","); one; one = strsep(&rest, ",")) {
        if (setting->when_count == HW_SETTING_CONDITIONS)
            return "there are more than 4 conditions";
        struct hw_setting_condition *condition = &setting->when[setting->when_count++];
        char number[HW_SETTING_TEXT], more[2]; /* the widths below are those of the arrays */
        if (sscanf(one, " %63[a-z0-9-] %c %63s %1s", condition->fact, &condition->compare, number, more) != 3 ||
            !strchr("<>=", condition->compare))
            return form;
        if (!take_number(number, &condition->value))
            return form;
    }
    return NULL;
}

/* ---- files ---- */

struct reading {
    struct hw_settings *settings;
    const char *allocator;
    size_t now; /* index of the setting that is being read; SIZE_MAX: none */
};

static struct hw_setting *named(const struct hw_settings *settings, const char *allocator, const char *name)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->of[i].allocator, allocator) == 0 && strcmp(settings->of[i].name, name) == 0)
            return &settings->of[i];
    return NULL;
}

static const char *begin_setting(struct reading *reading, const char *name)
{
    static const char *const reserved[] = {"allocator", "library", "settings"}; /* keys of configurations */
    struct hw_settings *settings = reading->settings;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return "a setting cannot have this name";
    if (strlen(name) >= HW_SETTING_TEXT || strpbrk(name, " ,"))
        return "the name of a setting is one word of less than 64 characters";
    struct hw_setting *setting = named(settings, reading->allocator, name);
    if (!setting) {
        if (!HW_GROW(settings->of, settings->room, settings->count + 1))
            return "not enough memory";
        setting = &settings->of[settings->count++];
    }
    memset(setting, 0, sizeof *setting);
    snprintf(setting->allocator, sizeof setting->allocator, "%s", reading->allocator);
    snprintf(setting->name, sizeof setting->name, "%s", name);
    reading->now = (size_t)(setting - settings->of);
    return NULL;
}

static const char *unfinished(const struct reading *reading)
{
    if (reading->now == SIZE_MAX)
        return NULL;
    const struct hw_setting *setting = &reading->settings->of[reading->now];
    if (!setting->target[0])
        return "the setting before has no line set = …";
    if (setting->way >= HW_SETTING_PRCTL && strcmp(setting->allocator, HW_SETTINGS_KERNEL) != 0)
        return "only settings of the kernel are set by prctl, affinity and mempolicy";
    return setting->value_count ? NULL : "the setting before has no line values = …";
}

static const char *take_line(void *context, const struct hw_key_value *line)
{
    struct reading *reading = context;
    if (!line->key) {
        const char *wrong = unfinished(reading);
        return wrong ? wrong : begin_setting(reading, line->section);
    }
    if (reading->now == SIZE_MAX)
        return "a setting begins with [NAME]";
    struct hw_setting *setting = &reading->settings->of[reading->now];
    if (strcmp(line->key, "set") == 0)
        return take_way(line->value, setting);
    if (strcmp(line->key, "values") == 0)
        return take_values(line->value, setting);
    if (strcmp(line->key, "when") == 0)
        return take_when(line->value, setting);
    if (strcmp(line->key, "since") == 0)
        return take_text(line->value, setting->since, sizeof setting->since);
    if (strcmp(line->key, "before") == 0)
        return take_text(line->value, setting->before, sizeof setting->before);
    if (strcmp(line->key, "does") == 0)
        return take_text(line->value, setting->does, sizeof setting->does);
    if (strcmp(line->key, "request") == 0) {
        setting->on_request = true;
        return strcmp(line->value, "yes") == 0 ? NULL : "request is yes, or missing";
    }
    if (strcmp(line->key, "otherwise") == 0)
        return take_text(line->value, setting->otherwise, sizeof setting->otherwise);
    return "unknown key (known: set, values, since, before, does, when, otherwise, request)";
}

static bool read_file(struct hw_settings *settings, const char *folder, const char *name, struct hw_error *error)
{
    char path[PATH_MAX], allocator[HW_SETTING_TEXT];
    const size_t length = strlen(name) - strlen(SUFFIX);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path || length >= sizeof allocator) {
        hw_error_set(error, "%s/%s: the name is too long", folder, name);
        return false;
    }
    memcpy(allocator, name, length);
    allocator[length] = '\0';
    struct reading reading = {.settings = settings, .allocator = allocator, .now = SIZE_MAX};
    char *text = hw_key_values_file(path, error);
    bool fine = text && hw_key_values_each(text, path, take_line, &reading, error);
    free(text);
    const char *wrong = fine ? unfinished(&reading) : NULL;
    if (wrong)
        hw_error_set(error, "%s, at the end: %s", path, wrong);
    return fine && !wrong;
}

static int is_settings_file(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > strlen(SUFFIX) && entry->d_name[0] != '.' &&
           strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) == 0;
}

bool hw_settings_add_folder(struct hw_settings *settings, const char *folder, struct hw_error *error)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_settings_file, alphasort);
    if (count < 0 && (errno == ENOENT || errno == ENOTDIR))
        return true;
    if (count < 0) {
        hw_error_set(error, "%s: %s", folder, strerror(errno));
        return false;
    }
    bool fine = true;
    for (int i = 0; i < count; i++) {
        fine = fine && read_file(settings, folder, entries[i]->d_name, error);
        free(entries[i]);
    }
    free(entries);
    return fine;
}

static bool users_folder(char *folder, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config == '/')
        return (size_t)snprintf(folder, size, "%s/heapwise/settings", config) < size;
    return home && *home == '/' && (size_t)snprintf(folder, size, "%s/.config/heapwise/settings", home) < size;
}

bool hw_settings_read(struct hw_settings *settings, const char *added, struct hw_error *error)
{
    char folder[PATH_MAX];
    *settings = (struct hw_settings){0};
    if (!hw_installed_path(folder, sizeof folder, HEAPWISE_DATADIR "/settings")) {
        hw_error_set(error, "the installed settings of allocators: %s", strerror(errno));
        return false;
    }
    if (access(folder, R_OK | X_OK) != 0) {
        hw_error_set(error, "%s: %s; is Heapwise installed completely?", folder, strerror(errno));
        return false;
    }
    if (!hw_settings_add_folder(settings, folder, error) ||
        (users_folder(folder, sizeof folder) && !hw_settings_add_folder(settings, folder, error)))
        return false;
    if (added && access(added, R_OK | X_OK) != 0) {
        hw_error_set(error, "%s: %s", added, strerror(errno));
        return false;
    }
    return !added || hw_settings_add_folder(settings, added, error);
}

void hw_settings_free(struct hw_settings *settings)
{
    free(settings->of);
    *settings = (struct hw_settings){0};
}

/* ---- looking up ---- */

const struct hw_setting *hw_settings_find(const struct hw_settings *settings, const char *allocator, const char *name)
{
    const struct hw_setting *setting = named(settings, allocator, name);
    return setting ? setting : named(settings, HW_SETTINGS_KERNEL, name);
}

int hw_version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        char *end_a, *end_b;
        const unsigned long number_a = strtoul(a, &end_a, 10), number_b = strtoul(b, &end_b, 10);
        if (number_a != number_b)
            return number_a < number_b ? -1 : 1;
        a = end_a + strcspn(end_a, "0123456789");
        b = end_b + strcspn(end_b, "0123456789");
    }
    return 0;
}

bool hw_setting_in_version(const struct hw_setting *setting, const char *version)
{
    return !*version || ((!setting->since[0] || hw_version_compare(version, setting->since) >= 0) &&
                         (!setting->before[0] || hw_version_compare(version, setting->before) < 0));
}

size_t hw_settings_of(const struct hw_settings *settings, const char *allocator, const char *version,
                      const struct hw_setting **out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < settings->count && count < most; i++)
        if (strcmp(settings->of[i].allocator, allocator) == 0 && hw_setting_in_version(&settings->of[i], version))
            out[count++] = &settings->of[i];
    return count;
}

/* ---- facts ---- */

static bool holds(const struct hw_setting_condition *condition, double value)
{
    if (isnan(value))
        return true;
    return condition->compare == '>'   ? value > condition->value
           : condition->compare == '<' ? value < condition->value
                                       : value == condition->value;
}

bool hw_setting_may_help(const struct hw_setting *setting, const struct hw_known_facts *facts, char *why, size_t size)
{
    for (size_t i = 0; i < setting->when_count; i++) {
        const struct hw_setting_condition *condition = &setting->when[i];
        const double value = hw_known_fact(facts, condition->fact);
        if (holds(condition, value))
            continue;
        snprintf(why, size, "%s%s(%s is %.10g; %c %.10g is needed)", setting->otherwise,
                 setting->otherwise[0] ? " " : "", condition->fact, value, condition->compare, condition->value);
        return false;
    }
    if (size)
        why[0] = '\0';
    return true;
}

void hw_known_fact_set(struct hw_known_facts *facts, const char *name, double value)
{
    size_t i = 0;
    while (i < facts->count && strcmp(facts->of[i].name, name) != 0)
        i++;
    if (i == sizeof facts->of / sizeof *facts->of)
        return;
    facts->of[i] = (struct hw_known_fact){.name = name, .value = value};
    facts->count += i == facts->count;
}

double hw_known_fact(const struct hw_known_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->of[i].name, name) == 0)
            return facts->of[i].value;
    return NAN;
}

static double number_in(const char *path, const char *before)
{
    char line[256];
    double value = NAN;
    FILE *file = fopen(path, "re");
    while (file && isnan(value) && fgets(line, sizeof line, file))
        if (strncmp(line, before, strlen(before)) == 0)
            value = strtod(line + strlen(before), NULL);
    if (file)
        fclose(file);
    return value;
}

void hw_known_facts_of_machine(struct hw_known_facts *facts)
{
    hw_known_fact_set(facts, "processors", (double)sysconf(_SC_NPROCESSORS_ONLN));
    glob_t nodes = {0};
    const bool known = glob("/sys/devices/system/node/node[0-9]*", GLOB_NOSORT, NULL, &nodes) == 0;
    hw_known_fact_set(facts, "numa-nodes", known ? (double)nodes.gl_pathc : 1);
    globfree(&nodes);
    const int huge_pages = hw_kernel_huge_pages();
    hw_known_fact_set(facts, "kernel-thp", huge_pages < 0 ? NAN : huge_pages);
    hw_known_fact_set(facts, "huge-pages-free", number_in("/proc/meminfo", "HugePages_Free:"));
}
