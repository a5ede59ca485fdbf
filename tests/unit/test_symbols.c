/* test_symbols.c - addresses to names, in many skins, against addr2line as the independent judge.
 *
 * Programs are compiled here, so that the skins (compiler, optimisation, DWARF version, where the debug information
 * lies) are part of the test. What a machine lacks (clang, dwz, xz, debuginfod) is skipped. */
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/check.h"
#include "support/recording.h"
#include "symbols/symbols.h"
#include "symbols/symbols_internal.h"

/* ---- the program under study ---- */

static const char shapes_source[] =
    "#include <algorithm>\n"
    "#include <vector>\n"
    "extern \"C\" int rand(void);\n"
    "namespace shapes {\n"
    "struct point { int x, y; point(int a) : x(a), y(rand()) {} ~point() { volatile int z = x; (void)z; } };\n"
    "template <typename T, int N> struct ring {\n"
    "    std::vector<T> items;\n"
    "    ring() { items.reserve(N); }\n"
    "    void push(T value) {\n"
    "        if (items.size() < N) items.push_back(value);\n"
    "        else items[rand() % N] = value;\n"
    "    }\n"
    "    T &last() { return items.back(); }\n"
    "};\n"
    "namespace { int hidden(int n) { return n * 3 + rand(); } }\n"
    "static inline int middle(int n) {\n"
    "    auto twice = [n](int k) { return hidden(k) * n; };\n"
    "    return twice(n) + twice(n + 1);\n"
    "}\n"
    "struct base { virtual int area(int) = 0; virtual ~base() {} };\n"
    "struct square : base { int side = 3; int area(int n) override { return middle(n) * side; } };\n"
    "}\n"
    "static __attribute__((noinline)) int local_class(int n) {\n"
    "    struct local { int m; __attribute__((noinline)) int run(int k) { m += rand() % k; return m; } };\n"
    "    local l{n};\n"
    "    return l.run(n) + l.run(n + 2);\n"
    "}\n"
    "__attribute__((noinline)) int unused(int n) { return n + rand(); }\n"
    "extern \"C\" __attribute__((noinline)) int plain(int n) {\n"
    "    shapes::ring<shapes::point, 8> r;\n"
    "    for (int i = 0; i < n; i++) r.push(shapes::point(i));\n"
    "    return r.last().y;\n"
    "}\n"
    "int main(int argc, char **argv) {\n"
    "    shapes::base *b = new shapes::square;\n"
    "    int total = 0;\n"
    "    for (int i = 1; i < argc + 5; i++) total += b->area(i) + local_class(i) + plain(i + 10);\n"
    "    std::vector<int> v(10, total);\n"
    "    std::sort(v.begin(), v.end(), [](int a, int c) { return a > c; });\n"
    "    delete b;\n"
    "    return v[0] == 42;\n"
    "}\n";

enum { SHAPES_LINES = 45, MOST_ADDRESSES = 6000, MOST_FRAMES = 64 };

static char *place; /* of everything that is made here */

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* Runs a shell command in the place; returns whether it succeeded. */
__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
    char command[4096], *line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    assert_true(asprintf(&line, "cd '%s' && { %s; } >shell.log 2>&1", place, command) > 0);
    bool ok = system(line) == 0;
    free(line);
    return ok;
}

static FILE *output_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static FILE *output_of(const char *format, ...)
{
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    return stream;
}

static const char *in_place(const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", place, name);
    return path;
}

static int make_place(void **state)
{
    unsetenv("DEBUGINFOD_URLS");
    place = make_directory();
    write_file(in_place("shapes.cc"), shapes_source, sizeof shapes_source - 1);
    return 0;
}

/* shapes, g++ -O2 -g, built once. */
static const char *shapes_program(void)
{
    if (access(in_place("shapes"), X_OK) != 0)
        assert_true(shell("g++ -g -O2 shapes.cc -o shapes"));
    return in_place("shapes");
}

/* ---- addresses and the judge's answers ---- */

struct addresses {
    uint64_t address[MOST_ADDRESSES];
    size_t count;
};

/* Every third byte of the program's own functions (the start-up code's have no debug information). */
static struct addresses addresses_of(const char *program)
{
    struct addresses found = {.count = 0};
    FILE *stream = output_of("nm -n -S --defined-only '%s'", program);
    char line[4096], type, name[2048];
    uint64_t start, size, last_start = 0;
    while (fgets(line, sizeof line, stream)) {
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %2047s", &start, &size, &type, name) != 4 || !strchr("tTwW", type))
            continue;
        if ((name[0] == '_' && name[1] != 'Z') || start == last_start)
            continue;
        last_start = start;
        for (uint64_t i = 0; i < size && found.count < MOST_ADDRESSES; i += 3)
            found.address[found.count++] = start + i;
    }
    pclose(stream);
    assert_true(found.count > 100);
    return found;
}

struct judged_frame {
    char function[2048], file[512];
    unsigned line;
};

