/* random_allocator.h - what was observed of the allocator itself, by chance: for random_profiles.h, which includes it.
 */
#ifndef HW_TEST_RANDOM_ALLOCATOR_H
#define HW_TEST_RANDOM_ALLOCATOR_H

static void make_info(struct maker *maker)
{
    struct hw_allocator_info *info = make_table(maker, HW_SECTION_ALLOCATOR_INFO, 1);
    *info = (struct hw_allocator_info){.flags = (uint32_t)(below(2) | (below(3) ? HW_ALLOCATOR_BYTES : 0)),
                                       .phase = (uint32_t)below(2),
                                       .clock_ticks = below(100),
                                       .timed = any_count(),
                                       .timed_weight = any_count(),
                                       .shift_most = (uint32_t)below(20),
                                       .threads_alive = (uint32_t)below(5),
                                       .own_ticks = any_count(),
                                       .first_left_out = any_count(),
                                       .interrupted = any_count(),
                                       .interrupted_ticks = any_count(),
                                       .tracked = any_count(),
                                       .tracked_live = below(1000),
                                       .stages = below(20),
                                       .hook_ticks = any_count(),
                                       .call_ticks = any_count()};
}

static uint32_t any_bucket(void)
{
    return (uint32_t)(below(3) ? below(6) : below(HW_SIZE_BUCKETS));
}

static void make_operations(struct maker *maker)
{
    const size_t slots = 1 + below(2), timed = below(12), lived = below(12);
    struct hw_operation_counts *counts = make_table(maker, HW_SECTION_OPERATION_COUNTS, slots * HW_SIZE_BUCKETS);
    struct hw_operation_times *times = make_table(maker, HW_SECTION_OPERATION_TIMES, timed);
    struct hw_operation_lives *lives = make_table(maker, HW_SECTION_OPERATION_LIVES, lived);
    for (size_t i = 0; i < 30; i++)
        counts[below(slots * HW_SIZE_BUCKETS)].count[below(HW_PHASES)][below(HW_OPERATION_BYTES + 1)] = any_count();
    for (size_t i = 0; i < timed; i++) {
        times[i] = (struct hw_operation_times){.phase = (uint32_t)below(HW_PHASES),
                                               .kind = (uint32_t)below(HW_OPERATION_KINDS),
                                               .bucket = any_bucket(),
                                               .samples = any_count(),
                                               .weight = any_count(),
                                               .ticks = any_count(),
                                               .most = any_count(),
                                               .inside_ticks = any_count(),
                                               .exact_ticks = any_count()};
        for (size_t k = 0; k < 20; k++)
            times[i].histogram[below(240)] = any_count();
    }
    for (size_t i = 0; i < lived; i++) {
        lives[i] = (struct hw_operation_lives){.bucket = any_bucket(),
                                               .samples = 1 + any_count() / 2,
                                               .weight = any_count(),
                                               .freed = any_count(),
                                               .freed_elsewhere = any_count()};
        for (size_t k = 0; k < 8; k++)
            lives[i].histogram[below(HW_LIFE_BINS)] = any_count();
    }
}

