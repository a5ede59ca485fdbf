/* client_requests.c - blocks that programs announce to Valgrind, and those of <heapwise/annotations.h>.
 *
 * Programs with allocators of their own announce their blocks to Valgrind by requests in their code: bytes that do
 * nothing without it. With valgrind-requests=1 these bytes are redirected to hw_request_received (arch), in the program
 * and its libraries at the start, and in each library that is loaded later before any of its code has run: the dynamic
 * linker calls a function that does nothing, for debuggers, when it has mapped one. It is redirected, too.
 *
 * Requests about blocks become events of pools (program_pools.c), the others get the answer that they get without
 * Valgrind. So does the question whether Valgrind is there: programs that ask it do other things then, besides
 * announcing blocks. valgrind-requests=2 answers yes. */
#include "base/arch/x86_64/client_requests.h"
#include "runtime/core/core.h"
#include "runtime/core/threads.h"
#include "runtime/heap/blocks.h"
#include "runtime/hooks/hooks.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

extern unsigned long getauxval(unsigned long) __attribute__((weak));
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));

/* Of valgrind.h: numbers of requests, and flags of pools. */
enum {
    RUNNING_ON_VALGRIND = 0x1001,
    MALLOCLIKE_BLOCK = 0x1301,
    FREELIKE_BLOCK = 0x1302,
    CREATE_MEMPOOL = 0x1303,
    DESTROY_MEMPOOL = 0x1304,
    MEMPOOL_ALLOC = 0x1305,
    MEMPOOL_FREE = 0x1306,
    MEMPOOL_TRIM = 0x1307,
    MOVE_MEMPOOL = 0x1308,
    MEMPOOL_CHANGE = 0x1309,
    MEMPOOL_EXISTS = 0x130a,
    RESIZEINPLACE_BLOCK = 0x130b,
    /* of annotations.h */
    UNPOISON_REGION = 1,
    POISON_REGION = 2,
};
#define AUTO_FREE 1u

_Static_assert(offsetof(struct hw_thread, gate) == 0 && HW_GATE_OPEN == 1, "the entry of requests tests it");

/* ---- blocks that belong to no pool: to one of many, by address, so that threads do not wait for each other ---- */

#define HOUSES_BITS 6
#define HOUSES      (1u << HOUSES_BITS)

static char malloclike[HOUSES], unpoisoned[HOUSES];

static const char *house(const char houses[HOUSES], uint64_t address)
{
    return &houses[address * 0x9e3779b97f4a7c15ull >> (64 - HOUSES_BITS)];
}

/* All blocks end that lie in [start, end), also in part. */
static void end_region(struct hw_thread *thread, const char houses[HOUSES], uint64_t start, uint64_t end)
{
    const struct hw_pool_range range = {start, end, true};
    for (uint32_t i = 0; i < HOUSES; i++)
        hw_pool_end_blocks(thread, &houses[i], &range);
}

/* ---- events ---- */

struct call {
    struct hw_thread *thread;
    uintptr_t pc, sp, fp;
    const uint64_t *argument; /* five */
};

static const struct hw_walk *walk_of(const struct call *call)
{
    return hw_walk_from(call->thread, call->pc, call->sp, call->fp);
}

static void block_allocated(const struct call *call, const void *pool, uint64_t address, uint64_t size)
{
    if (address)
        hw_pool_allocated(call->thread, walk_of(call), pool, (const void *)address, size);
}

static void malloclike_block(const struct call *call)
{
    block_allocated(call, house(malloclike, call->argument[0]), call->argument[0], call->argument[1]);
}

static void freelike_block(const struct call *call)
{
    uint64_t size;
    hw_pool_freed(call->thread, house(malloclike, call->argument[0]), (const void *)call->argument[0], &size);
}

static void resizeinplace_block(const struct call *call)
{
    const void *address = (const void *)call->argument[0];
    hw_pool_changed(call->thread, house(malloclike, call->argument[0]), address, address, call->argument[2]);
}

static void create_mempool(const struct call *call)
{
    hw_pool_begin(call->thread, (const void *)call->argument[0], call->argument[3]);
}

static void destroy_mempool(const struct call *call)
{
    hw_pool_end_blocks(call->thread, (const void *)call->argument[0], NULL);
}

static void mempool_alloc(const struct call *call)
{
    block_allocated(call, (const void *)call->argument[0], call->argument[1], call->argument[2]);
}

/* With AUTO_FREE a block is memory for others, announced by MALLOCLIKE_BLOCK, which end with it. */
static void mempool_free(const struct call *call)
{
    const void *pool = (const void *)call->argument[0];
    const uint64_t address = call->argument[1];
    uint64_t size, flags;
    if (hw_pool_freed(call->thread, pool, (const void *)address, &size) &&
        hw_pool_known(call->thread, pool, &flags) && flags & AUTO_FREE)
        end_region(call->thread, malloclike, address, address + size);
}

