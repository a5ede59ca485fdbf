/* intrinsics.c - instructions on memory that no load or store of the source stands for: each on a block of its own, of
 * which it prints what is to be counted: "expect FUNCTION READS WRITES". Built by heapwise cc in test_counting.c.
 *
 * Masks are not known when the program is compiled, so that no compiler makes plain loads and stores of them. */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>

#define APART   __attribute__((noinline, noclone))
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")
#define ROUNDS  10
#define AVX2    __attribute__((target("avx2"))) APART
#define AVX512  __attribute__((target("avx512f,avx512vl,avx512bw"))) APART

/* NAME: the function that allocates, and what counts. */
#define TEST(how, name, reads, writes, work)                                                                           \
    APART static int *name(void)                                                                                       \
    {                                                                                                                  \
        int *block = aligned_alloc(64, 256);                                                                           \
        __asm__ volatile("" : : "r"(block), "i"(__LINE__)); /* unlike all others */                                    \
        return block;                                                                                                  \
    }                                                                                                                  \
    how static void test_##name(void)                                                                                  \
    {                                                                                                                  \
        int *p = name(), all = -1, half = 4;                                                                           \
        KEEP(&all);                                                                                                    \
        KEEP(&half);                                                                                                   \
        (void)half;                                                                                                    \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            KEEP(p);                                                                                                   \
            work;                                                                                                      \
            KEEP(p);                                                                                                   \
        }                                                                                                              \
        printf("expect " #name " %d %d\n", ROUNDS *(reads), ROUNDS *(writes));                                         \
        free(p);                                                                                                       \
    }
#define FIRST_FOUR _mm256_cmpgt_epi32(_mm256_set1_epi32(half), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define SINK(type, value)                                                                                              \
    do {                                                                                                               \
        volatile type sink = (value);                                                                                  \
        (void)sink;                                                                                                    \
    } while (0)

TEST(AVX2, store_masked, 0, 4, _mm256_maskstore_epi32(p, FIRST_FOUR, _mm256_set1_epi32(i)))
TEST(AVX2, load_masked, 4, 0, SINK(__m256i, _mm256_maskload_epi32(p, FIRST_FOUR)))
TEST(AVX2, store_doubles, 0, 4, _mm256_maskstore_pd((double *)p, _mm256_set1_epi64x(all), _mm256_set1_pd(i)))
TEST(AVX2, gather_all, 8, 0, SINK(__m256i, _mm256_i32gather_epi32(p, _mm256_set1_epi32(i), 4)))
TEST(AVX2, gather_masked, 4, 0,
     SINK(__m256i, _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), p, _mm256_set1_epi32(i), FIRST_FOUR, 4)))
TEST(AVX2, gather_doubles, 2, 0, SINK(__m128d, _mm_i32gather_pd((double *)p, _mm_set1_epi32(i), 8)))
TEST(AVX512, store_512, 0, 8, _mm512_mask_storeu_epi32(p, (__mmask16)(all & 0x0f0f), _mm512_set1_epi32(i)))
TEST(AVX512, load_512, 8, 0, SINK(__m512i, _mm512_maskz_loadu_epi32((__mmask16)(all & 0x0f0f), p)))
TEST(AVX512, gather_512, 16, 0, SINK(__m512i, _mm512_i32gather_epi32(_mm512_set1_epi32(i), p, 4)))
TEST(AVX512, scatter_512, 0, 16, _mm512_i32scatter_epi32(p, _mm512_set1_epi32(i), _mm512_set1_epi32(i), 4))
TEST(AVX512, scatter_masked, 0, 3,
     _mm512_mask_i32scatter_epi64((long long *)p, (__mmask8)(all & 7), _mm256_set1_epi32(i), _mm512_set1_epi64(i), 8))
TEST(AVX512, compress, 0, 8, _mm512_mask_compressstoreu_epi32(p, (__mmask16)(all & 0xff), _mm512_set1_epi32(i)))
TEST(AVX512, expand, 8, 0, SINK(__m512i, _mm512_maskz_expandloadu_epi32((__mmask16)(all & 0xff), p)))
TEST(AVX512, narrow, 0, 5, _mm512_mask_cvtepi32_storeu_epi8(p, (__mmask16)(all & 0x1f), _mm512_set1_epi32(i)))
TEST(__attribute__((target("sse3"))) APART, unaligned, 1, 0, SINK(__m128i, _mm_lddqu_si128((__m128i *)p)))
TEST(APART, bytes_masked, 0, 16, _mm_maskmoveu_si128(_mm_set1_epi8((char)i), _mm_set1_epi8((char)all), (char *)p))
TEST(APART, past_cache_int, 0, 1, _mm_stream_si32(p, i))
TEST(APART, past_cache, 0, 1, _mm_stream_si128((__m128i *)p, _mm_set1_epi8((char)i)))
#ifndef NO_ASSEMBLY
TEST(APART, added_to, 1, 1, __asm__ volatile("addl %1, %0" : "+m"(*p) : "r"(i) : "cc"))
TEST(APART, only_read, 1, 0, __asm__ volatile("cmpl %1, %0" : : "m"(*p), "r"(i) : "cc"))
#endif

/* Through a register: nobody can tell. */
APART static void hidden(void)
{
    int *p = malloc(64);
    KEEP(p);
    __asm__ volatile("movl $1, (%0)" : : "r"(p) : "memory");
    free(p);
}

int main(void)
{
    if (__builtin_cpu_supports("avx2")) {
        test_store_masked();
        test_load_masked();
        test_store_doubles();
        test_gather_all();
        test_gather_masked();
        test_gather_doubles();
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
        test_store_512();
        test_load_512();
        test_gather_512();
        test_scatter_512();
        test_scatter_masked();
        test_compress();
        test_expand();
        test_narrow();
    }
    test_unaligned();
    test_bytes_masked();
    test_past_cache_int();
    test_past_cache();
#ifndef NO_ASSEMBLY
    test_added_to();
    test_only_read();
#endif
    hidden();
    return 0;
}
