/* test_ways_in.c - the first minutes with the command: mistakes on the command line, each with the line that helps; the
 * help of every verb; the report that is read first, and the pager it goes through on a terminal. */
#include "support/check.h"
#include "support/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *profile; /* of hello, in test_directory */

static int make_profile(void **state)
{
    if (make_test_directory(state))
        return -1;
    profile = join_path(test_directory, "hello.hwprof");
    const char *hello = program_path("hello");
    if (!hello)
        return -1;
    struct run_result result = heapwise((const char *const[]){"record", "-q", "-o", profile, "--", hello, NULL}, NULL);
    const int code = result.code;
    run_result_free(&result);
    return code;
}

static int remove_profile(void **state)
{
    free(profile);
    return remove_test_directory(state);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* ---- mistakes ---- */

static void test_mistakes(void **state)
{
    const char *hello = need_program("hello");
    char *here = join_path(test_directory, "here");
    assert_int_equal(symlink(hello, here), 0);
    free(here);
    const struct {
        const char *arguments[8];
        int code;
        const char *said;
    } mistakes[] = {
        {{"leaks", profile}, 2, "pointers were not searched for (heapwise record --leaks)\n"},
        {{"stats", profile}, 2, "use heapwise report --section summary FILE\n"},
        {{"summary", profile}, 2, "use heapwise report --section summary FILE\n"},
        {{"tree", profile}, 2, "or heapwise view FILE\n"},
        {{"flamegraph", profile}, 2, "heapwise export --format collapsed FILE\n"},
        {{"live", "1"}, 2, "use heapwise dump PID\n"},
        {{"compare", profile, profile}, 2, "use heapwise diff OLD NEW\n"},
        {{"html", profile}, 2, "use heapwise view FILE\n"},
        {{"threads", profile}, 2, "use heapwise report --section threads FILE\n"},
        {{"sizes", profile}, 2, "use heapwise report --section sizes,lifetimes FILE\n"},
        {{"peek", profile}, 2, "use heapwise report --sandwich FUNCTION FILE\n"},
        {{"run", hello}, 2, "to record a profile, use heapwise record -- PROGRAM"},
        {{"help", "memcheck"}, 2, "use heapwise leaks FILE\n"},
        {{"reprot", profile}, 2, "heapwise: unknown verb 'reprot': did you mean report?"},
        {{"dif", profile, profile}, 2, "did you mean diff?"},
        {{hello}, 2, "to record the program, use heapwise record -- "},
        {{"sh", "-c", "true"}, 2, "to record the program, use heapwise record -- sh\n"},
        {{"--json", profile}, 2, "options come after the verb"},
        {{"absent.hwprof"}, 2, "heapwise: report: "},
        {{"/etc/passwd"}, 2, "heapwise: report: "},
        {{"qqqqqqqq"}, 2, "(heapwise --help shows all)"},
        {{"report"}, 2, "heapwise: report: which FILE? (see heapwise report --help)\n"},
        {{"report", "--srot", "peak", profile}, 2, "heapwise: report: unknown option '--srot': did you mean --sort?"},
        {{"report", "--colour", profile}, 2, "heapwise: report: unknown option '--colour': did you mean --color?"},
        {{"report", "-x", profile}, 2, "heapwise: report: unknown option '-x' (see heapwise report --help)\n"},
        {{"report", "--json=1", profile}, 2, "heapwise: report: --json takes no value\n"},
        {{"report", profile, "--top"}, 2, "heapwise: report: --top needs a value\n"},
        {{"report", "--s", "peak", profile}, 2, "heapwise: report: '--s' is ambiguous: --sort, --section, "},
        {{"report", "--top", "-1", profile}, 2, "heapwise: report: --top takes a number from 1 on, not '-1'\n"},
        {{"report", "--sort", "leeked", profile}, 2, "--sort does not know 'leeked': did you mean 'leaked'? (peak, "},
        {{"report", "--section", "sumary", profile}, 2, "did you mean 'summary'? (summary, "},
        {{"report", "--color=maybe", profile}, 2, "--color does not know 'maybe' (auto, always, never)\n"},
        {{"diff", profile}, 2, "heapwise: diff: two files are compared, OLD and NEW, not 1"},
        {{"diff", "--sort", "size", profile, profile}, 2, "heapwise: diff: --sort does not know 'size'"},
        {{"diff", "--max-increase", "peek=5%", profile, profile}, 2, "does not know 'peek': did you mean 'peak'? ("},
        {{"check", profile}, 2, "heapwise: check: no limit was given"},
        {{"check", "--max-peak", "lots", profile}, 2, "heapwise: check: --max-peak takes a whole number"},
        {{"export", profile}, 2, "heapwise: export: which --format? (pprof, "},
        {{"export", "--format", "perf", profile}, 2, "heapwise: export: --format does not know 'perf'"},
        {{"export", "--format", "profdata", "--version", "x", profile}, 2, "--version does not know 'x' (3, 4, 5)\n"},
        {{"merge", "--threads", "no", profile}, 2, "heapwise: merge: --threads takes a number from 1 to 1024"},
        {{"view", "-o", "/nowhere/x.html", profile, profile}, 2, "is not a dump of the process of"},
        {{"dump"}, 2, "heapwise: dump: which PID? (see heapwise dump --help)\n"},
        {{"dump", "nobody"}, 2, "heapwise: dump: 'nobody' is not the number of a process\n"},
        {{"doctor", "please"}, 2, "heapwise: doctor: takes no arguments"},
        {{"record"}, 125, "heapwise: record: which PROGRAM? (see heapwise record --help)\n"},
        {{"record", "--mode", "cpu", hello}, 125, "heapwise: record: --mode does not know 'cpu' (heap, allocator)\n"},
        {{"record", "--depth", "999", hello}, 125, "heapwise: record: --depth takes a number from 1 to 256"},
        {{"record", "--", "./absent-program"}, 127, "heapwise: record: "},
        {{"record", "here"}, 127, "heapwise: record: here: program not found in PATH: did you mean ./here?\n"},
        {{"allocators"}, 2, "heapwise: allocators: which PROGRAM? (see heapwise allocators --help)\n"},
        {{"cc", "--granule=16", "-c", "x.c"}, 2, "heapwise: cc: --granule does not know '16' (64, 8, 4)\n"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct run_result result = heapwise(mistakes[i].arguments, &(struct run_options){.directory = test_directory});
        assert_exit(&result, mistakes[i].code, mistakes[i].said);
        assert_string_equal(result.out, "");
        assert_contains(result.err, mistakes[i].said);
        if (count_lines(result.err) != 1)
            fail_msg("%s: not one line:\n%s", run_describe(mistakes[i].arguments), result.err);
        run_result_free(&result);
    }
}

/* A file instead of a verb is reported, with options behind it. */
static void test_file_instead_of_verb(void **state)
{
    struct run_result verb = heapwise((const char *const[]){"report", "--section", "summary", profile, NULL}, NULL);
    struct run_result file = heapwise((const char *const[]){profile, "--section", "summary", NULL}, NULL);
    assert_exit(&file, 0, "a file");
    assert_string_equal(file.out, verb.out);
    assert_contains(file.out, "Allocated");
    run_result_free(&verb);
    run_result_free(&file);
}

static void test_other_words_lead_to_verbs(void **state)
{
    static const struct {
        const char *words, *instead;
    } others[] = {
#define HW_WORD(words_, instead_) {words_, instead_},
#include "../../src/cli/other_words.def"
    };
    char word[64];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(others[i].instead, " "), others[i].instead);
        struct run_result result = heapwise((const char *const[]){word, "--help", NULL}, NULL);
        assert_exit(&result, 0, word);
        run_result_free(&result);
        snprintf(word, sizeof word, "%.*s", (int)strcspn(others[i].words, " "), others[i].words);
        result = heapwise((const char *const[]){word, NULL}, NULL);
        assert_exit(&result, 2, word);
        assert_contains(result.err, others[i].instead);
        run_result_free(&result);
    }
}

