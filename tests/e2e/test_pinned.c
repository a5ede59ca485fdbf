/* test_pinned.c - record --pinned: what keeps pages resident. The truth comes from the program, which knows its layout
 * and asks the kernel itself. */
#include "support/check.h"
#include "support/recording.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void test_known_layout(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("pinned"), NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    long long pages, blocks;
    assert_int_equal(2, sscanf(recording.run.out, "%lld %lld", &pages, &blocks));
    const json_t *totals = json_object_get(recording.report, "totals");
    const json_t *heap = json_object_get(recording.report, "heap_pages");
    assert_true(json_is_object(heap));
    assert_int_equal(number(totals, "live_allocations"), number(heap, "blocks"));
    assert_int_equal(number(totals, "live_bytes"), number(heap, "requested_bytes"));
    assert_int_equal(number(heap, "requested_bytes") + number(heap, "rounding_bytes") + number(heap, "header_bytes") -
                         number(heap, "absent_bytes") + number(heap, "free_bytes") + number(heap, "kept_bytes"),
                     number(heap, "resident_bytes"));
    int64_t free_bytes = 0, own_pages = 0, own_blocks = 0;
    size_t i;
    json_t *pin;
    json_array_foreach(json_object_get(recording.report, "pinned"), i, pin)
    {
        free_bytes += number(pin, "bytes_pinned");
        if (number(pin, "blocks") == blocks / 4 || number(pin, "blocks") == blocks * 3 / 4) {
            own_pages += number(pin, "pages");
            own_blocks += number(pin, "blocks");
            assert_true(number(pin, "own_bytes") == 64 * number(pin, "blocks"));
            assert_true(number(pin, "pages") - number(pin, "sole_pages") <= 2);
        }
    }
    assert_int_equal(number(heap, "free_bytes"), free_bytes);
    assert_int_equal(blocks, own_blocks);
    assert_in_range(own_pages, pages, pages + 2); /* a page of both counts twice */
    for (int over = 0; over <= 1; over++) {
        char limit[24];
        snprintf(limit, sizeof limit, "%lld", (long long)(free_bytes - over));
        const char *const check[] = {"check", "--max-pinned", limit, recording.files[0], NULL};
        struct run_result result = heapwise(check, NULL);
        assert_exit(&result, over, "check");
        assert_contains(result.out, over ? "free in pages that live blocks pin, more than" : "OK");
        run_result_free(&result);
    }
    recording_free(&recording);
}

