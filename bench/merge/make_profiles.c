/* make_profiles.c - profiles of many runs of one program, for the benchmark of heapwise merge.
 *
 *     make_profiles raw|own PROGRAM FOLDER COUNT
 *
 * The program is real: raw profiles carry its build id and addresses of its code, so that llvm-profdata takes them.
 * Each run has 11,000 to 35,000 contexts out of a common pool of 120,000; a third of them are in every run, the others
 * are the rarer the farther back they stand: so do runs of one compiler on many files look. Addresses differ from run
 * to run. `own`: the same contexts as files of Heapwise's own, as the runtime leaves them. */
#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <gelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/container/container.h"
#include "profile/llvm/llvm.h"
#include "profile/container/write.h"

enum { POOL = 120000, NODES = 200000, LEAST = 11000, MOST = 35000, DEPTH_MOST = 40 };

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t limit)
{
    return next_random() % limit;
}

/* ---- the program ---- */

struct program {
    uint64_t start, end; /* of its code */
    uint64_t *site;      /* addresses inside functions */
    size_t site_count;
    uint8_t build_id[32];
    uint32_t build_id_size;
};

static int fail(const char *what)
{
    fprintf(stderr, "make_profiles: %s\n", what);
    exit(2);
}

static void read_notes(Elf *elf, struct program *program)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        gelf_getphdr(elf, (int)i, &header);
        if (header.p_type == PT_LOAD && header.p_flags & PF_X) {
            program->start = header.p_vaddr;
            program->end = header.p_vaddr + header.p_memsz;
        }
        Elf_Data *data = header.p_type == PT_NOTE
                             ? elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_NHDR)
                             : NULL;
        size_t name, text;
        GElf_Nhdr note;
        for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &text)) > 0;)
            if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= sizeof program->build_id) {
                program->build_id_size = note.n_descsz;
                memcpy(program->build_id, (char *)data->d_buf + text, note.n_descsz);
            }
    }
}

/* A few places in every function that is long enough. */
static void read_sites(Elf *elf, struct program *program)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    program->site = malloc((1 << 20) * sizeof *program->site);
    while ((section = elf_nextscn(elf, section))) {
        gelf_getshdr(section, &header);
        if (header.sh_type != SHT_SYMTAB)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
            GElf_Sym symbol;
            gelf_getsym(data, (int)i, &symbol);
            if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size < 48)
                continue;
            for (uint64_t at = 16; at + 16 < symbol.st_size && program->site_count < 1 << 20; at += 24)
                program->site[program->site_count++] = symbol.st_value + at;
        }
    }
}

static struct program read_program(const char *path)
{
    struct program program = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
    if (!elf)
        fail("the program cannot be read");
    read_notes(elf, &program);
    read_sites(elf, &program);
    elf_end(elf);
    close(fd);
    if (!program.build_id_size || !program.site_count)
        fail("the program has no build id or no symbols");
    return program;
}

/* ---- the pool of contexts ---- */

struct pool {
    struct node {
        uint64_t site;
        uint32_t parent, depth;
    } node[NODES];
    uint32_t leaf[POOL];
};

/* A tree of calls that grows at random, deeper where it is deep already; contexts are 2 to DEPTH_MOST frames deep. */
static void make_pool(struct pool *pool, const struct program *program)
{
    for (uint32_t i = 1; i < NODES; i++) {
        uint32_t parent = i < 8 ? 0 : (uint32_t)below(i);
        if (pool->node[parent].depth >= DEPTH_MOST)
            parent = 0;
        pool->node[i] = (struct node){program->site[below(program->site_count)], parent, pool->node[parent].depth + 1};
    }
    for (uint32_t i = 0; i < POOL; i++)
        do
            pool->leaf[i] = 1 + (uint32_t)below(NODES - 1);
        while (pool->node[pool->leaf[i]].depth < 2);
}

/* ---- a run ---- */

static size_t choose(uint8_t *taken, uint32_t *chosen)
{
    const size_t wanted = LEAST + below(MOST - LEAST + 1), common = LEAST / 3;
    size_t count = 0;
    memset(taken, 0, POOL);
    for (uint32_t i = 0; i < common; i++) {
        taken[i] = 1;
        chosen[count++] = i;
    }
    while (count < wanted) {
        const double x = (double)below(1 << 30) / (1 << 30);
        const uint32_t i = (uint32_t)(x * x * (POOL - 1));
        if (!taken[i]) {
            taken[i] = 1;
            chosen[count++] = i;
        }
    }
    return count;
}

