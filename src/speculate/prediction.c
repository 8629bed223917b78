/* The prediction proposer: the output is expected to be a given text, more or less (OpenAI's predicted outputs). It is
 * followed as the copy proposer follows the context (aligner.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "speculate/aligner.h"

struct prediction {
    struct sk_proposer proposer; /* must be first */
    struct sk_aligner aligner;
    int32_t *tokens;
    size_t n, n_prompt, n_fed;
};

static size_t propose(struct sk_proposer *proposer, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct prediction *p = (struct prediction *)proposer;
    const int32_t *output = r->tokens + p->n_prompt;
    if (r->n != r->n_committed || r->n < p->n_prompt) return 0;
    const size_t n_output = r->n - p->n_prompt;
    for (; p->n_fed < n_output; p->n_fed++) sk_aligner_feed(&p->aligner, p->tokens, p->n, output[p->n_fed]);
    sk_aligner_search(&p->aligner, p->tokens, p->n, output, n_output);
    return sk_aligner_draft(&p->aligner, p->tokens, p->n, false, SK_PREDICTION, r->limit, out);
}

static void destroy(struct sk_proposer *proposer) {
    struct prediction *p = (struct prediction *)proposer;
    sk_aligner_free(&p->aligner);
    free(p->tokens);
    free(p);
}

static const struct sk_proposer_ops prediction_ops = {SK_PREDICTION, propose, NULL, destroy};

struct sk_proposer *sk_prediction_proposer_create(const int32_t *tokens, size_t n, size_t n_prompt) {
    struct prediction *p = sk_calloc(1, sizeof *p);
    if (p) p->tokens = sk_calloc(n ? n : 1, sizeof *tokens);
    if (!p || !p->tokens) {
        free(p);
        return NULL;
    }
    if (n) memcpy(p->tokens, tokens, n * sizeof *tokens);
    p->proposer.ops = &prediction_ops;
    p->n = n;
    p->n_prompt = n_prompt;
    sk_aligner_init(&p->aligner, true);
    sk_index_learn(&p->aligner.index, p->tokens, n);
    return &p->proposer;
}
