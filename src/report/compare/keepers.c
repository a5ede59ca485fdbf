/* keepers.c - see keepers.h. */
#include "report/compare/keepers.h"

#include <stdlib.h>

#include "base/growing.h"
#include "base/order.h"
#include "report/view/keeps.h"

#define LEAST_SHARE 20 /* a twentieth, else pointers are put together */

static uint32_t place_of(const struct hw_kept_places *places, uint32_t kept)
{
    const uint32_t context = places->keeps->kept[kept].context;
    return context == HW_NONE || !places->place_of ? context : places->place_of[context];
}

static int compare_kept(const void *left, const void *right, void *closure)
{
    const struct hw_kept_places *places = closure;
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return HW_ORDER(place_of(places, a), place_of(places, b)) ?: HW_ORDER(a, b);
}

bool hw_kept_places_make(struct hw_kept_places *places, const struct hw_view_keeps *keeps, const uint32_t *place_of)
{
    *places = (struct hw_kept_places){.keeps = keeps, .place_of = place_of};
    if (!keeps)
        return true;
    places->kept = malloc((keeps->kept_count + 1) * sizeof *places->kept);
    for (size_t i = 0; places->kept && i < keeps->kept_count; i++)
        places->kept[i] = (uint32_t)i;
    if (places->kept)
        qsort_r(places->kept, keeps->kept_count, sizeof *places->kept, compare_kept, places);
    return places->kept;
}

void hw_kept_places_free(struct hw_kept_places *places)
{
    free(places->kept);
    *places = (struct hw_kept_places){0};
}

static int compare_keepers(const void *left, const void *right)
{
    const struct hw_place_keeper *a = left, *b = right;
    return HW_ORDER(a->keeper, b->keeper);
}

static int compare_keepers_by_bytes(const void *left, const void *right)
{
    const struct hw_place_keeper *a = left, *b = right;
    return HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->keeper, b->keeper);
}

/* Adds up entries of one keeper, and sorts by bytes; returns how many are left. */
static size_t join_keepers(struct hw_place_keeper *keepers, size_t count)
{
    size_t left = 0;
    qsort(keepers, count, sizeof *keepers, compare_keepers);
    for (size_t i = 0; i < count; i++) {
        if (!left || keepers[left - 1].keeper != keepers[i].keeper) {
            keepers[left++] = keepers[i];
            continue;
        }
        keepers[left - 1].blocks = hw_add_saturating(keepers[left - 1].blocks, keepers[i].blocks);
        keepers[left - 1].bytes = hw_add_saturating(keepers[left - 1].bytes, keepers[i].bytes);
    }
    qsort(keepers, left, sizeof *keepers, compare_keepers_by_bytes);
    return left;
}

/* The variable or thread that a pointer is in. */
static uint32_t owner_of(const struct hw_view_keeps *keeps, uint32_t keeper)
{
    const uint32_t kind = keeps->keepers[keeper].kind, parent = keeps->keepers[keeper].parent;
    const bool pointer = kind == HW_KEEPER_SLOT || kind == HW_KEEPER_TARGET || kind == HW_KEEPER_FRAME;
    return pointer && parent ? parent : keeper;
}

struct hw_place_keeper *hw_place_keepers(const struct hw_kept_places *places, uint32_t place, bool owners,
                                         size_t *count, uint64_t *bytes)
{
    const struct hw_view_keeps *keeps = places->keeps;
    size_t low = 0, high = keeps ? keeps->kept_count : 0, end;
    *count = 0;
    *bytes = 0;
    if (!keeps)
        return NULL;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (place_of(places, places->kept[middle]) < place)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < keeps->kept_count && place_of(places, places->kept[end]) == place;)
        end++;
    struct hw_place_keeper *keepers = malloc((end - low + 1) * sizeof *keepers);
    for (size_t i = low; keepers && i < end; i++) {
        const struct hw_view_kept *kept = &keeps->kept[places->kept[i]];
        keepers[i - low] =
            (struct hw_place_keeper){owners ? owner_of(keeps, kept->keeper) : kept->keeper, kept->blocks, kept->bytes};
        *bytes = hw_add_saturating(*bytes, kept->bytes);
    }
    *count = keepers ? join_keepers(keepers, end - low) : 0;
    return keepers;
}

bool hw_keepers_scattered(const struct hw_place_keeper *keepers, size_t count, uint64_t bytes)
{
    return count && keepers[0].bytes < bytes / LEAST_SHARE;
}
