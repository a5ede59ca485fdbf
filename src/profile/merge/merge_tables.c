/* merge_tables.c - the sum as the tables of a profile file.
 *
 * Canonical: modules are sorted by build id and path, contexts by their stacks from the leaf outwards, strings by their
 * bytes; so that the same sum gives the same tables, in whatever order it came together. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"

/* A string and where its offset goes. */
struct string_place {
    const char *text;
    uint32_t *offset;
};

/* A context in its order: the first two frames, for most comparisons, and all the rest. */
struct ordered {
    uint64_t frame[2]; /* module's rank + 1 and half of the offset's bits: equal ones may still differ */
    struct hw_merge_entry *entry;
    uint32_t reference;
};

struct finisher {
    struct hw_merge *merge;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_error *error;
    struct string_place *string;
    size_t string_count, string_room;
    struct ordered *order;
    size_t context_count; /* the unknown stack's, number 0, included */
    uint32_t node_count;
    bool failed;
};

static void *make_table(struct finisher *finisher, uint32_t type, size_t count)
{
    void *entries = hw_table_make(finisher->tables, finisher->arena, type, count);
    finisher->failed |= !entries;
    return entries;
}

/* ---- strings ---- */

/* TEXT must live until the strings are made, OFFSET is filled then. */
static void add_string(struct finisher *finisher, const char *text, uint32_t *offset)
{
    *offset = 0;
    if (!text || !*text)
        return;
    if (!HW_GROW(finisher->string, finisher->string_room, finisher->string_count + 1)) {
        finisher->failed = true;
        return;
    }
    finisher->string[finisher->string_count++] = (struct string_place){text, offset};
}

static void add_text(struct finisher *finisher, const struct hw_merge_text *text, uint32_t *offset)
{
    add_string(finisher, text->set && !text->differs ? text->text : NULL, offset);
}

static int compare_strings(const void *left, const void *right)
{
    return strcmp(((const struct string_place *)left)->text, ((const struct string_place *)right)->text);
}

/* The empty string, the command's arguments one behind the other, then all others. */
static void make_strings(struct finisher *finisher, struct hw_process_info *process)
{
    const struct hw_merge_text *command = &finisher->merge->command;
    const bool common = command->set && !command->differs && command->count;
    size_t size = 1 + (common ? command->size : 0), used = size;
    if (finisher->string_count)
        qsort(finisher->string, finisher->string_count, sizeof *finisher->string, compare_strings);
    for (size_t i = 0; i < finisher->string_count; i++)
        if (i == 0 || compare_strings(&finisher->string[i - 1], &finisher->string[i]))
            size += strlen(finisher->string[i].text) + 1;
    char *strings = size <= UINT32_MAX ? make_table(finisher, HW_SECTION_STRINGS, size) : NULL;
    if (!strings || finisher->failed) {
        finisher->failed = true;
        return;
    }
    if (common) {
        memcpy(strings + 1, command->text, command->size);
        process->command = 1;
        process->command_count = command->count;
    }
    for (size_t i = 0, last = 0; i < finisher->string_count; i++) {
        if (i == 0 || compare_strings(&finisher->string[i - 1], &finisher->string[i])) {
            const size_t length = strlen(finisher->string[i].text) + 1;
            last = used;
            memcpy(strings + used, finisher->string[i].text, length);
            used += length;
        }
        *finisher->string[i].offset = (uint32_t)last;
    }
}

/* ---- modules and LLVM's frames ---- */

static int compare_bytes(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size)
{
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : HW_ORDER(a_size, b_size);
}

static int compare_modules(const void *left, const void *right)
{
    const struct hw_merge_module *a = *(struct hw_merge_module *const *)left,
                                 *b = *(struct hw_merge_module *const *)right;
    const int order = compare_bytes(a->build_id, a->build_id_size, b->build_id, b->build_id_size);
    return order ? order : strcmp(a->path, b->path);
}

