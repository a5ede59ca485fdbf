/* static_plan.c - see static_plan.h. */
#include "cli/static_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "base/growing.h"
#include "base/order.h"
#include "base/sanitizers.h"

#define FAIL(...) (hw_error_set(error, __VA_ARGS__), false)

/* ---- symbols ---- */

static int by_name(const void *left, const void *right)
{
    const struct hw_static_symbol *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static int by_name_and_rank(const void *left, const void *right)
{
    const struct hw_static_symbol *a = left, *b = right;
    return strcmp(a->name, b->name) ?: HW_ORDER(a->local, b->local) ?: HW_ORDER(a->address, b->address);
}

/* One symbol a name. Several local ones of a name are different things: they are left out. */
static void keep_one_a_name(struct hw_static_plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0, next; i < plan->symbol_count; i = next) {
        struct hw_static_symbol *symbols = &plan->symbols[i];
        bool clear = true;
        for (next = i + 1; next < plan->symbol_count && !by_name(symbols, &plan->symbols[next]); next++) {
            clear &= !symbols->local || plan->symbols[next].address == symbols->address;
            free(plan->symbols[next].name);
        }
        if (clear)
            plan->symbols[kept++] = *symbols;
        else
            free(symbols->name);
    }
    plan->symbol_count = kept;
}

static bool is_kept(const GElf_Sym *symbol)
{
    const unsigned type = GELF_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE);
}

/* Also those of a separate debug file. */
static bool read_symbols(struct hw_static_plan *plan, const char *path, struct hw_error *error)
{
    static char *debug_path;
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = &debug_path};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    size_t room = 0;
    bool fine = dwfl != NULL;
    if (dwfl)
        dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl ? dwfl_report_elf(dwfl, path, path, -1, 0, true) : NULL;
    if (dwfl)
        dwfl_report_end(dwfl, NULL, NULL);
    const int count = module ? dwfl_module_getsymtab(module) : 0;
    for (int i = 1; fine && i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (!name || !*name || !is_kept(&symbol))
            continue;
        fine = HW_GROW(plan->symbols, room, plan->symbol_count + 1);
        char *copy = fine ? strdup(name) : NULL;
        fine = copy != NULL;
        if (fine)
            plan->symbols[plan->symbol_count++] =
                (struct hw_static_symbol){.name = copy,
                                          .address = address,
                                          .size = symbol.st_size,
                                          .local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL};
    }
    dwfl_end(dwfl);
    if (plan->symbol_count)
        qsort(plan->symbols, plan->symbol_count, sizeof *plan->symbols, by_name_and_rank);
    keep_one_a_name(plan);
    return fine || FAIL("no memory");
}

const struct hw_static_symbol *hw_static_plan_find(const struct hw_static_plan *plan, const char *name)
{
    const struct hw_static_symbol key = {.name = (char *)(uintptr_t)name};
    return plan->symbol_count ? bsearch(&key, plan->symbols, plan->symbol_count, sizeof key, by_name) : NULL;
}

static bool same_function(const struct hw_static_plan *plan, const char *one, const char *other)
{
    const struct hw_static_symbol *a = hw_static_plan_find(plan, one), *b = hw_static_plan_find(plan, other);
    return a && b && a->address == b->address;
}

/* Whose thread-local data and allocator it has: of another C library nothing is known. */
static bool check_library(struct hw_static_plan *plan, const char *path, struct hw_error *error)
{
    const bool glibc = hw_static_plan_find(plan, "__libc_setup_tls");
    const bool musl = hw_static_plan_find(plan, "__init_tls") || hw_static_plan_find(plan, "static_init_tls");
    if (!plan->symbol_count)
        return FAIL("%s is statically linked and has no symbols, so its malloc cannot be found: record a program that "
                    "was not stripped, or install its debug file (.build-id, .gnu_debuglink), or say where its "
                    "functions are (--malloc-at)",
                    path);
    if (!hw_static_plan_find(plan, "malloc") || !hw_static_plan_find(plan, "free"))
        return FAIL("%s is statically linked and has no malloc: there is nothing to record", path);
    if (!glibc && !musl)
        return FAIL("%s is statically linked, but with neither glibc nor musl: it cannot be recorded", path);
    for (size_t i = 0; i < HW_SANITIZERS; i++)
        if (hw_static_plan_find(plan, hw_sanitizers[i].function))
            return FAIL("%s is built with %s, which has an allocator of its own: record a build without it", path,
                        hw_sanitizers[i].name);
    if (!hw_static_plan_find(plan, "_exit") && !hw_static_plan_find(plan, "_Exit"))
        return FAIL("%s is statically linked and has no _exit: its end could not be seen", path);
    plan->allocator =
        glibc && same_function(plan, "malloc", "__libc_malloc") ? HW_STATIC_GLIBC
        : musl && (same_function(plan, "malloc", "default_malloc") || same_function(plan, "malloc", "__simple_malloc"))
            ? HW_STATIC_MUSL
            : HW_STATIC_OTHER;
    return true;
}

