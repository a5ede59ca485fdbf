/* samples.c - where sampled accesses go: from an address to a context, an offset, a line, a variable.
 *
 * Samplers (single_steps.c, perf.c) call hw_samples_take for each access, at the moment it is made: then the block is
 * there. Nothing is shared yet: a thread gathers its own hits. hw_samples_flush adds them to the file under the lock.
 * The lock is taken with all signals blocked wherever it is taken, so that a sampler's handler never finds it held by
 * the thread that it has interrupted.
 *
 * Two indexes over the entries in the file, and a table of lines (who touched them, while the block lived) that forgets
 * when it is full: it is private memory. */
#include "base/arch/x86_64/decode.h"
#include "runtime/access/access.h"
#include "runtime/allocator/places.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/samples/hits.h"

/* ---- where an access fell ---- */

void hw_samples_take(struct hw_hits *hits, const struct hw_touch *touch, uint64_t pc, uint64_t stack)
{
    struct hw_sample_info *sums = &hits->sums;
    const uint64_t address = touch->address;
    const uint32_t flags = touch->flags;
    uint64_t reads = flags & HW_TOUCH_READ ? 1 : 0, writes = flags & HW_TOUCH_WRITE ? 1 : 0;
    sums->reads += reads;
    sums->writes += writes;
    struct hw_block block;
    /* Addressed through the stack pointer, or between it and the stack's end: whatever memory that is. */
    if ((flags & HW_TOUCH_STACK) || (address + 128 >= stack && address < hits->stack_high)) {
        sums->stack_reads += reads;
        sums->stack_writes += writes;
        return;
    }
    if (address >> HW_ARCH_ADDRESS_BITS)
        return;
    if (hw_places.even && !(flags & HW_TOUCH_THREAD))
        hw_places_access(&hits->places, address, writes, hits->thread);
    struct hw_hit hit = {.pc = pc, .context = HW_NONE, .map = HW_NONE, .flags = (uint8_t)(flags & 3)};
    uintptr_t start = flags & HW_TOUCH_THREAD ? 0 : hw_block_containing(address, &block);
    const struct hw_module *module;
    if (flags & HW_TOUCH_THREAD) {
        sums->thread_reads += reads;
        sums->thread_writes += writes;
        return;
    }
    if (start && block.context < HW_ENTRIES(HW_POOL_CONTEXTS)) {
        hit.context = block.context;
        hit.offset = address - start;
        hit.address = address;
        hit.bytes = touch->size < UINT8_MAX ? (uint8_t)touch->size : UINT8_MAX;
        hit.step = sums->instructions < UINT8_MAX ? (uint8_t)sums->instructions : UINT8_MAX;
        hit.stamp = block.stamp;
        sums->heap_reads += reads;
        sums->heap_writes += writes;
    } else if ((module = hw_module_of_data(address)) && !(module->flags & HW_MAP_RUNTIME)) {
        hit.map = module->map;
        hit.offset = address - module->bias;
        sums->global_reads += reads;
        sums->global_writes += writes;
    } else {
        return;
    }
    if (hits->count < HW_HITS_MOST)
        hits->hit[hits->count++] = hit;
    else
        sums->lost++;
}

void hw_samples_forget(struct hw_hits *hits)
{
    struct hw_sample_info *sums = &hits->sums;
    sums->instructions = sums->reads = sums->writes = sums->lost = 0;
    sums->heap_reads = sums->heap_writes = sums->global_reads = sums->global_writes = 0;
    sums->stack_reads = sums->stack_writes = sums->thread_reads = sums->thread_writes = 0;
    hits->places = (struct hw_place_hits){0};
    hits->count = 0;
}

/* ---- indexes: open addressing over the entries of a section ---- */

struct index {
    enum hw_pool_id pool;
    uint32_t *slots; /* entry + 1, 0 empty */
    uint32_t mask, count;
};
static struct index contexts = {.pool = HW_POOL_SAMPLE_CONTEXTS}, counts = {.pool = HW_POOL_SAMPLE_COUNTS};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15ull;
    return x ^ (x >> 29);
}

static uint64_t hash_of(enum hw_pool_id pool, uint32_t i)
{
    if (pool == HW_POOL_SAMPLE_CONTEXTS)
        return mix(HW_ENTRY(pool, struct hw_sample_context, i)->context);
    const struct hw_sample_count *count = HW_ENTRY(pool, struct hw_sample_count, i);
    return mix(mix((uint64_t)count->context << 32 | count->map) + count->offset * 4 + count->kind);
}

