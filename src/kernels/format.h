/* Weight formats: how a tensor's rows are stored in the file, and how they are repacked for the matrix product.
 *
 * A *panel* holds SK_PANEL_ROWS output rows interleaved, so that a vector register's lanes are output rows and no
 * sum ever runs across lanes. A panel is a sequence of *panel blocks*: one block of k values of each of the rows.
 * Adding a format is one file (formats/NAME.c) and a line in format.c; faster versions of its matrix product may
 * follow in the instruction-set files. */
#ifndef SK_KERNELS_FORMAT_H
#define SK_KERNELS_FORMAT_H

#include <stddef.h>
#include <stdint.h>

enum { SK_PANEL_ROWS = 8 };

/* What a format's product takes as its right-hand side. */
enum sk_activation {
    SK_ACT_F32,  /* float as it is */
    SK_ACT_Q8_32 /* int8 in blocks of 32 with one scale each: struct sk_q8_scale */
};

/* Scale of one block of 32 quantised activations. x[i] is about d * q[i]. */
struct sk_q8_scale {
    float d;     /* amax / 127 */
    float dsum;  /* d * (float)sum, rounded once */
    int32_t sum; /* sum of the block's q */
    int32_t pad;
};

/* One call of a matrix product: rows [0, rows) of the activations times panels [0, n_panels). */
struct sk_matmul {
    const uint8_t *panels;
    size_t n_panels, panel_bytes;
    size_t k; /* length of a row; a multiple of the format's block */
    size_t rows;
    const float *x; /* SK_ACT_F32: [rows][x_stride] */
    size_t x_stride;
    const int8_t *q;                  /* SK_ACT_Q8_32: [rows][k] */
    const struct sk_q8_scale *scales; /* [rows][k / 32] */
    float *y;                         /* [rows][y_stride]; writes SK_PANEL_ROWS * n_panels values of each row */
    size_t y_stride;
};

typedef void sk_matmul_fn(const struct sk_matmul *m);

enum sk_format_index {
    SK_FMT_F32,
    SK_FMT_F16,
    SK_FMT_BF16,
    SK_FMT_Q4_0,
    SK_FMT_Q4_1,
    SK_FMT_Q5_0,
    SK_FMT_Q5_1,
    SK_FMT_Q8_0,
    SK_N_FORMATS
};

struct sk_format {
    enum sk_format_index index;
    uint32_t type; /* the number in GGUF files */
    const char *name;
    enum sk_activation activation;
    size_t block_k;           /* k values per block */
    size_t block_bytes;       /* bytes of a block of one row in the file */
    size_t panel_block_bytes; /* bytes of a block of SK_PANEL_ROWS rows in a panel */

    /* n values (a multiple of block_k) of a row of the file as floats, exactly as ggml defines them. */
    void (*dequantize)(const void *src, float *dst, size_t n);
    /* SK_PANEL_ROWS rows of the file, k values each, into one panel of k / block_k panel blocks. */
    void (*pack)(const uint8_t *const rows[SK_PANEL_ROWS], size_t k, uint8_t *panel);
    /* The definition of the product (docs/NUMERICS.md), in scalar code. */
    sk_matmul_fn *matmul;
};

/* The format of a GGUF tensor type; NULL if this build cannot compute with it. */
const struct sk_format *sk_format_for_type(uint32_t type);
const struct sk_format *sk_format_at(enum sk_format_index index);

#endif