#define COLUMNS_MOST 80

static void test_help(void **state)
{
    struct run_result verbs = heapwise((const char *const[]){"complete", "", NULL}, NULL);
    size_t checked = 0;
    for (char *save = NULL, *line = strtok_r(verbs.out, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, "\t")] = '\0';
        if (*line == '-' || !strcmp(line, "help"))
            continue;
        struct run_result whole = heapwise((const char *const[]){line, "--help", NULL}, NULL);
        struct run_result brief = heapwise((const char *const[]){line, "-h", NULL}, NULL);
        struct run_result asked = heapwise((const char *const[]){"help", line, NULL}, NULL);
        assert_exit(&whole, 0, line);
        assert_exit(&brief, 0, line);
        assert_exit(&asked, 0, line);
        assert_contains(whole.out, "Usage: heapwise ");
        assert_string_equal(whole.out, brief.out);
        assert_string_equal(whole.out, asked.out);
        assert_contains(whole.out, "-h, --help");
        for (const char *at = whole.out; *at; at += strcspn(at, "\n") + 1)
            if (strcspn(at, "\n") > COLUMNS_MOST)
                fail_msg("more than %d columns: %.*s", COLUMNS_MOST, (int)strcspn(at, "\n"), at);
        run_result_free(&whole);
        run_result_free(&brief);
        run_result_free(&asked);
        checked++;
    }
    assert_true(checked >= 13);
    run_result_free(&verbs);
}

