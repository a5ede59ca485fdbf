/* attach.c - recording that begins in the middle of a run: `heapwise attach PID` (profile/attach.h).
 *
 * A runtime that dlopen brought has no hooks in anybody's way: it does nothing until a thread is sent to `call`. When a
 * recording has ended the runtime stays loaded, but is as on its first day: its memory is given back, its data is what
 * it was when it was loaded. So each recording begins on the same ground. What must outlive that is HW_KEPT. */
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <sys/stat.h>

#include "profile/attach.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/core/memory.h"
#include "runtime/core/modules.h"
#include "runtime/hooks/hooks.h"

/* Of a process of which glibc is asked for its blocks in use: resident bytes, and threads, which hold its locks. */
#define GLIBC_MOST    (256ul << 20)
#define GLIBC_THREADS 50

extern HW_VARIABLE struct hw_attach heapwise_attach;
HW_KEPT struct hw_attach heapwise_attach = {.version = HW_ATTACH_VERSION};
HW_KEPT bool hw_attached = false;

static HW_KEPT struct {
    char *data; /* as it was when it was loaded */
    uintptr_t start, data_end, end;
    bool has_exit;
} image = {0};

extern const char __ehdr_start[] HW_HIDDEN;
extern const char etext[] HW_HIDDEN;
extern char __start_hw_kept[] HW_HIDDEN, __stop_hw_kept[] HW_HIDDEN;
extern __thread uintptr_t __heapwise_plane;
extern void *dlsym(void *, const char *) __attribute__((weak));
extern int dladdr(const void *, Dl_info *) __attribute__((weak));
extern int on_exit(void (*)(int, void *), void *) __attribute__((weak));

/* ---- its own image ---- */

static bool keep_image(void)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)__ehdr_start;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(__ehdr_start + header->e_phoff);
    const uintptr_t bias = (uintptr_t)__ehdr_start;
    uintptr_t fixed = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        const uintptr_t start = bias + part[i].p_vaddr;
        if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_W) {
            image.start = start;
            image.data_end = start + part[i].p_filesz;
            image.end = start + part[i].p_memsz;
        } else if (part[i].p_type == PT_GNU_RELRO) {
            fixed = HW_ALIGN_UP(start + part[i].p_memsz, HW_PAGE);
        } else if (part[i].p_type == PT_TLS) {
            heapwise_attach.tls_image = start;
            heapwise_attach.tls_image_bytes = part[i].p_filesz;
            heapwise_attach.tls_bytes = part[i].p_memsz;
        }
    }
    image.start = fixed > image.start ? fixed : image.start;
    image.data = hw_pages(image.data_end - image.start);
    if (!image.data)
        return false;
    __builtin_memcpy(image.data, (const void *)image.start, image.data_end - image.start);
    return true;
}

static void restore(uintptr_t start, uintptr_t end)
{
    const uintptr_t data_end = image.data_end < end ? image.data_end : end;
    volatile char *to = (volatile char *)start;
    uintptr_t at = start;
    for (; at < data_end; at++)
        *to++ = image.data[at - image.start];
    /* Zeroed data: whole pages are given back. */
    const uintptr_t page = HW_ALIGN_UP(at, HW_PAGE), last = end & ~(HW_PAGE - 1);
    if (page < last && hw_madvise(page, last - page, MADV_DONTNEED) == 0) {
        for (; at < page; at++)
            *to++ = 0;
        at = last;
        to = (volatile char *)at;
    }
    for (; at < end; at++)
        *to++ = 0;
}

static void restore_image(void)
{
    restore(image.start, (uintptr_t)__start_hw_kept);
    restore((uintptr_t)__stop_hw_kept, image.end);
}

/* ---- a recording ---- */

static long fail(const char *what, const char *detail)
{
    hw_text_join(heapwise_attach.problem, sizeof heapwise_attach.problem, what, detail);
    return -1;
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    if (hw_attached && !hw_fork_pending())
        hw_process_end(HW_EXIT_CODE, status & 0xff);
}

static void give_back(void)
{
    hw_attached = false;
    heapwise_attach.stage = HW_ATTACH_IDLE;
    heapwise_attach.patch_count = 0;
    hw_own_give_all_back();
    restore_image();
    hw_runtime.state = HW_STATE_OFF;
}

static uint64_t count_threads(void)
{
    struct stat task;
    return hw_sys(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &task, 0) < 0 ? 0 : task.st_nlink - 2;
}

