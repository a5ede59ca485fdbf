/* keeps.c - who keeps what the program can reach: blocks by context and keeper, and the pointers between them.
 *
 * Keepers are a tree: pointers in variables below variables, stacks and registers below threads. Each block has the
 * keeper that all pointers to it come from, straight or by way of other blocks; where they come from several, the
 * nearest one above these. Found by going on from a block again whenever its keeper has changed: at most as often as
 * the tree is deep. So what a variable keeps alone is exact, whatever the structure below it.
 *
 * What several variables reach is often behind one block, which one of them is meant to own and others refer back to.
 * So blocks that variables point to are keepers themselves, of what is only reached through them.
 *
 * Old values on stacks are frequent, and functions hold for a moment what variables keep for good. So stacks and
 * registers only keep what is not reached from variables.
 *
 * Then keepers of blocks are replaced by nodes (a context and a keeper), and a last scan counts the pointers between
 * nodes. All memory is reserved once and used as far as it is needed. */
#include "base/order.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/graph/internal.h"
#include "runtime/heap/heap.h"

#define WAITING_MOST    (1u << 19)
#define SLOTS_MOST      (1u << 18)
#define KEEPERS_MOST    (1u << 17)
#define ENTRIES_MOST    (1u << 20) /* nodes; edges */
#define ENTRIES_LEAST   (1u << 14)
#define HEAP_BY_ENTRIES 4096 /* so many bytes of blocks for each */
#define HASHES_LEAST    (1u << 12)
#define LABEL_BYTES     3
#define LABELS          (1u << 8 * LABEL_BYTES)
#define BLOCKS_MOST     (1ul << 32)
#define BLOCKS_LARGE    (1u << 20) /* from so many on labels lie in huge pages: 3 MiB of them */
#define POINTERS_APART  64         /* a variable with more pointers than that is one keeper */
#define LOCALS_APART    1024       /* the same for all thread-local data of a thread */
#define NEARBY          64         /* bytes between pointers that belong together where there are no symbols */

/* A pointer in data of modules, or in thread-local data. */
struct slot {
    uintptr_t address;
    uint64_t word;
    uintptr_t start; /* of its variable */
    uint64_t size;   /* 0: not known */
    uint32_t map, tid;
    uintptr_t thread_pointer;
    uint32_t keeper;
    uint32_t tls_map; /* of thread-local data: of its module, or HW_NONE */
    uint64_t tls_offset;
};

/* Entries that are appended, and an index of them by two numbers. */
struct table {
    uint64_t *hashes; /* key; open addressing */
    uint32_t *entry;  /* of it, + 1 */
    uint32_t slots;   /* a power of two */
    uint32_t count, most;
};

static struct {
    struct hw_node *waiting;
    uint32_t waiting_count;
    struct hw_ring ring;
    struct hw_ahead ahead;
    bool overflow;
    struct slot *slot;
    uint32_t slot_count;
    uint64_t slots_seen;
    bool symbols; /* of the module at hand: */
    uint32_t first, end;
    struct hw_keeper *keeper;
    uintptr_t *target_of; /* by keeper: its block */
    uint32_t keepers, other, targets;
    uint32_t latest_thread; /* keeper */
    uint32_t stack_thread;  /* whose frames are known; 0: nobody's */
    uint8_t *label;         /* by number of the block, 3 bytes: keeper, later node */
    uint32_t blocks;
    struct hw_kept *node; /* by number, from 1 on */
    struct hw_keep_edge *edge;
    struct table nodes, edges;
    uint32_t from; /* keeper that words belong to, or node: */
    uint32_t from_flags;
    uintptr_t from_address;
    bool momentary;
    uint32_t latest_ordinal, latest_label;
    struct hw_visit_room *room; /* where results go; NULL: into the file */
    struct hw_keep_info info;
} keeps;

/* ---- labels ---- */