/* ---- the report that is read first ---- */

#define LINES_MOST 80

/* FILE's default report is short, and says what it leaves out. */
static void check_brief(const char *file)
{
    struct run_result brief = heapwise((const char *const[]){"report", "--no-debuginfod", file, NULL}, NULL);
    struct run_result all = heapwise((const char *const[]){"report", "--no-debuginfod", "--all", file, NULL}, NULL);
    assert_exit(&brief, 0, file);
    assert_exit(&all, 0, file);
    if (count_lines(brief.out) > LINES_MOST)
        fail_msg("%s: %zu lines:\n%s", file, count_lines(brief.out), brief.out);
    assert_contains(brief.out, "Command ");
    assert_contains(brief.out, "What was not observed");
    assert_contains(brief.out, "\nNot shown: ");
    assert_lacks(all.out, "\nNot shown: ");
    run_result_free(&brief);
    run_result_free(&all);
}

static void test_brief(void **state)
{
    size_t count;
    char **files = list_files(TEST_KEPT, ".hwprof", &count);
    assert_true(count >= 5);
    for (size_t i = 0; i < count; i++)
        if (!strstr(files[i], "merged"))
            check_brief(files[i]);
    free_list(files);
    static const char *const modes[] = {"--mode=heap", "--mode=allocator", "--sample-bytes=4096"};
    const char *program = need_program("workload");
    char *file = join_path(test_directory, "workload.hwprof");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct run_result result =
            heapwise((const char *const[]){"record", "-q", "-f", modes[i], "-o", file, "--", program, NULL}, NULL);
        assert_exit(&result, 0, modes[i]);
        run_result_free(&result);
        check_brief(file);
    }
    if (have_command("python3")) {
        struct run_result result =
            heapwise((const char *const[]){"record", "-q", "-f", "-o", file, "--", "python3", "-c",
                                           "import json; json.dumps([{'a': i} for i in range(9999)])", NULL},
                     NULL);
        assert_exit(&result, 0, "python3");
        run_result_free(&result);
        check_brief(file);
    }
    free(file);
}

/* ---- a terminal ---- */

/* What heapwise with ARGUMENTS writes to a terminal of COLUMNS; *CODE: how it ends. */
static char *on_terminal(const char *const arguments[], const char *const environment[], unsigned columns, int *code)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    int terminal, slave;
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    const char *argv[256] = {heapwise_path()};
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    assert_int_equal(openpty(&terminal, &slave, NULL, NULL, &size), 0);
    const pid_t child = fork();
    if (child == 0) {
        static const char *const unset[] = {"COLUMNS", "HEAPWISE_PAGER", "PAGER", "LESS"};
        for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
            unsetenv(unset[i]);
        setenv("NO_COLOR", "1", 1);
        for (size_t i = 0; environment && environment[i]; i++)
            putenv((char *)environment[i]);
        dup2(slave, STDOUT_FILENO);
        close(terminal);
        close(slave);
        const int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDERR_FILENO);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(slave);
    for (ssize_t got; (got = read(terminal, text + used, room - used - 1)) > 0 || (got < 0 && errno == EINTR);) {
        used += got > 0 ? (size_t)got : 0;
        if (room - used < 4096)
            assert_non_null(text = realloc(text, room *= 2));
    }
    text[used] = '\0';
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(terminal);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

