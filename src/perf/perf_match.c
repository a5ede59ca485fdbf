/* perf_match.c - see perf_match.h.
 *
 * A sweep over time: begins and ends of blocks, mappings and samples are sorted by time, and at each sample it is known
 * which blocks live. Addresses at which blocks begin have numbers in the order of addresses; a bit for each says that
 * one lives there, with bits above for 64 of them each: so the nearest begin below an address is found in a few
 * steps. */
#include "perf/perf_match.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"
#include "base/order.h"
#include "perf/perf_hits.h"

#define LEVELS      6              /* 64^6 addresses */
#define STACK_MOST  (128ull << 20) /* the kernel keeps so much below a stack free at least */
#define DOUBT_LEAST 20             /* samples, before the clock is doubted */

/* ---- the run ---- */

uint64_t hw_perf_ns_of_tick(const struct hw_perf_match *match, uint64_t tick)
{
    const struct hw_process_info *process = match->process;
    const uint64_t per = process->clock_ticks ? process->clock_ticks : 1;
    const unsigned __int128 ns = (unsigned __int128)tick * process->clock_ns / per + match->log->start_monotonic_ns;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

bool hw_perf_match_begin(struct hw_perf_match *match, const struct hw_tables *tables, uint32_t pid, const char *name,
                         struct hw_error *error)
{
    const struct hw_table *process = &tables->of[HW_SECTION_PROCESS], *log = &tables->of[HW_SECTION_BLOCK_LOG],
                          *info = &tables->of[HW_SECTION_BLOCK_LOG_INFO];
    *match = (struct hw_perf_match){0};
    if (!info->count && tables->of[HW_SECTION_PERF_INFO].count)
        hw_error_set(error, "%s has samples of perf already: give the profile that heapwise record wrote", name);
    else if (!process->count || !info->count)
        hw_error_set(error,
                     "%s does not say where its blocks were at which time: record the run with heapwise record "
                     "--log-blocks",
                     name);
    if (!process->count || !info->count)
        return false;
    match->process = process->entries;
    match->log = info->entries;
    match->pid = pid ? pid : match->process->pid;
    match->events = log->entries;
    match->event_count = log->count;
    match->context_count = (uint32_t)tables->of[HW_SECTION_CONTEXTS].count;
    match->start_ns = hw_perf_ns_of_tick(match, 0);
    match->end_ns = hw_perf_ns_of_tick(match, match->process->end_tick);
    match->first_ns = UINT64_MAX;
    return true;
}

void hw_perf_match_free(struct hw_perf_match *match)
{
    free(match->samples);
    free(match->mappings);
    free(match->counts);
    free(match->sides);
}

/* ---- what is read ---- */

static void note_other(struct hw_perf_match *match, uint32_t pid)
{
    for (size_t i = 0; i < HW_PERF_PROCESSES; i++) {
        if (match->others[i] == pid)
            return;
        if (!match->others[i]) {
            match->others[i] = pid;
            return;
        }
    }
}

static void add_sample(struct hw_perf_match *match, const struct hw_perf_sample *sample)
{
    match->all_samples++;
    if (sample->pid != match->pid) {
        match->info.other_process++;
        note_other(match, sample->pid);
        return;
    }
    match->of_process++;
    match->first_ns = sample->time_ns < match->first_ns ? sample->time_ns : match->first_ns;
    match->last_ns = sample->time_ns > match->last_ns ? sample->time_ns : match->last_ns;
    if (sample->time_ns < match->start_ns || sample->time_ns > match->end_ns)
        match->info.other_time++;
    else if (!sample->address || sample->address >> 63)
        match->info.no_address++;
    else if (HW_GROW(match->samples, match->sample_room, match->sample_count + 1))
        match->samples[match->sample_count++] = *sample;
    else
        match->failed = true;
}

void hw_perf_match_line(struct hw_perf_match *match, const char *line)
{
    struct hw_perf_sample sample;
    struct hw_perf_mapping mapping;
    match->lines++;
    switch (hw_perf_read_line(line, &sample, &mapping)) {
    case HW_PERF_LINE_SAMPLE:
        add_sample(match, &sample);
        break;
    case HW_PERF_LINE_MAPPING:
        if (mapping.pid != match->pid)
            break;
        mapping.line = match->lines;
        if (HW_GROW(match->mappings, match->mapping_room, match->mapping_count + 1))
            match->mappings[match->mapping_count++] = mapping;
        else
            match->failed = true;
        break;
    case HW_PERF_LINE_MONOTONIC:
        match->monotonic = true;
        break;
    case HW_PERF_LINE_HEADER:
        match->header = true;
        break;
    case HW_PERF_LINE_OTHER_CLOCK:
        match->other_clock = true;
        break;
    case HW_PERF_LINE_UNREAD:
        match->info.unread_lines++;
        break;
    case HW_PERF_LINE_NOTHING:
        break;
    }
}

/* ---- regions: what is mapped at an address, by perf ---- */

struct region {
    uint64_t start, end;
    enum hw_perf_region kind;
    bool writable;
};
struct regions {
    struct region *of; /* sorted, apart from each other */
    size_t count, room;
};

/* The first one that ends behind ADDRESS. */
static size_t region_behind(const struct regions *regions, uint64_t address)
{
    size_t low = 0, high = regions->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (regions->of[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The region takes the place of what was there. */
static bool map_region(struct regions *regions, struct region new)
{
    size_t first = region_behind(regions, new.start), last = first;
    if (!HW_GROW(regions->of, regions->room, regions->count + 2))
        return false;
    while (last < regions->count && regions->of[last].start < new.end)
        last++;
    struct region with[3];
    size_t count = 0;
    if (last > first && regions->of[first].start < new.start) {
        with[count] = regions->of[first];
        with[count++].end = new.start;
    }
    with[count++] = new;
    if (last > first && regions->of[last - 1].end > new.end) {
        with[count] = regions->of[last - 1];
        with[count++].start = new.end;
    }
    memmove(&regions->of[first + count], &regions->of[last], (regions->count - last) * sizeof *regions->of);
    memcpy(&regions->of[first], with, count * sizeof *with);
    regions->count += count - (last - first);
    return true;
}

/* A writable anonymous mapping right behind a writable one of a file is its data, too: the part that is zero at first. */
static bool map(struct regions *regions, const struct hw_perf_mapping *mapping)
{
    struct region new = {mapping->start, mapping->end, mapping->kind, mapping->writable};
    const size_t before = mapping->start ? region_behind(regions, mapping->start - 1) : regions->count;
    if (new.end <= new.start)
        return true;
    if (new.kind == HW_PERF_REGION_STACK)
        new.start = new.end > STACK_MOST ? new.end - STACK_MOST : 0;
    if (new.kind == HW_PERF_REGION_ANONYMOUS && new.writable && before < regions->count) {
        const struct region *file = &regions->of[before];
        if (file->end == new.start && file->kind == HW_PERF_REGION_FILE && file->writable)
            new.kind = HW_PERF_REGION_FILE;
    }
    return map_region(regions, new);
}

static enum hw_perf_region region_of(const struct regions *regions, uint64_t address)
{
    const size_t at = region_behind(regions, address);
    return at < regions->count && regions->of[at].start <= address ? regions->of[at].kind : HW_PERF_REGION_ANONYMOUS;
}

/* ---- blocks ---- */

struct change {
    uint64_t ns;
    uint32_t event;
};
struct range {
    uint64_t start, end;
};

struct sweep {
    struct hw_perf_match *match;
    struct change *changes;
    size_t change_count;
    uint64_t *begins; /* addresses, sorted, each once */
    size_t begin_count;
    uint32_t *block_at; /* by number of the address: the event that began what lives there */
    uint64_t *live[LEVELS];
    uint64_t *ended; /* by event: when the block ended, UINT64_MAX: it did not */
    struct range *ever; /* all that was in a block at some time: sorted, apart from each other */
    size_t ever_count;
    struct regions regions;
    struct hw_perf_hit *hits;
    size_t hit_count;
};

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return HW_ORDER(a->ns, b->ns) ?: HW_ORDER(a->event, b->event);
}

static int compare_numbers(const void *left, const void *right)
{
    return HW_ORDER(*(const uint64_t *)left, *(const uint64_t *)right);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    return HW_ORDER(a->start, b->start) ?: HW_ORDER(a->end, b->end);
}

static int compare_samples(const void *left, const void *right)
{
    const struct hw_perf_sample *a = left, *b = right;
    return HW_ORDER(a->time_ns, b->time_ns) ?: HW_ORDER(a->tid, b->tid) ?: HW_ORDER(a->address, b->address);
}

static int compare_mappings(const void *left, const void *right)
{
    const struct hw_perf_mapping *a = left, *b = right;
    return HW_ORDER(a->time_ns, b->time_ns) ?: HW_ORDER(a->line, b->line);
}

static bool is_end(const struct hw_block_event *event)
{
    return event->context == HW_NONE;
}

/* Begins and ends by time, and addresses of begins. Entries that were not written are left out. */
static bool take_events(struct sweep *sweep)
{
    struct hw_perf_match *match = sweep->match;
    const size_t count = match->event_count;
    sweep->changes = calloc(count + 1, sizeof *sweep->changes);
    sweep->begins = calloc(count + 1, sizeof *sweep->begins);
    sweep->ever = calloc(count + 1, sizeof *sweep->ever);
    sweep->ended = calloc(count + 1, sizeof *sweep->ended);
    if (!sweep->changes || !sweep->begins || !sweep->ever || !sweep->ended || count >= UINT32_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hw_block_event *event = &match->events[i];
        const uint64_t address = HW_EVENT_ADDRESS(event);
        if (!address || (!is_end(event) && event->context >= match->context_count))
            continue;
        sweep->changes[sweep->change_count++] = (struct change){hw_perf_ns_of_tick(match, event->tick), (uint32_t)i};
        sweep->ended[i] = UINT64_MAX;
        if (is_end(event))
            continue;
        match->info.blocks++;
        sweep->ever[sweep->ever_count++] = (struct range){address, address + HW_EVENT_SIZE(event)};
        sweep->begins[sweep->begin_count++] = address;
    }
    qsort(sweep->changes, sweep->change_count, sizeof *sweep->changes, compare_changes);
    qsort(sweep->begins, sweep->begin_count, sizeof *sweep->begins, compare_numbers);
    qsort(sweep->ever, sweep->ever_count, sizeof *sweep->ever, compare_ranges);
    size_t kept = 0;
    for (size_t i = 0; i < sweep->begin_count; i++)
        if (!kept || sweep->begins[kept - 1] != sweep->begins[i])
            sweep->begins[kept++] = sweep->begins[i];
    sweep->begin_count = kept;
    kept = 0;
    for (size_t i = 0; i < sweep->ever_count; i++) {
        struct range *last = kept ? &sweep->ever[kept - 1] : NULL;
        if (last && sweep->ever[i].start <= last->end)
            last->end = sweep->ever[i].end > last->end ? sweep->ever[i].end : last->end;
        else
            sweep->ever[kept++] = sweep->ever[i];
    }
    sweep->ever_count = kept;
    sweep->block_at = calloc(sweep->begin_count + 1, sizeof *sweep->block_at);
    bool fine = sweep->block_at != NULL;
    size_t words = sweep->begin_count;
    for (int level = 0; level < LEVELS; level++) {
        words = words / 64 + 1;
        sweep->live[level] = calloc(words, sizeof **sweep->live);
        fine = fine && sweep->live[level];
    }
    return fine;
}

/* How many begins are at or below ADDRESS. */
static size_t begins_up_to(const struct sweep *sweep, uint64_t address)
{
    size_t low = 0, high = sweep->begin_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sweep->begins[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool lives(const struct sweep *sweep, size_t number)
{
    return sweep->live[0][number / 64] >> number % 64 & 1;
}

static void set_live(struct sweep *sweep, size_t number, bool live)
{
    for (int level = 0; level < LEVELS; level++) {
        uint64_t *word = &sweep->live[level][number / 64];
        const uint64_t bit = 1ull << number % 64;
        if (live)
            *word |= bit;
        else
            *word &= ~bit;
        if (!live && *word)
            return;
        number /= 64;
    }
}

/* The nearest one below NUMBER that lives; SIZE_MAX: none. */
static size_t live_below(const struct sweep *sweep, size_t number)
{
    for (int level = 0; level < LEVELS; level++) {
        const uint64_t bits = number % 64 ? sweep->live[level][number / 64] & ((1ull << number % 64) - 1) : 0;
        if (bits) {
            size_t found = number / 64 * 64 + 63 - (size_t)__builtin_clzll(bits);
            while (level-- > 0)
                found = found * 64 + 63 - (size_t)__builtin_clzll(sweep->live[level][found]);
            return found;
        }
        number /= 64;
    }
    return SIZE_MAX;
}

static void apply(struct sweep *sweep, const struct change *change)
{
    const struct hw_block_event *event = &sweep->match->events[change->event];
    const uint64_t address = HW_EVENT_ADDRESS(event);
    const size_t upto = begins_up_to(sweep, address);
    if (!upto || sweep->begins[upto - 1] != address)
        return; /* of a block from before the log */
    const size_t number = upto - 1;
    if (lives(sweep, number)) /* or it was freed unseen */
        sweep->ended[sweep->block_at[number]] = change->ns;
    sweep->block_at[number] = change->event;
    set_live(sweep, number, !is_end(event));
}

static bool was_block(const struct sweep *sweep, uint64_t address)
{
    size_t low = 0, high = sweep->ever_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sweep->ever[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < sweep->ever_count && sweep->ever[low].start <= address;
}

static void place(struct sweep *sweep, const struct hw_perf_sample *sample)
{
    struct hw_perf_match *match = sweep->match;
    struct hw_perf_hit *hit = &sweep->hits[sweep->hit_count++];
    const size_t number = live_below(sweep, begins_up_to(sweep, sample->address));
    *hit = (struct hw_perf_hit){
        .sample = sample, .scope = HW_PERF_ELSEWHERE, .context = HW_NONE, .word = sample->address / 8};
    match->info.samples++;
    if (number != SIZE_MAX) {
        const struct hw_block_event *event = &match->events[sweep->block_at[number]];
        const uint64_t offset = sample->address - sweep->begins[number];
        if (offset < HW_EVENT_SIZE(event)) {
            hit->scope = HW_PERF_BLOCKS;
            hit->context = event->context;
            hit->block = sweep->block_at[number];
            hit->word = offset / 8;
            match->info.in_blocks++;
            return;
        }
    }
    const enum hw_perf_region region = region_of(&sweep->regions, sample->address);
    if (region == HW_PERF_REGION_STACK) {
        hit->scope = HW_PERF_STACK;
        match->info.in_stack++;
        return;
    }
    if (region == HW_PERF_REGION_FILE) {
        hit->scope = HW_PERF_MODULES;
        match->info.in_modules++;
        return;
    }
    match->info.elsewhere++;
    if (match->log->full_tick && sample->time_ns >= hw_perf_ns_of_tick(match, match->log->full_tick))
        match->info.log_full++;
    else if (was_block(sweep, sample->address))
        match->info.was_block++;
}

static bool go_over_time(struct sweep *sweep)
{
    struct hw_perf_match *match = sweep->match;
    size_t change = 0, mapping = 0;
    sweep->hits = calloc(match->sample_count + 1, sizeof *sweep->hits);
    if (!sweep->hits)
        return false;
    if (match->samples)
        qsort(match->samples, match->sample_count, sizeof *match->samples, compare_samples);
    if (match->mappings)
        qsort(match->mappings, match->mapping_count, sizeof *match->mappings, compare_mappings);
    for (size_t i = 0; i < match->sample_count; i++) {
        const struct hw_perf_sample *sample = &match->samples[i];
        while (change < sweep->change_count && sweep->changes[change].ns <= sample->time_ns)
            apply(sweep, &sweep->changes[change++]);
        while (mapping < match->mapping_count && match->mappings[mapping].time_ns <= sample->time_ns)
            if (!map(&sweep->regions, &match->mappings[mapping++]))
                return false;
        const bool source = sample->source.operation || (sample->has_source && sample->source.level != HW_PERF_UNKNOWN);
        match->info.flags |= (source ? HW_PERF_SOURCES : 0) |
                             (sample->has_weight && sample->weight ? HW_PERF_WEIGHTS : 0);
        place(sweep, sample);
    }
    for (; change < sweep->change_count; change++) /* ends, for shared lines */
        apply(sweep, &sweep->changes[change]);
    return true;
}

/* ---- the whole ---- */

static void free_sweep(struct sweep *sweep)
{
    free(sweep->changes);
    free(sweep->begins);
    free(sweep->block_at);
    for (int level = 0; level < LEVELS; level++)
        free(sweep->live[level]);
    free(sweep->ended);
    free(sweep->ever);
    free(sweep->regions.of);
    free(sweep->hits);
}

static void say_others(const struct hw_perf_match *match, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < HW_PERF_PROCESSES && match->others[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu32, i ? ", " : "", match->others[i]);
    if (match->others[HW_PERF_PROCESSES - 1] && used < size)
        snprintf(text + used, size - used, " …");
}

/* Why nothing can be matched. */
static bool refuse(const struct hw_perf_match *match, const char *name, struct hw_error *error)
{
    char others[160];
    say_others(match, others, sizeof others);
    if (match->failed)
        hw_error_set(error, "not enough memory");
    else if (!match->all_samples && !match->info.unread_lines)
        hw_error_set(error, "%s has no samples", name);
    else if (!match->all_samples)
        hw_error_set(error,
                     "%s has no samples with process, time and address: they are made by perf mem record, perf c2c record "
                     "or perf record -d, and printed by perf script --ns -F " HW_PERF_FIELDS,
                     name);
    else if (match->other_clock)
        hw_error_set(error, "%s was recorded with another clock: record it with -k CLOCK_MONOTONIC", name);
    else if (!match->of_process)
        hw_error_set(error,
                     "%s has no sample of process %" PRIu32 ", which the profile is of, but of %s%s (--pid=N, where perf "
                     "saw another number)",
                     name, match->pid, match->others[1] ? "processes " : "process ", others);
    else if (!match->sample_count && match->info.other_time == match->of_process)
        hw_error_set(error,
                     "no sample of process %" PRIu32 " lies within its run: they are from %.6f s to %.6f s, the run is from "
                     "%.6f s to %.6f s. Let perf use the same clock: -k CLOCK_MONOTONIC",
                     match->pid, (double)match->first_ns / 1e9, (double)match->last_ns / 1e9,
                     (double)match->start_ns / 1e9, (double)match->end_ns / 1e9);
    else if (!match->sample_count)
        hw_error_set(error,
                     "the samples of process %" PRIu32 " have no addresses of data: they are made by perf mem record, perf "
                     "c2c record or perf record -d",
                     match->pid);
    else
        return false;
    return true;
}

bool hw_perf_match_end(struct hw_perf_match *match, const char *name, struct hw_error *error)
{
    struct sweep sweep = {.match = match};
    if (refuse(match, name, error))
        return false;
    const bool fine = take_events(&sweep) && go_over_time(&sweep) &&
                      hw_perf_add_places(match, sweep.hits, sweep.hit_count) &&
                      hw_perf_add_lines(match, sweep.hits, sweep.hit_count, sweep.ended);
    free_sweep(&sweep);
    if (!fine) {
        hw_error_set(error, "not enough memory");
        return false;
    }
    match->info.flags |= (match->mapping_count ? HW_PERF_MAPPINGS : 0) | 
                         (match->monotonic ? HW_PERF_CLOCK
                          : match->header  ? HW_PERF_OWN_CLOCK
                                           : 0);
    if (match->info.was_block >= DOUBT_LEAST && match->info.was_block > match->info.in_blocks)
        match->info.flags |= HW_PERF_SYNC;
    return true;
}
