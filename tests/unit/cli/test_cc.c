/* test_cc.c - heapwise cc without a compiler: what its readers make of command lines, and the commands it builds. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"

#include "cli/cc_arguments.h"
#include "cli/cc_command.h"
#include "cli/cc_compiler.h"

#define MOST_WORDS 64

static char folder[PATH_MAX];

static int enter_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/heapwise-test-XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A command line without quotes; the words stay valid until the next call. */
static char **split(const char *line)
{
    static char text[4096];
    static char *words[MOST_WORDS];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        assert_true(count + 1 < MOST_WORDS);
        words[count++] = word;
    }
    words[count] = NULL;
    return words;
}

static struct hw_cc_arguments read_line(const char *line)
{
    struct hw_cc_arguments arguments;
    struct hw_error error;
    if (!hw_cc_arguments_read(&arguments, split(line), &error))
        fail_msg("%s: %s", line, error.message);
    return arguments;
}

/* ---- stages and inputs ---- */

static const struct {
    const char *line;
    enum hw_cc_stage stage;
    size_t sources, link_inputs;
} input_cases[] = {
    {"", HW_CC_STAGE_LINK, 0, 0},
    {"-v", HW_CC_STAGE_LINK, 0, 0},
    {"x.c", HW_CC_STAGE_LINK, 1, 1},
    {"-o x.c y.o", HW_CC_STAGE_LINK, 0, 1},
    {"-ox.c y.o", HW_CC_STAGE_LINK, 0, 1},
    {"x.c -c", HW_CC_STAGE_COMPILE, 1, 1},
    {"-S x.c y.cc z.cpp", HW_CC_STAGE_COMPILE, 3, 3},
    {"-c -E x.c", HW_CC_STAGE_PREPROCESS, 1, 1},
    {"-E -c x.c", HW_CC_STAGE_PREPROCESS, 1, 1},
    {"-M x.c", HW_CC_STAGE_PREPROCESS, 1, 1},
    {"-MM x.c -o deps.c", HW_CC_STAGE_PREPROCESS, 1, 1},
    {"-MD -MF x.c -MT y.c -MQ z.c -c w.c", HW_CC_STAGE_COMPILE, 1, 1},
    {"-MMD -MP -c x.c", HW_CC_STAGE_COMPILE, 1, 1},
    {"-fsyntax-only x.c", HW_CC_STAGE_CHECK, 1, 1},
    {"--analyze x.c", HW_CC_STAGE_CHECK, 1, 1},
    {"-r a.o b.o", HW_CC_STAGE_PARTIAL, 0, 2},
    {"-Wl,-r a.o", HW_CC_STAGE_PARTIAL, 0, 1},
    {"-Xlinker -r a.o", HW_CC_STAGE_PARTIAL, 0, 1},
    {"-Wl,--as-needed,--relocatable a.o", HW_CC_STAGE_PARTIAL, 0, 1},
    {"-Wl,-rpath,/r a.o", HW_CC_STAGE_LINK, 0, 1},
    {"-rdynamic a.o", HW_CC_STAGE_LINK, 0, 1},
    {"a.o -lm -l z", HW_CC_STAGE_LINK, 0, 3},
    {"a.s b.S c.c", HW_CC_STAGE_LINK, 1, 3},
    {"a.h", HW_CC_STAGE_LINK, 1, 0},
    {"-x c++-header a", HW_CC_STAGE_LINK, 1, 0},
    {"-xc -", HW_CC_STAGE_LINK, 1, 1},
    {"-E -", HW_CC_STAGE_PREPROCESS, 0, 1},
    {"-x c a b -x none c.o", HW_CC_STAGE_LINK, 2, 3},
    {"--language=c++ a", HW_CC_STAGE_LINK, 1, 1},
    {"--language c++ a", HW_CC_STAGE_LINK, 1, 1},
    {"-x assembler a.c", HW_CC_STAGE_LINK, 0, 1},
    {"-x assembler-with-cpp a.c", HW_CC_STAGE_LINK, 0, 1},
    {"-D a.c -U b.c -I c.c -include d.c -L e.c f.o", HW_CC_STAGE_LINK, 0, 1},
    {"-Xclang x.c -mllvm y.c -Xlinker z.c", HW_CC_STAGE_LINK, 0, 0},
    {"-Xarch_host x.c -Xarch_x86_64 -c -Xopenmp-target=x y.c", HW_CC_STAGE_LINK, 0, 0},
    {"-I", HW_CC_STAGE_LINK, 0, 0},
    {"-c -- -x.c", HW_CC_STAGE_COMPILE, 1, 1},
    {"dir.c/file", HW_CC_STAGE_LINK, 0, 1},
    {"libx.so.1 libx.a script.ld", HW_CC_STAGE_LINK, 0, 3},
    {"-T script.c a.o", HW_CC_STAGE_LINK, 0, 1},
    {"x.m x.mm x.i x.ii x.C x.bc x.ll", HW_CC_STAGE_LINK, 7, 7},
    {"-c x.pcm", HW_CC_STAGE_COMPILE, 1, 1},
    {"-fmodule-file=x=x.pcm -c y.cpp", HW_CC_STAGE_COMPILE, 1, 1},
};

