/* ledger.c - what RSS is made of, at some moments: each mapping of /proc/self/smaps belongs to somebody.
 *
 * People take RSS for the heap. Each mapping is a row's: the allocator's, the program's by the call stack of its mmap,
 * a thread's stack, a module's, a file's, Heapwise's own. The kernel joins neighbours, so that an anonymous mapping may
 * have several parts: what is resident of each is counted by mincore, and the sum is what the kernel says. What nobody
 * has been seen to map, and has no mark of an allocator, is reported as that. Everything here happens under the
 * runtime's lock. */
#include "base/cgroup.h"
#include "runtime/allocator/places.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/mappings.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"
#include "runtime/graph/graph.h"
#include "runtime/heap/heap.h"
#include "runtime/hooks/hooks.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/uio.h>

#define ROWS_MOST  512u
#define PARTS_MOST 64u /* of one mapping */
#define NAMES_MOST 2048u
#define TIMES_MOST 64u
#define ARENA      (64ul << 20) /* glibc's heaps of other arenas than the first are aligned to that */
#define STACK_ROOM (16ul << 10) /* from a thread pointer to the end of its stack, at most */

/* ---- rows ---- */

static struct hw_ledger_row rows[ROWS_MOST] HW_LARGE;
static uint32_t row_count;
static bool row_runs_code[ROWS_MOST]; /* of a file: some mapping of it can be executed */

static struct {
    uint64_t hash;
    uint32_t string;
} names[NAMES_MOST] HW_LARGE;

/* The string of a name, which is stored once. 0: there is no room. */
static uint32_t string_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    hash |= 1;
    uint32_t at = (uint32_t)hw_mix(hash) % NAMES_MOST;
    for (uint32_t i = 0; i < NAMES_MOST; i++, at = (at + 1) % NAMES_MOST) {
        if (names[at].hash == hash)
            return names[at].string;
        if (names[at].hash)
            continue;
        const uint32_t string = hw_file_string(name);
        if (string) {
            names[at].hash = hash;
            names[at].string = string;
        }
        return string;
    }
    return 0;
}

static uint32_t row_of(uint32_t kind, uint32_t name, uint32_t context, uint32_t tid)
{
    for (uint32_t i = row_count; i-- > 0;)
        if (rows[i].kind == kind && rows[i].name == name && rows[i].context == context && rows[i].tid == tid)
            return i;
    if (row_count == ROWS_MOST - HW_LEDGER_KINDS && (name || context || tid))
        return row_of(kind, 0, 0, 0);
    if (row_count == ROWS_MOST)
        return 0;
    rows[row_count] = (struct hw_ledger_row){.kind = kind, .name = name, .context = context, .tid = tid};
    row_runs_code[row_count] = false;
    return row_count++;
}

/* ---- one mapping ---- */

struct part {
    uintptr_t start, end;
    uint32_t row;
    uint64_t resident;
};

static struct mapping {
    uintptr_t start, end;
    bool any, accessible, runs_code, shared;
    char name[1024];
    struct hw_ledger_row has; /* bytes, resident, own, pss, swap, huge */
} now;

static struct {
    struct hw_memory_breakdown *out;
    hw_heap_mapping_visitor *each_heap;
    struct part part[PARTS_MOST];
    uint32_t parts;
    uintptr_t chunk_end; /* of the latest block of glibc's with a mapping of its own, which may be several by now */
    uintptr_t last_end;  /* of the mapping before */
    uintptr_t guard_end; /* of the mapping before, if it cannot be accessed */
    uintptr_t data_end;  /* of the mapping before, if it is data of the file of */
    uint32_t data_row;
} state;

static bool read_words(uintptr_t address, uint64_t *words, size_t count)
{
    const struct iovec to = {words, count * sizeof *words}, from = {(void *)address, count * sizeof *words};
    return hw_sys(SYS_process_vm_readv, hw_runtime.pid, &to, 1, &from, 1, 0) == (long)to.iov_len;
}

