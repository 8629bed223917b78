/* AVX-512 with VNNI: products with int8 activations, two panels (16 output rows) to a register. What is not here
 * is the AVX2 table's. vpdpbusd multiplies unsigned by signed bytes and adds four products to an int32, so
 * nothing can overflow and the sums stay exact in any order. */
#include <immintrin.h>

#include "isa.h"
#include "portable_table.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_TILE_ROWS = 8 };

struct block_shape {
    size_t panel_block_bytes;
    bool has_min;
    int32_t offset;                                              /* taken off the unsigned quants */
    __m512i (*group)(const uint8_t *a, const uint8_t *b, int g); /* four k of the rows of two panel blocks */
};

INLINE __m512i load_two(const uint8_t *a, const uint8_t *b) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)a)),
                              _mm256_loadu_si256((const __m256i *)(const void *)b), 1);
}
INLINE __m512 halves_two(const uint8_t *a, const uint8_t *b) {
    return _mm512_cvtph_ps(
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                _mm_loadu_si128((const __m128i *)(const void *)b), 1));
}
INLINE __m512i broadcast4(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}

INLINE __m512i nibbles(const uint8_t *a, const uint8_t *b, int g) {
    const __m512i both = load_two(a + g / 2 * 32, b + g / 2 * 32), low = _mm512_set1_epi8(15);
    return _mm512_and_si512(g % 2 ? _mm512_srli_epi16(both, 4) : both, low);
}
INLINE __m512i fifth_bits(const uint8_t *a, const uint8_t *b, int g) {
    const __m512i all = load_two(a, b);
    const __m128i left = _mm_cvtsi32_si128(g < 4 ? 4 - g : 0), right = _mm_cvtsi32_si128(g < 4 ? 0 : g - 4);
    const __m512i at_bit_4 = g < 4 ? _mm512_sll_epi16(all, left) : _mm512_srl_epi16(all, right);
    return _mm512_and_si512(at_bit_4, _mm512_set1_epi8(16));
}
INLINE __m512i group_q4_0(const uint8_t *a, const uint8_t *b, int g) {
    return nibbles(a + 16, b + 16, g);
}
INLINE __m512i group_q4_1(const uint8_t *a, const uint8_t *b, int g) {
    return nibbles(a + 32, b + 32, g);
}
INLINE __m512i group_q5_0(const uint8_t *a, const uint8_t *b, int g) {
    return _mm512_or_si512(nibbles(a + 48, b + 48, g), fifth_bits(a + 16, b + 16, g));
}
INLINE __m512i group_q5_1(const uint8_t *a, const uint8_t *b, int g) {
    return _mm512_or_si512(nibbles(a + 64, b + 64, g), fifth_bits(a + 32, b + 32, g));
}
/* Signed bytes plus 128 are unsigned ones. */
INLINE __m512i group_q8_0(const uint8_t *a, const uint8_t *b, int g) {
    return _mm512_xor_si512(load_two(a + 16 + g * 32, b + 16 + g * 32), _mm512_set1_epi8((char)-128));
}

/* Panels `panel` and `panel + 1` (or the former twice, if it is the last) times R rows. */
INLINE void q8_tile(const struct sk_matmul *m, size_t panel, size_t row, const size_t R, const struct block_shape s) {
    const size_t blocks = m->k / 32;
    const bool two = panel + 1 < m->n_panels;
    const uint8_t *a = m->panels + panel * m->panel_bytes, *b = two ? a + m->panel_bytes : a;
    const int8_t *q = m->q + row * m->k;
    const struct sk_q8_scale *scales = m->scales + row * blocks;
    __m512 acc[MAX_TILE_ROWS];
    SK_UNROLL
    for (size_t r = 0; r < R; r++) acc[r] = _mm512_setzero_ps();
    for (size_t i = 0; i < blocks; i++, a += s.panel_block_bytes, b += s.panel_block_bytes, q += 32, scales++) {
        __m512i isum[MAX_TILE_ROWS];
        if (row == 0) {
            sk_prefetch_block(a, s.panel_block_bytes);
            sk_prefetch_block(b, s.panel_block_bytes);
        }
        SK_UNROLL
        for (size_t r = 0; r < R; r++)
            isum[r] = s.offset ? _mm512_set1_epi32(-s.offset * scales[r * blocks].sum) : _mm512_setzero_si512();
        SK_UNROLL
        for (int g = 0; g < 8; g++) {
            const __m512i w = s.group(a, b, g);
            SK_UNROLL
            for (size_t r = 0; r < R; r++) isum[r] = _mm512_dpbusd_epi32(isum[r], w, broadcast4(q + r * m->k + g * 4));
        }
        const __m512 d = halves_two(a, b);
        const __m512 min = s.has_min ? halves_two(a + 16, b + 16) : _mm512_setzero_ps();
        SK_UNROLL
        for (size_t r = 0; r < R; r++) {
            const struct sk_q8_scale *x = scales + r * blocks;
            acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x->d)), _mm512_cvtepi32_ps(isum[r]), acc[r]);
            if (s.has_min) acc[r] = _mm512_fmadd_ps(min, _mm512_set1_ps(x->dsum), acc[r]);
        }
    }
    SK_UNROLL
    for (size_t r = 0; r < R; r++) {
        float *y = m->y + (row + r) * m->y_stride + panel * SK_PANEL_ROWS;
        if (two)
            _mm512_storeu_ps(y, acc[r]);
        else
            _mm256_storeu_ps(y, _mm512_castps512_ps256(acc[r]));
    }
}

