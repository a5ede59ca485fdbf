/* llvm_model.c - one of LLVM's heap profiles as the tables of Heapwise's own file, from which model.c makes the rest.
 *
 * LLVM's times are in ms: so are the ticks. Its blocks have lifetimes, also those that lived to the end of the run, but
 * no frees: each counts as freed here, and hw_profile_measured says that frees were not measured. Accesses go into the
 * ACCESS section as counts of which it is not known whether they read or wrote. */
#include "base/index.h"
#include "profile/container/container.h"
#include "profile/llvm/llvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MS_NS HW_LLVM_TICK_NS

struct maker {
    const struct hw_llvm_profile *from;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_stack_node *node;
    size_t node_count;
    struct hw_index nodes; /* by pc and parent */
    uint32_t *leaf;        /* for each place in the stacks at which one begins: its node + 1 */
    uint32_t *context_of;  /* for each node: the context of the stack that ends there + 1 */
    struct hw_context_entry *context;
    size_t context_count;
    struct hw_llvm_mib *mib; /* by context */
};

/* ---- tables ---- */

static uint64_t field(const struct hw_llvm_context *context, enum hw_llvm_field which)
{
    return context->mib.field[which];
}

bool hw_llvm_has_accesses(uint32_t known)
{
    const uint32_t needed = 1u << HW_LLVM_TOTAL_ACCESSES | 1u << HW_LLVM_MIN_ACCESSES | 1u << HW_LLVM_MAX_ACCESSES |
                            1u << HW_LLVM_TOTAL_DENSITY | 1u << HW_LLVM_MAX_LIFETIME_DENSITY;
    return (known & needed) == needed;
}

static bool make_process(struct maker *maker)
{
    struct hw_process_info *process = hw_table_make(maker->tables, maker->arena, HW_SECTION_PROCESS, 1);
    struct hw_thread_entry *thread = hw_table_make(maker->tables, maker->arena, HW_SECTION_THREADS, 1);
    if (!process || !thread)
        return false;
    process->mode = hw_llvm_has_accesses(maker->from->known) ? HW_MODE_ACCESS : HW_MODE_HEAP;
    process->clock_ticks = 1;
    process->clock_ns = MS_NS;
    for (size_t i = 0; i < maker->from->context_count; i++) {
        const struct hw_llvm_context *context = &maker->from->contexts[i];
        thread->allocations += field(context, HW_LLVM_ALLOC_COUNT);
        thread->frees += field(context, HW_LLVM_ALLOC_COUNT);
        thread->bytes += field(context, HW_LLVM_TOTAL_SIZE);
    }
    return true;
}

struct hw_map_entry hw_llvm_map(const struct hw_llvm_segment *segment, bool main, char name[HW_LLVM_MODULE_NAME])
{
    struct hw_map_entry map = {.start = segment->start,
                               .end = segment->end,
                               .bias = segment->bias <= segment->start ? segment->bias : 0,
                               .build_id_size = segment->build_id_size,
                               .flags = main ? HW_MAP_MAIN : 0};
    memcpy(map.build_id, segment->build_id, segment->build_id_size);
    int size = snprintf(name, HW_LLVM_MODULE_NAME, segment->build_id_size ? "build id " : "no build id");
    for (uint32_t k = 0; k < segment->build_id_size; k++)
        size += snprintf(name + size, HW_LLVM_MODULE_NAME - (size_t)size, "%02x", segment->build_id[k]);
    return map;
}

static bool make_maps(struct maker *maker)
{
    const size_t count = maker->from->segment_count;
    struct hw_map_entry *maps = hw_table_make(maker->tables, maker->arena, HW_SECTION_MAPS, count);
    char *strings = hw_table_make(maker->tables, maker->arena, HW_SECTION_STRINGS, 1 + count * HW_LLVM_MODULE_NAME);
    if (!maps || !strings)
        return false;
    for (size_t i = 0; i < count; i++) {
        char *name = strings + 1 + i * HW_LLVM_MODULE_NAME;
        maps[i] = hw_llvm_map(&maker->from->segments[i], i == 0, name);
        maps[i].path = (uint32_t)(name - strings);
    }
    return true;
}

/* ---- stacks ---- */

static uint32_t map_of(const struct maker *maker, uint64_t pc)
{
    for (size_t i = 0; !maker->from->symbolized && i < maker->from->segment_count; i++)
        if (pc >= maker->from->segments[i].start && pc < maker->from->segments[i].end)
            return (uint32_t)i;
    return HW_NONE;
}

