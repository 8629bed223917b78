/* Loading: hyperparameters common to all families, tensor requests, memory, repacking. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "internal.h"

struct request {
    const struct sk_gguf_tensor *tensor;
    struct sk_weight *matrix; /* or … */
    float **vector;
    const struct sk_gguf_value *row_ids; /* the matrix has only these rows of the tensor; NULL = all */
};

struct sk_plan {
    struct request *requests;
    size_t n, cap;
    uint8_t *region; /* all panels, then all vectors */
    size_t region_bytes;
};

/* ---- requests ------------------------------------------------------------------------------------------ */

static sk_status find(struct sk_model *m, const char *pattern, uint32_t layer, bool required, char name[64],
                      const struct sk_gguf_tensor **out, const struct sk_format **format, struct sk_error *err) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(name, 64, pattern, layer);
#pragma GCC diagnostic pop
    *out = sk_gguf_find_tensor(m->gguf, name);
    if (!*out) return required ? sk_fail(err, SK_EFORMAT, "the tensor '%s' is missing", name) : SK_OK;
    *format = sk_format_for_type((*out)->type);
    if (!*format)
        return sk_fail(err, SK_EUNSUPPORTED,
                       "the tensor '%s' is of type %s, which this build cannot compute with (it can: F32, F16, BF16, "
                       "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0)",
                       name, sk_tensor_type_info((*out)->type)->name);
    return SK_OK;
}

static sk_status add_request(struct sk_model *m, struct request r, struct sk_error *err) {
    struct sk_plan *plan = m->plan;
    if (!sk_grow(&plan->requests, &plan->cap, plan->n + 1, sizeof *plan->requests))
        return sk_fail_memory(err, sizeof r, "the load plan");
    plan->requests[plan->n++] = r;
    return SK_OK;
}

static bool add_size(size_t *total, size_t n, size_t size) {
    size_t bytes;
    return !__builtin_mul_overflow(n, size, &bytes) && bytes <= SIZE_MAX - 63 &&
           !__builtin_add_overflow(*total, sk_round_up(bytes, 64), total);
}

static sk_status add_matrix(struct sk_model *m, struct request r, const struct sk_format *f, size_t n_out,
                            struct sk_error *err) {
    const size_t k = (size_t)r.tensor->ne[0];
    *r.matrix = (struct sk_weight){.format = f,
                                   .n_out = n_out,
                                   .k = k,
                                   .n_panels = (n_out + SK_PANEL_ROWS - 1) / SK_PANEL_ROWS,
                                   .panel_bytes = k / f->block_k * f->panel_block_bytes};
    if (!add_size(&m->plan->region_bytes, r.matrix->n_panels, r.matrix->panel_bytes))
        return sk_fail_memory(err, SIZE_MAX, "a matrix");
    return add_request(m, r, err);
}

sk_status sk_plan_matrix(struct sk_model *m, const char *pattern, uint32_t layer, size_t k, size_t n_out, bool required,
                         struct sk_weight *out, struct sk_error *err) {
    char name[64];
    const struct sk_gguf_tensor *t;
    const struct sk_format *f = NULL;
    const sk_status st = find(m, pattern, layer, required, name, &t, &f, err);
    if (st || !t) return st;
    if (t->ne[0] != k || t->ne[1] != n_out || t->n_elements != (uint64_t)k * n_out)
        return sk_fail(err, SK_EFORMAT,
                       "the tensor '%s' has the shape %" PRIu64 " x %" PRIu64 " where the metadata asks for %zu x %zu",
                       name, t->ne[0], t->ne[1], k, n_out);
    return add_matrix(m, (struct request){.tensor = t, .matrix = out}, f, n_out, err);
}

sk_status sk_plan_rows(struct sk_model *m, const struct sk_gguf_tensor *t, const struct sk_gguf_value *row_ids,
                       struct sk_weight *out, struct sk_error *err) {
    const struct sk_format *f = sk_format_for_type(t->type);
    if (!f)
        return sk_fail(err, SK_EUNSUPPORTED, "the tensor '%.*s' cannot be computed with", (int)t->name.n, t->name.p);
    return add_matrix(m, (struct request){.tensor = t, .matrix = out, .row_ids = row_ids}, f, (size_t)row_ids->count,
                      err);
}

