/* test_report.c - the report on profiles made by hand: golden texts, JSON, folding, numbers.
 *
 * HEAPWISE_UPDATE_GOLDEN=1 in the environment writes tests/golden anew; look at the difference before you keep it. */
#include <inttypes.h>
#include <stdio.h>

#include "report_check.h"

#include "report/text/human.h"
#include "report/view/measure.h"
#include "report/view/call_paths.h"
#include "report/text/stack_fold.h"

#include <jansson.h>

/* ---- golden texts ---- */

static struct report_sample *plain_sample(void)
{
    return report_sample();
}

static struct report_sample *sampled_sample(void)
{
    struct report_sample *sample = report_sample();
    sample->process.sample_bytes = 512 << 10;
    for (uint32_t i = 0; i < sample->context_count; i++)
        sample->mibs[i].samples = 1 + sample->mibs[i].bytes / (512 << 10);
    return sample;
}

static struct report_sample *killed_sample(void)
{
    struct report_sample *sample = report_sample();
    sample->process.exit_kind = HW_EXIT_UNKNOWN;
    sample->timeline_count = sample->memory_count = sample->note_count = 0;
    return sample;
}

static struct report_sample *empty_sample(void)
{
    struct report_sample *sample = killed_sample();
    sample->context_count = 1;
    sample->free_stack_count = 0;
    memset(&sample->mibs[0], 0, sizeof sample->mibs[0]);
    sample->thread = (struct hw_thread_entry){.serial = 1};
    sample->process.peak_bytes = 0;
    sample->process.live_bytes = sample->process.live_blocks = 0;
    return sample;
}

static const struct golden {
    const char *name;
    struct report_sample *(*make)(void);
    bool sealed;
    size_t widest; /* no line may be wider; 0: does not matter */
    struct hw_report_options options;
} goldens[] = {
    {"report.txt", plain_sample, true, 80, {.width = 80, .utf8 = true}},
    {"report_ascii.txt", plain_sample, true, 80, {.width = 80}},
    {"report_wide_color.txt", plain_sample, true, 0, {.width = 120, .utf8 = true, .color = true, .top = 3}},
    {"report_full.txt",
     plain_sample,
     true,
     0,
     {.width = 80, .full = true, .top = 20, .sections = 1ull << HW_REPORT_LISTS}},
    {"report_sampled.txt", sampled_sample, true, 80, {.width = 80, .top = 2}},
    {"report_killed.txt", killed_sample, false, 80, {.width = 80, .top = 1}},
    {"report_empty.txt", empty_sample, false, 80, {.width = 80}},
    {"report_other_lists.txt",
     plain_sample,
     true,
     80,
     {.width = 80,
      .top = 2,
      .sections = 1ull << (HW_REPORT_LISTS + HW_SORT_MEAN_LIFETIME) | 1ull << (HW_REPORT_LISTS + HW_SORT_REALLOC) |
                  1ull << (HW_REPORT_LISTS + HW_SORT_THREADS)}},
    {"report_access.txt", access_sample, true, 80, {.width = 80, .utf8 = true}},
    {"report_access_fine.txt",
     fine_access_sample,
     false,
     80,
     {.width = 80,
      .top = 3,
      .sections = 1ull << HW_REPORT_SUMMARY | 1ull << HW_REPORT_ACCESS | 1ull << HW_REPORT_GLOBALS |
                  1ull << (HW_REPORT_LISTS + HW_SORT_DENSITY) | 1ull << (HW_REPORT_LISTS + HW_SORT_SHARING) |
                  1ull << HW_REPORT_NOT_OBSERVED}},
    {"report_access_none.txt",
     plain_sample,
     true,
     80,
     {.width = 80,
      .sections = 1ull << HW_REPORT_ACCESS | 1ull << HW_REPORT_GLOBALS | 1ull << (HW_REPORT_LISTS + HW_SORT_COLD)}},
};

static void golden_texts(void **state)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        struct reported reported = open_sample(golden->make(), golden->sealed);
        char *text = report_string(hw_report_text, &reported, &golden->options);
        compare_with_golden(golden->name, text);
        if (golden->widest && widest_line(text) > golden->widest)
            fail_msg("%s: a line of %zu columns", golden->name, widest_line(text));
        free(text);
        close_sample(&reported);
    }
}

static void running_process_is_called_running(void **state)
{
    struct reported reported = open_sample(killed_sample(), false);
    reported.profile->running = true;
    const struct hw_report_options options = {.width = 80};
    char *text = report_string(hw_report_text, &reported, &options);
    assert_non_null(strstr(text, "still running"));
    assert_non_null(strstr(text, "Live now: "));
    assert_null(strstr(text, "exit"));
    free(text);
    close_sample(&reported);
}

