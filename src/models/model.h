/* A model: its hyperparameters, its weights, and the forward pass over a range of its layers.
 *
 * An architecture family is one file (llama.c) that says which metadata and tensors it needs and what one layer
 * computes, and is named in registry.c. Everything around it is shared: loading (load.c), rotary tables (rope.c),
 * embedding, loop and output head (forward.c). */
#ifndef SK_MODEL_H
#define SK_MODEL_H

#include "gguf/gguf.h"
#include "kernels/ops.h"

enum sk_rope_scaling { SK_ROPE_NONE, SK_ROPE_LINEAR, SK_ROPE_YARN };

struct sk_hparams {
    uint32_t n_vocab, n_ctx_train;
    uint32_t n_layers, n_embd, n_ff;
    uint32_t n_heads, n_kv_heads, head_dim, head_dim_v;
    uint32_t n_rot; /* values of a head that are rotated; even */
    bool rope_halves;
    float norm_eps, attention_scale;
    float rope_base;
    enum sk_rope_scaling rope_scaling;
    float rope_factor, rope_attention_factor, yarn_beta_fast, yarn_beta_slow;
    uint32_t rope_original_ctx;
};

/* One decoder block. NULL or empty (panels == NULL) means: the model has no such tensor. */
struct sk_layer {
    float *attn_norm, *ffn_norm;
    struct sk_weight q, k, v, o, gate, up, down;
    float *state_norm, *state_decay, *state_mix;
    float *q_bias, *k_bias, *v_bias, *o_bias, *gate_bias, *up_bias, *down_bias;
};

struct sk_architecture;

struct sk_model {
    const struct sk_architecture *arch;
    const struct sk_gguf *gguf; /* borrowed; embedding rows are read from its mapping */
    struct sk_hparams h;
    uint32_t first_layer, last_layer; /* weights of [first, last) are here */
    struct sk_layer *layers;          /* [last_layer - first_layer] */
    const struct sk_gguf_tensor *embedding;
    float *output_norm;
    struct sk_weight output;
    double *rope_frequencies;            /* [n_rot / 2], scaling applied */
    float rope_magnitude;                /* cos and sin are multiplied by this */
    struct sk_recurrent_kind *recurrent; /* [layers here]; NULL for families without running states */
    size_t weight_bytes;                 /* of panels and vectors in memory */
    struct sk_plan *plan;                /* private to load.c */
};

struct sk_load_options {
    uint32_t first_layer, last_layer; /* last_layer 0 = all */
    void (*progress)(void *ctx, double fraction);
    void *progress_ctx;
};

/* Reads hyperparameters and finds all tensors, checks their shapes, and counts the memory; takes none for weights. */
sk_status sk_model_plan(const struct sk_gguf *g, const struct sk_load_options *options, struct sk_model **out,
                        struct sk_error *err);
/* Takes the memory and repacks the weights of a planned model. */
sk_status sk_model_fill(struct sk_model *m, const struct sk_load_options *options, struct sk_pool *pool,
                        struct sk_error *err);
void sk_model_free(struct sk_model *m);

struct sk_kv_layout sk_model_kv_layout(const struct sk_model *m);
/* Floats of one row of logits: n_vocab rounded up to whole panels. */
size_t sk_model_logits_stride(const struct sk_model *m);

/* ---- the forward pass ---------------------------------------------------------------------------------- */

/* Scratch memory for batches of up to max_rows rows. */
struct sk_workspace;
sk_status sk_workspace_create(const struct sk_model *m, size_t max_rows, size_t n_threads, struct sk_workspace **out,
                              struct sk_error *err);
void sk_workspace_free(struct sk_workspace *ws);
size_t sk_workspace_bytes(const struct sk_model *m, size_t max_rows, size_t n_threads);

struct sk_forward {
    size_t rows; /* at most the workspace's max_rows */
    const struct sk_row_place *places;
    const int32_t *tokens;            /* [rows]; needed if first_layer is 0 */
    uint32_t first_layer, last_layer; /* within the model's */
    float *x;                         /* [rows][n_embd]: activations, in (unless first_layer is 0) and out */
    const uint32_t *outputs;          /* rows whose logits are wanted; used if last_layer is the model's last */
    size_t n_outputs;
    float *logits; /* [n_outputs][sk_model_logits_stride] */
};
void sk_model_forward(const struct sk_model *m, const struct sk_ops *ops, struct sk_workspace *ws,
                      const struct sk_forward *f);

#endif