/* Elements of STORE as an array of pointers, sorted. NULL when there is no memory. */
static void **sorted(struct finisher *finisher, const struct hw_store *store,
                     int (*compare)(const void *, const void *))
{
    void **array = malloc(((size_t)store->count + 1) * sizeof *array);
    finisher->failed |= !array;
    for (uint32_t i = 0; array && i < store->count; i++)
        array[i] = hw_store_at(store, i);
    if (array)
        qsort(array, store->count, sizeof *array, compare);
    return array;
}

static void make_maps(struct finisher *finisher)
{
    const uint32_t count = finisher->merge->modules.count;
    struct hw_map_entry *maps = make_table(finisher, HW_SECTION_MAPS, count);
    void **module = sorted(finisher, &finisher->merge->modules, compare_modules);
    for (uint32_t i = 0; maps && module && i < count; i++) {
        struct hw_merge_module *from = module[i];
        from->rank = i;
        maps[i] = (struct hw_map_entry){.start = from->start,
                                        .end = from->end > from->start ? from->end : from->start,
                                        .offset = from->offset,
                                        .build_id_size = from->build_id_size,
                                        .loaded_tick = from->loaded_ns,
                                        .unloaded_tick = from->unloaded_ns,
                                        .flags = from->flags,
                                        .unseen_operations = from->unseen_operations};
        memcpy(maps[i].build_id, from->build_id, from->build_id_size);
        add_string(finisher, from->path, &maps[i].path);
    }
    free(module);
}

static int compare_frames(const void *left, const void *right)
{
    const struct hw_llvm_frame *a = &(*(struct hw_merge_llvm_frame *const *)left)->frame,
                               *b = &(*(struct hw_merge_llvm_frame *const *)right)->frame;
    return HW_ORDER(a->function, b->function) ?: HW_ORDER(a->line_offset, b->line_offset) ?:
           HW_ORDER(a->column, b->column) ?: a->inlined - b->inlined;
}

static void make_frames(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    const uint32_t count = merge->frames.count;
    if (merge->class != HW_MERGE_INDEXED)
        return;
    struct hw_llvm_frame_entry *frames = make_table(finisher, HW_SECTION_LLVM_FRAMES, count);
    void **frame = sorted(finisher, &merge->frames, compare_frames);
    for (uint32_t i = 0; frames && frame && i < count; i++) {
        struct hw_merge_llvm_frame *from = frame[i];
        from->rank = i;
        frames[i] = (struct hw_llvm_frame_entry){.function = from->frame.function,
                                                 .line_offset = from->frame.line_offset,
                                                 .column = from->frame.column,
                                                 .inlined = from->frame.inlined};
        add_string(finisher, from->frame.name, &frames[i].name);
    }
    free(frame);
    /* Where LLVM's frames are the addresses: their numbers as they are now. */
    for (uint32_t i = 1; frame && i < merge->nodes.count; i++) {
        struct hw_merge_node *node = hw_store_at(&merge->nodes, i);
        if (node->module == HW_NONE && node->offset < count)
            node->offset = ((struct hw_merge_llvm_frame *)hw_store_at(&merge->frames, (uint32_t)node->offset))->rank;
    }
}

/* ---- the order of contexts ---- */

static int compare_stacks(const struct hw_merge *merge, uint32_t a, uint32_t b)
{
    while (a != b) {
        const struct hw_merge_node *left = hw_store_at(&merge->nodes, a), *right = hw_store_at(&merge->nodes, b);
        if (!a || !b)
            return a ? 1 : -1;
        if (left->module != right->module) {
            const uint32_t left_rank = hw_merge_rank(merge, left->module),
                           right_rank = hw_merge_rank(merge, right->module);
            if (left_rank != right_rank)
                return left_rank < right_rank ? -1 : 1;
        }
        if (left->offset != right->offset)
            return left->offset < right->offset ? -1 : 1;
        a = left->parent;
        b = right->parent;
    }
    return 0;
}