static struct hw_llvm_mib make_block(void)
{
    struct hw_llvm_mib block = {{0}};
    uint64_t *field = block.field;
    const uint64_t count = 1 + below(2000), size = 8 + below(500), lifetime = below(5000), accesses = below(100);
    field[HW_LLVM_ALLOC_COUNT] = count;
    field[HW_LLVM_TOTAL_SIZE] = count * size;
    field[HW_LLVM_MIN_SIZE] = size / 2;
    field[HW_LLVM_MAX_SIZE] = size * 2;
    field[HW_LLVM_TOTAL_ACCESSES] = count * accesses;
    field[HW_LLVM_MIN_ACCESSES] = accesses / 2;
    field[HW_LLVM_MAX_ACCESSES] = accesses * 2;
    field[HW_LLVM_ALLOC_TIME] = below(10000);
    field[HW_LLVM_FREE_TIME] = field[HW_LLVM_ALLOC_TIME] + lifetime;
    field[HW_LLVM_TOTAL_LIFETIME] = count * lifetime;
    field[HW_LLVM_MIN_LIFETIME] = lifetime / 2;
    field[HW_LLVM_MAX_LIFETIME] = lifetime * 2;
    field[HW_LLVM_ALLOC_CPU] = below(64);
    field[HW_LLVM_FREE_CPU] = below(64);
    field[HW_LLVM_MIGRATED_CPU] = below(count + 1);
    field[HW_LLVM_LIFETIME_OVERLAPS] = below(count + 1);
    field[HW_LLVM_TOTAL_DENSITY] = count * (accesses * 100 / size);
    field[HW_LLVM_MAX_DENSITY] = 2 * (accesses * 100 / size);
    field[HW_LLVM_TOTAL_LIFETIME_DENSITY] = count * below(1000);
    field[HW_LLVM_MAX_LIFETIME_DENSITY] = 1000;
    return block;
}

static void write_bytes(const char *folder, size_t number, const char *suffix, const void *bytes, size_t size)
{
    char path[4096];
    struct hw_error error;
    snprintf(path, sizeof path, "%s/%04zu%s", folder, number, suffix);
    if (!hw_file_write(path, true, bytes, size, &error))
        fail(error.message);
}

static void write_raw(const struct pool *pool, const struct program *program, const uint32_t *chosen, size_t count,
                      const char *folder, size_t number, uint64_t bias)
{
    struct hw_llvm_profile profile = {.segment_count = 1};
    struct hw_llvm_segment segment = {.start = program->start + bias,
                                      .end = program->end + bias,
                                      .bias = bias,
                                      .build_id_size = program->build_id_size};
    memcpy(segment.build_id, program->build_id, sizeof segment.build_id);
    profile.segments = &segment;
    profile.contexts = calloc(count, sizeof *profile.contexts);
    profile.stacks = malloc(count * DEPTH_MOST * sizeof *profile.stacks);
    for (size_t i = 0; i < count; i++) {
        struct hw_llvm_context *context = &profile.contexts[profile.context_count++];
        context->first = profile.stack_size;
        context->mib = make_block();
        for (uint32_t node = pool->leaf[chosen[i]]; node; node = pool->node[node].parent)
            profile.stacks[profile.stack_size++] = pool->node[node].site + bias;
        context->count = (uint32_t)(profile.stack_size - context->first);
    }
    struct hw_llvm_bytes bytes = {0};
    if (!hw_llvm_raw_write(&profile, number % 2 ? 5 : 4, &bytes))
        fail("not enough memory");
    write_bytes(folder, number, ".profraw", bytes.data, bytes.used);
    free(bytes.data);
    free(profile.contexts);
    free(profile.stacks);
}

static void *make_table(struct hw_arena *arena, struct hw_tables *tables, uint32_t type, size_t count)
{
    struct hw_table *table = &tables->of[type];
    table->entries = hw_arena_allocate(arena, count + 1, hw_section_rule(type)->size);
    table->count = count;
    return table->entries;
}

