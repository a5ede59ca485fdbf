/* lookup_bench.c - how long it takes to find one function's contexts in a symbolised profile.
 *
 *     lookup_bench FILE [CONTEXTS]     makes FILE unless it is there (default: a million contexts), then measures
 *
 * The profile is made up, with the proportions of a large C++ program: 40,000 functions in 12 modules, most of them
 * inlined into others here and there, names of 60 letters and more, call sites with a handful of callers each, stacks
 * of 16 to 40 frames. It is what heapwise merge --symbolize writes: packed, and in its order. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile/container/container.h"
#include "profile/model/lookup.h"
#include "profile/model/symbol_tables.h"
#include "profile/container/write.h"

#define MODULES   12u
#define FUNCTIONS 40000u
#define SITES     5u /* calls in a function */
#define PLACES    (FUNCTIONS * SITES)
#define LEAVES    5u /* one function in so many allocates */

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void *check(void *memory)
{
    if (memory)
        return memory;
    fputs("lookup_bench: not enough memory\n", stderr);
    exit(1);
}

/* ---- a profile ---- */

struct maker {
    struct hw_arena arena;
    struct hw_tables tables;
    struct hw_string_table strings;
    struct hw_file_tree files;
};

static void *make_table(struct maker *maker, uint32_t type, size_t count)
{
    struct hw_table *table = &maker->tables.of[type];
    table->entries = check(hw_arena_allocate(&maker->arena, count + 1, hw_section_rule(type)->size));
    table->count = count;
    return table->entries;
}

static uint32_t module_of(uint32_t function)
{
    return function / ((FUNCTIONS + MODULES - 1) / MODULES);
}

static uint64_t address_of(uint32_t place)
{
    return 0x1000 + (uint64_t)(place / SITES) * 320 + place % SITES * 61;
}

static void function_name(uint32_t function, char *readable, char *linkage, size_t size)
{
    snprintf(readable, size,
             "project::subsystem_%u::component_%u<std::pair<int const, std::string> >::operation_%u(unsigned long, "
             "project::options const&)",
             function % 17, function % 1999, function);
    snprintf(linkage, size, "_ZN7project12subsystem_%u13component_%uISt4pairIKiSsEE13operation_%uEmRKNS_7optionsE",
             function % 17, function % 1999, function);
}

static void make_process(struct maker *maker)
{
    struct hw_process_info *process = make_table(maker, HW_SECTION_PROCESS, 1);
    struct hw_map_entry *maps = make_table(maker, HW_SECTION_MAPS, MODULES);
    struct hw_module_mark *marks = make_table(maker, HW_SECTION_MODULES, MODULES);
    *process = (struct hw_process_info){
        .flags = HW_PROCESS_MERGED, .clock_ticks = 1, .clock_ns = 1, .end_tick = 1000000000, .runs = 500};
    for (uint32_t i = 0; i < MODULES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/opt/project/lib/libproject_part_%u.so", i);
        maps[i] = (struct hw_map_entry){.start = 0x1000,
                                        .end = 1ull << 32,
                                        .build_id_size = 20,
                                        .path = hw_string_table_add(&maker->strings, path)};
        for (int k = 0; k < 20; k++)
            maps[i].build_id[k] = (uint8_t)draw();
        marks[i] = (struct hw_module_mark){.map = i, .flags = HW_MARK_USABLE | HW_MARK_DEBUG_INFO};
    }
}

