/* model.c - packed tables -> struct hw_profile: references checked, MIBs of one context merged, ticks made ns. */
#include "base/order.h"
#include "profile/add_numbers.h"
#include "profile/model/model.h"
#include "profile/llvm/llvm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- time ---- */

static uint64_t scale(uint64_t ticks, uint64_t clock_ns, uint64_t clock_ticks)
{
    if (clock_ticks == 0 || clock_ns == 0 || clock_ns == clock_ticks)
        return ticks;
    unsigned __int128 ns = (unsigned __int128)ticks * clock_ns / clock_ticks;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t hw_process_ns(const struct hw_process_info *process, uint64_t ticks)
{
    return scale(ticks, process->clock_ns, process->clock_ticks);
}

uint64_t hw_profile_ticks_to_ns(const struct hw_profile *profile, uint64_t ticks)
{
    return hw_process_ns(&profile->process, ticks);
}

uint64_t hw_profile_counted_from_ns(const struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    return (process->flags & HW_PROCESS_RESET) && !(process->flags & HW_PROCESS_MERGED)
               ? hw_profile_ticks_to_ns(profile, process->reset_tick)
               : 0;
}

/* ---- strings ---- */

const char *hw_profile_string(const struct hw_profile *profile, uint32_t offset)
{
    return offset < profile->string_size ? profile->strings + offset : "";
}

/* Replaces a string offset that points nowhere by 0, the empty string. SECTION: as in sections.def. */
static void check_string(struct hw_profile_builder *builder, uint32_t *offset, const char *section)
{
    char name[32];
    size_t length = 0;
    if (*offset == 0 || *offset < builder->profile->string_size)
        return;
    *offset = 0;
    for (; section[length] && length + 1 < sizeof name; length++)
        name[length] = (char)(section[length] == '_' ? ' ' : tolower(section[length]));
    name[length] = '\0';
    hw_problem(builder->problems, "Strings are missing in the %s section.", name);
}

/* All strings of all sections, before anybody reads one. */
static void check_strings(struct hw_profile_builder *builder)
{
    for (size_t i = 0; i < hw_reference_count; i++) {
        const struct hw_reference *reference = &hw_references[i];
        const struct hw_table *table = &builder->tables->of[reference->from];
        const size_t size = hw_section_rule(reference->from)->size;
        char *entry = table->entries;
        if (reference->to == HW_SECTION_STRINGS)
            for (size_t k = 0; k < table->count; k++, entry += size)
                check_string(builder, (uint32_t *)(void *)(entry + reference->offset), reference->name);
    }
}

static void take_strings(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_STRINGS];
    struct hw_profile *profile = builder->profile;
    profile->strings = table->entries;
    profile->string_size = table->count;
    /* The table has a zero byte behind its end, so even a string without an end of its own ends there. */
    if (table->count > 0 && profile->strings[table->count - 1] != 0)
        hw_problem(builder->problems, "The last string has no end.");
}

/* ---- process ---- */

static void take_command(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    size_t offset = profile->process.command, count = profile->process.command_count, taken = 0;
    if (count > profile->string_size) {
        hw_problem(builder->problems, "The command line is damaged: it claims %zu arguments.", count);
        count = 0;
    }
    profile->command = hw_arena_allocate(builder->arena, count + 1, sizeof *profile->command);
    if (!profile->command)
        return;
    for (; taken < count && offset < profile->string_size; taken++) {
        profile->command[taken] = profile->strings + offset;
        offset += strlen(profile->command[taken]) + 1;
    }
    if (taken < count)
        hw_problem(builder->problems, "The command line is incomplete: %zu of %zu arguments are there.", taken, count);
    profile->command_count = taken;
    profile->process.command_count = (uint32_t)taken;
}

