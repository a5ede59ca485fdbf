/* test_completion.c - completions of shells, by completing: in an interactive bash, with Tab; in fish, by its own
 * command; zsh's is checked for syntax. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASH TEST_SOURCES "/../completions/heapwise"
#define ZSH  TEST_SOURCES "/../completions/_heapwise"
#define FISH TEST_SOURCES "/../completions/heapwise.fish"

/* Whether LINE is one of the lines of TEXT, up to a tab. */
static bool has_line(const char *text, const char *line)
{
    const size_t size = strlen(line);
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (!strncmp(text, line, size) && strchr("\t\n", text[size]))
            return true;
    return false;
}

static char *candidates(const char *const words[])
{
    const char *argv[16] = {"complete"};
    for (size_t i = 0; words[i]; i++)
        argv[i + 1] = words[i];
    struct run_result result = heapwise(argv, NULL);
    assert_exit(&result, 0, "complete");
    assert_string_equal(result.err, "");
    char *out = result.out;
    free(result.err);
    return out;
}

static void assert_offers(const char *const words[], const char *line, bool offered)
{
    char *out = candidates(words);
    if (has_line(out, line) != offered)
        fail_msg("'%s' is %soffered:\n%s", line, offered ? "not " : "", out);
    free(out);
}

static void test_candidates(void **state)
{
    assert_offers((const char *const[]){"", NULL}, "record", true);
    assert_offers((const char *const[]){"rep", NULL}, "report", true);
    assert_offers((const char *const[]){"rep", NULL}, "record", false);
    assert_offers((const char *const[]){"help", "di", NULL}, "diff", true);
    assert_offers((const char *const[]){"", NULL}, "complete", false);
    assert_offers((const char *const[]){"export", "--format", "", NULL}, "speedscope", true);
    assert_offers((const char *const[]){"export", "--format", "sp", NULL}, "sqlite", false);
    assert_offers((const char *const[]){"export", "--format=sq", NULL}, "--format=sqlite", true);
    assert_offers((const char *const[]){"report", "--sort", "le", NULL}, "leaked", true);
    assert_offers((const char *const[]){"report", "", NULL}, ":files", true);
    assert_offers((const char *const[]){"diff", "--sysroot", "", NULL}, ":directories", true);
    assert_offers((const char *const[]){"record", "-o", "x", "", NULL}, ":command 4", true);
    assert_offers((const char *const[]){"record", "--", "ls", "-", NULL}, ":command 3", true);
    assert_offers((const char *const[]){"record", "--mo", NULL}, "--mode", true);
    assert_offers((const char *const[]){"nothing", "", NULL}, ":files", false);
}

/* Every option that a verb's help names is offered. */
static void test_all_options(void **state)
{
    char *verbs = candidates((const char *const[]){"", NULL});
    size_t checked = 0;
    for (char *save = NULL, *line = strtok_r(verbs, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, "\t")] = '\0';
        if (*line == '-' || !strcmp(line, "help"))
            continue;
        struct run_result help = heapwise((const char *const[]){line, "--help", NULL}, NULL);
        char *offered = candidates((const char *const[]){line, "--", NULL});
        for (const char *at = help.out; (at = strstr(at, "\n  ")); at++) {
            const char *name = at + 1 + strspn(at + 1, " ");
            if (name[0] == '-' && name[1] != '-')
                name = strstr(name, "--");
            if (!name || strncmp(name, "--", 2) || strspn(at + 1, " ") > 8 || !islower((unsigned char)name[2]))
                continue;
            char option[64];
            snprintf(option, sizeof option, "%.*s",
                     (int)(2 + strspn(name + 2, "abcdefghijklmnopqrstuvwxyz0123456789-")), name);
            if (!has_line(offered, option))
                fail_msg("%s %s is not offered:\n%s", line, option, offered);
            checked++;
        }
        run_result_free(&help);
        free(offered);
    }
    assert_true(checked > 80);
    free(verbs);
}

static void check_syntax(const char *shell, const char *file)
{
    if (!have_command(shell))
        SKIP("there is no %s", shell);
    struct run_result result = run((const char *const[]){shell, "-n", file, NULL}, NULL);
    assert_exit(&result, 0, file);
    assert_string_equal(result.err, "");
    run_result_free(&result);
}

static void test_syntax_bash(void **state)
{
    check_syntax("bash", BASH);
}

static void test_syntax_zsh(void **state)
{
    check_syntax("zsh", ZSH);
}

static void test_syntax_fish(void **state)
{
    check_syntax("fish", FISH);
}

