/* variables.h - how much the program uses its variables: what a compiler or a linker needs to lay out static data.
 *
 * Made of counted accesses to globals, or of sampled ones. A granule that holds parts of several variables counts for
 * those of them that are not larger than a granule, as an upper bound; for larger ones, which have granules of their
 * own, those decide. Variables of one name (static ones of several files) are one: a tool that takes names cannot
 * distinguish them. */
#ifndef HW_REPORT_EXPORT_VARIABLES_H
#define HW_REPORT_EXPORT_VARIABLES_H

#include "profile/llvm/llvm.h"
#include "report/buffer.h"
#include "report/view/view.h"

/* Hot are the variables most used that together have so many of 10000 accesses, and those with a count at its limit. */
#define HW_HOT_OF_10000 9999u
/* With fewer samples than this, no variable is called cold. */
#define HW_COLD_SAMPLES 1000u

/* HW_LLVM_SHARED: hot, and the granules it lies in are used by several threads and written (1 % of accesses or more):
 * packed with other hot variables it would slow down those who use them. HW_LLVM_USED: used, but little, or too few
 * samples to call it cold. */
struct hw_variable {
    const char *name; /* linkage name, not terminated */
    uint32_t name_size;
    uint32_t module;
    enum hw_llvm_use use;
    bool at_most;      /* the accesses are an upper bound */
    bool saturated;    /* a count was at its limit: they are a lower bound */
    uint64_t accesses; /* or samples */
    uint64_t writes;
    uint64_t address, size; /* as in the ELF file, of the first of that name */
};

struct hw_variables {
    struct hw_variable *variable; /* by use; then the most used first, cold ones by address */
    size_t count;
    bool known;                      /* accesses to globals were counted or sampled, and some module has symbols */
    bool sampled;                    /* accesses are samples */
    uint64_t accesses;               /* to data of all modules */
    uint64_t unnamed;                /* variables left out: no linkage name, or one that the tool does not know */
    size_t of_use[HW_LLVM_COLD + 1]; /* how many there are */
};

/* FOR_LLVM: names as LLVM compares them. Else names of symbols, as linkers have them. CHOSEN: by module. False when
 * there is no memory. */
bool hw_variables_make(struct hw_variables *variables, const struct hw_view *view, const bool *chosen, bool for_llvm);
void hw_variables_free(struct hw_variables *variables);

/* Appends sentences, each with "\n" at its end, about what was found, and which variables threads share. */
void hw_variables_notes(const struct hw_variables *variables, struct hw_buffer *out);

#endif
