/* merge_contexts.c - call stacks, and what was counted for them.
 *
 * A stack is known by a hash of 128 bits that is made from the outermost frame on: each frame's is made of its
 * caller's, its module and its address. The stack itself is read only when the hash is new; then it enters the tree.
 * The contexts of an input are sorted by shard first, so that each lock is taken once an input. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static inline struct hw_key frame_key(struct hw_key caller, uint32_t module, uint64_t offset)
{
    const uint64_t words[4] = {caller.low, caller.high, offset, module};
    const XXH128_hash_t hash = XXH3_128bits(words, sizeof words);
    return (struct hw_key){hash.low64, hash.high64};
}

static const struct hw_key root_key;

bool hw_merge_contexts_start(struct hw_merge *merge)
{
    const size_t size = offsetof(struct hw_merge_entry, sum) +
                        (merge->class == HW_MERGE_OWN ? sizeof(struct hw_profile_context) : sizeof(struct hw_llvm_mib));
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++)
        merge->shard[i].entries.size = (size + 15) & ~(size_t)15;
    return true;
}

/* ---- frames ---- */

/* The frame PC in map MAP. False: frames there are passed over. */
static inline bool place_frame(const struct hw_merge *merge, const struct hw_merge_input *input, uint32_t map,
                               uint64_t pc, uint32_t *module, uint64_t *offset)
{
    if (map < input->map_count) {
        const struct hw_merge_map *at = &input->map[map];
        *module = at->module;
        *offset = at->generated ? 0 : pc - at->bias;
        return !at->skipped;
    }
    *module = HW_NONE;
    /* Where it lay in a process that is gone says nothing, unless it is a number of LLVM's. */
    *offset = merge->class == HW_MERGE_OWN       ? 0
              : merge->class == HW_MERGE_INDEXED ? pc < input->frame_count ? input->frame[pc] : HW_NONE
                                                 : pc;
    return true;
}

/* The call of (MODULE, OFFSET) from PARENT. HW_NONE when there is no memory. The tree's lock is held. */
static uint32_t add_node(struct hw_merge *merge, struct hw_key key, uint32_t parent, uint32_t module, uint64_t offset)
{
    bool added;
    const uint32_t number = hw_store_number(&merge->nodes, key, &added);
    if (added)
        *(struct hw_merge_node *)hw_store_at(&merge->nodes, number) =
            (struct hw_merge_node){.offset = offset, .module = module, .parent = parent};
    return number;
}

/* ---- the contexts of one input ---- */

/* One context of an input on its way into the tables. */
struct item {
    struct hw_key key; /* of its stack */
    uint32_t source;   /* its number in the input */
    uint32_t leaf;     /* the node, or the index of the context, by which the input knows its stack */
    uint32_t reference;
    bool pool, told;
    struct hw_merge_entry *entry;
};

struct batch {
    struct hw_merge *merge;
    const struct hw_merge_input *input;
    struct item *item;
    size_t count;
    struct hw_key *key; /* by node of the input */
    uint32_t *fresh;    /* items whose contexts are new */
    size_t fresh_count;
    const struct hw_profile_context **context; /* by number, of profiles */
};

/* Threads of two processes are different ones. Contexts of one process that are one here (a library that was loaded
 * twice) may have the same threads: the greater number is what is known. */
static void add_threads(struct hw_merge_entry *entry, const struct hw_profile_context *from, uint32_t input)
{
    if (entry->input != input) {
        entry->input = input;
        entry->input_alloc_threads = entry->input_free_threads = 0;
    }
    if (from->alloc_threads > entry->input_alloc_threads) {
        hw_sum(&entry->sum.own.alloc_threads, from->alloc_threads - entry->input_alloc_threads);
        entry->input_alloc_threads = from->alloc_threads;
    }
    if (from->free_threads > entry->input_free_threads) {
        hw_sum(&entry->sum.own.free_threads, from->free_threads - entry->input_free_threads);
        entry->input_free_threads = from->free_threads;
    }
}

