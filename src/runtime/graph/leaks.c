/* leaks.c - which live blocks the program can still reach, by context.
 *
 * A conservative search: every aligned word of the roots (data of executables and libraries, stacks from the stack
 * pointer on, thread-local data, registers) and of reached blocks that looks like an address in a block is a pointer.
 * First all that is reached by pointers to begins of blocks, then what is reached by the others; what is left is lost.
 * Of that, what another lost block points to is lost indirectly; in a ring the first block found stands for all. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/core/threads.h"
#include "runtime/graph/internal.h"
#include "runtime/heap/heap.h"

#include <errno.h>
#include <ucontext.h>

#define TO_SCAN_MOST    (4u << 20)
#define AROUND_TLS      (64ul << 10) /* below the thread pointer, beside what known modules have there */
#define ABOVE_TLS       (8ul << 10)  /* libc's own of the thread */
#define LARGE_ANONYMOUS (1ul << 20)
#define BELOW_STACK     128u /* code may use that much below its stack pointer */

struct sum {
    uint64_t blocks, bytes;
    uint64_t oldest, newest; /* stamps */
};

static struct {
    struct hw_root now;
    hw_root_visitor *each;
    const struct hw_stopped_threads *threads;
    const ucontext_t *interrupted;
    uintptr_t caller_stack;                               /* …pointer */
    uint64_t saved[6];                                    /* registers of the caller */
    uint64_t caller[HW_REG_COUNT], unwound[HW_REG_COUNT]; /* by DWARF number: the caller's, those of a thread */
    const struct hw_span *latest;                         /* data of a library that is not known */
    size_t tls_size;                                      /* of known modules, in each thread */
} roots;

static struct {
    struct hw_node *to_scan;
    uint32_t waiting;
    struct hw_ring ring;
    struct hw_ahead ahead;
    bool overflow;  /* some had no place: they are found by their marks */
    bool inner_too; /* pointers into blocks count */
    bool lost;      /* what is reached is lost itself */
    struct hw_node leader;
    struct sum (*sums)[HW_LEAK_CLASSES]; /* by context */
    uint32_t contexts;
    uint64_t live_bytes;
    struct hw_leak_info info;
    struct hw_visit_room *room; /* where results go; NULL: into the file */
    bool mapped;                /* memory that the program mapped itself is a root, too */
    bool keeps;                 /* who keeps blocks is asked for, */
    bool no_keeps;              /* but there was no memory for it */
} leaks;

/* ---- reaching ---- */

static void remember(struct hw_node node)
{
    if (leaks.waiting == TO_SCAN_MOST)
        leaks.overflow = true;
    else
        leaks.to_scan[leaks.waiting++] = node;
}

static inline void reach(struct hw_node node, uint64_t begins_only, uint64_t word)
{
    if (hw_index_marked(node, HW_MARK_REACHED))
        return;
    if (leaks.lost) {
        if (node.address == leaks.leader.address || hw_index_marked(node, HW_MARK_INNER))
            return;
        hw_index_mark(node, HW_MARK_INDIRECT);
        if (!hw_index_marked(node, HW_MARK_SCANNED))
            remember(node);
    } else if (leaks.inner_too) {
        if (!hw_index_marked(node, HW_MARK_INNER)) {
            hw_index_mark(node, HW_MARK_INNER);
            remember(node);
        }
    } else if (node.address == hw_index_untagged(word)) {
        hw_index_mark(node, HW_MARK_REACHED);
        remember(node);
    } else if (!begins_only) {
        struct hw_block block;
        hw_index_mark(node, HW_MARK_INNER);
        if (!hw_index_marked(node, HW_MARK_INSIDE) && hw_block_at(node.address, &block) &&
            hw_cpp_points_inside(node.address, block.size, word))
            hw_index_mark(node, HW_MARK_INSIDE);
    }
}

static void coming(struct hw_node node)
{
    (void)node; /* its line is all that is needed */
}

