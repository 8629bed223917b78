#include "bench_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "bench_wall.h"
#include "engine/draft_model.h"
#include "workload.h"

enum mode { MODE_PLAIN, MODE_COPY, MODE_SUFFIX, MODE_CACHE, MODE_AUTO, MODE_MTP, MODE_DRAFT, MODE_REPLAY, N_MODES };
static const char *const mode_names[N_MODES] = {"plain", "copy", "suffix", "cache", "auto", "mtp", "draft", "replay"};
static const uint32_t mode_kinds[N_MODES] = {0,   1u << SK_COPY, 1u << SK_SUFFIX, 1u << SK_CACHE,
                                             ~0u, 1u << SK_MTP,  1u << SK_DRAFT,  1u << SK_PLUGIN};

struct totals {
    size_t tokens, windows; /* decoded after the first token */
    double seconds;
};

struct spec_bench {
    struct model *m;
    const struct bench_spec_options *o;
    struct sk_draft_model *draft;
    size_t fixed_width;   /* 0: by goodput */
    double accuracy;      /* of MODE_REPLAY */
    const int32_t *known; /* prompt and plain answer */
    size_t n_known;
};

static bool collect(void *ctx, const struct sk_token_event *e) {
    return sk_tokens_push(ctx, e->token);
}

/* One answer; adds to *totals. The tokens are left in `out`. */
static sk_status run_answer(struct spec_bench *b, const struct workload_prompt *prompt, enum mode mode,
                            struct sk_tokens *out, struct totals *totals, struct sk_error *err) {
    struct sk_speculation_options o = sk_speculation_defaults();
    struct sk_generation *g;
    struct sk_proposer *extra = NULL;
    struct sk_request r = {.prompt = prompt->tokens.ids,
                           .n_prompt = prompt->tokens.n,
                           .max_tokens = b->o->n_new,
                           .sampling = sk_sampling_defaults(),
                           .ignore_end = b->o->curve,
                           .on_token = collect,
                           .ctx = out};
    sk_status st = SK_OK;
    const struct sk_str stop = sk_str_of(prompt->stop);
    if (stop.n) r.stops = &stop, r.n_stops = 1;
    r.sampling.temperature = prompt->temperature;
    r.sampling.seed = prompt->tokens.n;
    o.proposers = mode_kinds[mode];
    if (b->fixed_width) o.mode = SK_WIDTH_FIXED, o.width = b->fixed_width;
    out->n = 0;
    if (mode != MODE_PLAIN) r.speculation = &o;
    if (mode == MODE_DRAFT) st = sk_draft_proposer_create(b->draft, &r.sampling, 8, 0.4f, &extra, err);
    if (mode == MODE_REPLAY && !(extra = sk_replay_proposer_create(
                                     b->known, b->n_known, b->m->target->ops->n_vocab(b->m->target), b->accuracy, 1)))
        st = sk_fail_memory(err, b->n_known * 4, "a proposer");
    if (st) return st;
    r.proposers = &extra;
    r.n_proposers = extra != NULL;
    if ((st = sk_engine_add(b->m->engine, &r, &g, err))) return st;
    while (sk_engine_step(b->m->engine)) {
    }
    totals->tokens += g->stats.n_output - 1;
    totals->windows += g->stats.n_windows;
    totals->seconds += g->stats.decode_s;
    if (g->finish == SK_FINISH_ERROR) st = sk_fail(err, g->error.status, "%s", g->error.message);
    sk_engine_close(b->m->engine, g);
    return st;
}

static double rate(const struct totals *t) {
    return t->seconds > 0.0 ? (double)t->tokens / t->seconds : 0.0;
}

