/* llvm_export.c - see llvm_export.h. */
#include "report/llvm_export.h"

#include <stdlib.h>
#include <string.h>

#include "report/human.h"
#include "report/pairs.h"

#define MS 1000000u

/* ---- fields ---- */

/* What was counted of the accesses to a context's blocks, in LLVM's units: densities are accesses * 100 / size. */
struct accesses {
    bool counted; /* else nothing below holds */
    uint64_t total, min, max;
    uint64_t density_total, density_min, density_max;
    uint64_t lifetime_density_total, lifetime_density_min, lifetime_density_max;
    const uint64_t *histogram; /* accesses to every 8 bytes, or NULL */
    uint64_t histogram_size;
};

/* The one place that knows where accesses come from. */
static struct accesses accesses_of(const struct hw_view *view, const struct hw_view_context *context)
{
    return (struct accesses){0};
}

static uint64_t limited(unsigned __int128 value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* LLVM takes the end of the run for the end of what still lives. Of live blocks only the sum of ages is known: they
 * enter the range of lifetimes with their mean. */
static void set_lifetimes(struct hw_llvm_mib *mib, const struct hw_profile_context *sum)
{
    const uint64_t live = hw_not_negative(sum->live_blocks);
    const uint64_t age = live ? sum->live_age_total_ns : 0, mean = live ? age / live : 0;
    uint64_t least = sum->lifetime_min_ns, most = sum->lifetime_max_ns;
    if (live) {
        least = sum->frees && least < mean ? least : mean;
        most = sum->frees && most > mean ? most : mean;
    }
    mib->field[HW_LLVM_TOTAL_LIFETIME] = limited((sum->lifetime_total_ns + age) / MS);
    mib->field[HW_LLVM_MIN_LIFETIME] = least / MS;
    mib->field[HW_LLVM_MAX_LIFETIME] = most / MS;
}

static void set_accesses(struct hw_llvm_mib *mib, const struct accesses *accesses)
{
    mib->field[HW_LLVM_TOTAL_ACCESSES] = accesses->total;
    mib->field[HW_LLVM_MIN_ACCESSES] = accesses->min;
    mib->field[HW_LLVM_MAX_ACCESSES] = accesses->max;
    mib->field[HW_LLVM_TOTAL_DENSITY] = accesses->density_total;
    mib->field[HW_LLVM_MIN_DENSITY] = accesses->density_min;
    mib->field[HW_LLVM_MAX_DENSITY] = accesses->density_max;
    mib->field[HW_LLVM_TOTAL_LIFETIME_DENSITY] = accesses->lifetime_density_total;
    mib->field[HW_LLVM_MIN_LIFETIME_DENSITY] = accesses->lifetime_density_min;
    mib->field[HW_LLVM_MAX_LIFETIME_DENSITY] = accesses->lifetime_density_max;
    mib->field[HW_LLVM_HISTOGRAM_SIZE] = accesses->histogram ? accesses->histogram_size : 0;
}

static bool lives_long(const struct hw_profile_context *sum, uint64_t cold_after_ns)
{
    const uint64_t live = hw_not_negative(sum->live_blocks), blocks = sum->frees + live;
    const unsigned __int128 total = sum->lifetime_total_ns + (live ? sum->live_age_total_ns : 0);
    return cold_after_ns && blocks && total / blocks >= cold_after_ns;
}

static struct hw_llvm_context make_context(struct hw_llvm_export *export, const struct hw_view *view,
                                           const struct hw_view_context *context,
                                           const struct hw_llvm_export_options *options)
{
    const struct hw_profile_context *sum = &context->sum;
    struct hw_llvm_context made = {0};
    uint64_t *field = made.mib.field;
    struct accesses accesses = accesses_of(view, context);
    field[HW_LLVM_ALLOC_COUNT] = sum->allocations;
    field[HW_LLVM_TOTAL_SIZE] = sum->bytes;
    field[HW_LLVM_MIN_SIZE] = sum->size_min;
    field[HW_LLVM_MAX_SIZE] = sum->size_max;
    field[HW_LLVM_ALLOC_TIME] = sum->last_alloc_ns / MS;
    field[HW_LLVM_FREE_TIME] = (sum->live_blocks > 0 ? view->profile->duration_ns : sum->last_free_ns) / MS;
    field[HW_LLVM_ALLOC_CPU] = sum->last_alloc_cpu;
    field[HW_LLVM_FREE_CPU] = sum->last_free_cpu;
    field[HW_LLVM_MIGRATED_CPU] = sum->migrated_cpu;
    field[HW_LLVM_LIFETIME_OVERLAPS] = sum->lifetime_overlaps;
    field[HW_LLVM_SAME_ALLOC_CPU] = sum->same_alloc_cpu;
    field[HW_LLVM_SAME_FREE_CPU] = sum->same_free_cpu;
    set_lifetimes(&made.mib, sum);
    if (!accesses.counted) {
        const bool cold = lives_long(sum, options->cold_after_ns);
        const uint64_t density = cold ? 0 : HW_LLVM_NEITHER;
        accesses = (struct accesses){.lifetime_density_total = limited((unsigned __int128)density * sum->allocations),
                                     .lifetime_density_min = density,
                                     .lifetime_density_max = density};
        export->uncounted++;
        export->cold_by_time += cold;
    }
    set_accesses(&made.mib, &accesses);
    made.histogram = accesses.histogram;
    return made;
}

/* ---- raw: program counters ---- */

/* Where the code of each module is put: where it was, unless another one was there at another time. */
static bool place_segments(struct hw_llvm_profile *profile, const struct hw_view *view, uint64_t *bias)
{
    uint64_t highest = 0;
    profile->segments = calloc(view->module_count + 1, sizeof *profile->segments);
    for (size_t i = 0; profile->segments && i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        const uint64_t start = module->code_start + module->bias, end = module->code_end + module->bias;
        bool taken = false;
        bias[i] = module->bias;
        if (module->kind == HW_MODULE_GENERATED || module->flags & HW_MAP_RUNTIME)
            continue;
        for (size_t k = 0; k < profile->segment_count; k++)
            taken |= start < profile->segments[k].end && profile->segments[k].start < end;
        if (taken)
            bias[i] = ((highest | 0xfffff) + 1) - (module->code_start & ~0xfffull);
        struct hw_llvm_segment *segment = &profile->segments[profile->segment_count++];
        *segment = (struct hw_llvm_segment){.start = module->code_start + bias[i],
                                            .end = module->code_end + bias[i],
                                            .bias = bias[i],
                                            .build_id_size = module->build_id_size};
        memcpy(segment->build_id, module->build_id, module->build_id_size);
        highest = segment->end > highest ? segment->end : highest;
    }
    return profile->segments != NULL;
}

static bool is_main(const struct hw_view_module *module)
{
    return module->flags & HW_MAP_MAIN;
}

static bool no_memory(struct hw_error *error, const struct hw_view *view)
{
    hw_error_set(error, "%s: not enough memory for the export", view->profile->path ? view->profile->path : "profile");
    return false;
}

static uint32_t depth_of(const struct hw_view *view, uint32_t leaf)
{
    uint32_t depth = 0;
    for (uint32_t node = leaf; node; node = view->nodes[node].parent)
        depth++;
    return depth;
}

bool hw_llvm_export_raw(struct hw_llvm_export *export, const struct hw_view *view,
                        const struct hw_llvm_export_options *options, struct hw_error *error)
{
    struct hw_llvm_profile *profile = &export->profile;
    *export = (struct hw_llvm_export){.profile.known = HW_LLVM_KNOWN_ALL};
    size_t size = 0;
    for (size_t i = 0; i < view->context_count; i++)
        size += depth_of(view, view->contexts[i].sum.leaf);
    uint64_t *bias = malloc((view->module_count + 1) * sizeof *bias);
    profile->stacks = malloc((size + 1) * sizeof *profile->stacks);
    profile->contexts = malloc((view->context_count + 1) * sizeof *profile->contexts);
    const bool fine = bias && profile->stacks && profile->contexts && place_segments(profile, view, bias);
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        if (!context->sum.allocations || !context->sum.leaf) {
            export->left_out += context->sum.allocations > 0;
            continue;
        }
        struct hw_llvm_context made = make_context(export, view, context, options);
        made.first = profile->stack_size;
        for (uint32_t node = context->sum.leaf; node; node = view->nodes[node].parent) {
            const struct hw_view_location *location = &view->locations[view->nodes[node].location];
            const uint64_t moved =
                location->module == HW_NONE || view->modules[location->module].kind == HW_MODULE_GENERATED
                    ? 0
                    : bias[location->module];
            profile->stacks[profile->stack_size++] = location->address + moved;
        }
        made.count = (uint32_t)(profile->stack_size - made.first);
        profile->contexts[profile->context_count++] = made;
    }
    for (size_t i = 0; i < view->module_count; i++)
        export->no_build_id |= is_main(&view->modules[i]) && !view->modules[i].build_id_size;
    free(bias);
    if (fine)
        return true;
    hw_llvm_export_free(export);
    return no_memory(error, view);
}

