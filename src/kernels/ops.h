/* Operations on whole batches, spread over the compute threads. Rows are independent: no result depends on which rows
 * share a batch, on the number of threads, or on how the work was cut. */
#ifndef SK_KERNELS_OPS_H
#define SK_KERNELS_OPS_H

#include "base/pool.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"

struct sk_ops {
    const struct sk_kernels *kernels;
    struct sk_pool *pool;
};

/* A weight matrix, repacked: n_out output rows of k values. */
struct sk_weight {
    const struct sk_format *format;
    size_t n_out, k;
    size_t n_panels, panel_bytes;
    uint8_t *panels;
};
/* Floats between one row of a product's output and the next: whole panels. */
static inline size_t sk_weight_stride(const struct sk_weight *w) {
    return w->n_panels * SK_PANEL_ROWS;
}

/* Activations as a product takes them; memory is the caller's, sized by sk_activations_bytes. */
struct sk_activations {
    size_t rows, k;
    const float *x; /* [rows][k] */
    int8_t *q;
    struct sk_q8_scale *scales;
};
size_t sk_activations_bytes(size_t rows, size_t k);

/* Points `a` at x [rows][k] and, if k is a multiple of 32, quantises it into `memory`. */
void sk_op_quantize(const struct sk_ops *ops, const float *x, size_t rows, size_t k, void *memory,
                    struct sk_activations *a);

/* y[i] = a times w[i] for n (at most 4) matrices that share their input: y[i] is [rows][sk_weight_stride(w[i])]. */
void sk_op_matmul(const struct sk_ops *ops, const struct sk_activations *a, size_t n, const struct sk_weight *const *w,
                  float *const *y);

/* y[row] = rms_norm(x[row]) for rows of n values. */
void sk_op_rms_norm(const struct sk_ops *ops, const float *x, const float *weight, float eps, size_t rows, size_t n,
                    float *y);
/* y[row] = silu(gate[row]) * up[row]; gate and up have rows `stride` apart, y n. */
void sk_op_silu_mul(const struct sk_ops *ops, const float *gate, const float *up, size_t stride, size_t rows, size_t n,
                    float *y);
/* x[row] += y[row]; rows of x are n apart, of y `stride`. */
void sk_op_add(const struct sk_ops *ops, float *x, const float *y, size_t stride, size_t rows, size_t n);
/* x[row] += bias; rows `stride` apart. */
void sk_op_add_bias(const struct sk_ops *ops, float *x, const float *bias, size_t stride, size_t rows, size_t n);

/* What a layer with a running state steps: n_state floats, by n_input floats for each position. */
struct sk_recurrent_kind {
    size_t n_state, n_input;
    void (*step)(const void *ctx, float *state, const float *input);
    const void *ctx;
};
struct sk_recurrent; /* of a session: cache/recurrent.h */

/* Where each row of a batch stands. */
struct sk_row_place {
    uint32_t position;
    uint16_t *const *pages;         /* of the row's session: page i holds positions [i * SK_TILE, …) */
    struct sk_recurrent *recurrent; /* NULL for models without running states */
    /* Steps one layer's state with this row's input, and gives the state after it. Rows of a session come in position
     * order. */
    float *(*advance)(struct sk_recurrent *r, size_t layer, const float *input);
};

/* Rotary angles of a batch: cos and sin [rows][n_pairs]. */
struct sk_rope {
    size_t n_pairs;
    bool halves; /* pairs (i, i + n_pairs) instead of (2i, 2i + 1) */
    const float *cos, *sin;
};
/* Rotates the first 2 * n_pairs values of each of n_heads heads of each row. */
void sk_op_rope(const struct sk_ops *ops, const struct sk_rope *rope, float *x, size_t stride, size_t rows,
                size_t n_heads, size_t head_dim);
/* Writes the rows' keys and values (f32, rounded to f16) into the pages of their sessions. */
void sk_op_store_kv(const struct sk_ops *ops, const struct sk_kv_layout *layout, size_t layer,
                    const struct sk_row_place *places, size_t rows, const float *k, size_t k_stride, const float *v,
                    size_t v_stride);

struct sk_attention {
    const struct sk_kv_layout *layout;
    size_t layer;
    const struct sk_row_place *places;
    size_t rows, n_heads;
    uint32_t window; /* a row sees this many positions, itself the last; 0 = all */
    float scale;
    const float *q; /* [rows][q_stride] */
    size_t q_stride;
    float *out; /* [rows][n_heads * head_dim_v] */
    void *scratch;
};
size_t sk_attention_bytes(const struct sk_kv_layout *layout, size_t n_heads, size_t n_threads);
void sk_op_attention(const struct sk_ops *ops, const struct sk_attention *a);

/* Packs rows of a file's tensor (n_out rows of w->k values) into w->panels, in parallel. */
void sk_op_pack(struct sk_pool *pool, struct sk_weight *w, const uint8_t *data);

#endif
