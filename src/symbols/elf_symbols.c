/* elf_symbols.c - function names without debug information.
 *
 * libdwfl chooses and merges the tables (.symtab of the file or of its debug file, .dynsym, .gnu_debugdata); PLT
 * entries get the name of the function that they call. Among several names of one function the plainest wins, so that
 * the answer does not depend on the order in a table. */
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/order.h"
#include "base/growing.h"
#include "symbols/symbols_internal.h"

struct symbol {
    uint64_t start, end;
    uint64_t reach; /* the greatest END of this symbol and all before it */
    uint32_t name;  /* offset in the text */
    bool sized;     /* END comes from the symbol; else from what follows it */
    uint8_t rank;   /* lower is better: binding and type */
};

struct hw_elf_symbols {
    struct symbol *symbol; /* sorted by start, then from worst to best */
    size_t count, capacity;
    char *text; /* names, each with its NUL */
    size_t text_size, text_capacity;
};

static bool add_text(struct hw_elf_symbols *symbols, const char *name, size_t length, const char *suffix,
                     uint32_t *offset)
{
    size_t needed = symbols->text_size + length + strlen(suffix) + 1;
    if (needed > UINT32_MAX || !HW_GROW(symbols->text, symbols->text_capacity, needed))
        return false;
    *offset = (uint32_t)symbols->text_size;
    memcpy(symbols->text + symbols->text_size, name, length);
    strcpy(symbols->text + symbols->text_size + length, suffix);
    symbols->text_size = needed;
    return true;
}

/* The name is cut at @VERSION. */
static bool add_symbol(struct hw_elf_symbols *symbols, const char *name, const char *suffix, struct symbol symbol)
{
    if (!HW_GROW(symbols->symbol, symbols->capacity, symbols->count + 1))
        return false;
    if (!add_text(symbols, name, 1 + strcspn(name + 1, "@"), suffix, &symbol.name))
        return false;
    symbols->symbol[symbols->count++] = symbol;
    return true;
}

/* Whether SECTION holds code; its end, which bounds symbols without a size, in END. */
static bool is_code_section(Elf *elf, GElf_Word index, GElf_Addr bias, uint64_t *end)
{
    GElf_Shdr section;
    Elf_Scn *found = elf ? elf_getscn(elf, index) : NULL;
    if (!found || !gelf_getshdr(found, &section) || !(section.sh_flags & SHF_EXECINSTR))
        return false;
    *end = section.sh_addr + bias + section.sh_size;
    return true;
}

static uint8_t rank_of(const GElf_Sym *symbol)
{
    static const uint8_t by_binding[] = {[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    uint8_t rank = binding < sizeof by_binding ? by_binding[binding] : 0;
    return GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ? rank + 3 : rank;
}

/* Compilers' and assemblers' labels are no functions: .L, $x of mapping symbols, and empty names. */
static bool is_label(const char *name)
{
    return !*name || *name == '$' || strncmp(name, ".L", 2) == 0 || strncmp(name, "..", 2) == 0;
}

static bool read_symbol(struct hw_elf_symbols *symbols, Dwfl_Module *module, int index)
{
    GElf_Sym symbol;
    GElf_Addr address = 0, bias = 0;
    GElf_Word section = 0;
    Elf *elf = NULL;
    uint64_t section_end = 0;
    const char *name = dwfl_module_getsym_info(module, index, &symbol, &address, &section, &elf, &bias);
    if (!name || is_label(name) || section == SHN_UNDEF)
        return true;
    unsigned type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        return true;
    /* Linkers define labels like _etext without a type; only code may be named by such a symbol. */
    bool code = is_code_section(elf, section, bias, &section_end);
    if (!code && (type == STT_NOTYPE || symbol.st_size == 0))
        return true;
    struct symbol entry = {.start = address, .sized = symbol.st_size != 0, .rank = rank_of(&symbol)};
    if (__builtin_add_overflow(address, symbol.st_size, &entry.end))
        return true;
    if (!entry.sized)
        entry.end = section_end;
    return entry.start >= entry.end || add_symbol(symbols, name, "", entry);
}

/* ---- the PLT ---- */

struct plt_sections {
    GElf_Shdr plain, secure, relocation, names;
    Elf_Data *relocations, *symbols;
};

static bool find_plt(Elf *elf, struct plt_sections *plt)
{
    size_t strings = 0;
    if (elf_getshdrstrndx(elf, &strings) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, strings, header.sh_name) : NULL;
        if (!name)
            continue;
        if (strcmp(name, ".plt") == 0) {
            plt->plain = header;
        } else if (strcmp(name, ".plt.sec") == 0) {
            plt->secure = header;
        } else if (strcmp(name, ".rela.plt") == 0 && header.sh_type == SHT_RELA) {
            Elf_Scn *table = elf_getscn(elf, header.sh_link);
            plt->relocation = header;
            plt->relocations = elf_getdata(section, NULL);
            plt->symbols = table && gelf_getshdr(table, &plt->names) ? elf_getdata(table, NULL) : NULL;
        }
    }
    return plt->relocations && plt->symbols;
}

/* Entry N of .plt.sec, or N + 1 of .plt (the first is the resolver's), belongs to relocation N: so every x86-64 linker
 * lays it out, with 16 bytes an entry. Other machines' PLTs stay without names. */
static bool read_plt(struct hw_elf_symbols *symbols, Dwfl_Module *module)
{
    enum { ENTRY_SIZE = 16 };
    GElf_Addr bias = 0;
    GElf_Ehdr header;
    Elf *elf = dwfl_module_getelf(module, &bias);
    struct plt_sections plt = {0};
    if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 || !find_plt(elf, &plt))
        return true;
    const GElf_Shdr *code = plt.secure.sh_size ? &plt.secure : &plt.plain;
    uint64_t skipped = plt.secure.sh_size ? 0 : ENTRY_SIZE;
    for (int i = 0;; i++) {
        GElf_Rela relocation;
        GElf_Sym target;
        struct symbol entry = {.sized = true, .start = code->sh_addr + bias + skipped + (uint64_t)i * ENTRY_SIZE};
        entry.end = entry.start + ENTRY_SIZE;
        if (skipped + ((uint64_t)i + 1) * ENTRY_SIZE > code->sh_size || !gelf_getrela(plt.relocations, i, &relocation))
            return true;
        if (!gelf_getsym(plt.symbols, (int)GELF_R_SYM(relocation.r_info), &target))
            continue;
        const char *name = elf_strptr(elf, plt.names.sh_link, target.st_name);
        if (name && *name && !add_symbol(symbols, name, "@plt", entry))
            return false;
    }
}