/* ---- frames ---- */

struct frame_builder {
    const struct hw_view *view;
    const struct hw_llvm_export_options *options;
    struct hw_llvm_profile *profile;
    bool *chosen;    /* by module */
    size_t *first;   /* by location: in `chain`; SIZE_MAX: left out */
    uint32_t *chain; /* indexes of frames */
    uint32_t *leaf;  /* by node of the view: node of the tree */
    struct node {    /* the tree of calls as LLVM's frames have it; 0 is the root */
        uint32_t parent, frame;
    } * tree;
    uint32_t *context_of; /* by node of the tree: context + 1 */
    size_t tree_size;
};

static bool is_named(const struct hw_view_module *module, const char *name)
{
    return !strcmp(module->path, name) || !strcmp(module->name, name);
}

static bool choose_modules(struct frame_builder *builder)
{
    const struct hw_view *view = builder->view;
    bool any = false;
    for (size_t i = 0; i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        bool wanted = module->kind == HW_MODULE_PROGRAM;
        for (size_t k = 0; k < builder->options->module_count; k++)
            wanted = (k > 0 && wanted) || is_named(module, builder->options->modules[k]);
        if (view->symbolizer)
            wanted = wanted && hw_symbolizer_module_has_debug_info(view->symbolizer, module->symbols);
        builder->chosen[i] = wanted;
        any |= wanted;
    }
    return any;
}

