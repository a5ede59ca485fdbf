/* gcc_x86.h - instructions on memory that gcc has as builtins, which -fsanitize=thread does not see: each of them
 * counts what it accesses, and is what it was. Included by gcc.h. A line for each builtin, by shape: bytes of an
 * element, bytes of one of the vector that says how many there are, 1 for loads and 2 for stores (+ 4: packed). */
#ifndef HEAPWISE_GCC_X86_H
#define HEAPWISE_GCC_X86_H
#pragma GCC system_header

#ifdef __cplusplus
extern "C" {
#endif
/* The lanes that are on, by MASK or by the sign bits of elements at SIGNS, of an access to BASE, with INDEX to BASE +
 * SCALE * INDEX[lane]. SHAPE: bytes of a lane, lanes << 8, bytes of an index << 16, scale << 24, kinds << 32. */
extern void __heapwise_lanes(const volatile void *base, const void *index, const void *signs, __UINT64_TYPE__ mask,
                             __UINT64_TYPE__ shape);
#ifdef __cplusplus
}
#endif

#define HEAPWISE_SHAPE(bytes, lanes, index, scale, kinds)                                                              \
    ((__UINT64_TYPE__)(bytes) | (__UINT64_TYPE__)(lanes) << 8 | (__UINT64_TYPE__)(index) << 16 |                       \
     (__UINT64_TYPE__)(scale) << 24 | (__UINT64_TYPE__)(kinds) << 32)
#define HEAPWISE_ONE(p, bytes, kind) __heapwise_lanes(p, 0, 0, 1, HEAPWISE_SHAPE(bytes, 1, 0, 0, kind))
#define HEAPWISE_LEAST(a, b)         ((a) < (b) ? (a) : (b))
#define HEAPWISE_ONE_POINTER(f, bytes, kind, p)                                                                        \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        HEAPWISE_ONE(hw_p, bytes, kind);                                                                               \
        f(hw_p);                                                                                                       \
    })
#define HEAPWISE_FIRST(f, bytes, kind, p, v)                                                                           \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        HEAPWISE_ONE(hw_p, bytes, kind);                                                                               \
        f(hw_p, v);                                                                                                    \
    })
#define HEAPWISE_BEHIND(f, bytes, kind, v, p)                                                                          \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        HEAPWISE_ONE(hw_p, bytes, kind);                                                                               \
        f(v, hw_p);                                                                                                    \
    })
#define HEAPWISE_RANGE(p, bytes, kind) __heapwise_lanes(p, 0, 0, ~0, HEAPWISE_SHAPE(64, (bytes) / 64, 0, 0, kind))
#define HEAPWISE_BYTES_ALONE(f, bytes, kind, p)                                                                        \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        HEAPWISE_RANGE(hw_p, bytes, kind);                                                                             \
        f(hw_p);                                                                                                       \
    })
#define HEAPWISE_BYTES(f, bytes, kind, p, m)                                                                           \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        HEAPWISE_RANGE(hw_p, bytes, kind);                                                                             \
        f(hw_p, m);                                                                                                    \
    })
#define HEAPWISE_SIGNS_LOAD(f, bytes, p, m)                                                                            \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(hw_p, 0, &hw_m, 0, HEAPWISE_SHAPE(bytes, sizeof hw_m / (bytes), 0, 0, 1));                    \
        f(hw_p, hw_m);                                                                                                 \
    })
#define HEAPWISE_SIGNS_STORE(f, bytes, p, m, v)                                                                        \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(hw_p, 0, &hw_m, 0, HEAPWISE_SHAPE(bytes, sizeof hw_m / (bytes), 0, 0, 2));                    \
        f(hw_p, hw_m, v);                                                                                              \
    })
#define HEAPWISE_SIGNS_BYTES(f, v, m, p)                                                                               \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(hw_p, 0, &hw_m, 0, HEAPWISE_SHAPE(1, sizeof hw_m, 0, 0, 2));                                  \
        f(v, hw_m, hw_p);                                                                                              \
    })
#define HEAPWISE_MASKED(f, bytes, of_vector, kinds, p, v, m)                                                           \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(hw_p, 0, 0, (__UINT64_TYPE__)hw_m,                                                            \
                         HEAPWISE_SHAPE(bytes, sizeof(v) / (of_vector), 0, 0, kinds));                                 \
        f(hw_p, v, hw_m);                                                                                              \
    })