static uint32_t label_of(uint32_t ordinal)
{
    const uint8_t *at = keeps.label + (uint64_t)ordinal * LABEL_BYTES;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

static void set_label(uint32_t ordinal, uint32_t label)
{
    uint8_t *at = keeps.label + (uint64_t)ordinal * LABEL_BYTES;
    at[0] = (uint8_t)label;
    at[1] = (uint8_t)(label >> 8);
    at[2] = (uint8_t)(label >> 16);
}

static bool is_momentary(uint32_t keeper)
{
    while (keeper > HW_KEEPER_SEVERAL_MOMENTARY)
        keeper = keeps.keeper[keeper].parent;
    return keeper == HW_KEEPER_SEVERAL_MOMENTARY;
}

/* The nearest keeper above both. Parents are smaller. */
static uint32_t above_both(uint32_t one, uint32_t other)
{
    while (one != other)
        if (one > other)
            one = keeps.keeper[one].parent;
        else
            other = keeps.keeper[other].parent;
    return one;
}

static void remember(struct hw_node node)
{
    if (hw_index_marked(node, HW_MARK_KEEP))
        return;
    hw_index_mark(node, HW_MARK_KEEP);
    if (keeps.waiting_count == WAITING_MOST)
        keeps.overflow = true;
    else
        keeps.waiting[keeps.waiting_count++] = node;
}

#define UNDECIDED 3 /* no keeper: of blocks that are reached from several, for now */

static bool is_target(uint32_t label, struct hw_node node)
{
    return keeps.keeper[label].kind == HW_KEEPER_TARGET && keeps.target_of[label] == node.address;
}

static void keep_node(struct hw_node node, uint32_t keeper)
{
    const uint32_t ordinal = hw_index_ordinal(node), present = label_of(ordinal);
    uint32_t label = keeper;
    if (present == keeper)
        return;
    if (present && present != UNDECIDED) {
        if (is_momentary(present) != keeps.momentary || (keeps.targets && is_target(present, node)))
            return;
        label = above_both(present, keeper);
        if (label == present)
            return;
    }
    set_label(ordinal, label);
    remember(node);
}

static bool find(uint64_t word, bool begins_only, struct hw_node *node)
{
    bool inner;
    *node = hw_index_find(word, &inner);
    return node->line && !(inner && begins_only);
}

static inline void coming(struct hw_node node)
{
    __builtin_prefetch(keeps.label + (uint64_t)hw_index_ordinal(node) * LABEL_BYTES, 1);
}

static inline void keep_found(struct hw_node node, uint64_t keeper, uint64_t word)
{
    (void)word;
    keep_node(node, (uint32_t)keeper);
}

static void keep_words(const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hw_index_may_find(word[i])) {
            hw_ahead_put(&keeps.ahead, word[i], keeps.from);
            hw_ahead_go_on(&keeps.ahead, HW_AHEAD_STEPS, coming, keep_found);
        }
}

static void go_on_from(struct hw_node node)
{
    uint64_t size;
    if (!hw_index_marked(node, HW_MARK_KEEP))
        return;
    hw_index_unmark(node, HW_MARK_KEEP);
    if (!hw_block_size(node.address, &size))
        return;
    keeps.from = label_of(hw_index_ordinal(node));
    hw_scan_words(node.address, node.address + size, keep_words);
}

static void go_on(void)
{
    struct hw_node node;
    for (;;)
        if (hw_ring_next(&keeps.ring, keeps.waiting, &keeps.waiting_count, &node))
            go_on_from(node);
        else if (keeps.ahead.in != keeps.ahead.out)
            hw_ahead_go_on(&keeps.ahead, 0, coming, keep_found);
        else
            return;
}

static void go_on_and_wait(struct hw_node node)
{
    go_on_from(node);
    go_on();
}

static void go_on_all(void)
{
    for (go_on(); keeps.overflow;) {
        keeps.overflow = false;
        hw_index_each_of(1u << HW_MARK_KEEP, 0, go_on_and_wait);
    }
}

/* ---- keepers ---- */

static uint32_t add_keeper(struct hw_keeper keeper)
{
    if (keeps.keepers == KEEPERS_MOST)
        return 0;
    keeps.keeper[keeps.keepers] = keeper;
    return keeps.keepers++;
}

static uint32_t other_variables(void)
{
    keeps.keeper[keeps.other].pointers++;
    return keeps.other;
}

/* Its name, as the kernel has it. */
static uint32_t name_of_thread(uint32_t tid)
{
    char path[64], number[24], name[HW_THREAD_NAME + 1];
    struct hw_text text;
    hw_text_init(&text, number, sizeof number);
    hw_text_u64(&text, tid);
    hw_text_join(path, sizeof path, "/proc/self/task/", number, "/comm");
    const long size = keeps.room ? 0 : hw_read_file(path, name, sizeof name); /* a copy has no other threads */
    if (size <= 0)
        return 0;
    name[size - 1] = '\0'; /* the end of the line */
    return hw_file_string(name);
}

/* The keeper of that kind of a thread; those of one thread are asked for one after the other. */
static uint32_t keeper_of_thread(enum hw_keeper_kind kind, uint32_t parent, uint32_t tid)
{
    for (uint32_t i = 0, at = keeps.latest_thread; i < keeps.keepers; i++, at = at + 1 < keeps.keepers ? at + 1 : 0)
        if (keeps.keeper[at].tid == tid && keeps.keeper[at].kind == kind && keeps.keeper[at].parent == parent)
            return keeps.latest_thread = at;
    const uint32_t keeper = add_keeper((struct hw_keeper){.parent = parent, .kind = kind, .map = HW_NONE, .tid = tid});
    if (keeper) {
        keeps.keeper[keeper].name = name_of_thread(tid);
        keeps.latest_thread = keeper;
    }
    return keeper ? keeper : parent;
}

