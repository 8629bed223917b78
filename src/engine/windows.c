/* Choosing windows: prompt chunks, plain rows, and rows with drafts after them. */
#include "base/clock.h"
#include "base/memory.h"
#include "engine/internal.h"
#include "speculate/verdict.h"

/* Prompt rows in a pass beside generations that decode: enough to get on, few enough for them not to wait long. */
enum { PREFILL_BESIDE_DECODING = 128 };

static double seconds_now(void *ctx) {
    (void)ctx;
    return (double)sk_now_ns() * 1e-9;
}

/* Drafts for a generation that decodes, written after its committed tokens. */
static void add_drafts(struct sk_engine *e, struct sk_generation *g, size_t other_rows, double other_tokens) {
    const size_t budget = g->request.max_tokens - g->stats.n_output, position = g->n_tokens - 1;
    const size_t room =
        other_rows + 1 < e->target->ops->max_rows(e->target) ? e->target->ops->max_rows(e->target) - other_rows : 1;
    const struct sk_next next = {.tokens = g->tokens,
                                 .n_tokens = g->n_tokens,
                                 .limit = sk_proposal_limit(budget, position, e->target->ops->context(e->target), room),
                                 .cost = &e->cost,
                                 .other_rows = other_rows,
                                 .other_tokens = other_tokens,
                                 .now = seconds_now};
    const double start = seconds_now(NULL);
    g->n_drafts = sk_speculation_next(g->speculation, &next, g->drafts);
    g->propose_s = seconds_now(NULL) - start;
    for (size_t i = 0; i < g->n_drafts; i++) g->tokens[g->n_tokens + i] = g->drafts[i].token;
}

static size_t pending_rows(const struct sk_engine *e, const struct sk_generation *g) {
    return g->n_tokens - e->target->ops->position(e->target, g->session);
}

static void make_window(struct sk_engine *e, struct sk_generation *g, size_t rows, bool last, struct sk_batch *b) {
    struct sk_window *w = &b->windows[b->n];
    *w = (struct sk_window){.id = g->window_id = ++e->next_id,
                            .session = g->session,
                            .sequence = g->tokens,
                            .start = e->target->ops->position(e->target, g->session),
                            .n_rows = rows + g->n_drafts,
                            .n_committed = rows,
                            .predict = last,
                            .wants_logprobs = g->request.wants_logprobs,
                            .sampling = &g->request.sampling};
    w->keeps_drafts = g->speculation && (g->request.speculation->proposers & (1u << SK_MTP));
    if (w->keeps_drafts && last) {
        g->mtp_plan = sk_speculation_plan_mtp(g->speculation, &e->cost);
        w->drafts_wanted = g->mtp_plan.wanted;
        w->draft_min_reach = g->mtp_plan.min_reach;
        w->draft_acceptance = g->mtp_plan.acceptance;
    }
    if (g->request.speculation) w->draft_min_probability = g->request.speculation->mtp_min_probability;
    b->owners[b->n++] = g;
    b->n_rows += w->n_rows;
}

static bool is_running(struct sk_engine *e, struct sk_generation *g) {
    struct sk_error error = {0};
    if (g->finish == SK_RUNNING && g->cancelled) g->finish = SK_FINISH_CANCELLED;
    if (g->finish != SK_RUNNING) return false;
    if (sk_grow(&g->tokens, &g->cap_tokens, g->n_tokens + SK_MAX_WINDOW + 1, sizeof *g->tokens)) return true;
    sk_fail_memory(&error, g->n_tokens * sizeof(int32_t), "a generation");
    sk_engine_fail(e, g, &error);
    return false;
}

void sk_engine_next_windows(struct sk_engine *e, struct sk_batch *b) {
    const size_t max_rows = e->target->ops->max_rows(e->target);
    size_t n_decoding = 0, prefill_rows = 0;
    for (struct sk_generation *g = e->generations; g; g = g->next)
        n_decoding += is_running(e, g) && pending_rows(e, g) == 1;
    const size_t prefill_budget = n_decoding ? PREFILL_BESIDE_DECODING : max_rows;
    size_t decoding_left = n_decoding;
    double tokens_of_others = (double)n_decoding;
    for (struct sk_generation *g = e->generations; g && b->n < b->max; g = g->next) {
        if (g->finish != SK_RUNNING) continue;
        size_t rows = pending_rows(e, g);
        g->n_drafts = 0;
        g->propose_s = 0.0;
        if (rows == 1) {
            decoding_left--;
            if (g->speculation && !g->plain_next) add_drafts(e, g, b->n_rows + decoding_left, tokens_of_others - 1.0);
            g->plain_next = false;
            make_window(e, g, 1, true, b);
            tokens_of_others += 0.5 * (double)g->n_drafts; /* a guess at what was just added */
            continue;
        }
        size_t chunk =
            g->request.prefill_chunk && g->request.prefill_chunk < max_rows ? g->request.prefill_chunk : max_rows;
        if (chunk > prefill_budget - prefill_rows) chunk = prefill_budget - prefill_rows;
        if (chunk == 0) continue; /* its turn comes in the next pass */
        const bool last = rows <= chunk;
        if (!last) rows = chunk;
        prefill_rows += rows;
        b->prefills = true;
        make_window(e, g, rows, last, b);
    }
}
