/* view_keeps.c - see keeps.h. */
#include "report/view/keeps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/model/symbolised.h"
#include "report/buffer.h"

#define FIELDS_MOST 4096 /* of a module */
#define DTV_OFFSET  8    /* beyond the thread pointer: where libc has the table of modules' thread-local data */

/* ---- keepers ---- */

static bool make_keepers(struct hw_view *view, const uint32_t *module_of)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_keeps *keeps = view->keeps;
    struct hw_view_adder adder;
    keeps->keepers = calloc(profile->keeper_count + 1, sizeof *keeps->keepers);
    if (!keeps->keepers || !hw_view_adder_make(&adder, view, module_of, profile->keeper_count))
        return false;
    keeps->keeper_count = profile->keeper_count;
    for (size_t i = 0; i < profile->keeper_count; i++) {
        const struct hw_keeper *from = &profile->keepers[i];
        const bool frame = from->kind == HW_KEEPER_FRAME && from->map != HW_NONE;
        keeps->keepers[i] = (struct hw_view_keeper){
            .parent = from->parent,
            .kind = from->kind,
            .module = from->map == HW_NONE ? HW_NONE : module_of[from->map],
            .tid = from->tid,
            .in_tls = from->flags & HW_KEEPER_IN_TLS,
            .location = frame ? hw_view_adder_add(&adder, from->map, from->address) : HW_NONE,
            .thread = hw_profile_string(profile, from->name),
            .offset = from->address,
            .address = from->address,
            .size = from->size,
            .pointers = from->pointers,
        };
        struct hw_view_keeper *to = &keeps->keepers[i];
        const struct hw_view_keeper *parent = &keeps->keepers[from->parent < i ? from->parent : 0];
        if (!*to->thread && parent->tid == to->tid && parent->thread)
            to->thread = parent->thread;
    }
    hw_view_adder_free(&adder);
    return true;
}

static void add_up_keepers(struct hw_view_keeps *keeps)
{
    for (size_t i = 0; i < keeps->kept_count; i++) {
        const struct hw_view_kept *kept = &keeps->kept[i];
        struct hw_view_keeper *keeper = &keeps->keepers[kept->keeper];
        keeper->blocks = hw_add_saturating(keeper->blocks, kept->blocks);
        keeper->bytes = hw_add_saturating(keeper->bytes, kept->bytes);
        keeper->places++;
    }
    for (size_t i = keeps->keeper_count; i-- > 0;) { /* parents come before */
        struct hw_view_keeper *keeper = &keeps->keepers[i];
        keeper->retained_blocks = hw_add_saturating(keeper->retained_blocks, keeper->blocks);
        keeper->retained_bytes = hw_add_saturating(keeper->retained_bytes, keeper->bytes);
        if (!i || !keeper->parent)
            continue;
        struct hw_view_keeper *parent = &keeps->keepers[keeper->parent];
        parent->retained_blocks = hw_add_saturating(parent->retained_blocks, keeper->retained_blocks);
        parent->retained_bytes = hw_add_saturating(parent->retained_bytes, keeper->retained_bytes);
    }
}

/* Who points to a block beside the pointer that it is named by: what belongs to it, and others point to, is that block
 * alone. Edges of one block come by their pointers. */
static void find_others(struct hw_view_keeps *keeps)
{
    for (size_t i = 0; i < keeps->edge_count; i++) {
        const struct hw_keep_edge *edge = &keeps->edges[i];
        struct hw_view_keeper *target = &keeps->keepers[keeps->kept[edge->to].keeper];
        if (target->kind != HW_KEEPER_TARGET || !(edge->flags & HW_KEEP_FROM_KEEPER) || edge->flags & HW_KEEP_MOMENTARY)
            continue;
        const struct hw_view_keeper *from = &keeps->keepers[edge->from];
        if (from->address == target->address && from->module == target->module && from->tid == target->tid &&
            from->in_tls == target->in_tls)
            continue;
        if (target->also_count < sizeof target->also / sizeof *target->also)
            target->also[target->also_count] = edge->from;
        target->also_count++;
    }
}

bool hw_keeper_below(const struct hw_view_keeps *keeps, uint32_t keeper, uint32_t above)
{
    while (keeper > above)
        keeper = keeps->keepers[keeper].parent;
    return keeper == above;
}

