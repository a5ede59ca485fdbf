/* finding_words.c - findings as sentences: what was seen, what to do, what it gains. Text and JSON say the same. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/view/analyse.h"
#include "report/view/contents.h"
#include "report/view/pins.h"
#include "report/text/human.h"

struct words {
    const struct hw_view *view;
    const struct hw_analysis *analysis;
    const struct hw_finding *finding;
    const struct hw_struct_analysis *of; /* NULL: the finding is of blocks */
    enum hw_clean clean;
    struct hw_advice *out;
};

void hw_add_struct_name(struct hw_buffer *out, const struct hw_profile_struct *structure, enum hw_clean clean)
{
    if (!*structure->name) {
        hw_buffer_add(out, "a struct without a name");
        return;
    }
    if (!(structure->flags & (HW_STRUCT_CPLUSPLUS | HW_STRUCT_NO_NAMES)) && !strchr(structure->name, ' '))
        hw_buffer_add(out, "%s ", structure->flags & HW_STRUCT_UNION ? "union" : "struct");
    hw_buffer_clean(out, structure->name, clean);
}

const char *hw_layout_reason(enum hw_layout_verdict verdict)
{
    static const char *const reasons[] = {
        [HW_LAYOUT_NO_FIELDS] = "its members are not known",
        [HW_LAYOUT_NO_NAMES] = "it was compiled without debugging information",
        [HW_LAYOUT_UNION] = "it is a union",
        [HW_LAYOUT_PACKED] = "it is packed",
        [HW_LAYOUT_WHOLE] = "its bytes are compared, read or written as a whole: others may rely on the order",
        [HW_LAYOUT_ABI] = "it is marked HEAPWISE_ABI",
        [HW_LAYOUT_PART] = "it is part of other types, whose layout would change, too",
        [HW_LAYOUT_OUTSIDE] = "pointers to it go to functions of modules that do not count, which may use it unseen",
        [HW_LAYOUT_UNEXPLAINED] = "attributes that are not in the debugging information place its members",
        [HW_LAYOUT_ONE] = "it has no two members that could change places",
        [HW_LAYOUT_COMPILER] = "the compiler chooses the order of members in Rust, unless repr(C) says otherwise",
    };
    return verdict == HW_LAYOUT_FREE ? NULL : reasons[verdict];
}

/* ---- parts of sentences ---- */

/* "key, next and 3 more": MOST names. */
static void add_fields(const struct words *words, struct hw_buffer *out, const uint32_t *fields, size_t count,
                       size_t most)
{
    for (size_t i = 0; i < count && i < most; i++) {
        hw_buffer_add(out, "%s", !i ? "" : i + 1 == count ? " and " : ", ");
        hw_buffer_clean(out, words->of->units.fields[fields[i]].name, words->clean);
    }
    if (count > most)
        hw_buffer_add(out, " and %zu more", count - most);
}

static bool about_lines(const struct hw_finding *finding)
{
    return finding->kind == HW_FINDING_LAYOUT || finding->kind == HW_FINDING_ASTRIDE;
}

/* A finding about a struct whose accesses were sampled. */
static bool is_sampled(const struct words *words)
{
    return words->of && words->analysis->input.fields->sampled;
}

static void add_objects(const struct words *words, struct hw_buffer *out)
{
    const struct hw_objects *objects = &words->of->objects;
    if (objects->placement == HW_PLACE_UNKNOWN)
        hw_buffer_add(out, "The number of objects is not known: if all fit into %s they cost nothing. ",
                      HW_BYTES(HW_CACHE_BYTES));
    else
        hw_buffer_add(out, "%s at once, %s%s. ", HW_OF(objects->live, "object"),
                      objects->placement == HW_PLACE_ARRAY ? "in arrays" : "a block each",
                      objects->by_size ? " (blocks of unknown type, matched by size)" : "");
    if (objects->placement == HW_PLACE_SINGLE && objects->usual_start < HW_LINE)
        hw_buffer_add(out, "In this run they begin %u bytes into a line; the numbers hold for that. ",
                      objects->usual_start);
    if (objects->starts_assumed && about_lines(words->finding))
        hw_buffer_add(out,
                      "Where in a line they begin was not counted (heapwise cc --fields without --granule does): the "
                      "numbers are means over all possible places, which are assumed to be equally likely. %s",
                      words->finding->may_lie_well ? "The program's blocks may already lie well; then nothing can be "
                                                     "gained. "
                                                   : "");
}

