/* modules.c - which code is mapped where, over the whole run.
 *
 * Two ways to learn of it. hw_modules_rescan asks the dynamic linker; only where the program could ask it too (start,
 * dlclose, exit), because that takes the linker's lock. hw_module_find meets unknown code inside a hook: it reads
 * /proc/self/maps and the ELF header in memory, which takes no lock at all.
 *
 * The list that readers use is immutable and replaced as a whole; old lists are left alone, since a reader may still
 * hold one. Every segment ever seen stays in the MAPS section, with the time it went. */
#include "base/abi.h"
#include "profile/static_program.h"
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"
#include "runtime/stacks/stacks.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

extern unsigned long getauxval(unsigned long) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));
extern void *dlopen(const char *, int) __attribute__((weak));
extern int dladdr1(const void *, Dl_info *, void **, int) __attribute__((weak));
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));

static struct {
    struct hw_modules *list;
    uint64_t last_look; /* ticks: reading maps is not repeated for ever for code that cannot be found */
    uint64_t look_distance;
} modules;

static struct hw_modules no_modules;

/* ---- one image ---- */

struct image {
    uintptr_t bias;
    const ElfW(Phdr) * headers;
    size_t header_count;
    const char *path;
    uint32_t flags;
    bool linked; /* the dynamic linker knows it */
    size_t tls_module;
};

void hw_elf_notes_each(uintptr_t bias, const void *headers, size_t header_count, const char *name, uint32_t type,
                       hw_elf_note_visitor *each, void *closure)
{
    const ElfW(Phdr) *header = headers;
    for (; header_count; header_count--, header++) {
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(bias + header->p_vaddr), *end = at + header->p_memsz;
        size_t align = header->p_align == 8 ? 8 : 4;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const char *owner = at + sizeof *note;
            const char *data = owner + HW_ALIGN_UP((size_t)note->n_namesz, align);
            if (data + note->n_descsz > end)
                break;
            if (note->n_type == type && note->n_namesz == hw_strlen(name) + 1 && hw_streq(owner, name))
                each(closure, data, note->n_descsz);
            at = data + HW_ALIGN_UP((size_t)note->n_descsz, align);
        }
    }
}

/* The first one counts. */
static void take_build_id(void *closure, const void *data, size_t size)
{
    struct hw_map_entry *entry = closure;
    if (entry->build_id_size)
        return;
    entry->build_id_size = size < sizeof entry->build_id ? (uint32_t)size : sizeof entry->build_id;
    for (uint32_t b = 0; b < entry->build_id_size; b++)
        entry->build_id[b] = ((const uint8_t *)data)[b];
}

/* Whether its code counts. */
static void take_counting(void *closure, const void *data, size_t size)
{
    struct hw_map_entry *entry = closure;
    const uint32_t *words = data;
    if (size < 16)
        return;
    entry->flags |= words[1] ? HW_MAP_COUNTS : 0;
    entry->flags |= words[2] & HW_ABI_COUNTS_FIELDS ? HW_MAP_COUNTS_FIELDS : 0;
    entry->flags |= words[2] & HW_ABI_CALLBACKS ? HW_MAP_COUNTS_BY_CALLS : 0;
    entry->unseen_operations += words[3];
}

/* Libraries may be loaded by a path relative to a directory that nobody knows afterwards. */
static uint32_t store_path(const char *path)
{
    static char buffer[4096]; /* under the lock, or before there are threads */
    if (*path == '/' || *path == '[' || !*path)
        return hw_file_string(path);
    long n = hw_sys(SYS_getcwd, buffer, sizeof buffer - 1);
    if (n <= 0)
        return hw_file_string(path);
    struct hw_text text = {buffer, sizeof buffer, (size_t)n - 1};
    hw_text_char(&text, '/');
    hw_text_string(&text, hw_starts_with(path, "./") ? path + 2 : path);
    return hw_file_string(buffer);
}

/* Writes a MAPS entry; its index. Lock held. */
static uint32_t add_map(const struct hw_map_entry *entry, const char *path)
{
    uint32_t index = hw_pool_take(HW_POOL_MAPS, 1);
    if (index == HW_NONE)
        return HW_NONE;
    struct hw_map_entry *to = HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, index);
    *to = *entry;
    to->path = store_path(path);
    to->loaded_tick = hw_ticks_raw() - hw_runtime.tick_base;
    hw_pool_publish(HW_POOL_MAPS);
    return index;
}

