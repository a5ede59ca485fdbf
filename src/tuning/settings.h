/* settings.h - the settings of allocators, as data: one file for each allocator, in share/heapwise/settings and in the
 * user's own ~/.config/heapwise/settings, which adds to it and replaces what has the same name. docs/settings.md
 * describes the files. */
#ifndef HW_TUNING_SETTINGS_H
#define HW_TUNING_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define HW_SETTING_TEXT       64 /* bytes of a name or a value, with the end */
#define HW_SETTING_VALUES     8  /* candidates of a setting at most */
#define HW_SETTING_CONDITIONS 4
#define HW_SETTINGS_KERNEL    "kernel" /* the "allocator" of settings that every program has */

/* How a setting reaches the program. */
enum hw_setting_way {
    HW_SETTING_ENV,     /* TARGET=value */
    HW_SETTING_TUNABLE, /* one of GLIBC_TUNABLES: TARGET=value, joined by ':' */
    HW_SETTING_CONF,    /* one of MALLOC_CONF: TARGET:value, joined by ',' */
    /* These before the program is executed: */
    HW_SETTING_PRCTL,     /* prctl(PR_SET_THP_DISABLE); the value is "off" */
    HW_SETTING_AFFINITY,  /* sched_setaffinity; the value is a list of processors */
    HW_SETTING_MEMPOLICY, /* set_mempolicy; the value is "interleave" */
};

/* Known facts by name, as conditions compare them: those of docs/settings.md. */
struct hw_known_fact {
    const char *name;
    double value; /* NAN: not known */
};

struct hw_known_facts {
    struct hw_known_fact of[32];
    size_t count;
};

/* "FACT > NUMBER" */
struct hw_setting_condition {
    char fact[HW_SETTING_TEXT];
    char compare; /* '>', '<' or '=' */
    double value;
};

struct hw_setting {
    char allocator[HW_SETTING_TEXT]; /* the file's name: "glibc"; HW_SETTINGS_KERNEL: of every program */
    char name[HW_SETTING_TEXT];      /* "arena_max" */
    enum hw_setting_way way;
    char target[HW_SETTING_TEXT];                    /* "glibc.malloc.arena_max", "narenas", "MIMALLOC_PURGE_DELAY" */
    char values[HW_SETTING_VALUES][HW_SETTING_TEXT]; /* worth a try; a configuration may have others */
    size_t value_count;
    bool on_request;            /* not tried unless it was asked for */
    char since[16], before[16]; /* versions that have it: since <= version < before; "": no limit */
    char does[256];             /* one sentence */
    struct hw_setting_condition when[HW_SETTING_CONDITIONS]; /* it may help only if all hold */
    size_t when_count;
    char otherwise[256]; /* why it is not tried when one does not hold; one sentence */
};

struct hw_settings {
    struct hw_setting *of; /* those of one file in its order; files by name */
    size_t count, room;
};

/* Adds the *.conf files of FOLDER. False with ERROR (file, line, reason). A folder that does not exist has none. */
bool hw_settings_add_folder(struct hw_settings *settings, const char *folder, struct hw_error *error);
/* The installed ones, then the user's own ($XDG_CONFIG_HOME/heapwise/settings, ~/.config/heapwise/settings), then those
 * of the folder ADDED (may be NULL, else it must exist). Free in any case. */
bool hw_settings_read(struct hw_settings *settings, const char *added, struct hw_error *error);
void hw_settings_free(struct hw_settings *settings);

/* The setting NAME of ALLOCATOR, or of the kernel; NULL: there is none. */
const struct hw_setting *hw_settings_find(const struct hw_settings *settings, const char *allocator, const char *name);

/* Whether VERSION ("5.3.0"; "": not known, taken as new enough) of its allocator has the setting. */
bool hw_setting_in_version(const struct hw_setting *setting, const char *version);

/* The settings of ALLOCATOR in VERSION, without the kernel's: pointers into SETTINGS, at most MOST. Returns their
 * number. The kernel's are those of HW_SETTINGS_KERNEL. */
size_t hw_settings_of(const struct hw_settings *settings, const char *allocator, const char *version,
                      const struct hw_setting **out, size_t most);

/* Whether the setting may help, by its conditions. What is not known does not speak against it. False: WHY (of SIZE
 * bytes) is a sentence with the setting's reason and the fact. */
bool hw_setting_may_help(const struct hw_setting *setting, const struct hw_known_facts *facts, char *why, size_t size);

/* Adds a fact, or replaces it. NAME stays the caller's. */
void hw_known_fact_set(struct hw_known_facts *facts, const char *name, double value);
double hw_known_fact(const struct hw_known_facts *facts, const char *name); /* NAN: not known */
/* Adds those of this machine: processors, numa-nodes, kernel-thp (0 never, 1 madvise, 2 always), huge-pages-free. */
void hw_known_facts_of_machine(struct hw_known_facts *facts);

/* Compares versions number by number: "2.9" < "2.10". Below 0, 0, above 0. */
int hw_version_compare(const char *a, const char *b);

#endif