static void make_symbols(struct maker *maker)
{
    struct hw_location *locations = make_table(maker, HW_SECTION_LOCATIONS, PLACES);
    struct hw_symbol_frame *frames = make_table(maker, HW_SECTION_FRAMES, 3 * PLACES);
    uint32_t used = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        const uint32_t function = i / SITES, inlined = (uint32_t)(draw() % 3);
        locations[i] = (struct hw_location){
            .address = address_of(i), .map = module_of(function), .first_frame = used, .frame_count = inlined + 1};
        for (uint32_t k = 0; k <= inlined; k++) { /* what is inlined is from nearby, mostly */
            const uint32_t what = k == inlined ? function : (function + (uint32_t)(draw() % 50)) % FUNCTIONS;
            char readable[256], linkage[256], file[128];
            function_name(what, readable, linkage, sizeof readable);
            snprintf(file, sizeof file, "/home/builder/project/source/subsystem_%u/component_%u.cpp", what % 17,
                     what % 1999);
            frames[used++] = (struct hw_symbol_frame){.function = hw_string_table_add(&maker->strings, readable),
                                                      .linkage_name = hw_string_table_add(&maker->strings, linkage),
                                                      .file = hw_file_tree_add(&maker->files, &maker->strings, file),
                                                      .line = 10 + what % 900 + i % SITES * 7,
                                                      .column = 1 + (uint32_t)(draw() % 60),
                                                      .start_line = 10 + what % 900,
                                                      .flags = k < inlined ? HW_SYMBOL_INLINED : 0};
        }
    }
    maker->tables.of[HW_SECTION_FRAMES].count = used;
}

/* ---- call stacks ---- */

struct node {
    uint32_t place, parent, id;
};

struct tree {
    struct node *node;
    uint32_t *slot;
    uint32_t count, mask;
};

static uint32_t intern(struct tree *tree, uint32_t place, uint32_t parent, bool *added)
{
    uint64_t hash = ((uint64_t)place << 32 | parent) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 32) & tree->mask;
    while (tree->slot[at] && (tree->node[tree->slot[at]].place != place || tree->node[tree->slot[at]].parent != parent))
        at = (at + 1) & tree->mask;
    *added = !tree->slot[at];
    if (*added) {
        tree->node[tree->count] = (struct node){place, parent, 0};
        tree->slot[at] = tree->count++;
    }
    return tree->slot[at];
}

/* A place that is called from PLACE: a few for each, always the same ones. */
static uint32_t callee(uint32_t place, uint32_t which)
{
    uint64_t hash = (place * 4ull + which % 4) * 0x9e3779b97f4a7c15u;
    return (uint32_t)((hash >> 20) % PLACES);
}

#define WAYS 4000u /* from main into the depth of the program, 10 to 26 calls */

/* A stack that nobody had so far: one of the ways on which a function that allocates is reached (8 for each), and on
 * from there through calls nearby. */
static uint32_t new_stack(struct tree *tree, bool *is_leaf)
{
    for (;;) {
        const uint32_t leaf = (uint32_t)(draw() % (FUNCTIONS / LEAVES)) * LEAVES;
        const uint32_t way = (leaf * 31 + (uint32_t)(draw() % 8) * 977) % WAYS;
        uint64_t turns = (way + 1) * 0x9e3779b97f4a7c15u, near = draw();
        uint32_t node = 0, place = 7;
        bool added;
        for (uint32_t i = 0, depth = 10 + way % 17; i < depth; i++, turns = turns >> 2 | turns << 62) {
            node = intern(tree, place, node, &added);
            place = callee(place, (uint32_t)turns);
        }
        for (uint32_t i = 0; i < 4; i++, near /= SITES) /* functions beside the one that allocates */
            node = intern(tree, (leaf + 1 + i) * SITES + (uint32_t)(near % SITES), node, &added);
        node = intern(tree, leaf * SITES + (uint32_t)(near % SITES), node, &added);
        if (!is_leaf[node])
            return is_leaf[node] = true, node;
    }
}

static const struct tree *ordered_tree;

/* From the leaf outwards. */
static int compare_stacks(const void *left, const void *right)
{
    const struct node *nodes = ordered_tree->node;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    while (a && b && a != b && nodes[a].place == nodes[b].place) {
        a = nodes[a].parent;
        b = nodes[b].parent;
    }
    return a == b ? 0 : !a ? -1 : !b ? 1 : nodes[a].place < nodes[b].place ? -1 : 1;
}

