/* skipstone exact: the promise, checked on this machine and this model.
 *
 * Plain serial decoding (one token per pass, one session, one thread) is recorded: the bits of every row's logits (as
 * a hash) and every token. Then the same prompts are computed in other ways, and each row and token is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "commands.h"
#include "exact_spec.h"
#include "setup.h"

enum { N_PROMPTS = 8, MAX_LANES = 8 };

static const char *const prompt_texts[N_PROMPTS] = {
    "Once upon a time, in a village by the sea, there lived a clockmaker who",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "The three states of matter are",
    "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144,",
    "{\"name\": \"Ada\", \"born\": 1815, \"known_for\": [\"the first program\", \"",
    "Q: Why is the sky blue?\nA: Because the air scatters short waves of light more than long ones, and",
    "apples, pears, plums, apples, pears, plums, apples, pears,",
    "Dear Sir or Madam,\n\nI am writing to you about the lighthouse at the end of the pier. It has been",
};
static const float temperatures[] = {0.0f, 0.8f, 1.2f};
enum { N_TEMPERATURES = sizeof temperatures / sizeof *temperatures };

/* One way of computing. */
struct way {
    const char *name;
    const char *isa; /* NULL = the fastest */
    size_t n_threads, chunk, batch;
    bool trims;           /* run wrong tokens and take them back, and take true ones back and run them again */
    size_t quick_prompts; /* prompts in the quick form; 0 = all */
};

/* What a sequence gave: everything that must not differ. */
struct record {
    int32_t *tokens;       /* prompt and output */
    XXH128_hash_t *logits; /* of the row at each position but the last */
    size_t n;
};

struct lane {
    struct sk_session *session;
    struct record *record;
    const struct sk_sampling_params *params;
    size_t n_prompt, n_total, start_pass;
};

struct player {
    struct sk_runtime *rt;
    struct sk_sampler *sampler;
    struct sk_row *rows;
    float *logits;
    size_t max_rows;
};

static XXH128_hash_t hash_logits(const struct player *p, const float *logits) {
    return XXH3_128bits(logits, p->rt->model->h.n_vocab * sizeof *logits);
}

/* Takes back what a session just did, in ways that must leave no trace. */
static sk_status disturb(const struct player *p, const struct lane *l, struct sk_error *err) {
    const uint32_t position = l->session->position, back = position > 5 ? position - 5 : 0;
    struct sk_row wrong[3];
    for (size_t i = 0; i < 3; i++)
        wrong[i] = (struct sk_row){l->session, (int32_t)((position * 31 + i * 17) % p->rt->model->h.n_vocab), false};
    sk_status st = sk_runtime_run(p->rt, wrong, 3, NULL, err);
    if (!st) st = sk_session_trim(l->session, back, err);
    struct sk_row again[5];
    for (uint32_t i = back; i < position; i++)
        again[i - back] = (struct sk_row){l->session, l->record->tokens[i], false};
    return st ? st : sk_runtime_run(p->rt, again, position - back, NULL, err);
}

/* Rows that a lane puts into this pass. */
static size_t lane_rows(const struct lane *l, size_t pass, size_t chunk) {
    if (pass < l->start_pass || l->record->n == l->n_total) return 0;
    const size_t left = l->record->n - l->session->position;
    return left < chunk ? left : chunk;
}

static void take_rows(const struct player *p, struct lane *l, size_t first_position, size_t n, const float *logits,
                      size_t stride) {
    struct record *r = l->record;
    for (size_t i = 0; i < n; i++) r->logits[first_position + i] = hash_logits(p, logits + i * stride);
    if (first_position + n < r->n) return; /* still in the prompt */
    r->tokens[r->n] = sk_sample(p->sampler, l->params, logits + (n - 1) * stride, r->tokens, r->n, r->n, NULL);
    r->n++;
}

