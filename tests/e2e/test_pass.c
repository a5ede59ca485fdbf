/* test_pass.c - what the plugin makes of small functions, in LLVM's own words: how many updates of shadow memory
 * (single instructions, marked !nosanitize) and which calls are left, how often they are in a loop, and what is not
 * counted at all. That the sums are right is test_property.c's business. */
#include "support/check.h"
#include "support/run.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const versions[] = {"22", "19"};

static const char source[] =
    "struct four { int a, b, c, d; };\n"
    "struct big { char bytes[24]; };\n"
    "static _Thread_local long own[100];\n"
    "long global, *unknown(void);\n"
    "void other(void *);\n"
    "void fields(struct four *p) { p->a++; p->b++; p->c += p->d; }\n"
    "int equivalent(struct four *p, int x) { int y = p->a; if (x > 3) y *= x; else y -= x; return y + p->d; }\n"
    "void call_between(struct four *p) { p->a = 1; other(p); p->b = 2; }\n"
    "void invariant(long *p, const unsigned char *s) { for (; *s; s++) p[*s == 'x'] += 1, p[9]++; }\n"
    "long sum(const int *a, long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }\n"
    "void hundred(long *p) { for (long i = 0; i < 100; i++) p[i]++; }\n"
    "void when(long *p, long *q, long n, int on) { for (long i = 0; i < n; i++) { q[i] = i; if (on) p[9]++; } }\n"
    "void unless(long *p, long *q, long n, int on) { for (long i = 0; i < n; i++) { q[i] = i; if (!on) p[9]++; } }\n"
    "void masked(int *p, const int *q, long n) { for (long i = 0; i < n; i++) if (q[i] > 3) p[i] = q[i]; }\n"
    "long search(const long *a, long n, long x) { for (long i = 0; i < n; i++) if (a[i] == x) return i; return -1; }\n"
    "void frees(long **p, long n) { for (long i = 0; i < n; i++) { p[0][1]++; other(p[i]); } }\n"
    "long stack(int n) { volatile long a[8]; a[n] = n; return a[7 - n]; }\n"
    "long thread_local(int n) { own[n]++; return own[n + 1]; }\n"
    "void copy(struct big *a, const struct big *b) { *a = *b; }\n"
    "void long_copy(char *a, const char *b, long n) { __builtin_memcpy(a, b, n); }\n"
    "int atomic(int *p) { return __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST); }\n"
    "__attribute__((annotate(\"heapwise:no-count\"))) void annotated(int *p) { *p = 1; }\n"
    "__attribute__((disable_sanitizer_instrumentation)) void disabled(int *p) { *p = 1; }\n"
    "void ignored(int *p) { *p = 1; }\n"
    "void counted(int *p) { *p = 1; }\n";

static char directory[] = "/tmp/heapwise-pass.XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Compiles source.c to LLVM's text form. FLAGS: at most 8, ended by NULL. NULL without this clang and its plugin. */
static char *compile(const char *version, const char *const flags[])
{
    char clang[32], plugin[600], load[640], pass[640];
    snprintf(clang, sizeof clang, "clang-%s", version);
    snprintf(plugin, sizeof plugin, "%.*sHeapwisePass-%s.so", (int)(strrchr(TEST_RUNTIME, '/') + 1 - TEST_RUNTIME),
             TEST_RUNTIME, version);
    if (access(plugin, R_OK) != 0)
        return NULL;
    snprintf(load, sizeof load, "-fplugin=%s", plugin);
    snprintf(pass, sizeof pass, "-fpass-plugin=%s", plugin);
    const char *arguments[24] = {clang, load, pass,      "-w", "-S", "-emit-llvm", "-fno-unroll-loops",
                                 "-o",  "-",  "source.c"};
    size_t count = 10;
    for (; *flags; flags++)
        arguments[count++] = *flags;
    struct run_result result = run(arguments, &(struct run_options){.directory = directory});
    if (result.code == 127)
        return NULL;
    if (result.code != 0)
        fail_msg("%s: %s", run_describe(arguments), result.err);
    char *text = strdup(result.out);
    run_result_free(&result);
    return text;
}

/* How many lines of FUNCTION's body have all of the strings. */
static int lines_with(const char *text, const char *function, const char *first, const char *second)
{
    char name[64];
    snprintf(name, sizeof name, "@%s(", function);
    const char *at = text;
    do
        at = strstr(at + 1, "\ndefine ");
    while (at && !memmem(at + 1, strcspn(at + 1, "\n"), name, strlen(name)));
    if (!at)
        fail_msg("no function %s", function);
    const char *end = strstr(at, "\n}");
    int count = 0;
    for (const char *line = strchr(at + 1, '\n'); line && line < end; line = strchr(line + 1, '\n')) {
        size_t length = strcspn(line + 1, "\n");
        count += memmem(line + 1, length, first, strlen(first)) && memmem(line + 1, length, second, strlen(second));
    }
    return count;
}

static int updates(const char *text, const char *function)
{
    return lines_with(text, function, "call void asm ", "!nosanitize");
}

static int calls(const char *text, const char *function, const char *callee)
{
    return lines_with(text, function, "call ", callee);
}

/* ---- the tests ---- */

static int set_up(void **state)
{
    if (!mkdtemp(directory))
        return -1;
    write_file("source.c", source);
    write_file("list", "fun:ignored\n");
    return 0;
}

static int tear_down(void **state)
{
    const char *const command[] = {"rm", "-rf", directory, NULL};
    struct run_result result = run(command, NULL);
    run_result_free(&result);
    return 0;
}

