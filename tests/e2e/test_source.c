/* test_source.c - source lines with their sums: report --source, view --source, on programs/recursing.c. Sums are those
 * of report --json --by line, texts those of the file; then files that are not what the program was built from. */
#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *profile, *name, *mapping, *copy, *text; /* of the source file: its path as built, OLD=NEW, NEW, contents */

static char *read_text(const char *path)
{
    char *contents = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(getdelim(&contents, &size, '\0', file) > 0);
    fclose(file);
    return contents;
}

static json_t *lines_by_sum(json_t **report)
{
    const char *const arguments[] = {"report", "--json", "--value", "count", "--by", "line", profile, NULL};
    *report = json_of(arguments, 0);
    return json_object_get(json_object_get(*report, "groups"), "rows");
}

static int make_source(void **state)
{
    static const char end[] = "/recursing.c";
    const char *program = program_path("recursing");
    assert_non_null(program);
    make_test_directory(state);
    setenv("COLUMNS", "500", 1); /* so that lines are not cut */
    profile = join_path(test_directory, "recursing.hwprof");
    copy = join_path(test_directory, "recursing.c");
    const char *const arguments[] = {"record", "-q", "-f", "-o", profile, "--", program, NULL};
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    json_t *report, *rows = lines_by_sum(&report);
    for (size_t i = 0; i < json_array_size(rows) && !name; i++) {
        const char *file = json_text(json_array_get(rows, i), "file");
        if (strlen(file) > strlen(end) && !strcmp(file + strlen(file) - strlen(end), end))
            name = strdup(file);
    }
    json_decref(report);
    assert_non_null(name);
    assert_true(asprintf(&mapping, "%.*s=%s", (int)(strlen(name) - strlen(end)), name, test_directory) > 0);
    text = read_text(name);
    return 0;
}

static int remove_source(void **state)
{
    free(profile);
    free(name);
    free(mapping);
    free(copy);
    free(text);
    return remove_test_directory(state);
}

/* Line NUMBER of the file, without its end; *SIZE bytes. */
static const char *line_of(unsigned number, size_t *size)
{
    const char *at = text;
    while (--number)
        at = strchr(at, '\n') + 1;
    *size = strcspn(at, "\n");
    return at;
}

static const json_t *sums_of(const json_t *rows, unsigned number)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!strcmp(json_text(row, "file"), name) && json_number(row, "line") == number)
            return row;
    }
    return NULL;
}

static struct run_result source_of(const char *function, const char *more)
{
    const char *const arguments[] = {"report",
                                     "--value",
                                     "count",
                                     "--source",
                                     function,
                                     more ? "--source-path" : profile,
                                     more ? more : NULL,
                                     more ? profile : NULL,
                                     NULL};
    return heapwise(arguments, NULL);
}

/* Every line that is printed is that of the file, with the sums of --by line; returns how many have sums. */
static size_t check_lines(const char *printed, const json_t *rows)
{
    size_t counted = 0;
    char *copied = strdup(printed), *rest = copied, *line;
    while ((line = strsep(&rest, "\n"))) {
        char self[16], total[16];
        unsigned number;
        int used = 0;
        if (sscanf(line, "%15s %15s %u%n", self, total, &number, &used) != 3)
            continue;
        const json_t *sums = sums_of(rows, number);
        char expected[2][16] = {".", "."};
        for (int i = 0; sums && i < 2; i++)
            if (json_number(sums, i ? "total" : "self"))
                snprintf(expected[i], sizeof expected[i], "%d", (int)json_number(sums, i ? "total" : "self"));
        assert_string_equal(self, expected[0]);
        assert_string_equal(total, expected[1]);
        counted += sums != NULL;
        size_t size;
        const char *source = line_of(number, &size);
        const char *shown = line + used + (size ? 2 : 0);
        assert_int_equal(strlen(shown), size);
        assert_memory_equal(shown, source, size);
    }
    free(copied);
    return counted;
}

static void test_lines_have_the_sums_of_the_table(void **state)
{
    static const struct {
        const char *function, *line;
        size_t counted; /* at least */
    } rows[] = {{"make_node", "15         15  12      kept[kept_count++] = malloc(1000);", 1},
                {"thread_work", " 4          4  47          kept[kept_count++] = malloc(250);", 1},
                {"build_tree", "         .         15  19      make_node();", 1},
                {"main", "(10);", 2}};
    json_t *report, *sums = lines_by_sum(&report);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_result result = source_of(rows[i].function, NULL);
        assert_exit(&result, 0, rows[i].function);
        assert_contains(result.out, rows[i].line);
        assert_contains(result.out, name);
        assert_true(check_lines(result.out, sums) >= rows[i].counted);
        run_result_free(&result);
    }
    json_decref(report);
}