/* The node at which the stack ends. */
static uint32_t intern_stack(struct maker *maker, size_t first, uint32_t count)
{
    uint32_t node = 0;
    if (maker->leaf[first])
        return maker->leaf[first] - 1;
    for (uint32_t i = count; i-- > 0;) {
        const uint64_t pc = maker->from->stacks[first + i];
        const uint32_t parent = node;
        bool added;
        node = hw_index_intern(&maker->nodes, (struct hw_key){pc, parent}, (uint32_t)maker->node_count, &added);
        if (added)
            maker->node[maker->node_count++] =
                (struct hw_stack_node){.pc = pc, .map = map_of(maker, pc), .parent = parent};
    }
    maker->leaf[first] = node + 1;
    return node;
}

static bool make_stacks(struct maker *maker)
{
    const size_t most = maker->from->stack_size + 1;
    if (most >= UINT32_MAX || !hw_index_make(&maker->nodes, most))
        return false;
    maker->leaf = calloc(most, sizeof *maker->leaf);
    maker->context_of = calloc(most, sizeof *maker->context_of);
    maker->node = hw_table_make(maker->tables, maker->arena, HW_SECTION_STACKS, most);
    maker->context = hw_table_make(maker->tables, maker->arena, HW_SECTION_CONTEXTS, maker->from->context_count + 1);
    maker->node_count = maker->context_count = 1;
    return maker->leaf && maker->context_of && maker->node && maker->context;
}

/* Context 0 is that of unknown stacks. */
static uint32_t context_id(struct maker *maker, const struct hw_llvm_context *from)
{
    const uint32_t leaf = from->count ? intern_stack(maker, from->first, from->count) : 0;
    if (leaf && !maker->context_of[leaf]) {
        maker->context[maker->context_count] =
            (struct hw_context_entry){.leaf = leaf, .depth = (uint16_t)(from->count < UINT16_MAX ? from->count : 0)};
        maker->context_of[leaf] = (uint32_t)++maker->context_count;
    }
    return leaf ? maker->context_of[leaf] - 1 : 0;
}

/* ---- contexts ---- */

static uint16_t cpu(uint64_t number)
{
    return number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
}

struct hw_mib hw_llvm_to_mib(const struct hw_llvm_mib *from, uint32_t context, uint32_t known)
{
    const uint64_t *field = from->field, count = field[HW_LLVM_ALLOC_COUNT];
    const bool sizes = known >> HW_LLVM_MIN_SIZE & 1, lifetimes = known >> HW_LLVM_MIN_LIFETIME & 1;
    return (struct hw_mib){.context = context,
                           .allocations = count,
                           .frees = count,
                           .samples = count,
                           .bytes = field[HW_LLVM_TOTAL_SIZE],
                           .size_min = sizes ? field[HW_LLVM_MIN_SIZE] : UINT64_MAX,
                           .size_max = field[HW_LLVM_MAX_SIZE],
                           .last_alloc_tick = field[HW_LLVM_ALLOC_TIME],
                           .last_free_tick = field[HW_LLVM_FREE_TIME],
                           .last_alloc_cpu = cpu(field[HW_LLVM_ALLOC_CPU]),
                           .last_free_cpu = cpu(field[HW_LLVM_FREE_CPU]),
                           .lifetime_total = field[HW_LLVM_TOTAL_LIFETIME],
                           .lifetime_min = lifetimes ? field[HW_LLVM_MIN_LIFETIME] : UINT64_MAX,
                           .lifetime_max = field[HW_LLVM_MAX_LIFETIME],
                           .migrated_cpu = field[HW_LLVM_MIGRATED_CPU],
                           .lifetime_overlaps = field[HW_LLVM_LIFETIME_OVERLAPS],
                           .same_alloc_cpu = field[HW_LLVM_SAME_ALLOC_CPU],
                           .same_free_cpu = field[HW_LLVM_SAME_FREE_CPU]};
}

/* LLVM's densities are hundredths, ours thousandths. */
static uint64_t to_thousandths(uint64_t hundredths)
{
    uint64_t value;
    return __builtin_mul_overflow(hundredths, 10, &value) ? UINT64_MAX : value;
}

static uint64_t to_hundredths(uint64_t thousandths)
{
    return thousandths == UINT64_MAX ? thousandths : thousandths / 10;
}

