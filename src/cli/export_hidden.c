/* skipstone export-hidden: answers many prompts at once, and writes the final hidden state of every position beside the
 * tokens. What a multi-token-prediction block is trained on (tools/mtp): the model's own continuations, and just the
 * states that serving will give to the block. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "commands.h"
#include "kernels/half.h"
#include "models/internal.h"
#include "setup.h"

struct job {
    struct sk_tokens tokens; /* prompt, then the answer */
    size_t n_prompt, max_tokens;
    struct sk_sampling_params sampling;
    json_t *line; /* as it stood in the file; copied into the index */
};
/* A job that is being answered. */
struct slot {
    struct job *job; /* NULL: free */
    struct sk_session *session;
    uint16_t *hidden; /* [session's position][n_embd] */
    size_t cap_hidden;
};
struct exporter {
    struct model m;
    struct job *jobs;
    size_t n_jobs, cap_jobs, next_job;
    struct slot *slots;
    size_t n_slots;
    size_t promised; /* positions that running jobs may come to need */
    bool after_norm;
    struct sk_row *rows;
    float *logits, *hidden, *normed; /* [n_slots][stride]; [max_rows][n_embd] twice */
    size_t logits_bytes;
    struct sk_sampler *sampler;
    FILE *out_tokens, *out_hidden, *out_index;
    size_t n_written, n_answer_tokens, n_done;
};

/* ---- the prompts --------------------------------------------------------------------------------------- */

