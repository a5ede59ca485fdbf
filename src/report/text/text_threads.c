/* text_threads.c - which threads there were, and what each of them allocated, held and left to others. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"
#include "report/view/merged.h"

#define USUAL_ROWS  20
#define BRIEF_ROWS  5
#define COLUMNS     53 /* before the name */
#define WITH_PLACES 5  /* of the first ones: their places, */
#define PLACES_MOST 3  /* at most so many */

/* The name of its start function, "" where that has none; NULL: it is not known. */
static const char *start_of(const struct hw_view *view, const struct hw_view_thread *thread)
{
    if (thread->location == HW_NONE || thread->is->flags & HW_THREAD_ROUTINES)
        return NULL;
    const char *function = view->locations[thread->location].frames.frame[thread->frame].function;
    return function ? function : "";
}

/* The name is that of the function, or it was never set: it is still the main thread's. */
static bool says_nothing(const struct hw_view *view, const struct hw_view_thread *thread, const char *function)
{
    if (!function || hw_view_thread_kind(thread))
        return false;
    bool inherited = !strcmp(thread->is->name, function);
    for (size_t i = 0; !inherited && *function && i < view->thread_count; i++)
        inherited = view->threads[i].is->flags & HW_THREAD_MAIN && !strcmp(view->threads[i].is->name, thread->is->name);
    return inherited;
}

/* The name; where threads differ in numbers, with an asterisk for each. */
static void add_name(struct hw_text *text, const char *name, enum hw_thread_names names, struct hw_buffer *out)
{
    char pattern[HW_THREAD_NAME + 1];
    size_t used = 0;
    for (const char *at = name; *at && used < HW_THREAD_NAME; at++) {
        const bool digit = names == HW_NAMES_NUMBERED && *at >= '0' && *at <= '9';
        if (!digit || !used || pattern[used - 1] != '*')
            pattern[used++] = digit ? '*' : *at;
    }
    pattern[used] = '\0';
    hw_page_clean(&text->page, out, pattern);
}

void hw_text_thread_name(struct hw_text *text, const struct hw_view_thread *thread, uint64_t threads,
                         enum hw_thread_names names, size_t columns, struct hw_buffer *out)
{
    const char *kind = hw_view_thread_kind(thread);
    const char *function = start_of(text->view, thread);
    const bool named = *thread->is->name && names != HW_NAMES_DIFFER && !says_nothing(text->view, thread, function);
    if (named)
        add_name(text, thread->is->name, names, out);
    if (kind) {
        hw_buffer_add(out, named ? ", %s" : "%s", kind);
    } else if (function) {
        const struct hw_view_frame frame = hw_text_frame(text->view, thread->location, thread->frame);
        const size_t used = named ? strlen(thread->is->name) + 2 : 0;
        hw_buffer_add(out, "%s%s", named ? ", " : "",
                      hw_text_function(text, &frame, columns > used + 16 ? columns - used : 16));
    } else if (!named)
        hw_buffer_add(out, names == HW_NAMES_DIFFER ? "of various names" : "(not known)");
    if (threads > 1)
        hw_buffer_add(out, " (%s)", HW_OF(threads, "thread"));
}

static const char *signed_bytes(int64_t bytes, char *buffer)
{
    return hw_human_bytes(buffer, hw_not_negative(bytes));
}

static void print_row(struct hw_text *text, const struct hw_view_thread_row *row)
{
    const struct hw_page *page = &text->page;
    const struct hw_profile_thread *sum = &row->sum;
    char peak[HW_HUMAN], live[HW_HUMAN], count[48] = "";
    const size_t room = page->width > COLUMNS + 16 ? page->width - COLUMNS : 16;
    struct hw_buffer name = {0};
    if (sum->threads > 1) /* never cut */
        snprintf(count, sizeof count, " (%s)", HW_OF(sum->threads, "thread"));
    const size_t wide = strlen(count), rest = room > wide + 8 ? room - wide : 8;
    hw_text_thread_name(text, row->thread, 1, row->names, rest, &name);
    hw_page_print(page, HW_STRONG, "%9s", signed_bytes(sum->peak_bytes, peak));
    fprintf(page->stream, " %9s %11s %9s %9s  ", signed_bytes(sum->live_bytes, live), HW_MANY(sum->allocations),
            HW_MANY(sum->freed_by_others), HW_MANY(sum->freed_of_others));
    hw_page_print(page, HW_NAME, "%s",
                  text->options->full ? hw_buffer_text(&name)
                                      : hw_page_cut(page, &text->line, hw_buffer_text(&name), rest));
    fputs(count, page->stream);
    fputc('\n', page->stream);
    text->failed |= name.failed;
    hw_buffer_free(&name);
}