/* ---- .eh_frame ---- */

struct bytes {
    const uint8_t *at, *end;
    uint64_t address; /* of `at` */
};

static uint64_t take(struct bytes *bytes, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->at = bytes->end;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    bytes->address += size;
    return value;
}

static void skip_leb(struct bytes *bytes)
{
    while (take(bytes, 1) & 0x80) {
    }
}

static size_t encoded_size(unsigned encoding)
{
    const unsigned format = encoding & 7;
    return format == 0 || format == 4 ? 8 : format == 3 ? 4 : format == 2 ? 2 : 0;
}

/* How the CIE encodes addresses of code; 0xff: not understood. */
static unsigned encoding_of(struct bytes cie)
{
    const unsigned version = (unsigned)take(&cie, 1);
    const char *augmentation = (const char *)cie.at;
    while (take(&cie, 1)) {
    }
    if (*augmentation != 'z')
        return *augmentation ? 0xff : 0;
    skip_leb(&cie);
    skip_leb(&cie);
    if (version == 1)
        take(&cie, 1);
    else
        skip_leb(&cie);
    skip_leb(&cie);
    for (augmentation++; *augmentation && cie.at < cie.end; augmentation++) {
        const unsigned value = *augmentation == 'S' || *augmentation == 'B' ? 0 : (unsigned)take(&cie, 1);
        if (*augmentation == 'R')
            return value;
        if (*augmentation == 'P')
            take(&cie, encoded_size(value));
    }
    return 0;
}

static bool take_address(struct bytes *bytes, unsigned encoding, uint64_t *address)
{
    const uint64_t place = bytes->address;
    const size_t size = encoded_size(encoding);
    uint64_t value = take(bytes, size);
    if (!size || (encoding & 0x80) || ((encoding & 0x70) != 0 && (encoding & 0x70) != 0x10))
        return false;
    if (encoding & 8 && size < 8)
        value = (uint64_t)((int64_t)(value << (64 - size * 8)) >> (64 - size * 8));
    *address = encoding & 0x10 ? value + place : value;
    return true;
}

static int by_code(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return HW_ORDER(a[0], b[0]);
}

/* Static linking leaves out .eh_frame_hdr, by which the entry for a piece of code is found. What cannot be read is left
 * out: stacks end there, or are read from the code. */
static bool read_unwind(struct hw_static_plan *plan, const uint8_t *data, size_t size, uint64_t address)
{
    size_t room = 0;
    for (size_t at = 0; at + 8 <= size;) {
        uint32_t length, id;
        memcpy(&length, data + at, 4);
        memcpy(&id, data + at + 4, 4);
        if (length == 0xffffffff || length < 4 || length > size - at - 4)
            break;
        const size_t next = at + 4 + length;
        if (id && id <= at + 4) {
            uint32_t cie_length;
            const size_t cie = at + 4 - id;
            uint64_t code, bytes;
            memcpy(&cie_length, data + cie, 4);
            if (cie_length < 4 || cie_length > size - cie - 4)
                break;
            struct bytes fde = {data + at + 8, data + next, address + at + 8};
            const unsigned encoding =
                encoding_of((struct bytes){data + cie + 8, data + cie + 4 + cie_length, address + cie + 8});
            if (take_address(&fde, encoding, &code) && take_address(&fde, encoding & 0x0f, &bytes)) {
                if (!HW_GROW(plan->unwind, room, plan->unwind_count + 1))
                    return false;
                plan->unwind[plan->unwind_count][0] = code;
                plan->unwind[plan->unwind_count][1] = address + at;
                plan->unwind[plan->unwind_count++][2] = bytes;
            }
        }
        at = next;
    }
    if (plan->unwind_count)
        qsort(plan->unwind, plan->unwind_count, sizeof *plan->unwind, by_code);
    return true;
}

static bool find_unwind(struct hw_static_plan *plan, Elf *elf, bool any_case, struct hw_error *error)
{
    size_t strings = 0;
    for (size_t i = 0; i < plan->header_count; i++)
        if (plan->headers[i].p_type == PT_GNU_EH_FRAME && !any_case)
            return true;
    if (elf_getshdrstrndx(elf, &strings) != 0)
        return true;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, strings, header.sh_name) : NULL;
        const Elf_Data *data = name && strcmp(name, ".eh_frame") == 0 ? elf_rawdata(section, NULL) : NULL;
        if (data && data->d_buf && !read_unwind(plan, data->d_buf, data->d_size, header.sh_addr))
            return FAIL("no memory");
    }
    return true;
}

/* ---- pointers in thread-local data ---- */

