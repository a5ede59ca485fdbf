/* file.c - the profile file as the live data structure: one mapping a section, grown by extents, valid at all times.
 *
 * Each section has a reserved address range; extents of the file are mapped into it one behind the other, so that an
 * entry is found by its index. Space is allocated on disk before it is mapped: a full disk is an error code here and
 * never a SIGBUS in the program. The format is specified in profile/format.h. Everything here runs under the lock. */
#include "base/launcher.h"
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"

#include <errno.h>
#include <sys/resource.h>
#include <linux/falloc.h>
#include <sys/stat.h>

char hw_file_path[1024];
uint32_t hw_file_pid;
uint64_t hw_file_start_time;

static struct {
    int fd; /* -1: closed between uses, because the program may need every descriptor it can have */
    uint64_t dev, ino;
    uint64_t end;       /* of the last extent */
    uint64_t allocated; /* on disk, up to here at least, for extents that are to come */
    struct hw_file_header *header;
    struct hw_section *directory; /* current directory */
    uint32_t *directory_used;     /* its count: the header's, or chained_used */
    uint32_t chained_used;
    uint32_t directory_capacity;
    bool broken; /* cannot grow any more */
    bool given;  /* made by heapwise record: its name means nothing here */
    bool parent_sealed;
    char problem[256];
    int error; /* with it: errno, or 0 */
} file = {.fd = -1};

#define K 1024ull
#define M (1024ull * K)
#define G (1024ull * M)

/* When a section is written, and whether a forked child begins with its parent's entries. */
enum pool_when { ALWAYS, ACCESS, SAMPLING, SHARING, FIELDS, ALLOCATOR, LOGGING };
#define COPIED true
#define EMPTY  false

enum {
#define HW_SECTION(number, name, entry, size, ...) ENTRY_BYTES_##name = size,
#include "profile/sections.def"
};

/* Reserved address space is only an upper bound. Where it is limited each section gets a share of the limit; all
 * together take less than a tenth. */
static const struct {
    uint32_t type, entry_size;
    uint64_t reserve, limited_share, first_extent;
    enum pool_when when;
    bool copied;
} pool_table[HW_POOL_COUNT] = {
#define HW_POOL(name, when, reserve, share, first, change, fork)                                                       \
    [HW_POOL_##name] = {HW_SECTION_##name, ENTRY_BYTES_##name, reserve, share, first, when, fork},
#include "profile/sections.def"
};
struct hw_pool hw_pools[HW_POOL_COUNT];

static void set_problem(const char *what, long error)
{
    file.error = (int)-error;
    hw_text_join(file.problem, sizeof file.problem, what, error ? ": " : NULL, hw_error_name((int)-error));
}

const char *hw_file_problem(void)
{
    return file.problem;
}

/* ---- the descriptor ---- */

static bool is_our_file(int fd)
{
    struct stat status;
    return hw_sys(SYS_fstat, fd, &status) == 0 && status.st_dev == file.dev && status.st_ino == file.ino;
}

/* Descriptor limit; 0 when it cannot be asked. */
static uint64_t descriptor_limit(void)
{
    uint64_t limit[2] = {0, 0};
    hw_prlimit(0, RLIMIT_NOFILE, 0, limit);
    return limit[0];
}

/* Puts the descriptor out of the way of programs that expect low numbers; programs with few descriptors keep them all.
 */
static void park_descriptor(int fd)
{
    uint64_t limit = descriptor_limit();
    if (limit >= 128) {
        long high = hw_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, limit > 1024 ? 1000 : limit - 8);
        if (high >= 0) {
            hw_close(fd);
            file.fd = (int)high;
            return;
        }
    }
    hw_close(fd);
    file.fd = -1;
}

