/* Private to the local target: the model's own head at work. */
#ifndef SK_ENGINE_LOCAL_DRAFTS_H
#define SK_ENGINE_LOCAL_DRAFTS_H

#include "engine/target.h"

/* Of one session. Its cache holds the pairs (h_{p-1}, x_p) of positions [0, kv->position); those that follow wait until
 * drafts are wanted or there are many, since several rows cost the block little more than one. */
struct sk_draft_session {
    struct sk_session *kv;
    bool lost; /* some window was not fed: there are no more drafts */
    struct sk_waiting_pairs {
        int32_t *tokens; /* [n] */
        float *hidden;   /* [n][n_embd] */
        size_t n, cap_tokens, cap_hidden;
    } waiting;
    int32_t last_token; /* of the last pair, waiting or not */
    float *hidden;      /* [n_hidden][n_embd]: states of positions [first_hidden, …), the last ones that are true */
    uint32_t first_hidden;
    size_t n_hidden, cap_hidden;
};

struct sk_drafts; /* scratch for a runtime with an MTP block */
sk_status sk_drafts_create(struct sk_runtime *rt, struct sk_drafts **out, struct sk_error *err);
void sk_drafts_free(struct sk_drafts *d);

sk_status sk_draft_session_open(struct sk_drafts *d, struct sk_draft_session **out, struct sk_error *err);
void sk_draft_session_close(struct sk_draft_session *s);
/* Forgets what lies past the main session's position. */
void sk_draft_session_trim(struct sk_draft_session *s, uint32_t position);

/* One window that has been run and sampled. */
struct sk_drafted {
    const struct sk_window *window;
    struct sk_result *result; /* gets drafts */
    struct sk_draft_session *session;
    const float *hidden; /* [n_rows][n_embd] */
};
/* Feeds the committed rows of all windows to the block, and drafts where drafts are wanted. Trouble costs drafts,
 * nothing else. */
void sk_drafts_run(struct sk_drafts *d, struct sk_drafted *items, size_t n);

#endif
