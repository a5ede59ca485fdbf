/* planes.c - the planes that instrumented code counts in (base/abi.h), and who counts where.
 *
 * All planes lie in one reservation, and overlap in it: plane i begins i * stride bytes behind the first one, and a
 * cell lies (address >> 3) bytes behind the begin of its plane (by words of 4 bytes: address >> 2, and 4 * stride in
 * what follows). So two addresses in two planes share a cell when they are a multiple of 8 * stride apart, and only
 * then. Programs live in a few windows of the address space (executable and brk heap; libraries, mappings and stacks),
 * each smaller than 8 * stride; the windows lie farther from each other than the planes that are ever used reach.
 * Nothing is masked, and every address that a program can have hits the reservation: it is never a fault. Should two
 * areas of memory share cells nevertheless, a note says so (hw_shadow_look_for_folds).
 *
 * A thread keeps its plane to its end. Then the next new thread gets it; what is in it stays, and belongs to the blocks
 * it was counted for. When there are more threads than planes, threads share: their additions are not atomic.
 *
 * A half of a 64-byte granule's cell has 32 bits. Greater numbers are kept in a side table: hw_shadow_carry adds them
 * there, and hw_shadow_sweep, which an allocation does now and then, moves 2^31 there when a half has grown beyond
 * that. A granule that is counted 2^32 times while nobody calls the allocator is not noticed. */
#include "base/abi.h"
#include "runtime/access/counting.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"

#include <elf.h>
#include <link.h>
#include <sys/sysinfo.h>
#include <time.h>

/* Below everything: 8 TiB, where no executable, library or sanitizer lies. The layout's map and private memory of the
 * runtime follow (memory.c), so that they do not push the program's mappings apart. */
#define SHADOW_ADDRESS 0x080000000000ul
#define PLANE_BYTES    (1ul << (HW_ARCH_ADDRESS_BITS - 2)) /* by words; a half of it is used otherwise */
#define PLANES_REACH   (40ul << 40)                        /* of program memory: planes * 8 * stride */
#define WINDOW_LEAST   (64ul << 30)
#define WINDOW_MOST    (2ul << 40) /* 20 planes at least */
#define FRESH_PLANES   4u
#define SPARE_PLANES   8u

__thread uintptr_t __heapwise_plane = SHADOW_ADDRESS;
__thread uint64_t __heapwise_type;
__thread uint32_t hw_self_plane;
static __thread uint32_t self_exit_rounds;

struct hw_shadow hw_shadow;

static struct {
    uint16_t users[HW_PLANES_MOST];
    uint64_t released[HW_PLANES_MOST]; /* by which number; 0: never */
    uint32_t role[HW_PLANES_MOST];     /* of its users, so far; HW_ROLE_UNKNOWN: of several */
    uint64_t releases;
    unsigned key;
    bool has_key;
} planes;

extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));
extern int pthread_key_create(unsigned *, void (*)(void *)) __attribute__((weak));
extern int pthread_setspecific(unsigned, const void *) __attribute__((weak));

void hw_shadow_refuse(const char *text, const char *detail)
{
    hw_message(text, detail);
    for (;;)
        hw_sys(SYS_exit_group, 1);
}

/* ---- reservation ---- */

static uint64_t machine_memory(void)
{
    struct sysinfo info;
    if (hw_sys(SYS_sysinfo, &info) != 0)
        return 64ull << 30;
    return (uint64_t)info.totalram * info.mem_unit;
}

/* The initial value of __heapwise_plane for threads to come: it lies in the runtime's own image. */
static int patch_tls_image(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size;
    (void)closure;
    bool own = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        own |= info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)patch_tls_image >= start &&
               (uintptr_t)patch_tls_image < start + info->dlpi_phdr[i].p_memsz;
    }
    for (int i = 0; own && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_TLS)
            continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_filesz;
        uintptr_t page = start & ~(HW_PAGE - 1);
        hw_mprotect(page, end - page, PROT_READ | PROT_WRITE);
        for (uintptr_t at = start; at + 8 <= end; at += 8)
            if (*(uintptr_t *)at == SHADOW_ADDRESS)
                *(uintptr_t *)at = hw_shadow.base;
        hw_mprotect(page, end - page, PROT_READ);
    }
    return own;
}

