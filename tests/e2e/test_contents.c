/* test_contents.c - what blocks hold: the program knows it. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct recording record_contents(const char *first, const char *second, const char *options)
{
    const char *const argv[] = {need_program("contents"), NULL};
    const char *const arguments[] = {first, "--no-pack", second, NULL};
    const struct record_options record = {.arguments = arguments, .options = options};
    struct recording recording = record_and_load(argv, &record);
    assert_non_null(recording.report);
    return recording;
}

static int64_t number_of(const json_t *report, const char *function, const char *key)
{
    size_t at, i;
    json_t *context, *row;
    int64_t sum = 0;
    json_array_foreach(json_object_get(report, "contexts"), at, context)
    {
        bool has = false;
        for (size_t frame = 0; frame < stack_depth(context); frame++)
            has |= !strcmp(stack_function(context, frame), function);
        json_array_foreach(json_object_get(report, "contents"), i,
                           row) if (has && json_number(row, "context") == json_number(context, "id")) sum +=
            json_number(row, key);
    }
    return sum;
}

static void test_numbers(void **state)
{
    static const char *const stores[] = {NULL, "block-table=1"};
    for (size_t i = 0; i < 2; i++) {
        struct recording recording = record_contents("--contents=fill", NULL, stores[i]);
        const json_t *report = recording.report;
        assert_int_equal(number_of(report, "of_copies", "identical_bytes"), 700 * 48);
        assert_int_equal(number_of(report, "of_copies", "repeated_contents"), 100);
        assert_int_equal(number_of(report, "of_copies", "unused_tail_bytes"), 0);
        assert_int_equal(number_of(report, "of_zeros", "zero_bytes"), 100 * 200);
        assert_int_equal(number_of(report, "of_zeros", "identical_bytes"), 0);
        assert_int_equal(number_of(report, "of_tails", "unused_tail_bytes"), 50 * (400 - 55));
        assert_int_equal(number_of(report, "of_unwritten", "never_written_bytes"), 60 * 1000);
        assert_int_equal(number_of(report, "of_shifted", "identical_bytes"), 9 * 100000);
        recording_free(&recording);
    }
}

static bool has_secret(const char *path)
{
    static const char secret[] = "secret-word-";
    FILE *file = fopen(path, "rb");
    size_t matched = 0;
    assert_non_null(file);
    for (int c; matched < sizeof secret - 1 && (c = getc(file)) != EOF;)
        matched = c == secret[matched] ? matched + 1 : c == secret[0];
    fclose(file);
    return matched == sizeof secret - 1;
}

/* A profile with bytes of blocks is its owner's alone, also once it is packed. */
static void test_private(void **state)
{
    const mode_t usual_mask = umask(022);
    umask(usual_mask);
    struct stat packed;
    static const char *const with_contents[] = {"--contents", NULL};
    struct recording one = record_and_load((const char *const[]){need_program("contents"), NULL},
                                           &(struct record_options){.arguments = with_contents});
    assert_int_equal(stat(one.files[0], &packed), 0);
    assert_int_equal(packed.st_mode & 0777, 0600);
    recording_free(&one);
    static const struct {
        const char *first, *second;
        bool there;
    } runs[] = {{"--contents", NULL, true}, {"--contents", "--no-samples", false}, {"--leaks", NULL, false}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct recording recording = record_contents(runs[i].first, runs[i].second, NULL);
        assert_int_equal(has_secret(recording.files[0]), runs[i].there);
        struct stat status;
        assert_int_equal(stat(recording.files[0], &status), 0);
        if (runs[i].there)
            assert_int_equal(status.st_mode & 0777, 0600);
        else
            assert_int_equal(status.st_mode & 0777, 0666 & ~usual_mask);
        recording_free(&recording);
    }
}

static struct recording record_argument(const char *argument, const char *option, const char *second)
{
    const char *const argv[] = {need_program("contents"), argument, NULL};
    const char *const arguments[] = {option, second, NULL};
    const struct record_options record = {.arguments = arguments};
    struct recording recording = record_and_load(argv, &record);
    assert_non_null(recording.report);
    return recording;
}