/* Reads addr2line -aifC's output for one address; the stream stands behind the line with the address. */
static size_t read_judged(FILE *stream, struct judged_frame frame[MOST_FRAMES])
{
    static char line[4096];
    size_t count = 0;
    for (;;) {
        long before = ftell(stream);
        if (!fgets(line, sizeof line, stream))
            return count;
        if (strncmp(line, "0x0", 3) == 0) {
            fseek(stream, before, SEEK_SET);
            return count;
        }
        assert_true(count < MOST_FRAMES);
        line[strcspn(line, "\n")] = '\0';
        snprintf(frame[count].function, sizeof frame[count].function, "%.2047s", line);
        assert_non_null(fgets(line, sizeof line, stream));
        char *colon = strrchr(line, ':');
        assert_non_null(colon);
        *colon = '\0';
        snprintf(frame[count].file, sizeof frame[count].file, "%.511s", line);
        frame[count++].line = (unsigned)strtoul(colon + 1, NULL, 10);
    }
}

/* The judge's output, as a file that can be read again. */
static FILE *ask_judge(const char *program, const struct addresses *addresses)
{
    FILE *list = fopen(in_place("addresses"), "w");
    for (size_t i = 0; i < addresses->count; i++)
        fprintf(list, "%" PRIx64 "\n", addresses->address[i]);
    fclose(list);
    assert_true(shell("addr2line -aifC -e '%s' <addresses >answers", program));
    FILE *answers = fopen(in_place("answers"), "r");
    assert_non_null(answers);
    return answers;
}

/* The plain name in "void a::b<c>(d)": debug information without linkage names has less than the symbol table. */
static void plain_name(const char *function, char plain[256])
{
    char text[2048];
    snprintf(text, sizeof text, "%.2047s", function);
    for (char *anonymous; (anonymous = strstr(text, "(anonymous namespace)"));)
        memset(anonymous, '_', 21);
    const char *call = strstr(text, "operator");
    text[call && !isalnum((unsigned char)call[8]) && call[8] != '_' ? (size_t)(call - text) + 8 : strcspn(text, "<(")] =
        '\0';
    const char *start = text;
    for (const char *c = text; *c; c++)
        if ((*c == ':' || *c == ' ') && strncmp(c, " const", 6) != 0)
            start = c + 1;
    snprintf(plain, 256, "%.255s", start);
}

static bool names_agree(const char *ours, const char *judged)
{
    char a[256], b[256];
    if (!ours)
        return strcmp(judged, "??") == 0;
    plain_name(ours, a);
    plain_name(judged, b);
    b[strcspn(b, ".")] = '\0'; /* foo.constprop.0 */
    a[strcspn(a, ".")] = '\0';
    return strcmp(a, b) == 0;
}

static bool files_agree(const struct hw_frame *ours, const struct judged_frame *judged)
{
    char a[PATH_MAX], b[PATH_MAX];
    if (!ours->file)
        return strcmp(judged->file, "??") == 0;
    if (strstr(judged->file, "shapes.cc") && judged->line > SHAPES_LINES)
        return true; /* binutils mistakes file numbers of DWARF 5 now and then */
    if (strstr(judged->file, "<artificial>"))
        return true;
    return strcmp(realpath(ours->file, a) ? a : ours->file, realpath(judged->file, b) ? b : judged->file) == 0;
}

static bool chains_agree(struct hw_frames ours, const struct judged_frame *judged, size_t count)
{
    if (ours.count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        /* binutils gives an inlined function without a linkage name the name of the symbol around it */
        bool symbol_around = i == 0 && count > 1 && strcmp(judged[0].function, judged[count - 1].function) == 0;
        if (!(symbol_around || names_agree(ours.frame[i].function, judged[i].function)) ||
            ours.frame[i].line != judged[i].line || !files_agree(&ours.frame[i], &judged[i]) ||
            ours.frame[i].inlined != (i + 1 < count))
            return false;
    }
    return true;
}

static void print_chains(uint64_t address, struct hw_frames ours, const struct judged_frame *judged, size_t count)
{
    print_message("0x%" PRIx64 "\n", address);
    for (uint32_t i = 0; i < ours.count; i++)
        print_message("  ours   %s %s:%u\n", ours.frame[i].function, ours.frame[i].file, ours.frame[i].line);
    for (size_t i = 0; i < count; i++)
        print_message("  judged %s %s:%u\n", judged[i].function, judged[i].file, judged[i].line);
}

/* ---- running the symbolizer ---- */

struct session {
    struct hw_symbolizer *symbolizer;
    int module;
    long ticket[MOST_ADDRESSES];
};

static struct session symbolize(const char *path, const uint8_t *build_id, size_t build_id_size,
                                const struct hw_symbolizer_options *options, const struct addresses *addresses)
{
    struct session session;
    struct hw_error error = {""};
    session.symbolizer = hw_symbolizer_new(options, &error);
    assert_non_null(session.symbolizer);
    session.module = hw_symbolizer_add_module(session.symbolizer, path, build_id, build_id_size);
    assert_int_equal(session.module, 0);
    for (size_t i = 0; i < addresses->count; i++) {
        session.ticket[i] = hw_symbolizer_add(session.symbolizer, session.module, addresses->address[i]);
        assert_true(session.ticket[i] >= 0);
    }
    if (!hw_symbolizer_run(session.symbolizer, &error))
        fail_msg("%s", error.message);
    return session;
}