static uint32_t keeper_of_root(const struct hw_root *root)
{
    if (root->kind == HW_ROOT_THREAD_LOCAL)
        return keeper_of_thread(HW_KEEPER_THREAD_LOCAL, HW_KEEPER_SEVERAL, root->tid);
    const uint32_t thread = keeper_of_thread(HW_KEEPER_THREAD, HW_KEEPER_SEVERAL_MOMENTARY, root->tid);
    return keeper_of_thread(root->kind == HW_ROOT_STACK ? HW_KEEPER_STACK : HW_KEEPER_REGISTERS, thread, root->tid);
}

/* The keeper of the frame that the word at ADDRESS lies in; those with one address of a thread are one. STACK: for
 * where frames are not known. */
static uint32_t keeper_of_frame(uint32_t stack, uintptr_t address)
{
    struct hw_stack_frame *frame = hw_frame_of(address);
    if (!frame || frame->map == HW_NONE)
        return stack;
    for (uint32_t i = stack + 1; !frame->keeper && i < keeps.keepers; i++)
        if (keeps.keeper[i].parent == stack && keeps.keeper[i].map == frame->map &&
            keeps.keeper[i].address == frame->address)
            frame->keeper = i;
    if (!frame->keeper)
        frame->keeper = add_keeper((struct hw_keeper){.parent = stack,
                                                      .kind = HW_KEEPER_FRAME,
                                                      .map = frame->map,
                                                      .tid = keeps.keeper[stack].tid,
                                                      .address = frame->address,
                                                      .name = keeps.keeper[stack].name});
    return frame->keeper ? frame->keeper : stack;
}

/* Of the word number I of those that are visited: OF_ROOT, or its frame. */
static uint32_t keeper_of_word(const struct hw_root *root, uint32_t of_root, size_t i)
{
    return root->kind == HW_ROOT_STACK ? keeper_of_frame(of_root, hw_scan_address() + i * sizeof(uint64_t)) : of_root;
}

static void know_frames(const struct hw_root *root)
{
    if (root->kind != HW_ROOT_STACK || keeps.stack_thread == root->tid)
        return;
    hw_frames_make(root->registers);
    keeps.stack_thread = root->tid;
}

/* ---- thread-local data ---- */

/* Where the data of each module lies in the thread that is looked at. */
static struct {
    uint32_t tid, count;
    struct hw_local_block block[HW_LOCAL_BLOCKS];
    uintptr_t thread_pointer;
} tls;

static void know_thread_local(const struct hw_root *root)
{
    if (root->kind != HW_ROOT_THREAD_LOCAL || (tls.tid == root->tid && tls.thread_pointer == root->thread_pointer))
        return;
    tls.tid = root->tid;
    tls.thread_pointer = root->thread_pointer;
    tls.count = hw_local_blocks(root->thread_pointer, tls.block, HW_LOCAL_BLOCKS);
}

/* Says of SLOT in which module's thread-local data it is. */
static void find_module(struct slot *slot)
{
    for (uint32_t i = 0; i < tls.count; i++)
        if (slot->address >= tls.block[i].start && slot->address < tls.block[i].end) {
            slot->tls_map = tls.block[i].map;
            slot->tls_offset = slot->address - tls.block[i].start;
            return;
        }
}

/* A keeper of KIND that is the pointer in SLOT, or what that points to. */
static struct hw_keeper keeper_of_slot(const struct slot *slot, enum hw_keeper_kind kind, uint32_t parent)
{
    const uint64_t bias =
        slot->map == HW_NONE ? slot->thread_pointer : HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, slot->map)->bias;
    const bool local = slot->tls_map != HW_NONE;
    return (struct hw_keeper){.parent = parent,
                              .kind = kind,
                              .map = local ? slot->tls_map : slot->map,
                              .tid = slot->tid,
                              .address = local ? slot->tls_offset : slot->address - bias,
                              .size = sizeof slot->word,
                              .pointers = 1,
                              .flags = local ? HW_KEEPER_IN_TLS : 0};
}

static bool has_slots(const struct hw_root *root)
{
    return root->kind == HW_ROOT_DATA || root->kind == HW_ROOT_THREAD_LOCAL;
}