/* ---- the view ---- */

static void contexts_of_a_library_loaded_twice_are_one(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    const struct hw_view *view = reported.view;
    size_t merged = 0;
    uint64_t allocations = 0, bytes = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        merged += view->contexts[i].merged == 2;
        allocations += view->contexts[i].sum.allocations;
        bytes += view->contexts[i].sum.bytes;
        if (view->contexts[i].merged == 2) {
            assert_int_equal(view->contexts[i].sum.allocations, 2000);
            assert_int_equal(view->contexts[i].sum.live_blocks, 10);
        }
    }
    assert_int_equal(merged, 1);
    assert_int_equal(view->context_count, reported.profile->context_count - 1);
    assert_int_equal(allocations, reported.profile->totals.allocations);
    assert_int_equal(bytes, reported.profile->totals.bytes);
    close_sample(&reported);
}

static void same_path_with_another_build_id_is_another_module(void **state)
{
    struct report_sample *sample = report_sample();
    sample->maps[MAP_PLUGIN_AGAIN].build_id[0]++;
    struct reported reported = open_sample(sample, true);
    assert_int_equal(reported.view->context_count, reported.profile->context_count);
    close_sample(&reported);
}

static void frames_of_the_runtime_are_not_in_stacks(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    struct hw_view_stack stack = {0};
    for (size_t i = 0; i < reported.view->context_count; i++) {
        assert_true(hw_view_stack(reported.view, reported.view->contexts[i].sum.leaf, &stack));
        for (size_t k = 0; k < stack.count; k++)
            assert_false(stack.frames[k].module && stack.frames[k].module->flags & HW_MAP_RUNTIME);
    }
    hw_view_stack_free(&stack);
    close_sample(&reported);
}

/* The two depths of parse_value; all else stays as it is. */
static void stacks_that_only_recurse_otherwise_are_one_place(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    struct hw_places places;
    assert_true(hw_places_make(&places, reported.view, false));
    assert_int_equal(places.count, reported.view->context_count - 1);
    uint64_t allocations = 0;
    for (size_t i = 0; i < places.count; i++) {
        const bool recursive = places.place[i].stacks == 2;
        assert_true(recursive || places.place[i].stacks == 1);
        assert_int_equal(recursive, places.place[i].sum.allocations == 4101200);
        allocations += places.place[i].sum.allocations;
    }
    assert_int_equal(allocations, reported.profile->totals.allocations);
    hw_places_free(&places);
    assert_true(hw_places_make(&places, reported.view, true));
    assert_int_equal(places.count, reported.view->context_count);
    hw_places_free(&places);
    close_sample(&reported);
}

static void sorted_lists_fall(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    for (int key = 0; key < HW_SORT_KEYS; key++) {
        size_t count;
        uint32_t *order =
            hw_view_sorted(reported.view->contexts, reported.view->context_count, (enum hw_sort_key)key, true, &count);
        assert_non_null(order);
        assert_int_equal(count, reported.view->context_count);
        for (size_t i = 1; i < count; i++)
            assert_true(hw_sort_value((enum hw_sort_key)key, &reported.view->contexts[order[i - 1]]) >=
                        hw_sort_value((enum hw_sort_key)key, &reported.view->contexts[order[i]]));
        free(order);
    }
    close_sample(&reported);
}

/* ---- JSON ---- */

static json_t *report_object(struct reported *reported, const struct hw_report_options *options)
{
    char *text = report_string(hw_report_json, reported, options);
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        fail_msg("line %d: %s\n%s", error.line, error.text, text);
    free(text);
    return object;
}

static json_t *member(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("no key '%s'", key);
    return value;
}

static void has_keys(json_t *object, const char *keys)
{
    char *copy = strdup(keys);
    for (char *save, *key = strtok_r(copy, " ", &save); key; key = strtok_r(NULL, " ", &save))
        member(object, key);
    free(copy);
}