static const char *problem_of(const struct session *session)
{
    const char *problem = hw_symbolizer_module_problem(session->symbolizer, session->module);
    return problem ? problem : "";
}

/* Compares FILE's names with the judge's for PROGRAM, which has the same code. */
static void compare(const char *what, const char *file, const char *program,
                    const struct hw_symbolizer_options *options)
{
    static struct addresses addresses;
    static struct judged_frame judged[MOST_FRAMES];
    addresses = addresses_of(program);
    FILE *answers = ask_judge(program, &addresses);
    struct session session = symbolize(file, NULL, 0, options, &addresses);
    size_t agreed = 0, inlined = 0, shown = 0;
    for (size_t i = 0; i < addresses.count; i++) {
        char line[64];
        assert_non_null(fgets(line, sizeof line, answers));
        assert_int_equal(strtoull(line, NULL, 16), addresses.address[i]);
        size_t count = read_judged(answers, judged);
        struct hw_frames ours = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        inlined += ours.count > 1;
        if (chains_agree(ours, judged, count))
            agreed++;
        else if (shown++ < 3)
            print_chains(addresses.address[i], ours, judged, count);
    }
    fclose(answers);
    print_message("%s: %zu of %zu agree, %zu inlined\n", what, agreed, addresses.count, inlined);
    assert_string_equal(problem_of(&session), "");
    assert_true(hw_symbolizer_module_has_debug_info(session.symbolizer, session.module));
    hw_symbolizer_free(session.symbolizer);
    assert_true(agreed * 1000 >= addresses.count * 998);
}

/* ---- skins ---- */

struct skin {
    const char *name;
    const char *build; /* makes the file `skin` and the file `judged` from shapes.cc */
    const char *needs; /* a command, or NULL */
};

static const struct skin skins[] = {
    {"g++ -O0", "g++ -g -O0 shapes.cc -o skin && cp skin judged", NULL},
    {"g++ -O2 PIE DWARF 5", "g++ -gdwarf-5 -O2 -pie -fPIE shapes.cc -o skin && cp skin judged", NULL},
    {"g++ -O2 fixed address DWARF 4", "g++ -gdwarf-4 -O2 -no-pie shapes.cc -o skin && cp skin judged", NULL},
    {"g++ -Og, lines only", "g++ -g1 -Og shapes.cc -o skin && cp skin judged", NULL},
    {"g++ compressed sections", "g++ -g -gz=zlib -O2 shapes.cc -o skin && cp skin judged", NULL},
    {"g++ link-time optimisation", "g++ -g -O2 -flto shapes.cc -o skin && cp skin judged", NULL},
    {"g++ without dead functions",
     "g++ -g -O2 -ffunction-sections -Wl,--gc-sections shapes.cc -o skin && cp skin judged", NULL},
    /* binutils reads neither type units, split DWARF nor shared parts well: the judge gets the same code in plain DWARF
     */
    {"g++ type units", "g++ -g -O2 shapes.cc -o judged && g++ -g -O2 -fdebug-types-section shapes.cc -o skin", NULL},
    {"g++ split DWARF 5",
     "g++ -g -O2 shapes.cc -o judged && g++ -g -O2 -gsplit-dwarf -c shapes.cc -o skin.o && g++ skin.o -o skin", NULL},
    {"g++ split DWARF 4",
     "g++ -g -O2 shapes.cc -o judged && g++ -gdwarf-4 -O2 -gsplit-dwarf -c shapes.cc -o skin.o && g++ skin.o -o skin",
     NULL},
    {"dwz, shared file",
     "g++ -gdwarf-4 -O2 shapes.cc -o judged && cp judged skin && cp judged twin && dwz -m shared.dwz -r skin twin && "
     "readelf -S skin | grep -q gnu_debugaltlink",
     "dwz"},
    {"clang -O0", "clang++ -g -O0 shapes.cc -o skin && cp skin judged", "clang++"},
    {"clang -O2 DWARF 4", "clang++ -gdwarf-4 -O2 shapes.cc -o skin && cp skin judged", "clang++"},
    /* binutils 2.40 does not find clang's inlined calls in DWARF 5 */
    {"clang -O2 DWARF 5", "clang++ -gdwarf-4 -O2 shapes.cc -o judged && clang++ -gdwarf-5 -O2 shapes.cc -o skin",
     "clang++"},
    {"clang split DWARF 5",
     "clang++ -gdwarf-4 -O2 shapes.cc -o judged && clang++ -gdwarf-5 -O2 -gsplit-dwarf -c shapes.cc -o skin.o && "
     "clang++ skin.o -o skin",
     "clang++"},
    {"stripped, .gnu_debuglink beside it",
     "g++ -g -O2 -Wl,--build-id=none shapes.cc -o judged && cp judged skin && objcopy --only-keep-debug skin skin.debug && "
     "strip skin && objcopy --add-gnu-debuglink=skin.debug skin",
     NULL},
    {"stripped, .gnu_debuglink into .debug",
     "rm -f skin.debug && g++ -g -O2 shapes.cc -o judged && cp judged skin && mkdir -p .debug && "
     "objcopy --only-keep-debug skin .debug/skin.debug && strip skin && "
     "objcopy --add-gnu-debuglink=.debug/skin.debug skin",
     NULL},
};

