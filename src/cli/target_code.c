/* target_code.c - see target_code.h. What the process says of itself may be wrong: every size is checked. */
#include "cli/target_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SYMBOLS 4000000u
#define MOST_NAMES   (256u << 20)
#define MOST_PARTS   64
#define HIGHEST      (1ul << 47) /* of a program */

/* ---- mappings ---- */

static bool add_area(struct hw_target_code *code, uint64_t start, uint64_t end)
{
    if (code->area_count % 256 == 0) {
        const size_t bytes = (code->area_count + 256) * sizeof(uint64_t);
        uint64_t *ends = realloc(code->stack_ends, bytes);
        code->stack_ends = ends ? ends : code->stack_ends;
        uint64_t *starts = ends ? realloc(code->stack_starts, bytes) : NULL;
        code->stack_starts = starts ? starts : code->stack_starts;
        if (!starts)
            return false;
    }
    code->stack_starts[code->area_count] = start;
    code->stack_ends[code->area_count++] = end;
    return true;
}

static bool add_image(struct hw_target_code *code, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    struct hw_image *last = code->count ? &code->images[code->count - 1] : NULL;
    if (last && strcmp(last->path, path) == 0 && offset) {
        last->end = end;
        return true;
    }
    if (offset)
        return true; /* not its beginning: data that is mapped */
    struct hw_image *grown = realloc(code->images, (code->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    code->images = grown;
    grown[code->count] = (struct hw_image){.start = start, .end = end, .path = strdup(path)};
    return grown[code->count++].path != NULL;
}

bool hw_target_code_read(struct hw_target_code *code, struct hw_stop *stop)
{
    char path[64], *line = NULL;
    size_t size = 0;
    uint64_t before = 0;
    *code = (struct hw_target_code){0};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)stop->alive);
    FILE *maps = fopen(path, "re");
    bool fine = maps != NULL;
    while (fine && getline(&line, &size, maps) > 0) {
        uint64_t start, end, offset;
        char rights[5];
        int at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, rights, &offset, &at) < 4)
            continue;
        if (end < HIGHEST && before && start > before && start - before > code->gap_end - code->gap) {
            code->gap = before;
            code->gap_end = start;
        }
        before = end;
        if (rights[1] == 'w')
            fine = add_area(code, start, end);
        if (fine && at && (line[at] == '/' || strcmp(line + at, "[vdso]") == 0))
            fine = add_image(code, start, end, offset, line + at);
    }
    free(line);
    if (maps)
        fclose(maps);
    if (!fine || !code->count)
        return hw_error_set(stop->error, "the memory of process %d cannot be read", (int)stop->pid), false;
    return true;
}

void hw_target_code_free(struct hw_target_code *code)
{
    for (size_t i = 0; i < code->count; i++) {
        free(code->images[i].path);
        free(code->images[i].symbols);
        free(code->images[i].names);
    }
    free(code->images);
    free(code->stack_ends);
    free(code->stack_starts);
    *code = (struct hw_target_code){0};
}

void hw_target_code_refresh(struct hw_target_code *code, struct hw_stop *stop)
{
    struct hw_target_code fresh;
    if (hw_target_code_read(&fresh, stop)) {
        const struct hw_target_code old = *code;
        code->stack_starts = fresh.stack_starts;
        code->stack_ends = fresh.stack_ends;
        code->area_count = fresh.area_count;
        fresh.stack_starts = old.stack_starts;
        fresh.stack_ends = old.stack_ends;
    }
    hw_target_code_free(&fresh);
}

uint64_t hw_target_unmapped(const struct hw_target_code *code, uint64_t size)
{
    return code->gap_end - code->gap >= 2 * size ? (code->gap + (code->gap_end - code->gap) / 2) & ~0xfffful : 0;
}

struct hw_image *hw_target_image(struct hw_target_code *code, uint64_t address)
{
    for (size_t i = 0; i < code->count; i++)
        if (address >= code->images[i].start && address < code->images[i].end)
            return &code->images[i];
    return NULL;
}

uint64_t hw_target_writable_end(const struct hw_target_code *code, uint64_t address)
{
    for (size_t i = 0; i < code->area_count; i++)
        if (address >= code->stack_starts[i] && address < code->stack_ends[i])
            return code->stack_ends[i];
    return 0;
}

/* ---- symbols ---- */

static bool read_quietly(struct hw_stop *stop, uint64_t address, void *buffer, size_t size)
{
    const struct hw_error before = *stop->error;
    const bool fine = hw_stop_read(stop, address, buffer, size);
    *stop->error = before;
    return fine;
}