static void make_inside(struct maker *maker, const struct placing *placing)
{
    const size_t calls = below(3) ? below(20) : 0, locks = below(3) ? 1 + below(12) : 0, events = below(12);
    struct hw_operation_call *call = make_table(maker, HW_SECTION_OPERATION_CALLS, calls);
    struct hw_operation_lock *lock = make_table(maker, HW_SECTION_OPERATION_LOCKS, locks);
    struct hw_operation_events *event = make_table(maker, HW_SECTION_OPERATION_EVENTS, events);
    for (size_t i = 0; i < calls; i++)
        call[i] = (struct hw_operation_call){.call = (uint32_t)below(HW_SYSTEM_CALLS + 2),
                                             .phase = (uint16_t)below(HW_PHASES),
                                             .kind = (uint16_t)below(HW_OPERATION_KINDS),
                                             .count = any_count(),
                                             .errors = any_count(),
                                             .ticks = any_count(),
                                             .bytes = any_count()};
    for (size_t i = 0; i < locks; i++) {
        const uint32_t module = (uint32_t)below(MODULES - 1);
        const uint64_t offset = code_start(module) + 16 * below(2) + (module == 3 ? placing->bias >> 40 : 0);
        lock[i] = (struct hw_operation_lock){
            .kind = i ? (uint32_t)below(HW_LOCK_FUTEX + 2) : HW_LOCK_OTHERS, .map = HW_NONE, .waiting_most = below(9)};
        if (!lock[i].kind)
            continue;
        lock[i].map = below(3) ? map_of(placing, module) : HW_NONE;
        lock[i].address = offset + bias_of(placing, module);
        lock[i].offset = lock[i].map == HW_NONE ? lock[i].address : offset;
        lock[i].wait_ticks_most = any_count();
        lock[i].critical_ticks_most = any_count();
        lock[i].use[below(2)][below(HW_OPERATION_KINDS)] =
            (struct hw_lock_use){any_count(), any_count(), any_count(), any_count(), any_count(), any_count()};
    }
    for (size_t i = 0; i < events; i++) {
        event[i] = (struct hw_operation_events){.bucket = any_bucket(),
                                                .phase = (uint16_t)below(HW_PHASES),
                                                .kind = (uint16_t)below(HW_OPERATION_KINDS),
                                                .present = below(3) ? 15 : 8 + below(3),
                                                .samples = any_count()};
        for (size_t k = 0; k < HW_OPERATION_EVENTS; k++)
            event[i].sum[k] = any_count();
    }
}

static void make_stacked_operations(struct maker *maker, size_t contexts, uint64_t end)
{
    const size_t sites = below(30), slowest = below(HW_SLOWEST + 1), stages = below(8);
    struct hw_operation_site *site = make_table(maker, HW_SECTION_OPERATION_SITES, sites);
    struct hw_slow_operation *slow = make_table(maker, HW_SECTION_SLOWEST, slowest);
    struct hw_operation_stage *stage = make_table(maker, HW_SECTION_STAGES, stages);
    for (size_t i = 0; i < sites; i++)
        site[i] = (struct hw_operation_site){.context = (uint32_t)below(contexts),
                                             .kind = (uint32_t)below(HW_OPERATION_KINDS),
                                             .samples = any_count(),
                                             .weight = any_count(),
                                             .ticks = any_count(),
                                             .most = any_count(),
                                             .bytes = any_count()};
    for (size_t i = 0; i < slowest; i++)
        slow[i] = (struct hw_slow_operation){.ticks = below(4) ? 1000 + below(3) : below(100000), /* often the same */
                                             .tick = below(3) ? 500 : below(end),
                                             .size = below(9) ? below(3) : UINT64_MAX,
                                             .context = (uint32_t)below(contexts),
                                             .kind = (uint32_t)below(2),
                                             .phase = (uint32_t)below(HW_PHASES),
                                             .thread = (uint32_t)below(2),
                                             .shift = (uint32_t)below(2)};
    for (size_t i = 0; i < stages; i++) {
        stage[i] = (struct hw_operation_stage){.stage = (uint32_t)(i / 2),
                                               .phase = (uint32_t)(i / 2 % 2),
                                               .thread = (uint32_t)(i % 2),
                                               .begin = end / 10 * (i / 2),
                                               .end = end / 10 * (i / 2 + 1)};
        stage[i].kind[below(HW_OPERATION_KINDS)] = (struct hw_stage_kind){any_count(), any_count()};
    }
}

/* Two sets of facts, so that they often agree. */
static void make_facts(struct maker *maker)
{
    const uint64_t which = below(3);
    struct hw_allocator_facts *facts = make_table(maker, HW_SECTION_ALLOCATOR_FACTS, which != 0);
    struct hw_size_class *classes = make_table(maker, HW_SECTION_SIZE_CLASSES, which ? 2 + which : 0);
    struct hw_allocator_prediction *predictions = make_table(maker, HW_SECTION_PREDICTIONS, below(2));
    if (which) {
        *facts = (struct hw_allocator_facts){.flags = HW_FACTS_PROBED, .medium = 512 * which, .large = 65536 * which};
        strcpy(facts->name, which == 1 ? "glibc" : "jemalloc");
        for (size_t i = 0; i < 2 + which; i++)
            classes[i].size = 16 * (i + which);
    }
    if (maker->tables.of[HW_SECTION_PREDICTIONS].count) {
        *predictions =
            (struct hw_allocator_prediction){.replays = 3, .speedup = 1100000 + below(2), .low = 1, .high = 2};
        strcpy(predictions->allocator, "mimalloc");
    }
}

