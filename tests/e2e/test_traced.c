/* test_traced.c - counted accesses of blocks against a trace of every load and store that the plain program makes,
 * which Valgrind's lackey writes: programs/traced.c, whose blocks lie one behind the other there. */
#include "support/check.h"
#include "support/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_config.h"

#define BLOCKS_MOST 4096
#define NAMES_MOST  16

struct block {
    unsigned long long start, end;
    int name;
};

static struct traced {
    struct block blocks[BLOCKS_MOST]; /* by address */
    size_t block_count;
    char names[NAMES_MOST][32];
    int name_count;
    int64_t reads[NAMES_MOST], writes[NAMES_MOST], of_name[NAMES_MOST];
} traced;

static int name_index(const char *name)
{
    for (int i = 0; i < traced.name_count; i++)
        if (!strcmp(traced.names[i], name))
            return i;
    assert_true(traced.name_count < NAMES_MOST);
    snprintf(traced.names[traced.name_count], sizeof traced.names[0], "%s", name);
    return traced.name_count++;
}

static void read_blocks(char *out)
{
    char *rest = NULL, name[32];
    for (char *line = strtok_r(out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct block block;
        unsigned long long size;
        if (sscanf(line, "block %31s %llx %llu", name, &block.start, &size) != 3)
            continue;
        assert_true(traced.block_count < BLOCKS_MOST);
        block.end = block.start + size;
        block.name = name_index(name);
        traced.of_name[block.name]++;
        traced.blocks[traced.block_count++] = block;
    }
    assert_true(traced.block_count > 0);
}

static const struct block *block_of(unsigned long long address)
{
    size_t low = 0, high = traced.block_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (traced.blocks[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < traced.block_count && traced.blocks[low].start <= address ? &traced.blocks[low] : NULL;
}

/* Lines " L 1ffeffe7e8,8"; S stores, M does both. */
static void read_trace(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256];
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] != ' ' || !strchr("LSM", line[1]) || line[2] != ' ')
            continue;
        const struct block *block = block_of(strtoull(line + 3, NULL, 16));
        if (!block)
            continue;
        traced.reads[block->name] += line[1] != 'S';
        traced.writes[block->name] += line[1] != 'L';
    }
    fclose(file);
}

static const char *clang(void)
{
    static const char *const names[] = {"clang-22", "clang-21", "clang-20", "clang-19", "clang"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (have_command(names[i]))
            return names[i];
    return NULL;
}

static void test_trace(void **state)
{
    static const char *const granules[] = {"--granule=64", "--no-consolidate"};
    if (!have_command("valgrind") || !clang())
        SKIP("valgrind or clang is missing");
    char *directory = make_directory(), *source = join_path(TEST_SOURCES, "programs/traced.c");
    char *plain = join_path(directory, "plain"), *log = join_path(directory, "log"), option[4096];
    const char *const compile[] = {clang(), "-O1", "-DTRACED", "-w", "-o", plain, source, NULL};
    compile_or_skip(compile, "clang");
    snprintf(option, sizeof option, "--log-file=%s", log);
    struct run_result ran =
        run((const char *const[]){"valgrind", "--tool=lackey", "--trace-mem=yes", option, plain, NULL},
            &(const struct run_options){.timeout_s = 300});
    assert_exit(&ran, 0, "lackey");
    read_blocks(ran.out);
    read_trace(log);
    run_result_free(&ran);

    char compiler[64];
    snprintf(compiler, sizeof compiler, "--compiler=%s", clang());
    for (size_t i = 0; i < sizeof granules / sizeof *granules; i++) {
        char *program = join_path(directory, granules[i] + 2);
        const char *const build[] = {heapwise_path(), "cc",   compiler, granules[i], "-O1", "-g", "-w", "-o",
                                     program,         source, NULL};
        compile_or_skip(build, granules[i]);
        struct recording r = record_and_load((const char *const[]){program, NULL}, &(struct record_options){0});
        assert_exit(&r.run, 0, granules[i]);
        const json_t *contexts = json_object_get(r.report, "contexts");
        for (int name = 0; name < traced.name_count; name++) {
            int64_t reads = 0, writes = 0, blocks = 0;
            for (size_t k = 0; k < json_array_size(contexts); k++) {
                const json_t *context = json_array_get(contexts, k);
                if (!is_function(stack_function(context, 0), traced.names[name]))
                    continue;
                reads += json_number(context, "accesses.reads");
                writes += json_number(context, "accesses.writes");
                blocks += json_number(context, "allocations");
            }
            assert_int_equal(blocks, traced.of_name[name]);
            if (reads != traced.reads[name] || writes != traced.writes[name])
                fail_msg("%s, %s: counted %lld reads and %lld writes, traced %lld and %lld", granules[i],
                         traced.names[name], (long long)reads, (long long)writes, (long long)traced.reads[name],
                         (long long)traced.writes[name]);
        }
        recording_free(&r);
        free(program);
    }
    free(source);
    free(plain);
    free(log);
    remove_directory(directory);
}

TEST_LIST(cmocka_unit_test(test_trace))
