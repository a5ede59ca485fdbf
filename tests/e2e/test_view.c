/* test_view.c - heapwise view as far as it is C: what the verb says of wrong usage, of files and of templates, and what
 * is in the stream of a page, taken apart here by other code and compared with report --json. The page itself is
 * tested in a browser: tests/page. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char *directory, *installed, *program, *template_file, *profile;

/* ---- an installation of the test's own: the template is what the test says ---- */

static void copy_file(const char *from, const char *to)
{
    struct run_result result = run((const char *const[]){"cp", "-L", from, to, NULL}, NULL);
    if (result.code)
        fail_msg("cp %s %s: %s", from, to, result.err);
    run_result_free(&result);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        fail_msg("cannot write %s", path);
}

#define AND " and "
#define MARK "@HEAPWISE-PROFILES-2@" AND "@HEAPWISE-RESTS-2@"

static int make_place(void **state)
{
    directory = make_directory();
    installed = join_path(directory, "installed");
    char *bin = join_path(installed, "bin"), *share = join_path(installed, "share"),
         *data = join_path(share, "heapwise");
    mkdir(installed, 0755);
    mkdir(bin, 0755);
    mkdir(share, 0755);
    mkdir(data, 0755);
    program = join_path(bin, "heapwise");
    template_file = join_path(data, "page.html");
    copy_file(heapwise_path(), program);
    free(bin);
    free(share);
    free(data);
    profile = join_path(directory, "run.hwprof");
    const char *tested = program_path("stacks");
    struct run_result result =
        heapwise((const char *const[]){"record", "-q", "-o", profile, "--", tested ? tested : "/bin/ls", NULL}, NULL);
    run_result_free(&result);
    return 0;
}

static int remove_place(void **state)
{
    remove_directory(directory);
    free(installed);
    free(program);
    free(template_file);
    free(profile);
    return 0;
}

/* The installation's heapwise view, in the test's directory. */
static struct run_result view(const char *const arguments[])
{
    const char *argv[16] = {program, "view"};
    size_t count = 2;
    for (size_t i = 0; arguments[i]; i++)
        argv[count++] = arguments[i];
    return run(argv, &(struct run_options){.directory = directory});
}

static void expect(const char *const arguments[], int code, const char *said)
{
    struct run_result result = view(arguments);
    assert_exit(&result, code, "view");
    assert_contains(result.err, said);
    const char *line = strchr(result.err, '\n');
    if (code && line && line[1])
        fail_msg("more than one line: %s", result.err);
    run_result_free(&result);
}

static bool is_there(const char *name)
{
    char *path = join_path(directory, name);
    const bool there = access(path, F_OK) == 0;
    unlink(path);
    free(path);
    return there;
}

#define WITH(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- the verb ---- */

static void test_wrong_usage_is_told(void **state)
{
    write_text(template_file, "<p>" MARK "</p>");
    expect((const char *const[]){NULL}, 2, "which FILE?");
    expect(WITH(profile, profile), 2, "is not a dump of the process of");
    expect(WITH(profile, "nowhere.hwprof"), 2, "nowhere.hwprof");
    expect(WITH("--what"), 2, "unknown option '--what'");
    expect(WITH("-o"), 2, "needs a value");
    expect(WITH("-o", "-", "--open", profile), 2, "--open takes a page in a file");
    expect(WITH("nowhere.hwprof"), 2, "nowhere.hwprof");
    expect(WITH("--baseline", "nowhere.hwprof", profile), 2, "nowhere.hwprof");
    expect(WITH("--function", "no_such_function", profile), 2,
           "no place has 'no_such_function' on its stack");
    expect(WITH("-o", "no/such/folder.html", profile), 2, "no/such/folder.html");
    assert_false(is_there("run.html"));
    char *text = join_path(directory, "text.hwprof");
    write_text(text, "no profile");
    expect(WITH("text.hwprof"), 2, "text.hwprof");
    assert_false(is_there("text.html"));
    expect(WITH("--allocators", "nowhere.json", profile), 2, "nowhere.json: No such file");
    expect(WITH("--allocators", "text.hwprof", profile), 2, "not what heapwise allocators --json writes");
    write_text(text, "[{\"allocator\": \"one\"}, 5]");
    expect(WITH("--allocators", "text.hwprof", profile), 2, "not what heapwise allocators --json writes");
    write_text(text, "[{\"allocator\": \"one\"}]");
    expect(WITH("--allocators", "text.hwprof", profile), 0, "wrote run.html");
    assert_true(is_there("run.html"));
    free(text);
}