static int compare_ordered(const void *left, const void *right, void *closure)
{
    const struct ordered *a = left, *b = right;
    for (int i = 0; i < 2; i++)
        if (a->frame[i] != b->frame[i])
            return a->frame[i] < b->frame[i] ? -1 : 1;
    const int order = compare_stacks(closure, a->entry->node, b->entry->node);
    return order ? order : a->entry->pool - b->entry->pool;
}

/* In the order of compare_stacks as far as it goes: frames whose offsets are too long for it look equal to others. */
static void set_first_frames(const struct hw_merge *merge, struct ordered *ordered)
{
    uint32_t number = ordered->entry->node;
    for (int i = 0; i < 2 && number; i++) {
        const struct hw_merge_node *node = hw_store_at(&merge->nodes, number);
        const uint64_t rank = (uint64_t)hw_merge_rank(merge, node->module) + 1, most = (1ull << 40) - 1;
        const bool exact = rank < 1u << 24 && node->offset < most;
        ordered->frame[i] = (rank < 1u << 24 ? rank : (1u << 24) - 1) << 40;
        ordered->frame[i] |= rank < 1u << 24 && node->offset < most ? node->offset : rank < 1u << 24 ? most : 0;
        if (!exact)
            return; /* the second frame decides only where the first ones are surely equal */
        number = node->parent;
    }
}

static void order_contexts(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    size_t count = 0, taken = 0;
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++)
        count += merge->shard[i].entries.count;
    finisher->order = malloc((count + 1) * sizeof *finisher->order);
    if (!finisher->order || count >= HW_NONE - 1) {
        finisher->failed = true;
        return;
    }
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++) {
        for (uint32_t k = 0; k < merge->shard[i].entries.count; k++) {
            struct ordered *ordered = &finisher->order[taken];
            *ordered = (struct ordered){.reference = i << HW_MERGE_ENTRY_BITS | k};
            ordered->entry = hw_merge_entry_at(merge, ordered->reference);
            set_first_frames(merge, ordered);
            taken++;
        }
    }
    qsort_r(finisher->order, taken, sizeof *finisher->order, compare_ordered, merge);
    /* Number 0 is that of unknown stacks: its context is the first one if it is there at all. */
    const bool unknown = taken && !finisher->order[0].entry->node && !finisher->order[0].entry->pool;
    for (size_t i = 0; i < taken; i++)
        finisher->order[i].entry->id = (uint32_t)(i + !unknown);
    finisher->context_count = taken + !unknown;
    if (!unknown) {
        memmove(finisher->order + 1, finisher->order, taken * sizeof *finisher->order);
        finisher->order[0] = (struct ordered){0};
    }
}

/* ---- stacks ---- */

/* Gives NODE and those of its callers that have none their numbers, outermost first. */
static void number_node(struct finisher *finisher, struct hw_stack_node *nodes, uint32_t number)
{
    const struct hw_merge *merge = finisher->merge;
    uint32_t depth = 0, next;
    for (uint32_t at = number; at; depth++) {
        const struct hw_merge_node *node = hw_store_at(&merge->nodes, at);
        if (node->id)
            break;
        at = node->parent;
    }
    next = finisher->node_count + depth;
    finisher->node_count = next;
    for (; depth; depth--) {
        struct hw_merge_node *node = hw_store_at(&merge->nodes, number);
        const struct hw_merge_node *parent = hw_store_at(&merge->nodes, node->parent);
        node->id = --next;
        /* The parent's number is not there yet unless it is an older one: it will be the one before. */
        nodes[next] = (struct hw_stack_node){.pc = node->offset,
                                             .map = hw_merge_rank(merge, node->module),
                                             .parent = !node->parent ? 0
                                                       : parent->id  ? parent->id
                                                                     : next - 1};
        number = node->parent;
    }
}