/* False when there is no memory. */
static bool add_own(struct hw_merge_entry *entry, const struct hw_profile_context *from, uint32_t input)
{
    struct hw_profile_context *to = &entry->sum.own;
    if (!entry->told) {
        *to = (struct hw_profile_context){.first_ns = UINT64_MAX};
        entry->told = true;
    }
    const uint64_t alloc_threads = to->alloc_threads, free_threads = to->free_threads;
    hw_profile_context_add(to, from);
    to->alloc_threads = alloc_threads;
    to->free_threads = free_threads;
    add_threads(entry, from, input);
    if (!from->access)
        return true;
    if (!to->access)
        to->access = calloc(1, sizeof *to->access);
    if (!to->access)
        return false;
    hw_profile_accesses_add(to->access, from->access);
    return true;
}

static bool add_item(struct batch *batch, struct hw_merge_entry *entry, const struct item *item)
{
    const struct hw_merge_input *input = batch->input;
    if (input->profile)
        entry->flags |= input->profile->context_entries[item->source].flags;
    if (!item->told)
        return true;
    if (batch->merge->class == HW_MERGE_OWN)
        return add_own(entry, batch->context[item->source], input->serial);
    const struct hw_llvm_mib *mib =
        input->llvm ? &input->llvm->contexts[item->source].mib : &input->profile->llvm->mibs[item->source];
    entry->told = true;
    if (mib->field[HW_LLVM_ALLOC_CPU] > UINT16_MAX || mib->field[HW_LLVM_FREE_CPU] > UINT16_MAX) {
        struct hw_llvm_mib limited = *mib; /* as files can hold it */
        hw_keep_smaller(&limited.field[HW_LLVM_ALLOC_CPU], UINT16_MAX);
        hw_keep_smaller(&limited.field[HW_LLVM_FREE_CPU], UINT16_MAX);
        hw_llvm_mib_add(&entry->sum.llvm, &limited);
        return true;
    }
    hw_llvm_mib_add(&entry->sum.llvm, mib);
    return true;
}

/* ---- into the shards ---- */

static uint32_t shard_of(const struct item *item)
{
    return (uint32_t)(item->key.high >> (64 - HW_MERGE_SHARD_BITS));
}

/* Where the items of each shard begin in ORDER, which is filled. */
static void sort_by_shard(const struct batch *batch, uint32_t *order, size_t begin[HW_MERGE_SHARDS + 1])
{
    size_t next[HW_MERGE_SHARDS];
    memset(begin, 0, (HW_MERGE_SHARDS + 1) * sizeof *begin);
    for (size_t i = 0; i < batch->count; i++)
        begin[shard_of(&batch->item[i]) + 1]++;
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++) {
        begin[i + 1] += begin[i];
        next[i] = begin[i];
    }
    for (size_t i = 0; i < batch->count; i++)
        order[next[shard_of(&batch->item[i])]++] = (uint32_t)i;
}

/* Blocks of pools are contexts of their own. */
static struct hw_key entry_key(const struct item *item)
{
    struct hw_key key = item->key;
    key.low ^= item->pool ? 0x6c6f6f70 : 0;
    return key;
}

enum {
    AHEAD = 16, /* items whose places are fetched early */
    BLOCK = 8,  /* items whose entries are found before anything is added to them */
};

static void prefetch(const void *bytes, size_t size)
{
    for (size_t at = 0; bytes && at < size; at += 64)
        __builtin_prefetch((const char *)bytes + at, 1);
}

/* What is to be added for the item. */
static const void *item_source(const struct batch *batch, const struct item *item)
{
    return !item->told          ? NULL
           : batch->input->llvm ? &batch->input->llvm->contexts[item->source].mib
                                : (const void *)batch->context[item->source];
}

/* Finds the entry of the item, or makes it. */
static bool find_entry(struct batch *batch, struct hw_merge_shard *shard, uint32_t number, uint32_t place)
{
    struct item *item = &batch->item[place];
    bool added;
    const uint32_t index = hw_store_number(&shard->entries, entry_key(item), &added);
    if (index == HW_NONE || index >> HW_MERGE_ENTRY_BITS)
        return false;
    item->reference = number << HW_MERGE_ENTRY_BITS | index;
    item->entry = hw_store_at(&shard->entries, index);
    if (added) {
        item->entry->pool = item->pool;
        batch->fresh[batch->fresh_count++] = place;
    }
    return true;
}

