/* program.c - see program.h. */
#include "allocators/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLAYED_MOST 200000u /* allocations of a phase in a replay: some hundredths of a second */
#define SPREAD        2.0     /* standard deviation of operations' times, by their mean: usual */
#define LIVE_LEAST    ((uint64_t)32 << 20)

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

static bool has_lives(const struct hw_mix_bucket *bucket)
{
    uint64_t all = bucket->kept;
    for (int k = 0; k < HW_MIX_LIFE_BITS; k++)
        all += bucket->lives[k];
    return all > 0;
}

/* Sizes of which no block was followed: as the next ones of which some were. */
static void fill_lives(struct hw_mix *mix)
{
    bool known[HW_SIZE_BUCKETS];
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
        known[b] = has_lives(&mix->of[b]);
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
        for (unsigned away = 1; !known[b] && away < HW_SIZE_BUCKETS; away++) {
            const struct hw_mix_bucket *near = b >= away && known[b - away]                    ? &mix->of[b - away]
                                               : b + away < HW_SIZE_BUCKETS && known[b + away] ? &mix->of[b + away]
                                                                                               : NULL;
            if (!near)
                continue;
            memcpy(mix->of[b].lives, near->lives, sizeof near->lives);
            mix->of[b].kept = near->kept;
            mix->of[b].crossed = near->crossed;
            break;
        }
    }
}

static void take_lives(struct hw_mix *mix, const struct hw_profile_allocator *observed)
{
    _Static_assert(HW_LIFE_BINS == HW_MIX_LIFE_BITS, "bins of lives");
    for (size_t i = 0; i < observed->lives_count; i++) {
        const struct hw_operation_lives *lives = &observed->lives[i];
        if (lives->bucket >= HW_SIZE_BUCKETS)
            continue;
        struct hw_mix_bucket *bucket = &mix->of[lives->bucket];
        memcpy(bucket->lives, lives->histogram, sizeof bucket->lives);
        bucket->kept = lives->weight > lives->freed ? lives->weight - lives->freed : 0;
        bucket->crossed = lives->freed_elsewhere;
    }
    fill_lives(mix);
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
        if (stage->phase == HW_MIX_PARALLEL && stage->thread_count > data->threads_most)
            data->threads_most = (uint32_t)stage->thread_count;
    }
    data->program.stages = data->stages;
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
    take_lives(&data->mix, observed);
    data->mix.seed = 1;
    data->mix.limit = REPLAYED_MOST;
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
