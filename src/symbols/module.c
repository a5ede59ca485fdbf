/* module.c - which compile units of a module hold which code, and what is wrong with the module.
 *
 * The ranges come from the units' own DIEs: .debug_aranges is missing from most files that clang made. It is
 * asked only where a unit with code does not say where the code is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/order.h"
#include "symbols/symbols_internal.h"

bool hw_module_init(struct hw_module *module, const char *path, const uint8_t *build_id, size_t build_id_size)
{
    *module = (struct hw_module){.path = strdup(path), .build_id_size = build_id_size};
    module->build_id = malloc(build_id_size + 1);
    if (!module->path || !module->build_id) {
        free(module->path);
        free(module->build_id);
        return false;
    }
    if (build_id_size)
        memcpy(module->build_id, build_id, build_id_size);
    pthread_mutex_init(&module->lock, NULL);
    return true;
}

void hw_module_clear(struct hw_module *module)
{
    free(module->path);
    free(module->build_id);
    free(module->unit);
    free(module->range);
    hw_elf_symbols_free(module->symbols);
    free(module->problem);
    pthread_mutex_destroy(&module->lock);
}

void hw_module_note_problem(struct hw_module *module, const char *problem)
{
    if (!*problem)
        return;
    pthread_mutex_lock(&module->lock);
    if (!module->problem && asprintf(&module->problem, "%s: %s", module->path, problem) < 0)
        module->problem = NULL;
    pthread_mutex_unlock(&module->lock);
}

const struct hw_elf_symbols *hw_module_symbols(struct hw_module *module, const struct hw_debug_file *file)
{
    pthread_mutex_lock(&module->lock);
    if (!module->symbols)
        module->symbols = hw_elf_symbols_read(file->module);
    pthread_mutex_unlock(&module->lock);
    return module->symbols;
}

/* Room for one more in an array that grows by doubling whenever COUNT is a power of two. */
static void *make_room(void *array, size_t count, size_t element_size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? count * 2 : 1) * element_size);
}

static bool add_range(struct hw_module *module, const struct hw_debug_file *file, uint64_t start, uint64_t end,
                      size_t unit)
{
    start += file->bias;
    end += file->bias;
    if (start >= end || start < file->text_start)
        return true;
    struct hw_unit_range *range = make_room(module->range, module->range_count, sizeof *range);
    if (!range)
        return false;
    module->range = range;
    range[module->range_count++] = (struct hw_unit_range){.start = start, .end = end, .unit = (uint32_t)unit};
    return true;
}

static bool add_unit(struct hw_module *module, Dwarf_Die *die)
{
    struct hw_unit_entry *unit = make_room(module->unit, module->unit_count, sizeof *unit);
    if (!unit)
        return false;
    module->unit = unit;
    unit[module->unit_count++] = (struct hw_unit_entry){.die_offset = dwarf_dieoffset(die)};
    return true;
}

