#include "engine/engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/internal.h"
#include "engine/stops.h"

enum { MAX_WINDOWS = 256 };

const char *sk_finish_name(enum sk_finish f) {
    static const char *const names[] = {"running", "stop", "length", "cancelled", "error"};
    return names[f];
}

sk_status sk_engine_create(struct sk_target *target, const struct sk_tokenizer *tokenizer, struct sk_engine **out,
                           struct sk_error *err) {
    struct sk_engine *e = sk_calloc(1, sizeof *e);
    if (!e) return sk_fail_memory(err, sizeof *e, "the engine");
    e->target = target;
    e->tokenizer = tokenizer;
    sk_cost_init(&e->cost, target->ops->row_cost(target));
    *out = e;
    return SK_OK;
}

void sk_engine_free(struct sk_engine *e) {
    if (!e) return;
    while (e->generations) sk_engine_close(e, e->generations);
    free(e);
}

/* ---- adding and closing -------------------------------------------------------------------------------- */

static sk_status check_request(const struct sk_engine *e, const struct sk_request *r, struct sk_error *err) {
    const size_t context = e->target->ops->context(e->target);
    if (r->n_prompt == 0) return sk_fail(err, SK_EINVAL, "the prompt is empty");
    if (r->max_tokens == 0) return sk_fail(err, SK_EINVAL, "max_tokens is 0: at least 1 is needed");
    if (r->n_prompt >= context)
        return sk_fail(err, SK_EINVAL,
                       "the prompt has %zu tokens and the context %zu: choose a larger one (-c) or a shorter prompt",
                       r->n_prompt, context);
    return sk_sampling_check(&r->sampling, e->target->ops->n_vocab(e->target), err);
}

static void free_generation(struct sk_generation *g) {
    sk_speculation_free(g->speculation);
    if (g->stops) sk_stops_free(g->stops);
    free(g->stops);
    sk_detokenizer_free(&g->text);
    free(g->tokens);
    free(g);
}

static void drop_proposers(const struct sk_request *r) {
    for (size_t i = 0; i < r->n_proposers; i++) r->proposers[i]->ops->destroy(r->proposers[i]);
}

/* Takes the request's proposers over, even if it fails. Those that cost least to ask come last: among equals the first
 * wins. */
static bool start_speculation(struct sk_engine *e, struct sk_generation *g, const struct sk_request *r) {
    if (!r->speculation) {
        drop_proposers(r);
        return true;
    }
    g->speculation = sk_speculation_create(r->speculation, e->target->ops->n_vocab(e->target), &e->learnt);
    if (!g->speculation) {
        drop_proposers(r);
        return false;
    }
    if (r->prediction && r->n_prediction)
        sk_speculation_add(g->speculation, sk_prediction_proposer_create(r->prediction, r->n_prediction, r->n_prompt));
    for (size_t i = 0; i < r->n_proposers; i++) sk_speculation_add(g->speculation, r->proposers[i]);
    if (r->speculation->proposers & (1u << SK_COPY)) sk_speculation_add(g->speculation, sk_copy_proposer_create());
    if (r->speculation->proposers & (1u << SK_SUFFIX)) sk_speculation_add(g->speculation, sk_suffix_proposer_create());
    if (r->speculation->proposers & (1u << SK_CACHE)) sk_speculation_add(g->speculation, sk_cache_proposer_create());
    return true;
}

sk_status sk_engine_add_to(struct sk_engine *e, struct sk_target_session *s, const struct sk_request *r,
                           struct sk_generation **out, struct sk_error *err) {
    struct sk_generation *g = NULL;
    bool proposers_taken = false;
    sk_status st = check_request(e, r, err);
    if (st) goto fail;
    if (e->target->ops->position(e->target, s) >= r->n_prompt) {
        st = sk_fail(err, SK_EINVAL, "the session already holds all of the prompt");
        goto fail;
    }
    g = sk_calloc(1, sizeof *g);
    if (g) g->stops = sk_calloc(1, sizeof *g->stops);
    if (!g || !g->stops || !sk_grow(&g->tokens, &g->cap_tokens, r->n_prompt, sizeof *g->tokens)) {
        st = sk_fail_memory(err, r->n_prompt * sizeof(int32_t), "a generation");
        goto fail;
    }
    memcpy(g->tokens, r->prompt, r->n_prompt * sizeof *g->tokens);
    g->n_tokens = r->n_prompt;
    g->request = *r;
    proposers_taken = true;
    if (!start_speculation(e, g, r)) {
        st = sk_fail_memory(err, sizeof(struct sk_speculation_options), "speculation");
        goto fail;
    }
    if (r->speculation) g->options = *r->speculation;
    g->request.prompt = g->request.prediction = NULL;
    g->request.speculation = r->speculation ? &g->options : NULL;
    g->request.proposers = NULL;
    g->session = s;
    g->stops->stops = r->stops;
    g->stops->n = r->n_stops;
    g->text.tokenizer = e->tokenizer;
    g->stats.n_prompt = r->n_prompt;
    g->stats.n_kept = e->target->ops->position(e->target, s);
    g->next = e->generations;
    e->generations = g;
    *out = g;
    return SK_OK;
fail:
    if (!proposers_taken) drop_proposers(r);
    if (g) free_generation(g);
    e->target->ops->close(e->target, s);
    return st;
}