static void take_process(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *table = &builder->tables->of[HW_SECTION_PROCESS];
    if (table->count == 0)
        hw_problem(builder->problems,
                   "Program, command, duration and peak of the run are not known, as that part of the "
                   "file is lost. Times are computed as if a tick of the processor's clock took 1 ns.");
    else
        memcpy(&profile->process, table->entries, sizeof profile->process);
    profile->process_lost = table->count == 0;
    struct hw_process_info *process = &profile->process;
    check_string(builder, &process->command, "PROCESS");
    if ((process->clock_ticks == 0) != (process->clock_ns == 0)) {
        hw_problem(builder->problems, "The clock of the run is damaged: times are computed as if a tick took 1 ns.");
        process->clock_ticks = process->clock_ns = 0;
    }
    profile->ns_per_tick = process->clock_ticks ? (double)process->clock_ns / (double)process->clock_ticks : 1;
    profile->executable = hw_profile_string(profile, process->executable);
    profile->allocator = hw_profile_string(profile, process->allocator);
    profile->allocator_path = hw_profile_string(profile, process->allocator_path);
    profile->options = hw_profile_string(profile, process->options);
    hw_profile_note_tick(builder, process->end_tick);
    take_command(builder);
}

/* ---- maps, frames, contexts ---- */

static void take_maps(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_MAPS];
    struct hw_map_entry *maps = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        if (maps[i].build_id_size > sizeof maps[i].build_id) {
            hw_problem(builder->problems, "A build id in the maps section is damaged.");
            maps[i].build_id_size = 0;
        }
        if (maps[i].start > maps[i].end) {
            hw_problem(builder->problems, "An entry of the maps section ends before it starts.");
            maps[i].end = maps[i].start;
        }
    }
    builder->profile->maps = maps;
    builder->profile->map_count = table->count;
}

/* After this every parent is smaller than its node, so that every walk ends, and every map index is valid. A frame that
 * is lost is passed over: what lay below it is not known. */
static bool take_nodes(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_STACKS];
    const struct hw_table *maps = &builder->tables->of[HW_SECTION_MAPS];
    struct hw_stack_node *nodes = table->entries;
    size_t count = table->count ? table->count : 1; /* node 0 always exists */
    builder->depths = hw_arena_allocate(builder->arena, count, sizeof *builder->depths);
    builder->broken = hw_arena_allocate(builder->arena, count, sizeof *builder->broken);
    if (!builder->depths || !builder->broken)
        return false;
    nodes[0] = (struct hw_stack_node){.map = HW_NONE};
    for (size_t i = 1; i < count; i++) {
        struct hw_stack_node *node = &nodes[i];
        if (hw_table_missing(table, i)) {
            *node = (struct hw_stack_node){.map = HW_NONE};
            builder->broken[i] = true;
            continue;
        }
        if (node->parent >= i) {
            hw_problem(builder->problems,
                       "The stacks section is damaged: a frame is called from one that comes later.");
            node->parent = 0;
            builder->broken[i] = true;
        } else if (hw_table_missing(table, node->parent)) {
            node->parent = 0;
            builder->broken[i] = true;
        }
        if (node->map != HW_NONE && node->map >= maps->count) {
            hw_problem(builder->problems,
                       "The stacks section is damaged: a frame lies in a module that is not listed.");
            node->map = HW_NONE;
        } else if (node->map != HW_NONE && hw_table_missing(maps, node->map)) {
            node->map = HW_NONE;
        }
        builder->depths[i] = builder->depths[node->parent] + 1;
        builder->broken[i] |= builder->broken[node->parent];
    }
    builder->profile->nodes = nodes;
    builder->profile->node_count = count;
    return true;
}

static void take_context_entries(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_CONTEXTS];
    const struct hw_table *stacks = &builder->tables->of[HW_SECTION_STACKS];
    struct hw_context_entry *entries = table->entries;
    size_t count = table->count ? table->count : 1; /* context 0 always exists */
    for (size_t i = 0; i < count; i++) {
        struct hw_context_entry *entry = &entries[i];
        if (hw_table_missing(table, i)) {
            entry->flags |= HW_CONTEXT_INCOMPLETE;
            continue;
        }
        if (entry->leaf >= builder->profile->node_count) {
            hw_problem(builder->problems,
                       "The contexts section is damaged: a stack ends in a frame that does not exist.");
            entry->leaf = 0;
            entry->flags |= HW_CONTEXT_INCOMPLETE;
        }
        if (builder->broken[entry->leaf])
            entry->flags |= HW_CONTEXT_INCOMPLETE;
        if (hw_table_missing(stacks, entry->leaf))
            entry->leaf = 0;
        uint32_t depth = builder->depths[entry->leaf];
        entry->depth = depth < UINT16_MAX ? (uint16_t)depth : UINT16_MAX;
    }
    builder->profile->context_entries = entries;
    builder->profile->context_entry_count = count;
}