/* The keys that are fixed, as far as heap mode measures them. */
static void json_has_the_keys(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    json_t *object = report_object(&reported, &(struct hw_report_options){0}), *context;
    has_keys(object, "format process totals contexts timeline not_observed memory modules notes");
    has_keys(member(object, "process"), "pid command executable build_id started_ns duration_ns exit mode allocator");
    has_keys(member(object, "totals"), "allocations frees reallocations bytes_allocated peak_bytes peak_time_ns "
                                       "live_allocations live_bytes temporary_allocations threads contexts "
                                       "peak_rss_bytes");
    assert_null(json_object_get(member(object, "totals"), "accesses"));
    assert_int_equal(json_integer_value(member(member(member(object, "process"), "exit"), "code")), 0);
    size_t index;
    json_array_foreach(member(object, "contexts"), index, context)
    {
        has_keys(context,
                 "id stack type allocations frees reallocations temporary bytes size live_allocations live_bytes "
                 "peak_bytes lifetime_ns threads migrated_cpu lifetime_overlaps same_alloc_cpu same_free_cpu "
                 "free_stacks live_age_ns realloc");
        has_keys(member(context, "size"), "min max mean");
        assert_null(json_object_get(context, "accesses"));
        /* a number that was added later, in a file of before */
        assert_true(json_is_null(member(member(context, "realloc"), "moved_bytes")));
        assert_null(json_object_get(context, "sampled"));
        json_t *frame;
        size_t k;
        json_array_foreach(member(context, "stack"), k, frame)
        {
            has_keys(frame, "function file line column module offset inlined");
            assert_false(json_is_string(member(frame, "module")) &&
                         strstr(json_string_value(member(frame, "module")), "libheapwise"));
        }
    }
    has_keys(json_array_get(member(object, "timeline"), 0), "time_ns live_bytes rss_bytes allocations frees");
    assert_true(json_is_null(member(json_array_get(member(object, "timeline"), 1), "rss_bytes")));
    json_decref(object);
    close_sample(&reported);
}

static void json_contexts_sum_to_the_totals(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    json_t *object = report_object(&reported, &(struct hw_report_options){0}), *context;
    json_int_t allocations = 0, bytes = 0, live = 0;
    size_t index, widest = 0;
    json_array_foreach(member(object, "contexts"), index, context)
    {
        allocations += json_integer_value(member(context, "allocations"));
        bytes += json_integer_value(member(context, "bytes"));
        live += json_integer_value(member(context, "live_bytes"));
        if (json_array_size(member(context, "stack")) > widest)
            widest = json_array_size(member(context, "stack"));
    }
    json_t *totals = member(object, "totals");
    assert_int_equal(allocations, json_integer_value(member(totals, "allocations")));
    assert_int_equal(bytes, json_integer_value(member(totals, "bytes_allocated")));
    assert_int_equal(live, json_integer_value(member(totals, "live_bytes")));
    assert_int_equal(widest, 45); /* nothing is folded: _start, libc twice, main, 40 times parse_value, new_node */
    json_decref(object);
    close_sample(&reported);
}

/* Numbers and bytes are estimated apart: a mean that no block can have is not told. */
static void json_of_a_sampled_run_has_no_impossible_mean(void **state)
{
    (void)state;
    struct report_sample *sample = sampled_sample();
    for (size_t i = 0; i < sizeof sample->mibs / sizeof *sample->mibs; i++)
        sample->mibs[i].bytes = sample->mibs[i].allocations * (sample->mibs[i].size_max * 2 + 100);
    struct reported reported = open_sample(sample, true);
    json_t *object = report_object(&reported, &(struct hw_report_options){.top = 100}), *context;
    size_t i;
    json_array_foreach(member(object, "contexts"), i, context)
    {
        json_t *size = member(member(context, "sampled"), "size");
        if (!json_is_null(size))
            assert_true(json_is_null(member(size, "mean")) && json_is_integer(member(size, "max")));
    }
    assert_true(i > 0);
    json_decref(object);
    close_sample(&reported);
}

static void json_of_a_sampled_run_has_no_exact_counts(void **state)
{
    struct reported reported = open_sample(sampled_sample(), true);
    json_t *object = report_object(&reported, &(struct hw_report_options){.top = 1});
    json_t *context = json_array_get(member(object, "contexts"), 0);
    assert_int_equal(json_array_size(member(object, "contexts")), 1);
    assert_null(json_object_get(context, "allocations"));
    assert_null(json_object_get(context, "size"));
    assert_null(json_object_get(member(object, "totals"), "bytes_allocated"));
    has_keys(member(context, "sampled"), "samples allocations frees bytes size peak_bytes lifetime_ns");
    assert_true(json_is_null(member(member(context, "sampled"), "temporary"))); /* a sample does not tell */
    assert_true(json_is_null(member(member(context, "sampled"), "reallocations")));
    has_keys(member(member(object, "totals"), "sampled"), "samples allocations bytes_allocated peak_bytes");
    assert_null(json_object_get(json_array_get(member(object, "timeline"), 0), "live_bytes"));
    json_decref(object);
    close_sample(&reported);
}