static void reach_from(const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hw_index_may_find(word[i])) {
            hw_ahead_put(&leaks.ahead, word[i], false);
            hw_ahead_go_on(&leaks.ahead, HW_AHEAD_STEPS, coming, reach);
        }
}

static void reach_from_root(const struct hw_root *root, const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hw_index_may_find(word[i])) {
            hw_ahead_put(&leaks.ahead, word[i], root->begins_only);
            hw_ahead_go_on(&leaks.ahead, HW_AHEAD_STEPS, coming, reach);
        }
}

static void scan_waiting(void)
{
    struct hw_node node;
    uint64_t size;
    for (;;) {
        if (!hw_ring_next(&leaks.ring, leaks.to_scan, &leaks.waiting, &node)) {
            if (leaks.ahead.in == leaks.ahead.out)
                return;
            hw_ahead_go_on(&leaks.ahead, 0, coming, reach);
            continue;
        }
        if (hw_index_marked(node, HW_MARK_SCANNED) || !hw_block_size(node.address, &size))
            continue;
        hw_index_mark(node, HW_MARK_SCANNED);
        leaks.info.scanned_bytes += size;
        hw_scan_words(node.address, node.address + size, reach_from);
    }
}

static enum hw_node_mark wanted; /* blocks with this mark are to be scanned */

static void scan_marked(struct hw_node node)
{
    if (hw_index_marked(node, wanted) && !hw_index_marked(node, HW_MARK_SCANNED)) {
        remember(node);
        scan_waiting();
    }
}

/* All that is reached from what has MARK, and so on. */
static void scan_all(enum hw_node_mark mark)
{
    wanted = mark;
    scan_waiting();
    while (leaks.overflow) {
        leaks.overflow = false;
        hw_index_each_of(1u << wanted, 1u << HW_MARK_SCANNED, scan_marked);
    }
}

/* ---- roots ---- */

static void visit(const uint64_t *word, size_t count)
{
    roots.each(&roots.now, word, count);
}

static void add_root(uintptr_t start, uintptr_t end)
{
    leaks.info.root_bytes += end - start;
    hw_scan_words(start, end, visit);
}

/* All but the blocks in it: the kernel joins mappings, and a large block may lie in one with a thread's data. KEPT_IN:
 * the block that the whole lies in, or 0. */
static void add_root_beside_blocks(uintptr_t start, uintptr_t end, uintptr_t kept_in)
{
    uintptr_t from = start = HW_ALIGN_UP(start, sizeof(uint64_t));
    while (start < end) {
        bool inner;
        struct hw_block block;
        const struct hw_node node = hw_index_find(start, &inner);
        if (!node.line || node.address == kept_in || !hw_block_at(node.address, &block)) {
            const uintptr_t second = start + sizeof(uint64_t), next = hw_index_next(second, end);
            start = next > start ? next : second; /* of two blocks in 16 bytes */
            continue;
        }
        if (from < start)
            add_root(from, start);
        const uintptr_t behind = HW_ALIGN_UP(node.address + block.size, sizeof(uint64_t));
        from = start = behind > start ? behind : start + sizeof(uint64_t);
    }
    if (from < end)
        add_root(from, end);
}

/* The block that ADDRESS lies in, or 0. */
static uintptr_t block_around(uintptr_t address)
{
    bool inner;
    const struct hw_node node = hw_index_find(address, &inner);
    return node.line ? node.address : 0;
}

/* Where the thread-local data begins that libc has put above the stack of a thread which it made; END: nowhere before
 * it. */
static uintptr_t local_start(uintptr_t stack_pointer, uintptr_t thread_pointer, uintptr_t end)
{
    struct hw_local_block block[HW_LOCAL_BLOCKS];
    uintptr_t start = end;
    for (uint32_t i = hw_local_blocks(thread_pointer, block, HW_LOCAL_BLOCKS); i-- > 0;)
        if (block[i].start > stack_pointer && block[i].start < start)
            start = block[i].start;
    return start == end ? end : start & -sizeof(uint64_t);
}