bool hw_profile_measured(const struct hw_profile *profile, enum hw_measured what)
{
    static const uint32_t needed[] = {
        [HW_MEASURED_SIZE_RANGE] = 1u << HW_LLVM_MIN_SIZE | 1u << HW_LLVM_MAX_SIZE,
        [HW_MEASURED_LIFETIMES] = 1u << HW_LLVM_TOTAL_LIFETIME,
        [HW_MEASURED_LIFETIME_RANGE] = 1u << HW_LLVM_MIN_LIFETIME | 1u << HW_LLVM_MAX_LIFETIME,
        [HW_MEASURED_LAST] = 1u << HW_LLVM_ALLOC_TIME | 1u << HW_LLVM_ALLOC_CPU,
        [HW_MEASURED_CPUS] = 1u << HW_LLVM_MIGRATED_CPU | 1u << HW_LLVM_LIFETIME_OVERLAPS,
    };
    const bool lives =
        !profile->totals_lost && !(profile->observed && !(profile->observed->info.flags & HW_ALLOCATOR_PLACES));
    if (what == HW_MEASURED_BARS)
        return profile->bars_recorded;
    if (what == HW_MEASURED_LEAKS)
        return profile->leak_search != NULL;
    if (what == HW_MEASURED_TOTALS)
        return !profile->totals_lost;
    if (!profile->llvm)
        return what == HW_MEASURED_PROCESS ? !profile->process_lost
               : what == HW_MEASURED_LIVE  ? lives
               : what == HW_MEASURED_PEAK  ? lives && !profile->process_lost
                                           : true;
    return what > HW_MEASURED_EVENTS && (profile->llvm->known & needed[what]) == needed[what];
}

/* ---- threads, timeline, the rest ---- */

static bool is_lost(const struct hw_profile_builder *builder, uint32_t section)
{
    const struct hw_table *table = &builder->tables->of[section];
    return table->damaged || (!table->count && builder->problems->count);
}

static void take_threads(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_THREADS];
    builder->profile->totals_lost = is_lost(builder, HW_SECTION_THREADS) && is_lost(builder, HW_SECTION_MIBS);
    const struct hw_thread_entry *threads = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        builder->profile->threads_left += threads[i].serial != 0;
        hw_profile_totals_add(&builder->profile->totals, &threads[i]);
    }
}

/* Points out of order: the timeline was being thinned out when it was copied or when the process was killed. They are
 * left out; in a sealed file they are damage. */
static bool take_timeline(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *table = &builder->tables->of[HW_SECTION_TIMELINE];
    const struct hw_timeline_point *points = table->entries;
    uint64_t last = 0;
    profile->timeline = hw_arena_allocate(builder->arena, table->count + 1, sizeof *profile->timeline);
    if (!profile->timeline)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct hw_timeline_point *point = &points[i];
        if (profile->timeline_count > 0 && point->tick <= last) {
            if (profile->sealed && point->tick < last)
                hw_problem(builder->problems, "The timeline is damaged: points are out of order.");
            continue;
        }
        last = point->tick;
        profile->timeline[profile->timeline_count++] =
            (struct hw_profile_point){.time_ns = hw_profile_ticks_to_ns(profile, point->tick),
                                      .live_bytes = point->live_bytes,
                                      .rss_bytes = point->rss_bytes,
                                      .allocations = point->allocations,
                                      .frees = point->frees};
        hw_profile_note_tick(builder, point->tick);
    }
    return true;
}

static void take_free_stacks(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *table = &builder->tables->of[HW_SECTION_FREE_STACKS];
    struct hw_free_stack *stacks = table->entries;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct hw_free_stack stack = stacks[i];
        if (stack.count == 0)
            continue; /* a slot that nobody has used so far */
        if (stack.alloc_context >= profile->context_entry_count || stack.free_context >= profile->context_entry_count) {
            hw_problem(builder->problems,
                       "The free stacks section is damaged: it names a context that does not exist.");
            continue;
        }
        stacks[kept++] = stack;
    }
    profile->free_stacks = stacks;
    profile->free_stack_count = kept;
}

