/* Q4_0: blocks of 32, w = d (n - 8) with n of 4 bits.
 * File block: f16 d; 16 bytes, byte i holds n of k = i (low half) and k = i + 16 (high half).
 * Panel block: f16 d[8]; 128 bytes of nibbles (formats.h). */
#include "formats.h"

enum { BLOCK = 18, PANEL_BLOCK = 16 + 128 };

static void dequantize(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t b = 0; b < n / 32; b++, p += BLOCK) {
        const float d = sk_panel_half(p, 0);
        for (size_t i = 0; i < 16; i++) {
            dst[b * 32 + i] = (float)((p[2 + i] & 15) - 8) * d;
            dst[b * 32 + i + 16] = (float)((p[2 + i] >> 4) - 8) * d;
        }
    }
}

static void pack(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel) {
    for (size_t b = 0; b < k / 32; b++, panel += PANEL_BLOCK) {
        memset(panel, 0, PANEL_BLOCK);
        for (size_t r = 0; r < SK_PANEL_ROWS; r++) {
            const uint8_t *block = rows[r] + b * BLOCK;
            memcpy(panel + 2 * r, block, 2);
            for (size_t i = 0; i < 16; i++) {
                sk_panel_set_nibble(panel + 16, r, i, block[2 + i] & 15);
                sk_panel_set_nibble(panel + 16, r, i + 16, block[2 + i] >> 4);
            }
        }
    }
}

static float step(const uint8_t *block, size_t row, const int8_t *q, const struct sk_q8_scale *s, float acc) {
    int32_t isum = 0;
    for (size_t k = 0; k < 32; k++) isum += (sk_panel_nibble(block + 16, row, k) - 8) * q[k];
    return fmaf(sk_panel_half(block, row) * s->d, (float)isum, acc);
}

static void matmul(const struct sk_matmul *m) {
    sk_matmul_by_blocks(m, PANEL_BLOCK, step);
}

const struct sk_format sk_format_q4_0 = {SK_FMT_Q4_0, 2,           "Q4_0",     SK_ACT_Q8_32, 32,
                                         BLOCK,       PANEL_BLOCK, dequantize, pack,         matmul};