static bool make_room(struct index *index)
{
    if (index->slots && index->count * 2 <= index->mask)
        return true;
    uint32_t capacity = index->slots ? (index->mask + 1) * 2 : 1024;
    uint32_t *slots = capacity ? hw_own_pages(capacity * sizeof *slots, false) : NULL;
    if (!slots)
        return false;
    for (uint32_t i = 0; i < index->count; i++) {
        uint64_t at = hash_of(index->pool, i) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = i + 1;
    }
    if (index->slots)
        hw_own_give_back(index->slots, (index->mask + 1) * sizeof *slots);
    index->slots = slots;
    index->mask = capacity - 1;
    return true;
}

/* A new entry for the empty slot AT; HW_NONE when there is no room. */
static uint32_t add_entry(struct index *index, uint64_t at)
{
    uint32_t i = hw_pool_take(index->pool, 1);
    if (i == HW_NONE)
        return HW_NONE;
    index->slots[at] = i + 1;
    index->count++;
    return i;
}

static struct hw_sample_context *context_entry(uint32_t context)
{
    if (!make_room(&contexts))
        return NULL;
    uint64_t at = mix(context) & contexts.mask;
    for (; contexts.slots[at]; at = (at + 1) & contexts.mask) {
        struct hw_sample_context *entry =
            HW_ENTRY(HW_POOL_SAMPLE_CONTEXTS, struct hw_sample_context, contexts.slots[at] - 1);
        if (entry->context == context)
            return entry;
    }
    uint32_t i = add_entry(&contexts, at);
    if (i == HW_NONE)
        return NULL;
    struct hw_sample_context *entry = HW_ENTRY(HW_POOL_SAMPLE_CONTEXTS, struct hw_sample_context, i);
    entry->context = context;
    hw_pool_publish(HW_POOL_SAMPLE_CONTEXTS);
    return entry;
}

static struct hw_sample_count *count_entry(const struct hw_sample_count *key)
{
    if (!make_room(&counts))
        return NULL;
    uint64_t hash = mix(mix((uint64_t)key->context << 32 | key->map) + key->offset * 4 + key->kind);
    uint64_t at = hash & counts.mask;
    for (; counts.slots[at]; at = (at + 1) & counts.mask) {
        struct hw_sample_count *entry = HW_ENTRY(HW_POOL_SAMPLE_COUNTS, struct hw_sample_count, counts.slots[at] - 1);
        if (entry->offset == key->offset && entry->context == key->context && entry->map == key->map &&
            entry->kind == key->kind)
            return entry;
    }
    uint32_t i = add_entry(&counts, at);
    if (i == HW_NONE)
        return NULL;
    struct hw_sample_count *entry = HW_ENTRY(HW_POOL_SAMPLE_COUNTS, struct hw_sample_count, i);
    *entry = *key;
    hw_pool_publish(HW_POOL_SAMPLE_COUNTS);
    return entry;
}

/* ---- lines ---- */

enum sharing { ONE_THREAD, SHARED, TRUE_SHARED, FALSE_SHARED };
#define SEVERAL 0xffff

/* A line of a block, as long as that lives. Threads by their number; 0 nobody, SEVERAL more than one. */
struct line {
    uint64_t line, stamp;
    uint16_t word[8];
    uint16_t users, writer;
    uint16_t last, before; /* the latest user, and the one before him */
    uint32_t context;
    uint8_t sharing;
    bool written, shared_word;
    bool back; /* a thread used it again after another one: it was not only handed over */
};
#define LINE_SETS 16384u
#define LINE_WAYS 4u
static struct line (*lines)[LINE_WAYS];
static uint32_t line_hand; /* whom to forget next */

static void use(uint16_t *who, uint16_t thread)
{
    *who = *who == 0 || *who == thread ? thread : SEVERAL;
}

static enum sharing sharing_of(const struct line *line)
{
    if (line->users != SEVERAL)
        return ONE_THREAD;
    if (!line->written)
        return SHARED;
    return !line->back ? ONE_THREAD : line->shared_word ? TRUE_SHARED : FALSE_SHARED;
}

static uint64_t *sharing_counter(struct hw_sample_context *entry, uint8_t sharing)
{
    return sharing == SHARED         ? &entry->lines_shared
           : sharing == TRUE_SHARED  ? &entry->lines_true_shared
           : sharing == FALSE_SHARED ? &entry->lines_false_shared
                                     : NULL;
}

