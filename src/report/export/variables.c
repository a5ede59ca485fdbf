/* variables.c - see variables.h. */
#include "report/export/variables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"

/* ---- names ---- */

/* "cache.0", as gcc calls a variable that a function keeps: clang's name has the function instead. */
static bool is_gcc_local(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0';
}

static bool is_plain(const char *name)
{
    if (!*name)
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("_.$", *name))
            return false;
    return true;
}

/* The name of a symbol for the tool, NULL if it has none. */
static const char *name_of(const struct hw_data_symbol *symbol, bool for_llvm)
{
    const char *name = symbol->linkage_name ? symbol->linkage_name : symbol->name;
    return is_plain(name) && !(for_llvm && is_gcc_local(name)) ? name : NULL;
}

/* ---- accesses ---- */

static uint64_t total_of(const struct hw_view_global *global)
{
    return hw_add_saturating(hw_add_saturating(global->reads, global->writes), global->unsplit);
}

static void add(struct hw_variable *to, const struct hw_variable *from)
{
    to->accesses = hw_add_saturating(to->accesses, from->accesses);
    to->writes = hw_add_saturating(to->writes, from->writes);
    to->at_most |= from->at_most;
    to->saturated |= from->saturated;
    to->use = to->use < from->use ? to->use : from->use;
}

/* VARIABLE: those of the module, by number of the symbol. */
static void add_global(struct hw_variable *variable, const struct hw_data *data, const struct hw_view_global *global,
                       uint64_t granule)
{
    const struct hw_variable used = {.accesses = total_of(global),
                                     .writes = hw_add_saturating(global->writes, global->unsplit),
                                     .at_most = global->symbol_count > 1,
                                     .saturated = global->saturated,
                                     .use = global->shared_written ? HW_LLVM_SHARED : HW_LLVM_USED};
    for (uint32_t i = 0; i < global->symbol_count; i++) {
        struct hw_variable *to = &variable[&global->symbols[i] - data->symbol];
        if (global->symbol_count == 1 || to->size <= granule)
            add(to, &used);
    }
}

/* Appends the variables of MODULE; there is room. */
static void take_module(struct hw_variables *all, const struct hw_view *view, uint32_t module, bool for_llvm,
                        struct hw_variable *variable)
{
    const struct hw_data *data = &view->data[module];
    for (size_t i = 0; i < data->symbol_count; i++)
        variable[i] = (struct hw_variable){
            .module = module, .use = HW_LLVM_COLD, .address = data->symbol[i].address, .size = data->symbol[i].size};
    for (size_t i = 0; i < view->global_count; i++)
        if (view->globals[i].module == module)
            add_global(variable, data, &view->globals[i], hw_view_global_granule(view));
    for (size_t i = 0; i < data->symbol_count; i++) {
        const char *name = name_of(&data->symbol[i], for_llvm);
        all->unnamed += !name;
        if (!name)
            continue;
        variable[i].name = name;
        variable[i].name_size = (uint32_t)(for_llvm ? hw_llvm_name_size(name) : strlen(name));
        all->variable[all->count++] = variable[i];
    }
}

/* Whether accesses to the module's data are known. */
static bool is_observed(const struct hw_view *view, uint32_t module)
{
    return view->data && view->data[module].symbol_count &&
           (!view->profile->access_counted || view->modules[module].counting != HW_COUNTING_NO);
}

/* ---- order ---- */

static int compare_names(const void *left, const void *right)
{
    const struct hw_variable *a = left, *b = right;
    const size_t common = a->name_size < b->name_size ? a->name_size : b->name_size;
    return memcmp(a->name, b->name, common)
               ?: HW_ORDER(a->name_size, b->name_size)
               ?: HW_ORDER(a->module, b->module) ?: HW_ORDER(a->address, b->address);
}

static bool same_name(const struct hw_variable *a, const struct hw_variable *b)
{
    return a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0;
}

static void merge_names(struct hw_variables *all)
{
    size_t kept = 0;
    qsort(all->variable, all->count, sizeof *all->variable, compare_names);
    for (size_t i = 0; i < all->count; i++)
        if (kept && same_name(&all->variable[kept - 1], &all->variable[i]))
            add(&all->variable[kept - 1], &all->variable[i]);
        else
            all->variable[kept++] = all->variable[i];
    all->count = kept;
}

static int compare_accesses(const void *left, const void *right)
{
    const struct hw_variable *a = left, *b = right;
    return HW_ORDER(b->saturated, a->saturated) ?: HW_ORDER(b->accesses, a->accesses) ?: compare_names(a, b);
}

