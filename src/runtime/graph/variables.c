/* variables.c - where the variables of a module lie, from the symbols of its file.
 *
 * The file is read by the kernel into a buffer, piece by piece: it may have become shorter or another one meanwhile. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/modules.h"
#include "runtime/graph/internal.h"

#include <elf.h>
#include <sys/uio.h>

#define SYMBOLS_MOST  (64u << 20) /* more are no symbols but a damaged file */
#define HEADERS_MOST  64u
#define SECTIONS_MOST 65536u

static struct {
    int file;
    uintptr_t bias;
    Elf64_Phdr header[HEADERS_MOST];
    union {
        Elf64_Shdr section[64];
        Elf64_Sym symbol[2048];
    };
} variables HW_LARGE;

static bool read_at(uint64_t offset, void *to, size_t size)
{
    return hw_sys(SYS_lseek, variables.file, offset, SEEK_SET) == (long)offset &&
           hw_read_full(variables.file, to, size) == (long)size;
}

static bool is_equal(const void *one, const void *other, size_t size)
{
    const uint8_t *left = one, *right = other;
    while (size && *left == *right)
        left++, right++, size--;
    return !size;
}

/* It has the same program headers as what is mapped, whose first page is there. */
static bool is_same(const Elf64_Ehdr *elf, const struct hw_map_entry *map)
{
    const struct hw_module *module = hw_module_of_data(map->start);
    const size_t size = elf->e_phnum * sizeof(Elf64_Phdr);
    const struct hw_span *span = module ? hw_span_of(module->image_start) : NULL;
    if (!span || !span->readable || !elf->e_phnum || elf->e_phnum > HEADERS_MOST ||
        elf->e_phentsize != sizeof(Elf64_Phdr) || elf->e_phoff + size > HW_PAGE ||
        !read_at(elf->e_phoff, variables.header, size))
        return false;
    static uint8_t mapped[HW_PAGE];
    const uint32_t pid = hw_getpid();
    const struct iovec to = {mapped, size}, from = {(void *)(module->image_start + elf->e_phoff), size};
    return hw_sys(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0) == (long)size &&
           is_equal(mapped, variables.header, size);
}

/* The whole table of symbols; where it was taken away, that of symbols for others. */
static bool find_symbols(const Elf64_Ehdr *elf, Elf64_Shdr *found)
{
    *found = (Elf64_Shdr){.sh_type = SHT_NULL};
    if (elf->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    for (uint32_t at = 0; at < elf->e_shnum;) {
        const uint32_t most = sizeof variables.section / sizeof *variables.section;
        const uint32_t count = elf->e_shnum - at < most ? elf->e_shnum - at : most;
        if (!read_at(elf->e_shoff + at * sizeof(Elf64_Shdr), variables.section, count * sizeof(Elf64_Shdr)))
            return false;
        for (uint32_t i = 0; i < count; i++)
            if (variables.section[i].sh_type == SHT_SYMTAB ||
                (variables.section[i].sh_type == SHT_DYNSYM && found->sh_type == SHT_NULL))
                *found = variables.section[i];
        at += count;
    }
    return found->sh_type != SHT_NULL && found->sh_entsize == sizeof(Elf64_Sym);
}

static void read_symbols(const Elf64_Shdr *table, void (*each)(uintptr_t start, uint64_t size))
{
    const uint64_t all = table->sh_size / sizeof(Elf64_Sym);
    for (uint64_t at = 0; at < all && at < SYMBOLS_MOST;) {
        const uint64_t most = sizeof variables.symbol / sizeof *variables.symbol;
        const uint64_t count = all - at < most ? all - at : most;
        if (!read_at(table->sh_offset + at * sizeof(Elf64_Sym), variables.symbol, count * sizeof(Elf64_Sym)))
            return;
        for (uint64_t i = 0; i < count; i++) {
            const Elf64_Sym *symbol = &variables.symbol[i];
            if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_size >= sizeof(uint64_t) &&
                symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS)
                each(variables.bias + symbol->st_value, symbol->st_size);
        }
        at += count;
    }
}

bool hw_variables_each(uint32_t map, void (*each)(uintptr_t start, uint64_t size))
{
    const struct hw_map_entry *entry = HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, map);
    const char *path = hw_pools[HW_POOL_STRINGS].base + entry->path;
    Elf64_Ehdr elf;
    Elf64_Shdr table;
    if (*path != '/')
        return false;
    variables.bias = entry->bias;
    variables.file = hw_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (variables.file < 0)
        return false;
    const bool fine = read_at(0, &elf, sizeof elf) && is_equal(elf.e_ident, ELFMAG, SELFMAG) &&
                      elf.e_ident[EI_CLASS] == ELFCLASS64 && is_same(&elf, entry) && find_symbols(&elf, &table);
    if (fine)
        read_symbols(&table, each);
    hw_close(variables.file);
    return fine;
}
