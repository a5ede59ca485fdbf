/* labels.h - what call stacks of a running process are called: the names that the report would give them.
 *
 * Names are sought in binaries, which may take seconds: a request has a copy of what it needs, so that another thread
 * can answer it while the profile is read on. */
#ifndef HW_TOP_LABELS_H
#define HW_TOP_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/live.h"
#include "report/view/view.h"

#define HW_LABEL_FILTER 128 /* bytes, with the one at the end */

/* Clean text for the terminal; "" where nothing is known. */
struct hw_label {
    char *function; /* that names the stack, or module + offset */
    char *place;    /* "ltable.c:554" or the module */
    char *caller;   /* the function that calls it */
    char *stack;    /* all frames, a line each; only if it was asked for */
    bool left_out;  /* by the rules "ignore" and "focus" */
    bool filtered, matches; /* whether MATCHES is known of the filter, and whether a frame has its text */
};

struct hw_label_request {
    uint32_t *contexts; /* as asked for */
    size_t count;
    struct hw_label *labels; /* the answers; NULL: none yet, or no memory */
    unsigned columns;        /* that function and place may take, and lines of the stack */
    bool stacks, utf8;
    char filter[HW_LABEL_FILTER]; /* sought in all frames; "": nothing is */
    const struct hw_symbolised *symbolised; /* names that the file of an ended process has itself; or NULL */
    /* private: the part of the profile that has these contexts */
    struct hw_profile_context *copied;
    struct hw_context_entry *entries;
    struct hw_stack_node *nodes;
    struct hw_map_entry *maps;
    char *strings;
    size_t node_count, map_count, string_size;
};

/* NULL when there is no memory. CONTEXTS are numbers below live->context_count. */
struct hw_label_request *hw_label_request_new(const struct hw_live *live, const uint32_t *contexts, size_t count);
/* Fills in `labels`. False with ERROR when there is no memory. OPTIONS: rules and where binaries are. */
bool hw_label_request_answer(struct hw_label_request *request, const struct hw_view_options *options,
                             struct hw_error *error);
void hw_label_request_free(struct hw_label_request *request);
void hw_label_clear(struct hw_label *label);

#endif