static bool known(const struct hw_modules *list, uintptr_t start, uintptr_t end, uintptr_t bias,
                  const struct hw_module **found)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->module[i].start == start && list->module[i].end == end && list->module[i].bias == bias) {
            *found = &list->module[i];
            return true;
        }
    return false;
}

/* A list under construction. */
struct builder {
    struct hw_modules *list;
    uint32_t capacity;
    bool changed; /* more than which modules there are */
};

static size_t list_bytes(uint32_t capacity)
{
    return HW_ALIGN_UP(sizeof(struct hw_modules) + capacity * sizeof(struct hw_module), HW_PAGE);
}

static struct hw_modules *new_list(uint32_t capacity)
{
    return hw_own_pages(list_bytes(capacity), false);
}

static void insert(struct builder *builder, const struct hw_module *module)
{
    struct hw_modules *list = builder->list;
    if (list->count == builder->capacity)
        return;
    uint32_t at = list->count;
    for (; at > 0 && list->module[at - 1].start > module->start; at--)
        list->module[at] = list->module[at - 1];
    list->module[at] = *module;
    list->count++;
}

/* Adds the executable segments of an image. What the present list has already is taken over as it is. */
static void add_image(struct builder *builder, const struct image *image)
{
    struct hw_module module = {.bias = image->bias,
                               .image_start = UINTPTR_MAX,
                               .map = HW_NONE,
                               .flags = image->flags,
                               .linked = image->linked};
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t start = image->bias + header->p_vaddr, end = start + header->p_memsz;
        if (header->p_type == PT_LOAD) {
            module.image_start = start < module.image_start ? start : module.image_start;
            module.image_end = end > module.image_end ? end : module.image_end;
        } else if (header->p_type == PT_GNU_EH_FRAME) {
            module.eh_frame_hdr = (const uint8_t *)start;
            module.eh_frame_hdr_size = header->p_memsz;
        } else if (header->p_type == PT_TLS && image->tls_module) {
            module.tls_module = image->tls_module;
            module.tls_size = header->p_memsz;
        }
    }
    const struct hw_static_program *program = image->flags & HW_MAP_MAIN ? hw_static_program() : NULL;
    if (program && program->unwind && !module.eh_frame_hdr) {
        module.eh_frame_hdr = (const uint8_t *)program->unwind;
        module.eh_frame_hdr_size = program->unwind_size;
    }
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        module.start = image->bias + header->p_vaddr;
        module.end = module.start + header->p_memsz;
        const struct hw_module *old;
        if (known(modules.list, module.start, module.end, module.bias, &old)) {
            struct hw_module again = *old;
            builder->changed |= image->linked && !again.linked;
            again.linked |= image->linked;
            again.tls_module = module.tls_module ? module.tls_module : again.tls_module;
            again.tls_size = module.tls_module ? module.tls_size : again.tls_size;
            insert(builder, &again);
            continue;
        }
        struct hw_map_entry entry = {
            .start = module.start, .end = module.end, .offset = header->p_offset, .bias = image->bias};
        uintptr_t own = (uintptr_t)hw_modules_rescan;
        if (own >= module.start && own < module.end)
            module.flags |= HW_MAP_RUNTIME;
        uintptr_t allocator = (uintptr_t)hw_real_malloc_address();
        if (allocator >= module.start && allocator < module.end)
            module.flags |= HW_MAP_ALLOCATOR;
        entry.flags = module.flags | HW_MAP_NOTES_READ;
        if (module.eh_frame_hdr && module.eh_frame_hdr_size >= sizeof module.header)
            __builtin_memcpy(module.header, module.eh_frame_hdr, sizeof module.header);
        hw_elf_notes_each(image->bias, image->headers, image->header_count, "GNU", NT_GNU_BUILD_ID, take_build_id,
                          &entry);
        hw_elf_notes_each(image->bias, image->headers, image->header_count, HW_ABI_NOTE_NAME, HW_ABI_NOTE_TYPE,
                          take_counting, &entry);
        module.map = add_map(&entry, image->path);
        insert(builder, &module);
        if (!(module.flags & HW_MAP_RUNTIME))
            hw_globals_module(module.map, image->bias, image->headers, image->header_count);
    }
}

