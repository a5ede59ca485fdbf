/* program.c - see program.h. */
#include "allocators/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLAYED_MOST  200000u /* allocations of a phase in a replay: some hundredths of a second */
#define REPLAYED_LEAST 200u
#define TOUCHED_MOST   (128ull << 20) /* bytes of blocks in a replay, on average: large blocks take long to touch */
#define BLOCK_MOST     (16u << 20)    /* a replay touches no more of one block */
#define SPREAD         2.0            /* standard deviation of operations' times, by their mean: usual */
#define LIVE_LEAST     ((uint64_t)32 << 20)

static const int kinds[HW_OPERATION_KINDS] = {
    [HW_OPERATION_NEW] = HW_MIX_MALLOC,      [HW_OPERATION_REUSED] = HW_MIX_MALLOC,
    [HW_OPERATION_FREE] = HW_MIX_FREE,       [HW_OPERATION_CALLOC] = HW_MIX_CALLOC,
    [HW_OPERATION_REALLOC] = HW_MIX_REALLOC, [HW_OPERATION_ALIGNED] = HW_MIX_ALIGNED,
};

/* ---- operations ---- */

static void take_operations(struct hw_program_data *data, const struct hw_profile_allocator *observed)
{
    double samples = 0;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t b = 0; b < HW_SIZE_BUCKETS; b++) {
                const struct hw_profile_operation *operation = hw_profile_operation(observed, phase, kind, b);
                struct hw_cost *cost = &data->program.phases[phase].operations[kinds[kind]][b];
                if (operation->count == 0)
                    continue;
                cost->count += (double)operation->count;
                cost->ticks += hw_profile_operation_total(operation);
                samples += (double)operation->samples;
                if (kind != HW_OPERATION_FREE && b != HW_SIZE_BUCKET_UNKNOWN)
                    data->mix.of[b].count[phase][kinds[kind]] += operation->count;
            }
    data->program.own_error = samples > 0 ? fmin(SPREAD / sqrt(samples), 1) : 1;
}

/* ---- lives ---- */

#define FOLLOWED_LEAST 24 /* blocks that a distribution of lives is made of */

static const struct hw_operation_lives *lives_of(const struct hw_profile_allocator *observed, unsigned bucket)
{
    for (size_t i = 0; i < observed->lives_count; i++)
        if (observed->lives[i].bucket == bucket)
            return &observed->lives[i];
    return NULL;
}

/* Few blocks are followed: sizes around help out until there are enough that have been freed. */
static void take_bucket(struct hw_mix_bucket *bucket, const struct hw_operation_lives *const of[HW_SIZE_BUCKETS],
                        unsigned at)
{
    uint64_t samples = 0;
    for (unsigned reach = 0; reach < HW_SIZE_BUCKETS && samples < FOLLOWED_LEAST; reach++) {
        for (int side = reach ? -1 : 1; side <= 1; side += 2) {
            const long b = (long)at + side * (long)reach;
            if (b < 0 || b >= (long)HW_SIZE_BUCKETS || !of[b] || !of[b]->freed)
                continue;
            for (int k = 0; k < HW_MIX_LIFE_BITS; k++)
                bucket->lives[k] += of[b]->histogram[k];
            bucket->crossed += of[b]->freed_elsewhere;
            samples += of[b]->samples;
        }
    }
}

/* Reallocations that make blocks: as many as frees need that have no other allocation. */
static double fresh_share(const struct hw_program_data *data)
{
    double allocated = 0, freed = 0, reallocated = 0;
    for (int phase = 0; phase < HW_MIX_PHASES; phase++)
        for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
            const struct hw_cost(*of)[HW_SIZE_BUCKETS] = data->program.phases[phase].operations;
            allocated += of[HW_MIX_MALLOC][b].count + of[HW_MIX_CALLOC][b].count + of[HW_MIX_ALIGNED][b].count;
            freed += of[HW_MIX_FREE][b].count;
            reallocated += of[HW_MIX_REALLOC][b].count;
        }
    return reallocated > 0 && freed > allocated ? fmin((freed - allocated) / reallocated, 1) : 0;
}

/* How many blocks were freed at all is known exactly: of each size, or, where blocks change their size, of all. */
static double freed_share(const struct hw_program_data *data, unsigned bucket)
{
    double allocated = 0, freed = 0, grown = 0, all_allocated = 0, all_freed = 0;
    for (int phase = 0; phase < HW_MIX_PHASES; phase++)
        for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
            const struct hw_cost(*of)[HW_SIZE_BUCKETS] = data->program.phases[phase].operations;
            const double here = of[HW_MIX_MALLOC][b].count + of[HW_MIX_CALLOC][b].count + of[HW_MIX_ALIGNED][b].count +
                                of[HW_MIX_REALLOC][b].count * (double)data->mix.fresh * 1e-3;
            all_allocated += here;
            all_freed += of[HW_MIX_FREE][b].count;
            if (b != bucket)
                continue;
            allocated += here;
            freed += of[HW_MIX_FREE][b].count;
            grown += of[HW_MIX_REALLOC][b].count;
        }
    if (grown * 100 < allocated)
        return allocated > 0 ? fmin(freed / allocated, 1) : 0;
    return all_allocated > 0 ? fmin(all_freed / all_allocated, 1) : 0;
}