static void add_gain(const struct words *words)
{
    struct hw_buffer *out = &words->out->gain;
    const struct hw_finding *finding = words->finding;
    const bool shared = finding->kind == HW_FINDING_FALSE_SHARING || finding->kind == HW_FINDING_SHARED_WRITES;
    const bool periods = words->analysis->input.periods;
    if (shared && !finding->samples && (periods || finding->hot))
        hw_buffer_add(out, "cache lines not passed between threads; how many is not known, %s",
                      periods ? "as periods are counted instead of accesses" : "as counts of a word end at 255");
    else if (is_sampled(words) && finding->lines >= 1)
        hw_buffer_add(out, "%s of the cache-line loads by its uses", HW_PERCENT(finding->lines, words->of->lines.missed));
    else if (finding->lines >= 1)
        hw_buffer_add(out, "%s%s %s (%s)%s",
                      shared    ? "at most "
                      : periods ? "at least "
                      : words->of && words->of->objects.starts_assumed && about_lines(finding)
                          ? "on average over those places "
                          : "",
                      HW_MANY(hw_count_of(finding->lines)), shared ? "cache lines" : "fewer cache-line loads",
                      HW_BYTES(hw_count_of(finding->lines * HW_LINE)), shared ? " not passed between threads" : "");
    if (finding->kind == HW_FINDING_LAYOUT && fabs(finding->lines_in_order / finding->lines - 1) > 0.05) {
        if (finding->lines_in_order < 1 && !is_sampled(words))
            hw_buffer_add(out, " (none if blocks are visited in the order in which they lie)");
        else if (is_sampled(words))
            hw_buffer_add(out, " (%s if blocks are visited in the order in which they lie)",
                          HW_PERCENT(fmax(finding->lines_in_order, 0), words->of->lines.missed_in_order));
        else
            hw_buffer_add(out, " (%s if blocks are visited in the order in which they lie)",
                          HW_MANY(hw_count_of(finding->lines_in_order)));
    }
    if (finding->bytes >= 1)
        hw_buffer_add(out, "%s%s of memory", finding->lines >= 1 ? "; " : "", HW_BYTES(hw_count_of(finding->bytes)));
}

/* The fields that most uses touch, and how many lines lie between the first and the last of them. */
static void add_hot_fields(const struct words *words, struct hw_buffer *out)
{
    const struct hw_visits *visits = &words->of->visits;
    uint32_t fields[8];
    const struct hw_visit *visit = &visits->visits[0];
    size_t count = 0;
    for (; count < visit->touch_count && count < 8; count++)
        fields[count] = visits->touches[visit->first_touch + count].field;
    hw_buffer_add(out, "%s of %s%s uses touch ", HW_PERCENT(visit->executions, visits->executions),
                  HW_MANY(hw_count_of(visits->executions)), is_sampled(words) ? " sampled" : "");
    add_fields(words, out, fields, visit->touch_count < 8 ? count : visit->touch_count, 5);
    hw_buffer_add(out, ". ");
}

/* ---- structs ---- */

static void say_layout(const struct words *words)
{
    const struct hw_struct_analysis *of = words->of;
    const struct hw_suggestion *suggestion = &of->suggestion;
    struct hw_buffer *why = &words->out->why, *what = &words->out->what;
    hw_buffer_add(&words->out->title, ": fields used together %s",
                  words->finding->may_lie_well ? "may lie apart" : "lie apart");
    hw_buffer_add(why, "A use brings in %s cache lines for %s bytes it needs. ", HW_RATIO(of->lines.per_use),
                  HW_RATIO(of->lines.bytes_needed));
    add_hot_fields(words, why);
    add_objects(words, why);
    if (suggestion->kind == HW_SUGGEST_SPLIT)
        hw_buffer_add(
            what, "Move seldom used fields to a struct of their own (%" PRIu64 " bytes stay): ", suggestion->hot.size);
    else
        hw_buffer_add(what, "Reorder its members: ");
    hw_buffer_add(what, "%s lines per use instead of %s.", HW_RATIO(suggestion->lines.per_use),
                  HW_RATIO(of->lines.per_use));
    if (suggestion->kind == HW_SUGGEST_SPLIT && of->structure->whole_reads)
        hw_buffer_add(what, " Code that copies the struct must copy that one as well.");
    if (suggestion->aligned_lines <= 0.9 * suggestion->lines.per_use)
        hw_buffer_add(what, " If they begin at lines as well (aligned_alloc(64, ...)): %s.",
                      HW_RATIO(suggestion->aligned_lines));
}