static void write_copy(const void *contents, size_t size, bool old)
{
    unlink(copy); /* a failed test may have left something else */
    FILE *file = fopen(copy, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(contents, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    if (old)
        assert_int_equal(utimensat(AT_FDCWD, copy, times, 0), 0);
}

/* The source of make_node out of the copy, whose last line is that of PROBLEM, unless it is NULL. */
static void check_copy(const char *contained, const char *problem)
{
    struct run_result result = source_of("make_node", mapping);
    assert_exit(&result, 0, contained);
    for (char *at = result.out; (at = strstr(at, "\n  ")); at++) /* sentences in one line each */
        memmove(at + 1, at + 3, strlen(at + 3) + 1), *at = ' ';
    assert_contains(result.out, contained);
    if (problem)
        assert_contains(result.out, problem);
    else
        assert_lacks(result.out, "! ");
    run_result_free(&result);
}

static void test_files_elsewhere_and_other_files(void **state)
{
    write_copy(text, strlen(text), true);
    check_copy("malloc(1000)", NULL);
    check_copy(copy, NULL);
    write_copy(text, strlen(text), false);
    check_copy("malloc(1000)", "changed after recursing");
    write_copy("one\ntwo\nthree", 13, true);
    check_copy("(not read)", "has 3 lines");
    write_copy("", 0, true);
    check_copy("(not read)", "has 0 lines");
    write_copy("int a;\n\0int b;\n", 15, true);
    check_copy("(not read)", "not a text file");
    assert_int_equal(unlink(copy), 0);
    check_copy("(not read)", "No such file");
    check_copy(copy, "--source-path OLD=NEW");
    assert_int_equal(mkfifo(copy, 0600), 0);
    check_copy("(not read)", "not a regular file");
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(mkdir(copy, 0700), 0);
    check_copy("(not read)", "not a regular file");
    assert_int_equal(rmdir(copy), 0);
    assert_int_equal(symlink("/dev/zero", copy), 0);
    check_copy("(not read)", "not a regular file");
    assert_int_equal(unlink(copy), 0);
}

/* Nothing of a line does anything to a terminal. */
static void test_odd_bytes(void **state)
{
    char *made = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&made, &size);
    fprintf(file, "a\n\n\n\n\n\n\n\n\n\033[31mred\xff\xfe\r\n\x01\t\x02 <b>\n\tkept = malloc(1000); ");
    for (int i = 0; i < 50000; i++)
        fputs("\xc3\xa9\x1b", file);
    fputs("\nend", file);
    fclose(file);
    write_copy(made, size, true);
    struct run_result result = source_of("make_node", mapping);
    assert_exit(&result, 0, "odd bytes");
    assert_lacks(result.out, "\033");
    assert_lacks(result.out, "\r");
    assert_lacks(result.out, "\t");
    assert_lacks(result.out, "\xff");
    assert_contains(result.out, "\\x1b[31mred\\xff\\xfe\n");
    assert_contains(result.out, "\\x01    \\x02 <b>\n");
    assert_contains(result.out, "12          kept = malloc(1000); ");
    assert_true(strlen(result.out) < 8000);
    run_result_free(&result);
    free(made);
}

static struct run_result view_with(const char *const options[], const char *output)
{
    const char *arguments[16] = {"view", "-q", "-f", "-o", output};
    size_t used = 5;
    while (*options)
        arguments[used++] = *options++;
    arguments[used] = profile;
    return heapwise(arguments, NULL);
}

static void test_pages(void **state)
{
    char *page = join_path(test_directory, "page.html");
    struct stat without, with;
    struct run_result result = view_with((const char *const[]){NULL}, page);
    if (result.code && strstr(result.err, "built without the page"))
        SKIP("the page was not built");
    assert_exit(&result, 0, "view");
    run_result_free(&result);
    assert_int_equal(stat(page, &without), 0);
    result = view_with((const char *const[]){"--source", NULL}, page);
    assert_exit(&result, 0, "view --source");
    assert_string_equal(result.err, "");
    run_result_free(&result);
    assert_int_equal(stat(page, &with), 0);
    assert_true(with.st_size > without.st_size);
    unlink(copy);
    result = view_with((const char *const[]){"--source", "--source-path", mapping, NULL}, page);
    assert_exit(&result, 0, "view --source-path");
    assert_contains(result.err, name);
    assert_contains(result.err, "cannot be read; tried");
    assert_contains(result.err, copy);
    assert_contains(result.err, "--source-path OLD=NEW says");
    run_result_free(&result);
    write_copy(text, strlen(text), false);
    result = view_with((const char *const[]){"--source", "--source-path", mapping, NULL}, page);
    assert_exit(&result, 0, "view of a changed file");
    assert_contains(result.err, "lines may have moved");
    run_result_free(&result);
    free(page);
}

static void test_wrong_usage(void **state)
{
    static const struct {
        const char *const arguments[5];
        const char *message;
    } rows[] = {{{"view", "--source-path=a=b"}, "view: --source-path is for --source"},
                {{"view", "--source", "--source-path=a"}, "OLD=NEW"},
                {{"view", "--source", "--source-path==b"}, "OLD=NEW"},
                {{"report", "--source=main", "--source-path=a="}, "OLD=NEW"},
                {{"report", "--source-path=a=b"}, "report: --source-path is for --source"},
                {{"report", "--source=mian"}, "no place has 'mian' on its stack; nearest: main"},
                {{"report", "--source=main", "--tree"}, "cannot be combined"},
                {{"report", "--source=main", "--json"}, "cannot be combined with --source"},
                {{"report", "--source=main", "--value=accesses"}, "accesses were not counted"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *arguments[8];
        size_t used = 0;
        for (; rows[i].arguments[used]; used++)
            arguments[used] = rows[i].arguments[used];
        arguments[used++] = profile;
        arguments[used] = NULL;
        struct run_result result = heapwise(arguments, NULL);
        assert_exit(&result, 2, rows[i].message);
        assert_contains(result.err, rows[i].message);
        run_result_free(&result);
    }
}

TEST_LIST_WITH(make_source, remove_source, cmocka_unit_test(test_lines_have_the_sums_of_the_table),
               cmocka_unit_test(test_files_elsewhere_and_other_files), cmocka_unit_test(test_odd_bytes),
               cmocka_unit_test(test_pages), cmocka_unit_test(test_wrong_usage))