static void publish(struct hw_modules *list)
{
    __atomic_store_n(&modules.list, list, __ATOMIC_RELEASE);
}

/* ---- the dynamic linker's list ---- */

static char main_path[4096];

static int add_linked(struct dl_phdr_info *info, size_t size, void *closure)
{
    struct builder *builder = closure;
    const bool has_tls = size >= offsetof(struct dl_phdr_info, dlpi_tls_modid) + sizeof info->dlpi_tls_modid;
    struct image image = {.tls_module = has_tls ? info->dlpi_tls_modid : 0,
                          .bias = info->dlpi_addr,
                          .headers = info->dlpi_phdr,
                          .header_count = info->dlpi_phnum,
                          .path = info->dlpi_name,
                          .linked = true};
    bool is_main = !builder->list->count && !*info->dlpi_name;
    if (is_main) {
        image.path = main_path;
        image.flags = HW_MAP_MAIN;
    } else if (hw_starts_with(info->dlpi_name, "linux-vdso") || hw_starts_with(info->dlpi_name, "linux-gate"))
        image.path = "[vdso]";
    else if (!*info->dlpi_name)
        image.path = "[vdso]";                      /* musl and older glibc leave it without a name */
    hw_sigset old = hw_lock_take(&hw_runtime.lock); /* the linker's lock is held: always before ours, never after it */
    add_image(builder, &image);
    hw_lock_drop(&hw_runtime.lock, old);
    return 0;
}

static bool overlaps(const struct hw_modules *list, const struct hw_module *module)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->module[i].start < module->end && module->start < list->module[i].end)
            return true;
    return false;
}

/* The list as of now. When old entries are gone the code generation rises: walks and rules that were cached may lie. */
static void replace_list(struct builder *builder, bool linked_only)
{
    struct hw_modules *fresh = builder->list, *old = modules.list;
    bool gone = false;
    for (uint32_t i = 0; i < old->count; i++) {
        const struct hw_module *still;
        const struct hw_module *module = &old->module[i];
        if (known(fresh, module->start, module->end, module->bias, &still))
            continue;
        if (linked_only && !module->linked && !overlaps(fresh, module)) {
            insert(builder, module);
            continue;
        }
        gone = true;
        if (module->map != HW_NONE)
            HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, module->map)->unloaded_tick =
                hw_ticks_raw() - hw_runtime.tick_base;
    }
    if (!gone && !builder->changed && fresh->count == old->count) { /* nothing new either */
        hw_munmap(fresh, list_bytes(builder->capacity));
        return;
    }
    publish(fresh);
    if (gone)
        __atomic_fetch_add(&hw_runtime.code_generation, 1, __ATOMIC_RELEASE);
}

/* What the dynamic linker knows: where there is none, the program. */
static void each_linked(int (*each)(struct dl_phdr_info *, size_t, void *), void *closure)
{
    const struct hw_static_program *program = hw_static_program();
    struct dl_phdr_info info = {.dlpi_name = ""};
    if (!program) {
        dl_iterate_phdr(each, closure);
        return;
    }
    info.dlpi_addr = program->bias;
    info.dlpi_phdr = (const ElfW(Phdr) *)program->headers;
    info.dlpi_phnum = (ElfW(Half))program->header_count;
    each(&info, offsetof(struct dl_phdr_info, dlpi_tls_modid), closure);
}

static int count_linked(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size;
    uint32_t *count = closure;
    for (int i = 0; i < info->dlpi_phnum; i++)
        *count += info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X);
    return 0;
}

