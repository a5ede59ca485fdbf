/* resolve.c - names for a view: from the profile's own symbols, else from the binaries; or from a test.
 *
 * What the profile says of an address is the answer: binaries are opened only for modules with addresses of which it
 * says nothing. So a symbolised profile gives the same report with and without them. */
#include <stdlib.h>
#include <string.h>

#include "profile/model/symbolised.h"
#include "report/view/llvm_names.h"
#include "report/view/view.h"

/* What a location is called when nothing is known: one frame without a name. */
static const struct hw_frame nameless;

/* ---- the profile's own symbols ---- */

static const char *text_of(const struct hw_profile *profile, uint32_t string)
{
    return string ? hw_profile_string(profile, string) : NULL;
}

static void take_marks(struct hw_view *view)
{
    const struct hw_symbolised *symbols = view->profile->symbolised;
    for (size_t i = 0; symbols && i < view->module_count; i++) {
        struct hw_view_module *module = &view->modules[i];
        const struct hw_module_mark *mark = hw_symbolised_module(symbols, module->map);
        if (!mark)
            continue;
        module->examined = true;
        module->usable = mark->flags & HW_MARK_USABLE;
        module->has_debug_info = mark->flags & HW_MARK_DEBUG_INFO;
        module->counting = mark->flags & HW_MARK_COUNTS       ? HW_COUNTING_YES
                           : mark->flags & HW_MARK_COUNTS_NOT ? HW_COUNTING_NO
                                                              : HW_COUNTING_UNKNOWN;
        module->problem = text_of(view->profile, mark->problem);
    }
}

static bool is_generated(const struct hw_view *view, const struct hw_view_location *location)
{
    return location->module != HW_NONE && view->modules[location->module].kind == HW_MODULE_GENERATED;
}

/* Says which locations the profile has answers for. Their frames come later: FIRST (by location) holds where they
 * begin, or HW_NONE. */
static void find_answers(struct hw_view *view, uint32_t *first)
{
    const struct hw_symbolised *symbols = view->profile->symbolised;
    for (size_t i = 0; symbols && i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        if (is_generated(view, location))
            continue;
        const uint32_t map = location->module == HW_NONE ? HW_NONE : view->modules[location->module].map;
        const struct hw_location *answer = hw_symbolised_location(symbols, map, location->address);
        if (!answer)
            continue;
        location->answered = true;
        location->frames.count = answer->frame_count;
        first[i] = answer->first_frame;
    }
}

/* A name of the profile as those of the symbolizer: names that are equal are the same pointer in a view. */
static const char *shared_text(const struct hw_view *view, const char *text, bool *failed)
{
    if (!text || !view->symbolizer)
        return text;
    text = hw_symbolizer_intern(view->symbolizer, text);
    *failed |= !text;
    return text;
}

static bool make_frames(struct hw_view *view, const uint32_t *first)
{
    const struct hw_symbolised *symbols = view->profile->symbolised;
    bool failed = false;
    if (!symbols)
        return true;
    view->frames = malloc((symbols->frame_count + 1) * sizeof *view->frames);
    for (size_t i = 0; view->frames && i < symbols->frame_count; i++) {
        const struct hw_symbol_frame *frame = &symbols->frames[i];
        view->frames[i] =
            (struct hw_frame){.function = shared_text(view, text_of(view->profile, frame->function), &failed),
                              .linkage_name = shared_text(view, text_of(view->profile, frame->linkage_name), &failed),
                              .file = shared_text(view, frame->file ? symbols->paths[frame->file] : NULL, &failed),
                              .line = frame->line,
                              .column = frame->column,
                              .discriminator = frame->discriminator,
                              .start_line = frame->start_line,
                              .relative_line = frame->relative_line,
                              .inlined = frame->flags & HW_SYMBOL_INLINED};
    }
    for (size_t i = 0; view->frames && i < view->location_count; i++)
        if (first[i] != HW_NONE)
            view->locations[i].frames.frame = &view->frames[first[i]];
    return view->frames && !failed;
}

/* ---- binaries ---- */

int hw_view_symbols(struct hw_view *view, struct hw_view_module *module, const struct hw_view_options *options,
                    struct hw_error *error)
{
    if (!view->symbolizer)
        view->symbolizer = hw_symbolizer_new(&options->symbolizer, error);
    if (view->symbolizer && module->symbols < 0)
        module->symbols =
            hw_symbolizer_add_module(view->symbolizer, module->path, module->build_id, module->build_id_size);
    return module->symbols;
}

/* Asks the binaries for what the profile has no answers to. */
static bool ask_binaries(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error)
{
    long *tickets = malloc((view->location_count + 1) * sizeof *tickets);
    bool done = tickets != NULL;
    for (size_t i = 0; done && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        tickets[i] = -1;
        if (location->answered || location->module == HW_NONE || is_generated(view, location))
            continue;
        const int module = hw_view_symbols(view, &view->modules[location->module], options, error);
        tickets[i] = module < 0 ? -1 : hw_symbolizer_add(view->symbolizer, module, location->address);
        done = tickets[i] >= 0;
    }
    done = done && (!view->symbolizer || hw_symbolizer_run(view->symbolizer, error));
    for (size_t i = 0; done && i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        if (tickets[i] < 0)
            continue;
        location->frames = hw_symbolizer_frames(view->symbolizer, tickets[i]);
        location->answered = hw_symbolizer_module_usable(view->symbolizer, view->modules[location->module].symbols);
    }
    free(tickets);
    return done;
}