INLINE void q8_matmul(const struct sk_matmul *m, const struct block_shape s) {
    const size_t tiles = (m->rows + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS;
    for (size_t p = 0; p < m->n_panels; p += 2) {
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
    q8_matmul(m, (struct block_shape){144, false, 8, group_q4_0});
}
static void matmul_q4_1(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){160, true, 0, group_q4_1});
}
static void matmul_q5_0(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){176, false, 16, group_q5_0});
}
static void matmul_q5_1(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){192, true, 0, group_q5_1});
}
static void matmul_q8_0(const struct sk_matmul *m) {
    q8_matmul(m, (struct block_shape){272, false, 128, group_q8_0});
}

/* ---- attention ----------------------------------------------------------------------------------------- */

/* A tile's 32 positions are two registers; keys and values are widened as they are loaded, once for up to four queries.
 */
INLINE __m512 load_halves(const uint16_t *h) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)h));
}

INLINE void scores(const uint16_t *k, size_t head_dim, const float *const *queries, const size_t Q, float *out) {
    __m512 acc[4][2];
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) acc[i][0] = acc[i][1] = _mm512_setzero_ps();
    for (size_t d = 0; d < head_dim; d++, k += SK_TILE) {
        const __m512 low = load_halves(k), high = load_halves(k + 16);
        SK_UNROLL
        for (size_t i = 0; i < Q; i++) {
            const __m512 x = _mm512_set1_ps(queries[i][d]);
            acc[i][0] = _mm512_fmadd_ps(x, low, acc[i][0]);
            acc[i][1] = _mm512_fmadd_ps(x, high, acc[i][1]);
        }
    }
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) {
        _mm512_storeu_ps(out + i * SK_TILE, acc[i][0]);
        _mm512_storeu_ps(out + i * SK_TILE + 16, acc[i][1]);
    }
}

/* 16 J value dimensions of Q queries that see the same positions. */
INLINE void weigh(const uint16_t *v, size_t stride, const float *weights, size_t first, size_t count, const size_t Q,
                  const size_t J, float *out) {
    __m512 acc[4][4];
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) SK_UNROLL
    for (size_t j = 0; j < J; j++) acc[i][j] = _mm512_setzero_ps();
    for (size_t p = first; p < first + count; p++) SK_UNROLL
    for (size_t j = 0; j < J; j++) {
        const __m512 x = load_halves(v + p * stride + 16 * j);
        SK_UNROLL
        for (size_t i = 0; i < Q; i++)
            acc[i][j] = _mm512_fmadd_ps(_mm512_set1_ps(weights[i * SK_TILE + p]), x, acc[i][j]);
    }
    SK_UNROLL
    for (size_t i = 0; i < Q; i++) SK_UNROLL
    for (size_t j = 0; j < J; j++) _mm512_storeu_ps(out + i * stride + 16 * j, acc[i][j]);
}

INLINE void weigh_all(const struct sk_attention_tile *t, const float *weights, size_t i, const size_t Q) {
    const size_t n = t->head_dim_v;
    float *out = t->out + i * n;
    size_t d = 0;
    for (; d + 64 <= n; d += 64) weigh(t->v + d, n, weights, t->first[i], t->count[i], Q, 4, out + d);
    for (; d + 16 <= n; d += 16) weigh(t->v + d, n, weights, t->first[i], t->count[i], Q, 1, out + d);
}

static void weigh_group(const struct sk_attention_tile *t, const float *weights, size_t i, size_t n) {
    switch (n) {
    case 1: weigh_all(t, weights, i, 1); break;
    case 2: weigh_all(t, weights, i, 2); break;
    case 3: weigh_all(t, weights, i, 3); break;
    default: weigh_all(t, weights, i, 4); break;
    }
}

static void attention_tile_avx512(const struct sk_attention_tile *t) {
    float *score = t->scratch;
    for (size_t i = 0, n; i < t->n_queries; i += n) {
        n = t->n_queries - i < 4 ? t->n_queries - i : 4;
        switch (n) {
        case 1: scores(t->k, t->head_dim, t->queries + i, 1, score); break;
        case 2: scores(t->k, t->head_dim, t->queries + i, 2, score); break;
        case 3: scores(t->k, t->head_dim, t->queries + i, 3, score); break;
        default: scores(t->k, t->head_dim, t->queries + i, 4, score); break;
        }
        for (size_t q = 0; q < n; q++)
            portable_softmax_tile(score + q * SK_TILE, t->first[i + q], t->count[i + q], t->scale, &t->max[i + q],
                                  &t->sum[i + q]);
        for (size_t q = 0, same; q < n; q += same) { /* queries of one row see the same positions */
            same = 1;
            while (q + same < n && t->first[i + q + same] == t->first[i + q] &&
                   t->count[i + q + same] == t->count[i + q])
                same++;
            weigh_group(t, score + q * SK_TILE, i + q, same);
        }
    }
}

/* Heads of 8 more dimensions than a multiple of 16 are rare: they take the definition's own way. */
static void attention_any_dims(const struct sk_attention_tile *t) {
    if (t->head_dim_v % 16)
        portable_attention_tile(t);
    else
        attention_tile_avx512(t);
}

void sk_kernels_init_avx512(struct sk_kernels *k) {
    const struct sk_kernels avx2 = *k;
    fill_portable(k);
    k->name = "avx512";
    k->row_cost = 0.15f;
    k->to_half = avx2.to_half;
    k->quantize_q8 = avx2.quantize_q8;
    k->attention_tile = attention_any_dims;
    k->matmul[SK_FMT_Q4_0] = matmul_q4_0;
    k->matmul[SK_FMT_Q4_1] = matmul_q4_1;
    k->matmul[SK_FMT_Q5_0] = matmul_q5_0;
    k->matmul[SK_FMT_Q5_1] = matmul_q5_1;
    k->matmul[SK_FMT_Q8_0] = matmul_q8_0;
}