struct pointers {
    struct hw_static_plan *plan;
    const Elf64_Phdr *tls;
    size_t room;
};

static bool is_thread_local(const struct pointers *to, uint64_t address)
{
    return address - to->tls->p_vaddr < to->tls->p_filesz;
}

static bool add_pointer(struct pointers *to, uint64_t address, uint64_t value)
{
    struct hw_static_plan *plan = to->plan;
    if (!HW_GROW(plan->moved, to->room, plan->moved_count + 1))
        return false;
    plan->moved[plan->moved_count][0] = address;
    plan->moved[plan->moved_count++][1] = value;
    return true;
}

/* Eight bytes of the file, which are loaded to ADDRESS. */
static Elf_Data *data_at(Elf *elf, uint64_t address)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;
        if (gelf_getphdr(elf, (int)i, &part) && part.p_type == PT_LOAD && address - part.p_vaddr < part.p_filesz)
            return elf_getdata_rawchunk(elf, (int64_t)(address - part.p_vaddr + part.p_offset), 8, ELF_T_BYTE);
    }
    return NULL;
}

/* Compressed relative relocations (gABI, "relative relocation table"): what is added to lies in the data. */
static bool read_compressed(struct pointers *to, const Elf_Data *data, Elf *elf, struct hw_error *error)
{
    uint64_t next = 0;
    for (size_t i = 0; i < data->d_size / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)data->d_buf + i * 8, 8);
        const bool single = !(word & 1);
        for (unsigned bit = 1; bit < (single ? 2 : 64); bit++) {
            const uint64_t address = single ? word : next + (bit - 1) * 8;
            const Elf_Data *there = NULL;
            uint64_t value;
            if ((!single && !(word >> bit & 1)) || !is_thread_local(to, address))
                continue;
            there = data_at(elf, address);
            if (!there)
                return FAIL("its relocations cannot be read");
            memcpy(&value, there->d_buf, 8);
            if (!add_pointer(to, address, value))
                return FAIL("no memory");
        }
        next = single ? word + 8 : next + 63 * 8;
    }
    return true;
}

static bool read_pointers(struct hw_static_plan *plan, Elf *elf, const char *path, struct hw_error *error)
{
    struct pointers to = {.plan = plan};
    for (size_t i = 0; i < plan->header_count; i++)
        to.tls = plan->headers[i].p_type == PT_TLS ? &plan->headers[i] : to.tls;
    for (Elf_Scn *section = NULL; to.tls && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        GElf_Rela entry;
        Elf_Data *data =
            gelf_getshdr(section, &header) && header.sh_flags & SHF_ALLOC ? elf_getdata(section, NULL) : NULL;
        if (!data || !data->d_buf)
            continue;
        if (header.sh_type == 19 /* SHT_RELR */ && !read_compressed(&to, data, elf, error))
            return false;
        for (int i = 0; header.sh_type == SHT_RELA && gelf_getrela(data, i, &entry); i++) {
            if (!is_thread_local(&to, entry.r_offset))
                continue;
            if (GELF_R_TYPE(entry.r_info) != R_X86_64_RELATIVE)
                return FAIL("%s has thread-local data that only its own start can set up: it cannot be recorded", path);
            if (!add_pointer(&to, entry.r_offset, (uint64_t)entry.r_addend))
                return FAIL("no memory");
        }
    }
    return true;
}

/* ---- functions without symbols ---- */

/* Whether code begins at ADDRESS; its length in *SIZE. */
static bool begins(const struct hw_static_plan *plan, uint64_t address, uint64_t *size)
{
    for (size_t i = 0; i < plan->unwind_count; i++)
        if (plan->unwind[i][0] == address) {
            *size = plan->unwind[i][2];
            return true;
        }
    return false;
}

static bool add_given(struct hw_static_plan *plan, const char *name, uint64_t address, struct hw_error *error)
{
    static const char *const names[] = {"malloc",         "free",          "calloc",        "realloc", "memalign",
                                        "posix_memalign", "aligned_alloc", "valloc",        "pvalloc", "_exit",
                                        "fork",           "execve",        "pthread_create"};
    struct hw_static_symbol *symbol = &plan->symbols[plan->symbol_count];
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], name) != 0)
        i++;
    if (i == sizeof names / sizeof *names)
        return FAIL("--malloc-at: '%s' is none of the functions that are redirected", name);
    if (!begins(plan, address, &symbol->size))
        return FAIL("--malloc-at: %s: no function begins at 0x%" PRIx64 " (by .eh_frame)", name, address);
    for (size_t k = 0; k < plan->symbol_count; k++)
        if (strcmp(plan->symbols[k].name, name) == 0)
            return FAIL("--malloc-at: %s is given twice", name);
    symbol->name = strdup(name);
    symbol->address = address;
    plan->symbol_count += symbol->name != NULL;
    return symbol->name || FAIL("no memory");
}

