/* test_cc.c - heapwise cc and c++ in builds: the commands they execute, what they refuse, and that projects of many
 * kinds build with them, run as before and write profiles with the right counts. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sources ---- */

/* One block of 1000 words, each written once and read once. */
static const char count_c[] =
    "#include <stdlib.h>\n"
    "__attribute__((noinline)) volatile int *make_block(void) { return malloc(1000 * sizeof(int)); }\n"
    "int main(void)\n"
    "{\n"
    "    volatile int *block = make_block();\n"
    "    long sum = 0;\n"
    "    for (int i = 0; i < 1000; i++)\n"
    "        block[i] = i;\n"
    "    for (int i = 0; i < 1000; i++)\n"
    "        sum += block[i];\n"
    "    free((void *)block);\n"
    "    return sum != 499500;\n"
    "}\n";

/* The same with new, an exception on the way. */
static const char count_cc[] = "#include <memory>\n"
                               "#include <stdexcept>\n"
                               "#include <string>\n"
                               "__attribute__((noinline)) volatile int *make_block() { return new int[1000]; }\n"
                               "__attribute__((noinline)) void fill(volatile int *block, int count)\n"
                               "{\n"
                               "    for (int i = 0;; i++) {\n"
                               "        if (i == count)\n"
                               "            throw std::runtime_error(\"full\");\n"
                               "        block[i] = i;\n"
                               "    }\n"
                               "}\n"
                               "int main()\n"
                               "{\n"
                               "    volatile int *block = make_block();\n"
                               "    long sum = 0;\n"
                               "    try {\n"
                               "        fill(block, 1000);\n"
                               "    } catch (const std::exception &problem) {\n"
                               "        sum = std::string(problem.what()) == \"full\" ? 0 : 1;\n"
                               "    }\n"
                               "    for (int i = 0; i < 1000; i++)\n"
                               "        sum += block[i];\n"
                               "    delete[] block;\n"
                               "    return sum != 499500;\n"
                               "}\n";

/* A library: NAME_make, NAME_fill (1000 writes), NAME_sum (1000 reads). */
static const char part_c[] =
    "#include <stdlib.h>\n"
    "#define GLUE_(a, b) a##b\n"
    "#define GLUE(a, b) GLUE_(a, b)\n"
    "__attribute__((noinline)) volatile int *GLUE(NAME, _make)(void) { return malloc(1000 * sizeof(int)); }\n"
    "void GLUE(NAME, _fill)(volatile int *block) { for (int i = 0; i < 1000; i++) block[i] = i; }\n"
    "long GLUE(NAME, _sum)(volatile int *block)\n"
    "{\n"
    "    long sum = 0;\n"
    "    for (int i = 0; i < 1000; i++)\n"
    "        sum += block[i];\n"
    "    return sum;\n"
    "}\n";

/* Uses the parts one and two, each of them on the other's block. */
static const char parts_c[] = "#include <stdlib.h>\n"
                              "volatile int *one_make(void), *two_make(void);\n"
                              "void one_fill(volatile int *), two_fill(volatile int *);\n"
                              "long one_sum(volatile int *), two_sum(volatile int *);\n"
                              "int main(void)\n"
                              "{\n"
                              "    volatile int *a = one_make(), *b = two_make();\n"
                              "    one_fill(b);\n"
                              "    two_fill(a);\n"
                              "    long sum = one_sum(a) + two_sum(b);\n"
                              "    free((void *)a);\n"
                              "    free((void *)b);\n"
                              "    return sum != 2 * 499500;\n"
                              "}\n";

/* Loads ./libone.so. */
static const char loader_c[] =
    "#include <dlfcn.h>\n"
    "#include <stdlib.h>\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    void *part = dlopen(\"./libone.so\", RTLD_NOW);\n"
    "    if (!part)\n"
    "        return 2;\n"
    "    volatile int *(*make)(void) = (volatile int *(*)(void))dlsym(part, \"one_make\");\n"
    "    void (*fill)(volatile int *) = (void (*)(volatile int *))dlsym(part, \"one_fill\");\n"
    "    long (*sum)(volatile int *) = (long (*)(volatile int *))dlsym(part, \"one_sum\");\n"
    "    volatile int *block = make();\n"
    "    fill(block);\n"
    "    int wrong = sum(block) != 499500;\n"
    "    free((void *)block);\n"
    "    return wrong;\n"
    "}\n";

