#include "speculation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct spec_options spec_defaults(void) {
    const struct sk_speculation_options d = sk_speculation_defaults();
    return (struct spec_options){.proposers = "auto",
                                 .width = "auto",
                                 .mtp_max = d.mtp_max,
                                 .mtp_min = d.mtp_min,
                                 .mtp_cooldown = d.mtp_cooldown,
                                 .tail_start = d.tail_start,
                                 .tail_max = d.tail_max,
                                 .tail_pause = d.tail_pause,
                                 .max_width = d.max_width,
                                 .mtp_min_probability = d.mtp_min_probability,
                                 .draft_max = 8,
                                 .draft_min_probability = 0.4f,
                                 .plugin_timeout_ms = 50};
}

void spec_option_rows(struct option_list *list, struct spec_options *s) {
    const struct option rows[] = {
        {"spec", 0, OPTION_STRING, &s->proposers, "LIST",
         "auto, off, or some of mtp,copy,ngram,suffix,cache,prediction,draft,plugin:PATH (default auto)"},
        {"spec-width", 0, OPTION_STRING, &s->width, "W",
         "drafts per window: auto (by measured gain), adaptive, or 0 to 63 (default auto)"},
        {"spec-max", 0, OPTION_SIZE, &s->max_width, "N", "most drafts per window of auto and adaptive (default 31)"},
        {"spec-trace", 0, OPTION_STRING, &s->trace, "FILE", "write one JSON line per window"},
        {"prediction", 0, OPTION_STRING, &s->prediction, "FILE", "the answer is expected to be about this text"},
        {"draft-model", 0, OPTION_STRING, &s->draft_model, "FILE", "a small GGUF with the same vocabulary that drafts"},
        {"draft-max", 0, OPTION_U32, &s->draft_max, "N", "drafts of the draft model at a time (default 8)"},
        {"draft-min-p", 0, OPTION_FLOAT, &s->draft_min_probability, "X",
         "it stops drafting below this probability (default 0.4)"},
        {"mtp-max", 0, OPTION_SIZE, &s->mtp_max, "N", "drafts of the model's own head at a time (default 4)"},
        {"mtp-min", 0, OPTION_SIZE, &s->mtp_min, "N", "fewer are not used (default 1)"},
        {"mtp-min-p", 0, OPTION_FLOAT, &s->mtp_min_probability, "X",
         "it stops drafting below this probability (default 0)"},
        {"mtp-cooldown", 0, OPTION_SIZE, &s->mtp_cooldown, "N", "tokens without it after a rejection (default 0)"},
        {"tail-start", 0, OPTION_SIZE, &s->tail_start, "N",
         "first limit of an n-gram tail after MTP drafts (default 2)"},
        {"tail-max", 0, OPTION_SIZE, &s->tail_max, "N", "last limit of it (default 16)"},
        {"tail-pause", 0, OPTION_SIZE, &s->tail_pause, "N",
         "proposals without a tail after one was rejected (default 2)"},
        {"plugin-timeout", 0, OPTION_SIZE, &s->plugin_timeout_ms, "MS",
         "a plugin that takes longer is left alone (default 50)"},
        {0},
    };
    options_add(list, rows);
}

static sk_status add_proposer(struct spec_options *s, const char *name, size_t n, struct sk_error *err) {
    if (n > 7 && strncmp(name, "plugin:", 7) == 0) {
        free(s->plugin);
        if (!(s->plugin = strndup(name + 7, n - 7))) return sk_fail_memory(err, n, "a path");
        s->options.proposers |= 1u << SK_PLUGIN;
        return SK_OK;
    }
    if (n == 5 && strncmp(name, "ngram", 5) == 0) {
        s->options.proposers |= 1u << SK_SUFFIX | 1u << SK_CACHE;
        return SK_OK;
    }
    for (size_t k = 0; k < SK_N_PROPOSERS; k++) {
        const char *known = sk_proposer_name((enum sk_proposer_kind)k);
        if (k == SK_PLUGIN || strlen(known) != n || strncmp(known, name, n) != 0) continue;
        s->options.proposers |= 1u << k;
        return SK_OK;
    }
    return sk_fail(err, SK_EINVAL,
                   "--spec does not know '%.*s': auto, off, mtp, copy, ngram, suffix, cache, prediction, draft and "
                   "plugin:PATH are possible",
                   (int)n, name);
}