void hw_modules_rescan(void)
{
    if (!dl_iterate_phdr && !hw_static_program())
        return;
    /* A thread that loads a library meanwhile makes the counts differ; what is missed is found when it is met. */
    uint32_t count = 16 + modules.list->count;
    each_linked(count_linked, &count);
    struct builder builder = {.list = new_list(count), .capacity = count};
    if (!builder.list)
        return;
    each_linked(add_linked, &builder);
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    replace_list(&builder, true);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_modules_start(void)
{
    publish(&no_modules);
    long n = hw_read_link("/proc/self/exe", main_path, sizeof main_path);
    if (n <= 0) { /* no /proc */
        const unsigned long name = getauxval ? getauxval(AT_EXECFN) : 0;
        hw_text_join(main_path, sizeof main_path, (const char *)name);
    }
    modules.look_distance = 0;
    hw_modules_rescan();
}

void hw_modules_fork(void)
{
    /* The MAPS section has been copied: indexes hold. */
    modules.last_look = 0;
}

/* ---- /proc/self/maps ---- */

struct mapping {
    uintptr_t start, end;
    uint64_t offset;
    char path[1024];
    char permissions[5];
};

/* The mapping that holds PC. FIRST: the first page of the file that the lines are about. */
struct search {
    uintptr_t pc;
    struct mapping mapping, first;
    bool found;
};

static bool look_at_mapping(void *closure, const char *line)
{
    struct search *search = closure;
    struct mapping *mapping = &search->mapping;
    mapping->start = hw_parse_u64(&line, 16);
    line++;
    mapping->end = hw_parse_u64(&line, 16);
    line++;
    for (int i = 0; i < 4 && *line; i++)
        mapping->permissions[i] = *line++;
    line++;
    mapping->offset = hw_parse_u64(&line, 16);
    hw_text_join(mapping->path, sizeof mapping->path, hw_skip_fields(line, 2)); /* device, inode */
    if (mapping->offset == 0 && mapping->path[0] == '/' && mapping->permissions[0] == 'r')
        search->first = *mapping;
    search->found = search->pc >= mapping->start && search->pc < mapping->end;
    return !search->found;
}

/* An ELF image whose first page is mapped at HEADER: its headers lie there in memory. */
static bool image_at(uintptr_t header, uintptr_t code, uint64_t code_offset, const char *path, struct image *image)
{
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)header;
    if (elf->e_ident[0] != 0x7f || elf->e_ident[1] != 'E' || elf->e_ident[2] != 'L' || elf->e_ident[3] != 'F')
        return false;
    if (elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > HW_PAGE)
        return false;
    image->headers = (const ElfW(Phdr) *)(header + elf->e_phoff);
    image->header_count = elf->e_phnum;
    image->path = path;
    image->flags = 0;
    image->linked = false;
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *segment = &image->headers[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
            (segment->p_offset & ~(HW_PAGE - 1)) == code_offset) {
            image->bias = code - (segment->p_vaddr & ~(HW_PAGE - 1));
            return true;
        }
    }
    return false;
}

/* Adds the mapping that holds PC, as an image or as code without a file. Lock held. */
static void add_from_maps(uintptr_t pc)
{
    static struct search search; /* under the lock */
    search.pc = pc;
    search.found = false;
    search.first.path[0] = 0;
    hw_lines_each("/proc/self/maps", look_at_mapping, &search);
    const struct mapping *mapping = &search.mapping, *first = &search.first;
    if (!search.found || mapping->permissions[2] != 'x')
        return;
    struct hw_modules *fresh = new_list(modules.list->count + 16);
    if (!fresh)
        return;
    struct builder builder = {.list = fresh, .capacity = modules.list->count + 16};
    for (uint32_t i = 0; i < modules.list->count; i++)
        if (modules.list->module[i].end <= mapping->start || modules.list->module[i].start >= mapping->end)
            insert(&builder, &modules.list->module[i]); /* others overlap what is there now: they are gone */
    struct image image;
    if (mapping->path[0] == '/' && hw_streq(mapping->path, first->path) &&
        image_at(first->start, mapping->start, mapping->offset, mapping->path, &image))
        add_image(&builder, &image);
    else {
        struct hw_map_entry entry = {.start = mapping->start,
                                     .end = mapping->end,
                                     .offset = mapping->offset,
                                     .bias = mapping->start - mapping->offset};
        entry.flags = mapping->path[0] == '/' ? 0 : HW_MAP_ANONYMOUS;
        struct hw_module module = {
            .start = mapping->start, .end = mapping->end, .bias = entry.bias, .flags = entry.flags};
        module.map = add_map(&entry, mapping->path);
        if (hw_readable(module.start) && hw_readable(module.start + 8))
            __builtin_memcpy(module.header, (const void *)module.start, sizeof module.header);
        insert(&builder, &module);
    }
    replace_list(&builder, false);
}

static const struct hw_module *search(uintptr_t pc)
{
    const struct hw_modules *list = __atomic_load_n(&modules.list, __ATOMIC_ACQUIRE);
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (pc < list->module[middle].start)
            high = middle;
        else if (pc >= list->module[middle].end)
            low = middle + 1;
        else
            return &list->module[middle];
    }
    return NULL;
}

