/* test_cli.c - the parts of the command line that can be tested apart: finding and checking programs, names of
 * profiles, finding the profiles of a session, words. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"

#include "cli/cli.h"
#include "cli/output_name.h"
#include "base/preload.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "cli/target.h"

static char folder[PATH_MAX];

/* Every test works in an empty directory of its own. */
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

static void make_file(const char *name, const void *content, size_t size, mode_t mode)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, content, size), size);
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
}

static void make_script(const char *name, const char *text)
{
    make_file(name, text, strlen(text), 0755);
}

/* ---- target ---- */

/* An ELF file with one program header and the name of a dynamic linker behind it. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char linker[64];
};

static struct image make_image(void)
{
    struct image image;
    memset(&image, 0, sizeof image);
    int self = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(read(self, &image.header, sizeof image.header), sizeof image.header);
    close(self);
    image.header.e_phoff = offsetof(struct image, segment);
    image.header.e_phnum = 1;
    image.header.e_phentsize = sizeof image.segment;
    image.segment.p_type = PT_INTERP;
    image.segment.p_offset = offsetof(struct image, linker);
    image.segment.p_filesz = sizeof "/bin/sh";
    strcpy(image.linker, "/bin/sh"); /* any file that is there */
    return image;
}

static int resolve(const char *program, struct hw_target *target, struct hw_error *error)
{
    error->message[0] = '\0';
    int code = hw_target_resolve(program, target, error);
    assert_int_equal(code != 0, error->message[0] != '\0'); /* a message with every failure, and only then */
    return code;
}

static void expect(const char *program, int code, const char *part_of_message)
{
    struct hw_target target;
    struct hw_error error;
    assert_int_equal(resolve(program, &target, &error), code);
    if (part_of_message && !strstr(error.message, part_of_message))
        fail_msg("'%s' does not say '%s'", error.message, part_of_message);
}

static void test_programs_that_are_not_there(void **state)
{
    assert_int_equal(mkdir("directory", 0755), 0);
    make_file("plain", "text\n", 5, 0644);
    expect("", 127, "not found");
    expect("no-such-program-anywhere", 127, "not found");
    expect("./absent", 127, "No such file");
    expect("./plain/below", 127, "Not a directory");
    expect("./directory", 126, "Is a directory");
    expect("./plain", 126, "chmod +x");
    expect("/dev/null", 126, "Permission denied");
}

static void test_path_is_searched_as_execvp_does(void **state)
{
    struct hw_target target;
    struct hw_error error;
    struct image image = make_image();
    char path[2 * PATH_MAX + 16];
    assert_int_equal(mkdir("first", 0755) | mkdir("second", 0755) | mkdir("first/program", 0755), 0);
    make_file("second/program", &image, sizeof image, 0755);
    make_file("first/other", &image, sizeof image, 0644);
    make_file("here", &image, sizeof image, 0755);
    snprintf(path, sizeof path, "%s/first:%s/second", folder, folder);
    setenv("PATH", path, 1);
    assert_int_equal(resolve("program", &target, &error), 0); /* passes over the directory of that name */
    snprintf(path, sizeof path, "%s/second/program", folder);
    assert_string_equal(target.path, path);
    expect("other", 126, "may not be executed");
    expect("here", 127, "not found");
    setenv("PATH", "/nowhere::", 1); /* an empty one is the current directory */
    assert_int_equal(resolve("here", &target, &error), 0);
    assert_string_equal(target.path, "here");
    setenv("PATH", "/usr/bin:/bin", 1);
    assert_int_equal(resolve("sh", &target, &error), 0);
}

static void test_kinds_of_binaries(void **state)
{
    struct hw_target target;
    struct hw_error error;
    struct image image = make_image();
    make_file("good", &image, sizeof image, 0755);
    expect("./good", 0, NULL);

    image.segment.p_type = PT_LOAD;
    make_file("static", &image, sizeof image, 0755);
    expect("./static", 0, NULL);
    assert_int_equal(resolve("./static", &target, &error), 0);
    assert_true(target.is_static);
    make_file("ld-linux-test.so.2", &image, sizeof image, 0755); /* the dynamic linker as a program */
    expect("./ld-linux-test.so.2", 0, NULL);

    image = make_image();
    image.header.e_machine = image.header.e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
    make_file("foreign", &image, sizeof image, 0755);
    expect("./foreign", 125, "64-bit program for");

    image = make_image();
    image.header.e_ident[EI_CLASS] = ELFCLASS32;
    image.header.e_machine = EM_386;
    make_file("narrow", &image, sizeof image, 0755);
    expect("./narrow", 125, "32-bit program for i386");

    image = make_image();
    strcpy(image.linker, "/no/linker");
    image.segment.p_filesz = sizeof "/no/linker";
    make_file("lost", &image, sizeof image, 0755);
    expect("./lost", 127, "dynamic linker /no/linker");

    image = make_image();
    image.header.e_type = ET_REL;
    make_file("object", &image, sizeof image, 0755);
    expect("./object", 126, "not a program");
}

