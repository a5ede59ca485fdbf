/* merge.c - what is known of the processes that are merged: which code they ran, totals, runs, notes. */
#include "profile/merge/merge_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hw_merge *hw_merge_new(void)
{
    struct hw_merge *merge = calloc(1, sizeof *merge);
    if (!merge)
        return NULL;
    merge->modules.size = sizeof(struct hw_merge_module);
    merge->frames.size = sizeof(struct hw_merge_llvm_frame);
    merge->notes.size = sizeof(struct hw_merge_note);
    merge->regions.size = sizeof(struct hw_merge_region);
    merge->runs.size = sizeof(struct hw_merge_run);
    merge->threads.size = sizeof(struct hw_merge_thread);
    merge->nodes.size = sizeof(struct hw_merge_node);
    merge->free_stacks.size = sizeof(struct hw_merge_free_stack);
    merge->globals.size = sizeof(struct hw_global_granule);
    merge->histograms.size = sizeof(struct hw_profile_histogram);
    merge->words.size = sizeof(struct hw_profile_words);
    merge->size_bars.size = sizeof(struct hw_profile_size_bar);
    merge->life_bars.size = sizeof(struct hw_profile_life_bar);
    merge->roles.size = sizeof(struct hw_thread_role);
    merge->sides.size = sizeof(struct hw_side);
    merge->samples.size = sizeof(struct hw_sample_count);
    merge->sampled_contexts.size = sizeof(struct hw_sample_context);
    pthread_mutex_init(&merge->tree_lock, NULL);
    pthread_mutex_init(&merge->lock, NULL);
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++)
        pthread_mutex_init(&merge->shard[i].lock, NULL);
    if (hw_store_push(&merge->nodes)) /* the root */
        return merge;
    hw_merge_free(merge);
    return NULL;
}

static void free_contexts(struct hw_merge *merge)
{
    for (uint32_t i = 0; i < HW_MERGE_SHARDS; i++) {
        struct hw_merge_shard *shard = &merge->shard[i];
        for (uint32_t k = 0; merge->class == HW_MERGE_OWN && k < shard->entries.count; k++)
            free(((struct hw_merge_entry *)hw_store_at(&shard->entries, k))->sum.own.access);
        hw_store_free(&shard->entries);
        pthread_mutex_destroy(&shard->lock);
    }
}

void hw_merge_free(struct hw_merge *merge)
{
    if (!merge)
        return;
    free_contexts(merge);
    hw_merge_symbols_free(merge->symbols);
    hw_merge_fields_free(merge->fields);
    hw_merge_allocator_free(merge->observed);
    hw_merge_places_free(merge->places);
    for (uint32_t i = 0; i < merge->modules.count; i++)
        free(((struct hw_merge_module *)hw_store_at(&merge->modules, i))->path);
    for (uint32_t i = 0; i < merge->frames.count; i++)
        free((char *)((struct hw_merge_llvm_frame *)hw_store_at(&merge->frames, i))->frame.name);
    for (uint32_t i = 0; i < merge->notes.count; i++)
        free(((struct hw_merge_note *)hw_store_at(&merge->notes, i))->text);
    for (uint32_t i = 0; i < merge->regions.count; i++)
        free(((struct hw_merge_region *)hw_store_at(&merge->regions, i))->name);
    for (uint32_t i = 0; i < merge->runs.count; i++) {
        struct hw_merge_run *run = hw_store_at(&merge->runs, i);
        free(run->executable);
        free(run->allocator);
    }
    struct hw_store *const stores[] = {
        &merge->modules,          &merge->frames,  &merge->notes,      &merge->runs,    &merge->nodes,
        &merge->free_stacks,      &merge->globals, &merge->histograms, &merge->words,   &merge->samples,
        &merge->sampled_contexts, &merge->roles,   &merge->sides,      &merge->regions, &merge->size_bars,
        &merge->life_bars, &merge->threads};
    struct hw_merge_text *const texts[] = {&merge->executable, &merge->allocator, &merge->allocator_path,
                                           &merge->options, &merge->command};
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        hw_store_free(stores[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]->text);
    free(merge->class_path);
    free(merge->granule_path);
    pthread_mutex_destroy(&merge->tree_lock);
    pthread_mutex_destroy(&merge->lock);
    free(merge);
}

