/* json.h - what the files of the JSON report share. */
#ifndef HW_REPORT_JSON_JSON_H
#define HW_REPORT_JSON_JSON_H

#include <jansson.h>
#include <math.h>

#include "analysis/analysis.h"
#include "report/buffer.h"
#include "report/report.h"
#include "report/view/numbers.h"

/* A report being printed. */
struct json_writer {
    const struct hw_view *view;
    const struct hw_report_options *options;
    const struct hw_analysis *analysis;
    FILE *stream;
    bool sampled;
    bool failed;              /* no memory */
    struct hw_buffer *stacks; /* by location: its frames as JSON, made when first needed */
    struct hw_buffer text;    /* foreign text made valid */
};

/* ---- values: trouble is noted in writer->failed ---- */

static inline void set(struct json_writer *writer, json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_set_new(object, key, value))
        writer->failed = true;
}

/* JSON's integers end there. */
static inline json_int_t clamped(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

static inline void set_count(struct json_writer *writer, json_t *object, const char *key, uint64_t value)
{
    set(writer, object, key, json_integer(clamped(value)));
}

/* Null where it is not KNOWN. */
static inline void set_known(struct json_writer *writer, json_t *object, const char *key, bool known, uint64_t value)
{
    set(writer, object, key, known ? json_integer(clamped(value)) : json_null());
}

static inline void set_signed(struct json_writer *writer, json_t *object, const char *key, int64_t value)
{
    set(writer, object, key, json_integer(value));
}

/* Null for 0, which stands for what is not known. */
static inline void set_nonzero(struct json_writer *writer, json_t *object, const char *key, uint64_t value)
{
    set_known(writer, object, key, value, value);
}

/* Null for NAN. */
static inline void set_number(struct json_writer *writer, json_t *object, const char *key, double value)
{
    set(writer, object, key, isnan(value) ? json_null() : json_real(value));
}

static inline void append(struct json_writer *writer, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        writer->failed = true;
}

static inline void set_ratio(struct json_writer *writer, json_t *object, const char *key, uint64_t sum, uint64_t count)
{
    set(writer, object, key, count ? json_real((double)sum / (double)count) : json_null());
}

static inline json_t *text_value(struct json_writer *writer, const char *text)
{
    if (!text)
        return json_null();
    hw_buffer_clear(&writer->text);
    hw_buffer_clean(&writer->text, text, HW_CLEAN_JSON);
    return json_string(hw_buffer_text(&writer->text));
}

static inline void set_text(struct json_writer *writer, json_t *object, const char *key, const char *text)
{
    set(writer, object, key, text_value(writer, text));
}

/* NULL for text that is empty when it is not known. */
static inline const char *known(const char *text)
{
    return text && *text ? text : NULL;
}

static inline void set_advice(struct json_writer *writer, json_t *object, const struct hw_advice *advice)
{
    set_text(writer, object, "title", hw_buffer_text(&advice->title));
    set_text(writer, object, "why", hw_buffer_text(&advice->why));
    set_text(writer, object, "what_to_do", hw_buffer_text(&advice->what));
    set_text(writer, object, "expected_gain", known(hw_buffer_text(&advice->gain)));
}

/* ---- output ---- */

#define JSON_STYLE (JSON_COMPACT | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY)

/* Prints VALUE and lets go of it. */
static inline void print_value(struct json_writer *writer, json_t *value)
{
    if (!value || (json_dumpf(value, writer->stream, JSON_STYLE) && !ferror(writer->stream)))
        writer->failed = true;
    json_decref(value);
}

static inline void print_key(struct json_writer *writer, const char *key)
{
    fprintf(writer->stream, ",\n\"%s\":", key);
}

/* ---- json.c ---- */

/* False when there is no memory. */
bool hw_json_writer_begin(struct json_writer *writer, const struct hw_view *view,
                          const struct hw_report_options *options, FILE *stream);
/* Frees what the writer has, whether or not it could begin. False when there was no memory at any time. */
bool hw_json_writer_end(struct json_writer *writer);

/* json_threads.c: the number of the frame that names LEAF's stack; STACK is scratch. */
unsigned hw_json_headline(struct json_writer *writer, uint32_t leaf, struct hw_view_stack *stack);

/* json_memory.c: prints "memory_parts", "memory", "ledger_over_time", "ledger" and "mappings": what RSS is made of. */
void hw_json_memory(struct json_writer *writer);

/* json_contents.c: what blocks hold; null where it was not recorded. */
json_t *hw_json_contents(struct json_writer *writer);
json_t *hw_json_content_search(struct json_writer *writer);

/* json_pinned.c: what keeps pages resident; null where it was not recorded. */
/* json_types.c */
void hw_json_types(struct json_writer *writer);
void hw_json_set_type(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum);

void hw_json_pinned(struct json_writer *writer, json_t **pinned, json_t **pages);

/* json_perf.c: prints "perf", null where nothing was imported. */
void hw_json_perf(struct json_writer *writer);

/* json_keeps.c: who keeps blocks; null where it was not recorded. */
json_t *hw_json_keeps(struct json_writer *writer);

/* Adds the numbers of a context that stand in that object (profile/numbers.def), null where they are not known. */
void hw_json_numbers(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum,
                     enum hw_number_group group);
/* Prints the member "stack", without a comma. LEAF: node of the view. */
void hw_json_stack(struct json_writer *writer, uint32_t leaf);
/* Prints OBJECT, and lets go of it, as an element of an array with the "stack" of LEAF as its first member. */
void hw_json_with_stack(struct json_writer *writer, json_t *object, uint32_t leaf, bool first);
/* Frame INDEX of the location's inline chain. */
json_t *hw_json_frame(struct json_writer *writer, const struct hw_view_location *location, uint32_t index);

/* ---- json_access.c: counted accesses ---- */

/* How accesses were counted. */
json_t *hw_json_access_info(struct json_writer *writer);
/* Members of "totals". */
void hw_json_total_accesses(struct json_writer *writer, json_t *object);
/* Members of a context. */
/* json_words.c */
json_t *hw_json_words(struct json_writer *writer, const struct hw_profile_words *runs, size_t count);
json_t *hw_json_sampler(struct json_writer *writer);
/* json_access.c */
void hw_json_accesses(struct json_writer *writer, json_t *object, const struct hw_view_context *context);
/* Prints the member "globals"; nothing where accesses were not counted. */
void hw_json_globals(struct json_writer *writer);
/* A member of it. */
json_t *hw_json_global(struct json_writer *writer, const struct hw_view_global *global);

/* ---- json_samples.c: sampled accesses ---- */

/* Adds "accesses" to the member "sampled" of a context, which is made when it is not there. */
void hw_json_context_samples(struct json_writer *writer, json_t *object, const struct hw_view_context *context);
/* Prints the member "sampled"; nothing where accesses were not sampled. */
void hw_json_samples(struct json_writer *writer);

/* ---- json_distributions.c: members "size_distribution" and "lifetime_distribution" ---- */

void hw_json_sizes(struct json_writer *writer);
void hw_json_lifetimes(struct json_writer *writer);
/* Those of a context, into OBJECT; nothing where it has one size, and one bar of lifetimes. */
void hw_json_context_distributions(struct json_writer *writer, json_t *object, size_t context);

/* ---- json_groups.c: prints the member "groups" ---- */

void hw_json_groups(struct json_writer *writer);
/* What a group is, with its sums, by keys that are those of frames and contexts. */
json_t *hw_json_group(struct json_writer *writer, enum hw_by by, const struct hw_group *group);

/* ---- json_allocator.c: member "allocator"; nothing where it was not observed ---- */

void hw_json_allocator(struct json_writer *writer);

/* json_places.c: members of "allocator": what it makes of its memory. */
void hw_json_places(struct json_writer *writer, json_t *object);
/* json_verdict.c: the member "verdict" of "allocator". */
json_t *hw_json_verdict(struct json_writer *writer);

/* json_allocator_facts.c: members of "allocator", OBJECT: how it works, what others would do. */
void hw_json_allocator_facts(struct json_writer *writer, json_t *object);
/* ---- json_threads.c: which threads there were ---- */

void hw_json_threads(struct json_writer *writer);
/* What each thread did in a context, if that is known and there are several. */
void hw_json_by_thread(struct json_writer *writer, json_t *object, const struct hw_profile_context *sum);

/* ---- json_sides.c: who uses lines that threads share ---- */

/* What threads do in the shared lines of a context's blocks; SHARING 0: in all of them. Empty when nothing is known. */
json_t *hw_json_sides(struct json_writer *writer, size_t context, enum hw_side_sharing sharing);

/* ---- json_inside.c: what was seen inside operations; only where the allocator was observed ---- */

/* Members "syscalls", "futex" and "locks" of "allocator". */
void hw_json_inside(struct json_writer *writer, json_t *object);
/* Member "events" of an operation; nothing where there was no sample. */
void hw_json_events(struct json_writer *writer, json_t *object, const struct hw_profile_events *events);

/* ---- json_fields.c: members "fields" and "findings"; nothing where neither was looked for ---- */

void hw_json_fields(struct json_writer *writer);
void hw_json_findings(struct json_writer *writer);

#endif