/* What was not measured is null: never 0. */
static void json_says_null_for_the_unknown(void **state)
{
    struct reported reported = open_sample(killed_sample(), false);
    reported.profile->process.peak_rss_bytes = 0;
    json_t *object = report_object(&reported, &(struct hw_report_options){0}), *context, *frame;
    assert_true(json_is_null(member(member(object, "process"), "exit")));
    assert_true(json_is_null(member(member(object, "totals"), "peak_rss_bytes")));
    size_t index, k, nameless = 0;
    json_array_foreach(member(object, "contexts"), index, context)
    {
        assert_int_equal(json_is_null(member(context, "lifetime_ns")), !json_integer_value(member(context, "frees")));
        json_array_foreach(member(context, "stack"), k, frame)
        {
            nameless += json_is_null(member(frame, "function"));
            assert_true(json_is_null(member(frame, "line")) || json_integer_value(member(frame, "line")) > 0);
        }
    }
    assert_true(nameless > 30);
    json_decref(object);
    close_sample(&reported);
}

static void json_text_is_valid_whatever_the_names(void **state)
{
    struct reported reported = open_sample(report_sample(), true);
    char *text = report_string(hw_report_json, &reported, &(struct hw_report_options){0});
    assert_non_null(strstr(text, "bad\\\\xff\\\\xfename\\u001B[31m")); /* \xff became the text \xff */
    assert_non_null(strstr(text, "caf\xc3\xa9.c"));
    free(text);
    close_sample(&reported);
}

/* ---- JSON of counted accesses ---- */

static json_t *context_of_type(json_t *object, const char *type)
{
    json_t *context, *found = NULL;
    size_t index;
    json_array_foreach(member(object, "contexts"), index, context)
    {
        const char *name = json_string_value(member(context, "type"));
        if (name && !strcmp(name, type) && !found)
            found = context;
    }
    assert_non_null(found);
    return found;
}

static void json_of_accesses(void **state)
{
    struct reported reported = open_sample(access_sample(), true);
    json_t *object = report_object(&reported, &(struct hw_report_options){.sort = HW_SORT_ACCESSES}), *context;
    json_t *totals = member(object, "totals"), *how = member(member(object, "process"), "access");
    json_int_t accesses = 0, reads = 0, never = 0;
    size_t index;
    has_keys(how, "granule planes planes_most threads_sharing_planes instrumented_modules reads_and_writes harvested");
    assert_string_equal(json_string_value(member(member(object, "process"), "mode")), "access");
    json_array_foreach(member(object, "contexts"), index, context)
    {
        has_keys(context,
                 "accesses access_density lifetime_access_density utilization_percent never_accessed histogram "
                 "shared_granules sharing written_never_read accesses_are_lower_bounds");
        never += json_integer_value(member(context, "never_accessed"));
        if (json_is_null(member(context, "accesses"))) {
            assert_true(json_is_null(member(context, "access_density"))); /* no block was looked at: not 0 */
            assert_true(json_is_null(member(context, "accesses_are_lower_bounds")));
            continue;
        }
        has_keys(member(context, "accesses"), "total min max reads writes");
        accesses += json_integer_value(member(member(context, "accesses"), "total"));
        reads += json_integer_value(member(member(context, "accesses"), "reads"));
    }
    assert_int_equal(accesses, json_integer_value(member(totals, "accesses")));
    assert_int_equal(reads, json_integer_value(member(totals, "reads")));
    assert_int_equal(never, json_integer_value(member(totals, "never_accessed")));
    context = context_of_type(object, "demo::node");
    assert_true(context == json_array_get(member(object, "contexts"), 0));
    assert_int_equal(json_integer_value(member(member(context, "accesses"), "max")), 31000);
    assert_true(json_real_value(member(member(context, "access_density"), "mean")) == 5.357);
    assert_true(json_real_value(member(member(context, "utilization_percent"), "min")) == 100);
    assert_true(json_is_null(member(context, "histogram"))); /* only 8-byte granules have one */
    assert_true(json_is_null(member(member(context, "sharing"), "false_shared_lines")));
    json_decref(object);
    close_sample(&reported);
}