static void collect_slots(const struct hw_root *root, const uint64_t *word, size_t count)
{
    struct hw_node node;
    know_thread_local(root);
    for (size_t i = 0; has_slots(root) && i < count; i++) {
        if (!find(word[i], root->begins_only, &node) || keeps.slots_seen++ >= SLOTS_MOST)
            continue;
        struct slot *slot = &keeps.slot[keeps.slot_count++];
        *slot = (struct slot){.address = hw_scan_address() + i * sizeof *word,
                              .word = word[i],
                              .map = root->module ? root->module->map : HW_NONE,
                              .tid = root->tid,
                              .thread_pointer = root->thread_pointer,
                              .tls_map = HW_NONE};
        if (root->kind == HW_ROOT_THREAD_LOCAL)
            find_module(slot);
    }
}

/* The first slot of the module at or above ADDRESS. */
static uint32_t first_slot(uintptr_t address)
{
    return keeps.first + (uint32_t)HW_AT_LEAST(keeps.slot + keeps.first, keeps.end - keeps.first, address, address);
}

/* Of variables that lie in each other the greater one counts. */
static void take_variable(uintptr_t start, uint64_t size)
{
    for (uint32_t i = first_slot(start); i < keeps.end && keeps.slot[i].address - start < size; i++)
        if (keeps.slot[i].size < size) {
            keeps.slot[i].start = start;
            keeps.slot[i].size = size;
        }
}

static bool are_together(const struct slot *one, const struct slot *next)
{
    if (one->map != next->map || one->tid != next->tid)
        return false;
    if (one->map == HW_NONE)
        return true; /* thread-local data of a thread */
    if (one->size || next->size)
        return one->start == next->start && one->size == next->size;
    return next->address - one->address <= NEARBY;
}

static void add_variable(uint32_t first, uint32_t end)
{
    const struct slot *begin = &keeps.slot[first], *last = &keeps.slot[end - 1];
    const uint64_t bias = begin->map == HW_NONE ? 0 : HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, begin->map)->bias;
    const uintptr_t start = begin->size ? begin->start : begin->address;
    uint32_t variable = 0; /* there is none of a library that is not known */
    if (begin->map != HW_NONE)
        variable = add_keeper((struct hw_keeper){.parent = HW_KEEPER_SEVERAL,
                                                 .kind = HW_KEEPER_VARIABLE,
                                                 .map = begin->map,
                                                 .address = start - bias,
                                                 .size = begin->size ? begin->size : last->address + 8 - start});
    else if (begin->tid)
        variable = keeper_of_thread(HW_KEEPER_THREAD_LOCAL, HW_KEEPER_SEVERAL, begin->tid);
    keeps.info.folded_variables += !variable;
    if (variable)
        keeps.keeper[variable].pointers = end - first;
    for (uint32_t i = first; i < end; i++) {
        struct slot *slot = &keeps.slot[i];
        slot->keeper = variable ? variable : other_variables();
        if (!variable || end - first > (slot->map == HW_NONE ? LOCALS_APART : POINTERS_APART))
            continue;
        const uint32_t own = add_keeper(keeper_of_slot(slot, HW_KEEPER_SLOT, variable));
        slot->keeper = own ? own : variable;
    }
}

static void make_variables(void)
{
    for (uint32_t i = 0; i < keeps.slot_count; i = keeps.end) {
        keeps.first = i;
        const uint32_t map = keeps.slot[i].map;
        for (keeps.end = i; keeps.end < keeps.slot_count && keeps.slot[keeps.end].map == map;)
            keeps.end++;
        if (map != HW_NONE)
            hw_variables_each(map, take_variable);
    }
    for (uint32_t first = 0, end; first < keeps.slot_count; first = end) {
        for (end = first + 1; end < keeps.slot_count && are_together(&keeps.slot[end - 1], &keeps.slot[end]);)
            end++;
        add_variable(first, end);
    }
}

/* ---- what each keeps ---- */

static void keep_lasting(const struct hw_root *root, const uint64_t *word, size_t count)
{
    struct hw_node node;
    if (root->kind != HW_ROOT_POOLS && !has_slots(root))
        return;
    for (size_t i = 0; i < count; i++)
        if (find(word[i], root->begins_only, &node)) {
            if (root->kind == HW_ROOT_POOLS) {
                keeps.keeper[HW_KEEPER_POOLS].pointers++;
                keep_node(node, HW_KEEPER_POOLS);
            } else if (keeps.slots_seen++ >= SLOTS_MOST)
                keep_node(node, other_variables());
        }
}

static void keep_momentary(const struct hw_root *root, const uint64_t *word, size_t count)
{
    struct hw_node node;
    if (root->kind != HW_ROOT_STACK && root->kind != HW_ROOT_REGISTERS)
        return;
    const uint32_t of_root = keeper_of_root(root);
    know_frames(root);
    for (size_t i = 0; i < count; i++)
        if (find(word[i], false, &node)) {
            const uint32_t keeper = keeper_of_word(root, of_root, i);
            keeps.keeper[keeper].pointers++;
            keep_node(node, keeper);
        }
}

