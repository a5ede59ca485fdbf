/* merge_words.c - used words by position (4-byte granules) in a merge.
 *
 * Rows of all blocks and rows of freed ones, by where they were freed, are summed up apart, as the model has them; what
 * the file gets is the rows of freed ones, and what is left of the others. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

static struct hw_key key_of(const struct hw_profile_words *row)
{
    return (struct hw_key){(uint64_t)row->context << 32 | row->free_context, row->first_word};
}

static bool add_row(struct hw_merge *merge, const struct hw_profile_words *from, const uint32_t *reference)
{
    struct hw_profile_words row = {.context = reference[from->context], .first_word = from->first_word};
    row.free_context = from->free_context == HW_NONE ? HW_NONE : reference[from->free_context];
    if (row.context == HW_NONE)
        return true;
    bool added;
    struct hw_profile_words *to = hw_store_intern(&merge->words, key_of(&row), &added);
    if (!to)
        return false;
    if (added)
        *to = row;
    hw_profile_words_add(to, from);
    return true;
}

bool hw_merge_words_add(struct hw_merge *merge, const struct hw_profile *profile, const uint32_t *reference)
{
    bool fine = true;
    for (size_t i = 0; fine && i < profile->word_count; i++)
        fine = add_row(merge, &profile->words[i], reference);
    for (size_t i = 0; fine && i < profile->freed_word_count; i++)
        fine = add_row(merge, &profile->freed_words[i], reference);
    return fine;
}

static void take_away(struct hw_profile_words *all, const struct hw_profile_words *part)
{
    all->saturated = hw_without(all->saturated, part->saturated);
    for (size_t i = 0; i < HW_WORDS_RUN; i++) {
        all->read_periods[i] = hw_without(all->read_periods[i], part->read_periods[i]);
        all->written_periods[i] = hw_without(all->written_periods[i], part->written_periods[i]);
        all->read_blocks[i] = hw_without(all->read_blocks[i], part->read_blocks[i]);
        all->written_blocks[i] = hw_without(all->written_blocks[i], part->written_blocks[i]);
    }
}

/* Rows of all blocks become those of blocks of which it is not known where they were freed. */
static void take_freed_away(const struct hw_merge *merge)
{
    for (uint32_t i = 0; i < merge->words.count; i++) {
        const struct hw_profile_words *part = hw_store_at(&merge->words, i);
        struct hw_profile_words whole = {.context = part->context, .first_word = part->first_word};
        if (part->free_context == HW_NONE)
            continue;
        whole.free_context = HW_NONE;
        const uint32_t index = hw_index_find(&merge->words.index, key_of(&whole));
        if (index != HW_NONE)
            take_away(hw_store_at(&merge->words, index), part);
    }
}

static bool is_empty(const struct hw_profile_words *row)
{
    uint64_t any = row->saturated;
    for (size_t i = 0; i < HW_WORDS_RUN; i++)
        any |= row->read_periods[i] | row->written_periods[i] | row->read_blocks[i] | row->written_blocks[i];
    return !any;
}

static int compare_rows(const void *left, const void *right)
{
    return hw_profile_words_compare(*(struct hw_profile_words *const *)left, *(struct hw_profile_words *const *)right);
}

static void put_row(struct hw_words *to, const struct hw_profile_words *from)
{
    to->context = from->context;
    to->free_context = from->free_context;
    to->first_word = from->first_word;
    to->saturated = from->saturated;
    memcpy(to->read_periods, from->read_periods, sizeof to->read_periods);
    memcpy(to->written_periods, from->written_periods, sizeof to->written_periods);
    memcpy(to->read_blocks, from->read_blocks, sizeof to->read_blocks);
    memcpy(to->written_blocks, from->written_blocks, sizeof to->written_blocks);
}

bool hw_merge_words_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables)
{
    struct hw_profile_words **rows = malloc(((size_t)merge->words.count + 1) * sizeof *rows);
    size_t count = 0;
    if (!rows)
        return false;
    take_freed_away(merge);
    for (uint32_t i = 0; i < merge->words.count; i++) {
        struct hw_profile_words *row = hw_store_at(&merge->words, i);
        if (is_empty(row))
            continue;
        row->context = hw_merge_entry_at(merge, row->context)->id;
        if (row->free_context != HW_NONE)
            row->free_context = hw_merge_entry_at(merge, row->free_context)->id;
        rows[count++] = row;
    }
    qsort(rows, count, sizeof *rows, compare_rows);
    struct hw_words *to = hw_table_make(tables, arena, HW_SECTION_WORDS, count);
    for (size_t i = 0; to && i < count; i++)
        put_row(&to[i], rows[i]);
    free(rows);
    return to != NULL;
}