static bool add_shard(struct batch *batch, uint32_t number, const uint32_t *order, size_t begin, size_t end)
{
    struct hw_merge_shard *shard = &batch->merge->shard[number];
    bool fine = true;
    pthread_mutex_lock(&shard->lock);
    for (size_t first = begin; fine && first < end; first += BLOCK) {
        const size_t behind = end - first < BLOCK ? end : first + BLOCK;
        for (size_t i = first; fine && i < behind; i++) {
            if (i + AHEAD < end)
                hw_index_prefetch(&shard->entries.index, entry_key(&batch->item[order[i + AHEAD]]));
            fine = find_entry(batch, shard, number, order[i]);
            if (fine)
                prefetch(batch->item[order[i]].entry, shard->entries.size);
            prefetch(item_source(batch, &batch->item[order[i]]), sizeof(struct hw_llvm_mib));
        }
        for (size_t i = first; fine && i < behind; i++)
            fine = add_item(batch, batch->item[order[i]].entry, &batch->item[order[i]]);
    }
    pthread_mutex_unlock(&shard->lock);
    return fine;
}

static bool add_items(struct batch *batch)
{
    size_t begin[HW_MERGE_SHARDS + 1];
    uint32_t *order = malloc((batch->count + 1) * sizeof *order);
    batch->fresh = malloc((batch->count + 1) * sizeof *batch->fresh);
    bool fine = order && batch->fresh;
    if (fine)
        sort_by_shard(batch, order, begin);
    for (uint32_t i = 0; fine && i < HW_MERGE_SHARDS; i++) {
        /* Inputs begin at different shards: they do not wait for one another all the way. */
        const uint32_t shard = (i + batch->input->serial * 29) % HW_MERGE_SHARDS;
        if (begin[shard] < begin[shard + 1])
            fine = add_shard(batch, shard, order, begin[shard], begin[shard + 1]);
    }
    free(order);
    return fine;
}

/* ---- profiles ---- */

static bool hash_nodes(struct batch *batch)
{
    const struct hw_profile *profile = batch->input->profile;
    batch->key = malloc((profile->node_count + 1) * sizeof *batch->key);
    if (!batch->key)
        return false;
    batch->key[0] = root_key;
    for (size_t i = 1; i < profile->node_count; i++) {
        const struct hw_stack_node *node = &profile->nodes[i];
        const struct hw_key caller = batch->key[node->parent];
        uint32_t module;
        uint64_t offset;
        const bool told = place_frame(batch->merge, batch->input, node->map, node->pc, &module, &offset);
        batch->key[i] = told ? frame_key(caller, module, offset) : caller;
    }
    return true;
}

/* The node of the stack that ends at LEAF of the profile. HW_NONE when there is no memory. */
static uint32_t insert_stack(struct batch *batch, uint32_t leaf, uint32_t *path)
{
    const struct hw_profile *profile = batch->input->profile;
    struct hw_merge *merge = batch->merge;
    uint32_t found = 0, module;
    uint64_t offset;
    size_t count = 0;
    for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
        if (!place_frame(merge, batch->input, profile->nodes[node].map, profile->nodes[node].pc, &module, &offset))
            continue;
        found = hw_index_find(&merge->nodes.index, batch->key[node]);
        if (found != HW_NONE)
            break;
        found = 0;
        path[count++] = node;
    }
    while (count > 0 && found != HW_NONE) {
        const struct hw_stack_node *node = &profile->nodes[path[--count]];
        place_frame(merge, batch->input, node->map, node->pc, &module, &offset);
        found = add_node(merge, batch->key[path[count]], found, module, offset);
    }
    return found;
}

static bool insert_stacks(struct batch *batch)
{
    const size_t nodes = batch->input->profile->node_count;
    bool fine = true;
    uint32_t *path = batch->fresh_count ? malloc((nodes + 1) * sizeof *path) : NULL;
    if (batch->fresh_count && !path)
        return false;
    pthread_mutex_lock(&batch->merge->tree_lock);
    for (size_t i = 0; fine && i < batch->fresh_count; i++) {
        const struct item *item = &batch->item[batch->fresh[i]];
        const uint32_t node = insert_stack(batch, item->leaf, path);
        item->entry->node = node;
        fine = node != HW_NONE;
    }
    pthread_mutex_unlock(&batch->merge->tree_lock);
    free(path);
    return fine;
}

