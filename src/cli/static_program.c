/* static_program.c - see static_program.h, profile/static_program.h for the runtime's part.
 *
 * What a dynamic linker does for a library is done from outside, by ptrace: the runtime's segments are mapped, its
 * relocations applied, against the program's own symbols. For its thread-local data the program's libc is used: it gets
 * other program headers (AT_PHDR), in which the program's thread-local data begins with the runtime's. So every thread
 * has it, where the program's own data keeps its distance from the thread pointer. */
#include "cli/static_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/attach.h"

#define PAGE        4096ul
#define STACK_BYTES (128ul << 10) /* for the call of `begin` */
#define TLS_MOST    (1ul << 30)
#define NEAR        (1l << 20) /* steps of a search for room */
#define VECTORS     16384

#define UP(value, unit) (((value) + (unit)-1) / (unit) * (unit))
#define FAIL(work, ...) (hw_error_set((work)->error, __VA_ARGS__), false)

struct work {
    pid_t pid;
    struct hw_error *error;
    const struct hw_static_plan *plan;
    const char *runtime;
    int memory;                        /* /proc/PID/mem */
    struct user_regs_struct registers; /* at the first instruction */
    uint64_t bias;
    bool stopped_too; /* somebody stopped the process meanwhile */
    /* the runtime's file */
    uint8_t *file;
    size_t file_size;
    const Elf64_Phdr *parts, *dynamic, *tls;
    size_t part_count;
    const Elf64_Sym *symbols;
    const char *names;
    size_t names_size, symbol_count;
    uint64_t base;   /* where it is mapped */
    uint64_t room;   /* for a stack, thread-local data and texts; for a while */
    uint64_t tls_at; /* offset of the runtime's thread-local data from the thread pointer, as unsigned */
    uint64_t tls_room;
};

/* ---- the process ---- */

static bool put(struct work *work, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(work->memory, bytes, size, (off_t)address) == (ssize_t)size ||
           FAIL(work, "the memory of the program cannot be written to: %s", strerror(errno));
}

static bool get(struct work *work, uint64_t address, void *bytes, size_t size)
{
    return pread(work->memory, bytes, size, (off_t)address) == (ssize_t)size ||
           FAIL(work, "the memory of the program cannot be read: %s", strerror(errno));
}

/* Runs from REGISTERS to the next trap; they are as there. All signals are blocked. */
static bool run(struct work *work, struct user_regs_struct *registers)
{
    int status, how = PTRACE_CONT;
    if (ptrace(PTRACE_SETREGS, work->pid, NULL, registers) != 0)
        return FAIL(work, "the program cannot be prepared: %s", strerror(errno));
    while (true) {
        if (ptrace(how, work->pid, NULL, NULL) != 0 || waitpid(work->pid, &status, __WALL) != work->pid)
            return FAIL(work, "the program cannot be prepared: %s", strerror(errno));
        if (!WIFSTOPPED(status))
            return FAIL(work, "the program was killed before it began");
        if (WSTOPSIG(status) == SIGTRAP)
            break;
        if (WSTOPSIG(status) != SIGSTOP)
            return FAIL(work, "the runtime could not be started in the program (signal %d)", WSTOPSIG(status));
        work->stopped_too = true; /* at the end */
    }
    return ptrace(PTRACE_GETREGS, work->pid, NULL, registers) == 0 ||
           FAIL(work, "the program cannot be prepared: %s", strerror(errno));
}

/* A system call. At the program's first instruction lies: syscall; int3; int3. False: -errno as the kernel has it. */
static bool call_kernel(struct work *work, const char *what, long *result, long number, uint64_t a, uint64_t b,
                        uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    struct user_regs_struct there = work->registers;
    there.rax = (uint64_t)number;
    there.orig_rax = ~0ul;
    there.rdi = a;
    there.rsi = b;
    there.rdx = c;
    there.r10 = d;
    there.r8 = e;
    there.r9 = f;
    if (!run(work, &there))
        return false;
    *result = (long)there.rax;
    return *result >= 0 || *result < -4095 ||
           FAIL(work, "the program cannot be prepared: %s: %s", what, strerror((int)-*result));
}

#define MAP(work, address, size, rights, flags, file, offset, got)                                                     \
    call_kernel(work, "mmap", got, SYS_mmap, address, size, rights, flags, (uint64_t)(file), offset)

