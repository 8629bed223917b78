#include "models/mtp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "internal.h"

/* ---- loading ------------------------------------------------------------------------------------------- */

bool sk_mtp_in_file(const struct sk_model *target) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.nextn.eh_proj.weight", target->h.n_layers);
    return sk_gguf_find_tensor(target->gguf, name) != NULL;
}

void sk_model_fingerprint(const struct sk_gguf *g, char out[17]) {
    uint64_t hash = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct sk_gguf_tensor *t = &g->tensors[i];
        uint64_t one = XXH3_64bits_withSeed(t->name.p, t->name.n, t->type);
        one = XXH3_64bits_withSeed(t->ne, sizeof t->ne, one);
        one = XXH3_64bits_withSeed(t->data, t->n_bytes < 4096 ? t->n_bytes : 4096, one);
        hash += one; /* the order of tensors does not matter */
    }
    snprintf(out, 17, "%016" PRIx64, hash);
}

static sk_status check_sidecar(const struct sk_model *target, const struct sk_gguf *g, struct sk_error *err) {
    char key[96], own[17];
    uint32_t n_embd;
    struct sk_str arch, wanted;
    sk_status st = sk_gguf_string(g, "general.architecture", sk_str_of(""), &arch, err);
    if (st) return st;
    if (!sk_str_is(arch, target->arch->name))
        return sk_fail(err, SK_EINVAL, "the MTP file is for the architecture '%.*s', the model is '%s'",
                       (int)(arch.n < 64 ? arch.n : 64), arch.p, target->arch->name);
    snprintf(key, sizeof key, "%s.embedding_length", target->arch->name);
    if ((st = sk_gguf_u32(g, key, 0, &n_embd, err))) return st;
    if (n_embd != target->h.n_embd)
        return sk_fail(err, SK_EINVAL, "the MTP file is for embeddings of %u, the model has %u", n_embd,
                       target->h.n_embd);
    snprintf(key, sizeof key, "%s.nextn.model_fingerprint", target->arch->name);
    if ((st = sk_gguf_string(g, key, sk_str_of(""), &wanted, err))) return st;
    sk_model_fingerprint(target->gguf, own);
    if (!sk_str_is(wanted, own))
        return sk_fail(err, SK_EINVAL,
                       "the MTP file belongs to the model with the fingerprint '%.*s' (%s); this one's is '%s'",
                       (int)(wanted.n < 32 ? wanted.n : 32), wanted.p, key, own);
    return SK_OK;
}

/* The token of each row of a trimmed head. */
static sk_status read_head_ids(struct sk_mtp *m, const char *name, struct sk_error *err) {
    const struct sk_gguf_value *ids = m->head_ids;
    const size_t n_vocab = m->target->h.n_vocab;
    if (ids->type != SK_GGUF_ARRAY || (ids->element_type != SK_GGUF_I32 && ids->element_type != SK_GGUF_U32) ||
        ids->count == 0 || ids->count > n_vocab)
        return sk_fail(err, SK_EFORMAT, "the key '%s' must be an array of 1 to %zu token ids", name, n_vocab);
    m->head_tokens = sk_calloc((size_t)ids->count, sizeof *m->head_tokens);
    if (!m->head_tokens) return sk_fail_memory(err, (size_t)ids->count * sizeof *m->head_tokens, name);
    for (size_t i = 0; i < ids->count; i++) {
        const int64_t id = sk_gguf_array_int(ids, i);
        if (id < 0 || id >= (int64_t)n_vocab)
            return sk_fail(err, SK_EFORMAT, "the key '%s' holds %" PRId64 ", which is no token", name, id);
        if (i && id <= m->head_tokens[i - 1])
            return sk_fail(err, SK_EFORMAT, "the key '%s' must hold its token ids in ascending order", name);
        m->head_tokens[i] = (int32_t)id;
    }
    return SK_OK;
}

