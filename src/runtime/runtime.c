#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { DEFAULT_ROWS = 512, DEFAULT_POSITIONS = 8192, MTP_ROWS = 64 };

size_t sk_default_positions(const struct sk_hparams *h) {
    return h->n_ctx_train < DEFAULT_POSITIONS ? h->n_ctx_train : DEFAULT_POSITIONS;
}

static sk_status add_mtp(struct sk_runtime *rt, const struct sk_runtime_options *o, struct sk_error *err) {
    const bool in_file = rt->model->last_layer == rt->model->h.n_layers && sk_mtp_in_file(rt->model);
    if (o->without_mtp || (!o->mtp_file && !in_file)) return SK_OK;
    const sk_status st =
        sk_mtp_create(rt->model, o->mtp_file ? o->mtp_file : rt->model->gguf, rt->pool, MTP_ROWS, &rt->mtp, err);
    if (st) return st;
    const struct sk_kv_layout layout = sk_mtp_kv_layout(rt->mtp);
    return sk_kv_pool_create(&layout, rt->n_positions + SK_TILE, &rt->mtp_kv,
                             err); /* drafts stand a few positions ahead */
}

sk_status sk_runtime_create(const struct sk_gguf *g, const struct sk_runtime_options *o, struct sk_runtime **out,
                            struct sk_error *err) {
    struct sk_runtime *rt = sk_calloc(1, sizeof *rt);
    if (!rt) return sk_fail_memory(err, sizeof *rt, "the runtime");
    const size_t n_threads = o->pool ? sk_pool_threads(o->pool) : o->n_threads ? o->n_threads : sk_physical_cores();
    rt->max_rows = o->max_rows ? o->max_rows : DEFAULT_ROWS;
    rt->ops.kernels = o->isa ? sk_kernels_named(o->isa) : sk_kernels_best();
    sk_status st;
    if (!rt->ops.kernels) {
        st = sk_fail(err, SK_EINVAL, "the instruction set '%s' is unknown or not supported by this processor", o->isa);
        goto fail;
    }
    const struct sk_load_options load = {o->first_layer, o->last_layer, o->progress, o->progress_ctx};
    if ((st = sk_model_plan(g, &load, &rt->model, err))) goto fail;
    rt->n_positions = o->n_positions ? o->n_positions : sk_default_positions(&rt->model->h);
    const struct sk_kv_layout layout = sk_model_kv_layout(rt->model);
    rt->pool = o->pool;
    if (!rt->pool && (st = sk_pool_create(n_threads, &rt->pool, err))) goto fail;
    rt->owns_pool = !o->pool;
    rt->ops.pool = rt->pool;
    if ((st = sk_kv_pool_create(&layout, rt->n_positions, &rt->kv, err))) goto fail;
    if ((st = sk_workspace_create(rt->model, rt->max_rows, n_threads, &rt->ws, err))) goto fail;
    rt->x = sk_region_alloc(rt->max_rows * rt->model->h.n_embd * sizeof(float));
    rt->places = sk_calloc(rt->max_rows, sizeof *rt->places);
    rt->tokens = sk_calloc(rt->max_rows, sizeof *rt->tokens);
    rt->outputs = sk_calloc(rt->max_rows, sizeof *rt->outputs);
    if (!rt->x || !rt->places || !rt->tokens || !rt->outputs) {
        st = sk_fail_memory(err, rt->max_rows * rt->model->h.n_embd * sizeof(float), "a batch");
        goto fail;
    }
    if ((st = sk_model_fill(rt->model, &load, rt->pool, err))) goto fail;
    if ((st = add_mtp(rt, o, err))) goto fail;
    if (rt->model->recurrent)
        sk_kv_pool_set_recurrent(rt->kv, &(struct sk_recurrent_layout){rt->model->recurrent,
                                                                       rt->model->last_layer - rt->model->first_layer});
    *out = rt;
    return SK_OK;
fail:
    sk_runtime_free(rt);
    return st;
}

void sk_runtime_free(struct sk_runtime *rt) {
    if (!rt) return;
    sk_mtp_free(rt->mtp);
    sk_kv_pool_free(rt->mtp_kv);
    sk_workspace_free(rt->ws);
    sk_kv_pool_free(rt->kv);
    if (rt->owns_pool) sk_pool_destroy(rt->pool);
    if (rt->model) sk_region_free(rt->x, rt->max_rows * rt->model->h.n_embd * sizeof(float));
    sk_model_free(rt->model);
    free(rt->places);
    free(rt->tokens);
    free(rt->outputs);
    free(rt);
}

/* Checks tokens and takes pages for all rows. Positions are advanced as a way of counting; the caller puts them back.
 */