void hw_view_examine_modules(struct hw_view *view)
{
    for (size_t i = 0; i < view->module_count; i++) {
        struct hw_view_module *module = &view->modules[i];
        if (module->symbols < 0)
            continue;
        const bool usable = hw_symbolizer_module_usable(view->symbolizer, module->symbols);
        if (module->examined && !usable)
            continue; /* the profile knows more */
        module->examined = true;
        module->usable = usable;
        module->has_debug_info = hw_symbolizer_module_has_debug_info(view->symbolizer, module->symbols);
        module->problem = hw_symbolizer_module_problem(view->symbolizer, module->symbols);
    }
}

/* ---- marks and types ---- */

/* What the run has noted: it holds also where the file is gone, and for libraries that no stack leads through. */
static enum hw_counting noted_counting(const struct hw_view_module *module, uint32_t flag)
{
    return !(module->flags & HW_MAP_NOTES_READ) ? HW_COUNTING_UNKNOWN
           : module->flags & flag               ? HW_COUNTING_YES
                                                : HW_COUNTING_NO;
}

/* Names of types, and which modules count at all. */
static bool read_marks(struct hw_view *view, struct hw_error *error)
{
    const struct hw_profile *profile = view->profile;
    bool done = true;
    for (size_t i = 0; !profile->llvm && done && i < view->module_count; i++) {
        struct hw_view_module *module = &view->modules[i];
        const bool code = !(module->flags & HW_MAP_RUNTIME) && module->kind != HW_MODULE_GENERATED &&
                          *module->path != '['; /* the vDSO */
        const enum hw_counting noted = noted_counting(module, HW_MAP_COUNTS);
        if ((profile->access_counted || profile->fields.counted) && module->symbols >= 0) {
            done = hw_symbolizer_read_marks(view->symbolizer, module->symbols, error);
            const enum hw_counting counting = hw_symbolizer_counting(view->symbolizer, module->symbols);
            module->counting = counting == HW_COUNTING_UNKNOWN ? module->counting : counting;
        }
        /* Objects of clang -fmemory-profile carry no note: what was read of their files decides. */
        if (noted == HW_COUNTING_YES || (noted == HW_COUNTING_NO && !(profile->access_info.flags & HW_ACCESS_UNSPLIT)))
            module->counting = noted;
        module->uncounted = profile->access_counted && code && module->counting == HW_COUNTING_NO;
        module->counting_fields = noted_counting(module, HW_MAP_COUNTS_FIELDS);
        module->fields_uncounted = profile->fields.counted && code && module->counting_fields == HW_COUNTING_NO;
    }
    return done;
}

const char *hw_view_type_name(const struct hw_view *view, uint64_t id)
{
    const struct hw_symbolised *symbols = view->names_sought ? view->profile->symbolised : NULL;
    const uint32_t name = symbols ? hw_symbolised_type(symbols, id) : 0;
    if (view->type)
        return view->type(view->closure, id);
    if (name)
        return hw_profile_string(view->profile, name);
    return view->symbolizer ? hw_symbolizer_type(view->symbolizer, id) : NULL;
}

const struct hw_view_module *hw_view_uncounted_owner(const struct hw_view *view, const struct hw_profile_context *sum)
{
    if (!sum->leaf || sum->leaf >= view->node_count)
        return NULL;
    const uint32_t module = view->locations[view->nodes[sum->leaf].location].module;
    return module != HW_NONE && view->modules[module].uncounted ? &view->modules[module] : NULL;
}

const char *hw_view_type(const struct hw_view *view, const struct hw_profile_context *context)
{
    return context->type && !context->types_differ ? hw_view_type_name(view, context->type) : NULL;
}

bool hw_view_used_unseen(const struct hw_view *view, const struct hw_profile_context *sum)
{
    const char *type = hw_view_type(view, sum);
    return hw_view_uncounted_owner(view, sum) || (sum->access && sum->access->all.unseen_writes) ||
           (type && hw_profile_is_library_type(type));
}

size_t hw_view_uncounted_libraries(const struct hw_view *view, bool fields, const struct hw_view_module **first)
{
    size_t count = 0;
    *first = NULL;
    for (size_t i = view->module_count; i-- > 0;) {
        const struct hw_view_module *module = &view->modules[i];
        if (module->kind != HW_MODULE_PROGRAM || !(fields ? module->fields_uncounted : module->uncounted))
            continue;
        *first = module;
        count++;
    }
    return count;
}

/* ---- all of it ---- */

static void ask_test(struct hw_view *view, const struct hw_view_options *options)
{
    for (size_t i = 0; i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        if (location->module == HW_NONE)
            continue;
        struct hw_frames frames =
            options->resolve(options->closure, view->modules[location->module].path, location->address);
        if (frames.count)
            location->frames = frames;
    }
}

static bool seek_names(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error)
{
    const bool numbered = view->profile->llvm && view->profile->llvm->frames;
    uint32_t *first = malloc((view->location_count + 1) * sizeof *first);
    bool done = first != NULL;
    if (done)
        memset(first, 0xff, (view->location_count + 1) * sizeof *first); /* HW_NONE */
    view->names_sought = !numbered;
    if (done && numbered)
        done = hw_view_name_frames(view, options->binary_count, options->binaries);
    if (done) {
        take_marks(view);
        find_answers(view, first);
        done = (numbered || ask_binaries(view, options, error)) && make_frames(view, first);
    }
    free(first);
    return done;
}

bool hw_view_resolve(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error)
{
    for (size_t i = 0; i < view->location_count; i++)
        view->locations[i].frames = (struct hw_frames){&nameless, 1};
    if (options->resolve && !(view->profile->llvm && view->profile->llvm->frames))
        ask_test(view, options);
    else if (!options->no_symbols && !seek_names(view, options, error))
        return false;
    else if (options->no_symbols && view->profile->llvm && view->profile->llvm->frames &&
             !hw_view_name_frames(view, 0, NULL))
        return false;
    return read_marks(view, error);
}