/* glibc has mapped what begins at START, where no other range of its own begins: its end, or START. */
static uintptr_t end_of_glibc(uintptr_t start, uintptr_t end)
{
    uint64_t words[4];
    if (!hw_real.is_glibc || !read_words(start, words, 4))
        return start;
    const uint64_t bytes = words[1] & ~7ul;
    if ((words[1] & 7) == 2 && !words[0] && bytes >= HW_PAGE && !(bytes & (HW_PAGE - 1)) && bytes <= ~start) {
        state.chunk_end = start + bytes; /* a chunk of its own: other protection or advice divides its mapping */
        return state.chunk_end < end ? state.chunk_end : end;
    }
    /* struct heap_info: the arena, which lies in the first heap of several; the heap before; size; writable size */
    if (!(start & (ARENA - 1)) && words[0] > words[1] && words[0] - (words[0] & ~(ARENA - 1)) < HW_PAGE &&
        !(words[1] & (ARENA - 1)) && words[2] <= words[3] && words[3] <= ARENA)
        return start + words[3] < end ? start + words[3] : end;
    return start;
}

static bool any_resident;

static void note_resident(uintptr_t start, uintptr_t end)
{
    any_resident |= end > start;
}

/* Where blocks lie that are in a table: the least and the greatest address of each 16 MiB that have some. */
#define PIECE_SHIFT 24
#define PIECES_MOST 1024 /* a power of two; at most three quarters of it are used */
static struct {
    uintptr_t low, high;
} piece_blocks[PIECES_MOST] HW_LARGE;
static uint32_t pieces_used;
static bool pieces_known; /* in this measurement */

static void add_table_block(void *address, const struct hw_block *block)
{
    (void)block;
    const uintptr_t at = (uintptr_t)address;
    uint32_t slot = (uint32_t)((at >> PIECE_SHIFT) * 0x9e3779b1u) % PIECES_MOST;
    while (piece_blocks[slot].high && piece_blocks[slot].low >> PIECE_SHIFT != at >> PIECE_SHIFT)
        slot = (slot + 1) % PIECES_MOST;
    if (!piece_blocks[slot].high) {
        if (pieces_used == PIECES_MOST / 4 * 3)
            return;
        pieces_used++;
        piece_blocks[slot].low = piece_blocks[slot].high = at;
    }
    if (at < piece_blocks[slot].low)
        piece_blocks[slot].low = at;
    if (at > piece_blocks[slot].high)
        piece_blocks[slot].high = at;
}

static bool table_has_blocks(uintptr_t start, uintptr_t end)
{
    if (!pieces_known) {
        __builtin_memset(piece_blocks, 0, sizeof piece_blocks);
        pieces_used = 0;
        hw_blocks_each(add_table_block, true);
        pieces_known = true;
    }
    for (uint32_t i = 0; i < PIECES_MOST; i++)
        if (piece_blocks[i].high >= start && piece_blocks[i].high && piece_blocks[i].low < end)
            return true;
    return false;
}

/* Whether blocks lie there; where they are in a map, also whether they lay there once. */
static bool held_blocks(uintptr_t start, uintptr_t end)
{
    if (end >> HW_ARCH_ADDRESS_BITS)
        return false;
    if (hw_places.even)
        return hw_places_hold(start, end);
    if (hw_blocks_store() == HW_STORE_TABLE)
        return table_has_blocks(start, end);
    any_resident = false;
    hw_blocks_trace(start, end, note_resident);
    return any_resident;
}

static void add_part(uintptr_t start, uintptr_t end, uint32_t row)
{
    struct part *last = state.parts ? &state.part[state.parts - 1] : NULL;
    if (last && (last->row == row || state.parts == PARTS_MOST))
        last->end = end;
    else
        state.part[state.parts++] = (struct part){.start = start, .end = end, .row = row};
}