static void take_lives(struct hw_program_data *data, const struct hw_profile_allocator *observed)
{
    _Static_assert(HW_LIFE_BINS == HW_MIX_LIFE_BITS, "bins of lives");
    const struct hw_operation_lives *of[HW_SIZE_BUCKETS];
    data->mix.fresh = (uint64_t)(1000 * fresh_share(data));
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
        of[b] = lives_of(observed, b);
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
        struct hw_mix_bucket *bucket = &data->mix.of[b];
        uint64_t ended = 0;
        take_bucket(bucket, of, b);
        for (int k = 0; k < HW_MIX_LIFE_BITS; k++)
            ended += bucket->lives[k];
        const double share = freed_share(data, b);
        if (ended == 0)
            bucket->kept = 1; /* nothing is known of frees */
        else if (share < 1)
            bucket->kept = (uint64_t)((double)ended * (1 - share) / fmax(share, 1e-6));
    }
}

/* ---- stages ---- */

static void take_thread(struct hw_stage_thread *thread, const struct hw_operation_stage *entry)
{
    thread->wall = entry->end > entry->begin ? (double)(entry->end - entry->begin) : 0;
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        thread->kinds[kinds[kind]].count += (double)entry->kind[kind].count;
        thread->kinds[kinds[kind]].ticks += (double)entry->kind[kind].ticks;
    }
}

static bool take_stages(struct hw_program_data *data, const struct hw_profile_allocator *observed)
{
    const size_t count = observed->stage_count;
    data->stages = calloc(count ? count : 1, sizeof *data->stages);
    data->threads = calloc(count ? count : 1, sizeof *data->threads);
    if (!data->stages || !data->threads)
        return false;
    struct hw_stage *stage = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct hw_operation_stage *entry = &observed->stages[i];
        if (!stage || entry->stage != entry[-1].stage || (entry->flags & HW_STAGE_REST)) {
            stage = &data->stages[data->program.stage_count++];
            stage->phase = entry->phase == HW_PHASE_PARALLEL ? HW_MIX_PARALLEL : HW_MIX_SERIAL;
            stage->threads = &data->threads[i];
        }
        take_thread(&data->threads[i], entry);
        stage->thread_count++;
    }
    data->program.stages = data->stages;
    for (size_t i = 0; i < data->program.stage_count; i++) {
        const size_t working = hw_stage_working(&data->stages[i]);
        if (data->stages[i].phase == HW_MIX_PARALLEL && working > data->threads_most)
            data->threads_most = (uint32_t)working;
    }
    return true;
}

/* ---- */

static uint64_t memory_to_use(const struct hw_profile *profile)
{
    const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const uint64_t most = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 4 : LIVE_LEAST;
    const uint64_t peak = profile->process.peak_bytes + profile->process.peak_bytes / 4 + LIVE_LEAST;
    return peak < most ? peak : most;
}

/* As many allocations as touch a bounded amount of memory. */
static uint64_t replayed(const struct hw_mix *mix)
{
    double bytes = 0, allocations = 0;
    for (uint32_t b = 0; b < HW_SIZE_BUCKETS; b++)
        for (int phase = 0; phase < HW_MIX_PHASES; phase++)
            for (int kind = 0; kind < HW_MIX_FREE; kind++) {
                const uint64_t size = hw_size_bucket_least(b) < BLOCK_MOST ? hw_size_bucket_least(b) : BLOCK_MOST;
                bytes += (double)mix->of[b].count[phase][kind] * (double)size;
                allocations += (double)mix->of[b].count[phase][kind];
            }
    const double most = bytes > 0 ? TOUCHED_MOST / (bytes / allocations) : REPLAYED_MOST;
    return most >= REPLAYED_MOST ? REPLAYED_MOST : most <= REPLAYED_LEAST ? REPLAYED_LEAST : (uint64_t)most;
}

struct hw_program_data *hw_program_data_new(const struct hw_profile *profile, unsigned cpus, struct hw_error *error)
{
    const struct hw_profile_allocator *observed = profile->observed;
    struct hw_program_data *data = calloc(1, sizeof *data);
    if (!data || !take_stages(data, observed)) {
        hw_error_set(error, "not enough memory");
        hw_program_data_free(data);
        return NULL;
    }
    take_operations(data, observed);
    take_lives(data, observed);
    data->mix.seed = 1;
    data->mix.limit = replayed(&data->mix);
    data->mix.live_most = memory_to_use(profile);
    data->mix.threads = data->threads_most < 2 ? 1 : data->threads_most < cpus ? data->threads_most : cpus;
    if (data->mix.threads > HW_MIX_THREADS_MOST)
        data->mix.threads = HW_MIX_THREADS_MOST;
    if (hw_program_time(&data->program) > 0 &&
        hw_mix_allocations(&data->mix, HW_MIX_SERIAL) + hw_mix_allocations(&data->mix, HW_MIX_PARALLEL) > 0)
        return data;
    hw_error_set(error, "the profile has no operations to replay");
    hw_program_data_free(data);
    return NULL;
}

void hw_program_data_free(struct hw_program_data *data)
{
    if (!data)
        return;
    free(data->stages);
    free(data->threads);
    free(data);
}