struct known {
    uint64_t address, size;
    const char *bytes;
};

static uint64_t used_bytes(const struct known *block)
{
    uint64_t used = block->size;
    while (used && !block->bytes[used - 1])
        used--;
    return used;
}

/* Pages of zeros in the middle of blocks. */
static uint64_t zero_pages(const struct known *block, uint64_t used)
{
    uint64_t bytes = 0;
    for (uint64_t at = -block->address & 4095; at + 4096 <= used; at += 4096) {
        uint64_t zeros = 0;
        while (zeros < 4096 && !block->bytes[at + zeros])
            zeros++;
        bytes += zeros == 4096 ? 4096 : 0;
    }
    return bytes;
}

/* The program writes down what its blocks hold; each is compared with each. */
static void test_counted(void **state)
{
    static struct known blocks[2000];
    static char bytes[8 << 20];
    char path[] = "/tmp/heapwise-contents-XXXXXX";
    close(mkstemp(path));
    struct recording recording = record_argument(path, "--contents", NULL);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = 0, used_room = 0;
    while (fread(&blocks[count], 16, 1, file) == 1) {
        assert_true(count < 1999 && used_room + blocks[count].size <= sizeof bytes);
        blocks[count].bytes = bytes + used_room;
        assert_int_equal(fread(bytes + used_room, 1, blocks[count].size, file), blocks[count].size);
        used_room += blocks[count++].size;
    }
    fclose(file);
    unlink(path);
    int64_t identical = 0, zeros = 0, tails = 0, all = 0, avoidable_zeros = 0, ends = 0;
    for (size_t i = 0; i < count; i++) {
        const struct known *block = &blocks[i];
        const uint64_t used = used_bytes(block), tail = block->size - used;
        size_t same = 0;
        all += (int64_t)block->size;
        if (!used) {
            zeros += (int64_t)block->size;
            avoidable_zeros += (int64_t)block->size;
            continue;
        }
        while (blocks[same].size != block->size || memcmp(blocks[same].bytes, block->bytes, block->size) != 0)
            same++;
        const uint64_t pages = zero_pages(block, used);
        zeros += (int64_t)pages;
        tails += tail >= 16 ? (int64_t)tail : 0;
        identical += same < i ? (int64_t)block->size : 0;
        avoidable_zeros += same < i ? 0 : (int64_t)pages;
        ends += same == i && tail >= 32 && tail * 4 >= block->size ? (int64_t)tail : 0;
    }
    assert_true(count == 1500 && identical && zeros && tails);
    assert_int_equal(number_of(recording.report, "of_random", "bytes"), all);
    assert_int_equal(number_of(recording.report, "of_random", "identical_bytes"), identical);
    assert_int_equal(number_of(recording.report, "of_random", "zero_bytes"), zeros);
    assert_int_equal(number_of(recording.report, "of_random", "unused_tail_bytes"), tails);
    assert_int_equal(number_of(recording.report, "of_random", "avoidable_copies"), identical);
    assert_int_equal(number_of(recording.report, "of_random", "avoidable_zeros"), avoidable_zeros);
    assert_int_equal(number_of(recording.report, "of_random", "avoidable_ends"), ends);
    assert_int_equal(number_of(recording.report, "of_random", "avoidable_bytes"), identical + avoidable_zeros + ends);
    recording_free(&recording);
}

/* The estimate of copies is that of a known number, with an error that is said and less than MOST. */
static void assert_within_error(const struct recording *recording, const char *function, int64_t truth, int64_t most)
{
    const int64_t found = number_of(recording->report, function, "identical_bytes"),
                  error = number_of(recording->report, function, "identical_bytes_error"),
                  of_all = json_number(recording->report, "content_search.identical_bytes_error");
    if (labs((long)(found - truth)) > 5 * error / 2 || error > most || of_all < error)
        fail_msg("%s: %ld bytes are copies, not %ld; error %ld, of all %ld", function, (long)found, (long)truth,
                 (long)error, (long)of_all);
}

/* A content that occurs often is never missed, whatever its hash. */
static void test_one_in_many(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct recording recording = record_argument("one", "--contents", NULL);
        assert_within_error(&recording, "of_one_in_many", 2999 * 24, 2999 * 24 / 20);
        recording_free(&recording);
    }
}

