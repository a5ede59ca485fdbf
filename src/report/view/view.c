/* view.c - see view.h. */
#include "report/view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/model/symbolised.h"
#include "report/view/block_types.h"
#include "report/view/sampled_fields.h"
#include "report/view/frame_roles.h"
#include "report/view/keeps.h"
#include "report/view/llvm_names.h"
#include "report/view/suppressions.h"
#include "base/index.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- modules ---- */

/* Beginnings of file names that are nobody's own code. */
static const char *const system_names[] = {
    "libc.so",      "libc-2.",    "libc.musl",   "ld-linux", "ld-musl",     "ld-2.",       "ld.so",
    "libpthread",   "libm.so",    "libm-2.",     "libdl.so", "libdl-2.",    "librt.so",    "librt-2.",
    "libstdc++.so", "libc++.so",  "libc++abi",   "libgcc_s", "libunwind.",  "libjemalloc", "libtcmalloc",
    "libmimalloc",  "libasan.so", "libubsan.so", "[vdso]",   "libatomic.so"};

static enum hw_module_kind module_kind(const struct hw_view_module *module)
{
    if (!*module->path || module->flags & HW_MAP_ANONYMOUS)
        return HW_MODULE_GENERATED;
    if (module->flags & HW_MAP_MAIN)
        return HW_MODULE_PROGRAM;
    if (module->flags & HW_MAP_ALLOCATOR)
        return HW_MODULE_SYSTEM;
    for (size_t i = 0; i < sizeof system_names / sizeof *system_names; i++)
        if (!strncmp(module->name, system_names[i], strlen(system_names[i])))
            return HW_MODULE_SYSTEM;
    return HW_MODULE_PROGRAM;
}

static void set_path(struct hw_view_module *module, const char *path)
{
    const char *slash = strrchr(path, '/');
    module->path = path;
    module->name = slash && slash[1] ? slash + 1 : path;
}

static struct hw_view_module make_module(const struct hw_map_entry *map, uint32_t index, const char *path)
{
    struct hw_view_module module = {.map = index,
                                    .build_id = map->build_id,
                                    .build_id_size = (uint32_t)smaller(map->build_id_size, sizeof map->build_id),
                                    .loaded_tick = map->loaded_tick,
                                    .unloaded_tick = map->unloaded_tick,
                                    .code_start = map->start - map->bias,
                                    .code_end = map->end - map->bias,
                                    .bias = map->bias,
                                    .symbols = -1};
    set_path(&module, path);
    return module;
}

static void module_add_map(struct hw_view_module *module, const struct hw_map_entry *map)
{
    module->code_start = smaller(module->code_start, map->start - map->bias);
    module->code_end = greater(module->code_end, map->end - map->bias);
    module->flags |= map->flags;
    if (map->unseen_operations > module->unseen_operations)
        module->unseen_operations = map->unseen_operations;
    if (map->loaded_tick < module->loaded_tick)
        module->loaded_tick = map->loaded_tick;
    if (!map->unloaded_tick || (module->unloaded_tick && map->unloaded_tick > module->unloaded_tick))
        module->unloaded_tick = map->unloaded_tick;
}

/* The file of a module that is known by its build id only. */
static void locate(const struct hw_view *view, struct hw_view_module *module)
{
    const struct hw_symbolised *symbols = view->profile->symbolised;
    const struct hw_module_mark *mark = symbols ? hw_symbolised_module(symbols, module->map) : NULL;
    const char *path = NULL;
    if (mark && mark->path)
        path = hw_profile_string(view->profile, mark->path);
    else if (view->locator)
        path = hw_locator_find(view->locator, module->build_id, module->build_id_size);
    if (path)
        set_path(module, path);
}

/* Groups the maps into modules, in the order of their first maps, and fills MODULE_OF (by map). */
static bool make_modules(struct hw_view *view, uint32_t *module_of)
{
    const struct hw_profile *profile = view->profile;
    view->modules = calloc(profile->map_count + 1, sizeof *view->modules);
    if (!view->modules ||
        !hw_first_maps(profile->maps, profile->map_count, profile->strings, profile->string_size, module_of))
        return false;
    for (size_t i = 0; i < profile->map_count; i++) {
        const struct hw_map_entry *map = &profile->maps[i];
        if (module_of[i] == i) {
            view->modules[view->module_count] = make_module(map, (uint32_t)i, hw_profile_string(profile, map->path));
            module_of[i] = (uint32_t)view->module_count++;
        } else {
            module_of[i] = module_of[module_of[i]]; /* which is smaller, and so has become the module's number */
        }
        module_add_map(&view->modules[module_of[i]], map);
    }
    for (size_t i = 0; i < view->module_count; i++) {
        locate(view, &view->modules[i]);
        view->modules[i].kind = module_kind(&view->modules[i]);
    }
    return true;
}