/* A stack from its pointer on: to the end of its mapping, of the block that it lies in, or of what libc has above it
 * for the thread. THREAD_POINTER: 0 where it is not known. */
static void add_stack(uintptr_t pointer, uintptr_t thread_pointer)
{
    const struct hw_span *span = hw_span_of(pointer);
    bool inner;
    const struct hw_node node = hw_index_find(pointer, &inner);
    struct hw_block block;
    if (!span || span->own)
        return;
    uintptr_t end = span->end, start = pointer - BELOW_STACK;
    if (node.line && hw_block_at(node.address, &block))
        end = node.address + block.size;
    const uintptr_t kept_in = node.line ? node.address : 0;
    const bool above = thread_pointer > pointer && thread_pointer < end;
    if (above && end - thread_pointer > ABOVE_TLS)
        end = thread_pointer + ABOVE_TLS;
    const uintptr_t local = above ? local_start(pointer, thread_pointer, end) : end;
    add_root_beside_blocks(start < span->start ? span->start : start, local, kept_in);
    if (local < end) {
        roots.now =
            (struct hw_root){.kind = HW_ROOT_THREAD_LOCAL, .tid = roots.now.tid, .thread_pointer = thread_pointer};
        add_root_beside_blocks(local, end, kept_in);
    }
}

extern void *__libc_stack_end __attribute__((weak));

/* The first thread is on another stack (a handler's, a coroutine's): how much of its own is in use is not known. */
static void add_first_stack(void)
{
    const struct hw_stopped_threads *threads = roots.threads;
    const struct hw_span *first = &__libc_stack_end ? hw_span_of((uintptr_t)__libc_stack_end) : NULL;
    bool in_use = !first || hw_span_of(roots.caller_stack) == first;
    for (uint32_t i = 0; i < threads->count && !in_use; i++)
        in_use = threads->thread[i].stack_pointer && hw_span_of(threads->thread[i].stack_pointer) == first;
    if (!in_use) {
        roots.now = (struct hw_root){.kind = HW_ROOT_STACK, .tid = hw_getpid()};
        add_root(first->start, first->end);
    }
}

static void add_tls_size(const struct hw_module *module)
{
    roots.tls_size += HW_ALIGN_UP(module->tls_size, 64);
}

/* Around a thread pointer: thread-local variables below it, libc's own data of the thread above. The stack of a thread
 * that libc made is in the same mapping; a signal handler on another stack has not said where it is in use, and then
 * all of it counts, if it is small. The first thread's is not there. */
static void add_thread_local(uint32_t tid, uintptr_t thread_pointer, uintptr_t stack_pointer)
{
    const struct hw_span *span = hw_span_of(thread_pointer), *stack = hw_span_of(stack_pointer);
    if (!span || span->own || (span == stack && stack_pointer < thread_pointer))
        return;
    const uintptr_t end = thread_pointer + ABOVE_TLS, most = roots.tls_size + AROUND_TLS;
    uintptr_t start = thread_pointer - span->start > most ? thread_pointer - most : span->start;
    if (tid != hw_getpid() && span->end - span->start <= LARGE_ANONYMOUS)
        start = span->start;
    add_root_beside_blocks(start, end > span->end ? span->end : end, block_around(thread_pointer));
}

/* glibc keeps a pointer to the second entry of each thread's table of modules' thread-local data. */
static void visit_dtv(const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t begin = word[i] - 2 * sizeof(uint64_t);
        visit(&begin, 1);
    }
}

