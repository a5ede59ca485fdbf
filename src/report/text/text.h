/* text.h - what the files of the text report share. */
#ifndef HW_REPORT_TEXT_TEXT_H
#define HW_REPORT_TEXT_TEXT_H

#include "analysis/analysis.h"
#include "report/page/page.h"
#include "report/view/call_paths.h"
#include "report/report.h"
#include "report/text/stack_fold.h"

/* A report being printed. */
struct hw_text {
    const struct hw_view *view;
    const struct hw_report_options *options;
    const struct hw_analysis *analysis;
    struct hw_page page;
    struct hw_places places;                     /* what the lists are made of */
    struct hw_view_stack stack;                  /* the current stack */
    struct hw_fold fold;                         /* its folded form */
    bool summed;                                 /* it stands for others that recurse otherwise */
    struct hw_buffer line, name, place, cleaned; /* scratch: never kept over a call */
    uint16_t *shown;   /* by place: rank in the list that showed its stack, 0 while none did */
    uint8_t *shown_in; /* by place: enum hw_sort_key of that list */
    bool failed;       /* no memory */
};

/* text_stack.c */

/* A report of VIEW to be printed to STREAM; lists need more. */
struct hw_text hw_text_begin(const struct hw_view *view, const struct hw_report_options *options, FILE *stream);
/* Frees what hw_text_begin and the functions of text_stack.c made. False when there was no memory at any time. */
bool hw_text_done(struct hw_text *text);

/* The frame's function, or module+offset; at most COLUMNS wide unless 0. In text->name. */
const char *hw_text_function(struct hw_text *text, const struct hw_view_frame *frame, size_t columns);

/* "ltable.c:554", else the module when the function says nothing of it, else "". In text->place. */
const char *hw_text_place(struct hw_text *text, const struct hw_view_frame *frame);

/* Prints the function and its place on ROOM columns: the name is cut, never the place. Returns the columns used;
 * *PLACED is false when the place did not fit, it is in text->place then. */
size_t hw_text_named(struct hw_text *text, const struct hw_view_frame *frame, size_t room, bool *placed);

/* Loads the stack at LEAF into text->stack and text->fold; false when it is empty or there is no memory. */
bool hw_text_load(struct hw_text *text, uint32_t leaf);

/* Prints the loaded stack, one line a frame. */
void hw_text_stack(struct hw_text *text);

/* text.c: parts of the report by their bits, in the order of the whole. */
void hw_text_sections(struct hw_text *text, uint64_t sections);
void hw_text_not_observed(struct hw_text *text);

/* text_brief.c: what matters most of SECTIONS, which are those with content. */
void hw_text_brief(struct hw_text *text, uint64_t sections);

/* text_symbols.c: at the top, which modules that matter have no debug information, and what brings it. */
void hw_text_missing_symbols(struct hw_text *text);

/* text_contexts.c: lists of contexts. */
void hw_text_list(struct hw_text *text, enum hw_sort_key key);

/* text_functions.c: tables with one line a function. */
void hw_text_functions(struct hw_text *text);
void hw_text_accesses(struct hw_text *text);

/* text_distributions.c: sizes and lifetimes as distributions, of all contexts; and those of one as facts, each with its
 * newline, where there are several. */
void hw_text_sizes(struct hw_text *text);
void hw_text_lifetimes(struct hw_text *text);
void hw_text_distribution_facts(struct hw_text *text, size_t context, struct hw_buffer *facts);

/* text_access.c: what was counted in blocks and globals. */

/* The heading of a list by a key from HW_SORT_FIRST_OF_ACCESS on. */
void hw_text_access_title(const struct hw_text *text, enum hw_sort_key key, struct hw_buffer *out);
/* Facts of one context, each with its newline. */
void hw_text_access_facts(struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts);
/* What all blocks together have, as a paragraph. */
/* How much of what a list says of unused blocks was allocated by code that is not counted, if any. */
void hw_text_uncounted(struct hw_text *text, enum hw_sort_key key);
void hw_text_access_totals(struct hw_text *text);
void hw_text_globals(struct hw_text *text);
/* Accesses per byte, the mean of a context's blocks; "<0.01" where it was rounded to 0. */
double hw_text_per_byte(const struct hw_profile_access *access);
/* Says that accesses were not counted. */
void hw_text_not_counted(struct hw_text *text);
/* Bytes of a granule; 64 when the file has lost it. */
unsigned hw_text_granule(const struct hw_view *view);
/* "1,204,221 accesses (71.2 % reads)"; "at least …" where counts are lower bounds. NOUN: "access", or "" to leave it
 * out. */
