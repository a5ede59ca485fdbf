/* demangle.c - readable names of functions and variables of C++ and Rust.
 *
 * A seam around libiberty, so that its headers and flags stand in one place. */
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "symbols/symbols_internal.h"

/* Longer names come from damaged files or are useless to a reader; the demangler's time grows faster than the name. */
enum { LONGEST_NAME = 1 << 16 };

/* Only names that announce their scheme: the demangler would also read "i" as the type int. */
static bool is_mangled(const char *name)
{
    return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 || strncmp(name, "___Z", 4) == 0 ||
           strncmp(name, "_GLOBAL_", 8) == 0;
}

char *hw_demangle(const char *linkage_name)
{
    if (!is_mangled(linkage_name) || strnlen(linkage_name, LONGEST_NAME) == LONGEST_NAME)
        return NULL;
    char *readable = cplus_demangle(linkage_name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
    /* Parts that the compiler split off (.cold, .isra.0) are the same function to a reader of source. */
    char *clone = readable ? strstr(readable, " [clone ") : NULL;
    if (clone)
        *clone = '\0';
    /* Rust's thread_local! puts the variable into functions and constants of its own. */
    char *local = readable ? strstr(readable, "::__RUST_STD_INTERNAL_VAL") : NULL;
    char *outer = local ? strstr(readable, "::{") : NULL;
    if (local)
        *(outer && outer < local ? outer : local) = '\0';
    return readable;
}

char *hw_readable_name(const char *linkage_name)
{
    return hw_demangle(linkage_name);
}
