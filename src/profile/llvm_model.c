/* llvm_model.c - one of LLVM's heap profiles as the tables of Heapwise's own file, from which model.c makes the rest.
 *
 * LLVM's times are in ms: so are the ticks. Its blocks have lifetimes, also those that lived to the end of the run, but
 * no frees: each counts as freed here, and hw_profile_measured says that frees were not measured. Accesses go into the
 * ACCESS section as counts of which it is not known whether they read or wrote. */
#include "profile/container.h"
#include "profile/llvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MS_NS 1000000u

struct maker {
    const struct hw_llvm_profile *from;
    struct hw_arena *arena;
    struct hw_tables *tables;
    struct hw_stack_node *node;
    size_t node_count;
    uint32_t *slot; /* nodes by parent, pc and map: index, 0 is free */
    size_t slot_mask;
    uint32_t *leaf;       /* for each place in the stacks at which one begins: its node + 1 */
    uint32_t *context_of; /* for each node: the context of the stack that ends there + 1 */
    struct hw_context_entry *context;
    size_t context_count;
    struct hw_llvm_mib *mib; /* by context */
};

/* ---- tables ---- */

/* Room for COUNT entries of a section; NULL when this version's model has no such section, or no memory. */
static void *make_table(struct maker *maker, uint32_t type, size_t count)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    if (!rule || type >= HW_SECTION_KNOWN)
        return NULL;
    struct hw_table *table = &maker->tables->of[type];
    table->entries = hw_arena_allocate(maker->arena, count + 1, rule->size);
    table->count = table->entries ? count : 0;
    return table->entries;
}

static uint64_t field(const struct hw_llvm_context *context, enum hw_llvm_field which)
{
    return context->mib.field[which];
}

/* Only where the file has all of them: a zero must not stand for what was left out. */
static bool has_accesses(const struct hw_llvm_profile *from)
{
    const uint32_t needed = 1u << HW_LLVM_TOTAL_ACCESSES | 1u << HW_LLVM_MIN_ACCESSES | 1u << HW_LLVM_MAX_ACCESSES |
                            1u << HW_LLVM_TOTAL_DENSITY | 1u << HW_LLVM_MAX_LIFETIME_DENSITY;
    return (from->known & needed) == needed;
}

