/* AVX2, FMA and F16C: matrix products, attention and half conversion by hand; the rest is portable.h, vectorised.
 * Lanes are output rows (products), positions (scores) or value dimensions (attention): never parts of one sum. */
#include <immintrin.h>
#include <math.h>

#include "isa.h"
#include "portable_table.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_TILE_ROWS = 8 };

/* ---- products with int8 activations ------------------------------------------------------------------- */

/* What a format's inner loop needs: its quants as bytes, four k of the eight rows at a time. */
struct block_shape {
    size_t panel_block_bytes;
    bool signed_quants; /* multiply |w| by x with w's sign; otherwise w is unsigned and `offset` is taken off */
    bool has_min;       /* a second run of halves: the block's minimum */
    int32_t offset;
    int widen_every; /* groups whose pair sums an int16 can hold: groups * 2 * max(w) * 127 < 32768 */
    __m256i (*group)(const uint8_t *panel_block, int g);
};

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE __m256 load_halves(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE __m256i broadcast4(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE __m256i nibbles(const uint8_t *quants, int g) {
    const __m256i both = load(quants + g / 2 * 32), low = _mm256_set1_epi8(15);
    return _mm256_and_si256(g % 2 ? _mm256_srli_epi16(both, 4) : both, low);
}
INLINE __m256i fifth_bits(const uint8_t *high, int g) {
    const __m256i all = load(high);
    const __m256i at_bit_4 = g < 4 ? _mm256_slli_epi16(all, 4 - g) : _mm256_srli_epi16(all, g - 4);
    return _mm256_and_si256(at_bit_4, _mm256_set1_epi8(16));
}
INLINE __m256i group_q4_0(const uint8_t *b, int g) {
    return nibbles(b + 16, g);
}
INLINE __m256i group_q4_1(const uint8_t *b, int g) {
    return nibbles(b + 32, g);
}
INLINE __m256i group_q5_0(const uint8_t *b, int g) {
    return _mm256_or_si256(nibbles(b + 48, g), fifth_bits(b + 16, g));
}
INLINE __m256i group_q5_1(const uint8_t *b, int g) {
    return _mm256_or_si256(nibbles(b + 64, g), fifth_bits(b + 32, g));
}
INLINE __m256i group_q8_0(const uint8_t *b, int g) {
    return load(b + 16 + g * 32);
}

/* One panel times R rows of activations, starting at row `row`. */
INLINE void q8_tile(const struct sk_matmul *m, size_t panel, size_t row, const size_t R, const struct block_shape s) {
    const size_t blocks = m->k / 32;
    const uint8_t *block = m->panels + panel * m->panel_bytes;
    const int8_t *q = m->q + row * m->k;
    const struct sk_q8_scale *scales = m->scales + row * blocks;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256 acc[MAX_TILE_ROWS];
    SK_UNROLL
    for (size_t r = 0; r < R; r++) acc[r] = _mm256_setzero_ps();
    for (size_t b = 0; b < blocks; b++, block += s.panel_block_bytes, q += 32, scales++) {
        __m256i sum16[MAX_TILE_ROWS], sum32[MAX_TILE_ROWS];
        if (row == 0) sk_prefetch_block(block, s.panel_block_bytes);
        SK_UNROLL
        for (int g = 0; g < 8; g++) {
            const __m256i w = s.group(block, g);
            const __m256i magnitude = s.signed_quants ? _mm256_abs_epi8(w) : w;
            SK_UNROLL
            for (size_t r = 0; r < R; r++) {
                __m256i x = broadcast4(q + r * m->k + g * 4);
                if (s.signed_quants) x = _mm256_sign_epi8(x, w);
                const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
                sum16[r] = g % s.widen_every == 0 ? pairs : _mm256_add_epi16(sum16[r], pairs);
                if ((g + 1) % s.widen_every == 0) {
                    const __m256i wide = _mm256_madd_epi16(sum16[r], ones);
                    sum32[r] = g + 1 == s.widen_every ? wide : _mm256_add_epi32(sum32[r], wide);
                }
            }
        }
        const __m256 d = load_halves(block);
        const __m256 min = s.has_min ? load_halves(block + 16) : _mm256_setzero_ps();
        SK_UNROLL
        for (size_t r = 0; r < R; r++) {
            const struct sk_q8_scale *a = scales + r * blocks;
            __m256i isum = sum32[r];
            if (s.offset) isum = _mm256_sub_epi32(isum, _mm256_set1_epi32(s.offset * a->sum));
            acc[r] = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a->d)), _mm256_cvtepi32_ps(isum), acc[r]);
            if (s.has_min) acc[r] = _mm256_fmadd_ps(min, _mm256_set1_ps(a->dsum), acc[r]);
        }
    }
    SK_UNROLL
    for (size_t r = 0; r < R; r++) _mm256_storeu_ps(m->y + (row + r) * m->y_stride + panel * SK_PANEL_ROWS, acc[r]);
}

