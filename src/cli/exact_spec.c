#include "exact_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/kv.h"
#include "engine/draft_model.h"
#include "hostile.h"
#include "workload.h"

enum { MAX_BATCH = 4, N_SETTINGS = 4 };

/* Everything about an answer that must not differ. */
struct outcome {
    int32_t *tokens; /* output */
    double *logprobs;
    size_t n, cap;
    struct sk_buf text;
    enum sk_finish finish;
    uint64_t session; /* hash of its state */
    bool failed;
};

struct truth {
    struct outcome outcome[N_SETTINGS];
    char stop[8]; /* of setting 3: some bytes from the middle of its plain answer */
    bool known[N_SETTINGS];
};

enum guess {
    GUESS_COPY,
    GUESS_SUFFIX,
    GUESS_CACHE,
    GUESS_NGRAM,
    GUESS_PREDICTION,
    GUESS_REPLAY,
    GUESS_REPLAY_70,
    GUESS_MTP,
    GUESS_AUTO,
    GUESS_DRAFT,
    GUESS_HOSTILE,
    N_GUESSES = GUESS_HOSTILE + N_HOSTILE
};

struct spec_run {
    struct model *m;
    const struct exact_spec_options *o;
    struct sk_tokens *prompts;
    size_t n_prompts;
    struct truth *truths;
    struct sk_draft_model *draft;
    size_t n_compared, n_differ;
};

/* ---- settings ------------------------------------------------------------------------------------------ */

static const struct sk_logit_bias biases[] = {{5, -100.0f}, {9, 3.0f}, {30, 2.0f}};

static struct sk_request request_of(const struct spec_run *r, size_t prompt, size_t setting) {
    struct sk_request q = {.prompt = r->prompts[prompt].ids,
                           .n_prompt = r->prompts[prompt].n,
                           .max_tokens = r->o->n_new,
                           .sampling = sk_sampling_defaults(),
                           .wants_logprobs = true};
    q.sampling.seed = 1000 * setting + prompt;
    q.sampling.min_p = 0.0f;
    switch (setting) {
    case 0: q.sampling.temperature = 0.0f; break;
    case 1:
        q.sampling.temperature = 0.7f;
        q.sampling.repetition_penalty = 1.1f;
        q.sampling.presence_penalty = 0.2f;
        q.sampling.frequency_penalty = 0.1f;
        q.ignore_end = true;
        break;
    case 2:
        q.sampling.temperature = 1.2f;
        q.sampling.bias = biases;
        q.sampling.n_bias = sizeof biases / sizeof *biases;
        q.max_tokens = r->o->n_new > 7 ? r->o->n_new - 7 : 1;
        break;
    default: q.sampling.temperature = 0.7f; break;
    }
    return q;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static bool take_token(void *ctx, const struct sk_token_event *e) {
    struct outcome *o = ctx;
    size_t cap = o->cap;
    if (!sk_grow(&o->tokens, &o->cap, o->n + 1, sizeof *o->tokens) ||
        !sk_grow(&o->logprobs, &cap, o->cap, sizeof *o->logprobs))
        return o->failed = true, false;
    o->tokens[o->n] = e->token;
    o->logprobs[o->n++] = e->logprob;
    sk_buf_str(&o->text, e->text);
    return true;
}

static void free_outcome(struct outcome *o) {
    free(o->tokens);
    free(o->logprobs);
    sk_buf_free(&o->text);
    *o = (struct outcome){0};
}

/* Runs requests side by side; each starts two passes after the one before. */
static sk_status run_requests(struct spec_run *r, struct sk_request *requests, struct outcome *outcomes, size_t n,
                              struct sk_error *err) {
    struct sk_generation *g[MAX_BATCH] = {0};
    sk_status st = SK_OK;
    size_t added = 0;
    for (size_t pass = 0; !st; pass++) {
        if (added < n && pass % 2 == 0) {
            requests[added].on_token = take_token;
            requests[added].ctx = &outcomes[added];
            st = sk_engine_add(r->m->engine, &requests[added], &g[added], err);
            added += !st;
        }
        if (!st && !sk_engine_step(r->m->engine) && added == n) break;
    }
    for (size_t i = 0; i < added; i++) {
        outcomes[i].finish = g[i]->finish;
        if (g[i]->finish == SK_FINISH_ERROR) st = sk_fail(err, g[i]->error.status, "%s", g[i]->error.message);
        if (g[i]->session) outcomes[i].session = sk_session_hash(sk_local_target_session(g[i]->session));
        sk_engine_close(r->m->engine, g[i]);
    }
    return st;
}

/* Plain serial decoding of one prompt: one row per pass, alone. */
static sk_status find_truth(struct spec_run *r, size_t prompt, size_t setting, struct sk_error *err) {
    struct truth *t = &r->truths[prompt];
    if (t->known[setting]) return SK_OK;
    struct sk_request q = request_of(r, prompt, setting);
    q.prefill_chunk = 1;
    sk_status st = run_requests(r, &q, &t->outcome[setting], 1, err);
    if (!st && setting == 3 && t->outcome[3].text.len > 16) {
        memcpy(t->stop, t->outcome[3].text.data + t->outcome[3].text.len / 2, 3);
        free_outcome(&t->outcome[3]);
        q = request_of(r, prompt, setting);
        const struct sk_str stop = {t->stop, 3};
        q.stops = &stop, q.n_stops = 1, q.prefill_chunk = 1;
        st = run_requests(r, &q, &t->outcome[3], 1, err);
    }
    t->known[setting] = !st;
    return st;
}

/* ---- combinations -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum sk_width_mode mode;
    size_t width;
} widths[] = {
    {"1", SK_WIDTH_FIXED, 1},           {"2", SK_WIDTH_FIXED, 2},      {"3", SK_WIDTH_FIXED, 3},
    {"5", SK_WIDTH_FIXED, 5},           {"8", SK_WIDTH_FIXED, 8},      {"16", SK_WIDTH_FIXED, 16},
    {"adaptive", SK_WIDTH_ADAPTIVE, 0}, {"auto", SK_WIDTH_GOODPUT, 0},
};
enum { N_WIDTHS = sizeof widths / sizeof *widths };

static const char *guess_name(size_t guess) {
    static const char *const names[] = {"copy",   "suffix",         "cache", "ngram", "prediction",
                                        "replay", "replay at 70 %", "mtp",   "auto",  "draft model"};
    return guess < GUESS_HOSTILE ? names[guess] : hostile_name((enum hostile_kind)(guess - GUESS_HOSTILE));
}

static bool is_possible(const struct spec_run *r, size_t guess) {
    if (guess == GUESS_MTP) return r->m->target->ops->has_drafts(r->m->target);
    return guess != GUESS_DRAFT || r->draft;
}

struct guesser {
    struct sk_speculation_options options;
    struct sk_proposer *extra; /* taken over by the request */
};