static void make_contexts(struct maker *maker, uint32_t count)
{
    const size_t most = (size_t)count * 40 + 1;
    struct tree tree = {.mask = 1};
    while (tree.mask < most)
        tree.mask = tree.mask * 2 + 1;
    tree.node = check(calloc(most, sizeof *tree.node));
    tree.slot = check(calloc((size_t)tree.mask + 1, sizeof *tree.slot));
    tree.count = 1;
    bool *is_leaf = check(calloc(most, sizeof *is_leaf));
    uint32_t *leaves = check(malloc(count * sizeof *leaves));
    for (uint32_t i = 0; i < count; i++)
        leaves[i] = new_stack(&tree, is_leaf);
    ordered_tree = &tree;
    qsort(leaves, count, sizeof *leaves, compare_stacks);

    struct hw_stack_node *nodes = make_table(maker, HW_SECTION_STACKS, tree.count);
    struct hw_context_entry *contexts = make_table(maker, HW_SECTION_CONTEXTS, count + 1);
    struct hw_mib *mibs = make_table(maker, HW_SECTION_MIBS, count);
    uint32_t used = 1;
    nodes[0].map = HW_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t way[64], steps = 0, depth = 0;
        for (uint32_t at = leaves[i]; at && !tree.node[at].id; at = tree.node[at].parent)
            way[steps++] = at;
        while (steps) {
            struct node *node = &tree.node[way[--steps]];
            node->id = used;
            nodes[used++] = (struct hw_stack_node){.pc = address_of(node->place),
                                                   .map = module_of(node->place / SITES),
                                                   .parent = node->parent ? tree.node[node->parent].id : 0};
        }
        for (uint32_t at = leaves[i]; at; at = tree.node[at].parent)
            depth++;
        contexts[i + 1] = (struct hw_context_entry){.leaf = tree.node[leaves[i]].id, .depth = (uint16_t)depth};
        const uint64_t blocks = 1 + draw() % 1000, size = 8 + draw() % 512;
        mibs[i] = (struct hw_mib){.context = i + 1,
                                  .allocations = blocks,
                                  .samples = blocks,
                                  .frees = blocks,
                                  .bytes = blocks * size,
                                  .size_min = size,
                                  .size_max = size,
                                  .lifetime_total = blocks * (draw() % 100000),
                                  .lifetime_max = 100000,
                                  .last_alloc_tick = draw() % 1000000000,
                                  .last_free_tick = draw() % 1000000000,
                                  .alloc_threads = 1 + (uint32_t)(draw() % 8)};
    }
    free(leaves);
    free(is_leaf);
    free(tree.node);
    free(tree.slot);
}

static void take(struct maker *maker, uint32_t type, const void *bytes, size_t count)
{
    memcpy(make_table(maker, type, count), bytes, count * hw_section_rule(type)->size);
}

static bool make_file(const char *path, uint32_t count)
{
    struct maker maker = {0};
    struct hw_error error = {""};
    const struct hw_write_options options = {.packed = true, .zstd_level = 3};
    size_t size;
    check(hw_string_table_make(&maker.strings, "", 1) ? &maker : NULL);
    make_process(&maker);
    make_symbols(&maker);
    make_contexts(&maker, count);
    take(&maker, HW_SECTION_STRINGS, maker.strings.bytes, maker.strings.size);
    take(&maker, HW_SECTION_FILES, maker.files.nodes, maker.files.count);
    check(hw_function_index_build(&maker.tables, &maker.arena) ? &maker : NULL);
    unsigned char *bytes = hw_tables_serialize(&maker.tables, &options, &size, &error);
    const bool done = bytes && hw_file_write(path, true, bytes, size, &error);
    if (!done)
        fprintf(stderr, "lookup_bench: %s\n", error.message);
    free(bytes);
    hw_string_table_free(&maker.strings);
    hw_file_tree_free(&maker.files);
    hw_arena_free(&maker.arena);
    return done;
}

/* ---- measuring ---- */