static void push_item(struct batch *batch, uint32_t id, uint32_t leaf, bool pool, bool told)
{
    batch->item[batch->count++] =
        (struct item){.key = batch->key[leaf], .source = id, .leaf = leaf, .pool = pool, .told = told};
}

/* Context ID, of which nothing but its stack may be known. */
static void push_named(struct batch *batch, uint32_t id, uint32_t *number)
{
    if (number[id])
        return;
    push_item(batch, id, batch->input->profile->context_entries[id].leaf, false, false);
    number[id] = (uint32_t)batch->count;
}

/* Those that what was observed of the allocator names. Not those of slow operations, which may not be among the slowest
 * of all: they are call sites, too. */
static void name_observed(struct batch *batch, uint32_t *number)
{
    const struct hw_profile *profile = batch->input->profile;
    const struct hw_profile_allocator *observed = profile->observed;
    const struct hw_profile_places *places = profile->places;
    for (size_t i = 0; observed && profile->context_entry_count && i < observed->site_count; i++)
        push_named(batch, observed->sites[i].context, number);
    for (size_t i = 0; places && i < places->pinned_count; i++)
        push_named(batch, places->pinned[i].context, number);
    for (size_t i = 0; places && i < places->pair_count; i++) {
        if (places->pairs[i].context != HW_NONE)
            push_named(batch, places->pairs[i].context, number);
        if (places->pairs[i].other != HW_NONE)
            push_named(batch, places->pairs[i].other, number);
    }
}

/* All contexts with blocks, and those that others name. NUMBER, by context, is the item's + 1. */
static bool collect_items(struct batch *batch, uint32_t *number)
{
    const struct hw_profile *profile = batch->input->profile;
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *context = &profile->contexts[i];
        batch->context[context->id] = context;
        if (profile->llvm && !profile->llvm->mibs[context->id].field[HW_LLVM_ALLOC_COUNT])
            continue;
        push_item(batch, context->id, context->leaf, context->pool, true);
        number[context->id] = (uint32_t)batch->count;
    }
    for (size_t i = 0; i < profile->free_stack_count; i++) {
        push_named(batch, profile->free_stacks[i].alloc_context, number);
        push_named(batch, profile->free_stacks[i].free_context, number);
    }
    for (size_t i = 0; i < profile->freed_word_count; i++)
        push_named(batch, profile->freed_words[i].free_context, number);
    for (size_t i = 0; i < profile->sample_context_count; i++)
        push_named(batch, profile->sample_contexts[i].context, number);
    for (size_t i = 0; i < profile->sample_count_count; i++)
        push_named(batch, profile->sample_counts[i].context, number);
    for (size_t i = 0; i < profile->side_count; i++)
        push_named(batch, profile->sides[i].context, number);
    for (size_t i = 0; i < profile->role_count; i++)
        if (profile->roles[i].context != HW_NONE)
            push_named(batch, profile->roles[i].context, number);
    name_observed(batch, number);
    return true;
}

/* ---- what refers to contexts ---- */

static bool add_free_stack(struct hw_merge *merge, uint32_t alloc, uint32_t freed, uint64_t count, uint64_t bytes)
{
    bool added;
    const struct hw_key key = {alloc, freed};
    struct hw_merge_free_stack *stack = hw_store_intern(&merge->free_stacks, key, &added);
    if (!stack)
        return false;
    stack->alloc_context = alloc;
    stack->free_context = freed;
    hw_sum(&stack->count, count);
    hw_sum(&stack->bytes, bytes);
    return true;
}

/* The run of words from FIRST on; NULL when there is no memory. */
static struct hw_profile_histogram *histogram_run(struct hw_merge *merge, uint32_t context, uint32_t first)
{
    bool added;
    const struct hw_key key = {context, first};
    struct hw_profile_histogram *run = hw_store_intern(&merge->histograms, key, &added);
    if (run) {
        run->context = context;
        run->first_word = first;
    }
    return run;
}

static bool add_histogram(struct hw_merge *merge, uint32_t context, const struct hw_profile_histogram *from)
{
    struct hw_profile_histogram *to = histogram_run(merge, context, from->first_word);
    if (!to)
        return false;
    hw_sum(&to->saturated, from->saturated);
    for (size_t i = 0; i < HW_HISTOGRAM_WORDS; i++)
        hw_sum(&to->words[i], from->words[i]);
    return true;
}

