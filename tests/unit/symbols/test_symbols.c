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
#include "symbols/symbols_internal.h"
#include "symbols_program.h"

/* ---- addresses and the judge's answers ---- */

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
            LEAVE_OUT("%s: no %s here", skins[i].name, skins[i].needs);
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
    assert_non_null(strstr(problem_of(&session), "nodebug: no debug information, so no files and lines"));
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
        SKIP("the return from signals is not in the C library");
    /* A sanitizer may have installed the handler, with a restorer of its own. */
    Dl_info other;
    if (dladdr(known.restorer, &other) && other.dli_fbase != info.dli_fbase)
        SKIP("the return from signals is not in the C library");
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

TEST_LIST_WITH(make_place, NULL, cmocka_unit_test(every_skin_agrees_with_addr2line),
               cmocka_unit_test(names_without_linkage_names_are_qualified),
               cmocka_unit_test(thread_counts_change_nothing), cmocka_unit_test(build_id_directory_below_sysroot),
               cmocka_unit_test(debug_file_serves_when_the_program_is_gone),
               cmocka_unit_test(debuginfod_only_when_asked_for),
               cmocka_unit_test(symbol_table_serves_without_debug_information), cmocka_unit_test(odd_symbols),
               cmocka_unit_test(plt_entries_are_named), cmocka_unit_test(packed_symbol_table_is_read),
               cmocka_unit_test(linkage_names_are_demangled), cmocka_unit_test(libraries_of_this_machine),
               cmocka_unit_test(signal_frames_are_named), cmocka_unit_test(tickets_strings_and_second_runs))
