/* test_import.c - record --log-blocks and heapwise import perf. The program says where its blocks are and when; the text
 * of perf script is made of that, by hand, as there may be no counters of memory accesses: so each number is known. One
 * test takes samples that perf itself took, of page faults. */
#include "support/check.h"
#include "support/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define L1_LOAD     0x142ull /* data_src, see test_perf_text.c */
#define DRAM_LOAD   0x1042ull
#define L3_HITM     0x800842ull
#define REMOTE_HITM 0x808042ull
#define L1_STORE    0x144ull
#define MISS_STORE  0x184ull

struct shown {
    char name[16];
    unsigned long long begin, end, address;
    size_t size;
};

/* The COUNT first lines of what the program printed; all there are. */
static size_t read_shown(const char *out, struct shown *shown, size_t most)
{
    size_t count = 0;
    for (const char *line = out; *line && count < most; line = strchr(line, '\n') + 1) {
        struct shown *to = &shown[count++];
        assert_int_equal(5, sscanf(line, "%15s %llu %llu %llx %zu", to->name, &to->begin, &to->end, &to->address,
                                   &to->size));
        assert_non_null(strchr(line, '\n'));
    }
    return count;
}

struct text {
    char *path;
    FILE *file;
    unsigned pid;
};

static struct text begin_text(const char *directory, const char *name, unsigned pid)
{
    struct text text = {.path = join_path(directory, name), .pid = pid};
    text.file = fopen(text.path, "w");
    assert_non_null(text.file);
    return text;
}

static void end_text(struct text *text)
{
    assert_int_equal(fclose(text->file), 0);
}

/* As perf prints it, in the middle of the time of WHERE. */
static void put(const struct text *text, const struct shown *where, uint64_t offset, unsigned thread, uint64_t source,
                unsigned weight)
{
    const unsigned long long time = where->begin + (where->end - where->begin) / 2;
    fprintf(text->file,
            "%7u/%-7u %llu.%09llu: cpu/mem-loads,ldlat=30/P: %16" PRIx64 " %16" PRIx64
            " |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A %16u %16x\n",
            text->pid, text->pid + thread, time / 1000000000, time % 1000000000, (uint64_t)where->address + offset, source,
            weight, 0x401136u);
}

static void put_mapping(const struct text *text, uint64_t start, uint64_t size, const char *name)
{
    fprintf(text->file, "%u/%u 0.000000001: PERF_RECORD_MMAP2 %u/%u: [0x%" PRIx64 "(0x%" PRIx64 ") @ 0 00:00 0 0]: rw-p %s\n",
            text->pid, text->pid, text->pid, text->pid, start, size, name);
}

/* The place of blocks that INNER allocated for OUTER. */
static const json_t *place_of(const json_t *report, const char *inner, const char *outer)
{
    const json_t *place, *context;
    size_t i, k;
    json_array_foreach(json_object_get(json_object_get(report, "perf"), "places"), i, place)
        json_array_foreach(json_object_get(report, "contexts"), k, context)
            if (json_number(context, "id") == json_number(place, "context") && strstr(stack_line(context), inner) &&
                strstr(stack_line(context), outer))
                return place;
    fail_msg("no place %s < %s", inner, outer);
    return NULL;
}

static const json_t *word_of(const json_t *place, int64_t offset)
{
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(place, "words"), i, word)
        if (json_number(word, "offset") == offset)
            return word;
    fail_msg("no word at %lld", (long long)offset);
    return NULL;
}

static struct recording record_logged(const char *argument, const char *option)
{
    const char *const arguments[] = {option ? option : "--log-blocks", NULL};
    const char *const argv[] = {need_program("perf_addresses"), argument, NULL};
    struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
    assert_exit(&recording.run, 0, "record");
    return recording;
}

/* heapwise import perf of the text, and the report of what it wrote. */
static json_t *import_and_load(const char *samples, const char *profile, const char *directory, const char *input)
{
    char *output = join_path(directory, "imported.hwprof");
    const char *const import[] = {"import", "perf", "-f", "-o", output, samples, profile, NULL};
    struct run_result result = heapwise(import, &(struct run_options){.input = input});
    assert_exit(&result, 0, "import");
    run_result_free(&result);
    json_t *report = load_report(output, 0);
    free(output);
    return report;
}

