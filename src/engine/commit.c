/* From a window's result to committed tokens, a repaired session and a receipt: rules R1, R3, R4 and R5. */
#include "base/clock.h"
#include "engine/internal.h"
#include "engine/stops.h"
#include "speculate/verdict.h"

void sk_engine_fail(struct sk_engine *e, struct sk_generation *g, const struct sk_error *error) {
    g->error = *error;
    g->finish = SK_FINISH_ERROR;
    if (g->session) e->target->ops->close(e->target, g->session);
    g->session = NULL;
}

struct ending {
    const struct sk_tokenizer *tokenizer; /* NULL: no token ends it */
};

static bool ends_generation(const void *ctx, int32_t token) {
    const struct ending *end = ctx;
    return end->tokenizer && sk_token_ends_generation(end->tokenizer, token);
}

/* Commits one token and tells the receiver. False if the generation ends with it. */
static bool emit(struct sk_engine *e, struct sk_generation *g, const struct ending *end, int32_t token, double logprob,
                 enum sk_proposer_kind origin) {
    g->tokens[g->n_tokens++] = token;
    g->stats.n_output++;
    const bool ends = ends_generation(end, token);
    if (ends)
        g->finish = SK_FINISH_STOP;
    else if (g->stats.n_output >= g->request.max_tokens || g->n_tokens >= e->target->ops->context(e->target))
        g->finish = SK_FINISH_LENGTH;
    struct sk_token_event event = {.token = token, .logprob = logprob, .origin = origin};
    struct sk_buf text = {0};
    if (!ends && e->tokenizer) sk_buf_str(&text, sk_detokenize(&g->text, token));
    if (g->finish != SK_RUNNING && e->tokenizer) sk_buf_str(&text, sk_detokenize_end(&g->text));
    if (sk_stops_feed(g->stops, sk_buf_view(&text), &event.text)) {
        g->finish = SK_FINISH_STOP;
    } else if (g->finish != SK_RUNNING) {
        text.len = 0;
        sk_buf_str(&text, event.text);
        sk_buf_str(&text, sk_stops_end(g->stops));
        event.text = sk_buf_view(&text);
    }
    const bool go_on = !g->request.on_token || g->request.on_token(g->request.ctx, &event);
    if (!go_on && g->finish == SK_RUNNING) g->finish = SK_FINISH_CANCELLED;
    sk_buf_free(&text);
    return g->finish == SK_RUNNING;
}

/* Emits what the verdict allows; gives how many tokens were committed. Cancellation is looked at before each. */
static size_t commit(struct sk_engine *e, struct sk_generation *g, const struct ending *end, const struct sk_verdict *v,
                     const struct sk_result *r) {
    size_t n = 0;
    for (bool go_on = true; go_on && n < v->commit; n++) {
        if (g->cancelled) {
            g->finish = SK_FINISH_CANCELLED;
            break;
        }
        const enum sk_proposer_kind origin =
            n < v->accepted ? (enum sk_proposer_kind)g->drafts[n].kind : SK_NO_PROPOSER;
        go_on = emit(e, g, end, r->predicted[n], r->logprobs ? r->logprobs[n] : 0.0, origin);
    }
    return n;
}

/* Makes `position` the session's, and makes sure of it; otherwise the session is dropped and the request fails. */
static bool repair(struct sk_engine *e, struct sk_generation *g, uint32_t position) {
    struct sk_error error = {0};
    sk_status st = e->target->ops->settle(e->target, g->session, position, &error);
    const uint32_t now = e->target->ops->position(e->target, g->session);
    if (!st && now != position)
        st = sk_fail(&error, SK_EINVAL, "after repair the session is at position %u instead of %u: it is given up", now,
                     position);
    if (st) sk_engine_fail(e, g, &error);
    return st == SK_OK;
}

static void tell(struct sk_generation *g, const struct sk_verdict *v, const struct sk_result *r,
                 struct sk_receipt *receipt) {
    const bool stopped = g->finish != SK_RUNNING || (!v->rejected && receipt->n_committed < receipt->n_rows);
    receipt->disposition = stopped ? SK_STOPPED : v->rejected ? SK_FIRST_MISMATCH : SK_FULL_ACCEPT;
    receipt->next_token = stopped || !receipt->n_committed ? -1 : r->predicted[receipt->n_committed - 1];
    if (g->speculation) {
        sk_speculation_observe(g->speculation, receipt);
        sk_speculation_offer_mtp(g->speculation, r->drafts, stopped ? 0 : r->n_drafts);
    }
    const struct sk_window_event event = {g->stats.n_windows, receipt, r->n_drafts};
    if (g->request.on_window) g->request.on_window(g->request.ctx, &event);
}

void sk_engine_take_result(struct sk_engine *e, struct sk_generation *g, const struct sk_window *w,
                           const struct sk_result *r, double seconds) {
    struct sk_error error = r->error;
    struct sk_verdict v;
    const struct ending end = {g->request.ignore_end ? NULL : e->tokenizer};
    if (r->status == SK_ENOMEM && w->n_rows > w->n_committed &&
        e->target->ops->position(e->target, g->session) == w->start) {
        /* No room for the drafts; perhaps there is for the one row that plain decoding needs. */
        sk_speculation_discard(g->speculation);
        g->plain_next = true;
        return;
    }
    if (r->status) {
        sk_engine_fail(e, g, &error);
        return;
    }
    if (r->id != w->id || r->position != w->start + w->n_rows) {
        sk_fail(&error, SK_EINVAL, "window %llu of the target's came back as %llu, at position %u instead of %u",
                (unsigned long long)w->id, (unsigned long long)r->id, r->position, (uint32_t)(w->start + w->n_rows));
        sk_engine_fail(e, g, &error);
        return;
    }
    const size_t base = w->start + w->n_committed; /* position of the first predicted token */
    if (!w->predict) {
        repair(e, g, (uint32_t)base);
        return;
    }
    const size_t budget = g->request.max_tokens - g->stats.n_output, n_drafts = w->n_rows - w->n_committed;
    if (sk_verdict(g->tokens + base, n_drafts, r->predicted, r->n_predicted, budget, ends_generation, &end, &v,
                   &error)) {
        sk_engine_fail(e, g, &error);
        return;
    }
    const size_t committed = commit(e, g, &end, &v, r);
    /* Whatever ended it, the session is put right first. The last committed token has not been run yet. */
    const uint32_t canonical = (uint32_t)(base + (committed ? committed - 1 : 0));
    const uint64_t start = sk_now_ns();
    if (!repair(e, g, canonical)) return;
    const bool decoding = w->n_committed == 1;
    struct sk_receipt receipt = {.proposal = g->drafts,
                                 .n_proposal = n_drafts,
                                 .n_rows = n_drafts + 1,
                                 .n_accepted = v.accepted < committed ? v.accepted : committed,
                                 .n_committed = committed,
                                 .predicted = r->predicted,
                                 .n_predicted = r->n_predicted,
                                 .base_position = (uint32_t)base - 1,
                                 .position_after_verification = r->position,
                                 .canonical_position = canonical,
                                 .trimmed_rows = r->position - canonical,
                                 .propose_s = g->propose_s,
                                 .verify_s = seconds,
                                 .repair_s = sk_seconds_since(start)};
    receipt.total_s = receipt.propose_s + receipt.verify_s + receipt.repair_s;
    tell(g, &v, r, &receipt);
    g->stats.n_windows += decoding;
}