static sk_status admit(struct sk_runtime *rt, const struct sk_row *rows, size_t n, size_t *admitted,
                       struct sk_error *err) {
    for (*admitted = 0; *admitted < n; ++*admitted) {
        const struct sk_row *r = &rows[*admitted];
        if (r->token < 0 || (uint32_t)r->token >= rt->model->h.n_vocab)
            return sk_fail(err, SK_EINVAL, "token %" PRId32 " is not in the vocabulary of %u", r->token,
                           rt->model->h.n_vocab);
        const sk_status st = sk_session_reserve(r->session, (size_t)r->session->position + 1, err);
        if (st) return st;
        r->session->position++;
    }
    return SK_OK;
}

static void run_pass(struct sk_runtime *rt, const struct sk_row *rows, size_t n, float *logits, size_t *n_outputs) {
    *n_outputs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sk_session *s = rows[i].session;
        rt->places[i] =
            (struct sk_row_place){rows[i].session->position++, s->pages, s->recurrent, sk_recurrent_advance};
        rt->tokens[i] = rows[i].token;
        if (rows[i].wants_logits) rt->outputs[(*n_outputs)++] = (uint32_t)i;
    }
    sk_model_forward(rt->model, &rt->ops, rt->ws,
                     &(struct sk_forward){.rows = n,
                                          .places = rt->places,
                                          .tokens = rt->tokens,
                                          .first_layer = rt->model->first_layer,
                                          .last_layer = rt->model->last_layer,
                                          .x = rt->x,
                                          .outputs = rt->outputs,
                                          .n_outputs = *n_outputs,
                                          .logits = logits});
}

/* Hidden states of the pass that just ran, as the MTP block takes them. */
static void keep_hidden(struct sk_runtime *rt, size_t n, float *hidden) {
    const size_t n_embd = rt->model->h.n_embd;
    if (rt->mtp && rt->mtp->hidden_after_norm)
        sk_op_rms_norm(&rt->ops, rt->x, rt->model->output_norm, rt->model->h.norm_eps, n, n_embd, hidden);
    else
        memcpy(hidden, rt->x, n * n_embd * sizeof *hidden);
}

sk_status sk_runtime_run_hidden(struct sk_runtime *rt, const struct sk_row *rows, size_t n, float *logits,
                                float *hidden, struct sk_error *err) {
    size_t admitted;
    const sk_status st = admit(rt, rows, n, &admitted, err);
    for (size_t i = 0; i < admitted; i++) rows[i].session->position--;
    if (st) return st;
    const size_t stride = sk_model_logits_stride(rt->model);
    for (size_t i = 0; i < n; i += rt->max_rows) {
        const size_t rows_now = n - i < rt->max_rows ? n - i : rt->max_rows;
        size_t n_outputs;
        run_pass(rt, rows + i, rows_now, logits, &n_outputs);
        if (hidden) keep_hidden(rt, rows_now, hidden + i * rt->model->h.n_embd);
        if (logits) logits += n_outputs * stride;
    }
    return SK_OK;
}

sk_status sk_runtime_run(struct sk_runtime *rt, const struct sk_row *rows, size_t n, float *logits,
                         struct sk_error *err) {
    return sk_runtime_run_hidden(rt, rows, n, logits, NULL, err);
}

/* ---- the MTP block ------------------------------------------------------------------------------------- */

static sk_status run_mtp_pass(struct sk_runtime *rt, const struct sk_mtp_row *rows, size_t n, float *y, float *logits,
                              size_t *n_outputs, struct sk_error *err) {
    const float *hidden[MTP_ROWS];
    *n_outputs = 0;
    for (size_t i = 0; i < n; i++) {
        const sk_status st = sk_session_reserve(rows[i].session, (size_t)rows[i].session->position + 1, err);
        if (st) {
            while (i--) rows[i].session->position--;
            return st;
        }
        rt->places[i] = (struct sk_row_place){.position = rows[i].session->position++};
        rt->tokens[i] = rows[i].token;
        hidden[i] = rows[i].hidden;
        if (rows[i].wants_logits) rt->outputs[(*n_outputs)++] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) rt->places[i].pages = rows[i].session->pages; /* which have stopped moving */
    sk_mtp_run(rt->mtp, &rt->ops,
               &(struct sk_mtp_forward){.rows = n,
                                        .places = rt->places,
                                        .tokens = rt->tokens,
                                        .hidden = hidden,
                                        .y = y,
                                        .outputs = rt->outputs,
                                        .n_outputs = *n_outputs,
                                        .logits = logits});
    return SK_OK;
}

sk_status sk_runtime_run_mtp(struct sk_runtime *rt, const struct sk_mtp_row *rows, size_t n, float *y, float *logits,
                             struct sk_error *err) {
    const size_t most = rt->max_rows < MTP_ROWS ? rt->max_rows : MTP_ROWS;
    for (size_t i = 0; i < n; i += most) {
        size_t n_outputs;
        const sk_status st = run_mtp_pass(rt, rows + i, n - i < most ? n - i : most, y + i * rt->model->h.n_embd,
                                          logits, &n_outputs, err);
        if (st) return st;
        if (logits) logits += n_outputs * sk_mtp_logits_stride(rt->mtp);
    }
    return SK_OK;
}