static sk_status prepare(struct spec_run *r, size_t guess, size_t width, size_t prompt, size_t setting,
                         struct guesser *g, struct sk_request *q, struct sk_error *err) {
    static const uint32_t kinds[] = {1u << SK_COPY,
                                     1u << SK_SUFFIX,
                                     1u << SK_CACHE,
                                     1u << SK_SUFFIX | 1u << SK_CACHE,
                                     1u << SK_PREDICTION,
                                     1u << SK_PLUGIN,
                                     1u << SK_PLUGIN,
                                     1u << SK_MTP,
                                     ~0u,
                                     1u << SK_DRAFT};
    const struct sk_tokens *p = &r->prompts[prompt];
    const struct outcome *truth = &r->truths[prompt].outcome[setting];
    g->options = sk_speculation_defaults();
    g->options.proposers = guess < GUESS_HOSTILE ? kinds[guess] : 1u << SK_PLUGIN;
    g->options.mode = widths[width].mode;
    g->options.width = widths[width].width;
    g->options.min_width = widths[width].mode == SK_WIDTH_ADAPTIVE;
    g->options.mtp_max = widths[width].mode == SK_WIDTH_FIXED ? widths[width].width : 4;
    g->extra = NULL;
    if (guess == GUESS_PREDICTION) {
        q->prediction = truth->tokens;
        q->n_prediction = truth->n - truth->n / 5; /* the end is not foreseen */
    }
    if (guess == GUESS_REPLAY || guess == GUESS_REPLAY_70) {
        int32_t *all = sk_calloc(p->n + truth->n, sizeof *all);
        if (!all) return sk_fail_memory(err, p->n, "a sequence");
        memcpy(all, p->ids, p->n * sizeof *all);
        memcpy(all + p->n, truth->tokens, truth->n * sizeof *all);
        g->extra = sk_replay_proposer_create(all, p->n + truth->n, r->m->target->ops->n_vocab(r->m->target),
                                             guess == GUESS_REPLAY ? 1.0 : 0.7, prompt);
        free(all);
        if (!g->extra) return sk_fail_memory(err, p->n, "a proposer");
    }
    if (guess >= GUESS_HOSTILE && !(g->extra = hostile_create((enum hostile_kind)(guess - GUESS_HOSTILE),
                                                              r->m->target->ops->n_vocab(r->m->target))))
        return sk_fail_memory(err, 64, "a proposer");
    if (guess == GUESS_DRAFT) {
        const sk_status st = sk_draft_proposer_create(r->draft, &q->sampling, 4, 0.0f, &g->extra, err);
        if (st) return st;
    }
    q->speculation = &g->options;
    q->proposers = &g->extra;
    q->n_proposers = g->extra != NULL;
    return SK_OK;
}

static void compare(struct spec_run *r, const char *what, const struct outcome *want, const struct outcome *got) {
    size_t differ = 0;
    for (size_t i = 0; i < want->n; i++)
        differ += i >= got->n || want->tokens[i] != got->tokens[i] ||
                  memcmp(&want->logprobs[i], &got->logprobs[i], sizeof(double)) != 0;
    if (got->n != want->n || want->finish != got->finish || want->session != got->session ||
        !sk_str_eq(sk_buf_view(&want->text), sk_buf_view(&got->text)))
        differ++;
    r->n_compared += want->n;
    r->n_differ += differ;
    if (differ && r->n_differ < 2000)
        printf("  %s: %zu differ (%zu tokens, %s, state %016llx; plainly %zu, %s, %016llx)\n", what, differ, got->n,
               sk_finish_name(got->finish), (unsigned long long)got->session, want->n, sk_finish_name(want->finish),
               (unsigned long long)want->session);
}

