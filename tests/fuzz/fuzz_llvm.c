/* fuzz_llvm.c - libFuzzer target: any bytes as one of LLVM's heap profiles, read, written in every version, read again.
 *
 *     fuzz_llvm CORPUS        (start from what make_llvm_corpus writes) */
#include "profile/llvm/llvm.h"
#include "profile/profile.h"
#include "unit/profile/stack_depth.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define DEMAND(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            __builtin_trap();                                                                                          \
    } while (0)

static volatile uint64_t touched;

/* What llvm.h promises. */
static void exercise(const struct hw_llvm_profile *profile)
{
    for (size_t i = 0; i < profile->context_count; i++) {
        const struct hw_llvm_context *context = &profile->contexts[i];
        DEMAND(context->first <= profile->stack_size && context->count <= profile->stack_size - context->first);
        for (uint32_t k = 0; k < context->count && k < 64; k++)
            if (profile->symbolized)
                DEMAND(profile->stacks[context->first + k] < profile->frame_count);
        for (uint64_t k = 0; context->histogram && k < context->mib.field[HW_LLVM_HISTOGRAM_SIZE]; k++)
            touched += context->histogram[k];
    }
}

/* What was read can be written, and what was written can be read. */
static void round_trip(const struct hw_llvm_profile *profile)
{
    size_t frames = 0;
    for (size_t i = 0; i < profile->context_count; i++)
        frames += profile->contexts[i].count;
    for (uint32_t version = 3; version <= (profile->symbolized ? 4 : 5) && frames < 20000; version++) {
        struct hw_llvm_bytes out = {0};
        struct hw_llvm_profile again;
        struct hw_error error;
        DEMAND((profile->symbolized ? hw_llvm_indexed_write : hw_llvm_raw_write)(profile, version, &out));
        const bool fine = (profile->symbolized ? hw_llvm_indexed_read : hw_llvm_raw_read)(out.data, out.used, "again",
                                                                                          &again, &error);
        DEMAND(fine);
        DEMAND(again.context_count == profile->context_count || profile->symbolized);
        hw_llvm_profile_free(&again);
        free(out.data);
    }
}

/* The way of a file: its magic decides, then the model is made. */
static void as_file(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    char path[64];
    struct hw_error error;
    if (file < 0)
        file = memfd_create("profile", 0);
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct hw_profile *profile = hw_profile_read(path, &error);
    for (size_t i = 0; profile && i < profile->context_count; i++)
        touched += stack_depth(profile, profile->contexts[i].leaf);
    hw_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static bool (*const readers[])(const unsigned char *, size_t, const char *, struct hw_llvm_profile *,
                                   struct hw_error *) = {hw_llvm_raw_read, hw_llvm_indexed_read};
    for (size_t i = 0; i < 2; i++) {
        struct hw_llvm_profile profile;
        struct hw_error error = {""};
        if (!readers[i](bytes, size, "fuzz", &profile, &error)) {
            DEMAND(error.message[0] && !strchr(error.message, '\n'));
            continue;
        }
        exercise(&profile);
        round_trip(&profile);
        hw_llvm_profile_free(&profile);
    }
    as_file(bytes, size);
    return 0;
}
