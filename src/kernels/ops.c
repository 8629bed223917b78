#include "kernels/ops.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum {
    MAX_MATRICES = 4,
    CHUNKS_PER_THREAD = 8,   /* pieces of work per thread: enough to even out, few enough to cost nothing */
    TILE_BYTES = 384 * 1024, /* quantised activations that pass over a panel at a time: they stay in the L2 cache */
    ELEMENTS_PER_CHUNK = 8 * 1024, /* rows of elementwise work are grouped to about this many values */
};

/* ---- rows: elementwise work ---------------------------------------------------------------------------- */

struct row_job {
    void (*fn)(const void *args, size_t row);
    const void *args;
    size_t rows, rows_per_chunk;
};

static void run_row_chunk(void *ctx, size_t i, size_t thread) {
    (void)thread;
    const struct row_job *job = ctx;
    const size_t end = (i + 1) * job->rows_per_chunk;
    for (size_t row = i * job->rows_per_chunk; row < end && row < job->rows; row++) job->fn(job->args, row);
}

/* Calls fn for every row; a batch too small to be worth waking the threads runs at once. */
static void for_rows(const struct sk_ops *ops, size_t rows, size_t n, void (*fn)(const void *, size_t),
                     const void *args) {
    size_t per_chunk = ELEMENTS_PER_CHUNK / (n ? n : 1);
    if (per_chunk == 0) per_chunk = 1;
    struct row_job job = {fn, args, rows, per_chunk};
    sk_pool_run(ops->pool, (rows + per_chunk - 1) / per_chunk, run_row_chunk, &job);
}

struct elementwise {
    const struct sk_kernels *kernels;
    const float *a, *b, *weight;
    float eps;
    size_t n, a_stride, b_stride, y_stride;
    float *y;
    int8_t *q;
    struct sk_q8_scale *scales;
};

static void quantize_row(const void *args, size_t row) {
    const struct elementwise *e = args;
    e->kernels->quantize_q8(e->a + row * e->n, e->n, e->q + row * e->n, e->scales + row * (e->n / 32));
}
static void norm_row(const void *args, size_t row) {
    const struct elementwise *e = args;
    e->kernels->rms_norm(e->a + row * e->n, e->weight, e->eps, e->n, e->y + row * e->n);
}
static void silu_row(const void *args, size_t row) {
    const struct elementwise *e = args;
    e->kernels->silu_mul(e->a + row * e->a_stride, e->b + row * e->b_stride, e->n, e->y + row * e->y_stride);
}
static void add_row(const void *args, size_t row) {
    const struct elementwise *e = args;
    e->kernels->add(e->y + row * e->y_stride, e->b + row * e->b_stride, e->n);
}

size_t sk_activations_bytes(size_t rows, size_t k) {
    return sk_round_up(rows * k, 64) + rows * (k / 32 + 1) * sizeof(struct sk_q8_scale);
}

void sk_op_quantize(const struct sk_ops *ops, const float *x, size_t rows, size_t k, void *memory,
                    struct sk_activations *a) {
    *a = (struct sk_activations){.rows = rows, .k = k, .x = x};
    if (k % 32) return;
    a->q = memory;
    a->scales = (struct sk_q8_scale *)(void *)((char *)memory + sk_round_up(rows * k, 64));
    const struct elementwise e = {.kernels = ops->kernels, .a = x, .n = k, .q = a->q, .scales = a->scales};
    for_rows(ops, rows, k, quantize_row, &e);
}

void sk_op_rms_norm(const struct sk_ops *ops, const float *x, const float *weight, float eps, size_t rows, size_t n,
                    float *y) {
    const struct elementwise e = {.kernels = ops->kernels, .a = x, .weight = weight, .eps = eps, .n = n, .y = y};
    for_rows(ops, rows, n, norm_row, &e);
}

void sk_op_silu_mul(const struct sk_ops *ops, const float *gate, const float *up, size_t stride, size_t rows, size_t n,
                    float *y) {
    const struct elementwise e = {.kernels = ops->kernels,
                                  .a = gate,
                                  .b = up,
                                  .n = n,
                                  .a_stride = stride,
                                  .b_stride = stride,
                                  .y = y,
                                  .y_stride = n};
    for_rows(ops, rows, n, silu_row, &e);
}

