/* Speculation on the command line: its options, its trace, its figures. */
#ifndef SK_CLI_SPECULATION_H
#define SK_CLI_SPECULATION_H

#include <stdio.h>

#include "engine/draft_model.h"
#include "engine/engine.h"
#include "engine/plugin.h"
#include "setup.h"

#include <jansson.h>

struct spec_options {
    const char *proposers, *width, *trace, *draft_model, *prediction;
    size_t mtp_max, mtp_min, mtp_cooldown, tail_start, tail_max, tail_pause, max_width;
    float mtp_min_probability;
    uint32_t draft_max;
    float draft_min_probability;
    size_t plugin_timeout_ms;
    /* Filled by spec_prepare. */
    struct sk_speculation_options options;
    bool on;
    char *plugin; /* path; NULL = none */
    FILE *trace_file;
    /* Filled by spec_open. */
    struct sk_plugin *opened_plugin;
    struct sk_draft_model *opened_draft;
    struct sk_tokens predicted;
    const char *unavailable[SK_N_PROPOSERS]; /* why one that was asked for cannot be had; NULL: it can */
    struct sk_proposer *instances[2];        /* on their way into a request */
};
struct spec_options spec_defaults(void);

void spec_option_rows(struct option_list *list, struct spec_options *s);

/* Whether drafts of the model's own head may be used; after spec_prepare. */
bool spec_drafts_natively(const struct spec_options *s);
/* Reads the options' text into s->options and opens the trace. */
sk_status spec_prepare(struct spec_options *s, struct sk_error *err);
/* Opens the plugin, the draft model and the predicted text, where the options name them. A proposer that was asked for
 * by name and lacks what it needs is named on stderr; the rest goes on without it. */
sk_status spec_open(struct spec_options *s, const struct sk_tokenizer *tokenizer, const struct sk_runtime *rt,
                    struct sk_error *err);
/* Gives a request its options and proposers. */
sk_status spec_fill_request(struct spec_options *s, struct sk_request *r, struct sk_error *err);
void spec_finish(struct spec_options *s);
/* One line on stderr for each proposer that had to be switched off. */
void spec_report(const struct sk_speculation_stats *s);

/* One line of the trace. */
void spec_trace_window(FILE *out, const struct sk_window_event *e);
/* {"windows": …, "proposed": …, "accepted": …, "suffix": {"proposed": …, "accepted": …}, …} */
json_t *spec_json(const struct sk_speculation_stats *s);
/* {"mtp": "the model has no multi-token-prediction block"}: what was asked for and cannot be had. */
json_t *spec_unavailable_json(const struct spec_options *s);
/* "; 40 windows, 3.00 tokens each, suffix 70 of 90, 80 passes saved"; nothing if nothing was speculated. */
void spec_line(const struct sk_speculation_stats *s, char *out, size_t cap);

#endif