/* Threads that wait do not see that they were stopped. */
static void test_waits(void **state)
{
    struct recording recording = record_argument("waits", "--contents", NULL);
    assert_exit(&recording.run, 0, "contents waits");
    assert_true(recording.file_count > 3);
    assert_string_equal(recording.run.out, "0\n");
    recording_free(&recording);
}

/* Different contents look different. */
static void test_examples(void **state)
{
    static const char *const shown[] = {"  \"abcdefgh\\x00secondpart12345\"\n", "  \"abcdefgh\\x00thirdpart-12345\"\n",
                                        "  \"abcdefgh\"\n", "  \"\\\\xff\\\\xff\\\\xff\\\\xff\"\n", "  hex ffffffff\n"};
    struct recording recording = record_argument("examples", "--contents", NULL);
    struct run_result text =
        heapwise((const char *const[]){"report", "--section=contents", "--full", recording.files[0], NULL}, NULL);
    assert_exit(&text, 0, "report");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strstr(text.out, shown[i]))
            fail_msg("%s is not in %s", shown[i], text.out);
    assert_non_null(strstr(text.out, "say \\\"\\xe2\\x80\\xae"));
    run_result_free(&text);
    size_t i, texts = 0, others = 0;
    json_t *example;
    json_array_foreach(json_object_get(json_object_get(recording.report, "content_search"), "most_frequent"), i,
                       example)
    {
        const char *hex = json_string_value(json_object_get(example, "hex"));
        others += hex != NULL;
        texts += json_is_string(json_object_get(example, "text"));
        assert_true(!hex || strlen(hex) == 2 * (size_t)json_number(example, "bytes"));
    }
    assert_int_equal(texts, 2);
    assert_int_equal(others, 4);
    recording_free(&recording);
}

/* With fill, what was never written is no copy, and Heapwise's own bytes are not shown. */
static void test_filled(void **state)
{
    struct recording recording = record_argument("fill", "--contents=fill", NULL);
    const json_t *report = recording.report;
    assert_int_equal(number_of(report, "of_headers", "identical_bytes"), 499 * 512);
    assert_in_range(number_of(report, "of_headers", "avoidable_copies"), 499 * 7, 499 * 8);
    assert_in_range(number_of(report, "of_headers", "avoidable_bytes"), 499 * 512, 500 * 512);
    /* one byte that was never written is not known from one that was */
    int64_t unwritten = 0;
    for (int i = 0; i < 1000; i++)
        unwritten += 70 - i % 48;
    assert_in_range(number_of(report, "of_short_strings", "never_written_bytes"), unwritten - 100, unwritten + 100);
    struct run_result text =
        heapwise((const char *const[]){"report", "--section=contents", recording.files[0], NULL}, NULL);
    assert_exit(&text, 0, "report");
    assert_non_null(strstr(text.out, "were never written: allocate less"));
    assert_non_null(strstr(text.out, "\"header\", then never written"));
    run_result_free(&text);
    recording_free(&recording);
}

