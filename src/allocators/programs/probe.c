/* probe.c - the program heapwise-probe: finds out how the allocator works that it was started with (LD_PRELOAD).
 *
 *     heapwise-probe            prints all facts (facts.h has the format)
 *     heapwise-probe --where    only name, version, path and build id
 *
 * Nothing here is known about any allocator but how to ask it for its version: all else is seen from what malloc
 * returns. Each question is put to a child of its own, so that no answer depends on what was asked before, and an
 * allocator that crashes leaves one answer unknown. It allocates nothing but for the questions: no stdio. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE         4096u
#define CLASSES_MOST 1024                /* as facts.h */
#define ASKED_MOST   ((size_t)256 << 20) /* no larger block is asked for */
#define HELD         24                  /* requests in a row that must each map memory */
#define TOUCHED      ((size_t)16 << 20)  /* the kernel counts pages in larger steps than a small block's */
#define SECONDS_MOST 20

static char output[64 << 10];
static size_t output_used;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(output + output_used, sizeof output - output_used, format, arguments);
    va_end(arguments);
    if (length > 0 && output_used + (size_t)length < sizeof output)
        output_used += (size_t)length;
}

static void flush(void)
{
    for (size_t done = 0; done < output_used;) {
        const ssize_t written = write(STDOUT_FILENO, output + done, output_used - done);
        if (written <= 0)
            _exit(1);
        done += (size_t)written;
    }
}

/* ---- the functions that are asked: as the dynamic linker finds them, not as the compiler knows them ---- */

static void *(*volatile do_malloc)(size_t);
static void (*volatile do_free)(void *);
static size_t (*volatile do_usable)(void *); /* NULL: the allocator has none of its own */
static const char *home;                     /* file that malloc is in */
static const void *home_base;

static void *find(const char *name)
{
    Dl_info info;
    void *found = dlsym(RTLD_DEFAULT, name);
    return found && dladdr(found, &info) && info.dli_fbase == home_base ? found : NULL;
}

static bool find_allocator(void)
{
    Dl_info info;
    void *malloc_found = dlsym(RTLD_DEFAULT, "malloc");
    if (!malloc_found || !dladdr(malloc_found, &info))
        return false;
    home = info.dli_fname;
    home_base = info.dli_fbase;
    *(void **)&do_malloc = malloc_found;
    *(void **)&do_free = dlsym(RTLD_DEFAULT, "free");
    *(void **)&do_usable = find("malloc_usable_size");
    return do_free != NULL;
}

/* ---- who it is ---- */

static int note_build_id(struct dl_phdr_info *module, size_t size, void *unused)
{
    bool is_home = false;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &module->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && module->dlpi_addr + header->p_vaddr - header->p_offset == (uintptr_t)home_base)
            is_home = true;
    }
    for (int i = 0; is_home && i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &module->dlpi_phdr[i];
        const char *at = (const char *)(module->dlpi_addr + header->p_vaddr), *end = at + header->p_memsz;
        if (header->p_type != PT_NOTE)
            continue;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            const unsigned char *text = (const void *)(at + sizeof *note + (note->n_namesz + 3) / 4 * 4);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= 64) {
                say("build_id = ");
                for (unsigned k = 0; k < note->n_descsz; k++)
                    say("%02x", text[k]);
                say("\n");
                return 1;
            }
            at = (const char *)text + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return is_home;
}

/* "libfoo.so.2" -> "foo" */
static void say_name_of_file(void)
{
    const char *slash = strrchr(home, '/');
    const char *name = slash ? slash + 1 : home;
    if (strncmp(name, "lib", 3) == 0)
        name += 3;
    say("name = %.*s\n", (int)strcspn(name, "."), name);
}