static void make_contexts(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    struct hw_stack_node *nodes = make_table(finisher, HW_SECTION_STACKS, merge->nodes.count);
    struct hw_context_entry *contexts = make_table(finisher, HW_SECTION_CONTEXTS, finisher->context_count);
    if (!nodes || !contexts)
        return;
    nodes[0].map = HW_NONE;
    finisher->node_count = 1;
    for (size_t i = 0; i < finisher->context_count; i++) {
        const struct hw_merge_entry *entry = finisher->order[i].entry;
        uint32_t depth = 0;
        if (!entry)
            continue;
        number_node(finisher, nodes, entry->node);
        contexts[i].leaf = ((struct hw_merge_node *)hw_store_at(&merge->nodes, entry->node))->id;
        for (uint32_t node = contexts[i].leaf; node; node = nodes[node].parent)
            depth++;
        contexts[i].depth = depth < UINT16_MAX ? (uint16_t)depth : UINT16_MAX;
        contexts[i].flags = (uint16_t)(entry->flags & HW_CONTEXT_NOT_WHOLE) | (entry->told ? 0 : HW_CONTEXT_FREE);
        if (merge->class == HW_MERGE_OWN && entry->told)
            contexts[i].first_tick = entry->sum.own.first_ns;
    }
    finisher->tables->of[HW_SECTION_STACKS].count = finisher->node_count;
}

/* ---- what was counted ---- */