static sk_status read_proposers(struct spec_options *s, struct sk_error *err) {
    s->on = strcmp(s->proposers, "off") != 0;
    if (!s->on || strcmp(s->proposers, "auto") == 0) return SK_OK;
    s->options.proposers = 0;
    for (const char *p = s->proposers; *p;) {
        const size_t n = strcspn(p, ",");
        const sk_status st = add_proposer(s, p, n, err);
        if (st) return st;
        p += n + (p[n] == ',');
    }
    return SK_OK;
}

static sk_status read_width(struct spec_options *s, struct sk_error *err) {
    char *end;
    if (strcmp(s->width, "auto") == 0) return SK_OK;
    if (strcmp(s->width, "adaptive") == 0) {
        s->options.mode = SK_WIDTH_ADAPTIVE;
        s->options.min_width = 1;
        return SK_OK;
    }
    const long n = strtol(s->width, &end, 10);
    if (end == s->width || *end || n < 0 || n > SK_MAX_WINDOW - 1)
        return sk_fail(err, SK_EINVAL, "--spec-width must be auto, adaptive or a number from 0 to %d, not '%s'",
                       SK_MAX_WINDOW - 1, s->width);
    s->options.mode = SK_WIDTH_FIXED;
    s->options.width = (size_t)n;
    return SK_OK;
}

sk_status spec_prepare(struct spec_options *s, struct sk_error *err) {
    sk_status st;
    s->options = sk_speculation_defaults();
    s->options.max_width = s->max_width;
    s->options.mtp_max = s->mtp_max;
    s->options.mtp_min = s->mtp_min;
    s->options.mtp_cooldown = s->mtp_cooldown;
    s->options.mtp_min_probability = s->mtp_min_probability;
    s->options.tail_start = s->tail_start;
    s->options.tail_max = s->tail_max;
    s->options.tail_pause = s->tail_pause;
    if ((st = read_proposers(s, err)) || (st = read_width(s, err))) return st;
    if (s->max_width < 1 || s->max_width > SK_MAX_WINDOW - 1)
        return sk_fail(err, SK_EINVAL, "--spec-max must be from 1 to %d, not %zu", SK_MAX_WINDOW - 1, s->max_width);
    if (s->mtp_max < 1 || s->mtp_max > 16)
        return sk_fail(err, SK_EINVAL, "--mtp-max must be from 1 to 16, not %zu", s->mtp_max);
    if (s->draft_max < 1 || s->draft_max > 63)
        return sk_fail(err, SK_EINVAL, "--draft-max must be from 1 to 63, not %u", s->draft_max);
    if (s->plugin_timeout_ms < 1 || s->plugin_timeout_ms > 60000)
        return sk_fail(err, SK_EINVAL, "--plugin-timeout must be from 1 to 60000, not %zu", s->plugin_timeout_ms);
    if (s->trace && !(s->trace_file = fopen(s->trace, "we")))
        return sk_fail(err, SK_EIO, "cannot write '%s': %s", s->trace, strerror(errno));
    return SK_OK;
}

bool spec_drafts_natively(const struct spec_options *s) {
    return s->on && (s->options.proposers & (1u << SK_MTP));
}

void spec_finish(struct spec_options *s) {
    if (s->trace_file) fclose(s->trace_file);
    s->trace_file = NULL;
    sk_plugin_close(s->opened_plugin);
    sk_draft_model_close(s->opened_draft);
    sk_tokens_free(&s->predicted);
    free(s->plugin);
    s->opened_plugin = NULL;
    s->opened_draft = NULL;
    s->plugin = NULL;
}

static json_t *draft_array(const struct sk_draft *drafts, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, json_integer(drafts[i].token));
    return a;
}

static json_t *id_array(const int32_t *ids, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, json_integer(ids[i]));
    return a;
}

void spec_trace_window(FILE *out, const struct sk_window_event *e) {
    const struct sk_receipt *r = e->receipt;
    const enum sk_proposer_kind first = r->n_proposal ? (enum sk_proposer_kind)r->proposal[0].kind : SK_NO_PROPOSER;
    json_t *o = json_pack("{s:I, s:I, s:s, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "step",
                          (json_int_t)e->step, "base_position", (json_int_t)r->base_position, "proposer",
                          sk_proposer_name(first), "proposal", draft_array(r->proposal, r->n_proposal), "predicted",
                          id_array(r->predicted, r->n_predicted), "disposition", sk_disposition_name(r->disposition),
                          "rows", (json_int_t)r->n_rows, "accepted", (json_int_t)r->n_accepted, "committed",
                          (json_int_t)r->n_committed, "canonical_position", (json_int_t)r->canonical_position,
                          "trimmed_rows", (json_int_t)r->trimmed_rows, "drafts_offered", (json_int_t)e->drafts_offered,
                          "propose_s", r->propose_s, "verify_s", r->verify_s, "repair_s", r->repair_s);
    if (!o) return;
    json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(o);
}