static void say_astride(const struct words *words)
{
    const struct hw_struct_analysis *of = words->of;
    struct hw_buffer *why = &words->out->why, *what = &words->out->what;
    const bool array = of->objects.placement == HW_PLACE_ARRAY;
    hw_buffer_add(&words->out->title, ": objects %s astride cache lines",
                  words->finding->may_lie_well ? "may lie" : "lie");
    hw_buffer_add(why,
                  "%" PRIu64 " bytes that begin anywhere in a line: %s lines per use, %s if each began at a line. ",
                  of->structure->size, HW_RATIO(of->lines.per_use), HW_RATIO(of->aligned_lines));
    add_objects(words, why);
    if (array)
        hw_buffer_add(what, "Make the size a multiple of 64 (alignas(64)) and allocate with aligned_alloc(64, ...), or "
                            "make it smaller.");
    else
        hw_buffer_add(what, "Allocate with aligned_alloc(64, ...), or from a pool of aligned blocks.");
}

static void say_padding(const struct words *words)
{
    const struct hw_struct_analysis *of = words->of;
    hw_buffer_add(&words->out->title, ": padding that another order saves");
    hw_buffer_add(&words->out->why, "%" PRIu64 " of %" PRIu64 " bytes are padding. ", of->padding, of->structure->size);
    add_objects(words, &words->out->why);
    hw_buffer_add(&words->out->what, "Reorder its members: %" PRIu64 " bytes instead of %" PRIu64 ".",
                  of->suggestion.hot.size, of->structure->size);
}

/* Others may use them unseen. */
static void add_unseen(const struct words *words, bool fields, struct hw_buffer *out)
{
    const struct hw_view_module *first;
    const size_t count = hw_view_uncounted_libraries(words->view, fields, &first);
    if (!count)
        return;
    hw_buffer_add(out, "Accesses to them by ");
    hw_buffer_clean(out, first->name, words->clean);
    hw_buffer_add(out, "%s are not counted. ", count > 1 ? " and others" : "");
}

static void say_unused(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const bool unread = finding->kind == HW_FINDING_UNREAD_FIELDS;
    struct hw_buffer *why = &words->out->why;
    uint64_t bytes = 0;
    for (size_t i = 0; i < finding->field_count; i++)
        if (!(words->of->units.fields[finding->fields[i]].flags & HW_FIELD_BITS))
            bytes += words->of->units.fields[finding->fields[i]].size;
    hw_buffer_add(&words->out->title, ": %s", unread ? "fields are written and never read" : "fields are never used");
    add_fields(words, why, finding->fields, finding->field_count, 6);
    hw_buffer_add(why, ": %" PRIu64 " of %" PRIu64 " bytes", bytes, words->of->structure->size);
    if (unread)
        hw_buffer_add(why, ", written %s times", HW_MANY(finding->writes));
    hw_buffer_add(why, ". ");
    add_objects(words, why);
    add_unseen(words, true, why);
    hw_buffer_add(&words->out->what, "Remove them, or move them to a separate struct for the objects that use them. "
                                     "Code that was not built with --fields may use them unseen.");
}

/* ---- blocks and variables ---- */

#define GLOBALS_NAMED 6

static void add_blocks(const struct words *words, struct hw_buffer *out)
{
    hw_buffer_add(out, "%s at once, %s each. ", HW_OF(words->finding->blocks, "block"),
                  HW_BYTES(words->finding->block_bytes));
}

