/* symbols_bench.c - how long the symbolizer takes for many addresses of one file.
 *
 *     symbols_bench [--count N] [--threads N] [--print] FILE
 *
 * Resolves N addresses (60000 unless told) spread evenly over the functions of FILE's symbol table and writes what it
 * took as one line. --print writes addresses and answers instead, in the format of `addr2line -aifC`, for a comparison.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <gelf.h>

#include "symbols/symbols.h"

struct function {
    uint64_t start, size;
};

struct functions {
    struct function *function;
    size_t count;
    uint64_t bytes; /* of all functions */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void read_table(struct functions *functions, Elf_Scn *section, size_t entries) {
    Elf_Data *data = elf_getdata(section, NULL);
    functions->function = calloc(entries + 1, sizeof *functions->function);
    for (size_t i = 0; functions->function && i < entries; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_size)
            continue;
        functions->function[functions->count++] = (struct function){symbol.st_value, symbol.st_size};
        functions->bytes += symbol.st_size;
    }
}

static struct functions read_functions(const char *path) {
    struct functions functions = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    for (Elf_Scn *section = NULL; elf && !functions.count && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB && header.sh_entsize)
            read_table(&functions, section, header.sh_size / header.sh_entsize);
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return functions;
}

static size_t add_addresses(struct hw_symbolizer *symbolizer, int module, const struct functions *functions,
                            size_t count, uint64_t *address, long *ticket) {
    double step = (double)functions->bytes / (double)count, next = 0;
    uint64_t passed = 0;
    size_t added = 0;
    for (size_t i = 0; i < functions->count; i++) {
        const struct function *function = &functions->function[i];
        for (; next < (double)(passed + function->size) && added < count; next += step, added++) {
            address[added] = function->start + ((uint64_t)next - passed);
            ticket[added] = hw_symbolizer_add(symbolizer, module, address[added]);
        }
        passed += function->size;
    }
    return added;
}

static void print_answer(const struct hw_symbolizer *symbolizer, uint64_t address, long ticket) {
    struct hw_frames frames = hw_symbolizer_frames(symbolizer, ticket);
    printf("0x%016" PRIx64 "\n", address);
    for (uint32_t i = 0; i < frames.count; i++) {
        const struct hw_frame *frame = &frames.frame[i];
        printf("%s\n%s:", frame->function ? frame->function : "??", frame->file ? frame->file : "??");
        if (frame->line)
            printf("%" PRIu32 "\n", frame->line);
        else
            printf("%s\n", frame->file ? "?" : "0");
    }
}

static int run(const char *path, size_t count, const struct hw_symbolizer_options *options, bool print) {
    struct functions functions = read_functions(path);
    uint64_t *address = calloc(count, sizeof *address);
    long *ticket = calloc(count, sizeof *ticket);
    struct hw_error error = {""};
    if (!functions.count || !address || !ticket) {
        fprintf(stderr, "%s: no function symbols\n", path);
        return 2;
    }
    double start = now();
    struct hw_symbolizer *symbolizer = hw_symbolizer_new(options, &error);
    int module = symbolizer ? hw_symbolizer_add_module(symbolizer, path, NULL, 0) : -1;
    if (module < 0)
        return 2;
    size_t added = add_addresses(symbolizer, module, &functions, count, address, ticket);
    if (!hw_symbolizer_run(symbolizer, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    double seconds = now() - start;
    size_t frames = 0, named = 0;
    for (size_t i = 0; i < added; i++) {
        struct hw_frames answer = hw_symbolizer_frames(symbolizer, ticket[i]);
        frames += answer.count;
        named += answer.frame[0].function != NULL;
        if (print)
            print_answer(symbolizer, address[i], ticket[i]);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    if (!print)
        printf(
            "%.3f s (%.3f s of processor time), %zu addresses in %zu functions, %zu frames, %zu named, %ld MiB peak\n",
            seconds, cpu, added, functions.count, frames, named, usage.ru_maxrss / 1024);
    const char *problem = hw_symbolizer_module_problem(symbolizer, module);
    if (problem)
        fprintf(stderr, "%s\n", problem);
    hw_symbolizer_free(symbolizer);
    free(functions.function);
    free(address);
    free(ticket);
    return 0;
}

int main(int argc, char **argv) {
    size_t count = 60000;
    bool print = false;
    struct hw_symbolizer_options options = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            options.threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--print") == 0)
            print = true;
        else
            break;
    }
    if (i + 1 != argc || count == 0) {
        fprintf(stderr, "usage: symbols_bench [--count N] [--threads N] [--print] FILE\n");
        return 2;
    }
    return run(argv[i], count, &options, print);
}