/* What is reached and has no keeper yet: the dynamic linker's. */
static void keep_the_rest(struct hw_node node)
{
    if (label_of(hw_index_ordinal(node)))
        return;
    keep_node(node, HW_KEEPER_LINKER);
    go_on_all();
}

/* ---- what several reach ---- */

static bool any_several;

static void undecide(struct hw_node node)
{
    const uint32_t ordinal = hw_index_ordinal(node);
    if (label_of(ordinal) != HW_KEEPER_SEVERAL)
        return;
    any_several = true;
    set_label(ordinal, UNDECIDED);
}

static void add_target(const struct slot *slot)
{
    struct hw_node node;
    if ((slot->map == HW_NONE && !slot->tid) || !find(slot->word, false, &node) ||
        label_of(hw_index_ordinal(node)) != UNDECIDED)
        return;
    const uint32_t keeper = add_keeper(keeper_of_slot(slot, HW_KEEPER_TARGET, HW_KEEPER_SEVERAL));
    if (!keeper)
        return;
    keeps.targets++;
    keeps.target_of[keeper] = node.address;
    set_label(hw_index_ordinal(node), keeper);
    remember(node);
}

static inline void keep_if_undecided(struct hw_node node, uint64_t keeper, uint64_t word)
{
    (void)word;
    if (label_of(hw_index_ordinal(node)) == UNDECIDED)
        keep_node(node, (uint32_t)keeper);
}

static void keep_undecided(const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hw_index_may_find(word[i])) {
            hw_ahead_put(&keeps.ahead, word[i], HW_KEEPER_SEVERAL);
            hw_ahead_go_on(&keeps.ahead, HW_AHEAD_STEPS, coming, keep_if_undecided);
        }
}

/* What others than targets lead to, from outside of what is reached by several. */
static void go_on_from_sole(struct hw_node node)
{
    uint64_t size;
    const uint32_t label = label_of(hw_index_ordinal(node));
    if (label <= UNDECIDED || keeps.keeper[label].kind == HW_KEEPER_TARGET || !hw_block_size(node.address, &size))
        return;
    hw_scan_words(node.address, node.address + size, keep_undecided);
}

static void keep_root_undecided(const struct hw_root *root, const uint64_t *word, size_t count)
{
    struct hw_node node;
    if (root->kind == HW_ROOT_STACK || root->kind == HW_ROOT_REGISTERS)
        return;
    for (size_t i = 0; i < count; i++)
        if (find(word[i], root->begins_only, &node) && label_of(hw_index_ordinal(node)) == UNDECIDED)
            keep_node(node, HW_KEEPER_SEVERAL);
}

static void decide(struct hw_node node)
{
    const uint32_t ordinal = hw_index_ordinal(node);
    if (label_of(ordinal) == UNDECIDED)
        set_label(ordinal, HW_KEEPER_SEVERAL);
}

static void find_targets(void)
{
    any_several = false;
    hw_index_each(undecide);
    if (!any_several)
        return;
    for (uint32_t i = 0; i < keeps.slot_count; i++)
        add_target(&keeps.slot[i]);
    hw_roots_each(keep_root_undecided);
    hw_index_each(go_on_from_sole);
    hw_ahead_go_on(&keeps.ahead, 0, coming, keep_if_undecided);
    go_on_all();
    hw_index_each(decide);
}

static void find_keepers(void)
{
    keeps.momentary = false;
    for (uint32_t i = 0; i < keeps.slot_count; i++) {
        struct hw_node node;
        if (find(keeps.slot[i].word, false, &node))
            keep_node(node, keeps.slot[i].keeper);
    }
    keeps.slots_seen = 0;
    hw_roots_each(keep_lasting);
    go_on_all();
    find_targets();
    keeps.momentary = true;
    hw_roots_each(keep_momentary);
    go_on_all();
    keeps.momentary = false;
    hw_index_each_of(1u << HW_MARK_REACHED | 1u << HW_MARK_INNER, 0, keep_the_rest);
}

/* ---- tables ---- */

static void begin_table(struct table *table, uint32_t most)
{
    table->slots = HASHES_LEAST;
    table->count = 0;
    table->most = most;
}

static uint32_t place_of(const struct table *table, uint64_t key)
{
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ul >> 32) & (table->slots - 1);
    while (table->entry[at] && table->hashes[at] != key)
        at = (at + 1) & (table->slots - 1);
    return at;
}