static void say_sparse(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const unsigned granule = words->view->profile->access_info.granule;
    hw_buffer_add(&words->out->title, "Blocks are mostly untouched");
    hw_buffer_add(&words->out->why, "%s of the bytes, in granules of %u, are %s. ",
                  HW_PERCENT((double)finding->part, (double)finding->whole), granule ? granule : 64,
                  words->analysis->input.periods ? "used in no period" : "never touched");
    add_unseen(words, false, &words->out->why);
    add_blocks(words, &words->out->why);
    hw_buffer_add(&words->out->what, "Allocate less, or later: grow the blocks as they fill.");
}

static void say_unused_words(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    hw_buffer_add(&words->out->title, "Bytes of these blocks are never touched");
    hw_buffer_add(&words->out->why,
                  "%" PRIu64 " of %" PRIu64 " bytes of every block%s bytes %" PRIu64 " to %" PRIu64 ". ", finding->part,
                  finding->whole, finding->end_byte - finding->first_byte < finding->part ? ", among them" : ":",
                  finding->first_byte, finding->end_byte - 1);
    if (words->analysis->input.periods)
        hw_buffer_add(&words->out->why, "They are used in 0 of %s. ", HW_OF(finding->periods, "word period"));
    add_unseen(words, false, &words->out->why);
    add_blocks(words, &words->out->why);
    hw_buffer_add(&words->out->what, "Leave out what is not used, or allocate it separately when it is needed.");
}

static void say_header(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    hw_buffer_add(&words->out->title, "Only the headers of these blocks are hot");
    if (words->analysis->input.periods)
        hw_buffer_add(&words->out->why, "The first %" PRIu64 " bytes are used in %s of %s (%s). ", finding->end_byte,
                      HW_COUNT(finding->part), HW_OF(finding->whole, "word period"),
                      HW_PERCENT((double)finding->part, (double)finding->whole));
    else
        hw_buffer_add(&words->out->why, "The first %" PRIu64 " bytes get %s of the accesses. ", finding->end_byte,
                      HW_PERCENT((double)finding->part, (double)finding->whole));
    add_blocks(words, &words->out->why);
    hw_buffer_add(&words->out->what, "Keep the headers together in an array that points to the rest.");
}

/* "2 lines that counts, limits and 3 more global variables lie in are …". */
static void add_shared_globals(const struct words *words, struct hw_buffer *out)
{
    const struct hw_view *view = words->view;
    size_t named = 0, more = 0;
    hw_buffer_add(out, "%s of global variables %s written by one thread and used by another, in different words: ",
                  HW_OF(words->finding->part, "line"), words->finding->part == 1 ? "is" : "are");
    for (size_t i = 0; i < view->global_count; i++)
        for (uint32_t k = 0; view->globals[i].lines_hot && k < view->globals[i].symbol_count; k++) {
            if (named == GLOBALS_NAMED) {
                more++;
                continue;
            }
            hw_buffer_add(out, "%s", named++ ? ", " : "");
            hw_buffer_clean(out, view->globals[i].symbols[k].name, words->clean);
        }
    if (!named)
        hw_buffer_add(out, "variables whose names are not known");
    else if (more)
        hw_buffer_add(out, " and %s", HW_OF(more, "more"));
    hw_buffer_add(out, ". ");
}

static void say_sharing(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const bool fine = finding->kind == HW_FINDING_FALSE_SHARING;
    hw_buffer_add(&words->out->title, fine ? "False sharing between threads" : "Several threads write the same lines");
    if (finding->samples) {
        hw_buffer_add(
            &words->out->why,
            "%s of the sampled accesses to blocks (%s) fall on %s that one thread writes and another uses, in different "
            "words. ",
            HW_PERCENT((double)finding->samples, (double)finding->whole), HW_OF(finding->samples, "sample"),
            HW_OF(finding->part, "line"));
        add_blocks(words, &words->out->why);
        hw_buffer_add(&words->out->what, "Give what each thread writes a line of its own: alignas(64), or a block for "
                                         "each thread.");
        return;
    }
    if (!finding->context_count)
        add_shared_globals(words, &words->out->why);
    else
        hw_buffer_add(
            &words->out->why,
            fine ? "%s of %s that blocks lie in are written by one thread and used by another, in different words. "
                 : "%s of %s that were touched are written by several threads. ",
            HW_COUNT(finding->part), HW_OF(finding->whole, fine ? "line" : "64-byte granule"));
    if (finding->context_count && words->analysis->input.periods)
        hw_buffer_add(&words->out->why, "Words of these blocks are written in %s. ",
                      HW_OF(finding->writes, "word period"));
    else if (finding->context_count)
        hw_buffer_add(&words->out->why, "%s%s writes to these blocks. ", finding->hot ? "At least " : "",
                      HW_MANY(finding->writes));
    if (finding->context_count)
        add_blocks(words, &words->out->why);
    hw_buffer_add(
        &words->out->what,
        fine ? "Give what each thread writes a line of its own: alignas(64)%s."
             : "Build with --granule 8 to see whether they write the same words; if not, give what each thread "
               "writes a line of its own%s.",
        fine && finding->context_count ? ", or a block for each thread" : "");
}

