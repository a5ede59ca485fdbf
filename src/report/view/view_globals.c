/* view_globals.c - counted (where they were not counted: sampled) accesses to data of executables and libraries, by
 * symbol.
 *
 * What was counted is counted by granule. Where a granule holds parts of several variables it is not known which one
 * was used: these variables get one entry together. A variable that also has granules of its own has the entry's
 * accesses beside its count. */
#include "report/view/view.h"

#include <stdlib.h>

#include "base/order.h"
#include "profile/model/symbolised.h"

static int compare_granules(const void *left, const void *right)
{
    const struct hw_view_granule *a = left, *b = right;
    return HW_ORDER(a->module, b->module) ?: HW_ORDER(a->address, b->address);
}

/* The profile's granules by module: a library that was mapped twice has each of its granules once. */
static bool make_granules(struct hw_view *view, const uint32_t *module_of)
{
    const struct hw_profile *profile = view->profile;
    const size_t count = profile->access_counted ? profile->global_count : profile->sampled_global_count;
    const struct hw_global_granule *granules = profile->access_counted ? profile->globals : profile->sampled_globals;
    struct hw_view_granule *all = malloc(count * sizeof *all);
    size_t merged = 0;
    view->granules = all;
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hw_global_granule *from = &granules[i];
        all[i] = (struct hw_view_granule){.module = from->map < profile->map_count ? module_of[from->map] : HW_NONE,
                                          .flags = from->flags,
                                          .address = from->offset,
                                          .reads = from->reads,
                                          .writes = from->writes,
                                          .unsplit = from->unsplit};
        view->global_reads = hw_add_saturating(view->global_reads, from->reads);
        view->global_writes = hw_add_saturating(view->global_writes, from->writes);
        view->global_unsplit = hw_add_saturating(view->global_unsplit, from->unsplit);
    }
    qsort(all, count, sizeof *all, compare_granules);
    for (size_t i = 0; i < count; i++) {
        struct hw_view_granule *to = merged ? &all[merged - 1] : NULL;
        if (!to || compare_granules(to, &all[i])) {
            all[merged++] = all[i];
            continue;
        }
        to->flags |= all[i].flags;
        to->reads = hw_add_saturating(to->reads, all[i].reads);
        to->writes = hw_add_saturating(to->writes, all[i].writes);
        to->unsplit = hw_add_saturating(to->unsplit, all[i].unsplit);
    }
    view->granule_count = merged;
    return true;
}

/* ---- names ---- */

/* Variables of a module that the profile itself has names for. NULL when there is no memory. */
static const struct hw_data_symbol *take_symbols(const struct hw_view *view, uint32_t map, uint32_t flags,
                                                 size_t *count)
{
    const struct hw_data_name *name = hw_symbolised_data(view->profile->symbolised, map, flags, count);
    struct hw_data_symbol *symbol = calloc(*count + 1, sizeof *symbol);
    for (size_t i = 0; symbol && i < *count; i++)
        symbol[i] =
            (struct hw_data_symbol){name[i].address, name[i].size, hw_profile_string(view->profile, name[i].name), NULL};
    return symbol;
}

/* The data of a module that the profile itself has names for. False when there is no memory. */
static bool take_data(struct hw_view *view, const struct hw_view_module *module, struct hw_data *data)
{
    data->symbol = take_symbols(view, module->map, 0, &data->symbol_count);
    data->local = take_symbols(view, module->map, HW_DATA_LOCAL, &data->local_count);
    const struct hw_data_name *name =
        hw_symbolised_data(view->profile->symbolised, module->map, HW_DATA_SECTION, &data->section_count);
    struct hw_data_section *section = calloc(data->section_count + 1, sizeof *section);
    data->section = section;
    for (size_t i = 0; section && i < data->section_count; i++)
        section[i] = (struct hw_data_section){name[i].address, name[i].address + name[i].size,
                                              hw_profile_string(view->profile, name[i].name)};
    return data->symbol && data->local && section;
}

