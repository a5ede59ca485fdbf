/* symbol_order.c - variables from hot to cold, one name a line, for a linker's symbol ordering file. */
#include "report/export/symbol_order.h"

#include <stdlib.h>
#include <string.h>

#include "report/export/variables.h"

static void write_names(const struct hw_variables *variables, enum hw_llvm_use use, const char *title,
                        const char *before, struct hw_buffer *out)
{
    if (!variables->of_use[use])
        return;
    hw_buffer_add(out, "# %s\n", title);
    for (size_t i = 0; i < variables->count; i++) {
        const struct hw_variable *variable = &variables->variable[i];
        if (variable->use == use)
            hw_buffer_add(out, "%s%.*s\n", before, (int)variable->name_size, variable->name);
    }
}

bool hw_export_symbol_order(const struct hw_view *view, const char *const *modules, size_t module_count,
                            struct hw_buffer *out, struct hw_buffer *notes, struct hw_error *error)
{
    struct hw_variables variables = {0};
    bool *chosen = calloc(view->module_count + 1, sizeof *chosen);
    for (size_t i = 0; chosen && i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        chosen[i] = !module_count && module->flags & HW_MAP_MAIN;
        for (size_t k = 0; k < module_count; k++)
            chosen[i] |= !strcmp(module->path, modules[k]) || !strcmp(module->name, modules[k]);
    }
    const bool fine = chosen && hw_variables_make(&variables, view, chosen, false);
    free(chosen);
    if (!fine || !variables.known) {
        hw_error_set(error,
                     fine ? "%s: no accesses to variables are known (heapwise cc counts them, heapwise record "
                            "--sample-accesses samples them), or the program has no symbols"
                          : "%s: not enough memory for the export",
                     view->profile->path ? view->profile->path : "profile");
        hw_variables_free(&variables);
        return false;
    }
    write_names(&variables, HW_LLVM_HOT, "Hot, the most used first.", "", out);
    write_names(&variables, HW_LLVM_USED, variables.sampled ? "Used little, or without samples." : "Used little.", "",
                out);
    write_names(&variables, HW_LLVM_COLD, "Never used.", "", out);
    write_names(&variables, HW_LLVM_SHARED,
                "Hot, but used and written by several threads: not in the order, so that they are not packed with "
                "others.",
                "# ", out);
    hw_variables_notes(&variables, notes);
    hw_variables_free(&variables);
    return true;
}
