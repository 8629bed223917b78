/* Fills a table with the portable kernels as compiled in the including file, for that file's instruction set. */
#ifndef SK_KERNELS_PORTABLE_TABLE_H
#define SK_KERNELS_PORTABLE_TABLE_H

#include "portable.h"

static void quantize_q8(const float *x, size_t n, int8_t *q, struct sk_q8_scale *s) {
    portable_quantize_q8(x, n, q, s);
}
static void rms_norm(const float *x, const float *w, float eps, size_t n, float *y) {
    portable_rms_norm(x, w, eps, n, y);
}
static void silu_mul(const float *g, const float *u, size_t n, float *y) {
    portable_silu_mul(g, u, n, y);
}
static void add(float *x, const float *y, size_t n) {
    portable_add(x, y, n);
}
static void rope_adjacent(float *x, const float *c, const float *s, size_t n) {
    portable_rope_adjacent(x, c, s, n);
}
static void rope_halves(float *x, const float *c, const float *s, size_t n) {
    portable_rope_halves(x, c, s, n);
}
static void to_half(const float *x, size_t n, uint16_t *y) {
    portable_to_half(x, n, y);
}
static void attention_tile(const struct sk_attention_tile *t) {
    portable_attention_tile(t);
}
static void attention_merge(float *m, float *s, float *o, float tm, float ts, const float *to, size_t n) {
    portable_attention_merge(m, s, o, tm, ts, to, n);
}
static float max(const float *x, size_t n) {
    return portable_max(x, n);
}

static void fill_portable(struct sk_kernels *k) {
    k->quantize_q8 = quantize_q8;
    k->rms_norm = rms_norm;
    k->silu_mul = silu_mul;
    k->add = add;
    k->rope_adjacent = rope_adjacent;
    k->rope_halves = rope_halves;
    k->to_half = to_half;
    k->attention_tile = attention_tile;
    k->attention_merge = attention_merge;
    k->max = max;
}

#endif