const struct hw_module *hw_module_find(uintptr_t pc)
{
    const struct hw_module *module = search(pc);
    if (hw_likely(module != NULL) || pc < HW_PAGE || pc >> HW_ARCH_ADDRESS_BITS || hw_quiet)
        return module;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    module = search(pc);
    uint64_t now = hw_ticks_raw();
    if (!module && now - modules.last_look >= modules.look_distance) {
        add_from_maps(pc);
        module = search(pc);
        /* A pc that is no code at all (a broken stack) must not cost a reading of maps each time it is met. */
        uint64_t cost = hw_ticks_raw() - now;
        modules.look_distance = module ? 0 : cost * 20;
        modules.last_look = now + cost;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    return module;
}

bool hw_module_still_there(const struct hw_module *module)
{
    bool tables = module->eh_frame_hdr && module->eh_frame_hdr_size >= sizeof module->header;
    if (!tables && !(module->flags & HW_MAP_ANONYMOUS))
        return true; /* nothing of it is read */
    if (hw_quiet)
        return true;
    uintptr_t header = tables ? (uintptr_t)module->eh_frame_hdr : module->start;
    uint64_t now[2];
    if (hw_readable(header) && hw_readable(header + 8)) {
        __builtin_memcpy(now, (const void *)header, sizeof now);
        if (now[0] == module->header[0] && now[1] == module->header[1])
            return true;
    }
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    struct builder builder = {.list = new_list(modules.list->count), .capacity = modules.list->count};
    for (uint32_t i = 0; builder.list && i < modules.list->count; i++)
        if (modules.list->module[i].start != module->start)
            insert(&builder, &modules.list->module[i]);
    if (builder.list)
        replace_list(&builder, false);
    hw_lock_drop(&hw_runtime.lock, old);
    return false;
}

uint64_t hw_modules_code_bytes(void)
{
    const struct hw_modules *list = __atomic_load_n(&modules.list, __ATOMIC_ACQUIRE);
    uint64_t bytes = 0;
    for (uint32_t i = 0; list && i < list->count; i++)
        bytes += list->module[i].end - list->module[i].start;
    return bytes;
}

uint32_t hw_module_map(uintptr_t pc)
{
    const struct hw_module *module = search(pc);
    return module ? module->map : HW_NONE;
}

void hw_modules_each(void (*each)(const struct hw_module *module))
{
    const struct hw_modules *list = __atomic_load_n(&modules.list, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < list->count; i++)
        each(&list->module[i]);
}

const struct hw_module *hw_module_of_data(uintptr_t address)
{
    const struct hw_modules *list = __atomic_load_n(&modules.list, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < list->count; i++)
        if (address >= list->module[i].image_start && address < list->module[i].image_end)
            return &list->module[i];
    return NULL;
}

/* Whether FUNCTION is defined where it is, and is SIZE bytes long. MAP, if not NULL: by that module. */
static bool is_defined(const void *function, const struct link_map *map, size_t *size)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    const struct link_map *home = NULL;
    if (!dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || symbol->st_shndx == SHN_UNDEF ||
        (map && (!dladdr1(function, &info, (void **)&home, RTLD_DL_LINKMAP) || home != map)))
        return false;
    *size = symbol->st_size;
    return true;
}

void *hw_function_find(const char *name, size_t *size)
{
    if (hw_static_program())
        return hw_static_program_find(name, size);
    Dl_info info;
    struct link_map *map = NULL;
    void *function = dlsym && dladdr1 ? dlsym(NULL, name) : NULL;
    if (!function || is_defined(function, NULL, size))
        return function;
    /* The executable has only a way to it. A library that was opened late cannot ask for the next one: it asks all. */
    if (!hw_attached || !dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    int (*close_library)(void *) = (int (*)(void *))dlsym(NULL, "dlclose"); /* libc's: ours comes last */
    for (map = map ? map->l_next : NULL; map; map = map->l_next) {
        /* One that came with the program is no handle for dlsym before it was opened. The vDSO cannot be. */
        void *library = dlopen && map->l_name[0] == '/' ? dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
        function = library ? dlsym(library, name) : NULL;
        const bool found = function && is_defined(function, map, size);
        if (library && close_library)
            close_library(library);
        if (found)
            return function;
    }
    return NULL;
}
