/* cc_arguments.c - see cc_arguments.h. */
#include "cli/cc_arguments.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

#define RESPONSE_LEVELS 16 /* response files in response files */

const char *const hw_cc_sanitizers[] = {"address", "hwaddress",   "kernel-address", "leak",     "memory", "thread",
                                        "memtag",  "memtag-heap", "alloc-token",    "dataflow", NULL};

/* ---- words against lists ---- */

static bool starts_with(const char *word, const char *prefix)
{
    return strncmp(word, prefix, strlen(prefix)) == 0;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(word, *list) == 0)
            return true;
    }
    return false;
}

static bool starts_with_one_of(const char *word, const char *const *list)
{
    for (; *list; list++) {
        if (starts_with(word, *list))
            return true;
    }
    return false;
}

/* ---- options with a word of their own for the value ---- */

// clang-format off
/* Sorted. Joined spellings (-Idir, -MFfile, --sysroot=dir) are no concern: they are one word. */
static const char *const with_value[] = {
    "--assert", "--config", "--define-macro", "--dumpbase", "--dumpbase-ext", "--dumpdir", "--dyld-prefix",
    "--encoding", "--entry", "--for-assembler", "--for-linker", "--force-link", "--gcc-toolchain", "--imacros",
    "--include", "--include-directory", "--include-directory-after", "--include-prefix", "--include-with-prefix",
    "--include-with-prefix-after", "--include-with-prefix-before", "--language", "--library", "--library-directory",
    "--no-system-header-prefix", "--output", "--param", "--prefix", "--print-file-name", "--print-prog-name",
    "--resource", "--rtlib", "--serialize-diagnostics", "--specs", "--std", "--stdlib", "--sysroot",
    "--system-header-prefix", "--target", "--undefine-macro", "-A", "-B", "-D", "-F", "-G", "-I", "-J", "-L", "-MF",
    "-MJ", "-MQ", "-MT", "-R", "-T", "-Tbss", "-Tdata", "-Ttext", "-U", "-V", "-Xanalyzer", "-Xarch_device",
    "-Xarch_host", "-Xassembler", "-Xclang", "-Xclangas", "-Xcuda-fatbinary", "-Xcuda-ptxas", "-Xlinker",
    "-Xoffload-linker", "-Xopenmp-target", "-Xpreprocessor", "-allowable_client", "-arch", "-aux-info", "-auxbase",
    "-auxbase-strip", "-b", "-bundle_loader", "-c-isystem", "-client_name", "-current_version", "-cxx-isystem",
    "-darwin-target-variant", "-dependency-dot", "-dependency-file", "-dsym-dir", "-dumpbase", "-dumpbase-ext",
    "-dumpdir", "-dylib_file", "-e", "-filelist", "-fmodules-user-build-path", "-force_load", "-framework",
    "-gcc-toolchain", "-iapinotes-modules", "-idirafter", "-iframework", "-iframeworkwithsysroot", "-imacros",
    "-image_base", "-imultiarch", "-imultilib", "-include", "-include-pch", "-init", "-install_name", "-iplugindir",
    "-iprefix", "-iquote", "-isysroot", "-isystem", "-isystem-after", "-ivfsoverlay", "-iwithprefix",
    "-iwithprefixbefore", "-iwithsysroot", "-l", "-lazy_framework", "-mllvm", "-mmlir", "-module-dependency-dir",
    "-mthread-model", "-multiply_defined", "-o", "-pagezero_size", "-param", "-read_only_relocs", "-resource-dir",
    "-rpath", "-serialize-diagnostics", "-specs", "-stdlib++-isystem", "-sub_library", "-target", "-u", "-umbrella",
    "-undefined", "-unexported_symbols_list", "-vfsoverlay", "-weak_framework", "-working-directory", "-wrapper",
    "-x", "-z",
};
// clang-format on

static int compare_words(const void *word, const void *entry)
{
    return strcmp(word, *(const char *const *)entry);
}

/* Those whose names end in a machine's: the next word is for that machine. */
static bool is_for_one_machine(const char *word)
{
    static const char *const beginnings[] = {"-Xarch_", "-Xopenmp-target=", "-Xoffload-linker-", NULL};
    return starts_with_one_of(word, beginnings);
}

bool hw_cc_takes_value(const char *word)
{
    return is_for_one_machine(word) ||
           bsearch(word, with_value, sizeof with_value / sizeof with_value[0], sizeof with_value[0], compare_words);
}

/* ---- the words, those of response files included ---- */

struct words {
    char **list; /* each allocated */
    size_t count, room;
    bool unsure_end;
};

