/* stack_depth.h - how many frames the stack has that ends in a node of a profile. */
#ifndef TEST_STACK_DEPTH_H
#define TEST_STACK_DEPTH_H

#include "profile/profile.h"

static inline size_t stack_depth(const struct hw_profile *profile, uint32_t leaf)
{
    size_t count = 0;
    for (; leaf != 0 && leaf < profile->node_count; count++)
        leaf = profile->nodes[leaf].parent;
    return count;
}

#endif