static bool make_process(struct maker *maker)
{
    struct hw_process_info *process = make_table(maker, HW_SECTION_PROCESS, 1);
    struct hw_thread_entry *thread = make_table(maker, HW_SECTION_THREADS, 1);
    if (!process || !thread)
        return false;
    process->mode = has_accesses(maker->from) ? HW_MODE_ACCESS : HW_MODE_HEAP;
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

/* Modules are known by their build ids only: that is what their paths say until somebody finds the files. */
static bool make_maps(struct maker *maker)
{
    enum { NAME_SIZE = 16 + 2 * 32 };
    const size_t count = maker->from->segment_count;
    struct hw_map_entry *maps = make_table(maker, HW_SECTION_MAPS, count);
    char *strings = make_table(maker, HW_SECTION_STRINGS, 1 + count * NAME_SIZE);
    if (!maps || !strings)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hw_llvm_segment *segment = &maker->from->segments[i];
        char *name = strings + 1 + i * NAME_SIZE;
        maps[i] = (struct hw_map_entry){.start = segment->start,
                                        .end = segment->end,
                                        .bias = segment->bias <= segment->start ? segment->bias : 0,
                                        .build_id_size = segment->build_id_size,
                                        .path = (uint32_t)(name - strings),
                                        .flags = i ? 0 : HW_MAP_MAIN};
        memcpy(maps[i].build_id, segment->build_id, segment->build_id_size);
        int size = snprintf(name, NAME_SIZE, segment->build_id_size ? "build id " : "no build id");
        for (uint32_t k = 0; k < segment->build_id_size; k++)
            size += snprintf(name + size, NAME_SIZE - (size_t)size, "%02x", segment->build_id[k]);
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

static uint32_t *find_slot(const struct maker *maker, uint64_t pc, uint32_t parent)
{
    uint64_t hash = (pc ^ (uint64_t)parent << 40 ^ parent) * 0x9e3779b97f4a7c15u;
    for (size_t i = (hash ^ hash >> 29) & maker->slot_mask;; i = (i + 1) & maker->slot_mask) {
        uint32_t *slot = &maker->slot[i];
        if (!*slot || (maker->node[*slot].pc == pc && maker->node[*slot].parent == parent))
            return slot;
    }
}

/* The node at which the stack ends. */
static uint32_t intern_stack(struct maker *maker, size_t first, uint32_t count)
{
    uint32_t node = 0;
    if (maker->leaf[first])
        return maker->leaf[first] - 1;
    for (uint32_t i = count; i-- > 0;) {
        const uint64_t pc = maker->from->stacks[first + i];
        uint32_t *slot = find_slot(maker, pc, node);
        if (!*slot) {
            *slot = (uint32_t)maker->node_count++;
            maker->node[*slot] = (struct hw_stack_node){.pc = pc, .map = map_of(maker, pc), .parent = node};
        }
        node = *slot;
    }
    maker->leaf[first] = node + 1;
    return node;
}

static bool make_stacks(struct maker *maker)
{
    const size_t most = maker->from->stack_size + 1;
    size_t slots = 64;
    while (slots < 2 * most)
        slots *= 2;
    if (most >= UINT32_MAX)
        return false;
    maker->slot_mask = slots - 1;
    maker->slot = calloc(slots, sizeof *maker->slot);
    maker->leaf = calloc(most, sizeof *maker->leaf);
    maker->context_of = calloc(most, sizeof *maker->context_of);
    maker->node = make_table(maker, HW_SECTION_STACKS, most);
    maker->context = make_table(maker, HW_SECTION_CONTEXTS, maker->from->context_count + 1);
    maker->node_count = maker->context_count = 1;
    return maker->slot && maker->leaf && maker->context_of && maker->node && maker->context;
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

static struct hw_mib make_mib(const struct hw_llvm_context *from, uint32_t context, uint32_t known)
{
    const uint64_t count = field(from, HW_LLVM_ALLOC_COUNT);
    const bool sizes = known >> HW_LLVM_MIN_SIZE & 1, lifetimes = known >> HW_LLVM_MIN_LIFETIME & 1;
    return (struct hw_mib){.context = context,
                           .allocations = count,
                           .frees = count,
                           .samples = count,
                           .bytes = field(from, HW_LLVM_TOTAL_SIZE),
                           .size_min = sizes ? field(from, HW_LLVM_MIN_SIZE) : UINT64_MAX,
                           .size_max = field(from, HW_LLVM_MAX_SIZE),
                           .last_alloc_tick = field(from, HW_LLVM_ALLOC_TIME),
                           .last_free_tick = field(from, HW_LLVM_FREE_TIME),
                           .last_alloc_cpu = cpu(field(from, HW_LLVM_ALLOC_CPU)),
                           .last_free_cpu = cpu(field(from, HW_LLVM_FREE_CPU)),
                           .lifetime_total = field(from, HW_LLVM_TOTAL_LIFETIME),
                           .lifetime_min = lifetimes ? field(from, HW_LLVM_MIN_LIFETIME) : UINT64_MAX,
                           .lifetime_max = field(from, HW_LLVM_MAX_LIFETIME),
                           .migrated_cpu = field(from, HW_LLVM_MIGRATED_CPU),
                           .lifetime_overlaps = field(from, HW_LLVM_LIFETIME_OVERLAPS),
                           .same_alloc_cpu = field(from, HW_LLVM_SAME_ALLOC_CPU),
                           .same_free_cpu = field(from, HW_LLVM_SAME_FREE_CPU)};
}

/* LLVM's densities are hundredths, ours thousandths. */
static uint64_t density(const struct hw_llvm_context *from, enum hw_llvm_field which)
{
    uint64_t value;
    return __builtin_mul_overflow(field(from, which), 10, &value) ? UINT64_MAX : value;
}

static struct hw_access make_access(const struct hw_llvm_context *from, uint32_t context)
{
    return (struct hw_access){.context = context,
                              .blocks = field(from, HW_LLVM_ALLOC_COUNT),
                              .unsplit = field(from, HW_LLVM_TOTAL_ACCESSES),
                              .accesses_min = field(from, HW_LLVM_MIN_ACCESSES),
                              .accesses_max = field(from, HW_LLVM_MAX_ACCESSES),
                              .density_total = density(from, HW_LLVM_TOTAL_DENSITY),
                              .density_min = density(from, HW_LLVM_MIN_DENSITY),
                              .density_max = density(from, HW_LLVM_MAX_DENSITY),
                              .lifetime_density_total = density(from, HW_LLVM_TOTAL_LIFETIME_DENSITY),
                              .lifetime_density_min = density(from, HW_LLVM_MIN_LIFETIME_DENSITY),
                              .lifetime_density_max = density(from, HW_LLVM_MAX_LIFETIME_DENSITY)};
}

static size_t histogram_runs(const struct hw_llvm_profile *from)
{
    size_t runs = 0;
    for (size_t i = 0; i < from->context_count; i++)
        if (from->contexts[i].histogram)
            runs += (field(&from->contexts[i], HW_LLVM_HISTOGRAM_SIZE) + HW_HISTOGRAM_WORDS - 1) / HW_HISTOGRAM_WORDS;
    return runs;
}

/* Cells are of 8 bytes, as our words are. Returns what is behind the runs that were made. */
static struct hw_histogram *add_histogram(struct hw_histogram *run, const struct hw_llvm_context *from,
                                          uint32_t context)
{
    const uint64_t cells = from->histogram ? field(from, HW_LLVM_HISTOGRAM_SIZE) : 0;
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
    const bool accesses = has_accesses(maker->from);
    struct hw_mib *mibs = make_table(maker, HW_SECTION_MIBS, count);
    struct hw_access *access = accesses ? make_table(maker, HW_SECTION_ACCESS, count) : NULL;
    struct hw_access_info *info = access ? make_table(maker, HW_SECTION_ACCESS_INFO, 1) : NULL;
    struct hw_histogram *run = accesses ? make_table(maker, HW_SECTION_HISTOGRAM, histogram_runs(maker->from)) : NULL;
    maker->mib = hw_arena_allocate(maker->arena, count + 1, sizeof *maker->mib);
    if (!mibs || !maker->mib || (accesses && (!access || !info || !run)))
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint32_t context = context_id(maker, &maker->from->contexts[i]);
        mibs[i] = make_mib(&maker->from->contexts[i], context, maker->from->known);
        hw_llvm_mib_add(&maker->mib[context], &maker->from->contexts[i].mib);
        if (!access)
            continue;
        access[i] = make_access(&maker->from->contexts[i], context);
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
    free(maker->slot);
    free(maker->leaf);
    free(maker->context_of);
    return source;
}

const struct hw_profile_llvm *hw_llvm_tables_read(int fd, const char *path, struct hw_arena *arena,
                                                  struct hw_tables *tables, struct hw_error *error)
{
    size_t size;
    struct hw_llvm_profile profile;
    struct maker maker = {.from = &profile, .arena = arena, .tables = tables};
    const struct hw_profile_llvm *source = NULL;
    memset(tables, 0, sizeof *tables);
    unsigned char *bytes = read_file(fd, path, &size, error);
    if (!bytes)
        return NULL;
    const bool raw = size >= 8 && hw_llvm_get(bytes, 8) == HW_LLVM_RAW_MAGIC;
    if ((raw ? hw_llvm_raw_read : hw_llvm_indexed_read)(bytes, size, path, &profile, error)) {
        source = make(&maker);
        if (!source)
            hw_error_set(error, "cannot read '%s': not enough memory", path);
        hw_llvm_profile_free(&profile);
    }
    free(bytes);
    return source;
}
