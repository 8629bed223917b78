/* Private: each instruction-set file fills a table, starting from the one of the set below it. */
#ifndef SK_KERNELS_ISA_H
#define SK_KERNELS_ISA_H

#include "kernels/kernels.h"

/* Put before a loop whose trip count becomes a constant by inlining (at most 8): register tiles live in arrays
 * only if such loops are unrolled whole. The compilers spell it differently. */
#if defined(__clang__)
#define SK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SK_UNROLL _Pragma("GCC unroll 8")
#endif

void sk_kernels_init_scalar(struct sk_kernels *k);
void sk_kernels_init_avx2(struct sk_kernels *k);   /* AVX2, FMA, F16C */
void sk_kernels_init_avx512(struct sk_kernels *k); /* AVX-512 F, BW, DQ, VL and VNNI, over the AVX2 table */

/* With more rows there are more streams than the hardware follows by itself: the first tile of rows to pass over a
 * panel fetches it (and, at its end, the next one) this far ahead. */
enum { SK_PREFETCH_AHEAD = 2048 /* bytes */ };

static inline __attribute__((always_inline)) void sk_prefetch_block(const uint8_t *p, size_t n) {
    SK_UNROLL
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(p + SK_PREFETCH_AHEAD + i);
}

#endif
