/* Private to engine/: the engine itself, and its two halves of a step. */
#ifndef SK_ENGINE_INTERNAL_H
#define SK_ENGINE_INTERNAL_H

#include "engine/engine.h"

struct sk_engine {
    struct sk_target *target;
    const struct sk_tokenizer *tokenizer;
    struct sk_generation *generations; /* running and finished, until closed */
    uint64_t next_id;
    struct sk_cost_model cost;   /* of passes without prefill */
    struct sk_acceptance learnt; /* from generations that are closed; a new one starts there */
};

/* windows.c: the next window of every running generation. */
struct sk_batch {
    struct sk_window *windows;
    struct sk_generation **owners;
    size_t n, max, n_rows;
    bool prefills; /* some window is a prompt's */
};
void sk_engine_next_windows(struct sk_engine *e, struct sk_batch *b);

/* commit.c: a window's result: verdict, commit, repair, receipt. */
void sk_engine_take_result(struct sk_engine *e, struct sk_generation *g, const struct sk_window *w,
                           const struct sk_result *r, double seconds);
/* An error ends this generation alone, and its session is never used again. */
void sk_engine_fail(struct sk_engine *e, struct sk_generation *g, const struct sk_error *error);

#endif