void sk_op_add(const struct sk_ops *ops, float *x, const float *y, size_t stride, size_t rows, size_t n) {
    const struct elementwise e = {.kernels = ops->kernels, .b = y, .n = n, .b_stride = stride, .y = x, .y_stride = n};
    for_rows(ops, rows, n, add_row, &e);
}

void sk_op_add_bias(const struct sk_ops *ops, float *x, const float *bias, size_t stride, size_t rows, size_t n) {
    const struct elementwise e = {
        .kernels = ops->kernels, .b = bias, .n = n, .b_stride = 0, .y = x, .y_stride = stride};
    for_rows(ops, rows, n, add_row, &e);
}

/* ---- matrix products ----------------------------------------------------------------------------------- */

struct matmul_job {
    const struct sk_kernels *kernels;
    const struct sk_activations *a;
    const struct sk_weight *const *w;
    float *const *y;
    size_t panels_per_chunk, rows_per_tile, row_tiles;
    size_t first_chunk[MAX_MATRICES + 1]; /* of each matrix, in chunks of panels */
};

static void run_matmul_chunk(void *ctx, size_t i, size_t thread) {
    (void)thread;
    const struct matmul_job *job = ctx;
    const size_t chunk = i / job->row_tiles, row = i % job->row_tiles * job->rows_per_tile;
    size_t which = 0;
    while (chunk >= job->first_chunk[which + 1]) which++;
    const struct sk_weight *w = job->w[which];
    const struct sk_activations *a = job->a;
    const size_t panel = (chunk - job->first_chunk[which]) * job->panels_per_chunk;
    const size_t panels_left = w->n_panels - panel, rows_left = a->rows - row;
    const struct sk_matmul m = {
        .panels = w->panels + panel * w->panel_bytes,
        .n_panels = panels_left < job->panels_per_chunk ? panels_left : job->panels_per_chunk,
        .panel_bytes = w->panel_bytes,
        .k = w->k,
        .rows = rows_left < job->rows_per_tile ? rows_left : job->rows_per_tile,
        .x = a->x + row * a->k,
        .x_stride = a->k,
        .q = a->q ? a->q + row * a->k : NULL,
        .scales = a->scales ? a->scales + row * (a->k / 32) : NULL,
        .y = job->y[which] + row * sk_weight_stride(w) + panel * SK_PANEL_ROWS,
        .y_stride = sk_weight_stride(w),
    };
    job->kernels->matmul[w->format->index](&m);
}

void sk_op_matmul(const struct sk_ops *ops, const struct sk_activations *a, size_t n, const struct sk_weight *const *w,
                  float *const *y) {
    struct matmul_job job = {.kernels = ops->kernels, .a = a, .w = w, .y = y};
    size_t panels = 0;
    for (size_t i = 0; i < n; i++) panels += w[i]->n_panels;
    job.rows_per_tile = TILE_BYTES / (a->k ? a->k : 1) / 8 * 8;
    if (job.rows_per_tile < 16) job.rows_per_tile = 16;
    job.row_tiles = (a->rows + job.rows_per_tile - 1) / job.rows_per_tile;
    job.rows_per_tile = sk_round_up((a->rows + job.row_tiles - 1) / job.row_tiles, 8);
    job.row_tiles = (a->rows + job.rows_per_tile - 1) / job.rows_per_tile;
    /* Whole groups of 4 panels, so that kernels that take several at a time rarely meet an end. */
    job.panels_per_chunk = sk_round_up(panels / (sk_pool_threads(ops->pool) * CHUNKS_PER_THREAD) + 1, 4);
    for (size_t i = 0; i < n; i++)
        job.first_chunk[i + 1] =
            job.first_chunk[i] + (w[i]->n_panels + job.panels_per_chunk - 1) / job.panels_per_chunk;
    sk_pool_run(ops->pool, job.first_chunk[n] * job.row_tiles, run_matmul_chunk, &job);
}

struct pack_job {
    struct sk_weight *w;
    const uint8_t *data;
    size_t row_bytes;
};