static void expect_paged(const char *const arguments[], const char *const environment[], int code, const char *has,
                         const char *lacks)
{
    int ended;
    char *text = on_terminal(arguments, environment, 80, &ended);
    if (ended != code || !strstr(text, has) || (lacks && strstr(text, lacks)))
        fail_msg("%s: exit code %d, with '%s', without '%s':\n%s", run_describe(arguments), ended, has,
                 lacks ? lacks : "", text);
    free(text);
}
#define ARGUMENTS(...)                                                                                                 \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

static void test_pager(void **state)
{
    static const char mark[] = "HEAPWISE_PAGER=sed s/^/paged:/";
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS(mark), 0, "paged:Heap profile of hello", NULL);
    expect_paged(ARGUMENTS(profile), ARGUMENTS(mark), 0, "paged:Heap profile of hello", NULL);
    expect_paged(ARGUMENTS("fields", profile), ARGUMENTS(mark), 0, "paged:Fields", NULL);
    expect_paged(ARGUMENTS("diff", profile, profile), ARGUMENTS(mark), 0, "paged:", NULL);
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("PAGER=sed s/^/mine:/"), 0, "mine:Heap", NULL);
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("PAGER=sed s/^/mine:/", mark), 0, "paged:Heap", "mine:");
    expect_paged(ARGUMENTS("report", "--no-pager", profile), ARGUMENTS(mark), 0, "Heap profile of hello", "paged:");
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("HEAPWISE_PAGER=echo LESS=$LESS; cat"), 0, "LESS=FRX", NULL);
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("HEAPWISE_PAGER=echo LESS=$LESS", "LESS=S"), 0, "LESS=S",
                 "FRX");
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("HEAPWISE_PAGER="), 0, "Not shown: ", NULL);
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("HEAPWISE_PAGER=cat"), 0, "Not shown: ", NULL);
    expect_paged(ARGUMENTS("report", profile), ARGUMENTS("HEAPWISE_PAGER=/no/such/pager -x"), 0, "Not shown: ", NULL);
    expect_paged(ARGUMENTS("report", "absent.hwprof"), ARGUMENTS(mark), 2, "", "paged:");
    /* In files and pipes it has no part. */
    struct run_result result = heapwise((const char *const[]){"report", profile, NULL},
                                        &(struct run_options){.environment = (const char *const[]){mark, NULL}});
    assert_exit(&result, 0, "report");
    assert_lacks(result.out, "paged:");
    run_result_free(&result);
}

/* More than a pipe holds, and a reader that leaves at once. */
static void test_reader_leaves(void **state)
{
    const char *arguments[102] = {"report", "--all"};
    for (size_t i = 2; i < 101; i++)
        arguments[i] = profile;
    int code;
    char *text = on_terminal(arguments, ARGUMENTS("HEAPWISE_PAGER=head -n 1"), 80, &code);
    assert_int_equal(code, 0);
    assert_int_equal(count_lines(text), 1);
    assert_contains(text, "Heap profile of hello");
    free(text);
}

/* As wide as the terminal is. */
static void test_width(void **state)
{
    static const unsigned widths[] = {60, 80, 132, 200};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int code;
        char *text = on_terminal(ARGUMENTS("report", "--no-pager", "--color=never", profile), ARGUMENTS("LC_ALL=C"),
                                 widths[i], &code);
        assert_int_equal(code, 0);
        const char *rule = strchr(text, '\n');
        assert_non_null(rule);
        assert_int_equal(strspn(rule + 1, "="), widths[i]);
        free(text);
    }
}

TEST_LIST_WITH(make_profile, remove_profile, cmocka_unit_test(test_mistakes),
               cmocka_unit_test(test_file_instead_of_verb), cmocka_unit_test(test_other_words_lead_to_verbs),
               cmocka_unit_test(test_help), cmocka_unit_test(test_brief), cmocka_unit_test(test_pager),
               cmocka_unit_test(test_reader_leaves), cmocka_unit_test(test_width))
