#include "engine/local_drafts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { KEPT_STATES = SK_MAX_WINDOW + 1, MOST_WAITING = 48 };

struct sk_drafts {
    struct sk_runtime *rt;
    struct sk_sampler *sampler;
    float *zeros, *logits; /* [n_embd]; [rows that draft] */
    size_t cap_logits;
    struct sk_mtp_row *rows;
    size_t cap_rows;
    float *y[2]; /* outputs of this step and the last: [rows][n_embd] */
    size_t cap_y[2];
    struct chain {
        struct sk_drafted *item;
        size_t base;      /* positions of the block's cache that stay */
        size_t n, wanted; /* drafts so far */
        double reach;     /* the chance that all of them are accepted */
        const float *y;
        bool active;
        struct sk_draft drafts[SK_MAX_WINDOW];
    } * chains;
    size_t cap_chains;
    int32_t *history;
    size_t cap_history;
};

sk_status sk_drafts_create(struct sk_runtime *rt, struct sk_drafts **out, struct sk_error *err) {
    struct sk_drafts *d = sk_calloc(1, sizeof *d);
    if (!d) return sk_fail_memory(err, sizeof *d, "drafts");
    d->rt = rt;
    d->zeros = sk_calloc(rt->model->h.n_embd, sizeof *d->zeros);
    sk_status st = d->zeros ? SK_OK : sk_fail_memory(err, rt->model->h.n_embd * sizeof(float), "drafts");
    if (!st) st = sk_sampler_create(rt->model->h.n_vocab, &d->sampler, err);
    if (st) {
        sk_drafts_free(d);
        return st;
    }
    *out = d;
    return SK_OK;
}

void sk_drafts_free(struct sk_drafts *d) {
    if (!d) return;
    sk_sampler_free(d->sampler);
    free(d->zeros);
    free(d->logits);
    free(d->rows);
    free(d->y[0]);
    free(d->y[1]);
    free(d->chains);
    free(d->history);
    free(d);
}

sk_status sk_draft_session_open(struct sk_drafts *d, struct sk_draft_session **out, struct sk_error *err) {
    struct sk_draft_session *s = sk_calloc(1, sizeof *s);
    if (!s) return sk_fail_memory(err, sizeof *s, "a session");
    const sk_status st = sk_session_open(d->rt->mtp_kv, &s->kv, err);
    if (st) {
        free(s);
        return st;
    }
    *out = s;
    return SK_OK;
}

void sk_draft_session_close(struct sk_draft_session *s) {
    if (!s) return;
    sk_session_close(s->kv);
    free(s->waiting.tokens);
    free(s->waiting.hidden);
    free(s->hidden);
    free(s);
}

static void lose(struct sk_draft_session *s) {
    struct sk_error ignored;
    s->lost = true;
    s->n_hidden = s->waiting.n = 0;
    sk_session_trim(s->kv, 0, &ignored);
}

void sk_draft_session_trim(struct sk_draft_session *s, uint32_t position) {
    struct sk_error ignored;
    /* The pair at `position` belongs to a token that is committed and not yet run: it stays, if that token stays. */
    if (s->kv->position + s->waiting.n > (size_t)position + 1)
        s->waiting.n = position > s->kv->position ? position - s->kv->position : 0;
    if (s->kv->position > position + 1) sk_session_trim(s->kv, position, &ignored);
    if (position == 0) s->lost = false;
    if (s->first_hidden + s->n_hidden > position)
        s->n_hidden = position > s->first_hidden ? position - s->first_hidden : 0;
}

/* ---- feeding ------------------------------------------------------------------------------------------- */

/* Rows of the window that are true, and whether a token after them is known. */
static size_t true_rows(const struct sk_drafted *i) {
    return i->window->predict ? i->window->n_committed + i->result->n_predicted - 1 : i->window->n_rows;
}

static int32_t token_at(const struct sk_drafted *i, size_t position) {
    const size_t end = i->window->start + true_rows(i);
    return position < end ? i->window->sequence[position] : i->result->predicted[i->result->n_predicted - 1];
}

static const float *hidden_before(const struct sk_drafts *d, const struct sk_drafted *i, size_t position) {
    const size_t n = d->rt->model->h.n_embd, start = i->window->start;
    const struct sk_draft_session *s = i->session;
    if (position > start) return i->hidden + (position - 1 - start) * n;
    if (position && position - 1 >= s->first_hidden && position - 1 < s->first_hidden + s->n_hidden)
        return s->hidden + (position - 1 - s->first_hidden) * n;
    return d->zeros; /* the first position, or a state that is gone: a worse draft, no other harm */
}

