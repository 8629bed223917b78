/* How wide a window should be: the learnt acceptance of drafts, and the width that, at the learnt cost of passes, gives
 * most tokens per second. Pure arithmetic over what it is told. */
#ifndef SK_SPECULATE_WIDTH_H
#define SK_SPECULATE_WIDTH_H

#include "speculate/cost.h"

/* ---- how often drafts are accepted --------------------------------------------------------------------- */

struct sk_acceptance {
    /* Decayed counts by proposer and class of evidence. */
    float accepted[SK_N_PROPOSERS][SK_EVIDENCE_CLASSES], total[SK_N_PROPOSERS][SK_EVIDENCE_CLASSES];
    /* What failures in all its classes say of one that is still new: log-odds to take from its prior. */
    float doubt[SK_N_PROPOSERS];
};
/* The chance that a draft is accepted if those before it were. */
double sk_acceptance_of(const struct sk_acceptance *a, const struct sk_draft *d);
void sk_acceptance_observe(struct sk_acceptance *a, const struct sk_draft *d, bool accepted);

/* ---- the choice ---------------------------------------------------------------------------------------- */

/* Drafts to verify, at most n, so that expected tokens per second of a batch are greatest: this window beside
 * `other_rows` rows of others, which give `other_tokens`. 0 is a legal answer. */
size_t sk_goodput_width(const struct sk_acceptance *a, const struct sk_cost_model *c, const struct sk_draft *drafts,
                        size_t n, size_t other_rows, double other_tokens);

/* Starts at min(2, max); one more after a full accept, one less after anything else. */
struct sk_adaptive_width {
    size_t now, min, max;
};
void sk_adaptive_init(struct sk_adaptive_width *w, size_t min, size_t max);
void sk_adaptive_observe(struct sk_adaptive_width *w, bool full_accept);

#endif
