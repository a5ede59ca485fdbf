/* rules.h - what a user says about functions: which are wrappers, which frames and contexts are not shown.
 *
 * Patterns are extended regular expressions of POSIX. They match somewhere in the name of a function as reports show
 * it; of code without a name in "module+0xoffset". */
#ifndef HW_REPORT_VIEW_RULES_H
#define HW_REPORT_VIEW_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum hw_rule {
    HW_RULE_WRAPPER, /* the function is an allocation wrapper */
    HW_RULE_HIDE,    /* its frames are taken out of stacks */
    HW_RULE_IGNORE,  /* contexts whose stacks have it are left out */
    HW_RULE_FOCUS,   /* so are all others: with several patterns one is enough */
    HW_RULES
};

/* "wrapper", …: as files of rules and options have them. */
extern const char *const hw_rule_names[HW_RULES];

/* Zero-initialise; free with hw_rules_free. */
struct hw_rules {
    struct hw_rule_pattern *pattern;
    size_t count, room;
    size_t of[HW_RULES]; /* how many of each kind */
    const char *file;    /* the file that some are of; or NULL */
};

/* False with ERROR when PATTERN is no regular expression, or there is no memory. */
bool hw_rules_add(struct hw_rules *rules, enum hw_rule rule, const char *pattern, struct hw_error *error);

/* Adds the rules of the file PATH, which must outlive RULES: lines of "KIND PATTERN"; empty ones, and those that begin
 * with '#', say nothing. False with ERROR, which names file and line. */
bool hw_rules_read(struct hw_rules *rules, const char *path, struct hw_error *error);

/* Whether NAME matches one of the patterns of that kind. RULES may be NULL. */
bool hw_rules_match(const struct hw_rules *rules, enum hw_rule rule, const char *name);

/* The patterns of a kind, one after the other from INDEX 0 on; NULL after the last one. */
const char *hw_rules_text(const struct hw_rules *rules, enum hw_rule rule, size_t index);

void hw_rules_free(struct hw_rules *rules);

#endif