static void test_stages_and_inputs(void **state)
{
    for (size_t i = 0; i < sizeof input_cases / sizeof *input_cases; i++) {
        struct hw_cc_arguments arguments = read_line(input_cases[i].line);
        if (arguments.stage != input_cases[i].stage || arguments.sources != input_cases[i].sources ||
            arguments.link_inputs != input_cases[i].link_inputs)
            fail_msg("'%s': stage %d, %zu sources, %zu inputs of the linker", input_cases[i].line, arguments.stage,
                     arguments.sources, arguments.link_inputs);
    }
}

/* ---- what is said ---- */

enum {
    ASKS = 1 << 0,
    STATIC = 1 << 1,
    MACHINE = 1 << 2,
    OFFLOAD = 1 << 3,
    MEMORY_PROFILE = 1 << 4,
    DEBUG = 1 << 5,
    BUILD_ID = 1 << 6,
    LTO = 1 << 7,
    SANITIZER = 1 << 8,
};

static const struct {
    const char *line;
    int facts;
} fact_cases[] = {
    {"-O2 -Wall x.c", 0},
    {"--version", ASKS},
    {"-dumpversion", ASKS},
    {"-dumpmachine", ASKS},
    {"-print-prog-name=ld", ASKS},
    {"--print-search-dirs", ASKS},
    {"--print-file-name libc.so", ASKS},
    {"-print-multi-os-directory -m32", ASKS | MACHINE},
    {"-cc1 -emit-obj x.c", ASKS},
    {"-o --version x.c", 0},
    {"-static x.o", STATIC},
    {"--static x.o", STATIC},
    {"-static-pie x.o", STATIC},
    {"-static-libgcc -static-libstdc++ x.o", 0},
    {"-Wl,-static x.o", 0},
    {"-m32", MACHINE},
    {"-m32 -m64", 0},
    {"-mx32", MACHINE},
    {"--target=x86_64-linux-gnu", 0},
    {"--target=x86_64-unknown-linux-musl", 0},
    {"-target aarch64-linux-gnu", MACHINE},
    {"--target=x86_64-w64-mingw32", MACHINE},
    {"--target=x86_64-linux-gnux32", MACHINE},
    {"x.cu", OFFLOAD},
    {"-x hip x.cpp", OFFLOAD},
    {"-x cuda x.cpp", OFFLOAD},
    {"-fmemory-profile", MEMORY_PROFILE},
    {"-fmemory-profile=dir", MEMORY_PROFILE},
    {"-fmemory-profile -fno-memory-profile", 0},
    {"-fmemory-profile-use=x.profdata", 0},
    {"-g", DEBUG},
    {"-g0", DEBUG},
    {"-ggdb3", DEBUG},
    {"-gdwarf-4", DEBUG},
    {"-gdwarf64", 0},
    {"-gz=zlib -gno-column-info -gsplit-dwarf -grecord-gcc-switches", 0},
    {"--gcc-toolchain=/usr -gcc-toolchain /usr", 0},
    {"-Wl,--build-id=none", BUILD_ID},
    {"-Wl,-O1,--build-id", BUILD_ID},
    {"-Xlinker --build-id=sha1", BUILD_ID},
    {"-Xlinker -rpath -Xlinker --build-id-not", BUILD_ID},
    {"-flto", LTO},
    {"-flto=thin", LTO},
    {"-flto -fno-lto", 0},
    {"-fsanitize=undefined", 0},
    {"-fsanitize=undefined,address", SANITIZER},
    {"-fsanitize=address -fno-sanitize=address", 0},
    {"-fsanitize=thread -fno-sanitize=all", 0},
    {"-fsanitize=address-something", 0},
    {"-fno-sanitize=memory -fsanitize=memory", SANITIZER},
    {"-D -fmemory-profile -I -m32 -o -static", 0},
};