/* Types into an interactive bash, which has a terminal of its own; what was printed. */
static struct run_result type(const char *directory, const char *keys)
{
    char path[4200], *inputrc = join_path(directory, "inputrc");
    const char *slash = strrchr(heapwise_path(), '/');
    FILE *file = fopen(inputrc, "w");
    assert_non_null(file);
    fputs(
        "set bell-style none\nset enable-bracketed-paste off\nset show-all-if-ambiguous on\nset page-completions off\n"
        "set completion-query-items 0\n",
        file);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "PATH=%.*s:%s", (int)(slash - heapwise_path()), heapwise_path(), getenv("PATH"));
    char variable[4200];
    snprintf(variable, sizeof variable, "INPUTRC=%s", inputrc);
    const char *const environment[] = {path, variable, "TERM=dumb", "HISTFILE=/dev/null", NULL};
    struct run_result result =
        run((const char *const[]){"script", "-qec", "bash --norc --noprofile -i", "/dev/null", NULL},
            &(struct run_options){.environment = environment, .directory = directory, .input = keys, .timeout_s = 30});
    free(inputrc);
    return result;
}

static void test_bash(void **state)
{
    if (!have_command("script") || !have_command("bash"))
        SKIP("there is no script(1)");
    char *directory = make_directory(), keys[6000];
    char *profile = join_path(directory, "only-one.hwprof");
    struct run_result result = heapwise((const char *const[]){"record", "-o", profile, "--", "/bin/true", NULL}, NULL);
    assert_exit(&result, 0, "record");
    run_result_free(&result);
    /* verb, "=value", file */
    snprintf(keys, sizeof keys, "PS1=; source '%s'\nheapwise exp\t--format=cs\tonl\t\nexit\n", BASH);
    result = type(directory, keys);
    assert_contains(result.out, "id,function,file,line,module");
    run_result_free(&result);
    /* a value as a word of its own */
    snprintf(keys, sizeof keys,
             "PS1=; source '%s'\nheapwise export --form\tdh\tonl\t\nheapwise export --format prof\tonl\t\nexit\n",
             BASH);
    result = type(directory, keys);
    assert_contains(result.out, "\"dhatFileVersion\":2");
    assert_contains(result.out, "profdata is not for a terminal");
    run_result_free(&result);
    /* the command that is recorded, and its arguments */
    snprintf(keys, sizeof keys, "PS1=; source '%s'\nheapwise rec\t-o new.hwprof -- ech\tonl\t\nexit\n", BASH);
    result = type(directory, keys);
    char *made = join_path(directory, "new.hwprof");
    if (access(made, R_OK) != 0)
        fail_msg("nothing was recorded:\n%s", result.out);
    assert_contains(result.out, "only-one.hwprof");
    run_result_free(&result);
    free(made);
    free(profile);
    remove_directory(directory);
}

static void test_fish(void **state)
{
    static const struct {
        const char *line, *offered;
    } cases[] = {{"heapwise exp", "export"},
                 {"heapwise export --format sp", "speedscope"},
                 {"heapwise export --format=sq", "--format=sqlite"},
                 {"heapwise check --max-l", "--max-leaked"},
                 {"heapwise report only", "only-one.hwprof"},
                 {"heapwise record -- ec", "echo"}};
    if (!have_command("fish"))
        SKIP("there is no fish");
    char *directory = make_directory(), path[4200];
    char *profile = join_path(directory, "only-one.hwprof");
    FILE *file = fopen(profile, "w");
    assert_non_null(file);
    fclose(file);
    const char *slash = strrchr(heapwise_path(), '/');
    snprintf(path, sizeof path, "PATH=%.*s:%s", (int)(slash - heapwise_path()), heapwise_path(), getenv("PATH"));
    char home[4200];
    snprintf(home, sizeof home, "HOME=%s", directory);
    const char *const environment[] = {path, home, NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[9000];
        snprintf(command, sizeof command, "source '%s'; complete -C '%s'", FISH, cases[i].line);
        struct run_result result = run((const char *const[]){"fish", "-N", "-c", command, NULL},
                                       &(struct run_options){.environment = environment, .directory = directory});
        if (!has_line(result.out, cases[i].offered))
            fail_msg("%s: no '%s':\n%s%s", cases[i].line, cases[i].offered, result.out, result.err);
        run_result_free(&result);
    }
    free(profile);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_candidates), cmocka_unit_test(test_all_options), cmocka_unit_test(test_syntax_bash),
          cmocka_unit_test(test_syntax_zsh), cmocka_unit_test(test_syntax_fish), cmocka_unit_test(test_bash),
          cmocka_unit_test(test_fish))