#define HEAPWISE_GATHER(f, bytes, index, s, p, i, m, c)                                                                \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(i) hw_i = (i);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(                                                                                              \
            hw_p, &hw_i, 0, (__UINT64_TYPE__)hw_m,                                                                     \
            HEAPWISE_SHAPE(bytes, HEAPWISE_LEAST(sizeof hw_i / (index), sizeof(s) / (bytes)), index, c, 1));           \
        f(s, hw_p, hw_i, hw_m, c);                                                                                     \
    })
#define HEAPWISE_GATHER_SIGNS(f, bytes, index, s, p, i, m, c)                                                          \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(i) hw_i = (i);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(                                                                                              \
            hw_p, &hw_i, &hw_m, 0,                                                                                     \
            HEAPWISE_SHAPE(bytes, HEAPWISE_LEAST(sizeof hw_i / (index), sizeof(s) / (bytes)), index, c, 1));           \
        f(s, hw_p, hw_i, hw_m, c);                                                                                     \
    })
#define HEAPWISE_SCATTER(f, bytes, index, p, m, i, v, c)                                                               \
    __extension__({                                                                                                    \
        __typeof__(p) hw_p = (p);                                                                                      \
        __typeof__(i) hw_i = (i);                                                                                      \
        __typeof__(m) hw_m = (m);                                                                                      \
        __heapwise_lanes(                                                                                              \
            hw_p, &hw_i, 0, (__UINT64_TYPE__)hw_m,                                                                     \
            HEAPWISE_SHAPE(bytes, HEAPWISE_LEAST(sizeof hw_i / (index), sizeof(v) / (bytes)), index, c, 2));           \
        f(hw_p, hw_m, hw_i, v, c);                                                                                     \
    })