static int64_t any_signed(void)
{
    return below(20) ? (int64_t)below(100000) - 100 : (int64_t)next_random();
}

static void make_state(struct hw_usable_class_state *class)
{
    *class = (struct hw_usable_class_state){any_signed(), any_signed(), any_signed(), any_signed(), any_signed(),
                                            any_signed(), any_signed(), any_signed(), any_signed()};
}

static void make_places(struct maker *maker, size_t contexts, uint64_t end)
{
    const size_t classes = below(8), points = below(5), moments = below(3), pinned = below(12), pairs = below(12);
    struct hw_places_info *info = make_table(maker, HW_SECTION_PLACES, 1);
    struct hw_usable_class *class = make_table(maker, HW_SECTION_PLACE_CLASSES, classes);
    struct hw_places_point *point = make_table(maker, HW_SECTION_PLACES_TIME, points);
    struct hw_places_moment *moment = make_table(maker, HW_SECTION_PLACES_MOMENTS, moments);
    struct hw_pinned *pin = make_table(maker, HW_SECTION_PINNED, pinned);
    struct hw_line_pair *pair = make_table(maker, HW_SECTION_LINE_PAIRS, pairs);
    *info = (struct hw_places_info){.flags = (uint32_t)below(4),
                                    .tick = below(5) ? 1 + below(end) : 0,
                                    .requested_bytes = (int64_t)below(1000),
                                    .peak_bytes = 1000 + below(1000),
                                    .peak_tick = below(end),
                                    .active_lines = any_count(),
                                    .passive_blocks = any_count(),
                                    .unaligned = any_count(),
                                    .samples = any_count(),
                                    .page_bytes = any_count(),
                                    .contended_word = any_count(),
                                    .passive_contended = any_count()};
    for (size_t i = 0; i < classes; i++) {
        class[i].usable_most = 8 * (1 + (i ? below(12) : 0));
        class[i].usable_least = class[i].usable_most - 7;
        make_state(&class[i].now);
        make_state(&class[i].peak);
    }
    for (size_t i = 0; i < points; i++)
        point[i] = (struct hw_places_point){.tick = end / 5 * i,
                                            .requested_bytes = (int64_t)below(1000),
                                            .resident_bytes = below(2) ? any_count() : 0,
                                            .waiting_ticks = any_count(),
                                            .shared_lines = any_count(),
                                            .external_bytes = any_signed()};
    for (size_t i = 0; i < moments; i++)
        moment[i] = (struct hw_places_moment){.tick = below(end),
                                              .moment = (uint32_t)i,
                                              .requested_bytes = 800 + (int64_t)below(1200),
                                              .internal_bytes = any_signed(),
                                              .blowup_bytes = any_signed(),
                                              .free_bytes = any_signed(),
                                              .absent_requested = below(100),
                                              .absent_free = any_count(),
                                              .resident_bytes = below(5) ? any_count() : 0,
                                              .elsewhere_bytes = any_count()};
    for (size_t i = 0; i < pinned; i++)
        pin[i] =
            (struct hw_pinned){(uint32_t)below(contexts), (uint32_t)below(2), any_count(), any_count(), any_count()};
    for (size_t i = 0; i < pairs; i++)
        pair[i] = (struct hw_line_pair){below(9) ? (uint32_t)below(contexts) : HW_NONE,
                                        below(9) ? (uint32_t)below(contexts) : HW_NONE, any_count(), any_count()};
}

static void make_observed(struct maker *maker, const struct placing *placing, size_t contexts, uint64_t end)
{
    ((struct hw_process_info *)maker->tables.of[HW_SECTION_PROCESS].entries)->mode = HW_MODE_ALLOCATOR;
    make_info(maker);
    make_operations(maker);
    make_inside(maker, placing);
    make_stacked_operations(maker, contexts, end);
    make_facts(maker);
    if (below(5))
        make_places(maker, contexts, end);
}

#endif
