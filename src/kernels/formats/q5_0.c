/* Q5_0: blocks of 32, w = d (n - 16) with n of 5 bits.
 * File block: f16 d; u32 fifth bits (bit k); 16 bytes, byte i holds the rest of k = i (low half) and k = i + 16.
 * Panel block: f16 d[8]; 32 bytes of fifth bits; 128 bytes of nibbles (formats.h). */
#include "formats.h"

enum { BLOCK = 22, PANEL_BLOCK = 16 + 32 + 128 };

static int quant(const uint8_t *block, size_t k) {
    const int low = k < 16 ? block[6 + k] & 15 : block[6 + k - 16] >> 4;
    return low | (block[2 + k / 8] >> (k % 8) & 1) << 4;
}

static void dequantize(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t b = 0; b < n / 32; b++, p += BLOCK) {
        const float d = sk_panel_half(p, 0);
        for (size_t k = 0; k < 32; k++) dst[b * 32 + k] = (float)(quant(p, k) - 16) * d;
    }
}

static void pack(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel) {
    for (size_t b = 0; b < k / 32; b++, panel += PANEL_BLOCK) {
        memset(panel, 0, PANEL_BLOCK);
        for (size_t r = 0; r < SK_PANEL_ROWS; r++) {
            const uint8_t *block = rows[r] + b * BLOCK;
            memcpy(panel + 2 * r, block, 2);
            for (size_t i = 0; i < 32; i++) {
                const int n = quant(block, i);
                panel[16 + r * 4 + i % 4] |= (uint8_t)((n >> 4) << (i / 4));
                sk_panel_set_nibble(panel + 48, r, i, n & 15);
            }
        }
    }
}

static float step(const uint8_t *block, size_t row, const int8_t *q, const struct sk_q8_scale *s, float acc) {
    int32_t isum = 0;
    for (size_t k = 0; k < 32; k++)
        isum += ((sk_panel_nibble(block + 48, row, k) | sk_panel_high_bit(block + 16, row, k) << 4) - 16) * q[k];
    return fmaf(sk_panel_half(block, row) * s->d, (float)isum, acc);
}

static void matmul(const struct sk_matmul *m) {
    sk_matmul_by_blocks(m, PANEL_BLOCK, step);
}

const struct sk_format sk_format_q5_0 = {SK_FMT_Q5_0, 6,           "Q5_0",     SK_ACT_Q8_32, 32,
                                         BLOCK,       PANEL_BLOCK, dequantize, pack,         matmul};