/* All panels times all rows: a panel stays in the first-level cache while tiles of up to 8 rows pass over it. */
INLINE void q8_matmul(const struct sk_matmul *m, const struct block_shape s) {
    const size_t tiles = (m->rows + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS;
    for (size_t p = 0; p < m->n_panels; p++) {
        for (size_t t = 0; t < tiles; t++) {
            const size_t row = m->rows * t / tiles, n = m->rows * (t + 1) / tiles - row;
            switch (n) {
            case 1: q8_tile(m, p, row, 1, s); break;
            case 2: q8_tile(m, p, row, 2, s); break;
            case 3: q8_tile(m, p, row, 3, s); break;
            case 4: q8_tile(m, p, row, 4, s); break;
            case 5: q8_tile(m, p, row, 5, s); break;
            case 6: q8_tile(m, p, row, 6, s); break;
            case 7: q8_tile(m, p, row, 7, s); break;
            default: q8_tile(m, p, row, 8, s); break;
            }
        }
    }
}

static void matmul_q4_0(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){144, false, false, 8, 8, group_q4_0});
}
static void matmul_q4_1(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){160, false, true, 0, 8, group_q4_1});
}
static void matmul_q5_0(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){176, false, false, 16, 4, group_q5_0});
}
static void matmul_q5_1(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){192, false, true, 0, 4, group_q5_1});
}
static void matmul_q8_0(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){272, true, false, 0, 1, group_q8_0});
}

/* ---- products with float activations ------------------------------------------------------------------ */

INLINE __m256 weights_f32(const uint8_t *p) {
    return _mm256_loadu_ps((const float *)(const void *)p);
}
INLINE __m256 weights_f16(const uint8_t *p) {
    return load_halves(p);
}
INLINE __m256 weights_bf16(const uint8_t *p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)), 16));
}

/* P panels times R rows: P * R chains of fma, enough of them to hide the latency of one. */
INLINE void float_tile(const struct sk_matmul *m, size_t panel, size_t row, const size_t P, const size_t R,
                       const size_t step, __m256 (*weights)(const uint8_t *)) {
    const uint8_t *w = m->panels + panel * m->panel_bytes;
    const float *x = m->x + row * m->x_stride;
    __m256 acc[8];
    SK_UNROLL
    for (size_t i = 0; i < P * R; i++) acc[i] = _mm256_setzero_ps();
    for (size_t k = 0; k < m->k; k++) {
        SK_UNROLL
        for (size_t p = 0; p < P; p++) {
            const __m256 v = weights(w + p * m->panel_bytes + k * step);
            SK_UNROLL
            for (size_t r = 0; r < R; r++)
                acc[p * R + r] = _mm256_fmadd_ps(v, _mm256_set1_ps(x[r * m->x_stride + k]), acc[p * R + r]);
        }
    }
    SK_UNROLL
    for (size_t p = 0; p < P; p++) SK_UNROLL
    for (size_t r = 0; r < R; r++)
        _mm256_storeu_ps(m->y + (row + r) * m->y_stride + (panel + p) * SK_PANEL_ROWS, acc[p * R + r]);
}