/* Runs CHECK on the module of each clang there is. */
static void with_each(const char *const flags[], void (*check)(const char *text))
{
    int found = 0;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char *text = compile(versions[i], flags);
        if (!text)
            continue;
        found++;
        check(text);
        free(text);
    }
    if (!found)
        SKIP("neither clang-22 nor clang-19 with a plugin");
}

static const char *const plain[] = {"-O2", "-fno-vectorize", NULL};

static void check_consolidated(const char *text)
{
    assert_int_equal(updates(text, "fields"), 2); /* one of reads, one of writes */
    assert_int_equal(updates(text, "equivalent"), 1);
    assert_int_equal(updates(text, "call_between"), 2);
    assert_int_equal(updates(text, "counted"), 1);
    assert_int_equal(updates(text, "atomic"), 2);
    assert_int_equal(calls(text, "sum", "@__heapwise_range_64("), 1);
    assert_int_equal(updates(text, "sum"), 0);
    assert_int_equal(calls(text, "hundred", "i64 8, i64 100, i64 1, i64 1)"), 1); /* stride, number, reads, writes */
    /* Counted before the loop: as often as it is run, or not at all. */
    assert_int_equal(lines_with(text, "when", " select i1 ", "i64 0"), 1);
    assert_int_equal(lines_with(text, "unless", " select i1 ", "i64 0"), 1);
    assert_int_not_equal(calls(text, "search", "@__heapwise_range_64("), 0);
    assert_int_equal(updates(text, "search"), 0);
    assert_int_not_equal(calls(text, "invariant", "@__heapwise_range_64("), 0);
    assert_int_equal(calls(text, "frees", "void @__heapwise"), 0); /* what is called may free */
    assert_int_not_equal(updates(text, "frees"), 0);
}

static void consolidated(void **state)
{
    with_each(plain, check_consolidated);
}

/* A variable that owns its granules can be told from others. */
static void check_globals(const char *text)
{
    const char *line = strstr(text, "\n@global = ");
    assert_non_null(line);
    assert_non_null(memmem(line + 1, strcspn(line + 1, "\n"), "align 64", 8));
}

static void globals(void **state)
{
    with_each(plain, check_globals);
}

static void check_each_access(const char *text)
{
    assert_int_equal(updates(text, "equivalent"), 2);
    assert_int_equal(calls(text, "sum", "void @__heapwise"), 0);
    assert_int_equal(updates(text, "sum"), 1);
}

static void not_consolidated(void **state)
{
    static const char *const flags[] = {"-O2", "-fno-vectorize", "-mllvm", "-heapwise-no-consolidate", NULL};
    with_each(flags, check_each_access);
}

static void check_uncounted(const char *text)
{
    static const char *const none[] = {"stack", "thread_local", "annotated", "disabled", "ignored"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(updates(text, none[i]), 0);
        assert_int_equal(calls(text, none[i], "@__heapwise_"), 0);
    }
    assert_int_equal(updates(text, "counted"), 1);
}

static void uncounted(void **state)
{
    static const char *const optimised[] = {"-O2", "-mllvm", "-heapwise-ignore-list=list", NULL};
    static const char *const not_optimised[] = {"-O0", "-mllvm", "-heapwise-ignore-list=list", NULL};
    with_each(optimised, check_uncounted);
    with_each(not_optimised, check_uncounted);
}

static void check_copies(const char *text)
{
    assert_int_equal(calls(text, "copy", "@llvm.memcpy"), 1); /* stays what it was, and is counted inline */
    assert_int_equal(calls(text, "copy", "void @__heapwise"), 0);
    assert_int_equal(updates(text, "copy"), 4);
    assert_int_equal(calls(text, "long_copy", "@llvm.memcpy"), 1);
    assert_int_equal(lines_with(text, "long_copy", "@__heapwise_copy_64(", "i64 %"), 1); /* not a number */
}

static void copies(void **state)
{
    with_each(plain, check_copies);
}

static void check_module(const char *text)
{
    assert_non_null(strstr(text, "section \".note.heapwise\""));
    assert_non_null(strstr(text, "@__heapwise_plane = external thread_local(initialexec)"));
    assert_non_null(strstr(text, "@__heapwise_output = weak constant [7 x i8] c\"dir/%p\\00\", comdat"));
    assert_int_equal(calls(text, "heapwise.module_ctor", "@__heapwise_init_v1(i32 8)"), 1);
    assert_int_equal(lines_with(text, "counted", "2147418112", "getelementptr"), 1); /* the byte of writes */
}

static void module_parts(void **state)
{
    static const char *const flags[] = {"-O2", "-mllvm", "-heapwise-granule=8", "-mllvm", "-heapwise-output=dir/%p",
                                        NULL};
    with_each(flags, check_module);
}

static void check_vectors(const char *text)
{
    assert_int_equal(calls(text, "sum", "@__heapwise_range_64(") > 0, 1);
    assert_int_not_equal(calls(text, "masked", "@llvm.ctpop"), 0); /* only the lanes that are on */
}

static void vectors(void **state)
{
    static const char *const flags[] = {"-O3", "-mavx512f", NULL};
    with_each(flags, check_vectors);
}

TEST_LIST_WITH(set_up, tear_down, cmocka_unit_test(consolidated), cmocka_unit_test(not_consolidated),
               cmocka_unit_test(uncounted), cmocka_unit_test(globals), cmocka_unit_test(copies),
               cmocka_unit_test(module_parts), cmocka_unit_test(vectors))
