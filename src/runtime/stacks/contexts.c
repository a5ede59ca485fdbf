/* contexts.c - call stacks and their ids.
 *
 * Stacks are stored as a tree in the file: equal tails share their nodes. Two private indexes speed up the way to it:
 * by hash of the whole stack (read without a lock) and by (parent, pc) for new nodes (under the lock). Both can be
 * rebuilt from the file's tables, which is what a forked child does. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/stacks/stacks.h"

#define FIRST_CONTEXTS 256u /* slots: short runs touch few pages */

/* Open addressing, hash -> context id. Replaced by a larger one when half full; old ones stay, since a reader may be in
 * them: together they are no larger than the newest. */
struct index {
    uint64_t mask;
    uint64_t count;
    struct {
        uint64_t hash; /* 0 empty; written last */
        uint32_t context;
    } slot[];
};
static struct index *contexts;

static struct {
    uint32_t *slots; /* node index, 0 empty */
    uint32_t mask, count;
} nodes;

/* An address in the instruction that PC stands for: of a return address in the call before it. */
static uint64_t where(uint64_t pc)
{
    return pc & HW_PC_EXACT ? pc & ~HW_PC_EXACT : pc - 1;
}

static uint64_t node_hash(uint32_t parent, uint64_t pc, uint32_t map)
{
    uint64_t hash = (pc ^ (uint64_t)parent << 40 ^ map) * 0xff51afd7ed558ccdull;
    hash = (hash ^ hash >> 33 ^ parent) * 0xc4ceb9fe1a85ec53ull;
    return hash ^ hash >> 29;
}

static struct hw_stack_node *node_at(uint32_t index)
{
    return HW_ENTRY(HW_POOL_STACKS, struct hw_stack_node, index);
}

static bool grow_nodes(void)
{
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_STACKS), capacity = 4096;
    while (capacity < count * 4)
        capacity *= 2;
    uint32_t *slots = hw_own_pages(capacity * sizeof *slots, false);
    if (!slots)
        return false;
    for (uint32_t i = 1; i < count; i++) {
        uint64_t at = node_hash(node_at(i)->parent, node_at(i)->pc, node_at(i)->map) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = i;
    }
    if (nodes.slots)
        hw_own_give_back(nodes.slots, (nodes.mask + 1) * sizeof *slots);
    nodes.slots = slots;
    nodes.mask = capacity - 1;
    nodes.count = count;
    return true;
}

/* The node for PC under PARENT, made when there is none; HW_NONE when there is no room. Lock held. */
static uint32_t get_node(uint32_t parent, uint64_t pc, uint32_t map)
{
    if (nodes.count * 2 >= nodes.mask && !grow_nodes())
        return HW_NONE;
    uint64_t at = node_hash(parent, pc, map) & nodes.mask;
    for (; nodes.slots[at]; at = (at + 1) & nodes.mask) {
        const struct hw_stack_node *node = node_at(nodes.slots[at]);
        if (node->pc == pc && node->parent == parent && node->map == map)
            return nodes.slots[at];
    }
    uint32_t index = hw_pool_take(HW_POOL_STACKS, 1);
    if (index == HW_NONE)
        return HW_NONE;
    *node_at(index) = (struct hw_stack_node){.pc = pc, .map = map, .parent = parent};
    hw_pool_publish(HW_POOL_STACKS);
    nodes.slots[at] = index;
    nodes.count++;
    return index;
}

static struct index *new_index(uint64_t capacity)
{
    struct index *index = hw_own_pages(sizeof *index + capacity * sizeof index->slot[0], false);
    if (index)
        index->mask = capacity - 1;
    return index;
}

static void insert(struct index *index, uint64_t hash, uint32_t context)
{
    uint64_t at = hash & index->mask;
    while (index->slot[at].hash)
        at = (at + 1) & index->mask;
    index->slot[at].context = context;
    __atomic_store_n(&index->slot[at].hash, hash, __ATOMIC_RELEASE);
    index->count++;
}

static uint32_t search(const struct index *index, uint64_t hash)
{
    for (uint64_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        uint64_t there = __atomic_load_n(&index->slot[at].hash, __ATOMIC_ACQUIRE);
        if (there == hash)
            return index->slot[at].context;
        if (!there)
            return HW_NONE;
    }
}

static bool grow_index(void)
{
    struct index *old = contexts, *fresh = new_index((old->mask + 1) * 2);
    if (!fresh)
        return false;
    for (uint64_t i = 0; i <= old->mask; i++)
        if (old->slot[i].hash)
            insert(fresh, old->slot[i].hash, old->slot[i].context);
    __atomic_store_n(&contexts, fresh, __ATOMIC_RELEASE);
    return true;
}

/* Stores the nodes of a stack, root first; the leaf, or HW_NONE. Lock held; the modules have been looked up before,
 * because that may take the lock itself. */
static uint32_t store_stack(const uint64_t *pcs, const uint32_t *maps, uint32_t depth)
{
    uint32_t node = 0;
    for (uint32_t i = depth; i-- > 0 && node != HW_NONE;)
        node = get_node(node, where(pcs[i]), maps[i]);
    return node;
}