static void test_pages_are_not_overwritten_unasked(void **state)
{
    write_text(template_file, "<p>" MARK "</p>");
    expect(WITH(profile), 0, "wrote run.html");
    expect(WITH(profile), 2, "'run.html' exists already: -f overwrites it");
    expect(WITH("-f", profile), 0, "wrote run.html");
    assert_true(is_there("run.html"));
    struct run_result result = view(WITH("-q", "-o", "-", profile));
    assert_exit(&result, 0, "view -o -");
    assert_string_equal(result.err, "");
    assert_contains(result.out, "<p>");
    run_result_free(&result);
}

static void test_a_template_must_be_there_and_of_this_version(void **state)
{
    unlink(template_file);
    expect(WITH(profile), 2, "built without the page");
    write_text(template_file, "<p>@HEAPWISE-PROFILES-1@</p>");
    expect(WITH(profile), 2, "not that of this version");
    write_text(template_file, "");
    expect(WITH(profile), 2, "cannot be read");
    assert_false(is_there("run.html"));
}

static void test_no_desktop_is_no_failure(void **state)
{
    write_text(template_file, "<p>" MARK "</p>");
    const char *const argv[] = {program, "view", "--open", profile, NULL};
    struct run_result result =
        run(argv,
            &(struct run_options){.directory = directory, .environment = (const char *const[]){"PATH=/nowhere", NULL}});
    assert_exit(&result, 0, "view --open");
    assert_contains(result.err, "there is no xdg-open here");
    run_result_free(&result);
    assert_true(is_there("run.html"));
}

static void test_of_a_damaged_profile_what_is_left_is_shown(void **state)
{
    write_text(template_file, "<p>" MARK "</p>");
    char *cut = join_path(directory, "cut.hwprof");
    copy_file(profile, cut);
    struct stat status;
    assert_int_equal(stat(cut, &status), 0);
    assert_int_equal(truncate(cut, status.st_size / 2), 0);
    struct run_result result = view(WITH("cut.hwprof"));
    assert_exit(&result, 2, "view of half a profile");
    assert_contains(result.err, "cut.hwprof");
    run_result_free(&result);
    free(cut);
}

/* ---- the stream ---- */

struct part {
    char name[64];
    unsigned kind;
    const unsigned char *bytes;
    size_t size;
};

struct stream {
    unsigned char *bytes[2]; /* the second: the rest of a profile */
    struct part parts[128];
    size_t count;
};

