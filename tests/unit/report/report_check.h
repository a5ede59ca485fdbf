/* report_check.h - reports on profiles made by hand, and golden texts. */
#ifndef HW_TESTS_REPORT_CHECK_H
#define HW_TESTS_REPORT_CHECK_H

#include "report_sample.h"

#include "report/buffer.h"
#include "report/report.h"
#include "support/check.h"
#include "test_config.h"

/* ---- a profile, its view, its report ---- */

struct reported {
    struct hw_profile *profile;
    struct hw_view *view;
};

HELPER struct reported open_image(struct image image)
{
    struct memory_file file = memory_file(image.bytes, image.size);
    struct hw_error error = {""};
    struct reported reported = {.profile = hw_profile_read(file.path, &error)};
    close(file.fd);
    image_free(&image);
    if (!reported.profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < reported.profile->problem_count; i++)
        fail_msg("%s", reported.profile->problems[i]);
    const struct hw_view_options options = {.resolve = sample_resolve, .data = sample_data, .type = sample_type};
    reported.view = hw_view_new(reported.profile, &options, &error);
    if (!reported.view)
        fail_msg("%s", error.message);
    return reported;
}

HELPER struct reported open_sample(struct report_sample *sample, bool sealed)
{
    return open_image(report_image(sample, sealed));
}

HELPER void close_sample(struct reported *reported)
{
    hw_view_free(reported->view);
    hw_profile_free(reported->profile);
}

typedef bool report_function(const struct hw_view *, const struct hw_report_options *, FILE *, struct hw_error *);

/* The report as a string, to be freed. The path of the memory file is not part of it. */
HELPER char *report_string(report_function *report, struct reported *reported, const struct hw_report_options *options)
{
    char *text = NULL, *path = reported->profile->path, name[] = "parser.4711.hwprof";
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct hw_error error = {""};
    assert_non_null(stream);
    reported->profile->path = name;
    const bool done = report(reported->view, options, stream, &error);
    reported->profile->path = path;
    fclose(stream);
    if (!done)
        fail_msg("%s", error.message);
    return text;
}

HELPER char *golden_path(const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/golden/%s", TEST_SOURCES, name) < 0)
        abort();
    return path;
}

HELPER void compare_with_golden(const char *name, const char *text)
{
    char *path = golden_path(name);
    const bool update = getenv("HEAPWISE_UPDATE_GOLDEN") != NULL;
    FILE *file = fopen(path, update ? "w" : "r");
    if (!file)
        fail_msg("cannot open %s", path);
    if (update) {
        fputs(text, file);
    } else {
        char *golden = NULL;
        size_t capacity = 0;
        if (getdelim(&golden, &capacity, '\0', file) < 0 || strcmp(golden, text))
            fail_msg("the report is not that of %s:\n%s", path, text);
        free(golden);
    }
    fclose(file);
    free(path);
}

HELPER size_t widest_line(const char *text)
{
    size_t widest = 0;
    while (*text) {
        const size_t size = strcspn(text, "\n");
        char *line = strndup(text, size);
        const size_t width = hw_text_width(line);
        widest = width > widest ? width : widest;
        free(line);
        text += size + (text[size] != '\0');
    }
    return widest;
}

#endif