/* The descriptor for use now, or -errno. The program may have closed it, and opened something else at its number. */
static int use_descriptor(void)
{
    if (file.fd >= 0 && is_our_file(file.fd))
        return file.fd;
    file.fd = -1;
    int fd = hw_open(hw_file_path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    if (!is_our_file(fd)) {
        hw_close(fd);
        return -ENOENT;
    }
    return fd;
}

static void done_with_descriptor(int fd)
{
    if (fd != file.fd)
        park_descriptor(fd);
}

int hw_file_descriptor(void)
{
    return file.fd >= 0 && is_our_file(file.fd) ? file.fd : -1;
}

int hw_file_descriptor_number(void)
{
    return file.fd;
}

void hw_file_move_descriptor(int away_from)
{
    if (file.fd == away_from && is_our_file(file.fd)) {
        long moved = hw_sys(SYS_fcntl, file.fd, F_DUPFD_CLOEXEC, away_from + 1);
        file.fd = moved >= 0 ? (int)moved : -1;
    }
}

/* ---- growth ---- */

/* Allocates [offset, offset + bytes) on disk. A file size limit would raise SIGXFSZ: look first. */
static long allocate_space(int fd, uint64_t offset, uint64_t bytes)
{
    if (offset + bytes <= file.allocated)
        return 0;
    if (offset + bytes > hw_soft_limit(RLIMIT_FSIZE))
        return -EFBIG;
    long result = hw_sys(SYS_fallocate, fd, 0, offset, bytes);
    if (result != -EOPNOTSUPP && result != -ENOSYS)
        return result;
    static const char zeros[HW_PAGE];
    for (uint64_t done = 0; done < bytes; done += sizeof zeros) {
        result = hw_pwrite_full(fd, zeros, sizeof zeros, offset + done);
        if (result < 0)
            return result;
    }
    return 0;
}

static long map_extent(int fd, void *address, uint64_t offset, uint64_t bytes)
{
    long result = hw_mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    if (hw_own_unlocked && !hw_sys_failed(result))
        hw_sys(SYS_munlock, address, bytes);
    return hw_sys_failed(result) ? result : 0;
}

static struct hw_section *append_section(uint32_t type, uint32_t entry_size, uint64_t offset, uint64_t bytes)
{
    uint32_t *used = file.directory_used;
    struct hw_section *section = &file.directory[*used];
    section->version = 1;
    section->offset = offset;
    section->capacity = bytes;
    section->used = 0;
    section->entry_size = entry_size;
    __atomic_store_n(&file.header->total_size, file.end, __ATOMIC_RELEASE);
    __atomic_store_n(&section->type, type, __ATOMIC_RELEASE); /* last: makes the entry valid in a chained directory */
    __atomic_store_n(used, *used + 1, __ATOMIC_RELEASE);
    return section;
}

/* All extents: a pool's are chained from the last to the first. */
#define EXTENTS_MOST 16384u
static struct {
    uint32_t used;
    struct {
        struct hw_section *section;
        uint64_t base; /* bytes of the pool before it */
        uint32_t before;
    } of[EXTENTS_MOST + 1];
} extents HW_LARGE;

static void add_extent(struct hw_pool *pool, uint64_t base, struct hw_section *section)
{
    uint32_t index = ++extents.used;
    extents.of[index].section = section;
    extents.of[index].base = base;
    extents.of[index].before = pool->extents;
    pool->extents = index;
}

/* The last free entry of a directory leads to the next directory. */
static long ensure_directory(int fd)
{
    if (*file.directory_used + 1 < file.directory_capacity)
        return 0;
    long result = allocate_space(fd, file.end, HW_PAGE);
    if (result < 0)
        return result;
    long address = hw_mmap(0, HW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, file.end);
    if (hw_sys_failed(address))
        return address;
    hw_own_range((void *)address, HW_PAGE);
    uint64_t offset = file.end;
    file.end += HW_PAGE;
    struct hw_section *link = append_section(HW_SECTION_DIRECTORY, sizeof(struct hw_section), offset, HW_PAGE);
    file.directory = (struct hw_section *)address;
    /* The whole page counts as used: entries that are not, have type 0. */
    link->used = HW_PAGE;
    file.chained_used = 0;
    file.directory_used = &file.chained_used;
    file.directory_capacity = HW_PAGE / sizeof(struct hw_section);
    return 0;
}

void hw_file_note_extent(struct hw_file_header *header, uint32_t type, uint64_t offset)
{
    uint64_t *first = type == HW_SECTION_MAPS     ? &header->map_offset
                      : type == HW_SECTION_MIBS   ? &header->mib_offset
                      : type == HW_SECTION_STACKS ? &header->stack_offset
                                                  : NULL;
    if (first && !*first)
        *first = offset;
}

/* Entries never straddle extents: extents are multiples of a whole number of entries and of pages. */
static uint64_t unit_of(const struct hw_pool *pool)
{
    return HW_PAGE * (pool->entry_size >> __builtin_ctz(pool->entry_size));
}

/* Bytes of the next extent, where at least NEED are needed; less: there is no more address space. */
static uint64_t next_extent(const struct hw_pool *pool, uint64_t need)
{
    uint64_t bytes = pool->mapped / 2;
    if (bytes < pool->first_extent)
        bytes = pool->first_extent;
    if (bytes < 4 * K)
        bytes = 4 * K;
    if (bytes > 8 * M)
        bytes = 8 * M;
    if (bytes < need)
        bytes = need;
    uint64_t unit = pool->reserved <= HW_PAGE ? HW_PAGE : unit_of(pool);
    bytes = (bytes + unit - 1) / unit * unit;
    if (pool->mapped + bytes > pool->reserved)
        bytes = (pool->reserved - pool->mapped) / unit * unit;
    return bytes;
}

static bool grow(struct hw_pool *pool, uint64_t need)
{
    if (file.broken || hw_quiet) {
        if (hw_quiet)
            set_problem("the program has given up system calls", 0);
        return false;
    }
    const uint64_t bytes = next_extent(pool, need);
    if (bytes < need || extents.used == EXTENTS_MOST) {
        set_problem("a section has reached its greatest size", 0);
        return false;
    }
    int fd = use_descriptor();
    if (fd < 0) {
        set_problem("the profile cannot be reached any more", fd);
        file.broken = true;
        return false;
    }
    long result = ensure_directory(fd);
    uint64_t offset = file.end;
    if (result >= 0)
        result = allocate_space(fd, offset, bytes);
    if (result >= 0)
        result = map_extent(fd, pool->base + pool->mapped, offset, bytes);
    done_with_descriptor(fd);
    if (result < 0) {
        set_problem("the profile cannot grow", result);
        file.broken = true;
        return false;
    }
    file.end += bytes;
    add_extent(pool, pool->mapped, append_section(pool->type, pool->entry_size, offset, bytes));
    pool->mapped += bytes;
    hw_file_note_extent(file.header, pool->type, offset);
    return true;
}

static bool fits(struct hw_pool *pool, uint64_t bytes)
{
    return hw_likely(pool->used + bytes <= pool->mapped) || grow(pool, pool->used + bytes - pool->mapped);
}

uint32_t hw_pool_take(enum hw_pool_id id, uint32_t count)
{
    struct hw_pool *pool = &hw_pools[id], *beside = &hw_pools[HW_POOL_ACCESS];
    uint64_t bytes = (uint64_t)count * pool->entry_size;
    if (hw_unlikely(!fits(pool, bytes)))
        return HW_NONE;
    if (id == HW_POOL_MIBS && beside->base) { /* entry i of one belongs to entry i of the other */
        uint64_t used = (pool->used + bytes) / pool->entry_size * beside->entry_size;
        if (!fits(beside, used - beside->used))
            return HW_NONE;
        beside->used = used;
    }
    uint32_t index = (uint32_t)(pool->used / pool->entry_size);
    pool->used += bytes;
    return index;
}

void hw_pool_publish(enum hw_pool_id id)
{
    struct hw_pool *pool = &hw_pools[id];
    if (id == HW_POOL_MIBS)
        hw_pool_publish(HW_POOL_ACCESS);
    /* From the last extent back to the first one that is full and known to be: what lies before it is, too. */
    for (uint32_t i = pool->extents; i; i = extents.of[i].before) {
        uint64_t base = extents.of[i].base, capacity = extents.of[i].section->capacity;
        uint64_t used = pool->used <= base ? 0 : pool->used - base < capacity ? pool->used - base : capacity;
        if (used == capacity && extents.of[i].section->used == capacity)
            break;
        __atomic_store_n(&extents.of[i].section->used, used, __ATOMIC_RELEASE);
    }
}

void hw_pool_set_count(enum hw_pool_id id, uint32_t count)
{
    struct hw_pool *pool = &hw_pools[id];
    pool->used = (uint64_t)count * pool->entry_size;
    hw_pool_publish(id);
}

void hw_pool_forget(enum hw_pool_id id)
{
    __builtin_memset(hw_pools[id].base, 0, hw_pools[id].used);
    hw_pool_set_count(id, 0);
}

uint32_t hw_file_string(const char *string)
{
    uint32_t length = (uint32_t)hw_strlen(string) + 1;
    if (length == 1)
        return 0;
    uint32_t offset = hw_pool_take(HW_POOL_STRINGS, length);
    if (offset == HW_NONE)
        return 0;
    char *to = hw_pools[HW_POOL_STRINGS].base + offset;
    for (uint32_t i = 0; i < length; i++)
        to[i] = string[i];
    hw_pool_publish(HW_POOL_STRINGS);
    return offset;
}

/* ---- creation ---- */

static bool is_wanted(int id)
{
    switch (pool_table[id].when) {
    case SHARING:
        return hw_options.sample_accesses != 0 || hw_access_on();
    case SAMPLING:
        return hw_options.sample_accesses != 0;
    case ACCESS:
        return hw_access_on();
    case FIELDS:
        return hw_shadow.fields != 0;
    case ALLOCATOR:
        return hw_runtime.mode == HW_MODE_ALLOCATOR;
    case LOGGING:
        return hw_options.block_log != 0;
    default:
        return true;
    }
}

/* Address space that a section may take, where the process may have LIMIT bytes. */
static uint64_t room_for(int id, uint64_t limit)
{
    uint64_t reserve = pool_table[id].reserve, share = limit / 1024 * pool_table[id].limited_share;
    if (pool_table[id].limited_share && share < reserve)
        reserve = share < 32 * K ? 32 * K : share & ~(HW_PAGE - 1);
    if (id == HW_POOL_CONTEXTS && hw_address_space_limited() && reserve > 1 * M)
        reserve = 1 * M; /* each thread has an index of them */
    return reserve;
}

static void begin_pool(int id, char *base, uint64_t reserved)
{
    hw_pools[id] = (struct hw_pool){
        .type = pool_table[id].type,
        .entry_size = pool_table[id].entry_size,
        .reserved = reserved,
        .first_extent = pool_table[id].first_extent,
        .base = base,
    };
}

/* Address space for the sections that WANTED names and that have none, one behind the other in one mapping: a mapping
 * each would take longer at the start of the process, and at its end, when all are listed. */
static bool reserve_pools(bool (*wanted)(int id))
{
    const uint64_t limit = hw_address_space_limit();
    uint64_t bytes = 0;
    for (int i = 0; i < HW_POOL_COUNT; i++)
        if (!hw_pools[i].base && wanted(i))
            bytes += room_for(i, limit) + HW_PAGE;
    if (!bytes)
        return true;
    const long address =
        hw_mmap(hw_own_hint(bytes), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hw_sys_failed(address)) {
        set_problem("no address space for the profile", address);
        return false;
    }
    hw_own_range((void *)address, bytes);
    char *base = (char *)address;
    for (int i = 0; i < HW_POOL_COUNT; i++)
        if (!hw_pools[i].base && wanted(i)) {
            begin_pool(i, base, room_for(i, limit));
            base += hw_pools[i].reserved + HW_PAGE; /* a page between two of them stays inaccessible */
        }
    return true;
}

/* A forked child maps its own file over what it inherited; it must not write into its parent's, whatever happens. */
static void empty_pools(void)
{
    for (int i = 0; i < HW_POOL_COUNT; i++)
        if (hw_pools[i].base) {
            hw_mmap(hw_pools[i].base, hw_pools[i].reserved, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
            begin_pool(i, hw_pools[i].base, hw_pools[i].reserved);
        }
    extents.used = 0;
}

static bool is_of_accesses(int id)
{
    return pool_table[id].when == ACCESS || pool_table[id].when == SHARING;
}

static bool is_of_fields(int id)
{
    return pool_table[id].when == FIELDS;
}

bool hw_file_add_access(void)
{
    return reserve_pools(is_of_accesses);
}

bool hw_file_add_fields(void)
{
    return reserve_pools(is_of_fields);
}

static char executable[256]; /* of this process, and of those it forks */

/* A file that record makes. -errno when it does not. */
static int given_file(void)
{
    struct hw_launcher_reply reply;
    int fd = hw_launcher_file(executable, &reply);
    if (fd < 0)
        return fd;
    hw_text_join(hw_file_path, sizeof hw_file_path, reply.path);
    hw_file_pid = reply.pid;
    hw_file_start_time = reply.start_time;
    file.given = true;
    return fd;
}

uint32_t hw_file_mode(void)
{
    return hw_options.contents && hw_options.contents_samples ? HW_PRIVATE_MODE : 0666;
}

/* A new file under the first free name. -errno on failure. */
static int own_file(void)
{
    for (unsigned attempt = 0; attempt < 1000; attempt++) {
        hw_output_name(hw_file_path, sizeof hw_file_path, executable, attempt);
        int fd = hw_open(hw_file_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, hw_file_mode());
        if (fd != -EEXIST)
            return fd;
    }
    return -EEXIST;
}

/* Where process ids are others than outside, record knows the name. */
static int create_file(void)
{
    if (!*executable)
        hw_output_executable(executable, sizeof executable);
    hw_file_pid = 0;
    hw_file_start_time = 0;
    file.given = false;
    bool asked = hw_launcher_other_ids();
    int fd = asked ? given_file() : -ENOENT;
    if (fd >= 0)
        return fd;
    if (asked) { /* in a network namespace of its own; /proc may still be the one outside */
        char link[24];
        hw_read_link("/proc/self", link, sizeof link);
        const char *number = link;
        hw_file_pid = (uint32_t)hw_parse_u64(&number, 10);
    }
    int own = own_file();
    if (own < 0 && !asked && (fd = given_file()) >= 0)
        return fd;
    return own;
}

static void delete_file(void)
{
    if (!file.given)
        hw_sys(SYS_unlink, hw_file_path);
}

/* The timeline is one extent, because it is rewritten in place; last, because the end of the file can be cut off. */
static const enum hw_pool_id essential[] = {HW_POOL_PROCESS, HW_POOL_STRINGS, HW_POOL_THREADS, HW_POOL_THREAD_LIST,
                                            HW_POOL_MIBS,    HW_POOL_MAPS,    HW_POOL_STACKS,  HW_POOL_CONTEXTS,
                                            HW_POOL_NOTES,   HW_POOL_MEMORY,  HW_POOL_TIMELINE};

/* Space for the first page and the first extents at once: a call each takes longer, and so does the end of a file in
 * many pieces. Where that is not possible, what is, is seen with each of them. */
static void allocate_first(int fd)
{
    uint64_t bytes = HW_FILE_PAGE;
    for (size_t i = 0; i < sizeof essential / sizeof *essential; i++)
        bytes += next_extent(&hw_pools[essential[i]], 1);
    if (allocate_space(fd, 0, bytes) >= 0)
        file.allocated = bytes;
}

/* Makes FD the file, with its first page. */
static long begin_file(int fd)
{
    struct stat status;
    long result = hw_sys(SYS_fstat, fd, &status);
    if (result >= 0) {
        file.allocated = 0;
        if (!extents.used) /* a forked child first copies sections, of any size */
            allocate_first(fd);
        result = allocate_space(fd, 0, HW_FILE_PAGE);
    }
    void *old_header = file.header;
    long address = result;
    if (result >= 0)
        address =
            hw_mmap(old_header, HW_FILE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | (old_header ? MAP_FIXED : 0), fd, 0);
    if (hw_sys_failed(address))
        return address;
    if (!old_header)
        hw_own_range((void *)address, HW_FILE_PAGE);
    file.dev = status.st_dev;
    file.ino = status.st_ino;
    file.end = HW_FILE_PAGE;
    file.broken = false;
    file.header = (struct hw_file_header *)address;
    file.directory = (struct hw_section *)(file.header + 1);
    file.directory_capacity = (HW_FILE_PAGE - sizeof *file.header) / sizeof(struct hw_section);
    file.directory_used = &file.header->directory_used;
    *file.header = (struct hw_file_header){
        .version_major = HW_FILE_VERSION_MAJOR,
        .version_minor = HW_FILE_VERSION_MINOR,
        .total_size = HW_FILE_PAGE,
        .page_size = HW_FILE_PAGE,
        .directory_capacity = file.directory_capacity,
        .session = hw_options.session,
    };
    __atomic_store_n(&file.header->magic, HW_FILE_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

static bool take_first_entries(void)
{
    for (size_t i = 0; i < sizeof essential / sizeof *essential; i++)
        if (!hw_pools[essential[i]].mapped && !grow(&hw_pools[essential[i]], 1))
            return false;
    hw_pool_take(HW_POOL_PROCESS, 1);
    hw_pool_publish(HW_POOL_PROCESS);
    hw_runtime.process = (struct hw_process_info *)hw_pools[HW_POOL_PROCESS].base;
    if (!hw_pools[HW_POOL_STRINGS].used)
        hw_pool_take(HW_POOL_STRINGS, 1); /* offset 0 is "" */
    hw_pool_publish(HW_POOL_STRINGS);
    if (hw_pool_take(HW_POOL_MIBS, 1) == HW_NONE) /* index 0 means "none"; with it an entry for accesses */
        return false;
    hw_pool_publish(HW_POOL_MIBS);
    return true;
}

static bool open_new_file(void)
{
    int fd = create_file();
    long result = fd;
    if (fd >= 0)
        result = begin_file(fd);
    if (result < 0) {
        set_problem(hw_file_path, result);
        if (fd >= 0) {
            delete_file();
            hw_close(fd);
        }
        return false;
    }
    park_descriptor(fd);
    return true;
}

static void give_up_file(void)
{
    hw_trouble("cannot write a profile: ", file.problem, file.error);
    for (int i = 0; i < HW_POOL_COUNT; i++) /* the program may need the address space */
        if (hw_pools[i].base)
            hw_munmap(hw_pools[i].base, hw_pools[i].reserved);
    if (file.header) {
        delete_file();
        if (hw_file_descriptor() >= 0)
            hw_close(file.fd);
        file.fd = -1;
    }
}

bool hw_file_create(void)
{
    if (!reserve_pools(is_wanted) || !open_new_file() || !take_first_entries()) {
        give_up_file();
        return false;
    }
    return true;
}

/* ---- fork ---- */

/* This forked child has no profile: counts it in its parent's, whose sections are still mapped, and whose file may have
 * got its last checksum meanwhile. ERROR: errno; 0: system calls were given up. */
static void tell_parent(int error)
{
    struct hw_process_info *parent = hw_runtime.process;
    if (!file.parent_sealed && __atomic_fetch_add(&parent->children_lost, 1, __ATOMIC_RELAXED) == 0)
        parent->children_error = (uint32_t)error;
}

/* Copies the first BYTES of an inherited section into an extent of the new file; where that lies, or -errno. The
 * parent's mapping is still there to read from. */
static int64_t copy_section(enum hw_pool_id id, uint64_t bytes, uint64_t *extent)
{
    const struct hw_pool *pool = &hw_pools[id];
    uint64_t unit = unit_of(pool);
    *extent = (bytes + bytes / 4 + pool->first_extent + unit - 1) / unit * unit;
    if (*extent > pool->reserved)
        *extent = pool->reserved / unit * unit;
    if (*extent < bytes)
        return -ENOSPC;
    int fd = use_descriptor();
    if (fd < 0)
        return fd;
    uint64_t offset = file.end;
    long result = allocate_space(fd, offset, *extent);
    if (result >= 0)
        result = hw_pwrite_full(fd, pool->base, bytes, offset);
    done_with_descriptor(fd);
    if (result < 0)
        return result;
    file.end += *extent;
    return (int64_t)offset;
}

static long map_section(enum hw_pool_id id, uint64_t bytes, uint64_t offset, uint64_t extent)
{
    struct hw_pool *pool = &hw_pools[id];
    int fd = use_descriptor();
    if (fd < 0)
        return fd;
    long result = map_extent(fd, pool->base, offset, extent);
    done_with_descriptor(fd);
    if (result < 0)
        return result;
    pool->mapped = extent;
    pool->used = bytes;
    add_extent(pool, 0, append_section(pool->type, pool->entry_size, offset, extent));
    hw_pool_publish(id);
    hw_file_note_extent(file.header, pool->type, offset);
    return 0;
}

/* Copies what the child needs, then puts its own sections where the parent's were. */
static bool inherit_sections(void)
{
    uint64_t bytes[HW_POOL_COUNT], extent[HW_POOL_COUNT];
    int64_t offset[HW_POOL_COUNT];
    long result = 0;
    for (int i = 0; i < HW_POOL_COUNT && result >= 0; i++) {
        bytes[i] = pool_table[i].copied ? hw_pools[i].used : 0;
        if (bytes[i])
            result = (long)(offset[i] = copy_section(i, bytes[i], &extent[i]));
    }
    if (result < 0) {
        set_problem("the profile of a forked process cannot grow", result);
        tell_parent(file.error);
        return false;
    }
    empty_pools();
    for (int i = 0; i < HW_POOL_COUNT && result >= 0; i++)
        if (bytes[i])
            result = map_section(i, bytes[i], (uint64_t)offset[i], extent[i]);
    if (result < 0)
        set_problem("the profile of a forked process cannot grow", result);
    return result >= 0;
}

void hw_file_fork_quiet(void)
{
    file.parent_sealed = __atomic_load_n(&file.header->flags, __ATOMIC_ACQUIRE) & HW_FILE_SEALED;
    tell_parent(0);
}

bool hw_file_fork(void)
{
    file.parent_sealed = __atomic_load_n(&file.header->flags, __ATOMIC_ACQUIRE) & HW_FILE_SEALED;
    if (hw_file_descriptor() >= 0) /* the parent's file: not ours any more */
        hw_close(file.fd);
    file.fd = -1;
    if (!open_new_file()) {
        tell_parent(file.error);
        if (!hw_options.session)
            hw_message("cannot write a profile of a forked process: ", file.problem);
        return false;
    }
    if (!inherit_sections() || !take_first_entries()) {
        give_up_file();
        return false;
    }
    return true;
}

/* How much is allocated in what comes does not depend on what has been, but on how much code there is: PART of its
 * bytes (0: none) at the last opportunity. Chromium's renderers need a third of that for a plain page. Each thread
 * that is alive at once has 24 KiB of OPERATION_COUNTS: there is room for 64. */
static const struct {
    enum hw_pool_id pool;
    uint32_t bytes, part;
} room[] = {
    {HW_POOL_STRINGS, 16 * K, 0},         {HW_POOL_STACKS, 512 * K, 32},        {HW_POOL_CONTEXTS, 64 * K, 128},
    {HW_POOL_MIBS, 512 * K, 8},           {HW_POOL_THREADS, 32 * K, 0}, {HW_POOL_THREAD_LIST, 48 * K, 0},         {HW_POOL_NOTES, 4 * K, 0},
    {HW_POOL_ACCESS, 512 * K, 8},         {HW_POOL_HISTOGRAM, 512 * K, 16},     {HW_POOL_WORDS, 512 * K, 16},
    {HW_POOL_SIDES, 64 * K, 0},           {HW_POOL_SIZE_BARS, 128 * K, 32},     {HW_POOL_LIFETIME_BARS, 128 * K, 32},
    {HW_POOL_FREE_STACKS, 64 * K, 0},     {HW_POOL_STAGES, 16 * K, 0},          {HW_POOL_OPERATION_COUNTS, 1536 * K, 0},
    {HW_POOL_OPERATION_LOCKS, 16 * K, 0}, {HW_POOL_OPERATION_TIMES, 64 * K, 0}, {HW_POOL_OPERATION_SITES, 64 * K, 0}};

static void make_room(uint64_t code)
{
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        struct hw_pool *pool = &hw_pools[room[i].pool];
        uint64_t bytes = room[i].part ? code / room[i].part : 0, most = 32 * M;
        bytes = bytes < room[i].bytes ? room[i].bytes : bytes > most ? most : bytes;
        const uint64_t free = pool->mapped - pool->used;
        if (pool->base && free < bytes)
            grow(pool, bytes - free);
    }
}

void hw_file_make_room(bool last)
{
    const uint64_t code = last ? hw_modules_code_bytes() : 0;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    make_room(0); /* that much each, before there is none left */
    if (last)
        make_room(code);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_file_before_limit(uint64_t most)
{
    const uint64_t enough = file.end + 16 * M; /* a limit that is small already is looked at where the file grows */
    if (most < enough && hw_soft_limit(RLIMIT_FSIZE) > enough + 256 * M)
        hw_file_make_room(true);
}

void hw_file_let_go(void)
{
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    if (hw_file_descriptor() >= 0)
        hw_close(file.fd);
    file.fd = -1;
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_file_discard(void)
{
    hw_file_let_go();
    delete_file();
}

void hw_file_set_exited(bool exited)
{
    if (exited)
        __atomic_fetch_or(&file.header->flags, HW_FILE_EXITED, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&file.header->flags, ~(uint32_t)HW_FILE_EXITED, __ATOMIC_RELEASE);
}