static const char answer_s[] = ".globl answer\n.type answer,@function\nanswer:\n    mov $42, %eax\n    ret\n"
                               ".section .note.GNU-stack,\"\",@progbits\n";
static const char asks_c[] = "int answer(void);\nint main(void) { return answer() != 42; }\n";

static void put_file(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail_msg("cannot write %s", path);
    fputs(text, file);
    fclose(file);
    free(path);
}

static char *directory_with_sources(void)
{
    char *directory = make_directory();
    put_file(directory, "count.c", count_c);
    put_file(directory, "count.cc", count_cc);
    put_file(directory, "part.c", part_c);
    put_file(directory, "parts.c", parts_c);
    put_file(directory, "loader.c", loader_c);
    put_file(directory, "answer.s", answer_s);
    put_file(directory, "asks.c", asks_c);
    return directory;
}

/* ---- compilers ---- */

/* What heapwise cc can be used with here: the value of HEAPWISE_CC and of HEAPWISE_CXX. */
static const struct compiler {
    const char *c, *cplusplus;
    unsigned clang; /* version, 0: gcc */
} compilers[] = {{"clang-22", "clang++-22", 22}, {"clang-19", "clang++-19", 19}, {"gcc", "g++", 0}};

#define COMPILER_COUNT (sizeof compilers / sizeof *compilers)

static const char *library_folder(void)
{
    static char folder[4096];
    snprintf(folder, sizeof folder, "%s", TEST_RUNTIME);
    *strrchr(folder, '/') = '\0';
    return folder;
}

static const char *plugin_path(unsigned version)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/HeapwisePass-%u.so", library_folder(), version);
    return path;
}

static bool have_compiler(const struct compiler *compiler)
{
    return have_command(compiler->c) && have_command(compiler->cplusplus) &&
           (!compiler->clang || access(plugin_path(compiler->clang), R_OK) == 0);
}

static const struct compiler *need_clang(void)
{
    for (size_t i = 0; i < COMPILER_COUNT; i++) {
        if (compilers[i].clang && have_compiler(&compilers[i]))
            return &compilers[i];
    }
    SKIP("no clang there is a plugin for");
    return NULL;
}

/* Runs SCRIPT with sh -e in DIRECTORY. It finds CC, CXX, HW (heapwise itself), LIB (the folder of the runtime), PLUGIN,
 * CLANG.
 */
static struct run_result run_script(const char *directory, const struct compiler *compiler, const char *script)
{
    char hw[4200], cc[4300], cxx[4300], use_cc[128], use_cxx[128], lib[4200], plugin[4300], clang[128];
    snprintf(hw, sizeof hw, "HW=%s", heapwise_path());
    snprintf(cc, sizeof cc, "CC=%s cc", heapwise_path());
    snprintf(cxx, sizeof cxx, "CXX=%s c++", heapwise_path());
    snprintf(use_cc, sizeof use_cc, "HEAPWISE_CC=%s", compiler->c);
    snprintf(use_cxx, sizeof use_cxx, "HEAPWISE_CXX=%s", compiler->cplusplus);
    snprintf(lib, sizeof lib, "LIB=%s", library_folder());
    snprintf(plugin, sizeof plugin, "PLUGIN=%s", plugin_path(compiler->clang));
    snprintf(clang, sizeof clang, "CLANG=%s", compiler->c);
    const char *environment[] = {hw,     cc,    cxx,        use_cc,   use_cxx,   lib,
                                 plugin, clang, "LC_ALL=C", "CFLAGS", "LDFLAGS", NULL};
    const char *const argv[] = {"sh", "-ec", script, NULL};
    return run(argv, &(struct run_options){.directory = directory, .environment = environment, .timeout_s = 300});
}

/* ---- the command ---- */

/* heapwise VERB --verbose ARGUMENTS -###: nothing is compiled. WITH and WITHOUT: parts of the command, ended by NULL.
 */
