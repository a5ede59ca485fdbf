/* test_leaks.c - which live blocks a program can still reach when it ends. The truth is in the names of the functions
 * that allocate: tests/programs/leaks.c. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const with_leaks[] = {"--leaks", NULL};

static struct recording record_ending(const char *how, const char *threads, const char *options)
{
    const char *const argv[] = {need_program("leaks"), how, threads, NULL};
    const struct record_options record = {.arguments = with_leaks, .options = options};
    struct recording recording = record_and_load(argv, &record);
    assert_non_null(recording.report);
    return recording;
}

static const char *const classes[] = {"definite", "indirect", "possible", "reachable"};
enum { CLASSES = sizeof classes / sizeof *classes };

static int64_t blocks_of(const json_t *context, const char *class)
{
    char path[64];
    snprintf(path, sizeof path, "leaks.%s_blocks", class);
    return json_number(context, path);
}

/* The function of the program that says what the blocks are; NULL: they are libc's. */
static const char *function_of(const json_t *context)
{
    for (size_t i = 0; i < stack_depth(context); i++) {
        const char *function = stack_function(context, i);
        for (size_t c = 0; c < CLASSES; c++)
            if (!strncmp(function, classes[c], strlen(classes[c])))
                return function;
        if (!strncmp(function, "lost_", 5))
            return function;
    }
    return NULL;
}

/* Every live block is in its class. What is in main's frame is gone when main has returned. Returns how many blocks the
 * names of functions vouch for. */
static bool counted; /* accesses are */
static bool no_ring; /* it is another program, with functions named likewise */
static bool mapped;  /* the search saw memory that the program mapped itself */

static int64_t assert_classes(const json_t *report, bool returned)
{
    int64_t named = 0, ring[CLASSES] = {0};
    size_t at;
    json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), at, context)
    {
        const char *function = function_of(context);
        int64_t sum = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            const int64_t blocks = blocks_of(context, classes[c]);
            const char *expected = !function                                             ? "reachable"
                                   : mapped && !strcmp(function, "definite_by_mapping")  ? "reachable"
                                   : returned && !strcmp(function, "reachable_by_stack") ? "definite"
                                                                                         : function;
            sum += blocks;
            if (function && !strcmp(function, "lost_ring"))
                ring[c] += blocks;
            else if (blocks && strncmp(expected, classes[c], strlen(classes[c])))
                fail_msg("%s: %lld blocks are %s", stack_line(context), (long long)blocks, classes[c]);
        }
        if (!counted)
            assert_int_equal(sum, json_number(context, "live_allocations"));
        named += function ? sum : 0;
    }
    if (counted ||
        no_ring) /* an old value in a register or on the stack may keep the ring, which is the last that was lost */
        return named;
    assert_int_equal(ring[0], 1);
    assert_int_equal(ring[1], 1);
    assert_int_equal(ring[2] + ring[3], 0);
    return named;
}

static void test_classes(void **state)
{
    struct recording recording = record_ending("exit", "0", NULL);
    const int64_t named = assert_classes(recording.report, false);
    assert_true(named > 1000);
    assert_int_equal(json_number(recording.report, "leak_search.threads"), 1);
    assert_int_equal(json_number(recording.report, "leak_search.threads_missed"), 0);
    recording_free(&recording);
    recording = record_ending("return", "0", NULL);
    assert_int_equal(assert_classes(recording.report, true), named);
    recording_free(&recording);
}

/* All kinds of threads, in every way to end. */
static void test_threads_and_ends(void **state)
{
    static const struct {
        const char *how;
        int code;
        bool thread; /* one more, which ends the process */
    } ends[] = {{"exit", 0, false},
                {"_exit", 0, false},
                {"quick", 0, false},
                {"thread", 0, true},
                {"abort", 128 + SIGABRT, false},
                {"segv", 128 + SIGSEGV, false},
                {"deep", 128 + SIGSEGV, false}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct recording recording = record_ending(ends[i].how, "2", NULL);
        assert_int_equal(recording.run.code, ends[i].code);
        assert_classes(recording.report, false);
        assert_int_equal(json_number(recording.report, "leak_search.threads"), 1 + 3 * 2 + 2 + ends[i].thread);
        assert_int_equal(json_number(recording.report, "leak_search.threads_missed"), 0);
        recording_free(&recording);
    }
}

static void test_many_threads(void **state)
{
    struct recording recording = record_ending("exit", "66", NULL);
    assert_classes(recording.report, false);
    assert_int_equal(json_number(recording.report, "leak_search.threads"), 1 + 3 * 66 + 2);
    recording_free(&recording);
}

/* In every state, and with one in the middle of malloc that holds the allocator's lock. Of those in vfork and of one
 * that somebody else traces, registers are not known. */