static void test_damaged_binaries_are_refused(void **state)
{
    struct image image = make_image();
    for (size_t size = 4; size < offsetof(struct image, linker) + sizeof "/bin/sh"; size++) {
        make_file("cut", &image, size, 0755);
        expect("./cut", 126, "cannot be executed");
    }
    image.header.e_phoff = UINT64_MAX - 8;
    make_file("far", &image, sizeof image, 0755);
    expect("./far", 126, NULL);
    image = make_image();
    image.segment.p_filesz = UINT64_MAX;
    make_file("long", &image, sizeof image, 0755);
    expect("./long", 126, NULL);
    image = make_image();
    image.segment.p_filesz = 3; /* not terminated */
    make_file("open", &image, sizeof image, 0755);
    expect("./open", 126, NULL);
}

static void test_set_user_id_programs_are_refused(void **state)
{
    if (getuid() != 0)
        SKIP("only root can make a file of somebody else");
    struct image image = make_image();
    make_file("other", &image, sizeof image, 0755);
    assert_int_equal(chown("other", 12345, 12345), 0);
    assert_int_equal(chmod("other", 04755), 0);
    expect("./other", 125, "set-user-id");
    assert_int_equal(chmod("other", 02755), 0);
    expect("./other", 125, "set-group-id");
    assert_int_equal(chmod("other", 02745), 0); /* without execution by the group it means locking */
    expect("./other", 0, NULL);
    make_file("own", &image, sizeof image, 04755); /* changes nothing for us */
    expect("./own", 0, NULL);
}

static void test_scripts_are_followed(void **state)
{
    struct hw_target target;
    struct hw_error error;
    char name[32], text[64], image_path[PATH_MAX + 16];
    struct image image = make_image();
    make_file("level0", &image, sizeof image, 0755);
    for (int level = 1; level <= 6; level++) {
        snprintf(name, sizeof name, "level%d", level);
        snprintf(text, sizeof text, "#! \t./level%d an argument\n", level - 1);
        make_script(name, text);
    }
    assert_int_equal(resolve("./level5", &target, &error), 0);
    assert_string_equal(target.path, "./level5");
    snprintf(image_path, sizeof image_path, "%s/level0", folder);
    assert_string_equal(target.image, image_path);
    expect("./level6", 126, "too many levels");

    make_script("no-interpreter", "#!/no/such\n");
    expect("./no-interpreter", 127, "its interpreter /no/such: No such file");
    make_script("carriage", "#!/bin/sh\r\n");
    expect("./carriage", 127, "carriage return");
    make_script("loop", "#!./loop\n");
    expect("./loop", 126, "too many levels");
    image.segment.p_type = PT_NULL;
    make_file("static", &image, sizeof image, 0755);
    make_script("static-script", "#!./static\n");
    assert_int_equal(resolve("./static-script", &target, &error), 0);
    assert_true(target.is_static);
}

static void test_texts_go_to_the_shell_and_other_files_to_the_kernel(void **state)
{
    struct hw_target target;
    struct hw_error error;
    make_script("text", "exit 7\n");
    assert_int_equal(resolve("./text", &target, &error), 0);
    assert_true(target.text);
    make_script("empty", "");
    assert_int_equal(resolve("./empty", &target, &error), 0);
    assert_true(target.text);
    make_script("nothing-named", "#! \n");
    assert_int_equal(resolve("./nothing-named", &target, &error), 0);
    assert_true(target.text);
    make_file("binary", "\1\0\2", 3, 0755);
    assert_int_equal(resolve("./binary", &target, &error), 0);
    assert_false(target.text);
}

/* ---- output_name ---- */

static void check_name(const char *given, const char *pattern, const char *name, const char *wildcard)
{
    struct hw_output_name output;
    struct hw_error error = {""};
    if (!hw_output_name_init(&output, given, "prog", &error))
        fail_msg("%s: %s", given, error.message);
    assert_string_equal(output.pattern, pattern);
    assert_string_equal(output.wildcard, wildcard);
    if (name)
        assert_string_equal(output.name, name);
    else
        assert_null(output.name);
    hw_output_name_free(&output);
}

