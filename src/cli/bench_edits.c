#include "bench_edits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum way { WAY_SUFFIX, WAY_CACHE, WAY_COPY, WAY_PREDICTION, WAY_AUTO, N_WAYS };
static const char *const way_names[N_WAYS] = {"suffix", "cache", "copy", "prediction", "auto"};

enum { FIXED_WIDTH = 15 };

struct sums {
    double tokens, windows, cost; /* cost in passes of one row */
};
enum { BY_GOODPUT, BY_WIDTH, N_MODES };

struct group {
    char kind[32];
    double share, tokens, same; /* same: of the tokens after, those that stood before in the same order */
    struct sums ways[N_WAYS][N_MODES];
};

/* ---- one answer ---------------------------------------------------------------------------------------- */

static void add_proposers(struct sk_speculation *s, enum way way, const struct sk_tokens *before, size_t n_prompt) {
    if (way == WAY_PREDICTION) sk_speculation_add(s, sk_prediction_proposer_create(before->ids, before->n, n_prompt));
    if (way == WAY_COPY || way == WAY_AUTO) sk_speculation_add(s, sk_copy_proposer_create());
    if (way == WAY_SUFFIX || way == WAY_AUTO) sk_speculation_add(s, sk_suffix_proposer_create());
    if (way == WAY_CACHE || way == WAY_AUTO) sk_speculation_add(s, sk_cache_proposer_create());
}

/* One window, judged by the known answer; gives how many tokens it commits. */
static size_t take_window(struct sk_speculation *s, const struct sk_cost_model *cost, const int32_t *text, size_t at,
                          size_t n, struct sums *sums) {
    struct sk_draft drafts[SK_MAX_WINDOW];
    const struct sk_next next = {.tokens = text, .n_tokens = at, .limit = n - at - 1, .cost = cost};
    const size_t width = sk_speculation_next(s, &next, drafts);
    size_t accepted = 0;
    while (accepted < width && drafts[accepted].token == text[at + accepted]) accepted++;
    const struct sk_receipt r = {.disposition = accepted < width ? SK_FIRST_MISMATCH : SK_FULL_ACCEPT,
                                 .proposal = drafts,
                                 .n_proposal = width,
                                 .n_rows = width + 1,
                                 .n_accepted = accepted,
                                 .n_committed = accepted + 1,
                                 .predicted = text + at,
                                 .n_predicted = accepted + 1,
                                 .next_token = text[at + accepted],
                                 .trimmed_rows = width - accepted};
    sk_speculation_observe(s, &r);
    sums->tokens += (double)accepted + 1.0;
    sums->windows += 1.0;
    sums->cost += sk_cost_of(cost, width + 1);
    return accepted + 1;
}

static sk_status replay(enum way way, size_t mode, double row_cost, size_t n_vocab, const struct sk_tokens *before,
                        const struct sk_tokens *after, struct sums *sums, struct sk_error *err) {
    struct sk_speculation_options o = sk_speculation_defaults();
    const size_t n_prompt = way == WAY_PREDICTION ? 1 : before->n, n = n_prompt + after->n;
    int32_t *text = sk_calloc(n, sizeof *text);
    struct sk_cost_model cost;
    if (mode == BY_WIDTH) o.mode = SK_WIDTH_FIXED, o.width = FIXED_WIDTH;
    sk_cost_init(&cost, row_cost);
    sk_cost_observe(&cost, 1, 1.0);
    struct sk_speculation *s = sk_speculation_create(&o, n_vocab, NULL);
    if (!s || !text) {
        sk_speculation_free(s);
        free(text);
        return sk_fail_memory(err, n * sizeof *text, "a replay");
    }
    memcpy(text, before->ids, n_prompt * sizeof *text);
    memcpy(text + n_prompt, after->ids, after->n * sizeof *text);
    add_proposers(s, way, before, n_prompt);
    for (size_t at = n_prompt; at < n;) at += take_window(s, &cost, text, at, n, sums);
    sk_speculation_free(s);
    free(text);
    return SK_OK;
}