static int64_t sql_number(sqlite3 *database, const char *text)
{
    sqlite3_stmt *query;
    assert_int_equal(sqlite3_prepare_v2(database, text, -1, &query, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return value;
}

/* The tables are the JSON report. */
static void test_sqlite(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("pinned"), NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    char *file = join_path(recording.directory, "pinned.sqlite");
    const char *const export[] = {"export", "--format", "sqlite", "-o", file, recording.files[0], NULL};
    struct run_result result = heapwise(export, NULL);
    assert_exit(&result, 0, "export");
    run_result_free(&result);
    sqlite3 *database;
    assert_int_equal(sqlite3_open_v2(file, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    const json_t *heap = json_object_get(recording.report, "heap_pages"), *occupancy;
    static const char *const sums[] = {"blocks",     "requested_bytes", "absent_bytes", "resident_bytes",
                                       "live_pages", "free_bytes",      "kept_bytes"};
    char text[300];
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        snprintf(text, sizeof text, "SELECT %s FROM heap_pages", sums[i]);
        assert_int_equal(sql_number(database, text), number(heap, sums[i]));
    }
    assert_int_equal(sql_number(database, "SELECT count(*) FROM heap_pages"), 1);
    assert_int_equal(sql_number(database, "SELECT sum(bytes_pinned) FROM pinned"), number(heap, "free_bytes"));
    size_t i;
    json_t *pin, *row;
    json_array_foreach(json_object_get(recording.report, "pinned"), i, pin)
    {
        static const char *const keys[] = {"bytes_pinned", "pages",      "blocks",
                                           "own_bytes",    "sole_pages", "sole_free_bytes"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            snprintf(text, sizeof text, "SELECT %s FROM pinned WHERE context_id = %lld", keys[k],
                     (long long)number(pin, "context"));
            assert_int_equal(sql_number(database, text), number(pin, keys[k]));
        }
    }
    assert_int_equal(sql_number(database, "SELECT count(*) FROM pinned JOIN contexts ON contexts.id = context_id"), i);
    occupancy = json_object_get(heap, "occupancy");
    json_array_foreach(occupancy, i, row)
    {
        snprintf(text, sizeof text,
                 "SELECT resident_bytes FROM page_occupancy WHERE unit = '%s' AND percent_at_most = %lld",
                 json_string_value(json_object_get(row, "unit")), (long long)number(row, "percent_at_most"));
        assert_int_equal(sql_number(database, text), number(row, "resident_bytes"));
    }
    assert_int_equal(sql_number(database, "SELECT count(*) FROM page_occupancy"), json_array_size(occupancy));
    sqlite3_close(database);
    free(file);
    recording_free(&recording);
}

/* Without the option nobody looks, and the report says so. */
static void test_not_asked_for(void **state)
{
    struct recording plain = record_and_load((const char *const[]){need_program("pinned"), NULL},
                                             &(struct record_options){.arguments = NULL});
    struct run_result checked =
        heapwise((const char *const[]){"check", "--max-pinned", "1G", plain.files[0], NULL}, NULL);
    assert_exit(&checked, 2, "check");
    assert_contains(checked.err, "--max-pinned cannot be checked: pages were not examined");
    run_result_free(&checked);
    recording_free(&plain);
    const char *const argv[] = {need_program("pinned"), NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){0});
    assert_true(json_is_null(json_object_get(recording.report, "pinned")));
    assert_true(json_is_null(json_object_get(recording.report, "heap_pages")));
    recording_free(&recording);
}

static const json_t *find(const json_t *array, const char *key, const char *text)
{
    size_t i;
    json_t *object;
    json_array_foreach(array, i,
                       object) if (!strcmp(json_string_value(json_object_get(object, key)), text)) return object;
    fail_msg("no %s", text);
    return NULL;
}

static int64_t resident_of(const char *program, const char *argument)
{
    const char *const argv[] = {program, argument, NULL};
    struct run_result result = run(argv, NULL);
    assert_exit(&result, 0, "arena");
    const int64_t bytes = strtoll(result.out, NULL, 10);
    run_result_free(&result);
    return bytes;
}

/* The finding says what an arena would free. The program can do it: its RSS, without Heapwise, says whether that is
 * so. */
static void test_arena_frees_what_is_predicted(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *program = need_program("arena");
    const char *const argv[] = {program, NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    const json_t *finding = find(json_object_get(recording.report, "findings"), "kind", "pinned-pages");
    const int64_t predicted = (int64_t)json_number_value(json_object_get(finding, "gain_bytes"));
    const int64_t measured = resident_of(program, NULL) - resident_of(program, "arena");
    assert_int_equal(2, json_array_size(json_object_get(finding, "contexts")));
    if (measured < 30 << 20 || llabs(measured - predicted) > measured / 20)
        fail_msg("predicted %lld, measured %lld", (long long)predicted, (long long)measured);
    recording_free(&recording);

    /* …and then there is nothing left to say. */
    const char *const again[] = {program, "arena", NULL};
    recording = record_and_load(again, &options);
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(recording.report, "findings"), i, one)
        assert_string_not_equal("pinned-pages", json_string_value(json_object_get(one, "kind")));
    recording_free(&recording);
}

/* What RSS is made of has the same parts, and its sum is still RSS. */
static const json_t *check_parts(const json_t *report, const char *name)
{
    const json_t *moment = find(json_object_get(report, "memory"), "moment", name);
    const json_t *parts = json_object_get(moment, "parts"), *heap = json_object_get(report, "heap_pages");
    int64_t sum = 0;
    const char *key;
    json_t *part;
    json_object_foreach((json_t *)parts, key, part) sum += json_integer_value(part);
    assert_int_equal(number(moment, "rss_bytes"), sum);
    assert_true(json_is_object(heap));
    assert_int_equal(json_number(report, "totals.live_allocations"), number(heap, "blocks"));
    assert_int_equal(json_number(report, "totals.live_bytes"), number(heap, "requested_bytes"));
    assert_int_equal(0, number(parts, "heap_overhead"));
    return parts;
}

static void test_parts_of_rss(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("arena"), NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    const json_t *parts = check_parts(recording.report, "end");
    const json_t *heap = json_object_get(recording.report, "heap_pages");
    assert_int_equal(number(heap, "free_bytes"), number(parts, "pinned"));
    assert_int_equal(number(heap, "kept_bytes"), number(parts, "kept"));
    assert_true(number(parts, "metadata") >= number(heap, "header_bytes"));
    assert_true(number(parts, "pinned") > 30 << 20);
    recording_free(&recording);
}

static void test_text(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("arena"), NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    const char *const report[] = {"report", "--section", "pinned,findings", recording.files[0], NULL};
    struct run_result run = heapwise(report, NULL);
    assert_exit(&run, 0, "report");
    assert_non_null(strstr(run.out, "What keeps pages resident at the end"));
    assert_non_null(strstr(run.out, "new_session"));
    assert_non_null(strstr(run.out, "With it on pages: new_name"));
    assert_non_null(strstr(run.out, "new_request, lived"));
    assert_non_null(strstr(run.out, "Cut them from a pool"));
    run_result_free(&run);
    recording_free(&recording);
}

/* Where one place has the whole heap, it has an arena of its own already. */
static void test_one_place(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("pinned"), "one", NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    size_t i;
    json_t *finding;
    assert_true(number(json_object_get(recording.report, "heap_pages"), "free_bytes") > 2 << 20);
    json_array_foreach(json_object_get(recording.report, "findings"), i, finding)
        assert_string_not_equal("pinned-pages", json_string_value(json_object_get(finding, "kind")));
    recording_free(&recording);
}

/* What the program maps itself is not kept by the allocator. */
static void test_mapped_by_program(void **state)
{
    static const char *const pinned[] = {"--pinned", NULL};
    const char *const argv[] = {need_program("pinned"), "mapped", NULL};
    const struct record_options options = {.arguments = pinned};
    struct recording recording = record_and_load(argv, &options);
    const json_t *parts = check_parts(recording.report, "end");
    const json_t *heap = json_object_get(recording.report, "heap_pages");
    assert_true(number(parts, "mapped") >= 8 << 20);
    assert_true(number(heap, "kept_bytes") < 4 << 20);
    assert_true(number(heap, "resident_bytes") < 8 << 20);
    assert_true(number(parts, "kept") <= number(heap, "kept_bytes"));
    assert_true(number(parts, "metadata") >= number(heap, "header_bytes"));
    recording_free(&recording);
}

/* The options were there: the report says what prevented the search. */
static void test_killed(void **state)
{
    static const char *const all[] = {"--pinned", "--keeps", NULL};
    const char *const argv[] = {need_program("pinned"), "killed", NULL};
    const struct record_options options = {.arguments = all};
    struct recording recording = record_and_load(argv, &options);
    const char *const report[] = {"report", "--section", "pinned,keeps", recording.files[0], NULL};
    struct run_result run = heapwise(report, NULL);
    assert_contains(run.out, "Pages were not examined: SIGKILL ended the program.");
    assert_contains(run.out, "Who keeps blocks was not searched for: SIGKILL ended the program.");
    assert_lacks(run.out, "heapwise record");
    run_result_free(&run);
    recording_free(&recording);
}

/* The same where the search fails at the end: the program ends as usual. */
static void test_not_possible(void **state)
{
    static const char *const all[] = {"--pinned", "--keeps", NULL};
    const char *const argv[] = {need_program("pinned"), "closed", NULL};
    const struct record_options options = {.arguments = all};
    struct recording recording = record_and_load(argv, &options);
    assert_exit(&recording.run, 0, "closed");
    const char *const report[] = {"report", "--section", "pinned,keeps", recording.files[0], NULL};
    struct run_result run = heapwise(report, NULL);
    assert_contains(run.out, "Pages were not examined: there was no memory for it, or no /proc.");
    assert_contains(run.out, "Leaks were not searched for: no descriptor was free");
    run_result_free(&run);
    recording_free(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_layout),  cmocka_unit_test(test_sqlite),
        cmocka_unit_test(test_not_asked_for), cmocka_unit_test(test_arena_frees_what_is_predicted),
        cmocka_unit_test(test_parts_of_rss),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_one_place),     cmocka_unit_test(test_mapped_by_program),
        cmocka_unit_test(test_killed),        cmocka_unit_test(test_not_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