/* [start, end) was mapped by no call that was seen. */
static void add_unclaimed(uintptr_t start, uintptr_t end)
{
    const uint32_t allocators = row_of(HW_LEDGER_ALLOCATOR, 0, 0, 0);
    if (start == state.data_end) { /* what a module has without bytes in its file begins where these end */
        const struct hw_module *module = hw_module_of_data(start);
        const uintptr_t image_end = module ? HW_ALIGN_UP(module->image_end, HW_PAGE) : start;
        const uintptr_t until = image_end < end ? image_end : end;
        if (until > start)
            add_part(start, until, state.data_row);
        start = until;
    }
    if (start < state.chunk_end && start < end) {
        const uintptr_t until = state.chunk_end < end ? state.chunk_end : end;
        add_part(start, until, allocators);
        start = until;
    }
    for (uintptr_t known; start < end && (known = end_of_glibc(start, end)) > start; start = known)
        add_part(start, known, allocators);
    if (start == end)
        return;
    const uintptr_t local = hw_first_thread_pointer();
    if (held_blocks(start, end))
        add_part(start, end, allocators);
    else if (start == state.data_end)
        add_part(start, end, state.data_row);
    else if (local >= start && local < end)
        add_part(start, end, row_of(HW_LEDGER_LOADER, 0, 0, 0));
    else
        add_part(start, end, row_of(HW_LEDGER_UNSEEN, 0, 0, 0));
}

static bool is_alive(uint32_t tid)
{
    return tid && hw_sys(SYS_tgkill, hw_runtime.pid, tid, 0) == 0;
}

static uint32_t thread_name(uint32_t tid)
{
    char path[48], number[24], name[HW_THREAD_NAME + 1] = {0};
    if (tid == hw_gettid()) {
        hw_sys(SYS_prctl, PR_GET_NAME, name);
        return *name ? string_of(name) : 0;
    }
    struct hw_text text;
    hw_text_init(&text, number, sizeof number);
    hw_text_u64(&text, tid);
    hw_text_join(path, sizeof path, "/proc/self/task/", number, "/comm");
    const int fd = hw_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    const long got = hw_sys(SYS_read, fd, name, sizeof name);
    hw_close(fd);
    if (got < 2 || got > HW_THREAD_NAME)
        return 0;
    name[got - 1] = 0;
    return string_of(name);
}

/* Stacks are mapped behind a page that nobody can access, and have the thread pointer at their end. Those of threads
 * that have their stacks elsewhere belong to whoever mapped them. */
static bool add_stack(void)
{
    struct hw_thread_stack stack;
    if (state.guard_end != now.start || !hw_stack_in(now.start, now.end, &stack) || stack.sp < now.start)
        return false;
    if (now.end - stack.pointer > STACK_ROOM)
        return false;
    if (is_alive(stack.tid))
        add_part(now.start, now.end, row_of(HW_LEDGER_STACK, thread_name(stack.tid), 0, stack.tid));
    else
        add_part(now.start, now.end, row_of(HW_LEDGER_OLD_STACK, 0, 0, 0));
    return true;
}

/* Who has what of an anonymous mapping. */
static void part_anonymous(bool brk)
{
    if (!brk && !hw_is_own(now.start) && add_stack())
        return;
    struct hw_mapped range;
    for (uintptr_t at = now.start, border; at < now.end;) {
        border = hw_own_until(at, now.end);
        if (hw_is_own(at)) {
            add_part(at, border, row_of(HW_LEDGER_RUNTIME, 0, 0, 0));
            at = border;
            continue;
        }
        const bool found = hw_mapping_above(at, &range);
        const uintptr_t next = found && range.start < border ? range.start : border;
        if (at < next) {
            if (brk)
                add_part(at, next, row_of(HW_LEDGER_ALLOCATOR, 0, 0, 0));
            else
                add_unclaimed(at, next);
            at = next;
            continue;
        }
        const uintptr_t until = range.end < border ? range.end : border;
        const bool allocators = range.context == HW_MAPPED_BY_ALLOCATOR;
        add_part(at, until,
                 row_of(allocators ? HW_LEDGER_ALLOCATOR : HW_LEDGER_MAPPED, 0, allocators ? 0 : range.context, 0));
        at = until;
    }
}

static uint64_t counted; /* bytes */

static void count_resident(uintptr_t start, uintptr_t end)
{
    counted += end - start;
}

/* What is resident of each part. Pages that were read but never written are in the table of pages and not in RSS: the
 * largest part has the difference. */
