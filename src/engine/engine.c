#include "engine/engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/stops.h"
#include "speculate/verdict.h"

enum { MAX_WINDOWS = 256 };

struct sk_engine {
    struct sk_target *target;
    const struct sk_tokenizer *tokenizer;
    struct sk_generation *generations; /* running and finished, until closed */
    uint64_t next_id;
};

const char *sk_finish_name(enum sk_finish f) {
    static const char *const names[] = {"running", "stop", "length", "cancelled", "error"};
    return names[f];
}

sk_status sk_engine_create(struct sk_target *target, const struct sk_tokenizer *tokenizer, struct sk_engine **out, struct sk_error *err) {
    struct sk_engine *e = sk_calloc(1, sizeof *e);
    if (!e) return sk_fail_memory(err, sizeof *e, "the engine");
    e->target = target;
    e->tokenizer = tokenizer;
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
        return sk_fail(err, SK_EINVAL, "the prompt has %zu tokens and the context %zu: choose a larger one (-c) or a shorter prompt", r->n_prompt, context);
    return sk_sampling_check(&r->sampling, e->target->ops->n_vocab(e->target), err);
}

static void free_generation(struct sk_generation *g) {
    if (g->stops) sk_stops_free(g->stops);
    free(g->stops);
    sk_detokenizer_free(&g->text);
    free(g->tokens);
    free(g);
}

sk_status sk_engine_add_to(struct sk_engine *e, struct sk_target_session *s, const struct sk_request *r, struct sk_generation **out, struct sk_error *err) {
    struct sk_generation *g = NULL;
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
    g->request.prompt = NULL;
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
    if (g) free_generation(g);
    e->target->ops->close(e->target, s);
    return st;
}

sk_status sk_engine_add(struct sk_engine *e, const struct sk_request *r, struct sk_generation **out, struct sk_error *err) {
    struct sk_target_session *s;
    const sk_status st = e->target->ops->open(e->target, &s, err);
    return st ? st : sk_engine_add_to(e, s, r, out, err);
}

struct sk_target_session *sk_engine_detach(struct sk_engine *e, struct sk_generation *g) {
    struct sk_target_session *s = g->session;
    struct sk_generation **at = &e->generations;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    free_generation(g);
    return s;
}

void sk_engine_close(struct sk_engine *e, struct sk_generation *g) {
    struct sk_target_session *s = sk_engine_detach(e, g);
    if (s) e->target->ops->close(e->target, s);
}

void sk_generation_cancel(struct sk_generation *g) { g->cancelled = true; }

/* ---- one window ---------------------------------------------------------------------------------------- */

/* An error ends this generation alone, and its session is never used again. */
static void fail_generation(struct sk_engine *e, struct sk_generation *g, const struct sk_error *error) {
    g->error = *error;
    g->finish = SK_FINISH_ERROR;
    if (g->session) e->target->ops->close(e->target, g->session);
    g->session = NULL;
}

static bool next_window(struct sk_engine *e, struct sk_generation *g, struct sk_window *w) {
    const uint32_t position = e->target->ops->position(e->target, g->session);
    size_t rows = g->n_tokens - position, chunk = e->target->ops->max_rows(e->target);
    if (g->request.prefill_chunk && g->request.prefill_chunk < chunk) chunk = g->request.prefill_chunk;
    const bool last = rows <= chunk;
    if (!last) rows = chunk;
    *w = (struct sk_window){.id = g->window_id = ++e->next_id, .session = g->session, .sequence = g->tokens, .start = position, .n_rows = rows,
                            .n_committed = rows, .predict = last, .wants_logprobs = g->request.wants_logprobs, .sampling = &g->request.sampling};
    return true;
}

static bool ends_generation(const void *ctx, int32_t token) { return sk_token_ends_generation(ctx, token); }
static bool never_ends(const void *ctx, int32_t token) {
    (void)ctx, (void)token;
    return false;
}

