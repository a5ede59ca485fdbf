/* view_contents.c - see contents.h. */
#include "report/view/contents.h"

#include <stdlib.h>

#include "base/order.h"

#define TEXT_LEAST 4

static int compare(const void *left, const void *right)
{
    const struct hw_contents *a = *(const struct hw_contents *const *)left,
                             *b = *(const struct hw_contents *const *)right;
    return HW_ORDER(b->avoidable_bytes, a->avoidable_bytes) ?: HW_ORDER(b->bytes, a->bytes) ?:
           HW_ORDER(a->context, b->context);
}

const struct hw_contents **hw_contents_sorted(const struct hw_view *view, size_t *count)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_contents **sorted = calloc(profile->content_count + 1, sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && i < profile->content_count; i++)
        if (hw_view_context_of(view, profile->contents[i].context))
            sorted[(*count)++] = &profile->contents[i];
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare);
    return sorted;
}

const struct hw_contents **hw_contents_by_context(const struct hw_view *view)
{
    const struct hw_profile *profile = view->profile;
    const struct hw_contents **of = calloc(view->context_count + 1, sizeof *of);
    for (size_t i = 0; of && i < profile->content_count; i++) {
        const struct hw_view_context *context = hw_view_context_of(view, profile->contents[i].context);
        if (context)
            of[context - view->contexts] = &profile->contents[i];
    }
    return of;
}

struct hw_contents hw_contents_sum(const struct hw_view *view)
{
    struct hw_contents all = {0};
    for (size_t i = 0; i < view->profile->content_count; i++) {
        const struct hw_contents *one = &view->profile->contents[i];
        const struct hw_view_context *context = hw_view_context_of(view, one->context);
        if (!context || context->sum.pool)
            continue;
#define ADD(member) all.member = hw_add_saturating(all.member, one->member);
        ADD(blocks)
        ADD(bytes)
        ADD(identical_blocks)
        ADD(identical_bytes)
        ADD(repeated)
        ADD(zero_blocks)
        ADD(zero_bytes)
        ADD(never_written_bytes)
        ADD(absent_bytes)
        ADD(tail_blocks)
        ADD(unused_tail_bytes)
        ADD(avoidable_bytes)
        ADD(avoidable_copies)
        ADD(avoidable_zeros)
        ADD(avoidable_ends)
        ADD(unread_bytes)
#undef ADD
    }
    all.identical_error = view->profile->content_search ? view->profile->content_search->identical_error : 0;
    return all;
}

const struct hw_content_example *hw_contents_examples(const struct hw_view *view, uint32_t context, size_t *count)
{
    const struct hw_content_example *all = view->profile->content_examples;
    return all + HW_RUN(all, view->profile->content_example_count, context, context, count);
}

bool hw_contents_before_peak(const struct hw_profile *profile)
{
    const struct hw_content_info *info = profile->content_search;
    return info->moment == HW_MOMENT_PEAK && info->bytes < profile->process.peak_bytes;
}

const char *hw_contents_moment(const struct hw_profile *profile)
{
    static const char *const moments[] = {
        [HW_MOMENT_PEAK] = "at the peak", [HW_MOMENT_END] = "at the end", [HW_MOMENT_DUMP] = "at the dump"};
    const uint32_t moment = profile->content_search->moment;
    return hw_contents_before_peak(profile)                               ? "before the peak"
           : moment < sizeof moments / sizeof *moments && moments[moment] ? moments[moment]
                                                                          : "then";
}

/* Bytes before the zeros at the end. ODD: of them that no text has; zeros are among them. */
static size_t text_of(const struct hw_content_example *example, size_t *odd)
{
    size_t used = example->shown;
    while (used && !example->bytes[used - 1])
        used--;
    const size_t whole = hw_text_bytes(example->bytes, used, odd);
    if (used == example->shown && used < example->size)
        return whole;
    *odd += used - whole;
    return used;
}

static void add_hex(const struct hw_content_example *example, struct hw_buffer *out)
{
    for (size_t i = 0; i < example->shown; i++)
        hw_buffer_add(out, "%02x", example->bytes[i]);
}

bool hw_content_text(const struct hw_content_example *example, struct hw_buffer *out)
{
    size_t odd;
    const size_t used = text_of(example, &odd);
    const bool text = used >= TEXT_LEAST && !odd;
    if (text)
        hw_buffer_bytes(out, (const char *)example->bytes, used);
    else
        add_hex(example, out);
    return text;
}

bool hw_content_quote(const struct hw_content_example *example, struct hw_buffer *out, enum hw_clean clean)
{
    size_t odd;
    const size_t used = text_of(example, &odd);
    const bool text = used >= TEXT_LEAST && odd <= used / 4;
    if (text)
        hw_buffer_quote(out, example->bytes, used, clean);
    else
        add_hex(example, out);
    return text;
}