static void measure_parts(void)
{
    uint64_t sum = 0;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < state.parts; i++) {
        struct part *part = &state.part[i];
        counted = 0;
        if (state.parts == 1)
            counted = now.has.resident;
        else if (now.has.resident)
            hw_resident_each(part->start, part->end, count_resident);
        part->resident = counted;
        sum += counted;
        if (part->resident > state.part[largest].resident)
            largest = i;
    }
    struct part *most = &state.part[largest];
    if (sum > now.has.resident &&
        sum - now.has.resident > most->resident) { /* nothing is known: all is the largest's */
        for (uint32_t i = 0; i < state.parts; i++)
            state.part[i].resident = 0;
        sum = 0;
    }
    most->resident += now.has.resident - sum;
}

static uint64_t share(uint64_t whole, const struct part *part)
{
    return now.has.resident ? (uint64_t)((double)whole * (double)part->resident / (double)now.has.resident) : 0;
}

static void add_to_rows(void)
{
    for (uint32_t i = 0; i < state.parts; i++) {
        const struct part *part = &state.part[i];
        struct hw_ledger_row *row = &rows[part->row];
        const bool whole = state.parts == 1;
        row->mappings++;
        row->bytes += part->end - part->start;
        row->resident += part->resident;
        row->own += whole ? now.has.own : share(now.has.own, part);
        row->pss += whole ? now.has.pss : share(now.has.pss, part);
        row->swap += whole ? now.has.swap : share(now.has.swap, part);
        row->huge += whole ? now.has.huge : share(now.has.huge, part);
        const bool heap =
            row->kind == HW_LEDGER_ALLOCATOR || row->kind == HW_LEDGER_MAPPED || row->kind == HW_LEDGER_UNSEEN;
        if (heap && state.each_heap)
            state.each_heap(part->start, part->end, part->resident);
    }
}

static bool is_shared_memory(const char *name)
{
    return hw_starts_with(name, "/memfd:") || hw_starts_with(name, "/dev/shm/") || hw_starts_with(name, "/SYSV") ||
           hw_starts_with(name, "/dev/zero");
}

static void part_file(void)
{
    struct hw_mapped range;
    const bool found = hw_mapping_above(now.start, &range) && range.start <= now.start;
    const uint32_t kind = now.shared && is_shared_memory(now.name) ? HW_LEDGER_SHARED : HW_LEDGER_FILE;
    const uint32_t context = found && range.context != HW_MAPPED_BY_ALLOCATOR ? range.context : 0;
    const uint32_t row = row_of(kind, string_of(now.name), context, 0);
    row_runs_code[row] |= now.runs_code && kind == HW_LEDGER_FILE;
    add_part(now.start, now.end, row);
    if (now.shared && kind == HW_LEDGER_FILE)
        state.out->shared_files += now.has.resident;
    state.data_end = now.shared || context ? 0 : now.end;
    state.data_row = row;
}

static void part_mapping(void)
{
    if (state.data_end != now.start)
        state.data_end = 0;
    const bool anonymous = !now.name[0] || hw_starts_with(now.name, "[anon");
    if ((hw_is_own(now.start) && !anonymous) || hw_streq(now.name, hw_file_path))
        add_part(now.start, now.end, row_of(HW_LEDGER_RUNTIME, 0, 0, 0));
    else if (hw_starts_with(now.name, "[stack"))
        add_part(now.start, now.end, row_of(HW_LEDGER_STACK, thread_name(hw_runtime.pid), 0, hw_runtime.pid));
    else if (hw_starts_with(now.name, "[heap]"))
        part_anonymous(true);
    else if (anonymous)
        part_anonymous(false);
    else if (now.name[0] == '[')
        add_part(now.start, now.end, row_of(HW_LEDGER_OTHER, 0, 0, 0));
    else {
        part_file();
        return;
    }
    state.data_end = 0;
}

