/* keepers.h - who keeps the blocks of a place, for reports that compare: keeps.h is about one moment alone. */
#ifndef HW_REPORT_COMPARE_KEEPERS_H
#define HW_REPORT_COMPARE_KEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_view_keeps;

/* What is kept, by place. Zero-initialised: keepers were not recorded. */
struct hw_kept_places {
    const struct hw_view_keeps *keeps;
    const uint32_t *place_of; /* by context; NULL: each context is a place */
    uint32_t *kept;           /* indexes of kept entries, by place */
};

/* KEEPS and PLACE_OF must outlive it. False when there is no memory. */
bool hw_kept_places_make(struct hw_kept_places *places, const struct hw_view_keeps *keeps, const uint32_t *place_of);
void hw_kept_places_free(struct hw_kept_places *places);

struct hw_place_keeper {
    uint32_t keeper;
    uint64_t blocks, bytes;
};

/* Who keeps the blocks of PLACE: most bytes first, to be freed; *COUNT of them, *BYTES of all blocks of it. OWNERS:
 * pointers are added up to the variables and threads that have them. NULL: there is no memory, or keepers were not
 * recorded (*COUNT is 0). */
struct hw_place_keeper *hw_place_keepers(const struct hw_kept_places *places, uint32_t place, bool owners,
                                         size_t *count, uint64_t *bytes);

/* Whether each pointer keeps little alone, so that owners say more. */
bool hw_keepers_scattered(const struct hw_place_keeper *keepers, size_t count, uint64_t bytes);

#endif
