/* fields.c - counters of fields of structs (base/abi.h): what they mean, and their way into the profile.
 *
 * A module's counters are a run of words of 64 bits in every plane, in the shadow of addresses that no program has:
 * those that the planes themselves take. So they are of each thread's own, like cells, and never are one.
 *
 * The tables of modules are copied into the sections of the profile when they are registered: structs of one identity
 * once, strings once. A harvest writes the sums over all planes over those of the one before: a counter only rises. */
#include "base/abi.h"
#include "runtime/access/counting.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"

#define FIELDS_ADDRESS (0x0a0000000000ul - 0x800000000ul) /* 10 TiB - 32 GiB; up to the scratch counters' */
#define COUNTERS_MOST  (1u << 24)
#define STRINGS_KNOWN  (1u << 18) /* slots of a table: a power of two */
#define STRUCTS_KNOWN  (1u << 16)

static struct {
    uint32_t counters;     /* handed out */
    uint32_t scratch_most; /* the greatest number of counters of a module */
    uint32_t modules;
    uint64_t groups_lost;
    uint32_t *counter_of; /* by group */
    uint32_t *group_of;   /* by counter: its first group + 1 */
    uint32_t *strings;    /* offsets, by hash; 0: free */
    uint32_t *structs;    /* index + 1, by identity; 0: free */
    struct types {
        uint64_t first, second;
        uint32_t entry; /* of the first */
    } * types;          /* by MIB: those that are in the file */
} fields;

uintptr_t hw_fields_counter(uintptr_t plane, uint32_t counter)
{
    return plane + (FIELDS_ADDRESS >> 3) + 8 * (uintptr_t)counter;
}

/* ---- tables ---- */

static uint32_t string(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    if (!*text)
        return 0;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    for (uint32_t n = 0; n < 16; n++) {
        uint32_t *slot = &fields.strings[(hash + n) % STRINGS_KNOWN];
        if (*slot && hw_streq(hw_pools[HW_POOL_STRINGS].base + *slot, text))
            return *slot;
        if (!*slot)
            return *slot = hw_file_string(text);
    }
    return hw_file_string(text);
}

/* A table under registration, checked: the module is trusted, but one that is cut must do no harm. */
struct table {
    const struct hw_fields_table *header;
    const struct hw_struct *structs;
    const struct hw_field *fields;
    const struct hw_field_group *groups;
    const struct hw_group_member *members;
    const char *strings;
    uint32_t *struct_of, *field_of; /* in the profile, by index */
    uint32_t first_counter;
};

static const char *text_at(const struct table *table, uint32_t offset)
{
    return offset < table->header->string_bytes ? table->strings + offset : "";
}

static struct table take_apart(const struct hw_fields_table *header)
{
    struct table table = {.header = header};
    table.structs = (const struct hw_struct *)(header + 1);
    table.fields = (const struct hw_field *)(table.structs + header->structs);
    table.groups = (const struct hw_field_group *)(table.fields + header->fields);
    table.members = (const struct hw_group_member *)(table.groups + header->groups);
    table.strings = (const char *)(table.members + header->members);
    return table;
}

/* The slot of the struct with this identity, or a free one; NULL: the table is full. */
static uint32_t *slot_of(uint64_t identity)
{
    for (uint32_t n = 0; n < 64; n++) {
        uint32_t *slot = &fields.structs[(identity + n) % STRUCTS_KNOWN];
        if (!*slot || HW_ENTRY(HW_POOL_STRUCTS, struct hw_struct, *slot - 1)->identity == identity)
            return slot;
    }
    return NULL;
}