/* UNWOUND: the same registers by DWARF number. */
static void add_thread(uint32_t tid, uintptr_t stack_pointer, uintptr_t thread_pointer, const uint64_t *registers,
                       size_t count, const uint64_t *unwound)
{
    leaks.info.threads++;
    roots.now = (struct hw_root){.kind = HW_ROOT_REGISTERS, .tid = tid};
    visit(registers, count);
    roots.now = (struct hw_root){.kind = HW_ROOT_STACK, .tid = tid, .registers = unwound};
    add_stack(stack_pointer, thread_pointer);
    roots.now = (struct hw_root){.kind = HW_ROOT_THREAD_LOCAL, .tid = tid, .thread_pointer = thread_pointer};
    add_thread_local(tid, thread_pointer, stack_pointer);
    hw_scan_words(thread_pointer + 8, thread_pointer + 16, visit_dtv);
}

/* Of a library that was loaded just now nothing is known yet: writable memory from a file that is not shared, and what
 * lies right behind it. */
static bool is_data_of_unknown(const struct hw_span *span)
{
    const bool behind = roots.latest && roots.latest->end == span->start;
    if (span->file ? span->shared : !behind)
        return false;
    roots.latest = span->file ? span : NULL;
    return true;
}

/* ---- memory that the program mapped itself ---- */

/* Greater blocks have mappings of their own, which may have been joined with the program's. */
#define MAPPED_BLOCK (128ul << 10)

static void keep_out(uintptr_t address)
{
    struct hw_span *span = (struct hw_span *)(uintptr_t)hw_span_of(address);
    if (span)
        span->heap = true;
}

/* Free memory of the allocator, and of stacks, has old pointers. */
static void keep_out_of_heap(struct hw_node node)
{
    struct hw_block block;
    if (hw_block_at(node.address, &block) && block.size < MAPPED_BLOCK)
        keep_out(node.address);
}

static void find_mapped(const struct hw_stopped_threads *threads)
{
    hw_index_each(keep_out_of_heap);
    for (uint32_t i = 0; i < threads->count; i++) {
        keep_out(threads->thread[i].stack_pointer);
        keep_out(threads->thread[i].thread_pointer);
    }
    keep_out(roots.caller_stack);
    keep_out(hw_arch_thread_pointer());
    if (&__libc_stack_end)
        keep_out((uintptr_t)__libc_stack_end);
}

/* All but the blocks in it. */
static void add_mapped(const struct hw_span *span)
{
    bool inner;
    for (uintptr_t page = span->start; page < span->end; page += HW_PAGE) {
        const struct hw_node first = hw_index_find(page, &inner),
                             last = hw_index_find(page + HW_PAGE - sizeof(uint64_t), &inner);
        if (!first.line)
            add_root(page, last.line ? last.address : page + HW_PAGE);
    }
}

static void add_data_of(const struct hw_span *span)
{
    if (!span->writable || span->own)
        return;
    const struct hw_module *module = hw_module_of_data(span->start);
    if (!module && leaks.mapped && !span->heap) {
        roots.now = (struct hw_root){.kind = HW_ROOT_DATA};
        add_mapped(span);
        return;
    }
    roots.now = (struct hw_root){.kind = HW_ROOT_DATA};
    if (!module && is_data_of_unknown(span))
        add_root_beside_blocks(span->start, span->end, 0);
    if (!module || module->flags & HW_MAP_RUNTIME)
        return;
    roots.now = (struct hw_root){
        .kind = HW_ROOT_DATA, .module = module, .begins_only = (module->flags & HW_MAP_ALLOCATOR) != 0};
    add_root(span->start, span->end < module->image_end ? span->end : module->image_end);
}

static void add_pool_block(void *address, const struct hw_block *block)
{
    add_root((uintptr_t)address, (uintptr_t)address + block->size);
}

