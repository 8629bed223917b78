/* skipstone bench: how fast a model runs here, and how near that is to what the memory allows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "bench_edits.h"
#include "bench_spec.h"
#include "commands.h"
#include "setup.h"

enum { DEPTH = 64, MAX_ROWS = 16, PREFILL_MAX = 512 };

static const size_t pass_rows[] = {1, 2, 3, 4, 6, 8, 12, 16};
static const size_t prefill_tokens[] = {128, 512};
enum { N_PASSES = sizeof pass_rows / sizeof *pass_rows, N_PREFILLS = sizeof prefill_tokens / sizeof *prefill_tokens };

struct figures {
    double load_s, decode_tokens_per_s, copy_bytes_per_s, weight_bytes_per_s;
    double pass_ms[N_PASSES], prefill[N_PREFILLS];
};

/* ---- copy bandwidth ------------------------------------------------------------------------------------ */

struct copy_job {
    char *from, *to;
    size_t bytes;
};

static void copy_slice(void *ctx, size_t i, size_t thread) {
    (void)thread;
    const struct copy_job *job = ctx;
    memcpy(job->to + i * job->bytes, job->from + i * job->bytes, job->bytes);
}

/* Bytes read and written per second by all threads copying, the best of a few. 0 if there is no memory for it. */
static double measure_copy(struct sk_pool *pool) {
    const size_t slice = (size_t)4 << 20, n = 64;
    struct copy_job job = {sk_region_alloc(n * slice), sk_region_alloc(n * slice), slice};
    double best = 0.0;
    if (job.from && job.to) {
        memset(job.from, 1, n * slice);
        for (int round = 0; round < 5; round++) {
            const uint64_t start = sk_now_ns();
            sk_pool_run(pool, n, copy_slice, &job);
            const double rate = 2.0 * (double)(n * slice) / sk_seconds_since(start);
            if (round && rate > best) best = rate;
        }
    }
    sk_region_free(job.from, n * slice);
    sk_region_free(job.to, n * slice);
    return best;
}

/* ---- passes -------------------------------------------------------------------------------------------- */

struct bench {
    struct sk_runtime *rt;
    struct sk_session *session;
    struct sk_row rows[PREFILL_MAX];
    float *logits; /* [MAX_ROWS] rows */
};

