/* view_locks.c - locks that were used inside operations of the allocator, with their names: the variable that a lock is
 * or lies in, where it is data of an executable or library. */
#include <stdlib.h>

#include "report/view/view.h"

const struct hw_data_symbol *hw_view_symbol_at(const struct hw_data *data, uint64_t address)
{
    size_t low = 0, high = data->symbol_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (data->symbol[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct hw_data_symbol *symbol = low ? &data->symbol[low - 1] : NULL;
    return symbol && address - symbol->address < symbol->size ? symbol : NULL;
}

bool hw_view_make_locks(struct hw_view *view, const uint32_t *module_of, const struct hw_view_options *options,
                        struct hw_error *error)
{
    const struct hw_profile_allocator *observed = view->profile->observed;
    const size_t count = observed ? observed->inside.lock_count : 0;
    if (!count)
        return true;
    view->locks = calloc(count, sizeof *view->locks);
    if (!view->locks)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct hw_view_lock *lock = &view->locks[view->lock_count++];
        *lock = (struct hw_view_lock){.lock = &observed->inside.locks[i], .module = HW_NONE};
        if (lock->lock->map == HW_NONE)
            continue;
        lock->module = module_of[lock->lock->map];
        if (!hw_view_load_data(view, lock->module, options, error))
            return false;
        lock->symbol = hw_view_symbol_at(&view->data[lock->module], lock->lock->offset);
    }
    return true;
}