/* clang-format off */
#define __builtin_ia32_lddqu(p) HEAPWISE_ONE_POINTER(__builtin_ia32_lddqu, 16, 1, p)
#define __builtin_ia32_lddqu256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_lddqu256, 32, 1, p)
#define __builtin_ia32_movntdqa(p) HEAPWISE_ONE_POINTER(__builtin_ia32_movntdqa, 16, 1, p)
#define __builtin_ia32_movntdqa256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_movntdqa256, 32, 1, p)
#define __builtin_ia32_movntdqa512(p) HEAPWISE_ONE_POINTER(__builtin_ia32_movntdqa512, 64, 1, p)
#define __builtin_ia32_vbroadcastss(p) HEAPWISE_ONE_POINTER(__builtin_ia32_vbroadcastss, 4, 1, p)
#define __builtin_ia32_vbroadcastss256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_vbroadcastss256, 4, 1, p)
#define __builtin_ia32_vbroadcastsd256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_vbroadcastsd256, 8, 1, p)
#define __builtin_ia32_vbroadcastf128_ps256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_vbroadcastf128_ps256, 16, 1, p)
#define __builtin_ia32_vbroadcastf128_pd256(p) HEAPWISE_ONE_POINTER(__builtin_ia32_vbroadcastf128_pd256, 16, 1, p)
#define __builtin_ia32_loadhpd(v, p) HEAPWISE_BEHIND(__builtin_ia32_loadhpd, 8, 1, v, p)
#define __builtin_ia32_loadlpd(v, p) HEAPWISE_BEHIND(__builtin_ia32_loadlpd, 8, 1, v, p)
#define __builtin_ia32_loadhps(v, p) HEAPWISE_BEHIND(__builtin_ia32_loadhps, 8, 1, v, p)
#define __builtin_ia32_loadlps(v, p) HEAPWISE_BEHIND(__builtin_ia32_loadlps, 8, 1, v, p)
#define __builtin_ia32_storehps(p, v) HEAPWISE_FIRST(__builtin_ia32_storehps, 8, 2, p, v)
#define __builtin_ia32_storelps(p, v) HEAPWISE_FIRST(__builtin_ia32_storelps, 8, 2, p, v)
#define __builtin_ia32_movnti(p, v) HEAPWISE_FIRST(__builtin_ia32_movnti, 4, 2, p, v)
#define __builtin_ia32_movnti64(p, v) HEAPWISE_FIRST(__builtin_ia32_movnti64, 8, 2, p, v)
#define __builtin_ia32_movntq(p, v) HEAPWISE_FIRST(__builtin_ia32_movntq, 8, 2, p, v)
#define __builtin_ia32_movntdq(p, v) HEAPWISE_FIRST(__builtin_ia32_movntdq, 16, 2, p, v)
#define __builtin_ia32_movntdq256(p, v) HEAPWISE_FIRST(__builtin_ia32_movntdq256, 32, 2, p, v)
#define __builtin_ia32_movntdq512(p, v) HEAPWISE_FIRST(__builtin_ia32_movntdq512, 64, 2, p, v)
#define __builtin_ia32_movntps(p, v) HEAPWISE_FIRST(__builtin_ia32_movntps, 16, 2, p, v)
#define __builtin_ia32_movntps256(p, v) HEAPWISE_FIRST(__builtin_ia32_movntps256, 32, 2, p, v)
#define __builtin_ia32_movntps512(p, v) HEAPWISE_FIRST(__builtin_ia32_movntps512, 64, 2, p, v)
#define __builtin_ia32_movntpd(p, v) HEAPWISE_FIRST(__builtin_ia32_movntpd, 16, 2, p, v)
#define __builtin_ia32_movntpd256(p, v) HEAPWISE_FIRST(__builtin_ia32_movntpd256, 32, 2, p, v)
#define __builtin_ia32_movntpd512(p, v) HEAPWISE_FIRST(__builtin_ia32_movntpd512, 64, 2, p, v)
#define __builtin_ia32_movntss(p, v) HEAPWISE_FIRST(__builtin_ia32_movntss, 4, 2, p, v)
#define __builtin_ia32_movntsd(p, v) HEAPWISE_FIRST(__builtin_ia32_movntsd, 8, 2, p, v)
#define __builtin_ia32_directstoreu_u32(p, v) HEAPWISE_FIRST(__builtin_ia32_directstoreu_u32, 4, 2, p, v)
#define __builtin_ia32_directstoreu_u64(p, v) HEAPWISE_FIRST(__builtin_ia32_directstoreu_u64, 8, 2, p, v)
#define __builtin_ia32_maskloadd(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadd, 4, p, m)
#define __builtin_ia32_maskstored(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstored, 4, p, m, v)
#define __builtin_ia32_maskloadd256(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadd256, 4, p, m)
#define __builtin_ia32_maskstored256(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstored256, 4, p, m, v)
#define __builtin_ia32_maskloadq(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadq, 8, p, m)
#define __builtin_ia32_maskstoreq(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstoreq, 8, p, m, v)
#define __builtin_ia32_maskloadq256(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadq256, 8, p, m)
#define __builtin_ia32_maskstoreq256(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstoreq256, 8, p, m, v)
#define __builtin_ia32_maskloadps(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadps, 4, p, m)
#define __builtin_ia32_maskstoreps(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstoreps, 4, p, m, v)
#define __builtin_ia32_maskloadps256(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadps256, 4, p, m)
#define __builtin_ia32_maskstoreps256(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstoreps256, 4, p, m, v)
#define __builtin_ia32_maskloadpd(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadpd, 8, p, m)
#define __builtin_ia32_maskstorepd(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstorepd, 8, p, m, v)
#define __builtin_ia32_maskloadpd256(p, m) HEAPWISE_SIGNS_LOAD(__builtin_ia32_maskloadpd256, 8, p, m)
#define __builtin_ia32_maskstorepd256(p, m, v) HEAPWISE_SIGNS_STORE(__builtin_ia32_maskstorepd256, 8, p, m, v)
#define __builtin_ia32_maskmovdqu(v, m, p) HEAPWISE_SIGNS_BYTES(__builtin_ia32_maskmovdqu, v, m, p)
#define __builtin_ia32_maskmovq(v, m, p) HEAPWISE_SIGNS_BYTES(__builtin_ia32_maskmovq, v, m, p)
#define __builtin_ia32_loaddqusi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqusi128_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storedqusi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqusi128_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loaddqudi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqudi128_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storedqudi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqudi128_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loaddquhi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquhi128_mask, 2, 2, 1, p, v, m)
#define __builtin_ia32_storedquhi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquhi128_mask, 2, 2, 2, p, v, m)
#define __builtin_ia32_loaddquqi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquqi128_mask, 1, 1, 1, p, v, m)
#define __builtin_ia32_storedquqi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquqi128_mask, 1, 1, 2, p, v, m)
#define __builtin_ia32_loadups128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadups128_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeups128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeups128_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadupd128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadupd128_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeupd128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeupd128_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loadaps128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadaps128_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeaps128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeaps128_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadapd128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadapd128_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeapd128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeapd128_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_movdqa32load128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32load128_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_movdqa32store128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32store128_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_movdqa64load128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64load128_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_movdqa64store128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64store128_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_compressstoredf128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredf128_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddf128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf128_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddf128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf128_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoredi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredi128_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi128_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddi128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi128_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresf128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresf128_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsf128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf128_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsf128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf128_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresi128_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi128_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsi128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi128_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuhi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuhi128_mask, 2, 2, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadhi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi128_mask, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadhi128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi128_maskz, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuqi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuqi128_mask, 1, 1, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadqi128_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi128_mask, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadqi128_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi128_maskz, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_pmovdb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdb128mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovdw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdw128mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovqb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqb128mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovqw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqw128mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovqd128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqd128mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovwb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovwb128mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovsdb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdb128mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovsdw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdw128mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovsqb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqb128mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqw128mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqd128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqd128mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovswb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovswb128mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovusdb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdb128mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovusdw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdw128mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovusqb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqb128mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqw128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqw128mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqd128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqd128mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovuswb128mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovuswb128mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_loaddqusi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqusi256_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storedqusi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqusi256_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loaddqudi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqudi256_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storedqudi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqudi256_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loaddquhi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquhi256_mask, 2, 2, 1, p, v, m)
#define __builtin_ia32_storedquhi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquhi256_mask, 2, 2, 2, p, v, m)
#define __builtin_ia32_loaddquqi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquqi256_mask, 1, 1, 1, p, v, m)
#define __builtin_ia32_storedquqi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquqi256_mask, 1, 1, 2, p, v, m)
#define __builtin_ia32_loadups256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadups256_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeups256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeups256_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadupd256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadupd256_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeupd256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeupd256_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loadaps256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadaps256_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeaps256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeaps256_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadapd256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadapd256_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeapd256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeapd256_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_movdqa32load256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32load256_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_movdqa32store256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32store256_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_movdqa64load256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64load256_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_movdqa64store256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64store256_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_compressstoredf256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredf256_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddf256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf256_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddf256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf256_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoredi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredi256_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi256_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddi256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi256_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresf256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresf256_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsf256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf256_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsf256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf256_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresi256_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi256_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsi256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi256_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuhi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuhi256_mask, 2, 2, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadhi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi256_mask, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadhi256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi256_maskz, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuqi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuqi256_mask, 1, 1, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadqi256_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi256_mask, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadqi256_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi256_maskz, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_pmovdb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdb256mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovdw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdw256mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovqb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqb256mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovqw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqw256mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovqd256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqd256mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovwb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovwb256mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovsdb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdb256mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovsdw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdw256mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovsqb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqb256mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqw256mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqd256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqd256mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovswb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovswb256mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovusdb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdb256mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovusdw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdw256mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovusqb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqb256mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqw256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqw256mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqd256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqd256mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovuswb256mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovuswb256mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_loaddqusi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqusi512_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storedqusi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqusi512_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loaddqudi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddqudi512_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storedqudi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedqudi512_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loaddquhi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquhi512_mask, 2, 2, 1, p, v, m)
#define __builtin_ia32_storedquhi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquhi512_mask, 2, 2, 2, p, v, m)
#define __builtin_ia32_loaddquqi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loaddquqi512_mask, 1, 1, 1, p, v, m)
#define __builtin_ia32_storedquqi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storedquqi512_mask, 1, 1, 2, p, v, m)
#define __builtin_ia32_loadups512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadups512_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeups512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeups512_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadupd512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadupd512_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeupd512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeupd512_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_loadaps512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadaps512_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_storeaps512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeaps512_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_loadapd512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadapd512_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_storeapd512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storeapd512_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_movdqa32load512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32load512_mask, 4, 4, 1, p, v, m)
#define __builtin_ia32_movdqa32store512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa32store512_mask, 4, 4, 2, p, v, m)
#define __builtin_ia32_movdqa64load512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64load512_mask, 8, 8, 1, p, v, m)
#define __builtin_ia32_movdqa64store512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_movdqa64store512_mask, 8, 8, 2, p, v, m)
#define __builtin_ia32_compressstoredf512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredf512_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddf512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf512_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddf512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddf512_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoredi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoredi512_mask, 8, 8, 2 + 4, p, v, m)
#define __builtin_ia32_expandloaddi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi512_mask, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_expandloaddi512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloaddi512_maskz, 8, 8, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresf512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresf512_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsf512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf512_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsf512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsf512_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoresi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoresi512_mask, 4, 4, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadsi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi512_mask, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadsi512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadsi512_maskz, 4, 4, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuhi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuhi512_mask, 2, 2, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadhi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi512_mask, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadhi512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadhi512_maskz, 2, 2, 1 + 4, p, v, m)
#define __builtin_ia32_compressstoreuqi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_compressstoreuqi512_mask, 1, 1, 2 + 4, p, v, m)
#define __builtin_ia32_expandloadqi512_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi512_mask, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_expandloadqi512_maskz(p, v, m) HEAPWISE_MASKED(__builtin_ia32_expandloadqi512_maskz, 1, 1, 1 + 4, p, v, m)
#define __builtin_ia32_pmovdb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdb512mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovdw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovdw512mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovqb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqb512mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovqw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqw512mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovqd512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovqd512mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovwb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovwb512mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovsdb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdb512mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovsdw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsdw512mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovsqb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqb512mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqw512mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovsqd512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovsqd512mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovswb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovswb512mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_pmovusdb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdb512mem_mask, 1, 4, 2, p, v, m)
#define __builtin_ia32_pmovusdw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusdw512mem_mask, 2, 4, 2, p, v, m)
#define __builtin_ia32_pmovusqb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqb512mem_mask, 1, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqw512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqw512mem_mask, 2, 8, 2, p, v, m)
#define __builtin_ia32_pmovusqd512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovusqd512mem_mask, 4, 8, 2, p, v, m)
#define __builtin_ia32_pmovuswb512mem_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_pmovuswb512mem_mask, 1, 2, 2, p, v, m)
#define __builtin_ia32_loadss_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadss_mask, 4, sizeof(v) / 1, 1, p, v, m)
#define __builtin_ia32_storess_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storess_mask, 4, sizeof(v) / 1, 2, p, v, m)
#define __builtin_ia32_loadsd_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadsd_mask, 8, sizeof(v) / 1, 1, p, v, m)
#define __builtin_ia32_storesd_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storesd_mask, 8, sizeof(v) / 1, 2, p, v, m)
#define __builtin_ia32_loadsh_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_loadsh_mask, 2, sizeof(v) / 1, 1, p, v, m)
#define __builtin_ia32_storesh_mask(p, v, m) HEAPWISE_MASKED(__builtin_ia32_storesh_mask, 2, sizeof(v) / 1, 2, p, v, m)
#define __builtin_ia32_gathersiv2df(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv2df, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv4df(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv4df, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv2df(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv2df, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4df(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4df, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gathersiv2di(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv2di, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv4di(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv4di, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv2di(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv2di, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4di(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4di, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gathersiv4sf(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv4sf, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv8sf(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv8sf, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4sf(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4sf, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4sf256(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4sf256, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gathersiv4si(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv4si, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv8si(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gathersiv8si, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4si(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4si, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv4si256(s, p, i, m, c) HEAPWISE_GATHER_SIGNS(__builtin_ia32_gatherdiv4si256, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gathersiv16sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gathersiv16sf, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv8df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gathersiv8df, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv16sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gatherdiv16sf, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv8df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gatherdiv8df, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gathersiv16si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gathersiv16si, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gathersiv8di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gathersiv8di, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gatherdiv16si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gatherdiv16si, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gatherdiv8di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gatherdiv8di, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gather3siv2df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv2df, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv2di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv2di, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv4df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv4df, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv4di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv4di, 8, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv4sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv4sf, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv4si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv4si, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv8sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv8sf, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gather3siv8si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3siv8si, 4, 4, s, p, i, m, c)
#define __builtin_ia32_gather3div2df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div2df, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div2di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div2di, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div4df(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div4df, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div4di(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div4di, 8, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div4sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div4sf, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div4si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div4si, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div8sf(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div8sf, 4, 8, s, p, i, m, c)
#define __builtin_ia32_gather3div8si(s, p, i, m, c) HEAPWISE_GATHER(__builtin_ia32_gather3div8si, 4, 8, s, p, i, m, c)
#define __builtin_ia32_scattersiv2df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv2df, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv2di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv2di, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv4df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv4df, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv4di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv4di, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv4sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv4sf, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv4si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv4si, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv8df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv8df, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv8di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv8di, 8, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv8sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv8sf, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv8si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv8si, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv16sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv16sf, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scattersiv16si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scattersiv16si, 4, 4, p, m, i, v, c)
#define __builtin_ia32_scatterdiv2df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv2df, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv2di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv2di, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv4df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv4df, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv4di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv4di, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv4sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv4sf, 4, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv4si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv4si, 4, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv8df(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv8df, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv8di(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv8di, 8, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv8sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv8sf, 4, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv8si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv8si, 4, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv16sf(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv16sf, 4, 8, p, m, i, v, c)
#define __builtin_ia32_scatterdiv16si(p, m, i, v, c) HEAPWISE_SCATTER(__builtin_ia32_scatterdiv16si, 4, 8, p, m, i, v, c)
#define __builtin_ia32_fxsave(p) HEAPWISE_BYTES_ALONE(__builtin_ia32_fxsave, 512, 2, p)
#define __builtin_ia32_fxsave64(p) HEAPWISE_BYTES_ALONE(__builtin_ia32_fxsave64, 512, 2, p)
#define __builtin_ia32_fxrstor(p) HEAPWISE_BYTES_ALONE(__builtin_ia32_fxrstor, 512, 1, p)
#define __builtin_ia32_fxrstor64(p) HEAPWISE_BYTES_ALONE(__builtin_ia32_fxrstor64, 512, 1, p)
#define __builtin_ia32_xsave(p, m) HEAPWISE_BYTES(__builtin_ia32_xsave, 576, 2, p, m)
#define __builtin_ia32_xsave64(p, m) HEAPWISE_BYTES(__builtin_ia32_xsave64, 576, 2, p, m)
#define __builtin_ia32_xsaveopt(p, m) HEAPWISE_BYTES(__builtin_ia32_xsaveopt, 576, 2, p, m)
#define __builtin_ia32_xsaveopt64(p, m) HEAPWISE_BYTES(__builtin_ia32_xsaveopt64, 576, 2, p, m)
#define __builtin_ia32_xsavec(p, m) HEAPWISE_BYTES(__builtin_ia32_xsavec, 576, 2, p, m)
#define __builtin_ia32_xsavec64(p, m) HEAPWISE_BYTES(__builtin_ia32_xsavec64, 576, 2, p, m)
#define __builtin_ia32_xsaves(p, m) HEAPWISE_BYTES(__builtin_ia32_xsaves, 576, 2, p, m)
#define __builtin_ia32_xsaves64(p, m) HEAPWISE_BYTES(__builtin_ia32_xsaves64, 576, 2, p, m)
#define __builtin_ia32_xrstor(p, m) HEAPWISE_BYTES(__builtin_ia32_xrstor, 576, 1, p, m)
#define __builtin_ia32_xrstor64(p, m) HEAPWISE_BYTES(__builtin_ia32_xrstor64, 576, 1, p, m)
#define __builtin_ia32_xrstors(p, m) HEAPWISE_BYTES(__builtin_ia32_xrstors, 576, 1, p, m)
#define __builtin_ia32_xrstors64(p, m) HEAPWISE_BYTES(__builtin_ia32_xrstors64, 576, 1, p, m)
/* clang-format on */

#endif