static const struct {
    const char *verb, *arguments;
    const char *with[6], *without[6];
} command_cases[] = {
    {"cc", "-c count.c", {"-fpass-plugin=", "-gline-tables-only", "-fno-omit-frame-pointer"}, {"libheapwise.so"}},
    {"cc", "count.c", {"-fpass-plugin=", "libheapwise.so", "-rpath"}, {0}},
    {"cc", "count.o", {"libheapwise.so", "--build-id"}, {"-fpass-plugin="}},
    {"cc", "-E count.c", {0}, {"libheapwise.so", "-fpass-plugin="}},
    {"cc", "-shared count.o", {"libheapwise.so"}, {0}},
    {"cc", "-r count.o", {0}, {"libheapwise.so"}},
    {"cc", "-g3 -c count.c", {"-fpass-plugin="}, {"-gline-tables-only"}},
    {"cc", "-c answer.s", {0}, {"-fpass-plugin=", "-gline-tables-only"}},
    {"cc", "--granule 8 -c count.c", {"-heapwise-granule=8"}, {"--granule"}},
    {"cc", "-c --granule=8 count.c", {"-heapwise-granule=8"}, {"--granule"}},
    {"cc", "--no-consolidate -c count.c", {"-heapwise-no-consolidate"}, {"--no-consolidate"}},
    {"cc", "--profile-output=out/ -c count.c", {"-heapwise-output=out/%e.%p.hwprof"}, {"--profile-output"}},
    {"cc", "--profile-output out.%p -c count.c", {"-heapwise-output=out.%p"}, {"%e"}},
    {"cc", "-o --granule -c count.c", {"-o --granule -c"}, {0}},
    {"cc", "-c -Xclang --granule count.c", {"-Xclang --granule"}, {0}},
    {"cc", "--target=x86_64-linux-gnu --sysroot=/ -c count.c", {"--target=x86_64-linux-gnu --sysroot=/"}, {0}},
    {"cc", "-c -- count.c", {"-c --start-no-unused-arguments", "-- count.c"}, {0}},
    {"c++", "count.cc", {"++", "-fpass-plugin=", "libheapwise.so"}, {0}},
};

static void check_command(size_t i)
{
    char script[1024];
    char *directory = directory_with_sources();
    snprintf(script, sizeof script, "$HW %s -### --verbose %s 2>&1 | head -n 1", command_cases[i].verb,
             command_cases[i].arguments);
    struct run_result result = run_script(directory, need_clang(), script);
    assert_exit(&result, 0, command_cases[i].arguments);
    for (size_t part = 0; command_cases[i].with[part]; part++)
        assert_contains(result.out, command_cases[i].with[part]);
    for (size_t part = 0; command_cases[i].without[part]; part++)
        assert_lacks(result.out, command_cases[i].without[part]);
    run_result_free(&result);
    remove_directory(directory);
}

static void test_commands(void **state)
{
    for (size_t i = 0; i < sizeof command_cases / sizeof *command_cases; i++)
        check_command(i);
}

/* What is refused, or wrong: the exit code and a part of the message. */
static const struct {
    const char *script;
    int code;
    const char *message;
} refusal_cases[] = {
    {"$CC -static count.c", 1, "static"},
    {"$CC -fsanitize=address count.c", 1, "-fsanitize=address"},
    {"$CC -fmemory-profile -c count.c", 1, "-fmemory-profile"},
    {"$CC -m32 -c count.c", 1, "64-bit"},
    {"$CC --compiler=gcc --fields -c count.c", 1, "--fields is for clang"},
    {"ln -s $(command -v gcc) mygcc; $HW c++ --compiler=./mygcc -c count.cc", 127, "no g++ or c++ is beside it"},
    {"$CC --granule=16 -c count.c", 2, "64, 8, 4"},
    {"$CC --granule", 2, "64, 8, 4"},
    {"$CC --ignore-list=absent -c count.c", 2, "absent"},
    {"$CC --profile-output= -c count.c", 2, "--profile-output"},
    {"$CC --compiler=no-such-compiler -c count.c", 127, "no-such-compiler"},
    {"HEAPWISE_CC=no-such-compiler $CC -c count.c", 127, "no-such-compiler"},
    {"HEAPWISE_CC=./count.c $CC -c count.c", 126, "count.c"},
    {"$CC --compiler=/bin/true -c count.c", 1, "/bin/true"},
    {"$CC absent.c", 1, "absent.c"}, /* the compiler's own */
    {"$CC", 1, "no input files"},    /* likewise */
    {"$CC --no-such-option -c count.c", 1, "no-such-option"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < sizeof refusal_cases / sizeof *refusal_cases; i++) {
        char *directory = directory_with_sources();
        struct run_result result = run_script(directory, need_clang(), refusal_cases[i].script);
        assert_exit(&result, refusal_cases[i].code, refusal_cases[i].script);
        assert_contains(result.err, refusal_cases[i].message);
        assert_string_equal(result.out, "");
        run_result_free(&result);
        remove_directory(directory);
    }
}