/* ---- blocks by place and keeper ---- */

/* Contexts of one stack in several copies of a module are one. NUMBER: by entry of the profile. */
static bool make_kept(struct hw_view *view, const uint32_t *canonical, const uint32_t *context_of, size_t ids,
                      uint32_t *number)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_keeps *keeps = view->keeps;
    struct hw_index known = {0};
    keeps->kept = calloc(profile->kept_count + 1, sizeof *keeps->kept);
    bool fine = keeps->kept && hw_index_make(&known, profile->kept_count);
    for (size_t i = 0; fine && i < profile->kept_count; i++) {
        const struct hw_kept *from = &profile->kept[i];
        const uint32_t leaf = profile->context_entries[from->context].leaf;
        const uint32_t context = from->context < ids ? context_of[from->context] : HW_NONE;
        const struct hw_key key = {context == HW_NONE ? 1ull << 32 | from->context : context, from->keeper};
        bool fresh;
        number[i] = hw_index_intern(&known, key, (uint32_t)keeps->kept_count, &fresh);
        struct hw_view_kept *kept = &keeps->kept[number[i]];
        if (fresh)
            keeps->kept[keeps->kept_count++] =
                (struct hw_view_kept){.context = context,
                                      .leaf = leaf < profile->node_count ? canonical[leaf] : 0,
                                      .keeper = from->keeper,
                                      .dominator = HW_NONE,
                                      .way = HW_NONE};
        kept->blocks = hw_add_saturating(kept->blocks, from->blocks);
        kept->bytes = hw_add_saturating(kept->bytes, from->bytes);
    }
    hw_index_free(&known);
    return fine;
}

static int compare_edges(const void *left, const void *right)
{
    const struct hw_keep_edge *a = left, *b = right;
    return HW_ORDER(a->to, b->to) ?: HW_ORDER(a->flags, b->flags) ?: HW_ORDER(a->from, b->from);
}

static int compare_by_pointers(const void *left, const void *right)
{
    const struct hw_keep_edge *a = left, *b = right;
    return HW_ORDER(a->to, b->to) ?: HW_ORDER(b->pointers, a->pointers) ?: compare_edges(a, b);
}

static bool make_edges(struct hw_view *view, const uint32_t *number)
{
    const struct hw_profile *profile = view->profile;
    struct hw_view_keeps *keeps = view->keeps;
    size_t count = 0;
    struct hw_keep_edge *edges = keeps->edges = malloc((profile->keep_edge_count + 1) * sizeof *edges);
    if (!edges)
        return false;
    for (size_t i = 0; i < profile->keep_edge_count; i++) {
        edges[i] = profile->keep_edges[i];
        edges[i].to = number[edges[i].to];
        if (!(edges[i].flags & HW_KEEP_FROM_KEEPER))
            edges[i].from = number[edges[i].from];
    }
    qsort(edges, profile->keep_edge_count, sizeof *edges, compare_edges);
    for (size_t i = 0; i < profile->keep_edge_count; i++) {
        struct hw_keep_edge *last = count ? &edges[count - 1] : NULL;
        if (!last || compare_edges(last, &edges[i])) {
            edges[count++] = edges[i];
            continue;
        }
        last->pointers = hw_add_saturating(last->pointers, edges[i].pointers);
        last->blocks = hw_add_saturating(last->blocks, edges[i].blocks);
        last->bytes = hw_add_saturating(last->bytes, edges[i].bytes);
        last->offset = last->offset < edges[i].offset ? last->offset : edges[i].offset;
    }
    qsort(edges, count, sizeof *edges, compare_by_pointers);
    keeps->edge_count = count;
    for (size_t i = count; i-- > 0;) {
        keeps->kept[edges[i].to].first_edge = i;
        keeps->kept[edges[i].to].edge_count++;
    }
    return true;
}

/* ---- ways and dominators ---- */

/* The graph from its one root, 0, that stands for all keepers; kept entry i is vertex i + 1. */
struct graph {
    struct hw_view_keeps *keeps;
    uint32_t *first; /* of a vertex's edges in `out` */
    uint32_t *out;   /* edges by where they come from */
    uint32_t *order; /* vertices that are reached, in reverse postorder */
    uint32_t *rank;  /* of a vertex in it; HW_NONE: it is not reached */
    uint32_t *above; /* dominator, as a rank */
    uint32_t *stack, *next;
    uint32_t reached;
};