/* Runs lanes side by side until all are done. */
static sk_status play(struct player *p, const struct way *w, struct lane *lanes, size_t n_lanes, struct sk_error *err) {
    const size_t stride = sk_model_logits_stride(p->rt->model);
    for (size_t pass = 0;; pass++) {
        size_t n[MAX_LANES], total = 0, done = 0;
        for (size_t i = 0; i < n_lanes; i++) {
            struct lane *l = &lanes[i];
            done += l->record->n == l->n_total;
            n[i] = lane_rows(l, pass, w->chunk);
            if (total + n[i] > p->max_rows) n[i] = p->max_rows - total;
            for (size_t r = 0; r < n[i]; r++)
                p->rows[total++] = (struct sk_row){l->session, l->record->tokens[l->session->position + r], true};
        }
        if (done == n_lanes) return SK_OK;
        sk_status st = sk_runtime_run(p->rt, p->rows, total, p->logits, err);
        const float *logits = p->logits;
        for (size_t i = 0; i < n_lanes && !st; i++) {
            if (n[i]) take_rows(p, &lanes[i], lanes[i].session->position - n[i], n[i], logits, stride);
            logits += n[i] * stride;
            if (w->trims && n[i] && pass % 4 == 3) st = disturb(p, &lanes[i], err);
        }
        if (st) return st;
    }
}

/* ---- one way, all prompts ------------------------------------------------------------------------------- */

struct exact {
    const struct model_options *mo;
    struct model *m;
    struct sk_tokens prompts[N_PROMPTS];
    size_t n_new;
    struct record truth[N_TEMPERATURES][N_PROMPTS];
    size_t n_compared, n_differ;
    bool quick, verbose;
};

static sk_status open_lane(const struct exact *e, struct player *p, size_t prompt, struct record *r, struct lane *out,
                           struct sk_error *err) {
    const struct sk_tokens *t = &e->prompts[prompt];
    *out = (struct lane){.record = r, .n_prompt = t->n, .n_total = t->n + e->n_new};
    r->tokens = sk_calloc(out->n_total, sizeof *r->tokens);
    r->logits = sk_calloc(out->n_total, sizeof *r->logits);
    if (!r->tokens || !r->logits) return sk_fail_memory(err, out->n_total * 20, "a record");
    memcpy(r->tokens, t->ids, t->n * sizeof *t->ids);
    r->n = t->n;
    return sk_session_open(p->rt->kv, &out->session, err);
}

static void free_record(struct record *r) {
    free(r->tokens);
    free(r->logits);
    *r = (struct record){0};
}

static void compare(struct exact *e, const struct way *w, size_t temperature, size_t prompt, const struct record *got) {
    const struct record *want = &e->truth[temperature][prompt];
    for (size_t i = 0; i < want->n; i++) {
        const bool token_differs = got->tokens[i] != want->tokens[i];
        const bool logits_differ = i + 1 < want->n && !XXH128_isEqual(got->logits[i], want->logits[i]);
        e->n_compared++;
        if (!token_differs && !logits_differ) continue;
        e->n_differ++;
        if (e->n_differ <= 10)
            printf("  %s, prompt %zu, temperature %g, position %zu: %s differ\n", w->name, prompt,
                   (double)temperatures[temperature], i, token_differs ? "tokens" : "logits");
    }
}

/* Plays prompts [first, first + batch) side by side. With `keep` the records become the truth. */
static sk_status play_group(struct exact *e, struct player *p, const struct way *w, size_t temperature, size_t first,
                            bool keep, struct sk_error *err) {
    struct lane lanes[MAX_LANES] = {0};
    struct record records[MAX_LANES] = {0};
    const struct sk_sampling_params params = {.temperature = temperatures[temperature],
                                              .top_k = 40,
                                              .top_p = 0.95f,
                                              .typical_p = 1.0f,
                                              .repetition_penalty = 1.1f,
                                              .penalty_window = 64,
                                              .seed = 20260 + temperature};
    const size_t n = w->batch < N_PROMPTS - first ? w->batch : N_PROMPTS - first;
    sk_status st = SK_OK;
    for (size_t i = 0; i < n && !st; i++) {
        st = open_lane(e, p, first + i, &records[i], &lanes[i], err);
        lanes[i].params = &params;
        lanes[i].start_pass = 3 * i; /* they join at different times */
    }
    if (!st) st = play(p, w, lanes, n, err);
    for (size_t i = 0; i < n; i++) {
        sk_session_close(lanes[i].session);
        if (keep && !st) {
            e->truth[temperature][first + i] = records[i];
            continue;
        }
        if (!st) compare(e, w, temperature, first + i, &records[i]);
        free_record(&records[i]);
    }
    return st;
}