/* DWARF without a linkage name (local types and lambdas as gcc describes them) leaves LLVM with the name alone: that
 * is what stands behind the last scope. */
static const char *short_name(const char *function)
{
    const char *name = function;
    int depth = 0;
    for (const char *at = function; *at; at++) {
        depth += *at == '<' || *at == '(' || *at == '{';
        depth -= *at == '>' || *at == ')' || *at == '}';
        if (depth == 0 && at[0] == ':' && at[1] == ':')
            name = at + 2;
    }
    return name;
}

static bool has_frames(const struct hw_frames *frames)
{
    const struct hw_frame *frame = frames->frame;
    return frames->count && (frame->linkage_name || frame->function) && (frame->file || frame->line) &&
           !(frame->function && !strcmp(frame->function, HW_SIGNAL_FRAME));
}

static struct hw_llvm_frame make_frame(const struct hw_frames *frames, uint32_t index)
{
    const struct hw_frame *from = &frames->frame[index];
    const char *name = from->linkage_name ? from->linkage_name : from->function ? short_name(from->function) : "";
    return (struct hw_llvm_frame){.function = hw_llvm_guid(name),
                                  .line_offset = from->line - from->start_line,
                                  .column = from->column,
                                  .inlined = index + 1 < frames->count,
                                  .name = name};
}

/* Turns every location that counts into frames, equal ones once. */
static bool make_frames(struct frame_builder *builder)
{
    const struct hw_view *view = builder->view;
    struct hw_llvm_profile *profile = builder->profile;
    struct hw_pairs functions = {0}, frames = {0};
    size_t count = 0, used = 0;
    for (size_t i = 0; i < view->location_count; i++)
        count += view->locations[i].frames.count;
    builder->chain = malloc((count + 1) * sizeof *builder->chain);
    profile->frames = malloc((count + 1) * sizeof *profile->frames);
    uint32_t function_count = 0;
    bool new, fine = builder->chain && profile->frames &&hw_pairs_make(&functions, 2 * count + 1) &&
                     hw_pairs_make(&frames, count + 1);
    for (size_t i = 0; fine && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        const struct hw_llvm_frame *own = hw_view_llvm_frame(view, location);
        builder->first[i] = SIZE_MAX;
        if (!own &&
            (location->module == HW_NONE || !builder->chosen[location->module] || !has_frames(&location->frames)))
            continue;
        builder->first[i] = used;
        for (uint32_t k = 0; k < location->frames.count; k++) {
            const struct hw_llvm_frame frame = own ? *own : make_frame(&location->frames, k);
            /* Identity: the function's number, then place and number. */
            const uint32_t function = hw_pairs_intern(&functions, frame.function, 0, function_count, &new);
            function_count += new;
            const uint64_t place = (uint64_t)frame.line_offset << 32 | frame.column;
            const uint32_t index =
                hw_pairs_intern(&frames, place, function << 1 | frame.inlined, (uint32_t)profile->frame_count, &new);
            if (new)
                profile->frames[profile->frame_count++] = frame;
            builder->chain[used++] = index;
        }
    }
    hw_pairs_free(&functions);
    hw_pairs_free(&frames);
    return fine;
}