static void say_who(void)
{
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) = NULL;
    int (*mi_version)(void) = NULL;
    const char *(*tc_version)(int *, int *, const char **) = NULL;
    const char *(*libc_version)(void) = NULL;
    const char *text = NULL;
    size_t size = sizeof text;
    *(void **)&mallctl = find("mallctl");
    *(void **)&mi_version = find("mi_version");
    *(void **)&tc_version = find("tc_version");
    *(void **)&libc_version = find("gnu_get_libc_version");
    if (mallctl && mallctl("version", &text, &size, NULL, 0) == 0 && text) {
        say("name = jemalloc\nversion = %.*s\n", (int)strcspn(text, "-"), text); /* behind it the commit */
    } else if (mi_version) {
        const int version = mi_version();
        say("name = mimalloc\nversion = %d.%d.%d\n", version / 100, version / 10 % 10, version % 10);
    } else if (tc_version) {
        int major, minor;
        tc_version(&major, &minor, &text);
        say("name = tcmalloc\nversion = %d.%d%s\n", major, minor, text ? text : "");
    } else if (libc_version) {
        say("name = glibc\nversion = %s\n", libc_version());
    } else {
        say_name_of_file();
        say("version = unknown (it has no function that returns it)\n");
    }
    char path[4096];
    say("path = %s\n", realpath(home, path) ? path : home);
    dl_iterate_phdr(note_build_id, NULL);
}

/* ---- questions, each in a child ---- */

struct answer {
    bool known;
    uint64_t value, more;
    size_t count;
    uint64_t list[CLASSES_MOST];
};

static struct answer *answer; /* shared with the child */

static bool ask(void (*question)(size_t size), size_t size)
{
    memset(answer, 0, sizeof *answer);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_MOST / 2);
        question(size);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        answer->known = false;
    return answer->known;
}

/* Pages of address space and of memory that this process has. */
static void read_memory(uint64_t *mapped, uint64_t *resident)
{
    char text[128] = "";
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0)
            text[0] = '\0';
        close(file);
    }
    char *end;
    *mapped = strtoull(text, &end, 10);
    if (resident)
        *resident = strtoull(end, NULL, 10);
}

/* value: each of some requests in a row had memory mapped for it; more: by brk. */
static void ask_own_mapping(size_t size)
{
    uint64_t before, after;
    do_malloc(16);
    for (int i = 0; i < 2; i++) /* what was mapped at the start is used up first */
        do_malloc(size);
    answer->value = 1;
    for (int i = 0; i < HELD; i++) {
        char *end = sbrk(0);
        read_memory(&before, NULL);
        if (!do_malloc(size) || before == 0)
            return;
        read_memory(&after, NULL);
        answer->value &= (after - before) * PAGE >= size;
        answer->more |= sbrk(0) != (void *)end;
    }
    answer->known = true;
}

/* The same after a block of this size was freed. */
static void ask_own_mapping_after_free(size_t size)
{
    void *block = NULL;
    do_malloc(16);
    for (int i = 0; i < 4; i++) /* the first ones may lie in what was there at the start */
        block = do_malloc(size);
    do_free(block);
    ask_own_mapping(size);
    answer->value &= !answer->more; /* large steps of the heap's end look alike */
}

/* value: a block of this size leaves memory when it is freed. */
static void ask_returned(size_t size)
{
    uint64_t mapped, full, empty;
    if (size < TOUCHED)
        size = TOUCHED;
    char *block = do_malloc(size);
    if (!block)
        return;
    memset(block, 1, size);
    read_memory(&mapped, &full);
    do_free(block);
    read_memory(&mapped, &empty);
    answer->value = full > empty && (full - empty) * PAGE >= size / 2;
    answer->known = full > 0;
}

/* The smallest size from LOW to HIGH for which the answer's value is not 0; 0: there is none, or it is not known. */
static size_t first_size(void (*question)(size_t), size_t low, size_t high)
{
    if (!ask(question, high) || !answer->value)
        return 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (!ask(question, middle))
            return 0;
        if (answer->value)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static void find_large(size_t *large)
{
    *large = first_size(ask_own_mapping, 64, ASKED_MOST);
    if (!*large) {
        say("large = unknown (no request up to %zu MiB has memory mapped for itself alone)\n", ASKED_MOST >> 20);
        return;
    }
    say("large = %zu\n", *large);
    if (ask(ask_own_mapping, *large))
        say("large_by = %s\n", answer->more ? "brk" : "mmap");
    if (ask(ask_returned, *large))
        say("large_returned = %s\n", answer->value ? "yes" : "no");
    if (ask(ask_own_mapping_after_free, *large) && !answer->value) {
        const size_t end = first_size(ask_own_mapping_after_free, *large, ASKED_MOST);
        if (end)
            say("large_rises_to = %zu\n", end);
    }
}

/* ---- placement ---- */

#define BLOCKS 64
static uintptr_t blocks[2 * BLOCKS];

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static void sort_blocks(size_t count) /* libc's qsort may allocate */
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && by_address(&blocks[k - 1], &blocks[k]) > 0; k--) {
            const uintptr_t other = blocks[k];
            blocks[k] = blocks[k - 1];
            blocks[k - 1] = other;
        }
}

