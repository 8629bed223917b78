/* The executor: runs rows of many sessions through this process's layers.
 *
 * Owns the model's weights, the compute threads, the activations and the key-value pool. One thread at a time may
 * call it. What a row gives does not depend on which other rows it is run with, nor on how calls are cut. */
#ifndef SK_RUNTIME_H
#define SK_RUNTIME_H

#include "cache/kv.h"
#include "models/mtp.h"

struct sk_runtime_options {
    size_t n_threads;     /* 0 = physical cores */
    struct sk_pool *pool; /* threads to share, borrowed; NULL = own ones */
    size_t n_positions;   /* of all sessions together; 0 = the model's context, at most 8192 */
    size_t max_rows;      /* rows in one pass; 0 = 512 */
    const char *isa;      /* kernel table by name; NULL = the fastest */
    const struct sk_gguf
        *mtp_file; /* a sidecar with an MTP block, borrowed; NULL = the block in the model's file, if it has one */
    bool without_mtp;
    uint32_t first_layer, last_layer;
    void (*progress)(void *ctx, double fraction); /* while loading; may be NULL */
    void *progress_ctx;
};

struct sk_runtime {
    struct sk_model *model;
    struct sk_pool *pool;
    bool owns_pool;
    struct sk_ops ops;
    struct sk_kv_pool *kv;
    struct sk_workspace *ws;
    size_t max_rows, n_positions;
    float *x; /* [max_rows][n_embd] */
    struct sk_row_place *places;
    int32_t *tokens;
    uint32_t *outputs;
    struct sk_mtp *mtp; /* NULL if there is none */
    struct sk_kv_pool *mtp_kv;
};

/* Positions a runtime makes room for unless told: the model's context, at most 8192. */
size_t sk_default_positions(const struct sk_hparams *h);

/* `g` is borrowed and must outlive the runtime. */
sk_status sk_runtime_create(const struct sk_gguf *g, const struct sk_runtime_options *options, struct sk_runtime **out,
                            struct sk_error *err);
void sk_runtime_free(struct sk_runtime *rt);

/* One token to run. Rows of a session must be in position order and start at its position. */
struct sk_row {
    struct sk_session *session;
    int32_t token;
    bool wants_logits;
};

/* Runs n rows, in as many passes as it takes, and moves the sessions' positions on. Logits of the rows that want them
 * go to logits[i * stride], i counting only those rows, stride = sk_model_logits_stride. On failure no session has
 * changed its position. `logits` may be NULL if no row wants any. */
sk_status sk_runtime_run(struct sk_runtime *rt, const struct sk_row *rows, size_t n, float *logits,
                         struct sk_error *err);
/* The same, and hidden[i] gets row i's final hidden state as the MTP block takes it, [n][n_embd]. */
sk_status sk_runtime_run_hidden(struct sk_runtime *rt, const struct sk_row *rows, size_t n, float *logits,
                                float *hidden, struct sk_error *err);

/* One pair of the MTP block: the token at the session's next position, and the hidden state of the position before. */
struct sk_mtp_row {
    struct sk_session *session; /* of rt->mtp_kv */
    int32_t token;
    const float *hidden;
    bool wants_logits;
};
/* Runs n rows through the MTP block. y [n][n_embd] gets its output, to be chained. Logits as in sk_runtime_run, with
 * sk_mtp_logits_stride. */
sk_status sk_runtime_run_mtp(struct sk_runtime *rt, const struct sk_mtp_row *rows, size_t n, float *y, float *logits,
                             struct sk_error *err);

#endif