/* ---- the table ---- */

static int compare_names(const char *left, const char *right)
{
    size_t a = strspn(left, "_"), b = strspn(right, "_");
    return a != b ? (a < b ? -1 : 1) : strcmp(left, right);
}

/* By start; at one start the better name comes last, where a search from behind meets it first. */
static int compare_symbols(const void *left, const void *right, void *text)
{
    const struct symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->sized != b->sized)
        return a->sized ? 1 : -1;
    return HW_ORDER(b->rank, a->rank) ?: compare_names((const char *)text + b->name, (const char *)text + a->name);
}

/* A symbol without a size ends where the next one starts, and never lies inside one with a size. */
static void bound_sizeless(struct hw_elf_symbols *symbols)
{
    uint64_t next = UINT64_MAX, covered = 0, reach = 0;
    for (size_t i = symbols->count; i-- > 0;) {
        struct symbol *symbol = &symbols->symbol[i];
        if (!symbol->sized && next < symbol->end && next > symbol->start)
            symbol->end = next;
        if (i > 0 && symbols->symbol[i - 1].start != symbol->start)
            next = symbol->start;
    }
    for (size_t i = 0; i < symbols->count; i++) {
        struct symbol *symbol = &symbols->symbol[i];
        if (!symbol->sized && symbol->start < covered)
            symbol->end = symbol->start; /* a label inside a function */
        if (symbol->sized && symbol->end > covered)
            covered = symbol->end;
        if (symbol->end > reach)
            reach = symbol->end;
        symbol->reach = reach;
    }
}

struct hw_elf_symbols *hw_elf_symbols_read(Dwfl_Module *module)
{
    struct hw_elf_symbols *symbols = calloc(1, sizeof *symbols);
    int count = dwfl_module_getsymtab(module);
    bool ok = symbols != NULL;
    for (int i = 1; ok && i < count; i++)
        ok = read_symbol(symbols, module, i);
    if (!ok || !read_plt(symbols, module)) {
        hw_elf_symbols_free(symbols);
        return NULL;
    }
    if (symbols->count)
        qsort_r(symbols->symbol, symbols->count, sizeof *symbols->symbol, compare_symbols, symbols->text);
    bound_sizeless(symbols);
    return symbols;
}

void hw_elf_symbols_free(struct hw_elf_symbols *symbols)
{
    if (!symbols)
        return;
    free(symbols->symbol);
    free(symbols->text);
    free(symbols);
}

size_t hw_elf_symbols_count(const struct hw_elf_symbols *symbols)
{
    return symbols->count;
}

const char *hw_elf_symbols_find(const struct hw_elf_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->count; /* the first symbol that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->symbol[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && symbols->symbol[low - 1].reach > address; low--) {
        if (symbols->symbol[low - 1].end > address)
            return symbols->text + symbols->symbol[low - 1].name;
    }
    return NULL;
}