static void take_notes(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_NOTES];
    struct hw_note *notes = table->entries;
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct hw_note note = notes[i];
        if (note.code == 0)
            continue;
        notes[kept++] = note;
    }
    builder->profile->notes = notes;
    builder->profile->note_count = kept;
}

static int compare_regions(const void *left, const void *right)
{
    const struct hw_profile_region *a = left, *b = right;
    if (a->sum.bytes != b->sum.bytes)
        return a->sum.bytes > b->sum.bytes ? -1 : 1;
    const int order = strcmp(a->name, b->name);
    return order ? order : HW_ORDER(a->sum.flags & HW_REGION_THREAD, b->sum.flags & HW_REGION_THREAD);
}

static int compare_marks(const void *left, const void *right)
{
    const struct hw_profile_mark *a = left, *b = right;
    return HW_ORDER(a->time_ns, b->time_ns);
}

/* What the program measured and named itself. */
static bool take_regions(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *table = &builder->tables->of[HW_SECTION_REGIONS],
                          *named = &builder->tables->of[HW_SECTION_MARKS];
    const struct hw_region *entries = table->entries;
    const struct hw_mark *moments = named->entries;
    struct hw_profile_region *regions = hw_arena_allocate(builder->arena, table->count + 1, sizeof *regions);
    struct hw_profile_mark *marks = hw_arena_allocate(builder->arena, named->count + 1, sizeof *marks);
    if (!regions || !marks)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        if (!entries[i].begun)
            continue; /* made, and not filled yet */
        regions[profile->region_count++] =
            (struct hw_profile_region){.sum = entries[i],
                                       .name = hw_profile_string(profile, entries[i].name),
                                       .total_ns = hw_profile_ticks_to_ns(profile, entries[i].ticks),
                                       .longest_ns = hw_profile_ticks_to_ns(profile, entries[i].most_ticks),
                                       .first_ns = hw_profile_ticks_to_ns(profile, entries[i].first_tick),
                                       .last_ns = hw_profile_ticks_to_ns(profile, entries[i].last_tick)};
    }
    for (size_t i = 0; i < named->count; i++)
        marks[profile->mark_count++] =
            (struct hw_profile_mark){.time_ns = hw_profile_ticks_to_ns(profile, moments[i].tick),
                                     .live_bytes = moments[i].live_bytes,
                                     .name = hw_profile_string(profile, moments[i].name)};
    if (profile->region_count)
        qsort(regions, profile->region_count, sizeof *regions, compare_regions);
    if (profile->mark_count)
        qsort(marks, profile->mark_count, sizeof *marks, compare_marks);
    profile->regions = regions;
    profile->marks = marks;
    return true;
}

static void take_runs(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_RUNS];
    struct hw_run *runs = table->entries;
    for (size_t i = 0; i < table->count; i++) {
        if (runs[i].build_id_size > sizeof runs[i].build_id) {
            hw_problem(builder->problems, "A build id in the runs section is damaged.");
            runs[i].build_id_size = 0;
        }
    }
    builder->profile->runs = runs;
    builder->profile->run_count = table->count;
}

/* In the process's own file the moment of a dump is that of one which was taken from outside (verb_dump.c). */
static bool is_of_dump(const struct hw_profile_builder *builder, uint32_t moment)
{
    return moment == HW_MOMENT_DUMP && !(builder->profile->process.flags & HW_PROCESS_DUMP);
}

static void take_memory(struct hw_profile_builder *builder)
{
    const struct hw_table *table = &builder->tables->of[HW_SECTION_MEMORY];
    struct hw_memory_breakdown *memory = table->entries;
    for (size_t i = 0; i < table->count; i++)
        if (!is_of_dump(builder, memory[i].moment))
            memory[builder->profile->memory_count++] = memory[i];
    builder->profile->memory = memory;
}