static void test_states_of_threads(void **state)
{
    char one[1024], two[1024], preload[1024];
    const char *library = program_path("libstuckmalloc.so");
    snprintf(one, sizeof one, "%s", need_program("libkeeping_one.so"));
    snprintf(two, sizeof two, "%s", need_program("libkeeping_two.so"));
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library ? library : "");
    /* AddressSanitizer in record has to be loaded before any allocator. */
    for (int i = 0; i < 1 + (library && !TEST_SANITIZED); i++) {
        const char *const argv[] = {need_program("states"), "20", one, two, NULL}, *const environment[] = {
                                                                                       i ? preload : NULL, NULL};
        struct recording recording = record_and_load(
            argv, &(struct record_options){.arguments = with_leaks, .run = {.environment = environment}});
        assert_int_equal(recording.run.code, 0);
        assert_non_null(recording.report);
        no_ring = true;
        assert_int_equal(assert_classes(recording.report, false), 3 * (1 + 9 * 20 + 1) + 20 + 3 + i);
        no_ring = false;
        const int64_t threads = json_number(recording.report, "leak_search.threads");
        assert_in_range(threads, 8 * 20 + 1 + 20 + 2 + i, 8 * 20 + 1 + 20 + 3 + i); /* one comes and goes */
        assert_int_equal(json_number(recording.report, "leak_search.threads_missed"), 20 + 1);
        recording_free(&recording);
    }
}

/* The other store of blocks, and allocators that place blocks otherwise. */
static void test_other_stores(void **state)
{
    struct recording recording = record_ending("exit", "1", "block-table=1");
    assert_classes(recording.report, false);
    recording_free(&recording);
}

static void test_mapped_by_the_program(void **state)
{
    static const char *const arguments[] = {"--leaks=mapped", NULL};
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {need_program("leaks"), i ? "segv" : "exit", "0", NULL};
        struct recording recording = record_and_load(argv, &(struct record_options){.arguments = arguments});
        assert_non_null(recording.report);
        mapped = true;
        assert_classes(recording.report, false);
        mapped = false;
        recording_free(&recording);
    }
    struct run_result result = heapwise((const char *const[]){"record", "--leaks=some", "true", NULL}, NULL);
    assert_int_equal(result.code, 125);
    assert_contains(result.err, "mapped");
    run_result_free(&result);
}

/* Pointers inside of blocks as C++ has them are as good as others; memcheck has the same rules, but does not know the
 * 16 bytes in front of arrays whose elements are aligned to that. */
static void test_pointers_of_cpp(void **state)
{
    const char *program = need_program("cpp_inside");
    struct recording recording =
        record_and_load((const char *const[]){program, NULL}, &(struct record_options){.arguments = with_leaks});
    assert_non_null(recording.report);
    no_ring = true;
    assert_int_equal(assert_classes(recording.report, false), 10);
    no_ring = false;
    assert_int_equal(json_number(recording.report, "leak_search.inside_blocks"), 7);
    assert_int_equal(json_number(recording.report, "leak_search.inside_bytes"),
                     40 + (8 + 5 * 24) + (16 + 3 * 16) + 108 + 55 + (24 + 1) * (16 + 4) + 2 * 16);
    struct run_result result = heapwise((const char *const[]){"leaks", recording.files[0], NULL}, NULL);
    assert_exit(&result, 0, "nothing is lost");
    assert_contains(result.out, "in 7 blocks of those still reachable");
    run_result_free(&result);
    recording_free(&recording);
    result = run((const char *const[]){"valgrind", "--leak-check=full", "--show-leak-kinds=all", program, NULL},
                 &(struct run_options){.timeout_s = 120});
    if (strstr(result.err, "LEAK SUMMARY")) {
        assert_contains(result.err, "possibly lost: 1,212 bytes in 5 blocks");
        assert_contains(result.err, "stdstring          : 55 bytes in 1 blocks");
        assert_contains(result.err, "length64           : 108 bytes in 1 blocks");
        assert_contains(result.err, "newarray           : 128 bytes in 1 blocks");
        assert_contains(result.err, "multipleinheritance: 40 bytes in 1 blocks");
    }
    run_result_free(&result);
}

/* Other tools' sums of the same program. They call the block lost whose pointer has a tag in its high bits;
 * LeakSanitizer does not sort out which lost blocks are indirectly so, and Valgrind searches mapped memory. */
static void test_beside_other_tools(void **state)
{
    const char *program = need_program("leaks");
    struct recording recording = record_ending("exit", "2", NULL);
    int64_t definite[2] = {0}, indirect[2] = {0}; /* blocks, bytes */
    size_t at;
    json_t *context;
    json_array_foreach(json_object_get(recording.report, "contexts"), at, context)
    {
        definite[0] += json_number(context, "leaks.definite_blocks");
        definite[1] += json_number(context, "leaks.definite_bytes");
        indirect[0] += json_number(context, "leaks.indirect_blocks");
        indirect[1] += json_number(context, "leaks.indirect_bytes");
    }
    recording_free(&recording);
    char expected[128];
    static const char *const environment[] = {"LD_PRELOAD=liblsan.so.0", NULL};
    struct run_result result = run((const char *const[]){program, "exit", "2", NULL},
                                   &(struct run_options){.environment = environment, .timeout_s = 120});
    if (strstr(result.err, "SUMMARY: LeakSanitizer")) {
        snprintf(expected, sizeof expected, "SUMMARY: LeakSanitizer: %lld byte(s) leaked in %lld allocation(s)",
                 (long long)(definite[1] + indirect[1] + 64), (long long)(definite[0] + indirect[0] + 1));
        assert_contains(result.err, expected);
    }
    run_result_free(&result);
    bool agrees = false;
    for (int tries = 0; tries < 3 && !agrees; tries++) { /* what looks like a pointer may be left on a stack by chance */
        result = run((const char *const[]){"valgrind", "--leak-check=full", program, "exit", "2", NULL},
                     &(struct run_options){.timeout_s = 120});
        const char *definitely = strstr(result.err, "definitely lost: ");
        agrees = !strstr(result.err, "LEAK SUMMARY");
        if (!agrees && definitely) {
            snprintf(expected, sizeof expected, "definitely lost: %lld,%03lld,%03lld bytes in %lld blocks\n",
                     (long long)(definite[1] + 64 - 40) / 1000000, (long long)(definite[1] + 64 - 40) / 1000 % 1000,
                     (long long)(definite[1] + 64 - 40) % 1000, (long long)definite[0]);
            agrees = strncmp(definitely, expected, strlen(expected)) == 0;
            snprintf(expected, sizeof expected, "indirectly lost: %lld bytes in %lld blocks", (long long)indirect[1],
                     (long long)indirect[0]);
            agrees = agrees && strstr(result.err, expected);
        }
        if (!agrees && tries == 2)
            fail_msg("%s", result.err);
        run_result_free(&result);
    }
}

