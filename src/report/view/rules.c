/* rules.c - see rules.h. */
#include "report/view/rules.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

#define FILE_MOST   ((size_t)1 << 20) /* bytes of a file of rules */
#define RULES_MOST  1000
#define PARTS_MOST  2000 /* of a regular expression; the C library needs memory for their square */
#define NESTED_MOST 100
#define SHOWN       100 /* characters of a pattern in messages */

const char *const hw_rule_names[HW_RULES] = {
    [HW_RULE_WRAPPER] = "wrapper", [HW_RULE_HIDE] = "hide", [HW_RULE_IGNORE] = "ignore", [HW_RULE_FOCUS] = "focus"};

struct hw_rule_pattern {
    enum hw_rule rule;
    char *text;
    regex_t regex;
};

/* ---- patterns that would take all memory or time ---- */

struct scan {
    const char *at;
    unsigned nested;
    bool refers_back;
};

/* Behind a bracket expression, whose '[' was read. */
static void skip_bracket(struct scan *scan)
{
    scan->at += *scan->at == '^';
    scan->at += *scan->at == ']';
    while (*scan->at && *scan->at != ']') {
        const char kind = scan->at[0] == '[' ? scan->at[1] : '\0';
        scan->at++;
        if (kind != ':' && kind != '.' && kind != '=')
            continue;
        for (scan->at++; *scan->at && (scan->at[0] != kind || scan->at[1] != ']');)
            scan->at++;
        scan->at += *scan->at ? 2 : 0;
    }
    scan->at += *scan->at != '\0';
}

/* The greatest number of an interval "{2,5}", whose '{' was read; 1: of none. */
static size_t interval(struct scan *scan)
{
    size_t most = 1;
    while (isdigit((unsigned char)*scan->at) || *scan->at == ',') {
        size_t number = 0;
        for (; isdigit((unsigned char)*scan->at); scan->at++)
            number = number < PARTS_MOST ? 10 * number + (size_t)(*scan->at - '0') : number;
        most = number > most ? number : most;
        scan->at += *scan->at == ',';
    }
    scan->at += *scan->at == '}';
    return most;
}

/* How many parts an expression has up to its end or to ')', with repetitions written out as regcomp does. The number is
 * exact up to PARTS_MOST. */
static size_t parts(struct scan *scan)
{
    size_t before = 0, last = 0; /* of the last part with its repetitions, and of all before */
    while (*scan->at && *scan->at != ')' && before + last <= PARTS_MOST) {
        const char c = *scan->at++;
        if (c == '{' || c == '+') {
            last *= c == '+' ? 2 : interval(scan);
            continue;
        }
        before += last;
        last = 1;
        if (c == '\\') {
            scan->refers_back |= *scan->at >= '1' && *scan->at <= '9';
            scan->at += *scan->at != '\0';
        } else if (c == '[') {
            skip_bracket(scan);
        } else if (c == '(') {
            last = ++scan->nested > NESTED_MOST ? PARTS_MOST + 1 : 1 + parts(scan);
            scan->nested--;
            scan->at += *scan->at == ')';
        }
    }
    return before + last;
}

/* Why PATTERN is refused before it is compiled, or NULL. Matching with back references takes exponential time. */
static const char *unfit(const char *pattern)
{
    struct scan scan = {.at = pattern};
    while (*scan.at) {
        if (parts(&scan) > PARTS_MOST)
            return "it is too large, or repeats too much";
        scan.at += *scan.at == ')'; /* opened nowhere */
    }
    return scan.refers_back ? "back references are not supported" : NULL;
}

/* ---- rules ---- */

bool hw_rules_add(struct hw_rules *rules, enum hw_rule rule, const char *pattern, struct hw_error *error)
{
    char why[128];
    if (!*pattern) { /* it would match everything */
        hw_error_set(error, "a pattern is missing");
        return false;
    }
    const char *problem = unfit(pattern);
    if (rules->count >= RULES_MOST) {
        hw_error_set(error, "there are more than %d rules", RULES_MOST);
        return false;
    }
    if (!problem && !HW_GROW(rules->pattern, rules->room, rules->count + 1)) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    struct hw_rule_pattern *made = problem ? NULL : &rules->pattern[rules->count];
    if (made) {
        *made = (struct hw_rule_pattern){.rule = rule};
        const int wrong = regcomp(&made->regex, pattern, REG_EXTENDED | REG_NOSUB);
        if (wrong) {
            regerror(wrong, &made->regex, why, sizeof why);
            problem = why;
        }
    }
    if (problem) {
        hw_error_set(error, "invalid regular expression '%.*s%s': %s", SHOWN, pattern,
                     strlen(pattern) > SHOWN ? "..." : "", problem);
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
    hw_error_set(error, "unknown rule '%.*s%s' (known: wrapper, hide, ignore, focus)",
                 (int)(size < SHOWN ? size : SHOWN), line, size > SHOWN ? "..." : "");
    return false;
}

/* Reads all of PATH into TEXT, with a zero at its end, to be freed. False with ERROR. */
static bool read_file(const char *path, char **text, size_t *size, struct hw_error *error)
{
    FILE *file = fopen(path, "re");
    int problem = file ? 0 : errno;
    *text = malloc(FILE_MOST + 2);
    *size = 0;
    if (!*text)
        problem = ENOMEM;
    if (!problem) {
        *size = fread(*text, 1, FILE_MOST + 1, file);
        problem = ferror(file) ? errno : 0; /* it fails for a directory */
        (*text)[*size] = '\0';
    }
    if (file)
        fclose(file);
    if (problem)
        hw_error_set(error, "%s: %s", path, strerror(problem));
    else if (*size > FILE_MOST)
        hw_error_set(error, "%s: this is no file of rules: it is larger than 1 MiB", path);
    return !problem && *size <= FILE_MOST;
}

bool hw_rules_read(struct hw_rules *rules, const char *path, struct hw_error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors begin UTF-8 with it */
    struct hw_error inner = {""};
    char *text, *line, *next;
    size_t size, number = 0;
    bool fine = read_file(path, &text, &size, error);
    line = fine && !strncmp(text, mark, sizeof mark - 1) ? text + sizeof mark - 1 : text;
    for (; fine && line < text + size; line = next) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        end = end ? end : text + size;
        next = end + 1;
        *end = '\0';
        number++;
        if (strlen(line) != (size_t)(end - line)) {
            fine = false;
            hw_error_set(&inner, "the line has a zero byte");
        }
        fine = fine && add_line(rules, line, &inner);
        if (!fine)
            hw_error_set(error, "%s:%zu: %s", path, number, inner.message);
    }
    free(text);
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