static void every_skin_agrees_with_addr2line(void **state)
{
    for (size_t i = 0; i < sizeof skins / sizeof *skins; i++) {
        if (skins[i].needs && !have_command(skins[i].needs)) {
            print_message("%s: skipped, no %s here\n", skins[i].name, skins[i].needs);
            continue;
        }
        if (!shell("%s", skins[i].build))
            fail_msg("%s: cannot build", skins[i].name);
        compare(skins[i].name, in_place("skin"), in_place("judged"), NULL);
    }
}

/* gcc gives functions of anonymous namespaces no linkage name. */
static void names_without_linkage_names_are_qualified(void **state)
{
    static struct addresses addresses;
    addresses = addresses_of(shapes_program());
    struct session session = symbolize(shapes_program(), NULL, 0, NULL, &addresses);
    bool hidden = false, lambda = false;
    for (size_t i = 0; i < addresses.count; i++) {
        struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        for (uint32_t j = 0; j < frames.count; j++) {
            const char *name = frames.frame[j].function;
            hidden |= strcmp(name, "shapes::(anonymous namespace)::hidden") == 0;
            lambda |= strcmp(name, "shapes::middle::{lambda}::operator()") == 0;
            assert_string_not_equal(name, "hidden");
        }
    }
    assert_true(hidden && lambda);
    hw_symbolizer_free(session.symbolizer);
}

static void thread_counts_change_nothing(void **state)
{
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct hw_symbolizer_options options = {.threads = threads};
        compare("threads", shapes_program(), shapes_program(), &options);
    }
}

/* ---- separate files by build id ---- */

static size_t read_build_id(const char *program, char hex[64], uint8_t build_id[32])
{
    FILE *stream = output_of("readelf -n '%s' | sed -n 's/ *Build ID: //p'", program);
    assert_non_null(fgets(hex, 64, stream));
    pclose(stream);
    hex[strcspn(hex, "\n")] = '\0';
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &build_id[i]), 1);
    return size;
}

/* Puts the debug information of shapes where PATTERN (of the build id's first byte and its rest) says. */
static void separate_debug(const char *pattern)
{
    char hex[64], target[PATH_MAX];
    uint8_t build_id[32];
    read_build_id(shapes_program(), hex, build_id);
    snprintf(target, sizeof target, "%s/%.2s/%s.debug", pattern, hex, hex + 2);
    assert_true(shell("mkdir -p root/bin \"$(dirname %s)\" && objcopy --only-keep-debug shapes %s && "
                      "cp shapes root/bin/shapes && strip root/bin/shapes",
                      target, target));
}

static void build_id_directory_below_sysroot(void **state)
{
    separate_debug("root/usr/lib/debug/.build-id");
    struct hw_symbolizer_options options = {.sysroot = in_place("root")};
    compare("build id directory", "/bin/shapes", shapes_program(), &options);
}

static void debug_file_serves_when_the_program_is_gone(void **state)
{
    static struct addresses addresses;
    char hex[64];
    uint8_t build_id[32];
    separate_debug("root/usr/lib/debug/.build-id");
    size_t size = read_build_id(shapes_program(), hex, build_id);
    addresses = addresses_of(shapes_program());
    struct hw_symbolizer_options options = {.sysroot = in_place("root")};
    struct session session = symbolize("/bin/gone", build_id, size, &options, &addresses);
    assert_string_equal(problem_of(&session),
                        "/bin/gone: cannot open: No such file or directory; names from its separate "
                        "debug file");
    assert_true(hw_symbolizer_module_has_debug_info(session.symbolizer, session.module));
    assert_non_null(hw_symbolizer_frames(session.symbolizer, session.ticket[0]).frame->function);
    hw_symbolizer_free(session.symbolizer);
}

static void debuginfod_only_when_asked_for(void **state)
{
    static struct addresses addresses;
    char hex[64], urls[PATH_MAX];
    uint8_t build_id[32];
    void *library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
    if (!library)
        SKIP("no libdebuginfod here");
    dlclose(library);
    addresses = addresses_of(shapes_program());
    read_build_id(shapes_program(), hex, build_id);
    assert_true(shell("mkdir -p server/buildid/%s && objcopy --only-keep-debug shapes server/buildid/%s/debuginfo && "
                      "cp shapes bare && strip bare",
                      hex, hex));
    setenv("DEBUGINFOD_CACHE_PATH", in_place("cache"), 1);
    snprintf(urls, sizeof urls, "file://%s/server", place);
    for (int mode = 0; mode < 3; mode++) { /* variable not set; set but declined; set */
        struct hw_symbolizer_options options = {.no_debuginfod = mode == 1};
        if (mode > 0)
            setenv("DEBUGINFOD_URLS", urls, 1);
        struct session session = symbolize(in_place("bare"), NULL, 0, &options, &addresses);
        assert_int_equal(hw_symbolizer_module_has_debug_info(session.symbolizer, session.module), mode == 2);
        assert_int_equal(access(in_place("cache"), F_OK) == 0, mode == 2);
        if (mode > 0)
            assert_string_equal(getenv("DEBUGINFOD_URLS"), urls);
        hw_symbolizer_free(session.symbolizer);
    }
    unsetenv("DEBUGINFOD_URLS");
}