/* ---- by place ---- */

struct share {
    uint32_t context;
    uint64_t bytes;
};

static int compare_shares(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    return HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->context, b->context);
}

static int compare_contexts(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    return HW_ORDER(a->context, b->context);
}

/* Threads of a row may have allocated at the same place. */
static size_t join_shares(struct share *shares, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(shares, count, sizeof *shares, compare_contexts);
    for (size_t i = 0; i < count; i++) {
        if (kept && shares[kept - 1].context == shares[i].context)
            shares[kept - 1].bytes = hw_add_saturating(shares[kept - 1].bytes, shares[i].bytes);
        else
            shares[kept++] = shares[i];
    }
    if (kept)
        qsort(shares, kept, sizeof *shares, compare_shares);
    return kept;
}

/* The places of most bytes that the threads of the row allocated. */
static void print_places(struct hw_text *text, const struct hw_view_thread_row *row)
{
    const struct hw_profile *profile = text->view->profile;
    struct hw_page *page = &text->page;
    struct share *shares = malloc((profile->thread_place_count + 1) * sizeof *shares);
    size_t count = 0;
    text->failed |= !shares;
    for (size_t i = 0; shares && i < profile->thread_place_count; i++) {
        const struct hw_profile_thread_place *place = &profile->thread_places[i];
        if (place->bytes && hw_view_thread_in_row(text->view, place->thread, row))
            shares[count++] = (struct share){place->context, place->bytes};
    }
    count = join_shares(shares, count);
    for (size_t i = 0; i < count && i < PLACES_MOST; i++) {
        const struct hw_view_context *context = hw_view_context_of(text->view, shares[i].context);
        if (!context || !hw_text_load(text, context->sum.leaf))
            continue;
        bool placed;
        fprintf(page->stream, "%*s %9s ", 21, i ? "" : "allocated", HW_BYTES(shares[i].bytes));
        hw_text_named(text, &text->stack.frames[text->fold.headline], page->width > 60 ? page->width - 36 : 24,
                      &placed);
        fputc('\n', page->stream);
    }
    free(shares);
}

/* "started by the main thread at initServerLast  server.c:2800". */
static void print_start(struct hw_text *text, const struct hw_view_thread_row *row)
{
    const struct hw_page *page = &text->page;
    const uint32_t leaf = row->thread->started;
    const bool known = row->sum.starter != HW_NONE;
    if (!leaf && !known)
        return;
    struct hw_buffer starter = {0};
    const char *elsewhere = row->sum.context ? "" : " and other places";
    size_t room = (page->width > 60 ? page->width - 24 : 36) - strlen(elsewhere);
    fprintf(page->stream, "%*s ", 21, known ? "started by" : "started at");
    if (known) {
        const struct hw_view_thread *by = &text->view->threads[row->sum.starter];
        if (by->is->flags & HW_THREAD_MAIN)
            hw_buffer_add(&starter, "the main thread");
        else
            hw_text_thread_name(text, by, 1, HW_NAMES_ONE, room / 2, &starter);
        const char *name = hw_page_cut(page, &text->line, hw_buffer_text(&starter), room / 2);
        hw_page_print(page, HW_NAME, "%s", name);
        room -= hw_text_width(name) + 4;
    }
    if (leaf && hw_text_load(text, leaf)) {
        bool placed;
        fputs(known ? " at " : "", page->stream);
        hw_text_named(text, &text->stack.frames[text->fold.headline], room, &placed);
        fputs(elsewhere, page->stream);
        if (text->options->full) {
            fputc('\n', page->stream);
            hw_text_stack(text);
        }
    }
    if (!leaf || !text->options->full)
        fputc('\n', page->stream);
    text->failed |= starter.failed;
    hw_buffer_free(&starter);
}