void hw_shadow_start(void)
{
    uint64_t window = WINDOW_LEAST, memory = machine_memory();
    while (window < 4 * memory && window < WINDOW_MOST)
        window *= 2;
    uint64_t most = PLANES_REACH / window;
    hw_shadow.shift = 3;
    hw_shadow.stride = window / 8;
    hw_shadow.planes_most = (uint32_t)(most < HW_PLANES_MOST ? most : HW_PLANES_MOST);
    uint64_t bytes = PLANE_BYTES + hw_shadow.planes_most * (window / 4) + HW_ABI_WRITES_OFFSET + HW_PAGE;
    bytes = HW_ALIGN_UP(bytes, HW_PAGE);
    if (hw_address_space_limit() != ~0ull && hw_address_space_limit() < bytes)
        return;
    hw_shadow.base = (uintptr_t)hw_own_reserve(SHADOW_ADDRESS, bytes);
    if (!hw_shadow.base)
        return;
    hw_madvise(hw_shadow.base, bytes, MADV_WIPEONFORK);
    hw_shadow.bytes = bytes;
    hw_shadow.memprof = hw_shadow.base + hw_shadow.stride;
    hw_shadow.plane[0] = hw_shadow.base;
    hw_shadow.planes_used = 1;
    if (hw_shadow.base != SHADOW_ADDRESS && dl_iterate_phdr)
        dl_iterate_phdr(patch_tls_image, NULL);
    __heapwise_plane = hw_shadow.base;
    if (hw_gettid() == hw_getpid())
        hw_self_plane = 1;
}

/* ---- instrumented modules ---- */

struct found {
    uint32_t granule;
    uint32_t modules, flags;
    char path[1024]; /* of the first one */
};

/* The notes of one image. Objects of one module may differ, which is refused as well. */
struct image_notes {
    const char *path; /* "": the program */
    uint32_t granule; /* 0: no note */
    uint32_t flags;
};

static void take_note(void *closure, const void *data, size_t size)
{
    struct image_notes *notes = closure;
    const uint32_t *words = data;
    if (size < 16)
        return;
    if (words[0] != HW_ABI_VERSION)
        hw_shadow_refuse("this program was built for another version of Heapwise: build it again with heapwise cc: ",
                         notes->path);
    notes->flags |= words[2];
    if (!words[1])
        return; /* counts fields alone */
    if (notes->granule && notes->granule != words[1])
        hw_shadow_refuse("objects with different --granule are linked together: ",
                         *notes->path ? notes->path : "the program");
    notes->granule = words[1];
}

static int look_for_note(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size;
    struct found *found = closure;
    struct image_notes notes = {.path = info->dlpi_name};
    hw_elf_notes_each(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, HW_ABI_NOTE_NAME, HW_ABI_NOTE_TYPE, take_note,
                      &notes);
    found->flags |= notes.flags;
    uint32_t granule = notes.granule;
    if (!granule)
        return 0;
    const char *path = *info->dlpi_name ? info->dlpi_name : "the program";
    found->modules++;
    if (!found->granule) {
        hw_text_join(found->path, sizeof found->path, path);
    } else if (found->granule != granule) {
        char line[2200];
        hw_text_join(line, sizeof line, found->path, " and ", path);
        hw_shadow_refuse("these were built with different --granule, all parts of a program need the same: ", line);
    }
    found->granule = granule;
    return 0;
}

static void take_flags(const struct found *found)
{
    if (found->flags & HW_ABI_CALLBACKS)
        hw_shadow.access_flags |= HW_ACCESS_CALLBACKS;
    if (found->modules)
        hw_shadow.access_flags |= HW_ACCESS_SPLIT;
    if ((found->flags & HW_ABI_COUNTS_FIELDS) && hw_runtime.state == HW_STATE_STARTING)
        hw_shadow.fields = 1; /* later ones register themselves */
    hw_shadow.modules = found->modules;
}

/* What the notes of the modules that are loaded say. */
static const struct found *look_at_modules(void)
{
    static struct found found; /* too large for a small stack */
    found = (struct found){0};
    if (dl_iterate_phdr)
        dl_iterate_phdr(look_for_note, &found);
    take_flags(&found);
    return &found;
}