/* ---- the tree of calls ---- */

/* Fills CANONICAL: for each node of the profile the view's node that stands for it. Parents come first in the file, so
 * one pass does it. */
static bool make_nodes(struct hw_view *view, const uint32_t *module_of, uint32_t *canonical)
{
    const struct hw_profile *profile = view->profile;
    const size_t count = profile->node_count;
    struct hw_index locations = {0}, nodes = {0};
    view->nodes = calloc(count + 1, sizeof *view->nodes);
    view->locations = calloc(count + 1, sizeof *view->locations);
    bool done = view->nodes && view->locations && hw_index_make(&locations, count) && hw_index_make(&nodes, count);
    view->node_count = 1;
    canonical[0] = 0;
    for (size_t i = 1; done && i < count; i++) {
        const struct hw_stack_node *node = &profile->nodes[i];
        const uint32_t parent = node->parent < i ? canonical[node->parent] : 0;
        const struct hw_map_entry *map = node->map < profile->map_count ? &profile->maps[node->map] : NULL;
        if (map && map->flags & HW_MAP_RUNTIME) {
            canonical[i] = parent;
            continue;
        }
        const uint32_t module = map ? module_of[node->map] : HW_NONE;
        const bool in_file = map && view->modules[module].kind != HW_MODULE_GENERATED;
        const uint64_t address = in_file ? node->pc - map->bias : node->pc;
        bool new;
        uint32_t location =
            hw_index_intern(&locations, (struct hw_key){address, module}, (uint32_t)view->location_count, &new);
        if (new)
            view->locations[view->location_count++] = (struct hw_view_location){.address = address, .module = module};
        if (map)
            view->modules[module].used = true;
        canonical[i] = hw_index_intern(&nodes, (struct hw_key){location, parent}, (uint32_t)view->node_count, &new);
        if (new)
            view->nodes[view->node_count++] = (struct hw_view_node){.parent = parent, .location = location};
    }
    hw_index_free(&locations);
    hw_index_free(&nodes);
    return done;
}

/* ---- contexts ---- */

void hw_view_add_context(struct hw_profile_context *to, const struct hw_profile_context *from)
{
    hw_profile_context_add(to, from);
    if (to->access && from->access)
        hw_profile_accesses_add(to->access, from->access);
}

static bool has_blocks(const struct hw_profile_context *context)
{
    return context->allocations || context->frees || context->live_blocks || context->inherited_blocks ||
           context->inherited_frees || (context->access && context->access->all.blocks);
}

/* Fills CONTEXT_OF (by id) with indexes into the view's contexts. The profile's contexts are sorted by id, so merged
 * ones keep the smallest. An unknown stack (leaf 0) is a context like any other. */
static bool make_contexts(struct hw_view *view, const uint32_t *canonical, uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    struct hw_index leaves = {0};
    view->contexts = calloc(profile->context_count + 1, sizeof *view->contexts);
    if (profile->access_counted)
        view->accesses = calloc(profile->context_count + 1, sizeof *view->accesses);
    if (!view->contexts || (profile->access_counted && !view->accesses) ||
        !hw_index_make(&leaves, profile->context_count))
        return false;
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_profile_context *from = &profile->contexts[i];
        if (!has_blocks(from))
            continue;
        const uint32_t leaf = from->leaf < profile->node_count ? canonical[from->leaf] : 0;
        bool new;
        const uint32_t index =
            hw_index_intern(&leaves, (struct hw_key){leaf, from->pool}, (uint32_t)view->context_count, &new);
        struct hw_view_context *to = &view->contexts[index];
        if (new) {
            *to = (struct hw_view_context){.sum = *from, .merged = 1, .stacks = 1, .index = index};
            to->sum.leaf = leaf;
            if (from->access) {
                view->accesses[index] = *from->access;
                to->sum.access = &view->accesses[index];
            }
            view->context_count++;
        } else {
            hw_view_add_context(&to->sum, from);
            to->merged++;
        }
        if (from->id < ids)
            context_of[from->id] = index;
        view->samples += from->samples;
    }
    hw_index_free(&leaves);
    return true;
}