static uint32_t source_of(const struct hw_keep_edge *edge)
{
    return edge->flags & HW_KEEP_FROM_KEEPER ? 0 : edge->from + 1;
}

static bool counts(const struct hw_keep_edge *edge)
{
    return !(edge->flags & HW_KEEP_MOMENTARY);
}

static bool make_graph(struct graph *graph, struct hw_view_keeps *keeps)
{
    const size_t vertices = keeps->kept_count + 1;
    *graph = (struct graph){.keeps = keeps,
                            .first = calloc(vertices + 2, sizeof(uint32_t)),
                            .out = malloc((keeps->edge_count + 1) * sizeof(uint32_t)),
                            .order = malloc((vertices + 1) * sizeof(uint32_t)),
                            .rank = malloc((vertices + 1) * sizeof(uint32_t)),
                            .above = malloc((vertices + 1) * sizeof(uint32_t)),
                            .stack = malloc((vertices + 1) * sizeof(uint32_t)),
                            .next = malloc((vertices + 1) * sizeof(uint32_t))};
    if (!graph->first || !graph->out || !graph->order || !graph->rank || !graph->above || !graph->stack || !graph->next)
        return false;
    for (size_t i = 0; i < keeps->edge_count; i++)
        graph->first[source_of(&keeps->edges[i]) + 2]++;
    for (size_t i = 2; i < vertices + 2; i++)
        graph->first[i] += graph->first[i - 1];
    for (size_t i = 0; i < keeps->edge_count; i++)
        graph->out[graph->first[source_of(&keeps->edges[i]) + 1]++] = (uint32_t)i;
    return true;
}

static void free_graph(struct graph *graph)
{
    free(graph->first);
    free(graph->out);
    free(graph->order);
    free(graph->rank);
    free(graph->above);
    free(graph->stack);
    free(graph->next);
}

/* Breadth first: the last edge of a shortest way to each. */
static void find_ways(struct graph *graph)
{
    struct hw_view_keeps *keeps = graph->keeps;
    uint32_t *queue = graph->stack, end = 0;
    queue[end++] = 0;
    for (uint32_t at = 0; at < end; at++) {
        const uint32_t vertex = queue[at];
        for (uint32_t i = graph->first[vertex]; i < graph->first[vertex + 1]; i++) {
            const struct hw_keep_edge *edge = &keeps->edges[graph->out[i]];
            struct hw_view_kept *to = &keeps->kept[edge->to];
            if (!counts(edge) || to->way != HW_NONE)
                continue;
            to->way = graph->out[i];
            to->distance = vertex ? keeps->kept[vertex - 1].distance + 1 : 1;
            queue[end++] = edge->to + 1;
        }
    }
}

static void find_order(struct graph *graph)
{
    struct hw_view_keeps *keeps = graph->keeps;
    const uint32_t vertices = (uint32_t)keeps->kept_count + 1;
    uint32_t depth = 0, place = vertices;
    memset(graph->rank, 0xff, vertices * sizeof *graph->rank);
    graph->stack[depth] = 0;
    graph->next[depth++] = graph->first[0];
    graph->rank[0] = 0; /* for now: seen */
    while (depth) {
        const uint32_t vertex = graph->stack[depth - 1];
        if (graph->next[depth - 1] == graph->first[vertex + 1]) {
            graph->order[--place] = vertex;
            depth--;
            continue;
        }
        const struct hw_keep_edge *edge = &keeps->edges[graph->out[graph->next[depth - 1]++]];
        if (!counts(edge) || graph->rank[edge->to + 1] != HW_NONE)
            continue;
        graph->rank[edge->to + 1] = 0;
        graph->stack[depth] = edge->to + 1;
        graph->next[depth++] = graph->first[edge->to + 1];
    }
    graph->reached = vertices - place;
    memmove(graph->order, graph->order + place, graph->reached * sizeof *graph->order);
    for (uint32_t i = 0; i < graph->reached; i++)
        graph->rank[graph->order[i]] = i;
}