uint32_t hw_shadow_granule_of_modules(void)
{
    uint32_t granule = look_at_modules()->granule;
    if (!granule)
        granule = hw_memprof_granule();
    else if (hw_memprof_granule() && hw_memprof_granule() != granule)
        hw_shadow_refuse(
            "parts of this program were built by heapwise cc, others by clang -fmemory-profile, for different granules",
            NULL);
    if ((granule || hw_shadow.fields) && !hw_shadow.base)
        hw_shadow_refuse("no address space to count accesses in (ulimit -v?): this program was built by heapwise cc",
                         NULL);
    return granule;
}

HW_EXPORTED(void, __heapwise_init_v1, (uint32_t granule))
{
    if (hw_likely(hw_shadow.granule == granule))
        return;
    hw_start();
    hw_access_enable(granule);
}

void hw_access_enable(uint32_t granule)
{
    if (hw_shadow.granule == granule)
        return;
    if (hw_shadow.granule)
        hw_shadow_refuse("a library was built with another --granule than the program, all parts need the same", NULL);
    if (!hw_shadow.base)
        hw_shadow_refuse("no address space to count accesses in (ulimit -v?): a library was built by heapwise cc",
                         NULL);
    if (hw_runtime.state != HW_STATE_ON || hw_quiet)
        return;
    if (hw_options.sample_bytes) {
        hw_note(HW_NOTE_OTHER, "an instrumented library was loaded late: with sample-bytes its accesses are not "
                               "counted");
        return;
    }
    if (hw_options.waits) {
        hw_note(HW_NOTE_OTHER, "an instrumented library was loaded late: with start=off its accesses are not counted");
        return;
    }
    hw_access_late(granule);
    look_at_modules();
}

void hw_shadow_set_granule(uint32_t granule)
{
    if (granule == 4 && hw_shadow.shift != 2) { /* only the first plane has the distance so far */
        hw_shadow.stride *= 2;
        hw_shadow.shift = 2;
    }
    hw_shadow.granule = granule;
}

uintptr_t hw_shadow_memprof_plane(void)
{
    if (hw_shadow.base) {
        hw_shadow.memprof_used = 1;
        hw_shadow.access_flags |= HW_ACCESS_UNSPLIT;
    }
    return hw_shadow.base ? hw_shadow.memprof : 0;
}

/* ---- threads ---- */

/* The calling thread gives its plane back: its counts stay. */
static void release(void)
{
    if (!hw_self_plane)
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    planes.users[hw_self_plane - 1]--;
    planes.released[hw_self_plane - 1] = ++planes.releases;
    hw_self_plane = 0;
    __heapwise_plane = hw_shadow.base; /* what still runs here counts beside the main thread */
    hw_lock_drop(&hw_runtime.lock, old);
}

static void at_thread_exit(void *value)
{
    /* The last round of destructors: those of the program still count. */
    if (++self_exit_rounds < 4)
        pthread_setspecific(planes.key, value);
    else
        release();
}

void hw_shadow_threads_start(void)
{
    if (!planes.has_key)
        planes.has_key = pthread_key_create && pthread_key_create(&planes.key, at_thread_exit) == 0;
}

static bool was_used(uint32_t index)
{
    return planes.users[index] || planes.released[index];
}

/* Preference (0 to 3) for giving plane INDEX to a thread of ROLE: one that threads of that role have used; else, while
 * there are some to spare, one that nobody has, so that roles are distinguished; else any that is free. */
static unsigned preference(uint32_t index, uint32_t role)
{
    return planes.users[index]                       ? 0
           : was_used(index)                         ? planes.role[index] == role ? 3 : 1
           : index < 2 + FRESH_PLANES + SPARE_PLANES ? 2
                                                     : 0;
}

/* The index, in the order of addresses, of the plane for a new thread: one of a few that were not used yet, so that a
 * thread is distinguished from one that ended before it began; else as above, the one that has been free for longest;
 * else the one with the fewest users. The first plane is the main thread's for good, the second one is no thread's. */
static uint32_t choose(uint32_t role)
{
    uint32_t best = 2;
    for (uint32_t i = 2; i < hw_shadow.planes_most; i++) {
        if (!was_used(i) && i < 2 + FRESH_PLANES)
            return i;
        unsigned wish = preference(i, role), best_wish = preference(best, role);
        if (wish > best_wish || (wish == best_wish && (planes.users[i] < planes.users[best] ||
                                                       (planes.users[i] == planes.users[best] &&
                                                        planes.released[i] < planes.released[best]))))
            best = i;
    }
    return best;
}

