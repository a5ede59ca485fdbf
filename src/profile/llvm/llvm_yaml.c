/* llvm_yaml.c - heap profiles as the YAML that `llvm-profdata merge` reads and `llvm-profdata show` writes.
 *
 *     ---
 *     HeapProfileRecords:
 *       - GUID:            0xdb956436e78dd5fa  # main
 *         AllocSites:
 *           - Callstack:
 *               - { Function: 0xdb956436e78dd5fa, LineOffset: 3, Column: 49, IsInlineFrame: false }
 *             MemInfoBlock:
 *               AllocCount:      1
 *               …
 *         CallSites:
 *           - Frames:
 *               - { Function: … }
 *     DataAccessProfiles:
 *       SampledRecords:
 *         - Symbol: table
 *           AccessCount: 4711
 *       KnownColdSymbols:
 *         - messages
 *     ...
 */
#include "profile/llvm/llvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void print(struct hw_llvm_bytes *out, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    hw_llvm_put_bytes(out, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
}

static void write_frames(const struct hw_llvm_profile *profile, const struct hw_llvm_site *site,
                         struct hw_llvm_bytes *out)
{
    for (size_t i = site->first; i < site->first + site->count; i++) {
        const struct hw_llvm_frame *frame = &profile->frames[profile->stacks[i]];
        print(out, "          - { Function: 0x%016llx, LineOffset: %u, Column: %u, IsInlineFrame: %s }\n",
              (unsigned long long)frame->function, frame->line_offset, frame->column,
              frame->inlined ? "true" : "false");
    }
}

static void write_block(const struct hw_llvm_mib *mib, uint32_t known, struct hw_llvm_bytes *out)
{
    print(out, "        MemInfoBlock:\n");
    for (int field = 1; field < HW_LLVM_HISTOGRAM_SIZE; field++)
        if (known & 1u << field)
            print(out, "          %s: %llu\n", hw_llvm_fields[field].name,
                  (unsigned long long)hw_llvm_saturated((enum hw_llvm_field)field, mib->field[field]));
}

/* A linkage name as a comment: what is no letter of a name would end it. */
static void write_name(const char *name, struct hw_llvm_bytes *out)
{
    char clean[200];
    size_t size = 0;
    for (; name[size] && size < sizeof clean - 1; size++)
        clean[size] = name[size] > ' ' && name[size] < 0x7f ? name[size] : '?';
    clean[size] = 0;
    print(out, "  # %s", clean);
}

static const char *name_of(const struct hw_llvm_profile *profile, const struct hw_llvm_site *site)
{
    for (size_t i = site->first; i < site->first + site->count; i++) {
        const struct hw_llvm_frame *frame = &profile->frames[profile->stacks[i]];
        if (frame->function == site->function)
            return frame->name;
    }
    return NULL;
}

static void write_sites(const struct hw_llvm_profile *profile, const struct hw_llvm_site *site, size_t count,
                        struct hw_llvm_bytes *out)
{
    enum { NONE, ALLOCATIONS, CALLS } part = NONE;
    for (size_t i = 0; i < count; i++) {
        const bool new_function = i == 0 || site[i].function != site[i - 1].function;
        const bool call = site[i].context == HW_LLVM_CALL;
        if (new_function) {
            const char *name = name_of(profile, &site[i]);
            print(out, "  - GUID:            0x%016llx", (unsigned long long)site[i].function);
            if (name)
                write_name(name, out);
            print(out, "\n");
            part = NONE;
        }
        if (!call && part != ALLOCATIONS)
            print(out, "    AllocSites:\n");
        if (call && part != CALLS)
            print(out, "    CallSites:\n");
        part = call ? CALLS : ALLOCATIONS;
        print(out, call ? "      - Frames:\n" : "      - Callstack:\n");
        write_frames(profile, &site[i], out);
        if (!call)
            write_block(&profile->contexts[site[i].context].mib, profile->known, out);
    }
}

/* ---- variables ---- */

static void write_uses(const struct hw_llvm_profile *profile, enum hw_llvm_use use, const char *title,
                       const char *before, struct hw_llvm_bytes *out)
{
    bool any = false;
    for (size_t i = 0; i < profile->variable_count; i++) {
        const struct hw_llvm_variable *variable = &profile->variables[i];
        if (variable->use != use)
            continue;
        if (!any)
            print(out, "%s\n", title);
        any = true;
        print(out, "%s", before);
        hw_llvm_put_bytes(out, variable->name, variable->name_size);
        if (use == HW_LLVM_HOT)
            print(out, "\n      AccessCount: %llu", (unsigned long long)variable->accesses);
        else if (use != HW_LLVM_COLD)
            print(out, ": %llu", (unsigned long long)variable->accesses);
        print(out, "\n");
    }
}

static void write_variables(const struct hw_llvm_profile *profile, struct hw_llvm_bytes *out)
{
    print(out, "DataAccessProfiles:\n");
    write_uses(profile, HW_LLVM_HOT, "  SampledRecords:", "    - Symbol: ", out);
    write_uses(profile, HW_LLVM_SHARED,
               "  # Hot, but used and written by several threads: left out, so that they are not packed with others.",
               "  #   ", out);
    write_uses(profile, HW_LLVM_USED, "  # Used little (0: without samples), so in neither list:", "  #   ", out);
    write_uses(profile, HW_LLVM_COLD, "  KnownColdSymbols:", "    - ", out);
}

/* True if LLVM would see some: it does not read a list of comments. */
static bool has_variables(const struct hw_llvm_profile *profile)
{
    for (size_t i = 0; i < profile->variable_count; i++)
        if (profile->variables[i].use == HW_LLVM_HOT || profile->variables[i].use == HW_LLVM_COLD)
            return true;
    return false;
}

bool hw_llvm_yaml_write(const struct hw_llvm_profile *profile, uint32_t version, struct hw_llvm_bytes *out)
{
    size_t count;
    struct hw_llvm_site *site = hw_llvm_sites(profile, &count);
    if (!site)
        return false;
    print(out, "---\nHeapProfileRecords:%s\n", count ? "" : " []");
    write_sites(profile, site, count, out);
    if (version >= 4 && has_variables(profile))
        write_variables(profile, out);
    print(out, "...\n");
    free(site);
    return !out->failed;
}
