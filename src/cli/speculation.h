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
    struct sk_proposer *instances[2]; /* on their way into a request */
};
struct spec_options spec_defaults(void);

#define SPEC_OPTIONS(s)                                                                                                \
    {"spec",        0,                                                                                                 \
     OPTION_STRING, &(s).proposers,                                                                                    \
     "LIST",        "auto, off, or some of mtp,ngram,suffix,cache,prediction,draft,plugin:PATH (default auto)"},       \
        {"spec-width", 0,   OPTION_STRING,                                                                             \
         &(s).width,   "W", "drafts per window: auto (by measured gain), adaptive, or 0 to 63 (default auto)"},        \
        {"spec-max", 0, OPTION_SIZE, &(s).max_width, "N", "most drafts per window of auto and adaptive (default 31)"}, \
        {"spec-trace", 0, OPTION_STRING, &(s).trace, "FILE", "write one JSON line per window"},                        \
        {"prediction", 0, OPTION_STRING, &(s).prediction, "FILE", "the answer is expected to be about this text"},     \
        {"draft-model",    0,      OPTION_STRING,                                                                      \
         &(s).draft_model, "FILE", "a small GGUF with the same vocabulary that drafts"},                               \
        {"draft-max", 0, OPTION_U32, &(s).draft_max, "N", "drafts of the draft model at a time (default 8)"},          \
        {"draft-min-p", 0,                                                                                             \
         OPTION_FLOAT,  &(s).draft_min_probability,                                                                    \
         "X",           "it stops drafting below this probability (default 0.4)"},                                     \
        {"mtp-max", 0, OPTION_SIZE, &(s).mtp_max, "N", "drafts of the model's own head at a time (default 4)"},        \
        {"mtp-min", 0, OPTION_SIZE, &(s).mtp_min, "N", "fewer are not used (default 1)"},                              \
        {"mtp-min-p",  0,                                                                                              \
         OPTION_FLOAT, &(s).mtp_min_probability,                                                                       \
         "X",          "it stops drafting below this probability (default 0)"},                                        \
        {"mtp-cooldown", 0, OPTION_SIZE, &(s).mtp_cooldown, "N", "tokens without it after a rejection (default 0)"},   \
        {"tail-start",    0,   OPTION_SIZE,                                                                            \
         &(s).tail_start, "N", "first limit of an n-gram tail after MTP drafts (default 2)"},                          \
        {"tail-max", 0, OPTION_SIZE, &(s).tail_max, "N", "last limit of it (default 16)"},                             \
        {"tail-pause",    0,   OPTION_SIZE,                                                                            \
         &(s).tail_pause, "N", "proposals without a tail after one was rejected (default 2)"},                         \
    {                                                                                                                  \
        "plugin-timeout", 0, OPTION_SIZE, &(s).plugin_timeout_ms, "MS",                                                \
            "a plugin that takes longer is left alone (default 50)"                                                    \
    }

/* Reads the options' text into s->options and opens the trace. */
sk_status spec_prepare(struct spec_options *s, struct sk_error *err);
/* Opens the plugin, the draft model and the predicted text, where the options name them. */
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
/* ", 40 windows of 3.1 tokens, suffix 70 of 90, 80 passes saved"; nothing if nothing was speculated. */
void spec_line(const struct sk_speculation_stats *s, char *out, size_t cap);

#endif