/* A granule with several variables is nobody's: it stands under the names of all, and they are told of it. */
static void json_of_globals(void **state)
{
    struct reported reported = open_sample(access_sample(), true);
    json_t *object = report_object(&reported, &(struct hw_report_options){0}), *global;
    json_int_t all = 0, last = INT64_MAX;
    size_t index, alone = 0, together = 0, nameless = 0;
    json_array_foreach(member(object, "globals"), index, global)
    {
        const json_int_t accesses = json_integer_value(member(global, "accesses"));
        const size_t symbols = json_array_size(member(global, "symbols"));
        has_keys(global,
                 "symbol symbols module section offset size accesses reads writes in_shared_granules histogram");
        assert_int_equal(json_is_null(member(global, "symbol")), symbols != 1);
        assert_true(accesses <= last);
        all += accesses;
        last = accesses;
        alone += symbols == 1;
        together += symbols > 1;
        nameless += symbols == 0;
        const char *name = json_string_value(member(global, "symbol"));
        if (name && !strcmp(name, "keyword_table")) {
            assert_int_equal(accesses, 44000000);
            assert_int_equal(json_integer_value(member(global, "size")), 4096);
            assert_int_equal(json_integer_value(member(global, "in_shared_granules")), 0);
        }
        if (name && !strcmp(name, "demo::lexer::scanner_state"))
            assert_int_equal(accesses, 15000000);
    }
    assert_int_equal(alone, 3);
    assert_int_equal(together, 1);
    assert_int_equal(nameless, 2);
    assert_int_equal(all, json_integer_value(member(member(member(object, "totals"), "globals"), "accesses")));
    json_decref(object);
    close_sample(&reported);
}

static void json_of_fine_accesses(void **state)
{
    struct reported reported = open_sample(fine_access_sample(), false);
    json_t *object = report_object(&reported, &(struct hw_report_options){0});
    json_t *context = context_of_type(object, "demo::node"), *histogram = member(context, "histogram");
    assert_true(json_is_true(member(context, "accesses_are_lower_bounds")));
    assert_true(json_is_true(member(member(object, "totals"), "accesses_are_lower_bounds")));
    assert_true(json_integer_value(member(member(context, "accesses"), "unsplit")) > 0);
    assert_int_equal(json_array_size(histogram), 3);
    assert_int_equal(json_integer_value(json_array_get(histogram, 0)), 1000);
    assert_int_equal(json_integer_value(json_array_get(histogram, 1)), 0);
    assert_true(json_is_null(member(object, "globals"))); /* never harvested */
    assert_true(json_is_null(member(member(object, "totals"), "globals")));
    json_decref(object);
    close_sample(&reported);
}

/* Where no access says which of the two it was, reads and writes are not 0 but unknown. */
static void json_of_unsplit_accesses(void **state)
{
    struct report_sample *sample = access_sample();
    for (uint32_t i = 0; i < sample->context_count; i++) {
        struct hw_access *access = &sample->accesses[i];
        access->unsplit = access->reads + access->writes;
        access->reads = access->writes = 0;
    }
    sample->live_count = 0;
    struct reported reported = open_sample(sample, true);
    json_t *object = report_object(&reported, &(struct hw_report_options){0});
    json_t *accesses = member(context_of_type(object, "demo::node"), "accesses");
    assert_true(json_is_null(member(accesses, "reads")));
    assert_true(json_is_null(member(accesses, "writes")));
    assert_true(json_is_null(member(member(object, "totals"), "reads")));
    assert_int_equal(json_integer_value(member(accesses, "unsplit")), json_integer_value(member(accesses, "total")));
    json_decref(object);
    close_sample(&reported);
}

static void json_of_sampled_accesses(void **state)
{
    struct report_sample *sample = access_sample();
    sample->process.sample_bytes = 512 << 10;
    struct reported reported = open_sample(sample, true);
    json_t *object = report_object(&reported, &(struct hw_report_options){0});
    json_t *context = json_array_get(member(object, "contexts"), 0);
    assert_null(json_object_get(context, "accesses"));
    assert_null(json_object_get(member(object, "totals"), "accesses"));
    has_keys(member(context, "sampled"), "accesses access_density");
    json_decref(object);
    close_sample(&reported);
}

/* ---- folding ---- */

static struct hw_frame plain_frames[400];
static struct hw_view_module own_module = {.path = "/bin/own", .name = "own", .kind = HW_MODULE_PROGRAM};

/* A stack whose functions are the letters of NAMES. */
static struct hw_view_stack letters(const char *names)
{
    static char letter[128][2];
    struct hw_view_stack stack = {.count = strlen(names)};
    stack.frames = calloc(stack.count, sizeof *stack.frames);
    for (size_t i = 0; i < stack.count; i++) {
        const unsigned char name = (unsigned char)names[i];
        letter[name][0] = (char)name;
        plain_frames[i] = (struct hw_frame){.function = letter[name]};
        stack.frames[i] = (struct hw_view_frame){.symbol = &plain_frames[i], .module = &own_module};
    }
    return stack;
}