INLINE void float_matmul(const struct sk_matmul *m, const size_t step, __m256 (*weights)(const uint8_t *)) {
    for (size_t p = 0; p < m->n_panels;) {
        const size_t panels = m->n_panels - p >= 4 ? 4 : (m->n_panels - p >= 2 ? 2 : 1);
        size_t row = 0;
        for (; row + 4 <= m->rows && panels >= 2; row += 4)
            for (size_t i = 0; i < panels; i += 2) float_tile(m, p + i, row, 2, 4, step, weights);
        for (; row + 2 <= m->rows && panels == 4; row += 2) float_tile(m, p, row, 4, 2, step, weights);
        for (; row < m->rows; row++) {
            if (panels == 4)
                float_tile(m, p, row, 4, 1, step, weights);
            else if (panels == 2)
                float_tile(m, p, row, 2, 1, step, weights);
            else
                float_tile(m, p, row, 1, 1, step, weights);
        }
        p += panels;
    }
}

static void matmul_f32(const struct sk_matmul *m) {
    float_matmul(m, 32, weights_f32);
}
static void matmul_f16(const struct sk_matmul *m) {
    float_matmul(m, 16, weights_f16);
}
static void matmul_bf16(const struct sk_matmul *m) {
    float_matmul(m, 16, weights_bf16);
}

/* ---- attention ---------------------------------------------------------------------------------------- */

static void widen(const uint16_t *h, size_t n, float *out) {
    for (size_t i = 0; i < n; i += 8) _mm256_storeu_ps(out + i, load_halves((const uint8_t *)(h + i)));
}

/* Scores of Q queries against the tile: lanes are positions, one chain per score in ascending dimension. */
INLINE void scores(const float *k, size_t head_dim, const float *const *queries, const size_t Q, float *out) {
    __m256 acc[2][4];
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) SK_UNROLL
    for (int j = 0; j < 4; j++) acc[i][j] = _mm256_setzero_ps();
    for (size_t d = 0; d < head_dim; d++, k += SK_TILE) {
        SK_UNROLL
        for (size_t i = 0; i < Q; i++) {
            const __m256 x = _mm256_set1_ps(queries[i][d]);
            SK_UNROLL
            for (int j = 0; j < 4; j++) acc[i][j] = _mm256_fmadd_ps(x, _mm256_loadu_ps(k + 8 * j), acc[i][j]);
        }
    }
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) SK_UNROLL
    for (int j = 0; j < 4; j++) _mm256_storeu_ps(out + i * SK_TILE + 8 * (size_t)j, acc[i][j]);
}

/* out[0..8J) of one query: weighted values in ascending position; lanes are value dimensions. */
INLINE void weigh(const float *v, size_t stride, const float *weights, size_t first, size_t count, const int J,
                  float *out) {
    __m256 acc[8];
    SK_UNROLL
    for (int j = 0; j < J; j++) acc[j] = _mm256_setzero_ps();
    for (size_t p = first; p < first + count; p++) {
        const __m256 w = _mm256_set1_ps(weights[p]);
        SK_UNROLL
        for (int j = 0; j < J; j++) acc[j] = _mm256_fmadd_ps(w, _mm256_loadu_ps(v + p * stride + 8 * j), acc[j]);
    }
    SK_UNROLL
    for (int j = 0; j < J; j++) _mm256_storeu_ps(out + 8 * j, acc[j]);
}