/* ---- the table ---- */

static void print_notes(struct hw_text *text, const struct hw_view_thread_row *rows, size_t count)
{
    const struct hw_profile *profile = text->view->profile;
    uint64_t sums = 0, unknown = 0, several = 0;
    for (size_t i = 0; i < count; i++) {
        sums += rows[i].sum.threads > 1 ? rows[i].sum.threads : 0;
        unknown = hw_add_saturating(unknown, rows[i].sum.owner_unknown);
    }
    for (size_t i = 0; i < profile->thread_place_count; i++)
        several |= profile->thread_places[i].several;
    hw_buffer_clear(&text->line);
    struct hw_buffer *out = &text->line;
    hw_buffer_add(out, "At peak, not freed: bytes of blocks that the thread allocated. By others: its blocks that "
                       "other threads freed. Of others: blocks of other threads that it freed.");
    if (hw_view_sampled(text->view))
        hw_buffer_add(out, " All are estimates from sampled allocations.");
    else if (profile->observed)
        hw_buffer_add(out, " All are estimates from followed blocks.");
    if (sums)
        hw_buffer_add(out, " Threads with the same name (but for numbers) and start function are added up where a row "
                           "says so.");
    if (unknown)
        hw_buffer_add(out, " The thread of %s freed is not known.", HW_OF(unknown, "block"));
    if (hw_is_merged(profile))
        hw_buffer_add(out, " Which thread allocated at which place is not kept in merged profiles.");
    else if (several)
        hw_buffer_add(out, " By place, threads that ran one after the other with the same start function are not "
                           "distinguished.");
    fputc('\n', text->page.stream);
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(out));
}

static void print_table(struct hw_text *text, bool places)
{
    struct hw_page *page = &text->page;
    const size_t top = text->options->top ? text->options->top : USUAL_ROWS;
    size_t count;
    const size_t most = places ? top : BRIEF_ROWS;
    struct hw_view_thread_row *rows = hw_view_thread_rows(text->view, most, true, &count);
    text->failed |= !rows;
    if (!rows)
        return;
    hw_page_heading(page,
                    hw_view_sampled(text->view) || text->view->profile->observed ? "Threads (estimated)" : "Threads");
    hw_page_print(page, HW_FAINT, "%9s %9s %11s %9s %9s  %s", "at peak", "not freed", "allocations", "by others",
                  "of others", "thread");
    fputc('\n', page->stream);
    for (size_t i = 0; i < count && i < most; i++) {
        print_row(text, &rows[i]);
        if (places && i < WITH_PLACES)
            print_places(text, &rows[i]);
        if (places)
            print_start(text, &rows[i]);
    }
    if (count > most)
        fprintf(page->stream, "%*s%s and %s more\n", COLUMNS, "", hw_page_ellipsis(page), HW_COUNT(count - most));
    if (places)
        print_notes(text, rows, count);
    free(rows);
}

void hw_text_threads(struct hw_text *text)
{
    if (text->view->profile->process.threads_seen == 1) { /* nothing distinguishes the places */
        hw_page_heading(&text->page, "Threads");
        fputs("One thread used the heap.\n", text->page.stream);
        return;
    }
    if (hw_view_has_threads(text->view))
        print_table(text, true);
    hw_text_list(text, HW_SORT_THREADS);
}

void hw_text_threads_brief(struct hw_text *text)
{
    print_table(text, false);
}

/* Whether the brief report has the table: a second thread has a part of what was live, or of what was allocated. */
bool hw_text_threads_matter(const struct hw_view *view)
{
    unsigned matter = 0;
    if (!hw_view_has_threads(view))
        return false;
    for (size_t i = 0; i < view->thread_count; i++) {
        const struct hw_profile_thread *thread = view->threads[i].is;
        matter += hw_not_negative(thread->peak_bytes) > view->profile->process.peak_bytes / 20 ||
                  thread->bytes > view->totals.bytes / 20;
    }
    return matter > 1;
}