/* Length of the longest common subsequence. */
static sk_status count_same(const struct sk_tokens *a, const struct sk_tokens *b, double *same, struct sk_error *err) {
    uint32_t *row = sk_calloc(b->n + 1, sizeof *row);
    if (!row) return sk_fail_memory(err, b->n * sizeof *row, "a comparison");
    for (size_t i = 0; i < a->n; i++) {
        uint32_t corner = 0;
        for (size_t j = 0; j < b->n; j++) {
            const uint32_t above = row[j + 1];
            row[j + 1] = a->ids[i] == b->ids[j] ? corner + 1 : above > row[j] ? above : row[j];
            corner = above;
        }
    }
    *same += row[b->n];
    free(row);
    return SK_OK;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static struct group *group_of(struct group *groups, size_t *n, size_t most, const char *kind, double share) {
    for (size_t i = 0; i < *n; i++)
        if (strcmp(groups[i].kind, kind) == 0 && groups[i].share == share) return &groups[i];
    if (*n == most) return NULL;
    struct group *g = &groups[(*n)++];
    *g = (struct group){.share = share};
    snprintf(g->kind, sizeof g->kind, "%s", kind);
    return g;
}

static sk_status replay_line(struct model *m, double row_cost, const json_t *o, struct group *groups, size_t *n_groups,
                             size_t most, struct sk_error *err) {
    const json_t *before = json_object_get(o, "before"), *after = json_object_get(o, "after");
    const char *kind = json_string_value(json_object_get(o, "kind"));
    struct sk_tokens a = {0}, b = {0};
    if (!kind || !json_is_string(before) || !json_is_string(after))
        return sk_fail(err, SK_EFORMAT, "a line is no object with \"kind\", \"before\" and \"after\"");
    if (strlen(kind) >= sizeof groups->kind)
        return sk_fail(err, SK_EFORMAT, "a kind has %zu bytes, at most %zu are possible", strlen(kind),
                       sizeof groups->kind - 1);
    struct group *g = group_of(groups, n_groups, most, kind, json_number_value(json_object_get(o, "share")));
    if (!g) return sk_fail(err, SK_EFORMAT, "there are more than %zu kinds and shares", most);
    const struct sk_str before_text = {json_string_value(before), json_string_length(before)};
    const struct sk_str after_text = {json_string_value(after), json_string_length(after)};
    sk_status st = sk_tokenize(m->tokenizer, before_text, false, false, &a, err);
    if (!st) st = sk_tokenize(m->tokenizer, after_text, false, false, &b, err);
    if (!st && (a.n == 0 || b.n == 0)) st = sk_fail(err, SK_EFORMAT, "a line's text is empty");
    if (!st) st = count_same(&a, &b, &g->same, err);
    g->tokens += (double)b.n;
    for (size_t i = 0; i < (size_t)N_WAYS * N_MODES && !st; i++)
        st = replay((enum way)(i / N_MODES), i % N_MODES, row_cost, m->target->ops->n_vocab(m->target), &a, &b,
                    &g->ways[i / N_MODES][i % N_MODES], err);
    sk_tokens_free(&a);
    sk_tokens_free(&b);
    return st;
}

static void print_groups(const struct group *groups, size_t n, double row_cost) {
    printf("tokens per window of %d drafts (gain at widths of auto, if a further row costs %.3g of the first); no "
           "model is "
           "run\n\n| edits | tokens changed |",
           FIXED_WIDTH, row_cost);
    for (size_t way = 0; way < N_WAYS; way++) printf(" %s |", way_names[way]);
    printf(" copy against suffix |\n|---|---|");
    for (size_t way = 0; way <= N_WAYS; way++) printf("---|");
    printf("\n");
    for (size_t i = 0; i < n; i++) {
        const struct group *g = &groups[i];
        const struct sums *suffix = g->ways[WAY_SUFFIX], *copy = g->ways[WAY_COPY];
        printf("| %s, %.0f %% | %.1f %% |", g->kind, g->share * 100.0, 100.0 * (1.0 - g->same / g->tokens));
        for (size_t way = 0; way < N_WAYS; way++)
            printf(" %.2f (%.2f) |", g->ways[way][BY_WIDTH].tokens / g->ways[way][BY_WIDTH].windows,
                   g->ways[way][BY_GOODPUT].tokens / g->ways[way][BY_GOODPUT].cost);
        printf(" %.2f (%.2f) |\n", suffix[BY_WIDTH].windows / copy[BY_WIDTH].windows,
               suffix[BY_GOODPUT].cost / copy[BY_GOODPUT].cost);
    }
}

sk_status bench_edits(struct model *m, const char *file, double row_cost, struct sk_error *err) {
    struct group groups[32];
    size_t n_groups = 0, line = 0;
    struct sk_buf text = {0};
    if (row_cost == 0.0) row_cost = m->target->ops->row_cost(m->target);
    if (!(row_cost > 0.0 && row_cost <= 1.0))
        return sk_fail(err, SK_EINVAL, "--row-cost must be more than 0 and at most 1, not %g", row_cost);
    sk_status st = read_file(file, &text, err);
    for (size_t at = 0; at < text.len && !st;) {
        const char *start = text.data + at, *end = memchr(start, '\n', text.len - at);
        const size_t n = end ? (size_t)(end - start) : text.len - at;
        json_error_t e;
        json_t *o = json_loadb(start, n, 0, &e);
        line++;
        if (n) st = replay_line(m, row_cost, o, groups, &n_groups, sizeof groups / sizeof *groups, err);
        if (st) sk_fail_within(err, "%s, line %zu", file, line);
        json_decref(o);
        at += n + 1;
    }
    if (!st && n_groups == 0) st = sk_fail(err, SK_EFORMAT, "'%s' holds no edits: bench/edits.py writes some", file);
    if (!st) print_groups(groups, n_groups, row_cost);
    sk_buf_free(&text);
    return st;
}
