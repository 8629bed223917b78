#include "speculate/verdict.h"

sk_status sk_verdict(const int32_t *proposals, size_t k, const int32_t *predicted, size_t n_predicted, size_t budget,
                     bool (*ends_generation)(const void *, int32_t), const void *ctx, struct sk_verdict *out,
                     struct sk_error *err) {
    *out = (struct sk_verdict){0};
    for (size_t i = 0; i <= k; i++) {
        if (i >= n_predicted)
            return sk_fail(err, SK_EINVAL,
                           "the target gave %zu predictions for a window of %zu rows and stopped before its verdict",
                           n_predicted, k + 1);
        out->commit = i + 1;
        out->ended = out->commit >= budget || ends_generation(ctx, predicted[i]);
        if (i == k) return SK_OK; /* the boundary token */
        if (predicted[i] != proposals[i]) {
            out->rejected = true;
            return SK_OK;
        }
        out->accepted = i + 1;
        if (out->ended) return SK_OK; /* later rows are void */
    }
    return SK_OK;
}

size_t sk_proposal_limit(size_t budget, size_t position, size_t context, size_t max_rows) {
    size_t limit = budget ? budget - 1 : 0;
    const size_t room = position + 1 < context ? context - position - 1 : 0;
    if (room < limit) limit = room;
    if (max_rows == 0) return 0;
    return max_rows - 1 < limit ? max_rows - 1 : limit;
}
