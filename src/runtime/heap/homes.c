/* homes.c - numbers for pairs of a context and a slot; heap.h says what for. */
#include "runtime/core/memory.h"
#include "runtime/heap/heap.h"

struct hw_homes hw_homes;

/* A forked child keeps what it has. */
void hw_homes_start(void)
{
    if (hw_homes.of || hw_address_space_limited())
        return;
    hw_homes.of = hw_own_pages(2ul * HW_HOMES * sizeof *hw_homes.of, false);
    hw_homes.limit = hw_homes.of ? HW_HOMES : 0;
}

uint32_t hw_home_of_context(uint32_t context)
{
    const uint32_t home = HW_HOMES | (context & (HW_HOMES - 1));
    if (hw_homes.of)
        hw_homes.of[home] = (struct hw_home){home & (HW_HOMES - 1), HW_NONE};
    return home;
}

uint32_t hw_home_new(uint32_t context, uint32_t slot)
{
    if (hw_homes.count >= hw_homes.limit)
        return hw_home_of_context(context);
    hw_homes.of[hw_homes.count] = (struct hw_home){context, slot};
    return hw_homes.count++;
}
