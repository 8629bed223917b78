#include "engine/draft_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/exact_math.h"
#include "base/memory.h"

struct sk_draft_model {
    struct sk_gguf *gguf;
    struct sk_runtime *rt;
    struct sk_sampler *sampler;
    float *logits;
};

struct drafter {
    struct sk_proposer proposer; /* must be first */
    struct sk_draft_model *model;
    struct sk_sampling_params params;
    size_t max;
    float min_probability;
    struct sk_session *session;
    int32_t *tokens; /* what the session holds; room for the context and drafts after it */
    size_t cap_tokens;
    struct sk_row *rows;
    size_t cap_rows;
};

/* ---- the model ----------------------------------------------------------------------------------------- */

static sk_status check_vocabulary(const struct sk_tokenizer *target, const struct sk_tokenizer *draft,
                                  struct sk_error *err) {
    const size_t n = sk_tokenizer_size(target), m = sk_tokenizer_size(draft);
    for (size_t i = 0; i < n && i < m; i++) {
        const struct sk_str a = sk_token_text(target, (int32_t)i), b = sk_token_text(draft, (int32_t)i);
        if (!sk_str_eq(a, b))
            return sk_fail(err, SK_EINVAL,
                           "the draft model has another vocabulary: token %zu is '%.*s', in the model it is '%.*s'", i,
                           (int)b.n, b.p, (int)a.n, a.p);
    }
    if (n != m)
        return sk_fail(err, SK_EINVAL, "the draft model has another vocabulary: %zu tokens, the model has %zu", m, n);
    return SK_OK;
}

sk_status sk_draft_model_open(const char *path, const struct sk_tokenizer *tokenizer, const struct sk_runtime *target,
                              struct sk_draft_model **out, struct sk_error *err) {
    struct sk_draft_model *d = sk_calloc(1, sizeof *d);
    struct sk_tokenizer *own = NULL;
    const struct sk_tokenizer_options lenient = {.allow_unknown_pretokenizer = true};
    if (!d) return sk_fail_memory(err, sizeof *d, "the draft model");
    const struct sk_runtime_options options = {.pool = target->pool,
                                               .n_positions = target->n_positions,
                                               .isa = target->ops.kernels->name,
                                               .max_rows = target->max_rows};
    sk_status st = sk_gguf_open(path, &d->gguf, err);
    if (!st) st = sk_tokenizer_open(d->gguf, &lenient, &own, err);
    if (!st) st = check_vocabulary(tokenizer, own, err);
    if (!st) st = sk_runtime_create(d->gguf, &options, &d->rt, err);
    if (!st && d->rt->model->h.n_vocab != target->model->h.n_vocab)
        st = sk_fail(err, SK_EINVAL, "the draft model has %u output tokens, the model has %u", d->rt->model->h.n_vocab,
                     target->model->h.n_vocab);
    if (!st) st = sk_sampler_create(d->rt->model->h.n_vocab, &d->sampler, err);
    if (!st && !(d->logits = sk_region_alloc(sk_model_logits_stride(d->rt->model) * sizeof(float))))
        st = sk_fail_memory(err, sk_model_logits_stride(d->rt->model) * sizeof(float), "logits");
    sk_tokenizer_close(own);
    if (st) {
        sk_draft_model_close(d);
        return sk_fail_within(err, "%s", path);
    }
    *out = d;
    return SK_OK;
}

void sk_draft_model_close(struct sk_draft_model *d) {
    if (!d) return;
    if (d->rt) sk_region_free(d->logits, sk_model_logits_stride(d->rt->model) * sizeof(float));
    sk_sampler_free(d->sampler);
    sk_runtime_free(d->rt);
    sk_gguf_close(d->gguf);
    free(d);
}

/* ---- drafting ------------------------------------------------------------------------------------------ */

/* Runs the tokens [session position, n) in one go; the last one's logits are left in the model's buffer. */
static bool run_to(struct drafter *d, size_t n) {
    struct sk_error ignored;
    size_t rows = 0;
    if (!sk_grow(&d->rows, &d->cap_rows, n - d->session->position, sizeof *d->rows)) return false;
    for (size_t i = d->session->position; i < n; i++)
        d->rows[rows++] = (struct sk_row){d->session, d->tokens[i], i + 1 == n};
    return sk_runtime_run(d->model->rt, d->rows, rows, d->model->logits, &ignored) == SK_OK;
}

/* Takes the context over: what the session holds beyond the common beginning is forgotten, at least one token is left
 * to run. */
static bool catch_up(struct drafter *d, const struct sk_proposal_request *r) {
    struct sk_error ignored;
    size_t same = 0, held = d->session->position;
    if (!sk_grow(&d->tokens, &d->cap_tokens, r->n + d->max + 1, sizeof *d->tokens)) return false;
    while (same < held && same + 1 < r->n && d->tokens[same] == r->tokens[same]) same++;
    if (sk_session_trim(d->session, (uint32_t)same, &ignored)) return false;
    memcpy(d->tokens + same, r->tokens + same, (r->n - same) * sizeof *d->tokens);
    return run_to(d, r->n);
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct drafter *d = (struct drafter *)p;
    const size_t limit = r->limit < d->max ? r->limit : d->max;
    if (limit == 0 || r->n + limit > d->model->rt->n_positions || !catch_up(d, r)) return 0;
    for (size_t n = 0;; n++) {
        double logprob;
        const int32_t token =
            sk_sample(d->model->sampler, &d->params, d->model->logits, d->tokens, r->n + n, r->n + n, &logprob);
        const double probability = sk_exp(logprob);
        if (probability < (double)d->min_probability) return n;
        out[n] = (struct sk_draft){token, SK_DRAFT, (uint8_t)(probability >= 1.0 ? 15 : probability * 16.0)};
        if (n + 1 == limit) return limit;
        d->tokens[r->n + n] = token;
        if (!run_to(d, r->n + n + 1)) return n + 1;
    }
}

static void destroy(struct sk_proposer *p) {
    struct drafter *d = (struct drafter *)p;
    sk_session_close(d->session);
    free(d->tokens);
    free(d->rows);
    free(d);
}

static const struct sk_proposer_ops draft_ops = {SK_DRAFT, propose, NULL, destroy};

sk_status sk_draft_proposer_create(struct sk_draft_model *model, const struct sk_sampling_params *params, size_t max,
                                   float min_probability, struct sk_proposer **out, struct sk_error *err) {
    struct drafter *d = sk_calloc(1, sizeof *d);
    if (!d) return sk_fail_memory(err, sizeof *d, "a drafter");
    *d = (struct drafter){.proposer = {&draft_ops},
                          .model = model,
                          .params = *params,
                          .max = max < SK_MAX_WINDOW ? max : SK_MAX_WINDOW - 1,
                          .min_probability = min_probability};
    const sk_status st = sk_session_open(model->rt->kv, &d->session, err);
    if (st) {
        free(d);
        return st;
    }
    *out = &d->proposer;
    return SK_OK;
}