/* The distance at which most blocks of one size lie. */
static size_t usual_distance(size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (!(blocks[i] = (uintptr_t)do_malloc(size)))
            return 0;
    sort_blocks(BLOCKS);
    size_t best = 0, best_count = 0;
    for (size_t i = 1; i < BLOCKS; i++) {
        const size_t distance = blocks[i] - blocks[i - 1];
        size_t count = 0;
        for (size_t k = 1; k < BLOCKS; k++)
            count += blocks[k] - blocks[k - 1] == distance;
        if (count > best_count || (count == best_count && distance < best)) {
            best = distance;
            best_count = count;
        }
    }
    return best_count >= BLOCKS / 4 ? best : 0;
}

static void ask_distance(size_t size)
{
    answer->value = usual_distance(size);
    answer->known = answer->value != 0;
}

/* value: blocks of two sizes, requested in turn, share pages. */
static void ask_style(size_t size)
{
    size_t pages = 0, shared = 0;
    for (size_t i = 0; i < 2 * BLOCKS; i += 2) {
        blocks[i] = (uintptr_t)do_malloc(48);
        blocks[i + 1] = (uintptr_t)do_malloc(208) | 1;
    }
    sort_blocks(2 * BLOCKS);
    for (size_t i = 0; i < 2 * BLOCKS;) {
        const uintptr_t page = blocks[i] / PAGE;
        unsigned kinds = 0;
        for (; i < 2 * BLOCKS && blocks[i] / PAGE == page; i++)
            kinds |= 1u << (blocks[i] & 1);
        pages++;
        shared += kinds == 3;
    }
    answer->value = shared * 2 > pages;
    answer->known = true;
}

/* value: what divides the addresses of all blocks of more than 8 bytes; more: of smaller ones, too. */
static void ask_alignment(size_t size)
{
    uintptr_t all = 0, small = 0;
    for (size_t bytes = 1; bytes <= 2048; bytes += bytes < 64 ? 1 : 13)
        for (int i = 0; i < 3; i++) {
            const uintptr_t block = (uintptr_t)do_malloc(bytes);
            *(bytes > 8 ? &all : &small) |= block;
        }
    answer->value = all & -all;
    small |= all;
    answer->more = small & -small;
    answer->known = true;
}

/* The sizes of blocks: what can be used of them. value: they end because from there on all steps are equal, `more`. */
static void ask_classes(size_t size)
{
    const size_t limit = size;
    size_t equal = 0;
    for (size_t asked = 1; asked <= limit && answer->count < CLASSES_MOST;) {
        void *block = do_malloc(asked);
        const size_t usable = block ? do_usable(block) : 0;
        do_free(block);
        if (usable < asked)
            break;
        answer->list[answer->count++] = usable;
        const size_t count = answer->count;
        const uint64_t *list = answer->list;
        equal = count > 2 && list[count - 1] - list[count - 2] == list[count - 2] - list[count - 3] ? equal + 1 : 0;
        if (equal >= 48) { /* geometric classes have at most some of equal distance */
            answer->value = 1;
            answer->more = list[count - 1] - list[count - 2];
            answer->count -= equal + 1;
            break;
        }
        asked = usable + 1;
    }
    answer->known = answer->count > 0 || answer->value;
}

