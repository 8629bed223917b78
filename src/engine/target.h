/* What verifies windows: this process's model, or (later) a chain of stages. The engine knows only this. */
#ifndef SK_ENGINE_TARGET_H
#define SK_ENGINE_TARGET_H

#include "base/error.h"
#include "sampling/sampling.h"
#include "speculate/proposal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A session as the target keeps it. */
struct sk_target_session;

/* Rows [start, start + n_rows) of a sequence, to be run in one pass. The first n_committed (at least 1) are true, the
 * rest are proposals. With `predict`, rows from n_committed - 1 on are sampled in order, each with the tokens before it
 * as history, until one differs from the proposal after it. */
struct sk_window {
    uint64_t id;
    struct sk_target_session *session;
    const int32_t *sequence; /* from position 0, proposals included; borrowed until the result */
    uint32_t start;
    size_t n_rows, n_committed;
    bool predict, wants_logprobs;
    bool keeps_drafts;             /* the model's own head follows this session; a window without this ends that */
    size_t drafts_wanted;          /* by the model's own head, for after the last prediction; 0 = none */
    float draft_min_probability;   /* a less likely draft is not made, nor any after it */
    float draft_min_reach;         /* no draft is made after those that are all accepted less often than this … */
    const float *draft_acceptance; /* … by [evidence] of each; NULL: as often as the head says. Borrowed */
    const struct sk_sampling_params *sampling; /* borrowed until the result */
};

struct sk_result {
    uint64_t id;
    sk_status status; /* not SK_OK: this window failed, its session must be closed; the others did not */
    struct sk_error error;
    const int32_t *predicted; /* [n_predicted]; valid until the next poll */
    const double *logprobs;   /* [n_predicted]; NULL unless wanted */
    size_t n_predicted;
    const struct sk_draft *drafts; /* [n_drafts] what may follow the last prediction */
    size_t n_drafts;
    uint32_t position; /* of the session after the pass: start + n_rows */
    double draft_s;    /* of the pass's time, what the model's own head took, for all windows together */
};

struct sk_target {
    const struct sk_target_ops *ops;
};

struct sk_target_ops {
    sk_status (*open)(struct sk_target *t, struct sk_target_session **out, struct sk_error *err);
    /* Takes windows of different sessions; does not wait. */
    sk_status (*submit)(struct sk_target *t, const struct sk_window *windows, size_t n, struct sk_error *err);
    /* Gives results of submitted windows, in order of submission: at most `max`, waiting for at least one if any is
     * out. */
    size_t (*poll)(struct sk_target *t, struct sk_result *results, size_t max);
    /* "This position is now true": what lies past it is forgotten (trim), or a checkpoint is dropped (retire). */
    sk_status (*settle)(struct sk_target *t, struct sk_target_session *s, uint32_t position, struct sk_error *err);
    uint32_t (*position)(const struct sk_target *t, const struct sk_target_session *s);
    void (*close)(struct sk_target *t, struct sk_target_session *s);
    size_t (*context)(const struct sk_target *t);  /* positions of all sessions together */
    size_t (*max_rows)(const struct sk_target *t); /* of one pass */
    size_t (*n_vocab)(const struct sk_target *t);
    bool (*has_drafts)(const struct sk_target *t); /* whether the model brings a head for drafts_wanted */
    double (*row_cost)(const struct sk_target *t); /* about what one more row of a pass takes, against the first */
    void (*destroy)(struct sk_target *t);
};

#include "runtime/runtime.h"

/* The target over a runtime in this process. The runtime is borrowed. */
sk_status sk_local_target_create(struct sk_runtime *rt, struct sk_target **out, struct sk_error *err);
/* The runtime session behind a session of a local target: for tests that compare states. */
const struct sk_session *sk_local_target_session(const struct sk_target_session *s);

#endif