static int compare_free_stacks(const void *left, const void *right)
{
    const struct hw_view_free_stack *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(b->count, a->count) ?: HW_ORDER(a->leaf, b->leaf);
}

static bool make_free_stacks(struct hw_view *view, const uint32_t *canonical, const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    struct hw_index pairs = {0};
    if (!profile->free_stack_count)
        return true;
    view->free_stacks = calloc(profile->free_stack_count, sizeof *view->free_stacks);
    if (!view->free_stacks || !hw_index_make(&pairs, profile->free_stack_count))
        return false;
    for (size_t i = 0; i < profile->free_stack_count; i++) {
        const struct hw_free_stack *from = &profile->free_stacks[i];
        if (from->alloc_context >= ids || context_of[from->alloc_context] == HW_NONE)
            continue;
        uint32_t leaf = 0;
        if (from->free_context < profile->context_entry_count)
            leaf = profile->context_entries[from->free_context].leaf;
        leaf = leaf < profile->node_count ? canonical[leaf] : 0;
        bool new;
        const uint32_t context = context_of[from->alloc_context];
        const uint32_t index =
            hw_index_intern(&pairs, (struct hw_key){context, leaf}, (uint32_t)view->free_stack_count, &new);
        struct hw_view_free_stack *to = &view->free_stacks[index];
        if (new) {
            *to = (struct hw_view_free_stack){.context = context, .leaf = leaf};
            view->free_stack_count++;
        }
        to->count += from->count;
        to->bytes += from->bytes;
    }
    hw_index_free(&pairs);
    qsort(view->free_stacks, view->free_stack_count, sizeof *view->free_stacks, compare_free_stacks);
    return true;
}

/* ---- accesses by position ---- */

static int compare_histograms(const void *left, const void *right)
{
    const struct hw_profile_histogram *a = left, *b = right;
    return HW_ORDER(a->context, b->context) ?: HW_ORDER(a->first_word, b->first_word);
}

static bool make_histogram(struct hw_view *view, const uint32_t *context_of, size_t ids)
{
    const struct hw_profile *profile = view->profile;
    size_t kept = 0;
    if (!profile->histogram_count)
        return true;
    struct hw_profile_histogram *all = malloc(profile->histogram_count * sizeof *all);
    view->histogram = all;
    if (!all)
        return false;
    for (size_t i = 0; i < profile->histogram_count; i++) {
        const struct hw_profile_histogram *from = &profile->histogram[i];
        if (from->context >= ids || context_of[from->context] == HW_NONE)
            continue;
        all[kept] = *from;
        all[kept++].context = context_of[from->context];
    }
    qsort(all, kept, sizeof *all, compare_histograms);
    for (size_t i = 0; i < kept; i++) {
        struct hw_profile_histogram *to = view->histogram_count ? &all[view->histogram_count - 1] : NULL;
        if (!to || compare_histograms(to, &all[i])) {
            all[view->histogram_count++] = all[i];
            continue;
        }
        to->saturated = hw_add_saturating(to->saturated, all[i].saturated);
        for (size_t word = 0; word < HW_HISTOGRAM_WORDS; word++)
            to->words[word] = hw_add_saturating(to->words[word], all[i].words[word]);
    }
    return true;
}

const struct hw_profile_histogram *hw_view_histogram(const struct hw_view *view, size_t context, size_t *count)
{
    return view->histogram + HW_RUN(view->histogram, view->histogram_count, context, context, count);
}

/* ---- totals ---- */

/* The totals of threads count what the contexts count. Of a damaged file either may be lost: a zero must not stand for
 * it. */
static struct hw_thread_entry whole_totals(const struct hw_profile *profile)
{
    struct hw_thread_entry totals = profile->totals;
    const struct hw_thread_entry *contexts = &profile->context_totals;
    if (!profile->problem_count || totals.allocations >= contexts->allocations)
        return totals;
    totals.allocations = contexts->allocations;
    totals.frees = contexts->frees;
    totals.reallocations = contexts->reallocations;
    totals.temporary = contexts->temporary;
    totals.bytes = contexts->bytes;
    totals.live_blocks = contexts->live_blocks;
    totals.live_bytes = contexts->live_bytes;
    return totals;
}

/* ---- the view ---- */