/* ---- small sums ---- */

static void add_short(uint32_t *sum, uint32_t value)
{
    *sum = *sum > UINT32_MAX - value ? UINT32_MAX : *sum + value;
}

/* The smallest that is not 0. */
static void keep_earliest(uint64_t *first, uint64_t value)
{
    if (value && (!*first || value < *first))
        *first = value;
}

bool hw_merge_agree(struct hw_merge_text *text, const char *value, size_t size, uint32_t count)
{
    if (!text->set) {
        text->text = malloc(size ? size : 1);
        if (!text->text)
            return false;
        memcpy(text->text, value, size);
        text->size = size;
        text->count = count;
        text->set = true;
    }
    text->differs |= text->size != size || text->count != count || memcmp(text->text, value, size);
    return true;
}

/* ---- may it be added? ---- */

static const char *class_name(enum hw_merge_class class)
{
    return class == HW_MERGE_RAW       ? "one of LLVM's raw heap profiles"
           : class == HW_MERGE_INDEXED ? "one of LLVM's indexed heap profiles"
                                       : "a profile of Heapwise";
}

static bool is_compatible(const struct hw_merge *merge, enum hw_merge_class class, uint32_t granule, const char *path,
                          struct hw_error *error)
{
    if (merge->failed) {
        hw_error_set(error, "cannot merge '%s': not enough memory", path);
        return false;
    }
    if (merge->class != HW_MERGE_NOTHING && merge->class != class) {
        hw_error_set(error, "'%s' is %s and cannot be merged with %s ('%s')", path, class_name(class),
                     class_name(merge->class), merge->class_path);
        return false;
    }
    if (granule && merge->granule && merge->granule != granule && class == HW_MERGE_OWN) {
        hw_error_set(error,
                     "'%s' counts accesses by granules of %u bytes and cannot be merged with profiles by granules of "
                     "%u ('%s')",
                     path, granule, merge->granule, merge->granule_path);
        return false;
    }
    return true;
}

static bool decide(struct hw_merge *merge, enum hw_merge_class class, uint32_t granule, const char *path)
{
    if (merge->class == HW_MERGE_NOTHING) {
        merge->class_path = strdup(path);
        if (!merge->class_path)
            return false;
        merge->class = class;
        hw_merge_contexts_start(merge);
    }
    if (granule && !merge->granule) {
        merge->granule_path = strdup(path);
        if (!merge->granule_path)
            return false;
        merge->granule = granule;
    }
    return true;
}

/* ---- modules ---- */

static bool keep_smaller_text(char **text, const char *other)
{
    if (*text && strcmp(*text, other) <= 0)
        return true;
    char *copy = strdup(other);
    if (!copy)
        return false;
    free(*text);
    *text = copy;
    return true;
}

/* The number of the module that MAP is of; HW_NONE when there is no memory. Times are ns already. */
static uint32_t add_module(struct hw_merge *merge, const struct hw_map_entry *map, const char *path, bool generated)
{
    static const char of_build_id = 'b', of_path = 'p', of_generated = 'g';
    const uint32_t size = generated ? 0 : map->build_id_size;
    const uint64_t start = generated ? 0 : map->start - map->bias, end = generated ? 0 : map->end - map->bias;
    const struct hw_key key = generated ? hw_key_of(&of_generated, 1, "", 0)
                              : size    ? hw_key_of(&of_build_id, 1, map->build_id, size)
                                        : hw_key_of(&of_path, 1, path, strlen(path));
    bool added;
    const uint32_t number = hw_store_number(&merge->modules, key, &added);
    struct hw_merge_module *module = number == HW_NONE ? NULL : hw_store_at(&merge->modules, number);
    if (!module || !keep_smaller_text(&module->path, generated ? "" : path))
        return HW_NONE;
    if (added) {
        memcpy(module->build_id, map->build_id, size);
        module->build_id_size = size;
        module->start = module->offset = module->loaded_ns = UINT64_MAX;
        module->unloaded_ns = 1;
    }
    if (start < module->start || (start == module->start && map->offset < module->offset))
        module->offset = generated ? 0 : map->offset;
    module->start = start < module->start ? start : module->start;
    hw_keep_greater(&module->end, end);
    module->flags |= map->flags;
    if (map->unseen_operations > module->unseen_operations)
        module->unseen_operations = map->unseen_operations;
    module->loaded_ns = map->loaded_tick < module->loaded_ns ? map->loaded_tick : module->loaded_ns;
    if (!map->unloaded_tick || !module->unloaded_ns)
        module->unloaded_ns = 0;
    else
        hw_keep_greater(&module->unloaded_ns, map->unloaded_tick);
    return number;
}