enum { PACK_PANELS = 16 };

static void run_pack_chunk(void *ctx, size_t i, size_t thread) {
    (void)thread;
    const struct pack_job *job = ctx;
    struct sk_weight *w = job->w;
    for (size_t p = i * PACK_PANELS; p < (i + 1) * PACK_PANELS && p < w->n_panels; p++) {
        const uint8_t *rows[SK_PANEL_ROWS];
        /* Rows past the end of the last panel repeat its last real row; nobody reads what they give. */
        for (size_t r = 0; r < SK_PANEL_ROWS; r++) {
            const size_t row = p * SK_PANEL_ROWS + r;
            rows[r] = job->data + (row < w->n_out ? row : w->n_out - 1) * job->row_bytes;
        }
        w->format->pack(rows, w->k, w->panels + p * w->panel_bytes);
    }
}

void sk_op_pack(struct sk_pool *pool, struct sk_weight *w, const uint8_t *data) {
    struct pack_job job = {w, data, w->k / w->format->block_k * w->format->block_bytes};
    sk_pool_run(pool, (w->n_panels + PACK_PANELS - 1) / PACK_PANELS, run_pack_chunk, &job);
}

/* ---- rotary embedding and the key-value cache ---------------------------------------------------------- */

struct rope_job {
    const struct sk_kernels *kernels;
    const struct sk_rope *rope;
    float *x;
    size_t stride, n_heads, head_dim;
};

static void rope_row(const void *args, size_t row) {
    const struct rope_job *job = args;
    const struct sk_rope *rope = job->rope;
    const float *cos = rope->cos + row * rope->n_pairs, *sin = rope->sin + row * rope->n_pairs;
    for (size_t h = 0; h < job->n_heads; h++) {
        float *x = job->x + row * job->stride + h * job->head_dim;
        if (rope->halves)
            job->kernels->rope_halves(x, cos, sin, rope->n_pairs);
        else
            job->kernels->rope_adjacent(x, cos, sin, rope->n_pairs);
    }
}

void sk_op_rope(const struct sk_ops *ops, const struct sk_rope *rope, float *x, size_t stride, size_t rows,
                size_t n_heads, size_t head_dim) {
    const struct rope_job job = {ops->kernels, rope, x, stride, n_heads, head_dim};
    for_rows(ops, rows, n_heads * head_dim, rope_row, &job);
}

struct store_job {
    const struct sk_kernels *kernels;
    const struct sk_kv_layout *layout;
    size_t layer;
    const struct sk_row_place *places;
    const float *k, *v;
    size_t k_stride, v_stride;
};

static void store_row(const void *args, size_t row) {
    const struct store_job *job = args;
    const struct sk_kv_layout *l = job->layout;
    const uint32_t position = job->places[row].position;
    uint16_t *page = job->places[row].pages[position / SK_TILE];
    const size_t slot = position % SK_TILE;
    for (size_t h = 0; h < l->n_kv_heads; h++) {
        uint16_t *keys = sk_kv_keys(l, page, job->layer, h) + slot, half[64];
        const float *k = job->k + row * job->k_stride + h * l->head_dim;
        for (size_t d = 0; d < l->head_dim; d += 64) {
            const size_t n = l->head_dim - d < 64 ? l->head_dim - d : 64;
            job->kernels->to_half(k + d, n, half);
            for (size_t i = 0; i < n; i++) keys[(d + i) * SK_TILE] = half[i];
        }
        job->kernels->to_half(job->v + row * job->v_stride + h * l->head_dim_v, l->head_dim_v,
                              sk_kv_values(l, page, job->layer, h) + slot * l->head_dim_v);
    }
}

void sk_op_store_kv(const struct sk_ops *ops, const struct sk_kv_layout *layout, size_t layer,
                    const struct sk_row_place *places, size_t rows, const float *k, size_t k_stride, const float *v,
                    size_t v_stride) {
    const struct store_job job = {ops->kernels, layout, layer, places, k, v, k_stride, v_stride};
    for_rows(ops, rows, layout->n_kv_heads * (layout->head_dim + layout->head_dim_v) * 4, store_row, &job);
}