/* Twice as many places, in the same memory. KEY_OF: of an entry. */
static void widen(struct table *table, uint64_t (*key_of)(uint32_t entry))
{
    __builtin_memset(table->entry, 0, table->slots * sizeof *table->entry);
    table->slots *= 2;
    for (uint32_t i = 0; i < table->count; i++) {
        const uint64_t key = key_of(i);
        const uint32_t at = place_of(table, key);
        table->hashes[at] = key;
        table->entry[at] = i + 1;
    }
}

/* Entry of KEY; *FRESH: it was made just now. HW_NONE: there is no room. */
static uint32_t entry_of(struct table *table, uint64_t key, uint64_t (*key_of)(uint32_t entry), bool *fresh)
{
    uint32_t at = place_of(table, key);
    *fresh = !table->entry[at];
    if (!*fresh)
        return table->entry[at] - 1;
    if (table->count == table->most)
        return HW_NONE;
    table->hashes[at] = key;
    table->entry[at] = ++table->count;
    if (table->count > table->slots / 2 && table->slots < 2 * ENTRIES_MOST)
        widen(table, key_of);
    return table->count - 1;
}

static uint64_t key_of_node(uint32_t entry)
{
    return (uint64_t)keeps.node[entry].context << 32 | keeps.node[entry].keeper;
}

static uint64_t key_of_edge(uint32_t entry)
{
    const struct hw_keep_edge *edge = &keeps.edge[entry];
    return (uint64_t)(edge->flags & HW_KEEP_FROM_KEEPER) << 63 | (uint64_t)edge->from << 32 | edge->to;
}

/* ---- nodes ---- */

/* Blocks in one granule have one label, which is replaced once. */
static void make_node(struct hw_node node)
{
    const uint32_t ordinal = hw_index_ordinal(node);
    const bool again = ordinal == keeps.latest_ordinal;
    const uint32_t label = again ? keeps.latest_label : label_of(ordinal);
    struct hw_block block;
    keeps.latest_ordinal = ordinal;
    keeps.latest_label = label;
    if (!label || !hw_block_at(node.address, &block))
        return;
    keeps.info.blocks++;
    keeps.info.bytes += block.size;
    bool fresh;
    const uint64_t key = (uint64_t)block.context << 32 | label;
    const uint32_t entry = entry_of(&keeps.nodes, key, key_of_node, &fresh);
    if (entry == HW_NONE) {
        keeps.info.lost_blocks++;
        keeps.info.lost_bytes += block.size;
    } else {
        struct hw_kept *kept = &keeps.node[entry];
        if (fresh)
            *kept = (struct hw_kept){.context = block.context, .keeper = label};
        kept->blocks++;
        kept->bytes += block.size;
    }
    if (!again)
        set_label(ordinal, entry + 1); /* HW_NONE: 0 */
}

/* ---- edges ---- */

static void add_edge(uint32_t from, uint32_t flags, struct hw_node node, uint32_t offset, uint64_t pointers)
{
    const uint32_t to = label_of(hw_index_ordinal(node));
    uint64_t size;
    if (!to)
        return;
    bool fresh;
    const uint32_t entry =
        entry_of(&keeps.edges, (uint64_t)(flags & HW_KEEP_FROM_KEEPER) << 63 | (uint64_t)from << 32 | (to - 1),
                 key_of_edge, &fresh);
    if (entry == HW_NONE) {
        keeps.info.lost_pointers += pointers;
        return;
    }
    struct hw_keep_edge *edge = &keeps.edge[entry];
    if (fresh) {
        const bool momentary = is_momentary(flags & HW_KEEP_FROM_KEEPER ? from : keeps.node[from].keeper) &&
                               !is_momentary(keeps.node[to - 1].keeper);
        *edge = (struct hw_keep_edge){
            .from = from, .to = to - 1, .flags = flags | (momentary ? HW_KEEP_MOMENTARY : 0), .offset = offset};
    }
    edge->pointers += pointers;
    if (edge->flags & HW_KEEP_MOMENTARY || hw_index_marked(node, HW_MARK_KEEP) || !hw_block_size(node.address, &size))
        return;
    hw_index_mark(node, HW_MARK_KEEP);
    edge->blocks++;
    edge->bytes += size;
}

static void add_edges_of_root(const struct hw_root *root, const uint64_t *word, size_t count)
{
    struct hw_node node;
    if (root->kind == HW_ROOT_POOLS)
        keeps.from = HW_KEEPER_POOLS;
    else if (!has_slots(root)) {
        keeps.from = keeper_of_root(root);
        know_frames(root);
    }
    for (size_t i = 0; i < count; i++)
        if (find(word[i], root->begins_only, &node)) {
            if (!has_slots(root))
                add_edge(keeper_of_word(root, keeps.from, i), HW_KEEP_FROM_KEEPER, node, 0, 1);
            else if (keeps.slots_seen++ >= SLOTS_MOST)
                add_edge(keeps.other, HW_KEEP_FROM_KEEPER, node, 0, 1);
        }
}

