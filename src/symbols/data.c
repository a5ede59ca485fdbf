/* data.c - a module's data: variables from the symbol tables, sections; and what heapwise cc leaves in its file: that
 * its code counts accesses, and the names of the types it allocates.
 *
 * Variables are what has a size and lies outside of code; of several names for the same bytes the plainest stays. The
 * marks are read from the module's own file only: a separate debug file does not have these sections' bytes. */
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/growing.h"
#include "base/abi.h"
#include "base/order.h"
#include "symbols/symbols_internal.h"

/* ---- variables ---- */

struct candidate {
    struct hw_data_symbol symbol;
    const char *linkage_name; /* libdwfl's, valid while the file is open */
    uint8_t rank;             /* lower is better */
};

struct candidates {
    struct candidate *candidate;
    size_t count, capacity;
};

static uint8_t rank_of(const GElf_Sym *symbol)
{
    static const uint8_t by_binding[] = {[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
    const unsigned binding = GELF_ST_BIND(symbol->st_info);
    return binding < sizeof by_binding ? by_binding[binding] : 0;
}

/* TYPES: one bit for each type of symbols that counts. */
static bool add_candidate(struct candidates *all, Dwfl_Module *module, int index, unsigned types)
{
    GElf_Sym symbol;
    GElf_Addr address = 0, bias = 0, end;
    GElf_Word section = 0;
    Elf *elf = NULL;
    const char *name = dwfl_module_getsym_info(module, index, &symbol, &address, &section, &elf, &bias);
    const unsigned type = name ? GELF_ST_TYPE(symbol.st_info) : STT_NOTYPE;
    if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS || symbol.st_size == 0 || !(types >> type & 1) ||
        __builtin_add_overflow(type == STT_TLS ? symbol.st_value : address, symbol.st_size, &end))
        return true;
    if (type == STT_TLS)
        address = symbol.st_value;
    if (!HW_GROW(all->candidate, all->capacity, all->count + 1))
        return false;
    all->candidate[all->count++] = (struct candidate){
        .symbol = {.address = address, .size = symbol.st_size}, .linkage_name = name, .rank = rank_of(&symbol)};
    return true;
}

/* By address; at one address the greatest comes first, and of equal ones the plainest name. */
static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->symbol.address != b->symbol.address)
        return a->symbol.address < b->symbol.address ? -1 : 1;
    if (a->symbol.size != b->symbol.size)
        return a->symbol.size > b->symbol.size ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    const size_t underscores_a = strspn(a->linkage_name, "_"), underscores_b = strspn(b->linkage_name, "_");
    return HW_ORDER(underscores_a, underscores_b) ?: strcmp(a->linkage_name, b->linkage_name);
}

/* Keeps those that do not lie within another one. */
static bool keep_outermost(const struct hw_data_symbol **list, size_t *count, struct candidates *all,
                           struct hw_names *names)
{
    uint64_t reach = 0;
    struct hw_data_symbol *symbols = calloc(all->count + 1, sizeof *symbols);
    *list = symbols;
    if (!symbols)
        return false;
    for (size_t i = 0; i < all->count; i++) {
        const struct candidate *candidate = &all->candidate[i];
        const uint64_t end = candidate->symbol.address + candidate->symbol.size;
        if (*count && end <= reach)
            continue;
        char *name = strndup(candidate->linkage_name, 1 + strcspn(candidate->linkage_name + 1, "@"));
        struct hw_data_symbol *symbol = &symbols[*count];
        *symbol = candidate->symbol;
        symbol->name = name ? hw_names_readable(names, name) : NULL;
        symbol->linkage_name = name ? hw_names_intern(names, name) : NULL;
        free(name);
        if (!symbol->name || !symbol->linkage_name)
            return false;
        ++*count;
        reach = end;
    }
    return true;
}

/* ---- sections ---- */

static bool read_sections(struct hw_data *data, Dwfl_Module *module, struct hw_names *names)
{
    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(module, &bias);
    size_t strings = 0, capacity = 0;
    struct hw_data_section *sections = NULL;
    if (!elf || elf_getshdrstrndx(elf, &strings) != 0)
        return true;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC) ||
            header.sh_flags & (SHF_EXECINSTR | SHF_TLS) || !header.sh_size)
            continue;
        const char *name = elf_strptr(elf, strings, header.sh_name);
        if (!name || !*name)
            continue;
        name = hw_names_intern(names, name);
        if (!name || !HW_GROW(sections, capacity, data->section_count + 1)) {
            free(sections);
            data->section_count = 0;
            return false;
        }
        sections[data->section_count++] = (struct hw_data_section){
            .start = header.sh_addr + bias, .end = header.sh_addr + bias + header.sh_size, .name = name};
    }
    data->section = sections;
    return true;
}