static bool add_maps(struct hw_merge *merge, struct hw_merge_input *input, const struct hw_profile *profile)
{
    input->map_count = profile->map_count;
    input->map = malloc((profile->map_count + 1) * sizeof *input->map);
    for (size_t i = 0; input->map && i < profile->map_count; i++) {
        struct hw_map_entry map = profile->maps[i];
        const char *path = hw_profile_string(profile, map.path);
        const bool generated = !*path || map.flags & HW_MAP_ANONYMOUS;
        map.loaded_tick = hw_profile_ticks_to_ns(profile, map.loaded_tick);
        map.unloaded_tick = hw_profile_ticks_to_ns(profile, map.unloaded_tick);
        input->map[i] = (struct hw_merge_map){.module = add_module(merge, &map, path, generated),
                                              .skipped = map.flags & HW_MAP_RUNTIME,
                                              .generated = generated,
                                              .start = map.start,
                                              .end = map.end,
                                              .bias = map.bias};
        if (input->map[i].module == HW_NONE)
            return false;
    }
    return input->map != NULL;
}

/* As llvm_model.c makes maps of them. */
static bool add_segments(struct hw_merge *merge, struct hw_merge_input *input, const struct hw_llvm_profile *profile)
{
    input->map_count = profile->symbolized ? 0 : profile->segment_count;
    input->map = malloc((input->map_count + 1) * sizeof *input->map);
    for (size_t i = 0; input->map && i < input->map_count; i++) {
        char name[HW_LLVM_MODULE_NAME];
        const struct hw_map_entry map = hw_llvm_map(&profile->segments[i], i == 0, name);
        input->map[i] = (struct hw_merge_map){
            .module = add_module(merge, &map, name, false), .start = map.start, .end = map.end, .bias = map.bias};
        if (input->map[i].module == HW_NONE)
            return false;
    }
    return input->map != NULL;
}

static bool add_frames(struct hw_merge *merge, struct hw_merge_input *input, const struct hw_llvm_frame *frames,
                       size_t count)
{
    input->frame_count = count;
    input->frame = malloc((count + 1) * sizeof *input->frame);
    for (size_t i = 0; input->frame && i < count; i++) {
        const struct hw_llvm_frame *from = &frames[i];
        const uint64_t words[3] = {from->function, (uint64_t)from->line_offset << 32 | from->column, from->inlined};
        bool added;
        const uint32_t number = hw_store_number(&merge->frames, hw_key_of("f", 1, words, sizeof words), &added);
        if (number == HW_NONE)
            return false;
        struct hw_merge_llvm_frame *to = hw_store_at(&merge->frames, number);
        char *name = (char *)to->frame.name;
        if (added)
            to->frame = *from;
        to->frame.name = name;
        if (from->name && *from->name && !keep_smaller_text(&name, from->name))
            return false;
        to->frame.name = name;
        input->frame[i] = number;
    }
    return input->frame != NULL;
}

/* ---- runs ---- */

static bool add_run(struct hw_merge *merge, const struct hw_run *from, const char *executable, const char *allocator)
{
    const uint64_t words[2] = {from->mode, from->sample_bytes};
    const struct hw_key program = hw_key_of(executable, strlen(executable), allocator, strlen(allocator));
    const struct hw_key build = hw_key_of(from->build_id, from->build_id_size, words, sizeof words);
    bool added;
    struct hw_merge_run *to =
        hw_store_intern(&merge->runs, hw_key_of(&program, sizeof program, &build, sizeof build), &added);
    if (!to || !keep_smaller_text(&to->executable, executable) || !keep_smaller_text(&to->allocator, allocator))
        return false;
    struct hw_run *run = &to->run;
    run->mode = from->mode;
    run->sample_bytes = from->sample_bytes;
    run->build_id_size = from->build_id_size;
    memcpy(run->build_id, from->build_id, from->build_id_size);
    hw_sum(&run->runs, from->runs);
    hw_sum(&run->duration_total_ns, from->duration_total_ns);
    hw_keep_greater(&run->duration_max_ns, from->duration_max_ns);
    keep_earliest(&run->first_start_realtime_ns, from->first_start_realtime_ns);
    hw_keep_greater(&run->last_start_realtime_ns, from->last_start_realtime_ns);
    hw_keep_greater(&run->peak_bytes_max, from->peak_bytes_max);
    hw_keep_greater(&run->peak_rss_max_bytes, from->peak_rss_max_bytes);
    hw_sum(&run->exited_zero, from->exited_zero);
    hw_sum(&run->exited_nonzero, from->exited_nonzero);
    hw_sum(&run->signalled, from->signalled);
    return true;
}