struct hw_access hw_llvm_to_access(const struct hw_llvm_mib *from, uint32_t context)
{
    const uint64_t *field = from->field;
    return (struct hw_access){.context = context,
                              .blocks = field[HW_LLVM_ALLOC_COUNT],
                              .unsplit = field[HW_LLVM_TOTAL_ACCESSES],
                              .accesses_min = field[HW_LLVM_MIN_ACCESSES],
                              .accesses_max = field[HW_LLVM_MAX_ACCESSES],
                              .density_total = to_thousandths(field[HW_LLVM_TOTAL_DENSITY]),
                              .density_min = to_thousandths(field[HW_LLVM_MIN_DENSITY]),
                              .density_max = to_thousandths(field[HW_LLVM_MAX_DENSITY]),
                              .lifetime_density_total = to_thousandths(field[HW_LLVM_TOTAL_LIFETIME_DENSITY]),
                              .lifetime_density_min = to_thousandths(field[HW_LLVM_MIN_LIFETIME_DENSITY]),
                              .lifetime_density_max = to_thousandths(field[HW_LLVM_MAX_LIFETIME_DENSITY])};
}

/* What hw_llvm_to_mib and hw_llvm_to_access (ACCESS may be NULL) have made of a block of LLVM's, back. */
static struct hw_llvm_mib from_rows(const struct hw_mib *mib, const struct hw_access *access)
{
    struct hw_llvm_mib block = {{0}};
    uint64_t *field = block.field;
    field[HW_LLVM_ALLOC_COUNT] = mib->allocations;
    field[HW_LLVM_TOTAL_SIZE] = mib->bytes;
    field[HW_LLVM_MIN_SIZE] = mib->size_min == UINT64_MAX ? 0 : mib->size_min;
    field[HW_LLVM_MAX_SIZE] = mib->size_max;
    field[HW_LLVM_ALLOC_TIME] = mib->last_alloc_tick;
    field[HW_LLVM_FREE_TIME] = mib->last_free_tick;
    field[HW_LLVM_ALLOC_CPU] = mib->last_alloc_cpu;
    field[HW_LLVM_FREE_CPU] = mib->last_free_cpu;
    field[HW_LLVM_TOTAL_LIFETIME] = mib->lifetime_total;
    field[HW_LLVM_MIN_LIFETIME] = mib->lifetime_min == UINT64_MAX ? 0 : mib->lifetime_min;
    field[HW_LLVM_MAX_LIFETIME] = mib->lifetime_max;
    field[HW_LLVM_MIGRATED_CPU] = mib->migrated_cpu;
    field[HW_LLVM_LIFETIME_OVERLAPS] = mib->lifetime_overlaps;
    field[HW_LLVM_SAME_ALLOC_CPU] = mib->same_alloc_cpu;
    field[HW_LLVM_SAME_FREE_CPU] = mib->same_free_cpu;
    if (!access)
        return block;
    field[HW_LLVM_TOTAL_ACCESSES] = access->unsplit;
    field[HW_LLVM_MIN_ACCESSES] = access->accesses_min == UINT64_MAX ? 0 : access->accesses_min;
    field[HW_LLVM_MAX_ACCESSES] = access->accesses_max;
    field[HW_LLVM_TOTAL_DENSITY] = to_hundredths(access->density_total);
    field[HW_LLVM_MIN_DENSITY] = to_hundredths(access->density_min);
    field[HW_LLVM_MAX_DENSITY] = to_hundredths(access->density_max);
    field[HW_LLVM_TOTAL_LIFETIME_DENSITY] = to_hundredths(access->lifetime_density_total);
    field[HW_LLVM_MIN_LIFETIME_DENSITY] = to_hundredths(access->lifetime_density_min);
    field[HW_LLVM_MAX_LIFETIME_DENSITY] = to_hundredths(access->lifetime_density_max);
    return block;
}

/* Blocks that count nothing have no cells either. */
static uint64_t cell_count(const struct hw_llvm_context *from)
{
    return from->histogram && field(from, HW_LLVM_ALLOC_COUNT) ? field(from, HW_LLVM_HISTOGRAM_SIZE) : 0;
}

static size_t histogram_runs(const struct hw_llvm_profile *from)
{
    size_t runs = 0;
    for (size_t i = 0; i < from->context_count; i++)
        runs += (cell_count(&from->contexts[i]) + HW_HISTOGRAM_WORDS - 1) / HW_HISTOGRAM_WORDS;
    return runs;
}

