/* source_line.c - file, line and column of an address, from a unit's line table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "symbols/symbols_internal.h"

static const char *intern_absolute(struct hw_names *names, Dwarf_Die *unit_die, const char *path)
{
    Dwarf_Attribute attribute;
    const char *directory = NULL;
    if (path[0] != '/')
        directory = dwarf_formstring(dwarf_attr_integrate(unit_die, DW_AT_comp_dir, &attribute));
    if (!directory)
        return hw_names_intern(names, path);
    char *joined = NULL;
    if (asprintf(&joined, "%s/%s", directory, path) < 0)
        return NULL;
    const char *interned = hw_names_intern(names, joined);
    free(joined);
    return interned;
}

const char *hw_source_path(struct hw_names *names, struct hw_path_memo *memo, Dwarf_Die *unit_die, const char *path)
{
    if (!path)
        return NULL;
    size_t slot = ((uintptr_t)path >> 3 ^ (uintptr_t)path >> 9) % (sizeof memo->raw / sizeof *memo->raw);
    if (memo->raw[slot] != path) {
        memo->interned[slot] = intern_absolute(names, unit_die, path);
        memo->raw[slot] = path;
    }
    return memo->interned[slot];
}

struct hw_source_line hw_source_line_find(struct hw_names *names, struct hw_path_memo *memo, Dwarf_Die *unit_die,
                                          uint64_t address)
{
    struct hw_source_line result = {0};
    Dwarf_Line *row = dwarf_getsrc_die(unit_die, address);
    if (!row)
        return result;
    int line = 0, column = 0;
    result.file = hw_source_path(names, memo, unit_die, dwarf_linesrc(row, NULL, NULL));
    if (dwarf_lineno(row, &line) == 0 && line > 0)
        result.line = line;
    if (dwarf_linecol(row, &column) == 0 && column > 0)
        result.column = column;
    unsigned discriminator = 0;
    if (dwarf_linediscriminator(row, &discriminator) == 0)
        result.discriminator = discriminator;
    return result;
}
