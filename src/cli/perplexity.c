/* skipstone perplexity: how well a model predicts a text.
 *
 * The tokens are cut into consecutive windows; in each, the second half is scored, so that every scored token has at
 * least half a window before it. The result is e^(mean negative log-likelihood). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "commands.h"
#include "setup.h"

struct score {
    double negative_log_likelihood;
    size_t n_scored, n_windows;
};

/* Scores tokens [window / 2, window) of one window from position 0 of a fresh session. */
static sk_status score_window(struct sk_runtime *rt, const int32_t *tokens, size_t window, struct sk_row *rows,
                              float *logits, struct score *score, struct sk_error *err) {
    struct sk_session *s;
    const size_t first = window / 2 - 1, stride = sk_model_logits_stride(rt->model), n_vocab = rt->model->h.n_vocab;
    sk_status st = sk_session_open(rt->kv, &s, err);
    if (st) return st;
    for (size_t i = 0; i + 1 < window; i++) rows[i] = (struct sk_row){s, tokens[i], i >= first};
    st = sk_runtime_run(rt, rows, window - 1, logits, err);
    for (size_t i = first; i + 1 < window && !st; i++) {
        const float *l = logits + (i - first) * stride;
        score->negative_log_likelihood += sk_log_sum_exp(l, n_vocab) - (double)l[tokens[i + 1]];
        score->n_scored++;
    }
    sk_session_close(s);
    score->n_windows++;
    return st;
}

static sk_status score_all(struct model *m, const struct sk_tokens *tokens, size_t window, bool show,
                           struct score *score, struct sk_error *err) {
    const size_t logits_bytes = (window + 1) / 2 * sk_model_logits_stride(m->runtime->model) * sizeof(float);
    float *logits = sk_region_alloc(logits_bytes);
    struct sk_row *rows = sk_calloc(window, sizeof *rows);
    sk_status st = logits && rows ? SK_OK : sk_fail_memory(err, logits_bytes, "logits");
    for (size_t at = 0; at + window <= tokens->n && !st; at += window) {
        st = score_window(m->runtime, tokens->ids + at, window, rows, logits, score, err);
        if (show && !st) {
            fprintf(stderr, "\r%zu of %zu windows, perplexity %.4f", score->n_windows, tokens->n / window,
                    exp(score->negative_log_likelihood / (double)score->n_scored));
            fflush(stderr);
        }
    }
    if (show) fputc('\n', stderr);
    sk_region_free(logits, logits_bytes);
    free(rows);
    return st;
}

int command_perplexity(int argc, char **argv) {
    struct model_options mo = {0};
    const char *file = NULL;
    size_t window = 512, n_positional;
    bool json = false, help;
    const struct option own[] = {{"file", 'f', OPTION_STRING, &file, "FILE", "the text; - is stdin"},
                                 {"window", 'w', OPTION_SIZE, &window, "N", "tokens per window (default 512)"},
                                 {"json", 0, OPTION_FLAG, &json, NULL, "print one JSON object"},
                                 {0}};
    struct option_list options = {0};
    options_add(&options, own);
    model_option_rows(&options, &mo);

    struct sk_error err = {0};
    if (options_parse(options.items, argc, argv, NULL, 0, &n_positional, &help, &err)) return fail_command(&err) + 1;
    if (help) {
        options_help("perplexity -m MODEL -f TEXT [options]",
                     "Measures how well a model predicts a text: e^(mean negative log-likelihood) over the second half "
                     "of each window.",
                     options.items);
        return 0;
    }
    struct model m = {0};
    struct sk_buf text = {0};
    struct sk_tokens tokens = {0};
    struct score score = {0};
    sk_status st = SK_OK;
    mo.quiet = json;
    if (!file) st = sk_fail(&err, SK_EINVAL, "no text was given: -f FILE names one");
    if (!st && (window < 4 || window > 65536))
        st = sk_fail(&err, SK_EINVAL, "--window must be from 4 to 65536, not %zu", window);
    if (!mo.context) mo.context = window;
    if (!st) st = read_file(file, &text, &err);
    if (!st && !(st = setup_file(&m, &mo, &err)) && !(st = setup_tokenizer(&m, &mo, &err)))
        st = setup_runtime(&m, &mo, &err);
    if (!st) st = sk_tokenize(m.tokenizer, sk_buf_view(&text), true, false, &tokens, &err);
    if (!st && tokens.n < window)
        st = sk_fail(&err, SK_EINVAL,
                     "the text has %zu tokens and a window %zu: a longer text or a smaller --window is needed",
                     tokens.n, window);
    if (!st) st = score_all(&m, &tokens, window, !json && isatty(STDERR_FILENO), &score, &err);
    if (!st) {
        const double mean = score.negative_log_likelihood / (double)score.n_scored;
        if (json)
            printf("{\"perplexity\": %.6f, \"negative_log_likelihood\": %.9f, \"tokens\": %zu, \"scored\": %zu, "
                   "\"windows\": %zu}\n",
                   exp(mean), mean, tokens.n, score.n_scored, score.n_windows);
        else
            printf("perplexity %.4f over %zu tokens in %zu windows of %zu\n", exp(mean), score.n_scored,
                   score.n_windows, window);
    }
    sk_tokens_free(&tokens);
    sk_buf_free(&text);
    setup_free(&m);
    return st ? fail_command(&err) : 0;
}