static void totals(const struct sk_speculation_stats *s, uint64_t *proposed, uint64_t *accepted) {
    *proposed = *accepted = 0;
    for (size_t k = 0; k < SK_N_PROPOSERS; k++) {
        *proposed += s->by[k].proposed;
        *accepted += s->by[k].accepted;
    }
}

json_t *spec_json(const struct sk_speculation_stats *s) {
    uint64_t proposed, accepted;
    totals(s, &proposed, &accepted);
    json_t *widths = json_array();
    size_t last = SK_MAX_WINDOW;
    while (last && s->width_histogram[last - 1] == 0) last--;
    for (size_t i = 0; i < last; i++) json_array_append_new(widths, json_integer((json_int_t)s->width_histogram[i]));
    json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "windows", (json_int_t)s->windows, "committed",
                          (json_int_t)s->committed, "proposed", (json_int_t)proposed, "accepted", (json_int_t)accepted,
                          "full_accepts", (json_int_t)s->full_accepts, "rejections", (json_int_t)s->rejections,
                          "saved_passes", (json_int_t)(s->committed - s->windows), "widths", widths);
    json_t *rejected = json_array();
    for (last = SK_MAX_WINDOW; last && s->rejected_at[last - 1] == 0;) last--;
    for (size_t i = 0; i < last; i++) json_array_append_new(rejected, json_integer((json_int_t)s->rejected_at[i]));
    json_object_set_new(o, "rejected_at", rejected);
    json_object_set_new(
        o, "buffered",
        json_pack("{s:I, s:I}", "hits", (json_int_t)s->buffered_hits, "misses", (json_int_t)s->buffered_misses));
    json_object_set_new(o, "repairs",
                        json_pack("{s:I, s:I}", "trims", (json_int_t)s->trims, "retires", (json_int_t)s->retires));
    for (size_t i = 0; i < SK_N_DRAFT_ORIGINS; i++)
        if (s->mtp_offered[i])
            json_object_set_new(o, sk_draft_origin_name((enum sk_draft_origin)i),
                                json_pack("{s:I, s:I}", "offered", (json_int_t)s->mtp_offered[i], "adopted",
                                          (json_int_t)s->mtp_adopted[i]));
    if (s->mtp_offered[SK_VERIFY_NEXT])
        json_object_set_new(o, "tail",
                            json_pack("{s:I, s:I, s:I, s:I}", "prefix_agreements", (json_int_t)s->prefix_agreements,
                                      "prefix_disagreements", (json_int_t)s->prefix_disagreements, "rejections",
                                      (json_int_t)s->tail_rejections, "mtp_cooldowns", (json_int_t)s->mtp_cooldowns));
    for (size_t k = 0; k < SK_N_PROPOSERS; k++) {
        if (!s->by[k].attempts && !s->by[k].proposed) continue;
        json_object_set_new(
            o, sk_proposer_name((enum sk_proposer_kind)k),
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f}", "proposed", (json_int_t)s->by[k].proposed, "accepted",
                      (json_int_t)s->by[k].accepted, "attempts", (json_int_t)s->by[k].attempts, "hits",
                      (json_int_t)s->by[k].hits, "invalid", (json_int_t)s->by[k].invalid, "failures",
                      (json_int_t)s->by[k].failures, "off", (int)s->by[k].off, "seconds", s->by[k].seconds));
    }
    return o;
}