/* What stacks are shown, and what of them. Which functions are wrappers does not depend on what is left out. */
static bool shape_stacks(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error)
{
    return hw_view_make_roles(view, options) &&
           (options->no_fold || options->keep_frames || options->no_symbols || hw_view_find_wrappers(view)) &&
           hw_view_make_types(view, error) && hw_view_keep(view) &&
           (options->keep_frames || hw_view_cut_stacks(view, options->cut_wrappers && !options->no_fold));
}

struct hw_view *hw_view_new(const struct hw_profile *profile, const struct hw_view_options *options,
                            struct hw_error *error)
{
    static const struct hw_view_options defaults;
    options = options ? options : &defaults;
    const size_t ids = profile->context_entry_count + 1;
    struct hw_view *view = calloc(1, sizeof *view);
    uint32_t *module_of = malloc((profile->map_count + 1) * sizeof *module_of);
    uint32_t *canonical = malloc((profile->node_count + 1) * sizeof *canonical);
    uint32_t *context_of = malloc(ids * sizeof *context_of);
    hw_error_set(error, "%s: not enough memory for the report", profile->path ? profile->path : "profile");
    bool done = view && module_of && canonical && context_of;
    if (view) {
        view->index_of = context_of;
        view->id_count = ids;
    } else {
        free(context_of);
    }
    if (done) {
        view->profile = profile;
        view->type = options->type;
        view->closure = options->closure;
        view->function = options->function;
        view->rules = options->rules;
        view->unfolded = options->no_fold;
        view->totals = whole_totals(profile);
        if (profile->llvm && !profile->llvm->frames && !options->resolve)
            view->locator = hw_locator_new(options->binaries, options->binary_count, profile->path);
        memset(context_of, 0xff, ids * sizeof *context_of); /* HW_NONE */
        done = make_modules(view, module_of) && make_nodes(view, module_of, canonical) &&
               make_contexts(view, canonical, context_of, ids) && make_free_stacks(view, canonical, context_of, ids) &&
               make_histogram(view, context_of, ids) && hw_view_make_distributions(view, context_of, ids) &&
               hw_view_make_words(view, canonical, context_of, ids) && hw_view_make_operations(view, canonical) &&
               hw_view_make_ledger(view, canonical) && hw_view_make_threads(view, canonical, module_of) &&
               hw_view_make_keeps(view, canonical, module_of, context_of, ids) &&
               (options->function || (hw_view_make_samples(view, module_of, context_of, ids) &&
                                      hw_view_make_sides(view, canonical, module_of, context_of, ids))) &&
               hw_view_resolve(view, options, error) && hw_view_suppress(view, options->suppressions) &&
               shape_stacks(view, options, error) && hw_view_name_threads(view) && hw_view_name_keeps(view, options, error) &&
               (options->function || (hw_view_make_globals(view, module_of, options, error) &&
                                      hw_view_make_locks(view, module_of, options, error)));
        if (done)
            hw_view_examine_modules(view);
    }
    free(module_of);
    free(canonical);
    if (!done) {
        hw_view_free(view);
        return NULL;
    }
    hw_error_set(error, "%s", "");
    return view;
}

void hw_view_free(struct hw_view *view)
{
    if (!view)
        return;
    hw_view_free_globals(view);
    hw_view_free_keeps(view);
    hw_symbolizer_free(view->symbolizer);
    free(view->frames);
    hw_locator_free(view->locator);
    hw_view_names_free(view->names);
    free(view->accesses);
    free(view->histogram);
    free(view->size_bars);
    free(view->life_bars);
    hw_view_free_sampled_fields(view);
    free(view->sampled);
    free(view->sample_counts);
    free(view->threads);
    free(view->suppressed);
    free(view->thread_leaves);
    free(view->roles);
    free(view->sides);
    hw_view_free_words(view);
    hw_view_free_operations(view);
    hw_view_free_ledger(view);
    free(view->modules);
    free(view->locations);
    free(view->nodes);
    free(view->contexts);
    free(view->index_of);
    free(view->free_stacks);
    free(view->roles_of_frames);
    free(view->structural);
    hw_view_free_cut(view);
    free(view);
}

const char *hw_mode_name(uint32_t mode)
{
    static const char *const names[] = {
        [HW_MODE_HEAP] = "heap", [HW_MODE_ACCESS] = "access", [HW_MODE_ALLOCATOR] = "allocator"};
    return mode < sizeof names / sizeof *names ? names[mode] : NULL;
}

void hw_hex(char *text, const uint8_t *bytes, uint32_t size)
{
    *text = '\0';
    for (uint32_t i = 0; i < size; i++)
        snprintf(text + (size_t)2 * i, 3, "%02x", bytes[i]);
}