static bool add_global(struct hw_merge *merge, uint32_t module, const struct hw_global_granule *from)
{
    bool added;
    const struct hw_key key = {from->offset, module};
    struct hw_global_granule *to = hw_store_intern(&merge->globals, key, &added);
    if (!to)
        return false;
    to->map = module;
    to->offset = from->offset;
    to->flags |= from->flags;
    hw_sum(&to->reads, from->reads);
    hw_sum(&to->writes, from->writes);
    hw_sum(&to->unsplit, from->unsplit);
    return true;
}

/* NUMBER becomes, by context of the input, its reference, or HW_NONE. */
static bool add_referring(struct batch *batch, uint32_t *number)
{
    const struct hw_profile *profile = batch->input->profile;
    struct hw_merge *merge = batch->merge;
    bool fine = true;
    for (size_t i = 0; i < profile->context_entry_count; i++)
        number[i] = number[i] ? batch->item[number[i] - 1].reference : HW_NONE;
    pthread_mutex_lock(&merge->lock);
    for (size_t i = 0; fine && i < profile->free_stack_count; i++) {
        const struct hw_free_stack *stack = &profile->free_stacks[i];
        fine = add_free_stack(merge, number[stack->alloc_context], number[stack->free_context], stack->count,
                              stack->bytes);
    }
    for (size_t i = 0; fine && i < profile->global_count; i++) {
        const uint32_t map = profile->globals[i].map;
        fine = add_global(merge, map < batch->input->map_count ? batch->input->map[map].module : HW_NONE,
                          &profile->globals[i]);
    }
    for (size_t i = 0; fine && i < profile->histogram_count; i++)
        if (number[profile->histogram[i].context] != HW_NONE)
            fine = add_histogram(merge, number[profile->histogram[i].context], &profile->histogram[i]);
    fine = fine && hw_merge_words_add(merge, profile, number) && hw_merge_samples_add(merge, batch->input, number) &&
           hw_merge_sharing_add(merge, batch->input, number) && hw_merge_allocator_add(merge, profile, number) &&
           hw_merge_places_add(merge, profile, number) && hw_merge_distributions_add(merge, profile, number);
    pthread_mutex_unlock(&merge->lock);
    return fine;
}

bool hw_merge_sum_profile(struct hw_merge *merge, const struct hw_merge_input *input)
{
    const struct hw_profile *profile = input->profile;
    struct batch batch = {.merge = merge, .input = input};
    uint32_t *number = calloc(profile->context_entry_count + 1, sizeof *number);
    batch.context = calloc(profile->context_entry_count + 1, sizeof *batch.context);
    batch.item = malloc((profile->context_entry_count + 1) * sizeof *batch.item);
    const bool fine = number && batch.context && batch.item && hash_nodes(&batch) && collect_items(&batch, number) &&
                      add_items(&batch) && insert_stacks(&batch) && add_referring(&batch, number);
    free(number);
    free(batch.context);
    free(batch.item);
    free(batch.key);
    free(batch.fresh);
    return fine;
}

/* ---- LLVM's files ---- */

/* The map that PC lies in, tried first where the last one lay. */
static uint32_t map_of(const struct hw_merge_input *input, uint64_t pc, uint32_t *last)
{
    if (*last < input->map_count && pc >= input->map[*last].start && pc < input->map[*last].end)
        return *last;
    for (uint32_t i = 0; i < input->map_count; i++)
        if (pc >= input->map[i].start && pc < input->map[i].end)
            return *last = i;
    return HW_NONE;
}

/* The keys of all frames of a stack, outermost first: KEY[0] is the root's, KEY[count] the stack's. KEY may be NULL. */
static struct hw_key hash_stack(const struct batch *batch, const struct hw_llvm_context *context, uint32_t *last,
                                struct hw_key *key)
{
    const struct hw_merge_input *input = batch->input;
    const uint64_t *stack = input->llvm->stacks + context->first;
    struct hw_key at = root_key;
    for (uint32_t i = context->count; i-- > 0;) {
        uint32_t module;
        uint64_t offset;
        if (key)
            *key++ = at;
        place_frame(batch->merge, input, map_of(input, stack[i], last), stack[i], &module, &offset);
        at = frame_key(at, module, offset);
    }
    if (key)
        *key = at;
    return at;
}

