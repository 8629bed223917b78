/* Private to the formats: their list, and the scalar loops they share. */
#ifndef SK_FORMATS_H
#define SK_FORMATS_H

#include "kernels/format.h"
#include "kernels/half.h"

#include <math.h>
#include <string.h>

extern const struct sk_format sk_format_f32, sk_format_f16, sk_format_bf16, sk_format_q4_0, sk_format_q4_1,
    sk_format_q5_0, sk_format_q5_1, sk_format_q8_0;

/* Panel blocks of the formats with 4-bit quants: the 8 groups of 4 k are stored in 4 runs of 32 bytes; byte
 * 4 * row + j of run i holds k = 8 i + j in its low half and k = 8 i + 4 + j in its high half. */
static inline int sk_panel_nibble(const uint8_t *quants, size_t row, size_t k) {
    const uint8_t byte = quants[k / 8 * 32 + row * 4 + k % 4];
    return k % 8 < 4 ? byte & 15 : byte >> 4;
}
static inline void sk_panel_set_nibble(uint8_t *quants, size_t row, size_t k, int value) {
    quants[k / 8 * 32 + row * 4 + k % 4] |= (uint8_t)(k % 8 < 4 ? value : value << 4);
}
/* The fifth bits: bit k / 4 of byte 4 * row + k % 4. */
static inline int sk_panel_high_bit(const uint8_t *high, size_t row, size_t k) {
    return high[row * 4 + k % 4] >> (k / 4) & 1;
}

/* One step of an output element: adds one block of row `row` of a panel block to acc. */
typedef float sk_block_step(const uint8_t *panel_block, size_t row, const int8_t *q, const struct sk_q8_scale *s,
                            float acc);

/* The product as its definition says: one accumulator per output, blocks in ascending k. */
static inline void sk_matmul_by_blocks(const struct sk_matmul *m, size_t panel_block_bytes, sk_block_step *step) {
    const size_t blocks = m->k / 32;
    for (size_t p = 0; p < m->n_panels; p++) {
        const uint8_t *panel = m->panels + p * m->panel_bytes;
        for (size_t r = 0; r < m->rows; r++) {
            for (size_t lane = 0; lane < SK_PANEL_ROWS; lane++) {
                float acc = 0.0f;
                for (size_t b = 0; b < blocks; b++)
                    acc = step(panel + b * panel_block_bytes, lane, m->q + r * m->k + b * 32,
                               m->scales + r * blocks + b, acc);
                m->y[r * m->y_stride + p * SK_PANEL_ROWS + lane] = acc;
            }
        }
    }
}

/* The sixteen-bit scale of a row: panel blocks start with one or two runs of SK_PANEL_ROWS of them. */
static inline float sk_panel_half(const uint8_t *halves, size_t row) {
    uint16_t h;
    memcpy(&h, halves + 2 * row, sizeof h);
    return sk_half_to_float(h);
}

#endif