/* The one run of a profile that is not merged. */
static struct hw_run single_run(const struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    struct hw_run run = {.mode = process->mode,
                         .sample_bytes = process->sample_bytes,
                         .runs = 1,
                         .duration_total_ns = profile->llvm ? 0 : profile->duration_ns,
                         .duration_max_ns = profile->llvm ? 0 : profile->duration_ns,
                         .first_start_realtime_ns = process->start_realtime_ns,
                         .last_start_realtime_ns = process->start_realtime_ns,
                         .peak_bytes_max = process->peak_bytes,
                         .peak_rss_max_bytes = process->peak_rss_bytes,
                         .exited_zero = process->exit_kind == HW_EXIT_CODE && !process->exit_value,
                         .exited_nonzero = process->exit_kind == HW_EXIT_CODE && process->exit_value,
                         .signalled = process->exit_kind == HW_EXIT_SIGNAL};
    for (size_t i = 0; i < profile->map_count; i++) {
        if (!(profile->maps[i].flags & HW_MAP_MAIN))
            continue;
        run.build_id_size = profile->maps[i].build_id_size;
        memcpy(run.build_id, profile->maps[i].build_id, run.build_id_size);
        break;
    }
    return run;
}

static bool add_runs(struct hw_merge *merge, const struct hw_profile *profile)
{
    if (!(profile->process.flags & HW_PROCESS_MERGED)) {
        const struct hw_run run = single_run(profile);
        merge->process.runs = hw_add_saturating(merge->process.runs, 1);
        return add_run(merge, &run, profile->executable, profile->allocator);
    }
    hw_sum(&merge->process.runs, profile->process.runs);
    for (size_t i = 0; i < profile->run_count; i++)
        if (!add_run(merge, &profile->runs[i], hw_profile_string(profile, profile->runs[i].executable),
                     hw_profile_string(profile, profile->runs[i].allocator)))
            return false;
    return true;
}

/* ---- the process ---- */

static bool add_note(struct hw_merge *merge, uint32_t code, const char *text, uint64_t count, uint64_t first_ns)
{
    bool added;
    struct hw_merge_note *to =
        hw_store_intern(&merge->notes, hw_key_of(&code, sizeof code, text, strlen(text)), &added);
    if (!to || !keep_smaller_text(&to->text, text))
        return false;
    to->code = code;
    to->first_ns = added || first_ns < to->first_ns ? first_ns : to->first_ns;
    hw_sum(&to->count, count);
    return true;
}

static bool add_notes(struct hw_merge *merge, const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->note_count; i++) {
        const struct hw_note *note = &profile->notes[i];
        if (!add_note(merge, note->code, hw_profile_string(profile, note->text), note->count,
                      hw_profile_ticks_to_ns(profile, note->tick)))
            return false;
    }
    return true;
}

