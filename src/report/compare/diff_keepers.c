/* diff_keepers.c - who keeps the blocks of a place before and now: see diff.h. */
#include "report/compare/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/view/keeps.h"

static void add_name(const struct hw_diff *diff, enum hw_diff_side side, uint32_t keeper, struct hw_buffer *out)
{
    (diff->same_run ? hw_keeper_name : hw_keeper_plain_name)(diff->view[side], keeper, out);
}

void hw_diff_keeper_name(const struct hw_diff *diff, const struct hw_diff_keeper *keeper, struct hw_buffer *out)
{
    const enum hw_diff_side side = keeper->keeper[HW_NEW] != HW_NONE ? HW_NEW : HW_OLD;
    add_name(diff, side, keeper->keeper[side], out);
}

/* Appends what two keepers have in common if they are the same one. */
static void add_key(const struct hw_diff *diff, enum hw_diff_side side, uint32_t index, struct hw_buffer *out)
{
    const struct hw_view *view = diff->view[side];
    const struct hw_view_keeper *keeper = &view->keeps->keepers[index];
    const struct hw_view_module *module = keeper->module == HW_NONE ? NULL : &view->modules[keeper->module];
    const bool named =
        keeper->symbol ||
        (keeper->kind == HW_KEEPER_FRAME && keeper->location != HW_NONE &&
         view->locations[keeper->location].frames.count &&
         view->locations[keeper->location].frames.frame[view->locations[keeper->location].frames.count - 1].function);
    add_name(diff, side, index, out);
    if (!module)
        return;
    const char *so = strstr(module->name, ".so");
    hw_buffer_add(out, "\n%.*s", (int)(so ? (size_t)(so - module->name) + 3 : strlen(module->name)), module->name);
    if (!named && !diff->same_build[side][keeper->module])
        hw_buffer_add(out, "\n%d", (int)side);
}

/* The keepers of one profile, as pointers or as their owners; false when there is no memory. */
static bool read_side(const struct hw_diff *diff, enum hw_diff_side side, uint32_t place, bool owners,
                      struct hw_place_keeper **keepers, size_t *count, bool *scattered)
{
    uint64_t bytes;
    *keepers = hw_place_keepers(&diff->kept[side], place, owners, count, &bytes);
    *scattered |= hw_keepers_scattered(*keepers, *count, bytes);
    return *keepers || !diff->view[side]->keeps;
}

static bool read_sides(const struct hw_diff *diff, uint32_t place, bool owners,
                       struct hw_place_keeper *keepers[HW_SIDES], size_t counts[HW_SIDES], bool *scattered)
{
    *scattered = false;
    const bool old = read_side(diff, HW_OLD, place, owners, &keepers[HW_OLD], &counts[HW_OLD], scattered);
    return read_side(diff, HW_NEW, place, owners, &keepers[HW_NEW], &counts[HW_NEW], scattered) && old;
}

static int compare_by_change(const void *left, const void *right)
{
    const struct hw_diff_keeper *a = left, *b = right;
    const int64_t of_a = hw_diff_change(a->bytes[HW_OLD], a->bytes[HW_NEW]),
                  of_b = hw_diff_change(b->bytes[HW_OLD], b->bytes[HW_NEW]);
    return HW_ORDER(llabs(of_b), llabs(of_a)) ?: HW_ORDER(b->bytes[HW_NEW], a->bytes[HW_NEW]) ?:
           HW_ORDER(a->keeper[HW_NEW], b->keeper[HW_NEW]) ?: HW_ORDER(a->keeper[HW_OLD], b->keeper[HW_OLD]);
}

static void add(struct hw_diff_keeper *to, enum hw_diff_side side, const struct hw_place_keeper *from)
{
    if (to->keeper[side] == HW_NONE) /* the first has most */
        to->keeper[side] = from->keeper;
    to->blocks[side] = hw_add_saturating(to->blocks[side], from->blocks);
    to->bytes[side] = hw_add_saturating(to->bytes[side], from->bytes);
}

struct hw_diff_keeper *hw_diff_keepers(const struct hw_diff *diff, uint32_t place, size_t *count)
{
    struct hw_place_keeper *keepers[HW_SIDES];
    size_t counts[HW_SIDES];
    bool scattered;
    *count = 0;
    bool fine = read_sides(diff, place, false, keepers, counts, &scattered);
    if (fine && scattered) {
        free(keepers[HW_OLD]);
        free(keepers[HW_NEW]);
        fine = read_sides(diff, place, true, keepers, counts, &scattered);
    }
    struct hw_diff_keeper *joined = malloc((counts[HW_OLD] + counts[HW_NEW] + 1) * sizeof *joined);
    struct hw_intern names = {0};
    struct hw_buffer key = {0};
    fine = fine && joined;
    for (int side = 0; fine && side < HW_SIDES; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            hw_buffer_clear(&key);
            add_key(diff, side, keepers[side][i].keeper, &key);
            const size_t number = hw_intern(&names, hw_buffer_text(&key)); /* from 1 on: no name is empty */
            if (number > *count)
                joined[(*count)++] = (struct hw_diff_keeper){.keeper = {HW_NONE, HW_NONE}};
            if (number)
                add(&joined[number - 1], side, &keepers[side][i]);
        }
    fine = fine && !names.failed && !key.failed && (diff->view[HW_OLD]->keeps || diff->view[HW_NEW]->keeps);
    hw_intern_free(&names);
    hw_buffer_free(&key);
    free(keepers[HW_OLD]);
    free(keepers[HW_NEW]);
    if (fine) {
        qsort(joined, *count, sizeof *joined, compare_by_change);
        return joined;
    }
    free(joined);
    *count = 0;
    return NULL;
}