/* Without malloc_usable_size: distances of neighbours, for sizes 16 bytes apart. */
static void ask_classes_by_distance(size_t size)
{
    uint64_t last = 0;
    for (size_t asked = 8; asked <= size && answer->count < CLASSES_MOST; asked += asked < 16 ? 8 : 16) {
        const uint64_t distance = usual_distance(asked);
        if (distance > last)
            answer->list[answer->count++] = last = distance;
    }
    answer->known = answer->count > 0;
}

/* ---- where the path changes ---- */

#define SIDES 8

static uint64_t classes[CLASSES_MOST];
static size_t class_count;

/* The K-th largest of the sizes below SIZE that blocks can have, K from 1 on; 0: there are not so many. */
static size_t smaller_size(size_t size, size_t k)
{
    if (class_count == 0) /* in steps */
        return size > 32 * k + 64 ? size - 32 * k : 0;
    size_t end = 0;
    while (end < class_count && classes[end] < size)
        end++;
    return end >= k ? classes[end - k] : 0;
}

/* value: memory of a freed block of this size is given to smaller requests, so it was not kept apart by its size. */
static void ask_split(size_t size)
{
    char *row[SIDES];
    for (int i = 0; i < SIDES; i++)
        if (!(row[i] = do_malloc(size)))
            return;
    char *middle = row[SIDES / 2];
    do_free(middle);
    for (size_t k = 1; k <= 8 && !answer->value; k++) {
        const size_t smaller = smaller_size(size, k);
        const char *block = smaller ? do_malloc(smaller) : NULL;
        answer->value = block >= middle && block < middle + size;
    }
    answer->known = true;
}

/* value: blocks of this size lie farther apart than what can be used of them: each has a run of pages of its own. */
static void ask_apart(size_t size)
{
    const size_t distance = usual_distance(size);
    void *block = do_malloc(size);
    answer->value = distance == 0 || distance > do_usable(block);
    answer->known = true;
}

#define MEDIUM_MOST (1u << 20)

/* The smallest size from which on the answer is yes at all classes. */
static size_t first_class(void (*question)(size_t), size_t least)
{
    size_t from = 0;
    for (size_t i = class_count; i-- > 0 && classes[i] >= least;) {
        if (classes[i] > MEDIUM_MOST)
            continue;
        if (!ask(question, classes[i]))
            return 0;
        if (!answer->value)
            break;
        from = i ? classes[i - 1] + 1 : 1;
    }
    return from;
}

static void say_medium(size_t by_split, size_t by_run)
{
    if (by_split && (!by_run || by_split <= by_run))
        say("medium = %zu\nmedium_by = splitting\n", by_split);
    else if (by_run)
        say("medium = %zu\nmedium_by = placement\n", by_run);
    else
        say("medium = unknown (no size was seen from which on freed blocks are split or placed apart)\n");
}

static void find_medium_sequential(size_t large)
{
    size_t end = large ? large - 1 : 64 << 10;
    if (end > 64 << 10)
        end = 64 << 10; /* beyond, blocks may lie at the end of the heap, which is another matter */
    say_medium(first_size(ask_split, 64, end), 0);
}

static void find_medium_classes(uint64_t step)
{
    while (step && class_count < CLASSES_MOST && classes[class_count - 1] + step <= MEDIUM_MOST) {
        classes[class_count] = classes[class_count - 1] + step;
        class_count++;
    }
    const size_t by_split = first_class(ask_split, 512);
    say_medium(by_split, do_usable ? first_class(ask_apart, 512) : 0);
}

/* ---- free lists ---- */

#define FREED 6

/* value: how blocks come back that were freed: 1 last first, 2 first first, 3 others, 4 not at once. */
static void ask_reuse(size_t size)
{
    void *row[FREED], *again[FREED];
    for (int i = 0; i < FREED; i++)
        row[i] = do_malloc(size);
    for (int i = 0; i < FREED; i++)
        do_free(row[i]);
    int last_first = 0, first_first = 0, known = 0;
    for (int i = 0; i < FREED; i++) {
        again[i] = do_malloc(size);
        last_first += again[i] == row[FREED - 1 - i];
        first_first += again[i] == row[i];
        for (int k = 0; k < FREED; k++)
            known += again[i] == row[k];
    }
    answer->value = last_first == FREED ? 1 : first_first == FREED ? 2 : known > FREED / 2 ? 3 : 4;
    answer->known = true;
}