static uint32_t insert_llvm_stack(struct batch *batch, const struct hw_llvm_context *context, uint32_t *last)
{
    const struct hw_merge_input *input = batch->input;
    struct hw_merge *merge = batch->merge;
    uint32_t known = context->count, node = 0;
    hash_stack(batch, context, last, batch->key);
    for (; known > 0; known--) {
        node = hw_index_find(&merge->nodes.index, batch->key[known]);
        if (node != HW_NONE)
            break;
        node = 0;
    }
    while (known < context->count && node != HW_NONE) {
        const uint64_t pc = input->llvm->stacks[context->first + context->count - 1 - known];
        uint32_t module;
        uint64_t offset;
        place_frame(merge, input, map_of(input, pc, last), pc, &module, &offset);
        node = add_node(merge, batch->key[++known], node, module, offset);
    }
    return node;
}

static bool insert_llvm_stacks(struct batch *batch)
{
    const struct hw_llvm_profile *profile = batch->input->llvm;
    uint32_t deepest = 0, last = 0;
    bool fine = true;
    for (size_t i = 0; i < batch->fresh_count; i++) {
        const uint32_t count = profile->contexts[batch->item[batch->fresh[i]].source].count;
        deepest = count > deepest ? count : deepest;
    }
    batch->key = malloc(((size_t)deepest + 1) * sizeof *batch->key);
    if (!batch->key)
        return false;
    pthread_mutex_lock(&batch->merge->tree_lock);
    for (size_t i = 0; fine && i < batch->fresh_count; i++) {
        const struct item *item = &batch->item[batch->fresh[i]];
        const uint32_t node = insert_llvm_stack(batch, &profile->contexts[item->source], &last);
        item->entry->node = node;
        fine = node != HW_NONE;
    }
    pthread_mutex_unlock(&batch->merge->tree_lock);
    return fine;
}

static bool add_cells(struct hw_merge *merge, uint32_t context, const struct hw_llvm_context *from)
{
    const uint64_t cells = from->mib.field[HW_LLVM_HISTOGRAM_SIZE];
    for (uint64_t first = 0; first < cells; first += HW_HISTOGRAM_WORDS) {
        struct hw_profile_histogram *run = NULL;
        for (uint64_t i = 0; i < HW_HISTOGRAM_WORDS && first + i < cells; i++) {
            if (!from->histogram[first + i])
                continue;
            if (!run && !(run = histogram_run(merge, context, (uint32_t)first)))
                return false;
            hw_sum(&run->words[i], from->histogram[first + i]);
        }
    }
    return true;
}

static bool add_all_cells(struct batch *batch)
{
    bool fine = true, any = false;
    for (size_t i = 0; i < batch->count; i++)
        any |= batch->input->llvm->contexts[batch->item[i].source].histogram != NULL;
    if (!any)
        return true;
    pthread_mutex_lock(&batch->merge->lock);
    for (size_t i = 0; fine && i < batch->count; i++) {
        const struct hw_llvm_context *context = &batch->input->llvm->contexts[batch->item[i].source];
        fine = !context->histogram || add_cells(batch->merge, batch->item[i].reference, context);
    }
    pthread_mutex_unlock(&batch->merge->lock);
    return fine;
}

bool hw_merge_sum_llvm(struct hw_merge *merge, const struct hw_merge_input *input)
{
    const struct hw_llvm_profile *profile = input->llvm;
    struct batch batch = {.merge = merge, .input = input};
    uint32_t last = 0;
    batch.item = malloc((profile->context_count + 1) * sizeof *batch.item);
    bool fine = batch.item != NULL && profile->context_count < HW_NONE;
    for (size_t i = 0; fine && i < profile->context_count; i++) {
        const struct hw_llvm_context *context = &profile->contexts[i];
        if (!context->mib.field[HW_LLVM_ALLOC_COUNT])
            continue;
        batch.item[batch.count++] =
            (struct item){.key = hash_stack(&batch, context, &last, NULL), .source = (uint32_t)i, .told = true};
    }
    fine = fine && add_items(&batch) && insert_llvm_stacks(&batch) && add_all_cells(&batch);
    free(batch.item);
    free(batch.key);
    free(batch.fresh);
    return fine;
}
