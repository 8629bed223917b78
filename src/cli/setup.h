/* What most commands need: a model file opened, its tokenizer, its weights, its chat template. */
#ifndef SK_CLI_SETUP_H
#define SK_CLI_SETUP_H

#include "engine/engine.h"
#include "options.h"
#include "text/template.h"

struct model_options {
    const char *model, *isa, *template_file, *mtp_file;
    size_t n_threads, context;
    bool allow_unknown_pretokenizer, quiet;
};
struct sampling_options {
    struct sk_sampling_params params;
    struct option_seed seed;
    struct option_strings bias, stops;
};

struct model {
    struct sk_gguf *gguf, *mtp; /* mtp: a sidecar, or NULL */
    struct sk_tokenizer *tokenizer;
    struct sk_runtime *runtime;
    struct sk_target *target;
    struct sk_engine *engine;
    struct sk_template *template; /* NULL if the model has none */
    double load_s;
};

/* Rows of an option table. */
#define MODEL_OPTIONS(o)                                                                                               \
    {"model", 'm', OPTION_STRING, &(o).model, "FILE", "the model, a GGUF file (of a split one, the first part)"},      \
        {"threads", 't', OPTION_SIZE, &(o).n_threads, "N", "compute threads (default: physical cores)"},               \
        {"context", 'c', OPTION_SIZE, &(o).context, "N", "positions of context (default: the model's, at most 8192)"}, \
        {"mtp", 0, OPTION_STRING, &(o).mtp_file, "FILE", "a GGUF with a multi-token-prediction block for this model"}, \
        {"isa", 0, OPTION_STRING, &(o).isa, "NAME", "kernels: scalar, avx2, avx512 (default: the fastest here)"}, {    \
        "allow-unknown-pretokenizer", 0, OPTION_FLAG, &(o).allow_unknown_pretokenizer, NULL,                           \
            "go on with an unknown pre-tokenizer, using gpt-2's"                                                       \
    }

#define SAMPLING_OPTIONS(s)                                                                                            \
    {"temperature", 0, OPTION_FLOAT, &(s).params.temperature, "X", "0 takes the most likely token (default 0.8)"},     \
        {"top-k", 0, OPTION_U32, &(s).params.top_k, "N", "only the N most likely tokens; 0 = off (default 40)"},       \
        {"top-p",           0,   OPTION_FLOAT,                                                                         \
         &(s).params.top_p, "X", "only the most likely tokens of mass X; 1 = off (default 0.95)"},                     \
        {"min-p",           0,   OPTION_FLOAT,                                                                         \
         &(s).params.min_p, "X", "only tokens at least X as likely as the first; 0 = off (default 0.05)"},             \
        {"typical-p", 0, OPTION_FLOAT, &(s).params.typical_p, "X", "locally typical sampling; 1 = off (default 1)"},   \
        {"repetition-penalty",           0,   OPTION_FLOAT,                                                            \
         &(s).params.repetition_penalty, "X", "divides logits of tokens seen; 1 = off (default 1)"},                   \
        {"presence-penalty",           0,   OPTION_FLOAT,                                                              \
         &(s).params.presence_penalty, "X", "taken off tokens seen; 0 = off (default 0)"},                             \
        {"frequency-penalty",           0,   OPTION_FLOAT,                                                             \
         &(s).params.frequency_penalty, "X", "taken off for each time seen; 0 = off (default 0)"},                     \
        {"penalty-window",           0,   OPTION_U32,                                                                  \
         &(s).params.penalty_window, "N", "last tokens that penalties look at; 0 = all (default 64)"},                 \
        {"logit-bias", 0, OPTION_STRINGS, &(s).bias, "ID=X", "adds X to a token's logit; may be repeated"},            \
        {"seed", 's', OPTION_SEED, &(s).seed, "N", "of the random draws (default: drawn, and shown)"}, {               \
        "stop", 0, OPTION_STRINGS, &(s).stops, "TEXT", "ends the answer before TEXT; may be repeated"                  \
    }

/* Opens the file; and its tokenizer; and its weights, with a progress bar on a terminal. Each needs the one before. */
sk_status setup_file(struct model *m, const struct model_options *o, struct sk_error *err);
sk_status setup_tokenizer(struct model *m, const struct model_options *o, struct sk_error *err);
sk_status setup_runtime(struct model *m, const struct model_options *o, struct sk_error *err);
/* All of it, target and engine too. */
sk_status setup_engine(struct model *m, const struct model_options *o, struct sk_error *err);
/* The template of --chat-template or of the file; m->template stays NULL if there is none. */
sk_status setup_template(struct model *m, const char *file, struct sk_error *err);
void setup_free(struct model *m);

/* Bias entries for the request: `bias` must hold 64. Fills seed (drawing one if none was given) and checks. */
sk_status setup_sampling(struct sampling_options *s, struct sk_logit_bias *bias, struct sk_error *err);

/* Renders messages (a JSON array) as a prompt. */
sk_status render_messages(const struct model *m, json_t *messages, json_t *tools, bool add_generation_prompt,
                          struct sk_buf *out, struct sk_error *err);
/* Tokens of a rendered prompt: control tokens are parsed; a BOS that the text already starts with is not added again.
 */
sk_status tokenize_prompt(const struct model *m, struct sk_str text, bool parse_special, struct sk_tokens *out,
                          struct sk_error *err);

sk_status read_file(const char *path, struct sk_buf *out, struct sk_error *err); /* "-" is stdin */

#endif