static bool add_row(struct sk_drafts *d, size_t *n, struct sk_mtp_row row) {
    if (!sk_grow(&d->rows, &d->cap_rows, *n + 1, sizeof *d->rows)) return false;
    d->rows[(*n)++] = row;
    return true;
}

static bool wait_for(struct sk_draft_session *s, size_t n_embd, int32_t token, const float *hidden) {
    struct sk_waiting_pairs *w = &s->waiting;
    if (!sk_grow(&w->tokens, &w->cap_tokens, w->n + 1, sizeof *w->tokens) ||
        !sk_grow(&w->hidden, &w->cap_hidden, (w->n + 1) * n_embd, sizeof *w->hidden))
        return false;
    w->tokens[w->n] = token;
    memcpy(w->hidden + w->n++ * n_embd, hidden, n_embd * sizeof *hidden);
    return true;
}

/* The pairs of one window: from where those before end to the last token that is known. Their rows are added if it is
 * time to run them. */
static bool feed(struct sk_drafts *d, struct sk_drafted *i, size_t *n_rows) {
    struct sk_draft_session *s = i->session;
    struct sk_waiting_pairs *w = &s->waiting;
    struct sk_error ignored;
    const size_t n_embd = d->rt->model->h.n_embd, start = i->window->start;
    const size_t end = start + true_rows(i) + (i->window->predict ? 1 : 0);
    if (s->kv->position + w->n == start + 1 && s->last_token != i->window->sequence[start]) {
        if (w->n)
            w->n--;
        else
            sk_session_trim(s->kv, (uint32_t)start, &ignored);
    }
    if (s->kv->position + w->n < start) return false;
    for (size_t p = s->kv->position + w->n; p < end; p++)
        if (!wait_for(s, n_embd, token_at(i, p), hidden_before(d, i, p))) return false;
    s->last_token = token_at(i, end - 1);
    const bool drafts = i->window->predict && i->window->drafts_wanted > 0;
    if (!drafts && w->n < MOST_WAITING) return true;
    for (size_t p = 0; p < w->n; p++)
        if (!add_row(d, n_rows,
                     (struct sk_mtp_row){s->kv, w->tokens[p], w->hidden + p * n_embd, drafts && p + 1 == w->n}))
            return false;
    w->n = 0; /* what is there stays until the rows have run */
    return true;
}

/* Keeps the last true states: the next pair needs one of them, and after an early stop perhaps an earlier one. */
static bool keep_states(const struct sk_drafts *d, struct sk_drafted *i) {
    const size_t n = true_rows(i), keep = n < KEPT_STATES ? n : KEPT_STATES, n_embd = d->rt->model->h.n_embd;
    struct sk_draft_session *s = i->session;
    if (!sk_grow(&s->hidden, &s->cap_hidden, keep * n_embd, sizeof *s->hidden)) return false;
    memcpy(s->hidden, i->hidden + (n - keep) * n_embd, keep * n_embd * sizeof *s->hidden);
    s->first_hidden = (uint32_t)(i->window->start + n - keep);
    s->n_hidden = keep;
    return true;
}

/* ---- drafting ------------------------------------------------------------------------------------------ */

/* Which of the head's rows stands for a token that it drew. */
static size_t row_of(const struct sk_mtp *m, int32_t token) {
    size_t low = 0, high = sk_mtp_head_rows(m);
    if (!m->head_tokens) return (size_t)token;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(m->head_tokens[middle] <= token ? &low : &high) = middle;
    }
    return low;
}

static double acceptance_of(const struct sk_window *w, double probability, uint8_t evidence) {
    return w->draft_acceptance ? (double)w->draft_acceptance[evidence] : probability;
}