static void test_what_is_said(void **state)
{
    for (size_t i = 0; i < sizeof fact_cases / sizeof *fact_cases; i++) {
        struct hw_cc_arguments a = read_line(fact_cases[i].line);
        int facts = (a.asks ? ASKS : 0) | (a.fixed_static ? STATIC : 0) | (a.other_machine ? MACHINE : 0) |
                    (a.offload ? OFFLOAD : 0) | (a.memory_profile ? MEMORY_PROFILE : 0) | (a.debug ? DEBUG : 0) |
                    (a.build_id ? BUILD_ID : 0) | (a.link_time_code ? LTO : 0) | (a.sanitizers ? SANITIZER : 0);
        if (facts != fact_cases[i].facts)
            fail_msg("'%s': %x instead of %x", fact_cases[i].line, (unsigned)facts, (unsigned)fact_cases[i].facts);
    }
}

static void test_options_with_values(void **state)
{
    static const char *const with[] = {"-o",        "-x",       "-I",      "-MF",        "-Xlinker",
                                       "--param",   "-include", "-target", "-framework", "-z",
                                       "--sysroot", "-isystem", "-u",      "-T",         "-dumpdir"};
    static const char *const without[] = {"-c", "-MD", "-O2", "-Wall", "--", "-", "-fPIC", "-oX", "-Idir", "-pthread"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        assert_true(hw_cc_takes_value(with[i]));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_false(hw_cc_takes_value(without[i]));
}

static void test_end_of_options(void **state)
{
    assert_int_equal(read_line("-c x.c").options_end, 2);
    assert_int_equal(read_line("-c -- x.c").options_end, 1);
    assert_int_equal(read_line("-o -- x.c").options_end, 3);
    assert_int_equal(read_line("-o").options_end, 1);
}

/* ---- response files ---- */

static void test_response_files(void **state)
{
    make_file("one", "-c 'a file.c'\n\t\"b\\\"b.c\" -DX=\\\"y\\\" @two\n");
    make_file("two", "-fsanitize=address -o out.c");
    struct hw_cc_arguments arguments = read_line("@one c.c");
    assert_int_equal(arguments.stage, HW_CC_STAGE_COMPILE);
    assert_int_equal(arguments.sources, 3);
    assert_true(arguments.sanitizers);
    assert_int_equal(arguments.options_end, 2);
    assert_false(arguments.unsure_end);

    make_file("value", "x.c"); /* the value of an option may come from a file, too */
    arguments = read_line("-o @value y.o");
    assert_int_equal(arguments.sources, 0);
    assert_int_equal(arguments.link_inputs, 1);

    make_file("end", "-c -- x.c");
    assert_true(read_line("@end").unsure_end);
    make_file("empty", "");
    assert_int_equal(read_line("@empty -c x.c").sources, 1);
    make_file("unclosed", "-c 'x.c");
    assert_int_equal(read_line("@unclosed").sources, 1);
    assert_int_equal(read_line("@absent").link_inputs, 1); /* a file of that name */
}

static void test_response_files_in_a_circle(void **state)
{
    struct hw_cc_arguments arguments;
    struct hw_error error = {""};
    make_file("circle", "-c @circle");
    assert_false(hw_cc_arguments_read(&arguments, split("@circle"), &error));
    assert_non_null(strstr(error.message, "@circle"));
}

/* ---- commands ---- */

static struct hw_cc_request make_request(const char *line)
{
    struct hw_cc_request request = {.options.granule = 64,
                                    .rest = split(line),
                                    .compiler = {.kind = HW_CC_CLANG, .version = 22, .path = "clang", .plugin = "P"}};
    struct hw_error error;
    assert_true(hw_cc_arguments_read(&request.arguments, request.rest, &error));
    return request;
}

static const char *make_command(const struct hw_cc_request *request)
{
    static char line[8192];
    struct hw_cc_command command;
    struct hw_error error;
    if (!hw_cc_command_make(&command, request, "/lib/hw/libheapwise.so", &error))
        fail_msg("%s", error.message);
    line[0] = '\0';
    for (size_t i = 0; i < command.count; i++) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s", i ? " " : "", command.words[i]);
    }
    hw_cc_command_free(&command);
    return line;
}