static bool add_struct(struct table *table, uint32_t i)
{
    const struct hw_struct *from = &table->structs[i];
    uint32_t *slot = slot_of(from->identity);
    struct hw_struct *known = slot && *slot ? HW_ENTRY(HW_POOL_STRUCTS, struct hw_struct, *slot - 1) : NULL;
    if (known && known->field_count == from->field_count) {
        table->struct_of[i] = *slot - 1;
        known->flags |= from->flags;
        for (uint32_t n = 0; n < from->field_count; n++) {
            table->field_of[from->first_field + n] = known->first_field + n;
            HW_ENTRY(HW_POOL_FIELDS, struct hw_field, known->first_field + n)->flags |=
                table->fields[from->first_field + n].flags;
        }
        return true;
    }
    uint32_t first = from->field_count ? hw_pool_take(HW_POOL_FIELDS, from->field_count) : 0;
    uint32_t index = first == HW_NONE ? HW_NONE : hw_pool_take(HW_POOL_STRUCTS, 1);
    if (index == HW_NONE)
        return false;
    for (uint32_t n = 0; n < from->field_count; n++) {
        struct hw_field *to = HW_ENTRY(HW_POOL_FIELDS, struct hw_field, first + n);
        *to = table->fields[from->first_field + n];
        to->name = string(text_at(table, to->name));
        to->type_name = string(text_at(table, to->type_name));
        to->declaration = string(text_at(table, to->declaration));
        table->field_of[from->first_field + n] = first + n;
    }
    hw_pool_publish(HW_POOL_FIELDS);
    struct hw_struct *to = HW_ENTRY(HW_POOL_STRUCTS, struct hw_struct, index);
    *to = *from;
    to->name = string(text_at(table, from->name));
    to->file = string(text_at(table, from->file));
    to->first_field = first;
    hw_pool_publish(HW_POOL_STRUCTS);
    table->struct_of[i] = index;
    if (slot && !*slot)
        *slot = index + 1;
    return true;
}

static bool add_groups(struct table *table)
{
    const struct hw_fields_table *header = table->header;
    uint32_t members = header->members ? hw_pool_take(HW_POOL_GROUP_MEMBERS, header->members) : 0;
    uint32_t groups = members == HW_NONE ? HW_NONE : hw_pool_take(HW_POOL_FIELD_GROUPS, header->groups);
    if (groups == HW_NONE || groups + header->groups > COUNTERS_MOST)
        return false;
    for (uint32_t i = 0; i < header->members; i++) {
        struct hw_group_member *to = HW_ENTRY(HW_POOL_GROUP_MEMBERS, struct hw_group_member, members + i);
        *to = table->members[i];
        if (to->field != HW_NONE)
            to->field = table->field_of[to->field];
    }
    hw_pool_publish(HW_POOL_GROUP_MEMBERS);
    for (uint32_t i = 0; i < header->groups; i++) {
        struct hw_field_group *to = HW_ENTRY(HW_POOL_FIELD_GROUPS, struct hw_field_group, groups + i);
        *to = table->groups[i];
        uint32_t counter = table->first_counter + (uint32_t)to->executions;
        to->executions = 0;
        to->structure = to->structure == HW_NONE ? HW_NONE : table->struct_of[to->structure];
        to->function = string(text_at(table, to->function));
        to->file = string(text_at(table, to->file));
        to->first_member += members;
        fields.counter_of[groups + i] = counter;
        if (!fields.group_of[counter])
            fields.group_of[counter] = groups + i + 1;
    }
    hw_pool_publish(HW_POOL_FIELD_GROUPS);
    return true;
}

static bool add_table(const struct hw_fields_table *header, uint32_t first_counter)
{
    struct table table = take_apart(header);
    size_t bytes = HW_ALIGN_UP((header->structs + (size_t)header->fields + 1) * sizeof(uint32_t), HW_PAGE);
    table.first_counter = first_counter;
    table.struct_of = hw_pages(bytes);
    if (!table.struct_of)
        return false;
    table.field_of = table.struct_of + header->structs;
    bool fine = true;
    for (uint32_t i = 0; i < header->structs && fine; i++)
        fine = add_struct(&table, i);
    fine = fine && add_groups(&table);
    hw_munmap(table.struct_of, bytes);
    return fine;
}

static void write_info(void)
{
    struct hw_fields_info *info = HW_ENTRY(HW_POOL_FIELDS_INFO, struct hw_fields_info, 0);
    info->modules = fields.modules;
    info->groups = HW_ENTRIES(HW_POOL_FIELD_GROUPS);
    info->groups_lost = fields.groups_lost;
}

