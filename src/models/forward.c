/* The forward pass around the layers: embedding, the loop over a layer range, output norm and head. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "internal.h"

struct buffers {
    size_t total;
    char *base; /* NULL while only counting */
};

static void *reserve(struct buffers *b, size_t n_bytes) {
    void *p = b->base ? b->base + b->total : NULL;
    b->total += sk_round_up(n_bytes, 64);
    return p;
}

static size_t panels_up(size_t n) {
    return sk_round_up(n, SK_PANEL_ROWS);
}

/* Lays out all buffers; with base == NULL this counts their bytes. */
static void lay_out(struct sk_workspace *ws, const struct sk_model *m, size_t rows, size_t n_threads,
                    struct buffers *b) {
    const struct sk_hparams *h = &m->h;
    const struct sk_kv_layout kv = sk_model_kv_layout(m);
    const size_t n_q = (size_t)h->n_heads * h->head_dim, n_o = (size_t)h->n_heads * h->head_dim_v, f = sizeof(float);
    size_t widest = h->n_embd > h->n_ff ? h->n_embd : h->n_ff;
    if (n_o > widest) widest = n_o;
    ws->norm = reserve(b, rows * h->n_embd * f);
    ws->q = reserve(b, rows * panels_up(n_q) * f);
    ws->k = reserve(b, rows * panels_up((size_t)h->n_kv_heads * h->head_dim) * f);
    ws->v = reserve(b, rows * panels_up((size_t)h->n_kv_heads * h->head_dim_v) * f);
    ws->attention = reserve(b, rows * n_o * f);
    ws->gate = reserve(b, rows * panels_up(h->n_ff) * f);
    ws->up = reserve(b, rows * panels_up(h->n_ff) * f);
    ws->hidden = reserve(b, rows * h->n_ff * f);
    ws->product = reserve(b, rows * panels_up(h->n_embd) * f);
    ws->picked = reserve(b, rows * h->n_embd * f);
    ws->cos = reserve(b, rows * (h->n_rot / 2) * f);
    ws->sin = reserve(b, rows * (h->n_rot / 2) * f);
    ws->quantized = reserve(b, sk_activations_bytes(rows, widest));
    ws->scratch = reserve(b, sk_attention_bytes(&kv, h->n_heads, n_threads));
}

size_t sk_workspace_bytes(const struct sk_model *m, size_t max_rows, size_t n_threads) {
    struct sk_workspace ws;
    struct buffers b = {0, NULL};
    lay_out(&ws, m, max_rows, n_threads, &b);
    return b.total;
}

sk_status sk_workspace_create(const struct sk_model *m, size_t max_rows, size_t n_threads, struct sk_workspace **out,
                              struct sk_error *err) {
    struct sk_workspace *ws = sk_calloc(1, sizeof *ws);
    const size_t bytes = sk_workspace_bytes(m, max_rows, n_threads);
    if (ws) ws->region = sk_region_alloc(bytes);
    if (!ws || !ws->region) {
        free(ws);
        return sk_fail_memory(err, bytes, "activations");
    }
    struct buffers b = {0, ws->region};
    ws->region_bytes = bytes;
    ws->max_rows = max_rows;
    ws->n_threads = n_threads;
    lay_out(ws, m, max_rows, n_threads, &b);
    *out = ws;
    return SK_OK;
}

void sk_workspace_free(struct sk_workspace *ws) {
    if (!ws) return;
    sk_region_free(ws->region, ws->region_bytes);
    free(ws);
}

struct row_job {
    const struct sk_model *m;
    const struct sk_forward *f;
    struct sk_workspace *ws;
};

static void prepare_row(void *ctx, size_t row, size_t thread) {
    (void)thread;
    const struct row_job *job = ctx;
    const struct sk_model *m = job->m;
    const size_t n_pairs = m->h.n_rot / 2;
    sk_rope_angles(m, job->f->places[row].position, job->ws->cos + row * n_pairs, job->ws->sin + row * n_pairs);
    if (job->f->first_layer != 0) return;
    const struct sk_format *format = sk_format_for_type(m->embedding->type);
    const size_t row_bytes = m->h.n_embd / format->block_k * format->block_bytes;
    format->dequantize(m->embedding->data + (size_t)job->f->tokens[row] * row_bytes, job->f->x + row * m->h.n_embd,
                       m->h.n_embd);
}

static void output_head(const struct sk_model *m, const struct sk_ops *ops, struct sk_workspace *ws,
                        const struct sk_forward *f) {
    const size_t n = m->h.n_embd;
    struct sk_activations a;
    for (size_t i = 0; i < f->n_outputs; i++) memcpy(ws->picked + i * n, f->x + f->outputs[i] * n, n * sizeof(float));
    sk_op_rms_norm(ops, ws->picked, m->output_norm, m->h.norm_eps, f->n_outputs, n, ws->norm);
    sk_op_quantize(ops, ws->norm, f->n_outputs, n, ws->quantized, &a);
    sk_op_matmul(ops, &a, 1, (const struct sk_weight *const[]){&m->output}, (float *const[]){f->logits});
}

void sk_model_forward(const struct sk_model *m, const struct sk_ops *ops, struct sk_workspace *ws,
                      const struct sk_forward *f) {
    struct row_job job = {m, f, ws};
    sk_pool_run(ops->pool, f->rows, prepare_row, &job);
    ws->ops = ops;
    ws->rows = f->rows;
    ws->places = f->places;
    ws->x = f->x;
    ws->kv = sk_model_kv_layout(m);
    ws->rope = (struct sk_rope){m->h.n_rot / 2, m->h.rope_halves, ws->cos, ws->sin};
    for (uint32_t i = f->first_layer; i < f->last_layer; i++)
        m->arch->layer(m, &m->layers[i - m->first_layer], i - m->first_layer, ws);
    if (f->last_layer == m->h.n_layers && f->n_outputs) output_head(m, ops, ws, f);
}
