/* The second half of `skipstone exact`: every proposer, width, batch and chunk size against plain serial decoding. */
#ifndef SK_CLI_EXACT_SPEC_H
#define SK_CLI_EXACT_SPEC_H

#include "setup.h"

struct exact_spec_options {
    const char *workloads; /* a folder; NULL = the prompts given */
    size_t max_prompts;    /* of each workload */
    const struct sk_tokens *prompts;
    size_t n_prompts;
    const char *draft_model; /* may be NULL */
    size_t n_new;            /* tokens per answer */
    size_t rounds;           /* how often each combination is run, each time with other prompts */
    bool verbose;
};
/* Adds to *n_compared and *n_differ. The model's engine must be set up. */
sk_status exact_spec(struct model *m, const struct exact_spec_options *o, size_t *n_compared, size_t *n_differ,
                     struct sk_error *err);

#endif