/* Seconds of one pass of n rows at the session's position, which is put back. */
static sk_status time_pass(struct bench *b, size_t n, bool all_logits, double *seconds, struct sk_error *err) {
    const uint32_t position = b->session->position;
    for (size_t i = 0; i < n; i++)
        b->rows[i] = (struct sk_row){b->session, (int32_t)((position + i) * 7919u % b->rt->model->h.n_vocab),
                                     all_logits || i + 1 == n};
    const uint64_t start = sk_now_ns();
    const sk_status st = sk_runtime_run(b->rt, b->rows, n, b->logits, err);
    *seconds = sk_seconds_since(start);
    return st ? st : sk_session_trim(b->session, position, err);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of several, after one that warms up. */
static sk_status median_pass(struct bench *b, size_t n, bool all_logits, size_t repeats, double *seconds,
                             struct sk_error *err) {
    double times[64];
    sk_status st = time_pass(b, n, all_logits, &times[0], err);
    for (size_t i = 0; i < repeats && !st; i++) st = time_pass(b, n, all_logits, &times[i], err);
    qsort(times, repeats, sizeof *times, compare_doubles);
    *seconds = times[repeats / 2];
    return st;
}

static sk_status time_decode(struct bench *b, size_t n, double *tokens_per_s, struct sk_error *err) {
    const uint32_t start_position = b->session->position;
    const uint64_t start = sk_now_ns();
    sk_status st = SK_OK;
    for (size_t i = 0; i < n && !st; i++) {
        b->rows[0] = (struct sk_row){b->session, (int32_t)(i * 7919u % b->rt->model->h.n_vocab), true};
        st = sk_runtime_run(b->rt, b->rows, 1, b->logits, err);
    }
    *tokens_per_s = (double)n / sk_seconds_since(start);
    return st ? st : sk_session_trim(b->session, start_position, err);
}

static sk_status measure(struct model *m, size_t repeats, struct figures *f, struct sk_error *err) {
    struct bench b = {.rt = m->runtime};
    const size_t logits_bytes = MAX_ROWS * sk_model_logits_stride(b.rt->model) * sizeof(float);
    double seconds;
    sk_status st = sk_session_open(b.rt->kv, &b.session, err);
    if (st) return st;
    b.logits = sk_region_alloc(logits_bytes);
    if (!b.logits) st = sk_fail_memory(err, logits_bytes, "logits");
    for (size_t i = 0; i < N_PREFILLS && !st; i++) {
        st = median_pass(&b, prefill_tokens[i], false, 3, &seconds, err);
        f->prefill[i] = (double)prefill_tokens[i] / seconds;
    }
    for (size_t i = 0; i < DEPTH; i++)
        b.rows[i] = (struct sk_row){b.session, (int32_t)(i % b.rt->model->h.n_vocab), false};
    if (!st) st = sk_runtime_run(b.rt, b.rows, DEPTH, NULL, err);
    for (size_t i = 0; i < N_PASSES && !st; i++) {
        st = median_pass(&b, pass_rows[i], true, repeats, &seconds, err);
        f->pass_ms[i] = seconds * 1e3;
    }
    if (!st) st = time_decode(&b, repeats * 4, &f->decode_tokens_per_s, err);
    f->load_s = m->load_s;
    f->copy_bytes_per_s = measure_copy(b.rt->pool);
    f->weight_bytes_per_s = (double)b.rt->model->weight_bytes * f->decode_tokens_per_s;
    sk_region_free(b.logits, logits_bytes);
    sk_session_close(b.session);
    return st;
}

/* ---- output -------------------------------------------------------------------------------------------- */

static void print_human(const struct model *m, const struct figures *f) {
    const size_t n_threads = sk_pool_threads(m->runtime->pool);
    printf("kernels %s, %zu %s, %.1f MB of weights, loaded in %.2f s\n", m->runtime->ops.kernels->name, n_threads,
           plural(n_threads, "thread", "threads"), (double)m->runtime->model->weight_bytes / 1e6, f->load_s);
    printf("decode        %8.1f tokens/s  (weights at %.1f GB/s; copying here moves %.1f GB/s)\n",
           f->decode_tokens_per_s, f->weight_bytes_per_s * 1e-9, f->copy_bytes_per_s * 1e-9);
    for (size_t i = 0; i < N_PREFILLS; i++) printf("prefill %-4zu  %8.1f tokens/s\n", prefill_tokens[i], f->prefill[i]);
    printf("\nrows in a pass      ms   against 1 row   tokens/s if all are accepted\n");
    for (size_t i = 0; i < N_PASSES; i++)
        printf("%14zu  %6.2f  %14.2f  %29.1f\n", pass_rows[i], f->pass_ms[i], f->pass_ms[i] / f->pass_ms[0],
               (double)pass_rows[i] * 1e3 / f->pass_ms[i]);
}

static void print_json(const struct model *m, const struct figures *f) {
    json_t *passes = json_object(), *prefill = json_object();
    char key[24];
    for (size_t i = 0; i < N_PASSES; i++) {
        snprintf(key, sizeof key, "%zu", pass_rows[i]);
        json_object_set_new(passes, key, json_real(f->pass_ms[i]));
    }
    for (size_t i = 0; i < N_PREFILLS; i++) {
        snprintf(key, sizeof key, "%zu", prefill_tokens[i]);
        json_object_set_new(prefill, key, json_real(f->prefill[i]));
    }
    json_t *o = json_pack("{s:s, s:I, s:f, s:f, s:o, s:o, s:I, s:f, s:f}", "kernels", m->runtime->ops.kernels->name,
                          "threads", (json_int_t)sk_pool_threads(m->runtime->pool), "load_s", f->load_s,
                          "decode_tokens_per_s", f->decode_tokens_per_s, "pass_ms", passes, "prefill", prefill,
                          "weight_bytes", (json_int_t)m->runtime->model->weight_bytes, "weight_bytes_per_s",
                          f->weight_bytes_per_s, "copy_bytes_per_s", f->copy_bytes_per_s);
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(o);
}

int command_bench(int argc, char **argv) {
    struct model_options mo = {0};
    size_t repeats = 15, n_positional;
    bool json = false, spec = false, curve = false, help;
    size_t n_new = 128, n_prompts = SIZE_MAX, wall_runs = 3;
    const char *workloads = "bench/workloads", *draft_model = NULL, *edits = NULL;
    float row_cost = 0.0f;
    const struct option own[] = {
        {"spec", 0, OPTION_FLAG, &spec, NULL, "measure workloads plainly and with each proposer instead"},
        {"spec-curve", 0, OPTION_FLAG, &curve, NULL, "measure the gain against the accuracy of drafts instead"},
        {"spec-edits", 0, OPTION_STRING, &edits, "FILE",
         "replay edited texts instead (bench/edits.py writes them): what proposers foresee of them"},
        {"row-cost", 0, OPTION_FLOAT, &row_cost, "X",
         "with --spec-edits: what a further row of a pass costs, of the first (default: the kernels' prior)"},
        {"workloads", 0, OPTION_STRING, &workloads, "DIR",
         "with --spec: prompts from the *.jsonl there (default bench/workloads)"},
        {"prompts", 0, OPTION_SIZE, &n_prompts, "N", "with --spec: at most so many of each (default: all)"},
        {"max-tokens", 'n', OPTION_SIZE, &n_new, "N", "with --spec: tokens per answer (default 128)"},
        {"wall-runs", 0, OPTION_SIZE, &wall_runs, "N",
         "with --spec: whole processes per figure, speculation off and auto; 0 = none (default 3)"},
        {"draft-model", 0, OPTION_STRING, &draft_model, "FILE", "with --spec: also draft with this model"},
        {"json", 0, OPTION_FLAG, &json, NULL, "print one JSON object"},
        {"repeats", 'r', OPTION_SIZE, &repeats, "N", "passes per figure, of which the median counts (default 15)"},
        {0}};
    struct option_list options = {0};
    options_add(&options, own);
    model_option_rows(&options, &mo);

    struct sk_error err = {0};
    if (options_parse(options.items, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help(
            "bench -m MODEL [options]",
            "Measures load time, decoding, passes of 1 to 16 rows and prefill, beside the memory's copy bandwidth.",
            options.items);
        return 0;
    }
    struct model m = {0};
    struct figures figures = {0};
    sk_status st = SK_OK;
    mo.quiet = json;
    if (spec || curve || edits) {
        const struct bench_spec_options bo = {.workloads = workloads,
                                              .draft_model = draft_model,
                                              .n_prompts = n_prompts,
                                              .n_new = n_new,
                                              .wall_runs = wall_runs,
                                              .model = &mo,
                                              .json = json,
                                              .curve = curve};
        if (!(st = setup_engine(&m, &mo, &err)))
            st = edits ? bench_edits(&m, edits, (double)row_cost, &err) : bench_spec(&m, &bo, &err);
        setup_free(&m);
        return st ? fail_command(&err) : 0;
    }
    if (!mo.context) mo.context = 1024;
    if (repeats < 1 || repeats > 64) st = sk_fail(&err, SK_EINVAL, "--repeats must be from 1 to 64, not %zu", repeats);
    if (!st && mo.context < PREFILL_MAX + DEPTH)
        st = sk_fail(&err, SK_EINVAL, "--context must be at least %d here, not %zu", PREFILL_MAX + DEPTH, mo.context);
    if (!st && !(st = setup_file(&m, &mo, &err))) st = setup_runtime(&m, &mo, &err);
    if (!st) st = measure(&m, repeats, &figures, &err);
    if (!st && json) print_json(&m, &figures);
    if (!st && !json) print_human(&m, &figures);
    setup_free(&m);
    return st ? fail_command(&err) : 0;
}