static uint32_t common(const struct graph *graph, uint32_t one, uint32_t other)
{
    while (one != other)
        if (one > other)
            one = graph->above[one];
        else
            other = graph->above[other];
    return one;
}

/* Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm. */
static void find_dominators(struct graph *graph)
{
    struct hw_view_keeps *keeps = graph->keeps;
    memset(graph->above, 0xff, (keeps->kept_count + 1) * sizeof *graph->above);
    graph->above[0] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < graph->reached; i++) {
            const struct hw_view_kept *kept = &keeps->kept[graph->order[i] - 1];
            uint32_t above = HW_NONE;
            for (size_t k = 0; k < kept->edge_count; k++) {
                const struct hw_keep_edge *edge = &keeps->edges[kept->first_edge + k];
                const uint32_t from = graph->rank[source_of(edge)];
                if (counts(edge) && from != HW_NONE && graph->above[from] != HW_NONE)
                    above = above == HW_NONE ? from : common(graph, from, above);
            }
            changed |= graph->above[i] != above;
            graph->above[i] = above;
        }
    }
    for (size_t i = 0; i < keeps->kept_count; i++) {
        keeps->kept[i].retained_blocks = keeps->kept[i].blocks;
        keeps->kept[i].retained_bytes = keeps->kept[i].bytes;
    }
    for (uint32_t i = graph->reached; i-- > 1;) { /* a dominator comes before what it dominates */
        struct hw_view_kept *kept = &keeps->kept[graph->order[i] - 1];
        const uint32_t above = graph->above[i] ? graph->order[graph->above[i]] : 0;
        if (!above)
            continue;
        kept->dominator = above - 1;
        struct hw_view_kept *to = &keeps->kept[above - 1];
        to->retained_blocks = hw_add_saturating(to->retained_blocks, kept->retained_blocks);
        to->retained_bytes = hw_add_saturating(to->retained_bytes, kept->retained_bytes);
    }
}

static bool follow(struct hw_view_keeps *keeps)
{
    struct graph graph;
    const bool fine = make_graph(&graph, keeps);
    if (fine) {
        find_ways(&graph);
        find_order(&graph);
        find_dominators(&graph);
    }
    free_graph(&graph);
    return fine;
}

/* ---- the whole ---- */

bool hw_view_make_keeps(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of,
                        const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    if (!profile->keep_search || !profile->keeper_count)
        return true;
    uint32_t *number = malloc((profile->kept_count + 1) * sizeof *number);
    view->keeps = calloc(1, sizeof *view->keeps);
    const bool fine = view->keeps && number && make_keepers(view, module_of) &&
                      make_kept(view, canonical, context_of, ids, number) && make_edges(view, number) &&
                      follow(view->keeps);
    if (fine) {
        add_up_keepers(view->keeps);
        find_others(view->keeps);
    }
    free(number);
    return fine;
}

void hw_view_free_keeps(struct hw_view *view)
{
    if (!view->keeps)
        return;
    free(view->keeps->keepers);
    free(view->keeps->kept);
    free(view->keeps->edges);
    free(view->keeps);
}

void hw_view_keep_keeps(struct hw_view *view, const uint32_t *kept)
{
    for (size_t i = 0; view->keeps && i < view->keeps->kept_count; i++)
        if (view->keeps->kept[i].context != HW_NONE)
            view->keeps->kept[i].context = kept[view->keeps->kept[i].context];
}

/* ---- names ---- */

static void name_keeper(struct hw_view_keeper *keeper, const struct hw_data *data)
{
    const struct hw_data local = {.symbol = data->local, .symbol_count = data->local_count};
    const struct hw_data_symbol *symbol = hw_view_symbol_at(keeper->in_tls ? &local : data, keeper->address);
    keeper->symbol = symbol ? symbol->name : NULL;
    keeper->offset = symbol ? keeper->address - symbol->address : keeper->address;
    for (size_t i = 0; !symbol && !keeper->in_tls && i < data->section_count; i++)
        if (keeper->address >= data->section[i].start && keeper->address < data->section[i].end) {
            keeper->section = data->section[i].name;
            keeper->offset = keeper->address - data->section[i].start;
        }
}