static void attention_tile_avx2(const struct sk_attention_tile *t) {
    float *k = t->scratch, *v = k + SK_TILE * t->head_dim, *score = v + SK_TILE * t->head_dim_v;
    widen(t->k, SK_TILE * t->head_dim, k);
    /* Rows of v past the last visible position may hold anything, but widening cannot harm: they are not used. */
    widen(t->v, SK_TILE * t->head_dim_v, v);
    size_t i = 0;
    for (; i + 2 <= t->n_queries; i += 2) scores(k, t->head_dim, t->queries + i, 2, score + i * SK_TILE);
    if (i < t->n_queries) scores(k, t->head_dim, t->queries + i, 1, score + i * SK_TILE);
    for (i = 0; i < t->n_queries; i++) {
        float *s = score + i * SK_TILE, *out = t->out + i * t->head_dim_v;
        portable_softmax_tile(s, t->first[i], t->count[i], t->scale, &t->max[i], &t->sum[i]);
        size_t d = 0;
        for (; d + 64 <= t->head_dim_v; d += 64) weigh(v + d, t->head_dim_v, s, t->first[i], t->count[i], 8, out + d);
        for (; d + 32 <= t->head_dim_v; d += 32) weigh(v + d, t->head_dim_v, s, t->first[i], t->count[i], 4, out + d);
        for (; d < t->head_dim_v; d += 8) weigh(v + d, t->head_dim_v, s, t->first[i], t->count[i], 1, out + d);
    }
}

/* ---- quantising activations ---------------------------------------------------------------------------- */

/* What is no number is passed over, as in the definition: max gives its second operand then. */
static float greatest(const __m256 m) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static int32_t total(const __m256i v) {
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

static void quantize_q8_avx2(const float *x, size_t n, int8_t *q, struct sk_q8_scale *scales) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* undoes the packing within halves */
    for (size_t b = 0; b < n / 32; b++, x += 32, q += 32) {
        __m256 m = _mm256_set1_ps(-INFINITY);
        for (size_t i = 0; i < 32; i += 8) m = _mm256_max_ps(_mm256_and_ps(_mm256_loadu_ps(x + i), magnitude), m);
        const float amax = greatest(m), inverse = amax < 0x1p-100f ? 0.0f : 127.0f / amax;
        __m256i v[4], sum = _mm256_setzero_si256();
        for (size_t i = 0; i < 4; i++) {
            const __m256 scaled = _mm256_round_ps(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse)),
                                                  _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            const __m256 bounded =
                _mm256_min_ps(_mm256_max_ps(scaled, _mm256_set1_ps(-127.0f)), _mm256_set1_ps(127.0f));
            v[i] = _mm256_cvtps_epi32(bounded);
            sum = _mm256_add_epi32(sum, v[i]);
        }
        const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
        _mm256_storeu_si256((__m256i *)(void *)q, _mm256_permutevar8x32_epi32(bytes, in_order));
        const int32_t s = total(sum);
        const float d = amax / 127.0f;
        scales[b] = (struct sk_q8_scale){.d = d, .dsum = d * (float)s, .sum = s};
    }
}

static void to_half_avx2(const float *x, size_t n, uint16_t *y) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) y[i] = sk_float_to_half(x[i]);
}

void sk_kernels_init_avx2(struct sk_kernels *k) {
    k->name = "avx2";
    k->row_cost = 0.33f;
    fill_portable(k);
    k->to_half = to_half_avx2;
    k->quantize_q8 = quantize_q8_avx2;
    k->attention_tile = attention_tile_avx2;
    k->matmul[SK_FMT_F32] = matmul_f32;
    k->matmul[SK_FMT_F16] = matmul_f16;
    k->matmul[SK_FMT_BF16] = matmul_bf16;
    k->matmul[SK_FMT_Q4_0] = matmul_q4_0;
    k->matmul[SK_FMT_Q4_1] = matmul_q4_1;
    k->matmul[SK_FMT_Q5_0] = matmul_q5_0;
    k->matmul[SK_FMT_Q5_1] = matmul_q5_1;
    k->matmul[SK_FMT_Q8_0] = matmul_q8_0;
}