/* Cells are of 8 bytes, as our words are. Returns what is behind the runs that were made. */
static struct hw_histogram *add_histogram(struct hw_histogram *run, const struct hw_llvm_context *from,
                                          uint32_t context)
{
    const uint64_t cells = cell_count(from);
    for (uint64_t first = 0; first < cells; first += HW_HISTOGRAM_WORDS, run++) {
        run->context = context;
        run->first_word = (uint32_t)first;
        for (uint64_t i = 0; i < HW_HISTOGRAM_WORDS && first + i < cells; i++)
            run->words[i] = from->histogram[first + i];
    }
    return run;
}

static uint64_t latest_tick(const struct hw_llvm_profile *from)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < from->context_count; i++) {
        const uint64_t tick = field(&from->contexts[i], HW_LLVM_FREE_TIME);
        latest = tick > latest ? tick : latest;
    }
    return latest;
}

static bool make_contexts(struct maker *maker)
{
    const size_t count = maker->from->context_count;
    const bool accesses = hw_llvm_has_accesses(maker->from->known);
    struct hw_mib *mibs = hw_table_make(maker->tables, maker->arena, HW_SECTION_MIBS, count);
    struct hw_access *access = accesses ? hw_table_make(maker->tables, maker->arena, HW_SECTION_ACCESS, count) : NULL;
    struct hw_access_info *info = access ? hw_table_make(maker->tables, maker->arena, HW_SECTION_ACCESS_INFO, 1) : NULL;
    struct hw_histogram *run =
        accesses ? hw_table_make(maker->tables, maker->arena, HW_SECTION_HISTOGRAM, histogram_runs(maker->from)) : NULL;
    maker->mib = hw_arena_allocate(maker->arena, count + 1, sizeof *maker->mib);
    if (!mibs || !maker->mib || (accesses && (!access || !info || !run)))
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint32_t context = context_id(maker, &maker->from->contexts[i]);
        mibs[i] = hw_llvm_to_mib(&maker->from->contexts[i].mib, context, maker->from->known);
        hw_llvm_mib_add(&maker->mib[context], &maker->from->contexts[i].mib);
        if (!access)
            continue;
        access[i] = hw_llvm_to_access(&maker->from->contexts[i].mib, context);
        run = add_histogram(run, &maker->from->contexts[i], context);
    }
    if (info)
        *info = (struct hw_access_info){.flags = HW_ACCESS_UNSPLIT | HW_ACCESS_HARVESTED,
                                        .granule = histogram_runs(maker->from) ? 8 : 64,
                                        .harvest_tick = latest_tick(maker->from)};
    maker->tables->of[HW_SECTION_STACKS].count = maker->node_count;
    maker->tables->of[HW_SECTION_CONTEXTS].count = maker->context_count;
    return true;
}

static const struct hw_profile_llvm *make_source(struct maker *maker)
{
    const struct hw_llvm_profile *from = maker->from;
    struct hw_profile_llvm *source = hw_arena_allocate(maker->arena, 1, sizeof *source);
    struct hw_llvm_frame *frames = hw_arena_allocate(maker->arena, from->frame_count + 1, sizeof *frames);
    if (!source || !frames)
        return NULL;
    if (from->frame_count)
        memcpy(frames, from->frames, from->frame_count * sizeof *frames);
    *source = (struct hw_profile_llvm){.kind = from->symbolized ? "indexed" : "raw",
                                       .version = from->version,
                                       .known = from->known,
                                       .dumps = from->dumps,
                                       .clang_runtime = from->clang_runtime,
                                       .mibs = maker->mib,
                                       .frames = from->symbolized ? frames : NULL,
                                       .frame_count = from->frame_count};
    return source;
}

/* ---- merged files ---- */

static bool take_blocks(struct hw_profile_llvm *source, struct hw_arena *arena, const struct hw_tables *tables)
{
    const struct hw_table *mibs = &tables->of[HW_SECTION_MIBS], *accesses = &tables->of[HW_SECTION_ACCESS];
    const size_t contexts = tables->of[HW_SECTION_CONTEXTS].count;
    struct hw_llvm_mib *blocks = hw_arena_allocate(arena, contexts + 1, sizeof *blocks);
    for (size_t i = 0; blocks && i < mibs->count; i++) {
        const struct hw_mib *mib = (const struct hw_mib *)mibs->entries + i;
        const struct hw_access *access = i < accesses->count ? (const struct hw_access *)accesses->entries + i : NULL;
        const struct hw_llvm_mib block = from_rows(mib, access);
        hw_llvm_mib_add(&blocks[mib->context < contexts ? mib->context : 0], &block);
    }
    source->mibs = blocks;
    return blocks != NULL;
}