/* Modules register when they are loaded, from a constructor. */
HW_EXPORTED(void, __heapwise_fields_v1, (const struct hw_fields_table *table, uint64_t *base))
{
    hw_start();
    if (!hw_shadow.base)
        hw_shadow_refuse("no address space to count fields in (ulimit -v?): a library was built by heapwise cc", NULL);
    if (table->version != HW_ABI_FIELDS_VERSION ||
        table->entry_bytes != sizeof(struct hw_struct) + sizeof(struct hw_field) + sizeof(struct hw_field_group) +
                                  sizeof(struct hw_group_member))
        hw_shadow_refuse("this program was built for another version of Heapwise: build it again with heapwise cc",
                         NULL);
    if (hw_runtime.state == HW_STATE_ON && hw_fork_pending())
        hw_fork_child();
    if (hw_runtime.state != HW_STATE_ON)
        return; /* it counts into the scratch counters for good */
    bool late = !hw_shadow.fields;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    bool fine = !late || (hw_file_add_fields() && (hw_shadow.fields = 1, hw_fields_start()));
    uint32_t first = fields.counters;
    fine = fine && table->counters <= COUNTERS_MOST - first && add_table(table, first);
    if (fine) {
        fields.counters += table->counters;
        fields.modules++;
        __atomic_store_n(base, (FIELDS_ADDRESS >> 3) + 8 * (uint64_t)first, __ATOMIC_RELEASE);
    } else
        fields.groups_lost += table->groups;
    if (table->counters > fields.scratch_most)
        fields.scratch_most = table->counters;
    if (hw_pools[HW_POOL_FIELDS_INFO].used)
        write_info();
    hw_lock_drop(&hw_runtime.lock, old);
    if (!fine)
        hw_note(HW_NOTE_FILE_FULL, hw_file_problem());
    if (late) {
        hw_shadow_attach();
        hw_signals_start();
    }
    hw_windows_start();
}

/* A library for all programs, which knows none of their types: what it is given as an address is none of its business.
 */
static bool is_c_library(const struct hw_map_entry *map)
{
    const char *path = hw_pools[HW_POOL_STRINGS].base + map->path, *name = path;
    for (; *path; path++)
        name = *path == '/' ? path + 1 : name;
    return (map->flags & HW_MAP_ALLOCATOR) || hw_starts_with(name, "libc.") || hw_starts_with(name, "libpthread.") ||
           hw_starts_with(name, "ld-");
}

HW_EXPORTED(void, __heapwise_outside_v1, (const struct hw_outside *list, uint32_t count))
{
    if (hw_runtime.state != HW_STATE_ON || !hw_shadow.fields || !fields.structs)
        return;
    for (; count; count--, list++) {
        const struct hw_module *module = list->function ? hw_module_find((uintptr_t)list->function) : NULL;
        if (!module || module->map == HW_NONE)
            continue;
        const struct hw_map_entry *map = HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, module->map);
        if (!(map->flags & HW_MAP_NOTES_READ) || (map->flags & (HW_MAP_COUNTS_FIELDS | HW_MAP_RUNTIME)) ||
            (!list->typed && is_c_library(map)))
            continue;
        hw_sigset old = hw_lock_take(&hw_runtime.lock);
        const uint32_t *slot = slot_of(list->identity);
        if (slot && *slot)
            HW_ENTRY(HW_POOL_STRUCTS, struct hw_struct, *slot - 1)->flags |= HW_STRUCT_OUTSIDE;
        hw_lock_drop(&hw_runtime.lock, old);
    }
}

/* ---- harvest ---- */

static uint64_t sum_of(uintptr_t offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++)
        sum += __atomic_load_n((const uint64_t *)(hw_shadow.plane[i] + offset), __ATOMIC_RELAXED);
    return sum;
}

void hw_fields_harvest_counters(uint32_t first, uint32_t end)
{
    uint32_t groups = (uint32_t)HW_ENTRIES(HW_POOL_FIELD_GROUPS);
    for (uint32_t counter = first; counter < end; counter++) {
        uint32_t group = fields.group_of[counter];
        if (!group)
            continue;
        uint64_t executions = sum_of(hw_fields_counter(0, counter));
        for (group--; group < groups && fields.counter_of[group] == counter; group++)
            HW_ENTRY(HW_POOL_FIELD_GROUPS, struct hw_field_group, group)->executions = executions;
    }
}

uint32_t hw_fields_counters(void)
{
    return fields.counters;
}

uint32_t hw_fields_first_group(uint32_t counter)
{
    return fields.group_of[counter] - 1;
}

bool hw_fields_has_counter(uint32_t group, uint32_t counter)
{
    return group < HW_ENTRIES(HW_POOL_FIELD_GROUPS) && fields.counter_of[group] == counter;
}

void hw_fields_harvest(bool stopped)
{
    if (!hw_pools[HW_POOL_FIELDS_INFO].used)
        return;
    struct hw_fields_info *info = HW_ENTRY(HW_POOL_FIELDS_INFO, struct hw_fields_info, 0);
    hw_fields_harvest_counters(0, fields.counters);
    info->before_registration = 0;
    for (uint32_t i = 0; i < fields.scratch_most; i++)
        info->before_registration += sum_of(HW_ABI_FIELDS_SCRATCH + 8 * (uintptr_t)i);
    info->harvest_tick = hw_ticks_raw() - hw_runtime.tick_base;
    write_info();
}

