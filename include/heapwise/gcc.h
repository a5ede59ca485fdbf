/* gcc.h - counting accesses in code that gcc compiles, without a plugin. `heapwise cc` does all this by itself; by hand:
 *
 *     gcc -fsanitize=thread --param tsan-instrument-func-entry-exit=0 -c
 *         -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -include heapwise/gcc.h FILE.c
 *
 * and libheapwise.so at the link, without -fsanitize=thread there. -DHEAPWISE_GRANULE=8 counts words of 8 bytes instead
 * of 64-byte granules, =4 records which words of 4 bytes are used; all objects of a program have to agree.
 *
 * Every load and store that remains after optimisation becomes a call into the runtime: programs take three to ten
 * times as long. This header adds what -fsanitize=thread leaves out: it counts memcpy, memmove and memset, and notes in
 * the object that it counts. Without the three -fno-builtin-… gcc's copies for assignments of structures would be
 * counted twice: as accesses and as memcpy. Not counted: structures that are passed to functions or returned by them in
 * memory, assembly, and memory that libc touches itself.
 *
 * C and C++, any standard; nothing for the assembler. */
#ifndef HEAPWISE_GCC_H
#define HEAPWISE_GCC_H
#if defined __GNUC__ && !defined __ASSEMBLER__
#pragma GCC system_header

/* Programs must not use their code for ThreadSanitizer. */
#undef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan" /* -fsanitize=thread warns of fences; here they work */

#ifndef HEAPWISE_GRANULE
#define HEAPWISE_GRANULE 64
#endif
#if HEAPWISE_GRANULE != 64 && HEAPWISE_GRANULE != 8 && HEAPWISE_GRANULE != 4
#error "HEAPWISE_GRANULE is 64, 8 or 4"
#endif

#if !defined __cplusplus
#define HEAPWISE_NOEXCEPT
#elif __cplusplus >= 201103L
#define HEAPWISE_NOEXCEPT noexcept(true)
#else
#define HEAPWISE_NOEXCEPT throw()
#endif

#ifdef __cplusplus
extern "C" {
#endif

extern void __heapwise_init_v1(__UINT32_TYPE__ granule) HEAPWISE_NOEXCEPT;
static __attribute__((constructor(1), used, no_sanitize_thread)) void heapwise_constructor(void)
{
    __heapwise_init_v1(HEAPWISE_GRANULE);
}

/* By name and as builtins, which the C++ library's headers call; _FORTIFY_SOURCE calls …_chk. */
extern void *memcpy(void *, const void *, __SIZE_TYPE__) HEAPWISE_NOEXCEPT __asm__("__heapwise_memcpy");
extern void *memmove(void *, const void *, __SIZE_TYPE__) HEAPWISE_NOEXCEPT __asm__("__heapwise_memmove");
extern void *memset(void *, int, __SIZE_TYPE__) HEAPWISE_NOEXCEPT __asm__("__heapwise_memset");
extern void *__heapwise_memcpy(void *, const void *, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
extern void *__heapwise_memmove(void *, const void *, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
extern void *__heapwise_memset(void *, int, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
extern void *__heapwise_memcpy_chk(void *, const void *, __SIZE_TYPE__, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
extern void *__heapwise_memmove_chk(void *, const void *, __SIZE_TYPE__, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
extern void *__heapwise_memset_chk(void *, int, __SIZE_TYPE__, __SIZE_TYPE__) HEAPWISE_NOEXCEPT;
#define __builtin_memcpy(...)        __heapwise_memcpy(__VA_ARGS__)
#define __builtin_memmove(...)       __heapwise_memmove(__VA_ARGS__)
#define __builtin_memset(...)        __heapwise_memset(__VA_ARGS__)
#define __builtin___memcpy_chk(...)  __heapwise_memcpy_chk(__VA_ARGS__)
#define __builtin___memmove_chk(...) __heapwise_memmove_chk(__VA_ARGS__)
#define __builtin___memset_chk(...)  __heapwise_memset_chk(__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#undef HEAPWISE_NOEXCEPT

#ifdef __x86_64__
#include "gcc_x86.h"
#endif

/* The note: version 1, granule, counted by calls. One for all objects of a link. */
#define HEAPWISE_TEXT_(x) #x
#define HEAPWISE_TEXT(x)  HEAPWISE_TEXT_(x)
__asm__(".pushsection .note.heapwise,\"aG\",@note,heapwise.note.calls." HEAPWISE_TEXT(HEAPWISE_GRANULE) ",comdat\n\t"
        ".balign 4\n\t"
        ".long 9, 16, 1\n\t"
        ".asciz \"Heapwise\"\n\t"
        ".balign 4\n\t"
        ".long 1, " HEAPWISE_TEXT(HEAPWISE_GRANULE) ", 2, 0\n\t"
        ".popsection");
#undef HEAPWISE_TEXT
#undef HEAPWISE_TEXT_

#endif
#endif
