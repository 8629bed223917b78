/* `skipstone bench --spec`: what speculation gains, by workload and proposer; and by the accuracy of drafts. */
#ifndef SK_CLI_BENCH_SPEC_H
#define SK_CLI_BENCH_SPEC_H

#include "setup.h"

struct bench_spec_options {
    const char *workloads, *draft_model; /* draft_model may be NULL */
    size_t n_prompts, n_new;
    size_t wall_runs;                  /* whole processes per figure; 0 = none */
    const struct model_options *model; /* for those */
    bool json, curve;
};
sk_status bench_spec(struct model *m, const struct bench_spec_options *o, struct sk_error *err);

#endif