/* The fold as text: "a", "a*3", "[ab]*4" as "a b ^2*4", "..7" for a gap of 7 frames. */
static void folds_to(const char *names, size_t limit, const char *expected)
{
    struct hw_view_stack stack = letters(names);
    struct hw_fold fold = {0};
    struct hw_buffer text = {0};
    size_t frames = 0;
    assert_true(hw_fold_stack(&fold, &stack, limit, false));
    for (size_t i = 0; i < fold.count; i++) {
        const struct hw_fold_item *item = &fold.items[i];
        hw_buffer_add(&text, "%s", i ? " " : "");
        if (item->kind == HW_FOLD_GAP)
            hw_buffer_add(&text, "..%zu", item->frames);
        else if (item->kind == HW_FOLD_REPEAT)
            hw_buffer_add(&text, "^%zu*%u", item->frames, item->times);
        else
            hw_buffer_add(&text, item->times > 1 ? "%c*%u" : "%c", names[item->frame], item->times);
        frames += item->kind == HW_FOLD_REPEAT ? 0 : item->frames;
    }
    assert_string_equal(hw_buffer_text(&text), expected);
    assert_int_equal(frames, strlen(names)); /* every frame is shown or counted */
    hw_buffer_free(&text);
    hw_fold_free(&fold);
    hw_view_stack_free(&stack);
}

static void recursion_is_folded(void **state)
{
    folds_to("abc", 16, "a b c");
    folds_to("abbbc", 16, "a b*3 c");
    folds_to("aa", 16, "a*2");
    folds_to("xabababz", 16, "x a b ^2*3 z");
    folds_to("xabcabcabcabz", 16, "x a b c ^3*3 a b z");
    folds_to("xaabaabaabz", 16, "x a a b ^3*3 z");
    folds_to("", 16, "");
}