static bool add_word(struct words *words, const char *text, size_t length)
{
    if (!HW_GROW(words->list, words->room, words->count + 1))
        return false;
    char *copy = strndup(text, length);
    if (!copy)
        return false;
    words->list[words->count++] = copy;
    return true;
}

static void free_words(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->list[i]);
    free(words->list);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return NULL;
    ssize_t length = getdelim(&text, &size, '\0', file);
    fclose(file);
    if (length < 0) { /* empty, or a directory */
        free(text);
        return NULL;
    }
    return text;
}

static bool add_argument(struct words *words, const char *word, int level, struct hw_error *error);

/* The next word of a response file, as both compilers split it: blanks separate, quotes of both kinds and backslashes
 * take away the meaning of what they cover. Written over *TEXT, which is never longer. NULL at the end. */
static char *split_word(char **text)
{
    char *in = *text;
    while (isspace((unsigned char)*in))
        in++;
    if (*in == '\0')
        return NULL;
    char *word = in, *out = in;
    char quote = '\0';
    for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
        if (*in == '\\' && in[1]) {
            *out++ = *++in;
        } else if (quote ? *in == quote : *in == '"' || *in == '\'') {
            quote = quote ? '\0' : *in;
        } else {
            *out++ = *in;
        }
    }
    *text = *in ? in + 1 : in;
    *out = '\0';
    return word;
}

static bool add_response_file(struct words *words, char *text, int level, struct hw_error *error)
{
    bool good = true;
    for (char *word; good && (word = split_word(&text));) {
        words->unsure_end |= strcmp(word, "--") == 0;
        good = add_argument(words, word, level + 1, error);
    }
    return good;
}

static bool add_argument(struct words *words, const char *word, int level, struct hw_error *error)
{
    char *text = *word == '@' ? read_whole(word + 1) : NULL;
    if (!text) {
        if (add_word(words, word, strlen(word)))
            return true;
        hw_error_set(error, "no memory");
        return false;
    }
    bool good = level < RESPONSE_LEVELS;
    if (!good)
        hw_error_set(error, "%s: response files include each other without end", word);
    good = good && add_response_file(words, text, level, error);
    free(text);
    return good;
}

/* ---- inputs ---- */

enum language { BY_NAME, SOURCE, HEADER, ASSEMBLER, DEVICE, ELSEWHERE };

static enum language language_of(const char *name)
{
    static const struct {
        const char *name;
        enum language language;
    } names[] = {
        {"none", BY_NAME},
        {"assembler", ASSEMBLER},
        {"assembler-with-cpp", ASSEMBLER},
        {"cuda", DEVICE},
        {"cuda-cpp-output", DEVICE},
        {"hip", DEVICE},
        {"hip-cpp-output", DEVICE},
        {"ada", ELSEWHERE},
        {"f77", ELSEWHERE},
        {"f77-cpp-input", ELSEWHERE},
        {"f95", ELSEWHERE},
        {"f95-cpp-input", ELSEWHERE},
        {"go", ELSEWHERE},
        {"d", ELSEWHERE},
        {"modula-2", ELSEWHERE},
        {"cl", ELSEWHERE},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, name) == 0)
            return names[i].language;
    }
    return strstr(name, "header") ? HEADER : SOURCE;
}

static enum language language_by_name(const char *path)
{
    static const struct {
        const char *extensions; /* each between blanks */
        enum language language;
    } groups[] = {
        {" c i C cc cp cpp cxx CPP CC c++ C++ CXX ii m mi mm mii M cppm ccm cxxm c++m ixx iim ll bc pcm ast ", SOURCE},
        {" h H hh hp hpp hxx HPP HXX h++ tcc ", HEADER},
        {" s S sx asm ", ASSEMBLER},
        {" cu cui hip hipi ", DEVICE},
    };
    const char *dot = strrchr(path, '.');
    if (!dot || strchr(dot, '/') || strlen(dot) > 8)
        return ELSEWHERE;
    char key[16];
    snprintf(key, sizeof key, " %s ", dot + 1);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strstr(groups[i].extensions, key))
            return groups[i].language;
    }
    return ELSEWHERE;
}

static void take_input(struct hw_cc_arguments *arguments, const char *path, enum language language)
{
    if (language == BY_NAME)
        language = language_by_name(path);
    arguments->sources += language == SOURCE || language == HEADER || language == DEVICE;
    arguments->offload |= language == DEVICE;
    arguments->link_inputs += language != HEADER;
}

/* ---- options ---- */