void hw_roots_each(hw_root_visitor *each)
{
    roots.latest = NULL;
    const struct hw_stopped_threads *threads = roots.threads;
    roots.each = each;
    leaks.info.root_bytes = leaks.info.threads = 0;
    roots.tls_size = 0;
    hw_modules_each(add_tls_size);
    hw_spans_each(add_data_of);
    roots.now = (struct hw_root){.kind = HW_ROOT_POOLS};
    hw_pool_harvest(add_pool_block);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct hw_stopped_thread *thread = &threads->thread[i];
        if (!thread->known && thread->stack_pointer) { /* in vfork */
            roots.now = (struct hw_root){.kind = HW_ROOT_STACK, .tid = (uint32_t)thread->tid};
            add_stack(thread->stack_pointer, 0);
        }
        if (!thread->known)
            continue;
        hw_arch_registers_of_ptrace(thread->registers, roots.unwound);
        add_thread((uint32_t)thread->tid, thread->stack_pointer, thread->thread_pointer, thread->registers,
                   HW_REGISTERS, roots.unwound);
    }
    if (leaks.room) {
        /* all threads are in the list */
    } else if (roots.interrupted) {
        uint64_t registers[NGREG];
        for (size_t i = 0; i < NGREG; i++)
            registers[i] = (uint64_t)roots.interrupted->uc_mcontext.gregs[i];
        roots.caller_stack = registers[REG_RSP];
        hw_arch_registers_of_signal(registers, roots.unwound);
        add_thread(hw_gettid(), roots.caller_stack, hw_arch_thread_pointer(), registers, NGREG, roots.unwound);
    } else
        add_thread(hw_gettid(), roots.caller_stack, hw_arch_thread_pointer(), roots.saved,
                   sizeof roots.saved / sizeof *roots.saved, roots.caller);
    add_first_stack();
    roots.now = (struct hw_root){0};
}

/* ---- what is left ---- */

/* What the dynamic linker allocates for itself: it keeps pointers where nobody looks, as in the stacks of ended threads
 * that libc keeps for later ones. */
static bool is_linkers(uint32_t context)
{
    const struct hw_context_entry *entry = HW_ENTRY(HW_POOL_CONTEXTS, struct hw_context_entry, context);
    const struct hw_stack_node *node = HW_ENTRY(HW_POOL_STACKS, struct hw_stack_node, entry->leaf);
    if (!entry->leaf || node->map == HW_NONE)
        return false;
    const char *path = hw_pools[HW_POOL_STRINGS].base + HW_ENTRY(HW_POOL_MAPS, struct hw_map_entry, node->map)->path;
    const char *name = path;
    for (; *path; path++)
        name = *path == '/' ? path + 1 : name;
    return hw_starts_with(name, "ld-linux") || hw_starts_with(name, "ld-musl") || hw_starts_with(name, "ld-2.");
}

static void add_linkers(struct hw_node node)
{
    struct hw_block block;
    if (hw_index_marked(node, HW_MARK_REACHED) || !hw_block_at(node.address, &block) ||
        block.context >= leaks.contexts || !is_linkers(block.context))
        return;
    hw_index_mark(node, HW_MARK_REACHED);
    remember(node);
    scan_all(HW_MARK_REACHED);
}

/* Blocks that are reached by pointers inside as C++ has them, and by no better ones. */
static void add_inside(struct hw_node node)
{
    struct hw_block block;
    if (hw_index_marked(node, HW_MARK_REACHED) || !hw_index_marked(node, HW_MARK_INSIDE) ||
        !hw_block_at(node.address, &block))
        return;
    leaks.info.inside_blocks++;
    leaks.info.inside_bytes += block.size;
    hw_index_mark(node, HW_MARK_REACHED);
    remember(node);
    scan_all(HW_MARK_REACHED);
}

static void find_indirect(struct hw_node node)
{
    if (hw_index_marked(node, HW_MARK_REACHED) || hw_index_marked(node, HW_MARK_INNER) ||
        hw_index_marked(node, HW_MARK_INDIRECT))
        return;
    leaks.leader = node;
    remember(node);
    scan_all(HW_MARK_INDIRECT);
}

static enum hw_leak_class class_of(struct hw_node node)
{
    if (hw_index_marked(node, HW_MARK_REACHED))
        return HW_LEAK_REACHABLE;
    if (hw_index_marked(node, HW_MARK_INNER))
        return HW_LEAK_POSSIBLE;
    return hw_index_marked(node, HW_MARK_INDIRECT) ? HW_LEAK_INDIRECT : HW_LEAK_DEFINITE;
}