/* What debug information calls the variable of KEEPER; that of a function in C is "cache.0" in the table of symbols. */
static void take_variable(struct hw_view_keeper *keeper, const char *variable)
{
    keeper->field_of = variable;
    if (variable && keeper->symbol && strchr(keeper->symbol, '.'))
        keeper->symbol = variable;
}

/* What the profile itself has: the name of KIND (enum hw_data_name_flags), or NULL. */
static const char *kept_name(const struct hw_view *view, const struct hw_view_keeper *keeper, uint32_t kind)
{
    size_t count;
    const uint32_t flags = kind | (keeper->in_tls ? HW_DATA_LOCAL : 0);
    const struct hw_data_name *name =
        hw_symbolised_data(view->profile->symbolised, view->modules[keeper->module].map, flags, &count);
    const size_t at = HW_AT_LEAST(name, count, address, keeper->address);
    return at < count && name[at].address == keeper->address ? hw_profile_string(view->profile, name[at].name) : NULL;
}

/* Whether names of data of a module are those that the profile itself has. */
static bool is_symbolised(const struct hw_view *view, uint32_t module)
{
    const struct hw_symbolised *symbols = view->names_sought ? view->profile->symbolised : NULL;
    const struct hw_module_mark *mark = symbols ? hw_symbolised_module(symbols, view->modules[module].map) : NULL;
    return mark && mark->flags & HW_MARK_DATA;
}

static void take_names(const struct hw_view *view, struct hw_view_keeper *keeper)
{
    const bool whole = keeper->kind == HW_KEEPER_VARIABLE;
    const uint32_t all = whole ? HW_DATA_WHOLE : 0;
    keeper->type = kept_name(view, keeper, HW_DATA_TYPE | all);
    take_variable(keeper, kept_name(view, keeper, HW_DATA_FIELD_OF | all));
    if (whole)
        return;
    keeper->field = keeper->field_of ? kept_name(view, keeper, HW_DATA_FIELD) : NULL;
    if (keeper->field_of && !keeper->field)
        keeper->field = "";
}

/* Fields and types of pointers in variables of one module: from the debug information. */
static bool name_fields(struct hw_view *view, uint32_t module, const struct hw_view_options *options,
                        struct hw_error *error)
{
    struct hw_view_keeps *keeps = view->keeps;
    struct hw_field_query *query = malloc((keeps->keeper_count + 1) * sizeof *query);
    uint32_t *keeper = malloc((keeps->keeper_count + 1) * sizeof *keeper);
    size_t count = 0;
    for (uint32_t i = 0; query && keeper && i < keeps->keeper_count; i++) {
        const struct hw_view_keeper *is = &keeps->keepers[i];
        const bool whole = is->kind == HW_KEEPER_VARIABLE;
        if (is->module != module || (!whole && is->kind != HW_KEEPER_SLOT && is->kind != HW_KEEPER_TARGET) ||
            !is->retained_bytes || count == FIELDS_MOST)
            continue;
        query[count] = (struct hw_field_query){.address = is->address, .local = is->in_tls, .whole = whole};
        keeper[count++] = i;
    }
    bool fine = query && keeper;
    if (fine && count)
        fine = hw_symbolizer_fields(view->symbolizer, view->modules[module].symbols, query, count, error);
    for (size_t i = 0; fine && i < count; i++) {
        struct hw_view_keeper *is = &keeps->keepers[keeper[i]];
        is->type = query[i].type;
        take_variable(is, query[i].variable);
        if (!query[i].whole)
            is->field = query[i].path;
    }
    free(query);
    free(keeper);
    return fine;
}

bool hw_view_name_keeps(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error)
{
    for (size_t i = 0; view->keeps && i < view->keeps->keeper_count; i++) {
        struct hw_view_keeper *keeper = &view->keeps->keepers[i];
        if (keeper->module == HW_NONE || keeper->kind == HW_KEEPER_FRAME)
            continue;
        if (!hw_view_load_data(view, keeper->module, options, error))
            return false;
        name_keeper(keeper, &view->data[keeper->module]);
        if (!options->resolve && is_symbolised(view, keeper->module))
            take_names(view, keeper);
    }
    for (uint32_t i = 0; view->keeps && !options->resolve && view->symbolizer && i < view->module_count; i++)
        if (view->names_sought && view->data_loaded && view->data_loaded[i] &&
            view->modules[i].kind == HW_MODULE_PROGRAM && view->modules[i].symbols >= 0 && !is_symbolised(view, i) &&
            !name_fields(view, i, options, error))
            return false;
    return true;
}

