/* Attention over paged keys and values: each row's tiles on their own, merged in ascending order. Which thread computes
 * which tile, and which rows share a walk, is free; the merging order is not (docs/NUMERICS.md). */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/ops.h"

enum {
    ATTENTION_ROWS = 8,        /* rows of one session that share a walk over the keys */
    SPLIT_BYTES = 1024 * 1024, /* results of tiles that wait to be merged */
    SPLIT_MIN_TILES = 6,       /* shorter contexts are not worth a second meeting of the threads */
};

/* One thread's memory for tiles with up to ATTENTION_ROWS * group queries. */
struct walk {
    float *max, *sum;                      /* [queries]: merged so far */
    float *tile_max, *tile_sum, *tile_out; /* of the current tile */
    float *kernel_scratch;
    const float **queries;
    size_t *seen; /* the walk's number of each query that sees the current tile */
    uint8_t *first, *count;
};

struct attention_job {
    const struct sk_ops *ops;
    const struct sk_attention *a;
    /* Of a split walk: results of tiles [first_tile, end_tile), by tile and KV head. */
    uint32_t first_tile, end_tile, tiles_per_piece;
    struct split {
        float *max, *sum, *out;         /* [tiles][n_kv_heads][queries] and * head_dim_v */
        float *merged_max, *merged_sum; /* [n_kv_heads][queries] */
    } split;
};

static size_t group_of(const struct sk_kv_layout *l, size_t n_heads) {
    return n_heads / l->n_kv_heads;
}
static size_t most_queries(const struct sk_kv_layout *l, size_t n_heads) {
    return ATTENTION_ROWS * group_of(l, n_heads);
}

static size_t walk_bytes(const struct sk_kv_layout *l, size_t n_heads) {
    const size_t q = most_queries(l, n_heads);
    const size_t floats = 4 * q + q * l->head_dim_v + sk_attention_scratch(l->head_dim, l->head_dim_v, q);
    return sk_round_up(floats * sizeof(float) + q * (sizeof(void *) + sizeof(size_t) + 2) + 64, 64);
}

static struct walk walk_at(const struct sk_attention *a, size_t thread) {
    const struct sk_kv_layout *l = a->layout;
    const size_t q = most_queries(l, a->n_heads);
    struct walk w;
    w.queries = (const float **)(void *)((char *)a->scratch + thread * walk_bytes(l, a->n_heads));
    w.seen = (size_t *)(void *)(w.queries + q);
    w.max = (float *)(void *)(w.seen + q);
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
    return n_threads * walk_bytes(layout, n_heads) + SPLIT_BYTES;
}

/* ---- one tile ------------------------------------------------------------------------------------------ */

static uint32_t first_visible(const struct sk_attention *a, uint32_t position) {
    return a->window && position >= a->window ? position - a->window + 1 : 0;
}

/* Positions of a tile that a row sees: false for none. */
static bool sees(const struct sk_attention *a, size_t row, uint32_t tile, uint8_t *first, uint8_t *count) {
    const uint32_t position = a->places[row].position, from = first_visible(a, position), start = tile * SK_TILE;
    if (position < start || from >= start + SK_TILE) return false;
    const uint32_t begin = from > start ? from - start : 0;
    const uint32_t last = position - start < SK_TILE ? position - start : SK_TILE - 1;
    *first = (uint8_t)begin;
    *count = (uint8_t)(last - begin + 1);
    return true;
}

/* The next tile lies elsewhere in memory, where the hardware does not look ahead: a page holds all layers. */
static void prefetch_tile(const struct sk_kv_layout *l, uint16_t *page, size_t layer, size_t kv_head) {
    const char *p = (const char *)sk_kv_keys(l, page, layer, kv_head);
    const size_t n = sk_kv_head_halves(l) * sizeof(uint16_t);
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(p + i);
}