static sk_status run_way(struct exact *e, const struct way *w, bool keep, struct sk_error *err) {
    struct sk_runtime *rt;
    const struct sk_runtime_options options = {.n_threads = w->n_threads, .n_positions = 4096, .isa = w->isa};
    sk_status st = sk_runtime_create(e->m->gguf, &options, &rt, err);
    if (st) return sk_fail_within(err, "%s", e->mo->model);
    struct player p = {.rt = rt, .max_rows = 512};
    const size_t logits_bytes = p.max_rows * sk_model_logits_stride(rt->model) * sizeof(float);
    p.rows = sk_calloc(p.max_rows, sizeof *p.rows);
    p.logits = sk_region_alloc(logits_bytes);
    st = p.rows && p.logits ? sk_sampler_create(rt->model->h.n_vocab, &p.sampler, err)
                            : sk_fail_memory(err, logits_bytes, "logits");
    const size_t before = e->n_compared, differed = e->n_differ,
                 n_prompts = e->quick && w->quick_prompts ? w->quick_prompts : N_PROMPTS;
    for (size_t t = 0; t < N_TEMPERATURES && !st; t++)
        for (size_t first = 0; first < n_prompts && !st; first += w->batch)
            st = play_group(e, &p, w, t, first, keep, err);
    sk_sampler_free(p.sampler);
    sk_region_free(p.logits, logits_bytes);
    free(p.rows);
    sk_runtime_free(rt);
    if (!st && e->verbose) {
        printf("%-28s %7zu compared, %zu differ\n", w->name, e->n_compared - before, e->n_differ - differed);
        fflush(stdout);
    }
    return st;
}

static const struct way serial = {"serial", NULL, 1, 1, 1, false};
static const struct way ways[] = {
    {"again", NULL, 1, 1, 1, false},
    {"chunks of 7", NULL, 1, 7, 1, false},
    {"chunks of 32", NULL, 2, 32, 1, false},
    {"chunks of 512", NULL, 2, 512, 1, false},
    {"2 threads", NULL, 2, 1, 1, false},
    {"3 threads", NULL, 3, 7, 1, false},
    {"batch of 2", NULL, 2, 1, 2, false},
    {"batch of 3", NULL, 2, 7, 3, false},
    {"batch of 5", NULL, 3, 32, 5, false},
    {"batch of 8", NULL, 2, 512, 8, false},
    {"trims", NULL, 1, 3, 1, true},
    {"trims in a batch of 4", NULL, 2, 7, 4, true},
    {"avx2", "avx2", 2, 1, 1, false},
    {"avx2, batch of 8", "avx2", 1, 7, 8, true},
    {"scalar", "scalar", 3, 7, 2, false, .quick_prompts = 2},
};

static sk_status check_ways(struct exact *e, struct sk_error *err) {
    sk_status st = run_way(e, &serial, true, err);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !st; i++) {
        if (ways[i].isa && !sk_kernels_named(ways[i].isa)) {
            printf("%-28s left out: this processor has no %s\n", ways[i].name, ways[i].isa);
            continue;
        }
        st = run_way(e, &ways[i], false, err);
    }
    return st;
}

