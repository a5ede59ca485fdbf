/* container.c - first page and directories of a profile file: bytes -> checked extents.
 *
 * Works on the file through pread only: a mapping could vanish under the reader (SIGBUS) when a file is trimmed. */
#include "profile/container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/growing.h"
#include "base/order.h"
#include "profile/container/pack.h"
#include "profile/container/write.h"

#define EXTENTS_MOST (1u << 20)

/* More than this in one file is not a profile but a mistake: reading it would only exhaust the machine. */
#define USED_BYTES_MOST (16ull << 30)

static const struct hw_section_rule rules[HW_SECTION_KNOWN] = {
#define HW_SECTION(number, name, entry, size, least, turn, flags, look_up, few, packing, title, what)                  \
    [number] = {title, least, size, turn, (flags)&HW_RULE_INDEXED, (flags)&HW_RULE_STAYS, HW_LOOK_UP_##look_up, few},
#include "profile/sections.def"
};

/* For the types of entries by name. */
union entries {
#define HW_SECTION(number, name, entry, ...) entry name;
#include "profile/sections.def"
};

const struct hw_reference hw_references[] = {
#define HW_REFERS(name, member, to)                                                                                    \
    {#name, HW_SECTION_##name, HW_SECTION_##to, offsetof(__typeof__(((union entries *)0)->name), member)},
#include "profile/sections.def"
};
const size_t hw_reference_count = sizeof hw_references / sizeof *hw_references;

/* What is referred to is read later. */
enum {
#define HW_SECTION(number, name, entry, size, least, turn, ...) TURN_##name = turn,
#include "profile/sections.def"
};
#define HW_REFERS(name, member, to)                                                                                    \
    _Static_assert((int)TURN_##to <= HW_TURN_ANY || TURN_##name < TURN_##to || HW_SECTION_##name == HW_SECTION_##to,   \
                   #name " is read before " #to);
#include "profile/sections.def"
#define HW_SECTION(number, name, entry, size, least, turn, ...) _Static_assert((int)(turn) <= HW_TURN_LAST, #name);
#include "profile/sections.def"

const struct hw_section_rule *hw_section_rule(uint32_t type)
{
    return type < HW_SECTION_KNOWN && rules[type].name ? &rules[type] : NULL;
}

static const char *section_name(uint32_t type)
{
    const struct hw_section_rule *rule = hw_section_rule(type);
    return rule ? rule->name : "unknown";
}

/* ---- bytes ---- */

int hw_container_open(const char *path, bool writable, struct hw_error *error)
{
    /* O_NONBLOCK: opening a fifo must not wait for a writer. */
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    if (fd < 0) {
        hw_error_set(error, "cannot open '%s': %s", path, strerror(errno));
        return -1;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    hw_error_set(error, "'%s' is not a profile: %s", path,
                 S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file");
    close(fd);
    return -1;
}

int hw_container_open_bytes(const void *bytes, size_t size, const char *name, struct hw_error *error)
{
    const int fd = memfd_create("profile", MFD_CLOEXEC);
    if (fd >= 0 && hw_write_all(fd, bytes, size, 0))
        return fd;
    hw_error_set(error, "cannot read '%s': %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int64_t hw_container_read(int fd, void *buffer, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

/* XXH64 of the first page with its checksum field as zero. */
static uint64_t page_checksum(const unsigned char *page)
{
    unsigned char copy[HW_FILE_PAGE];
    memcpy(copy, page, sizeof copy);
    memset(copy + offsetof(struct hw_file_header, checksum), 0, sizeof(uint64_t));
    return XXH64(copy, sizeof copy, 0);
}

bool hw_container_checksum(int fd, uint64_t offset, uint64_t size, uint64_t *checksum)
{
    enum { CHUNK = 1 << 18 };
    char *buffer = malloc(CHUNK);
    XXH64_state_t *state = XXH64_createState();
    bool fine = buffer && state;
    if (fine)
        XXH64_reset(state, 0);
    else
        errno = ENOMEM;
    while (fine && size > 0) {
        size_t part = size < CHUNK ? (size_t)size : CHUNK;
        int64_t got = hw_container_read(fd, buffer, part, offset);
        if (got >= 0 && (size_t)got < part)
            errno = 0;
        fine = got == (int64_t)part;
        if (fine)
            XXH64_update(state, buffer, part);
        offset += part;
        size -= part;
    }
    if (fine)
        *checksum = XXH64_digest(state);
    XXH64_freeState(state);
    free(buffer);
    return fine;
}

/* ---- first page ---- */

/* Reads the first page and, after it, the length of the file. */
static bool read_page(struct hw_container *container, struct hw_error *error)
{
    static const unsigned char magic[8] = {0x89, 'H', 'W', 'P', 'R', 'O', 'F', '\n'};
    struct stat status;
    int64_t got = hw_container_read(container->fd, container->page, HW_FILE_PAGE, 0);
    if (got < 0 || fstat(container->fd, &status) < 0) {
        hw_error_set(error, "cannot read '%s': %s", container->path, strerror(errno));
        return false;
    }
    if (got == 0) {
        hw_error_set(error, "'%s' is not a profile: it is empty", container->path);
        return false;
    }
    if (memcmp(container->page, magic, got < 8 ? (size_t)got : 8) != 0) {
        hw_error_set(error, "'%s' is not a Heapwise profile", container->path);
        return false;
    }
    if (got < (int64_t)HW_FILE_PAGE) {
        hw_error_set(error, "'%s' is cut short: %lld bytes are left of it, not even the first page", container->path,
                     (long long)got);
        return false;
    }
    memcpy(&container->header, container->page, sizeof container->header);
    container->file_size = (uint64_t)status.st_size;
    return true;
}

static bool check_version(const struct hw_container *container, struct hw_error *error)
{
    uint32_t major = container->header.version_major, minor = container->header.version_minor;
    if (major > HW_FILE_VERSION_MAJOR) {
        hw_error_set(error,
                     "'%s' has format version %u.%u, this heapwise reads versions up to %u.x: use a newer heapwise",
                     container->path, major, minor, (unsigned)HW_FILE_VERSION_MAJOR);
        return false;
    }
    if (major == 0) {
        hw_error_set(error, "'%s' is damaged: there is no format version 0.%u", container->path, minor);
        return false;
    }
    return true;
}

/* Sealing stores checksum and flag one after the other. A reader that comes between the two waits a moment. */
static bool half_sealed(const struct hw_file_header *header)
{
    return !!(header->flags & HW_FILE_SEALED) != (header->checksum != 0);
}

/* Decides whether checksums hold, and says so when the first page contradicts itself. */
static void judge_seal(struct hw_container *container)
{
    struct hw_file_header *header = &container->header;
    bool flag = header->flags & HW_FILE_SEALED;
    container->sealed = flag;
    if (!flag && header->checksum == 0)
        return;
    if (header->checksum == 0) {
        hw_problem(container->problems, "The first page is damaged: it claims to be sealed but has no checksum; "
                                        "the file was read without checksums.");
        container->sealed = false;
        return;
    }
    unsigned char page[HW_FILE_PAGE];
    memcpy(page, container->page, sizeof page);
    page[offsetof(struct hw_file_header, flags)] |= HW_FILE_SEALED;
    bool matches = page_checksum(page) == header->checksum;
    if (matches && !flag) {
        hw_problem(container->problems, "The first page is damaged: its mark of a sealed file is gone.");
        header->flags |= HW_FILE_SEALED;
        container->sealed = true;
    } else if (!matches) {
        hw_problem(container->problems,
                   "The first page is damaged (its checksum is wrong): of the rest only those parts "
                   "were kept whose own checksum is right.");
        /* Checksums of extents decide, not a doubtful flag. */
        container->sealed = true;
    }
}

static bool page_is_trusted(const struct hw_container *container)
{
    const unsigned char *page = container->page;
    uint32_t flags;
    memcpy(&flags, page + offsetof(struct hw_file_header, flags), sizeof flags);
    if (!container->sealed)
        return true;
    return (flags & HW_FILE_SEALED) && page_checksum(page) == container->header.checksum;
}

/* ---- directories ---- */

static bool entry_size_possible(const struct hw_section *entry)
{
    const struct hw_section_rule *rule = hw_section_rule(entry->type);
    if (!rule)
        return true; /* nothing is read from it */
    if (rule->smallest == 1 || entry->type == HW_SECTION_DIRECTORY)
        return entry->entry_size == rule->smallest;
    return entry->entry_size >= rule->smallest && entry->entry_size <= HW_ENTRY_SIZE_MOST && entry->entry_size % 8 == 0;
}

/* What is wrong with the flags of an entry, or NULL. */
static const char *flags_fault(const struct hw_container *container, const struct hw_section *entry)
{
    size_t fields;
    if (!hw_section_rule(entry->type))
        return NULL; /* nothing is read from it */
    if (entry->flags & HW_SECTION_MUST_KNOW)
        return "can only be read by a newer heapwise";
    if (!(entry->flags & HW_SECTION_PACKED))
        return NULL;
    if (!container->sealed)
        return "is compressed, in a file that is not complete";
    if (entry->type != HW_SECTION_STRINGS && !hw_pack_fields(entry->type, &fields))
        return "is compressed, which it must not be";
    if (entry->entries > USED_BYTES_MOST / entry->entry_size ||
        entry->entries * entry->entry_size > entry->used * HW_PACK_RATIO_MOST)
        return "claims more than it can hold";
    return NULL;
}

/* What is wrong with a directory entry, or NULL. */
static const char *entry_fault(const struct hw_container *container, const struct hw_section *entry)
{
    uint64_t end;
    /* Only sealed files have packed extents, and where there are some, all others lie at multiples of 8 too. */
    if (entry->offset < HW_FILE_PAGE || entry->offset % (container->sealed ? 8 : HW_FILE_PAGE) != 0)
        return "has an impossible offset";
    if (__builtin_add_overflow(entry->offset, entry->capacity, &end) || end > INT64_MAX)
        return "has an impossible size";
    if (entry->used > entry->capacity)
        return "uses more than its size";
    if (entry->used > USED_BYTES_MOST)
        return "is larger than any profile";
    if (!entry_size_possible(entry))
        return "has an impossible entry size";
    return flags_fault(container, entry);
}

/* False when the memory does not suffice. A faulty entry is reported and left out. */
static bool add_entry(struct hw_container *container, const struct hw_section *entry, uint64_t position, bool trusted)
{
    const char *fault = entry_fault(container, entry);
    if (!fault && container->extent_count >= EXTENTS_MOST)
        fault = "is one of too many";
    if (fault) {
        hw_problem(container->problems, "The file is damaged; lost, in whole or in part: %s (type %u, which %s).",
                   section_name(entry->type), entry->type, fault);
        return true;
    }
    if (!HW_GROW(container->extents, container->extent_room, container->extent_count + 1))
        return false;
    struct hw_extent *extent = &container->extents[container->extent_count++];
    uint64_t behind = container->file_size > entry->offset ? container->file_size - entry->offset : 0;
    *extent = (struct hw_extent){.entry = *entry, .position = position, .trusted = trusted};
    extent->available = entry->used < behind ? entry->used : behind;
    if (extent->available < entry->used)
        container->cut = true;
    return true;
}

/* Adds the COUNT entries of one directory, which lie at POSITION in the file. *CHAIN becomes the index of the extent
 * with the next directory, or SIZE_MAX. */
static bool add_directory(struct hw_container *container, const unsigned char *entries, size_t count, uint64_t position,
                          bool trusted, size_t *chain)
{
    size_t last = 0; /* behind the last entry in use: a writer may count a whole page as used, with entries of type 0 */
    struct hw_section entry;
    *chain = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        memcpy(&entry, entries + i * sizeof entry, sizeof entry);
        if (entry.type != 0)
            last = i + 1;
    }
    for (size_t i = 0; i < last; i++) {
        memcpy(&entry, entries + i * sizeof entry, sizeof entry);
        if (entry.type == 0)
            continue;
        if (entry.type == HW_SECTION_DIRECTORY && i + 1 < last) {
            hw_problem(container->problems,
                       "The table of contents is damaged: it continues elsewhere before its last entry; "
                       "that branch was left out.");
            continue;
        }
        size_t before = container->extent_count;
        if (!add_entry(container, &entry, position + i * sizeof entry, trusted))
            return false;
        if (entry.type == HW_SECTION_DIRECTORY && container->extent_count > before)
            *chain = before;
    }
    return true;
}

/* Reads the entries of a chained directory; *ENTRIES is malloc'ed. False when the memory does not suffice. */
static bool read_directory(struct hw_container *container, const struct hw_extent *extent, unsigned char **entries,
                           size_t *count, bool *trusted)
{
    size_t size = (size_t)extent->available;
    *count = 0;
    *entries = malloc(size ? size : 1);
    if (!*entries)
        return false;
    int64_t got = hw_container_read(container->fd, *entries, size, extent->entry.offset);
    if (got < 0 || (uint64_t)got < extent->entry.used) {
        hw_problem(container->problems, "A part of the table of contents is missing: what is listed there is lost.");
        *trusted = false;
    } else if (container->sealed && XXH64(*entries, size, 0) != extent->entry.checksum) {
        hw_problem(container->problems,
                   "A part of the table of contents is damaged (its checksum is wrong): of what is listed "
                   "there only those were kept whose own checksum is right.");
        *trusted = false;
    }
    if (extent->entry.used % sizeof(struct hw_section) != 0)
        hw_problem(container->problems, "The table of contents is damaged: it ends within an entry.");
    *count = got < 0 ? 0 : (size_t)got / sizeof(struct hw_section);
    return true;
}

static bool load_directories(struct hw_container *container)
{
    uint32_t used = container->header.directory_used;
    bool trusted = page_is_trusted(container);
    uint64_t position = 0;
    size_t chain;
    if (container->header.directory_capacity > HW_FIRST_DIRECTORY_MOST || used > container->header.directory_capacity) {
        hw_problem(container->problems, "The table of contents is damaged: it claims %u entries of %u.", used,
                   container->header.directory_capacity);
        used = used < HW_FIRST_DIRECTORY_MOST ? used : HW_FIRST_DIRECTORY_MOST;
    }
    if (!add_directory(container, container->page + sizeof(struct hw_file_header), used, sizeof(struct hw_file_header),
                       trusted, &chain))
        return false;
    while (chain != SIZE_MAX) {
        struct hw_extent extent = container->extents[chain];
        /* Extents are appended, so a later directory lies behind an earlier one; this also excludes circles. */
        if (extent.entry.offset <= position) {
            hw_problem(container->problems, "The table of contents is damaged: it continues before its own place.");
            container->extent_count = chain; /* the entry that leads back is the last one */
            break;
        }
        position = extent.entry.offset;
        unsigned char *entries;
        size_t count;
        bool fine = read_directory(container, &extent, &entries, &count, &trusted) &&
                    add_directory(container, entries, count, position, trusted, &chain);
        free(entries);
        if (!fine)
            return false;
    }
    return true;
}

/* ---- overlaps ---- */

struct span {
    uint64_t start, end;
    size_t index;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return HW_ORDER(a->start, b->start) ?: HW_ORDER(a->index, b->index);
}

/* Of two extents that overlap, the one that the directory lists first stays. */
static bool drop_overlaps(struct hw_container *container)
{
    size_t count = container->extent_count, kept = 0;
    struct span *spans = malloc((count + 1) * sizeof *spans);
    bool *drop = calloc(count + 1, sizeof *drop);
    if (!spans || !drop) {
        free(spans);
        free(drop);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct hw_section *entry = &container->extents[i].entry;
        spans[i] = (struct span){entry->offset, entry->offset + entry->capacity, i};
    }
    qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 1, last = 0; i < count; i++) {
        if (spans[i].start == spans[i].end)
            continue;
        if (spans[i].start >= spans[last].end) {
            last = i;
            continue;
        }
        bool later = spans[i].index > spans[last].index;
        size_t victim = later ? i : last;
        drop[spans[victim].index] = true;
        hw_problem(container->problems,
                   "The file is damaged; lost, in whole or in part: %s (which overlaps another part).",
                   section_name(container->extents[spans[victim].index].entry.type));
        if (!later)
            last = i;
    }
    for (size_t i = 0; i < count; i++)
        if (!drop[i])
            container->extents[kept++] = container->extents[i];
    container->extent_count = kept;
    free(spans);
    free(drop);
    return true;
}

bool hw_container_load(struct hw_container *container, struct hw_error *error)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    container->extent_count = 0;
    container->cut = false;
    for (int attempt = 0;; attempt++) {
        if (!read_page(container, error) || !check_version(container, error))
            return false;
        if (!half_sealed(&container->header) || attempt == 3)
            break;
        nanosleep(&moment, NULL);
    }
    judge_seal(container);
    if (container->header.total_size > container->file_size) {
        container->cut = true;
        hw_problem(container->problems, "The file is cut short: it has %llu bytes of %llu.",
                   (unsigned long long)container->file_size, (unsigned long long)container->header.total_size);
    }
    if (load_directories(container) && drop_overlaps(container))
        return true;
    hw_error_set(error, "cannot read '%s': not enough memory", container->path);
    return false;
}

void hw_container_free(struct hw_container *container)
{
    free(container->extents);
    container->extents = NULL;
    container->extent_count = container->extent_room = 0;
}

/* ---- the process ---- */

bool hw_process_started(uint32_t pid, uint64_t *start_time)
{
    char path[64], line[1024], state;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    int64_t got = hw_container_read(fd, line, sizeof line - 1, 0);
    close(fd);
    line[got > 0 ? got : 0] = 0;
    /* The name in field 2 may hold anything, also spaces and parentheses: fields count from its last parenthesis. */
    const char *rest = strrchr(line, ')');
    return rest &&
           sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                  &state, start_time) == 2 &&
           state != 'Z' && state != 'X';
}

/* False when the process certainly does not map the file: it has replaced its program by exec and left this file
 * behind. Files are compared by inode, and by name where the file system shows another inode in the list. */
static bool may_map(uint32_t pid, int profile, const char *name)
{
    char path[64], *line = NULL;
    size_t room = 0;
    uint64_t inode;
    struct stat status;
    bool found = false;
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps || fstat(profile, &status) < 0) {
        if (maps)
            fclose(maps);
        return true; /* cannot look */
    }
    while (!found && getline(&line, &room, maps) > 0) {
        const char *file = strchr(line, '/');
        if (sscanf(line, "%*s %*s %*s %*s %" SCNu64, &inode) != 1 || inode == 0 || !file)
            continue;
        const char *base = strrchr(file, '/') + 1;
        found = inode == (uint64_t)status.st_ino || strncmp(base, name, strlen(name)) == 0;
    }
    free(line);
    fclose(maps);
    return found;
}

bool hw_process_writes(uint32_t pid, uint64_t start_time, int fd, const char *path)
{
    uint64_t found;
    return pid > 0 && pid <= INT32_MAX && hw_process_started(pid, &found) && found == start_time && may_map(pid, fd, path);
}