static void test_without_compiler_or_plugin(void **state)
{
    char *directory = directory_with_sources();
    struct run_result result =
        run_script(directory, need_clang(),
                   "mkdir -p elsewhere/bin elsewhere/lib/heapwise\n"
                   "cp $HW elsewhere/bin/heapwise; cp $LIB/libheapwise.so elsewhere/lib/heapwise\n"
                   "unset HEAPWISE_CC\n"
                   "elsewhere/bin/heapwise cc count.c || echo code $?\n"
                   "touch elsewhere/lib/heapwise/HeapwisePass-99.so\n"
                   "elsewhere/bin/heapwise cc count.c || echo code $?\n"
                   "HEAPWISE_CC=$CLANG elsewhere/bin/heapwise cc count.c || echo code $?\n");
    assert_exit(&result, 0, "heapwise without plugins");
    assert_string_equal(result.out, "code 127\ncode 127\ncode 1\n");
    assert_contains(result.err, "without plugins");
    assert_contains(result.err, "clang-99");
    assert_contains(result.err, "for which there is no plugin");
    run_result_free(&result);
    remove_directory(directory);
}

/* ---- builds ---- */

/* Scripts that build, and perhaps run, something: everything succeeds, and compilers print nothing, neither warnings
 * nor notes. PROFILES: how many profiles there are then, with BLOCKS blocks that were read and written 1000 times each.
 */