static void the_middle_is_folded(void **state)
{
    folds_to("abcdefghijklmnopqrstuvwxyz", 10, "a b c d e f g ..16 x y z");
    folds_to("abcdefghijk", 10, "a b c d e f g h i j k"); /* a gap of one frame would save nothing */
    folds_to("abcdefghijkl", 10, "a b c d e f g ..2 j k l");
    folds_to("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 10, "a*30");
}

static void headline_is_the_programs_own(void **state)
{
    static struct hw_view_module libc = {.path = "/lib/libc.so.6", .name = "libc.so.6", .kind = HW_MODULE_SYSTEM};
    struct hw_view_stack stack = letters("abcdef");
    stack.frames[0].module = &libc;
    assert_int_equal(hw_stack_headline(&stack), 1);
    plain_frames[1].function = "xrealloc";
    plain_frames[2].function = "void std::vector<int>::push_back(int&&)";
    plain_frames[2].linkage_name = "_ZNSt6vectorIiSaIiEE9push_backEOi";
    assert_int_equal(hw_stack_headline(&stack), 3);
    plain_frames[3].function = NULL; /* a stripped program: the address must do */
    assert_int_equal(hw_stack_headline(&stack), 3);
    for (size_t i = 1; i < 6; i++)
        stack.frames[i].module = &libc;
    assert_int_equal(hw_stack_headline(&stack), 0);
    hw_view_stack_free(&stack);
}

/* What a library compiles into the program is known by where its source lies, or by its name. */
static void headline_behind_rust_and_templates(void **state)
{
    struct hw_view_stack stack = letters("abcdefgh");
    plain_frames[0].function = "alloc::raw_vec::RawVec<T,A>::grow_one";
    plain_frames[1].function = "<[u8]>::to_vec_in::<alloc::alloc::Global>";
    plain_frames[2].function = "<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec";
    plain_frames[3].function = "odd_name_of_a_template";
    plain_frames[3].file = "/usr/include/c++/12/bits/stl_vector.h";
    plain_frames[4].function = "fill";
    plain_frames[4].file = "/rustc/0123/library/core/src/iter.rs";
    plain_frames[5].function = "os::malloc(unsigned long, int)";
    plain_frames[6].function = "<main::Record as core::clone::Clone>::clone";
    assert_int_equal(hw_stack_headline(&stack), 6);
    plain_frames[2].function = "<main::Record as alloc::borrow::ToOwned>::to_owned";
    assert_int_equal(hw_stack_headline(&stack), 2);
    hw_view_stack_free(&stack);
}

static void start_code_is_left_out(void **state)
{
    struct hw_view_stack stack = letters("abcdef");
    assert_int_equal(hw_stack_without_start(&stack), 6);
    plain_frames[2].function = "core::ops::function::FnOnce::call_once";
    plain_frames[3].function = "std::sys::backtrace::__rust_begin_short_backtrace";
    assert_int_equal(hw_stack_without_start(&stack), 2); /* what main or a thread of a Rust program does */
    plain_frames[3].function = "std::__invoke_impl<void, main()::<lambda()> >";
    plain_frames[4].function = "std::thread::_Invoker<std::tuple<main()::<lambda()> > >::operator()";
    plain_frames[5].function = "_start";
    assert_int_equal(hw_stack_without_start(&stack), 3);
    hw_view_stack_free(&stack);
}

/* ---- numbers ---- */

static void numbers_are_readable(void **state)
{
    static const struct {
        uint64_t value;
        const char *bytes, *count, *ns;
    } rows[] = {
        {0, "0 B", "0", "0 ns"},
        {999, "999 B", "999", "999 ns"},
        {1000, "1000 B", "1,000", "1.00 us"},
        {1023, "1023 B", "1,023", "1.02 us"},
        {1024, "1.0 KiB", "1,024", "1.02 us"},
        {999499, "976.1 KiB", "999,499", "999 us"},
        {1048575, "1.0 MiB", "1,048,575", "1.05 ms"},
        {64123456, "61.2 MiB", "64,123,456", "64.1 ms"},
        {59940000000, "55.8 GiB", "59,940,000,000", "59.9 s"},
        {123000000000, "114.6 GiB", "123,000,000,000", "2 min 03 s"},
        {7321000000000, "6.7 TiB", "7,321,000,000,000", "2 h 02 min"},
        {UINT64_MAX, "16.0 EiB", "18,446,744,073,709,551,615", "5124095 h 34 min"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(HW_BYTES(rows[i].value), rows[i].bytes);
        assert_string_equal(HW_COUNT(rows[i].value), rows[i].count);
        assert_string_equal(HW_NS(rows[i].value, false), rows[i].ns);
    }
    assert_string_equal(HW_NS(1500, true), "1.50 \xc2\xb5s");
    assert_string_equal(HW_MANY(9999999), "9,999,999");
    assert_string_equal(HW_MANY(10000000), "10.0 M");
    assert_string_equal(HW_MANY(999400000), "999 M");
    assert_string_equal(HW_MANY(999600000), "1.00 G");
    assert_string_equal(HW_MANY(UINT64_MAX), "18.4 E");
    assert_string_equal(HW_RATIO(0), "0.00");
    assert_string_equal(HW_RATIO(0.004), "<0.01");
    assert_string_equal(HW_RATIO(9.99), "9.99");
    assert_string_equal(HW_RATIO(12.34), "12.3");
    assert_string_equal(HW_RATIO(1234.5), "1,235");
    assert_string_equal(HW_PERCENT(1, 3), "33.3 %");
    assert_string_equal(HW_PERCENT(1, 1), "100 %");
    assert_string_equal(HW_PERCENT(99999, 100000), ">99.9 %");
    assert_string_equal(HW_PERCENT(1, 100000), "<0.1 %");
    assert_string_equal(HW_PERCENT(0, 100000), "0.0 %");
    assert_string_equal(HW_PERCENT(0, 0), "-");
}

/* The page writes the same numbers in the same way: tests/page reads the table, too. */
static void numbers_are_those_of_the_table(void **state)
{
    char *path = golden_path("numbers.txt"), line[128];
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    size_t checked = 0;
    while (fgets(line, sizeof line, table)) {
        uint64_t value, whole;
        char made[HW_HUMAN];
        int words = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "bytes %" SCNu64 " %n", &value, &words) == 1)
            hw_human_bytes(made, value);
        else if (sscanf(line, "time %" SCNu64 " %n", &value, &words) == 1)
            hw_human_ns(made, value, true);
        else if (sscanf(line, "share %" SCNu64 "/%" SCNu64 " %n", &value, &whole, &words) == 2)
            hw_human_percent(made, (double)value, (double)whole);
        else if (*line == '#')
            continue;
        else
            fail_msg("what is '%s'?", line);
        if (strcmp(made, line + words))
            fail_msg("%s: %s", line, made);
        checked++;
    }
    assert_true(checked > 50);
    fclose(table);
    free(path);
}

