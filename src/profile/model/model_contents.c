/* model_contents.c - what live blocks hold: CONTENTS, CONTENT_EXAMPLES and CONTENT_INFO, checked. */
#include "profile/model/model.h"

void hw_profile_take_contents(struct hw_profile *profile, const struct hw_tables *tables, struct hw_problems *problems)
{
    const struct hw_table *sums = &tables->of[HW_SECTION_CONTENTS], *info = &tables->of[HW_SECTION_CONTENT_INFO],
                          *examples = &tables->of[HW_SECTION_CONTENT_EXAMPLES];
    const struct hw_contents *sum = sums->entries;
    const struct hw_content_example *example = examples->entries;
    bool fine = true;
    if (!info->count)
        return;
    for (size_t i = 0; i < sums->count; i++)
        fine &= sum[i].context < profile->context_entry_count;
    for (size_t i = 0; i < examples->count; i++)
        fine &= (example[i].context == HW_NONE || example[i].context < profile->context_entry_count) &&
                example[i].shown <= sizeof example[i].bytes && (i == 0 || example[i - 1].context <= example[i].context);
    if (!fine) {
        hw_problem(problems, "The file is damaged: contents of blocks refer to what is not there.");
        return;
    }
    profile->content_search = info->entries;
    profile->contents = sum;
    profile->content_count = sums->count;
    profile->content_examples = example;
    profile->content_example_count = examples->count;
}
