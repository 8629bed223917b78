/* The table of kernels: the same functions for every instruction set, all with the same results, bit for bit.
 *
 * Each entry has one definition, given by formats/ for the matrix products and by portable.h for the rest;
 * `sk_kernels_scalar` is that definition compiled for any processor. docs/NUMERICS.md states the expressions. Shapes
 * are in elements. */
#ifndef SK_KERNELS_H
#define SK_KERNELS_H

#include "kernels/format.h"

#include <stdbool.h>

/* Positions per attention tile, and per page of the key-value cache. Part of the numerics: results depend on it. */
enum { SK_TILE = 32 };

/* One tile of keys and values of one KV head, and queries that look at it. Each query q sees the positions
 * [first[q], first[q] + count[q]) of the tile, count >= 1. */
struct sk_attention_tile {
    const uint16_t *k;           /* f16 [head_dim][SK_TILE] */
    const uint16_t *v;           /* f16 [SK_TILE][head_dim_v] */
    size_t head_dim, head_dim_v; /* multiples of 8 */
    size_t n_queries;
    const float *const *queries; /* n_queries pointers to [head_dim] */
    const uint8_t *first, *count;
    float scale;    /* of the scores */
    float *scratch; /* sk_attention_scratch floats, this thread's own */
    float *max;     /* out: [n_queries] greatest score */
    float *sum;     /* out: [n_queries] sum of e^(score - max) */
    float *out;     /* out: [n_queries][head_dim_v] sum of e^(score - max) v */
};
static inline size_t sk_attention_scratch(size_t head_dim, size_t head_dim_v, size_t n_queries) {
    return SK_TILE * (head_dim + head_dim_v + n_queries);
}

struct sk_kernels {
    const char *name; /* "scalar", "avx2", "avx512" */
    /* What one more row of a pass takes, as a share of the first: about, of models that do not fit into a cache, up to
     * 16 rows (docs/PERFORMANCE.md). Where to start from when the cost of passes is learnt. */
    float row_cost;
    sk_matmul_fn *matmul[SK_N_FORMATS];
    /* n a multiple of 32: q[n], scales[n / 32] */
    void (*quantize_q8)(const float *x, size_t n, int8_t *q, struct sk_q8_scale *scales);
    /* y[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i] */
    void (*rms_norm)(const float *x, const float *weight, float eps, size_t n, float *y);
    /* y[i] = silu(gate[i]) * up[i] */
    void (*silu_mul)(const float *gate, const float *up, size_t n, float *y);
    void (*add)(float *x, const float *y, size_t n); /* x[i] += y[i] */
    /* Rotates pairs of one head: (x[2i], x[2i+1]) */
    void (*rope_adjacent)(float *x, const float *cos, const float *sin, size_t n_pairs);
    /* the same for (x[i], x[i + n_pairs]) */
    void (*rope_halves)(float *x, const float *cos, const float *sin, size_t n_pairs);
    void (*to_half)(const float *x, size_t n, uint16_t *y);
    void (*attention_tile)(const struct sk_attention_tile *t);
    /* Adds a tile's result to that of the tiles before it: (max, sum, out[n]). Start with (-inf, 0, 0…). */
    void (*attention_merge)(float *max, float *sum, float *out, float tile_max, float tile_sum, const float *tile_out,
                            size_t n);
    /* Greatest of x[0..n), n >= 1 */
    float (*max)(const float *x, size_t n);
};

/* The i-th table that this processor can run, the fastest first; NULL past the last. */
const struct sk_kernels *sk_kernels_at(size_t i);
static inline const struct sk_kernels *sk_kernels_best(void) {
    return sk_kernels_at(0);
}
/* By name; NULL if unknown or not possible here. */
const struct sk_kernels *sk_kernels_named(const char *name);

#endif