/* All modes take turns on each prompt, so that a slow minute of the machine hits all of them. */
static sk_status run_workload(struct spec_bench *b, const struct workload *w, const bool *wanted, struct totals *totals,
                              struct sk_error *err) {
    struct sk_tokens first = {0}, other = {0};
    sk_status st = SK_OK;
    for (size_t i = 0; i < w->n && !st; i++) {
        if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%s: %zu of %zu prompts ", w->name, i + 1, w->n);
        for (size_t mode = 0; mode < N_MODES && !st; mode++) {
            if (!wanted[mode]) continue;
            struct sk_tokens *out = mode == MODE_PLAIN ? &first : &other;
            st = run_answer(b, &w->prompts[i], (enum mode)mode, out, &totals[mode], err);
            if (!st && (out->n != first.n || memcmp(out->ids, first.ids, first.n * sizeof *first.ids) != 0))
                st = sk_fail(err, SK_EINVAL,
                             "%s changed the answer to prompt %zu of '%s': that must never happen; please report it",
                             mode_names[mode], i + 1, w->name);
        }
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%40s\r", "");
    sk_tokens_free(&first);
    sk_tokens_free(&other);
    return st;
}

static void print_wall(const struct wall *wall) {
    for (size_t k = 0; k < N_WALL_LENGTHS; k++)
        if (wall[k].off_s > 0.0)
            printf(" %.2f (%.2f s) |", wall[k].auto_s / wall[k].off_s, wall[k].off_s);
        else
            printf(" |");
}

static void print_row(const char *name, const bool *wanted, const struct totals *t) {
    printf("| %s | %.1f |", name, rate(&t[MODE_PLAIN]));
    for (size_t mode = 1; mode < N_MODES; mode++)
        if (wanted[mode])
            printf(" %.2f (%.2f) |", rate(&t[mode]) / rate(&t[MODE_PLAIN]),
                   (double)t[mode].tokens / (double)(t[mode].windows ? t[mode].windows : 1));
}

static json_t *row_json(const bool *wanted, const struct totals *t) {
    json_t *o = json_object();
    for (size_t mode = 0; mode < N_MODES; mode++)
        if (wanted[mode])
            json_object_set_new(o, mode_names[mode],
                                json_pack("{s:f, s:f, s:f}", "tokens_per_s", rate(&t[mode]), "ratio",
                                          rate(&t[mode]) / rate(&t[MODE_PLAIN]), "tokens_per_window",
                                          (double)t[mode].tokens / (double)(t[mode].windows ? t[mode].windows : 1)));
    return o;
}

static json_t *wall_json(const struct wall *wall) {
    json_t *o = json_object();
    char key[24];
    for (size_t k = 0; k < N_WALL_LENGTHS; k++) {
        snprintf(key, sizeof key, "%zu", wall_lengths[k]);
        json_object_set_new(o, key, json_pack("{s:f, s:f}", "off_s", wall[k].off_s, "auto_s", wall[k].auto_s));
    }
    return o;
}

static void print_head(const struct spec_bench *b, const bool *wanted) {
    const size_t n_threads = sk_pool_threads(b->m->runtime->pool);
    size_t columns = 1;
    printf("tokens/s plainly, and ratios to that (tokens per window); at most %zu tokens per answer, %zu %s",
           b->o->n_new, n_threads, plural(n_threads, "thread", "threads"));
    if (b->o->wall_runs)
        printf("\nwall: whole processes of at most so many tokens, the first %d prompts, median of %zu; time of auto "
               "over time of off (time of off)",
               WALL_PROMPTS, b->o->wall_runs);
    printf("\n\n| workload | plain |");
    for (size_t mode = 1; mode < N_MODES; mode++)
        if (wanted[mode]) columns += printf(" %s |", mode_names[mode]) > 0;
    for (size_t k = 0; k < N_WALL_LENGTHS && b->o->wall_runs; k++)
        columns += printf(" wall %zu |", wall_lengths[k]) > 0;
    printf("\n|---|");
    while (columns--) printf("---|");
    printf("\n");
}

static void add_totals(struct totals *sum, const struct totals *t) {
    for (size_t mode = 0; mode < N_MODES; mode++) {
        sum[mode].tokens += t[mode].tokens;
        sum[mode].windows += t[mode].windows;
        sum[mode].seconds += t[mode].seconds;
    }
}

/* One workload, or all of them, to stdout or into *json. */
static void report(const struct spec_bench *b, const char *name, const bool *wanted, const struct totals *t,
                   const struct wall *wall, json_t *json) {
    if (b->o->json) {
        json_t *row = row_json(wanted, t);
        if (b->o->wall_runs) json_object_set_new(row, "wall", wall_json(wall));
        json_object_set_new(json, name, row);
        return;
    }
    print_row(name, wanted, t);
    if (b->o->wall_runs) print_wall(wall);
    printf("\n");
    fflush(stdout);
}

static sk_status by_workload(struct spec_bench *b, struct sk_error *err) {
    struct workloads w = {0};
    struct totals all[N_MODES] = {0};
    struct wall wall_all[N_WALL_LENGTHS] = {0};
    const bool wanted[N_MODES] = {
        true, true, true, true, true, b->m->target->ops->has_drafts(b->m->target), b->draft != NULL, false};
    json_t *json = json_object();
    sk_status st = setup_template(b->m, NULL, err);
    if (!st) st = workloads_load(b->o->workloads, b->m, b->o->n_prompts, 2048, &w, err);
    if (!st && !b->o->json) print_head(b, wanted);
    for (size_t i = 0; i < w.n && !st; i++) {
        struct totals t[N_MODES] = {0};
        struct wall wall[N_WALL_LENGTHS] = {0};
        st = run_workload(b, &w.items[i], wanted, t, err);
        if (!st && b->o->wall_runs) st = bench_wall(b->o->model, &w.items[i], b->o->wall_runs, wall, err);
        if (st) break;
        report(b, w.items[i].name, wanted, t, wall, json);
        add_totals(all, t);
        for (size_t k = 0; k < N_WALL_LENGTHS; k++) {
            wall_all[k].off_s += wall[k].off_s;
            wall_all[k].auto_s += wall[k].auto_s;
        }
    }
    if (!st) report(b, "all", wanted, all, wall_all, json);
    if (!st && b->o->json) {
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(json);
    workloads_free(&w);
    return st;
}

/* ---- the curve ----------------------------------------------------------------------------------------- */

static sk_status curve_point(struct spec_bench *b, const struct workload_prompt *prompt, double plain,
                             struct sk_error *err) {
    static const size_t widths[] = {0, 1, 3, 7, 15};
    struct sk_tokens out = {0};
    sk_status st = SK_OK;
    printf("| %.2f |", b->accuracy);
    for (size_t i = 0; i < sizeof widths / sizeof *widths && !st; i++) {
        struct totals t = {0};
        b->fixed_width = widths[i];
        st = run_answer(b, prompt, MODE_REPLAY, &out, &t, err);
        if (!st) printf(" %.2f (%.2f) |", rate(&t) / plain, (double)t.tokens / (double)t.windows);
    }
    printf("\n");
    fflush(stdout);
    b->fixed_width = 0;
    sk_tokens_free(&out);
    return st;
}

static sk_status by_accuracy(struct spec_bench *b, struct sk_error *err) {
    struct workload_prompt start = {0};
    struct sk_tokens plain = {0};
    struct totals t = {0};
    sk_status st = SK_OK;
    for (int32_t i = 0; i < 32; i++)
        if (!sk_tokens_push(&start.tokens, 3 + (i * 37) % 200)) return sk_fail_memory(err, 4, "a prompt");
    st = run_answer(b, &start, MODE_PLAIN, &plain, &t, err);
    for (size_t i = 0; i < plain.n && !st; i++)
        if (!sk_tokens_push(&start.tokens, plain.ids[i])) st = sk_fail_memory(err, 4, "a sequence");
    b->known = start.tokens.ids;
    b->n_known = start.tokens.n;
    start.tokens.n = 32;
    if (!st)
        printf("gain over plain decoding (%.1f tokens/s) by the accuracy of drafts and the width (tokens per "
               "window)\n\n| accuracy | auto | 1 | 3 | 7 | 15 |\n|---|---|---|---|---|---|\n",
               rate(&t));
    static const double accuracies[] = {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0};
    for (size_t i = 0; i < sizeof accuracies / sizeof *accuracies && !st; i++) {
        b->accuracy = accuracies[i];
        st = curve_point(b, &start, rate(&t), err);
    }
    sk_tokens_free(&start.tokens);
    sk_tokens_free(&plain);
    return st;
}

sk_status bench_spec(struct model *m, const struct bench_spec_options *o, struct sk_error *err) {
    struct spec_bench b = {.m = m, .o = o};
    sk_status st = SK_OK;
    if (o->n_new < 2 || o->n_new > 4096)
        return sk_fail(err, SK_EINVAL, "--max-tokens must be from 2 to 4096 here, not %zu", o->n_new);
    if (o->draft_model) st = sk_draft_model_open(o->draft_model, m->tokenizer, m->runtime, &b.draft, err);
    if (!st) st = o->curve ? by_accuracy(&b, err) : by_workload(&b, err);
    sk_draft_model_close(b.draft);
    return st;
}