static uint64_t take_number(const unsigned char **at, const unsigned char *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (*at == end || shift > 63)
            fail_msg("a number is cut");
        const unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

static size_t from_base64(const char *text, size_t size, unsigned char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    if (size % 4)
        fail_msg("%zu characters are no base64", size);
    for (size_t i = 0; i < size; i += 4) {
        uint32_t group = 0;
        unsigned padding = 0;
        for (size_t k = 0; k < 4; k++) {
            const char *digit = text[i + k] == '=' ? digits : strchr(digits, text[i + k]);
            if (!digit || (text[i + k] == '=' && i + 4 != size))
                fail_msg("'%c' is no base64", text[i + k]);
            padding += text[i + k] == '=';
            group = group << 6 | (uint32_t)(digit - digits);
        }
        for (unsigned k = 0; k < 3 - padding; k++)
            out[used++] = (unsigned char)(group >> (16 - 8 * k));
    }
    return used;
}

/* Takes the stream apart that is TEXT: the first one of *STREAM, or the one that follows. */
static void add_stream(struct stream *stream, const char *text, size_t size)
{
    unsigned char *bytes = malloc(64 << 20), *packed = malloc(size);
    uLongf room = 64 << 20;
    const size_t packed_size = from_base64(text, size, packed);
    assert_int_equal(uncompress(bytes, &room, packed, packed_size), Z_OK);
    free(packed);
    stream->bytes[stream->bytes[0] ? 1 : 0] = bytes;
    const unsigned char *at = bytes, *end = at + room;
    while (at < end) {
        struct part *part = &stream->parts[stream->count++];
        const size_t length = take_number(&at, end);
        assert_true(length < sizeof part->name && stream->count < 128);
        memcpy(part->name, at, length);
        part->kind = at[length];
        at += length + 1;
        part->size = take_number(&at, end);
        part->bytes = at;
        assert_true(part->size <= (size_t)(end - at));
        at += part->size;
    }
}

static struct stream read_stream(const char *text, size_t size)
{
    struct stream stream = {.count = 0};
    add_stream(&stream, text, size);
    return stream;
}

static void free_stream(struct stream *stream)
{
    free(stream->bytes[0]);
    free(stream->bytes[1]);
}

static const struct part *part_of(const struct stream *stream, const char *name)
{
    for (size_t i = 0; i < stream->count; i++)
        if (!strcmp(stream->parts[i].name, name))
            return &stream->parts[i];
    fail_msg("there is no part %s", name);
    return NULL;
}

/* The numbers of a column, to be freed; *COUNT of them. */
static int64_t *column_of(const struct stream *stream, const char *name, size_t *count)
{
    const struct part *part = part_of(stream, name);
    int64_t *values = malloc((part->size + 1) * sizeof *values), last = 0;
    const unsigned char *at = part->bytes, *end = at + part->size;
    assert_in_range(part->kind, 2, 4);
    for (*count = 0; at < end; (*count)++) {
        const uint64_t written = take_number(&at, end);
        const int64_t value = part->kind == 2 ? (int64_t)written : (int64_t)(written >> 1 ^ -(written & 1));
        values[*count] = part->kind == 4 ? (last += value) : value;
    }
    return values;
}

/* Contexts are sorted by id, as JSON's are after sorting. */
static const json_t *context_with(const json_t *report, int64_t id)
{
    json_t *context;
    size_t index;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (json_number(context, "id") == id)
            return context;
    }
    fail_msg("no context %lld", (long long)id);
    return NULL;
}

static void check_column(const struct stream *stream, const json_t *report, const char *column, const char *key)
{
    size_t count, id_count;
    int64_t *ids = column_of(stream, "context.id", &id_count), *values = column_of(stream, column, &count);
    assert_int_equal(count, json_array_size(json_object_get(report, "contexts")));
    assert_int_equal(count, id_count);
    for (size_t i = 0; i < count; i++) {
        const int64_t expected = json_number_or_none(context_with(report, ids[i]), key);
        if (expected != INT64_MIN && values[i] != expected)
            fail_msg("context %lld: %s is %lld, not %lld", (long long)ids[i], column, (long long)values[i],
                     (long long)expected);
    }
    free(ids);
    free(values);
}

/* The depth of every stack, and that parents stand before their children. */
static void check_stacks(const struct stream *stream, const json_t *report)
{
    size_t count, nodes, locations;
    int64_t *ids = column_of(stream, "context.id", &count), *leaf = column_of(stream, "context.leaf", &count);
    int64_t *above = column_of(stream, "node.above", &nodes), *location = column_of(stream, "node.location", &nodes);
    int64_t *frames = column_of(stream, "location.frames", &locations);
    for (size_t i = 1; i < nodes; i++)
        assert_true(above[i] > 0 && above[i] <= (int64_t)i && location[i] >= 0 && location[i] < (int64_t)locations);
    for (size_t i = 0; i < count; i++) {
        size_t depth = 0;
        for (int64_t node = leaf[i]; node; node -= above[node])
            depth += (size_t)frames[location[node]];
        assert_int_equal(depth, stack_depth(context_with(report, ids[i])));
    }
    free(ids);
    free(leaf);
    free(above);
    free(location);
    free(frames);
}