/* ---- without debug information ---- */

/* The name at ADDRESS of FILE, checked against the one expected. */
static void expect_name(const char *file, uint64_t address, const char *function, const char *linkage_name)
{
    static struct addresses one;
    one = (struct addresses){.address = {address}, .count = 1};
    struct session session = symbolize(file, NULL, 0, NULL, &one);
    struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[0]);
    assert_int_equal(frames.count, 1);
    if (function)
        assert_string_equal(frames.frame->function ? frames.frame->function : "(nothing)", function);
    else
        assert_null(frames.frame->function);
    if (linkage_name)
        assert_string_equal(frames.frame->linkage_name, linkage_name);
    hw_symbolizer_free(session.symbolizer);
}

static uint64_t symbol_address(const char *program, const char *pattern)
{
    FILE *stream = output_of("nm '%s' | grep -E '%s'", program, pattern);
    uint64_t address = 0;
    assert_int_equal(fscanf(stream, "%" SCNx64, &address), 1);
    pclose(stream);
    return address;
}

static void symbol_table_serves_without_debug_information(void **state)
{
    static struct addresses addresses;
    assert_true(shell("g++ -O2 shapes.cc -o nodebug && cp nodebug bare2 && strip bare2"));
    addresses = addresses_of(in_place("nodebug"));
    struct session session = symbolize(in_place("nodebug"), NULL, 0, NULL, &addresses);
    assert_non_null(strstr(problem_of(&session), "nodebug: no debug information, names from the symbol table"));
    assert_false(hw_symbolizer_module_has_debug_info(session.symbolizer, session.module));
    for (size_t i = 0; i < addresses.count; i++)
        assert_non_null(hw_symbolizer_frames(session.symbolizer, session.ticket[i]).frame->function);
    hw_symbolizer_free(session.symbolizer);

    uint64_t address = symbol_address(in_place("nodebug"), " square4areaEi| _ZN6shapes6square4areaEi");
    expect_name(in_place("nodebug"), address + 1, "shapes::square::area(int)", "_ZN6shapes6square4areaEi");
    expect_name(in_place("bare2"), address + 1, NULL, NULL);
    session = symbolize(in_place("bare2"), NULL, 0, NULL, &addresses);
    assert_non_null(strstr(problem_of(&session), "no debug information"));
    hw_symbolizer_free(session.symbolizer);
}

static void odd_symbols(void **state)
{
    static const char source[] = "__asm__(\".text\\n.globl hand_written\\nhand_written:\\nnop\\nnop\\nnop\\n\"\n"
                                 "        \"inner_label:\\nnop\\nret\\n.skip 16\\n\");\n"
                                 "int old_one(int n) { return n * 3; }\n"
                                 "__asm__(\".symver old_one, versioned@@V1\");\n"
                                 "static int nobody(int n) { return n * 5; }\n"
                                 "int __alias(int n) { return nobody(n) + 1; }\n"
                                 "int readable(int n) __attribute__((alias(\"__alias\")));\n"
                                 "extern __attribute__((weak, alias(\"__alias\"))) int abler(int n);\n";
    write_file(in_place("odd.c"), source, sizeof source - 1);
    write_file(in_place("odd.map"), "V1 { global: versioned; hand_written; readable; abler; __alias; local: *; };\n",
               77);
    assert_true(shell("gcc -O1 -shared -fPIC -Wl,--version-script=odd.map odd.c -o libodd.so"));
    const char *library = in_place("libodd.so");
    expect_name(library, symbol_address(library, " hand_written") + 2, "hand_written", "hand_written");
    expect_name(library, symbol_address(library, " versioned@@V1") + 1, "versioned", "versioned");
    expect_name(library, symbol_address(library, " __alias") + 1, "readable", "readable");
    expect_name(library, 0x10, NULL, NULL);
    expect_name(library, UINT64_MAX, NULL, NULL);
}

