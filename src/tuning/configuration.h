/* configuration.h - an allocator with settings, for a program: from a file, to an environment, in words.
 *
 * The file (tuned.conf) is text: lines "key = value", '#' begins a comment.
 *
 *     allocator = jemalloc        # "own": the program's own, as it is
 *     library = libjemalloc.so.2  # to preload; not needed for allocators that Heapwise knows
 *     narenas = 1                 # settings by their names
 *     kernel-thp = off
 */
#ifndef HW_TUNING_CONFIGURATION_H
#define HW_TUNING_CONFIGURATION_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "tuning/settings.h"

#define HW_CONFIGURATION_SETTINGS 16 /* at most */
#define HW_CONFIGURATION_OWN      "own"
#define HW_CONFIGURATION_LABEL    256

struct hw_configuration {
    char allocator[HW_SETTING_TEXT]; /* as it is called here; HW_CONFIGURATION_OWN: as the program brings it */
    char settings[HW_SETTING_TEXT];  /* whose settings it has; the same name, unless the user gave it another */
    char library[PATH_MAX];          /* first in LD_PRELOAD; "": nothing is preloaded */
    struct {
        const struct hw_setting *setting; /* of the struct hw_settings that it was made with */
        char value[HW_SETTING_TEXT];
    } of[HW_CONFIGURATION_SETTINGS];
    size_t count;
};

/* ALLOCATOR with LIBRARY (NULL or "": not preloaded) and no settings. SETTINGS_OF: whose settings it has (the name in
 * its facts); NULL: ALLOCATOR's. */
void hw_configuration_init(struct hw_configuration *configuration, const char *allocator, const char *settings_of,
                           const char *library);

/* "0-3,6". False: it is something else. Async-signal-safe. */
bool hw_processors_read(const char *text, cpu_set_t *processors);

/* Sets SETTING to VALUE, also if it or another one with the same target had a value. 128K, 4M and 1G become bytes where
 * candidates are numbers. False with ERROR when the value cannot be written into an environment, is not the number that
 * a tunable needs, or there are too many. */
bool hw_configuration_set(struct hw_configuration *configuration, const struct hw_setting *setting, const char *value,
                          struct hw_error *error);

bool hw_configuration_equal(const struct hw_configuration *a, const struct hw_configuration *b);

/* From TEXT; SOURCE stands for the file in messages. Without `library` the configuration has the library that Heapwise
 * knows for the allocator. False with ERROR (line and reason; an unknown setting with the known ones). */
bool hw_configuration_parse(struct hw_configuration *configuration, const struct hw_settings *settings,
                            const char *text, const char *source, struct hw_error *error);
bool hw_configuration_read(struct hw_configuration *configuration, const struct hw_settings *settings, const char *path,
                           struct hw_error *error);

/* The text of such a file, behind COMMENT (lines without '#', may be NULL). To be freed; NULL: no memory. */
char *hw_configuration_text(const struct hw_configuration *configuration, const char *comment);

/* "jemalloc, narenas 1, thp always"; "as it is" for the program's own without settings. */
void hw_configuration_label(const struct hw_configuration *configuration, char *out, size_t size);

/* ---- giving it to a program ---- */

/* The variables that the configuration needs, without what the environment has: "NAME=VALUE", LD_PRELOAD first. Ended
 * by NULL; NULL: no memory. */
char **hw_configuration_variables(const struct hw_configuration *configuration);
/* A copy of BASE (as environ) with them: LD_PRELOAD before the one in BASE, GLIBC_TUNABLES and MALLOC_CONF joined with
 * it (ours win), others replaced. Ended by NULL; NULL: no memory. */
char **hw_configuration_environment(const struct hw_configuration *configuration, char *const *base);
/* Of both; may be NULL. */
void hw_configuration_strings_free(char **strings);

/* Whether the environment leaves the program the allocator that CONFIGURATION has settings for, where none is
 * preloaded. False with ERROR: LD_PRELOAD has another one. */
bool hw_configuration_reaches(const struct hw_configuration *configuration, struct hw_error *error);

/* What is not in the environment: the kernel's settings of the calling process, which keeps them over execve. To be
 * called in the child. Async-signal-safe. False with errno. */
bool hw_configuration_enter(const struct hw_configuration *configuration);

#endif