static int compare_uses(const void *left, const void *right)
{
    const struct hw_variable *a = left, *b = right;
    if (a->use == HW_LLVM_COLD && b->use == HW_LLVM_COLD)
        return HW_ORDER(a->module, b->module) ?: HW_ORDER(a->address, b->address) ?: compare_names(a, b);
    return HW_ORDER(a->use, b->use) ?: compare_accesses(a, b);
}

static void decide(struct hw_variables *all)
{
    unsigned __int128 total = 0, so_far = 0;
    for (size_t i = 0; i < all->count; i++)
        total += all->variable[i].accesses;
    qsort(all->variable, all->count, sizeof *all->variable, compare_accesses);
    for (size_t i = 0; i < all->count; i++) {
        struct hw_variable *variable = &all->variable[i];
        const bool hot = variable->saturated || (variable->accesses && so_far * 10000 < total * HW_HOT_OF_10000);
        const bool shared = variable->use == HW_LLVM_SHARED && variable->writes >= variable->accesses / 100;
        so_far += variable->accesses;
        if (variable->use != HW_LLVM_COLD)
            variable->use = !hot ? HW_LLVM_USED : shared ? HW_LLVM_SHARED : HW_LLVM_HOT;
        else if (all->sampled && all->accesses < HW_COLD_SAMPLES)
            variable->use = HW_LLVM_USED;
        all->of_use[variable->use]++;
    }
    qsort(all->variable, all->count, sizeof *all->variable, compare_uses);
}

bool hw_variables_make(struct hw_variables *variables, const struct hw_view *view, const bool *chosen, bool for_llvm)
{
    size_t count = 0, most = 0;
    *variables =
        (struct hw_variables){.sampled = !view->profile->access_counted,
                              .accesses = hw_add_saturating(hw_add_saturating(view->global_reads, view->global_writes),
                                                            view->global_unsplit)};
    if (!view->global_count || hw_profile_counts_periods(view->profile))
        return true;
    for (uint32_t i = 0; i < view->module_count; i++)
        if (chosen[i] && is_observed(view, i)) {
            count += view->data[i].symbol_count;
            most = view->data[i].symbol_count > most ? view->data[i].symbol_count : most;
        }
    struct hw_variable *of_module = malloc((most + 1) * sizeof *of_module);
    variables->variable = malloc((count + 1) * sizeof *variables->variable);
    const bool memory = of_module && variables->variable;
    for (uint32_t i = 0; memory && i < view->module_count; i++)
        if (chosen[i] && is_observed(view, i))
            take_module(variables, view, i, for_llvm, of_module);
    free(of_module);
    if (!memory) {
        hw_variables_free(variables);
        return false;
    }
    merge_names(variables);
    decide(variables);
    variables->known = variables->count > 0;
    return true;
}

void hw_variables_free(struct hw_variables *variables)
{
    free(variables->variable);
    *variables = (struct hw_variables){0};
}

/* ---- sentences ---- */

#define NAMED 8 /* variables in a sentence */

static void note_shared(const struct hw_variables *variables, struct hw_buffer *out)
{
    size_t named = 0;
    hw_buffer_add(out, "several threads use and write these variables, which would slow down hot ones beside them, so "
                       "they are not packed (alignas(64) keeps each apart):");
    for (size_t i = 0; i < variables->count && named < NAMED; i++)
        if (variables->variable[i].use == HW_LLVM_SHARED)
            hw_buffer_add(out, "%s %.*s", named++ ? "," : "", (int)variables->variable[i].name_size,
                          variables->variable[i].name);
    if (variables->of_use[HW_LLVM_SHARED] > named)
        hw_buffer_add(out, " and %s more", HW_COUNT(variables->of_use[HW_LLVM_SHARED] - named));
    hw_buffer_add(out, "\n");
}

void hw_variables_notes(const struct hw_variables *variables, struct hw_buffer *out)
{
    if (!variables->known)
        return;
    hw_buffer_add(out, "variables: %s hot, %s used little%s, %s never used\n", HW_COUNT(variables->of_use[HW_LLVM_HOT]),
                  HW_COUNT(variables->of_use[HW_LLVM_USED]), variables->sampled ? " or not sampled" : "",
                  HW_COUNT(variables->of_use[HW_LLVM_COLD]));
    if (variables->sampled)
        hw_buffer_add(out, "accesses to variables were sampled: %s%s\n", HW_OF(variables->accesses, "sample"),
                      variables->accesses < HW_COLD_SAMPLES ? ", too few to call a variable never used"
                                                            : ". Which threads share variables is not known");
    else
        hw_buffer_add(out, "code that does not count (libc and other libraries, the kernel) may use variables that are "
                           "called never used\n");
    if (variables->of_use[HW_LLVM_SHARED])
        note_shared(variables, out);
    if (variables->unnamed)
        hw_buffer_add(out, "%s left out: the compiler has another name for them\n",
                      HW_OF(variables->unnamed, "variable"));
}