/* ---- verbs ---- */

static void test_verbs(void **state)
{
    const char *const argv[] = {need_program("leaks"), "exit", NULL};
    static const char *const arguments[] = {"--leaks", "--exit-code=23", NULL};
    const struct record_options options = {.arguments = arguments};
    struct recording recording = record_and_load(argv, &options);
    assert_int_equal(recording.run.code, 23);
    const char *file = recording.files[0];
    struct run_result result = heapwise((const char *const[]){"leaks", file, NULL}, NULL);
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.out, "Definitely lost"));
    assert_non_null(strstr(result.out, "definite_large"));
    assert_non_null(strstr(result.out, "indirect_list")); /* a small part of the bytes */
    assert_null(strstr(result.out, "reachable_by_list"));
    assert_contains(result.out, " old");
    run_result_free(&result);
    result = heapwise((const char *const[]){"leaks", "--exit-code=0", "--json", file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    json_t *json = json_of((const char *const[]){"leaks", "--json", file, NULL}, 1);
    int64_t definite = 0;
    size_t at;
    json_t *leak;
    json_array_foreach(json_object_get(json, "leaks"), at, leak) if (!strcmp(json_text(leak, "class"), "definite"))
        definite += json_number(leak, "blocks");
    assert_int_equal(definite, 8 + 1 + 1 + 1 + 1 + 1);
    json_decref(json);
    result = heapwise((const char *const[]){"check", "--max-lost", "0", file, NULL}, NULL);
    assert_int_equal(result.code, 1);
    run_result_free(&result);
    result = heapwise((const char *const[]){"check", "--max-lost", "1G", file, NULL}, NULL);
    assert_int_equal(result.code, 0);
    run_result_free(&result);
    recording_free(&recording);
}

/* A profile without a search says so, and nothing is called lost. */
static void test_not_searched(void **state)
{
    const char *const argv[] = {need_program("leaks"), "exit", NULL};
    struct recording recording = record_and_load(argv, NULL);
    assert_int_equal(recording.run.code, 0);
    assert_true(json_is_null(json_object_get(recording.report, "leaks")));
    struct run_result result = heapwise((const char *const[]){"leaks", recording.files[0], NULL}, NULL);
    assert_int_equal(result.code, 2);
    assert_non_null(strstr(result.err, "record --leaks"));
    run_result_free(&result);
    recording_free(&recording);
    static const char *const arguments[] = {"--leaks", "--exit-code=23", NULL};
    static const struct {
        const char *how, *why;
        int code;
    } ends[] = {{"crowded", "no descriptor was free", 23},
                {"overflow", "its stack had overflowed", 128 + SIGSEGV},
                {"killed", "SIGKILL ended the program", 128 + SIGKILL},
                {"chroot", "/proc could not be read (chroot?)", 23}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends - (getuid() != 0); i++) {
        const char *const how[] = {need_program("leaks"), ends[i].how, NULL};
        recording = record_and_load(how, &(struct record_options){.arguments = arguments});
        assert_int_equal(recording.run.code, ends[i].code);
        assert_contains(recording.run.err, "whether blocks were lost is not known: leaks were not searched for: ");
        assert_contains(recording.run.err, ends[i].why);
        result = heapwise((const char *const[]){"leaks", recording.files[0], NULL}, NULL);
        assert_exit(&result, 2, ends[i].how);
        assert_contains(result.err, ends[i].why);
        run_result_free(&result);
        recording_free(&recording);
    }
    result = heapwise((const char *const[]){"record", "--leaks", "--sample-bytes=1M", "true", NULL}, NULL);
    assert_int_equal(result.code, 125);
    assert_non_null(strstr(result.err, "--sample-bytes"));
    run_result_free(&result);
}

/* ---- suppressions ---- */

static const char for_lsan[] = "# a comment\n\nleak:lose_two\n  leak:app::*thing  \nleak:^not_there$\n";
static const char for_memcheck[] =
    "{\n   two\n   Memcheck:Leak\n   match-leak-kinds: definite\n   fun:malloc\n"
    "   fun:*make*\n   ...\n   fun:main\n}\n"
    "{\n   another tool's\n   Helgrind:Race\n   fun:main\n}\n"
    "# a comment\n{\n   mangled\n   Memcheck:Leak\n   fun:_Znwm\n   fun:_ZN3app8lose_one*\n}\n"
    "{\n   the rest of the chain\n   Memcheck:Leak\n   match-leak-kinds: indirect,possible\n"
    "   ...\n   fun:_Z10lose_chainv\n   obj:*/suppressed*\n}\n"
    "{\n   of no use\n   Memcheck:Leak\n   fun:_Z10lose_chainv\n   fun:_Z9lose_fivev\n}\n";

static char *write_file(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static struct run_result leaks_with(const char *suppressions, const char *profile, int code)
{
    struct run_result result =
        heapwise((const char *const[]){"leaks", "--suppressions", suppressions, profile, NULL}, NULL);
    assert_exit(&result, code, suppressions);
    return result;
}

/* What the other tools say of the same program with the same files, where they are installed. */
static void compare_with_lsan(const char *directory, const char *suppressions)
{
    char *program = join_path(directory, "suppressed-lsan"), options[512];
    static const char *const compilers[] = {"clang++-22", "clang++"};
    bool built = false;
    for (size_t i = 0; i < 2 && !built; i++) {
        const char *const argv[] = {compilers[i],
                                    "-O1",
                                    "-g",
                                    "-fno-omit-frame-pointer",
                                    "-fno-optimize-sibling-calls",
                                    "-fsanitize=leak",
                                    TEST_SOURCES "/programs/suppressed.cpp",
                                    "-o",
                                    program,
                                    NULL};
        struct run_result result = run(argv, &(struct run_options){.timeout_s = 120});
        built = result.code == 0;
        run_result_free(&result);
    }
    if (built) {
        snprintf(options, sizeof options, "LSAN_OPTIONS=suppressions=%s", suppressions);
        const char *const environment[] = {options, NULL}, *const argv[] = {program, NULL};
        struct run_result result = run(argv, &(struct run_options){.environment = environment});
        if (!strstr(result.err, "LeakSanitizer has encountered a fatal error")) { /* where it may not trace */
            assert_contains(result.err, "475 byte(s) leaked in 7 allocation(s)");
            assert_contains(result.err, "      2        200 lose_two");
            assert_contains(result.err, "      1         48 app::*thing");
        }
        run_result_free(&result);
    }
    free(program);
}

static void compare_with_memcheck(const char *program, const char *suppressions)
{
    char option[512];
    snprintf(option, sizeof option, "--suppressions=%s", suppressions);
    const char *const argv[] = {"valgrind", "--leak-check=full", option, program, NULL};
    struct run_result result = run(argv, &(struct run_options){.timeout_s = 120});
    if (strstr(result.err, "LEAK SUMMARY")) {
        assert_contains(result.err, "definitely lost: 398 bytes in 6 blocks");
        assert_contains(result.err, "suppressed: 325 bytes in 4 blocks");
    }
    run_result_free(&result);
}

static void test_suppressions(void **state)
{
    const char *program = need_program("suppressed");
    char *directory = make_directory(), *lsan = write_file(directory, "lsan", for_lsan),
         *memcheck = write_file(directory, "memcheck", for_memcheck),
         *all = write_file(directory, "all", "\xef\xbb\xbfleak:main\n");
    const char *arguments[] = {"--leaks", "--exit-code=23", "--suppressions", lsan, NULL};
    struct recording recording =
        record_and_load((const char *const[]){program, NULL}, &(struct record_options){.arguments = arguments});
    assert_int_equal(recording.run.code, 23);
    assert_contains(recording.run.err, "suppressed: 200 B in 2 blocks");
    const char *profile = recording.files[0];
    struct run_result result = leaks_with(lsan, profile, 1);
    assert_contains(result.out, "475 B in 7 blocks");
    assert_contains(result.out, "Suppressed: 200 B in 2 blocks, by \"leak:lose_two\"");
    assert_contains(result.out, "Suppressed: 48 B in 1 block, by \"leak:app::*thing\"");
    assert_contains(result.out, "Suppresses nothing: \"leak:^not_there$\"");
    run_result_free(&result);
    result = leaks_with(memcheck, profile, 1);
    assert_contains(result.out, "398 B in 6 blocks");
    assert_contains(result.out, "Suppressed: 200 B in 2 blocks, by \"two\"");
    assert_contains(result.out, "Suppressed: 48 B in 1 block, by \"mangled\"");
    assert_contains(result.out, "Suppressed: 77 B in 1 block, by \"the rest of the chain\"");
    assert_contains(result.out, "Suppresses nothing: \"of no use\"");
    assert_null(strstr(result.out, "another tool"));
    run_result_free(&result);
    result = leaks_with(all, profile, 0);
    run_result_free(&result);
    json_t *json = json_of((const char *const[]){"leaks", "--json", "--suppressions", memcheck, profile, NULL}, 1);
    assert_int_equal(json_array_size(json_object_get(json, "suppressions")), 4);
    int64_t bytes = 0;
    size_t at;
    json_t *leak;
    json_array_foreach(json_object_get(json, "leaks"), at, leak) if (strcmp(json_text(leak, "class"), "reachable"))
        bytes += json_number(leak, "bytes");
    assert_int_equal(bytes, 398);
    json_decref(json);
    for (int i = 0; i < 2; i++) {
        result = heapwise(
            (const char *const[]){"check", "--max-lost", "0", "--suppressions", i ? all : lsan, profile, NULL}, NULL);
        assert_exit(&result, !i, "check");
        run_result_free(&result);
    }
    compare_with_lsan(directory, lsan);
    compare_with_memcheck(program, memcheck);
    recording_free(&recording);
    arguments[3] = all;
    recording = record_and_load((const char *const[]){program, NULL}, &(struct record_options){.arguments = arguments});
    assert_int_equal(recording.run.code, 0);
    recording_free(&recording);
    remove_directory(directory);
    free(lsan);
    free(memcheck);
    free(all);
}

/* Suppressions that name nothing but the allocator: the report says what they do. */
static void test_suppressions_of_the_allocator(void **state)
{
    char *directory = make_directory(), *lsan = write_file(directory, "lsan", "leak:malloc\nleak:^operator new\n"),
         *memcheck = write_file(directory, "memcheck", "{\n any\n Memcheck:Leak\n fun:malloc\n ...\n}\n");
    struct recording recording = record_and_load((const char *const[]){need_program("suppressed"), NULL},
                                                 &(struct record_options){.arguments = with_leaks});
    const char *profile = recording.files[0];
    struct run_result result = leaks_with(lsan, profile, 1);
    assert_contains(result.out, "Suppresses nothing: \"leak:malloc\"");
    assert_contains(result.out, "Suppresses nothing: \"leak:^operator new\"");
    assert_contains(result.out, "stacks begin with");
    run_result_free(&result);
    result = leaks_with(memcheck, profile, 0);
    assert_contains(result.out, "Suppressed: 723 B in 10 blocks, by \"any\"");
    assert_contains(result.out, "these are all blocks");
    run_result_free(&result);
    const char *const limits[] = {"check", "--max-lost", "0", "--suppressions", lsan, profile, NULL};
    result = heapwise(limits, NULL);
    assert_exit(&result, 1, "check");
    assert_contains(result.err, "stacks begin with the caller of malloc");
    run_result_free(&result);
    recording_free(&recording);
    remove_directory(directory);
    free(lsan);
    free(memcheck);
}

/* Groups as Valgrind writes them for the program (--gen-suppressions=all): names that its stacks have and ours do not,
 * namely two for posix_memalign, those of libc that programs call, and bare ones of inlined functions. */
static const char as_written[] =
    "{\n a\n Memcheck:Leak\n match-leak-kinds: definite\n fun:memalign\n fun:posix_memalign\n"
    " fun:_ZL17by_posix_memalignv\n ...\n}\n"
    "{\n b\n Memcheck:Leak\n fun:malloc\n fun:strdup\n fun:_ZL9by_strdupv\n fun:main\n}\n"
    "{\n c\n Memcheck,Addrcheck:Leak\n fun:_ZnwmSt11align_val_tRKSt9nothrow_t\n"
    " fun:_ZL18by_aligned_nothrowv\n}\n"
    "{\n d\n Memcheck:Leak\n fun:malloc\n fun:inlined_into_another\n fun:_ZL10by_inlinedv\n}\n"
    "{\n e\n Memcheck:Leak\n fun:malloc\n fun:posix_memalign\n fun:main\n}\n"
    "{\n f\n MyMemcheck:Leak\n fun:malloc\n ...\n fun:main\n}\n";

static void test_suppressions_as_valgrind_writes_them(void **state)
{
    const char *program = need_program("allocations");
    char *directory = make_directory(), *written = write_file(directory, "written", as_written);
    struct recording recording =
        record_and_load((const char *const[]){program, NULL}, &(struct record_options){.arguments = with_leaks});
    const char *profile = recording.files[0];
    struct run_result result = leaks_with(written, profile, 1);
    assert_contains(result.out, "Suppressed: 100 B in 1 block, by \"a\"");
    assert_contains(result.out, "Suppressed: 11 B in 1 block, by \"b\"");
    assert_contains(result.out, "Suppressed: 64 B in 1 block, by \"c\"");
    assert_contains(result.out, "Suppressed: 100 B in 1 block, by \"d\"");
    assert_contains(result.out, "Suppresses nothing: \"e\"");
    assert_null(strstr(result.out, "\"f\"")); /* another tool's */
    run_result_free(&result);
    free(written);
    const char *const argv[] = {"valgrind", "--leak-check=full", "--gen-suppressions=all", program, NULL};
    result = run(argv, &(struct run_options){.timeout_s = 120});
    if (strstr(result.err, "match-leak-kinds")) {
        char *text = calloc(1, strlen(result.err) + 1), *rest = NULL;
        for (char *line = strtok_r(result.err, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if (*line != '=' && *line != '*' && *line != '-')
                strcat(strcat(text, line), "\n");
        written = write_file(directory, "all", text);
        struct run_result left = leaks_with(written, profile, 0);
        assert_contains(left.out, "Definitely lost           0 B              0 ");
        run_result_free(&left);
        free(written);
        free(text);
    }
    run_result_free(&result);
    recording_free(&recording);
    remove_directory(directory);
}

static void test_suppressions_that_are_wrong(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {{"race:foo\n", ":1: expected leak:"},
                 {"# x\n\nleak:\n", ":3: expected leak:"},
                 {"{\n a\n Memcheck:Leak\n fun:main\n", ":1: the group that begins here has no end"},
                 {"{\n a\n Memcheck:Leak\n}\n", ":4: a group needs at least one frame"},
                 {"{\n a\n}\n", ":3: a group needs a name and the kind"},
                 {"{\n a\n Memcheck:Leak,Addr4\n fun:main\n}\n", ":3: expected Memcheck:Leak (tools may be a list"},
                 {"{\n a\n Memcheck: leak\n fun:main\n}\n", ":3: expected Memcheck:Leak"},
                 {"{\n a\n Memcheck:Leak\n match-leak-kinds: some\n fun:main\n}\n", ":4: match-leak-kinds:"},
                 {"{\n a\n Memcheck:Leak\n function:main\n}\n", ":4: expected fun:, obj:, src: or ..., not"}};
    char *directory = make_directory();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = write_file(directory, "wrong", cases[i].text);
        struct run_result result = leaks_with(path, "none.hwprof", 2);
        assert_contains(result.err, cases[i].message);
        run_result_free(&result);
        free(path);
    }
    struct run_result result = leaks_with("/nowhere", "none.hwprof", 2);
    assert_contains(result.err, "/nowhere: No such file");
    run_result_free(&result);
    remove_directory(directory);
}

/* ---- a process that goes on ---- */

/* A program that stays until there is a file, see `stay` of programs/leaks.c and programs/visited.c. */
struct victim {
    char *directory, *until, *profile;
    char options[512], preload[600];
    struct run_process process;
};

static void nap(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

static bool is_ready(const struct victim *victim)
{
    char text[4096];
    const ssize_t got = pread(victim->process.out, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return strstr(text, "ready") != NULL;
}

/* ARGUMENTS: "UNTIL" stands for the file. RECORDED: by the runtime. */
static struct victim start(const char *program, const char *const *arguments, bool recorded, const char *more_options)
{
    struct victim victim = {.directory = make_directory()};
    const char *argv[8] = {program}, *environment[3] = {NULL};
    victim.until = join_path(victim.directory, "until");
    victim.profile = join_path(victim.directory, "p.hwprof");
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = strcmp(arguments[i], "UNTIL") ? arguments[i] : victim.until;
    snprintf(victim.options, sizeof victim.options, "HEAPWISE_OPTIONS=output=%s%s", victim.profile, more_options);
    snprintf(victim.preload, sizeof victim.preload, "LD_PRELOAD=%s", runtime_path());
    environment[0] = victim.options;
    environment[1] = recorded ? victim.preload : NULL;
    victim.process = run_start(argv, &(struct run_options){.environment = environment});
    for (int i = 0; i < 6000 && !is_ready(&victim); i++)
        nap(10);
    assert_true(is_ready(&victim));
    return victim;
}

/* It has noticed nothing. */
static void finish(struct victim *victim)
{
    const int file = open(victim->until, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    struct run_result result = run_finish(&victim->process, 60);
    assert_exit(&result, 0, result.out);
    run_result_free(&result);
    remove_directory(victim->directory);
    free(victim->until);
    free(victim->profile);
}

static struct run_result search(pid_t pid, const char *output, const struct run_options *options)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)pid);
    const char *const argv[] = {"leaks", number, output ? "-f" : NULL, "-o", output, NULL};
    return heapwise(argv, options);
}

static json_t *search_and_load(const struct victim *victim, pid_t pid)
{
    char *output = join_path(victim->directory, "leaks.hwprof");
    struct run_result result = search(pid, output, NULL);
    assert_int_equal(result.code, 1);
    assert_contains(result.out, "definite_large");
    assert_contains(result.out, "stood still");
    run_result_free(&result);
    json_t *report = json_of((const char *const[]){"report", "--json", output, NULL}, 0);
    free(output);
    return report;
}

static const char *const stay[] = {"stay", "2", "UNTIL", NULL};

/* Of commands that were killed: each leaves a copy that still searches. */
static void wait_for_copies(const struct victim *victim)
{
    struct run_result result = search(victim->process.pid, NULL, NULL);
    for (int i = 0; i < 20 && result.code == 2 && strstr(result.err, "still under way"); i++) {
        run_result_free(&result); /* of a copy whose visitor is gone */
        nap(1000);
        result = search(victim->process.pid, NULL, NULL);
    }
    assert_exit(&result, 1, result.err);
    run_result_free(&result);
}

static void assert_searched(const struct victim *victim, pid_t pid)
{
    for (int i = 0; i < 2; i++) {
        json_t *report = search_and_load(victim, pid);
        assert_classes(report, false);
        assert_int_equal(json_number(report, "leak_search.threads"), 1 + 3 * 2 + 2);
        assert_int_equal(json_number(report, "leak_search.threads_missed"), 0);
        assert_true(json_number(report, "leak_search.stopped_ns") > 0);
        json_decref(report);
    }
}

static void test_process(void **state)
{
    static const char *const options[] = {"", ":block-table=1", ":leaks=1"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct victim victim = start(need_program("leaks"), stay, true, options[i]);
        assert_searched(&victim, victim.process.pid);
        finish(&victim);
    }
}

/* In a forked child; and where accesses are counted, whose records lie before blocks. */
static void test_process_of_other_kinds(void **state)
{
    char *directory = make_directory(), *program = join_path(directory, "leaks-cc");
    const char *const argv[] = {heapwise_path(),
                                "cc",
                                "-O2",
                                "-g",
                                "-w",
                                "-pthread",
                                "-D_GNU_SOURCE",
                                "-o",
                                program,
                                TEST_SOURCES "/programs/leaks.c",
                                NULL};
    struct run_result built = run(argv, &(struct run_options){.timeout_s = 120});
    if (built.code == 0) {
        counted = true;
        struct victim victim = start(program, stay, false, "");
        json_t *report = search_and_load(&victim, victim.process.pid);
        assert_classes(report, false);
        json_decref(report);
        finish(&victim);
        const char *const exits[] = {program, "exit", "2", NULL};
        struct recording recording = record_and_load(exits, &(struct record_options){.arguments = with_leaks});
        assert_classes(recording.report, false);
        recording_free(&recording);
        counted = false;
    }
    run_result_free(&built);
    remove_directory(directory);
    free(program);
    struct victim victim = start(need_program("leaks"), (const char *const[]){"child", "2", "UNTIL", NULL}, true, "");
    char path[64], children[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)victim.process.pid, (int)victim.process.pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(children, sizeof children, file)) {
        json_t *report = search_and_load(&victim, (pid_t)strtol(children, NULL, 10));
        assert_int_equal(json_number(report, "leak_search.threads"), 1);
        json_decref(report);
    }
    if (file)
        fclose(file);
    finish(&victim);
}

/* Waiting system calls go on waiting, registers stay, no child is seen and no descriptor; the copy is gone. */
static void test_process_is_unharmed(void **state)
{
    struct victim victim = start(need_program("visited"), (const char *const[]){"UNTIL", "3", NULL}, true, "");
    for (int i = 0; i < 4; i++) {
        struct run_result result = search(victim.process.pid, NULL, NULL);
        assert_exit(&result, 0, "nothing is lost");
        run_result_free(&result);
    }
    char path[64], children[256] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)victim.process.pid, (int)victim.process.pid);
    FILE *file = fopen(path, "re");
    if (file) {
        assert_non_null(fgets(children, sizeof children, file));
        fclose(file);
        assert_null(strchr(strchr(children, ' ') + 1, ' ')); /* one: its own */
    }
    finish(&victim);
}