/* What is known of the line now. */
static enum sharing note_line(struct hw_sample_context *entry, const struct hw_hit *hit, uint16_t thread)
{
    if (!lines)
        return ONE_THREAD;
    const uint64_t number = hit->address >> 6;
    struct line *set = lines[mix(number) & (LINE_SETS - 1)], *line = NULL;
    for (unsigned i = 0; i < LINE_WAYS && !line; i++)
        if (set[i].line == number && set[i].stamp == hit->stamp && set[i].context == hit->context)
            line = &set[i];
    for (unsigned i = 0; i < LINE_WAYS && !line; i++)
        if (!set[i].line || set[i].line == number) /* of an older block */
            line = &set[i];
    if (!line)
        line = &set[line_hand++ % LINE_WAYS];
    if (line->line != number || line->stamp != hit->stamp || line->context != hit->context) {
        *line = (struct line){.line = number, .stamp = hit->stamp, .context = hit->context};
        entry->lines++;
    }
    use(&line->users, thread);
    if (thread != line->last) {
        line->back |= thread == line->before;
        line->before = line->last;
        line->last = thread;
    }
    const unsigned word = hit->address >> 3 & 7;
    use(&line->word[word], thread);
    line->shared_word |= line->word[word] == SEVERAL;
    if (hit->flags & HW_TOUCH_WRITE) {
        bool before = line->writer == SEVERAL;
        line->written = true;
        use(&line->writer, thread);
        if (!before && line->writer == SEVERAL)
            entry->lines_writers++;
    }
    uint8_t sharing = (uint8_t)sharing_of(line);
    if (sharing == line->sharing)
        return (enum sharing)sharing;
    uint64_t *before = sharing_counter(entry, line->sharing), *after = sharing_counter(entry, sharing);
    if (before && *before) /* a reset may have been between */
        (*before)--;
    if (after)
        (*after)++;
    line->sharing = sharing;
    return (enum sharing)sharing;
}

/* ---- adding up ---- */

#define EXACT_BYTES 32768u /* from here on, positions in a block are kept by page */

static bool add_count(const struct hw_sample_count *key, uint64_t reads, uint64_t writes)
{
    struct hw_sample_count *entry = count_entry(key);
    if (!entry)
        return false;
    entry->reads += reads;
    entry->writes += writes;
    return true;
}

static bool add_hit(const struct hw_hit *hit, uint16_t thread, uint32_t role)
{
    uint64_t reads = hit->flags & HW_TOUCH_READ ? 1 : 0, writes = hit->flags & HW_TOUCH_WRITE ? 1 : 0;
    if (hit->context == HW_NONE) {
        struct hw_sample_count key = {
            .kind = HW_SAMPLE_GLOBAL, .context = HW_NONE, .map = hit->map, .bytes = 8, .offset = hit->offset & ~7ul};
        return add_count(&key, reads, writes);
    }
    struct hw_sample_context *context = context_entry(hit->context);
    if (!context)
        return false;
    context->reads += reads;
    context->writes += writes;
    enum sharing sharing = note_line(context, hit, thread);
    uint32_t bytes = hit->offset < EXACT_BYTES ? 8 : HW_PAGE;
    struct hw_sample_count word = {.kind = HW_SAMPLE_WORD,
                                   .context = hit->context,
                                   .map = HW_NONE,
                                   .bytes = bytes,
                                   .offset = hit->offset & ~(uint64_t)(bytes - 1)};
    struct hw_sample_count place = {
        .kind = HW_SAMPLE_PLACE, .context = hit->context, .map = HW_NONE, .bytes = 0, .offset = hit->pc};
    const struct hw_module *module = hw_module_of_data(hit->pc);
    if (module) {
        place.map = module->map;
        place.offset = hit->pc - module->bias;
    }
    if (sharing == TRUE_SHARED || sharing == FALSE_SHARED) {
        struct hw_side side = {.context = hit->context,
                               .role = role,
                               .kind = HW_SIDE_SAMPLED,
                               .sharing = sharing == FALSE_SHARED ? HW_SHARING_FALSE : HW_SHARING_TRUE,
                               .map = place.map,
                               .code = place.offset,
                               .offset = hit->offset & ~7ul,
                               .bytes = 8,
                               .reads = reads,
                               .writes = writes};
        hw_side_note(&side, false, true);
    }
    bool fine = add_count(&word, reads, writes);
    return add_count(&place, reads, writes) && fine;
}