static double number(json_t *o, const char *name, double fallback) {
    json_t *v = json_object_get(o, name);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

static sk_status tokenize_job(const struct model *m, struct job *j, struct sk_error *err) {
    json_t *messages = json_object_get(j->line, "messages"), *prompt = json_object_get(j->line, "prompt");
    if (json_is_string(prompt))
        return tokenize_prompt(m, (struct sk_str){json_string_value(prompt), json_string_length(prompt)}, false,
                               &j->tokens, err);
    if (!json_is_array(messages)) return sk_fail(err, SK_EFORMAT, "there is neither \"messages\" nor \"prompt\"");
    if (!m->template) return sk_fail(err, SK_EINVAL, "the model has no chat template for \"messages\"");
    struct sk_buf text = {0};
    sk_status st = render_messages(m, messages, NULL, true, &text, err);
    if (!st) st = tokenize_prompt(m, sk_buf_view(&text), true, &j->tokens, err);
    sk_buf_free(&text);
    return st;
}

static sk_status read_job(const struct model *m, struct sk_str line, struct job *j, struct sk_error *err) {
    json_error_t e;
    j->line = json_loadb(line.p, line.n, 0, &e);
    if (!json_is_object(j->line)) return sk_fail(err, SK_EFORMAT, "it is no JSON object");
    const double most = number(j->line, "max_tokens", 256), seed = number(j->line, "seed", 0);
    const double top_k = number(j->line, "top_k", 0);
    if (!(most >= 1 && most <= 1e6)) return sk_fail(err, SK_EINVAL, "\"max_tokens\" must be from 1 to 1000000");
    if (!(seed >= 0 && seed <= 0x1p53)) return sk_fail(err, SK_EINVAL, "\"seed\" must be from 0 to 2^53");
    if (!(top_k >= 0 && top_k <= 1e9)) return sk_fail(err, SK_EINVAL, "\"top_k\" must be from 0 to 1000000000");
    j->max_tokens = (size_t)most;
    j->sampling = sk_sampling_defaults();
    j->sampling.temperature = (float)number(j->line, "temperature", 0);
    j->sampling.top_p = (float)number(j->line, "top_p", 1);
    j->sampling.min_p = (float)number(j->line, "min_p", 0);
    j->sampling.top_k = (uint32_t)top_k;
    j->sampling.seed = (uint64_t)seed;
    const sk_status st = sk_sampling_check(&j->sampling, m->runtime->model->h.n_vocab, err);
    return st ? st : tokenize_job(m, j, err);
}

static sk_status read_jobs(struct exporter *x, const char *path, struct sk_error *err) {
    struct sk_buf text = {0};
    sk_status st = read_file(path, &text, err);
    for (size_t at = 0, n = 0; at < text.len && !st; at += n + 1) {
        const char *line = text.data + at, *end = memchr(line, '\n', text.len - at);
        n = end ? (size_t)(end - line) : text.len - at;
        if (n == 0) continue;
        if (!sk_grow(&x->jobs, &x->cap_jobs, x->n_jobs + 1, sizeof *x->jobs)) {
            st = sk_fail_memory(err, sizeof *x->jobs, "prompts");
            break;
        }
        struct job *j = &x->jobs[x->n_jobs++];
        *j = (struct job){0};
        st = read_job(&x->m, (struct sk_str){line, n}, j, err);
        j->n_prompt = j->tokens.n;
        const size_t room = x->m.runtime->n_positions;
        if (!st && j->n_prompt + j->max_tokens > room)
            st = sk_fail(err, SK_EINVAL, "it may come to %zu positions where the context has %zu",
                         j->n_prompt + j->max_tokens, room);
        if (st) sk_fail_within(err, "line %zu of '%s'", x->n_jobs, path);
    }
    if (!st && x->n_jobs == 0) st = sk_fail(err, SK_EINVAL, "there is no prompt in '%s'", path);
    sk_buf_free(&text);
    return st;
}

/* ---- the files ----------------------------------------------------------------------------------------- */

static sk_status open_in(const char *folder, const char *name, FILE **out, struct sk_error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *out = fopen(path, "wbe");
    return *out ? SK_OK : sk_fail(err, SK_EIO, "cannot write '%s': %s", path, strerror(errno));
}

static sk_status open_outputs(struct exporter *x, const char *folder, struct sk_error *err) {
    FILE *about;
    char fingerprint[17];
    sk_status st;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return sk_fail(err, SK_EIO, "cannot make the folder '%s': %s", folder, strerror(errno));
    if ((st = open_in(folder, "tokens.i32", &x->out_tokens, err)) ||
        (st = open_in(folder, "hidden.f16", &x->out_hidden, err)) ||
        (st = open_in(folder, "index.jsonl", &x->out_index, err)) || (st = open_in(folder, "about.json", &about, err)))
        return st;
    sk_model_fingerprint(x->m.gguf, fingerprint);
    fprintf(about, "{\"model_fingerprint\": \"%s\", \"n_embd\": %u, \"after_norm\": %s}\n", fingerprint,
            x->m.runtime->model->h.n_embd, x->after_norm ? "true" : "false");
    return fclose(about) ? sk_fail(err, SK_EIO, "cannot write in '%s': %s", folder, strerror(errno)) : SK_OK;
}

static json_t *answer_text(const struct exporter *x, const struct job *j) {
    struct sk_detokenizer d = {.tokenizer = x->m.tokenizer};
    struct sk_buf text = {0};
    for (size_t i = j->n_prompt; i < j->tokens.n; i++) {
        const struct sk_str s = sk_detokenize(&d, j->tokens.ids[i]);
        sk_buf_append(&text, s.p, s.n);
    }
    const struct sk_str rest = sk_detokenize_end(&d);
    sk_buf_append(&text, rest.p, rest.n);
    json_t *out = json_stringn(text.data ? text.data : "", text.len);
    sk_detokenizer_free(&d);
    sk_buf_free(&text);
    return out;
}

/* The last token has not been run: its state is written as zeros, so that both files have a row for each token. */
static sk_status write_answer(struct exporter *x, struct slot *s, bool ended, struct sk_error *err) {
    struct job *j = s->job;
    const size_t n_embd = x->m.runtime->model->h.n_embd, n = j->tokens.n;
    memset(s->hidden + (n - 1) * n_embd, 0, n_embd * sizeof *s->hidden);
    const bool wrote = fwrite(j->tokens.ids, sizeof *j->tokens.ids, n, x->out_tokens) == n &&
                       fwrite(s->hidden, n_embd * sizeof *s->hidden, n, x->out_hidden) == n;
    json_object_set_new(j->line, "offset", json_integer((json_int_t)x->n_written));
    json_object_set_new(j->line, "n_prompt", json_integer((json_int_t)j->n_prompt));
    json_object_set_new(j->line, "n", json_integer((json_int_t)n));
    json_object_set_new(j->line, "finish_reason", json_string(ended ? "stop" : "length"));
    json_object_set_new(j->line, "answer", answer_text(x, j));
    if (!wrote || json_dumpf(j->line, x->out_index, JSON_COMPACT) || fputc('\n', x->out_index) == EOF)
        return sk_fail(err, SK_EIO, "cannot write answers: %s", strerror(errno));
    x->n_written += n;
    x->n_answer_tokens += n - j->n_prompt;
    x->n_done++;
    return SK_OK;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static sk_status start_jobs(struct exporter *x, struct sk_error *err) {
    const size_t n_embd = x->m.runtime->model->h.n_embd;
    for (size_t i = 0; i < x->n_slots && x->next_job < x->n_jobs; i++) {
        struct slot *s = &x->slots[i];
        struct job *j = &x->jobs[x->next_job];
        const size_t need = sk_round_up(j->n_prompt + j->max_tokens, SK_TILE);
        if (s->job) continue;
        if (x->promised + need > x->m.runtime->n_positions) return SK_OK;
        if (!sk_grow(&s->hidden, &s->cap_hidden, need * n_embd, sizeof *s->hidden))
            return sk_fail_memory(err, need * n_embd * sizeof *s->hidden, "hidden states");
        const sk_status st = sk_session_open(x->m.runtime->kv, &s->session, err);
        if (st) return st;
        x->promised += need;
        x->next_job++;
        s->job = j;
    }
    return SK_OK;
}

static void end_job(struct exporter *x, struct slot *s) {
    x->promised -= sk_round_up(s->job->n_prompt + s->job->max_tokens, SK_TILE);
    sk_session_close(s->session);
    s->session = NULL;
    sk_tokens_free(&s->job->tokens);
    json_decref(s->job->line);
    s->job->line = NULL;
    s->job = NULL;
}

/* What the pass gave to one slot: states of its rows, and, once the prompt is through, a token. */
static sk_status take(struct exporter *x, struct slot *s, size_t first_row, size_t n_rows, const float *logits,
                      struct sk_error *err) {
    const size_t n_embd = x->m.runtime->model->h.n_embd, start = s->session->position - n_rows;
    const float *states = (x->after_norm ? x->normed : x->hidden) + first_row * n_embd;
    for (size_t i = 0; i < n_rows * n_embd; i++) s->hidden[start * n_embd + i] = sk_float_to_half(states[i]);
    struct job *j = s->job;
    if (!logits) return SK_OK;
    const int32_t token = sk_sample(x->sampler, &j->sampling, logits, NULL, 0, j->tokens.n, NULL);
    if (!sk_tokens_push(&j->tokens, token)) return sk_fail_memory(err, sizeof token, "tokens");
    const bool ended = sk_token_ends_generation(x->m.tokenizer, token);
    if (!ended && j->tokens.n < j->n_prompt + j->max_tokens) return SK_OK;
    const sk_status st = write_answer(x, s, ended, err);
    end_job(x, s);
    return st;
}

static sk_status step(struct exporter *x, struct sk_error *err) {
    struct sk_runtime *rt = x->m.runtime;
    const struct sk_hparams *h = &rt->model->h;
    size_t n = 0, n_logits = 0, n_rows[x->n_slots];
    for (size_t i = 0; i < x->n_slots; i++) {
        struct slot *s = &x->slots[i];
        n_rows[i] = 0;
        if (!s->job) continue;
        const size_t at = s->session->position, left = s->job->tokens.n - at, room = rt->max_rows - n;
        n_rows[i] = left < room ? left : room;
        for (size_t r = 0; r < n_rows[i]; r++)
            x->rows[n++] = (struct sk_row){s->session, s->job->tokens.ids[at + r], r + 1 == left};
    }
    sk_status st = sk_runtime_run_hidden(rt, x->rows, n, x->logits, x->hidden, err);
    if (!st && x->after_norm)
        sk_op_rms_norm(&rt->ops, x->hidden, rt->model->output_norm, h->norm_eps, n, h->n_embd, x->normed);
    for (size_t i = 0, row = 0; i < x->n_slots && !st; row += n_rows[i++]) {
        if (n_rows[i] == 0) continue;
        const bool sampled = x->rows[row + n_rows[i] - 1].wants_logits;
        st = take(x, &x->slots[i], row, n_rows[i],
                  sampled ? x->logits + n_logits++ * sk_model_logits_stride(rt->model) : NULL, err);
    }
    return st;
}

static sk_status export_all(struct exporter *x, bool quiet, struct sk_error *err) {
    const uint64_t start = sk_now_ns();
    size_t said = 0;
    const bool bar = isatty(STDERR_FILENO);
    sk_status st = SK_OK;
    while (!st && x->n_done < x->n_jobs) {
        if ((st = start_jobs(x, err)) || (st = step(x, err))) break;
        const size_t tenth = x->n_done * (bar ? 1000 : 10) / x->n_jobs;
        if (quiet || tenth == said) continue;
        said = tenth;
        const double seconds = sk_seconds_since(start);
        fprintf(stderr, "%s%zu of %zu prompts answered, %zu tokens, %.0f tokens/s%s", bar ? "\r" : "", x->n_done,
                x->n_jobs, x->n_answer_tokens, (double)x->n_answer_tokens / seconds, bar ? "" : "\n");
    }
    if (bar && said) fputc('\n', stderr);
    return st;
}

static sk_status make_room(struct exporter *x, size_t parallel, struct sk_error *err) {
    const struct sk_runtime *rt = x->m.runtime;
    const size_t n_embd = rt->model->h.n_embd;
    x->n_slots = parallel;
    x->logits_bytes = parallel * sk_model_logits_stride(rt->model) * sizeof(float);
    x->slots = sk_calloc(parallel, sizeof *x->slots);
    x->rows = sk_calloc(rt->max_rows, sizeof *x->rows);
    x->logits = sk_region_alloc(x->logits_bytes);
    x->hidden = sk_calloc(rt->max_rows * n_embd, sizeof *x->hidden);
    x->normed = sk_calloc(rt->max_rows * n_embd, sizeof *x->normed);
    if (!x->slots || !x->rows || !x->logits || !x->hidden || !x->normed)
        return sk_fail_memory(err, x->logits_bytes, "answers in parallel");
    return sk_sampler_create(rt->model->h.n_vocab, &x->sampler, err);
}

static sk_status close_output(FILE *f, struct sk_error *err) {
    if (!f || fclose(f) == 0) return SK_OK;
    return sk_fail(err, SK_EIO, "cannot write answers: %s", strerror(errno));
}

static sk_status export_free(struct exporter *x, sk_status st, struct sk_error *err) {
    FILE *const files[] = {x->out_tokens, x->out_hidden, x->out_index};
    struct sk_error ignored;
    for (size_t i = 0; i < 3; i++) {
        const sk_status closed = close_output(files[i], st ? &ignored : err);
        if (!st) st = closed;
    }
    for (size_t i = 0; i < x->n_slots && x->slots; i++) {
        sk_session_close(x->slots[i].session);
        free(x->slots[i].hidden);
    }
    for (size_t i = 0; i < x->n_jobs; i++) {
        sk_tokens_free(&x->jobs[i].tokens);
        json_decref(x->jobs[i].line);
    }
    sk_region_free(x->logits, x->logits_bytes);
    sk_sampler_free(x->sampler);
    free(x->jobs);
    free(x->slots);
    free(x->rows);
    free(x->hidden);
    free(x->normed);
    setup_free(&x->m);
    return st;
}

int command_export_hidden(int argc, char **argv) {
    struct model_options mo = {0};
    const char *file = NULL, *folder = NULL;
    size_t parallel = 32, n_positional;
    bool help, before = false;
    const struct option own[] = {
        {"file", 'f', OPTION_STRING, &file, "FILE", "the prompts, a JSON object per line; - is stdin"},
        {"out", 'o', OPTION_STRING, &folder, "FOLDER", "for tokens.i32, hidden.f16, index.jsonl and about.json"},
        {"parallel", 0, OPTION_SIZE, &parallel, "N", "answers at a time (default 32)"},
        {"before-norm", 0, OPTION_FLAG, &before, NULL, "states before the output norm, not after it"},
        {0}};
    struct option_list options = {0};
    options_add(&options, own);
    model_option_rows(&options, &mo);

    struct sk_error err = {0};
    if (options_parse(options.items, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help(
            "export-hidden -m MODEL -f PROMPTS -o FOLDER [options]",
            "Answers many prompts at once and writes each position's token and final hidden state (float16): "
            "what an MTP block is trained on.\nA line of PROMPTS has \"messages\" (for the chat template) or "
            "\"prompt\" (as it is), and may have \"temperature\" (0), \"top_k\" (0), \"top_p\" (1), \"min_p\" (0), "
            "\"seed\" (0) and \"max_tokens\" (256).",
            options.items);
        return 0;
    }
    struct exporter x = {.after_norm = !before};
    sk_status st = SK_OK;
    if (!file) st = sk_fail(&err, SK_EINVAL, "no prompts were given: -f FILE names them");
    if (!st && !folder) st = sk_fail(&err, SK_EINVAL, "no folder for the states was given: -o FOLDER names one");
    if (!st && (parallel < 1 || parallel > 256))
        st = sk_fail(&err, SK_EINVAL, "--parallel must be from 1 to 256, not %zu", parallel);
    if (!mo.context) mo.context = parallel * 1024;
    if (!st && !(st = setup_file(&x.m, &mo, &err)) && !(st = setup_tokenizer(&x.m, &mo, &err)) &&
        !(st = setup_runtime(&x.m, &mo, &err)))
        st = setup_template(&x.m, NULL, &err);
    if (!st) st = read_jobs(&x, file, &err);
    if (!st) st = make_room(&x, parallel, &err);
    if (!st) st = open_outputs(&x, folder, &err);
    if (!st) st = export_all(&x, mo.quiet, &err);
    st = export_free(&x, st, &err);
    return st ? fail_command(&err) : 0;
}
