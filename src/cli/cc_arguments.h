/* cc_arguments.h - what a compiler's command line asks for, as far as heapwise cc has to know it.
 *
 * Reads what clang and gcc have in common and where they differ believes both: an option that only one of them knows is
 * no harm to the other. Nothing is judged to be wrong here: that is the compiler's to say. */
#ifndef HW_CLI_CC_ARGUMENTS_H
#define HW_CLI_CC_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Where the compiler stops. */
enum hw_cc_stage {
    HW_CC_STAGE_PREPROCESS, /* -E, -M, -MM */
    HW_CC_STAGE_CHECK,      /* -fsyntax-only, --analyze: no code */
    HW_CC_STAGE_COMPILE,    /* -S, -c, --precompile */
    HW_CC_STAGE_PARTIAL,    /* -r: one object out of many */
    HW_CC_STAGE_LINK,
};

struct hw_cc_arguments {
    enum hw_cc_stage stage;
    bool asks;           /* --version, -print-…, -cc1: answered without reading files */
    size_t sources;      /* inputs that are compiled: C, C++, Objective C, IR, headers to be precompiled */
    size_t link_inputs;  /* inputs that end in the linker, sources and assembler included, headers not */
    bool fixed_static;   /* -static, -static-pie */
    bool other_machine;  /* not x86-64: -m32, --target=… */
    bool offload;        /* CUDA or HIP */
    bool memory_profile; /* clang's own */
    bool debug;          /* how much debug information is said, -g0 included */
    bool build_id;       /* whether the linker is asked for a build id */
    bool link_time_code; /* -flto */
    bool unsure_end;     /* a response file has "--": what comes behind it is a file */
    unsigned sanitizers; /* those in the way: bit i is hw_cc_sanitizers[i] */
    size_t options_end;  /* options can be put before argv[options_end]: there is "--" or the end */
};

/* The values of -fsanitize= whose libraries replace malloc, as ours does. NULL ends. */
extern const char *const hw_cc_sanitizers[];

/* Reads ARGV (ended by NULL, without the compiler's own name). Response files that cannot be read are what the compiler
 * takes them for: names of files. False: no memory, or response files in a circle. */
bool hw_cc_arguments_read(struct hw_cc_arguments *arguments, char *const argv[], struct hw_error *error);

/* Does WORD (an option, as written) take the next word as its value? */
bool hw_cc_takes_value(const char *word);

#endif