static void write_usual_text(struct text *text, const struct shown *shown, size_t count)
{
    const struct shown stack = {"", shown[1].begin, shown[1].end, 0x7fff00010000, 0}, bss = {"", shown[1].begin, shown[1].end, 0x123501000, 0},
                       kernel = {"", shown[1].begin, shown[1].end, 0xffffffff81000000, 0}, early = {"", 1, 1, shown[1].address, 96};
    fputs("# ========\n# clockid: monotonic (1)\n# ========\n#\n", text->file);
    put_mapping(text, 0x7fff00000000, 0x21000, "[stack]");
    put_mapping(text, 0x123400000, 0x100000, "/usr/bin/some thing");
    put_mapping(text, 0x123500000, 0x10000, "//anon");
    put_mapping(text, 0x723500000, 0x10000, "//anon");
    for (size_t i = 0; i < count; i++) {
        const struct shown *at = &shown[i];
        if (!strcmp(at->name, "first")) {
            put(text, at, 8, 0, L1_LOAD, 7);
            put(text, at, 15, 0, DRAM_LOAD, 300);
            put(text, at, 16, 0, L1_STORE, 5);
        } else if (!strcmp(at->name, "second")) {
            put(text, at, 103, 0, DRAM_LOAD, 200);
            put(text, at, 104, 0, DRAM_LOAD, 200); /* one byte behind its end */
        } else if (!strcmp(at->name, "freed")) {
            put(text, at, 8, 0, L1_LOAD, 4);
        } else if (!strcmp(at->name, "resized")) {
            put(text, at, at->size - 1, 0, MISS_STORE, 0);
        } else if (!strcmp(at->name, "shared")) {
            put(text, at, 72, 1, L3_HITM, 90);
            put(text, at, 72, 1, REMOTE_HITM, 400);
            put(text, at, 80, 2, L1_STORE, 0);
            put(text, at, 80, 3, L1_STORE, 0);
            put(text, at, 128, 2, L1_STORE, 0); /* the next line */
        }
    }
    put(text, &stack, 0, 0, L1_LOAD, 4);
    put(text, &bss, 0, 0, L1_LOAD, 4);
    put(text, &kernel, 0, 0, L1_LOAD, 4);
    put(text, &early, 0, 0, L1_LOAD, 4);
    fprintf(text->file, "%u/%u 1.0: mem: 1234 401136\nnonsense\n", text->pid + 1000000, text->pid + 1000000);
}