/* Fills `leaf`: parents come before their nodes. */
static bool make_tree(struct frame_builder *builder)
{
    const struct hw_view *view = builder->view;
    struct hw_pairs nodes = {0};
    size_t most = 1;
    for (size_t i = 1; i < view->node_count; i++)
        most += view->locations[view->nodes[i].location].frames.count;
    builder->tree = malloc(most * sizeof *builder->tree);
    builder->context_of = calloc(most, sizeof *builder->context_of);
    if (!builder->tree || !builder->context_of || !hw_pairs_make(&nodes, most))
        return false;
    builder->tree[0] = (struct node){0};
    builder->tree_size = 1;
    builder->leaf[0] = 0;
    for (size_t i = 1; i < view->node_count; i++) {
        const struct hw_view_node *from = &view->nodes[i];
        const size_t first = builder->first[from->location];
        uint32_t node = builder->leaf[from->parent];
        for (uint32_t k = first == SIZE_MAX ? 0 : view->locations[from->location].frames.count; k-- > 0;) {
            const struct node call = {.parent = node, .frame = builder->chain[first + k]};
            bool new;
            node = hw_pairs_intern(&nodes, call.frame, call.parent, (uint32_t)builder->tree_size, &new);
            if (new)
                builder->tree[builder->tree_size++] = call;
        }
        builder->leaf[i] = node;
    }
    hw_pairs_free(&nodes);
    return true;
}

/* The contexts' stacks, one behind the other, have room for all frames of all of them. */
static bool make_room(struct frame_builder *builder)
{
    const struct hw_view *view = builder->view;
    size_t size = 0;
    for (size_t i = 0; i < view->context_count; i++)
        for (uint32_t node = builder->leaf[view->contexts[i].sum.leaf]; node; node = builder->tree[node].parent)
            size++;
    builder->profile->stacks = malloc((size + 1) * sizeof *builder->profile->stacks);
    builder->profile->contexts = malloc((view->context_count + 1) * sizeof *builder->profile->contexts);
    return builder->profile->stacks && builder->profile->contexts;
}

static void add_stack(struct frame_builder *builder, uint32_t leaf, struct hw_llvm_context *context)
{
    struct hw_llvm_profile *profile = builder->profile;
    context->first = profile->stack_size;
    for (uint32_t node = leaf; node; node = builder->tree[node].parent)
        profile->stacks[profile->stack_size++] = builder->tree[node].frame;
    context->count = (uint32_t)(profile->stack_size - context->first);
}

static bool make_contexts(struct frame_builder *builder, struct hw_llvm_export *export)
{
    const struct hw_view *view = builder->view;
    struct hw_llvm_profile *profile = builder->profile;
    if (!make_room(builder))
        return false;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        const uint32_t leaf = builder->leaf[context->sum.leaf];
        if (!context->sum.allocations || !leaf) {
            export->left_out += context->sum.allocations > 0;
            continue;
        }
        struct hw_llvm_context made = make_context(export, view, context, builder->options);
        if (builder->context_of[leaf]) {
            hw_llvm_mib_add(&profile->contexts[builder->context_of[leaf] - 1].mib, &made.mib);
            export->merged++;
            continue;
        }
        add_stack(builder, leaf, &made);
        profile->contexts[profile->context_count++] = made;
        builder->context_of[leaf] = (uint32_t)profile->context_count;
    }
    return true;
}

bool hw_llvm_export_frames(struct hw_llvm_export *export, const struct hw_view *view,
                           const struct hw_llvm_export_options *options, struct hw_error *error)
{
    *export = (struct hw_llvm_export){.profile = {.symbolized = true, .known = HW_LLVM_KNOWN_ALL}};
    struct frame_builder builder = {.view = view, .options = options, .profile = &export->profile};
    builder.chosen = calloc(view->module_count + 1, sizeof *builder.chosen);
    builder.first = malloc((view->location_count + 1) * sizeof *builder.first);
    builder.leaf = malloc((view->node_count + 1) * sizeof *builder.leaf);
    bool fine = builder.chosen && builder.first && builder.leaf;
    if (fine) {
        export->no_debug_info = !choose_modules(&builder) && !(view->profile->llvm && view->profile->llvm->frames);
        fine = make_frames(&builder) && make_tree(&builder) && make_contexts(&builder, export);
    }
    free(builder.chosen);
    free(builder.first);
    free(builder.chain);
    free(builder.leaf);
    free(builder.tree);
    free(builder.context_of);
    if (fine)
        return true;
    hw_llvm_export_free(export);
    return no_memory(error, view);
}

void hw_llvm_export_free(struct hw_llvm_export *export)
{
    hw_llvm_profile_free(&export->profile);
}