uint32_t hw_shadow_role(uintptr_t plane)
{
    return plane == hw_shadow.base ? (uint32_t)HW_ROLE_MAIN : planes.role[(plane - hw_shadow.base) / hw_shadow.stride];
}

static bool is_listed(uintptr_t plane)
{
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++)
        if (hw_shadow.plane[i] == plane)
            return true;
    return false;
}

void hw_shadow_attach(void)
{
    if (hw_self_plane || !hw_shadow.base || !hw_planes_on())
        return;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    uint32_t index = choose(hw_self_role);
    if (was_used(index) && planes.role[index] != hw_self_role)
        planes.role[index] = HW_ROLE_UNKNOWN;
    else
        planes.role[index] = hw_self_role;
    if (planes.users[index]++)
        hw_shadow.threads_sharing++;
    uintptr_t plane = hw_shadow.base + index * hw_shadow.stride;
    if (!is_listed(plane)) {
        hw_shadow.plane[hw_shadow.planes_used] = plane;
        __atomic_store_n(&hw_shadow.planes_used, hw_shadow.planes_used + 1, __ATOMIC_RELEASE);
    }
    bool shared = planes.users[index] > 1;
    hw_self_plane = index + 1;
    __heapwise_plane = plane;
    self_exit_rounds = 0;
    hw_lock_drop(&hw_runtime.lock, old);
    if (shared)
        hw_note(HW_NOTE_PLANES_SHARED, NULL);
    if (planes.has_key)
        pthread_setspecific(planes.key, &planes);
}

/* ---- counts beyond 32 bits ---- */

#define SIDE_ENTRIES 65536u
#define HALF_FULL    (1u << 31)

static struct {
    struct hw_lock lock; /* innermost */
    struct side_entry {
        uintptr_t cell; /* 0: free */
        uint64_t more[2];
    } * entries;
    uint32_t used;       /* entries up to the last one that is not free */
    uintptr_t low, high; /* bounds of the cells, never narrowed */
} side;

/* Lock of the side table held. */
static void side_add(uintptr_t cell, unsigned half, uint64_t amount)
{
    if (!side.entries)
        side.entries = hw_own_pages(SIDE_ENTRIES * sizeof *side.entries, true);
    if (!side.entries)
        return;
    struct side_entry *entry = NULL, *unused = NULL;
    for (uint32_t i = 0; i < side.used && !entry; i++) {
        if (side.entries[i].cell == cell)
            entry = &side.entries[i];
        else if (!side.entries[i].cell && !unused)
            unused = &side.entries[i];
    }
    if (!entry) {
        if (!unused && side.used == SIDE_ENTRIES)
            return;
        entry = unused ? unused : &side.entries[side.used++];
        *entry = (struct side_entry){.cell = cell};
        side.low = !side.low || cell < side.low ? cell : side.low;
        side.high = cell > side.high ? cell : side.high;
        hw_shadow.carried++;
    }
    entry->more[half] += amount;
}

/* What is moved leaves at least 1 in the cell: the cell alone shows that it was touched. */
void hw_shadow_carry(void *cell, unsigned half, uint64_t amount)
{
    uint32_t *count = (uint32_t *)cell + half;
    if (amount < HALF_FULL && *count < HALF_FULL) {
        *count += (uint32_t)amount;
        return;
    }
    hw_sigset old = hw_lock_take(&side.lock);
    uint64_t more = amount ? amount - 1 : 0;
    *count += amount ? 1 : 0;
    if (*count > HALF_FULL) {
        *count -= HALF_FULL;
        more += HALF_FULL;
    }
    side_add((uintptr_t)cell, half, more);
    hw_lock_drop(&side.lock, old);
}

