#include "hostile.h"

#include <stdlib.h>

struct hostile {
    struct sk_proposer proposer; /* must be first */
    enum hostile_kind kind;
    size_t n_vocab;
    uint64_t state;
};

const char *hostile_name(enum hostile_kind kind) {
    static const char *const names[] = {"random tokens", "repeated current token", "out-of-range ids", "nothing at all",
                                        "more than was asked"};
    return names[kind];
}

static uint64_t next_random(struct hostile *h) {
    return h->state = h->state * 6364136223846793005ull + 1442695040888963407ull;
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct hostile *h = (struct hostile *)p;
    size_t n = h->kind == HOSTILE_EMPTY ? 0 : r->limit;
    for (size_t i = 0; i < n; i++) {
        const int32_t random = (int32_t)(next_random(h) >> 33) % (int32_t)h->n_vocab;
        int32_t token = random;
        if (h->kind == HOSTILE_WRONG) token = r->tokens[r->n - 1];
        if (h->kind == HOSTILE_OUT_OF_RANGE)
            token = i % 3 ? random : (int32_t)(i % 2 ? INT32_MIN : (int32_t)h->n_vocab);
        out[i] = (struct sk_draft){token, 200, 200}; /* a kind and a class that do not exist */
    }
    return h->kind == HOSTILE_TOO_MANY ? n + 100 : n; /* claims more than it wrote */
}

static void destroy(struct sk_proposer *p) {
    free(p);
}

static const struct sk_proposer_ops hostile_ops = {SK_PLUGIN, propose, NULL, destroy};

struct sk_proposer *hostile_create(enum hostile_kind kind, size_t n_vocab) {
    struct hostile *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    *h = (struct hostile){{&hostile_ops}, kind, n_vocab, 1};
    return &h->proposer;
}
