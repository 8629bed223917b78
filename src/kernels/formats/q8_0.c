/* Q8_0: blocks of 32, w = d n with n a signed byte.
 * File block: f16 d; 32 signed bytes.
 * Panel block: f16 d[8]; 8 runs of 32 bytes: byte 4 * row + j of run i holds k = 4 i + j. */
#include "formats.h"

enum { BLOCK = 34, PANEL_BLOCK = 16 + 256 };

static void dequantize(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t b = 0; b < n / 32; b++, p += BLOCK) {
        const float d = sk_panel_half(p, 0);
        for (size_t k = 0; k < 32; k++) dst[b * 32 + k] = (float)(int8_t)p[2 + k] * d;
    }
}

static void pack(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel) {
    for (size_t b = 0; b < k / 32; b++, panel += PANEL_BLOCK) {
        for (size_t r = 0; r < SK_PANEL_ROWS; r++) {
            const uint8_t *block = rows[r] + b * BLOCK;
            memcpy(panel + 2 * r, block, 2);
            for (size_t i = 0; i < 8; i++) memcpy(panel + 16 + i * 32 + r * 4, block + 2 + 4 * i, 4);
        }
    }
}

static float step(const uint8_t *block, size_t row, const int8_t *q, const struct sk_q8_scale *s, float acc) {
    int32_t isum = 0;
    for (size_t k = 0; k < 32; k++) isum += (int8_t)block[16 + k / 4 * 32 + row * 4 + k % 4] * q[k];
    return fmaf(sk_panel_half(block, row) * s->d, (float)isum, acc);
}

static void matmul(const struct sk_matmul *m) {
    sk_matmul_by_blocks(m, PANEL_BLOCK, step);
}

const struct sk_format sk_format_q8_0 = {SK_FMT_Q8_0, 8,           "Q8_0",     SK_ACT_Q8_32, 32,
                                         BLOCK,       PANEL_BLOCK, dequantize, pack,         matmul};