static void end_mapping(void)
{
    if (!now.any)
        return;
    now.any = false;
    state.parts = 0;
    if (now.start != state.last_end)
        state.chunk_end = 0;
    state.last_end = now.end;
    if (now.has.resident || now.has.swap || now.accessible) {
        part_mapping();
        measure_parts();
        add_to_rows();
    }
    state.guard_end = now.accessible ? 0 : now.end;
    struct hw_memory_breakdown *out = state.out;
    out->rss += now.has.resident;
    out->swap += now.has.swap;
    out->pss += now.has.pss;
    out->huge += now.has.huge;
}

/* ---- /proc/self/smaps ---- */

static void begin_mapping(const char *line)
{
    const char *cursor = line;
    now = (struct mapping){.any = true};
    now.start = hw_parse_u64(&cursor, 16);
    cursor++;
    now.end = hw_parse_u64(&cursor, 16);
    cursor++;
    now.accessible = cursor[0] == 'r' || cursor[1] == 'w' || cursor[2] == 'x';
    now.runs_code = cursor[2] == 'x';
    now.shared = cursor[3] == 's';
    hw_text_join(now.name, sizeof now.name,
                 hw_skip_fields(line, 5)); /* addresses, permissions, offset, device, inode */
}

static const struct {
    const char *key;
    size_t member; /* of struct hw_ledger_row */
} keys[] = {
    {"Rss:", offsetof(struct hw_ledger_row, resident)},      {"Pss:", offsetof(struct hw_ledger_row, pss)},
    {"Private_Clean:", offsetof(struct hw_ledger_row, own)}, {"Private_Dirty:", offsetof(struct hw_ledger_row, own)},
    {"Swap:", offsetof(struct hw_ledger_row, swap)},         {"AnonHugePages:", offsetof(struct hw_ledger_row, huge)},
};

static bool take_line(void *closure, const char *line)
{
    (void)closure;
    if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
        end_mapping();
        begin_mapping(line);
        return true;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (*line != *keys[i].key || !hw_starts_with(line, keys[i].key)) /* most lines are of other numbers */
            continue;
        while (*line && (*line < '0' || *line > '9'))
            line++;
        *(uint64_t *)((char *)&now.has + keys[i].member) += hw_parse_u64(&line, 10) * 1024;
        return true;
    }
    return true;
}

/* ---- beside RSS ---- */

static void add_cgroup(struct hw_memory_breakdown *out)
{
    struct hw_cgroup_memory memory;
    if (!hw_limits_cgroup(100, &memory))
        return;
    out->known |= HW_MEMORY_CGROUP | (memory.peak ? HW_MEMORY_CGROUP_PEAK : 0);
    out->cgroup = memory.bytes;
    out->cgroup_peak = memory.peak;
    out->cgroup_limit = memory.limit;
}

static void add_page_tables(struct hw_memory_breakdown *out)
{
    char text[4096];
    const char *value = hw_status_of("/proc/self/status", "VmPTE:", text, sizeof text);
    out->page_tables = value ? hw_parse_u64(&value, 10) * 1024 : 0;
}

/* ---- the whole ---- */

static void add_up(struct hw_memory_breakdown *out)
{
    for (uint32_t i = 0; i < row_count; i++) {
        if (rows[i].kind == HW_LEDGER_FILE && row_runs_code[i])
            rows[i].kind = HW_LEDGER_MODULE;
        const uint64_t resident = rows[i].resident;
        switch ((enum hw_ledger_kind)rows[i].kind) {
        case HW_LEDGER_ALLOCATOR:
            out->allocator += resident;
            break;
        case HW_LEDGER_MAPPED:
            out->mapped += resident;
            break;
        case HW_LEDGER_UNSEEN:
            out->unexplained += resident;
            break;
        case HW_LEDGER_LOADER:
        case HW_LEDGER_MODULE:
            out->modules += resident;
            out->file += resident;
            break;
        case HW_LEDGER_FILE:
            out->file += resident;
            break;
        case HW_LEDGER_SHARED:
            out->shared += resident;
            out->other += resident;
            break;
        case HW_LEDGER_OLD_STACK:
            out->ended_stacks += resident;
            out->stack += resident;
            break;
        case HW_LEDGER_STACK:
            out->stack += resident;
            break;
        case HW_LEDGER_RUNTIME:
            out->runtime += resident;
            break;
        case HW_LEDGER_OTHER:
        case HW_LEDGER_KINDS:
            out->other += resident;
            break;
        }
    }
    out->file -= out->shared_files;
    out->other += out->shared_files;
    out->heap = out->allocator + out->mapped + out->unexplained;
}