static void plt_entries_are_named(void **state)
{
    char line[512], name[256];
    uint64_t address;
    size_t seen = 0;
    assert_true(
        shell("g++ -O2 shapes.cc -o plain_plt && g++ -O2 -fcf-protection=full -Wl,-z,ibtplt shapes.cc -o ibt_plt"));
    for (int i = 0; i < 2; i++) {
        const char *program = in_place(i ? "ibt_plt" : "plain_plt");
        FILE *stream = output_of("objdump -d -j %s '%s'", i ? ".plt.sec" : ".plt", program);
        while (fgets(line, sizeof line, stream)) {
            if (sscanf(line, "%" SCNx64 " <%255[^>]>:", &address, name) != 2 || strlen(name) < 4 ||
                strcmp(name + strlen(name) - 4, "@plt") != 0)
                continue;
            static struct addresses one;
            one = (struct addresses){.address = {address + 4}, .count = 1};
            struct session session = symbolize(program, NULL, 0, NULL, &one);
            const char *ours = hw_symbolizer_frames(session.symbolizer, session.ticket[0]).frame->linkage_name;
            assert_string_equal(ours ? ours : "(nothing)", name);
            hw_symbolizer_free(session.symbolizer);
            seen++;
        }
        pclose(stream);
    }
    assert_true(seen >= 4);
}

static void packed_symbol_table_is_read(void **state)
{
    if (!have_command("xz"))
        SKIP("no xz here");
    assert_true(
        shell("g++ -O2 shapes.cc -o mini && objcopy --only-keep-debug mini mini.debug && "
              "objcopy -S --keep-symbol=_ZL11local_classi mini.debug mini.symbols; "
              "nm mini | awk '$2 ~ /[tT]/ {print $3}' >kept && "
              "objcopy -S --keep-symbols=kept mini.debug mini.symbols && xz -f mini.symbols && cp mini mini2 && "
              "strip mini2 && objcopy --add-section .gnu_debugdata=mini.symbols.xz mini2"));
    expect_name(in_place("mini2"), symbol_address(in_place("mini"), " _ZL11local_classi") + 1, "local_class(int)",
                "_ZL11local_classi");
}

static void linkage_names_are_demangled(void **state)
{
    static const struct {
        const char *mangled, *readable;
    } names[] = {
        {"_ZN3foo3barEv", "foo::bar()"},
        {"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)"},
        {"_ZN3foo3barEv.isra.0.cold", "foo::bar()"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
        {"i", NULL},
        {"main", NULL},
        {"_Z", NULL},
        {"_ZN", NULL},
        {"_R", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *readable = hw_demangle(names[i].mangled);
        if (names[i].readable)
            assert_string_equal(readable ? readable : "(nothing)", names[i].readable);
        else
            assert_null(readable);
        free(readable);
    }

    static const char source[] = "int __attribute__((noinline)) f(int n) __asm__(\"_RNvNtCs1234_7mycrate3foo3bar\");\n"
                                 "int f(int n) { return n * 3; }\n"
                                 "int main(int argc, char **argv) { return f(argc); }\n";
    write_file(in_place("crate.c"), source, sizeof source - 1);
    assert_true(shell("gcc -g -O1 crate.c -o crate"));
    expect_name(in_place("crate"), symbol_address(in_place("crate"), "_RNv"), "mycrate::foo::bar",
                "_RNvNtCs1234_7mycrate3foo3bar");
    expect_name(in_place("crate"), symbol_address(in_place("crate"), " main$"), "main", "main");
}

static void libraries_of_this_machine(void **state)
{
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, "getaddrinfo");
    assert_non_null(function);
    assert_int_not_equal(dladdr(function, &info), 0);
    if (strstr(info.dli_fname, "libc.so"))
        expect_name(info.dli_fname, (uintptr_t)function - (uintptr_t)info.dli_fbase + 1, "getaddrinfo", NULL);

    static struct addresses addresses;
    for (addresses.count = 0; addresses.count < 512; addresses.count++)
        addresses.address[addresses.count] = addresses.count * 16;
    struct session session = symbolize("[vdso]", NULL, 0, NULL, &addresses);
    bool found = false;
    for (size_t i = 0; i < addresses.count; i++) {
        const char *name = hw_symbolizer_frames(session.symbolizer, session.ticket[i]).frame->function;
        found |= name && strstr(name, "clock_gettime");
    }
    if (!strstr(problem_of(&session), "no vDSO"))
        assert_true(found);
    hw_symbolizer_free(session.symbolizer);
}

static void no_handler(int number)
{
}

/* The code behind a signal handler has no name in libc; the kernel knows where it is. */
static void signal_frames_are_named(void **state)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } known = {0};
    Dl_info info;
    struct sigaction action = {.sa_handler = no_handler}, before;
    assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &known, sizeof known.mask), 0);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
    if (!known.restorer || !dladdr(dlsym(RTLD_DEFAULT, "labs"), &info) || !info.dli_fname ||
        info.dli_fbase > known.restorer)
        skip();
    /* A sanitizer may have installed the handler, with a restorer of its own. */
    Dl_info other;
    if (dladdr(known.restorer, &other) && other.dli_fbase != info.dli_fbase)
        skip();
    /* Stacks hold return address - 1, which the unwind information covers for that purpose. */
    expect_name(info.dli_fname, (uint64_t)((char *)known.restorer - (char *)info.dli_fbase) - 1, HW_SIGNAL_FRAME, NULL);
}