static uint32_t limited(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static struct hw_mib make_mib(const struct hw_profile_context *from, uint32_t context, bool pool, bool sampled)
{
    struct hw_mib mib = {.context = context,
                         .flags = HW_MIB_LIVE_AGE | (pool ? HW_MIB_POOL : 0),
                         .live_bytes = from->live_bytes,
                         .live_blocks = from->live_blocks,
                         .last_alloc_tick = from->last_alloc_ns,
                         .last_alloc_cpu = (uint16_t)from->last_alloc_cpu,
                         .peak_bytes = from->peak_bytes,
                         .peak_blocks = from->peak_blocks,
                         .live_ticks = from->live_age_total_ns,
                         .alloc_threads = limited(from->alloc_threads),
                         .free_threads = limited(from->free_threads),
                         .lifetime_total = (uint64_t)from->lifetime_total_ns,
                         .lifetime_total_high = (uint32_t)(from->lifetime_total_ns >> 64),
                         .last_free_tick = from->last_free_ns,
                         .last_free_cpu = (uint16_t)from->last_free_cpu};
    /* Exact runs that are merged with sampled ones have no variance; their reallocations are not kept. */
#define HW_STORE_MIB(member, as)         mib.as = from->member;
#define HW_STORE_TICKS(member, as)       mib.as = from->member;
#define HW_STORE_ADDED(member, as)       mib.member = from->member;
#define HW_STORE_EVENT(member, variance) sampled ? (mib.variance = from->variance) : (mib.member = from->member);
#define HW_STORE_CODE(member, as)
#define HW_NUMBER(type, member, adds, of, stored, as, ...) HW_STORE_##stored(member, as)
#include "profile/numbers.def"
    if (!from->allocations)
        mib.size_min = UINT64_MAX;
    if (!from->frees)
        mib.lifetime_min = UINT64_MAX;
    return mib;
}

/* FROM without the blocks of LIVE, as a row. Its bounds are those of both. */
static struct hw_access make_access(const struct hw_profile_access *from, const struct hw_profile_access *live,
                                    uint32_t context)
{
    const uint64_t blocks = hw_without(from->blocks, live->blocks);
    struct hw_access access = {.context = context, .flags = from->flags, .type = from->type};
#define HW_STORE_LEAST(member)             access.member = blocks ? from->member : 0;
#define HW_STORE_MOST(member)              access.member = blocks ? from->member : 0;
#define HW_STORE_SUM(member)               access.member = hw_without(from->member, live->member);
#define HW_ACCESS(type, member, adds, ...) HW_STORE_##adds(member)
#include "profile/numbers.def"
    if (!blocks) { /* of densities it is 0 */
        access.accesses_min = UINT64_MAX;
        access.utilization_min = UINT32_MAX;
    }
    return access;
}

static bool has_live_accesses(const struct hw_merge_entry *entry)
{
    const struct hw_profile_accesses *access = entry->sum.own.access;
    return access && (access->live.blocks | access->live.reads | access->live.writes | access->live.unsplit |
                      access->live.saturated_cells);
}

static bool has_inherited(const struct hw_merge_entry *entry)
{
    return entry->sum.own.inherited_blocks || entry->sum.own.inherited_bytes;
}

/* How many told entries satisfy IS, which may be NULL. */
static size_t count_told(const struct finisher *finisher, bool (*is)(const struct hw_merge_entry *entry))
{
    size_t count = 0;
    for (size_t i = 0; i < finisher->context_count; i++) {
        const struct hw_merge_entry *entry = finisher->order[i].entry;
        count += entry && entry->told && (!is || is(entry));
    }
    return count;
}

static void make_own_counts(struct finisher *finisher)
{
    static const struct hw_profile_access none;
    const bool counted = finisher->merge->access_counted;
    const size_t told = count_told(finisher, NULL), live = count_told(finisher, has_live_accesses),
                 inherited = count_told(finisher, has_inherited);
    struct hw_mib *mib = make_table(finisher, HW_SECTION_MIBS, told);
    struct hw_access *access = counted ? make_table(finisher, HW_SECTION_ACCESS, told) : NULL;
    struct hw_access *live_access = counted ? make_table(finisher, HW_SECTION_ACCESS_LIVE, live) : NULL;
    struct hw_inherited *had = make_table(finisher, HW_SECTION_INHERITED, inherited);
    for (size_t i = 0; !finisher->failed && i < finisher->context_count; i++) {
        const struct hw_merge_entry *entry = finisher->order[i].entry;
        if (!entry || !entry->told)
            continue;
        const struct hw_profile_context *sum = &entry->sum.own;
        *mib++ = make_mib(sum, (uint32_t)i, entry->pool, finisher->merge->process.sample_bytes);
        if (has_inherited(entry))
            *had++ = (struct hw_inherited){
                .context = (uint32_t)i,
                .blocks = sum->inherited_blocks,
                .bytes = sum->inherited_bytes,
                .count_variance = sum->inherited_count_variance,
                .bytes_variance = sum->inherited_bytes_variance,
            };
        if (counted && sum->access)
            *access = make_access(&sum->access->all, &sum->access->live, (uint32_t)i);
        else if (counted)
            *access = make_access(&none, &none, (uint32_t)i);
        access += counted;
        if (counted && has_live_accesses(entry))
            *live_access++ = make_access(&sum->access->live, &none, (uint32_t)i);
    }
}

/* Whether the context's entry of accesses says all that is known of its type. */
static bool type_is_said(const struct finisher *finisher, const struct hw_profile_context *sum)
{
    if (!finisher->merge->access_counted || !sum->access)
        return false;
    const struct hw_profile_access *access = &sum->access->all;
    uint64_t starts = 0;
    for (size_t i = 0; i < sizeof sum->starts / sizeof *sum->starts; i++)
        starts |= sum->starts[i];
    return !starts && access->type == sum->type && !(access->flags & HW_ACCESS_TYPES_DIFFER) == !sum->types_differ;
}

static void make_types(struct finisher *finisher)
{
    size_t count = 0;
    for (int store = 0; store < 2; store++) {
        struct hw_context_type *to = store ? make_table(finisher, HW_SECTION_CONTEXT_TYPES, count) : NULL;
        for (size_t i = 0; i < finisher->context_count && (to || !store); i++) {
            const struct hw_merge_entry *entry = finisher->order[i].entry;
            const struct hw_profile_context *sum = entry && entry->told ? &entry->sum.own : NULL;
            if (!sum || !sum->type || sum->type_evidence || type_is_said(finisher, sum))
                continue;
            if (!store) {
                count++;
                continue;
            }
            *to = (struct hw_context_type){
                .context = (uint32_t)i, .flags = sum->types_differ ? HW_CONTEXT_TYPES_DIFFER : 0, .type = sum->type};
            memcpy(to++->starts, sum->starts, sizeof sum->starts);
        }
    }
}

/* Types that the code says which allocates. */
static void make_block_types(struct finisher *finisher)
{
    size_t count = 0;
    for (int store = 0; store < 2; store++) {
        struct hw_block_type *to = store ? make_table(finisher, HW_SECTION_BLOCK_TYPES, count) : NULL;
        for (size_t i = 0; i < finisher->context_count && (to || !store); i++) {
            const struct hw_merge_entry *entry = finisher->order[i].entry;
            const struct hw_profile_context *sum = entry && entry->told ? &entry->sum.own : NULL;
            if (!sum || !sum->type || !sum->type_evidence || sum->types_differ)
                continue;
            if (!store)
                count++;
            else
                *to++ = (struct hw_block_type){
                    .context = (uint32_t)i,
                    .flags = sum->type_evidence | (sum->type_many ? (uint32_t)HW_BLOCK_TYPE_MANY : 0u),
                    .type = sum->type,
                    .size = sum->type_size};
        }
    }
}

/* Fields that not all inputs had are left out. */
static struct hw_llvm_mib known_part(const struct hw_llvm_mib *from, uint32_t known)
{
    struct hw_llvm_mib mib = {{0}};
    for (int i = 1; i < HW_LLVM_FIELDS; i++)
        if (known >> i & 1)
            mib.field[i] = from->field[i];
    return mib;
}

static void make_llvm_counts(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    const uint32_t known = merge->process.llvm_known;
    const bool counted = hw_llvm_has_accesses(known);
    const size_t told = count_told(finisher, NULL);
    struct hw_mib *mib = make_table(finisher, HW_SECTION_MIBS, told);
    /* Also where too little is known for the reports: it stays in the file for exports. */
    struct hw_access *access = make_table(finisher, HW_SECTION_ACCESS, told);
    merge->totals = (struct hw_thread_entry){0};
    for (size_t i = 0; !finisher->failed && i < finisher->context_count; i++) {
        const struct hw_merge_entry *entry = finisher->order[i].entry;
        if (!entry || !entry->told)
            continue;
        const struct hw_llvm_mib sum = known_part(&entry->sum.llvm, known);
        *mib = hw_llvm_to_mib(&sum, (uint32_t)i, known);
        merge->totals.allocations = hw_add_saturating(merge->totals.allocations, mib->allocations);
        merge->totals.bytes = hw_add_saturating(merge->totals.bytes, mib->bytes);
        if (mib->last_free_tick > merge->access_info.harvest_tick)
            merge->access_info.harvest_tick = mib->last_free_tick;
        mib++;
        *access++ = hw_llvm_to_access(&sum, (uint32_t)i);
    }
    merge->totals.frees = merge->totals.allocations;
    merge->access_counted = counted;
    merge->granule = merge->histograms.count ? 8 : 64;
    merge->access_info.flags = HW_ACCESS_UNSPLIT | HW_ACCESS_HARVESTED;
}

/* ---- what refers to contexts and modules ---- */

static int compare_runs_of_words(const void *left, const void *right)
{
    const struct hw_profile_histogram *a = *(struct hw_profile_histogram *const *)left,
                                      *b = *(struct hw_profile_histogram *const *)right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->first_word, b->first_word);
}