sk_status sk_plan_vector(struct sk_model *m, const char *pattern, uint32_t layer, size_t n, bool required, float **out,
                         struct sk_error *err) {
    char name[64];
    const struct sk_gguf_tensor *t;
    const struct sk_format *f = NULL;
    const sk_status st = find(m, pattern, layer, required, name, &t, &f, err);
    if (st || !t) return st;
    if (t->n_elements != n)
        return sk_fail(err, SK_EFORMAT, "the tensor '%s' has %" PRIu64 " elements where the metadata asks for %zu",
                       name, t->n_elements, n);
    if (!add_size(&m->plan->region_bytes, n, sizeof(float))) return sk_fail_memory(err, SIZE_MAX, name);
    return add_request(m, (struct request){.tensor = t, .vector = out}, err);
}

/* ---- hyperparameters ----------------------------------------------------------------------------------- */

struct keys {
    const struct sk_gguf *g;
    const char *arch;
    struct sk_error *err;
    sk_status status; /* the first failure; later reads do nothing */
    char name[128];
};

static const char *key(struct keys *k, const char *suffix) {
    snprintf(k->name, sizeof k->name, "%s.%s", k->arch, suffix);
    return k->name;
}
static uint32_t get_u32(struct keys *k, const char *suffix, uint32_t fallback) {
    uint32_t v = fallback;
    if (!k->status) k->status = sk_gguf_u32(k->g, key(k, suffix), fallback, &v, k->err);
    return v;
}
static float get_f32(struct keys *k, const char *suffix, float fallback) {
    float v = fallback;
    if (!k->status) k->status = sk_gguf_f32(k->g, key(k, suffix), fallback, &v, k->err);
    return v;
}
static uint32_t need_u32(struct keys *k, const char *suffix, uint32_t max) {
    const uint32_t v = get_u32(k, suffix, UINT32_MAX);
    if (k->status) return 1;
    if (v == UINT32_MAX)
        k->status = sk_fail(k->err, SK_EFORMAT, "the key '%s' is missing", key(k, suffix));
    else if (v == 0 || v > max)
        k->status = sk_fail(k->err, SK_EFORMAT, "the key '%s' is %u: 1 to %u are possible", key(k, suffix), v, max);
    return v ? v : 1;
}

static void read_rope(struct keys *k, struct sk_hparams *h) {
    h->n_rot = get_u32(k, "rope.dimension_count", h->head_dim);
    h->rope_base = get_f32(k, "rope.freq_base", 10000.0f);
    h->rope_factor = 1.0f;
    h->rope_attention_factor = get_f32(k, "rope.scaling.attn_factor", 1.0f);
    h->yarn_beta_fast = get_f32(k, "rope.scaling.yarn_beta_fast", 32.0f);
    h->yarn_beta_slow = get_f32(k, "rope.scaling.yarn_beta_slow", 1.0f);
    h->rope_original_ctx = get_u32(k, "rope.scaling.original_context_length", h->n_ctx_train);
    struct sk_str type = {"", 0};
    if (!k->status) k->status = sk_gguf_string(k->g, key(k, "rope.scaling.type"), sk_str_of("none"), &type, k->err);
    if (k->status) return;
    /* Old files have only the linear scale, under another name. */
    const float scale = get_f32(k, "rope.scale_linear", 0.0f), factor = get_f32(k, "rope.scaling.factor", scale);
    if (k->status) return;
    if (sk_str_is(type, "linear") ||
        (sk_str_is(type, "none") && factor > 0.0f && !sk_gguf_find(k->g, key(k, "rope.scaling.type"))))
        h->rope_scaling = SK_ROPE_LINEAR;
    else if (sk_str_is(type, "yarn"))
        h->rope_scaling = SK_ROPE_YARN;
    else if (!sk_str_is(type, "none"))
        k->status =
            sk_fail(k->err, SK_EUNSUPPORTED, "the rope scaling type '%.*s' is not supported: none, linear and yarn are",
                    (int)type.n, type.p);
    if (h->rope_scaling == SK_ROPE_NONE) return;
    h->rope_factor = factor;
    if (!k->status && !(factor > 0.0f && isfinite(factor)))
        k->status = sk_fail(k->err, SK_EFORMAT, "the key '%s' must be positive", key(k, "rope.scaling.factor"));
}