static const struct build_case {
    const char *name, *script;
    int profiles, blocks;
    enum { ANY, CLANG } with;
} build_cases[] = {
    {"one command", "$CC -Wall -Werror -O2 count.c -o count; ./count", 1, 1, ANY},
    {"without optimisation", "$CC -O0 count.c -o count; ./count", 1, 1, ANY},
    {"two steps", "$CC -Wall -Wextra -Werror -O2 -c count.c; $CC -Werror count.o -o count; ./count", 1, 1, ANY},
    {"C++", "$CXX -Wall -Wextra -Werror -O2 count.cc -o count; ./count", 1, 1, ANY},
    {"C++ in two steps", "$CXX -O1 -c count.cc; $CXX count.o -o count; ./count", 1, 1, ANY},
    {"static C++ library", "$CXX -O2 -static-libstdc++ -static-libgcc count.cc -o count; ./count", 1, 1, ANY},
    {"not position independent", "$CC -O2 -fno-pie -no-pie count.c -o count; ./count", 1, 1, ANY},
    {"no frame pointers asked for", "$CC -Werror -O2 -fomit-frame-pointer count.c -o count; ./count", 1, 1, ANY},
    {"granule 8", "$CC -O2 --granule=8 count.c -o count; ./count", 1, 1, ANY},
    {"not consolidated", "$CC -O2 --no-consolidate count.c -o count; ./count", 1, 1, CLANG},
    {"assembler in two steps", "$CC -O2 -S count.c; $CC -Werror -c count.s; $CC count.o -o count; ./count", 1, 1, ANY},
    {"preprocessed", "$CC -E count.c > all.i; $CC -Werror -O2 all.i -o count; ./count", 1, 1, CLANG},
    {"assembler sources", "$CC -Wall -Werror asks.c answer.s -o asks; ./asks", 1, 0, ANY},
    {"assembler with preprocessor",
     "cp answer.s answer.S; $CC -Werror -c answer.S; $CC asks.c answer.o -o asks; ./asks", 1, 0, ANY},
    {"standard input", "$CC -Werror -O2 -x c - -o count < count.c; ./count", 1, 1, ANY},
    {"response files",
     "echo '-O2 -c @b' > a; echo '\"count.c\" -o \"count object.o\"' > b; $CC -Werror @a\n"
     "$CC 'count object.o' -o count; ./count",
     1, 1, ANY},
    {"files behind --", "$CC -O2 -o count -- count.c; ./count", 1, 1, CLANG},
    {"several sources",
     "$CC -O2 -c -DNAME=one part.c -o one.o; $CC -O2 -c -DNAME=two part.c -o two.o\n"
     "$CC -Werror -O2 parts.c one.o two.o -o parts; ./parts",
     1, 2, ANY},
    {"libraries",
     "for name in one two; do $CC -O2 -fPIC -shared -DNAME=$name part.c -o lib$name.so; done\n"
     "$CC -O2 parts.c -L. -lone -ltwo -Wl,-rpath,$PWD -o parts; ./parts",
     1, 2, ANY},
    {"archives",
     "for name in one two; do $CC -O2 -c -DNAME=$name part.c -o $name.o; done; ar rcs libparts.a one.o two.o\n"
     "$CC -O2 parts.c -L. -lparts -o parts; ./parts",
     1, 2, ANY},
    {"partial links",
     "for name in one two; do $CC -O2 -c -DNAME=$name part.c -o $name.o; done\n"
     "$CC -r one.o two.o -o both.o; $CC -O2 parts.c both.o -o parts; ./parts",
     1, 2, ANY},
    {"dlopen", "$CC -O2 -fPIC -shared -DNAME=one part.c -o libone.so; $CC -O2 loader.c -o loader -ldl; ./loader", 1, 1,
     ANY},
    {"a library in a program built otherwise",
     "$CC -O2 -fPIC -shared -DNAME=one part.c -o libone.so\n$CLANG -O2 loader.c -o loader -ldl; $HW record -q -o recorded.hwprof -- ./loader",
     1, 1, ANY},
    {"undefined symbols are errors", "$CC -O2 -fPIC -shared -Wl,-z,defs -DNAME=one part.c -o libone.so", 0, 0, ANY},
    {"without standard libraries", "$CC -O2 -fPIC -shared -nostdlib -DNAME=one part.c -o libone.so -lc", 0, 0, ANY},
    {"as needed", "$CC -O2 -Wl,--as-needed count.c -o count; ./count", 1, 1, ANY},
    {"C++ by gcc", "$HW c++ --compiler=gcc -O2 count.cc -o count; ./count", 1, 1, ANY},
    {"C++ by cc",
     "ln -s $(command -v gcc) cc; ln -s $(command -v g++) c++; $HW c++ --compiler=./cc -O2 count.cc -o count; ./count",
     1, 1, ANY},
    {"modules in two steps",
     "sed 's/^int main/export int run/; s/^__attr/export __attr/; 1i module;' count.cc > all.cppm\n"
     "sed -i '/^#include <string>/a export module all;' all.cppm; echo 'import all; int main() { return run(); }' > one.cc\n"
     "$CXX -std=c++20 -O1 --precompile all.cppm -o all.pcm; $CXX -std=c++20 -O1 -c all.pcm -o all.o\n"
     "$CXX -std=c++20 -O1 -fmodule-file=all=all.pcm one.cc all.o -o count; ./count",
     1, 1, CLANG},
    {"LTO", "$CC -Werror -O2 -flto -c count.c; $CC -Werror -O2 -flto count.o -o count; ./count", 1, 1, ANY},
    {"LTO in one command", "$CC -Werror -O2 -flto count.c -o count; ./count", 1, 1, ANY},
    {"LTO of libraries",
     "for name in one two; do $CC -O2 -flto -fPIC -shared -DNAME=$name part.c -o lib$name.so; done\n"
     "$CC -O2 -flto parts.c -L. -lone -ltwo -Wl,-rpath,$PWD -o parts; ./parts",
     1, 2, ANY},
    {"LTO of several sources",
     "for name in one two; do $CC -O2 -flto -c -DNAME=$name part.c -o $name.o; done\n"
     "$CC -O2 -flto parts.c one.o two.o -o parts; ./parts",
     1, 2, ANY},
    {"ThinLTO",
     "for name in one two; do $CC -O2 -flto=thin -c -DNAME=$name part.c -o $name.o; done\n"
     "$CC -Werror -O2 -flto=thin parts.c one.o two.o -o parts; ./parts",
     1, 2, CLANG},
    {"ThinLTO in C++", "$CXX -Werror -O2 -flto=thin count.cc -o count; ./count", 1, 1, CLANG},
    {"unity of sanitizers", "$CC -Werror -O1 -fsanitize=undefined -fsanitize-trap=undefined count.c -o count; ./count",
     1, 1, CLANG},
    {"only syntax", "$CC -Werror -fsyntax-only count.c", 0, 0, ANY},
    {"intermediate files", "$CC -O2 -g0 -save-temps count.c -o count; ./count", 1, 1, ANY},
    {"bitcode", "$CC -O2 -emit-llvm -c count.c -o count.bc; $CC -Werror -O2 count.bc -o count; ./count", 1, 1, CLANG},
    {"a precompiled header",
     "echo '#include <stdlib.h>' > all.h; $CC -O2 all.h -o all.h.pch\n"
     "$CC -Werror -O2 -include-pch all.h.pch count.c -o count; ./count",
     1, 1, CLANG},
    {"dependencies", "$CC -O2 -MMD -MP -MF deps -c count.c; grep -q 'count.o: count.c' deps", 0, 0, ANY},
    {"dependencies only", "$CC -M count.c | grep -q stdlib.h; $CC -MM count.c | grep -q 'count.o: count.c'", 0, 0, ANY},
    {"a pattern for profiles",
     "$CC -O2 --profile-output=profile.%e.hwprof count.c -o count; ./count; test -f profile.count.hwprof", 1, 1, ANY},
    {"a folder for profiles",
     "mkdir folder; $CC -O2 --profile-output=folder count.c -o count; ./count\n"
     "mv folder/count.*.hwprof .",
     1, 1, ANY},
    {"the environment counts more",
     "$CC -O2 --profile-output=no.hwprof count.c -o count\n"
     "HEAPWISE_OPTIONS=output=yes.hwprof ./count; test -f yes.hwprof",
     1, 1, ANY},
    {"exec of a program that counts, and of one that does not",
     "cat > turn.c <<END\n"
     "#include <stdlib.h>\n#include <unistd.h>\n"
     "int main(int c, char **v) { free(malloc(10)); return execl(v[c > 1 ? 1 : 0], v[0], (c > 1 ? 0 : \"/bin/true\"), "
     "(char *)0); }\nEND\n"
     "$CC -O2 turn.c -o turn; HEAPWISE_OPTIONS=output=%n.hwprof ./turn\n"
     "if $HW report 0.hwprof | grep 'cannot be profiled'; then exit 1; fi\n"
     "$HW report 1.hwprof | tr '\\n' ' ' | grep -q '/bin/true: its'",
     2, 0, ANY},
    {"record", "$CC -O2 count.c -o count; $HW record -q -o recorded.hwprof -- ./count", 1, 1, ANY},
    {"record of a C++ program", "$CXX -O2 count.cc -o count; $HW record -q -o recorded.hwprof -- ./count", 1, 1, ANY},
    {"record of a program that lost the way to the runtime",
     "$CC -O2 count.c -o count -Wl,-rpath,/nowhere; cp -r $LIB lib; $HW record -q -o recorded.hwprof -- ./count", 1, 1,
     ANY},
};