/* What the programs measured themselves, by name. (Marks are moments of one run.) */
static bool add_regions(struct hw_merge *merge, const struct hw_profile *profile)
{
    for (size_t i = 0; i < profile->region_count; i++) {
        const struct hw_profile_region *region = &profile->regions[i];
        const struct hw_region *from = &region->sum;
        const uint32_t thread = from->flags & HW_REGION_THREAD;
        bool added;
        struct hw_merge_region *entry = hw_store_intern(
            &merge->regions, hw_key_of(&thread, sizeof thread, region->name, strlen(region->name)), &added);
        if (!entry || !keep_smaller_text(&entry->name, region->name))
            return false;
        struct hw_region *to = &entry->sum;
        to->first_tick = added || region->first_ns < to->first_tick ? region->first_ns : to->first_tick;
        if (from->ended && (!to->ended || from->most_live_bytes > to->most_live_bytes))
            to->most_live_bytes = from->most_live_bytes;
        to->flags |= from->flags;
        hw_sum(&to->begun, from->begun);
        hw_sum(&to->ended, from->ended);
        hw_sum(&to->allocations, from->allocations);
        hw_sum(&to->frees, from->frees);
        hw_sum(&to->reallocations, from->reallocations);
        hw_sum(&to->bytes, from->bytes);
        hw_sum_signed(&to->live_blocks, from->live_blocks);
        hw_sum_signed(&to->live_bytes, from->live_bytes);
        hw_sum(&to->ticks, region->total_ns);
        hw_keep_greater(&to->peak_bytes, from->peak_bytes);
        hw_keep_greater(&to->most_allocations, from->most_allocations);
        hw_keep_greater(&to->most_bytes, from->most_bytes);
        hw_keep_greater(&to->most_ticks, region->longest_ns);
        hw_keep_greater(&to->last_tick, region->last_ns);
    }
    return true;
}

static void add_access_info(struct hw_merge *merge, const struct hw_profile *profile)
{
    struct hw_access_info *to = &merge->access_info;
    const struct hw_access_info *from = &profile->access_info;
    if (!profile->access_counted)
        return;
    merge->access_counted = true;
    to->flags |= from->flags;
    hw_keep_greater_short(&to->planes, from->planes);
    hw_keep_greater_short(&to->planes_most, from->planes_most);
    hw_sum(&to->threads_sharing, from->threads_sharing);
    hw_keep_greater(&to->modules, from->modules);
    hw_sum(&to->unharvested_contexts, profile->unharvested_contexts);
    if (profile->process.flags & HW_PROCESS_MERGED)
        hw_sum(&to->unharvested_runs, from->unharvested_runs);
    else
        hw_sum(&to->unharvested_runs, !(from->flags & HW_ACCESS_HARVESTED));
    hw_keep_greater(&to->word_period_ns, from->word_period_ns);
    hw_sum(&to->word_rounds, from->word_rounds);
    hw_sum(&to->word_span_ns, from->word_span_ns);
    hw_keep_greater(&to->word_longest_ns, from->word_longest_ns);
    hw_sum(&to->word_cost_ns, from->word_cost_ns);
}

static bool add_texts(struct hw_merge *merge, const struct hw_profile *profile)
{
    const struct hw_process_info *process = &profile->process;
    const char *command = hw_profile_string(profile, process->command), *end = command;
    for (size_t i = 0; i < profile->command_count; i++)
        end = profile->command[i] + strlen(profile->command[i]) + 1;
    return hw_merge_agree(&merge->executable, profile->executable, strlen(profile->executable) + 1, 1) &&
           hw_merge_agree(&merge->allocator, profile->allocator, strlen(profile->allocator) + 1, 1) &&
           hw_merge_agree(&merge->allocator_path, profile->allocator_path, strlen(profile->allocator_path) + 1, 1) &&
           hw_merge_agree(&merge->options, profile->options, strlen(profile->options) + 1, 1) &&
           hw_merge_agree(&merge->command, command, (size_t)(end - command), (uint32_t)profile->command_count);
}