static void *given; /* to a thread, or back from it */
static size_t given_size;
static bool got_own;

static void *free_and_allocate(void *unused)
{
    do_malloc(given_size); /* the thread's cache, if it has one, is there */
    do_free(given);
    for (int i = 0; i < 4 && !got_own; i++)
        got_own = do_malloc(given_size) == given;
    return NULL;
}

static void *allocate_only(void *unused)
{
    for (int i = 0; i < 64 && !got_own; i++)
        got_own = do_malloc(given_size) == given;
    return NULL;
}

static bool in_thread(void *(*run)(void *))
{
    pthread_t thread;
    got_own = false;
    return pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

/* value: who gets a freed block again: 1 anybody, 2 the thread that freed it, 3 none but the one that it came from. */
static void ask_threads(size_t size)
{
    given_size = size;
    for (int i = 0; i < 8; i++)
        given = do_malloc(size);
    do_malloc(size);
    if (!in_thread(free_and_allocate))
        return;
    const bool to_freeing = got_own;
    for (int i = 0; i < 8; i++)
        given = do_malloc(size);
    do_free(given);
    if (!in_thread(allocate_only))
        return;
    answer->value = got_own ? 1 : to_freeing ? 2 : 3;
    answer->known = true;
}

static void say_word(const char *key, const char *const words[], void (*question)(size_t), size_t size)
{
    if (ask(question, size))
        say("%s = %s\n", key, words[answer->value]);
    else
        say("%s = unknown (the question could not be put)\n", key);
}

/* ---- all facts ---- */

/* Sequential allocators have no classes but a step: all sizes of the header + a multiple of it. */
static void say_step(size_t least, size_t step)
{
    say("least = %zu\nstep = %zu\n", least, step);
    if (ask(ask_distance, least) && do_usable)
        say("header = %zu\n", (size_t)answer->value - least);
}

static void say_classes(void)
{
    say("classes =");
    for (size_t i = 0; i < answer->count; i++)
        say(" %llu", (unsigned long long)answer->list[i]);
    say("\n");
    if (answer->value && answer->more)
        say("classes_step = %llu\n", (unsigned long long)answer->more);
}

static void say_facts(void)
{
    size_t large;
    uint64_t step = 0;
    const bool style_known = ask(ask_style, 0);
    const bool sequential = style_known && answer->value;
    say("style = %s\n", !style_known ? "unknown (the question could not be put)" : sequential ? "sequential" : "bibop");
    if (ask(ask_alignment, 0))
        say("alignment = %llu\nalignment_small = %llu\n", (unsigned long long)answer->value,
            (unsigned long long)answer->more);
    say("usable_size = %s\n", do_usable ? "yes" : "no");
    find_large(&large);
    const bool known = do_usable ? ask(ask_classes, 32u << 20) : ask(ask_classes_by_distance, 1024);
    if (!known) {
        say("classes = unknown (the question could not be put)\n");
    } else if (answer->value && answer->more < PAGE) {
        say_step(answer->list[0], answer->more);
    } else {
        class_count = answer->count;
        step = answer->value ? answer->more : 0;
        memcpy(classes, answer->list, class_count * sizeof *classes);
        say_classes();
    }
    if (sequential)
        find_medium_sequential(large);
    else
        find_medium_classes(step);
    static const char *const reuse[] = {"", "lifo", "fifo", "mixed", "deferred"};
    static const char *const threads[] = {"", "none", "freeing", "owning"};
    say_word("reuse", reuse, ask_reuse, 64);
    say_word("thread_cache", threads, ask_threads, 64);
}

int main(int argc, char **argv)
{
    alarm(SECONDS_MOST);
    answer = mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED || !find_allocator())
        return 1;
    say("# Heapwise allocator facts 1\n");
    say_who();
    if (argc < 2 || strcmp(argv[1], "--where") != 0)
        say_facts();
    flush();
    return 0;
}