#define LINK   "-Wl,--push-state,--no-as-needed /lib/hw/libheapwise.so -Wl,--pop-state -Xlinker -rpath -Xlinker /lib/hw"
#define FRAMES "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls"
#define PASS                                                                                                           \
    "--start-no-unused-arguments -fplugin=P -fpass-plugin=P -Xclang -mllvm -Xclang -heapwise-granule=64 -Xclang "      \
    "-fsanitize=alloc-token " FRAMES
#define PASS_LINES PASS " -gline-tables-only --end-no-unused-arguments"

static const struct {
    const char *line, *command;
} command_cases[] = {
    {"", "clang"},
    {"-v", "clang -v"},
    {"--version x.c", "clang --version x.c"},
    {"-E x.c", "clang -E x.c"},
    {"-M x.c", "clang -M x.c"},
    {"-c x.c", "clang -c x.c " PASS_LINES},
    {"-c x.c -g", "clang -c x.c -g " PASS " --end-no-unused-arguments"},
    {"-c x.c -g0", "clang -c x.c -g0 " PASS " --end-no-unused-arguments"},
    {"-fsyntax-only x.c", "clang -fsyntax-only x.c " PASS_LINES},
    {"-c x.s", "clang -c x.s"},
    {"x.h", "clang x.h " PASS_LINES},
    {"-c -- x.c", "clang -c " PASS_LINES " -- x.c"},
    {"x.c -o x", "clang " LINK " -Wl,--build-id x.c -o x " PASS_LINES},
    {"x.o -o x", "clang " LINK " -Wl,--build-id x.o -o x"},
    {"x.s -o x", "clang " LINK " -Wl,--build-id x.s -o x"},
    {"x.o -Wl,--build-id=none", "clang " LINK " x.o -Wl,--build-id=none"},
    {"-shared x.o", "clang " LINK " -Wl,--build-id -shared x.o"},
    {"-nostdlib x.o", "clang " LINK " -Wl,--build-id -nostdlib x.o"},
    {"-r x.o", "clang -r x.o"},
    {"-r x.c", "clang -r x.c " PASS_LINES},
    {"-print-file-name=libc.so", "clang -print-file-name=libc.so"},
};

static void test_commands_for_clang(void **state)
{
    for (size_t i = 0; i < sizeof command_cases / sizeof *command_cases; i++) {
        struct hw_cc_request request = make_request(command_cases[i].line);
        assert_string_equal(make_command(&request), command_cases[i].command);
    }
}