/* Sorted and without what lies within others. False when there is no memory. */
static bool read_variables(const struct hw_data_symbol **list, size_t *count, const struct hw_debug_file *file,
                           unsigned types, struct hw_names *names)
{
    struct candidates all = {0};
    const int symbols = dwfl_module_getsymtab(file->module);
    bool done = true;
    for (int i = 1; done && i < symbols; i++)
        done = add_candidate(&all, file->module, i, types);
    if (all.count)
        qsort(all.candidate, all.count, sizeof *all.candidate, compare_candidates);
    done = done && keep_outermost(list, count, &all, names);
    free(all.candidate);
    return done;
}

bool hw_data_read(struct hw_data *data, const struct hw_debug_file *file, struct hw_names *names)
{
    *data = (struct hw_data){0};
    return read_variables(&data->symbol, &data->symbol_count, file, 1u << STT_OBJECT | 1u << STT_COMMON, names) &&
           read_variables(&data->local, &data->local_count, file, 1u << STT_TLS, names) &&
           read_sections(data, file->module, names);
}

void hw_data_free(struct hw_data *data)
{
    free((void *)data->symbol);
    free((void *)data->local);
    free((void *)data->section);
    *data = (struct hw_data){0};
}

/* ---- marks of the compiler ---- */

uint64_t hw_type_id(const char *name, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
    return hash;
}

static bool add_types(struct hw_types *types, const char *bytes, size_t size, struct hw_names *names)
{
    for (size_t at = 0; at < size;) {
        const size_t length = strnlen(bytes + at, size - at);
        if (length && at + length < size) { /* a name without its end is none */
            const char *name = hw_names_readable(names, bytes + at);
            if (!name || !HW_GROW(types->type, types->capacity, types->count + 1))
                return false;
            types->type[types->count++] = (struct hw_type){.id = hw_type_id(bytes + at, length), .name = name};
        }
        at += length + 1;
    }
    return true;
}

/* Objects of clang -fmemory-profile have no note: they refer to their runtime. */
static bool uses_memprof(Elf *elf, Elf_Scn *scn, const GElf_Shdr *header)
{
    Elf_Data *symbols = elf_getdata(scn, NULL);
    GElf_Sym symbol;
    for (int i = 1; symbols && gelf_getsym(symbols, i, &symbol); i++) {
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && strcmp(name, "__memprof_init") == 0)
            return true;
    }
    return false;
}

bool hw_marks_read(struct hw_types *types, enum hw_counting *counting, Elf *elf, struct hw_names *names)
{
    size_t strings = 0;
    if (elf_getshdrstrndx(elf, &strings) != 0)
        return true;
    *counting = HW_COUNTING_NO;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(scn, &header) ? elf_strptr(elf, strings, header.sh_name) : NULL;
        if (!name)
            continue;
        if (strcmp(name, HW_ABI_NOTE_SECTION) == 0 || (header.sh_type == SHT_DYNSYM && uses_memprof(elf, scn, &header)))
            *counting = HW_COUNTING_YES;
        if (strcmp(name, HW_ABI_TYPES_SECTION) != 0 || header.sh_type == SHT_NOBITS)
            continue;
        const Elf_Data *bytes = elf_rawdata(scn, NULL);
        if (bytes && bytes->d_buf && !add_types(types, bytes->d_buf, bytes->d_size, names))
            return false;
    }
    return true;
}

static int compare_types(const void *left, const void *right)
{
    const struct hw_type *a = left, *b = right;
    return HW_ORDER(a->id, b->id) ?: strcmp(a->name, b->name);
}

void hw_types_sort(struct hw_types *types)
{
    if (types->count)
        qsort(types->type, types->count, sizeof *types->type, compare_types);
}

const char *hw_types_find(const struct hw_types *types, uint64_t id)
{
    size_t low = 0, high = types->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (types->type[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < types->count && types->type[low].id == id ? types->type[low].name : NULL;
}