static sk_status run_combination(struct spec_run *r, size_t guess, size_t width, size_t batch, size_t chunk,
                                 size_t round, struct sk_error *err) {
    struct sk_request q[MAX_BATCH];
    struct guesser guessers[MAX_BATCH];
    struct outcome outcomes[MAX_BATCH] = {0};
    struct sk_str stops[MAX_BATCH];
    size_t prompt[MAX_BATCH], setting[MAX_BATCH];
    const size_t first = round * 7 + guess * 3 + width + batch * 11 + chunk;
    sk_status st = SK_OK;
    for (size_t i = 0; i < batch && !st; i++) {
        prompt[i] = (first + i * 5) % r->n_prompts;
        setting[i] = (first + i + round) % N_SETTINGS;
        st = find_truth(r, prompt[i], setting[i], err);
    }
    for (size_t i = 0; i < batch && !st; i++) {
        q[i] = request_of(r, prompt[i], setting[i]);
        q[i].prefill_chunk = chunk;
        stops[i] = (struct sk_str){r->truths[prompt[i]].stop, 3};
        if (setting[i] == 3 && r->truths[prompt[i]].stop[0]) q[i].stops = &stops[i], q[i].n_stops = 1;
        st = prepare(r, guess, width, prompt[i], setting[i], &guessers[i], &q[i], err);
    }
    if (!st) st = run_requests(r, q, outcomes, batch, err);
    for (size_t i = 0; i < batch; i++) {
        char what[160];
        snprintf(what, sizeof what, "%s, width %s, batch %zu, chunks of %zu, prompt %zu, setting %zu",
                 guess_name(guess), widths[width].name, batch, chunk, prompt[i], setting[i]);
        if (!st) compare(r, what, &r->truths[prompt[i]].outcome[setting[i]], &outcomes[i]);
        free_outcome(&outcomes[i]);
    }
    return st;
}

static sk_status run_guess(struct spec_run *r, size_t guess, struct sk_error *err) {
    static const size_t batches[] = {1, 4}, chunks[] = {0, 7};
    const size_t before = r->n_compared, differed = r->n_differ;
    sk_status st = SK_OK;
    for (size_t round = 0; round < r->o->rounds; round++)
        for (size_t w = 0; w < N_WIDTHS; w++)
            for (size_t b = 0; b < 2; b++)
                for (size_t c = 0; c < 2 && !st; c++)
                    st = run_combination(r, guess, w, batches[b], chunks[c], round, err);
    if (!st && r->o->verbose) {
        printf("speculation: %-24s %7zu compared, %zu differ\n", guess_name(guess), r->n_compared - before,
               r->n_differ - differed);
        fflush(stdout);
    }
    return st;
}

sk_status exact_spec(struct model *m, const struct exact_spec_options *o, size_t *n_compared, size_t *n_differ,
                     struct sk_error *err) {
    struct spec_run r = {.m = m, .o = o};
    struct workloads w = {0};
    size_t cap = 0;
    sk_status st = o->workloads ? workloads_load(o->workloads, m, o->max_prompts, 160, &w, err) : SK_OK;
    const size_t n_given = o->workloads ? 0 : o->n_prompts;
    for (size_t i = 0; i < w.n && !st; i++)
        for (size_t k = 0; k < w.items[i].n && !st; k++) {
            if (!sk_grow(&r.prompts, &cap, r.n_prompts + 1, sizeof *r.prompts)) st = sk_fail_memory(err, 64, "prompts");
            if (!st) r.prompts[r.n_prompts++] = w.items[i].prompts[k].tokens;
        }
    for (size_t i = 0; i < n_given && !st; i++) {
        if (!sk_grow(&r.prompts, &cap, r.n_prompts + 1, sizeof *r.prompts)) st = sk_fail_memory(err, 64, "prompts");
        if (!st) r.prompts[r.n_prompts++] = o->prompts[i];
    }
    r.truths = sk_calloc(r.n_prompts ? r.n_prompts : 1, sizeof *r.truths);
    if (!st && !r.truths) st = sk_fail_memory(err, r.n_prompts * sizeof *r.truths, "outcomes");
    if (!st && o->draft_model) st = sk_draft_model_open(o->draft_model, m->tokenizer, m->runtime, &r.draft, err);
    for (size_t guess = 0; guess < N_GUESSES && !st; guess++)
        if (is_possible(&r, guess)) st = run_guess(&r, guess, err);
    for (size_t i = 0; i < r.n_prompts && r.truths; i++)
        for (size_t k = 0; k < N_SETTINGS; k++) free_outcome(&r.truths[i].outcome[k]);
    sk_draft_model_close(r.draft);
    free(r.truths);
    free(r.prompts);
    workloads_free(&w);
    *n_compared += r.n_compared;
    *n_differ += r.n_differ;
    return st;
}