/* Commits one token and tells the receiver. False if the generation ends with it. */
static bool emit(struct sk_engine *e, struct sk_generation *g, int32_t token, double logprob) {
    g->tokens[g->n_tokens++] = token;
    g->stats.n_output++;
    const bool ends = !g->request.ignore_end && sk_token_ends_generation(e->tokenizer, token);
    if (ends)
        g->finish = SK_FINISH_STOP;
    else if (g->stats.n_output >= g->request.max_tokens || g->n_tokens >= e->target->ops->context(e->target))
        g->finish = SK_FINISH_LENGTH;
    struct sk_token_event event = {.token = token, .logprob = logprob};
    struct sk_buf text = {0};
    if (!ends) sk_buf_str(&text, sk_detokenize(&g->text, token));
    if (g->finish != SK_RUNNING) sk_buf_str(&text, sk_detokenize_end(&g->text));
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

static void take_result(struct sk_engine *e, struct sk_generation *g, const struct sk_window *w, const struct sk_result *r) {
    struct sk_error error = r->error;
    struct sk_verdict v;
    if (r->status) {
        fail_generation(e, g, &error);
        return;
    }
    if (r->id != w->id || r->position != w->start + w->n_rows) {
        sk_fail(&error, SK_EINVAL, "the target answered window %llu with window %llu at position %u", (unsigned long long)w->id, (unsigned long long)r->id, r->position);
        fail_generation(e, g, &error);
        return;
    }
    if (!w->predict) return;
    const size_t base = w->start + w->n_committed; /* position of the first predicted token */
    const size_t budget = g->request.max_tokens - g->stats.n_output;
    if (sk_verdict(g->tokens + base, w->n_rows - w->n_committed, r->predicted, r->n_predicted, budget, g->request.ignore_end ? never_ends : ends_generation,
                   e->tokenizer, &v, &error)) {
        fail_generation(e, g, &error);
        return;
    }
    size_t committed = 0;
    for (bool go_on = true; go_on && committed < v.commit; committed++) {
        if (g->cancelled) {
            g->finish = SK_FINISH_CANCELLED;
            break;
        }
        go_on = emit(e, g, r->predicted[committed], r->logprobs ? r->logprobs[committed] : 0.0);
    }
    /* Whatever ended it, the session is put right first: the last committed token has not been run yet. */
    const uint32_t canonical = (uint32_t)(base + (committed ? committed - 1 : 0));
    if (e->target->ops->settle(e->target, g->session, canonical, &error)) fail_generation(e, g, &error);
}

bool sk_engine_step(struct sk_engine *e) {
    struct sk_window windows[MAX_WINDOWS];
    struct sk_generation *owners[MAX_WINDOWS];
    struct sk_result results[MAX_WINDOWS];
    size_t n = 0;
    for (struct sk_generation *g = e->generations; g && n < MAX_WINDOWS; g = g->next) {
        if (g->finish != SK_RUNNING) continue;
        if (g->cancelled) {
            g->finish = SK_FINISH_CANCELLED;
            continue;
        }
        struct sk_error error = {0};
        if (!sk_grow(&g->tokens, &g->cap_tokens, g->n_tokens + 300, sizeof *g->tokens)) {
            sk_fail_memory(&error, g->n_tokens * sizeof(int32_t), "a generation");
            fail_generation(e, g, &error);
            continue;
        }
        if (next_window(e, g, &windows[n])) owners[n++] = g;
    }
    if (n == 0) return false;
    const uint64_t start = sk_now_ns();
    struct sk_error error = {0};
    if (e->target->ops->submit(e->target, windows, n, &error)) {
        for (size_t i = 0; i < n; i++) fail_generation(e, owners[i], &error);
        return true;
    }
    const size_t answered = e->target->ops->poll(e->target, results, n);
    const double seconds = sk_seconds_since(start);
    for (size_t i = 0; i < answered; i++) {
        struct sk_generation_stats *s = &owners[i]->stats;
        const bool prefill = s->n_output == 0;
        *(prefill ? &s->prefill_s : &s->decode_s) += seconds;
        s->n_windows += !prefill;
        take_result(e, owners[i], &windows[i], &results[i]);
    }
    return true;
}