/* Rows of the ledger, and what was mapped; without those that refer to what is not there. */
static void take_ledger(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    const struct hw_table *ledger = &builder->tables->of[HW_SECTION_LEDGER];
    const struct hw_table *mappings = &builder->tables->of[HW_SECTION_MAPPINGS];
    struct hw_ledger_row *row = ledger->entries;
    struct hw_mapping *mapping = mappings->entries;
    bool damaged = false;
    for (size_t i = 0; i < ledger->count; i++) {
        damaged |= row[i].context >= profile->context_entry_count || row[i].kind >= HW_LEDGER_KINDS;
        if (row[i].kind >= HW_LEDGER_KINDS || is_of_dump(builder, row[i].moment))
            continue;
        if (row[i].context >= profile->context_entry_count)
            row[i].context = 0;
        row[profile->ledger_count++] = row[i];
    }
    for (size_t i = 0; i < mappings->count; i++) {
        damaged |= mapping[i].context >= profile->context_entry_count;
        if (mapping[i].context < profile->context_entry_count)
            mapping[profile->mapping_count++] = mapping[i];
    }
    if (damaged)
        hw_problem(builder->problems, "The file is damaged: who mapped memory refers to what is not there.");
    profile->ledger = row;
    profile->mappings = mapping;
}

/* ---- the whole ---- */

/* A peak that was not left yet is noted now and then; what is live is known up to the last event. */
static void raise_peak(struct hw_profile *profile)
{
    struct hw_process_info *process = &profile->process;
    if (!profile->observed && !(process->flags & HW_PROCESS_MERGED) && !process->sample_bytes &&
        profile->totals.live_bytes > (int64_t)process->peak_bytes)
        process->peak_bytes = (uint64_t)profile->totals.live_bytes;
}