static bool take_frames(struct hw_profile_llvm *source, struct hw_arena *arena, const struct hw_tables *tables)
{
    const struct hw_table *table = &tables->of[HW_SECTION_LLVM_FRAMES], *strings = &tables->of[HW_SECTION_STRINGS];
    const struct hw_llvm_frame_entry *from = table->entries;
    struct hw_llvm_frame *frames = hw_arena_allocate(arena, table->count + 1, sizeof *frames);
    for (size_t i = 0; frames && i < table->count; i++)
        frames[i] = (struct hw_llvm_frame){.function = from[i].function,
                                           .line_offset = from[i].line_offset,
                                           .column = from[i].column,
                                           .inlined = from[i].inlined,
                                           .name = from[i].name && from[i].name < strings->count
                                                       ? (const char *)strings->entries + from[i].name
                                                       : NULL};
    source->frames = frames;
    source->frame_count = table->count;
    return frames != NULL;
}

const struct hw_profile_llvm *hw_llvm_merged_source(struct hw_arena *arena, const struct hw_tables *tables)
{
    const struct hw_process_info *process = tables->of[HW_SECTION_PROCESS].entries;
    struct hw_profile_llvm *source = hw_arena_allocate(arena, 1, sizeof *source);
    const bool indexed = process->llvm_kind == HW_LLVM_KIND_INDEXED;
    if (!source)
        return NULL;
    *source = (struct hw_profile_llvm){.kind = indexed ? "indexed" : "raw",
                                       .version = process->llvm_version,
                                       .known = process->llvm_known & HW_LLVM_KNOWN_ALL,
                                       .dumps = process->llvm_dumps,
                                       .clang_runtime = process->llvm_flags & HW_LLVM_CLANG_RUNTIME};
    return take_blocks(source, arena, tables) && (!indexed || take_frames(source, arena, tables)) ? source : NULL;
}

/* ---- the file ---- */

bool hw_llvm_recognized(int fd)
{
    unsigned char bytes[8];
    if (hw_container_read(fd, bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    const uint64_t magic = hw_llvm_get(bytes, 8);
    return magic == HW_LLVM_RAW_MAGIC || magic == HW_LLVM_INDEXED_MAGIC;
}

#define FILE_MOST (8ull << 30)

static unsigned char *read_file(int fd, const char *path, size_t *size, struct hw_error *error)
{
    struct stat status;
    unsigned char *bytes = NULL;
    int64_t got = -1;
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size > FILE_MOST) {
        hw_error_set(error, "cannot read '%s': it is too large", path);
        return NULL;
    }
    *size = (size_t)status.st_size;
    bytes = malloc(*size + 1);
    if (bytes)
        got = hw_container_read(fd, bytes, *size, 0);
    if (got >= 0) {
        *size = (size_t)got;
        return bytes;
    }
    hw_error_set(error, "cannot read '%s': %s", path, bytes ? strerror(errno) : "not enough memory");
    free(bytes);
    return NULL;
}

static const struct hw_profile_llvm *make(struct maker *maker)
{
    const bool fine = make_process(maker) && make_maps(maker) && make_stacks(maker) && make_contexts(maker);
    const struct hw_profile_llvm *source = fine ? make_source(maker) : NULL;
    hw_index_free(&maker->nodes);
    free(maker->leaf);
    free(maker->context_of);
    return source;
}

bool hw_llvm_file_read(int fd, const char *path, struct hw_llvm_profile *profile, struct hw_error *error)
{
    size_t size;
    unsigned char *bytes = read_file(fd, path, &size, error);
    if (!bytes)
        return false;
    const bool raw = size >= 8 && hw_llvm_get(bytes, 8) == HW_LLVM_RAW_MAGIC;
    const bool fine = (raw ? hw_llvm_raw_read : hw_llvm_indexed_read)(bytes, size, path, profile, error);
    free(bytes);
    return fine;
}

const struct hw_profile_llvm *hw_llvm_tables_read(int fd, const char *path, struct hw_arena *arena,
                                                  struct hw_tables *tables, struct hw_error *error)
{
    struct hw_llvm_profile profile;
    struct maker maker = {.from = &profile, .arena = arena, .tables = tables};
    memset(tables, 0, sizeof *tables);
    if (!hw_llvm_file_read(fd, path, &profile, error))
        return NULL;
    const struct hw_profile_llvm *source = make(&maker);
    if (!source)
        hw_error_set(error, "cannot read '%s': not enough memory", path);
    hw_llvm_profile_free(&profile);
    return source;
}
