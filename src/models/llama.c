/* The llama family: RMSNorm, grouped-query attention with rotary positions, SwiGLU; optional biases.
 * (Touvron et al. 2023, arXiv 2302.13971; grouped queries: Ainslie et al. 2023, arXiv 2305.13245.) */
#include "internal.h"

static sk_status hparams(struct sk_model *m, struct sk_error *err) {
    uint32_t n_experts;
    const sk_status st = sk_gguf_u32(m->gguf, "llama.expert_count", 0, &n_experts, err);
    if (st) return st;
    if (n_experts)
        return sk_fail(
            err, SK_EUNSUPPORTED,
            "this llama model has %u experts per layer (llama.expert_count): mixtures of experts are not supported",
            n_experts);
    m->h.rope_halves = false; /* converters permute the q and k rows for adjacent pairs */
    return SK_OK;
}

static sk_status plan_layer(struct sk_model *m, uint32_t i, struct sk_layer *l, struct sk_error *err) {
    const struct sk_hparams *h = &m->h;
    const size_t n_q = (size_t)h->n_heads * h->head_dim, n_k = (size_t)h->n_kv_heads * h->head_dim;
    const size_t n_v = (size_t)h->n_kv_heads * h->head_dim_v, n_o = (size_t)h->n_heads * h->head_dim_v;
    sk_status st;
    if ((st = sk_plan_vector(m, "blk.%u.attn_norm.weight", i, h->n_embd, true, &l->attn_norm, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.attn_q.weight", i, h->n_embd, n_q, true, &l->q, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.attn_k.weight", i, h->n_embd, n_k, true, &l->k, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.attn_v.weight", i, h->n_embd, n_v, true, &l->v, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.attn_output.weight", i, n_o, h->n_embd, true, &l->o, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.ffn_norm.weight", i, h->n_embd, true, &l->ffn_norm, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.ffn_gate.weight", i, h->n_embd, h->n_ff, true, &l->gate, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.ffn_up.weight", i, h->n_embd, h->n_ff, true, &l->up, err))) return st;
    if ((st = sk_plan_matrix(m, "blk.%u.ffn_down.weight", i, h->n_ff, h->n_embd, true, &l->down, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.attn_q.bias", i, n_q, false, &l->q_bias, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.attn_k.bias", i, n_k, false, &l->k_bias, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.attn_v.bias", i, n_v, false, &l->v_bias, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.attn_output.bias", i, h->n_embd, false, &l->o_bias, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.ffn_gate.bias", i, h->n_ff, false, &l->gate_bias, err))) return st;
    if ((st = sk_plan_vector(m, "blk.%u.ffn_up.bias", i, h->n_ff, false, &l->up_bias, err))) return st;
    return sk_plan_vector(m, "blk.%u.ffn_down.bias", i, h->n_embd, false, &l->down_bias, err);
}

static void add_bias(const struct sk_workspace *ws, float *x, const float *bias, const struct sk_weight *w) {
    if (bias) sk_op_add_bias(ws->ops, x, bias, sk_weight_stride(w), ws->rows, w->n_out);
}

static void attention(const struct sk_model *m, const struct sk_layer *l, size_t kv_layer, struct sk_workspace *ws) {
    const struct sk_hparams *h = &m->h;
    const size_t rows = ws->rows;
    struct sk_activations a;

    sk_op_rms_norm(ws->ops, ws->x, l->attn_norm, h->norm_eps, rows, h->n_embd, ws->norm);
    sk_op_quantize(ws->ops, ws->norm, rows, h->n_embd, ws->quantized, &a);
    sk_op_matmul(ws->ops, &a, 3, (const struct sk_weight *const[]){&l->q, &l->k, &l->v},
                 (float *const[]){ws->q, ws->k, ws->v});
    add_bias(ws, ws->q, l->q_bias, &l->q);
    add_bias(ws, ws->k, l->k_bias, &l->k);
    add_bias(ws, ws->v, l->v_bias, &l->v);

    const size_t q_stride = sk_weight_stride(&l->q), k_stride = sk_weight_stride(&l->k),
                 v_stride = sk_weight_stride(&l->v);
    sk_op_rope(ws->ops, &ws->rope, ws->q, q_stride, rows, h->n_heads, h->head_dim);
    sk_op_rope(ws->ops, &ws->rope, ws->k, k_stride, rows, h->n_kv_heads, h->head_dim);
    sk_op_store_kv(ws->ops, &ws->kv, kv_layer, ws->places, rows, ws->k, k_stride, ws->v, v_stride);
    sk_op_attention(ws->ops, &(struct sk_attention){.layout = &ws->kv,
                                                    .layer = kv_layer,
                                                    .places = ws->places,
                                                    .rows = rows,
                                                    .n_heads = h->n_heads,
                                                    .window = ws->window,
                                                    .scale = h->attention_scale,
                                                    .q = ws->q,
                                                    .q_stride = q_stride,
                                                    .out = ws->attention,
                                                    .scratch = ws->scratch});

    sk_op_quantize(ws->ops, ws->attention, rows, l->o.k, ws->quantized, &a);
    sk_op_matmul(ws->ops, &a, 1, (const struct sk_weight *const[]){&l->o}, (float *const[]){ws->product});
    add_bias(ws, ws->product, l->o_bias, &l->o);
    sk_op_add(ws->ops, ws->x, ws->product, sk_weight_stride(&l->o), rows, h->n_embd);
}

static void feed_forward(const struct sk_model *m, const struct sk_layer *l, struct sk_workspace *ws) {
    const struct sk_hparams *h = &m->h;
    const size_t rows = ws->rows;
    struct sk_activations a;

    sk_op_rms_norm(ws->ops, ws->x, l->ffn_norm, h->norm_eps, rows, h->n_embd, ws->norm);
    sk_op_quantize(ws->ops, ws->norm, rows, h->n_embd, ws->quantized, &a);
    sk_op_matmul(ws->ops, &a, 2, (const struct sk_weight *const[]){&l->gate, &l->up},
                 (float *const[]){ws->gate, ws->up});
    add_bias(ws, ws->gate, l->gate_bias, &l->gate);
    add_bias(ws, ws->up, l->up_bias, &l->up);
    sk_op_silu_mul(ws->ops, ws->gate, ws->up, sk_weight_stride(&l->gate), rows, h->n_ff, ws->hidden);

    sk_op_quantize(ws->ops, ws->hidden, rows, h->n_ff, ws->quantized, &a);
    sk_op_matmul(ws->ops, &a, 1, (const struct sk_weight *const[]){&l->down}, (float *const[]){ws->product});
    add_bias(ws, ws->product, l->down_bias, &l->down);
    sk_op_add(ws->ops, ws->x, ws->product, sk_weight_stride(&l->down), rows, h->n_embd);
}

static void layer(const struct sk_model *m, const struct sk_layer *l, size_t kv_layer, struct sk_workspace *ws) {
    attention(m, l, kv_layer, ws);
    feed_forward(m, l, ws);
}

const struct sk_architecture sk_architecture_llama = {"llama", hparams, plan_layer, layer,
                                                      .mtp_hidden_after_norm = true};
