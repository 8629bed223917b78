/* F32, F16 and BF16: the activations stay f32; a panel holds the SK_PANEL_ROWS values of k = 0, then of k = 1, … */
#include "formats.h"

static float load_f32(const uint8_t *p) {
    float f;
    memcpy(&f, p, sizeof f);
    return f;
}
static float load_f16(const uint8_t *p) {
    return sk_panel_half(p, 0);
}
static float load_bf16(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return sk_bf16_to_float(h);
}

static void matmul(const struct sk_matmul *m, size_t size, float (*load)(const uint8_t *)) {
    for (size_t p = 0; p < m->n_panels; p++) {
        for (size_t r = 0; r < m->rows; r++) {
            for (size_t lane = 0; lane < SK_PANEL_ROWS; lane++) {
                const uint8_t *w = m->panels + p * m->panel_bytes + lane * size;
                float acc = 0.0f;
                for (size_t k = 0; k < m->k; k++)
                    acc = fmaf(load(w + k * SK_PANEL_ROWS * size), m->x[r * m->x_stride + k], acc);
                m->y[r * m->y_stride + p * SK_PANEL_ROWS + lane] = acc;
            }
        }
    }
}

static void pack(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel, size_t size) {
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < SK_PANEL_ROWS; r++, panel += size) memcpy(panel, rows[r] + i * size, size);
}

static void dequantize_f32(const void *src, float *dst, size_t n) {
    memcpy(dst, src, n * sizeof *dst);
}
static void dequantize_f16(const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = load_f16((const uint8_t *)src + 2 * i);
}
static void dequantize_bf16(const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = load_bf16((const uint8_t *)src + 2 * i);
}

static void pack_4(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel) {
    pack(rows, k, panel, 4);
}
static void pack_2(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel) {
    pack(rows, k, panel, 2);
}

static void matmul_f32(const struct sk_matmul *m) {
    matmul(m, 4, load_f32);
}
static void matmul_f16(const struct sk_matmul *m) {
    matmul(m, 2, load_f16);
}
static void matmul_bf16(const struct sk_matmul *m) {
    matmul(m, 2, load_bf16);
}

const struct sk_format sk_format_f32 = {SK_FMT_F32, 0, "F32", SK_ACT_F32, 1, 4, 32, dequantize_f32, pack_4, matmul_f32};
const struct sk_format sk_format_f16 = {SK_FMT_F16, 1, "F16", SK_ACT_F32, 1, 2, 16, dequantize_f16, pack_2, matmul_f16};
const struct sk_format sk_format_bf16 = {SK_FMT_BF16, 30, "BF16",          SK_ACT_F32, 1,
                                         2,           16, dequantize_bf16, pack_2,     matmul_bf16};
