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
    bool drafts_natively; /* a block for multi-token prediction is of use: one that comes with the model is looked for */
};

struct model {
    struct sk_gguf *gguf, *mtp; /* mtp: a sidecar, or NULL */
    char *mtp_path;             /* of the sidecar */
    struct sk_tokenizer *tokenizer;
    struct sk_runtime *runtime;
    struct sk_target *target;
    struct sk_engine *engine;
    struct sk_template *template; /* NULL if the model has none */
    double load_s;
};

/* The options that fill these. */
void model_option_rows(struct option_list *list, struct model_options *o);

/* Opens the file; and its tokenizer; and its weights, with a progress bar on a terminal. Each needs the one before. */
sk_status setup_file(struct model *m, const struct model_options *o, struct sk_error *err);
sk_status setup_tokenizer(struct model *m, const struct model_options *o, struct sk_error *err);
sk_status setup_runtime(struct model *m, const struct model_options *o, struct sk_error *err);
/* All of it, target and engine too. */
sk_status setup_engine(struct model *m, const struct model_options *o, struct sk_error *err);
/* The template of --chat-template or of the file; m->template stays NULL if there is none. */
sk_status setup_template(struct model *m, const char *file, struct sk_error *err);
void setup_free(struct model *m);

/* Renders messages (a JSON array) as a prompt. */
sk_status render_messages(const struct model *m, json_t *messages, json_t *tools, bool add_generation_prompt,
                          struct sk_buf *out, struct sk_error *err);
/* Tokens of a rendered prompt: control tokens are parsed; a BOS that the text already starts with is not added again.
 */
sk_status tokenize_prompt(const struct model *m, struct sk_str text, bool parse_special, struct sk_tokens *out,
                          struct sk_error *err);

sk_status read_file(const char *path, struct sk_buf *out, struct sk_error *err); /* "-" is stdin */
/* The word for n of something: "1 token", "2 tokens". */
const char *plural(uint64_t n, const char *one, const char *several);

#endif