static void test_names_become_patterns(void **state)
{
    check_name("/d/x.hwprof", "/d/x.hwprof", "/d/x.hwprof", "/d/x*.hwprof");
    check_name("/d/%e.%p.hwprof", "/d/%e.%p.hwprof", NULL, "/d/*.**.hwprof");
    check_name("/d/%e", "/d/%e", "/d/prog", "/d/**");
    check_name("/d/.x", "/d/.x", "/d/.x", "/d/.x*");
    check_name("/d/a:b%%%c[1]", "/d/a%cb%%%c[1]", "/d/a:b%:[1]", "/d/a:b%:\\[1]*");
    check_name("/x", "/x", "/x", "/x*");
}

static void test_relative_names_start_here_whatever_it_is_called(void **state)
{
    char pattern[PATH_MAX + 64], name[PATH_MAX + 64], wildcard[PATH_MAX + 64];
    const char *odd = "50%p:[x] y";
    assert_int_equal(mkdir(odd, 0755) | chdir(odd), 0);
    snprintf(pattern, sizeof pattern, "%s/50%%%%p%%c[x] y/%%p.%%e", folder);
    snprintf(wildcard, sizeof wildcard, "%s/50%%p:\\[x] y/**.*", folder);
    check_name("%p.%e", pattern, NULL, wildcard);
    snprintf(pattern, sizeof pattern, "%s/50%%%%p%%c[x] y/x", folder);
    snprintf(name, sizeof name, "%s/%s/x", folder, odd);
    snprintf(wildcard, sizeof wildcard, "%s/50%%p:\\[x] y/x*", folder);
    check_name("x", pattern, name, wildcard);
}

static void test_names_that_are_none(void **state)
{
    static const char *const names[] = {"", "x/", "/", "50%", "%q.hwprof"};
    char *longer = calloc(1, 5000);
    struct hw_output_name output;
    memset(longer, 'x', 4999);
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        struct hw_error error = {""};
        const char *name = i < sizeof names / sizeof names[0] ? names[i] : longer;
        assert_false(hw_output_name_init(&output, name, "prog", &error));
        assert_string_not_equal(error.message, "");
    }
    free(longer);
}

static void test_output_is_found_in_options(void **state)
{
    char value[32];
    assert_false(hw_output_name_from_options(NULL, value, sizeof value));
    assert_false(hw_output_name_from_options("depth=3:xoutput=y:output=", value, sizeof value));
    assert_true(hw_output_name_from_options("output=a:depth=3:output=b%c:x", value, sizeof value));
    assert_string_equal(value, "b%c");
}

static bool prepare(const char *given, bool force, struct hw_error *error)
{
    struct hw_output_name output;
    error->message[0] = '\0';
    assert_true(hw_output_name_init(&output, given, "prog", error));
    bool prepared = hw_output_name_prepare(&output, force, error);
    hw_output_name_free(&output);
    return prepared;
}

static void test_existing_files_are_only_overwritten_by_force(void **state)
{
    struct hw_error error;
    make_file("old.hwprof", "x", 1, 0644);
    assert_false(prepare("old.hwprof", false, &error));
    assert_non_null(strstr(error.message, "exists already"));
    assert_int_equal(access("old.hwprof", F_OK), 0);
    assert_true(prepare("old.hwprof", true, &error));
    assert_int_equal(access("old.hwprof", F_OK), -1);
    assert_int_equal(symlink("nowhere", "link.hwprof"), 0);
    assert_false(prepare("link.hwprof", false, &error));
    make_file("prog.hwprof", "x", 1, 0644);
    assert_false(prepare("%e.hwprof", false, &error));
    assert_true(prepare("%e.%p.hwprof", false, &error));
}

static void test_places_that_cannot_be_written(void **state)
{
    struct hw_error error;
    assert_int_equal(mkdir("directory", 0755), 0);
    make_file("file", "x", 1, 0644);
    assert_false(prepare("directory", true, &error));
    assert_non_null(strstr(error.message, "is a directory"));
    assert_false(prepare("absent/x", false, &error));
    assert_non_null(strstr(error.message, "no such directory"));
    assert_false(prepare("file/x", false, &error));
    assert_false(prepare("/dev/null", true, &error));
    assert_non_null(strstr(error.message, "not a regular file"));
    assert_int_equal(access("/dev/null", F_OK), 0);
    assert_false(prepare("/proc/x.hwprof", false, &error) && getuid() != 0);
    assert_true(prepare("%p/x.hwprof", false, &error)); /* not known before it runs */
}

/* ---- session ---- */