/* ---- the object's own promises ---- */

static size_t progress_calls, last_done;

static void note_progress(void *closure, size_t done, size_t total)
{
    assert_ptr_equal(closure, &progress_calls);
    assert_true(done <= total);
    last_done = done;
    progress_calls++;
}

static void tickets_strings_and_second_runs(void **state)
{
    static struct addresses addresses;
    addresses = addresses_of(shapes_program());
    struct hw_symbolizer_options options = {.progress = note_progress, .closure = &progress_calls};
    struct session session = symbolize(shapes_program(), NULL, 0, &options, &addresses);
    struct hw_symbolizer *symbolizer = session.symbolizer;
    assert_true(progress_calls > 0);
    assert_int_equal(last_done, addresses.count);

    assert_int_equal(hw_symbolizer_add(symbolizer, 0, addresses.address[7]), session.ticket[7]);
    assert_int_equal(hw_symbolizer_add(symbolizer, 1, 1), -1);
    assert_int_equal(hw_symbolizer_add(symbolizer, -1, 1), -1);
    const char *first = hw_symbolizer_frames(symbolizer, session.ticket[0]).frame->file;

    int second = hw_symbolizer_add_module(symbolizer, shapes_program(), NULL, 0);
    long later = hw_symbolizer_add(symbolizer, second, addresses.address[0]);
    assert_int_equal(hw_symbolizer_frames(symbolizer, later).count, 1);
    assert_null(hw_symbolizer_frames(symbolizer, later).frame->function);
    assert_true(hw_symbolizer_run(symbolizer, NULL));
    assert_ptr_equal(hw_symbolizer_frames(symbolizer, later).frame->file, first);
    assert_ptr_equal(hw_symbolizer_frames(symbolizer, session.ticket[0]).frame->file, first);
    assert_int_equal(hw_symbolizer_frames(symbolizer, 1L << 40).count, 1);
    assert_int_equal(hw_symbolizer_frames(symbolizer, -1).count, 1);
    assert_true(hw_symbolizer_run(symbolizer, NULL));
    assert_null(hw_symbolizer_module_problem(symbolizer, 5));
    hw_symbolizer_free(symbolizer);
}

/* ---- files that cannot serve ---- */

static void expect_problem(const char *path, const uint8_t *build_id, size_t build_id_size, const char *problem)
{
    static struct addresses addresses;
    addresses = (struct addresses){.address = {0, 1, 0x1234, 0x401234, UINT64_MAX}, .count = 5};
    struct session session = symbolize(path, build_id, build_id_size, NULL, &addresses);
    if (!strstr(problem_of(&session), problem) || strncmp(problem_of(&session), path, strlen(path)) != 0)
        fail_msg("'%s' instead of '%s: %s'", problem_of(&session), path, problem);
    for (size_t i = 0; i < addresses.count; i++) {
        struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        assert_int_equal(frames.count, 1);
        assert_null(frames.frame->function);
    }
    hw_symbolizer_free(session.symbolizer);
}

static void files_that_cannot_serve(void **state)
{
    char hex[64];
    uint8_t build_id[32];
    size_t size = read_build_id(shapes_program(), hex, build_id);
    build_id[size - 1] ^= 1;
    expect_problem(shapes_program(), build_id, size, "the file has changed since the run (another build id)");
    build_id[size - 1] ^= 1;
    expect_problem(shapes_program(), build_id, size - 1, "the file has changed since the run (another build id)");
    assert_true(shell("g++ -O0 -Wl,--build-id=none shapes.cc -o anonymous && g++ -c shapes.cc -o object.o"));
    expect_problem(in_place("anonymous"), build_id, size,
                   "the file has changed since the run (it has no build id now)");
    expect_problem(in_place("object.o"), NULL, 0, "neither a program nor a shared library");
    expect_problem(in_place("missing"), build_id, size, "cannot open: No such file or directory");
    expect_problem("", NULL, 0, "cannot open");
    expect_problem("[heap]", NULL, 0, "cannot open");
    expect_problem(place, NULL, 0, "not a regular file");
    assert_int_equal(mkfifo(in_place("fifo"), 0600), 0);
    expect_problem(in_place("fifo"), NULL, 0, "not a regular file");
    expect_problem("/dev/zero", NULL, 0, "not a regular file");
    expect_problem(in_place("shapes.cc"), NULL, 0, "not an ELF file");
    write_file(in_place("empty"), "", 0);
    expect_problem(in_place("empty"), NULL, 0, "not an ELF file");
    write_file(in_place("four"), "\177ELF", 4);
    expect_problem(in_place("four"), NULL, 0, "not an ELF file");
}

/* ---- damage ---- */

struct image {
    uint8_t *bytes;
    size_t size;
};

static struct image read_image(const char *path)
{
    struct stat status;
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_int_equal(fstat(fileno(stream), &status), 0);
    struct image image = {.bytes = malloc((size_t)status.st_size), .size = (size_t)status.st_size};
    assert_int_equal(fread(image.bytes, 1, image.size, stream), image.size);
    fclose(stream);
    return image;
}

