/* llvm_names.c - see llvm_names.h. */
#include "report/view/llvm_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "profile/llvm/llvm.h"
#include "symbols/symbols.h"

/* A function of the profile. */
struct function {
    uint64_t guid;
    char *name, *file, *readable; /* NULL until a binary names it */
    uint32_t line;
    char number[24]; /* instead of a name */
};

struct hw_view_names {
    struct function *function; /* sorted by guid */
    size_t count;
    struct hw_frame *frame; /* one for each of the profile */
    bool failed;
};

void hw_view_names_free(struct hw_view_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++) {
        free(names->function[i].name);
        free(names->function[i].file);
        free(names->function[i].readable);
    }
    free(names->function);
    free(names->frame);
    free(names);
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    return HW_ORDER(a->guid, b->guid);
}

static struct function *find(const struct hw_view_names *names, uint64_t guid)
{
    const struct function key = {.guid = guid};
    return names->count ? bsearch(&key, names->function, names->count, sizeof key, compare_functions) : NULL;
}

static bool take_name(void *closure, const char *linkage_name, const char *file, uint32_t line)
{
    struct hw_view_names *names = closure;
    struct function *function = find(names, hw_llvm_guid(linkage_name));
    if (!function || function->name)
        return true;
    function->name = strdup(linkage_name);
    function->file = file ? strdup(file) : NULL;
    function->readable = hw_readable_name(linkage_name);
    function->line = line;
    names->failed = names->failed || !function->name || (file && !function->file);
    return !names->failed;
}

static struct hw_view_names *list_functions(const struct hw_profile_llvm *llvm)
{
    struct hw_view_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->function = calloc(llvm->frame_count + 1, sizeof *names->function);
    names->frame = calloc(llvm->frame_count + 1, sizeof *names->frame);
    if (!names->function || !names->frame) {
        hw_view_names_free(names);
        return NULL;
    }
    for (size_t i = 0; i < llvm->frame_count; i++)
        names->function[i].guid = llvm->frames[i].function;
    qsort(names->function, llvm->frame_count, sizeof *names->function, compare_functions);
    for (size_t i = 0; i < llvm->frame_count; i++)
        if (!names->count || names->function[names->count - 1].guid != names->function[i].guid)
            names->function[names->count++] = names->function[i];
    for (size_t i = 0; i < names->count; i++) {
        struct function *function = &names->function[i];
        snprintf(function->number, sizeof function->number, "0x%016llx", (unsigned long long)function->guid);
    }
    return names;
}

static struct hw_frame make_frame(const struct hw_view_names *names, const struct hw_llvm_frame *from)
{
    const struct function *function = find(names, from->function);
    struct hw_frame frame = {.column = from->column, .inlined = from->inlined};
    if (!function)
        return frame;
    frame.function = function->readable ? function->readable : function->name ? function->name : function->number;
    frame.linkage_name = function->name;
    frame.file = function->file;
    frame.start_line = function->line;
    if (function->line)
        frame.line = function->line + from->line_offset;
    else
        frame.relative_line = from->line_offset + 1;
    return frame;
}

bool hw_view_name_frames(struct hw_view *view, size_t binary_count, const char *const *binaries)
{
    const struct hw_profile_llvm *llvm = view->profile->llvm;
    struct hw_view_names *names = view->names = list_functions(llvm);
    if (!names)
        return false;
    for (size_t i = 0; i < binary_count && !names->failed; i++)
        hw_list_functions(binaries[i], take_name, names);
    for (size_t i = 0; i < llvm->frame_count; i++)
        names->frame[i] = make_frame(names, &llvm->frames[i]);
    for (size_t i = 0; i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        if (location->address < llvm->frame_count)
            location->frames = (struct hw_frames){&names->frame[location->address], 1};
    }
    return !names->failed;
}

const struct hw_llvm_frame *hw_view_llvm_frame(const struct hw_view *view, const struct hw_view_location *location)
{
    const struct hw_profile_llvm *llvm = view->profile->llvm;
    return llvm && llvm->frames && location->address < llvm->frame_count ? &llvm->frames[location->address] : NULL;
}