static void test_reasons(void **state)
{
    static const struct {
        const char *argument, *reason;
    } runs[] = {{"killed", "SIGKILL ended"}, {"no-file", "the file could not grow"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct recording recording = record_argument(runs[i].argument, "--contents", NULL);
        struct run_result text =
            heapwise((const char *const[]){"report", "--section=contents", recording.files[0], NULL}, NULL);
        assert_exit(&text, 0, "report");
        if (!strstr(text.out, runs[i].reason) || strstr(text.out, "record --contents does that"))
            fail_msg("%s: %s", runs[i].argument, text.out);
        run_result_free(&text);
        recording_free(&recording);
    }
}

/* No byte counts twice where the table cannot hold all contents: copies are estimates then. */
static void test_sampled(void **state)
{
    struct recording recording = record_argument("many", "--contents", NULL);
    assert_true(json_number(recording.report, "content_search.one_content_in") > 1);
    const int64_t avoidable = number_of(recording.report, "of_many", "avoidable_bytes");
    assert_in_range(avoidable, 100000 * 120 / 10 * 9, 100000 * 120 / 10 * 11);
    assert_within_error(&recording, "of_many", 100000 * 80, 100000 * 80 / 20);
    recording_free(&recording);
}

static void test_before_peak(void **state)
{
    struct recording recording = record_argument("peak", "--contents", "--contents-peak=500K");
    const json_t *report = recording.report;
    assert_string_equal(json_text(report, "content_search.moment"), "before-peak");
    assert_true(json_number(report, "content_search.bytes") >= 500 << 10);
    assert_true(json_number(report, "content_search.peak_bytes") > json_number(report, "content_search.bytes"));
    recording_free(&recording);
}

/* What a byte is worth counts once, places that gain little are not named, and all formats say the same. */
static void test_findings(void **state)
{
    struct recording recording = record_argument("findings", "--contents", NULL);
    const json_t *findings = json_object_get(recording.report, "findings");
    assert_int_equal(json_array_size(findings), 2);
    const json_t *copies = json_array_get(findings, 0), *ends = json_array_get(findings, 1);
    assert_string_equal(json_text(copies, "kind"), "identical-blocks");
    assert_int_equal(json_number(copies, "gain_bytes"), 7000 * 48);
    assert_non_null(strstr(json_text(copies, "title"), "Strings are copies of others: "));
    assert_non_null(strstr(json_text(copies, "why"), "7,000 strings"));
    assert_non_null(strstr(json_text(copies, "why"), "of 48 B: each content occurs 8.00 times on average."));
    assert_string_equal(json_text(ends, "kind"), "unused-ends");
    assert_int_equal(json_number(ends, "gain_bytes"), 500 * 300);
    struct run_result text =
        heapwise((const char *const[]){"report", "--section=findings", recording.files[0], NULL}, NULL);
    assert_exit(&text, 0, "report");
    assert_non_null(strstr(text.out, "Allocated by of_strings"));
    assert_non_null(strstr(text.out, "Intern them"));
    assert_non_null(strstr(text.out, "Allocated by of_reserved"));
    assert_null(strstr(text.out, "of_different"));
    assert_null(strstr(text.out, "of_few"));
    run_result_free(&text);
    recording_free(&recording);
}

/* Nothing that may not be touched is touched, and what cannot be read is counted as that. */
static void test_hostile_memory(void **state)
{
    char path[] = "/tmp/heapwise-contents-XXXXXX";
    close(mkstemp(path));
    const char *const argv[] = {need_program("contents"), "hostile", path, NULL};
    static const char *const arguments[] = {"--contents", NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    unlink(path);
    assert_exit(&recording.run, 0, "contents hostile");
    assert_int_equal(number_of(recording.report, "of_strings", "identical_bytes"), 7000 * 48);
    assert_int_equal(number_of(recording.report, "of_protected", "bytes"), 1 << 20);
    assert_int_equal(number_of(recording.report, "of_protected", "unread_bytes"), 2 * 4096);
    /* of the files 4 KiB are left, and 8 KiB that were copied */
    assert_in_range(number_of(recording.report, "of_pools", "unread_bytes"), 2 * 65536 - 3 * 4096, 7 * 65536);
    recording_free(&recording);
}

static void assert_clean(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_true((unsigned char)bytes[i] >= 32 || bytes[i] == '\n');
    assert_null(memmem(bytes, size, "\xff", 1));
}

/* Text of the program is no text of Heapwise's. */
static void test_hostile_text(void **state)
{
    struct recording recording = record_argument("text", "--contents", NULL);
    const char *file = recording.files[0];
    assert_string_equal(json_text(json_array_get(json_object_get(recording.report, "findings"), 0), "kind"),
                        "identical-blocks");
    static const char *const verbs[][3] = {{"report", "--section=contents", "--full"},
                                           {"report", "--section=findings", "--full"},
                                           {"report", "--json", "--full"}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct run_result result = heapwise(
            (const char *const[]){verbs[i][0], verbs[i][1], i == 2 ? file : verbs[i][2], i == 2 ? NULL : file, NULL},
            NULL);
        assert_exit(&result, 0, "report");
        assert_non_null(strstr(result.out, "evil"));
        assert_clean(result.out, result.out_size);
        run_result_free(&result);
    }
    char *page = join_path(recording.directory, "page.html");
    struct run_result result = heapwise((const char *const[]){"view", file, "-o", page, NULL}, NULL);
    assert_exit(&result, 0, "view");
    run_result_free(&result);
    FILE *stream = fopen(page, "rb");
    char *bytes = NULL;
    size_t room = 0;
    assert_non_null(stream);
    const ssize_t size = getdelim(&bytes, &room, 256, stream); /* no byte is that: all */
    fclose(stream);
    assert_true(size > 10000);
    assert_null(memmem(bytes, (size_t)size, "</script><b>", 12));
    assert_null(memchr(bytes, 27, (size_t)size));
    free(bytes);
    free(page);
    recording_free(&recording);
}

/* Threads that write while the others end, and allocate. */
/* Lines of the report fit into the usual 80 columns. */
static void test_columns(void **state)
{
    struct recording recording = record_contents("--contents=fill", "--pinned", NULL);
    struct run_result result = heapwise(
        (const char *const[]){"report", "--section", "contents,pinned,memory", recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, result.err);
    size_t columns = 0;
    for (const char *at = result.out; *at; at++) {
        columns = *at == '\n' ? 0 : columns + ((*at & 0xc0) != 0x80);
        if (columns > 80)
            fail_msg("more than 80 columns, until: %.60s", at - 60);
    }
    run_result_free(&result);
    recording_free(&recording);
}

static void test_threads(void **state)
{
    struct recording recording = record_argument("threads", "--contents", NULL);
    assert_exit(&recording.run, 0, "contents threads");
    assert_int_equal(number_of(recording.report, "of_strings", "identical_bytes"), 7000 * 48);
    assert_int_equal(number_of(recording.report, "of_written", "bytes"), 64 * 4096);
    assert_int_equal(json_number(recording.report, "content_search.threads_missed"), 0);
    recording_free(&recording);
}

static void test_fork(void **state)
{
    struct recording recording = record_argument("fork", "--contents", NULL);
    assert_exit(&recording.run, 0, "contents fork");
    assert_int_equal(recording.file_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(number_of(recording.reports[i], "of_child", "identical_bytes"), i ? 999 * 64 : 0);
        assert_int_equal(number_of(recording.reports[i], "of_strings", "identical_bytes"), 7000 * 48);
    }
    recording_free(&recording);
}

/* A program that gave up system calls goes on; nothing is said of its blocks. */
static void test_confined(void **state)
{
    struct recording recording = record_argument("confined", "--contents", NULL);
    assert_exit(&recording.run, 0, "contents confined");
    assert_true(json_is_null(json_object_get(recording.report, "contents")));
    recording_free(&recording);
}

static void test_sqlite(void **state)
{
    if (!have_command("node") || access(TEST_SOURCES "/exports/node_modules/pprof-format", R_OK) != 0)
        SKIP("the readers are not installed (scripts/setup test)");
    struct recording recording = record_argument("findings", "--contents", NULL);
    char *report = join_path(recording.directory, "contents.json"),
         *out = join_path(recording.directory, "contents.db");
    assert_int_equal(json_dump_file(recording.report, report, 0), 0);
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", "sqlite", "-o", out, recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, "export");
    run_result_free(&result);
    result = run((const char *const[]){"node", TEST_SOURCES "/exports/check.mjs", "sqlite", out, report, NULL}, NULL);
    if (result.code != 0)
        fail_msg("%s%s", result.out, result.err);
    assert_non_null(strstr(result.out, "contents of"));
    run_result_free(&result);
    free(report);
    free(out);
    recording_free(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_private),      cmocka_unit_test(test_counted),
        cmocka_unit_test(test_sampled),        cmocka_unit_test(test_before_peak),  cmocka_unit_test(test_findings),
        cmocka_unit_test(test_hostile_memory), cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),           cmocka_unit_test(test_confined),     cmocka_unit_test(test_sqlite),
        cmocka_unit_test(test_one_in_many),    cmocka_unit_test(test_waits),        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_filled),         cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