/* ---- the runtime's file ---- */

static bool within(const struct work *work, uint64_t offset, uint64_t size)
{
    return offset <= work->file_size && size <= work->file_size - offset;
}

/* Where ADDRESS of the runtime is in its file; NULL: SIZE bytes are not there. */
static const void *in_file(const struct work *work, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < work->part_count; i++) {
        const Elf64_Phdr *part = &work->parts[i];
        if (part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr <= part->p_filesz &&
            size <= part->p_filesz - (address - part->p_vaddr))
            return work->file + part->p_offset + (address - part->p_vaddr);
    }
    return NULL;
}

static uint64_t dynamic_value(const struct work *work, int64_t tag)
{
    const Elf64_Dyn *entry = (const void *)(work->file + work->dynamic->p_offset);
    for (size_t i = 0; i < work->dynamic->p_filesz / sizeof *entry && entry[i].d_tag != DT_NULL; i++)
        if (entry[i].d_tag == tag)
            return entry[i].d_un.d_val;
    return 0;
}

static bool read_runtime(struct work *work)
{
    struct stat status;
    const int file = open(work->runtime, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        const int problem = errno;
        if (file >= 0)
            close(file);
        return FAIL(work, "%s: %s", work->runtime, strerror(problem));
    }
    work->file_size = (size_t)status.st_size;
    work->file = mmap(NULL, work->file_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (work->file == MAP_FAILED) {
        work->file = NULL;
        return FAIL(work, "%s: %s", work->runtime, strerror(errno));
    }
    const Elf64_Ehdr *header = (const void *)work->file;
    bool fine = within(work, 0, sizeof *header) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                header->e_machine == EM_X86_64 && header->e_phentsize == sizeof(Elf64_Phdr) &&
                within(work, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
    if (fine) {
        work->parts = (const void *)(work->file + header->e_phoff);
        work->part_count = header->e_phnum;
    }
    for (size_t i = 0; i < work->part_count; i++) {
        fine &= within(work, work->parts[i].p_offset, work->parts[i].p_filesz);
        work->dynamic = work->parts[i].p_type == PT_DYNAMIC ? &work->parts[i] : work->dynamic;
        work->tls = work->parts[i].p_type == PT_TLS ? &work->parts[i] : work->tls;
    }
    if (fine && work->dynamic && work->tls) {
        const uint64_t symbols = dynamic_value(work, DT_SYMTAB), names = dynamic_value(work, DT_STRTAB);
        work->names_size = dynamic_value(work, DT_STRSZ);
        work->names = in_file(work, names, work->names_size);
        work->symbol_count = names > symbols ? (names - symbols) / sizeof(Elf64_Sym) : 0; /* the names lie behind */
        work->symbols = in_file(work, symbols, work->symbol_count * sizeof(Elf64_Sym));
    }
    return (work->symbols && work->symbol_count && work->names && work->names_size &&
            !work->names[work->names_size - 1]) ||
           FAIL(work, "%s is no runtime library of this version", work->runtime);
}

static const char *name_of(const struct work *work, const Elf64_Sym *symbol)
{
    return symbol->st_name < work->names_size ? work->names + symbol->st_name : "";
}

/* The address in the process of what the runtime exports; 0: there is none. */
static uint64_t exported(const struct work *work, const char *name)
{
    for (size_t i = 0; i < work->symbol_count; i++)
        if (work->symbols[i].st_shndx != SHN_UNDEF && strcmp(name_of(work, &work->symbols[i]), name) == 0)
            return work->base + work->symbols[i].st_value;
    return 0;
}

/* ---- loading ---- */

static bool map_part(struct work *work, const Elf64_Phdr *part, long file)
{
    static const char zeros[PAGE];
    long got;
    const uint64_t start = (work->base + part->p_vaddr) & ~(PAGE - 1);
    const uint64_t data_end = work->base + part->p_vaddr + part->p_filesz;
    const uint64_t end = UP(work->base + part->p_vaddr + part->p_memsz, PAGE), anonymous = UP(data_end, PAGE);
    const uint64_t rights = (part->p_flags & PF_R ? PROT_READ : 0) | (part->p_flags & PF_W ? PROT_WRITE : 0) |
                            (part->p_flags & PF_X ? PROT_EXEC : 0);
    if (data_end > start &&
        !MAP(work, start, data_end - start, rights, MAP_PRIVATE | MAP_FIXED, file, part->p_offset & ~(PAGE - 1), &got))
        return false;
    if (part->p_flags & PF_W && anonymous > data_end && !put(work, data_end, zeros, anonymous - data_end))
        return false;
    return end <= anonymous ||
           MAP(work, anonymous, end - anonymous, rights, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0, &got);
}

static bool map_runtime(struct work *work)
{
    long file = -1, got = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < work->part_count; i++)
        if (work->parts[i].p_type == PT_LOAD && work->parts[i].p_vaddr + work->parts[i].p_memsz > end)
            end = work->parts[i].p_vaddr + work->parts[i].p_memsz;
    if (!put(work, work->room, work->runtime, strlen(work->runtime) + 1) ||
        !call_kernel(work, work->runtime, &file, SYS_openat, (uint64_t)AT_FDCWD, work->room, O_RDONLY | O_CLOEXEC, 0, 0,
                     0) ||
        !MAP(work, 0, UP(end, PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &got))
        return false;
    work->base = (uint64_t)got;
    for (size_t i = 0; i < work->part_count; i++)
        if (work->parts[i].p_type == PT_LOAD && !map_part(work, &work->parts[i], file))
            return false;
    return call_kernel(work, "close", &got, SYS_close, (uint64_t)file, 0, 0, 0, 0, 0);
}

/* What the runtime uses of libc where there is some; all of it works in a program without a dynamic linker, too. */
static bool may_use(const char *name)
{
    static const char *const names[] = {
        "__errno_location", "__libc_stack_end", "__rseq_offset",        "__rseq_size",        "clock_gettime",
        "environ",          "getauxval",        "gnu_get_libc_version", "pthread_key_create", "pthread_setspecific"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static uint64_t value_of(const struct work *work, const Elf64_Sym *symbol)
{
    if (symbol->st_shndx != SHN_UNDEF)
        return work->base + symbol->st_value;
    const struct hw_static_symbol *found =
        may_use(name_of(work, symbol)) ? hw_static_plan_find(work->plan, name_of(work, symbol)) : NULL;
    return found ? work->bias + found->address : 0;
}

static bool relocate(struct work *work, uint64_t table, uint64_t size)
{
    const Elf64_Rela *entry = in_file(work, table, size);
    if (size && !entry)
        return FAIL(work, "%s is damaged", work->runtime);
    for (; size >= sizeof *entry; size -= sizeof *entry, entry++) {
        const uint64_t index = ELF64_R_SYM(entry->r_info);
        if (index >= work->symbol_count)
            return FAIL(work, "%s is damaged", work->runtime);
        const Elf64_Sym *symbol = &work->symbols[index];
        uint64_t value = (uint64_t)entry->r_addend;
        switch (ELF64_R_TYPE(entry->r_info)) {
        case R_X86_64_RELATIVE:
            value += work->base;
            break;
        case R_X86_64_GLOB_DAT:
        case R_X86_64_JUMP_SLOT:
        case R_X86_64_64:
            value += value_of(work, symbol);
            break;
        case R_X86_64_TPOFF64:
            value += work->tls_at + symbol->st_value;
            break;
        default:
            return FAIL(work, "%s has a relocation of unknown type %u", work->runtime,
                        (unsigned)ELF64_R_TYPE(entry->r_info));
        }
        if (!put(work, work->base + entry->r_offset, &value, sizeof value))
            return false;
    }
    return true;
}

/* ---- what the program is shown ---- */

/* Where the runtime's thread-local data goes: below the program's own, whose end is at the thread pointer. */
static bool place_tls(struct work *work, const Elf64_Phdr *own)
{
    const uint64_t align = own && own->p_align ? own->p_align : 1;
    const uint64_t below = own ? UP(own->p_memsz, align) : 0, unit = align > 64 ? align : 64;
    if ((align & (align - 1)) || below > TLS_MOST || align > PAGE)
        return FAIL(work, "the program's thread-local data is too large, or aligned in an unusual way");
    const uint64_t all = UP(below + work->tls->p_memsz, unit);
    work->tls_room = all - below;
    work->tls_at = 0 - all;
    return true;
}

/* Memory that stays, within 2 GiB of the program's code: below it, since its heap grows above. */
static bool map_near(struct work *work, uint64_t size, uint64_t *place)
{
    const uint64_t start = work->bias + work->plan->start;
    long got = 0;
    for (long step = 1; step < 1900; step++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const uint64_t distance = (uint64_t)step * (uint64_t)NEAR + (sign < 0 ? size : 1ul << 30);
            const uint64_t hint = (sign < 0 ? start - distance : start + distance) & ~(PAGE - 1);
            if (hint < 0x10000 || hint > 1ul << 47 || (sign > 0 && step > 900))
                continue;
            if (MAP(work, hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0,
                    &got)) {
                *place = (uint64_t)got;
                return true;
            }
            if (got != -EEXIST && got != -EPERM && got != -EINVAL)
                return false;
        }
    return FAIL(work, "there is no room for the runtime's tables near the program");
}

/* The numbers of the initial stack that name the program headers. */
static bool set_headers(struct work *work, uint64_t address, uint64_t count)
{
    uint64_t at = work->registers.rsp, word;
    if (!get(work, at, &word, sizeof word))
        return false;
    at += (word + 2) * 8; /* the count, the arguments and their end */
    do {                  /* the environment */
        if (!get(work, at, &word, sizeof word))
            return false;
        at += 8;
    } while (word);
    for (bool found = false;; at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;
        if (!get(work, at, &entry, sizeof entry))
            return false;
        if (entry.a_type == AT_NULL)
            return found || FAIL(work, "the program is not given its headers by the kernel");
        if (entry.a_type != AT_PHDR && entry.a_type != AT_PHNUM)
            continue;
        entry.a_un.a_val = entry.a_type == AT_PHDR ? address : count;
        found |= entry.a_type == AT_PHDR;
        if (!put(work, at, &entry, sizeof entry))
            return false;
    }
}

struct tables {
    Elf64_Phdr *headers;
    size_t header_count;
    uint8_t *bytes; /* headers, .eh_frame_hdr, thread-local data */
    size_t size, unwind_at, unwind_size, tls_at, tls_size;
};

static bool fill_unwind(struct work *work, const struct tables *tables, uint64_t place)
{
    static const uint8_t head[4] = {1, 0x1b, 0x03, 0x3b}; /* as LSB, "exception frames", has it */
    const uint64_t header = place + tables->unwind_at;
    uint8_t *to = tables->bytes + tables->unwind_at;
    const uint32_t count = (uint32_t)work->plan->unwind_count;
    memcpy(to, head, 4);
    memcpy(to + 8, &count, 4);
    to += 12;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++, to += 4) {
            const int64_t distance = (int64_t)(work->bias + work->plan->unwind[i][k] - header);
            const int32_t narrow = (int32_t)distance;
            if (narrow != distance)
                return FAIL(work, "there is no room for the runtime's tables near the program");
            memcpy(to, &narrow, 4);
        }
    return true;
}

/* The program headers, with thread-local data that begins with the runtime's; tables for unwinding if it has none. */
static bool make_tables(struct work *work, struct tables *tables, uint64_t *place)
{
    const struct hw_static_plan *plan = work->plan;
    size_t own = plan->header_count;
    for (size_t i = 0; i < plan->header_count; i++)
        own = plan->headers[i].p_type == PT_TLS ? i : own;
    const Elf64_Phdr *old = own < plan->header_count ? &plan->headers[own] : NULL;
    const uint64_t align = old && old->p_align > 64 ? old->p_align : 64;
    if (!place_tls(work, old))
        return false;
    tables->header_count = plan->header_count + !old;
    tables->unwind_at = UP(tables->header_count * sizeof(Elf64_Phdr), 64);
    tables->unwind_size = plan->unwind_count ? 12 + plan->unwind_count * 8 : 0;
    tables->tls_at = UP(tables->unwind_at + tables->unwind_size, align);
    if (old) /* the data lies as its alignment wants it */
        tables->tls_at += (old->p_vaddr - work->tls_room) & (align - 1);
    tables->tls_size = work->tls_room + (old ? old->p_filesz : 0);
    tables->size = UP(tables->tls_at + tables->tls_size, PAGE);
    tables->bytes = calloc(1, tables->size);
    if (!tables->bytes)
        return FAIL(work, "no memory");
    if (!map_near(work, tables->size, place) || (tables->unwind_size && !fill_unwind(work, tables, *place)))
        return false;
    Elf64_Phdr *headers = (Elf64_Phdr *)(void *)tables->bytes;
    memcpy(headers, plan->headers, plan->header_count * sizeof *headers);
    headers[own] = (Elf64_Phdr){
        .p_type = PT_TLS,
        .p_flags = PF_R,
        .p_vaddr = *place + tables->tls_at - work->bias,
        .p_paddr = *place + tables->tls_at - work->bias,
        .p_filesz = tables->tls_size,
        .p_memsz = work->tls_room + (old ? old->p_memsz : 0),
        .p_align = old ? old->p_align : 64,
    };
    for (size_t i = 0; i < tables->header_count; i++)
        if (headers[i].p_type == PT_PHDR) {
            headers[i].p_vaddr = headers[i].p_paddr = *place - work->bias;
            headers[i].p_filesz = headers[i].p_memsz = tables->header_count * sizeof *headers;
        }
    const uint8_t *image = work->file + work->tls->p_offset;
    memcpy(tables->bytes + tables->tls_at, image, work->tls->p_filesz);
    uint8_t *data = tables->bytes + tables->tls_at + work->tls_room;
    if (!old)
        return true;
    if (!get(work, work->bias + old->p_vaddr, data, old->p_filesz))
        return false;
    for (size_t i = 0; i < plan->moved_count; i++) {
        const uint64_t value = work->bias + plan->moved[i][1];
        memcpy(data + (plan->moved[i][0] - old->p_vaddr), &value, sizeof value);
    }
    return true;
}

/* ---- the runtime ---- */

/* What is to be known of the program, in the runtime. */
static bool describe(struct work *work, uint64_t place, const struct tables *tables)
{
    static struct hw_static_program program;
    const uint64_t address = exported(work, HW_STATIC_VARIABLE);
    if (!address || !get(work, address, &program, sizeof program) || program.version != HW_STATIC_VERSION)
        return FAIL(work, "%s is no runtime library of this version", work->runtime);
    program.bias = work->bias;
    program.headers = work->bias + work->plan->headers_at;
    program.header_count = work->plan->header_count;
    program.unwind = tables->unwind_size ? place + tables->unwind_at : 0;
    program.unwind_size = tables->unwind_size;
    program.allocator = work->plan->allocator;
    program.function_count = 0;
    /* Beside the functions that have hooks: signs of allocators, and where libc itself frees, or ends threads. */
    static const char *const signs[] = {"mallctl",
                                        "je_mallctl",
                                        "MallocExtension_ReleaseFreeMemory",
                                        "tc_malloc",
                                        "mi_malloc",
                                        "__malloc_arena_thread_freeres",
                                        "__libc_thread_freeres",
                                        "__pthread_exit"};
    const size_t sign_count = sizeof signs / sizeof *signs;
    for (size_t i = 0; i < work->symbol_count + sign_count; i++) {
        const bool is_sign = i >= work->symbol_count;
        const Elf64_Sym *symbol = &work->symbols[is_sign ? 0 : i];
        const char *name = is_sign ? signs[i - work->symbol_count] : name_of(work, symbol);
        const struct hw_static_symbol *found = hw_static_plan_find(work->plan, name);
        if (!found || (!is_sign && (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)))
            continue;
        /* Operators of the C++ library call malloc: they are counted there. */
        if (work->plan->allocator != HW_STATIC_OTHER && (strncmp(name, "_Zn", 3) == 0 || strncmp(name, "_Zd", 3) == 0))
            continue;
        if (program.function_count == HW_STATIC_FUNCTIONS || strlen(name) >= HW_STATIC_NAME)
            return FAIL(work, "the program has more functions to watch than the runtime has room for");
        struct hw_static_function *function = &program.function[program.function_count++];
        *function = (struct hw_static_function){.address = work->bias + found->address, .size = found->size};
        strcpy(function->name, name);
    }
    return put(work, address, &program, sizeof program);
}

static bool begin_runtime(struct work *work)
{
    static struct hw_attach attach;
    const uint64_t variable = exported(work, HW_ATTACH_VARIABLE), program = exported(work, HW_STATIC_VARIABLE);
    uint64_t begin = 0;
    const uint64_t back = work->registers.rip + 3;
    struct user_regs_struct there = work->registers;
    if (!variable || !get(work, program + offsetof(struct hw_static_program, begin), &begin, sizeof begin))
        return FAIL(work, "%s is no runtime library of this version", work->runtime);
    there.fs_base = work->room + UP(0 - work->tls_at, PAGE);
    there.rsp = there.fs_base + PAGE + STACK_BYTES - 64;
    there.rsp = (there.rsp & ~63ul) - 8;
    there.rip = begin;
    there.orig_rax = ~0ul;
    if (!put(work, there.fs_base, &there.fs_base, 8) || !put(work, there.rsp, &back, sizeof back) || !run(work, &there))
        return false;
    if (there.rip != back + 1 || !get(work, variable, &attach, sizeof attach))
        return FAIL(work, "the runtime could not be started in the program");
    attach.problem[sizeof attach.problem - 1] = '\0';
    if (there.rax != 0)
        return FAIL(work, "the program cannot be recorded: %s", attach.problem);
    for (uint32_t i = 0; i < attach.patch_count && i < HW_ATTACH_PATCHES; i++)
        if (!put(work, attach.patch[i].address, attach.patch[i].after, attach.patch[i].size))
            return false;
    return true;
}

static bool load(struct work *work)
{
    struct tables tables = {0};
    uint64_t place = 0;
    long got = 0;
    bool fine = make_tables(work, &tables, &place);
    const uint64_t room_size = UP(0 - work->tls_at, PAGE) + PAGE + STACK_BYTES;
    fine = fine && MAP(work, 0, room_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &got);
    work->room = fine ? (uint64_t)got : 0;
    fine = fine && map_runtime(work) && put(work, place, tables.bytes, tables.size) &&
           call_kernel(work, "mprotect", &got, SYS_mprotect, place, tables.size, PROT_READ, 0, 0, 0) &&
           relocate(work, dynamic_value(work, DT_RELA), dynamic_value(work, DT_RELASZ)) &&
           relocate(work, dynamic_value(work, DT_JMPREL), dynamic_value(work, DT_PLTRELSZ)) &&
           describe(work, place, &tables) && begin_runtime(work) && set_headers(work, place, tables.header_count) &&
           call_kernel(work, "munmap", &got, SYS_munmap, work->room, room_size, 0, 0, 0, 0);
    free(tables.bytes);
    return fine;
}

bool hw_static_program_begin(pid_t pid, void *closure, struct hw_error *error)
{
    static const uint8_t instructions[] = {0x0f, 0x05, 0xcc, 0xcc}; /* syscall; int3; int3 */
    static const uint64_t all = ~0ull;
    static char vectors[VECTORS];
    const struct hw_static_start *start = closure;
    struct work work = {.pid = pid, .error = error, .plan = start->plan, .runtime = start->runtime, .memory = -1};
    struct iovec vector = {vectors, sizeof vectors};
    uint8_t before[sizeof instructions];
    uint64_t mask;
    char path[64];
    if (!read_runtime(&work))
        return false;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    work.memory = open(path, O_RDWR | O_CLOEXEC);
    bool fine = work.memory >= 0 && ptrace(PTRACE_GETREGS, pid, NULL, &work.registers) == 0 &&
                ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &vector) == 0 &&
                ptrace(PTRACE_GETSIGMASK, pid, (void *)sizeof mask, &mask) == 0 &&
                ptrace(PTRACE_SETSIGMASK, pid, (void *)sizeof all, &all) == 0;
    if (!fine)
        hw_error_set(error, "the program cannot be prepared: %s", strerror(errno));
    work.bias = work.registers.rip - start->plan->entry;
    if (fine && work.bias % PAGE)
        fine = FAIL(&work, "the program does not begin where its file says");
    fine = fine && get(&work, work.registers.rip, before, sizeof before) &&
           put(&work, work.registers.rip, instructions, sizeof instructions) && load(&work) &&
           put(&work, work.registers.rip, before, sizeof before);
    if (fine && (ptrace(PTRACE_SETREGS, pid, NULL, &work.registers) != 0 ||
                 ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &vector) != 0 ||
                 ptrace(PTRACE_SETSIGMASK, pid, (void *)sizeof mask, &mask) != 0))
        fine = FAIL(&work, "the program cannot be prepared: %s", strerror(errno));
    if (fine && work.stopped_too)
        kill(pid, SIGSTOP);
    if (work.memory >= 0)
        close(work.memory);
    munmap(work.file, work.file_size);
    return fine;
}