static void add_up(struct hw_node node)
{
    struct hw_block block;
    if (!hw_block_at(node.address, &block) || block.context >= leaks.contexts)
        return;
    struct sum *sum = &leaks.sums[block.context][class_of(node)];
    if (!sum->blocks++ || block.stamp < sum->oldest)
        sum->oldest = block.stamp;
    if (block.stamp > sum->newest)
        sum->newest = block.stamp;
    sum->bytes += block.size;
    leaks.live_bytes += block.size;
}

static uint64_t tick_of(uint64_t stamp)
{
    const uint64_t tick = stamp + hw_runtime.family_base;
    return tick > hw_runtime.tick_base ? tick - hw_runtime.tick_base : 0;
}

static bool put_into_file(const struct hw_leak *leak)
{
    const uint32_t index = hw_pool_take(HW_POOL_LEAKS, 1);
    if (index != HW_NONE)
        *HW_ENTRY(HW_POOL_LEAKS, struct hw_leak, index) = *leak;
    return index != HW_NONE;
}

static bool put_into_room(const struct hw_leak *leak)
{
    struct hw_visit_room *room = leaks.room;
    if (room->leak_count == room->leaks_most)
        return false;
    ((struct hw_leak *)((char *)room + room->leaks))[room->leak_count++] = *leak;
    return true;
}

static void put_all(bool (*put)(const struct hw_leak *leak))
{
    for (uint32_t context = 0; context < leaks.contexts; context++)
        for (uint32_t class = 0; class < HW_LEAK_CLASSES; class ++) {
            const struct sum *sum = &leaks.sums[context][class];
            const struct hw_leak leak = {.context = context,
                                         .kind = class,
                                         .blocks = sum->blocks,
                                         .bytes = sum->bytes,
                                         .oldest_tick = tick_of(sum->oldest),
                                         .newest_tick = tick_of(sum->newest)};
            if (sum->blocks && !put(&leak))
                leaks.info.unwritten_bytes += sum->bytes;
        }
}

static void write(void)
{
    if (leaks.room) {
        put_all(put_into_room);
        leaks.room->info = leaks.info;
        return;
    }
    hw_pool_forget(HW_POOL_LEAKS);
    hw_pool_forget(HW_POOL_LEAK_INFO);
    put_all(put_into_file);
    hw_pool_publish(HW_POOL_LEAKS);
    const uint32_t index = hw_pool_take(HW_POOL_LEAK_INFO, 1);
    if (index != HW_NONE) {
        *HW_ENTRY(HW_POOL_LEAK_INFO, struct hw_leak_info, index) = leaks.info;
        hw_pool_publish(HW_POOL_LEAK_INFO);
    } else
        hw_note_locked(HW_NOTE_FILE_FULL, hw_file_problem());
}

/* ---- the search ---- */

static bool make_room(void)
{
    static uint32_t most;
    leaks.contexts = (uint32_t)HW_ENTRIES(HW_POOL_CONTEXTS);
    if (!leaks.to_scan)
        leaks.to_scan = hw_own_pages(TO_SCAN_MOST * sizeof *leaks.to_scan, true);
    if (leaks.contexts > most) {
        leaks.sums = hw_own_pages(leaks.contexts * sizeof *leaks.sums, true);
        most = leaks.contexts;
    } else
        hw_own_give_back(leaks.sums, most * sizeof *leaks.sums);
    return leaks.to_scan && leaks.sums;
}