bool hw_shadow_side(uintptr_t first, uintptr_t end, bool take, uint64_t more[2])
{
    more[0] = more[1] = 0;
    if (end <= side.low || first > side.high)
        return false;
    bool found = false;
    hw_sigset old = hw_lock_take(&side.lock);
    for (uint32_t i = 0; i < side.used; i++) {
        struct side_entry *entry = &side.entries[i];
        if (!entry->cell || entry->cell < first || entry->cell >= end)
            continue;
        found = true;
        more[0] += entry->more[0];
        more[1] += entry->more[1];
        if (take) {
            *entry = (struct side_entry){0};
            hw_shadow.carried--;
        }
    }
    while (side.used && !side.entries[side.used - 1].cell)
        side.used--;
    hw_lock_drop(&side.lock, old);
    return found;
}

void hw_shadow_side_add(uintptr_t cell, const uint64_t more[2])
{
    hw_sigset old = hw_lock_take(&side.lock);
    side_add(cell, 0, more[0]);
    side_add(cell, 1, more[1]);
    hw_lock_drop(&side.lock, old);
}

/* ---- cells that have grown beyond 2^31 ---- */

#define SWEEP_NS       100000000ull
#define SWEEP_AT_ONCE  256
#define BOTH_HALF_FULL (HALF_FULL | (uint64_t)HALF_FULL << 32)

static struct {
    uint32_t *half[SWEEP_AT_ONCE]; /* whose upper bit was cleared */
    uint32_t count;
} sweep;

/* The cells belong to other threads, which add to them without a lock. An addition that was under way when the bit was
 * cleared sets it again: then nothing has happened. After a barrier everywhere none is under way. */
static void confirm_sweep(void)
{
    if (!sweep.count)
        return;
    hw_threads_barrier();
    hw_sigset old = hw_lock_take(&side.lock);
    for (uint32_t i = 0; i < sweep.count; i++) {
        uintptr_t half = (uintptr_t)sweep.half[i];
        if (!(__atomic_load_n(sweep.half[i], __ATOMIC_ACQUIRE) & HALF_FULL))
            side_add(half & ~7ul, half >> 2 & 1, HALF_FULL);
    }
    hw_lock_drop(&side.lock, old);
    sweep.count = 0;
}

static void sweep_cells(uintptr_t start, uintptr_t end)
{
    typedef uint64_t __attribute__((may_alias)) word;
    for (const word *cell = (const word *)(start & ~7ul); cell < (const word *)end; cell += 8) {
        uint64_t any = 0; /* eight at a time: there is hardly ever one */
        for (int i = 0; i < 8; i++)
            any |= cell[i];
        if (hw_likely(!(any & BOTH_HALF_FULL)))
            continue;
        for (uint32_t *half = (uint32_t *)cell; half < (uint32_t *)(cell + 8); half++) {
            uint32_t value = __atomic_load_n(half, __ATOMIC_RELAXED);
            if (value <= HALF_FULL) /* something has to stay: the granule was touched */
                continue;
            __atomic_fetch_and(half, ~HALF_FULL, __ATOMIC_SEQ_CST);
            sweep.half[sweep.count++] = half;
            if (sweep.count == SWEEP_AT_ONCE)
                confirm_sweep();
        }
    }
}

static void sweep_area(const struct hw_area *area)
{
    if (area->own || area->end >> HW_ARCH_ADDRESS_BITS)
        return;
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++)
        hw_resident_each(hw_shadow.plane[i] + (area->start >> 3), hw_shadow.plane[i] + (area->end >> 3), sweep_cells);
}

/* An addition to a cell waits for the one before, a nanosecond or more: so long do 2^32 of them take. */
#define UNSWEPT_NS 4000000000ull

void hw_shadow_check_sweeps(void)
{
    static uint64_t before_ns;
    uint64_t now_ns;
    if (hw_shadow.granule != 64 || !(now_ns = hw_clock_read(CLOCK_PROCESS_CPUTIME_ID)))
        return;
    uint64_t spent_ns = now_ns - __atomic_exchange_n(&before_ns, now_ns, __ATOMIC_RELAXED);
    if (spent_ns > UNSWEPT_NS && (int64_t)spent_ns > 0) /* a forked child's time begins anew */
        hw_note(HW_NOTE_NOT_SWEPT, NULL);
}

/* The cost of a sweep is its processor time: on a busy machine the clock shows much more, and the next sweep would come
 * too late. */