/* The first thread has ended: by then the process has no memory of its own in /proc. */
static void test_process_without_its_first_thread(void **state)
{
    struct victim victim =
        start(need_program("leaks"), (const char *const[]){"alone", "0", "UNTIL", NULL}, true, ":leaks=1");
    for (int i = 0; i < 2; i++) {
        json_t *report = search_and_load(&victim, victim.process.pid);
        assert_int_equal(json_number(report, "leak_search.threads"), 1);
        assert_int_equal(json_number(report, "leak_search.threads_missed"), 0);
        json_decref(report);
    }
    finish(&victim);
    struct recording recording = record_ending("alone", "0", NULL);
    assert_int_equal(json_number(recording.report, "leak_search.threads"), 1);
    recording_free(&recording);
}

/* The command is killed at any moment: the program goes on, and can be searched afterwards. */
static void test_visitor_is_killed(void **state)
{
    struct victim victim = start(need_program("leaks"), stay, true, "");
    char number[16];
    snprintf(number, sizeof number, "%d", (int)victim.process.pid);
    for (unsigned round = 0; round < 20; round++) {
        const pid_t visitor = fork();
        if (visitor == 0) {
            const int null = open("/dev/null", O_RDWR);
            dup2(null, 1);
            dup2(null, 2);
            execl(heapwise_path(), heapwise_path(), "leaks", number, (char *)NULL);
            _exit(127);
        }
        usleep(500u * round);
        kill(visitor, SIGKILL);
        waitpid(visitor, NULL, 0);
    }
    wait_for_copies(&victim);
    assert_searched(&victim, victim.process.pid);
    finish(&victim);
}