static void forget(void)
{
    hw_pool_set_count(HW_POOL_FIELD_WINDOWS, 0);
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_FIELD_GROUPS); i++)
        HW_ENTRY(HW_POOL_FIELD_GROUPS, struct hw_field_group, i)->executions = 0;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_CONTEXT_TYPES); i++)
        for (int k = 0; k < 8; k++)
            HW_ENTRY(HW_POOL_CONTEXT_TYPES, struct hw_context_type, i)->starts[k] = 0;
    hw_windows_reset();
}

void hw_fields_reset(void)
{
    if (!hw_pools[HW_POOL_FIELDS_INFO].used)
        return;
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++) {
        hw_madvise(hw_fields_counter(hw_shadow.plane[i], 0), HW_ALIGN_UP(8ul * fields.counters, HW_PAGE),
                   MADV_DONTNEED);
        hw_madvise(hw_shadow.plane[i] + HW_ABI_FIELDS_SCRATCH, HW_ALIGN_UP(8ul * fields.scratch_most, HW_PAGE),
                   MADV_DONTNEED);
    }
    forget();
    struct hw_fields_info *info = HW_ENTRY(HW_POOL_FIELDS_INFO, struct hw_fields_info, 0);
    info->before_registration = info->windows = 0;
}

/* ---- types of blocks ---- */

/* Of more than two nothing more is said than that they differ. */
static __attribute__((noinline)) void add_type(struct types *types, uint32_t context, uint64_t type)
{
    if (types->second)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t entry = hw_pool_take(HW_POOL_CONTEXT_TYPES, 1);
    if (entry != HW_NONE) {
        *HW_ENTRY(HW_POOL_CONTEXT_TYPES, struct hw_context_type, entry) =
            (struct hw_context_type){.context = context, .type = type};
        hw_pool_publish(HW_POOL_CONTEXT_TYPES);
        if (!types->first)
            types->entry = entry;
        *(types->first ? &types->second : &types->first) = type;
    }
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_fields_allocated(const struct hw_mib *mib, const void *address)
{
    uint64_t type = __heapwise_type;
    if (hw_unlikely(!hw_self_plane))
        hw_shadow_attach();
    if (hw_likely(!type))
        return;
    __heapwise_type = 0;
    if (hw_access_on() || !fields.types)
        return;
    struct types *types = &fields.types[mib - HW_ENTRY(HW_POOL_MIBS, struct hw_mib, 0)];
    if (hw_unlikely(types->first != type) && types->second != type)
        add_type(types, mib->context, type);
    if (hw_likely(types->first == type)) /* the MIB is this thread's */
        HW_ENTRY(HW_POOL_CONTEXT_TYPES, struct hw_context_type, types->entry)->starts[(uintptr_t)address >> 3 & 7]++;
}

/* ---- start ---- */

bool hw_fields_start(void)
{
    if (!fields.counter_of) {
        fields.counter_of = hw_own_pages(COUNTERS_MOST * sizeof *fields.counter_of, false);
        fields.group_of = hw_own_pages(COUNTERS_MOST * sizeof *fields.group_of, false);
        fields.strings = hw_own_pages(STRINGS_KNOWN * sizeof *fields.strings, false);
        fields.structs = hw_own_pages(STRUCTS_KNOWN * sizeof *fields.structs, false);
        fields.types =
            hw_own_pages(hw_pools[HW_POOL_MIBS].reserved / sizeof(struct hw_mib) * sizeof *fields.types, true);
    }
    if (!fields.counter_of || !fields.group_of || !fields.strings || !fields.structs)
        return false;
    if (HW_ENTRIES(HW_POOL_FIELDS_INFO) == 0 && hw_pool_take(HW_POOL_FIELDS_INFO, 1) == HW_NONE)
        return false;
    hw_pool_publish(HW_POOL_FIELDS_INFO);
    write_info();
    hw_shadow_threads_start();
    return true;
}

/* The tables of modules are in the child's file, too; its counters, which are the planes', are zero. */
void hw_fields_fork(void)
{
    hw_fields_start();
    hw_windows_fork();
    forget();
    hw_windows_start();
}