/* Any answer will do, as long as there is one. */
static void survive(const struct image *image, const struct addresses *addresses)
{
    write_file(in_place("damaged"), image->bytes, image->size);
    struct session session = symbolize(in_place("damaged"), NULL, 0, NULL, addresses);
    size_t length = 0;
    for (size_t i = 0; i < addresses->count; i++) {
        struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        assert_true(frames.count >= 1);
        for (uint32_t j = 0; j < frames.count; j++) /* read every string */
            length += strlen(frames.frame[j].function ? frames.frame[j].function : "") +
                      strlen(frames.frame[j].file ? frames.frame[j].file : "");
    }
    assert_true(length < SIZE_MAX / 2);
    hw_symbolizer_free(session.symbolizer);
}

static struct addresses every_tenth_address(const char *program)
{
    static struct addresses all;
    struct addresses some = {.count = 0};
    all = addresses_of(program);
    for (size_t i = 0; i < all.count; i += 10)
        some.address[some.count++] = all.address[i];
    return some;
}

static void truncated_files(void **state)
{
    static struct addresses addresses;
    addresses = every_tenth_address(shapes_program());
    struct image image = read_image(shapes_program());
    size_t full = image.size;
    for (int i = 0; i < 40; i++) {
        image.size = i < 20 ? (size_t)i * 13 : full * (size_t)(i - 20) / 20;
        survive(&image, &addresses);
    }
    image.size = full - 1;
    write_file(in_place("cut"), image.bytes, image.size);
    struct session session = symbolize(in_place("cut"), NULL, 0, NULL, &addresses);
    assert_non_null(strstr(problem_of(&session), "cut: the file is cut short"));
    hw_symbolizer_free(session.symbolizer);
    free(image.bytes);
}

static uint32_t random_number(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

/* Flips bits, a few at a time: anywhere, and in each of the sections that are decoded. */
static void flip_bits(const char *program, unsigned mutations)
{
    static const char *const sections[] = {
        "",           ".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists",
        ".debug_str", ".symtab",     ".dynsym",       ".debug_addr", "header"};
    static struct addresses addresses;
    addresses = every_tenth_address(program);
    struct image image = read_image(program);
    uint8_t *original = malloc(image.size);
    memcpy(original, image.bytes, image.size);
    uint32_t seed = 20240229;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        uint64_t start = 0, size = image.size;
        if (strcmp(sections[i], "header") == 0) {
            size = 1024;
        } else if (*sections[i]) {
            FILE *stream = output_of("readelf -SW '%s' | sed -n 's/^.*\\] \\%s  *[A-Z]* *[0-9a-f]* \\([0-9a-f]* "
                                     "[0-9a-f]*\\).*/\\1/p'",
                                     program, sections[i]);
            bool found = fscanf(stream, "%" SCNx64 " %" SCNx64, &start, &size) == 2 && size > 0;
            pclose(stream);
            if (!found)
                continue;
        }
        for (unsigned j = 0; j < mutations; j++) {
            memcpy(image.bytes, original, image.size);
            for (uint32_t bits = 1 + random_number(&seed) % 16; bits; bits--)
                image.bytes[start + random_number(&seed) % size] ^= (uint8_t)(1u << random_number(&seed) % 8);
            survive(&image, &addresses);
        }
    }
    free(original);
    free(image.bytes);
}

static void flipped_bits(void **state)
{
    const char *mutations = getenv("HEAPWISE_TEST_MUTATIONS"); /* for each kind */
    unsigned count = mutations ? (unsigned)strtoul(mutations, NULL, 10) : 30;
    flip_bits(shapes_program(), count);
    if (have_command("clang++")) {
        assert_true(shell("clang++ -gdwarf-5 -O2 shapes.cc -o clang5"));
        flip_bits(in_place("clang5"), count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_skin_agrees_with_addr2line),
        cmocka_unit_test(names_without_linkage_names_are_qualified),
        cmocka_unit_test(thread_counts_change_nothing),
        cmocka_unit_test(build_id_directory_below_sysroot),
        cmocka_unit_test(debug_file_serves_when_the_program_is_gone),
        cmocka_unit_test(debuginfod_only_when_asked_for),
        cmocka_unit_test(symbol_table_serves_without_debug_information),
        cmocka_unit_test(odd_symbols),
        cmocka_unit_test(plt_entries_are_named),
        cmocka_unit_test(packed_symbol_table_is_read),
        cmocka_unit_test(linkage_names_are_demangled),
        cmocka_unit_test(libraries_of_this_machine),
        cmocka_unit_test(signal_frames_are_named),
        cmocka_unit_test(tickets_strings_and_second_runs),
        cmocka_unit_test(files_that_cannot_serve),
        cmocka_unit_test(truncated_files),
        cmocka_unit_test(flipped_bits),
    };
    if (getenv("HEAPWISE_TEST"))
        cmocka_set_test_filter(getenv("HEAPWISE_TEST"));
    return cmocka_run_group_tests(tests, make_place, NULL);
}