static bool build(struct hw_profile_builder *builder)
{
    struct hw_profile *profile = builder->profile;
    take_strings(builder);
    check_strings(builder);
    take_process(builder);
    take_maps(builder);
    if (!take_nodes(builder))
        return false;
    take_context_entries(builder);
    take_threads(builder);
    take_free_stacks(builder);
    take_notes(builder);
    take_memory(builder);
    take_ledger(builder);
    take_runs(builder);
    /* Contexts come last: the ages of live blocks are counted up to the latest moment that the file speaks of. */
    if (!take_timeline(builder) || !take_regions(builder) || !hw_profile_take_contexts(builder) ||
        !hw_profile_take_threads(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_accesses(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_samples(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_allocator(profile, builder->arena, builder->tables, builder->problems, builder->last_tick) ||
        !hw_profile_take_sharing(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_places(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_fields(profile, builder->arena, builder->tables, builder->problems) ||
        !hw_profile_take_symbols(profile, builder->arena, builder->tables, builder->problems))
        return false;
    hw_profile_take_keeps(profile, builder->tables, builder->problems);
    hw_profile_take_contents(profile, builder->tables, builder->problems);
    hw_profile_take_pins(profile, builder->tables, builder->problems);
    hw_profile_take_perf(profile, builder->tables, builder->problems);
    raise_peak(profile);
    hw_profile_fit_observed(profile);
    hw_profile_fit_sampled_peak(profile);
    if (!hw_profile_take_distributions(profile, builder->arena, builder->tables, builder->problems))
        return false;
    profile->duration_ns = hw_profile_ticks_to_ns(profile, builder->last_tick);
    profile->peak_time_ns = hw_profile_ticks_to_ns(profile, profile->process.peak_tick);
    return !builder->arena->failed;
}

/* A process that runs but does not use its heap writes nothing: the run lasts until now. */
static void extend_duration(struct hw_profile *profile)
{
    struct timespec now;
    const uint64_t start = profile->process.start_realtime_ns;
    if (!profile->running || start == 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (now_ns > start && now_ns - start > profile->duration_ns)
        profile->duration_ns = now_ns - start;
}

/* What is known of LLVM's files in a merged one of them, else NULL; without memory the arena says so. */
static const struct hw_profile_llvm *merged_source(struct hw_arena *arena, const struct hw_tables *tables)
{
    const struct hw_table *process = &tables->of[HW_SECTION_PROCESS];
    if (process->count && ((const struct hw_process_info *)process->entries)->flags & HW_PROCESS_LLVM)
        return hw_llvm_merged_source(arena, tables);
    return NULL;
}

static bool read_into(struct hw_profile *profile, struct hw_arena *arena, int fd, const char *path,
                      struct hw_error *error)
{
    struct hw_problems problems = {.arena = arena};
    struct hw_container container = {.fd = fd, .path = path, .problems = &problems};
    struct hw_tables tables;
    struct hw_profile_builder builder = {.profile = profile, .arena = arena, .tables = &tables, .problems = &problems};
    bool fine;
    if (hw_llvm_recognized(fd)) {
        profile->llvm = hw_llvm_tables_read(fd, path, arena, &tables, error);
        fine = container.sealed = profile->llvm != NULL;
    } else {
        fine = hw_tables_read(&container, arena, &tables, error);
        if (fine)
            profile->llvm = merged_source(arena, &tables);
    }
    if (fine) {
        profile->path = hw_arena_copy(arena, path);
        profile->header = container.header;
        profile->sealed = container.sealed;
        profile->cut = container.cut;
        fine = build(&builder);
        profile->running = !profile->sealed && !(profile->header.flags & HW_FILE_EXITED) &&
                           profile->process.exit_kind == HW_EXIT_UNKNOWN &&
                           hw_process_writes(profile->process.pid, profile->process.start_time_jiffies, fd, path);
        extend_duration(profile);
        hw_problems_finish(&problems);
        profile->problems = problems.sentences;
        profile->problem_count = problems.count;
        if (fine)
            hw_profile_check_invariants(profile, arena);
        if (!fine)
            hw_error_set(error, "cannot read '%s': not enough memory", path);
    }
    hw_container_free(&container);
    return fine;
}

/* Reads the open file; takes FD over. It may be -1: then ERROR says why. */
static struct hw_profile *read_open(int fd, const char *path, struct hw_error *error)
{
    struct hw_profile *profile = calloc(1, sizeof *profile);
    struct hw_arena *arena = calloc(1, sizeof *arena);
    bool fine = false;
    if (!profile || !arena)
        hw_error_set(error, "cannot read '%s': not enough memory", path);
    else if (fd >= 0)
        fine = read_into(profile, arena, fd, path, error);
    if (fd >= 0)
        close(fd);
    if (fine) {
        profile->storage = arena;
        return profile;
    }
    if (arena)
        hw_arena_free(arena);
    free(arena);
    free(profile);
    return NULL;
}

struct hw_profile *hw_profile_read(const char *path, struct hw_error *error)
{
    return read_open(hw_container_open(path, false, error), path, error);
}

struct hw_profile *hw_profile_read_bytes(const void *bytes, size_t size, const char *name, struct hw_error *error)
{
    return read_open(hw_container_open_bytes(bytes, size, name, error), name, error);
}

/* Sections whose entries are moved when a model is made of them, or are few: copied. */
static bool copy_tables(struct hw_tables *copy, const struct hw_tables *tables, struct hw_arena *arena)
{
    *copy = *tables;
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++) {
        const struct hw_section_rule *rule = hw_section_rule(type);
        struct hw_table *table = &copy->of[type];
        const void *entries = table->entries;
        if (!rule || (rule->stays && entries))
            continue;
        table->entries = hw_arena_allocate(arena, table->count + 1, rule->size);
        if (!table->entries)
            return false;
        if (entries)
            memcpy(table->entries, entries, table->count * rule->size);
    }
    return true;
}

struct hw_profile *hw_profile_from_tables(const struct hw_tables *tables, struct hw_arena *arena, const char *name,
                                          struct hw_error *error)
{
    struct hw_tables copy = *tables;
    const bool owned = arena != NULL;
    struct hw_profile *profile = calloc(1, sizeof *profile);
    if (!owned)
        arena = calloc(1, sizeof *arena);
    struct hw_problems problems = {.arena = arena};
    struct hw_profile_builder builder = {.profile = profile, .arena = arena, .tables = &copy, .problems = &problems};
    if (profile && arena && (owned || copy_tables(&copy, tables, arena))) {
        profile->path = hw_arena_copy(arena, name);
        profile->storage = arena;
        profile->sealed = true;
        profile->llvm = merged_source(arena, &copy);
        if (build(&builder)) {
            hw_problems_finish(&problems);
            profile->problems = problems.sentences;
            profile->problem_count = problems.count;
            hw_profile_check_invariants(profile, arena);
            return profile;
        }
    }
    hw_error_set(error, "cannot read '%s': not enough memory", name);
    if (arena)
        hw_arena_free(arena);
    free(arena);
    free(profile);
    return NULL;
}

void hw_profile_free(struct hw_profile *profile)
{
    if (!profile)
        return;
    hw_arena_free(profile->storage);
    free(profile->storage);
    free(profile);
}