static sk_status plan_head(struct sk_mtp *m, uint32_t n, struct sk_error *err) {
    struct sk_model *b = m->block;
    const struct sk_hparams *h = &m->target->h;
    char name[96];
    sk_status st;
    snprintf(name, sizeof name, "%s.nextn.draft_token_ids", b->arch->name);
    m->head_ids = sk_gguf_find(b->gguf, name);
    if (m->head_ids && (st = read_head_ids(m, name, err))) return st;
    const size_t rows = m->head_ids ? (size_t)m->head_ids->count : h->n_vocab;
    st = sk_plan_matrix(b, "blk.%u.nextn.shared_head_head.weight", n, h->n_embd, rows, false, &m->head, err);
    if (st || m->head.format) return st;
    if (!m->target->output.format) return sk_fail(err, SK_EFORMAT, "there is no output head for the MTP block");
    if (!m->head_ids) return SK_OK;
    const struct sk_gguf_tensor *output = sk_gguf_find_tensor(m->target->gguf, "output.weight");
    return sk_plan_rows(b, output ? output : m->target->embedding, m->head_ids, &m->head, err);
}

static sk_status plan(struct sk_mtp *m, struct sk_error *err) {
    struct sk_model *b = m->block;
    const struct sk_hparams *h = &b->h;
    const uint32_t n = m->target->h.n_layers;
    char name[96];
    sk_status st;
    if ((st = b->arch->plan_layer(b, n, &b->layers[0], err))) return st;
    if ((st = sk_plan_matrix(b, "blk.%u.nextn.eh_proj.weight", n, 2 * (size_t)h->n_embd, h->n_embd, true, &m->eh_proj,
                             err)))
        return st;
    if ((st = sk_plan_vector(b, "blk.%u.nextn.enorm.weight", n, h->n_embd, true, &m->enorm, err))) return st;
    if ((st = sk_plan_vector(b, "blk.%u.nextn.hnorm.weight", n, h->n_embd, true, &m->hnorm, err))) return st;
    if ((st = sk_plan_vector(b, "blk.%u.nextn.shared_head_norm.weight", n, h->n_embd, false, &m->head_norm, err)))
        return st;
    if ((st = plan_head(m, n, err))) return st;
    snprintf(name, sizeof name, "blk.%u.nextn.embed_tokens.weight", n);
    m->embedding = sk_gguf_find_tensor(b->gguf, name);
    if (!m->embedding) m->embedding = m->target->embedding;
    if (!sk_format_for_type(m->embedding->type) || m->embedding->ne[0] != h->n_embd || m->embedding->ne[1] < h->n_vocab)
        return sk_fail(err, SK_EFORMAT, "the tensor '%s' does not fit the model's vocabulary", name);
    snprintf(name, sizeof name, "%s.nextn.attention_window", b->arch->name);
    if ((st = sk_gguf_u32(b->gguf, name, 0, &m->window, err))) return st;
    snprintf(name, sizeof name, "%s.nextn.hidden_after_norm", b->arch->name);
    return sk_gguf_bool(b->gguf, name, b->arch->mtp_hidden_after_norm, &m->hidden_after_norm, err);
}

sk_status sk_mtp_create(const struct sk_model *target, const struct sk_gguf *g, struct sk_pool *pool, size_t max_rows,
                        struct sk_mtp **out, struct sk_error *err) {
    sk_status st = g == target->gguf ? SK_OK : check_sidecar(target, g, err);
    if (st) return st;
    if (target->last_layer != target->h.n_layers)
        return sk_fail(err, SK_EINVAL, "an MTP block works on the model's last layer, which is not here");
    struct sk_mtp *m = sk_calloc(1, sizeof *m);
    if (!m) return sk_fail_memory(err, sizeof *m, "an MTP block");
    m->target = target;
    m->max_rows = max_rows;
    if ((st = sk_model_create_block(target, g, &m->block, err)) || (st = plan(m, err))) goto fail;
    m->block->weight_bytes = sk_model_planned_bytes(m->block);
    if ((st = sk_model_fill(m->block, NULL, pool, err))) goto fail;
    if ((st = sk_workspace_create(m->block, max_rows, sk_pool_threads(pool), &m->ws, err))) goto fail;
    const size_t pair_bytes =
        max_rows * 2 * target->h.n_embd * sizeof(float) + sk_activations_bytes(max_rows, 2 * (size_t)target->h.n_embd);
    if (!(m->pair = sk_region_alloc(pair_bytes))) {
        st = sk_fail_memory(err, pair_bytes, "an MTP block");
        goto fail;
    }
    *out = m;
    return SK_OK;
fail:
    sk_mtp_free(m);
    return st;
}