/* Computes one tile of one KV head for rows [row, row + n) of one session; gives how many of their queries see it. */
static size_t run_tile(const struct attention_job *job, struct walk *w, size_t row, size_t n, size_t kv_head,
                       uint32_t tile, float *max, float *sum, float *out) {
    const struct sk_attention *a = job->a;
    const struct sk_kv_layout *l = a->layout;
    const size_t group = group_of(l, a->n_heads);
    uint16_t *page = a->places[row].pages[tile];
    size_t seen = 0;
    for (size_t r = 0; r < n; r++) {
        uint8_t first, count;
        if (!sees(a, row + r, tile, &first, &count)) continue;
        for (size_t g = 0; g < group; g++, seen++) {
            w->queries[seen] = a->q + (row + r) * a->q_stride + (kv_head * group + g) * l->head_dim;
            w->seen[seen] = r * group + g;
            w->first[seen] = first;
            w->count[seen] = count;
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
                                        .max = max,
                                        .sum = sum,
                                        .out = out};
    job->ops->kernels->attention_tile(&t);
    return seen;
}

static float *output_of(const struct sk_attention *a, size_t row, size_t kv_head, size_t query) {
    const size_t group = group_of(a->layout, a->n_heads);
    return a->out + ((row + query / group) * a->n_heads + kv_head * group + query % group) * a->layout->head_dim_v;
}

static void begin_rows(const struct sk_attention *a, size_t row, size_t n_queries, size_t kv_head, float *max,
                       float *sum) {
    for (size_t i = 0; i < n_queries; i++) {
        max[i] = -INFINITY;
        sum[i] = 0.0f;
        memset(output_of(a, row, kv_head, i), 0, a->layout->head_dim_v * sizeof(float));
    }
}

static void end_rows(const struct sk_attention *a, size_t row, size_t n_queries, size_t kv_head, const float *sum) {
    for (size_t i = 0; i < n_queries; i++) {
        float *out = output_of(a, row, kv_head, i);
        for (size_t d = 0; d < a->layout->head_dim_v; d++) out[d] = out[d] / sum[i];
    }
}

/* The tiles that any of the rows sees. */
static void find_tiles(const struct sk_attention *a, size_t row, size_t n, uint32_t *first, uint32_t *end) {
    uint32_t begin = UINT32_MAX, last = 0;
    for (size_t r = 0; r < n; r++) {
        const uint32_t position = a->places[row + r].position, from = first_visible(a, position);
        if (from < begin) begin = from;
        if (position > last) last = position;
    }
    *first = begin / SK_TILE;
    *end = last / SK_TILE + 1;
}

/* ---- many rows: a task is some rows of one KV head ----------------------------------------------------- */

static void walk_keys(const struct attention_job *job, struct walk *w, size_t row, size_t n, size_t kv_head) {
    const struct sk_attention *a = job->a;
    const struct sk_kv_layout *l = a->layout;
    const size_t n_queries = n * group_of(l, a->n_heads);
    uint32_t first, end;
    find_tiles(a, row, n, &first, &end);
    begin_rows(a, row, n_queries, kv_head, w->max, w->sum);
    for (uint32_t tile = first; tile < end; tile++) {
        if (tile + 1 < end) prefetch_tile(l, a->places[row].pages[tile + 1], a->layer, kv_head);
        const size_t seen = run_tile(job, w, row, n, kv_head, tile, w->tile_max, w->tile_sum, w->tile_out);
        for (size_t i = 0; i < seen; i++) {
            const size_t q = w->seen[i];
            job->ops->kernels->attention_merge(&w->max[q], &w->sum[q], output_of(a, row, kv_head, q), w->tile_max[i],
                                               w->tile_sum[i], w->tile_out + i * l->head_dim_v, l->head_dim_v);
        }
    }
    end_rows(a, row, n_queries, kv_head, w->sum);
}

static void run_rows(void *ctx, size_t i, size_t thread) {
    const struct attention_job *job = ctx;
    const struct sk_attention *a = job->a;
    const size_t kv_head = i % a->layout->n_kv_heads, start = i / a->layout->n_kv_heads * ATTENTION_ROWS;
    const size_t end = start + ATTENTION_ROWS < a->rows ? start + ATTENTION_ROWS : a->rows;
    struct walk w = walk_at(a, thread);
    for (size_t row = start; row < end;) {
        size_t n = 1;
        while (row + n < end && a->places[row + n].pages == a->places[row].pages) n++;
        walk_keys(job, &w, row, n, kv_head);
        row += n;
    }
}

/* ---- few rows of one session: a task is some tiles of one KV head -------------------------------------- */

static size_t split_slot(const struct attention_job *job, uint32_t tile, size_t kv_head) {
    const struct sk_attention *a = job->a;
    const size_t n_queries = a->rows * group_of(a->layout, a->n_heads);
    return ((tile - job->first_tile) * a->layout->n_kv_heads + kv_head) * n_queries;
}

static void run_piece(void *ctx, size_t i, size_t thread) {
    const struct attention_job *job = ctx;
    const struct sk_attention *a = job->a;
    const struct sk_kv_layout *l = a->layout;
    const size_t kv_head = i % l->n_kv_heads;
    const uint32_t first = job->first_tile + (uint32_t)(i / l->n_kv_heads) * job->tiles_per_piece;
    const uint32_t end = first + job->tiles_per_piece < job->end_tile ? first + job->tiles_per_piece : job->end_tile;
    struct walk w = walk_at(a, thread);
    for (uint32_t tile = first; tile < end; tile++) {
        const size_t at = split_slot(job, tile, kv_head);
        if (tile + 1 < end) prefetch_tile(l, a->places[0].pages[tile + 1], a->layer, kv_head);
        run_tile(job, &w, 0, a->rows, kv_head, tile, job->split.max + at, job->split.sum + at,
                 job->split.out + at * l->head_dim_v);
    }
}

static void merge_head(void *ctx, size_t kv_head, size_t thread) {
    const struct attention_job *job = ctx;
    const struct sk_attention *a = job->a;
    const size_t group = group_of(a->layout, a->n_heads), dims = a->layout->head_dim_v;
    const struct split *s = &job->split;
    (void)thread;
    for (uint32_t tile = job->first_tile; tile < job->end_tile; tile++) {
        size_t at = split_slot(job, tile, kv_head);
        for (size_t row = 0; row < a->rows; row++) {
            uint8_t first, count;
            if (!sees(a, row, tile, &first, &count)) continue;
            for (size_t g = 0; g < group; g++, at++) {
                const size_t q = row * group + g, m = kv_head * a->rows * group + q;
                job->ops->kernels->attention_merge(&s->merged_max[m], &s->merged_sum[m], output_of(a, 0, kv_head, q),
                                                   s->max[at], s->sum[at], s->out + at * dims, dims);
            }
        }
    }
}

/* Bytes of a split walk's results: what is merged, and what each tile takes. */
static size_t split_bytes(const struct sk_attention *a, size_t tiles) {
    const size_t queries = a->rows * a->n_heads;
    return (2 * queries + tiles * queries * (2 + a->layout->head_dim_v)) * sizeof(float);
}

static void split_walk(struct attention_job *job, uint32_t first, uint32_t end, size_t tiles_per_round) {
    const struct sk_attention *a = job->a;
    const size_t queries = a->rows * a->n_heads, heads = a->layout->n_kv_heads, per_head = queries / heads;
    const size_t n_threads = sk_pool_threads(job->ops->pool);
    float *memory = (float *)(void *)((char *)a->scratch + n_threads * walk_bytes(a->layout, a->n_heads));
    job->split = (struct split){.merged_max = memory, .merged_sum = memory + queries, .max = memory + 2 * queries};
    job->split.sum = job->split.max + tiles_per_round * queries;
    job->split.out = job->split.sum + tiles_per_round * queries;
    for (size_t h = 0; h < heads; h++)
        begin_rows(a, 0, per_head, h, job->split.merged_max + h * per_head, job->split.merged_sum + h * per_head);
    for (uint32_t tile = first; tile < end; tile = job->end_tile) {
        job->first_tile = tile;
        job->end_tile = end - tile < tiles_per_round ? end : tile + (uint32_t)tiles_per_round;
        const size_t tiles = job->end_tile - tile, pieces = (4 * n_threads + heads - 1) / heads;
        job->tiles_per_piece = (uint32_t)((tiles + pieces - 1) / pieces);
        const size_t n = (tiles + job->tiles_per_piece - 1) / job->tiles_per_piece;
        sk_pool_run(job->ops->pool, n * heads, run_piece, job);
        sk_pool_run(job->ops->pool, heads, merge_head, job);
    }
    for (size_t h = 0; h < heads; h++) end_rows(a, 0, per_head, h, job->split.merged_sum + h * per_head);
}

/* Tiles in one round of a split walk; 0 if the rows are better walked whole. */
static size_t split_round(const struct sk_ops *ops, const struct sk_attention *a, uint32_t *first, uint32_t *end) {
    const size_t n_threads = sk_pool_threads(ops->pool);
    if (n_threads == 1 || a->rows > ATTENTION_ROWS) return 0;
    /* Whole walks are as good where the heads go evenly round. */
    if (a->layout->n_kv_heads % n_threads == 0) return 0;
    for (size_t row = 1; row < a->rows; row++)
        if (a->places[row].pages != a->places[0].pages) return 0;
    find_tiles(a, 0, a->rows, first, end);
    if (*end - *first < SPLIT_MIN_TILES || split_bytes(a, SPLIT_MIN_TILES) > SPLIT_BYTES) return 0;
    const size_t fixed = split_bytes(a, 0), each = split_bytes(a, 1) - fixed, fit = (SPLIT_BYTES - fixed) / each;
    return *end - *first < fit ? *end - *first : fit;
}

void sk_op_attention(const struct sk_ops *ops, const struct sk_attention *a) {
    struct attention_job job = {.ops = ops, .a = a};
    uint32_t first, end;
    const size_t round = split_round(ops, a, &first, &end);
    if (round)
        split_walk(&job, first, end, round);
    else
        sk_pool_run(ops->pool, (a->rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS * a->layout->n_kv_heads, run_rows, &job);
}