static void assert_not_searched(pid_t pid, const char *why, const struct run_options *options)
{
    struct run_result result = search(pid, NULL, options);
    assert_exit(&result, 2, why);
    assert_contains(result.err, why);
    assert_string_equal(result.out, "");
    run_result_free(&result);
}

static void become_nobody(void *unused)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(126);
}

static void test_processes_that_cannot_be_searched(void **state)
{
    static const struct {
        const char *options, *why;
        bool recorded;
    } cases[] = {{":mode=allocator", "allocator", true},
                 {":sample-bytes=1048576", "--sample-bytes", true},
                 {"", "not recorded", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct victim victim = start(need_program("leaks"), stay, cases[i].recorded, cases[i].options);
        assert_not_searched(victim.process.pid, cases[i].why, NULL);
        finish(&victim);
    }
    assert_not_searched(4194303, "there is no process", NULL);
    struct victim victim = start(need_program("leaks"), stay, true, "");
    if (getuid() == 0)
        assert_not_searched(victim.process.pid, "no permission",
                            &(struct run_options){.prepare = become_nobody, .directory = "/"});
    assert_int_equal(ptrace(PTRACE_SEIZE, victim.process.pid, NULL, NULL), 0);
    assert_not_searched(victim.process.pid, "is traced by", NULL);
    ptrace(PTRACE_INTERRUPT, victim.process.pid, NULL, NULL);
    int status;
    assert_int_equal(waitpid(victim.process.pid, &status, __WALL), victim.process.pid);
    ptrace(PTRACE_DETACH, victim.process.pid, NULL, NULL);
    assert_searched(&victim, victim.process.pid);
    finish(&victim);
    struct run_result result = heapwise((const char *const[]){"leaks", "-o", "x", "/nowhere", NULL}, NULL);
    assert_exit(&result, 2, "--output for a file");
    run_result_free(&result);
}

/* It is killed at any moment of the search: a result, or a reason. */
static void test_process_that_ends(void **state)
{
    for (int round = 0; round < 5; round++) {
        struct victim victim = start(need_program("leaks"), stay, true, "");
        const pid_t killer = fork();
        if (killer == 0) {
            usleep(4000u * (unsigned)round);
            kill(victim.process.pid, SIGKILL);
            _exit(0);
        }
        struct run_result result = search(victim.process.pid, NULL, NULL);
        assert_int_equal(result.signal, 0);
        assert_true(result.code == 1 || (result.code == 2 && *result.err));
        run_result_free(&result);
        waitpid(killer, NULL, 0);
        result = run_finish(&victim.process, 60);
        run_result_free(&result);
        remove_directory(victim.directory);
        free(victim.until);
        free(victim.profile);
    }
}

static bool has_entries(const char *folder)
{
    DIR *list = opendir(folder);
    bool any = false;
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        any |= *entry->d_name != '.';
    closedir(list);
    return any;
}

/* Standard output is a full pipe, so that the command cannot end by itself. */
static pid_t search_in(const char *folder, const struct victim *victim)
{
    static const char bytes[4096];
    char number[16];
    int ends[2];
    snprintf(number, sizeof number, "%d", (int)victim->process.pid);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], bytes, sizeof bytes) > 0)
        ;
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[0], 0); /* somebody could read it */
        dup2(ends[1], 1);
        setenv("TMPDIR", folder, 1);
        execl(heapwise_path(), "heapwise", "leaks", number, NULL);
        _exit(127);
    }
    close(ends[0]);
    close(ends[1]);
    return pid;
}

