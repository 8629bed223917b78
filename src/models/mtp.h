/* A multi-token-prediction block: one decoder block that predicts the token after the next (DeepSeek-V3 technical
 * report, arXiv 2412.19437, section 2.2; tensor names as in GGUF files: blk.N.nextn.*).
 *
 * For a position t with final hidden state h_t and next token x_{t+1}:
 *     y = block(eh_proj · [enorm(embed(x_{t+1})) ; hnorm(h_t)]),    logits of x_{t+2} = head(head_norm(y))
 * The pair (h_t, x_{t+1}) sits at position t+1 of the block's own key-value cache; before the first position h is
 * zeros. Chained, y takes the place of h. The block is in the model's file or in a file of its own (a sidecar). */
#ifndef SK_MODELS_MTP_H
#define SK_MODELS_MTP_H

#include "models/model.h"

struct sk_mtp {
    const struct sk_model *target;    /* borrowed */
    struct sk_model *block;           /* a model of one layer, by the same architecture */
    float *enorm, *hnorm, *head_norm; /* head_norm NULL: the target's output norm */
    struct sk_weight eh_proj, head;   /* head without format: the target's */
    const struct sk_gguf_tensor *embedding;
    const struct sk_gguf_value *head_ids; /* of a trimmed vocabulary, as in the file; else NULL */
    int32_t *head_tokens;                 /* the same: [rows of the head], ascending; NULL: row i is token i */
    uint32_t window;                      /* a row sees this many positions, itself the last; 0 = all */
    bool hidden_after_norm;               /* h is taken after the target's output norm, and y after head_norm */
    float *pair;                          /* scratch [max_rows][2 n_embd] */
    struct sk_workspace *ws;
    size_t max_rows;
};

/* Whether a model's file holds a block. */
bool sk_mtp_in_file(const struct sk_model *target);
/* `g` is the target's file or a sidecar, whose dimensions and fingerprint must fit. Loads the weights. */
sk_status sk_mtp_create(const struct sk_model *target, const struct sk_gguf *g, struct sk_pool *pool, size_t max_rows,
                        struct sk_mtp **out, struct sk_error *err);
void sk_mtp_free(struct sk_mtp *m);
struct sk_kv_layout sk_mtp_kv_layout(const struct sk_mtp *m);
/* Rows of the head, and floats from one row of its logits to the next. */
size_t sk_mtp_head_rows(const struct sk_mtp *m);
size_t sk_mtp_logits_stride(const struct sk_mtp *m);

struct sk_mtp_forward {
    size_t rows;                       /* at most max_rows */
    const struct sk_row_place *places; /* in the block's own cache */
    const int32_t *tokens;             /* x_{t+1} */
    const float *const *hidden;        /* h_t of each row, [n_embd] */
    float *y;                          /* out [rows][n_embd], to be chained */
    const uint32_t *outputs;           /* rows whose logits are wanted */
    size_t n_outputs;
    float *logits; /* [n_outputs][sk_mtp_logits_stride] */
};
void sk_mtp_run(const struct sk_mtp *m, const struct sk_ops *ops, const struct sk_mtp_forward *f);

/* A hash of a model file's tensors (names, types, shapes, and the first bytes of each), in hexadecimal: what a sidecar
 * names as <arch>.nextn.model_fingerprint. */
void sk_model_fingerprint(const struct sk_gguf *g, char out[17]);

#endif