static void foreign_text_is_made_fit(void **state)
{
    static const struct {
        const char *text, *json, *utf8, *ascii;
    } rows[] = {
        {"plain", "plain", "plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
         "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80"},
        {"a\xff"
         "b",
         "a\\xffb", "a\\xffb", "a\\xffb"},
        {"cut \xe2\x82", "cut \\xe2\\x82", "cut \\xe2\\x82", "cut \\xe2\\x82"},
        {"long \xc0\x80", "long \\xc0\\x80", "long \\xc0\\x80", "long \\xc0\\x80"},
        {"half \xed\xa0\x80", "half \\xed\\xa0\\x80", "half \\xed\\xa0\\x80", "half \\xed\\xa0\\x80"},
        {"\033[31m\n\x7f\xc2\x9b", "\033[31m\n\x7f\xc2\x9b", "\\x1b[31m\\x0a\\x7f\\xc2\\x9b",
         "\\x1b[31m\\x0a\\x7f\\xc2\\x9b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *expected[] = {rows[i].json, rows[i].utf8, rows[i].ascii};
        for (int clean = HW_CLEAN_JSON; clean <= HW_CLEAN_ASCII; clean++) {
            struct hw_buffer buffer = {0};
            hw_buffer_clean(&buffer, rows[i].text, (enum hw_clean)clean);
            assert_string_equal(hw_buffer_text(&buffer), expected[clean]);
            hw_buffer_free(&buffer);
        }
    }
}

/* What a damaged part of the file held is not known: neither nothing nor zero, in no reader. */
static void lost_parts_are_not_known(void **state)
{
    struct image image = report_image(report_sample(), true);
    const uint32_t lost[] = {HW_SECTION_PROCESS, HW_SECTION_THREADS, HW_SECTION_MIBS};
    const struct hw_section *entries = (const void *)(image.bytes + sizeof(struct hw_file_header));
    for (size_t i = 0; i < image.directory_used; i++)
        for (size_t k = 0; k < sizeof lost / sizeof *lost; k++)
            if (entries[i].type == lost[k])
                image.bytes[entries[i].offset] ^= 1;
    struct hw_error error = {""};
    struct reported reported = {.profile = hw_profile_read_bytes(image.bytes, image.size, "damaged", &error)};
    image_free(&image);
    assert_non_null(reported.profile);
    assert_int_equal(reported.profile->problem_count, 4);
    for (size_t i = 0; i < reported.profile->problem_count; i++)
        assert_null(strstr(reported.profile->problems[i], "newer"));
    reported.view = hw_view_new(reported.profile, &(struct hw_view_options){.no_symbols = true}, &error);
    assert_non_null(reported.view);
    char *text = report_string(hw_report_text, &reported, &(struct hw_report_options){.width = 200});
    const char *const rows[] = {"Heap profile of a program that is not known",
                                "Run         not known",
                                "Allocated   not known",
                                "Peak        not known",
                                "Not freed   not known",
                                "Sums that lack the lost parts are too low"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strstr(text, rows[i]))
            fail_msg("'%s' is not in\n%s", rows[i], text);
    assert_null(strstr(text, "No allocation was seen"));
    free(text);
    for (enum hw_measure_id id = 0; id <= HW_MEASURE_LIVE_COUNT; id++)
        assert_string_equal(hw_measure_unknown(reported.view, id), "that part of the file is damaged");
    char *json = report_string(hw_report_json, &reported, &(struct hw_report_options){0});
    json_t *report = json_loads(json, 0, NULL), *totals = json_object_get(report, "totals");
    const char *const keys[] = {"allocations", "bytes_allocated", "peak_bytes", "live_bytes", "live_allocations"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_true(json_is_null(json_object_get(totals, keys[i])));
    json_decref(report);
    free(json);
    close_sample(&reported);
}

TEST_LIST(cmocka_unit_test(golden_texts), cmocka_unit_test(running_process_is_called_running),
          cmocka_unit_test(contexts_of_a_library_loaded_twice_are_one),
          cmocka_unit_test(same_path_with_another_build_id_is_another_module),
          cmocka_unit_test(frames_of_the_runtime_are_not_in_stacks),
          cmocka_unit_test(stacks_that_only_recurse_otherwise_are_one_place), cmocka_unit_test(sorted_lists_fall),
          cmocka_unit_test(json_has_the_keys), cmocka_unit_test(json_contexts_sum_to_the_totals),
          cmocka_unit_test(json_of_a_sampled_run_has_no_exact_counts),
          cmocka_unit_test(json_of_a_sampled_run_has_no_impossible_mean),
          cmocka_unit_test(json_says_null_for_the_unknown), cmocka_unit_test(json_text_is_valid_whatever_the_names),
          cmocka_unit_test(json_of_accesses), cmocka_unit_test(json_of_globals),
          cmocka_unit_test(json_of_fine_accesses), cmocka_unit_test(json_of_unsplit_accesses),
          cmocka_unit_test(json_of_sampled_accesses), cmocka_unit_test(recursion_is_folded),
          cmocka_unit_test(the_middle_is_folded), cmocka_unit_test(headline_is_the_programs_own),
          cmocka_unit_test(headline_behind_rust_and_templates), cmocka_unit_test(start_code_is_left_out),
          cmocka_unit_test(numbers_are_readable), cmocka_unit_test(numbers_are_those_of_the_table),
          cmocka_unit_test(foreign_text_is_made_fit), cmocka_unit_test(lost_parts_are_not_known))
