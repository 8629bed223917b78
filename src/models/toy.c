/* A toy with a running state, to hold the session interface to its promise before the families that need it arrive:
 * each block is a llama block, followed by s_t = decay ∘ s_{t-1} + rms_norm(x_t),    x_t += mix ∘ s_t with vectors
 * blk.N.state_{norm,decay,mix}. Architecture "skipstone-toy"; files of it are made by tests/oracle/make_toy.py. */
#include <math.h>

#include "internal.h"

static sk_status hparams(struct sk_model *m, struct sk_error *err) {
    (void)err;
    m->h.rope_halves = false;
    return SK_OK;
}

static sk_status plan_layer(struct sk_model *m, uint32_t i, struct sk_layer *l, struct sk_error *err) {
    sk_status st = sk_architecture_llama.plan_layer(m, i, l, err);
    if (!st) st = sk_plan_vector(m, "blk.%u.state_norm.weight", i, m->h.n_embd, true, &l->state_norm, err);
    if (!st) st = sk_plan_vector(m, "blk.%u.state_decay.weight", i, m->h.n_embd, true, &l->state_decay, err);
    return st ? st : sk_plan_vector(m, "blk.%u.state_mix.weight", i, m->h.n_embd, true, &l->state_mix, err);
}

static void step(const void *ctx, float *state, const float *input) {
    const struct sk_layer *l = ctx;
    const size_t n = l->o.n_out; /* n_embd */
    for (size_t i = 0; i < n; i++) state[i] = fmaf(l->state_decay[i], state[i], input[i]);
}

static void recurrent(const struct sk_model *m, const struct sk_layer *l, struct sk_recurrent_kind *out) {
    *out = (struct sk_recurrent_kind){m->h.n_embd, m->h.n_embd, step, l};
}

static void layer(const struct sk_model *m, const struct sk_layer *l, size_t kv_layer, struct sk_workspace *ws) {
    const size_t n = m->h.n_embd;
    sk_architecture_llama.layer(m, l, kv_layer, ws);
    sk_op_rms_norm(ws->ops, ws->x, l->state_norm, m->h.norm_eps, ws->rows, n, ws->norm);
    for (size_t row = 0; row < ws->rows; row++) { /* in position order, whatever shares the pass */
        const struct sk_row_place *p = &ws->places[row];
        const float *state = p->advance(p->recurrent, kv_layer, ws->norm + row * n);
        float *x = ws->x + row * n;
        for (size_t i = 0; i < n; i++) x[i] = fmaf(l->state_mix[i], state[i], x[i]);
    }
}

const struct sk_architecture sk_architecture_toy = {"skipstone-toy", hparams, plan_layer, layer,
                                                    .recurrent = recurrent};