/* Field 22 of /proc/self/stat, behind a name without spaces. */
static uint64_t own_start_time(void)
{
    unsigned long long start = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    assert_int_equal(fscanf(file,
                            "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                            &start),
                     1);
    fclose(file);
    return start;
}

static void make_profile(const char *name, uint64_t session, uint32_t pid, uint64_t start, uint32_t flags)
{
    struct {
        struct hw_file_header header;
        struct hw_section directory[60];
        struct hw_process_info process;
    } file;
    memset(&file, 0, sizeof file);
    file.header.magic = HW_FILE_MAGIC;
    file.header.version_major = HW_FILE_VERSION_MAJOR;
    file.header.session = session;
    file.header.directory_used = 1;
    file.directory[0] =
        (struct hw_section){.type = HW_SECTION_PROCESS, .offset = HW_FILE_PAGE, .used = sizeof file.process};
    file.process.pid = pid;
    file.process.start_realtime_ns = start;
    file.process.flags = flags;
    file.process.start_time_jiffies = own_start_time();
    make_file(name, &file, sizeof file, 0644);
}

static void test_profiles_of_a_session_are_found(void **state)
{
    struct hw_session session;
    make_profile("sh.10.hwprof", 77, 10, 1000, 0);
    make_profile("cat.10.hwprof", 77, 10, 2000, 0);
    make_profile("sh.11.hwprof", 77, 11, 3000, HW_PROCESS_FORKED);
    make_profile("again.10.hwprof", 77, 10, 4000, HW_PROCESS_FORKED); /* a number that was used again */
    make_profile("old.10.hwprof", 76, 10, 5000, 0);
    make_file("cut.10.hwprof", "\x89HWPROF\n", 8, 0644);
    make_file("other.10.hwprof", "", 0, 0644);
    assert_int_equal(mkdir("dir.10.hwprof", 0755), 0);
    assert_int_equal(mkfifo("pipe.10.hwprof", 0644), 0); /* must not be waited for */
    hw_session_find(&session, "*.*.hwprof", 77);
    assert_int_equal(session.count, 4);
    assert_string_equal(session.files[0].path, "sh.10.hwprof");
    assert_string_equal(session.files[3].path, "again.10.hwprof");
    assert_string_equal(hw_session_main(&session, 10)->path, "cat.10.hwprof");
    assert_null(hw_session_main(&session, 12));
    assert_int_equal(hw_session_running(&session), 0);
    hw_session_free(&session);
    make_profile("self.1.hwprof", 78, (uint32_t)getpid(), 1, 0); /* we, before and after an exec */
    make_profile("self.2.hwprof", 78, (uint32_t)getpid(), 2, 0);
    hw_session_find(&session, "self.*", 78);
    assert_int_equal(session.count, 2);
    assert_false(session.files[0].running);
    assert_true(session.files[1].running);
    hw_session_free(&session);
    hw_session_find(&session, "absent*", 77);
    assert_int_equal(session.count, 0);
    hw_session_free(&session);
}

/* ---- preload ---- */

static void test_names_that_a_preload_cannot_express_are_linked(void **state)
{
    struct hw_preload preload;
    struct hw_error error = {""};
    char target[PATH_MAX] = "";
    assert_true(hw_preload_init(&preload, "/plain/libheapwise.so", &error));
    assert_string_equal(preload.path, "/plain/libheapwise.so");
    hw_preload_free(&preload);
    setenv("TMPDIR", folder, 1);
    assert_true(hw_preload_init(&preload, "/o dd:/libheapwise.so", &error));
    assert_null(strpbrk(preload.path, " :"));
    assert_true(readlink(preload.path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "/o dd:/libheapwise.so");
    char copy[PATH_MAX];
    strcpy(copy, preload.folder);
    hw_preload_free(&preload);
    assert_int_equal(access(copy, F_OK), -1);
    unsetenv("TMPDIR");
}

static const char *value_in(char **environment, const char *name)
{
    const char *value = NULL;
    for (; *environment; environment++) {
        if (strncmp(*environment, name, strlen(name)) == 0 && (*environment)[strlen(name)] == '=') {
            assert_null(value); /* once only */
            value = *environment + strlen(name) + 1;
        }
    }
    return value;
}

static void test_what_is_in_the_environment_is_kept(void **state)
{
    struct hw_preload preload = {.path = "/r.so"};
    struct hw_error error = {""};
    unsetenv("LD_PRELOAD");
    unsetenv("HEAPWISE_OPTIONS");
    char **environment = hw_environment_new(&preload, "a=1", &error);
    assert_string_equal(value_in(environment, "LD_PRELOAD"), "/r.so");
    assert_string_equal(value_in(environment, "HEAPWISE_OPTIONS"), "a=1");
    hw_environment_free(environment);
    setenv("LD_PRELOAD", "/x.so /y.so", 1);
    setenv("HEAPWISE_OPTIONS", "b=2", 1);
    setenv("LD_PRELOADED", "other", 1);
    environment = hw_environment_new(&preload, "a=1", &error);
    assert_string_equal(value_in(environment, "LD_PRELOAD"), "/r.so:/x.so /y.so");
    assert_string_equal(value_in(environment, "HEAPWISE_OPTIONS"), "b=2:a=1");
    assert_string_equal(value_in(environment, "LD_PRELOADED"), "other");
    hw_environment_free(environment);
    unsetenv("LD_PRELOAD");
    unsetenv("HEAPWISE_OPTIONS");
    unsetenv("LD_PRELOADED");
}

/* ---- support ---- */

static void test_numbers(void **state)
{
    uint64_t value = 0;
    assert_true(hw_parse_number("256", 1, 256, &value) && value == 256);
    assert_false(hw_parse_number("257", 1, 256, &value));
    assert_false(hw_parse_number("0", 1, 256, &value));
    assert_false(hw_parse_number("1x", 1, 256, &value));
}

static void test_words_of_the_shell(void **state)
{
    char word[64];
    assert_string_equal(hw_shell_word("a/b-1.hwprof", word, sizeof word), "a/b-1.hwprof");
    assert_string_equal(hw_shell_word("a b", word, sizeof word), "'a b'");
    assert_string_equal(hw_shell_word("it's", word, sizeof word), "'it'\\''s'");
    assert_string_equal(hw_shell_word("", word, sizeof word), "''");
    assert_string_equal(hw_shell_word("-f", word, sizeof word), "-f"); /* gawk -f words.awk */
    assert_string_equal(hw_shell_file("-x", word, sizeof word), "./-x");
    assert_string_equal(hw_shell_file("-x y", word, sizeof word), "'./-x y'");
    char longer[200];
    memset(longer, '\'', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_true(strlen(hw_shell_word(longer, word, sizeof word)) < sizeof word);
}

/* ---- slips ---- */

static void test_slips(void **state)
{
    static const char list[] = "peak, bytes, leaked, not-observed";
    size_t size = 0;
    assert_int_equal(hw_word_distance("report", 6, "report"), 0);
    assert_int_equal(hw_word_distance("reprot", 6, "report"), 1); /* neighbours are swapped */
    assert_int_equal(hw_word_distance("reprt", 5, "report"), 1);
    assert_int_equal(hw_word_distance("rreport", 7, "report"), 1);
    assert_int_equal(hw_word_distance("", 0, "diff"), 4);
    assert_int_equal(hw_word_distance("peak=x", 4, "peak"), 0);
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_true(hw_word_distance(longer, strlen(longer), "report") > 100);
    assert_ptr_equal(hw_nearest_in("leeked", list, &size), list + 13);
    assert_int_equal(size, 6);
    assert_ptr_equal(hw_nearest_in("pek", list, &size), list);
    assert_int_equal(size, 4);
    assert_null(hw_nearest_in("xyz", list, &size));
    assert_null(hw_nearest_in("", list, &size));
    assert_null(hw_nearest_in("a", "b", &size)); /* all is a slip of one letter */
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

TEST_LIST(IN_FOLDER(test_programs_that_are_not_there), IN_FOLDER(test_path_is_searched_as_execvp_does),
          IN_FOLDER(test_kinds_of_binaries), IN_FOLDER(test_damaged_binaries_are_refused),
          IN_FOLDER(test_set_user_id_programs_are_refused), IN_FOLDER(test_scripts_are_followed),
          IN_FOLDER(test_texts_go_to_the_shell_and_other_files_to_the_kernel), IN_FOLDER(test_names_become_patterns),
          IN_FOLDER(test_relative_names_start_here_whatever_it_is_called), IN_FOLDER(test_names_that_are_none),
          IN_FOLDER(test_output_is_found_in_options), IN_FOLDER(test_existing_files_are_only_overwritten_by_force),
          IN_FOLDER(test_places_that_cannot_be_written), IN_FOLDER(test_profiles_of_a_session_are_found),
          IN_FOLDER(test_names_that_a_preload_cannot_express_are_linked),
          IN_FOLDER(test_what_is_in_the_environment_is_kept), cmocka_unit_test(test_numbers),
          cmocka_unit_test(test_words_of_the_shell), cmocka_unit_test(test_slips))
