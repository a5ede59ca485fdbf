/* fake_allocator.c - see fake_allocator.h. */
#include "support/fake_allocator.h"

#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <string.h>

char fake_allocator_option[4300], fake_settings_option[4300];
static char cache_variable[4200];
const char *fake_environment[] = {cache_variable, "LD_PRELOAD", NULL};

void write_fake_settings(const char *name, const char *text)
{
    char *folder = join_path(test_directory, name), path[4200], library[4100];
    snprintf(path, sizeof path, "mkdir -p '%s'", folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/fakemalloc.conf", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "[release]\nset = env FAKE_RELEASE\nvalues = 0 1\ndoes = Unmaps what is freed.\n%s", text);
    fclose(file);
    snprintf(library, sizeof library, "%s", need_program("libfakemalloc.so"));
    snprintf(fake_allocator_option, sizeof fake_allocator_option, "--allocator=fakemalloc=%s", library);
    snprintf(fake_settings_option, sizeof fake_settings_option, "--settings=%s", folder);
    snprintf(cache_variable, sizeof cache_variable, "XDG_CACHE_HOME=%s", test_directory);
    free(folder);
}

json_t *tuned(const char *const arguments[])
{
    struct run_result result =
        heapwise(arguments, &(struct run_options){.environment = fake_environment, .timeout_s = 500});
    assert_exit(&result, 0, run_describe(arguments));
    json_error_t error;
    json_t *object = json_loads(result.out, 0, &error);
    if (!object)
        fail_msg("%s: %s", error.text, result.out);
    run_result_free(&result);
    return object;
}

const json_t *configuration(const json_t *object, const char *label)
{
    return json_entry(object, "configurations", "configuration", label);
}

void check_excluded(const json_t *object, const char *label, const char *problem)
{
    const json_t *one = configuration(object, label);
    assert_string_equal(json_text(one, "state"), "excluded");
    assert_contains(json_text(one, "problem"), problem);
}

unsigned lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}