static sk_status check_hparams(const struct sk_hparams *h, struct sk_error *err) {
    if (h->n_heads % h->n_kv_heads)
        return sk_fail(err, SK_EFORMAT, "%u attention heads cannot share %u key-value heads", h->n_heads,
                       h->n_kv_heads);
    if (h->head_dim % 8 || h->head_dim_v % 8 || h->head_dim > 1024 || h->head_dim_v > 1024)
        return sk_fail(err, SK_EUNSUPPORTED,
                       "heads of %u and %u dimensions are not supported: multiples of 8 up to 1024 are", h->head_dim,
                       h->head_dim_v);
    if (h->n_rot % 2 || h->n_rot > h->head_dim)
        return sk_fail(err, SK_EFORMAT,
                       "rope.dimension_count is %u: an even number up to the head's %u dimensions is needed", h->n_rot,
                       h->head_dim);
    if (!(h->rope_base > 1.0f))
        return sk_fail(err, SK_EFORMAT, "rope.freq_base is %g: more than 1 is needed", (double)h->rope_base);
    if (!(h->norm_eps >= 0.0f && h->norm_eps < 1.0f))
        return sk_fail(err, SK_EFORMAT, "layer_norm_rms_epsilon is %g: 0 to 1 are possible", (double)h->norm_eps);
    return SK_OK;
}

static sk_status read_hparams(struct sk_model *m, struct sk_error *err) {
    struct sk_hparams *h = &m->h;
    struct keys k = {.g = m->gguf, .arch = m->arch->name, .err = err};
    h->n_ctx_train = need_u32(&k, "context_length", 1u << 28);
    h->n_layers = need_u32(&k, "block_count", 4096);
    const uint32_t n_mtp =
        get_u32(&k, "nextn_predict_layers", 0); /* the last blocks of the file are MTP blocks (mtp.h) */
    h->n_embd = need_u32(&k, "embedding_length", 1u << 20);
    h->n_ff = need_u32(&k, "feed_forward_length", 1u << 22);
    h->n_heads = need_u32(&k, "attention.head_count", 4096);
    h->n_kv_heads = get_u32(&k, "attention.head_count_kv", h->n_heads);
    h->head_dim = get_u32(&k, "attention.key_length", h->n_embd / h->n_heads);
    h->head_dim_v = get_u32(&k, "attention.value_length", h->n_embd / h->n_heads);
    h->norm_eps = get_f32(&k, "attention.layer_norm_rms_epsilon", 1e-5f);
    if (!k.status) read_rope(&k, h);
    if (k.status) return k.status;
    if (n_mtp >= h->n_layers)
        return sk_fail(err, SK_EFORMAT, "%u MTP blocks (nextn_predict_layers) leave none of the %u blocks", n_mtp,
                       h->n_layers);
    h->n_layers -= n_mtp;
    if (h->n_kv_heads == 0 || h->head_dim == 0 || h->head_dim_v == 0)
        return sk_fail(err, SK_EFORMAT, "the attention heads of this model have no dimensions");
    h->attention_scale = get_f32(&k, "attention.scale", 1.0f / sqrtf((float)h->head_dim));
    if (k.status) return k.status;
    const sk_status st = m->arch->hparams(m, err);
    return st ? st : check_hparams(h, err);
}

/* ---- plan and fill ------------------------------------------------------------------------------------- */

