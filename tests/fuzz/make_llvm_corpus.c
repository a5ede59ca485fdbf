/* make_llvm_corpus.c - writes LLVM heap profiles of all versions, small enough to be mutated, for the fuzzer to start
 * from. Indexed version 2, which is not written here, comes from llvm-profdata when that is installed.
 *
 *     make_llvm_corpus DIRECTORY */
#include "unit/profile/llvm_sample.h"

#include <stdio.h>
#include <sys/stat.h>

static bool write_file(const char *directory, const char *name, const struct hw_llvm_bytes *bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    bool fine = file && fwrite(bytes->data, 1, bytes->used, file) == bytes->used;
    if (file)
        fine = fclose(file) == 0 && fine;
    if (!fine)
        perror(path);
    return fine;
}

static bool make(const char *directory, bool symbolized, uint32_t version, size_t contexts, bool twice)
{
    char name[64];
    struct hw_llvm_profile profile = sample_profile(contexts, symbolized, contexts, !symbolized);
    struct hw_llvm_bytes bytes = {0};
    bool fine = true;
    for (int i = 0; i <= twice && fine; i++)
        fine = (symbolized ? hw_llvm_indexed_write : hw_llvm_raw_write)(&profile, version, &bytes);
    snprintf(name, sizeof name, "%s-%u-%zu%s", symbolized ? "indexed" : "raw", version, contexts,
             twice ? "-twice" : "");
    fine = fine && write_file(directory, name, &bytes);
    hw_llvm_profile_free(&profile);
    free(bytes.data);
    return fine;
}

/* By way of YAML. */
static bool make_version_2(const char *directory)
{
    char yaml[4096], command[16384];
    struct hw_llvm_profile profile = sample_profile(3, true, 3, false);
    struct hw_llvm_bytes bytes = {0};
    snprintf(yaml, sizeof yaml, "%s/yaml", directory);
    bool fine = hw_llvm_yaml_write(&profile, HW_LLVM_INDEXED_VERSION, &bytes) && write_file(directory, "yaml", &bytes);
    snprintf(command, sizeof command,
             "llvm-profdata-22 merge '%s' -o '%s/indexed-2' --memprof-version=2 --memprof-full-schema", yaml,
             directory);
    if (fine && system(command) != 0)
        puts("without indexed version 2: llvm-profdata-22 is missing");
    remove(yaml);
    hw_llvm_profile_free(&profile);
    free(bytes.data);
    return fine;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_llvm_corpus DIRECTORY\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    bool fine = true;
    for (uint32_t version = 3; version <= 5; version++)
        fine = fine && make(argv[1], false, version, 0, false) && make(argv[1], false, version, 3, false) &&
               make(argv[1], false, version, 2, true);
    for (uint32_t version = 3; version <= 4; version++)
        fine = fine && make(argv[1], true, version, 0, false) && make(argv[1], true, version, 4, false);
    return fine && make_version_2(argv[1]) ? 0 : 1;
}