static inline void coming_to_edge(struct hw_node node)
{
    coming(node);
    hw_block_prefetch(node.address);
}

static inline void add_found_edge(struct hw_node node, uint64_t from, uint64_t word)
{
    (void)word;
    add_edge((uint32_t)(from >> 32), 0, node, (uint32_t)from, 1);
}

static void add_edges_of_words(const uint64_t *word, size_t count)
{
    const uint64_t start = hw_scan_address() - keeps.from_address;
    for (size_t i = 0; i < count; i++)
        if (hw_index_may_find(word[i])) {
            const uint64_t offset = start + i * sizeof *word;
            hw_ahead_put(&keeps.ahead, word[i], (uint64_t)keeps.from << 32 | (offset < HW_NONE ? offset : HW_NONE));
            hw_ahead_go_on(&keeps.ahead, HW_AHEAD_STEPS, coming_to_edge, add_found_edge);
        }
}

static void add_edges_of_block(struct hw_node node)
{
    uint64_t size;
    const uint32_t label = label_of(hw_index_ordinal(node));
    if (!label || !hw_block_size(node.address, &size))
        return;
    keeps.from = label - 1;
    keeps.from_address = node.address;
    hw_scan_words(node.address, node.address + size, add_edges_of_words);
}

/* The linker's own: no pointer was found. */
static void add_edge_without_pointer(struct hw_node node)
{
    if (label_of(hw_index_ordinal(node)) && !hw_index_marked(node, HW_MARK_KEEP))
        add_edge(HW_KEEPER_LINKER, HW_KEEP_FROM_KEEPER, node, 0, 0);
}

static void find_edges(void)
{
    keeps.latest_ordinal = HW_NONE;
    hw_index_each(make_node);
    for (uint32_t i = 0; i < keeps.slot_count; i++) {
        struct hw_node node;
        if (find(keeps.slot[i].word, false, &node))
            add_edge(keeps.slot[i].keeper, HW_KEEP_FROM_KEEPER, node, 0, 1);
    }
    keeps.slots_seen = 0;
    keeps.stack_thread = 0; /* a thread's frames may get keepers in both rounds */
    hw_roots_each(add_edges_of_root);
    hw_index_each(add_edges_of_block);
    hw_ahead_go_on(&keeps.ahead, 0, coming_to_edge, add_found_edge);
    hw_index_each_of(0, 1u << HW_MARK_KEEP, add_edge_without_pointer);
}

/* ---- the file ---- */

static void write_entries(enum hw_pool_id pool, const void *entries, uint32_t count)
{
    hw_pool_forget(pool);
    const uint32_t first = count ? hw_pool_take(pool, count) : HW_NONE;
    if (first == HW_NONE)
        return;
    __builtin_memcpy(hw_pools[pool].base + first * (uint64_t)hw_pools[pool].entry_size, entries,
                     count * (uint64_t)hw_pools[pool].entry_size);
    hw_pool_publish(pool);
}

/* Behind what is in the room. */
static void put_entries(uint32_t section, const void *entries, uint64_t count, uint32_t size)
{
    struct hw_visit_part *part =
        (struct hw_visit_part *)((char *)keeps.room + keeps.room->keeps + keeps.room->keeps_bytes);
    *part = (struct hw_visit_part){.section = section, .entry_size = size, .bytes = count * size};
    __builtin_memcpy(part + 1, entries, count * size);
    keeps.room->keeps_bytes += sizeof *part + HW_ALIGN_UP(count * size, sizeof(uint64_t));
}

static void write(void)
{
    if (keeps.room) {
        put_entries(HW_SECTION_KEEPERS, keeps.keeper, keeps.keepers, sizeof *keeps.keeper);
        put_entries(HW_SECTION_KEPT, keeps.node, keeps.nodes.count, sizeof *keeps.node);
        put_entries(HW_SECTION_KEEP_EDGES, keeps.edge, keeps.edges.count, sizeof *keeps.edge);
        put_entries(HW_SECTION_KEEP_INFO, &keeps.info, 1, sizeof keeps.info);
        return;
    }
    write_entries(HW_POOL_KEEPERS, keeps.keeper, keeps.keepers);
    write_entries(HW_POOL_KEPT, keeps.node, keeps.nodes.count);
    write_entries(HW_POOL_KEEP_EDGES, keeps.edge, keeps.edges.count);
    write_entries(HW_POOL_KEEP_INFO, &keeps.info, 1);
}

uint64_t hw_keeps_room(void)
{
    return 4 * (sizeof(struct hw_visit_part) + sizeof(uint64_t)) + KEEPERS_MOST * sizeof *keeps.keeper +
           ENTRIES_MOST * (sizeof *keeps.node + sizeof *keeps.edge) + sizeof keeps.info;
}

