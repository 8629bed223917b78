/* The replay proposer: knows the answer, and proposes it with a chosen accuracy. For measurements and tests. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "speculate/proposal.h"

struct replay {
    struct sk_proposer proposer; /* must be first */
    int32_t *tokens;             /* the whole sequence, prompt included */
    size_t n, n_vocab;
    double accuracy;
    uint64_t state;
};

static uint64_t next_random(struct replay *r) { /* splitmix64 */
    uint64_t z = (r->state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *request, struct sk_draft *out) {
    struct replay *r = (struct replay *)p;
    size_t n = 0;
    for (; n < request->limit && request->n + n < r->n; n++) {
        int32_t token = r->tokens[request->n + n];
        if ((double)(next_random(r) >> 11) * 0x1p-53 >= r->accuracy)
            token = (int32_t)((size_t)(token + 1) % r->n_vocab);
        out[n] = (struct sk_draft){token, SK_PLUGIN, 0};
    }
    return n;
}

static void destroy(struct sk_proposer *p) {
    free(((struct replay *)p)->tokens);
    free(p);
}

static const struct sk_proposer_ops replay_ops = {SK_PLUGIN, propose, NULL, destroy};

struct sk_proposer *sk_replay_proposer_create(const int32_t *tokens, size_t n, size_t n_vocab, double accuracy,
                                              uint64_t seed) {
    struct replay *r = sk_calloc(1, sizeof *r);
    if (r) r->tokens = sk_calloc(n ? n : 1, sizeof *tokens);
    if (!r || !r->tokens) {
        free(r);
        return NULL;
    }
    memcpy(r->tokens, tokens, n * sizeof *tokens);
    r->proposer.ops = &replay_ops;
    r->n = n;
    r->n_vocab = n_vocab;
    r->accuracy = accuracy;
    r->state = seed;
    return &r->proposer;
}
