/* llvm_variables.c - data access profiles of LLVM's indexed format.
 *
 *     u64 hot names, u64 cold names, u64 n, n bytes: the names, zeros up to a multiple of 8
 *         names: ULEB128 size, ULEB128 0 (not compressed), hot ones, then cold ones, with 01 between them
 *     u64 0: hashes of string literals that are cold
 *     u64 n, n x { u64 index of the name, u8 0: no string literal, u64 accesses, u64 0: no places in the source } */
#include "profile/llvm/llvm.h"

#include <stdlib.h>
#include <string.h>

size_t hw_llvm_name_size(const char *linkage_name)
{
    static const char kept[] = ".__uniq.";
    const char *from = strstr(linkage_name, kept);
    const char *dot = strchr(from ? from + sizeof kept - 1 : linkage_name, '.');
    return dot && dot != linkage_name ? (size_t)(dot - linkage_name) : strlen(linkage_name);
}

static void put_uleb128(struct hw_llvm_bytes *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        hw_llvm_put(out, (value & 0x7f) | 0x80, 1);
    hw_llvm_put(out, value, 1);
}

static void write_names(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out)
{
    struct hw_llvm_bytes names = {0};
    for (enum hw_llvm_use use = HW_LLVM_HOT; use <= HW_LLVM_COLD; use += HW_LLVM_COLD - HW_LLVM_HOT)
        for (size_t i = 0; i < profile->variable_count; i++)
            if (profile->variables[i].use == use) {
                if (names.used)
                    hw_llvm_put(&names, 1, 1);
                hw_llvm_put_bytes(&names, profile->variables[i].name, profile->variables[i].name_size);
            }
    const size_t size_at = out->used;
    hw_llvm_put(out, 0, 8);
    put_uleb128(out, names.used);
    put_uleb128(out, 0);
    hw_llvm_put_bytes(out, names.data, names.used);
    hw_llvm_set(out, size_at, out->used - size_at - 8);
    hw_llvm_align(out);
    out->failed |= names.failed;
    free(names.data);
}

void hw_llvm_write_variables(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out)
{
    uint64_t hot = 0, cold = 0;
    for (size_t i = 0; i < profile->variable_count; i++) {
        hot += profile->variables[i].use == HW_LLVM_HOT;
        cold += profile->variables[i].use == HW_LLVM_COLD;
    }
    hw_llvm_put(out, hot, 8);
    hw_llvm_put(out, cold, 8);
    if (hot + cold)
        write_names(profile, out);
    else
        hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, 0, 8);
    hw_llvm_put(out, hot, 8);
    for (size_t i = 0, index = 0; i < profile->variable_count; i++) {
        if (profile->variables[i].use != HW_LLVM_HOT)
            continue;
        hw_llvm_put(out, index++, 8);
        hw_llvm_put(out, 0, 1);
        hw_llvm_put(out, profile->variables[i].accesses, 8);
        hw_llvm_put(out, 0, 8);
    }
}
