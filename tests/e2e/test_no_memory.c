/* test_no_memory.c - the first, the second, ... allocation of each verb fails: the verb says so and ends with 2, or
 * goes on and leaves nothing out; it neither crashes nor hangs.
 *
 * programs/failmalloc.c makes the runs, in one process. The first 200 allocations fail one by one, then fewer of them.
 */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *in_directory(const char *name)
{
    return join_path(test_directory, name);
}

/* NAME.hwprof of the program with ARGUMENTS, with the names of its functions: then libdw is not needed to read it. */
static void record(const char *name, const char *option, const char *program)
{
    char *file = in_directory(name);
    const char *const arguments[] = {"record", "-q", "--symbolize", option, "-o", file, "--", program, "3", NULL};
    struct run_result result = heapwise(arguments, NULL);
    if (result.code != 0 && result.code != 3)
        fail_msg("record %s: %d: %s", name, result.code, result.err);
    run_result_free(&result);
    free(file);
}

/* fields.hwprof, of a program whose fields are counted. */
static void need_fields(void)
{
    static bool made;
    if (made)
        return;
    char *source = join_path(TEST_SOURCES, "programs/placement.c"), *program = in_directory("placement");
    const char *const build[] = {heapwise_path(), "cc", "--fields", "-O1", "-g", "-o", program, source, NULL};
    compile_or_skip(build, "heapwise cc --fields");
    record("fields.hwprof", "--mode=heap", program);
    made = true;
    free(program);
    free(source);
}

static void export(const char *format, const char *name)
{
    char *from = in_directory("heap.hwprof"), *to = in_directory(name);
    struct run_result result =
        heapwise((const char *const[]){"export", "--format", format, "-o", to, from, NULL}, NULL);
    assert_exit(&result, 0, format);
    run_result_free(&result);
    free(from);
    free(to);
}

static int make_profiles(void **state)
{
    make_test_directory(state);
    record("heap.hwprof", "--mode=heap", need_program("hello"));
    record("allocator.hwprof", "--mode=allocator", need_program("hello"));
    if (program_path("abi-gcc-O2"))
        record("access.hwprof", "--mode=heap", program_path("abi-gcc-O2"));
    export("memprofraw", "heap.memprofraw");
    export("profdata", "heap.profdata");
    export("memprof-yaml", "heap.yaml");
    return 0;
}

/* Every NAME in WORDS that has a full stop is a file of the directory. FLAGS: "o" it makes "made"; "v" it prints
 * something else each time. */
static void sweep(const char *words, const char *flags, unsigned all, unsigned stride)
{
    char line[256], library[4200], results[4200], made[4200], number[64], fraction[64];
    const char *argv[16] = {heapwise_path()};
    char *files[16];
    size_t count = 1, file_count = 0;
    snprintf(line, sizeof line, "%s", words);
    for (char *rest = line, *word; (word = strsep(&rest, " "));)
        argv[count++] = strchr(word, '.') ? files[file_count++] = in_directory(word) : word;
    snprintf(library, sizeof library, "LD_PRELOAD=%s", need_program("libfailmalloc.so"));
    snprintf(results, sizeof results, "FAILMALLOC_RESULTS=%s/results", test_directory);
    snprintf(made, sizeof made, "FAILMALLOC_OUTPUT=%s/made.hwprof", test_directory);
    snprintf(number, sizeof number, "FAILMALLOC_ALL=%u", all);
    snprintf(fraction, sizeof fraction, "FAILMALLOC_STRIDE=%u", stride);
    const char *const environment[] = {library,
                                       results,
                                       number,
                                       fraction,
                                       "LC_ALL=C", /* another locale takes allocations, and is left out without them */
                                       "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0",
                                       strchr(flags, 'o') ? made : "FAILMALLOC_OUTPUT",
                                       strchr(flags, 'v') ? "FAILMALLOC_VARIES=1" : "FAILMALLOC_VARIES",
                                       NULL};
    struct run_result result =
        run(argv, &(struct run_options){.environment = environment, .directory = test_directory, .timeout_s = 300});
    assert_exit(&result, 0, words);
    char *path = in_directory("results"), *text = NULL;
    size_t room = 0;
    unsigned runs = 0, allocations = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(getdelim(&text, &room, '\0', file) > 0);
    fclose(file);
    if (sscanf(text, "runs %u allocations %u", &runs, &allocations) != 2)
        fail_msg("heapwise %s: %.4000s", words, text);
    if (allocations < 2 || runs < (allocations < all ? allocations : all))
        fail_msg("heapwise %s: %u runs for %u allocations", words, runs, allocations);
    while (file_count)
        free(files[--file_count]);
    run_result_free(&result);
    free(text);
    free(path);
}

/* One by one: 200; then each a sixteenth further on. */
static void sweep_verb(const char *words)
{
    sweep(words, "", 200, 16);
}

static void test_report(void **state)
{
    sweep_verb("report heap.hwprof");
    sweep_verb("report --json heap.hwprof");
    sweep_verb("report --full allocator.hwprof");
    sweep_verb("report --json allocator.hwprof");
}