/* Bytes of blocks that are in use, as the allocator counts them; 0: it does not say. Called at a safe point. */
static uint64_t allocated_before(void)
{
    void *const everywhere = NULL; /* RTLD_DEFAULT */
    int (*const control)(const char *, void *, size_t *, void *, size_t) = dlsym(everywhere, "mallctl");
    int (*const property)(const char *, size_t *) = dlsym(everywhere, "MallocExtension_GetNumericProperty");
    struct mallinfo2 (*const info)(void) = dlsym(everywhere, "mallinfo2");
    const char *allocator = hw_pools[HW_POOL_STRINGS].base + hw_runtime.process->allocator;
    size_t bytes = 0, size = sizeof bytes;
    uint64_t epoch = 1;
    if (control) /* jemalloc: its numbers are those of the last epoch */
        return control("epoch", NULL, NULL, &epoch, sizeof epoch) == 0 &&
                       control("stats.allocated", &bytes, &size, NULL, 0) == 0
                   ? bytes
                   : 0;
    if (property) /* tcmalloc */
        return property("generic.current_allocated_bytes", &bytes) ? bytes : 0;
    /* glibc goes through all its free blocks, one by one, with its locks held. */
    if (!info || !hw_starts_with(allocator, "glibc") || hw_memory_rss() > GLIBC_MOST || count_threads() > GLIBC_THREADS)
        return 0;
    const struct mallinfo2 heap = info();
    return heap.uordblks + heap.hblkhd;
}

/* Nothing leads to the runtime yet. */
static void undo(void)
{
    hw_file_discard();
    give_back();
}

/* GIVEN_UP: see HW_ATTACH_BEGIN; or NULL. */
static long begin(const uint64_t *given_up)
{
    if (heapwise_attach.stage != HW_ATTACH_IDLE)
        return fail("it is recorded already", NULL);
    if (!image.data && !keep_image())
        return fail("there is no memory for it", NULL);
    restore_image();
    hw_attached = true;
    hw_start();
    if (hw_runtime.state != HW_STATE_ON) {
        fail(hw_file_problem()[0] ? "a profile cannot be written: " : "there is not enough memory for a recording",
             hw_file_problem());
        give_back();
        return -1;
    }
    if (!hw_attach_hooks(&heapwise_attach)) {
        undo();
        return -1;
    }
    hw_arch_patch_trampolines(&heapwise_attach.trampolines, &heapwise_attach.trampolines_end);
    hw_runtime.process->flags |= HW_PROCESS_ATTACHED;
    hw_runtime.process->older_bytes = allocated_before();
    hw_text_join(heapwise_attach.path, sizeof heapwise_attach.path, hw_file_path);
    if (on_exit && !image.has_exit)
        image.has_exit = on_exit(at_exit, NULL) == 0;
    heapwise_attach.rounds++;
    __atomic_store_n(&heapwise_attach.stage, HW_ATTACH_COUNTING, __ATOMIC_SEQ_CST);
    if (given_up && !__atomic_load_n(given_up, __ATOMIC_SEQ_CST)) {
        undo();
        return fail("the command has given up", NULL);
    }
    return 0;
}

static long end(void)
{
    if (heapwise_attach.stage != HW_ATTACH_COUNTING)
        return fail("it is not recorded", NULL);
    /* A forked child has a profile of its own, or none. */
    const bool has_profile = hw_runtime.state == HW_STATE_ON && !hw_fork_pending();
    hw_text_join(heapwise_attach.path, sizeof heapwise_attach.path, has_profile ? hw_file_path : "");
    if (has_profile)
        hw_process_end(HW_EXIT_DETACHED, 0);
    hw_file_let_go();
    give_back();
    return 0;
}

/* A command that was killed may have left a thread in here, which goes on. */
static long call(uint64_t what, const uint64_t *given_up)
{
    static HW_KEPT bool busy = false;
    if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQ_REL))
        return fail("another heapwise attach or detach is not done yet: try again later", NULL);
    heapwise_attach.problem[0] = '\0';
    const long result = what == HW_ATTACH_BEGIN ? begin(given_up)
                        : what == HW_ATTACH_END ? end()
                                                : fail("it does not know how", NULL);
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    return result;
}

static bool opened_by_attach(void)
{
    Dl_info info;
    const char *name = dladdr && dladdr(&heapwise_attach, &info) ? info.dli_fname : NULL;
    return name && (hw_starts_with(name, HW_ATTACH_MEMORY) || hw_contains(name, HW_ATTACH_NAME));
}

bool hw_attach_waits(void)
{
    const bool waits = !hw_attached && hw_real_late() && opened_by_attach();
    heapwise_attach.call = (uintptr_t)call;
    heapwise_attach.code = (uintptr_t)__ehdr_start;
    heapwise_attach.code_end = (uintptr_t)etext;
    heapwise_attach.plane = (int64_t)((uintptr_t)&__heapwise_plane - (uintptr_t)__builtin_thread_pointer());
    if (!hw_attached)
        heapwise_attach.stage = waits ? HW_ATTACH_IDLE : HW_ATTACH_PRELOADED;
    return waits;
}

const char *hw_attach_options(void)
{
    return hw_attached ? heapwise_attach.options : NULL;
}
