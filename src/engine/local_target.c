/* The target in this process: one pass of the runtime over all windows, then sampling. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/local_drafts.h"
#include "engine/target.h"

struct sk_target_session {
    struct sk_session *main;
    struct sk_draft_session *drafts; /* NULL if the model has no head for it */
};

struct local {
    struct sk_target target; /* must be first */
    struct sk_runtime *rt;
    struct sk_sampler *sampler;
    struct sk_window *windows; /* submitted, not yet run */
    size_t n_windows, cap_windows;
    struct sk_row *rows;
    size_t cap_rows;
    float *logits;
    size_t cap_logits; /* rows */
    int32_t *predicted;
    double *logprobs;
    size_t cap_predicted, cap_logprobs;
    struct sk_drafts *drafts; /* NULL without an MTP block */
    float *hidden;            /* [rows][n_embd] */
    size_t cap_hidden;
    struct sk_drafted *drafted;
    size_t cap_drafted;
};

static struct local *local_of(struct sk_target *t) {
    return (struct local *)t;
}
const struct sk_session *sk_local_target_session(const struct sk_target_session *s) {
    return s->main;
}

static void local_close(struct sk_target *t, struct sk_target_session *s) {
    (void)t;
    if (!s) return;
    sk_session_close(s->main);
    sk_draft_session_close(s->drafts);
    free(s);
}

static sk_status local_open(struct sk_target *t, struct sk_target_session **out, struct sk_error *err) {
    struct local *l = local_of(t);
    struct sk_target_session *s = sk_calloc(1, sizeof *s);
    if (!s) return sk_fail_memory(err, sizeof *s, "a session");
    sk_status st = sk_session_open(l->rt->kv, &s->main, err);
    if (!st && l->drafts) st = sk_draft_session_open(l->drafts, &s->drafts, err);
    if (st) {
        local_close(t, s);
        return st;
    }
    *out = s;
    return SK_OK;
}

static sk_status local_submit(struct sk_target *t, const struct sk_window *windows, size_t n, struct sk_error *err) {
    struct local *l = local_of(t);
    if (!sk_grow(&l->windows, &l->cap_windows, l->n_windows + n, sizeof *windows))
        return sk_fail_memory(err, n * sizeof *windows, "windows");
    for (size_t i = 0; i < n; i++) l->windows[l->n_windows++] = windows[i];
    return SK_OK;
}

/* A window's own faults; they must not reach the others of the batch. */
static sk_status check_window(const struct local *l, const struct sk_window *w, struct sk_error *err) {
    const struct sk_session *s = w->session->main;
    if (w->start != s->position)
        return sk_fail(err, SK_EINVAL, "window %llu starts at %u but its session is at %u", (unsigned long long)w->id,
                       w->start, s->position);
    if (w->n_committed < 1 || w->n_committed > w->n_rows)
        return sk_fail(err, SK_EINVAL, "window %llu has %zu committed of %zu rows", (unsigned long long)w->id,
                       w->n_committed, w->n_rows);
    for (size_t i = 0; i < w->n_rows; i++) {
        const int32_t token = w->sequence[w->start + i];
        if (token < 0 || (size_t)token >= l->rt->model->h.n_vocab)
            return sk_fail(err, SK_EINVAL, "token %d is not in the vocabulary of %u", token, l->rt->model->h.n_vocab);
    }
    return sk_session_reserve(w->session->main, (size_t)w->start + w->n_rows, err);
}

static size_t rows_wanted(const struct sk_window *w) {
    return w->predict ? w->n_rows - w->n_committed + 1 : 0;
}

static size_t sample_window(struct local *l, const struct sk_window *w, const float *logits, int32_t *predicted,
                            double *logprobs) {
    const size_t stride = sk_model_logits_stride(l->rt->model), wanted = rows_wanted(w);
    for (size_t i = 0; i < wanted; i++) {
        const size_t n_history = w->start + w->n_committed + i;
        predicted[i] = sk_sample(l->sampler, w->sampling, logits + i * stride, w->sequence, n_history, n_history,
                                 w->wants_logprobs ? &logprobs[i] : NULL);
        if (i + 1 < wanted && predicted[i] != w->sequence[n_history]) return i + 1;
    }
    return wanted;
}

static bool grow_outputs(struct local *l, size_t n_rows, size_t n_logits) {
    if (!sk_grow(&l->rows, &l->cap_rows, n_rows, sizeof *l->rows) ||
        !sk_grow(&l->predicted, &l->cap_predicted, n_logits, sizeof *l->predicted) ||
        !sk_grow(&l->logprobs, &l->cap_logprobs, n_logits, sizeof *l->logprobs))
        return false;
    if (l->drafts && !sk_grow(&l->hidden, &l->cap_hidden, n_rows * l->rt->model->h.n_embd, sizeof *l->hidden))
        return false;
    if (n_logits <= l->cap_logits) return true;
    const size_t stride = sk_model_logits_stride(l->rt->model) * sizeof(float);
    float *logits = sk_region_alloc(n_logits * stride);
    if (!logits) return false;
    sk_region_free(l->logits, l->cap_logits * stride);
    l->logits = logits;
    l->cap_logits = n_logits;
    return true;
}

