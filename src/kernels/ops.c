#include "kernels/ops.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum {
    MAX_MATRICES = 4,
    CHUNKS_PER_THREAD = 8,   /* pieces of work per thread: enough to even out, few enough to cost nothing */
    TILE_BYTES = 384 * 1024, /* quantised activations that pass over a panel at a time: they stay in the L2 cache */
    ELEMENTS_PER_CHUNK = 8 * 1024, /* rows of elementwise work are grouped to about this many values */
    ATTENTION_ROWS = 8,            /* rows of one session that share a walk over the keys */
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

/* ---- attention ----------------------------------------------------------------------------------------- */

/* One thread's memory for a walk over the keys by up to ATTENTION_ROWS * group queries. */
struct walk {
    float *max, *sum;                      /* [queries]: merged so far */
    float *tile_max, *tile_sum, *tile_out; /* of the current tile */
    float *kernel_scratch;
    float **merged; /* [queries]: where each query's output is */
    const float **queries;
    size_t *merged_index;
    uint8_t *first, *count;
};

static size_t walk_queries(const struct sk_kv_layout *l, size_t n_heads) {
    return ATTENTION_ROWS * (n_heads / l->n_kv_heads);
}

static size_t walk_bytes(const struct sk_kv_layout *l, size_t n_heads) {
    const size_t q = walk_queries(l, n_heads);
    const size_t floats = 4 * q + q * l->head_dim_v + sk_attention_scratch(l->head_dim, l->head_dim_v, q);
    return sk_round_up(floats * sizeof(float) + q * (2 * sizeof(void *) + sizeof(size_t) + 2) + 64, 64);
}

static struct walk walk_at(char *memory, const struct sk_kv_layout *l, size_t n_heads) {
    const size_t q = walk_queries(l, n_heads);
    struct walk w;
    w.merged = (float **)(void *)memory;
    w.queries = (const float **)(void *)(w.merged + q);
    w.merged_index = (size_t *)(void *)(w.queries + q);
    w.max = (float *)(void *)(w.merged_index + q);
    w.sum = w.max + q;
    w.tile_max = w.sum + q;
    w.tile_sum = w.tile_max + q;
    w.tile_out = w.tile_sum + q;
    w.kernel_scratch = w.tile_out + q * l->head_dim_v;
    w.first = (uint8_t *)(w.kernel_scratch + sk_attention_scratch(l->head_dim, l->head_dim_v, q));
    w.count = w.first + q;
    return w;
}

size_t sk_attention_bytes(const struct sk_kv_layout *layout, size_t n_heads, size_t n_threads) {
    return n_threads * walk_bytes(layout, n_heads);
}

struct attention_job {
    const struct sk_ops *ops;
    const struct sk_attention *a;
};

static uint32_t first_visible(const struct sk_attention *a, uint32_t position) {
    return a->window && position >= a->window ? position - a->window + 1 : 0;
}

/* The next tile lies elsewhere in memory, where the hardware does not look ahead: a page holds all layers. */
static void prefetch_tile(const struct sk_kv_layout *l, uint16_t *page, size_t layer, size_t kv_head) {
    const char *p = (const char *)sk_kv_keys(l, page, layer, kv_head);
    const size_t n = sk_kv_head_halves(l) * sizeof(uint16_t);
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(p + i);
}

/* Rows [row, row + n) are one session's; their queries of one KV head walk over its tiles together. */
static void walk_keys(const struct attention_job *job, struct walk *w, size_t row, size_t n, size_t kv_head) {
    const struct sk_attention *a = job->a;
    const struct sk_kv_layout *l = a->layout;
    const size_t group = a->n_heads / l->n_kv_heads, n_queries = n * group;
    uint32_t begin = UINT32_MAX, end = 0;
    for (size_t r = 0; r < n; r++) {
        const uint32_t position = a->places[row + r].position, first = first_visible(a, position);
        if (first < begin) begin = first;
        if (position + 1 > end) end = position + 1;
        for (size_t g = 0; g < group; g++) {
            const size_t head = kv_head * group + g;
            w->merged[r * group + g] = a->out + ((row + r) * a->n_heads + head) * l->head_dim_v;
            memset(w->merged[r * group + g], 0, l->head_dim_v * sizeof(float));
        }
    }
    for (size_t i = 0; i < n_queries; i++) w->max[i] = -INFINITY, w->sum[i] = 0.0f;
    for (uint32_t tile = begin / SK_TILE; tile * SK_TILE < end; tile++) {
        uint16_t *page = a->places[row].pages[tile];
        size_t seen = 0;
        if ((tile + 1) * SK_TILE < end) prefetch_tile(l, a->places[row].pages[tile + 1], a->layer, kv_head);
        for (size_t r = 0; r < n; r++) {
            const uint32_t position = a->places[row + r].position, from = first_visible(a, position),
                           start = tile * SK_TILE;
            if (position < start || from >= start + SK_TILE) continue;
            const uint32_t first = from > start ? from - start : 0;
            const uint32_t last = position - start < SK_TILE ? position - start : SK_TILE - 1;
            for (size_t g = 0; g < group; g++, seen++) {
                w->queries[seen] = a->q + (row + r) * a->q_stride + (kv_head * group + g) * l->head_dim;
                w->merged_index[seen] = r * group + g;
                w->first[seen] = (uint8_t)first;
                w->count[seen] = (uint8_t)(last - first + 1);
            }
        }
        const struct sk_attention_tile t = {.k = sk_kv_keys(l, page, a->layer, kv_head),
                                            .v = sk_kv_values(l, page, a->layer, kv_head),
                                            .head_dim = l->head_dim,
                                            .head_dim_v = l->head_dim_v,
                                            .n_queries = seen,
                                            .queries = w->queries,
                                            .first = w->first,
                                            .count = w->count,
                                            .scale = a->scale,
                                            .scratch = w->kernel_scratch,
                                            .max = w->tile_max,
                                            .sum = w->tile_sum,
                                            .out = w->tile_out};
        job->ops->kernels->attention_tile(&t);
        for (size_t i = 0; i < seen; i++) {
            const size_t q = w->merged_index[i];
            job->ops->kernels->attention_merge(&w->max[q], &w->sum[q], w->merged[q], w->tile_max[i], w->tile_sum[i],
                                               w->tile_out + i * l->head_dim_v, l->head_dim_v);
        }
    }
    for (size_t i = 0; i < n_queries; i++)
        for (size_t d = 0; d < l->head_dim_v; d++) w->merged[i][d] = w->merged[i][d] / w->sum[i];
}

static void run_attention_chunk(void *ctx, size_t i, size_t thread) {
    const struct attention_job *job = ctx;
    const struct sk_attention *a = job->a;
    const size_t kv_head = i % a->layout->n_kv_heads, start = i / a->layout->n_kv_heads * ATTENTION_ROWS;
    const size_t end = start + ATTENTION_ROWS < a->rows ? start + ATTENTION_ROWS : a->rows;
    struct walk w = walk_at((char *)a->scratch + thread * walk_bytes(a->layout, a->n_heads), a->layout, a->n_heads);
    for (size_t row = start; row < end;) {
        size_t n = 1;
        while (row + n < end && a->places[row + n].pages == a->places[row].pages) n++;
        walk_keys(job, &w, row, n, kv_head);
        row += n;
    }
}

void sk_op_attention(const struct sk_ops *ops, const struct sk_attention *a) {
    struct attention_job job = {ops, a};
    sk_pool_run(ops->pool, (a->rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS * a->layout->n_kv_heads, run_attention_chunk,
                &job);
}