static void add_process(struct hw_merge *merge, const struct hw_profile *profile)
{
    const struct hw_process_info *from = &profile->process;
    struct hw_process_info *to = &merge->process;
    const bool merged = from->flags & HW_PROCESS_MERGED;
    to->flags |= from->flags & (HW_PROCESS_FORKED | HW_PROCESS_RESET | HW_PROCESS_LLVM | HW_PROCESS_ATTACHED);
    if ((merge->inputs ? to->flags : HW_PROCESS_BARS) & from->flags & HW_PROCESS_BARS)
        to->flags |= HW_PROCESS_BARS;
    else
        to->flags &= ~(uint32_t)HW_PROCESS_BARS;
    if (from->mode != HW_MODE_ACCESS) /* accesses that were counted decide in the end */
        hw_keep_greater_short(&to->mode, from->mode);
    hw_keep_greater_short(&to->cpus, from->cpus);
    hw_keep_greater_short(&to->block_store, from->block_store);
    keep_earliest(&to->start_realtime_ns, from->start_realtime_ns);
    hw_keep_greater(&to->peak_rss_bytes, from->peak_rss_bytes);
    hw_keep_greater(&to->sample_bytes, from->sample_bytes);
    hw_keep_greater(&to->table_entries, from->table_entries);
    to->added = (merge->inputs ? to->added : HW_ADDED_ALL) & from->added;
    hw_sum_signed(&to->live_bytes, from->live_bytes);
    hw_sum_signed(&to->live_blocks, from->live_blocks);
    hw_sum(&to->peak_bytes, from->peak_bytes);
    hw_sum(&to->peak_variance, from->peak_variance);
    hw_keep_greater(&to->peak_bytes_most, merged ? from->peak_bytes_most : from->peak_bytes);
    hw_sum(&to->threads_seen, from->threads_seen);
    hw_keep_greater(&to->threads_most, from->threads_most);
    hw_keep_greater(&to->startup_ns, from->startup_ns);
    hw_sum_signed(&to->inherited_blocks, from->inherited_blocks);
    hw_sum_signed(&to->inherited_bytes, from->inherited_bytes);
    hw_sum(&to->evictions, from->evictions);
    hw_keep_greater_short(&to->children_error, from->children_error);
    add_short(&to->children_lost, from->children_lost);
    hw_keep_greater(&to->reset_tick, hw_profile_ticks_to_ns(profile, from->reset_tick));
    if (!profile->llvm)
        hw_keep_greater(&merge->duration_ns, profile->duration_ns);
}

static void add_llvm(struct hw_merge *merge, uint32_t known, uint32_t version, size_t dumps, bool clang_runtime)
{
    const uint32_t last =
        1u << HW_LLVM_ALLOC_TIME | 1u << HW_LLVM_FREE_TIME | 1u << HW_LLVM_ALLOC_CPU | 1u << HW_LLVM_FREE_CPU;
    struct hw_process_info *to = &merge->process;
    if ((known & last) != last) /* those of one block go together */
        known &= ~last;
    to->flags |= HW_PROCESS_LLVM;
    to->llvm_kind = merge->class == HW_MERGE_RAW ? HW_LLVM_KIND_RAW : HW_LLVM_KIND_INDEXED;
    to->llvm_known = merge->inputs ? to->llvm_known & known : known;
    to->llvm_version = (uint16_t)(version > to->llvm_version ? version : to->llvm_version);
    add_short(&to->llvm_dumps, dumps < UINT32_MAX ? (uint32_t)dumps : UINT32_MAX);
    to->llvm_flags |= clang_runtime ? HW_LLVM_CLANG_RUNTIME : 0;
}

/* ---- admission ---- */

static void free_input(struct hw_merge_input *input)
{
    if (!input)
        return;
    free(input->map);
    free(input->frame);
    free(input);
}

static struct hw_merge_input *admitted(struct hw_merge *merge, struct hw_merge_input *input, bool fine,
                                       const char *path, struct hw_error *error)
{
    if (fine) {
        input->serial = ++merge->inputs;
        return input;
    }
    merge->failed = true;
    hw_error_set(error, "cannot merge '%s': not enough memory", path);
    free_input(input);
    return NULL;
}

static struct hw_merge_input *admit_profile(struct hw_merge *merge, const struct hw_profile *profile,
                                            struct hw_error *error)
{
    const struct hw_profile_llvm *llvm = profile->llvm;
    const enum hw_merge_class class = !llvm ? HW_MERGE_OWN : llvm->frames ? HW_MERGE_INDEXED : HW_MERGE_RAW;
    const uint32_t granule = profile->access_counted && !llvm ? profile->access_info.granule : 0;
    const char *path = profile->path ? profile->path : "a profile";
    if (!is_compatible(merge, class, granule, path, error))
        return NULL;
    struct hw_merge_input *input = calloc(1, sizeof *input);
    bool fine = input && decide(merge, class, granule, path) && add_maps(merge, input, profile) &&
                (!llvm || !llvm->frames || add_frames(merge, input, llvm->frames, llvm->frame_count)) &&
                hw_merge_symbols_add(merge, input, profile) && hw_merge_fields_add(merge, profile) &&
                hw_merge_allocator_admit(merge, input, profile) && hw_merge_places_admit(merge, profile) &&
                hw_merge_threads_admit(merge, input, profile) && add_runs(merge, profile) &&
                add_notes(merge, profile) && add_regions(merge, profile) && add_texts(merge, profile);
    if (fine) {
        input->profile = profile;
        add_process(merge, profile);
        hw_profile_totals_add(&merge->totals, &profile->totals);
        add_access_info(merge, profile);
        hw_merge_samples_admit(merge, profile);
        if (llvm)
            add_llvm(merge, llvm->known, llvm->version, llvm->dumps, llvm->clang_runtime);
    }
    return admitted(merge, input, fine, path, error);
}