void spec_line(const struct sk_speculation_stats *s, char *out, size_t cap) {
    uint64_t proposed, accepted;
    size_t n = 0;
    totals(s, &proposed, &accepted);
    out[0] = '\0';
    if (s->windows == 0) return;
    const int head = snprintf(out, cap, "; %llu %s, %.2f tokens each", (unsigned long long)s->windows,
                              plural(s->windows, "window", "windows"), (double)s->committed / (double)s->windows);
    n = head > 0 && (size_t)head < cap ? (size_t)head : cap;
    for (size_t k = 0; k < SK_N_PROPOSERS && n < cap; k++) {
        if (!s->by[k].proposed) continue;
        const int m = snprintf(out + n, cap - n, ", %s %llu of %llu", sk_proposer_name((enum sk_proposer_kind)k),
                               (unsigned long long)s->by[k].accepted, (unsigned long long)s->by[k].proposed);
        n += m > 0 ? (size_t)m : 0;
    }
    const uint64_t saved = s->committed > s->windows ? s->committed - s->windows : 0;
    if (n < cap)
        snprintf(out + n, cap - n, ", %llu %s saved", (unsigned long long)saved, plural(saved, "pass", "passes"));
}

/* ---- proposers that need opening ----------------------------------------------------------------------- */

/* What `auto` would have taken if it were there goes without saying. */
static void find_unavailable(struct spec_options *s, const struct sk_runtime *rt) {
    if (strcmp(s->proposers, "auto") == 0) return;
    if (!rt->mtp) s->unavailable[SK_MTP] = "the model has no multi-token-prediction block, and no --mtp FILE gives one";
    if (!s->draft_model) s->unavailable[SK_DRAFT] = "no --draft-model FILE gives a model to draft with";
    if (!s->prediction) s->unavailable[SK_PREDICTION] = "no --prediction FILE gives a text to expect";
    for (size_t k = 0; k < SK_N_PROPOSERS; k++) {
        if (!(s->options.proposers & (1u << k))) s->unavailable[k] = NULL;
        if (s->unavailable[k])
            fprintf(stderr, "skipstone: going on without the proposer %s: %s\n",
                    sk_proposer_name((enum sk_proposer_kind)k), s->unavailable[k]);
    }
}

json_t *spec_unavailable_json(const struct spec_options *s) {
    json_t *o = json_object();
    for (size_t k = 0; k < SK_N_PROPOSERS; k++)
        if (s->unavailable[k])
            json_object_set_new(o, sk_proposer_name((enum sk_proposer_kind)k), json_string(s->unavailable[k]));
    return o;
}

sk_status spec_open(struct spec_options *s, const struct sk_tokenizer *tokenizer, const struct sk_runtime *rt,
                    struct sk_error *err) {
    struct sk_buf text = {0};
    sk_status st = SK_OK;
    if (!s->on) return SK_OK;
    find_unavailable(s, rt);
    if (s->plugin) st = sk_plugin_open(s->plugin, s->plugin_timeout_ms, &s->opened_plugin, err);
    if (!st && s->draft_model) st = sk_draft_model_open(s->draft_model, tokenizer, rt, &s->opened_draft, err);
    if (!st && s->prediction && !(st = read_file(s->prediction, &text, err)))
        st = sk_tokenize(tokenizer, sk_buf_view(&text), false, false, &s->predicted, err);
    sk_buf_free(&text);
    return st;
}

sk_status spec_fill_request(struct spec_options *s, struct sk_request *r, struct sk_error *err) {
    sk_status st = SK_OK;
    if (!s->on) return SK_OK;
    r->speculation = &s->options;
    r->prediction = s->predicted.ids;
    r->n_prediction = s->predicted.n;
    r->proposers = s->instances;
    r->n_proposers = 0;
    if (s->opened_plugin &&
        !(st = sk_plugin_proposer_create(s->opened_plugin, r->n_prompt, &s->instances[r->n_proposers], err)))
        r->n_proposers++;
    if (!st && s->opened_draft &&
        !(st = sk_draft_proposer_create(s->opened_draft, &r->sampling, s->draft_max, s->draft_min_probability,
                                        &s->instances[r->n_proposers], err)))
        r->n_proposers++;
    for (size_t i = 0; st && i < r->n_proposers; i++) s->instances[i]->ops->destroy(s->instances[i]);
    if (st) r->n_proposers = 0;
    return st;
}

void spec_report(const struct sk_speculation_stats *s) {
    for (size_t k = 0; k < SK_N_PROPOSERS; k++)
        if (s->by[k].off)
            fprintf(stderr,
                    "skipstone: proposer %s was switched off after %llu failures and %llu proposals with tokens that "
                    "do not exist\n",
                    sk_proposer_name((enum sk_proposer_kind)k), (unsigned long long)s->by[k].failures,
                    (unsigned long long)s->by[k].invalid);
}