bool hw_view_load_data(struct hw_view *view, uint32_t index, const struct hw_view_options *options,
                       struct hw_error *error)
{
    if (!view->data)
        view->data = calloc(view->module_count + 1, sizeof *view->data);
    if (!view->data_loaded)
        view->data_loaded = calloc(view->module_count + 1, sizeof *view->data_loaded);
    if (!view->data || !view->data_loaded)
        return false;
    if (view->data_loaded[index])
        return true;
    view->data_loaded[index] = true;
    struct hw_view_module *module = &view->modules[index];
    const struct hw_symbolised *symbols = view->names_sought ? view->profile->symbolised : NULL;
    const struct hw_module_mark *mark = symbols ? hw_symbolised_module(symbols, module->map) : NULL;
    if (options->resolve) {
        if (options->data)
            view->data[index] = options->data(options->closure, module->path);
        return true;
    }
    if (!view->names_sought || module->kind == HW_MODULE_GENERATED)
        return true;
    view->data_is_own = true;
    if (mark && mark->flags & HW_MARK_DATA)
        return take_data(view, module, &view->data[index]);
    return hw_view_symbols(view, module, options, error) >= 0 &&
           hw_symbolizer_data(view->symbolizer, module->symbols, &view->data[index], error);
}

static const char *section_of(const struct hw_data *data, uint64_t address)
{
    for (size_t i = 0; i < data->section_count; i++)
        if (address >= data->section[i].start && address < data->section[i].end)
            return data->section[i].name;
    return NULL;
}

/* ---- entries ---- */

/* Which variables lie in a granule: [first, end) of the module's. */
struct overlap {
    size_t first, end;
};

/* Granules come in ascending order: the search goes on where it was. */
static struct overlap find_overlap(const struct hw_data *data, struct overlap last, uint64_t start, uint64_t end)
{
    struct overlap found = {.first = last.first};
    while (found.first < data->symbol_count &&
           data->symbol[found.first].address + data->symbol[found.first].size <= start)
        found.first++;
    found.end = found.first;
    while (found.end < data->symbol_count && data->symbol[found.end].address < end)
        found.end++;
    return found;
}

/* NEW_LINE: the entry has no other granule in its line so far. */
static void add_granule(struct hw_view_global *to, const struct hw_view_granule *granule, bool new_line)
{
    to->reads = hw_add_saturating(to->reads, granule->reads);
    to->writes = hw_add_saturating(to->writes, granule->writes);
    to->unsplit = hw_add_saturating(to->unsplit, granule->unsplit);
    to->shared_granules += !!(granule->flags & HW_GLOBAL_SHARED);
    to->shared_written += !!(granule->flags & HW_GLOBAL_WRITTEN);
    to->shared_writers += !!(granule->flags & HW_GLOBAL_WRITERS);
    to->saturated += !!(granule->flags & HW_GLOBAL_SATURATED);
    to->lines_false += new_line && granule->flags & HW_GLOBAL_FALSE;
    to->lines_true += new_line && granule->flags & HW_GLOBAL_TRUE;
    to->lines_handed += new_line && granule->flags & HW_GLOBAL_HANDED;
    to->lines_hot += new_line && granule->flags & HW_GLOBAL_HOT;
    to->granule_count++;
}

static uint64_t total_of(const struct hw_view_global *global)
{
    return hw_add_saturating(hw_add_saturating(global->reads, global->writes), global->unsplit);
}

/* True when a granule goes on in the entry before it. */
static bool continues(const struct hw_view_global *last, const struct hw_data *data, struct overlap overlap,
                      const char *section, uint64_t address)
{
    if (overlap.first == overlap.end)
        return !last->symbol_count && last->address + last->size == address && last->section == section;
    return last->symbols == &data->symbol[overlap.first] && last->symbol_count == overlap.end - overlap.first;
}