/* Instead of symbols: MALLOC[,NAME=ADDRESS]…, in hexadecimal or decimal. */
static bool take_given(struct hw_static_plan *plan, const char *given, struct hw_error *error)
{
    static const char *const needed[] = {"malloc", "free", "calloc", "realloc"};
    char text[1024], *rest = text, *part;
    if ((size_t)snprintf(text, sizeof text, "%s", given) >= sizeof text)
        return FAIL("--malloc-at: too long");
    for (size_t i = 0; i < plan->symbol_count; i++)
        free(plan->symbols[i].name);
    free(plan->symbols);
    plan->symbol_count = 0;
    plan->symbols = calloc(strlen(given) + 1, sizeof *plan->symbols);
    if (!plan->symbols)
        return FAIL("no memory");
    while ((part = strsep(&rest, ","))) {
        char *number = strchr(part, '='), *end;
        if (number)
            *number++ = '\0';
        const char *name = number ? part : "malloc";
        number = number ? number : part;
        const uint64_t address = strtoull(number, &end, 0);
        if (!*number || *end)
            return FAIL("--malloc-at takes ADDRESS[,NAME=ADDRESS]..., not '%s'", given);
        if (!add_given(plan, name, address, error))
            return false;
    }
    qsort(plan->symbols, plan->symbol_count, sizeof *plan->symbols, by_name);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!hw_static_plan_find(plan, needed[i]))
            return FAIL("--malloc-at needs the address of %s, too: --malloc-at=MALLOC,free=ADDRESS,calloc=ADDRESS,"
                        "realloc=ADDRESS",
                        needed[i]);
    return true;
}

/* glibc's tunables have their names in every program that glibc is linked into. */
static bool is_glibc(Elf *elf)
{
    size_t size = 0;
    const char *bytes = elf_rawfile(elf, &size);
    return bytes && memmem(bytes, size, "glibc.rtld.", 11);
}

/* ---- the file ---- */

static bool read_headers(struct hw_static_plan *plan, Elf *elf, const char *path, struct hw_error *error)
{
    GElf_Ehdr header;
    size_t count = 0;
    if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count) != 0 || !count)
        return FAIL("%s: its headers cannot be read: %s", path, elf_errmsg(-1));
    plan->headers = calloc(count, sizeof *plan->headers);
    if (!plan->headers)
        return FAIL("no memory");
    plan->header_count = count;
    plan->entry = header.e_entry;
    plan->start = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr *part = &plan->headers[i];
        if (!gelf_getphdr(elf, (int)i, part))
            return FAIL("%s: its headers cannot be read: %s", path, elf_errmsg(-1));
        if (part->p_type != PT_LOAD)
            continue;
        plan->start = part->p_vaddr < plan->start ? part->p_vaddr : plan->start;
        plan->end = part->p_vaddr + part->p_memsz > plan->end ? part->p_vaddr + part->p_memsz : plan->end;
        if (header.e_phoff >= part->p_offset &&
            header.e_phoff + count * sizeof(Elf64_Phdr) <= part->p_offset + part->p_filesz)
            plan->headers_at = header.e_phoff - part->p_offset + part->p_vaddr;
    }
    return plan->headers_at || FAIL("%s: its headers are not loaded with it: it cannot be recorded", path);
}

/* Functions are where the caller says, not where symbols say. */
static bool use_given(struct hw_static_plan *plan, Elf *elf, const char *path, const char *given,
                      struct hw_error *error)
{
    if (!is_glibc(elf))
        return FAIL("%s: --malloc-at is for programs with glibc", path);
    return take_given(plan, given, error);
}

bool hw_static_plan_read(struct hw_static_plan *plan, const char *path, const char *given, struct hw_error *error)
{
    *plan = (struct hw_static_plan){0};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return FAIL("%s: %s", path, strerror(errno));
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    const bool fine = elf && read_headers(plan, elf, path, error) && read_pointers(plan, elf, path, error) &&
                      find_unwind(plan, elf, given != NULL, error) &&
                      (given ? use_given(plan, elf, path, given, error)
                             : read_symbols(plan, path, error) && check_library(plan, path, error));
    if (!elf)
        hw_error_set(error, "%s: it cannot be read: %s", path, elf_errmsg(-1));
    elf_end(elf);
    close(file);
    if (!fine)
        hw_static_plan_free(plan);
    return fine;
}

void hw_static_plan_free(struct hw_static_plan *plan)
{
    for (size_t i = 0; i < plan->symbol_count; i++)
        free(plan->symbols[i].name);
    free(plan->symbols);
    free(plan->headers);
    free(plan->moved);
    free(plan->unwind);
    *plan = (struct hw_static_plan){0};
}