static void test_options_of_the_pass(void **state)
{
    struct hw_cc_request request = make_request("-c x.c");
    request.options = (struct hw_cc_options){.granule = 8, .no_consolidate = true, .ignore_list = "list"};
    const char *command = make_command(&request);
    assert_non_null(strstr(command, " -Xclang -mllvm -Xclang -heapwise-granule=8 "));
    assert_non_null(strstr(command, " -Xclang -mllvm -Xclang -heapwise-no-consolidate "));
    assert_non_null(strstr(command, " -Xclang -mllvm -Xclang -heapwise-ignore-list=list "));

    static const char *const outputs[][2] = {
        {"name.%p", "-heapwise-output=name.%p "},
        {"absent/", "-heapwise-output=absent/%e.%p.hwprof "},
        {".", "-heapwise-output=./%e.%p.hwprof "},
        {"/", "-heapwise-output=/%e.%p.hwprof "},
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        request.options.output = outputs[i][0];
        if (!strstr(make_command(&request), outputs[i][1]))
            fail_msg("%s is not in %s", outputs[i][1], make_command(&request));
    }

    request.compiler.version = 19;
    assert_null(strstr(make_command(&request), "alloc-token"));
    request.compiler.must_be_told = true;
    assert_non_null(strstr(make_command(&request), "clang --driver-mode=g++ "));
}

static void test_end_of_options_in_a_response_file(void **state)
{
    make_file("end", "-c -- x.c");
    struct hw_cc_request request = make_request("@end");
    assert_string_equal(make_command(&request), "clang " PASS_LINES " @end");
}

/* ---- what is refused ---- */

static const struct {
    const char *line, *why; /* why: NULL, it is not */
} refusal_cases[] = {
    {"-c x.c", NULL},
    {"-static x.c", "static"},
    {"-static-pie x.o", "static"},
    {"-static -c x.c", NULL},
    {"-static -E x.c", NULL},
    {"-static -r x.o", NULL},
    {"-static", NULL},
    {"-static --version", NULL},
    {"-fsanitize=address -c x.c", "-fsanitize=address"},
    {"-fsanitize=thread x.o", "-fsanitize=thread"},
    {"-fsanitize=undefined x.c", NULL},
    {"-fmemory-profile x.c", "-fmemory-profile"},
    {"-m32 -c x.c", "-m32"},
    {"-m32 -E x.c", NULL},
    {"--target=riscv64-linux-gnu -c x.c", "--target"},
    {"-c x.cu", "CUDA"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < sizeof refusal_cases / sizeof *refusal_cases; i++) {
        struct hw_cc_request request = make_request(refusal_cases[i].line);
        struct hw_error error = {""};
        bool refused = !hw_cc_acceptable(&request, &error);
        if (refused != (refusal_cases[i].why != NULL) || (refused && !strstr(error.message, refusal_cases[i].why)))
            fail_msg("'%s': '%s'", refusal_cases[i].line, error.message);
    }
}

static void test_what_gcc_cannot(void **state)
{
    struct hw_error error = {""};
    struct hw_cc_request request = make_request("-c x.c");
    request.compiler.kind = HW_CC_GCC;
    assert_true(hw_cc_acceptable(&request, &error));
    request.options.no_consolidate = true;
    assert_false(hw_cc_acceptable(&request, &error));
    request.options.no_consolidate = false;
    request.options.ignore_list = "list";
    assert_false(hw_cc_acceptable(&request, &error));
}

TEST_LIST(cmocka_unit_test(test_stages_and_inputs), cmocka_unit_test(test_what_is_said),
          cmocka_unit_test(test_options_with_values), cmocka_unit_test(test_end_of_options),
          cmocka_unit_test_setup_teardown(test_response_files, enter_folder, leave_folder),
          cmocka_unit_test_setup_teardown(test_response_files_in_a_circle, enter_folder, leave_folder),
          cmocka_unit_test(test_commands_for_clang),
          cmocka_unit_test_setup_teardown(test_options_of_the_pass, enter_folder, leave_folder),
          cmocka_unit_test_setup_teardown(test_end_of_options_in_a_response_file, enter_folder, leave_folder),
          cmocka_unit_test(test_refusals), cmocka_unit_test(test_what_gcc_cannot))