static void make_histogram(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    const uint32_t count = merge->access_counted ? merge->histograms.count : 0;
    struct hw_histogram *to = make_table(finisher, HW_SECTION_HISTOGRAM, count);
    for (uint32_t i = 0; i < count; i++) {
        struct hw_profile_histogram *run = hw_store_at(&merge->histograms, i);
        run->context = hw_merge_entry_at(merge, run->context)->id;
    }
    void **run = sorted(finisher, &merge->histograms, compare_runs_of_words);
    for (uint32_t i = 0; to && run && i < count; i++) {
        const struct hw_profile_histogram *from = run[i];
        to[i].context = from->context;
        to[i].first_word = from->first_word;
        to[i].saturated = from->saturated;
        memcpy(to[i].words, from->words, sizeof to[i].words);
    }
    free(run);
}

static int compare_globals(const void *left, const void *right)
{
    const struct hw_global_granule *a = left, *b = right;
    return HW_ORDER(a->map, b->map) ?: HW_ORDER(a->offset, b->offset);
}

static void make_globals(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    struct hw_global_granule *to = make_table(finisher, HW_SECTION_GLOBALS, merge->globals.count);
    for (uint32_t i = 0; to && i < merge->globals.count; i++) {
        to[i] = *(struct hw_global_granule *)hw_store_at(&merge->globals, i);
        to[i].map = hw_merge_rank(merge, to[i].map);
    }
    if (to)
        qsort(to, merge->globals.count, sizeof *to, compare_globals);
}