static bool has_string(const struct stream *stream, const char *wanted)
{
    for (size_t i = 0; i < stream->count; i++) {
        const struct part *part = &stream->parts[i];
        const char *text = (const char *)part->bytes, *end = text + part->size;
        for (; !strcmp(part->name, "strings") && text < end; text += strlen(text) + 1)
            if (!strcmp(text, wanted))
                return true;
    }
    return false;
}

/* What the overview shows of a whole run is in the first stream. */
static void check_first(const struct stream *first)
{
    static const char *const parts[] = {"report",       "node.above",       "node.location",      "frame.function",
                                        "context.leaf", "context.headline", "context.peak_bytes", "context.allocations"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        part_of(first, parts[i]);
    const struct part *later = part_of(first, "to come");
    assert_non_null(memmem(later->bytes, later->size, "\nfrees\n", 7));
}

static void check_stream(const char *text, size_t size, const char *rest_text, size_t rest_size, const char *file)
{
    struct stream stream = read_stream(text, size);
    check_first(&stream);
    add_stream(&stream, rest_text, rest_size);
    json_t *report = load_report(file, 0);
    const struct part *part = part_of(&stream, "report");
    json_t *rest = json_loadb((const char *)part->bytes, part->size, 0, NULL);
    assert_non_null(rest);
    assert_true(json_equal(json_object_get(rest, "totals"), json_object_get(report, "totals")));
    assert_null(json_object_get(rest, "contexts"));
    assert_true(json_equal(json_object_get(rest, "timeline"), json_object_get(report, "timeline")));
    static const struct {
        const char *column, *key;
    } columns[] = {{"context.allocations", "allocations"},
                   {"context.bytes", "bytes"},
                   {"context.frees", "frees"},
                   {"context.live_bytes", "live_bytes"},
                   {"context.peak_bytes", "peak_bytes"},
                   {"context.size_max", "size.max"},
                   {"context.size_min", "size.min"},
                   {"context.temporary", "temporary"},
                   {"context.first_ns", "first_ns"},
                   {"context.lifetime_overlaps", "lifetime_overlaps"},
                   {"context.same_alloc_cpu", "same_alloc_cpu"},
                   {"context.lifetime_ns", "lifetime_ns.total"},
                   {"context.threads", "threads"},
                   {"context.reallocations", "reallocations"}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        check_column(&stream, report, columns[i].column, columns[i].key);
    check_stacks(&stream, report);
    const json_t *first = json_array_get(json_object_get(report, "contexts"), 0);
    for (size_t i = 0; i < stack_depth(first); i++)
        assert_true(!stack_function(first, i) || has_string(&stream, stack_function(first, i)));
    json_decref(rest);
    json_decref(report);
    free_stream(&stream);
}

static void test_the_stream_says_what_the_report_says(void **state)
{
    write_text(template_file, "<p>" MARK "</p>\n");
    struct run_result result = view(WITH("-q", "-o", "-", profile));
    assert_exit(&result, 0, "view");
    assert_int_equal(strncmp(result.out, "<p>", 3), 0);
    const char *end = strstr(result.out, AND), *last = strstr(result.out, "</p>\n");
    assert_non_null(end);
    assert_non_null(last);
    const char *rest = end + strlen(AND);
    check_stream(result.out + 3, (size_t)(end - result.out) - 3, rest, (size_t)(last - rest), profile);
    run_result_free(&result);
}

static const json_t *place_with(const json_t *diff, int64_t old_id, int64_t new_id)
{
    json_t *place;
    size_t index;
    json_array_foreach(json_object_get(diff, "places"), index, place)
    {
        const int64_t old = json_number_or_none(place, "old_id"), new = json_number_or_none(place, "new_id");
        if (old == (old_id ? old_id : INT64_MIN) && new == (new_id ? new_id : INT64_MIN))
            return place;
    }
    return NULL;
}

/* One value of every place: what changed is in DIFF, what did not is not. */
static void check_places(const struct stream *stream, const json_t *diff, const char *key, const int64_t *old_ids,
                         const int64_t *new_ids)
{
    char name[64];
    size_t count, places, changed = 0;
    int64_t *old_context = column_of(stream, "place.old_context", &places),
            *new_context = column_of(stream, "place.new_context", &places);
    snprintf(name, sizeof name, "value.old_%s", key);
    int64_t *old = column_of(stream, name, &count);
    assert_int_equal(count, places);
    snprintf(name, sizeof name, "value.new_%s", key);
    int64_t *new = column_of(stream, name, &count);
    assert_int_equal(count, places);
    for (size_t i = 0; i < places; i++) {
        const json_t *place = place_with(diff, old_context[i] ? old_ids[old_context[i] - 1] : 0,
                                         new_context[i] ? new_ids[new_context[i] - 1] : 0);
        assert_int_equal(place != NULL, old[i] != new[i]);
        if (place)
            assert_int_equal(json_number(place, "change"), new[i] - old[i]);
        changed += place != NULL;
    }
    assert_int_equal(changed, json_number(diff, "places_changed"));
    free(old_context);
    free(new_context);
    free(old);
    free(new);
}

static void check_comparison(const char *text, size_t size, const char *old_stream, const char *new_stream,
                             const char *other)
{
    struct stream stream = read_stream(text, size),
                  old = read_stream(old_stream, (size_t)(text - 1 - old_stream)),
                  new = read_stream(new_stream, (size_t)(old_stream - 1 - new_stream));
    size_t count, paths, old_count, new_count;
    int64_t *old_ids = column_of(&old, "context.id", &old_count), *new_ids = column_of(&new, "context.id", &new_count);
    static const char *const keys[] = {"peak", "bytes", "count", "leaked"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *diff = json_of((const char *const[]){"diff", "--json", "--sort", keys[i], other, profile, NULL}, 0);
        check_places(&stream, diff, keys[i], old_ids, new_ids);
        json_decref(diff);
    }
    /* Every context has a path; parents of paths come first. */
    int64_t *above = column_of(&stream, "path.above", &paths), *leaf = column_of(&stream, "path.new_leaf", &count);
    assert_int_equal(count, new_count);
    for (size_t i = 1; i < paths; i++)
        assert_true(above[i] > 0 && above[i] <= (int64_t)i);
    for (size_t i = 0; i < count; i++)
        assert_in_range(leaf[i], 0, paths - 1);
    free(above);
    free(leaf);
    leaf = column_of(&stream, "path.old_leaf", &count);
    assert_int_equal(count, old_count);
    free(leaf);
    free(old_ids);
    free(new_ids);
    free_stream(&stream);
    free_stream(&old);
    free_stream(&new);
}

static void test_with_a_baseline_the_page_has_what_diff_says(void **state)
{
    write_text(template_file, MARK);
    char *other = join_path(directory, "other.hwprof");
    struct run_result result =
        heapwise((const char *const[]){"record", "-q", "-o", other, "--", "/bin/ls", directory, NULL}, NULL);
    run_result_free(&result);
    result = view(WITH("-q", "-o", "-", "--baseline", other, profile));
    assert_exit(&result, 0, "view --baseline");
    const char *second = strchr(result.out, ' '), *third = second ? strchr(second + 1, ' ') : NULL;
    assert_non_null(third);
    const char *end = strstr(third, AND), *rest = end ? end + strlen(AND) : NULL, *other_rest = strchr(rest, ' ');
    assert_non_null(other_rest);
    check_stream(result.out, (size_t)(second - result.out), rest, (size_t)(other_rest - rest), profile);
    check_stream(second + 1, (size_t)(third - second) - 1, other_rest + 1, strlen(other_rest + 1), other);
    check_comparison(third + 1, (size_t)(end - third) - 1, second + 1, result.out, other);
    run_result_free(&result);
    free(other);
}

TEST_LIST_WITH(make_place, remove_place, cmocka_unit_test(test_wrong_usage_is_told),
               cmocka_unit_test(test_pages_are_not_overwritten_unasked),
               cmocka_unit_test(test_a_template_must_be_there_and_of_this_version),
               cmocka_unit_test(test_no_desktop_is_no_failure),
               cmocka_unit_test(test_of_a_damaged_profile_what_is_left_is_shown),
               cmocka_unit_test(test_the_stream_says_what_the_report_says),
               cmocka_unit_test(test_with_a_baseline_the_page_has_what_diff_says))