static void check_counts(const struct build_case *build, const char *directory)
{
    size_t count;
    char **files = list_files(directory, ".hwprof", &count);
    if ((int)count != build->profiles)
        fail_msg("%s: %zu profiles instead of %d", build->name, count, build->profiles);
    if (count == 1 && build->blocks) {
        json_t *report = load_report(files[0], 0);
        int seen = 0;
        size_t i;
        json_t *context;
        json_array_foreach(json_object_get(report, "contexts"), i, context)
        {
            if (!strstr(stack_line(context), "make"))
                continue;
            int64_t reads = json_number_or_none(context, "accesses.reads");
            int64_t writes = json_number_or_none(context, "accesses.writes");
            if (reads != 1000 || writes != 1000)
                fail_msg("%s: %lld reads and %lld writes instead of 1000", build->name, (long long)reads,
                         (long long)writes);
            seen++;
        }
        if (seen != build->blocks)
            fail_msg("%s: %d blocks instead of %d", build->name, seen, build->blocks);
        json_decref(report);
    }
    free_list(files);
}

static void check_build(const struct build_case *build, const struct compiler *compiler)
{
    char *directory = directory_with_sources();
    struct run_result result = run_script(directory, compiler, build->script);
    if (result.code != 0 || result.err_size != 0)
        fail_msg("%s with %s: code %d, %s", build->name, compiler->c, result.code, result.err);
    check_counts(build, directory);
    run_result_free(&result);
    remove_directory(directory);
}

static void check_builds(const struct compiler *compiler)
{
    if (!have_compiler(compiler))
        SKIP("no %s, or no plugin for it", compiler->c);
    const char *only = getenv("HEAPWISE_TEST_BUILD");
    for (size_t i = 0; i < sizeof build_cases / sizeof *build_cases; i++) {
        if ((build_cases[i].with == ANY || compiler->clang) && (!only || strcmp(only, build_cases[i].name) == 0))
            check_build(&build_cases[i], compiler);
    }
}

static void test_builds_with_clang_22(void **state)
{
    check_builds(&compilers[0]);
}

static void test_builds_with_clang_19(void **state)
{
    check_builds(&compilers[1]);
}