/* Makes the entries of the module whose granules are [first, end). */
static void make_entries(struct hw_view *view, size_t first, size_t end, uint64_t granule_size)
{
    static const struct hw_data nothing;
    const uint32_t module = view->granules[first].module;
    const struct hw_data *data = module == HW_NONE ? &nothing : &view->data[module];
    struct overlap overlap = {0};
    struct hw_view_global *last = NULL;
    for (size_t i = first; i < end; i++) {
        const struct hw_view_granule *granule = &view->granules[i];
        overlap = find_overlap(data, overlap, granule->address, granule->address + granule_size);
        const size_t symbols = overlap.end - overlap.first;
        const char *section = symbols ? NULL : section_of(data, granule->address);
        const bool new_line = i == first || granule[-1].address / 64 != granule->address / 64;
        view->global_hot_lines += new_line && granule->flags & HW_GLOBAL_HOT;
        if (!last || !continues(last, data, overlap, section, granule->address)) {
            last = &view->globals[view->global_count++];
            *last = (struct hw_view_global){.module = module,
                                            .symbols = symbols ? &data->symbol[overlap.first] : NULL,
                                            .symbol_count = (uint32_t)symbols,
                                            .section = section,
                                            .address =
                                                symbols == 1 ? data->symbol[overlap.first].address : granule->address,
                                            .size = symbols == 1 ? data->symbol[overlap.first].size : 0,
                                            .granule = i};
        }
        if (symbols != 1)
            last->size += granule_size;
        add_granule(last, granule, new_line || !last->granule_count);
    }
}

/* What variables with granules of their own have in granules that they share. Entries of a module are in the order of
 * addresses, so those concerned stand right beside the shared one. */
static void tell_shared(struct hw_view *view, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct hw_view_global *shared = &view->globals[i];
        if (shared->symbol_count < 2)
            continue;
        for (size_t k = i > first ? i - 1 : i; k < end && k <= i + 1; k++) {
            struct hw_view_global *own = &view->globals[k];
            if (own->symbol_count == 1 && own->symbols >= shared->symbols &&
                own->symbols < shared->symbols + shared->symbol_count)
                own->in_shared_granules = hw_add_saturating(own->in_shared_granules, total_of(shared));
        }
    }
}

static int compare_globals(const void *left, const void *right)
{
    const struct hw_view_global *a = left, *b = right;
    const uint64_t x = total_of(a), y = total_of(b);
    return HW_ORDER(y, x) ?: HW_ORDER(a->granule, b->granule);
}

uint32_t hw_view_global_granule(const struct hw_view *view)
{
    const uint32_t granule = view->profile->access_info.granule;
    return !view->profile->access_counted ? 8 : granule ? granule : 64;
}

bool hw_view_make_globals(struct hw_view *view, const uint32_t *module_of, const struct hw_view_options *options,
                          struct hw_error *error)
{
    const bool counted = view->profile->access_counted;
    const uint32_t granule_size = hw_view_global_granule(view);
    if (!(counted ? view->profile->global_count : view->profile->sampled_global_count))
        return true;
    if (!make_granules(view, module_of))
        return false;
    view->globals = malloc((view->granule_count + 1) * sizeof *view->globals);
    if (!view->globals)
        return false;
    for (size_t first = 0, end; first < view->granule_count; first = end) {
        const uint32_t module = view->granules[first].module;
        const size_t before = view->global_count;
        for (end = first; end < view->granule_count && view->granules[end].module == module;)
            end++;
        if (module != HW_NONE && !hw_view_load_data(view, module, options, error))
            return false;
        make_entries(view, first, end, granule_size);
        tell_shared(view, before, view->global_count);
    }
    qsort(view->globals, view->global_count, sizeof *view->globals, compare_globals);
    return true;
}

void hw_view_free_globals(struct hw_view *view)
{
    for (size_t i = 0; view->data && view->data_is_own && i < view->module_count; i++)
        hw_data_free(&view->data[i]);
    free(view->data);
    free(view->data_loaded);
    free(view->locks);
    free(view->granules);
    free(view->globals);
}
