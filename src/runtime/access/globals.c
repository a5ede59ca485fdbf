/* globals.c - accesses to data of executables and libraries: one entry for each granule that was touched.
 *
 * Which segments there are is learnt when modules.c sees a module, because the dynamic linker cannot be asked under the
 * lock. Entries of libraries that are gone come first in the section and stay; what follows is written anew by each
 * harvest. */
#include "runtime/access/counting.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"

#include <link.h>

#define SEGMENTS_MOST 8
#define MODULES_MOST  4096

static struct {
    struct module {
        uintptr_t bias;
        uint32_t map;
        uint32_t count;
        bool gone;
        struct {
            uintptr_t start, end;
        } segment[SEGMENTS_MOST];
    } * module;
    uint32_t count;
    uint32_t kept; /* entries of modules that are gone */
} globals;

void hw_globals_module(uint32_t map, uintptr_t bias, const void *program_headers, size_t header_count)
{
    if (map == HW_NONE || !hw_shadow.base)
        return;
    if (!globals.module)
        globals.module = hw_own_pages(MODULES_MOST * sizeof *globals.module, false);
    if (!globals.module || globals.count == MODULES_MOST)
        return;
    const ElfW(Phdr) *headers = program_headers;
    struct module module = {.bias = bias, .map = map};
    for (size_t i = 0; i < header_count; i++)
        if (headers[i].p_type == PT_LOAD && module.count < SEGMENTS_MOST) {
            module.segment[module.count].start = bias + headers[i].p_vaddr;
            module.segment[module.count++].end = bias + headers[i].p_vaddr + headers[i].p_memsz;
        }
    for (uint32_t i = 0; i < globals.count; i++)
        if (globals.module[i].map == map ||
            (!globals.module[i].gone && globals.module[i].segment[0].start == module.segment[0].start))
            return; /* a second executable segment of the same module */
    globals.module[globals.count++] = module;
}

static const struct module *present; /* the one that granules are counted for */
static uintptr_t last_granule;       /* two segments may share one */

static void add_granule(uintptr_t address, const struct hw_global_granule *counts)
{
    if (address == last_granule)
        return;
    last_granule = address;
    uint32_t index = hw_pool_take(HW_POOL_GLOBALS, 1);
    if (index == HW_NONE)
        return;
    struct hw_global_granule *entry = HW_ENTRY(HW_POOL_GLOBALS, struct hw_global_granule, index);
    *entry = *counts;
    entry->map = present->map;
    entry->offset = address - present->bias;
}

static void harvest(const struct module *module, bool take)
{
    present = module;
    last_granule = 0;
    for (uint32_t i = 0; i < module->count; i++)
        hw_cells_each_granule(module->segment[i].start, module->segment[i].end, take, add_granule);
}

static bool is_unloaded(const struct module *module)
{
    return HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, module->map)->unloaded_tick != 0;
}

void hw_globals_gone(void)
{
    if (!hw_access_on() || !hw_pools[HW_POOL_GLOBALS].base)
        return;
    bool any = false;
    for (uint32_t i = 0; i < globals.count; i++)
        any |= !globals.module[i].gone && is_unloaded(&globals.module[i]);
    if (!any)
        return;
    hw_pool_set_count(HW_POOL_GLOBALS, globals.kept);
    for (uint32_t i = 0; i < globals.count; i++) {
        struct module *module = &globals.module[i];
        if (module->gone || !is_unloaded(module))
            continue;
        module->gone = true;
        harvest(module, true);
    }
    hw_pool_publish(HW_POOL_GLOBALS);
    globals.kept = (uint32_t)HW_ENTRIES(HW_POOL_GLOBALS);
}

void hw_globals_harvest(void)
{
    hw_globals_gone();
    hw_pool_set_count(HW_POOL_GLOBALS, globals.kept);
    for (uint32_t i = 0; i < globals.count; i++)
        if (!globals.module[i].gone)
            harvest(&globals.module[i], false);
    hw_pool_publish(HW_POOL_GLOBALS);
}

void hw_globals_forget_harvest(void)
{
    hw_pool_set_count(HW_POOL_GLOBALS, globals.kept);
}

/* Counts from zero: after a reset, and in a forked child. */
void hw_globals_reset(void)
{
    globals.kept = 0;
    if (hw_access_on() && hw_pools[HW_POOL_GLOBALS].base)
        hw_pool_set_count(HW_POOL_GLOBALS, 0);
}