/* Draws the next draft with the target's noise at its place. False if it is too unlikely, or the chain is done. */
static bool draw(struct sk_drafts *d, struct chain *c, const float *logits) {
    const struct sk_window *w = c->item->window;
    const struct sk_result *r = c->item->result;
    const struct sk_mtp *m = d->rt->mtp;
    const size_t known = w->start + w->n_committed + r->n_predicted,
                 n_history = known + c->n; /* prompt, output, drafts */
    const int32_t *history = NULL;
    if (sk_sampling_looks_back(w->sampling)) {
        if (!sk_grow(&d->history, &d->cap_history, n_history, sizeof *d->history)) return false;
        for (size_t i = 0; i < known; i++) d->history[i] = token_at(c->item, i);
        for (size_t i = 0; i < c->n; i++) d->history[known + i] = c->drafts[i].token;
        history = d->history;
    }
    const int32_t token = sk_sample_among(d->sampler, w->sampling, logits, m->head_tokens, sk_mtp_head_rows(m), history,
                                          history ? n_history : 0, n_history);
    const double probability = sk_probability_estimate(logits, sk_mtp_head_rows(m), row_of(m, token));
    if (probability < (double)w->draft_min_probability) return false;
    const uint8_t evidence = (uint8_t)(probability >= 1.0 ? 15 : probability * 16.0);
    c->drafts[c->n++] = (struct sk_draft){token, SK_MTP, evidence};
    c->reach *= acceptance_of(w, probability, evidence);
    return c->n < c->wanted && c->reach >= (double)w->draft_min_reach;
}

static bool make_room(struct sk_drafts *d, size_t rows, size_t outputs, size_t which) {
    return sk_grow(&d->y[which], &d->cap_y[which], rows * d->rt->model->h.n_embd, sizeof(float)) &&
           sk_grow(&d->logits, &d->cap_logits, outputs * sk_mtp_logits_stride(d->rt->mtp), sizeof(float));
}

/* Chains that go on: one row each, its own output for a hidden state. */
static void run_chains(struct sk_drafts *d, size_t n_chains) {
    const size_t n_embd = d->rt->model->h.n_embd, stride = sk_mtp_logits_stride(d->rt->mtp);
    struct sk_error ignored;
    for (size_t which = 1;; which ^= 1) {
        size_t n = 0, at = 0;
        for (size_t i = 0; i < n_chains; i++)
            if (d->chains[i].active)
                add_row(d, &n,
                        (struct sk_mtp_row){d->chains[i].item->session->kv,
                                            d->chains[i].drafts[d->chains[i].n - 1].token, d->chains[i].y, true});
        if (n == 0 || !make_room(d, n, n, which)) return;
        if (sk_runtime_run_mtp(d->rt, d->rows, n, d->y[which], d->logits, &ignored)) return;
        for (size_t i = 0; i < n_chains; i++) {
            struct chain *c = &d->chains[i];
            if (!c->active) continue;
            c->y = d->y[which] + at * n_embd;
            c->active = draw(d, c, d->logits + at++ * stride);
        }
    }
}

void sk_drafts_run(struct sk_drafts *d, struct sk_drafted *items, size_t n) {
    struct sk_error ignored;
    const size_t n_embd = d->rt->model->h.n_embd;
    size_t n_rows = 0, n_chains = 0, at = 0;
    if (!sk_grow(&d->chains, &d->cap_chains, n, sizeof *d->chains)) return;
    for (size_t i = 0; i < n; i++) {
        const size_t before = n_rows;
        if (!items[i].window->keeps_drafts || items[i].session->lost || !feed(d, &items[i], &n_rows)) {
            n_rows = before;
            lose(items[i].session);
            continue;
        }
        if (items[i].window->drafts_wanted && items[i].window->predict)
            d->chains[n_chains++] =
                (struct chain){.item = &items[i],
                               .reach = 1.0,
                               .wanted = items[i].window->drafts_wanted < SK_MAX_WINDOW ? items[i].window->drafts_wanted
                                                                                        : SK_MAX_WINDOW};
    }
    const bool ran = n_rows == 0 || (make_room(d, n_rows, n_chains + 1, 0) &&
                                     !sk_runtime_run_mtp(d->rt, d->rows, n_rows, d->y[0], d->logits, &ignored));
    for (size_t i = 0; i < n; i++)
        if (!items[i].session->lost && (!ran || !keep_states(d, &items[i]))) lose(items[i].session);
    if (!ran) return;
    for (size_t row = 0; row < n_rows; row++) {
        if (!d->rows[row].wants_logits) continue;
        struct chain *c = &d->chains[at];
        c->y = d->y[0] + row * n_embd;
        c->base = c->item->session->kv->position;
        c->active = draw(d, c, d->logits + at++ * sk_mtp_logits_stride(d->rt->mtp));
    }
    run_chains(d, n_chains);
    for (size_t i = 0; i < n_chains; i++) {
        struct chain *c = &d->chains[i];
        sk_session_trim(c->item->session->kv, (uint32_t)c->base, &ignored); /* drafts leave no trace */
        c->item->result->drafts = c->drafts;
        c->item->result->n_drafts = c->n;
    }
}