const char *hw_keeper_key(uint32_t kind)
{
    static const char *const keys[HW_KEEPER_KINDS] = {
        [HW_KEEPER_NONE] = "none",
        [HW_KEEPER_SEVERAL] = "several",
        [HW_KEEPER_SEVERAL_MOMENTARY] = "several_threads",
        [HW_KEEPER_VARIABLE] = "variable",
        [HW_KEEPER_SLOT] = "pointer",
        [HW_KEEPER_THREAD_LOCAL] = "thread_local",
        [HW_KEEPER_POOLS] = "pools",
        [HW_KEEPER_LINKER] = "dynamic_linker",
        [HW_KEEPER_OTHER] = "other_variables",
        [HW_KEEPER_THREAD] = "thread",
        [HW_KEEPER_STACK] = "stack",
        [HW_KEEPER_REGISTERS] = "registers",
        [HW_KEEPER_FRAME] = "frame",
        [HW_KEEPER_TARGET] = "target",
    };
    return kind < HW_KEEPER_KINDS ? keys[kind] : keys[0];
}

/* Where a name is put together. */
struct naming {
    const struct hw_view *view;
    bool plain; /* without numbers of threads */
    struct hw_buffer *out;
};

static void add_thread(const struct naming *naming, const struct hw_view_keeper *keeper)
{
    struct hw_buffer *out = naming->out;
    const bool main = keeper->tid == naming->view->profile->process.pid;
    if (!naming->plain)
        hw_buffer_add(out, main ? "main thread %u" : "thread %u", keeper->tid);
    else
        hw_buffer_add(out, main ? "main thread" : *keeper->thread ? "threads" : "threads without a name");
    if (*keeper->thread && !(naming->plain && main))
        hw_buffer_add(out, " \"%s\"", keeper->thread); /* behind it comes (the module) */
}

static void add_variable(const struct hw_view_keeper *keeper, struct hw_buffer *out)
{
    if (keeper->field) { /* C++ has longer names in the table of symbols */
        hw_buffer_add(out, "%s%s", keeper->symbol ? keeper->symbol : keeper->field_of, keeper->field);
        return;
    }
    const char *name = keeper->symbol ? keeper->symbol : keeper->section;
    if (name)
        hw_buffer_add(out, "%s", name);
    if (!keeper->symbol || keeper->offset)
        hw_buffer_add(out, "+0x%" PRIx64, keeper->offset);
}

static void add_pointer(const struct naming *naming, const struct hw_view_keeper *keeper)
{
    struct hw_buffer *out = naming->out;
    const bool below = (int64_t)keeper->address < 0;
    if (keeper->module != HW_NONE) {
        if (keeper->in_tls && !keeper->symbol)
            hw_buffer_add(out, "thread-local data");
        add_variable(keeper, out);
        if (keeper->in_tls) {
            hw_buffer_add(out, " of ");
            add_thread(naming, keeper);
        }
        return;
    }
    if (keeper->address == DTV_OFFSET) {
        hw_buffer_add(out, "table of thread-local data of ");
        add_thread(naming, keeper);
        return;
    }
    add_thread(naming, keeper);
    hw_buffer_add(out, ", %s0x%" PRIx64, below ? "-" : "+", below ? -keeper->address : keeper->address);
}

static void add_name(const struct naming *naming, uint32_t index);

/* ", one and another", ", one, another and 5 others" */
static void add_others(const struct naming *naming, const struct hw_view_keeper *keeper)
{
    struct hw_buffer *out = naming->out;
    const uint32_t most = sizeof keeper->also / sizeof *keeper->also;
    for (uint32_t i = 0; i < most && i < keeper->also_count; i++) {
        hw_buffer_add(out, i + 1 == keeper->also_count ? " and " : ", ");
        add_name(naming, keeper->also[i]); /* which is no such block itself */
    }
    if (keeper->also_count > most)
        hw_buffer_add(out, " and %u other%s", keeper->also_count - most, keeper->also_count == most + 1 ? "" : "s");
}