/* …and then leaves no folder. */
static void test_interrupted(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGKILL};
    struct victim victim = start(need_program("leaks"), stay, true, "");
    char *folder = join_path(victim.directory, "temporary");
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = 0;
        const pid_t pid = search_in(folder, &victim);
        assert_true(pid > 0);
        while (!has_entries(folder) && waitpid(pid, &status, WNOHANG) == 0)
            nap(2);
        assert_int_equal(status, 0);
        kill(pid, numbers[i]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
        while (has_entries(folder)) /* a child of the command removes it */
            nap(2);
        wait_for_copies(&victim);
    }
    assert_searched(&victim, victim.process.pid);
    finish(&victim);
    free(folder);
}

/* A dump of a process that is recorded with --pinned says what keeps its pages; a copy says why it does not. */
static void test_pages_of_process(void **state)
{
    struct victim victim = start(need_program("leaks"), stay, true, ":pinned=1");
    char *dump = join_path(victim.directory, "dump.hwprof"), *copy = join_path(victim.directory, "copy.hwprof"),
         number[16];
    snprintf(number, sizeof number, "%d", (int)victim.process.pid);
    struct run_result result = heapwise((const char *const[]){"dump", "-o", dump, number, NULL}, NULL);
    assert_exit(&result, 0, result.err);
    run_result_free(&result);
    json_t *report = json_of((const char *const[]){"report", "--json", dump, NULL}, 0);
    assert_true(json_number(report, "heap_pages.blocks") > 0);
    json_decref(report);
    result = search(victim.process.pid, copy, NULL);
    assert_int_equal(result.code, 1);
    run_result_free(&result);
    result = heapwise((const char *const[]){"report", "--section", "pinned", copy, NULL}, NULL);
    assert_contains(result.out, "only the process itself does that");
    run_result_free(&result);
    free(dump);
    free(copy);
    finish(&victim);
}

TEST_LIST(cmocka_unit_test(test_mapped_by_the_program), cmocka_unit_test(test_interrupted),
          cmocka_unit_test(test_pages_of_process), cmocka_unit_test(test_pointers_of_cpp),
          cmocka_unit_test(test_process_of_other_kinds), cmocka_unit_test(test_suppressions),
          cmocka_unit_test(test_suppressions_of_the_allocator),
          cmocka_unit_test(test_suppressions_as_valgrind_writes_them),
          cmocka_unit_test(test_suppressions_that_are_wrong), cmocka_unit_test(test_process),
          cmocka_unit_test(test_process_is_unharmed), cmocka_unit_test(test_processes_that_cannot_be_searched),
          cmocka_unit_test(test_process_that_ends), cmocka_unit_test(test_process_without_its_first_thread),
          cmocka_unit_test(test_visitor_is_killed), cmocka_unit_test(test_classes),
          cmocka_unit_test(test_threads_and_ends), cmocka_unit_test(test_many_threads),
          cmocka_unit_test(test_beside_other_tools), cmocka_unit_test(test_states_of_threads),
          cmocka_unit_test(test_other_stores), cmocka_unit_test(test_verbs), cmocka_unit_test(test_not_searched))