static sk_status plan_ends(struct sk_model *m, struct sk_error *err) {
    struct sk_hparams *h = &m->h;
    const struct sk_format *f = NULL;
    char name[64];
    sk_status st = find(m, "token_embd.weight", 0, true, name, &m->embedding, &f, err);
    if (st) return st;
    if (m->embedding->ne[0] != h->n_embd || m->embedding->n_dims != 2 || m->embedding->ne[1] > INT32_MAX)
        return sk_fail(err, SK_EFORMAT,
                       "the tensor 'token_embd.weight' has rows of %" PRIu64 " where the metadata asks for %u",
                       m->embedding->ne[0], h->n_embd);
    h->n_vocab = (uint32_t)m->embedding->ne[1];
    const struct sk_gguf_value *tokens = sk_gguf_find(m->gguf, "tokenizer.ggml.tokens");
    if (tokens && tokens->count > h->n_vocab)
        return sk_fail(err, SK_EFORMAT, "the vocabulary has %" PRIu64 " tokens but 'token_embd.weight' only %u rows",
                       tokens->count, h->n_vocab);
    if (m->last_layer < h->n_layers) return SK_OK;
    if ((st = sk_plan_vector(m, "output_norm.weight", 0, h->n_embd, true, &m->output_norm, err))) return st;
    if ((st = sk_plan_matrix(m, "output.weight", 0, h->n_embd, h->n_vocab, false, &m->output, err))) return st;
    if (m->output.format) return SK_OK;
    return sk_plan_matrix(m, "token_embd.weight", 0, h->n_embd, h->n_vocab, true, &m->output, err); /* tied */
}

sk_status sk_model_plan(const struct sk_gguf *g, const struct sk_load_options *options, struct sk_model **out,
                        struct sk_error *err) {
    struct sk_str arch;
    sk_status st = sk_gguf_string(g, "general.architecture", sk_str_of(""), &arch, err);
    if (st) return st;
    if (arch.n == 0) return sk_fail(err, SK_EFORMAT, "the key 'general.architecture' is missing");
    const struct sk_architecture *family = sk_architecture_named(arch);
    if (!family)
        return sk_fail(err, SK_EUNSUPPORTED, "the architecture '%.*s' is not supported: %s is",
                       (int)(arch.n < 64 ? arch.n : 64), arch.p, sk_architecture_names());
    struct sk_model *m = sk_calloc(1, sizeof *m);
    if (m) m->plan = sk_calloc(1, sizeof *m->plan);
    if (!m || !m->plan) {
        free(m);
        return sk_fail_memory(err, sizeof *m, "a model");
    }
    m->arch = family;
    m->gguf = g;
    if ((st = read_hparams(m, err))) goto fail;
    m->first_layer = options ? options->first_layer : 0;
    m->last_layer = options && options->last_layer ? options->last_layer : m->h.n_layers;
    if (m->first_layer >= m->last_layer || m->last_layer > m->h.n_layers) {
        st = sk_fail(err, SK_EINVAL, "layers %u..%u are not a part of this model's 0..%u", m->first_layer,
                     m->last_layer, m->h.n_layers);
        goto fail;
    }
    const uint32_t n_layers = m->last_layer - m->first_layer;
    if (!(m->layers = sk_calloc(n_layers, sizeof *m->layers))) {
        st = sk_fail_memory(err, n_layers * sizeof *m->layers, "the layers");
        goto fail;
    }
    if ((st = plan_ends(m, err))) goto fail;
    for (uint32_t i = 0; i < n_layers; i++)
        if ((st = family->plan_layer(m, m->first_layer + i, &m->layers[i], err))) goto fail;
    if ((st = sk_rope_prepare(m, err))) goto fail;
    m->weight_bytes = m->plan->region_bytes;
    *out = m;
    return SK_OK;
fail:
    sk_model_free(m);
    return st;
}

size_t sk_model_planned_bytes(const struct sk_model *m) {
    return m->plan->region_bytes;
}

sk_status sk_model_create_block(const struct sk_model *target, const struct sk_gguf *g, struct sk_model **out,
                                struct sk_error *err) {
    const size_t n_pairs = target->h.n_rot / 2;
    struct sk_model *m = sk_calloc(1, sizeof *m);
    if (!m) return sk_fail_memory(err, sizeof *m, "an MTP block");
    *m = (struct sk_model){.arch = target->arch,
                           .gguf = g,
                           .h = target->h,
                           .first_layer = target->h.n_layers,
                           .last_layer = target->h.n_layers + 1,
                           .embedding = target->embedding,
                           .rope_magnitude = target->rope_magnitude};
    m->plan = sk_calloc(1, sizeof *m->plan);
    m->layers = sk_calloc(1, sizeof *m->layers);
    m->rope_frequencies = sk_calloc(n_pairs, sizeof *m->rope_frequencies);
    if (!m->plan || !m->layers || !m->rope_frequencies) {
        sk_model_free(m);
        return sk_fail_memory(err, sizeof *m, "an MTP block");
    }
    for (size_t i = 0; i < n_pairs; i++) m->rope_frequencies[i] = target->rope_frequencies[i];
    *out = m;
    return SK_OK;
}