static void add_name(const struct naming *naming, uint32_t index)
{
    const struct hw_view *view = naming->view;
    struct hw_buffer *out = naming->out;
    const struct hw_view_keeper *keeper = &view->keeps->keepers[index];
    switch (keeper->kind) {
    case HW_KEEPER_TARGET:
        hw_buffer_add(out, "what ");
        add_pointer(naming, keeper);
        add_others(naming, keeper);
        hw_buffer_add(out, keeper->also_count ? " point to" : " points to");
        break;
    case HW_KEEPER_VARIABLE:
    case HW_KEEPER_SLOT:
        add_pointer(naming, keeper);
        break;
    case HW_KEEPER_THREAD_LOCAL:
        hw_buffer_add(out, "thread-local data of ");
        add_thread(naming, keeper);
        break;
    case HW_KEEPER_THREAD:
        add_thread(naming, keeper);
        break;
    case HW_KEEPER_STACK:
        hw_buffer_add(out, "stack of ");
        add_thread(naming, keeper);
        break;
    case HW_KEEPER_REGISTERS:
        hw_buffer_add(out, "registers of ");
        add_thread(naming, keeper);
        break;
    case HW_KEEPER_FRAME: {
        const struct hw_view_location *location =
            keeper->location == HW_NONE ? NULL : &view->locations[keeper->location];
        const char *function =
            location && location->frames.count ? location->frames.frame[location->frames.count - 1].function : NULL;
        if (function)
            hw_buffer_add(out, "%s", function);
        else
            hw_buffer_add(out, "0x%" PRIx64, keeper->address);
        hw_buffer_add(out, " in ");
        add_thread(naming, keeper);
        break;
    }
    default: {
        static const char *const names[HW_KEEPER_KINDS] = {
            [HW_KEEPER_SEVERAL] = "several of these",  [HW_KEEPER_SEVERAL_MOMENTARY] = "stacks of several threads",
            [HW_KEEPER_POOLS] = "the program's pools", [HW_KEEPER_LINKER] = "the dynamic linker",
            [HW_KEEPER_OTHER] = "other variables",
        };
        hw_buffer_add(out, "%s",
                      keeper->kind < HW_KEEPER_KINDS && names[keeper->kind] ? names[keeper->kind] : "nothing");
    }
    }
}

void hw_keeper_name(const struct hw_view *view, uint32_t keeper, struct hw_buffer *out)
{
    add_name(&(struct naming){.view = view, .out = out}, keeper);
}

void hw_keeper_plain_name(const struct hw_view *view, uint32_t keeper, struct hw_buffer *out)
{
    add_name(&(struct naming){.view = view, .plain = true, .out = out}, keeper);
}

/* ---- order ---- */

uint32_t *hw_keepers_sorted(const struct hw_view_keeps *keeps, uint32_t parent, size_t *count)
{
    struct hw_ranked *ranked = malloc((keeps->keeper_count + 1) * sizeof *ranked);
    *count = 0;
    for (size_t i = 1; ranked && i < keeps->keeper_count; i++)
        if (keeps->keepers[i].parent == parent && keeps->keepers[i].retained_blocks)
            ranked[(*count)++] = (struct hw_ranked){keeps->keepers[i].retained_bytes, (uint32_t)i};
    return hw_ranked_indexes(ranked, *count);
}

uint32_t *hw_kept_sorted(const struct hw_view_keeps *keeps, uint32_t keeper, size_t *count)
{
    struct hw_ranked *ranked = malloc((keeps->kept_count + 1) * sizeof *ranked);
    *count = 0;
    for (size_t i = 0; ranked && i < keeps->kept_count; i++)
        if (keeper == HW_NONE || hw_keeper_below(keeps, keeps->kept[i].keeper, keeper))
            ranked[(*count)++] = (struct hw_ranked){keeps->kept[i].bytes, (uint32_t)i};
    return hw_ranked_indexes(ranked, *count);
}

/* ---- places ---- */

struct places {
    struct hw_keeps_place *row;
    size_t count;
    uint32_t *row_of; /* by kept entry */
    uint32_t *active; /* by row: entries on the way that the walk is on */
    uint32_t *first;  /* of an entry's dominated ones; entries + 1 is for those without a dominator */
    uint32_t *below, *stack, *next;
};