/* COUNTED gets the number of ranges in the unit's DIE. */
static bool add_unit_ranges(struct hw_module *module, const struct hw_debug_file *file, Dwarf_Die *die, size_t *counted)
{
    Dwarf_Addr base = 0, start = 0, end = 0;
    ptrdiff_t offset = 0;
    for (*counted = 0; (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0; ++*counted) {
        if (!add_range(module, file, start, end, module->unit_count - 1))
            return false;
    }
    return true;
}

static int compare_unit_offset(const void *key, const void *element)
{
    uint64_t offset = *(const uint64_t *)key, other = ((const struct hw_unit_entry *)element)->die_offset;
    return HW_ORDER(offset, other);
}

/* For units whose DIE does not say where their code is. */
static bool add_from_aranges(struct hw_module *module, const struct hw_debug_file *file, const bool *silent)
{
    Dwarf_Aranges *aranges = NULL;
    size_t count = 0;
    if (dwarf_getaranges(file->dwarf, &aranges, &count) != 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Addr start = 0;
        Dwarf_Word length = 0;
        Dwarf_Off offset = 0;
        if (dwarf_getarangeinfo(dwarf_onearange(aranges, i), &start, &length, &offset) != 0)
            continue;
        uint64_t key = offset;
        const struct hw_unit_entry *unit =
            bsearch(&key, module->unit, module->unit_count, sizeof *module->unit, compare_unit_offset);
        if (unit && silent[unit - module->unit] &&
            !add_range(module, file, start, start + length, (size_t)(unit - module->unit)))
            return false;
    }
    return true;
}

static int compare_range_start(const void *left, const void *right)
{
    const struct hw_unit_range *a = left, *b = right;
    return HW_ORDER(a->start, b->start) ?: HW_ORDER(a->unit, b->unit);
}

static void sort_ranges(struct hw_module *module)
{
    if (module->range_count)
        qsort(module->range, module->range_count, sizeof *module->range, compare_range_start);
    uint64_t reach = 0;
    for (size_t i = 0; i < module->range_count; i++) {
        if (module->range[i].end > reach)
            reach = module->range[i].end;
        module->range[i].reach = reach;
    }
}

/* Lists the units and their ranges. False when there is no memory; DAMAGED when libdw gave up half-way. */
static bool list_units(struct hw_module *module, const struct hw_debug_file *file, bool *damaged)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type = 0;
    bool *silent = NULL, any_silent = false, ok = true;
    int result = 0;
    while (ok && (result = dwarf_get_units(file->dwarf, cu, &cu, NULL, &type, &die, NULL)) == 0) {
        if (module->unit_count && module->unit[module->unit_count - 1].entries_size == 0 && die.addr)
            module->unit[module->unit_count - 1].entries_size =
                dwarf_dieoffset(&die) - module->unit[module->unit_count - 1].die_offset;
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue; /* partial and type units hold no code */
        bool *larger = make_room(silent, module->unit_count, sizeof *silent);
        ok = larger && add_unit(module, &die);
        if (larger)
            silent = larger;
        size_t counted = 0;
        ok = ok && add_unit_ranges(module, file, &die, &counted);
        if (ok)
            any_silent |= silent[module->unit_count - 1] = counted == 0;
        module->has_debug_info |= dwarf_hasattr(&die, DW_AT_stmt_list) == 1;
    }
    *damaged = result < 0;
    if (ok && any_silent)
        ok = add_from_aranges(module, file, silent);
    free(silent);
    sort_ranges(module);
    return ok;
}

/* A sentence for a module whose file could be opened. */
static bool judge(struct hw_module *module, const struct hw_debug_file *file, bool damaged)
{
    if (damaged) {
        hw_module_note_problem(module, "the debug information is damaged, some names come from the symbol table");
        return true;
    }
    if (module->has_debug_info)
        return true;
    const struct hw_elf_symbols *symbols = hw_module_symbols(module, file);
    if (!symbols)
        return false;
    hw_module_note_problem(module, hw_elf_symbols_count(symbols)
                                       ? "no debug information, so no files and lines"
                                       : "neither debug information nor symbols, only offsets are known");
    return true;
}

bool hw_module_index(struct hw_module *module, const struct hw_debug_paths *paths, struct hw_debug_file *file)
{
    char problem[512];
    module->indexed = true;
    module->usable =
        hw_debug_file_open(file, paths, module->path, module->build_id, module->build_id_size, problem, sizeof problem);
    hw_module_note_problem(module, problem);
    if (!module->usable)
        return true;
    bool damaged = false;
    if (file->dwarf && !list_units(module, file, &damaged))
        return false;
    return judge(module, file, damaged);
}

uint32_t hw_module_find_unit(const struct hw_module *module, uint64_t address)
{
    size_t low = 0, high = module->range_count; /* the first range that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (module->range[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && module->range[low - 1].reach > address; low--) {
        if (module->range[low - 1].end > address)
            return module->range[low - 1].unit;
    }
    return HW_NO_UNIT;
}
