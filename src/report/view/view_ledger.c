/* view_ledger.c - the call stacks of what the program has mapped itself. */
#include <stdlib.h>

#include "report/view/view.h"

static uint32_t leaf_of(const struct hw_profile *profile, const uint32_t *canonical, uint32_t context)
{
    const uint32_t leaf = context < profile->context_entry_count ? profile->context_entries[context].leaf : 0;
    return leaf < profile->node_count ? canonical[leaf] : 0;
}

bool hw_view_make_ledger(struct hw_view *view, const uint32_t *canonical)
{
    const struct hw_profile *profile = view->profile;
    view->ledger_leaves = malloc((profile->ledger_count + 1) * sizeof *view->ledger_leaves);
    view->mapping_leaves = malloc((profile->mapping_count + 1) * sizeof *view->mapping_leaves);
    if (!view->ledger_leaves || !view->mapping_leaves)
        return false;
    for (size_t i = 0; i < profile->ledger_count; i++)
        view->ledger_leaves[i] = leaf_of(profile, canonical, profile->ledger[i].context);
    for (size_t i = 0; i < profile->mapping_count; i++)
        view->mapping_leaves[i] = leaf_of(profile, canonical, profile->mappings[i].context);
    return true;
}

void hw_view_free_ledger(struct hw_view *view)
{
    free(view->ledger_leaves);
    free(view->mapping_leaves);
}