/* CPU time: nothing here waits, the file is in memory; others may use the machine. */
static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Bytes that this process has read from files so far. */
static uint64_t bytes_read(void)
{
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");
    if (file && fscanf(file, "rchar: %" SCNu64, &bytes) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return bytes;
}

static int compare_numbers(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct series {
    double value[1000];
    size_t count;
};

static void print(const char *title, struct series *series, const char *unit)
{
    qsort(series->value, series->count, sizeof *series->value, compare_numbers);
    printf("  %-44s median %9.1f %s   90 %% %9.1f %s   most %9.1f %s\n", title, series->value[series->count / 2], unit,
           series->value[series->count * 9 / 10], unit, series->value[series->count - 1], unit);
}

static void add(struct series *series, double value)
{
    series->value[series->count++] = value;
}

static size_t look_up(struct hw_lookup *lookup, uint32_t function, bool linkage_name, bool names)
{
    char readable[256], linkage[256];
    struct hw_error error = {""};
    function_name(function, readable, linkage, sizeof readable);
    struct hw_profile *profile = hw_lookup_function(lookup, linkage_name ? linkage : readable, names, &error);
    if (!profile) {
        fprintf(stderr, "lookup_bench: %s\n", error.message);
        exit(1);
    }
    const size_t contexts = profile->context_count;
    hw_profile_free(profile);
    return contexts;
}

static struct hw_lookup *open_lookup(const char *path)
{
    struct hw_error error = {""};
    struct hw_lookup *lookup = hw_lookup_open(path, &error);
    if (!lookup) {
        fprintf(stderr, "lookup_bench: %s\n", error.message);
        exit(1);
    }
    return lookup;
}

static void measure(const char *path, uint64_t file_size, bool names)
{
    static struct series opened, first, later, bytes, contexts, missing;
    opened.count = first.count = later.count = bytes.count = contexts.count = missing.count = 0;
    struct hw_lookup *kept = open_lookup(path);
    const uint64_t own = bytes_read();
    const uint64_t reading = bytes_read() - own; /* what asking costs */
    for (int i = 0; i < 300; i++) {
        const uint32_t function = (uint32_t)(draw() % (FUNCTIONS / LEAVES)) * LEAVES;
        const uint64_t before = bytes_read();
        const double start = now_us();
        struct hw_lookup *lookup = open_lookup(path);
        const double open = now_us();
        const size_t found = look_up(lookup, function, i % 2, names);
        const double end = now_us();
        hw_lookup_close(lookup);
        add(&bytes, (double)(bytes_read() - before - reading) / 1024);
        const double again = now_us();
        look_up(kept, function, i % 2, names);
        add(&later, now_us() - again);
        add(&opened, open - start);
        add(&first, end - start);
        add(&contexts, (double)found);
        const double none = now_us();
        look_up(kept, FUNCTIONS + function, i % 2, names);
        add(&missing, now_us() - none);
    }
    hw_lookup_close(kept);
    printf("%s\n", names ? "counts, stacks, and the names of all their frames" : "counts and stacks");
    print("file opened and one function found", &first, "us");
    print("  of it: opened", &opened, "us");
    print("a function found in a file that is open", &later, "us");
    print("a function that is not there", &missing, "us");
    print("read, with opening", &bytes, "KiB");
    print("contexts found", &contexts, "  ");
    printf("  the file has %.1f MiB: %.2f %% of it are read\n", (double)file_size / 1048576,
           100.0 * 1024 * bytes.value[bytes.count / 2] / (double)file_size);
}

int main(int argc, char **argv)
{
    struct stat status;
    const long contexts = argc > 2 ? strtol(argv[2], NULL, 10) : 1000000;
    if (argc < 2 || contexts < 1 || contexts > 4000000) {
        fputs("usage: lookup_bench FILE [CONTEXTS]\n", stderr);
        return 2;
    }
    if (stat(argv[1], &status) != 0 && (!make_file(argv[1], (uint32_t)contexts) || stat(argv[1], &status) != 0))
        return 1;
    printf("one function among %ld contexts; times of the processor\n", contexts);
    measure(argv[1], (uint64_t)status.st_size, false);
    measure(argv[1], (uint64_t)status.st_size, true);
    return 0;
}