/* Lets the model's own head see what was committed, and say what it thinks comes next. */
static void add_drafts(struct local *l, struct sk_result *results, size_t n) {
    size_t n_items = 0, row = 0;
    if (!sk_grow(&l->drafted, &l->cap_drafted, n, sizeof *l->drafted)) return;
    for (size_t i = 0; i < n; i++) {
        if (results[i].status) continue;
        l->drafted[n_items++] = (struct sk_drafted){&l->windows[i], &results[i], l->windows[i].session->drafts,
                                                    l->hidden + row * l->rt->model->h.n_embd};
        row += l->windows[i].n_rows;
    }
    const uint64_t start = sk_now_ns();
    sk_drafts_run(l->drafts, l->drafted, n_items);
    const double seconds = sk_seconds_since(start);
    for (size_t i = 0; i < n; i++) results[i].draft_s = seconds;
}

static size_t local_poll(struct sk_target *t, struct sk_result *results, size_t max) {
    struct local *l = local_of(t);
    const size_t n = l->n_windows < max ? l->n_windows : max;
    size_t n_rows = 0, n_logits = 0, at = 0;
    struct sk_error error = {0};
    for (size_t i = 0; i < n; i++) {
        const struct sk_window *w = &l->windows[i];
        results[i] = (struct sk_result){.id = w->id};
        results[i].status = check_window(l, w, &results[i].error);
        if (results[i].status) continue;
        n_rows += w->n_rows;
        n_logits += rows_wanted(w);
    }
    sk_status st =
        grow_outputs(l, n_rows + 1, n_logits + 1)
            ? SK_OK
            : sk_fail_memory(&error, n_logits * sk_model_logits_stride(l->rt->model) * sizeof(float), "logits");
    for (size_t i = 0; i < n && !st; i++) {
        const struct sk_window *w = &l->windows[i];
        for (size_t r = 0; r < w->n_rows && !results[i].status; r++)
            l->rows[at++] =
                (struct sk_row){w->session->main, w->sequence[w->start + r], w->predict && r + 1 >= w->n_committed};
    }
    if (!st) st = sk_runtime_run_hidden(l->rt, l->rows, n_rows, l->logits, l->drafts ? l->hidden : NULL, &error);
    const size_t stride = sk_model_logits_stride(l->rt->model);
    at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sk_window *w = &l->windows[i];
        if (results[i].status) continue;
        if ((results[i].status = st)) {
            results[i].error = error;
            continue;
        }
        results[i].n_predicted = sample_window(l, w, l->logits + at * stride, l->predicted + at, l->logprobs + at);
        results[i].predicted = l->predicted + at;
        results[i].logprobs = w->wants_logprobs ? l->logprobs + at : NULL;
        results[i].position = w->session->main->position;
        at += rows_wanted(w);
    }
    if (l->drafts && !st) add_drafts(l, results, n);
    for (size_t i = n; i < l->n_windows; i++) l->windows[i - n] = l->windows[i];
    l->n_windows -= n;
    return n;
}

static sk_status local_settle(struct sk_target *t, struct sk_target_session *s, uint32_t position,
                              struct sk_error *err) {
    (void)t;
    if (s->drafts) sk_draft_session_trim(s->drafts, position);
    return sk_session_trim(s->main, position, err);
}

static uint32_t local_position(const struct sk_target *t, const struct sk_target_session *s) {
    (void)t;
    return s->main->position;
}

static size_t local_context(const struct sk_target *t) {
    return ((const struct local *)t)->rt->n_positions;
}
static size_t local_max_rows(const struct sk_target *t) {
    return ((const struct local *)t)->rt->max_rows;
}
static size_t local_n_vocab(const struct sk_target *t) {
    return ((const struct local *)t)->rt->model->h.n_vocab;
}

static bool local_has_drafts(const struct sk_target *t) {
    return ((const struct local *)t)->drafts != NULL;
}

static double local_row_cost(const struct sk_target *t) {
    return (double)((const struct local *)t)->rt->ops.kernels->row_cost;
}

static void local_destroy(struct sk_target *t) {
    struct local *l = local_of(t);
    sk_region_free(l->logits, l->cap_logits * sk_model_logits_stride(l->rt->model) * sizeof(float));
    sk_sampler_free(l->sampler);
    sk_drafts_free(l->drafts);
    free(l->hidden);
    free(l->drafted);
    free(l->windows);
    free(l->rows);
    free(l->predicted);
    free(l->logprobs);
    free(l);
}

static const struct sk_target_ops local_ops = {local_open,     local_submit,     local_poll,     local_settle,
                                               local_position, local_close,      local_context,  local_max_rows,
                                               local_n_vocab,  local_has_drafts, local_row_cost, local_destroy};

sk_status sk_local_target_create(struct sk_runtime *rt, struct sk_target **out, struct sk_error *err) {
    struct local *l = sk_calloc(1, sizeof *l);
    if (!l) return sk_fail_memory(err, sizeof *l, "the target");
    l->target.ops = &local_ops;
    l->rt = rt;
    sk_status st = sk_sampler_create(rt->model->h.n_vocab, &l->sampler, err);
    if (!st && rt->mtp) st = sk_drafts_create(rt, &l->drafts, err);
    if (st) {
        local_destroy(&l->target);
        return st;
    }
    *out = &l->target;
    return SK_OK;
}