/* The context of each leaf, or 0: contexts with the same stack get one id even when their hashes differ (the hash knows
 * the code generation). A leaf that has contexts with different flags keeps the first. Lock held. */
static uint32_t *by_leaf;

static uint32_t find_by_leaf(uint32_t leaf, uint32_t flags)
{
    uint32_t context = by_leaf ? by_leaf[leaf] : 0;
    const struct hw_context_entry *entry = HW_ENTRY(HW_POOL_CONTEXTS, struct hw_context_entry, context);
    return context && entry->leaf == leaf && entry->flags == flags ? context : HW_NONE;
}

static bool index_leaves(void)
{
    uint64_t nodes_most = hw_pools[HW_POOL_STACKS].reserved / sizeof(struct hw_stack_node);
    by_leaf = hw_own_pages(nodes_most * sizeof *by_leaf, false);
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    for (uint32_t i = 1; by_leaf && i < count; i++)
        by_leaf[HW_ENTRY(HW_POOL_CONTEXTS, struct hw_context_entry, i)->leaf] = i;
    return true; /* without it a stack may get a second id, which readers join */
}

static uint32_t add_context(const uint64_t *pcs, const uint32_t *maps, uint32_t depth, uint64_t hash, uint32_t flags)
{
    if (contexts->count * 2 > contexts->mask && !grow_index())
        return 0;
    uint32_t before = (uint32_t)HW_ENTRIES(HW_POOL_STACKS);
    uint32_t leaf = store_stack(pcs, maps, depth);
    if (leaf == HW_NONE)
        return 0;
    bool old_leaf = leaf < before && hw_runtime.code_generation;
    uint32_t index = old_leaf ? find_by_leaf(leaf, flags) : HW_NONE;
    if (index == HW_NONE) {
        if (HW_ENTRIES(HW_POOL_CONTEXTS) >= HW_CONTEXT_MAX)
            return 0;
        index = hw_pool_take(HW_POOL_CONTEXTS, 1);
        if (index == HW_NONE)
            return 0;
        *HW_ENTRY(HW_POOL_CONTEXTS, struct hw_context_entry, index) =
            (struct hw_context_entry){.leaf = leaf,
                                      .depth = (uint16_t)depth,
                                      .flags = (uint16_t)flags,
                                      .first_tick = hw_ticks_raw() - hw_runtime.tick_base};
        hw_pool_publish(HW_POOL_CONTEXTS);
        if (by_leaf && !by_leaf[leaf])
            by_leaf[leaf] = index;
    }
    insert(contexts, hash, index);
    return index;
}

uint32_t hw_context_get(const uint64_t *pcs, uint32_t depth, uint64_t hash, uint32_t flags)
{
    uint32_t context = search(__atomic_load_n(&contexts, __ATOMIC_ACQUIRE), hash);
    if (hw_likely(context != HW_NONE))
        return context;
    static uint32_t maps[HW_DEPTH_MAX]; /* under the lock */
    for (uint32_t i = 0; i < depth; i++)
        hw_module_find(where(pcs[i]));
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    context = search(contexts, hash);
    if (context == HW_NONE) {
        for (uint32_t i = 0; i < depth; i++)
            maps[i] = hw_module_map(where(pcs[i]));
        context = add_context(pcs, maps, depth, hash, flags);
    }
    hw_lock_drop(&hw_runtime.lock, old);
    if (!context)
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
    return context;
}

bool hw_contexts_start(void)
{
    contexts = new_index(FIRST_CONTEXTS);
    if (!contexts || !grow_nodes())
        return false;
    /* Node 0 and context 0 stand for what is not known. */
    if (hw_pool_take(HW_POOL_STACKS, 1) == HW_NONE || hw_pool_take(HW_POOL_CONTEXTS, 1) == HW_NONE)
        return false;
    node_at(0)->map = HW_NONE;
    hw_pool_publish(HW_POOL_STACKS);
    hw_pool_publish(HW_POOL_CONTEXTS);
    return index_leaves();
}

bool hw_contexts_rebuild(void)
{
    /* The old index's hashes are of this very address space: they hold in the child. A slot that another thread of the
     * parent was writing has no hash yet. Contexts that the copied table does not have are dropped. */
    uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    struct index *old = contexts, *fresh = new_index(old->mask + 1);
    if (!fresh)
        return false;
    for (uint64_t i = 0; i <= old->mask; i++)
        if (old->slot[i].hash && old->slot[i].context < count)
            insert(fresh, old->slot[i].hash, old->slot[i].context);
    for (uint32_t i = 0; i < count; i++) /* in the parent's time; here it was before the beginning */
        HW_ENTRY(HW_POOL_CONTEXTS, struct hw_context_entry, i)->first_tick = 0;
    contexts = fresh;
    nodes.slots = NULL;
    nodes.mask = 0;
    return grow_nodes() && index_leaves();
}