static void test_builds_with_gcc(void **state)
{
    check_builds(&compilers[2]);
}

static void test_other_linkers(void **state)
{
    static const char *const linkers[] = {"lld", "gold", "bfd"};
    const struct compiler *clang = need_clang();
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++) {
        char script[512];
        snprintf(script, sizeof script, "$CLANG -fuse-ld=%s asks.c answer.s -o plain", linkers[i]);
        char *directory = directory_with_sources();
        struct run_result result = run_script(directory, clang, script);
        bool works = result.code == 0; /* this linker is there */
        run_result_free(&result);
        for (int lto = 0; works && lto < 3; lto++) {
            static const char *const flags[] = {"", "-flto", "-flto=thin"};
            snprintf(script, sizeof script, "$CXX -O2 -fuse-ld=%s %s count.cc -o count; ./count; rm -f *.hwprof",
                     linkers[i], flags[lto]);
            result = run_script(directory, clang, script);
            if (result.code != 0 || result.err_size != 0)
                fail_msg("-fuse-ld=%s %s: %s", linkers[i], flags[lto], result.err);
            run_result_free(&result);
        }
        remove_directory(directory);
    }
}

/* The runtime comes before the libraries whose functions it takes the place of. */
static void test_order_of_libraries(void **state)
{
    char *directory = directory_with_sources();
    struct run_result result = run_script(
        directory, need_clang(),
        "$CXX -O2 -lm -Wl,--as-needed count.cc -o count\n"
        "$CXX -O2 -shared -fPIC count.cc -o libcount.so\n"
        "for file in count libcount.so; do readelf -d $file | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p' | head -n 1; done");
    assert_exit(&result, 0, "readelf");
    assert_string_equal(result.out, "libheapwise.so\nlibheapwise.so\n");
    run_result_free(&result);
    remove_directory(directory);
}

/* A program whose parts do not agree says so and does not start. */
static void test_mixed_granules(void **state)
{
    static const char *const scripts[] = {
        "$CC -O2 --granule=8 -fPIC -shared -DNAME=one part.c -o libone.so; $CC -O2 -fPIC -shared -DNAME=two part.c -o libtwo.so\n"
        "$CC -O2 parts.c -L. -lone -ltwo -Wl,-rpath,$PWD -o parts; ./parts",
        "$CC -O2 --granule=8 -c -DNAME=one part.c -o one.o; $CC -O2 -c -DNAME=two part.c -o two.o\n"
        "$CC -O2 parts.c one.o two.o -o parts; ./parts",
        "$CC -O2 --granule=8 -fPIC -shared -DNAME=one part.c -o libone.so; $CC -O2 loader.c -o loader; ./loader",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char *directory = directory_with_sources();
        struct run_result result = run_script(directory, need_clang(), scripts[i]);
        assert_exit(&result, 1, scripts[i]);
        assert_contains(result.err, "granule");
        run_result_free(&result);
        remove_directory(directory);
    }
}

/* ---- clang without heapwise cc ---- */

static void check_script(const struct compiler *compiler, const char *name, const char *script, int profiles,
                         int blocks)
{
    const struct build_case build = {name, script, profiles, blocks, ANY};
    check_build(&build, compiler);
}

static void test_plain_clang(void **state)
{
    check_script(need_clang(), "clang with the plugin",
                 "$CLANG -Werror -O2 -fpass-plugin=$PLUGIN -fno-optimize-sibling-calls -c count.c\n"
                 "$CLANG count.o -L$LIB -lheapwise -Wl,-rpath,$LIB -o count; ./count",
                 1, 1);
    check_script(
        need_clang(), "clang with the plugin and its options",
        "$CLANG -O1 -fplugin=$PLUGIN -fpass-plugin=$PLUGIN -mllvm -heapwise-granule=8 -fno-optimize-sibling-calls -c count.c\n"
        "$CLANG count.o -L$LIB -lheapwise -Wl,-rpath,$LIB -o count; ./count",
        1, 1);
}

/* ---- build systems ---- */