void hw_text_add_accesses(struct hw_buffer *out, uint64_t reads, uint64_t writes, uint64_t unsplit, const char *noun,
                          bool lower_bound);

/* text_findings.c: what to do. */
void hw_text_findings(struct hw_text *text);
/* All but the title; what is gained alone. */
void hw_text_gain(struct hw_text *text, const struct hw_advice *advice);
void hw_text_advice(struct hw_text *text, const struct hw_advice *advice);

/* text_words.c: which words of a context's blocks are used how often; nothing where words were not distinguished. */
void hw_text_words(struct hw_text *text, const struct hw_view_context *context);

/* text_sides.c: under a finding on shared lines, who uses them. */
void hw_text_sides(struct hw_text *text, const struct hw_finding *finding);

/* text_threads.c: threads, by name and start function. */
void hw_text_threads(struct hw_text *text);
void hw_text_threads_brief(struct hw_text *text);
bool hw_text_threads_matter(const struct hw_view *view);
/* "worker-3, run" or "worker-*, run (300 threads)", into OUT. THREADS: how many it stands for. */
void hw_text_thread_name(struct hw_text *text, const struct hw_view_thread *thread, uint64_t threads,
                         enum hw_thread_names names, size_t columns, struct hw_buffer *out);

/* text_fields.c: structs as they lie in cache lines. */
void hw_text_fields(struct hw_text *text);

/* text_samples.c: sampled accesses. */
void hw_text_samples(struct hw_text *text);

/* text_allocator.c: the allocator itself. */
void hw_text_allocator(struct hw_text *text);

/* text_verdict.c: is it the allocator? */
void hw_text_verdict(struct hw_text *text);

/* text_allocator_facts.c: how the allocator works, what others would do. */
void hw_text_allocator_facts(struct hw_text *text);
/* text_inside.c: what was seen inside it. */
void hw_text_inside(struct hw_text *text);

/* text_heap.c: what the allocator makes of its memory. */
void hw_text_heap(struct hw_text *text);

/* text_leaks.c: what the program could still reach. */
void hw_text_leaks(struct hw_text *text);

/* text_contents.c: what is in the blocks. */
void hw_text_contents(struct hw_text *text);
/* text_perf.c: samples of perf. */
void hw_text_perf(struct hw_text *text);

/* text_pinned.c: what keeps pages resident. */
void hw_text_pinned(struct hw_text *text);

/* text_keeps.c: who keeps what it can reach. */
void hw_text_keeps(struct hw_text *text);

/* text_memory.c: heap beside resident memory. */
void hw_text_memory(struct hw_text *text);
void hw_text_timeline(struct hw_text *text);

/* What is shown of the profile, where that is not all of it (words/selection.h), behind LABEL. */
void hw_text_selection(struct hw_text *text, const char *label);

/* text_regions.c: what the program measured and named itself. */
void hw_text_regions(struct hw_text *text);

/* text_groups.c: sums instead of sections (struct hw_sums); TITLE prints what stands above them. False with ERROR when
 * the profile does not have them, before anything is printed. */
/* text_types.c */
void hw_text_types(struct hw_text *text);
/* What the blocks are, if that is known. */
void hw_text_type_fact(struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts);

bool hw_text_sums(struct hw_text *text, void (*title)(struct hw_text *), struct hw_error *error);
/* The name of a group, about COLUMNS wide: valid until the next call of these functions. */
const char *hw_text_group(struct hw_text *text, enum hw_by by, const struct hw_group *group, size_t columns);
/* A value of the measure, into BUFFER (HW_HUMAN bytes). */
const char *hw_text_measure(enum hw_measure_id measure, uint64_t value, bool utf8, char *buffer);
/* A frame of a location. */
struct hw_view_frame hw_text_frame(const struct hw_view *view, uint32_t location, uint32_t frame);

/* text_tree.c: the tree of calls. False when there is no memory. */
bool hw_text_tree(struct hw_text *text, enum hw_measure_id measure, void (*title)(struct hw_text *));

/* text_source.c: the source of a function with its sums. False with ERROR: no memory, or no such function. */
bool hw_text_source(struct hw_text *text, enum hw_measure_id measure, void (*title)(struct hw_text *),
                    struct hw_error *error);

/* How many entries a list shows: --top, or what is usual. */
static inline size_t hw_text_top(const struct hw_text *text)
{
    return text->options->top ? text->options->top : text->options->brief ? 5 : 10;
}

/* What the moment is called at which the profile ends: "at exit", "now", "at the end". */
const char *hw_text_end(const struct hw_profile *profile);
/* Prints one of hw_not_searched and the like, as a paragraph. */
void hw_text_sentence(struct hw_text *text, const char *sentence);

#endif
