/* The verdict on a window: how much of it the target would have produced anyway. Pure logic (rules R1 and R2). */
#ifndef SK_SPECULATE_VERDICT_H
#define SK_SPECULATE_VERDICT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sk_verdict {
    size_t accepted; /* proposals that equal the prediction of the row before them */
    size_t commit;   /* predictions that become output: accepted + 1 unless something ended it */
    bool rejected;   /* a proposal differed; prediction [accepted] is the correction */
    bool ended;      /* the last committed token ends the generation, or the budget is used up */
};

/* Window [current, proposals[0..k)]; predicted[i] is what the target gives after row i. `budget` >= 1 tokens may still
 * be produced. Predictions may end once the verdict is decided; ending before that is an error. */
sk_status sk_verdict(const int32_t *proposals, size_t k, const int32_t *predicted, size_t n_predicted, size_t budget,
                     bool (*ends_generation)(const void *ctx, int32_t token), const void *ctx, struct sk_verdict *out,
                     struct sk_error *err);

/* Most proposals a window may carry so that accepting all of them and the boundary token stays within the budget, the
 * context and the window limit (R2). `position` is the current token's. */
size_t sk_proposal_limit(size_t budget, size_t position, size_t context, size_t max_rows);

#endif