/* What configure scripts ask of a compiler. */
static void test_probes_of_configure(void **state)
{
    char *directory = directory_with_sources();
    struct run_result result = run_script(
        directory, need_clang(),
        "$CC --version | grep -q clang; $CC -v 2>&1 | grep -q Target; $CC -dumpmachine | grep -q linux\n"
        "$CC -dumpversion | grep -q '^[0-9]'; test -e \"$($CC -print-file-name=libc.so)\"; $CC -print-prog-name=ld | grep -q ld\n"
        "echo 'int main(void) { return 0; }' > conftest.c\n"
        "$CC -Werror -Wall conftest.c; ./a.out; rm -f *.hwprof; $CC -Werror -c -g conftest.c 2>&1; $CC -E conftest.c | grep -q main\n"
        "$CC -Werror -Wl,--as-needed -Wl,-z,relro conftest.c -o conftest -lm; ! $CC -c -fno-such-option conftest.c 2>/dev/null\n"
        "echo 'char no_such_function(void); int main(void) { return no_such_function(); }' > conftest.c\n"
        "! $CC conftest.c -o conftest 2>/dev/null\n"
        "echo '#include <no_such_header.h>' > conftest.c; ! $CC -E conftest.c 2>/dev/null >&2\n"
        "echo 'int f(int x) { return x; }' | $CC -Werror -x c -c -o /dev/null -");
    assert_exit(&result, 0, result.err);
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, "");
    run_result_free(&result);
    remove_directory(directory);
}

static void test_make(void **state)
{
    if (!have_command("make"))
        SKIP("no make");
    char *directory = directory_with_sources();
    put_file(directory, "Makefile",
             "CFLAGS = -O2 -Wall -Werror -MMD -MP\n"
             "parts: parts.o one.o two.o\n"
             "\t$(CC) $(LDFLAGS) $^ -o $@\n"
             "one.o two.o: %.o: part.c\n"
             "\t$(CC) $(CFLAGS) -DNAME=$* -c $< -o $@\n"
             "parts.o: parts.c\n"
             "-include $(wildcard *.d)\n");
    struct run_result result = run_script(directory, need_clang(), "make -s -j2; touch part.c; make; ./parts");
    assert_exit(&result, 0, result.err);
    assert_contains(result.out, "-DNAME=one");
    assert_lacks(result.out, "-c parts.c");
    check_counts(&(struct build_case){"make", NULL, 1, 2, ANY}, directory);
    run_result_free(&result);
    remove_directory(directory);
}

static void test_cmake(void **state)
{
    if (!have_command("cmake") || !have_command("make"))
        SKIP("no cmake");
    char *directory = directory_with_sources();
    put_file(directory, "CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.16)\n"
             "project(parts C CXX)\n"
             "include(CheckFunctionExists)\n"
             "include(CheckCCompilerFlag)\n"
             "check_function_exists(malloc HAVE_MALLOC)\n"
             "check_c_compiler_flag(-fno-such-option HAVE_NO_SUCH)\n"
             "if(NOT HAVE_MALLOC OR HAVE_NO_SUCH)\n"
             "  message(FATAL_ERROR \"wrong answers\")\n"
             "endif()\n"
             "find_package(Threads REQUIRED)\n"
             "add_library(one SHARED part.c)\n"
             "target_compile_definitions(one PRIVATE NAME=one)\n"
             "add_library(two STATIC part.c)\n"
             "target_compile_definitions(two PRIVATE NAME=two)\n"
             "add_executable(parts parts.c)\n"
             "target_link_libraries(parts one two Threads::Threads)\n"
             "add_executable(count count.cc)\n"
             "install(TARGETS one parts LIBRARY DESTINATION lib RUNTIME DESTINATION bin)\n");
    struct run_result result = run_script(directory, need_clang(),
                                          "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release >log 2>&1 || cat log\n"
                                          "cmake --build build >log 2>&1 || cat log\n"
                                          "cmake --install build --prefix installed >log 2>&1 || cat log\n"
                                          "build/parts; build/count; rm count.*.hwprof");
    assert_exit(&result, 0, result.out);
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, "");
    check_counts(&(struct build_case){"cmake", NULL, 1, 2, ANY}, directory);
    run_result_free(&result);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_commands), cmocka_unit_test(test_refusals),
          cmocka_unit_test(test_without_compiler_or_plugin), cmocka_unit_test(test_builds_with_clang_22),
          cmocka_unit_test(test_builds_with_clang_19), cmocka_unit_test(test_builds_with_gcc),
          cmocka_unit_test(test_other_linkers), cmocka_unit_test(test_order_of_libraries),
          cmocka_unit_test(test_mixed_granules), cmocka_unit_test(test_plain_clang),
          cmocka_unit_test(test_probes_of_configure), cmocka_unit_test(test_make), cmocka_unit_test(test_cmake))