/* ---- the whole ---- */

static struct {
    void **pages;
    uint64_t bytes;
} const rooms[] = {
    {(void **)&keeps.waiting, WAITING_MOST * sizeof *keeps.waiting},
    {(void **)&keeps.slot, SLOTS_MOST * sizeof *keeps.slot},
    {(void **)&keeps.keeper, KEEPERS_MOST * sizeof *keeps.keeper},
    {(void **)&keeps.target_of, KEEPERS_MOST * sizeof *keeps.target_of},
    {(void **)&keeps.label, BLOCKS_MOST *LABEL_BYTES},
    {(void **)&keeps.node, ENTRIES_MOST * sizeof *keeps.node},
    {(void **)&keeps.edge, ENTRIES_MOST * sizeof *keeps.edge},
    {(void **)&keeps.nodes.hashes, 2ul * ENTRIES_MOST * sizeof *keeps.nodes.hashes},
    {(void **)&keeps.nodes.entry, 2ul * ENTRIES_MOST * sizeof *keeps.nodes.entry},
    {(void **)&keeps.edges.hashes, 2ul * ENTRIES_MOST * sizeof *keeps.edges.hashes},
    {(void **)&keeps.edges.entry, 2ul * ENTRIES_MOST * sizeof *keeps.edges.entry},
};

static bool make_room(void)
{
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        if (!*rooms[i].pages)
            *rooms[i].pages = hw_own_pages(rooms[i].bytes, true);
        if (!*rooms[i].pages)
            return false;
    }
    return true;
}

/* What was touched, all in all. */
static uint64_t memory_used(void)
{
    return keeps.blocks * (uint64_t)LABEL_BYTES + keeps.slot_count * sizeof *keeps.slot +
           keeps.keepers * (sizeof *keeps.keeper + sizeof *keeps.target_of) + keeps.nodes.count * sizeof *keeps.node +
           keeps.edges.count * sizeof *keeps.edge +
           (keeps.nodes.slots + keeps.edges.slots) * (sizeof(uint64_t) + sizeof(uint32_t));
}

static void begin_keepers(void)
{
    keeps.keepers = keeps.latest_thread = keeps.targets = keeps.stack_thread = 0;
    tls.tid = tls.count = 0;
    add_keeper((struct hw_keeper){.kind = HW_KEEPER_NONE, .map = HW_NONE});
    add_keeper((struct hw_keeper){.kind = HW_KEEPER_SEVERAL, .map = HW_NONE});
    add_keeper((struct hw_keeper){.kind = HW_KEEPER_SEVERAL_MOMENTARY, .map = HW_NONE});
    while (keeps.keepers < HW_KEEPER_POOLS) /* so that it and the linker have the numbers of their kinds */
        add_keeper((struct hw_keeper){.kind = HW_KEEPER_NONE, .map = HW_NONE});
    for (uint32_t kind = HW_KEEPER_POOLS; kind <= HW_KEEPER_OTHER; kind++)
        add_keeper((struct hw_keeper){.parent = HW_KEEPER_SEVERAL, .kind = kind, .map = HW_NONE});
    keeps.other = HW_KEEPER_OTHER;
}

bool hw_keeps_find(uint64_t tick, uint64_t live_bytes, struct hw_visit_room *room)
{
    const uint64_t begin = hw_clock_monotonic_ns();
    keeps.info = (struct hw_keep_info){.tick = tick};
    keeps.waiting_count = keeps.slot_count = 0;
    keeps.slots_seen = 0;
    keeps.overflow = false;
    keeps.room = room;
    const bool fine = make_room();
    if (fine) {
        keeps.blocks = hw_index_number();
        if (keeps.blocks >= BLOCKS_LARGE)
            hw_madvise(keeps.label, keeps.blocks * (uint64_t)LABEL_BYTES, MADV_HUGEPAGE);
        const uint64_t share = live_bytes / HEAP_BY_ENTRIES;
        const uint32_t most = share > ENTRIES_MOST    ? ENTRIES_MOST
                              : share < ENTRIES_LEAST ? ENTRIES_LEAST
                                                      : (uint32_t)share;
        begin_table(&keeps.nodes, most);
        begin_table(&keeps.edges, most);
        begin_keepers();
        hw_roots_each(collect_slots);
        make_variables();
        find_keepers();
        find_edges();
        keeps.info.memory_bytes = memory_used();
        keeps.info.duration_ns = hw_clock_monotonic_ns() - begin;
        write();
    }
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (*rooms[i].pages)
            hw_own_give_back(*rooms[i].pages, rooms[i].bytes);
    return fine;
}