struct hw_merge_input *hw_merge_admit_llvm(struct hw_merge *merge, const struct hw_llvm_profile *profile,
                                           const char *path, struct hw_error *error)
{
    const enum hw_merge_class class = profile->symbolized ? HW_MERGE_INDEXED : HW_MERGE_RAW;
    if (!is_compatible(merge, class, 0, path, error))
        return NULL;
    struct hw_merge_input *input = calloc(1, sizeof *input);
    struct hw_run run = {.runs = 1, .mode = hw_llvm_has_accesses(profile->known) ? HW_MODE_ACCESS : HW_MODE_HEAP};
    if (class == HW_MERGE_RAW && profile->segment_count) {
        run.build_id_size = profile->segments[0].build_id_size;
        memcpy(run.build_id, profile->segments[0].build_id, run.build_id_size);
    }
    bool fine = input && decide(merge, class, 0, path) && add_segments(merge, input, profile) &&
                (!profile->symbolized || add_frames(merge, input, profile->frames, profile->frame_count)) &&
                add_run(merge, &run, "", "");
    if (fine) {
        input->llvm = profile;
        hw_sum(&merge->process.runs, 1);
        add_llvm(merge, profile->known, profile->version, profile->dumps, profile->clang_runtime);
    }
    return admitted(merge, input, fine, path, error);
}

bool hw_merge_sum(struct hw_merge *merge, struct hw_merge_input *input, struct hw_error *error)
{
    const bool fine = input->llvm ? hw_merge_sum_llvm(merge, input) : hw_merge_sum_profile(merge, input);
    free_input(input);
    if (!fine)
        hw_error_set(error, "cannot merge: not enough memory");
    return fine;
}

/* ---- files ---- */

bool hw_merge_read(const char *path, struct hw_merge_source *source, struct hw_error *error)
{
    *source = (struct hw_merge_source){.path = path};
    const int fd = hw_container_open(path, false, error);
    if (fd < 0)
        return false;
    const bool llvm = hw_llvm_recognized(fd);
    if (llvm) {
        source->llvm = calloc(1, sizeof *source->llvm);
        if (!source->llvm)
            hw_error_set(error, "cannot read '%s': not enough memory", path);
        else if (!hw_llvm_file_read(fd, path, source->llvm, error)) {
            free(source->llvm);
            source->llvm = NULL;
        }
    }
    close(fd);
    if (!llvm)
        source->profile = hw_profile_read(path, error);
    if (!source->profile || !source->profile->problem_count)
        return source->profile || source->llvm;
    hw_error_set(error, "'%s': %s", path, source->profile->problems[0]);
    hw_merge_source_free(source);
    return false;
}

void hw_merge_source_free(struct hw_merge_source *source)
{
    hw_profile_free(source->profile);
    if (source->llvm)
        hw_llvm_profile_free(source->llvm);
    free(source->llvm);
    *source = (struct hw_merge_source){0};
}

struct hw_merge_input *hw_merge_admit_source(struct hw_merge *merge, const struct hw_merge_source *source,
                                             struct hw_error *error)
{
    return source->llvm ? hw_merge_admit_llvm(merge, source->llvm, source->path, error)
                        : admit_profile(merge, source->profile, error);
}

bool hw_merge_add(struct hw_merge *merge, const struct hw_profile *profile, struct hw_error *error)
{
    struct hw_merge_input *input = admit_profile(merge, profile, error);
    return input && hw_merge_sum(merge, input, error);
}