bool hw_view_stack(const struct hw_view *view, uint32_t leaf, struct hw_view_stack *stack)
{
    stack->count = 0;
    stack->unfolded = view->unfolded;
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        const struct hw_view_location *location = &view->locations[view->nodes[node].location];
        if (!HW_GROW(stack->frames, stack->capacity, stack->count + location->frames.count))
            return false;
        for (uint32_t i = 0; i < location->frames.count; i++)
            stack->frames[stack->count++] =
                (struct hw_view_frame){.symbol = &location->frames.frame[i],
                                       .module = location->module == HW_NONE ? NULL : &view->modules[location->module],
                                       .address = location->address,
                                       .location = view->nodes[node].location,
                                       .role = hw_location_role(location, i)};
    }
    return true;
}

void hw_view_stack_free(struct hw_view_stack *stack)
{
    free(stack->frames);
    *stack = (struct hw_view_stack){0};
}

const struct hw_view_free_stack *hw_view_free_stacks(const struct hw_view *view, size_t context, size_t *count)
{
    return view->free_stacks + HW_RUN(view->free_stacks, view->free_stack_count, context, context, count);
}

const struct hw_view_context *hw_view_context_of(const struct hw_view *view, uint32_t id)
{
    size_t count;
    const size_t first = HW_RUN(view->contexts, view->context_count, sum.id, id, &count);
    return count ? &view->contexts[first] : NULL;
}

/* ---- order ---- */

bool hw_view_is_cold(const struct hw_profile_context *context)
{
    if (!context->access || !context->access->all.blocks ||
        context->access->all.not_owned > context->access->all.blocks / 10)
        return false; /* where cells are shared, accesses may be a neighbour's */
    const uint64_t accesses = hw_profile_access_total(&context->access->all);
    return accesses < context->bytes / HW_COLD_BYTES;
}

static int compare_ranked(const void *left, const void *right)
{
    const struct hw_ranked *a = left, *b = right;
    return HW_ORDER(b->value, a->value) ?: HW_ORDER(a->index, b->index);
}

uint32_t *hw_ranked_indexes(struct hw_ranked *ranked, size_t count)
{
    uint32_t *order = ranked ? malloc((count + 1) * sizeof *order) : NULL;
    if (order && count)
        qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; order && i < count; i++)
        order[i] = ranked[i].index;
    free(ranked);
    return order;
}

uint32_t *hw_view_sorted(const struct hw_view_context *contexts, size_t context_count, enum hw_sort_key key, bool all,
                         size_t *count)
{
    struct hw_ranked *ranked = malloc((context_count + 1) * sizeof *ranked);
    *count = 0;
    for (size_t i = 0; ranked && i < context_count; i++) {
        const uint64_t value = hw_sort_value(key, &contexts[i]);
        if (all || value)
            ranked[(*count)++] = (struct hw_ranked){value, (uint32_t)i};
    }
    return hw_ranked_indexes(ranked, *count);
}

const struct hw_memory_breakdown *hw_view_memory(const struct hw_view *view, enum hw_memory_moment moment)
{
    for (size_t i = view->profile->memory_count; i-- > 0;)
        if (view->profile->memory[i].moment == moment)
            return &view->profile->memory[i];
    return NULL;
}

const char *hw_view_moment_key(uint32_t moment)
{
    static const char *const keys[] = {[HW_MOMENT_PEAK] = "peak", [HW_MOMENT_END] = "end", [HW_MOMENT_DUMP] = "dump"};
    return moment < sizeof keys / sizeof *keys ? keys[moment] : NULL;
}

uint64_t hw_view_own_memory(const struct hw_profile *profile)
{
    uint64_t most = 0, own = 0;
    for (size_t i = 0; i < profile->memory_count && !(profile->process.flags & HW_PROCESS_MERGED); i++)
        if (profile->memory[i].rss > most) {
            most = profile->memory[i].rss;
            own = profile->memory[i].runtime;
        }
    return own;
}

uint64_t hw_view_peak_rss(const struct hw_profile *profile)
{
    uint64_t most = profile->process.peak_rss_bytes;
    for (size_t i = 0; i < profile->timeline_count; i++)
        most = greater(most, profile->timeline[i].rss_bytes);
    for (size_t i = 0; i < profile->memory_count; i++)
        most = greater(most, profile->memory[i].rss);
    return most;
}