static int compare_free_stacks(const void *left, const void *right)
{
    const struct hw_free_stack *a = left, *b = right;
    return HW_ORDER(a->alloc_context, b->alloc_context) ?: HW_ORDER(a->free_context, b->free_context);
}

static void make_free_stacks(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    struct hw_free_stack *to = make_table(finisher, HW_SECTION_FREE_STACKS, merge->free_stacks.count);
    for (uint32_t i = 0; to && i < merge->free_stacks.count; i++) {
        const struct hw_merge_free_stack *from = hw_store_at(&merge->free_stacks, i);
        to[i] = (struct hw_free_stack){.alloc_context = hw_merge_entry_at(merge, from->alloc_context)->id,
                                       .free_context = hw_merge_entry_at(merge, from->free_context)->id,
                                       .count = from->count,
                                       .bytes = from->bytes};
    }
    if (to)
        qsort(to, merge->free_stacks.count, sizeof *to, compare_free_stacks);
}

/* ---- the processes ---- */

static int compare_runs(const void *left, const void *right)
{
    const struct hw_merge_run *a = *(struct hw_merge_run *const *)left, *b = *(struct hw_merge_run *const *)right;
    int order = strcmp(a->executable, b->executable);
    order = order ? order : strcmp(a->allocator, b->allocator);
    if (order)
        return order;
    if (a->run.mode != b->run.mode)
        return a->run.mode < b->run.mode ? -1 : 1;
    order = compare_bytes(a->run.build_id, a->run.build_id_size, b->run.build_id, b->run.build_id_size);
    return order ? order : HW_ORDER(a->run.sample_bytes, b->run.sample_bytes);
}

static void make_runs(struct finisher *finisher)
{
    const uint32_t count = finisher->merge->runs.count;
    struct hw_run *to = make_table(finisher, HW_SECTION_RUNS, count);
    void **run = sorted(finisher, &finisher->merge->runs, compare_runs);
    for (uint32_t i = 0; to && run && i < count; i++) {
        const struct hw_merge_run *from = run[i];
        to[i] = from->run;
        add_string(finisher, from->executable, &to[i].executable);
        add_string(finisher, from->allocator, &to[i].allocator);
    }
    free(run);
}

static int compare_notes(const void *left, const void *right)
{
    const struct hw_merge_note *a = *(struct hw_merge_note *const *)left, *b = *(struct hw_merge_note *const *)right;
    return a->code != b->code ? a->code < b->code ? -1 : 1 : strcmp(a->text, b->text);
}

static void make_notes(struct finisher *finisher)
{
    const uint32_t count = finisher->merge->notes.count;
    struct hw_note *to = make_table(finisher, HW_SECTION_NOTES, count);
    void **note = sorted(finisher, &finisher->merge->notes, compare_notes);
    for (uint32_t i = 0; to && note && i < count; i++) {
        const struct hw_merge_note *from = note[i];
        to[i] = (struct hw_note){.code = from->code, .count = from->count, .tick = from->first_ns};
        add_string(finisher, from->text, &to[i].text);
    }
    free(note);
}

static int compare_regions(const void *left, const void *right)
{
    const struct hw_merge_region *a = *(struct hw_merge_region *const *)left,
                                 *b = *(struct hw_merge_region *const *)right;
    const int order = strcmp(a->name, b->name);
    return order ? order : HW_ORDER(a->sum.flags & HW_REGION_THREAD, b->sum.flags & HW_REGION_THREAD);
}