static void mempool_trim(const struct call *call)
{
    const uint64_t start = call->argument[1];
    const struct hw_pool_range range = {start, start + call->argument[2], false};
    hw_pool_end_blocks(call->thread, (const void *)call->argument[0], &range);
}

static void move_mempool(const struct call *call)
{
    hw_pool_moved(call->thread, (const void *)call->argument[0], (const void *)call->argument[1]);
}

static void mempool_change(const struct call *call)
{
    hw_pool_changed(call->thread, (const void *)call->argument[0], (const void *)call->argument[1],
                    (const void *)call->argument[2], call->argument[3]);
}

static void unpoison_region(const struct call *call)
{
    block_allocated(call, house(unpoisoned, call->argument[0]), call->argument[0], call->argument[1]);
}

/* Most often it is one block, of which programs may poison whole words. */
static void poison_region(const struct call *call)
{
    const uint64_t start = call->argument[0], end = start + call->argument[1];
    uint64_t size;
    if (hw_pool_freed(call->thread, house(unpoisoned, start), (const void *)start, &size) &&
        HW_ALIGN_UP(start + size, 8) == HW_ALIGN_UP(end, 8))
        return;
    end_region(call->thread, unpoisoned, start, end);
}

static const struct event {
    uint64_t number;
    void (*act)(const struct call *call);
    bool is_free; /* nothing but ends of blocks */
} events[] = {
    {MEMPOOL_ALLOC, mempool_alloc, false},       {MEMPOOL_FREE, mempool_free, true},
    {MALLOCLIKE_BLOCK, malloclike_block, false}, {FREELIKE_BLOCK, freelike_block, true},
    {UNPOISON_REGION, unpoison_region, false},   {POISON_REGION, poison_region, true},
    {CREATE_MEMPOOL, create_mempool, false},     {DESTROY_MEMPOOL, destroy_mempool, true},
    {MEMPOOL_TRIM, mempool_trim, true},          {MEMPOOL_CHANGE, mempool_change, false},
    {MOVE_MEMPOOL, move_mempool, false},         {RESIZEINPLACE_BLOCK, resizeinplace_block, false},
};

static void happened(uint64_t number, uintptr_t frame, struct call *call)
{
    const struct event *event = events, *end = events + sizeof events / sizeof *events;
    while (event < end && event->number != number)
        event++;
    if (event == end || hw_runtime.weighted || !(call->thread = hw_enter(frame, event->is_free)))
        return;
    event->act(call);
    hw_leave(call->thread);
}

/* Answers that are not those without Valgrind. */
static uint64_t answer(const uint64_t *request, uintptr_t frame, uint64_t usual)
{
    if (hw_options.valgrind_requests < 2) {
        static bool noted;
        if (request[0] == RUNNING_ON_VALGRIND && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
            hw_note(HW_NOTE_OTHER, "the program or a library asked whether it runs under Valgrind, and was answered "
                                   "no: it may announce more blocks only if the answer is yes "
                                   "(--valgrind-requests=answer)");
        return usual;
    }
    struct hw_thread *thread;
    uint64_t flags;
    bool known = false;
    if (request[0] == MEMPOOL_EXISTS && (thread = hw_enter(frame, true))) {
        known = hw_pool_known(thread, (const void *)request[1], &flags);
        hw_leave(thread);
    }
    return request[0] == RUNNING_ON_VALGRIND || known ? 1 : usual;
}

uint64_t hw_request_received(const uint64_t *request, uint64_t usual, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (request[0] == RUNNING_ON_VALGRIND || request[0] == MEMPOOL_EXISTS)
        return answer(request, frame, usual);
    struct call call = {.pc = pc, .sp = sp, .fp = fp, .argument = request + 1};
    happened(request[0], frame, &call);
    return usual;
}

HW_EXPORTED(void, __heapwise_pool_event,
            (unsigned long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d))
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const uint64_t argument[5] = {a, b, c, d};
    struct call call = {.pc = hw_arch_frame_return(frame),
                        .sp = hw_arch_frame_caller_sp(frame),
                        .fp = hw_arch_frame_caller_fp(frame),
                        .argument = argument};
    happened(number, frame, &call);
}

/* ---- finding the requests ---- */

/* The dynamic linker calls this code when nobody else changes its list. */
static struct {
    const struct r_debug *linker; /* what it keeps for debuggers */
    struct known {
        ElfW(Addr) bias;
        const void *dynamic;
    } *known; /* images that were searched, in the order of the linker's list */
    uint32_t count, capacity;
    bool searched, found; /* at the start; any request so far */
} images;