static void check_usual(const json_t *report)
{
    const json_t *perf = json_object_get(report, "perf");
    /* 2 first * 3 + 2 second * 2 + 4 freed + 4 resized + 5 shared + stack + bss */
    assert_int_equal(json_number(perf, "samples"), 25);
    assert_int_equal(json_number(perf, "in_blocks"), 17);
    assert_int_equal(json_number(perf, "in_stack"), 1);
    assert_int_equal(json_number(perf, "in_files"), 1);
    assert_int_equal(json_number(perf, "elsewhere"), 6);
    assert_int_equal(json_number(perf, "no_address"), 1);
    assert_int_equal(json_number(perf, "outside_run"), 1);
    assert_int_equal(json_number(perf, "other_processes"), 1);
    assert_int_equal(json_number(perf, "after_log"), 0);
    assert_true(json_is_false(json_object_get(perf, "clock_doubted")));
    assert_int_equal(json_number(perf, "sums.all.samples"), 25);
    assert_int_equal(json_number(perf, "sums.blocks.samples"), 17);
    assert_int_equal(json_number(perf, "sums.stack.samples"), 1);

    const json_t *first = place_of(report, "make_first", "show_reused");
    assert_int_equal(json_number(first, "samples"), 6);
    assert_int_equal(json_number(first, "blocks"), 2);
    assert_int_equal(json_number(first, "loads"), 4);
    assert_int_equal(json_number(first, "stores"), 2);
    assert_int_equal(json_number(first, "levels.l1"), 4);
    assert_int_equal(json_number(first, "levels.dram"), 2);
    assert_int_equal(json_number(first, "latency.samples"), 4);
    assert_int_equal(json_number(first, "latency.p50"), 7);
    assert_int_equal(json_number(first, "latency.max"), 300);
    assert_int_equal(json_number(first, "word_count"), 2);
    const json_t *word = word_of(first, 8);
    assert_int_equal(json_number(word, "loads"), 4);
    assert_int_equal(json_number(word, "latency.p99"), 300);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json_object_get(word, "latency"), "histogram"), 2)), 2);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json_object_get(word, "latency"), "histogram"), 8)), 2);
    assert_int_equal(json_number(word_of(first, 16), "stores"), 2);
    assert_true(json_is_null(json_object_get(word_of(first, 16), "latency")));

    const json_t *second = place_of(report, "make_second", "show_reused");
    assert_int_equal(json_number(second, "samples"), 2);
    assert_int_equal(json_number(word_of(second, 96), "levels.dram"), 2);

    const json_t *resized = place_of(report, "make_first", "show_resized");
    assert_int_equal(json_number(resized, "samples"), 4);
    assert_int_equal(json_number(resized, "levels.miss"), 4);
    assert_int_equal(json_number(word_of(resized, 992), "samples"), 1);
    assert_int_equal(json_number(word_of(resized, 1496), "samples"), 1);
    assert_int_equal(json_number(word_of(resized, 299992), "samples"), 2);

    const json_t *shared = place_of(report, "make_shared", "main");
    assert_int_equal(json_number(shared, "hitm_local"), 1);
    assert_int_equal(json_number(shared, "hitm_remote"), 1);
    const json_t *lines = json_object_get(perf, "lines"), *sides = json_object_get(json_array_get(lines, 0), "sides");
    assert_int_equal(json_array_size(lines), 1);
    assert_int_equal(json_number(json_array_get(lines, 0), "hitm"), 2);
    assert_int_equal(json_number(json_array_get(lines, 0), "lines"), 1);
    assert_int_equal(json_array_size(sides), 2);
    const json_t *loaded = json_array_get(sides, 0), *stored = json_array_get(sides, 1);
    assert_int_equal(json_number(loaded, "context"), json_number(shared, "context"));
    assert_int_equal(json_number(loaded, "offset"), 72);
    assert_int_equal(json_number(loaded, "hitm"), 2);
    assert_int_equal(json_number(loaded, "threads"), 1);
    assert_int_equal(json_number(stored, "offset"), 80);
    assert_int_equal(json_number(stored, "stores"), 2);
    assert_int_equal(json_number(stored, "threads"), 2);
}

