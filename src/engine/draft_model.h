/* A draft model: a small model of the same vocabulary, in the same process, that proposes what the large one will say.
 * It draws with the large one's noise at the same positions, so that two similar distributions mostly give the same
 * token (docs/SPECULATION.md). */
#ifndef SK_ENGINE_DRAFT_MODEL_H
#define SK_ENGINE_DRAFT_MODEL_H

#include "runtime/runtime.h"
#include "sampling/sampling.h"
#include "speculate/proposal.h"
#include "text/tokenizer.h"

struct sk_draft_model;

/* Shares the threads and kernels of `target`'s runtime, which must outlive it. A vocabulary that is not `tokenizer`'s
 * is refused with the first difference. */
sk_status sk_draft_model_open(const char *path, const struct sk_tokenizer *tokenizer, const struct sk_runtime *target,
                              struct sk_draft_model **out, struct sk_error *err);
void sk_draft_model_close(struct sk_draft_model *d);

/* For one generation; `params` is copied, the bias it names is borrowed. At most `max` drafts at a time; drafting stops
 * before a token whose probability is below min_probability. */
sk_status sk_draft_proposer_create(struct sk_draft_model *d, const struct sk_sampling_params *params, size_t max,
                                   float min_probability, struct sk_proposer **out, struct sk_error *err);

#endif