/* The earlier of two stages counts, whatever their order on the command line. */
static void take_stage(struct hw_cc_arguments *arguments, const char *word)
{
    static const struct {
        const char *word;
        enum hw_cc_stage stage;
    } words[] = {
        {"-E", HW_CC_STAGE_PREPROCESS},
        {"--preprocess", HW_CC_STAGE_PREPROCESS},
        {"-M", HW_CC_STAGE_PREPROCESS},
        {"-MM", HW_CC_STAGE_PREPROCESS},
        {"--dependencies", HW_CC_STAGE_PREPROCESS},
        {"--user-dependencies", HW_CC_STAGE_PREPROCESS},
        {"-fsyntax-only", HW_CC_STAGE_CHECK},
        {"--analyze", HW_CC_STAGE_CHECK},
        {"-emit-ast", HW_CC_STAGE_CHECK},
        {"-module-file-info", HW_CC_STAGE_CHECK},
        {"-verify-pch", HW_CC_STAGE_CHECK},
        {"-rewrite-objc", HW_CC_STAGE_CHECK},
        {"-extract-api", HW_CC_STAGE_CHECK},
        {"-S", HW_CC_STAGE_COMPILE},
        {"--assemble", HW_CC_STAGE_COMPILE},
        {"-c", HW_CC_STAGE_COMPILE},
        {"--compile", HW_CC_STAGE_COMPILE},
        {"--precompile", HW_CC_STAGE_COMPILE},
        {"-r", HW_CC_STAGE_PARTIAL},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, word) == 0 && words[i].stage < arguments->stage)
            arguments->stage = words[i].stage;
    }
}

/* Is this option a question, which the compiler answers whatever else is there? */
static bool is_question(const char *word)
{
    static const char *const words[] = {"--version", "--help", "-help", "--help-hidden", "--target-help", NULL};
    static const char *const beginnings[] = {
        "-print-",    "--print-", "-dumpversion",    "-dumpfullversion", "-dumpmachine",
        "-dumpspecs", "--help=",  "--autocomplete=", "--completion=",    NULL};
    return is_one_of(word, words) || starts_with_one_of(word, beginnings);
}

/* -g options that choose how much debug information is made, not only its kind. */
static bool is_debug_level(const char *word)
{
    static const char *const words[] = {"-g",
                                        "-g0",
                                        "-g1",
                                        "-g2",
                                        "-g3",
                                        "-gmlt",
                                        "-gfull",
                                        "-gused",
                                        "-gmodules",
                                        "-gline-tables-only",
                                        "-gline-directives-only",
                                        "-gdwarf",
                                        "-gcodeview",
                                        "-gbtf",
                                        "-gvms",
                                        "-gtoggle",
                                        "--debug",
                                        NULL};
    static const char *const beginnings[] = {"-ggdb",   "-glldb",  "-gsce", "-gdbx",    "-gdwarf-",
                                             "-gstabs", "-gxcoff", "-gctf", "--debug=", NULL};
    return is_one_of(word, words) || starts_with_one_of(word, beginnings);
}

static void take_sanitizers(struct hw_cc_arguments *arguments, const char *list, bool on)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        for (size_t i = 0; hw_cc_sanitizers[i]; i++) {
            bool this_one = strlen(hw_cc_sanitizers[i]) == length && strncmp(hw_cc_sanitizers[i], list, length) == 0;
            if (on && this_one)
                arguments->sanitizers |= 1u << i;
            else if (!on && (this_one || (length == 3 && strncmp(list, "all", 3) == 0)))
                arguments->sanitizers &= ~(1u << i);
        }
        list += length + (list[length] == ',');
    }
}

static void take_target(struct hw_cc_arguments *arguments, const char *triple)
{
    bool ours = (starts_with(triple, "x86_64") || starts_with(triple, "amd64")) && strstr(triple, "linux") &&
                !strstr(triple, "gnux32");
    arguments->other_machine = !ours;
}

/* One word for the linker. */
static void take_linker_word(struct hw_cc_arguments *arguments, const char *word, size_t length)
{
    static const char *const partial[] = {"-r", "-i", "-Ur", "--relocatable", NULL};
    char copy[32];
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), word);
    if (starts_with(copy, "--build-id") || starts_with(copy, "-build-id") || strcmp(copy, "--no-build-id") == 0)
        arguments->build_id = true;
    if (length < sizeof copy && is_one_of(copy, partial) && arguments->stage > HW_CC_STAGE_PARTIAL)
        arguments->stage = HW_CC_STAGE_PARTIAL;
}