/* Packs the tensor's rows, or those that are asked for. */
static sk_status pack(struct sk_pool *pool, const struct request *r, struct sk_error *err) {
    if (!r->row_ids) {
        sk_op_pack(pool, r->matrix, r->tensor->data);
        return SK_OK;
    }
    const struct sk_format *f = r->matrix->format;
    const size_t row_bytes = r->matrix->k / f->block_k * f->block_bytes, bytes = r->matrix->n_out * row_bytes;
    uint8_t *rows = sk_region_alloc(bytes);
    if (!rows) return sk_fail_memory(err, bytes, "the rows of a matrix");
    for (size_t i = 0; i < r->matrix->n_out; i++)
        memcpy(rows + i * row_bytes, r->tensor->data + (size_t)sk_gguf_array_int(r->row_ids, i) * row_bytes, row_bytes);
    sk_op_pack(pool, r->matrix, rows);
    sk_region_free(rows, bytes);
    return SK_OK;
}

sk_status sk_model_fill(struct sk_model *m, const struct sk_load_options *options, struct sk_pool *pool,
                        struct sk_error *err) {
    struct sk_plan *plan = m->plan;
    const size_t available = sk_memory_available();
    if (plan->region_bytes > available)
        return sk_fail(err, SK_ENOMEM, "the weights need %zu bytes of memory and %zu are available", plan->region_bytes,
                       available);
    plan->region = sk_region_alloc(plan->region_bytes);
    if (!plan->region) return sk_fail_memory(err, plan->region_bytes, "the weights");
    size_t at = 0;
    for (size_t i = 0; i < plan->n; i++) {
        const struct request *r = &plan->requests[i];
        if (r->matrix) {
            r->matrix->panels = plan->region + at;
            const sk_status st = pack(pool, r, err);
            if (st) return st;
            at += sk_round_up(r->matrix->n_panels * r->matrix->panel_bytes, 64);
        } else {
            *r->vector = (float *)(void *)(plan->region + at);
            sk_format_for_type(r->tensor->type)->dequantize(r->tensor->data, *r->vector, (size_t)r->tensor->n_elements);
            at += sk_round_up((size_t)r->tensor->n_elements * sizeof(float), 64);
        }
        if (options && options->progress)
            options->progress(options->progress_ctx, (double)at / (double)plan->region_bytes);
    }
    sk_gguf_forget_data(m->gguf);
    if (!m->arch->recurrent) return SK_OK;
    const size_t n_layers = m->last_layer - m->first_layer;
    if (!(m->recurrent = sk_calloc(n_layers, sizeof *m->recurrent)))
        return sk_fail_memory(err, n_layers * sizeof *m->recurrent, "the layers");
    for (size_t i = 0; i < n_layers; i++) m->arch->recurrent(m, &m->layers[i], &m->recurrent[i]);
    return SK_OK;
}

void sk_model_free(struct sk_model *m) {
    if (!m) return;
    if (m->plan) {
        sk_region_free(m->plan->region, m->plan->region_bytes);
        free(m->plan->requests);
    }
    free(m->plan);
    free(m->layers);
    free(m->recurrent);
    free(m->rope_frequencies);
    free(m);
}

struct sk_kv_layout sk_model_kv_layout(const struct sk_model *m) {
    return (struct sk_kv_layout){m->last_layer - m->first_layer, m->h.n_kv_heads, m->h.head_dim, m->h.head_dim_v};
}

size_t sk_model_logits_stride(const struct sk_model *m) {
    return sk_round_up(m->h.n_vocab, SK_PANEL_ROWS);
}
