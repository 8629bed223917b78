/* The definitions of all kernels but the matrix products, in plain C.
 *
 * Every rounded operation stands here in its canonical order (docs/NUMERICS.md). The loops are shaped so that
 * lanes are independent: an instruction-set file includes this header and the compiler makes vector code of it,
 * which cannot change a bit because contraction and reassociation are off. Sums over a row run in 16 partial sums
 * by index mod 16, joined by one fixed tree. */
#ifndef SK_KERNELS_PORTABLE_H
#define SK_KERNELS_PORTABLE_H

#include "kernels/half.h"
#include "kernels/kernels.h"

#include <math.h>

enum { SK_PARTIALS = 16 };

static inline float sk_tree_sum(const float s[SK_PARTIALS]) {
    float t[8];
    for (int i = 0; i < 8; i++) t[i] = s[i] + s[i + 8];
    for (int i = 0; i < 4; i++) t[i] = t[i] + t[i + 4];
    return (t[0] + t[2]) + (t[1] + t[3]);
}

/* e^x: reduction by ln 2 in two parts, then the minimax polynomial of Cephes' expf. 0 below -87, infinity above 88, NaN
 * of NaN. */
static inline float sk_expf(float x) {
    const float clamped =
        x > -87.0f ? (x < 88.0f ? x : 88.0f) : -87.0f; /* NaN too: what is no number has no integer part */
    const float n = rintf(clamped * 1.44269504088896341f);
    float r = fmaf(n, -0.693359375f, clamped);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = fmaf(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    const float scaled = p * sk_bits_to_float((uint32_t)((int32_t)n + 127) << 23);
    const float low = x < -87.0f ? 0.0f : scaled;
    const float high = x > 88.0f ? INFINITY : low;
    return x == x ? high : x;
}

static inline float portable_max(const float *x, size_t n) {
    float m[SK_PARTIALS];
    for (int j = 0; j < SK_PARTIALS; j++) m[j] = -INFINITY;
    size_t i = 0;
    for (; i + SK_PARTIALS <= n; i += SK_PARTIALS)
        for (int j = 0; j < SK_PARTIALS; j++) m[j] = x[i + (size_t)j] > m[j] ? x[i + (size_t)j] : m[j];
    for (int j = 0; i < n; i++, j++) m[j] = x[i] > m[j] ? x[i] : m[j];
    float best = m[0];
    for (int j = 1; j < SK_PARTIALS; j++) best = m[j] > best ? m[j] : best;
    return best;
}

static inline void portable_quantize_q8(const float *x, size_t n, int8_t *q, struct sk_q8_scale *scales) {
    for (size_t b = 0; b < n / 32; b++, x += 32, q += 32) {
        float magnitude[32];
        for (int i = 0; i < 32; i++) magnitude[i] = fabsf(x[i]);
        const float amax = portable_max(magnitude, 32);
        /* Below 2^-100 the inverse could overflow: such a block counts as zero. */
        const float inverse = amax < 0x1p-100f ? 0.0f : 127.0f / amax;
        int32_t sum = 0;
        for (int i = 0; i < 32; i++) {
            const float scaled = rintf(x[i] * inverse);
            /* Only infinite or NaN activations get past 127; they too must give a number that a byte can hold. */
            const float bounded = scaled > 127.0f ? 127.0f : (scaled >= -127.0f ? scaled : -127.0f);
            const int32_t v = (int32_t)bounded;
            q[i] = (int8_t)v;
            sum += v;
        }
        const float d = amax / 127.0f;
        scales[b] = (struct sk_q8_scale){.d = d, .dsum = d * (float)sum, .sum = sum};
    }
}

static inline void portable_rms_norm(const float *x, const float *weight, float eps, size_t n, float *y) {
    float s[SK_PARTIALS] = {0};
    size_t i = 0;
    for (; i + SK_PARTIALS <= n; i += SK_PARTIALS)
        for (int j = 0; j < SK_PARTIALS; j++) s[j] = fmaf(x[i + (size_t)j], x[i + (size_t)j], s[j]);
    for (int j = 0; i < n; i++, j++) s[j] = fmaf(x[i], x[i], s[j]);
    const float scale = 1.0f / sqrtf(sk_tree_sum(s) / (float)n + eps);
    for (i = 0; i < n; i++) y[i] = x[i] * scale * weight[i];
}

static inline void portable_silu_mul(const float *gate, const float *up, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = gate[i] / (1.0f + sk_expf(-gate[i])) * up[i];
}

static inline void portable_add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = x[i] + y[i];
}

static inline void portable_rope_adjacent(float *x, const float *cos, const float *sin, size_t n_pairs) {
    for (size_t i = 0; i < n_pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cos[i] - b * sin[i];
        x[2 * i + 1] = a * sin[i] + b * cos[i];
    }
}

static inline void portable_rope_halves(float *x, const float *cos, const float *sin, size_t n_pairs) {
    for (size_t i = 0; i < n_pairs; i++) {
        const float a = x[i], b = x[i + n_pairs];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n_pairs] = a * sin[i] + b * cos[i];
    }
}

static inline void portable_to_half(const float *x, size_t n, uint16_t *y) {
    for (size_t i = 0; i < n; i++) y[i] = sk_float_to_half(x[i]);
}

/* Scores of one query become e^(score - max) in place; positions outside [first, first + count) become 0. */
static inline void portable_softmax_tile(float score[SK_TILE], size_t first, size_t count, float scale, float *max,
                                         float *sum) {
    for (size_t p = 0; p < SK_TILE; p++) {
        const float s = score[p] * scale;
        score[p] = p - first < count ? s : -INFINITY;
    }
    const float m = portable_max(score, SK_TILE);
    float partial[SK_PARTIALS] = {0};
    for (size_t p = 0; p < SK_TILE; p++) score[p] = sk_expf(score[p] - m);
    for (size_t p = 0; p < SK_TILE; p += SK_PARTIALS)
        for (size_t j = 0; j < SK_PARTIALS; j++) partial[j] = partial[j] + score[p + j];
    *max = m;
    *sum = sk_tree_sum(partial);
}

static inline void portable_attention_tile(const struct sk_attention_tile *t) {
    for (size_t i = 0; i < t->n_queries; i++) {
        float score[SK_TILE] = {0}, *out = t->out + i * t->head_dim_v;
        for (size_t d = 0; d < t->head_dim; d++)
            for (size_t p = 0; p < SK_TILE; p++)
                score[p] = fmaf(t->queries[i][d], sk_half_to_float(t->k[d * SK_TILE + p]), score[p]);
        portable_softmax_tile(score, t->first[i], t->count[i], t->scale, &t->max[i], &t->sum[i]);
        for (size_t d = 0; d < t->head_dim_v; d++) out[d] = 0.0f;
        for (size_t p = t->first[i]; p < (size_t)t->first[i] + t->count[i]; p++)
            for (size_t d = 0; d < t->head_dim_v; d++)
                out[d] = fmaf(score[p], sk_half_to_float(t->v[p * t->head_dim_v + d]), out[d]);
    }
}

static inline void portable_attention_merge(float *max, float *sum, float *out, float tile_max, float tile_sum,
                                            const float *tile_out, size_t n) {
    const float m = tile_max > *max ? tile_max : *max;
    const float before = sk_expf(*max - m), now = sk_expf(tile_max - m);
    *max = m;
    *sum = fmaf(*sum, before, tile_sum * now);
    for (size_t i = 0; i < n; i++) out[i] = fmaf(out[i], before, tile_out[i] * now);
}

#endif