/* How many symbols the table of hashes at ADDRESS (of GNU's kind) knows. */
static size_t count_symbols(struct hw_stop *stop, uint64_t address)
{
    uint32_t head[4], entry, last = 0;
    if (!read_quietly(stop, address, head, sizeof head) || head[0] > MOST_SYMBOLS || head[2] > MOST_SYMBOLS)
        return 0;
    const uint64_t buckets = address + sizeof head + 8ul * head[2], chains = buckets + 4ul * head[0];
    uint32_t *bucket = malloc(4ul * head[0] + 4);
    if (!bucket || !read_quietly(stop, buckets, bucket, 4ul * head[0])) {
        free(bucket);
        return 0;
    }
    for (uint32_t i = 0; i < head[0]; i++)
        last = bucket[i] > last ? bucket[i] : last;
    free(bucket);
    if (last < head[1])
        return head[1];
    do
        if (last >= MOST_SYMBOLS || !read_quietly(stop, chains + 4ul * (last - head[1]), &entry, sizeof entry))
            return 0;
    while (last++, !(entry & 1));
    return last;
}

/* The parts of the image as its file lists them; 0: it is none. */
static int read_parts(struct hw_stop *stop, const struct hw_image *image, Elf64_Phdr part[MOST_PARTS], uint64_t *bias)
{
    Elf64_Ehdr header;
    uint64_t lowest = UINT64_MAX;
    if (!read_quietly(stop, image->start, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum > MOST_PARTS || header.e_phentsize != sizeof *part ||
        !read_quietly(stop, image->start + header.e_phoff, part, header.e_phnum * sizeof *part))
        return 0;
    for (int i = 0; i < header.e_phnum; i++)
        if (part[i].p_type == PT_LOAD && part[i].p_vaddr < lowest)
            lowest = part[i].p_vaddr;
    *bias = image->start - (lowest & ~4095ul);
    return header.e_phnum;
}

uint64_t hw_image_spare_code(struct hw_stop *stop, const struct hw_image *image, size_t size)
{
    Elf64_Phdr part[MOST_PARTS];
    uint64_t bias;
    const int count = read_parts(stop, image, part, &bias);
    for (int i = 0; i < count; i++) {
        const uint64_t end = (bias + part[i].p_vaddr + part[i].p_memsz + 63) & ~63ul;
        if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_X && (end & 4095) && 4096 - (end & 4095) >= size)
            return end;
    }
    return 0;
}

static void load(struct hw_stop *stop, struct hw_image *image)
{
    Elf64_Phdr part[MOST_PARTS];
    Elf64_Dyn entry;
    uint64_t dynamic = 0, symbols = 0, names = 0, hashes = 0, size = 0;
    image->loaded = true;
    const int parts = read_parts(stop, image, part, &image->bias);
    if (!parts)
        return;
    for (int i = 0; i < parts; i++)
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = part[i].p_vaddr;
    for (uint64_t at = image->bias + dynamic; dynamic && read_quietly(stop, at, &entry, sizeof entry); at += 16) {
        const uint64_t address = entry.d_un.d_ptr < image->bias ? entry.d_un.d_ptr + image->bias : entry.d_un.d_ptr;
        if (entry.d_tag == DT_NULL)
            break;
        symbols = entry.d_tag == DT_SYMTAB ? address : symbols;
        names = entry.d_tag == DT_STRTAB ? address : names;
        size = entry.d_tag == DT_STRSZ ? entry.d_un.d_val : size;
        hashes = entry.d_tag == DT_GNU_HASH ? address : hashes;
    }
    const size_t count = hashes ? count_symbols(stop, hashes) : 0;
    if (!symbols || !names || !count || !size || size > MOST_NAMES)
        return;
    image->symbols = malloc(count * sizeof *image->symbols);
    image->names = malloc(size + 1);
    if (!image->symbols || !image->names ||
        !read_quietly(stop, symbols, image->symbols, count * sizeof *image->symbols) ||
        !read_quietly(stop, names, image->names, size))
        return;
    image->names[size] = '\0';
    image->names_size = size;
    image->symbol_count = count;
}

static const char *name_of(const struct hw_image *image, const Elf64_Sym *symbol)
{
    return symbol->st_name < image->names_size ? image->names + symbol->st_name : "";
}

uint64_t hw_image_symbol(struct hw_stop *stop, struct hw_image *image, const char *name)
{
    if (!image->loaded)
        load(stop, image);
    for (size_t i = 0; i < image->symbol_count; i++) {
        const Elf64_Sym *symbol = &image->symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || strcmp(name_of(image, symbol), name) != 0)
            continue;
        return ELF64_ST_TYPE(symbol->st_info) == STT_TLS ? symbol->st_value : symbol->st_value + image->bias;
    }
    return 0;
}

static bool is_among(const char *name, const char *const *list)
{
    for (; *list; list++) {
        const size_t length = strlen(*list);
        if ((*list)[length - 1] == '*' ? strncmp(name, *list, length - 1) == 0 : strcmp(name, *list) == 0)
            return true;
    }
    return false;
}

bool hw_image_in_function(struct hw_stop *stop, struct hw_image *image, uint64_t pc, const char *const *list)
{
    if (!image->loaded)
        load(stop, image);
    for (size_t i = 0; i < image->symbol_count; i++) {
        const Elf64_Sym *symbol = &image->symbols[i];
        const unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if (symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
            pc - image->bias >= symbol->st_value && pc - image->bias < symbol->st_value + symbol->st_size &&
            (!list || is_among(name_of(image, symbol), list)))
            return true;
    }
    return false;
}