static void make_regions(struct finisher *finisher)
{
    const uint32_t count = finisher->merge->regions.count;
    struct hw_region *to = count ? make_table(finisher, HW_SECTION_REGIONS, count) : NULL;
    void **region = to ? sorted(finisher, &finisher->merge->regions, compare_regions) : NULL;
    for (uint32_t i = 0; region && i < count; i++) {
        const struct hw_merge_region *from = region[i];
        to[i] = from->sum;
        add_string(finisher, from->name, &to[i].name);
    }
    free(region);
}

static void make_access_info(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    struct hw_access_info *to = merge->access_counted ? make_table(finisher, HW_SECTION_ACCESS_INFO, 1) : NULL;
    if (!to)
        return;
    *to = merge->access_info;
    to->granule = merge->granule;
    if (merge->class == HW_MERGE_OWN)
        to->harvest_tick = merge->duration_ns;
}

static struct hw_process_info *make_process(struct finisher *finisher)
{
    struct hw_merge *merge = finisher->merge;
    struct hw_process_info *to = make_table(finisher, HW_SECTION_PROCESS, 1);
    if (!to)
        return NULL;
    *to = merge->process;
    to->flags |= HW_PROCESS_MERGED;
    to->clock_ticks = 1;
    to->clock_ns = merge->class == HW_MERGE_OWN ? 1 : HW_LLVM_TICK_NS;
    to->end_tick = merge->duration_ns;
    to->mode = merge->access_counted ? HW_MODE_ACCESS : merge->class == HW_MERGE_OWN ? to->mode : HW_MODE_HEAP;
    add_text(finisher, &merge->executable, &to->executable);
    add_text(finisher, &merge->allocator, &to->allocator);
    add_text(finisher, &merge->allocator_path, &to->allocator_path);
    add_text(finisher, &merge->options, &to->options);
    return to;
}

/* ---- the whole ---- */

bool hw_merge_finish(struct hw_merge *merge, struct hw_arena *arena, struct hw_tables *tables, struct hw_error *error)
{
    struct finisher finisher = {.merge = merge, .arena = arena, .tables = tables, .error = error};
    memset(tables, 0, sizeof *tables);
    if (merge->failed || merge->class == HW_MERGE_NOTHING) {
        hw_error_set(error, merge->failed ? "cannot merge: not enough memory" : "nothing was merged");
        return false;
    }
    make_maps(&finisher);
    if (!finisher.failed)
        make_frames(&finisher);
    if (!finisher.failed)
        order_contexts(&finisher);
    if (!finisher.failed)
        make_contexts(&finisher);
    if (!finisher.failed) {
        (merge->class == HW_MERGE_OWN ? make_own_counts : make_llvm_counts)(&finisher);
        if (merge->class == HW_MERGE_OWN)
            make_types(&finisher), make_block_types(&finisher);
        make_histogram(&finisher);
        make_globals(&finisher);
        make_free_stacks(&finisher);
        finisher.failed |=
            !hw_merge_words_finish(merge, arena, tables) || !hw_merge_samples_finish(merge, arena, tables) ||
            !hw_merge_sharing_finish(merge, arena, tables) || !hw_merge_allocator_finish(merge, arena, tables) ||
            !hw_merge_places_finish(merge, arena, tables) ||
            (merge->class == HW_MERGE_OWN && !hw_merge_distributions_finish(merge, arena, tables));
        make_runs(&finisher);
        make_notes(&finisher);
        make_regions(&finisher);
        finisher.failed |= !hw_merge_threads_finish(merge, arena, tables);
        make_access_info(&finisher);
        struct hw_process_info *process = make_process(&finisher);
        if (!finisher.failed)
            make_strings(&finisher, process);
        finisher.failed = finisher.failed || !hw_merge_fields_finish(merge, arena, tables);
        finisher.failed = finisher.failed || !hw_merge_symbols_finish(merge, arena, tables);
    }
    free(finisher.string);
    free(finisher.order);
    if (finisher.failed)
        hw_error_set(error, "cannot merge: not enough memory");
    return !finisher.failed;
}