void hw_memory_measure(struct hw_memory_breakdown *result, enum hw_memory_moment moment, hw_heap_mapping_visitor *each)
{
    *result = (struct hw_memory_breakdown){.moment = moment};
    state.out = result;
    state.each_heap = each;
    state.guard_end = state.data_end = state.chunk_end = state.last_end = 0;
    row_count = 0;
    pieces_known = false;
    now.any = false;
    hw_lines_each("/proc/self/smaps", take_line, NULL);
    end_mapping();
    if (!result->rss)
        return;
    add_up(result);
    result->known = HW_MEMORY_LEDGER;
    add_page_tables(result);
    add_cgroup(result);
}

/* ---- the profile ---- */

void hw_ledger_forget(enum hw_memory_moment moment)
{
    const uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_LEDGER);
    struct hw_ledger_row *row = HW_ENTRY(HW_POOL_LEDGER, struct hw_ledger_row, 0);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (row[i].moment != (uint32_t)moment)
            row[kept++] = row[i];
    __builtin_memset(row + kept, 0, (count - kept) * sizeof *row);
    hw_pool_set_count(HW_POOL_LEDGER, kept);
}

void hw_ledger_keep(enum hw_memory_moment moment, uint64_t tick)
{
    hw_ledger_forget(moment);
    for (uint32_t i = 0; i < row_count; i++) {
        if (!rows[i].resident && !rows[i].swap && rows[i].kind != HW_LEDGER_MAPPED)
            continue;
        const uint32_t index = hw_pool_take(HW_POOL_LEDGER, 1);
        if (index == HW_NONE)
            break;
        struct hw_ledger_row *row = HW_ENTRY(HW_POOL_LEDGER, struct hw_ledger_row, index);
        *row = rows[i];
        row->moment = moment;
        row->tick = tick;
    }
    hw_pool_publish(HW_POOL_LEDGER);
}

static void put(uint32_t index, const struct hw_memory_breakdown *result, enum hw_memory_moment moment, uint64_t tick,
                int64_t live_bytes)
{
    struct hw_memory_breakdown *entry = HW_ENTRY(HW_POOL_MEMORY, struct hw_memory_breakdown, index);
    *entry = *result;
    entry->moment = moment;
    entry->tick = tick;
    entry->live_bytes = live_bytes;
    hw_pool_publish(HW_POOL_MEMORY);
}

void hw_memory_keep(const struct hw_memory_breakdown *result, enum hw_memory_moment moment, uint64_t tick,
                    int64_t live_bytes)
{
    if (!result->rss)
        return;
    uint32_t index = HW_NONE;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_MEMORY); i++)
        if (HW_ENTRY(HW_POOL_MEMORY, struct hw_memory_breakdown, i)->moment == (uint32_t)moment)
            index = i;
    if (index == HW_NONE)
        index = hw_pool_take(HW_POOL_MEMORY, 1);
    if (index == HW_NONE)
        return;
    put(index, result, moment, tick, live_bytes);
    if (moment == HW_MOMENT_END)
        hw_pages_split(HW_ENTRY(HW_POOL_MEMORY, struct hw_memory_breakdown, index));
    hw_ledger_keep(moment, tick);
}

void hw_memory_take(enum hw_memory_moment moment, uint64_t tick, int64_t live_bytes)
{
    struct hw_memory_breakdown result;
    hw_memory_measure(&result, moment, NULL);
    hw_memory_keep(&result, moment, tick, live_bytes);
}

/* ---- for a dump from outside ---- */

uint32_t hw_memory_dumps;
static uint32_t late; /* one was asked for, and could not be taken at once */

void hw_program_mappings_settle(void)
{
    if (hw_mappings_calm())
        hw_mappings_catch_up();
}