static void test_report_accesses(void **state)
{
    need_program("abi-gcc-O2");
    sweep_verb("report access.hwprof");
    sweep_verb("report --json access.hwprof");
    sweep_verb("export --format csv access.hwprof");
    sweep_verb("export --format memprof-yaml access.hwprof");
    sweep_verb("export --format symbol-order access.hwprof");
}

static void test_export(void **state)
{
    static const char *const formats[] = {"pprof", "dhat",       "collapsed",    "speedscope", "sqlite",
                                          "csv",   "memprofraw", "memprof-yaml", "profdata"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char words[80];
        snprintf(words, sizeof words, "export --format %s heap.hwprof", formats[i]);
        sweep_verb(words);
    }
}

static void test_view(void **state)
{
    sweep_verb("view -o - heap.hwprof");
    sweep_verb("view -o - allocator.hwprof");
}

static void test_compare(void **state)
{
    sweep_verb("diff heap.hwprof heap.hwprof");
    sweep_verb("diff --json heap.hwprof heap.hwprof");
    sweep("diff --max-increase=1 heap.hwprof heap.hwprof", "", 60, 8);
    sweep_verb("diff allocator.hwprof allocator.hwprof");
    sweep_verb("check --max-peak=1 heap.hwprof");
}

static void test_merge(void **state)
{
    sweep("merge -o made.hwprof heap.hwprof heap.hwprof", "o", 200, 16);
    sweep("merge -o made.hwprof allocator.hwprof allocator.hwprof", "o", 200, 16);
    /* An input that there was no memory for is followed by one of the same contents; or it is skipped. */
    sweep("merge --keep-going -j1 -o made.hwprof heap.hwprof heap.hwprof", "ov", 600, 16);
}

static void test_merge_fields(void **state)
{
    need_fields();
    sweep("merge --keep-going -j1 -o made.hwprof fields.hwprof fields.hwprof", "ov", 600, 16);
}

static void test_fields(void **state)
{
    sweep_verb("fields heap.hwprof");
    sweep_verb("fields --json heap.hwprof");
}

static void test_counted_fields(void **state)
{
    need_fields();
    sweep("report --json fields.hwprof", "", 60, 8);
    sweep("fields fields.hwprof", "", 60, 8);
    sweep("fields --json fields.hwprof", "", 60, 8);
    sweep("export --format sqlite fields.hwprof", "", 60, 8);
}

/* The formats that have what only allocator mode knows. */
static void test_export_allocator(void **state)
{
    sweep("export --format csv allocator.hwprof", "", 60, 8);
    sweep("export --format sqlite allocator.hwprof", "", 60, 8);
}

static void test_check(void **state)
{
    sweep("check --max-leaked=1 --json allocator.hwprof", "", 60, 8);
    sweep("check --baseline heap.hwprof allocator.hwprof", "", 60, 8);
}

/* Of a process that waits meanwhile. */
static void test_dump(void **state)
{
    char *until = in_directory("until"), preload[4200], setting[4200], words[80];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime_path());
    snprintf(setting, sizeof setting, "HEAPWISE_OPTIONS=output=%s/live.hwprof", test_directory);
    const char *const environment[] = {preload, setting, NULL};
    const char *const argv[] = {need_program("dump"), "sleeping", until, NULL};
    struct run_process live = run_start(argv, &(struct run_options){.environment = environment});
    struct stat status = {0};
    for (int i = 0; i < 6000 && (fstat(live.out, &status) != 0 || status.st_size == 0); i++)
        usleep(10000);
    snprintf(words, sizeof words, "dump -q -f -o made.hwprof %d", (int)live.pid);
    sweep(words, "ov", 60, 8);
    const int file = open(until, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    struct run_result ended = run_finish(&live, 60);
    assert_exit(&ended, 0, "the program that was dumped");
    run_result_free(&ended);
    free(until);
}

static void test_llvm(void **state)
{
    sweep_verb("report heap.profdata");
    sweep_verb("report heap.yaml");
    sweep("report heap.memprofraw", "v", 20, 4); /* it needs the program */
}

static void test_top(void **state)
{
    sweep_verb("top --once heap.hwprof");
    sweep_verb("top --once --filter main allocator.hwprof");
}

/* What a run of another process prints is never the same. */
static void test_processes(void **state)
{
    sweep("doctor", "v", 20, 4);
    sweep("record -o made.hwprof -- /bin/true", "v", 20, 4);
    sweep("allocators -q -n 1 --no-prediction -- /bin/true", "v", 10, 1);
}

TEST_LIST_WITH(make_profiles, remove_test_directory, cmocka_unit_test(test_report),
               cmocka_unit_test(test_report_accesses), cmocka_unit_test(test_export), cmocka_unit_test(test_view),
               cmocka_unit_test(test_compare), cmocka_unit_test(test_merge), cmocka_unit_test(test_merge_fields),
               cmocka_unit_test(test_fields), cmocka_unit_test(test_counted_fields),
               cmocka_unit_test(test_export_allocator), cmocka_unit_test(test_check), cmocka_unit_test(test_dump),
               cmocka_unit_test(test_llvm), cmocka_unit_test(test_top), cmocka_unit_test(test_processes))