/* From a file and from standard input. The profile that comes of it has no log, and cannot be imported into again. */
static void test_known_blocks(void **state)
{
    struct shown shown[64];
    struct recording recording = record_logged(NULL, NULL);
    const size_t count = read_shown(recording.run.out, shown, 64);
    struct text text = begin_text(recording.directory, "samples.txt", (unsigned)shown[0].begin);
    write_usual_text(&text, shown, count);
    end_text(&text);
    json_t *report = import_and_load(text.path, recording.files[0], recording.directory, NULL);
    check_usual(report);
    json_decref(report);

    char *bytes = NULL;
    size_t size = 0;
    FILE *file = fopen(text.path, "r");
    assert_non_null(file);
    assert_true(getdelim(&bytes, &size, '\0', file) > 0);
    fclose(file);
    report = import_and_load("-", recording.files[0], recording.directory, bytes);
    check_usual(report);
    json_decref(report);
    free(bytes);

    char *imported = join_path(recording.directory, "imported.hwprof");
    assert_refused((const char *const[]){"import", "perf", text.path, imported, NULL}, "has samples of perf already");
    assert_refused((const char *const[]){"import", "perf", "-o", imported, text.path, recording.files[0], NULL},
                   "exists already");
    struct run_result result = heapwise((const char *const[]){"report", "--section", "perf", imported, NULL}, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "Memory accesses sampled by perf");
    assert_contains(result.out, "make_shared");
    assert_contains(result.out, "offset +72");
    assert_contains(result.out, "median 7, 90 % up to 300");
    run_result_free(&result);
    result = heapwise((const char *const[]){"report", "--section", "perf", recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, "report");
    assert_contains(result.out, "no samples of perf");
    run_result_free(&result);
    free(imported);
    free(text.path);
    recording_free(&recording);
}

static void test_refusals(void **state)
{
    struct shown shown[64];
    struct recording recording = record_logged(NULL, NULL);
    read_shown(recording.run.out, shown, 64);
    const unsigned pid = (unsigned)shown[0].begin;
    char *output = join_path(recording.directory, "out.hwprof");
    const struct {
        const char *text;
        unsigned pid;
        const char *message;
    } all[] = {
        {"", 0, "has no samples"},
        {"nonsense\n", 0, "has no samples with process, time and address"},
        {NULL, 1, "has no sample of process"},
        {"# clockid: monotonic_raw (4)\n", pid, "another clock"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct text text = begin_text(recording.directory, "refused.txt", all[i].pid);
        if (all[i].text)
            fputs(all[i].text, text.file);
        if (all[i].pid)
            put(&text, &shown[1], 0, 0, L1_LOAD, 1);
        end_text(&text);
        assert_refused((const char *const[]){"import", "perf", "-o", output, text.path, recording.files[0], NULL},
                       all[i].message);
        free(text.path);
    }
    /* another clock, which nothing says */
    struct text text = begin_text(recording.directory, "refused.txt", pid);
    const struct shown early = {"", 5, 5, shown[1].address, 0};
    put(&text, &early, 0, 0, L1_LOAD, 1);
    end_text(&text);
    assert_refused((const char *const[]){"import", "perf", "-o", output, text.path, recording.files[0], NULL},
                   "lies within its run");
    /* the same process under another number */
    char number[24];
    text.file = fopen(text.path, "w");
    assert_non_null(text.file);
    text.pid = pid + 1000000;
    put(&text, &shown[1], 0, 0, L1_LOAD, 1);
    end_text(&text);
    snprintf(number, sizeof number, "--pid=%u", text.pid);
    struct run_result result =
        heapwise((const char *const[]){"import", "perf", number, "-o", output, text.path, recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, "import --pid");
    assert_contains(result.err, "1 sample of process");
    run_result_free(&result);
    assert_refused((const char *const[]){"import", "perf", "/nowhere/samples", recording.files[0], NULL},
                   "/nowhere/samples cannot be read");
    assert_refused((const char *const[]){"import", "perf", text.path, text.path, NULL}, "");
    assert_refused((const char *const[]){"import", "perf", text.path, NULL}, "which PROFILE?");
    assert_refused((const char *const[]){"import", "perf", NULL}, "which SAMPLES");
    assert_refused((const char *const[]){"import", NULL}, "of what?");
    assert_refused((const char *const[]){"import", "vtune", "a", "b", NULL}, "'vtune' is not known");
    recording_free(&recording);

    /* without a log */
    const char *const argv[] = {need_program("perf_addresses"), NULL};
    recording = record_and_load(argv, &(struct record_options){0});
    assert_refused((const char *const[]){"import", "perf", "/dev/null", recording.files[0], NULL}, "--log-blocks");
    free(text.path);
    free(output);
    recording_free(&recording);
}

/* A block that the child has inherited, until it frees it, and one of its own. */
static void test_fork(void **state)
{
    struct shown shown[64];
    struct recording recording = record_logged("fork", NULL);
    const size_t count = read_shown(recording.run.out, shown, 64);
    assert_int_equal(recording.file_count, 2);
    const json_t *child = json_object_get(recording.reports[1], "process");
    struct text text = begin_text(recording.directory, "samples.txt", (unsigned)json_number(child, "pid"));
    for (size_t i = 1; i < count; i++)
        put(&text, &shown[i], 16, 0, L1_LOAD, 3);
    end_text(&text);
    json_t *report = import_and_load(text.path, recording.files[1], recording.directory, NULL);
    assert_int_equal(json_number(json_object_get(report, "perf"), "samples"), 2);
    assert_int_equal(json_number(json_object_get(report, "perf"), "in_blocks"), 2);
    assert_int_equal(json_number(place_of(report, "make_second", "use_in_child"), "samples"), 1);
    json_decref(report);
    free(text.path);
    recording_free(&recording);
}

/* A log that is full: what came before is right, what comes later is said to be unknown. */
static void test_full(void **state)
{
    struct shown shown[64];
    struct recording recording = record_logged("many", "--log-blocks=64K");
    const size_t count = read_shown(recording.run.out, shown, 64);
    assert_int_equal(count, 3);
    assert_true(report_says(recording.report, "the log of blocks ended"));
    struct text text = begin_text(recording.directory, "samples.txt", (unsigned)shown[0].begin);
    put(&text, &shown[1], 0, 0, L1_LOAD, 3);
    put(&text, &shown[2], 0, 0, L1_LOAD, 3);
    end_text(&text);
    json_t *report = import_and_load(text.path, recording.files[0], recording.directory, NULL);
    assert_int_equal(json_number(json_object_get(report, "perf"), "in_blocks"), 1);
    assert_int_equal(json_number(json_object_get(report, "perf"), "after_log"), 1);
    json_decref(report);
    free(text.path);
    recording_free(&recording);
}

static void test_options(void **state)
{
    static const char *const wrong[][3] = {{"--mode=allocator", "--log-blocks", "--log-blocks cannot be combined"},
                                           {"--sample-bytes=64K", "--log-blocks", "--log-blocks cannot be combined"},
                                           {"--paused", "--log-blocks", "--paused cannot be combined"},
                                           {"-q", "--log-blocks=5", "a number of bytes from 64K to 64G"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct run_result result =
            heapwise((const char *const[]){"record", wrong[i][0], wrong[i][1], "--", "true", NULL}, NULL);
        assert_exit(&result, 125, "record");
        assert_contains(result.err, wrong[i][2]);
        run_result_free(&result);
    }
}

/* perf.data of page faults, which have addresses, where perf may record them. */
static void test_perf_itself(void **state)
{
    if (!have_command("perf"))
        SKIP("there is no perf");
    const char *const program = need_program("perf_addresses");
    char *directory = make_directory(), *data = join_path(directory, "perf.data"), *profile = join_path(directory, "p.hwprof");
    const char *const probe[] = {"perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "page-faults", "-c", "1", "-d", "-o",
                                 data,   "true",   NULL};
    struct run_result result = run(probe, NULL);
    const bool possible = !result.code && !result.signal;
    run_result_free(&result);
    const char *const read[] = {"perf", "script", "--header", "--show-mmap-events", "--ns", "-G", "-i", data, "-F",
                                "pid,tid,time,event,ip,addr", NULL};
    result = run(read, NULL);
    const bool readable = !result.code && strstr(result.out, "PERF_RECORD_MMAP2") && strstr(result.out, "page-faults:") &&
                          strstr(result.out, "# clockid: monotonic");
    run_result_free(&result);
    if (!possible || !readable)
        SKIP("perf cannot record page faults here");
    const char *const record[] = {"perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "page-faults", "-c", "1", "-d", "-o",
                                  data,   heapwise_path(), "record", "-q", "--log-blocks", "-o", profile, "--", program, "fault", NULL};
    result = run(record, NULL);
    assert_exit(&result, 0, "perf record");
    run_result_free(&result);
    json_t *report = import_and_load(data, profile, directory, NULL);
    const json_t *place = place_of(report, "make_first", "main");
    assert_true(json_number(place, "samples") >= 1);
    assert_int_equal(json_number(place, "blocks"), 1);
    assert_true(json_is_false(json_object_get(json_object_get(report, "perf"), "clock_doubted")));
    assert_true(json_number(json_object_get(report, "perf"), "in_files") >= 1);
    json_decref(report);
    free(data);
    free(profile);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_known_blocks), cmocka_unit_test(test_refusals), cmocka_unit_test(test_fork),
          cmocka_unit_test(test_full), cmocka_unit_test(test_options), cmocka_unit_test(test_perf_itself))
