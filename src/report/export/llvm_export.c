/* llvm_export.c - see llvm_export.h. */
#include "report/export/llvm_export.h"

#include <stdlib.h>
#include <string.h>

#include "report/text/human.h"
#include "base/index.h"

#define MS 1000000u

/* ---- fields ---- */

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

/* Our densities are thousandths, LLVM's hundredths. LLVM divides their sums by all allocations: blocks whose accesses
 * were not counted (allocated before counting began) are taken for what the others are on average. */
static uint64_t density_total(uint64_t total, uint64_t blocks, uint64_t allocations)
{
    return limited((unsigned __int128)total * (allocations > blocks ? allocations : blocks) / blocks / 10);
}

static void set_accesses(struct hw_llvm_mib *mib, const struct hw_profile_access *access, uint64_t allocations)
{
    mib->field[HW_LLVM_TOTAL_ACCESSES] = hw_profile_access_total(access);
    mib->field[HW_LLVM_MIN_ACCESSES] = access->accesses_min;
    mib->field[HW_LLVM_MAX_ACCESSES] = access->accesses_max;
    mib->field[HW_LLVM_TOTAL_DENSITY] = density_total(access->density_total, access->blocks, allocations);
    mib->field[HW_LLVM_MIN_DENSITY] = access->density_min / 10;
    mib->field[HW_LLVM_MAX_DENSITY] = access->density_max / 10;
    mib->field[HW_LLVM_TOTAL_LIFETIME_DENSITY] =
        density_total(access->lifetime_density_total, access->blocks, allocations);
    mib->field[HW_LLVM_MIN_LIFETIME_DENSITY] = access->lifetime_density_min / 10;
    mib->field[HW_LLVM_MAX_LIFETIME_DENSITY] = access->lifetime_density_max / 10;
}

/* Not counted, or only for a few blocks that need not be like the others. Periods of used words are no accesses: only
 * where there is none it is known how many there were. */
static bool is_counted(const struct hw_view *view, const struct hw_profile_context *sum)
{
    return sum->access && sum->access->all.blocks && sum->access->all.blocks >= sum->allocations / 2 &&
           !(hw_profile_counts_periods(view->profile) && hw_profile_access_total(&sum->access->all));
}

static bool lives_long(const struct hw_profile_context *sum, uint64_t cold_after_ns)
{
    const uint64_t live = hw_not_negative(sum->live_blocks), blocks = sum->frees + live;
    const unsigned __int128 total = sum->lifetime_total_ns + (live ? sum->live_age_total_ns : 0);
    return cold_after_ns && blocks && total / blocks >= cold_after_ns;
}

static uint32_t known_fields(const struct hw_view *view)
{
    return view->profile->llvm ? view->profile->llvm->known : HW_LLVM_KNOWN_ALL;
}

/* A pool's blocks lie in blocks that are exported, and come from no operator new that the compiler could change. */
static bool is_told(const struct hw_view_context *context)
{
    return context->sum.allocations && !context->sum.pool;
}