static bool search(const struct hw_stopped_threads *threads, uint64_t begin)
{
    roots.threads = threads;
    leaks.info.threads_missed = threads->missed;
    leaks.info.missed_error = (uint32_t)threads->error;
    const bool found = hw_scan_begin() && make_room() && hw_index_make();
    if (found && leaks.mapped)
        find_mapped(threads);
    if (found) {
        hw_roots_each(reach_from_root);
        scan_all(HW_MARK_REACHED);
        hw_index_each_of(0, 1u << HW_MARK_REACHED, add_linkers);
        for (uint64_t before = UINT64_MAX; before != leaks.info.inside_blocks;) { /* they may lead to others */
            before = leaks.info.inside_blocks;
            hw_index_each_of(1u << HW_MARK_INSIDE, 1u << HW_MARK_REACHED, add_inside);
        }
        leaks.inner_too = true;
        wanted = HW_MARK_INNER;
        hw_index_each_of(1u << wanted, 1u << HW_MARK_SCANNED, scan_marked);
        scan_all(HW_MARK_INNER);
        leaks.inner_too = false;
        leaks.lost = true;
        hw_index_each_of(0, 1u << HW_MARK_REACHED | 1u << HW_MARK_INNER | 1u << HW_MARK_INDIRECT, find_indirect);
        leaks.lost = false;
        hw_index_each(add_up);
        leaks.info.scan_ns = hw_clock_monotonic_ns() - begin;
        write();
        leaks.no_keeps = leaks.keeps && !hw_keeps_find(leaks.info.tick, leaks.live_bytes, leaks.room);
    }
    hw_index_drop();
    hw_scan_end();
    return found;
}

/* Why a search was not possible, as errno. */
static int obstacle(void)
{
    const int file = hw_open(HW_MAPS, O_RDONLY, 0);
    if (file < 0)
        return -file;
    hw_close(file);
    return ENOMEM;
}

static const char *reason(int error)
{
    return error == ENOMEM                      ? "leaks were not searched for: there was no memory for it"
           : error == EMFILE || error == ENFILE ? "leaks were not searched for: no descriptor was free (RLIMIT_NOFILE)"
                                                : "leaks were not searched for: /proc could not be read (chroot?)";
}

static void begin(struct hw_visit_room *room, bool mapped, bool keeps, bool calm)
{
    leaks.mapped = mapped;
    leaks.keeps = keeps;
    leaks.waiting = 0;
    leaks.live_bytes = 0;
    leaks.overflow = leaks.inner_too = leaks.lost = leaks.no_keeps = false;
    leaks.room = room;
    leaks.info = (struct hw_leak_info){.tick = hw_ticks_raw() - hw_runtime.tick_base, .calm = calm};
}

bool hw_leaks_find_in_copy(const struct hw_stopped_threads *threads, struct hw_visit_room *room, bool mapped,
                           bool keeps)
{
    begin(room, mapped, keeps, room->info.calm);
    roots.caller_stack = 0;
    roots.interrupted = NULL;
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const bool found = search(threads, hw_clock_monotonic_ns());
    hw_lock_drop(&hw_runtime.lock, old);
    if (!found)
        room->error = obstacle();
    room->keeps_failed = leaks.no_keeps;
    return found;
}

void hw_leaks_find(const void *interrupted, bool calm)
{
    if (!hw_options.leaks || hw_quiet)
        return;
    if (hw_runtime.weighted) {
        hw_note(HW_NOTE_OTHER, "leaks were not searched for: not every block is known in this mode");
        return;
    }
    begin(NULL, hw_options.leaks == 2, hw_options.keeps != 0, calm);
    hw_arch_save_registers(roots.saved);
    hw_arch_capture(roots.caller);
    roots.caller_stack = (uintptr_t)__builtin_frame_address(0);
    roots.interrupted = interrupted;
    const uint64_t moment = hw_clock_monotonic_ns();
    hw_sigset old = hw_lock_take(&hw_runtime.lock);
    const bool found = search(hw_threads_freeze(), moment);
    hw_threads_thaw();
    hw_lock_drop(&hw_runtime.lock, old);
    if (!found)
        hw_note(HW_NOTE_OTHER, reason(obstacle()));
    if (leaks.no_keeps)
        hw_note(HW_NOTE_OTHER, "who keeps blocks was not searched for: there was no memory for it");
}