void sk_mtp_free(struct sk_mtp *m) {
    if (!m) return;
    const size_t n = 2 * (size_t)m->target->h.n_embd;
    sk_region_free(m->pair, m->max_rows * n * sizeof(float) + sk_activations_bytes(m->max_rows, n));
    sk_workspace_free(m->ws);
    sk_model_free(m->block);
    free(m->head_tokens);
    free(m);
}

struct sk_kv_layout sk_mtp_kv_layout(const struct sk_mtp *m) {
    return sk_model_kv_layout(m->block);
}
static const struct sk_weight *head_of(const struct sk_mtp *m) {
    return m->head.format ? &m->head : &m->target->output;
}
size_t sk_mtp_head_rows(const struct sk_mtp *m) {
    return head_of(m)->n_out;
}
size_t sk_mtp_logits_stride(const struct sk_mtp *m) {
    return sk_weight_stride(head_of(m));
}

/* ---- running ------------------------------------------------------------------------------------------- */

/* x = eh_proj · [enorm(embed(token)) ; hnorm(h)] */
static void combine(const struct sk_mtp *m, const struct sk_ops *ops, const struct sk_mtp_forward *f) {
    const struct sk_hparams *h = &m->block->h;
    const struct sk_format *format = sk_format_for_type(m->embedding->type);
    const size_t n = h->n_embd, row_bytes = n / format->block_k * format->block_bytes;
    struct sk_workspace *ws = m->ws;
    for (size_t i = 0; i < f->rows; i++) {
        format->dequantize(m->embedding->data + (size_t)f->tokens[i] * row_bytes, ws->picked, n);
        sk_op_rms_norm(ops, ws->picked, m->enorm, h->norm_eps, 1, n, m->pair + i * 2 * n);
        sk_op_rms_norm(ops, f->hidden[i], m->hnorm, h->norm_eps, 1, n, m->pair + i * 2 * n + n);
    }
    struct sk_activations a;
    sk_op_quantize(ops, m->pair, f->rows, 2 * n, m->pair + m->max_rows * 2 * n, &a);
    sk_op_matmul(ops, &a, 1, (const struct sk_weight *const[]){&m->eh_proj}, (float *const[]){ws->product});
    const size_t stride = sk_weight_stride(&m->eh_proj);
    for (size_t i = 0; i < f->rows; i++) memcpy(f->y + i * n, ws->product + i * stride, n * sizeof(float));
}

static void draft_head(const struct sk_mtp *m, const struct sk_ops *ops, const struct sk_mtp_forward *f) {
    const size_t n = m->block->h.n_embd;
    struct sk_activations a;
    for (size_t i = 0; i < f->n_outputs; i++)
        memcpy(m->ws->picked + i * n, f->y + f->outputs[i] * n, n * sizeof(float));
    sk_op_rms_norm(ops, m->ws->picked, m->head_norm ? m->head_norm : m->target->output_norm, m->block->h.norm_eps,
                   f->n_outputs, n, m->ws->norm);
    sk_op_quantize(ops, m->ws->norm, f->n_outputs, n, m->ws->quantized, &a);
    sk_op_matmul(ops, &a, 1, (const struct sk_weight *const[]){head_of(m)}, (float *const[]){f->logits});
}

void sk_mtp_run(const struct sk_mtp *m, const struct sk_ops *ops, const struct sk_mtp_forward *f) {
    const struct sk_hparams *h = &m->block->h;
    struct sk_workspace *ws = m->ws;
    const size_t n_pairs = h->n_rot / 2;
    combine(m, ops, f);
    for (size_t i = 0; i < f->rows; i++)
        sk_rope_angles(m->block, f->places[i].position, ws->cos + i * n_pairs, ws->sin + i * n_pairs);
    ws->ops = ops;
    ws->rows = f->rows;
    ws->places = f->places;
    ws->x = f->y;
    ws->kv = sk_mtp_kv_layout(m);
    ws->window = m->window;
    ws->rope = (struct sk_rope){n_pairs, h->rope_halves, ws->cos, ws->sin};
    m->block->arch->layer(m->block, &m->block->layers[0], 0, ws);
    if (f->n_outputs) draft_head(m, ops, f);
    if (m->hidden_after_norm) { /* what is chained is what the head saw */
        sk_op_rms_norm(ops, f->y, m->head_norm ? m->head_norm : m->target->output_norm, h->norm_eps, f->rows, h->n_embd,
                       ws->norm);
        memcpy(f->y, ws->norm, f->rows * h->n_embd * sizeof(float));
    }
}