static void take_linker_words(struct hw_cc_arguments *arguments, const char *list)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        take_linker_word(arguments, list, length);
        list += length + (list[length] == ',');
    }
}

/* An option without a value, or with it in the same word. */
static void take_option(struct hw_cc_arguments *arguments, const char *word)
{
    static const char *const fixed[] = {"-static", "--static", "-static-pie", "--static-pie", NULL};
    static const char *const machines[] = {"-m32", "-mx32", "-m16", NULL};
    take_stage(arguments, word);
    arguments->asks |= is_question(word);
    arguments->debug |= is_debug_level(word);
    arguments->fixed_static |= is_one_of(word, fixed);
    if (is_one_of(word, machines))
        arguments->other_machine = true;
    else if (strcmp(word, "-m64") == 0)
        arguments->other_machine = false;
    else if (strcmp(word, "-fmemory-profile") == 0 || starts_with(word, "-fmemory-profile="))
        arguments->memory_profile = true;
    else if (strcmp(word, "-fno-memory-profile") == 0)
        arguments->memory_profile = false;
    else if (strcmp(word, "-flto") == 0 || starts_with(word, "-flto="))
        arguments->link_time_code = true;
    else if (strcmp(word, "-fno-lto") == 0)
        arguments->link_time_code = false;
    else if (starts_with(word, "-fsanitize="))
        take_sanitizers(arguments, word + strlen("-fsanitize="), true);
    else if (starts_with(word, "-fno-sanitize="))
        take_sanitizers(arguments, word + strlen("-fno-sanitize="), false);
    else if (starts_with(word, "--target="))
        take_target(arguments, word + strlen("--target="));
    else if (starts_with(word, "-Wl,"))
        take_linker_words(arguments, word + strlen("-Wl,"));
    else if (starts_with(word, "-l") || starts_with(word, "--library="))
        arguments->link_inputs++;
}

/* An option and its value, a word of its own. */
static void take_pair(struct hw_cc_arguments *arguments, const char *word, const char *value)
{
    if (strcmp(word, "-Xlinker") == 0 || strcmp(word, "--for-linker") == 0)
        take_linker_word(arguments, value, strlen(value));
    else if (strcmp(word, "-target") == 0 || strcmp(word, "--target") == 0)
        take_target(arguments, value);
    else if (strcmp(word, "-l") == 0 || strcmp(word, "--library") == 0)
        arguments->link_inputs++;
    else if (strcmp(word, "--print-file-name") == 0 || strcmp(word, "--print-prog-name") == 0)
        arguments->asks = true;
}

/* -x, in any of its spellings: sets the language of the inputs behind it. */
static bool take_language(const char *word, const char *value, enum language *language)
{
    const char *name = NULL;
    if (strcmp(word, "-x") == 0 || strcmp(word, "--language") == 0)
        name = value;
    else if (starts_with(word, "--language="))
        name = word + strlen("--language=");
    else if (starts_with(word, "-x"))
        name = word + strlen("-x");
    if (name)
        *language = language_of(name);
    return name != NULL;
}

static void read_words(struct hw_cc_arguments *arguments, const struct words *words)
{
    enum language language = BY_NAME;
    bool only_files = false;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->list[i];
        if (only_files || *word != '-' || word[1] == '\0') {
            take_input(arguments, word, language);
        } else if (strcmp(word, "--") == 0) {
            only_files = true;
        } else if (hw_cc_takes_value(word)) {
            const char *value = i + 1 < words->count ? words->list[++i] : "";
            if (!take_language(word, value, &language))
                take_pair(arguments, word, value);
        } else if (!take_language(word, "", &language)) {
            take_option(arguments, word);
        }
    }
}

/* Where "--" is among the words of the command line itself. */
static size_t find_end(char *const argv[])
{
    size_t i = 0;
    while (argv[i] && strcmp(argv[i], "--") != 0)
        i += hw_cc_takes_value(argv[i]) && argv[i + 1] ? 2 : 1;
    return i;
}

bool hw_cc_arguments_read(struct hw_cc_arguments *arguments, char *const argv[], struct hw_error *error)
{
    struct words words = {0};
    *arguments = (struct hw_cc_arguments){.stage = HW_CC_STAGE_LINK, .options_end = find_end(argv)};
    bool good = true;
    for (size_t i = 0; good && argv[i]; i++)
        good = add_argument(&words, argv[i], 0, error);
    if (good) {
        read_words(arguments, &words);
        arguments->unsure_end = words.unsure_end;
        arguments->asks |= words.count > 0 && starts_with(words.list[0], "-cc1");
    }
    free_words(&words);
    return good;
}