static uint32_t add_node(const struct pool *pool, uint32_t node, uint32_t *place, struct hw_stack_node *nodes,
                         size_t *count, uint64_t bias)
{
    if (!node || place[node])
        return node ? place[node] : 0;
    const uint32_t parent = add_node(pool, pool->node[node].parent, place, nodes, count, bias);
    nodes[*count] = (struct hw_stack_node){.pc = pool->node[node].site + bias, .map = 0, .parent = parent};
    return place[node] = (uint32_t)(*count)++;
}

static void write_own(const struct pool *pool, const struct program *program, const char *path, const uint32_t *chosen,
                      size_t count, const char *folder, size_t number, uint64_t bias)
{
    struct hw_arena arena = {0};
    struct hw_tables tables = {0};
    struct hw_process_info *process = make_table(&arena, &tables, HW_SECTION_PROCESS, 1);
    struct hw_thread_entry *thread = make_table(&arena, &tables, HW_SECTION_THREADS, 1);
    struct hw_map_entry *map = make_table(&arena, &tables, HW_SECTION_MAPS, 1);
    char *strings = make_table(&arena, &tables, HW_SECTION_STRINGS, strlen(path) + 2);
    struct hw_stack_node *nodes = make_table(&arena, &tables, HW_SECTION_STACKS, NODES);
    struct hw_context_entry *contexts = make_table(&arena, &tables, HW_SECTION_CONTEXTS, count + 1);
    struct hw_mib *mibs = make_table(&arena, &tables, HW_SECTION_MIBS, count);
    uint32_t *place = calloc(NODES, sizeof *place);
    size_t node_count = 1;
    strcpy(strings + 1, path);
    *process = (struct hw_process_info){
        .pid = 1000 + (uint32_t)number, .executable = 1, .clock_ticks = 1, .clock_ns = 1, .end_tick = 30000000000};
    *map = (struct hw_map_entry){.start = program->start + bias,
                                 .end = program->end + bias,
                                 .bias = bias,
                                 .path = 1,
                                 .flags = HW_MAP_MAIN,
                                 .build_id_size = program->build_id_size};
    memcpy(map->build_id, program->build_id, sizeof map->build_id);
    for (size_t i = 0; i < count; i++) {
        const struct hw_llvm_mib block = make_block();
        contexts[i + 1] =
            (struct hw_context_entry){.leaf = add_node(pool, pool->leaf[chosen[i]], place, nodes, &node_count, bias),
                                      .depth = (uint16_t)pool->node[pool->leaf[chosen[i]]].depth};
        mibs[i] = hw_llvm_to_mib(&block, (uint32_t)i + 1, HW_LLVM_KNOWN_ALL);
        thread->allocations += mibs[i].allocations;
        thread->frees += mibs[i].frees;
        thread->bytes += mibs[i].bytes;
    }
    tables.of[HW_SECTION_STACKS].count = node_count;
    const struct hw_write_options options = {.file_flags = HW_FILE_EXITED};
    struct hw_error error;
    size_t size;
    unsigned char *bytes = hw_tables_serialize(&tables, &options, &size, &error);
    if (!bytes)
        fail(error.message);
    write_bytes(folder, number, ".hwprof", bytes, size);
    free(bytes);
    free(place);
    hw_arena_free(&arena);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("usage: make_profiles raw|own PROGRAM FOLDER COUNT");
    const bool raw = !strcmp(argv[1], "raw");
    const size_t count = strtoul(argv[4], NULL, 10);
    const struct program program = read_program(argv[2]);
    struct pool *pool = calloc(1, sizeof *pool);
    uint8_t *taken = malloc(POOL);
    uint32_t *chosen = malloc(MOST * sizeof *chosen);
    state = 20261121;
    make_pool(pool, &program);
    size_t contexts = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t size = choose(taken, chosen);
        const uint64_t bias = 0x550000000000 + (below(1 << 20) << 12);
        contexts += size;
        if (raw)
            write_raw(pool, &program, chosen, size, argv[3], i, bias);
        else
            write_own(pool, &program, argv[2], chosen, size, argv[3], i, bias);
    }
    printf("%zu profiles of %zu contexts on average\n", count, contexts / (count ? count : 1));
    free(taken);
    free(chosen);
    free(pool);
    free(program.site);
    return 0;
}
