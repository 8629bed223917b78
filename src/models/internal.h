/* What architecture files use: the loader's requests, and the workspace's buffers. */
#ifndef SK_MODELS_INTERNAL_H
#define SK_MODELS_INTERNAL_H

#include "models/model.h"

struct sk_architecture {
    const char *name; /* general.architecture */
    /* Reads what only this family knows into m->h, after the common keys have been read. */
    sk_status (*hparams)(struct sk_model *m, struct sk_error *err);
    /* Asks for the tensors of one layer. */
    sk_status (*plan_layer)(struct sk_model *m, uint32_t layer, struct sk_layer *l, struct sk_error *err);
    /* x += attention; x += feed-forward, for all rows of the workspace's batch. */
    void (*layer)(const struct sk_model *m, const struct sk_layer *l, size_t kv_layer, struct sk_workspace *ws);
    /* Says what a layer keeps from position to position; NULL for families without running states. Called when weights
     * are in place. */
    void (*recurrent)(const struct sk_model *m, const struct sk_layer *l, struct sk_recurrent_kind *out);
    bool mtp_hidden_after_norm; /* an MTP block takes hidden states after the output norm, unless its file says
                                   otherwise */
};

extern const struct sk_architecture sk_architecture_llama, sk_architecture_toy;
/* NULL if no such family is known. */
const struct sk_architecture *sk_architecture_named(struct sk_str name);
/* All names, separated by ", ". */
const char *sk_architecture_names(void);

/* A model of the one layer after the target's last, for an MTP block from `g`: same hyperparameters and rotary table,
 * nothing planned yet. */
sk_status sk_model_create_block(const struct sk_model *target, const struct sk_gguf *g, struct sk_model **out,
                                struct sk_error *err);
size_t sk_model_planned_bytes(const struct sk_model *m);

/* Requests. Names are printf patterns for the layer number ("blk.%u.attn_q.weight"). A missing optional tensor leaves
 * the target empty; a missing required one, or one of another shape or type, is an error. */
sk_status sk_plan_matrix(struct sk_model *m, const char *pattern, uint32_t layer, size_t k, size_t n_out, bool required,
                         struct sk_weight *out, struct sk_error *err);
/* Some rows of a tensor of any file that stays open: `row_ids` is an array of integers, each less than its rows. */
sk_status sk_plan_rows(struct sk_model *m, const struct sk_gguf_tensor *t, const struct sk_gguf_value *row_ids,
                       struct sk_weight *out, struct sk_error *err);
sk_status sk_plan_vector(struct sk_model *m, const char *pattern, uint32_t layer, size_t n, bool required, float **out,
                         struct sk_error *err);

/* Fills m->rope_frequencies and rope_magnitude from m->h and, if the file has them, its per-frequency factors. */
sk_status sk_rope_prepare(struct sk_model *m, struct sk_error *err);
/* cos and sin of all rotated pairs at one position. */
void sk_rope_angles(const struct sk_model *m, uint32_t position, float *cos, float *sin);

struct sk_workspace {
    size_t max_rows, n_threads;
    /* Set for each forward pass. */
    const struct sk_ops *ops;
    size_t rows;
    const struct sk_row_place *places;
    struct sk_kv_layout kv;
    uint32_t window; /* positions that attention sees; 0 = all */
    struct sk_rope rope;
    float *x;
    /* Buffers, [max_rows][…]. */
    float *norm, *q, *k, *v, *attention, *hidden, *gate, *up, *product, *cos, *sin, *picked;
    void *quantized, *scratch;
    void *region;
    size_t region_bytes;
};

#endif
