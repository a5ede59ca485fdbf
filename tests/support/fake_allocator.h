/* fake_allocator.h - heapwise tune with programs/fakemalloc.c, whose settings have known effects. */
#ifndef TESTS_SUPPORT_FAKE_ALLOCATOR_H
#define TESTS_SUPPORT_FAKE_ALLOCATOR_H

#include <jansson.h>

/* Options of tune, and the environment of its runs; set by write_fake_settings. */
extern char fake_allocator_option[], fake_settings_option[];
extern const char *fake_environment[];

/* A folder NAME in test_directory with the settings: release, and those of TEXT. */
void write_fake_settings(const char *name, const char *text);

/* What heapwise with ARGUMENTS prints as JSON. */
json_t *tuned(const char *const arguments[]);
const json_t *configuration(const json_t *object, const char *label);
void check_excluded(const json_t *object, const char *label, const char *problem);
/* The lines of a file; 0: it is not there. */
unsigned lines_of(const char *path);

#endif