int command_exact(int argc, char **argv) {
    struct model_options mo = {0};
    bool quick = false, quiet = false, spec = false, help;
    size_t n_new = 0, n_positional;
    const char *workloads = NULL, *draft_model = NULL;
    const struct option options[] = {
        {"model", 'm', OPTION_STRING, &mo.model, "FILE", "the model, a GGUF file"},
        {"quick", 0, OPTION_FLAG, &quick, NULL, "fewer tokens"},
        {"max-tokens", 'n', OPTION_SIZE, &n_new, "N", "tokens to decode after each prompt (default 64; quick: 12)"},
        {"spec", 0, OPTION_FLAG, &spec, NULL, "check speculation instead: every proposer, width, batch and chunk size"},
        {"workloads", 0, OPTION_STRING, &workloads, "DIR",
         "with --spec: prompts from the *.jsonl there (default: built-in ones)"},
        {"draft-model", 0, OPTION_STRING, &draft_model, "FILE", "with --spec: also draft with this model"},
        {"mtp", 0, OPTION_STRING, &mo.mtp_file, "FILE", "with --spec: a GGUF with a multi-token-prediction block"},
        {"threads", 't', OPTION_SIZE, &mo.n_threads, "N", "with --spec: compute threads (default: physical cores)"},
        {"quiet", 'q', OPTION_FLAG, &quiet, NULL, "print the last line only"},
        {"allow-unknown-pretokenizer", 0, OPTION_FLAG, &mo.allow_unknown_pretokenizer, NULL,
         "go on with an unknown pre-tokenizer, using gpt-2's"},
        {0}};
    struct sk_error err = {0};
    if (options_parse(options, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help(
            "exact -m MODEL [--quick] [--spec]",
            "Checks that the same prompts give the same bits however they are computed: prompt chunks, batches, "
            "threads,\n"
            "instruction sets, trims; at temperatures 0, 0.8 and 1.2. With --spec: tokens, log-probabilities, finish "
            "reasons and\n"
            "session states of speculative decoding against plain decoding. Exit status 1 if anything differs.",
            options);
        return 0;
    }
    struct model m = {0};
    struct exact e = {.mo = &mo, .m = &m, .n_new = n_new ? n_new : quick ? 12 : 64, .quick = quick, .verbose = !quiet};
    sk_status st = SK_OK;
    if (e.n_new > 256) st = sk_fail(&err, SK_EINVAL, "--max-tokens is at most 256 here, not %zu", n_new);
    if (!st && spec) st = setup_engine(&m, &mo, &err);
    if (!st && !spec && !(st = setup_file(&m, &mo, &err))) st = setup_tokenizer(&m, &mo, &err);
    for (size_t i = 0; i < N_PROMPTS && !st; i++)
        st = sk_tokenize(m.tokenizer, sk_str_of(prompt_texts[i]), true, false, &e.prompts[i], &err);
    if (!st && spec && workloads) st = setup_template(&m, NULL, &err);
    if (!st && spec) {
        const struct exact_spec_options so = {.workloads = workloads,
                                              .max_prompts = quick ? 2 : SIZE_MAX,
                                              .prompts = e.prompts,
                                              .n_prompts = N_PROMPTS,
                                              .draft_model = draft_model,
                                              .n_new = n_new   ? n_new
                                                       : quick ? 14
                                                               : 48,
                                              .rounds = quick ? 1 : 4,
                                              .verbose = !quiet};
        st = exact_spec(&m, &so, &e.n_compared, &e.n_differ, &err);
    } else if (!st) {
        st = check_ways(&e, &err);
    }
    if (!st) printf("%zu compared, %zu differ\n", e.n_compared, e.n_differ);
    for (size_t i = 0; i < N_PROMPTS; i++) {
        sk_tokens_free(&e.prompts[i]);
        for (size_t t = 0; t < N_TEMPERATURES; t++) free_record(&e.truth[t][i]);
    }
    setup_free(&m);
    if (st) return fail_command(&err);
    return e.n_differ != 0;
}