static bool make_places(struct places *places, const struct hw_view_keeps *keeps)
{
    const size_t most = keeps->kept_count + 3;
    struct hw_index known = {0};
    *places = (struct places){.row = calloc(most, sizeof *places->row),
                              .row_of = malloc(most * sizeof(uint32_t)),
                              .active = calloc(most, sizeof(uint32_t)),
                              .first = calloc(most, sizeof(uint32_t)),
                              .below = malloc(most * sizeof(uint32_t)),
                              .stack = malloc(most * sizeof(uint32_t)),
                              .next = malloc(most * sizeof(uint32_t))};
    bool fine = places->row && places->row_of && places->active && places->first && places->below && places->stack &&
                places->next && hw_index_make(&known, keeps->kept_count);
    for (size_t i = 0; fine && i < keeps->kept_count; i++) {
        const struct hw_view_kept *kept = &keeps->kept[i];
        const struct hw_key key = {kept->context == HW_NONE ? 1ull << 32 | kept->leaf : kept->context, 0};
        bool fresh;
        const uint32_t row = hw_index_intern(&known, key, (uint32_t)places->count, &fresh);
        if (fresh)
            places->row[places->count++] =
                (struct hw_keeps_place){.context = kept->context, .leaf = kept->leaf, .kept = (uint32_t)i};
        struct hw_keeps_place *to = &places->row[row];
        places->row_of[i] = row;
        to->blocks = hw_add_saturating(to->blocks, kept->blocks);
        to->bytes = hw_add_saturating(to->bytes, kept->bytes);
        if (kept->bytes > keeps->kept[to->kept].bytes)
            to->kept = (uint32_t)i;
    }
    hw_index_free(&known);
    return fine;
}

static void free_places(struct places *places)
{
    free(places->row_of);
    free(places->active);
    free(places->first);
    free(places->below);
    free(places->stack);
    free(places->next);
}

/* From dominators to what they dominate: what lies below another entry of its place is in that one's sum. */
static void walk_dominated(struct places *places, const struct hw_view_keeps *keeps)
{
    const uint32_t root = (uint32_t)keeps->kept_count;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < root; i++)
        places->first[(keeps->kept[i].dominator == HW_NONE ? root : keeps->kept[i].dominator) + 1]++;
    for (uint32_t i = 1; i <= root + 1; i++)
        places->first[i] += places->first[i - 1];
    memcpy(places->next, places->first, (root + 2) * sizeof *places->next);
    for (uint32_t i = 0; i < root; i++)
        places->below[places->next[keeps->kept[i].dominator == HW_NONE ? root : keeps->kept[i].dominator]++] = i;
    places->stack[depth] = root;
    places->next[depth++] = places->first[root];
    while (depth) {
        const uint32_t at = places->stack[depth - 1];
        if (places->next[depth - 1] == places->first[at + 1]) {
            depth--;
            if (at != root)
                places->active[places->row_of[at]]--;
            continue;
        }
        const uint32_t entry = places->below[places->next[depth - 1]++];
        struct hw_keeps_place *row = &places->row[places->row_of[entry]];
        if (!places->active[places->row_of[entry]]++) {
            row->retained_blocks = hw_add_saturating(row->retained_blocks, keeps->kept[entry].retained_blocks);
            row->retained_bytes = hw_add_saturating(row->retained_bytes, keeps->kept[entry].retained_bytes);
        }
        places->stack[depth] = entry;
        places->next[depth++] = places->first[entry];
    }
}

static int compare_places(const void *left, const void *right)
{
    const struct hw_keeps_place *a = left, *b = right;
    return HW_ORDER(b->retained_bytes, a->retained_bytes) ?: HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->kept, b->kept);
}

struct hw_keeps_place *hw_keeps_places(const struct hw_view_keeps *keeps, size_t *count)
{
    struct places places;
    const bool fine = make_places(&places, keeps);
    if (fine) {
        walk_dominated(&places, keeps);
        if (places.count)
            qsort(places.row, places.count, sizeof *places.row, compare_places);
    } else {
        free(places.row);
        places.row = NULL;
    }
    free_places(&places);
    *count = fine ? places.count : 0;
    return places.row;
}
