/* sanitizers.h - the sanitizers that bring an allocator of their own, and how a program that has one is recognised. */
#ifndef HW_BASE_SANITIZERS_H
#define HW_BASE_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>

static const struct hw_sanitizer {
    const char *name;
    const char *function;   /* that no other library has: Heapwise's runtime has some others of their functions */
    const char *library[2]; /* of gcc and of clang, as their names begin; NULL: none */
    bool may_be_preloaded;  /* where it is linked into the program, a library that is loaded before does no harm */
} hw_sanitizers[] = {
    {"AddressSanitizer", "__asan_init", {"libasan.so", "libclang_rt.asan"}, true},
    {"ThreadSanitizer", "__tsan_mutex_create", {"libtsan.so", "libclang_rt.tsan"}, false},
    {"MemorySanitizer", "__msan_init", {NULL, "libclang_rt.msan"}, false},
    {"HWAddressSanitizer", "__hwasan_init", {"libhwasan.so", "libclang_rt.hwasan"}, false},
    {"MemProf", "__memprof_init", {NULL, NULL}, true},
};

#define HW_SANITIZERS (sizeof hw_sanitizers / sizeof *hw_sanitizers)

#endif