static struct hw_llvm_context make_context(struct hw_llvm_export *export, const struct hw_view *view,
                                           const struct hw_view_context *context,
                                           const struct hw_llvm_export_options *options)
{
    const struct hw_profile_context *sum = &context->sum;
    struct hw_llvm_context made = {0};
    uint64_t *field = made.mib.field;
    if (view->profile->llvm && context->merged == 1) { /* nothing is lost on the way */
        made.mib = view->profile->llvm->mibs[sum->id];
        return made;
    }
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
    if (is_counted(view, sum)) {
        set_accesses(&made.mib, &sum->access->all, sum->allocations);
    } else {
        const bool cold = lives_long(sum, options->cold_after_ns);
        const uint64_t density = cold ? 0 : HW_LLVM_NEITHER;
        field[HW_LLVM_TOTAL_LIFETIME_DENSITY] = limited((unsigned __int128)density * sum->allocations);
        field[HW_LLVM_MIN_LIFETIME_DENSITY] = field[HW_LLVM_MAX_LIFETIME_DENSITY] = density;
        export->uncounted++;
        export->cold_by_time += cold;
    }
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

/* Blocks that are larger than this have a histogram of their beginning. */
#define CELLS_MOST 65536u

/* The runs of a context are neighbours. */
static size_t histogram_cells(const struct hw_view *view, size_t first, size_t *end)
{
    size_t cells = 0;
    for (*end = first; *end < view->histogram_count; ++*end) {
        const struct hw_profile_histogram *run = &view->histogram[*end];
        if (run->context != view->histogram[first].context)
            break;
        for (uint32_t i = 0; i < HW_HISTOGRAM_WORDS; i++)
            if (run->words[i] && run->first_word + i < CELLS_MOST)
                cells = run->first_word + i + 1;
    }
    return cells;
}

/* Gives the contexts (by the view's index, + 1 in CONTEXT_AT) their cells. */
static bool add_histograms(struct hw_llvm_profile *profile, const struct hw_view *view, const uint32_t *context_at)
{
    size_t total = 0, end;
    for (size_t i = 0; i < view->histogram_count; i = end)
        total += histogram_cells(view, i, &end);
    uint64_t *cells = profile->histograms = calloc(total + 1, sizeof *cells);
    for (size_t i = 0; cells && i < view->histogram_count; i = end) {
        const size_t count = histogram_cells(view, i, &end);
        const uint32_t context = context_at[view->histogram[i].context];
        for (size_t k = i; k < end; k++)
            for (uint32_t word = 0; word < HW_HISTOGRAM_WORDS; word++)
                if (view->histogram[k].first_word + word < count)
                    cells[view->histogram[k].first_word + word] = view->histogram[k].words[word];
        if (context && count) {
            profile->contexts[context - 1].histogram = cells;
            profile->contexts[context - 1].mib.field[HW_LLVM_HISTOGRAM_SIZE] = count;
        }
        cells += count;
    }
    return profile->histograms != NULL;
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
    *export = (struct hw_llvm_export){.profile.known = known_fields(view)};
    size_t size = 0;
    for (size_t i = 0; i < view->context_count; i++)
        size += depth_of(view, view->contexts[i].sum.leaf);
    uint64_t *bias = malloc((view->module_count + 1) * sizeof *bias);
    uint32_t *context_at = calloc(view->context_count + 1, sizeof *context_at);
    profile->stacks = malloc((size + 1) * sizeof *profile->stacks);
    profile->contexts = malloc((view->context_count + 1) * sizeof *profile->contexts);
    bool fine = bias && context_at && profile->stacks && profile->contexts && place_segments(profile, view, bias);
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        if (!is_told(context))
            continue;
        if (!context->sum.leaf) {
            export->left_out++;
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
        context_at[i] = (uint32_t)profile->context_count;
    }
    fine = fine && add_histograms(profile, view, context_at);
    free(context_at);
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

static void choose_modules(bool *chosen, const struct hw_view *view, const struct hw_llvm_export_options *options)
{
    for (size_t i = 0; i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        chosen[i] = !options->module_count && module->kind == HW_MODULE_PROGRAM;
        for (size_t k = 0; k < options->module_count; k++)
            chosen[i] |= is_named(module, options->modules[k]);
    }
}

/* Frames need files and lines. */
static bool keep_those_with_lines(bool *chosen, const struct hw_view *view)
{
    bool any = false;
    for (size_t i = 0; i < view->module_count; i++) {
        chosen[i] = chosen[i] && (!view->names_sought || view->modules[i].has_debug_info);
        any |= chosen[i];
    }
    return any;
}

static bool add_variables(struct hw_llvm_export *export, const struct hw_view *view, const bool *chosen)
{
    struct hw_variables *from = &export->variables;
    if (!hw_variables_make(from, view, chosen, true))
        return false;
    struct hw_llvm_variable *to = export->profile.variables = malloc((from->count + 1) * sizeof *to);
    for (size_t i = 0; to && i < from->count; i++)
        to[i] = (struct hw_llvm_variable){.name = from->variable[i].name,
                                          .name_size = from->variable[i].name_size,
                                          .use = from->variable[i].use,
                                          .accesses = from->variable[i].accesses};
    export->profile.variable_count = to ? from->count : 0;
    return to != NULL;
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
    struct hw_index functions = {0}, frames = {0};
    size_t count = 0, used = 0;
    for (size_t i = 0; i < view->location_count; i++)
        count += view->locations[i].frames.count;
    builder->chain = malloc((count + 1) * sizeof *builder->chain);
    profile->frames = malloc((count + 1) * sizeof *profile->frames);
    uint32_t function_count = 0;
    bool new, fine = builder->chain && profile->frames &&hw_index_make(&functions, 2 * count + 1) &&
                     hw_index_make(&frames, count + 1);
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
            const uint32_t function =
                hw_index_intern(&functions, (struct hw_key){frame.function, 0}, function_count, &new);
            function_count += new;
            const uint64_t place = (uint64_t)frame.line_offset << 32 | frame.column;
            const uint32_t index = hw_index_intern(&frames, (struct hw_key){place, function << 1 | frame.inlined},
                                                   (uint32_t)profile->frame_count, &new);
            if (new)
                profile->frames[profile->frame_count++] = frame;
            builder->chain[used++] = index;
        }
    }
    hw_index_free(&functions);
    hw_index_free(&frames);
    return fine;
}

/* Fills `leaf`: parents come before their nodes. */
static bool make_tree(struct frame_builder *builder)
{
    const struct hw_view *view = builder->view;
    struct hw_index nodes = {0};
    size_t most = 1;
    for (size_t i = 1; i < view->node_count; i++)
        most += view->locations[view->nodes[i].location].frames.count;
    builder->tree = malloc(most * sizeof *builder->tree);
    builder->context_of = calloc(most, sizeof *builder->context_of);
    if (!builder->tree || !builder->context_of || !hw_index_make(&nodes, most))
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
            node =
                hw_index_intern(&nodes, (struct hw_key){call.frame, call.parent}, (uint32_t)builder->tree_size, &new);
            if (new)
                builder->tree[builder->tree_size++] = call;
        }
        builder->leaf[i] = node;
    }
    hw_index_free(&nodes);
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
        if (!is_told(context))
            continue;
        if (!leaf) {
            export->left_out++;
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
    *export = (struct hw_llvm_export){.profile = {.symbolized = true, .known = known_fields(view)}};
    struct frame_builder builder = {.view = view, .options = options, .profile = &export->profile};
    builder.chosen = calloc(view->module_count + 1, sizeof *builder.chosen);
    builder.first = malloc((view->location_count + 1) * sizeof *builder.first);
    builder.leaf = malloc((view->node_count + 1) * sizeof *builder.leaf);
    bool fine = builder.chosen && builder.first && builder.leaf;
    if (fine) {
        choose_modules(builder.chosen, view, options);
        fine = add_variables(export, view, builder.chosen);
    }
    if (fine) {
        export->no_debug_info =
            !keep_those_with_lines(builder.chosen, view) && !(view->profile->llvm && view->profile->llvm->frames);
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
    hw_variables_free(&export->variables);
}