bool hw_program_mapping_above(uintptr_t address, uintptr_t *start, uintptr_t *end)
{
    struct hw_mapped range = {.end = address};
    if (!hw_mappings_calm())
        return false;
    do
        if (!hw_mapping_above(range.end, &range))
            return false;
    while (range.context == HW_MAPPED_BY_ALLOCATOR);
    *start = range.start;
    *end = range.end;
    return true;
}

void hw_memory_take_stopped(void)
{
    if ((hw_runtime.stopped & HW_STOPPED_WAIT) || hw_runtime.lock.state || !hw_threads_calm() || !hw_mappings_calm()) {
        __atomic_store_n(&late, 1, __ATOMIC_SEQ_CST);
        hw_timeline_hurry();
        return;
    }
    int64_t live = 0;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_THREADS); i++)
        live += HW_ENTRY(HW_POOL_THREADS, struct hw_thread_entry, i)->live_bytes;
    const hw_sigset old = hw_lock_take(&hw_runtime.lock);
    __atomic_store_n(&late, 1, __ATOMIC_SEQ_CST);
    hw_memory_take_late(hw_ticks_raw() - hw_runtime.tick_base, live);
    hw_lock_drop(&hw_runtime.lock, old);
}

void hw_memory_take_late(uint64_t tick, int64_t live_bytes)
{
    if (hw_likely(!__atomic_load_n(&late, __ATOMIC_SEQ_CST)))
        return;
    __atomic_store_n(&late, 0, __ATOMIC_SEQ_CST);
    hw_memory_take(HW_MOMENT_DUMP, tick, live_bytes);
    __atomic_store_n(&hw_memory_dumps, hw_memory_dumps + 1, __ATOMIC_SEQ_CST);
}

/* ---- over time ---- */

static struct {
    uint64_t interval, next; /* ticks */
    uint64_t spent;
} course;

void hw_memory_start(void)
{
    course.interval = hw_runtime.clock_is_tsc ? 25000000 : 10000000; /* some 10 ms */
    course.next = course.spent = 0;
}

/* Every second one goes; the distance doubles. */
static void thin_out(void)
{
    struct hw_memory_breakdown *entry = HW_ENTRY(HW_POOL_MEMORY, struct hw_memory_breakdown, 0);
    const uint32_t count = (uint32_t)HW_ENTRIES(HW_POOL_MEMORY);
    uint32_t kept = 0, times = 0;
    for (uint32_t i = 0; i < count; i++)
        if (entry[i].moment != HW_MOMENT_TIME || times++ % 2 == 0)
            entry[kept++] = entry[i];
    __builtin_memset(entry + kept, 0, (count - kept) * sizeof *entry);
    hw_pool_set_count(HW_POOL_MEMORY, kept);
    course.interval *= 2;
}

static uint32_t times(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HW_ENTRIES(HW_POOL_MEMORY); i++)
        count += HW_ENTRY(HW_POOL_MEMORY, struct hw_memory_breakdown, i)->moment == HW_MOMENT_TIME;
    return count;
}

bool hw_memory_time_due(uint64_t tick)
{
    return tick >= course.next;
}

void hw_memory_keep_time(const struct hw_memory_breakdown *result, uint64_t tick, int64_t live_bytes)
{
    if (!result->rss || !hw_memory_time_due(tick))
        return;
    if (times() == TIMES_MOST)
        thin_out();
    const uint32_t index = hw_pool_take(HW_POOL_MEMORY, 1);
    if (index != HW_NONE)
        put(index, result, HW_MOMENT_TIME, tick, live_bytes);
    course.next = tick + course.interval;
}

void hw_memory_take_time(uint64_t tick, int64_t live_bytes)
{
    const uint64_t ms = hw_runtime.clock_is_tsc ? 2500000 : 1000000;
    if (!hw_memory_time_due(tick) || !hw_budget_allows(HW_BUDGET_LEDGER, course.spent, tick, ms))
        return;
    struct hw_memory_breakdown result;
    const uint64_t begin = hw_ticks_raw();
    hw_memory_measure(&result, HW_MOMENT_TIME, NULL);
    hw_memory_keep_time(&result, tick, live_bytes);
    course.spent += hw_ticks_raw() - begin;
}