/* ---- contents ---- */

static bool has_text(const struct hw_content_example *example)
{
    struct hw_buffer bytes = {0};
    const bool text = example->shown && hw_content_quote(example, &bytes, HW_CLEAN_JSON);
    hw_buffer_free(&bytes);
    return text;
}

/* All known contents of the places are text. */
static bool are_strings(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    size_t count, texts = 0, all = 0;
    for (size_t i = 0; i < finding->context_count; i++) {
        const struct hw_content_example *of =
            hw_contents_examples(words->view, words->view->contexts[finding->contexts[i]].sum.id, &count);
        for (size_t k = 0; k < count; k++, all++)
            texts += has_text(&of[k]);
    }
    return all && texts == all;
}

/* All blocks of the place have one size. */
static bool are_alike(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const struct hw_profile_context *sum = &words->view->contexts[finding->contexts[0]].sum;
    return finding->context_count == 1 && sum->size_min == sum->size_max;
}

static void add_content_title(const struct words *words, const char *what)
{
    const struct hw_finding *finding = words->finding;
    hw_buffer_add(&words->out->title, "%s: %s of the live heap", what,
                  HW_PERCENT((double)finding->part, (double)finding->whole));
}

static void say_copies(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const bool strings = are_strings(words);
    struct hw_buffer *why = &words->out->why;
    size_t count;
    add_content_title(words, strings ? "Strings are copies of others" : "Blocks are copies of others");
    hw_buffer_add(why, "%s of the %s that were live %s are %s that hold the same as another one, of %s%s",
                  HW_BYTES(finding->part), HW_BYTES(finding->whole), hw_contents_moment(words->view->profile),
                  HW_OF(finding->blocks, strings ? "string" : "block"), HW_BYTES(finding->block_bytes),
                  are_alike(words) ? "" : " on average");
    if (finding->times > 0)
        hw_buffer_add(why, ": each content occurs %s times on average", HW_RATIO(finding->times));
    hw_buffer_add(why, ". ");
    if (words->view->profile->content_search->sampled)
        hw_buffer_add(why, "This is an estimate: not all contents were compared. ");
    const struct hw_content_example *most =
        hw_contents_examples(words->view, words->view->contexts[finding->contexts[0]].sum.id, &count);
    if (count && has_text(most)) {
        hw_buffer_add(why, "The most frequent one here, %s times: ", HW_COUNT(most->copies));
        hw_content_quote(most, why, words->clean);
        hw_buffer_add(why, ". ");
    }
    hw_buffer_add(&words->out->what,
                  strings ? "Intern them: keep each string once, in a table, and hand out pointers or numbers."
                          : "Keep each content once: share it (const data, a table, reference counts).");
}

static void say_zeros(const struct words *words)
{
    add_content_title(words, "Blocks hold only zeros");
    hw_buffer_add(&words->out->why, "%s of the %s that were live %s hold zeros: %s, and pages of larger ones. ",
                  HW_BYTES(words->finding->part), HW_BYTES(words->finding->whole),
                  hw_contents_moment(words->view->profile), HW_OF(words->finding->blocks, "block"));
    hw_buffer_add(&words->out->what,
                  "Allocate them when they are first needed, or smaller. Large ones from calloc take no memory until "
                  "they are written; memset and value-initialisation make them take it.");
}