/* Program headers of an image; NULL: they are not where they should be. */
static const ElfW(Phdr) * headers_of(const struct link_map *image, size_t *count)
{
    if (image == images.linker->r_map) {
        *count = getauxval(AT_PHNUM);
        return (const ElfW(Phdr) *)getauxval(AT_PHDR);
    }
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)image->l_addr;
    if (!image->l_addr || !hw_readable((uintptr_t)elf) || elf->e_ident[0] != 0x7f || elf->e_ident[1] != 'E' ||
        elf->e_ident[2] != 'L' || elf->e_ident[3] != 'F' || elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > HW_PAGE)
        return NULL;
    *count = elf->e_phnum;
    return (const ElfW(Phdr) *)(image->l_addr + elf->e_phoff);
}

/* Adds to *FOUND. The runtime has a request itself, for another purpose. */
static void search_image(const struct link_map *image, uint32_t *found)
{
    size_t count = 0;
    const ElfW(Phdr) *header = headers_of(image, &count);
    uint32_t failed = 0;
    for (; header && count; count--, header++) {
        const uintptr_t start = image->l_addr + header->p_vaddr, end = start + header->p_filesz;
        if (header->p_type != PT_LOAD || (header->p_flags & (PF_X | PF_R)) != (PF_X | PF_R) ||
            (hw_runtime.text_start < end && start < hw_runtime.text_end))
            continue;
        const struct hw_arch_requests requests = hw_arch_requests_redirect(start, end);
        *found += requests.found;
        failed += requests.failed;
    }
    if (failed)
        hw_note_about(HW_NOTE_OTHER, *image->l_name ? image->l_name : "the program",
                      ": ", "its requests to Valgrind were not observed, or not all: its code cannot be changed");
}

static bool is_known(const struct known *known, uint32_t count, const struct link_map *image)
{
    for (uint32_t i = 0; i < count; i++)
        if (known[i].bias == image->l_addr && known[i].dynamic == image->l_ld)
            return true;
    return false;
}

/* Searches what was not searched yet, and forgets what is gone. */
static void search_new(void)
{
    uint32_t found = 0, count = 0;
    for (const struct link_map *image = images.linker->r_map; image; image = image->l_next)
        count++;
    const size_t bytes = HW_ALIGN_UP(count * sizeof *images.known, HW_PAGE);
    struct known *known = hw_pages(bytes);
    uint32_t i = 0;
    for (const struct link_map *image = images.linker->r_map; image && i < count && known; image = image->l_next) {
        if (!is_known(images.known, images.count, image))
            search_image(image, &found);
        known[i++] = (struct known){image->l_addr, image->l_ld};
    }
    if (images.known && known)
        hw_munmap(images.known, images.capacity * sizeof *images.known);
    if (known) {
        images.known = known;
        images.count = i;
        images.capacity = (uint32_t)(bytes / sizeof *known);
    }
    images.found |= found > 0;
}

static void note_later(const char *why)
{
    hw_note_about(HW_NOTE_OTHER, "requests to Valgrind in libraries that were loaded while the program ran were not "
                                 "observed: ",
                  "", why);
}

void hw_libraries_changed(void)
{
    if (images.linker->r_state != RT_CONSISTENT)
        return;
    if (hw_quiet)
        note_later("the program had given up system calls");
    else
        search_new();
}

/* The first image is the program. */
static int find_linker(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_DEBUG)
                *(const struct r_debug **)closure = (const struct r_debug *)entry->d_un.d_ptr;
    }
    return 1;
}

static bool is_single_threaded(void)
{
    char buffer[1024];
    if (hw_read_file("/proc/self/stat", buffer, sizeof buffer) <= 0)
        return false;
    const char *threads = hw_stat_field(buffer, 20);
    return hw_parse_u64(&threads, 10) == 1;
}

void hw_requests_start(void)
{
    if (dl_iterate_phdr && getauxval)
        dl_iterate_phdr(find_linker, &images.linker);
    const char *why = !images.linker || !images.linker->r_map ? "the dynamic linker's list was not found"
                      : !is_single_threaded() ? "the program had several threads already, or there is no /proc"
                      : !hw_arch_requests_start() ? "the processor cannot save all registers (XSAVE)"
                                                  : NULL;
    if (why) {
        hw_note_about(HW_NOTE_OTHER, "requests to Valgrind were not observed: ", "", why);
        return;
    }
    search_new();
    images.searched = true;
    if (!hw_arch_redirect_empty((void *)images.linker->r_brk))
        note_later("the dynamic linker's code cannot be changed");
}

/* Not sooner: a library may come that has some. */
void hw_requests_end(void)
{
    if (images.searched && !images.found)
        hw_note_locked(HW_NOTE_OTHER, "no requests to Valgrind are in the code of the program, nor in that of its "
                                      "libraries");
}