void hw_shadow_sweep(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (hw_ticks_raw() - hw_runtime.tick_base >= hw_shadow.sweep_next) {
        const struct hw_process_info *process = hw_runtime.process;
        bool first = hw_shadow.sweep_next == 0;
        uint64_t begin_ns = 0, end_ns = 0, wait_ns = SWEEP_NS;
        hw_shadow.sweep_next = UINT64_MAX;
        if (!first && hw_shadow.granule == 64 && !hw_quiet) {
            begin_ns = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
            hw_areas_each(sweep_area);
            confirm_sweep();
            end_ns = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
            if (end_ns > begin_ns)
                wait_ns = hw_budget_pause(HW_BUDGET_SWEEP, end_ns - begin_ns, SWEEP_NS);
        }
        uint64_t wait = (uint64_t)((double)wait_ns * (double)process->clock_ticks / (double)process->clock_ns);
        hw_shadow.sweep_next = hw_ticks_raw() - hw_runtime.tick_base + wait;
    }
    hw_lock_drop(&hw_runtime.lock, old);
    hw_shadow_check_sweeps();
}

void hw_shadow_side_clear(void)
{
    side.lock = (struct hw_lock){0};
    for (uint32_t i = 0; i < side.used; i++)
        side.entries[i] = (struct side_entry){0};
    side.used = 0;
    hw_shadow.carried = 0;
}

/* Only this thread is left. All cells read as zero now. It keeps its plane, which its functions may have in a register.
 */
void hw_shadow_fork(void)
{
    if (!hw_shadow.base)
        return;
    for (uint32_t i = 0; i < HW_PLANES_MOST; i++) {
        planes.users[i] = i + 1 == hw_self_plane;
        planes.released[i] = 0;
        planes.role[i] = i + 1 == hw_self_plane ? hw_self_role : (uint32_t)HW_ROLE_UNKNOWN;
    }
    hw_shadow.plane[0] = hw_shadow.base;
    hw_shadow.planes_used = 1;
    if (__heapwise_plane != hw_shadow.base)
        hw_shadow.plane[hw_shadow.planes_used++] = __heapwise_plane;
    hw_shadow.threads_sharing = 0;
    hw_shadow.sweep_next = 0;
    sweep.count = 0;
    hw_shadow_side_clear();
}

/* ---- areas that share cells ---- */

#define AREAS_MOST 1024u
static struct {
    uintptr_t start, end;
} areas[AREAS_MOST] HW_LARGE;
static uint32_t area_count;

static void add_area(const struct hw_area *area)
{
    if (!area->own && area->writable && !area->shared && area_count < AREAS_MOST) {
        areas[area_count].start = area->start;
        areas[area_count++].end = area->end;
    }
}

/* Is a multiple (1 to MOST) of PERIOD, shifted by SHIFT, a distance of addresses of the two? */
static bool meet(uint32_t a, uint32_t b, uint64_t period, uint64_t most, int64_t shift)
{
    uintptr_t least = areas[b].start - areas[a].end - (uintptr_t)shift + 1;
    uintptr_t longest = areas[b].end - areas[a].start - (uintptr_t)shift - 1;
    if ((int64_t)longest < 0)
        return false;
    uint64_t times = (int64_t)least <= 0 ? 0 : (least + period - 1) / period;
    if (times == 0 && shift == 0)
        times = 1;
    return times <= most && times * period <= longest;
}

void hw_shadow_look_for_folds(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    area_count = 0;
    hw_areas_each(add_area);
    uint64_t period = hw_shadow.stride << hw_shadow.shift, most = 0;
    for (uint32_t i = 0; i < hw_shadow.planes_used; i++) {
        uint64_t plane = (hw_shadow.plane[i] - hw_shadow.base) / hw_shadow.stride;
        most = plane > most ? plane : most;
    }
    most = hw_shadow.memprof_used && !most ? 1 : most;
    bool folded = false;
    for (uint32_t a = 0; a < area_count && !folded; a++)
        for (uint32_t b = a; b < area_count && !folded; b++) {
            folded = meet(a, b, period, most, 0);
            int64_t apart = (int64_t)HW_ABI_WRITES_OFFSET << hw_shadow.shift; /* writes from reads */
            if (hw_shadow.granule != 64)
                folded = folded || meet(a, b, period, most, apart) || meet(a, b, period, most, -apart);
        }
    hw_lock_drop(&hw_runtime.lock, old);
    if (folded)
        hw_note(HW_NOTE_FOLDED, NULL);
}