static void say_ends(const struct words *words)
{
    add_content_title(words, "Ends of blocks are not used");
    hw_buffer_add(&words->out->why,
                  "%s of the %s that were live %s are zeros or were never written, up to the end of their block. ",
                  HW_BYTES(words->finding->part), HW_BYTES(words->finding->whole),
                  hw_contents_moment(words->view->profile));
    hw_buffer_add(&words->out->what, "Reserve less, or give the rest back when the content is complete (realloc, "
                                     "shrink_to_fit).");
}

static void say_unwritten(const struct words *words)
{
    add_content_title(words, "Blocks were never written");
    hw_buffer_add(&words->out->why,
                  "%s of the %s that were live %s are in memory and still hold what "
                  "--contents=fill put there. ",
                  HW_BYTES(words->finding->part), HW_BYTES(words->finding->whole),
                  hw_contents_moment(words->view->profile));
    hw_buffer_add(&words->out->what, "Allocate them when they are first needed.");
}

/* ---- pages ---- */

/* How to give blocks memory of their own, by the beginning of the allocator's name. */
static const struct {
    const char *allocator, *advice;
} arenas[] = {
    {"jemalloc", "Allocate them in an arena of their own: mallctl(\"arenas.create\"), then mallocx with "
                 "MALLOCX_ARENA and MALLOCX_TCACHE_NONE; or cut them from a pool."},
    {"mimalloc", "Allocate them in a heap of their own (mi_heap_new, mi_heap_malloc), or cut them from a pool. "
                 "mimalloc may keep the free pages for the next blocks."},
    {"glibc", "Cut them from a pool (large blocks of their own), or allocate them before what is freed early. glibc "
              "keeps free pages below the last block until malloc_trim(0)."},
    {"", "Cut them from a pool (large blocks of their own), or allocate them before what is freed early. The allocator "
         "may keep the free pages for the next blocks."},
};

static void say_pinned(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const struct hw_profile *profile = words->view->profile;
    struct hw_buffer *why = &words->out->why;
    const char *allocator = profile->allocator ? profile->allocator : "";
    size_t i = 0;
    hw_buffer_add(&words->out->title, "A few blocks keep pages: an arena would free %s of the heap",
                  HW_PERCENT(finding->bytes, (double)finding->whole));
    hw_buffer_add(why, "%s, %s, of %s on average, keep %s of pages that only these places use. ",
                  hw_pins_moment(profile), HW_OF(finding->blocks, "block"), HW_BYTES(finding->block_bytes),
                  HW_BYTES(finding->part));
    if (why->data)
        why->data[0] = 'A';
    hw_buffer_add(why, "In an arena of their own they need %s", HW_BYTES(finding->arena_bytes));
    if (finding->arena_most_bytes > finding->arena_bytes)
        hw_buffer_add(why, " if packed; %s if the arena keeps its size of the peak. The gain uses the second",
                      HW_BYTES(finding->arena_most_bytes));
    hw_buffer_add(why, ". ");
    while (strncmp(allocator, arenas[i].allocator, strlen(arenas[i].allocator)) != 0)
        i++;
    hw_buffer_add(&words->out->what, "%s", arenas[i].advice);
}

/* ---- the end ---- */

/* "In the last 2.1 s live memory grew from 12.0 MiB to 45.0 MiB": since it was last half of that, or from the start. */
static void add_growth(const struct words *words)
{
    const struct hw_profile *profile = words->view->profile;
    const bool utf8 = words->clean != HW_CLEAN_ASCII;
    struct hw_buffer *why = &words->out->why;
    size_t from = profile->timeline_count ? profile->timeline_count - 1 : 0;
    if (!from)
        return;
    const struct hw_profile_point *last = &profile->timeline[from];
    while (from && profile->timeline[from].live_bytes > last->live_bytes / 2)
        from--;
    const struct hw_profile_point *first = &profile->timeline[from];
    if (last->live_bytes <= first->live_bytes || last->time_ns <= first->time_ns)
        return;
    hw_buffer_add(why, "In the last %s that were recorded, live memory grew from %s to %s",
                  HW_NS(last->time_ns - first->time_ns, utf8), HW_BYTES(hw_not_negative(first->live_bytes)),
                  HW_BYTES(hw_not_negative(last->live_bytes)));
    if (first->rss_bytes && last->rss_bytes > first->rss_bytes)
        hw_buffer_add(why, " (resident memory from %s to %s)", HW_BYTES(first->rss_bytes), HW_BYTES(last->rss_bytes));
    hw_buffer_add(why, ". ");
}