/* One after the other, as they came: what fields of blocks and their uses are made of. */
static void log_hits(const struct hw_hits *hits, struct hw_sample_info *info)
{
    static uint32_t bursts; /* lock held */
    bool any = false;
    for (uint32_t i = 0; i < hits->count; i++) {
        const struct hw_hit *hit = &hits->hit[i];
        uint32_t entry = HW_NONE, block = 0;
        if (hit->context == HW_NONE)
            continue;
        if (HW_ENTRIES(HW_POOL_SAMPLE_ACCESSES) < HW_SAMPLE_ACCESSES_MOST)
            entry = hw_pool_take(HW_POOL_SAMPLE_ACCESSES, 1);
        if (entry == HW_NONE) {
            info->accesses_lost++;
            continue;
        }
        const uint64_t start = hit->address - hit->offset;
        while (hits->hit[block].stamp != hit->stamp || hits->hit[block].address - hits->hit[block].offset != start ||
               hits->hit[block].context != hit->context)
            block++;
        bursts += !any || info->source == HW_SAMPLE_PMU;
        any = true;
        const struct hw_module *module = hw_module_of_data(hit->pc);
        *HW_ENTRY(HW_POOL_SAMPLE_ACCESSES, struct hw_sample_access, entry) =
            (struct hw_sample_access){.context = hit->context,
                                      .burst = bursts,
                                      .offset = hit->offset,
                                      .code = module ? hit->pc - module->bias : hit->pc,
                                      .map = module ? module->map : HW_NONE,
                                      .block = (uint8_t)block,
                                      .bytes = hit->bytes,
                                      .flags = (uint8_t)(hit->flags | (start & 56) << 1),
                                      .step = hit->step};
        hw_pool_publish(HW_POOL_SAMPLE_ACCESSES);
    }
}

static struct hw_sample_info *information(void)
{
    return hw_pools[HW_POOL_SAMPLE_INFO].used ? HW_ENTRY(HW_POOL_SAMPLE_INFO, struct hw_sample_info, 0) : NULL;
}

/* What hw_hits.sums counts: everything from `bursts` to `throttled` is a number that adds up. */
static void add_sums(struct hw_sample_info *to, struct hw_sample_info *from)
{
    uint64_t *a = &to->bursts, *b = &from->bursts;
    for (; b <= &from->throttled; a++, b++) {
        *a += *b;
        *b = 0;
    }
}

void hw_samples_flush(struct hw_hits *hits)
{
    if (hw_quiet)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct hw_sample_info *info = information();
    for (uint32_t i = 0; i < hits->count; i++)
        if (!add_hit(&hits->hit[i], hits->thread, hits->role))
            hits->sums.lost++;
    if (info)
        log_hits(hits, info);
    hits->count = 0;
    if (info)
        add_sums(info, &hits->sums);
    if (hw_places.even)
        hw_places_add_hits(&hits->places);
    hw_lock_drop(&hw_runtime.lock, old);
}

bool hw_samples_begin(enum hw_sample_source source, uint64_t burst_length, uint64_t period, int error)
{
    /* A forked child: the section is its own, and empty again. */
    contexts.slots = counts.slots = NULL;
    contexts.mask = contexts.count = counts.mask = counts.count = 0;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool fine = information() || hw_pool_take(HW_POOL_SAMPLE_INFO, 1) != HW_NONE;
    if (fine) {
        hw_pool_publish(HW_POOL_SAMPLE_INFO);
        *information() = (struct hw_sample_info){
            .source = source,
            .frequency = hw_options.sample_accesses,
            .burst_length = burst_length,
            .period = period,
            .error = error,
        };
    }
    hw_lock_drop(&hw_runtime.lock, old);
    hw_places_sampled();
    if (fine && !lines)
        lines = hw_own_pages(LINE_SETS * sizeof *lines, true);
    return fine;
}

void hw_samples_thread(void)
{
    struct hw_sample_info *info = information();
    if (info)
        __atomic_fetch_add(&info->threads, 1, __ATOMIC_RELAXED);
}

void hw_samples_ended(enum hw_sample_end reason, int error)
{
    struct hw_sample_info *info = information();
    if (info && !info->ended) {
        info->error = error ? error : info->error;
        info->ended = reason;
    }
}

void hw_samples_reset(void)
{
    struct hw_sample_info *info = information();
    if (!info)
        return;
    for (uint64_t *sum = &info->bursts; sum <= &info->throttled; sum++)
        *sum = 0;
    info->accesses_from = HW_ENTRIES(HW_POOL_SAMPLE_ACCESSES);
    info->accesses_lost = 0;
    for (uint32_t i = 0; i < contexts.count; i++) {
        struct hw_sample_context *entry = HW_ENTRY(HW_POOL_SAMPLE_CONTEXTS, struct hw_sample_context, i);
        *entry = (struct hw_sample_context){.context = entry->context};
    }
    for (uint32_t i = 0; i < counts.count; i++) {
        struct hw_sample_count *entry = HW_ENTRY(HW_POOL_SAMPLE_COUNTS, struct hw_sample_count, i);
        entry->reads = entry->writes = 0;
    }
    for (uint32_t i = 0; lines && i < LINE_SETS; i++)
        for (uint32_t way = 0; way < LINE_WAYS; way++)
            if (lines[i][way].line)
                lines[i][way] = (struct line){0};
}
