/* view_words.c - used words by position (4-byte granules), for the contexts of a view. */
#include "report/view/view.h"

#include <stdlib.h>

/* The leaf, in the view, of a stack that frees; HW_NONE stays. */
static uint32_t leaf_of(const struct hw_profile *profile, const uint32_t *canonical, uint32_t context)
{
    if (context == HW_NONE)
        return HW_NONE;
    const uint32_t leaf = context < profile->context_entry_count ? profile->context_entries[context].leaf : 0;
    return leaf < profile->node_count ? canonical[leaf] : 0;
}

static bool make(struct hw_view_words *to, const struct hw_profile *profile, const struct hw_profile_words *from,
                 size_t count, const uint32_t *canonical, const uint32_t *context_of, size_t ids)
{
    size_t kept = 0;
    if (!count)
        return true;
    to->runs = malloc(count * sizeof *to->runs);
    if (!to->runs)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (from[i].context >= ids || context_of[from[i].context] == HW_NONE)
            continue;
        to->runs[kept] = from[i];
        to->runs[kept].context = context_of[from[i].context];
        to->runs[kept++].free_context = leaf_of(profile, canonical, from[i].free_context);
    }
    qsort(to->runs, kept, sizeof *to->runs, hw_profile_words_compare);
    for (size_t i = 0; i < kept; i++) {
        if (to->count && !hw_profile_words_compare(&to->runs[to->count - 1], &to->runs[i]))
            hw_profile_words_add(&to->runs[to->count - 1], &to->runs[i]);
        else
            to->runs[to->count++] = to->runs[i];
    }
    return true;
}

bool hw_view_make_words(struct hw_view *view, const uint32_t *canonical, const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    return make(&view->words, profile, profile->words, profile->word_count, canonical, context_of, ids) &&
           make(&view->freed_words, profile, profile->freed_words, profile->freed_word_count, canonical, context_of,
                ids);
}

static void keep(struct hw_view_words *words, const uint32_t *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (kept[words->runs[i].context] == HW_NONE)
            continue;
        words->runs[count] = words->runs[i];
        words->runs[count].context = kept[words->runs[i].context];
        count++;
    }
    words->count = count;
}

void hw_view_keep_words(struct hw_view *view, const uint32_t *kept)
{
    keep(&view->words, kept);
    keep(&view->freed_words, kept);
}

void hw_view_free_words(struct hw_view *view)
{
    free(view->words.runs);
    free(view->freed_words.runs);
}

/* The runs of CONTEXT and FREE_LEAF in WORDS. */
static const struct hw_profile_words *find(const struct hw_view_words *words, size_t context, uint32_t free_leaf,
                                           size_t *count)
{
    size_t low = 0, high = words->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct hw_profile_words *run = &words->runs[middle];
        if (run->context < context || (run->context == context && run->free_context < free_leaf))
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < words->count && words->runs[low + *count].context == context &&
           words->runs[low + *count].free_context == free_leaf)
        ++*count;
    return words->runs + low;
}

const struct hw_profile_words *hw_view_words(const struct hw_view *view, size_t context, size_t *count)
{
    return find(&view->words, context, HW_NONE, count);
}

const struct hw_profile_words *hw_view_freed_words(const struct hw_view *view, size_t context, uint32_t free_leaf,
                                                   size_t *count)
{
    return find(&view->freed_words, context, free_leaf, count);
}

uint64_t hw_view_words_never_touched(const struct hw_view *view, size_t context, uint64_t size)
{
    size_t count;
    const struct hw_profile_words *runs = hw_view_words(view, context, &count);
    uint64_t words = size / 4 + (size % 4 != 0), touched = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < HW_WORDS_RUN; k++)
            touched += (runs[i].read_blocks[k] | runs[i].written_blocks[k]) && runs[i].first_word + (uint64_t)k < words;
    return words - touched;
}