static void say_out_of_memory(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const struct hw_profile *profile = words->view->profile;
    const struct hw_process_info *process = &profile->process;
    struct hw_buffer *title = &words->out->title, *why = &words->out->why;
    const char *passed = NULL;
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i].code == HW_NOTE_DUMP_AT)
            passed = hw_profile_string(profile, profile->notes[i].text);
    hw_buffer_add(title, finding->certain ? "Out of memory: the kernel's OOM killer ended the process"
                                          : "The process may have run out of memory before its end");
    if (process->oom_kills)
        hw_buffer_add(why, "The kernel ended %" PRIu32 " process%s of its cgroup for lack of memory during the run%s. ",
                      process->oom_kills, process->oom_kills == 1 ? "" : "es",
                      finding->certain ? ", and signal 9 ended this one" : "");
    else
        hw_buffer_add(why, "How it ended was not recorded: `heapwise record`, if it was used, may have been killed with it "
                           "(memory.oom.group, or the end of a container). ");
    if (finding->whole)
        hw_buffer_add(why, "When that was last measured, the cgroup had %s, with a limit of %s. ",
                      HW_BYTES(finding->part), HW_BYTES(finding->whole));
    if (passed) {
        hw_buffer_add(why, "Before, ");
        hw_buffer_clean(why, passed, words->clean);
        hw_buffer_add(why, ". ");
    }
    add_growth(words);
    hw_buffer_add(&words->out->what, passed ? "Compare with the dump that was written then: heapwise diff DUMP FILE. "
                                            : "Have a dump before the next time: heapwise record --dump-at=90%%. ");
    hw_buffer_add(&words->out->what, "The moments before: heapwise report --section timeline FILE.");
}

/* ---- the whole ---- */

/* " in new_node": the function that allocates, where there is one context. */
static void add_place(const struct words *words)
{
    const struct hw_finding *finding = words->finding;
    const uint64_t type = finding->context_count ? words->view->contexts[finding->contexts[0]].sum.type : 0;
    const char *name = type && words->view->type ? words->view->type(words->view->closure, type) : NULL;
    if (words->of || finding->context_count != 1 || !name)
        return;
    hw_buffer_add(&words->out->title, " (type ");
    hw_buffer_clean(&words->out->title, name, words->clean);
    hw_buffer_add(&words->out->title, ")");
}

void hw_finding_words(const struct hw_view *view, const struct hw_analysis *analysis, const struct hw_finding *finding,
                      enum hw_clean clean, struct hw_advice *words)
{
    static void (*const say[HW_FINDING_KINDS])(const struct words *words) = {
        [HW_FINDING_LAYOUT] = say_layout,
        [HW_FINDING_ASTRIDE] = say_astride,
        [HW_FINDING_PADDING] = say_padding,
        [HW_FINDING_UNUSED_FIELDS] = say_unused,
        [HW_FINDING_UNREAD_FIELDS] = say_unused,
        [HW_FINDING_SPARSE] = say_sparse,
        [HW_FINDING_UNUSED_WORDS] = say_unused_words,
        [HW_FINDING_HEADER] = say_header,
        [HW_FINDING_FALSE_SHARING] = say_sharing,
        [HW_FINDING_SHARED_WRITES] = say_sharing,
        [HW_FINDING_COPIES] = say_copies,
        [HW_FINDING_ZEROS] = say_zeros,
        [HW_FINDING_ENDS] = say_ends,
        [HW_FINDING_UNWRITTEN] = say_unwritten,
        [HW_FINDING_PINNED] = say_pinned,
        [HW_FINDING_OUT_OF_MEMORY] = say_out_of_memory,
    };
    const struct words all = {view,    analysis,
                              finding, finding->structure == SIZE_MAX ? NULL : &analysis->structs[finding->structure],
                              clean,   words};
    hw_advice_clear(words);
    if (all.of)
        hw_add_struct_name(&words->title, all.of->structure, clean);
    say[finding->kind](&all);
    add_place(&all);
    add_gain(&all);
    while (words->why.used && words->why.data[words->why.used - 1] == ' ')
        hw_buffer_cut(&words->why, words->why.used - 1);
}
