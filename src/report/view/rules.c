/* rules.c - see rules.h. */
#include "report/view/rules.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

const char *const hw_rule_names[HW_RULES] = {
    [HW_RULE_WRAPPER] = "wrapper", [HW_RULE_HIDE] = "hide", [HW_RULE_IGNORE] = "ignore", [HW_RULE_FOCUS] = "focus"};

struct hw_rule_pattern {
    enum hw_rule rule;
    char *text;
    regex_t regex;
};

bool hw_rules_add(struct hw_rules *rules, enum hw_rule rule, const char *pattern, struct hw_error *error)
{
    char why[128];
    if (!*pattern) { /* it would match everything */
        hw_error_set(error, "a pattern is missing");
        return false;
    }
    if (!HW_GROW(rules->pattern, rules->room, rules->count + 1)) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    struct hw_rule_pattern *made = &rules->pattern[rules->count];
    *made = (struct hw_rule_pattern){.rule = rule};
    const int wrong = regcomp(&made->regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (wrong) {
        regerror(wrong, &made->regex, why, sizeof why);
        hw_error_set(error, "'%s' is no regular expression: %s", pattern, why);
        return false;
    }
    made->text = strdup(pattern);
    if (!made->text) {
        regfree(&made->regex);
        hw_error_set(error, "not enough memory");
        return false;
    }
    rules->count++;
    rules->of[rule]++;
    return true;
}

/* Takes one line, without its newline. */
static bool add_line(struct hw_rules *rules, char *line, struct hw_error *error)
{
    static const char blank[] = " \t\r\f\v";
    line += strspn(line, blank);
    if (!*line || *line == '#')
        return true;
    const size_t size = strcspn(line, blank);
    char *pattern = line + size + strspn(line + size, blank);
    for (size_t end = strlen(pattern); end && strchr(blank, pattern[end - 1]);)
        pattern[--end] = '\0';
    for (int rule = 0; rule < HW_RULES; rule++)
        if (strlen(hw_rule_names[rule]) == size && !strncmp(hw_rule_names[rule], line, size)) {
            if (!*pattern)
                hw_error_set(error, "%s needs a pattern", hw_rule_names[rule]);
            return *pattern && hw_rules_add(rules, (enum hw_rule)rule, pattern, error);
        }
    hw_error_set(error, "'%.*s' is no rule (wrapper, hide, ignore, focus)", (int)(size < 200 ? size : 200), line);
    return false;
}

bool hw_rules_read(struct hw_rules *rules, const char *path, struct hw_error *error)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0, number = 0;
    struct hw_error inner = {""};
    bool fine = file != NULL;
    errno = fine ? 0 : errno;
    for (ssize_t size; fine && (size = getline(&line, &room, file)) >= 0;) {
        number++;
        if (size && line[size - 1] == '\n')
            line[--size] = '\0';
        if (strlen(line) != (size_t)size) {
            fine = false;
            hw_error_set(&inner, "the line has a zero byte");
        }
        fine = fine && add_line(rules, line, &inner);
        if (!fine)
            hw_error_set(error, "%s:%zu: %s", path, number, inner.message);
        errno = 0;
    }
    if (!file || (fine && ferror(file))) { /* getline fails for a directory */
        hw_error_set(error, "%s: %s", path, strerror(errno ? errno : EIO));
        fine = false;
    }
    if (file)
        fclose(file);
    free(line);
    if (fine)
        rules->file = path;
    return fine;
}

bool hw_rules_match(const struct hw_rules *rules, enum hw_rule rule, const char *name)
{
    for (size_t i = 0; rules && rules->of[rule] && i < rules->count; i++)
        if (rules->pattern[i].rule == rule && !regexec(&rules->pattern[i].regex, name, 0, NULL, 0))
            return true;
    return false;
}

const char *hw_rules_text(const struct hw_rules *rules, enum hw_rule rule, size_t index)
{
    for (size_t i = 0; rules && i < rules->count; i++)
        if (rules->pattern[i].rule == rule && !index--)
            return rules->pattern[i].text;
    return NULL;
}

void hw_rules_free(struct hw_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        regfree(&rules->pattern[i].regex);
        free(rules->pattern[i].text);
    }
    free(rules->pattern);
    *rules = (struct hw_rules){0};
}