sk_status sk_engine_add(struct sk_engine *e, const struct sk_request *r, struct sk_generation **out,
                        struct sk_error *err) {
    struct sk_target_session *s;
    const sk_status st = e->target->ops->open(e->target, &s, err);
    if (st) drop_proposers(r);
    return st ? st : sk_engine_add_to(e, s, r, out, err);
}

/* What this generation learnt is where the next one starts, with the weight of a few drafts. */
static void remember(struct sk_engine *e, const struct sk_generation *g) {
    static const float MOST = 4.0f;
    if (!g->speculation) return;
    e->learnt = *sk_speculation_acceptance(g->speculation);
    for (size_t k = 0; k < SK_N_PROPOSERS; k++)
        for (size_t c = 0; c < SK_EVIDENCE_CLASSES; c++) {
            float *total = &e->learnt.total[k][c];
            if (*total <= MOST) continue;
            e->learnt.accepted[k][c] *= MOST / *total;
            *total = MOST;
        }
}

struct sk_target_session *sk_engine_detach(struct sk_engine *e, struct sk_generation *g) {
    struct sk_target_session *s = g->session;
    struct sk_generation **at = &e->generations;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    remember(e, g);
    free_generation(g);
    return s;
}

void sk_engine_close(struct sk_engine *e, struct sk_generation *g) {
    struct sk_target_session *s = sk_engine_detach(e, g);
    if (s) e->target->ops->close(e->target, s);
}

void sk_generation_cancel(struct sk_generation *g) {
    g->cancelled = true;
}

/* ---- a step --------------------------------------------------------------------------------------------- */

/* A pass's time and its drafts' time are different things to choose by. */
static void observe_costs(struct sk_engine *e, const struct sk_batch *b, const struct sk_result *results, size_t n,
                          double seconds) {
    size_t drafts = 0;
    for (size_t i = 0; i < n; i++) drafts += results[i].n_drafts;
    sk_cost_observe(&e->cost, b->n_rows, seconds - results[0].draft_s);
    sk_cost_observe_drafts(&e->cost, drafts, results[0].draft_s);
}

bool sk_engine_step(struct sk_engine *e) {
    struct sk_window windows[MAX_WINDOWS];
    struct sk_generation *owners[MAX_WINDOWS];
    struct sk_result results[MAX_WINDOWS];
    struct sk_batch batch = {.windows = windows, .owners = owners, .max = MAX_WINDOWS};
    struct sk_error error = {0};
    sk_engine_next_windows(e, &batch);
    if (batch.n == 0) return false;
    const uint64_t start = sk_now_ns();
    if (e->target->ops->submit(e->target, windows, batch.n, &error)) {
        for (size_t i = 0; i < batch.n; i++) sk_engine_fail(e, owners[i], &error);
        return true;
    }
    const size_t answered = e->target->ops->poll(e->target, results, batch.n);
    const double seconds = sk_seconds_since(start);
    if (!batch.prefills && answered) observe_costs(e, &batch, results, answered, seconds);
    for (size_t i = 0; i < answered; i++) {
        struct sk_generation_stats *s = &owners[i]->stats;
        *(s->n_output == 0 ? &s->prefill_s : &s->decode_s) += seconds + owners[i]->propose_s;
        const uint64_t committing = sk_now_ns();
        sk_engine_take_result(e, owners[i], &windows[i], &results[i], seconds);
        s->commit_s += sk_seconds_since(committing);
    }
    return true;
}
